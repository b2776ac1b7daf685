"""Compare a kernel's queueing disciplines with those of the simulator.

``python scripts/kernel_queues.py`` runs, on a kernel of ``lasthop kernel build`` in virtual time, a sender, a
router and a receiver. The router shapes to the rate by HTB, below which is the discipline; ACKs return after
a delay of netem. The simulator runs the same sender over a link of the same rate, delay and queue. It prints
the throughput, mean and 95th percentile of the time that packets wait in the queue, drops and marks of both
as a Markdown table. Disciplines that the kernel lacks are named. The same table comes out each time.

``--only PIE --only RED`` runs these rows; ``--rate``, ``--rtt``, ``--seconds`` and ``--runs`` change others.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from fidelity import ENDS, half_width

SENDER, RECEIVER = "10.1.0.2", "10.2.0.2"

FRAME = 14
"""Bytes of Ethernet that HTB counts, and the simulator does not."""

PACKET = 1500

SCENARIO = """
schemes = ["basic"]
limit = "{seconds} s"
sender = "ours"
senders.ours = {{ profile = "linux", congestion = "{control}", ecn = {ecn} }}
[transfer]
size = "unlimited"
[wired]
rate = "1 Gbps"
delay = "{delay} ms"
[radio]
rate = "{rate} Mbps"
delay = "1 ms"
queue{queue}
[radio.uplink]
rate = "1 Gbps"
"""


class Row(NamedTuple):
    """A discipline, and a sender before it."""

    name: str
    tc: str
    """The discipline as tc(8) takes it; netem and CAKE have a rate of their own."""
    queue: str
    """The same in a scenario."""
    control: str = "cubic"
    ecn: str = "false"
    """ECN of the sender: false, true or "accurate"."""
    needs: str = ""
    """What the kernel must have, by its name in `lasthop kernel list`."""
    shapes: bool = False
    """Whether the discipline has a rate, in place of HTB."""


RED = "red limit 1500000 min 7500 max 22500 avpkt 1500 burst 9 bandwidth {rate} probability 0.1"
OUR_RED = (
    '.red = {{ limit = "1000 packets", min = 5, max = 15, weight = 0.125, max_probability = 0.1, '
    'gentle = false, wait = false, mean_packet = "1500 B"'
)

DCTCP = ("dctcp", '"accurate"', "AccECN")
"""DCTCP's senders, and what they need; kernels with accurate ECN have DualPI2, too."""

ROWS = (
    Row("drop-tail", "pfifo limit 50", ' = "50 packets"'),
    Row("netem", "netem rate {rate} limit 50", ' = "50 packets"', shapes=True),
    Row("CoDel", "codel", ".codel = {{}}"),
    Row("FQ-CoDel", "fq_codel", ".fq-codel = {{}}"),
    Row(
        "CAKE",
        "cake bandwidth {rate} raw besteffort",
        '.cake = {{ tins = "besteffort" }}',
        shapes=True,
        needs="CAKE",
    ),
    Row("PIE", "pie", ".pie = {{}}", needs="PIE"),
    Row("RED", RED, OUR_RED + " }}"),
    Row("DualPI2", "dualpi2", ".dualpi2 = {{}}", needs="DualPI2"),
    Row("CoDel, ECN", "codel ecn", ".codel = {{}}", ecn="true"),
    Row(
        "CAKE, ECN",
        "cake bandwidth {rate} raw besteffort",
        '.cake = {{ tins = "besteffort" }}',
        ecn="true",
        shapes=True,
        needs="CAKE",
    ),
    Row("PIE, ECN", "pie ecn", ".pie = {{}}", ecn="true", needs="PIE"),
    Row("RED, ECN", RED + " ecn", OUR_RED + " }}", ecn="true"),
    Row("RED, ECN, harddrop", RED + " ecn harddrop", OUR_RED + " }}", ecn="true"),
    Row("CoDel, AccECN", "codel ecn", ".codel = {{}}", ecn='"accurate"', needs="AccECN"),
    Row("RED, DCTCP", RED + " ecn", OUR_RED + " }}", *DCTCP),
    Row("RED, harddrop, DCTCP", RED + " ecn harddrop", OUR_RED + " }}", *DCTCP),
    Row("CoDel, DCTCP", "codel ecn", ".codel = {{}}", *DCTCP),
    Row("DualPI2, DCTCP", "dualpi2", ".dualpi2 = {{}}", *DCTCP),
)


class Seen(NamedTuple):
    """What a run showed."""

    throughput: float
    """In Mb/s, received from the start of the connection on."""
    mean: float
    """Time in the queue in ms."""
    p95: float
    drops: int
    marks: int


# ---- within the guest


def run(line: str) -> str:
    """Run a command; returns what it prints."""
    return subprocess.run(line.split(), check=True, capture_output=True, text=True).stdout


def host(device: str, address: str, settings: list[str], program: list[str]) -> None:
    """Be an end: wait for an interface, configure it, and become the program at the next line."""
    input()
    for setting in settings:
        name, _, value = setting.partition("=")
        Path("/proc/sys/net/ipv4", name).write_text(value)
    run("ip link set lo up")
    run(f"ip address add {address}/24 dev {device}")
    run(f"ip link set {device} gso_max_segs 1 up")
    run(f"ip route add default via {address[:-1]}1")
    print("up", flush=True)
    input()
    os.execv(program[0], program)


class Watch(threading.Thread):
    """Notes when packets with data pass an interface, and their marks."""

    OUTGOING = 4
    """Direction of a packet that leaves (packet(7))."""
    STAMP = 35
    """SO_TIMESTAMPNS, an option and its message."""
    ALL = 3
    """ETH_P_ALL, the only one that sees packets that leave."""
    CE = 3

    def __init__(self, device: str, *, leaving: bool) -> None:
        super().__init__(daemon=True)
        self.times: dict[tuple[int, int], tuple[float, bool]] = {}
        self._leaving = leaving
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(self.ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, self.STAMP, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind((device, self.ALL))

    def run(self) -> None:
        """Note them until the process ends."""
        while True:
            packet, messages, _, place = self._socket.recvmsg(64, 64)
            if (
                (place[2] == self.OUTGOING) != self._leaving
                or packet[:1] != b"E"
                or packet[9] != socket.IPPROTO_TCP
            ):
                continue
            length, identification = struct.unpack_from("!HH", packet, 2)
            (sequence,) = struct.unpack_from("!I", packet, 24)
            if length < 200:
                continue
            seconds, nanoseconds = struct.unpack("qq", messages[0][2])
            # A retransmission has another identification.
            self.times[identification, sequence] = (seconds + nanoseconds / 1e9, packet[1] & 3 == self.CE)


def inside(row: Row, rate: float, rtt: float, seconds: float) -> None:
    """Run the network, and print what was seen as JSON."""
    this = [sys.executable, str(Path(__file__).resolve())]
    ecn = {"false": "0", "true": "1", '"accurate"': "3"}[row.ecn]
    ends = []
    for name, address, program in (
        ("s", SENDER, [*ENDS, "send", row.control]),
        ("r", RECEIVER, [*ENDS, "receive", SENDER, str(seconds)]),
    ):
        plan = json.dumps([f"{name}1", address, [f"tcp_ecn={ecn}"], program])
        line = ["unshare", "--net", *this, "--host", plan]
        end = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert end.stdin
        assert end.stdout
        run(f"ip link add {name}0 type veth peer name {name}1 netns {end.pid}")
        run(f"ip address add {address[:-1]}1/24 dev {name}0")
        run(f"ip link set {name}0 gso_max_segs 1 up")
        end.stdin.write("\n")
        end.stdin.flush()
        assert end.stdout.readline() == "up\n"
        ends.append(end)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    shaped = round(rate * 1e6 * (PACKET + FRAME) / PACKET)
    run(f"tc qdisc add dev s0 root netem delay {rtt}ms limit 100000")
    if row.shapes:
        # netem and CAKE with `raw` count the frame as well.
        run(f"tc qdisc add dev r0 root {row.tc.format(rate=f'{shaped}bit')}")
    else:
        run("tc qdisc add dev r0 root handle 1: htb default 1")
        burst = PACKET + FRAME
        run(f"tc class add dev r0 parent 1: classid 1:1 htb rate {shaped}bit burst {burst} cburst {burst}")
        run(f"tc qdisc add dev r0 parent 1:1 {row.tc.format(rate=f'{shaped}bit')}")
    watches = [Watch("s0", leaving=False), Watch("r0", leaving=True)]
    for watch in watches:
        watch.start()
    sender, receiver = ends
    for end in ends:
        assert end.stdin
        end.stdin.write("\n")
        end.stdin.flush()
    assert receiver.stdout
    throughput = float(receiver.stdout.readline())
    sender.kill()
    came, left = (watch.times for watch in watches)
    waits = sorted(1e3 * (left[key][0] - came[key][0]) for key in left.keys() & came.keys())
    shown = {
        "throughput": throughput / 1e6,
        "mean": statistics.fmean(waits),
        "p95": waits[int(0.95 * len(waits))],
        "drops": int(re.findall(r"dropped (\d+)", run("tc -s qdisc show dev r0"))[-1]),
        "marks": sum(marked for _, marked in left.values()),
        "settings": run("tc -d qdisc show dev r0"),
    }
    print(json.dumps(shown), flush=True)


# ---- outside


def in_kernel(kernel: Any, row: Row, seed: int, asked: argparse.Namespace) -> Seen:
    """Run a row in a guest."""
    from lasthop.virtual import guest

    draw = guest.Draw.of(1, seed)
    plan = json.dumps([*row, asked.rate, asked.rtt, asked.seconds, draw.phase_s])
    job = guest.Job(
        command=[
            "unshare",
            "--map-root-user",
            "--net",
            "--mount",
            sys.executable,
            str(Path(__file__).resolve()),
            "--inside",
            plan,
        ],
        environment={"PATH": os.environ["PATH"]},
        writable=[],
        entropy=draw.entropy,
    )
    out, err = BytesIO(), BytesIO()
    ended = guest.run(kernel, job, limit_s=3600, stdout=out, stderr=err, stop=threading.Event())
    if ended.exit_code:
        raise SystemExit(f"{row.name} failed with {ended.exit_code}:\n{err.getvalue().decode()}")
    shown = json.loads(out.getvalue())
    if asked.settings:
        print(shown["settings"], file=sys.stderr)
    return Seen(**{name: shown[name] for name in Seen._fields})


def simulated(row: Row, run: int, asked: argparse.Namespace) -> Seen:
    """Run a row in the simulator."""
    import numpy as np

    from lasthop import Scenario

    text = SCENARIO.format(
        seconds=asked.seconds,
        control=row.control,
        ecn=row.ecn,
        delay=asked.rtt / 2 - 1,
        rate=asked.rate,
        queue=row.queue.format(),
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        scenario = Scenario.load(Path(file.name), overrides=[f"transfer.start={run * 317} us"])
    done = scenario.run("basic", run=run, delays=True)
    metrics, delays = done.metrics, done.delays()
    of_queue = delays["link"] & (delays["to"] == "mobile") & (delays["size_bytes"] > 200)
    waits = 1e3 * delays["queueing_s"][of_queue]
    waits = np.sort(waits[np.isfinite(waits)])
    return Seen(
        metrics["throughput_bps"] / 1e6,
        float(waits.mean()),
        float(waits[int(0.95 * len(waits))]),
        metrics["queue_drops"] + metrics["aqm_drops"],
        metrics["ecn_marks"],
    )


def shown(values: list[float], digits: int) -> str:
    """Return mean and half-width of the 95 % interval."""
    return f"{statistics.fmean(values):.{digits}f} ± {half_width(values):.{digits}f}"


def main() -> None:
    """Compare, or be a program within the guest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS], help="may be repeated")
    parser.add_argument("--kernel", help="its file or version; by default the newest")
    parser.add_argument("--rate", type=float, default=10.0, help="in Mb/s")
    parser.add_argument("--rtt", type=float, default=60.0, help="of the propagation, in ms")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each run")
    parser.add_argument("--runs", type=int, default=4, help="runs of each row")
    parser.add_argument(
        "--settings", action="store_true", help="show the kernel's settings of each discipline"
    )
    for name in ("inside", "host"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.host:
        return host(*json.loads(asked.host))
    if asked.inside:
        *row, rate, rtt, seconds, phase = json.loads(asked.inside)
        threading.Event().wait(phase)
        return inside(Row(*row), rate, rtt, seconds)

    from lasthop.virtual import kernels

    kernel = kernels.find(asked.kernel, print)
    print(
        f"Linux {kernel.version} in virtual time: {asked.rate:g} Mb/s, {asked.rtt:g} ms, "
        f"{asked.runs} runs of {asked.seconds:g} s\n"
    )
    rows = [row for row in ROWS if row.name in (asked.only or [row.name])]
    lacking = [row for row in rows if row.needs and row.needs not in kernel.features]
    print(
        "| discipline | | throughput (Mb/s) | wait, mean (ms) | wait, p95 (ms) | drops | marks |\n"
        "|---|---|---|---|---|---|---|"
    )
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        begun = [
            (
                row,
                [
                    [pool.submit(of, *args, row, run, asked) for run in range(asked.runs)]
                    for of, args in ((in_kernel, (kernel,)), (simulated, ()))
                ],
            )
            for row in rows
            if row not in lacking
        ]
        for row, both in begun:
            for who, runs in zip(("kernel", "simulator"), both, strict=True):
                columns = list(zip(*(each.result() for each in runs), strict=True))
                cells = [
                    shown(list(values), digits)
                    for values, digits in zip(columns, (2, 1, 1, 0, 0), strict=True)
                ]
                print(f"| {row.name if who == 'kernel' else ''} | {who} | {' | '.join(cells)} |", flush=True)
    if lacking:
        print(f"\nThis kernel lacks {', '.join(row.name for row in lacking)}.")
    return None


if __name__ == "__main__":
    main()
