//! Models of losses, fitted to measurements.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use lasthop_base::Streams;
use lasthop_fit::{
    Fit, Law, Losses, Model, Periods, Shape, bad_loss_profile, bootstrap, burst_profile, fit_all,
    log_likelihood,
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

type Column<'py> = Bound<'py, PyArray1<f64>>;

/// The losses of a measurement, in order of time.
///
/// Attributes
/// ----------
/// duration_s : float
///     Seconds from the first probe to the last.
/// sent, lost : int
///     How many packets were sent, and how many of them were lost.
/// spacing_s : float
///     The median time between packets.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct LossRecord(Losses);

#[pymethods]
impl LossRecord {
    /// Return the record of probes.
    ///
    /// Parameters
    /// ----------
    /// time_s : array of float
    ///     When they were sent.
    /// lost : array of bool
    ///     Which of them were lost.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the arrays differ in length, are shorter than two, or the times are not finite and in order.
    #[staticmethod]
    fn of_probes(
        time_s: PyReadonlyArray1<'_, f64>,
        lost: PyReadonlyArray1<'_, bool>,
    ) -> PyResult<LossRecord> {
        let losses = Losses::of_probes(time_s.as_slice()?.to_vec(), lost.as_slice()?.to_vec());
        losses.map(LossRecord).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Return the record of packets counted over intervals.
    ///
    /// Parameters
    /// ----------
    /// time_s, interval_s : array of float
    ///     The beginning of each interval, and its length.
    /// sent, lost : array of np.uint32
    ///     How many packets were sent in it, and how many of them were lost.
    /// until_arrival : bool, default False
    ///     Whether each interval counts the packets of a constant rate from the last arrival before it to the last one in it.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     As `of_probes`, and if more are lost than sent, none is sent, or a length is not above zero.
    #[staticmethod]
    #[pyo3(signature = (time_s, interval_s, sent, lost, until_arrival=false))]
    fn of_counts(
        time_s: PyReadonlyArray1<'_, f64>,
        interval_s: PyReadonlyArray1<'_, f64>,
        sent: PyReadonlyArray1<'_, u32>,
        lost: PyReadonlyArray1<'_, u32>,
        until_arrival: bool,
    ) -> PyResult<LossRecord> {
        let (lengths, sent, lost) = (interval_s.as_slice()?, sent.as_slice()?, lost.as_slice()?);
        if lengths.len() != sent.len() || sent.len() != lost.len() {
            return Err(PyValueError::new_err("found lists of different lengths, expected equal ones"));
        }
        let counts = lengths.iter().zip(sent).zip(lost).map(|((&length, &sent), &lost)| (length, sent, lost));
        let losses = Losses::of_counts(time_s.as_slice()?.to_vec(), counts.collect());
        let losses = if until_arrival { losses.map(Losses::until_arrivals) } else { losses };
        losses.map(LossRecord).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.duration_s()
    }

    #[getter]
    fn sent(&self) -> u64 {
        self.0.sent_and_lost().0
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.0.sent_and_lost().1
    }

    #[getter]
    fn spacing_s(&self) -> f64 {
        self.0.spacing_s()
    }

    /// Return the likeliest model of each of `LOSS_FAMILIES` that the record has one of.
    fn fits(&self, py: Python<'_>) -> Vec<LossFit> {
        let found = py.detach(|| fit_all(&self.0));
        found.into_iter().map(|fit| LossFit { fit, record: self.0.clone() }).collect()
    }

    /// Fit periods whose bad ones have other mean lengths.
    ///
    /// Parameters
    /// ----------
    /// bad_s : array of float
    ///     The lengths.
    ///
    /// Returns
    /// -------
    /// log_likelihood : array of float
    ///     The log-likelihood with each length.
    /// share : array of float
    ///     The likeliest share of the time in bad periods.
    fn burst_profile<'py>(
        &self,
        py: Python<'py>,
        bad_s: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(Column<'py>, Column<'py>)> {
        let lengths = bad_s.as_slice()?.to_vec();
        let profile = py.detach(|| burst_profile(&self.0, &lengths));
        Ok((PyArray1::from_vec(py, profile.log_likelihood), PyArray1::from_vec(py, profile.share)))
    }

    /// Return the log-likelihood of a model, given by the keys of `LossFit.model`; None for one with lognormal lengths.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If the model lacks a key.
    fn log_likelihood(&self, model: BTreeMap<String, f64>) -> PyResult<Option<f64>> {
        Ok(log_likelihood(&self.0, &model_of(&model)?))
    }

    /// Return the histograms of the record.
    ///
    /// Returns
    /// -------
    /// dict of str to array of float
    ///     Each as one row.
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        shapes(py, &[Shape::of(&self.0)])
    }
}

/// Simulate which of the probes sent at `time_s` are lost.
///
/// Parameters
/// ----------
/// time_s : array of float
///     The times, in order.
/// model : dict
///     The model, with the keys of `LossFit.model`.
/// seed : int
///     The seed.
///
/// Returns
/// -------
/// array of bool
///     Whether each is lost.
///
/// Raises
/// ------
/// ValueError
///     If there are fewer than two times, or they are not finite and in order.
/// KeyError
///     If the model lacks a key.
#[pyfunction]
pub(crate) fn simulate_losses<'py>(
    py: Python<'py>,
    time_s: PyReadonlyArray1<'py, f64>,
    model: BTreeMap<String, f64>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let model = model_of(&model)?;
    let mut stream = Streams::new(seed, 0).stream("simulate");
    let losses = Losses::of_model(time_s.as_slice()?.to_vec(), &model, &mut stream)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyArray1::from_slice(py, losses.outcomes().expect("a record of probes")))
}

/// The model with the keys of `LossFit.model`.
fn model_of(model: &BTreeMap<String, f64>) -> PyResult<Model> {
    let value = |name: &str| model.get(name).copied().ok_or_else(|| PyKeyError::new_err(String::from(name)));
    let law = |mean: f64, sigma: f64| match sigma.is_nan() {
        true => Law::Exponential(mean),
        false => Law::lognormal_with_mean(mean, sigma),
    };
    Ok(match value("bad_s")?.is_nan() {
        true => Model::Independent(value("loss")?),
        false => Model::Periods(Periods {
            good: law(value("good_s")?, value("good_sigma")?),
            bad: law(value("bad_s")?, value("bad_sigma")?),
            loss_good: value("loss_good")?,
            loss_bad: value("loss_bad")?,
        }),
    })
}

/// The likeliest model of a family.
///
/// Attributes
/// ----------
/// family : str
///     The family.
/// parameters : int
///     The number of its parameters.
/// log_likelihood : float
///     The logarithm of the likelihood.
/// bic, aic : float
///     Schwarz's and Akaike's criteria.
/// model : dict of str to float
///     ``loss``, and of periods ``good_s``, ``bad_s`` (means), ``good_sigma``, ``bad_sigma`` (NaN for exponential lengths),
///     ``loss_good`` and ``loss_bad``.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct LossFit {
    fit: Fit,
    record: Losses,
}

#[pymethods]
impl LossFit {
    #[getter]
    fn family(&self) -> &'static str {
        self.fit.family.name()
    }

    #[getter]
    fn parameters(&self) -> u32 {
        self.fit.parameters
    }

    #[getter]
    fn log_likelihood(&self) -> f64 {
        self.fit.log_likelihood
    }

    #[getter]
    fn bic(&self) -> f64 {
        self.fit.bic
    }

    #[getter]
    fn aic(&self) -> f64 {
        self.fit.aic
    }

    #[getter]
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let model = PyDict::new(py);
        for (name, value) in COLUMNS.iter().zip(row(Some(&self.fit.model))) {
            model.set_item(name, value)?;
        }
        Ok(model)
    }

    /// Simulate the same probes over the model, and fit each record anew.
    ///
    /// Parameters
    /// ----------
    /// replicates : int
    ///     How many records.
    /// seed : int
    ///     The seed.
    /// jobs : int
    ///     The number of threads; the result does not depend on it.
    ///
    /// Returns
    /// -------
    /// models : dict of str to array of float
    ///     The columns of `model` as arrays; NaN where nothing fits.
    /// shapes : dict of str to array of float
    ///     The histograms of the records, a row for each.
    fn bootstrap<'py>(
        &self,
        py: Python<'py>,
        replicates: usize,
        seed: u64,
        jobs: NonZeroUsize,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let found = py.detach(|| bootstrap(&self.record, &self.fit, seed, replicates, jobs));
        let models = columns(py, found.iter().map(|replicate| replicate.model.as_ref()))?;
        let of_records: Vec<_> = found.into_iter().map(|replicate| replicate.shape).collect();
        Ok((models, shapes(py, &of_records)?))
    }

    /// Fit periods with other losses in bad periods to the record.
    ///
    /// Parameters
    /// ----------
    /// loss_bad : array of float
    ///     The losses.
    ///
    /// Returns
    /// -------
    /// log_likelihood : array of float
    ///     The log-likelihood with each loss.
    /// models : dict of str to array of float
    ///     The columns of `model` as arrays.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the model has independent losses.
    fn bad_loss_profile<'py>(
        &self,
        py: Python<'py>,
        loss_bad: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(Column<'py>, Bound<'py, PyDict>)> {
        let Model::Periods(periods) = self.fit.model else {
            return Err(PyValueError::new_err("found independent losses, expected a model with periods"));
        };
        let losses = loss_bad.as_slice()?.to_vec();
        let found = py.detach(|| bad_loss_profile(&self.record, &periods, &losses));
        let likelihood = PyArray1::from_iter(py, found.iter().map(|(likelihood, _)| *likelihood));
        Ok((likelihood, columns(py, found.iter().map(|(_, model)| Some(model)))?))
    }
}

const COLUMNS: [&str; 7] = ["loss", "good_s", "good_sigma", "bad_s", "bad_sigma", "loss_good", "loss_bad"];

fn row(model: Option<&Model>) -> [f64; 7] {
    let sigma = |law| match law {
        Law::Exponential(_) => f64::NAN,
        Law::Lognormal { sigma, .. } => sigma,
    };
    let mut row = [f64::NAN; 7];
    let Some(model) = model else { return row };
    row[0] = model.loss();
    if let Model::Periods(Periods { good, bad, loss_good, loss_bad }) = *model {
        row[1..].copy_from_slice(&[
            good.mean_s(),
            sigma(good),
            bad.mean_s(),
            sigma(bad),
            loss_good,
            loss_bad,
        ]);
    }
    row
}

/// The columns of models as arrays; NaN for `None`.
fn columns<'a, 'py>(
    py: Python<'py>,
    models: impl Iterator<Item = Option<&'a Model>>,
) -> PyResult<Bound<'py, PyDict>> {
    let rows: Vec<_> = models.map(row).collect();
    let columns = PyDict::new(py);
    for (index, name) in COLUMNS.iter().enumerate() {
        columns.set_item(name, PyArray1::from_iter(py, rows.iter().map(|row| row[index])))?;
    }
    Ok(columns)
}

fn shapes<'py>(py: Python<'py>, of_records: &[Shape]) -> PyResult<Bound<'py, PyDict>> {
    fn numbers(counts: &[u64]) -> Vec<f64> {
        counts.iter().map(|&count| count as f64).collect()
    }
    let table = |column: fn(&Shape) -> Vec<f64>| -> PyResult<_> {
        let rows: Vec<_> = of_records.iter().map(column).collect();
        Ok(PyArray2::from_vec2(py, &rows)?)
    };
    let columns = PyDict::new(py);
    columns.set_item("bursts", table(|shape| numbers(&shape.bursts))?)?;
    columns.set_item("gaps", table(|shape| numbers(&shape.gaps))?)?;
    columns.set_item("after_loss", table(|shape| shape.after_loss.clone())?)?;
    columns.set_item("by_time", table(|shape| shape.by_time.clone())?)?;
    Ok(columns)
}
