"""Measurement of a link by irtt, ping, iperf3 and curl. docs/guide/measure.md describes it."""

from lasthop.measuring.scores import Location, locate, outcome, responsiveness, throughput
from lasthop.measuring.session import Plan, Session, UnmeasuredError, measure

__all__ = [
    "Location",
    "Plan",
    "Session",
    "UnmeasuredError",
    "locate",
    "measure",
    "outcome",
    "responsiveness",
    "throughput",
]
