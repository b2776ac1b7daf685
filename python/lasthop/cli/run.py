"""`lasthop run`: runs each scheme over the same channel and compares them."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from lasthop import Run, Scenario
from lasthop.cli.channels import conversions
from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.output import FIGURES, Output, run_stem
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe, load, load_each_sender, unused_by_schemes
from lasthop.cli.streams import detail, emit, emit_document
from lasthop.metric import find_metric
from lasthop.suggest import unknown

_OF_RELAYS = {"relays retransmitted": "relay_retransmitted_segments", "relay timeouts": "relay_timeouts"}
"""Columns about the base stations of split connections, with their metrics."""

_MAX_ROWS = 4_000_000
"""Limit of rows in the traces and series of all runs together, which are all in memory to be drawn."""


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    path: Path
    schemes: list[str]
    senders: list[str]
    seed: int
    run: int
    overrides: list[str]
    metrics: list[str]
    as_json: bool
    out: Path | None
    trace: bool
    pcap: bool
    figures: list[str]


def execute(request: Request) -> None:
    """Run the scenario with each scheme, and print and write the results."""
    if (request.trace or request.pcap or request.figures) and request.out is None:
        raise RefusedError("--trace, --figure and --pcap write files and need --out DIR")
    for name in request.figures:
        if name not in FIGURES:
            raise RefusedError(f"--figure: {unknown('figure', name, FIGURES)}")
    scenarios = load_each_sender(request.path, request.overrides, request.schemes, request.senders)
    try:
        metrics = [find_metric(name, scenarios) for name in request.metrics]
    except ValueError as error:
        raise RefusedError(f"--metric: {error}") from None
    # Of several senders, what they share is the scenario as it stands.
    several = len(scenarios) > 1
    scenario = load(request.path, request.overrides, request.schemes) if several else scenarios[0]
    describe(request.path, scenario)
    output = None if request.out is None else Output(request.out)
    with output or nullcontext(), Activity() as activity:
        runs = []
        pairs = [(each, scheme) for each in scenarios for scheme in each.schemes]
        for number, (each, scheme) in enumerate(pairs, 1):
            activity.doing(f"running {_name(each.sender, scheme)} ({number} of {len(pairs)})")
            limit = tomllib.loads(each.to_toml())["limit"]
            progress = partial(activity.simulated, limit=limit)
            began = time.monotonic()
            runs.append(_run(each, scheme, request, output, progress))
            detail(f"ran {runs[-1].label} in {time.monotonic() - began:.3f} s: {runs[-1].ended}")
            _check_rows(runs, len(pairs))
        report = scenario.report(runs)
        if output is not None:
            output.text("scenario.toml", scenario.to_toml())
            output.text("results.json", report + "\n")
            if request.trace:
                activity.doing("writing traces and drawing figures")
                output.traces(scenario, runs)
            for name in dict.fromkeys(request.figures):
                activity.doing(f"drawing {name}")
                output.figures(scenario, runs, name)
    if request.as_json:
        emit_document(report)
    else:
        _print_tables(scenario, runs, metrics)
        _print_notes(scenario)
        if output is not None:
            emit(f"\nwritten to {output.summary()}")
    _warn_of_unfinished(scenario, runs)


def _run(
    scenario: Scenario,
    scheme: str,
    request: Request,
    output: Output | None,
    progress: Callable[[float], object],
) -> Run:
    stem = run_stem(_name(scenario.sender, scheme))
    pcap = output.path(f"{stem}.pcapng", "pcapng") if output is not None and request.pcap else None
    seed, run, delays = request.seed, request.run, "delays" in request.figures
    record = request.trace or bool({*request.figures} - {"delays"})
    return scenario.run(
        scheme,
        seed=seed,
        run=run,
        trace=record,
        series=record,
        delays=delays,
        pcap=pcap,
        progress=progress,
    )


def _check_rows(runs: list[Run], ordered: int) -> None:
    """Refuse to go on if the runs so far have recorded more than the command may hold."""
    rows = sum(run.recorded_rows for run in runs)
    if rows > _MAX_ROWS:
        raise RefusedError(
            f"after {len(runs)} of {ordered} runs their traces and series have {rows:,} rows, more than "
            f"{_MAX_ROWS:,}; run fewer schemes at once, lower the limit or the size of transfers, or run "
            "without --trace"
        )


def _name(sender: str | None, scheme: str) -> str:
    """Return what a run is called before it is one."""
    return scheme if sender is None else f"{sender} {scheme}"


def _print_tables(scenario: Scenario, runs: list[Run], further: list[str]) -> None:
    """Print the title, and the tables of connections, other traffic and applications that exist."""
    from lasthop.cli.table import printable

    if scenario.title:
        emit(printable(scenario.title))
    blank = bool(scenario.title)
    for metrics, print_table in (
        (runs[0].connections, partial(_print_connections, further=further)),
        (runs[0].traffic, _print_traffic),
        (runs[0].applications, _print_applications),
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
    from lasthop.cli.table import Table, in_common
    from lasthop.study.units import RATES, SIZES

    several = len(runs[0].connections) > 1
    rows = [row for run in runs for row in (_parts(run) if several else [(_labels(run), run.metrics)])]
    # The last row of a run is that of all its connections.
    last = len(runs[0].connections) if several else 0
    owners = [run if row == last else None for run in runs for row in range(last + 1)]
    each = [metrics for _, metrics in rows]
    rate, throughput = in_common([metrics["throughput_bps"] for metrics in each], RATES)
    size, resent = in_common([metrics["retransmitted_bytes"] for metrics in each], SIZES)
    columns = {
        f"throughput ({rate})": throughput,
        "goodput (%)": [_number(metrics["goodput"] and 100 * metrics["goodput"]) for metrics in each],
        f"retransmitted ({size})": resent,
        "timeouts": [f"{metrics['timeouts']:,}" for metrics in each],
    }
    # The source of a split connection does not see the last hop.
    if any(len(run.parts(name)) > 1 for run in runs for name in run.connections):
        for header, name in _OF_RELAYS.items():
            columns[header] = [
                f"{metrics[name]:,}" if metrics["relay_segments_sent"] else "-" for metrics in each
            ]
    if any(metrics["acknowledged_undelivered_bytes"] for metrics in each):
        held, undelivered = in_common([metrics["acknowledged_undelivered_bytes"] for metrics in each], SIZES)
        columns[f"acknowledged, undelivered ({held})"] = undelivered
    columns["completion (s)"] = [_number(metrics["completion_time_s"]) for metrics in each]
    if several:
        # Fairness needs more than one connection.
        columns["fairness"] = [_number(m["fairness"], 3) if "fairness" in m else "" for m in each]
    for name in further:
        # Counters, and the metrics of other parts, stand in the row of all connections.
        values = [
            metrics.get(name) if run is None else _value(run, name)
            for metrics, run in zip(each, owners, strict=True)
        ]
        header, cells = _column(name, values)
        columns[header] = cells
    table = Table(
        *_headers(runs), *(["connection"] if several else []), *(f">{header}" for header in columns)
    )
    for (labels, _), *cells in zip(rows, *columns.values(), strict=True):
        table.row(*labels, *cells)
    table.print()


def _print_metrics(runs: list[Run], names: list[str]) -> None:
    """Print a column for each of some metrics, and a row for each run."""
    from lasthop.cli.table import Table

    columns = dict(_column(name, [_value(run, name) for run in runs]) for name in names)
    table = Table(*_headers(runs), *(f">{header}" for header in columns))
    for run, *cells in zip(runs, *columns.values(), strict=True):
        table.row(*_labels(run), *cells)
    table.print()


def _value(run: Run, name: str) -> float | int | bool | None:
    """Return a metric of a run, None if it has none of that name, such as a counter of another scheme."""
    try:
        return run.value(name)
    except KeyError:
        return None


def _column(metric: str, values: list[Any]) -> tuple[str, list[str]]:
    """Return the header of a metric's column, and its cells."""
    from lasthop.study.units import metric_reading

    if any(isinstance(value, bool) for value in values):
        return metric, ["yes" if value else "no" for value in values]
    reading = metric_reading(metric, max((value for value in values if value is not None), default=0))
    if any(isinstance(value, float) for value in values) or reading.size != 1:
        return reading.label, [
            _number(None if value is None else value / reading.size, 3) for value in values
        ]
    return reading.label, ["-" if value is None else f"{value:,}" for value in values]


def _print_notes(scenario: Scenario) -> None:
    """Print its channels in other forms, and which parts of the scenario the runs did not use."""
    said = conversions(scenario) + unused_by_schemes([scenario])
    if scenario.sweep:
        points = prod(map(len, scenario.sweep.values()))
        said.append(
            f"without the sweep of {', '.join(scenario.sweep)}: each scheme ran once, with the values "
            f"outside [sweep]; `lasthop study` runs all {points:,} points"
        )
    if said:
        emit()
    for line in said:
        emit(line)


def _print_traffic(runs: list[Run]) -> None:
    """Print a row for each source of other traffic of each run, with the scores of calls."""
    from lasthop.cli.table import Table, in_common
    from lasthop.study.units import RATES

    each = [metrics for run in runs for metrics in run.traffic.values()]
    rate, throughput = in_common([metrics["throughput_bps"] for metrics in each], RATES)
    headers = ["sent", "delivered", "lost", f"throughput ({rate})", "mean delay (ms)", "p95 delay (ms)"]
    has_calls = any(metrics["mos"] is not None for metrics in each)
    if has_calls:
        headers += ["late", "MOS"]
    table = Table(*_headers(runs), "traffic", *(f">{header}" for header in headers))
    rates = iter(throughput)
    for run in runs:
        for index, (name, metrics) in enumerate(run.traffic.items()):
            counts = [f"{metrics[f'{what}_packets']:,}" for what in ("sent", "delivered", "lost")]
            delays = [metrics[f"{which}_delay_s"] for which in ("mean", "p95")]
            cells = [*counts, next(rates), *(_number(delay and 1e3 * delay) for delay in delays)]
            if has_calls:
                late = "-" if metrics["mos"] is None else f"{metrics['late_packets']:,}"
                cells += [late, _number(metrics["mos"], 2)]
            table.row(*_labels(run, shown=index == 0), name, *cells)
    table.print()


def _print_applications(runs: list[Run]) -> None:
    """Print a row for each application of each run, in a table for each kind of activity."""
    from lasthop.cli.table import Table

    first = True
    for is_of, cells_of in _ACTIVITIES:
        if not any(is_of(metrics) for metrics in runs[0].applications.values()):
            continue
        if not first:
            emit()
        first = False
        table: Table | None = None
        for run in runs:
            chosen = ((name, metrics) for name, metrics in run.applications.items() if is_of(metrics))
            for index, (name, metrics) in enumerate(chosen):
                cells = cells_of(metrics)
                cells |= {key.replace("_", " "): f"{metrics[key]:,}" for key in ("timeouts", "lost_packets")}
                table = table or Table(*_headers(runs), "application", *(f">{header}" for header in cells))
                table.row(*_labels(run, shown=index == 0), name, *cells.values())
        if table is not None:
            table.print()


def _message_cells(metrics: dict[str, Any]) -> dict[str, str]:
    return {
        "requests": f"{metrics['requests']:,}",
        "responses": f"{metrics['responses']:,}",
        "mean response (s)": _number(metrics["mean_response_time_s"], 3),
        "median (s)": _number(metrics["p50_response_time_s"], 3),
        "95 % (s)": _number(metrics["p95_response_time_s"], 3),
        "longest (s)": _number(metrics["greatest_response_time_s"], 3),
    }


def _page_cells(metrics: dict[str, Any]) -> dict[str, str]:
    return {
        "pages": f"{metrics['pages']:,}",
        "mean page time (s)": _number(metrics["mean_page_time_s"], 2),
        "median (s)": _number(metrics["p50_page_time_s"], 2),
        "95 % (s)": _number(metrics["p95_page_time_s"], 2),
        "longest (s)": _number(metrics["greatest_page_time_s"], 2),
    }


def _video_cells(metrics: dict[str, Any]) -> dict[str, str]:
    bitrate = metrics["mean_bitrate_bps"]
    return {
        "played (s)": _number(metrics["played_s"]),
        "startup (s)": _number(metrics["startup_delay_s"], 2),
        "stalls": f"{metrics['stalls']:,}",
        "stalled (s)": _number(metrics["stalled_s"]),
        "mean bitrate (kbps)": _number(bitrate and bitrate / 1e3, 0),
        "switches": f"{metrics['bitrate_switches']:,}",
    }


_ACTIVITIES: list[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], dict[str, str]]]] = [
    (lambda metrics: "pages" in metrics, _page_cells),
    (lambda metrics: "played_s" in metrics, _video_cells),
    (lambda metrics: not {"pages", "played_s"} & metrics.keys(), _message_cells),
]
"""For each kind of activity how its metrics are recognised, and its columns."""


def _headers(runs: list[Run]) -> list[str]:
    """Return the headers of what a run is called."""
    return ["scheme"] if runs[0].sender is None else ["sender", "scheme"]


def _labels(run: Run, *, shown: bool = True) -> list[str]:
    """Return what a run is called, a cell for each header; empty ones where it was said before."""
    labels = [run.scheme] if run.sender is None else [run.sender, run.scheme]
    return labels if shown else [""] * len(labels)


def _parts(run: Run) -> list[tuple[list[str], dict[str, Any]]]:
    """Return the metrics of each connection of a run and of all together, with their row labels."""
    parts = [*run.connections.items(), ("all", run.metrics)]
    return [([*_labels(run, shown=i == 0), name], metrics) for i, (name, metrics) in enumerate(parts)]


def _number(value: float | None, decimals: int = 1) -> str:
    return "-" if value is None else f"{value:,.{decimals}f}"


def _warn_of_unfinished(scenario: Scenario, runs: list[Run]) -> None:
    """Warn of transfers and applications that did not finish, with how far they got."""
    from lasthop.study.quantity import number

    said = tomllib.loads(scenario.to_toml())
    counted = "arrived" if said["warmup"] == "0 s" else f"arrived after the warm-up of {said['warmup']}"
    for run in runs:
        limited = run.ended == "time-limit"
        ended = f"reached the limit of {said['limit']}" if limited else "had nothing left to do"
        for name, metrics in run.connections.items():
            own = said.get("connection", {}).get(name, {})
            size = own.get("size", said["transfer"]["size"])
            # An unlimited transfer never finishes.
            if not metrics["finished"] and size != "unlimited":
                which = "it" if len(run.connections) == 1 else f"connection {name}"
                arrived = f"{metrics['delivered_bytes']} B of {size} {counted}"
                why = "gave up" if metrics["aborted"] else ended
                warn(f"{run.label} {why} before {which} finished: {arrived}")
        for name, metrics in run.applications.items():
            requests = said["application"][name].get("requests")
            what = "pages" if "pages" in metrics else "responses"
            if run.ended != "finished" and requests is not None and metrics[what] < requests:
                arrived = f"{metrics[what]} of {requests} {what} {counted}"
                warn(f"{run.label} {ended} before application {name} finished: {arrived}")
            length = said["application"][name].get("video", {}).get("length")
            left = length and number(length) - number(said["warmup"]) > metrics["played_s"]
            if run.ended != "finished" and left:
                played = f"{metrics['played_s']:.1f} s of {length} were played"
                warn(f"{run.label} {ended} before application {name} finished: {played}")
