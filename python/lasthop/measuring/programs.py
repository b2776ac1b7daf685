"""Programs that run side by side for a limited time, and what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

_MOST_BYTES = 1 << 28
"""Limit of what is read of a program's output."""

_MOST_ERRORS = 10_000
"""The same for what it prints of errors."""

_LEAVE_S = 5.0
"""How long a program may take to end after SIGINT, by which irtt, ping and iperf3 print what they have."""

_POLL_S = 0.02


@dataclass(slots=True)
class Program:
    """A program, and when it ran.

    Attributes
    ----------
    command : sequence of str
        The command.
    limit_s : float
        After this time it is interrupted.
    most_bytes : int or None
        For a download: the output is counted and thrown away, and the program ends after so many bytes.
    output, errors : bytes, str
        What it printed.
    arrivals : list of (float, int)
        For a download: seconds since the start, and bytes that arrived then.
    """

    command: Sequence[str]
    limit_s: float
    most_bytes: int | None = None
    output: bytes = b""
    errors: str = ""
    arrivals: list[tuple[float, int]] = field(default_factory=list)


def run(programs: Sequence[Program]) -> bool:
    """Run programs side by side until all have ended, and read their output.

    They do not see Ctrl-C: then they are interrupted, so that they print what they have. However this ends,
    none of them is left, nor a child of theirs; SIGTERM and SIGHUP end this process then.

    Returns
    -------
    bool
        Whether Ctrl-C was pressed.
    """
    running: list[_Running] = []
    with ExitStack() as files, _signals_noted() as noted:
        begun_s = time.monotonic()
        try:
            for program in programs:
                output = files.enter_context(tempfile.TemporaryFile())
                errors = files.enter_context(tempfile.TemporaryFile())
                try:
                    process = subprocess.Popen(
                        program.command,
                        stdin=subprocess.DEVNULL,
                        stdout=output if program.most_bytes is None else subprocess.PIPE,
                        stderr=errors,
                        env=os.environ | {"LC_ALL": "C"},
                        start_new_session=True,
                    )
                except OSError as error:
                    program.errors = str(error)
                    continue
                running.append(_Running(program, process, output, errors, begun_s))
            while not noted and not all(each.ended for each in running):
                for each in running:
                    each.interrupt_late()
                time.sleep(_POLL_S)
            if noted:
                for each in running:
                    each.signal(signal.SIGINT)
            for each in running:
                each.end(noted)
        finally:
            for each in running:
                each.kill()
        if noted and noted[0] != signal.SIGINT:
            raise SystemExit(128 + noted[0])
        return bool(noted)


@contextmanager
def _signals_noted() -> Iterator[list[int]]:
    """Note SIGINT, SIGTERM and SIGHUP during the block, which then do not interrupt it at any place.

    Yields
    ------
    list of int
        The signals so far.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)

    before = {
        number: signal.signal(number, note)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        # One that is ignored stays so, as under nohup.
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(slots=True)
class _Running:
    """A program that runs."""

    program: Program
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    errors: IO[bytes]
    begun_s: float
    counter: threading.Thread | None = None

    def __post_init__(self) -> None:
        """Count what a download brings from its start on."""
        if self.program.most_bytes is not None:
            self.counter = threading.Thread(target=self._count, args=(self.program.most_bytes,), daemon=True)
            self.counter.start()

    @property
    def ended(self) -> bool:
        """Whether the program has ended; its number stays its own, as that of its group, until `kill`."""
        if self.process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, number: int) -> None:
        """Send a signal to the program and its children."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def interrupt_late(self) -> None:
        """Interrupt the program if its time is over, and kill it if it did not end then."""
        late_s = time.monotonic() - self.begun_s - self.program.limit_s
        if not self.ended and late_s >= 0:
            self.signal(signal.SIGINT if late_s < _LEAVE_S else signal.SIGKILL)

    def kill(self) -> None:
        """Kill what is left of the program and its children, and wait for it."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def end(self, noted: Sequence[int]) -> None:
        """Wait until the program ends, kill it if it does not, and read its output.

        A second signal ends the waiting, and one that ends this process too.
        """
        until_s = time.monotonic() + _LEAVE_S
        while not self.ended and time.monotonic() < until_s and list(noted) in ([], [signal.SIGINT]):
            time.sleep(_POLL_S)
        self.kill()
        if self.counter is not None:
            self.counter.join(_LEAVE_S)
        self.output.seek(0)
        self.errors.seek(0)
        self.program.output = self.output.read(_MOST_BYTES)
        self.program.errors = self.errors.read(_MOST_ERRORS).decode(errors="replace").strip()

    def _count(self, most_bytes: int) -> None:
        """Count what arrives, and end the program after its bytes."""
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                self.program.arrivals.append((time.monotonic() - self.begun_s, len(chunk)))
                most_bytes -= len(chunk)
                if most_bytes <= 0:
                    self.signal(signal.SIGKILL)
                    return
