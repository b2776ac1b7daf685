"""Text of advice that the terminal, the page and notebooks share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from lasthop.advice.advice import Advice
from lasthop.advice.judgement import Effect, Judgement, Remedy
from lasthop.advice.remedies import Part
from lasthop.advice.uses import USES
from lasthop.fitting import Assumption

_Proposed = TypeVar("_Proposed")


def further(judgement: Judgement, remedy: Remedy) -> list[str]:
    """Format the additional measures of a remedy; empty where they are unknown."""
    both = zip(judgement.further, remedy.further, strict=True)
    return [measure.write(value) if math.isfinite(value) else "" for measure, value in both]


def without_use(judgement: Judgement) -> list[tuple[str, list[str]]]:
    """Group the useless remedies by reason. An unknown reason is empty, and comes last."""
    found: dict[str, list[str]] = {}
    for each in judgement.useless:
        found.setdefault(each.why, []).append(each.title)
    return sorted(found.items(), key=lambda each: not each[0])


def caution(advice: Advice, remedy: Remedy) -> str:
    """Explain an interval of an advised remedy that includes losses; empty if none does."""
    if advice.sure(remedy):
        return ""
    return (
        "significant on average over the links that the measurement allows; on a single one of them "
        "it may be a loss, as the interval shows"
    )


def proposals(advised: Sequence[_Proposed], harmless: _Proposed | None) -> Iterator[tuple[str, _Proposed]]:
    """Yield the advised remedies and the harmless one, each with the words that introduce it."""
    for index, each in enumerate(advised):
        yield "do this" if index == 0 else "for more effort", each
        if index == 0 and harmless is not None:
            yield "without harm to other uses", harmless


def parts(advice: Advice) -> list[Part]:
    """Return each part of the remedies once, the easiest first."""
    found: dict[str, Part] = {}
    for judgement in advice.judgements:
        for remedy in judgement.remedies:
            for part in remedy.deployment.parts:
                found.setdefault(part.name, part)
    return sorted(found.values(), key=lambda part: part.effort)


def by_availability(judgement: Judgement) -> tuple[list[Remedy], list[Remedy]]:
    """Return the remedies to be had today with the current configuration, and those that no product has."""
    every = judgement.remedies
    return (
        [each for each in every if each.deployment.available],
        [each for each in every if not each.deployment.available],
    )


def changed(effect: Effect) -> str:
    """Describe how a remedy harms another use."""
    return "; ".join(
        f"{each.measure.heading} {each.measure.write(each.now)} now, then {each.measure.write(each.then)}"
        for each in effect.changes
        if each.harms
    )


def other_uses(advice: Advice) -> list[str]:
    """Return the column headings of other uses: titles, with the measures of uses that have several."""
    return list(dict.fromkeys(_headed(effect) for each in advice.effects.values() for effect in each))


def _headed(effect: Effect) -> str:
    headings = [each.measure.heading for each in effect.changes]
    return f"{effect.use.title} ({', '.join(headings)})" if len(headings) > 1 else effect.use.title


def effect_text(cell: tuple[str, str]) -> str:
    """Return a cell of the table of effects as text.

    Examples
    --------
    >>> effect_text(("3.5 s", "better")), effect_text(("3.5 s", ""))
    ('3.5 s (better)', '3.5 s')
    """
    measures, word = cell
    return f"{measures} ({word})" if word else measures


def effects(advice: Advice) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the rows of the table of effects: the current configuration, then each remedy.

    A row is a title, and for each other use a cell: the measures, and `"worse"`, `"better"` or `""`.
    """
    titles = {each.arm: each.title for each in advice.remedies}
    now: dict[str, str] = {}
    rows = []
    for arm, found in advice.effects.items():
        cells = {}
        for effect in found:
            word = "worse" if effect.harms else "better" if effect.helps else ""
            then, before = (
                ", ".join(each.measure.write(getattr(each, when)) for each in effect.changes)
                for when in ("then", "now")
            )
            cells[_headed(effect)] = (then, word)
            now.setdefault(_headed(effect), before)
        rows.append((titles.get(arm, arm.label), cells))
    names = other_uses(advice)
    yield "now", [(now.get(name, ""), "") for name in names]
    for title, cells in rows:
        yield title, [cells.get(name, ("", "")) for name in names]


def assumptions(advice: Advice) -> list[str]:
    """Return the assumptions about the link and its uses."""
    notes = [note for note in advice.link.notes if isinstance(note, Assumption)]
    if not advice.link.knows_uplink_losses and any(each.use.upward for each in advice.judgements):
        notes.append(Assumption("the uplink loses as many packets as the downlink."))
    return [*notes, *_shortened(advice)]


def _shortened(advice: Advice) -> list[str]:
    """Return a note if the link is so fast that runs are shorter than on others."""
    effects = (effect.use for each in advice.effects.values() for effect in each)
    used = [*(judgement.use for judgement in advice.judgements), *effects]
    shorter = {use.title: use for use in used if use.limit_s < USES[use.name].limit_s}
    if not shorter:
        return []
    each = (f"{title} {use.limit} instead of {USES[use.name].limit}" for title, use in shorter.items())
    return [
        f"Shortened, since the link is fast: {', '.join(each)}. Gains and their intervals are those of such "
        "short ones, of which slow start takes a larger share."
    ]
