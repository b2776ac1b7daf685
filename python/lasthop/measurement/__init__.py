"""Readers of measurements of a link, from the tools in docs/guide/measurements.md into one data model."""

from lasthop.measurement.model import (
    Counts,
    Delays,
    Direction,
    LossSeries,
    Measurement,
    MeasurementError,
    Probes,
    Rates,
)
from lasthop.measurement.reader import FORMATS, READERS, read
from lasthop.measurement.source import Host, Place

__all__ = [
    "FORMATS",
    "READERS",
    "Counts",
    "Delays",
    "Direction",
    "Host",
    "LossSeries",
    "Measurement",
    "MeasurementError",
    "Place",
    "Probes",
    "Rates",
    "read",
]
