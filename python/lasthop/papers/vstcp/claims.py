"""The claims of the paper's text, each with its section."""

from __future__ import annotations

import tomllib
from functools import partial
from itertools import pairwise

import numpy as np

from lasthop import Run, Scenario
from lasthop.papers.claims import Told
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import CONTRADICTS, FAILS, HOLDS, Claim, Judgement
from lasthop.papers.vstcp.figures import (
    LOSS,
    SPAN,
    at_rate,
    best_size,
    by_size,
    gain,
    normalised,
    rate_over_time,
    rates,
    sizes_sent,
    throughput,
)
from lasthop.papers.vstcp.network import CHANNEL, SIZES, TABLE_4
from lasthop.study.quantity import number
from lasthop.study.statistics import Comparison, Estimate, holm

SIGNIFICANT = 0.05

STEPS = {True: 2, False: 1}
"""How many steps of 64 B a best size may be off, by whether at most 3 % are lost: there, throughput hardly
depends on the size."""

Side = tuple[str, str]
"""An experiment, and a scheme in it."""

NOCON, ONE, TWO = ("rate", "metp"), ("rate", "basic"), ("rate", "i-tcp")
VS_1, VS_2 = ("rate", "vs-tcp"), ("method-2", "vs-tcp")


def _versus(evidence: Evidence, ours: Side, theirs: Side, rate: float) -> Comparison:
    """Compare throughputs in paired runs: runs of the same number meet the same fades."""
    sides = [(*side, at_rate(evidence, side[0], rate)) for side in (ours, theirs)]
    return evidence.between("throughput_bps", sides[0], sides[1])


def _ratios(found: list[Comparison]) -> str:
    means = [each.ratio.mean for each in found if each.ratio is not None]
    return f"{min(means):.2f} to {max(means):.2f} times as much"


def _ahead(
    ours: tuple[Side, ...], theirs: tuple[Side, ...], least: float, note: str, evidence: Evidence
) -> Judgement:
    """Judge whether each of `ours` has more than each of `theirs` wherever at least so many percent are lost.

    As everywhere, an ordering holds unless the runs contradict it significantly.
    """
    where = [rate for rate in rates(evidence, "rate") if rate >= least]
    found, texts = [], []
    for over in ours:
        for under in theirs:
            each = [_versus(evidence, over, under, rate) for rate in where]
            found += [(comparison, rate) for comparison, rate in zip(each, where, strict=True)]
            texts.append(_ratios(each))
    p_values = holm([comparison.difference.p_value for comparison, _ in found])
    behind = {
        rate
        for (comparison, rate), p in zip(found, p_values, strict=True)
        if comparison.difference.mean < 0 and p < SIGNIFICANT
    }
    text = "; ".join(texts)
    if behind:
        text += f"; behind at {', '.join(f'{rate:g} %' for rate in sorted(behind))}"
    return Judgement(FAILS if behind else HOLDS, text, note=note)


def _falls(evidence: Evidence) -> Judgement:
    against = []
    for label, (experiment, scheme) in {
        "one": ONE, "two": TWO, "nocon": NOCON, "VS-TCP 1": VS_1, "VS-TCP 2": VS_2
    }.items():  # fmt: skip
        found = [
            throughput(evidence, experiment, scheme, at_rate(evidence, experiment, rate))
            for rate in rates(evidence, experiment)
        ]
        against += [label for before, after in pairwise(found) if after.low > before.high]
    text = "all five fall" if not against else f"not {', '.join(against)}"
    return Judgement(FAILS if against else HOLDS, text)


def _gains(evidence: Evidence, experiment: str) -> dict[float, Estimate]:
    return {rate: normalised(evidence, experiment, "vs-tcp", rate) for rate in rates(evidence, experiment)}


def _percent(found: Estimate) -> str:
    return f"{100 * (found.mean - 1):+.1f} % ± {100 * found.ci95:.1f} %"


def _may_increase(evidence: Evidence) -> Judgement:
    gains = _gains(evidence, "rate")
    first, last = gains[1.0], gains[13.0]
    text = f"{_percent(first)} at 1 %, {_percent(last)} at 13 %"
    return Judgement(HOLDS if last.low > first.high else FAILS, text)


def _typical(evidence: Evidence) -> Judgement:
    gains = _gains(evidence, "rate")
    text = f"{_percent(gains[3.0])} at 3 %, {_percent(gains[5.0])} at 5 %"
    holds = gains[3.0].low > 1 and gains[5.0].low > 1
    return Judgement(HOLDS if holds else FAILS, text)


def _ten_percent(evidence: Evidence) -> Judgement:
    gains = {rate: each.mean - 1 for rate, each in _gains(evidence, "rate").items()}
    found = float(np.mean(list(gains.values())))
    few = float(np.mean([gain for rate, gain in gains.items() if rate <= 5]))
    text = f"{100 * found:+.0f} % on average over the eight loss rates"
    note = (
        f"beside nocon, the next best; {100 * few:+.0f} % over those up to 5 %. The paper does not say which "
        "rates its average is over; read as 5 % to 15 %"
    )
    return Judgement(HOLDS if 0.05 <= found <= 0.15 else FAILS, text, found, note=note)


def _thirty_percent(evidence: Evidence) -> Judgement:
    gains = _gains(evidence, "rate")
    rate = max(gains, key=lambda rate: gains[rate].mean)
    text = f"{_percent(gains[rate])} at {rate:g} %"
    holds = 0.225 <= gains[rate].mean - 1 <= 0.375
    note = "beside nocon; read off figure 7b, so within a quarter"
    return Judgement(HOLDS if holds else FAILS, text, gains[rate].mean - 1, gains[rate].ci95, note)


def _gap(evidence: Evidence, rate: float) -> Estimate:
    found = _versus(evidence, VS_1, VS_2, rate).ratio
    assert found is not None
    return found


def _narrows(evidence: Evidence) -> Judgement:
    gaps = {rate: _gap(evidence, rate) for rate in rates(evidence, "rate")}
    text = ", ".join(f"{100 * (gap.mean - 1):+.1f} % at {rate:g} %" for rate, gap in gaps.items())
    widest = max(gaps.values(), key=lambda each: each.mean)
    last = gaps[13.0]
    note = (
        "with L_w = 5 and e_w = 0.1 one loss keeps e_c above e_w for five packets, so that method 2 shrinks "
        "up to five times for it: where losses are rare it has time to recover, where they are frequent it "
        "stays small. With growth per acknowledgement method 2 is ahead instead (figure growth)"
    )
    return Judgement(HOLDS if last.high < widest.low else FAILS, text, last.mean - 1, last.ci95, note)


def _works_well(evidence: Evidence) -> Judgement:
    gains = {rate: gain for rate, gain in _gains(evidence, "method-2").items() if rate > 10}
    text = ", ".join(f"{_percent(gain)} beside nocon at {rate:g} %" for rate, gain in gains.items())
    return Judgement(HOLDS if all(gain.low > 1 for gain in gains.values()) else FAILS, text)


def _best_size(rate: float, evidence: Evidence) -> Judgement:
    printed, ours = TABLE_4[rate], best_size(evidence, rate)
    means = by_size(evidence, "sizes", rate)
    behind = 1 - means[SIZES.index(printed)].mean / means[SIZES.index(ours)].mean
    off = abs(ours - printed) // 64
    allowed = STEPS[rate <= 3.0]
    text = f"{ours} B" if ours == printed else f"{ours} B; {printed} B is {behind:.1%} behind"
    note = f"held to {allowed} step{'s' if allowed > 1 else ''} of 64 B: means of neighbours differ little"
    return Judgement(HOLDS if off <= allowed else FAILS, text, float(ours), note=note)


def _moves_left(evidence: Evidence) -> Judgement:
    found = {rate: best_size(evidence, rate) for rate in TABLE_4}
    text = ", ".join(f"{size} B at {rate:g} %" for rate, size in found.items())
    holds = all(after - before <= 64 for before, after in pairwise(found.values()))
    holds &= found[11.0] < found[1.0]
    return Judgement(HOLDS if holds else FAILS, text, note="a step back of 64 B is not held against it")


def _smaller(evidence: Evidence) -> Judgement:
    def mean(run: Run) -> float:
        return float(sizes_sent(run).mean())

    low, high = (evidence.over_runs(f"trace-{rate}", "vs-tcp", mean) for rate in (3, 11))
    text = f"{low.mean:.0f} B on average at 3 %, {high.mean:.0f} B at 11 %"
    return Judgement(HOLDS if high.mean < low.mean else FAILS, text)


def _lasting(evidence: Evidence) -> Judgement:
    shares = {}
    for label, experiment in (("normal", "normal"), ("without", "uncontrolled")):
        time, rate = rate_over_time(evidence.traces(experiment)["basic"])
        full = rate[time < LOSS - SPAN].mean()
        slow = time[(time > LOSS) & (rate < 0.9 * full)]
        shares[label] = float(slow.max() + SPAN - LOSS) if len(slow) else 0.0
    text = (
        f"below 90 % of its rate until {shares['normal']:.1f} s after the loss; "
        f"without, {shares['without']:.1f} s"
    )
    holds = shares["normal"] > 2 * shares["without"]
    return Judgement(HOLDS if holds else FAILS, text, shares["normal"])


def _loss_window(evidence: Evidence) -> Judgement:
    texts, clear = [], True
    for rate in (3.0, 11.0):
        values = evidence.sweep("loss-window").values("loss_window")
        points = {value: at_rate(evidence, "loss-window", rate, loss_window=value) for value in values}
        means = {value: throughput(evidence, "loss-window", "vs-tcp", at) for value, at in points.items()}
        best = max(values, key=lambda value: means[value].mean)
        behind = evidence.sweep("loss-window").versus(
            "throughput_bps", ("vs-tcp", points[best]), ("vs-tcp", points["5"])
        )
        clear &= best == "5" or behind.difference.low <= 0
        texts.append(f"{best} at {rate:g} %, where 5 is {1 - means['5'].mean / means[best].mean:.1%} behind")
    note = "best is the greatest mean; of 1, 2, 3, 5, 10, 20, 50 and 100"
    return Judgement(HOLDS if clear else FAILS, "; ".join(texts), note=note)


def _hundred(evidence: Evidence) -> Judgement:
    texts, behind = [], []
    for rate in (3.0, 11.0):
        found = evidence.sweep("loss-window").versus(
            "throughput_bps",
            ("vs-tcp", at_rate(evidence, "loss-window", rate, loss_window="100")),
            ("vs-tcp", at_rate(evidence, "loss-window", rate, loss_window="5")),
        )
        assert found.ratio is not None
        texts.append(f"{100 * (found.ratio.mean - 1):+.1f} % at {rate:g} %")
        behind.append(found.difference.high < 0)
    return Judgement(HOLDS if all(behind) else FAILS, f"100 beside 5: {', '.join(texts)}")


def _above_real(evidence: Evidence) -> Judgement:
    texts, holds = [], True
    for rate in (3.0, 11.0):
        values = evidence.sweep("wanted-loss").values("wanted_loss")
        means = {
            value: throughput(
                evidence, "wanted-loss", "vs-tcp", at_rate(evidence, "wanted-loss", rate, wanted_loss=value)
            ).mean
            for value in values
        }
        best = max(means.values())
        as_good = [value for value in values if means[value] == best]
        holds &= all(number(value) > rate / 100 for value in as_good)
        texts.append(f"{' to '.join(dict.fromkeys((as_good[0], as_good[-1])))} at {rate:g} %")
    note = (
        "it cannot be told: e_c of five packets is a multiple of 0.2, so that all e_w between two of them, "
        "below the loss rate or above, do the same"
    )
    return Judgement(HOLDS if holds else FAILS, f"best are {', '.join(texts)}", note=note)


def _range(_evidence: Evidence) -> Judgement:
    ends = {}
    for errors_per in ("byte", "bit"):
        ends[errors_per] = [
            _loss(*parameters, errors_per) for parameters in ((0.4, 0.5, 0.003), (0.1, 0.9, 0.01))
        ]
    low, high = ends["byte"]
    text = f"{low:.1%} to {high:.1%} with e per byte, {ends['bit'][0]:.1%} to {ends['bit'][1]:.1%} per bit"
    note = (
        "section V-A.2 calls e a bit error rate, but only a rate of bytes comes near the interval (reading "
        "errors-per); the ends of the axis then take e = 0.0019 and 0.0134"
    )
    return Judgement(CONTRADICTS, text, low, note=note)


def _loss(leave_error: float, leave_error_free: float, error_rate: float, errors_per: str) -> float:
    """Return the loss rate of packets with a segment of 512 B."""
    text = (
        "transfer.size='unlimited'\ntcp.profile='ns2'\nwired.rate='10 Mbps'\nradio.rate='2 Mbps'\n"
        f"[{CHANNEL}]\n"
        f"leave_error={leave_error}\nleave_error_free={leave_error_free}\nerror_rate={error_rate}\n"
        f"errors_per='{errors_per}'"
    )
    return Scenario.parse(text).packet_loss("552 B")


def _duration(evidence: Evidence) -> Judgement:
    scenario = evidence.scenario("trace-3")
    periods = scenario.bad_periods(120.0)
    found = float(np.mean([end - start for start, end in periods]))
    channel = tomllib.loads(scenario.to_toml())["radio"]["channel"]["nguyen-noble"]
    expected = 0.0002 / channel["leave_error"]
    text = (
        f"{1e3 * found:.3f} ms on average of {len(periods)} error states at 3 %; "
        f"τ_E/P_EG is {1e3 * expected:.3f} ms"
    )
    # Geometric: the standard deviation of one is below its mean.
    holds = abs(found - expected) <= 3 * expected / len(periods) ** 0.5
    return Judgement(HOLDS if holds else FAILS, text, found, note="within three standard errors")


def _growth(evidence: Evidence) -> Judgement:
    order = {}
    for growth in ("per-window", "per-ack"):
        for method in ("1", "2"):
            gains = [
                gain(
                    evidence,
                    "readings",
                    at_rate(evidence, "readings", rate, growth=growth, method=method, window="10 packets"),
                ).mean
                for rate in rates(evidence, "readings")
            ]
            order[growth, method] = float(np.mean(gains)) - 1
    text = ", ".join(f"method {method} {growth}: {value:+.1%}" for (growth, method), value in order.items())
    holds = order["per-ack", "1"] > order["per-ack", "2"]
    note = (
        "beside nocon, the average over 2, 5 and 11 %; the size and the order of the gains take growth per "
        "window"
    )
    return Judgement(HOLDS if holds else CONTRADICTS, text, order["per-ack", "1"], note=note)


CLAIMS: tuple[Claim, ...] = (
    Told(
        id="bit-error-rate",
        section="V-A.2",
        statement="P_EG 0.1 to 0.4, P_GE 0.5 to 0.9 and a bit error rate of 0.003 to 0.01 lose 1 % to 13 %",
        printed="1 % to 13 %",
        experiment="trace-3",
        how=_range,
    ),
    Told(
        id="duration",
        section="V-A.2",
        statement="the average duration of the error state is τ_E/P_EG",
        printed="τ_E/P_EG",
        experiment="trace-3",
        how=_duration,
    ),
    Told(
        id="long-recovery",
        section="II-B.1",
        statement="after wrongly invoked congestion control, normal TCP takes long to recover its rate",
        printed="-",
        experiment="normal",
        besides=("uncontrolled",),
        how=_lasting,
    ),
    Told(
        id="split-is-faster",
        section="III-A.1",
        statement="split, losses are repaired and the window is restored faster: two is ahead of one",
        printed="-",
        experiment="rate",
        how=partial(_ahead, (TWO,), (ONE,), 0.0, ""),
    ),
    Told(
        id="without-control",
        section="V-B",
        statement="schemes without congestion control outperform those that have it",
        printed="-",
        experiment="rate",
        besides=("method-2",),
        how=partial(
            _ahead,
            (NOCON, VS_1, VS_2),
            (ONE, TWO),
            0.0,
            "with a least timeout of 200 ms two comes near nocon at 1 % (reading rto-min)",
        ),
    ),
    Told(
        id="all-fall",
        section="V-B",
        statement="the throughputs of all schemes decrease as the loss rate increases",
        printed="-",
        experiment="rate",
        besides=("method-2",),
        how=_falls,
    ),
    Told(
        id="above-1",
        section="V-B",
        statement="when over 1 % are lost, VS-TCP 1 is better than nocon",
        printed="-",
        experiment="rate",
        how=partial(_ahead, (VS_1,), (NOCON,), 1.0, ""),
    ),
    Told(
        id="typical",
        section="V-B",
        statement="VS-TCP outperforms nocon where 3 % (wave-LAN) or 5 % (CDPD) are lost",
        printed="-",
        experiment="rate",
        how=_typical,
    ),
    Told(
        id="may-increase",
        section="V-B",
        statement="the normalised throughput of VS-TCP may increase with the loss rate",
        printed="-",
        experiment="rate",
        how=_may_increase,
    ),
    Told(
        id="ten-percent",
        section="VI",
        statement="VS-TCP outperforms others by about 10 % on average",
        printed="10 %",
        experiment="rate",
        how=_ten_percent,
    ),
    Told(
        id="thirty-percent",
        section="VI",
        statement="and by up to 30 %",
        printed="30 %",
        experiment="rate",
        how=_thirty_percent,
    ),
    Told(
        id="method-1-better",
        section="V-B",
        statement="VS-TCP 1 performs better than VS-TCP 2",
        printed="-",
        experiment="rate",
        besides=("method-2",),
        how=partial(
            _ahead,
            (VS_1,),
            (VS_2,),
            0.0,
            "with growth per acknowledgement, as printed, it is the other way round",
        ),
    ),
    Told(
        id="gap-narrows",
        section="V-B",
        statement="the gap between them decreases as the loss rate increases",
        printed="-",
        experiment="rate",
        besides=("method-2",),
        how=_narrows,
    ),
    Told(
        id="works-well",
        section="VI",
        statement="VS-TCP 2 works well when over 10 % are lost",
        printed="-",
        experiment="rate",
        besides=("method-2",),
        how=_works_well,
    ),
    *(
        Told(
            id=f"table-4-{rate:g}".replace(".", "-"),
            section="V-B, table 4",
            statement=f"the optimal segment size of nocon where {rate:g} % are lost",
            printed=f"{size} B",
            experiment="sizes",
            how=partial(_best_size, rate),
        )
        for rate, size in TABLE_4.items()
    ),
    Told(
        id="moves-left",
        section="III-B, figure 3",
        statement="if the error rate is high a small frame has advantages, if it is low a large one",
        printed="-",
        experiment="sizes",
        how=_moves_left,
    ),
    Told(
        id="smaller",
        section="IV-B",
        statement="VS-TCP decreases the segment size when packets are frequently lost",
        printed="-",
        experiment="trace-3",
        besides=("trace-11",),
        how=_smaller,
    ),
    Told(
        id="loss-window-5",
        section="V-B",
        statement="the optimal value of L_w is 5",
        printed="5",
        experiment="loss-window",
        how=_loss_window,
    ),
    Told(
        id="loss-window-100",
        section="V-B",
        statement="with a large L_w, such as 100, VS-TCP 2 may fail to follow the loss rate in time",
        printed="-",
        experiment="loss-window",
        how=_hundred,
    ),
    Told(
        id="above-real",
        section="IV-B.1",
        statement="e_w is to be higher than the real loss rate",
        printed="-",
        experiment="wanted-loss",
        how=_above_real,
    ),
    Told(
        id="growth",
        section="IV-B.1",
        statement="the size grows by a step with each acknowledgement, and method 1 is better",
        printed="128 B per ACK",
        experiment="readings",
        how=_growth,
    ),
)
