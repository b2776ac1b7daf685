"""The senders of today beside Linux itself, on the paths of tests/linux/README.md."""

import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

import pytest

import lasthop

ROOT = Path(__file__).parents[2]
RUNS = 12
RUNS_OF_LONG_PATHS = 64
"""On a path of 200 ms, a run has few losses, and its goodput varies by a fifth."""
TOLERANCE = 0.1
"""How far a cell may lie from Linux's."""
FRAME_BITS = 12_000
EXCEPTIONS = {
    # Linux's send buffer of 4 MiB holds less than link and queue. BBR, limited by it, stays in Startup and
    # overflows the queue again and again; with a larger buffer Linux delivers 45.1 Mb/s. Lasthop has none.
    ("bbr", "50", "200", "0"),
}


def measured() -> list[dict[str, str]]:
    """Return the cells that are checked here; tests/linux/compare.py prints all."""
    with (ROOT / "tests" / "linux" / "goodput.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if is_known(row) and is_quick(row)]
    return [row for row in rows if identity(row) not in EXCEPTIONS]


def is_known(row: dict[str, str]) -> bool:
    """Whether Linux's mean is known well enough for the tolerance."""
    return float(row["error_mbps"] or 0) <= 0.3 * TOLERANCE * float(row["goodput_mbps"])


def is_quick(row: dict[str, str]) -> bool:
    """Whether a cell takes little time: few packets, or the path of docs/guide/senders.md."""
    slow = row["congestion"] == "bbr" or float(row["loss"]) < 0.01
    return row["seconds"] == "60" or float(row["rate_mbps"]) * (4 if slow else 1) <= 10


def identity(row: dict[str, str]) -> tuple[str, str, str, str]:
    """Return what names a cell in EXCEPTIONS."""
    return row["congestion"], row["rate_mbps"], row["rtt_ms"], row["loss"]


def overrides(row: dict[str, str]) -> list[str]:
    """Return the settings of a cell over scenarios/last-mile.toml."""
    rate, loss, burst = (float(row[key]) for key in ("rate_mbps", "loss", "burst_packets"))
    settings = ["senders.mine.profile=linux", f"senders.mine.congestion={row['congestion']}", "sender=mine"]
    settings += [f"limit={row['seconds']} s", f"wired.delay={float(row['rtt_ms']) / 2 - 1} ms"]
    settings += [f"radio.rate={rate} Mbps", f"radio.queue={row['queue_packets']} packets"]
    settings += ["radio.arq.selective-repeat.feedback_delay=0 s"]
    settings += [f"radio.arq.selective-repeat.retransmissions={row['retransmissions']}"]
    if not burst:
        return [*settings, f"radio.channel.frame-loss.loss={loss}"]
    bad = burst * FRAME_BITS / rate
    channel = f"good='{bad * (1 - loss) / loss} us', bad='{bad} us', good_ber=0.0, bad_ber=1.0"
    return [*settings, f"radio.channel.two-state={{{channel}}}"]


def goodput(row: dict[str, str], runs: int) -> float:
    """Return the mean goodput of runs in a cell in Mb/s."""
    scenario = lasthop.load(ROOT / "scenarios" / "last-mile.toml", overrides(row))
    scheme = "local-recovery" if row["retransmissions"] != "0" else "basic"

    def run(number: int) -> float:
        return float(scenario.run(scheme, seed=1, run=number).metrics["throughput_bps"]) / 1e6

    with ThreadPoolExecutor() as pool:
        return fmean(pool.map(run, range(runs)))


@pytest.mark.parametrize("row", measured(), ids=lambda row: "-".join(list(row.values())[:8]))
def test_goodput_is_that_of_linux(row: dict[str, str]) -> None:
    runs = RUNS_OF_LONG_PATHS if float(row["rtt_ms"]) >= 200 else RUNS
    found = goodput(row, runs if float(row["loss"]) and row["retransmissions"] == "0" else 1)
    assert found == pytest.approx(float(row["goodput_mbps"]), rel=TOLERANCE)
