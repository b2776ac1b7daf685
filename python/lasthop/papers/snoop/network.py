"""The error rates, hand-offs and printed results of the papers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lasthop._lasthop import Quantity
from lasthop.papers.paper import Settings, rounded

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


def errors(rate: str, kilobit: int = 1000) -> Settings:
    """Return the setting for an error rate, by its label.

    Examples
    --------
    >>> errors("256K")
    {'radio.channel.iid.ber': 3.90625e-06}
    >>> errors("256K", 1024)
    {'radio.channel.iid.ber': 3.8146973e-06}
    """
    thousands = 1 if rate.endswith("K") else 2
    bits = RATES[rate] * (kilobit / 1000) ** thousands
    return {"radio.channel.iid.ber": rounded(1 / bits, 8)}


CELL: Settings = {
    "topology.graph": {"wired": ["fixed-base"], "cell": ["base-mobile"]},
    "transfer.from": "fixed",
    "transfer.to": "mobile",
    "cell.phy.dsss.data_rate": 2e6,
    "cell.priority": True,
}
"""A medium that the base station and the mobile host share, in place of the duplex link."""


def drops(rate: str) -> Settings:
    """Return the setting for an error rate above the MAC of such a medium, for packets of 1500 and 40 B.

    Examples
    --------
    >>> drops("256K")
    {'cell.drop': {'down': 0.045793334, 'up': 0.0012492191}}
    """
    down, up = (-math.expm1(-8 * size / RATES[rate]) for size in (1500, 40))
    return {"cell.drop": {"down": rounded(down, 8), "up": rounded(up, 8)}}


def two_state(period: str) -> Settings:
    """Return the channel with good and bad periods with the lowest and highest error rates of figure 4.

    Examples
    --------
    >>> two_state("1 s")["radio.channel"]["two-state"]["bad_ber"]
    1.5625e-05
    """
    good, bad = (rounded(1 / RATES[rate], 8) for rate in ("8M", "64K"))
    periods = {"good": period, "bad": period, "good_ber": good, "bad_ber": bad, "start": "stationary"}
    return {"radio.channel": {"two-state": periods}}


def itinerary(interval: str, gap: int) -> Settings:
    """Return the settings of a host that moves between two base stations, with a gap in milliseconds.

    Examples
    --------
    >>> [str(value) for value in itinerary("5 s", 25).values()]
    ['25 ms', '4975 ms']
    """
    milliseconds = 1000 * int(interval.removesuffix(" s"))
    return {
        "mobility.mobile.gap": Quantity(gap, "ms"),
        "mobility.mobile.moves.periodic.stay": Quantity(milliseconds - gap, "ms"),
    }


def hand_offs(interval: str) -> Settings:
    """Return the settings of a host that moves between two base stations, or never moves.

    The transfer starts at a random time between two hand-offs. Beacons are modelled by a slower link, with
    the printed peak throughput (the definition `peak-beacons`).

    Examples
    --------
    >>> hand_offs("5 s")["transfer.spread"]
    '5 s'
    """
    moves = (
        {"mobility.mobile.moves.timetable": []}
        if interval == NEVER
        else {**itinerary(interval, 25), "transfer.spread": interval}
    )
    return {"topology": {"hand-off": {"stations": 2}}, "radio.rate": 1.502e6, **moves}


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
