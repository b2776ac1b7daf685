"""The claims of the paper's text and table, each with its section."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lasthop._lasthop import Run
from lasthop.core.statistics import Sample
from lasthop.papers.claims import Contradiction, CustomClaim, Finding, as_gain, printed_number
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import Claim
from lasthop.papers.verdicts import (
    ABOUT,
    Criterion,
    Measured,
    Region,
    Unit,
    above,
    below,
    calculated,
    clearly_above,
    difference,
    greatly_above,
    ratio,
    within,
)
from lasthop.papers.wenp.figures import SCHEMES, flights, gain, throughput
from lasthop.papers.wenp.network import DROPS, MARGIN, PRINTED, STATIONS
from lasthop.papers.wenp.recoveries import Recovery, recoveries

_KBPS = Unit("kb/s", 1e3, 0)
REASON = "the error margin that section VII states for its means"


_WHY = {
    ("wenp", "1"): (
        "the stations with losses gain more than printed, at the expense of the first; with the reading "
        "careful=true, under which they gain as much as printed, it is within 5 %"
    ),
}


def _station(scheme: str, station: str, evidence: Evidence) -> Finding:
    """Compare an entry of table IV within the error margin stated in the paper."""
    printed = 1e3 * PRINTED[scheme][int(station) - 1]
    return _near(evidence.measured("table", scheme, throughput(station)), printed)


def _near(found: Measured, printed: float) -> Finding:
    at = found.at()
    region = printed_number(printed, MARGIN, REASON, _KBPS)
    note = f"ours is {100 * (at.mean / printed - 1):+.1f} %"
    return Finding([Criterion(found, region, unit=_KBPS)], _KBPS.estimate(at), note)


def _lossy_gain(evidence: Evidence) -> Finding:
    criteria = [
        Criterion(gain(evidence, "table", station), clearly_above(), f"MH {station}")
        for station in STATIONS[1:]
    ]
    text = ", ".join(f"{100 * (criterion.quantity.at().mean - 1):+.0f} %" for criterion in criteria)
    return Finding(criteria, f"MH 2 to 8: {text}")


def _first_loses(evidence: Evidence) -> Finding:
    found = gain(evidence, "table", "1")
    printed = PRINTED["wenp"][0] / PRINTED["basic"][0] - 1
    text = f"{as_gain(found.at())}; printed are {100 * printed:+.0f} %"
    return Finding([Criterion(found, below())], text)


def _sum(scheme: str, evidence: Evidence) -> Finding:
    return _near(evidence.measured("table", scheme, "throughput_bps"), 1e3 * sum(PRINTED[scheme]))


def _fairer(evidence: Evidence) -> Finding:
    ours, theirs = (evidence.values("table", scheme, "fairness") for scheme in ("wenp", "basic"))
    text = f"Jain's index {ours.mean():.3f} for {theirs.mean():.3f}"
    note = "the indices of the printed throughputs are 0.750 and 0.656, 14 % more"
    return Finding([Criterion(ratio(ours, theirs), greatly_above())], text, note)


def _fewer_timeouts(evidence: Evidence) -> Finding:
    ours, theirs = (evidence.values("table", scheme, "timeouts") for scheme in ("wenp", "basic"))
    text = f"{ours.mean():.1f} for {theirs.mean():.1f} in 300 s, all stations"
    region = below(text="fewer than without")
    return Finding([Criterion(ratio(ours, theirs), region)], text)


def _own_packets(run: Run) -> tuple[int, int]:
    """Return the number of packets delivered or lost that no host has sent, and of all delivered or lost."""
    own, passed = 0, 0
    for station in STATIONS:
        kinds, counts = np.unique(run.events(station)["event"], return_counts=True)
        count = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
        for sent, ends in (("sent", ("delivered", "lost")), ("ack-sent", ("ack-received", "ack-lost"))):
            ended = sum(count.get(end, 0) for end in ends)
            own += max(0, ended - count[sent])
            passed += ended
        own += count.get("notice-received", 0) + count.get("notice-lost", 0)
    return own, passed


def _injects_nothing(evidence: Evidence) -> Finding:
    own, passed = zip(*map(_own_packets, evidence.runs("trace", "wenp")), strict=True)
    text = f"{sum(own)} more packets were delivered or lost than hosts have sent, of {sum(passed):,}"
    criterion = Criterion(calculated(float(sum(own))), within(0.0, 0.0, "none in any run: by construction"))
    return Finding([criterion], f"{text}, in {len(own)} runs")


def _overhead(evidence: Evidence) -> Finding:
    series = [run.agents()["ap"] for run in evidence.runs("trace", "wenp")]
    peak = max(float(each["cached_segments_peak"][-1]) for each in series)
    lookups = max(float(each["lookups"][-1] / each["packets"][-1]) for each in series)
    text = (
        f"at most {peak:.0f} headers cached for eight connections, {lookups:.2f} look-ups for each packet, "
        f"in any of {len(series)} runs"
    )
    note = "a header is two sequence numbers; a window of 64 KiB has 45 segments, eight windows have 360"
    small = "at most the eight windows in headers, and two look-ups for each packet: by construction"
    criteria = [
        Criterion(calculated(peak), below(8 * 65_535 / 1460 + 8, small), "headers"),
        Criterion(calculated(lookups), below(2.0, small), "look-ups"),
    ]
    return Finding(criteria, text, note)


def _divisor(evidence: Evidence) -> Finding:
    found = evidence.measured("divisor-1", "basic", throughput("8"))
    note = (
        "a window of a few segments cannot be repaired without timeouts of a second or more. One "
        "loss per eight drops gives both rows (reading divisor)"
    )
    region = printed_number(214e3, MARGIN, REASON, _KBPS)
    text = f"MH 8 gets {_KBPS.text(found.at().mean)} if it loses 20 %"
    return Finding([Criterion(found, region, unit=_KBPS)], text, note)


def _lossy(evidence: Evidence, experiment: str) -> Sample:
    """Return the throughput of all stations with losses together, with WENP."""
    stations = [evidence.values(experiment, "wenp", throughput(station)) for station in STATIONS[1:]]
    return np.asarray(np.sum(stations, axis=0))


def _sooner(evidence: Evidence) -> Finding:
    """Compare a threshold of two marked duplicates with one of three."""
    names = [f"threshold-{threshold}" for threshold in (2, 3)]
    gain = ratio(*(_lossy(evidence, name) for name in names))
    two, three = (evidence.measured(name, "wenp", "timeouts") for name in names)
    fewer = below(0.0, "fewer timeouts with two than with three")
    criteria = [
        Criterion(gain, above(text="more throughput with two than with three"), "throughput"),
        Criterion(difference(two, three), fewer, "timeouts"),
    ]
    counts = f"{two.at().mean:.1f} timeouts for {three.at().mean:.1f}"
    text = f"with two in place of three MH 2 to 8 have {as_gain(gain.at(), 1)}; {counts}"
    return Finding(criteria, text)


def _alpha(evidence: Evidence) -> Finding:
    half, usual, whole = (_lossy(evidence, f"alpha-{alpha}") for alpha in ("0.5", "0.75", "1.0"))
    found = ", ".join(_KBPS.text(float(each.mean())) for each in (half, usual, whole))
    text = f"with alpha 0.5, 0.75 and 1 MH 2 to 8 have {found}"
    region = above(text="more than with 0.5")
    return Finding([Criterion(ratio(usual, half), region)], text)


def _of_recoveries(
    evidence: Evidence, over: Callable[[Recovery], float], under: Callable[[Recovery], float]
) -> dict[str, Measured]:
    """Return the sum of a value over that of another, of all recoveries of each run, by scheme."""
    found = {}
    for scheme in SCHEMES:
        seen = [list(recoveries(run)) for run in evidence.runs("recoveries", scheme)]
        found[scheme] = ratio(
            *(np.asarray([sum(map(value, each)) for each in seen], float) for value in (over, under))
        )
    return found


def _quarter(evidence: Evidence) -> Finding:
    found = _of_recoveries(
        evidence,
        lambda each: each.sent or 0.0,
        lambda each: each.window if each.sent is not None else 0.0,
    )
    shares = ", ".join(
        f"{100 * found[scheme].at().mean:.1f} % with {name}" for scheme, name in SCHEMES.items()
    )
    region = within(
        0.25, ABOUT * 0.25, '0.2 to 0.3 of the window: our margin, a fifth of the number as for "about"'
    )
    text = f"{shares} of the window are sent in the round trip after a recovery"
    return Finding([Criterion(difference(found["wenp"], found["basic"]), region)], text)


def _several_losses(evidence: Evidence) -> Finding:
    found = _of_recoveries(
        evidence,
        lambda each: float(each.losses > 1 and not each.timed_out),
        lambda each: float(each.losses > 1),
    )
    shares = ", ".join(
        f"{100 * found[scheme].at().mean:.0f} % with {name}" for scheme, name in SCHEMES.items()
    )
    region = above(0.0, "more often than without")
    return Finding(
        [Criterion(difference(found["wenp"], found["basic"]), region)], f"without a timeout: {shares}"
    )


def _two_drops(evidence: Evidence) -> Finding:
    cases = {
        "standard": ("flight-2", "basic", 0.5),
        "WENP": ("flight-2", "wenp", 0.75),
        "WENP with a threshold of 3": ("flight-3", "wenp", 0.75),
    }
    criteria, texts = [], []
    for label, (experiment, scheme, alpha) in cases.items():
        least = min(window for window, timeouts in flights(evidence, experiment, scheme) if not timeouts)
        texts.append(f"{label} from {least} segments on")
        bound = (2 + 3) / alpha
        exact = (
            f"more than {bound:.3g} segments, (N + 3)/alpha with alpha {alpha:g}: the runs are deterministic"
        )
        if experiment == "flight-2":
            region = Region(np.floor(bound) + 1, np.inf, exact)
            criteria.append(Criterion(calculated(float(least)), region, label))
    return Finding(criteria, f"no timeout: {', '.join(texts)}")


def _upload(evidence: Evidence) -> Finding:
    marked = float(evidence.values("upload", "wenp", "wenp.marked_acks").sum())
    ours, theirs = (evidence.values("upload", scheme, "throughput_bps") for scheme in ("wenp", "basic"))
    same = "the same as without, to the bit" if np.array_equal(ours, theirs) else _KBPS.text(ours.mean())
    text = f"{marked:.0f} acknowledgements marked; the throughput is {same}"
    note = (
        "acknowledgements of uploads come from the wired side, and what they miss was lost before it reached "
        "the access point; downloads (reading direction) have the printed gains"
    )
    region = Region(1.0, np.inf, "at least one acknowledgement marked")
    return Finding([Criterion(calculated(marked), region)], text, note)


CLAIMS: tuple[Claim, ...] = (
    *(
        CustomClaim(
            id=f"{SCHEMES[scheme].lower()}-{station}",
            section="VII, table IV",
            statement=f"{SCHEMES[scheme]}, MH {station}, {drop} % of packets dropped",
            printed=f"{printed} kb/s",
            experiment="table",
            fails_if="the mean is more than 5 % from the printed value",
            why=_WHY.get((scheme, station), ""),
            evaluate=partial(_station, scheme, station),
        )
        for scheme in SCHEMES
        for station, drop, printed in zip(STATIONS, DROPS, PRINTED[scheme], strict=True)
    ),
    CustomClaim(
        id="sum-standard",
        section="VII, table IV",
        statement="standard TCP, the throughput of all stations together",
        printed="4308 kb/s",
        experiment="table",
        fails_if="the mean is more than 5 % from the printed sum",
        evaluate=partial(_sum, "basic"),
    ),
    CustomClaim(
        id="sum-wenp",
        section="VII, table IV",
        statement="WENP, the throughput of all stations together",
        printed="4360 kb/s",
        experiment="table",
        fails_if="the mean is more than 5 % from the printed sum",
        evaluate=partial(_sum, "wenp"),
    ),
    CustomClaim(
        id="lossy-gain",
        section="VII, VIII",
        statement="the throughput of stations with packet drops improves significantly",
        printed="+8 % to +14 %",
        experiment="table",
        fails_if="one of the seven stations gains at most 5 %",
        evaluate=_lossy_gain,
    ),
    CustomClaim(
        id="first-loses",
        section="VII",
        statement="the throughput of MH 1, which drops nothing, decreases",
        printed="-16 %",
        experiment="table",
        fails_if="it does not decrease",
        evaluate=_first_loses,
    ),
    CustomClaim(
        id="fairer",
        section="VII",
        statement="WENP performs much fairer than standard TCP: the stations share the bandwidth",
        printed="-",
        experiment="table",
        fails_if="Jain's index is less than a fifth higher",
        evaluate=_fairer,
    ),
    CustomClaim(
        id="fewer-timeouts",
        section="I",
        statement="WENP helps to minimise unnecessary timeouts",
        printed="-",
        experiment="table",
        fails_if="there are no fewer timeouts",
        evaluate=_fewer_timeouts,
    ),
    CustomClaim(
        id="injects-nothing",
        section="VIII",
        statement="WENP injects no packet into the network",
        printed="0",
        experiment="trace",
        fails_if="a packet that no host has sent is delivered or lost",
        definition=True,
        evaluate=_injects_nothing,
    ),
    CustomClaim(
        id="overhead",
        section="VII",
        statement="WENP does not add significant overhead to the router",
        printed="-",
        experiment="trace",
        fails_if="it caches more headers than the windows hold, or looks up more than twice",
        definition=True,
        evaluate=_overhead,
    ),
    CustomClaim(
        id="alpha",
        section="V-B",
        statement="alpha 0.75 in place of 0.5 increases the throughput after a loss on the air",
        printed="-",
        experiment="alpha-0.75",
        fails_if="0.75 gives no more than 0.5",
        further=("alpha-0.5", "alpha-1.0"),
        evaluate=_alpha,
    ),
    CustomClaim(
        id="sooner",
        section="V-B",
        statement="two marked duplicates in place of three retransmit sooner: better, with fewer timeouts",
        printed="-",
        experiment="threshold-2",
        fails_if="stations with losses have no more throughput, or there are no fewer timeouts",
        further=("threshold-3",),
        evaluate=_sooner,
    ),
    CustomClaim(
        id="quarter",
        section="V-B",
        statement="alpha 0.75 increases the throughput by cwnd/4 per round trip after each recovery",
        printed="cwnd/4",
        experiment="recoveries",
        fails_if="the difference is outside 0.2 to 0.3 of the window",
        evaluate=_quarter,
    ),
    CustomClaim(
        id="several-losses",
        section="V-B",
        statement="alpha 0.75 increases the chance to recover several losses of a window",
        printed="-",
        experiment="recoveries",
        fails_if="no more windows with several losses are repaired without a timeout",
        evaluate=_several_losses,
    ),
    CustomClaim(
        id="two-drops",
        section="V-B",
        statement="the recovery of N = 2 losses requires cwnd > (N + 3)/alpha",
        printed="> (N + 3)/alpha",
        experiment="flight-2",
        fails_if="a window of at most (N + 3)/alpha segments is repaired without a timeout",
        why=(
            "alpha·cwnd - N new segments leave while the first loss is repaired, and reveal the second if "
            "they are as many as the threshold: exactly (N + 3)/alpha is enough, and with WENP's own "
            "threshold of two (N + 2)/alpha"
        ),
        further=("flight-3",),
        evaluate=_two_drops,
    ),
    Contradiction(
        id="upload",
        section="VI, figures 4, 5",
        statement="clients download; figures 4 and 5 show an upload, in which WENP improves the window",
        printed="upload",
        experiment="upload",
        fails_if="WENP marks an acknowledgement of an upload",
        evaluate=_upload,
    ),
    Contradiction(
        id="drop-rate",
        section="VI, tables I and IV",
        statement="20 % of the packets to MH 8 are dropped, and it gets 214 kb/s",
        printed="214 kb/s",
        experiment="divisor-1",
        fails_if="a loss rate of 20 % gives the printed throughput",
        evaluate=_divisor,
    ),
)
