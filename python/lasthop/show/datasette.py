"""The metadata of a study's store for Datasette: descriptions, and predefined queries."""

from __future__ import annotations

from typing import Any

from lasthop.core.metrics import is_of_part
from lasthop.core.titles import shown_title
from lasthop.results.error import StudyError
from lasthop.study.study import Study

_MEANINGS = {
    "scheme": "What is compared.",
    "run": "The number of the run: lasthop run --run.",
    "seed": "The seed of the study: lasthop run --seed.",
    "ended": "Why the run ended: finished, time-limit or idle.",
    "lasthop": "The version of Lasthop.",
    "scenario_hash": "The hash of the scenario of this point.",
}
_UNITS = {"_bps": "in bits per second", "_bytes": "in bytes", "_s": "in seconds"}
_INTERNAL = ("chunk", "place", "meta")
"""Tables from which the view `result` is made."""


def metadata(study: Study) -> dict[str, Any]:
    """Return the metadata with which Datasette shows a study's store.

    Parameters
    ----------
    study : Study
        The study, with its store in a file.

    Returns
    -------
    dict
        What `datasette STORE --metadata FILE` reads.

    Raises
    ------
    StudyError
        If the study is not in a file.
    """
    if study.path is None:
        raise StudyError("Datasette needs a file: state store")
    tables: dict[str, Any] = {name: {"hidden": True} for name in _INTERNAL}
    tables["point"] = {"description": "The points of the grid, each with its scenario in the canonical form."}
    tables["result"] = {
        "description": "A row for each run: its setting, its metrics, and what repeats it.",
        "columns": _columns(study),
    }
    return {
        "title": shown_title(study.scenario) or "A study",
        "description": f"A study of {', '.join(study.points[0].schemes)}, made by Lasthop {study.version}.",
        "databases": {study.path.stem: {"tables": tables, "queries": _queries(study)}},
    }


def _columns(study: Study) -> dict[str, str]:
    """Return what each column of the view `result` means."""
    settings = dict.fromkeys(study.points[0].parameters, "A setting that the study varies.")
    return settings | _MEANINGS | {name: _metric(name) for name in study.stored_metrics}


def _metric(name: str) -> str:
    """Return what a metric is, by its name.

    Examples
    --------
    >>> _metric("throughput_bps"), _metric("ebsn.notices_sent")
    ('A metric, in bits per second.', 'A counter of ebsn.')
    >>> _metric("connection.up.throughput_bps")
    'A metric of connection up, in bits per second.'
    """
    of, _, metric = name.rpartition(".")
    if of and not is_of_part(name):
        return f"A counter of {of}."
    whose = f" of {of.replace('.', ' ', 1)}" if of else ""
    unit = next((f", {words}" for suffix, words in _UNITS.items() if metric.endswith(suffix)), "")
    return f"A metric{whose}{unit}."


def _queries(study: Study) -> dict[str, Any]:
    """Return queries for means, for differences in pairs, and for the runs with the least of the metric."""
    settings = [_quoted(name) for name in study.points[0].parameters]
    metric = _quoted(study.metric)
    groups = ", ".join([*settings, "scheme"])
    baseline = study.points[0].schemes[0]
    same = " AND ".join(["one.run = base.run", *(f"one.{name} = base.{name}" for name in settings)])
    chosen = ", ".join([*(f"one.{name}" for name in settings), "one.scheme"])
    return {
        "means": {
            "title": f"Mean {study.metric} of each scheme at each point",
            "sql": f"SELECT {groups}, count({metric}) AS runs, avg({metric}) AS mean, "
            f"min({metric}) AS least, max({metric}) AS greatest FROM result GROUP BY {groups}",
        },
        "pairs": {
            "title": f"Mean difference of {study.metric} to {baseline}, over the same fades",
            "sql": f"SELECT {chosen}, count(*) AS pairs, avg(one.{metric} - base.{metric}) AS difference "
            f"FROM result AS one JOIN result AS base ON {same} "
            f"WHERE base.scheme = {_text(baseline)} AND one.scheme <> base.scheme GROUP BY {chosen}",
        },
        "least": {
            "title": f"The ten runs with the least {study.metric}",
            "description": "lasthop run with --seed, --run, --scheme and --set repeats one, with its trace.",
            "sql": f"SELECT {groups}, seed, run, {metric}, ended FROM result WHERE {metric} IS NOT NULL "
            f"ORDER BY {metric} LIMIT 10",
        },
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
