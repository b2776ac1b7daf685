"""BBR version 3 within the times that the tests of C4 allow, over links that vary, with 100 seeds each.

The links are those of `sim_specs` of private-octopus/c4 and of the simulator that runs them, whose Wi-Fi
fade lowers the rate by a tenth. docs/reports/2026-11-senders-beside-linux.md has the times beside those of
picoquic's BBR version 3, and what does not hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import lasthop

SCENARIO = """
limit = "60 s"
schemes = ["basic"]
sender = "linux-bbr3"
[application.download]
from = "mobile"
to = "fixed"
request.constant = "397 B"
response.constant = "{size} MB"
think.constant = "0 s"
requests = 1
[tcp]
window = "64 MiB"
window_autotuning = false
[wired]
rate = "10 Gbps"
[radio]
rate.series.file = "{file}"
queue = "{queue} B"
delay.netem = {{ delay = "{delay} ms", jitter = "{jitter} ms", in_order = true }}
"""

FOREVER = 1000.0
"""Seconds after which a link no longer changes."""

SUSPENDED = [step for n in range(30) for step in ((2.0 * n, 20), (2.0 * n + 1.8, 0))]
"""Rates of a link that stands still for the last 0.2 s of every 2 s."""

CASES = {
    "alone": (10, [(0.0, 20)], 200_000, 40, 2, 5.0),
    "drop and back": (7, [(0.0, 10), (1.5, 5), (3.5, 10)], 100_000, 50, 1, 8.25),
    "black hole": (10, [(0.0, 25), (2.0, 0), (4.0, 25)], 250_000, 35, 1, 6.1),
    "Wi-Fi fade": (10, [(0.0, 20), (1.0, 18), (3.0, 20)], 200_000, 40, 2, 6.2),
    "Wi-Fi suspension": (10, SUSPENDED, 50_000, 5, 1, 5.4),
}
"""Megabytes, rates in Mb/s from times in s on, queue in bytes, delay and jitter in ms, seconds allowed."""


@pytest.mark.campaign
@pytest.mark.parametrize("name", CASES)
def test_downloads_end_in_time(name: str, tmp_path: Path) -> None:
    size, rates, queue, delay, jitter, allowed = CASES[name]
    steps = [*rates, (FOREVER, rates[0][1])]
    file = tmp_path / "rate.csv"
    file.write_text("time_s,rate_mbps\n" + "".join(f"{time},{rate}\n" for time, rate in steps))
    text = SCENARIO.format(size=size, file=file, queue=queue, delay=delay, jitter=jitter)
    scenario = lasthop.Scenario.parse(text)
    runs = [scenario.run("basic", seed=seed) for seed in range(1, 101)]
    times = [run.applications["download"]["mean_response_time_s"] for run in runs]
    assert max(times) < allowed, (min(times), max(times))
