"""Which of the judged remedies to advise: effort, gain and harm over all uses decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lasthop.advice import remedies
from lasthop.advice.judgement import Judgement, Remedy
from lasthop.advice.remedies import Deployment
from lasthop.advice.uses import Measure
from lasthop.race import Arm


def ladder(found: Sequence[Remedy], measure: Measure) -> list[Remedy]:
    """Return the remedies to advise for one use, in order of effort.

    They are the best of the easiest worthwhile remedies, then those that gain a worthwhile amount more for
    more effort. Of settings an easier one is left out if it gains less than half of a later one.
    """
    candidates = [_Candidate(each, each.deployment.effort) for each in found if _advisable(each)]
    return _climb(
        candidates,
        lambda each: measure.in_thresholds(each.remedy.gain),
        lambda one, other: measure.exceeds(one.remedy.gain, other.remedy.gain),
    )


def ladder_for_all(judgements: Sequence[Judgement]) -> list[Remedy]:
    """Return the remedies to advise for several uses, in order of effort, as judged for the first use.

    No advised remedy harms any of the uses. The first is the easiest of those that are worthwhile for the
    most uses; each later one gains a worthwhile amount more for some use, and loses that for none.

    Only those parts of a remedy count as effort that its gains need: with a queue for each flow, calls do not
    need the servers of downloads to change.
    """
    candidates = _harmless(judgements)
    if not candidates:
        return []
    most = max(each.served for each in candidates)
    first = min(each.effort for each in candidates if each.served == most)
    candidates = [each for each in candidates if each.effort > first or each.served == most]

    def gain(each: _Candidate) -> float:
        both = zip(judgements, each.judged, strict=True)
        return sum(judgement.measure.in_thresholds(remedy.gain) for judgement, remedy in both)

    def exceeds(one: _Candidate, other: _Candidate) -> bool:
        both = list(zip(judgements, one.judged, other.judged, strict=True))
        return any(each.measure.exceeds(ours.gain, theirs.gain) for each, ours, theirs in both) and not any(
            each.measure.exceeds(theirs.gain, ours.gain) for each, ours, theirs in both
        )

    return _climb([each for each in candidates if each.effort >= first], gain, exceeds)


def without_harm(judgement: Judgement, first: Remedy, harms: Callable[[Arm], bool | None]) -> Remedy | None:
    """Return the easiest remedy that gains about as much as the first advised one, and harms no other use.

    Parameters
    ----------
    judgement : Judgement
        The judgement of the only use.
    first : Remedy
        The first advised remedy.
    harms : callable
        Whether an arm harms another use; None if its effects are unknown.
    """
    if not harms(first.arm):
        return None
    others = alternatives(judgement.remedies, first, judgement.measure)
    return next((each for each in others if harms(each.arm) is False), None)


def alternatives(found: Sequence[Remedy], first: Remedy, measure: Measure) -> list[Remedy]:
    """Return the other remedies that gain about as much as the first advised one, the easiest first."""
    others = [
        each
        for each in found
        if _advisable(each) and each is not first and not measure.exceeds(first.gain, each.gain)
    ]
    return sorted(others, key=lambda each: (each.deployment.effort, -each.gain))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A remedy with the effort that its gains need, and what it is judged to be for each use."""

    remedy: Remedy
    effort: int
    judged: tuple[Remedy, ...] = ()
    served: int = 1


def _advisable(remedy: Remedy) -> bool:
    return remedy.worth and remedy.deployment.available


def _climb(
    candidates: Sequence[_Candidate],
    gain: Callable[[_Candidate], float],
    exceeds: Callable[[_Candidate, _Candidate], bool],
) -> list[Remedy]:
    rungs: list[_Candidate] = []
    for effort in sorted({each.effort for each in candidates}):
        best = max((each for each in candidates if each.effort == effort), key=gain)
        if not rungs or exceeds(best, rungs[-1]):
            rungs.append(best)
    while (
        len(rungs) > 1
        and rungs[1].effort <= remedies.SETTINGS
        and rungs[1].served >= rungs[0].served
        and gain(rungs[0]) < gain(rungs[1]) / 2
    ):
        del rungs[0]
    return [each.remedy for each in rungs]


def _harmless(judgements: Sequence[Judgement]) -> list[_Candidate]:
    """Return the remedies that are worthwhile for some use, and harm none."""
    found = []
    for remedy in judgements[0].remedies:
        judged = [judgement.of(remedy.arm) for judgement in judgements]
        known = tuple(each for each in judged if each is not None)
        both = list(zip(judgements, judged, strict=True))
        served = sum(each.worth for each in known)
        if len(known) < len(judgements) or not served or not remedy.deployment.available:
            continue
        if any(each is not None and not judgement.measure.tolerable(each.gain) for judgement, each in both):
            continue
        deployment = _least(judgements, known)
        # As judged for the first use, installed as far as any use needs it.
        found.append(_Candidate(replace(remedy, deployment=deployment), deployment.effort, known, served))
    return found


def _least(judgements: Sequence[Judgement], judged: Sequence[Remedy]) -> Deployment:
    """Return the deployment of a remedy whose parts are as hard as those uses find them that need them."""
    needed = [
        (each, {part.name for part in _needed(judgement, each).deployment.parts})
        for judgement, each in zip(judgements, judged, strict=True)
        if each.worth
    ]
    parts = []
    for index, part in enumerate(judged[0].deployment.parts):
        asking = [each.deployment.parts[index] for each, names in needed if part.name in names]
        if asking:
            parts.append(max(asking, key=lambda each: each.effort))
        else:
            every = [each.deployment.parts[index] for each in judged]
            parts.append(min(every, key=lambda each: each.effort))
    return replace(judged[0].deployment, parts=tuple(parts))


def _needed(judgement: Judgement, remedy: Remedy) -> Remedy:
    """Return the easiest remedy of a subset of the parts that gains about as much for a use."""
    now = judgement.now.arm
    subsets = [
        each
        for each in judgement.remedies
        if _within(each.arm, remedy.arm, now) and not judgement.measure.exceeds(remedy.gain, each.gain)
    ]
    return min(subsets, key=lambda each: each.deployment.effort, default=remedy)


def _within(part: Arm, whole: Arm, now: Arm) -> bool:
    """Whether an arm changes a subset of what another one changes."""
    return (
        part.sender in (whole.sender, now.sender)
        and part.scheme in (whole.scheme, now.scheme)
        and all(setting in whole.settings for setting in part.settings)
    )
