"""`lasthop run`: each scheme over the same channel, compared."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Print a row for each run; if it has several connections, one for each of them and one for all."""
    from lasthop.cli.table import Table, in_common
    from lasthop.study.units import RATES, SIZES

    several = len(runs[0].connections) > 1
    rows = [row for run in runs for row in (_parts(run) if several else [([run.scheme], run.metrics)])]
    rate, throughput = in_common([each["throughput_bps"] for _, each in rows], RATES)
    size, resent = in_common([each["retransmitted_bytes"] for _, each in rows], SIZES)
    headers = [f"throughput ({rate})", "goodput (%)", f"retransmitted ({size})", "timeouts", "completion (s)"]
    names, last = (["scheme", "connection"], [">fairness"]) if several else (["scheme"], [])
    table = Table(*names, *(f">{header}" for header in headers), *last)
    for (labels, each), through, again in zip(rows, throughput, resent, strict=True):
        goodput, time, timeouts = each["goodput"], each["completion_time_s"], f"{each['timeouts']:,}"
        cells = [through, _number(goodput and 100 * goodput), again, timeouts, _number(time)]
        # One connection is neither fair nor unfair.
        fairness = [_number(each["fairness"], 3) if "fairness" in each else ""] if several else []
        table.row(*labels, *cells, *fairness)
    if scenario.title:
        print(f"{scenario.title}\n")
    table.print()


def _parts(run: Run) -> list[tuple[list[str], dict[str, Any]]]:
    """Return the metrics of each connection of a run, and those of all, with what to call them."""
    parts = [*run.connections.items(), ("all", run.metrics)]
    return [([run.scheme if i == 0 else "", name], metrics) for i, (name, metrics) in enumerate(parts)]


def _number(value: float | None, decimals: int = 1) -> str:
    return "-" if value is None else f"{value:,.{decimals}f}"


def _warn_of_unfinished(scenario: Scenario, runs: list[Run]) -> None:
    """Say which transfers did not come to their end, and how far they came."""
    said = tomllib.loads(scenario.to_toml())
    counted = "arrived" if said["warmup"] == "0 s" else f"arrived after the warm-up of {said['warmup']}"
    for run in runs:
        limited = run.ended == "time-limit"
        ended = f"reached the limit of {said['limit']}" if limited else "had nothing left to do"
        for name, metrics in run.connections.items():
            own = said.get("connection", {}).get(name, {})
            size = own.get("size", said["transfer"]["size"])
            # One that is unlimited has no end to come to.
            if not metrics["finished"] and size != "unlimited":
                which = "it" if len(run.connections) == 1 else f"connection {name}"
                arrived = f"{metrics['delivered_bytes']} B of {size} {counted}"
                why = "gave up" if metrics["aborted"] else ended
                warn(f"{run.scheme} {why} before {which} finished: {arrived}")
