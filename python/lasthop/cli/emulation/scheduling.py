"""How the kernel schedules the thread that carries packets, and the programs at both ends."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import suppress

_PRIORITY = 10
"""The real-time priority."""

_SLICE_NS = 100_000
"""The slice of ordinary scheduling: the shortest that Linux accepts."""

_BEHIND = 10
"""How much nicer programs are than a thread without real-time priority."""

_NICEST = 19

_CALLS = {"x86_64": (314, 315), "s390x": (345, 346), "ppc64le": (355, 356)}
"""The numbers of `sched_setattr` and `sched_getattr`, which have no functions in older C libraries."""

_CALLS_ELSEWHERE = (274, 275)
"""Their numbers in the table of newer architectures, such as aarch64 and riscv64."""


class _Attributes(ctypes.Structure):
    """`struct sched_attr` (sched_setattr(2))."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def request_low_latency() -> dict[str, bool | float | None]:
    """Have this thread run soon after each wake-up, as far as the user is permitted.

    With real-time priority, it precedes all ordinary threads. Otherwise it asks for a short slice: since
    Linux 6.12, an ordinary thread with a shorter slice than the running one takes its place on waking up,
    unless it has used more than its share of the processor. This needs no privilege; older kernels ignore
    it.

    Returns
    -------
    dict
        `real_time`, whether it has real-time priority, and `slice_s`, its slice in seconds: None with
        real-time priority, and where the kernel does not tell.
    """
    if take_real_time():
        return {"real_time": True, "slice_s": None}
    return {"real_time": False, "slice_s": _shorten_slice()}


def take_real_time() -> bool:
    """Give this thread, and what it starts, real-time priority; return whether it is permitted."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        return True
    return False


def leave_real_time() -> None:
    """Make this thread an ordinary one."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def put_behind(process: int) -> None:
    """Lower the priority of a process, and of all that it starts, below that of an ordinary thread.

    With equal priorities, two busy programs and the thread that carries packets have equal shares of two
    processors, and the thread waits if it needs more than its share.
    """
    with suppress(ProcessLookupError, PermissionError):
        nice = os.getpriority(os.PRIO_PROCESS, process) + _BEHIND
        os.setpriority(os.PRIO_PROCESS, process, min(nice, _NICEST))


def _shorten_slice() -> float | None:
    """Ask for the shortest slice; returns the slice in seconds, or None if unknown."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    system_call = ctypes.CDLL(None).syscall
    numbers = _CALLS.get(platform.machine(), _CALLS_ELSEWHERE)
    set_number, get_number = (ctypes.c_long(each) for each in numbers)
    size, none = ctypes.sizeof(_Attributes), ctypes.c_uint(0)
    attributes = _Attributes()
    this = ctypes.c_int(0)
    if system_call(get_number, this, ctypes.byref(attributes), ctypes.c_uint(size), none):
        return None
    attributes.runtime = _SLICE_NS
    system_call(set_number, this, ctypes.byref(attributes), none)
    if system_call(get_number, this, ctypes.byref(attributes), ctypes.c_uint(size), none):
        return None
    return attributes.runtime / 1e9 or None
