"""Reproduced papers as text and HTML."""

from __future__ import annotations

from html import escape

from lasthop.papers.runner import Outcome
from lasthop.show.html import table
from lasthop.show.notebook import html_of, text_of


@text_of.register
def _outcome_text(outcome: Outcome) -> str:
    """Return the text that stands for a reproduced paper: its verdicts."""
    return f"<Outcome of {outcome.selection.paper.title!r}: {_verdicts(outcome)}>"


@html_of.register
def _outcome_html(outcome: Outcome) -> str:
    """Return a reproduced paper as HTML: its claims with their verdicts, and its figures to unfold."""
    paper = outcome.selection.paper
    caption = f"<b>{escape(paper.title)}</b> · {escape(paper.source)}"
    heads = ["section", "claim", "paper", "found", "verdict"]
    rows = [
        [claim.section, claim.statement, claim.printed, judgement.found, judgement.verdict]
        for claim, judgement in outcome.judgements
    ]
    html = table(caption, heads if rows else [], rows, _verdicts(outcome), align="left")
    for plot, figure in outcome.figures:
        html += f"<details><summary>Figure {escape(plot.id)}: {escape(plot.title)}</summary>"
        html += f"{figure._repr_html_()}</details>"
    return html


def _verdicts(outcome: Outcome) -> str:
    found = ", ".join(f"{count} {verdict}" for verdict, count in outcome.counts().items())
    judged = found if outcome.judgements else "no claims judged"
    return f"{judged}; {len(outcome.figures)} figures from {outcome.runs:,} runs"
