"""Guard against regressions: instructions of two fixed runs, which no load of a machine changes.

Valgrind counts what the compiled extension module executes between the call of ``Scenario.run`` and
its return. The same code gives the same number within a hundredth of a percent, so a difference comes
from the code or from the compiler; numbers of another compiler are not compared.

``python benches/guard.py`` compares with what is recorded in ``instructions.toml``;
``python benches/guard.py --record`` records.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RECORD = HERE / "instructions.toml"
TOLERANCE = 0.03

# By name: the scenario, the scheme and the number of runs.
CASES = {
    "bulk": (HERE / "bulk.toml", "basic", 1),
    "ebsn": (ROOT / "scenarios" / "ebsn-wide-area.toml", "ebsn", 20),
}

# Loads the extension alone, so that Valgrind need not see NumPy start.
RUN = """
import importlib.machinery, importlib.util, sys
extension, scenario, scheme, runs = sys.argv[1:]
loader = importlib.machinery.ExtensionFileLoader("lasthop._lasthop", extension)
module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(module)
scenario = module.Scenario.load(scenario)
for run in range(int(runs)):
    scenario.run(scheme, seed=1, run=run)
"""


class NotMeasuredError(Exception):
    """There is nothing to compare, and why."""


class Count(NamedTuple):
    """The instructions of one case."""

    case: str
    recorded: int
    counted: int

    @property
    def change(self) -> float:
        """How much more there are than were recorded, as a share of those."""
        return self.counted / self.recorded - 1

    @property
    def holds(self) -> bool:
        """Whether that is within the tolerance, in either direction."""
        return abs(self.change) <= TOLERANCE


def compiler() -> str:
    """Name the compiler, its target and its flags, on which the numbers depend."""
    if shutil.which("rustc") is None:
        raise NotMeasuredError("there is no rustc")
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, cwd=ROOT, check=True)
    text = said.stdout
    first, host = text.splitlines()[0], re.search(r"^host: (.*)$", text, re.MULTILINE)
    flags = os.environ.get("RUSTFLAGS", "")
    return " ".join(filter(None, [first, "for", host[1] if host else "?", flags]))


def count(case: str) -> int:
    """Count the instructions of a case."""
    if shutil.which("valgrind") is None:
        raise NotMeasuredError("there is no valgrind")
    extension = next((ROOT / "python" / "lasthop").glob("_lasthop*.so"), None)
    if extension is None:
        raise NotMeasuredError("the extension module is not built")
    scenario, scheme, runs = CASES[case]
    # Not the link in a virtual environment: what is counted needs nothing of that.
    python = [os.path.realpath(sys.executable), "-IS", "-c", RUN]
    only_runs = "--toggle-collect=*__pymethod_run__*"
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", only_runs]
    command = [*valgrind, *python, str(extension), str(scenario), scheme, str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found or found[1] == "0":
        raise RuntimeError(f"valgrind counted nothing:\n{done.stderr}")
    return int(found[1])


def check() -> list[Count]:
    """Count all cases and lay them beside what is recorded."""
    recorded = tomllib.loads(RECORD.read_text())
    if not recorded:
        raise NotMeasuredError("nothing is recorded yet; make bench-record does it")
    if recorded["compiler"] != compiler():
        raise NotMeasuredError(f"recorded with {recorded['compiler']}, and this is {compiler()}")
    return [Count(case, recorded["instructions"][case], count(case)) for case in CASES]


def record() -> None:
    """Record what is counted now."""
    lines = [
        f'compiler = "{compiler()}"',
        "",
        "[instructions]",
        *(f"{case} = {count(case)}" for case in CASES),
    ]
    heading = RECORD.read_text().splitlines()[0]
    RECORD.write_text("\n".join([heading, "", *lines, ""]))


def main() -> int:
    """Check or record, and say what came of it."""
    if sys.argv[1:] == ["--record"]:
        record()
        print(RECORD.read_text(), end="")
        return 0
    try:
        counts = check()
    except NotMeasuredError as why:
        print(f"skipped: {why}")
        return 0
    for one in counts:
        print(f"{one.case}: {one.counted:,} instructions, {one.recorded:,} recorded, {one.change:+.2%}")
    if all(one.holds for one in counts):
        return 0
    print(f"More than {TOLERANCE:.0%} apart. If it is on purpose: make bench-record")
    return 1


if __name__ == "__main__":
    sys.exit(main())
