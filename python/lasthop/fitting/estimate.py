"""The fit of a link to measurements, whatever its kind, and a link from stated numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lasthop._lasthop import quantity
from lasthop.core import formats
from lasthop.fitting.doubt import doubts, of_paths, of_shares
from lasthop.fitting.link import Assumption, FittedLink, StatedLosses
from lasthop.fitting.loss_fit import fit_losses
from lasthop.fitting.losses import MOST_COUNTED, REPLICATES, TOO_MANY_COUNTED, FittedLosses
from lasthop.fitting.scenario import PERFECT, Rounded, micros, share
from lasthop.fitting.timing import Timing, timing
from lasthop.measurement import Counts, Direction, Measurement, MeasurementError, Probes

LAST_HOP_RTT_S = 0.02
"""The default round-trip time of the last hop alone."""

RTT_S = 0.06
"""The default round-trip time, if no measurement has it."""


def fit_link(
    measurements: Sequence[Measurement],
    *,
    rate_bps: float | None = None,
    up_rate_bps: float | None = None,
    rtt_s: float | None = None,
    last_hop_rtt_s: float | None = None,
    seed: int = 1,
    replicates: int = REPLICATES,
    jobs: int | None = None,
) -> FittedLink:
    """Fit losses, rate and delay to measurements of a link, whatever its kind.

    Parameters
    ----------
    measurements : sequence of Measurement
        The measurements.
    rate_bps, up_rate_bps, rtt_s, last_hop_rtt_s, seed, replicates, jobs
        As in `lasthop.fitting.fit`.

    Returns
    -------
    FittedLink
        The link.

    Raises
    ------
    ValueError
        If an interval has too many packets.
    """
    known = list(measurements)
    notes = [note for each in known for note in each.notes]
    parts = _losses(known, notes)
    counted = None if parts else _counted_once(known, notes)
    if not parts and counted is None:
        notes.append(Assumption("no losses, since no usable measurement has any."))
    fitted = {
        direction: fit_losses(data, seed=seed, replicates=replicates, jobs=jobs)
        for direction, data in parts.items()
    }
    # Round trips are present only if no direction is.
    down = fitted.get(Direction.DOWN, fitted.get(Direction.ROUND_TRIP))
    rates = {"rate_bps": rate_bps, "up_rate_bps": up_rate_bps}
    if last_hop_rtt_s is None:
        trips = [trip for each in known if each.last_hop is not None for trip in each.last_hop.delays]
        last_hop_rtt_s = min((float(trip.delay_s.min()) for trip in trips if len(trip.delay_s)), default=None)
    times = {"rtt_s": rtt_s, "last_hop_rtt_s": last_hop_rtt_s}
    link = _assembled(
        tuple(each.file for each in known),
        timing(known),
        down,
        fitted.get(Direction.UP),
        counted,
        notes,
        **rates,
        **times,
    )
    contradictions = [
        f"{each.file}: {doubt}."
        for each in known
        for doubt in (*each.doubts, *of_paths(each), *of_shares(each))
    ]
    if rate_bps is None and up_rate_bps is None and link.rate_bps is not None:
        contradictions += doubts(link, known)
    return replace(link, doubts=tuple(contradictions))


def stated_link(
    rate_bps: float,
    rtt_s: float,
    *,
    loss: float = 0.0,
    burst: str | None = None,
    up_rate_bps: float | None = None,
    last_hop_rtt_s: float | None = None,
) -> FittedLink:
    """Return a link from stated numbers, without measurements.

    Parameters
    ----------
    rate_bps, rtt_s : float
        Rate, and round-trip time without queueing.
    loss : float, default 0
        The share of downlink packets that are lost.
    burst : str, optional
        Mean length of a loss burst in packets or time, such as `"5"` or `"40 ms"`. By default losses are
        independent.
    up_rate_bps, last_hop_rtt_s
        As in `fit`.

    Raises
    ------
    ValueError
        If the loss is not in [0, 1), or the bursts are shorter than those of independent losses.
    """
    if not 0 <= loss < 1:
        raise ValueError(f"found a loss of {loss:g}, expected a share below 1, such as 0.02")
    words = f"{formats.share(loss)} of the packets lost"
    if loss == 0:
        stated = StatedLosses(PERFECT, "no losses")
    elif burst is None:
        stated = StatedLosses({"frame-loss": {"loss": share(loss)}}, f"{words}, independent of each other")
    else:
        found = quantity(burst)
        if found is None or found[1] not in ("", "s") or "%" in burst or not 0 < found[0] < math.inf:
            raise ValueError(
                f"found a burst of {burst!r}, expected packets in a row or a duration, such as 5 or 40ms"
            )
        if found[1] == "" and found[0] * (1 - loss) < 1:
            raise ValueError(
                f"found bursts of {burst} in packets at a loss of {formats.share(loss)}, where independent "
                f"losses have {1 / (1 - loss):.3g}; state longer ones, or leave the burst out"
            )
        length = Rounded(found[0], 9) if found[1] == "" else micros(found[0])
        unit = "packet" if found[0] == 1 else "packets"
        mean = f"{found[0]:g} {unit}" if found[1] == "" else formats.seconds(found[0])
        stated = StatedLosses(
            {"gilbert": {"loss": share(loss), "burst": length}},
            f"{words}, in bursts of {mean} on average",
        )
    rates = {"rate_bps": rate_bps, "up_rate_bps": up_rate_bps}
    times = {"rtt_s": rtt_s, "last_hop_rtt_s": last_hop_rtt_s}
    return _assembled((), Timing(), None, None, stated, [], **rates, **times)


def _assembled(
    files: tuple[str, ...],
    found: Timing,
    down: FittedLosses | None,
    up: FittedLosses | None,
    stated: StatedLosses | None,
    notes: list[str],
    *,
    rate_bps: float | None,
    up_rate_bps: float | None,
    rtt_s: float | None,
    last_hop_rtt_s: float | None,
) -> FittedLink:
    """Return a link: stated values first, then measured ones, then defaults, which a note mentions."""
    notes = [*notes, *found.notes]
    rate = found.down_bps if rate_bps is None else rate_bps
    up_rate = found.up_bps if up_rate_bps is None else up_rate_bps
    if up_rate is None and rate is not None:
        up_rate = rate
        notes.append(Assumption("the uplink has the rate of the downlink."))
    rtt = found.rtt_s if rtt_s is None else rtt_s
    if rtt is None:
        rtt = RTT_S
        notes.append(
            Assumption(
                f"a round-trip time of {formats.seconds(rtt)}, since no measurement has one; state --rtt."
            )
        )
    last_hop = last_hop_rtt_s
    if last_hop is None:
        last_hop = min(LAST_HOP_RTT_S, rtt / 2)
        notes.append(
            Assumption(
                f"the last hop takes {formats.seconds(last_hop)} of the round-trip time of "
                f"{formats.seconds(rtt)}. State --last-hop-rtt: the ping time to its far end, often the "
                "first hop of traceroute."
            )
        )
    if found.queue_s is None:
        notes.append(Assumption("a queue of 100 ms, or of one round-trip time if that is longer."))
    return FittedLink(
        files=files,
        down=down,
        up=up,
        timing=found,
        rate_bps=rate,
        up_rate_bps=up_rate,
        rate_variation=found.down_variation if rate_bps is None else None,
        up_rate_variation=found.up_variation if up_rate_bps is None else None,
        rtt_s=rtt,
        last_hop_rtt_s=min(last_hop, rtt),
        notes=tuple(dict.fromkeys(notes)),
        stated=stated,
    )


def _losses(known: Sequence[Measurement], notes: list[str]) -> dict[Direction, Probes | Counts]:
    """Choose the loss record of each direction: the one with the most packets.

    A test that fills the link also loses packets in the queue, and round-trip probes do not show the
    direction of a loss. Both are used only if there is no better record.
    """
    calm: dict[Direction, list[Probes | Counts]] = {}
    filled: dict[Direction, list[Probes | Counts]] = {}
    for each in known:
        for data in _usable(each, notes):
            loaded = any(rates.saturated for rates in each.rates if rates.direction == data.direction)
            (filled if loaded else calm).setdefault(data.direction, []).append(data)
    if not calm:
        calm = filled
        notes += [
            Assumption(
                f"the {direction} losses happened on the channel. The test filled the link, so its "
                "queue may also have dropped packets."
            )
            for direction in filled
        ]

    def packets(data: Probes | Counts) -> tuple[bool, int]:
        return isinstance(data, Probes), len(data.lost) if isinstance(data, Probes) else int(data.sent.sum())

    chosen = {direction: max(each, key=packets) for direction, each in calm.items()}
    one_way = [direction for direction in (Direction.DOWN, Direction.UP) if direction in chosen]
    if one_way:
        chosen.pop(Direction.ROUND_TRIP, None)
        for direction in (Direction.DOWN, Direction.UP):
            if direction not in chosen:
                notes.append(Assumption(f"no {direction} losses, since no measurement has any."))
    elif Direction.ROUND_TRIP in chosen and bool(np.any(chosen[Direction.ROUND_TRIP].lost)):
        notes.append(
            Assumption(
                "all losses happened on the downlink. Round-trip probes do not show the direction of a "
                "loss; irtt does."
            )
        )
    return chosen


def _counted_once(known: Sequence[Measurement], notes: list[str]) -> StatedLosses | None:
    """Return the losses of the largest single count of downlink packets or round trips; None without any.

    Those of a test that filled the link may be of its queue.
    """
    counts = [
        (int(data.sent.sum()), int(data.lost.sum()), data.direction)
        for each in known
        for data in each.counts
        if data.direction is not Direction.UP
        and 0 < data.lost.sum() < data.sent.sum()
        and not any(rates.saturated for rates in each.rates if rates.direction == data.direction)
    ]
    if not counts:
        return None
    sent, lost, direction = max(counts, key=lambda count: count[0])
    if direction is Direction.ROUND_TRIP:
        notes.append(Assumption("all losses happened on the downlink."))
    notes.append(Assumption("losses independent of each other: a single count of packets shows no bursts."))
    return StatedLosses(
        {"frame-loss": {"loss": share(lost / sent)}},
        f"{lost:,} of {sent:,} packets lost, {formats.share(lost / sent)}",
        "counted once",
        ("whether losses come in bursts: the packets were counted once",),
    )


def _usable(measurement: Measurement, notes: list[str]) -> list[Probes | Counts]:
    """Return the loss records of a measurement to which a model can be fitted."""
    parts: list[Probes | Counts] = [*measurement.probes, *measurement.counts]
    usable = []
    for data in parts:
        times = data.sent_s if isinstance(data, Probes) else data.time_s[data.sent > 0]
        if isinstance(data, Counts) and int(np.max(data.sent, initial=0)) > MOST_COUNTED:
            raise MeasurementError(measurement.file, TOO_MANY_COUNTED)
        if len(times) >= 2 and float(times[-1]) > float(times[0]):
            usable.append(data)
        elif len(times):
            what = (
                "are of probes at a single time and not used; probe for longer, such as 5 minutes."
                if isinstance(data, Probes)
                else "are a single count, which shows no bursts; measure in intervals, such as `iperf3 -i "
                "0.1`, or each packet, such as `ping -D -O` without -q."
            )
            notes.append(f"{Path(measurement.file).name}: the {data.direction} losses {what}")
    if measurement.losses and not usable:
        notes.append(f"{Path(measurement.file).name}: loss shares without packet counts are not used.")
    return usable
