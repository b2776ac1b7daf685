"""Draw goodput against loss rate for today's senders, beside measurements of Linux.

``python benches/senders.py [DIR]`` runs ``scenarios/last-mile.toml`` with each sender over a range of loss
rates, and draws ``senders.png`` into the directory, by default ``docs/images``. Linux's points are those of
``tests/linux/goodput.csv``.
"""

import csv
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev

import matplotlib.pyplot as plt

import lasthop

ROOT = Path(__file__).resolve().parent.parent
SENDERS = {
    "reno": "Reno",
    "cubic": "CUBIC",
    "westwood": "Westwood+",
    "veno": "Veno",
    "bbr3": "BBR version 3",
    "bbr": "BBR",
}
LOSSES = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1]
RUNS = 8
T_95 = 2.365
"""Student's t for a 95 % interval of eight runs."""


def goodputs(congestion: str, loss: float) -> list[float]:
    """Return the goodput of each run in Mb/s."""
    overrides = [
        "senders.mine.profile=linux",
        f"senders.mine.congestion={congestion}",
        "sender=mine",
        "radio.queue=75 packets",
        f"radio.channel.frame-loss.loss={loss}",
    ]
    scenario = lasthop.load(ROOT / "scenarios" / "last-mile.toml", overrides)
    return [scenario.run("basic", run=run).metrics["throughput_bps"] / 1e6 for run in range(RUNS)]


def main() -> None:
    """Run, write and draw."""
    out = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "images"
    out.mkdir(parents=True, exist_ok=True)
    cells = [(congestion, loss) for congestion in SENDERS for loss in LOSSES]
    with ThreadPoolExecutor() as pool:
        found = dict(zip(cells, pool.map(lambda cell: goodputs(*cell), cells), strict=True))
    with (ROOT / "tests" / "linux" / "goodput.csv").open() as file:
        path = {"rate_mbps": "10", "rtt_ms": "60", "queue_packets": "75", "burst_packets": "0"}
        path |= {"kernel": "6.18", "retransmissions": "0"}
        rows = [row for row in csv.DictReader(file) if path.items() <= row.items()]
        linux = [row for row in rows if float(row["loss"]) > 0]
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for index, (congestion, name) in enumerate(SENDERS.items()):
        means = [fmean(found[congestion, loss]) for loss in LOSSES]
        errors = [T_95 * stdev(found[congestion, loss]) / RUNS**0.5 for loss in LOSSES]
        percent = [100 * loss for loss in LOSSES]
        axes.errorbar(percent, means, errors, color=f"C{index}", label=name, capsize=2, linewidth=1.4)
        points = [row for row in linux if row["congestion"] == congestion]
        axes.plot(
            [100 * float(row["loss"]) for row in points],
            [float(row["goodput_mbps"]) for row in points],
            linestyle="none",
            marker="o",
            markersize=6,
            markerfacecolor="none",
            color=f"C{index}",
        )
    axes.plot([], [], linestyle="none", marker="o", markerfacecolor="none", color="0.3", label="Linux 6.18")
    axes.set(xscale="log", yscale="log", xlabel="lost frames (%)", ylabel="goodput (Mbps)")
    axes.set_xticks([0.05, 0.1, 0.5, 1, 5, 10], ["0.05", "0.1", "0.5", "1", "5", "10"])
    axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, ncols=2, fontsize="small")
    figure.savefig(out / "senders.png", dpi=130)


if __name__ == "__main__":
    main()
