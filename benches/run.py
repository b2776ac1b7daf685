"""Run all benchmarks; print the cost of each case, the ratios to other simulators, and the targets.

Each case runs in its own process. Cases under comparison run alternately, so that the load of the
machine affects both; a ratio is the median over these pairs.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import guard
import peers
from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
MB = 1e6


class Case(NamedTuple):
    """A benchmark case of Lasthop. Cases without a title have no row in the table."""

    name: str
    size: int
    title: str


def bulk(flows: int, seconds: int) -> Case:
    """Return the case of ``flows`` bulk transfers over ``seconds`` simulated seconds."""
    return Case(f"bulk-{flows}", seconds, f"(a) bulk, {flows} flow{'s' * (flows > 1)}, {seconds:,} s")


def short(case: Case) -> str:
    """Return the title without the prefix of its group."""
    return case.title.removeprefix("(a) bulk, ")


BULK = {1: bulk(1, 3600), 10: bulk(10, 3600), 100: bulk(100, 360)}
# ns-3 is slow, so it runs a tenth of the simulated time.
BULK_NS3 = {1: bulk(1, 3600), 10: bulk(10, 360), 100: bulk(100, 36)}
BULK_NS2 = Case("bulk-ns2", 3600, "(a) bulk, 1 flow, ns-2's rules, 3,600 s")
# Current senders, with the loss detection, recovery and pacing of Linux.
BULK_LINUX = [
    Case(f"bulk-{name.lower().replace(' ', '')}", 3600, f"(a) bulk, 1 flow, {name} on Linux, 3,600 s")
    for name in ("Reno", "CUBIC", "BBR", "BBR 3")
]
PCAPNG = Case("pcapng", 900, "(a) bulk, 1 flow, pcapng, 900 s")
UNTRACED = Case("bulk-1", 900, "")
EBSN = Case("ebsn", 2000, "(b) EBSN wide area, 2,000 runs")
TEN_CLEAN = Case("ten-clean", 20_000, "(c) ten segments, clean, 20,000 runs")
TEN_LOSSY = Case("ten-lossy", 20_000, "(c) ten segments, 5 % loss, 20,000 runs")
TEN_STUDY = Case("ten-study", 20_000, "(c) ten segments, from a file, 20,000 runs")
PATH = Case("path", 14_400, "(d) path, 4 routers, cross traffic, 14,400 s")
FEC = {
    10: Case("fec", 20_000, "(e) selective FEC, ten segments, from a file"),
    50: Case("fec-50", 4_000, "(e) selective FEC, fifty segments, from a file"),
}
CELL = Case("cell-8", 20_000, "(f) 802.11 cell, eight downloads, 20,000 s")
MANY_FLOWS = {1000: bulk(1000, 60), 10_000: bulk(10_000, 12)}
HOPS = {links: Case(f"hops-{links}", 3600, f"(g) {links} links, 1 flow, 3,600 s") for links in (2, 32)}
# Keyed by the number of segments in flight when the first loss is detected.
OVERSHOOT = {
    window: Case(f"overshoot-sack-{window}", runs, f"(h) SACK, overshoot of {window:,} segments")
    for window, runs in [(1000, 200), (300_000, 1)]
}
IDLE_CELL = {
    stations: Case(f"cell-idle-{stations}", 10_000, f"(f) one download, {stations} stations, 10,000 s")
    for stations in (1, 400)
}
WIFI = {
    stations: Case(
        f"wifi-{stations}", 600, f"(f) 802.11n, {stations} saturated station{'s' * (stations > 1)}, 600 s"
    )
    for stations in (1, 20)
}
# ns-3 is slow, so it runs a tenth of the simulated time.
WIFI_NS3 = Case("wifi-1", 60, "(f) 802.11n, 1 saturated station, 60 s")
CROWDED_CELL = Case("cell-400", 2000, "(f) 400 downloads, 2,000 s")
SET_UP = {
    shape: {
        size: Case(f"setup-{shape}-{size}", 40_000 // size, f"(i) set-up of a {shape} of {size}, each")
        for size in (10, 800)
    }
    for shape in ("dumbbell", "cell")
}
SCHEDULERS = ("Heap", "Calendar", "List")
PATH_LOSS = 1 / 150  # loss rate of data packets, from the bit error rate in path.toml
JOBS = {jobs: Case(f"jobs-{jobs}", 10_000, "") for jobs in (1, 2)}


@dataclass
class Ours:
    """Measurements of one Lasthop process."""

    delivered: int
    events: int | None
    cpu_s: float
    wall_s: float
    peak_bytes: int
    exchanges: int | None

    @property
    def ns(self) -> float:
        """Processor time per delivered segment, in nanoseconds."""
        return 1e9 * self.cpu_s / self.delivered

    def cost(self, case: Case) -> float:
        """Processor time per segment, or per run of a case that delivers nothing, in nanoseconds."""
        return self.ns if self.delivered else 1e9 * self.cpu_s / case.size


class Ratio(NamedTuple):
    """Median and minimum of the ratios of paired costs."""

    median: float
    least: float

    def __str__(self) -> str:
        """Format for the table."""
        return f"{self.median:.1f} ({self.least:.1f})"


def ratio(pairs: list[tuple[float, float]]) -> Ratio:
    """Divide the first of each pair by the second."""
    quotients = [first / second for first, second in pairs]
    return Ratio(statistics.median(quotients), min(quotients))


class Bound(NamedTuple):
    """An upper bound ``most`` on the cost of ``case`` relative to ``usual``, per segment or per set-up."""

    what: str
    case: Case
    usual: Case
    most: float


BOUNDS = [
    Bound("100 flows against 1", BULK[100], BULK[1], 1.5),
    Bound("1,000 flows against 1", MANY_FLOWS[1000], BULK[1], 3),
    Bound("10,000 flows against 1", MANY_FLOWS[10_000], BULK[1], 5),
    Bound("32 links against 2", HOPS[32], HOPS[2], 3),
    Bound("SACK, 300,000 segments in flight against 1,000", OVERSHOOT[300_000], OVERSHOOT[1000], 2),
    Bound("one station of 400 active against one of 1", IDLE_CELL[400], IDLE_CELL[1], 1.2),
    Bound("set-up of 800 pairs against 10", SET_UP["dumbbell"][800], SET_UP["dumbbell"][10], 90),
    Bound("set-up of 800 stations against 10", SET_UP["cell"][800], SET_UP["cell"][10], 90),
    Bound("pcapng against untraced", PCAPNG, UNTRACED, 3),
]


class Target(NamedTuple):
    """A target, the measured value, and whether the target is met (None if it cannot be measured here)."""

    what: str
    measured: str
    met: bool | None


class Bench:
    """Runs cases and stores their measurements."""

    def __init__(self, program: str, scratch: Path) -> None:
        self.program = program
        self.scratch = scratch
        self.results: dict[Case, list[Ours]] = {}
        self.ratios: dict[tuple[Case, str], Ratio] = {}
        self.targets: list[Target] = []
        self.notes: list[str] = []

    def run(self, case: Case) -> Ours:
        """Run a case once, in a fresh process."""
        file = [str(self.scratch / "run.pcapng")] if case.name == "pcapng" else []
        command = [self.program, case.name, str(case.size), *file]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        result = Ours(**json.loads(done.stdout))
        self.results.setdefault(case, []).append(result)
        return result

    def pairs(self, times: int, first: Case, second: Case) -> list[tuple[Ours, Ours]]:
        """Run two cases in alternation."""
        return [(self.run(first), self.run(second)) for _ in range(times)]

    def beside(self, times: int, case: Case, peer: peers.Peer, flows: int | None = None) -> Ratio:
        """Run a case and another simulator in alternation; return the ratio of their cost to ours."""
        pairs = [(peer.cost(case.size, flows), self.run(case)) for _ in range(times)]
        theirs, ours = pairs[0]
        self.ratios[case, peer.name] = found = ratio([(theirs.ns, ours.ns) for theirs, ours in pairs])
        more = theirs.delivered / ours.delivered - 1
        least = min(theirs.ns for theirs, _ in pairs)
        self.notes.append(
            f"{case.title}: {peer.name} takes {least:,.0f} ns per segment and delivers {theirs.delivered:,}, "
            f"we {ours.delivered:,}: {more:+.1%}"
        )
        return found

    def target(self, what: str, measured: str, met: bool | None) -> None:
        """Record a target."""
        self.targets.append(Target(what, measured, met))


def build() -> str:
    """Build the benchmark program and return its path."""
    command = ["cargo", "build", "--release", "--quiet", "--package", "lasthop-bench"]
    done = subprocess.run(
        [*command, "--message-format=json"], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True
    )
    messages: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return next(str(message["executable"]) for message in messages if message.get("executable"))


def our_cases(bench: Bench) -> None:
    """Measure all cases that need no other simulator."""
    for _ in range(5):
        for case in (*BULK_LINUX, EBSN, TEN_CLEAN, TEN_LOSSY, TEN_STUDY, PATH, *FEC.values()):
            bench.run(case)
    for case, most in [(TEN_CLEAN, 2), (TEN_LOSSY, 2), (TEN_STUDY, 2), (FEC[10], 30)]:
        us = min(result.cpu_s for result in bench.results[case]) / case.size * 1e6
        bench.target(f"at most {most} µs: {case.title}", f"{us:.2f} µs", us <= most)
    cell = min((bench.run(CELL) for _ in range(3)), key=lambda result: result.cpu_s)
    rate = CELL.size / cell.cpu_s
    assert cell.exchanges, "a cell exchanges frames"
    each = f"{rate:,.0f}, {1e9 * cell.cpu_s / cell.exchanges:.0f} ns per frame exchange"
    bench.target("the cell: at least 1,000 simulated seconds per second", each, rate >= 1000)
    for case, least in [(WIFI[1], 1000), (WIFI[20], 200)]:
        rate = case.size / min(bench.run(case).cpu_s for _ in range(3))
        what = f"{case.title}: at least {least:,} simulated seconds per second"
        bench.target(what, f"{rate:,.0f}", rate >= least)
    bench.run(CROWDED_CELL)
    for bound in BOUNDS:
        within(bench, bound)
    memory(bench)
    jobs(bench)
    start_up(bench)


def within(bench: Bench, bound: Bound) -> None:
    """Check the cost of a case against its bound."""
    pairs = bench.pairs(3, bound.case, bound.usual)
    found = ratio([(case.cost(bound.case), usual.cost(bound.usual)) for case, usual in pairs]).median
    bench.target(f"at most {bound.most:g} times: {bound.what}", f"{found:.2f}", found <= bound.most)


def memory(bench: Bench) -> None:
    """Check that peak memory does not grow with runs four times as long, or four times as many."""
    slack = 256 * 1024
    for case in (BULK[1], EBSN, TEN_LOSSY, PATH, CELL, FEC[10]):
        peaks = []
        for times in (1, 4):
            sized = Case(case.name, times * case.size // 4, "")
            peaks.append(min(bench.run(sized).peak_bytes for _ in range(3)))
        once, four = peaks
        what = f"memory does not grow: {case.name}, {case.size // 4:,} and {case.size:,}"
        bench.target(what, f"{once / MB:.2f} and {four / MB:.2f} MB", four <= once + slack)


def jobs(bench: Bench) -> None:
    """Compare the shortest elapsed times of a study with one job and with two."""
    what = "2 jobs at least 1.9 times as fast as 1"
    if len(os.sched_getaffinity(0)) < 2:
        return bench.target(what, "there is one core", None)
    # Elapsed time is meaningless while other programs take the cores. Our own load is one process at a time.
    busy = os.getloadavg()[0] > 1.5
    pairs = bench.pairs(5, JOBS[1], JOBS[2])
    faster = min(one.wall_s for one, _ in pairs) / min(two.wall_s for _, two in pairs)
    cost = statistics.median(two.cpu_s / one.cpu_s for one, two in pairs)
    measured = f"{faster:.2f}, for {cost:.2f} times the processor time"
    if busy and faster < 1.9:
        return bench.target(what, f"{measured}, on a busy machine", None)
    bench.target(what, measured, faster >= 1.9)


def start_up(bench: Bench) -> None:
    """Measure the elapsed times of ``lasthop --help`` and of the worked example."""
    command = shutil.which("lasthop", path=Path(sys.executable).parent) or shutil.which("lasthop")
    for arguments in (["--help"], ["run", "ebsn-example"]):
        what = f"at most 0.12 s: lasthop {' '.join(arguments)}"
        if command is None:
            bench.target(what, "the command is not installed", None)
            continue
        took = []
        for _ in range(6):
            begun = time.perf_counter()
            subprocess.run([command, *arguments], stdout=subprocess.DEVNULL, check=True)
            took.append(time.perf_counter() - begun)
        bench.target(what, f"{min(took):.2f} s", min(took) <= 0.12)


def beside_ns2(bench: Bench) -> None:
    """Compare with ns-2: with each of its schedulers, and under the rules of ns-2."""
    faster = "as fast as ns-2"
    rules_what = "as much delivered as ns-2 by its rules, within 2 %"
    path_what = "as much delivered as ns-2 on the path, within 5 %"
    try:
        bulk = {scheduler: peers.ns2_bulk("rfc", scheduler) for scheduler in SCHEDULERS}
        path = {scheduler: peers.ns2_path(scheduler, PATH_LOSS) for scheduler in SCHEDULERS}
        own = peers.ns2_bulk("ns2", "Heap")
    except peers.NotInstalledError as why:
        for what in (faster, rules_what, path_what):
            bench.target(what, str(why), None)
        return
    for flows, times, least in [(1, 7, 7), (10, 3, 9), (100, 3, 13)]:
        found = bench.beside(times, BULK[flows], bulk["Heap"], flows)
        what = f"at least {least} times {faster}: {short(BULK[flows])}"
        bench.target(what, f"{found.median:.1f}", found.median >= least)
        # With many flows, the list takes minutes.
        others = [scheduler for scheduler in ("Calendar", "List") if scheduler != "List" or flows < 100]
        for scheduler in others:
            bench.beside(3, BULK[flows], bulk[scheduler], flows)
    found = bench.beside(5, PATH, path["Heap"])
    bench.target(f"at least 4 times {faster}: {PATH.title}", f"{found.median:.1f}", found.median >= 4)
    for scheduler in ("Calendar", "List"):
        bench.beside(3, PATH, path[scheduler])
    bench.beside(5, BULK_NS2, own, 1)
    for what, case, cost, within in [
        (rules_what, BULK_NS2, own.cost(BULK_NS2.size, 1), 0.02),
        (path_what, PATH, path["Heap"].cost(PATH.size), 0.05),
    ]:
        theirs, ours = cost.delivered, bench.results[case][0].delivered
        bench.target(what, f"{theirs:,} and {ours:,}", abs(theirs / ours - 1) <= within)


def beside_ns3(bench: Bench) -> None:
    """Compare with ns-3."""
    try:
        peer, wifi = peers.ns3(bench.scratch, "bulk"), peers.ns3(bench.scratch, "wifi")
    except peers.NotInstalledError as why:
        return bench.target("as fast as ns-3", str(why), None)
    for (flows, case), times in zip(BULK_NS3.items(), (3, 2, 2), strict=True):
        found = bench.beside(times, case, peer, flows)
        bench.target(
            f"at least 200 times as fast as ns-3: {short(case)}", f"{found.median:.0f}", found.median >= 200
        )
    bench.beside(2, WIFI_NS3, wifi, 1)
    bench.notes.append(
        "ns-3 without SACK halves the flight after subtracting the segments that duplicate acknowledgements "
        "report: its window is smaller and it times out five times as often. With SACK, it delivers as much "
        "as ours within 5 %."
    )


def instructions(bench: Bench) -> None:
    """Compare instruction counts, and cycles where the machine counts them, with the recorded ones."""
    what = f"instructions within {guard.TOLERANCE:.0%} of the record"
    try:
        counts = guard.check()
    except guard.NotMeasuredError as why:
        return bench.target(what, str(why), None)
    for one in counts:
        bench.target(f"{what}: {one.case}", f"{one.counted:,} ({one.change:+.2%})", one.holds)
    what = "cycles beside the record"
    try:
        for one in guard.check_cycles():
            bench.target(f"{what}: {one.case}", f"{one.counted:,} ({one.change:+.2%})", None)
    except guard.NotMeasuredError as why:
        bench.target(what, str(why), None)


def table_of_cases(bench: Bench) -> Table:
    """Return the table of costs per case."""
    table = Table(box=box.SIMPLE_HEAD, title="Least of all runs; ratios: median (least) over pairs")
    table.add_column("case")
    for heading in ["delivered", "CPU ns/segment", "events/s", "peak MB"]:
        table.add_column(heading, justify="right")
    for heading in ["ns-2 heap / ours", "ns-2 fastest / ours", "ns-3 / ours"]:
        table.add_column(heading, justify="right")
    for case, results in sorted(bench.results.items(), key=lambda item: item[0].title):
        if not case.title:
            continue
        best = min(results, key=lambda result: result.cpu_s)
        events = f"{best.events / best.cpu_s:,.0f}" if best.events else "-"
        peak = f"{max(result.peak_bytes for result in results) / MB:.1f}"
        ns2 = [bench.ratios.get((case, f"ns-2 {scheduler}")) for scheduler in SCHEDULERS]
        fastest = min(filter(None, ns2), default=None)
        against = [str(found or "-") for found in (ns2[0], fastest, bench.ratios.get((case, "ns-3")))]
        delivered = f"{best.delivered:,}" if best.delivered else "-"
        table.add_row(case.title, delivered, f"{best.cost(case):,.0f}", events, peak, *against)
    return table


def table_of_targets(bench: Bench) -> Table:
    """Return the table of targets."""
    table = Table(box=box.SIMPLE_HEAD, title="Targets")
    for heading in ["target", "measured", ""]:
        table.add_column(heading)
    words = {True: "[green]met", False: "[red]not met", None: "[yellow]not measured"}
    for target in bench.targets:
        table.add_row(target.what, target.measured, words[target.met])
    return table


def main() -> None:
    """Run everything and print the tables."""
    # Folded tables are hard to read, so anything but a terminal counts as 140 columns wide.
    console = Console(width=None if sys.stdout.isatty() else 140)
    steps: list[tuple[str, Callable[[Bench], None]]] = [
        ("our own cases", our_cases),
        ("beside ns-2", beside_ns2),
        ("beside ns-3", beside_ns3),
        ("instructions", instructions),
    ]
    with tempfile.TemporaryDirectory() as scratch, console.status("building") as status:
        bench = Bench(build(), Path(scratch))
        for name, step in steps:
            status.update(name)
            step(bench)
    console.print(table_of_cases(bench))
    for note in bench.notes:
        console.print(f"  {note}", highlight=False)
    console.print(table_of_targets(bench))
    load = os.getloadavg()[0]
    console.print(f"  Load of the machine: {load:.1f} on {os.cpu_count()} cores.", highlight=False)


if __name__ == "__main__":
    main()
