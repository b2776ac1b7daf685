"""The protocols, settings and printed results of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lasthop._lasthop import Quantity
from lasthop.papers.paper import Settings, rounded

PEAK = {"lan-8": 1.5e6, "lan-32": 1.5e6, "wan-32": 1.35e6}
"""The printed peak throughput of each setting, in bits per second, without errors."""

BUFFER = {"lan-8": 8192, "lan-32": 32_768, "wan-32": 32_768}
"""The socket buffer of each setting, in bytes."""

SETTINGS = {"lan-8": "LAN, 8 KB", "lan-32": "LAN, 32 KB", "wan-32": "WAN, 32 KB"}
"""The names of the settings in the paper's tables."""

DATA = 1400
"""The data of a segment, in bytes."""

_HEADERS = 40

DUPLEX = {
    "topology.graph": {"wired": ["source-base"], "radio": ["base-receiver"]},
    "radio.rate": 1.544e6,
    "radio.queue.priority": {},
}
"""A duplex link in place of the WaveLAN; its rate gives the peak throughput of 1.5 Mb/s."""

# An Internet path of 16 hops, with a round trip of 135 ms including a data packet on the air.
_WIDE = {"wired.delay": 0.063}

# LL-TCP-AWARE is derived from LL (section 3.2), whose minimum timeout is 200 ms.
_AGENT = {"scheme.snoop.dupacks": 2, "scheme.snoop.min_timeout": 0.2}
_PLAIN = {**_AGENT, "scheme.snoop.suppress": False}
_SMART = {"scheme.snoop.selective": True}


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol of the paper.

    Attributes
    ----------
    name : str
        Its name in the paper.
    scheme : str
        The combination of schemes.
    overrides : mapping of str to Any
        Its parameters.
    splits : bool
        Whether it splits the connection.
    """

    name: str
    scheme: str
    overrides: Settings = field(default_factory=dict)
    splits: bool = False

    @property
    def id(self) -> str:
        """Its name in experiments and claims."""
        return self.name.lower()

    def setting(self, setting: str) -> Settings:
        """Return the settings of a scenario for one of the paper's.

        Examples
        --------
        >>> PROTOCOLS["SPLIT"].setting("lan-8")["scheme.i-tcp.wireless.window"] == Quantity(8192, "B")
        True
        """
        window = Quantity(BUFFER[setting], "B")
        # The base station's buffer of 64 KB is the receive window of the wired part (section 4.4).
        windows = (
            {"tcp.window": Quantity(65_535, "B"), "scheme.i-tcp.wireless.window": window}
            if self.splits
            else {"tcp.window": window}
        )
        path = _WIDE if setting.startswith("wan") else {}
        return {"schemes": [self.scheme], **path, **self.overrides, **windows}


# "The wired sender [...] maintains a 64 KB congestion window" (figure 11), also while it has to wait.
_SPLIT = {"tcp.idle_restart": "never"}

_ALL = (
    Protocol("E2E", "basic"),
    Protocol("E2E-NEWRENO", "basic", {"tcp.flavour": "newreno", "tcp.careful": True}),
    Protocol("E2E-SMART", "smart", {"tcp.careful": True}),
    Protocol("E2E-IETF-SACK", "basic", {"tcp.flavour": "sack", "tcp.careful": True}),
    Protocol("E2E-ELN", "eln"),
    Protocol("E2E-ELN-RXMT", "eln", {"scheme.eln.early": True}),
    Protocol("LL", "snoop", _PLAIN),
    Protocol("LL-TCP-AWARE", "snoop", _AGENT),
    Protocol("LL-SMART", "snoop", {**_PLAIN, **_SMART}),
    Protocol("LL-SMART-TCP-AWARE", "snoop", {**_AGENT, **_SMART}),
    Protocol("SPLIT", "i-tcp", _SPLIT, splits=True),
    Protocol("SPLIT-SMART", "i-tcp + smart", {**_SPLIT, "tcp.careful": True}, splits=True),
)

PROTOCOLS = {protocol.name: protocol for protocol in _ALL}
"""The protocols of table 1, by name."""

PRINTED: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "LL": {"lan-8": (1.20, 95.6, 97.9), "lan-32": (1.20, 95.5, 97.9), "wan-32": (0.82, 95.5, 98.4)},
    "LL-TCP-AWARE": {"lan-8": (1.29, 97.6, 100), "lan-32": (1.36, 97.6, 100), "wan-32": (1.19, 97.6, 100)},
    "LL-SMART": {"lan-8": (1.29, 96.1, 98.9), "lan-32": (1.29, 95.5, 98.3), "wan-32": (0.93, 95.3, 99.4)},
    "LL-SMART-TCP-AWARE": {
        "lan-8": (1.37, 97.6, 100),
        "lan-32": (1.39, 97.7, 100),
        "wan-32": (1.22, 97.6, 100),
    },
    "E2E": {"lan-8": (0.55, 97.0, 96.0), "lan-32": (0.70, 97.5, 97.5), "wan-32": (0.31, 97.3, 97.3)},
    "E2E-NEWRENO": {"lan-8": (0.66, 97.3, 97.3), "lan-32": (0.89, 97.7, 97.3), "wan-32": (0.64, 97.5, 97.5)},
    "E2E-SMART": {"lan-8": (1.12, 97.6, 97.6), "lan-32": (1.25, 97.2, 97.2)},
    "E2E-IETF-SACK": {
        "lan-8": (0.68, 97.3, 97.3),
        "lan-32": (1.12, 97.5, 97.5),
        "wan-32": (0.80, 97.5, 97.5),
    },
    "E2E-ELN": {"lan-8": (0.69, 97.3, 97.2), "lan-32": (0.93, 97.5, 97.5), "wan-32": (0.64, 97.6, 97.6)},
    "E2E-ELN-RXMT": {
        "lan-8": (0.86, 97.4, 97.3),
        "lan-32": (0.95, 97.5, 97.5),
        "wan-32": (0.72, 97.4, 97.4),
    },
    "SPLIT": {"lan-8": (0.54, 97.4, 100), "lan-32": (0.60, 97.3, 100), "wan-32": (0.58, 97.2, 100)},
    "SPLIT-SMART": {"lan-8": (1.30, 97.6, 100), "lan-32": (1.30, 97.2, 100), "wan-32": (1.10, 97.6, 100)},
}
"""Throughput in Mb/s and goodput of the wireless and the wired path in percent (tables 2 to 4)."""

DISTANCES = (16, 32, 64, 128, 256)
"""The mean distances between errors of figure 12, in units of 1024 bytes."""

FIGURE_12 = {
    "E2E": (0.11, 0.37, 0.70, 1.17, 1.42),
    "E2E-IETF-SACK": (0.14, 0.47, 1.13, 1.37, 1.48),
    "E2E-SMART": (0.52, 1.02, 1.23, 1.40, 1.48),
    "SPLIT-SMART": (0.52, 1.04, 1.31, 1.42, 1.48),
    "LL-TCP-AWARE": (0.92, 1.13, 1.35, 1.39, 1.45),
    "LL-SMART-TCP-AWARE": (1.05, 1.22, 1.39, 1.42, 1.48),
}
"""Throughput in Mb/s at each distance, read off figure 12 to 0.01."""


TABLE_5 = {
    "LL-TCP-AWARE": {2: 1.25, 4: 1.02, 6: 0.84},
    "LL-SMART-TCP-AWARE": {2: 1.28, 4: 1.20, 6: 1.10},
}
"""Throughput in Mb/s by the number of packets in a burst (table 5)."""

BURSTS = tuple(TABLE_5["LL-TCP-AWARE"])
"""The numbers of packets in a burst."""


def bursts(packets: int) -> Settings:
    """Return the settings of bursts of lost data packets, one every 65,536 bytes of data on average.

    The losses above the MAC of a cell are independent, so bursts are on the duplex link.

    Examples
    --------
    >>> bursts(4)["radio.channel"]
    {'frame-bursts': {'begin': 0.021362305, 'frames': 4}}
    """
    channel = {"frame-bursts": {"begin": rounded(DATA / 65_536, 8), "frames": packets}}
    return {**DUPLEX, "radio.channel": channel, "radio.uplink.channel": "perfect"}


def error_rate(distance: int) -> Settings:
    """Return the setting for one error every `distance` units of 1024 bytes, on average.

    Examples
    --------
    >>> error_rate(64)
    {'cell.drop': {'down': 0.021733016, 'up': 0.00061016534}}
    """
    down, up = (-math.expm1(-size / (1024 * distance)) for size in (DATA + _HEADERS, _HEADERS))
    return {"cell.drop": {"down": rounded(down, 8), "up": rounded(up, 8)}}


def duplex_error_rate(distance: int) -> Settings:
    """Return the same setting for the duplex link, whose errors also depend on options of acknowledgements.

    Examples
    --------
    >>> duplex_error_rate(64)
    {'radio.channel.iid.ber': 1.9073486e-06}
    """
    return {"radio.channel.iid.ber": rounded(1 / (8 * 1024 * distance), 8)}


def experiment(setting: str, protocol: str) -> str:
    """Return the name of the experiment with a protocol in a setting of the tables."""
    return f"{setting}-{PROTOCOLS[protocol].id}"


def at_distance(distance: int, protocol: str) -> str:
    """Return the name of the experiment with a protocol at an error rate, in the local area."""
    return experiment("lan-32", protocol) if distance == 64 else f"every-{distance}-{PROTOCOLS[protocol].id}"
