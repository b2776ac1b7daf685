"""Run our benchmark cases on ns-2 and ns-3."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(__file__).resolve().parent / "peers"
NS3_MODULES = {
    "bulk": ["applications", "internet", "point-to-point", "traffic-control", "network", "core"],
    "wifi": [
        "wifi",
        "propagation",
        "mobility",
        "applications",
        "internet",
        "traffic-control",
        "network",
        "core",
    ],
}


class Cost(NamedTuple):
    """Delivered segments and processor time of a run."""

    delivered: int
    cpu_s: float

    @property
    def ns(self) -> float:
        """Processor time per delivered segment, in nanoseconds."""
        return 1e9 * self.cpu_s / self.delivered


class NotInstalledError(Exception):
    """The reason why a simulator cannot be run here."""


def run(command: list[str]) -> Cost:
    """Run a command that prints the number of delivered segments; measure its processor time."""
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(int(output), usage.ru_utime + usage.ru_stime)


@dataclass
class Peer:
    """A simulator with its settings for one case."""

    name: str
    command: list[str]
    options: list[str] = field(default_factory=list)
    _start_up: dict[int | None, Cost] = field(default_factory=dict)

    def cost(self, seconds: int, flows: int | None = None) -> Cost:
        """Cost of ``seconds`` simulated seconds, excluding the start (parsing scripts, creating nodes)."""
        if flows not in self._start_up:
            self._start_up[flows] = min(
                (self._whole(1, flows) for _ in range(3)), key=lambda cost: cost.cpu_s
            )
        start, whole = self._start_up[flows], self._whole(seconds, flows)
        return Cost(
            whole.delivered,
            (whole.cpu_s - start.cpu_s) * whole.delivered / (whole.delivered - start.delivered),
        )

    def _whole(self, seconds: int, flows: int | None) -> Cost:
        size = [seconds] if flows is None else [flows, seconds]
        return run([*self.command, *map(str, size), *self.options])


def ns2_bulk(rules: str, scheduler: str) -> Peer:
    """Return ns-2 for bulk transfers, with one of its schedulers and the rules ``rfc`` or ``ns2``."""
    return _ns2("bulk.tcl", scheduler, [rules, scheduler])


def ns2_path(scheduler: str, loss: float) -> Peer:
    """Return ns-2 for the path, with one of its schedulers and a loss rate of data on the last hop."""
    return _ns2("path.tcl", scheduler, [scheduler, str(loss), "1"])


def _ns2(script: str, scheduler: str, options: list[str]) -> Peer:
    if shutil.which("ns") is None:
        raise NotInstalledError("ns-2 is not installed (Debian package ns2)")
    return Peer(f"ns-2 {scheduler}", ["ns", str(SCRIPTS / script)], options)


def ns3(directory: Path, script: str) -> Peer:
    """Return ns-3, as the system has it installed; our ``script`` is compiled into ``directory``."""
    program = directory / script
    libraries = [f"-lns3-{module}" for module in NS3_MODULES[script]]
    command = ["g++", "-std=c++17", "-O3", "-o", str(program), str(SCRIPTS / f"{script}.cc"), *libraries]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotInstalledError("there is no g++ to compile ns-3's script with") from None
    if done.returncode != 0:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "the compiler failed")
        raise NotInstalledError(f"ns-3 is not installed (Debian packages ns3, libns3-dev): {reason}")
    return Peer("ns-3", [str(program)])
