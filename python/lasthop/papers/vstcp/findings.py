"""The quantities of the claims, with their regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from lasthop._lasthop import Run, Scenario
from lasthop.core.statistics import Sample
from lasthop.papers.claims import Finding, as_gain, best
from lasthop.papers.evidence import At, Evidence
from lasthop.papers.verdicts import (
    CLEARLY,
    Criterion,
    Measured,
    Region,
    about_gain,
    above,
    below,
    calculated,
    clearly_below,
    difference,
    labels_outside,
    largest,
    ratio,
    within,
)
from lasthop.papers.vstcp.figures import (
    GROWTHS,
    LOSS,
    SPAN,
    at_rate,
    best_size,
    counted,
    normalised,
    rate_over_time,
    rates,
    sizes_sent,
)
from lasthop.papers.vstcp.network import CHANNEL, DISTINGUISHING, HOSTS, SIZES, TABLE_4, rate_of

FLAT = 0.01
"""The relative gain that another value may have over the "optimal" one: our margin."""

OURS = "our margin, as the paper does not state the precision of its means"

Side = tuple[str, str]
"""An experiment, and a scheme in it."""

NOCON, ONE, TWO = ("rate", "metp"), ("rate", "basic"), ("rate", "i-tcp")
VS_1, VS_2 = ("rate", "vs-tcp"), ("method-2", "vs-tcp")
_NAMES: Mapping[Side, str] = {ONE: "one", TWO: "two", NOCON: "nocon", VS_1: "VS-TCP 1", VS_2: "VS-TCP 2"}


def _versus(evidence: Evidence, ours: Side, theirs: Side, rate: float) -> Measured:
    """Return the ratio of throughputs in paired runs, which have the same fades."""
    sides = [(*side, at_rate(evidence, side[0], rate)) for side in (ours, theirs)]
    return evidence.ratio("throughput_bps", sides[0], sides[1])


def is_ahead(
    ours: tuple[Side, ...],
    theirs: tuple[Side, ...],
    least: float,
    region: Region,
    note: str,
    evidence: Evidence,
) -> Finding:
    """Compare each of `ours` with each of `theirs` at loss rates of at least `least` percent."""
    criteria, texts = [], []
    for over in ours:
        for under in theirs:
            each = [
                Criterion(
                    _versus(evidence, over, under, rate),
                    region,
                    f"{_NAMES[over]} beside {_NAMES[under]} at {rate:g} %",
                )
                for rate in rates(evidence, "rate")
                if rate >= least
            ]
            means = [criterion.quantity.at().mean for criterion in each]
            texts.append(f"{min(means):.2f} to {max(means):.2f} times as much")
            criteria += each
    found = labels_outside(criteria)
    text = "; ".join(texts) + (f"; not {', '.join(found)}" if found else "")
    return Finding(criteria, text, note)


def throughput_falls(evidence: Evidence) -> Finding:
    """Compare each scheme with itself at the next lower loss rate."""
    criteria = []
    for (experiment, scheme), name in _NAMES.items():
        sweep, steps = evidence.sweep(experiment), rates(evidence, experiment)
        criteria += [
            Criterion(
                sweep.ratio(
                    "throughput_bps",
                    (scheme, at_rate(evidence, experiment, after)),
                    (scheme, at_rate(evidence, experiment, before)),
                ),
                below(1.0, "less at each of the eight rates than at the one before"),
                f"{name} from {before:g} % to {after:g} %",
            )
            for before, after in pairwise(steps)
        ]
    found = labels_outside(criteria)
    text = f"not {', '.join(found)}" if found else "all five fall"
    return Finding(criteria, text)


def _gains(evidence: Evidence, experiment: str) -> dict[float, Measured]:
    return {rate: normalised(evidence, experiment, "vs-tcp", rate) for rate in rates(evidence, experiment)}


def _percent(found: Measured) -> str:
    return as_gain(found.at(), 1)


def may_increase(evidence: Evidence) -> Finding:
    """Compare the gain over nocon at 13 % with the gain at 1 %."""
    gains = _gains(evidence, "rate")
    first, last = gains[1.0], gains[13.0]
    text = f"{_percent(first)} at 1 %, {_percent(last)} at 13 %"
    region = above(0.0, "more at 13 % than at 1 %")
    return Finding([Criterion(difference(last, first), region)], text)


def typical_gain(evidence: Evidence) -> Finding:
    """Return the gain over nocon at 3 and 5 %."""
    gains = _gains(evidence, "rate")
    criteria = [Criterion(gains[rate], above(), f"{rate:g} %") for rate in (3.0, 5.0)]
    text = ", ".join(f"{_percent(criterion.quantity)} at {criterion.label}" for criterion in criteria)
    return Finding(criteria, text)


def _average(gains: dict[float, Measured]) -> Measured:
    """Return the average ratio over loss rates, in runs paired by number."""
    runs = min(len(each.values) for each in gains.values())
    return Measured(np.mean([each.values[:runs] for each in gains.values()], axis=0))


def ten_percent(evidence: Evidence) -> Finding:
    """Return the gain over nocon, averaged over the loss rates."""
    gains = _gains(evidence, "rate")
    found = _average(gains)
    few = _average({rate: gain for rate, gain in gains.items() if rate <= 5})
    text = f"{_percent(found)} on average over the eight loss rates"
    note = (
        f"beside nocon, the next best; {_percent(few)} over those up to 5 %. The paper does not say which "
        "rates its average is over"
    )
    return Finding([Criterion(found, about_gain(0.10))], text, note)


def thirty_percent(evidence: Evidence) -> Finding:
    """Return the largest gain over nocon at any loss rate."""
    gains = _gains(evidence, "rate")
    rate = max(gains, key=lambda rate: gains[rate].at().mean)
    criteria = [Criterion(each, about_gain(0.30), f"{rate:g} %") for rate, each in gains.items()]
    found = largest(list(gains.values()))
    text = f"{as_gain(found, 1)} at {rate:g} %"
    return Finding(criteria, text, "beside nocon", "largest")


def gap_narrows(evidence: Evidence) -> Finding:
    """Compare the lead of method 1 over method 2 at 13 % with the lead at 1 %."""
    gaps = {rate: _versus(evidence, VS_1, VS_2, rate) for rate in rates(evidence, "rate")}
    text = ", ".join(f"{100 * (gap.at().mean - 1):+.1f} % at {rate:g} %" for rate, gap in gaps.items())
    last, first = gaps[13.0], gaps[1.0]
    region = below(0.0, "smaller at 13 % than at 1 %")
    return Finding([Criterion(difference(last, first), region)], text)


def works_well(evidence: Evidence) -> Finding:
    """Return the gain of method 2 over nocon at loss rates above 10 %."""
    gains = {rate: gain for rate, gain in _gains(evidence, "method-2").items() if rate > 10}
    text = ", ".join(f"{_percent(gain)} beside nocon at {rate:g} %" for rate, gain in gains.items())
    return Finding([Criterion(gain, above(), f"at {rate:g} %") for rate, gain in gains.items()], text)


def _sizes(evidence: Evidence, rate: float) -> dict[int, Sample]:
    sweep = evidence.sweep("sizes")
    points = [at_rate(evidence, "sizes", rate, size=size) for size in sweep.values("size")]
    return {size: sweep.sample("throughput_bps", "metp", at) for size, at in zip(SIZES, points, strict=True)}


def size_is_best(rate: float, evidence: Evidence) -> Finding:
    """Compare the size of table 4 for a loss rate with all other fixed sizes."""
    samples = {f"{size} B": sample for size, sample in _sizes(evidence, rate).items()}
    return best(samples, f"{TABLE_4[rate]} B", FLAT, OURS)


def moves_left(evidence: Evidence) -> Finding:
    """Compare the best sizes of table 4 with each other at the lowest and the highest loss rate."""
    # The two sizes of table 4; choosing the best sizes of our own runs would bias the verdict.
    low, high = min(TABLE_4), max(TABLE_4)
    large, small = TABLE_4[low], TABLE_4[high]
    region = above(
        text=f"{small} B is better at {high:g} %, and {large} B at {low:g} %: the sizes of table 4"
    )
    criteria = []
    for rate, ours, other in ((high, small, large), (low, large, small)):
        samples = _sizes(evidence, rate)
        criteria.append(Criterion(ratio(samples[ours], samples[other]), region, f"at {rate:g} %"))
    gains = [_percent(criterion.quantity) for criterion in criteria]
    text = f"{small} B beside {large} B: {gains[0]} at {high:g} %; the other way: {gains[1]} at {low:g} %"
    found = {rate: best_size(evidence, rate) for rate in TABLE_4}
    note = "the best: " + ", ".join(f"{size} B at {rate:g} %" for rate, size in found.items())
    return Finding(criteria, text, note)


def smaller_segments(trace: str, evidence: Evidence) -> Finding:
    """Compare the mean segment sizes of two traces, at 3 and 11 %."""

    def mean(run: Run) -> float:
        return float(sizes_sent(run).mean())

    low, high = (evidence.quantity(f"{trace}-{rate}", "vs-tcp", mean) for rate in (3, 11))
    text = f"{low.at().mean:.0f} B on average at 3 %, {high.at().mean:.0f} B at 11 %"
    return Finding(
        [Criterion(ratio(high.values, low.values), below(text="smaller at 11 % than at 3 %"))], text
    )


def long_recovery(evidence: Evidence) -> Finding:
    """Compare how long the rate stays low after a loss, with and without congestion control."""
    lasts = {}
    for label, experiment in (("normal", "normal"), ("without", "uncontrolled")):
        time, rate = rate_over_time(evidence.traces(experiment)["basic"])
        full = rate[time < LOSS - SPAN].mean()
        slow = time[(time > LOSS) & (rate < 0.9 * full)]
        lasts[label] = float(slow.max() + SPAN - LOSS) if len(slow) else 0.0
    normal, without = lasts["normal"], lasts["without"]
    text = f"below 90 % of its rate until {normal:.1f} s after the loss; without, {without:.1f} s"
    region = above(2.0, 'over twice as long as without: our margin for "long"; the runs are deterministic')
    longer = calculated(normal / max(without, SPAN))
    return Finding([Criterion(longer, region)], text)


def _beside(
    evidence: Evidence, experiment: str, rate: float, axis: str, beside: str, **rest: str
) -> dict[str, Measured]:
    """Return the throughput for each other value of an axis, relative to that for `beside`."""
    sweep = evidence.sweep(experiment)
    points = {
        value: at_rate(evidence, experiment, rate, **{axis: value}, **rest) for value in sweep.values(axis)
    }
    found = {
        value: sweep.ratio("throughput_bps", ("vs-tcp", at), ("vs-tcp", points[beside]))
        for value, at in points.items()
        if value != beside
    }
    # Runs that are equal to the bit show that the values are equivalent, however few they are.
    return {
        value: calculated(1.0) if len(each.values) and bool(np.all(each.values == 1)) else each
        for value, each in found.items()
    }


def _cases(evidence: Evidence, experiment: str) -> list[tuple[float, dict[str, str], str]]:
    """Return the loss rates and methods at which parameters are compared, with their names."""
    sweep = evidence.sweep(experiment)
    methods = sweep.values("method") if "method" in sweep.axes else []
    return [
        (rate, rest, f"{rate:g} %" + "".join(f" with method {each}" for each in rest.values()))
        for rest in ([{"method": method} for method in methods] or [{}])
        for rate in (3.0, 11.0)
    ]


def is_optimal(experiment: str, axis: str, value: str, evidence: Evidence) -> Finding:
    """Compare every other value of a parameter with the one that the paper calls best, at 3 % and 11 %."""
    sweep = evidence.sweep(experiment)
    region = below(1 + FLAT, f"no other is better by over {FLAT:.0%}: {OURS}")
    criteria, texts = [], []
    for rate, rest, where in _cases(evidence, experiment):
        found = _beside(evidence, experiment, rate, axis, value, **rest)
        criteria += [Criterion(each, region, f"{other} at {where}") for other, each in found.items()]
        ahead = max(found, key=lambda other: found[other].at().mean)
        texts.append(f"{ahead} at {where}: {_percent(found[ahead])} beside {value}")
    better = labels_outside(criteria)
    note = f"clearly better: {', '.join(better)}; " if better else ""
    others = [other for other in sweep.values(axis) if other != value]
    note += f"the best besides {value}, of {', '.join(others[:-1])} and {others[-1]}"
    return Finding(criteria, "; ".join(texts), note)


def hundred_packets(evidence: Evidence) -> Finding:
    """Compare a loss window of 100 packets with one of 5, at 3 and 11 %."""
    found = {rate: _beside(evidence, "loss-window", rate, "loss_window", "5")["100"] for rate in (3.0, 11.0)}
    text = ", ".join(f"{_percent(each)} at {rate:g} %" for rate, each in found.items())
    criteria = [Criterion(each, below(), f"at {rate:g} %") for rate, each in found.items()]
    return Finding(criteria, f"100 beside 5: {text}")


def above_real(evidence: Evidence) -> Finding:
    """Compare the lowest e_w above the loss rate with each e_w below it."""
    sweep = evidence.sweep("wanted-loss")
    # The compared values do not depend on the runs; choosing the best of each side would bias the verdict.
    swept = sorted(sweep.values("wanted_loss"), key=float)
    criteria, texts = [], []
    for rate in (3.0, 11.0):
        places = {
            value: ("vs-tcp", at_rate(evidence, "wanted-loss", rate, wanted_loss=value)) for value in swept
        }
        above_it = next(value for value in swept if float(value) > rate / 100)
        gains = {
            value: sweep.ratio("throughput_bps", places[above_it], places[value])
            for value in swept[: swept.index(above_it)]
        }
        criteria += [
            Criterion(
                gain,
                above(text="better with the next e_w above the loss rate than below it"),
                f"{value} at {rate:g} %",
            )
            for value, gain in gains.items()
        ]
        shown = ", ".join(f"{_percent(gain)} beside {value}" for value, gain in gains.items())
        texts.append(f"{above_it} at {rate:g} %: {shown}")
    note = "e_c of five packets is a multiple of 0.2, so all e_w between two multiples have the same effect"
    return Finding(criteria, "; ".join(texts), note)


MEAN_SIZE = ("relay_payload_bytes", "relay_segments_sent")
"""The mean payload of the base station's segments: the less it is, the larger is the share of the header."""

SENT = ("relay_payload_bytes", "delivered_bytes")
"""The payload that the base station sent for each byte delivered."""

LOST = ("lost_on_air", "relay_segments_sent")
"""The share of packets that are lost."""

THROUGHPUT = ("throughput_bps", "")

Effect = tuple[str, tuple[str, str], Region]
"""An effect of a parameter: its name, the metric and what it is divided by, and the region of the ratio."""


def effects_of(
    experiment: str, axis: str, ours: str, theirs: str, effects: Sequence[Effect], evidence: Evidence
) -> Finding:
    """Compare one value of a parameter with another, at 3 % and 11 %."""
    sweep = evidence.sweep(experiment)

    def measure(metric: str, per: str, at: At) -> Sample:
        found = sweep.sample(metric, "vs-tcp", at)
        return found / sweep.sample(per, "vs-tcp", at) if per else found

    criteria = []
    for label, metrics, region in effects:
        for rate, rest, where in _cases(evidence, experiment):
            over, under = (
                measure(*metrics, at_rate(evidence, experiment, rate, **{axis: value}, **rest))
                for value in (ours, theirs)
            )
            criteria.append(Criterion(ratio(over, under), region, f"{label} at {where}"))
    text = ", ".join(f"{_percent(criterion.quantity)} {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"{ours} beside {theirs}: {text}")


def low_pass(evidence: Evidence) -> Finding:
    """Compare the low-pass filter of the loss rate with the average."""
    sweep = evidence.sweep("filter")
    region = below(1 + CLEARLY, "a filter is not better by over 5 %, clearly: averaging is enough")
    criteria = []
    for rate in rates(evidence, "filter"):
        ours, theirs = (
            ("vs-tcp", at_rate(evidence, "filter", rate, loss_rate=value))
            for value in ("low-pass", "average")
        )
        criteria.append(Criterion(sweep.ratio("throughput_bps", ours, theirs), region, f"{rate:g} %"))
    text = ", ".join(f"{_percent(criterion.quantity)} at {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"a filter beside the average: {text}")


def range_of_losses(_evidence: Evidence) -> Finding:
    """Calculate the loss rates at the ends of the printed ranges of the channel's parameters."""
    ends = {}
    for errors_per in ("byte", "bit"):
        ends[errors_per] = [
            _loss(*parameters, errors_per) for parameters in ((0.4, 0.5, 0.003), (0.1, 0.9, 0.01))
        ]
    low, high = ends["bit"]
    text = f"{low:.1%} to {high:.1%} with e per bit, {ends['byte'][0]:.1%} to {ends['byte'][1]:.1%} per byte"
    note = (
        "section V-A.2 calls e a bit error rate, but only a rate of bytes comes near the interval (reading "
        "errors-per); the ends of the axis then take e = 0.0019 and 0.0134"
    )
    whole = "0.5 % to 1.5 %, and 12.5 % to 13.5 %: rounding of the printed digits"
    criteria = [
        Criterion(calculated(low), within(0.01, 0.005, whole), "the least"),
        Criterion(calculated(high), within(0.13, 0.005, whole), "the most"),
    ]
    return Finding(criteria, text, note)


def _loss(leave_error: float, leave_error_free: float, error_rate: float, errors_per: str) -> float:
    """Return the loss rate of packets with a segment of 512 B."""
    channel = {
        "leave_error": leave_error,
        "leave_error_free": leave_error_free,
        "error_rate": error_rate,
        "errors_per": errors_per,
    }
    tables = {
        "transfer": {"size": "unlimited"},
        "tcp": {"profile": "ns2"},
        "wired": {"rate": 10e6},
        "radio": {"rate": 2e6, "channel": {"nguyen-noble": channel}},
    }
    return Scenario.from_tables(tables).packet_loss(552)


def error_duration(evidence: Evidence) -> Finding:
    """Compare the mean duration of error states with the printed formula."""
    scenario = evidence.scenario("trace-3")
    periods = scenario.bad_periods(120.0)
    durations = np.asarray([end - start for start, end in periods])
    expected = 0.0002 / scenario[f"{CHANNEL}.leave_error"]
    found = Measured(durations, "amount")
    text = (
        f"{1e3 * found.at().mean:.3f} ms on average of {len(periods)} error states at 3 %; "
        f"τ_E/P_EG is {1e3 * expected:.3f} ms"
    )
    region = within(
        expected, 0.05 * expected, "5 % either way: our margin, the precision of the number of states"
    )
    return Finding([Criterion(found, region)], text)


def _readings(evidence: Evidence, growth: str, losses: str, method: str) -> Measured:
    """Return the gain over nocon, averaged over the loss rates, under the chosen window."""
    sweep, window = evidence.sweep("readings"), counted(evidence, "packets")
    rule = {"growth": growth, "losses": losses, "method": method, "window": window}

    def gained(rate: float) -> Measured:
        at = at_rate(evidence, "readings", rate, **rule)
        return sweep.ratio("throughput_bps", ("vs-tcp", at), ("metp", at))

    return _average({rate: gained(rate) for rate in rates(evidence, "readings")})


def as_printed(evidence: Evidence) -> Finding:
    """Compare the gains of both methods by the rules as printed, and by other readings of them."""
    gains = {(rule, method): _readings(evidence, *rule, method) for rule in GROWTHS for method in ("1", "2")}
    text = "; ".join(
        f"{label}: {as_gain(gains[rule, '1'].at(), 1)} and {as_gain(gains[rule, '2'].at(), 1)}"
        for rule, label in GROWTHS.items()
    )
    note = "methods 1 and 2 beside nocon, averages over 2, 5 and 11 %"
    printed = next(iter(GROWTHS))
    region = above(0.0, "method 1 gains more than method 2 by the rules as printed")
    apart = difference(gains[printed, "1"], gains[printed, "2"])
    return Finding([Criterion(apart, region)], text, note)


def end_to_end(evidence: Evidence) -> Finding:
    """Compare the control of the size with fixed segments, each with a scheme that distinguishes losses."""
    criteria = []
    for name in DISTINGUISHING:
        for rate in rates(evidence, "end-to-end"):
            over, under = (
                (experiment, scheme, at_rate(evidence, experiment, rate))
                for experiment, scheme in (("end-to-end", f"{name} + vs-tcp"), ("fixed", name))
            )
            gain = evidence.ratio("throughput_bps", over, under)
            criteria.append(Criterion(gain, above(), f"with {name} at {rate:g} %"))
    text = ", ".join(f"{_percent(criterion.quantity)} {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"beside segments of 512 B {text}")


def beside_on_off(evidence: Evidence) -> Finding:
    """Compare VS-TCP with METP that has no window."""
    sweep, criteria, texts = evidence.sweep("on-off"), [], []
    for rate in rates(evidence, "on-off"):
        at = at_rate(evidence, "on-off", rate)
        gain = sweep.ratio("throughput_bps", ("vs-tcp", at), ("metp", at))
        alone = evidence.ratio("throughput_bps", *((name, "metp", at) for name in ("on-off", "window-10")))
        criteria.append(Criterion(gain, above(), f"{rate:g} %"))
        texts.append(_percent(alone))
    text = ", ".join(f"{_percent(criterion.quantity)} at {criterion.label}" for criterion in criteria)
    note = f"without a window METP itself has {', '.join(texts)} beside the window of 10 packets"
    return Finding(criteria, text, note)


def beside_frames(evidence: Evidence) -> Finding:
    """Compare VS-TCP with frames of the link whose size follows the losses, under plain TCP."""
    criteria = []
    for rate in rates(evidence, "frames"):
        at = at_rate(evidence, "frames", rate)
        gain = evidence.sweep("frames").ratio("throughput_bps", ("vs-tcp", at), ("rlp", at))
        criteria.append(Criterion(gain, above(), f"{rate:g} %"))
    text = ", ".join(f"{_percent(criterion.quantity)} at {criterion.label}" for criterion in criteria)
    sweep = evidence.sweep("frames")
    seen = sum(
        float(sweep.sample(metric, "rlp", at).sum())
        for at in sweep.points()
        for metric in ("timeouts", "fast_retransmits")
    )
    report = float(evidence.scenario("frames")["scheme.rlp.report_delay"])
    note = (
        f"reports of lost frames take {1e3 * report:.0f} ms, no air time, and are never lost; TCP over these "
        f"frames has {seen:.0f} timeouts and fast retransmissions in all runs"
    )
    return Finding(criteria, f"VS-TCP beside adaptive frames: {text}", note)


def _other(evidence: Evidence, experiment: str) -> dict[float, str]:
    """Return the channels of the second of two hosts, by loss rate in percent."""
    return {rate_of(each): value for value, each in evidence.sweep(experiment).settings("channel").items()}


def blocked(evidence: Evidence) -> Finding:
    """Compare a host beside one in bad condition with itself beside one in good condition, by buffers."""
    sweep, other = evidence.sweep("frames-of-two"), _other(evidence, "frames-of-two")
    metric = f"connection.{HOSTS[0]}.throughput_bps"
    regions = {"fifo": clearly_below(), "round-robin": above(text="no less with a buffer for each")}
    criteria = []
    for dispatch, label in (("fifo", "one buffer"), ("round-robin", "a buffer for each")):
        beside = [("basic", {"dispatch": dispatch, "channel": other[rate]}) for rate in (11.0, 1.0)]
        criteria.append(Criterion(sweep.ratio(metric, *beside), regions[dispatch], f"with {label}"))
    text = ", ".join(f"{_percent(criterion.quantity)} {criterion.label}" for criterion in criteria)
    return Finding(criteria, f"beside a host that loses 11 %, in place of 1 %: {text}")


def of_each(evidence: Evidence) -> Finding:
    """Compare the mean segment sizes of two hosts with channels of their own."""
    sweep, other = evidence.sweep("segments-of-two"), _other(evidence, "segments-of-two")

    def size(host: str, rate: float) -> Sample:
        payload, number = (
            sweep.sample(f"connection.{host}.{metric}", "vs-tcp", {"channel": other[rate]})
            for metric in MEAN_SIZE
        )
        return payload / number

    good, bad = (size(host, 11.0) for host in HOSTS)
    text = f"{good.mean():.0f} B to the host that loses 1 %, {bad.mean():.0f} B to the one that loses 11 %"
    return Finding([Criterion(ratio(bad, good), below(text="smaller to the host that loses more"))], text)
