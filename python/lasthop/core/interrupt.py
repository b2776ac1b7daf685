"""Deferring Ctrl-C to safe points."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C during the block. A second Ctrl-C interrupts at once.

    Yields
    ------
    callable
        Raises KeyboardInterrupt if Ctrl-C was pressed; to be called at safe points.
    """
    pressed = False

    def hold(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            signal.default_int_handler(number, frame)
        pressed = True

    def let_through() -> None:
        if pressed:
            raise KeyboardInterrupt

    # Only the main thread handles signals, and a handler that is not Python's own is left in place.
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield let_through
        return
    signal.signal(signal.SIGINT, hold)
    try:
        yield let_through
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
