"""Compare today's congestion controls with ns-2's ``Agent/TCP/Linux``, where ns-2 is installed.

``python tests/ns2-linux/compare.py`` prints the mean goodput of both in Mb/s over the path of
``tests/linux``. ns-2 runs the modules of Linux 2.6 on a recovery older than RACK and proportional rate
reduction, so that the controls of Linux 6 differ from it; docs/guide/senders.md says how and why.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import lasthop

HERE = Path(__file__).resolve().parent
CONTROLS = ["reno", "cubic", "westwood", "vegas", "veno", "hybla"]
LOSSES = [0.0, 0.01, 0.03]
RUNS = 6


def ns2(control: str, loss: float, seed: int) -> float:
    """Return the goodput of one run of ns-2 in Mb/s."""
    command = ["ns", str(HERE / "goodput.tcl"), control, str(loss), str(seed)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return next(float(line) for line in said.splitlines() if line.replace(".", "", 1).isdigit())


def ours(control: str, loss: float, run: int) -> float:
    """Return the goodput of one of our runs in Mb/s."""
    overrides = [
        "senders.mine.profile=linux",
        f"senders.mine.congestion={control}",
        "sender=mine",
        "radio.queue=75 packets",
        f"radio.channel.frame-loss.loss={loss}",
    ]
    scenario = lasthop.load(HERE.parents[1] / "scenarios" / "last-mile.toml", overrides)
    return scenario.run("basic", run=run).metrics["throughput_bps"] / 1e6


def main() -> int:
    """Print the table, or that ns-2 is not there."""
    if shutil.which("ns") is None:
        print("skipped: ns-2 is not installed")
        return 0
    print(f"{'':10}" + "".join(f"{loss:>22.1%}" for loss in LOSSES))
    print(f"{'':10}" + f"{'ns-2':>11}{'Lasthop':>11}" * len(LOSSES))
    for control in CONTROLS:
        cells = []
        for loss in LOSSES:
            runs = range(RUNS if loss else 1)
            cells += [fmean(ns2(control, loss, run + 1) for run in runs)]
            cells += [fmean(ours(control, loss, run) for run in runs)]
        print(f"{control:10}" + "".join(f"{cell:11.2f}" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
