"""Time short transfers whose server marks what matters, for `protect = "marked"` of selective FEC.

`python scripts/marked_transfers.py serve none|selective|all` serves a file of ten segments to each
connection. It marks nothing; the SYN's answer, the first three and the last three, as in the paper; or all of
them. `python scripts/marked_transfers.py get HOST COUNT` fetches the file and prints the mean time. Both run
at the ends of `lasthop emulate`, so they need the standard library alone. A client that resets ends its own
transfer only.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import time

PORT = 5201
SEGMENT = 1388
"""The payload of a packet of 1440 B with timestamps, in bytes."""
SEGMENTS, ENDS = 10, 3
MARK = 3 << 2
"""The DSCP 3, the default of `scheme.selective-fec.mark`, in the type of service."""


def _mark(end: socket.socket, marked: bool) -> None:
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, MARK if marked else 0)


def serve(protect: str) -> None:
    """Answer each connection with the file. What Linux retransmits has the mark of the last segments."""
    with socket.create_server(("", PORT)) as listener:
        _mark(listener, protect != "none")
        while True:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(ConnectionError):
                for number in range(SEGMENTS):
                    is_end = not ENDS <= number < SEGMENTS - ENDS
                    _mark(peer, protect == "all" or (protect == "selective" and is_end))
                    peer.sendall(bytes(SEGMENT))


def get(host: str, count: int) -> None:
    """Fetch the file one time after the other, with pauses that fades do not outlast."""
    times_s = []
    for _ in range(count):
        start = time.monotonic()
        with socket.create_connection((host, PORT)) as peer:
            while peer.recv(65_536):
                pass
        times_s.append(time.monotonic() - start)
        time.sleep(0.2)
    half = 1.96 * statistics.stdev(times_s) / len(times_s) ** 0.5
    print(f"{statistics.mean(times_s):.3f} ± {half:.3f} s, at most {max(times_s):.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("serve").add_argument("protect", choices=("none", "selective", "all"))
    client = roles.add_parser("get")
    client.add_argument("host")
    client.add_argument("count", type=int, help="at least 2, for an interval")
    options = parser.parse_args()
    if options.role == "serve":
        serve(options.protect)
    elif options.count < 2:
        client.error(f"argument count: found {options.count}, expected at least 2 transfers")
    else:
        get(options.host, options.count)
