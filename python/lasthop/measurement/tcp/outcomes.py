"""Outcomes of the packets of one direction of a TCP connection, on one side of the capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lasthop.measurement.model import Flags, Floats


@dataclass(slots=True)
class Outcomes:
    """The packets of one direction of a connection and their losses, in estimated order of sending.

    Attributes
    ----------
    time_s : array of float64
        Time at the capture; interpolated for packets lost upstream.
    lost : array of bool
        Whether each packet was lost, upstream or downstream.
    carried_s, carried_bits : arrays of float64
        Times and sizes of arrivals, or of acknowledgements.
    idle_s : float
        Time in which the sender had no data to send, according to the capture.
    numbered : bool
        Whether the losses are gaps in the IPv4 identifications.
    shared : bool
        Whether the identifications also count packets of other connections, so that they are not used.
    unknown : int
        Packets left out, since the capture does not show whether they were lost.
    spurious : int
        Spurious retransmissions.
    reordered : int
        Out-of-order packets that were not retransmissions.
    windows : int
        Packets of these that were lost in windows without a hole; their number is estimated.
    resent : int
        Retransmitted packets in the capture, without the spurious ones.
    missed : int
        Acknowledged packets missing from the capture.
    """

    @property
    def lacking(self) -> int:
        """The packets missing from a capture that lacks more than it has; otherwise 0.

        Such a capture was filtered or sampled, and a hole in it says nothing of losses.
        """
        present = len(self.lost) - int(self.lost.sum())
        lacking = self.missed + int(self.lost.sum())
        return lacking if lacking > present and self.missed > lacking / 4 else 0

    time_s: Floats
    lost: Flags
    carried_s: Floats
    carried_bits: Floats
    idle_s: float = 0.0
    numbered: bool = False
    shared: bool = False
    unknown: int = 0
    spurious: int = 0
    reordered: int = 0
    windows: int = 0
    resent: int = 0
    missed: int = 0


def by_place(place: Any, arrived_s: Floats, lost_s: Floats) -> tuple[Floats, Flags]:
    """Merge arrivals and losses by position; return their times, and which of them are losses."""
    order = np.argsort(place, kind="stable")
    lost = np.concatenate((np.zeros(len(arrived_s), np.bool_), np.ones(len(lost_s), np.bool_)))
    return np.concatenate((arrived_s, lost_s))[order], lost[order]
