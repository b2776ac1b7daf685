"""Writing files, with errors that name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError of the block that lacks it, such as that of a full disk.

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
    """Write a text file in UTF-8 and return its path."""
    with naming(path):
        # A lone surrogate, from an undecodable file name, becomes an escape that JSON knows.
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
    return path
