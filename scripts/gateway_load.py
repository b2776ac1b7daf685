"""Load the gateway with new connections: `python scripts/gateway_load.py PROGRAM [--rate N] [--seconds S]`.

PROGRAM is `lasthop-gateway`. In namespaces of this machine, a client opens connections through a split at a
steady rate, without waiting for earlier ones, sends a byte over each, waits for its echo, and closes. Printed
are the failures, how long the others took to open, how late the client was at most, and the processor time of
the client and of the gateway for each: while it runs; while its radio goes and comes; and while it is killed
and started again, with connections open. Needs root. On a machine with other work, `chrt -f 5` keeps that
out; nice does not, where each session has its own share of the processors (kernel.sched_autogroup_enabled).
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from gateway_network import SERVER, Network, ip, needed, wait
from gateway_speed import child, resident_kb

SERVE = f"""
import select, socket
listener = socket.create_server(("{SERVER}", 7000), backlog=4096)
listener.setblocking(False)
poll, streams = select.epoll(), {{}}
poll.register(listener.fileno(), select.EPOLLIN)
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            try:
                stream = listener.accept()[0]
            except BlockingIOError:
                continue
            stream.setblocking(False)
            streams[stream.fileno()] = stream
            poll.register(stream.fileno(), select.EPOLLIN)
            continue
        try:
            data = streams[number].recv(100)
            streams[number].send(data)
        except OSError:
            data = b""
        if not data:
            poll.unregister(number)
            streams.pop(number).close()
"""
OPEN = f"""
import errno, json, select, socket, sys, time
source, rate, seconds, kept = sys.argv[1], *map(float, sys.argv[2:])
count, clock, poll = int(rate * seconds), time.perf_counter, select.epoll()
streams, held, connects, waits, failures = {{}}, [], [], [], {{}}
begin = last_good = clock()
started, late, gap = 0, 0.0, 0.0
while (started < count or streams) and clock() < begin + seconds + 10:
    # Those that are due do not wait for one that is slow.
    while started < count and (due := begin + started / rate) <= clock() and len(streams) < 4096:
        late = max(late, clock() - due)
        stream = socket.socket()
        stream.setblocking(False)
        # A port that no earlier connection has had: the kernel would look for a free one, longer and longer.
        stream.bind((source, 1024 + started % 64000))
        started += 1
        began = clock()
        stream.connect_ex(("{SERVER}", 7000))
        streams[stream.fileno()] = [stream, began, False]
        poll.register(stream.fileno(), select.EPOLLOUT)
    timeout = begin + started / rate - clock() if started < count else 0.1
    for number, _ in poll.poll(min(max(timeout, 0), 0.1)):
        stream, began, is_open = entry = streams[number]
        try:
            if not is_open:
                stream.send(b"x")
                connects.append(clock() - began)
                entry[2] = True
                poll.modify(number, select.EPOLLIN)
                continue
            if stream.recv(1) != b"x":
                raise OSError(errno.EPIPE, "an end")
            now = clock()
            waits.append(now - began)
            gap, last_good = max(gap, now - last_good), now
            held.append(stream)
        except OSError as error:
            name = errno.errorcode[error.errno]
            failures[name] = failures.get(name, 0) + 1
            stream.close()
        else:
            poll.unregister(number)
        del streams[number]
        if len(held) > kept:
            held.pop(0).close()
if streams:
    failures["no answer"] = len(streams)
share = lambda times, part: sorted(times)[int(len(times) * part)] * 1e6
print(json.dumps({{"opened": len(waits), "failures": failures, "per_second": len(waits) / (last_good - begin),
    "median_us": share(connects, 0.5), "p99_us": share(connects, 0.99), "gap_s": gap, "late_ms": late * 1e3,
    "own_us": time.process_time() / len(waits) * 1e6}}))
"""


def main() -> None:
    """Load the gateway, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path, help="lasthop-gateway")
    parser.add_argument("--rate", type=int, default=2000, help="new connections per second")
    parser.add_argument("--seconds", type=int, default=10, help="length of each part")
    parser.add_argument("--kept", type=int, default=1000, help="connections that are open at a time")
    options = parser.parse_args()
    if options.rate * options.seconds > 64_000:
        parser.error("expected at most 64000 connections: each has a port of its own")
    needed()
    program = [str(options.program.resolve())]
    load = [str(each) for each in (options.rate, options.seconds, options.kept)]
    with Network() as network, ExitStack() as stack:
        network.wire("server", "wired0", 2)
        network.wire("client", "radio0", 1)
        stack.enter_context(network.running("server", ["python3", "-c", SERVE]))
        wait(lambda: ":7000" in network.run("server", ["ss", "-ltnH"]))
        print(f"{'':<26}{'opened':>8}{'per s':>8}{'median':>10}{'p99':>10}{'gap':>9}{'late':>10}  each costs")
        report("without a gateway", network, load)
        keys = "opening_per_host = 65535\n"
        with network.gateway(keys, program) as process:
            pid = child(process.pid)
            report("split", network, load, pid)
            counters = network.status(program)["counters"]
            print(f"  {counters['split']} split; {resident_kb(pid) / 1024:.1f} MB resident")
            report("the radio goes and comes", network, load, pid, lambda: bounce(network))
        report("without a gateway, again", network, load)
        gateway = ExitStack()
        stack.callback(gateway.close)

        def restart() -> None:
            gateway.close()
            (network.directory / "control").unlink(missing_ok=True)
            running = gateway.enter_context(network.gateway(keys, program))
            time.sleep(2)
            subprocess.run(["kill", "-9", str(child(running.pid))], check=True)
            time.sleep(0.5)

        report("killed and started again", network, load, disturb=restart)


def bounce(network: Network) -> None:
    """Take the radio's interface down and up again."""
    time.sleep(2)
    ip(f"-n {network.names['gateway']} link set radio0 down")
    time.sleep(0.2)
    ip(f"-n {network.names['gateway']} link set radio0 up")


HOSTS = itertools.count(20)
"""Each load comes from an address of its own, all of whose ports are free."""


def report(
    name: str,
    network: Network,
    load: list[str],
    pid: int | None = None,
    disturb: Callable[[], None] | None = None,
) -> None:
    """Run the load, disturbed again and again, and print a row, with the processor time of a process."""
    must_end = threading.Event()

    def disturbing() -> None:
        while disturb is not None and not must_end.is_set():
            disturb()

    thread = threading.Thread(target=disturbing)
    thread.start()
    source = f"10.1.0.{next(HOSTS)}"
    network.run("client", ["ip", "address", "add", f"{source}/32", "dev", "lo"])
    before_ns = run_ns(pid)
    found = json.loads(network.run("client", ["python3", "-c", OPEN, source, *load]))
    own = f"{(run_ns(pid) - before_ns) / found['opened'] / 1e3:.0f} us" if pid else "-"
    must_end.set()
    thread.join()
    print(
        f"{name:<26}{found['opened']:>8}{found['per_second']:>8.0f}{found['median_us']:>8.0f}us"
        f"{found['p99_us']:>8.0f}us{found['gap_s']:>7.2f} s{found['late_ms']:>7.1f} ms  "
        f"client {found['own_us']:.0f} us, gateway {own}  failures: {found['failures'] or 0}",
        flush=True,
    )


def run_ns(pid: int | None) -> int:
    """Return the processor time of the threads of a process, in nanoseconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat") if pid else ()
    return sum(int(each.read_text(encoding="ascii").split()[0]) for each in threads)


if __name__ == "__main__":
    main()
