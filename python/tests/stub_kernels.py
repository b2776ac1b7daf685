"""A program in place of a kernel in virtual time, and what is left of it."""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lasthop.virtual import kernels

CONFIGURATION = "".join(f"CONFIG_{option}=y\n" for option in kernels._NEEDED)

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
