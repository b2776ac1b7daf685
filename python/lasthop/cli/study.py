"""`lasthop study`: runs or resumes a study and prints its tables."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import Scenario
from lasthop._lasthop import Pool
from lasthop.cli.failure import CRASHED, RefusedError, exit_resumable, failed, warn, with_option
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity, duration
from lasthop.cli.scenario import describe, load, unused_by_schemes
from lasthop.cli.streams import detail, emit, emit_document, notify
from lasthop.cli.table import Table, printable
from lasthop.core.quantity import quantity
from lasthop.core.statistics import runs_to_tell
from lasthop.core.units import aligned, metric_scale, quantile_cells, quantile_name
from lasthop.engine.shards import Shard
from lasthop.engine.stopping import MOST_RUNS
from lasthop.results.export import require_pyarrow
from lasthop.results.samples import TOTAL
from lasthop.show import study_report
from lasthop.study import Study, StudyError

if TYPE_CHECKING:
    import pandas

STORE = "study.sqlite"
SECONDS_TO_TIME = 1.5
MOST_NAMED = 4
"""The most cells of left-out runs that are named one by one."""


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    path: Path
    schemes: list[str]
    senders: list[str]
    seed: int
    overrides: list[str]
    jobs: int | None
    precision: str
    runs: str
    metrics: list[str]
    quantiles: list[str]
    out: Path | None
    as_json: bool
    dry_run: bool
    export: str | None
    html: bool
    shard: str | None


@dataclass(frozen=True)
class Results:
    """The results of a study: the text of `--json`, the names of the files, and the tables."""

    document: str
    files: list[str]
    summary: pandas.DataFrame
    comparison: pandas.DataFrame


def execute(request: Request) -> None:
    """Make the missing runs, and print and write the results."""
    precision, runs = read_share("--precision", request.precision), read_runs(request.runs)
    quantiles = [read_share("--quantile", text, "a share of the runs", "95%") for text in request.quantiles]
    check_export(request.export)
    shard = _read_shard(request)
    scenario = load(request.path, request.overrides, request.schemes, request.senders)
    describe(request.path, scenario)
    directory = Path(f"{request.path.stem}.study") if request.out is None else request.out
    if shard is not None and request.out is None:
        directory /= f"shard-{shard.index}-of-{shard.of}"
    store = None if request.dry_run else directory / STORE
    try:
        if request.export == "parquet":
            require_pyarrow()
        with Study(
            scenario,
            seed=request.seed,
            precision=precision,
            runs=runs,
            metric=request.metrics[0],
            metrics=request.metrics[1:],
            quantiles=quantiles,
            store=store,
            shard=None if shard is None else (shard.index, shard.of),
        ) as study:
            if request.dry_run:
                _estimate(study, request)
            else:
                _run(study, request, directory)
    except StudyError as error:
        raise RefusedError(re.sub("^shard: ", "--shard: ", with_option(error))) from None


def _run(study: Study, request: Request, directory: Path) -> None:
    try:
        with Activity() as activity:
            began = time.monotonic()
            made = study.run(request.jobs, activity.study)
            detail(f"made {made:,} runs in {duration(time.monotonic() - began)}, {_threads(request.jobs)}")
            if made == 0:
                notify(f"nothing left to run: {study.path} has every run of this study")
            if study.shard is None:
                activity.doing("writing results")
                results = write(study, directory, request.export, request.html)
    except KeyboardInterrupt:
        exit_resumable(f"{study.progress.done:,} runs are kept in {study.path}")
    except RuntimeError as fault:  # A run crashed; the message says how to replay it.
        raise failed("run", str(fault), code=CRASHED) from None
    _name_left_out(study)
    if study.shard is None:
        show(study, directory, results, request.as_json)
    else:
        _show_shard(study, request.as_json)


def write(study: Study, directory: Path, export: str | None, html: bool) -> Results:
    """Write the results of a study into a directory."""
    with Output(directory) as output:
        command = shlex.join(["lasthop", *sys.argv[1:]])
        written = study_report.write(study, output.staging, export, html, command)
        document = written[0].read_text(encoding="utf-8")
    return Results(document, [path.name for path in written], study.summary(), study.differences())


def show(study: Study, directory: Path, results: Results, as_json: bool) -> None:
    """Print the results of a study, and warn of what they lack."""
    summary, comparison = results.summary, results.comparison
    if as_json:
        emit_document(results.document)
    else:
        if study.scenario.title:
            emit(f"{printable(study.scenario.title)}\n")
        _print_summary(study, study.metric, summary)
        if len(comparison):
            _print_comparison(study, study.metric, comparison)
        _print_quantiles(study, study.metric)
        for metric in study.further:
            emit()
            _print_summary(study, metric, study.summary(metric))
            if len(comparison):
                _print_comparison(study, metric, study.differences(metric=metric))
            _print_quantiles(study, metric)
        few = int(summary["few"].sum())
        if few:
            emit(f"\ntoo few events: {few} of {len(summary)} intervals may cover less often than 95 %")
        said = unused_by_schemes(point.scenario for point in study.scenario.points())
        if said:
            emit("\n" + "\n".join(said))
        emit(f"\nwritten to {directory}: {', '.join([STORE, *results.files])}")
    _warn(study)


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


# -- Before and while it runs ------------------------------------------------------------------------


def _estimate(study: Study, request: Request) -> None:
    """Print the number of runs, and an estimate of their time."""
    cells = [
        (point.scenario, scheme) for point in study.scenario.points() for scheme in point.scenario.schemes
    ]
    least, most = study.rule.least * len(cells), study.rule.most * len(cells)
    if study.shard is not None:
        least = most = study.progress.expected
    rate = _rate(cells, request)
    times = [math.inf if rate == 0 else runs / rate for runs in (least, most)]
    jobs = request.jobs or os.cpu_count() or 1
    if request.as_json:
        estimate = {
            "points": len(study.points),
            "schemes": study.scenario.schemes,
            "runs": {"min": least, "max": most},
            "seconds": {"min": times[0], "max": times[1]},
            "jobs": jobs,
        }
        emit_document(json.dumps(estimate, indent=2))
        return
    each = f"{study.rule.least:,} to {study.rule.most:,} of each scheme at each point"
    if study.shard is not None:
        each = f"shard {study.shard} of {study.rule.most:,} of each scheme at each point"
    emit(f"points   {len(study.points):,}")
    emit(f"schemes  {len(study.scenario.schemes):,}: {', '.join(study.scenario.schemes)}")
    emit(f"runs     {least:,} to {most:,}: {each}")
    emit(f"time     {duration(times[0])} to {duration(times[1])} on {jobs} threads")


def _threads(jobs: int | None) -> str:
    return f"{jobs or os.cpu_count() or 1} threads"


def _rate(cells: list[tuple[Scenario, str]], request: Request) -> float:
    """Time runs of every point and scheme in turn, and return the runs per second."""
    began = time.monotonic()
    made, rounds = 0, 0
    with Activity("timing runs"), Pool(request.jobs) as pool:
        while (spent := time.monotonic() - began) < SECONDS_TO_TIME:
            if pool.pending == 0:
                for key, (scenario, scheme) in enumerate(cells):
                    pool.submit(key, scenario, scheme, request.seed, rounds, 1)
                rounds += 1
            made += sum(runs for _, _, runs, *_ in pool.collect(SECONDS_TO_TIME - spent))
    return made / (time.monotonic() - began)


# -- Results -----------------------------------------------------------------------------------------


def _print_summary(study: Study, metric: str, summary: pandas.DataFrame) -> None:
    """Print the mean of a metric for each point and scheme."""
    parameters = list(study.points[0].parameters)
    scale = metric_scale(metric, float(summary["mean"].abs().max()))
    means = aligned(summary["mean"], summary["ci95"], scale.size)
    spreads = aligned(summary["ci95"], summary["ci95"], scale.size)
    headers = [*parameters, "scheme", f">{scale.label}", ">± 95 %"]
    cells = [*(summary[name] for name in parameters), summary["scheme"], means, spreads]
    if TOTAL in summary:
        headers.append(f">all bits / all time ({scale.unit})")
        cells.append(aligned(summary[TOTAL], summary[f"{TOTAL}_ci95"], scale.size))
    headers.append(">runs")
    cells.append([f"{runs:,}" for runs in summary["runs"]])
    if (summary["n"] != summary["runs"]).any():
        headers.append(">that have it")
        cells.append([f"{n:,}" for n in summary["n"]])
    if summary["unfinished"].any():
        headers.append(">unfinished")
        cells.append([f"{n:,}" for n in summary["unfinished"]])
    table = Table(*headers)
    for row in zip(*cells, strict=True):
        table.row(*row)
    table.print()


def _print_comparison(study: Study, metric: str, comparison: pandas.DataFrame) -> None:
    """Print the paired differences between each scheme and the first."""
    parameters = list(study.points[0].parameters)
    scale = metric_scale(metric, float(comparison["difference"].abs().max()))
    baselines = comparison["baseline"].unique()
    against = baselines[0] if len(baselines) == 1 else "the first scheme"
    unit = f" ({scale.unit})" if scale.unit else ""
    table = Table(
        *parameters, "scheme", f">difference{unit}", ">± 95 %", ">ratio", ">± 95 %", ">p (Holm)", ""
    )
    columns = [
        *(comparison[name] for name in parameters),
        comparison["scheme"],
        aligned(comparison["difference"], comparison["ci95"], scale.size, sign="+"),
        aligned(comparison["ci95"], comparison["ci95"], scale.size),
        aligned(comparison["ratio"], comparison["ratio_ci95"]),
        aligned(comparison["ratio_ci95"], comparison["ratio_ci95"]),
        [p_value(p) for p in comparison["p_holm"]],
        ["significant" if yes else "not significant" for yes in comparison["significant"]],
    ]
    for row in zip(*columns, strict=True):
        table.row(*row)
    emit(f"\n{scale.name} against {against}, in pairs of runs over the same fades")
    table.print()


def _print_quantiles(study: Study, metric: str) -> None:
    """Print the quantiles of a metric over the runs, and say what the runs cannot tell."""
    if metric == TOTAL or not study.quantiles:
        return
    found = {share: study.quantile(share, metric) for share in study.quantiles}
    first = next(iter(found.values()))
    finite = [abs(v) for table in found.values() for v in table["value"] if math.isfinite(v)]
    scale = metric_scale(metric, max(finite, default=0.0))
    headers = [*study.points[0].parameters, "scheme"]
    columns: list[Any] = [*(first[name] for name in study.points[0].parameters), first["scheme"]]
    for share, table in found.items():
        # An infinite end is unknown, and printed as a dash.
        ends = {name: table[name].where(table[name].abs() < math.inf) for name in ("value", "low", "high")}
        halves = (ends["high"] - ends["low"]) / 2
        headers += [f">{quantile_name(share)}{f' ({scale.unit})' if scale.unit else ''}", ">from", ">to"]
        columns += [quantile_cells(each, halves, scale.size) for each in ends.values()]
    headers.append(">runs")
    columns.append([f"{n:,}" for n in first["n"]])
    printed = Table(*headers)
    for row in zip(*columns, strict=True):
        printed.row(*row)
    emit(f"\n{scale.name}: quantiles over runs, with 95 % intervals")
    printed.print()
    for share, table in found.items():
        few = int(((table["n"] > 0) & (table["n"] < runs_to_tell(share))).sum())
        if few:
            emit(
                f"{quantile_name(share)}: {few} of {len(table)} intervals have no end on one side or both, "
                f"which takes {runs_to_tell(share):,} runs"
            )
    missing = int(first.loc[first["n"] == first["runs"], "missing"].sum())
    if missing:
        emit(f"{missing:,} runs without {metric} count as worse than all others")


def p_value(p: float) -> str:
    """Format a p-value."""
    if math.isnan(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _warn(study: Study) -> None:
    """Warn of results that are less precise than asked for, or not random."""
    summary = study.summary()
    if "." in study.metric:
        # The means of schemes and points without it do not exist.
        summary = summary[summary["n"] > 0]
    precision = study.rule.precision
    wide = int((~(summary["ci95"] <= (precision or math.inf) * summary["mean"].abs())).sum())
    if precision is not None and wide:
        warn(
            f"{wide} of {len(summary)} means are less precise than {100 * precision:g} % "
            f"after {study.rule.most:,} runs; --runs {study.rule.least}:N with a larger N continues"
        )
    if len(summary) and (summary["sd"] == 0).all():
        warn("all runs of a scheme gave the same: nothing is random in this scenario that matters to it")


# -- What the options mean ---------------------------------------------------------------------------


def read_share(option: str, text: str, what: str = "a share of the mean", example: str = "2%") -> float:
    """Read `2%` or `0.02`, the value of an option."""
    found = quantity(text)
    if found is None or found[1] != "" or not 0 < found[0] < 1:
        raise RefusedError(f"{option}: expected {what} such as {example}, found {text!r}")
    return found[0]


def check_export(export: str | None) -> None:
    """Refuse a format of tables that does not exist."""
    if export not in (None, "csv", "parquet", "datasette"):
        raise RefusedError(f"--export: expected csv, parquet or datasette, found {export!r}")


def _read_shard(request: Request) -> Shard | None:
    """Read `I/N`."""
    if request.shard is None:
        return None
    if request.export is not None or request.html:
        option = "--html" if request.export is None else "--export"
        raise RefusedError(f"{option}: a shard has only a part of the runs; expected at `lasthop merge`")
    try:
        return Shard.parse(request.shard)
    except StudyError as error:
        raise RefusedError(f"--{error}") from None


def check_runs(runs: int) -> None:
    """Refuse more runs than memory can hold."""
    if runs > MOST_RUNS:
        raise RefusedError(
            f"--runs: expected at most {MOST_RUNS:,} of each scheme at each point, found {runs}"
        )


def read_runs(text: str) -> tuple[int, int]:
    """Read `MIN:MAX` or `N`."""
    least, _, most = text.partition(":")
    try:
        runs = int(least), int(most or least)
    except ValueError:
        raise RefusedError(f"--runs: expected MIN:MAX or one number, found {text!r}") from None
    check_runs(runs[1])
    if not 1 <= runs[0] <= runs[1]:
        raise RefusedError(f"--runs: expected 1 <= MIN <= MAX, found {text!r}")
    return runs
