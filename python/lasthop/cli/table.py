"""Tables for the terminal, and the numbers in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO
from itertools import zip_longest
from operator import itemgetter

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from lasthop import Run
from lasthop.cli.streams import emit

GAP = "   "

_FOLDING = Console()


def in_common(values: Sequence[float | None], units: Sequence[tuple[str, float]]) -> tuple[str, list[str]]:
    """Format the values of a column in one common unit.

    Parameters
    ----------
    values : sequence of float or None
        The values in the first unit.
    units : sequence of (str, float)
        The units with their sizes, smallest first.

    Returns
    -------
    str
        The unit: the largest in which the greatest value is at least 1.
    list of str
        The values in it, with three significant digits for the greatest; a dash for None.

    Examples
    --------
    >>> from lasthop.core.units import RATES, SIZES
    >>> in_common([5610.0, 9042.7], RATES)
    ('kbps', ['5.61', '9.04'])
    >>> in_common([0, 576], SIZES)
    ('B', ['0', '576'])
    >>> in_common([None, 2000], SIZES)
    ('KB', ['-', '2'])
    """
    known = [value for value in values if value is not None]
    greatest = max(known, default=0.0)
    name, size = max((unit for unit in units if unit[1] <= greatest), key=itemgetter(1), default=units[0])
    if all(float(value / size).is_integer() for value in known):
        decimals = 0
    else:
        decimals = max(0, 3 - len(str(int(greatest / size))))
    return name, ["-" if value is None else f"{value / size:,.{decimals}f}" for value in values]


class Table:
    """A plain table: a rule under the header, numbers right-aligned.

    On a terminal that is too narrow, texts and headers are wrapped; if that is not enough, each row is
    printed as a block of lines. A number is never cut, a word only if it alone is too long.

    Parameters
    ----------
    *headers : str
        The columns' names; a leading `>` marks a column of numbers.
    """

    def __init__(self, *headers: str) -> None:
        self._headers = [printable(header.removeprefix(">")) for header in headers]
        self._numbers = [header.startswith(">") for header in headers]
        self._rows: list[list[str]] = []

    def row(self, *cells: str) -> None:
        """Add a row."""
        self._rows.append([printable(cell) for cell in cells])

    def print(self) -> None:
        """Print the table on stdout; unwrapped unless stdout is a terminal."""
        console = Console(highlight=False)
        lines = self.lines(console.width if console.is_terminal else None)
        # rich itself would exit with its own code on a broken pipe.
        console.file = text = StringIO()
        for line in lines:
            console.print(line, soft_wrap=True)
        emit(text.getvalue().removesuffix("\n"))

    def lines(self, width: int | None) -> list[Text]:
        """Return the lines of the table, at most `width` characters wide unless a number alone is wider."""
        widths = self._widths(width)
        if widths is None:
            assert width is not None
            return self._blocks(width)
        folded = [self._folded(self._headers, widths)]
        folded += [self._folded(cells, widths) for cells in self._rows]
        header, *rows = [[Text(line) for line in each] for each in folded]
        for line in header:
            line.stylize("bold")
        rule = Text("─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
        return [*header, rule, *(line for row in rows for line in row)]

    def _widths(self, width: int | None) -> list[int] | None:
        """Return the width of each column; None if the table does not fit."""
        columns = list(zip(self._headers, *self._rows, strict=True))
        widths = [max(map(cell_len, column)) for column in columns]
        if width is None:
            return widths
        least = [
            max(_longest_word(header), *map(cell_len if number else _longest_word, cells))
            for (header, *cells), number in zip(columns, self._numbers, strict=True)
        ]
        room = width - len(GAP) * (len(widths) - 1)
        if sum(least) > room:
            return None
        while sum(widths) > room:
            spare = [(have, index) for index, have in enumerate(widths) if have > least[index]]
            widths[max(spare)[1]] -= 1
        return widths

    def _folded(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        """Return the lines of a row, each cell wrapped within its column."""
        columns = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
        lines = []
        for parts in zip_longest(*columns, fillvalue=""):
            padded = []
            for part, width, number in zip(parts, widths, self._numbers, strict=True):
                space = " " * (width - cell_len(part))
                padded.append(space + part if number else part + space)
            lines.append(GAP.join(padded))
        return lines

    def _blocks(self, width: int) -> list[Text]:
        """Return each row as a block of lines `header: value`."""
        lines: list[Text] = []
        for cells in self._rows:
            lines += [Text()] if lines else []
            for header, cell in zip(self._headers, cells, strict=True):
                if not cell:
                    continue
                named = f"{header}: {cell}" if header else cell
                if cell_len(named) <= width:
                    lines.append(Text(named))
                    continue
                lines += [Text(line) for line in _fold(f"{header}:", width)]
                lines += [Text(f"  {line}") for line in _fold(cell, max(width - 2, _longest_word(cell)))]
        return lines


def printable(text: str) -> str:
    r"""Escape control characters, which would move the cursor or break a line.

    Examples
    --------
    >>> print(printable(chr(7)), printable("µ [bold]"))
    \x07 µ [bold]
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _fold(text: str, width: int) -> list[str]:
    """Wrap a text at its spaces; break a word only if it alone is too long."""
    return [line.plain.rstrip() for line in Text(text).wrap(_FOLDING, max(width, 1))] or [""]


def run_headers(runs: list[Run]) -> list[str]:
    """Return the headers of what a run is called."""
    return ["scheme"] if runs[0].sender is None else ["sender", "scheme"]


def run_labels(run: Run, *, shown: bool = True) -> list[str]:
    """Return what a run is called, a cell for each header; empty ones where it was said before."""
    labels = [run.scheme] if run.sender is None else [run.sender, run.scheme]
    return labels if shown else [""] * len(labels)


def fixed(value: float | None, decimals: int = 1) -> str:
    """Return a number with so many decimals, a dash for none."""
    return "-" if value is None else f"{value:,.{decimals}f}"


def p_value(p: float) -> str:
    """Format a p-value."""
    if math.isnan(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
