"""Scenarios from files, from the package and from dictionaries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop._lasthop import SCENARIOS, Scenario, ScenarioError
from lasthop.core import packaged

if TYPE_CHECKING:
    from lasthop.python_scheme import PythonScheme


def load(
    path: str | Path, overrides: Iterable[str] = (), *, python_schemes: Iterable[PythonScheme] = ()
) -> Scenario:
    """Read a scenario file, or a worked scenario of the package.

    Parameters
    ----------
    path : str or Path
        The TOML file, or one of the names of `scenarios`. A file of that name precedes the worked scenario.
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
        return Scenario.parse(SCENARIOS[name], name=name, overrides=overrides, python_schemes=python_schemes)
    try:
        return Scenario.load(path, overrides=overrides, python_schemes=python_schemes)
    except ScenarioError as error:
        hint = None if Path(path).exists() else packaged.suggestion(path)
        if hint is None:
            raise
        error.message = f"{error.message}; {hint}"
        error.args = (f"{error.message}\n --> {error.file}",)
        raise


def build(tables: Mapping[str, Any]) -> Scenario:
    """Build a scenario from nested dictionaries with the structure of a file.

    Parameters
    ----------
    tables : mapping
        The scenario: tables as mappings, quantities as strings with units.

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
    ...     "wired": {"rate": "10 Mbps", "delay": "20 ms"},
    ...     "radio": {"rate": "2 Mbps", "channel": {"iid": {"ber": 1e-6}}},
    ... })
    >>> lasthop.run(scenario).metrics["finished"]
    True
    """
    text = "".join(f"{_key(name)} = {_value(value)}\n" for name, value in tables.items())
    return Scenario.parse(text, name="<dict>")


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    # Numbers, booleans and strings have the same syntax in TOML and JSON.
    return json.dumps(value, ensure_ascii=False)
