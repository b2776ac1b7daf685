"""Load the gateway with new connections: `python scripts/gateway_load.py PROGRAM [--rate N] [--seconds S]`.

PROGRAM is `lasthop-gateway`. In namespaces of this machine, a client opens connections through a split at a
steady rate, sends a byte over each, waits for its echo, and closes. Printed are the failures, the
waits of the others, and the processor time of the gateway: while it runs; while its radio goes and comes; and
while it is killed and started again, with connections open. Needs root.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from gateway_network import SERVER, Network, ip, needed, wait
from gateway_speed import child, resident_kb, spent_s

SERVE = f"""
import selectors, socket
listener = socket.create_server(("{SERVER}", 7000), backlog=4096)
listener.setblocking(False)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            stream = listener.accept()[0]
            stream.setblocking(False)
            selector.register(stream, selectors.EVENT_READ)
            continue
        try:
            data = key.fileobj.recv(100)
            key.fileobj.send(data)
        except OSError:
            data = b""
        if not data:
            selector.unregister(key.fileobj)
            key.fileobj.close()
"""
OPEN = f"""
import json, socket, sys, time
rate, seconds, kept = map(float, sys.argv[1:])
held, waits, failed, late, last_good, gap = [], [], 0, 0.0, time.perf_counter(), 0.0
begin = time.perf_counter()
for number in range(int(rate * seconds)):
    due = begin + number / rate
    now = time.perf_counter()
    if due > now:
        time.sleep(due - now)
    began = time.perf_counter()
    late = max(late, began - due)
    try:
        stream = socket.create_connection(("{SERVER}", 7000), 5)
        stream.settimeout(5)
        stream.send(b"x")
        if stream.recv(1) != b"x":
            raise OSError("an end")
        done = time.perf_counter()
        waits.append(done - began)
        gap, last_good = max(gap, done - last_good), done
        held.append(stream)
    except OSError:
        failed += 1
    while len(held) > kept:
        held.pop(0).close()
passed = time.perf_counter() - begin
waits.sort()
print(json.dumps({{"opened": len(waits), "failed": failed, "per_second": len(waits) / passed,
    "median_us": waits[len(waits) // 2] * 1e6, "p99_us": waits[len(waits) * 99 // 100] * 1e6, "gap_s": gap}}))
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
    needed()
    program = [str(options.program.resolve())]
    with Network() as network, ExitStack() as stack:
        network.wire("server", "wired0", 2)
        network.wire("client", "radio0", 1)
        stack.enter_context(network.running("server", ["python3", "-c", SERVE]))
        wait(lambda: ":7000" in network.run("server", ["ss", "-ltnH"]))
        load = ["python3", "-c", OPEN, str(options.rate), str(options.seconds), str(options.kept)]
        print(f"{'':<28}{'opened':>8}{'failed':>8}{'per s':>8}{'median':>10}{'p99':>10}{'longest gap':>13}")
        report("without a gateway", network, load)
        keys = "opening_per_host = 65535\n"
        with network.gateway(keys, program) as process:
            pid = child(process.pid)
            before_s = spent_s(pid)
            found = report("split", network, load)
            each_us = (spent_s(pid) - before_s) / found["opened"] * 1e6
            print(f"  {each_us:.0f} us of processor time each, {resident_kb(pid) / 1024:.1f} MB resident")
            report("the radio goes and comes", network, load, lambda: bounce(network))
        gateway = ExitStack()
        stack.callback(gateway.close)

        def restart() -> None:
            gateway.close()
            (network.directory / "control").unlink(missing_ok=True)
            running = gateway.enter_context(network.gateway(keys, program))
            time.sleep(2)
            subprocess.run(["kill", "-9", str(child(running.pid))], check=True)
            time.sleep(0.5)

        report("killed and started again", network, load, restart)


def bounce(network: Network) -> None:
    """Take the radio's interface down and up again."""
    time.sleep(2)
    ip(f"-n {network.names['gateway']} link set radio0 down")
    time.sleep(0.2)
    ip(f"-n {network.names['gateway']} link set radio0 up")


def report(
    name: str, network: Network, load: list[str], disturb: Callable[[], None] | None = None
) -> dict[str, float]:
    """Run the load, disturbed again and again, and print a row."""
    must_end = threading.Event()

    def disturbing() -> None:
        while disturb is not None and not must_end.is_set():
            disturb()

    thread = threading.Thread(target=disturbing)
    thread.start()
    found: dict[str, float] = json.loads(network.run("client", load))
    must_end.set()
    thread.join()
    print(
        f"{name:<28}{found['opened']:>8}{found['failed']:>8}{found['per_second']:>8.0f}"
        f"{found['median_us']:>8.0f}us{found['p99_us']:>8.0f}us{found['gap_s']:>11.2f} s",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
