"""The heuristic: a split has the throughput of its slower segment, and a whole path that of one segment."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from lasthop.papers.splitting.network import DELAYS, LOSSES, RATES

Grid = npt.NDArray[np.float64]
"""Throughput of one segment in Mb/s by rate, delay and loss, in their order; further axes follow."""

Indices = npt.NDArray[np.intp]

_RESAMPLED = 400


def whole_delay(one: int, other: int) -> int:
    """Return the delay of two segments together, in ms; the least counts as none."""
    return one + other - (1 in (one, other))


@cache
def _settings() -> tuple[dict[str, Indices], dict[str, npt.NDArray[np.float64]]]:
    """Return the places of both segments and the whole path in a grid, and the values of each setting."""
    pairs = [
        (r1, r2, d1, d2, l1, l2)
        for r1, r2 in product(RATES, repeat=2)
        for l1, l2 in product(LOSSES, repeat=2)
        if l1 + l2 <= LOSSES[-1]
        for d1, d2 in product(DELAYS, repeat=2)
        if whole_delay(d1, d2) <= DELAYS[-1]
    ]
    places = {"one": [], "other": [], "whole": []}  # type: dict[str, list[tuple[int, int, int]]]
    for r1, r2, d1, d2, l1, l2 in pairs:
        whole = (min(r1, r2), whole_delay(d1, d2), l1 + l2)
        for name, (rate, delay, loss) in (("one", (r1, d1, l1)), ("other", (r2, d2, l2)), ("whole", whole)):
            places[name].append((RATES.index(rate), DELAYS.index(delay), LOSSES.index(loss)))
    columns = np.asarray(pairs, dtype=float).T
    names = ("rate_1", "rate_2", "delay_1", "delay_2", "loss_1", "loss_2")
    return {name: np.asarray(each).T for name, each in places.items()}, dict(zip(names, columns, strict=True))


def settings() -> int:
    """Return the number of settings whose segments and whole path are all on the grid.

    Examples
    --------
    >>> settings()
    7875
    """
    return len(_settings()[1]["rate_1"])


def counts(grid: Grid) -> dict[str, int]:
    """Return how many settings gain by a split, of which kinds, from the throughputs of one segment.

    Parameters
    ----------
    grid : array
        Throughput in Mb/s by rate, delay and loss; NaN where no download ends in time, which counts as none.
    """
    places, at = _settings()
    throughput = np.nan_to_num(grid)
    one, other, whole = (throughput[tuple(places[name])] for name in ("one", "other", "whole"))
    split, bottleneck = np.minimum(one, other), np.minimum(at["rate_1"], at["rate_2"])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(whole > 0, split / whole, np.inf)
    useful = split > 0.5 * bottleneck
    triple = gain > 3
    both = (at["loss_1"] > 0) & (at["loss_2"] > 0)
    is_edge = (at["delay_1"] == DELAYS[0]) | (at["delay_2"] == DELAYS[0])
    near = (
        (at["delay_2"] == DELAYS[0]) & (at["loss_2"] > 0) & (at["delay_1"] > DELAYS[0]) & (at["loss_1"] == 0)
    )
    far = (
        (at["delay_1"] == DELAYS[0]) & (at["loss_1"] > 0) & (at["delay_2"] > DELAYS[0]) & (at["loss_2"] == 0)
    )
    good = triple & useful
    kinds = {
        "triple": triple,
        "useful": good,
        "near": good & near,
        "asymmetric": good & (near | far),
        "both": good & both,
        "edge": good & both & is_edge,
        "middle": good & both & ~is_edge,
        "half": (gain > 1.5) & useful,
    }
    return {name: int(kind.sum()) for name, kind in kinds.items()}


@dataclass(frozen=True, slots=True)
class Count:
    """The number of settings of a kind.

    Attributes
    ----------
    number : int
        The number by the medians of all runs.
    resampled : array of int
        The numbers by the medians of as many runs drawn with replacement.
    runs : int
        The number of runs.
    """

    number: int
    resampled: npt.NDArray[np.int64]
    runs: int


def counted(runs: Grid) -> dict[str, Count]:
    """Return the numbers of settings from throughputs whose last axis is runs."""
    return _counted(runs.tobytes(), runs.shape)


@lru_cache(maxsize=8)
def _counted(data: bytes, shape: tuple[int, ...]) -> dict[str, Count]:
    """Count once for all claims and figures."""
    runs, n = np.frombuffer(data).reshape(shape), shape[-1]
    random = np.random.default_rng(2025)
    every = counts(medians(runs))
    drawn = [counts(medians(runs[..., random.integers(n, size=n)])) for _ in range(_RESAMPLED)]
    return {
        name: Count(number, np.asarray([each[name] for each in drawn]), n) for name, number in every.items()
    }


def medians(runs: Grid) -> Grid:
    """Return the medians over runs of the downloads that ended; NaN if half or more did not."""
    ended = np.isfinite(runs).sum(axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.nanmedian(runs, axis=-1)
    return np.where(2 * ended > runs.shape[-1], found, np.nan)
