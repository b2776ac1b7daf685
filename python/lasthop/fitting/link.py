"""A fitted link: losses, rate and delay, and the scenario made from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from lasthop._lasthop import Scenario
from lasthop.core.display import Shown
from lasthop.core.formats import plural
from lasthop.core.names import PLAIN
from lasthop.fitting.losses import FittedLosses
from lasthop.fitting.plan import ProbePlan, plan
from lasthop.fitting.scenario import (
    FASTEST_WIRED_BPS,
    Scaled,
    Tables,
    bps,
    channel,
    channel_of,
    in_comment,
    in_string,
    lognormal,
    rate,
    seconds,
    seconds_or_zero,
    toml_lines,
    values,
)
from lasthop.fitting.timing import Timing, Variation

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
        of = self._names
        lines = [f"# Fitted by `lasthop fit` to {in_comment(of)}.", "#"] if of else []
        for losses, name in ((self.down, "down"), (self.up, "up")):
            if losses is not None:
                counted = f"{losses.lost:,} of {plural(losses.sent, 'packet')} lost"
                lines.append(f"# {name}: {counted}; {losses.best.family}:")
                lines += [f"#   {line}" for line in losses.lines()]
        lines += [f"# Undetermined: {in_comment(what)}." for what in self.cannot_tell]
        lines += [f"# {in_comment(note)}" for note in self.notes]
        return "\n".join([*lines, "", *toml_lines("", self._tables(channel)), ""])

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
        of = self._names
        return {
            "title": in_string(f"Fitted to {of}" if of else "A link as stated"),
            "limit": Scaled("30", "s"),
            "sender": "linux",
            "schemes": [PLAIN],
            "transfer": {"size": "unlimited"},
            "wired": {
                "rate": bps(max(FASTEST_WIRED_BPS, 10 * self.rate_bps)),
                "delay": seconds_or_zero(max(self.rtt_s - self.last_hop_rtt_s, 0.0) / 2),
            },
            "radio": self._radio(self.rate_bps, self.up_rate_bps, channel or own),
        }

    def _radio(self, rate_bps: float, up_rate_bps: float, down: Tables | str) -> Tables:
        hop = seconds(self.last_hop_rtt_s / 2)
        delay: Scaled | Tables = hop
        if (course := self.timing.delay_variation) is not None:
            delay = {"lognormal": {"least": hop, "median": seconds(course.median), **lognormal(course)}}
        return {
            "rate": rate(rate_bps, self.rate_variation),
            "delay": delay,
            "queue": Scaled(str(self.queue_packets), "packets"),
            "channel": down,
            "uplink": {
                "rate": rate(up_rate_bps, self.up_rate_variation),
                "delay": hop,
                "channel": channel_of(self.up),
            },
        }

    @property
    def _names(self) -> str:
        return ", ".join(Path(file).name for file in self.files)
