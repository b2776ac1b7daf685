"""Build the wheel and the source distribution, check each in a fresh environment, and print a summary.

`make release` runs this script. Both packages are built from the current commit into an empty directory. Each
is installed with its dependencies into a new virtual environment outside the clone, must give the same result
for a worked scenario as the clone, and must leave no files when it is uninstalled.

With ziglang (the extra `release`), a Linux wheel is linked for manylinux2014 on any machine; without it, for
the local glibc. auditwheel checks the versioned symbols of the wheel; an incompatible tag is an error.

With ``--pgo``, the wheel is compiled twice, the second time by a profile of `benches/training.py`, and its
runs take 16 % less time. zig cannot link the first one, so the wheel is linked for the local glibc.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sys.executable).parent
COMMAND = SCRIPTS / "lasthop"
# Files that maturin adds to a wheel, by the package name.
DATA = ROOT / "lasthop._lasthop.data"
MAX_BYTES = 10_000_000
# The simulator for pages.
MODULE = "lasthop/web/simulator.wasm.gz"
EXAMPLE = ("run", "ebsn-example", "--json")
COMPLETIONS = {
    "bash": "bash-completion/completions/lasthop",
    "zsh": "zsh/site-functions/_lasthop",
    "fish": "fish/vendor_completions.d/lasthop.fish",
}


class UnfitError(Exception):
    """The release cannot be made; the message has the reason."""


def main() -> None:
    """Build, check and describe the release."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="by default dist")
    parser.add_argument("--allow-dirty", action="store_true", help="also with uncommitted changes")
    parser.add_argument("--pgo", action="store_true", help="optimise the wheel by a profile of training runs")
    options = parser.parse_args()
    try:
        version = checked_version(allow_dirty=options.allow_dirty)
        shutil.rmtree(options.out, ignore_errors=True)
        options.out.mkdir(parents=True)
        wheel = build_wheel(options.out, pgo=options.pgo)
        sdist = build_sdist(options.out)
        for package in (wheel, sdist):
            check_contents(package, version)
        check_tags(wheel)
        for package in (wheel, sdist):
            check_installation(package, wheel, version)
    except UnfitError as error:
        sys.exit(f"error: {error}")
    describe([wheel, sdist])


def step(text: str) -> None:
    """Print the next step."""
    print(f"-- {text}", flush=True)


def output(*line: str | Path, **options: str | Path | dict[str, str]) -> str:
    """Run a program and return its standard output.

    Raises
    ------
    UnfitError
        If it fails, with its output.
    """
    ran = subprocess.run([*map(str, line)], capture_output=True, text=True, check=False, **options)
    if ran.returncode != 0:
        raise UnfitError(f"{' '.join(map(str, line))}\n{ran.stdout}{ran.stderr}".rstrip())
    return ran.stdout


# -- The version -------------------------------------------------------------------------------------


def checked_version(*, allow_dirty: bool) -> str:
    """Return the version of Cargo.toml, if this commit can be released under it.

    Raises
    ------
    UnfitError
        If it cannot.
    """
    with (ROOT / "Cargo.toml").open("rb") as file:
        version = tomllib.load(file)["workspace"]["package"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    if latest is None or latest[1] != version:
        raise UnfitError(f"Cargo.toml has version {version}, and CHANGELOG.md does not begin with it")
    printed = output(COMMAND, "--version").split()[-1]
    if printed != version:
        raise UnfitError(f"the command in {SCRIPTS} is version {printed}, not {version}; run make")
    changed = output("git", "status", "--porcelain", cwd=ROOT).strip()
    if changed and not allow_dirty:
        raise UnfitError(f"the tree has changes that are not committed:\n{changed}")
    tagged = output("git", "tag", "--list", f"v{version}", cwd=ROOT).strip()
    if tagged and output("git", "tag", "--points-at", "HEAD", "--list", tagged, cwd=ROOT).strip() != tagged:
        raise UnfitError(f"{tagged} is another commit; a new release needs a new version")
    return version


# -- Building ----------------------------------------------------------------------------------------


def build_wheel(out: Path, *, pgo: bool) -> Path:
    """Build the wheel, with the manual page and the completion scripts."""
    line: list[str | Path] = [SCRIPTS / "maturin", "build", "--release", "--out", out]
    # maturin runs zig by way of this interpreter.
    found_first = [str(SCRIPTS)]
    if pgo:
        step("profile of training runs")
        line += ["--pgo", "--interpreter", sys.executable]
        found_first += profile_merger()
    if sys.platform == "linux" and importlib.util.find_spec("ziglang") and not pgo:
        step("wheel, linked for manylinux2014 by zig")
        line += ["--zig", "--compatibility", "manylinux2014"]
    else:
        step("wheel, linked for this machine")
        line += ["--compatibility", "pypi"]
    share = DATA / "data" / "share"
    try:
        write(share / "man/man1/lasthop.1", output(COMMAND, "man"))
        for shell, path in COMPLETIONS.items():
            source = {"_LASTHOP_COMPLETE": f"source_{shell}"}
            write(share / path, output(COMMAND, env=os.environ | source))
        path = os.pathsep.join([*found_first, os.environ["PATH"]])
        output(*line, cwd=ROOT, env=os.environ | {"PATH": path})
    finally:
        shutil.rmtree(DATA, ignore_errors=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def profile_merger() -> list[str]:
    """Return the directories to search for llvm-profdata before those of PATH.

    It must be of the compiler's version of LLVM, since others cannot read the profiles.

    Raises
    ------
    UnfitError
        If there is none.
    """
    compiler = output("rustc", "-vV")
    version = re.search(r"^LLVM version: (\d+)", compiler, re.MULTILINE)
    host = re.search(r"^host: (.*)$", compiler, re.MULTILINE)
    if version is None or host is None:
        raise UnfitError(f"rustc -vV names no LLVM:\n{compiler}")
    name = "llvm-profdata"
    if Path(output("rustc", "--print", "sysroot").strip(), "lib/rustlib", host[1], "bin", name).exists():
        return []
    debian = f"/usr/lib/llvm-{version[1]}/bin"
    for directory in (*os.environ["PATH"].split(os.pathsep), debian):
        found = shutil.which(name, path=directory)
        if found and f"LLVM version {version[1]}." in output(found, "--version"):
            return [directory]
    raise UnfitError(
        f"--pgo needs the {name} of LLVM {version[1]}: rustup component add llvm-tools, "
        f"or Debian's package llvm-{version[1]}"
    )


def build_sdist(out: Path) -> Path:
    """Build the source distribution."""
    step("source distribution")
    output(SCRIPTS / "maturin", "sdist", "--out", out, cwd=ROOT)
    (sdist,) = out.glob("*.tar.gz")
    return sdist


def write(path: Path, text: str) -> None:
    """Write a file, creating its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# -- Checks ------------------------------------------------------------------------------------------


def check_contents(package: Path, version: str) -> None:
    """Reject a package that is too large, or has files outside its own directories."""
    if package.stat().st_size > MAX_BYTES:
        raise UnfitError(f"{package.name} has {package.stat().st_size:,} bytes, more than {MAX_BYTES:,}")
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            names = archive.namelist()
        roots = {"lasthop", f"lasthop-{version}.dist-info", f"lasthop-{version}.data"}
        if MODULE not in names:
            raise UnfitError(f"{package.name} lacks {MODULE}; run make web")
    else:
        with tarfile.open(package) as archive:
            names = archive.getnames()
        roots = {f"lasthop-{version}"}
    strange = [name for name in names if name.split("/")[0] not in roots]
    if strange:
        raise UnfitError(f"{package.name} has files outside its directories: {', '.join(strange)}")


def check_tags(wheel: Path) -> None:
    """Reject a Linux wheel whose tags are incompatible with the libraries that it needs."""
    tags = [tag for tag in platform_tags(wheel) if "linux" in tag]
    if not tags:
        return
    if not importlib.util.find_spec("auditwheel"):
        raise UnfitError(f"{wheel.name}: checking its tags needs auditwheel: pip install 'lasthop[release]'")
    step("tags against the symbols that the wheel needs")
    found = json.loads(output(sys.executable, "-m", "auditwheel", "show", "--json", wheel))
    needed = glibc(found["overall_tag"])
    false = [tag for tag in tags if glibc(tag) < needed]
    if false:
        needs = f"glibc {needed[0]}.{needed[1]}"
        raise UnfitError(f"{wheel.name} needs {needs}, so its tags are wrong: {', '.join(false)}")


def platform_tags(wheel: Path) -> list[str]:
    """Return the platforms in a wheel's name."""
    return wheel.stem.split("-")[-1].split(".")


def glibc(tag: str) -> tuple[int, int]:
    """Return the minimum glibc version of a platform tag."""
    named = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
    numbered = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    # A plain linux tag has no minimum.
    return (int(numbered[1]), int(numbered[2])) if numbered else named.get(tag.split("_")[0], (999, 0))


def check_installation(package: Path, wheel: Path, version: str) -> None:
    """Install a package into a fresh environment, run it there, and uninstall it.

    The dependencies are those of the wheel.

    Raises
    ------
    UnfitError
        If it gives different results, or leaves files behind.
    """
    step(f"{package.name} in a fresh environment")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name, "empty")
        empty.mkdir()
        # The environment must not refer to the clone.
        outside = {
            key: text for key, text in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_"))
        }
        there = {"cwd": empty, "env": outside}
        home = Path(name, "venv")
        venv.create(home, with_pip=True)
        python = home / SCRIPTS.name / Path(sys.executable).name
        pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet")
        # Dependencies first, to separate the files of the package itself.
        output(*pip, "install", wheel, **there)
        output(*pip, "uninstall", "--yes", "lasthop", **there)
        before = files(home)
        built = time.monotonic()
        output(*pip, "install", "--no-deps", package, **there)
        command = home / SCRIPTS.name / "lasthop"
        if output(command, "--version", **there).split()[-1] != version:
            raise UnfitError(f"{package.name} has another version than {version}")
        if output(command, *EXAMPLE, **there) != output(COMMAND, *EXAMPLE):
            raise UnfitError(f"{package.name} gives other results than the clone")
        output(command, "run", "last-mile", "--trace", "--pcap", "--out", empty / "out", **there)
        if package == wheel:
            output(command, "web", "--out", empty / "page.html", **there)
        output(*pip, "uninstall", "--yes", "lasthop", **there)
        left = sorted(str(path.relative_to(home)) for path in files(home) - before)
        if left:
            raise UnfitError(f"{package.name}, uninstalled, leaves {', '.join(left)}")
    seconds = built - began, time.monotonic() - built
    print(f"   dependencies {seconds[0]:.0f} s; installed, run and uninstalled {seconds[1]:.0f} s")


def files(directory: Path) -> set[Path]:
    """Return all files below a directory, except bytecode that pip compiles when it runs."""
    return {path for path in directory.rglob("*") if path.is_file() and "pip" not in path.parts}


# -- The report --------------------------------------------------------------------------------------


def describe(packages: list[Path]) -> None:
    """Print size, tags and hash of each package, and write SHA256SUMS."""
    commit = output("git", "rev-parse", "HEAD", cwd=ROOT).strip()
    lines = []
    print(f"\nfrom commit {commit}:")
    for package in packages:
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        lines.append(f"{digest}  {package.name}\n")
        print(f"\n{package}\n  {package.stat().st_size:,} bytes\n  sha256 {digest}")
        if package.suffix == ".whl":
            python, abi, _ = package.stem.split("-")[-3:]
            promised = [tag for tag in platform_tags(package) if tag.startswith("manylinux")]
            least = min((glibc(tag) for tag in promised), default=None)
            said = f", glibc {least[0]}.{least[1]} or later" if least else ""
            print(f"  {python}-{abi} on {', '.join(platform_tags(package))}{said}")
    write(packages[0].parent / "SHA256SUMS", "".join(lines))


if __name__ == "__main__":
    main()
