"""The documentation says what the program does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLE, ROOT, Command

import lasthop
from lasthop import Run, Scenario

DOCS = ROOT / "docs"
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{page.name}" for page in DOCS.glob("*.md"))]

MINIMAL = """
[transfer]
size = "100 KB"
[wired]
rate = "10 Mbps"
[radio]
rate = "2 Mbps"
"""

CHOICES = {
    "radio.channel.two-state": ["radio.channel.two-state={good='1 s', bad='1 s'}"],
    "radio.channel.fixed-periods": ["radio.channel.fixed-periods={good='1 s', bad='1 s'}"],
    "radio.channel.iid": ["radio.channel.iid.ber=0"],
    "radio.channel.frame-loss": ["radio.channel.frame-loss.loss=0"],
    "radio.arq.stop-and-wait": ["radio.arq={stop-and-wait={}}"],
}


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of the tables under each heading, without the headers."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.strip("# `[]")
        elif line.startswith("| `"):
            first, *rest = (cell.strip() for cell in line[1:-1].split("|"))
            found.setdefault(heading, []).append([first.strip("`"), *rest])
    return found


def literal(value: Any) -> str:
    """Write a value as the canonical form does."""
    if isinstance(value, float) and value != 0 and value < 1e-3:
        return f"`{value:f}`"
    return f"`{json.dumps(value)}`"


def at(document: dict[str, Any], path: str) -> dict[str, Any]:
    for key in path.split(".") if path else []:
        document = document[key]
    return document


def flat(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table with the keys of its alternatives' parameters, as `backoff.uniform`."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            values |= {f"{key}.{inner}": inside for inner, inside in value.items()}
        else:
            values[key] = value
    return values


def canonical(*overrides: str) -> dict[str, Any]:
    return tomllib.loads(Scenario.parse(MINIMAL, overrides=overrides).to_toml())


REFERENCE = tables((DOCS / "scenarios.md").read_text())


@pytest.mark.parametrize("heading", ["Top level", "transfer", "wired", "radio", *CHOICES])
def test_every_key_is_documented_with_its_default(heading: str) -> None:
    path = "" if heading == "Top level" else heading
    table = flat(at(canonical(*CHOICES.get(heading, [])), path))
    if not path:
        table = {key: table[key] for key in ("title", "limit", "schemes")}
    rows = [row for row in REFERENCE[heading] if row[1] != "alternative"]
    assert [row[0] for row in rows] == list(table)
    for key, default, meaning in rows:
        assert default in (literal(table[key]), "required"), key
        assert meaning.endswith("."), key


def test_every_setting_of_tcp_is_documented_for_every_profile() -> None:
    for column, profile in enumerate(("rfc", "ns2", "ebsn"), start=1):
        table = canonical(f"tcp.profile={profile}")["tcp"]
        assert [row[0] for row in REFERENCE["tcp"]] == list(table)
        for row in REFERENCE["tcp"]:
            assert row[column] == literal(table[row[0]]), (profile, row[0])


def test_every_parameter_of_a_scheme_is_documented() -> None:
    for name, parameters in canonical()["scheme"].items():
        rows = REFERENCE.get(f"scheme.{name}", [])
        assert [row[0] for row in rows] == list(parameters), name
        for row in rows:
            assert row[1] == literal(parameters[row[0]]), (name, row[0])


def test_required_keys_are_required() -> None:
    for table, key in (("transfer", "size"), ("wired", "rate"), ("radio", "rate")):
        assert [row[1] for row in REFERENCE[table] if row[0] == key] == ["required"]
    scenario = Scenario.parse(MINIMAL)
    assert scenario.schemes == ["basic"]


def test_alternatives_exist() -> None:
    for law in ("exponential", "fixed"):
        assert [f"backoff.{law}"] == [
            row[0] for row in REFERENCE["radio.arq.stop-and-wait"] if row[0].endswith(law)
        ]
        canonical(f"radio.arq.stop-and-wait.backoff.{law}=1 s")


def test_every_metric_and_column_is_documented_in_order(runs: dict[str, Run]) -> None:
    documented = tables((DOCS / "metrics.md").read_text())
    assert [row[0] for row in documented["Metrics"]] == list(runs["basic"].metrics)
    events = runs["basic"].events()
    assert [row[0] for row in documented["Events"]] == list(events)
    assert [row[0] for row in documented["Series"]] == list(runs["basic"].series())


def test_every_event_that_occurs_is_documented(runs: dict[str, Run]) -> None:
    text = (DOCS / "metrics.md").read_text()
    for run in runs.values():
        for name in {*run.events()["event"].tolist(), *run.events()["reason"].tolist()} - {""}:
            assert f"`{name}`" in text


def test_the_readme_shows_the_table_that_the_command_prints(command: Command) -> None:
    assert command("run", EXAMPLE).stdout.strip() in (ROOT / "README.md").read_text()


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_the_python_in_the_documentation_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    for block in python_blocks(ROOT / name):
        exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.name)
def test_every_scenario_is_sound(path: Path) -> None:
    assert lasthop.load(path).title


def test_links_lead_somewhere() -> None:
    for page in (ROOT / name for name in PAGES):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), (page.name, target)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_adding_a_scheme_as_described_takes_one_file_and_one_line(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (source,) = re.findall(r"```rust\n(.*?)```", text, re.DOTALL)
    (line,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    repository = tmp_path / "lasthop"
    made = shutil.ignore_patterns(".*", "target", "out", "*.so")
    shutil.copytree(ROOT, repository, symlinks=True, ignore=made)
    schemes = repository / "crates/proto/src/scheme"
    file = schemes / "ebsn_once.rs"
    if file.exists():
        pytest.skip("it has been added")
    file.write_text(source)
    registry = (schemes / "mod.rs").read_text()
    (schemes / "mod.rs").write_text(
        re.sub(r"(register! \{.*?)(\n\})", rf"\1\n{line.rstrip()}\2", registry, flags=re.DOTALL)
    )
    target = {"CARGO_TARGET_DIR": str(ROOT / "target" / "contributing"), "RUSTFLAGS": "-D warnings"}
    command = ["cargo", "check", "--quiet", "-p", "lasthop-proto"]
    result = subprocess.run(command, cwd=repository, env=os.environ | target, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
