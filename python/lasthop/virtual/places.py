"""Directories for work that ends with a process, also with one that is killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_YOUNG_S = 60.0
"""A directory may be this old, in seconds, before its process has locked it."""


def lock(directory: Path) -> int:
    """Lock a directory until the returned descriptor is closed in all processes that have it."""
    descriptor = os.open(directory, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def remove_abandoned(directories: Iterable[Path]) -> None:
    """Remove the directories whose processes were killed: those of this user that are not locked."""
    for directory in directories:
        # Those of others, and those that have just disappeared.
        with suppress(OSError):
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - os.fstat(descriptor).st_mtime > _YOUNG_S:
                    shutil.rmtree(directory)
            finally:
                os.close(descriptor)
