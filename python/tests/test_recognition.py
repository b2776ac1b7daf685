"""The kind of a last hop by its waits: simulated records, a log from the field, and advice on them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasthop import Scenario
from lasthop.advice import advise
from lasthop.advice.judge import NEIGHBOURS
from lasthop.cli.commands.fit import document
from lasthop.fitting import WifiLink, fit, preset_link, scenario_link
from lasthop.fitting.given import download, goodput
from lasthop.fitting.recognition_trial import KINDS, waits_in
from lasthop.fitting.waits import waits_of
from lasthop.fitting.wifi import Neighbours, fitted_wifi, grid, nearest, probe, simulated_waits
from lasthop.measurement import Delays, Direction
from lasthop.measurement.model import Floats

WIFI = ("crowded Wi-Fi, own router", "crowded Wi-Fi, host 30 ms away", "dozing station")

SLOW_ROUTER = "router by cable, slow to answer"
"""The kind of record to the own network that no wait tells from Wi-Fi."""

BUSY = "lte, a download beside"
"""The kind of record that takes longest; the report has it."""

HOME = """
3.41 2.19 3.93 2.53 1.84 2.86 3.25 1.63 1.59 1.57 1.72 1.57 3.61 3.10 1.79 1.79 1.59 1.64 1.58 1.58
1.65 2.91 1.55 1.63 1.84 1445 437 1.49 1.64 1.58 3.34 2.69 1.59 1.63 1.63 1.56 1.60 1.66 1.62 1.57
1.87 3.05 1.56 1.59 1.62 1.70 1.69 2.34 2.34 - 1.63 1.66 1.66 1.59 1.57 1.60 6.98 1.61 1.72 1.60
1.60 1.62 1.56 1.90 5.10 - 1.87 2.68 2.65 2.79 2.68 3.82 2.65 2.67 2.69 2.69 2.68 2.67 2.18 1.89
1.89 2.16 1.89 2.22 2.41 2.68 3.72 3.64 2.20 2.06 1.89 2.21 1.82 1.75 1.62 11.0 1.64 1.82 2.60 1.80
1.66 1.70 1.55 1.79 1.69 1327 327 2.38 2.82 1.56 1.66 1.59 3.18 1.59 1.62 1.62 1.70 1.60 1.65 1.59
2.57 1.57 1.81 2.09 2.23 1.61 1.61 1.59 1.61 1.60 1.65 1.59 2.55 1.64 1.61 1.57 2.66 1.68 1.84 1.81
1.78 1.93 2.66 2.68 2.74 2.66 2.67
"""
"""Round-trip times of a laptop to its router over a Wi-Fi that is not crowded: a ping a second, in ms.

From a post of 2010-05-03 on ubuntuforums.org, "unable to connect BSNL broadband modem through wifi".
"""


def ping_log(path: Path, sent_s: Floats, rtt_s: Floats, host: str = "192.168.1.1") -> Path:
    """Write what `ping -D` prints."""
    lines = [f"PING {host} ({host}) 56(84) bytes of data."]
    for number, (at, rtt) in enumerate(zip(sent_s, rtt_s, strict=True), 1):
        stamp = f"[{1.76e9 + at + rtt:.6f}] " if np.isfinite(rtt) else ""
        reply = f"64 bytes from {host}: icmp_seq={number} ttl=64 time={1e3 * rtt:.3g} ms"
        lines.append(f"{stamp}{reply if np.isfinite(rtt) else f'no answer yet for icmp_seq={number}'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_waits_show_wifi() -> None:
    """At least so often: nearly always to the own router, and half of the time to a distant one."""
    for kind, least in zip(WIFI, (0.9, 0.35, 0.75), strict=True):
        found = [each for number in range(1000, 1015) if (each := waits_in(kind, number)) is not None]
        known = [each.beacon_s is not None if kind == "dozing station" else each.of_air for each in found]
        assert np.mean(known) >= least, kind
        assert all(not each.of_air or each.beacon_s is None for each in found)
        assert all(
            each.is_wifi == (each.of_air and kind == WIFI[0]) for each in found if each.beacon_s is None
        )


def test_other_links_are_not_taken_for_wifi() -> None:
    """None of wires, cellular and satellite links, though some of them have the same waits."""
    found = [
        (kind, waits)
        for kind in KINDS
        if kind not in (*WIFI, BUSY, SLOW_ROUTER)
        for number in range(1000, 1007)
        if (waits := waits_in(kind, number)) is not None
    ]
    assert len(found) > 100
    assert not [kind for kind, waits in found if waits.is_wifi]
    assert {"DSL, a video call beside", "grants and HARQ, 5 to 15 ms"} <= {
        kind for kind, waits in found if waits.of_air
    }
    satellites = [kind for kind, waits in found if waits.has_slots]
    assert set(satellites) == {"starlink-ship"}


def test_waits_alone_are_a_suspicion(tmp_path: Path) -> None:
    """Waits on the way to a distant host leave the link as it is; --wifi makes it one."""
    random = np.random.default_rng(1)
    sent_s: Floats = np.arange(1000, dtype=np.float64) * 0.2
    grants: Floats = random.uniform(0, 0.005, 1000) + 0.008 * (random.geometric(0.9, 1000) - 1)
    log = ping_log(tmp_path / "far.txt", sent_s, 0.008 + grants, host="9.9.9.9")
    link = fit(log, rate_bps=60e6, replicates=5)
    assert not link.is_wifi
    assert link.signs[0].startswith("Waits: half of the probes wait")
    assert link.signs[1].startswith("If the last hop is Wi-Fi, state --wifi")
    assert not [note for note in link.notes if "Wi-Fi" in note]
    stated = fit(log, rate_bps=60e6, wifi=True, replicates=5)
    assert isinstance(stated, WifiLink)
    assert stated.neighbours
    # The same to the own router is evidence, to whose note a slow router belongs.
    near = fit(ping_log(tmp_path / "near.txt", sent_s, 0.001 + grants), rate_bps=60e6, replicates=5)
    assert near.is_wifi
    assert any("A router that is slow to answer pings makes such waits" in note for note in near.notes)
    with pytest.raises(ValueError, match=r"over Wi-Fi among far\.txt, near\.txt, which may be of different"):
        fit([log, tmp_path / "near.txt"], rate_bps=60e6, replicates=5)
    with pytest.raises(ValueError, match="no Wi-Fi can be fitted: found an uplink rate"):
        fit(log, rate_bps=60e6, up_rate_bps=1e6, wifi=True, replicates=5)


def test_losses_are_not_hidden_by_wifi(tmp_path: Path) -> None:
    """Few remain a limit of the Wi-Fi; many, or bursts of them, make it another link."""
    random = np.random.default_rng(2)
    sent_s: Floats = np.arange(1500, dtype=np.float64) * 0.2
    waits_s: Floats = (np.floor(sent_s / 0.1024) + 1) * 0.1024 - sent_s + random.uniform(0, 3e-3, 1500)
    few, many = (np.where(random.random(1500) < lost, np.nan, waits_s) for lost in (0.02, 0.15))
    link = fit(ping_log(tmp_path / "few.txt", sent_s, few), replicates=5)
    assert isinstance(link, WifiLink)
    assert link.given["wifi.drop"]["down"] == pytest.approx(0.02, rel=0.3)
    advice = advise(link, "web", runs=(2, 2), effects=False)
    assert "losses" in {each.name for each in advice.limits}
    bursts = np.where(np.arange(1500) % 500 < 14, np.nan, waits_s)
    for name, rtt_s, why in (("many", many, "% of the probes were lost"), ("bursts", bursts, "in bursts")):
        log = ping_log(tmp_path / f"{name}.txt", sent_s, rtt_s)
        other = fit(log, rate_bps=60e6, replicates=5)
        assert not other.is_wifi
        assert "a station dozes" in other.signs[0]
        assert why in other.signs[1]
        with pytest.raises(ValueError, match=why):
            fit(log, rate_bps=60e6, wifi=True, replicates=5)


def test_periodic_work_is_no_satellite() -> None:
    """Steps of 15 s last, and have no period of 3, 5 or 7.5 s."""
    random = np.random.default_rng(3)
    sent_s: Floats = np.arange(3000, dtype=np.float64) * 0.2
    levels = random.uniform(0, 0.02, 41)
    noise = random.gamma(2, 3e-4, len(sent_s))
    slots = 0.02 + levels[np.floor(sent_s / 15).astype(int)] + noise
    assert waits_of(Delays(Direction.ROUND_TRIP, sent_s, slots), 0.0).has_slots
    for period_s in (3, 5, 7.5, 15):
        work = np.where((sent_s + 1.3) % period_s < 1, random.uniform(0.01, 0.03, len(sent_s)), 0)
        assert not waits_of(Delays(Direction.ROUND_TRIP, sent_s, 0.02 + work + noise), 0.0).has_slots


@pytest.mark.filterwarnings("error")
def test_a_few_pings_a_minute_show_no_slots() -> None:
    """As of a job of cron: most seconds have none."""
    sent_s: Floats = (np.arange(200)[:, None] * 60 + np.arange(5)).ravel().astype(np.float64)
    trips_s = 0.02 + 0.01 * (np.arange(1000) % 5 == 1) + np.random.default_rng(2).random(1000) * 1e-4
    assert not waits_of(Delays(Direction.ROUND_TRIP, sent_s, trips_s), 0.0).has_slots


def test_a_home_that_is_not_crowded_is_not_blamed(tmp_path: Path) -> None:
    rtt_s = np.array([float(each) / 1e3 if each != "-" else np.nan for each in HOME.split()])
    link = fit(
        ping_log(tmp_path / "home.txt", np.arange(len(rtt_s), dtype=float), rtt_s),
        rate_bps=60e6,
        replicates=5,
    )
    assert not link.is_wifi
    assert link.signs == ()


def test_clocks_that_differ_keep_the_beat() -> None:
    """Beacons of another clock, 60 parts in a million slow; probes with the beat themselves show none."""
    random = np.random.default_rng(2)
    sent_s: Floats = np.arange(1500, dtype=np.float64) * 0.2
    beacon = 0.1024 * (1 + 60e-6)
    waits_s: Floats = (np.floor(sent_s / beacon) + 1) * beacon - sent_s
    rtt_s: Floats = waits_s + random.uniform(0, 3e-3, len(sent_s))
    found = waits_of(Delays(Direction.ROUND_TRIP, sent_s, rtt_s), 0.0)
    assert found.beacon_s == pytest.approx(beacon, rel=5e-5)
    assert found.listen == 1
    beating_s: Floats = np.arange(1500, dtype=np.float64) * 0.1024
    late = random.choice(np.array([0.001, 0.05]), len(beating_s))
    assert waits_of(Delays(Direction.ROUND_TRIP, beating_s, late), 0.0).beacon_s is None


def test_neighbours_are_found_again() -> None:
    for share, exchange_s in ((0.6, 0.002), (0.7, 0.003), (0.5, 0.004)):
        wifi = {"preset": "wifi-ac-crowded", "neighbour": {"share": share, "exchange": exchange_s}}
        sent_s, rtt_s = probe({"wired": {"rate": 1e9}, "wifi": wifi}, 0.1, 2000, 7)
        rtt_s = rtt_s + np.random.default_rng(1).gamma(2, 5e-5, len(rtt_s))
        found = nearest(waits_of(Delays(Direction.ROUND_TRIP, sent_s, rtt_s), 0.0))
        assert found[0].share == pytest.approx(share, abs=0.11)
        assert found[0].exchange_s == pytest.approx(exchange_s, rel=0.51)
        assert len(found) < 8


def test_neighbours_that_are_tried_can_have_their_share() -> None:
    """Not 90 % in exchanges of 0.5 ms: before each, all of them wait for AIFS and backoff."""
    tried = {(each.share, each.exchange_s) for each in grid()}
    assert (0.8, 0.0005) in tried
    assert (0.9, 0.0005) not in tried
    assert len(tried) == 80


def test_neighbours_are_stated_only_if_they_explain_the_waits(tmp_path: Path) -> None:
    """They do those of crowded air, in 99 of 100 records, and not those of a weak signal that fades."""
    for kind in WIFI[:2]:
        found = [each for number in range(2000, 2100) if (each := waits_in(kind, number)) is not None]
        assert np.mean([bool(nearest(each)) for each in found]) >= 0.98, kind
    for signal_db in (3, 6, 10):
        wifi = {"preset": "wifi-ac-near", "snr": f"{signal_db} dB", "fading": {}}
        sent_s, rtt_s = probe({"wired": {"rate": 1e9}, "wifi": wifi}, 0.2, 1500, 1)
        link = fit(ping_log(tmp_path / "weak.txt", sent_s, rtt_s), rate_bps=60e6, wifi=True, replicates=5)
        assert isinstance(link, WifiLink)
        assert link.neighbours == ()
        assert link.signs[-1].startswith("Neighbours alone do not explain these waits")
        assert any(note.startswith("Assumed: idle air and a steady signal") for note in link.notes)
        assert "neighbour" not in link.given["wifi"]


def test_few_neighbours_show_on_a_stated_wifi(tmp_path: Path) -> None:
    """With 30 % of the air they make waits below 4 ms, no evidence of Wi-Fi; idle air shows none."""
    for share in (0.3, None):
        wifi: dict[str, Any] = {"preset": "wifi-ac-near"}
        if share is not None:
            wifi["neighbour"] = {"share": share, "exchange": 0.002}
        sent_s, rtt_s = probe({"wired": {"rate": 1e9}, "wifi": wifi}, 0.1, 1500, 7)
        rtt_s = rtt_s + np.random.default_rng(1).gamma(2, 5e-5, len(rtt_s))
        log = ping_log(tmp_path / "ping.txt", sent_s, rtt_s)
        assert not fit(log, rate_bps=200e6, replicates=5).is_wifi
        link = fit(log, rate_bps=200e6, wifi=True, replicates=5)
        assert isinstance(link, WifiLink)
        assert link.waits.p95_s < 0.004
        noted = any("the waits are those for neighbours" in note for note in link.notes)
        assert noted == bool(link.neighbours) == (share is not None)
        if share is not None:
            assert link.neighbours[0].share == pytest.approx(share, abs=0.11)


def test_a_crowded_wifi_leads_to_the_air(tmp_path: Path) -> None:
    """From a log of pings: fit says air, and advice looks at neighbours and not at losses."""
    wifi = {"preset": "wifi-ac-crowded", "neighbour": {"share": 0.7, "exchange": 0.003}}
    sent_s, rtt_s = probe({"wired": {"rate": 1e9}, "wifi": wifi}, 0.2, 1000, 5)
    log = ping_log(tmp_path / "ping.txt", sent_s, rtt_s)
    behind = fit(log, rate_bps=20e6, replicates=5)
    assert isinstance(behind, WifiLink)
    assert behind.given["wired.rate"] == 20e6
    assert any("20 Mbps is the rate of the line in front of the Wi-Fi" in note for note in behind.notes)
    slow = fit(log, rate_bps=5e5, wifi=True, replicates=5)
    assert any("the nearest to the 500 kbps that were stated" in note for note in slow.notes)
    link = fit(log, rate_bps=60e6, wifi=True, replicates=5)
    assert isinstance(link, WifiLink)
    assert link.signs[0].startswith("Waits: half of the probes wait")
    # Between the shares that are tried, all are possible; none longer than 10 ms is tried.
    shares = re.search(r"of the air \((\d+) % to (\d+) %\) in exchanges", link.signs[1])
    assert shares is not None
    assert float(shares[1]) <= 65 < 75 <= float(shares[2])
    long = replace(link.waits, rtt_s=simulated_waits(Neighbours(0.3, 0.01)), floor_s=0.0)
    longest = fitted_wifi(link, long, rate_bps=60e6, rtt_s=None, is_stated=True)
    assert "in exchanges of 10 ms (at least 8.5 ms)" in longest.signs[-1]
    assert link.rate_bps is not None
    assert link.rate_bps < 60e6
    assert any("one queue of 1,000 packets for all" in note for note in link.notes)
    advice = advise(link, runs=(4, 4), effects=False)
    assert advice.limits[0].name == NEIGHBOURS
    assert advice.limits[0].gain > 1.5
    assert "losses" not in {each.name for each in advice.limits}
    assert advice.advised[0].title == "another channel or band"
    assert any(
        "survey dump" in line for part in advice.advised[0].deployment.parts for line in part.steps.commands
    )
    # What is written is the link.
    found = document(link)
    assert found["wifi"]["neighbours"][0]["share"] == pytest.approx(0.7, abs=0.11)
    assert found["signs"] == list(link.signs)
    again = scenario_link(Scenario.parse(found["scenario"]))
    assert again.is_wifi
    assert again.rate_bps == pytest.approx(link.rate_bps)


def test_calls_over_wifi_have_remedies_of_their_own() -> None:
    """Beside a download over a crowded 802.11n, calls gain by their category and by fair queues."""
    advice = advise(preset_link("wifi-n-crowded"), "call", runs=(2, 2), effects=False)
    gains = {each.title: each.gain for each in advice.remedies}
    for title in ("calls in the voice category", "fair queues at the access point"):
        assert gains[title] > 0.3, title
    assert "a nearer access point" in gains
    parts = {part.name: part for each in advice.remedies for part in each.deployment.parts}
    for title in (
        "calls in the voice category",
        "fair queues at the access point",
        "another channel or band",
    ):
        part = parts[title]
        assert part.available
        assert part.steps.commands
        assert part.cost


def test_the_rate_of_a_wifi_is_that_after_slow_start() -> None:
    """To a station that sleeps through beacons a window grows for more than ten seconds."""
    wifi = {
        "standard": "802.11ac",
        "streams": 2,
        "rate": "minstrel-ht",
        "snr": "25 dB",
        "queue": "1000 packets",
        "power_save": {"timeout": 0.02, "listen": 3},
    }
    asleep = download({"wired": {"rate": 1e9, "delay": 0.02}, "wifi": wifi}, "asleep")
    late = asleep.with_({"limit": 60, "warmup": 30}).run(None, seed=9)
    assert goodput(asleep) == pytest.approx(late.metrics["throughput_bps"], rel=0.1)


def test_power_save_has_its_remedy(tmp_path: Path) -> None:
    wifi = {"preset": "wifi-phone", "power_save": {"timeout": 0.02}}
    sent_s, rtt_s = probe({"wired": {"rate": 1e9}, "wifi": wifi}, 0.5, 300, 3, from_server=True)
    link = fit(ping_log(tmp_path / "phone.txt", sent_s, rtt_s), rate_bps=100e6, rtt_s=0.2, replicates=5)
    assert isinstance(link, WifiLink)
    assert link.neighbours == ()
    (sign,) = link.signs
    assert sign.startswith("Power save: late replies keep the beat of beacons, 102.4 ms: a station dozes.")
    advice = advise(link, "web", runs=(4, 4), effects=False)
    assert {each.title for each in advice.remedies} >= {"power save off"}
    assert advice.limits[0].gain >= 1
