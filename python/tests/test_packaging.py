"""The wheel and the source distribution, their metadata, and the script that releases them."""

from __future__ import annotations

import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT, Command

import lasthop

CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
VERSION = CARGO["workspace"]["package"]["version"]


def built(kind: str, directory: Path) -> Path:
    """Build the "wheel" or the "sdist" into a directory, and return it."""
    scripts = str(Path(sys.executable).parent)
    maturin = shutil.which("maturin", path=scripts) or shutil.which("maturin")
    missing = [name for name in ("cargo", "git") if shutil.which(name) is None]
    missing += [] if maturin else ["maturin"]
    missing += [] if (ROOT / ".git").exists() else ["a git checkout"]
    if missing:
        pytest.skip(f"building packages needs {', '.join(missing)}")
    line = [str(maturin), {"wheel": "build", "sdist": "sdist"}[kind], "--out", str(directory)]
    made = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (package,) = directory.glob("lasthop-*")
    return package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as the tests' extension is built: quick, since its crates are there already."""
    return built("wheel", tmp_path_factory.mktemp("wheel"))


PACKAGED = [
    "LICENSE",
    "README.md",
    "Cargo.lock",
    "pyproject.toml",
    "python/lasthop",
    "crates/py",
    "scenarios",
]
"""What a build of the source distribution reads beside the other crates."""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and return the directory that it unpacks to."""
    directory = tmp_path_factory.mktemp("sdist")
    archive = built("sdist", directory)
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="data")
    return directory / archive.name.removesuffix(".tar.gz")


def test_the_sdist_has_the_workspace_that_its_lock_file_describes(sdist: Path) -> None:
    # An installation builds with --locked, which refuses a workspace that lacks a member of the lock file.
    line = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    found = subprocess.run(line, cwd=sdist, capture_output=True, text=True, check=False)
    if "failed to download" in found.stderr:
        pytest.skip("the crates that Lasthop depends on were never downloaded here")
    assert found.returncode == 0, found.stderr


def test_the_sdist_has_every_tracked_file_of_the_package(sdist: Path) -> None:
    line = ["git", "ls-files", *PACKAGED]
    tracked = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    assert len(tracked) > 50
    assert [name for name in tracked if not (sdist / name).exists()] == []


def test_the_wheel_runs_without_the_clone_and_leaves_nothing(
    wheel: Path, command: Command, tmp_path: Path
) -> None:
    home, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    venv.create(home)
    python = home / Path(sys.executable).relative_to(sys.prefix)
    (packages,) = home.glob("**/site-packages")

    def run(*line: str | Path) -> str:
        outside = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        ran = subprocess.run([*line], cwd=empty, env=outside, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    before = {*home.rglob("*")}
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    installed = python.parent / "lasthop"
    # The dependencies are those of these tests. pip must not find the Lasthop there.
    dependencies = packages / "dependencies.pth"
    dependencies.write_text(f"{Path(pytest.__file__).parents[1]}\n")
    where = run(python, "-c", "import lasthop; print(lasthop.__file__)").strip()
    assert Path(where).is_relative_to(home)
    assert run(installed, "--version") == f"lasthop {VERSION}\n"
    assert run(installed, "run", "ebsn-example", "--json") == command("run", "ebsn-example", "--json").stdout
    dependencies.unlink()
    run(*pip, "uninstall", "--quiet", "--yes", "lasthop")
    assert {*home.rglob("*")} - before == set()


def test_the_metadata_describe_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        found: Message = email.message_from_string(archive.read(name).decode())
        licence = archive.read(name.replace("METADATA", "licenses/LICENSE")).decode()
    assert (found["Name"], found["Version"]) == ("lasthop", VERSION)
    assert (found["License-Expression"], licence) == ("MIT", (ROOT / "LICENSE").read_text())
    assert found["Author"] == "The Lasthop developers"
    assert found["Description-Content-Type"].startswith("text/markdown")
    assert str(found.get_payload()).rstrip() == (ROOT / "README.md").read_text(encoding="utf-8").rstrip()
    assert len(found.get_all("Classifier", [])) > 8
    # A URL would need a host, and the project names none.
    assert found.get_all("Project-URL") is None


def test_the_version_is_in_one_place() -> None:
    assert lasthop.__version__ == VERSION
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    for manifest in [*ROOT.glob("crates/*/Cargo.toml"), ROOT / "benches" / "Cargo.toml"]:
        package = tomllib.loads(manifest.read_text())["package"]
        assert package["version"] == {"workspace": True}, manifest
    assert re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == VERSION  # type: ignore[index]


def test_the_minimum_version_of_rust_compiles_the_workspace() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    least = CARGO["workspace"]["package"]["rust-version"]

    def version(*toolchain: str) -> str:
        line = ["cargo", *toolchain, "--version"]
        return subprocess.run(line, capture_output=True, text=True, check=False).stdout

    if f" {least}." in version():
        # What these tests run was compiled by it.
        return
    if f" {least}." not in version(f"+{least}"):
        pytest.skip(f"there is no Rust {least}: rustup toolchain install {least}")
    # With a directory of its own, so that the other compiler's crates stay.
    line = ["cargo", f"+{least}", "check", "--quiet", "--workspace", "--all-targets"]
    done = subprocess.run(
        [*line, "--target-dir", "target/minimum"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """Load the release script as a module."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("tags", "needs", "false"),
    [
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "manylinux_2_17_x86_64", ""),
        ("manylinux2014_x86_64", "manylinux_2_34_x86_64", "manylinux2014_x86_64"),
        ("manylinux_2_17_x86_64.manylinux_2_34_x86_64", "manylinux_2_34_x86_64", "manylinux_2_17_x86_64"),
        ("manylinux_2_28_x86_64", "linux_x86_64", "manylinux_2_28_x86_64"),
        ("linux_x86_64", "linux_x86_64", ""),
        ("win_amd64", "", ""),
    ],
)
def test_a_release_refuses_false_tags(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, tags: str, needs: str, false: str
) -> None:
    monkeypatch.setattr(release.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(release, "output", lambda *line: f'{{"overall_tag": "{needs}"}}')
    wheel = Path(f"lasthop-{VERSION}-cp311-abi3-{tags}.whl")
    if not false:
        release.check_tags(wheel)
        return
    with pytest.raises(release.UnfitError, match=f"tags are wrong: {false}$"):
        release.check_tags(wheel)


def test_a_release_refuses_strange_files(release: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / f"lasthop-{VERSION}-py3-none-any.whl"
    for name, fits in (("lasthop/run.py", True), ("tests/test_run.py", False)):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(release.MODULE, "")
            archive.writestr(name, "")
        if fits:
            release.check_contents(wheel, VERSION)
        else:
            with pytest.raises(release.UnfitError, match=name):
                release.check_contents(wheel, VERSION)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("lasthop/run.py", "")
    with pytest.raises(release.UnfitError, match="lacks lasthop/web/simulator"):
        release.check_contents(wheel, VERSION)


def test_every_extra_that_is_named_exists() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = {*metadata["project"]["optional-dependencies"]}
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "pyproject.toml"]
    sources += [path for path in ROOT.glob("python/**/*.py*") if path.suffix in (".py", ".pyi")]
    named = {
        (name, path.relative_to(ROOT).as_posix())
        for path in sources
        for names in re.findall(r"\blasthop\[([\w, -]+)\]", path.read_text(encoding="utf-8"))
        for name in re.split(r", *", names)
    }
    assert {name for name, _ in named} >= {"parquet"}
    assert [each for each in named if each[0] not in extras] == []
