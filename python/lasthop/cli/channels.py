"""Gilbert and Gilbert-Elliott channels in words, by packets and by time."""

from __future__ import annotations

from typing import Any

from lasthop import Scenario


def conversions(scenario: Scenario) -> list[str]:
    """Return a line for each form of each such channel that data cross; none for other channels."""
    return [line for row in scenario.channel_bursts() for line in _lines(row)]


def _lines(row: dict[str, Any]) -> list[str]:
    stated = "by packets" if row["by_packets"] else "by time"
    losses = ""
    if (row["loss_good"], row["loss_bad"]) != (0.0, 1.0):
        losses = f", loss {row['loss_good']:.4g} in good and {row['loss_bad']:.4g} in bad"
    if row["burst_packets"] is None:
        burst = "in one burst" if row["loss"] else "in no burst"
    else:
        burst = f"mean burst {row['burst_packets']:.4g} packets"
    at = f"{row['packets_per_s']:.4g} packets/s ({row['packet_size']} B without gaps)"
    if row["good_s"] is None:
        by_time = "no process in time has these losses"
    else:
        by_time = f"mean stays good {_time(row['good_s'])}, bad {_time(row['bad_s'])}{losses}"
    return [
        f"channel of {row['link']}: {100 * row['loss']:.4g} % lost, {burst} (stated {stated})",
        f"  by packets: p = {row['p']:.4g}, r = {row['r']:.4g}{losses}",
        f"  by time, at {at}: {by_time}",
    ]


def _time(seconds: float) -> str:
    """Return a duration with a unit in which it is at least one, if there is one."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-6:.4g} us"
