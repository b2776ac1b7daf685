"""What a capture says about the losses of one TCP connection, from either side of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop.measurement.frames import Packets
from lasthop.measurement.model import Counters, Flags, Floats

_SYN, _ACK = 2, 16

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class Fates:
    """The packets of one direction of a connection, in the order of sending as far as it is known.

    Attributes
    ----------
    time_s : array of float64
        When each was sent, at the sender's side; or when it arrived or would have, at the receiver's.
    lost : array of bool
        Whether it was lost on the way from the capture on, or on the way to it.
    carried_s, carried_bits : arrays of float64
        When bits arrived, or were acknowledged.
    idle_s : float
        How long the sender had nothing to send, as far as the capture shows.
    numbered : bool
        Whether the losses are gaps in the identifications of IPv4.
    unknown : int
        Packets whose fate the capture does not show, left out.
    spurious : int
        Retransmissions of what had arrived.
    reordered : int
        Packets that came out of order and were not retransmissions.
    missed : int
        Packets that the receiver acknowledged and the capture never saw.
    """

    time_s: Floats
    lost: Flags
    carried_s: Floats
    carried_bits: Floats
    idle_s: float = 0.0
    numbered: bool = False
    unknown: int = 0
    spurious: int = 0
    reordered: int = 0
    missed: int = 0


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

    @property
    def joined(self) -> int:
        """The number of super-packets."""
        return int(np.count_nonzero(self.end - self.seq > self.largest))


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
    steps = _difference(numbers[1:], numbers[:-1])
    counted: Counters = numbers[0] + np.concatenate(([0], np.cumsum(steps)))
    return counted


def _difference(later: Any, earlier: Any) -> Any:
    """Return the signed difference of numbers of 32 bits."""
    return ((later - earlier + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def stream(packets: Packets, forward: Rows, backward: Rows) -> Stream | None:
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
        ack = ack - ack[0] + int(_difference(packets.ack[acks[0]], first))
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
    return Stream(
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


def _pieces(stream: Stream) -> Counters:
    """Return how many packets each captured one was on the link."""
    length = stream.end - stream.seq
    return np.where(length > stream.largest, -(-length // stream.mss), 1)


def received(stream: Stream, window_s: float) -> Fates:
    """Infer losses on the way to the capture: holes in the sequence that retransmissions fill.

    A packet that fills a hole is late, not retransmitted, if its timestamp is not newer than that of the
    packet which showed the hole; without timestamps, if it comes within `window_s`.
    """
    ahead = np.maximum.accumulate(stream.end)
    expected = np.concatenate((stream.seq[:1], ahead[:-1]))
    holes = _Holes(stream, window_s)
    for row in np.flatnonzero(stream.seq != expected):
        holes.arrival(int(row), int(expected[row]))
    holes.finish()
    pieces = _pieces(stream)
    place = np.concatenate((np.repeat(np.arange(len(pieces)), pieces), holes.lost_place))
    time_s, lost = _ordered(place, np.repeat(stream.time_s, pieces), holes.lost_s)
    gaps = np.diff(stream.time_s)
    return Fates(
        time_s,
        lost,
        stream.time_s,
        _carried(stream, pieces),
        # Silence: nothing came, for whatever reason.
        idle_s=float(gaps[gaps > max(4 * window_s, 0.2)].sum()),
        spurious=holes.duplicates,
        reordered=holes.reordered,
        missed=holes.missed,
    )


def _ordered(place: Any, arrived_s: Floats, lost_s: Floats) -> tuple[Floats, Flags]:
    """Return the times of what arrived and was lost, in the order of their places, and which was lost."""
    order = np.argsort(place, kind="stable")
    lost = np.concatenate((np.zeros(len(arrived_s), np.bool_), np.ones(len(lost_s), np.bool_)))
    return np.concatenate((arrived_s, lost_s))[order], lost[order]


def numbered(
    packets: Packets, stream: Stream, forward: Rows, holes: Fates, window_s: float, longest_s: float
) -> Fates | None:
    """Return the losses on the way to the capture by the identifications of IPv4, if they count packets.

    Linux and others number all packets of a connection in a row, so that each one missing was lost, also
    where it leaves no hole: a retransmission, or a whole window. Others number at random, or all that a host
    sends: then the numbers of packets that followed each other closely do, too, not follow each other.

    Parameters
    ----------
    packets : Packets
        The capture.
    stream : Stream
        The data.
    forward : array
        The rows of all packets in their direction.
    holes : Fates
        What the sequence numbers say.
    window_s : float
        As in `received`.
    longest_s : float
        A round trip with its queues.
    """
    number = packets.identification[forward]
    if len(forward) < _FEWEST_NUMBERED or (number < 0).any():
        return None
    payload = packets.payload[forward]
    pieces = np.where(payload > stream.largest, -(-payload // stream.mss), 1)
    step = ((np.diff(number) + (1 << 15)) & 0xFFFF) - (1 << 15)
    in_row = _difference(packets.seq[forward[1:]], packets.seq[forward[:-1]]) == payload[:-1]
    close = np.diff(packets.time_s[forward]) < window_s
    steady = in_row & close & (payload[:-1] > 0) & (payload[1:] > 0)
    wrong = int((steady & (step != pieces[:-1])).sum())
    # Where a retransmission was lost new data go on.
    if steady.sum() < _FEWEST_NUMBERED or wrong > 3 + int(holes.lost.sum()):
        return None
    counted = np.concatenate(([0], np.cumsum(step)))
    low, high = int(counted.min()), int((counted + pieces).max())
    # No more can be missing in a row than was on its way, and some timeouts. At other times what is on
    # its way arrives within a round trip; the congestion window may have doubled since.
    time_s = packets.time_s[forward]
    within = np.searchsorted(time_s, time_s + longest_s, side="right") - np.arange(len(time_s))
    if (step - pieces[:-1]).max() > 2 * int(within.max()) + _TIMEOUTS:
        return None
    if np.abs(step).max() > _FARTHEST or high - low > 20 * len(forward):
        return None
    present = np.zeros(high - low, dtype=np.bool_)
    owner = np.repeat(np.arange(len(forward)), pieces)
    place = counted[owner] - low + np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    present[np.minimum(place, high - low - 1)] = True
    missing = np.flatnonzero(~present)
    order = np.argsort(place, kind="stable")
    arrival_s = np.maximum.accumulate(packets.time_s[forward[owner[order]]])
    lost_s = np.interp(missing, place[order], arrival_s)
    carrying = payload[owner] > 0
    places = np.concatenate((place[carrying], missing))
    found_s, lost = _ordered(places, packets.time_s[forward[owner[carrying]]], lost_s)
    return replace(holes, time_s=found_s, lost=lost, numbered=True)


_FEWEST_NUMBERED = 20
_FARTHEST = 3000
_TIMEOUTS = 16


def _carried(stream: Stream, pieces: Counters) -> Floats:
    """Return the bits of the IP packets that each captured packet was."""
    return 8.0 * ((stream.end - stream.seq) + pieces * stream.headers).astype(np.float64)


@dataclass(slots=True)
class _Hole:
    """Bytes that did not come in order."""

    seq: int
    end: int
    # Where the gap began, and the arrivals before and after it.
    first: int
    before: int
    after: int


class _Holes:
    """The holes of a connection at the receiver's side, while its packets arrive."""

    def __init__(self, stream: Stream, window_s: float) -> None:
        self.stream = stream
        self.window_s = window_s
        self.open: list[_Hole] = []
        # When each lost packet would have arrived, and before which row.
        self.lost: list[tuple[float, float]] = []
        self.duplicates = self.reordered = self.missed = 0

    @property
    def lost_s(self) -> Floats:
        """When each lost packet would have arrived."""
        return np.array([time_s for time_s, _ in self.lost], dtype=np.float64)

    @property
    def lost_place(self) -> Floats:
        """Where they stand among the rows."""
        return np.array([place for _, place in self.lost], dtype=np.float64)

    def arrival(self, row: int, expected: int) -> None:
        """Take in a packet that did not come in order."""
        seq, end = int(self.stream.seq[row]), int(self.stream.end[row])
        if seq > expected:
            if seq - expected <= _LARGEST_HOLE:
                self.open.append(_Hole(expected, seq, expected, row - 1, row))
            if len(self.open) > _MOST_HOLES:
                # TCP fills the oldest first.
                oldest = self.open.pop(0)
                self.missed += self._packets(oldest.seq, oldest.end)
            return
        kept: list[_Hole] = []
        filled = False
        for hole in self.open:
            low, high = max(hole.seq, seq), min(hole.end, end)
            if low >= high:
                kept.append(hole)
                continue
            filled = True
            self._fill(hole, low, high, row)
            if hole.seq < low:
                kept.append(_Hole(hole.seq, low, hole.first, hole.before, hole.after))
            if high < hole.end:
                kept.append(_Hole(high, hole.end, hole.first, hole.before, hole.after))
        self.open = kept
        if not filled and end <= expected:
            self.duplicates += 1

    def _fill(self, hole: _Hole, low: int, high: int, row: int) -> None:
        stream = self.stream
        seen_s = float(stream.time_s[hole.after])
        if self._acknowledged(low, row):
            # The receiver had it before: the capture missed the first copy.
            self.missed += self._packets(low, high)
            return
        newer, older = int(stream.timestamp[row]), int(stream.timestamp[hole.after])
        late_s = float(stream.time_s[row]) - seen_s
        again = late_s > self.window_s
        if newer >= 0 and older >= 0 and newer != older:
            again = int(_difference(newer, older)) > 0
        if again:
            self._lose(hole, low, high)
        else:
            self.reordered += 1

    def _acknowledged(self, seq: int, row: int) -> bool:
        """Tell whether the receiver acknowledged a byte well before a packet was captured."""
        stream = self.stream
        # Not a moment before: a capture may have an acknowledgement earlier than its packet.
        known = int(np.searchsorted(stream.ack_s, stream.time_s[row] - self.window_s, side="left"))
        return known > 0 and int(stream.ack[known - 1]) > seq

    def _packets(self, low: int, high: int) -> int:
        return -(-(high - low) // self.stream.mss)

    def _lose(self, hole: _Hole, low: int, high: int) -> None:
        """Place the lost packets between the arrivals around the hole, by their sequence numbers."""
        stream = self.stream
        count = self._packets(low, high)
        before, after = float(stream.time_s[hole.before]), float(stream.time_s[hole.after])
        # A part of the hole may have been filled before.
        span = max(int(stream.end[hole.after]) - hole.first, 1)
        for piece in range(count):
            share = (min(low + (piece + 1) * stream.mss, high) - hole.first) / span
            self.lost.append((before + share * (after - before), hole.after - 1 + share))

    def finish(self) -> None:
        """Judge the holes that are still open at the end of the capture."""
        stream = self.stream
        end_s = float(stream.time_s[-1])
        for hole in self.open:
            age_s = end_s - float(stream.time_s[hole.after])
            if len(stream.ack) and int(stream.ack[-1]) > hole.seq:
                self.missed += self._packets(hole.seq, min(hole.end, int(stream.ack[-1])))
            elif age_s > _ABANDONED_S:
                # TCP would have filled it, and has if the capture goes on.
                self.missed += self._packets(hole.seq, hole.end)
            elif age_s > self.window_s:
                self._lose(hole, hole.seq, hole.end)


_ABANDONED_S = 3.0
_LARGEST_HOLE = 1 << 24
"""Limit of the bytes in a hole, more than a window: the numbers of a damaged capture jump by gigabytes."""

_MOST_HOLES = 500


_MOST_UNITS = 2000
"""Limit of the packets that one retransmission or report stands for."""

_SMALLEST = 64
_MOST_PIECES = 20_000_000


@dataclass(slots=True)
class _Again:
    """The retransmissions of one unit, and the reports of its duplicates."""

    sent_s: list[float] = field(default_factory=list)
    # Where they stand among the rows.
    places: list[float] = field(default_factory=list)
    duplicate_s: list[float] = field(default_factory=list)


def sent(packets: Packets, stream: Stream) -> tuple[Fates, Floats, Floats]:
    """Infer losses on the way from the capture on: retransmissions that were needed.

    Data are counted in units, the packets of their first transmission. Of several transmissions of a unit
    one arrived, the last that was early enough for the first acknowledgement of the unit, and another for
    each duplicate that the receiver reports (RFC 2883).

    Returns
    -------
    fates : Fates
        Losses; `unknown` counts what was not acknowledged at the end.
    time_s, rtt_s : arrays of float64
        Round-trip times, of units that were sent once.
    """
    ahead = np.maximum.accumulate(stream.end)
    expected = np.concatenate((stream.seq[:1], ahead[:-1]))
    fresh = np.flatnonzero(stream.end > expected)
    begin = np.maximum(stream.seq[fresh], expected[fresh])
    length = stream.end[fresh] - begin
    pieces = np.where(length > stream.largest, -(-length // stream.mss), 1)
    owner = np.repeat(np.arange(len(fresh)), pieces)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = begin[owner] + place * np.where(pieces[owner] > 1, stream.mss, 0)
    ends = np.minimum(
        np.where(pieces[owner] > 1, starts + stream.mss, stream.end[fresh][owner]), stream.end[fresh][owner]
    )
    sent_s = stream.time_s[fresh][owner]

    acknowledged_s = _covered(stream, ends)
    again, sack_s = _selective(packets, stream, starts, ends)
    covered_s: Floats = np.minimum(acknowledged_s, sack_s, dtype=np.float64)
    first, last = starts.tolist(), ends.tolist()
    older = np.flatnonzero(stream.seq < expected)
    for row in older.tolist():
        low = bisect_right(last, int(stream.seq[row]))
        high = bisect_left(first, min(int(stream.end[row]), int(expected[row])))
        high = min(high, low + _MOST_UNITS)
        for unit in range(low, high):
            again[unit].sent_s.append(float(stream.time_s[row]))
            again[unit].places.append(row + (unit - low) / (high - low))

    once = np.ones(len(starts), dtype=np.bool_)
    once[[unit for unit, known in again.items() if known.sent_s]] = False
    answered = np.isfinite(covered_s)
    clean = np.flatnonzero(once & answered)
    rtt_s = covered_s[clean] - sent_s[clean]
    least_s = float(rtt_s.min()) if len(rtt_s) else 0.0
    # The newest unit that an acknowledgement covers: the others waited for it.
    newest = np.ones(len(clean), dtype=np.bool_)
    newest[:-1] = covered_s[clean][1:] != covered_s[clean][:-1]

    unit_place = fresh[owner] + place / pieces[owner]
    unknown = int((once & ~answered).sum())
    spurious = 0
    reports = any(known.duplicate_s for known in again.values())
    arrived: list[tuple[float, float]] = []
    lost: list[tuple[float, float]] = []
    for unit, known in again.items():
        if not known.sent_s:
            # Duplicated on the way: a duplicate of what was sent once.
            continue
        every = [float(sent_s[unit]), *known.sent_s]
        places = [float(unit_place[unit]), *known.places]
        done_s = float(covered_s[unit])
        latest_s = done_s - least_s
        if not stream.sack and done_s == acknowledged_s[unit]:
            # Without SACK: one acknowledgement of many units was for the first of them, whose retransmission
            # filled a hole. The others had come before it, so that none sent later was needed.
            head = int(np.searchsorted(acknowledged_s, done_s, side="left"))
            if head < unit and np.searchsorted(acknowledged_s, done_s, side="right") - head > _DELAYED:
                trigger = [float(sent_s[head]), *(again[head].sent_s if head in again else ())]
                latest_s = min(latest_s, max((t for t in trigger if t <= latest_s), default=latest_s))
        fates = _judge(every, done_s, known.duplicate_s, latest_s, least_s, reports)
        for time_s, where, fate in zip(every, places, fates, strict=True):
            if fate is None:
                unknown += 1
            else:
                (lost if fate else arrived).append((where, time_s))
        spurious += sum(fate is False for fate in fates) - bool(np.isfinite(covered_s[unit]))
    again_place, again_s = np.array(arrived, dtype=np.float64).reshape(-1, 2).T
    lost_place, lost_s = np.array(lost, dtype=np.float64).reshape(-1, 2).T
    every_s, every_lost = _ordered(
        np.concatenate((unit_place[once & answered], again_place, lost_place)),
        np.concatenate((sent_s[once & answered], again_s)),
        lost_s,
    )

    # Silence while nothing was outstanding.
    idle = stream.time_s[fresh][1:] - _covered(stream, ahead[fresh][:-1])
    fates_found = Fates(
        every_s,
        every_lost,
        covered_s[answered],
        (ends[answered] - starts[answered] + stream.headers) * 8.0,
        idle_s=float(idle[idle > 0].sum()),
        unknown=unknown,
        spurious=max(spurious, 0),
        missed=_unseen(stream, ahead),
    )
    return fates_found, sent_s[clean][newest], rtt_s[newest]


def _covered(stream: Stream, ends: Counters) -> Floats:
    """Return when each byte before `ends` was acknowledged cumulatively; infinite if never."""
    index = np.searchsorted(stream.ack, ends, side="left")
    found: Floats = np.append(stream.ack_s, np.inf)[index]
    return found


def answer_s(packets: Packets, there: Rows, back: Rows) -> float | None:
    """Return how soon data of the rows `there` were acknowledged at the soonest; None without such."""
    found = stream(packets, there, back)
    if found is None or not len(found.ack):
        return None
    # Data that are sent again are acknowledged sooner.
    ahead = np.maximum.accumulate(found.end)
    fresh = np.concatenate(([True], found.end[1:] > ahead[:-1]))
    waited = _covered(found, found.end[fresh]) - found.time_s[fresh]
    waited = waited[np.isfinite(waited) & (waited >= 0)]
    return float(waited.min()) if len(waited) else None


def _unseen(stream: Stream, ahead: Counters) -> int:
    """Return how many packets were acknowledged that the capture never saw: holes in what was sent."""
    gaps = stream.seq[1:] - ahead[:-1]
    return int(sum(-(-int(gap) // stream.mss) for gap in gaps[gaps > 0].tolist() if gap < 1 << 30))


def _selective(
    packets: Packets, stream: Stream, starts: Counters, ends: Counters
) -> tuple[defaultdict[int, _Again], Floats]:
    """Return the duplicates that the receiver reported, and when it first reported each unit."""
    again: defaultdict[int, _Again] = defaultdict(_Again)
    sack_s = np.full(len(starts), np.inf)
    rows = np.flatnonzero(packets.sacks[stream.ack_rows] > 0)
    if not len(rows):
        return again, sack_s
    where = stream.ack_rows[rows]
    number = packets.ack[where]
    base = stream.own_ack[rows]
    blocks = packets.sacks[where]
    edges = [
        (
            base + _difference(packets.word(packets.sack_at[where] + 8 * block, 4), number),
            base + _difference(packets.word(packets.sack_at[where] + 8 * block + 4, 4), number),
        )
        for block in range(int(blocks.max()))
    ]
    first, last = starts.tolist(), ends.tolist()
    for index in range(len(rows)):
        time_s = float(stream.ack_s[rows[index]])
        cumulative = int(base[index])
        for block in range(int(blocks[index])):
            left, right = int(edges[block][0][index]), int(edges[block][1][index])
            if left >= right:
                continue
            low, high = bisect_left(first, left), bisect_right(last, right)
            second = blocks[index] > 1 and block == 0
            within = second and edges[1][0][index] <= left and right <= edges[1][1][index]
            if block == 0 and (right <= cumulative or within):
                # RFC 2883: the first block reports a duplicate. It may be part of a unit.
                low, high = bisect_right(last, left), bisect_left(first, right)
                for unit in range(low, min(high, low + _MOST_UNITS)):
                    again[unit].duplicate_s.append(time_s)
            elif low < high:
                part = sack_s[low:high]
                part[part > time_s] = time_s
    return again, sack_s


_SOONER = 0.8
"""The share of the shortest round trip in which a retransmission is acknowledged that need not wait."""

_DELAYED = 2
"""Units that a delayed acknowledgement may stand for."""


def _judge(
    sent_s: list[float],
    covered_s: float,
    duplicate_s: list[float],
    latest_s: float,
    least_s: float,
    reports: bool,
) -> list[bool | None]:
    """Return of each transmission of a unit whether it was lost; None if that cannot be told.

    Parameters
    ----------
    sent_s : list of float
        When each was sent.
    covered_s, latest_s : float
        When the unit was acknowledged first, and the latest transmission that this can have been for.
    duplicate_s : list of float
        When the receiver reported a duplicate.
    least_s : float
        The shortest round trip.
    reports : bool
        Whether the receiver reports duplicates.
    """
    count = len(sent_s)
    if not np.isfinite(covered_s):
        # Each retransmission says that its sender gave the one before up.
        return [True] * (count - 1) + [None]
    # Differences of times are exact to a microsecond.
    least_s = max(least_s - 1e-6, 0.0)
    early = [index for index in range(count) if sent_s[index] <= latest_s + 1e-6]
    first = early[-1] if early else 0
    # Retransmissions are acknowledged at once, other data perhaps a little later: one may take less than the
    # shortest round trip. It does so if the one before would have taken much longer.
    if latest_s >= covered_s - least_s - 1e-6 and covered_s - sent_s[first] > 2 * least_s:
        first = max(first, *(i for i in range(count) if sent_s[i] <= covered_s - _SOONER * least_s), 0)
    arrived = {first}
    for report_s in sorted(duplicate_s):
        for index in range(count - 1, -1, -1):
            if index not in arrived and sent_s[index] <= report_s - least_s:
                arrived.add(index)
                break
    latest = max(arrived)
    fates: list[bool | None] = []
    for index in range(count):
        if index in arrived:
            fates.append(False)
        elif index < latest or reports:
            fates.append(True)
        else:
            # It may have arrived as a duplicate, at a receiver that does not report them.
            fates.append(None)
    return fates
