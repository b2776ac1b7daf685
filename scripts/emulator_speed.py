"""Measure how many packets per second the emulator carries on this machine, and how late they are.

``python scripts/emulator_speed.py`` sends UDP datagrams of two sizes at given rates through ``lasthop
emulate``, over links of 10 Gb/s, and TCP without pause, over links of 1 and of 10 Gb/s, each for some
seconds. It prints a table in Markdown: what arrived, what was dropped since the machine was too slow, the
lateness, and the processor time of the thread that carried the packets. The heading has the load of the
machine, which slows down the programs at both ends as well. The last line has what no program can avoid:
for how long each processor was withheld from a thread that only read the clock, by a hypervisor,
interrupts or other programs. Many hypervisors withhold more after some busy seconds, so that this comes
last.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PORT = 5003

ALLOWED = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

SCENARIO = """
schemes = ["basic"]
[transfer]
size = "unlimited"
[wired]
rate = "10 Gbps"
delay = "1 ms"
queue = "20000 packets"
[radio]
rate = "{rate}"
delay = "1 ms"
queue = "{queue}"
"""

BURST = 16
"""Datagrams that a sender hands to the kernel at once."""

UDP_SEGMENT = 103
"""The socket option with which the kernel cuts one buffer into datagrams of this size."""

HEADERS = 28
"""Bytes of IPv4 and UDP."""


STALL_S = 0.001
"""What a packet must be late at the least to be counted as such."""


def stalls(processor: int, seconds: float) -> tuple[float, float]:
    """Watch the clock on one processor.

    Returns the longest time for which the processor was withheld, and the share of all instants from which
    it was withheld for longer than `STALL_S`: of packets that come at any time, at least so many are as late.
    """
    os.sched_setaffinity(0, {processor})
    longest = late = 0.0
    begin = before = time.perf_counter()
    while before - begin < seconds:
        now = time.perf_counter()
        longest = max(longest, now - before)
        late += max(now - before - STALL_S, 0.0)
        before = now
    return longest, late / seconds


def send_datagrams(address: str, size: int, rate: float, seconds: float) -> None:
    """Send datagrams of `size` bytes with headers, `rate` a second."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.connect((address, PORT))
    payload = size - HEADERS
    peer.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, payload)
    burst = bytes(payload * BURST)
    begin, sent = time.monotonic(), 0
    while (now := time.monotonic() - begin) < seconds:
        if sent < rate * now:
            peer.send(burst)
            sent += BURST
        else:
            time.sleep(BURST / rate / 4)


def receive_datagrams() -> None:
    """Read what arrives."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("", PORT))
    # The emulation begins when a program listens on TCP.
    socket.create_server(("", PORT))
    buffer = bytearray(65536)
    while True:
        listener.recv_into(buffer)


def measure(
    path: Path, scheme: str, seconds: float, server: list[str], client: list[str]
) -> tuple[float, float, str]:
    """Return packets per second, bits per second at the busier end, and the rest of the row."""
    this = [sys.executable, str(Path(__file__).resolve())]
    line = [sys.executable, "-m", "lasthop", "emulate", str(path), "--scheme", scheme, "--json"]
    line += ["--server", " ".join([*this, *server]), "--", *this, *client]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"the emulation failed with {done.returncode}:\n{done.stderr}")
    report = json.loads(done.stdout[done.stdout.index("{\n") :])
    end = max(report["ends"], key=lambda end: end["received_bytes"])
    late = report["lateness"]
    packets = sum(end["received_packets"] for end in report["ends"])
    rest = (
        f"{report['overload_drops']:,} | {1e6 * late['p50_s']:.0f} us | {1e3 * late['p99_s']:.2f} ms | "
        f"{report['cpu_s'] / seconds:.0%} | {1e6 * report['cpu_s'] / packets:.1f} us"
    )
    return packets / seconds, 8 * end["received_bytes"] / seconds, rest


def main() -> None:
    """Measure, or be one of the programs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    parser.add_argument("--scheme", default="basic", help="the scheme of the TCP rows")
    parser.add_argument("--rates", default="50000,100000,150000,200000", help="datagrams a second")
    usual = [control for control in ("cubic", "bbr") if control in ALLOWED.read_text().split()]
    parser.add_argument(
        "--controls", default=",".join(usual), help="congestion control of TCP, of this kernel"
    )
    parser.add_argument("--sizes", default="64,1500", help="bytes of a datagram with its headers")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.role:
        case ["datagrams"]:
            return receive_datagrams()
        case ["datagrams", address, size, rate]:
            return send_datagrams(address, int(size), float(rate), asked.seconds)
        case ["source", control]:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # A change of a connection from BBR would leave its pacing on.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            listener.bind(("", PORT))
            listener.listen()
            peer = listener.accept()[0]
            with suppress(ConnectionError):
                while True:
                    peer.sendall(bytes(1 << 20))
            return None
        case ["drain", address]:
            peer = socket.create_connection((address, PORT))
            until = time.monotonic() + asked.seconds
            while time.monotonic() < until:
                peer.recv(1 << 20)
            return None
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Linux {platform.release()}, {os.cpu_count()} processors, load averages {load}")
    print()
    print("| traffic | packets/s | Mb/s | dropped | p50 late | p99 late | processor | per packet |")
    print("|---|---|---|---|---|---|---|---|")
    seconds = ["--seconds", str(asked.seconds)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "fast.toml"
        path.write_text(SCENARIO.format(rate="10 Gbps", queue="20000 packets"))
        for size in filter(None, asked.sizes.split(",")):
            for rate in asked.rates.split(","):
                roles = ["--role", "datagrams"], ["--role", "datagrams", "{server}", size, rate, *seconds]
                packets, bits, rest = measure(path, "basic", asked.seconds, *roles)
                name = f"UDP, {size} B, {int(rate):,}/s sent"
                print(f"| {name} | {packets:,.0f} | {bits / 1e6:,.0f} | {rest} |", flush=True)
        for rate, queue in (("1 Gbps", "1000 packets"), ("10 Gbps", "20000 packets")):
            path.write_text(SCENARIO.format(rate=rate, queue=queue))
            for control in filter(None, asked.controls.split(",")):
                roles = ["--role", "source", control], ["--role", "drain", "{server}", *seconds]
                packets, bits, rest = measure(path, asked.scheme, asked.seconds, *roles)
                name = f"TCP, {control}, {rate.replace('bps', 'b/s')}"
                print(f"| {name} | {packets:,.0f} | {bits / 1e6:,.0f} | {rest} |", flush=True)
    processors = sorted(os.sched_getaffinity(0))
    with multiprocessing.Pool(len(processors)) as pool:
        withheld = pool.starmap(stalls, [(processor, asked.seconds) for processor in processors], 1)
    each = ", ".join(f"{longest * 1e3:.1f} ms ({late:.2%})" for longest, late in withheld)
    print(f"\nLongest stall of each processor (instants before more than 1 ms of one): {each}")
    return None


if __name__ == "__main__":
    main()
