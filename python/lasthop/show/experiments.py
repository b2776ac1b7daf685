"""Studies and races as text and HTML."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from lasthop.core.titles import shown_title
from lasthop.core.units import aligned, interval_cells, metric_scale, quantile_cells, quantile_name
from lasthop.race import Race, RaceError
from lasthop.show.html import table
from lasthop.show.notebook import html_of, text_of
from lasthop.study import Study

if TYPE_CHECKING:
    import pandas


@text_of.register
def _study_text(study: Study) -> str:
    """Return the text that stands for a study: its size, and how far it is."""
    return f"<Study of {shown_title(study.scenario)!r}: {_extent(study)}; {_state(study)}>"


@html_of.register
def _study_html(study: Study) -> str:
    """Return a study as HTML: its size, and the means of its metric as far as they are known."""
    caption = f"<b>{escape(shown_title(study.scenario) or 'A study')}</b> · {escape(_extent(study))}"
    if not study.progress.done or study.shard is not None:
        return table(caption, [], [], _state(study))
    summary = study.summary()
    scale = metric_scale(study.metric, float(summary["mean"].abs().max()))
    parameters = list(study.points[0].parameters)
    head, intervals = interval_cells(
        summary["mean"], (summary["low"], summary["high"]), summary["ci95"], scale.size
    )
    heads = [*parameters, "scheme", scale.label, head, "runs"]
    columns = [
        *(summary[name] for name in parameters),
        summary["scheme"],
        aligned(summary["mean"], summary["ci95"], scale.size),
        intervals,
        [f"{runs:,}" for runs in summary["runs"]],
    ]
    rows = [[str(cell) for cell in row] for row in zip(*columns, strict=True)]
    return table(caption, heads, rows, _state(study), words=len(parameters) + 1)


@text_of.register
def _race_text(race: Race) -> str:
    """Return the text that stands for a comparison: its size, and the best arm."""
    made = f"<Race of {len(race.arms)} arms with {race.baseline.label}"
    try:
        best = race.results().iloc[0]
    except RaceError as error:
        return f"{made}: {error}>"
    if race.quantile is not None:
        name = quantile_name(race.quantile)
        return f"{made}: {best['arm']} is best, {name} of {race.metric} {best['value']:,.4g}>"
    return f"{made}: {best['arm']} is best, {race.metric} {best['mean']:,.4g}>"


@html_of.register
def _race_html(race: Race) -> str:
    """Return a comparison as HTML: a row for each arm, the best first."""
    caption = f"<b>{escape(race.shown_title or 'A comparison')}</b>"
    try:
        rows = race.results()
    except RaceError as error:
        arms = f"{len(race.arms)} arms, to be compared with {race.baseline.label}"
        return table(caption, [], [], f"{arms}; {error}")
    foot = f"ratios to {race.baseline.label}, over the same fades"
    heads, columns = race_columns(race, rows)
    cells = [
        [row["arm"], *shown, f"{row['n']:,}", row["status"]]
        for row, *shown in zip(rows.to_dict("records"), *columns, strict=True)
    ]
    return table(caption, ["", *heads, "runs", ""], cells, foot)


def race_columns(race: Race, rows: pandas.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells of what arms are ranked by and of their ratios, with intervals."""
    by_mean = race.quantile is None
    names = ("mean", "ci_low", "ci_high") if by_mean else ("value", "value_low", "value_high")
    # Infinite values are unknown, or of runs without the metric, and shown as a dash.
    shown = rows[[*names, "ratio", "ratio_low", "ratio_high"]].replace([math.inf, -math.inf], math.nan)
    every = race.results()[names[0]].abs()
    scale = metric_scale(race.metric, float(every[every < math.inf].max()))
    halves = (shown[names[2]] - shown[names[1]]) / 2
    ratio_halves = (shown["ratio_high"] - shown["ratio_low"]) / 2
    # Arms that hardly vary would have digits that none of the others needs.
    half, ratio_half = ([float(column.median())] for column in (halves, ratio_halves))
    if by_mean:
        ends, ratio_ends = (shown[names[1]], shown[names[2]]), (shown["ratio_low"], shown["ratio_high"])
        head, intervals = interval_cells(shown["mean"], ends, half, scale.size)
        ratio_head, ratio_intervals = interval_cells(shown["ratio"], ratio_ends, ratio_half)
        means, ratios = aligned(shown["mean"], half, scale.size), aligned(shown["ratio"], ratio_half)
        return [scale.label, head, "ratio", ratio_head], [means, intervals, ratios, ratio_intervals]
    assert race.quantile is not None
    heads = [f"{quantile_name(race.quantile)} of {scale.label}", "from", "to", "ratio", "from", "to"]
    columns = [quantile_cells(shown[name], half, scale.size) for name in names]
    columns += [aligned(shown[name], ratio_half) for name in ("ratio", "ratio_low", "ratio_high")]
    return heads, columns


def _extent(study: Study) -> str:
    points, schemes = len(study.points), len(study.scenario.schemes)
    return (
        f"{points:,} point{'s' * (points != 1)} by {schemes} scheme{'s' * (schemes != 1)}, seed {study.seed}"
    )


def _state(study: Study) -> str:
    now = study.progress
    if not now.done:
        return "nothing has been run yet"
    return f"{now.done:,} runs, {'finished' if study.finished else f'of about {now.expected:,}'}"
