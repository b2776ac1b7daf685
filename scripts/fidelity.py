"""Compare Linux's TCP over emulated links with simulations of the same links.

``python scripts/fidelity.py`` runs each congestion control of this kernel over a grid of links, with
``lasthop emulate`` and with the simulator, with the same seed and run numbers. The grid varies rate,
round-trip time and independent losses together; bursts, queues, fades and an ARQ each on its own. It prints
the throughput of both with 95 % intervals as a Markdown table, the share of rows within 10 %, and how late
the packets were. Simulated transfers begin at evenly spaced phases of a millisecond, the unit of timestamps.
``--figure STEM`` draws predicted against measured throughput into STEM.png and .svg, and writes all runs to
STEM.csv.

Emulation runs in real time, several at once: the grid takes about 25 minutes of an idle machine. With
``--virtual``, it runs on a kernel of ``lasthop kernel build`` in virtual time, and the machine may be busy:
the same table comes out each time. With ``--server-kernel``, each end has its own. ``--quick`` runs one short
case, ``--case 10,60,0.01,burst=5,queue=0.25,arq`` a link of 10 Mb/s and 60 ms that loses 1 % in bursts of 5
packets, with a queue of a quarter of the bandwidth-delay product and an ARQ. ``--scheme snoop`` puts an agent
at the base station in both, and ``--set scheme.snoop.dupacks=2`` changes the scenarios of both.

``--quic PROGRAM`` compares QUIC: the simulator's senders of quinn with the same code over real sockets, by
the example ``udp`` of ``crates/quic`` (``cargo build -p lasthop-quic --example udp``).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from lasthop.virtual import kernels

SENDERS = {"reno": "linux-reno", "cubic": "linux", "bbr": "linux-bbr"}
"""The simulator's senders, by the kernel's names of their congestion control."""

QUIC_SENDERS = ("quinn-newreno", "quinn-cubic", "quinn-bbr")
"""The simulator's senders that a program over sockets has, too."""

ALLOWED = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

PORT = 5001
"""Where programs of QUIC listen."""

ENDS = [sys.executable, "-I", "-S", str(Path(__file__).resolve().with_name("tcp_ends.py"))]
"""The programs at both ends."""

LATE = 3
"""Exit code of an emulation with late packets."""

ATTEMPTS = 3
"""Attempts of an emulation, repeated if packets are late."""

WALL_LIMIT = 3600
"""Seconds of real time that a run in virtual time may take."""

GOAL = 0.1
"""Largest difference of a row that counts as agreement."""

SCENARIO = """
schemes = ["basic"]
limit = "{seconds} s"
sender = "{sender}"
[transfer]
size = "unlimited"
[wired]
rate = "1 Gbps"
delay = "{delay} ms"
[radio]
rate = "{rate} Mbps"
delay = "1 ms"
queue = "{queue} packets"
channel = {channel}
{arq}
[radio.uplink]
rate = "{rate} Mbps"
channel = "perfect"
"""

ARQ = 'arq.selective-repeat = { retransmissions = "unlimited", feedback_delay = "10 ms" }'


class Case(NamedTuple):
    """A link."""

    rate: int
    """In Mb/s."""
    rtt: int
    """Propagation only, in ms."""
    loss: float
    """Share of the packets, or of the time if bursts have a length in time."""
    burst: str = ""
    """Mean length of a burst: a number of packets, or a time; independent losses if empty."""
    queue: float = 1.0
    """Bandwidth-delay products in the queue before the wireless link; with 1, at least 20 packets."""
    arq: bool = False
    """Whether the wireless link retransmits until a packet arrives."""

    @staticmethod
    def parse(text: str) -> Case:
        """Return the case written as RATE,RTT,LOSS, with settings such as burst=5, queue=0.25 and arq."""
        rate, rtt, loss, *settings = text.split(",")
        named = dict(setting.partition("=")[::2] for setting in settings)
        if unknown := named.keys() - {"burst", "queue", "arq"}:
            raise ValueError(f"unknown settings: {', '.join(unknown)}")
        queue = float(named.get("queue", 1.0))
        return Case(int(rate), int(rtt), float(loss), named.get("burst", ""), queue, "arq" in named)

    @property
    def packets(self) -> int:
        """Length of the queue."""
        product = self.queue * self.rate * self.rtt * 1000 / 8 / 1500
        return round(max(20, product) if self.queue == 1.0 else product)

    @property
    def losses(self) -> str:
        """Losses and their repair in words."""
        text = f"{100 * self.loss:g} %"
        if self.burst.isdigit():
            text += f" in bursts of {self.burst}"
        elif self.burst:
            text += f" of the time, {self.burst} each"
        return f"{text}, ARQ" if self.arq else text

    @property
    def is_random(self) -> bool:
        """Whether single losses decide the throughput of a run, so that it takes more runs."""
        return self.loss > 0 and not self.arq

    def scenario(self, sender: str, seconds: float) -> str:
        """Return the scenario."""
        channel = f"{{ frame-loss = {{ loss = {self.loss} }} }}"
        if self.burst:
            burst = self.burst if self.burst.isdigit() else f'"{self.burst}"'
            channel = f'{{ gilbert = {{ loss = "{100 * self.loss:g} %", burst = {burst} }} }}'
        return SCENARIO.format(
            seconds=seconds,
            sender=sender,
            delay=self.rtt / 2 - 1,
            rate=self.rate,
            queue=self.packets,
            channel=channel,
            arq=ARQ if self.arq else "",
        )


GRID = [Case(*each) for each in itertools.product((2, 10), (20, 60), (0.0, 0.01))] + [
    Case(10, 60, 0.0, queue=0.25),
    Case(10, 60, 0.0, queue=4.0),
    Case(10, 20, 0.01, "5"),
    Case(10, 60, 0.01, "5"),
    Case(2, 60, 0.02, "5"),
    Case(2, 60, 0.09, "400 ms"),
    Case(10, 60, 0.02, "100 ms"),
    Case(10, 60, 0.1, arq=True),
    Case(10, 20, 0.05, "5", arq=True),
    Case(2, 60, 0.09, "400 ms", arq=True),
]


class Measured(NamedTuple):
    """One emulated run."""

    throughput: float
    """In bits per second."""
    p50: float
    """Lateness of the packets in seconds."""
    p99: float


def emulated(
    path: Path,
    scheme: str,
    control: str,
    run: int,
    seconds: float,
    virtual: list[str],
    changes: list[str],
    program: str | None,
) -> Measured | None:
    """Return the throughput of the kernel, or of the program; None if packets were late in all attempts."""
    server, client = shlex.join([*ENDS, "send", control]), [*ENDS, "receive", "{server}", str(seconds)]
    if program is not None:
        server = f"{program} serve {PORT} {control}"
        client = [program, "fetch", f"{{server}}:{PORT}", control, str(seconds)]
    line = [sys.executable, "-m", "lasthop", "emulate", str(path), "--scheme", scheme, "--run", str(run)]
    line += ["--json", "--server", server, *(f"--set={change}" for change in changes), *virtual]
    for _ in range(ATTEMPTS):
        done = subprocess.run([*line, "--", *client], capture_output=True, text=True, check=False)
        if done.returncode not in (0, LATE):
            raise SystemExit(f"the emulation failed with {done.returncode}:\n{done.stderr}")
        if done.returncode == 0:
            late = json.loads(done.stdout)["lateness"]
            # With --json, programs print to stderr.
            return Measured(float(done.stderr.splitlines()[0]), late["p50_s"], late["p99_s"])
    return None


def half_width(values: list[float]) -> float:
    """Return half of the 95 % interval of the mean."""
    from scipy.stats import t

    if len(values) < 2:
        return 0.0
    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


class Row(NamedTuple):
    """What kernel and simulator did over one link, run by run in Mb/s."""

    case: Case
    control: str
    scheme: str
    measured: list[float]
    predicted: list[float]

    @property
    def difference(self) -> float:
        """Of the simulator, relative to the kernel."""
        return statistics.fmean(self.predicted) / statistics.fmean(self.measured) - 1

    @property
    def uncertainty(self) -> float:
        """Half of the 95 % interval of the difference. Runs of the same number have the same losses."""
        ratio = 1 + self.difference
        pairs = zip(self.predicted, self.measured, strict=True)
        return half_width([p - ratio * m for p, m in pairs]) / statistics.fmean(self.measured)


class Campaign:
    """All runs of a grid.

    Parameters
    ----------
    rows : list of (Case, str, str)
        Links with congestion control and scheme.
    runs : int
        Runs of each row; three times as many over links whose single losses matter.
    seconds : float
        Length of each run.
    jobs : int
        Emulations at once.
    directory : Path
        Where scenarios are written.
    virtual : list of str
        Options of virtual time and its kernels; none for the kernel of this machine.
    changes : list of str
        Changes of all scenarios, as of `lasthop --set`.
    program : str or None
        What sends by QUIC over sockets; None for the TCP of the kernel.
    """

    def __init__(
        self,
        rows: list[tuple[Case, str, str]],
        runs: int,
        seconds: float,
        jobs: int,
        directory: Path,
        virtual: list[str],
        changes: list[str],
        program: str | None,
    ) -> None:
        self._seconds, self._virtual, self._changes = seconds, virtual, changes
        self._program = program
        self.lateness: list[Measured] = []
        self.late = 0
        pool = ThreadPoolExecutor(jobs)
        self._begun = []
        for number, (case, control, scheme) in enumerate(rows):
            path = directory / f"{number}.toml"
            # Real hosts bring their own QUIC to a scenario of TCP.
            path.write_text(case.scenario("linux" if program else SENDERS[control], seconds))
            repeated = runs * (3 if case.is_random else 1)
            begun = [
                pool.submit(self._run, path, control, scheme, run, run / repeated) for run in range(repeated)
            ]
            self._begun.append(((case, control, scheme), begun))

    def _run(
        self, path: Path, control: str, scheme: str, run: int, phase: float
    ) -> tuple[Measured | None, float]:
        from lasthop import Scenario

        # Timestamps count milliseconds. Where in one a transfer of the kernel begins is left to chance.
        own = [f"sender={control}"] if self._program else []
        simulated = Scenario.load(
            path, overrides=[*self._changes, *own, f"transfer.start={round(1000 * phase)} us"]
        )
        predicted = simulated.run(scheme, run=run).metrics["throughput_bps"]
        options = (self._seconds, self._virtual, self._changes, self._program)
        return emulated(path, scheme, control, run, *options), predicted

    def rows(self) -> Iterator[Row]:
        """Yield the rows in order. Runs that were late in all attempts are left out."""
        for (case, control, scheme), begun in self._begun:
            found = [each.result() for each in begun]
            kept = [(measured, predicted) for measured, predicted in found if measured is not None]
            self.late += len(found) - len(kept)
            self.lateness += [measured for measured, _ in kept]
            if kept:
                measured = [each.throughput / 1e6 for each, _ in kept]
                yield Row(case, control, scheme, measured, [each / 1e6 for _, each in kept])


def table(rows: Iterable[Row], *, named: bool) -> Iterator[tuple[str, Row | None]]:
    """Yield the lines of the table, with a column of schemes if they are `named`."""
    column, rule = (" scheme |", "---|") if named else ("", "")
    yield (
        f"| rate | RTT | losses | queue | control |{column} kernel (Mb/s) | simulator (Mb/s) | difference |",
        None,
    )
    yield f"|---|---|---|---|---|{rule}---|---|---|", None
    for row in rows:
        case = row.case
        cells = [f"{case.rate} Mb/s", f"{case.rtt} ms", case.losses, str(case.packets), row.control]
        cells += [row.scheme] if named else []
        cells += [
            f"{statistics.fmean(values):.2f} ± {half_width(values):.2f}"
            for values in (row.measured, row.predicted)
        ]
        cells.append(f"{row.difference:+.1%} ± {100 * row.uncertainty:.1f}")
        yield f"| {' | '.join(cells)} |", row


def summary(rows: list[Row], campaign: Campaign) -> Iterator[str]:
    """Yield what the table says as a whole."""
    within = sum(abs(row.difference) <= GOAL for row in rows)
    yield f"{within} of {len(rows)} rows ({within / len(rows):.0%}) are within {GOAL:.0%}."
    p50, p99 = (sorted(getattr(each, name) for each in campaign.lateness) for name in ("p50", "p99"))
    yield (
        f"Lateness over {len(p99)} runs: the median of p50 was {1e6 * statistics.median(p50):.0f} us, of p99 "
        f"{1e3 * statistics.median(p99):.2f} ms; the largest p99 was {1e3 * p99[-1]:.2f} ms."
    )
    if campaign.late:
        yield f"{campaign.late} runs were late in {ATTEMPTS} attempts, and are left out."


def draw(rows: list[Row], stem: str, version: str) -> None:
    """Draw predicted against measured throughput, and write all runs as CSV."""
    from lasthop import plots
    from lasthop.plots._figure import DataFigure
    from lasthop.plots._style import BLUE, GOLD, INK, RED, SHADE, style

    runs = [(row, m, p) for row in rows for m, p in zip(row.measured, row.predicted, strict=True)]
    data: dict[str, list[Any]] = {
        name: [getattr(row.case, name) for row, *_ in runs] for name in Case._fields
    }
    data |= {name: [getattr(row, name) for row, *_ in runs] for name in ("control", "scheme")}
    data |= {"kernel_mbps": [m for _, m, _ in runs], "simulator_mbps": [p for *_, p in runs]}
    with style():
        figure = DataFigure(data, width=6.4, height=5.6)
        axes = figure.add_subplot()
        means = [statistics.fmean(values) for row in rows for values in (row.measured, row.predicted)]
        ends = [0.8 * min(means), 1.25 * max(means)]
        bounds = [[(1 + sign * GOAL) * end for end in ends] for sign in (-1, 1)]
        axes.fill_between(ends, *bounds, color=SHADE, linewidth=0, label="within 10 %")
        axes.plot(ends, ends, color=INK, linewidth=0.8)
        marks = {"reno": (BLUE, "o"), "cubic": (RED, "s"), "bbr": (GOLD, "^")}
        marks |= {f"quinn-{name}": marks[name.removeprefix("new")] for name in ("newreno", "cubic", "bbr")}
        for control, (colour, marker) in marks.items():
            of_control = [row for row in rows if row.control == control]
            axes.errorbar(
                [statistics.fmean(row.measured) for row in of_control],
                [statistics.fmean(row.predicted) for row in of_control],
                xerr=[half_width(row.measured) for row in of_control],
                yerr=[half_width(row.predicted) for row in of_control],
                linestyle="none",
                marker=marker,
                markersize=5,
                markerfacecolor="none",
                elinewidth=0.8,
                color=colour,
                label=control,
            )
        for row in rows:
            if abs(row.difference) > GOAL:
                x, y = statistics.fmean(row.measured), statistics.fmean(row.predicted)
                place = {"xytext": (6, -3), "textcoords": "offset points", "fontsize": 7}
                text = f"{row.case.losses}, {row.case.rtt} ms, queue {row.case.packets}"
                axes.annotate(text, (x, y), **place)
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        ticks = [tick for tick in (0.5, 1, 2, 3, 5, 7, 10) if ends[0] <= tick <= ends[1]]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel(f"measured: Linux {version.split('-')[0]} (Mb/s)")
        axes.set_ylabel("predicted: the simulator (Mb/s)")
        axes.legend(loc="upper left")
    plots.save(figure, stem)


def main() -> None:
    """Compare, or run as the sending or receiving program of an emulation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short case")
    parser.add_argument(
        "--case",
        type=Case.parse,
        action="append",
        metavar="MBPS,MS,LOSS[,burst=N][,queue=BDP][,arq]",
        help="this link; may be repeated",
    )
    parser.add_argument(
        "--control",
        action="append",
        choices=(*SENDERS, *QUIC_SENDERS),
        help="may be repeated; by default all",
    )
    parser.add_argument("--quic", metavar="PROGRAM", help="compare QUIC with this program over sockets")
    parser.add_argument("--scheme", action="append", help="may be repeated; by default basic")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the scenarios, as of lasthop; may be repeated",
    )
    parser.add_argument(
        "--runs", type=int, default=4, help="runs of each row; three times as many with losses"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each run")
    parser.add_argument(
        "--jobs", type=int, help="emulations at once; by default 4, in virtual time one for each processor"
    )
    parser.add_argument("--virtual", action="store_true", help="in virtual time, on a kernel of its own")
    parser.add_argument("--kernel", help="with --virtual: its file or version; by default the newest")
    parser.add_argument("--server-kernel", help="with --virtual: that of the sender, which then has its own")
    parser.add_argument("--figure", metavar="STEM", help="draw the rows, and write all runs as CSV")
    asked = parser.parse_args()
    if (asked.kernel or asked.server_kernel) and not asked.virtual:
        parser.error("--kernel and --server-kernel are about virtual time; add --virtual")
    kernel = kernels.find(asked.kernel, print) if asked.virtual else None
    version = f"{kernel.version} in virtual time" if kernel else platform.release()
    virtual = []
    if kernel:
        virtual = ["--virtual", "--wall-limit", str(WALL_LIMIT), "--kernel", str(kernel.path)]
    if asked.server_kernel:
        sender = kernels.find(asked.server_kernel, print, "--server-kernel")
        virtual += ["--server-kernel", str(sender.path)]
        version = f"{sender.version} to {version}"
    jobs = asked.jobs or (len(os.sched_getaffinity(0)) if kernel else 4)
    known = list(QUIC_SENDERS if asked.quic else SENDERS)
    available = known if kernel or asked.quic else ALLOWED.read_text().split()
    controls = [control for control in asked.control or known if control in available]
    cases, schemes, runs, seconds = asked.case or GRID, asked.scheme or ["basic"], asked.runs, asked.seconds
    if asked.quick:
        cases, controls, runs, seconds = [Case(2, 20, 0.0)], controls[:1], 1, 2.0
    print(f"Linux {version}\n")
    with tempfile.TemporaryDirectory() as directory:
        order = list(itertools.product(cases, controls, schemes))
        campaign = Campaign(order, runs, seconds, jobs, Path(directory), virtual, asked.set, asked.quic)
        rows: list[Row] = []
        for line, row in table(campaign.rows(), named=schemes != ["basic"]):
            print(line, flush=True)
            rows += [row] if row else []
    if not rows:
        raise SystemExit(f"all runs were late in {ATTEMPTS} attempts; use an idle machine")
    print()
    for line in summary(rows, campaign):
        print(line)
    if asked.figure:
        draw(rows, asked.figure, version)
    return None


if __name__ == "__main__":
    main()
