"""What became of the packets of a TCP connection, on one side of the place where it was captured.

A `Stream` has the data of one direction and their acknowledgements. What was lost before the capture left
holes in the sequence, which retransmissions filled, or in the identifications of IPv4. What was lost behind
it is in the capture, and had to be retransmitted. Either is returned as `Fates`.
"""

from lasthop.measurement.tcp.before import by_holes, by_identifications
from lasthop.measurement.tcp.behind import by_retransmissions
from lasthop.measurement.tcp.fates import Fates
from lasthop.measurement.tcp.stream import Stream, answer_s

__all__ = ["Fates", "Stream", "answer_s", "by_holes", "by_identifications", "by_retransmissions"]
