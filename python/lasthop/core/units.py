"""Names and units of metrics and settings, for tables and axes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lasthop._lasthop import better, unit

if TYPE_CHECKING:
    from lasthop.core.statistics import Kind

RATES = (("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9))
SIZES = (("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9))
_TIMES = (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_ENERGIES = (("nJ", 1e-9), ("µJ", 1e-6), ("mJ", 1e-3), ("J", 1.0))
_SCALES = {"bps": RATES, "B": SIZES, "s": _TIMES[2:], "J": _ENERGIES}
"""The units in which amounts are shown, by their basic unit, which ends the name of a metric."""
_KINDS: Mapping[str, Kind] = {"share": "share", "truth": "share", "index": "share", "count": "count"}

_SETTINGS = {
    "good": "good period",
    "bad": "bad period",
    "ber": "bit error rate",
    "good_ber": "bit error rate in good periods",
    "bad_ber": "bit error rate in bad periods",
    "mtu": "MTU",
    "limit": "time limit",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The name and unit in which a quantity is shown.

    Attributes
    ----------
    name : str
        The name in words.
    unit : str
        The unit; empty for counts.
    size : float
        The size of the unit in the quantity's basic unit.
    """

    name: str
    unit: str
    size: float

    @property
    def label(self) -> str:
        """The name followed by the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def metric_kind(metric: str) -> Kind:
    """Return what the values of a metric may be. A total of bits over time is a ratio: any number.

    Examples
    --------
    >>> metric_kind("goodput"), metric_kind("timeouts"), metric_kind("4.throughput_bps")
    ('share', 'count', 'amount')
    >>> metric_kind("traffic.voice.mos")
    'amount'
    """
    name = metric.rpartition(".")[2]
    if name == "throughput_total_bps":
        return "signed"
    return _KINDS.get(unit(name), "amount")


def better_of(metric: str) -> Literal["higher", "lower"] | None:
    """Return which values of a metric are better; None if it depends on the question.

    Examples
    --------
    >>> better_of("throughput_bps"), better_of("traffic.voice.lost_packets"), better_of("ebsn.notices_sent")
    ('higher', 'lower', None)
    """
    return better(metric)


def quantile_name(share: float) -> str:
    """Return the short name of a quantile.

    Examples
    --------
    >>> quantile_name(0.5), quantile_name(0.999)
    ('p50', 'p99.9')
    """
    return f"p{round(100 * share, 10):.12g}"


def metric_scale(metric: str, greatest: float) -> Scale:
    """Return the name and a suitable unit of a metric.

    Parameters
    ----------
    metric : str
        The metric's key, which ends with its basic unit.
    greatest : float
        The largest value shown, which selects the unit.

    Returns
    -------
    Scale
        The scale.

    Examples
    --------
    >>> metric_scale("throughput_bps", 8676.9).label
    'throughput (kbps)'
    >>> metric_scale("goodput", 1.0).label, metric_scale("link_attempts", 50.0).label
    ('goodput (%)', 'link attempts')
    >>> metric_scale("eln.marked_acks", 50.0).label
    'eln: marked acks'
    >>> metric_scale('connection."to D1".throughput_bps', 8e6).label
    'connection to D1: throughput (Mbps)'
    """
    of, _, name = metric.rpartition(".")
    kind, _, part = of.partition(".")
    if part:
        # A quoted name is a JSON string.
        plain = json.loads(part) if part.startswith('"') else part
        of = f"{kind} {plain}"
    whose = f"{of}: " if of else ""
    basic = unit(name)
    if basic in ("share", "truth"):
        return Scale(f"{whose}{name}", "%", 0.01)
    if basic not in _SCALES:
        return Scale(f"{whose}{_words(name)}", "", 1.0)
    symbol, size = _suitable(_SCALES[basic], greatest)
    return Scale(f"{whose}{_words(name.rpartition('_')[0])}", symbol, size)


def setting_scale(setting: str, basic: str, greatest: float) -> Scale:
    """Return the name and a suitable unit of a swept setting.

    Parameters
    ----------
    setting : str
        Its full key.
    basic : str
        Its basic unit, as `lasthop.core.quantity` has it.
    greatest : float
        The largest value shown.

    Returns
    -------
    Scale
        The scale.

    Examples
    --------
    >>> setting_scale("tcp.packet_size", "B", 1536.0).label
    'packet size (B)'
    >>> setting_scale("radio.channel.two-state.bad", "s", 4.0).label
    'bad period (s)'
    >>> setting_scale("wired.delay", "s", 0.2).label
    'wired delay (ms)'
    """
    table, _, last = setting.rpartition(".")
    name = _SETTINGS.get(last)
    if name is None:
        # A key such as "rate" needs its table to be understood.
        alone = "_" in last or not table
        name = _words(last if alone else f"{table.rpartition('.')[2]} {last}")
    if basic == "B":
        # Packet sizes are given in bytes, even large ones.
        symbol, size = ("B", 1.0) if greatest < 10_000 else _suitable(SIZES, greatest)
    elif basic in ("bps", "s"):
        symbol, size = _suitable(RATES if basic == "bps" else _TIMES, greatest)
    else:
        symbol, size = basic, 1.0
    return Scale(name, symbol, size)


def aligned(
    values: Iterable[float], spreads: Iterable[float], size: float = 1.0, sign: str = ""
) -> list[str]:
    """Format a column with two significant digits for the narrowest interval.

    Without intervals, or if all are of width zero, the smallest value has three digits. There are at most
    four decimals, or as many as two digits of the greatest value take.

    Parameters
    ----------
    values : iterable of float
        The values; NaN is a dash.
    spreads : iterable of float
        The half-widths of their intervals.
    size : float, default 1
        The size of the unit.
    sign : str, default ""
        "+" to sign positive values too.

    Returns
    -------
    list of str
        The cells.

    Examples
    --------
    >>> aligned([5681.0, 8096.4], [317.9, 20.7], size=1000)
    ['5.681', '8.096']
    >>> aligned([0.33114, 0.3328], [0.0, 0.0])
    ['0.331', '0.333']
    >>> aligned([0.000415], [0.0000021])
    ['0.00042']
    """
    values = list(values)
    places = _places(values, spreads, size)
    return ["-" if math.isnan(value) else f"{value / size:{sign},.{places}f}" for value in values]


def _places(values: list[float], spreads: Iterable[float], size: float) -> int:
    greatest = max((abs(value) / size for value in values if math.isfinite(value)), default=0.0)
    most = decimals([greatest], 4)
    known = [spread / size for spread in spreads if spread > 0]
    if known:
        return min(most, max(0, 1 - math.floor(math.log10(min(known)))))
    least = min((abs(value) / size for value in values if value and math.isfinite(value)), default=1.0)
    return min(most, max(2, 2 - math.floor(math.log10(least))))


def decimals(values: Iterable[float], least: int) -> int:
    """Return the decimals that two significant digits of each value take: at least `least`, at most nine.

    Examples
    --------
    >>> decimals([0.0, 0.00042, 3.1], 3), decimals([0.052], 3), decimals([0.0], 3)
    (5, 3, 3)
    """
    smallest = min((abs(value) for value in values if value and math.isfinite(value)), default=1.0)
    return min(9, max(least, 1 - math.floor(math.log10(smallest))))


def interval_cells(
    values: Iterable[float],
    ends: tuple[Iterable[float], Iterable[float]],
    spreads: Iterable[float],
    size: float = 1.0,
    sign: str = "",
) -> tuple[str, list[str]]:
    """Format the column of 95 % intervals beside a column of `aligned`, and its head.

    An interval is half its width, or both its ends if the value, as printed, is not in its middle.

    Parameters
    ----------
    values : iterable of float
        The values.
    ends : (iterable of float, iterable of float)
        The lower and upper ends of their intervals; NaN is a dash.
    spreads, size, sign
        As of `aligned`.

    Examples
    --------
    >>> interval_cells([5.681, 8.096], ([5.363, 8.075], [5.999, 8.117]), [0.318, 0.021])
    ('± 95 %', ['0.318', '0.021'])
    >>> interval_cells([1.057, 1.146], ([1.017, 1.037], [1.097, 1.587]), [0.04])
    ('95 %', ['± 0.040', '1.037 to 1.587'])
    """
    values, lows, highs, spreads = list(values), list(ends[0]), list(ends[1]), list(spreads)
    halves = [(high - low) / 2 for low, high in zip(lows, highs, strict=True)]
    cells = aligned(halves, spreads, size)
    unit = size * 10.0 ** -_places(halves, spreads, size)
    is_skewed = [
        abs((low + high) / 2 - value) > unit for value, low, high in zip(values, lows, highs, strict=True)
    ]
    if not any(is_skewed):
        return "± 95 %", cells
    both = zip(aligned(lows, spreads, size, sign), aligned(highs, spreads, size, sign), strict=True)
    return "95 %", [
        f"{low} to {high}" if skewed else cell if cell == "-" else f"± {cell}"
        for cell, skewed, (low, high) in zip(cells, is_skewed, both, strict=True)
    ]


def quantile_cells(values: Iterable[float], spreads: Iterable[float], size: float = 1.0) -> list[str]:
    """Format a column of quantiles over runs: as they are if all are whole or half, else as `aligned`.

    Examples
    --------
    >>> quantile_cells([0.0, 0.5, 1200.0], [1.0, 0.5, 2.0])
    ['0', '0.5', '1,200']
    >>> quantile_cells([1.0, 0.25], [0.5, 0.25])
    ['1.00', '0.25']
    """
    values = list(values)
    halves = [2 * value / size for value in values if not math.isnan(value)]
    if not all(half.is_integer() for half in halves):
        return aligned(values, spreads, size)
    return [
        "-" if math.isnan(value) else f"{value / size:,.{0 if (value / size).is_integer() else 1}f}"
        for value in values
    ]


def _suitable(units: tuple[tuple[str, float], ...], greatest: float) -> tuple[str, float]:
    fitting = [unit for unit in units if unit[1] <= abs(greatest)]
    return fitting[-1] if fitting else units[0]


def _words(name: str) -> str:
    return name.replace("_", " ")
