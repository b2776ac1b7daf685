"""Figures of runs and studies.

Each function returns a matplotlib figure that carries its data; `save` writes it as PNG, SVG and CSV.
"""

from lasthop.plots._figure import DataFigure, save, save_png, write_csv
from lasthop.plots.curves import Line, cdf, curve, sweep_curve
from lasthop.plots.delays import delays
from lasthop.plots.heat import heat_map, sweep_map
from lasthop.plots.link import link_timing
from lasthop.plots.losses import loss_checks
from lasthop.plots.packets import packet_trace, packet_traces
from lasthop.plots.sender import cwnd, segment_size, time_sequence, windows

__all__ = [
    "DataFigure",
    "Line",
    "cdf",
    "curve",
    "cwnd",
    "delays",
    "heat_map",
    "link_timing",
    "loss_checks",
    "packet_trace",
    "packet_traces",
    "save",
    "save_png",
    "segment_size",
    "sweep_curve",
    "sweep_map",
    "time_sequence",
    "windows",
    "write_csv",
]
