"""`lasthop merge`: merges the shards of a study and prints its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.option_values import check_export
from lasthop.cli.options import AsJson, Export, Html, Verbose
from lasthop.cli.progress import Activity
from lasthop.cli.streams import detail
from lasthop.cli.study_results import STORE, show, write
from lasthop.results.export import require_pyarrow
from lasthop.study import StudyError, merging


def merge(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", show_default=False, help="Directory of the whole study.")
    ],
    shards: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="The directories of `lasthop study --shard`, or the stores in them.",
        ),
    ],
    partial: Annotated[
        bool, typer.Option("--partial", help="Merge although runs are missing; `lasthop study` makes them.")
    ] = False,
    as_json: AsJson = False,
    export: Export = None,
    html: Html = False,
    verbose: Verbose = False,
) -> None:
    """Merge the shards of a study, and print its tables."""
    check_export(export)
    stores = [_store(path) for path in shards]
    try:
        if export == "parquet":
            require_pyarrow()
        with Activity("merging shards") as activity:
            study = merging.merge(out / STORE, stores, partial=partial)
            detail(f"merged {len(stores):,} stores: {study.progress.done:,} runs")
            activity.doing("writing results")
            results = write(study, out, export, html)
        with study:
            show(study, out, results, as_json)
            if not study.finished:
                left = study.progress.expected - study.progress.done
                warn(f"{left:,} runs are missing; `lasthop study` with --out {out} makes them")
    except StudyError as error:
        raise RefusedError.of(error) from None


def _store(path: Path) -> Path:
    """Return the store in a directory of results, or the store itself."""
    store = path / STORE if path.is_dir() else path
    if not store.is_file():
        raise RefusedError(
            f"{path}: there is no {STORE}; ", remedy="expected a directory of `lasthop study --shard`"
        )
    return store
