"""The keeper of a guest: starts its kernel, and leaves nothing behind when the command ends.

Executed by path, without the package: `python guard.py LIFELINE PROCESSOR ARGUMENTS...` in the directory of
the guest, which has its kernel as `linux`. LIFELINE is a descriptor that closes when the command ends, also
by SIGKILL. Prints a line once the kernel has ended. Then, or before if the command does, all processes are
ended; the directory is removed with the command.
"""

import ctypes
import os
import resource
import select
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PDEATHSIG = 1
_CHILD_SUBREAPER = 36
"""Options of prctl(2)."""

ADDR_NO_RANDOMIZE = 0x0040000
"""A personality(2) in which addresses are the same each time, those of the kernel's own data too."""

_STACK_BYTES = 8 << 20
"""The limit of the kernel's stack, on which the addresses of its data depend; the usual one."""


def start(processor: int, arguments: list[str]) -> int:
    """Start the kernel; returns its process identifier."""
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    libc = ctypes.CDLL(None)
    libc.prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)
    # Where this is not permitted, reports say so.
    libc.personality(ADDR_NO_RANDOMIZE)
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    if most in (resource.RLIM_INFINITY, max(most, _STACK_BYTES)):
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, most))
    # The kernel and its processes take turns, and are faster on one processor.
    os.sched_setaffinity(0, {processor})
    null, console = os.open(os.devnull, os.O_RDWR), os.open("console", os.O_WRONLY | os.O_APPEND)
    for number, descriptor in enumerate((null, console, console)):
        os.dup2(descriptor, number)
    os.closerange(3, 256)
    try:
        # By a path that is always the same, since the kernel has it on its stack.
        os.execv("./linux", ["linux", *arguments])
    except OSError as error:
        os.write(2, f"{os.path.realpath('linux')}: {error.strerror}\n".encode())
    os._exit(127)


def end_children() -> None:
    """End all processes that the kernel has left: its programs are processes of this machine."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def main() -> None:
    """Keep one guest."""
    lifeline, processor = int(sys.argv[1]), int(sys.argv[2])
    directory = os.getcwd()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # Orphans become children of this process.
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1)
    kernel = start(processor, sys.argv[3:])
    ended = os.pidfd_open(kernel)
    ready, _, _ = select.select([ended, lifeline], [], [])
    end_children()
    if lifeline not in ready:
        # The command may have ended at the same time.
        with suppress(BrokenPipeError):
            os.write(1, b"ended\n")
        os.read(lifeline, 1)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
