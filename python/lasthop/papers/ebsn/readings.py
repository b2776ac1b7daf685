"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading

_ARQ = "radio.arq.stop-and-wait"

READINGS = (
    Reading(
        "retransmissions",
        "How often is a fragment retransmitted, and after what backoff? Section 4.2.1 states 13 and no law.",
        (
            Choice(
                "unlimited",
                "no limit that binds, waits uniform up to 100 ms (20 ms in the local area): the reading "
                "under which hardly a timeout occurs, as section 5.1 reports none",
            ),
            Choice(
                "13",
                "the printed limit, waits uniform up to 800 ms (160 ms in the local area), so that 14 "
                "attempts outlast a bad period of 4 s (0.8 s) almost always",
                {
                    "wide": (f"{_ARQ}.retransmissions=13", f"{_ARQ}.backoff.uniform=800 ms"),
                    "local": (f"{_ARQ}.retransmissions=13", f"{_ARQ}.backoff.uniform=160 ms"),
                },
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
                "as ticks of a clock that runs: the worked example then times out at 13.75 s, as printed",
            ),
            Choice(
                "nearest",
                "to the nearest tick, as section 3.3 words it",
                {"": ("tcp.rtt_arithmetic=nearest-tick",)},
            ),
        ),
        fitted=("trace-27",),
    ),
    Reading(
        "rtt-samples",
        "Which acknowledgements give a round-trip sample?",
        (
            Choice(
                "every-ack", "each one of data sent once: the worked example then times out for packet 27"
            ),
            Choice(
                "one-at-a-time", "one segment is timed at a time", {"": ("tcp.rtt_samples=one-at-a-time",)}
            ),
        ),
        fitted=("trace-27",),
    ),
    Reading(
        "backoff",
        "Does a timeout double the next one?",
        (
            Choice(
                "late",
                "from the second consecutive one on, as section 1 words it (upon each consecutive packet "
                "loss): the timer is set before a timeout doubles it; the throughputs of section 5 are then "
                "within its scatter, and the worked example is as with none",
                {"": ("tcp.late_backoff=true",)},
            ),
            Choice(
                "doubles",
                "already the first, as the order of the lines in the appendix has it and TCP since",
            ),
            Choice(
                "none",
                "no: basic TCP in the worked example then loses packets 44 to 49 between 24 and 28 s, nearly "
                "the printed 44 to 50; but the gains that section 5 reports are gone",
                {"": ("tcp.backoff_max=1",)},
            ),
        ),
        fitted=("trace-44", "best-1s-value", "worst-basic", "worst-gain"),
    ),
    Reading(
        "errors-on",
        "Do the bit error rates apply to bits on the air or to those of the packet?",
        (
            Choice("on-air", "to all bits on the air, after the expansion by 1.5"),
            Choice("payload", "to the packet's own bits", {"": ("radio.errors_on=payload",)}),
        ),
    ),
    Reading(
        "min-rto",
        "What is the least retransmission timeout?",
        (
            Choice("2-ticks", "two ticks: 200 ms"),
            Choice("1s", "one second, as later TCPs have it", {"": ("tcp.rto_min=1 s",)}),
        ),
    ),
    Reading(
        "wired-delay",
        "How long is the wired line of the local area?",
        (
            Choice("0", "negligible"),
            Choice("10ms", "10 ms one way", {"local": ("wired.delay=10 ms",)}),
        ),
    ),
    Reading(
        "window",
        "Does the window hold whole packets or payload?",
        (
            Choice("packets", "whole packets, as simulators that count segments have it"),
            Choice("payload", "payload bytes, as TCP has it", {"": ("tcp.window_counts=payload",)}),
        ),
    ),
    Reading(
        "initial-rto",
        "What is the retransmission timeout before the first sample?",
        (
            Choice("6s", "6 s, as BSD of that time"),
            Choice("3s", "3 s, as the simulator's later releases", {"": ("tcp.rto_initial=3 s",)}),
        ),
    ),
    Reading(
        "initial-ssthresh",
        "Where does slow start end the first time?",
        (
            Choice("window", "at the window"),
            Choice("unlimited", "nowhere", {"": ("tcp.initial_ssthresh=unlimited",)}),
        ),
    ),
)
