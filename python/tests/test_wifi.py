"""Wi-Fi beside ns-3: some rows of its tables, and what a home shows."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shlex
import sys
from itertools import chain
from typing import Any

import pytest
from conftest import ROOT, Command

import lasthop
from lasthop.advice import wifi as advice

TABLES = ROOT / "tests/ns3-wifi"
PATH = ROOT / "scripts/wifi_tables.py"
SPEC = importlib.util.spec_from_file_location(PATH.stem, PATH)
assert SPEC is not None
assert SPEC.loader is not None
wifi_tables = importlib.util.module_from_spec(SPEC)
# Where the annotations of a dataclass are looked up.
sys.modules[PATH.stem] = wifi_tables
SPEC.loader.exec_module(wifi_tables)


@pytest.mark.parametrize(
    ("name", "tolerance", "wanted"),
    [
        ("A_single_station", 0.03, {"ampdu_limit_bytes": "max"}),
        ("B_saturation", 0.03, {"phy": "HT20", "stations": "5"}),
        ("C_udp_losses", 0.03, {"phy": "HT20", "load": "saturated"}),
        ("C_tcp_losses", 0.05, {"limit": "0"}),
        ("D_tcp_queues", 0.05, {"phy": "HE80", "competitors": "0"}),
        ("E_anomaly", 0.05, {"phy": "HT20"}),
        ("F_voice", 0.1, {"voice_ac": "VI"}),
        ("G_minstrel", 0.1, {}),
    ],
)
def test_rows_are_those_of_ns3(name: str, tolerance: float, wanted: dict[str, str]) -> None:
    table = next(table for table in wifi_tables.TABLES if table.file == name)
    rows = [row for row in wifi_tables.rows_of(TABLES, table) if wanted.items() <= row.items()]
    assert len(rows) > 1
    for row in rows:
        ours = wifi_tables.compared(table, row, 1)
        for key, value in ours.items():
            # A share of collisions has a standard deviation of 3 % in one run, and tails of delays more.
            if key.startswith(("p_", "mpdu_")) or key.endswith("p99"):
                continue
            assert value == pytest.approx(wifi_tables.value_of(row, key), rel=tolerance), (row, key)


def test_every_row_of_every_table_has_a_scenario() -> None:
    for table in wifi_tables.TABLES:
        rows = list(wifi_tables.rows_of(TABLES, table))
        assert rows
        for row in rows:
            assert wifi_tables.scenario(table, row)["wifi.standard"] in wifi_tables.STANDARDS.values()


def test_the_report_has_every_row() -> None:
    text = (ROOT / "docs/reports/2026-11-wifi-beside-ns3.md").read_text(encoding="utf-8")
    for path in sorted(TABLES.glob("*.csv")):
        with path.open() as file:
            rows = len(list(csv.DictReader(file)))
        section = text.split(f"### {path.stem}")[1].split("\n#")[0]
        assert section.count("\n|") == rows + 2, path.stem


def test_a_home_is_cured_by_a_queue_for_each_station(command: Command) -> None:
    compared = ("--sender", "linux", "--sender", "linux-bbr", "--scheme", "basic", "--scheme", "fq-codel")
    result = command("run", "home-wifi", "--json", *compared)
    runs = json.loads(result.stdout)["results"]
    found = {(run["sender"], run["scheme"]): run for run in runs}
    assert len(found) == 4
    for sender in ("linux", "linux-bbr"):
        fifo, fair = (found[sender, scheme] for scheme in ("basic", "fq-codel"))
        delays = [run["traffic"]["call"]["p95_delay_s"] for run in (fifo, fair)]
        assert delays[1] < 0.03 < 0.045 < delays[0]
        pages = [run["applications"]["pages"]["mean_page_time_s"] for run in (fifo, fair)]
        assert pages[1] < pages[0] / 2
        laptop = [run["connections"]["laptop"]["throughput_bps"] for run in (fifo, fair)]
        assert laptop[1] > laptop[0]


def tried(command: Command, symptom: str) -> list[dict[str, Any]]:
    """Return the runs of a row of the guide: with its first options, with the second ones too, and so on."""
    page = (ROOT / "docs/guide/wifi.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| {symptom}"))
    options = [shlex.split(each) for each in re.findall(r"`([^`]*)`", row.split("|")[-2])]
    found = []
    for count in range(1, len(options) + 1):
        done = command("run", "home-wifi", "--json", *chain.from_iterable(options[:count]))
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["results"][0])
    return found


def test_the_guide_shows_power_save(command: Command) -> None:
    awake, dozing = (each["traffic"]["chat"] for each in tried(command, "After a silence"))
    assert awake["p95_delay_s"] < 0.03
    assert 0.09 < dozing["p95_delay_s"] < 0.12


def test_the_guide_shows_hidden_uploads(command: Command) -> None:
    alike, hidden, cured = (
        sum(each["throughput_bps"] for each in run["connections"].values())
        for run in tried(command, "Uploads of two devices")
    )
    assert hidden < 0.85 * alike
    assert cured > 1.3 * hidden


def test_fast_transition_is_a_remedy_of_slow_roams() -> None:
    walking = lasthop.load("wifi-office-walking")
    (remedy,) = (each for each in advice.WIFI_REMEDIES if each.key == "wifi.roaming")
    cured = walking.with_(dict(remedy.settings(walking)))
    assert cured["wifi.roaming.fast_transition"] is True
    assert cured["wifi.roaming.every"] == 20.0
    stated = walking.with_({"wifi.roaming": {"every": 20.0, "gap": 0.4}})
    assert "wifi.roaming.gap" not in stated.with_(dict(remedy.settings(stated)))
    assert remedy.settings(cured) == ()
    assert remedy.settings(lasthop.load("wifi-office")) == ()
    # Without them hostapd refuses to start, or has no keys for the other access points.
    lines = "\n".join(remedy.steps.commands)
    assert "\nnas_identifier=" in lines
    assert "FT-PSK\nft_psk_generate_local=1" in lines
