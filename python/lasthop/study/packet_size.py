"""The good packet size for an error characteristic: the table that a base station would hold.

Bakshi, Krishna, Vaidya and Pradhan (TR-96-014, section 4.1) propose that a base station keeps a table that
gives, for the errors on its link, the packet size with which TCP gets most through. This makes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lasthop import api
from lasthop._lasthop import Scenario
from lasthop.study.error import StudyError
from lasthop.study.statistics import Sample, compare, estimate, holm

if TYPE_CHECKING:
    from pathlib import Path

    import pandas

    from lasthop.study.study import Study

SIZE = "tcp.packet_size"
SIZES = (128, 256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1408, 1536)
"""The sizes tried if none are named, in bytes: those of the paper."""

SIGNIFICANT = 0.05


def load(path: str | Path, sizes: Sequence[str] = (), overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario with the packet size as one more axis of its sweep.

    Parameters
    ----------
    path : str or Path
        The scenario. What else it sweeps, its channel above all, are the rows of the table.
    sizes : sequence of str, optional
        The packet sizes to try, headers included. By default what the scenario sweeps, or else `SIZES`.
    overrides : sequence of str, optional
        As in `lasthop.load`.

    Returns
    -------
    Scenario
        The scenario.

    Examples
    --------
    >>> load("scenarios/ebsn-wide-area.toml", ["128 B", "512 B"]).sweep
    {'tcp.packet_size': ['128 B', '512 B']}
    """
    scenario = api.load(path, list(overrides))
    if SIZE in scenario.sweep and not sizes:
        return scenario
    tried = list(sizes) or [f"{size} B" for size in SIZES]
    return api.load(path, [*overrides, f"sweep.{SIZE}={json.dumps(tried)}"])


def table(study: Study, metric: str = "throughput_bps") -> pandas.DataFrame:
    """Return the best packet size for each error characteristic and scheme.

    Parameters
    ----------
    study : Study
        A finished study of a scenario that `load` returned.
    metric : str, default "throughput_bps"
        What the best has most of.

    Returns
    -------
    pandas.DataFrame
        The other swept settings; `scheme`; `packet_size`, the one with the greatest mean; that `mean` with
        its `ci95` and the number of runs `n`; and `as_good`, the sizes that are not significantly worse:
        compared run by run over the same fades, with Holm's correction for their number.
    """
    import pandas

    frame = study.to_pandas()
    others = [name for name in study.points[0].parameters if name != SIZE]
    if SIZE not in study.points[0].parameters:
        raise StudyError(f"the study does not sweep {SIZE}")
    rows = []
    for key, part in frame.groupby([*others, "scheme"], sort=False):
        samples = {
            str(size): runs.sort_values("run")[metric].to_numpy(dtype=float)
            for size, runs in part.groupby(SIZE, sort=False)
        }
        best = max(samples, key=lambda size: np.nanmean(samples[size]))
        found = estimate(samples[best][~np.isnan(samples[best])], study.seed)
        rows.append(
            dict(zip([*others, "scheme"], key, strict=True))
            | {
                "packet_size": best,
                "metric": metric,
                "mean": found.mean,
                "ci95": found.ci95,
                "n": found.n,
                "as_good": _as_good(samples, best, study.seed),
            }
        )
    return pandas.DataFrame(rows)


def _as_good(samples: dict[str, Sample], best: str, seed: int) -> list[str]:
    """Return the sizes that are not significantly worse than the best, the best among them, in order."""
    sizes = list(samples)
    p_values = []
    for size in sizes:
        both = ~(np.isnan(samples[size]) | np.isnan(samples[best]))
        p_values.append(compare(samples[best][both], samples[size][both], seed).difference.p_value)
    others = [i for i, size in enumerate(sizes) if size != best]
    adjusted = dict(zip(others, holm([p_values[i] for i in others]), strict=True))
    return [size for i, size in enumerate(sizes) if size == best or not adjusted[i] < SIGNIFICANT]
