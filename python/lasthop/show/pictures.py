"""Parts of the HTML reports of papers and studies: style, and figures with their data."""

from __future__ import annotations

import base64
import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lasthop.plots import DataFigure

if TYPE_CHECKING:
    from jinja2 import Template

_MOST_SPOTS = 400


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure in a report.

    Attributes
    ----------
    image : str
        The picture, as a data URL.
    numbers : str
        The data as CSV, as a data URL.
    spots : list of (float, float, str)
        The position of each point in percent of the picture, from its upper left corner, and its values.
    """

    image: str
    numbers: str
    spots: list[tuple[float, float, str]]

    @classmethod
    def of(cls, figure: DataFigure, drawn: Path | None = None) -> Picture:
        """Draw a figure, unless it has been drawn as a PNG."""
        picture = drawn.read_bytes() if drawn else figure._repr_png_()
        numbers = io.StringIO()
        columns = {name: np.asarray(column).tolist() for name, column in figure.data.items()}
        writer = csv.writer(numbers, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return cls(
            data_url("image/png", picture),
            data_url("text/csv", numbers.getvalue().encode()),
            _spots(figure),
        )


def template(name: str) -> Template:
    """Return a template of this package."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("lasthop.show", "")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(name)


def data_url(kind: str, content: bytes) -> str:
    """Return the content as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _spots(figure: DataFigure) -> list[tuple[float, float, str]]:
    """Return the position of each point in percent of the picture, and its values."""
    if "y" not in figure.data:
        return []
    axes = figure.axes[0]
    spots = []
    for line in axes.get_lines():
        label = str(line.get_gid() or "")
        for x, y in np.asarray(line.get_xydata()) if label else ():
            right, up = figure.transFigure.inverted().transform(axes.transData.transform((x, y)))
            values = f"{axes.get_xlabel()} {x:.4g}, {axes.get_ylabel()} {y:.4g}"
            if 0 <= right <= 1 and 0 <= up <= 1:
                spots.append((100 * float(right), 100 * float(1 - up), f"{label}: {values}"))
    return spots if len(spots) <= _MOST_SPOTS else []
