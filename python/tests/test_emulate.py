"""`lasthop emulate`: real programs over a scenario's network, where the machine allows namespaces."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, Command, results, run_process

import lasthop
from lasthop import fitting, measurement
from lasthop.cli.emulation import namespaces, report
from lasthop.cli.failure import EXIT_CODES, LATE, RefusedError
from lasthop.measurement import Direction


def _refusal() -> str:
    """Say why nothing can be emulated here; empty if it can."""
    if sys.platform != "linux":
        return "emulation needs Linux"
    if missing := [tool for tool in ("unshare", "ip") if shutil.which(tool) is None]:
        return f"emulation needs {' and '.join(missing)}"
    try:
        namespaces._isolation()
    except RefusedError as error:
        return str(error)
    return ""


REFUSAL = _refusal()
in_namespaces = pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL)


@pytest.fixture(scope="module")
def command() -> Command:
    """Return `lasthop` in a process of its own: emulation handles signals and enters namespaces."""
    return run_process


PATIENT = ("--lateness", "500")
"""Tests share the machine."""

SERVER = """
import socket
listener = socket.create_server(("10.0.0.1", 5001))
peer = listener.accept()[0]
size = int(peer.makefile().readline())
peer.sendall(bytes(i * i % 251 for i in range(size)))
peer.close()
"""

CLIENT = """
import hashlib, socket, sys, time
size = int(sys.argv[2])
peer = socket.create_connection((sys.argv[1], 5001))
begin = time.monotonic()
peer.sendall(b"%d\\n" % size)
received = bytearray()
while piece := peer.recv(65536):
    received += piece
assert received == bytes(i * i % 251 for i in range(size)), len(received)
print(f"{8 * size / (time.monotonic() - begin):.0f}")
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Write a server that sends what is asked for, and a client that checks it."""
    directory = tmp_path_factory.mktemp("programs")
    for name, text in (("server.py", SERVER), ("client.py", CLIENT)):
        (directory / name).write_text(text)
    python = sys.executable
    return SimpleNamespace(
        server=f"{python} {directory / 'server.py'}",
        client=[python, str(directory / "client.py"), "{server}"],
    )


@in_namespaces
def test_a_transfer_takes_as_long_as_the_links_say(
    command: Command, programs: SimpleNamespace, tmp_path: Path
) -> None:
    """Real TCP over 2 Mb/s and 40 ms: all bytes arrive, at most at the rate of the link."""
    settings = ["radio.rate=2 Mbps", "wired.delay=19 ms", "radio.channel.frame-loss.loss=0.005"]
    options = [word for setting in settings for word in ("--set", setting)]
    shown = command(
        "emulate",
        "last-mile",
        *options,
        *PATIENT,
        *("--json", "--out", tmp_path, "--pcap", "--server", programs.server, "--"),
        *(*programs.client, "300000"),
    )
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    throughput = float(shown.stderr.splitlines()[0])
    assert 0.2e6 < throughput < 2e6 * 1448 / 1500
    assert results(tmp_path) == [
        "basic-client.pcapng",
        "basic-server.pcapng",
        "results.json",
        "scenario.toml",
    ]
    assert json.loads((tmp_path / "results.json").read_text()) == report
    assert (report["scheme"], report["seed"], report["run"], report["problems"]) == ("basic", 1, 0, [])
    server, client = report["ends"]
    assert (server["host"], client["host"]) == ("fixed", "mobile")
    sent, received = (server[key] + client[key] for key in ("sent_packets", "received_packets"))
    others = ("lost_packets", "in_network_packets", "undelivered_packets", "overload_drops")
    assert sent == received + sum(report[key] for key in others)
    # Headers too, and what was sent again.
    assert 300_000 < client["received_bytes"] < 400_000
    # Packets of one segment each, as large as the scenario says.
    assert client["received_bytes"] / client["received_packets"] <= 1500
    assert client["received_packets"] > 300_000 / 1460
    assert report["unforwarded"]["oversized"] == 0
    (radio,) = (link for link in report["links"] if link["link"] == "base-mobile")
    assert radio["link_attempts"] >= client["received_packets"]
    assert 0 < report["lateness"]["p50_s"] <= report["lateness"]["p99_s"] <= report["lateness"]["max_s"]
    for end in ("server", "client"):
        capture = (tmp_path / f"basic-{end}.pcapng").read_bytes()
        assert capture[:4] == b"\n\r\r\n"
        assert len(capture) > 300_000


EXCHANGE = """
import hashlib, socket, sys, threading
is_server, control, size = sys.argv[1] == "server", sys.argv[3], int(sys.argv[4])
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET

def pattern(number):
    return hashlib.shake_256(b"%d" % number).digest(1 << 16)

def exchange(peer, mine, theirs):
    def send():
        left = size
        while left:
            left -= peer.send(pattern(mine)[-(left % 65536 or 65536):])
        peer.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    digest, received = hashlib.sha256(), 0
    while piece := peer.recv(1 << 16):
        digest.update(piece)
        received += len(piece)
    sender.join()
    expected = hashlib.sha256(pattern(theirs) * (size // 65536)).digest()
    assert (received, digest.digest()) == (size, expected), (received, size)
    print("equal", flush=True)

def run(number):
    if is_server:
        peer, number = listener.accept()[0], 0
        number = peer.recv(1)[0]
    else:
        peer = socket.create_connection((sys.argv[2], 5002))
        peer.sendall(bytes([number]))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    exchange(peer, 2 * number + is_server, 2 * number + (not is_server))

if is_server:
    listener = socket.create_server((sys.argv[2], 5002), family=family)
threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@in_namespaces
@pytest.mark.parametrize(
    ("scheme", "control", "address", "blocks"),
    [
        ("snoop", "reno", "10.0.0.1", 80),
        ("snoop + arq", "cubic", "fd00::1", 80),
        # Its timeouts double, so that a bad row of losses may take a while.
        ("wtcp-timestamps", "cubic", "10.0.0.1", 2),
        ("i-tcp", "cubic", "10.0.0.1", 80),
        ("i-tcp + snoop", "reno", "fd00::1", 40),
        ("m-tcp", "cubic", "10.0.0.1", 40),
    ],
)
def test_agents_serve_linux_hosts(
    command: Command, tmp_path: Path, scheme: str, control: str, address: str, blocks: int
) -> None:
    """Four connections at once carry 0.5 to 20 MB in all over a lossy link, with equal hashes."""
    if control not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split():
        pytest.skip(f"this kernel has no {control}")
    if ":" in address and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")
    (tmp_path / "exchange.py").write_text(EXCHANGE)
    program = [sys.executable, str(tmp_path / "exchange.py")]
    arguments = [address, control, str(blocks * 65536)]
    settings = [
        "radio.rate=100 Mbps",
        "wired.delay=5 ms",
        "radio.queue=400 packets",
        "radio.channel.frame-loss.loss=0.03",
        "radio.uplink.channel={ frame-loss = { loss = 0.02 } }",
    ]
    shown = command(
        "emulate",
        "last-mile",
        *(word for setting in settings for word in ("--set", setting)),
        *("--scheme", scheme, *PATIENT, "--json", "--out", tmp_path / "out"),
        # The parts of a split connection have numbers of their own.
        *([] if "i-tcp" in scheme or scheme == "m-tcp" else ["--trace"]),
        *("--server", " ".join([*program, "server", *arguments])),
        *("--", *program, "client", *arguments),
        timeout=240,
    )
    report = json.loads(shown.stdout)
    assert shown.stderr.count("equal") == 8, shown.stderr
    assert report["exit_code"] == 0
    if split := next((name for name in ("i-tcp", "m-tcp") if name in scheme), None):
        assert report["schemes"][f"{split}.connections"] == 4
        assert report["schemes"][f"{split}.reset_connections"] == 0
        assert report["schemes"].get("snoop.cached_segments_peak", 100) > 10
    elif "arq" in scheme:
        # The ARQ leaves nothing to repair.
        assert report["schemes"]["snoop.cached_segments_peak"] > 100
    else:
        # Of the segments of a block, 45, the link loses one on average.
        assert report["schemes"][f"{scheme}.local_retransmissions"] > blocks
    # With every block go 45 segments down and up, and ACKs; the link loses 2 or 3 % of them.
    for link in report["links"]:
        assert (link["link_failures"] or 0) > blocks or link["link"] not in ("base-mobile", "mobile-base"), (
            link
        )
    assert report["opaque_packets"] == 0
    if split:
        assert report["connections"] == []
        return
    stem, place = scheme.replace(" ", ""), address.replace(":", "%3A")
    traces = {path.name for path in (tmp_path / "out").glob("*.events.csv")}
    others = traces - {f"{stem}.events.csv"}
    assert (len(traces), len(others)) == (4, 3)
    # Of both directions, the one with more data comes first in a name.
    assert all(f"{place}.5002" in name and name.startswith(f"{stem}.") for name in others)
    assert [connection["finished"] for connection in report["connections"]] == [True] * 4


DATAGRAMS = """
import json, socket, struct, sys, time
UDP_SEGMENT, UDP_GRO, SIZE, BURST, COUNT = 103, 104, 700, 16, 1600
number = lambda n: struct.pack("!I", n) * (SIZE // 4 if n % 50 else 60)
if sys.argv[1] == "send":
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.connect((sys.argv[2], 5001))
    peer.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SIZE)
    waiting = []
    for n in range(COUNT):
        waiting.append(number(n))
        if len(waiting) == BURST or len(waiting[-1]) < SIZE or n == COUNT - 1:
            peer.send(b"".join(waiting))
            waiting = []
            time.sleep(0.002)
    time.sleep(0.3)
else:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    listener.setsockopt(socket.IPPROTO_UDP, UDP_GRO, int(sys.argv[2]))
    listener.bind(("", 5001))
    socket.create_server(("", 5001))
    expected, reads = 0, 0
    while expected < COUNT:
        data, ancillary, *_ = listener.recvmsg(65536, 64)
        reads += 1
        sizes = [struct.unpack("i", value)[0] for _, kind, value in ancillary if kind == UDP_GRO]
        size = sizes[0] if sizes else len(data)
        for at in range(0, len(data), size):
            assert data[at : at + size] == number(expected), expected
            expected += 1
    print(reads, file=sys.stderr, flush=True)
"""


@in_namespaces
@pytest.mark.parametrize("asks", [False, True])
def test_datagrams_are_merged_for_sockets_that_ask_for_it_only(
    command: Command, tmp_path: Path, *, asks: bool
) -> None:
    """All arrive, in order and unchanged, one by one or as the kernel's UDP_GRO has them."""
    program = tmp_path / "datagrams.py"
    program.write_text(DATAGRAMS)
    link = 'rate = "1 Gbps"\ndelay = "1 ms"\nqueue = "1000 packets"\n'
    scenario = tmp_path / "fast.toml"
    transfer = 'schemes = ["basic"]\n[transfer]\nsize = "unlimited"\n'
    scenario.write_text(f"{transfer}[wired]\n{link}[radio]\n{link}")
    line = f"{sys.executable} {program}"
    server = ("--json", "--server", f"{line} receive {asks:d}")
    shown = command("emulate", scenario, *PATIENT, *server, "--", *line.split(), "send", "{server}")
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert report["ends"][0]["received_packets"] == 1600
    reads = int(shown.stderr.splitlines()[0])
    assert reads < 800 if asks else reads == 1600


@in_namespaces
@pytest.mark.parametrize(
    ("rate", "address", "blocks", "scheme"),
    [
        ("20 Mbps", "10.0.0.1", 4, "basic"),
        ("1 Gbps", "10.0.0.1", 160, "basic"),
        ("1 Gbps", "fd00::1", 160, "snoop"),
    ],
)
def test_tcp_crosses_fast_links_in_super_packets(
    command: Command, tmp_path: Path, rate: str, address: str, blocks: int, scheme: str
) -> None:
    """Four connections with losses, and marks of ECN, in both directions: all bytes arrive.

    Senders leave the cutting to the card, and receivers get super-packets; neither on slow links, where
    they would change the times of packets and acknowledgements.
    """
    if ":" in address and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")
    (tmp_path / "exchange.py").write_text(EXCHANGE)
    program = [sys.executable, str(tmp_path / "exchange.py")]
    arguments = [address, "cubic", str(blocks * 65536)]
    settings = [
        f"radio.rate={rate}",
        "wired.rate=10 Gbps",
        "wired.delay=1 ms",
        "radio.channel.frame-loss.loss=0.001",
        "radio.queue={ codel = { limit = '1000 packets', ecn = true } }",
    ]
    client = " ".join([*program, "client", *arguments])
    # What the kernel has received, in super-packets or not, once the last packets have arrived.
    counted = "sleep 0.5; cat /proc/net/snmp6 /proc/net/snmp | grep -A1 InReceives"
    shown = command(
        "emulate",
        "last-mile",
        *(word for setting in settings for word in ("--set", setting)),
        *("--scheme", scheme, *PATIENT, "--json"),
        *("--server", " ".join([*program, "server", *arguments])),
        *("--", "sh", "-c", f"sysctl -qw net.ipv4.tcp_ecn=1; {client}; {counted}"),
        timeout=240,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr.count("equal") == 8
    report = json.loads(shown.stdout)
    names, numbers = (line.split() for line in shown.stderr.splitlines() if line.startswith("Ip: "))
    received = int(dict(zip(names, numbers, strict=True))["InReceives"])
    received += sum(int(line.split()[1]) for line in shown.stderr.splitlines() if line.startswith("Ip6InRec"))
    at_client = report["ends"][1]["received_packets"]
    if rate == "20 Mbps":
        assert report["segmented_packets"] == 0
        assert received == at_client
    else:
        assert report["segmented_packets"] > 1000
        assert received < at_client / 2


@pytest.mark.parametrize(
    ("rate_bps", "mtu", "segments"),
    [(1e3, 1500, 1), (119e6, 1500, 1), (1e9, 1500, 16), (1e9, 9000, 2), (1e15, 1500, 65535)],
)
def test_super_packets_of_senders_pass_links_within_200_us(rate_bps: float, mtu: int, segments: int) -> None:
    assert namespaces.segments_of(rate_bps, mtu) == segments


@in_namespaces
def test_the_exit_code_is_that_of_the_command(command: Command) -> None:
    shown = command(
        "emulate", "last-mile", *PATIENT, "--", "sh", "-c", "echo $LASTHOP_SERVER {client}; exit 7"
    )
    assert (shown.returncode, shown.stdout) == (7, "10.0.0.1 10.0.0.2\n")
    assert "emulated 0.00 s of last-mile, basic, seed 1, run 0" in shown.stderr
    missing = command("emulate", "last-mile", "--", "no-such-program")
    # Nothing was emulated, so there is no report.
    assert (missing.returncode, missing.stdout) == (127, "")
    assert missing.stderr == "error: cannot run no-such-program: No such file or directory\n"


@in_namespaces
def test_what_is_sent_before_the_client_starts_is_told(command: Command, tmp_path: Path) -> None:
    """It reaches nobody, however fast the machine is, and the scenario does not start with it."""
    server = tmp_path / "server.py"
    server.write_text("""
import socket, time
early = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
early.connect(("10.0.0.2", 9))
for _ in range(20):
    early.send(bytes(600))
time.sleep(1)
socket.create_server(("", 8000)).accept()
""")
    line = ("emulate", "last-mile", "--json", "--server", f"{sys.executable} {server}", "--", sys.executable)
    done = command(*line, "-c", "import socket; socket.create_connection(('10.0.0.1', 8000))")
    report = json.loads(done.stdout)
    assert (report["unforwarded"]["early"], report["overload_drops"]) == (20, 0)
    assert (done.returncode, report["problems"]) == (0, [])
    assert report["duration_s"] < 0.9
    assert "warning: 20 packets were sent before the program at the other end started" in done.stderr


@in_namespaces
def test_lateness_beyond_the_bound_fails(command: Command, programs: SimpleNamespace) -> None:
    bound = ("--lateness", "0.001", "--server", programs.server)
    shown = command("emulate", "last-mile", *bound, "--", *programs.client, "3000")
    assert shown.returncode == LATE
    assert "above the bound of 1 us" in shown.stderr
    assert LATE in EXIT_CODES


@in_namespaces
def test_nothing_is_left_of_an_emulation_that_was_killed() -> None:
    line = [sys.executable, "-m", "lasthop", "emulate", "last-mile"]
    # Not that of a test beside this one.
    word = f"54321.{os.getpid()}"
    # A child of the command outlives its own parent.
    script = f"(exec sleep {word}) & wait"
    for end in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(
            [*line, "--", "sh", "-c", script], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _await(lambda: _running(word))
            process.send_signal(end)
            process.wait(20)
            _await(lambda: not _running(word))
        finally:
            process.kill()


def _await(condition: object) -> None:
    end = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def _running(word: str) -> bool:
    """Whether any process is `sleep word`."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[:2] == [b"sleep", word.encode()]:
                return True
        except OSError:
            pass
    return False


@in_namespaces
def test_the_command_has_no_way_out(command: Command) -> None:
    """Its namespace has the loopback and one interface, and no route but to the other end."""
    shown = command("emulate", "last-mile", *PATIENT, "--", "sh", "-c", "ls /sys/class/net; ip route")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.split("\n")[-2] == "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.2 "


@in_namespaces
def test_programs_reach_nothing_but_their_own_network(command: Command, tmp_path: Path) -> None:
    """Nor do they see other processes, or what is hidden from them."""
    (tmp_path / "socket").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/secret").touch()
    tries = {
        "this process": f"test -e /proc/{os.getpid()}/status && grep -q python /proc/{os.getpid()}/cmdline",
        "the interfaces of the emulation": "nsenter --net=/proc/$PPID/ns/net true",
        "its memory": f"{sys.executable} -c \"open('/proc/$PPID/mem', 'r+b')\"",
        "its interfaces from here": "ip link show lasthop0",
        "what is hidden": f"test -e {tmp_path}/folder/secret -o -f {tmp_path}/socket",
        "what is under a mount": f"umount {tmp_path}/folder || unshare --mount umount {tmp_path}/folder",
        "real-time priority": "chrt --fifo 10 true",
    }
    program = "; ".join(
        f"if {attempt} 2>/dev/null; then echo reached {what}; fi" for what, attempt in tries.items()
    )
    hidden = [f"--hide={tmp_path / name}" for name in ("socket", "folder")]
    shown = command("emulate", "last-mile", *PATIENT, *hidden, "--", "sh", "-c", f"{program}; id -u")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.split("\n")[0] == "0"


@in_namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_programs_may_have_the_privileges_of_root(command: Command) -> None:
    reach = "nsenter --net=/proc/$PPID/ns/net ip link show lasthop0 > /dev/null"
    shown = command("emulate", "last-mile", *PATIENT, "--privileged", "--", "sh", "-c", reach)
    assert shown.returncode == 0, shown.stderr


@in_namespaces
def test_no_privileges_are_needed(programs: SimpleNamespace) -> None:
    """In a user namespace there are none over the machine, for root neither."""
    inside = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no user namespaces")
    line = [*inside, sys.executable, "-m", "lasthop", "emulate", "last-mile", *PATIENT, "--json"]
    # In the namespaces of the emulation, programs have what they need for their own.
    program = f"ip route add 192.0.2.0/24 dev eth0 && nice >&2 && {' '.join(programs.client)} 20000"
    shown = subprocess.run(
        [*line, "--server", programs.server, "--", "sh", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert report["ends"][1]["received_bytes"] > 20_000
    assert not report["real_time"]
    # The programs do not compete with the thread that carries packets.
    assert int(shown.stderr.split()[0]) == min(os.nice(0) + 10, 19)
    if tuple(int(each) for each in platform.release().split(".")[:2]) >= (6, 12):
        assert report["slice_s"] == 0.0001


@in_namespaces
def test_a_shell_has_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a command there is a shell, with job control; Ctrl-C is for what runs in it."""
    monkeypatch.setenv("SHELL", "/bin/sh")
    ours, theirs = pty.openpty()
    # In a session of its own, whose terminal is its stdin.
    begin = ["setsid", "--ctty", "--wait", sys.executable, "-m", "lasthop", "emulate", "last-mile"]
    process = subprocess.Popen(begin, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""

    def expect(text: bytes) -> None:
        nonlocal shown
        end = time.monotonic() + 20
        while text not in shown:
            assert time.monotonic() < end, shown
            shown += os.read(ours, 4096)

    expect(b"the server is at 10.0.0.1; `exit` ends the emulation")
    os.write(ours, b"echo begun-$((1 + 1)); sleep 54322\n")
    expect(b"begun-2")
    _await(lambda: _running("54322"))
    os.write(ours, b"\x03")
    _await(lambda: not _running("54322"))
    os.write(ours, b"exit 3\n")
    expect(b"emulated 0.00 s of last-mile")
    assert process.wait(20) == 3
    os.close(ours)


@in_namespaces
def test_an_interrupt_of_the_emulation_alone_ends_it() -> None:
    """Unlike Ctrl-C, which the programs get as well."""
    line = [sys.executable, "-m", "lasthop", "emulate", "last-mile", *PATIENT, "--", "sleep", "54323"]
    process = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    _await(lambda: _running("54323"))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert "of last-mile, basic, seed 1, run 0" in err
    assert process.returncode == 128 + signal.SIGTERM
    assert not _running("54323")


@in_namespaces
@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("ip link del eth0; sleep 2", "the interface of the client has disappeared"),
        ("ip link set eth0 down; sleep 2", "the interface of the client went down"),
    ],
)
def test_an_interface_that_a_program_removes_is_reported(
    command: Command, program: str, problem: str
) -> None:
    shown = command("emulate", "last-mile", *PATIENT, "--", "sh", "-c", program)
    assert problem in shown.stderr
    assert shown.returncode == LATE


@in_namespaces
def test_linux_and_the_simulator_agree_on_an_easy_link() -> None:
    """The short case of scripts/fidelity.py."""
    line = [sys.executable, str(ROOT / "scripts" / "fidelity.py"), "--quick"]
    shown = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if "all runs were late" in shown.stderr:
        pytest.skip("this machine is too busy to emulate in time")
    assert shown.returncode == 0, shown.stderr
    (row,) = (line for line in shown.stdout.splitlines() if line.startswith("| 2 Mb/s"))
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[:5] == ["2 Mb/s", "20 ms", "0 %", "20", "reno"]
    kernel, simulator = (float(cell.split(" ± ")[0]) for cell in cells[5:7])
    assert "1 of 1 rows (100%) are within 10%" in shown.stdout
    assert simulator == pytest.approx(kernel, rel=0.05)


def test_the_grid_of_fidelity_has_scenarios_that_can_be_emulated() -> None:
    place = importlib.util.spec_from_file_location("fidelity", ROOT / "scripts" / "fidelity.py")
    assert place is not None
    assert place.loader is not None
    fidelity = importlib.util.module_from_spec(place)
    place.loader.exec_module(fidelity)
    case = fidelity.Case.parse("10,60,0.01,burst=5,queue=0.25,arq")
    assert case == (10, 60, 0.01, "5", 0.25, True)
    assert (case.packets, case.losses, case.is_random) == (12, "1 % in bursts of 5, ARQ", False)
    with pytest.raises(ValueError, match="unknown settings: bursts"):
        fidelity.Case.parse("10,60,0.01,bursts=5")
    for link in [case, *fidelity.GRID]:
        for sender in fidelity.SENDERS.values():
            scenario = lasthop.Scenario.parse(link.scenario(sender, 10.0))
            assert scenario.emulated("basic")["hosts"] == ("fixed", "mobile")
    # Runs of the same number have the same losses: what all runs share tells nothing of the difference.
    row = fidelity.Row(case, "reno", "basic", [1.0, 2.0, 4.0], [1.1, 2.2, 4.4])
    assert row.difference == pytest.approx(0.1)
    assert row.uncertainty == pytest.approx(0.0, abs=1e-12)
    row = fidelity.Row(case, "reno", "basic", [2.0, 2.0], [1.9, 2.1])
    # Student's t for two runs is 12.7.
    assert (row.difference, row.uncertainty) == pytest.approx((0.0, 12.706 * 0.1 / 2), abs=1e-3)


@pytest.mark.skipif(sys.platform != "linux", reason="emulation needs Linux")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["ebsn-example", "--scheme", "ebsn"], '"ebsn" changes the TCP of the source "fixed"'),
        (["last-mile", "--pcap"], "--pcap, --trace and --record-lateness write files and need --out DIR"),
        (["last-mile", "--force"], "--force is about the interfaces of --between, which is not given"),
        (["last-mile", "--lateness", "0"], "--lateness: expected milliseconds from 0 to 1000, such as 5"),
        (["last-mile", "--mtu", "20"], "'--mtu': 20 is not in the range 68<=x<=65535"),
        (["last-mile", "--scheme", "nonsense"], 'there is no scheme "nonsense"'),
    ],
)
def test_what_cannot_be_emulated_is_refused(command: Command, arguments: list[str], problem: str) -> None:
    shown = command("emulate", *arguments, "--", "true")
    assert shown.returncode == 2
    assert problem in shown.stderr


@pytest.mark.parametrize(
    ("processors", "mask"),
    [(1, "1"), (2, "3"), (32, "ffffffff"), (34, "3,ffffffff"), (65, "1,ffffffff,ffffffff")],
)
def test_all_processors_may_receive(monkeypatch: pytest.MonkeyPatch, processors: int, mask: str) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert f"echo {mask} > /sys/class/net/eth0/queues/rx-0/rps_cpus" in namespaces._spread()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RefusedError, match=r"needs the program `unshare`; install util-linux"):
        namespaces._enter_namespaces(privileged=False)
    monkeypatch.undo()

    def refuse(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(returncode=1, stderr="unshare: unshare failed: Operation not permitted\n")

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(
        RefusedError, match=r"unshare failed: Operation not permitted\); allow user namespaces"
    ):
        namespaces._isolation()


def test_problems_are_told_with_their_remedies() -> None:
    scenario = SimpleNamespace(title="", file="mine.toml", hash="0", sweep={"radio.rate": ["1 Mbps"]})
    facts = {"scheme": "basic", "lateness_ms": 5.0, "seed": 1, "run": 0, "guest": None}
    emulation: Any = SimpleNamespace(scenario=scenario, **facts)
    drops = ("queue_drops", "aqm_drops", "lost_on_air", "link_discards", "unreachable", "marked")
    carried: dict[str, Any] = {
        "lateness": {"p50_s": 1e-5, "p99_s": 7e-3, "max_s": 2.0},
        "overload_drops": 2,
        "backlog_drops": 3,
        "unforwarded": {"oversized": 1},
        "links": [
            dict.fromkeys(drops, 1)
            | dict.fromkeys(("link_attempts", "link_failures", "link_bits", "air_time_s"), value)
            for value in (None, 5)
        ],
        "schemes": {"snoop.connections": 3},
    }
    document = report.document(emulation, None, carried, 0)
    assert document["without_sweep"] == ["radio.rate"]
    late, slow, backlog, large = document["problems"]
    assert (document["interfaces"], document["metrics"]) == (
        None,
        {
            "link_discards": 4,
            "lost_on_air": 2,
            "queue_drops": 2,
            "aqm_drops": 2,
            "link_attempts": 5,
            "link_failures": 5,
            "link_bits": 5,
            "air_time_s": 5,
            "ecn_marks": 2,
            "snoop.connections": 3,
        },
    )
    assert late == (
        "1 % of the packets left 7 ms late or more, above the bound of 5 ms; use an idle machine or "
        "slower links, or raise --lateness"
    )
    assert slow.startswith("2 packets were dropped since this machine was too slow")
    assert backlog.startswith("the kernel dropped 3 packets before their receivers")
    assert large.startswith("1 packets above the MTU were not carried; turn large receive offload off")
    carried = {
        "lateness": {"p99_s": 5e-3},
        "overload_drops": 0,
        "backlog_drops": 0,
        "unforwarded": {"oversized": 0},
        "links": [],
        "schemes": {},
    }
    assert report.document(emulation, None, carried, 0)["problems"] == []


@pytest.mark.parametrize("name", ["bursts", "cell", "ebsn-example", "hand-off", "last-mile", "starlink"])
def test_worked_scenarios_can_be_emulated(name: str) -> None:
    facts = lasthop.load(name).emulated("basic")
    assert len(facts["hosts"]) == 2
    assert 500 < facts["packet_size"] <= 1500


@in_namespaces
@pytest.mark.skipif(shutil.which("ping") is None, reason="there is no ping")
def test_a_ping_through_the_network_is_read_as_what_the_links_did(command: Command, tmp_path: Path) -> None:
    """Every echo that the channel lost, and no other, is a lost probe, in the channel's bursts."""
    states = '{ gilbert-elliott = { good = "250 ms", bad = "25 ms", loss_bad = 0.9 } }'
    out = tmp_path / "out"
    line = f"ping -D -O -i 0.005 -w 6 $LASTHOP_SERVER > {tmp_path}/ping.txt; true"
    options = ["--set", f"radio.channel={states}", "--out", str(out), "--json", *PATIENT]
    ended = command("emulate", "last-mile", *options, "--", "sh", "-c", line)
    assert ended.returncode == 0, ended.stderr
    lost = sum(link["lost_on_air"] for link in json.loads(ended.stdout)["links"])
    (probes,) = measurement.read(tmp_path / "ping.txt").probes
    # Those of the last round trip are left out: ping did not wait for them.
    assert lost - 12 <= int(probes.lost.sum()) <= lost
    bad = fitting.fit_losses(probes, replicates=100).parameter("bad_s")
    assert bad is not None
    # An interval of 95 % misses one time in twenty, and fades meet real time: one of 99.9 %, by logarithms.
    low, high = (bad.value * (end / bad.value) ** (3.29 / 1.96) for end in (bad.low, bad.high))
    assert low < 0.025 < high


@in_namespaces
@pytest.mark.skipif(shutil.which("irtt") is None, reason="irtt is not installed")
def test_irtt_through_the_network_is_read_as_what_each_direction_lost(
    command: Command, tmp_path: Path
) -> None:
    settings = [
        'radio.channel={ gilbert-elliott = { good = "250 ms", bad = "25 ms", loss_bad = 0.9 } }',
        "radio.uplink.channel={ frame-loss = { loss = 0.02 } }",
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    # Without a limit to intervals, at which the server drops packets that were late.
    server = ("--server", "irtt server -i 0")
    line = f"sleep 1; irtt client -i 5ms -d 6s -l 60 -q -o {tmp_path}/irtt.json $LASTHOP_SERVER"
    ended = command("emulate", "last-mile", *options, *PATIENT, *server, "--json", "--", "sh", "-c", line)
    assert ended.returncode == 0, ended.stderr
    lost = {
        link["link"]: link["lost_on_air"]
        for link in json.loads(ended.stdout[ended.stdout.index("{\n") :])["links"]
    }
    found = measurement.read(tmp_path / "irtt.json")
    directions = {probes.direction: probes for probes in found.probes}
    # Packets that set up the connection may be lost as well; the server does not report what came last.
    for direction, link in ((Direction.DOWN, "base-mobile"), (Direction.UP, "mobile-base")):
        assert lost[link] - 12 <= int(directions[direction].lost.sum()) <= lost[link], direction
    assert 0.06 < np.quantile(found.delays[0].delay_s, 0.5) < 0.07
    bad = fitting.fit_losses(directions[Direction.DOWN], replicates=100).parameter("bad_s")
    assert bad is not None
    assert bad.low < 0.025 < bad.high
