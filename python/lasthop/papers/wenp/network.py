"""The parameters of the paper's stations."""

from __future__ import annotations

from lasthop.papers.paper import Settings, rounded

DROPS = (0, 2, 4, 6, 8, 10, 15, 20)
"""Packets dropped at each station's MAC, in percent (table I)."""

STATIONS = tuple(str(number) for number in range(1, 9))
"""The names of the stations' connections."""

PRINTED = {
    "basic": (1480, 747, 524, 429, 356, 307, 251, 214),
    "wenp": (1246, 806, 569, 472, 406, 349, 278, 234),
}
"""Throughput of each station in kb/s, without and with the scheme (table IV)."""

MARGIN = 0.05
"""The error margin stated in the paper for its means."""

DIVISOR = 8
"""The number of packets dropped by a MAC per segment lost by TCP."""


def drops(divisor: float) -> Settings:
    """Return the settings of the losses of each station.

    Examples
    --------
    >>> drops(8)["link.ap-MH2.drop.down"]
    0.0025
    """
    return {
        f"link.ap-MH{station}.drop.down": rounded(drop / 100 / divisor, 7)
        for station, drop in zip(STATIONS, DROPS, strict=True)
    }


def uploads(divisor: float) -> Settings:
    """Return the settings of stations that upload and lose as much as in downloads."""
    return {
        **{
            f"link.ap-MH{station}.drop": {"down": 0.0, "up": rounded(drop / 100 / divisor, 7)}
            for station, drop in zip(STATIONS, DROPS, strict=True)
        },
        **{f"connection.{station}": {"from": f"MH{station}", "to": "server"} for station in STATIONS},
    }
