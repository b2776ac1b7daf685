"""Distributions of the delays of packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lasthop._lasthop import Run
from lasthop.plots._elements import distribution, heading, of_shares
from lasthop.plots._figure import drawing, result

if TYPE_CHECKING:
    from lasthop.plots._figure import Drawn


def delays(run: Run, *, queueing: bool = False, title: str = "", ax: Drawn | None = None) -> Drawn:
    """Draw the distribution functions of the delays of packets: of each flow, and on each link.

    Parameters
    ----------
    run : Run
        A run made with `delays=True`.
    queueing : bool, default False
        Whether to draw, in place of the delays, by how much they exceed those of idle links without losses.
        Flows and links that vary have no such part.
    title : str, default ""
        The title.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, instead of creating a figure.

    Returns
    -------
    DataFigure or Axes
        The figure, or the axes that were given.

    Examples
    --------
    >>> import lasthop
    >>> figure = lasthop.plots.delays(lasthop.run("ebsn-example", "ebsn", delays=True))
    >>> list(dict.fromkeys(figure.data["way"]))
    ['transfer', 'fixed-base', 'base-mobile', 'mobile-base', 'base-fixed']
    """
    columns = run.delays()
    values = columns["queueing_s" if queueing else "delay_s"]
    known = ~np.isnan(values)
    rows = list(
        zip(columns["link"], columns["flow"], columns["from"], columns["to"], values, strict=True),
    )
    ways: dict[tuple[bool, str], list[float]] = {}
    parts = {(str(flow), str(start)) for link, flow, start, *_ in rows if not link}
    several = {flow for flow, _ in parts if sum(flow == other for other, _ in parts) > 1}
    for (link, flow, start, end, value), is_known in zip(rows, known, strict=True):
        if is_known:
            path = f"{start}-{end}"
            # The parts of a split connection are told apart.
            name = path if link else f"{flow} {path}" if flow in several else str(flow)
            ways.setdefault((bool(link), name), []).append(float(value))
    # Flows first, then the links in the order in which packets arrived.
    ordered = sorted(ways.items(), key=lambda way: way[0][0])
    data: dict[str, list[str] | list[float]] = {
        "way": [name for (_, name), found in ordered for _ in found],
        "queueing_s" if queueing else "delay_s": [value for _, found in ordered for value in sorted(found)],
        "share": [(i + 1) / len(found) for _, found in ordered for i in range(len(found))],
    }
    with drawing(data, 6.4, 4.2, ax) as (figure, axes):
        for (link, name), found in ordered:
            shares = np.arange(1, len(found) + 1) / len(found)
            times = 1e3 * np.sort(found)
            distribution(axes, name, times, shares, times[-1], linestyle="--" if link else "-")
        of_shares(axes, "packets")
        axes.set_xlim(left=0)
        axes.set_xlabel("queueing (ms)" if queueing else "delay (ms)")
        if ordered:
            axes.legend(frameon=False)
        heading(axes, title)
    return result(figure, ax)
