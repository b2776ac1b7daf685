"""Fits of losses, rate and delay, and the scenarios made of them."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
from csv import DictReader
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from conftest import Command, results

import lasthop
from lasthop.core import formats
from lasthop.fitting import FittedLink, FittedLosses, NoRateError, fit, fit_losses, plan, stated_link
from lasthop.fitting.coverage import Case, covered, periods
from lasthop.fitting.losses import Candidate, lost_copies, record_of
from lasthop.fitting.scenario import channel
from lasthop.fitting.timing import Timing, Variation, vary
from lasthop.fitting.uncertainty import Replicates, interval
from lasthop.measurement import Counts, Delays, Direction, Measurement, MeasurementError, Probes, Rates


def every(spacing: float, count: int) -> npt.NDArray[np.float64]:
    """Return times in equal distances."""
    return np.linspace(0.0, spacing * (count - 1), count)


def probes(
    good: float,
    bad: float,
    loss_bad: float,
    *,
    loss_good: float = 0.0,
    spacing: float = 0.02,
    seconds: float = 300.0,
    seed: int = 1,
    direction: Direction = Direction.DOWN,
) -> Probes:
    """Return what probes meet on a channel with exponential periods, which starts in a good one."""
    random = np.random.default_rng(seed)
    times = np.arange(0, seconds, spacing)
    edges = np.cumsum(random.exponential(np.tile([good, bad], math.ceil(2 * seconds / (good + bad)) + 50)))
    is_bad = np.searchsorted(edges, times, side="right") % 2 == 1
    lost = random.random(len(times)) < np.where(is_bad, loss_bad, loss_good)
    return Probes(direction, times, lost, None)


def measured(*parts: Probes, rtt: float | None = 0.06, name: str = "link.csv") -> Measurement:
    """Return a measurement with these probes."""
    times = parts[0].sent_s
    delays = () if rtt is None else (Delays(Direction.ROUND_TRIP, times, np.full(len(times), rtt)),)
    return Measurement(name, "csv", float(times[-1]), probes=parts, delays=delays)


@pytest.fixture(scope="module")
def bursty() -> FittedLosses:
    return fit_losses(probes(4.0, 0.4, 0.9), replicates=100)


def test_a_bursty_link_is_found_with_intervals_that_hold_the_truth(bursty: FittedLosses) -> None:
    assert bursty.best.family == "gilbert-elliott-3"
    assert sum(each.weight for each in bursty.candidates) == pytest.approx(1)
    for name, truth in (("bad_s", 0.4), ("good_s", 4.0), ("loss_bad", 0.9), ("loss", 0.9 / 11)):
        found = bursty.parameter(name)
        assert found is not None
        assert found.determined
        assert found.low < truth < found.high, name
        assert found.low < found.value < found.high
    assert not bursty.cannot_tell
    assert not bursty.doubtful
    assert bursty.hidden_burst_s is None


@pytest.mark.campaign
def test_intervals_cover() -> None:
    """Of 60 records, the intervals of the mean bad period miss the truth at most 8 times.

    With the coverage that they claim more do once in 200 times; with one of 80 %, 8 or fewer do once in nine.
    """
    case = Case("gilbert", 0.05, 200.0, periods(4.0, 0.4, 0.0, 1.0))
    found = (fit_losses(case.probes(number), replicates=100, seed=number) for number in range(60))
    assert sum(not covered(each, case.model)["bad_s"] for each in found) <= 8


def test_draws_spread_as_the_intervals_do(bursty: FittedLosses) -> None:
    found = bursty.parameter("bad_s")
    assert found is not None
    lengths = [model["bad_s"] for model in bursty.draws]
    within = np.mean([found.low <= length <= found.high for length in lengths])
    assert 0.85 <= within <= 1
    assert np.std(np.log(lengths)) > 0.3 * math.log(found.high / found.low) / 4


def test_a_ping_a_second_cannot_tell_bursts() -> None:
    found = fit_losses(probes(4.0, 0.4, 0.9, spacing=1.0), replicates=50)
    assert "whether losses come in bursts: with 1 s between packets" in found.cannot_tell[0]
    assert found.hidden_burst_s is not None
    assert found.hidden_burst_s > 0.2
    # What is simulated covers what cannot be determined: bursts of a packet and of a good part of a second.
    lengths = [model["bad_s"] for model in found.draws]
    assert min(lengths) < 0.01
    assert max(lengths) > 0.2
    assert plan(found).interval_s == 0.01


def test_independent_losses_exclude_bursts() -> None:
    found = fit_losses(probes(1e9, 1.0, 1.0, loss_good=0.02), replicates=50)
    assert found.best.family == "independent"
    assert not found.cannot_tell
    assert found.hidden_burst_s is not None
    assert found.hidden_burst_s < 0.01
    assert all(math.isnan(model["bad_s"]) for model in found.draws)


def test_no_losses_and_few_losses_say_so() -> None:
    times = every(0.02, 1000)
    never = fit_losses(Probes(Direction.DOWN, times, np.zeros(1000, bool), None), replicates=10)
    assert never.cannot_tell == ("the loss rate: none of 1,000 packets was lost, so it is at most 0.3 %",)
    assert never.checks == ()
    assert never.draws[0]["loss"] < 1e-4
    few = fit_losses(Probes(Direction.DOWN, times, np.arange(1000) % 400 == 7, None), replicates=10)
    assert few.cannot_tell == ("the loss rate and bursts: only 3 of 1,000 packets were lost",)
    assert len(few.cannot_tell) == 1
    always = fit_losses(Probes(Direction.DOWN, times, np.ones(1000, bool), None), replicates=10)
    assert always.best.model["loss"] == 1.0


def test_a_model_that_is_not_the_links_is_doubted() -> None:
    """Of neighbours one is lost and the other is not: no model of periods has that."""
    times = every(0.02, 10_000)
    lost = probes(4.0, 1.0, 1.0, seconds=200.0).lost & (np.arange(10_000) % 2 == 0)
    found = fit_losses(Probes(Direction.DOWN, times, lost, None), replicates=100)
    assert [check.name for check in found.doubtful]


def test_counts_are_fitted(bursty: FittedLosses) -> None:
    found = fit_losses(counted(probes(4.0, 0.4, 0.9), 5), replicates=50).parameter("bad_s")
    assert found is not None
    assert found.low < 0.4 < found.high


def test_the_same_losses_fit_alike_on_any_number_of_threads(bursty: FittedLosses) -> None:
    data = probes(4.0, 0.4, 0.9, seconds=60.0)
    one, three = (fit_losses(data, replicates=20, jobs=jobs) for jobs in (1, 3))
    assert list(one.parameters) == list(three.parameters)
    assert str(one.draws) == str(three.draws)


def test_a_scenario_has_what_was_fitted() -> None:
    up = probes(1e9, 1.0, 1.0, loss_good=0.01, direction=Direction.UP, seed=3)
    link = fit(measured(probes(4.0, 0.4, 0.9), up), rate_bps=8e6, replicates=20)
    scenario = link.scenario()
    (burst,) = [each for each in scenario.channel_bursts() if each["link"] == "base-mobile"][:1]
    assert link.down is not None
    assert link.up is not None
    assert burst["loss"] == pytest.approx(link.down.best.model["loss"], rel=1e-5)
    assert burst["bad_s"] == pytest.approx(link.down.best.model["bad_s"], rel=1e-5)
    assert "frame-loss" in scenario.to_toml()
    assert lasthop.run(scenario).metrics["throughput_bps"] > 0
    settings = link.draws(5)
    assert len(settings) == 5
    assert len({str(change) for each in settings for change in each.items()}) > 5
    assert link.draws(5) == settings


def test_every_model_is_a_channel_of_a_scenario() -> None:
    nan, scenario = math.nan, lasthop.load("last-mile")
    for good, bad in ((nan, nan), (1.2, nan), (nan, 0.3), (0.4, 7.0)):
        model = {
            "loss": 0.01,
            "good_s": 3.0,
            "good_sigma": good,
            "bad_s": 1e-9,
            "bad_sigma": bad,
            "loss_good": 1e-12,
            "loss_bad": 1.0,
        }
        scenario.with_({"radio.channel": channel(model)})
    for loss in (0.0, 0.02, 1.0):
        none = dict.fromkeys(model, nan) | {"loss": loss}
        scenario.with_({"radio.channel": channel(none)})


@pytest.mark.parametrize(
    "link",
    [
        pytest.param(stated_link(8.04e6, 0.0431, loss=0.02, burst="5.25"), id="bursts of packets"),
        pytest.param(stated_link(123456.0, 1234.5, loss=1 / 3, burst="41.23456ms"), id="bursts of time"),
        pytest.param(stated_link(2.5e9, 0.0, loss=1e-7, last_hop_rtt_s=0.0), id="no delay"),
        pytest.param(
            replace(
                fit(measured(probes(4.0, 0.4, 0.9)), rate_bps=8e6, replicates=10),
                rate_variation=Variation(8.123e6, 0.33333, 0.005, 0.0),
                up_rate_variation=Variation(2e6, 0.5, 0.25, 1.2345),
                timing=Timing(delay_variation=Variation(0.00512, 0.7, 0.1, 3.0)),
            ),
            id="varying",
        ),
    ],
)
def test_the_file_of_a_link_gives_its_scenario(link: FittedLink) -> None:
    read, scenario = lasthop.Scenario.parse(link.toml()), link.scenario()
    assert read.to_toml() == scenario.to_toml()
    assert read.hash == scenario.hash


def test_round_trips_are_taken_for_the_downlink_and_it_is_said() -> None:
    link = fit(measured(probes(4.0, 0.4, 0.9, direction=Direction.ROUND_TRIP)), rate_bps=8e6, replicates=10)
    assert link.down is not None
    assert link.up is None
    assert any(note.startswith("Assumed: all losses happened on the downlink.") for note in link.notes)


def test_a_link_without_a_rate_has_a_fit_and_no_scenario() -> None:
    link = fit(measured(probes(4.0, 0.4, 0.9)), replicates=10)
    assert link.down is not None
    with pytest.raises(NoRateError, match="--rate 8Mbps"):
        link.scenario()


def test_rate_delay_and_queue_come_from_the_measurements() -> None:
    times = every(0.1, 600)
    steady = Rates(Direction.DOWN, times, np.full(600, 0.1), np.full(600, 5e6), True, capacity=True)
    full = Delays(Direction.ROUND_TRIP, times, np.repeat([0.05, 0.25], 300))
    busy = Measurement("u.json", "iperf3 udp", 60.0, delays=(full,), rates=(steady,))
    idle = measured(probes(1e9, 1.0, 1.0, loss_good=0.01), rtt=0.04)
    link = fit([idle, busy], replicates=10)
    assert link.rate_bps == pytest.approx(5e6)
    assert link.rtt_s == pytest.approx(0.04)
    # 210 ms of 5 Mb/s.
    assert link.queue_packets == math.ceil(0.21 * 5e6 / 12_000)
    assert fit([idle, busy], rate_bps=6e6, rtt_s=0.1, replicates=10).rtt_s == 0.1


@pytest.mark.parametrize(("capacity", "rate_bps"), [(True, 5e6), (False, 6e6)])
def test_a_rate_that_is_no_capacity_is_taken_at_its_best(capacity: bool, rate_bps: float) -> None:
    values = np.tile([4e6, 6e6], 300)
    rates = Rates(Direction.DOWN, every(0.1, 600), np.full(600, 0.1), values, True, capacity)
    link = fit(Measurement("t", "iperf3 tcp", 60.0, rates=(rates,)), replicates=10)
    assert link.rate_bps == pytest.approx(rate_bps)
    assert any("may be faster" in note for note in link.notes) is not capacity


def test_a_varying_rate_is_recovered() -> None:
    """Of a lognormal rate with a correlation time of a second, its law is found within a tenth or so."""
    random = np.random.default_rng(4)
    held, step = 0.0, 0.1
    logs = []
    for _ in range(20_000):
        keep = math.exp(-step / 1.0)
        held = keep * held + math.sqrt(1 - keep**2) * random.standard_normal()
        logs.append(0.5 * held)
    found = vary(every(step, 20_000), 5e6 * np.exp(np.array(logs)))
    assert found is not None
    assert found.median == pytest.approx(5e6, rel=0.1)
    assert found.sigma == pytest.approx(0.5, rel=0.1)
    assert found.correlation_s == pytest.approx(1.0, rel=0.25)
    assert vary(np.arange(5.0), np.ones(5)) is None


def test_numbers_that_an_owner_states_make_a_link() -> None:
    link = stated_link(8e6, 0.06, loss=0.02, burst="5", last_hop_rtt_s=0.01)
    (burst,) = [each for each in link.scenario().channel_bursts() if each["by_packets"]]
    assert (burst["loss"], burst["burst_packets"]) == (pytest.approx(0.02), pytest.approx(5))
    assert "frame-loss" in stated_link(8e6, 0.06, loss=0.02).toml()
    assert 'burst = "0.040000 s"' in stated_link(8e6, 0.06, loss=0.02, burst="40 ms").toml()


def test_single_messages_say_why_copies_help_less_than_they_should() -> None:
    """Of Sigfox messages 9.6 % were lost; three copies left 2.3 % and not 0.09 %.

    The file: `datasets/trace4_JSI_20160916` of sensorlab/link-quality-estimation, a row for each message.
    """
    path = os.environ.get("LASTHOP_SIGFOX")
    if path is None:
        pytest.skip("LASTHOP_SIGFOX does not name the messages that were sent once")
    with gzip.open(path, "rt") as file:
        lost = np.array([row["received"] == "0" for row in DictReader(file)])
    found = fit_losses(Probes(Direction.UP, every(1.0, len(lost)), lost, None), replicates=20)
    assert found.best.family == "gilbert-elliott-3"
    assert lost_copies(found.best.model, 3) > 3 * found.best.model["loss"] ** 3


def test_intervals_are_written_for_readers() -> None:
    assert formats.interval(0.1, 0.2, formats.share) == "10 % to 20 %"
    assert formats.interval(0.0, math.inf, formats.share) == "unknown"
    assert formats.seconds(0.9999) == "1 s"


# -- The command -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a measurement of a bursty link."""
    data = probes(4.0, 0.4, 0.9)
    path = tmp_path_factory.mktemp("measured") / "link.csv"
    rows = [
        f"{t:.2f},{int(lost)},{'' if lost else 60}" for t, lost in zip(data.sent_s, data.lost, strict=True)
    ]
    path.write_text("time_s,lost,rtt_ms\n" + "\n".join(rows) + "\n")
    return path


def test_fit_writes_a_scenario_that_runs(command: Command, csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "fitted"
    result = command("fit", str(csv), "--rate", "8Mbps", "--out", str(out))
    assert result.returncode == 0, result.stderr
    assert "mean bad period" in result.stdout
    assert "gilbert-elliott-3" in result.stdout
    assert {"fit.json", "scenario.toml", "down.checks.png"} <= {*results(out)}
    found = json.loads((out / "fit.json").read_text())
    assert found["down"]["parameters"]["bad_s"]["low"] < 0.4 < found["down"]["parameters"]["bad_s"]["high"]
    ran = command("run", str(out / "scenario.toml"), "--json")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.filterwarnings("error")
def test_packets_at_the_same_time_may_have_different_fates() -> None:
    lost = np.random.default_rng(2).random(2000) < 0.03
    probes = Probes(Direction.DOWN, np.repeat(np.arange(1000) * 0.04, 2), lost, None)
    found = fit_losses(probes, replicates=20)
    # Bursts which lose every packet are excluded, however short.
    assert (found.best.family, found.hidden_burst_s, found.cannot_tell) == ("independent", None, ())
    assert len(found.draws) == 20


def test_rows_without_times(command: Command, csv: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("".join(f"{line.split(',', 1)[1]}\n" for line in csv.read_text().split()))
    for arguments in (["fit", str(rows)], ["advise", str(rows), "--rate", "8Mbps"]):
        refused = command(*arguments)
        assert refused.returncode == 2
        assert "state it: --every 20ms" in refused.stderr
    timed, untimed = (
        json.loads(command("fit", *each, "--plan", "--json").stdout)
        for each in ([str(csv)], [str(rows), "--every", "20ms"])
    )
    assert timed == untimed


def test_replay_takes_the_losses_as_measured(command: Command, csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "replayed"
    result = command("fit", str(csv), "--rate", "8Mbps", "--replay", "--out", str(out))
    assert result.returncode == 0, result.stderr
    rows = (out / "losses.csv").read_text().split()
    # A row wherever the losses change.
    assert rows[0] == "time_s,loss"
    assert all(a[-1] != b[-1] for a, b in itertools.pairwise(rows[1:-2]))
    assert command("run", str(out / "scenario.toml"), "--json").returncode == 0


def test_plans_name_the_command(command: Command, csv: Path) -> None:
    assert "irtt client -i 10ms -d 300s" in command("fit", "--plan").stdout
    later = json.loads(command("fit", str(csv), "--plan", "--json").stdout)
    assert later["interval_s"] == 0.02
    assert later["duration_s"] >= 250


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected at least one measurement"),
        (["missing.csv"], "missing.csv"),
        (["link.csv", "--rate", "8"], "expected a rate with its unit, such as 8Mbps"),
        (["link.csv", "--rtt", "0ms"], "expected a duration with its unit"),
        (["link.csv", "--every", "20"], "--every: found '20', expected a duration with its unit"),
        (["README.md"], "README.md"),
    ],
)
def test_wrong_input_is_refused(command: Command, csv: Path, arguments: list[str], message: str) -> None:
    named = [str(csv) if each == "link.csv" else each for each in arguments]
    result = command("fit", *named)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


# -- What is easily got wrong --------------------------------------------------------------------------


def losing(share: float, direction: Direction, *, saturated: bool) -> Measurement:
    """Return counts of a UDP test, 60 intervals of a second with 100 packets each."""
    begins, ones = every(1.0, 60), np.ones(60)
    lost = np.full(60, round(100 * share), np.int64)
    counts = (Counts(direction, begins, ones, np.full(60, 100, np.int64), lost),)
    rates = (Rates(direction, begins, ones, 8e6 * ones, saturated, capacity=saturated),)
    return Measurement("udp.json", "iperf3 udp", 60.0, counts=counts, rates=rates)


def test_losses_of_a_test_that_fills_the_link_are_used_only_if_there_are_no_others() -> None:
    idle = measured(probes(1e9, 1.0, 1.0, loss_good=0.01, direction=Direction.ROUND_TRIP))
    full = losing(0.9, Direction.DOWN, saturated=True)
    link = fit([idle, full], replicates=10)
    assert link.down is not None
    assert link.down.best.model["loss"] == pytest.approx(0.01, rel=0.3)
    assert link.rate_bps == pytest.approx(8e6)
    alone = fit([full], replicates=10)
    assert alone.down is not None
    assert alone.down.best.model["loss"] == pytest.approx(0.9)
    assert any("queue may also have dropped" in note for note in alone.notes)
    calm = fit([idle, losing(0.03, Direction.DOWN, saturated=False)], replicates=10)
    assert calm.down is not None
    assert calm.down.best.model["loss"] == pytest.approx(0.03)


def counted(data: Probes, packets: int) -> Counts:
    """Return the losses of probes at equal times, counted over as many of them at once."""
    lost = data.lost.reshape(-1, packets).sum(axis=1).astype(np.int64)
    interval_s = packets * round(float(data.sent_s[1] - data.sent_s[0]), 9)
    count = len(lost)
    return Counts(
        data.direction,
        every(interval_s, count),
        np.full(count, interval_s),
        np.full(count, packets, np.int64),
        lost,
    )


def test_counts_of_independent_losses_may_hide_short_bursts() -> None:
    times = every(0.01, 30_000)
    lost = np.random.default_rng(5).random(30_000) < 0.02
    alike = fit_losses(counted(Probes(Direction.DOWN, times, lost, None), 100), replicates=20)
    assert alike.best.family == "independent"
    assert alike.hidden_burst_s is not None
    # The variance of the losses of an interval excludes bursts of several packets.
    assert 0.002 < alike.hidden_burst_s < 0.03
    assert bool(alike.cannot_tell) == (alike.hidden_burst_s > 0.01)
    assert len(alike.draws) > 10


def test_counts_do_not_tell_the_length_of_bad_periods_much_shorter_than_intervals() -> None:
    """Periods of 50 ms with 60 % loss lose as many packets as those of 30 ms that lose all."""
    short = counted(probes(2.0, 0.05, 0.6, spacing=0.01), 100)
    found = fit_losses(short, replicates=40)
    bad = found.parameter("bad_s")
    assert bad is not None
    assert not bad.determined
    assert bad.low < 0.05 < bad.high
    assert any(what.startswith("the loss in bad periods") for what in found.cannot_tell)
    # The draws have other lengths too.
    drawn = [model["bad_s"] for model in found.draws]
    assert np.quantile(drawn, 0.9) > 1.5 * np.quantile(drawn, 0.1)


def test_what_nothing_was_lost_of_may_lose_something() -> None:
    never = fit_losses(Probes(Direction.DOWN, every(0.02, 100), np.zeros(100, bool), None), replicates=200)
    shares = [model["loss"] for model in never.draws]
    # Jeffreys' prior: the 97.5 % point of Beta(1/2, 100.5).
    assert np.quantile(shares, 0.975) == pytest.approx(0.0249, rel=0.05)
    always = fit_losses(Probes(Direction.DOWN, every(0.02, 100), np.ones(100, bool), None), replicates=200)
    assert min(model["loss"] for model in always.draws) > 0.95


UP = "radio.uplink.channel"


def _bad_loss(channel: dict[str, dict[str, float]]) -> float:
    (parameters,) = channel.values()
    return parameters["loss_bad"]


def test_directions_are_drawn_independently() -> None:
    up = probes(4.0, 0.4, 0.9, direction=Direction.UP, seed=3)
    link = fit(measured(probes(4.0, 0.4, 0.9), up), rate_bps=8e6, replicates=100)
    drawn = link.draws(64)
    losses = [[_bad_loss(settings[key]) for settings in drawn] for key in ("radio.channel", UP)]
    first, second = (np.argsort(np.argsort(each)) for each in losses)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3


def test_a_record_that_would_take_hours_is_refused() -> None:
    data = Probes(Direction.DOWN, every(0.02, 1_000_001), np.zeros(1_000_001, dtype=bool), None)
    with pytest.raises(ValueError, match=r"1,000,001 packets, of which at most 1,000,000 are fitted; cut"):
        fit_losses(data)


def test_an_unmeasured_uplink_is_drawn_with_the_downlink() -> None:
    up = probes(4.0, 0.4, 0.9, direction=Direction.UP, seed=3)
    alone = fit(measured(probes(4.0, 0.4, 0.9)), rate_bps=8e6, replicates=20)
    both = fit(measured(probes(4.0, 0.4, 0.9), up), rate_bps=8e6, replicates=20)
    down, mirrored = alone.draws(8), alone.draws(8, mirrored=True)
    assert [{"radio.channel": settings["radio.channel"]} for settings in mirrored] == down
    assert all(settings[UP] == settings["radio.channel"] for settings in mirrored)
    assert both.draws(8, mirrored=True) == both.draws(8)


def test_what_is_not_measured_is_said_to_be_assumed() -> None:
    link = fit(measured(probes(4.0, 0.4, 0.9, direction=Direction.UP)), rate_bps=8e6, replicates=10)
    assert link.down is None
    assert "Assumed: no down losses, since no measurement has any." in link.notes
    once = Counts(Direction.DOWN, every(1.0, 1), np.ones(1), np.array([3000]), np.array([90]))
    whole = Measurement("udp.json", "iperf3 udp", 10.0, counts=(once,))
    link = fit(whole, rate_bps=8e6)
    assert any("are a single count, which shows no bursts" in note for note in link.notes)
    assert link.scenario()["radio.channel"] == {"frame-loss": {"loss": 0.03}}
    assert link.cannot_tell == ("whether losses come in bursts: the packets were counted once",)
    filled = Rates(Direction.DOWN, np.zeros(1), np.ones(1), np.full(1, 8e6), True)
    assert fit(replace(whole, rates=(filled,)), rate_bps=8e6).unmeasured
    at_once = Probes(Direction.DOWN, np.zeros(100), np.arange(100) < 3, None)
    unused = fit(Measurement("p.csv", "csv", 0.0, probes=(at_once,)), rate_bps=8e6)
    assert any("of probes at a single time and not used" in note for note in unused.notes)


def test_losses_that_no_measurement_has_are_undetermined() -> None:
    begins = every(0.1, 100)
    fast = Rates(Direction.DOWN, begins, np.full(100, 0.1), np.full(100, 8e6), True)
    link = fit(Measurement("tcp.json", "iperf3 tcp", 10.0, rates=(fast,)))
    assert link.unmeasured
    assert link.cannot_tell == ("the losses of the downlink: no measurement has any",)
    assert link.measure == plan()
    assert not stated_link(8e6, 0.06).unmeasured
    assert not fit(measured(probes(4.0, 0.4, 0.9)), rate_bps=8e6, replicates=10).unmeasured


def test_a_plan_is_for_the_direction_that_is_open() -> None:
    few = Probes(Direction.UP, every(0.02, 15_000), np.arange(15_000) % 5000 == 17, None)
    link = fit(measured(probes(4.0, 0.4, 0.9), few), rate_bps=8e6, replicates=40)
    assert link.down is not None
    assert not link.down.cannot_tell
    assert link.cannot_tell == ("up: the loss rate and bursts: only 3 of 15,000 packets were lost",)
    assert link.measure == plan(link.up)
    assert link.measure.duration_s > 5 * plan(link.down).duration_s


def test_an_interval_with_too_many_packets_names_its_file() -> None:
    much = Counts(
        Direction.DOWN, every(1.0, 2), np.ones(2), np.full(2, 10**8, np.int64), np.full(2, 10, np.int64)
    )
    with pytest.raises(MeasurementError, match=r"more than 10,000,000 packets.*\n --> much.csv"):
        fit(Measurement("much.csv", "csv", 2.0, counts=(much,)), rate_bps=8e6)


@pytest.mark.parametrize("packets", [5, 50, 250])
def test_counts_tell_what_their_packets_do(packets: int) -> None:
    """Bad periods of 0.4 s, counted over 0.1, 1 and 5 s: intervals contain the estimate from all packets."""
    data = probes(4.0, 0.4, 0.9, loss_good=0.001, seed=4)
    each, together = (fit_losses(data, replicates=100) for data in (data, counted(data, packets)))
    determined = {parameter.name for parameter in together.parameters if parameter.determined}
    for parameter in together.parameters:
        estimate = each.parameter(parameter.name)
        if parameter.determined and estimate is not None:
            assert parameter.low < estimate.value < parameter.high, parameter.name
    expected = {"loss", "good_s"} if packets == 250 else {"loss", "good_s", "bad_s", "loss_bad"}
    assert determined - {"loss_good"} == expected


def test_outages_counted_by_the_next_arrival_keep_their_length() -> None:
    """Outages of 2 s, whose losses iperf3 counts in the interval of the next packet, a second long."""
    lost = probes(8.0, 2.0, 1.0, spacing=0.01, seconds=600.0, seed=2).lost
    arrivals = np.flatnonzero(~lost)
    ends = np.arange(1, 601) * 100
    counted_to = np.concatenate(([0], arrivals[np.searchsorted(arrivals, ends) - 1] + 1))
    gone = np.diff(np.concatenate(([0], np.cumsum(lost)))[counted_to]).astype(np.int64)
    sent = np.diff(counted_to).astype(np.int64)
    late = Counts(Direction.DOWN, every(1.0, 600), np.ones(600), sent, gone, until_arrival=True)
    each = fit_losses(Probes(Direction.DOWN, every(0.01, 60_000), lost, None), replicates=2)
    bad = each.best.model["bad_s"]
    assert fit_losses(late, replicates=2).best.model["bad_s"] == pytest.approx(bad, rel=0.1)
    unknown = fit_losses(replace(late, until_arrival=False), replicates=2)
    assert unknown.best.model["bad_s"] < 0.7 * bad


def test_counts_of_fast_links_are_thinned_alike() -> None:
    """20,000 packets a second lose as 1,000 do."""
    random = np.random.default_rng(8)
    is_bad = random.random(200) < 0.1
    sent = np.full(200, 20_000, np.int64)
    lost = random.binomial(sent, np.where(is_bad, 0.6, 0.002)).astype(np.int64)
    fast = Counts(Direction.DOWN, every(1.0, 200), np.ones(200), sent, lost)
    thinned = record_of(fast)
    assert thinned.sent < 200 * 2000
    assert thinned.lost / thinned.sent == pytest.approx(lost.sum() / sent.sum(), rel=0.05)
    found = fit_losses(fast, replicates=2)
    assert (found.sent, found.lost) == (sent.sum(), lost.sum())
    assert found.best.family == "gilbert-elliott"
    assert found.best.model["loss_good"] == pytest.approx(0.002, rel=0.2)


def test_a_host_that_never_replies_tells_nothing() -> None:
    always = fit_losses(Probes(Direction.DOWN, every(0.02, 100), np.ones(100, bool), None), replicates=20)
    assert always.cannot_tell == (
        "anything of the link: all 100 packets were lost; does the host reply at all?",
    )


def test_a_test_that_carried_nothing_has_no_rate() -> None:
    begins = every(1.0, 10)
    dead = Measurement(
        "t.json", "iperf3 tcp", 10.0, rates=(Rates(Direction.DOWN, begins, begins + 1, 0 * begins, True),)
    )
    assert fit(dead).rate_bps is None


@pytest.mark.parametrize(
    ("loss", "burst", "message"),
    [
        (1.5, None, "expected a share below 1"),
        (-0.1, None, "expected a share below 1"),
        (0.02, "2%", "expected packets in a row or a duration"),
        (0.02, "0", "expected packets in a row or a duration"),
        (0.02, "0.5", "where independent losses have 1.02"),
    ],
)
def test_impossible_statements_are_refused(loss: float, burst: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stated_link(8e6, 0.06, loss=loss, burst=burst)


def test_statements_are_read_as_they_are_meant() -> None:
    for burst in ("5", "5.", "5e0", ["5", "packets"][0]):
        assert "burst = 5.0" in stated_link(8e6, 0.06, loss=0.02, burst=burst).toml()


def test_replay_keeps_the_end_and_equal_times(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "ends.csv"
    rows = ["0,0", "1,0", "1,1", "1,0", "2,1", "10,1"]
    path.write_text("time_s,lost\n" + "\n".join(rows) + "\n")
    out = tmp_path / "out"
    result = command("fit", str(path), "--rate", "8Mbps", "--replay", "--out", str(out))
    assert result.returncode == 0, result.stderr
    times = [float(line.split(",")[0]) for line in (out / "losses.csv").read_text().split()[1:]]
    assert times == sorted(set(times))
    # The last row holds for a microsecond, not as long as the outage before it.
    assert times[-1] - times[-2] < 1e-5
    assert command("run", str(out / "scenario.toml"), "--set", "limit=1 s").returncode == 0


def test_without_replicates_no_parameter_is_determined() -> None:
    """Records that are simulated over a model may all have too few periods for its family."""
    lost = np.arange(1000) % 50 < 5
    probes = Probes(Direction.DOWN, np.linspace(0.0, 20.0, 1000), lost, None)
    best = fit_losses(probes, replicates=1).best
    none = Replicates(best, 1.0, {name: np.array([]) for name in ("loss", "good_s")})
    assert interval("loss", [none], record_of(probes)) == (0.0, 1.0)
    assert interval("good_s", [none], record_of(probes)) == (0.0, math.inf)


def test_intervals_average_the_tails_of_models_by_their_shares() -> None:
    """By hand: of models at 1 to 999 and 1001 to 1999, with 9 tenths and 1 tenth of the weight.

    Below the lower end are 2.5 % of all weight, or 2.8 % of the first model; above the upper one as much of
    all, or a quarter of the second. A model without the parameter does not take part.
    """
    record = record_of(Probes(Direction.DOWN, np.arange(10.0), np.arange(10) % 3 == 0, None))
    candidate = Candidate("gilbert", 2, 0.0, 0.0, 0.0, {"good_s": 1.0})
    first, second = np.arange(1.0, 1000.0), np.arange(1001.0, 2000.0)
    three = [
        Replicates(candidate, 0.9, {"good_s": first}),
        Replicates(candidate, 0.1, {"good_s": second}),
        Replicates(candidate, 5.0, {"loss": first}),
    ]
    low, high = interval("good_s", three, record)
    assert low == pytest.approx(0.025 / 0.9 * 1000, abs=1.5)
    # One gap in 1,999 is beyond the last value.
    assert high == pytest.approx(2000 - (0.025 - 1 / 1999) / 0.1 * 1000, abs=1.5)


class TestDoubt:
    """Whether senders on the fitted link carry the throughput of its file."""

    def transfer(self, rates_bps: list[float], loss: float = 0.0, *, capacity: bool = False) -> Measurement:
        """Return a saturated transfer with these rates, of a second each, and independent losses."""
        time_s = np.arange(len(rates_bps), dtype=np.float64)
        rates = Rates(Direction.DOWN, time_s, np.ones(len(time_s)), np.array(rates_bps), True, capacity)
        lost = np.random.default_rng(3).random(4000) < loss
        sent = Probes(Direction.DOWN, np.linspace(0, len(rates_bps), 4000), lost, None)
        trips = Delays(Direction.ROUND_TRIP, time_s, np.full(len(time_s), 0.06))
        return Measurement("t", "pcap", float(len(time_s)), (sent,), (trips,), (rates,))

    def test_a_link_that_carries_another_throughput_is_in_doubt(self) -> None:
        # A first second into the buffer of a socket.
        (doubt,) = fit(self.transfer([40e6, *[5e6] * 20]), replicates=2).doubts
        assert "6.67 Mb/s were carried down, where senders on the fitted link carry 3" in doubt

    def test_losses_that_no_sender_endures_are_in_doubt(self) -> None:
        (doubt,) = fit(self.transfer([8e6] * 20, loss=0.5), replicates=2).doubts
        assert "8 Mb/s were carried down" in doubt

    def test_what_agrees_is_not_in_doubt(self) -> None:
        for loss in (0.0, 0.001, 0.02):
            assert fit(self.transfer([8e6] * 20, loss), replicates=2).doubts == ()
        # Saturating UDP is no sender of TCP, and a stated rate is the user's.
        unsteady = [40e6, *[5e6] * 20]
        assert fit(self.transfer(unsteady, capacity=True), replicates=2).doubts == ()
        assert fit(self.transfer(unsteady), rate_bps=40e6, replicates=2).doubts == ()

    def test_contradictions_within_a_file_come_first(self) -> None:
        file = replace(self.transfer([8e6] * 20), doubts=("100 packets lost, but 3 retransmitted",))
        assert fit(file, replicates=2).doubts == ("t: 100 packets lost, but 3 retransmitted.",)
        assert "in doubt: 100 packets lost" in file.summary().splitlines()[1]

    def test_the_result_opens_with_the_doubt(self, command: Command, tmp_path: Path) -> None:
        rows = [
            {"start": k, "end": k + 1, "bytes": 5e6 if k == 0 else 6e5, "sender": False} for k in range(10)
        ]
        test = {"protocol": "TCP", "reverse": 1}
        document = {
            "start": {"version": "iperf 3.12", "test_start": test},
            "intervals": [{"streams": [row]} for row in rows],
            "end": {},
        }
        path = tmp_path / "iperf3.json"
        path.write_text(json.dumps(document))
        done = command("fit", path, "--out", tmp_path / "out")
        assert done.stdout.startswith("In doubt: ")
        found = json.loads((tmp_path / "out" / "fit.json").read_text())
        assert len(found["doubts"]) == 1
