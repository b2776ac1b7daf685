"""`lasthop packet-size`: which packet size gets most through, for each error characteristic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.cli.failure import RefusedError
from lasthop.cli.progress import progress_bar
from lasthop.cli.table import Table, in_common
from lasthop.study import Study, StudyError, packet_size
from lasthop.study.units import RATES

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Request:
    """What the command was asked for."""

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
    """Try each size, and print the table."""
    schemes = [f"schemes={json.dumps(request.schemes)}"] if request.schemes else []
    sizes = [] if request.sizes is None else [size.strip() for size in request.sizes.split(",")]
    scenario = packet_size.load(request.path, sizes, [*request.overrides, *schemes], request.key)
    runs = (request.runs, request.runs)
    try:
        with Study(scenario, seed=request.seed, precision=None, runs=runs) as study:
            with progress_bar() as show:
                study.run(request.jobs, show)
            found = packet_size.table(study, key=request.key)
            written = [] if request.out is None else _draw(study, request.key, request.out)
    except StudyError as error:
        raise RefusedError(str(error)) from None
    if request.as_json:
        print(_json(found, request.key))
    else:
        if scenario.title:
            print(f"{scenario.title}\n")
        _print(found)
        if written:
            print(f"\nwritten to {request.out}: {', '.join(path.name for path in written)}")


def _draw(study: Study, key: str, directory: Path) -> list[Path]:
    """Write the curves that the table is read off."""
    from lasthop import plots

    directory.mkdir(parents=True, exist_ok=True)
    drawn = packet_size.figures(study, key=key)
    return [path for stem, figure in drawn.items() for path in plots.save(figure, directory / stem)]


def _parameters(found: pandas.DataFrame) -> list[str]:
    """Return the columns of swept settings: those before the scheme."""
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
        "no worse, as far as is known",
    ]
    table = Table(*parameters, *headers)
    for row in found.to_dict("records"):
        cells = [str(row[name]) for name in parameters]
        mean, spread = (f"{row[name] / size:.2f}" for name in ("mean", "ci95"))
        table.row(*cells, row["scheme"], row["packet_size"], mean, spread, ", ".join(row["as_good"]))
    table.print()
