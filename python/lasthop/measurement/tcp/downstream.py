"""Losses downstream of the capture, by retransmissions that were not spurious."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from lasthop.measurement.model import Counters, Floats
from lasthop.measurement.packets import Packets
from lasthop.measurement.tcp.outcomes import Outcomes, by_place
from lasthop.measurement.tcp.stream import Stream, covered, difference, split

_MOST_UNITS = 2000
"""Limit of the packets that one retransmission or SACK block covers."""

_SOONER = 0.8
"""Minimum delay of an acknowledgement that is not delayed, as a share of the minimum round-trip time."""

_DELAYED = 2
"""Units that a delayed acknowledgement may cover."""


@dataclass(slots=True)
class _Retransmissions:
    """The retransmissions of one unit, and the DSACK reports of its duplicates."""

    sent_s: list[float] = field(default_factory=list)
    # The rows of the retransmissions.
    places: list[float] = field(default_factory=list)
    duplicate_s: list[float] = field(default_factory=list)


def by_retransmissions(packets: Packets, stream: Stream) -> tuple[Outcomes, Floats, Floats]:
    """Infer losses downstream of the capture: retransmissions that were not spurious.

    Data are counted in units, the packets of their first transmission. Of several transmissions of a unit,
    the one whose timestamp the first acknowledgement echoes arrived, or else the last one that was early
    enough for it, and one more for each duplicate that the receiver reports (RFC 2883).

    Returns
    -------
    outcomes : Outcomes
        Losses; `unknown` counts the transmissions whose fate cannot be told, such as those not acknowledged
        at the end.
    time_s, rtt_s : arrays of float64
        Round-trip times of units that were sent once.
    """
    ahead = np.maximum.accumulate(stream.end)
    expected = np.concatenate((stream.seq[:1], ahead[:-1]))
    fresh = np.flatnonzero(stream.end > expected)
    begin = np.maximum(stream.seq[fresh], expected[fresh])
    length = stream.end[fresh] - begin
    pieces = stream.pieces(length)
    owner, place = split(pieces)
    starts = begin[owner] + place * np.where(pieces[owner] > 1, stream.mss, 0)
    ends = np.minimum(
        np.where(pieces[owner] > 1, starts + stream.mss, stream.end[fresh][owner]), stream.end[fresh][owner]
    )
    sent_s = stream.time_s[fresh][owner]

    acknowledged_s = covered(stream, ends)
    echoes = np.append(packets.echo[stream.ack_rows], -1)[np.searchsorted(stream.ack, ends, side="left")]
    repeated, sack_s = _selective(packets, stream, starts, ends)
    covered_s: Floats = np.minimum(acknowledged_s, sack_s, dtype=np.float64)
    first, last = starts.tolist(), ends.tolist()
    older = np.flatnonzero(stream.seq < expected)
    for row in older.tolist():
        low = bisect_right(last, int(stream.seq[row]))
        high = bisect_left(first, min(int(stream.end[row]), int(expected[row])))
        high = min(high, low + _MOST_UNITS)
        for unit in range(low, high):
            repeated[unit].sent_s.append(float(stream.time_s[row]))
            repeated[unit].places.append(row + (unit - low) / (high - low))

    once = np.ones(len(starts), dtype=np.bool_)
    once[[unit for unit, known in repeated.items() if known.sent_s]] = False
    answered = np.isfinite(covered_s)
    clean = np.flatnonzero(once & answered)
    rtt_s = covered_s[clean] - sent_s[clean]
    least_s = float(rtt_s.min()) if len(rtt_s) else 0.0
    # The newest unit of each acknowledgement; the acknowledgement of the others waited for it.
    newest = np.ones(len(clean), dtype=np.bool_)
    newest[:-1] = covered_s[clean][1:] != covered_s[clean][:-1]

    unit_place = fresh[owner] + place / pieces[owner]
    unknown = int((once & ~answered).sum())
    spurious = 0
    reports = any(known.duplicate_s for known in repeated.values())
    arrived: list[tuple[float, float]] = []
    lost: list[tuple[float, float]] = []
    for unit, known in repeated.items():
        if not known.sent_s:
            # The network duplicated a unit that was sent once.
            continue
        every = [float(sent_s[unit]), *known.sent_s]
        places = [float(unit_place[unit]), *known.places]
        done_s = float(covered_s[unit])
        latest_s = done_s - least_s
        echoed = None
        if stream.sack and done_s == acknowledged_s[unit] and echoes[unit] > 0:
            # No SACK block has reported the unit before, so it arrived in order.
            stamps = stream.timestamp[np.array(places, dtype=np.intp)]
            same = [index for index in np.flatnonzero(stamps == echoes[unit]) if every[index] <= done_s]
            echoed = int(same[0]) if len(same) == 1 else None
        if not stream.sack and done_s == acknowledged_s[unit]:
            # Without SACK, an acknowledgement of many units follows the retransmission that filled the first
            # hole. The other units had arrived before, so their retransmissions were spurious.
            head = int(np.searchsorted(acknowledged_s, done_s, side="left"))
            if head < unit and np.searchsorted(acknowledged_s, done_s, side="right") - head > _DELAYED:
                trigger = [float(sent_s[head]), *(repeated[head].sent_s if head in repeated else ())]
                latest_s = min(latest_s, max((t for t in trigger if t <= latest_s), default=latest_s))
        verdicts = _judge(every, done_s, echoed, known.duplicate_s, latest_s, least_s, reports)
        for time_s, where, is_lost in zip(every, places, verdicts, strict=True):
            if is_lost is None:
                unknown += 1
            else:
                (lost if is_lost else arrived).append((where, time_s))
        spurious += verdicts.count(False) - bool(np.isfinite(covered_s[unit]))
    arrived_place, arrived_s = np.array(arrived, dtype=np.float64).reshape(-1, 2).T
    lost_place, lost_s = np.array(lost, dtype=np.float64).reshape(-1, 2).T
    every_s, every_lost = by_place(
        np.concatenate((unit_place[once & answered], arrived_place, lost_place)),
        np.concatenate((sent_s[once & answered], arrived_s)),
        lost_s,
    )

    # Time with no data outstanding.
    idle = stream.time_s[fresh][1:] - covered(stream, ahead[fresh][:-1])
    outcomes = Outcomes(
        every_s,
        every_lost,
        covered_s[answered],
        (ends[answered] - starts[answered] + stream.headers) * 8.0,
        idle_s=float(idle[idle > 0].sum()),
        unknown=unknown,
        spurious=max(spurious, 0),
        resent=max(sum(len(known.sent_s) for known in repeated.values()) - max(spurious, 0) - unknown, 0),
        missed=_unseen(stream, ahead),
    )
    return outcomes, sent_s[clean][newest], rtt_s[newest]


def _unseen(stream: Stream, ahead: Counters) -> int:
    """Return the number of acknowledged packets missing from the capture: holes in the sent data."""
    gaps = stream.seq[1:] - ahead[:-1]
    return int(stream.full(gaps[(gaps > 0) & (gaps < 1 << 30)]).sum())


def _selective(
    packets: Packets, stream: Stream, starts: Counters, ends: Counters
) -> tuple[defaultdict[int, _Retransmissions], Floats]:
    """Return the duplicates reported by the receiver, and when each unit was first SACKed."""
    repeated: defaultdict[int, _Retransmissions] = defaultdict(_Retransmissions)
    sack_s = np.full(len(starts), np.inf)
    rows = np.flatnonzero(packets.sacks[stream.ack_rows] > 0)
    if not len(rows):
        return repeated, sack_s
    where = stream.ack_rows[rows]
    number = packets.ack[where]
    base = stream.own_ack[rows]
    blocks = packets.sacks[where]
    edges = []
    for block in range(int(blocks.max())):
        # Packets with fewer blocks are not asked for this one.
        at = packets.sack_at[where] + np.minimum(block, blocks - 1)
        edges.append(
            (
                base + difference(packets.sack_start[at], number),
                base + difference(packets.sack_end[at], number),
            )
        )
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
                # RFC 2883: the first block reports a duplicate, which may be a part of a unit.
                low, high = bisect_right(last, left), bisect_left(first, right)
                for unit in range(low, min(high, low + _MOST_UNITS)):
                    repeated[unit].duplicate_s.append(time_s)
            elif low < high:
                part = sack_s[low:high]
                part[part > time_s] = time_s
    return repeated, sack_s


def _judge(
    sent_s: list[float],
    covered_s: float,
    echoed: int | None,
    duplicate_s: list[float],
    latest_s: float,
    least_s: float,
    reports: bool,
) -> list[bool | None]:
    """Return whether each transmission of a unit was lost; None if ambiguous.

    Parameters
    ----------
    sent_s : list of float
        The time of each transmission.
    covered_s, latest_s : float
        The first acknowledgement of the unit, and the latest transmission that can have caused it.
    echoed : int or None
        The only transmission whose timestamp that acknowledgement echoes.
    duplicate_s : list of float
        The times of DSACK reports.
    least_s : float
        The minimum round-trip time.
    reports : bool
        Whether the receiver reports duplicates.
    """
    count = len(sent_s)
    if not np.isfinite(covered_s):
        # Each retransmission means that the sender considered the previous one lost.
        return [True] * (count - 1) + [None]
    # Capture times are exact to a microsecond.
    least_s = max(least_s - 1e-6, 0.0)
    early = [index for index in range(count) if sent_s[index] <= latest_s + 1e-6]
    first = early[-1] if early else 0
    # Retransmissions are acknowledged at once, other data possibly after a delay, so a retransmission may
    # take less than the minimum round-trip time. It counts as the cause if the previous one took much longer.
    if latest_s >= covered_s - least_s - 1e-6 and covered_s - sent_s[first] > 2 * least_s:
        first = max(first, *(i for i in range(count) if sent_s[i] <= covered_s - _SOONER * least_s), 0)
    if echoed is not None:
        first = echoed
    arrived = {first}
    for report_s in sorted(duplicate_s):
        for index in range(count - 1, -1, -1):
            if index not in arrived and sent_s[index] <= report_s - _SOONER * least_s:
                arrived.add(index)
                break
    latest = max(arrived)
    # The first acknowledgement reports a duplicate: an earlier copy had arrived, and its acknowledgement was
    # lost. If there are several earlier copies, any of them may have arrived.
    hidden = latest > 1 and echoed in (None, latest) and covered_s in duplicate_s
    verdicts: list[bool | None] = []
    for index in range(count):
        if hidden and index < latest:
            verdicts.append(None)
        elif index in arrived:
            verdicts.append(False)
        elif index < latest or reports:
            verdicts.append(True)
        else:
            # It may have arrived as a duplicate at a receiver without DSACK.
            verdicts.append(None)
    return verdicts
