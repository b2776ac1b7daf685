"""How a command fails: one plain message and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from lasthop import ScenarioError

WRONG_INPUT = 2
INTERRUPTED = 130


class RefusedError(Exception):
    """The command cannot do what it was asked to; the text says why."""


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what goes wrong inside the block into a message on stderr and an exit code.

    Wrong input, and files that cannot be read or written, give 2; Ctrl-C gives 130.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has had enough. Python must not try to flush what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (ScenarioError, RefusedError) as error:
        raise _failed(str(error)) from None
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise _failed(what) from None


def _failed(message: str) -> typer.Exit:
    typer.echo(f"error: {message}", err=True)
    return typer.Exit(WRONG_INPUT)


def warn(message: str) -> None:
    """Say on stderr what the user should know though the command succeeds."""
    typer.echo(f"warning: {message}", err=True)
