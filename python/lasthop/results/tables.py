"""Results as data frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lasthop.core.quantity import numeric_columns
from lasthop.core.statistics import (
    Estimate,
    PairedDifference,
    Sample,
    common_difference,
    estimate,
    holm,
    quantile,
)
from lasthop.core.units import better_of, metric_kind
from lasthop.results.samples import TOTAL, Samples
from lasthop.results.store import ALL, Identity, Store

if TYPE_CHECKING:
    import pandas

SIGNIFICANT = 0.05


def runs_frame(store: Store, identity: Identity) -> pandas.DataFrame:
    """Return a row for each run, ordered by point, scheme and run number."""
    import pandas

    metrics = identity.metrics
    settings = setting_cells(identity)
    parts = []
    for i, point in enumerate(identity.points):
        for scheme in point.schemes:
            values = store.columns(i, scheme, metrics, below=ALL)
            numbers = [range(first, end) for first, end in store.stored(i, scheme).ranges()]
            part: dict[str, Any] = {
                **settings[i],
                "scheme": scheme,
                "run": np.concatenate([np.empty(0, np.int64), *numbers]),
                "seed": identity.seed,
                "ended": store.ended(i, scheme),
                **dict(zip(metrics, values, strict=True)),
                "lasthop": identity.version,
                "scenario_hash": point.hash,
            }
            parts.append(pandas.DataFrame(part))
    frame = pandas.concat(parts, ignore_index=True)
    if "finished" in frame:
        frame["finished"] = frame["finished"].astype(bool)
    return frame


def setting_cells(identity: Identity) -> list[dict[str, Any]]:
    """Return the cells of each point's swept settings: their texts, and then their numbers."""
    points = identity.points
    texts = {name: [point.parameters[name] for point in points] for name in points[0].parameters}
    numbers = numeric_columns(texts)
    return [
        {**point.parameters, **{name: column[i] for name, column in numbers.items()}}
        for i, point in enumerate(points)
    ]


def estimate_cell(samples: Samples, point: int, scheme: str, metric: str) -> Estimate:
    """Estimate a metric from the runs that have it."""
    sample = samples.of(point, scheme, metric)
    return estimate(sample[~np.isnan(sample)], metric_kind(metric))


def summary_frame(samples: Samples, identity: Identity, metric: str) -> pandas.DataFrame:
    """Return the mean of a metric at each point with each scheme."""
    import pandas

    rows = []
    settings = setting_cells(identity)
    for i, point in enumerate(identity.points):
        for scheme in point.schemes:
            found = estimate_cell(samples, i, scheme, metric)
            row: dict[str, Any] = settings[i] | {
                "scheme": scheme,
                "metric": metric,
                "runs": samples.runs(i, scheme),
                "unfinished": samples.unfinished(i, scheme),
                "n": found.n,
                "mean": found.mean,
                "ci95": found.ci95,
                "low": found.low,
                "high": found.high,
                "sd": found.sd,
                "method": found.method,
                "few": found.few,
            }
            if metric == "throughput_bps":
                total = estimate_cell(samples, i, scheme, TOTAL)
                row |= {TOTAL: total.mean, f"{TOTAL}_ci95": total.ci95}
            rows.append(row)
    return pandas.DataFrame(rows)


def quantile_frame(samples: Samples, identity: Identity, metric: str, share: float) -> pandas.DataFrame:
    """Return a quantile of a metric over the runs of each point with each scheme."""
    import pandas

    rows = []
    settings = setting_cells(identity)
    for i, point in enumerate(identity.points):
        for scheme in point.schemes:
            sample = samples.of(i, scheme, metric)
            missing = np.isnan(sample)
            found = quantile(_with_the_worst(sample, metric), share)
            rows.append(
                settings[i]
                | {
                    "scheme": scheme,
                    "metric": metric,
                    "quantile": share,
                    "runs": samples.runs(i, scheme),
                    "n": found.n,
                    "missing": int(np.count_nonzero(missing)),
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "determined": found.determined,
                }
            )
    return pandas.DataFrame(rows)


def _with_the_worst(sample: Sample, metric: str) -> Sample:
    """Return a sample in which a run without the metric is worse than all others.

    A transfer that did not finish took longer than any that did. If no run has the metric, or if it depends
    on the question what is worse, those runs are left out.
    """
    missing = np.isnan(sample)
    worst = {"lower": math.inf, "higher": -math.inf}.get(better_of(metric) or "")
    if worst is None or missing.all():
        return sample[~missing]
    return np.where(missing, worst, sample)


def difference_frame(
    samples: Samples, identity: Identity, baseline: str | None, metric: str
) -> pandas.DataFrame:
    """Return the paired differences to `baseline`, by default the first scheme, at each point."""
    import pandas

    rows: list[dict[str, Any]] = []
    p_values: list[float] = []
    settings = setting_cells(identity)
    for i, point in enumerate(identity.points):
        against = point.schemes[0] if baseline is None else baseline
        for scheme in point.schemes:
            if scheme == against:
                continue
            found = difference_at(samples, i, scheme, against, metric)
            difference, ratio = found.difference, found.ratio
            p_values.append(difference.p_value)
            rows.append(
                settings[i]
                | {
                    "scheme": scheme,
                    "baseline": against,
                    "metric": metric,
                    "n": difference.n,
                    "difference": difference.mean,
                    "ci95": difference.ci95,
                    "low": difference.low,
                    "high": difference.high,
                    "method": difference.method,
                    "ratio": math.nan if ratio is None else ratio.mean,
                    "ratio_ci95": math.nan if ratio is None else ratio.ci95,
                    "ratio_low": math.nan if ratio is None else ratio.low,
                    "ratio_high": math.nan if ratio is None else ratio.high,
                    "p_value": difference.p_value,
                }
            )
    frame = pandas.DataFrame(rows)
    frame["p_holm"] = holm(p_values)
    frame["significant"] = frame["p_holm"] < SIGNIFICANT
    return frame


def difference_at(samples: Samples, point: int, scheme: str, baseline: str, metric: str) -> PairedDifference:
    """Compare two schemes over the runs that both have, and in which both have the metric."""
    runs = samples.runs(point, scheme, baseline)
    ours, theirs = (samples.of(point, each, metric, runs) for each in (scheme, baseline))
    return common_difference(ours, theirs)
