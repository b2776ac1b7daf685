"""Reader of TCP socket counters sampled by `ss -ti`, in a loop that prints the time."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement import stamps
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.model import (
    Counters,
    Counts,
    Delays,
    Direction,
    Flags,
    Floats,
    Measurement,
    Rates,
)
from lasthop.measurement.source import LONGEST_S, SWAP, Source, floats, ordered, parsed, way

_COMMAND = "while sleep 0.1; do date +%s.%N; ss -tinmoH dst HOST; done > ss.txt"

_TIME = re.compile(r"^(?:Time: ?|\W{0,6})(?P<time>\d{9,11}(?:[.,]\d{1,9})?)\W{0,6}$")
_SOCKET = re.compile(
    # The state column is missing if ss filters by state; without -n ports have names.
    r"^(?:tcp\s+)?(?:(?:ESTAB|CLOSE-WAIT|FIN-WAIT-[12]|LAST-ACK|CLOSING)\s+)?\d+\s+\d+\s+"
    r"(?P<local>\S{1,80}):(?P<port>[\w-]{1,20})\s+(?P<peer>\S{1,80}):(?P<peer_port>[\w-]{1,20})(?:\s|$)"
)
_COUNTER = re.compile(
    r"\b(bytes_acked|bytes_sent|bytes_retrans|bytes_received|data_segs_out|dsack_dups|mss):(\d{1,18})\b"
)
_RTT = re.compile(r"(?<![a-z_])rtt:(\d{1,9}(?:\.\d{1,9})?)/")
_RETRANS = re.compile(r"\bretrans:\d{1,9}/(\d{1,12})")

_LONGEST_DATE = 60
"""Limit of a line that `date` prints in the form of the user's language."""

_FEWEST_BYTES = 10_000
"""Minimum bytes of a socket in a direction."""


@dataclass(slots=True)
class _Sample:
    time_s: float
    counters: dict[str, int]
    rtt_s: float | None
    limited: bool


@dataclass(slots=True)
class _Connection:
    client: bool
    samples: list[_Sample] = field(default_factory=list)

    def growth(self, counter: str) -> int:
        """Return the increase of a counter over the samples."""
        return self.samples[-1].counters.get(counter, 0) - self.samples[0].counters.get(counter, 0)

    @property
    def time_s(self) -> Floats:
        """The time of each sample."""
        return floats(sample.time_s for sample in self.samples)

    @property
    def limited(self) -> bool:
        """Whether the application had nothing to send in a sample."""
        return any(sample.limited for sample in self.samples)

    def column(self, counter: str) -> Counters:
        """Return a counter of each sample."""
        return np.array([sample.counters.get(counter, 0) for sample in self.samples], dtype=np.int64)

    def grown(self, at_s: Floats, column: Counters) -> Floats:
        """Return how much a column had grown since the first sample at each of the times."""
        grown: Floats = np.interp(at_s, self.time_s, column - column[0])
        return grown


def _fits(text: str) -> bool:
    """Return whether a text is the output of `ss -ti`."""
    head = text[:20_000]
    return bool(_RTT.search(head)) and any(_SOCKET.match(line[:1000]) for line in head.splitlines())


def _parse(source: Source, options: Options) -> Measurement:
    """Read repeated samples of ss.

    Raises
    ------
    MeasurementError
        If there are no times, or fewer than two samples of each socket.
    """
    user = options.user
    found, timed = _connections(source.text)
    notes: list[str] = []
    if not timed:
        raise source.error(f"samples without times; expected the output of `{_COMMAND}`")
    connections = [connection for connection in found if len(connection.samples) >= 2]
    if not connections:
        raise source.error(f"fewer than two samples of each socket; expected the output of `{_COMMAND}`")
    start = min(connection.samples[0].time_s for connection in connections)
    end = max(connection.samples[-1].time_s for connection in connections)
    if end - start > LONGEST_S:
        raise source.error("the times are years apart")
    rates, counts, delays = [], [], []
    spurious = 0
    # The sockets that share a direction share the link.
    together: dict[tuple[Direction, str], list[_Connection]] = defaultdict(list)
    for connection in connections:
        for counter, from_client in (
            ("bytes_acked", connection.client),
            ("bytes_received", not connection.client),
        ):
            if connection.growth(counter) >= _FEWEST_BYTES:
                together[way(from_client, user), counter].append(connection)
        timed_samples = [sample for sample in connection.samples if sample.rtt_s]
        if timed_samples:
            time_s = floats(sample.time_s - start for sample in timed_samples)
            delays.append(
                Delays(Direction.ROUND_TRIP, *ordered(time_s, floats(s.rtt_s or 0.0 for s in timed_samples)))
            )
    for (direction, counter), sockets in together.items():
        rates.append(_rates(sockets, counter, direction, start))
        senders = [socket for socket in sockets if socket.growth("data_segs_out") > 0]
        if counter == "bytes_acked" and senders:
            counts.append(_losses(senders, direction, start))
            spurious += sum(max(socket.growth("dsack_dups"), 0) for socket in senders)
    if not rates:
        raise source.error(
            f"no socket carried {_FEWEST_BYTES} bytes between its samples; sample during a transfer"
        )
    clients = sum(connection.client for connection in connections)
    notes.append(
        f"{plural(len(connections), 'socket')}, {clients} of them the client's, by the larger port; "
        f"the {user} is assumed to be on the user's side{SWAP if user == 'client' else ''}."
    )
    if counts:
        notes.append(
            f"Losses are retransmissions less {plural(spurious, 'duplicate')} reported by DSACK, in the "
            "interval of the retransmission. Without DSACK, spurious retransmissions count as losses."
        )
    if len(counts) < len(rates):
        notes.append("A receiving socket has no counters of losses on the way to it.")
    if delays:
        notes.append("Round-trip times are smoothed by TCP (SRTT) and include the queueing of the transfer.")
    return Measurement(
        source.name,
        "ss",
        end - start,
        delays=tuple(delays),
        rates=tuple(rates),
        counts=tuple(counts),
        notes=tuple(notes),
    )


def _connections(text: str) -> tuple[list[_Connection], bool]:
    """Return the sockets with their samples, and whether the text has times."""
    found: dict[tuple[str, ...], list[_Connection]] = defaultdict(list)
    time_s: float | None = None
    key: tuple[str, ...] | None = None
    clock = stamps.Timeline()
    for full in text.splitlines():
        line = full[:4000]
        if time := _TIME.match(line):
            time_s, key = parsed(time["time"].replace(",", ".")), None
            continue
        if (
            len(line) < _LONGEST_DATE
            and not _SOCKET.match(line)
            and (dated := clock.time_s(line)) is not None
        ):
            time_s, key = dated, None
            continue
        rest = line
        if socket := _SOCKET.match(line):
            key = (socket["local"], socket["port"], socket["peer"], socket["peer_port"])
            # `ss -O` prints the socket and its counters on one line.
            rest = line[socket.end() :]
        if key is None or time_s is None or (rtt := _RTT.search(rest)) is None:
            continue
        counters = {name: int(value) for name, value in _COUNTER.findall(rest)}
        retrans = _RETRANS.search(rest)
        counters["retransmitted"] = int(retrans[1]) if retrans else 0
        ms = parsed(rtt[1])
        sample = _Sample(time_s, counters, ms / 1e3 if ms else None, "app_limited" in rest)
        known = found[key]
        last = known[-1].samples[-1] if known else None
        # A decreasing counter belongs to a new socket with the same ports.
        if last is None or any(
            counters.get(name, 0) < value for name, value in last.counters.items() if name != "mss"
        ):
            known.append(_Connection(_port(key[1]) >= _port(key[3])))
        elif time_s <= last.time_s:
            continue
        known[-1].samples.append(sample)
    return [connection for known in found.values() for connection in known], time_s is not None


def _port(text: str) -> int:
    """Return a port; 0 for a service name, which marks a server."""
    return int(text) if text.isascii() and text.isdigit() else 0


def _rates(sockets: list[_Connection], counter: str, direction: Direction, start: float) -> Rates:
    """Return the payload throughput of all sockets between samples."""
    edges_s, covered = _edges(sockets)
    bits = np.zeros(len(covered))
    for socket in sockets:
        bits += 8 * np.diff(socket.grown(edges_s, socket.column(counter)))
    saturated = counter == "bytes_acked" and not all(socket.limited for socket in sockets)
    interval_s = np.diff(edges_s)[covered]
    return Rates(direction, edges_s[:-1][covered] - start, interval_s, bits[covered] / interval_s, saturated)


def _losses(sockets: list[_Connection], direction: Direction, start: float) -> Counts:
    """Return the segments that all sockets sent and lost between samples."""
    edges_s, covered = _edges(sockets)
    sent, lost = np.zeros((2, len(covered)), dtype=np.int64)
    for socket in sockets:
        # A DSACK arrives one round trip after the spurious retransmission.
        gone = socket.column("retransmitted") - socket.column("dsack_dups")
        gone = np.minimum.accumulate(gone[::-1])[::-1]
        segments = np.diff(np.rint(socket.grown(edges_s, socket.column("data_segs_out"))).astype(int))
        missing = np.diff(np.rint(socket.grown(edges_s, gone)).astype(int))
        sent += segments
        lost += np.minimum(missing, segments)
    return Counts(
        direction, edges_s[:-1][covered] - start, np.diff(edges_s)[covered], sent[covered], lost[covered]
    )


def _edges(sockets: list[_Connection]) -> tuple[Floats, Flags]:
    """Return the times of all samples, and in which intervals between them there is a socket."""
    edges_s = np.unique(np.concatenate([socket.time_s for socket in sockets]))
    covered = np.zeros(len(edges_s) - 1, dtype=np.bool_)
    for socket in sockets:
        covered |= (socket.time_s[0] <= edges_s[:-1]) & (edges_s[1:] <= socket.time_s[-1])
    return edges_s, covered


READER = TextReader(name="ss", title="ss", command=_COMMAND, fits=_fits, parse=_parse)
