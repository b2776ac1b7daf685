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
from lasthop.measurement.reader import Format, Place, read
from lasthop.measurement.source import Host

__all__ = [
    "Counts",
    "Delays",
    "Direction",
    "Format",
    "Host",
    "LossSeries",
    "Measurement",
    "MeasurementError",
    "Place",
    "Probes",
    "Rates",
    "read",
]
