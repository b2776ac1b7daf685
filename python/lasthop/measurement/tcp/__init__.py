"""Losses of a captured TCP connection, upstream or downstream of the capture.

A `Stream` has the data of one direction and their acknowledgements. Losses upstream of the capture leave
holes in sequence space, which retransmissions fill, or in the IPv4 identifications. Packets lost downstream
are in the capture, followed by retransmissions. Both are returned as `Fates`.
"""

from lasthop.measurement.tcp.before import by_holes, by_identifications
from lasthop.measurement.tcp.behind import by_retransmissions
from lasthop.measurement.tcp.clock import Clock
from lasthop.measurement.tcp.fates import Fates
from lasthop.measurement.tcp.stream import Stream, answer_s

__all__ = ["Clock", "Fates", "Stream", "answer_s", "by_holes", "by_identifications", "by_retransmissions"]
