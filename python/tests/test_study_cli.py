"""`lasthop study`: what it prints, what it writes, how it stops, and how it fails."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT, results
from typer.testing import CliRunner, Result

import lasthop
from lasthop import _lasthop
from lasthop.cli.app import app
from lasthop.study import Study

BASE = (ROOT / "scenarios/ebsn-wide-area.toml").read_text()
SWEEP = BASE + '\n[sweep]\ntcp.packet_size = ["128 B", "576 B", "1536 B"]\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a directory with a scenario in it that has a sweep."""
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(*arguments: str) -> Result:
    """Run `lasthop study` in this process: to start another one takes longer than all it does."""
    return CliRunner().invoke(app, ["study", *arguments], prog_name="lasthop")


def test_a_study_from_beginning_to_end(here: Path) -> None:
    options = ("sweep.toml", "--precision", "10%", "--runs", "5:20", "--scheme", "basic", "--scheme", "ebsn")
    first = study(*options, "--export", "csv")
    assert first.exit_code == 0
    title, _, header, _, *rows = first.stdout.splitlines()
    assert title == "EBSN wide area: mean bad period 4 s"
    names = ("tcp.packet_size", "scheme", "throughput (kbps)", "± 95 %", "all bits / all time (kbps)", "runs")
    assert all(name in header for name in names)
    assert [row.split()[:3:2] for row in rows[:6]] == [
        [s, c] for s in ("128", "576", "1536") for c in ("basic", "ebsn")
    ]
    against = rows.index("throughput against basic, in pairs of runs over the same fades")
    assert [row.split()[2] for row in rows[against + 3 : against + 6]] == ["ebsn"] * 3
    assert all(row.rstrip().endswith("significant") for row in rows[against + 3 : against + 6])
    directory = here / "sweep.study"
    files = ["comparison.csv", "curve.csv", "curve.png", "curve.svg"]
    files += ["results.json", "runs.csv", "study.sqlite", "summary.csv"]
    assert results(directory) == files
    assert all(name in rows[-1] for name in files)
    with (directory / "runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert {run["tcp.packet_size"] for run in runs} == {"128 B", "576 B", "1536 B"}
    assert f"warning: {len(rows)}" not in first.stderr

    written = {path.name: path.read_bytes() for path in directory.iterdir()}
    second = study(*options, "--export", "csv")
    assert (second.exit_code, second.stdout) == (0, first.stdout)
    assert second.stderr.startswith("nothing left to run: sweep.study/study.sqlite has every run")
    assert written.pop("study.sqlite")
    assert all((directory / name).read_bytes() == content for name, content in written.items())

    third = study(*options, "--seed", "2")
    assert (third.exit_code, third.stdout) == (2, "")
    assert third.stderr == (
        "error: sweep.study/study.sqlite: this file holds another study: it has seed 1, not 2; "
        "store this one elsewhere (--out DIR, or another store), or delete that file\n"
    )


def test_an_interval_whose_middle_is_not_the_mean_has_both_ends(here: Path) -> None:
    """As that of a skewed sample: half its width beside the mean would not be true."""
    options = ("sweep.toml", "--scheme", "basic", "--runs", "5")
    done = study(*options, "--set", "sweep={}", "--set", "tcp.packet_size=512 B", "--export", "csv")
    with (here / "sweep.study" / "summary.csv").open() as file:
        (row,) = csv.DictReader(file)
    low, mean, high = (float(row[name]) / 1e3 for name in ("low", "mean", "high"))
    assert high - mean > 1.5 * (mean - low)
    sizes = ("packet-size", *options, "--sizes", "512 B, 1536 B")
    for text in (done.stdout, CliRunner().invoke(app, sizes, prog_name="lasthop").stdout):
        assert f"{low:.1f} to {high:.1f}" in text
        assert "± 95 %" not in text


def test_json_has_the_documented_keys(here: Path) -> None:
    options = ("--runs", "5", "--out", "results", "--set", 'schemes=["basic","ebsn"]', "--json")
    result = study("sweep.toml", *options)
    report = json.loads(result.stdout)
    assert list(report) == [
        "lasthop",
        "scenario",
        "seed",
        "metric",
        "precision",
        "runs",
        "finished",
        "store",
        "results",
        "comparisons",
    ]
    assert (report["lasthop"], report["seed"]) == (lasthop.__version__, 1)
    assert (report["runs"], report["finished"]) == ({"min": 5, "max": 5}, True)
    assert len(report["results"]) == 6
    for each in report["results"]:
        names = ["parameters", "scenario_hash", "scheme", "runs", "unfinished", "precision", "metrics"]
        assert list(each) == [*names, "quantiles"]
        assert each["quantiles"] == {}
        assert list(each["parameters"]) == ["tcp.packet_size"]
        counters = ["ebsn.notices_sent"]
        assert list(each["metrics"]) == [*_lasthop.METRICS, *counters, "throughput_total_bps"]
        for name, metric in each["metrics"].items():
            assert list(metric) == ["mean", "ci95", "n", "low", "high"]
            # TCP declares no packets lost, and no link has DualPI2.
            missing = (name in counters and each["scheme"] == "basic") or "energy" in name
            missing |= name in ("declared_lost", "l_queue_wait_s", "c_queue_wait_s")
            assert metric["n"] == (0 if missing else 5)
    assert len(report["comparisons"]) == 3
    for each in report["comparisons"]:
        names = ["parameters", "scheme", "baseline", "metric", "difference", "ratio", "p_value", "p_holm"]
        assert list(each) == [*names, "significant"]
        assert list(each["difference"]) == list(each["ratio"]) == ["mean", "ci95", "n", "low", "high"]
    assert (here / "results/results.json").read_text() == result.stdout
    with Study.open(here / "results/study.sqlite") as opened:
        mean = opened.summary("timeouts")["mean"]
    assert [each["metrics"]["timeouts"]["mean"] for each in report["results"]] == mean.tolist()
    # What was asked for was not reached, and that is said.
    assert "less precise than 2 %" in result.stderr


def test_a_dry_run_counts_and_leaves_nothing(here: Path) -> None:
    result = study("sweep.toml", "--dry-run", "--runs", "10:100")
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines["points"] == "3"
    assert lines["schemes"] == "4: basic, source-quench, local-recovery, ebsn"
    assert lines["runs"] == "120 to 1,200: 10 to 100 of each scheme at each point"
    assert re.fullmatch(r".+ to .+ on \d+ threads", lines["time"])
    report = json.loads(study("sweep.toml", "--dry-run", "--runs", "10:100", "--json").stdout)
    assert report["runs"] == {"min": 120, "max": 1200}
    assert 0 < report["seconds"]["min"] < report["seconds"]["max"] < 60
    assert [path.name for path in here.iterdir()] == ["sweep.toml"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "much"], "--precision: expected a share of the mean such as 2%, found 'much'"),
        (["--precision", "2"], "--precision: expected a share of the mean such as 2%, found '2'"),
        (["--runs", "ten"], "--runs: expected MIN:MAX or one number, found 'ten'"),
        (["--runs", "9:3"], "--runs: expected 1 <= MIN <= MAX, found '9:3'"),
        (["--runs", "0"], "--runs: expected 1 <= MIN <= MAX, found '0'"),
        (["--runs", "99999999999999999999"], "--runs: expected at most 1,000,000 of each scheme"),
        (
            ["--metric", "throughput"],
            '--metric: there is no metric "throughput"; did you mean "throughput_bps"?',
        ),
        (["--metric", "speed"], '--metric: there is no metric "speed"; there are throughput_bps, '),
        (["--export", "xlsx"], "--export: expected csv, parquet or datasette, found 'xlsx'"),
        (["--scheme", "snoopy"], "snoopy"),
        (["--set", "tcp.windows=1"], "windows"),
        (["--out", "sweep.toml"], "sweep.toml"),
    ],
)
def test_wrong_input_is_refused_in_a_line(here: Path, options: list[str], message: str) -> None:
    result = study("sweep.toml", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_an_internal_error_of_a_run_is_reported_without_a_traceback(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Faulty(contextlib.nullcontext[None]):
        def __init__(self, *settings: object) -> None:
            super().__init__()

        def __enter__(self) -> Faulty:  # type: ignore[override]
            return self

        def submit(self, *order: object) -> None:
            pass

        def cancel(self) -> None:
            pass

        def collect(self, timeout_s: float) -> None:
            raise RuntimeError("run 3 failed; to replay it, ...")

    monkeypatch.setattr(_lasthop, "Pool", Faulty)
    result = study("sweep.toml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: run 3 failed; to replay it, ...\n"


def test_an_interrupted_study_keeps_its_runs_and_says_how_to_resume(here: Path) -> None:
    # Whatever is measured, a run of this takes longer than there is time to stop.
    options = ["sweep.toml", "--set", "transfer.size=2 MB", "--set", "limit=9000000 s", "--runs", "1000"]
    line = [sys.executable, "-m", "lasthop", "study", *options]
    process = subprocess.Popen(line, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    store = here / "sweep.study/study.sqlite"
    while _stored(store) == 0:
        time.sleep(0.05)
        assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert time.monotonic() - began < 5.0
    assert (process.returncode, out) == (130, "")
    stopped = re.match(
        r"stopped; ([\d,]+) runs are kept in sweep\.study/study\.sqlite\. To resume:\n  (.*)\n", err
    )
    assert stopped is not None
    assert (
        stopped[2]
        == "lasthop study sweep.toml --set 'transfer.size=2 MB' --set 'limit=9000000 s' --runs 1000"
    )
    with Study.open(store) as opened:
        assert len(opened.to_pandas()) == int(stopped[1].replace(",", "")) > 0
        assert not opened.finished
    assert [path.name for path in store.parent.iterdir()] == ["study.sqlite"]


def _stored(store: Path) -> int:
    """Return how many runs another process has stored."""
    if not store.exists():
        return 0
    with sqlite3.connect(store) as connection:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return 0
        return int(connection.execute("SELECT count(*) FROM result").fetchone()[0])


def test_the_progress_bar_is_for_terminals_only(here: Path) -> None:
    options = ["--runs", "500", "--json", "--set", "schemes=['basic', 'ebsn']"]
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "lasthop", "study", "sweep.toml", *options]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        line, cwd=here, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # The terminal has no more to show once its writer is gone.
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["finished"]
    assert re.search(r"[\d,]+ of about [\d,]+ runs, [\d,]+ a second, .+ left", shown.decode())
    assert "of about" not in study("sweep.toml", *options, "--out", "again").stderr


def test_unused_settings_are_reported(here: Path) -> None:
    options = ["--set", "radio.channel=perfect", "--set", "sweep={}", "--scheme", "basic", "--runs", "3"]
    result = study("sweep.toml", *options)
    assert "nothing is random" in result.stderr
    assert "against" not in result.stdout
    assert not (here / "sweep.study/curve.png").exists()


def test_several_settings_give_several_curves(here: Path) -> None:
    (here / "grid.toml").write_text(SWEEP + 'tcp.flavour = ["tahoe", "newreno"]\n')
    result = study("grid.toml", "--runs", "3", "--scheme", "basic")
    assert result.exit_code == 0
    names = {path.name for path in (here / "grid.study").glob("*.png")}
    assert names == {"curve-1.png", "curve-2.png"}


def test_two_numeric_settings_give_a_heat_map(here: Path) -> None:
    (here / "grid.toml").write_text(SWEEP + 'radio.channel.two-state.bad = ["4 s", "1 s"]\n')
    options = ("grid.toml", "--runs", "3", "--set", 'schemes=["basic", "ebsn"]')
    assert study(*options).exit_code == 0
    directory = here / "grid.study"
    assert {path.stem for path in directory.glob("*.png")} == {"heat-map"}
    drawn = list(csv.DictReader((directory / "heat-map.csv").open()))
    summary = list(csv.DictReader((directory / "summary.csv").open()))
    assert len(drawn) == 12
    assert [row["mean"] for row in drawn] == [row["mean"] for row in summary]
    # Words beside them give a map for each.
    text = (here / "grid.toml").read_text() + 'tcp.flavour = ["tahoe", "newreno"]\n'
    (here / "grid.toml").write_text(text)
    assert study(*options, "--out", "more").exit_code == 0
    assert {path.stem for path in (here / "more").glob("*.png")} == {"heat-map-1", "heat-map-2"}
    # Three numeric settings are too many for a figure.
    (here / "grid.toml").write_text(text + 'radio.mtu = ["128 B", "256 B"]\n')
    assert study(*options, "--out", "most").exit_code == 0
    assert not list((here / "most").glob("*.png"))


def test_startup_imports_nothing_slow() -> None:
    modules = "{'pandas', 'scipy', 'matplotlib'} & {*sys.modules}"
    program = f"import sys, lasthop.cli.app, lasthop.study; print({modules})"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


def test_parquet_without_pyarrow_is_refused_before_the_first_run(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lasthop.results.export.find_spec", lambda name: None)
    result = study("sweep.toml", "--export", "parquet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'lasthop[parquet]'" in result.stderr
    assert [path.name for path in here.iterdir()] == ["sweep.toml"]


def test_a_counter_of_a_scheme_is_a_metric(here: Path) -> None:
    options = ("--runs", "5", "--metric", "ebsn.notices_sent", "--set", 'schemes=["basic","ebsn"]')
    result = study("sweep.toml", *options, "--export", "csv")
    assert result.exit_code == 0, result.stderr
    _, _, header, rule, basic, ebsn, *_ = result.stdout.splitlines()
    assert "ebsn: notices sent" in header
    assert set(rule) == {"─"}
    assert basic.split()[2:] == ["basic", "-", "-", "5", "0"]
    assert ebsn.split()[2] == "ebsn"
    assert float(ebsn.split()[3]) > 0
    # What basic lacks is not a lack of precision.
    assert "3 of 3 means are less precise" in result.stderr
    assert "ebsn.notices_sent" in (here / "sweep.study/runs.csv").read_text().splitlines()[0].split(",")
    (curve,) = (here / "sweep.study").glob("curve.csv")
    assert "ebsn" in curve.read_text()
    refused = study("sweep.toml", *options, "--metric", "snoop.copies")
    assert refused.exit_code == 2
    assert 'no metric "snoop.copies"; there are throughput_bps, ' in refused.stderr
    assert "ebsn.notices_sent" in refused.stderr
