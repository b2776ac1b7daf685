"""Gilbert and Gilbert-Elliott channels as the commands show them."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, Command

import lasthop

BURSTS = ROOT / "scenarios/bursts.toml"


def test_run_and_check_show_a_channel_by_packets_and_by_time(command: Command) -> None:
    lines = [
        "channel of base-mobile: 2 % lost, mean burst 5 packets (stated by packets)",
        "  by packets: p = 0.004082, r = 0.2",
        "  by time, at 833.3 packets/s (1500 B without gaps): mean stays good 262.9 ms, bad 5.364 ms",
    ]
    printed = command("run", BURSTS, "--set", "limit=1 s", "--scheme", "basic").stdout
    assert printed.endswith("\n".join(["", *lines, ""]))
    canonical = command("check", BURSTS).stdout
    assert canonical.endswith("".join(f"# {line}\n" for line in lines))
    assert lasthop.Scenario.parse(canonical).hash == lasthop.load(BURSTS).hash
    (row,) = json.loads(command("check", BURSTS, "--json").stdout)["channel_bursts"]
    assert row["by_packets"]
    assert row["loss"] == pytest.approx(0.02)
    assert row["burst_packets"] == pytest.approx(5)


@pytest.mark.parametrize(
    ("channel", "lines"),
    [
        (
            "gilbert={ loss = '2 %', burst = '40 ms' }",
            [
                "channel of base-mobile: 2 % lost, mean burst 33.85 packets (stated by time)",
                "  by packets: p = 0.000603, r = 0.02955",
                "  by time, at 833.3 packets/s (1500 B without gaps): mean stays good 1.96 s, bad 40 ms",
            ],
        ),
        (
            "gilbert-elliott={ p = 0.9, r = 0.9, loss_good = 0.1, loss_bad = 0.2 }",
            [
                "channel of base-mobile: 15 % lost, mean burst 1.158 packets (stated by packets)",
                "  by packets: p = 0.9, r = 0.9, loss 0.1 in good and 0.2 in bad",
                "  by time, at 833.3 packets/s (1500 B without gaps): no process in time has these losses",
            ],
        ),
        ("gilbert={ loss = 1 }", ["channel of base-mobile: 100 % lost, in one burst (stated by packets)"]),
        ("gilbert={ loss = 0 }", ["channel of base-mobile: 0 % lost, in no burst (stated by packets)"]),
    ],
)
def test_conversions_of_other_forms(command: Command, channel: str, lines: list[str]) -> None:
    printed = command("check", BURSTS, "--set", f"radio.channel.{channel}").stdout
    found = [line.removeprefix("# ") for line in printed.splitlines() if line.startswith("# ")]
    assert found[: len(lines)] == lines


def test_channels_without_a_chain_have_no_conversion() -> None:
    assert lasthop.load(ROOT / "scenarios/last-mile.toml").channel_bursts() == []
