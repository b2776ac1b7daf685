"""Figures of links over time."""

from __future__ import annotations

import numpy as np

from lasthop import Scenario
from lasthop.plots._figure import DataFigure
from lasthop.plots._style import style


def link_timing(
    scenario: Scenario,
    until: float,
    link: str | None = None,
    *,
    up: bool = False,
    seed: int = 1,
    run: int = 0,
) -> DataFigure:
    """Draw the rate and the delay of a link that varies, against time.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    until : float
        The end, in seconds.
    link, up, seed, run
        As in `Scenario.link_timing`.

    Returns
    -------
    DataFigure
        The figure; it carries the rate and the delay.

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
    with style():
        # A delay that belongs to packets has no course over time.
        drawn = bool(np.isfinite(delay).all() and np.ptp(delay) > 0)
        figure = DataFigure(timing, width=8.0, height=4.6 if drawn else 2.8)
        axes = figure.subplots(2 if drawn else 1, 1, sharex=True, squeeze=False)[:, 0]
        columns = [("rate_bps", 1e6, "rate (Mbps)"), ("delay_s", 1e-3, "delay (ms)")]
        for panel, (column, unit, label) in zip(axes, columns, strict=False):
            held = np.append(timing[column], timing[column][-1:]) / unit
            panel.plot(time, held, drawstyle="steps-post", gid=column, linewidth=1.0)
            panel.set_ylabel(label)
            panel.set_ylim(0, 1.1 * float(np.max(held)))
        axes[-1].set_xlim(0.0, until)
        axes[-1].set_xlabel("time (s)")
        axes[0].set_title(f"{name}, {'up' if up else 'down'}")
    return figure
