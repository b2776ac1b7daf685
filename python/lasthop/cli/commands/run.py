"""`lasthop run`: runs each scheme over the same channel and compares them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from math import prod
from pathlib import Path
from typing import Annotated

import typer

from lasthop import Run, Scenario, ScenarioError
from lasthop.cli import complete
from lasthop.cli.channels import conversions
from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.options import (
    AsJson,
    Overrides,
    Pcap,
    RunNumber,
    ScenarioFile,
    Schemes,
    Seed,
    Senders,
    Verbose,
    directory,
)
from lasthop.cli.output import FIGURES, Output, run_stem
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe, load, load_each_sender, unused_by_schemes
from lasthop.cli.streams import detail, emit, emit_document
from lasthop.core.applications import Kind, kind_of
from lasthop.core.metrics import find_metric
from lasthop.core.names import unknown, without_effect

_MAX_ROWS = 4_000_000
"""Limit of rows in the traces and series of all runs together, which are all in memory to be drawn."""


def run(
    path: ScenarioFile,
    scheme: Schemes = None,
    sender: Senders = None,
    seed: Seed = 1,
    run: RunNumber = 0,
    overrides: Overrides = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.metric,
            help="Add a column, such as notices or ebsn.notices_sent; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, directory("Directory of the results and recordings.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Record each packet: CSV, figures, qlog of QUIC. Needs --out.")
    ] = False,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.run_figure,
            help="Also draw time-sequence, cwnd or delays of each run; may be repeated. Needs --out.",
        ),
    ] = None,
    pcap: Pcap = False,
    verbose: Verbose = False,
) -> None:
    """Run a scenario with each of its schemes, and compare them."""
    figures = list(dict.fromkeys(figure or []))
    if (trace or pcap or figures) and out is None:
        raise RefusedError("--trace, --figure and --pcap write files and need --out DIR")
    for name in figures:
        if name not in FIGURES:
            raise RefusedError(unknown("figure", name, FIGURES), option="--figure")
    scenarios = load_each_sender(path, overrides or [], scheme or [], sender or [])
    try:
        metrics = [find_metric(name, scenarios) for name in metric or []]
    except ValueError as error:
        raise RefusedError.of(error, "--metric") from None
    # Of several senders, what they share is the scenario as it stands, unless only they use what is set.
    several = len(scenarios) > 1
    scenario = scenarios[0]
    if several:
        with suppress(ScenarioError):
            scenario = load(path, overrides or [], scheme or [])
    describe(path, scenario)
    record = partial(_run, seed=seed, run=run, trace=trace, pcap=pcap, figures=figures)
    output = None if out is None else Output(out)
    with output or nullcontext(), Activity() as activity:
        runs = []
        pairs = [(each, used) for each in scenarios for used in each.schemes]
        for number, (each, used) in enumerate(pairs, 1):
            activity.doing(f"running {_name(each.sender, used)} ({number} of {len(pairs)})")
            progress = partial(activity.simulated, limit=each.text("limit"))
            began = time.monotonic()
            runs.append(record(each, used, output, progress))
            detail(f"ran {runs[-1].label} in {time.monotonic() - began:.3f} s: {runs[-1].ended}")
            _check_rows(runs, len(pairs))
        report = scenario.report(runs)
        if output is not None:
            output.text("scenario.toml", scenario.to_toml())
            output.text("results.json", report + "\n")
            if trace:
                activity.doing("writing traces and drawing figures")
                output.traces(scenario, runs)
            for name in figures:
                activity.doing(f"drawing {name}")
                output.figures(scenario, runs, name)
    if as_json:
        emit_document(report)
    else:
        from lasthop.cli.run_tables import print_tables

        print_tables(scenario, runs, metrics)
        _print_notes(scenario, runs)
        if output is not None:
            emit(f"\nwritten to {output.summary()}")
    _warn_of_unfinished(scenario, runs)


def _run(
    scenario: Scenario,
    scheme: str,
    output: Output | None,
    progress: Callable[[float], object],
    *,
    seed: int,
    run: int,
    trace: bool,
    pcap: bool,
    figures: list[str],
) -> Run:
    """Run a scheme, and record what the options ask for."""
    stem = run_stem(_name(scenario.sender, scheme))
    recorded = trace or bool({*figures} - {"delays"})
    return scenario.run(
        scheme,
        seed=seed,
        run=run,
        trace=recorded,
        series=recorded,
        delays="delays" in figures,
        pcap=output.path(f"{stem}.pcapng", "pcapng") if output is not None and pcap else None,
        qlog=trace,
        progress=progress,
    )


def _check_rows(runs: list[Run], ordered: int) -> None:
    """Refuse to go on if the runs so far have recorded more than the command may hold."""
    rows = sum(run.recorded_rows for run in runs)
    if rows > _MAX_ROWS:
        raise RefusedError(
            (
                f"after {len(runs)} of {ordered} runs their traces and series have {rows:,} rows, "
                f"more than {_MAX_ROWS:,}; "
            ),
            remedy=(
                "run fewer schemes at once, lower the limit or the size of transfers, or run without --trace"
            ),
        )


def _name(sender: str | None, scheme: str) -> str:
    """Return what a run is called before it is one."""
    return scheme if sender is None else f"{sender} {scheme}"


def _print_notes(scenario: Scenario, runs: list[Run]) -> None:
    """Print its channels in other forms, what of the scenario the runs did not use, and idle schemes."""
    said = conversions(scenario) + unused_by_schemes([scenario])
    said += [
        f"{run.label}: {without_effect(scheme, reason)}"
        for run in runs
        for scheme, reason in run.without_effect.items()
    ]
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
    warmup = scenario["warmup"]
    counted = "arrived" if warmup == 0 else f"arrived after the warm-up of {scenario.text('warmup')}"
    for run in runs:
        limited = run.ended == "time-limit"
        ended = f"reached the limit of {scenario.text('limit')}" if limited else "had nothing left to do"
        for name, metrics in run.connections.items():
            own = f"connection.{name}.size"
            size = own if own in scenario else "transfer.size"
            # An unlimited transfer never finishes.
            if not metrics["finished"] and scenario[size] != "unlimited":
                which = "it" if len(run.connections) == 1 else f"connection {name}"
                arrived = f"{metrics['delivered_bytes']} B of {scenario.text(size)} {counted}"
                why = "gave up" if metrics["aborted"] else ended
                warn(f"{run.label} {why} before {which} finished: {arrived}")
        for name, metrics in run.applications.items():
            stated = scenario["application"][name]
            requests = stated.get("requests")
            what = "pages" if kind_of(metrics) is Kind.PAGES else "responses"
            if run.ended != "finished" and requests is not None and metrics[what] < requests:
                arrived = f"{metrics[what]} of {requests} {what} {counted}"
                warn(f"{run.label} {ended} before application {name} finished: {arrived}")
            length = stated.get("video", {}).get("length")
            left = length is not None and length - warmup > metrics["played_s"]
            if run.ended != "finished" and left:
                whole = scenario.text(f"application.{name}.video.length")
                played = f"{metrics['played_s']:.1f} s of {whole} were played"
                warn(f"{run.label} {ended} before application {name} finished: {played}")
