"""Ctrl-C while the compiled core is at work."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from lasthop.cli.failure import INTERRUPTED

T = TypeVar("T")


def interruptible(work: Callable[[], T]) -> T:
    """Do `work` so that Ctrl-C ends the program at once.

    The core lets other threads run but looks at no signals; so it works in a thread, and the main
    one, which gets the signals, waits.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            results.append(work())
        except BaseException as failure:  # Raised again below, where someone can catch it.
            failures.append(failure)

    worker = threading.Thread(target=attempt, daemon=True)
    worker.start()
    try:
        worker.join()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.stdout.flush()
        # A thread inside the core cannot be ended otherwise.
        os._exit(INTERRUPTED)
    for failure in failures:
        raise failure
    return results[0]
