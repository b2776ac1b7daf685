"""HTML of tables in notebooks. It has no scripts and no colours of its own, to suit light and dark ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL = "padding:0.15em 0.9em 0.15em 0;text-align:{align};font-weight:{weight};white-space:{wrap}"


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    foot: str = "",
    *,
    align: str = "right",
    words: int = 1,
) -> str:
    """Return a table; `caption` is HTML, all else is text. The first `words` columns are aligned left."""

    def cell(kind: str, column: int, text: str) -> str:
        side = "left" if column < words else align
        weight = "600" if kind == "th" else "400"
        # Numbers stay in one line; the table scrolls if it is too wide.
        style = _CELL.format(align=side, weight=weight, wrap="nowrap" if side == "right" else "normal")
        scope = ' scope="col"' if kind == "th" else ""
        return f'<{kind}{scope} style="{style}">{escape(str(text))}</{kind}>'

    def line(kind: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(kind, column, text) for column, text in enumerate(cells))}</tr>"

    head = f"<thead>{line('th', heads)}</thead>" if any(heads) else ""
    body = "".join(line("td", row) for row in rows)
    note = f"<div><small>{escape(foot)}</small></div>" if foot else ""
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    table = f'<table style="{style}">{head}<tbody>{body}</tbody></table>' if body else ""
    return f'<div style="overflow-x:auto"><div>{caption}</div>{table}{note}</div>'


def unfold(summary: str, text: Any) -> str:
    """Return a text that unfolds below its summary."""
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"
