"""Two kernels in virtual time, one for each end: with stubs, and with kernels where they are cached."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT, run_process
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

from lasthop.cli.failure import CRASHED, LATE
from lasthop.virtual import hosts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels in virtual time need Linux")


def emulate(kernel: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Emulate between two kernels that are the same."""
    names = ("--kernel", str(kernel), "--server-kernel", str(kernel))
    return run_process("emulate", "last-mile", "--virtual", *names, *options, "--", "true")


def test_a_kernel_without_a_network_card_is_refused(tmp_path: Path) -> None:
    shown = emulate(kernel_file(tmp_path / "linux"))
    assert shown.returncode == 2
    assert "cannot be the kernel of one end alone: it lacks network cards outside and their" in shown.stderr
    kernel = kernel_file(tmp_path / "able", config=ALONE)
    shown = run_process(
        *(
            "emulate",
            "last-mile",
            "--virtual",
            "--kernel",
            str(kernel),
            "--server-kernel",
            "none",
            "--",
            "true",
        )
    )
    assert '--server-kernel: there is no file "none"; expected a file, or a version' in shown.stderr


def test_what_goes_wrong_with_a_kernel_is_told_and_leaves_nothing(tmp_path: Path, guests: Path) -> None:
    cases = {
        "print('Kernel panic - not syncing')": (
            CRASHED,
            "ended before the command:\n  Kernel panic - not",
        ),
        "import time; time.sleep(60)": (
            LATE,
            "the programs did not end within 2 s of real time.",
        ),
        # It says something else first.
        "import socket, time; s = socket.socket(socket.AF_UNIX); s.connect('time'); s.send(bytes(16)); "
        "time.sleep(60)": (2, "the kernel of the server: the operation 0 first"),
    }
    for number, (body, (code, message)) in enumerate(cases.items()):
        kernel = kernel_file(tmp_path / f"linux{number}", config=ALONE, body=body)
        shown = emulate(kernel, "--wall-limit", "2")
        assert (shown.returncode, message in shown.stderr) == (code, True), shown.stderr
        wait_until(lambda: not processes_of(guests) and not any(guests.iterdir()))


def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path, guests: Path) -> None:
    kernel = str(kernel_file(tmp_path / "linux", config=ALONE, body="import time; time.sleep(60)"))
    options = ("--virtual", "--kernel", kernel, "--server-kernel", kernel)
    line = [sys.executable, "-m", "lasthop", "emulate", "last-mile", *options, "--", "true"]
    with subprocess.Popen(line) as process:
        # Of each guest its keeper and its kernel.
        wait_until(lambda: len(processes_of(guests)) == 4)
        process.kill()
    wait_until(lambda: not processes_of(guests) and not any(guests.iterdir()))


def test_paths_come_through_the_shell() -> None:
    """Those of writable directories have any bytes."""
    path = Path("/a b/ü$'\"`\\n*/-x")
    script = f"writable='{hosts._word(path)}'; for path in $writable; do printf '%b' \"$path\"; done"
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout == os.fsencode(path)


@needs_kernel_alone
def test_two_runs_are_equal_byte_for_byte(tmp_path: Path) -> None:
    """Captures, reports and prints, over an ARQ and a split; programs keep files where they may."""
    first_kernel, last_kernel = str(CACHED_ALONE[0].path), str(CACHED_ALONE[-1].path)

    def run(name: str, number: int) -> tuple[str, str, dict[str, bytes]]:
        (tmp_path / f"kept {name}").mkdir()
        shown = run_process(
            *(
                "emulate",
                "last-mile",
                "--virtual",
                "--run",
                str(number),
                "--out",
                str(tmp_path / name),
                *("--pcap", "--record-lateness"),
            ),
            *("--kernel", first_kernel, "--server-kernel", last_kernel, "--scheme", "i-tcp", "--set"),
            *("radio.arq.selective-repeat.retransmissions=3", "--writable", str(tmp_path / f"kept {name}")),
            *("--server", SERVER, "--", "sh", "-c"),
            f"uname -r >'{tmp_path}/kept {name}/version'; touch {tmp_path}/gone; id -u; exec \"$@\"",
            *("sh", *CLIENT),
        )
        assert shown.returncode == 0, shown.stderr
        assert (tmp_path / f"kept {name}" / "version").read_text() == f"{CACHED_ALONE[0].version}\n"
        return (
            shown.stdout,
            shown.stderr,
            {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()},
        )

    with ThreadPoolExecutor() as pool:
        first, second, other = pool.map(run, ("first", "second", "other"), (2, 2, 3))
    assert first == second
    assert first[0].startswith(f"{os.geteuid()}\n")
    assert first[2]["results.json"] != other[2]["results.json"]
    assert not (tmp_path / "gone").exists()
    made = json.loads(first[2]["results.json"])
    rows = csv.DictReader(first[2]["i-tcp.lateness.csv"].decode().splitlines())
    late = [(row["to"], float(row["late_s"])) for row in rows]
    assert Counter(late) == {(end["host"], 0.0): end["received_packets"] for end in made["ends"]}
    assert made["virtual"]["kernel"] == CACHED_ALONE[0].version
    assert made["virtual"]["server_kernel"] == CACHED_ALONE[-1].version
    assert made["lateness"]["max_s"] == 0
    assert made["ends"][1]["received_bytes"] > 100_000
    assert made["schemes"]["i-tcp.connections"] == 1


@needs_kernel_alone
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives the privileges of root")
def test_programs_have_the_privileges_of_root_if_asked(tmp_path: Path) -> None:
    mount, kernel = (
        "mount -t tmpfs tmpfs /mnt && ip link set lo up && echo mounted",
        str(CACHED_ALONE[0].path),
    )
    for options, printed in ((("--privileged",), "mounted\n"), ((), "")):
        names = ("--kernel", kernel, "--server-kernel", kernel, *options)
        shown = run_process("emulate", "last-mile", "--virtual", *names, "--", "sh", "-c", mount)
        assert (shown.stdout, shown.returncode == 0) == (printed, bool(printed)), shown.stderr


@needs_kernel_alone
def test_the_simulator_agrees_with_a_kernel_over_a_small_grid() -> None:
    kernel = str(CACHED_ALONE[0].path)
    line = [sys.executable, str(ROOT / "scripts/fidelity.py"), "--virtual", "--runs", "1", "--seconds", "4"]
    line += ["--kernel", kernel, "--server-kernel", kernel, "--case", "10,20,0", "--case", "2,60,0.1,arq"]
    shown = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stderr
    rows = [row.split("|") for row in shown.stdout.splitlines() if " Mb/s |" in row]
    assert [row[5].strip() for row in rows] == 2 * ["reno", "cubic", "bbr"]
    differences = [float(row[-2].split("%")[0]) for row in rows]
    # Deterministic for each version of Linux; of the whole grid, one row of 54 differs by more.
    assert max(map(abs, differences)) < 3, shown.stdout
