"""The results of a comparison as a JSON document, as a table and as a heat map.

The keys of the document are a contract, defined in docs/reference/comparisons.md.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from lasthop._lasthop import __version__
from lasthop.core.files import write_text
from lasthop.core.paired_quantiles import Span
from lasthop.race.arm import Arm
from lasthop.race.race import Race
from lasthop.race.ranked import Ranked
from lasthop.results.export import to_csv


def document(comparison: Race) -> dict[str, Any]:
    """Return the results as a JSON-compatible dictionary.

    Parameters
    ----------
    comparison : Race
        The comparison, after its runs.

    Returns
    -------
    dict
        What `lasthop compare --json` prints.
    """
    scenario = comparison.scenario
    return {
        "lasthop": __version__,
        "scenario": {"title": scenario.title, "file": scenario.file, "hash": scenario.hash},
        "seed": comparison.seed,
        "metric": comparison.metric,
        "quantile": comparison.quantile,
        "better": comparison.better,
        "baseline": comparison.baseline.label,
        "error": comparison.error,
        "margin": comparison.margin,
        "precision": comparison.precision,
        "runs": {"min": comparison.looks[0], "max": comparison.looks[-1]},
        "finished": comparison.finished,
        "results": [_result(comparison, each) for each in comparison.ranking()],
        "refused": [{**_arm(refusal.arm), "reason": refusal.reason} for refusal in comparison.refused],
    }


def write(comparison: Race, directory: Path) -> list[Path]:
    """Write all results of a comparison into a directory.

    Parameters
    ----------
    comparison : Race
        The comparison, after its runs.
    directory : Path
        The directory.

    Returns
    -------
    list of Path
        The files.
    """
    from lasthop import plots

    table = comparison.results()
    results = directory / "results.json"
    write_text(results, json.dumps(document(comparison), indent=2, ensure_ascii=False) + "\n")
    figure = plots.heat_map(table, better=comparison.better, title=comparison.shown_title)
    return [
        results,
        to_csv(table, directory / "comparison.csv"),
        *plots.save(figure, directory / "heat-map"),
    ]


def _arm(arm: Arm) -> dict[str, Any]:
    return {
        "arm": arm.label,
        "sender": arm.sender,
        "scheme": arm.scheme,
        "settings": arm.texts,
    }


def _result(comparison: Race, each: Ranked) -> dict[str, Any]:
    return {
        "rank": each.rank,
        **_arm(each.arm),
        "baseline": each.baseline,
        "status": each.status,
        "stopped_early": each.stopped_early,
        "runs": each.runs,
        "missing": each.missing,
        "unfinished": each.unfinished,
        "mean": _interval(each.mean, "mean"),
        "quantile": None if each.quantile is None else _numbers(each.quantile, "value"),
        "ratio": _interval(each.ratio, "mean"),
        "difference": _interval(each.difference, "mean"),
        "p_value": _number(each.p_value),
        "p_holm": _number(each.p_holm),
        "significant": each.significant,
        "without_effect": comparison.without_effect(each.arm),
    }


def _interval(span: Span, name: str) -> dict[str, float | None] | None:
    """Return a number with the ends of its interval, or None if there is none."""
    return None if math.isnan(span.value) else _numbers(span, name)


def _numbers(span: Span, name: str) -> dict[str, float | None]:
    return {name: _number(span.value), "low": _number(span.low), "high": _number(span.high)}


def _number(value: float) -> float | None:
    """Return a number, or None for NaN and infinity, which JSON lacks."""
    return float(value) if math.isfinite(value) else None
