"""Tables on the terminal, and numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable


def in_common(values: Sequence[float], units: Sequence[tuple[str, float]]) -> tuple[str, list[str]]:
    """Write values in one unit, so that a column can be compared at a glance.

    Parameters
    ----------
    values : sequence of float
        The values in the first unit.
    units : sequence of (str, float)
        The units, each with its size, from the smallest.

    Returns
    -------
    str
        The unit: the largest of which the greatest value is at least one.
    list of str
        The values in it, with as many decimals as give the greatest three digits.

    Examples
    --------
    >>> from lasthop.study.units import RATES, SIZES
    >>> in_common([5610.0, 9042.7], RATES)
    ('kbps', ['5.61', '9.04'])
    >>> in_common([0, 576], SIZES)
    ('B', ['0', '576'])
    """
    greatest = max(values, default=0.0)
    name, size = max((unit for unit in units if unit[1] <= greatest), key=itemgetter(1), default=units[0])
    if all(float(value / size).is_integer() for value in values):
        decimals = 0
    else:
        decimals = max(0, 3 - len(str(int(greatest / size))))
    return name, [f"{value / size:,.{decimals}f}" for value in values]


class Table:
    """A table without frills: a rule under the header, numbers to the right.

    Parameters
    ----------
    *headers : str
        The columns' names; one that begins with `>` is a column of numbers.
    """

    def __init__(self, *headers: str) -> None:
        self._table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for header in headers:
            number = header.startswith(">")
            self._table.add_column(header.removeprefix(">"), justify="right" if number else "left")

    def row(self, *cells: str) -> None:
        """Add a row."""
        # What the user wrote is no markup.
        self._table.add_row(*map(escape, cells))

    def print(self) -> None:
        """Print the table on stdout; where that is no terminal, without folding it."""
        console = Console(highlight=False)
        if not console.is_terminal:
            console = Console(highlight=False, width=200)
        # Not printed by rich itself, which has an exit code of its own for a reader that leaves early.
        with console.capture() as text:
            console.print(self._table)
        print(text.get(), end="")
