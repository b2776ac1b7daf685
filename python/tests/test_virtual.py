"""Programs on kernels in virtual time: with a stub, and with a kernel where one is cached."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT, Command, results, run_process
from stub_kernels import CACHED, CLIENT, SERVER, STUB, kernel_file, processes_of, wait_until

from lasthop.cli.emulation import report
from lasthop.cli.failure import CRASHED, LATE
from lasthop.virtual import guest, kernels, places
from lasthop.virtual.kernels import KernelError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels in virtual time need Linux")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lasthop" / "kernels"


def test_the_draws_of_runs_are_spread_over_the_period() -> None:
    draws = [guest.Draw.of(seed, run) for seed in range(20) for run in range(20)]
    assert len({draw.entropy for draw in draws}) == len(draws)
    phases = sorted(draw.phase_s / guest.PHASES_S for draw in draws)
    assert phases[0] >= 0
    assert phases[-1] < 1
    # The Kolmogorov-Smirnov distance of 400 uniform numbers exceeds 0.1 once in 2,000 times.
    assert max(abs(phase - (at + 0.5) / len(phases)) for at, phase in enumerate(phases)) < 0.1


def run_stub(kernel: Path, command: list[str], *, limit_s: float = 30.0, **more: Any) -> tuple[Any, str, str]:
    """Run a command in a guest; returns how it ended, and what it printed."""
    out, err = io.BytesIO(), io.BytesIO()
    job = guest.Job(command=command, environment={"PATH": os.environ["PATH"]}, writable=[], entropy=7)
    stop = more.get("stop") or threading.Event()
    ended = guest.run(kernels.inspect(kernel), job, limit_s=limit_s, stdout=out, stderr=err, stop=stop)
    return ended, out.getvalue().decode(), err.getvalue().decode()


def test_a_guest_returns_what_its_command_prints_and_its_code(tmp_path: Path, guests: Path) -> None:
    kernel = kernel_file(tmp_path / "linux")
    shown = run_stub(kernel, ["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert shown == (guest.Ended(7, 12.5), "out\n", "err\n")
    assert list(guests.iterdir()) == []


def test_the_command_line_and_the_environment_of_a_kernel_are_those_of_all_jobs(
    tmp_path: Path, guests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They seed the kernel's random numbers, or move its data."""
    seen = tmp_path / "seen"
    # A shell, which starts the stub but not a kernel, adds PWD.
    body = f"""
import os, resource, sys
os.environ.pop("PWD", None)
limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
open({str(seen)!r}, "a").write(f"{{sys.argv[1:]}} {{os.environ}} {{limit}}\\n")
"""
    run_stub(kernel_file(tmp_path / "linux", body=body + STUB), ["true"])
    monkeypatch.setattr(guest, "_memory_places", lambda: (str(guests),))
    limit, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (7 << 20, most))
    try:
        run_stub(kernel_file(tmp_path / "another", body=body + STUB), ["sh", "-c", "true a longer command"])
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (limit, most))
    first, second = seen.read_text().splitlines()
    assert first == second
    assert str(guests) not in first
    assert "'LASTHOP_ENTROPY': '0000000000000007'" in first
    assert "time-travel=inf-cpu" in first


def test_a_kernel_that_ends_early_is_reported_with_what_it_printed(tmp_path: Path, guests: Path) -> None:
    kernel = kernel_file(tmp_path / "linux", body="print('Kernel panic - not syncing')")
    with pytest.raises(guest.CrashError, match=r"(?s)Linux 6\.99\.1 ended before.*Kernel panic - not sync"):
        run_stub(kernel, ["true"])
    assert list(guests.iterdir()) == []


def test_what_is_left_of_killed_commands_is_removed_by_the_next_guest(tmp_path: Path, guests: Path) -> None:
    for name in ("killed", "killed-at-once.new", "young.new"):
        (guests / f"lasthop-guest-{name}" / "within").mkdir(parents=True)
    os.utime(guests / "lasthop-guest-killed-at-once.new", (0, 0))
    running, lock = places.make(guests, "lasthop-guest-")
    run_stub(kernel_file(tmp_path / "linux"), ["true"])
    assert {path.name for path in guests.iterdir()} == {running.name, "lasthop-guest-young.new"}
    os.close(lock)


def test_a_guest_without_room_leaves_nothing(
    tmp_path: Path, guests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, touch = kernel_file(tmp_path / "linux"), Path.touch
    monkeypatch.setattr(guest, "_memory_places", lambda: ("/proc", str(tmp_path / "missing")))
    assert guest.room() == 0
    with pytest.raises(KernelError, match=r"a guest needs 512 MB for its memory, in /proc or in .*noexec"):
        run_stub(kernel, ["true"])
    assert list(guests.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(guests))

    def fill(path: Path) -> None:
        touch(path)
        if path.name == "status":
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "touch", fill)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space left"):
        run_stub(kernel, ["true"])
    assert list(guests.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


WITHOUT_NOTES = {"unforwarded": {"early": 0}}
"""What a report has of which there is nothing to say."""

WITHOUT_PERSONALITY = """
import ctypes, struct
from lasthop.virtual import guest
print(guest.fixes_addresses())
libc = ctypes.CDLL(None)
# A filter of system calls (seccomp(2)) that refuses personality(2), number 135, as that of Docker does.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 135), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filters) == 0
print(guest.fixes_addresses())
"""


def test_a_machine_that_does_not_fix_addresses_is_noticed() -> None:
    line = [sys.executable, "-c", WITHOUT_PERSONALITY]
    shown = subprocess.run(line, capture_output=True, text=True, check=True)
    assert shown.stdout == "True\nFalse\n"
    facts = WITHOUT_NOTES | {"virtual": {"repeatable": False, "polling_s": 0.0}, "duration_s": 1.0}
    (note,) = report._notes(facts)
    assert "may give other bytes" in note


def test_programs_that_still_run_count_as_busy() -> None:
    busy = """
import subprocess, sys, time
from lasthop.cli.emulation import virtual
child = subprocess.Popen([sys.executable, "-c", "while 1: pass"])
end = time.monotonic() + 10
while virtual._busy_s() < 0.1 and time.monotonic() < end:
    time.sleep(0.02)
print(virtual._busy_s() >= 0.1)
child.kill()
"""
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    shown = subprocess.run([*alone, sys.executable, "-c", busy], capture_output=True, text=True, check=False)
    if not shown.stdout and "unshare:" in shown.stderr:
        pytest.skip("this machine permits no process namespace")
    assert shown.stdout == "True\n", shown.stderr


SPINNING = """
import os, time
if not os.fork():
    os.setsid()
open("clock", "w").write("3.250\\n")
time.sleep(600)
"""
"""A kernel with a process in another session, as those of its programs are."""


def test_a_guest_that_takes_too_long_is_ended_and_the_reason_told(tmp_path: Path, guests: Path) -> None:
    kernel = kernel_file(tmp_path / "linux", body=SPINNING)
    with pytest.raises(
        guest.LimitError, match=r"within 0\.5 s of real time, when their clock showed 3\.250 s"
    ):
        run_stub(kernel, ["true"], limit_s=0.5)
    assert list(guests.iterdir()) == []
    assert processes_of(guests) == []


def test_a_guest_is_stopped_by_an_event(tmp_path: Path, guests: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(guest.StoppedError):
        run_stub(kernel_file(tmp_path / "linux", body=SPINNING), ["true"], stop=stop)
    assert processes_of(guests) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path, guests: Path, number: int) -> None:
    kernel = kernel_file(tmp_path / "linux", body=SPINNING)
    line = [sys.executable, "-m", "lasthop", "emulate", "last-mile", "--virtual", "--kernel", str(kernel)]
    process = subprocess.Popen([*line, "--", "true"], stderr=subprocess.PIPE)
    wait_until(lambda: len(processes_of(guests)) == 3)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: not processes_of(guests) and not list(guests.iterdir()))


REPORTING = """
import json, os
told = json.loads(json.load(open("job.json"))["environment"]["LASTHOP_GUEST"])
run, directory = told["run"], told["out"]
report = {"run": run, "exit_code": run % 2, "duration_s": 1.5, "lost_packets": run}
report |= {"metrics": {"queue_drops": 1}, "virtual": {"phase_s": told["phase_s"]}}
report |= {"connections": [{"throughput_bps": 1e6 * run, "queue_drops": 0}]}
os.mkdir(directory)
for name in ("results.json", "scenario.toml", "basic-server.pcapng"):
    open(f"{directory}/{name}", "w").write(str(run))
open("stdout", "w").write(json.dumps(report) if told["as_json"] else "report\\n")
open("stderr", "w").write(f"program {run}\\n")
open("status", "w").write(f"{run % 2} 12.5\\n")
"""
"""Reports as `lasthop emulate` does in a guest."""


def test_several_runs_are_rows(tmp_path: Path) -> None:
    kernel, out = kernel_file(tmp_path / "linux", body=REPORTING), tmp_path / "out"
    line = ("emulate", "last-mile", "--virtual", "--kernel", kernel, "--out", out)
    shown = run_process(*line, "--run", "4", "--runs", "3", "--json", "--", "true")
    assert shown.returncode == 1, shown.stderr
    made = json.loads(shown.stdout)["runs"]
    assert [each["run"] for each in made] == [4, 5, 6]
    assert [each["virtual"]["phase_s"] for each in made] == [
        guest.Draw.of(1, run).phase_s for run in (4, 5, 6)
    ]
    assert shown.stderr == "run 4:\nprogram 4\nrun 5:\nprogram 5\nrun 6:\nprogram 6\n"
    recordings = [f"run-{run}.basic-server.pcapng" for run in (4, 5, 6)]
    assert results(out) == ["results.json", *recordings, "runs.csv", "scenario.toml"]
    assert json.loads((out / "results.json").read_text()) == {"runs": made}
    rows = (out / "runs.csv").read_text().splitlines()
    columns = "run,exit_code,duration_s,lost_packets,queue_drops,phase_s,connection.throughput_bps"
    assert rows[0] == f"{columns},connection.queue_drops"
    assert rows[3] == f"6,0,1.5,6,1,{guest.Draw.of(1, 6).phase_s},6000000.0,0"
    # One run has the names of an emulation in real time.
    shown = run_process(*line, "--", "true")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "report\n", "program 0\n")
    assert results(out) == ["basic-server.pcapng", "results.json", "scenario.toml"]


FAILING = f"""
import json, os, time
run = json.loads(json.load(open("job.json"))["environment"]["LASTHOP_GUEST"])["run"]
if run == 4:
    raise SystemExit
if run == 5:
    open("stdout", "w").write('{{"error": {{"message": "refused"}}}}')
    open("status", "w").write("2 0.5\\n")
    raise SystemExit
{REPORTING}"""
"""Crashes in run 4, and refuses run 5."""


def test_a_run_that_fails_is_a_row_without_metrics(tmp_path: Path) -> None:
    kernel, out = kernel_file(tmp_path / "linux", body=FAILING), tmp_path / "out"
    line = ("emulate", "last-mile", "--virtual", "--kernel", kernel, "--out", out, "--run", "4", "--json")
    shown = run_process(*line, "--runs", "3", "--", "true")
    assert shown.returncode == CRASHED
    assert "run 4:\nerror: Linux 6.99.1 ended before the command" in shown.stderr
    crashed, refused, whole = json.loads(shown.stdout)["runs"]
    assert crashed["problem"].startswith("Linux 6.99.1 ended before the command")
    assert (crashed["exit_code"], refused) == (CRASHED, {"run": 5, "exit_code": 2, "problem": "refused"})
    assert whole["lost_packets"] == 6
    before = results(out)
    assert before == ["results.json", "run-6.basic-server.pcapng", "runs.csv", "scenario.toml"]
    assert (out / "runs.csv").read_text().splitlines()[1:3] == ["4,1,,,,,,", "5,2,,,,,,"]
    # Without a report, the results of the earlier command stay.
    shown = run_process(*line, "--runs", "2", "--", "true")
    assert shown.returncode == CRASHED
    assert json.loads(shown.stdout)["error"]["message"].startswith("no run has a report; the first: Linux")
    assert run_process(*line, "--", "true").returncode == CRASHED
    assert run_process(*line, "--run", "5", "--", "true").returncode == 2
    assert results(out) == before


WRITING = """
import json
job = json.load(open("job.json"))
for path in job["writable"]:
    open(f"{path}/seen", "a").write(job["environment"]["LASTHOP_RUN"])
open("stdout", "w").write('{"error": {"message": "refused"}}')
open("status", "w").write("2 0.5\\n")
"""
"""Writes to the directories that it may change."""


def test_runs_at_once_do_not_change_the_same_directory(tmp_path: Path) -> None:
    kernel, kept = kernel_file(tmp_path / "linux", body=WRITING), tmp_path / "kept"
    kept.mkdir()
    line = ("emulate", "last-mile", "--virtual", "--kernel", kernel, "--writable", kept, "--out")
    run_process(*line, tmp_path / "out", "--run", "3", "--runs", "2", "--", "true")
    written = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("seen")}
    assert written == {"kept/run-3/seen": "3", "kept/run-4/seen": "4"}
    # A single run changes them as in real time.
    run_process(*line, tmp_path / "out", "--run", "3", "--", "true")
    assert (kept / "seen").read_text() == (tmp_path / "out" / "seen").read_text() == "3"


def test_a_crash_and_an_exceeded_limit_have_exit_codes(tmp_path: Path) -> None:
    line = ("emulate", "last-mile", "--virtual", "--kernel", tmp_path / "linux")
    kernel_file(tmp_path / "linux", body="raise SystemExit")
    shown = run_process(*line, "--", "true")
    assert shown.returncode == CRASHED
    assert "ended before the command:\n  it printed nothing" in shown.stderr
    kernel_file(tmp_path / "linux", body=SPINNING)
    shown = run_process(*line, "--wall-limit", "0.2", "--", "true")
    assert shown.returncode == LATE
    assert "raise --wall-limit" in shown.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--kernel", "6.12", "--", "true"), "--kernel is about virtual time; add --virtual"),
        (("--server-kernel", "6.12", "--", "true"), "--server-kernel is about virtual time; add --virtual"),
        (("--runs", "2", "--", "true"), "--runs is about virtual time; add --virtual"),
        (("--wall-limit", "9", "--", "true"), "--wall-limit is about virtual time; add --virtual"),
        (("--virtual", "--jobs", "2", "--", "true"), "--jobs is about several runs; add --runs N"),
        (
            ("--virtual", "--kernel", sys.executable, "--", "true"),
            f"{Path(sys.executable).resolve()} is no Linux kernel",
        ),
        (("--virtual",), "--virtual: a shell would wait for you in real time"),
        (
            ("--virtual", "--between", "a", "b", "--", "true"),
            "--between: interfaces of this machine live in real",
        ),
        (
            ("--virtual", "--wall-limit", "0", "--", "true"),
            "--wall-limit: expected seconds, such as 600, found 0",
        ),
        (("--virtual", "--", "true"), "has none; build one, which takes some minutes: lasthop kernel build"),
    ],
)
def test_what_cannot_work_is_refused(
    command: Command, cache: Path, options: tuple[str, ...], problem: str
) -> None:
    shown = command("emulate", "last-mile", *options)
    assert shown.returncode == 2
    assert problem in shown.stderr


@pytest.mark.parametrize("options", [(), ("--virtual",), ("--virtual", "--server-kernel", "6.12")])
def test_only_root_gives_the_privileges_of_root(
    command: Command, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    shown = command("emulate", "last-mile", *options, "--privileged", "--", "true")
    assert shown.returncode == 2
    assert "--privileged gives programs the privileges of root, and this user is another one" in shown.stderr


def test_programs_that_read_clocks_over_and_over_are_told() -> None:
    facts = WITHOUT_NOTES | {"virtual": {"repeatable": True, "polling_s": 0.6}, "duration_s": 10.0}
    (note,) = report._notes(facts)
    assert "read clocks over and over for 600 ms of virtual time" in note
    assert list(report._notes(facts | {"duration_s": 20.0})) == []
    assert list(report._notes(facts | {"virtual": None})) == []
    # Some ticks by chance, where hardly a packet was sent.
    start = {"virtual": {"repeatable": True, "polling_s": 0.012}, "duration_s": 0.0}
    assert list(report._notes(facts | start)) == []


@pytest.mark.parametrize("guest", [None, SimpleNamespace(facts=dict)])
def test_in_virtual_time_no_problem_is_that_of_a_slow_machine(guest: Any) -> None:
    scenario = SimpleNamespace(title="", file="", hash="", sweep=[])
    fields = {"scheme": "basic", "seed": 1, "run": 0, "lateness_ms": 5.0}
    emulation: Any = SimpleNamespace(scenario=scenario, guest=guest, **fields)
    carried = {
        "lateness": {"p99_s": 1.0},
        "overload_drops": 1,
        "backlog_drops": 1,
        "links": [],
        "schemes": {},
    }
    made = report.document(emulation, None, carried | {"unforwarded": {"oversized": 0}}, 0)
    assert len(made["problems"]) == 3
    assert all(("machine" in problem) == (guest is None) for problem in made["problems"])


# On a kernel.


@pytest.mark.skipif(not CACHED, reason="there is no kernel in the cache; lasthop kernel build makes one")
def test_two_runs_are_equal_byte_for_byte(tmp_path: Path) -> None:
    """Captures and reports, wherever kernel and command are; another run differs, and other files stay."""
    victim, kept = tmp_path / "victim", tmp_path / "kept"
    victim.write_text("whole")
    kept.mkdir()

    (tmp_path / "elsewhere").mkdir()
    kernel = tmp_path / "a-kernel-with-a-longer-path"
    shutil.copy2(CACHED[0].path, kernel)

    def emulate(name: str, run: int, *, is_elsewhere: bool = False) -> tuple[str, str, dict[str, bytes]]:
        options = ("--virtual", "--run", run, "--out", tmp_path / name, "--pcap", "--writable", kept)
        line = [*map(str, options), "--kernel", str(kernel if is_elsewhere else CACHED[0].path)]
        line = [sys.executable, "-m", "lasthop", "emulate", "last-mile", *line, "--server", SERVER, "--"]
        spoil = ["sh", "-c", f'echo spoilt > {victim}; echo kept > {kept / name}; exec "$@"', "sh"]
        shown = subprocess.run(
            [
                "sh",
                "-c",
                f'ulimit -s {4096 if is_elsewhere else 8192}; exec "$@"',
                "sh",
                *line,
                *spoil,
                *CLIENT,
            ],
            cwd=tmp_path / "elsewhere" if is_elsewhere else ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert shown.returncode == 0, shown.stderr
        written = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        return shown.stdout, shown.stderr, written

    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(emulate, "first", 2), pool.submit(emulate, "second", 2, is_elsewhere=True)]
        runs.append(pool.submit(emulate, "other", 3))
        first, second, other = (each.result() for each in runs)
    assert victim.read_text() == "whole"
    assert results(kept) == ["first", "other", "second"]
    assert first == second
    assert first[0] != other[0]
    made = json.loads(first[2]["results.json"])
    assert made["virtual"]["kernel"] == CACHED[0].version
    assert made["virtual"]["kernel_sha256"] == CACHED[0].sha256
    assert made["lateness"]["p99_s"] < 20e-6
    # The channel is that of the simulator, whatever the kernel makes of it.
    assert 0 < made["connections"][0]["throughput_bps"] < 10e6


AS_ANOTHER_USER = """
set -e
home=$PWD
mkdir aside
if test "$REACHABLE"; then
    mount --bind "$TOP" aside
    mount -t tmpfs -o mode=755 tmpfs "$TOP"
    for name in $REACHABLE; do
        mkdir "$TOP/$name"
        mount --bind "aside/$name" "$TOP/$name"
    done
    umount aside
fi
rmdir aside
chown -R 65534:65534 "$home"
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""
"""Runs a command as a user without privileges, who owns this directory, and reaches a part of root's home."""


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a home that its user alone may enter, outside pytest's directories, closed to others."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = Path(directory)
        (path / "client").write_text("#!/bin/sh\ncat key; cp key kept/copy; id -u > results/user\n")
        (path / "client").chmod(0o700)
        (path / "key").write_text("secret\n")
        (path / "key").chmod(0o600)
        (path / "kept").mkdir()
        yield path


@pytest.mark.skipif(not CACHED, reason="there is no kernel in the cache; lasthop kernel build makes one")
def test_a_directory_in_shared_memory_is_seen() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        here = Path(directory)
        (here / "file").write_text("shared\n")
        line = [
            sys.executable,
            "-m",
            "lasthop",
            "emulate",
            "last-mile",
            "--virtual",
            "--out",
            "results",
            "--",
        ]
        line += ["sh", "-c", "cat file; echo gone > gone; echo kept > results/kept"]
        shown = subprocess.run(line, cwd=here, capture_output=True, text=True, timeout=60, check=False)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout == "shared\n"
        assert sorted(path.name for path in here.iterdir()) == ["file", "results"]
        assert results(here / "results") == ["kept", "results.json", "scenario.toml"]
        for refused in ("/", "/dev", "/proc"):
            shown = run_process("emulate", "last-mile", "--virtual", "--writable", refused, "--", "true")
            assert f"{refused}: guests have their own" in shown.stderr


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_user_without_privileges_has_the_files_of_real_time(home: Path, is_apart: bool) -> None:
    able = [kernel for kernel in CACHED if not (is_apart and kernel.lacks_alone)]
    if not able:
        pytest.skip("there is no such kernel in the cache; lasthop kernel build makes one")
    shutil.copy2(able[0].path, home / "linux")
    kernels_of_ends = ("--kernel", "./linux", *(("--server-kernel", "./linux") if is_apart else ()))
    options = ("--virtual", *kernels_of_ends, "--out", "results", "--writable", "kept", "--", "./client")
    line = [sys.executable, "-m", "lasthop", "emulate", "last-mile", *options]
    environment = os.environ | {"HOME": str(home), "TMPDIR": str(home)}
    if os.geteuid() == 0:
        needed = {Path(*Path(each).parts[:3]) for each in (sys.base_prefix, sys.prefix, str(ROOT))}
        within = sorted(each for each in needed if not each.parent.stat().st_mode & 1)
        environment |= {"REACHABLE": " ".join(each.name for each in within)}
        environment |= {"TOP": str(within[0].parent) if within else ""}
        line = ["unshare", "--mount", "sh", "-c", AS_ANOTHER_USER, "sh", *line]
    shown = subprocess.run(
        line, cwd=home, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == "secret\n"
    assert (home / "kept" / "copy").read_text() == "secret\n"
    # With one kernel, programs are root in user namespaces of their own.
    user = os.geteuid() or 65534
    assert (home / "results" / "user").read_text() == f"{user if is_apart else 0}\n"
    assert results(home / "results") == ["results.json", "scenario.toml", "user"]
    assert sorted(path.name for path in home.iterdir()) == ["client", "kept", "key", "linux", "results"]
