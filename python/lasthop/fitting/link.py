"""A fitted link: losses, rate and delay, and the scenario made from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from lasthop._lasthop import Scenario, quantity
from lasthop.core import formats
from lasthop.core.display import Shown
from lasthop.fitting.doubt import doubts
from lasthop.fitting.losses import MOST_COUNTED, REPLICATES, TOO_MANY_COUNTED, FittedLosses, fit_losses
from lasthop.fitting.plan import ProbePlan, plan
from lasthop.fitting.scenario import (
    PERFECT,
    Rounded,
    Tables,
    channel,
    channel_of,
    micros,
    share,
    tables,
    toml,
    values,
)
from lasthop.fitting.timing import Timing, Variation, timing
from lasthop.measurement import Counts, Direction, Measurement, MeasurementError, Probes

LAST_HOP_RTT_S = 0.02
"""The default round-trip time of the last hop alone."""

RTT_S = 0.06
"""The default round-trip time, if no measurement has it."""

QUEUE_S = 0.1
"""The default queueing delay of a full queue, if no measurement filled it."""

FEWEST_QUEUED = 20
"""The minimum queue length in packets."""


class NoRateError(ValueError):
    """The rate of the link is unknown: neither measured nor stated."""

    def __init__(self) -> None:
        super().__init__(
            "the measurements do not determine the rate of the link; state it, such as --rate 8Mbps, or "
            "add a measurement that fills the link, such as `iperf3 -c SERVER -R -u -b 1G -t 30 -i 0.1 -J`"
        )


@dataclass(frozen=True, slots=True)
class StatedLosses:
    """Losses stated instead of fitted: by the user, or by a single count of packets.

    Attributes
    ----------
    channel : dict or str
        The channel, with numbers as the file of a scenario prints them.
    words : str
        A description for people.
    source : str
        Where they are from: `"as stated"` or `"counted once"`.
    unknown : tuple of str
        What they leave open, as phrases.
    """

    channel: Tables | str
    words: str
    source: str = "as stated"
    unknown: tuple[str, ...] = ()


class Assumption(str):
    """A note that states an assumption; its first word is *Assumed*."""

    __slots__ = ()

    def __new__(cls, what: str) -> Self:
        """Return the note."""
        return super().__new__(cls, f"Assumed: {what}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedLink(Shown):
    """A link fitted to measurements, or stated by the user.

    Attributes
    ----------
    files : tuple of str
        The measurements.
    down, up : FittedLosses or None
        The losses of each direction; None if unknown, which is treated as no losses.
    timing : Timing
        Rate and delay.
    rate_bps, up_rate_bps : float or None
        The rates for the scenario: measured, stated or assumed. None if unknown.
    rate_variation, up_rate_variation : Variation or None
        The variation of measured rates; None if they are nearly constant, or were stated.
    rtt_s, last_hop_rtt_s : float
        Round-trip time without queueing, and the share of the last hop: measured, stated or assumed.
    notes : tuple of str
        Warnings about the files, and each `Assumption`.
    stated : StatedLosses or None
        The losses of the downlink, if stated or counted once instead of fitted.
    doubts : tuple of str
        Contradictions within a file, and between the fitted link and the throughput of its files.
    signs : tuple of str
        What its round-trip times show of the kind of its last hop, as sentences.
    """

    files: tuple[str, ...]
    down: FittedLosses | None
    up: FittedLosses | None
    timing: Timing
    rate_bps: float | None
    up_rate_bps: float | None
    rate_variation: Variation | None
    up_rate_variation: Variation | None
    rtt_s: float
    last_hop_rtt_s: float
    notes: tuple[str, ...]
    stated: StatedLosses | None
    doubts: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def knows_uplink_losses(self) -> bool:
        """Whether the losses of the uplink are known."""
        return self.up is not None

    @property
    def is_wifi(self) -> bool:
        """Whether its last hop is a cell of `[wifi]`, in which packets share the air."""
        return False

    @property
    def is_certain(self) -> bool:
        """Whether its scenario is one, rather than one of the `draws` that a measurement allows."""
        return self.stated is not None

    @property
    def unmeasured(self) -> bool:
        """Whether there are measurements, and none of them has losses of the downlink."""
        return bool(self.files) and self.down is None and self.stated is None

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """The questions that the measurements leave open, as phrases."""
        both = ((self.down, "down"), (self.up, "up"))
        several = self.down is not None and self.up is not None
        unknown = tuple(
            f"{name}: {what}" if several else what
            for losses, name in both
            if losses is not None
            for what in losses.cannot_tell
        )
        if self.stated is not None:
            return (*self.stated.unknown, *unknown)
        return (
            ("the losses of the downlink: no measurement has any", *unknown) if self.unmeasured else unknown
        )

    @property
    def measure(self) -> ProbePlan:
        """The measurement that would answer the open questions of both directions."""
        known = [each for each in (self.down, self.up) if each is not None]
        plans = [plan(each) for each in known if each.cannot_tell] or [plan(each) for each in known[:1]]
        if self.unmeasured or not plans:
            plans.append(plan())
        longest = max(plans, key=lambda each: each.duration_s)
        return replace(longest, interval_s=min(each.interval_s for each in plans))

    def draws(self, count: int, *, mirrored: bool = False) -> list[dict[str, Any]]:
        """Return changes of its scenario that sample the uncertainty of the fitted losses evenly.

        Parameters
        ----------
        count : int
            The number of scenarios.
        mirrored : bool
            Whether an uplink without a measurement has the losses of the downlink, in each scenario.

        Returns
        -------
        list of dict
            Arguments of `Scenario.with_`, one for each scenario.
        """
        settings: list[dict[str, Any]] = [{} for _ in range(count)]
        # A two-dimensional low-discrepancy sequence (Roberts 2018, from the plastic number): any first few
        # draws cover the range evenly, and the two directions are not correlated.
        down, up = "radio.channel", "radio.uplink.channel"
        for keys, losses, step in (
            ([down, up] if mirrored and self.up is None else [down], self.down, 0.7548776662466927),
            ([up], self.up, 0.5698402909980532),
        ):
            if losses is None or not losses.draws:
                continue
            ranked = sorted(losses.draws, key=lambda model: model["loss"])
            for index in range(count):
                model = ranked[int((0.5 + index * step) % 1.0 * len(ranked))]
                settings[index].update(dict.fromkeys(keys, channel(model)))
        return settings

    @property
    def queue_packets(self) -> int:
        """The length of the queue in front of the link, in packets.

        Raises
        ------
        NoRateError
            If the rate is unknown.
        """
        if self.rate_bps is None:
            raise NoRateError
        filled = self.timing.queue_s
        queue_s = filled if filled is not None else max(QUEUE_S, self.rtt_s)
        return max(math.ceil(queue_s * self.rate_bps / (1500 * 8)), FEWEST_QUEUED)

    def toml(self, channel: Tables | str | None = None) -> str:
        """Return the file of the scenario: TOML, in which comments state the origin of the numbers.

        Parameters
        ----------
        channel : dict or str, optional
            A channel for the downlink in place of the fitted one.

        Raises
        ------
        NoRateError
            If the rate is unknown.
        """
        return toml(self, self._tables(channel))

    def scenario(self, channel: Tables | str | None = None) -> Scenario:
        """Return the scenario, which is equal to that of its file.

        Parameters
        ----------
        channel : dict or str, optional
            As in `toml`.

        Raises
        ------
        NoRateError
            If the rate is unknown.
        """
        name = f"fitted to {', '.join(self.files)}" if self.files else "a link as stated"
        return Scenario.from_tables(values(self._tables(channel)), name=name)

    def _tables(self, channel: Tables | str | None) -> Tables:
        if self.rate_bps is None or self.up_rate_bps is None:
            raise NoRateError
        own = channel_of(self.down) if self.stated is None else self.stated.channel
        return tables(self, self.rate_bps, self.up_rate_bps, channel or own)


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
    contradictions = [f"{each.file}: {doubt}." for each in known for doubt in each.doubts]
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
