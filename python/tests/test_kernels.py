"""Kernels in virtual time, found and built, with a stub of one."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from stub_kernels import kernel_file, processes_of, wait_until

from lasthop.virtual import build, kernels
from lasthop.virtual.kernels import Kernel, KernelError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels in virtual time need Linux")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lasthop" / "kernels"


def test_a_kernel_says_what_it_has(tmp_path: Path) -> None:
    path = kernel_file(tmp_path / "linux", config="CONFIG_TCP_CONG_BBR=y\nCONFIG_MPTCP=y\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    alone = ("network cards outside", "their driver")
    assert kernels.inspect(path) == Kernel(path, "6.99.1", ("MPTCP", "BBR"), digest, alone)
    with path.open("ab") as file:
        file.write(kernels._ACCURATE_ECN)
    assert kernels.inspect(path).features == ("MPTCP", "BBR", "AccECN")


def test_a_kernel_that_cannot_run_in_virtual_time_is_refused_with_its_lack(tmp_path: Path) -> None:
    path = kernel_file(tmp_path / "linux")
    whole = path.read_bytes()
    path.write_bytes(b"ELF")
    with pytest.raises(KernelError, match="is no Linux kernel"):
        kernels.inspect(path)
    path.write_bytes(whole.replace(kernels.ENTROPY.encode(), b""))
    with pytest.raises(KernelError, match="it lacks entropy from a seed; `lasthop kernel build`"):
        kernels.inspect(path)
    path.write_bytes(whole[:-20] + b"IKCFG_ED")
    with pytest.raises(KernelError, match="it lacks virtual time, the files of this machine"):
        kernels.inspect(path)


def test_kernels_are_found_by_file_and_version_and_the_newest_by_default(cache: Path) -> None:
    with pytest.raises(KernelError, match="lasthop kernel build"):
        kernels.find(None, pytest.fail)
    for version in ("6.1.192-rc1", "6.12.117", "6.2.3"):
        kernel_file(cache / f"linux-{version}-0123456789", version=version)
    skipped: list[str] = []
    assert len(kernels.built(skipped.append)) == 3
    assert skipped[0].startswith(f"skipped: {cache}/linux-6.1.192-rc1-0123456789.py.stub is no Linux kernel")
    for stub in cache.glob("*.stub"):
        stub.rename(cache / f".{stub.name}")
    assert [kernel.version for kernel in kernels.built(pytest.fail)] == ["6.12.117", "6.2.3", "6.1.192-rc1"]
    assert kernels.find(None, pytest.fail).version == kernels.find("6.12", pytest.fail).version == "6.12.117"
    for name in ("6.1", "6.1.192", "6.1.192-rc1"):
        assert kernels.find(name, pytest.fail).version == "6.1.192-rc1"
    file = cache / "linux-6.2.3-0123456789"
    assert kernels.find(str(file), pytest.fail).path == file
    with pytest.raises(KernelError, match=r'there is no kernel "6\.13"'):
        kernels.find("6.13", pytest.fail)
    for name in ("linux", "./6.12/linux", "", "-"):
        with pytest.raises(KernelError, match=rf'there is no file "{re.escape(name)}"; expected a file, or'):
            kernels.find(name, pytest.fail)


def test_machines_without_such_kernels_are_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(KernelError, match="need x86-64, and this machine is aarch64"):
        kernels.find(None, pytest.fail)


# How kernels are built.

KCONFIG = "config HZ\n\tint\n\tdefault 100\n"
UTIL = "ssize_t os_getrandom(...)\n{\n\treturn getrandom(buf, len, flags);\n}\n"
MAKEFILE = """
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
linux:
\tcat {stub} arch/um/os-Linux/util.c $(wildcard arch/x86/um/*.c) .config > linux
\techo $(ARCH) $(KBUILD_BUILD_TIMESTAMP) >> linux
\tgrep -q 'default 250' arch/um/Kconfig
mrproper:
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the source of a kernel that is small, and put the programs in place that its build needs."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in build._TOOLS:
        if shutil.which(tool) is None:
            (tools / tool).write_text("#!/bin/sh\nexit 1\n")
            (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    tree = tmp_path / "source"
    stub = kernel_file(tmp_path / "stub", version="7.0.1")
    stub.write_bytes(stub.read_bytes().replace(kernels.ENTROPY.encode(), b""))
    for name, text in (("arch/um/Kconfig", KCONFIG), ("arch/um/os-Linux/util.c", UTIL)):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "Makefile").write_text(MAKEFILE.format(stub=stub))
    return tree


def test_a_kernel_is_built_once(source: Path, cache: Path, tmp_path: Path) -> None:
    steps: list[str] = []
    (cache / ".build-killed" / "source").mkdir(parents=True)
    os.utime(cache / ".build-killed", (0, 0))
    made = build.build(build.of_path(source), more=None, jobs=2, on_step=steps.append)
    assert steps == ["unpacking", "configuring", "compiling"]
    assert made.version == "7.0.1"
    assert made.path.parent == cache
    text = made.path.read_bytes()
    # With entropy from the seed, our options, and a date that is always the same.
    assert b'getenv("LASTHOP_ENTROPY")' in text
    assert b"CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in text
    assert text.endswith(b"um 1970-01-01\n")
    # The source is left as it was, and nothing else in the cache, nor what a killed build has left.
    assert (source / "arch/um/Kconfig").read_text() == KCONFIG
    assert [*cache.iterdir()] == [made.path]
    steps.clear()
    assert build.build(build.of_path(source), more=None, jobs=2, on_step=steps.append) == made
    assert steps == []
    # Another configuration or source is another kernel.
    more = tmp_path / "more.config"
    more.write_text("CONFIG_NF_TABLES=y\n")
    other = build.build(build.of_path(source), more=more, jobs=2, on_step=steps.append)
    assert b"CONFIG_NF_TABLES=y" in other.path.read_bytes()
    (source / "arch/um/Kconfig").write_text(f"{KCONFIG}\n")
    assert build.build(build.of_path(source), more=None, jobs=2, on_step=steps.append).path not in (
        made.path,
        other.path,
    )


def test_old_sources_get_room_for_all_vector_registers(source: Path, cache: Path) -> None:
    """6.12 has a constant, which processors with AMX exceed, and newer ones look it up."""
    offsets = source / "arch/x86/um/user-offsets.c"
    offsets.parent.mkdir(parents=True)
    offsets.write_text("DEFINE_LONGS(HOST_FP_SIZE, 2696);\n")
    made = build.build(build.of_path(source), more=None, jobs=1, on_step=lambda _: None)
    assert b"DEFINE_LONGS(HOST_FP_SIZE, 12288);\n" in made.path.read_bytes()


def test_an_archive_is_a_source(source: Path, cache: Path) -> None:
    archive = source.with_suffix(".tar.gz")
    subprocess.run(["tar", "-czf", archive, "-C", source.parent, "source"], check=True)
    found = build.of_path(archive)
    assert build.build(found, more=None, jobs=1, on_step=lambda _: None).version == "7.0.1"
    with pytest.raises(KernelError, match="neither a directory nor an archive"):
        build.of_path(source / "Makefile")
    with pytest.raises(KernelError, match="no source of a Linux kernel"):
        build.of_path(cache)


def test_a_build_that_cannot_be_done_says_why(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(match: str) -> None:
        with pytest.raises(KernelError, match=match):
            build.build(build.of_path(source), more=None, jobs=1, on_step=lambda _: None)
        assert [*cache.iterdir()] == []

    (source / "Makefile").write_text("allnoconfig linux mrproper:\n\t@echo no rule of thumb; exit 1\n")
    fails(r"(?s)make .*mrproper` failed with 2:.*no rule of thumb")
    (source / "Makefile").write_text("mrproper:\n")
    (source / "arch/um/Kconfig").write_text(KCONFIG.replace("100", "1000"))
    fails("arch/um/Kconfig of this source is not as in the versions that are known")
    monkeypatch.setenv("PATH", str(cache))
    fails(r"building a kernel needs make, .*; install them: sudo apt-get install make gcc flex bison")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_stopped_leaves_nothing(source: Path, cache: Path, number: int) -> None:
    makefile = (source / "Makefile").read_text().replace("linux:\n", "linux:\n\tsleep 600 & wait\n")
    (source / "Makefile").write_text(makefile)
    process = subprocess.Popen([sys.executable, "-m", "lasthop", "kernel", "build", "--source", source])
    # make, its shell, and what that has started.
    wait_until(lambda: len(processes_of(cache)) == 3)
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    wait_until(lambda: not processes_of(cache))
    assert [*cache.iterdir()] == []


PACKAGES = {
    "apt-cache": """
case $1 in
search) echo "linux-source-6.1 - source"; echo "linux-source-6.12 - source";;
show) echo "Version: 6.12.1-1";;
esac""",
    "apt-get": """test "$*" = "download --quiet linux-source-6.12" && touch linux-source-6.12.deb""",
    "dpkg-deb": """mkdir -p package/usr/src && cp {archive} package/usr/src/linux-source-6.12.tar.gz""",
}
"""Programs in place of those of Debian."""


def test_packages_of_the_distribution_are_a_source(
    source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "source.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path, "source"], check=True)
    for name, text in PACKAGES.items():
        (tmp_path / "tools" / name).write_text(f"#!/bin/sh\n{text.replace('{archive}', str(archive))}\n")
        (tmp_path / "tools" / name).chmod(0o755)
    found = build.of_package(None)
    assert found == build.Source("linux-source-6.12 6.12.1-1", None, "linux-source-6.12")
    steps: list[str] = []
    assert build.build(found, more=None, jobs=1, on_step=steps.append).version == "7.0.1"
    assert steps[0] == "fetching linux-source-6.12"
    with pytest.raises(
        KernelError, match=r"no package linux-source-7\.3; those of this distribution: 6\.1, 6\.12"
    ):
        build.of_package("7.3")
    (tmp_path / "tools" / "apt-cache").write_text("#!/bin/sh\n")
    with pytest.raises(KernelError, match="sudo apt-get update"):
        build.of_package(None)
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(
        KernelError, match="this machine has no apt-cache; give one that you have by --source"
    ):
        build.of_package(None)


def test_kernels_are_listed(command: Command, cache: Path) -> None:
    shown = command("kernel", "list")
    assert (shown.returncode, shown.stdout) == (0, "")
    assert "has no kernels; lasthop kernel build makes one" in shown.stderr
    path = kernel_file(cache / "linux-6.99.1-0123456789", config="CONFIG_IPV6=y\n")
    Path(f"{path}.py.stub").unlink()
    shown = command("kernel", "list")
    assert shown.stdout == f"6.99.1  {path}\n  IPv6\n"
    listed = json.loads(command("kernel", "list", "--json").stdout)
    assert listed == {"kernels": [{"version": "6.99.1", "path": str(path), "features": ["IPv6"]}]}
    shown = command("kernel", "list", "--version", "6.1")
    assert "belong to lasthop kernel build" in shown.stderr
