"""A study's results as an HTML page, in one file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import plots
from lasthop.core.files import write_text
from lasthop.core.titles import shown_title
from lasthop.core.units import aligned, metric_scale, quantile_cells, quantile_name
from lasthop.results.samples import TOTAL
from lasthop.show import study_report
from lasthop.show.pictures import Picture, data_url, template
from lasthop.study.study import Study

if TYPE_CHECKING:
    import pandas

_MOST_DISTRIBUTIONS = 6
"""The most points whose distributions over runs are drawn."""

_METRICS = ("throughput_bps", "goodput", "completion_time_s", "timeouts", "retransmitted_bytes")
"""The metrics that are shown besides the study's own."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page.

    Attributes
    ----------
    heads : list of str
        The headers.
    words : int
        How many columns, from the left, hold words and not numbers.
    rows : list of list of str
        The cells.
    """

    heads: list[str]
    words: int
    rows: list[list[str]]


def write_html(study: Study, path: Path, command: str = "") -> Path:
    """Write a page with the figures, means, comparisons and the scenario of a study.

    Parameters
    ----------
    study : Study
        The study.
    path : Path
        The file.
    command : str, default ""
        The command that repeats it.

    Returns
    -------
    Path
        The file.
    """
    comparison = study.differences()
    others = [
        name
        for name in dict.fromkeys((*study.further, *_METRICS))
        if name != study.metric and name in study.metrics
    ]
    document = json.dumps(study_report.document(study), ensure_ascii=False).encode()
    page = template("study.html.jinja").render(
        study=study,
        title=shown_title(study.scenario),
        command=command,
        progress=study.progress,
        schemes=list(dict.fromkeys(scheme for point in study.points for scheme in point.schemes)),
        metric=metric_scale(study.metric, 1.0).name,
        data=data_url("application/json", document),
        curves=[
            (title, Picture.of(figure))
            for share in (None, *study.quantiles)
            for title, figure in study_report.curve_figures(study, share)
        ],
        distributions=[(title, Picture.of(figure)) for title, figure in _distributions(study)],
        means=_means(study, study.metric),
        others=[(metric_scale(name, 1.0).name, _means(study, name)) for name in others],
        quantiles=[
            (
                f"{quantile_name(share)} of {metric_scale(name, 1.0).name}",
                _quantiles(study, name, share),
            )
            for name in (study.metric, *study.further)
            if name != TOTAL
            for share in study.quantiles
        ],
        comparisons=_comparisons(study, comparison) if len(comparison) else None,
        few=int(study.summary()["few"].sum()),
        toml=study.scenario.to_toml(),
    )
    return write_text(path, page)


def _distributions(study: Study) -> Iterator[tuple[str, plots.DataFigure]]:
    """Yield the distribution of the metric over the runs of each point, unless there are many points."""
    rows = study.to_pandas()
    if len(study.points) > _MOST_DISTRIBUTIONS or study.metric not in rows:
        return
    for point in study.points:
        here = rows
        for name, value in point.parameters.items():
            here = here[here[name] == value]
        # A metric that no run of this point has, such as the completion of an endless transfer.
        if here[study.metric].notna().any():
            title = ", ".join(f"{name} = {value}" for name, value in point.parameters.items())
            yield title, plots.cdf(here, study.metric, title=title)


def _means(study: Study, metric: str) -> Table:
    """Return the means of a metric with their intervals."""
    summary = study.summary(metric)
    parameters = list(study.points[0].parameters)
    greatest = float(summary["mean"].abs().max())
    scale = metric_scale(metric, 0.0 if math.isnan(greatest) else greatest)
    columns: list[Any] = [
        *(summary[name] for name in parameters),
        summary["scheme"],
        *(aligned(summary[name], summary["ci95"], scale.size) for name in ("mean", "low", "high")),
        [f"{runs:,}" for runs in summary["runs"]],
    ]
    heads = [*parameters, "scheme", scale.label, "from", "to", "runs"]
    return Table(heads, len(parameters) + 1, _rows(columns))


def _quantiles(study: Study, metric: str, share: float) -> Table:
    """Return a quantile of a metric with its intervals; a dash is what the runs cannot tell."""
    table = study.quantile(share, metric)
    parameters = list(study.points[0].parameters)
    ends = {name: table[name].where(table[name].abs() < math.inf) for name in ("value", "low", "high")}
    greatest = float(ends["value"].abs().max())
    scale = metric_scale(metric, 0.0 if math.isnan(greatest) else greatest)
    halves = (ends["high"] - ends["low"]) / 2
    columns: list[Any] = [
        *(table[name] for name in parameters),
        table["scheme"],
        *(quantile_cells(each, halves, scale.size) for each in ends.values()),
        [f"{n:,}" for n in table["n"]],
    ]
    heads = [*parameters, "scheme", scale.label, "from", "to", "runs"]
    return Table(heads, len(parameters) + 1, _rows(columns))


def _comparisons(study: Study, comparison: pandas.DataFrame) -> Table:
    """Return the differences between the schemes in pairs of runs."""
    parameters = list(study.points[0].parameters)
    scale = metric_scale(study.metric, float(comparison["difference"].abs().max()))
    unit = f" ({scale.unit})" if scale.unit else ""
    columns: list[Any] = [
        *(comparison[name] for name in parameters),
        [f"{a} against {b}" for a, b in zip(comparison["scheme"], comparison["baseline"], strict=True)],
        *(
            aligned(comparison[name], comparison["ci95"], scale.size, sign="+")
            for name in ("difference", "low", "high")
        ),
        aligned(comparison["ratio"], comparison["ratio_ci95"]),
        ["-" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" for p in comparison["p_holm"]],
        ["significant" if yes else "not significant" for yes in comparison["significant"]],
    ]
    heads = [*parameters, "schemes", f"difference{unit}", "from", "to", "ratio", "p (Holm)", ""]
    return Table(heads, len(parameters) + 1, _rows(columns))


def _rows(columns: list[Any]) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in zip(*columns, strict=True)]
