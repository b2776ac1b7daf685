"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.ebsn.figures import THROUGHPUT
from lasthop.papers.paper import Choice, Reading, Settings

_ARQ = "radio.arq.stop-and-wait"


def _congested(packet_bytes: int, rate_bps: float) -> Settings:
    """Return the settings of a wired link with other traffic."""
    law = {"poisson": {"rate": rate_bps}}
    return {
        "traffic.cross": {"from": "fixed", "to": "base", "packet_size": packet_bytes, "law": law},
        "wired.queue": "50 packets",
    }


def _limited(backoff_s: float) -> Settings:
    """Return the settings of the printed limit, with a uniform backoff."""
    return {f"{_ARQ}.retransmissions": 13, f"{_ARQ}.backoff.uniform": backoff_s}


_WIDE = ("wide", "clock-wide", "bad", "ber")
_LOCAL = ("local", "clock-local")

READINGS = (
    Reading(
        "retransmissions",
        (
            "How often is a fragment retransmitted, and with which backoff? Section 4.2.1 states 13 "
            "retransmissions and no distribution."
        ),
        (
            Choice(
                "unlimited",
                (
                    "unlimited, with a uniform backoff up to 100 ms (20 ms in the local area): with this "
                    "reading there are hardly any timeouts, and section 5.1 reports none"
                ),
            ),
            Choice(
                "13",
                (
                    "the printed limit, with a uniform backoff up to 800 ms (160 ms in the local area), so "
                    "that 14 attempts almost always outlast a bad period of 4 s (0.8 s)"
                ),
                dict.fromkeys(_WIDE, _limited(0.8)) | dict.fromkeys(_LOCAL, _limited(0.16)),
            ),
        ),
        fitted=("ebsn-timeouts", "ebsn-resent", "local-goodput"),
    ),
    Reading(
        "rtt-clock",
        "How are round-trip times counted in ticks of 100 ms?",
        (
            Choice(
                "ticks",
                "as ticks of a running clock: the worked example then times out at 13.75 s, as printed",
            ),
            Choice(
                "nearest",
                "to the nearest tick, as section 3.3 words it",
                {"": {"tcp.rtt_arithmetic": "nearest-tick"}},
            ),
        ),
        fitted=("trace-27",),
    ),
    Reading(
        "rtt-samples",
        "Which acknowledgements give a round-trip sample?",
        (
            Choice(
                "every-ack",
                "every acknowledgement of data sent once: the worked example then times out for packet 27",
            ),
            Choice(
                "one-at-a-time", "one segment is timed at a time", {"": {"tcp.rtt_samples": "one-at-a-time"}}
            ),
        ),
        fitted=("trace-27",),
    ),
    Reading(
        "backoff",
        (
            "Does a timeout double the next one? In the appendix a fast retransmit does as well, and the "
            "timer is set anew at each packet sent; with each choice here a fast retransmit leaves the "
            "backoff as it is, and the timer restarts at new acknowledgements (RFC 6298)."
        ),
        (
            Choice(
                "late",
                (
                    "from the second consecutive timeout on, as worded in section 1 (upon each consecutive "
                    "packet loss): the timer is set before it is doubled; the throughputs of section 5 are "
                    "then within its scatter, and the worked example is the same as without backoff"
                ),
                {"": {"tcp.late_backoff": True}},
            ),
            Choice(
                "doubles",
                "from the first timeout on, as in the appendix and in later TCPs",
            ),
            Choice(
                "none",
                (
                    "no: basic TCP in the worked example then loses packets 44 to 49 between 24 and 28 s, "
                    "nearly the printed 44 to 50; but the gains of section 5 disappear"
                ),
                {"": {"tcp.backoff_max": 1}},
            ),
        ),
        fitted=("trace-44", "best-1s-value", "worst-basic", "worst-gain"),
    ),
    Reading(
        "errors-on",
        "Do the bit error rates apply to bits on the air or to those of the packet?",
        (
            Choice("on-air", "to all bits on the air, after the expansion by 1.5"),
            Choice("payload", "to the packet's own bits", {"": {"radio.errors_on": "payload"}}),
        ),
    ),
    Reading(
        "min-rto",
        "What is the minimum retransmission timeout?",
        (
            Choice("2-ticks", "two ticks: 200 ms"),
            Choice("1s", "one second, as in later TCPs", {"": {"tcp.rto_min": 1.0}}),
        ),
    ),
    Reading(
        "wired-delay",
        "How long is the wired line of the local area?",
        (
            Choice("0", "negligible"),
            Choice("10ms", "10 ms one way", {key: {"wired.delay": 0.01} for key in _LOCAL}),
        ),
    ),
    Reading(
        "congestion",
        (
            "Is the wired network congested? Section 6 assumes that it is not, and leaves congestion to a "
            "separate study."
        ),
        (
            Choice("none", "no: the wired link carries this connection only"),
            Choice(
                "cross",
                (
                    "Poisson traffic takes nine tenths of the wired link, which leaves half of what the "
                    "wireless link carries, behind a buffer of 50 packets"
                ),
                dict.fromkeys(("trace", "trace-coarse", "limit", *_WIDE), _congested(576, 50.4e3))
                | dict.fromkeys(_LOCAL, _congested(1536, 9e6)),
            ),
        ),
    ),
    Reading(
        "window",
        'Does the window hold whole packets or payload? "4 Kbytes" are 4096 B here, seven packets of '
        '576 B (of 4000 B, six; 512 B have 8.61 in place of 8.58 kb/s at 1 s); the files\' "100 Kbyte" and '
        '"4 Mbyte" are powers of 1000.',
        (
            Choice("packets", "whole packets, as in simulators that count segments: as many as fit"),
            Choice(
                "nearest",
                (
                    "the nearest number of whole packets, so three of 1408 or 1536 B: retransmitted data "
                    "then grow with the packet size, as printed"
                ),
                {"": {"tcp.window_counts": "nearest-packets"}},
            ),
            Choice("payload", "payload bytes, as in TCP", {"": {"tcp.window_counts": "payload"}}),
        ),
    ),
    Reading(
        "initial-rto",
        "What is the retransmission timeout before the first sample?",
        (
            Choice("6s", "6 s, as in BSD of that time"),
            Choice("3s", "3 s, as in later releases of the simulator", {"": {"tcp.rto_initial": 3.0}}),
        ),
    ),
    Reading(
        "initial-ssthresh",
        "Where does slow start end the first time?",
        (
            Choice("window", "at the window"),
            Choice("unlimited", "nowhere", {"": {"tcp.initial_ssthresh": "unlimited"}}),
        ),
    ),
    Reading(
        "average",
        (
            "Over what is a throughput averaged? Section 1 defines it as total data over connection time; "
            "section 5 averages transfers and does not say how. With 1536 B headers leave at most 8.90 kb/s "
            "of the maximum for a bad period of 4 s, and 9.0 kb/s is printed, with a scatter of 4 %."
        ),
        (
            Choice("total", "all bits over all time, so a long transfer has more weight"),
            Choice(
                "transfers",
                "the mean of the transfers' throughputs; transfers begin in a good period, so it can exceed "
                "the maximum",
                metrics={THROUGHPUT: "throughput_bps"},
            ),
        ),
        fitted=("worst-basic", "worst-gain", "local-gain"),
    ),
)
