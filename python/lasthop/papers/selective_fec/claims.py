"""The claims of the paper's text, each with its section."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from lasthop.core.quantity import number
from lasthop.papers.claims import Contradiction, CustomClaim, Finding, as_gain
from lasthop.papers.evidence import At, Evidence
from lasthop.papers.paper import Claim
from lasthop.papers.selective_fec.figures import LABELS, SCHEME, units
from lasthop.papers.verdicts import (
    SAME,
    Criterion,
    Measured,
    Region,
    above,
    below,
    calculated,
    clearly_below,
    difference,
    greatly_below,
    ratio,
    same,
    slightly_below,
    within,
)

SMALL, LARGE = ("1 dB", "2 dB", "3 dB"), ("13 dB", "14 dB", "15 dB")
"""The values of the fading margin that count as small and as large: the ends of the figures' axis."""

AXIS = "read off a figure whose axis has marks every unit: a tenth of one"


def _at(margin: str, policy: str, doppler: str = "0.1") -> dict[str, str]:
    return {"margin": margin, "doppler": doppler, "protect": policy}


def _versus(evidence: Evidence, experiment: str, ours: At, theirs: At) -> Measured:
    """Return the ratio of completion times in paired runs, which have the same fades."""
    return evidence.sweep(experiment).ratio("completion_time_s", (SCHEME, ours), (SCHEME, theirs))


def _margins(evidence: Evidence) -> list[str]:
    return evidence.sweep("ten").values("margin")


def _excesses(evidence: Evidence, policy: str) -> dict[str, Measured]:
    """Return the completion time at each margin, relative to the largest margin."""
    *others, largest = _margins(evidence)
    return {margin: _versus(evidence, "ten", _at(margin, policy), _at(largest, policy)) for margin in others}


def _total_constant(evidence: Evidence) -> Finding:
    excesses = _excesses(evidence, "all")
    criteria = [Criterion(each, same(), margin) for margin, each in excesses.items()]
    furthest = max((criterion.quantity.at() for criterion in criteria), key=lambda each: abs(each.mean - 1))
    return Finding(criteria, f"beside 15 dB up to {as_gain(furthest, 1)}")


def _insensitive(evidence: Evidence) -> Finding:
    ours, theirs = (_excesses(evidence, policy)["1 dB"] for policy in ("selective", "none"))
    text = f"from 15 to 1 dB {as_gain(ours.at())}; no FEC {as_gain(theirs.at())}"
    less = difference(Measured(0.5 * (theirs.values - 1)), Measured(ours.values - 1))
    region = above(0.0, 'less than half the increase without FEC: our margin for "insensitive"')
    return Finding([Criterion(less, region)], text)


def _improvement(experiment: str, policies: tuple[str, ...], region: Region, evidence: Evidence) -> Finding:
    """Compare completion times with and without protection at small margins."""
    criteria, texts = [], []
    for policy in policies:
        found = {
            margin: _versus(evidence, experiment, _at(margin, policy), _at(margin, "none"))
            for margin in SMALL
        }
        criteria += [
            Criterion(each, region, f"{LABELS[policy]} at {margin}") for margin, each in found.items()
        ]
        texts.append(f"{LABELS[policy]} {', '.join(f'{each.at().mean:.0%}' for each in found.values())}")
    return Finding(criteria, f"of the time without FEC, at 1, 2 and 3 dB: {'; '.join(texts)}")


def _no_fec_fastest(region: Region, evidence: Evidence) -> Finding:
    criteria = [
        Criterion(_versus(evidence, "ten", _at(margin, "none"), _at(margin, "all")), region, f"at {margin}")
        for margin in LARGE
    ]
    gains = ", ".join(as_gain(criterion.quantity.at(), 1) for criterion in criteria)
    return Finding(criteria, f"beside total at 13, 14 and 15 dB: {gains}")


def _doppler(evidence: Evidence) -> Finding:
    effects = {
        (policy, margin): _versus(evidence, "ten", _at(margin, policy, "0.2"), _at(margin, policy))
        for policy in ("none", "selective", "all")
        for margin in (*SMALL, *LARGE)
    }

    def furthest(policy: str, margins: tuple[str, ...]) -> float:
        return max(abs(effects[policy, margin].at().mean - 1) for margin in margins)

    text = ", ".join(f"{policy} {furthest(policy, SMALL):.0%}" for policy in ("none", "selective", "all"))
    remarkable = above(
        1 + SAME,
        ("more by over a tenth with no FEC at small margins: remarkable, whereas others are the same"),
    )
    criteria = []
    for (policy, margin), each in effects.items():
        region = remarkable if policy == "none" and margin in SMALL else same()
        criteria.append(Criterion(each, region, f"{LABELS[policy]} at {margin}"))
    note = f"at large margins no FEC {furthest('none', LARGE):.0%}"
    return Finding(criteria, f"at small margins up to: {text}", note)


def _less_with_longer_bursts(metrics: tuple[str, ...], unit: str, note: str, evidence: Evidence) -> Finding:
    """Compare the sum of some metrics without FEC, at Doppler frequency 0.1 and at 0.2."""
    sweep = evidence.sweep("ten")
    criteria, texts = [], []
    for margin in SMALL:
        longer, shorter = (
            np.sum([sweep.sample(name, SCHEME, _at(margin, "none", doppler)) for name in metrics], axis=0)
            for doppler in ("0.1", "0.2")
        )
        criteria.append(
            Criterion(ratio(longer, shorter), below(text="less with 0.1 than with 0.2"), f"at {margin}")
        )
        texts.append(f"{longer.mean():.2f} for {shorter.mean():.2f}")
    return Finding(criteria, f"{', '.join(texts)} {unit} with 0.1 for 0.2, at 1, 2 and 3 dB", note)


def _gap(evidence: Evidence, experiment: str, margin: str) -> Measured:
    """Return the completion time with selective protection less that with total protection, in seconds."""
    selective, total = (
        evidence.sweep(experiment).quantity("completion_time_s", SCHEME, _at(margin, policy))
        for policy in ("selective", "all")
    )
    return difference(selective, total)


def _wider_gap(evidence: Evidence) -> Finding:
    criteria, texts = [], []
    region = above(0.0, "larger with 50 segments at each small margin, in seconds, whichever is ahead")
    for margin in SMALL:
        ten, fifty = (_gap(evidence, name, margin) for name in ("ten", "fifty"))
        wider, narrower = (Measured(np.sign(each.at().mean) * each.values) for each in (fifty, ten))
        criteria.append(Criterion(difference(wider, narrower), region, f"at {margin}"))
        texts.append(f"{fifty.at().mean:+.2f} s ({ten.at().mean:+.3f} s) at {margin}")
    return Finding(criteria, f"selective beside total, 50 segments (10): {', '.join(texts)}")


def _prevented(evidence: Evidence) -> Finding:
    # With ten segments hardly any retransmission is at the left edge of the window, with fifty many are.
    criteria, texts = [], []
    for experiment, segments in (("ten", 10), ("fifty", 50)):
        left = {
            margin: evidence.sweep(experiment).ratio(
                "timeouts", (SCHEME, _at(margin, "selective")), (SCHEME, _at(margin, "none"))
            )
            for margin in SMALL
        }
        region = below(0.5, "most: over half of the timeouts without FEC")
        criteria += [
            Criterion(each, region, f"{segments} segments at {margin}") for margin, each in left.items()
        ]
        shares = ", ".join(f"{each.at().mean:.0%}" for each in left.values())
        texts.append(f"{shares} with {segments} segments")
    return Finding(criteria, f"of the timeouts without FEC, at 1, 2 and 3 dB: {'; '.join(texts)}")


RETRANSMISSIONS = (2, 5, 9)
"""One retransmission fewer than attempts: three attempts, the paper's six, and ten."""


def _six_attempts(evidence: Evidence) -> Finding:
    """Compare losses with fewer attempts, and the time with more, with those at six."""
    sweep = evidence.sweep("attempts")
    fewer, six, more = sweep.values("retransmissions")
    criteria, texts = [], []
    for protect in sweep.values("protect"):
        for margin in sweep.values("margin"):
            at = {
                each: {"retransmissions": each, "protect": protect, "margin": margin}
                for each in (fewer, six, more)
            }
            label = f"{LABELS[protect]} at {margin}"
            lost = sweep.ratio("link_discards", (SCHEME, at[six]), (SCHEME, at[fewer]))
            time = sweep.ratio("completion_time_s", (SCHEME, at[more]), (SCHEME, at[six]))
            criteria += [
                Criterion(lost, below(text="fewer segments lost than with three"), f"losses, {label}"),
                Criterion(time, same(), f"time with ten attempts, {label}"),
            ]
            texts.append(f"{as_gain(time.at())} ({label})")
    return Finding(criteria, f"with ten attempts a transfer takes {', '.join(texts)}")


VERSIONS = ("tahoe", "reno", "newreno", "sack")
"""Versions of TCP, by their recovery."""

FILE_SIZES = (10, 50, 200)
"""Sizes of files in segments: the paper's, and a longer one. Of six or fewer, every segment is protected."""


def _versions(evidence: Evidence) -> Finding:
    """Compare completion times with selective and without protection, for each version of TCP."""
    sweep = evidence.sweep("versions")
    criteria = []
    for version in VERSIONS:
        for margin in sweep.values("margin"):
            ours, theirs = (
                (SCHEME, {"margin": margin, "protect": policy, "flavour": version})
                for policy in ("selective", "none")
            )
            saved = sweep.ratio("completion_time_s", ours, theirs)
            criteria.append(Criterion(saved, greatly_below(), f"{version} at {margin}"))
    text = ", ".join(f"{criterion.quantity.at().mean:.0%} ({criterion.label})" for criterion in criteria)
    return Finding(criteria, f"of the time without FEC: {text}")


def _short_flows(evidence: Evidence) -> Finding:
    """Compare the share of the time that selective protection leaves, by the size of the file."""
    sweep = evidence.sweep("file-sizes")
    criteria, texts = [], []
    for margin in sweep.values("margin"):
        left = []
        for size in sweep.values("size"):
            ours, theirs = (
                (SCHEME, {"margin": margin, "protect": policy, "size": size})
                for policy in ("selective", "none")
            )
            left.append(sweep.ratio("completion_time_s", ours, theirs))
        shares = ", ".join(f"{each.at().mean:.0%}" for each in left)
        texts.append(f"{shares} with {', '.join(map(str, FILE_SIZES))} segments at {margin}")
        for longer, name in zip(left[1:], FILE_SIZES[1:], strict=True):
            region = below(0.0, "less is left with 10 segments than with more")
            criteria.append(
                Criterion(difference(left[0], longer), region, f"beside {name} segments at {margin}")
            )
    return Finding(criteria, f"of the time without FEC: {'; '.join(texts)}")


def _close_to_none(evidence: Evidence) -> Finding:
    criteria, texts = [], []
    for margin in LARGE:
        near = _versus(evidence, "fifty", _at(margin, "selective"), _at(margin, "none"))
        far = _versus(evidence, "fifty", _at(margin, "selective"), _at(margin, "all"))
        criteria += [
            Criterion(near, same(), f"no FEC at {margin}"),
            Criterion(far, greatly_below(), f"total at {margin}"),
        ]
        texts.append(f"{as_gain(near.at())} and {as_gain(far.at())}")
    return Finding(criteria, f"beside no FEC and total at 13, 14 and 15 dB: {', '.join(texts)}")


def _three(evidence: Evidence) -> Finding:
    found = {margin: units(evidence, "ten", _at(margin, "none")) for margin in _margins(evidence)}
    falls = below(0.0, "fewer at each margin than at the one below")
    criteria = [
        Criterion(difference(found[after], found[before]), falls, f"{before} to {after}")
        for before, after in pairwise(found)
    ]
    criteria.append(Criterion(found["15 dB"], within(3.0, 0.1, f"2.9 to 3.1: {AXIS}"), "at 15 dB"))
    first, last = found["1 dB"].at(), found["15 dB"].at()
    text = f"{last.mean:.2f} at 15 dB, {first.mean:.2f} at 1 dB"
    return Finding(criteria, text)


def _six(evidence: Evidence) -> Finding:
    region = within(6.0, 0.1, f"5.9 to 6.1: {AXIS}")
    criteria = [
        Criterion(units(evidence, "ten", _at(margin, "all")), region, f"at {margin}")
        for margin in _margins(evidence)
    ]
    means = [criterion.quantity.at().mean for criterion in criteria]
    return Finding(criteria, f"{min(means):.2f} to {max(means):.2f}")


def _cheaper_at_small(evidence: Evidence) -> Finding:
    found = {
        margin: tuple(units(evidence, "ten", _at(margin, policy)) for policy in ("all", "none"))
        for margin in SMALL
    }
    text = ", ".join(f"{none.at().mean:.1f} at {margin}" for margin, (_, none) in found.items())
    note = "without the code, units are spent on failed attempts"
    region = below(0.0, "fewer with total protection at each small margin")
    criteria = [
        Criterion(difference(total, none), region, f"at {margin}") for margin, (total, none) in found.items()
    ]
    return Finding(criteria, f"total: 6.0; no FEC: {text}", note)


def _trade_off(evidence: Evidence) -> Finding:
    """Compare units with both others: fewer than the wasteful one at each end of the axis, never outside."""
    criteria = []
    for margin, worse in (("1 dB", "none"), ("15 dB", "all")):
        ours, theirs = (units(evidence, "ten", _at(margin, policy)) for policy in ("selective", worse))
        saved = ratio(ours.values, theirs.values)
        criteria.append(Criterion(saved, clearly_below(), f"beside {LABELS[worse]} at {margin}"))
    region = above(0.0, f"between the two at every margin, or within a tenth of a unit: {AXIS}")
    for margin in _margins(evidence):
        none, selective, all_ = (
            units(evidence, "ten", _at(margin, policy)) for policy in ("none", "selective", "all")
        )
        low, high = sorted((none, all_), key=lambda each: each.at().mean)
        criteria.append(Criterion(difference(selective, low, 0.1), region, f"above the lower at {margin}"))
        criteria.append(Criterion(difference(high, selective, 0.1), region, f"below the higher at {margin}"))
    means = {
        policy: [units(evidence, "ten", _at(margin, policy)).at().mean for margin in ("1 dB", "15 dB")]
        for policy in ("none", "selective", "all")
    }
    text = ", ".join(f"{LABELS[policy]} {low:.2f} and {high:.2f}" for policy, (low, high) in means.items())
    return Finding(criteria, f"at 1 and at 15 dB: {text}")


def _nearer(evidence: Evidence) -> Finding:
    def distances(experiment: str) -> Measured:
        """Return the relative distance of selective from no FEC, averaged over the margins."""
        signed = []
        for margin in evidence.sweep(experiment).values("margin"):
            ours, theirs = (
                units(evidence, experiment, _at(margin, policy)).values for policy in ("selective", "none")
            )
            found = ratio(ours, theirs).values - 1
            signed.append(found if found.mean() > 0 else -found)
        runs = min(map(len, signed))
        return Measured(np.mean([each[:runs] for each in signed], axis=0))

    ten, fifty = distances("ten"), distances("fifty")
    text = f"on average {fifty.at().mean:.0%} apart with 50 segments, {ten.at().mean:.0%} with 10"
    closer = Criterion(difference(fifty, ten), below(0.0, "closer with 50 segments"))
    return Finding([closer], text)


def _printed_rate(evidence: Evidence) -> Finding:
    sweep = evidence.sweep("error-rate")
    printed = min(sweep.values("ber"), key=number)
    found = sweep.ratio(
        "completion_time_s",
        (SCHEME, {"ber": printed, "protect": "all"}),
        (SCHEME, {"ber": printed, "protect": "none"}),
    )
    note = (
        "a unit of 3,840 bits then fails with a probability of 4 %, and six attempts with 3e-9: "
        "all curves are flat, and the code is only overhead. From 1e-3 to 3e-2 the text holds "
        "(figure printed, reading bad-ber)"
    )
    text = f"with 1e-5 total protection takes {as_gain(found.at())} at 3 dB"
    return Finding([Criterion(found, greatly_below())], text, note)


def _printed_units(_evidence: Evidence) -> Finding:
    note = (
        "⌈1460/480⌉ is 4; ⌈1460 · 255/(480 · 131)⌉ is 6 as printed; 1440 B make three and six (reading units)"
    )
    ours = calculated(float(-(-1460 // 480)))
    return Finding([Criterion(ours, within(3.0, 0.0, "3"))], "4 by the formula of section III", note)


CLAIMS: tuple[Claim, ...] = (
    Contradiction(
        id="bad-ber",
        section="III",
        statement="the bit error rate in the bad state is 1e-5, and FEC helps greatly",
        printed="1e-5",
        experiment="error-rate",
        fails_if="with the printed rate total protection saves a fifth of the time",
        evaluate=_printed_rate,
    ),
    Contradiction(
        id="units",
        section="III, IV",
        statement="a segment of 1460 B has ⌈1460/480⌉ data units, which are 3",
        printed="3",
        experiment="ten",
        fails_if="the formula gives three",
        evaluate=_printed_units,
    ),
    CustomClaim(
        id="great-improvement",
        section="IV",
        statement="10 segments, small margins: FEC greatly improves the completion time, selective or total",
        printed="-",
        experiment="ten",
        fails_if="at a small margin less than a fifth of the time is saved",
        evaluate=partial(_improvement, "ten", ("selective", "all"), greatly_below()),
    ),
    CustomClaim(
        id="no-fec-fastest",
        section="IV",
        statement="10 segments, large margins: smaller completion times without FEC",
        printed="smaller",
        experiment="ten",
        fails_if="at a large margin total protection is as fast",
        evaluate=partial(_no_fec_fastest, below()),
    ),
    CustomClaim(
        id="no-fec-slightly",
        section="IV",
        statement="10 segments, large margins: completion times without FEC are only slightly smaller",
        printed="slightly",
        experiment="ten",
        why=(
            "slight on the scale of figure 2, but not in relative terms: six data units of a segment "
            "take 60 ms of air time, three take 30 ms, and the round trip is about 100 ms"
        ),
        fails_if="at a large margin they are smaller by more than a tenth, or not smaller",
        evaluate=partial(_no_fec_fastest, slightly_below()),
    ),
    CustomClaim(
        id="total-constant",
        section="IV",
        statement="10 segments: with total protection the completion time is almost constant",
        printed="constant",
        experiment="ten",
        fails_if="at some margin the time is more than a tenth from that at 15 dB",
        evaluate=_total_constant,
    ),
    CustomClaim(
        id="insensitive",
        section="IV",
        statement="10 segments: selective protection tends to make the time insensitive to the channel",
        printed="-",
        experiment="ten",
        fails_if="the time rises by half as much as without FEC, or more",
        evaluate=_insensitive,
    ),
    CustomClaim(
        id="doppler",
        section="IV",
        statement="the Doppler frequency matters only without protection, and at small margins",
        printed="-",
        experiment="ten",
        fails_if="it matters by over a tenth elsewhere, or by less without FEC at a small margin",
        evaluate=_doppler,
    ),
    CustomClaim(
        id="longer-bursts",
        section="IV",
        statement="no FEC, small margins: longer bursts (0.1 in place of 0.2) mean shorter transfers",
        printed="-",
        experiment="ten",
        fails_if="at a small margin transfers are not shorter with 0.1",
        evaluate=partial(
            _less_with_longer_bursts,
            ("completion_time_s",),
            "s",
            "with immediate feedback the opposite holds (figure feedback)",
        ),
    ),
    CustomClaim(
        id="fewer-losses",
        section="IV",
        statement="no FEC, small margins: longer bursts cause fewer loss events, which is the reason",
        printed="-",
        experiment="ten",
        fails_if="at a small margin there are no fewer loss events with 0.1",
        evaluate=partial(
            _less_with_longer_bursts,
            ("timeouts", "fast_retransmits"),
            "events",
            "a loss event of TCP is a timeout, or a loss found by duplicate acknowledgements",
        ),
    ),
    CustomClaim(
        id="prevents-timeouts",
        section="II",
        statement="small margins: selective coding protects most segments whose loss leads to a timeout",
        printed="most",
        experiment="ten",
        fails_if="at a small margin half of the timeouts without FEC are left, with 10 or 50 segments",
        further=("fifty",),
        evaluate=_prevented,
    ),
    CustomClaim(
        id="six-attempts",
        section="IV",
        statement="at most six attempts are a good trade-off between losses and delay",
        printed="good",
        experiment="attempts",
        fails_if="three attempts lose no more segments, or ten change the time by more than a tenth",
        why=(
            "without FEC at 1 dB, ten attempts nearly halve the time: a lost segment costs a timeout of at "
            "least 1.5 s, an attempt 60 ms"
        ),
        evaluate=_six_attempts,
    ),
    CustomClaim(
        id="versions",
        section="II",
        statement="small margins: other versions of TCP than NewReno can be considered as well",
        printed="-",
        experiment="versions",
        fails_if="with Tahoe, Reno, NewReno or SACK selective coding saves less than a fifth of the time",
        evaluate=_versions,
    ),
    CustomClaim(
        id="short-flows",
        section="II",
        statement="small margins: the scheme is particularly effective for short-lived flows",
        printed="-",
        experiment="file-sizes",
        fails_if="with 50 or 200 segments it saves as large a share of the time as with 10",
        evaluate=_short_flows,
    ),
    CustomClaim(
        id="wider-gap",
        section="IV",
        statement="50 segments, small margins: the gap between selective and total is larger than with 10",
        printed="larger",
        experiment="fifty",
        fails_if="at a small margin the gap is not larger with 50 segments",
        further=("ten",),
        evaluate=_wider_gap,
    ),
    CustomClaim(
        id="still-relevant",
        section="IV",
        statement="50 segments, small margins: the improvement by selective coding is still relevant",
        printed="-",
        experiment="fifty",
        fails_if="at a small margin less than 5 % of the time is saved",
        evaluate=partial(_improvement, "fifty", ("selective",), clearly_below()),
    ),
    CustomClaim(
        id="close-to-none",
        section="IV",
        statement="50 segments, large margins: selective almost as fast as no FEC, much faster than total",
        printed="almost",
        experiment="fifty",
        fails_if="selective is over a tenth from no FEC, or not a fifth faster than total",
        evaluate=_close_to_none,
    ),
    CustomClaim(
        id="three",
        section="IV",
        statement="no FEC: 3 data units per segment, and more the smaller the margin",
        printed="3",
        experiment="ten",
        fails_if="it is not 2.9 to 3.1 at 15 dB, or a larger margin has more",
        evaluate=_three,
    ),
    CustomClaim(
        id="six",
        section="IV",
        statement="total: 6 data units per segment",
        printed="6",
        experiment="ten",
        fails_if="it is outside 5.9 to 6.1 at some margin",
        evaluate=_six,
    ),
    CustomClaim(
        id="cheaper",
        section="IV",
        statement="at small margins fewer data units are sent when FEC is applied to all",
        printed="> 6",
        experiment="ten",
        why=(
            "six units instead of three pay off only if a unit takes two attempts on average, as at 1"
            " dB but not at 2 dB; instead of four, the reading units=4, they pay off at all three"
        ),
        fails_if="at a small margin total protection sends no fewer units",
        evaluate=_cheaper_at_small,
    ),
    CustomClaim(
        id="trade-off",
        section="IV",
        statement="selective is a good trade-off between no FEC and total in data units sent, as F varies",
        printed="between",
        experiment="ten",
        fails_if=(
            "selective does not save over 5 % beside no FEC at 1 dB and beside total at 15 dB, or sends over "
            "a tenth of a unit more, or less, than both at a margin"
        ),
        evaluate=_trade_off,
    ),
    CustomClaim(
        id="nearer",
        section="IV",
        statement="50 segments: the data units sent by selective are closer to those of no FEC than with 10",
        printed="closer",
        experiment="fifty",
        fails_if="the average distance is not smaller with 50 segments",
        further=("ten",),
        evaluate=_nearer,
    ),
)
