"""The comforts of the command line: help, manual page, completion, verbosity, jobs, errors as JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EXAMPLE, ROOT, Command, run_command

import lasthop
from lasthop import papers
from lasthop._lasthop import PROFILES, stack_senders
from lasthop.advice import SENDERS, STACK_SENDERS

COMMANDS = [
    "run",
    "study",
    "merge",
    "compare",
    "check",
    "schema",
    "schemes",
    "links",
    "measure",
    "fit",
    "advise",
    "scenarios",
    "paper",
    "packet-size",
    "web",
    "man",
]


# -- Help and the manual page ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_whole_and_fits_the_terminal(name: str) -> None:
    line = [name, "--help"] if name else ["--help"]
    shown = {columns: run_command(*line, env={"COLUMNS": str(columns)}).stdout for columns in (40, 80, 120)}
    for columns, text in shown.items():
        assert max(map(len, text.splitlines())) <= columns
        # Nothing is cut, or broken inside a word but at a hyphen.
        words, expected = (re.sub(r"(?<=\w-)\s+", "", each).split() for each in (text, shown[120]))
        assert words == expected
        # Dots that are not those of an argument which may be repeated.
        assert "..." not in re.sub(r"[\[{]\w+[\]}]\.\.\.", "", text)


def test_help_shows_examples_that_run(command: Command, tmp_path: Path) -> None:
    _, _, examples = command("--help").stdout.partition("Examples:\n")
    lines = re.findall(r"^  (lasthop .*)$", examples, re.MULTILINE)
    assert len(lines) > 3
    for line in lines:
        words = line.split()[1:]
        if "mine.toml" in line or words[0] in ("paper", "--install-completion"):
            continue
        assert command(*words).returncode == 0, line
    assert command("scenarios", "ebsn-example").returncode == 0


def test_the_manual_page_has_every_command_and_option(command: Command) -> None:
    page = command("man").stdout
    # A plain hyphen would be shown as a dash that no shell understands.
    assert re.search(r"[^\\]-", page.partition(".SH SYNOPSIS")[2]) is None
    plain = page.replace("\\-", "-")
    for name in COMMANDS:
        assert f"\n.SS lasthop {name}\n" in plain
        for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", command(name, "--help").stdout, re.MULTILINE):
            section = plain.partition(f"\n.SS lasthop {name}\n")[2].partition("\n.S")[0]
            assert f"\\fB{option}\\fR" in section, (name, option)
    assert ".SH ENVIRONMENT\n.TP\n\\fBLASTHOP_JOBS\\fR" in plain


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man")
def test_man_shows_the_manual_page_without_warnings(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "lasthop.1"
    page.write_text(command("man").stdout)
    environment = os.environ | {"MANWIDTH": "80", "MANPAGER": "cat", "LC_ALL": "C"}
    line = ["man", "--warnings", "-l", str(page)]
    shown = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    text = " ".join(re.sub(r".\x08", "", shown.stdout).split())
    assert "lasthop - What will make TCP work over this wireless last hop?" in text
    assert "2 An invalid scenario or option" in text


# -- Completion --------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """Return what bash would offer at the end of a line."""
    words = line.split(" ")
    asked = {"_LASTHOP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return run_command(env=asked).stdout.split()


def test_names_are_completed() -> None:
    schemes = [each.name for each in lasthop.schemes()]
    assert {*COMMANDS} <= {*completed("lasthop ")}
    assert completed("lasthop run ebsn-e") == ["ebsn-example"]
    assert completed("lasthop run scenarios/ce") == ["scenarios/cell.toml"]
    assert "scenarios/cell.toml" in completed("lasthop check sc")
    assert completed("lasthop scenarios ") == [*lasthop.scenarios()]
    assert completed("lasthop run ebsn-example --scheme ") == schemes
    assert completed("lasthop run ebsn-example --scheme snoop+eb") == ["snoop+ebsn"]
    stacks = [each.name for each in stack_senders()]
    assert {*STACK_SENDERS} < {*stacks}
    assert completed("lasthop study cell --sender ") == [*dict.fromkeys((*PROFILES, *SENDERS, *stacks))]
    assert {"linux-reno", *PROFILES} <= {*completed("lasthop study last-mile --sender ")}
    assert completed("lasthop run ebsn-example --metric ebsn.") == ["ebsn.notices_sent"]
    assert completed("lasthop study --scheme ebsn ebsn-example --metric timeo") == ["timeouts"]
    assert completed("lasthop run ebsn-example --set transfer.si") == ["transfer.size="]
    # One that the scenario does not state.
    assert completed("lasthop run ebsn-example --set radio.outage.f") == ["radio.outage.first="]
    assert completed("lasthop links starl") == ["starlink", "starlink-ship"]
    assert completed("lasthop paper ") == list(papers.names())
    assert completed("lasthop paper ebsn --figure 1") == ["10", "11"]
    assert "recovery=reno" in completed("lasthop paper wenp --reading recov")
    assert completed("lasthop study ebsn-example --export ") == ["csv", "parquet", "datasette"]
    assert completed("lasthop compare ebsn-example --better h") == ["higher"]


def test_completion_survives_what_cannot_be_read() -> None:
    assert completed("lasthop run nosuch --set ") == []
    assert completed("lasthop run Makefile --metric timeo") == ["timeouts"]
    assert completed("lasthop paper nosuch --figure ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_accepts_its_completion_script(tmp_path: Path, shell: str) -> None:
    script = run_command(env={"_LASTHOP_COMPLETE": f"source_{shell}"}).stdout
    assert f"complete_{shell}" in script
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", str(file)], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_a_scheme(tmp_path: Path) -> None:
    starter = tmp_path / "lasthop"
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lasthop "$@"\n')
    starter.chmod(0o755)
    script = run_command(env={"_LASTHOP_COMPLETE": "source_bash"}).stdout
    script += "COMP_WORDS=(lasthop run cell --scheme sno) COMP_CWORD=4\n"
    script += '_lasthop_completion lasthop\necho "${COMPREPLY[@]}"\n'
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "snoop\n"


# -- Verbosity and jobs ------------------------------------------------------------------------------


def test_verbose_says_on_stderr_what_is_done(command: Command, tmp_path: Path) -> None:
    arguments = ("run", "ebsn-example", "--scheme", "ebsn", "--json")
    quiet, loud = command(*arguments), command(*arguments, "--verbose", "--out", tmp_path)
    assert quiet.stderr == ""
    assert loud.stdout == quiet.stdout
    assert command("-v", *arguments).stderr.splitlines()[:2] == loud.stderr.splitlines()[:2]
    assert f"worked scenario ebsn-example: hash {lasthop.load('ebsn-example').hash}" in loud.stderr
    assert "ran ebsn in " in loud.stderr
    assert f"wrote {tmp_path / 'results.json'}, " in loud.stderr
    assert "scenario file " in command("check", EXAMPLE, "-v").stderr


def test_jobs_come_from_the_option_then_the_environment(tmp_path: Path) -> None:
    def threads(environment: dict[str, str], *options: str) -> int:
        line = ("study", "ebsn-example", "--runs", "2", "--dry-run", "--json", *options)
        return int(json.loads(run_command(*line, env=environment).stdout)["jobs"])

    assert threads({"LASTHOP_JOBS": "3"}) == 3
    assert threads({"LASTHOP_JOBS": "3"}, "--jobs", "5") == 5
    assert threads({"LASTHOP_JOBS": ""}) == threads({}) == os.cpu_count()
    refused = run_command("paper", "ebsn", env={"LASTHOP_JOBS": "many"})
    told = "error: invalid value for 'LASTHOP_JOBS': expected a whole number from 1 to 1000, found 'many'\n"
    assert refused.returncode == 2
    assert refused.stderr.startswith(told)
    typed = run_command("study", "ebsn-example", "--jobs", "0", env={"LASTHOP_JOBS": "2"}).stderr
    assert typed.startswith(
        "error: invalid value for '--jobs': expected a whole number from 1 to 1000, found '0'"
    )


# -- Errors as JSON ----------------------------------------------------------------------------------

NOWHERE = {"file": None, "line": None, "column": None, "option": None}


@pytest.mark.parametrize(
    ("arguments", "kind", "place", "remedy"),
    [
        (["run", "nowhere.toml"], "scenario", {"file": "nowhere.toml"}, None),
        (["run", "ebsn-exmple"], "scenario", {"file": "ebsn-exmple"}, "did you mean the worked scenario"),
        (["run", "WRONG"], "scenario", {"file": "WRONG", "line": 3, "column": 1}, 'did you mean "rate"?'),
        (
            ["check", EXAMPLE, "--set", "radio.rat=1"],
            "scenario",
            {"option": "--set radio.rat=1"},
            "did you mean",
        ),
        (["run", EXAMPLE, "--scheme", "ebns"], "option", {"option": "--scheme"}, 'did you mean "ebsn"?'),
        (["run", EXAMPLE, "--seed", "-1"], "option", {"option": "--seed"}, "expected a whole number from 0"),
        (["run", EXAMPLE, "--bogus"], "option", {"option": "--bogus"}, "lasthop run --help lists the"),
        (["study"], "option", {"option": "SCENARIO"}, "lasthop study --help lists the arguments and options"),
        (["scenarios", "cel"], "option", {}, 'did you mean "cell"?'),
        (["links", "starlnk"], "option", {}, 'did you mean "starlink"?'),
        (["paper", "ebns"], "option", {}, 'did you mean "ebsn"?'),
        (["packet-size", EXAMPLE, "--sizes", "x"], "option", {"option": "--sizes"}, "expected a size"),
        # What a user wrote is no remedy, whatever its words.
        (["run", EXAMPLE, "--scheme", "x; y"], "option", {"option": "--scheme"}, "there are basic, "),
        (
            ["run", EXAMPLE, "--scheme", "did you mean z?"],
            "option",
            {"option": "--scheme"},
            "there are basic",
        ),
        (
            ["check", EXAMPLE, "--set", 'tcp.congestion="expected x"'],
            "scenario",
            {"option": '--set tcp.congestion="expected x"'},
            'expected "aimd", ',
        ),
        (
            ["compare", "last-mile", "--axis", "a; b"],
            "option",
            {"option": "--axis"},
            "expected KEY=VALUE,VALUE...",
        ),
        (
            ["links", "--seed", "a; expected b"],
            "option",
            {"option": "--seed"},
            "expected a whole number from 0 to ",
        ),
        (["links", "x --as: y"], "option", {}, "there are "),
        (
            ["run", EXAMPLE, "--metric", "god_put"],
            "option",
            {"option": "--metric"},
            'did you mean "goodput"?',
        ),
        (
            ["compare", EXAMPLE, "--metric", "god_put"],
            "option",
            {"option": "--metric"},
            'did you mean "goodput"?',
        ),
        (["run", EXAMPLE, "--out", "Makefile"], "file", {"file": "Makefile"}, None),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_errors_are_json_too(
    command: Command,
    tmp_path: Path,
    arguments: list[str],
    kind: str,
    place: dict[str, object],
    remedy: str | None,
) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(
        '[wired]\nrate = "1 Mbps"\nrat = "1 Mbps"\n[transfer]\nsize = "1 KB"\n[radio]\nrate = "1 Mbps"\n'
    )
    arguments = [str(wrong) if each == "WRONG" else each for each in arguments]
    place = {key: str(wrong) if each == "WRONG" else each for key, each in place.items()}
    plain, result = command(*arguments), command(*arguments, "--json")
    assert (plain.returncode, plain.stdout) == (2, "")
    assert (result.returncode, result.stderr) == (2, plain.stderr)
    document = json.loads(result.stdout)
    assert list(document) == ["error"]
    error = document["error"]
    assert list(error) == ["kind", "message", "place", "remedy", "exit_code"]
    assert (error["kind"], error["exit_code"]) == (kind, 2)
    assert error["place"] == NOWHERE | place
    assert error["remedy"] is None if remedy is None else error["remedy"].startswith(remedy)
    assert "found" not in (remedy or "") + (error["remedy"] or "")
    assert error["message"].splitlines()[0] in plain.stderr
    assert "-->" not in error["message"]
