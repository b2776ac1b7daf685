"""Comparisons by quantiles over runs: what stops, how often that is wrong, and what intervals cover."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from conftest import ROOT, Command, results
from scipy import stats
from test_comparison import SCENARIO, Made, Truth, Values, arms, made

from lasthop.core.paired_quantiles import p_greater, quantile_difference, runs_to_reject
from lasthop.race import Arm, Race, RaceError, grid
from lasthop.race.elimination import QuantileElimination

PAGE = (ROOT / "docs/guide/compare.md").read_text()
REFERENCE = (ROOT / "docs/reference/comparisons.md").read_text()
QUICK = ("compare", "last-mile", "--set", "limit=2 s", "--scheme", "basic", "--scheme", "arq")


def by_hand(values: Values, baseline: Values, share: float) -> float:
    """Return `p_greater` by its definition: at thresholds at and between all values."""
    every = np.unique([*values, *baseline])
    thresholds = [every[0] - 1, *every, *((every[1:] + every[:-1]) / 2), every[-1] + 1]
    found = []
    for at in thresholds:
        over = int(np.sum((values > at) & (baseline < at)))
        under = int(np.sum((values <= at) & (baseline >= at)))
        found.append(
            min(
                stats.binom.cdf(np.sum(values <= at), len(values), share),
                stats.binom.sf(np.sum(baseline < at) - 1, len(values), share),
                stats.binom.sf(over - 1, over + under, 0.5) if over else 1.0,
            )
        )
    return min(1.0, 3 * float(np.max(found)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("ties", [False, True])
def test_the_test_is_what_its_definition_says(share: float, ties: bool) -> None:
    random = np.random.default_rng(4)
    for shift in (-1.0, 0.0, 0.7, 2.0):
        fades = random.standard_normal(60)
        values, baseline = (fades + 0.3 * random.standard_normal(60) for _ in range(2))
        values = values + shift
        if ties:
            values, baseline = np.round(values), np.round(baseline)
        assert p_greater(values, baseline, share) == pytest.approx(by_hand(values, baseline, share))


def test_a_tail_that_was_not_seen_is_not_told() -> None:
    for share, level in ((0.5, 0.025), (0.95, 0.025), (0.95, 0.002), (0.05, 0.025)):
        enough = runs_to_reject(share, level)
        for runs, told in ((enough - 1, False), (enough, True)):
            assert (p_greater(np.full(runs, 2.0), np.full(runs, 1.0), share) <= level) is told
    tests = QuantileElimination(0.95, 0.05, arms=2, looks=1, higher=False)
    late, soon = np.full(200, 9.0), np.full(200, 1.0)
    assert tests.worse(late, soon)
    assert not tests.worse(soon, late)
    # One of twenty runs of the leader is later: more often than a p95 allows for sure.
    soon[:10] = 20.0
    assert not tests.worse(late, soon)


def paired(shape: Callable[[np.random.Generator, tuple[int, int]], Values]) -> Truth:
    """Return arms with a common part from the fades."""
    return lambda random: shape(random, (1, RUNS)) + shape(random, (8, RUNS))


RUNS, TRIALS = 128, 60
"""docs/reports/2026-11-comparison-error.md has the shares of a thousand trials."""

SHARE = 0.9


def wild_rivals(random: np.random.Generator) -> Values:
    """The first hardly varies; the others do, with the same quantile."""
    values = random.lognormal(sigma=1.0, size=(8, RUNS))
    values[0] = stats.lognorm(1.0).ppf(SHARE) + 0.01 * (random.standard_normal(RUNS) - stats.norm.ppf(SHARE))
    return values


def failing_rivals(random: np.random.Generator) -> Values:
    """In some fades the rivals take much longer, so seldom that their p90 is that of the first."""
    late = random.random(RUNS) < 0.08
    # So many of the usual runs are below the quantile.
    usual = stats.norm.ppf(SHARE) - stats.norm.ppf(SHARE / 0.92)
    values = usual + random.standard_normal((8, RUNS)) + np.where(late, 50.0, 0.0)
    values[0] = random.standard_normal(RUNS)
    return values


TRUTHS: dict[str, Truth] = {
    "equal, normal": paired(lambda random, shape: random.standard_normal(shape)),
    "equal, exponential": lambda random: random.exponential(size=(8, RUNS)),
    "equal, lognormal": lambda random: random.lognormal(sigma=1.0, size=(8, RUNS)),
    "equal counts": lambda random: random.poisson(1.0, size=(8, RUNS)).astype(float),
    "rivals that vary, of the same p90": wild_rivals,
    "rivals that are very late in 8 % of the fades, of the same p90": failing_rivals,
    "the best by a fiftieth": lambda random: (
        (1 + 0.3 * random.standard_normal(RUNS)) * np.array([1.0] + [1.02] * 7)[:, None]
        + 0.05 * random.standard_normal((8, RUNS))
    ),
}

HARDEST = ("equal, exponential", "rivals that are very late in 8 % of the fades, of the same p90")
"""Those that fail if the error is not divided."""


@pytest.mark.parametrize(
    "truth",
    [pytest.param(name, marks=[] if name in HARDEST else pytest.mark.campaign) for name in TRUTHS],
)
def test_a_truly_best_arm_is_seldom_called_worse(truth: str) -> None:
    """The first arm is truly best: at most 5 % of the comparisons may call it worse, early or at the end."""
    random = np.random.default_rng(20)
    called = []
    for _ in range(TRIALS):
        options: Any = {"metric": "completion_time_s", "quantile": SHARE, "runs": (32, RUNS)}
        comparison = made(TRUTHS[truth](random), **options)
        called.append(comparison.standing()[arms(1)[0]][1] == "worse")
    assert np.mean(called) <= 0.05


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_intervals_of_differences_and_ratios_cover_the_truth(share: float) -> None:
    """By 300 studies of paired lognormal values, whose quantiles are known."""
    random, covered = np.random.default_rng(8), []
    true = math.exp(math.sqrt(1.09) * stats.norm.ppf(share))
    for _ in range(300):
        fades = random.lognormal(sigma=1.0, size=100)
        ours, theirs = (fades * random.lognormal(sigma=0.3, size=100) for _ in range(2))
        found = quantile_difference(1.5 * ours, theirs, share)
        assert found.ratio is not None
        covered.append(
            (
                found.difference.low <= 0.5 * true <= found.difference.high,
                found.ratio.low <= 1.5 <= found.ratio.high,
            )
        )
    assert np.all(np.mean(covered, axis=0) > 0.95 - 0.025)


def test_arms_are_ranked_by_the_quantile_and_stop() -> None:
    random = np.random.default_rng(3)
    fades = random.exponential(size=800)
    late = np.where(random.random(800) < 0.1, 12.0, 0.0)
    # The second has the best mean, and in one of ten runs it is very late.
    values = np.array([5 + fades, 1 + fades + late, 6.5 + fades, 9 + 3 * fades])
    table = made(values, metric="completion_time_s", quantile=0.95, runs=None).results()
    labels = [arm.label for arm in arms(4)]
    assert table["arm"].tolist() == [labels[place] for place in (0, 2, 1, 3)]
    assert table["status"].tolist() == ["best", "worse", "worse", "worse"]
    assert table["stopped_early"].tolist()[0] is False
    assert table["stopped_early"].any()
    assert (table["value_low"] <= table["value"]).all()
    assert (table["value"] <= table["value_high"]).all()
    first = table.iloc[0]
    assert (first["quantile"], first["baseline"]) == (0.95, True)
    assert first["value"] == pytest.approx(5 + np.quantile(fades[: int(first["n"])], 0.95), rel=0.02)
    assert table["significant"].tolist() == [False, True, True, True]
    # By means it is the other way round.
    assert made(values, metric="completion_time_s").results()["arm"].tolist()[0] == labels[1]


def test_a_run_without_the_metric_is_worse_than_all_others() -> None:
    values = np.random.default_rng(6).exponential(size=(3, 700)) + np.array([[4.0], [1.0], [2.0]])
    values[1, ::8] = np.nan
    table = made(values, metric="completion_time_s", quantile=0.95, runs=(600, 600)).results()
    assert table["arm"].tolist()[-1] == arms(2)[1].label
    row = table.iloc[-1]
    assert (row["value"], row["ratio"], row["status"]) == (math.inf, math.inf, "worse")
    assert row["missing"] == 75
    assert row["mean"] == pytest.approx(2.0, abs=0.3)


def test_variants_and_shares_without_sense_are_refused() -> None:
    every = arms(2)
    with pytest.raises(RaceError, match=r"quantile: found 95, expected a share between 0 and 1"):
        Race(SCENARIO, every, quantile=95)
    variants = [{"radio.rate": rate * 1e6} for rate in range(1, 9)]
    with pytest.raises(RaceError, match="a quantile over runs needs a variant for each"):
        Race(SCENARIO, every, quantile=0.5, variants=variants, runs=(8, 16))
    Race(SCENARIO, every, quantile=0.5, variants=variants, runs=(8, 8))


def test_the_default_runs_can_tell_the_quantile() -> None:
    # 0.9^70 is the first below a third of 5 %, of four looks and six rivals.
    for share, expected in ((0.5, (11, 64)), (0.9, (70, 280)), (0.95, (142, 568)), (0.05, (142, 568))):
        comparison: Any = Race(SCENARIO, arms(7), baseline=arms(1)[0], quantile=share)
        assert (comparison.looks[0], comparison.looks[-1]) == expected
        comparison.run(executor=Made(np.arange(7.0)[:, None] * np.ones((7, 600))))
        assert comparison.results()["n"].min() == expected[0]


def test_a_metric_within_a_run_is_a_metric() -> None:
    comparison: Any = Race(
        "users",
        grid(["linux"], ["basic", "arq"]),
        baseline=Arm("linux", "basic"),
        metric="application.shell.p95_response_time_s",
        overrides=["limit=20 s"],
        runs=(4, 4),
    )
    comparison.run()
    runs = [comparison.scenario.run("arq", run=run) for run in range(4)]
    expected = [run.applications["shell"]["p95_response_time_s"] for run in runs]
    table = comparison.results().set_index("scheme")
    assert table.loc["arq", "mean"] == pytest.approx(np.mean(expected))


# -- The command ---------------------------------------------------------------------------------------


def test_the_command_prints_and_writes_quantiles(command: Command, tmp_path: Path) -> None:
    done = command(*QUICK, "--quantile", "5%", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "p5 of throughput (Mbps)" in done.stdout
    assert "p5 of throughput over runs, higher is better; ratios and p to linux basic" in done.stdout
    assert "heat-map.png" in results(tmp_path)
    table = pandas.read_csv(tmp_path / "comparison.csv")
    section = REFERENCE.partition("`Race.results` has a row")[2].partition("## Files")[0]
    assert {"quantile", "value", "value_low", "value_high"} <= {*table.columns}
    assert {*table.columns} <= {*re.findall("`(.*?)`", section)}
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["quantile"] == 0.05
    best = document["results"][0]
    assert best["quantile"]["low"] <= best["quantile"]["value"] <= best["quantile"]["high"]
    assert best["quantile"]["value"] == pytest.approx(table["value"].iloc[0])
    # By means there is none.
    mean = json.loads(command(*QUICK, "--runs", "4", "--json").stdout)
    assert (mean["quantile"], mean["results"][0]["quantile"]) == (None, None)


def test_the_pages_examples_are_what_the_command_prints(command: Command) -> None:
    section = PAGE.partition("## Quantiles")[2].partition("\n## ")[0]
    shown = re.findall(r"```text\n\$ lasthop (.*?)```", section, re.DOTALL)
    assert len(shown) == 2
    for text in shown:
        line, _, printed = text.replace("\\\n", "").partition("\n")
        done = command(*(part.strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|\S+", line)))
        assert done.returncode == 0, done.stderr
        assert [row.rstrip() for row in done.stdout.strip().splitlines()] == [
            row.rstrip() for row in printed.strip().splitlines()
        ]


def test_misuse_and_too_few_runs_are_told(command: Command) -> None:
    done = command(*QUICK, "--quantile", "p95")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --quantile: expected a share of the runs such as 95%, found 'p95'\n"
    few = command(*QUICK, "--quantile", "5%", "--runs", "4")
    assert few.stderr == (
        "warning: 4 runs cannot tell the p5 of 10 arms apart, whatever they are; --runs 123 is the least "
        "that can\n"
    )


def test_notebooks_show_the_quantile() -> None:
    values = np.random.default_rng(3).exponential(size=(2, 100)) + np.array([[4.0], [1.0]])
    comparison = made(values, metric="completion_time_s", quantile=0.5)
    assert "is best, p50 of completion_time_s 1." in repr(comparison)
    assert "p50 of completion time (s)" in comparison._repr_html_()
