"""Standard streams that are closed, full, or know few letters; and terminals that are narrow."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLE, ROOT, interrupt, results

from lasthop import load
from lasthop.cli.table import Table

WIDE_AREA = ROOT / "scenarios/ebsn-wide-area.toml"


def lasthop(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "lasthop", *map(str, arguments)]
    usual: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT}
    done: subprocess.CompletedProcess[str] = subprocess.run(line, text=True, check=False, **(usual | options))
    return done


def test_a_run_shows_its_simulated_time() -> None:
    reader, writer = pty.openpty()
    endless = ("--set", "transfer.size=unlimited", "--set", "limit=100000000 s", "--scheme", "ebsn")
    line = [sys.executable, "-m", "lasthop", "run", str(EXAMPLE), *endless]
    options: dict[str, Any] = {"cwd": ROOT, "stdin": writer, "stdout": subprocess.DEVNULL, "stderr": writer}
    shown = r"running ebsn \(1 of 1\), [^,]+, ([0-9.,]+) s of at most 100000000 s\s+simulated"
    with subprocess.Popen(line, env=os.environ | {"COLUMNS": "160"}, **options) as running:
        os.close(writer)
        seen, text = list[float](), ""
        while len(seen) < 3 or seen[0] == seen[-1]:
            text += os.read(reader, 65536).decode()
            seen = [float(seconds.replace(",", "")) for seconds in re.findall(shown, text)]
        running.kill()
    os.close(reader)
    assert seen == sorted(seen)


def test_an_exception_of_a_progress_function_ends_the_run() -> None:
    def stop(seconds: float) -> None:
        assert seconds > 0
        raise LookupError("enough")

    unlimited = ["transfer.size=unlimited", "limit=100000000 s"]
    with pytest.raises(LookupError, match="enough"):
        load(EXAMPLE, unlimited).run("ebsn", progress=stop)


def test_characters_that_stdout_cannot_encode_are_replaced(tmp_path: Path) -> None:
    scenario = tmp_path / "title.toml"
    title = "2 µs, 漢 and \U0001f600"
    scenario.write_text(re.sub(r"(?m)^title = .*", f'title = "{title}"', WIDE_AREA.read_text()), "utf-8")
    ascii_only = {"env": os.environ | {"PYTHONIOENCODING": "ascii"}, "encoding": "utf-8"}
    options = (scenario, "--runs", "20", "--out", tmp_path / "study")
    table = lasthop("study", *options, **ascii_only)
    assert table.returncode == 0, table.stderr
    assert table.stdout.startswith("2 us, \\u6f22 and \\ud83d\\ude00\n")
    assert "+- 95 %" in table.stdout
    assert table.stdout.isascii()
    # Documents are in UTF-8, whatever the terminal's letters are.
    document = lasthop("study", *options, "--json", **ascii_only)
    assert json.loads(document.stdout)["scenario"]["title"] == title
    assert lasthop("check", scenario, **ascii_only).stdout == lasthop("check", scenario).stdout


def test_file_names_that_are_not_unicode_are_supported(tmp_path: Path) -> None:
    scenario = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.toml"))
    scenario.write_bytes(WIDE_AREA.read_bytes())
    for options in (["study", "--runs", "3"], ["check"]):
        for json_too in ([], ["--json"]):
            result = lasthop(options[0], scenario, *options[1:], *json_too, cwd=tmp_path)
            assert result.returncode == 0, result.stderr
            assert not json_too or json.loads(result.stdout)


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)], ids=str)
def test_closed_streams_lose_no_results(tmp_path: Path, closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    run = lasthop("run", EXAMPLE, "--pcap", "--out", tmp_path / "run", preexec_fn=close)
    study = lasthop("study", WIDE_AREA, "--runs", "3", "--out", tmp_path / "study", preexec_fn=close)
    for result in (run, study):
        assert result.returncode == 0
        assert "Traceback" not in result.stderr
        assert bool(result.stdout) == (1 not in closed)
    assert (tmp_path / "run/ebsn.pcapng").stat().st_size > 10_000
    assert "results.json" in results(tmp_path / "study")
    json.loads((tmp_path / "study/results.json").read_text())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_stderr_loses_no_results(tmp_path: Path) -> None:
    options = ("study", WIDE_AREA, "--runs", "3", "--out", tmp_path)
    expected = lasthop(*options)
    # Both a note and a warning go to stderr.
    again = lasthop(*options)
    assert "nothing left to run" in again.stderr
    assert "warning: " in again.stderr
    with open("/dev/full", "w") as full:
        result = lasthop(*options, stderr=full)
        assert (result.returncode, result.stdout) == (0, expected.stdout)
        assert lasthop("run", "nowhere.toml", stderr=full).returncode == 2


def test_warnings_follow_the_results_that_they_are_about(tmp_path: Path) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    both = tmp_path / "both"
    with both.open("w") as file:
        lasthop(
            "study",
            WIDE_AREA,
            "--runs",
            "20",
            "--out",
            tmp_path / "out",
            stdout=file,
            stderr=file,
            env=buffered,
        )
    printed = both.read_text(encoding="utf-8")
    assert 0 < printed.index("local-recovery") < printed.index("warning: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
def test_a_full_stdout_is_reported(tmp_path: Path, options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        result = lasthop("study", WIDE_AREA, "--runs", "100", "--out", tmp_path, *options, stdout=full)
    assert result.returncode == 2
    assert result.stderr == "error: standard output: No space left on device\n"
    assert "results.json" in results(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("options", ["--help", "run --help", "", "--version", "schemes", "paper"])
def test_a_full_stdout_is_reported_for_every_command(options: str) -> None:
    with open("/dev/full", "w") as full:
        result = lasthop(*options.split(), stdout=full)
    assert (result.returncode, result.stderr) == (2, "error: standard output: No space left on device\n")


def test_a_long_run_shows_progress_and_can_be_interrupted() -> None:
    ours, theirs = pty.openpty()
    shown = b""

    def alive() -> bool:
        nonlocal shown
        with contextlib.suppress(BlockingIOError):
            shown += os.read(ours, 4096)
        return re.search(rb"running ebsn \(1 of 1\), \d+ s", shown) is not None

    os.set_blocking(ours, False)
    endless = ["--set", "limit=100000000 s", "--set", "transfer.size=unlimited"]
    line: list[str | Path] = ["run", ROOT / EXAMPLE, *endless, "--scheme", "ebsn"]
    code, out, _ = interrupt(line, alive, stderr=theirs)
    os.close(theirs)
    os.close(ours)
    assert (code, out) == (130, "")


NUMBERS = ["123,456,789.25", "0.000012", "-", "98.7"]


@pytest.mark.parametrize("width", [20, 30, 40, 50, 60, 70, 80])
def test_a_number_is_never_cut(width: int) -> None:
    headers = [
        "scheme",
        "connection",
        ">throughput (kbps)",
        ">± 95 %",
        ">acknowledged, undelivered (KB)",
        ">n",
    ]
    table = Table("radio.channel.nguyen-noble.error_rate", *headers, "what it does")
    for scheme in ("basic", "selective-fec"):
        table.row("0.0000125 per bit", scheme, "scheme", *NUMBERS, "recovers losses on the link itself")
    text = "\n".join(line.plain for line in table.lines(width))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for number in (*NUMBERS, "0.0000125"):
        found = re.findall(rf"(?<![\d.,]){re.escape(number)}(?![\d.,])", text)
        assert len(found) >= 2, (number, text)
    # However it is folded, nothing is lost.
    letters = "".join(text.split())
    assert letters.count("recovers") == 2


@pytest.mark.parametrize("width", range(20, 120))
def test_a_heading_is_broken_at_spaces_alone(width: int) -> None:
    heads = ["throughput (kbps)", "goodput (%)", "retransmitted (KB)", "timeouts", "completion (s)"]
    table = Table("scheme", *(f">{head}" for head in heads))
    table.row("local-recovery", "8.12", "99.9", "1.5", "0", "98.5")
    words = {word.rstrip(":") for line in table.lines(width) for word in line.plain.split()}
    assert words >= {word for head in heads for word in head.split()}


def test_a_table_is_folded_on_terminals_only() -> None:
    table = Table("a", ">b")
    table.row("word " * 100, "1")
    assert [len(line.plain) for line in table.lines(None)] == [504, 504, 504]


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("line", [["run", ROOT / EXAMPLE], ["study", WIDE_AREA, "--runs", "10"]], ids=str)
def test_commands_fit_narrow_terminals(line: list[str | Path], columns: int, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-m", "lasthop", *map(str, line)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # The terminal has no more to show once its writer is gone.
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).replace("\r", "")
    assert "…" not in text
    whole = lasthop(*line, cwd=tmp_path).stdout
    for number in re.findall(r"(?<=\s)[\d,]+\.\d+(?=\s)", whole):
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", text), number
