"""The simulator as WebAssembly.

`make web` compiles it, and `make release` puts it into the wheel. Without it, everything else works.
"""

from __future__ import annotations

import gzip
from pathlib import Path

MODULE = Path(__file__).parent / "simulator.wasm.gz"


class MissingModuleError(Exception):
    """The simulator has not been compiled to WebAssembly; the text says how to get it."""


def module() -> bytes:
    """Return the simulator as a WebAssembly module.

    Raises
    ------
    MissingModuleError
        If this installation has none.
    """
    try:
        return gzip.decompress(MODULE.read_bytes())
    except FileNotFoundError:
        raise MissingModuleError(
            "this installation lacks the simulator as WebAssembly; `make web` in a clone compiles it, and "
            "wheels that `make release` builds have it"
        ) from None
