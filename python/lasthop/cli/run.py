"""`lasthop run`: runs each scheme over the same channel and compares them."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

from lasthop import Run, Scenario, ScenarioError
from lasthop.cli.channels import conversions
from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.output import FIGURES, Output, run_stem
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe, load, load_each_sender, unused_by_schemes
from lasthop.cli.streams import detail, emit, emit_document
from lasthop.core.applications import Kind, kind_of
from lasthop.core.metrics import find_metric
from lasthop.core.names import unknown

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
    # Of several senders, what they share is the scenario as it stands, unless only they use what is set.
    several = len(scenarios) > 1
    scenario = scenarios[0]
    if several:
        with suppress(ScenarioError):
            scenario = load(request.path, request.overrides, request.schemes)
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
        from lasthop.cli.run_tables import print_tables

        print_tables(scenario, runs, metrics)
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


def _warn_of_unfinished(scenario: Scenario, runs: list[Run]) -> None:
    """Warn of transfers and applications that did not finish, with how far they got."""
    from lasthop.core.quantity import number

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
            what = "pages" if kind_of(metrics) is Kind.PAGES else "responses"
            if run.ended != "finished" and requests is not None and metrics[what] < requests:
                arrived = f"{metrics[what]} of {requests} {what} {counted}"
                warn(f"{run.label} {ended} before application {name} finished: {arrived}")
            length = said["application"][name].get("video", {}).get("length")
            left = length and number(length) - number(said["warmup"]) > metrics["played_s"]
            if run.ended != "finished" and left:
                played = f"{metrics['played_s']:.1f} s of {length} were played"
                warn(f"{run.label} {ended} before application {name} finished: {played}")
