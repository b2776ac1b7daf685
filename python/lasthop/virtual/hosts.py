"""Runs two programs in guests of their own: hosts with a kernel each, in the time of one calendar outside."""

from __future__ import annotations

import os
import select
import shlex
import string
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from lasthop._lasthop import Calendar
from lasthop.virtual import guest
from lasthop.virtual.guest import CrashError, LimitError, StoppedError
from lasthop.virtual.kernels import Kernel

NAMES = ("server", "client")
"""The hosts, in order."""

# As between a pair of interfaces, sent frames wait for no interrupt.
_ARGUMENTS = guest.arguments("time-travel=ext:./time", "virtio_uml.device=./net:1", "virtio_net.napi_tx=0")

_KEPT_FROM_ROOT = "-sys_admin,-sys_boot,-sys_rawio,-mknod"
"""The capabilities that programs of root do not have, by which they could mount the files of this machine."""

_OF_NETWORKS = "+net_admin,+net_raw,+net_bind_service"
"""The capabilities that programs of other users have: the network is that of their host alone."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host with a kernel of its own.

    Parameters
    ----------
    kernel : Kernel
        Its kernel.
    network : list of str
        Shell commands that set up its network, whose device is `eth0`.
    program : list of str or None
        Its program; None if it only answers.
    listens : bool
        Whether the other host begins once the program listens.
    environment : dict
        The environment of the program.
    writable : list of Path
        The directories that it may change; all other changes stay in the memory of the guest.
    privileged : bool
        Whether the program has all privileges in the guest.
    entropy : int
        From which the kernel takes its random numbers.
    """

    kernel: Kernel
    network: list[str]
    program: list[str] | None
    listens: bool
    environment: dict[str, str]
    writable: list[Path]
    privileged: bool
    entropy: int


class Ended(NamedTuple):
    """How a run of two hosts has ended.

    Attributes
    ----------
    exit_code : int
        The exit code of the client's program.
    busy_s : float
        For how long the programs that have ended were busy on their own clocks, in seconds.
    messages : int
        How many messages were exchanged with the kernels.
    recorded : tuple
        The report as JSON, the traces and the record of lateness, as of `Emulator.run`.
    """

    exit_code: int
    busy_s: float
    messages: int
    recorded: tuple[str, list[tuple[str, dict[str, Any]]], dict[str, Any] | None]


def run(
    hosts: tuple[Host, Host],
    calendar: Callable[[tuple[str, str]], Calendar],
    *,
    limit_s: float,
    stdout: BinaryIO,
    stderr: BinaryIO,
    stop: threading.Event,
    processor: int,
) -> Ended:
    """Run the programs of the server and of the client until the latter ends.

    Parameters
    ----------
    hosts : (Host, Host)
        The server and the client.
    calendar : callable
        Makes the calendar, for the directories of both guests.
    limit_s : float
        How long it may take, in seconds of real time.
    stdout, stderr : binary file
        Get what the programs print: the client at once, the server at the end.
    stop : threading.Event
        Stops the guests.
    processor : int
        The processor that runs both kernels, which take turns.

    Raises
    ------
    KernelError
        If this machine has no room for the memory of guests.
    CrashError
        If a kernel ends before the client's program, or all wait for ever.
    LimitError
        If the limit is exceeded.
    StoppedError
        If `stop` was set.
    """
    deadline = time.monotonic() + limit_s
    with ExitStack() as at_end:
        made = [at_end.enter_context(guest.place(host.kernel)) for host in hosts]
        first, second = directories = [directory for directory, _ in made]
        begun = calendar((str(first), str(second)))
        keepers = []
        for host, (directory, lock) in zip(hosts, made, strict=True):
            guest.write_init(directory, _init(host))
            keepers.append(
                at_end.enter_context(guest.started(directory, lock, _ARGUMENTS, host.entropy, processor))
            )
        of_server, of_client = (
            [
                (at_end.enter_context((directory / name).open("rb")), sink)
                for name, sink in (("stdout", stdout), ("stderr", stderr))
            ]
            for directory in directories
        )

        def keep_going() -> bool:
            # What the server prints comes at the end: their order would be that of looks in real time.
            _forward(of_client)
            ended = any(map(_has_ended, keepers))
            return not ended and not stop.is_set() and time.monotonic() < deadline

        # This thread and the kernels take turns, and are faster on one processor.
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {processor})
        try:
            how, messages, recorded = begun.run(keep_going)
        finally:
            os.sched_setaffinity(0, processors)
        _forward([*of_client, *of_server])
        if stop.is_set():
            raise StoppedError
        if how == "asleep":
            raise CrashError("the programs of both hosts wait for something that never comes")
        if how != "ended":
            for number, (host, directory) in enumerate(zip(hosts, directories, strict=True)):
                if how == f"{NAMES[number]}-gone" or _has_ended(keepers[number]):
                    raise CrashError(guest.no_status(host.kernel, directory))
            raise LimitError(guest.too_long("", limit_s))
        statuses = [(directory / "status").read_text().split() for directory in directories]
        if not statuses[1]:
            raise CrashError(guest.no_status(hosts[1].kernel, second))
        ticks = sum(int(status[1]) for status in statuses if status)
        return Ended(int(statuses[1][0]), ticks / os.sysconf("SC_CLK_TCK"), messages, recorded)


def _forward(sources: Sequence[tuple[IO[bytes], BinaryIO]]) -> None:
    """Copy what was printed since the last time."""
    for source, sink in sources:
        if printed := source.read():
            sink.write(printed)
            sink.flush()


def _has_ended(keeper: subprocess.Popen[bytes]) -> bool:
    """Whether the kernel of a guest has ended."""
    assert keeper.stdout is not None
    return bool(select.select([keeper.stdout], [], [], 0)[0])


def _init(host: Host) -> str:
    """Return the script that is the first process of a host."""
    return "".join(
        f"{line}\n"
        for line in (
            f"export PATH={shlex.quote(os.environ.get('PATH', ''))}:/usr/sbin:/usr/bin:/sbin:/bin",
            f"directory={shlex.quote(os.getcwd())}",
            f"writable={shlex.quote(' '.join(_word(path.resolve()) for path in host.writable))}",
            f"network={shlex.quote('; '.join(host.network))}",
            f"program={shlex.quote(_command(host) if host.program else '')}",
            f"listens={'yes' if host.listens else ''}",
            f". {shlex.quote(str(Path(__file__).with_name('host_init.sh')))}",
        )
    )


def _word(path: Path) -> str:
    """Return a path as printf(1) reads it by `%b`, without spaces."""
    plain = frozenset(f"{string.ascii_letters}{string.digits}/._-".encode())
    return "".join(chr(byte) if byte in plain else f"\\0{byte:03o}" for byte in os.fsencode(path))


def _command(host: Host) -> str:
    """Return the command of a host's program, as this user, with its environment."""
    user = os.geteuid()
    if host.privileged:
        become: Sequence[str] = ()
    elif user:
        groups = ",".join(map(str, os.getgroups()))
        become = (
            *("setpriv", f"--reuid={user}", f"--regid={os.getegid()}"),
            f"--groups={groups}" if groups else "--clear-groups",
            *(f"--inh-caps={_OF_NETWORKS}", f"--ambient-caps={_OF_NETWORKS}"),
        )
    else:
        become = ("setpriv", f"--bounding-set={_KEPT_FROM_ROOT}")
    variables = [f"{name}={value}" for name, value in host.environment.items()]
    return "exec " + shlex.join([*become, "env", "-i", *variables, *(host.program or ())])
