"""Advice: what limits a link, what would help, and the page."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Command, prints, results

import lasthop
from lasthop.advice import SENDERS, USES, Advice, advise, remedies
from lasthop.advice.advice import losses_in_words
from lasthop.advice.wording import assumptions, caution
from lasthop.fitting import fit, given, preset_link, scenario_link, stated_link
from lasthop.measurement import Delays, Direction, Measurement, Probes, Rates
from lasthop.race import Arm
from lasthop.show.advice_page import document, html

FEW = (16, 32)

EXAMPLE = "lasthop advise --loss 2% --burst 5 --rate 8Mbps --rtt 60ms"
"""The command of docs/guide/advise.md, whose output stands there."""


@pytest.fixture(scope="module")
def lossy() -> Advice:
    return advise(stated_link(4e6, 0.06, loss=0.02), runs=FEW, effects=False)


def test_where_losses_limit_they_are_named_and_bbr_helps(lossy: Advice) -> None:
    assert lossy.limits[0].name == "losses"
    assert lossy.limits[0].matters
    assert lossy.limits[0].value > 3.5e6 > lossy.now.value
    assert lossy.advised[0].arm == Arm("linux-bbr", "basic")
    assert lossy.advised[0].deployment.places == ("server",)
    assert lossy.verdict().startswith("Use BBR: ")
    # Vegas is no better than CUBIC at random losses.
    assert "Vegas" in {each.title for each in (*lossy.useless, *lossy.undecided)}


def test_a_clean_link_needs_nothing() -> None:
    advice = advise(stated_link(2e6, 0.06), runs=(8, 8), effects=False)
    # Without losses, their absence is no limit.
    assert not [limit for limit in advice.limits if limit.name == "losses"]
    assert all(math.isfinite(limit.gain) for limit in advice.limits)
    assert advice.advised == ()
    assert advice.verdict() == "No remedy that was tried would help." or advice.undecided


def test_a_remedy_that_takes_more_effort_must_gain_more(lossy: Advice) -> None:
    efforts = [each.deployment.effort for each in lossy.advised]
    rates = [each.value for each in lossy.advised]
    assert efforts == sorted(set(efforts))
    assert all(b > 1.05 * a for a, b in itertools.pairwise(rates))


def test_every_remedy_is_accounted_for(lossy: Advice) -> None:
    others = [each for each in lossy.remedies if each is not lossy.now]
    worth = [each for each in others if each.worth]
    assert len(worth) + len(lossy.useless) + len(lossy.undecided) == len(others)
    tried = {each.arm for each in lossy.remedies}
    assert {Arm(name, "basic") for name in SENDERS} <= tried
    assert all(math.isfinite(each.further[-1]) for each in lossy.remedies)


def test_each_sender_of_the_list_runs() -> None:
    scenario = stated_link(8e6, 0.06, loss=0.01).scenario()
    for name in SENDERS:
        run = lasthop.run(scenario.with_({"sender": name, "limit": 2}))
        assert run.metrics["throughput_bps"] > 0


def test_the_written_scenario_takes_every_sender_that_advice_names(command: Command, tmp_path: Path) -> None:
    written = tmp_path / "scenario.toml"
    written.write_text(stated_link(8e6, 0.06, loss=0.01).toml())
    named = [option for name in SENDERS for option in ("--sender", name)]
    result = command("compare", written, *named, "--set", "limit=2 s", "--runs", "2:2", "--json")
    assert result.returncode == 0, result.stderr
    assert {row["sender"] for row in json.loads(result.stdout)["results"]} == {*SENDERS}


def test_runs_on_fast_links_carry_as_much_as_thirty_seconds_at_100_megabits() -> None:
    for rate_bps, rtt_s, limit in [
        (1e6, 0.06, "30 s"),
        (100e6, 0.06, "30 s"),
        (300e6, 0.06, "10 s"),
        (1e9, 0.03, "3 s"),
        (10e9, 0.0, "0.5 s"),
        # A window of 6 MiB each 60 ms, 839 Mb/s, whatever the link carries.
        (10e9, 0.06, "3.58 s"),
    ]:
        for name in ("bulk", "upload"):
            use = USES[name].shortened(rate_bps, rtt_s)
            assert use.limit == limit
            assert f"load, {limit} from its start" in use.simulated
            assert use.limit_s * min(rate_bps, 1e9) <= 8 * 375e6 or use.limit == "3.58 s"
    assert USES["call"].shortened(300e6, 0.06).limit == "10 s"
    assert USES["video"].shortened(10e9, 0.001) == USES["video"]


@pytest.mark.usefixtures("few_remedies")
def test_advice_for_a_fast_link_says_that_its_runs_are_shorter() -> None:
    fast = advise(stated_link(2e9, 0.01, loss=0.01), runs=(2, 2), effects=False)
    assert fast.first.use.limit == "1.5 s"
    (note,) = (each for each in assumptions(fast) if each.startswith("Shortened"))
    assert "downloads 1.5 s instead of 30 s" in note
    usual = advise(stated_link(2e6, 0.01, loss=0.01), runs=(2, 2), effects=False)
    assert not any(each.startswith("Shortened") for each in assumptions(usual))


def test_links_that_no_run_gets_through_are_refused(command: Command) -> None:
    for rate in ("1000Gbps", "11Gbps"):
        result = command("advise", "--loss", "2%", "--rate", rate, "--rtt", "60ms")
        assert result.returncode == 2
        assert f"found a link of {rate[:-4]} Gbps, expected at most 10 Gbps" in result.stderr


def test_the_share_of_packets_and_that_of_time_are_told_apart() -> None:
    """TCP sends less in bad periods: of its packets fewer are lost than at a random time."""
    good, bad = np.arange(0, 0.9, 0.01), np.arange(0.9, 1.0, 0.05)
    times = np.concatenate([second + np.concatenate([good, bad]) for second in range(100)]).astype(np.float64)
    lost = np.concatenate([np.arange(len(good) + len(bad)) >= len(good)] * 100)
    link = fit(
        Measurement("tcp.csv", "csv", 100.0, probes=(Probes(Direction.DOWN, times, lost, None),)),
        rate_bps=8e6,
        replicates=40,
    )
    (line,) = losses_in_words(link)
    assert line.startswith("down: 200 of 9,200 packets lost, 2.2 %; at a random time ")
    evenly = Probes(Direction.DOWN, np.linspace(0, 9.99, 1000), np.arange(1000) % 50 == 0, None)
    link = fit(Measurement("even.csv", "csv", 10.0, probes=(evenly,)), rate_bps=8e6, replicates=40)
    (line,) = losses_in_words(link)
    assert line.startswith("down: 20 of 1,000 packets lost, 2 % (")


def test_schemes_say_what_they_take() -> None:
    deployable = remedies.deployable()
    assert {"arq", "i-tcp", "snoop"} <= {*deployable}
    assert "basic" not in deployable
    for scheme in deployable.values():
        assert scheme.place
        assert scheme.cost


@pytest.mark.usefixtures("few_remedies")
def test_what_a_measurement_cannot_tell_widens_the_advice() -> None:
    """A ping a second sees no bursts: with and without them, remedies differ."""
    times = np.arange(0, 300.0, 1.0)
    lost = np.random.default_rng(2).random(300) < 0.05
    delays = (Delays(Direction.ROUND_TRIP, times, np.full(300, 0.06)),)
    rare = Measurement(
        "ping.txt", "ping", 299.0, probes=(Probes(Direction.DOWN, times, lost, None),), delays=delays
    )
    link = fit(rare, rate_bps=2e6, replicates=40)
    advice = advise(link, runs=FEW, effects=False)
    assert "bursts" in link.cannot_tell[0]
    known = advise(stated_link(2e6, 0.06, loss=0.05), runs=FEW, effects=False)
    width = (advice.now.high - advice.now.low) / advice.now.value
    assert width > 3 * (known.now.high - known.now.low) / known.now.value
    page = html(advice, "lasthop advise")
    assert "What this measurement cannot tell" in page
    assert advice.measure.irtt in page


@pytest.mark.usefixtures("few_remedies")
def test_two_packets_advise_nothing() -> None:
    """The mean gain over such different draws is that of a few, and its interval is unbounded."""
    times = np.array([0.0, 0.1])
    two = Measurement(
        "two.csv", "csv", 0.1, probes=(Probes(Direction.DOWN, times, np.array([False, True]), None),)
    )
    advice = advise(fit(two, rate_bps=1e6, replicates=100), runs=(32, 32), effects=False)
    assert any(math.isinf(each.gain_high) and each.gain > 1.05 for each in advice.remedies)
    assert advice.advised == ()
    assert advice.verdict() == "The measurement does not decide this."


@pytest.mark.usefixtures("few_remedies")
def test_advice_without_measured_losses_says_so() -> None:
    begins = np.arange(0, 10, 0.1)
    fast = Rates(Direction.DOWN, begins, np.full(100, 0.1), np.full(100, 8e6), True)
    link = fit(Measurement("tcp.json", "iperf3 tcp", 10.0, rates=(fast,)), rtt_s=0.06)
    advice = advise(link, runs=(2, 2), effects=False)
    assert advice.verdict().startswith("Losses were not measured. If there are none: ")
    page = html(advice, "lasthop advise tcp.json")
    assert "the losses of the downlink: no measurement has any" in page
    assert advice.measure.irtt in page


def test_an_interval_that_includes_losses_is_explained(lossy: Advice) -> None:
    assert [caution(lossy, each) for each in lossy.advised] == [""] * len(lossy.advised)
    first = lossy.advised[0]
    doubtful = replace(first, gain_low=0.9)
    judgement = replace(lossy.first, remedies=(doubtful,))
    changed = replace(lossy, judgements=(judgement,), advised=(doubtful,))
    assert caution(changed, doubtful).startswith("significant on average over the links")
    # The headline is as weak as the evidence.
    assert changed.verdict() == "BBR may help."
    little = replace(doubtful, gain=1.07)
    judgement = replace(lossy.first, remedies=(little,))
    assert replace(lossy, judgements=(judgement,), advised=(little,)).verdict() == "BBR may help a little."
    assert "a single one of them it may be a loss" in html(changed, "lasthop advise")


@pytest.mark.usefixtures("few_remedies")
def test_the_page_needs_no_network_and_escapes_names() -> None:
    times = np.arange(0, 60.0, 0.02)
    lost = np.arange(3000) % 40 == 3
    name = '<script>alert("x")</script>.csv'
    probes = (Probes(Direction.DOWN, times, lost, None),)
    link = fit(Measurement(name, "csv", 60.0, probes=probes), rate_bps=2e6, replicates=10)
    page = html(advise(link, runs=(2, 2), effects=False), "lasthop advise")
    assert "<script>" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_limits_are_gains_over_the_one_number_of_now(lossy: Advice) -> None:
    for limit in lossy.limits:
        assert limit.value == pytest.approx(limit.gain * lossy.now.value)


@pytest.mark.usefixtures("few_remedies")
def test_losses_that_cannot_matter_are_not_asked_for(lossy: Advice) -> None:
    """One loss of 1,000 packets in a minute: their bursts are unknown, and no matter to a slow link."""
    times = np.arange(0, 600.0, 1.0)
    rare = Probes(Direction.DOWN, times, np.arange(600) == 300, None)
    link = fit(Measurement("ping.csv", "csv", 600.0, probes=(rare,)), rate_bps=1e5, replicates=20)
    assert link.cannot_tell
    matters = advise(link, runs=(2, 2), effects=False)
    measured = replace(lossy, link=link)
    assert measured.open_questions == link.cannot_tell
    losses = replace(lossy.limits[0], low=0.999, high=1.001)
    judgement = replace(lossy.first, limits=(losses, *lossy.limits[1:]))
    no_matter = replace(measured, judgements=(judgement,), advised=())
    assert no_matter.open_questions == ()
    assert no_matter.verdict() != "The measurement does not decide this."
    assert no_matter.measure.irtt not in html(no_matter, "lasthop advise")
    assert matters.measure.irtt


def test_numbers_of_the_document_are_finite(lossy: Advice) -> None:
    json.dumps(document(lossy), allow_nan=False)


@pytest.mark.campaign
def test_the_page_shows_what_the_command_prints(command: Command) -> None:
    result = command("advise", *EXAMPLE.split()[2:])
    assert result.returncode == 0, result.stderr
    shown = (ROOT / "docs/guide/advise.md").read_text()
    section = shown.partition(f"$ {EXAMPLE}\n")[2].partition("\n```")[0]
    assert prints(result.stdout, section), result.stdout


def test_advise_prints_and_writes(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "advice"
    link = ["--loss", "2%", "--burst", "5", "--rate", "1Mbps", "--rtt", "200ms"]
    plan = tmp_path / "plan"
    result = command("advise", *link, "--out", str(out), "--plan", str(plan))
    assert result.returncode == 0, result.stderr
    assert results(plan) == ["90-congestion-control.conf", "README.txt"]
    assert results(out) == ["advice.html", "advice.json", "scenario.toml"]
    assert "what limits it: now" in result.stdout
    assert "CUBIC, Linux's default" in result.stdout
    found = json.loads((out / "advice.json").read_text())
    assert found["remedies"][0]["gain"] >= found["remedies"][-1]["gain"]
    keys = (ROOT / "docs/reference/json.md").read_text().partition("## `lasthop advise --json`")[2]
    documented = {*re.findall("`([a-z_0-9]+)`", keys.partition("\n## ")[0])}
    assert {*found, *found["uses"][0], *found["remedies"][0], *found["limits"][0]} <= documented
    assert {*found["effects"][0], *found["effects"][0]["changes"][0]} <= documented


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "2%"], "expected a measurement, a preset, a scenario, or what you know of the link"),
        (["--loss", "2", "--rate", "8Mbps", "--rtt", "60ms"], "expected a share below 1, such as 2%"),
        (
            ["--loss", "2%", "--burst", "x", "--rate", "8Mbps", "--rtt", "60ms"],
            "found a burst of 'x', expected packets in a row",
        ),
        (["README.md", "--loss", "2%"], "state a link without measurements"),
        (["starlink", "--rate", "8Mbps"], "--rate: starlink states this already"),
        (["starlink", "geo"], "starlink: a preset or a scenario is a whole link; state it alone"),
        (["last-mile", "--rate", "8Mbps"], "--rate: last-mile states this already"),
        (["two-flows"], "two-flows: advice is for one last hop"),
        (["geo", "--rtt", "60ms"], "at least that of the last hop of geo, 558 ms"),
        (["--sender", "linux-bbbr"], "linux-bbr"),
    ],
)
def test_wrong_input_is_refused(command: Command, arguments: list[str], message: str) -> None:
    result = command("advise", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_preset_is_a_link(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = preset_link("rural-wifi")
    assert (link.rate_bps, link.up_rate_bps, link.queue_packets) == (3e6, 3e6, 100)
    assert (link.last_hop_rtt_s, link.rtt_s) == pytest.approx((0.012, 0.052))
    assert losses_in_words(link) == ["as stated: 0.5 % of the packets of 1500 B lost"]
    assert preset_link("rural-wifi", rtt_s=0.1).rtt_s == pytest.approx(0.1)
    # The rates of Wi-Fi, which take most of the time, are tested by themselves.
    monkeypatch.setattr(given, "SHORTEST_S", 1.0)
    monkeypatch.setattr(given, "LONGEST_S", 1.0)
    taken = set()
    for each in lasthop.links():
        every = preset_link(each.name)
        assert every.rate_bps is not None
        scenario = every.scenario()
        assert lasthop.run(scenario.with_({"limit": 5})).metrics["throughput_bps"] >= 0
        # Advice asks what it would be without its neighbours, its distance, its roams.
        for key in ("neighbour", "snr", "power_save", "roaming", "interference"):
            if (path := f"wifi.{key}") in scenario:
                assert path not in scenario.with_({path: None}), each.name
                taken.add(key)
    assert len(taken) == 5
    out = tmp_path / "advice"
    # The slowest has the fewest packets.
    result = command("advise", "2g", "--for", "bulk", "--out", out)
    assert result.returncode == 0, result.stderr
    assert "the link: 20 kbps, round trip 1.34 s" in result.stdout
    assert "Assumed: the server is 40 ms of round-trip time beyond the last hop" in result.stdout
    # What is written is the link.
    again = scenario_link(lasthop.load(out / "scenario.toml"))
    assert (again.rate_bps, again.rtt_s) == pytest.approx((20e3, 1.34))


@pytest.mark.usefixtures("few_remedies")
def test_a_scenario_is_a_link() -> None:
    scenario = lasthop.load("last-mile")
    link = scenario_link(scenario)
    assert link.scenario()["radio.channel"] == scenario["radio.channel"]
    assert any("without the schemes of the scenario (arq)" in note for note in link.notes)
    advice = advise(link, ["bulk", "upload"], runs=(4, 4), effects=False)
    assert advice.now.value > 0
    # The scenario states its uplink.
    assert not any("the uplink loses" in note for note in assumptions(advice))
    for name, message in (("office", "for one last hop"), ("shared-radio", "for one last hop")):
        with pytest.raises(ValueError, match=message):
            scenario_link(lasthop.load(name))
    with pytest.raises(ValueError, match=r"a sweep of radio\.rate is several links"):
        scenario_link(scenario.with_("sweep.radio.rate=['1 Mbps', '2 Mbps']"))


@pytest.mark.usefixtures("few_remedies")
def test_a_link_that_carries_nothing_now_is_advised_all_the_same() -> None:
    """Everything is lost: no ratio, no completion time, and no crash."""
    times = np.linspace(0, 20, 1000)
    dead = (Probes(Direction.DOWN, times, np.ones(1000, bool), None),)
    link = fit(Measurement("dead.csv", "csv", 20.0, probes=dead), rate_bps=2e6, replicates=10)
    advice = advise(link, runs=(8, 8), effects=False)
    assert advice.now.value == pytest.approx(0, abs=1e4)
    assert html(advice, "lasthop advise")
    json.dumps(document(advice), allow_nan=False)


@pytest.mark.usefixtures("few_remedies")
def test_no_losses_seen_leave_room_for_some() -> None:
    """Of 100 probes none was lost: up to 4 % may be, and what that costs widens the interval."""
    times = np.linspace(0, 2, 100)
    few = (Probes(Direction.DOWN, times, np.zeros(100, bool), None),)
    link = fit(Measurement("few.csv", "csv", 2.0, probes=few), rate_bps=4e6, replicates=100)
    now = advise(link, runs=FEW, effects=False).now
    assert (now.high - now.low) / now.value > 0.1
