"""The kind of a last hop by its waits: simulated records, a log from the field, and advice on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lasthop import Scenario
from lasthop.advice import advise
from lasthop.advice.judge import NEIGHBOURS
from lasthop.cli.commands.fit import document
from lasthop.fitting import WifiLink, fit, preset_link, scenario_link
from lasthop.fitting.recognition_trial import KINDS, waits_in
from lasthop.fitting.waits import waits_of
from lasthop.fitting.wifi import nearest, probe
from lasthop.measurement import Delays, Direction
from lasthop.measurement.model import Floats

WIFI = ("crowded Wi-Fi, host nearby", "crowded Wi-Fi, host 30 ms away", "dozing station")

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


def ping_log(path: Path, sent_s: Floats, rtt_s: Floats) -> Path:
    """Write what `ping -D` prints."""
    lines = ["PING 192.168.1.1 (192.168.1.1) 56(84) bytes of data."]
    for number, (at, rtt) in enumerate(zip(sent_s, rtt_s, strict=True), 1):
        stamp = f"[{1.76e9 + at + rtt:.6f}] " if np.isfinite(rtt) else ""
        reply = f"64 bytes from 192.168.1.1: icmp_seq={number} ttl=64 time={1e3 * rtt:.3g} ms"
        lines.append(f"{stamp}{reply if np.isfinite(rtt) else f'no answer yet for icmp_seq={number}'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_waits_show_the_kind_of_the_last_hop() -> None:
    """At least so often: nearly always to a host nearby, and half of the time to a distant one."""
    for kind, least in zip(WIFI, (0.9, 0.35, 0.75), strict=True):
        found = [each for number in range(1000, 1015) if (each := waits_in(kind, number)) is not None]
        known = [each.beacon_s is not None if kind == "dozing station" else each.of_air for each in found]
        assert np.mean(known) >= least, kind
        assert all(each.is_wifi <= (each.of_air != (each.beacon_s is not None)) for each in found)


def test_other_links_are_not_taken_for_wifi() -> None:
    """Of a hundred records of wires and of cellular and satellite links, at most one."""
    found = [
        (kind, waits)
        for kind in KINDS
        if kind not in (*WIFI, BUSY)
        for number in range(1000, 1007)
        if (waits := waits_in(kind, number)) is not None
    ]
    wrong = [kind for kind, waits in found if waits.is_wifi]
    assert len(found) > 100
    assert len(wrong) <= 0.01 * len(found), wrong
    satellites = [kind for kind, waits in found if waits.has_slots]
    assert set(satellites) == {"starlink-ship"}


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


def test_a_crowded_wifi_leads_to_the_air(tmp_path: Path) -> None:
    """From a log of pings: fit says air, and advice looks at neighbours and not at losses."""
    wifi = {"preset": "wifi-ac-crowded", "neighbour": {"share": 0.7, "exchange": 0.003}}
    sent_s, rtt_s = probe({"wired": {"rate": 1e9}, "wifi": wifi}, 0.2, 1000, 5)
    link = fit(ping_log(tmp_path / "ping.txt", sent_s, rtt_s), rate_bps=60e6, replicates=5)
    assert isinstance(link, WifiLink)
    assert link.signs[0].startswith("Air: probes wait, half of them")
    assert link.rate_bps is not None
    assert link.rate_bps < 60e6
    assert any("the last hop is Wi-Fi" in note for note in link.notes)
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
