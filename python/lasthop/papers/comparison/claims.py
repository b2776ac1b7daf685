"""The claims of the paper's tables and text, each with its section."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from lasthop import Run
from lasthop.papers.claims import Contradiction, Finding, Told, gained, printed_number
from lasthop.papers.comparison.figures import (
    END_TO_END,
    LINK_LAYER,
    throughput,
    wired_goodput,
    wireless_goodput,
)
from lasthop.papers.comparison.network import (
    BURSTS,
    DISTANCES,
    FIGURE_12,
    PEAK,
    PRINTED,
    PROTOCOLS,
    SETTINGS,
    TABLE_5,
    at_distance,
    experiment,
)
from lasthop.papers.evidence import Evidence
from lasthop.papers.paper import Claim
from lasthop.papers.verdicts import (
    PERCENT,
    SAME,
    Part,
    Quantity,
    Region,
    Unit,
    about,
    about_gain,
    above,
    below,
    calculated,
    difference,
    doubles,
    never,
    ratio,
    same,
    share_of,
    slightly_below,
    within,
)

_MBPS = Unit("Mb/s", 1e6, 2)
_MARGIN = "within a tenth: our margin, since the paper states no scatter"
_GOODPUT = 0.005
"""How far goodput may be from the printed one: a fifth of what the losses cost."""

_TABLES = {
    **dict.fromkeys(LINK_LAYER, "4.2, table 2"),
    **dict.fromkeys(END_TO_END, "4.3, table 3"),
    "SPLIT": "4.4, table 4",
    "SPLIT-SMART": "4.4, table 4",
}
_NO_OVERHEAD = "perhaps the testbed's computers spent time on each retransmission, which ours do not"
_ACKS = (
    "with an acknowledgement for two segments the window grows half as fast as with one for each; with the "
    "reading ack=1 ours is "
)
_ELN = "ours has fewer timeouts: a window that stays large brings enough duplicates for the next loss"
_GROWTH = (
    "the constant by which the window grows on each acknowledgement makes ours faster; with the reading "
    "growth=standard it is nearer"
)
_GROWTH_TOO = "with the reading growth=standard it is (46 % and 21 %)"
_COPIES = (
    "ours sends copies ahead of the queue, so that they fill most gaps before the third duplicate, and the "
    "source retransmits fewer segments; with the reading queue=fifo it retransmits more of them"
)
_WHY = {
    "wan-32-e2e-newreno": f"{_ACKS}0.69 Mb/s",
    "wan-32-e2e-ietf-sack": f"{_ACKS}0.77 Mb/s",
    "wan-32-ll": f"{_ACKS}1.01 Mb/s",
    **{f"{setting}-{name}": _GROWTH for setting in SETTINGS for name in ("e2e", "split")},
    "lan-32-e2e-newreno": _GROWTH,
    "lan-8-e2e-ietf-sack": _GROWTH,
    **{f"{setting}-{name}": _ELN for setting in SETTINGS for name in ("e2e-eln", "e2e-eln-rxmt")},
    **{
        f"{setting}-{name}": _NO_OVERHEAD
        for setting in SETTINGS
        for name in ("ll-tcp-aware", "ll-smart-tcp-aware", "split-smart", "e2e-smart")
    },
    **{f"{setting}-ll-smart": _COPIES for setting in SETTINGS},
    **{f"{setting}-ll": _NO_OVERHEAD for setting in ("lan-8", "lan-32")},
}
_WHY_GOODPUT = {
    **{f"{setting}-ll-smart": _COPIES for setting in SETTINGS},
    "lan-8-ll": "of a window of five segments fewer losses bring the source three duplicates",
    "wan-32-ll": (
        "the base station answers what the source retransmits and the mobile host has acknowledged, and "
        "does not forward it (MobiCom 1995), so that less is sent over the air"
    ),
}
_ROUNDING = (
    "of segments of 1440 B 2.2 % are lost with one error in 65,536 B, and nothing is sent in vain; the "
    "paper's goodput varies from 97.0 to 97.7 % for no reason that it gives"
)


def _of(evidence: Evidence, setting: str, protocol: str) -> Quantity:
    return throughput(evidence, experiment(setting, protocol), protocol)


def _over(evidence: Evidence, setting: str, ours: str, theirs: str) -> Quantity:
    """Return the ratio of the throughputs of two protocols over the same errors."""
    return ratio(_of(evidence, setting, ours).values, _of(evidence, setting, theirs).values)


def _number(setting: str, protocol: str, evidence: Evidence) -> Finding:
    found, printed = _of(evidence, setting, protocol), 1e6 * PRINTED[protocol][setting][0]
    at = found.at()
    note = f"ours is {at.mean / printed - 1:+.0%}"
    part = Part(found, printed_number(printed, SAME, _MARGIN, _MBPS), unit=_MBPS)
    return Finding([part], _MBPS.estimate(at), note)


def _goodput(setting: str, protocol: str, evidence: Evidence) -> Finding:
    parts = []
    paths = (
        ("wireless", wireless_goodput, PRINTED[protocol][setting][1]),
        ("wired", wired_goodput, PRINTED[protocol][setting][2]),
    )
    for path, of, printed in paths:
        found = of(evidence, experiment(setting, protocol), protocol)
        low, high = printed - 100 * _GOODPUT, printed + 100 * _GOODPUT
        text = (
            f"{path} {low:.1f} to {high:.1f} %: our margin, a fifth of what the losses cost, since the paper "
            "states no scatter"
        )
        parts.append(Part(found, within(printed / 100, _GOODPUT, text), path, PERCENT))
    means = " and ".join(f"{100 * part.quantity.at().mean:.1f} %" for part in parts)
    return Finding(parts, means)


def _ratios(
    pairs: Sequence[tuple[str, str, str]], region: Region, decimals: int, evidence: Evidence, note: str = ""
) -> Finding:
    """Judge ratios of throughput: (setting, protocol, other protocol)."""
    parts = [
        Part(_over(evidence, setting, ours, theirs), region, f"{ours} over {theirs}, {SETTINGS[setting]}")
        for setting, ours, theirs in pairs
    ]
    text = "; ".join(f"{part.quantity.at().mean:.{decimals}f} ({part.label})" for part in parts)
    return Finding(parts, text, note)


def _behind(setting: str, ours: str, theirs: str, region: Region, evidence: Evidence) -> Finding:
    """Judge by how much a protocol is behind another."""
    behind = Quantity(1 - _over(evidence, setting, ours, theirs).values)
    return Finding([Part(behind, region, unit=PERCENT)], f"{PERCENT.estimate(behind.at())} behind")


def _of_peak(setting: str, share: float, evidence: Evidence) -> Finding:
    found = Quantity(_of(evidence, setting, "E2E").values / PEAK[setting])
    region = below(share, f"less than {share:.0%} of the maximum")
    return Finding([Part(found, region, unit=PERCENT)], f"{PERCENT.estimate(found.at())} of the maximum")


def _no_timeouts(
    names: Sequence[str], settings: Sequence[str], metrics: Sequence[str], evidence: Evidence
) -> Finding:
    parts = []
    for name in names:
        for setting in settings:
            counts = [
                evidence.values(experiment(setting, name), PROTOCOLS[name].scheme, metric)
                for metric in metrics
            ]
            found = share_of(np.sum(counts, axis=0) > 0)
            parts.append(Part(found, never(), f"{name}, {SETTINGS[setting]}"))
    having_any = sum(int(part.quantity.values.sum()) for part in parts)
    return Finding(
        parts, f"in {having_any or 'none'} of {sum(len(part.quantity.values) for part in parts)} runs"
    )


def _grows_with_buffer(ours: str, theirs: str, larger: bool, evidence: Evidence) -> Finding:
    small, large = (_over(evidence, setting, ours, theirs) for setting in ("lan-8", "lan-32"))
    region = above(0.0, "more with 32 KB") if larger else below(0.0, "more with 8 KB")
    text = f"{gained(small.at())} with 8 KB, {gained(large.at())} with 32 KB"
    return Finding([Part(difference(large, small), region)], text)


def _best(setting: str, best: str, others: Sequence[str], evidence: Evidence) -> Finding:
    parts = [
        Part(_over(evidence, setting, best, other), above(text="faster than each other"), other)
        for other in others
        if other != best and setting in PRINTED[other]
    ]
    closest = min(parts, key=lambda part: part.quantity.at().mean)
    return Finding(parts, f"{gained(closest.quantity.at(), 1)} over {closest.label}, the next")


def _curve(protocol: str, evidence: Evidence) -> Finding:
    parts, texts = [], []
    for distance, printed in zip(DISTANCES, FIGURE_12[protocol], strict=True):
        found = throughput(evidence, at_distance(distance, protocol), protocol)
        region = printed_number(1e6 * printed, SAME, _MARGIN, _MBPS)
        parts.append(Part(found, region, f"{distance} KB", _MBPS))
        texts.append(f"{found.at().mean / 1e6:.2f} ({printed:.2f})")
    return Finding(parts, f"{', '.join(texts)} at 16, 32, 64, 128 and 256 KB (printed)")


def _at(evidence: Evidence, distance: int, ours: str, theirs: str) -> Quantity:
    one, other = (throughput(evidence, at_distance(distance, name), name) for name in (ours, theirs))
    return ratio(one.values, other.values)


def _high_rate(theirs: str, region: Region, evidence: Evidence) -> Finding:
    names = ("LL-TCP-AWARE", "LL-SMART-TCP-AWARE")
    parts = [Part(_at(evidence, 16, name, theirs), region, name) for name in names]
    text = ", ".join(f"{part.label} {part.quantity.at().mean:.2f} times" for part in parts)
    return Finding(parts, text)


def _equally_well(evidence: Evidence) -> Finding:
    names = [name for name in FIGURE_12 if name != "E2E"]
    parts = [
        Part(_at(evidence, distance, name, "LL-SMART-TCP-AWARE"), same(), f"{name} at {distance} KB")
        for distance in (128, 256)
        for name in names
        if name != "LL-SMART-TCP-AWARE"
    ]
    lowest = min(parts, key=lambda part: part.quantity.at().mean)
    return Finding(parts, f"the furthest is {lowest.label}: {gained(lowest.quantity.at())} beside the best")


def _sack_at_high_rates(evidence: Evidence) -> Finding:
    parts = [
        Part(_at(evidence, distance, "E2E-SMART", "E2E-IETF-SACK"), above(), f"{distance} KB")
        for distance in (16, 32)
    ]
    return Finding(parts, ", ".join(f"{part.quantity.at().mean:.1f} times at {part.label}" for part in parts))


def _sent_again_by_source(run: Run) -> tuple[float, float]:
    """Return how many of the lost segments the source has retransmitted, and how many were lost."""
    events = run.events()
    lost = np.unique(events["packet"][events["event"] == "lost"])
    again = np.unique(events["packet"][(events["event"] == "sent") & (events["transmission"] > 1)])
    return float(np.isin(lost, again).sum()), float(len(lost))


def _both(evidence: Evidence) -> Finding:
    found = [_sent_again_by_source(run) for run in evidence.runs("trace-ll-lan", PROTOCOLS["LL"].scheme)]
    both, lost = (np.asarray(each) for each in zip(*found, strict=True))
    share = ratio(both, lost)
    return Finding(
        [Part(share, about(0.9), unit=PERCENT)], f"{PERCENT.estimate(share.at())} of the lost segments"
    )


def _eln_in_the_lan(evidence: Evidence) -> Finding:
    found = _over(evidence, "lan-32", "E2E-ELN", "E2E")
    note = "table 3's own numbers are 0.93 and 0.70 Mb/s in the LAN, 1.33 times; it holds in the WAN"
    return Finding([Part(found, above(2.0, "over twice as much"))], f"{found.at().mean:.2f} times", note)


def _in_bursts(evidence: Evidence, packets: int, protocol: str) -> Quantity:
    return throughput(evidence, f"bursts-{packets}-{PROTOCOLS[protocol].id}", protocol)


def _burst(packets: int, protocol: str, evidence: Evidence) -> Finding:
    found, printed = _in_bursts(evidence, packets, protocol), 1e6 * TABLE_5[protocol][packets]
    part = Part(found, printed_number(printed, SAME, _MARGIN, _MBPS), unit=_MBPS)
    return Finding([part], _MBPS.estimate(found.at()), f"ours is {found.at().mean / printed - 1:+.0%}")


def _better_in_bursts(evidence: Evidence) -> Finding:
    smart, aware = reversed(TABLE_5)
    parts = [
        Part(
            ratio(_in_bursts(evidence, packets, smart).values, _in_bursts(evidence, packets, aware).values),
            about_gain(0.3),
            f"{packets} packets",
        )
        for packets in BURSTS
    ]
    text = ", ".join(f"{gained(part.quantity.at())} with {part.label}" for part in parts)
    return Finding(parts, text, rule="largest")


def _peak(setting: str, evidence: Evidence) -> Finding:
    # Without errors no chance is left.
    found = calculated(throughput(evidence, f"peak-{setting}", "E2E").at().mean)
    region = printed_number(PEAK[setting], 0.02, "our margin, four times the rounding of 1.35", _MBPS)
    return Finding([Part(found, region, unit=_MBPS)], _MBPS.estimate(found.at()))


CLAIMS: tuple[Claim, ...] = (
    *(
        Told(
            id=f"peak-{setting}",
            section="4.1",
            statement=f"{SETTINGS[setting]}: the peak throughput without errors",
            printed=f"{PEAK[setting] / 1e6:.2f} Mb/s",
            experiment=f"peak-{setting}",
            fails_if="it is more than 2 % from the printed value",
            why="with the reading wide-area=wired it agrees" if setting == "wan-32" else "",
            # The rate of the wireless link is chosen so.
            definition=setting == "lan-32",
            how=partial(_peak, setting),
        )
        for setting in ("lan-32", "wan-32")
    ),
    *(
        Told(
            id=f"{setting}-{protocol.id}",
            section=_TABLES[protocol.name],
            statement=f"{protocol.name}, {SETTINGS[setting]}: throughput",
            printed=f"{PRINTED[protocol.name][setting][0]:.2f} Mb/s",
            experiment=experiment(setting, protocol.name),
            fails_if="the mean is more than a tenth from the printed value",
            why=_WHY.get(f"{setting}-{protocol.id}", ""),
            how=partial(_number, setting, protocol.name),
        )
        for protocol in PROTOCOLS.values()
        for setting in SETTINGS
        if setting in PRINTED[protocol.name]
    ),
    *(
        Told(
            id=f"goodput-{setting}-{protocol.id}",
            section=_TABLES[protocol.name],
            statement=f"{protocol.name}, {SETTINGS[setting]}: goodput of the wireless and the wired path",
            printed="{1:.1f} %, {2:.1f} %".format(*PRINTED[protocol.name][setting]),
            experiment=experiment(setting, protocol.name),
            fails_if="one is more than half a point from the printed value",
            why=_WHY_GOODPUT.get(f"{setting}-{protocol.id}", _ROUNDING),
            how=partial(_goodput, setting, protocol.name),
        )
        for protocol in PROTOCOLS.values()
        for setting in SETTINGS
        if setting in PRINTED[protocol.name]
    ),
    Told(
        id="aware-lan",
        section="4.2",
        statement="LAN: LL is about 10 % behind LL-TCP-AWARE",
        printed="10 %",
        experiment=experiment("lan-32", "LL"),
        besides=(experiment("lan-32", "LL-TCP-AWARE"),),
        fails_if="it is not 8 to 12 % behind",
        why=(
            "ours is behind by what the needless retransmissions take, 3 % of the air; half a window still "
            "fills the path"
        ),
        how=partial(_behind, "lan-32", "LL", "LL-TCP-AWARE", about(0.10)),
    ),
    Told(
        id="aware-wan",
        section="4.2",
        statement="WAN: LL is about 30 % behind LL-TCP-AWARE",
        printed="30 %",
        experiment=experiment("wan-32", "LL"),
        besides=(experiment("wan-32", "LL-TCP-AWARE"),),
        fails_if="it is not 24 to 36 % behind",
        why=f"{_ACKS}31 % behind",
        how=partial(_behind, "wan-32", "LL", "LL-TCP-AWARE", about(0.30)),
    ),
    Told(
        id="both",
        section="4.2",
        statement="LAN: with LL the source, too, retransmits about 90 % of the lost segments",
        printed="90 %",
        experiment="trace-ll-lan",
        fails_if="the source retransmits less than 72 % of them",
        why=(
            "the base station's copies overtake the queue, and often arrive before the third duplicate "
            "(reading queue)"
        ),
        how=_both,
    ),
    Told(
        id="ll-no-timeouts",
        section="4.2, figure 5",
        statement="no coarse timeouts with LL and LL-TCP-AWARE",
        printed="0",
        experiment=experiment("wan-32", "LL"),
        besides=tuple(
            experiment(setting, name) for setting in ("lan-32", "wan-32") for name in ("LL", "LL-TCP-AWARE")
        ),
        fails_if="the source has a timeout in more than 1 % of the runs",
        how=partial(_no_timeouts, ("LL", "LL-TCP-AWARE"), ("lan-32", "wan-32"), ("timeouts",)),
    ),
    Told(
        id="e2e-lan",
        section="4.3",
        statement="LAN: E2E achieves less than 50 % of the maximum",
        printed="50 %",
        experiment=experiment("lan-32", "E2E"),
        fails_if="it is half or more",
        why=_GROWTH_TOO,
        how=partial(_of_peak, "lan-32", 0.5),
    ),
    Told(
        id="e2e-wan",
        section="4.3",
        statement="WAN: E2E achieves less than 25 % of the maximum",
        printed="25 %",
        experiment=experiment("wan-32", "E2E"),
        fails_if="it is a quarter or more",
        why=_GROWTH_TOO,
        how=partial(_of_peak, "wan-32", 0.25),
    ),
    Told(
        id="newreno-lan",
        section="4.3",
        statement="LAN: NEWRENO is between 10 and 25 % better than E2E",
        printed="10 to 25 %",
        experiment=experiment("lan-32", "E2E-NEWRENO"),
        besides=tuple(
            experiment(setting, name) for setting in ("lan-8", "lan-32") for name in ("E2E", "E2E-NEWRENO")
        ),
        fails_if="it is not 10 to 25 % better with one of the buffers",
        why="with 8 KB a window has five segments, and after a halving too few for three duplicates",
        how=partial(
            _ratios,
            (("lan-8", "E2E-NEWRENO", "E2E"), ("lan-32", "E2E-NEWRENO", "E2E")),
            Region(1.1, 1.25, "10 to 25 % better"),
            2,
            note="table 3's own numbers are 20 % with 8 KB and 27 % with 32 KB",
        ),
    ),
    Told(
        id="newreno-wan",
        section="4.3",
        statement="WAN: NEWRENO is about 2 times better than E2E",
        printed="2 times",
        experiment=experiment("wan-32", "E2E-NEWRENO"),
        besides=(experiment("wan-32", "E2E"),),
        fails_if="it is not 1.8 to 2.2 times better",
        why="plain TCP is faster than printed, so that less is left to gain (reading growth)",
        how=partial(_ratios, (("wan-32", "E2E-NEWRENO", "E2E"),), doubles(), 2),
    ),
    Told(
        id="newreno-buffer",
        section="4.3",
        statement="the larger the buffer, the better NEWRENO beside E2E",
        printed="-",
        experiment=experiment("lan-8", "E2E-NEWRENO"),
        besides=tuple(
            experiment(setting, name) for setting in ("lan-8", "lan-32") for name in ("E2E", "E2E-NEWRENO")
        ),
        fails_if="the gain is no larger with 32 KB than with 8 KB",
        how=partial(_grows_with_buffer, "E2E-NEWRENO", "E2E", True),
    ),
    Told(
        id="eln-wan",
        section="4.3",
        statement="WAN: ELN and ELN-RXMT are over two times better than E2E",
        printed="2 times",
        experiment=experiment("wan-32", "E2E-ELN"),
        besides=(experiment("wan-32", "E2E"), experiment("wan-32", "E2E-ELN-RXMT")),
        fails_if="one is no more than twice as fast",
        how=partial(
            _ratios,
            (("wan-32", "E2E-ELN", "E2E"), ("wan-32", "E2E-ELN-RXMT", "E2E")),
            above(2.0, "over twice as much"),
            2,
        ),
    ),
    Contradiction(
        id="eln-lan",
        section="4.3",
        statement="ELN is over two times better than E2E, in the LAN as well",
        printed="2 times",
        experiment=experiment("lan-32", "E2E-ELN"),
        besides=(experiment("lan-32", "E2E"),),
        fails_if="it is over twice as fast",
        how=_eln_in_the_lan,
    ),
    Told(
        id="eln-newreno",
        section="4.3",
        statement="ELN and ELN-RXMT are better than NEWRENO",
        printed="-",
        experiment=experiment("lan-32", "E2E-ELN"),
        besides=tuple(
            experiment(setting, name)
            for setting in SETTINGS
            for name in ("E2E-ELN", "E2E-ELN-RXMT", "E2E-NEWRENO")
        ),
        fails_if="one is no faster in one of the settings",
        how=partial(
            _ratios,
            tuple(
                (setting, name, "E2E-NEWRENO") for setting in SETTINGS for name in ("E2E-ELN", "E2E-ELN-RXMT")
            ),
            above(),
            2,
            note="table 3 has 0.64 Mb/s for both ELN and NEWRENO in the WAN",
        ),
    ),
    Told(
        id="rxmt-buffer",
        section="4.3",
        statement="retransmission on the first duplicate helps more with the smaller buffer",
        printed="-",
        experiment=experiment("lan-8", "E2E-ELN-RXMT"),
        besides=tuple(
            experiment(setting, name)
            for setting in ("lan-8", "lan-32")
            for name in ("E2E-ELN", "E2E-ELN-RXMT")
        ),
        fails_if="the gain is no larger with 8 KB than with 32 KB",
        how=partial(_grows_with_buffer, "E2E-ELN-RXMT", "E2E-ELN", False),
    ),
    Told(
        id="smart-best",
        section="4.3",
        statement="LAN: SMART is the best of the end-to-end protocols",
        printed="-",
        experiment=experiment("lan-32", "E2E-SMART"),
        besides=tuple(experiment("lan-32", name) for name in END_TO_END),
        fails_if="another one is as fast",
        how=partial(_best, "lan-32", "E2E-SMART", END_TO_END),
    ),
    Told(
        id="sack-wan",
        section="4.3",
        statement="WAN: selective acknowledgements are about 35 % behind the best link-layer protocol",
        printed="35 %",
        experiment=experiment("wan-32", "E2E-IETF-SACK"),
        besides=(experiment("wan-32", "LL-SMART-TCP-AWARE"),),
        fails_if="they are not 28 to 42 % behind",
        why=f"{_ACKS}47 % behind",
        how=partial(_behind, "wan-32", "E2E-IETF-SACK", "LL-SMART-TCP-AWARE", about(0.35)),
    ),
    Told(
        id="sack-lan",
        section="4.3",
        statement="LAN: SMART acknowledgements are about 10-15 % behind the best link-layer protocol",
        printed="10-15 %",
        experiment=experiment("lan-32", "E2E-SMART"),
        besides=(experiment("lan-32", "LL-SMART-TCP-AWARE"),),
        fails_if="SMART is not 8 to 18 % behind",
        why=_NO_OVERHEAD,
        how=partial(
            _behind,
            "lan-32",
            "E2E-SMART",
            "LL-SMART-TCP-AWARE",
            Region(0.08, 0.18, "8 to 18 %: about is within a fifth"),
        ),
    ),
    Told(
        id="split-lan",
        section="4.4",
        statement="LAN: SPLIT is quite low, about the same as E2E",
        printed="the same",
        experiment=experiment("lan-32", "SPLIT"),
        besides=(experiment("lan-32", "E2E"),),
        fails_if="it is more than a tenth from it",
        how=partial(
            _ratios,
            (("lan-32", "SPLIT", "E2E"),),
            same(),
            2,
            note="the tables' own numbers are 0.60 and 0.70 Mb/s",
        ),
    ),
    Told(
        id="split-wired",
        section="4.4, figure 10",
        statement="the wired part of SPLIT has neither retransmissions nor timeouts",
        printed="0",
        experiment=experiment("wan-32", "SPLIT"),
        besides=tuple(experiment(setting, "SPLIT") for setting in ("lan-32", "wan-32")),
        fails_if="it has some in more than 1 % of the runs",
        # Bytes that probe the base station's closed window are sent again, and are no losses.
        how=partial(_no_timeouts, ("SPLIT",), ("lan-32", "wan-32"), ("timeouts", "fast_retransmits")),
    ),
    Told(
        id="split-wan",
        section="4.4",
        statement="WAN: SPLIT is better than E2E",
        printed="0.58 to 0.31 Mb/s",
        experiment=experiment("wan-32", "SPLIT"),
        besides=(experiment("wan-32", "E2E"),),
        fails_if="it is no faster",
        how=partial(_ratios, (("wan-32", "SPLIT", "E2E"),), above(), 2),
    ),
    Told(
        id="split-smart",
        section="4.4, 6",
        statement="SPLIT-SMART is slightly less than LL-SMART-TCP-AWARE",
        printed="-",
        experiment=experiment("lan-32", "SPLIT-SMART"),
        besides=tuple(
            experiment(setting, name)
            for setting in SETTINGS
            for name in ("SPLIT-SMART", "LL-SMART-TCP-AWARE")
        ),
        fails_if="in one of the settings it is not less, or more than a tenth less",
        how=partial(
            _ratios,
            tuple((setting, "SPLIT-SMART", "LL-SMART-TCP-AWARE") for setting in SETTINGS),
            slightly_below(),
            3,
        ),
    ),
    *(
        Told(
            id=f"best-{setting}",
            section="3.2, 6",
            statement=f"{SETTINGS[setting]}: LL-SMART-TCP-AWARE performs best of all protocols",
            printed="-",
            experiment=experiment(setting, "LL-SMART-TCP-AWARE"),
            besides=tuple(experiment(setting, name) for name in PROTOCOLS if setting in PRINTED[name]),
            fails_if="another one is as fast",
            why=(
                "LL-SMART is as fast: its copies arrive before the third duplicate, and the duplicates that "
                "it lets through keep the ACK clock of the source running"
            ),
            how=partial(_best, setting, "LL-SMART-TCP-AWARE", tuple(PROTOCOLS)),
        )
        for setting in SETTINGS
    ),
    *(
        Told(
            id=f"figure-12-{PROTOCOLS[name].id}",
            section="4.6, figure 12",
            statement=f"{name} at one error every 16 to 256 KB",
            printed=", ".join(f"{value:.2f}" for value in FIGURE_12[name]) + " Mb/s",
            experiment=at_distance(16, name),
            besides=tuple(at_distance(distance, name) for distance in DISTANCES),
            fails_if="at one of the rates the mean is more than a tenth from the printed value",
            why=_GROWTH if name == "E2E" else _NO_OVERHEAD,
            how=partial(_curve, name),
        )
        for name in FIGURE_12
    ),
    *(
        Told(
            id=f"bursts-{packets}-{PROTOCOLS[name].id}",
            section="4.5, table 5",
            statement=f"{name}: throughput with bursts of {packets} packets",
            printed=f"{TABLE_5[name][packets]:.2f} Mb/s",
            experiment=f"bursts-{packets}-{PROTOCOLS[name].id}",
            fails_if="the mean is more than a tenth from the printed value",
            why=_NO_OVERHEAD,
            how=partial(_burst, packets, name),
        )
        for name in TABLE_5
        for packets in BURSTS
    ),
    Told(
        id="smart-bursts",
        section="4.5",
        statement="in bursts SMART improves LL-TCP-AWARE by up to 30 %",
        printed="30 %",
        experiment="bursts-6-ll-smart-tcp-aware",
        besides=tuple(f"bursts-{packets}-{PROTOCOLS[name].id}" for name in TABLE_5 for packets in BURSTS),
        fails_if="the largest of the three gains is not 24 to 36 %",
        how=_better_in_bursts,
    ),
    Told(
        id="sixteen-smart",
        section="4.6",
        statement="at 16 KB the TCP-aware link layers are about 1.75 to 2 times better than E2E-SMART",
        printed="1.75 to 2 times",
        experiment=at_distance(16, "LL-TCP-AWARE"),
        besides=tuple(at_distance(16, name) for name in ("LL-SMART-TCP-AWARE", "E2E-SMART")),
        fails_if="one is not 1.4 to 2.4 times better",
        how=partial(_high_rate, "E2E-SMART", Region(1.4, 2.4, "1.4 to 2.4 times: about is within a fifth")),
    ),
    Told(
        id="sixteen-e2e",
        section="4.6",
        statement="at 16 KB they are about 9 times better than E2E",
        printed="9 times",
        experiment=at_distance(16, "LL-TCP-AWARE"),
        besides=tuple(at_distance(16, name) for name in ("LL-SMART-TCP-AWARE", "E2E")),
        fails_if="one is not 7.2 to 10.8 times better",
        why=_NO_OVERHEAD,
        how=partial(_high_rate, "E2E", about(9.0)),
    ),
    Told(
        id="equally-well",
        section="4.6",
        statement="at 128 and 256 KB all protocols but E2E perform almost equally well",
        printed="-",
        experiment=at_distance(128, "LL-SMART-TCP-AWARE"),
        besides=tuple(
            at_distance(distance, name) for distance in (128, 256) for name in FIGURE_12 if name != "E2E"
        ),
        fails_if="one is more than a tenth from the best",
        how=_equally_well,
    ),
    Told(
        id="sack-high-rates",
        section="4.6",
        statement="at high error rates SMART is better than the IETF's selective acknowledgements",
        printed="-",
        experiment=at_distance(16, "E2E-SMART"),
        besides=tuple(
            at_distance(distance, name) for distance in (16, 32) for name in ("E2E-SMART", "E2E-IETF-SACK")
        ),
        fails_if="it is no faster at 16 or 32 KB",
        how=_sack_at_high_rates,
    ),
)
