"""Studies: what is run, what is stored, what is found, and that nothing depends on how it came about."""

from __future__ import annotations

import json
import math
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from conftest import ROOT

import lasthop
from lasthop import Scenario, ScenarioError, _lasthop
from lasthop._lasthop import METRICS
from lasthop.core.statistics import estimate
from lasthop.results.store import Identity
from lasthop.study import Progress, Study, StudyError, Target
from lasthop.study import study as study_module

BASE = (ROOT / "scenarios/ebsn-wide-area.toml").read_text()
SWEEP = """
[sweep]
tcp.packet_size = ["576 B", "1536 B"]
radio.channel.two-state.bad = ["1 s", "4 s"]
"""
TWO = 'schemes=["basic", "ebsn"]'
COUNTER = "ebsn.notices_sent"
"""The counter of these schemes."""


def swept(*overrides: str, sweep: str = SWEEP, title: str = "a sweep") -> Scenario:
    return Scenario.parse(BASE + sweep, overrides=[TWO, f"title={title}", *overrides])


def csv(study: Study, tmp_path: Path) -> bytes:
    return study.to_csv(tmp_path / "runs.csv").read_bytes()


@pytest.fixture(scope="module")
def study() -> Study:
    """Return a finished study, in memory."""
    study = Study(swept(), precision=0.1, runs=(10, 40))
    study.run()
    return study


# -- What is run ---------------------------------------------------------------------------------------


def test_rows_are_what_single_runs_give(study: Study) -> None:
    frame = study.to_pandas()
    for _, row in frame.iloc[::37].iterrows():
        overrides = [f"{name}={row[name]}" for name in study.scenario.sweep]
        scenario = Scenario.parse(BASE, overrides=overrides)
        run = lasthop.run(scenario, row["scheme"], seed=1, run=row["run"])
        found = {name: None if row[name] != row[name] else row[name] for name in run.metrics}
        assert found == run.metrics
        assert (row["ended"], row["scenario_hash"]) == (run.ended, scenario.hash)
        assert (row["seed"], row["lasthop"]) == (1, lasthop.__version__)


def test_every_scheme_of_a_point_has_the_same_runs_and_stops_at_a_checkpoint(study: Study) -> None:
    frame = study.to_pandas()
    for _, point in frame.groupby(list(study.scenario.sweep)):
        runs = [cell["run"].tolist() for _, cell in point.groupby("scheme")]
        assert runs[0] == runs[1] == list(range(len(runs[0])))
        assert len(runs[0]) in (10, 15, 23, 35, 40)


def test_a_point_stops_at_the_first_checkpoint_that_is_precise_enough(study: Study) -> None:
    frame = study.to_pandas()
    for _, point in frame.groupby(list(study.scenario.sweep)):
        n = len(point) // 2
        cells = [cell["throughput_bps"].tolist() for _, cell in point.groupby("scheme")]
        stops = [m for m in (10, 15, 23, 35) if all(estimate(cell[:m]).within(0.1) for cell in cells)]
        assert n == next(iter(stops), 40)


def test_without_a_precision_the_most_runs_are_made() -> None:
    study = Study(swept(sweep=""), precision=None, runs=(2, 7))
    assert study.run() == 14
    assert study.to_pandas().columns[0] == "scheme"


def test_the_metric_decides() -> None:
    quick = Study(swept(), precision=0.1, runs=(5, 80))
    slow = Study(swept(), precision=0.1, runs=(5, 80), metric="timeouts")
    assert quick.run() < slow.run()
    assert set(slow.summary()["metric"]) == {"timeouts"}


def test_each_scheme_may_stop_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with Study(swept(), precision=0.1, runs=(10, 80), each_scheme=True, store=path) as apart:
        apart.run()
        frame, summary, pairs = apart.to_pandas(), apart.summary(), apart.differences()
    names = [*apart.scenario.sweep, "scheme"]
    runs = {}
    for place, cell in frame.groupby(names, sort=False):
        found = cell["throughput_bps"].to_numpy()
        stops = [n for n in (10, 15, 23, 35, 53, 80) if n == 80 or estimate(found[:n]).within(0.1)]
        assert len(found) == stops[0]
        runs[place] = len(found)
    assert len(set(runs.values())) > 1
    assert summary.set_index(names)["n"].to_dict() == runs
    for _, pair in pairs.iterrows():
        at = tuple(pair[list(apart.scenario.sweep)])
        assert pair["n"] == min(runs[*at, "basic"], runs[*at, "ebsn"])
    with Study.open(path) as opened:
        assert opened.finished
        assert opened.summary().equals(summary)
        assert opened.differences(metric="throughput_total_bps")["n"].tolist() == pairs["n"].tolist()


def test_every_target_must_be_reached() -> None:
    wide = Study(swept(sweep=""), precision=0.1, runs=(10, 300))
    both = Study(swept(sweep=""), precision=0.1, runs=(10, 300), targets=[Target("timeouts", absolute=0.8)])
    assert wide.run() < both.run()
    assert (both.summary("timeouts")["ci95"] <= 0.8).all()
    with pytest.raises(StudyError, match='no metric "speed"'):
        Study(swept(), targets=[Target("speed", absolute=1.0)])


def test_the_number_of_threads_changes_nothing(study: Study, tmp_path: Path) -> None:
    expected = csv(study, tmp_path)
    for jobs in (1, 2, 5):
        other = Study(swept(), precision=0.1, runs=(10, 40), store=tmp_path / f"{jobs}.sqlite")
        other.run(jobs)
        assert csv(other, tmp_path) == expected


def test_progress_is_reported(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    study = Study(swept(), precision=0.1, runs=(10, 40))
    made = study.run(jobs=1, progress=lambda now: told.append((now.done, now.made, now.expected)))
    assert told[-1] == (made, made, made)
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


# -- What is found -------------------------------------------------------------------------------------


def test_a_summary_is_the_estimate_of_the_rows(study: Study) -> None:
    frame, summary = study.to_pandas(), study.summary()
    assert len(summary) == 8
    for _, row in summary.iterrows():
        names = [*study.scenario.sweep, "scheme"]
        cell = frame[(frame[names] == row[names]).all(axis=1)]
        found = estimate(cell["throughput_bps"], "amount")
        assert (row["n"], row["mean"], row["sd"]) == (found.n, found.mean, found.sd)
        assert (row["low"], row["high"], row["ci95"]) == (found.low, found.high, found.ci95)
        time = 8 * cell["delivered_bytes"] / cell["throughput_bps"]
        total = 8 * cell["delivered_bytes"].sum() / time.sum()
        assert row["throughput_total_bps"] == pytest.approx(total, rel=1e-12)
        # Slow runs take longer, so that the mean over time is below that over runs.
        assert row["throughput_total_bps"] < row["mean"]


def test_swept_settings_are_numbers_with_units_in_every_frame(study: Study, tmp_path: Path) -> None:
    for frame in (study.to_pandas(), study.summary(), study.differences()):
        assert list(frame.columns[:4]) == [
            "tcp.packet_size",
            "radio.channel.two-state.bad",
            "tcp.packet_size_bytes",
            "radio.channel.two-state.bad_s",
        ]
        sizes = frame["tcp.packet_size"].map({"576 B": 576.0, "1536 B": 1536.0})
        assert frame["tcp.packet_size_bytes"].equals(sizes.rename("tcp.packet_size_bytes"))
        assert set(frame["radio.channel.two-state.bad_s"]) == {1.0, 4.0}
    read = pandas.read_csv(study.to_csv(tmp_path / "runs.csv"))
    assert read["tcp.packet_size_bytes"].dtype.kind in "if"
    words = Study(swept(sweep='\n[sweep]\ntcp.flavour = ["tahoe", "reno"]\n'), precision=None, runs=(1, 1))
    words.run()
    assert list(words.summary().columns[:2]) == ["tcp.flavour", "scheme"]


def test_common_random_numbers_sharpen_a_comparison(study: Study) -> None:
    comparison, summary = study.differences("basic"), study.summary()
    assert comparison["scheme"].unique().tolist() == ["ebsn"]
    basic, ebsn = (summary[summary["scheme"] == name] for name in ("basic", "ebsn"))
    differences = [e - b for e, b in zip(ebsn["mean"], basic["mean"], strict=True)]
    assert comparison["difference"].tolist() == pytest.approx(differences)
    ratios = [e / b for e, b in zip(ebsn["mean"], basic["mean"], strict=True)]
    assert comparison["ratio"].tolist() == pytest.approx(ratios)
    unpaired = [math.hypot(e, b) for e, b in zip(ebsn["ci95"], basic["ci95"], strict=True)]
    assert all(paired < 0.9 * apart for paired, apart in zip(comparison["ci95"], unpaired, strict=True))
    assert comparison["significant"].all()
    assert (comparison["p_holm"] >= comparison["p_value"]).all()


def test_the_same_scheme_is_not_significantly_different() -> None:
    # Without losses there is nothing that schemes could do about them.
    perfect = Study(swept("radio.channel=perfect", sweep=""), runs=(3, 3))
    perfect.run()
    row = perfect.differences().iloc[0]
    assert (row["difference"], row["p_value"], bool(row["significant"])) == (0.0, 1.0, False)
    assert row["ratio"] == 1.0


def test_runs_that_do_not_finish_are_counted() -> None:
    study = Study(swept("limit=100 s", sweep=""), precision=None, runs=(30, 30))
    study.run()
    throughput, time = study.summary(), study.summary("completion_time_s")
    unfinished = int((~study.to_pandas()["finished"]).sum())
    assert 0 < unfinished < 60
    assert throughput["unfinished"].sum() == unfinished
    assert throughput["n"].tolist() == [30, 30]
    assert (time["n"] == time["runs"] - time["unfinished"]).all()
    # Pairs are those in which both finished.
    assert study.differences(metric="completion_time_s")["n"].iloc[0] <= time["n"].min()


def test_a_run_in_which_nothing_arrives_takes_all_the_time() -> None:
    hopeless = Study(
        swept("radio.channel.frame-loss.loss=1", "limit=50 s", sweep=""), precision=None, runs=(3, 3)
    )
    hopeless.run()
    summary = hopeless.summary()
    assert summary[["mean", "throughput_total_bps"]].to_numpy().tolist() == [[0.0, 0.0]] * 2
    assert hopeless.summary("completion_time_s")["mean"].isna().all()
    assert hopeless.differences()["ratio"].isna().all()


def test_a_run_in_which_nothing_arrives_counts_with_the_time_that_is_measured() -> None:
    # It is good all the time, or bad.
    either = '{two-state={good="1000 h", bad="1000 h", bad_ber=1.0, good_ber=0.0, start="stationary"}}'
    settings = ["transfer.size=unlimited", "limit=60 s", f"radio.channel={either}"]
    for more, measured in [
        ([], 60.0),
        (["warmup=15 s"], 45.0),
        (["transfer.start=20 s"], 40.0),
        (["warmup=15 s", "connection.late.start=20 s"], 40.0),
        (["topology.dumbbell.pairs=2", "connection.2.start=20 s"], 60.0),
    ]:
        scenario = swept(*settings, *more, 'schemes=["basic"]', sweep="")
        study = Study(scenario, runs=(12, 12))
        study.run()
        arrived = study.to_pandas()["delivered_bytes"]
        assert 0 < (arrived == 0).sum() < 12
        found = study.summary()["throughput_total_bps"].item()
        assert found == pytest.approx(8 * arrived.sum() / (12 * measured), rel=1e-9)


def test_invalid_requests_to_a_study_are_refused(study: Study) -> None:
    with pytest.raises(StudyError, match='no metric "speed"; there are throughput_bps, goodput'):
        study.summary("speed")
    with pytest.raises(StudyError, match='no scheme "snoop"; there are basic, ebsn'):
        study.differences("snoop")
    with pytest.raises(StudyError, match="no metric"):
        Study(swept(), metric="speed")
    with pytest.raises(StudyError, match="between 0 and 1"):
        Study(swept(), precision=2)
    with pytest.raises(StudyError, match="expected 1 <= fewest <= most"):
        Study(swept(), runs=(10, 5))
    with pytest.raises(StudyError, match="nothing has been run"):
        Study(swept(), store="nowhere.sqlite").summary()
    with pytest.raises(ScenarioError, match=r"tcp\.packet_sise"):
        Study(Scenario.parse(BASE + '[sweep]\ntcp.packet_sise = ["576 B"]\n'))


# -- Counters of agents --------------------------------------------------------------------------------


def test_counters_are_metrics_of_a_study(study: Study, tmp_path: Path) -> None:
    assert study.metrics == (*METRICS, COUNTER, "throughput_total_bps")
    rows = study.to_pandas()
    notices = rows[rows["scheme"] == "ebsn"][COUNTER]
    assert notices.min() > 0
    # Every notice that was not lost on the way reached the source.
    assert (rows[rows["scheme"] == "ebsn"]["notices"] == notices).all()
    assert rows[rows["scheme"] == "basic"][COUNTER].isna().all()
    means = study.summary(COUNTER)
    basic, ebsn = (means[means["scheme"] == scheme] for scheme in ("basic", "ebsn"))
    assert ebsn["n"].tolist() == ebsn["runs"].tolist()
    assert ebsn["mean"].min() > 0
    assert basic["n"].tolist() == [0] * 4
    assert basic["mean"].isna().all()
    assert study.differences(metric=COUNTER)["n"].tolist() == [0] * 4
    with pytest.raises(StudyError, match=r'no metric "ebsn.notices"; did you mean "ebsn.notices_sent"'):
        study.summary("ebsn.notices")
    with pytest.raises(StudyError, match=r"no metric \"snoop\.x\"; there are .*, ebsn\.notices_sent, thr"):
        study.summary("snoop.x")


def test_a_counter_can_decide_when_a_study_stops() -> None:
    scenario = swept('schemes=["basic", "ebsn", "lhack + ebsn"]', sweep="")
    with Study(scenario, precision=0.2, runs=(10, 100), metric=COUNTER) as study:
        study.run(jobs=2)
        assert study.summary()["metric"].unique() == [COUNTER]
        basic, *others = study.summary().to_dict("records")
        # A scheme without the counter does not keep the study going.
        assert basic["runs"] < 100
        assert basic["n"] == 0
        assert all(each["ci95"] <= 0.2 * each["mean"] for each in others)
        added = study.summary("lhack.last_hop_acks")
    assert added["n"].tolist() == [0, 0, basic["runs"]]


def test_without_counters_a_study_is_what_it_was(tmp_path: Path) -> None:
    scenario = swept('schemes=["basic", "local-recovery"]', sweep="")
    with Study(scenario, precision=None, runs=(1, 1), store=tmp_path / "study.sqlite") as study:
        study.run()
        assert study.metrics[:-1] == METRICS
    ((stored,),) = sqlite3.connect(tmp_path / "study.sqlite").execute(
        "SELECT value FROM meta WHERE key = 'metrics'"
    )
    assert json.loads(stored) == [*METRICS]


def test_a_store_without_a_counter_is_resumed_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.sqlite"
    with Study(swept(sweep=""), precision=None, runs=(5, 5)) as full:
        full.run()
        expected = full.to_pandas().drop(columns=COUNTER)
    with monkeypatch.context() as earlier:
        earlier.setattr(study_module, "Identity", lambda **own: Identity(**own | {"metrics": METRICS}))
        with Study(swept(sweep=""), precision=None, runs=(2, 2), store=path) as started:
            started.run()
    with Study(swept(sweep=""), precision=None, runs=(5, 5), store=path) as resumed:
        assert resumed.run() == 6
        assert COUNTER not in resumed.metrics
        pandas.testing.assert_frame_equal(resumed.to_pandas(), expected)


# -- The store -----------------------------------------------------------------------------------------


def test_a_finished_study_can_be_read_from_its_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "study.sqlite"
    with Study(swept(), precision=0.2, runs=(5, 20), store=path) as study:
        assert not path.exists()
        assert not study.finished
        assert study.run() > 0
        assert study.finished
    assert [file.name for file in path.parent.iterdir()] == ["study.sqlite"]
    with Study(swept(title="another title"), precision=0.2, runs=(5, 20), store=path) as again:
        assert again.run() == 0
    with Study.open(path) as opened:
        assert opened.finished
        assert (opened.metric, opened.rule.precision, opened.rule.most) == ("throughput_bps", 0.2, 20)
        assert opened.scenario.hash == swept().hash
        assert opened.summary()["n"].sum() == len(opened.to_pandas())


def test_a_study_resumes_with_tighter_precision_or_more_runs(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with Study(swept(), precision=0.3, runs=(5, 20), store=path) as coarse:
        first = coarse.run()
        before = coarse.to_pandas()
    with Study(swept(), precision=0.1, runs=(5, 60), store=path) as fine:
        assert fine.run() > 0
        after = fine.to_pandas()
        assert len(after) > first
        assert len(before.merge(after)) == len(before)
        expected = Study(swept(), precision=0.1, runs=(5, 60))
        expected.run()
        assert csv(fine, tmp_path) == csv(expected, tmp_path)
    # What is there is kept and counted, though less would do.
    with Study(swept(), precision=0.3, runs=(5, 20), store=path) as coarse:
        assert coarse.run() == 0
        assert coarse.summary()["n"].sum() == len(after)


@pytest.mark.parametrize(
    ("other", "seed", "reason"),
    [
        (swept("radio.mtu=256 B"), 1, "4 of 4 points are not in it"),
        (swept(sweep=SWEEP.replace('"4 s"', '"3 s"').replace('"1 s"', '"2 s"')), 1, "4 of 4 points are not"),
        (swept(), 2, "it has seed 1, not 2"),
    ],
)
def test_another_study_is_refused(
    other: Scenario, seed: int, reason: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "kept.sqlite"
    if not path.exists():
        Study(swept(), precision=None, runs=(1, 1), store=path).run()
    with pytest.raises(StudyError, match=reason) as refused:
        Study(other, seed=seed, store=path)
    assert "--out DIR" in str(refused.value)


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.sqlite"
    Study(swept(sweep=""), precision=None, runs=(1, 1), store=path).run()
    monkeypatch.setattr(_lasthop, "__version__", "9.0")
    with pytest.raises(StudyError, match=r"made by Lasthop .*, this is 9\.0"):
        Study(swept(sweep=""), store=path)


def test_a_file_that_is_not_a_study_is_refused(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("not a database, though long enough to be taken for the header of one" * 20)
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    for path, reason in ((text, "not a database"), (other, "not that of a study")):
        with pytest.raises(StudyError, match=reason):
            Study(swept(), store=path)
    with pytest.raises(StudyError, match="there is no study in it"):
        Study.open(tmp_path / "nothing.sqlite")


def test_two_at_once_are_refused_but_readers_are_not(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    study = Study(swept(), precision=None, runs=(200, 200), store=path)
    refusals: list[str] = []

    def intrude(now: Progress) -> None:
        if not refusals:
            with Study(swept(), precision=None, runs=(200, 200), store=path) as second:
                with pytest.raises(StudyError) as refused:
                    second.run()
                refusals.append(str(refused.value))
                second.to_pandas()

    assert study.run(jobs=1, progress=intrude) == 1600
    assert "another process is running this study" in refusals[0]


def test_the_view_has_every_column_of_a_run(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    Study(swept(), precision=0.1, runs=(10, 40), store=path).run()
    connection = sqlite3.connect(path)
    cursor = connection.execute("SELECT * FROM result")
    # The view has the texts of the swept settings, and not their numbers.
    frame = study.to_pandas().drop(columns=["tcp.packet_size_bytes", "radio.channel.two-state.bad_s"])
    assert [column[0] for column in cursor.description] == list(frame.columns)
    # A scheme without the counters of another has null.
    assert frame["scheme"].iloc[0] == "basic"
    # The rows are in the order in which runs were stored.
    rows = cursor.fetchall()
    assert tuple(frame.iloc[0].astype(object).where(frame.iloc[0].notna(), None)) in rows
    assert len(rows) == len(frame)
    connection.close()


def test_the_view_reads_chunks_in_which_everything_varies(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    mixed = swept("limit=70 s", "transfer.size=50 KB", sweep="")
    with Study(mixed, precision=None, runs=(600, 600), store=path) as study:
        study.run()
        frame = study.to_pandas()
    assert frame["ended"].nunique() == 2
    assert frame["completion_time_s"].isna().any()
    connection = sqlite3.connect(path)
    ((chunks, longest),) = connection.execute("SELECT count(*), max(runs) FROM chunk")
    assert chunks < 300
    assert 1 < longest <= 256
    cursor = connection.execute("SELECT * FROM result ORDER BY scheme, run")
    names = [column[0] for column in cursor.description]
    for row, (_, expected) in zip(cursor, frame.iterrows(), strict=True):
        for name, value in zip(names, row, strict=True):
            if value is None:
                assert math.isnan(expected[name])
            elif isinstance(value, str):
                assert value == expected[name]
            else:
                # SQLite reads decimal numbers to the last bit but one.
                assert value == pytest.approx(float(expected[name]), rel=4e-16), name
                # Integers are floats where other runs have none.
                assert isinstance(value, float) == (frame[name].dtype == np.float64 and "." not in name), name
    connection.close()


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    Study(swept(sweep=""), precision=None, runs=(1, 1), store=path).run()
    connection = sqlite3.connect(path)
    for version in (2, 4):
        connection.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(StudyError, match=f"its format is {version}, and this version of Lasthop reads 3"):
            Study.open(path)
    connection.close()


def test_parquet_holds_the_same(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = study.to_parquet(tmp_path / "runs.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), study.to_pandas(), check_dtype=False)
    monkeypatch.setattr("lasthop.results.export.find_spec", lambda name: None)
    with pytest.raises(StudyError, match=r"pip install 'lasthop\[parquet\]'"):
        study.to_parquet(path)


# -- Interruptions -------------------------------------------------------------------------------------

LONG = swept("transfer.size=1 MB", "limit=100000 s").to_toml()
PRECISION, RUNS = 0.02, (20, 180)
PROGRAM = f"""
from pathlib import Path
from lasthop import Scenario
from lasthop.study import Study
scenario = Scenario.parse(Path("long.toml").read_text())
study = Study(scenario, precision={PRECISION}, runs={RUNS}, store="killed.sqlite")
study.run(jobs=1, progress=lambda now: print("under way", flush=True))
"""


def test_a_study_killed_ten_times_ends_with_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    undisturbed = Study(Scenario.parse(LONG), precision=PRECISION, runs=RUNS)
    undisturbed.run()
    expected = csv(undisturbed, tmp_path)
    path = tmp_path / "killed.sqlite"

    def finish() -> None:
        with Study(Scenario.parse(LONG), precision=PRECISION, runs=RUNS, store=path) as killed:
            killed.run()
            assert csv(killed, tmp_path) == expected

    moments = random.Random(4)
    kills, counts, greatest = 0, [0], 0
    while kills < 10:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE)
        assert process.stdout is not None
        if process.stdout.readline() == b"under way\n":
            time.sleep(moments.uniform(0.0, 0.6))
            process.kill()
        process.communicate()
        if process.returncode == 0:
            # It was done before it was killed, or the one before was killed as its last row was stored.
            # What was killed on the way counts; then again from nothing.
            finish()
            path.unlink()
            counts = [0]
            continue
        kills += 1
        connection = sqlite3.connect(path)
        counts.append(connection.execute("SELECT count(*) FROM result").fetchone()[0])
        connection.close()
        assert counts == sorted(counts)
        greatest = max(greatest, counts[-1])
    assert greatest > 0
    finish()


def test_an_interrupted_study_can_be_resumed(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"

    def interrupt(now: Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    interruptions = 0
    with Study(swept(), precision=0.1, runs=(10, 40), store=path) as interrupted:
        while not interrupted.finished:
            try:
                interrupted.run(jobs=1, progress=interrupt)
            except KeyboardInterrupt:
                interruptions += 1
        assert interruptions > 1
        assert csv(interrupted, tmp_path) == csv(study, tmp_path)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_runs_that_are_finished_when_ctrl_c_is_pressed_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[float, int]] = []
    real = _lasthop.Pool

    class Pool:
        def __init__(self, *arguments: Any) -> None:
            self.pool = real(*arguments)

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *error: object) -> None:
            self.pool.cancel()

        def submit(self, *order: Any) -> None:
            self.pool.submit(*order)

        def cancel(self) -> None:
            self.pool.cancel()

        def collect(self, timeout_s: float) -> list[Any]:
            if timeout_s == 0.0:
                # A moment in which runs finish.
                time.sleep(0.2)
            chunks = self.pool.collect(timeout_s)
            taken.append((timeout_s, sum(runs for _, _, runs, *_ in chunks)))
            return chunks

    def interrupt(now: Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_lasthop, "Pool", Pool)
    with Study(swept(), precision=None, runs=(5000, 5000), store=tmp_path / "study.sqlite") as interrupted:
        with pytest.raises(KeyboardInterrupt):
            interrupted.run(jobs=1, progress=interrupt)
        assert taken[-1][0] == 0.0
        assert taken[-1][1] > 0
        assert len(interrupted.to_pandas()) == sum(runs for _, runs in taken)
