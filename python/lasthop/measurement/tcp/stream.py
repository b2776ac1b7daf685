"""The data of one direction of a TCP connection as a capture shows them, and their acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lasthop.measurement.frames import Packets
from lasthop.measurement.model import Counters, Floats

_SYN, _ACK = 2, 16

_SMALLEST = 64
"""The least payload of a full packet: a smaller one is a damaged capture's."""

_MOST_PIECES = 20_000_000
"""Limit of the packets in a direction."""

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class Stream:
    """The data of one direction, and the acknowledgements of it.

    Attributes
    ----------
    time_s, seq, end : arrays
        When each data packet was captured; its first byte and the byte after its last, from the first on.
    size : array of int64
        Bytes of its IP packet.
    timestamp : array of int64
        Its timestamp, or -1.
    ack_s, ack : arrays
        When each acknowledgement was captured, and the largest number so far that was expected next.
    own_ack : array of int64
        The number of each acknowledgement itself, which is smaller if it is late.
    ack_rows : array
        Its rows among the packets.
    mss : int
        The payload of a full packet.
    largest : int
        A larger payload is several packets, which the network card cut or joined.
    headers : int
        Bytes of the headers of a packet.
    sack : bool
        Whether selective acknowledgements were agreed on.
    """

    time_s: Floats
    seq: Counters
    end: Counters
    size: Counters
    timestamp: Counters
    ack_s: Floats
    ack: Counters
    own_ack: Counters
    ack_rows: Rows
    mss: int
    largest: int
    headers: int
    sack: bool

    @classmethod
    def of(cls, packets: Packets, forward: Rows, backward: Rows) -> Self | None:
        """Return the data of the rows `forward`, which the rows `backward` acknowledge; None without data.

        None also if the sizes are those of no network.
        """
        payload = packets.payload[forward]
        carrying = payload > 0
        data = forward[carrying]
        if len(data) < 2:
            return None
        opening = forward[(packets.flags[forward] & _SYN) != 0]
        first = packets.seq[data[0]]
        seq = unwrap(packets.seq[data]) - first
        # Acknowledgements count in the same numbers.
        acks = backward[(packets.flags[backward] & _ACK) != 0]
        ack = unwrap(packets.ack[acks])
        if len(ack):
            ack = ack - ack[0] + int(difference(packets.ack[acks[0]], first))
        both = np.concatenate((opening, backward[(packets.flags[backward] & _SYN) != 0]))
        announced = packets.mss[both]
        announced = announced[announced > 0]
        sizes = payload[carrying]
        headers = int(np.median(packets.size[data] - sizes))
        largest = int(announced.min()) if len(announced) else 1500 - headers
        # A full packet is as large as most are; options and tunnels take some of what was announced.
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
            ack_rows=acks,
            mss=max(mss, _SMALLEST),
            largest=max(largest, _SMALLEST),
            headers=headers,
            sack=bool(packets.sacks[acks].any()) or bool(packets.sack_permitted[both].sum() >= 2),
        )

    @property
    def joined(self) -> int:
        """The number of super-packets."""
        return int(np.count_nonzero(self.end - self.seq > self.largest))

    def full(self, payload: Any) -> Any:
        """Return how many packets carry so many bytes of payload."""
        return -(-payload // self.mss)

    def pieces(self, payload: Counters) -> Counters:
        """Return how many packets each captured one was on the link, by its payload."""
        return np.where(payload > self.largest, self.full(payload), 1)


def unwrap(numbers: Counters) -> Counters:
    """Return sequence numbers of 32 bits counted on beyond the wrap, the first as it is.

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
    """Return the signed difference of numbers of 32 bits."""
    return ((later - earlier + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def covered(stream: Stream, ends: Counters) -> Floats:
    """Return when each byte before `ends` was acknowledged cumulatively; infinite if never."""
    index = np.searchsorted(stream.ack, ends, side="left")
    found: Floats = np.append(stream.ack_s, np.inf)[index]
    return found


def answer_s(packets: Packets, there: Rows, back: Rows) -> float | None:
    """Return how soon data of the rows `there` were acknowledged at the soonest; None without such."""
    found = Stream.of(packets, there, back)
    if found is None or not len(found.ack):
        return None
    # Data that are sent again are acknowledged sooner.
    ahead = np.maximum.accumulate(found.end)
    fresh = np.concatenate(([True], found.end[1:] > ahead[:-1]))
    waited = covered(found, found.end[fresh]) - found.time_s[fresh]
    waited = waited[np.isfinite(waited) & (waited >= 0)]
    return float(waited.min()) if len(waited) else None


def split(pieces: Counters) -> tuple[Rows, Counters]:
    """Return for each packet on the link the captured packet that it is part of, and its place in that.

    Examples
    --------
    >>> import numpy as np
    >>> [column.tolist() for column in split(np.array([1, 3]))]
    [[0, 1, 1, 1], [0, 0, 1, 2]]
    """
    owner = np.repeat(np.arange(len(pieces)), pieces)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
