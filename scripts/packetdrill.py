"""Run packetdrill scripts against the TCP endpoint.

``python scripts/packetdrill.py`` builds the endpoint as a shared library and runs the scripts of
tests/packetdrill with packetdrill (https://github.com/google/packetdrill), in virtual time. ``--scripts DIR``
runs those of another directory, such as gtests/net/tcp of packetdrill. It prints a table with the result of
each script: pass, known difference (tests/packetdrill/differences.toml), outside (uses features that the
endpoint does not have) or FAIL. The exit code is 1 if a script fails, or passes despite a known difference.

packetdrill is found by ``--packetdrill``, the environment variable LASTHOP_PACKETDRILL, or PATH. Commands in
scripts are not run: kernel settings become settings of the endpoint. PSH is not compared, since a sender may
set it freely.

``--kernel`` runs the scripts with their commands against the kernel, in a separate network namespace; needs
root.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

OWN = ROOT / "tests" / "packetdrill"

DIFFERENCES = OWN / "differences.toml"

LONGEST = 60
"""Timeout of a script in seconds."""

MOST_FLIPS = 200
"""Limit of the lines of a script whose PSH differs."""

LOCAL = {"ipv4": "192.168.0.1", "ipv6": "fd3d:fa7b:d17d::1"}
"""The address of the endpoint."""

COMMANDS = re.compile(r"`([^`]*)`")

PRODUCT = re.compile(r"\$\(\(([\d*\s]+)\)\)")
"""A number, or shell arithmetic with one."""

SETTING = re.compile(r"""(?:sysctl\s+(?:-\w+\s+)*|/proc/sys/)net[./]ipv4[./](\w+)=("[^"]*"|[^\s`;]+)""")
"""A kernel setting, by sysctl or as a file."""

PSH = re.compile(r":(\d+): [^\n]*field tcp_psh")

OUTBOUND = re.compile(r">\s+(?:\[[^]]*\]\s*)?([FSRPWEUA.]+)")

Flags = dict[str, Any]
"""The flags of the library, as JSON."""


class Outcome(NamedTuple):
    """The result of a script."""

    verdict: str
    """pass, known difference, outside or FAIL."""
    reason: str


class Differences(NamedTuple):
    """Known differences."""

    outside: list[tuple[re.Pattern[str], str]]
    known: dict[str, str]
    kernel: dict[str, str]
    """Those of our scripts that the kernel does not pass."""

    @staticmethod
    def read(path: Path) -> Differences:
        """Read the known differences."""
        tables = tomllib.loads(path.read_text())
        outside = [(re.compile(each["pattern"], re.M), each["reason"]) for each in tables.get("outside", [])]
        known, kernel = (
            {each["script"]: each["reason"].strip() for each in tables.get(key, [])}
            for key in ("known", "kernel")
        )
        return Differences(outside, known, kernel)


def is_on(value: str) -> bool:
    """Return whether a setting is on."""
    return value != "0"


def tcp(key: str, convert: Callable[[str], Any]) -> Callable[[Flags, str], None]:
    """Return a function that sets a key of ``[tcp]``."""

    def apply(flags: Flags, value: str) -> None:
        flags["tcp"][key] = convert(value)

    return apply


def set_window_scaling(flags: Flags, value: str) -> None:
    """Enable or disable window scaling."""
    flags["window_scaling"] = is_on(value)


def set_receive_buffer(flags: Flags, value: str) -> None:
    """Set the window to the maximum receive buffer."""
    if (largest := value.split()[-1]).isdigit():
        flags["tcp"]["window"] = f"{largest} B"


def set_sack(flags: Flags, value: str) -> None:
    """Choose a flavour without SACK."""
    if not is_on(value):
        flags["tcp"]["flavour"] = "newreno"


def set_retries(flags: Flags, value: str) -> None:
    """Set the SYN timeout for a number of retransmissions with exponential backoff."""
    flags["syn_timeout"] = f"{2 ** (int(value) + 1) - 1} s"


SETTINGS: dict[str, Callable[[Flags, str], None]] = {
    "tcp_congestion_control": tcp("congestion", str),
    "tcp_dsack": tcp("dsack", is_on),
    "tcp_early_retrans": tcp("tlp", is_on),
    "tcp_ecn": tcp("ecn", is_on),
    "tcp_frto": tcp("frto", is_on),
    "tcp_recovery": tcp("detection", lambda value: "rack" if is_on(value) else "sack"),
    "tcp_reordering": tcp("dupthresh", int),
    "tcp_rmem": set_receive_buffer,
    "tcp_sack": set_sack,
    "tcp_slow_start_after_idle": tcp("idle_restart", lambda value: "halving" if is_on(value) else "never"),
    "tcp_syn_retries": set_retries,
    "tcp_timestamps": tcp("timestamps", is_on),
    "tcp_window_scaling": set_window_scaling,
}
"""Kernel settings with an equivalent in the endpoint."""

HARMLESS = {
    "tcp_ecn_option",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_min_tso_segs",
    "tcp_notsent_lowat",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_syn_linear_timeouts",
    "tcp_syncookies",
    "tcp_synack_retries",
    "tcp_tso_win_divisor",
    "tcp_wmem",
}
"""Settings of features that the endpoint does not have; scripts that use them are detected by their calls."""


class Script:
    """A script without its commands, and the settings from the commands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text()
        self.flags: Flags = {"tcp": {}}
        self.problem = ""
        self.ip = "ipv6" if re.search(r"^--ip_version=ipv6$", text, re.M) else "ipv4"
        self.flags["local"] = LOCAL[self.ip]
        self.lines = self.without_commands(text).split("\n")

    def without_commands(self, text: str) -> str:
        """Return the text without commands, with the same number of lines; applies their settings."""

        def replace(match: re.Match[str]) -> str:
            before = text[: match.start()].rpartition("\n")[2].split("//")[0].strip()
            if before:
                self.problem = "runs commands while connections are open"
            elif "//" not in text[: match.start()].rpartition("\n")[2]:
                self.take(match[1])
            return "\n" * match[0].count("\n")

        return COMMANDS.sub(replace, text)

    def take(self, command: str) -> None:
        """Apply the settings of a command, and of a script that it runs."""
        for name in re.findall(r"\S+defaults\.sh", command):
            if (path := self.path.parent / name).exists():
                self.take(path.read_text())
        if re.search(r"^\s*tc .*\bfq\b", command, re.M):
            self.flags["tcp"]["pacing"] = True
        command = PRODUCT.sub(lambda each: str(math.prod(map(int, each[1].split("*")))), command)
        for name, value in SETTING.findall(command):
            if name in SETTINGS:
                SETTINGS[name](self.flags, value.strip('"'))
            elif name not in HARMLESS:
                self.problem = f"sets {name}, which the endpoint does not have"

    def flip_push(self, number: int) -> bool:
        """Toggle PSH in an expected packet; returns whether the line has one."""
        match = OUTBOUND.search(line := self.lines[number - 1])
        if not match:
            return False
        flags = match[1].replace("P", "") if "P" in match[1] else f"P{match[1]}"
        self.lines[number - 1] = line[: match.start(1)] + flags + line[match.end(1) :]
        return True


class Runner:
    """Runs scripts."""

    def __init__(self, packetdrill: str, library: Path | None, base: Flags) -> None:
        self.packetdrill = packetdrill
        self.library = library
        """None for the kernel."""
        self.base = base

    def command(self, script: Script) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the environment."""
        if self.library is None:
            namespace = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
            return [*namespace, self.packetdrill], dict(os.environ)
        flags = {**self.base, **script.flags, "tcp": {**self.base.get("tcp", {}), **script.flags["tcp"]}}
        line = [self.packetdrill, f"--so_filename={self.library}", f"--so_flags={json.dumps(flags)}"]
        # packetdrill reads TCP_INFO with getsockopt of the C library, which our library intercepts.
        return [*line, f"--local_ip={LOCAL[script.ip]}"], {**os.environ, "LD_PRELOAD": str(self.library)}

    def run(self, script: Script) -> str:
        """Return the problem; empty if the script passes."""
        line, environment = self.command(script)
        if self.library is None:
            script.lines = script.path.read_text().split("\n")
        for _ in range(MOST_FLIPS):
            with tempfile.NamedTemporaryFile("w", suffix=".pkt") as file:
                file.write("\n".join(script.lines))
                file.flush()
                try:
                    done = subprocess.run(
                        [*line, file.name],
                        env=environment,
                        cwd=script.path.parent,
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        text=True,
                        timeout=LONGEST,
                        check=False,
                    )
                except subprocess.TimeoutExpired:
                    return "hangs"
                problem = done.stderr.replace(file.name, script.path.name).strip()
            if done.returncode == 0:
                return ""
            match = PSH.search(problem)
            if not (match and script.flip_push(int(match[1]))):
                return problem or f"packetdrill ended with {done.returncode}"
        return "PSH differs everywhere"


def judge(script: Script, name: str, runner: Runner, differences: Differences) -> Outcome:
    """Run a script and return its result."""
    if runner.library is not None:
        # Comments may mention features that the script does not use.
        calls = re.sub(r"//.*", "", script.path.read_text())
        outside = [reason for pattern, reason in differences.outside if pattern.search(calls)]
        if outside or script.problem:
            return Outcome("outside", (outside or [script.problem])[0])
    problem = runner.run(script)
    known = (differences.kernel if runner.library is None else differences.known).get(name)
    if known is not None:
        if not problem:
            return Outcome("FAIL", f"passes, but is known to differ: {known}")
        return Outcome("known difference", known)
    return Outcome("FAIL", problem) if problem else Outcome("pass", "")


def build() -> Path:
    """Build the library, and return its path."""
    line = ["cargo", "build", "-p", "lasthop-packetdrill", "--message-format=json"]
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("the library could not be built")
    for message in map(json.loads, done.stdout.splitlines()):
        for name in message.get("filenames", []) if message["reason"] == "compiler-artifact" else []:
            if Path(name).name == "liblasthop_packetdrill.so":
                return Path(name)
    raise SystemExit("cargo built no shared library")


def find_packetdrill(given: str | None) -> str:
    """Return the path of packetdrill."""
    named = given or os.environ.get("LASTHOP_PACKETDRILL") or "packetdrill"
    path = shutil.which(named)
    if path is None:
        raise SystemExit(
            f"{named} was not found: build https://github.com/google/packetdrill and put it on PATH, "
            "or name it by --packetdrill or LASTHOP_PACKETDRILL"
        )
    return str(Path(path).resolve())


def show(outcomes: dict[str, Outcome], markdown: bool) -> None:
    """Print the table and the counts."""
    width = max(map(len, outcomes), default=0)
    if markdown:
        print("| script | result | reason |\n|---|---|---|")
    for name, (verdict, reason) in outcomes.items():
        if markdown:
            print(f"| `{name}` | {verdict} | {reason} |")
        else:
            indented = reason.replace("\n", "\n    ")
            print(f"{verdict:<16}  {name:<{width}}  {indented}".rstrip())
    counts = collections.Counter(outcome.verdict for outcome in outcomes.values())
    print(f"\n{len(outcomes)} scripts: " + ", ".join(f"{count} {each}" for each, count in counts.items()))


def main() -> int:
    """Run the scripts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("script", nargs="*", type=Path, help="single scripts of the directory")
    parser.add_argument("--scripts", type=Path, default=OWN, help="the directory with the scripts")
    parser.add_argument("--packetdrill", help="the program")
    parser.add_argument("--library", type=Path, help="the shared library; built by default")
    parser.add_argument("--differences", type=Path, default=DIFFERENCES)
    parser.add_argument("--kernel", action="store_true", help="test the kernel instead")
    parser.add_argument("--markdown", action="store_true", help="print a table in Markdown")
    options = parser.parse_args()

    base = options.scripts.resolve()
    packetdrill = find_packetdrill(options.packetdrill)
    scripts = sorted(path.resolve() for path in options.script) or sorted(base.rglob("*.pkt"))
    if not scripts:
        parser.error(f"no scripts in {base}")
    library = None if options.kernel else (options.library or build()).resolve()
    # The scripts of packetdrill were written for a kernel whose clock ticks every millisecond.
    ticks = {"tick": "1 ms", "ack_tick": "1 ms"} if base != OWN else {}
    runner = Runner(packetdrill, library, {"tcp": ticks})
    differences = Differences.read(options.differences)
    outcomes = {}
    for path in scripts:
        name = str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
        outcomes[name] = judge(Script(path), name, runner, differences)
    show(outcomes, options.markdown)
    return int(any(outcome.verdict == "FAIL" for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
