"""Run Rust's tests, and print which of them took longest.

`python scripts/rust_tests.py` runs what `cargo test --workspace` runs, or `cargo test` with the given
arguments. Programs whose tests wait for real packets run beside those that compute, and all run even if one
fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLOWEST = 25
REAL_TIME = ("gateway", "live")
"""The programs whose tests wait for real packets, and hardly compute."""


@dataclass(frozen=True)
class Program:
    """A program of tests, or an example that is a test.

    Attributes
    ----------
    name : str
        The name of its target.
    path, package : Path
        The program, and the directory of its package, in which it runs.
    is_example : bool
        Whether it is an example, which knows no options.
    """

    name: str
    path: Path
    package: Path
    is_example: bool


@dataclass
class Took:
    """What tests took.

    Attributes
    ----------
    tests : list of (float, str)
        The seconds by the clock of each test.
    programs : list of (float, str)
        The seconds of processor time of each program.
    """

    tests: list[tuple[float, str]] = field(default_factory=list)
    programs: list[tuple[float, str]] = field(default_factory=list)


def main() -> int:
    """Build the programs, run them, and print the slowest tests and programs."""
    wanted = sys.argv[1:] or ["--workspace"]
    programs, took = list(built(wanted)), Took()
    lanes = [[each for each in programs if (each.name in REAL_TIME) == chosen] for chosen in (True, False)]
    with ThreadPoolExecutor(len(lanes)) as executor:
        passed = all(executor.map(lambda lane: run_all(lane, took), lanes))
    if "--tests" not in wanted:
        # rustdoc warns of the job server of make.
        make = ("MAKEFLAGS", "MFLAGS")
        environment = {key: value for key, value in os.environ.items() if key not in make}
        line = ["cargo", "test", "--quiet", "--doc", *wanted]
        passed &= subprocess.run(line, cwd=ROOT, env=environment, check=False).returncode == 0
    for title, found in (
        ("slowest Rust tests, by the clock", took.tests),
        ("programs, processor time", took.programs),
    ):
        print(f"-- {title} --")
        for seconds, name in sorted(found, reverse=True)[:SLOWEST]:
            print(f"{seconds:8.2f} s  {name}")
    return 0 if passed else 1


def built(wanted: Sequence[str]) -> Iterator[Program]:
    """Build the programs and yield them."""
    line = ["cargo", "test", "--quiet", "--no-run", "--message-format=json-render-diagnostics", *wanted]
    printed = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if printed.returncode:
        sys.exit(printed.returncode)
    for found in map(json.loads, printed.stdout.splitlines()):
        if found["reason"] == "compiler-artifact" and found["profile"]["test"] and found["executable"]:
            target, package = found["target"], Path(found["manifest_path"]).parent
            yield Program(target["name"], Path(found["executable"]), package, target["kind"] == ["example"])


def run_all(programs: Sequence[Program], took: Took) -> bool:
    """Run programs one after the other, and return whether all passed."""
    codes = [run(each, took) for each in programs]
    return not any(codes)


def run(program: Program, took: Took) -> int:
    """Run a program, and print its summary, or all that it prints if it fails; return its exit code."""
    # What reports times is unstable, and accepted only from those who say that they know.
    options = [] if program.is_example else ["--show-output", "-Zunstable-options", "--report-time"]
    with subprocess.Popen(
        [program.path, *options],
        cwd=program.package,
        env=os.environ
        | {"RUSTC_BOOTSTRAP": "1"}
        | ({"RUST_TEST_THREADS": "4"} if program.name in REAL_TIME else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    for test, seconds in re.findall(r"^test (.+?) \.\.\. .*<([\d.]+)s>$", printed, re.MULTILINE):
        took.tests.append((float(seconds), f"{program.name}: {test}"))
    took.programs.append((used.ru_utime + used.ru_stime, program.name))
    if process.returncode == 0:
        # A test that needs a process of its own starts its program once more, which prints a summary as well.
        summary = re.findall(r"^test result: .*$", printed, re.MULTILINE)[-1:]
        lines = re.findall(r"^skipped: .*$", printed, re.MULTILINE) + summary
    else:
        lines = [f"exit code {process.returncode}", printed]
    print("".join(f"{program.name}: {line}\n" for line in lines), end="", flush=True)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
