"""How results show themselves in notebooks and interactive sessions: text, HTML and progress bars.

The HTML has no scripts and no colours of its own for text, so that it suits light and dark notebooks.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from lasthop._lasthop import Link, Run, Scenario, Scheme
from lasthop.core.applications import Kind, kind_of

if TYPE_CHECKING:
    import pandas

    from lasthop.advice import Advice
    from lasthop.fitting import FittedLink
    from lasthop.papers.runner import Outcome
    from lasthop.race import Race
    from lasthop.study import Progress, Study

Report = TypeVar("Report", bound=Callable[..., object])

_CELL = "padding:0.15em 0.9em 0.15em 0;text-align:{align};font-weight:{weight};white-space:{wrap}"
_SECONDS_BETWEEN_UPDATES = 0.1

_METRICS = {
    "throughput_bps": "throughput",
    "goodput": "goodput",
    "retransmitted_bytes": "retransmitted",
    "timeouts": "timeouts",
    "completion_time_s": "completion",
}
"""The metrics that a run shows: the columns of `lasthop run`."""


class Runs(list[Run]):
    """Runs of one scenario: a list that a notebook shows as a table.

    Examples
    --------
    >>> import lasthop
    >>> lasthop.compare("ebsn-example", ["basic", "ebsn"])
    basic   3.11 kbps   goodput 73.4 %    38.9 KB retransmitted   23 timeouts   257.3 s
    ebsn    8.54 kbps   goodput 100.0 %   0 B retransmitted       0 timeouts    93.6 s
    """

    def __repr__(self) -> str:
        """Return a line for each run."""
        rows = [[run.label, *_facts(run)] for run in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines) or "no runs"

    def _repr_html_(self) -> str:
        caption = escape(self[0].title or "A run") if self else "No runs"
        heads = ["", *_METRICS.values()]
        rows = [[run.label, *(_shown(name, run.metrics.get(name)) for name in _METRICS)] for run in self]
        return _table(caption, heads, rows)


def run_text(run: Run) -> str:
    """Return the text that stands for a run: what was run, and its main results.

    Examples
    --------
    >>> import lasthop
    >>> str(lasthop.run("ebsn-example", "ebsn"))[61:]
    'with ebsn, seed 1, run 0: finished; 8.54 kbps, goodput 100.0 %, 0 B retransmitted, 0 timeouts, 93.6 s>'
    """
    facts = ", ".join(_facts(run)) if run.connections else "no connections"
    return f"<Run of {run.title!r} with {run.label}, seed {run.seed}, run {run.run}: {run.ended}; {facts}>"


def run_html(run: Run) -> str:
    """Return a run as HTML: its results, and what it recorded."""
    rows = [[label, _shown(name, run.metrics.get(name))] for name, label in _METRICS.items()]
    for name, metrics in run.traffic.items():
        rows.append([f"traffic {name}", _shown("throughput_bps", metrics["throughput_bps"])])
    for name, metrics in run.applications.items():
        rows.append([f"application {name}", _experience(metrics)])
    rows += [[name, f"{value:,}"] for name, value in run.metrics.items() if "." in name and value]
    caption = f"{escape(run.title or 'A run')} · <b>{escape(run.label)}</b>"
    foot = f"seed {run.seed}, run {run.run}: {run.ended}"
    if run.recorded_rows:
        foot += f"; {run.recorded_rows:,} rows recorded"
    return _table(caption, ["", ""], rows, foot)


def _experience(metrics: dict[str, Any]) -> str:
    """Return what the user of an application went through, in a few words."""
    kind = kind_of(metrics)
    if kind is Kind.PAGES:
        count, time = metrics["pages"], metrics["p50_page_time_s"]
        return f"{count:,} pages" + (f", median {time:.2f} s" if time is not None else "")
    if kind is Kind.VIDEO:
        return f"{metrics['played_s']:.0f} s played, {metrics['stalled_s']:.1f} s stalled"
    count, time = metrics["responses"], metrics["p50_response_time_s"]
    return f"{count:,} responses" + (f", median {time:.3f} s" if time is not None else "")


def scenario_html(scenario: Scenario) -> str:
    """Return a scenario as HTML: its schemes and sweep, and the canonical form to unfold."""
    rows = [["schemes", ", ".join(scenario.schemes)]]
    rows += [["sender", scenario.sender]] if scenario.sender else []
    rows += [[f"sweep of {name}", ", ".join(values)] for name, values in scenario.sweep.items()]
    rows.append(["from", scenario.file])
    title = f"<b>{escape(scenario.title or 'A scenario')}</b>"
    return _table(title, ["", ""], rows, align="left") + _unfold("every setting", scenario.to_toml())


def scheme_html(scheme: Scheme) -> str:
    """Return a scheme as HTML."""
    return (
        f"<div><b>{escape(scheme.name)}</b>: {escape(scheme.summary)}<br>"
        f"<small>{escape(scheme.source)}</small></div>"
    )


def link_html(link: Link) -> str:
    """Return a preset of links as HTML."""
    return (
        f"<div><b>{escape(link.name)}</b>: {escape(link.summary)}<br>"
        f"<small>Numbers: {escape(link.source)}. Our choice: {escape(link.choice)}.</small></div>"
        + _unfold("its settings", link.toml)
    )


def study_text(study: Study) -> str:
    """Return the text that stands for a study: its size, and how far it is."""
    return f"<Study of {study.scenario.title!r}: {_extent(study)}; {_state(study)}>"


def study_html(study: Study) -> str:
    """Return a study as HTML: its size, and the means of its metric as far as they are known."""
    from lasthop.core.units import aligned, metric_reading

    caption = f"<b>{escape(study.scenario.title or 'A study')}</b> · {escape(_extent(study))}"
    if not study.progress.done or study.shard is not None:
        return _table(caption, [], [], _state(study))
    summary = study.summary()
    reading = metric_reading(study.metric, float(summary["mean"].abs().max()))
    parameters = list(study.points[0].parameters)
    heads = [*parameters, "scheme", reading.label, "± 95 %", "runs"]
    columns = [
        *(summary[name] for name in parameters),
        summary["scheme"],
        *(aligned(summary[name], summary["ci95"], reading.size) for name in ("mean", "ci95")),
        [f"{runs:,}" for runs in summary["runs"]],
    ]
    rows = [[str(cell) for cell in row] for row in zip(*columns, strict=True)]
    return _table(caption, heads, rows, _state(study), words=len(parameters) + 1)


def comparison_text(comparison: Race) -> str:
    """Return the text that stands for a comparison: its size, and the best arm."""
    from lasthop.core.units import quantile_name
    from lasthop.race import RaceError

    made = f"<Race of {len(comparison.arms)} arms with {comparison.baseline.label}"
    try:
        best = comparison.results().iloc[0]
    except RaceError as error:
        return f"{made}: {error}>"
    if comparison.quantile is not None:
        name = quantile_name(comparison.quantile)
        return f"{made}: {best['arm']} is best, {name} of {comparison.metric} {best['value']:,.4g}>"
    return f"{made}: {best['arm']} is best, {comparison.metric} {best['mean']:,.4g}>"


def comparison_html(comparison: Race) -> str:
    """Return a comparison as HTML: a row for each arm, the best first."""
    from lasthop.race import RaceError

    caption = f"<b>{escape(comparison.scenario.title or 'A comparison')}</b>"
    try:
        rows = comparison.results()
    except RaceError as error:
        arms = f"{len(comparison.arms)} arms, to be compared with {comparison.baseline.label}"
        return _table(caption, [], [], f"{arms}; {error}")
    foot = f"ratios to {comparison.baseline.label}, over the same fades"
    heads, columns = comparison_columns(comparison, rows)
    cells = [
        [row["arm"], *shown, f"{row['n']:,}", row["status"]]
        for row, *shown in zip(rows.to_dict("records"), *columns, strict=True)
    ]
    return _table(caption, ["", *heads, "runs", ""], cells, foot)


def comparison_columns(comparison: Race, rows: pandas.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells of what arms are ranked by and of their ratios, with intervals."""
    from lasthop.core.units import aligned, metric_reading, quantile_cells, quantile_name

    by_mean = comparison.quantile is None
    names = ("mean", "ci_low", "ci_high") if by_mean else ("value", "value_low", "value_high")
    # Infinite values are unknown, or of runs without the metric, and shown as a dash.
    shown = rows[[*names, "ratio", "ratio_low", "ratio_high"]].replace([math.inf, -math.inf], math.nan)
    every = comparison.results()[names[0]].abs()
    reading = metric_reading(comparison.metric, float(every[every < math.inf].max()))
    halves = (shown[names[2]] - shown[names[1]]) / 2
    ratio_halves = (shown["ratio_high"] - shown["ratio_low"]) / 2
    # Arms that hardly vary would have digits that none of the others needs.
    half, ratio_half = ([float(column.median())] for column in (halves, ratio_halves))
    if by_mean:
        heads = [reading.label, "± 95 %", "ratio", "± 95 %"]
        columns = [aligned(each, half, reading.size) for each in (shown["mean"], halves)]
        columns += [aligned(each, ratio_half) for each in (shown["ratio"], ratio_halves)]
        return heads, columns
    assert comparison.quantile is not None
    heads = [f"{quantile_name(comparison.quantile)} of {reading.label}", "from", "to", "ratio", "from", "to"]
    columns = [quantile_cells(shown[name], half, reading.size) for name in names]
    columns += [aligned(shown[name], ratio_half) for name in ("ratio", "ratio_low", "ratio_high")]
    return heads, columns


def fitted_text(link: FittedLink) -> str:
    """Return the text that stands for a fitted link: its source, rate, round trip and losses."""
    losses = ", ".join(
        f"{each.lost:,} of {each.sent:,} packets lost {each.direction}"
        for each in (link.down, link.up)
        if each
    )
    known = [losses] if losses else [link.stated.words] if link.stated else []
    return f"<FittedLink{_files(link)}: {', '.join([_link(link), *known])}>"


def fitted_html(link: FittedLink) -> str:
    """Return a fitted link as HTML: its parameters with their intervals, and the scenario to unfold."""
    from lasthop.core import formats
    from lasthop.fitting.losses import NAMES

    rows = [["rate", "unknown" if link.rate_bps is None else formats.rate(link.rate_bps), ""]]
    if link.up_rate_bps not in (None, link.rate_bps):
        rows.append(["rate of the uplink", formats.rate(link.up_rate_bps), ""])
    rows.append(["round trip", formats.seconds(link.rtt_s), ""])
    if link.stated is not None:
        rows.append(["losses, as stated", link.stated.words, ""])
    for losses in (link.down, link.up):
        if losses is None:
            continue
        rows.append([f"model of losses, {losses.direction}", losses.best.family, ""])
        for each in losses.parameters:
            interval = formats.interval(each.low, each.high, each.write)
            rows.append([f"{NAMES[each.name]}, {losses.direction}", each.write(each.value), interval])
    heads = ["", "", "95 % interval"] if any(row[2] for row in rows) else []
    foot = f"undetermined: {'; '.join(link.cannot_tell)}" if link.cannot_tell else ""
    html = _table(f"<b>A link{escape(_files(link))}</b>", heads, rows, foot)
    if link.notes:
        html += _unfold("notes", "\n".join(link.notes))
    return html if link.rate_bps is None else html + _unfold("its scenario", link.toml())


def advice_text(advice: Advice) -> str:
    """Return the text that stands for advice: the link, and the verdict."""
    return f"<Advice for a link of {_link(advice.link)}: {advice.verdict()}>"


def advice_html(advice: Advice) -> str:
    """Return advice as HTML: the verdict, a row for each remedy, and what limits the link to unfold."""
    from lasthop.advice.wording import effects, further, other_uses

    parts = []
    for judgement in advice.judgements:
        measure = judgement.measure
        rows = [
            [
                f"{each.title}, advised" if each.arm in {one.arm for one in advice.advised} else each.title,
                ", ".join(each.deployment.places),
                measure.write(each.value),
                "now" if each is judgement.now else measure.gain(each.gain, each.gain_low, each.gain_high),
                *further(judgement, each),
            ]
            for each in judgement.remedies
        ]
        limits = [
            [each.name, measure.write(each.value), measure.gain(each.gain, each.low, each.high)]
            for each in judgement.limits
        ]
        gains = [measure.heading, "gain (95 %)"]
        heads = ["remedy", "where", *gains, *(each.heading for each in judgement.further)]
        foot = f"simulated: {judgement.use.simulated}"
        if judgement is advice.first:
            foot = f"{_link(advice.link)}; {foot}; {advice.runs:,} runs"
            if advice.link.cannot_tell:
                unknown = "; ".join(advice.link.cannot_tell)
                foot += f"; undetermined: {unknown}; measure this: {advice.measure.irtt}"
        caption = f"<b>{escape(advice.verdict())}</b>" if judgement is advice.first else ""
        parts.append(_table(caption, heads, rows, foot, words=2))
        without = _table("", ["without", *gains], limits)
        parts.append(f"<details><summary>what limits {judgement.use.title}</summary>{without}</details>")
    if advice.effects:
        rows = [[title, *(" ".join(cell).strip() for cell in cells)] for title, cells in effects(advice)]
        others = _table("", ["remedy", *other_uses(advice)], rows)
        parts.append(f"<details><summary>what remedies do to other uses</summary>{others}</details>")
    return "".join(parts)


def outcome_text(outcome: Outcome) -> str:
    """Return the text that stands for a reproduced paper: its verdicts."""
    return f"<Outcome of {outcome.plan.paper.title!r}: {_verdicts(outcome)}>"


def outcome_html(outcome: Outcome) -> str:
    """Return a reproduced paper as HTML: its claims with their verdicts, and its figures to unfold."""
    paper = outcome.plan.paper
    caption = f"<b>{escape(paper.title)}</b> · {escape(paper.source)}"
    heads = ["section", "claim", "paper", "found", "verdict"]
    rows = [
        [claim.section, claim.statement, claim.printed, judgement.found, judgement.verdict]
        for claim, judgement in outcome.judgements
    ]
    html = _table(caption, heads if rows else [], rows, _verdicts(outcome), align="left")
    for plot, figure in outcome.figures:
        html += f"<details><summary>Figure {escape(plot.id)}: {escape(plot.title)}</summary>"
        html += f"{figure._repr_html_()}</details>"
    return html


@contextmanager
def activity_bar(title: str) -> Iterator[Callable[[str, Progress | None], None] | None]:
    """Show what goes on while the block runs, if this is a notebook.

    Parameters
    ----------
    title : str
        What is running.

    Yields
    ------
    callable or None
        Takes the name of a part, and its progress or None if its length is unknown. None outside notebooks.
    """
    show = _display()
    if show is None:
        yield None
        return
    shown = -math.inf

    def update(part: str, now: Progress | None) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _SECONDS_BETWEEN_UPDATES:
            shown = time.monotonic()
            show(progress_html(f"{title}, {part}" if part else title, now))

    try:
        yield update
    finally:
        show(None)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of a study while the block runs, if this is a notebook.

    Parameters
    ----------
    title : str
        What is running.

    Yields
    ------
    callable or None
        Takes the progress. None outside notebooks.
    """
    with activity_bar(title) as update:
        yield None if update is None else partial(update, "")


def chosen(
    progress: Report | bool | None, bar: AbstractContextManager[Report | None]
) -> AbstractContextManager[Report | None]:
    """Return what progress is reported to: what the caller gave, else the bar of a notebook, unless False."""
    if progress is None or progress is True:
        return bar
    return nullcontext(progress or None)


def progress_html(title: str, now: Progress | None) -> str:
    """Return the progress of a study as HTML; None is an activity of unknown length."""
    if now is None:
        return f"<div><progress></progress> {escape(title)}</div>"
    left = "" if now.seconds_left is None else f", about {now.seconds_left:,.0f} s left"
    text = f"{escape(title)}: {now.done:,} of about {now.expected:,} runs{left}"
    bar = f'<progress max="{now.expected}" value="{now.done}" aria-label="{escape(title)}"></progress>'
    return f"<div>{bar} {text}</div>"


def _display() -> Callable[[str | None], None] | None:
    """Return what shows HTML in place of the HTML before; None outside notebooks."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():

        def replace_output(html: str | None) -> None:
            if html is None:
                marimo.output.clear()
            else:
                marimo.output.replace(marimo.Html(html))

        return replace_output
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # A terminal has no place for HTML.
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle = ipython.display.display(ipython.display.HTML(""), display_id=True)
    return lambda html: handle.update(ipython.display.HTML(html or ""))


def _facts(run: Run) -> list[str]:
    """Return the main results of a run in words."""
    throughput, goodput, resent, timeouts, completion = (
        _shown(name, run.metrics.get(name)) for name in _METRICS
    )
    plural = "" if timeouts == "1" else "s"
    finished = "not finished" if completion == "-" else completion
    return [
        throughput,
        f"goodput {goodput}",
        f"{resent} retransmitted",
        f"{timeouts} timeout{plural}",
        finished,
    ]


def _shown(metric: str, value: float | None) -> str:
    """Return a metric with a unit that suits its size."""
    from lasthop.core.units import metric_reading

    if value is None:
        return "-"
    if metric == "timeouts":
        return f"{value:,}"
    reading = metric_reading(metric, abs(value))
    number = value / reading.size
    digits = 1 if metric in ("goodput", "completion_time_s") or number >= 10 else 2
    text = f"{number:,.0f}" if reading.unit == "B" else f"{number:,.{digits}f}"
    return f"{text} {reading.unit}"


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


def _files(link: FittedLink) -> str:
    return f" fitted to {', '.join(link.files)}" if link.files else ""


def _link(link: FittedLink) -> str:
    """Return the rate and the round trip of a link."""
    from lasthop.core import formats

    rate = "unknown rate" if link.rate_bps is None else formats.rate(link.rate_bps)
    return f"{rate}, round trip {formats.seconds(link.rtt_s)}"


def _verdicts(outcome: Outcome) -> str:
    found = ", ".join(f"{count} {verdict}" for verdict, count in outcome.counts().items())
    judged = found if outcome.judgements else "no claims judged"
    return f"{judged}; {len(outcome.figures)} figures from {outcome.runs:,} runs"


def _table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    foot: str = "",
    *,
    align: str = "right",
    words: int = 1,
) -> str:
    """Return a table; `caption` is HTML, all else is text. The first `words` columns are aligned left."""

    def cell(kind: str, column: int, text: str) -> str:
        side = "left" if column < words else align
        weight = "600" if kind == "th" else "400"
        # Numbers stay in one line; the table scrolls if it is too wide.
        style = _CELL.format(align=side, weight=weight, wrap="nowrap" if side == "right" else "normal")
        scope = ' scope="col"' if kind == "th" else ""
        return f'<{kind}{scope} style="{style}">{escape(str(text))}</{kind}>'

    def line(kind: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(kind, column, text) for column, text in enumerate(cells))}</tr>"

    head = f"<thead>{line('th', heads)}</thead>" if any(heads) else ""
    body = "".join(line("td", row) for row in rows)
    note = f"<div><small>{escape(foot)}</small></div>" if foot else ""
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    table = f'<table style="{style}">{head}<tbody>{body}</tbody></table>' if body else ""
    return f'<div style="overflow-x:auto"><div>{caption}</div>{table}{note}</div>'


def _unfold(summary: str, text: Any) -> str:
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"
