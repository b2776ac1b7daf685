"""Ctrl-C at a moment that suits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[Callable[[], None]]:
    """Keep Ctrl-C from breaking in anywhere inside the block.

    A second Ctrl-C breaks in all the same: whoever presses it twice does not want to wait.

    Yields
    ------
    callable
        Raises KeyboardInterrupt if Ctrl-C was pressed meanwhile; to be called where it does no harm.
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

    # Only the main thread gets signals; and where they are ignored or someone else's, they stay so.
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
