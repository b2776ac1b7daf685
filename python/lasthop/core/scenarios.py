"""Scenarios from files, from the package and from dictionaries, and the values of their settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop._lasthop import Quantity, Scenario, ScenarioError
from lasthop.core import packaged

if TYPE_CHECKING:
    from lasthop.python_scheme import PythonScheme


def load(
    path: str | Path, overrides: Iterable[str] = (), *, python_schemes: Iterable[PythonScheme] = ()
) -> Scenario:
    """Read a scenario file, or a scenario of the package.

    Parameters
    ----------
    path : str or Path
        The TOML file; or one of the names of `scenarios`; or that of a preset of `links`, for a download over
        it. A file of that name comes first.
    overrides : iterable of str, optional
        Settings that replace those of the file, such as `"radio.rate=2 Mbps"`.
    python_schemes : iterable of PythonScheme, optional
        Schemes written in Python that the scenario may name.

    Returns
    -------
    Scenario
        The validated scenario.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not a valid scenario.

    Examples
    --------
    >>> import lasthop
    >>> lasthop.load("ebsn-example", ["transfer.size=50 KB"]).schemes
    ['basic', 'source-quench', 'local-recovery', 'ebsn']
    """
    name, overrides, python_schemes = packaged.found(path), list(overrides), list(python_schemes)
    if name is not None:
        return Scenario.parse(
            packaged.text(name), name=name, overrides=overrides, python_schemes=python_schemes
        )
    try:
        return Scenario.load(path, overrides=overrides, python_schemes=python_schemes)
    except ScenarioError as error:
        hint = None if Path(path).exists() else packaged.suggestion(path)
        if hint is None:
            raise
        error.message = f"{error.message}; {hint}"
        error.remedy = getattr(hint, "remedy", hint)
        error.args = (f"{error.message}\n --> {error.file}",)
        raise


def build(tables: Mapping[str, Any]) -> Scenario:
    """Build a scenario from nested dictionaries with the structure of a file.

    Parameters
    ----------
    tables : mapping
        The scenario: tables as mappings, and values as in `Scenario.with_`: numbers in SI units, or strings
        with units.

    Returns
    -------
    Scenario
        The validated scenario.

    Raises
    ------
    ScenarioError
        If it is not a valid scenario.

    Examples
    --------
    >>> import lasthop
    >>> scenario = lasthop.build({
    ...     "transfer": {"size": "100 KB"},
    ...     "wired": {"rate": 10e6, "delay": 0.02},
    ...     "radio": {"rate": "2 Mbps", "channel": {"iid": {"ber": 1e-6}}},
    ... })
    >>> lasthop.run(scenario).metrics["finished"]
    True
    """
    return Scenario.from_tables(tables, name="<dict>")


def setting_text(value: Any) -> str:
    """Return the value of a setting in the syntax of `--set`.

    Examples
    --------
    >>> setting_text({"fq-codel": {}}), setting_text({"iid": {"ber": 1e-6}}), setting_text("576 B")
    ('{ fq-codel = {} }', '{ iid = { ber = 1e-06 } }', '576 B')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        entries = ", ".join(f"{key} = {_quoted(inner)}" for key, inner in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(value: Any) -> str:
    """Return the value of a setting in TOML."""
    return (
        json.dumps(str(value), ensure_ascii=False)
        if isinstance(value, str | Quantity)
        else setting_text(value)
    )
