"""The results of a study: their files and tables."""

from __future__ import annotations

import math
import os
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lasthop.cli.failure import warn
from lasthop.cli.output import Output
from lasthop.cli.scenario import unused_by_schemes
from lasthop.cli.streams import emit, emit_document
from lasthop.cli.table import Table, p_value, printable
from lasthop.core.statistics import runs_to_tell
from lasthop.core.titles import shown_title
from lasthop.core.units import aligned, interval_cells, metric_scale, quantile_cells, quantile_name
from lasthop.results.samples import TOTAL
from lasthop.show import study_files
from lasthop.study import Study

if TYPE_CHECKING:
    import pandas

STORE = "study.sqlite"
"""The name of the store in the directory of a study."""


@dataclass(frozen=True)
class Results:
    """The results of a study: the text of `--json`, the names of the files, and the tables."""

    document: str
    files: list[str]
    summary: pandas.DataFrame
    comparison: pandas.DataFrame


def write(study: Study, directory: Path, export: str | None, html: bool) -> Results:
    """Write the results of a study into a directory.

    A finished study may be on a medium that cannot be written to. Then nothing is written, unless a file is
    asked for.
    """
    command = shlex.join(["lasthop", *sys.argv[1:]])
    read_only = directory.exists() and not os.access(directory, os.W_OK) and export is None and not html
    with ExitStack() as closed_later:
        if read_only:
            place = Path(closed_later.enter_context(TemporaryDirectory()))
        else:
            place = closed_later.enter_context(Output(directory)).staging
        written = study_files.write(study, place, export, html, command)
        document = written[0].read_text(encoding="utf-8")
    files = [] if read_only else [path.name for path in written]
    return Results(document, files, study.summary(), study.differences())


def show(study: Study, directory: Path, results: Results, as_json: bool) -> None:
    """Print the results of a study, and warn of what they lack."""
    summary, comparison = results.summary, results.comparison
    if as_json:
        emit_document(results.document)
    else:
        if study.scenario.title:
            emit(f"{printable(shown_title(study.scenario))}\n")
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
        if results.files:
            emit(f"\nwritten to {directory}: {', '.join([STORE, *results.files])}")
        else:
            emit(f"\nnothing is written: {directory} is read only")
    _warn(study)


def _print_summary(study: Study, metric: str, summary: pandas.DataFrame) -> None:
    """Print the mean of a metric for each point and scheme."""
    parameters = list(study.points[0].parameters)
    scale = metric_scale(metric, float(summary["mean"].abs().max()))
    means = aligned(summary["mean"], summary["ci95"], scale.size)
    head, intervals = interval_cells(
        summary["mean"], (summary["low"], summary["high"]), summary["ci95"], scale.size
    )
    headers = [*parameters, "scheme", f">{scale.label}", f">{head}"]
    cells = [*(summary[name] for name in parameters), summary["scheme"], means, intervals]
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
    head, intervals = interval_cells(
        comparison["difference"],
        (comparison["low"], comparison["high"]),
        comparison["ci95"],
        scale.size,
        sign="+",
    )
    ratio_head, ratio_intervals = interval_cells(
        comparison["ratio"], (comparison["ratio_low"], comparison["ratio_high"]), comparison["ratio_ci95"]
    )
    heads = [f">difference{unit}", f">{head}", ">ratio", f">{ratio_head}", ">p (Holm)", ""]
    table = Table(*parameters, "scheme", *heads)
    columns = [
        *(comparison[name] for name in parameters),
        comparison["scheme"],
        aligned(comparison["difference"], comparison["ci95"], scale.size, sign="+"),
        intervals,
        aligned(comparison["ratio"], comparison["ratio_ci95"]),
        ratio_intervals,
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
