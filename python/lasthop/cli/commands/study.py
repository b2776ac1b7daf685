"""`lasthop study`: runs or resumes a study and prints its tables."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from lasthop import Scenario
from lasthop._lasthop import Pool
from lasthop.cli import complete
from lasthop.cli.failure import CRASHED, RefusedError, exit_resumable, failed, refused
from lasthop.cli.option_values import check_export, runs_range, share
from lasthop.cli.options import (
    AsJson,
    Export,
    Html,
    Jobs,
    Overrides,
    Repair,
    ScenarioFile,
    Schemes,
    Seed,
    Senders,
    Verbose,
    directory,
)
from lasthop.cli.progress import Activity, duration
from lasthop.cli.scenario import describe, load
from lasthop.cli.streams import detail, emit, emit_document, notify
from lasthop.cli.study_results import STORE, show, write
from lasthop.engine.shards import Shard
from lasthop.results.export import require_pyarrow
from lasthop.show import study_report
from lasthop.study import ShardError, Study, StudyError

SECONDS_TO_TIME = 1.5
"""Seconds for which `--dry-run` times runs."""

MOST_NAMED = 4
"""The most cells of left-out runs that are named one by one."""


def study(
    path: ScenarioFile,
    scheme: Schemes = None,
    sender: Senders = None,
    seed: Seed = 1,
    overrides: Overrides = None,
    jobs: Jobs = None,
    precision: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Target half-width of the intervals, relative to the mean."),
    ] = "2%",
    runs: Annotated[
        str, typer.Option(metavar="MIN:MAX", help="Fewest and most runs of each scheme at each point.")
    ] = "100:1000",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.metric,
            help="The metric of the tables, by default throughput_bps; may be repeated. "
            "The stopping rule is that of the first.",
        ),
    ] = None,
    quantile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE",
            help="Also a quantile of the metrics over the runs, such as 0.95 or 99%; may be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, directory("Directory of the results; by default FILE.study.")] = None,
    as_json: AsJson = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only count the runs and estimate their time."),
    ] = False,
    export: Export = None,
    html: Html = False,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Make only the runs of shard I of N; `lasthop merge` merges them."),
    ] = None,
    repair: Repair = False,
    verbose: Verbose = False,
) -> None:
    """Sweep a scenario with replications until the intervals are narrow enough; can be resumed."""
    target, least_and_most = share("--precision", precision), runs_range(runs)
    shares = [share("--quantile", text, "a share of the runs", "95%") for text in quantile or []]
    check_export(export)
    own = None if shard is None else _shard(shard, export, html)
    scenario = load(path, overrides or [], scheme or [], sender or [])
    describe(path, scenario)
    results = Path(f"{path.stem}.study") if out is None else out
    if own is not None and out is None:
        results /= f"shard-{own.index}-of-{own.of}"
    metrics = metric or ["throughput_bps"]
    try:
        if export == "parquet":
            require_pyarrow()
        with Study(
            scenario,
            seed=seed,
            precision=target,
            runs=least_and_most,
            metric=metrics[0],
            metrics=metrics[1:],
            quantiles=shares,
            store=None if dry_run else results / STORE,
            shard=None if own is None else (own.index, own.of),
            repair=repair,
        ) as made:
            if dry_run:
                _estimate(made, jobs, as_json=as_json)
            else:
                _run(made, results, jobs=jobs, export=export, html=html, as_json=as_json)
    except ShardError as error:
        raise RefusedError(error.problem, option="--shard") from None
    except StudyError as error:
        raise refused(error) from None


def _shard(text: str, export: str | None, html: bool) -> Shard:
    """Read the `I/N` of `--shard`."""
    if export is not None or html:
        option = "--html" if export is None else "--export"
        raise RefusedError(
            "a shard has only a part of the runs; ", remedy="expected at `lasthop merge`", option=option
        )
    try:
        return Shard.parse(text)
    except ShardError as error:
        raise RefusedError(error.problem, option="--shard") from None


def _run(
    study: Study, directory: Path, *, jobs: int | None, export: str | None, html: bool, as_json: bool
) -> None:
    """Make the missing runs, and print and write the results."""
    try:
        with Activity() as activity:
            began = time.monotonic()
            made = study.run(jobs, activity.study)
            spent = duration(time.monotonic() - began)
            detail(f"made {made:,} runs in {spent}, {jobs or os.cpu_count() or 1} threads")
            if made == 0:
                notify(f"nothing left to run: {study.path} has every run of this study")
            if study.shard is None:
                activity.doing("writing results")
                results = write(study, directory, export, html)
    except KeyboardInterrupt:
        exit_resumable(f"{study.progress.done:,} runs are kept in {study.path}")
    except RuntimeError as fault:  # A run crashed; the message says how to replay it.
        raise failed("run", str(fault), code=CRASHED) from None
    _name_left_out(study)
    if study.shard is None:
        show(study, directory, results, as_json)
    else:
        _show_shard(study, as_json)


def _name_left_out(study: Study) -> None:
    """Report the stored runs that are not in this study."""
    left = study.left_out
    if not left:
        return
    named = []
    for parameters, scheme, runs in left[:MOST_NAMED]:
        at = ", ".join(f"{name} = {value}" for name, value in parameters.items())
        named.append(f"{runs:,} of {scheme}{f' at {at}' if at else ''}")
    if len(left) > MOST_NAMED:
        named.append(f"and those of {len(left) - MOST_NAMED:,} more")
    total = sum(runs for _, _, runs in left)
    notify(f"{total:,} runs in {study.path} are kept, and not in this study: {'; '.join(named)}")


def _show_shard(study: Study, as_json: bool) -> None:
    """Report what a shard has stored, and the next command."""
    assert study.shard is not None
    done = study.progress.done
    if as_json:
        document = {
            "lasthop": study.version,
            "scenario": study_report.scenario(study),
            "seed": study.seed,
            "runs": {"min": study.rule.least, "max": study.rule.most},
            "shard": {"index": study.shard.index, "of": study.shard.of, "runs": done},
            "finished": study.finished,
            "store": str(study.path),
        }
        emit_document(json.dumps(document, indent=2, ensure_ascii=False))
        return
    emit(f"shard {study.shard}: {done:,} runs in {study.path}")
    emit("once all shards are done: lasthop merge OUT DIR..., with their directories")


def _estimate(study: Study, jobs: int | None, *, as_json: bool) -> None:
    """Print the number of runs, and an estimate of their time."""
    cells = [
        (point.scenario, scheme) for point in study.scenario.points() for scheme in point.scenario.schemes
    ]
    least, most = study.rule.least * len(cells), study.rule.most * len(cells)
    if study.shard is not None:
        least = most = study.progress.expected
    rate = _rate(cells, study.seed, jobs)
    times = [math.inf if rate == 0 else runs / rate for runs in (least, most)]
    threads = jobs or os.cpu_count() or 1
    if as_json:
        estimate = {
            "points": len(study.points),
            "schemes": study.scenario.schemes,
            "runs": {"min": least, "max": most},
            "seconds": {"min": times[0], "max": times[1]},
            "jobs": threads,
        }
        emit_document(json.dumps(estimate, indent=2))
        return
    each = f"{study.rule.least:,} to {study.rule.most:,} of each scheme at each point"
    if study.shard is not None:
        each = f"shard {study.shard} of {study.rule.most:,} of each scheme at each point"
    emit(f"points   {len(study.points):,}")
    emit(f"schemes  {len(study.scenario.schemes):,}: {', '.join(study.scenario.schemes)}")
    emit(f"runs     {least:,} to {most:,}: {each}")
    emit(f"time     {duration(times[0])} to {duration(times[1])} on {threads} threads")


def _rate(cells: list[tuple[Scenario, str]], seed: int, jobs: int | None) -> float:
    """Time runs of every point and scheme in turn, and return the runs per second."""
    began = time.monotonic()
    made, rounds = 0, 0
    with Activity("timing runs"), Pool(jobs) as pool:
        while (spent := time.monotonic() - began) < SECONDS_TO_TIME:
            if pool.pending == 0:
                for key, (scenario, scheme) in enumerate(cells):
                    pool.submit(key, scenario, scheme, seed, rounds, 1)
                rounds += 1
            made += sum(runs for _, _, runs, *_ in pool.collect(SECONDS_TO_TIME - spent))
    return made / (time.monotonic() - began)
