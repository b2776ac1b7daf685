"""Runs a command in a guest: on a kernel of its own, in virtual time."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lasthop.virtual import places
from lasthop.virtual.guard import ADDR_NO_RANDOMIZE
from lasthop.virtual.kernels import ENTROPY, Kernel, KernelError

_MEMORY_MB = 512
"""The memory of a guest. Only what it uses takes memory of this machine."""

START_NS = 1_700_000_000 * 10**9
"""The wall clock of a guest when it starts, in nanoseconds since 1970."""

PHASES_S = 0.1
"""The period from which phases are drawn: a multiple of the ticks of kernels and of timestamps of TCP."""

_PREFIX = "lasthop-guest-"
"""Of the names of guests' directories."""

_PRESENT_PERSONALITY = 0xFFFFFFFF
"""Asks personality(2) for the present one."""

_CHECK_INTERVAL = 0.05
"""Seconds between two looks at what the command has printed."""


def arguments(*time: str) -> tuple[str, ...]:
    """Return the command line of a kernel. It seeds the kernel's random numbers: all jobs have the same.

    Parameters
    ----------
    *time : str
        The arguments about its time.
    """
    return (
        f"mem={_MEMORY_MB}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "init=/proc/self/cwd/init",
        *time,
        "uml_dir=./uml/",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        "quiet",
        "panic=-1",
    )


_ARGUMENTS = arguments("time-travel=inf-cpu", f"time-travel-start={START_NS}")


@dataclass(frozen=True)
class Draw:
    """What a seed and a run number determine of a guest.

    Parameters
    ----------
    entropy : int
        64 bits, from which the kernel takes all its random numbers.
    phase_s : float
        When programs start within a period of `PHASES_S`, in seconds: clocks tick, and by microseconds a slow
        start may lose one packet more.
    """

    entropy: int
    phase_s: float

    @staticmethod
    def of(seed: int, run: int) -> Draw:
        """Draw them; independent of the random streams of a simulation.

        Examples
        --------
        >>> Draw.of(1, 0) == Draw.of(1, 0), Draw.of(1, 0) == Draw.of(1, 1)
        (True, False)
        """
        digest = hashlib.sha256(f"guest, seed {seed}, run {run}".encode()).digest()
        entropy, phase = (int.from_bytes(digest[at : at + 8], "big") for at in (0, 8))
        return Draw(entropy, PHASES_S * (phase >> 11) / (1 << 53))


@dataclass(frozen=True, kw_only=True)
class Job:
    """A command for a guest, which runs it as this user, with real-time priority.

    Parameters
    ----------
    command : list of str
        The command with its arguments.
    environment : dict
        Its environment.
    writable : list of Path
        The directories that it may change; all other changes stay in the memory of the guest.
    entropy : int
        From which the kernel takes its random numbers.
    """

    command: list[str]
    environment: dict[str, str]
    writable: list[Path]
    entropy: int


@dataclass(frozen=True)
class Ended:
    """How the command of a guest has ended.

    Parameters
    ----------
    exit_code : int
        Its exit code.
    clock_s : float
        The clock of the guest then, in seconds since its start.
    """

    exit_code: int
    clock_s: float


class StoppedError(Exception):
    """The guest was stopped before its command ended."""


class LimitError(Exception):
    """The command did not end within its limit of real time; the text says why that may be."""


class CrashError(Exception):
    """The kernel ended before the command; the text has what it printed last."""


def run(
    kernel: Kernel,
    job: Job,
    *,
    limit_s: float,
    stdout: BinaryIO,
    stderr: BinaryIO,
    stop: threading.Event,
    processor: int | None = None,
) -> Ended:
    """Run a command in a guest until it ends.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    job : Job
        The command.
    limit_s : float
        How long it may take, in seconds of real time.
    stdout, stderr : binary file
        Get what the command prints.
    stop : threading.Event
        Stops the guest.
    processor : int, optional
        The processor that runs the guest; by default any one.

    Raises
    ------
    KernelError
        If this machine has no room for the memory of a guest.
    CrashError
        If the kernel ends before the command.
    LimitError
        If the limit is exceeded.
    StoppedError
        If `stop` was set.
    """
    begin = time.monotonic()
    if processor is None:
        processors = sorted(os.sched_getaffinity(0))
        processor = processors[os.getpid() % len(processors)]
    with _guest(kernel, job, processor) as (keeper, directory), ExitStack() as files:
        sources = [files.enter_context((directory / name).open("rb")) for name in ("stdout", "stderr")]

        def forward() -> None:
            for source, sink in zip(sources, (stdout, stderr), strict=True):
                if printed := source.read():
                    sink.write(printed)
                    sink.flush()

        assert keeper.stdout is not None
        while not select.select([keeper.stdout], [], [], _CHECK_INTERVAL)[0]:
            forward()
            if stop.is_set():
                raise StoppedError
            if time.monotonic() - begin > limit_s:
                clock = (directory / "clock").read_text().strip()
                raise LimitError(too_long(clock or "less than 1", limit_s))
        forward()
        status = (directory / "status").read_text().split()
        if not status:
            raise CrashError(no_status(kernel, directory))
        return Ended(int(status[0]), float(status[1]))


@contextmanager
def _guest(kernel: Kernel, job: Job, processor: int) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a guest, and yield its keeper and its directory; end it with the block."""
    with place(kernel) as (directory, lock):
        _prepare(directory, job)
        with started(directory, lock, _ARGUMENTS, job.entropy, processor) as keeper:
            yield keeper, directory


@contextmanager
def place(kernel: Kernel) -> Iterator[tuple[Path, int]]:
    """Make the directory of a guest, and yield it and its lock; remove it with the block.

    Raises
    ------
    KernelError
        If this machine has no room for the memory of a guest.
    """
    memory = _memory_directory()
    temporary = Path(tempfile.gettempdir())
    places.remove_abandoned(temporary, _PREFIX)
    with ExitStack() as at_end:
        directory, lock = places.make(temporary, _PREFIX)
        at_end.callback(os.close, lock)
        # The keeper removes it too: it outlives a command that is killed.
        at_end.callback(shutil.rmtree, directory, ignore_errors=True)
        for name in ("stdout", "stderr", "clock", "status", "console"):
            (directory / name).touch()
        for name, to in (("linux", kernel.path), ("memory", memory)):
            (directory / name).symlink_to(to)
        yield directory, lock


@contextmanager
def started(
    directory: Path, lock: int, arguments: Sequence[str], entropy: int, processor: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the kernel of a guest, and yield its keeper; end it with the block.

    Parameters
    ----------
    directory : Path
        The directory of the guest.
    lock : int
        The lock of the directory.
    arguments : sequence of str
        The kernel's command line.
    entropy : int
        From which the kernel takes its random numbers.
    processor : int
        The processor that runs the guest.
    """
    with ExitStack() as at_end:
        theirs, ours = os.pipe()
        lifeline = at_end.enter_context(os.fdopen(theirs))
        end = at_end.enter_context(os.fdopen(ours, "w"))
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))),
                *(str(lifeline.fileno()), str(processor), *arguments),
            ],
            cwd=directory,
            # Nothing else: the size of the environment moves the addresses of the kernel's data.
            env={ENTROPY: f"{entropy:016x}", "HOME": "/", "TMPDIR": "./memory"},
            pass_fds=[lifeline.fileno(), lock],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                end.close()


def _prepare(directory: Path, job: Job) -> None:
    """Write what a guest reads."""
    plan = {
        "command": job.command,
        "environment": job.environment,
        "directory": os.getcwd(),
        "user": os.geteuid(),
        "group": os.getegid(),
        "groups": os.getgroups(),
        "writable": [str(path.resolve()) for path in job.writable],
    }
    (directory / "job.json").write_text(json.dumps(plan))
    init = shlex.join([sys.executable, "-I", "-S", str(Path(__file__).with_name("guest_init.py"))])
    write_init(directory, f"exec {init}\n")


def write_init(directory: Path, script: str) -> None:
    """Write the script that is the first process of a guest."""
    (directory / "init").write_text(f"#!/bin/sh\n{script}")
    (directory / "init").chmod(0o700)


def fixes_addresses() -> bool:
    """Whether programs may have the same addresses each time; Docker does not permit it by default."""
    personality = ctypes.CDLL(None).personality
    before = personality(ctypes.c_ulong(_PRESENT_PERSONALITY))
    if before < 0 or personality(ctypes.c_ulong(before | ADDR_NO_RANDOMIZE)) < 0:
        return False
    personality(ctypes.c_ulong(before))
    return True


def room() -> int:
    """Return for how many guests at once there is room in memory."""
    return max(map(_room, _memory_places()))


def _memory_places() -> tuple[str, str]:
    """Return where the memory of a guest may be: in memory, but in containers that have little there."""
    return "/dev/shm", tempfile.gettempdir()


def _room(place: str) -> int:
    """Return how many guests have room in a directory: none where memory could not be executed."""
    try:
        status = os.statvfs(place)
    except OSError:
        return 0
    return 0 if status.f_flag & os.ST_NOEXEC else status.f_bavail * status.f_frsize // (_MEMORY_MB << 20)


def _memory_directory() -> str:
    """Return the first place with room for a guest."""
    for place in _memory_places():
        if _room(place):
            return place
    raise KernelError(
        f"a guest needs {_MEMORY_MB} MB for its memory, in {' or in '.join(_memory_places())}, mounted "
        "without noexec; make room, or set TMPDIR"
    )


def too_long(clock: str, limit_s: float) -> str:
    """Say that a guest exceeded its limit, by a clock that is known or not, and why that may be."""
    when = f", when their clock showed {clock} s" if clock else ""
    return (
        f"the programs did not end within {limit_s:g} s of real time{when}. "
        "Virtual time stands still while a program computes, and creeps while one reads the clock over and "
        "over: let programs sleep or poll(2) instead of spinning, let them run for shorter, or raise "
        "--wall-limit"
    )


def no_status(kernel: Kernel, directory: Path) -> str:
    """Say that a kernel ended too early, with what it printed last."""
    printed = (directory / "console").read_text(errors="replace").strip().splitlines()[-15:]
    return "\n  ".join(
        [f"Linux {kernel.version} ended before the command:", *(printed or ["it printed nothing"])]
    )
