"""Measurements of a link, whatever tool made them. docs/guide/measurements.md describes the formats.

Times are in seconds on the measurement's own clock, whose zero is the first event of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop.core.formats import plural

Floats = npt.NDArray[np.float64]
Counters = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Direction(StrEnum):
    """The direction of packets.

    Down is towards the user's side, over the last hop to the mobile host.
    """

    ROUND_TRIP = "round trip"
    DOWN = "down"
    UP = "up"


class MeasurementError(ValueError):
    """A file that cannot be read as a measurement.

    Parameters
    ----------
    file : str
        The file.
    message : str
        What is wrong with it and what would be right.
    line : int, optional
        The line, from 1, in a format that has lines.

    Attributes
    ----------
    file : str
        The file.
    message : str
        What is wrong with it and what would be right.
    line : int or None
        The line, from 1; None in a format without lines.
    """

    def __init__(self, file: str, message: str, line: int | None = None) -> None:
        self.file = file
        self.message = message
        self.line = line
        where = file if line is None else f"{file}:{line}"
        super().__init__(f"{message}\n --> {where}")

    def __reduce__(self) -> tuple[type[MeasurementError], tuple[str, str, int | None]]:
        """Pickle with the constructor's arguments, which differ from those of ValueError."""
        return type(self), (self.file, self.message, self.line)


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """Packets known to be delivered or lost, in the order of sending.

    Attributes
    ----------
    direction : Direction
        The direction; packets of a round trip may have been lost in either direction.
    sent_s : array of float64
        Sending times, non-decreasing.
    lost : array of bool
        Whether each packet was lost.
    size_bytes : int or None
        Size of the IP packets, shared by at least 90 % of them; None if unknown or variable.
    """

    direction: Direction
    sent_s: Floats
    lost: Flags
    size_bytes: int | None

    def __post_init__(self) -> None:
        """Check the columns."""
        _check(self, ("sent_s", "lost"))

    @property
    def bursts(self) -> Counters:
        """The length of each run of lost packets, in order.

        Examples
        --------
        >>> import numpy as np
        >>> from lasthop.measurement import Direction, Probes
        >>> lost = np.array([True, False, True, True])
        >>> Probes(Direction.DOWN, np.arange(4.0), lost, None).bursts.tolist()
        [1, 2]
        """
        padded = np.concatenate(([0], self.lost.astype(np.int8), [0]))
        edges = np.flatnonzero(np.diff(padded))
        return edges[1::2] - edges[::2]

    def summary(self) -> str:
        """Return a line: the share of lost packets, and their bursts."""
        count, lost = len(self.lost), int(self.lost.sum())
        size = "" if self.size_bytes is None else f" of {self.size_bytes} B"
        if not count:
            return f"{self.direction}: no packets"
        line = f"{self.direction}: {lost:,} of {plural(count, 'packet')}{size} lost ({lost / count:.3%})"
        if lost:
            runs = self.bursts
            if len(runs) == 1:
                line += f", in one burst of {plural(lost, 'packet')}"
            else:
                line += (
                    f", {len(runs):,} bursts of {runs.mean():.2f} packets on average, {runs.max():,} at most"
                )
        return line


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """Samples of the delay.

    Attributes
    ----------
    direction : Direction
        Round trip, or one way if the clocks of both ends are synchronised.
    time_s : array of float64
        Sending time of each sample's packet, non-decreasing.
    delay_s : array of float64
        The delay.
    """

    direction: Direction
    time_s: Floats
    delay_s: Floats

    def __post_init__(self) -> None:
        """Check the columns."""
        _check(self, ("time_s", "delay_s"))

    def summary(self) -> str:
        """Return a line: the least delay, the median and the 99th percentile."""
        ms = self.delay_s * 1e3
        name = "RTT" if self.direction is Direction.ROUND_TRIP else f"delay {self.direction}"
        middle, high = np.percentile(ms, [50, 99])
        samples = plural(len(ms), "sample")
        return f"{name}: min {ms.min():.1f} ms, median {middle:.1f} ms, p99 {high:.1f} ms of {samples}"


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Throughput over time, which is the capacity of the link only if `capacity` is true.

    Attributes
    ----------
    direction : Direction
        The direction.
    time_s : array of float64
        The start of each interval, non-decreasing.
    interval_s : array of float64
        Its duration.
    rate_bps : array of float64
        Throughput in the interval.
    saturated : bool
        Whether the sender always had data to send: bulk TCP, or UDP above the throughput.
    capacity : bool, default False
        Whether the rate is the capacity of the link, as of saturating UDP; implies `saturated`. Saturated TCP
        may be slower, since it reduces its window after losses.
    of_transfers : bool, default True
        Whether the rates are known to be of transfers, whose best intervals are near the capacity; a table
        does not say what its rates are.
    """

    direction: Direction
    time_s: Floats
    interval_s: Floats
    rate_bps: Floats
    saturated: bool
    capacity: bool = False
    of_transfers: bool = True

    def __post_init__(self) -> None:
        """Check the columns."""
        _check(self, ("time_s", "interval_s", "rate_bps"))

    def summary(self) -> str:
        """Return a line: the mean rate, and its range."""
        kind = "saturated" if self.saturated else "carried"
        mean = _mean(self.rate_bps, self.interval_s) / 1e6
        low, high = np.percentile(self.rate_bps, [10, 90]) / 1e6
        return f"rate {self.direction}: {mean:.3g} Mb/s {kind}, 80 % of the time {low:.3g} to {high:.3g} Mb/s"


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Packets sent and lost in each interval, in unknown order.

    Attributes
    ----------
    direction : Direction
        The direction.
    time_s : array of float64
        The start of each interval, non-decreasing.
    interval_s : array of float64
        Duration of the interval.
    sent : array of int64
        Packets sent in the interval.
    lost : array of int64
        Packets lost of these, at most `sent`.
    until_arrival : bool, default False
        Whether each interval counts the packets up to the last arrival in it, of a constant rate, since the
        receiver notices losses only by the next arrival.
    """

    direction: Direction
    time_s: Floats
    interval_s: Floats
    sent: Counters
    lost: Counters
    until_arrival: bool = False

    def __post_init__(self) -> None:
        """Check the columns."""
        _check(self, ("time_s", "interval_s", "sent", "lost"))

    def summary(self) -> str:
        """Return a line: the share of lost packets."""
        sent, lost = int(self.sent.sum()), int(self.lost.sum())
        share = f" ({lost / sent:.3%})" if sent else ""
        return (
            f"{self.direction}: {lost:,} of {plural(sent, 'packet')} lost{share}, "
            f"counted in {plural(len(self.sent), 'interval')}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class LossSeries:
    """The fraction of packets lost in each interval, of an unknown number.

    Without the number of packets there is no likelihood; the series can only be plotted or replayed.

    Attributes
    ----------
    direction : Direction
        The direction.
    time_s : array of float64
        The start of each interval, non-decreasing.
    interval_s : array of float64
        Duration of the interval.
    loss : array of float64
        The fraction lost, 0 to 1.
    """

    direction: Direction
    time_s: Floats
    interval_s: Floats
    loss: Floats

    def __post_init__(self) -> None:
        """Check the columns."""
        _check(self, ("time_s", "interval_s", "loss"))

    def summary(self) -> str:
        """Return a line: the mean share of lost packets."""
        mean = _mean(self.loss, self.interval_s)
        return f"{self.direction}: mean loss {mean:.3%} over {plural(len(self.loss), 'interval')}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Measurement:
    """A measurement of a link, read from one file.

    Attributes
    ----------
    file : str
        The file.
    format : str
        The detected format, such as `"irtt"`, `"ping"`, `"iperf3 tcp"` or `"pcap"`.
    duration_s : float
        Time from the first event to the last one.
    probes : tuple of Probes
        Packets known to be delivered or lost.
    delays : tuple of Delays
        Samples of the delay.
    rates : tuple of Rates
        Throughput over time; the capacity for a Mahimahi trace.
    counts : tuple of Counts
        Lost packets by interval.
    losses : tuple of LossSeries
        Loss fractions by interval.
    notes : tuple of str
        Sentences: pitfalls detected, assumptions made, and the limits of the file.
    doubts : tuple of str
        Sentences: contradictions within the file.
    last_hop : Measurement or None
        Probes that went to the far end of the last hop alone, at the same time.
    under_load : tuple of Measurement
        Parts of the file during which a test filled the link; nothing else here is of them.
    host : str or None
        The address of the host that answered the probes; None if unknown.
    """

    file: str
    format: str
    duration_s: float
    probes: tuple[Probes, ...] = ()
    delays: tuple[Delays, ...] = ()
    rates: tuple[Rates, ...] = ()
    counts: tuple[Counts, ...] = ()
    losses: tuple[LossSeries, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    last_hop: Measurement | None = None
    under_load: tuple[Measurement, ...] = ()
    host: str | None = None

    def summary(self) -> str:
        """Return a few lines: losses with their bursts, delays, rates and notes."""
        lines = [f"{self.file}: {self.format}, {self.duration_s:.1f} s"]
        lines += [f"  in doubt: {doubt}" for doubt in self.doubts]
        lines += [f"  {line}" for line in self._series()]
        if self.last_hop is not None:
            lines += [f"  last hop, {line}" for line in self.last_hop._series()]
        for part in self.under_load:
            load = " and ".join(str(rates.direction) for rates in part.rates)
            lines += [f"  under load {load}, {line}" for line in part._series()]
        lines += [f"  - {note}" for note in self.notes]
        return "\n".join(lines)

    def _series(self) -> list[str]:
        """Return the summary of each series that has any data."""
        delays = [each for each in self.delays if len(each.delay_s)]
        rates = [each for each in self.rates if len(each.rate_bps)]
        known: tuple[Probes | Counts | LossSeries | Delays | Rates, ...]
        known = (*self.probes, *self.counts, *self.losses, *delays, *rates)
        return [each.summary() for each in known]

    def noting(self, note: str) -> Measurement:
        """Return a copy with another note."""
        return replace(self, notes=(*self.notes, note))

    def __repr__(self) -> str:
        """Return the summary."""
        return self.summary()


def _mean(values: Floats, interval_s: Floats) -> float:
    """Return the mean over time; zero over none."""
    total = float(interval_s.sum())
    return float((values * interval_s).sum()) / total if total > 0 else 0.0


def _check(data: Any, columns: tuple[str, ...]) -> None:
    """Check that the columns are one-dimensional, of equal length, and non-decreasing in time."""
    shapes = {getattr(data, column).shape for column in columns}
    if len(shapes) != 1 or len(shapes.pop()) != 1:
        raise ValueError(f"{type(data).__name__} needs columns of equal length: {', '.join(columns)}")
    times = getattr(data, columns[0])
    # NaN fails this comparison.
    if not bool(np.all(times[1:] >= times[:-1])) or not bool(np.all(np.isfinite(times))):
        raise ValueError(f"{columns[0]} of {type(data).__name__} must be finite and non-decreasing")
