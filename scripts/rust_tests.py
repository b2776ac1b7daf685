"""Run Rust's tests, and print which of them took longest.

`python scripts/rust_tests.py` runs `cargo test --workspace`, or `cargo test` with the given arguments. Each
test program is started by this script, the runner of cargo's target, and reports the time of its tests.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLOWEST = 25
TIMES = "LASTHOP_TEST_TIMES"
"""The environment variable that names the file of times."""


def main() -> int:
    """Run cargo, and print the slowest tests and the processor time of the slowest programs."""
    shown = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    host = shown.partition("host: ")[2].split()[0]
    runner = f"CARGO_TARGET_{host.upper().replace('-', '_')}_RUNNER"
    with tempfile.NamedTemporaryFile(mode="r", suffix=".tsv") as times:
        # rustdoc warns of the job server of make.
        environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
        environment |= {runner: f"{sys.executable} {Path(__file__).resolve()} --run", TIMES: times.name}
        line = ["cargo", "test", "--quiet", *(sys.argv[1:] or ["--workspace"])]
        code = subprocess.run(line, cwd=ROOT, env=environment, check=False).returncode
        rows = [line.rstrip("\n").split("\t") for line in times]
    for kind, title in (
        ("test", "slowest Rust tests, by the clock"),
        ("program", "programs, processor time"),
    ):
        found = sorted(((float(row[1]), row[2]) for row in rows if row[0] == kind), reverse=True)
        print(f"-- {title} --")
        for seconds, name in found[:SLOWEST]:
            print(f"{seconds:8.2f} s  {name}")
    return code


def run(line: list[str]) -> int:
    """Run a test program, pass on its summary, or all that it prints if it fails, and note its times."""
    program = Path(line[0])
    if program.parent.name != "deps":
        return subprocess.run(line, check=False).returncode
    # What reports times is unstable, and accepted only from those who say that they know.
    line = [each for each in line if each != "--quiet"]
    line += ["--show-output", "-Zunstable-options", "--report-time"]
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}
    done = subprocess.run(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    name = program.name.rpartition("-")[0]
    with Path(os.environ[TIMES]).open("a", encoding="utf-8") as times:
        for test, seconds in re.findall(r"^test (.+?) \.\.\. .*<([\d.]+)s>$", done.stdout, re.MULTILINE):
            times.write(f"test\t{seconds}\t{name}: {test}\n")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.write(f"program\t{used.ru_utime + used.ru_stime:.2f}\t{name}\n")
    summary = re.findall(r"^(?:test result: .*|skipped: .*)$", done.stdout, re.MULTILINE)
    print(done.stdout if done.returncode else "\n".join(f"{name}: {text}" for text in summary), flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:]) if sys.argv[1:2] == ["--run"] else main())
