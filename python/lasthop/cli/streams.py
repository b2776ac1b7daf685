"""The standard streams: results go to stdout, everything else to stderr.

What goes to stderr is a courtesy: a stderr that is full or closed costs no results. A stdout that was closed
from the start was not wanted, and is no error either: files are written all the same.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from contextlib import suppress
from typing import TextIO

STDOUT = "standard output"
"""The `filename` of an OSError of stdout."""

_SPELLED = {"±": "+-", "µ": "u", "─": "-"}


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Write what a stream's encoding lacks with the letters that it has."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_SPELLED.get(letter) or json.dumps(letter)[1:-1] for letter in lacking), error.end


codecs.register_error("lasthop.spell", _spell)


def prepare() -> None:
    """Make the standard streams fit to be written to, whatever the process was started with."""
    # In this order each takes its own descriptor, so that no file of results gets it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole run
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="lasthop.spell")


def emit(text: str = "") -> None:
    """Print lines of text for people on stdout.

    Raises
    ------
    OSError
        If stdout cannot be written to; its `filename` is "standard output".
    """
    try:
        print(text)
    except OSError as error:
        raise _of_stdout(error) from None


def emit_document(text: str) -> None:
    """Print a JSON or TOML document on stdout: in UTF-8 whatever the locale, as these formats demand.

    Raises
    ------
    OSError
        As with `emit`.
    """
    encoded = f"{text.rstrip()}\n".encode("utf-8", "backslashreplace")
    try:
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.buffer.write(encoded)
        else:
            sys.stdout.write(encoded.decode())
    except OSError as error:
        raise _of_stdout(error) from None


def finish() -> None:
    """Flush stdout.

    Raises
    ------
    OSError
        As with `emit`.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _of_stdout(error) from None


def notify(text: str) -> None:
    """Print a line on stderr, if it can be written to."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Send what is still to be written to a stream nowhere, so that Python's exit does not fail on it."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _of_stdout(error: OSError) -> OSError:
    return OSError(error.errno, error.strerror, STDOUT)
