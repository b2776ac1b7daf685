"""Reader of the flows that `lasthop gateway` observes: lines of JSON, as `gateway.flows` states."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Counts, Delays, Direction, Floats, Measurement, Rates
from lasthop.measurement.source import LONGEST_S, Source, floats, load, ordered

_LINES = ("start", "reload", "clock", "stop", "flow")
"""The kinds of lines."""

_PAYLOAD_BYTES, _PACKET_BYTES = 1448, 1500
"""Payload and size of full packets, in which bytes are counted."""

_LATE = 0.05
"""The share of the shortest round-trip times that are too short since the observer was late."""

_LONGEST_FLOW_S = 120.0
"""An upper limit of a flow's activity: it is observed for a minute."""


def _fits(document: Any) -> bool:
    """Return whether a document, or the first of several, is a line of such a file."""
    first = document[0] if isinstance(document, list) and document else document
    return isinstance(first, Mapping) and first.get("line") in _LINES


def _documents(source: Source) -> list[Any]:
    return list(source.documents)


def flows(documents: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return the flows with data among the lines of a file."""
    return [
        line
        for line in documents
        if isinstance(line, Mapping)
        and line.get("line") == "flow"
        and line.get("behind") in ("client", "server")
        and all(_number(line, key) is not None for key in ("began_s", "active_s"))
    ]


def since(path: Path, began_s: float) -> Source:
    """Return the flows in a file, and in the one that it continues, that began at a time or later.

    Lines that were cut off are skipped.

    Parameters
    ----------
    path : Path
        The file, as `gateway.flows` states it.
    began_s : float
        The time, in seconds since 1970.

    Raises
    ------
    MeasurementError
        If there are none.
    OSError
        If the file cannot be read.
    """
    former = Path(f"{path}.1")
    lines = [
        line
        for file in ([former] if former.exists() else []) + [path]
        for line in load(file).text.splitlines()
        if _is_flow_since(line, began_s)
    ]
    source = Source(str(path), "\n".join(lines).encode())
    if not lines:
        raise source.error("no flow since the comparison began; expected some minutes of them")
    return source


def _is_flow_since(line: str, began_s: float) -> bool:
    """Return whether a line of a file is a whole flow that began at a time or later."""
    try:
        found = json.loads(line)
    except (RecursionError, ValueError):
        return False
    return (
        isinstance(found, Mapping)
        and found.get("line") == "flow"
        and (_number(found, "began_s") or 0.0) >= began_s
    )


def _number(line: Mapping[str, Any], key: str) -> float | None:
    """Return a number that is not negative; None if there is none."""
    value = line.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)


def _numbers(lines: Sequence[Mapping[str, Any]], key: str) -> Floats:
    return floats(math.nan if (value := _number(line, key)) is None else value for line in lines)


def _parse(source: Source, lines: Any, options: Options) -> Measurement:
    """Read observed flows.

    Raises
    ------
    MeasurementError
        If no flow carried data.
    """
    every = flows(lines)
    # The sides of a radio are those of most flows.
    behind_client = [line["behind"] == "client" for line in every]
    client = sum(behind_client) * 2 >= len(every)
    every = [line for line, is_client in zip(every, behind_client, strict=True) if is_client == client]
    if not every:
        raise source.error("no flow carried data; expected the file of `gateway.flows` after some minutes")
    began_s = _numbers(every, "began_s")
    order = np.argsort(began_s, kind="stable")
    every = [every[index] for index in order]
    began_s = began_s[order] - began_s[order[0]]
    if began_s[-1] > LONGEST_S:
        raise source.error("the times are years apart")
    active_s = np.clip(_numbers(every, "active_s"), 1e-3, _LONGEST_FLOW_S)
    # Towards the far end of the radio, and from there.
    to_user = Direction.DOWN if client == (options.user == "client") else Direction.UP
    from_user = Direction.UP if to_user == Direction.DOWN else Direction.DOWN
    received = "bytes_to_server" if client else "bytes_to_client"
    counts, rates = [], []
    for direction, keys in (
        (to_user, ("sent_bytes", "retransmitted_bytes")),
        (from_user, (received, "repaired_bytes")),
    ):
        sent, lost = (np.nan_to_num(_numbers(every, key)) for key in keys)
        time_s, (sent, lost) = _seconds(began_s, active_s, (sent, lost))
        packets = np.rint(sent / _PAYLOAD_BYTES).astype(np.int64)
        some = packets > 0
        if some.any():
            time_s, packets, interval_s = time_s[some], packets[some], np.ones(int(some.sum()))
            lost_packets = np.minimum(np.rint(lost[some] / _PAYLOAD_BYTES).astype(np.int64), packets)
            counts.append(Counts(direction, time_s, interval_s, packets, lost_packets))
            rate_bps = sent[some] * 8 * _PACKET_BYTES / _PAYLOAD_BYTES
            rates.append(Rates(direction, time_s, interval_s, rate_bps, saturated=False))
    if not counts:
        raise source.error("no flow carried data; expected the file of `gateway.flows` after some minutes")
    radio_s, wired_s = _numbers(every, "radio_rtt_s"), _numbers(every, "wired_rtt_s")
    known = np.isfinite(radio_s) & np.isfinite(wired_s)
    delays: tuple[Delays, ...] = ()
    last_hop = None
    if known.any():
        radio_s = np.maximum(radio_s[known], np.quantile(radio_s[known], _LATE))
        trips = [
            Delays(Direction.ROUND_TRIP, *ordered(began_s[known], rtt_s))
            for rtt_s in (radio_s + wired_s[known], radio_s)
        ]
        delays = (trips[0],)
        last_hop = Measurement(source.name, "gateway", float(began_s[-1]), delays=(trips[1],))
    return Measurement(
        source.name,
        "gateway",
        float(began_s[-1]),
        counts=tuple(counts),
        rates=tuple(rates),
        delays=delays,
        last_hop=last_hop,
        notes=(
            f"{plural(len(every), 'flow')} across the radio, counted in packets of {_PACKET_BYTES} B. Losses "
            "are retransmissions, evenly over their flow; spurious retransmissions count as losses.",
            f"The {options.user} is assumed to be on the user's side of the radio.",
        ),
    )


def _seconds(began_s: Floats, active_s: Floats, volumes: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
    """Return the seconds with data, and each volume in them if flows carry it evenly."""
    lasts = np.ceil(active_s).astype(np.int64)
    flow = np.repeat(np.arange(len(began_s)), lasts)
    at = began_s.astype(np.int64)[flow] + np.concatenate([np.arange(count) for count in lasts])
    times, index = np.unique(at, return_inverse=True)
    return times.astype(np.float64), [
        np.bincount(index, weights=(volume / lasts)[flow]).astype(np.float64) for volume in volumes
    ]


READER = JsonReader(
    name="gateway",
    title="gateway",
    fits=_fits,
    parse=_parse,
    load=_documents,
)
