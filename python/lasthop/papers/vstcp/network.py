"""The parameters of the paper's channel and network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lasthop.papers.paper import Settings

CHANNEL = "radio.channel.nguyen-noble"

SIZE = "scheme.metp.wireless.packet_size"

SEGMENT = 512
"""The payload of fixed-size segments in bytes, to which loss rates refer, in packets of 552 B.

Section V-A.2 has packets of 512 B, and in section I a segment includes the TCP header: by the letter payloads
would be smaller by the headers. The sizes of table 3 are taken for payload, too.
"""

HEADER = 40
"""The headers of TCP and IP, in bytes."""

MOST = 2_000_000 / 8 * SEGMENT / (SEGMENT + HEADER)
"""The capacity of the wireless link for payload in such segments, in bytes per second."""

RATES = (1.0, 2.0, 3.0, 5.0, 7.0, 9.5, 11.0, 13.0)
"""The packet loss rates of the paper's axis, which include those of table 4, in percent."""

SOME = (2.0, 5.0, 11.0)
"""The packet loss rates at which readings are compared, in percent."""

TABLE_4 = {1.0: 448, 2.0: 384, 3.0: 384, 5.0: 320, 9.5: 256, 11.0: 256}
"""The optimal segment size of table 4 in bytes, by packet loss rate in percent."""

SIZES = tuple(range(128, 1025, 64))
"""The segment sizes swept, in the steps of table 4, in bytes."""

PARAMETERS = {
    "largest_size": (512, 768, 1024, 1280, 1536),
    "smallest_size": (64, 128, 192, 256, 384, 512),
    "step": (32, 64, 128, 256, 512),
    "initial_size": (128, 256, 512, 1024),
}
"""The values swept of each parameter of VS-TCP in bytes."""

TABLE_3 = {"largest_size": 1024, "smallest_size": 128, "step": 128, "initial_size": 512}
"""The parameters of VS-TCP in bytes that table 3 prints: s_mx, s_mn, Δs and s_i."""

DISTINGUISHING = ("eln", "lhack")
"""Schemes that tell a source which losses are not congestion."""

# P_EG, P_GE and e. All three are varied together over their printed ranges, from (0.4, 0.5, 0.003) to
# (0.1, 0.9, 0.01), and lose 1.5 % to 12.2 % of the packets: the ends of the axis, 1 % and 13 %, take e beyond
# its range.
_PER_BYTE = {
    1.0: (0.4, 0.5, 0.0019),
    2.0: (0.3685, 0.542, 0.00374),
    3.0: (0.319, 0.608, 0.00489),
    5.0: (0.2426, 0.7099, 0.00667),
    7.0: (0.1862, 0.785, 0.00799),
    9.5: (0.1361, 0.8519, 0.00916),
    11.0: (0.1142, 0.8811, 0.00967),
    13.0: (0.1, 0.9, 0.01336),
}
# With bits in place of bytes they lose 4.7 % to 15.3 %: up to 3 % takes e far below its range.
_PER_BIT = {
    1.0: (0.4, 0.5, 0.0002375),
    2.0: (0.4, 0.5, 0.000566),
    3.0: (0.4, 0.5, 0.001056),
    5.0: (0.3893, 0.5143, 0.00325),
    7.0: (0.3105, 0.6194, 0.00509),
    9.5: (0.2193, 0.741, 0.00722),
    11.0: (0.1761, 0.7986, 0.00823),
    13.0: (0.133, 0.856, 0.00923),
}

_PARAMETERS = {"byte": _PER_BYTE, "bit": _PER_BIT}


def channel(rate: float, errors_per: str = "byte") -> dict[str, Any]:
    """Return the channel with a packet loss rate in percent.

    Examples
    --------
    >>> channel(3.0)
    {'leave_error': 0.319, 'leave_error_free': 0.608, 'error_rate': 0.00489, 'errors_per': 'byte'}
    """
    leave_error, leave_error_free, error_rate = _PARAMETERS[errors_per][rate]
    return {
        "leave_error": leave_error,
        "leave_error_free": leave_error_free,
        "error_rate": error_rate,
        "errors_per": errors_per,
    }


HOSTS = ("1", "2")
"""The connections of two mobile hosts at one base station, each with a channel of its own."""

_OTHER = "link.base-MH2.channel"
OTHER = f"{_OTHER}.nguyen-noble"
"""The channel of the second one; the first loses 1 % of its packets."""


def two_hosts(retransmissions: int) -> Settings:
    """Return the settings of two hosts that share the radio, whose units are retransmitted so many times.

    Examples
    --------
    >>> two_hosts(0)["radio.arq"]
    {'stop-and-wait': {'retransmissions': 0}}
    """
    return {
        "topology": {"shared-radio": {"mobiles": len(HOSTS)}},
        "radio.arq": {"stop-and-wait": {"retransmissions": retransmissions}},
        CHANNEL: channel(1.0),
        _OTHER: {"nguyen-noble": channel(1.0)},
        f"sweep.{OTHER}": [channel(1.0), channel(11.0)],
    }


def swept(rates: Sequence[float], errors_per: str = "byte") -> Settings:
    """Return the sweep of the channel over packet loss rates."""
    return {f"sweep.{CHANNEL}": [channel(rate, errors_per) for rate in rates]}


def rate_of(setting: Mapping[str, Any]) -> float:
    """Return the packet loss rate in percent of a channel, whose other parameters do not matter.

    Examples
    --------
    >>> rate_of(channel(3.0))
    3.0
    """
    for rate in _PARAMETERS[setting["errors_per"]]:
        if channel(rate, setting["errors_per"]).items() <= setting.items():
            return rate
    raise ValueError(f"{setting} is none of the paper's channels")


def sweep_of(key: str) -> str:
    """Return the name of the experiment, and of the figure, with several values of a parameter.

    Examples
    --------
    >>> sweep_of("largest_size")
    'largest-size'
    """
    return key.replace("_", "-")
