"""The size of the segments in super-packets, which offloads (TSO, GRO, LRO) make of several packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop.measurement.model import Counters

_SMALLEST = 500
"""The least segment size that is looked for."""

_SLIGHTLY = 1.1
"""How much larger than Ethernet's packets may be, on links with a somewhat larger MTU."""

_MOST_STEPS = 128
"""The packets in the largest super-packet."""

_FEWEST = 5
"""The super-packets by whose identifications the size is known."""

_MOST_SIZES = 50
"""The most frequent sizes of super-packets whose divisors are tried."""

_AS_MUCH = 0.05
"""A size that explains as many bytes as another but for this share explains as much."""

_DISTINCT = 3
"""Of so many multiples of one size no other explanation is likely."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The largest payload of one packet, and by what it is known.

    Attributes
    ----------
    largest : int
        Bytes; what has more is a super-packet.
    evidence : str
        What tells it, for a note; empty if a handshake does, or no packet is larger than Ethernet's.
    certain : bool
        Whether it is known well enough for counts of packets.
    """

    largest: int
    evidence: str = ""
    certain: bool = True


def segments(seq: Counters, sizes: Counters, number: Counters, usual: int, announced: int) -> Segments:
    """Find the size of segments.

    Parameters
    ----------
    seq, sizes, number : arrays of int64
        Sequence number, bytes of payload and IPv4 identification (-1 without) of each packet with data.
    usual : int
        The payload of a full packet of Ethernet.
    announced : int
        The segment size of the handshake, which includes options; 0 without a handshake.
    """
    limit = announced or usual
    above = sizes[sizes > limit]
    if not len(above):
        return Segments(limit)
    by_number = _by_identifications(seq, sizes, number, limit)
    most = announced or int(usual * _SLIGHTLY)
    values, counts = np.unique(sizes[sizes >= _SMALLEST], return_counts=True)
    weights = values * counts
    frequent = values[np.argsort(weights, kind="stable")[::-1][:_MOST_SIZES]]
    candidates = _divisors(frequent, most)
    plain = sizes[(sizes > limit // 2) & (sizes <= most)]
    common = int(np.bincount(plain).argmax()) if len(plain) else 0
    if by_number and by_number <= most:
        return Segments(by_number, "by their IP identifications")
    if len(candidates):
        whole = values[None, :] % candidates[:, None] == 0
        share = (whole * weights).sum(axis=1) / weights.sum()
        # Divisors of the size explain as much.
        best = int(np.flatnonzero(share > share.max() - _AS_MUCH)[-1])
        size = int(candidates[best])
        several = whole[best].sum() >= _DISTINCT or size == common
        if share[best] > 0.5 and (several or (usual - 40 <= size and not by_number)):
            return Segments(size, "by their sizes, which are its multiples")
    if by_number and not announced:
        return Segments(by_number, "by their IP identifications")
    values, counts = np.unique(above, return_counts=True)
    if not announced and counts.max() > 0.5 * len(above) and not common:
        # A link with a larger MTU, or super-packets that are all of one size.
        return Segments(int(values[counts.argmax()]), "since most have it", certain=False)
    if announced:
        return Segments(limit)
    # The last segment of many super-packets is smaller.
    return Segments(
        common or limit, "the most frequent size below" if common else "assumed", certain=bool(common)
    )


def _by_identifications(seq: Counters, sizes: Counters, number: Counters, limit: int) -> int:
    """Return the segment size by which a sender counts its packets; 0 if the identifications do not tell.

    The identification of the next packet in sequence is larger by the number of packets.
    """
    steps = (number[1:] - number[:-1]) & 0xFFFF
    following = (seq[1:] == seq[:-1] + sizes[:-1]) & (sizes[:-1] > limit) & (number[1:] >= 0)
    size, step = sizes[:-1][following], steps[following]
    if len(size) < _FEWEST or ((step < 1) | (step > _MOST_STEPS)).mean() > 0.5:
        return 0
    good = (step > 0) & (size % np.maximum(step, 1) == 0)
    if not good.any():
        return 0
    found, counts = np.unique(size[good] // step[good], return_counts=True)
    best = int(counts.argmax())
    # A sender may count a super-packet as one; then its sizes are those of no packet.
    return int(found[best]) if counts[best] > 0.5 * len(size) and found[best] >= _SMALLEST else 0


def _divisors(sizes: npt.NDArray[np.int64], most: int) -> Any:
    """Return the numbers from `_SMALLEST` to `most` that divide one of the sizes."""
    pieces = np.arange(1, _MOST_STEPS + 1)
    quotient, rest = np.divmod(sizes[:, None], pieces)
    return np.unique(quotient[(rest == 0) & (quotient >= _SMALLEST) & (quotient <= most)])
