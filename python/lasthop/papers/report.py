"""The outcome of a paper as JSON, as figures and as an HTML page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np

from lasthop import __version__, plots
from lasthop.files import write_text
from lasthop.papers.paper import Plot
from lasthop.papers.runner import Outcome
from lasthop.plots import DataFigure


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome with the keys of docs/json.md."""
    plan = outcome.plan
    reading = {name: choice.name for name, choice in plan.readings.items()}
    return {
        "lasthop": __version__,
        "paper": plan.paper.name,
        "mode": "full" if plan.full else "quick",
        "seed": plan.seed,
        "run": plan.run,
        "runs": outcome.runs,
        "readings": reading,
        "experiments": [
            {
                "name": name,
                "runs": {"min": each.least, "max": each.most},
                "precision": [
                    {
                        "metric": widest.target.metric,
                        "relative": widest.target.relative,
                        "absolute": widest.target.absolute,
                        "widest": widest.excess,
                    }
                    for widest in each.widest
                ],
            }
            for name, each in outcome.reached.items()
        ],
        "figures": [
            {
                "id": plot.id,
                "title": plot.title,
                "experiments": list(plot.experiments),
                "series": _series(figure),
            }
            for plot, figure in outcome.figures
        ],
        "claims": [
            {
                "id": claim.id,
                "section": claim.section,
                "statement": claim.statement,
                "paper": claim.printed,
                "ours": judgement.found if judgement.ours is None else judgement.ours,
                "ci95": judgement.ci95,
                "found": judgement.found,
                "verdict": judgement.verdict,
                "margin": judgement.margin,
                "fails_if": claim.fails_if,
                "kind": "definition" if claim.definition else "result",
                "note": judgement.note,
                "reading": _differing(outcome),
            }
            for claim, judgement in outcome.judgements
        ],
    }


def _differing(outcome: Outcome) -> str:
    """Return the readings that are not the default, in words."""
    plan = outcome.plan
    changed = [
        f"{reading.name}={plan.readings[reading.name].name}"
        for reading in plan.paper.readings
        if plan.readings[reading.name] is not reading.choices[0]
    ]
    return ", ".join(changed) or "default"


def _series(figure: DataFigure) -> list[dict[str, Any]]:
    """Return the points of each line of a figure."""
    columns = {name: np.asarray(column).tolist() for name, column in figure.data.items()}
    if "y" not in columns:
        labels = columns.pop("line", None) or ["events"] * len(next(iter(columns.values())))
        rows: dict[str, list[dict[str, Any]]] = {}
        for label, *row in zip(labels, *columns.values(), strict=True):
            rows.setdefault(label, []).append(dict(zip(columns, row, strict=True)))
        return [{"name": name, "points": points} for name, points in rows.items()]
    series: dict[str, list[dict[str, Any]]] = {}
    for label, x, y, low, high in zip(
        *(columns[name] for name in ("line", "x", "y", "low", "high")), strict=True
    ):
        ci95 = None if low != low else (high - low) / 2
        series.setdefault(label, []).append({"x": x, "y": y, "ci95": ci95})
    return [{"name": name, "points": points} for name, points in series.items()]


def write_figures(outcome: Outcome, directory: Path) -> list[Path]:
    """Write each figure as PNG, SVG and CSV."""
    written: list[Path] = []
    for plot, figure in outcome.figures:
        written += plots.save(figure, directory / f"figure-{plot.id}")
    return written


def write_html(outcome: Outcome, path: Path) -> Path:
    """Write a self-contained HTML page."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("lasthop.papers", ""), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("report.html.jinja").render(
        outcome=outcome,
        paper=outcome.plan.paper,
        version=__version__,
        images=[(plot, _image(plot, figure)) for plot, figure in outcome.figures],
        campaigns={each.name: each.full for each in outcome.plan.experiments()},
        reading=_differing(outcome),
    )
    return write_text(path, page)


def _image(plot: Plot, figure: DataFigure) -> str:
    """Return a figure as a data URL."""
    file = io.BytesIO()
    plots.save_png(figure, file)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
