"""`lasthop packet-size`: the packet size with the highest throughput, for each error characteristic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop import Scenario
from lasthop.cli.failure import RefusedError
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe, rephrasing, scheme_override, unused_by_schemes
from lasthop.cli.streams import emit, emit_document
from lasthop.cli.study import check_runs
from lasthop.cli.table import Table, in_common, printable
from lasthop.core.units import RATES
from lasthop.show.packet_size import figures
from lasthop.study import Study, StudyError, packet_size

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    path: Path
    key: str
    sizes: str | None
    schemes: list[str]
    runs: int
    seed: int
    overrides: list[str]
    jobs: int | None
    out: Path | None
    as_json: bool


def execute(request: Request) -> None:
    """Run the study of all sizes, and print the table."""
    check_runs(request.runs)
    sizes = [] if request.sizes is None else [size.strip() for size in request.sizes.split(",")]
    scenario = _load(request, sizes)
    describe(request.path, scenario)
    runs = (request.runs, request.runs)
    try:
        with (
            Study(scenario, seed=request.seed, precision=None, runs=runs) as study,
            Activity() as activity,
        ):
            study.run(request.jobs, activity.study)
            activity.doing("comparing sizes")
            found = packet_size.table(study, key=request.key)
            written = [] if request.out is None else _draw(study, request.key, request.out)
    except StudyError as error:
        raise RefusedError(str(error)) from None
    if request.as_json:
        emit_document(_json(found, request.key))
    else:
        if scenario.title:
            emit(f"{printable(scenario.title)}\n")
        _print(found)
        said = unused_by_schemes(point.scenario for point in scenario.points())
        if said:
            emit("\n" + "\n".join(said))
        if written:
            emit(f"\nwritten to {request.out}: {', '.join(path.name for path in written)}")


def _load(request: Request, sizes: list[str]) -> Scenario:
    """Load the scenario with the sizes as an axis of its sweep."""

    def rephrase(message: str) -> str:
        wrong_key = not sizes or message.startswith("unknown key")
        return f"{'--key' if wrong_key else '--sizes'}: {message}"

    axis = packet_size.axis(request.key, sizes)
    with scheme_override(request.schemes) as schemes, rephrasing(axis, rephrase):
        return packet_size.load(request.path, sizes, [*request.overrides, *schemes], request.key)


def _draw(study: Study, key: str, directory: Path) -> list[Path]:
    """Draw throughput against packet size."""
    from lasthop import plots

    drawn = figures(study, key=key)
    with Output(directory) as output:
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
    headers = [
        "scheme",
        ">best packet size",
        f">throughput ({rate})",
        ">± 95 %",
        "not significantly worse",
    ]
    table = Table(*parameters, *headers)
    for row in found.to_dict("records"):
        cells = [str(row[name]) for name in parameters]
        mean, spread = (f"{row[name] / size:.2f}" for name in ("mean", "ci95"))
        table.row(*cells, row["scheme"], row["packet_size"], mean, spread, ", ".join(row["as_good"]))
    table.print()
