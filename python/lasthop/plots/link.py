"""Figures of links over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lasthop._lasthop import Scenario
from lasthop.plots._figure import panels_of, result

if TYPE_CHECKING:
    from lasthop.plots._figure import Drawn


def link_timing(
    scenario: Scenario,
    until: float,
    link: str | None = None,
    *,
    up: bool = False,
    seed: int = 1,
    run: int = 0,
    ax: Drawn | None = None,
) -> Drawn:
    """Draw the rate and the delay of a link that varies, against time.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    until : float
        The end, in seconds.
    link, up, seed, run
        As in `Scenario.link_timing`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw the rate into, without the delay, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, which carries the rate and the delay, or the axes that were given.

    Examples
    --------
    >>> import lasthop, lasthop.plots
    >>> scenario = lasthop.load("starlink")
    >>> lasthop.plots.link_timing(scenario, 30.0).axes[0].get_ylabel()
    'rate (Mbps)'
    """
    timing = scenario.link_timing(until, link, up=up, seed=seed, run=run)
    time = np.append(timing["time_s"], until)
    name = link or scenario.varying_links[0]
    delay = timing["delay_s"]
    # A delay that belongs to packets has no course over time.
    both = ax is None and bool(np.isfinite(delay).all() and np.ptp(delay) > 0)
    columns = [("rate_bps", 1e6, "rate (Mbps)"), ("delay_s", 1e-3, "delay (ms)")][: 1 + both]
    given = None if ax is None else [ax]
    with panels_of(timing, 8.0, 4.6 if both else 2.8, len(columns), given, sharex=True) as (figure, axes):
        for panel, (column, unit, label) in zip(axes, columns, strict=True):
            held = np.append(timing[column], timing[column][-1:]) / unit
            panel.plot(time, held, drawstyle="steps-post", gid=column, linewidth=1.0)
            panel.set_ylabel(label)
            panel.set_ylim(0, 1.1 * float(np.max(held)))
        axes[-1].set_xlim(0.0, until)
        axes[-1].set_xlabel("time (s)")
        axes[0].set_title(f"{name}, {'up' if up else 'down'}")
    return result(figure, ax)
