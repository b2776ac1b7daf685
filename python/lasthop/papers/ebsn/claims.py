"""The claims of the paper's text, each with its section."""

from __future__ import annotations

import numpy as np

from lasthop import Run
from lasthop.papers.claims import KBPS, Best, Differs, Gain, Never, Number, Reaches, Told, Trend, Unit
from lasthop.papers.ebsn.figures import GOOD, LOCAL_GOOD, LOCAL_MAX, WIDE_MAX, ceiling
from lasthop.papers.evidence import Evidence, total
from lasthop.papers.paper import CONTRADICTS, FAILS, HOLDS, Claim, Judgement
from lasthop.study.quantity import number

SCATTER = 0.04
"""Section 5: "the standard deviation for all results presented is less than 4%"."""

_KB = Unit("KB", 1e3, 1)
_LARGE = ("1024 B", "1280 B", "1536 B")


def _times(run: Run, kind: str, start: float, end: float) -> list[tuple[float, int]]:
    """Return the times and packets of the events of a kind within an interval."""
    events = run.events()
    found = (events["event"] == kind) & (start <= events["time_s"]) & (events["time_s"] < end)
    return list(zip(events["time_s"][found].tolist(), events["packet"][found].tolist(), strict=True))


def _resent(run: Run, start: float, end: float) -> list[tuple[float, int]]:
    """Return the times and packets of retransmissions within an interval."""
    events = run.events()
    found = (events["event"] == "sent") & (events["transmission"] > 1)
    found &= (start <= events["time_s"]) & (events["time_s"] < end)
    return list(zip(events["time_s"][found].tolist(), events["packet"][found].tolist(), strict=True))


def _packet_27(evidence: Evidence) -> Judgement:
    timeouts = _times(evidence.traces("trace")["local-recovery"], "timeout", 10, 14)
    text = ", ".join(f"packet {packet} at {time:.2f} s" for time, packet in timeouts) or "no timeout"
    holds = any(packet == 27 and round(time, 2) == 13.75 for time, packet in timeouts)
    return Judgement(HOLDS if holds else FAILS, text, timeouts[0][0] if timeouts else None)


def _nothing_resent(evidence: Evidence) -> Judgement:
    run = evidence.traces("trace")["local-recovery"]
    resent, later = _resent(run, 24, 28), _times(run, "timeout", 28, 29)
    note = "".join(f"the source times out {time - 28:.2f} s after the period" for time, _ in later[:1])
    return Judgement(FAILS if resent else HOLDS, f"{len(resent)} packets sent again", len(resent), note=note)


def _basic_losses(evidence: Evidence) -> Judgement:
    run = evidence.traces("trace")["basic"]
    lost = [packet for _, packet in _times(run, "lost", 24, 28.5)]
    text = f"packets {min(lost)} to {max(lost)}" if lost else "nothing is lost"
    note = "doubling from the first timeout on loses more time here; the reading backoff=none gives 44 to 49"
    return Judgement(HOLDS if lost and min(lost) == 44 else FAILS, text, note=note)


def _basic_again(evidence: Evidence) -> Judgement:
    first = _resent(evidence.traces("trace")["basic"], 24, 42)[:2]
    text = ", ".join(f"packet {packet} at {time:.1f} s" for time, packet in first) or "nothing"
    holds = [round(time, 1) for time, _ in first] == [25.9, 28.3]
    note = "with the reading backoff=none they are as far apart, a second later"
    return Judgement(HOLDS if holds else FAILS, text, note=note)


def _basic_loses_all(evidence: Evidence) -> Judgement:
    events = evidence.traces("trace")["basic"].events()
    arrived = events["time_s"][events["event"] == "delivered"] % 14.0
    through = int(np.count_nonzero(arrived > 10.0))
    return Judgement(FAILS if through else HOLDS, f"{through} packets arrive in a bad period", through)


def _clean(evidence: Evidence) -> Judgement:
    metrics = evidence.traces("trace")["ebsn"].metrics
    timeouts, resent = metrics["timeouts"], metrics["retransmitted_segments"]
    verdict = FAILS if timeouts or resent else HOLDS
    return Judgement(verdict, f"{timeouts} timeouts, {resent} packets sent again", timeouts)


def _misprint(evidence: Evidence) -> Judgement:
    ours = ceiling(GOOD, 1.0, WIDE_MAX)
    note = "the paper's own formula, 12.8 · 10 / (10 + 1), gives 11.64; the figures are drawn with it"
    return Judgement(CONTRADICTS, KBPS.text(ours), ours, note=note)


def _limit_binds(evidence: Evidence) -> Judgement:
    sweep = evidence.sweep("limit")
    shares = {}
    for backoff in sweep.values("backoff"):
        timeouts = sweep.sample("timeouts", "ebsn", {"backoff": backoff, "most": "13"})
        shares[backoff] = float(np.mean(timeouts > 0))
    text = ", ".join(
        f"{share:.0%} of transfers with waits up to {backoff}" for backoff, share in shares.items()
    )
    note = "not both at a mean bad period of 4 s: figure limit-timeouts; reading retransmissions=unlimited"
    verdict = CONTRADICTS if min(shares.values()) > 0 else HOLDS
    return Judgement(verdict, f"timeouts in {text}", min(shares.values()), note=note)


def _local_gain(evidence: Evidence) -> Judgement:
    sweep = evidence.sweep("local")
    gains = {}
    for at in sweep.points():
        ratio = sweep.versus("throughput_bps", ("ebsn", at), ("basic", at)).ratio
        if ratio is not None:
            gains[at["bad"]] = ratio
    best = max(gains, key=lambda bad: gains[bad].mean)
    found = gains[best]
    holds = abs(found.mean - 1.5) <= found.ci95 + 1.5 * 2 * np.sqrt(2) * SCATTER
    text = f"up to {found.mean - 1:+.0%} ± {found.ci95:.0%} (bad {best})"
    note = "least timeout and wired delay decide it; neither is given: readings min-rto, wired-delay"
    return Judgement(HOLDS if holds else FAILS, text, found.mean - 1, found.ci95, note)


def _quench(evidence: Evidence) -> Judgement:
    sweep = evidence.sweep("wide")
    amounts = {scheme: total(sweep, "timeouts", scheme) for scheme in ("source-quench", "local-recovery")}
    ours, theirs = (amount / of for amount, _, of in amounts.values())
    text = f"{ours:.2f} timeouts per transfer; local recovery without it has {theirs:.2f}"
    return Judgement(HOLDS if ours > 0.5 * theirs else FAILS, text, ours)


def _scatter(evidence: Evidence) -> Judgement:
    sweep = evidence.sweep("wide")
    spreads = []
    for at in sweep.points():
        for scheme in ("basic", "ebsn"):
            found = sweep.mean("throughput_bps", scheme, at)
            spreads.append(found.sd / found.mean)
    text = f"{min(spreads):.0%} to {max(spreads):.0%} from run to run"
    note = "a transfer meets few bad periods; the paper's numbers must be means of many runs"
    return Judgement(HOLDS if max(spreads) < SCATTER else FAILS, text, max(spreads), note=note)


def _basic_local(evidence: Evidence) -> Judgement:
    amount, runs, of = total(evidence.sweep("local"), "timeouts", "basic")
    resent, _, _ = total(evidence.sweep("local"), "retransmitted_bytes", "basic")
    text = f"{amount / of:.1f} timeouts and {resent / of / 1e3:.0f} KB sent again per transfer"
    return Judgement(HOLDS if runs > of / 2 else FAILS, text, amount / of)


_UP = "no notice is sent while the mobile host sends an acknowledgement again and again"
_BASIC_512 = ("basic", {"bad": "1 s", "size": "512 B"})
_BASIC_1536 = ("basic", {"bad": "1 s", "size": "1536 B"})
_WORST = {"bad": "4 s", "size": "1536 B"}

CLAIMS: tuple[Claim, ...] = (
    Told(
        id="trace-27",
        section="4.2.1",
        statement="local recovery: in the bad period of 10-14 s the source times out for packet 27",
        printed="13.75 s",
        experiment="trace",
        how=_packet_27,
    ),
    Told(
        id="trace-second",
        section="4.2.1",
        statement="local recovery: between 24 and 28 s the source sends nothing again",
        printed="none",
        experiment="trace",
        how=_nothing_resent,
    ),
    Told(
        id="trace-basic",
        section="4.2.1",
        statement="basic: during the bad periods all packets on the wireless link are lost",
        printed="all",
        experiment="trace",
        how=_basic_loses_all,
    ),
    Told(
        id="trace-44",
        section="4.2.1",
        statement="basic: the bad period of 24-28 s loses packets 44 to 50",
        printed="44-50",
        experiment="trace",
        how=_basic_losses,
    ),
    Told(
        id="trace-44-again",
        section="3.4",
        statement="basic: packet 44 is sent again twice",
        printed="25.9 and 28.3 s",
        experiment="trace",
        how=_basic_again,
    ),
    Told(
        id="trace-ebsn",
        section="4.2.1",
        statement="explicit feedback: no timeouts, nothing sent again",
        printed="none",
        experiment="trace",
        how=_clean,
    ),
    Told(
        id="quench",
        section="4.2.2",
        statement="source quench does not prevent timeouts of packets that are under way",
        printed="-",
        experiment="wide",
        how=_quench,
    ),
    Told(
        id="limit",
        section="4.2.1, 5.1",
        statement="at most 13 retransmissions, and yet no timeouts with EBSN",
        printed="no timeouts",
        experiment="limit",
        how=_limit_binds,
    ),
    Told(
        id="scatter",
        section="5",
        statement="the standard deviation of all results is less than 4 %",
        printed="< 4 %",
        experiment="wide",
        how=_scatter,
    ),
    Trend(
        id="bad-period",
        section="5.1",
        statement="basic: at each packet size, throughput falls as the bad period grows",
        printed="falls",
        experiment="wide",
        metric="throughput_bps",
        scheme="basic",
        axis="bad",
        rises=False,
        unit=KBPS,
        scatter=SCATTER,
    ),
    Best(
        id="best-1s",
        section="5.1",
        statement="basic, bad 1 s: 512 B is the best packet size",
        printed="512 B",
        experiment="wide",
        metric="throughput_bps",
        scheme="basic",
        at={"bad": "1 s"},
        axis="size",
        value="512 B",
        scatter=SCATTER,
    ),
    Number(
        id="best-1s-value",
        section="5.1",
        statement="basic, bad 1 s, 512 B: throughput",
        printed="8.7 kb/s",
        experiment="wide",
        metric="throughput_bps",
        scheme="basic",
        at=_BASIC_512[1],
        value=8_700,
        scatter=SCATTER,
        unit=KBPS,
    ),
    Gain(
        id="best-1s-gain",
        section="5.1",
        statement="basic, bad 1 s: 512 B beats 1536 B by about 30 %",
        printed="30 %",
        experiment="wide",
        metric="throughput_bps",
        over=_BASIC_512,
        under=_BASIC_1536,
        value=0.30,
        scatter=SCATTER,
        why="ours loses less at 1536 B: a window of two such packets is over sooner, and so is the timeout",
    ),
    Best(
        id="best-3s",
        section="5.1",
        statement="basic, bad 3 s: 384 B is the best packet size",
        printed="384 B",
        experiment="wide",
        metric="throughput_bps",
        scheme="basic",
        at={"bad": "3 s"},
        axis="size",
        value="384 B",
        scatter=SCATTER,
    ),
    Told(
        id="ceiling",
        section="5.1",
        statement="the theoretical maximum for a bad period of 1 s",
        printed="11.8 kb/s",
        experiment="wide",
        how=_misprint,
    ),
    Number(
        id="worst-basic",
        section="5.1",
        statement="basic, bad 4 s, 1536 B: throughput",
        printed="4.5 kb/s",
        experiment="wide",
        metric="throughput_bps",
        scheme="basic",
        at=_WORST,
        value=4_500,
        scatter=SCATTER,
        unit=KBPS,
    ),
    Number(
        id="worst-ebsn",
        section="5.1",
        statement="EBSN, bad 4 s, 1536 B: throughput",
        printed="9.0 kb/s",
        experiment="wide",
        metric="throughput_bps",
        scheme="ebsn",
        at=_WORST,
        value=9_000,
        scatter=SCATTER,
        unit=KBPS,
    ),
    Gain(
        id="worst-gain",
        section="5.1",
        statement="bad 4 s, 1536 B: EBSN doubles the throughput",
        printed="100 %",
        experiment="wide",
        metric="throughput_bps",
        over=("ebsn", _WORST),
        under=("basic", _WORST),
        value=1.0,
        scatter=SCATTER,
    ),
    Trend(
        id="ebsn-size",
        section="5.1",
        statement="EBSN: throughput grows with packet size",
        printed="grows",
        experiment="wide",
        metric="throughput_bps",
        scheme="ebsn",
        axis="size",
        rises=True,
        unit=KBPS,
        scatter=SCATTER,
    ),
    Reaches(
        id="ebsn-ceiling",
        section="5.1",
        statement="EBSN: close to the theoretical maximum for larger packets (bad 4 s; 1024, 1280, 1536 B)",
        printed="close",
        experiment="wide",
        metric="throughput_bps",
        scheme="ebsn",
        bounds=tuple(({"bad": "4 s", "size": size}, ceiling(GOOD, 4.0, WIDE_MAX)) for size in _LARGE),
        part=0.90,
    ),
    Never(
        id="ebsn-timeouts",
        section="5.1",
        statement="EBSN, wide area: no timeouts at the source",
        printed="none",
        experiment="wide",
        metric="timeouts",
        scheme="ebsn",
        why=_UP,
    ),
    Never(
        id="ebsn-resent",
        section="5.1",
        statement="EBSN, wide area: nothing is sent again by the source",
        printed="none",
        experiment="wide",
        metric="retransmitted_bytes",
        scheme="ebsn",
        why=_UP,
    ),
    Trend(
        id="resent-size",
        section="5.1",
        statement="basic: data sent again grow with the packet size",
        printed="grow",
        experiment="wide",
        metric="retransmitted_bytes",
        scheme="basic",
        axis="size",
        rises=True,
        unit=_KB,
        scatter=SCATTER,
        why="from 1408 B on, the window of 4 KB holds two packets instead of three",
    ),
    Trend(
        id="resent-bad",
        section="5.1",
        statement="basic: data sent again grow with the bad period",
        printed="grow",
        experiment="wide",
        metric="retransmitted_bytes",
        scheme="basic",
        axis="bad",
        rises=True,
        unit=_KB,
        scatter=SCATTER,
    ),
    Differs(
        id="local-better",
        section="5.2",
        statement="local area: EBSN clearly outperforms basic TCP",
        printed="clearly",
        experiment="local",
        metric="throughput_bps",
        above="ebsn",
        below="basic",
    ),
    Told(
        id="local-gain",
        section="5.2",
        statement="local area: about 50 % better at some bad periods",
        printed="50 %",
        experiment="local",
        how=_local_gain,
    ),
    Never(
        id="local-goodput",
        section="5.2",
        statement="local area: goodput of EBSN is 100 %, as there are no timeouts",
        printed="100 %",
        experiment="local",
        metric="retransmitted_bytes",
        scheme="ebsn",
        why=_UP,
    ),
    Told(
        id="local-basic",
        section="5.2",
        statement="local area: basic TCP times out and sends much again",
        printed="-",
        experiment="local",
        how=_basic_local,
    ),
    Reaches(
        id="local-ceiling",
        section="6",
        statement="EBSN, local area: very close to the theoretical maximum",
        printed="very close",
        experiment="local",
        metric="throughput_bps",
        scheme="ebsn",
        bounds=tuple(
            ({"bad": bad}, ceiling(LOCAL_GOOD, number(bad), LOCAL_MAX)) for bad in ("400 ms", "1 s", "1.6 s")
        ),
        part=0.90,
    ),
)
