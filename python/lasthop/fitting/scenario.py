"""Tables of a scenario whose numbers a file prints with the digits that are known."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lasthop._lasthop import Quantity
from lasthop.core import formats
from lasthop.fitting.losses import FittedLosses, Model
from lasthop.fitting.timing import Variation

FASTEST_WIRED_BPS = 1e9
"""The minimum rate of the wired path; at least ten times the rate of the wireless link."""

SHORTEST_S = 1e-5
"""The shortest period in a scenario, whose lengths are whole microseconds."""

PERFECT = "perfect"
"""The channel without losses."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """A number rounded to some decimals, all of which its file prints.

    Attributes
    ----------
    number : float
        The number.
    decimals : int
        Its decimals.
    unit : str
        Its unit; empty for a plain number.
    """

    number: float
    decimals: int
    unit: str = ""

    @property
    def value(self) -> float | Quantity:
        """The value of the setting."""
        rounded = round(self.number, self.decimals)
        return Quantity(rounded, self.unit) if self.unit else rounded

    def __str__(self) -> str:
        """Return the value in TOML."""
        text = f"{self.number:.{self.decimals}f}"
        return f'"{text} {self.unit}"' if self.unit else text


@dataclass(frozen=True, slots=True)
class Scaled:
    """A number with three digits, and the unit that suits it.

    Attributes
    ----------
    digits, unit : str
        The number and its unit.
    """

    digits: str
    unit: str

    @property
    def value(self) -> Quantity:
        """The value of the setting."""
        return Quantity(float(self.digits), self.unit)

    def __str__(self) -> str:
        """Return the value in TOML."""
        return f'"{self.digits} {self.unit}"'


Tables = dict[str, Any]
"""Tables of a scenario, whose numbers may be `Rounded` or `Scaled`."""


def values(tables: Any) -> Any:
    """Return tables with plain numbers, as `Scenario.with_` takes them."""
    if isinstance(tables, Mapping):
        return {key: values(value) for key, value in tables.items()}
    return tables.value if isinstance(tables, Rounded | Scaled) else tables


def toml_lines(path: str, table: Tables) -> list[str]:
    """Return the lines of a table, and of the tables in it that have a heading of their own."""
    headed = [
        key for key, value in table.items() if isinstance(value, dict) and (not path or key == "uplink")
    ]
    lines = [f"{key} = {_inline(value)}" for key, value in table.items() if key not in headed]
    for key in headed:
        place = f"{path}.{key}".lstrip(".")
        lines += ["", f"[{place}]", *toml_lines(place, table[key])]
    return lines


def _inline(value: Any) -> str:
    """Return a value in TOML, in one line. A table with a single one in it has a dotted key."""
    if not isinstance(value, Mapping):
        return str(value) if isinstance(value, Rounded | Scaled) else json.dumps(value, ensure_ascii=False)
    entries = []
    for key, inner in value.items():
        if isinstance(inner, Mapping) and key in ("good", "bad"):
            ((law, inner),) = inner.items()
            key = f"{key}.{law}"
        entries.append(f"{key} = {_inline(inner)}")
    return f"{{ {', '.join(entries)} }}"


def channel(model: Model) -> Any:
    """Return the channel of a loss model, as `Scenario.with_` takes it."""
    return values(channel_table(model))


def channel_table(model: Model) -> Tables | str:
    """Return the channel of a loss model, with numbers as its file prints them."""
    if math.isnan(model["bad_s"]):
        loss = model["loss"]
        return {"frame-loss": {"loss": share(loss)}} if loss > 0 else PERFECT
    losses = {"loss_good": share(model["loss_good"]), "loss_bad": share(model["loss_bad"])}
    if math.isnan(model["good_sigma"]) and math.isnan(model["bad_sigma"]):
        # Longer periods in the same proportion look alike to packets.
        longer = max(1.0, SHORTEST_S / min(model["good_s"], model["bad_s"]))
        stays = {name: micros(longer * model[f"{name}_s"]) for name in ("good", "bad")}
        return {"gilbert-elliott": {**stays, **losses}}
    laws = {name: _law(model[f"{name}_s"], model[f"{name}_sigma"]) for name in ("good", "bad")}
    return {"semi-markov": {**laws, **losses}}


def channel_of(losses: FittedLosses | None) -> Tables | str:
    """Return the channel of fitted losses, with numbers as its file prints them; a perfect one for None."""
    return PERFECT if losses is None else channel_table(losses.best.model)


def _law(mean_s: float, sigma: float) -> Tables:
    if math.isnan(sigma):
        return {"exponential": micros(mean_s)}
    return {"lognormal": {"mean": micros(mean_s), "sigma": Rounded(min(sigma, 5.0), 4)}}


def micros(value: float) -> Rounded:
    """Round a duration for a scenario to the microsecond; capped at a century."""
    return Rounded(min(max(value, 1e-6), 3e9), 6, "s")


def share(loss: float) -> Rounded:
    """Round a share of lost packets for a scenario."""
    return Rounded(loss, 9)


def lognormal(course: Variation) -> Tables:
    """Return the keys of a lognormal process but its level."""
    return {
        "sigma": Rounded(course.sigma, 3),
        "step": seconds(max(course.step_s, 0.01)),
        "correlation": seconds_or_zero(course.correlation_s),
    }


def seconds(value: float) -> Scaled:
    """Return a duration with three digits."""
    return Scaled(*formats.scaled_seconds(value))


def seconds_or_zero(value: float) -> Scaled:
    """Return a duration with three digits, which may be zero."""
    return seconds(value) if value > 0 else Scaled("0", "s")


def bps(value: float) -> Scaled:
    """Return a rate with three digits."""
    return Scaled(*formats.scaled_rate(value))


def rate(rate_bps: float, variation: Variation | None) -> Scaled | Tables:
    """Return a rate, or the process of one that varies."""
    mean = bps(rate_bps)
    return mean if variation is None else {"lognormal": {"mean": mean, **lognormal(variation)}}


def in_comment(words: str) -> str:
    """Replace line breaks and control characters, so that a text stays within a TOML comment."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def in_string(name: str) -> str:
    """Replace characters that a TOML string would have to escape."""
    return "".join(letter if letter.isprintable() and letter not in '"\\' else "?" for letter in name)
