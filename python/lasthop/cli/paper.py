"""`lasthop paper`: regenerates the figures of a paper and judges its claims."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from lasthop.cli.failure import RefusedError, exit_resumable
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity, duration
from lasthop.cli.streams import detail, emit, emit_document
from lasthop.cli.table import Table
from lasthop.core.names import unknown
from lasthop.papers import Paper, names, paper, papers
from lasthop.papers.runner import Outcome, Selection, run_paper
from lasthop.papers.verdicts import AGREES
from lasthop.show import paper_report
from lasthop.study import StudyError


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    name: str | None
    figures: list[str]
    readings: list[str]
    full: bool
    seed: int
    run: int
    jobs: int | None
    out: Path | None
    as_json: bool


def execute(request: Request) -> None:
    """List the papers, or run one."""
    if request.name is None:
        _list(request.as_json)
        return
    selection = _selection(request)
    directory = request.out or Path(f"{selection.paper.name}.paper")
    try:
        with Output(directory) as output, Activity() as activity:
            began = time.monotonic()
            outcome = run_paper(selection, directory, request.jobs, activity.show)
            detail(f"made {outcome.runs:,} runs in {duration(time.monotonic() - began)}")
            activity.doing("writing results")
            paper_report.write_figures(outcome, output.staging)
            text = json.dumps(paper_report.as_json(outcome), indent=2, ensure_ascii=False)
            output.text("results.json", text + "\n")
            page = directory / paper_report.write_html(outcome, output.staging / "report.html").name
    except StudyError as error:
        raise RefusedError(str(error)) from None
    except KeyboardInterrupt:
        exit_resumable(f"the finished runs of sweeps are kept in {directory}")
    if request.as_json:
        emit_document(text)
    else:
        _print(outcome)
        emit(f"\nwritten to {page}, beside it the figures with their numbers and results.json")


def _selection(request: Request) -> Selection:
    assert request.name is not None
    if request.name not in names():
        raise RefusedError(unknown("paper", request.name, names()))
    found = paper(request.name)
    figures = [figure for figure in found.figures if not request.figures or figure.id in request.figures]
    missing = set(request.figures) - {figure.id for figure in figures}
    if missing:
        there = ", ".join(figure.id for figure in found.figures)
        raise RefusedError(f"{found.name} has no figure {', '.join(sorted(missing))}; it has {there}")
    try:
        readings = found.choose(dict(_pair(text) for text in request.readings))
    except ValueError as error:
        raise RefusedError(str(error)) from None
    # With --figure no claims are judged: they would need all experiments.
    claims = () if request.figures else found.claims
    return Selection(found, readings, request.full, figures, claims, request.seed, request.run)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise RefusedError(f"--reading: expected NAME=CHOICE, found {text!r}")
    return name, value


def _list(as_json: bool) -> None:
    if as_json:
        emit_document(json.dumps([_described(each) for each in papers()], indent=2, ensure_ascii=False))
        return
    table = Table("paper", "title", "source", ">figures", ">claims")
    for each in papers():
        table.row(each.name, each.title, each.source, str(len(each.figures)), str(len(each.claims)))
    table.print()
    for each in papers():
        emit(f"\nreadings of {each.name} (--reading NAME=CHOICE; the first is the default):\n")
        readings = Table("reading", "choices", "question")
        for reading in each.readings:
            readings.row(reading.name, ", ".join(choice.name for choice in reading.choices), reading.question)
        readings.print()


def _described(each: Paper) -> dict[str, object]:
    return {
        "name": each.name,
        "title": each.title,
        "source": each.source,
        "figures": [figure.id for figure in each.figures],
        "claims": [claim.id for claim in each.claims],
        "readings": {reading.name: [choice.name for choice in reading.choices] for reading in each.readings},
    }


def _print(outcome: Outcome) -> None:
    selection = outcome.selection
    emit(f"{selection.paper.title} ({selection.paper.source})\n")
    if outcome.judgements:
        table = Table("section", "claim", "paper", "found", "agrees if", "verdict")
        for claim, judgement in outcome.judgements:
            verdict = f"{judgement.verdict} (definition)" if claim.definition else judgement.verdict
            found = (judgement.found, judgement.margin, verdict)
            table.row(claim.section, claim.statement, claim.printed, *found)
        table.print()
        counts = ", ".join(f"{count} {verdict}" for verdict, count in outcome.counts().items())
        emit(f"\n{counts}; definitions not counted")
        notes = [
            (claim.id, each) for claim, each in outcome.judgements if each.note and each.verdict != AGREES
        ]
        if notes:
            emit("\nwhere a claim does not agree:")
        for name, each in notes:
            emit(f"  {name}: {each.note}")
    if outcome.reached:
        emit("\nprecision:")
    for name, reached in outcome.reached.items():
        emit(f"  {name}: {reached.text}")
    size = "full" if selection.full else "quick"
    emit(f"\n{len(outcome.figures)} figures from {outcome.runs:,} runs ({size}, seed {selection.seed})")
