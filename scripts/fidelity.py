"""Compare Linux's TCP over emulated links with simulations of the same links.

``python scripts/fidelity.py`` runs each congestion control of this kernel over a small grid of rate,
round-trip time and loss, with ``lasthop emulate`` and with the simulator, with the same seed and run numbers.
It prints the throughput of both with 95 % intervals as a Markdown table. Emulation runs in real time: the
grid takes about twenty minutes. ``--quick`` runs one short case, ``--case 10,60,0.01`` a link of 10 Mb/s and
60 ms with a loss of 1 %. ``--scheme snoop`` puts an agent at the base station in both.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SENDERS = {"reno": "linux-reno", "cubic": "linux", "bbr": "linux-bbr"}
"""The simulator's senders, by the kernel's names of their congestion control."""

ALLOWED = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

PORT = 5001

LATE = 3
"""Exit code of an emulation with late packets."""

ATTEMPTS = 3
"""Attempts of an emulation, repeated if packets are late."""

SCENARIO = """
schemes = ["basic"]
limit = "{seconds} s"
sender = "{sender}"
[transfer]
size = "unlimited"
[senders.linux-reno]
profile = "linux"
congestion = "reno"
[wired]
rate = "1 Gbps"
delay = "{delay} ms"
[radio]
rate = "{rate} Mbps"
delay = "1 ms"
queue = "{queue} packets"
channel.frame-loss.loss = {loss}
[radio.uplink]
rate = "{rate} Mbps"
channel = "perfect"
"""


class Case(NamedTuple):
    """A link."""

    rate: int
    """In Mb/s."""
    rtt: int
    """Propagation only, in ms."""
    loss: float

    @staticmethod
    def parse(text: str) -> Case:
        """Return the case written as RATE,RTT,LOSS."""
        rate, rtt, loss = text.split(",")
        return Case(int(rate), int(rtt), float(loss))

    def scenario(self, sender: str, seconds: float) -> str:
        """Return the scenario, with a queue of one bandwidth-delay product, and at least 20 packets."""
        packets = max(20, round(self.rate * self.rtt * 1000 / 8 / 1500))
        return SCENARIO.format(
            seconds=seconds,
            sender=sender,
            delay=self.rtt / 2 - 1,
            rate=self.rate,
            queue=packets,
            loss=self.loss,
        )


GRID = [Case(*each) for each in itertools.product((2, 10), (20, 60), (0.0, 0.01))]


def send(control: str) -> None:
    """Send forever to the first client."""
    listener = socket.create_server(("", PORT))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    peer, _ = listener.accept()
    try:
        while True:
            peer.sendall(bytes(65536))
    except OSError:
        pass


def receive(address: str, seconds: float) -> None:
    """Print the throughput from the start of the connection, in bits per second."""
    begin = time.monotonic()
    peer = socket.create_connection((address, PORT))
    received = 0
    while (left := begin + seconds - time.monotonic()) > 0:
        peer.settimeout(left)
        try:
            received += len(peer.recv(1 << 20))
        except TimeoutError:
            break
    print(8 * received / seconds)


def emulated(path: Path, scheme: str, control: str, run: int, seconds: float) -> float:
    """Return the throughput of the kernel in bits per second."""
    this = [sys.executable, str(Path(__file__).resolve())]
    server = " ".join([*this, "--send", control])
    client = [*this, "--receive", "{server}", "--seconds", str(seconds)]
    line = [sys.executable, "-m", "lasthop", "emulate", str(path), "--scheme", scheme, "--run", str(run)]
    line += ["--server", server]
    for _ in range(ATTEMPTS):
        done = subprocess.run([*line, "--", *client], capture_output=True, text=True, check=False)
        if done.returncode != LATE:
            break
    if done.returncode:
        raise SystemExit(f"the emulation failed with {done.returncode}:\n{done.stderr}")
    return float(done.stdout)


def interval(values: list[float]) -> str:
    """Return the mean in Mb/s with its 95 % interval."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean / 1e6:.2f}"
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean / 1e6:.2f} ± {half / 1e6:.2f}"


def compare(
    cases: list[Case], controls: list[str], schemes: list[str], runs: int, seconds: float
) -> Iterator[str]:
    """Yield the rows of the table, with a column of schemes if there are any besides the baseline."""
    from lasthop import Scenario

    named = schemes != ["basic"]
    column, rule = (" scheme |", "---|") if named else ("", "")
    yield f"| rate | RTT | loss | control |{column} kernel (Mb/s) | simulator (Mb/s) | difference |"
    yield f"|---|---|---|---|{rule}---|---|---|"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "case.toml"
        for case, control, scheme in itertools.product(cases, controls, schemes):
            text = case.scenario(SENDERS[control], seconds)
            path.write_text(text)
            scenario = Scenario.parse(text)
            numbers = range(runs)
            predicted = [scenario.run(scheme, run=n).metrics["throughput_bps"] for n in numbers]
            measured = [emulated(path, scheme, control, n, seconds) for n in numbers]
            difference = statistics.fmean(predicted) / statistics.fmean(measured) - 1
            row = f"{case.rate} Mb/s | {case.rtt} ms | {100 * case.loss:g} % | {control}"
            row += f" | {scheme}" if named else ""
            yield f"| {row} | {interval(measured)} | {interval(predicted)} | {difference:+.1%} |"


def main() -> None:
    """Compare, or run as the sending or receiving program of an emulation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short case")
    parser.add_argument(
        "--case", type=Case.parse, action="append", metavar="MBPS,MS,LOSS", help="this link; may be repeated"
    )
    parser.add_argument("--control", action="append", choices=SENDERS, help="may be repeated; by default all")
    parser.add_argument("--scheme", action="append", help="may be repeated; by default basic")
    parser.add_argument("--runs", type=int, default=4, help="runs of each case")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each run")
    parser.add_argument("--send", metavar="CONTROL", help=argparse.SUPPRESS)
    parser.add_argument("--receive", metavar="ADDRESS", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.send:
        return send(asked.send)
    if asked.receive:
        return receive(asked.receive, asked.seconds)
    available = ALLOWED.read_text().split()
    controls = [control for control in asked.control or SENDERS if control in available]
    print(f"Linux {platform.release()}\n")
    if asked.quick:
        rows = compare([Case(2, 20, 0.0)], controls[:1], ["basic"], 1, 2.0)
    else:
        rows = compare(asked.case or GRID, controls, asked.scheme or ["basic"], asked.runs, asked.seconds)
    for row in rows:
        print(row, flush=True)
    return None


if __name__ == "__main__":
    main()
