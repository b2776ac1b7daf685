"""The rules of deny.toml, checked from what cargo knows offline; which Python packages are used."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def crates() -> list[dict[str, Any]]:
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--all-features"]
    command += [f"--filter-platform={target}" for target in RULES["graph"]["targets"]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages: list[dict[str, Any]] = json.loads(done.stdout)["packages"]
    return [package for package in packages if package["source"] is not None]


def features(*packages: str) -> dict[str, str]:
    """Return the features with which each crate is compiled for packages."""
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    command = ["cargo", "tree", "--locked", "--offline", "--prefix=none", "--format={p}|{f}", *packages]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (line.removesuffix(" (*)").partition("|") for line in done.stdout.splitlines())
    return {package: found for package, _, found in lines if package}


def test_the_extension_shares_its_parts_with_the_tests() -> None:
    """With other features, a crate and all that stand on it would be compiled once more for the extension."""
    ours, tests = (
        features("--package=lasthop-py", "--edges=normal"),
        features("--workspace", "--edges=normal,dev"),
    )
    assert {name: (found, tests[name]) for name, found in ours.items() if found != tests[name]} == {}


def permitted(licence: str, allowed: set[str]) -> bool:
    """Tell whether a licence expression is met: each part of its ANDs by one of the part's ORs."""
    parts = licence.replace("/", " OR ").split(" AND ")
    return all(any(name.strip("() ") in allowed for name in part.split(" OR ")) for part in parts)


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("MIT OR GPL-3.0", True),
        ("MIT/GPL-3.0", True),
        ("(MIT OR GPL-3.0) AND GPL-2.0", False),
        ("(MIT OR Apache-2.0) AND Zlib", True),
    ],
)
def test_a_licence_expression_is_read_by_its_operators(licence: str, expected: bool) -> None:
    assert permitted(licence, {"MIT", "Apache-2.0", "Zlib"}) is expected


def test_every_crate_has_a_licence_that_deny_toml_allows(crates: list[dict[str, Any]]) -> None:
    allowed = set(RULES["licenses"]["allow"])
    assert [c["name"] for c in crates if not permitted(c["license"] or "none", allowed)] == []


def test_every_crate_comes_from_the_registry(crates: list[dict[str, Any]]) -> None:
    assert [c["name"] for c in crates if not c["source"].startswith("registry+")] == []


def test_only_the_crates_that_deny_toml_names_come_in_two_versions(crates: list[dict[str, Any]]) -> None:
    versions = defaultdict(set)
    for crate in crates:
        versions[crate["name"]].add(crate["version"])
    skipped = {entry["crate"].partition("@")[0] for entry in RULES["bans"]["skip"]}
    assert {name for name, several in versions.items() if len(several) > 1} == skipped


def test_every_crate_uses_what_it_depends_on() -> None:
    unused = []
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        tables = tomllib.loads(manifest.read_text(encoding="utf-8"))
        own = [tables, *tables.get("target", {}).values()]
        names = {name for table in own for name in table.get("dependencies", {})}
        files = (path.read_text(encoding="utf-8") for path in (manifest.parent / "src").rglob("*.rs"))
        # Without comments, and without the tests at the end of a file.
        code = "".join(re.sub(r"//[^\n]*", "", text.split("#[cfg(test)]\nmod tests")[0]) for text in files)
        words = set(re.findall(r"\w+", code))
        unused += [(manifest.parent.name, name) for name in names if name.replace("-", "_") not in words]
    # Its feature gives vectors the operations that argmin asks for.
    assert unused == [("fit", "argmin-math")]


def test_python_imports_what_the_project_declares_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[\[>=;<! ]", each)[0].lower() for each in requirements} - {"lasthop"}

    required, optional = (
        names(project["dependencies"]),
        names([each for extra in extras.values() for each in extra]),
    )
    imported = set()
    for file in (ROOT / "python" / "lasthop").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                imported.add(node.module.partition(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"lasthop"}
    distributions = packages_distributions()
    used = {name.lower() for module in foreign for name in distributions.get(module, [module])}
    # anywidget is made of traitlets; only type checkers, which know it, see typing_extensions.
    assert used - required - optional == {"traitlets", "typing_extensions"}
    assert required <= used
