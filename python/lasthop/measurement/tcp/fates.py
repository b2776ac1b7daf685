"""The fates of the packets of one direction of a TCP connection, on one side of the capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lasthop.measurement.model import Flags, Floats


@dataclass(slots=True)
class Fates:
    """The packets of one direction of a connection, in the order of sending as far as it is known.

    Attributes
    ----------
    time_s : array of float64
        When each passed the capture, or would have if it was lost before it.
    lost : array of bool
        Whether it was lost, on the side of the capture that was asked for.
    carried_s, carried_bits : arrays of float64
        When bits arrived, or were acknowledged.
    idle_s : float
        How long the sender had nothing to send, as far as the capture shows.
    numbered : bool
        Whether the losses are gaps in the identifications of IPv4.
    unknown : int
        Packets whose fate the capture does not show, left out.
    spurious : int
        Retransmissions of what had arrived.
    reordered : int
        Packets that came out of order and were not retransmissions.
    missed : int
        Packets that the receiver acknowledged and the capture never saw.
    """

    time_s: Floats
    lost: Flags
    carried_s: Floats
    carried_bits: Floats
    idle_s: float = 0.0
    numbered: bool = False
    unknown: int = 0
    spurious: int = 0
    reordered: int = 0
    missed: int = 0


def by_place(place: Any, arrived_s: Floats, lost_s: Floats) -> tuple[Floats, Flags]:
    """Return the times of what arrived and was lost, in the order of their places, and which was lost."""
    order = np.argsort(place, kind="stable")
    lost = np.concatenate((np.zeros(len(arrived_s), np.bool_), np.ones(len(lost_s), np.bool_)))
    return np.concatenate((arrived_s, lost_s))[order], lost[order]
