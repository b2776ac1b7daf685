"""Figures of fitted losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from lasthop.fitting import Check, FittedLosses
from lasthop.measurement import Counts
from lasthop.plots import _style
from lasthop.plots._figure import Columns, panels_of, result

if TYPE_CHECKING:
    from lasthop.plots._figure import Drawn

_PANELS = {
    "bursts": ("burst length ({unit})", "bursts"),
    "gaps": ("gap between bursts ({unit})", "gaps"),
    "after_loss": ("{unit} after a lossy one", "{lossy} (%)"),
    "by_time": ("time (s)", "{lossy} (%)"),
}
"""The axes of each check. Of counts, an interval with any loss is lossy."""


def loss_checks(losses: FittedLosses, *, ax: Drawn | None = None) -> Drawn:
    """Draw the histograms of measured losses beside what the fitted model leads to.

    Parameters
    ----------
    losses : FittedLosses
        The fit, of a measurement with losses.
    ax : sequence of matplotlib.axes.Axes, optional
        Four axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or sequence of Axes
        Four panels: burst lengths, gaps, loss after a loss, and loss by time. Points are the measurement; the
        bands hold 95 % of what the model shows the same probes.

    Examples
    --------
    >>> import numpy as np
    >>> from lasthop.fitting import fit_losses
    >>> from lasthop.measurement import Direction, Probes
    >>> lost = np.arange(2000) % 50 == 0
    >>> found = fit_losses(Probes(Direction.DOWN, np.arange(2000) * 0.02, lost, None), replicates=20)
    >>> len(loss_checks(found).axes)
    4
    """
    with panels_of(_columns(losses.checks), 8.0, 5.2, len(_PANELS), ax, across=2) as (figure, axes):
        for panel, check in zip(axes, losses.checks, strict=False):
            _draw(panel, check, losses)
        for panel in axes[len(losses.checks) :]:
            panel.set_visible(False)
        if ax is None:
            figure.suptitle(f"{losses.direction}: {losses.best.family}", x=0.01, ha="left", fontsize=10)
    return result(figure, ax)


def _draw(panel: Axes, check: Check, losses: FittedLosses) -> None:
    counted = isinstance(losses.data, Counts)
    words = (
        {"unit": "intervals", "lossy": "intervals with losses"}
        if counted
        else {"unit": "packets", "lossy": "loss"}
    )
    label, unit = (axis.format(**words) for axis in _PANELS[check.name])
    place: npt.NDArray[np.float64]
    if check.name == "by_time":
        windows = len(check.observed)
        place = np.linspace(0.5, windows - 0.5, windows) * losses.duration_s / windows
    else:
        place = np.exp2(np.arange(len(check.observed), dtype=np.float64))
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    size = 100.0 if unit.endswith("(%)") else 1.0
    shown = np.isfinite(check.high)
    if check.name in ("bursts", "gaps"):
        used = np.flatnonzero((check.observed > 0) | (check.high > 0))
        shown &= np.arange(len(check.observed)) <= (used[-1] if len(used) else 0)
    place, low, high = place[shown], check.low[shown] * size, check.high[shown] * size
    panel.fill_between(place, low, high, color=_style.SKY, alpha=0.35, linewidth=0, label="model, 95 %")
    panel.plot(place, check.observed[shown] * size, "o", color=_style.INK, markersize=3.5, label="measured")
    panel.set_xlabel(label)
    panel.set_ylabel(unit)
    panel.set_ylim(bottom=0)
    failed = " (not as measured)" if check in losses.doubtful else ""
    panel.set_title(f"p = {check.p_value:.2g}{failed}")
    if check.name == "bursts":
        panel.legend(loc="upper right")


def _columns(checks: Sequence[Check]) -> Columns:
    """Return all histograms below each other."""
    return {
        "check": [check.name for check in checks for _ in check.observed],
        "class": [index for check in checks for index in range(len(check.observed))],
        "measured": [float(value) for check in checks for value in check.observed],
        "model_low": [float(value) for check in checks for value in check.low],
        "model_high": [float(value) for check in checks for value in check.high],
    }
