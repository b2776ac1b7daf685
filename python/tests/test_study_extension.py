"""Studies that are extended: what is made, what is kept, and that they equal studies begun so."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import pytest
from conftest import ROOT
from typer.testing import CliRunner, Result

from lasthop import Scenario
from lasthop.cli.app import app
from lasthop.results.sqlite import SqliteStore, _places
from lasthop.results.store import Identity, StoredPoint
from lasthop.study import Progress, Study, merge

BASE = (ROOT / "scenarios/ebsn-wide-area.toml").read_text()
SIZES = '\n[sweep]\ntcp.packet_size = ["576 B", "1536 B"]\n'
MORE_SIZES = '\n[sweep]\ntcp.packet_size = ["128 B", "1536 B", "576 B"]\n'
TWO_AXES = SIZES + 'radio.channel.two-state.bad = ["1 s", "4 s"]\n'
TWO = 'schemes=["basic", "ebsn"]'
THREE = 'schemes=["lhack", "ebsn", "basic"]'
RUNS = 6


def scenario(sweep: str = SIZES, schemes: str = TWO) -> Scenario:
    return Scenario.parse(BASE + sweep, overrides=[schemes])


def study(scenario: Scenario, store: Path | None = None, runs: int = RUNS) -> Study:
    return Study(scenario, precision=None, runs=(runs, runs), store=store)


def csv(study: Study, directory: Path) -> bytes:
    return study.to_csv(directory / "runs.csv").read_bytes()


def cells(study: Study) -> int:
    return sum(len(point.schemes) for point in study.points)


@pytest.mark.parametrize(
    ("sweep", "schemes", "runs", "stays"),
    [
        (MORE_SIZES, TWO, RUNS, 4),
        (SIZES, THREE, RUNS, 4),
        (TWO_AXES, TWO, RUNS, 4),
        (SIZES, TWO, RUNS + 3, 4),
        (MORE_SIZES, THREE, RUNS + 3, 4),
        ("", THREE, RUNS, 2),
    ],
    ids=["values", "schemes", "axis", "runs", "all", "no-axis"],
)
def test_an_extended_study_equals_one_begun_so(
    tmp_path: Path, sweep: str, schemes: str, runs: int, stays: int
) -> None:
    path = tmp_path / "study.sqlite"
    with study(scenario(), path) as first:
        assert first.run() == 4 * RUNS
    fresh = study(scenario(sweep, schemes), runs=runs)
    fresh.run()
    with study(scenario(sweep, schemes), path, runs) as extended:
        # What is stored counts, before anything is made.
        assert extended.progress.done == stays * RUNS
        assert extended.run() == cells(fresh) * runs - stays * RUNS
        assert csv(extended, tmp_path) == csv(fresh, tmp_path)
        assert extended.differences().equals(fresh.differences())
        assert extended.run() == 0
    with Study.open(path) as opened:
        assert opened.finished
        assert csv(opened, tmp_path) == csv(fresh, tmp_path)
        assert opened.metrics == fresh.metrics
    # The first study is in it still.
    with study(scenario(), path) as first, study(scenario()) as again:
        again.run()
        frame = first.to_pandas()
        assert first.run() == 0
        assert frame[frame["run"] < RUNS].reset_index(drop=True).equals(again.to_pandas())


def test_a_counter_of_an_added_scheme_can_be_the_metric(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with study(scenario(schemes='schemes=["basic"]'), path) as first:
        first.run()
    both = scenario(schemes=TWO)
    with Study(both, runs=(5, 20), precision=0.5, metric="ebsn.notices_sent", store=path) as extended:
        assert not extended.finished
        assert extended.summary()["n"].tolist() == [0] * 4
        assert extended.to_pandas()["ebsn.notices_sent"].isna().all()
        extended.run()
        assert (extended.summary()["n"] > 0).tolist() == [False, True] * 2
    connection = sqlite3.connect(path)
    rows = connection.execute('SELECT scheme, count("ebsn.notices_sent") > 0 FROM result GROUP BY scheme')
    assert rows.fetchall() == [("basic", 0), ("ebsn", 1)]
    connection.close()


def test_what_is_left_out_is_kept_and_named(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with study(scenario(), path) as whole:
        whole.run()
        expected = csv(whole, tmp_path)
        assert whole.left_out == []
    less = scenario('\n[sweep]\ntcp.packet_size = ["576 B"]\n', 'schemes=["basic"]')
    with study(less, path) as part:
        assert part.run() == 0
        assert part.summary()["n"].tolist() == [RUNS]
        assert part.left_out == [
            ({"tcp.packet_size": "576 B"}, "ebsn", RUNS),
            ({"tcp.packet_size": "1536 B"}, "basic", RUNS),
            ({"tcp.packet_size": "1536 B"}, "ebsn", RUNS),
        ]
    stored = sqlite3.connect(path).execute("SELECT schemes FROM point").fetchall()
    assert stored == [('["basic", "ebsn"]',)] * 2
    with Study.open(path) as opened:
        assert [len(opened.points), cells(opened)] == [1, 1]
    with study(scenario(), path) as whole:
        assert whole.run() == 0
        assert csv(whole, tmp_path) == expected


def test_points_of_equal_scenarios_are_kept_apart() -> None:
    points = [StoredPoint({"x": x}, ["basic"], name, "") for x, name in (("1", "a"), ("2", "b"), ("3", "a"))]
    identity = Identity("0", 1, (), points)
    assert _places(identity, [(0, "a"), (1, "a"), (2, "c")]) == [0, -1, 1]
    assert _places(identity, [(0, "a")]) == [0, -1, -1]


def test_an_extension_that_is_interrupted_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with study(scenario(), path) as first:
        first.run()

    def interrupt(now: Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    with study(scenario(MORE_SIZES, THREE), path, 40) as extended:
        with pytest.raises(KeyboardInterrupt):
            extended.run(jobs=1, progress=interrupt)
        assert not extended.finished
    with Study.open(path) as opened:
        opened.run()
        fresh = study(scenario(MORE_SIZES, THREE), runs=40)
        fresh.run()
        assert csv(opened, tmp_path) == csv(fresh, tmp_path)


def test_an_extension_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.sqlite"
    with study(scenario(), path) as first:
        first.run()
        expected = csv(first, tmp_path)
    real = SqliteStore._extend

    def fail(store: SqliteStore, identity: object) -> None:
        real(store, identity)  # type: ignore[arg-type]
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(SqliteStore, "_extend", fail)
    with study(scenario(MORE_SIZES, THREE), path) as extended, pytest.raises(Exception, match="disk I/O"):
        extended.run()
    monkeypatch.undo()
    with Study.open(path) as opened:
        assert len(opened.points) == 2
        assert csv(opened, tmp_path) == expected
    ((points,),) = sqlite3.connect(path).execute("SELECT count(*) FROM point")
    assert points == 2


def test_extended_shards_are_merged(tmp_path: Path) -> None:
    stores = [tmp_path / f"{i}.sqlite" for i in (1, 2)]
    for extended in (scenario(), scenario(MORE_SIZES, THREE)):
        for i, store in enumerate(stores, 1):
            # The second shard begins with the extension.
            if i == 1 or len(extended.schemes) == 3:
                with Study(extended, precision=None, runs=(4, 4), shard=(i, 2), store=store) as shard:
                    shard.run()
    fresh = study(scenario(MORE_SIZES, THREE), runs=4)
    fresh.run()
    with merge(tmp_path / "all.sqlite", stores) as merged:
        assert csv(merged, tmp_path) == csv(fresh, tmp_path)


def test_the_command_names_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(BASE + MORE_SIZES)

    def command(*options: str) -> Result:
        return CliRunner().invoke(app, ["study", "sweep.toml", "--runs", "3", *options])

    whole = command("--set", TWO)
    assert (whole.exit_code, "kept" in whole.stderr) == (0, False)
    (tmp_path / "sweep.toml").write_text(BASE + SIZES)
    part = command("--set", 'schemes=["ebsn"]')
    assert part.exit_code == 0
    assert (
        "12 runs in sweep.study/study.sqlite are kept, and not in this study: "
        "3 of basic at tcp.packet_size = 128 B; 3 of ebsn at tcp.packet_size = 128 B; "
        "3 of basic at tcp.packet_size = 1536 B; 3 of basic at tcp.packet_size = 576 B\n"
    ) in part.stderr
    (tmp_path / "sweep.toml").write_text(BASE)
    alone = command("--set", 'schemes=["ebsn"]')
    assert "15 runs in" in alone.stderr
    assert "and those of 1 more" in alone.stderr
