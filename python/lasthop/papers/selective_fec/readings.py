"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading

_CHANNEL = "radio.channel.rayleigh-gilbert"
_FEEDBACK = "radio.arq.selective-repeat.feedback_delay"
_FIFTY = ("fifty", "further-fifty")

READINGS = (
    Reading(
        "bad-ber",
        "What is the bit error rate in the bad state? Section III prints 1e-5, with which a data unit is "
        "lost one time in 27 and six attempts practically never fail.",
        (
            Choice(
                "0.01",
                "1e-2: a bad unit is lost without the code and safe with it, as the text has it; any value "
                "from 1e-3 to 3e-2 is alike (figure printed)",
            ),
            Choice("0.00001", "1e-5, as printed", {"": (f"{_CHANNEL}.bad_ber=1e-5",)}),
            Choice(
                "0.001",
                "1e-3: the lower end of what reproduces the text",
                {"": (f"{_CHANNEL}.bad_ber=1e-3",)},
            ),
        ),
        fitted=("great-improvement", "total-constant", "cheaper"),
    ),
    Reading(
        "feedback",
        "How long does it take until a negative acknowledgement is back?",
        (
            Choice("60ms", "six data units: then longer bursts are the lesser evil, as section IV has it"),
            Choice(
                "0", "no time: then they are the greater one (figure feedback)", {"": (f"{_FEEDBACK}=0 s",)}
            ),
            Choice("200ms", "twenty data units", {"": (f"{_FEEDBACK}=200 ms",)}),
        ),
        fitted=("longer-bursts", "fewer-losses"),
    ),
    Reading(
        "units",
        "How many data units has a segment without the code? Of 1460 B by the formula of section III four of "
        "480 B; section IV says three.",
        (
            Choice("3", "three: packets of 1440 B, which the formula gives three, and six with the code"),
            Choice(
                "4",
                "four, and six with the code: packets of 1460 B",
                {
                    "": ("tcp.packet_size=1460 B", "tcp.window=29200 B", "transfer.size=14200 B"),
                    **dict.fromkeys(_FIFTY, ("transfer.size=71000 B",)),
                },
            ),
        ),
    ),
    Reading(
        "initial-window",
        "With how many segments does a transfer begin?",
        (
            Choice("1", "one, as in the simulator by default"),
            Choice(
                "2",
                "two: all transfers are shorter by part of a round trip",
                {"": ("tcp.initial_window=2 segments",)},
            ),
        ),
    ),
    Reading(
        "window",
        "How large is the largest window?",
        (
            Choice("20", "20 segments, the simulator's default"),
            Choice(
                "8",
                "8 segments: the end of a long transfer is then better served with duplicates",
                {"": ("tcp.window=12000 B",)},
            ),
        ),
    ),
)
