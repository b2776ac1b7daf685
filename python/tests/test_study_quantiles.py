"""Quantiles over runs, and within a run: against exact probabilities and other implementations."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from conftest import ROOT, Command
from scipy import stats

import lasthop
from lasthop import Scenario
from lasthop.core.statistics import Sample, runs_to_tell
from lasthop.plots.curves import sweep_curve
from lasthop.plots.heat import sweep_map
from lasthop.study import Study, StudyError, merge, quantile

BASE = (ROOT / "scenarios/ebsn-wide-area.toml").read_text()
SIZES = '\n[sweep]\ntcp.packet_size = ["576 B", "1536 B"]\n'
TWO = 'schemes=["basic", "ebsn"]'


OFFICE_RUNS = 200


def scenario(sweep: str = SIZES, *overrides: str) -> Scenario:
    return Scenario.parse(BASE + sweep, overrides=[TWO, *overrides])


def test_intervals_by_hand() -> None:
    # A binomial table: 39 or fewer of 100 values lie below the median with 1.76 %, 40 or fewer with 2.84 %.
    found = quantile(range(1, 101), 0.5)
    assert (found.low, found.high) == (40.0, 61.0)
    # Of six values all are above the median with 1/64, and of five with 1/32.
    assert (quantile(range(6), 0.5).low, quantile(range(6), 0.5).high) == (0.0, 5.0)
    assert not quantile(range(5), 0.5).determined
    # 0.99^367 = 2.501 %.
    assert (quantile(range(367), 0.99).high, quantile(range(368), 0.99).high) == (math.inf, 367.0)
    assert (quantile(range(367), 0.01).low, quantile(range(368), 0.01).low) == (-math.inf, 0.0)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("n", [1, 2, 20, 71, 72, 400, 3000])
def test_intervals_are_scipys(n: int, share: float) -> None:
    sample = np.random.default_rng(n).lognormal(0.0, 1.0, n)
    found = quantile(sample, share)
    expected: Any = stats.quantile_test(sample, p=share)
    interval = expected.confidence_interval(0.95)
    ends = [math.inf if math.isnan(end) else end for end in (-interval.low, interval.high)]
    assert (-found.low, found.high) == tuple(ends)
    assert found.value == pytest.approx(np.quantile(sample, share, method="median_unbiased"), rel=1e-12)
    assert found.determined == (n >= runs_to_tell(share))
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
@pytest.mark.parametrize(
    ("draw", "ppf"),
    [
        (lambda random, shape: random.exponential(1.0, shape), stats.expon().ppf),
        (lambda random, shape: random.standard_cauchy(shape), stats.cauchy().ppf),
        (lambda random, shape: random.geometric(0.2, shape), stats.geom(0.2).ppf),
    ],
    ids=["exponential", "Cauchy", "geometric"],
)
def test_intervals_cover_the_truth_as_often_as_the_binomial_says(
    draw: Callable[[np.random.Generator, tuple[int, int]], Sample],
    ppf: Callable[[float], float],
    share: float,
    n: int,
) -> None:
    studies, truth = 3000, float(ppf(share))
    found = [quantile(sample, share) for sample in draw(np.random.default_rng(11), (studies, n))]
    covered = float(np.mean([each.low <= truth <= each.high for each in found]))
    # Of a continuous distribution: the places of the ends, and how likely the quantile is between them.
    places = quantile(range(1, n + 1), share)
    above = n + 1 if math.isinf(places.high) else int(places.high)
    below = 0 if math.isinf(places.low) else int(places.low)
    expected = float(stats.binom(n, share).cdf(above - 1) - stats.binom(n, share).cdf(below - 1))
    assert expected >= 0.95
    # Four standard errors: one of 16,000 such comparisons is farther off, and there are 18.
    error = 4 * math.sqrt(expected * (1 - expected) / studies)
    if ppf(0.5) == int(ppf(0.5)) and truth == int(truth):
        # Values that repeat are covered more often.
        assert covered >= expected - error
    else:
        assert covered == pytest.approx(expected, abs=error)


def test_infinite_values_are_beyond_all_others() -> None:
    sample = [math.inf] * 10 + [float(i) for i in range(90)]
    found = quantile(sample, 0.5)
    assert (found.value, found.low, found.high) == (49.5, 39.0, 60.0)
    assert quantile(sample, 0.95).value == math.inf
    assert not quantile(sample, 0.9).determined
    assert quantile([-value for value in sample], 0.05).value == -math.inf
    assert quantile([1.0, math.inf], 0.5).value == math.inf


def test_samples_and_shares_that_tell_nothing() -> None:
    nothing, one = quantile([], 0.5), quantile([3.0], 0.5)
    assert (nothing.n, math.isnan(nothing.value), nothing.determined) == (0, True, False)
    assert (one.value, one.low, one.high) == (3.0, -math.inf, math.inf)
    for share in (0.0, 1.0, 95.0, math.nan):
        with pytest.raises(ValueError, match="expected a share between 0 and 1"):
            quantile([1.0], share)


def test_a_study_has_the_quantiles_of_its_runs() -> None:
    with Study(scenario(), precision=None, runs=(80, 80), quantiles=(0.5, 0.95)) as study:
        study.run()
        frame = study.to_pandas()
        table = study.quantile(0.95, "completion_time_s")
        assert list(table) == [
            "tcp.packet_size",
            "tcp.packet_size_bytes",
            "scheme",
            "metric",
            "quantile",
            "runs",
            "n",
            "missing",
            "value",
            "low",
            "high",
            "determined",
        ]
        for row in table.to_dict("records"):
            cell = (frame["scheme"] == row["scheme"]) & (frame["tcp.packet_size"] == row["tcp.packet_size"])
            expected = quantile(frame.loc[cell, "completion_time_s"], 0.95)
            assert (row["value"], row["low"], row["high"]) == (expected.value, expected.low, expected.high)
            assert (row["n"], row["missing"], row["determined"]) == (80, 0, True)
        assert study.quantile(0.5)["metric"].unique().tolist() == ["throughput_bps"]
        assert not study.quantile(0.99)["determined"].any()
        with pytest.raises(StudyError, match=r"found 95, expected a share between 0 and 1, such as 0\.95"):
            study.quantile(95)
        with pytest.raises(StudyError, match="no quantiles over runs"):
            study.quantile(0.5, "throughput_total_bps")
    with pytest.raises(StudyError, match="expected a share"):
        Study(scenario(), quantiles=(1.0,))


def test_runs_without_the_metric_count_as_the_worst() -> None:
    # With this limit some transfers do not finish.
    with Study(scenario("", "limit=150 s"), precision=None, runs=(60, 60)) as study:
        study.run()
        times = study.quantile(0.5, "completion_time_s").set_index("scheme").loc["basic"]
        unfinished = int(study.summary()["unfinished"].iloc[0])
        assert 15 < unfinished < 45
        assert (times["n"], times["missing"]) == (60, unfinished)
        frame = study.to_pandas()
        known = frame.loc[frame["scheme"] == "basic", "completion_time_s"].dropna()
        assert times["value"] > known.median()
        assert study.quantile(0.95, "completion_time_s")["value"].iloc[0] == math.inf
        # A counter of another scheme: no run has it.
        notices = study.quantile(0.5, "ebsn.notices_sent").set_index("scheme")
        assert notices.loc["basic", "n"] == 0
        assert notices["value"].isna().tolist() == [True, False]
        assert notices.loc["ebsn", "determined"]


def test_the_command_prints_and_writes_quantiles(command: Command, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(BASE + SIZES)
    out = tmp_path / "out"
    arguments = ("study", tmp_path / "sweep.toml", "--set", TWO, "--runs", "80", "--out", out)
    options = ("--metric", "completion_time_s", "--quantile", "0.5", "--quantile", "99%")
    result = command(*arguments, *options, "--html")
    assert result.returncode == 0, result.stderr
    assert "completion time: quantiles over runs, with 95 % intervals" in result.stdout
    assert "p99: 4 of 4 intervals have no end on one side or both, which takes 368 runs" in result.stdout
    document = json.loads((out / "results.json").read_text())
    table = pandas.read_csv(out / "quantiles.csv")
    assert table["quantile"].tolist() == [0.5] * 4 + [0.99] * 4
    for i, each in enumerate(document["results"]):
        found = each["quantiles"]["completion_time_s"]
        assert list(found) == ["p50", "p99"]
        assert list(found["p50"]) == ["value", "n", "low", "high"]
        assert found["p50"]["value"] == table["value"][i]
        assert found["p99"]["high"] is None
        assert table["high"][4 + i] == math.inf
    for stem in ("curve", "curve-p50", "curve-p99"):
        assert (out / f"{stem}.png").exists()
    assert "p99 of completion time" in (out / "report.html").read_text()
    # They are those of the last run, and go with it.
    with Study.open(out / "study.sqlite") as opened:
        assert opened.quantiles == (0.5, 0.99)
    again = command(*arguments)
    assert again.returncode == 0, again.stderr
    assert "quantiles" not in again.stdout
    assert not (out / "quantiles.csv").exists()
    refused = command(*arguments, "--quantile", "95")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--quantile: expected a share of the runs such as 95%, found '95'" in refused.stderr


def test_the_command_says_which_runs_count_as_the_worst(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(BASE)
    options = ("--set", TWO, "--set", "limit=150 s", "--runs", "40", "--out", tmp_path / "out")
    metrics = ("--metric", "completion_time_s", "--metric", "ebsn.notices_sent")
    result = command("study", tmp_path / "a.toml", *options, *metrics, "--quantile", "50%")
    assert result.returncode == 0, result.stderr
    missing = pandas.read_csv(tmp_path / "out/quantiles.csv")["missing"][:2].sum()
    assert missing > 0
    assert f"{missing} runs without completion_time_s count as worse than all others" in result.stdout
    # A scheme without the counter has no runs that it could lack.
    assert "without ebsn" not in result.stdout
    assert "no end" not in result.stdout


def test_merged_shards_have_them(tmp_path: Path) -> None:
    stores = [tmp_path / f"{i}.sqlite" for i in (1, 2)]
    for i, store in enumerate(stores, 1):
        with Study(
            scenario(), precision=None, runs=(20, 20), quantiles=(0.5,), shard=(i, 2), store=store
        ) as shard:
            shard.run()
            with pytest.raises(StudyError, match="need the runs of all shards"):
                shard.quantile(0.5)
    with (
        merge(tmp_path / "all.sqlite", stores) as merged,
        Study(scenario(), precision=None, runs=(20, 20)) as whole,
    ):
        whole.run()
        assert merged.quantiles == (0.5,)
        assert merged.quantile(0.5).equals(whole.quantile(0.5))


def test_figures_show_quantiles_and_intervals_without_an_end() -> None:
    axes = '\n[sweep]\ntcp.packet_size = ["576 B", "1536 B"]\nradio.channel.two-state.bad = ["1 s", "4 s"]\n'
    with Study(scenario(axes), precision=None, runs=(20, 20)) as study:
        study.run()
        table = study.quantile(0.95, "completion_time_s")
        part = table[table["radio.channel.two-state.bad"] == "4 s"]
        figure = sweep_curve(part, "tcp.packet_size")
        (drawn,) = figure.axes
        assert drawn.get_ylabel() == "p95 of completion time (s)"
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert legend == ["basic", "ebsn", "95 % interval", "no end: too few runs"]
        # Twenty runs tell no upper end of it.
        assert np.isinf(part["high"]).all()
        assert math.isfinite(drawn.get_ylim()[1])
        heat = sweep_map(table, "tcp.packet_size", "radio.channel.two-state.bad")
        assert heat.axes[-1].get_ylabel() == "p95 of completion time (s)"


def test_intervals_within_a_run_hold_as_often_as_the_documentation_says() -> None:
    office = lasthop.load("office")
    times = [office.run("basic", run=n).response_times("web")["time_s"] for n in range(OFFICE_RUNS)]
    together = np.concatenate(times)
    held = []
    for share in (0.95, 0.5):
        truth = float(np.quantile(together, share))
        found = [quantile(each, share) for each in times]
        assert all(math.isfinite(each.high) for each in found)
        held.append(sum(each.low <= truth <= each.high for each in found))
    text = " ".join((ROOT / "docs/reference/metrics.md").read_text().split())
    assert f"in {OFFICE_RUNS} runs of this scenario" in text
    assert f"together {held[0]} times at 95 %, and {held[1]} times at the median" in text
