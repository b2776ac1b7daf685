"""Values of options that several commands read."""

from __future__ import annotations

import math
from typing import Any

from lasthop._lasthop import quantity
from lasthop.cli.failure import RefusedError
from lasthop.engine.stopping import MOST_RUNS


def share(option: str, text: str, what: str = "a share of the mean", example: str = "2%") -> float:
    """Read `2%` or `0.02`, the value of an option.

    Raises
    ------
    RefusedError
        If it is no share between 0 and 1; the message expects `what`, such as `example`.
    """
    found = quantity(text)
    if found is None or found[1] != "" or not 0 < found[0] < 1:
        raise RefusedError(remedy=f"expected {what} such as {example}", found=f"{text!r}", option=option)
    return found[0]


def check_runs(runs: int) -> None:
    """Refuse more runs than memory can hold."""
    if runs > MOST_RUNS:
        raise RefusedError(
            remedy=f"expected at most {MOST_RUNS:,} of each scheme at each point",
            found=f"{runs}",
            option="--runs",
        )


def runs_range(text: str) -> tuple[int, int]:
    """Read the `MIN:MAX` or `N` of `--runs`.

    Raises
    ------
    RefusedError
        If it is neither, or more than memory can hold.
    """
    least, _, most = text.partition(":")
    try:
        runs = int(least), int(most or least)
    except ValueError:
        raise RefusedError(
            remedy="expected MIN:MAX or one number", found=f"{text!r}", option="--runs"
        ) from None
    check_runs(runs[1])
    if not 1 <= runs[0] <= runs[1]:
        raise RefusedError(remedy="expected 1 <= MIN <= MAX", found=f"{text!r}", option="--runs")
    return runs


def check_export(export: str | None) -> None:
    """Refuse a format of tables that does not exist."""
    if export not in (None, "csv", "parquet", "datasette"):
        raise RefusedError(
            remedy="expected csv, parquet or datasette", found=f"{export!r}", option="--export"
        )


def positive(option: str, text: str | None, unit: str, example: str) -> float | None:
    """Read a rate (`unit` is bps) or a duration (s) above zero, in that unit.

    Raises
    ------
    RefusedError
        If it is none.
    """
    if text is None:
        return None
    found = quantity(text)
    if found is None or found[1] != unit or not 0 < found[0] < math.inf:
        kind = "rate" if unit == "bps" else "duration"
        raise RefusedError(
            f"found {text!r}, ", remedy=f"expected a {kind} with its unit, such as {example}", option=option
        )
    return found[0]


def link_properties(
    *, rate: str | None, up_rate: str | None, rtt: str | None, last_hop_rtt: str | None
) -> dict[str, Any]:
    """Read what is known of a link, as arguments of `lasthop.fitting.fit`.

    Raises
    ------
    RefusedError
        If one is not a quantity of the right kind.
    """
    return {
        "rate_bps": positive("--rate", rate, "bps", "8Mbps"),
        "up_rate_bps": positive("--up-rate", up_rate, "bps", "2Mbps"),
        "rtt_s": positive("--rtt", rtt, "s", "60ms"),
        "last_hop_rtt_s": positive("--last-hop-rtt", last_hop_rtt, "s", "20ms"),
    }
