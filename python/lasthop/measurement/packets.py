"""TCP and UDP packets of a capture as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lasthop import _lasthop
from lasthop.core.formats import plural
from lasthop.measurement import capture_clock
from lasthop.measurement.model import Counters, Flags, Floats
from lasthop.measurement.source import Source

_MOST_PACKETS = 4_000_000
"""The limit of the packets that are read."""

_WHOLE = ("sack_start", "sack_end", "notes", "unreadable", "without_options")
"""The attributes without a row for each packet."""


@dataclass(slots=True)
class Packets:
    """TCP and UDP packets, a row for each, in the order of the file.

    Attributes
    ----------
    time_s : array of float64
        Capture times, from the first packet on, non-decreasing.
    interface : array of int64
        The interface of the capture.
    protocol : array of uint8
        6 for TCP, 17 for UDP.
    source, target : arrays of uint64
        Hashes of address and port.
    host : array of uint64
        A hash of the source address alone.
    source_port, target_port : arrays of uint16
        The ports.
    size, payload : arrays of int64
        Bytes of the IP packet, and of the TCP or UDP payload.
    identification : array of int64
        The IPv4 identification; -1 for IPv6.
    seq, ack : arrays of int64
        Sequence and acknowledgement numbers; 0 for UDP.
    flags : array of uint16
        Control bits; 0 for UDP.
    window : array of uint16
        The window field, not scaled; 0 for UDP.
    mss : array of uint16
        The maximum segment size announced in a SYN, or 0.
    sack_permitted : array of bool
        Whether a SYN permits SACK.
    timestamp, echo : arrays of int64
        TSval and TSecr of the timestamps option, or -1.
    sacks, sack_at : arrays of int64
        The number of SACK blocks, and the row of the first in `sack_start` and `sack_end`.
    rtp_version : array of int8
        The version field of the RTP header with which a UDP payload may begin; -1 without such a payload.
    rtp_type, rtp_seq, rtp_source : arrays of unsigned integers
        The payload type, sequence number and synchronisation source in that header.
    sack_start, sack_end : arrays of int64
        The sequence numbers of all SACK blocks, a row for each block.
    notes : list of str
        Warnings about the capture.
    unreadable : str
        What most packets are that are not read, or what encrypts most of UDP; empty if nothing does.
    without_options : float
        The share of the TCP packets whose options the capture cut off.
    """

    time_s: Floats
    interface: Counters
    protocol: npt.NDArray[np.uint8]
    source: npt.NDArray[np.uint64]
    target: npt.NDArray[np.uint64]
    host: npt.NDArray[np.uint64]
    source_port: npt.NDArray[np.uint16]
    target_port: npt.NDArray[np.uint16]
    size: Counters
    payload: Counters
    identification: Counters
    seq: Counters
    ack: Counters
    flags: npt.NDArray[np.uint16]
    window: npt.NDArray[np.uint16]
    mss: npt.NDArray[np.uint16]
    sack_permitted: Flags
    timestamp: Counters
    echo: Counters
    sacks: Counters
    sack_at: Counters
    rtp_version: npt.NDArray[np.int8]
    rtp_type: npt.NDArray[np.uint8]
    rtp_seq: npt.NDArray[np.uint16]
    rtp_source: npt.NDArray[np.uint32]
    sack_start: Counters
    sack_end: Counters
    notes: list[str]
    unreadable: str
    without_options: float

    @classmethod
    def read(cls, source: Source) -> Self:
        """Read the packets of a pcap or pcapng file, up to the first damaged record.

        Raises
        ------
        MeasurementError
            If there are no TCP or UDP packets.
        """
        try:
            columns = _lasthop.read_packets(source.data)
        except ValueError as error:
            raise source.error(str(error)) from None
        time_ns, steps_s = capture_clock.without_steps(columns.pop("time_ns"), columns)
        segments = max(int((columns["protocol"] == 6).sum()), 1)
        encrypted, left_out = columns["encrypted"], columns["left_out"]
        unreadable = f"encrypted by {encrypted}" if encrypted else ""
        if left_out and left_out[1] > len(time_ns) // 2:
            unreadable = left_out[0]
        without_options = columns["without_options"] / segments
        notes = list(_notes(len(time_ns), **{name: columns.pop(name) for name in _SUMMARY}))
        if steps_s:
            notes.append(capture_clock.note(steps_s))
        elif (pause := capture_clock.pause(time_ns)) is not None:
            notes.append(pause)
        # Packets from several hardware queues can be out of order by microseconds.
        return cls(
            time_s=np.maximum.accumulate(time_ns - time_ns[0]) / 1e9,
            notes=notes,
            unreadable=unreadable,
            without_options=without_options,
            **columns,
        )

    def select(self, keep: Flags) -> Self:
        """Return the packets for which `keep` is true."""
        rows: dict[str, Any] = {
            entry.name: getattr(self, entry.name)[keep] for entry in fields(self) if entry.name not in _WHOLE
        }
        return replace(self, **rows)

    def groups(self, protocol: int) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the rows of each pair of endpoints."""
        rows = np.flatnonzero(self.protocol == protocol)
        if not len(rows):
            return
        one, other = self.source[rows], self.target[rows]
        pair = np.minimum(one, other) * np.uint64(0x9E3779B97F4A7C15) + np.maximum(one, other)
        order = np.argsort(pair, kind="stable")
        cuts = np.flatnonzero(np.diff(pair[order])) + 1
        yield from np.split(rows[order], cuts)


def common_size(sizes: Any) -> int | None:
    """Return the size shared by at least 90 % of the packets, or None."""
    values, counts = np.unique(sizes, return_counts=True)
    most = int(counts.argmax())
    return int(values[most]) if counts[most] >= 0.9 * len(sizes) and values[most] < 65536 else None


_SUMMARY = (
    "damaged",
    "full",
    "dropped",
    "untimed",
    "fragments",
    "tunnel",
    "bare",
    "overheard",
    "without_options",
    "kept",
    "encrypted",
    "left_out",
)

_NOTED = 0.01
"""The share of packets that are not read from which this is noted."""


def _notes(
    count: int,
    *,
    damaged: bool,
    full: bool,
    dropped: int,
    untimed: int,
    fragments: int,
    tunnel: str | None,
    bare: int,
    overheard: int,
    without_options: int,
    kept: int,
    encrypted: str | None,
    left_out: tuple[str, int] | None,
) -> Iterator[str]:
    """Yield warnings about a capture of `count` packets."""
    if overheard:
        yield (
            "Frames of a monitor interface (802.11) are read. It misses frames that the hosts received, and "
            "losses are those that the retransmissions of Wi-Fi left."
        )
    if without_options:
        yield (
            f"The options of {plural(without_options, 'TCP packet')} are cut off, since the capture stores "
            f"{kept} bytes of each frame: timestamps, SACK and DSACK, which tell spurious retransmissions "
            "and round-trip times. `tcpdump -s 128` stores all headers."
        )
    if left_out is not None and not fragments and left_out[1] > _NOTED * count:
        yield f"{plural(left_out[1], 'packet')} not read: {left_out[0]}."
    if bare:
        yield (
            f"{plural(bare, 'packet')} without the Ethernet header that the file states, as from the WWAN "
            "interfaces of Windows, read as raw IP."
        )
    if tunnel is not None:
        yield f"Packets in a tunnel ({tunnel}) are read; sizes and rates are without its headers."
    if damaged:
        yield "The capture is truncated or damaged; it is read up to the damage."
    if full:
        yield f"Only the first {_MOST_PACKETS} packets are read."
    if dropped:
        yield f"The capture dropped {plural(dropped, 'packet')}, according to its statistics."
    if untimed:
        yield f"{plural(untimed, 'packet')} without a timestamp not read."
    if fragments:
        yield f"{plural(fragments, 'IP fragment')} not read."
