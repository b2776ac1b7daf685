"""What the laboratory predicts for the flows of a gateway, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lasthop._lasthop import Quantity, quantity
from lasthop.core import formats
from lasthop.core.names import PLAIN
from lasthop.core.statistics import estimate
from lasthop.fitting import FittedLink
from lasthop.measurement.gateway_flows import flows
from lasthop.race import Arm, Race

RUNS = 96
"""Runs of each arm for each size."""

REPLICATES = 20
"""Replicates for the intervals of the fit: fewer than of `lasthop fit`, which takes minutes for so many."""

_DRAWS = 16
"""Links drawn from the uncertainty of the fit."""

_REQUEST = "100 B"
"""Size of a request."""

_TIME = "application.user.mean_response_time_s"

_PATIENCE = 100
"""Times that a download may take as long as at the link's rate. One that takes longer counts as that long."""

_LEAST_S = 300.0
"""The same for short ones."""

_KEYS = ("congestion", "packet_size", "rto_min")
"""Keys of the gateway's TCP that scenarios have by the same names."""

_SOCKETS_BYTES = 768 << 10
"""What the buffers of the kernel's sockets hold beside the pipe of a split."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The gain for flows of a size.

    Attributes
    ----------
    size : str
        The size, as the report has it.
    bytes : int
        The simulated size: the geometric mean.
    gain, low, high : float
        How many times as fast helped flows are, with a 95 % interval over fades and fitted links.
    measured, measured_low, measured_high : float or None
        The same as measured; None while there are too few flows.
    """

    size: str
    bytes: int
    gain: float
    low: float
    high: float
    measured: float | None
    measured_low: float | None
    measured_high: float | None

    @property
    def agrees(self) -> bool | None:
        """Whether the two intervals overlap; None without a measured one."""
        if self.measured_low is None or self.measured_high is None:
            return None
        return self.low <= self.measured_high and self.measured_low <= self.high


def predict(
    link: FittedLink,
    report: Mapping[str, Any],
    lines: Sequence[Any],
    settings: Mapping[str, Any],
    *,
    sender: str = "linux",
    seed: int = 1,
    jobs: int | None = None,
) -> list[Prediction]:
    """Predict the gain of the flows that a report compares.

    Each size is simulated as single downloads with nothing else on the link.

    Parameters
    ----------
    link : FittedLink
        The link, fitted to the flows.
    report : mapping
        The report, as `lasthop gateway report --json` prints it.
    lines : sequence
        The flows that it compares, as lines of their file.
    settings : mapping
        The tables of the gateway's file.
    sender : str, default "linux"
        The TCP of the servers, as scenarios name it.
    seed, jobs
        As in `lasthop.race.Race`.

    Returns
    -------
    list of Prediction
        For each size of the report.
    """
    groups = [each for each in report["groups"] if each["class"] is None and each["size"]]
    return [
        _predicted(link, each, size, _scheme(settings), sender, seed, jobs)
        for each in groups or report["groups"][:1]
        if (size := _typical(lines, each)) is not None
    ]


def _typical(lines: Sequence[Any], group: Mapping[str, Any]) -> int | None:
    """Return the geometric mean of the data of flows that have the size of a group; None without flows."""
    least, below = group["least_bytes"], group["below_bytes"]
    below = math.inf if below is None else below
    data = [(line["bytes_to_client"] + line["bytes_to_server"], line["outcome"]) for line in flows(lines)]
    # As in the report, a flow that was cut off counts as long, whatever it has carried.
    found = [
        carried
        for carried, outcome in data
        if carried and (below == math.inf if outcome in _CUT_OFF else least <= carried < below)
    ]
    return round(math.exp(np.mean(np.log(found)))) if found else None


_CUT_OFF = ("active", "stalled")
"""Outcomes of flows that may have had more to carry when their observation ended."""


def _scheme(settings: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the scheme of helped flows, with the settings that scenarios have too."""
    name = settings.get("gateway", {}).get("scheme", "i-tcp")
    if name != "i-tcp":
        stated = settings.get("scheme", {}).get(name, {})
        return name, tuple((f"scheme.{name}.{key}", value) for key, value in stated.items())
    stated = settings["scheme"]["i-tcp"]
    wireless = {**settings.get("tcp", {}), **stated.get("wireless", {})}
    found = [(f"scheme.i-tcp.wireless.{key}", wireless[key]) for key in _KEYS if key in wireless]
    pipe = quantity(stated["buffer"])
    assert pipe is not None
    return name, (("scheme.i-tcp.buffer", Quantity(pipe[0] + _SOCKETS_BYTES, "B")), *found)


def _predicted(
    link: FittedLink,
    group: Mapping[str, Any],
    size: int,
    scheme: tuple[str, tuple[tuple[str, Any], ...]],
    sender: str,
    seed: int,
    jobs: int | None,
) -> Prediction:
    user = {
        "from": "mobile",
        "to": "fixed",
        "request": {"constant": _REQUEST},
        "response": {"constant": f"{size} B"},
        "think": {"constant": 0},
        "requests": 1,
    }
    without, helped = Arm(sender, PLAIN), Arm(sender, *scheme)
    assert link.rate_bps is not None
    limit_s = max(_LEAST_S, math.ceil(_PATIENCE * 8 * size / link.rate_bps))
    race = Race(
        link.scenario().with_({"transfer": None, "application": {"user": user}}),
        [without, helped],
        baseline=without,
        metric=_TIME,
        seed=seed,
        overrides=[{"limit": limit_s}],
        variants=link.draws(_DRAWS) if link.stated is None else [{}],
        runs=(RUNS, RUNS),
        precision=None,
    )
    race.run(jobs)
    times = [np.asarray(race.values(arm), dtype=float) for arm in (without, helped)]
    before, after = (np.log(np.where(np.isfinite(each), each, limit_s)) for each in times)
    count = min(len(before), len(after))
    found = estimate(before[:count] - after[:count])
    measured = group["gain"] or {"ratio": None, "low": None, "high": None}
    return Prediction(
        size=group["size"] or "all",
        bytes=size,
        gain=math.exp(found.mean),
        low=math.exp(found.low),
        high=math.exp(found.high),
        measured=measured["ratio"],
        measured_low=measured["low"],
        measured_high=measured["high"],
    )


def words(link: FittedLink, found: Sequence[Prediction], *, is_rate_stated: bool) -> str:
    """Return predictions as a table, with the link."""
    assert link.rate_bps is not None
    # What flows carry is no more than what was asked for.
    source = "" if is_rate_stated else " in their best seconds (if the radio is faster, state --rate)"
    rows = [
        f"predicted for the link that these flows show: {formats.rate(link.rate_bps)}{source}, round trip "
        f"{formats.seconds(link.rtt_s)}, of which the radio takes {formats.seconds(link.last_hop_rtt_s)}",
        "",
        f"{'flows':<30}{'predicted':<24}measured",
    ]
    for each in found:
        measured = "too few yet"
        if each.measured is not None:
            measured = f"{each.measured:.3g} ({each.measured_low:.3g} to {each.measured_high:.3g})"
        note = "" if each.agrees is not False else ", which differs"
        rows.append(
            f"{each.size:<30}{f'{each.gain:.3g} ({each.low:.3g} to {each.high:.3g})':<24}{measured}{note}"
        )
    return "\n".join(rows)
