"""Directories of results: complete or not written, and never a mixture of two commands."""

from __future__ import annotations

import errno
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import EXAMPLE, ROOT, Command, interrupt, results

import lasthop
from lasthop.cli.commands import run
from lasthop.cli.failure import RefusedError
from lasthop.cli.output import FILES, Output
from lasthop.results.sqlite import SqliteStore
from lasthop.study import Study, StudyError

ENDLESS = ("--set", "transfer.size=unlimited", "--set", "limit=100000000 s", "--scheme", "ebsn")


def no_larger_than(size: int) -> Callable[[], None]:
    """Return what makes a process fail to write more to any file: a disk that is full."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def on_a_full_disk(size: int, *arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "lasthop", *map(str, arguments)]
    return subprocess.run(
        line, cwd=cwd, capture_output=True, text=True, check=False, preexec_fn=no_larger_than(size)
    )


def test_results_of_an_earlier_command_are_replaced(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("run", EXAMPLE, "--trace", "--pcap", "--out", out).returncode == 0
    (out / "notes.txt").write_text("mine")
    before = (out / "results.json").read_text()
    assert command("run", EXAMPLE, "--scheme", "ebsn", "--pcap", "--out", out).returncode == 0
    assert results(out) == ["ebsn.pcapng", "notes.txt", "results.json", "scenario.toml"]
    assert (out / "results.json").read_text() != before


def test_a_list_of_files_is_confined_to_its_directory(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / FILES).write_text(f"../mine\n{tmp_path / 'mine'}\n..\n.\n\n")
    with Output(out) as output:
        output.text("new", "new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert results(out) == ["new"]


def test_incomplete_results_leave_the_directory_unchanged(tmp_path: Path) -> None:
    with Output(tmp_path) as output:
        output.text("old", "old")

    def fail(out: Path, name: str) -> None:
        with Output(out) as output:
            output.text("new", "new")
            output.text(name, "new")
            assert name == "taken"

    (tmp_path / "taken").mkdir()
    with pytest.raises(AssertionError):
        fail(tmp_path, "another")
    with pytest.raises(RefusedError, match="a directory has that name"):
        fail(tmp_path, "taken")
    with pytest.raises(AssertionError):
        fail(tmp_path / "deep", "another")
    assert results(tmp_path) == ["old", "taken"]


def test_leftovers_of_a_killed_command_are_removed_by_the_next(command: Command, tmp_path: Path) -> None:
    options = ["run", str(EXAMPLE), "--pcap", "--out", str(tmp_path)]
    line = [sys.executable, "-m", "lasthop", *options, *ENDLESS]
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.DEVNULL) as killed:
        while not list(tmp_path.glob("*/*.pcapng")):
            assert killed.poll() is None
            time.sleep(0.01)
        (left,) = tmp_path.glob(".lasthop-part-*")
        beside = command(*options)
        assert beside.returncode == 0
        assert beside.stderr == f"warning: {left}: another command is writing to this directory\n"
        assert list(left.glob("*.pcapng"))
        killed.kill()
    after = command(*options)
    assert after.returncode == 0
    assert after.stderr == f"warning: {left}: unfinished results of a command that was killed: removed\n"
    assert not list(tmp_path.glob(".lasthop-part-*"))
    assert command(*options).stderr == ""


def test_an_interrupted_capture_leaves_no_half_file(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def begun() -> bool:
        return any(path.stat().st_size > 100_000 for path in out.glob("*/*.pcapng"))

    ended = interrupt(["run", EXAMPLE, *ENDLESS, "--pcap", "--out", out], begun, cwd=ROOT)
    assert ended == (130, "", "interrupted\n")
    assert not out.exists()


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    old = on_a_full_disk(10_000_000, "run", EXAMPLE, "--out", tmp_path)
    assert old.returncode == 0, old.stderr
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for size, options, name in (
        (100, [], "scenario.toml"),
        (60_000, ["--trace"], "basic.packets.svg"),
        (20_000, ["--trace"], "basic.events.csv"),
        (5_000, ["--pcap"], "basic.pcapng"),
    ):
        result = on_a_full_disk(size, "run", EXAMPLE, *options, "--out", tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")
        assert f"{tmp_path / name}: " in result.stderr
        assert "File too large" in result.stderr
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_study_resumes_once_the_disk_has_room(command: Command, tmp_path: Path) -> None:
    options = ("study", ROOT / "scenarios/ebsn-wide-area.toml", "--out", tmp_path, "--runs")
    assert command(*options, "100").returncode == 0
    full = on_a_full_disk(200_000, *options, "2000")
    assert (full.returncode, full.stdout) == (2, "")
    store = tmp_path / "study.sqlite"
    assert full.stderr.startswith(f"error: {store}: cannot be written to: ")
    assert full.stderr.endswith(
        "; the runs stored so far are kept: solve the problem and run the same command again\n"
    )
    with Study.open(store) as study:
        assert 400 <= study.progress.done < 8000
        study.run()
        assert study.finished


def test_a_store_that_failed_refuses_writes(tmp_path: Path) -> None:
    scenario = ROOT / "scenarios/ebsn-wide-area.toml"
    with Study(scenario, runs=(100, 100), store=tmp_path / "study.sqlite") as study:
        study.run()
    with Study(scenario, runs=(2000, 2000), store=tmp_path / "study.sqlite") as study:
        assert isinstance(study._store, SqliteStore)
        (pages,) = study._store._sql.execute("PRAGMA page_count").fetchone()
        study._store._sql.execute(f"PRAGMA max_page_count = {pages + 2}")
        for _ in range(2):
            with pytest.raises(StudyError, match="cannot be written to: database or disk is full; "):
                study.run()
        assert study.progress.done >= 400


@pytest.mark.parametrize(
    ("undamaged", "told"),
    [
        (0.7, "the file is damaged: database disk image is malformed; restore a copy of it, or run"),
        (0.1, "cannot be opened as a study: database disk image is malformed; restore a copy of it, or run"),
    ],
)
def test_a_damaged_store_is_reported_as_damaged(
    command: Command, tmp_path: Path, undamaged: float, told: str
) -> None:
    scenario = ROOT / "scenarios/ebsn-wide-area.toml"
    store = tmp_path / "study.sqlite"
    with Study(scenario, runs=(100, 100), store=store) as study:
        study.run()
    content = bytearray(store.read_bytes())
    first = int(undamaged * len(content))
    content[first:] = b"\xff" * len(content[first:])
    store.write_bytes(content)
    result = command("study", scenario, "--runs", "100", "--out", tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {store}: {told}")
    assert result.stderr.count("\n") == 1


def test_a_damaged_text_in_a_store_is_not_shown(command: Command, tmp_path: Path) -> None:
    scenario = ROOT / "scenarios/ebsn-wide-area.toml"
    store = tmp_path / "study.sqlite"
    with Study(scenario, runs=(1, 1), store=store) as study:
        study.run()
    with closing(sqlite3.connect(store)) as sql, sql:
        sql.execute("UPDATE point SET scenario = CAST(X'66FF' AS TEXT)")
    result = command("study", scenario, "--runs", "1", "--out", tmp_path)
    told = (
        f"{store}: the file is damaged: its point 0; restore a copy of it, or run the command that made it "
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {told}with --repair: that keeps what is intact")


def test_a_paper_on_a_full_disk_names_the_file(tmp_path: Path) -> None:
    result = on_a_full_disk(60_000, "paper", "ebsn", "--figure", "7", "--out", "out", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: out/")
    assert "seed=1.sqlite: cannot be written to: " in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_interrupted_paper_says_how_to_resume(tmp_path: Path) -> None:
    options: list[str | Path] = ["paper", "ebsn", "--full", "--figure", "7", "--out", "its results"]
    stores = tmp_path / "its results"

    def begun() -> bool:
        return any(path.stat().st_size > 0 for path in stores.glob("*.sqlite"))

    code, out, err = interrupt(options, begun, cwd=tmp_path)
    assert (code, out) == (130, "")
    assert err == (
        "stopped; the finished runs of sweeps are kept in its results. To resume:\n"
        "  lasthop paper ebsn --full --figure 7 --out 'its results'\n"
    )
    assert [path.suffix for path in stores.iterdir()] == [".sqlite"]


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", f"{options['dir']}/{options['prefix']}x")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(PermissionError) as caught:
        Output(tmp_path).__enter__()
    assert caught.value.filename == str(tmp_path)


@pytest.mark.parametrize("verb", ["run", "study", "packet-size"])
def test_an_empty_directory_name_is_refused(command: Command, verb: str) -> None:
    result = command(verb, EXAMPLE, "--out", "")
    assert (result.returncode, result.stdout) == (2, "")
    assert "'--out': expected a directory, found an empty name" in result.stderr
    assert not (ROOT / "results.json").exists()


def test_json_and_files_say_the_same(command: Command, tmp_path: Path) -> None:
    result = command("run", EXAMPLE, "--json", "--out", tmp_path)
    assert json.loads(result.stdout) == json.loads((tmp_path / "results.json").read_text())


def test_traces_of_all_runs_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = lasthop.run(EXAMPLE, "basic", trace=True, series=True).recorded_rows
    monkeypatch.setattr(run, "_MAX_ROWS", rows)
    with pytest.raises(RefusedError, match=r"after 2 of \d runs .* have [\d,]+ rows, more"):
        run.run(Path(EXAMPLE), ["basic", "ebsn", "lhack"], seed=0, out=tmp_path / "out", trace=True)
    assert not (tmp_path / "out").exists()
