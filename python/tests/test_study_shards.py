"""Shards of a study: what each makes, what merging them gives, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, results
from stores import edit
from typer.testing import CliRunner, Result

from lasthop import Scenario
from lasthop.cli.app import app
from lasthop.engine.shards import Shard
from lasthop.study import Study, StudyError, Target, merge

BASE = (ROOT / "scenarios/ebsn-wide-area.toml").read_text()
SWEEP = BASE + '\n[sweep]\ntcp.packet_size = ["128 B", "576 B", "1536 B"]\n'
TWO = 'schemes=["basic", "ebsn"]'


def scenario(*overrides: str) -> Scenario:
    return Scenario.parse(SWEEP, overrides=[TWO, *overrides])


def shards(directory: Path, of: int, runs: int) -> list[Path]:
    """Run the shards of a study, and return their stores."""
    stores = []
    for index in range(1, of + 1):
        stores.append(directory / f"{index}.sqlite")
        with Study(
            scenario(), precision=None, runs=(runs, runs), shard=(index, of), store=stores[-1]
        ) as shard:
            shard.run()
            assert shard.finished
    return stores


def csv(study: Study, directory: Path) -> bytes:
    return study.to_csv(directory / "runs.csv").read_bytes()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a directory with a scenario in it that has a sweep."""
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str) -> Result:
    """Run `lasthop` in this process."""
    return CliRunner().invoke(app, [*arguments], prog_name="lasthop")


# -- Shares ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "runs", "points"), [(1, 5, 2), (3, 10, 4), (7, 7, 1), (10, 3, 4), (9, 2, 5)])
def test_the_shares_of_all_shards_are_all_runs_once(of: int, runs: int, points: int) -> None:
    shares = [[Shard(i, of).share(point, runs) for point in range(points)] for i in range(1, of + 1)]
    for point in range(points):
        numbers = sorted(n for each in shares for n in range(*each[point]))
        assert numbers == list(range(runs))
    # No shard is idle, and none has more than its part and one run more at each point.
    sizes = [sum(end - first for first, end in each) for each in shares]
    assert min(sizes) > 0
    assert max(sizes) <= points * (runs // of + 1)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/", "a/b", "-1/4", "1/0", "1.5/3"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(StudyError, match="expected I/N with 1 <= I <= N"):
        Shard.parse(text)


def test_a_shard_makes_its_share_and_no_more(tmp_path: Path) -> None:
    store = tmp_path / "study.sqlite"
    with Study(scenario(), precision=None, runs=(10, 10), shard=(2, 3), store=store) as shard:
        assert shard.progress.expected == 20
        assert shard.run() == 20
        assert (shard.progress.done, shard.progress.expected, shard.finished) == (20, 20, True)
        frame = shard.to_pandas()
        for i, (_, point) in enumerate(frame.groupby("tcp.packet_size", sort=False)):
            for _, cell in point.groupby("scheme"):
                assert cell["run"].tolist() == list(range(*Shard(2, 3).share(i, 10)))
        with pytest.raises(StudyError, match=r"shard 2/3, and means need .* merge them first"):
            shard.summary()
        assert "20 runs, finished" in shard._repr_html_()
    with Study.open(store) as opened:
        assert (opened.shard, opened.run()) == (Shard(2, 3), 0)


def test_what_cannot_be_a_shard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"100 to 1,000, depends on .* such as --runs 1000"):
        Study(scenario(), shard=(1, 4))
    with pytest.raises(StudyError, match="found 16 shards, expected at most 15"):
        Study(scenario(), runs=(5, 5), shard=(1, 16))
    # Fixed numbers of runs need no stopping rule.
    Study(scenario(), precision=0.02, runs=(5, 5), shard=(1, 15))
    store = tmp_path / "study.sqlite"
    with Study(scenario(), runs=(4, 4), shard=(1, 2), store=store) as study:
        study.run()
    for other, words in [((2, 2), "shard 1/2 is kept there, and this is shard 2/2"), (None, "the whole")]:
        with pytest.raises(StudyError, match=words):
            Study(scenario(), runs=(4, 4), shard=other, store=store)


# -- Merging -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "runs"), [(1, 4), (3, 10), (7, 3)])
def test_merged_shards_equal_one_process(tmp_path: Path, of: int, runs: int) -> None:
    with Study(scenario(), precision=None, runs=(runs, runs)) as one:
        one.run()
        expected = csv(one, tmp_path), one.summary(), one.differences()
    stores = shards(tmp_path, of, runs)
    with merge(tmp_path / "all.sqlite", stores[::-1]) as merged:
        assert merged.finished
        assert merged.shard is None
        assert csv(merged, tmp_path) == expected[0]
        assert merged.summary().equals(expected[1])
        assert merged.differences().equals(expected[2])
        assert merged.run() == 0
    # The view of the merged store reads chunks that were cut.
    with merge(tmp_path / "all.sqlite", stores) as again:
        assert csv(again, tmp_path) == expected[0]


def test_runs_that_several_stores_hold_are_cut_and_kept_once(tmp_path: Path) -> None:
    with Study(scenario(), precision=None, runs=(12, 12)) as one:
        one.run()
        expected = csv(one, tmp_path)
    # Thirds and halves overlap everywhere.
    for name in ("halves", "thirds"):
        (tmp_path / name).mkdir()
    halves, thirds = shards(tmp_path / "halves", 2, 12), shards(tmp_path / "thirds", 3, 12)
    with merge(tmp_path / "all.sqlite", [*thirds[:2], *halves]) as merged:
        assert csv(merged, tmp_path) == expected
    connection = sqlite3.connect(tmp_path / "all.sqlite")
    assert connection.execute("SELECT count(*), sum(run) FROM result").fetchone() == (72, 396)
    ((total,),) = connection.execute("SELECT sum(timeouts) FROM result")
    with Study(scenario(), precision=None, runs=(12, 12)) as one:
        one.run()
        assert total == one.to_pandas()["timeouts"].sum()


def test_missing_shards_are_named(tmp_path: Path) -> None:
    stores = shards(tmp_path, 4, 8)
    edit(stores[3], "DELETE FROM chunk WHERE point = 1 AND scheme = 'ebsn'")
    into = tmp_path / "all.sqlite"
    with pytest.raises(StudyError) as refused:
        merge(into, [stores[0], stores[3]])
    assert str(refused.value).startswith(
        "missing shards: 2/4, 3/4; shard 4/4 lacks 2 of its 12 runs; run what is missing and merge again"
    )
    assert not into.exists()
    with merge(into, [stores[0], stores[3]], partial=True) as partial:
        assert not partial.finished
        # Nothing is counted out of order: a mean of the runs that there are is one of 0, 1, 2, ...
        assert partial.summary()["n"].tolist() == [2, 2, 0, 0, 0, 0]
        assert partial.run() == 26
        with Study(scenario(), precision=None, runs=(8, 8)) as one:
            one.run()
            assert csv(partial, tmp_path) == csv(one, tmp_path)


def test_merged_runs_can_be_continued_by_a_stopping_rule(tmp_path: Path) -> None:
    into = tmp_path / "all.sqlite"
    merge(into, shards(tmp_path, 2, 10)).close()
    with (
        Study(scenario(), precision=0.1, runs=(10, 40), store=into) as study,
        Study(scenario(), precision=0.1, runs=(10, 40)) as one,
    ):
        study.run()
        one.run()
        assert csv(study, tmp_path) == csv(one, tmp_path)


def test_stores_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    stores = shards(tmp_path, 2, 4)
    (tmp_path / "other").mkdir()
    cases: dict[str, dict[str, Any]] = {
        "it has seed 2, not 1": {"seed": 2},
        "its metric is timeouts, not throughput_bps": {"metric": "timeouts"},
        "its number of runs is 6, not 4": {"runs": (6, 6)},
        "its precision is 0.1, not None": {"precision": 0.1},
        "its stopping rule is another one": {"targets": [Target("timeouts", relative=0.1)]},
        "its stopping rule is another one;?": {"each_scheme": True},
        "3 of 3 points are not in it": {"scenario": scenario("radio.mtu=256 B")},
        "it compares the schemes basic": {"scenario": scenario('schemes=["basic"]')},
    }
    for i, (words, settings) in enumerate(cases.items()):
        other = tmp_path / f"other/{i}.sqlite"
        study: dict[str, Any] = {
            "scenario": scenario(),
            "precision": None,
            "runs": (4, 4),
            "shard": (2, 2),
            "store": other,
        }
        with Study(**study | settings) as shard:
            shard.run()
        with pytest.raises(StudyError, match=f"this is another study than .*1.sqlite: {words}"):
            merge(tmp_path / "all.sqlite", [stores[0], other])
    with pytest.raises(StudyError, match="merged into itself"):
        merge(stores[0], stores)
    with pytest.raises(StudyError, match=r"shard 1/2 is kept there"):
        merge(stores[0], stores[1:])
    with pytest.raises(StudyError, match="nothing to merge"):
        merge(tmp_path / "all.sqlite", [])
    assert not (tmp_path / "all.sqlite").exists()


@pytest.mark.parametrize("change", ["timeouts = 999", "ended = 'idle'", "completion_time_s = NULL"])
def test_runs_that_differ_are_refused_and_nothing_is_written(tmp_path: Path, change: str) -> None:
    stores, into = shards(tmp_path, 2, 4), tmp_path / "all.sqlite"
    merge(into, stores[1:], partial=True).close()
    with Study.open(into) as kept:
        before = csv(kept, tmp_path)
    edit(stores[1], f"UPDATE chunk SET {change} WHERE point = 2 AND scheme = 'ebsn'")
    name = change.split(" = ", maxsplit=1)[0]
    words = rf"2.sqlite: run \d of ebsn at tcp.packet_size = 1536 B is not the one .* {name} is"
    with pytest.raises(StudyError, match=words):
        merge(into, stores)
    with Study.open(into) as kept:
        # The runs of the first shard were merged before, and are taken back.
        assert csv(kept, tmp_path) == before


@pytest.mark.parametrize("place", [0, 5, 11])
def test_one_common_run_is_compared(tmp_path: Path, place: int) -> None:
    """With as many shards as runs of a scheme, each has one of each scheme."""
    with Study(scenario(), precision=None, runs=(4, 4), store=tmp_path / "all.sqlite") as whole:
        whole.run()
    single = shards(tmp_path, 12, 4)[place]
    merge(tmp_path / "all.sqlite", [single], partial=True).close()
    edit(single, "UPDATE chunk SET ended = 'idle' WHERE scheme = 'ebsn'")
    shares = [Shard(place + 1, 12).share(point, 4) for point in range(3)]
    ((point, run),) = [(point, run) for point, (run, end) in enumerate(shares) if run < end]
    size = ("128 B", "576 B", "1536 B")[point]
    words = rf"run {run} of ebsn at tcp.packet_size = {size} is not the one .* ended is idle, not finished"
    with pytest.raises(StudyError, match=words):
        merge(tmp_path / "all.sqlite", [single], partial=True)


def test_one_missing_run_is_named(tmp_path: Path) -> None:
    stores = shards(tmp_path, 12, 4)
    edit(stores[7], "DELETE FROM chunk WHERE scheme = 'ebsn'")
    with pytest.raises(StudyError, match=r"^shard 8/12 lacks 1 of its 2 runs; run what is missing"):
        merge(tmp_path / "all.sqlite", stores)


def test_without_a_target_the_most_runs_are_expected(tmp_path: Path) -> None:
    with Study(scenario(), precision=None, runs=(2, 4), shard=(1, 2), store=tmp_path / "1.sqlite") as shard:
        shard.run()
    with pytest.raises(StudyError, match=r"^missing shard: 2/2; run what is missing"):
        merge(tmp_path / "all.sqlite", [tmp_path / "1.sqlite"])


# -- The commands ------------------------------------------------------------------------------------


def test_shards_by_the_command_line_give_the_same_files(here: Path) -> None:
    options = ("sweep.toml", "--runs", "6", "--set", TWO)
    for i in (1, 2, 3):
        shard = command("study", *options, "--shard", f"{i}/3")
        assert shard.exit_code == 0, shard.stderr
        assert shard.stdout.startswith(f"shard {i}/3: 12 runs in sweep.study/shard-{i}-of-3/study.sqlite\n")
        assert results(here / f"sweep.study/shard-{i}-of-3") == ["study.sqlite"]
    again = json.loads(command("study", *options, "--shard", "3/3", "--json").stdout)
    assert again["shard"] == {"index": 3, "of": 3, "runs": 12}
    directories = [f"sweep.study/shard-{i}-of-3" for i in (1, 2, 3)]
    refused = command("merge", "all", *directories[:2])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: missing shard: 3/3; run what is missing")
    assert not (here / "all").exists()
    merged = command("merge", "all", *directories, "--export", "csv", "--html")
    assert merged.exit_code == 0, merged.stderr
    one = command("study", *options, "--out", "one", "--export", "csv")
    assert merged.stdout.replace(", report.html", "") == one.stdout.replace("to one", "to all")
    assert sorted([*results(here / "one"), "report.html"]) == results(here / "all")
    for name in results(here / "one"):
        if name != "study.sqlite":
            expected = (here / "one" / name).read_bytes().replace(b"one/study.sqlite", b"all/study.sqlite")
            assert (here / "all" / name).read_bytes() == expected, name
    document = command("merge", "all", *directories, "--json")
    assert document.stdout == (here / "all/results.json").read_text()


def test_a_partial_merge_says_what_is_missing(here: Path) -> None:
    options = ("sweep.toml", "--runs", "6", "--set", TWO)
    command("study", *options, "--shard", "1/3")
    merged = command("merge", "all", "sweep.study/shard-1-of-3", "--partial")
    assert merged.exit_code == 0, merged.stderr
    assert "24 runs are missing; `lasthop study` with --out all makes them" in merged.stderr
    whole = command("study", *options, "--out", "all")
    assert whole.exit_code == 0
    assert whole.stdout.replace("to all", "to one") == command("study", *options, "--out", "one").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "sweep.toml", "--shard", "4/3"], "--shard: found 4/3, expected I/N"),
        (["study", "sweep.toml", "--shard", "1"], "--shard: found '1', expected I/N"),
        (["study", "sweep.toml", "--shard", "1/3"], "--shard: with a stopping rule"),
        (["study", "sweep.toml", "--shard", "1/9", "--runs", "2"], "--shard: found 9 shards, expected at"),
        (
            ["study", "sweep.toml", "--shard", "1/3", "--runs", "3", "--export", "csv"],
            "--export: a shard has only a part of the runs; expected at `lasthop merge`",
        ),
        (
            ["study", "sweep.toml", "--shard", "1/3", "--runs", "3", "--html"],
            "--html: a shard has only a part of the runs",
        ),
        (["merge", "all", "nowhere"], "nowhere: there is no study.sqlite"),
        (["merge", "all", "sweep.toml"], "not a database"),
        (["merge", "all"], "DIR"),
    ],
)
def test_wrong_shards_are_refused_in_a_line(here: Path, arguments: list[str], message: str) -> None:
    result = command(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in here.rglob("*.sqlite")) == []


def test_a_dry_run_counts_the_runs_of_the_shard(here: Path) -> None:
    options = ("sweep.toml", "--runs", "10", "--set", TWO, "--shard", "2/3", "--dry-run")
    lines = dict(line.split(maxsplit=1) for line in command("study", *options).stdout.splitlines())
    assert lines["runs"] == "20 to 20: shard 2/3 of 10 of each scheme at each point"
