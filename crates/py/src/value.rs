//! Values of settings, from and to Python.

use std::hash::{DefaultHasher, Hash, Hasher};

use lasthop_scenario::{Amount, Change, Number, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PySequence, PyString};

/// A number with a unit, for a setting where a bare number would be in another one, or could be in several.
///
/// Parameters
/// ----------
/// amount : float
///     The number.
/// unit : str
///     A unit as in scenario files, such as ``"ms"``, ``"packets"`` or ``"%"``.
///
/// Attributes
/// ----------
/// amount, unit
///     As given.
///
/// Examples
/// --------
/// >>> import lasthop
/// >>> queue = lasthop.Quantity(20, "packets")
/// >>> str(queue), lasthop.load("last-mile").with_({"radio.queue": queue})["radio.queue"] == queue
/// ('20 packets', True)
#[pyclass(frozen, eq, from_py_object, module = "lasthop._lasthop")]
#[derive(Clone, PartialEq)]
pub(crate) struct Quantity(Number);

#[pymethods]
impl Quantity {
    #[new]
    fn new(amount: &Bound<'_, PyAny>, unit: String) -> PyResult<Quantity> {
        let not_a_number = || PyTypeError::new_err("amount: expected a number");
        let amount = match amount_of(amount)?.ok_or_else(not_a_number)? {
            // 20.0 packets are 20.
            Amount::Real(amount) if amount.fract() == 0.0 && amount.abs() < 1e18 => {
                Amount::Whole(amount as i128)
            }
            amount => amount,
        };
        Ok(Quantity(Number { amount, unit: Some(unit) }))
    }

    #[getter]
    fn amount<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.0.amount)
    }

    #[getter]
    fn unit(&self) -> &str {
        self.0.unit.as_deref().unwrap_or_default()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Quantity({}, {:?})", self.0.amount, self.unit())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// Read a quantity as people write it.
///
/// Parameters
/// ----------
/// text : str
///     The text, such as ``"19.2 kbps"``.
///
/// Returns
/// -------
/// (float, str) or None
///     The number in the SI unit of its kind, and that unit: ``"s"``, ``"B"``, ``"bps"``, ``""`` for plain numbers and
///     percentages, or any other word after the number, in the singular. None if the text is not a quantity.
///
/// Examples
/// --------
/// >>> from lasthop._lasthop import quantity
/// >>> quantity("19.2 kbps"), quantity("4KiB"), quantity("1e-6"), quantity("tahoe")
/// ((19200.0, 'bps'), (4096.0, 'B'), (1e-06, ''), None)
#[pyfunction]
pub(crate) fn quantity(text: &str) -> Option<(f64, String)> {
    lasthop_base::parse_quantity(text)
}

fn number(py: Python<'_>, amount: Amount) -> PyResult<Bound<'_, PyAny>> {
    match amount {
        Amount::Whole(amount) => amount.into_bound_py_any(py),
        Amount::Real(amount) => amount.into_bound_py_any(py),
    }
}

/// The number that an object is; `None` if it is none. NumPy's numbers are numbers, too.
fn amount_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Amount>> {
    if object.is_instance_of::<PyInt>() {
        let too_large = |_| PyValueError::new_err(format!("found {object}, expected a number within range"));
        return object.extract().map(|amount| Some(Amount::Whole(amount))).map_err(too_large);
    }
    if object.is_instance_of::<PyFloat>() {
        return object.extract().map(|amount| Some(Amount::Real(amount)));
    }
    Ok(match object.hasattr("__index__")? {
        true => object.extract().ok().map(Amount::Whole),
        false => None,
    })
}

/// The value that `object` is for the setting at `key`.
fn value_of(key: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if let Some(amount) = amount_of(object)? {
        return Ok(Value::Number(Number { amount, unit: None }));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_str()?.to_owned()));
    }
    if let Ok(quantity) = object.extract::<Quantity>() {
        return Ok(Value::Number(quantity.0));
    }
    if let Ok(table) = object.cast::<PyMapping>() {
        return table_of(key, table);
    }
    if let Ok(items) = object.cast::<PySequence>() {
        let items = items.try_iter()?.enumerate();
        let item = |(index, item): (usize, PyResult<_>)| value_of(&format!("{key}[{index}]"), &item?);
        return items.map(item).collect::<PyResult<_>>().map(Value::List);
    }
    let found = object.get_type().name()?;
    let place = if key.is_empty() { String::new() } else { format!("{key}: ") };
    Err(PyTypeError::new_err(format!(
        "{place}found an object of type {found}, expected a number, a string, a bool, a Quantity, a list or a mapping"
    )))
}

/// The table that a mapping is, at the path `above`.
pub(crate) fn table_of(above: &str, mapping: &Bound<'_, PyMapping>) -> PyResult<Value> {
    let entry = |item: Bound<'_, PyAny>| {
        let (key, object) = item.extract::<(String, Bound<'_, PyAny>)>()?;
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        Ok((key, value_of(&path, &object)?))
    };
    mapping.items()?.iter().map(entry).collect::<PyResult<_>>().map(Value::Table)
}

/// The changes that `stated` are: mappings of keys to values, of which None removes a key, and assignments.
pub(crate) fn changes(stated: &[Bound<'_, PyAny>]) -> PyResult<Vec<Change>> {
    let mut changes = Vec::new();
    for each in stated {
        if let Ok(assignment) = each.cast::<PyString>() {
            changes.push(Change::Assignment(assignment.to_str()?.to_owned()));
            continue;
        }
        let mapping = each.cast::<PyMapping>().map_err(|_| {
            PyTypeError::new_err(
                "expected mappings such as {\"radio.rate\": 2e6}, or strings such as \"radio.rate=2 Mbps\"",
            )
        })?;
        for item in mapping.items()? {
            let (key, object) = item.extract::<(String, Bound<'_, PyAny>)>()?;
            let value = if object.is_none() { None } else { Some(value_of(&key, &object)?) };
            changes.push(Change::Key(key, value));
        }
    }
    Ok(changes)
}

/// A value as an object, with quantities in SI units.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => {
            let number = number.clone().in_si();
            match number.unit {
                None => self::number(py, number.amount),
                Some(_) => Quantity(number).into_bound_py_any(py),
            }
        }
        Value::Text(text) => text.into_bound_py_any(py),
        Value::List(items) => {
            items.iter().map(|item| object(py, item)).collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
        }
        Value::Table(table) => {
            let objects = PyDict::new(py);
            for (key, value) in table {
                objects.set_item(key, object(py, value)?)?;
            }
            Ok(objects.into_any())
        }
    }
}
