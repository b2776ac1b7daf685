"""Writing files so that an error names its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError of the block the name of the file, if it has none: a full disk is told without.

    Raises
    ------
    OSError
        As the block raises it, with `filename` set.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def write_text(path: Path, text: str) -> Path:
    """Write a text file in UTF-8, and return its path."""
    with naming(path):
        # What is no Unicode, such as a byte in the name of a file, becomes an escape that JSON knows.
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
    return path
