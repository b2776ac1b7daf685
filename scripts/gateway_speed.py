"""Measure the gateway: `python scripts/gateway_speed.py PROGRAM [--pepsal PROGRAM] [--sing-box PROGRAM]`.

PROGRAM is `lasthop-gateway`. Client, gateway and server are network namespaces of this machine, joined by
wires; all of them share its processors. Measured are the goodput of one connection and of a hundred,
forwarded, split, with agents, through a tunnel of two gateways, and split by PEPsal and sing-box if they are
there, and the processor time of each for a gigabyte; the time that a client waits for a new connection, and
the processor time that it costs the gateway; the memory of idle connections; and the delay of packets that
pass. Needs root, iperf3, and nft for the other two. On a machine with other work, `nice -n -19` keeps that
out.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from gateway_network import BEHIND, SERVER, Network, needed, wait

IDLE = f"""
import socket, sys, time
end, count = sys.argv[1], int(sys.argv[2])
if end == "server":
    listener = socket.create_server(("{SERVER}", 7000), backlog=4096)
    all = []
    while True:
        all.append(listener.accept()[0])
else:
    waits, all = [], []
    for _ in range(count):
        began = time.perf_counter()
        all.append(socket.create_connection(("{SERVER}", 7000), 10))
        waits.append(time.perf_counter() - began)
    print(*(f"{{wait * 1e6:.1f}}" for wait in waits), flush=True)
    sys.stdin.read()
"""
DELAYS = f"""
import socket, sys, time
end, count = sys.argv[1], int(sys.argv[2])
if end == "server":
    stream = socket.create_server(("{SERVER}", 7001)).accept()[0]
    while data := stream.recv(1):
        stream.send(data)
else:
    stream = socket.create_connection(("{SERVER}", 7001), 10)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(count):
        began = time.perf_counter()
        stream.send(b"x")
        stream.recv(1)
        print(f"{{(time.perf_counter() - began) * 1e6:.1f}}")
"""
PROXY_RULES = """
table inet proxy {
    chain prerouting {
        type filter hook prerouting priority mangle; policy accept;
        meta l4proto tcp socket transparent 1 meta mark set 1 accept
        iifname "radio0" meta l4proto tcp tproxy ip to 127.0.0.1:5000 meta mark set 1 accept
    }
}
"""
SING_BOX = """
{"log": {"level": "error"}, "outbounds": [{"type": "direct"}],
 "inbounds": [{"type": "tproxy", "listen": "127.0.0.1", "listen_port": 5000}]}
"""


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path, help="lasthop-gateway")
    parser.add_argument("--pepsal", type=Path, help="pepsal")
    parser.add_argument("--sing-box", type=Path, help="sing-box")
    parser.add_argument("--idle", type=int, default=4000, help="number of idle connections")
    parser.add_argument("--runs", type=int, default=5, help="transfers of each kind")
    parser.add_argument("--seconds", type=int, default=3, help="length of a transfer")
    options = parser.parse_args()
    needed("iperf3", *(["nft"] if options.pepsal or options.sing_box else []))
    program = [str(options.program.resolve())]
    with Network() as network:
        network.wire("server", "wired0", 2)
        network.wire("client", "radio0", 1)
        arms: dict[str, Callable[[], object]] = {
            "forwarded": lambda: nothing(),
            "split": lambda: network.gateway("", program),
            "agents (snoop)": lambda: network.gateway('scheme = "snoop"\n', program),
        }
        for scheme in ("basic", "arq", "packet-fec"):
            arms[f"tunnel ({scheme})"] = partial(network.tunnel, f'scheme = "{scheme}"\n', "", program)
        proxies = {}
        if options.pepsal:
            proxies["PEPsal"] = [str(options.pepsal.resolve()), "-p", "5000", "-c", "4096"]
        if options.sing_box:
            configuration = network.directory / "sing-box.json"
            configuration.write_text(SING_BOX, encoding="utf-8")
            proxies["sing-box"] = [str(options.sing_box.resolve()), "run", "-c", str(configuration)]
        arms |= {name: partial(proxy, network, line) for name, line in proxies.items()}
        print(
            f"{'Gb/s, median of ' + str(options.runs):<26}{'1 connection':>20}{'100 connections':>20}  s/GB"
        )
        for name, arm in arms.items():
            with arm() as process:  # type: ignore[attr-defined]
                # The others have no status, and what is forwarded costs no process.
                pid = None
                if name in proxies:
                    pid = process.pid
                elif name != "forwarded":
                    pid = network.status(program)["pid"]
                before_s, rates = spent_s(pid), []
                for connections in (1, 100):
                    line = ["-t", str(options.seconds), "-P", str(connections)]
                    line += ["-B", BEHIND] if "tunnel" in name else []
                    rates.append([network.transfer(line) for _ in range(options.runs)])
                gigabytes = sum(map(sum, rates)) * options.seconds / 8e9
                cost = f"{(spent_s(pid) - before_s) / gigabytes:6.2f}" if pid else ""
            cells = [
                f"{statistics.median(each) / 1e9:.2f} ({min(each) / 1e9:.2f}-{max(each) / 1e9:.2f})"
                for each in rates
            ]
            print(f"{name:<26}{cells[0]:>20}{cells[1]:>20}{cost}", flush=True)
        print()
        delays(network, program)
        for name in ("forwarded", "split", "agents (snoop)"):
            with arms[name]() as process:  # type: ignore[attr-defined]
                idle(network, name, process, options.idle, program)


def delays(network: Network, program: list[str]) -> None:
    """Print round trips of single bytes, without a gateway and with one that leaves them alone, in turn."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(5):
        for with_gateway, waits in enumerate(found):
            helped = network.gateway('scheme = "basic"\n', program) if with_gateway else nothing()
            with helped, network.running("server", ["python3", "-c", DELAYS, "server", "0"]):
                time.sleep(0.5)
                printed = network.run("client", ["python3", "-c", DELAYS, "client", "2000"])
                waits += map(float, printed.split())
    for name, waits in zip(("forwarded", "passed"), map(sorted, found), strict=True):
        half, most = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
        print(f"{name}: round trip of a byte: median {half:.0f} us, p99 {most:.0f} us", flush=True)


def idle(network: Network, name: str, process: object, count: int, program: list[str]) -> None:
    """Open connections one after the other, and print what they cost."""
    pid = child(process.pid) if isinstance(process, subprocess.Popen) else None
    before_kb, before_s = slabs_kb(), spent_s(pid)
    with network.running("server", ["python3", "-c", IDLE, "server", "0"]):
        time.sleep(0.5)
        line = ["ip", "netns", "exec", network.names["client"], "python3", "-c", IDLE, "client", str(count)]
        client = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin is not None
        assert client.stdout is not None
        waits = sorted(map(float, client.stdout.readline().split()))
        print(f"{name}: {count} connections, one after the other")
        print(
            f"  wait of the client: median {waits[count // 2]:.0f} us, p99 {waits[count * 99 // 100]:.0f} us"
        )
        if pid is not None:
            time.sleep(1)
            own_s, rss_kb = spent_s(pid) - before_s, resident_kb(pid)
            print(f"  processor time of the gateway's process: {own_s / count * 1e6:.0f} us each")
            print(f"  resident memory of the gateway: {rss_kb / 1024:.1f} MB")
            counters = network.status(program)["counters"]
            print(f"  open: {counters['open'] + counters['with_agents']}")
        print(f"  memory of the kernel for sockets, ends included: {(slabs_kb() - before_kb) / 1024:.1f} MB")
        client.stdin.close()
        client.wait()
    time.sleep(1)


@contextmanager
def nothing() -> Iterator[None]:
    """Leave flows alone."""
    yield


@contextmanager
def proxy(network: Network, line: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run another splitting proxy, with the rules of PEPsal's documentation, for IPv4."""
    name = network.names["gateway"]
    network.run("gateway", ["ip", "rule", "add", "fwmark", "1", "lookup", "100"])
    network.run("gateway", ["ip", "route", "replace", "local", "default", "dev", "lo", "table", "100"])
    subprocess.run(["ip", "netns", "exec", name, "nft", "-f", "-"], input=PROXY_RULES, text=True, check=True)
    with network.running("gateway", line) as process:
        time.sleep(1)
        yield process
    network.run("gateway", ["nft", "delete", "table", "inet", "proxy"])
    network.run("gateway", ["ip", "rule", "del", "fwmark", "1", "lookup", "100"])


def child(pid: int) -> int:
    """Return the process that `ip netns exec` became."""
    wait(lambda: "lasthop" in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"))
    return pid


def spent_s(pid: int | None) -> float:
    """Return the processor time of a process, in seconds."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(re.findall(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[0])


def slabs_kb() -> float:
    """Return the memory of the kernel for sockets and their files."""
    kinds = {"TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi", "eventpoll_pwq", "tcp_bind_bucket"}
    rows = map(str.split, Path("/proc/slabinfo").read_text(encoding="ascii").splitlines()[2:])
    return sum(int(row[2]) * int(row[3]) for row in rows if row[0] in kinds) / 1024


if __name__ == "__main__":
    main()
