"""The first process of a guest: puts files and settings in place, runs a command, and powers off.

Executed by path, without the package. The directory of the guest has

- `job.json`: `command`, `environment`, `directory`, the `user`, `group` and `groups` that it runs as, and
  `writable`, the directories of this machine that the guest may change;
- `stdout`, `stderr`: files for what the command prints;
- `clock`: a file for the seconds since the start, written once a virtual second;
- `status`: a file for the exit code of the command.

The root is that of this machine; changes to it stay in the memory of the guest.
"""

import ctypes
import json
import os
import signal
import subprocess
import time
import traceback
from pathlib import Path
from typing import Any

HERE = "/proc/self/cwd"
"""On the file system of this machine: the directory of the kernel. So no path of a job is on the kernel's
command line, which would seed its random numbers."""

SETTINGS = {
    "net/ipv4/tcp_rmem": "4096 131072 6291456",
    "net/ipv4/tcp_wmem": "4096 16384 4194304",
    "net/core/rmem_max": "8388608",
    "net/core/wmem_max": "8388608",
}
"""What kernels with more memory set (tcp(7)), and room for the buffers of packet sockets."""

PRIORITY = 10
"""The real-time priority of the command, which a user without privileges could not set."""

_MS_NOSUID_NOEXEC = 2 | 8
_MNT_DETACH = 2
_PIVOT_ROOT = 155
_RB_POWER_OFF = 0x4321FEDC

LIBC = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise the error of a system call."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def mount(kind: str, target: str, data: str = "", flags: int = 0) -> None:
    """Mount a file system."""
    check(LIBC.mount(kind.encode(), target.encode(), kind.encode(), flags, data.encode()), target)


def change_root(directory: str, writable: list[str]) -> None:
    """Make a root of this machine's files whose changes stay in memory, but for those in `writable`.

    Shared memory is that of the guest, apart from the directory of the command.
    """
    mount("overlay", "/run/root", "lowerdir=/,upperdir=/run/changes,workdir=/run/work")
    mount("proc", "/run/root/proc", flags=_MS_NOSUID_NOEXEC)
    mount("sysfs", "/run/root/sys", flags=_MS_NOSUID_NOEXEC)
    mount("devtmpfs", "/run/root/dev")
    for name in ("shm", "pts"):
        os.mkdir(f"/run/root/dev/{name}")
    mount("tmpfs", "/run/root/dev/shm")
    mount("devpts", "/run/root/dev/pts", "ptmxmode=666")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/run/root/dev/{name}")
    os.symlink("/proc/self/fd", "/run/root/dev/fd")
    if directory.startswith("/dev/shm/"):
        os.makedirs(f"/run/root{directory}")
        mount(
            "overlay", f"/run/root{directory}", f"lowerdir={directory},upperdir=/run/more,workdir=/run/work2"
        )
    for path in writable:
        os.makedirs(f"/run/root{path}", exist_ok=True)
        mount("hostfs", f"/run/root{path}", path)
    os.chdir("/run/root")
    check(LIBC.syscall(_PIVOT_ROOT, b".", b"."), "pivot_root")
    check(LIBC.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")


def run(job: dict[str, Any], files: dict[str, int]) -> int:
    """Run the command, and note the clock meanwhile; returns its exit code."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    try:
        # Files have the owners that they have on this machine.
        process = subprocess.Popen(
            job["command"],
            cwd=job["directory"],
            env=job["environment"],
            user=job["user"],
            group=job["group"],
            extra_groups=job["groups"],
            stdin=subprocess.DEVNULL,
            stdout=files["stdout"],
            stderr=files["stderr"],
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD]),
        )
    except OSError as error:
        os.write(files["stderr"], f"cannot run {job['command'][0]}: {error.strerror}\n".encode())
        return 127
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == process.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if not pid:
            signal.sigtimedwait([signal.SIGCHLD], 1.0)
            os.pwrite(files["clock"], f"{time.monotonic():.3f}\n".encode(), 0)


def main() -> None:
    """Carry out the job."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    mount("tmpfs", "/run")
    for name in ("job", "changes", "work", "more", "work2", "root"):
        os.mkdir(f"/run/{name}")
    mount("hostfs", "/run/job", HERE)
    os.dup2(os.open("/run/job/console", os.O_WRONLY | os.O_APPEND), 2)
    job = json.loads(Path("/run/job/job.json").read_text())
    files = {
        name: os.open(f"/run/job/{name}", os.O_WRONLY | os.O_APPEND * (name != "clock"))
        for name in ("stdout", "stderr", "clock", "status")
    }
    change_root(job["directory"], job["writable"])
    for name, value in SETTINGS.items():
        Path("/proc/sys", name).write_text(value)
    code = run(job, files)
    os.write(files["status"], f"{code} {time.monotonic():.9f}\n".encode())


if __name__ == "__main__":
    # The kernel opens a console for its first process only where this machine has one.
    while os.open("/dev/null", os.O_RDWR) < 2:
        pass
    try:
        main()
    except OSError:
        # Python has no stderr if it began without one.
        os.write(2, traceback.format_exc().encode())
    LIBC.reboot(_RB_POWER_OFF)
