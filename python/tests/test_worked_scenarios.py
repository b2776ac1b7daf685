"""The scenarios that come with the package: by name on the command line and in Python."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import ROOT, Command, run_command

import lasthop
from lasthop import ScenarioError
from lasthop._lasthop import SCENARIOS

FILES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "scenarios").glob("*.toml"))}


def test_the_package_has_the_scenarios_of_the_repository() -> None:
    assert SCENARIOS == FILES, "the compiled core is older than scenarios/: run make"
    assert list(SCENARIOS) == sorted(SCENARIOS)


def test_a_scenario_is_found_by_its_name_in_any_directory(command: Command, tmp_path: Path) -> None:
    by_name = run_command("run", "ebsn-example", "--json", cwd=tmp_path)
    assert (by_name.returncode, by_name.stderr) == (0, "")
    ours, theirs = (
        json.loads(text)
        for text in (by_name.stdout, command("run", "scenarios/ebsn-example.toml", "--json").stdout)
    )
    assert ours["scenario"].pop("file") == "ebsn-example"
    assert theirs["scenario"].pop("file") == "scenarios/ebsn-example.toml"
    assert ours == theirs


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "cell"],
        ["study", "two-flows", "--runs", "2", "--set", "limit=30 s"],
        ["packet-size", "ebsn-example", "--runs", "2", "--sizes", "128 B, 256 B"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_finds_scenarios_by_name(tmp_path: Path, arguments: list[str]) -> None:
    result = run_command(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_file_precedes_the_worked_scenario_of_its_name(tmp_path: Path) -> None:
    own = FILES["ebsn-example"].replace('title = "EBSN', 'title = "My EBSN')
    (tmp_path / "ebsn-example").write_text(own, encoding="utf-8")
    result = run_command("run", "ebsn-example", "--scheme", "basic", cwd=tmp_path)
    assert result.stdout.startswith("My EBSN")
    told = "warning: ebsn-example: this file is used, and not the worked scenario of that name\n"
    assert result.stderr == told
    (tmp_path / "cell").mkdir()
    assert run_command("check", "cell", cwd=tmp_path).returncode == 0


def test_scenarios_are_listed_with_a_line_each(command: Command) -> None:
    lines = command("scenarios").stdout.splitlines()[2:]
    assert [tuple(line.strip() for line in line.split("   ", 1)) for line in lines] == [
        *lasthop.scenarios().items()
    ]
    listed = json.loads(command("scenarios", "--json").stdout)["scenarios"]
    assert {each["name"]: each["title"] for each in listed} == lasthop.scenarios()


@pytest.mark.parametrize("name", FILES)
def test_a_printed_scenario_is_the_file(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # It must need no other file.
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "mine.toml"
    copy.write_text(command("scenarios", name).stdout, encoding="utf-8")
    assert copy.read_text(encoding="utf-8") == FILES[name]
    assert lasthop.load(copy).hash == lasthop.load(name).hash
    assert json.loads(command("scenarios", name, "--json").stdout)["toml"] == FILES[name]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["scenarios", "ebsn-exmple"], 'no worked scenario "ebsn-exmple"; did you mean "ebsn-example"?'),
        (["run", "ebsn-exmple"], 'did you mean the worked scenario "ebsn-example"?'),
        (["run", "ebsn-example.toml"], 'did you mean the worked scenario "ebsn-example"?'),
        (["run", "wind"], 'there is no worked scenario "wind"; there are '),
        (["run", "wind.toml"], "No such file"),
        (["run", "nofile.toml"], "No such file"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_misspelt_names_are_suggested(tmp_path: Path, arguments: list[str], told: str) -> None:
    result = run_command(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr
    assert told != "No such file" or "worked" not in result.stderr


def test_python_finds_scenarios_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert lasthop.load("cell").file == "cell"
    assert lasthop.run("ebsn-example", "ebsn").metrics["timeouts"] == 0
    with pytest.raises(
        ScenarioError, match=f'(?s)worked scenario "cell"\\?\n --> sub{os.sep}cel.toml'
    ) as caught:
        lasthop.load(Path("sub", "cel.toml"))
    assert caught.value.message.endswith('did you mean the worked scenario "cell"?')
