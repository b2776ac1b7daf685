"""When packets that are missing at a receiver would have arrived: by the clock of ACKs, and by timers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lasthop.measurement.model import Flags, Floats
from lasthop.measurement.packets import Packets
from lasthop.measurement.tcp.stream import Stream, difference, unwrap

_RECENT = 32
"""Arrivals whose median round-trip time is that of the sender."""

_PAUSE = 2.0
"""A gap is a pause if it is longer than its packets take, by this factor."""

_FREED = 2
"""Packets that an acknowledged packet lets go, in slow start."""

_PROBE = 2.0
"""Delay of a tail loss probe in round-trip times (RFC 8985)."""

_DELAYED_S = 0.2
"""The longest delay of an acknowledgement for which a tail loss probe allows (RFC 8985)."""

LEAST_TIMEOUT_S = 0.2
"""Least retransmission timeout above the round-trip time: of Linux, and about that of BSD and macOS."""

_LEAST_S = 1.0
"""Least retransmission timeout of RFC 6298."""

_FEWEST_FREED = 4
"""With fewer packets acknowledged in a round-trip time, a sender may have waited for data."""

_MOST_TIMEOUTS = 12
"""Limit of the timeouts in a pause, which double: more than half an hour."""


class Gap(NamedTuple):
    """Packets missing in a row.

    Attributes
    ----------
    begin_s, end_s : float
        The arrivals before and after them.
    before, after : int
        The rows of the data packets before and after them; -1 if there is none.
    missing : int
        The packets missing.
    """

    begin_s: float
    end_s: float
    before: int
    after: int
    missing: int


@dataclass(slots=True)
class Clock:
    """The clock of a sender, as its receiver sees it.

    Each arrival is acknowledged, and each acknowledgement lets the sender send, so that packets arrive one
    round-trip time later. When acknowledgements cease, only timers send: a tail loss probe (RFC 8985), and
    retransmissions at timeouts that double (RFC 6298).

    Attributes
    ----------
    time_s : array of float64
        The arrival of each data packet.
    acknowledged_s : array of float64
        When each of them was acknowledged; infinite if never.
    heard_s : array of float64
        When the latest acknowledgement was sent that the sender had when it sent the packet.
    beyond : array of bool
        Whether a hole in sequence space precedes the packet, so that it is no retransmission by timeout.
    least_s : float
        The minimum round-trip time.
    spacing_s : float
        The usual time between arrivals.
    rfc : bool
        Whether timeouts begin at the second of RFC 6298, without probes.
    asked_s : array of float64
        When the receiver sent data, which may ask an idle sender for more.
    echoed : bool, default False
        Whether timestamps tell `heard_s`.
    """

    time_s: Floats
    acknowledged_s: Floats
    heard_s: Floats
    beyond: Flags
    least_s: float
    spacing_s: float
    rfc: bool
    asked_s: Floats
    echoed: bool = False

    @classmethod
    def of(cls, packets: Packets, stream: Stream, least_s: float) -> Clock:
        """Return the clock of the data."""
        time_s, ack_s = stream.time_s, stream.ack_s
        stamps = packets.timestamp[stream.ack_rows]
        echo = packets.echo[stream.rows]
        echoed = bool(len(stamps)) and bool((stamps > 0).all() and (echo > 0).all())
        if echoed:
            counted = np.maximum.accumulate(unwrap(stamps))
            heard = np.searchsorted(counted, counted[0] + difference(echo, stamps[0]), side="right")
        else:
            heard = np.searchsorted(ack_s, time_s - least_s, side="right")
        heard_s = np.concatenate(([-np.inf], ack_s))[heard]
        beyond = np.append(False, stream.seq[1:] > np.maximum.accumulate(stream.end)[:-1])
        steps_s = np.diff(time_s)
        # Timeouts after 1, 3, 7 s and so on. Other minima seldom come close.
        late_s = (time_s - heard_s)[1:] - least_s
        late_s = late_s[(steps_s > 2 * LEAST_TIMEOUT_S) & ~beyond[1:] & (late_s > 0) & np.isfinite(late_s)]
        doublings = np.log2(late_s / _LEAST_S + 1)
        exact = np.abs(doublings - np.maximum(np.rint(doublings), 1)) < 0.03
        return cls(
            time_s,
            np.append(ack_s, np.inf)[np.searchsorted(ack_s, time_s, side="left")],
            heard_s,
            beyond,
            least_s,
            float(np.median(steps_s[steps_s > 0])) if (steps_s > 0).any() else 0.0,
            bool(exact.sum() >= 3 and exact.sum() >= len(exact) / 2),
            ack_s[packets.payload[stream.ack_rows] > 0],
            echoed,
        )

    def windows(self, stream: Stream) -> list[tuple[Gap, int]]:
        """Return the windows lost before a retransmission by timeout, each with its packets by timers.

        After a timeout, a sender sends one packet and waits for its acknowledgement; after idle time, it
        sends a burst. The packets lost are as many as had been acknowledged, and those that timers sent. The
        number is zero if it is unknown, since data were missing before.
        """
        steps_s = np.append(np.diff(self.time_s), 0.0)
        alone = np.flatnonzero(
            (steps_s[:-1] > LEAST_TIMEOUT_S) & ~self.beyond[1:] & (steps_s[1:] > self.least_s / 2)
        )
        ahead = np.maximum.accumulate(stream.end)
        found = []
        for before in alone.tolist():
            after = before + 1
            freed_s, trip_s, usual_s = self._freed(before, after)
            is_retransmission = stream.seq[after] < ahead[before]
            full = stream.end[after] - stream.seq[after] >= stream.mss
            if len(freed_s) < (1 if is_retransmission else _FEWEST_FREED) or not (is_retransmission or full):
                continue
            begin_s, end_s = float(self.time_s[before]), float(self.time_s[after])
            pause_s = end_s - max(float(freed_s[-1]) + trip_s, begin_s)
            if pause_s < LEAST_TIMEOUT_S:
                continue
            timers_s = self._timers(pause_s, usual_s, after, _MOST_TIMEOUTS)
            if timers_s is not None:
                # With data missing before, the sender may have waited without sending.
                acknowledged = np.searchsorted(stream.ack_s, end_s, side="left")
                whole = acknowledged > 0 and stream.ack[acknowledged - 1] >= ahead[before]
                count = len(freed_s) + len(timers_s) if whole else 0
                found.append((Gap(begin_s, end_s, before, after, count), len(timers_s)))
        return found

    def paused(self, before: int, after: int) -> bool:
        """Return whether a timer ended a pause between two packets.

        A timer sends one packet. Several at once, and what follows data of the receiver, are what an idle
        sender had to send.
        """
        if not self.alone(after):
            return False
        freed_s, trip_s, usual_s = self._freed(before, after)
        begin_s, end_s = float(self.time_s[before]), float(self.time_s[after])
        last_s = max(float(freed_s[-1]) + trip_s, begin_s) if len(freed_s) else begin_s
        asked = slice(*np.searchsorted(self.asked_s, [begin_s, end_s]).tolist())
        if len(self.asked_s[asked]):
            last_s = max(last_s, float(self.asked_s[asked][0]) + trip_s)
        pause_s = end_s - last_s
        return (
            pause_s >= LEAST_TIMEOUT_S and self._timers(pause_s, usual_s, after, _MOST_TIMEOUTS) is not None
        )

    def alone(self, row: int) -> bool:
        """Return whether no packet follows within half a round trip, as behind one that a timer sent."""
        return row + 1 >= len(self.time_s) or bool(self.time_s[row + 1] - self.time_s[row] > self.least_s / 2)

    def retime(self, lost_s: Floats, gaps: Iterable[Gap]) -> None:
        """Set the times of packets lost before pauses, among all of `lost_s`, which are those of `gaps`."""
        place = 0
        for gap in gaps:
            paused = gap.end_s - gap.begin_s > _PAUSE * (gap.missing + 1) * self.spacing_s
            if paused and min(gap.before, gap.after) >= 0:
                lost_s[place : place + gap.missing] = self._times(gap)
            place += gap.missing

    def _times(self, gap: Gap) -> Floats:
        """Return when the packets of a gap would have arrived."""
        begin_s, end_s, before, after, count = gap
        freed_s, trip_s, usual_s = self._freed(before, after)
        freed_s = np.clip(freed_s + trip_s, begin_s, end_s)
        last_s = float(freed_s[-1]) if len(freed_s) else begin_s
        timers_s: Floats | None
        if end_s - last_s < trip_s / 2:
            # An acknowledgement ended the pause.
            freed_s, timers_s = freed_s[freed_s < end_s - trip_s / 2], np.zeros(0)
        else:
            timers_s = self._timers(end_s - last_s, usual_s, after, count)
        if timers_s is None:
            # The sender was idle until shortly before the next arrival.
            found_s = np.full(count, end_s)
        else:
            clocked = count - len(timers_s)
            # The rest of a burst follows its first packets.
            rest = max(clocked - _FREED * len(freed_s), 0)
            share = (np.arange(clocked - rest) + 0.5) / max(clocked - rest, 1)
            slots_s = freed_s[(share * len(freed_s)).astype(np.intp)]
            found_s = np.concatenate((np.full(rest, begin_s), slots_s, last_s + timers_s))
        # The link transmits one packet after the other.
        least_s = np.arange(1, count + 1) * min(self.spacing_s, (end_s - begin_s) / (count + 1))
        found_s = np.maximum.accumulate(np.maximum(found_s, begin_s + least_s[0]) - least_s) + least_s
        return np.asarray(np.minimum(found_s, end_s - least_s[::-1]), dtype=np.float64)

    def _freed(self, before: int, after: int) -> tuple[Floats, float, float]:
        """Return the acknowledgements that a sender had between two packets.

        Returns
        -------
        freed_s : array of float64
            The time of the acknowledgement of each packet.
        trip_s, usual_s : float
            The round-trip time after them, and the usual one.
        """
        rows = slice(max(before + 1 - _RECENT, 0), before + 1)
        usual_s = max(float(np.median(self.time_s[rows] - self.heard_s[rows])), self.least_s)
        usual_s = usual_s if math.isfinite(usual_s) else self.least_s
        # Less than usual if the queue is short. More if a timer sent the last packet.
        trip_s = min(max(float(self.time_s[before] - self.heard_s[before]), self.least_s), usual_s)
        heard = np.searchsorted(self.acknowledged_s, self.heard_s[[before, after]], side="right")
        return self.acknowledged_s[heard[0] : heard[1]], trip_s, usual_s

    def _timers(self, pause_s: float, trip_s: float, after: int, count: int) -> Floats | None:
        """Return the times after the last acknowledgement at which timers sent packets of a gap.

        None if neither acknowledgements nor timers explain the pause.
        """
        none: Floats = np.zeros(0)
        probe_s = _PROBE * trip_s
        timeout_s = _LEAST_S if self.rfc else trip_s + LEAST_TIMEOUT_S
        if self.beyond[after]:
            return none if pause_s < 2 * probe_s + _DELAYED_S else None
        if pause_s < probe_s / 2:
            return none
        # A packet of these ended the pause, and those before it are missing.
        timeouts_s = timeout_s * (2.0 ** np.arange(min(count + 2, _MOST_TIMEOUTS)) - 1)
        best, found = math.log(2), None
        for series_s in (timeouts_s[1:],) if self.rfc else (timeouts_s[1:], probe_s + timeouts_s[:-1]):
            # A capture without round-trip times has series of zeros.
            apart = np.abs(np.log(np.maximum(series_s, 1e-9) / max(pause_s, 1e-9)))
            place = int(apart.argmin())
            if apart[place] < best:
                best, found = apart[place], series_s[:place] * (pause_s / series_s[place])
        return found
