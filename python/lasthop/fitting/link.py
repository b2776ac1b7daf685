"""A link as fitted: its losses, rate and delay, and the scenario that has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lasthop import notebook
from lasthop._lasthop import Scenario
from lasthop.fitting import text
from lasthop.fitting.losses import NAMES, FittedLosses, Model, fit_losses, lost_copies
from lasthop.fitting.timing import Timing, Variation, timing
from lasthop.measurement import Counts, Direction, Measurement, Probes, read
from lasthop.study.quantity import quantity

LAST_HOP_RTT_S = 0.02
"""The share of the round-trip time that is taken for the last hop's, where it is not stated."""

SHORTEST_S = 1e-5
"""Periods of a scenario are not made shorter: they are printed in microseconds."""

RTT_S = 0.06
"""The round-trip time where nothing has measured it."""

QUEUE_S = 0.1
"""The length of the queue in time where no measurement filled it."""

FEWEST_QUEUED = 20
"""Packets that a queue holds at least."""

FASTEST_WIRED_BPS = 1e9


class NoRateError(ValueError):
    """A scenario of a link whose rate is unknown: no measurement says it, and none was stated."""

    def __init__(self) -> None:
        super().__init__(
            "the measurements do not say what rate the link has; state it, such as --rate 8Mbps, or add a "
            "measurement that fills the link, such as `iperf3 -c SERVER -R -u -b 1G -t 30 -i 0.1 -J`"
        )


@dataclass(frozen=True, slots=True)
class Stated:
    """Losses as their owner states them.

    Attributes
    ----------
    channel : str
        The channel as TOML.
    words : str
        The same in words.
    """

    channel: str
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class FittedLink:
    """A link.

    Attributes
    ----------
    files : tuple of str
        The measurements.
    down, up : FittedLosses or None
        The losses of each direction; None where nothing is known, which counts as no losses.
    timing : Timing
        Rate and delay.
    rate_bps, up_rate_bps : float or None
        The rates as in the scenario, measured, stated or assumed; None if unknown.
    rtt_s, last_hop_rtt_s : float
        Round-trip time without queues, and the last hop's share of it, likewise.
    notes : tuple of str
        What was noticed in the files, and assumed.
    stated : Stated or None
        The losses of the downlink, if they were stated and not measured.
    """

    files: tuple[str, ...]
    down: FittedLosses | None
    up: FittedLosses | None
    timing: Timing
    rate_bps: float | None
    up_rate_bps: float | None
    rtt_s: float
    last_hop_rtt_s: float
    notes: tuple[str, ...]
    stated: Stated | None = None

    def __repr__(self) -> str:
        """Return its source, rate, round trip and losses."""
        return notebook.fitted_text(self)

    def _repr_html_(self) -> str:
        return notebook.fitted_html(self)

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """What the measurements do not say."""
        both = ((self.down, "down"), (self.up, "up"))
        several = self.down is not None and self.up is not None
        return tuple(
            f"{name}: {what}" if several else what
            for losses, name in both
            if losses is not None
            for what in losses.cannot_tell
        )

    def draws(self, count: int) -> list[list[str]]:
        """Return settings of scenarios that represent what is known of the losses, evenly spread.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        list of list of str
            Overrides of `lasthop.load`, one list for each scenario.
        """
        settings: list[list[str]] = [[] for _ in range(count)]
        # Two sequences that fill the unit square evenly: the first few draws represent all, and those of both
        # directions are independent of each other (Roberts 2018, the plastic number).
        for key, losses, step in (
            ("radio.channel", self.down, 0.7548776662466927),
            ("radio.uplink.channel", self.up, 0.5698402909980532),
        ):
            if losses is None or not losses.draws:
                continue
            ranked = sorted(losses.draws, key=lambda model: model["loss"])
            for index in range(count):
                model = ranked[int((0.5 + index * step) % 1.0 * len(ranked))]
                settings[index].append(f"{key}={channel(model)}")
        return settings

    @property
    def queue_packets(self) -> int:
        """The length of the queue before the link.

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

    def toml(self, channel: str | None = None) -> str:
        """Return the scenario, with what its numbers rest on as comments.

        Parameters
        ----------
        channel : str, optional
            Another channel of the downlink, as TOML.

        Raises
        ------
        NoRateError
            If the rate is unknown.
        """
        own = _channel(self.down) if self.stated is None else self.stated.channel
        return _toml(self, channel or own)

    def scenario(self) -> Scenario:
        """Return the scenario.

        Raises
        ------
        NoRateError
            If the rate is unknown.
        """
        return Scenario.parse(self.toml(), name=f"fitted to {', '.join(self.files)}")


def fit(
    measurements: Sequence[Measurement | str | Path] | Measurement | str | Path,
    *,
    rate_bps: float | None = None,
    up_rate_bps: float | None = None,
    rtt_s: float | None = None,
    last_hop_rtt_s: float | None = None,
    seed: int = 1,
    replicates: int = 200,
    jobs: int | None = None,
) -> FittedLink:
    """Fit a link to one or several measurements of it.

    Parameters
    ----------
    measurements : Measurement, str or Path, or a sequence of them
        What was measured, or files that `lasthop.measurement.read` reads.
    rate_bps, up_rate_bps : float, optional
        The rates of the link, where known better than the measurements say. The uplink's is by default that
        of the downlink.
    rtt_s, last_hop_rtt_s : float, optional
        The round-trip time without queues, and the last hop's share of it.
    seed, replicates, jobs
        As in `fit_losses`.

    Returns
    -------
    FittedLink
        The link.

    Raises
    ------
    MeasurementError
        If a file cannot be read.
    ValueError
        If an interval counts too many packets.
    """
    several = [measurements] if isinstance(measurements, Measurement | str | Path) else list(measurements)
    known = [each if isinstance(each, Measurement) else read(each) for each in several]
    found = timing(known)
    notes = [note for each in known for note in each.notes] + list(found.notes)
    rate = rate_bps if rate_bps is not None else found.down_bps
    up_rate = up_rate_bps if up_rate_bps is not None else found.up_bps
    if up_rate is None and rate is not None:
        up_rate = rate
        notes.append("Assumed: the uplink has the rate of the downlink.")
    rtt = rtt_s if rtt_s is not None else found.rtt_s
    if rtt is None:
        rtt = RTT_S
        notes.append(
            f"Assumed: a round-trip time of {text.seconds(rtt)}, which nothing has measured; state --rtt."
        )
    last_hop = last_hop_rtt_s
    if last_hop is None:
        last_hop = min(LAST_HOP_RTT_S, rtt / 2)
        notes.append(
            f"Assumed: {text.seconds(last_hop)} of the round-trip time of {text.seconds(rtt)} are the last "
            "hop's; a ping to its other end, often the first that traceroute shows, says (--last-hop-rtt)."
        )
    last_hop = min(last_hop, rtt)
    parts = _losses(known, notes)
    fitted = {
        direction: fit_losses(data, seed=seed, replicates=replicates, jobs=jobs)
        for direction, data in parts.items()
    }
    down, up = fitted.get(Direction.DOWN), fitted.get(Direction.UP)
    if (trip := fitted.get(Direction.ROUND_TRIP)) is not None:
        down = trip
    if down is None and up is None:
        notes.append("Assumed: no losses, of which nothing is known.")
    if found.queue_s is None:
        notes.append("Assumed: a queue of 100 ms, or of a round trip if that is longer.")
    files = tuple(each.file for each in known)
    return FittedLink(files, down, up, found, rate, up_rate, rtt, last_hop, tuple(dict.fromkeys(notes)))


def state(
    rate_bps: float,
    rtt_s: float,
    *,
    loss: float = 0.0,
    burst: str | None = None,
    up_rate_bps: float | None = None,
    last_hop_rtt_s: float | None = None,
) -> FittedLink:
    """Return a link by the numbers that its owner knows.

    Parameters
    ----------
    rate_bps, rtt_s : float
        Rate, and round-trip time without queues.
    loss : float, default 0
        Share of the packets that are lost towards the user.
    burst : str, optional
        Mean burst of the losses in packets or time, such as `"5"` or `"40 ms"`. By default losses are
        independent.
    up_rate_bps, last_hop_rtt_s
        As in `fit`.

    Raises
    ------
    ValueError
        If the loss is no share, or the burst is shorter than independent losses have.
    """
    if not 0 <= loss < 1:
        raise ValueError(f"found a loss of {loss:g}, expected a share below 1, such as 0.02")
    share, words = f"{loss:.9f}", f"{text.share(loss)} of the packets lost"
    if loss == 0:
        stated = Stated('"perfect"', "no losses")
    elif burst is None:
        stated = Stated(f"{{ frame-loss = {{ loss = {share} }} }}", f"{words}, independent of each other")
    else:
        found = quantity(burst)
        if found is None or found[1] not in ("", "s") or "%" in burst or not 0 < found[0] < math.inf:
            raise ValueError(
                f"found a burst of {burst!r}, expected packets in a row or a duration, such as 5 or 40ms"
            )
        if found[1] == "" and found[0] * (1 - loss) < 1:
            raise ValueError(
                f"found bursts of {burst} packets at a loss of {text.share(loss)}, where independent losses "
                f"have {1 / (1 - loss):.3g}; state longer ones, or leave the burst out"
            )
        length = f"{found[0]:.9f}" if found[1] == "" else f'"{_seconds(found[0])}"'
        mean = f"{found[0]:g} packets" if found[1] == "" else text.seconds(found[0])
        stated = Stated(
            f"{{ gilbert = {{ loss = {share}, burst = {length} }} }}",
            f"{words}, in bursts of {mean} on average",
        )
    known = fit([], rate_bps=rate_bps, up_rate_bps=up_rate_bps, rtt_s=rtt_s, last_hop_rtt_s=last_hop_rtt_s)
    notes = tuple(note for note in known.notes if "no losses" not in note)
    return replace(known, stated=stated, notes=notes)


def _losses(known: Sequence[Measurement], notes: list[str]) -> dict[Direction, Probes | Counts]:
    """Choose what the losses are fitted to: for each direction the record with the most packets.

    A test that fills the link loses packets in its queue, too. It is used where there is nothing else, and so
    are round trips where nothing says in which direction a packet was lost.
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
            f"Assumed: the {direction} losses are the channel's. The test filled the link, so that its queue "
            "may have dropped packets, too."
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
                notes.append(f"Assumed: no losses {direction}, of which nothing is known.")
    elif Direction.ROUND_TRIP in chosen and bool(np.any(chosen[Direction.ROUND_TRIP].lost)):
        notes.append(
            "Assumed: all losses are the downlink's. Round trips do not say in which direction a packet was "
            "lost; irtt does."
        )
    return chosen


def _usable(measurement: Measurement, notes: list[str]) -> list[Probes | Counts]:
    """Return the losses of a measurement that a model can be fitted to."""
    parts: list[Probes | Counts] = [*measurement.probes, *measurement.counts]
    usable = []
    for data in parts:
        times = data.sent_s if isinstance(data, Probes) else data.time_s[data.sent > 0]
        if len(times) >= 2 and float(times[-1]) > float(times[0]):
            usable.append(data)
        elif len(times):
            notes.append(
                f"{Path(measurement.file).name}: the {data.direction} losses are one count and not used; "
                "measure in intervals, such as `iperf3 -i 0.1`."
            )
    if measurement.losses and not usable:
        notes.append(
            f"{Path(measurement.file).name}: shares of losses without numbers of packets are not used."
        )
    return usable


def channel(model: Model) -> str:
    """Return a model as a channel of a scenario, an inline table of TOML."""
    if math.isnan(model["bad_s"]):
        loss = model["loss"]
        return f"{{ frame-loss = {{ loss = {loss:.9f} }} }}" if loss > 0 else '"perfect"'
    losses = f"loss_good = {model['loss_good']:.9f}, loss_bad = {model['loss_bad']:.9f}"
    if math.isnan(model["good_sigma"]) and math.isnan(model["bad_sigma"]):
        # Lengths are printed in microseconds; longer periods of the same shares are alike to packets.
        longer = max(1.0, SHORTEST_S / min(model["good_s"], model["bad_s"]))
        stays = f'good = "{_seconds(longer * model["good_s"])}", bad = "{_seconds(longer * model["bad_s"])}"'
        return f"{{ gilbert-elliott = {{ {stays}, {losses} }} }}"
    laws = ", ".join(_law(name, model[f"{name}_s"], model[f"{name}_sigma"]) for name in ("good", "bad"))
    return f"{{ semi-markov = {{ {laws}, {losses} }} }}"


def _channel(losses: FittedLosses | None) -> str:
    return '"perfect"' if losses is None else channel(losses.best.model)


def _law(name: str, mean_s: float, sigma: float) -> str:
    if math.isnan(sigma):
        return f'{name}.exponential = "{_seconds(mean_s)}"'
    return f'{name}.lognormal = {{ mean = "{_seconds(mean_s)}", sigma = {min(sigma, 5.0):.4f} }}'


def _seconds(value: float) -> str:
    """Return a length that a scenario takes, exact to a microsecond; centuries are forever."""
    return f"{min(max(value, 1e-6), 3e9):.6f} s"


def _lognormal(course: Variation) -> str:
    step = max(course.step_s, 0.01)
    correlation = text.seconds(course.correlation_s) if course.correlation_s > 0 else "0 s"
    return f'sigma = {course.sigma:.3f}, step = "{text.seconds(step)}", correlation = "{correlation}" }}'


def describe(losses: FittedLosses) -> list[str]:
    """Return the parameters of the chosen model in lines."""
    lines = []
    for parameter in losses.parameters:
        spread = text.between(parameter.low, parameter.high, parameter.write)
        lines.append(f"{NAMES[parameter.name]} {parameter.write(parameter.value)} ({spread})")
    if losses.parameter("bad_s") is not None:
        model = losses.best.model
        lines.append(
            f"three copies at once: {text.share(lost_copies(model, 3))} lost, where independent losses would "
            f"leave {text.share(model['loss'] ** 3)}"
        )
    return lines


def _toml(link: FittedLink, channel: str) -> str:
    if link.rate_bps is None or link.up_rate_bps is None:
        raise NoRateError
    wired = max(link.rtt_s - link.last_hop_rtt_s, 0.0) / 2
    hop = link.last_hop_rtt_s / 2
    of = ", ".join(Path(file).name for file in link.files)
    lines = [f"# Fitted by `lasthop fit` to {_line(of)}.", "#"] if of else []
    for losses, name in ((link.down, "down"), (link.up, "up")):
        if losses is not None:
            lines.append(f"# {name}: {losses.lost:,} of {losses.sent:,} packets lost; {losses.best.family}:")
            lines += [f"#   {line}" for line in describe(losses)]
    lines += [f"# Cannot be told: {_line(what)}." for what in link.cannot_tell]
    lines += [f"# {_line(note)}" for note in link.notes]
    rate = f'"{text.rate(link.rate_bps)}"'
    if link.timing.down_variation is not None and link.rate_bps == link.timing.down_bps:
        rate = f"{{ lognormal = {{ mean = {rate}, {_lognormal(link.timing.down_variation)} }}"
    delay = f'"{text.seconds(hop)}"'
    if (course := link.timing.delay_variation) is not None:
        median = f'median = "{text.seconds(course.median)}"'
        delay = f"{{ lognormal = {{ least = {delay}, {median}, {_lognormal(course)} }}"
    lines += [
        "",
        f'title = "{_plain(f"Fitted to {of}" if of else "A link as stated")}"',
        'limit = "30 s"',
        'sender = "linux"',
        'schemes = ["basic"]',
        "",
        "[transfer]",
        'size = "unlimited"',
        "",
        "[wired]",
        f'rate = "{text.rate(max(FASTEST_WIRED_BPS, 10 * link.rate_bps))}"',
        f'delay = "{text.seconds(wired)}"' if wired > 0 else 'delay = "0 s"',
        "",
        "[radio]",
        f"rate = {rate}",
        f"delay = {delay}",
        f'queue = "{link.queue_packets} packets"',
        f"channel = {channel}",
        "",
        "[radio.uplink]",
        f'rate = "{text.rate(link.up_rate_bps)}"',
        f'delay = "{text.seconds(hop)}"',
        f"channel = {_channel(link.up)}",
        "",
    ]
    return "\n".join(lines)


def _line(text: str) -> str:
    """Return a text that stays within a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _plain(name: str) -> str:
    """Return a name that a TOML string takes as it is."""
    return "".join(letter if letter.isprintable() and letter not in '"\\' else "?" for letter in name)
