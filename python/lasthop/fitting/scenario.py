"""The scenario of a fitted link, as TOML."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.core import formats
from lasthop.core.formats import plural
from lasthop.fitting.losses import FittedLosses, Model
from lasthop.fitting.timing import Variation

if TYPE_CHECKING:
    from lasthop.fitting.link import FittedLink

FASTEST_WIRED_BPS = 1e9
"""The minimum rate of the wired path; at least ten times the rate of the wireless link."""

SHORTEST_S = 1e-5
"""The shortest period in a scenario, since lengths are printed in microseconds."""


def toml(link: FittedLink, rate_bps: float, up_rate_bps: float, down: str) -> str:
    """Return the scenario of a link as TOML; comments state the origin of its numbers.

    Parameters
    ----------
    link : FittedLink
        The link.
    rate_bps, up_rate_bps : float
        The rates of both directions.
    down : str
        The channel of the downlink as TOML.
    """
    wired = max(link.rtt_s - link.last_hop_rtt_s, 0.0) / 2
    hop = link.last_hop_rtt_s / 2
    of = ", ".join(Path(file).name for file in link.files)
    lines = [f"# Fitted by `lasthop fit` to {_comment(of)}.", "#"] if of else []
    for losses, name in ((link.down, "down"), (link.up, "up")):
        if losses is not None:
            counted = f"{losses.lost:,} of {plural(losses.sent, 'packet')} lost"
            lines.append(f"# {name}: {counted}; {losses.best.family}:")
            lines += [f"#   {line}" for line in losses.lines()]
    lines += [f"# Undetermined: {_comment(what)}." for what in link.cannot_tell]
    lines += [f"# {_comment(note)}" for note in link.notes]
    delay = f'"{formats.seconds(hop)}"'
    if (course := link.timing.delay_variation) is not None:
        median = f'median = "{formats.seconds(course.median)}"'
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
        f'rate = "{formats.rate(max(FASTEST_WIRED_BPS, 10 * rate_bps))}"',
        f'delay = "{formats.seconds(wired)}"' if wired > 0 else 'delay = "0 s"',
        "",
        "[radio]",
        f"rate = {_rate(rate_bps, link.rate_variation)}",
        f"delay = {delay}",
        f'queue = "{link.queue_packets} packets"',
        f"channel = {down}",
        "",
        "[radio.uplink]",
        f"rate = {_rate(up_rate_bps, link.up_rate_variation)}",
        f'delay = "{formats.seconds(hop)}"',
        f"channel = {channel_of(link.up)}",
        "",
    ]
    return "\n".join(lines)


def channel(model: Model) -> str:
    """Return the channel of a scenario for a loss model, as an inline TOML table."""
    if math.isnan(model["bad_s"]):
        loss = model["loss"]
        return f"{{ frame-loss = {{ loss = {loss:.9f} }} }}" if loss > 0 else '"perfect"'
    losses = f"loss_good = {model['loss_good']:.9f}, loss_bad = {model['loss_bad']:.9f}"
    if math.isnan(model["good_sigma"]) and math.isnan(model["bad_sigma"]):
        # Lengths are printed in microseconds. Longer periods in the same proportion look alike to packets.
        longer = max(1.0, SHORTEST_S / min(model["good_s"], model["bad_s"]))
        stays = f'good = "{seconds(longer * model["good_s"])}", bad = "{seconds(longer * model["bad_s"])}"'
        return f"{{ gilbert-elliott = {{ {stays}, {losses} }} }}"
    laws = ", ".join(_law(name, model[f"{name}_s"], model[f"{name}_sigma"]) for name in ("good", "bad"))
    return f"{{ semi-markov = {{ {laws}, {losses} }} }}"


def channel_of(losses: FittedLosses | None) -> str:
    """Return the channel of fitted losses as TOML; `"perfect"` for None."""
    return '"perfect"' if losses is None else channel(losses.best.model)


def _law(name: str, mean_s: float, sigma: float) -> str:
    if math.isnan(sigma):
        return f'{name}.exponential = "{seconds(mean_s)}"'
    return f'{name}.lognormal = {{ mean = "{seconds(mean_s)}", sigma = {min(sigma, 5.0):.4f} }}'


def seconds(value: float) -> str:
    """Format a duration for a scenario, to the microsecond; capped at a century."""
    return f"{min(max(value, 1e-6), 3e9):.6f} s"


def _lognormal(course: Variation) -> str:
    step = max(course.step_s, 0.01)
    correlation = formats.seconds(course.correlation_s) if course.correlation_s > 0 else "0 s"
    return f'sigma = {course.sigma:.3f}, step = "{formats.seconds(step)}", correlation = "{correlation}" }}'


def _rate(rate_bps: float, variation: Variation | None) -> str:
    mean = f'"{formats.rate(rate_bps)}"'
    return mean if variation is None else f"{{ lognormal = {{ mean = {mean}, {_lognormal(variation)} }}"


def _comment(words: str) -> str:
    """Replace line breaks and control characters, so that a text stays within a TOML comment."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _plain(name: str) -> str:
    """Replace characters that a TOML string would have to escape."""
    return "".join(letter if letter.isprintable() and letter not in '"\\' else "?" for letter in name)
