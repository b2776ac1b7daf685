"""The packet size with the highest throughput, for each error characteristic of a channel.

Bakshi, Krishna, Vaidya and Pradhan (TR-96-014, section 4.1) propose that a base station keeps a table of the
best packet size for each error characteristic of its link. This module computes the table. `key` names the
setting to vary: for a split connection it is the packet size of the wireless part, such as
`scheme.metp.wireless.packet_size`.

A window in bytes holds fewer packets the larger they are; `window = "10 packets"` holds the same number of
each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lasthop._lasthop import Scenario
from lasthop.core import scenarios
from lasthop.core.statistics import Sample, common_difference, estimate, holm
from lasthop.core.units import metric_kind
from lasthop.results.error import StudyError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas

    from lasthop.study.study import Study

SIZE = "tcp.packet_size"
SIZES = (128, 256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1408, 1536)
"""The default sizes in bytes: those of the paper."""

SIGNIFICANT = 0.05


def load(
    path: str | Path, sizes: Sequence[str | int] = (), overrides: Sequence[str] = (), key: str = SIZE
) -> Scenario:
    """Load a scenario with the packet size as an additional axis of its sweep.

    Parameters
    ----------
    path : str or Path
        The scenario. Its own sweep, usually of the channel, gives the rows of the table.
    sizes : sequence of str or int, optional
        The packet sizes with a unit or in bytes, headers included. By default those of the scenario's sweep,
        or else `SIZES`.
    overrides : sequence of str, optional
        As in `lasthop.load`.
    key : str, default "tcp.packet_size"
        The setting that is the packet size.

    Returns
    -------
    Scenario
        The scenario.

    Examples
    --------
    >>> load("ebsn-wide-area", ["128 B", 512]).sweep
    {'tcp.packet_size': ['128 B', '512 B']}
    """
    scenario = scenarios.load(path, list(overrides))
    if key in scenario.sweep and not sizes:
        return scenario
    return scenario.with_({axis(key): list(sizes or SIZES)})


def axis(key: str) -> str:
    """Return the key of the axis of packet sizes."""
    return f"sweep.{key}"


def table(study: Study, metric: str = "throughput_bps", key: str = SIZE) -> pandas.DataFrame:
    """Return the best packet size for each error characteristic and scheme.

    Parameters
    ----------
    study : Study
        A finished study of a scenario that `load` returned.
    metric : str, default "throughput_bps"
        The metric to maximise.
    key : str, default "tcp.packet_size"
        As in `load`.

    Returns
    -------
    pandas.DataFrame
        The other swept settings; `scheme`; `packet_size`, the one with the greatest mean; that `mean` with
        its `ci95`, `low`, `high` and the number of runs `n`; and `as_good`, the sizes that are not
        significantly worse in paired comparisons over the same fades, with Holm's correction.
    """
    import pandas

    others = other_settings(study, key)
    found_by: dict[tuple[str, ...], dict[str, Sample]] = {}
    stored = study.samples()
    for index, point in enumerate(study.points):
        for scheme in point.schemes:
            row = (*(point.parameters[name] for name in others), scheme)
            found_by.setdefault(row, {})[point.parameters[key]] = stored.of(index, scheme, metric)
    rows = []
    for which, samples in found_by.items():
        best = max(samples, key=lambda size: np.nanmean(samples[size]))
        found = estimate(samples[best][~np.isnan(samples[best])], metric_kind(metric))
        rows.append(
            dict(zip([*others, "scheme"], which, strict=True))
            | {
                "packet_size": best,
                "metric": metric,
                "mean": found.mean,
                "ci95": found.ci95,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "as_good": _as_good(samples, best),
            }
        )
    return pandas.DataFrame(rows)


def other_settings(study: Study, key: str) -> list[str]:
    """Return the swept settings other than the packet size.

    Raises
    ------
    StudyError
        If the study does not sweep the packet size.
    """
    if key not in study.points[0].parameters:
        raise StudyError(f"the study does not sweep {key}")
    return [name for name in study.points[0].parameters if name != key]


def _as_good(samples: dict[str, Sample], best: str) -> list[str]:
    """Return the best size and those not significantly worse, in order."""
    sizes = list(samples)
    p_values = []
    for size in sizes:
        p_values.append(common_difference(samples[best], samples[size]).difference.p_value)
    others = [i for i, size in enumerate(sizes) if size != best]
    adjusted = dict(zip(others, holm([p_values[i] for i in others]), strict=True))
    return [size for i, size in enumerate(sizes) if size == best or not adjusted[i] < SIGNIFICANT]
