"""Runs, scenarios, schemes and links as text and HTML."""

from __future__ import annotations

from html import escape
from typing import Any

from lasthop._lasthop import Link, Run, Scenario, Scheme
from lasthop.core.applications import Kind, kind_of
from lasthop.core.units import decimals, metric_scale
from lasthop.results.runs import Runs
from lasthop.show.html import table, unfold
from lasthop.show.notebook import html_of, text_of

_METRICS = {
    "throughput_bps": "throughput",
    "goodput": "goodput",
    "retransmitted_bytes": "retransmitted",
    "timeouts": "timeouts",
    "completion_time_s": "completion",
}
"""The metrics that a run shows: the columns of `lasthop run`."""


@text_of.register
def _runs_text(runs: Runs) -> str:
    rows = [[run.label, *_facts(run)] for run in runs]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines) or "no runs"


@html_of.register
def _runs_html(runs: Runs) -> str:
    caption = escape(runs[0].title or "A run") if runs else "No runs"
    heads = ["", *_METRICS.values()]
    rows = [[run.label, *(_shown(name, run.metrics.get(name)) for name in _METRICS)] for run in runs]
    return table(caption, heads, rows)


@text_of.register
def _run_text(run: Run) -> str:
    """Return the text that stands for a run: what was run, and its main results.

    Examples
    --------
    >>> import lasthop
    >>> str(lasthop.run("ebsn-example", "ebsn"))[61:]
    'with ebsn, seed 1, run 0: finished; 8.54 kbps, goodput 100.0 %, 0 B retransmitted, 0 timeouts, 93.6 s>'
    """
    facts = ", ".join(_facts(run)) if run.connections else "no connections"
    return f"<Run of {run.title!r} with {run.label}, seed {run.seed}, run {run.run}: {run.ended}; {facts}>"


@html_of.register
def _run_html(run: Run) -> str:
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
    return table(caption, ["", ""], rows, foot)


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


@html_of.register
def _scenario_html(scenario: Scenario) -> str:
    """Return a scenario as HTML: its schemes and sweep, and the canonical form to unfold."""
    rows = [["schemes", ", ".join(scenario.schemes)]]
    rows += [["sender", scenario.sender]] if scenario.sender else []
    rows += [[f"sweep of {name}", ", ".join(values)] for name, values in scenario.sweep.items()]
    rows.append(["from", scenario.file])
    title = f"<b>{escape(scenario.title or 'A scenario')}</b>"
    return table(title, ["", ""], rows, align="left") + unfold("every setting", scenario.to_toml())


@html_of.register
def _scheme_html(scheme: Scheme) -> str:
    """Return a scheme as HTML."""
    return (
        f"<div><b>{escape(scheme.name)}</b>: {escape(scheme.summary)}<br>"
        f"<small>{escape(scheme.source)}</small></div>"
    )


@html_of.register
def _link_html(link: Link) -> str:
    """Return a preset of links as HTML."""
    return (
        f"<div><b>{escape(link.name)}</b>: {escape(link.summary)}<br>"
        f"<small>Numbers: {escape(link.source)}. Our choice: {escape(link.choice)}.</small></div>"
        + unfold("its settings", link.toml)
    )


def _facts(run: Run) -> list[str]:
    """Return the main results of a run in words."""
    throughput, goodput, resent, timeouts, completion = (
        _shown(name, run.metrics.get(name)) for name in _METRICS
    )
    plural = "" if timeouts == "1" else "s"
    known = {
        f"goodput {goodput}": goodput,
        f"{resent} retransmitted": resent,
        f"{timeouts} timeout{plural}": timeouts,
    }
    finished = "not finished" if completion == "-" else completion
    return [throughput, *(fact for fact, shown in known.items() if shown != "-"), finished]


def _shown(metric: str, value: float | None) -> str:
    """Return a metric with a unit that suits its size."""
    if value is None:
        return "-"
    if metric == "timeouts":
        return f"{value:,}"
    scale = metric_scale(metric, abs(value))
    number = value / scale.size
    digits = 1 if metric in ("goodput", "completion_time_s") or number >= 10 else 2
    if 0 < abs(number) < 0.01:
        digits = decimals([number], digits)
    text = f"{number:,.0f}" if scale.unit == "B" else f"{number:,.{digits}f}"
    return f"{text} {scale.unit}"
