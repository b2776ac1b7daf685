"""Readers of Mahimahi traces (delivery opportunities) and of mm-link logs."""

from __future__ import annotations

import re
from pathlib import PurePath

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.model import Counts, Delays, Direction, Measurement
from lasthop.measurement.source import BIN_S, LONGEST_S, Source, binned, bins, floats, ordered

_OPPORTUNITY_BITS = 1504 * 8
_EVENT = re.compile(r"^(?P<time>\d{1,16}) (?P<kind>[#+\-d]) (?P<rest>\d{1,9}(?: \d{1,9})?)\s*$")


def _fits(text: str) -> bool:
    """Return whether a text is a Mahimahi trace or log."""
    head = text[:20_000].splitlines()[:200]
    if head and head[0].startswith("# mahimahi mm-link"):
        return True
    lines = [line.strip() for line in head if line.strip() and not line.startswith("#")]
    # The last line may be incomplete.
    whole = lines[:-1] or lines
    return bool(whole) and (all(_EVENT.match(line) for line in whole) or all(_number(line) for line in whole))


def _number(line: str) -> bool:
    return len(line) <= 16 and line.isascii() and line.isdigit()


def _parse(source: Source, options: Options) -> Measurement:
    """Read a trace or a log.

    Raises
    ------
    MeasurementError
        If a line is invalid.
    """
    lines = [
        (place, line.strip())
        for place, line in enumerate(source.text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    if not lines:
        raise source.error("no opportunities: a trace has a time in milliseconds on each line")
    if _EVENT.match(lines[0][1]):
        return _log(source, lines)
    return _trace(source, lines)


def _trace(source: Source, lines: list[tuple[int, str]]) -> Measurement:
    times: list[int] = []
    for place, line in lines:
        if not _number(line):
            raise source.error(f'"{line[:40]}" is not a time in milliseconds', place)
        if times and int(line) < times[-1]:
            raise source.error(
                "the times must not decrease; a file of one number on each line is read as a Mahimahi trace, "
                "and as other measurements with a first line of column names, such as rtt_ms",
                place,
            )
        times.append(int(line))
    up = PurePath(source.name.removesuffix(".gz")).suffix == ".up"
    direction = Direction.UP if up else Direction.DOWN
    notes = (f"A trace has no direction; assumed {direction}, by the file suffix.",)
    ms = floats(times)
    # The trace repeats after the last line.
    lasts_s = times[-1] / 1e3
    if lasts_s == 0:
        raise source.error("the trace lasts 0 ms; the last time is its length", lines[-1][0])
    if lasts_s > LONGEST_S:
        raise source.error("the trace lasts for years", lines[-1][0])
    bits = np.full(len(ms), float(_OPPORTUNITY_BITS))
    rates = binned(source, direction, ms / 1e3, bits, (0.0, lasts_s), True, capacity=True)
    return Measurement(source.name, "mahimahi", lasts_s, rates=(rates,), notes=notes)


def _log(source: Source, lines: list[tuple[int, str]]) -> Measurement:
    found: dict[str, list[tuple[int, int, int]]] = {kind: [] for kind in "#+-d"}
    notes: list[str] = []
    for index, (place, line) in enumerate(lines):
        event = _EVENT.match(line)
        values = event["rest"].split() if event else []
        if event is None or len(values) != (2 if event["kind"] in "-d" else 1):
            if index == len(lines) - 1:
                notes.append("The last line is cut off.")
                continue
            raise source.error(
                f'"{line[:40]}" is not an event: a time, then # and bytes, + and bytes, '
                "- bytes and delay, or d packets and bytes",
                place,
            )
        found[event["kind"]].append((int(event["time"]), int(values[0]), int(values[-1])))
    stamps = [time for events in found.values() for time, _, _ in events]
    if not stamps:
        raise source.error("no events", lines[0][0])
    start, lasts_s = min(stamps), (max(stamps) - min(stamps)) / 1e3
    if lasts_s > LONGEST_S:
        raise source.error("the log lasts for years")
    if lasts_s == 0:
        raise source.error("all events are at one time", lines[0][0])
    # The program begins the word with a capital, wrappers and older versions do not.
    header = source.text[:4000].lower()
    up = "(uplink)" in header
    direction = Direction.UP if up else Direction.DOWN
    if not up and "(downlink)" not in header:
        notes.append("The log has no direction; assumed down, towards the user.")

    def column(kind: str, place: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return floats(event[place] for event in found[kind])

    def times(kind: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return floats((event[0] - start) / 1e3 for event in found[kind])

    rates, delays, counts = [], [], []
    if found["#"]:
        bits = column("#", 1) * 8
        rates.append(binned(source, direction, times("#"), bits, (0.0, lasts_s), True, capacity=True))
        notes.append("The saturated rate is the delivery opportunities; the other rate is the departures.")
    if found["-"]:
        rates.append(binned(source, direction, times("-"), column("-", 1) * 8, (0.0, lasts_s), False))
        delay_s = column("-", 2) / 1e3
        # The log has departure times; `Delays` has arrival times.
        delays.append(Delays(direction, *ordered(times("-") - delay_s, delay_s)))
        notes.append("Delays are queueing delays of mm-link, without that of mm-delay.")
    if found["+"]:
        start_s, sent = bins(source, times("+"), np.ones(len(found["+"])), lasts_s)
        _, lost = bins(source, times("d"), column("d", 1), lasts_s)
        # A drop-head queue drops packets that arrived in earlier bins.
        lost = np.minimum(lost, sent)
        interval_s = np.full(len(start_s), BIN_S)
        counts.append(Counts(direction, start_s, interval_s, sent.astype(np.int64), lost.astype(np.int64)))
        dropped = sum(count for _, count, _ in found["d"])
        if dropped:
            notes.append(f"{plural(dropped, 'packet')} dropped by the queue of mm-link, not lost on the air.")
    return Measurement(
        source.name,
        "mahimahi",
        lasts_s,
        delays=tuple(delays),
        rates=tuple(rates),
        counts=tuple(counts),
        notes=tuple(notes),
    )


READER = TextReader(name="mahimahi", title="Mahimahi", fits=_fits, parse=_parse)
