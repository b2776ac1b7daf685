"""`lasthop paper`: regenerates the figures of a paper and judges its claims."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from lasthop import papers
from lasthop.cli import complete
from lasthop.cli.failure import RefusedError, exit_resumable
from lasthop.cli.options import AsJson, Jobs, Repair, Seed, Verbose, directory, number
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity, duration
from lasthop.cli.streams import detail, emit, emit_document
from lasthop.cli.table import Table
from lasthop.core.names import unknown
from lasthop.papers import Paper
from lasthop.papers.runner import Outcome, Selection, run_paper
from lasthop.papers.verdicts import AGREES
from lasthop.study import StudyError


def paper(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete.paper, help="The paper. Without it, list the papers."
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            autocompletion=complete.figure,
            help="Draw only this figure, without claims; may be repeated.",
        ),
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=CHOICE",
            autocompletion=complete.reading,
            help="Choose another reading of what the paper leaves open; may be repeated.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="As many runs as the claims need, or few.")
    ] = False,
    seed: Seed = 1,
    run: Annotated[int, number("The run shown in packet traces.")] = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Directory of the results; by default NAME.paper.")] = None,
    repair: Repair = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Regenerate a paper's figures, and judge each claim of its text."""
    if name is None:
        _list(as_json)
        return
    # It draws, and matplotlib takes long to import.
    from lasthop.show import paper_report

    selection = _selection(name, figure or [], reading or [], full=full, seed=seed, run=run)
    results = out or Path(f"{selection.paper.name}.paper")
    try:
        with Output(results) as output, Activity() as activity:
            began = time.monotonic()
            outcome = run_paper(selection, results, jobs, activity.show, repair=repair)
            detail(f"made {outcome.runs:,} runs in {duration(time.monotonic() - began)}")
            activity.doing("writing results")
            paper_report.write_figures(outcome, output.staging)
            text = json.dumps(paper_report.as_json(outcome), indent=2, ensure_ascii=False)
            output.text("results.json", text + "\n")
            page = paper_report.write_html(outcome, output.staging / "report.html", output.staging).name
    except StudyError as error:
        raise RefusedError.of(error) from None
    except KeyboardInterrupt:
        exit_resumable(f"the finished runs of sweeps are kept in {results}")
    if as_json:
        emit_document(text)
    else:
        _print(outcome)
        emit(f"\nwritten to {results / page}, beside it the figures with their numbers and results.json")


def _selection(
    name: str, figures: list[str], readings: list[str], *, full: bool, seed: int, run: int
) -> Selection:
    """Return the paper with the figures, readings and claims that the options choose."""
    if name not in papers.names():
        raise RefusedError(unknown("paper", name, papers.names()))
    found = papers.paper(name)
    drawn = [figure for figure in found.figures if not figures or figure.id in figures]
    missing = {*figures} - {figure.id for figure in drawn}
    if missing:
        there = ", ".join(figure.id for figure in found.figures)
        raise RefusedError(
            f"{found.name} has no figure {', '.join(sorted(missing))}; ", remedy=f"it has {there}"
        )
    try:
        chosen = found.choose(dict(_pair(text) for text in readings))
    except ValueError as error:
        raise RefusedError.of(error) from None
    # With --figure no claims are judged: they would need all experiments.
    claims = () if figures else found.claims
    return Selection(found, chosen, full, drawn, claims, seed, run)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise RefusedError(remedy="expected NAME=CHOICE", found=f"{text!r}", option="--reading")
    return name, value


def _list(as_json: bool) -> None:
    if as_json:
        emit_document(
            json.dumps([_described(each) for each in papers.papers()], indent=2, ensure_ascii=False)
        )
        return
    table = Table("paper", "title", "source", ">figures", ">claims")
    for each in papers.papers():
        table.row(each.name, each.title, each.source, str(len(each.figures)), str(len(each.claims)))
    table.print()
    for each in papers.papers():
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
