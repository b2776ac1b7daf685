"""Send or receive by TCP without pause.

``python -I -S scripts/tcp_ends.py send CONTROL`` sends forever to the first client, by this congestion
control, and ``receive ADDRESS SECONDS`` prints what it received per second, in bits, from the start of its
connection. Imports little, since programs start slowly on kernels in virtual time.
"""

from __future__ import annotations

import signal
import socket
import sys

PORT = 5001


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

    def end(*_: object) -> None:
        raise TimeoutError

    # Not a timeout of each call: in virtual time, reading a clock costs more than a packet.
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    received, buffer = 0, bytearray(1 << 16)
    try:
        peer = socket.create_connection((address, PORT))
        while size := peer.recv_into(buffer):
            received += size
    except TimeoutError:
        pass
    print(8 * received / seconds)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2])
    else:
        receive(sys.argv[2], float(sys.argv[3]))
