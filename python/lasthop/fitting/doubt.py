"""Checks of a fitted link against its own files: the throughput of senders, and whether it is one link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lasthop.fitting.link import FittedLink
from lasthop.measurement import Direction, Measurement

APART = 2.0
"""A fit is in doubt if senders on it carry less or more than its file by this factor."""

SENDERS = ("linux", "linux-bbr")
"""The senders compared: by losses CUBIC slows down, and BBR does not."""

_SHORTEST_S, _LONGEST_S = 2.0, 30.0
_MOST_BITS = 2e9
_RUNS = 3

_PARTS = 20
_FEWEST_OF_A_PART = 10
_HIGHER, _HIGHER_S = 3.0, 0.1
"""Another path, or a queue that stands, has a smallest round-trip time larger by this factor and time."""


def doubts(link: FittedLink, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield a sentence for each file of which the fitted link does not carry the throughput.

    Parameters
    ----------
    link : FittedLink
        The link, with a rate.
    measurements : sequence of Measurement
        The files to which it was fitted.
    """
    for each in [part for whole in measurements for part in (whole, *whole.under_load)]:
        for direction in (Direction.DOWN, Direction.UP):
            seen_bps = _throughput(each, direction)
            lasts_s = min(max(each.duration_s, _SHORTEST_S), _LONGEST_S)
            if seen_bps is None:
                continue
            carried = _carried(link, direction, lasts_s)
            low, high = min(carried), max(carried)
            if low / APART <= seen_bps <= high * APART:
                continue
            found = " and ".join(
                f"{rate / 1e6:.3g} Mb/s ({sender})" for rate, sender in zip(carried, SENDERS, strict=True)
            )
            yield (
                f"{each.file}: {seen_bps / 1e6:.3g} Mb/s were carried {direction}, where senders on the "
                f"fitted link carry {found}. Losses, rate and round-trip time are not those of one link; or "
                "the sender, its window or its server limited the transfer."
            )


def of_paths(measurement: Measurement) -> Iterator[str]:
    """Yield a sentence if the smallest round-trip time changes for a part of the file, as that of two links.

    The times of transfers rise with their own queue.
    """
    if measurement.rates:
        return
    for delays in measurement.delays:
        lasts_s = np.ptp(delays.time_s) if len(delays.time_s) else 0.0
        if delays.direction is not Direction.ROUND_TRIP or lasts_s <= 0:
            continue
        place = np.minimum((delays.time_s - delays.time_s[0]) / lasts_s * _PARTS, _PARTS - 1).astype(np.int64)
        counts = np.bincount(place, minlength=_PARTS)
        least_s = np.full(_PARTS, np.inf)
        np.minimum.at(least_s, place, delays.delay_s)
        least_s = least_s[counts >= _FEWEST_OF_A_PART]
        if not len(least_s):
            continue
        low_s = float(least_s.min())
        higher = least_s > max(_HIGHER * low_s, low_s + _HIGHER_S)
        if (higher[1:] & higher[:-1]).any():
            yield (
                f"the round-trip time is {1e3 * low_s:.3g} ms at least, but "
                f"{1e3 * float(least_s[higher].min()):.3g} ms in {higher.mean():.0%} of the time: two links "
                "in one file, or one under load for a part; fit each part on its own"
            )


def of_shares(measurement: Measurement) -> Iterator[str]:
    """Yield a sentence if the file has losses as shares alone, to which no model can be fitted."""
    if measurement.probes or measurement.counts:
        return
    for series in measurement.losses:
        lost = (
            float(np.average(series.loss, weights=series.interval_s)) if series.interval_s.sum() > 0 else 0.0
        )
        if lost > 0:
            yield (
                f"{series.direction}, {lost:.2%} of the packets were lost, of an unknown number: no model "
                "can be fitted to it, so the link has no losses here; state them, as in "
                f"`lasthop advise --loss {lost:.2%}`"
            )


def _throughput(measurement: Measurement, direction: Direction) -> float | None:
    """Return the mean throughput of saturated transfers over TCP in a direction; None without any.

    UDP that saturates a link shows its capacity.
    """
    rates = [
        each
        for each in measurement.rates
        if each.direction == direction and each.saturated and not each.capacity
    ]
    means = [
        float(np.average(each.rate_bps, weights=each.interval_s)) for each in rates if each.interval_s.sum()
    ]
    return sum(means) or None


def _carried(link: FittedLink, direction: Direction, lasts_s: float) -> list[float]:
    """Return the median throughput of each sender over the link."""
    rate_bps = link.rate_bps
    if direction is Direction.UP:
        link = replace(link, down=link.up, up=None, rate_bps=link.up_rate_bps, up_rate_bps=rate_bps)
        link = replace(link, rate_variation=link.up_rate_variation, up_rate_variation=link.rate_variation)
    limit_s = max(min(lasts_s, _MOST_BITS / max(link.rate_bps or 0.0, 1.0)), 0.1)
    base = link.scenario().with_({"limit": round(limit_s, 3)})
    found = []
    for sender in SENDERS:
        scenario = base.with_({"sender": sender})
        runs = [
            scenario.run(None, seed=seed).metrics["throughput_bps"] or 0.0 for seed in range(1, _RUNS + 1)
        ]
        found.append(float(np.median(runs)))
    return found
