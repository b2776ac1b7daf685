"""The senders of today beside Linux itself, on the path of tests/linux/README.md."""

import csv
from pathlib import Path
from statistics import fmean

import pytest

import lasthop

ROOT = Path(__file__).parents[2]
RUNS = 4
TOLERANCE = 0.1
"""How far a cell may lie from Linux's; the mean of four runs of 60 s varies by about 3 %."""


def measured() -> list[tuple[str, float, float]]:
    """Return the control, the loss rate and Linux's goodput in Mb/s of each cell."""
    with (ROOT / "tests" / "linux" / "goodput.csv").open() as file:
        return [
            (row["congestion"], float(row["loss"]), float(row["goodput_mbps"]))
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize(("congestion", "loss", "goodput"), measured())
def test_goodput_is_that_of_linux(congestion: str, loss: float, goodput: float) -> None:
    channel = f"radio.channel.frame-loss.loss={loss}"
    overrides = ["senders.mine.profile=linux", f"senders.mine.congestion={congestion}", "sender=mine"]
    overrides += ["radio.queue=75 packets", channel]
    scenario = lasthop.load(ROOT / "scenarios" / "last-mile.toml", overrides)
    runs = [scenario.run("basic", seed=1, run=run) for run in range(RUNS if loss else 1)]
    ours = fmean(run.metrics["throughput_bps"] for run in runs) / 1e6
    assert ours == pytest.approx(goodput, rel=TOLERANCE)
