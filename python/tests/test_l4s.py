"""L4S beside CUBIC: the numbers of the page about it."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import ROOT

import lasthop

PAGE = (ROOT / "docs/guide/l4s.md").read_text(encoding="utf-8")
AT_ONCE = "radio.arq.stop-and-wait.backoff.fixed=0 s"
LOST = "radio.channel.frame-loss.loss=0.01"
REPEATED = (LOST, "radio.arq.selective-repeat={}")
CODEL = "radio.queue={ codel = {} }"
JITTER = 'radio.delay.netem={ delay = "5 ms", jitter = "3 ms", in_order = true }'
FALLBACK = "connection.prague.tcp.ecn_fallback=true"

ROWS: tuple[tuple[str, ...], ...] = (
    (),
    (LOST,),
    ("radio.channel.frame-loss.loss=0.1", AT_ONCE),
    ('radio.channel.fixed-periods={ good = "2 s", bad = "50 ms" }', AT_ONCE),
    ('radio.rate={ lognormal = { mean = "20 Mbps", sigma = 0.5, correlation = "2 s" } }',),
    REPEATED,
    ("radio.queue=100 packets",),
    (CODEL,),
    (CODEL, FALLBACK),
    (JITTER,),
    (JITTER, FALLBACK),
    (*REPEATED, FALLBACK),
)
"""The settings of each row of the table."""


def both(*settings: str) -> list[tuple[float, float]]:
    """Return the throughput in Mb/s and the round-trip time in ms of CUBIC and Prague, means of six runs."""
    scenario = lasthop.load(ROOT / "scenarios/l4s.toml", settings)
    runs = [scenario.run("basic", run=number, seed=1) for number in range(6)]
    connections = [[run.connections[name] for run in runs] for name in ("cubic", "prague")]
    return [
        (
            float(np.mean([each["throughput_bps"] for each in found])) / 1e6,
            1e3 * float(np.mean([each["mean_rtt_s"] for each in found])),
        )
        for found in connections
    ]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_the_page_shows_what_comes_out(number: int) -> None:
    lines = PAGE.partition("| last hop | CUBIC | Prague |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(lines) == len(ROWS)
    shown = [cell.strip() for cell in lines[number].split("|")[2:4]]
    assert [f"{rate:.1f}, {rtt:.0f} ms" for rate, rtt in both(*ROWS[number])] == shown


def test_the_page_shows_that_prague_starves_on_a_slow_link() -> None:
    slow = ("radio.rate=10 Mbps", "wired.delay=29 ms")
    for settings in (slow, (*slow, "radio.queue.dualpi2.step=2.4 ms")):
        (cubic, _), (prague, _) = both(*settings)
        assert any(
            f"{prague:.1f}{words}{cubic:.1f}" in PAGE for words in (" Mb/s beside CUBIC's ", " beside ")
        )
