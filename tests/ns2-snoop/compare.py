"""Compare the scheme snoop with ns-2's ``LL/LLSnoop``, where ns-2 is installed.

``python tests/ns2-snoop/compare.py`` prints for each loss rate how many segments a Tahoe flow delivers in
60 s, without and with Snoop, in ns-2, and here with ns-2's rules and with those of ToN 1997.
docs/reference/scenarios.md explains the differences.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev

import lasthop

HERE = Path(__file__).resolve().parent
LOSSES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05]
RUNS = 12
SECONDS = 60
SEGMENT = 1000 - 40  # bytes of payload

COLUMNS = {
    "ns-2 without": lambda loss, run: ns2("LL", loss, run),
    "ours": lambda loss, run: ours("basic", [], loss, run),
    "ns-2 Snoop": lambda loss, run: ns2("LL/LLSnoop", loss, run),
    "as in ns-2": lambda loss, run: ours("snoop", NS2, loss, run),
    "ToN 1997": lambda loss, run: ours("snoop", TON, loss, run),
}

TON = ["scheme.snoop.dupacks=2"]
NS2 = [*TON, "scheme.snoop.bursts=false", "scheme.snoop.min_timeout=100 ms"]


def ns2(link: str, loss: float, run: int) -> float:
    """Return the segments of one run of ns-2."""
    command = ["ns", str(HERE / "segments.tcl"), link, str(loss), str(run + 1), str(SECONDS)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(said.split()[-1])


def ours(scheme: str, overrides: list[str], loss: float, run: int) -> float:
    """Return the segments of one of our runs."""
    channel = f"radio.channel.frame-loss.loss={loss}"
    scenario = lasthop.load(HERE / "snoop.toml", [channel, *overrides])
    return scenario.run(scheme, run=run).metrics["throughput_bps"] * SECONDS / 8 / SEGMENT


def main() -> int:
    """Print the table, or that ns-2 is not there."""
    if shutil.which("ns") is None:
        print("skipped: ns-2 is not installed")
        return 0
    print(f"{'loss':>6}" + "".join(f"{name:>18}" for name in COLUMNS))
    for loss in LOSSES:
        cells = []
        for segments in COLUMNS.values():
            found = [segments(loss, run) for run in range(RUNS)]
            cells.append(f"{fmean(found):11.0f} ± {stdev(found) / RUNS**0.5:4.0f}")
        print(f"{loss:6.1%}" + "".join(cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
