"""Data files of Flent: `.flent.gz` or `.flent`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Delays, Direction, Measurement, Probes, Rates
from lasthop.measurement.source import (
    LONGEST_S,
    Source,
    at,
    control_free,
    floats,
    mapping,
    number,
    ordered,
    probes,
    sequence,
    whole,
)

_PING = re.compile(r"\bping\b|\brtt\b", re.IGNORECASE)
_RATE = re.compile(r"\b(?P<way>download|upload)\b", re.IGNORECASE)
_UDP = re.compile(r"\bUDP\b", re.IGNORECASE)
_DERIVED = re.compile(r"\b(?:avg|sum|totals?|average)\b|::(?!\d+$)", re.IGNORECASE)
_WAYS = {"download": Direction.DOWN, "upload": Direction.UP}
_MOST_LOST = 1_000_000


def _fits(document: Any) -> bool:
    """Return whether a JSON document is Flent's."""
    return isinstance(at(document, "results"), dict) and "x_values" in document


def _parse(source: Source, document: Any, options: Options) -> Measurement:
    """Read the JSON document of Flent.

    Raises
    ------
    MeasurementError
        If it has neither a ping nor a throughput series.
    """
    notes: list[str] = []
    results, raw = mapping(document["results"]), mapping(document.get("raw_values"))
    steps = [number(value) for value in sequence(document.get("x_values"))]
    names = [name for name in results if not _DERIVED.search(name)]
    series = {name: _raw(source, raw.get(name)) for name in names}
    # The packet of the first reply was sent before the reply's timestamp.
    starts = [points[0][0] - _before_s(name, points[0][1]) for name, points in series.items() if points]
    start = min(starts, default=0.0)
    fates: list[Probes] = []
    delays: list[Delays] = []
    rates: list[Rates] = []
    streams: dict[Direction, list[Sequence[Any]]] = {Direction.DOWN: [], Direction.UP: []}
    for name in names:
        shown = f'"{control_free(name)}"'
        if _UDP.search(name) and _RATE.search(name):
            notes.append(f"{shown} is what its sender sent, whatever arrived: no rate is read.")
        elif way := _RATE.search(name):
            streams[_WAYS[way["way"].lower()]].append(sequence(results[name]))
        elif _PING.search(name):
            points = series[name]
            found = _pings(points, start, shown, notes)
            if found is not None:
                fates.extend(found[0])
                delays.extend(found[1])
                continue
            time_s, value = _points(source, steps, sequence(results[name]))
            keep = value > 0
            if keep.any():
                delays.append(Delays(Direction.ROUND_TRIP, time_s[keep], value[keep] / 1e3))
                notes.append(f"{shown} has no raw values with sequence numbers: its losses are unknown.")
    for direction, columns in streams.items():
        time_s, value = _points(source, steps, _sum(columns))
        if len(time_s):
            rates.append(_rates(direction, time_s, value * 1e6))
    if not rates and not delays and not fates:
        raise source.error("no ping or throughput series; run `flent rrul -H SERVER`")
    if rates and (fates or delays):
        notes.append(
            "The pings shared the link with the test's own transfers: queues delayed them and dropped some."
        )
    if rates:
        notes.append("Throughput is the sum of all streams, as interpolated by Flent.")
    ends = [float(part.sent_s[-1]) for part in fates]
    ends += [float(part.time_s[-1]) for part in delays] + [float(part.time_s[-1]) for part in rates]
    return Measurement(
        source.name,
        "flent",
        max(ends),
        probes=tuple(fates),
        delays=tuple(delays),
        rates=tuple(rates),
        notes=tuple(notes),
    )


def _raw(source: Source, value: Any) -> list[tuple[float, Mapping[str, Any]]]:
    """Return the raw values of a series, sorted by time."""
    points = []
    for entry in sequence(value):
        point = mapping(entry)
        time_s = number(point.get("t"))
        if time_s is not None:
            points.append((time_s, point))
    points.sort(key=lambda pair: pair[0])
    if points and not points[-1][0] - points[0][0] <= LONGEST_S:
        raise source.error("raw values whose times are years apart")
    return points


def _before_s(name: str, point: Mapping[str, Any]) -> float:
    """Return the time from sending a packet to its raw value, in seconds."""
    ms = number(point.get("val"))
    return ms / 1e3 if ms is not None and 0 < ms < 1e7 and not _RATE.search(name) else 0.0


def _points(source: Source, steps: list[float | None], values: Any) -> tuple[Any, Any]:
    """Return the times and values of a series, without empty steps."""
    pairs = [
        (step, value)
        for step, entry in zip(steps, values, strict=False)
        if step is not None and (value := number(entry)) is not None and 0 <= value < 1e9
    ]
    if any(abs(step) > LONGEST_S for step, _ in pairs):
        raise source.error("`x_values` that are years apart")
    return ordered(floats(step for step, _ in pairs), floats(value for _, value in pairs))


def _sum(columns: list[Sequence[Any]]) -> list[float | None]:
    """Return the sum of the streams at each step; None if no stream has a value."""
    sums: list[float | None] = []
    for values in zip_longest(*columns):
        known = [value for value in map(number, values) if value is not None]
        sums.append(sum(known) if known else None)
    return sums


def _rates(direction: Direction, time_s: Any, rate_bps: Any) -> Rates:
    """Return the throughput of a direction. Flent's tests over TCP are bulk transfers."""
    interval_s = np.diff(time_s)
    step = float(np.median(interval_s)) if len(interval_s) else 1.0
    return Rates(direction, time_s, np.append(interval_s, step), rate_bps, True)


def _pings(
    points: list[tuple[float, Mapping[str, Any]]], start: float, shown: str, notes: list[str]
) -> tuple[list[Probes], list[Delays]] | None:
    """Return the probes and delays of a ping series; None if it has no sequence numbers."""
    fates_of: dict[int, tuple[float, float | None, str]] = {}
    for time_s, point in points:
        seq, ms = whole(point.get("seq")), number(point.get("val"))
        gone = point.get("lost") is True
        if (
            seq is None
            or not 0 <= seq < 2**31
            or (ms is None) != gone
            or (ms is not None and not 0 < ms < 1e7)
        ):
            continue
        # The time is the arrival of a reply, or the departure of a lost packet.
        sent_s = time_s - (ms or 0.0) / 1e3 - start
        fates_of.setdefault(seq, (sent_s, None if ms is None else ms / 1e3, str(point.get("lost_dir"))))
    if len(fates_of) < 2:
        return None
    seqs = np.array(sorted(fates_of), dtype=np.int64)
    missing = int(seqs[-1] - seqs[0]) + 1 - len(seqs)
    if missing > _MOST_LOST:
        notes.append(f"{shown} has a gap in its sequence numbers that is too large; its losses are not read.")
        return None
    departure_s = floats(fates_of[int(seq)][0] for seq in seqs)
    rtt = [fates_of[int(seq)][1] for seq in seqs]
    lost = np.array([value is None for value in rtt])
    delays = []
    if not lost.all():
        times, values = ordered(departure_s[~lost], floats(value for value in rtt if value is not None))
        delays.append(Delays(Direction.ROUND_TRIP, times, values))
    ways = {fates_of[int(seq)][2] for seq in seqs[lost]}
    fates = []
    if missing:
        every = np.arange(seqs[0], seqs[-1] + 1)
        flags = np.ones(len(every), dtype=np.bool_)
        flags[seqs - seqs[0]] = lost
        all_s = np.interp(every, seqs, np.maximum.accumulate(departure_s))
        fates.append(probes(Direction.ROUND_TRIP, all_s, flags, None))
        notes.append(f"{shown}: {plural(missing, 'missing sequence number')} counted as lost.")
    else:
        fates.append(probes(Direction.ROUND_TRIP, departure_s, lost, None))
        if lost.any() and ways <= {"up", "down"}:
            up = np.array([fates_of[int(seq)][2] == "up" for seq in seqs]) & lost
            fates.append(probes(Direction.UP, departure_s, up, None))
            fates.append(probes(Direction.DOWN, departure_s[~up], lost[~up], None))
    return fates, delays


READER = JsonReader(
    name="flent", title="Flent", command="flent tcp_download -H SERVER", fits=_fits, parse=_parse
)
