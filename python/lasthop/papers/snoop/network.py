"""The error rates, hand-offs and printed results of the papers."""

from __future__ import annotations

from collections.abc import Mapping

PEAK = 1.6e6
"""The printed peak throughput, in bits per second, without errors and hand-offs."""

PEAK_WITH_BEACONS = 1.45e6
"""The peak throughput with beacons, as in all experiments with hand-offs."""

NO_ERRORS = "no errors"

RATES = {"64K": 64e3, "128K": 128e3, "256K": 256e3, "512K": 512e3, "1M": 1e6, "2M": 2e6, "4M": 4e6, "8M": 8e6}
"""The mean number of bits between errors, by the labels of the figures."""

SENDERS = {"tcp": "basic", "snoop": "snoop"}
"""The schemes of figure 4 by their names in claims."""

LABELS = {"basic": "TCP", "snoop": "Snoop"}
"""The names of the schemes in the papers."""

FIGURE_4: Mapping[str, Mapping[str, float]] = {
    "basic": {
        "64K": 0.035,
        "128K": 0.10,
        "256K": 0.30,
        "512K": 0.70,
        "1M": 1.115,
        "2M": 1.385,
        "4M": 1.425,
        "8M": 1.52,
        NO_ERRORS: 1.595,
    },
    "snoop": {
        "64K": 0.47,
        "128K": 0.70,
        "256K": 0.93,
        "512K": 1.075,
        "1M": 1.26,
        "2M": 1.36,
        "4M": 1.45,
        "8M": 1.505,
        NO_ERRORS: 1.595,
    },
}
"""Throughput in Mb/s by scheme and error rate, read off figure 4 (7 of WINET 1995) to 0.01."""

FIGURE_11 = {
    "64K": 0.33,
    "128K": 0.645,
    "256K": 1.025,
    "512K": 1.11,
    "1M": 1.25,
    "2M": 1.31,
    "4M": 1.345,
    "8M": 1.39,
}
"""Throughput in Mb/s with a hand-off every 5 s, read off figure 11 of WINET 1995 to 0.01."""

NEVER = "never"

TABLE_1 = {
    "1 s": (1.42, 0.011),
    "2 s": (1.43, 0.016),
    "3 s": (1.43, 0.012),
    "5 s": (1.43, 0.014),
    "8 s": (1.44, 0.012),
    "10 s": (1.43, 0.012),
    NEVER: (1.45, 0.011),
}
"""Throughput and its standard deviation, in Mb/s, by the time between hand-offs (WINET 1995)."""

INTERVALS = tuple(interval for interval in TABLE_1 if interval != NEVER)
"""The times between hand-offs."""

SYSTEM = "snoop + multicast"
"""The papers' own scheme in experiments with hand-offs."""

FAST_RETRANSMISSIONS = "handoff-rxmt"
"""The approach of Caceres and Iftode."""

OTHERS = ("basic", FAST_RETRANSMISSIONS, "multicast", "snoop")
"""The schemes compared with it."""

PERIODS = ("100 ms", "300 ms", "1 s", "3 s", "10 s", "30 s")
"""The mean period lengths of the two-state channel, which WINET 1995 does not state."""


def errors(rate: str, kilobit: int = 1000) -> str:
    """Return the override for an error rate, by its label.

    Examples
    --------
    >>> errors("256K")
    'radio.channel.iid.ber=3.90625e-06'
    >>> errors("256K", 1024)
    'radio.channel.iid.ber=3.8146973e-06'
    """
    thousands = 1 if rate.endswith("K") else 2
    bits = RATES[rate] * (kilobit / 1000) ** thousands
    return f"radio.channel.iid.ber={1 / bits:.8g}"


def two_state(period: str) -> str:
    """Return the override for good and bad periods with the lowest and highest error rates of figure 4.

    Examples
    --------
    >>> two_state("1 s").startswith("radio.channel={two-state={good='1 s', bad='1 s', ")
    True
    """
    good, bad = (1 / RATES[rate] for rate in ("8M", "64K"))
    return (
        f"radio.channel={{two-state={{good='{period}', bad='{period}', good_ber={good:.8g}, "
        f"bad_ber={bad:.8g}, start='stationary'}}}}"
    )


def schemes(names: tuple[str, ...]) -> str:
    """Return the override that selects schemes.

    Examples
    --------
    >>> schemes(("basic", "snoop"))
    'schemes=["basic", "snoop"]'
    """
    return f"schemes={list(names)}".replace("'", '"')


def itinerary(interval: str, gap: int) -> tuple[str, ...]:
    """Return the overrides for a host that moves between two base stations, with a gap in milliseconds.

    Examples
    --------
    >>> itinerary("5 s", 25)
    ('mobility.mobile.gap=25 ms', 'mobility.mobile.moves.periodic.stay=4975 ms')
    """
    milliseconds = 1000 * int(interval.removesuffix(" s"))
    return (f"mobility.mobile.gap={gap} ms", f"mobility.mobile.moves.periodic.stay={milliseconds - gap} ms")


def hand_offs(interval: str) -> tuple[str, ...]:
    """Return the overrides for a host that moves between two base stations, or never moves.

    The transfer starts at a random time between two hand-offs. Beacons are modelled by a slower link, with
    the printed peak throughput (the definition `peak-beacons`).

    Examples
    --------
    >>> hand_offs("5 s")[-1]
    'transfer.spread=5 s'
    """
    moves = (
        ("mobility.mobile.moves.timetable=[]",)
        if interval == NEVER
        else (*itinerary(interval, 25), f"transfer.spread={interval}")
    )
    return ("topology={hand-off={stations=2}}", "radio.rate=1.502 Mbps", *moves)


def at_rate(rate: str) -> str:
    """Return the name of the experiment with an error rate, or without errors."""
    return "no-errors" if rate == NO_ERRORS else f"every-{rate}"


def moving(interval: str, rate: str = NO_ERRORS) -> str:
    """Return the name of the experiment with a hand-off interval and an error rate."""
    name = f"hand-offs-{interval.replace(' ', '')}"
    return name if rate == NO_ERRORS else f"{name}-{at_rate(rate)}"


def others(interval: str) -> str:
    """Return the name of the experiment with a hand-off interval and the other schemes."""
    return f"others-{moving(interval)}"


def tahoe(interval: str) -> str:
    """Return the name of the experiment with a hand-off interval and a Tahoe sender."""
    return f"tahoe-{moving(interval)}"


def periods(period: str) -> str:
    """Return the name of the experiment with good and bad periods of a mean length."""
    return f"periods-{period.replace(' ', '')}"
