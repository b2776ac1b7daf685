"""The source distribution, and what the package's metadata promises."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and return the directory that it unpacks to."""
    scripts = str(Path(sys.executable).parent)
    maturin = shutil.which("maturin", path=scripts) or shutil.which("maturin")
    missing = [name for name in ("cargo", "git") if shutil.which(name) is None]
    missing += [] if maturin else ["maturin"]
    missing += [] if (ROOT / ".git").exists() else ["a git checkout"]
    if missing:
        pytest.skip(f"building a source distribution needs {', '.join(missing)}")
    directory = tmp_path_factory.mktemp("sdist")
    line = [str(maturin), "sdist", "--out", str(directory)]
    built = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (archive,) = directory.glob("lasthop-*.tar.gz")
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
    line = ["git", "ls-files", "LICENSE", "Cargo.lock", "pyproject.toml", "python/lasthop"]
    tracked = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    assert len(tracked) > 50
    assert [name for name in tracked if not (sdist / name).exists()] == []


def test_every_extra_that_is_named_exists() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = {*metadata["project"]["optional-dependencies"]}
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "pyproject.toml"]
    sources += [path for path in ROOT.glob("python/**/*.py*") if path.suffix in (".py", ".pyi")]
    named = {
        (name, path.relative_to(ROOT).as_posix())
        for path in sources
        for names in re.findall(r"\blasthop\[([\w, -]+)\]", path.read_text(encoding="utf-8"))
        for name in re.split(r", *", names)
    }
    assert {name for name, _ in named} >= {"parquet"}
    assert [each for each in named if each[0] not in extras] == []
