"""The tables of `lasthop run`."""

from __future__ import annotations

from functools import partial
from typing import Any

from lasthop import Run, Scenario
from lasthop.cli.application_table import print_applications
from lasthop.cli.streams import emit
from lasthop.cli.table import Table, fixed, in_common, printable, run_headers, run_labels
from lasthop.core.units import RATES, SIZES, decimals, metric_scale

_OF_RELAYS = {"relays retransmitted": "relay_retransmitted_segments", "relay timeouts": "relay_timeouts"}
"""Columns about the base stations of split connections, with their metrics."""


def print_tables(scenario: Scenario, runs: list[Run], further: list[str]) -> None:
    """Print the title, and the tables of connections, other traffic and applications that exist."""
    if scenario.title:
        emit(printable(scenario.title))
    blank = bool(scenario.title)
    for metrics, print_table in (
        (runs[0].connections, partial(_print_connections, further=further)),
        (runs[0].traffic, _print_traffic),
        (runs[0].applications, print_applications),
    ):
        if metrics:
            if blank:
                emit()
            print_table(runs)
            blank = True
    if further and not runs[0].connections:
        emit()
        _print_metrics(runs, further)


def _print_connections(runs: list[Run], further: list[str]) -> None:
    """Print a row for each run; of several connections, a row for each and one for all of them.

    `further` metrics have a column each.
    """
    several = len(runs[0].connections) > 1
    rows = [row for run in runs for row in (_parts(run) if several else [(run_labels(run), run.metrics)])]
    # The last row of a run is that of all its connections.
    last = len(runs[0].connections) if several else 0
    owners = [run if row == last else None for run in runs for row in range(last + 1)]
    each = [metrics for _, metrics in rows]
    rate, throughput = in_common([metrics["throughput_bps"] for metrics in each], RATES)
    size, resent = in_common([metrics["retransmitted_bytes"] for metrics in each], SIZES)
    columns = {
        f"throughput ({rate})": throughput,
        "goodput (%)": [fixed(metrics["goodput"] and 100 * metrics["goodput"]) for metrics in each],
        f"retransmitted ({size})": resent,
        "timeouts": [_count(metrics["timeouts"]) for metrics in each],
    }
    if any(metrics["declared_lost"] is not None for metrics in each):
        columns["declared lost"] = [_count(metrics["declared_lost"]) for metrics in each]
    # The source of a split connection does not see the last hop.
    if any(len(run.parts(name)) > 1 for run in runs for name in run.connections):
        for header, name in _OF_RELAYS.items():
            columns[header] = [
                f"{metrics[name]:,}" if metrics["relay_segments_sent"] else "-" for metrics in each
            ]
    if any(metrics["acknowledged_undelivered_bytes"] for metrics in each):
        held, undelivered = in_common([metrics["acknowledged_undelivered_bytes"] for metrics in each], SIZES)
        columns[f"acknowledged, undelivered ({held})"] = undelivered
    columns["completion (s)"] = [fixed(metrics["completion_time_s"]) for metrics in each]
    if several:
        # Fairness needs more than one connection.
        columns["fairness"] = [fixed(m["fairness"], 3) if "fairness" in m else "" for m in each]
    for name in further:
        # Counters, and the metrics of other parts, stand in the row of all connections.
        values = [
            metrics.get(name) if run is None else _value(run, name)
            for metrics, run in zip(each, owners, strict=True)
        ]
        header, cells = _column(name, values)
        columns[header] = cells
    table = Table(
        *run_headers(runs), *(["connection"] if several else []), *(f">{header}" for header in columns)
    )
    for (labels, _), *cells in zip(rows, *columns.values(), strict=True):
        table.row(*labels, *cells)
    table.print()


def _print_metrics(runs: list[Run], names: list[str]) -> None:
    """Print a column for each of some metrics, and a row for each run."""
    columns = dict(_column(name, [_value(run, name) for run in runs]) for name in names)
    table = Table(*run_headers(runs), *(f">{header}" for header in columns))
    for run, *cells in zip(runs, *columns.values(), strict=True):
        table.row(*run_labels(run), *cells)
    table.print()


def _count(count: int | None) -> str:
    """Format a count that the stack of a source may not keep."""
    return "-" if count is None else f"{count:,}"


def _value(run: Run, name: str) -> float | int | bool | None:
    """Return a metric of a run, None if it has none of that name, such as a counter of another scheme."""
    try:
        return run.value(name)
    except KeyError:
        return None


def _column(metric: str, values: list[Any]) -> tuple[str, list[str]]:
    """Return the header of a metric's column, and its cells."""
    if any(isinstance(value, bool) for value in values):
        return metric, ["yes" if value else "no" for value in values]
    scale = metric_scale(metric, max((value for value in values if value is not None), default=0))
    if any(isinstance(value, float) for value in values) or scale.size != 1:
        shown = [None if value is None else value / scale.size for value in values]
        places = decimals((value for value in shown if value is not None), 3)
        return scale.label, [fixed(value, places) for value in shown]
    return scale.label, [_count(value) for value in values]


def _print_traffic(runs: list[Run]) -> None:
    """Print a row for each source of other traffic of each run, with the scores of calls."""
    each = [metrics for run in runs for metrics in run.traffic.values()]
    rate, throughput = in_common([metrics["throughput_bps"] for metrics in each], RATES)
    headers = ["sent", "delivered", "lost", f"throughput ({rate})", "mean delay (ms)", "p95 delay (ms)"]
    has_calls = any(metrics["mos"] is not None for metrics in each)
    if has_calls:
        headers += ["late", "MOS"]
    table = Table(*run_headers(runs), "traffic", *(f">{header}" for header in headers))
    rates = iter(throughput)
    for run in runs:
        for index, (name, metrics) in enumerate(run.traffic.items()):
            counts = [f"{metrics[f'{what}_packets']:,}" for what in ("sent", "delivered", "lost")]
            delays = [metrics[f"{which}_delay_s"] for which in ("mean", "p95")]
            cells = [*counts, next(rates), *(fixed(delay and 1e3 * delay) for delay in delays)]
            if has_calls:
                late = "-" if metrics["mos"] is None else f"{metrics['late_packets']:,}"
                cells += [late, fixed(metrics["mos"], 2)]
            table.row(*run_labels(run, shown=index == 0), name, *cells)
    table.print()


def _parts(run: Run) -> list[tuple[list[str], dict[str, Any]]]:
    """Return the metrics of each connection of a run and of all together, with their row labels."""
    parts = [*run.connections.items(), ("all", run.metrics)]
    return [([*run_labels(run, shown=i == 0), name], metrics) for i, (name, metrics) in enumerate(parts)]
