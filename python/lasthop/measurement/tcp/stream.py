"""Captured data of one direction of a TCP connection, and their acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lasthop.measurement.model import Counters, Flags, Floats
from lasthop.measurement.packets import Packets
from lasthop.measurement.tcp.segments import Segments, segments

_SYN, _ACK = 2, 16

_SMALLEST = 64
"""The minimum plausible MSS; a smaller one means a damaged capture."""

_MOST_PIECES = 20_000_000
"""Limit of the packets of a connection in a direction."""

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class Stream:
    """The data of one direction, and their acknowledgements.

    Attributes
    ----------
    time_s, seq, end : arrays
        Capture time of each data packet; first sequence number and end, relative to the first packet.
    size : array of int64
        Bytes of the IP packet.
    timestamp : array of int64
        TSval, or -1.
    ack_s, ack : arrays
        Capture time of each acknowledgement, and the largest acknowledgement number so far.
    own_ack : array of int64
        The number of each acknowledgement itself, which is smaller than `ack` if it was reordered.
    rows, ack_rows : arrays
        The row of each data packet and of each acknowledgement among the packets.
    mss : int
        The payload of a full-sized packet.
    segments : Segments
        The largest payload of one packet; larger ones are super-packets of segmentation offload.
    headers : int
        Bytes of the headers of a packet.
    sack : bool
        Whether SACK was negotiated.
    probes : int
        Bytes sent to probe a closed window or an idle connection, which are no data.
    """

    time_s: Floats
    seq: Counters
    end: Counters
    size: Counters
    timestamp: Counters
    ack_s: Floats
    ack: Counters
    own_ack: Counters
    rows: Rows
    ack_rows: Rows
    mss: int
    segments: Segments
    headers: int
    sack: bool
    probes: int

    @classmethod
    def of(cls, packets: Packets, forward: Rows, backward: Rows) -> Self | None:
        """Return the data of the rows `forward`, acknowledged by the rows `backward`.

        None without data, or if the packet sizes are implausible.
        """
        payload = packets.payload[forward]
        probing = _probing(packets, forward, backward)
        carrying = (payload > 0) & ~probing
        data = forward[carrying]
        if len(data) < 2:
            return None
        opening = forward[(packets.flags[forward] & _SYN) != 0]
        # Data in a SYN, of TCP Fast Open, follow its own sequence number.
        begins = packets.seq[data] + ((packets.flags[data] & _SYN) != 0)
        first = begins[0]
        seq = unwrap(begins) - first
        # Acknowledgement numbers are relative to the same origin.
        acks = backward[(packets.flags[backward] & _ACK) != 0]
        ack = unwrap(packets.ack[acks])
        if len(ack):
            ack = ack - ack[0] + int(difference(packets.ack[acks[0]], first))
        both = np.concatenate((opening, backward[(packets.flags[backward] & _SYN) != 0]))
        announced = packets.mss[both]
        announced = announced[announced > 0]
        sizes = payload[carrying]
        headers = int(np.median(packets.size[data] - sizes))
        number = packets.identification[data]
        least = int(announced.min()) if len(announced) else 0
        known = segments(seq, sizes, number, 1500 - headers, least)
        largest = known.largest
        # The most frequent size, since options and tunnels reduce the announced MSS.
        plain = sizes[sizes <= largest]
        common = int(np.bincount(plain).argmax()) if len(plain) else 0
        mss = common if common > largest // 2 else largest
        if sizes.sum() // max(mss, _SMALLEST) > _MOST_PIECES:
            return None
        return cls(
            time_s=packets.time_s[data],
            seq=seq,
            end=seq + sizes,
            size=packets.size[data],
            timestamp=packets.timestamp[data],
            ack_s=packets.time_s[acks],
            ack=np.maximum.accumulate(ack) if len(ack) else ack,
            own_ack=ack,
            rows=data,
            ack_rows=acks,
            mss=max(mss, _SMALLEST),
            segments=replace(known, largest=max(largest, _SMALLEST)),
            headers=headers,
            sack=bool(packets.sacks[acks].any()) or bool(packets.sack_permitted[both].sum() >= 2),
            probes=int(probing.sum()),
        )

    @property
    def joined(self) -> int:
        """The number of super-packets."""
        return int(np.count_nonzero(self.end - self.seq > self.segments.largest))

    def full(self, payload: Any) -> Any:
        """Return the number of packets for a payload."""
        return -(-payload // self.mss)

    def pieces(self, payload: Counters) -> Counters:
        """Return the number of packets on the link for each captured packet, by its payload."""
        return np.where(payload > self.segments.largest, self.full(payload), 1)


def _probing(packets: Packets, forward: Rows, backward: Rows) -> Flags:
    """Return which packets are a byte that probes a closed window or an idle connection.

    A keep-alive repeats an acknowledged byte (RFC 9293 section 3.8.4). A probe of a window (section 3.8.6.1)
    is a byte beyond it, which is sent again unless the window had opened.
    """
    probing = np.zeros(len(forward), dtype=np.bool_)
    answers = backward[(packets.flags[backward] & (_SYN | _ACK)) == _ACK]
    bytes_ = np.flatnonzero(packets.payload[forward] == 1)
    if not len(bytes_) or not len(answers):
        return probing
    last = np.searchsorted(answers, forward[bytes_]) - 1
    answered = last >= 0
    answer = answers[np.maximum(last, 0)]
    seq = packets.seq[forward[bytes_]]
    acknowledged = difference(packets.ack[answer], seq) > 0
    closed = packets.window[answer] == 0
    carrying = np.flatnonzero(packets.payload[forward] > 0)
    first = packets.seq[forward[carrying[0]]]
    offset = difference(packets.seq[forward[carrying]], first)
    # The smallest sequence number of the data from each packet on.
    least = np.append(np.minimum.accumulate(offset[::-1])[::-1], np.iinfo(np.int64).max)
    repeated = least[np.searchsorted(carrying, bytes_) + 1] <= difference(seq, first)
    probing[bytes_] = answered & (acknowledged | (closed & repeated))
    return probing


def unwrap(numbers: Counters) -> Counters:
    """Unwrap 32-bit sequence numbers, starting from the first.

    Examples
    --------
    >>> import numpy as np
    >>> (unwrap(np.array([2**32 - 1, 5, 2**32 - 1])) - 2**32).tolist()
    [-1, 5, -1]
    """
    if not len(numbers):
        return numbers
    steps = difference(numbers[1:], numbers[:-1])
    counted: Counters = numbers[0] + np.concatenate(([0], np.cumsum(steps)))
    return counted


def difference(later: Any, earlier: Any) -> Any:
    """Return the signed difference of 32-bit sequence numbers."""
    return ((later - earlier + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def covered(stream: Stream, ends: Counters) -> Floats:
    """Return when the bytes before each of `ends` were acknowledged cumulatively; infinite if never."""
    index = np.searchsorted(stream.ack, ends, side="left")
    found: Floats = np.append(stream.ack_s, np.inf)[index]
    return found


def answer_s(packets: Packets, there: Rows, back: Rows) -> float | None:
    """Return the minimum delay between data in the rows `there` and their acknowledgement, or None."""
    found = Stream.of(packets, there, back)
    if found is None or not len(found.ack):
        return None
    # Retransmitted data are acknowledged too early.
    ahead = np.maximum.accumulate(found.end)
    fresh = np.concatenate(([True], found.end[1:] > ahead[:-1]))
    waited = covered(found, found.end[fresh]) - found.time_s[fresh]
    waited = waited[np.isfinite(waited) & (waited >= 0)]
    return float(waited.min()) if len(waited) else None


def split(pieces: Counters) -> tuple[Rows, Counters]:
    """Return, for each packet on the link, its captured packet and its position within that.

    Examples
    --------
    >>> import numpy as np
    >>> [column.tolist() for column in split(np.array([1, 3]))]
    [[0, 1, 1, 1], [0, 0, 1, 2]]
    """
    owner = np.repeat(np.arange(len(pieces)), pieces)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
