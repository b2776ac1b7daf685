"""`lasthop packet-size`: the packet size with the highest throughput, for each error characteristic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lasthop import Scenario, ScenarioError
from lasthop.cli.failure import RefusedError
from lasthop.cli.option_values import check_runs
from lasthop.cli.options import AsJson, Jobs, Overrides, ScenarioFile, Schemes, Seed, Verbose, directory
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe, scheme_override, unused_by_schemes
from lasthop.cli.streams import emit, emit_document
from lasthop.cli.table import Table, in_common, printable
from lasthop.core.titles import shown_title
from lasthop.core.units import RATES, aligned, interval_cells
from lasthop.study import Study, StudyError
from lasthop.study import packet_size as by_size

if TYPE_CHECKING:
    import pandas


def packet_size(
    path: ScenarioFile,
    key: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="The packet size to vary.",
        ),
    ] = "tcp.packet_size",
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help='Packet sizes to try, such as "128 B, 512 B"; by default 12 up to 1536 B.'
        ),
    ] = None,
    scheme: Schemes = None,
    runs: Annotated[int, typer.Option(min=2, metavar="N", help="Runs of each size and scheme.")] = 100,
    seed: Seed = 1,
    overrides: Overrides = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Also draw throughput against packet size there.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the packet size with the highest throughput, for each point of the scenario's sweep.

    The sweep, usually of the channel, gives the rows of the table. A window in bytes holds fewer packets the
    larger they are; a window such as "10 packets" holds the same number of each size. --key may also name the
    packet size of one part, such as scheme.metp.wireless.packet_size.
    """
    check_runs(runs)
    chosen = [] if sizes is None else [size.strip() for size in sizes.split(",")]
    scenario = _load(path, key, chosen, scheme or [], overrides or [])
    describe(path, scenario)
    try:
        with (
            Study(scenario, seed=seed, precision=None, runs=(runs, runs)) as study,
            Activity() as activity,
        ):
            study.run(jobs, activity.study)
            activity.doing("comparing sizes")
            found = by_size.table(study, key=key)
            written = [] if out is None else _draw(study, key, out)
    except StudyError as error:
        raise RefusedError.of(error) from None
    if as_json:
        emit_document(_json(found, key))
    else:
        if scenario.title:
            emit(f"{printable(shown_title(scenario))}\n")
        _print(found)
        said = unused_by_schemes(point.scenario for point in scenario.points())
        if said:
            emit("\n" + "\n".join(said))
        if written:
            emit(f"\nwritten to {out}: {', '.join(path.name for path in written)}")


def _load(path: Path, key: str, sizes: list[str], schemes: list[str], overrides: list[str]) -> Scenario:
    """Load the scenario with the sizes as an axis of its sweep."""
    with scheme_override(schemes) as chosen:
        try:
            return by_size.load(path, sizes, [*overrides, *chosen], key)
        except ScenarioError as error:
            if error.change != by_size.axis(key):
                raise
            option = "--sizes" if sizes and _takes_sizes(path, key, [*overrides, *chosen]) else "--key"
            raise RefusedError.of(error, option, error.message) from None


def _takes_sizes(path: Path, key: str, overrides: list[str]) -> bool:
    """Return whether a key is a packet size, by the sizes that are tried by default."""
    try:
        by_size.load(path, (), overrides, key)
    except ScenarioError:
        return False
    return True


def _draw(study: Study, key: str, out: Path) -> list[Path]:
    """Draw throughput against packet size."""
    from lasthop import plots
    from lasthop.show.packet_size import figures

    drawn = figures(study, key=key)
    with Output(out) as output:
        return [path for stem, figure in drawn.items() for path in plots.save(figure, output.staging / stem)]


def _parameters(found: pandas.DataFrame) -> list[str]:
    """Return the columns of the swept settings, which precede the scheme."""
    return [str(name) for name in found.columns[: list(found.columns).index("scheme")]]


def _json(found: pandas.DataFrame, key: str) -> str:
    parameters = _parameters(found)
    rows = [
        {
            "parameters": {name: row[name] for name in parameters},
            "scheme": row["scheme"],
            "packet_size": row["packet_size"],
            "throughput_bps": {"mean": row["mean"], "ci95": row["ci95"], "n": row["n"]},
            "as_good": row["as_good"],
        }
        for row in found.to_dict("records")
    ]
    return json.dumps({"key": key, "table": rows}, indent=2)


def _print(found: pandas.DataFrame) -> None:
    parameters = _parameters(found)
    rate, _ = in_common(found["mean"].tolist(), RATES)
    size = dict(RATES)[rate]
    means = aligned(found["mean"], found["ci95"], size)
    head, intervals = interval_cells(found["mean"], (found["low"], found["high"]), found["ci95"], size)
    headers = [
        "scheme",
        ">best packet size",
        f">throughput ({rate})",
        f">{head}",
        "not significantly worse",
    ]
    table = Table(*parameters, *headers)
    for row, mean, interval in zip(found.to_dict("records"), means, intervals, strict=True):
        cells = [str(row[name]) for name in parameters]
        table.row(*cells, row["scheme"], row["packet_size"], mean, interval, ", ".join(row["as_good"]))
    table.print()
