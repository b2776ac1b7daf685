"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading

READINGS = (
    Reading(
        "recovery",
        (
            "How are several losses of a window repaired? Section 3 retransmits the window, or counts"
            ' duplicates as Reno does and retransmits when the messages left in the network are "the new '
            'window size"; it does not say when recovery ends. Each choice here but window retransmits at '
            "the third duplicate, as Reno does."
        ),
        (
            Choice(
                "newreno",
                (
                    "one recovery repairs all holes of the window; Reno's recovery, which ends at the first "
                    "new acknowledgement, reaches hardly 75 % of the maximum even without corruption"
                ),
            ),
            Choice(
                "reno",
                "recovery ends with the first new acknowledgement (RFC 2581); what else is missing waits for "
                "the timer",
                {"": {"tcp.flavour": "reno"}},
            ),
            Choice(
                "window",
                (
                    "the current window is retransmitted, from the loss on, as section 3 words it; the first "
                    "duplicate caused by later data reveals the loss, so that copies of what had arrived "
                    "reveal none"
                ),
                # A loss is answered once by this recovery, whatever `careful` is.
                {"": {"tcp.flavour": "go-back-n", "tcp.careful": True}},
            ),
            Choice(
                "sack", "selective acknowledgements, as later TCPs have them", {"": {"tcp.flavour": "sack"}}
            ),
        ),
        fitted=("reaches",),
    ),
    Reading(
        "timer",
        "What are the source's clock granularity and minimum timeout? By section 3 the timer runs from the "
        "sending time of the last message; in each choice here it restarts at new acknowledgements.",
        (
            Choice("500ms", "ticks of 500 ms, at least 1 s: as in BSD, and in a simulator of 1994"),
            Choice(
                "10ms",
                (
                    "ticks of 10 ms, at least 200 ms: the timer also expires without losses, as the queue "
                    "grows faster than the estimate"
                ),
                {"": {"tcp.tick": 0.01, "tcp.rto_min": 0.2}},
            ),
        ),
    ),
    Reading(
        "halving",
        "What is halved on congestion?",
        (
            Choice("window", "the window in use, as worded in section 3"),
            Choice("flight", "the data in flight, as in RFC 5681", {"": {"tcp.rules": "rfc"}}),
        ),
    ),
    Reading(
        "cross",
        "How large are the messages of the cross traffic, and where do they go?",
        (
            Choice("500B", "as large as the connection's, on the bottleneck only"),
            Choice(
                "100B",
                (
                    "smaller: five times as many at the same rate, so the buffer of 30 messages holds less "
                    "data and overflows sooner"
                ),
                {"": {"traffic.cross.packet_size": 100}},
            ),
            Choice(
                "everywhere",
                "additional sources at every router, each with a tenth of a link: no change",
                {
                    "": {
                        f"traffic.{name}": {
                            "from": at,
                            "to": to,
                            "packet_size": 500,
                            "law": {"poisson": {"rate": 80e3}},
                        }
                        for name, at, to in (("C1", "R1", "R2"), ("C3", "R3", "R4"), ("C5", "R4", "R3"))
                    }
                },
            ),
        ),
    ),
    Reading(
        "careful",
        "May a window have several fast retransmits? Section 3 has one whenever several duplicates arrive.",
        (
            Choice("false", "yes, as worded in section 3: the next loss halves the window again"),
            Choice(
                "true", "one per window of data, as in later TCPs (RFC 6582)", {"": {"tcp.careful": True}}
            ),
        ),
    ),
    Reading(
        "window",
        "How large a window does the destination advertise?",
        (
            Choice("64", "64 messages, which is never the limit"),
            Choice(
                "32",
                "32 messages: fewer buffer overflows, but at most 32 messages can follow a hole",
                {"": {"tcp.window": "16000 B"}},
            ),
        ),
    ),
    Reading(
        "detection",
        (
            "How does a mobile source notice a missing fhack? Section 4 says that the message is then "
            "retransmitted, and not when."
        ),
        (
            Choice("fhacks", "at once, when the fhack of a later message arrives"),
            Choice(
                "duplicates",
                "when duplicate dacks or the timer reveal the loss, which a missing fhack then classifies",
                {"": {"scheme.lhack.detection": "duplicates"}},
            ),
        ),
    ),
)
