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
from lasthop.race.arm import Arm
from lasthop.race.race import Race
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
    rows: list[Any] = comparison.results().to_dict("records")
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
        "results": [_result(arm, row) for arm, row in zip(comparison.standing(), rows, strict=True)],
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
    figure = plots.heat_map(table, better=comparison.better, title=comparison.scenario.title)
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
        "settings": dict(arm.settings),
    }


def _result(arm: Arm, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "rank": row["rank"],
        **_arm(arm),
        "baseline": row["baseline"],
        "status": row["status"],
        "stopped_early": row["stopped_early"],
        "runs": row["n"],
        "missing": row["missing"],
        "unfinished": row["unfinished"],
        "mean": _interval(row["mean"], row["ci_low"], row["ci_high"]),
        "quantile": _quantile(row),
        "ratio": _interval(row["ratio"], row["ratio_low"], row["ratio_high"]),
        "difference": _interval(row["difference"], row["difference_low"], row["difference_high"]),
        "p_value": _number(row["p_value"]),
        "p_holm": _number(row["p_holm"]),
        "significant": row["significant"],
    }


def _quantile(row: dict[str, Any]) -> dict[str, float | None] | None:
    """Return the quantile with its interval, or None if the comparison is by means."""
    if "value" not in row:
        return None
    return {"value": _number(row["value"]), **_ends(row["value_low"], row["value_high"])}


def _interval(mean: float, low: float, high: float) -> dict[str, float | None] | None:
    """Return a mean with the ends of its interval, or None if there is none."""
    if math.isnan(mean):
        return None
    return {"mean": _number(mean), **_ends(low, high)}


def _ends(low: float, high: float) -> dict[str, float | None]:
    return {"low": _number(low), "high": _number(high)}


def _number(value: float) -> float | None:
    """Return a number, or None for NaN and infinity, which JSON lacks."""
    return float(value) if math.isfinite(value) else None
