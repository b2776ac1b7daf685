"""Losses of RTP streams in a capture, by their sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lasthop.core.formats import plural
from lasthop.measurement.model import Counters, Flags, Floats, Probes
from lasthop.measurement.packets import Packets, common_size
from lasthop.measurement.source import SWAP, Host, Place, probes, way

Rows = npt.NDArray[np.intp]


def streams(packets: Packets, user: Host, place: Place | None, notes: list[str]) -> Iterator[Probes]:
    """Yield the packets of each RTP stream.

    Sequence numbers show the losses upstream of the capture, so that a stream with losses goes towards it.

    Parameters
    ----------
    packets : Packets
        The capture.
    user : {"client", "server"}
        The host on the user's side.
    place : {"client", "server", "between"} or None
        Where the capture was taken; None if unknown.
    notes : list of str
        What is assumed is added.
    """
    other = 0
    for group in packets.groups(17):
        first = packets.source[group] == packets.source[group[0]]
        found = [(rows, _stream(packets, rows)) for rows in (group[first], group[~first])]
        lossy = [stream is not None and bool(stream[1].any()) for _, stream in found]
        is_told = lossy[0] != lossy[1] and place != "between"
        for at, (rows, stream) in enumerate(found):
            if stream is None:
                other += len(rows)
                continue
            from_client = lossy[at] == ((place or user) == "server") if is_told else at == 0
            direction = way(from_client, user)
            assumed = ""
            if not is_told:
                swap = SWAP if user == "client" else ""
                assumed = f" The host that sent the first packet is assumed to be the client{swap}."
            elif place is None:
                assumed = " The capture is assumed to be on the user's side; `captured=` overrides."
            notes.append(
                f"{direction.capitalize()}: an RTP stream. Its losses are upstream of the capture; a capture "
                f"at its sender shows none.{assumed}"
            )
            yield probes(direction, *stream)
    if other:
        notes.append(f"{plural(other, 'UDP packet')} without RTP sequence numbers not read.")


_LONGEST_SILENCE = 500
"""Maximum packets that a late one follows; numbers further back are those of a reset."""


def _stream(packets: Packets, rows: Rows) -> tuple[Floats, Flags, int | None] | None:
    """Return times, losses and size of the packets of an RTP stream (RFC 3550); None for other UDP."""
    rows = rows[packets.rtp_version[rows] >= 0]
    if len(rows) < 20:
        return None
    values, counts = np.unique(packets.rtp_source[rows], return_counts=True)
    rows = rows[packets.rtp_source[rows] == values[counts.argmax()]]
    counted = np.append(0, np.cumsum(_steps(packets, rows)))
    # Copies, as from a mirror port.
    rows = rows[np.sort(np.unique(counted, return_index=True)[1])]
    steps = _steps(packets, rows)
    # Other UDP packets have another version field, or their numbers are not consecutive.
    if (
        len(rows) < 20
        or (packets.rtp_version[rows] != 2).any()
        or (steps < -_LONGEST_SILENCE).any()
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
    return time_s, lost, common_size(packets.size[rows])


def _steps(packets: Packets, rows: Rows) -> Counters:
    """Return the differences of successive sequence numbers."""
    numbers: Counters = packets.rtp_seq[rows].astype(np.int64)
    steps: Counters = ((numbers[1:] - numbers[:-1] + (1 << 15)) & 0xFFFF) - (1 << 15)
    return steps
