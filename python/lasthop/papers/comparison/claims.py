"""The claims of the paper's tables and text, each with its section."""

from __future__ import annotations

from functools import partial
from typing import NotRequired, TypedDict, Unpack

from lasthop.papers.claims import Contradiction, CustomClaim
from lasthop.papers.comparison.figures import (
    END_TO_END,
    LINK_LAYER,
)
from lasthop.papers.comparison.findings import (
    behind,
    best,
    better_in_bursts,
    both,
    burst,
    counts,
    curve,
    eln_in_the_lan,
    equally_well,
    figure_4_cut,
    figure_4_growth,
    goodput,
    grows_with_buffer,
    high_rate,
    no_timeouts,
    number,
    of_peak,
    peak,
    ratios,
    sack_at_high_rates,
    window_stays,
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
from lasthop.papers.paper import Claim
from lasthop.papers.verdicts import (
    Region,
    about,
    above,
    doubles,
    same,
    slightly_above,
    slightly_below,
)

_TABLES = {
    **dict.fromkeys(LINK_LAYER, "4.2, table 2"),
    **dict.fromkeys(END_TO_END, "4.3, table 3"),
    "SPLIT": "4.4, table 4",
    "SPLIT-SMART": "4.4, table 4",
}
_COPIES = (
    "our copies are sent ahead of the queue and fill most gaps before the third duplicate "
    "ACK, so the source retransmits fewer segments; with the reading queue=fifo it "
    "retransmits more"
)
_DUPLEX = (
    "bursts are on the duplex link, whose rate is fitted to the peak, and acknowledgements take no air time"
)
_WHY = {
    "wan-32-e2e-newreno": "with the reading ack=1 ours is 0.52 Mb/s",
    "wan-32-e2e-ietf-sack": "with the reading ack=1 ours is 0.52 Mb/s",
    "lan-8-ll": "with the reading deflation=always ours is 1.32 Mb/s",
    "lan-32-ll": "with the reading deflation=always ours is 1.38 Mb/s",
    "wan-32-ll-tcp-aware": "with the reading queue=fifo ours is 1.30 Mb/s",
    **{f"{setting}-ll-smart": _COPIES for setting in SETTINGS},
}
_WHY_GOODPUT = {
    **{f"{setting}-ll-smart": _COPIES for setting in SETTINGS},
    "lan-8-ll": "with a window of five segments, fewer losses cause three duplicate ACKs at the source",
    "wan-32-ll": (
        "the base station acknowledges retransmissions of already acknowledged segments instead "
        "of forwarding them (MobiCom 1995), so less is sent over the air"
    ),
}
_CHANCE = (
    "one error in 65,536 B loses 2.2 % of packets of 1440 B, 130 on average; the printed runs of figures 5 "
    "and 7 repair 130 to 191"
)


class _Text(TypedDict):
    """The text fields of claims that compare two protocols."""

    id: str
    section: str
    statement: str
    printed: str
    fails_if: str
    why: NotRequired[str]


def _faster(
    pairs: tuple[tuple[str, str, str], ...],
    region: Region,
    decimals: int = 2,
    note: str = "",
    **stated: Unpack[_Text],
) -> CustomClaim:
    """Return a claim about ratios of throughput: (setting, protocol, other protocol)."""
    names = dict.fromkeys(experiment(setting, name) for setting, *both in pairs for name in both)
    how = partial(ratios, pairs, region, decimals, note=note)
    return CustomClaim(experiment=next(iter(names)), further=tuple(names), evaluate=how, **stated)


def _slower(setting: str, ours: str, theirs: str, region: Region, **stated: Unpack[_Text]) -> CustomClaim:
    """Return a claim about the relative difference of a protocol to a faster one."""
    how = partial(behind, setting, ours, theirs, region)
    besides = (experiment(setting, theirs),)
    return CustomClaim(experiment=experiment(setting, ours), further=besides, evaluate=how, **stated)


CLAIMS: tuple[Claim, ...] = (
    *(
        CustomClaim(
            id=f"peak-{setting}",
            section="4.1",
            statement=f"{SETTINGS[setting]}: the peak throughput without errors",
            printed=f"{PEAK[setting] / 1e6:.2f} Mb/s",
            experiment=f"peak-{setting}",
            fails_if="it is more than 2 % from the printed value",
            why="with the reading wide-area=wired it agrees" if setting == "wan-32" else "",
            evaluate=partial(peak, setting),
        )
        for setting in ("lan-32", "wan-32")
    ),
    *(
        CustomClaim(
            id=f"{setting}-{protocol.id}",
            section=_TABLES[protocol.name],
            statement=f"{protocol.name}, {SETTINGS[setting]}: throughput",
            printed=f"{PRINTED[protocol.name][setting][0]:.2f} Mb/s",
            experiment=experiment(setting, protocol.name),
            fails_if="the mean is more than a tenth from the printed value",
            why=_WHY.get(f"{setting}-{protocol.id}", ""),
            evaluate=partial(number, setting, protocol.name),
        )
        for protocol in PROTOCOLS.values()
        for setting in SETTINGS
        if setting in PRINTED[protocol.name]
    ),
    *(
        CustomClaim(
            id=f"goodput-{setting}-{protocol.id}",
            section=_TABLES[protocol.name],
            statement=f"{protocol.name}, {SETTINGS[setting]}: goodput of the wireless and the wired path",
            printed="{1:.1f} %, {2:.1f} %".format(*PRINTED[protocol.name][setting]),
            experiment=experiment(setting, protocol.name),
            fails_if="one is more than half a point from the printed value",
            why=_WHY_GOODPUT.get(f"{setting}-{protocol.id}", _CHANCE),
            evaluate=partial(goodput, setting, protocol.name),
        )
        for protocol in PROTOCOLS.values()
        for setting in SETTINGS
        if setting in PRINTED[protocol.name]
    ),
    _slower(
        "lan-32",
        "LL",
        "LL-TCP-AWARE",
        about(0.10),
        id="aware-lan",
        section="4.2",
        statement="LAN: LL is about 10 % behind LL-TCP-AWARE",
        printed="10 %",
        fails_if="it is not 8 to 12 % behind",
        why=("unnecessary retransmissions take 3 % of the air time; half a window still fills the path"),
    ),
    _slower(
        "wan-32",
        "LL",
        "LL-TCP-AWARE",
        about(0.30),
        id="aware-wan",
        section="4.2",
        statement="WAN: LL is about 30 % behind LL-TCP-AWARE",
        printed="30 %",
        fails_if="it is not 24 to 36 % behind",
    ),
    CustomClaim(
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
        evaluate=both,
    ),
    CustomClaim(
        id="ll-no-timeouts",
        section="4.2, figure 5",
        statement="no coarse timeouts with LL and LL-TCP-AWARE",
        printed="0",
        experiment=experiment("wan-32", "LL"),
        further=tuple(
            experiment(setting, name) for setting in ("lan-32", "wan-32") for name in ("LL", "LL-TCP-AWARE")
        ),
        fails_if="the source has a timeout in more than 1 % of the runs",
        evaluate=partial(no_timeouts, ("LL", "LL-TCP-AWARE"), ("lan-32", "wan-32"), ("timeouts",)),
    ),
    CustomClaim(
        id="e2e-lan",
        section="4.3",
        statement="LAN: E2E achieves less than 50 % of the maximum",
        printed="50 %",
        experiment=experiment("lan-32", "E2E"),
        fails_if="it is half or more",
        evaluate=partial(of_peak, "lan-32", 0.5),
    ),
    CustomClaim(
        id="e2e-wan",
        section="4.3",
        statement="WAN: E2E achieves less than 25 % of the maximum",
        printed="25 %",
        experiment=experiment("wan-32", "E2E"),
        fails_if="it is a quarter or more",
        evaluate=partial(of_peak, "wan-32", 0.25),
    ),
    _faster(
        (("lan-8", "E2E-NEWRENO", "E2E"), ("lan-32", "E2E-NEWRENO", "E2E")),
        Region(1.1, 1.25, "10 to 25 % better"),
        note="table 3's own numbers are 20 % with 8 KB and 27 % with 32 KB",
        id="newreno-lan",
        section="4.3",
        statement="LAN: NEWRENO is between 10 and 25 % better than E2E",
        printed="10 to 25 %",
        fails_if="it is not 10 to 25 % better with one of the buffers",
        why=("with 8 KB a window has five segments, and after a halving too few for three duplicate ACKs"),
    ),
    _faster(
        (("wan-32", "E2E-NEWRENO", "E2E"),),
        doubles(),
        id="newreno-wan",
        section="4.3",
        statement="WAN: NEWRENO is about 2 times better than E2E",
        printed="2 times",
        fails_if="it is not 1.8 to 2.2 times better",
    ),
    CustomClaim(
        id="newreno-buffer",
        section="4.3",
        statement="the larger the buffer, the better NEWRENO beside E2E",
        printed="-",
        experiment=experiment("lan-8", "E2E-NEWRENO"),
        further=tuple(
            experiment(setting, name) for setting in ("lan-8", "lan-32") for name in ("E2E", "E2E-NEWRENO")
        ),
        fails_if="the gain is no larger with 32 KB than with 8 KB",
        evaluate=partial(grows_with_buffer, "E2E-NEWRENO", "E2E", True),
    ),
    _faster(
        (("wan-32", "E2E-ELN", "E2E"), ("wan-32", "E2E-ELN-RXMT", "E2E")),
        above(2.0, "over twice as much"),
        id="eln-wan",
        section="4.3",
        statement="WAN: ELN and ELN-RXMT are over two times better than E2E",
        printed="2 times",
        fails_if="one is no more than twice as fast",
    ),
    Contradiction(
        id="eln-lan",
        section="4.3",
        statement="ELN is over two times better than E2E, in the LAN as well",
        printed="2 times",
        experiment=experiment("lan-32", "E2E-ELN"),
        further=(experiment("lan-32", "E2E"),),
        fails_if="it is over twice as fast",
        evaluate=eln_in_the_lan,
    ),
    _faster(
        tuple((setting, name, "E2E-NEWRENO") for setting in SETTINGS for name in ("E2E-ELN", "E2E-ELN-RXMT")),
        above(),
        note="table 3 has 0.64 Mb/s for both ELN and NEWRENO in the WAN",
        id="eln-newreno",
        section="4.3",
        statement="ELN and ELN-RXMT are better than NEWRENO",
        printed="-",
        fails_if="one is no faster in one of the settings",
    ),
    CustomClaim(
        id="rxmt-buffer",
        section="4.3",
        statement="retransmission on the first duplicate helps more with the smaller buffer",
        printed="-",
        experiment=experiment("lan-8", "E2E-ELN-RXMT"),
        further=tuple(
            experiment(setting, name)
            for setting in ("lan-8", "lan-32")
            for name in ("E2E-ELN", "E2E-ELN-RXMT")
        ),
        fails_if="the gain is no larger with 8 KB than with 32 KB",
        evaluate=partial(grows_with_buffer, "E2E-ELN-RXMT", "E2E-ELN", False),
    ),
    _faster(
        tuple((setting, "E2E-ELN-RXMT", "E2E-ELN") for setting in ("lan-32", "wan-32")),
        slightly_above(),
        note="table 3's own numbers are 1.02 times in the LAN and 1.13 times in the WAN",
        id="rxmt-slightly",
        section="4.3",
        statement="with a buffer of 32 KB ELN-RXMT performs only slightly better than ELN",
        printed="slightly",
        fails_if="in the LAN or the WAN it is no faster, or over a tenth faster",
    ),
    CustomClaim(
        id="smart-best",
        section="4.3",
        statement="LAN: SMART is the best of the end-to-end protocols",
        printed="-",
        experiment=experiment("lan-32", "E2E-SMART"),
        further=tuple(experiment("lan-32", name) for name in END_TO_END),
        fails_if="another one is as fast",
        evaluate=partial(best, "lan-32", "E2E-SMART", END_TO_END),
    ),
    _slower(
        "wan-32",
        "E2E-IETF-SACK",
        "LL-SMART-TCP-AWARE",
        about(0.35),
        id="sack-wan",
        section="4.3",
        statement="WAN: selective acknowledgements are about 35 % behind the best link-layer protocol",
        printed="35 %",
        fails_if="they are not 28 to 42 % behind",
    ),
    _slower(
        "lan-32",
        "E2E-SMART",
        "LL-SMART-TCP-AWARE",
        Region(0.08, 0.18, "8 to 18 %: about is within a fifth"),
        id="sack-lan",
        section="4.3",
        statement="LAN: SMART acknowledgements are about 10-15 % behind the best link-layer protocol",
        printed="10-15 %",
        fails_if="SMART is not 8 to 18 % behind",
    ),
    _faster(
        (("lan-32", "SPLIT", "E2E"),),
        same(),
        note="the tables' own numbers are 0.60 and 0.70 Mb/s",
        id="split-lan",
        section="4.4",
        statement="LAN: SPLIT is quite low, about the same as E2E",
        printed="the same",
        fails_if="it is more than a tenth from it",
    ),
    *(
        CustomClaim(
            id=f"figure-{figure}-{PROTOCOLS[name].id}",
            section=f"figure {figure}",
            statement=f"{name}, WAN: {' and '.join(what)} of the source in the printed run",
            printed=" and ".join(map(str, printed)),
            experiment=experiment("wan-32", name),
            fails_if="over 95 % of the runs have fewer, or over 95 % have more",
            evaluate=partial(counts, name, dict(zip(what, printed, strict=True))),
        )
        for figure, name, what, printed in (
            ("5", "LL", ("fast retransmissions",), (91,)),
            ("7", "E2E", ("fast retransmissions", "timeouts"), (120, 32)),
            ("7", "E2E-ELN", ("fast retransmissions", "timeouts"), (118, 12)),
        )
    ),
    CustomClaim(
        id="figure-4-cut",
        section="figure 4",
        statement="LL, WAN: the window after a cut, relative to that before it, in the printed run",
        printed="curve",
        experiment="trace-ll",
        fails_if="the mean of the runs is over a tenth beyond what the curve gives by its smoothing",
        evaluate=figure_4_cut,
    ),
    CustomClaim(
        id="figure-4-growth",
        section="figure 4",
        statement="LL, WAN: the growth of the window in congestion avoidance, in the printed run",
        printed="curve",
        experiment="trace-ll",
        fails_if="the mean of the runs is over a tenth beyond what the curve gives by its smoothing",
        evaluate=figure_4_growth,
    ),
    CustomClaim(
        id="split-window",
        section="4.4, figure 11",
        statement="the wired sender of SPLIT maintains a congestion window of 64 KB",
        printed="64 KB",
        experiment="trace-split",
        fails_if="in a run the window falls below 64 KB after it has reached them",
        # It never sees a loss, and by the same sentence idle periods do not end its window.
        definition=True,
        evaluate=window_stays,
    ),
    CustomClaim(
        id="split-wired",
        section="4.4, figure 10",
        statement="the wired part of SPLIT has neither retransmissions nor timeouts",
        printed="0",
        experiment=experiment("wan-32", "SPLIT"),
        further=tuple(experiment(setting, "SPLIT") for setting in ("lan-32", "wan-32")),
        fails_if="it has some in more than 1 % of the runs",
        # Zero-window probes of the base station are retransmitted without a loss.
        evaluate=partial(no_timeouts, ("SPLIT",), ("lan-32", "wan-32"), ("timeouts", "fast_retransmits")),
    ),
    _faster(
        (("wan-32", "SPLIT", "E2E"),),
        above(),
        id="split-wan",
        section="4.4",
        statement="WAN: SPLIT is better than E2E",
        printed="0.58 to 0.31 Mb/s",
        fails_if="it is no faster",
    ),
    _faster(
        tuple((setting, "SPLIT-SMART", "LL-SMART-TCP-AWARE") for setting in SETTINGS),
        slightly_below(),
        decimals=3,
        id="split-smart",
        section="4.4, 6",
        statement="SPLIT-SMART is slightly less than LL-SMART-TCP-AWARE",
        printed="-",
        fails_if="in one of the settings it is not less, or more than a tenth less",
    ),
    *(
        CustomClaim(
            id=f"best-{setting}",
            section="3.2, 6",
            statement=f"{SETTINGS[setting]}: LL-SMART-TCP-AWARE performs best of all protocols",
            printed="-",
            experiment=experiment(setting, "LL-SMART-TCP-AWARE"),
            further=tuple(experiment(setting, name) for name in PROTOCOLS if setting in PRINTED[name]),
            fails_if="another one is as fast",
            evaluate=partial(best, setting, "LL-SMART-TCP-AWARE", tuple(PROTOCOLS)),
        )
        for setting in SETTINGS
    ),
    *(
        CustomClaim(
            id=f"figure-12-{PROTOCOLS[name].id}",
            section="4.6, figure 12",
            statement=f"{name} at one error every 16 to 256 KB",
            printed=", ".join(f"{value:.2f}" for value in FIGURE_12[name]) + " Mb/s",
            experiment=at_distance(16, name),
            further=tuple(at_distance(distance, name) for distance in DISTANCES),
            fails_if="at one of the rates the mean is more than a tenth from the printed value",
            evaluate=partial(curve, name),
        )
        for name in FIGURE_12
    ),
    *(
        CustomClaim(
            id=f"bursts-{packets}-{PROTOCOLS[name].id}",
            section="4.5, table 5",
            statement=f"{name}: throughput with bursts of {packets} packets",
            printed=f"{TABLE_5[name][packets]:.2f} Mb/s",
            experiment=f"bursts-{packets}-{PROTOCOLS[name].id}",
            fails_if="the mean is more than a tenth from the printed value",
            why=_DUPLEX,
            evaluate=partial(burst, packets, name),
        )
        for name in TABLE_5
        for packets in BURSTS
    ),
    CustomClaim(
        id="smart-bursts",
        section="4.5",
        statement="in bursts SMART improves LL-TCP-AWARE by up to 30 %",
        printed="30 %",
        experiment="bursts-6-ll-smart-tcp-aware",
        further=tuple(f"bursts-{packets}-{PROTOCOLS[name].id}" for name in TABLE_5 for packets in BURSTS),
        fails_if="the largest of the three gains is not 24 to 36 %",
        evaluate=better_in_bursts,
    ),
    CustomClaim(
        id="sixteen-smart",
        section="4.6",
        statement="at 16 KB the TCP-aware link layers are about 1.75 to 2 times better than E2E-SMART",
        printed="1.75 to 2 times",
        experiment=at_distance(16, "LL-TCP-AWARE"),
        further=tuple(at_distance(16, name) for name in ("LL-SMART-TCP-AWARE", "E2E-SMART")),
        fails_if="one is not 1.4 to 2.4 times better",
        evaluate=partial(
            high_rate, "E2E-SMART", Region(1.4, 2.4, "1.4 to 2.4 times: about is within a fifth")
        ),
    ),
    CustomClaim(
        id="sixteen-e2e",
        section="4.6",
        statement="at 16 KB they are about 9 times better than E2E",
        printed="9 times",
        experiment=at_distance(16, "LL-TCP-AWARE"),
        further=tuple(at_distance(16, name) for name in ("LL-SMART-TCP-AWARE", "E2E")),
        fails_if="one is not 7.2 to 10.8 times better",
        evaluate=partial(high_rate, "E2E", about(9.0)),
    ),
    CustomClaim(
        id="equally-well",
        section="4.6",
        statement="at 128 and 256 KB all protocols but E2E perform almost equally well",
        printed="-",
        experiment=at_distance(128, "LL-SMART-TCP-AWARE"),
        further=tuple(
            at_distance(distance, name) for distance in (128, 256) for name in FIGURE_12 if name != "E2E"
        ),
        fails_if="one is more than a tenth from the best",
        evaluate=equally_well,
    ),
    CustomClaim(
        id="sack-high-rates",
        section="4.6",
        statement="at high error rates SMART is better than the IETF's selective acknowledgements",
        printed="-",
        experiment=at_distance(16, "E2E-SMART"),
        further=tuple(
            at_distance(distance, name) for distance in (16, 32) for name in ("E2E-SMART", "E2E-IETF-SACK")
        ),
        fails_if="it is no faster at 16 or 32 KB",
        evaluate=sack_at_high_rates,
    ),
)
