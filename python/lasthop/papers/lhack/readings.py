"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading

READINGS = (
    Reading(
        "recovery",
        "How is a window with several losses repaired? Section 3 has the window retransmitted, or Reno's "
        "counting of duplicates; it does not say when that ends.",
        (
            Choice(
                "newreno",
                "one recovery repairs every hole of the window: with Reno's, which ends at the first new "
                "acknowledgement, hardly 75 % of the ceiling are reached even without corruption",
            ),
            Choice(
                "reno",
                "recovery ends with the first new acknowledgement (RFC 2581); what else is missing waits for "
                "the timer",
                {"": ("tcp.flavour=reno",)},
            ),
            Choice(
                "sack", "selective acknowledgements, as later TCPs have them", {"": ("tcp.flavour=sack",)}
            ),
        ),
        fitted=("reaches",),
    ),
    Reading(
        "timer",
        "How fine is the source's clock, and what is its least timeout?",
        (
            Choice(
                "500ms", "ticks of 500 ms, at least 1 s: the clock of BSD, and that of a simulator of 1994"
            ),
            Choice(
                "10ms",
                "ticks of 10 ms, at least 200 ms: it also runs out when nothing is lost, as the queue grows "
                "faster than the estimate",
                {"": ("tcp.tick=10 ms", "tcp.rto_min=200 ms")},
            ),
        ),
    ),
    Reading(
        "halving",
        "What is halved on congestion?",
        (
            Choice("window", "the window in use, as section 3 words it"),
            Choice("flight", "what is in flight, as RFC 5681 has it", {"": ("tcp.rules=rfc",)}),
        ),
    ),
    Reading(
        "cross",
        "How large are the messages of the cross traffic, and where do they go?",
        (
            Choice("500B", "as large as the connection's, on the bottleneck only"),
            Choice(
                "100B",
                "smaller: the same rate in five times as many, so that the buffer of 30 messages holds less "
                "data and overflows sooner",
                {"": ("traffic.cross.packet_size=100 B",)},
            ),
            Choice(
                "everywhere",
                "sources at every router besides, each taking a tenth of a link: nothing changes",
                {
                    "": tuple(
                        f'traffic.{name}={{from="{at}", to="{to}", packet_size="500 B", '
                        'law={poisson={rate="80 kbps"}}}'
                        for name, at, to in (("C1", "R1", "R2"), ("C3", "R3", "R4"), ("C5", "R4", "R3"))
                    )
                },
            ),
        ),
    ),
    Reading(
        "careful",
        "May a window have several fast retransmits? Section 3 has one whenever several duplicates arrive.",
        (
            Choice("false", "yes, as section 3 words it: what is lost next halves the window again"),
            Choice(
                "true", "one for each window of data, as later TCPs (RFC 6582)", {"": ("tcp.careful=true",)}
            ),
        ),
    ),
    Reading(
        "window",
        "How large a window does the destination advertise?",
        (
            Choice("64", "64 messages, so that it never binds"),
            Choice(
                "32",
                "32 messages: the buffer overflows less, but no more than so many may follow a hole",
                {"": ("tcp.window=16000 B",)},
            ),
        ),
    ),
)
