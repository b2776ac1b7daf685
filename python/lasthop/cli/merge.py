"""`lasthop merge`: merges the shards of a study and prints its tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.progress import Activity
from lasthop.cli.streams import detail
from lasthop.cli.study import STORE, check_export, show, write
from lasthop.results.export import require_pyarrow
from lasthop.study import StudyError, merge


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    out: Path
    shards: list[Path]
    partial: bool
    as_json: bool
    export: str | None
    html: bool


def execute(request: Request) -> None:
    """Merge the stores, and print and write the results."""
    check_export(request.export)
    stores = [_store(path) for path in request.shards]
    try:
        if request.export == "parquet":
            require_pyarrow()
        with Activity("merging shards") as activity:
            study = merge(request.out / STORE, stores, partial=request.partial)
            detail(f"merged {len(stores):,} stores: {study.progress.done:,} runs")
            activity.doing("writing results")
            results = write(study, request.out, request.export, request.html)
        with study:
            show(study, request.out, results, request.as_json)
            if not study.finished:
                left = study.progress.expected - study.progress.done
                warn(f"{left:,} runs are missing; `lasthop study` with --out {request.out} makes them")
    except StudyError as error:
        raise RefusedError(str(error)) from None


def _store(path: Path) -> Path:
    """Return the store in a directory of results, or the store itself."""
    store = path / STORE if path.is_dir() else path
    if not store.is_file():
        raise RefusedError(f"{path}: there is no {STORE}; expected a directory of `lasthop study --shard`")
    return store
