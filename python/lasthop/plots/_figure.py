"""Figures that carry their data, and writing them to files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lasthop.files import naming
from lasthop.plots._style import style

Columns = Mapping[str, Any]
"""Columns of equal length, by name."""


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
