"""A study's results as a JSON document, as curves and heat maps.

The keys of the document are a contract, defined in docs/reference/studies.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lasthop.core.quantity import axis
from lasthop.core.titles import shown_title
from lasthop.core.units import quantile_name
from lasthop.results.samples import TOTAL
from lasthop.study.study import Study

if TYPE_CHECKING:
    import pandas

    from lasthop.plots import DataFigure


def scenario(study: Study) -> dict[str, str]:
    """Return which scenario a study is of."""
    return {"title": study.scenario.title, "file": study.scenario.file, "hash": study.scenario.hash}


def document(study: Study) -> dict[str, Any]:
    """Return the results as a JSON-compatible dictionary.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    dict
        What `lasthop study --json` prints.
    """
    summaries = {metric: study.summary(metric) for metric in study.metrics}
    shown = summaries[study.metric]
    quantiles = {
        metric: {quantile_name(share): study.quantile(share, metric) for share in study.quantiles}
        for metric in stated_quantities(study)
    }
    parameters = list(study.points[0].parameters)
    hashes = [point.hash for point in study.points for _ in point.schemes]
    results = []
    for row, (_, cell) in enumerate(shown.iterrows()):
        results.append(
            {
                "parameters": {name: cell[name] for name in parameters},
                "scenario_hash": hashes[row],
                "scheme": cell["scheme"],
                "runs": int(cell["runs"]),
                "unfinished": int(cell["unfinished"]),
                "precision": _number(cell["ci95"] / abs(cell["mean"]) if cell["mean"] else math.nan),
                "metrics": {metric: _mean(table.iloc[row]) for metric, table in summaries.items()},
                "quantiles": {
                    metric: {name: _quantile(table.iloc[row]) for name, table in each.items()}
                    for metric, each in quantiles.items()
                },
            }
        )
    return {
        "lasthop": study.version,
        "scenario": scenario(study),
        "seed": study.seed,
        "metric": study.metric,
        "precision": study.rule.precision,
        "runs": {"min": study.rule.least, "max": study.rule.most},
        "finished": study.finished,
        "store": None if study.path is None else str(study.path),
        "results": results,
        "comparisons": [
            _comparison(row, parameters)
            for metric in (study.metric, *study.further)
            for _, row in study.differences(metric=metric).iterrows()
        ],
    }


def curve_figures(study: Study, share: float | None = None) -> Iterator[tuple[str, DataFigure]]:
    """Yield the figures of a study with their titles: of the means, or of a quantile.

    Each draws the metric against the swept setting that is numeric, or as a heat map over two such settings.
    If other settings are swept too, there is one figure for each combination of their values. With three
    numeric settings or more there are none.
    """
    numeric = numeric_settings(study)
    if len(numeric) not in (1, 2) or (share is not None and study.metric == TOTAL):
        return
    from lasthop.plots.curves import sweep_curve
    from lasthop.plots.heat import sweep_map

    def draw(part: pandas.DataFrame, title: str) -> DataFigure:
        if len(numeric) == 1:
            return sweep_curve(part, numeric[0], title=title)
        return sweep_map(part, numeric[0], numeric[1], title=title)

    others = [name for name in study.points[0].parameters if name not in numeric]
    summary = study.summary() if share is None else study.quantile(share)
    if not others:
        title = shown_title(study.scenario)
        yield title, draw(summary, title)
        return
    for values, part in summary.groupby(others, sort=False):
        title = ", ".join(f"{name} = {value}" for name, value in zip(others, values, strict=True))
        yield title, draw(part, title)


def stated_quantities(study: Study) -> list[str]:
    """Return the stated metrics that have quantiles, if any are wanted."""
    stated = (study.metric, *study.further) if study.quantiles else ()
    return [metric for metric in stated if metric != TOTAL]


def numeric_settings(study: Study) -> list[str]:
    """Return the swept settings that can be an axis."""
    swept = {
        name: list(dict.fromkeys(point.parameters[name] for point in study.points))
        for name in study.points[0].parameters
    }
    return [name for name, values in swept.items() if axis(values) is not None]


def _mean(row: pandas.Series[Any]) -> dict[str, Any]:
    return {
        "mean": _number(row["mean"]),
        "ci95": _number(row["ci95"]),
        "n": int(row["n"]),
        "low": _number(row["low"]),
        "high": _number(row["high"]),
    }


def _quantile(row: pandas.Series[Any]) -> dict[str, Any]:
    return {
        "value": _number(row["value"]),
        "n": int(row["n"]),
        "low": _number(row["low"]),
        "high": _number(row["high"]),
    }


def _comparison(row: pandas.Series[Any], parameters: list[str]) -> dict[str, Any]:
    n = int(row["n"])
    ratio = None
    if not math.isnan(row["ratio"]):
        ratio = {
            "mean": row["ratio"],
            "ci95": row["ratio_ci95"],
            "n": n,
            "low": row["ratio_low"],
            "high": row["ratio_high"],
        }
    return {
        "parameters": {name: row[name] for name in parameters},
        "scheme": row["scheme"],
        "baseline": row["baseline"],
        "metric": row["metric"],
        "difference": {
            "mean": _number(row["difference"]),
            "ci95": _number(row["ci95"]),
            "n": n,
            "low": _number(row["low"]),
            "high": _number(row["high"]),
        },
        "ratio": ratio,
        "p_value": _number(row["p_value"]),
        "p_holm": _number(row["p_holm"]),
        "significant": bool(row["significant"]),
    }


def _number(value: float) -> float | None:
    """Return a number, or None for NaN and infinity, which JSON lacks."""
    return float(value) if math.isfinite(value) else None
