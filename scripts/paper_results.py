"""Write the results of papers in docs/reference/papers.md.

`python scripts/paper_results.py [--runs DIRECTORY] [NAME...]` runs each paper, by default all, in full and in
quick size with seed 1, which takes minutes, and writes the verdicts and their counts. Finished runs are kept
in the directory, if there is one.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

from lasthop.papers import names, paper
from lasthop.papers.paper import Claim, Judgement
from lasthop.papers.runner import Outcome, Selection, run_paper
from lasthop.papers.verdicts import CANNOT_TELL, DIFFERS, VERDICTS

PAGE = Path(__file__).parents[1] / "docs/reference/papers.md"
_WIDTH = 118
_UNDECIDED = "undecided: "


def run(name: str, runs: Path | None, *, full: bool) -> Outcome:
    """Judge all claims of a paper; figures are not drawn."""
    found = paper(name)
    stores = runs and runs / name / ("full" if full else "quick")
    if stores:
        stores.mkdir(parents=True, exist_ok=True)
    return run_paper(Selection(found, found.choose({}), full, (), found.claims), stores)


def _item(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=f"{indent}- ",
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] if text else ""


def _differing(claim: Claim, judgement: Judgement) -> str:
    note = f" {_sentence(judgement.note)}." if judgement.note else ""
    head = f"**{DIFFERS}**: `{claim.id}`, {claim.statement} (printed: {claim.printed})."
    return _item(f"{head} Found: {judgement.found}.{note}")


def section(outcome: Outcome) -> str:
    """Return the list of a paper's verdicts, without definitions."""
    judged = [(claim, judgement) for claim, judgement in outcome.judgements if not claim.definition]
    lines = []
    for verdict in sorted(VERDICTS, key=lambda each: (each == DIFFERS, VERDICTS.index(each))):
        found = [(claim, judgement) for claim, judgement in judged if judgement.verdict == verdict]
        if verdict == DIFFERS:
            lines += [_differing(*each) for each in found]
        elif found:
            lines.append(_item(f"**{verdict}**: " + ", ".join(f"`{claim.id}`" for claim, _ in found) + "."))
        if verdict == CANNOT_TELL:
            lines += [
                _item(f"`{claim.id}`: {judgement.note.rpartition(_UNDECIDED)[2]}.", "  ")
                for claim, judgement in found
            ]
    return "\n".join(lines)


def written(page: str, name: str, full: Outcome, quick: Outcome) -> str:
    """Return the page with the results of a paper in place of those that it has."""
    counts = [*full.counts().values(), quick.counts()[CANNOT_TELL]]
    row = f"| {name} | {' | '.join(map(str, counts))} |"
    page, rows = re.subn(rf"^\| {name} \|(?: \d+ \|)+$", row, page, flags=re.MULTILINE)
    text = f"### {name}\n\n{section(full)}\n"
    page, sections = re.subn(
        rf"^### {name}\n.*?(?=\n##|\Z)", lambda _: text, page, flags=re.MULTILINE | re.DOTALL
    )
    if (rows, sections) != (1, 1):
        raise ValueError(
            f"{PAGE.name} has {rows} rows and {sections} sections for {name}, expected one of each"
        )
    return page


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, metavar="DIRECTORY")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    for each in asked.names or names():
        outcomes = [run(each, asked.runs, full=full) for full in (True, False)]
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), each, *outcomes), encoding="utf-8")
