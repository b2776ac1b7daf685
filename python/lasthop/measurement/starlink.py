"""Reader of the history of a Starlink dish: its JSON by gRPC, a sample each second of the last minutes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Delays, Direction, Floats, LossSeries, Measurement, Rates
from lasthop.measurement.source import Source, at, mapping, number, parsed, sequence

_COMMAND = (
    "grpcurl -plaintext -d '{\"getHistory\":{}}' 192.168.100.1:9200 SpaceX.API.Device.Device/Handle "
    "> starlink.json"
)

_KEY = "dishGetHistory"
_DROPS, _LATENCY = "popPingDropRate", "popPingLatencyMs"
_RATES = {"downlinkThroughputBps": Direction.DOWN, "uplinkThroughputBps": Direction.UP}


def _fits(document: Any) -> bool:
    return bool(sequence(at(document, _KEY, _DROPS)))


def _parse(source: Source, document: Any, options: Options) -> Measurement:
    """Read the history.

    Raises
    ------
    MeasurementError
        If its series have other lengths, or a sample is not a share.
    """
    history = mapping(document[_KEY])
    counter = history.get("current")
    taken = parsed(counter) if isinstance(counter, str) else number(counter)
    drops = _series(source, history, _DROPS, taken)
    if not len(drops) or not ((drops >= 0) & (drops <= 1)).all():
        raise source.error(f"{_DROPS} has no samples, or not all are between 0 and 1")
    time_s, second_s = np.arange(len(drops), dtype=np.float64), np.ones(len(drops))
    losses = LossSeries(Direction.ROUND_TRIP, time_s, second_s, drops)
    notes = [
        "The dish states the share of its pings that were dropped in each second, not their number, so no "
        "model of losses can be fitted to it: `lasthop measure HOST` measures one."
    ]
    delays, rates = [], []
    latency = _series(source, history, _LATENCY, taken)
    if len(latency) == len(drops):
        known = (latency > 0) & (latency < 1e5) & (drops < 1)
        if known.any():
            delays.append(Delays(Direction.ROUND_TRIP, time_s[known], latency[known] / 1e3))
    for key, direction in _RATES.items():
        bps = _series(source, history, key, taken)
        if len(bps) == len(drops) and (bps >= 0).all():
            rates.append(Rates(direction, time_s, second_s, bps, saturated=False))
    if rates:
        notes.append("The rates are of what was used, which seldom is the capacity of the link.")
    if taken is None:
        notes.append(
            "The history has no counter (`current`): its samples are taken in the order of the file."
        )
    return Measurement(
        source.name,
        "starlink",
        float(len(drops)),
        delays=tuple(delays),
        rates=tuple(rates),
        losses=(losses,),
        notes=tuple(notes),
    )


def _series(source: Source, history: Any, key: str, taken: float | None) -> Floats:
    """Return a series from its oldest sample on: the dish writes them in a circle."""
    values = [number(value) for value in sequence(history.get(key))]
    if any(value is None for value in values):
        raise source.error(f"{key} has values that are no numbers")
    series: Floats = np.array(values, dtype=np.float64)
    if taken is None or not len(series):
        return series
    count = int(np.clip(taken, 0, 2**53))
    # After a start the circle is not full.
    return series[:count] if count < len(series) else np.roll(series, -(count % len(series)))


READER = JsonReader(name="starlink", title="Starlink", command=_COMMAND, fits=_fits, parse=_parse)
