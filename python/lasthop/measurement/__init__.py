"""Measurements of a link: what users have, read into one form. See docs/measurements.md."""

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

__all__ = [
    "Counts",
    "Delays",
    "Direction",
    "LossSeries",
    "Measurement",
    "MeasurementError",
    "Probes",
    "Rates",
]
