"""The claims of the paper's text, each with its section."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from lasthop.papers.claims import Told
from lasthop.papers.evidence import At, Evidence
from lasthop.papers.paper import CONTRADICTS, FAILS, HOLDS, Claim, Judgement
from lasthop.papers.selective_fec.figures import LABELS, SCHEME, completion, units
from lasthop.study.quantity import number
from lasthop.study.statistics import Comparison, Estimate, compare_paired

SMALL, LARGE = ("1 dB", "2 dB", "3 dB"), ("13 dB", "14 dB", "15 dB")
"""The values of the fading margin that count as small and as large."""

CLOSE = 0.1
"""The relative difference up to which times count as almost the same."""


def _at(margin: str, policy: str, doppler: str = "0.1") -> dict[str, str]:
    return {"margin": margin, "doppler": doppler, "protect": policy}


def _versus(evidence: Evidence, experiment: str, ours: At, theirs: At) -> Comparison:
    """Compare completion times in paired runs: runs of the same number meet the same fades."""
    sweep = evidence.sweep(experiment)
    return sweep.versus("completion_time_s", (SCHEME, ours), (SCHEME, theirs))


def _seconds(found: Estimate) -> str:
    return f"{found.mean:.2f} s"


def _spread(evidence: Evidence, experiment: str, policy: str) -> tuple[float, list[Estimate]]:
    """Return the relative excess of the longest mean over the shortest, of all margins, and the means."""
    margins = evidence.sweep(experiment).values("margin")
    found = [completion(evidence, experiment, _at(margin, policy)) for margin in margins]
    means = [each.mean for each in found]
    return max(means) / min(means) - 1, found


def _total_constant(evidence: Evidence) -> Judgement:
    spread, found = _spread(evidence, "ten", "all")
    text = f"{_seconds(found[0])} at 1 dB to {_seconds(found[-1])} at 15 dB"
    return Judgement(HOLDS if spread <= CLOSE else FAILS, text, spread)


def _insensitive(evidence: Evidence) -> Judgement:
    spreads = {policy: _spread(evidence, "ten", policy)[0] for policy in ("none", "selective")}
    text = f"the longest exceeds the shortest by {spreads['selective']:.0%}; no FEC: {spreads['none']:.0%}"
    holds = spreads["selective"] < 0.5 * spreads["none"]
    return Judgement(HOLDS if holds else FAILS, text, spreads["selective"])


def _great_improvement(experiment: str, policies: tuple[str, ...], evidence: Evidence) -> Judgement:
    """At small margins protection makes transfers much shorter."""
    texts, clear = [], True
    for policy in policies:
        shares = []
        for margin in SMALL:
            found = _versus(evidence, experiment, _at(margin, policy), _at(margin, "none"))
            assert found.ratio is not None
            shares.append(f"{found.ratio.mean:.0%}")
            clear &= found.difference.high < 0
        texts.append(f"{LABELS[policy]} {', '.join(shares)}")
    text = f"of the time without FEC, at 1, 2 and 3 dB: {'; '.join(texts)}"
    return Judgement(HOLDS if clear else FAILS, text)


def _no_fec_fastest(evidence: Evidence) -> Judgement:
    gains, clear = [], True
    for margin in LARGE:
        found = _versus(evidence, "ten", _at(margin, "none"), _at(margin, "all"))
        assert found.ratio is not None
        gains.append(f"{found.ratio.mean - 1:+.0%} ({found.difference.mean:+.2f} s)")
        clear &= found.difference.high < 0
    text = f"beside total protection at 13, 14 and 15 dB: {', '.join(gains)}"
    note = (
        "slight on the scale of the figure, not as a share: three units take 30 ms of air where six take 60"
    )
    return Judgement(HOLDS if clear else FAILS, text, note=note)


def _doppler(evidence: Evidence) -> Judgement:
    effects = {}
    for policy in ("none", "selective", "all"):
        for name, margins in (("small", SMALL), ("large", LARGE)):
            found = [
                _versus(evidence, "ten", _at(margin, policy, "0.2"), _at(margin, policy, "0.1")).ratio
                for margin in margins
            ]
            effects[policy, name] = max(abs(each.mean - 1) for each in found if each is not None)
    text = ", ".join(f"{policy} {effects[policy, 'small']:.0%}" for policy in ("none", "selective", "all"))
    others = max(effect for which, effect in effects.items() if which != ("none", "small"))
    holds = effects["none", "small"] > 2 * others
    note = f"at large margins no FEC {effects['none', 'large']:.0%}"
    return Judgement(HOLDS if holds else FAILS, f"up to: {text}", effects["none", "small"], note=note)


def _less_with_longer_bursts(metrics: tuple[str, ...], note: str, evidence: Evidence) -> Judgement:
    """Compare the sum of some metrics without FEC, at Doppler frequency 0.1 and at 0.2.

    As everywhere, an ordering holds unless the runs contradict it significantly.
    """
    sweep = evidence.sweep("ten")
    shares, contradicted = [], False
    for margin in SMALL:
        longer, shorter = (
            np.sum([sweep.sample(name, SCHEME, _at(margin, "none", doppler)) for name in metrics], axis=0)
            for doppler in ("0.1", "0.2")
        )
        found = compare_paired(longer, shorter, sweep.study.seed)
        contradicted |= found.difference.low > 0
        shares.append(f"{longer.mean():.2f} for {shorter.mean():.2f}")
    text = f"{', '.join(shares)} at 1, 2 and 3 dB"
    return Judgement(FAILS if contradicted else HOLDS, text, note=note)


def _gap(evidence: Evidence, experiment: str, margin: str) -> Estimate:
    """Return the ratio of the completion times with selective and with total protection."""
    ratio = _versus(evidence, experiment, _at(margin, "selective"), _at(margin, "all")).ratio
    assert ratio is not None
    return ratio


def _wider_gap(evidence: Evidence) -> Judgement:
    found = {margin: (_gap(evidence, "ten", margin), _gap(evidence, "fifty", margin)) for margin in SMALL}
    text = ", ".join(
        f"{fifty.mean - 1:+.0%} ({ten.mean - 1:+.0%}) at {margin}" for margin, (ten, fifty) in found.items()
    )
    ten, fifty = found["1 dB"]
    text = f"selective beside total, 50 segments (10): {text}"
    return Judgement(HOLDS if fifty.low > ten.high else FAILS, text, fifty.mean - ten.mean)


def _close_to_none(evidence: Evidence) -> Judgement:
    shares, holds = [], True
    for margin in LARGE:
        near = _versus(evidence, "fifty", _at(margin, "selective"), _at(margin, "none")).ratio
        far = _versus(evidence, "fifty", _at(margin, "selective"), _at(margin, "all"))
        assert near is not None
        assert far.ratio is not None
        shares.append(f"{near.mean - 1:+.0%} and {far.ratio.mean - 1:+.0%}")
        holds &= near.mean - 1 <= CLOSE and far.difference.high < 0
    text = f"beside no FEC and total at 13, 14 and 15 dB: {', '.join(shares)}"
    return Judgement(HOLDS if holds else FAILS, text)


def _three(evidence: Evidence) -> Judgement:
    found = [units(evidence, "ten", _at(margin, "none")) for margin in evidence.sweep("ten").values("margin")]
    falls = all(after.mean <= before.mean for before, after in pairwise(found))
    text = f"{found[-1].mean:.2f} at 15 dB, {found[0].mean:.2f} at 1 dB, falling with the margin"
    holds = falls and abs(found[-1].mean / 3 - 1) <= CLOSE
    return Judgement(HOLDS if holds else FAILS, text, found[-1].mean, found[-1].ci95)


def _six(evidence: Evidence) -> Judgement:
    found = [units(evidence, "ten", _at(margin, "all")) for margin in evidence.sweep("ten").values("margin")]
    furthest = max(found, key=lambda each: abs(each.mean - 6))
    text = f"{min(each.mean for each in found):.2f} to {max(each.mean for each in found):.2f}"
    holds = abs(furthest.mean / 6 - 1) <= 0.01
    return Judgement(HOLDS if holds else FAILS, text, furthest.mean, furthest.ci95)


def _cheaper_at_small(evidence: Evidence) -> Judgement:
    found = {margin: units(evidence, "ten", _at(margin, "none")) for margin in SMALL}
    text = ", ".join(f"{each.mean:.1f} at {margin}" for margin, each in found.items())
    note = (
        "without the code a transfer spends units on attempts that fail; above six per segment total "
        "protection is the cheaper one"
    )
    holds = found["1 dB"].low > 6
    return Judgement(
        HOLDS if holds else FAILS, f"no FEC: {text}", found["1 dB"].mean, found["1 dB"].ci95, note
    )


def _trade_off(evidence: Evidence) -> Judgement:
    margins = evidence.sweep("ten").values("margin")
    outside = []
    for margin in margins:
        mean = {
            policy: units(evidence, "ten", _at(margin, policy)).mean
            for policy in ("none", "selective", "all")
        }
        if not min(mean["none"], mean["all"]) <= mean["selective"] <= max(mean["none"], mean["all"]):
            outside.append(margin)
    text = f"between the two at {len(margins) - len(outside)} of {len(margins)} margins"
    note = f"outside at {', '.join(outside)}" if outside else ""
    return Judgement(HOLDS if len(outside) <= 1 else FAILS, text, note=note)


def _nearer(evidence: Evidence) -> Judgement:
    def distance(experiment: str) -> float:
        margins = evidence.sweep(experiment).values("margin")
        pairs = [
            [units(evidence, experiment, _at(margin, policy)).mean for policy in ("selective", "none")]
            for margin in margins
        ]
        return sum(abs(selective / none - 1) for selective, none in pairs) / len(margins)

    ten, fifty = distance("ten"), distance("fifty")
    text = f"on average {fifty:.0%} apart with 50 segments, {ten:.0%} with 10"
    return Judgement(HOLDS if fifty < ten else FAILS, text, fifty)


def _printed_rate(evidence: Evidence) -> Judgement:
    sweep = evidence.sweep("error-rate")
    rates = sorted(sweep.values("ber"), key=number)
    printed = rates[0]
    ratio = sweep.versus(
        "completion_time_s",
        (SCHEME, {"ber": printed, "protect": "all"}),
        (SCHEME, {"ber": printed, "protect": "none"}),
    ).ratio
    assert ratio is not None
    text = f"with 1e-5 total protection takes {ratio.mean - 1:+.0%} at 3 dB"
    note = (
        "a unit of 3,840 bits then fails with 4 % and six attempts with 3e-9: all curves are flat and the "
        "code only costs. From 1e-3 to 3e-2 the text holds (figure printed, reading bad-ber)"
    )
    return Judgement(CONTRADICTS, text, ratio.mean - 1, ratio.ci95, note)


def _printed_units(_evidence: Evidence) -> Judgement:
    note = (
        "⌈1460/480⌉ is 4; ⌈1460 · 255/(480 · 131)⌉ is 6 as printed; 1440 B make three and six (reading units)"
    )
    return Judgement(CONTRADICTS, "4 by the formula of section III", 4.0, note=note)


CLAIMS: tuple[Claim, ...] = (
    Told(
        id="bad-ber",
        section="III",
        statement="the bit error rate in the bad state is 1e-5, and FEC helps greatly",
        printed="1e-5",
        experiment="error-rate",
        how=_printed_rate,
    ),
    Told(
        id="units",
        section="III, IV",
        statement="a segment of 1460 B has ⌈1460/480⌉ data units, which are 3",
        printed="3",
        experiment="ten",
        how=_printed_units,
    ),
    Told(
        id="great-improvement",
        section="IV",
        statement="10 segments, small margins: FEC greatly improves the completion time, selective or total",
        printed="-",
        experiment="ten",
        how=partial(_great_improvement, "ten", ("selective", "all")),
    ),
    Told(
        id="no-fec-fastest",
        section="IV",
        statement="10 segments, large margins: smaller completion times without FEC",
        printed="slightly smaller",
        experiment="ten",
        how=_no_fec_fastest,
    ),
    Told(
        id="total-constant",
        section="IV",
        statement="10 segments: with total protection the completion time is almost constant",
        printed="constant",
        experiment="ten",
        how=_total_constant,
    ),
    Told(
        id="insensitive",
        section="IV",
        statement="10 segments: with selective protection it tends to become insensitive to the channel",
        printed="-",
        experiment="ten",
        how=_insensitive,
    ),
    Told(
        id="doppler",
        section="IV",
        statement="the Doppler frequency matters only without protection, and at small margins",
        printed="-",
        experiment="ten",
        how=_doppler,
    ),
    Told(
        id="longer-bursts",
        section="IV",
        statement="there, longer bursts (0.1 in place of 0.2) mean shorter transfers",
        printed="-",
        experiment="ten",
        how=partial(
            _less_with_longer_bursts,
            ("completion_time_s",),
            "in seconds; with feedback at once it is the other way round (figure feedback)",
        ),
    ),
    Told(
        id="fewer-losses",
        section="IV",
        statement="and the reason: with longer bursts there are fewer loss events",
        printed="-",
        experiment="ten",
        how=partial(
            _less_with_longer_bursts,
            ("timeouts", "fast_retransmits"),
            "a loss event of TCP is a timeout, or a loss found by duplicate acknowledgements",
        ),
    ),
    Told(
        id="wider-gap",
        section="IV",
        statement="50 segments, at 1 dB: the gap between selective and total is larger than with 10",
        printed="larger",
        experiment="fifty",
        besides=("ten",),
        how=_wider_gap,
    ),
    Told(
        id="still-relevant",
        section="IV",
        statement="50 segments, small margins: the improvement by selective coding is still relevant",
        printed="-",
        experiment="fifty",
        how=partial(_great_improvement, "fifty", ("selective",)),
    ),
    Told(
        id="close-to-none",
        section="IV",
        statement="50 segments, large margins: selective almost as fast as no FEC, much faster than total",
        printed="almost",
        experiment="fifty",
        how=_close_to_none,
    ),
    Told(
        id="three",
        section="IV",
        statement="no FEC: 3 data units per segment, and more with a smaller margin",
        printed="3",
        experiment="ten",
        how=_three,
    ),
    Told(
        id="six",
        section="IV",
        statement="total: 6 data units per segment",
        printed="6",
        experiment="ten",
        how=_six,
    ),
    Told(
        id="cheaper",
        section="IV",
        statement="at 1 dB, the smallest margin: fewer data units are sent when FEC is applied to all",
        printed="> 6",
        experiment="ten",
        how=_cheaper_at_small,
    ),
    Told(
        id="trade-off",
        section="IV",
        statement="selective is a trade-off between no FEC and total in data units sent",
        printed="between",
        experiment="ten",
        how=_trade_off,
    ),
    Told(
        id="nearer",
        section="IV",
        statement="50 segments: the data units sent by selective are closer to those of no FEC than with 10",
        printed="closer",
        experiment="fifty",
        besides=("ten",),
        how=_nearer,
    ),
)
