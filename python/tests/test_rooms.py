"""Rooms know only rooms below them: crates, the rooms of a crate, and the packages of lasthop."""

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
CRATES = ROOT / "crates"

NAMES = sorted(path.parent.name for path in CRATES.glob("*/src/"))

Arrows: TypeAlias = dict[str, set[str]]


def circle(arrows: Arrows) -> list[str]:
    """Return a circle of arrows as its rooms, the first again at the end; empty if there is none."""
    done: set[str] = set()

    def visit(room: str, way: list[str]) -> list[str]:
        if room in way:
            return [*way[way.index(room) :], room]
        if room in done:
            return []
        for below in sorted(arrows.get(room, ())):
            if found := visit(below, [*way, room]):
                return found
        done.add(room)
        return []

    return next((found for room in sorted(arrows) if (found := visit(room, []))), [])


def crates() -> Arrows:
    """Return the crates with those that they depend on, apart from their tests."""
    arrows: Arrows = {}
    for manifest in CRATES.glob("*/Cargo.toml"):
        tables = tomllib.loads(manifest.read_text())
        own = [tables, *tables.get("target", {}).values()]
        names = (name for table in own for name in table.get("dependencies", {}))
        arrows[manifest.parent.name] = {
            name.removeprefix("lasthop-") for name in names if name.startswith("lasthop-")
        }
    return arrows


def below(arrows: Arrows, room: str) -> set[str]:
    """Return all rooms that `room` depends on, at any distance."""
    found: set[str] = set()
    rest = [room]
    while rest:
        new = arrows.get(rest.pop(), set()) - found
        found |= new
        rest += new
    return found


def code(text: str) -> str:
    """Return Rust without comments and without the tests at the end of a file."""
    return re.sub(r"//[^\n]*", "", text.split("#[cfg(test)]\nmod tests")[0])


def paths(text: str) -> Iterator[str]:
    """Yield the paths of items in Rust that begin with `crate` or `super`, those in braces one by one."""
    for head, braces in re.findall(r"\b((?:crate|super)(?:::\w+)*)(?:::\{((?:[^{}]|\{[^{}]*\})*)\})?", text):
        names = [name.strip(" :\n") for name in re.sub(r"\{[^{}]*\}", "", braces).split(",")]
        yield from (f"{head}::{name}" if name else head for name in names)


def exported(crate: str) -> dict[str, str]:
    """Return the names that a crate exports at its top, each with the module that it comes from."""
    uses = re.findall(r"\bpub(?:\(crate\))? use ([^;]+);", code((CRATES / crate / "src/lib.rs").read_text()))
    items = [path.split("::") for use in uses for path in paths(f"crate::{use}")]
    return {item[-1]: item[1] for item in items}


def rooms(crate: str) -> Arrows:
    """Return the modules at the top of a crate with those that they use, also by exported names."""
    source = CRATES / crate / "src"
    origins = exported(crate)
    arrows: Arrows = {}
    for file in source.rglob("*.rs"):
        if file.name in ("lib.rs", "tests.rs"):
            continue
        module = list(file.relative_to(source).with_suffix("").parts)
        module = module[:-1] if module[-1] == "mod" else module
        used = arrows.setdefault(module[0], set())
        for path in paths(code(file.read_text())):
            keys = path.split("::")
            ups = sum(1 for key in keys if key == "super")
            absolute = keys[1:] if keys[0] == "crate" else module[: len(module) - ups] + keys[ups:]
            used.update(origins.get(key, key) for key in absolute[:1])
    return {room: {other for other in used - {room} if other in arrows} for room, used in arrows.items()}


def test_crates_depend_on_crates_below() -> None:
    assert circle(crates()) == []


@pytest.mark.parametrize(
    ("crate", "strangers"),
    [
        ("scenario", {"sim", "experiment", "predict", "live", "study"}),
        ("predict", {"sim", "experiment"}),
        ("link", {"sim", "channel"}),
        ("sim", {"scenario"}),
        ("proto", {"channel"}),
        ("channel", {"proto"}),
    ],
)
def test_a_crate_does_not_know_its_strangers(crate: str, strangers: set[str]) -> None:
    assert below(crates(), crate) & strangers == set()


@pytest.mark.parametrize("crate", NAMES)
def test_the_rooms_of_a_crate_have_no_circle(crate: str) -> None:
    assert circle(rooms(crate)) == []


def test_the_arrows_are_found() -> None:
    found = rooms("scenario")
    assert found["file"] >= {"document", "error", "network", "schema"}
    assert found["document"] >= {"diagnostics", "error", "presets", "tree"}
    assert found["network"] >= {"diagnostics", "error", "schema"}
    assert rooms("experiment")["run"] >= {"assemble", "measure"}
    assert exported("base")["Time"] == "time"
    assert "time" in rooms("base")["steps"]
    assert "proto" in below(crates(), "study")


def test_a_circle_is_found() -> None:
    arrows = {"file": {"schema", "network"}, "network": {"schema"}, "schema": {"words"}}
    assert circle(arrows) == []
    found = circle(arrows | {"schema": {"file"}})
    assert found[0] == found[-1]
    assert all(onward in (arrows | {"schema": {"file"}})[room] for room, onward in pairwise(found))
    assert list(paths("use crate::{a::{b, c}, d}; use super::e;")) == ["crate::a", "crate::d", "super::e"]


@pytest.mark.parametrize("crate", NAMES)
def test_the_documentation_of_a_crate_has_a_diagram(crate: str) -> None:
    lines = (CRATES / crate / "src/lib.rs").read_text().splitlines()
    head = list(takewhile(lambda line: line.startswith("//!"), lines))
    assert head.index("//! ```text") >= 2
