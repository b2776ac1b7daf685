"""Damaged files of every format: an error of the reader or the same counts, and nothing else.

A few in each run; LASTHOP_DAMAGED_FILES sets how many of each sample, as `make test-all` does.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Hashable
from pathlib import Path

import measurement_captures as captures
import measurement_samples as samples
import pytest

from lasthop.measurement import Measurement, MeasurementError, read

FILES = int(os.environ.get("LASTHOP_DAMAGED_FILES", "40"))

LOST = frozenset(range(100, 110))

WITH_TOTALS = {
    "ping": samples.ping(LOST, 400).encode(),
    "ping-plain": samples.ping(LOST, 400, stamps=False, outstanding=False).encode(),
    "ping-json": samples.ping_json(LOST, 400).encode(),
    "ping-french": samples.ping_in("fr").encode(),
    "ping-chinese": samples.ping_in("zh", stamps=False).encode(),
    "fping": samples.fping(LOST, 400).encode(),
    "fping-json": samples.fping_json(LOST, 400).encode(),
}
"""Files whose last lines confirm their counts."""


def counted(measurement: Measurement) -> dict[Hashable, tuple[int, int]]:
    """Return the packets lost and sent, by kind and direction."""
    found: dict[Hashable, tuple[int, int]] = {}
    for probes in measurement.probes:
        found["probes", probes.direction] = int(probes.lost.sum()), len(probes.lost)
    for counts in measurement.counts:
        found["counts", counts.direction] = int(counts.lost.sum()), int(counts.sent.sum())
    return found


def campaign(
    data: bytes, path: Path, seed: str, *, confirmed: bool, counts_alone: bool = False, **options: str
) -> tuple[int, int]:
    """Read damaged copies of a file; return how many were refused, and how many read like it.

    A damaged copy may have other counts only with a note or doubt that the original has not. Without totals
    a file that is cut, or has other values, is as good as the original; but with as many packets it must have
    as many losses, to 1 % of the packets, unless its cells are `counts_alone`, with nothing beside them.
    """
    path.write_bytes(data)
    original = read(path, **options)  # type: ignore[arg-type]
    truth, notes = counted(original), {*original.notes}
    dice = random.Random(seed)
    refused = alike = 0
    for attempt in range(FILES):
        damaged = samples.mutated(data, dice)
        path.write_bytes(damaged)
        try:
            measurement = read(path, **options)  # type: ignore[arg-type]
            assert measurement.summary()
        except MeasurementError:
            refused += 1
            continue
        if measurement.doubts or {*measurement.notes} - notes:
            continue
        found = counted(measurement)
        for kind, (lost, sent) in truth.items():
            now_lost, now_sent = found.get(kind, (0, 0))
            if confirmed or (not counts_alone and kind in found and abs(now_sent - sent) <= 0.01 * sent):
                # The last packet may have been in flight.
                assert abs(now_lost - lost) <= 0.01 * sent + 1, (seed, attempt, kind)
        alike += 1
    return refused, alike


@pytest.fixture(autouse=True)
def _strict() -> object:
    """Turn warnings into errors, such as divisions by zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", WITH_TOTALS)
def test_totals_tell_damage(name: str, tmp_path: Path) -> None:
    refused, alike = campaign(WITH_TOTALS[name], tmp_path / "file", name, confirmed=True)
    assert refused > FILES / 20
    assert alike > FILES / 20


@pytest.mark.parametrize("name", samples.texts())
def test_damaged_texts_are_refused_or_read_alike(name: str, tmp_path: Path) -> None:
    confirmed = name == "ping-quiet"
    campaign(
        samples.texts()[name],
        tmp_path / "file",
        name,
        confirmed=confirmed,
        counts_alone=name == "csv-counts",
    )


NETWORK = """
sender = "linux"
transfer.size = "150 KB"
wired = { rate = "100 Mbps", delay = "10 ms" }
radio = { rate = "10 Mbps", delay = "15 ms", channel.gilbert = { loss = 0.05, burst = 3 } }
"""


@pytest.mark.parametrize("name", ["mobile", "unnumbered", "source", "ethernet"])
def test_damaged_captures_are_refused_or_read_alike(name: str, tmp_path: Path) -> None:
    truth = captures.transfer(NETWORK, tmp_path, 2)
    files = {
        "mobile": truth.mobile,
        "unnumbered": captures.unnumbered(truth.mobile, random.Random(1)),
        "source": truth.source,
        "ethernet": captures.framed(captures.read_back(truth.mobile), 1),
    }
    campaign(files[name], tmp_path / "file", name, confirmed=False, user="server")
