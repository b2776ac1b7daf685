"""Packages of the library know only those below them, and modules form no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_rooms import Arrows, circle

import lasthop

PACKAGE = Path(lasthop.__file__).parent

FLOORS = (
    "_lasthop",
    "python_scheme",
    "core",
    "virtual",
    "results",
    "engine",
    "study",
    "race",
    "measurement",
    "fitting",
    "measuring",
    "plots",
    "advice",
    "papers",
    "show",
    "web",
)
"""From the ground up. The package `lasthop` itself and the command line stand above all of them."""


def imported(source: str) -> Iterator[str]:
    """Yield what a module imports, also inside functions and for type checkers alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def upward(source: str, floor: str) -> list[str]:
    """Return what a module on a floor imports from above."""
    below = FLOORS[: FLOORS.index(floor) + 1]
    names = [name.split(".") for name in imported(source)]
    return [".".join(name) for name in names if name[0] == "lasthop" and not {*name[1:2]} & {*below}]


def modules() -> Arrows:
    """Return the modules of the library with those that they import, also for type checkers alone."""
    files = {}
    for file in PACKAGE.rglob("*.py"):
        keys = ("lasthop", *file.relative_to(PACKAGE).with_suffix("").parts)
        files[".".join(keys[:-1] if keys[-1] == "__init__" else keys)] = file
    # A name that is no module is one in the module before the dot.
    arrows = {
        module: {name if name in files else name.rpartition(".")[0] for name in imported(file.read_text())}
        for module, file in files.items()
    }
    return {
        module: {each for each in found if each in files} - {module, "lasthop"}
        for module, found in arrows.items()
    }


def test_modules_form_no_circle() -> None:
    found = modules()
    assert found["lasthop.fitting.doubt"] >= {"lasthop.fitting.link", "lasthop.measurement"}
    assert "lasthop.show.study_report" in found["lasthop.show.study_page"]
    assert circle(found) == []


def test_packages_import_only_what_is_below_them() -> None:
    arrows = []
    for floor in FLOORS[1:]:
        files = [*(PACKAGE / floor).rglob("*.py")] or [PACKAGE / f"{floor}.py"]
        for file in files:
            found = upward(file.read_text(encoding="utf-8"), floor)
            arrows += [f"{file.relative_to(PACKAGE)} imports {name}" for name in found]
    assert arrows == []


def test_every_package_has_a_floor() -> None:
    names = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    names |= {path.stem for path in PACKAGE.glob("*.py")}
    assert names == {*FLOORS[1:], "cli", "__init__", "__main__"}


@pytest.mark.parametrize(
    "line",
    [
        "from lasthop import Run",
        "import lasthop.plots",
        "from lasthop.cli.app import app",
        "def f():\n    from lasthop import plots",
        "if TYPE_CHECKING:\n    from lasthop.race import Race",
    ],
)
def test_an_arrow_that_runs_up_is_found(line: str) -> None:
    assert len(upward(line, "study")) == 1
    assert upward("from lasthop import plots, study\nimport numpy", "plots") == []
