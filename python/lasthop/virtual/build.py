"""Builds kernels for virtual time, from the source packages of the distribution or another source."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lasthop.virtual import kernels, places
from lasthop.virtual.kernels import ENTROPY, Kernel, KernelError

_TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
}
"""The programs that a build needs, and Debian's packages of them."""

_FRAGMENT = Path(__file__).with_name("kernel.config")

_DIGITS = 10
"""Digits of the digest in the name of a kernel."""

_WORKPLACE = ".build-"
"""Of the names of directories in which kernels are built."""

_REPRODUCIBLE = (
    "KBUILD_BUILD_TIMESTAMP=1970-01-01",
    "KBUILD_BUILD_USER=lasthop",
    "KBUILD_BUILD_HOST=lasthop",
    "KBUILD_BUILD_VERSION=1",
)
"""What `uname -v` shows, which seeds random numbers: the same for each build."""


class _Edit(NamedTuple):
    """A change of the source: the text that takes the place of a pattern, which occurs once in a file."""

    file: str
    pattern: str
    text: str
    is_in_all: bool = True
    """Whether all versions have the pattern; newer ones may need no change."""


_EDITS = (
    # As the kernels of distributions: delayed ACKs, retransmission timeouts and CUBIC count these ticks.
    _Edit("arch/um/Kconfig", r"(?<=config HZ\n\tint\n\tdefault )100(?=\n)", "250"),
    # The vector registers of processors with AMX do not fit; newer kernels learn the size from the processor.
    _Edit(
        "arch/x86/um/user-offsets.c", r"(?<=DEFINE_LONGS\(HOST_FP_SIZE, )2696(?=\))", "12288", is_in_all=False
    ),
    # SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), from a seed in the environment.
    _Edit(
        "arch/um/os-Linux/util.c",
        r"\treturn getrandom\(buf, len, flags\);\n",
        f"""\
\tstatic unsigned long long state;
\tstatic int is_seeded;
\tconst char *seed = getenv("{ENTROPY}");
\tunsigned char *to = buf;
\tsize_t i;

\tif (!seed)
\t\treturn getrandom(buf, len, flags);
\tif (!is_seeded) {{
\t\tstate = strtoull(seed, NULL, 16);
\t\tis_seeded = 1;
\t}}
\tfor (i = 0; i < len; i++) {{
\t\tunsigned long long z = (state += 0x9e3779b97f4a7c15ULL);

\t\tz = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
\t\tz = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
\t\tto[i] = z ^ (z >> 31);
\t}}
\treturn len;
""",
    ),
)


class Source(NamedTuple):
    """Where the source of a kernel is.

    Attributes
    ----------
    identity : str
        Changes whenever the source does.
    path : Path or None
        The archive or directory; None to download `package`.
    package : str
        The package of the distribution; empty without one.
    """

    identity: str
    path: Path | None
    package: str = ""


def of_package(version: str | None) -> Source:
    """Return the source of a package `linux-source-VERSION`.

    Parameters
    ----------
    version : str or None
        The version, such as 6.12; by default the newest that the distribution has.

    Raises
    ------
    KernelError
        If the distribution has no such package.
    """
    for tool in ("apt-cache", "apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise KernelError(
                f"the source of a kernel is a package of Debian or Ubuntu, and this machine has no {tool}; "
                "give one that you have by --source"
            )
    listed = _output(["apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$"])
    known = re.findall(r"^linux-source-([0-9.]+) ", listed, re.MULTILINE)
    known.sort(key=lambda each: [int(part) for part in each.split(".")])
    if not known:
        raise KernelError(
            "the lists of packages have no linux-source-*; fetch them (sudo apt-get update), or give a "
            "source by --source"
        )
    chosen = version or known[-1]
    if chosen not in known:
        raise KernelError(
            f"there is no package linux-source-{chosen}; those of this distribution: {', '.join(known)}",
            option="--version",
        )
    package = f"linux-source-{chosen}"
    shown = _output(["apt-cache", "show", "--no-all-versions", package])
    revision = re.search(r"^Version: (.+)$", shown, re.MULTILINE)
    return Source(f"{package} {revision[1] if revision else ''}", None, package)


def of_path(path: Path) -> Source:
    """Return the source in an archive, or in a directory, which is copied.

    Raises
    ------
    KernelError
        If it is no source of a kernel.
    OSError
        If it cannot be read.
    """
    path = path.resolve()
    if path.is_dir():
        if not (path / "arch/um/Kconfig").is_file():
            raise KernelError(
                f"{path} is no source of a Linux kernel: it has no arch/um/Kconfig", option="--source"
            )
        digest = hashlib.sha256()
        for parent, directories, names in os.walk(path):
            directories[:] = sorted(set(directories) - {".git"})
            for name in sorted(names):
                status = os.lstat(os.path.join(parent, name))
                digest.update(f"{parent}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
        return Source(digest.hexdigest(), path)
    if not tarfile.is_tarfile(path):
        raise KernelError(f"{path} is neither a directory nor an archive of tar", option="--source")
    with path.open("rb") as file:
        return Source(hashlib.file_digest(file, "sha256").hexdigest(), path)


def build(source: Source, *, more: Path | None, jobs: int, on_step: Callable[[str], object]) -> Kernel:
    """Build a kernel, unless the cache has it; returns the one in the cache.

    Parameters
    ----------
    source : Source
        Its source.
    more : Path or None
        A file of options beyond those of `kernel.config`, in the same format.
    jobs : int
        Compilers at once.
    on_step : callable
        Called with what is being done.

    Raises
    ------
    KernelError
        If a program is missing, or a step fails.
    OSError
        If a file cannot be read or written.
    """
    kernels.refuse_other_machines()
    fragment = _FRAGMENT.read_text() + (more.read_text() if more is not None else "")
    digest = hashlib.sha256(f"{source.identity}\n{_EDITS}\n{_REPRODUCIBLE}\n{fragment}".encode()).hexdigest()
    cache = kernels.directory()
    cache.mkdir(parents=True, exist_ok=True)
    for found in cache.glob(f"linux-*-{digest[:_DIGITS]}"):
        return kernels.inspect(found)
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        packages = " ".join(_TOOLS[tool] for tool in missing)
        raise KernelError(
            f"building a kernel needs {', '.join(missing)}; install them: sudo apt-get install {packages}"
        )
    with _workplace(cache) as work:
        tree = work / "source"
        tree.mkdir()
        archive = source.path or _download(source.package, work, on_step)
        on_step("unpacking")
        _unpack(archive, tree)
        for edit in _EDITS:
            _apply(edit, tree)
        binary = _compile(tree, fragment, jobs, on_step)
        version = kernels.inspect(binary).version
        place = cache / f"linux-{version}-{digest[:_DIGITS]}"
        os.replace(binary, place)
    return kernels.inspect(place)


@contextmanager
def _workplace(cache: Path) -> Iterator[Path]:
    """Make a directory for the block, and remove those that killed builds have left."""
    places.remove_abandoned(cache, _WORKPLACE)
    work, lock = places.make(cache, _WORKPLACE)
    try:
        # Compilers keep it if this process is killed, so that no other build removes what they write.
        os.set_inheritable(lock, True)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def _download(package: str, work: Path, on_step: Callable[[str], object]) -> Path:
    """Fetch the source archive of a package, which needs no privileges; returns the archive."""
    on_step(f"fetching {package}")
    _run(["apt-get", "download", "--quiet", package], work)
    (deb,) = work.glob("*.deb")
    _run(["dpkg-deb", "--extract", str(deb), "package"], work)
    deb.unlink()
    (archive,) = (work / "package" / "usr" / "src").glob("*.tar.*")
    return archive


def _unpack(source: Path, tree: Path) -> None:
    """Unpack an archive, or copy a directory, to `tree`."""
    if source.is_dir():
        shutil.copytree(
            source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True
        )
        _run(["make", "--silent", "ARCH=um", "mrproper"], tree)
    else:
        _run(["tar", "--extract", "--strip-components=1", "--file", str(source)], tree)


def _apply(edit: _Edit, tree: Path) -> None:
    """Change a file of the source."""
    path = tree / edit.file
    text = path.read_text() if path.is_file() else ""
    changed, count = re.subn(edit.pattern, lambda _: edit.text, text)
    if not count and not edit.is_in_all:
        return
    if count != 1:
        raise KernelError(
            f"{edit.file} of this source is not as in the versions that are known, 6.1 to 7.3: expected "
            f"{edit.pattern!r} once, found it {count} times"
        )
    path.write_text(changed)


def _compile(tree: Path, fragment: str, jobs: int, on_step: Callable[[str], object]) -> Path:
    """Configure and compile; returns the kernel."""
    on_step("configuring")
    options = tree / "lasthop.config"
    options.write_text(fragment)
    make = ["make", "--silent", "ARCH=um", *_REPRODUCIBLE]
    _run([*make, "allnoconfig"], tree, KCONFIG_ALLCONFIG=str(options))
    on_step("compiling")
    _run([*make, f"--jobs={jobs}", "linux"], tree)
    return tree / "linux"


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _run(command: list[str], directory: Path, **more: str) -> None:
    """Run a step of the build.

    Raises
    ------
    KernelError
        If it fails, with the last lines of what it printed.
    """
    # MAKEFLAGS of an outer make are about that one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    with subprocess.Popen(
        command,
        cwd=directory,
        env=environment | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,
        start_new_session=True,
    ) as step:
        try:
            text, _ = step.communicate()
        except BaseException:
            # Those that make has started too.
            os.killpg(step.pid, signal.SIGKILL)
            raise
    if step.returncode:
        printed = "\n  ".join(["", *text.strip().splitlines()[-15:]])
        raise KernelError(f"`{' '.join(command)}` failed with {step.returncode}:{printed}")
