"""The statistics of studies, against formulae and simulations made independently of them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats

import lasthop
from lasthop.core.statistics import (
    Sample,
    estimate,
    holm,
    linearised_ratio,
    paired_difference,
    skewness,
)
from lasthop.engine.scheduler import Batch
from lasthop.engine.stopping import Rule, Target
from lasthop.results.run_numbers import RunNumbers
from lasthop.study.coverage import CASES, RULES, Case, false_positives, family_errors, measure
from lasthop.study.points import PointPolicy


def normal(n: int, seed: int = 3, mean: float = 10.0) -> Sample:
    return np.random.default_rng(seed).normal(mean, 2.0, n)


def skewed(n: int, seed: int = 2) -> Sample:
    return np.random.default_rng(seed).lognormal(0.0, 1.5, n)


def test_an_interval_by_hand() -> None:
    found = estimate([2.0, 4.0, 6.0])
    # The mean is 4, the standard deviation 2, and the 97.5 % point of t with 2 degrees 4.302653.
    assert (found.n, found.mean, found.sd, found.method) == (3, 4.0, 2.0, "t")
    assert found.ci95 == pytest.approx(4.302653 * 2 / math.sqrt(3), rel=1e-6)
    assert found.low == pytest.approx(4.0 - found.ci95)
    assert found.high == pytest.approx(4.0 + found.ci95)


def test_students_interval_and_p_value_are_scipys() -> None:
    sample = normal(30, mean=0.7)
    found, test = estimate(sample), stats.ttest_1samp(sample, 0.0)
    expected = test.confidence_interval(0.95)
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.p_value == pytest.approx(test.pvalue, rel=1e-9)


def test_students_interval_covers_the_mean_as_often_as_it_says() -> None:
    samples = np.random.default_rng(20).normal(5.0, 3.0, (2000, 12))
    found = [estimate(sample) for sample in samples]
    covered = sum(each.low <= 5.0 <= each.high for each in found)
    assert 0.93 <= covered / 2000 <= 0.97


def test_a_skewed_sample_gets_an_interval_that_reaches_to_its_long_tail() -> None:
    sample = skewed(60)
    found, student = estimate(sample), stats.ttest_1samp(sample, 0.0).confidence_interval(0.95)
    assert found.method == "skewed"
    assert found.low == pytest.approx(student.low)
    # The end on that side is where Hall's transformation of the studentised mean has Student's quantile.
    skew, sd = skewness(sample), float(sample.std(ddof=1))
    apart = (float(sample.mean()) - found.high) / sd
    transformed = apart + skew / 3 * apart**2 + skew**2 / 27 * apart**3 + skew / 360
    assert math.sqrt(60) * transformed == pytest.approx(-float(stats.t.ppf(0.975, 59)))
    assert found.high - found.mean > 1.2 * (student.high - found.mean)
    mirrored = estimate(-sample)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_when_an_interval_allows_for_skewness() -> None:
    assert estimate(skewed(20)).method == "skewed"
    mild = np.random.default_rng(3).exponential(1.0, 2000)
    assert 1 < skewness(mild) < math.sqrt(2000 / 25)
    assert estimate(mild).method == "t"
    assert estimate(normal(100)).method == "t"


@pytest.mark.parametrize("shift", np.linspace(0.5, 6.0, 23).tolist())
def test_the_p_value_of_a_skewed_sample_agrees_with_its_interval(shift: float) -> None:
    found = estimate(skewed(40, seed=8) - shift)
    assert found.method == "skewed"
    assert (found.low > 0 or found.high < 0) == (found.p_value < 0.05)


def test_a_share_of_runs_has_clopper_and_pearsons_interval() -> None:
    for having, runs in ((0, 60), (3, 60), (60, 60)):
        found = estimate([1.0] * having + [0.0] * (runs - having), "share")
        expected = stats.binomtest(having, runs).proportion_ci(0.95, "exact")
        assert found.method == "exact"
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    # The rule of three, with the 97.5 % of a two-sided interval in place of 95 %.
    assert estimate([0.0] * 1000, "share").high == pytest.approx(3.69e-3, rel=0.01)


def test_events_that_most_runs_do_not_have_are_poissons() -> None:
    sample = np.zeros(100)
    sample[[3, 40, 77]] = 1.0
    found = estimate(sample, "count")
    # Garwood's table: three events are 0.62 to 8.77.
    assert (found.method, found.events) == ("events", 3.0)
    assert (found.low, found.high) == pytest.approx((0.0062, 0.0877), abs=1e-4)
    never = estimate(np.zeros(100), "count")
    assert (never.low, never.high) == pytest.approx((0.0, 0.0369), abs=1e-4)
    # An event that is an amount counts by its size.
    larger = estimate(500 * sample, "amount")
    assert (larger.low, larger.high) == pytest.approx((3.1, 43.8), abs=0.1)
    sample[[3, 40]] = 0.1
    assert estimate(sample, "amount").events == pytest.approx(1.2**2 / 1.02)


def test_an_interval_stays_where_the_values_can_be() -> None:
    sample = [0.2, 1.0, 0.99, 1.0]
    assert estimate(sample).high > 1.0
    assert estimate(sample, "share").high == 1.0
    times = np.random.default_rng(2).lognormal(0.0, 1.5, 4)
    assert estimate(times).low < 0
    assert estimate(times, "amount").low == 0.0


def test_a_study_does_not_stop_before_it_has_seen_what_is_rare() -> None:
    target = Target("timeouts", relative=0.02)
    assert target.excess(estimate([7.0] * 10)) == math.inf
    assert target.excess(estimate([7.0] * 300)) == 0.0
    assert target.excess(estimate([0.0] * 1000, "count")) == math.inf
    # A spread that comes from one outlier does not stop a study, however wide the target.
    once = [10.0 + i / 100 for i in range(30)] + [11.0]
    assert Target("x", relative=0.5).excess(estimate(once)) == math.inf
    assert Target("x", absolute=0.1).excess(estimate([0.0] * 50, "count")) < 1


def test_few_runs_and_few_events_are_told() -> None:
    assert estimate(normal(99)).few
    assert not estimate(normal(100)).few
    assert estimate([0.0] * 199 + [500.0]).few
    assert not estimate([0.0] * 199 + [1.0], "count").few
    assert estimate([3.0] * 200).few


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("rule", ["100 runs", "10:1000"])
def test_intervals_cover_the_truth_or_say_that_they_may_not(case: Case, rule: str) -> None:
    studies = 300
    found = measure(case, *RULES[rule], studies=studies, seed=7)
    # A report has the shares of 2,000 studies; of 300 they may be three standard errors off.
    assert found.misled <= 0.07 + 3 * math.sqrt(0.07 * 0.93 / studies)


def test_paired_tests_and_tables_call_no_more_than_one_in_twenty_different() -> None:
    for case in (CASES[1], CASES[3]):
        assert false_positives(case.draw, 30, studies=600) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)
    assert family_errors(12, studies=4000) == pytest.approx(0.05, abs=0.011)


def test_skewness_is_scipys() -> None:
    sample = skewed(25)
    assert skewness(sample) == pytest.approx(stats.skew(sample, bias=False), rel=1e-12)
    assert skewness(np.full(5, 0.1)) == 0.0
    assert skewness(np.array([1.0, 2.0])) == 0.0


@pytest.mark.parametrize("value", [0.1, 0.0, 1e9 / 3])
def test_runs_that_are_all_alike_have_no_spread(value: float) -> None:
    found = estimate([value] * 30)
    assert (found.mean, found.low, found.high, found.sd) == (value, value, value, 0.0)
    assert found.p_value == float(value == 0)
    assert found.method == "alike"
    # Thirty equal runs do not prove that the next one is equal.
    assert not found.within(0.001)
    assert estimate([value] * 300).within(0.001)


def test_samples_too_small_for_an_interval() -> None:
    nothing, one = estimate([]), estimate([3.0])
    assert (nothing.n, one.n, one.mean) == (0, 1, 3.0)
    assert math.isnan(nothing.mean)
    for found in (nothing, one):
        assert math.isnan(found.ci95)
        assert found.method == "none"
        assert not found.within(0.5)


def test_rare_events_have_an_interval() -> None:
    found = estimate([0.0] * 29 + [1.0], "count")
    assert 0.0 <= found.low < found.mean < found.high


def test_a_comparison_is_the_paired_test() -> None:
    baseline = normal(25)
    ours = baseline * 1.1 + normal(25, seed=2, mean=0.0) * 0.1
    found = paired_difference(ours, baseline)
    test = stats.ttest_rel(ours, baseline)
    expected = test.confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((expected.low, expected.high))
    assert found.difference.p_value == pytest.approx(test.pvalue)


def test_the_ratio_is_that_of_the_means_with_the_delta_methods_interval() -> None:
    baseline = normal(200)
    ours = baseline * 1.5 + normal(200, seed=2, mean=0.0)
    found = paired_difference(ours, baseline).ratio
    assert found is not None
    ratio = ours.mean() / baseline.mean()
    assert found.mean == pytest.approx(ratio, rel=1e-12)
    a, b = ours.mean(), baseline.mean()
    covariance = np.cov(ours, baseline)
    variance = ratio**2 * (covariance[0, 0] / a**2 + covariance[1, 1] / b**2 - 2 * covariance[0, 1] / (a * b))
    expected = float(stats.t.ppf(0.975, 199)) * math.sqrt(variance / 200)
    assert found.ci95 == pytest.approx(expected, rel=1e-9)


def test_there_is_no_ratio_to_what_may_be_zero() -> None:
    assert paired_difference(normal(20), normal(20, seed=2, mean=0.1)).ratio is None
    assert paired_difference(np.ones(20), np.zeros(20)).ratio is None
    negative = paired_difference(normal(20), normal(20, seed=2, mean=-10)).ratio
    assert negative is not None
    assert negative.mean < 0


def test_a_ratio_of_sums_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    time = generator.uniform(5.0, 15.0, (1000, 40))
    bits = 3.0 * time + generator.normal(0.0, 4.0, time.shape)
    found = [estimate(linearised_ratio(b, t)) for b, t in zip(bits, time, strict=True)]
    assert found[0].mean == pytest.approx(bits[0].sum() / time[0].sum())
    assert 0.93 <= np.mean([each.low <= 3.0 <= each.high for each in found]) <= 0.97


def test_holms_adjustment_by_hand() -> None:
    adjusted = holm([0.04, 0.01, math.nan, 0.03, 0.005])
    # In order 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04 x 1, which may not be below the one before it.
    assert adjusted[4] == pytest.approx(0.02)
    assert adjusted[1] == pytest.approx(0.03)
    assert adjusted[3] == pytest.approx(0.06)
    assert adjusted[0] == pytest.approx(0.06)
    assert math.isnan(adjusted[2])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_checkpoints() -> None:
    targets = [Target("throughput_bps", relative=0.02)]
    assert list(Rule(10, 100, targets).checkpoints()) == [10, 15, 23, 35, 53, 80, 100]
    assert list(Rule(1, 5, targets).checkpoints()) == [1, 2, 3, 5]
    assert list(Rule(10, 10, targets).checkpoints()) == [10]
    assert list(Rule(10, 1000).checkpoints()) == [1000]


def test_a_point_stops_when_all_its_schemes_are_known_well_enough() -> None:
    target = Target("throughput_bps", relative=0.10)
    rule = Rule(4, 100, [target])
    sharp, wide = (
        target.excess(estimate(sample)) for sample in ([10.0, 10.1, 9.9, 10.0], [10.0, 14.0, 6.0, 10.0])
    )
    assert rule.satisfied([sharp, sharp])
    assert not rule.satisfied([sharp, wide])
    # The wide interval misses its target by a factor of 5.2.
    assert rule.expected(4, [sharp, wide]) == 100
    assert rule.expected(4, [sharp, sharp]) == 6
    assert not Rule(4, 100).satisfied([])


@pytest.mark.parametrize(
    ("least", "covers"),
    # docs/reports/2026-11-study-coverage.md has these shares from more studies.
    [(10, 0.90), (20, 0.92), (50, 0.93)],
)
def test_intervals_at_a_checkpoint_that_stopped_a_study_cover_the_truth(least: int, covers: float) -> None:
    generator = np.random.default_rng(least)
    sd = 0.3
    for runs in (2 * least, 5 * least):
        # The target for which the rule needs this many runs on average.
        rule = Rule(least, 100_000, [Target("x", relative=1.96 * sd / math.sqrt(runs))])
        covered, made = [], []
        for _ in range(600):
            sample = generator.gamma(1 / sd**2, sd**2, 20 * runs)
            for n in rule.checkpoints():
                found = estimate(sample[:n])
                if rule.satisfied([target.excess(found) for target in rule.targets]):
                    break
            covered.append(found.low <= 1.0 <= found.high)
            made.append(n)
        assert len(set(made)) > 1
        assert covers <= np.mean(covered) <= 0.98


def test_a_target_is_the_wider_of_its_relative_and_absolute_half_widths() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert Target("timeouts", relative=0.5, absolute=0.1).excess(found) == pytest.approx(found.ci95)
    assert Target("timeouts", relative=0.5, absolute=4.0).excess(found) == pytest.approx(found.ci95 / 4)
    # One run has no interval; no relative target can be met at a mean of zero.
    assert math.isnan(Target("timeouts", relative=0.5).excess(estimate([1.0])))
    assert Target("timeouts", relative=0.5).excess(estimate([-1.0, 1.0])) == math.inf


def test_a_point_requests_missing_runs_once() -> None:
    have = {"a": RunNumbers([(0, 1), (3, 4)]), "b": RunNumbers([(0, 9)])}
    scenario = lasthop.load("ebsn-example")
    rule = Rule(6, 9, [Target("throughput_bps", 0.02)])
    point = PointPolicy(rule, 7, scenario, have, lambda place, schemes, runs: [math.inf])
    assert list(point.missing()) == [Batch(7, "a", scenario, 1, 2), Batch(7, "a", scenario, 4, 2)]
    assert list(point.missing()) == []
    assert not point.complete()
    point.add(7, "a", 4, 2)
    point.add(7, "a", 1, 2)
    assert point.complete()
    point.decide()
    assert (point.stopped, point.target) == (False, 9)
    assert list(point.missing()) == [Batch(7, "a", scenario, 6, 3)]


def test_orders_and_numbers_of_a_billion_runs_take_no_memory() -> None:
    have = RunNumbers([(0, 1000), (2000, 2001)])
    scenario = lasthop.load("ebsn-example")
    point = PointPolicy(Rule(10**9, 10**9), 0, scenario, {"a": have}, lambda place, schemes, runs: [])
    assert [batch[3:] for batch in point.missing()] == [(1000, 1000), (2001, 10**9 - 2001)]
    point.add(0, "a", 1000, 1000)
    assert (have.prefix, len(have), list(have.ranges())) == (2001, 2001, [(0, 2001)])
    assert not point.complete()


def test_run_numbers_are_a_set_whatever_the_order_of_ranges() -> None:
    generator = random.Random(3)
    for _ in range(200):
        have, expected = RunNumbers(), set[int]()
        for _ in range(generator.randrange(12)):
            first = generator.randrange(30)
            end = first + generator.randrange(1, 9)
            have.add(first, end)
            expected.update(range(first, end))
            numbers = [number for begin, after in have.ranges() for number in range(begin, after)]
            assert numbers == sorted(expected)
            assert len(have) == len(expected)
            assert have.prefix == next(number for number in range(50) if number not in expected)
            assert [number in have for number in range(50)] == [number in expected for number in range(50)]
            low, high = sorted((generator.randrange(50), generator.randrange(50)))
            gaps = [number for begin, after in have.gaps(low, high) for number in range(begin, after)]
            assert gaps == [number for number in range(low, high) if number not in expected]
