"""Commands in virtual time that are killed: nothing is left of them, and the next runs as ever."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from stub_kernels import (
    ALONE,
    CACHED_ALONE,
    CLIENT,
    SERVER,
    kernel_file,
    needs_kernel_alone,
    processes_of,
    wait_until,
)

from lasthop.cli.failure import CRASHED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels in virtual time need Linux")


VICTIMS = (("command",), ("kernel",), ("keeper",), ("command", "kernel"), ("command", "keeper"))
"""What is killed at once; a keeper is between a command and a kernel."""

RUNS = 200
"""Runs of the campaign, half of them with a kernel for each end."""

SPINNING = """
import os, time
os.fork()
time.sleep(600)
"""


def kill(victims: tuple[str, ...], command: subprocess.Popen[bytes], guests: Path) -> None:
    """Kill the command, the keepers of its guests, or their kernels, whose programs are processes too."""
    chosen = [command.pid] if "command" in victims else []
    parents: dict[str, str] = {}
    for number in processes_of(guests):
        with suppress(OSError):
            status = Path(f"/proc/{number}/stat").read_text()
            is_keeper = b"guard.py" in Path(f"/proc/{number}/cmdline").read_bytes()
            parents[number] = "" if is_keeper else status.rpartition(")")[2].split()[1]
    keepers = {number for number, parent in parents.items() if not parent}
    for number, parent in parents.items():
        if (number in keepers and "keeper" in victims) or (parent in keepers and "kernel" in victims):
            chosen.append(int(number))
    for each in chosen:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def command(kernel: Path, out: Path, *more: str, is_apart: bool) -> list[str]:
    """Return the command, on a kernel or on one for each end."""
    own = ("--server-kernel", str(kernel)) if is_apart else ()
    line = [sys.executable, "-m", "lasthop", "emulate", "last-mile", "--virtual", "--kernel", str(kernel)]
    return [*line, *own, "--out", str(out), *(more or ("--", "true"))]


@pytest.mark.parametrize("is_apart", [False, True])
def test_nothing_is_left_of_a_kernel_that_is_killed(tmp_path: Path, guests: Path, is_apart: bool) -> None:
    kernel = kernel_file(tmp_path / "linux", config=ALONE, body=SPINNING)
    for victims, code in ((("kernel",), CRASHED), (("command", "kernel"), -signal.SIGKILL)):
        line = command(kernel, tmp_path / "out", is_apart=is_apart)
        with subprocess.Popen(line, stderr=subprocess.DEVNULL) as process:
            # Of each guest its keeper and the kernel's two processes.
            wait_until(lambda: len(processes_of(guests)) == (6 if is_apart else 3))
            kill(victims, process, guests)
        assert process.returncode == code
        wait_until(lambda: not processes_of(guests) and not any(guests.iterdir()))


def machine(guests: Path) -> dict[str, list[str]]:
    """Return what runs could leave on this machine outside their directories."""
    seen = {
        "mounts": (Path("/proc/self/mountinfo").read_text(), str(guests)),
        "sockets": (Path("/proc/net/unix").read_text(), str(guests)),
        "huge pages": (Path("/proc/meminfo").read_text(), "HugePages_"),
        "shared memory": ("\n".join(os.listdir("/dev/shm")), "vm_file"),
    }
    return {
        name: sorted(each for each in text.splitlines() if mark in each)
        for name, (text, mark) in seen.items()
    }


@pytest.mark.campaign
@needs_kernel_alone
@pytest.mark.parametrize("is_apart", [False, True])
def test_nothing_is_left_of_many_runs(tmp_path: Path, guests: Path, is_apart: bool) -> None:
    """Each is killed at a random time, and the last one, which is not, gives the bytes of the first."""
    transfer = ("--pcap", "--trace", "--server", SERVER, "--", *CLIENT)
    out = tmp_path / "out"
    line = command(CACHED_ALONE[0].path, out, *transfer, is_apart=is_apart)

    def whole() -> dict[str, bytes]:
        subprocess.run(line, capture_output=True, check=True)
        return {path.name: path.read_bytes() for path in out.iterdir()}

    before, begin = machine(guests), time.monotonic()
    first = whole()
    length_s = time.monotonic() - begin
    drawn, ended = random.Random(45), Counter[str]()
    for _ in range(RUNS // 2):
        victims = drawn.choice(VICTIMS)
        null = subprocess.DEVNULL
        with subprocess.Popen(line, stdout=null, stderr=null) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(drawn.uniform(0, length_s))
            kill(victims, process, guests)
        wait_until(lambda: not processes_of(guests))
        ended[f"{' and '.join(victims)} killed: exit code {process.returncode}"] += 1
    for what, count in sorted(ended.items()):
        print(f"{count} x {what}")
    assert whole() == first
    assert not any(guests.iterdir())
    assert machine(guests) == before
