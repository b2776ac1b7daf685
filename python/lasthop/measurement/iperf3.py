"""Reader of iperf3 JSON: `iperf3 -c SERVER -J` or `--json-stream`, TCP or UDP, from either end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Counters, Counts, Delays, Direction, Floats, Measurement, Rates
from lasthop.measurement.source import (
    LONGEST_S,
    SWAP,
    Host,
    Source,
    at,
    control_free,
    floats,
    mapping,
    number,
    ordered,
    sequence,
    way,
    whole,
)

_UNSTEADY = 0.05
"""The rate of UDP counts as constant if its median deviation from the median is at most this share."""

_COMMAND = "iperf3 -c SERVER -J -t 60 -i 0.1 --get-server-output"

_SATURATED_LOSS = 0.05
"""UDP counts as overload, thus saturated, if the loss rate is higher, and a fifth of it in most intervals."""

_STALL_S = 0.2
"""Shortest time without data that is noted."""

_OFTEN, _STALLS = 0.1, 3.0
"""If more than this share of the intervals begin a pause, a stall is longer than most by this factor."""

_IMPOSSIBLE = 2.0
"""Counts are impossible if their packets have more data than were carried, by this factor."""

_LINE = re.compile(
    r"^\[ *\d{1,9}\](?:\[(?P<role>[TR]X)-[SC]\])? +"
    r"(?P<start>\d{1,9}\.\d{1,6})-(?P<end>\d{1,9}\.\d{1,6}) +sec +"
    r"(?P<size>\d{1,9}(?:\.\d{1,6})?) (?P<unit>[KMGT]?)Bytes +[\d.]{1,12} [KMGT]?bits/sec\b"
    r"(?: +[\d.]{1,12} ms +(?P<lost>-?\d{1,12})/(?P<sent>\d{1,12}) )?(?P<rest>.{0,80})$"
)
"""An interval of a stream in the text of a server."""

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_MOST_TESTS = 1000
"""Limit of the tests among which a repeated one is looked for."""


@dataclass(slots=True)
class _Row:
    """One interval of one stream in the report of one end."""

    start_s: float
    end_s: float
    bits: float
    sender: bool
    sent: int | None
    lost: int | None
    rtt_s: float | None
    # Whether the receiver's window is the smaller one; None if unknown.
    window_limited: bool | None = None


@dataclass(slots=True)
class _End:
    """The report of the client or the server."""

    client: bool
    rows: list[_Row] = field(default_factory=list)
    omitted: int = 0


def _fits(document: Any) -> bool:
    """Return whether a JSON document is iperf3's."""
    if "event" in mapping(document):
        return "data" in document
    start = at(document, "start")
    return isinstance(start, dict) and ("intervals" in document or "version" in start or "error" in document)


def _load(source: Source) -> Any:
    """Return the document; that of `--json-stream` is assembled from its events.

    Raises
    ------
    MeasurementError
        If there are several tests.
    """
    documents = list(source.documents)
    tests = _assembled(documents) if "event" in mapping(documents[0]) else documents
    # Versions 3.16 and 3.17 print the document twice.
    distinct = [test for place, test in enumerate(tests) if test not in tests[:place][:_MOST_TESTS]]
    if len(distinct) > 1:
        raise source.error(f"{len(distinct)} tests of iperf3 in one file; put each into its own file")
    return distinct[0]


def _assembled(events: Sequence[Any]) -> list[dict[str, Any]]:
    """Assemble the events of `--json-stream` into a document for each test."""
    tests: list[dict[str, Any]] = []
    for entry in events:
        event = mapping(entry)
        kind, data = event.get("event"), event.get("data")
        if "server_output_json" in event:
            kind, data = "server_output_json", event["server_output_json"]
        if kind == "start" or not tests:
            tests.append({"start": {}, "intervals": [], "end": {}})
        if kind == "interval":
            tests[-1]["intervals"].append(data)
        elif kind in ("start", "end", "error", "server_output_json", "server_output_text"):
            tests[-1][kind] = data
    return tests


def parse(source: Source, document: Any, options: Options) -> Measurement:
    """Read the JSON document of iperf3.

    Raises
    ------
    MeasurementError
        If it has no intervals.
    """
    user = options.user
    notes: list[str] = []
    failure = document.get("error")
    said = control_free(failure) if isinstance(failure, str) else ""
    test = mapping(at(document, "start", "test_start"))
    protocol = str(test.get("protocol", "")).upper()
    if protocol == "SCTP":
        raise source.error(f"a test of SCTP, which is not supported; expected the output of `{_COMMAND}`")
    if protocol not in ("TCP", "UDP"):
        what = f'iperf3 failed: "{said}"' if said else "no `start.test_start.protocol`: the test never began"
        raise source.error(f"{what}; expected the output of `{_COMMAND}`")
    own = _report(source, document, test)
    other = _report(source, mapping(document.get("server_output_json")), test, client=False)
    if not other.rows and isinstance(text := document.get("server_output_text"), str):
        other = _printed(text, test)
        if other.rows:
            notes.append("The server's report is text, which has three digits of each number.")
    if not own.rows and not other.rows:
        what = f'iperf3 failed before the first interval: "{said}"' if said else "no intervals"
        raise source.error(f"{what}; expected the output of `{_COMMAND}`")
    if said:
        notes.append(f'The test ended early: "{said}".')
    if own.omitted or other.omitted:
        notes.append(f"{plural(own.omitted + other.omitted, 'interval')} of --omit left out.")
    notes.append(
        f"The {user} is assumed to be on the user's side: its data are uplink"
        f"{SWAP if user == 'client' else ''}."
    )

    ends = [end for end in (own, other) if end.rows]
    rates, delays, counts = [], [], []
    limit = _limit(document, test, own)
    if limit is not None and protocol == "TCP":
        notes.append(f"The test does not saturate the link: {limit}.")
    general = len(notes)
    for direction in (Direction.DOWN, Direction.UP):
        # The receiver reports what arrived, the sender what it passed to its kernel.
        candidates = [
            (row.sender, row)
            for end in ends
            for row in end.rows
            if way(end.client == row.sender, user) is direction
        ]
        received = [row for sender, row in candidates if not sender]
        rows = received or [row for sender, row in candidates if sender]
        if not rows:
            continue
        _stalls(direction, rows, notes)
        share = None
        saturated = limit is None
        if protocol == "UDP":
            counted = _counts(direction, rows, number(test.get("blksize")), notes) if received else None
            if counted is None:
                counted = _total(document, direction, rows, number(test.get("blksize")), notes)
            if counted is not None:
                counts.append(counted)
                share = float(counted.lost.sum() / max(counted.sent.sum(), 1))
            saturated = counted is not None and _overloads(counted)
        if protocol == "UDP" and saturated and share is not None:
            notes.append(
                f"UDP lost {share:.1%} of the {direction} packets. A full queue and the channel cannot be "
                "distinguished as the cause: measure again at half the rate for the losses of the channel."
            )
        carried = 1.0
        if not received and share is not None:
            carried = 1 - share
            notes.append(
                f"The {direction} rate is the sender's, reduced by the losses of the whole test; "
                "--get-server-output adds the receiver's."
            )
        elif not received and (arrived := _arrived(document, test, rows, direction, user)) is not None:
            rows = [_Row(0.0, arrived[1], 8 * arrived[0], False, None, None, None)]
            notes.append(
                f"The {direction} rate is what the receiver got in the whole test; the sender's intervals "
                "count what it passed to its kernel. --get-server-output adds the receiver's intervals."
            )
        elif not received and protocol == "UDP":
            notes.append(f"The {direction} rate is unknown: not all that a sender of UDP sends arrives.")
            continue
        elif not received:
            notes.append(
                f"The {direction} rate is the sender's: the data passed to its kernel, which exceed the "
                "throughput in the first intervals; --get-server-output adds the receiver's."
            )
        rates.append(_rates(direction, rows, carried, saturated, capacity=saturated and protocol == "UDP"))
    if not rates and not counts:
        of_directions = [note.rstrip(".") for note in notes[general:]]
        raise source.error("; ".join(of_directions) or "no direction has a rate or losses")
    if protocol == "TCP":
        notes.append(
            "TCP retransmissions are not losses, so no losses are read; use a capture or irtt for losses."
        )
        samples = [(row.end_s, row.rtt_s) for end in ends for row in end.rows if row.rtt_s]
        if samples:
            time_s, rtt_s = ordered(floats(time for time, _ in samples), floats(rtt for _, rtt in samples))
            delays.append(Delays(Direction.ROUND_TRIP, time_s, rtt_s))
            notes.append("Round-trip times are smoothed by TCP (SRTT) and include the queueing of the test.")
    else:
        notes.append("The order of losses within an interval is unknown, so short bursts may not show.")
    return Measurement(
        source.name,
        f"iperf3 {protocol.lower()}",
        max(row.end_s for end in ends for row in end.rows),
        delays=tuple(delays),
        rates=tuple(rates),
        counts=tuple(counts),
        notes=tuple(notes),
    )


def _report(
    source: Source, document: Mapping[str, Any], test: Mapping[str, Any], *, client: bool | None = None
) -> _End:
    """Parse the report of one end."""
    if client is None:
        client = "accepted_connection" not in mapping(document.get("start"))
    end = _End(client)
    reverse = bool(test.get("reverse"))
    for interval in sequence(document.get("intervals")):
        for entry in sequence(at(interval, "streams")):
            row = mapping(entry)
            start_s, end_s, volume = (
                number(row.get("start")),
                number(row.get("end")),
                number(row.get("bytes")),
            )
            if start_s is None or end_s is None or volume is None:
                continue
            if (
                not 0 <= start_s <= LONGEST_S
                or not start_s < end_s <= LONGEST_S
                or volume < 0
                or volume > 1e18
            ):
                raise source.error(f"an interval from {start_s:g} s to {end_s:g} s with {volume:g} bytes")
            if row.get("omitted") is True:
                end.omitted += 1
                continue
            sender = row.get("sender")
            # Before version 3.7 there is no `sender`.
            sends = sender if isinstance(sender, bool) else client != reverse
            rtt_us = number(row.get("rtt"))
            congestion, offered = number(row.get("snd_cwnd")), number(row.get("snd_wnd"))
            end.rows.append(
                _Row(
                    start_s,
                    end_s,
                    volume * 8,
                    sends,
                    whole(row.get("packets")),
                    whole(row.get("lost_packets")),
                    rtt_us / 1e6 if rtt_us is not None and 0 < rtt_us < 1e12 else None,
                    congestion >= offered if congestion and offered else None,
                )
            )
    return end


def _printed(text: str, test: Mapping[str, Any]) -> _End:
    """Parse the text of a server without `-J`, which `--get-server-output` brings."""
    end = _End(client=False)
    for line in text.splitlines():
        found = _LINE.match(line[:300])
        if found is None or "sender" in found["rest"] or "receiver" in found["rest"]:
            continue
        if "omitted" in found["rest"]:
            end.omitted += 1
            continue
        start_s, end_s = float(found["start"]), float(found["end"])
        if not start_s < end_s <= LONGEST_S:
            continue
        sends = found["role"] == "TX" if found["role"] else bool(test.get("reverse"))
        bits = 8 * float(found["size"]) * UNITS[found["unit"]]
        sent, lost = (int(found["sent"]), int(found["lost"])) if found["sent"] else (None, None)
        end.rows.append(_Row(start_s, end_s, bits, sends, sent, lost, None))
    return end


def _rates(
    direction: Direction, rows: list[_Row], carried: float, saturated: bool, *, capacity: bool
) -> Rates:
    """Return the throughput of all streams in each interval, times the share that arrived."""
    start_s, end_s, bits = (floats(column) for column in zip(*_joined(rows), strict=True))
    rate_bps = bits * carried / (end_s - start_s)
    return Rates(direction, start_s, end_s - start_s, rate_bps, saturated, capacity)


def _joined(rows: list[_Row]) -> list[tuple[float, float, float]]:
    """Return begin and end of each interval, and the bits of all streams in it.

    The intervals of parallel streams differ by less than a millisecond.
    """
    apart_s = float(np.median([row.end_s - row.start_s for row in rows])) / 2
    found: list[tuple[float, float, float]] = []
    for row in sorted(rows, key=lambda row: row.start_s):
        if found and row.start_s - found[-1][0] < apart_s:
            begin_s, end_s, bits = found[-1]
            found[-1] = (begin_s, max(end_s, row.end_s), bits + row.bits)
        else:
            found.append((row.start_s, row.end_s, row.bits))
    return found


def _limit(document: Mapping[str, Any], test: Mapping[str, Any], own: _End) -> str | None:
    """Return what but the link limits a test over TCP, or None."""
    for key, option in (("target_bitrate", "-b"), ("fqrate", "--fq-rate")):
        if (rate := number(test.get(key))) is not None and rate > 0:
            return f"{option} limits it to {rate / 1e6:.3g} Mb/s"
    if any("diskfile" in mapping(entry) for entry in sequence(at(document, "end", "streams"))):
        return "it sends a file (-F), and reading that may be slower"
    windows = [row for row in own.rows if row.window_limited is not None]
    if windows and sum(bool(row.window_limited) for row in windows) > len(windows) / 2:
        return "the receiver's window is smaller than the congestion window"
    buffer = number(at(document, "start", "sock_bufsize"))
    if buffer is not None and buffer > 0:
        return f"-w limits its window to {buffer / 1024:.4g} KiB"
    return None


def _arrived(
    document: Mapping[str, Any],
    test: Mapping[str, Any],
    rows: list[_Row],
    direction: Direction,
    user: Host,
) -> tuple[float, float] | None:
    """Return the bytes that a direction's receiver got, and how long its sender sent; None if unknown.

    `rows` are those of the sender.
    """
    from_client = way(True, user) is direction
    # With --bidir the keys without a suffix are of the data from client to server.
    backwards = "_bidir_reverse" if test.get("bidir") and not from_client else ""
    got = number(at(document, "end", f"sum_received{backwards}", "bytes"))
    sent = number(at(document, "end", f"sum_sent{backwards}", "bytes"))
    lasts_s = max(row.end_s for row in rows)
    if not got or got < 0 or (sent is not None and not 0 < got <= 1.01 * sent):
        return None
    return got, lasts_s


def _stalls(direction: Direction, rows: list[_Row], notes: list[str]) -> None:
    """Note the longest time in which nothing was carried, or a report of it that came late."""
    joined = _joined(rows)
    usual_s = float(np.median([end - start for start, end, _ in joined]))
    rates = [bits / max(end - start, 1e-3) for start, end, bits in joined]
    rate = float(np.median(rates)) or max(rates)
    empty = [list(run) for is_empty, run in itertools.groupby(joined, lambda each: each[2] == 0) if is_empty]
    pauses = [(run[-1][1] - run[0][0], run[0][0]) for run in empty]
    least_s = max(usual_s / 2, _STALL_S)
    if len(pauses) > _OFTEN * len(joined):
        # iperf3 counts blocks of 128 KiB, which take longer than an interval on a slow link.
        least_s = max(least_s, _STALLS * float(np.median([lasts_s for lasts_s, _ in pauses])))
    stalled = [(lasts_s, start_s) for lasts_s, start_s in pauses if lasts_s >= least_s] + [
        (end - start, start)
        for start, end, bits in joined
        if end - start > 3 * max(usual_s, _STALL_S) and bits < rate * (end - start) / 2
    ]
    if stalled:
        longest_s, start_s = max(stalled)
        notes.append(
            f"The {direction} test stalled: little or nothing was carried for {longest_s:.3g} s from "
            f"{start_s:.3g} s on."
        )


def _overloads(counted: Counts) -> bool:
    """Return whether UDP lost more than a channel does, and in most intervals."""
    some = counted.sent > 0
    if not some.any() or counted.lost.sum() <= _SATURATED_LOSS * counted.sent.sum():
        return False
    return bool((counted.lost[some] > _SATURATED_LOSS / 5 * counted.sent[some]).mean() > 0.5)


def _impossible(
    packets: int, bits: float, block: float | None, direction: Direction, notes: list[str]
) -> bool:
    """Return whether so many packets cannot be the data that were carried, and note it."""
    if block is None or block <= 0 or packets * block * 8 <= _IMPOSSIBLE * bits + 80 * block:
        return False
    notes.append(
        f"The {direction} losses are not read: {packets:,} packets of {block:g} B cannot be in "
        f"{bits / 8:,.0f} B. Some versions of iperf3 count packets wrongly."
    )
    return True


def _counts(direction: Direction, rows: list[_Row], block: float | None, notes: list[str]) -> Counts | None:
    """Return the UDP losses counted by the receiver."""
    counted = [row for row in rows if row.sent is not None and row.lost is not None]
    if not counted:
        return None
    arrived = sum(max(row.sent or 0, 0) - (row.lost or 0) for row in counted)
    if _impossible(arrived, sum(row.bits for row in counted), block, direction, notes):
        return None
    counted.sort(key=lambda row: row.start_s)
    sent = np.array([max(row.sent or 0, 0) for row in counted], dtype=np.int64)
    lost = np.array([row.lost or 0 for row in counted], dtype=np.int64)
    kept = np.clip(lost, 0, sent)
    if (kept != lost).any():
        notes.append(
            "Late packets were first counted as lost and later subtracted: the losses of each interval are "
            "clamped to between zero and its packets."
        )
    if (sent == 0).any():
        notes.append(
            "Intervals without packets: iperf3 counts the losses of an outage in the interval of the next "
            "packet."
        )
    start_s = floats(row.start_s for row in counted)
    interval_s = floats(row.end_s - row.start_s for row in counted)
    # The intervals of parallel streams overlap.
    single = bool(np.all(start_s[1:] > start_s[:-1] + interval_s[:-1] / 2))
    return Counts(direction, start_s, interval_s, sent, kept, single and _is_steady(sent, interval_s))


def _is_steady(sent: Counters, interval_s: Floats) -> bool:
    """Whether packets were sent at a constant rate, but for intervals in which an outage began or ended."""
    some = sent > 0
    if not some.any():
        return False
    rates = sent / interval_s
    usual = float(np.median(rates[some]))
    return float(np.median(np.abs(rates - usual))) <= _UNSTEADY * usual


def _total(
    document: Mapping[str, Any],
    direction: Direction,
    rows: list[_Row],
    block: float | None,
    notes: list[str],
) -> Counts | None:
    """Return the losses of the whole test; the sender has no others."""
    sent = lost = 0
    for entry in sequence(at(document, "end", "streams")):
        udp = mapping(at(entry, "udp"))
        # With --bidir the streams of both directions are there.
        if isinstance(udp.get("sender"), bool) and udp["sender"] is not rows[0].sender:
            continue
        count, gone = whole(udp.get("packets")), whole(udp.get("lost_packets"))
        if count is not None and gone is not None and 0 <= gone <= count:
            sent, lost = sent + count, lost + gone
    if not sent or sent >= 2**62:
        notes.append(f"The {direction} losses are unknown: the receiver's report is missing.")
        return None
    # These are the sender's rows, or those of a receiver whose counts are impossible.
    if _impossible(
        sent if rows[0].sender else sent - lost, sum(row.bits for row in rows), block, direction, notes
    ):
        return None
    start_s, end_s = min(row.start_s for row in rows), max(row.end_s for row in rows)
    notes.append(
        f"The {direction} losses are for the whole test; --get-server-output adds those of each interval."
    )
    count_array, lost_array = np.array([sent], dtype=np.int64), np.array([lost], dtype=np.int64)
    return Counts(direction, floats([start_s]), floats([end_s - start_s]), count_array, lost_array)


READER = JsonReader(
    name="iperf3",
    title="iperf3 JSON",
    command=_COMMAND,
    fits=_fits,
    parse=parse,
    load=_load,
    printed=(
        "iperf",
        re.compile(
            r"^(?:Connecting to host |Server listening on |Client connecting to )|"
            r"^\[ *(?:\d+|ID|SUM)\] .*(?:Bitrate|Bandwidth|bits/sec|connected)",
            re.MULTILINE,
        ),
    ),
)
