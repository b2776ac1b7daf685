"""The worked scenarios, which come with the package and are found by name."""

from __future__ import annotations

import tomllib
from os import PathLike, fspath
from pathlib import Path, PurePath

from lasthop._lasthop import SCENARIOS
from lasthop.core.names import near, unknown


def scenarios() -> dict[str, str]:
    """Return the names of the worked scenarios, with their titles.

    Each can be given to `load` in place of a file.

    Returns
    -------
    dict of str to str
        In alphabetical order.

    Examples
    --------
    >>> import lasthop
    >>> lasthop.scenarios()["ebsn-example"]
    'EBSN worked example: constant good and bad periods'
    """
    return {name: tomllib.loads(text)["title"] for name, text in SCENARIOS.items()}


def found(path: str | PathLike[str]) -> str | None:
    """Return the name of the worked scenario that `path` means; None if it means a file.

    A file of that name precedes the worked scenario; a directory does not.
    """
    name = fspath(path)
    if name not in SCENARIOS:
        return None
    there = Path(path)
    return name if there.is_dir() or not there.exists() else None


def suggestion(path: str | PathLike[str]) -> str | None:
    """Return what to say of a file that does not exist, if a worked scenario may have been meant."""
    name = PurePath(path).name.removesuffix(".toml")
    alike = near(name, SCENARIOS)
    if alike:
        return f'did you mean the worked scenario "{alike}"?'
    return unknown("worked scenario", name, SCENARIOS) if fspath(path) == name else None
