"""Emulation on kernels of its own, in virtual time: `lasthop emulate --virtual`.

```text
lasthop emulate --virtual      finds the kernel, prints rows of several runs
  guest                        Linux as a process, whose clock advances while all wait; one for each run
    unshare: user, network, process and mount namespaces
      lasthop emulate          as in namespaces.py; prints the report
```
"""

from __future__ import annotations

import csv
import io
import json
import os
import queue
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import typer

from lasthop.cli.emulation import apart, namespaces, report
from lasthop.cli.emulation.apart import Apart
from lasthop.cli.emulation.carrier import Emulation, stop_on_termination
from lasthop.cli.failure import CRASHED, LATE, RefusedError, failed, warn
from lasthop.cli.output import FILES, Output
from lasthop.cli.streams import emit_document, notify
from lasthop.virtual import guest, kernels
from lasthop.virtual.kernels import Kernel, KernelError

_INSIDE = "LASTHOP_GUEST"
"""The environment variable of a command in a guest, with the fields of `Inside` as JSON."""

_CODES: dict[type[Exception], int] = {guest.LimitError: LATE, guest.CrashError: CRASHED}
"""Exit codes of runs without a report."""

_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Inside:
    """What a command in a guest is told by the one outside.

    Parameters
    ----------
    kernel : str
        The version of the guest's kernel.
    kernel_sha256 : str
        The SHA-256 of its file.
    repeatable : bool
        Whether another run with the same seed gives the same bytes.
    run : int
        The run's number.
    phase_s : float
        When the client starts within a period of clocks, in seconds.
    out : str or None
        The directory of its results.
    as_json : bool
        Whether it prints its report as JSON.
    """

    kernel: str
    kernel_sha256: str
    repeatable: bool
    run: int
    phase_s: float
    out: str | None
    as_json: bool

    @property
    def directory(self) -> Path | None:
        """The directory of its results."""
        return None if self.out is None else Path(self.out)

    def wait_for_phase(self) -> None:
        """Sleep until the phase in which the client starts."""
        time.sleep((self.phase_s - time.monotonic()) % guest.PHASES_S)

    def facts(self) -> dict[str, Any]:
        """Return what a report has of the guest, after the programs have ended.

        The clock stands still while a program computes, so that its processor time is that of reading clocks.
        """
        return {
            "kernel": self.kernel,
            "kernel_sha256": self.kernel_sha256,
            "repeatable": self.repeatable,
            "phase_s": self.phase_s,
            "polling_s": _busy_s(),
        }


def _busy_s() -> float:
    """Return the processor time of all other processes: those that have ended, and those that run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        # One that has just ended, and this one.
        with suppress(OSError):
            if int(process.name) != os.getpid():
                # In proc(5), utime, stime, cutime and cstime are fields 14 to 17, and the name is field 2.
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
    return used.ru_utime + used.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def inside() -> Inside | None:
    """Return what this command was told, if it is in a guest. Programs that it runs are not told."""
    told = os.environ.pop(_INSIDE, None)
    return None if told is None else Inside(**json.loads(told))


@dataclass(frozen=True, kw_only=True)
class Guests:
    """How guests are run.

    Parameters
    ----------
    kernel : str or None
        The kernel's file or version; by default the newest that was built.
    runs : int or None
        How many runs; None for a single one.
    jobs : int or None
        Guests at once; by default one for each processor.
    limit_s : float
        How long each may take in real time, in seconds.
    writable : Path or None
        A directory that the programs may change.
    privileged : bool
        Whether the programs have the privileges of root.
    apart : Apart or None
        What runs at the ends if each has a kernel of its own; by default both have one together.
    """

    kernel: str | None
    runs: int | None
    jobs: int | None
    limit_s: float
    writable: Path | None
    privileged: bool
    apart: Apart | None = None


def emulate(emulation: Emulation, guests: Guests) -> int:
    """Emulate in guests; returns the exit code: of several runs the first that is not 0.

    Parameters
    ----------
    emulation : Emulation
        What to emulate. The guests parse the command line again.
    guests : Guests
        How to run them.

    Raises
    ------
    RefusedError
        If there is no kernel for it.
    """
    namespaces.refuse_without_tools()
    with _failures():
        kernel = kernels.find(guests.kernel, warn)
        output = None if emulation.out is None else Output(emulation.out)
        with output or nullcontext():
            laboratory = _Laboratory(emulation, guests, kernel, output)
            if guests.runs is None:
                code = laboratory.run(emulation.run, sys.stdout.buffer, sys.stderr.buffer)
                if output is not None and not (output.staging / "results.json").exists():
                    # Without results, those of an earlier command stay.
                    raise typer.Exit(code)
                return code
            return laboratory.runs(range(emulation.run, emulation.run + guests.runs))


@contextmanager
def _failures() -> Iterator[None]:
    """Turn what goes wrong with a guest into a message and an exit code."""
    try:
        yield
    except KernelError as error:
        raise RefusedError.of(error) from None
    except (guest.LimitError, guest.CrashError) as error:
        raise failed("run", str(error), code=_CODES[type(error)]) from None
    except guest.StoppedError:
        raise typer.Exit(_TERMINATED) from None


class _Made(NamedTuple):
    """A run of several.

    Attributes
    ----------
    code : int
        Its exit code.
    report : dict
        Its report; without one `run`, `exit_code` and the `problem`.
    printed : str
        What the programs printed, and warnings.
    """

    code: int
    report: dict[str, Any]
    printed: str


class _Laboratory:
    """Makes the runs of an emulation, each in a guest on a processor of its own.

    Parameters
    ----------
    emulation : Emulation
        What to emulate.
    guests : Guests
        How to run them.
    kernel : Kernel
        Their kernel.
    output : Output or None
        The directory of results.
    """

    def __init__(self, emulation: Emulation, guests: Guests, kernel: Kernel, output: Output | None) -> None:
        self._emulation, self._guests, self._kernel, self._output = emulation, guests, kernel, output
        self._server_kernel = None
        if guests.apart is not None:
            self._server_kernel = kernels.find(guests.apart.server_kernel, warn, "--server-kernel")
            for each in (self._server_kernel, kernel):
                kernels.refuse_alone(each)
        self._stop = stop_on_termination()
        self._repeatable = guest.fixes_addresses()
        processors = sorted(os.sched_getaffinity(0))
        self._jobs = min(guests.jobs or len(processors), guests.runs or 1)
        if self._jobs > (room := max(guest.room(), 1)):
            warn(f"runs at once: {room}, not {self._jobs}, for this machine has no room for more in memory")
            self._jobs = room
        # Several commands at once begin with different ones.
        first = os.getpid() % len(processors)
        self._processors: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(max(self._jobs, len(processors))):
            self._processors.put(processors[(first + number) % len(processors)])

    def run(self, run: int, stdout: BinaryIO, stderr: BinaryIO) -> int:
        """Make one run; returns its exit code.

        Parameters
        ----------
        run : int
            The run's number.
        stdout, stderr : binary file
            Get what it prints.
        """
        output, is_one = self._output, self._guests.runs is None
        directory = None if output is None else output.staging / f"guest-{run}"
        processor = self._processors.get()
        try:
            if self._server_kernel is not None:
                code = self._run_apart(run, directory, stdout, stderr, processor)
            else:
                code = self._run_together(run, directory, stdout, stderr, processor)
            if output is not None and directory is not None and directory.is_dir():
                # Several runs have one report and one scenario.
                left_out = (FILES,) if is_one else (FILES, "results.json", "scenario.toml")
                for path in sorted(directory.iterdir()):
                    if path.name not in left_out:
                        name = path.name if is_one else f"run-{run}.{path.name}"
                        os.replace(path, output.path(name, "recordings"))
        finally:
            self._processors.put(processor)
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)
        return code

    def _run_together(
        self, run: int, directory: Path | None, stdout: BinaryIO, stderr: BinaryIO, processor: int
    ) -> int:
        """Make one run on one kernel, by this command in a guest; returns its exit code."""
        emulation, is_one = self._emulation, self._guests.runs is None
        draw = guest.Draw.of(emulation.seed, run)
        told = Inside(
            kernel=self._kernel.version,
            kernel_sha256=self._kernel.sha256,
            repeatable=self._repeatable,
            run=run,
            phase_s=draw.phase_s,
            out=None if directory is None else str(directory.resolve()),
            as_json=emulation.as_json or not is_one,
        )
        more = {_INSIDE: json.dumps(asdict(told)), "LASTHOP_RUN": str(run), "PYTHONDONTWRITEBYTECODE": "1"}
        job = guest.Job(
            command=namespaces.command_in_guest(privileged=self._guests.privileged),
            environment=os.environ | more,
            writable=self._writable(run),
            entropy=draw.entropy,
        )
        ended = guest.run(
            self._kernel,
            job,
            limit_s=self._guests.limit_s,
            stdout=stdout,
            stderr=stderr,
            stop=self._stop,
            processor=processor,
        )
        return ended.exit_code

    def _run_apart(
        self, run: int, directory: Path | None, stdout: BinaryIO, stderr: BinaryIO, processor: int
    ) -> int:
        """Make one run on a kernel for each end, and print its report; returns its exit code."""
        is_one = self._guests.runs is None
        emulation = replace(
            self._emulation, run=run, out=directory, as_json=self._emulation.as_json or not is_one
        )
        assert self._guests.apart is not None
        assert self._server_kernel is not None
        document = apart.emulate(
            emulation,
            self._guests.apart,
            (self._server_kernel, self._kernel),
            repeatable=self._repeatable,
            privileged=self._guests.privileged,
            writable=self._writable(run),
            limit_s=self._guests.limit_s,
            stdout=stdout,
            stderr=stderr,
            stop=self._stop,
            processor=processor,
        )
        if is_one:
            return report.publish(document, as_json=emulation.as_json)
        stdout.write(json.dumps(document).encode())
        stderr.write("".join(f"{line}\n" for line in report.warnings(document)).encode())
        return report.code_of(document)

    def _writable(self, run: int) -> list[Path]:
        """Return the directories that a run may change: of several at once, each has its own."""
        chosen, output, is_one = self._guests.writable, self._output, self._guests.runs is None
        if chosen is not None and not is_one:
            chosen /= f"run-{run}"
            chosen.mkdir(exist_ok=True)
        results = None if output is None else output.directory if is_one else output.staging
        return [_mountable(each) for each in (chosen, results) if each is not None]

    def runs(self, numbers: Sequence[int]) -> int:
        """Make several runs at once, and print a row for each; returns the exit code."""
        made: list[_Made] = []
        with ThreadPoolExecutor(self._jobs) as pool:
            begun = [pool.submit(self._captured, number) for number in numbers]
            try:
                for number, each in zip(numbers, begun, strict=True):
                    made.append(each.result())
                    if printed := made[-1].printed.rstrip():
                        notify(f"run {number}:\n{printed}")
            except BaseException:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        reports = [each.report for each in made]
        code = next((each.code for each in made if each.code), 0)
        if all("problem" in each for each in reports):
            raise failed("run", f"no run has a report; the first: {reports[0]['problem']}", code=code)
        document = json.dumps({"runs": reports}, indent=2)
        if self._output is not None:
            self._output.text("results.json", f"{document}\n")
            self._output.text("scenario.toml", self._emulation.scenario.to_toml())
            _write_rows(self._output, reports)
        if self._emulation.as_json:
            emit_document(document)
        else:
            _print_rows(reports)
        return code

    def _captured(self, run: int) -> _Made:
        """Make one run, and return what it prints."""
        stdout, stderr = io.BytesIO(), io.BytesIO()
        try:
            code = self.run(run, stdout, stderr)
            document = json.loads(stdout.getvalue() or b"{}")
        except (guest.LimitError, guest.CrashError) as error:
            code, document = _CODES[type(error)], {"error": {"message": str(error)}}
            stderr.write(f"error: {error}".encode())
        printed = stderr.getvalue().decode(errors="replace")
        if "run" not in document:
            problem = document.get("error", {}).get("message", "the emulation ended without a report")
            document = {"run": run, "exit_code": code, "problem": problem}
        return _Made(code, document, printed)


def _mountable(directory: Path) -> Path:
    """Return a directory, unless a guest has another one in its place."""
    path = directory.resolve()
    is_shared_memory = Path("/dev/shm") in path.parents
    if not path.parts[1:] or (path.parts[1] in ("dev", "proc", "sys") and not is_shared_memory):
        raise RefusedError(
            f"{directory}: guests have their own; ",
            remedy="choose a directory below another one, such as /home",
        )
    return path


def _row(report: dict[str, Any]) -> dict[str, Any]:
    """Return a run as a row: its metrics, and those of the connection with most data."""
    if "problem" in report:
        return {"run": report["run"], "exit_code": report["exit_code"]}
    row: dict[str, Any] = {name: report[name] for name in ("run", "exit_code", "duration_s", "lost_packets")}
    row |= report["metrics"]
    row |= {"phase_s": report["virtual"]["phase_s"]}
    for connection in report["connections"][:1]:
        # Some are metrics of the network too.
        row |= {f"connection.{name}": value for name, value in connection.items()}
    return row


def _write_rows(output: Output, reports: list[dict[str, Any]]) -> None:
    """Write `runs.csv`."""
    rows = [_row(report) for report in reports]
    text = io.StringIO()
    writer = csv.DictWriter(text, dict.fromkeys(name for row in rows for name in row), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    output.text("runs.csv", text.getvalue())


def _print_rows(reports: list[dict[str, Any]]) -> None:
    """Print a row for each run."""
    from lasthop.cli.table import Table, in_common
    from lasthop.core.units import RATES

    rows = [_row(report) for report in reports]
    unit, rates = in_common([row.get("connection.throughput_bps") for row in rows], RATES)
    table = Table(">run", f">throughput ({unit})", ">duration (s)", ">lost packets", ">exit code")
    for row, rate in zip(rows, rates, strict=True):
        if "duration_s" in row:
            shown = (f"{row['duration_s']:.2f}", f"{row['lost_packets']:,}")
        else:
            shown = ("-", "-")
        table.row(str(row["run"]), rate, *shown, str(row["exit_code"]))
    table.print()
