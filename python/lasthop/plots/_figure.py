"""Figures that carry their data, and writing them to files."""

from __future__ import annotations

import base64
import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lasthop.core.files import naming
from lasthop.plots._style import style

Columns = Mapping[str, Any]
"""Columns of equal length, by name."""


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Drawn = TypeVar("Drawn", default="DataFigure")
    """What a function draws into and returns: the caller's axes if given, else a figure of its own."""


class DataFigure(Figure):
    """A matplotlib figure that carries its data.

    Attributes
    ----------
    data : mapping of str to array
        The columns behind the figure, which `save` writes as CSV.
    """

    def __init__(self, data: Columns, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(self)
        self.data = data

    def _repr_png_(self) -> bytes:
        """Return the picture that a notebook shows."""
        picture = io.BytesIO()
        save_png(self, picture)
        return picture.getvalue()

    def _repr_html_(self) -> str:
        """Return the picture, at half the size of its pixels so that it is sharp on every screen."""
        width = round(100 * self.get_figwidth())
        picture = base64.b64encode(self._repr_png_()).decode()
        size = f"width:{width}px;max-width:100%"
        source = f"data:image/png;base64,{picture}"
        return f'<img alt="{escape(self.alternative())}" style="{size}" src="{source}">'

    def alternative(self) -> str:
        """Return what the figure shows in words, for those who cannot see it."""
        shown = [
            f"{axes.get_ylabel() or self.get_supylabel()} against {axes.get_xlabel() or self.get_supxlabel()}"
            for axes in self.axes
        ]
        titles = [axes.get_title(loc="left") for axes in self.axes if axes.get_title(loc="left")]
        return f"{shown[-1] if shown else 'figure'}{': ' if titles else ''}{', '.join(titles)}"


@contextmanager
def drawing(data: Columns, width: float, height: float, ax: Any) -> Iterator[tuple[Figure, Axes]]:
    """Draw a figure of one panel in our style, or into the caller's axes in the caller's style.

    Parameters
    ----------
    data : mapping of str to array
        The columns that a figure of our own carries.
    width, height : float
        Its size in inches.
    ax : matplotlib.axes.Axes or None
        The caller's axes, if any.

    Yields
    ------
    (Figure, Axes)
        The figure and the axes to draw into.
    """
    if ax is not None:
        figure = ax.get_figure(root=True)
        assert figure is not None
        yield figure, ax
        return
    with style():
        own = DataFigure(data, width=width, height=height)
        yield own, own.add_subplot()


@contextmanager
def panels_of(
    data: Columns,
    width: float,
    height: float,
    panels: int,
    ax: Any,
    *,
    across: int = 1,
    sharex: bool = False,
    sharey: bool = False,
) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """Draw a figure of several panels, `across` of them in a row; otherwise as `drawing`.

    Raises
    ------
    ValueError
        If there are not as many axes as panels.
    """
    if ax is not None:
        if len(ax) != panels:
            raise ValueError(f"ax: expected {panels} axes, one for each panel, found {len(ax)}")
        figure = ax[0].get_figure(root=True) if len(ax) else None
        assert figure is not None
        yield figure, ax
        return
    with style():
        own = DataFigure(data, width=width, height=height)
        down = math.ceil(panels / across)
        every = own.subplots(down, across, sharex=sharex, sharey=sharey, squeeze=False).ravel().tolist()
        for unused in every[panels:]:
            unused.set_visible(False)
        yield own, every[:panels]


def result(figure: Figure, ax: Drawn | None) -> Drawn:
    """Return the caller's axes if there are any, else our own figure."""
    return cast("Drawn", figure) if ax is None else ax


def legend(figure: Figure, axes: Axes, *, ncols: int, **settings: Any) -> None:
    """Draw a legend above a figure of our own, or below the caller's axes, whose titles are above them."""
    if isinstance(figure, DataFigure):
        figure.legend(**(settings | {"loc": "outside upper right", "ncols": ncols}))
        return
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "frameon": False, "fontsize": 8}
    axes.legend(**(place | settings | {"ncols": min(ncols, 3)}))


def save(fig: Figure, stem: str | Path, data: Columns | None = None) -> list[Path]:
    """Write a figure as PNG and SVG, and its data as CSV.

    The files are reproducible byte by byte: they hold no dates and no random identifiers.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        The figure.
    stem : str or Path
        The path without its suffix: `"out/basic"` writes `out/basic.png`, `.svg` and `.csv`.
    data : mapping of str to array, optional
        The columns of the CSV. By default those of a `DataFigure`; for any other figure no CSV is written.

    Returns
    -------
    list of Path
        The files written.

    Examples
    --------
    >>> import tempfile, lasthop, lasthop.plots
    >>> scenario = lasthop.load("ebsn-example")
    >>> fig = lasthop.plots.packet_trace(lasthop.run(scenario, "ebsn", trace=True))
    >>> with tempfile.TemporaryDirectory() as out:
    ...     [path.name for path in lasthop.plots.save(fig, f"{out}/ebsn")]
    ['ebsn.png', 'ebsn.svg', 'ebsn.csv']
    """
    if data is None:
        data = getattr(fig, "data", None)
    # Not with_suffix, since a stem may contain dots.
    png, svg, table = (Path(f"{stem}{suffix}") for suffix in (".png", ".svg", ".csv"))
    with style():
        with naming(png):
            fig.savefig(png, metadata={"Software": None})
        with naming(svg):
            fig.savefig(svg, metadata={"Date": None, "Creator": None})
    if data is None:
        return [png, svg]
    write_csv(table, data)
    return [png, svg, table]


def save_png(fig: Figure, file: BinaryIO) -> None:
    """Write a figure as PNG to an open file, with the bytes that `save` writes.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        The figure.
    file : binary file
        The file.
    """
    with style():
        fig.savefig(file, format="png", metadata={"Software": None})


def write_csv(path: str | Path, columns: Columns) -> Path:
    """Write columns of equal length as CSV with a header.

    Parameters
    ----------
    path : str or Path
        The file.
    columns : mapping of str to array
        The columns by name.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    plain: Sequence[list[Any]] = [np.asarray(column).tolist() for column in columns.values()]
    with naming(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*plain, strict=True))
    return path
