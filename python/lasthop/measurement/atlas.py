"""Reader of ping measurements of RIPE Atlas: JSON with a result of some packets every few minutes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Counts, Delays, Direction, Measurement
from lasthop.measurement.source import LONGEST_S, Source, floats, mapping, number, sequence, whole

_KEYS = {"prb_id", "sent", "rcvd", "result"}
_MOST_PACKETS = 1000


def _results(documents: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the results: of a list, or one after another."""
    for document in documents:
        yield from (mapping(entry) for entry in (document if isinstance(document, list) else [document]))


def _load(source: Source) -> Any:
    return list(_results(source.documents))


def _fits(document: Any) -> bool:
    first = document[0] if isinstance(document, list) and document else document
    return mapping(first).keys() >= _KEYS


def _parse(source: Source, document: Any, options: Options) -> Measurement:
    """Read the results of one probe.

    Raises
    ------
    MeasurementError
        If they are of several probes or targets, or a count is impossible.
    """
    for key, what in (("prb_id", "probes"), ("dst_addr", "targets")):
        found = sorted({str(result.get(key))[:60] for result in document})
        if len(found) > 1:
            raise source.error(
                f"results of {len(found)} {what} ({', '.join(found[:3])}); put each into its own file"
            )
    rows = []
    for result in document:
        sent, received, time_s = (
            whole(result.get("sent")),
            whole(result.get("rcvd")),
            number(result.get("timestamp")),
        )
        if sent is None or received is None or time_s is None or not 0 <= received <= sent <= _MOST_PACKETS:
            raise source.error(f"a result without times, or with {received} of {sent} packets received")
        rtt_ms = [number(mapping(packet).get("rtt")) for packet in sequence(result.get("result"))]
        rows.append(
            (time_s, sent, sent - received, [ms / 1e3 for ms in rtt_ms if ms is not None and 0 < ms < 1e6])
        )
    rows.sort(key=lambda row: row[0])
    first_s, last_s = rows[0][0], rows[-1][0]
    if last_s - first_s > LONGEST_S:
        raise source.error("the results are years apart")
    starts_s = floats(row[0] - first_s for row in rows)
    usual_s = float(np.median(np.diff(starts_s))) if len(rows) > 1 else 1.0
    counts = Counts(
        Direction.ROUND_TRIP,
        starts_s,
        np.full(len(rows), max(usual_s, 1.0)),
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
    )
    times = [(row[0] - first_s, rtt_s) for row in rows for rtt_s in row[3]]
    delays: tuple[Delays, ...] = ()
    if times:
        delays = (
            Delays(Direction.ROUND_TRIP, floats(time for time, _ in times), floats(rtt for _, rtt in times)),
        )
    return Measurement(
        source.name,
        "atlas",
        last_s - first_s,
        counts=(counts,),
        delays=delays,
        notes=(
            f"{plural(len(rows), 'result')}, one every {usual_s:.0f} s of about "
            f"{np.median(counts.sent):.0f} packets: bursts shorter than that do not show.",
        ),
    )


READER = JsonReader(name="atlas", title="RIPE Atlas JSON", fits=_fits, parse=_parse, load=_load)
