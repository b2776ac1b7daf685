"""The documentation says what the program does."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLE, ROOT, Command

import lasthop
from lasthop import Run, Scenario

DOCS = ROOT / "docs"
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md"))]

SCENARIO = """
[transfer]
size = "100 KB"
[wired]
rate = "10 Mbps"
[radio]
rate = "2 Mbps"
"""

ENDS = {"from": "fixed", "to": "mobile"}
TRAFFIC = ENDS | {"packet_size": "500 B", "law": {"constant": {"rate": "1 kbps"}}}
APPLICATION = ENDS | {
    "request": {"constant": "1 KB"},
    "response": {"constant": "1 KB"},
    "think": {"constant": "1 s"},
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


def canonical(*overrides: str) -> dict[str, Any]:
    return tomllib.loads(Scenario.parse(SCENARIO, overrides=overrides).to_toml())


def test_the_default_profile_is_that_of_a_linux_server() -> None:
    linux = canonical()["tcp"]
    assert linux == canonical("tcp.profile=linux")["tcp"]
    for profile, congestion in [("linux-bbr", "bbr"), ("linux-bbr3", "bbr3")]:
        other = canonical(f"tcp.profile={profile}")["tcp"]
        assert other == linux | {"profile": profile, "congestion": congestion}


def test_every_metric_and_column_is_documented_in_order(runs: dict[str, Run]) -> None:
    documented = tables((DOCS / "reference/metrics.md").read_text())
    names = [row[0] for row in documented["Metrics"]]
    assert names == list(runs["basic"].metrics)
    events = runs["basic"].events()
    assert [row[0] for row in documented["Events"]] == list(events)
    assert [row[0] for row in documented["Series"]] == list(runs["basic"].series())
    delays = lasthop.build(tomllib.loads(SCENARIO) | {"traffic": {"x": TRAFFIC}}).run(delays=True).delays()
    assert [name for row in documented["Delays"] for name in row[0].replace("`", "").split(", ")] == list(
        delays
    )
    split = lasthop.load(ROOT / "scenarios/split-wlan.toml", ["transfer.size=5 KB"])
    relay = split.run("metp", series=True).series(part=1)
    assert list(relay) == [*runs["basic"].series(), "held_bytes"]
    run = lasthop.build(tomllib.loads(SCENARIO) | {"traffic": {"x": TRAFFIC}}).run()
    assert names[: names.index("aqm_drops") + 1] == list(run.connections["transfer"])
    assert [row[0] for row in documented["Other traffic"]] == list(run.traffic["x"])
    run = lasthop.build(tomllib.loads(SCENARIO) | {"application": {"x": APPLICATION}}).run()
    messages = [row[0] for row in documented["Applications"]]
    assert messages == list(run.applications["x"])
    for heading, kind in (("Pages", "page"), ("Videos", "video")):
        run = lasthop.build(tomllib.loads(SCENARIO) | {"application": {"x": ENDS | {"kind": kind}}}).run()
        assert messages + [row[0] for row in documented[heading]] == list(run.applications["x"])


def test_counters_are_documented_in_order() -> None:
    documented = [
        row[0] for row in tables((DOCS / "reference/metrics.md").read_text())["Counters of the schemes"]
    ]
    schemes = list(dict.fromkeys(name.split(".")[0] for name in documented))
    found = []
    for scheme in schemes:
        run = lasthop.load(EXAMPLE, ["tcp.flavour=reno", "transfer.size=1 KB"]).run(scheme)
        found += [name for name in run.metrics if "." in name]
        assert {name for agent in run.counters.values() for name in agent} == {
            name.split(".")[1] for name in found if name.startswith(f"{scheme}.")
        }
    assert documented == found


def test_every_event_that_occurs_is_documented(runs: dict[str, Run]) -> None:
    text = (DOCS / "reference/metrics.md").read_text()
    for run in runs.values():
        agents = run.scheme.split(" + ")
        for name in {*run.events()["event"].tolist(), *run.events()["reason"].tolist()} - {"", *agents}:
            assert f"`{name}`" in text


def test_the_readme_shows_the_table_that_the_command_prints(command: Command) -> None:
    assert command("run", EXAMPLE).stdout.strip() in (ROOT / "README.md").read_text()


def test_json_examples_equal_the_output_of_the_command(command: Command) -> None:
    error, text = re.findall(r"```json\n(.*?)```", (DOCS / "reference/json.md").read_text(), re.DOTALL)
    refused = json.loads(command("check", EXAMPLE, "--set", "radio.rat=1", "--json").stdout)
    assert list(refused["error"]) == list(json.loads(error)["error"])
    assert list(refused["error"]["place"]) == list(json.loads(error)["error"]["place"])
    shown = json.loads(text)
    printed = json.loads(command("run", EXAMPLE, "--scheme", "ebsn", "--json").stdout)
    (shown_result,), (result,) = shown.pop("results"), printed.pop("results")
    # Each new key of a scenario makes other hashes.
    assert len(shown["scenario"].pop("hash")) == len(printed["scenario"].pop("hash"))
    assert shown == printed
    assert list(shown_result) == list(result)
    for metrics, found in (
        (shown_result["metrics"], result["metrics"]),
        (shown_result["connections"]["transfer"], result["connections"]["transfer"]),
    ):
        assert metrics["throughput_bps"] == round(found["throughput_bps"], 1)


def python_blocks(path: Path) -> list[str]:
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", path.read_text(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in blocks]


# The code of reports is tested where it is repeated.
@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("docs/reports/")])
def test_the_python_in_the_documentation_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    for block in python_blocks(ROOT / name):
        exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.name)
def test_every_scenario_is_valid(path: Path) -> None:
    assert lasthop.load(path).title


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_have_targets() -> None:
    for page in (ROOT / name for name in PAGES):
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", page.read_text()):
            if "://" not in target:
                found = page.parent / target if target else page
                assert found.exists(), (page.name, target)
                assert not anchor or anchor in anchors(found), (page.name, target, anchor)


def test_files_that_pages_name_exist() -> None:
    place = r"`((?:crates|python|scripts|benches|tests|docs|scenarios|notebooks)/[\w./-]+)`"
    for name in PAGES:
        # It names files that are to be written.
        if name != "CONTRIBUTING.md":
            missing = [
                path for path in re.findall(place, (ROOT / name).read_text()) if not (ROOT / path).exists()
            ]
            assert missing == [], name


def test_the_architecture_names_every_room() -> None:
    rooms = re.findall(r"^ {4}.*", (DOCS / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    named = set(re.findall(r"(\w+)/", "\n".join(rooms)))
    crates = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    packages = {path.parent.name for path in (ROOT / "python/lasthop").glob("*/__init__.py")}
    assert len(crates) > 10
    assert len(packages) > 10
    assert sorted((crates | packages) - named) == []


def test_pages_name_every_crate_with_unsafe_code() -> None:
    manifests = {path.parent.name: path.read_text() for path in (ROOT / "crates").glob("*/Cargo.toml")}
    unsafe = {crate for crate, text in manifests.items() if 'unsafe_code = "deny"' in text}
    # All others have the lints of the workspace, which forbid it.
    assert all(
        "[lints]\nworkspace = true" in text for crate, text in manifests.items() if crate not in unsafe
    )
    for name in ("SECURITY.md", "CONTRIBUTING.md"):
        (said,) = (each for each in (ROOT / name).read_text().split("\n- ") if "`unsafe`" in each)
        assert set(re.findall(r"`crates/(\w+)", said)) == unsafe, name


def test_pages_written_by_hand_stay_short() -> None:
    generated = ("docs/reference/", "docs/reports/")
    texts = {name: (ROOT / name).read_text() for name in PAGES if not name.startswith(generated)}
    words = {name: len(text.split()) for name, text in texts.items() if name.startswith("docs/")}
    assert 20_000 < sum(words.values()) <= 40_000, sorted(words.items(), key=lambda each: -each[1])
    assert len(texts["README.md"].splitlines()) <= 130
