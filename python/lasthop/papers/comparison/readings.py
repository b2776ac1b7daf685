"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.comparison.figures import TRACED
from lasthop.papers.comparison.network import (
    DISTANCES,
    DUPLEX,
    FIGURE_12,
    PRINTED,
    PROTOCOLS,
    SETTINGS,
    at_distance,
    duplex_error_rate,
    experiment,
)
from lasthop.papers.paper import Choice, Reading, Settings

# The rate that gives the printed peak throughput.
_SLOW_WIRE = {"wired.rate": 1.42e6}
_WIDE_AREA = (
    *(experiment("wan-32", name) for name in PROTOCOLS if "wan-32" in PRINTED[name]),
    *(name for name in TRACED if not name.endswith("-lan")),
    "peak-wan-32",
)
_EXPERIMENTS = {
    **{experiment(setting, name): name for name in PROTOCOLS for setting in PRINTED[name]},
    **{at_distance(distance, name): name for name in FIGURE_12 for distance in DISTANCES},
    **TRACED,
    **{f"peak-{setting}": "E2E" for setting in SETTINGS if setting != "lan-8"},
}
"""The protocol of each experiment with the WaveLAN."""


def _with(overrides: Settings, *protocols: str) -> dict[str, Settings]:
    """Return settings for all experiments with these protocols, but for the bursts."""
    return {name: overrides for name, protocol in _EXPERIMENTS.items() if protocol in protocols}


_RENO = tuple(name for name in PROTOCOLS if name not in ("E2E-NEWRENO", "E2E-IETF-SACK"))

READINGS = (
    Reading(
        "medium",
        'The WaveLAN is "a shared-medium wireless LAN with a raw signalling bandwidth of 2 Mbps" (section '
        "4.1). How do its stations share it? Bursts (table 5) are on the duplex link with each choice; "
        "its rate is fitted to the printed peak.",
        (
            Choice(
                "half-duplex",
                "by the rules of IEEE 802.11 at 2 Mb/s, so acknowledgements take air time: without errors "
                "this gives the printed peak of 1.5 Mb/s; the WaveLAN at 915 MHz is older",
            ),
            Choice(
                "duplex",
                "not at all: each direction has a link of 1.544 Mb/s, which gives the printed peak",
                {
                    **{
                        name: {**DUPLEX, **duplex_error_rate(64)}
                        for name in _EXPERIMENTS
                        if not name.startswith(("peak-", "every-"))
                    },
                    **{
                        at_distance(distance, name): {**DUPLEX, **duplex_error_rate(distance)}
                        for name in FIGURE_12
                        for distance in DISTANCES
                    },
                    **{name: DUPLEX for name in _EXPERIMENTS if name.startswith("peak-")},
                },
            ),
        ),
    ),
    Reading(
        "growth",
        "How does the window of BSD/OS grow in congestion avoidance? The paper names TCP Reno only.",
        (
            Choice(
                "standard",
                "by at most a segment per round trip: in figure 4 the window of LL grows by 3.3 to 5.6 kB/s, "
                "by the smoothing of the curve, ours by 4.0 kB/s, and by 5.0 with net3, which the figure "
                "does not tell apart",
            ),
            Choice(
                "net3",
                "with an additive constant of an eighth of a segment per acknowledgement, as in 4.4BSD, "
                "from which BSD/OS is derived (RFC 2525)",
                {"": {"tcp.congestion": "net3"}},
            ),
        ),
        fitted=("figure-4-growth",),
    ),
    Reading(
        "ack",
        "How many segments does an acknowledgement cover? Footnote 4 mentions delayed acknowledgements "
        "without saying whether they were used.",
        (
            Choice(
                "2",
                "two, or 200 ms on a clock of 200 ms, as in 4.4BSD",
                {"": {"tcp.ack_every": 2, "tcp.ack_delay": 0.2, "tcp.ack_tick": 0.2}},
            ),
            Choice("1", "one"),
        ),
    ),
    Reading(
        "deflation",
        "Does the end of a fast recovery take back the inflation of the window by duplicates?",
        (
            Choice(
                "figure-4",
                "not with LL, whose window in figure 4 is half the earlier one and three segments after each "
                "cut; otherwise yes, as in figure 8",
                _with({"tcp.deflation": "never"}, "LL"),
            ),
            Choice(
                "net3",
                "if more than three duplicates arrived, as in 4.4BSD: with three, the window stays as in "
                "figure 4",
                _with({"tcp.deflation": "net3"}, *_RENO),
            ),
            Choice("always", "always (RFC 5681)"),
        ),
        fitted=("figure-4-cut",),
    ),
    Reading(
        "careful",
        "May a window of NewReno and of selective acknowledgements have several fast retransmits? The paper "
        "does not say. Reno's may, as in 4.4BSD.",
        (
            Choice("true", "one per window of data, as in RFC 2582 and RFC 6675"),
            Choice(
                "false",
                "yes, as Reno's",
                _with({"tcp.careful": False}, "E2E-NEWRENO", "E2E-SMART", "E2E-IETF-SACK", "SPLIT-SMART"),
            ),
        ),
    ),
    Reading(
        "smart-clock",
        'SMART retransmits a packet again "only if the same packet was not retransmitted within the last '
        'round-trip time" (section 3.1). On which clock?',
        (
            Choice("500ms", "that of BSD, of 500 ms: a repeated loss then waits for a tick at least"),
            Choice("exact", "an exact one", _with({"scheme.smart.tick": 0.0}, "E2E-SMART", "SPLIT-SMART")),
        ),
    ),
    Reading(
        "eln-memory",
        'Which loss does ELN convey? It "does not convey information about multiple wireless-related losses" '
        "(section 4.3).",
        (
            Choice("last", "the last one, until it is acknowledged"),
            Choice(
                "first",
                "the first one, until it is acknowledged",
                _with({"scheme.eln.memory": "first"}, "E2E-ELN", "E2E-ELN-RXMT"),
            ),
            Choice(
                "all",
                "all of them, contrary to the text",
                _with({"scheme.eln.memory": "all"}, "E2E-ELN", "E2E-ELN-RXMT"),
            ),
        ),
        fitted=("wan-32-e2e-eln", "wan-32-e2e-eln-rxmt"),
    ),
    Reading(
        "eln-inflation",
        "Do duplicates inflate the window during a recovery that does not reduce it?",
        (
            Choice("no", "no: the window in figure 8 stands still"),
            Choice("yes", "yes, as in Reno", _with({"scheme.eln.inflate": True}, "E2E-ELN", "E2E-ELN-RXMT")),
        ),
    ),
    Reading(
        "queue",
        "Do the base station's retransmissions overtake other packets on their way into the air?",
        (
            Choice("priority", "yes, as in the paper that proposed snoop (MobiCom 1995)"),
            Choice("fifo", "no: they wait for their turn", {"": {"scheme.snoop.expedite": False}}),
        ),
    ),
    Reading(
        "wide-area",
        "Which link is the bottleneck in the wide area? Without errors the paper measures 1.35 Mb/s there "
        "and 1.5 Mb/s in the local area, and does not say why.",
        (
            Choice(
                "wireless",
                "the wireless one, as in the local area: the paths were chosen for their delay and were idle",
            ),
            Choice(
                "wired",
                "a wired one of 1.42 Mb/s, which gives the printed peak; packets queue there, and the "
                "base station's queue stays empty",
                dict.fromkeys(_WIDE_AREA, _SLOW_WIRE),
            ),
        ),
    ),
    Reading(
        "initial-window",
        "What is the initial window in segments?",
        (
            Choice("1", "one, as in Reno"),
            Choice("2", "two", {"": {"tcp.initial_window": "2 segments"}}),
        ),
    ),
)
