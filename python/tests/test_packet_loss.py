"""How often a packet is lost: the closed form against what runs meet, and how it is asked for."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from conftest import Command

import lasthop
from lasthop import Scenario, ScenarioError

SPLIT = "scenarios/split-wlan.toml"
RUNS = 40

NGUYEN_NOBLE = {"nguyen-noble": {"leave_error": 0.2, "leave_error_free": 0.7, "error_rate": 0.005}}
FADING = {"rayleigh-gilbert": {"fading_margin": "8 dB", "doppler": 0.1, "step": "10 ms"}}


def scenario(channel: Any, **radio: Any) -> Scenario:
    """Return a scenario in which packets come to the air at random instants, far from each other."""
    return lasthop.build(
        {
            "limit": "1000 s",
            "warmup": "1 s",
            "transfer": {"size": "1 B", "start": "999 s"},
            "wired": {"rate": "1 Gbps"},
            "radio": {"rate": "2 Mbps", "channel": channel} | radio,
            "traffic": {
                "probe": {
                    "from": "base",
                    "to": "mobile",
                    "packet_size": "552 B",
                    "law": {"poisson": {"rate": "22 kbps"}},
                }
            },
        }
    )


@pytest.mark.parametrize(
    ("channel", "radio"),
    [
        ({"iid": {"ber": 1e-5}}, {}),
        ({"frame-loss": {"loss": 0.03}}, {"mtu": "128 B"}),
        ({"two-state": {"good": "40 ms", "bad": "5 ms"}}, {}),
        ({"fixed-periods": {"good": "40 ms", "bad": "1 ms"}}, {"expansion": 1.5}),
        (FADING, {}),
        (NGUYEN_NOBLE, {}),
        (NGUYEN_NOBLE, {"mtu": "128 B", "expansion": 1.5}),
        (NGUYEN_NOBLE, {"expansion": 2.0, "errors_on": "payload"}),
        (NGUYEN_NOBLE, {"unit": "480 B"}),
    ],
)
def test_runs_lose_as_many_packets_as_the_closed_form(channel: Any, radio: dict[str, Any]) -> None:
    """The mean over runs of 5,000 packets lies within four and a half of its standard errors.

    A right closed form is that far off in fewer than one seed in 10,000; seeds are fixed.
    """
    probed = scenario(channel, **radio)
    found = np.array([_share(probed.run(run=number).traffic["probe"]) for number in range(RUNS)])
    expected = probed.packet_loss("552 B")
    error = found.std(ddof=1) / math.sqrt(RUNS)
    assert abs(found.mean() - expected) < 4.5 * error, (found.mean(), expected, error)
    # Sharp enough to tell it from one that is a tenth off.
    assert error < 0.02 * expected


def _share(probe: dict[str, Any]) -> float:
    return float(probe["lost_packets"] / probe["sent_packets"])


def test_attempts_fail_as_often_as_the_closed_form() -> None:
    """A packet in one unit is one attempt, and all but a few here are such packets."""
    probed = scenario(NGUYEN_NOBLE)
    shares = []
    for number in range(RUNS):
        metrics = probed.run(run=number).metrics
        shares.append(metrics["link_failures"] / metrics["link_attempts"])
    error = float(np.std(shares, ddof=1)) / math.sqrt(RUNS)
    assert abs(float(np.mean(shares)) - probed.packet_loss(552)) < 4.5 * error


def test_closed_forms() -> None:
    assert scenario("perfect").packet_loss("1500 B") == 0
    iid = scenario({"iid": {"ber": 1e-5}}, expansion=1.5)
    assert iid.packet_loss("1000 B") == pytest.approx(1 - (1 - 1e-5) ** 12_000, rel=1e-12)
    payload = scenario({"iid": {"ber": 1e-5}}, expansion=1.5, errors_on="payload")
    assert payload.packet_loss(1000) == pytest.approx(1 - (1 - 1e-5) ** 8_000, rel=1e-12)
    # Three units, of which each is lost by itself; and as many of one size, the last filled up.
    cut = scenario({"frame-loss": {"loss": 0.1}}, mtu="128 B")
    assert cut.packet_loss("300 B") == pytest.approx(0.271, rel=1e-12)
    filled = scenario({"iid": {"ber": 1e-5}}, unit="128 B")
    assert filled.packet_loss("300 B") == filled.packet_loss("384 B") < filled.packet_loss("385 B")
    # A good period of 40 ms without errors and a bad one of 1 ms: 552 B at 2 Mb/s take 2.208 ms.
    fixed = scenario({"fixed-periods": {"good": "40 ms", "bad": "1 ms"}})
    assert fixed.packet_loss("552 B") == pytest.approx(3.208 / 41, rel=1e-12)


def test_the_direction_is_that_of_the_data() -> None:
    uplink = {"uplink": {"channel": {"frame-loss": {"loss": 0.5}}}}
    text = scenario("perfect", **uplink).to_toml()
    assert Scenario.parse(text).packet_loss("1 KB") == 0
    other = Scenario.parse(text, overrides=["transfer.from=mobile", "transfer.to=fixed"])
    assert other.packet_loss("1 KB") == other.packet_loss("1 KB", "base-mobile") == 0.5


def test_links_are_selected_by_name() -> None:
    two = lasthop.load("scenarios/two-flows.toml")
    assert two.packet_loss("1500 B") == two.packet_loss("1500 B", "right-D1") > 0
    assert two.packet_loss("1500 B", "right-D2") == 0
    with pytest.raises(ScenarioError, match='found the link "right-D3", expected "right-D1" or "right-D2"'):
        two.packet_loss("1500 B", "right-D3")
    with pytest.raises(ScenarioError, match='found the link "left-right"'):
        two.packet_loss("1500 B", "left-right")


@pytest.mark.parametrize(
    ("radio", "problem"),
    [
        (
            {"outage": {"first": "1 s", "lasts": "1 ms"}},
            "no closed form for the outages of the link base-mobile",
        ),
        ({"fec": "bch-63-45-3", "protect": "all"}, "no closed form for the code of the link base-mobile"),
    ],
)
def test_cases_without_a_closed_form_are_refused(radio: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=f"{problem}; measure it: link_failures over link_attempts"):
        scenario(NGUYEN_NOBLE, **radio).packet_loss("552 B")


@pytest.mark.parametrize("size", [0, 65_536, "0 B", "64 KiB"])
def test_packets_above_the_maximum_are_refused(size: int | str) -> None:
    with pytest.raises(ScenarioError, match="expected 1 B to 65535 B"):
        lasthop.load(SPLIT).packet_loss(size)


def test_an_invalid_size_is_refused() -> None:
    with pytest.raises(ValueError, match='found "552 b", expected a size'):
        lasthop.load(SPLIT).packet_loss("552 b")
    wired = lasthop.load(SPLIT, ["topology.path={routers=2, wireless='none'}", 'schemes=["basic"]'])
    with pytest.raises(ScenarioError, match="no connection crosses a wireless link"):
        wired.packet_loss("552 B")


def test_the_command_prints_it_at_each_point(command: Command) -> None:
    sweep = "sweep.radio.channel.nguyen-noble.error_rate=[0.003, 0.01]"
    result = command("check", SPLIT, "--packet-loss", "552 B", "--packet-loss", "40 B", "--set", sweep)
    assert (result.returncode, result.stderr) == (0, "")
    header, _, *rows = result.stdout.splitlines()
    assert header.split("  ")[0] == "radio.channel.nguyen-noble.error_rate"
    assert [row.split() for row in rows] == [
        ["0.003", "552", "B", "3.48"],
        ["0.003", "40", "B", "0.3442"],
        ["0.01", "552", "B", "6.581"],
        ["0.01", "40", "B", "1.014"],
    ]
    report = json.loads(command("check", SPLIT, "--packet-loss", "552 B", "--json").stdout)
    assert list(report) == ["file", "hash", "packet_loss"]
    loss = lasthop.load(SPLIT).packet_loss("552 B")
    assert report["packet_loss"] == [{"parameters": {}, "size": "552 B", "loss": loss}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--packet-loss", "552 b"), '--packet-loss: found "552 b", expected a size'),
        (("--packet-loss", "552 B", "--link", "x"), 'found the link "x", expected "base-mobile"'),
        (("--link", "base-mobile"), "--link needs --packet-loss SIZE"),
    ],
)
def test_wrong_options_are_refused(command: Command, options: tuple[str, ...], message: str) -> None:
    result = command("check", SPLIT, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
