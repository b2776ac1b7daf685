"""Errors of commands: one message on stderr and an exit code, never a traceback."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from lasthop import ScenarioError
from lasthop.cli import streams

WRONG_INPUT = 2
INTERRUPTED = 130


class RefusedError(Exception):
    """Invalid input; the text says what is wrong and what would be right."""


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turn exceptions of the block into a message on stderr and an exit code.

    Invalid input, and files that cannot be read or written, exit with 2; Ctrl-C exits with 130.
    """
    try:
        yield
        streams.finish()
    except BrokenPipeError:
        # The reader of the pipe has left, as `head` does: no error.
        streams.discard(sys.stdout)
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        streams.notify("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except (ScenarioError, RefusedError) as error:
        raise _failed(str(error)) from None
    except OSError as error:
        if error.filename == streams.STDOUT:
            streams.discard(sys.stdout)
        where = error.filename2 or error.filename
        raise _failed(f"{where}: {error.strerror}" if where else str(error)) from None


def exit_resumable(kept: str) -> NoReturn:
    """Exit from an interrupted command that can be resumed: say what is kept, and how to go on."""
    streams.notify(f"stopped; {kept}. To go on:\n  {shlex.join(['lasthop', *sys.argv[1:]])}")
    raise typer.Exit(INTERRUPTED) from None


def _failed(message: str) -> typer.Exit:
    streams.notify(f"error: {message}")
    return typer.Exit(WRONG_INPUT)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    streams.notify(f"warning: {message}")
