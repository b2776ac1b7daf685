"""Guard against regressions: instruction counts of fixed runs, which do not depend on the load, and cycles.

Valgrind counts what the compiled extension module executes between the call of ``Scenario.run`` and
its return. Counts of the same code agree within a hundredth of a percent, so a difference comes from the
code or from the compiler. Counts of another compiler are not compared. The release build has counts of
its own, and so has the build of the tests, with assertions.

Perf counts the processor's cycles for many more runs, in user mode, where the machine counts them. They
vary by some percent, so they are printed beside the recorded ones without a verdict. Counts of another
processor are not compared.

``python benches/guard.py`` compares with what is recorded in ``instructions.toml``;
``python benches/guard.py --record`` records.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RECORD = HERE / "instructions.toml"
TOLERANCE = 0.03


class Case(NamedTuple):
    """Runs of one scenario under one scheme."""

    scenario: Path
    scheme: str
    runs: int
    overrides: tuple[str, ...] = ()


SATURATION = "traffic.1={from='server', to='MH1', packet_size='1498 B', law.poisson.rate='62.5 Mbps'}"
LAST_MILE = ROOT / "scenarios" / "last-mile.toml"

# One case of each kind of code in the core: senders, recovery below TCP, codes, queues, Wi-Fi and QUIC.
# There is none of advice, a policy in Python that plays such runs.
CASES = {
    "bulk": Case(HERE / "bulk.toml", "basic", 1),
    "ebsn": Case(ROOT / "scenarios" / "ebsn-wide-area.toml", "ebsn", 20),
    "fec": Case(HERE / "selective-fec.toml", "selective-fec", 100),
    "linux": Case(LAST_MILE, "basic", 1, ("sender=linux", "limit=20 s")),
    "bbr": Case(LAST_MILE, "basic", 1, ("sender=linux-bbr", "limit=4 s")),
    "queue": Case(
        LAST_MILE,
        "basic",
        1,
        ("sender=linux", "limit=4 s", "radio.channel=perfect", "radio.queue.fq-codel={}"),
    ),
    "wifi": Case(HERE / "wifi.toml", "basic", 1, ("limit=1 s", SATURATION)),
    "quic": Case(LAST_MILE, "basic", 1, ("sender=quinn-cubic", "limit=3 s")),
}

# Repetitions of the runs in one measurement of cycles, and measurements of which the median is taken.
CYCLES_RUNS = 20
CYCLES_REPEATS = 5

# Loads only the extension module, so that Valgrind does not run the imports of NumPy.
RUN = """
import importlib.machinery, importlib.util, sys
extension, scenario, scheme, runs, *overrides = sys.argv[1:]
loader = importlib.machinery.ExtensionFileLoader("lasthop._lasthop", extension)
module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(module)
scenario = module.Scenario.load(scenario, overrides)
for run in range(int(runs)):
    scenario.run(scheme, seed=1, run=run)
"""


class NotMeasuredError(Exception):
    """The reason why nothing can be compared."""


class Count(NamedTuple):
    """Recorded and current instructions, or cycles, of one case."""

    case: str
    recorded: int
    counted: int

    @property
    def change(self) -> float:
        """Relative change from the recorded count."""
        return self.counted / self.recorded - 1

    @property
    def holds(self) -> bool:
        """Whether the change, in either direction, is within the tolerance."""
        return abs(self.change) <= TOLERANCE


def compiler() -> str:
    """Return the compiler, its target and its flags, which determine the counts."""
    if shutil.which("rustc") is None:
        raise NotMeasuredError("there is no rustc")
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, cwd=ROOT, check=True)
    text = said.stdout
    first, host = text.splitlines()[0], re.search(r"^host: (.*)$", text, re.MULTILINE)
    flags = os.environ.get("RUSTFLAGS", "")
    return " ".join(filter(None, [first, "for", host[1] if host else "?", flags]))


def processor() -> str:
    """Return the processor, which determines the cycles."""
    cpus = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.*)$", cpus.read_text(), re.MULTILINE) if cpus.exists() else None
    return found[1] if found else "?"


def extension() -> Path:
    """Return the extension module."""
    found = next((ROOT / "python" / "lasthop").glob("_lasthop*.so"), None)
    if found is None:
        raise NotMeasuredError("the extension module is not built")
    return found


def profile() -> str:
    """Return the profile of the extension module, "release" or "test"."""
    loader = ExtensionFileLoader("lasthop._lasthop", str(extension()))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    if module.DEBUG_ASSERTIONS:
        return "test"
    if not (ROOT / ".venv/.optimised").exists():
        raise NotMeasuredError("this is the quick build of make run; make optimised builds the release")
    return "release"


def command(case: str, times: int) -> list[str]:
    """Return the command that performs the runs of a case ``times`` times."""
    scenario, scheme, runs, overrides = CASES[case]
    # The interpreter itself instead of the virtual environment's link: the runs need no installed package.
    python = [os.path.realpath(sys.executable), "-IS", "-c", RUN]
    return [*python, str(extension()), str(scenario), scheme, str(times * runs), *overrides]


def count(case: str) -> int:
    """Count the instructions of a case."""
    if shutil.which("valgrind") is None:
        raise NotMeasuredError("there is no valgrind")
    only_runs = "--toggle-collect=*__pymethod_run__*"
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", only_runs]
    done = subprocess.run([*valgrind, *command(case, 1)], capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found or found[1] == "0":
        raise RuntimeError(f"valgrind counted nothing:\n{done.stderr}")
    return int(found[1])


def cycles_of(report: str) -> int:
    """Parse the cycles in the output of ``perf stat -x, -e cycles:u``."""
    found = re.search(r"^(\d+),[^,]*,cycles", report, re.MULTILINE)
    if not found:
        raise NotMeasuredError("this machine does not count cycles")
    return int(found[1])


def count_cycles(case: str) -> int:
    """Count the cycles of the runs of a case, excluding the start of Python."""
    if shutil.which("perf") is None:
        raise NotMeasuredError("there is no perf")

    def counted(times: int) -> int:
        perf = ["perf", "stat", "-x,", "-e", "cycles:u", "--", *command(case, times)]
        done = subprocess.run(perf, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotMeasuredError("perf may not count cycles here")
        return cycles_of(done.stderr)

    differences = [counted(CYCLES_RUNS) - counted(0) for _ in range(CYCLES_REPEATS)]
    return round(statistics.median(differences) / CYCLES_RUNS)


def check_cycles() -> list[Count]:
    """Count the cycles of all cases, for comparison with the record."""
    recorded = tomllib.loads(RECORD.read_text()).get(profile(), {})
    counted = {case: count_cycles(case) for case in CASES}
    if "cycles" not in recorded:
        raise NotMeasuredError("no cycles are recorded yet; make bench-record does it")
    if recorded["processor"] != processor():
        raise NotMeasuredError(f"cycles were recorded on {recorded['processor']}, and this is {processor()}")
    return [Count(case, recorded["cycles"][case], counted[case]) for case in CASES]


def check() -> list[Count]:
    """Count the instructions of all cases, for comparison with the record."""
    recorded = tomllib.loads(RECORD.read_text()).get(profile())
    if recorded is None:
        raise NotMeasuredError("nothing is recorded yet; make bench-record does it")
    if recorded["compiler"] != compiler():
        raise NotMeasuredError(f"recorded with {recorded['compiler']}, and this is {compiler()}")
    return [Count(case, recorded["instructions"][case], count(case)) for case in CASES]


def record() -> None:
    """Record the current counts of the profile that is built; those of the other stay."""
    found: dict[str, object] = {
        "compiler": compiler(),
        "instructions": {case: count(case) for case in CASES},
    }
    try:
        found |= {"processor": processor(), "cycles": {case: count_cycles(case) for case in CASES}}
    except NotMeasuredError as why:
        print(f"cycles skipped: {why}")
    text = RECORD.read_text()
    lines = [text.splitlines()[0]]
    for name, counts in sorted((tomllib.loads(text) | {profile(): found}).items()):
        lines += ["", f"[{name}]"]
        for key, value in counts.items():
            pairs = value.items() if isinstance(value, dict) else ()
            inline = ", ".join(f"{case} = {number}" for case, number in pairs)
            lines.append(f"{key} = {{ {inline} }}" if pairs else f'{key} = "{value}"')
    RECORD.write_text("\n".join([*lines, ""]))


def main() -> int:
    """Check or record, and print the result."""
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
    try:
        for one in check_cycles():
            print(f"{one.case}: {one.counted:,} cycles, {one.recorded:,} recorded, {one.change:+.2%}")
    except NotMeasuredError as why:
        print(f"cycles skipped: {why}")
    if all(one.holds for one in counts):
        return 0
    print(f"More than {TOLERANCE:.0%} apart. If it is on purpose: make bench-record")
    return 1


if __name__ == "__main__":
    sys.exit(main())
