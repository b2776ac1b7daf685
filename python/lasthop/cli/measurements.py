"""Measurements that commands read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lasthop.cli.failure import RefusedError
from lasthop.cli.option_values import positive
from lasthop.measurement import Measurement, MeasurementError, read


def read_all(
    files: Sequence[Path],
    *,
    user: Literal["client", "server"],
    captured: Literal["client", "server", "between"] | None,
    every: str | None,
) -> list[Measurement]:
    """Read all files.

    Raises
    ------
    RefusedError
        If one is not a measurement, or `every` is no duration.
    """
    every_s = positive("--every", every, "s", "20ms")
    try:
        return [read(file, user=user, captured=captured, every_s=every_s) for file in files]
    except MeasurementError as error:
        raise RefusedError(str(error)) from None
