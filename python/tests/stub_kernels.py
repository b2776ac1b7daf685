"""Kernels in virtual time: those of the cache, a program in place of one, and what is left of it."""

from __future__ import annotations

import gzip
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

from lasthop.virtual import kernels

CONFIGURATION = "".join(f"CONFIG_{option}=y\n" for option in kernels._NEEDED)

ALONE = "".join(f"CONFIG_{option}=y\n" for option in kernels._NEEDED_ALONE)
"""What the kernel of one end needs beside it."""

CACHED = kernels.built(print)
"""The kernels in the cache, the newest first."""

CACHED_ALONE = [kernel for kernel in CACHED if not kernel.lacks_alone]
"""Those that can be that of one end."""

needs_kernel_alone = pytest.mark.skipif(
    not CACHED_ALONE, reason="no kernel in the cache can be alone; lasthop kernel build makes one"
)

_ENDS = [sys.executable, "-I", "-S", str(ROOT / "scripts/tcp_ends.py")]
SERVER, CLIENT = shlex.join([*_ENDS, "send", "cubic"]), [*_ENDS, "receive", "{server}", "2"]
"""The programs of a transfer by CUBIC for two seconds."""

STUB = """
import json, os, subprocess, sys
job = json.load(open("job.json"))
with open("stdout", "wb") as out, open("stderr", "wb") as err:
    code = subprocess.call(job["command"], env=job["environment"], stdout=out, stderr=err)
print("booted", file=sys.stderr)
open("status", "w").write(f"{code} 12.5\\n")
"""
"""Runs the command of a guest on this machine, in real time."""


def kernel_file(path: Path, *, version: str = "6.99.1", config: str = "", body: str = STUB) -> Path:
    """Write a program with the marks of a kernel that can run in virtual time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    program = path.with_name(f"{path.name}.py.stub")
    program.write_text(body)
    marks = f"Linux version {version} (lasthop@lasthop)\n{kernels.ENTROPY}\n".encode()
    packed = b"IKCFG_ST" + gzip.compress((CONFIGURATION + config).encode()) + b"IKCFG_ED"
    path.write_bytes(f'#!/bin/sh\nexec {sys.executable} -I -S {program} "$@"\n'.encode() + marks + packed)
    path.chmod(0o755)
    return path


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def processes_of(directory: Path) -> list[str]:
    """Return the processes that work in a directory or below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(str(directory)):
                found.append(process.name)
        except OSError:
            continue
    return found
