"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.comparison.network import PRINTED, PROTOCOLS, experiment
from lasthop.papers.paper import Choice, Reading

# The rate that gives the printed peak throughput for 8 MB.
_SLOW_WIRE = ("wired.rate=1.42 Mbps",)
_WIDE_AREA = (
    *(experiment("wan-32", name) for name in PROTOCOLS if "wan-32" in PRINTED[name]),
    *(f"trace-{name}" for name in ("ll", "ll-tcp-aware", "e2e", "e2e-eln", "split")),
    "peak-wan-32",
)

READINGS = (
    Reading(
        "growth",
        "How does the window of BSD/OS grow in congestion avoidance? The paper names TCP Reno only.",
        (
            Choice(
                "net3",
                (
                    "with an additive constant of an eighth of a segment per acknowledgement, as in 4.4BSD, "
                    "from which BSD/OS is derived (RFC 2525)"
                ),
            ),
            Choice("standard", "by at most a segment per round trip", {"": ("tcp.congestion=aimd",)}),
        ),
    ),
    Reading(
        "ack",
        "How many segments does an acknowledgement cover? Footnote 4 mentions delayed acknowledgements "
        "without saying whether they were used.",
        (
            Choice(
                "2",
                "two, or 200 ms on a clock of 200 ms, as in 4.4BSD",
                {"": ("tcp.ack_every=2", "tcp.ack_delay=200 ms", "tcp.ack_tick=200 ms")},
            ),
            Choice("1", "one"),
        ),
    ),
    Reading(
        "queue",
        "Do the base station's retransmissions overtake other packets on their way into the air?",
        (
            Choice("priority", "yes, as in the paper that proposed snoop (MobiCom 1995)"),
            Choice("fifo", "no: they wait for their turn", {"": ("scheme.snoop.expedite=false",)}),
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
            Choice("2", "two", {"": ("tcp.initial_window=2 segments",)}),
        ),
    ),
)
