"""The claims of the paper's text and table, each with its section."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from lasthop import Run
from lasthop.papers.claims import Told, Unit, near
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import CONTRADICTS, FAILS, HOLDS, Claim, Judgement
from lasthop.papers.wenp.figures import SCHEMES, gain, mean
from lasthop.papers.wenp.network import DROPS, MARGIN, PRINTED, STATIONS
from lasthop.study.statistics import compare_paired

_KBPS = Unit("kb/s", 1e3, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """An entry of table IV.

    Attributes
    ----------
    scheme, station : str
        Whose throughput.
    """

    scheme: str
    station: str

    @property
    def id(self) -> str:
        """Its name."""
        return f"{SCHEMES[self.scheme].lower()}-{self.station}"

    @property
    def section(self) -> str:
        """Its section in the paper."""
        return "VII, table IV"

    @property
    def _value(self) -> int:
        return PRINTED[self.scheme][int(self.station) - 1]

    @property
    def statement(self) -> str:
        """The statement."""
        drop = DROPS[int(self.station) - 1]
        return f"{SCHEMES[self.scheme]}, MH {self.station}, {drop} % of packets dropped"

    @property
    def printed(self) -> str:
        """The printed value."""
        return f"{self._value} kb/s"

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments needed."""
        return ("table",)

    def judge(self, evidence: Evidence) -> Judgement:
        """Compare within the error margin that the paper states."""
        found = mean(evidence, "table", self.scheme, self.station)
        value = 1e3 * self._value
        holds = near(found, value, MARGIN / 2)
        note = f"ours is {found.mean / value - 1:+.0%}; held to its margin of 5 %"
        return Judgement(HOLDS if holds else FAILS, _KBPS.estimate(found), found.mean, found.ci95, note)


def _lossy_gain(evidence: Evidence) -> Judgement:
    gains = [gain(evidence, "table", station) for station in STATIONS[1:]]
    text = ", ".join(f"{100 * (each.mean - 1):+.0f} %" for each in gains)
    return Judgement(HOLDS if all(each.high > 1 for each in gains) else FAILS, f"MH 2 to 8: {text}")


def _first_loses(evidence: Evidence) -> Judgement:
    found = gain(evidence, "table", "1")
    printed = PRINTED["wenp"][0] / PRINTED["basic"][0] - 1
    text = f"{100 * (found.mean - 1):+.0f} % ± {100 * found.ci95:.0f} %; printed are {100 * printed:+.0f} %"
    return Judgement(HOLDS if found.low < 1 else FAILS, text, found.mean - 1, found.ci95)


def _sum(scheme: str, evidence: Evidence) -> Judgement:
    found = evidence.over_runs("table", scheme, lambda run: float(run.metrics["throughput_bps"]))
    printed = 1e3 * sum(PRINTED[scheme])
    text = f"{_KBPS.estimate(found)}; ours is {found.mean / printed - 1:+.1%}"
    holds = near(found, printed, MARGIN / 2)
    return Judgement(HOLDS if holds else FAILS, text, found.mean, found.ci95)


def _metric(evidence: Evidence, metric: str) -> tuple[np.ndarray, np.ndarray]:
    values = [
        np.asarray([float(run.metrics[metric]) for run in evidence.runs("table", scheme)])
        for scheme in ("wenp", "basic")
    ]
    return values[0], values[1]


def _fairer(evidence: Evidence) -> Judgement:
    ours, theirs = _metric(evidence, "fairness")
    found = compare_paired(ours, theirs, evidence.runs("table", "wenp")[0].seed)
    text = f"Jain's index {ours.mean():.3f} for {theirs.mean():.3f}"
    return Judgement(HOLDS if found.difference.low > 0 else FAILS, text, float(ours.mean()))


def _fewer_timeouts(evidence: Evidence) -> Judgement:
    ours, theirs = _metric(evidence, "timeouts")
    found = compare_paired(ours, theirs, evidence.runs("table", "wenp")[0].seed)
    text = f"{ours.mean():.1f} for {theirs.mean():.1f} in 300 s, all stations"
    return Judgement(HOLDS if found.difference.high < 0 else FAILS, text, float(ours.mean()))


def _injects_nothing(evidence: Evidence) -> Judgement:
    run = evidence.traces("trace")["wenp"]
    own, passed = 0, 0
    for station in STATIONS:
        kinds, counts = np.unique(run.events(station)["event"], return_counts=True)
        count = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
        for sent, ends in (("sent", ("delivered", "lost")), ("ack-sent", ("ack-received", "ack-lost"))):
            ended = sum(count.get(end, 0) for end in ends)
            own += max(0, ended - count[sent])
            passed += ended
        own += count.get("notice-received", 0) + count.get("notice-lost", 0)
    text = f"{own} more packets came to an end than hosts have sent, of {passed:,}"
    return Judgement(HOLDS if own == 0 else FAILS, text, float(own))


def _overhead(evidence: Evidence) -> Judgement:
    series = evidence.traces("trace")["wenp"].agents()["ap"]
    peak = float(series["cached_segments_peak"][-1])
    lookups = float(series["lookups"][-1] / series["packets"][-1])
    text = f"at most {peak:.0f} headers cached for eight connections, {lookups:.2f} look-ups for each packet"
    note = "a header is two sequence numbers; a window of 64 KiB has 45 segments, so eight of them 360"
    return Judgement(
        HOLDS if peak <= 8 * 65_535 / 1460 + 8 and lookups <= 2 else FAILS, text, peak, note=note
    )


def _divisor(evidence: Evidence) -> Judgement:
    nominal = mean(evidence, "divisor-1", "basic", "8")
    text = f"MH 8 gets {_KBPS.text(nominal.mean)} if it loses 20 %"
    note = (
        "printed are 214 kb/s; a window of a few segments cannot be repaired without timeouts of a second "
        "and more. One loss for eight drops gives both rows (reading divisor)"
    )
    return Judgement(CONTRADICTS, text, nominal.mean, nominal.ci95, note)


def _alpha(evidence: Evidence) -> Judgement:
    def lossy(run: Run) -> float:
        return sum(float(run.connections[station]["throughput_bps"]) for station in STATIONS[1:])

    half, usual, whole = (
        evidence.over_runs(f"alpha-{alpha}", "wenp", lossy).mean for alpha in ("0.5", "0.75", "1.0")
    )
    found = ", ".join(_KBPS.text(each) for each in (half, usual, whole))
    text = f"with alpha 0.5, 0.75 and 1 MH 2 to 8 have {found}"
    return Judgement(HOLDS if half < usual < whole else FAILS, text, usual)


CLAIMS: tuple[Claim, ...] = (
    *(Station(scheme=scheme, station=station) for scheme in SCHEMES for station in STATIONS),
    Told(
        id="sum-standard",
        section="VII, table IV",
        statement="standard, all stations together",
        printed="4308 kb/s",
        experiment="table",
        how=partial(_sum, "basic"),
    ),
    Told(
        id="sum-wenp",
        section="VII, table IV",
        statement="WENP, all stations together",
        printed="4360 kb/s",
        experiment="table",
        how=partial(_sum, "wenp"),
    ),
    Told(
        id="lossy-gain",
        section="VII",
        statement="the throughput of stations with packet drops improves",
        printed="+8 % to +14 %",
        experiment="table",
        how=_lossy_gain,
    ),
    Told(
        id="first-loses",
        section="VII",
        statement="that of MH 1, which drops nothing, decreases",
        printed="-16 %",
        experiment="table",
        how=_first_loses,
    ),
    Told(
        id="fairer",
        section="VII",
        statement="the bandwidth is shared more fairly",
        printed="-",
        experiment="table",
        how=_fairer,
    ),
    Told(
        id="fewer-timeouts",
        section="I",
        statement="it helps to minimise unnecessary timeouts",
        printed="-",
        experiment="table",
        how=_fewer_timeouts,
    ),
    Told(
        id="injects-nothing",
        section="VIII",
        statement="WENP injects no packet into the network",
        printed="0",
        experiment="trace",
        how=_injects_nothing,
    ),
    Told(
        id="overhead",
        section="VII",
        statement="WENP does not add significant overhead to the router",
        printed="-",
        experiment="trace",
        how=_overhead,
    ),
    Told(
        id="alpha",
        section="V-B",
        statement="alpha 0.75 in place of 0.5 increases the throughput after a loss on the air",
        printed="-",
        experiment="alpha-0.75",
        besides=("alpha-0.5", "alpha-1.0"),
        how=_alpha,
    ),
    Told(
        id="drop-rate",
        section="VI, tables I and IV",
        statement="20 % of the packets to MH 8 are dropped, and it gets 214 kb/s",
        printed="214 kb/s",
        experiment="divisor-1",
        how=_divisor,
    ),
)
