"""Programs that run side by side for a limited time, and what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
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

    They do not see Ctrl-C: then they are interrupted, so that they print what they have.

    Returns
    -------
    bool
        Whether Ctrl-C was pressed.
    """
    with ExitStack() as files:
        running: list[_Running] = []
        interrupted = False
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
            while any(each.process.poll() is None for each in running):
                for each in running:
                    each.interrupt_late()
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            interrupted = True
            for each in running:
                each.signal(signal.SIGINT)
        for each in running:
            each.end()
        return interrupted


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

    def signal(self, number: int) -> None:
        """Send a signal to the program and its children, if it still runs."""
        # Until `wait` has its end, its number is given to no other process.
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def interrupt_late(self) -> None:
        """Interrupt the program if its time is over, and kill it if it did not end then."""
        late_s = time.monotonic() - self.begun_s - self.program.limit_s
        if self.process.poll() is None and late_s >= 0:
            self.signal(signal.SIGINT if late_s < _LEAVE_S else signal.SIGKILL)

    def end(self) -> None:
        """Wait until the program ends, kill it if it does not, and read its output."""
        try:
            self.process.wait(_LEAVE_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self.signal(signal.SIGKILL)
            self.process.wait()
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
