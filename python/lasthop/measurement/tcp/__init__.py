"""Losses of a captured TCP connection, upstream or downstream of the capture.

A `Stream` has the data of one direction and their acknowledgements. Losses upstream of the capture leave
holes in sequence space, which retransmissions fill, or in the IPv4 identifications. Packets lost downstream
are in the capture, followed by retransmissions. Both are returned as `Outcomes`.
"""

from lasthop.measurement.tcp.clock import Clock
from lasthop.measurement.tcp.downstream import by_retransmissions
from lasthop.measurement.tcp.outcomes import Outcomes
from lasthop.measurement.tcp.stream import Stream, answer_s
from lasthop.measurement.tcp.upstream import by_holes, by_identifications

__all__ = [
    "Clock",
    "Outcomes",
    "Stream",
    "answer_s",
    "by_holes",
    "by_identifications",
    "by_retransmissions",
]
