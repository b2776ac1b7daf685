"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading

_CHANNEL = "radio.channel.rayleigh-gilbert"
_FEEDBACK = "radio.arq.selective-repeat.feedback_delay"
_FIFTY = ("fifty", "further-fifty")

READINGS = (
    Reading(
        "bad-ber",
        (
            "What is the bit error rate in the bad state? Section III prints 1e-5, with which one "
            "data unit in 27 is lost and six attempts practically never fail."
        ),
        (
            Choice(
                "0.01",
                (
                    "1e-2: a unit in the bad state is lost without the code and decoded with it, as in the "
                    "text; any value from 1e-3 to 3e-2 gives the same (figure printed)"
                ),
            ),
            Choice("0.00001", "1e-5, as printed", {"": {f"{_CHANNEL}.bad_ber": 1e-5}}),
            Choice(
                "0.001",
                "1e-3: the lower end of what reproduces the text",
                {"": {f"{_CHANNEL}.bad_ber": 1e-3}},
            ),
        ),
        fitted=("great-improvement", "total-constant", "cheaper"),
    ),
    Reading(
        "feedback",
        "What is the delay of a negative acknowledgement? Section IV has a negligible propagation delay, and "
        "no time that the receiver takes.",
        (
            Choice("60ms", "six data units: longer bursts are then better, as in section IV"),
            Choice("0", "no delay: longer bursts are then worse (figure feedback)", {"": {_FEEDBACK: 0.0}}),
            Choice("200ms", "twenty data units", {"": {_FEEDBACK: 0.2}}),
        ),
        fitted=("longer-bursts", "fewer-losses"),
    ),
    Reading(
        "units",
        (
            "How many data units does a segment have without the code? 1460 B give four units of 480 "
            "B by the formula of section III; section IV says three."
        ),
        (
            Choice("3", "three: packets of 1440 B, with three units by the formula, and six with the code"),
            Choice(
                "4",
                "four, and six with the code: packets of 1460 B",
                {
                    "": {"tcp.packet_size": 1460, "tcp.window": "29200 B", "transfer.size": 14_200},
                    **{key: {"transfer.size": 71_000} for key in _FIFTY},
                },
            ),
        ),
    ),
    Reading(
        "initial-window",
        "What is the initial window in segments?",
        (
            Choice("1", "one, as in the simulator by default"),
            Choice(
                "2",
                "two: all transfers are shorter by a part of a round trip",
                {"": {"tcp.initial_window": "2 segments"}},
            ),
        ),
    ),
    Reading(
        "window",
        "What is the maximum window?",
        (
            Choice("20", "20 segments, the simulator's default"),
            Choice(
                "8",
                "8 segments: losses at the end of a long transfer then cause more duplicate ACKs",
                {"": {"tcp.window": "12000 B"}},
            ),
        ),
    ),
)
