"""Ambiguities of the paper, and the possible readings of each."""

from lasthop._lasthop import Quantity
from lasthop.papers.paper import Choice, Reading, Settings
from lasthop.papers.vstcp.network import CHANNEL, RATES, TABLE_4, channel, swept

_WINDOWED = ("i-tcp", "metp", "vs-tcp")
_ALONE = ("metp", "vs-tcp")


def windows(packets: int) -> Settings:
    """Return the settings of a window of the wireless part in packets."""
    return {f"scheme.{scheme}.wireless.window": Quantity(packets, "packets") for scheme in _WINDOWED}


def counted(packets: int) -> Settings:
    """Return the sweep of the unit of the window: packets, or the bytes of packets of 512 B."""
    return {
        "sweep.scheme.vs-tcp.wireless.window": [Quantity(packets, "packets"), Quantity(512 * packets, "B")]
    }


def _window(packets: int) -> dict[str, Settings]:
    return {"": windows(packets), "readings": counted(packets)}


SELECTIVE = {f"scheme.{scheme}.recovery": "selective-repeat" for scheme in _ALONE}
"""The settings of selective repeat."""

ON_OFF: Settings = {"scheme.metp.wireless.window": Quantity(65_536, "B")}
"""The settings of METP without a window: the buffer of the base station limits it."""

_SIZES = tuple(f"table-4-{rate:g}".replace(".", "-") for rate in TABLE_4)

READINGS = (
    Reading(
        "errors-per",
        (
            "Is e a rate of bits or bytes? The paper calls it a bit error rate, and states that its "
            'parameters lose 1 % to 13 % of the packets, "by adjusting P_EG" and "P_GE" (section V-A.2). '
            "Here e is varied together with both: over its range of table 2 between 1.5 % and 12.2 %, and "
            "beyond it at 1 and 13 %, where e is 0.0019 and 0.0134."
        ),
        (
            Choice("byte", "bytes: at 2 Mb/s the printed ranges lose 1.5 % to 12.2 %"),
            Choice(
                "bit",
                "bits: they lose 4.7 % to 15.3 %, and up to 3 % e must be lower than printed",
                {
                    **dict.fromkeys(("rate", "method-2"), swept(RATES, "bit")),
                    "sizes": swept(tuple(TABLE_4), "bit"),
                    **{
                        f"{name}-{rate:.0f}": {CHANNEL: channel(rate, "bit")}
                        for name in ("trace", "trace-2")
                        for rate in (3.0, 11.0)
                    },
                },
            ),
        ),
        fitted=("bit-error-rate",),
    ),
    Reading(
        "growth",
        (
            "How fast does the size grow? Section IV-B.1 prints a step for each acknowledgement, and "
            "compares the method with congestion control."
        ),
        (
            Choice("per-ack", "a step per acknowledgement, as printed"),
            Choice(
                "per-window",
                "a step per window of acknowledgements, like congestion avoidance",
                {"": {"scheme.vs-tcp.growth": "per-window"}},
            ),
        ),
    ),
    Reading(
        "losses",
        (
            "What is a loss? In section IV-B.1 the size decreases on a timeout, or if a duplicate ACK is "
            'received, "which means that a non-congestion loss occurs"; but "when a loss is detected", '
            'VS-TCP "reduces a segment size by half", and by section V-B "only one loss results in the '
            'calculated loss rate of 20%".'
        ),
        (
            Choice(
                "duplicates",
                "each duplicate ACK, as printed, and each timeout. Those of copies that a go-back sends "
                "count as well: at 3 % method 2 goes back 985 times in 120 s, 20,095 of 51,140 ACKs bring "
                "no new data, and the size falls four times for each go-back; the other two sentences have "
                "one loss",
            ),
            Choice(
                "segments",
                "each lost segment, once: a duplicate ACK that an earlier one has reported counts no more",
                {"": {"scheme.vs-tcp.losses": "segments"}},
            ),
        ),
    ),
    Reading(
        "recovery",
        "How is a loss repaired without congestion control? The paper says only that lost packets are sent "
        "again.",
        (
            Choice(
                "go-back-n",
                "everything from the loss on is retransmitted: small sizes, as in table 4, are then optimal",
            ),
            Choice(
                "selective-repeat",
                "only lost segments are retransmitted: larger sizes are then optimal (figure recovery)",
                {"": SELECTIVE},
            ),
        ),
        fitted=_SIZES,
    ),
    Reading(
        "window",
        "How large is the window on the wireless part?",
        (
            Choice(
                "10",
                (
                    "10 packets: at 512 B they take 22.1 ms, slightly less than the 22.4 ms of an error-free "
                    "state; of 8 to 12 packets, the gains are then nearest to the printed ones"
                ),
            ),
            Choice(
                "12",
                "12 packets: more of table 4 is then optimal; method 1 gains little",
                _window(12),
            ),
            Choice("8", "8 packets", _window(8)),
        ),
        fitted=("ten-percent", "method-1-better", "works-well", "growth"),
    ),
    Reading(
        "path",
        'Which rates and delays do the links have? Figure 5 has them and is not legible; they are "from the '
        'specification of wireless LAN and communication across the United States" (section V-A.1).',
        (
            Choice("100ms", "2 Mb/s and 0.5 ms on the air, 10 Mb/s and a round trip of 100 ms in all"),
            Choice("50ms", "a round trip of 50 ms in all", {"": {"wired.delay": 0.0245}}),
        ),
    ),
    Reading(
        "nocon-window",
        'Has nocon, the wireless part of METP, a window? Table 1 has "no window, just use on-off" for METP.',
        (
            Choice("same", "the same as VS-TCP, so that they differ in the size of segments alone"),
            Choice(
                "on-off",
                "none: it sends whatever the base station holds, up to 64 KiB, and going back costs as much "
                "(claim on-off)",
                {"": ON_OFF},
            ),
        ),
    ),
    Reading(
        "window-counts",
        "What does VS-TCP's window count, when sizes change?",
        (
            Choice("packets", "packets of the current size, as in simulators that number packets"),
            Choice(
                "payload",
                (
                    "bytes, as in TCP: a window then holds many small segments, and each loss costs as much "
                    "as ever"
                ),
                {"": {"scheme.vs-tcp.wireless.window": "5120 B"}},
            ),
        ),
    ),
    Reading(
        "rto-min",
        "What is the minimum RTO of schemes with congestion control?",
        (
            Choice("1s", "one second, as in RFC 2988"),
            Choice(
                "200ms",
                "200 ms, as in ns-2: a split TCP then has 140 kB/s beside METP's 177 at 3 %, and 33 beside "
                "124 at 11 %",
                {"": {"tcp.rto_min": 0.2}},
            ),
        ),
    ),
    Reading(
        "local-rto-min",
        ("What is the minimum RTO on a wireless part without congestion control, a single hop of 1 ms?"),
        (
            Choice("200ms", "200 ms, as in ns-2: lost retransmissions then do not wait for a second"),
            Choice(
                "1s",
                "one second, as for the schemes with congestion control",
                {"": {f"scheme.{scheme}.wireless.rto_min": 1.0 for scheme in _ALONE}},
            ),
        ),
        fitted=_SIZES,
    ),
    Reading(
        "flavour",
        'Which TCP is the "normal" one?',
        (
            Choice("reno", "Reno, the usual choice in the simulator at that time"),
            Choice(
                "newreno",
                "NewReno, which repairs several losses of a window",
                {"": {"tcp.flavour": "newreno"}},
            ),
        ),
    ),
)
