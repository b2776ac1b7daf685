"""Progress on stderr: a bar on a terminal, otherwise a line every half minute."""

from __future__ import annotations

import math
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lasthop.cli.streams import notify

if TYPE_CHECKING:
    from lasthop.study import Progress

SECONDS_UNTIL_SHOWN = 0.5
"""Shorter activities show no bar."""

SECONDS_BETWEEN_LINES = 30.0
SECONDS_BETWEEN_FRAMES = 0.1


class Activity:
    """Shows the progress of a command, from its own thread, while the block runs.

    Examples
    --------
    >>> with Activity("drawing figures") as activity:
    ...     activity.doing("judging claims")
    """

    def __init__(self, what: str = "starting") -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="lasthop-progress", daemon=True)
        self.doing(what)

    def doing(self, what: str) -> None:
        """Show an activity of unknown length with its elapsed time."""
        self._simulated = ""
        self._state: tuple[str, Progress | None, float] = (what, None, time.monotonic())

    def simulated(self, seconds: float, limit: str) -> None:
        """Show how far the run that is the current activity has come in simulated time."""
        now = f"{seconds:,.1f}" if seconds >= 10 else f"{seconds:.3g}"
        self._simulated = f", {now} s of at most {limit} simulated"

    def study(self, now: Progress, what: str = "") -> None:
        """Show the progress of a study; `what` names one of several."""
        self._state = (what, now, 0.0)

    def show(self, what: str, now: Progress | None) -> None:
        """Show an activity, with its progress if it is a study."""
        if now is None:
            self.doing(what)
        else:
            self.study(now, what)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the thread and remove the bar."""
        self._over.set()
        self._thread.join()

    def _show(self) -> None:
        if not sys.stderr.isatty():
            while not self._over.wait(SECONDS_BETWEEN_LINES):
                notify(self._line())
        elif not self._over.wait(SECONDS_UNTIL_SHOWN):
            # A terminal that has hung up must not cost the results.
            with suppress(OSError, ValueError):
                self._show_bar()

    def _show_bar(self) -> None:
        from rich import progress
        from rich.console import Console

        columns = (progress.BarColumn(bar_width=30), progress.TextColumn("{task.fields[text]}", markup=False))
        bar = progress.Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        with bar:
            task = bar.add_task("", total=None, text="")
            while True:
                _, now, _ = self._state
                total: dict[str, Any] = {"total": None} if now is None else {"total": now.expected}
                bar.update(task, completed=now.done if now else 0, text=self._line(), refresh=True, **total)
                if self._over.wait(SECONDS_BETWEEN_FRAMES):
                    return

    def _line(self) -> str:
        what, now, since = self._state
        if now is None:
            return f"{what}, {duration(time.monotonic() - since)}{self._simulated}"
        left = "" if now.seconds_left is None else f", {duration(now.seconds_left)} left"
        text = f"{now.done:,} of about {now.expected:,} runs, {now.rate:,.0f} a second{left}"
        return f"{what}: {text}" if what else text


def duration(seconds: float) -> str:
    """Format a duration for people.

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
