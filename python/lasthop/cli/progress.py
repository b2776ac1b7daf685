"""How far a command is, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from lasthop.study import Progress


class Show(Protocol):
    """Shows the progress of something that has a name."""

    def __call__(self, now: Progress, what: str = "") -> None:
        """Show it."""


@contextmanager
def progress_bar() -> Iterator[Show | None]:
    """Show how far a study is, if there is a terminal to show it on: tell it of the progress, and of what."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich import progress

    bar = progress.Progress(
        progress.BarColumn(bar_width=30),
        progress.TextColumn("{task.fields[text]}"),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, text="starting")

        def show(now: Progress, what: str = "") -> None:
            left = "" if now.seconds_left is None else f", {duration(now.seconds_left)} left"
            text = f"{now.done:,} of about {now.expected:,} runs, {now.rate:,.0f} a second{left}"
            bar.update(task, completed=now.done, total=now.expected, text=f"{what}: {text}" if what else text)

        yield show


def duration(seconds: float) -> str:
    """Write a time so that it is grasped at a glance.

    Examples
    --------
    >>> duration(0.4), duration(75), duration(7380)
    ('less than 1 s', '1 min 15 s', '2 h 3 min')
    """
    if math.isinf(seconds):
        return "an unknown time"
    if seconds < 1:
        return "less than 1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
