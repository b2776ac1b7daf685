"""Ambiguities of the papers, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading
from lasthop.papers.snoop.network import (
    CELL,
    INTERVALS,
    NEVER,
    NO_ERRORS,
    RATES,
    at_rate,
    drops,
    errors,
    itinerary,
    moving,
    others,
    tahoe,
)

# The experiments with hand-offs, with the time between them.
_MOVING = {
    **{moving(interval): interval for interval in INTERVALS},
    **{moving("5 s", rate): "5 s" for rate in RATES},
    **{f"trace-{moving(interval)}": interval for interval in ("5 s", "10 s")},
    **{others(interval): interval for interval in INTERVALS},
    **{tahoe(interval): interval for interval in INTERVALS},
}

_BINARY = {
    **{at_rate(rate): errors(rate, 1024) for rate in RATES},
    **{moving(interval, rate): errors(rate, 1024) for interval in ("5 s", NEVER) for rate in RATES},
    "trace-256K": errors("256K", 1024),
}

READINGS = (
    Reading(
        "medium",
        "How do the stations share the WaveLAN of 2 Mb/s in figure 4? The papers have its peak throughput "
        'only; by section 4.1 of the paper of 1997 (ToN 5(6)) it is "a shared-medium wireless LAN".',
        (
            Choice(
                "duplex",
                "not at all: each direction has a link of 1.649 Mb/s, which gives the printed peak",
            ),
            Choice(
                "half-duplex",
                "by the rules of IEEE 802.11 at 2 Mb/s, so acknowledgements take air time: without errors "
                "1.52 Mb/s, for 1.6; experiments with hand-offs stay on the duplex link",
                {
                    at_rate(NO_ERRORS): CELL,
                    **{at_rate(rate): {**CELL, **drops(rate)} for rate in RATES},
                    "trace-256K": {**CELL, **drops("256K")},
                },
            ),
        ),
        fitted=("peak", "peak-beacons"),
    ),
    Reading(
        "growth",
        "How does the window of BSD/OS grow in congestion avoidance? The papers name TCP Reno only.",
        (
            Choice(
                "net3",
                (
                    "with an additive constant of an eighth of a segment per acknowledgement, as in 4.4BSD, "
                    "from which BSD/OS is derived (RFC 2525); the rule of its source and not fitted: of the "
                    "throughputs of TCP at 256K, 512K and 1M it is nearer to the first alone. Figure 4 of "
                    "the paper of 1997, on BSD/OS 2.1, speaks against it"
                ),
            ),
            Choice("standard", "by at most a segment per round trip", {"": {"tcp.congestion": "aimd"}}),
        ),
    ),
    Reading(
        "ack",
        "How many segments does an acknowledgement cover? The papers do not say.",
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
        "kilobit",
        "What is an error every 256 Kbits? The text has 3.9e-6 for it, the caption of figure 5 has 3.8e-6.",
        (
            Choice("1000", "one in 256,000 bits, which is 3.9e-6; then 2 Mbits are 5e-7, as the text says"),
            Choice("1024", "one in 262,144 bits, which is 3.8e-6", _BINARY),
        ),
    ),
    Reading(
        "first-timeout",
        (
            "What is the base station's timeout before it has measured a round-trip time? This can "
            "last, since it measures one packet per window, if no packet of the window is "
            "retransmitted."
        ),
        (
            Choice("200ms", "200 ms without packets, as stated for its persist timer"),
            Choice(
                "1s",
                (
                    "a second, as in TCP (RFC 6298); the first sample then includes the delay of an "
                    "acknowledgement"
                ),
                {"": {"scheme.snoop.initial": 1.0}},
            ),
        ),
    ),
    Reading(
        "next-ack",
        (
            "What does the base station do if the first new acknowledgement after a copy is lower "
            "than expected? Both papers of 1995 store the expected value without saying why."
        ),
        (
            Choice(
                "copy",
                "it sends a copy of the next segment at once, as the authors write in 1997 (IEEE/ACM ToN "
                "5(6), section 4.5)",
            ),
            Choice(
                "nothing",
                "copies are sent for duplicates and timeouts only, as in figure 2",
                {"": {"scheme.snoop.bursts": False}},
            ),
        ),
    ),
    Reading(
        "gap",
        (
            "How long is the mobile host without a base station? A hand-off takes 10 to 25 ms in "
            "MobiCom 1995, and 5 to 70 ms, or 25 to 70 ms during transfers, in WINET 1995."
        ),
        (
            Choice("25ms", "25 ms, which is in all three ranges"),
            Choice(
                "none",
                "not at all: it receives from both for a while",
                {name: itinerary(interval, 0) for name, interval in _MOVING.items()},
            ),
            Choice("70ms", "70 ms", {name: itinerary(interval, 70) for name, interval in _MOVING.items()}),
        ),
    ),
)
