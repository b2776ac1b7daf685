"""Titles of sweeps: the range that is swept, and not the value outside the sweep."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command

import lasthop
from lasthop.core.titles import shown_title
from lasthop.race import Race, grid


@pytest.mark.parametrize(
    ("title", "sweep", "shown"),
    [
        ("A link of 10 Mb/s, 1 %", 'radio.rate=["1 Mbps", "8 Mbps"]', "A link of 1 Mb/s to 8 Mb/s, 1 %"),
        ("Delay 29 ms at 29 Mb/s", 'wired.delay=["1 ms", "80 ms"]', "Delay 1 ms to 80 ms at 29 Mb/s"),
        (
            "50 packets, 50 frames",
            'radio.queue=["20 packets", "80 packets"]',
            "20 packets to 80 packets, 50 frames",
        ),
        (
            "1 % of 802.11 frames",
            "radio.channel.frame-loss.loss=[0.001, 0.1]",
            "0.1 % to 10 % of 802.11 frames",
        ),
        ("At 10 Mb/s", "radio.channel.frame-loss.loss=[0.001, 0.1]", "At 10 Mb/s"),
        ("At 11 Mb/s", 'radio.rate=["1 Mbps", "8 Mbps"]', "At 11 Mb/s"),
        ("Sender linux", 'sender=["linux", "linux-bbr"]', "Sender linux"),
    ],
)
def test_the_range_replaces_the_value(title: str, sweep: str, shown: str) -> None:
    scenario = lasthop.load("last-mile", [f'title="{title}"', f"sweep.{sweep}"])
    assert shown_title(scenario) == shown


def test_a_study_prints_the_title_of_its_sweep(command: Command, tmp_path: Path) -> None:
    options = [
        "--set",
        "limit=2 s",
        "--set",
        "sweep.radio.channel.frame-loss.loss=[0.001, 0.1]",
        "--runs",
        "2",
    ]
    result = command("study", "last-mile", "--scheme", "basic", *options, "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Last mile: 0.1 % to 10 % of frames lost, by sender and scheme\n")


def test_a_comparison_has_the_range_of_its_axes() -> None:
    axes = {"radio.channel.frame-loss.loss": ["0.001", "0.1"]}
    race = Race("last-mile", grid(["linux"], ["basic"], axes), runs=(2, 2))
    assert race.shown_title.startswith("Last mile: 0.1 % to 10 % of frames lost")
    race = Race("last-mile", grid(["linux"], ["basic", "arq"]), runs=(2, 2))
    assert race.shown_title.startswith("Last mile: 1 % of frames lost")
