"""The standard streams: results on stdout; progress, warnings and errors on stderr.

A stderr that is full or closed loses no results: writing to it never fails. A stdout that was closed before
the start is like /dev/null, so that a command still writes its files.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

STDOUT = "standard output"
"""The `filename` of an OSError of stdout."""

verbose = False
"""Whether `detail` prints."""

as_json = False
"""Whether results, and so errors, are JSON on stdout."""

_SPELLED = {"±": "+-", "µ": "u", "─": "-"}


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Encode characters that an encoding lacks: transliterated, or escaped as in JSON."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_SPELLED.get(letter) or json.dumps(letter)[1:-1] for letter in missing), error.end


codecs.register_error("lasthop.spell", _spell)


def prepare() -> None:
    """Open the standard streams that were closed, and set their error handler for characters."""
    # Opened in this order, each gets its own descriptor, and no file of results gets it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole run
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="lasthop.spell")


@contextmanager
def printing() -> Iterator[None]:
    """Print on stdout in the block.

    Raises
    ------
    OSError
        If stdout cannot be written to; its `filename` is "standard output".
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, STDOUT) from None


def emit(text: str = "") -> None:
    """Print text on stdout.

    Raises
    ------
    OSError
        As with `printing`.
    """
    with printing():
        print(text)


def emit_document(text: str) -> None:
    """Print a JSON or TOML document on stdout, in UTF-8 whatever the locale, as both formats require.

    Raises
    ------
    OSError
        As with `printing`.
    """
    encoded = f"{text.rstrip()}\n".encode("utf-8", "backslashreplace")
    with printing():
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.buffer.write(encoded)
        else:
            sys.stdout.write(encoded.decode())


def finish() -> None:
    """Flush stdout.

    Raises
    ------
    OSError
        As with `printing`.
    """
    with printing():
        sys.stdout.flush()


def notify(text: str) -> None:
    """Print a line on stderr. Errors are ignored."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        discard(sys.stderr)


def detail(text: str) -> None:
    """Print a line on stderr if `--verbose` was given."""
    if verbose:
        notify(text)


def discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that flushing its buffer at exit cannot fail."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
