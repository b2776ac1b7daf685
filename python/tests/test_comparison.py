"""Comparisons of many arms: what stops early, what is said at the end, and how often that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lasthop
from lasthop import Scenario, ScenarioError
from lasthop._lasthop import METRICS
from lasthop.race import Arm, Race, RaceError, grid
from lasthop.race.elimination import Elimination

SHORT = ["limit=2 s"]
Values = npt.NDArray[np.float64]


class Made:
    """An executor whose runs have known values: a row for each arm, a column for each run."""

    def __init__(self, values: Values, metric: str = "throughput_bps", fails: int | None = None) -> None:
        self.values, self.metric, self.fails = values, metric, fails
        self.waiting: list[tuple[int, int]] = []
        self.submitted: list[tuple[int, int]] = []
        self.scenarios: dict[tuple[int, int], Scenario] = {}

    def submit(self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int) -> None:
        for run in range(first_run, first_run + runs):
            self.waiting.append((key, run))
            self.submitted.append((key, run))
            self.scenarios[key, run] = scenario

    def collect(self, timeout_s: float) -> list[tuple[int, int, int, Any, tuple[Any, ...]]]:
        if self.fails is not None and len(self.submitted) > self.fails:
            raise KeyboardInterrupt
        # The last first: the order in which runs finish must not matter.
        done, self.waiting = self.waiting[::-1], []
        return [(key, run, 1, "finished", self._row(self.values[key, run])) for key, run in done]

    def cancel(self) -> None:
        self.waiting.clear()

    def _row(self, value: float) -> tuple[float | int | bool | None, ...]:
        shown = None if math.isnan(value) else float(value)
        return tuple(shown if name == self.metric else name == "finished" for name in METRICS)


def arms(count: int) -> list[Arm]:
    return [Arm(None, "basic", (("wired.delay", f"{delay + 1} ms"),)) for delay in range(count)]


SCENARIO = lasthop.load("last-mile")


def made(values: Values, **options: Any) -> Any:
    """Compare arms with these values; by default the first is the baseline."""
    every = arms(len(values))
    metric = options.setdefault("metric", "throughput_bps")
    comparison: Any = Race(SCENARIO, every, **{"baseline": every[0], **options})
    comparison.run(executor=Made(values, metric))
    return comparison


def noisy(means: Sequence[float], sd: float, runs: int = 64, seed: int = 1) -> Values:
    """Return values with these means, a common part from the fades, and a part of each arm's own."""
    random = np.random.default_rng(seed)
    fades = 3 * sd * random.standard_normal(runs)
    return np.array(means)[:, None] + fades + sd * random.standard_normal((len(means), runs))


# -- What stops, and what is said ------------------------------------------------------------------------


def test_what_is_clearly_worse_stops_early_and_the_best_is_named() -> None:
    comparison = made(noisy([5.0, 1.0, 10.0, 6.5, 9.0], 0.05))
    table = comparison.results().set_index("arm")
    labels = [arm.label for arm in arms(5)]
    assert list(table.index) == [labels[place] for place in (2, 4, 3, 0, 1)]
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    assert table["status"].tolist() == ["best", "worse", "worse", "worse", "worse"]
    assert table["n"].tolist() == [64, 8, 8, 64, 8]
    assert table["stopped_early"].tolist() == [False, True, True, False, True]
    # The baseline is worse too, and goes on since the others are paired with it.
    assert comparison.eliminated == {*arms(5)} - {arms(5)[2]}
    best = table.loc[labels[2]]
    assert best["ratio_low"] < 2.0 < best["ratio_high"]
    assert (best["ci_low"], best["ci_high"]) == (
        pytest.approx(best["mean"] - 0.04, abs=0.02),
        pytest.approx(best["mean"] + 0.04, abs=0.02),
    )
    assert math.isnan(table.loc[labels[0], "ratio"])
    assert table["baseline"].tolist() == [False, False, False, True, False]
    assert table["significant"].tolist() == [True, True, True, False, True]


def test_a_lower_metric_may_be_better() -> None:
    values = noisy([5.0, 1.0, 10.0, 1.2], 0.02)
    table = made(values, metric="completion_time_s").results()
    assert table["mean"].round().tolist() == [1.0, 1.0, 5.0, 10.0]
    assert table["status"].tolist() == ["best", "worse", "worse", "worse"]
    assert table["n"].iloc[-1] == 8
    # Which is better may be stated, and must be where it is not known.
    turned = made(values, metric="completion_time_s", better="higher").results()
    assert turned["mean"].round().tolist() == [10.0, 5.0, 1.0, 1.0]
    with pytest.raises(RaceError, match="notices: it must be stated whether higher or lower is better"):
        Race(SCENARIO, arms(2), metric="notices")


def test_what_stops_wrongly_resumes() -> None:
    """The leader of the first look fails later, as those that stopped for it would not have."""
    values = noisy([10.0, 9.0, 8.0, 1.0], 0.02)
    values[0, 10:64:3] = 0.0
    comparison = made(values, baseline=arms(4)[3])
    table = comparison.results().set_index("arm")
    labels = [arm.label for arm in arms(4)]
    # At 16 runs, with two failures, both make the runs that they had missed; then the second leads.
    assert table["n"][labels].tolist() == [64, 64, 16, 64]
    assert table["status"][labels].tolist() == ["worse", "best", "worse", "worse"]
    # With one failure, only what is nearer to the leader does.
    values[0, 10:] = 10.0
    values[0, 40] = 0.0
    again = made(values, baseline=arms(4)[3]).results().set_index("arm")
    assert again["n"][labels].tolist() == [64, 64, 8, 64]
    # What was better in its best run than the leader is later goes on, too.
    values = noisy([10.0, 2.0, 8.0, 1.0], 0.02)
    values[0, 10:] -= 1.5
    values[2] += np.tile([0.6, -0.6], 32)
    again = made(values, baseline=arms(4)[3]).results().set_index("arm")
    assert again["n"][labels].tolist() == [64, 8, 32, 64]


def test_arms_that_may_be_within_the_margin_go_on() -> None:
    values = noisy([10.0, 9.2, 9.5, 5.0], 0.1)
    table = made(values, baseline=arms(4)[3], precision=None).results().set_index("arm")
    assert table["n"][[arm.label for arm in arms(4)]].tolist() == [64, 8, 64, 64]


def test_what_cannot_be_told_apart_shares_the_first_rank() -> None:
    table = made(noisy([5.0, 10.0, 10.05, 5.1], 1.5)).results()
    assert table["rank"].tolist() == [1, 1, 3, 4]
    assert table["status"].tolist() == ["cannot tell", "cannot tell", "worse", "worse"]
    # With less noise both are known to be within the margin of each other.
    table = made(noisy([5.0, 10.0, 10.05, 5.1], 0.2)).results()
    assert table["rank"].tolist() == [1, 1, 3, 4]
    assert table["status"].tolist() == ["as good", "as good", "worse", "worse"]
    # So is what is surely worse, but by less than the margin.
    assert made(noisy([5.0, 10.0, 9.8], 0.05)).results()["status"].tolist() == ["as good", "as good", "worse"]
    # A margin that is narrower than the interval cannot be told.
    table = made(noisy([5.0, 10.0, 10.05, 5.1], 0.2), margin=0.001).results()
    assert table["status"].tolist() == ["cannot tell", "cannot tell", "worse", "worse"]


def test_arms_go_on_until_their_ratios_are_known() -> None:
    values = noisy([5.0, 10.0, 9.99], 0.2, runs=256)
    runs = {
        # The leader goes on to the end, since failures that it has not met may put the baseline first.
        precision: made(values, precision=precision, runs=(8, 256)).results()["n"].min()
        for precision in (0.3, 0.02, 0.01, None)
    }
    assert runs == {0.3: 32, 0.02: 64, 0.01: 256, None: 256}


def test_equal_runs_are_equal() -> None:
    table = made(np.full((3, 64), 4.0)).results()
    assert table["rank"].tolist() == [1, 1, 1]
    assert table["status"].tolist() == ["as good"] * 3
    assert table["n"].tolist() == [32] * 3
    assert table["ratio"].tolist()[1:] == [1.0, 1.0]
    assert not table["significant"].any()


def test_nothing_delivered_is_a_result() -> None:
    values = noisy([0.0, 10.0, 0.0], 0.1)
    values[[0, 2]] = 0.0
    table = made(values).results().set_index("arm")
    best, baseline, none = (table.loc[arms(3)[place].label] for place in (1, 0, 2))
    assert (best["status"], best["rank"], baseline["status"], none["status"]) == ("best", 1, "worse", "worse")
    # There is no ratio to nothing, and a difference.
    assert math.isnan(best["ratio"])
    assert best["difference"] == pytest.approx(10.0, abs=0.2)
    assert best["significant"]
    assert none["mean"] == 0.0
    nothing = made(np.zeros((3, 64))).results()
    assert nothing["status"].tolist() == ["as good"] * 3


def test_none_is_as_good_as_can_be_where_lower_is_better() -> None:
    values = np.zeros((3, 64))
    # So rare that the third cannot be told apart from none.
    values[2, 5] = 3.0
    table = made(values, metric="timeouts").results()
    assert table["status"].tolist() == ["as good", "as good", "cannot tell"]


def test_one_arm_is_the_best_of_one() -> None:
    table = made(noisy([5.0], 0.1)).results()
    assert table[["rank", "status", "n"]].values.tolist() == [[1, "best", 32]]


def test_a_run_without_the_metric_counts_as_the_worst() -> None:
    values = noisy([5.0, 1.0, 4.0], 0.05)
    # The quickest arm finishes one run of two.
    values[1, ::2] = np.nan
    values[0, 7] = 9.0
    table = made(values, metric="completion_time_s").results().set_index("arm")
    quick = table.loc[arms(3)[1].label]
    assert quick["missing"] == quick["n"] / 2
    assert quick["mean"] == pytest.approx((9.0 + 1.0) / 2, abs=0.1)
    assert table.index[0] == arms(3)[2].label
    with pytest.raises(RaceError, match="no run has a completion_time_s: none finished"):
        made(np.full((2, 64), np.nan), metric="completion_time_s")


# -- How often that is wrong -----------------------------------------------------------------------------

TRIALS = 200
"""A share of 5 % of so many has a standard error of 1.5 %."""

Truth = Callable[[np.random.Generator], Values]


def fading(means: Sequence[float], sd: float) -> Truth:
    return lambda random: (
        np.array(means)[:, None] * (1 + 0.3 * random.standard_normal(64))
        + sd * random.standard_normal((len(means), 64))
    )


def rare(share: float) -> Truth:
    """The rivals deliver nothing in some fades, and otherwise more than the first: all means are equal."""

    def draw(random: np.random.Generator) -> Values:
        values = np.where(random.random(64) < share, 0.0, 1 / (1 - share)) * np.ones((8, 1))
        values[0] = 1.0
        return values + 0.01 * random.standard_normal((8, 64))

    return draw


def steady_rivals(random: np.random.Generator) -> Values:
    """The mean of the first rests on a few large values."""
    values = np.full((8, 64), math.exp(0.5)) + 0.01 * random.standard_normal((8, 64))
    values[0] = random.lognormal(sigma=1.0, size=64)
    return values


def wild_rivals(random: np.random.Generator) -> Values:
    values = random.beta(8, 0.5, size=(8, 64)) * 8.5 / 8
    values[0] = 1 + 0.01 * random.standard_normal(64)
    return values


TRUTHS: dict[str, Truth] = {
    "equal, normal": fading([1.0] * 8, 0.1),
    "equal, exponential": lambda random: random.exponential(size=(8, 64)),
    "equal, lognormal": lambda random: random.lognormal(sigma=1.0, size=(8, 64)),
    "steady rivals of a lognormal one": steady_rivals,
    "rivals with skewed shares": wild_rivals,
    "the best by a fiftieth": fading([1.02] + [1.0] * 7, 0.1),
    "rivals that fail in one of five fades": rare(0.2),
    "rivals that fail in one of twenty fades": rare(0.05),
}

HARDEST = ("equal, exponential", "rivals that fail in one of twenty fades")
"""Those that fail if the error is not divided, or what stops wrongly does not resume."""


@pytest.mark.parametrize(
    "truth",
    [pytest.param(name, marks=[] if name in HARDEST else pytest.mark.campaign) for name in TRUTHS],
)
def test_a_truly_best_arm_is_seldom_called_worse(truth: str) -> None:
    """The first arm is truly best. At most 5 % of the comparisons may call it worse, early or at the end."""
    random = np.random.default_rng(20)
    called = []
    for _ in range(TRIALS):
        comparison = made(TRUTHS[truth](random), baseline=arms(8)[-1])
        called.append(comparison.standing()[arms(1)[0]][1] == "worse")
    assert np.mean(called) <= 0.05


def test_significance_and_intervals_hold_although_arms_stop() -> None:
    random = np.random.default_rng(21)
    means = [1.0, 1.0, 1.0, 1.0, 0.7, 0.8, 1.1, 1.3]
    false, covered = [], []
    for _ in range(TRIALS):
        table = made(fading(means, 0.15)(random)).results().set_index("arm")
        rows = [table.loc[arm.label] for arm in arms(8)]
        false.append(any(row["significant"] for row in rows[1:4]))
        covered += [
            row["ratio_low"] <= mean <= row["ratio_high"]
            for mean, row in zip(means[1:], rows[1:], strict=True)
        ]
    assert np.mean(false) <= 0.05
    # The intervals of one comparison depend on each other, so the share is less sure than if they did not.
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("higher", [True, False])
def test_a_rare_event_that_has_not_been_seen_keeps_an_arm(higher: bool) -> None:
    tests = Elimination(0.05, arms=2, looks=4, higher=higher)
    for runs in (8, 16, 32, 64):
        leader = np.full(runs, 10.0)
        # The share of runs in which the arm may be at its best unseen.
        share = 1 - (0.05 / 2) ** (1 / runs)
        for factor, dropped in ((0.98, False), (1.02, True)):
            q = factor * share
            # An arm that is usually worse by a q-th of its advantage in the event evens this out.
            arm, best = (10 - 5 * q, 15 - 5 * q) if higher else (10 + 5 * q, 5 + 5 * q)
            assert tests.far_worse(np.full(runs, arm), leader, 0.01, best) is dropped, (runs, factor)
            # If no run was better than the leader, there is no such event.
            assert tests.far_worse(np.full(runs, arm), leader, 0.01, 10.0)


# -- Arms ------------------------------------------------------------------------------------------------


def test_refused_arms_are_listed_with_the_reason() -> None:
    every = grid(["linux", "linux-brr"], ["basic", "smart"], {"radio.mtu": ["576 B", "-1"]})
    comparison: Any = Race("last-mile", every, overrides=SHORT, runs=(2, 2))
    assert [arm.label for arm in comparison.arms] == ["linux basic", "linux basic, radio.mtu=576 B"]
    reasons = {refusal.arm.label: refusal.reason for refusal in comparison.refused}
    assert len(reasons) == 7
    assert '"smart" extends the loss recovery of Reno' in reasons["linux smart, radio.mtu=576 B"]
    assert "linux-bbr" in reasons["linux-brr basic, radio.mtu=576 B"]
    assert "radio.mtu" in reasons["linux basic, radio.mtu=-1"]
    assert comparison.run() == 4


def test_the_baseline_is_what_the_scenario_says_and_must_not_be_refused() -> None:
    comparison: Any = Race("last-mile", grid(["linux-bbr"], ["basic", "arq"]), overrides=SHORT)
    assert comparison.baseline == Arm("linux", "basic")
    assert comparison.arms[0] == comparison.baseline
    with pytest.raises(RaceError, match=r"the baseline linux smart is refused: .*extends the loss"):
        Race("last-mile", grid(["linux"], ["basic"]), baseline=Arm("linux", "smart"))
    # All others may be.
    alone: Any = Race("last-mile", grid(["linux"], ["smart"]), overrides=SHORT, runs=(2, 2))
    alone.run()
    assert alone.results()["arm"].tolist() == ["linux basic"]


def test_equal_arms_are_compared_once() -> None:
    every = grid(["linux"], ["basic", "snoop+arq", "snoop + arq"], {"tcp.packet_size": ["1500 B", "1500B"]})
    comparison: Any = Race("last-mile", every, overrides=SHORT)
    assert [arm.label for arm in comparison.arms] == [
        "linux basic, tcp.packet_size=1500 B",
        "linux snoop + arq, tcp.packet_size=1500 B",
    ]
    # The baseline is the arm that equals it.
    assert comparison.baseline == every[0]
    assert {refusal.same for refusal in comparison.refused} == {*comparison.arms}


def test_a_combination_is_one_arm_however_it_is_written() -> None:
    assert Arm("linux", "snoop+arq") == Arm("linux", "snoop + arq")
    assert Arm("linux", "snoop @ base+arq") == Arm("linux", "snoop@base + arq")
    overrides = [*SHORT, 'schemes=["snoop+arq", "basic"]']
    comparison: Any = Race("last-mile", grid(["linux"], ["snoop + arq"]), overrides=overrides)
    assert comparison.arms == [comparison.baseline] == [Arm("linux", "snoop + arq")]


def test_a_counter_is_compared_among_the_schemes_that_have_it() -> None:
    every = grid(["linux"], ["snoop", "basic"])
    options: Any = {"overrides": SHORT, "metric": "snoop.local_retransmissions", "better": "lower"}
    comparison: Any = Race("last-mile", every, baseline=every[0], **options, runs=(2, 2))
    assert comparison.refused[0].reason == "it has no snoop.local_retransmissions"
    comparison.run()
    assert comparison.results()["arm"].tolist() == ["linux snoop"]
    with pytest.raises(RaceError, match="the baseline linux basic is refused: it has no snoop"):
        Race("last-mile", every, baseline=every[1], **options)
    with pytest.raises(RaceError, match='no metric "throughput"; did you mean'):
        Race("last-mile", every, metric="throughput")


def test_a_sweep_and_arguments_without_sense_are_refused() -> None:
    every, sweep = arms(2), 'sweep.radio.rate=["1 Mbps", "2 Mbps"]'
    with pytest.raises(RaceError, match=r"sweeps radio.rate; .* leave the sweep out: sweep=\{\}"):
        Race("last-mile", every, overrides=[sweep])
    Race("last-mile", every, overrides=[sweep, "sweep={}"])
    for wrong in ({"error": 0.0}, {"margin": 1.0}, {"precision": 2.0}, {"runs": (9, 8)}, {"variants": ()}):
        options: Any = wrong
        with pytest.raises(RaceError, match=next(iter(wrong))):
            Race("last-mile", every, **options)
    with pytest.raises(ScenarioError):
        Race("no-such-scenario", every)
    with pytest.raises(RaceError, match="nothing has been run yet"):
        Race("last-mile", every).results()


# -- Runs ------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    every = grid(["linux", "linux-bbr", "linux-reno"], ["basic", "arq", "snoop"])
    comparisons: list[Any] = [Race("last-mile", every, overrides=SHORT, runs=(4, 16)) for _ in range(3)]
    for comparison, jobs in zip(comparisons, (1, 2, 5), strict=True):
        comparison.run(jobs)
    one, two, five = (comparison.results().to_csv() for comparison in comparisons)
    assert one == two == five
    # Each run is that of the command, over the same fades.
    table = comparisons[0].results().set_index("arm")
    runs = int(table.loc["linux arq", "n"])
    scenario = lasthop.load("last-mile", SHORT)
    found = [scenario.run("arq", run=run).metrics["throughput_bps"] for run in range(runs)]
    assert table.loc["linux arq", "mean"] == pytest.approx(np.mean(found))


def test_another_metric_of_the_same_runs() -> None:
    comparison: Any = Race("last-mile", grid(["linux"], ["basic", "arq"]), overrides=SHORT, runs=(8, 8))
    comparison.run()
    cost = comparison.results("link_attempts").set_index("arm")
    assert cost.index.tolist() == comparison.results()["arm"].tolist() == ["linux arq", "linux basic"]
    assert cost.loc["linux arq", "mean"] > cost.loc["linux basic", "mean"]
    with pytest.raises(RaceError, match='no metric "link_attempt"; did you mean'):
        comparison.results("link_attempt")


def test_an_arm_may_have_typed_settings() -> None:
    fair, queue = {"fq-codel": {"flows": 8, "ecn": False}}, lasthop.Quantity(20, "packets")
    typed = Arm("linux", "basic", (("radio.queue", fair), ("wired.queue", queue), ("wired.delay", 0.01)))
    assert typed.texts == {
        "radio.queue": "{ fq-codel = { flows = 8, ecn = false } }",
        "wired.queue": "20 packets",
        "wired.delay": "0.01",
    }
    texts = tuple((key, text if key != "wired.delay" else "10 ms") for key, text in typed.texts.items())
    scenario = lasthop.load("last-mile")
    assert scenario.with_(*typed.changes()) == scenario.with_(*Arm("linux", "basic", texts).changes())
    assert len({typed, Arm("linux", "basic", typed.settings)}) == 1


def test_runs_take_the_variants_in_turn() -> None:
    every, variants = arms(2), [{"radio.rate": rate * 1e6} for rate in (1, 2, 3)]
    comparison: Any = Race(SCENARIO, every, baseline=every[0], variants=variants, runs=(4, 8))
    executor = Made(noisy([1.0, 2.0], 0.1))
    comparison.run(executor=executor)
    for (_, run), scenario in executor.scenarios.items():
        assert f'rate = "{(1, 2, 3)[run % 3]} Mbps"' in scenario.to_toml().replace("000000 bps", " Mbps")
    # A scenario is parsed once for each arm and variant.
    assert len({id(scenario) for scenario in executor.scenarios.values()}) == 6


def test_a_screen_stops_arms_before_the_first_look() -> None:
    """Later looks are those of a comparison without it, with the same p-values."""
    values, every, seen = noisy([1.0, 1.3, 1.3], 0.1, runs=128), arms(3), []

    def screen(race: Race) -> list[Arm]:
        seen.append([len(race.sample(arm)) for arm in every])
        return [every[0], every[1]]

    race = made(values, runs=(128, 128), screen=screen)
    whole = made(values, runs=(128, 128))
    assert (race.looks, race.early_looks) == ([32, 64, 128], 2)
    # The baseline goes on.
    assert seen == [[32, 32, 32], [64, 32, 64]]
    found = {each.arm: each for each in race.ranking()}
    assert [found[arm].runs for arm in every] == [128, 32, 128]
    assert found[every[2]].p_value == {each.arm: each for each in whole.ranking()}[every[2]].p_value
    assert made(values[:, :16], runs=(16, 16), screen=screen).looks == [16]


def test_runs_of_one_variant_are_not_independent() -> None:
    random = np.random.default_rng(3)
    of_link = random.standard_normal(4)
    values = 10 + np.tile(of_link, 16) + 0.01 * random.standard_normal((2, 64))
    values[1] += 0.5 * np.tile(of_link, 16)
    every, variants = arms(2), [{"radio.rate": rate * 1e6} for rate in range(1, 5)]
    comparison: Any = Race(
        SCENARIO, every, baseline=every[0], variants=variants, runs=(64, 64), precision=None
    )
    comparison.run(executor=Made(values))
    row = comparison.results().iloc[0]
    # Sixteen runs of each of four links are four links.
    assert (row["ci_high"] - row["ci_low"]) / 2 > of_link.std(ddof=1)
    assert not row["significant"]


def test_an_arm_that_a_later_variant_refuses_is_left_out() -> None:
    every = [Arm(None, "basic"), Arm(None, "delayed-dupacks"), Arm(None, "arq")]
    variants: list[Any] = [{"radio.arq.stop-and-wait.retransmissions": 3}, {}]
    comparison: Any = Race("last-mile", every, variants=variants, overrides=SHORT, runs=(4, 4))
    assert comparison.refused == []
    assert comparison.run() == 8
    assert [refusal.arm for refusal in comparison.refused] == [every[1]]
    assert comparison.results()["arm"].tolist() == ["arq", "basic"]


def test_an_interrupted_comparison_goes_on() -> None:
    values = noisy([5.0, 10.0, 9.4, 1.0], 0.4)
    every = arms(4)
    comparison: Any = Race(SCENARIO, every, baseline=every[0])
    whole = made(values).results()
    with pytest.raises(KeyboardInterrupt):
        comparison.run(executor=Made(values, fails=0))
    with pytest.raises(RaceError, match="nothing has been run yet"):
        comparison.results()
    with pytest.raises(KeyboardInterrupt):
        comparison.run(executor=Made(values, fails=40))
    assert comparison.results()["n"].tolist() == [8] * 4
    rest = Made(values)
    comparison.run(executor=rest)
    assert min(run for _, run in rest.submitted) == 8
    assert comparison.results().equals(whole)
    assert comparison.run(executor=rest) == 0


def test_progress_is_reported() -> None:
    comparison: Any = Race("last-mile", grid(["linux"], ["basic", "arq"]), overrides=SHORT, runs=(8, 16))
    seen: list[tuple[int, int]] = []
    runs = comparison.run(progress=lambda now: seen.append((now.done, now.expected)))
    assert seen
    assert seen[-1][0] == runs == comparison.results()["n"].sum()
    assert all(done <= expected for done, expected in seen)
    assert seen[-1] == (runs, runs)
