"""Reader and writer of the file of `lasthop measure`: probes by phase and hop, and throughputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Delays, Direction, Floats, Measurement, Probes, Rates
from lasthop.measurement.source import LONGEST_S, Source, floats, mapping, number, probes, sequence, whole

FORMAT = "lasthop measure"
"""The key `format` of such a file."""

VERSION = 1
"""The key `version`; it counts incompatible changes."""

MOST_PHASES = 100_000
"""Limit of the phases of a file: a quiet round a minute for two months."""


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A part of a measurement with one load.

    Attributes
    ----------
    begins_s : float
        When it began, from the start of the measurement.
    load : Direction or None
        The direction that a test filled meanwhile.
    far : Measurement
        Probes to the far end.
    last_hop : Measurement or None
        Probes to the far end of the last hop alone.
    rates : Rates or None
        What the test carried, in bytes of IP.
    commands : tuple of str
        The commands that ran.
    """

    begins_s: float
    load: Direction | None
    far: Measurement
    last_hop: Measurement | None = None
    rates: Rates | None = None
    commands: tuple[str, ...] = ()


def document(
    host: str,
    started: str,
    phases: Sequence[Phase],
    *,
    last_hop: str | None,
    interrupted: bool,
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return what the file of a measurement has; docs/reference/json.md describes the keys."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "host": host,
        "last_hop": last_hop,
        "started": started,
        "interrupted": interrupted,
        "notes": list(notes),
        "phases": [
            {
                "begins_s": round(phase.begins_s, 3),
                "load": None if phase.load is None else str(phase.load),
                "commands": list(phase.commands),
                "far": _written(phase.far),
                "last_hop": None if phase.last_hop is None else _written(phase.last_hop),
                "throughput": None if phase.rates is None else _throughput(phase.rates),
            }
            for phase in phases
        ],
    }


def _written(measurement: Measurement) -> dict[str, Any]:
    """Return probes as columns: a lost one has no round-trip time."""
    by = {each.direction: each for each in measurement.probes}
    trips, up = by[Direction.ROUND_TRIP], by.get(Direction.UP)
    answered = np.flatnonzero(~trips.lost)
    rtt_s: list[float | None] = [None] * len(trips.lost)
    for place, delay in zip(answered, measurement.delays[0].delay_s, strict=True):
        rtt_s[place] = round(float(delay), 6)
    return {
        "size_bytes": trips.size_bytes,
        "sent_s": [round(float(each), 6) for each in trips.sent_s],
        "rtt_s": rtt_s,
        "directions_of": 0 if up is None else len(up.lost),
        "lost_up": [] if up is None else np.flatnonzero(up.lost).tolist(),
    }


def _throughput(rates: Rates) -> dict[str, Any]:
    return {
        "time_s": [round(float(each), 6) for each in rates.time_s],
        "interval_s": [round(float(each), 6) for each in rates.interval_s],
        "rate_bps": [round(float(each)) for each in rates.rate_bps],
        "saturated": rates.saturated,
    }


def _fits(document: Any) -> bool:
    return mapping(document).get("format") == FORMAT


def _parse(source: Source, document: Any, options: Options) -> Measurement:
    """Read the document.

    Raises
    ------
    MeasurementError
        If a later version wrote it, it has no probes without load, or a column is damaged.
    """
    if document.get("version") != VERSION:
        raise source.error(f"version {document.get('version')!r} of the format; expected {VERSION}")
    entries = sequence(document.get("phases"))
    if len(entries) > MOST_PHASES:
        raise source.error(f"{len(entries):,} phases; expected at most {MOST_PHASES:,}")
    phases = [_phase(source, mapping(entry), place) for place, entry in enumerate(entries)]
    quiet = [phase for phase in phases if phase.load is None]
    if not any(len(phase.far.probes[0].lost) for phase in quiet):
        raise source.error("no probes of the link without load: the measurement ended before any")
    notes = [note[:1000] for note in sequence(document.get("notes")) if isinstance(note, str)][:100]
    if document.get("interrupted"):
        notes.append("The measurement was interrupted.")
    hops = [(phase.begins_s, phase.last_hop) for phase in quiet if phase.last_hop is not None]
    far = _joined(source, [(phase.begins_s, phase.far) for phase in quiet])
    return Measurement(
        source.name,
        FORMAT,
        max(phase.begins_s + phase.far.duration_s for phase in phases),
        probes=far.probes,
        delays=far.delays,
        notes=tuple(notes),
        last_hop=_joined(source, hops) if hops else None,
        under_load=tuple(
            Measurement(
                source.name,
                FORMAT,
                phase.far.duration_s,
                probes=phase.far.probes,
                delays=phase.far.delays,
                rates=(phase.rates,),
            )
            for phase in phases
            if phase.rates is not None
        ),
    )


def _phase(source: Source, entry: Any, place: int) -> Phase:
    """Read a phase.

    Raises
    ------
    MeasurementError
        If a column is damaged.
    """
    where = f"phase {place}"
    begins_s = number(entry.get("begins_s"))
    if begins_s is None or not 0 <= begins_s <= LONGEST_S:
        raise source.error(f"`begins_s` of {where} should be seconds from the start")
    loads = {None: None, "down": Direction.DOWN, "up": Direction.UP}
    stated = entry.get("load")
    if not isinstance(stated, str | None) or stated not in loads:
        raise source.error(f"`load` of {where} should be down, up or null")
    load, hop, carried = loads[stated], entry.get("last_hop"), entry.get("throughput")
    if carried is not None and load is None:
        raise source.error(f"{where} has a throughput without a load")
    return Phase(
        begins_s,
        load,
        _probed(source, mapping(entry.get("far")), f"`far` of {where}"),
        None if hop is None else _probed(source, mapping(hop), f"`last_hop` of {where}"),
        None if carried is None or load is None else _carried(source, mapping(carried), load, where),
    )


def _times(source: Source, values: Any, what: str) -> Floats:
    """Return a column of times that do not decrease.

    Raises
    ------
    MeasurementError
        If it is not one.
    """
    found = [number(each) for each in sequence(values)]
    times = floats(each for each in found if each is not None)
    fits = len(times) == len(found) and bool(np.all((times >= 0) & (times <= LONGEST_S)))
    if not fits or bool(np.any(np.diff(times) < 0)):
        raise source.error(f"{what} should be seconds in increasing order")
    return times


def _probed(source: Source, entry: Any, what: str) -> Measurement:
    """Read the probes to one host.

    Raises
    ------
    MeasurementError
        If a column is damaged.
    """
    sent_s = _times(source, entry.get("sent_s"), f"`sent_s` in {what}")
    trips = [(each, number(each)) for each in sequence(entry.get("rtt_s"))]
    if len(trips) != len(sent_s) or any(
        each is not None and (rtt is None or not 0 < rtt <= 3600) for each, rtt in trips
    ):
        raise source.error(f"`rtt_s` in {what} should be positive seconds or null, one for each of `sent_s`")
    rtt_s = floats(np.nan if rtt is None else rtt for _, rtt in trips)
    lost = np.isnan(rtt_s)
    size = whole(entry.get("size_bytes"))
    size = size if size is not None and 0 < size < 65536 else None
    fates = [probes(Direction.ROUND_TRIP, sent_s, lost, size)]
    known = whole(entry.get("directions_of")) or 0
    if known:
        places = [whole(each) for each in sequence(entry.get("lost_up"))]
        if not 0 < known <= len(lost) or any(each is None or not 0 <= each < known for each in places):
            raise source.error(f"`directions_of` and `lost_up` in {what} should count its probes")
        up = np.zeros(known, dtype=np.bool_)
        up[[each for each in places if each is not None]] = True
        if bool(np.any(up & ~lost[:known])):
            raise source.error(f"`lost_up` in {what} has a probe that was answered")
        # What was lost on the uplink never met the downlink.
        met = ~up
        fates.append(probes(Direction.UP, sent_s[:known], up, size))
        fates.append(probes(Direction.DOWN, sent_s[:known][met], lost[:known][met], size))
    return Measurement(
        source.name,
        FORMAT,
        float(sent_s.max(initial=0.0)),
        probes=tuple(fates),
        delays=(Delays(Direction.ROUND_TRIP, sent_s[~lost], rtt_s[~lost]),),
    )


def _carried(source: Source, entry: Any, direction: Direction, where: str) -> Rates:
    """Read a throughput.

    Raises
    ------
    MeasurementError
        If a column is damaged.
    """
    time_s = _times(source, entry.get("time_s"), f"`throughput.time_s` of {where}")
    columns = []
    for key in ("interval_s", "rate_bps"):
        values = [number(each) for each in sequence(entry.get(key))]
        column = floats(each for each in values if each is not None and 0 <= each <= 1e15)
        if len(column) != len(time_s) or len(values) != len(time_s) or not len(column):
            raise source.error(f"`throughput.{key}` of {where} should have a number for each of its times")
        columns.append(column)
    return Rates(direction, time_s, columns[0], columns[1], entry.get("saturated") is True)


def _joined(source: Source, parts: Sequence[tuple[float, Measurement]]) -> Measurement:
    """Return measurements one after another; directions only if all parts have them."""
    directions = [
        direction
        for direction in (Direction.ROUND_TRIP, Direction.UP, Direction.DOWN)
        if all(any(each.direction is direction for each in part.probes) for _, part in parts)
    ]
    fates = []
    for direction in directions:
        some: list[tuple[float, Probes]] = [
            (begins_s, each)
            for begins_s, part in parts
            for each in part.probes
            if each.direction is direction
        ]
        sizes = {each.size_bytes for _, each in some}
        fates.append(
            probes(
                direction,
                np.concatenate([begins_s + each.sent_s for begins_s, each in some]),
                np.concatenate([each.lost for _, each in some]),
                sizes.pop() if len(sizes) == 1 else None,
            )
        )
    time_s = np.concatenate([begins_s + part.delays[0].time_s for begins_s, part in parts])
    delay_s = np.concatenate([part.delays[0].delay_s for _, part in parts])
    order = np.argsort(time_s, kind="stable")
    return Measurement(
        source.name,
        FORMAT,
        float(time_s.max(initial=0.0)),
        probes=tuple(fates),
        delays=(Delays(Direction.ROUND_TRIP, time_s[order], delay_s[order]),),
    )


READER = JsonReader(
    name="lasthop",
    title="lasthop measure",
    command="lasthop measure HOST",
    fits=_fits,
    parse=_parse,
)
