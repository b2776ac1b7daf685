"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading
from lasthop.papers.vstcp.network import CHANNEL, RATES, TABLE_4, channel, swept

_WINDOWED = ("i-tcp", "metp", "vs-tcp")
_ALONE = ("metp", "vs-tcp")


def windows(packets: int) -> tuple[str, ...]:
    """Return the overrides that give the wireless part a window of so many packets."""
    return tuple(f'scheme.{scheme}.wireless.window="{packets} packets"' for scheme in _WINDOWED)


def counted(packets: int) -> str:
    """Return the override that sweeps what a window counts: so many packets, or as many bytes of 512 B."""
    return f'sweep.scheme.vs-tcp.wireless.window=["{packets} packets", "{512 * packets} B"]'


def _window(packets: int) -> dict[str, tuple[str, ...]]:
    return {"": windows(packets), "readings": (counted(packets),)}


SELECTIVE = tuple(f"scheme.{scheme}.recovery=selective-repeat" for scheme in _ALONE)
"""The overrides that repair what is lost alone."""

_SIZES = tuple(f"table-4-{rate:g}".replace(".", "-") for rate in TABLE_4)

READINGS = (
    Reading(
        "errors-per",
        "What is e a rate of? The paper calls it a bit error rate, and says that its parameters lose 1 % to "
        "13 % of the packets.",
        (
            Choice("byte", "bytes: at 2 Mb/s the printed ranges lose 1.5 % to 12.2 %"),
            Choice(
                "bit",
                "bits: they lose 4.7 % to 15.3 %, and up to 3 % e must be lower than printed",
                {
                    **dict.fromkeys(("rate", "method-2"), (swept(RATES, "bit"),)),
                    "sizes": (swept(tuple(TABLE_4), "bit"),),
                    **{f"trace-{rate:.0f}": (f"{CHANNEL}={channel(rate, 'bit')}",) for rate in (3.0, 11.0)},
                },
            ),
        ),
        fitted=("bit-error-rate",),
    ),
    Reading(
        "growth",
        "How soon does the size grow by a step? Section IV-B.1 prints a step for each acknowledgement, and "
        "likens the method to congestion control.",
        (
            Choice("per-window", "a step for each window of acknowledgements, as congestion avoidance grows"),
            Choice(
                "per-ack",
                "a step for each acknowledgement, as printed: the size is back within a few packets",
                {"": ("scheme.vs-tcp.growth=per-ack",)},
            ),
        ),
        fitted=("ten-percent", "thirty-percent", "method-1-better"),
    ),
    Reading(
        "recovery",
        "How is a loss repaired without congestion control? The paper says only that lost packets are sent "
        "again.",
        (
            Choice(
                "go-back-n", "everything from the loss on is retransmitted: then table 4's sizes are best"
            ),
            Choice(
                "selective-repeat",
                "only lost segments are retransmitted: then larger sizes are best (figure recovery)",
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
                "12",
                "12 packets: with it the six sizes of table 4 are best, or as good (figures 3 and window)",
            ),
            Choice(
                "10",
                "10 packets: at 512 B they take 22.1 ms, just less than an error-free state's 22.4 ms",
                _window(10),
            ),
            Choice("8", "8 packets", _window(8)),
        ),
        fitted=_SIZES,
    ),
    Reading(
        "window-counts",
        "What does VS-TCP's window count, when sizes change?",
        (
            Choice("packets", "packets of the current size, as simulators that number packets do"),
            Choice(
                "payload",
                "bytes, as TCP does: small segments are then many in a window, and each loss costs as much "
                "as ever",
                {"": ("scheme.vs-tcp.wireless.window=6144 B",)},
            ),
        ),
    ),
    Reading(
        "rto-min",
        "What is the least timeout of schemes with congestion control?",
        (
            Choice("1s", "one second, as RFC 2988 has it"),
            Choice(
                "200ms",
                "200 ms, as ns-2 has it: a split TCP then comes near METP",
                {"": ("tcp.rto_min=200 ms",)},
            ),
        ),
    ),
    Reading(
        "local-rto-min",
        "What is the least timeout on a wireless part without congestion control, of a single hop of 1 ms?",
        (
            Choice("200ms", "200 ms, as ns-2 has it: lost retransmissions then do not wait for a second"),
            Choice(
                "1s",
                "one second, as that of the schemes with congestion control",
                {"": tuple(f"scheme.{scheme}.wireless.rto_min=1 s" for scheme in _ALONE)},
            ),
        ),
        fitted=_SIZES,
    ),
    Reading(
        "flavour",
        "Which TCP is normal?",
        (
            Choice("reno", "Reno, the simulator's usual choice then"),
            Choice(
                "newreno", "NewReno, which repairs several losses of a window", {"": ("tcp.flavour=newreno",)}
            ),
        ),
    ),
)
