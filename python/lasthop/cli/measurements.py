"""Measurements that commands read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lasthop.cli.failure import RefusedError
from lasthop.cli.option_values import positive
from lasthop.measurement import Measurement, read


def read_all(
    files: Sequence[Path],
    *,
    user: Literal["client", "server"],
    captured: Literal["client", "server", "between"] | None,
    every: str | None,
    column: Sequence[str] | None = None,
) -> list[Measurement]:
    """Read all files.

    Raises
    ------
    RefusedError
        If one is not a measurement, `every` is no duration, or a column is unknown.
    """
    every_s = positive("--every", every, "s", "20ms")
    columns = {}
    for each in column or ():
        name, equals, meaning = each.partition("=")
        if not equals or not name:
            raise RefusedError(
                f'found "{each}", ', remedy="expected NAME=MEANING such as latency=rtt_ms", option="--column"
            )
        columns[name.strip()] = meaning.strip()
    try:
        return [read(file, user=user, captured=captured, every_s=every_s, columns=columns) for file in files]
    except ValueError as error:
        raise RefusedError.of(error) from None
