"""Studies of the metrics of connections, other traffic, applications and agents."""

from __future__ import annotations

import json
import signal
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas
import pytest
from conftest import Command
from stores import edit

from lasthop import Scenario
from lasthop._lasthop import METRICS
from lasthop.race import Race, RaceError, grid
from lasthop.study import Progress, Study, StudyError, Target, merge

TEXT = """
schemes = ["basic", "ebsn"]
limit = "60 s"

[transfer]
size = "6 KB"
[tcp]
profile = "ebsn"
[wired]
rate = "56 kbps"
[radio]
rate = "19.2 kbps"
expansion = 1.5
mtu = "128 B"
[radio.channel.two-state]
good = "5 s"
bad = "2 s"
[radio.arq.stop-and-wait]
retransmissions = 13
backoff.uniform = "100 ms"

[topology.dumbbell]
pairs = 2

[traffic."a.voice"]
from = "S1"
to = "D1"
packet_size = "100 B"
law.constant.rate = "1 kbps"

[application."a web"]
from = "D2"
to = "S2"
requests = 2
request.constant = "400 B"
response.constant = "1 KB"
think.constant = "1 s"
"""

ASKED = (
    "connection.2.completion_time_s",
    'traffic."a.voice".mean_delay_s',
    'application."a web".mean_response_time_s',
    "agent.right-D2.notices_sent",
    "connection.1.retransmitted_segments",
)
OF_EBSN = "agent.right-D2.notices_sent"
RUNS = 7


def scenario(schemes: str = "") -> Scenario:
    return Scenario.parse(TEXT, overrides=[schemes] if schemes else [])


def study(store: Path | None = None, metrics: tuple[str, ...] = ASKED, runs: int = RUNS) -> Study:
    return Study(scenario(), precision=None, runs=(runs, runs), metrics=metrics, store=store)


def csv(study: Study, directory: Path) -> bytes:
    return study.to_csv(directory / "runs.csv").read_bytes()


def test_their_numbers_are_those_of_single_runs(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(TEXT)
    with study() as made:
        made.run(jobs=2)
        frame = made.to_pandas()
    assert list(frame.columns)[-2 - len(ASKED) : -2] == list(ASKED)
    for number in range(3):
        single = command("run", path, "--run", str(number), "--json")
        for result in json.loads(single.stdout)["results"]:
            (row,) = frame[(frame["scheme"] == result["scheme"]) & (frame["run"] == number)].to_dict(
                "records"
            )
            counters = result["agents"].get("right-D2", {"notices_sent": None})
            expected = [
                result["connections"]["2"]["completion_time_s"],
                result["traffic"]["a.voice"]["mean_delay_s"],
                result["applications"]["a web"]["mean_response_time_s"],
                counters["notices_sent"],
                result["connections"]["1"]["retransmitted_segments"],
            ]
            for name, value in zip(ASKED, expected, strict=True):
                # To the last bit; not a number is none.
                assert row[name] == value or (row[name] != row[name] and value is None), name
    assert frame[ASKED[1]].notna().all()


def test_only_those_that_are_asked_for_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with study(path, ASKED[:1]) as one:
        one.run()
        assert one.stored_metrics == (*METRICS, "ebsn.notices_sent", ASKED[0])
        with pytest.raises(
            StudyError, match=r"does not store connection\.1\.goodput; state it with --metric"
        ):
            one.summary("connection.1.goodput")
    columns = [row[1] for row in sqlite3.connect(path).execute("PRAGMA table_info(chunk)")]
    assert columns[6:] == [*METRICS, "ebsn.notices_sent", ASKED[0]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("connection.3.goodput", 'no connection "3"; there are 1, 2'),
        ("traffic.avoice.lost_packets", 'no traffic "avoice"; did you mean "a.voice"'),
        ("connection.1.goodputs", 'no connection metric "goodputs"; did you mean "goodput"'),
        ("traffic.'a.lost_packets", "expected a name quoted as in TOML"),
    ],
)
def test_unknown_names_are_refused_before_any_run(name: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with pytest.raises(StudyError, match=message):
        study(path, (name,))
    with pytest.raises(StudyError, match=message):
        Study(scenario(), metric=name, store=path)
    assert not path.exists()
    with pytest.raises(RaceError, match=message):
        Race(scenario(), grid([None], ["basic", "ebsn"]), metric=name)


def test_one_metric_has_one_name_however_it_is_quoted() -> None:
    with study(metrics=("traffic.a.voice.mean_delay_s", "traffic.'a.voice'.mean_delay_s")) as made:
        assert made.asked == (ASKED[1],)
        made.run()
        assert made.summary("traffic.a.voice.mean_delay_s")["metric"].tolist() == [ASKED[1]] * 2


def test_the_stopping_rule_may_be_of_one() -> None:
    metric = "connection.2.throughput_bps"
    with Study(scenario(), metric=metric, precision=0.2, runs=(5, 400)) as made:
        made.run()
        assert made.metric == metric
        summary = made.summary()
        assert (summary["ci95"] <= 0.2 * summary["mean"]).all()
        assert (summary["n"] < 400).all()
        assert len(made.differences()) == 1
    # Schemes without the agent have no mean to wait for.
    with Study(scenario(), precision=0.5, runs=(5, 400), targets=[Target(OF_EBSN, relative=0.5)]) as made:
        made.run()
        assert made.summary(OF_EBSN)["n"].tolist()[0] == 0
        assert made.summary()["n"].max() < 400


@pytest.mark.parametrize("runs", [RUNS, RUNS + 4, RUNS - 3])
def test_an_extended_study_equals_one_begun_so(tmp_path: Path, runs: int) -> None:
    path = tmp_path / "study.sqlite"
    with study(path, ()) as first:
        first.run()
        before = csv(first, tmp_path)
    fresh = study(metrics=ASKED, runs=runs)
    fresh.run()
    with study(path, ASKED, runs) as extended:
        assert extended.progress.done == 0
        assert not extended.finished
        # The runs that it had are still there.
        assert len(extended.to_pandas()) == 2 * RUNS
        assert extended.to_pandas()[ASKED[0]].isna().all()
        assert extended.run() == 2 * runs
        frame = extended.to_pandas()
        counted = frame[frame["run"] < runs].reset_index(drop=True)
        # Counts are floats beside runs that lack them.
        pandas.testing.assert_frame_equal(counted, fresh.to_pandas(), check_dtype=False, rtol=0)
        if runs >= RUNS:
            assert csv(extended, tmp_path) == csv(fresh, tmp_path)
        assert extended.run() == 0
    with Study.open(path) as opened:
        assert (opened.finished, opened.asked) == (True, ASKED)
    # And so is the first study.
    with study(path, ()) as again:
        assert again.run() == 0
        frame = again.to_pandas()
        if runs <= RUNS:
            assert csv(again, tmp_path) == before


def test_what_was_asked_for_earlier_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    for asked, runs, made in [
        (ASKED[:1], 5, 10),
        (ASKED[1:2], 5, 10),
        # Both have been measured.
        (ASKED[:2], 5, 0),
        # Runs without either: the first metric is asked for afterwards.
        ((), 9, 8),
        (ASKED[:1], 9, 8),
        (ASKED[:1], 9, 0),
        (ASKED[1:2], 9, 8),
        (ASKED[:2], 9, 0),
    ]:
        with study(path, asked, runs) as extended:
            assert extended.run(jobs=1) == made, asked
    fresh = study(metrics=ASKED[:2], runs=9)
    fresh.run()
    with Study.open(path) as opened:
        assert csv(opened, tmp_path) == csv(fresh, tmp_path)
    # SQL sees null where a run has no value, whether it was measured or not.
    rows = sqlite3.connect(path).execute(
        f"SELECT scheme, count(*), count('{ASKED[1]}') FROM result GROUP BY scheme"
    )
    assert rows.fetchall() == [("basic", 9, 9), ("ebsn", 9, 9)]


def test_runs_that_are_made_again_must_be_those_that_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with study(path, ()) as first:
        first.run()
    edit(path, "UPDATE chunk SET delivered_bytes = 5 WHERE scheme = 'ebsn'")
    with study(path) as extended:
        with pytest.raises(
            StudyError, match=r"run 0 of ebsn was repeated .* delivered_bytes is 12000, not 5"
        ):
            extended.run(jobs=1)
        assert len(extended.to_pandas()) == 2 * RUNS
    with study(path, ()) as first:
        assert (first.run(), len(first.to_pandas())) == (0, 2 * RUNS)


def test_an_extension_that_is_interrupted_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with study(path, (), 300) as first:
        first.run()

    def interrupt(now: Progress) -> None:
        if now.made:
            signal.raise_signal(signal.SIGINT)

    with study(path, ASKED, 300) as extended:
        with pytest.raises(KeyboardInterrupt):
            extended.run(jobs=1, progress=interrupt)
        assert 0 < extended.progress.done < 600
        assert len(extended.to_pandas()) == 600
    with Study.open(path) as opened:
        opened.run()
        fresh = study(metrics=ASKED, runs=300)
        fresh.run()
        assert csv(opened, tmp_path) == csv(fresh, tmp_path)


def test_shards_and_executors_have_them_too(tmp_path: Path) -> None:
    fresh = study(runs=6)
    fresh.run()
    stores = [tmp_path / f"{i}.sqlite" for i in (1, 2)]
    # One shard got the metrics later.
    for asked in ((), ASKED):
        for i, store in enumerate(stores, 1):
            if asked or i == 1:
                with Study(
                    scenario(), precision=None, runs=(6, 6), metrics=asked, shard=(i, 2), store=store
                ) as shard:
                    shard.run()
    with merge(tmp_path / "all.sqlite", stores) as merged:
        assert csv(merged, tmp_path) == csv(fresh, tmp_path)
    with ProcessPoolExecutor(1) as executor, study(runs=6) as remote:
        remote.run(executor=executor)
        assert csv(remote, tmp_path) == csv(fresh, tmp_path)


def test_merging_fills_a_store_that_lacks_them(tmp_path: Path) -> None:
    whole, other = tmp_path / "whole.sqlite", tmp_path / "other.sqlite"
    with study(whole, ()) as first:
        first.run()
    with study(other) as second:
        second.run()
    with merge(whole, [other]) as merged:
        assert merged.asked == ASKED
        fresh = study()
        fresh.run()
        assert csv(merged, tmp_path) == csv(fresh, tmp_path)


def test_shards_with_other_metrics_are_another_study(tmp_path: Path) -> None:
    stores = [tmp_path / f"{i}.sqlite" for i in (1, 2)]
    for i, store in enumerate(stores, 1):
        asked = ASKED[:i]
        with Study(
            scenario(), precision=None, runs=(4, 4), metrics=asked, shard=(i, 2), store=store
        ) as shard:
            shard.run()
    with pytest.raises(
        StudyError, match=r"its metrics of parts are .*, not connection\.2\.completion_time_s"
    ):
        merge(tmp_path / "all.sqlite", stores)


def test_the_command_prints_a_table_of_each_metric(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(TEXT)
    metrics = ["connection.2.throughput_bps", "application.'a web'.mean_response_time_s"]
    options = [word for name in metrics for word in ("--metric", name)]
    arguments = ("study", path, "--runs", "5", "--out", tmp_path / "out", *options, "--export", "csv")
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    assert "connection 2: throughput (kbps)" in result.stdout
    assert "application a web: mean response time (s)" in result.stdout
    assert result.stdout.count("p (Holm)") == 2
    summary = (tmp_path / "out/summary.csv").read_text()
    assert summary.count("connection.2.throughput_bps") == summary.count("mean_response_time_s") == 2
    document = json.loads((tmp_path / "out/results.json").read_text())
    assert document["metric"] == metrics[0]
    assert document["results"][0]["metrics"]['application."a web".mean_response_time_s']["n"] == 5
    assert [each["metric"] for each in document["comparisons"]] == [
        metrics[0],
        'application."a web".mean_response_time_s',
    ]
    header = (tmp_path / "out/runs.csv").read_text().splitlines()[0]
    assert '"application.""a web"".mean_response_time_s"' in header
    datasette = command(*arguments[:-1], "datasette")
    assert datasette.returncode == 0, datasette.stderr
    columns = json.loads((tmp_path / "out/datasette.json").read_text())["databases"]["study"]["tables"]
    assert (
        columns["result"]["columns"]["connection.2.throughput_bps"]
        == "A metric of connection 2, in bits per second."
    )


def test_comparisons_rank_by_them(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(TEXT)
    metric = "connection.2.completion_time_s"
    options = ("--scheme", "basic", "--scheme", "ebsn", "--runs", "8", "--metric", metric)
    result = command("compare", path, *options)
    assert result.returncode == 0, result.stderr
    assert "connection 2: completion time, lower is better" in result.stdout
    arms = grid([None], ["basic", "ebsn"])
    comparison = Race(path, arms, metric=metric, metrics=["traffic.a.voice.lost_packets"], runs=(8, 8))
    comparison.run()
    assert comparison.better == "lower"
    assert comparison.results("traffic.'a.voice'.lost_packets")["n"].tolist() == [8, 8]
    with pytest.raises(RaceError, match=r"does not have connection\.1\.goodput; state it"):
        comparison.results("connection.1.goodput")
    # Whether more notices are better depends on the question, and only ebsn has them.
    with pytest.raises(RaceError, match="must be stated whether higher or lower"):
        Race(path, arms, metric=OF_EBSN, baseline=arms[1])
    counted = Race(path, arms, metric=OF_EBSN, better="lower", baseline=arms[1], runs=(8, 8))
    assert [each.reason for each in counted.refused] == [f"it has no {OF_EBSN}"]
