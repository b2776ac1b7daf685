"""Losses upstream of the capture, by holes in sequence space or by gaps in the IPv4 identifications."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lasthop.measurement.model import Counters, Flags, Floats
from lasthop.measurement.packets import Packets
from lasthop.measurement.tcp.clock import LEAST_TIMEOUT_S, Clock, Gap
from lasthop.measurement.tcp.outcomes import Outcomes, by_place
from lasthop.measurement.tcp.stream import Rows, Stream, difference, split

_ABANDONED_S = 3.0
"""A hole that is open for longer was filled by a packet missing from the capture."""

_OVERDUE_S = 0.5
"""The same, if new data arrive later by this and by ten round trips: a sender does not go on for so long."""

_LARGEST_HOLE = 1 << 24
"""Limit of the bytes in a hole, more than a window; a damaged capture has gaps of gigabytes."""

_MOST_HOLES = 500
"""Limit of open holes."""

_SYN, _RST = 2, 4

_FEWEST_NUMBERED = 20
"""Packets needed to detect consecutive identifications."""

_FARTHEST = 3000
"""Limit of the gap between consecutive identifications."""

_UNEXPLAINED = 0.1
"""Identifications are not the connection's own if more gaps than this share disagree with sequence space."""

_FEW_UNEXPLAINED = 2
"""So many gaps may, of packets without data."""

_MOST_OTHERS = 200
"""Limit of the other connections of a host whose identifications are compared."""

_TIMEOUTS = 16
"""Packets that may be missing in a row besides those in flight: retransmissions after timeouts."""


def by_holes(stream: Stream, clock: Clock, window_s: float) -> Outcomes:
    """Infer losses upstream of the capture: holes that retransmissions fill, and windows before timeouts.

    A packet that fills a hole was reordered, not retransmitted, if its timestamp is not newer than that of
    the packet behind the hole; without timestamps, if it arrives within `window_s`.
    """
    ahead = np.maximum.accumulate(stream.end)
    expected = np.concatenate((stream.seq[:1], ahead[:-1]))
    holes = _Holes(stream, window_s)
    for row in np.flatnonzero(stream.seq != expected):
        holes.arrival(int(row), int(expected[row]))
    holes.finish()
    payload = stream.end - stream.seq
    pieces = stream.pieces(payload)
    owner, _ = split(pieces)
    lost_place, lost_s, windows = _with_windows(holes, clock.windows(stream), ahead)
    order = np.argsort(lost_place, kind="stable")
    lost_place, lost_s = lost_place[order], lost_s[order]
    rows, counts = np.unique(lost_place.astype(np.intp), return_counts=True)
    clock.retime(
        lost_s,
        (
            Gap(float(stream.time_s[row]), float(stream.time_s[row + 1]), row, row + 1, count)
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
        ),
    )
    place = np.concatenate((owner, lost_place))
    time_s, lost = by_place(place, stream.time_s[owner], lost_s)
    gaps = np.diff(stream.time_s)
    trip_s = 2 * window_s
    # A shorter gap is of an idle sender if it precedes new data and all before had been acknowledged to it.
    answered = (clock.heard_s[1:] >= clock.acknowledged_s[:-1]) & (stream.seq[1:] == expected[1:])
    idle = (gaps > max(2 * trip_s, 0.2)) | ((gaps > 2 * trip_s) & answered & clock.echoed)
    return Outcomes(
        time_s,
        lost,
        stream.time_s,
        8.0 * (payload + pieces * stream.headers).astype(np.float64),
        # Time without arrivals, if it is long for whatever reason.
        idle_s=float(gaps[idle].sum()),
        spurious=holes.duplicates,
        reordered=holes.reordered,
        windows=windows,
        resent=max(int((stream.seq < expected).sum()) - holes.reordered - holes.duplicates, 0),
        missed=holes.missed,
    )


def _with_windows(
    holes: _Holes, windows: list[tuple[Gap, int]], ahead: Counters
) -> tuple[Floats, Floats, int]:
    """Add the lost windows to the packets lost in holes.

    After a timeout, new data may show a lost window as a hole, which then has its number of packets.

    Returns
    -------
    lost_place, lost_s : arrays of float64
        The row before which each packet would have arrived, and the time.
    added : int
        The packets that are in no hole.
    """
    begins = holes.lost_begin
    order = np.argsort(begins, kind="stable")
    ranked = begins[order]
    separate = np.ones(len(begins), dtype=np.bool_)
    places, times_s, added = [], [], 0
    for gap, timers in windows:
        expected = (int(ahead[gap.before]), int(ahead[gap.after]) + 1)
        shown = order[slice(*np.searchsorted(ranked, expected).tolist())]
        shown = shown[separate[shown] & (holes.lost_place[shown] >= gap.after)]
        separate[shown] = False
        count = len(shown) + timers if len(shown) else gap.missing
        if not count:
            continue
        added += count - len(shown)
        share = np.arange(1, count + 1) / (count + 1)
        places.append(gap.before + share)
        times_s.append(gap.begin_s + share * (gap.end_s - gap.begin_s))
    lost_place = np.concatenate([holes.lost_place[separate], *places])
    return lost_place, np.concatenate([holes.lost_s[separate], *times_s]), added


def by_identifications(
    packets: Packets,
    stream: Stream,
    clock: Clock,
    forward: Rows,
    neighbours: Rows,
    holes: Outcomes,
    window_s: float,
    longest_s: float,
) -> Outcomes | None:
    """Infer losses upstream of the capture by the IPv4 identifications; None unless they are consecutive.

    Linux and others number the packets of a connection consecutively. A missing number is then a lost packet,
    including lost retransmissions and lost windows, which leave no hole, as far as sequence space agrees: a
    hole begins there or is open, retransmissions are under way, or a timer ended a pause. Other stacks use
    random numbers, or one counter for several connections. Those whose packets are in the capture are taken
    into account; if others are missing, the gaps disagree with sequence space.

    Parameters
    ----------
    packets : Packets
        The capture.
    stream : Stream
        The data.
    clock : Clock
        The clock of their sender.
    forward : array
        The rows of all packets in the direction of the data.
    neighbours : array
        The rows of other packets of the same host in that time.
    holes : Outcomes
        The result of `by_holes`.
    window_s : float
        As in `by_holes`.
    longest_s : float
        The round-trip time with queueing.
    """
    # Linux numbers neither the SYN-ACK, before there is a socket, nor some resets.
    bare = (packets.flags[forward] & (_SYN | _RST)) != 0
    forward = forward[~bare | (packets.identification[forward] != 0)]
    number = packets.identification[forward]
    if len(forward) < _FEWEST_NUMBERED or (number < 0).any():
        return None
    payload = packets.payload[forward]
    pieces = stream.pieces(payload)
    step = ((np.diff(number) + (1 << 15)) & 0xFFFF) - (1 << 15)
    counted = np.concatenate(([0], np.cumsum(step)))
    low, high = int(counted.min()), int((counted + pieces).max())
    if np.abs(step).max() > _FARTHEST or high - low > 20 * len(forward) + len(neighbours):
        return None
    owner, piece = split(pieces)
    place = counted[owner] - low + piece
    present = np.zeros(high - low, dtype=np.bool_)
    present[np.minimum(place, high - low - 1)] = True
    elsewhere = _seen_elsewhere(packets, forward, neighbours, counted - low, present)
    before = np.concatenate(([0], np.cumsum(elsewhere)))
    # The numbers that the connection itself used between two packets.
    own = step - (before[(counted - low)[1:]] - before[np.minimum((counted - low + pieces)[:-1], high - low)])
    in_row = difference(packets.seq[forward[1:]], packets.seq[forward[:-1]]) == payload[:-1]
    close = np.diff(packets.time_s[forward]) < window_s
    steady = in_row & close & (payload[:-1] > 0) & (payload[1:] > 0)
    wrong = int((steady & (own != pieces[:-1])).sum())
    # New data continue after a lost retransmission.
    if steady.sum() < _FEWEST_NUMBERED or wrong > 3 + int(holes.lost.sum()):
        return None
    # At most the packets in flight, and retransmissions after timeouts, can be missing in a row. Packets in
    # flight are estimated by arrivals within a round trip; the congestion window may have doubled since.
    time_s = packets.time_s[forward]
    within = np.searchsorted(time_s, time_s + longest_s, side="right") - np.arange(len(time_s))
    flight = 2 * int(within.max()) + _TIMEOUTS
    if (own - pieces[:-1]).max() > flight:
        return None
    present |= elsewhere
    order = np.argsort(place, kind="stable")
    arrival_s = np.maximum.accumulate(packets.time_s[forward[owner[order]]])
    # Probes of a closed window have a payload, and are no data.
    carrying = np.isin(forward, stream.rows, assume_unique=True)[owner]
    # The row of each packet among those with data, or of the last one before it.
    row = (np.searchsorted(stream.rows, forward, side="right") - 1)[owner[order]]
    evidence = _Evidence(stream, clock, flight)
    explained, disagreeing, agreeing = [], 0, 0
    gaps: list[Gap] = []
    for at in np.flatnonzero(np.diff(place[order]) > 1).tolist():
        first = int(place[order[at]]) + 1
        absent = first + np.flatnonzero(~present[first : int(place[order[at + 1]])])
        if not len(absent):
            continue
        data = bool(carrying[order[at + 1]])
        begin_s, end_s = float(arrival_s[at]), float(arrival_s[at + 1])
        known = absent[: evidence.losses(int(row[at]), int(row[at + 1]), data, end_s - begin_s)]
        disagreeing += len(known) < len(absent)
        agreeing += len(known) == len(absent)
        if len(known):
            explained.append(known)
            gaps.append(Gap(begin_s, end_s, int(row[at]), int(row[at + 1]) if data else -1, len(known)))
    if disagreeing > _FEW_UNEXPLAINED + _UNEXPLAINED * agreeing:
        return replace(holes, shared=True)
    missing = np.concatenate(explained) if explained else np.zeros(0, dtype=np.int64)
    lost_s = np.interp(missing, place[order], arrival_s)
    clock.retime(lost_s, gaps)
    places = np.concatenate((place[carrying], missing))
    found_s, lost = by_place(places, packets.time_s[forward[owner[carrying]]], lost_s)
    return replace(holes, time_s=found_s, lost=lost, numbered=True, windows=0)


def _seen_elsewhere(
    packets: Packets, forward: Rows, neighbours: Rows, counted: Counters, present: Flags
) -> Flags:
    """Return which identifications are on other connections of the same host that share the counter.

    A connection with a counter of its own uses numbers that this one uses, too, unless they are far apart.
    """
    elsewhere = np.zeros(len(present), dtype=np.bool_)
    others = neighbours[packets.identification[neighbours] > 0]
    if not len(others):
        return elsewhere
    # The number of the last packet of the connection before each.
    last = np.maximum(np.searchsorted(forward, others, side="right") - 1, 0)
    ahead = packets.identification[others] - packets.identification[forward[last]]
    place = counted[last] + ((ahead + (1 << 15)) & 0xFFFF) - (1 << 15)
    near = (place >= 0) & (place < len(present))
    others, place = others[near], place[near]
    pair = packets.source[others] ^ (packets.target[others] * np.uint64(0x9E3779B97F4A7C15))
    connections = np.unique(pair)
    for connection in connections[:_MOST_OTHERS]:
        own = place[pair == connection]
        if not present[own].any():
            elsewhere[own] = True
    return elsewhere


class _Evidence:
    """What sequence space says of packets missing between two arrivals."""

    def __init__(self, stream: Stream, clock: Clock, flight: int) -> None:
        self.stream, self.clock, self.flight = stream, clock, flight
        self.ahead = np.maximum.accumulate(stream.end)
        received = np.zeros(len(stream.seq), dtype=np.int64)
        # Bytes below the largest sequence number that had not arrived, after each packet.
        holes = _Holes(stream, 0.0)
        expected = np.concatenate((stream.seq[:1], self.ahead[:-1]))
        irregular = np.flatnonzero(stream.seq != expected)
        for place, at in enumerate(irregular.tolist()):
            holes.arrival(at, int(expected[at]))
            until = int(irregular[place + 1]) if place + 1 < len(irregular) else len(received)
            received[at:until] = sum(hole.end - hole.seq for hole in holes.open)
        self.open_bytes = received
        self.again = stream.seq < expected

    def losses(self, before: int, after: int, data: bool, passed_s: float) -> int:
        """Return how many packets can have been lost between two data packets.

        Parameters
        ----------
        before, after : int
            The rows of the data packets at or before the arrivals; -1 if there is none.
        data : bool
            Whether the second arrival has data.
        passed_s : float
            The time between the arrivals.
        """
        if before < 0:
            # The first window was lost if a timeout preceded the first data.
            return self.flight if data and passed_s >= LEAST_TIMEOUT_S and self.clock.alone(0) else 0
        if data and after != before:
            jump = int(self.stream.seq[after]) - int(self.ahead[after - 1])
            if self.again[after] or self.again[before] or self.clock.paused(before, after):
                return self.flight
        else:
            # A packet without data, such as the last one, tells nothing.
            jump = 0
        opened = int(self.stream.full(max(jump, 0)))
        outstanding = int(self.stream.full(int(self.open_bytes[before])))
        return opened + outstanding


@dataclass(slots=True)
class _Hole:
    """A hole in sequence space."""

    seq: int
    end: int
    # Start of the gap, and the arrivals before and after it.
    first: int
    before: int
    after: int


class _Holes:
    """The open holes of a connection, updated packet by packet."""

    def __init__(self, stream: Stream, window_s: float) -> None:
        self.stream = stream
        self.window_s = window_s
        self.open: list[_Hole] = []
        # For each lost packet: the time at which it would have arrived, the row before which, and the first
        # sequence number of its hole.
        self.lost: list[tuple[float, float, int]] = []
        # How many packets were lost in each gap, by the row behind it.
        self.in_gap: dict[int, int] = {}
        self.duplicates = self.reordered = self.missed = 0

    @property
    def lost_s(self) -> Floats:
        """The time at which each lost packet would have arrived."""
        return np.array([time_s for time_s, _, _ in self.lost], dtype=np.float64)

    @property
    def lost_place(self) -> Floats:
        """The row before which each lost packet would have arrived."""
        return np.array([place for _, place, _ in self.lost], dtype=np.float64)

    @property
    def lost_begin(self) -> Counters:
        """The first sequence number of the hole of each lost packet."""
        return np.array([begin for _, _, begin in self.lost], dtype=np.int64)

    def arrival(self, row: int, expected: int) -> None:
        """Process an out-of-order packet."""
        seq, end = int(self.stream.seq[row]), int(self.stream.end[row])
        if seq > expected:
            if seq - expected <= _LARGEST_HOLE:
                self.open.append(_Hole(expected, seq, expected, row - 1, row))
            if len(self.open) > _MOST_HOLES:
                # TCP fills the oldest hole first.
                oldest = self.open.pop(0)
                self.missed += self.stream.full(oldest.end - oldest.seq)
            return
        remaining: list[_Hole] = []
        filled = False
        for hole in self.open:
            low, high = max(hole.seq, seq), min(hole.end, end)
            if low >= high:
                remaining.append(hole)
                continue
            filled = True
            self._fill(hole, low, high, row)
            if hole.seq < low:
                remaining.append(replace(hole, end=low))
            if high < hole.end:
                remaining.append(replace(hole, seq=high))
        self.open = remaining
        if not filled and end <= expected:
            self.duplicates += 1

    def _fill(self, hole: _Hole, low: int, high: int, row: int) -> None:
        stream = self.stream
        seen_s = float(stream.time_s[hole.after])
        if self._acknowledged(low, row):
            # The receiver already had it: the capture missed the first copy.
            self.missed += stream.full(high - low)
            return
        newer, older = int(stream.timestamp[row]), int(stream.timestamp[hole.after])
        late_s = float(stream.time_s[row]) - seen_s
        retransmitted = late_s > self.window_s
        if newer >= 0 and older >= 0 and newer != older:
            retransmitted = int(difference(newer, older)) > 0
        if retransmitted:
            self._lose(hole, low, high)
        else:
            self.reordered += 1

    def _acknowledged(self, seq: int, row: int) -> bool:
        """Return whether a byte was acknowledged well before the packet at `row`."""
        stream = self.stream
        # With a margin, since a capture may record an acknowledgement before its packet.
        known = int(np.searchsorted(stream.ack_s, stream.time_s[row] - self.window_s, side="left"))
        return known > 0 and int(stream.ack[known - 1]) > seq

    def _lose(self, hole: _Hole, low: int, high: int) -> None:
        """Place the lost packets between the arrivals around the hole, by their sequence numbers."""
        stream = self.stream
        counted = self.in_gap.get(hole.after, 0)
        count = min(stream.full(high - low), self._most_in_gap(hole) - counted)
        self.in_gap[hole.after] = counted + count
        before, after = float(stream.time_s[hole.before]), float(stream.time_s[hole.after])
        # A part of the hole may already be filled.
        span = max(int(stream.end[hole.after]) - hole.first, 1)
        for piece in range(count):
            share = (min(low + (piece + 1) * stream.mss, high) - hole.first) / span
            self.lost.append((before + share * (after - before), hole.after - 1 + share, hole.first))

    def _most_in_gap(self, hole: _Hole) -> int:
        """Return how many packets a gap had, were they as small as the smaller one of its neighbours.

        Retransmissions may be cut more finely than what they replace. Small packets lost between full ones
        look the same, and count as one.
        """
        stream = self.stream
        smaller = min(int(stream.end[row] - stream.seq[row]) for row in (hole.before, hole.after))
        return -(-int(stream.seq[hole.after] - hole.first) // min(smaller, stream.mss))

    def finish(self) -> None:
        """Classify the holes that are open at the end of the capture."""
        stream = self.stream
        end_s = float(stream.time_s[-1])
        ahead = np.maximum.accumulate(stream.end)
        newest_s = float(stream.time_s[int(np.argmax(ahead == ahead[-1]))])
        for hole in self.open:
            age_s = end_s - float(stream.time_s[hole.after])
            overdue = newest_s - end_s + age_s > max(_OVERDUE_S, 20 * self.window_s)
            if len(stream.ack) and int(stream.ack[-1]) > hole.seq:
                self.missed += stream.full(min(hole.end, int(stream.ack[-1])) - hole.seq)
            elif age_s > _ABANDONED_S or overdue or self.missed > len(self.lost):
                # TCP must have filled it, since the connection goes on, or the capture lacks other packets.
                self.missed += stream.full(hole.end - hole.seq)
            elif age_s > self.window_s:
                self._lose(hole, hole.seq, hole.end)
