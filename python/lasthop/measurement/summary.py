"""Text summary of a measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lasthop.core.formats import plural

if TYPE_CHECKING:
    from lasthop.measurement.model import Counts, Delays, LossSeries, Measurement, Probes, Rates


def summarise(measurement: Measurement) -> str:
    """Return the text of `Measurement.summary`."""
    lines = [f"{measurement.file}: {measurement.format}, {measurement.duration_s:.1f} s"]
    lines += [f"  in doubt: {doubt}" for doubt in measurement.doubts]
    lines += [f"  {line}" for line in _data(measurement)]
    if measurement.last_hop is not None:
        lines += [f"  last hop, {line}" for line in _data(measurement.last_hop)]
    for part in measurement.under_load:
        load = " and ".join(str(rates.direction) for rates in part.rates)
        lines += [f"  under load {load}, {line}" for line in _data(part)]
    lines += [f"  - {note}" for note in measurement.notes]
    return "\n".join(lines)


def _data(measurement: Measurement) -> list[str]:
    lines = [line for probes in measurement.probes for line in _probes(probes)]
    lines += [_counts(counts) for counts in measurement.counts]
    lines += [_losses(losses) for losses in measurement.losses]
    lines += [_delays(delays) for delays in measurement.delays if len(delays.delay_s)]
    lines += [_rates(rates) for rates in measurement.rates if len(rates.rate_bps)]
    return lines


def bursts(lost: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the length of each run of lost packets, in order.

    Examples
    --------
    >>> import numpy as np
    >>> bursts(np.array([True, False, True, True])).tolist()
    [1, 2]
    """
    padded = np.concatenate(([0], lost.astype(np.int8), [0]))
    edges = np.flatnonzero(np.diff(padded))
    return edges[1::2] - edges[::2]


def _probes(probes: Probes) -> list[str]:
    count, lost = len(probes.lost), int(probes.lost.sum())
    size = "" if probes.size_bytes is None else f" of {probes.size_bytes} B"
    if not count:
        return [f"{probes.direction}: no packets"]
    line = f"{probes.direction}: {lost:,} of {plural(count, 'packet')}{size} lost ({lost / count:.3%})"
    if lost:
        runs = bursts(probes.lost)
        if len(runs) == 1:
            line += f", in one burst of {plural(lost, 'packet')}"
        else:
            line += f", {len(runs):,} bursts of {runs.mean():.2f} packets on average, {runs.max():,} at most"
    return [line]


def _counts(counts: Counts) -> str:
    sent, lost = int(counts.sent.sum()), int(counts.lost.sum())
    share = f" ({lost / sent:.3%})" if sent else ""
    return (
        f"{counts.direction}: {lost:,} of {plural(sent, 'packet')} lost{share}, "
        f"counted in {plural(len(counts.sent), 'interval')}"
    )


def _losses(losses: LossSeries) -> str:
    total = float(losses.interval_s.sum())
    mean = float((losses.loss * losses.interval_s).sum()) / total if total > 0 else 0.0
    return f"{losses.direction}: mean loss {mean:.3%} over {plural(len(losses.loss), 'interval')}"


def _delays(delays: Delays) -> str:
    ms = delays.delay_s * 1e3
    name = "RTT" if delays.direction.value == "round trip" else f"delay {delays.direction}"
    middle, high = np.percentile(ms, [50, 99])
    samples = plural(len(ms), "sample")
    return f"{name}: min {ms.min():.1f} ms, median {middle:.1f} ms, p99 {high:.1f} ms of {samples}"


def _rates(rates: Rates) -> str:
    total = float(rates.interval_s.sum())
    mean = float((rates.rate_bps * rates.interval_s).sum()) / total if total > 0 else 0.0
    kind = "saturated" if rates.saturated else "carried"
    low, high = np.percentile(rates.rate_bps, [10, 90]) / 1e6
    return (
        f"rate {rates.direction}: {mean / 1e6:.3g} Mb/s {kind}, 80 % of the time {low:.3g} to {high:.3g} Mb/s"
    )
