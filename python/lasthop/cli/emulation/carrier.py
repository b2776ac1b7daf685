"""The thread that carries the packets of an emulation between two interfaces."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lasthop import Scenario
from lasthop._lasthop import Emulator
from lasthop.cli.emulation import scheduling
from lasthop.cli.output import Output, run_stem

PATIENCE = 2.0
"""Seconds between SIGTERM and SIGKILL when programs are ended."""

_SIOCGIFFLAGS = 0x8913
_UP_AND_RUNNING = 0x1 | 0x40
"""Flags of an interface (netdevice(7))."""

_LONGEST_WAIT = 0.05
"""Packets are dropped if they waited to be read for more than these seconds and ten times the bound."""


class Guest(Protocol):
    """What an emulation in virtual time knows of its guest."""

    def wait_for_phase(self) -> None:
        """Sleep until the phase in which the client starts."""

    def facts(self) -> dict[str, Any]:
        """Return what a report has of the guest, after the programs have ended."""


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """A scenario with one of its schemes, and what is recorded and reported of it.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    scheme : str
        The scheme.
    seed, run : int
        They determine the random numbers.
    lateness_ms : float
        The bound of the 99th percentile of packets' lateness, in milliseconds.
    out : Path or None
        The directory of the report and the recordings.
    pcap, trace, record_lateness : bool
        Whether to record packets as pcapng, those of TCP as CSV, and how late each was.
    as_json : bool
        Whether the report is printed as JSON on stdout, and what programs print there goes to stderr.
    guest : Guest or None
        The guest in which it runs, in virtual time; None in real time.
    """

    scenario: Scenario
    scheme: str
    seed: int
    run: int
    lateness_ms: float
    out: Path | None
    pcap: bool
    trace: bool
    record_lateness: bool
    as_json: bool
    guest: Guest | None = None


def stop_on_termination() -> threading.Event:
    """Return an event that SIGTERM and SIGHUP set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    return stop


def leave_interrupts_to_programs(end: Callable[[], object] | None = None) -> None:
    """Leave Ctrl-C to the command; the emulation ends when the command does.

    A terminal sends the signal to the programs as well, `kill` to one process alone.

    Parameters
    ----------
    end : callable, optional
        What to do if this process alone is interrupted. The signal is blocked then, and programs have to
        call `let_interrupts_through`.
    """
    # Child processes would inherit SIG_IGN.
    signal.signal(signal.SIGINT, lambda *_: None)
    if end is None:
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

    def watch() -> None:
        while signal.sigwaitinfo([signal.SIGINT]).si_code > 0:
            pass
        end()

    threading.Thread(target=watch, daemon=True).start()


def let_interrupts_through() -> None:
    """Undo what `leave_interrupts_to_programs` does, in a child process."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


class Interfaces:
    """Notices interfaces that disappear, or go down.

    Parameters
    ----------
    names : sequence of str
        Their names.
    come_up : bool
        Whether they are sure to be up before a program begins, which may put them down at once.
    """

    def __init__(self, names: Sequence[str], *, come_up: bool = False) -> None:
        self._numbers = {name: _number(name) for name in names}
        self._were_up = {name for name in names if come_up or _is_up(name)}
        self.gone: list[str] = []
        self.down: list[str] = []

    def look(self, name: str) -> bool:
        """Return whether an interface has just disappeared or gone down."""
        if name in self.gone or name in self.down:
            return False
        return _number(name) != self._numbers[name] or (name in self._were_up and not _is_up(name))

    def note(self, name: str) -> None:
        """Note what happened to it."""
        (self.gone if _number(name) != self._numbers[name] else self.down).append(name)


def _number(name: str) -> int | None:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return None


def _is_up(name: str) -> bool:
    """Whether an interface is up, and its other end is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            reply = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
        except OSError:
            return False
    (flags,) = struct.unpack_from("H", reply, 16)
    return bool(flags & _UP_AND_RUNNING == _UP_AND_RUNNING)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process: SIGTERM first, SIGKILL after a timeout."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


class Carrier:
    """The thread that carries packets. It drops its privileges, since packets are untrusted input.

    It has real-time priority if the user is permitted to set it, and otherwise a short slice.

    Parameters
    ----------
    emulation : Emulation
        What to emulate and to record.
    interfaces : (str, str)
        The interfaces at the source and at the destination of the data.
    mtu : int
        Their MTU.
    output : Output or None
        The directory of results.
    stop : threading.Event
        Ends the emulation.
    wire : bool
        Whether all frames are carried, as by a wire, and not only IP packets of the two ends.

    Raises
    ------
    PermissionError
        If this process may not read frames.
    """

    def __init__(
        self,
        emulation: Emulation,
        interfaces: tuple[str, str],
        mtu: int,
        output: Output | None,
        stop: threading.Event,
        *,
        wire: bool,
    ) -> None:
        self._stop, self._output, self._emulation = stop, output, emulation
        self._emulator = Emulator(
            emulation.scenario,
            emulation.scheme,
            interfaces,
            seed=emulation.seed,
            run=emulation.run,
            mtu=mtu,
            longest_wait=max(_LONGEST_WAIT, 10 * emulation.lateness_ms / 1e3),
            pcap=captures(output, emulation),
            wire=wire,
            trace=emulation.trace,
            lateness=emulation.record_lateness,
            virtual_time=emulation.guest is not None,
        )
        self._backlog_drops = 0
        self._scheduled = threading.Event()
        self._begin = threading.Event()
        self._traces: list[tuple[str, dict[str, Any]]] = []
        self._lateness: dict[str, Any] | None = None
        self._report: dict[str, Any] = {}
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        try:
            self._report |= scheduling.request_low_latency()
        finally:
            self._scheduled.set()
        self._emulator.drop_privileges()
        self._begin.wait()
        try:
            report, self._traces, self._lateness = self._emulator.run(lambda: not self._stop.is_set())
            self._report |= json.loads(report)
        except OSError as error:
            self._failure = error
            self._stop.set()

    def has_real_time(self) -> bool:
        """Return whether its thread has real-time priority."""
        self._scheduled.wait()
        return bool(self._report.get("real_time"))

    def begin(self) -> None:
        """Carry packets from now on."""
        self._backlog_drops = _backlog_drops()
        self._begin.set()

    def report(self) -> dict[str, Any]:
        """Wait until it has stopped, and return its report."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._report | {"backlog_drops": _backlog_drops() - self._backlog_drops}

    def write(self, report: dict[str, Any]) -> None:
        """Write the report, the scenario and the recordings, if there is a directory for them."""
        if self._output is not None:
            write(self._output, self._emulation, report, self._traces, self._lateness)


def captures(output: Output | None, emulation: Emulation) -> tuple[Path, Path] | None:
    """Return the files of the packets at the server and at the client, if they are recorded."""
    if output is None or not emulation.pcap:
        return None
    names = [f"{run_stem(emulation.scheme)}-{end}.pcapng" for end in ("server", "client")]
    server, client = (output.path(name, "pcapng") for name in names)
    return server, client


def write(
    output: Output,
    emulation: Emulation,
    report: dict[str, Any],
    traces: list[tuple[str, dict[str, Any]]],
    lateness: dict[str, Any] | None,
) -> None:
    """Write a report, the scenario and the recordings."""
    output.text("scenario.toml", emulation.scenario.to_toml())
    output.text("results.json", json.dumps(report, indent=2) + "\n")
    if not traces and lateness is None:
        return
    # Takes longer to import than all the rest.
    from lasthop import plots

    stem = run_stem(emulation.scheme)
    for number, (name, events) in enumerate(traces):
        # As those of `lasthop run`, for the connection with most data.
        named = run_stem(f"{stem}.{name}" if number else stem)
        plots.write_csv(output.path(f"{named}.events.csv", "traces"), events)
    if lateness is not None:
        plots.write_csv(output.path(f"{stem}.lateness.csv", "lateness"), lateness)


def _backlog_drops() -> int:
    """Return how many packets this machine has dropped between two devices, since it was started."""
    with suppress(OSError), open("/proc/net/softnet_stat") as lines:
        return sum(int(line.split()[1], 16) for line in lines)
    return 0
