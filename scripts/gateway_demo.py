"""Show what the gateway gains: `make demo-gateway`.

Hosts with Linux and the gateway between them are network namespaces of this machine. The wired part and the
radio are links of `lasthop emulate`. Several hosts behind the radio fetch pages and files of all sizes; the
gateway helps a half of the flows. Its page is open to this machine's browser, and its report is printed now
and then. Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from gateway_network import LASTHOP, SERVER, Network, needed

TRANSFER = '[transfer]\nsize = "unlimited"\n'
WIRED = f"""{TRANSFER}
[wired]
rate = "1 Gbps"
delay = "30 ms"
[radio]
rate = "1 Gbps"
channel.frame-loss.loss = 0
"""
RADIO = f"""{TRANSFER}
[wired]
rate = "1 Gbps"
[radio]
rate = "20 Mbps"
delay = "5 ms"
queue = "200 packets"
channel.frame-loss.loss = "LOSS"
"""
GATEWAY = """
scheme = "SCHEME"
unhelped = "50%"
metrics = "127.0.0.1:PORT"
flows = "FLOWS"
[scheme.i-tcp.wireless]
congestion = "bbr"
"""
HOSTS = 6
VISIT_S = 10.0
"""How long a visitor of the page, or the page, may be silent."""
NETWORK = 0x40000000
"""The kind of namespace (`CLONE_NEWNET` of sched.h)."""
TRAFFIC = f"""
import random, socket, socketserver, sys, threading, time

class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(bytes(int(self.request.recv(16))))

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 100

    def server_activate(self):
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
        super().server_activate()

def fetch(host):
    source = random.Random(host)
    while True:
        port, mean = source.choice([(80, 10.5), (80, 10.5), (8080, 13.5)])
        size = min(int(source.lognormvariate(mean, 1)), 10_000_000)
        try:
            with socket.create_connection(("{SERVER}", port), 30, (host, 0)) as stream:
                stream.sendall(b"%16d" % size)
                while stream.recv(1 << 16):
                    pass
        except OSError:
            pass
        time.sleep(source.uniform(0.2, 1.5))

if sys.argv[1] == "server":
    for port in (80, 8080):
        threading.Thread(target=Server(("", port), Answer).serve_forever).start()
else:
    for host in sys.argv[1:]:
        threading.Thread(target=fetch, args=[host]).start()
"""


def main() -> None:
    """Run hosts and gateway until the time is over or the user ends it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loss", default="1%", help="loss of packets on the radio")
    parser.add_argument("--scheme", default="i-tcp", help="the scheme of helped flows")
    parser.add_argument("--sender", default="cubic", help="the server's congestion control")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long it lasts")
    parser.add_argument("--every", type=float, default=30, help="seconds from one report to the next")
    parser.add_argument("--port", type=int, default=9330, help="the port of the page")
    parser.add_argument("--flows", type=Path, help="a file for the flows")
    options = parser.parse_args()
    needed()
    wired, radio = "30 ms, 1 Gbps", f"20 Mbps, 5 ms, {options.loss} loss"
    print(f"{HOSTS} clients ══ radio: {radio} ══ gateway ══ wire: {wired} ══ server with {options.sender}")
    print(f"the gateway's page: http://127.0.0.1:{options.port}/; end with Ctrl-C\n", flush=True)
    with Network() as network, suppress(KeyboardInterrupt):
        network.emulated("server", "wired0", 2, WIRED, 1)
        network.emulated("client", "radio0", 1, RADIO.replace("LOSS", options.loss), 2)
        hosts = [f"10.1.0.{number}" for number in range(2, 2 + HOSTS)]
        for host in hosts[1:]:
            network.run("client", ["ip", "address", "add", f"{host}/24", "dev", "eth0"])
        flows = (options.flows or network.directory / "flows.jsonl").resolve()
        values = {"SCHEME": options.scheme, "PORT": str(options.port), "FLOWS": str(flows)}
        settings = GATEWAY
        for name, value in values.items():
            settings = settings.replace(name, value)
        line = [LASTHOP[0], "-c", TRAFFIC]
        with (
            network.gateway(settings, [*LASTHOP, "gateway"]),
            network.running("server", [*line, "server", options.sender]),
            network.running("client", [*line, *hosts]),
        ):
            publish(network.names["gateway"], options.port)
            end = time.monotonic() + options.seconds
            while time.monotonic() < end:
                time.sleep(max(min(options.every, end - time.monotonic()), 0))
                print(network.ask("report", [*LASTHOP, "gateway"]), flush=True)


def publish(namespace: str, port: int) -> None:
    """Let this machine's browser reach a port of a namespace's own addresses."""
    listener = socket.create_server(("127.0.0.1", port))

    def answer(visitor: socket.socket) -> None:
        # Browsers open connections before they need them, and others leave early.
        with visitor, suppress(OSError), inside(namespace) as page:
            visitor.settimeout(VISIT_S)
            page.settimeout(VISIT_S)
            page.connect(("127.0.0.1", port))
            page.sendall(visitor.recv(4096))
            while data := page.recv(1 << 16):
                visitor.sendall(data)

    def serve() -> None:
        while True:
            visitor, _ = listener.accept()
            threading.Thread(target=answer, args=[visitor], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def inside(namespace: str) -> socket.socket:
    """Return a socket of a network namespace."""
    made: list[socket.socket] = []

    def make() -> None:
        # A thread of its own, since it stays there.
        with Path("/run/netns", namespace).open(encoding="ascii") as name:
            ctypes.CDLL(None).setns(name.fileno(), NETWORK)
        made.append(socket.socket())

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


if __name__ == "__main__":
    main()
