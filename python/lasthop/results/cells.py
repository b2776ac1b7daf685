"""Cells: a metric, or why runs ended, over the consecutive runs of a chunk.

Cells are one value that all runs share, None included, or bytes: decimal numbers of equal width, padded with
spaces, blank where a run lacks the metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import decode


def measured(cells: Any, runs: int) -> Any:
    """Return the cells of a metric that was asked for, which `runs` new runs have.

    In such a column a null tells that runs were made before it was asked for. One of which no run has a value
    is blank.

    Examples
    --------
    >>> measured(None, 3), measured(2.5, 3)
    (b'   ', 2.5)
    """
    return b" " * runs if cells is None else cells


def first_difference(
    ours: Sequence[Any] | npt.NDArray[Any], theirs: Sequence[Any] | npt.NDArray[Any]
) -> int | None:
    """Return the place of the first difference of two columns of equal length; None if they are equal.

    Examples
    --------
    >>> first_difference([1.0, float("nan"), 2.0], [1.0, float("nan"), 3.0]), first_difference(["a"], ["a"])
    (2, None)
    """
    a, b = np.asarray(ours), np.asarray(theirs)
    differs = a != b
    if a.dtype.kind in "if" and b.dtype.kind in "if":
        differs &= ~(np.isnan(a.astype(float)) & np.isnan(b.astype(float)))
    return int(np.flatnonzero(differs)[0]) if differs.any() else None


def words(cells: Any, runs: int) -> list[str]:
    """Return why each run of a chunk ended."""
    if not isinstance(cells, bytes):
        return [cells] * runs
    width = len(cells) // runs
    return [cells[i : i + width].decode().rstrip() for i in range(0, len(cells), width)]


def decoded(chunks: Sequence[Any], runs: Sequence[int]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return the values of a metric in chunks of so many runs: integers if all are, NaN where there is none.

    Examples
    --------
    >>> decoded([True, b"1  12 "], [1, 2]).tolist(), decoded([0.5, None], [1, 2]).tolist()
    ([1, 1, 12], [0.5, nan, nan])
    """
    # A truth is an integer, as it is in bytes and in SQLite.
    shared = [np.nan if cells is None else +cells for cells in chunks if not isinstance(cells, bytes)]
    if len(shared) == len(chunks):
        return np.repeat(shared, runs)
    parts = [
        decode(cells, n) if isinstance(cells, bytes) else np.full(n, np.nan if cells is None else +cells)
        for cells, n in zip(chunks, runs, strict=True)
    ]
    return np.concatenate(parts)


def cut(cells: Any, runs: int, first: int, end: int) -> Any:
    """Return the cells of the runs from `first` to below `end` of a chunk of `runs` runs.

    Examples
    --------
    >>> cut(b"1  12 123", 3, 1, 3), cut("finished", 3, 1, 3)
    (b'12 123', 'finished')
    """
    if not isinstance(cells, bytes):
        return cells
    width = len(cells) // runs
    return cells[first * width : end * width]
