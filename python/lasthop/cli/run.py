"""`lasthop run`: each scheme over the same channel, compared."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from lasthop import Run, Scenario
from lasthop.api import load
from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.output import Output


@dataclass(frozen=True)
class Request:
    """What the command was asked for."""

    path: Path
    schemes: list[str]
    seed: int
    run: int
    overrides: list[str]
    as_json: bool
    out: Path | None
    trace: bool
    pcap: bool


def execute(request: Request) -> None:
    """Run the scenario with each scheme, and report."""
    if (request.trace or request.pcap) and request.out is None:
        raise RefusedError("--trace and --pcap write files; say where with --out DIR")
    # Laid over the scenario, so that each is checked with it before the first one runs.
    schemes = [f"schemes={json.dumps(request.schemes)}"] if request.schemes else []
    scenario = load(request.path, [*request.overrides, *schemes])
    output = None if request.out is None else Output(request.out)
    runs = [_run(scenario, scheme, request, output) for scheme in scenario.schemes]
    report = scenario.report(runs)
    if output is not None:
        output.text("scenario.toml", scenario.to_toml())
        output.text("results.json", report + "\n")
        if request.trace:
            output.traces(scenario, runs)
    if request.as_json:
        print(report)
    else:
        _print_table(scenario, runs)
        if output is not None:
            print(f"\nwritten to {output.summary()}")
    _warn_of_unfinished(scenario, runs)


def _run(scenario: Scenario, scheme: str, request: Request, output: Output | None) -> Run:
    pcap = output.path(f"{scheme}.pcapng", "pcapng") if output is not None and request.pcap else None
    seed, run, record = request.seed, request.run, request.trace
    return scenario.run(scheme, seed=seed, run=run, trace=record, series=record, pcap=pcap)


def _print_table(scenario: Scenario, runs: list[Run]) -> None:
    from lasthop.cli.table import Table, in_common
    from lasthop.study.units import RATES, SIZES

    metrics = [run.metrics for run in runs]
    rate, throughput = in_common([each["throughput_bps"] for each in metrics], RATES)
    size, resent = in_common([each["retransmitted_bytes"] for each in metrics], SIZES)
    headers = [f"throughput ({rate})", "goodput (%)", f"retransmitted ({size})", "timeouts", "completion (s)"]
    table = Table("scheme", *(f">{header}" for header in headers))
    for run, each, through, again in zip(runs, metrics, throughput, resent, strict=True):
        goodput, time = each["goodput"], each["completion_time_s"]
        table.row(
            run.scheme,
            through,
            "-" if goodput is None else f"{100 * goodput:.1f}",
            again,
            f"{each['timeouts']:,}",
            "-" if time is None else f"{time:,.1f}",
        )
    if scenario.title:
        print(f"{scenario.title}\n")
    table.print()


def _warn_of_unfinished(scenario: Scenario, runs: list[Run]) -> None:
    """Say which transfers did not come to their end, and how far they came."""
    said = tomllib.loads(scenario.to_toml())
    limit, size = said["limit"], said["transfer"]["size"]
    if size == "unlimited":
        return  # It has no end to come to.
    for run in runs:
        if not run.metrics["finished"]:
            why = f"reached the limit of {limit}" if run.ended == "time-limit" else "had nothing left to do"
            arrived = f"{run.metrics['delivered_bytes']} B of {size} arrived"
            warn(f"{run.scheme} {why} before it finished: {arrived}")
