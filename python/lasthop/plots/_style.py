"""The common style of all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib

INK = "#1a1a1a"
BLUE = "#1f4e79"
RED = "#c8394b"
GOLD = "#d99a2b"
GREEN = "#5b8c3e"
PURPLE = "#7b4f9d"
TEAL = "#2a8f94"
PINK = "#cf5fa0"
SKY = "#5b9bd5"
OLIVE = "#86861f"
BROWN = "#8a5a2e"
SALMON = "#e58a77"
SLATE = "#6f8299"
LIME = "#a3b83a"
LAVENDER = "#b096d6"
MINT = "#5fbfa5"
MAROON = "#7d1f3d"
CYAN = "#27a3cf"
TAN = "#c4a878"
GREY = "#8c8c8c"
SHADE = "#e6e6e6"
QUIET = "#6b6b6b"

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "axes.titlepad": 8.0,
    "figure.dpi": 110.0,
    "figure.facecolor": "white",
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.6,
    "lines.linewidth": 1.4,
    "path.simplify": True,
    "savefig.dpi": 160.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "lasthop",
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
}


@contextmanager
def style() -> Iterator[None]:
    """Apply the style during the block; the caller's settings are restored."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield
