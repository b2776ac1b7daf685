"""Exporting runs as CSV and Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.core.files import naming
from lasthop.results.error import StudyError

if TYPE_CHECKING:
    import pandas


def to_csv(frame: pandas.DataFrame, path: Path) -> Path:
    """Write a frame as CSV, with the same bytes on every system."""
    return _whole(path, lambda to: frame.to_csv(to, index=False, lineterminator="\n"))


def require_pyarrow() -> None:
    """Refuse to write Parquet if pyarrow is not installed.

    Raises
    ------
    StudyError
        If so.
    """
    if find_spec("pyarrow") is None:
        raise StudyError("Parquet needs pyarrow: pip install 'lasthop[parquet]'; CSV needs nothing")


def to_parquet(frame: pandas.DataFrame, path: Path) -> Path:
    """Write a frame as Parquet."""
    require_pyarrow()
    return _whole(path, lambda to: frame.to_parquet(to, engine="pyarrow", index=False))


def _whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Write to a temporary file and rename it to `path`, which is therefore never incomplete."""
    beside = path.with_name(f".{path.name}.part")
    try:
        with naming(path):
            write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path
