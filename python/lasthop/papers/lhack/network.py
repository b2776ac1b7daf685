"""The parameters of the paper's network."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log1p

from lasthop.papers.paper import Settings, rounded

PAYLOAD_BITS = 460 * 8
"""The payload of a message of 500 B, in bits."""

MESSAGE_BITS = 500 * 8

CEILING = 100.0
"""The capacity available to the connection besides cross traffic, in messages per second."""

OPTIMUM = 20.0
"""The bandwidth-delay product in messages: 100 per second for 200 ms."""

RATES = (75, 100, 125, 150, 200, 250)
"""The corruption rates, as data messages per corrupted one."""

MSS = 460.0

BER = "radio.channel.iid.ber"

MOBILES = (1, 2, 4, 8)
"""The numbers of mobile hosts that share the last hop."""

STATIONARY = ("i-tcp@R2 + lhack", "i-tcp@R3 + lhack")
"""Two mobile hosts with connections to a stationary one at R2 or R3, 35 ms from its mobile."""

TWO_ROUTERS: Settings = {
    "topology": {
        "graph": {
            "wired": ["source-R1", "R1-R2", "R2-R3", "R3-R4", "R3-R5"],
            "radio": ["R4-destination", "R5-destination"],
        }
    },
    "transfer.from": "source",
    "transfer.to": "destination",
    "link.R5-destination": {"delay": 0.005},
    "mobility.destination": {"overlap": True, "moves": {"periodic": {"stay": 0.02}}},
}
"""A wireless cell with two routers, which messages take in turn: two each, at 100 per second."""


def bit_error_rate(messages: int) -> float:
    """Return the bit error rate that corrupts one data message in `messages`.

    Examples
    --------
    >>> bit_error_rate(75)
    3.355749e-06
    """
    return rounded(-expm1(log1p(-1 / messages) / MESSAGE_BITS), 7)


def messages_per_corruption(ber: float) -> float:
    """Return the number of data messages per corrupted one at a bit error rate.

    Examples
    --------
    >>> round(messages_per_corruption(3.355749e-06), 2), round(messages_per_corruption(3e-5), 1)
    (75.0, 8.8)
    """
    return 1 / -expm1(MESSAGE_BITS * log1p(-ber))


def swept(rates: Sequence[int]) -> Settings:
    """Return the sweep of the bit error rate over these corruption rates."""
    return {f"sweep.{BER}": [bit_error_rate(rate) for rate in rates]}


def several(mobiles: int) -> Settings:
    """Return the settings of several mobile hosts, which have equal shares of the last hop.

    Each has a source and a connection of its own over the four routers; the names of the first are those of
    a single one.
    """
    ends = ["", *map(str, range(2, mobiles + 1))]
    wired = [*(f"source{end}-R1" for end in ends), "R1-R2", "R2-R3", "R3-R4"]
    radio = [f"R4-destination{end}" for end in ends]
    return {
        "topology": {"graph": {"wired": wired, "radio": radio}},
        "radio.rate": 800e3 / mobiles,
        **{f"link.source{end}-R1.delay": 0.005 for end in ends},
        **{
            f"connection.{number}": {"from": f"source{end}", "to": f"destination{end}"}
            for number, end in enumerate(ends, 1)
        },
    }
