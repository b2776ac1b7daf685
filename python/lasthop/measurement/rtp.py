"""Losses of RTP streams in a capture, by their sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lasthop.core.formats import plural
from lasthop.measurement.model import Direction, Probes
from lasthop.measurement.packets import Packets, common_size
from lasthop.measurement.source import Host, probes, way

Rows = npt.NDArray[np.intp]


def streams(packets: Packets, user: Host, notes: list[str]) -> Iterator[Probes]:
    """Yield the packets of each RTP stream."""
    other = 0
    for group in packets.groups(17):
        client = packets.source[group[0]]
        for from_client in (True, False):
            rows = group[(packets.source[group] == client) == from_client]
            found = _stream(packets, rows, way(from_client, user))
            if found is None:
                other += len(rows)
            else:
                notes.append(
                    f"{found.direction.capitalize()}: an RTP stream. Its losses are upstream of the capture; "
                    "a capture at its sender shows none."
                )
                yield found
    if other:
        notes.append(f"{plural(other, 'UDP packet')} without RTP sequence numbers not read.")


_LONGEST_SILENCE = 500
"""Maximum packets missing in a row, ten seconds of a call; after a larger gap the numbering was reset."""


def _stream(packets: Packets, rows: Rows, direction: Direction) -> Probes | None:
    """Return the packets of an RTP stream (RFC 3550); None for other UDP."""
    rows = rows[packets.rtp_version[rows] >= 0]
    if len(rows) < 20:
        return None
    values, counts = np.unique(packets.rtp_source[rows], return_counts=True)
    rows = rows[packets.rtp_source[rows] == values[counts.argmax()]]
    numbers = packets.rtp_seq[rows].astype(np.int64)
    steps = ((np.diff(numbers) + (1 << 15)) & 0xFFFF) - (1 << 15)
    # Other UDP packets have another version field, or their numbers are not consecutive.
    if (
        len(rows) < 20
        or (packets.rtp_version[rows] != 2).any()
        or (np.abs(steps) > _LONGEST_SILENCE).any()
        or (steps == 1).mean() < 0.5
    ):
        return None
    if len(np.unique(packets.rtp_type[rows])) > 4:
        return None
    # A gap of lost packets takes as long as the packets would have; a reset of the numbering does not.
    gaps_s = np.diff(packets.time_s[rows])
    usual_s = float(np.median(gaps_s[steps == 1]))
    if (gaps_s < 0.3 * usual_s * (steps - 10)).any():
        return None
    seq = np.concatenate(([0], np.cumsum(steps)))
    known, first = np.unique(seq, return_index=True)
    every = np.arange(known[0], known[-1] + 1)
    if len(every) > 20 * len(known):
        return None
    lost = np.ones(len(every), dtype=np.bool_)
    lost[known - known[0]] = False
    time_s = np.interp(every, known, np.maximum.accumulate(packets.time_s[rows[first]]))
    return probes(direction, time_s, lost, common_size(packets.size[rows]))
