"""Kernels that can run in virtual time: where they are kept, and what each has."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lasthop.core.names import unknown

_NEEDED = {
    "UML_TIME_TRAVEL_SUPPORT": "virtual time",
    "HOSTFS": "the files of this machine",
    "OVERLAY_FS": "files that stay in memory",
    "NET_NS": "network namespaces",
    "USER_NS": "user namespaces",
    "VETH": "pairs of interfaces",
    "PACKET": "packet sockets",
}
"""The options of a kernel without which `lasthop emulate` cannot run on it."""

_NEEDED_ALONE = {"VIRTIO_UML": "network cards outside", "VIRTIO_NET": "their driver"}
"""The options without which a kernel cannot be that of one end alone."""

_FEATURES = {
    "IPv6": "IPV6",
    "MPTCP": "MPTCP",
    "BBR": "TCP_CONG_BBR",
    "DCTCP": "TCP_CONG_DCTCP",
    "netem": "NET_SCH_NETEM",
    "FQ-CoDel": "NET_SCH_FQ_CODEL",
    "CAKE": "NET_SCH_CAKE",
    "PIE": "NET_SCH_PIE",
    "DualPI2": "NET_SCH_DUALPI2",
    "hwsim": "MAC80211_HWSIM",
}
"""Features by the option that compiles them in."""

_ACCURATE_ECN = b"tcp_ecn_option"
"""A name of sysctl that kernels with accurate ECN have (RFC 9768)."""

ENTROPY = "LASTHOP_ENTROPY"
"""The environment variable from which a kernel takes all its entropy: 64 bits in hexadecimal."""

_CONFIGURATION = re.compile(rb"IKCFG_ST(.*?)IKCFG_ED", re.DOTALL)
_VERSION = re.compile(r"\d+(\.\d+)*([-+~][^/]*)?")
"""As `uname -r` prints it, or the beginning of its numbers."""

_BANNER = re.compile(rb"Linux version (\d+\.[^ ]+) \(")


class KernelError(Exception):
    """A kernel cannot be found, built or run; the text states the problem and the remedy.

    Parameters
    ----------
    message : str
        The text.
    option : str, optional
        The option of `lasthop kernel` that is wrong.
    """

    def __init__(self, message: str, *, option: str | None = None) -> None:
        super().__init__(message)
        self.option: str | None = option


@dataclass(frozen=True)
class Kernel:
    """A kernel that can run in virtual time.

    Parameters
    ----------
    path : Path
        Its file.
    version : str
        As `uname -r` prints it.
    features : tuple of str
        What it has of those that versions and configurations differ in.
    sha256 : str
        The SHA-256 of the file, in hexadecimal.
    lacks_alone : tuple of str
        What it lacks to be the kernel of one end alone.
    """

    path: Path
    version: str
    features: tuple[str, ...]
    sha256: str
    lacks_alone: tuple[str, ...]


def directory() -> Path:
    """Return the directory of built kernels: in the user's cache (XDG Base Directory Specification)."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lasthop" / "kernels"


def inspect(path: Path) -> Kernel:
    """Return what a kernel is, from its banner and the configuration within it.

    Raises
    ------
    KernelError
        If it is no kernel, or one that cannot run in virtual time.
    OSError
        If the file cannot be read.
    """
    binary = path.read_bytes()
    banner = _BANNER.search(binary)
    if not banner:
        raise KernelError(f"{path} is no Linux kernel; expected one that `lasthop kernel build` made")
    try:
        found = _CONFIGURATION.search(binary)
        text = gzip.decompress(found[1]).decode() if found else ""
    except (EOFError, OSError, zlib.error, UnicodeDecodeError):
        text = ""
    configuration = set(re.findall(r"^CONFIG_(\w+)=y$", text, re.MULTILINE))
    lacks = [what for option, what in _NEEDED.items() if option not in configuration]
    if ENTROPY.encode() not in binary:
        lacks.append("entropy from a seed")
    if lacks:
        raise KernelError(
            f"{path} cannot run in virtual time: it lacks {', '.join(lacks)}; `lasthop kernel build` makes "
            "one that can, with --source also from a source of your own"
        )
    features = [name for name, option in _FEATURES.items() if option in configuration]
    features += ["AccECN"] if _ACCURATE_ECN in binary else []
    alone = tuple(what for option, what in _NEEDED_ALONE.items() if option not in configuration)
    return Kernel(path, banner[1].decode(), tuple(features), hashlib.sha256(binary).hexdigest(), alone)


def refuse_alone(kernel: Kernel) -> None:
    """Raise a `KernelError` if a kernel cannot be that of one end alone."""
    if kernel.lacks_alone:
        raise KernelError(
            f"{kernel.path} cannot be the kernel of one end alone: it lacks "
            f"{' and '.join(kernel.lacks_alone)}; "
            "`lasthop kernel build` makes one that can"
        )


def built(on_skipped: Callable[[str], object]) -> list[Kernel]:
    """Return the kernels of the cache, the newest version first, and of one version the one built last.

    Parameters
    ----------
    on_skipped : callable
        Called with the problem of each file there that is no such kernel.
    """
    found = []
    for path in sorted(directory().glob("linux-*")):
        try:
            found.append(inspect(path))
        except (KernelError, OSError) as error:
            on_skipped(f"skipped: {error}")
    return sorted(
        found, key=lambda each: (_numbers(each.version), each.path.stat().st_mtime_ns), reverse=True
    )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def refuse_other_machines() -> None:
    """Raise a `KernelError` on machines for which there are no such kernels."""
    if (machine := platform.machine()) != "x86_64":
        raise KernelError(
            f"kernels in virtual time need x86-64, and this machine is {machine}; omit --virtual"
        )


def find(name: str | None, on_skipped: Callable[[str], object], option: str = "--kernel") -> Kernel:
    """Return a kernel.

    Parameters
    ----------
    name : str or None
        Its file, or a version in the cache, such as 6.12; by default the newest version in the cache.
    on_skipped : callable
        As of `built`.
    option : str
        The option that names it, for messages.

    Raises
    ------
    KernelError
        If there is none, or it cannot run in virtual time.
    OSError
        If the file cannot be read.
    """
    refuse_other_machines()
    if name is not None and Path(name).is_file():
        return inspect(Path(name).resolve())
    if name is not None and not _VERSION.fullmatch(name):
        raise KernelError(f'{option}: there is no file "{name}"; expected a file, or a version such as 6.12')
    kernels = built(on_skipped)
    if not kernels:
        raise KernelError(
            f"virtual time needs a kernel, and {directory()} has none; build one, which takes some minutes: "
            "lasthop kernel build"
        )
    if name is None:
        return kernels[0]
    for kernel in kernels:
        # By whole numbers: 6.1 is not 6.12.
        if re.match(rf"{re.escape(name)}(?!\d)", kernel.version):
            return kernel
    raise KernelError(unknown("kernel", name, [kernel.version for kernel in kernels]))
