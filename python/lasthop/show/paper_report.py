"""Output of a paper run: JSON, figures and an HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lasthop import plots
from lasthop._lasthop import __version__
from lasthop.core.files import write_text
from lasthop.papers.claims import Contradiction
from lasthop.papers.paper import Claim, Plot
from lasthop.papers.runner import Outcome
from lasthop.plots import DataFigure
from lasthop.show.pictures import Picture, data_url, template


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as JSON, with the keys of docs/reference/json.md."""
    selection = outcome.selection
    reading = {name: choice.name for name, choice in selection.readings.items()}
    return {
        "lasthop": __version__,
        "paper": selection.paper.name,
        "mode": "full" if selection.full else "quick",
        "seed": selection.seed,
        "run": selection.run,
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
                "fitted": selection.paper.fitted(claim),
                "reading": _differing(outcome),
            }
            for claim, judgement in outcome.judgements
        ],
    }


def _differing(outcome: Outcome) -> str:
    """Format the readings that are not the default."""
    selection = outcome.selection
    changed = [
        f"{reading.name}={selection.readings[reading.name].name}"
        for reading in selection.paper.readings
        if selection.readings[reading.name] is not reading.choices[0]
    ]
    return ", ".join(changed) or "default"


def _series(figure: DataFigure) -> list[dict[str, Any]]:
    """Return the data points of each line of a figure."""
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


def write_html(outcome: Outcome, path: Path, figures: Path | None = None) -> Path:
    """Write a self-contained HTML page, with the pictures of `write_figures` in `figures`, or its own."""
    document = json.dumps(as_json(outcome), ensure_ascii=False)
    page = template("paper.html.jinja").render(
        outcome=outcome,
        paper=outcome.selection.paper,
        version=__version__,
        command=_command(outcome),
        counts=outcome.counts(),
        definitions=sum(claim.definition for claim, _ in outcome.judgements),
        data=data_url("application/json", document.encode()),
        images=[
            _Image(plot, Picture.of(figure, figures and figures / f"figure-{plot.id}.png"))
            for plot, figure in outcome.figures
        ],
        campaigns={each.name: each.full for each in outcome.selection.experiments()},
        reading=_differing(outcome),
        failing=_failing,
    )
    return write_text(path, page)


def _failing(claim: Claim) -> str:
    """Return the start of the sentence that states when a claim fails."""
    return "There is no contradiction if" if isinstance(claim, Contradiction) else "It differs if"


def _command(outcome: Outcome) -> str:
    """Return the command that reproduces the outcome."""
    selection = outcome.selection
    parts = ["lasthop paper", selection.paper.name]
    parts += ["--full"] if selection.full else []
    parts += [f"--seed {selection.seed}"] if selection.seed != 1 else []
    parts += [f"--run {selection.run}"] if selection.run else []
    changed = _differing(outcome)
    parts += [f"--reading {each}" for each in changed.split(", ")] if changed != "default" else []
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class _Image:
    """A figure of the paper and its rendered image."""

    plot: Plot
    picture: Picture
