"""The emulated network of the paper: segments, queues and controls, as scenarios state them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lasthop._lasthop import Quantity
from lasthop.papers.paper import Settings

DELAYS = (1, 20, 40, 60, 80, 100)
"""The delays of a segment, one way, in ms."""

LOSSES = (0, 1, 2, 3, 4)
"""The loss rates of a segment, in percent."""

RATES = (10, 20, 30, 40, 50)
"""The rates of a segment, in Mb/s."""

CONTROLS = {"cubic": "CUBIC", "bbr1": "BBRv1", "bbr2": "BBRv2", "bbr3": "BBRv3"}
"""The congestion controls of the paper, by their names here."""

SENDERS = {"cubic": "linux", "bbr1": "linux-bbr", "bbr3": "linux-bbr3"}
"""Our senders: BBRv2 is not one of them."""

FURTHER = {
    "cubic-5.15": ("linux-5.15", "CUBIC of Linux 5.15"),
    "reno": ("linux-reno", "Reno"),
    "prague": ("linux-prague", "Prague"),
}
"""Senders and titles of further controls, which the paper has not but for the rules of its kernel."""

SPLIT = "i-tcp@router"
"""The scheme of the proxy at the router."""

SECONDS = 10
"""A download has as many bytes as the bottleneck carries in this time."""

TIME = "application.download.mean_response_time_s"
"""The time of a request: connection, TLS handshake, request and response."""

SIZE = "application.download.response.constant"
"""The bytes of a download."""

OFFLOADED = 2
"""Segments of a super-packet: the least that Linux makes (tcp_min_tso_segs)."""

_ETHERNET = 1514 / 1500
"""HTB counts packets with their Ethernet headers."""

_MTU, _PACKET = 1500, 1000


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """A segment of a path.

    Attributes
    ----------
    delay : int
        The delay, one way, in ms.
    loss : int
        The loss rate in percent.
    rate : int
        The rate in Mb/s.
    """

    delay: int
    loss: int
    rate: int

    @classmethod
    def parse(cls, text: str) -> Segment:
        """Return the segment that the tables of printed values call `delay/loss/rate`."""
        return cls(*map(int, text.split("/")))

    def __str__(self) -> str:
        """Return the segment in words."""
        return f"{self.delay} ms, {self.loss} %, {self.rate} Mb/s"


Path = Sequence[Segment]
"""Segment 1, next to the client, and segment 2 if there is one."""


def bottleneck(path: Path) -> int:
    """Return the least rate of a path in Mb/s."""
    return min(segment.rate for segment in path)


def size(path: Path, seconds: int = SECONDS) -> int:
    """Return the bytes of a download over a path."""
    return seconds * bottleneck(path) * 125_000


def _queue(kind: str, path: Path, segment: Segment) -> tuple[Any, float]:
    """Return the queue before the link of a segment, and the rate of the link in Mb/s."""
    rtt = 2 * sum(each.delay for each in path)
    bdp = rtt * bottleneck(path) * 125.0
    limit = max(int(4 * bdp), 12 * _PACKET * 4)
    packets = Quantity(int(4 * bdp / _MTU), "packets")
    queues = {
        "red": {"adaptive-red": {"limit": Quantity(limit, "B"), "burst": 1 + limit // 12 // _PACKET}},
        "bdp": Quantity(max(int(bdp), _MTU), "B"),
        "tenth": Quantity(max(int(bdp / 10), _MTU), "B"),
        "pie": {"pie": {"limit": packets}},
        "codel": {"codel": {"limit": packets, "interval": rtt / 1000}},
        "fq-codel": {"fq-codel": {}},
        "policer": {"policer": {"rate": segment.rate * 1_000_000, "burst": segment.rate * 1250}},
    }
    return queues[kind], 2.0 * segment.rate if kind == "policer" else float(segment.rate)


def _channel(loss: int, offload: bool) -> Any:
    if loss == 0:
        return "perfect"
    if not offload:
        return {"frame-loss": {"loss": loss / 100}}
    # As many packets are lost, in bursts of the segments of a super-packet.
    begin = loss / 100 / (OFFLOADED - (OFFLOADED - 1) * loss / 100)
    return {"frame-bursts": {"begin": round(begin, 6), "frames": OFFLOADED}}


QUEUES = {
    "red": "RED",
    "bdp": "FIFO, BDP",
    "tenth": "FIFO, BDP/10",
    "pie": "PIE",
    "policer": "policer",
    "codel": "CoDel",
    "fq-codel": "FQ-CoDel",
}
"""The queues: the first five are the paper's."""

_NAMES = {
    1: (("shaper-client", "shaper-server"),),
    2: (("router-near", "near-client"), ("far-router", "far-server")),
}
"""The shaped and the lossy link of each segment, by the number of segments."""


def links(path: Path, queue: str = "red", *, offload: bool = True) -> Settings:
    """Return the links of a path, as the value of `link` in a scenario.

    Examples
    --------
    >>> links([Segment(1, 0, 10)], "bdp")["shaper-server"]
    {'delay': 0.001, 'channel': 'perfect'}
    """
    tables: dict[str, Settings] = {}
    for (shaped, lossy), segment in zip(_NAMES[len(path)], path, strict=True):
        discipline, rate = _queue(queue, path, segment)
        tables[shaped] = {"rate": round(rate * 1e6 / _ETHERNET), "queue": discipline}
        tables[lossy] = {"delay": segment.delay / 1000, "channel": _channel(segment.loss, offload)}
    return tables


def swept(paths: Sequence[Path], queue: str = "red", *, offload: bool = True) -> Settings:
    """Return the sweep of the links over paths."""
    return {"sweep.link": [links(path, queue, offload=offload) for path in paths]}


def swept_queues(path: Path, *, offload: bool = True) -> Settings:
    """Return the sweep of the links of a path over the queues."""
    return {"sweep.link": [links(path, queue, offload=offload) for queue in QUEUES]}


def sender(control: str) -> str:
    """Return our sender with a control."""
    return SENDERS[control] if control in SENDERS else FURTHER[control][0]


def senders(*controls: str) -> Settings:
    """Return the sweep of the senders."""
    return {"sweep.sender": [sender(control) for control in controls]}


def response(path: Path, seconds: int = SECONDS) -> Settings:
    """Return the setting of the size of a download."""
    return {SIZE: size(path, seconds)}


def segments(rate: int) -> list[Path]:
    """Return the paths of one segment with a rate, by delay and loss."""
    return [(Segment(delay, loss, rate),) for delay in DELAYS for loss in LOSSES]
