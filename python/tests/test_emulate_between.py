"""`lasthop emulate --between`: a scenario in place of a wire, in namespaces that the tests make."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, results
from test_emulate import CLIENT, PATIENT, REFUSAL, SERVER

import lasthop
from lasthop.cli.emulation import namespaces
from lasthop.cli.failure import LATE

pytestmark = [
    pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL),
    pytest.mark.skipif(shutil.which("nsenter") is None, reason="there is no nsenter"),
]

HOSTS = """
set -e
ip link set dev lo up
unshare --net sleep 1000 & one=$!
unshare --net sleep 1000 & two=$!
here=$(readlink /proc/self/ns/net)
for pid in $one $two; do
    while [ "$(readlink /proc/$pid/ns/net)" = "$here" ]; do sleep 0.01; done
done
for end in 0:$one:10.0.0.1 1:$two:10.0.0.2; do
    name=w${end%%:*} rest=${end#*:}
    pid=${rest%%:*} address=${rest#*:}
    ip link add name $name type veth peer name eth0 netns $pid
    ip link set dev $name addrgenmode none arp off up
    nsenter -t $pid -n ip link set dev lo up
    nsenter -t $pid -n ip link set dev eth0 up
    nsenter -t $pid -n ip address add $address/24 dev eth0
done
one() { nsenter -t $one -n "$@"; }
two() { nsenter -t $two -n "$@"; }
"""
"""Two hosts, `one` and `two`, whose interfaces lead to w0 and w1 of the namespace between them."""

PROBE = """
import socket, sys, time
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.settimeout(5)
# Nobody listens there, so that the host answers by ICMP.
probe.connect((sys.argv[1], 9))
for _ in range(int(sys.argv[2])):
    try:
        probe.send(b"?")
        probe.recv(1)
    except ConnectionRefusedError:
        print("crosses")
    except OSError:
        print("nothing")
    time.sleep(0.002)
"""
"""Asks the host at an address, as often as the second argument says, and prints whether it answered."""

DELAYED = ("--set", "wired.delay=19 ms", *PATIENT)


def between(script: str, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in the namespace between two hosts; `$lasthop` is the command."""
    words = [sys.executable, "-m", "lasthop", "emulate", "last-mile", *options]
    environment = os.environ | files | {"lasthop": " ".join(f"'{word}'" for word in words)}
    environment |= {"python": sys.executable, "probe": PROBE}
    inside = ["unshare", *namespaces._isolation(), "--net", "--pid", "--fork", "--kill-child"]
    return subprocess.run(
        [*inside, "sh", "-c", HOSTS + script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def report_in(shown: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert shown.stdout.startswith("{"), shown.stdout + shown.stderr
    return dict(json.loads(shown.stdout))


def test_a_wire_carries_what_hosts_say_to_each_other(tmp_path: Path) -> None:
    """ARP, neighbour discovery, and TCP with super-packets, whose bytes are checked by the client."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "client.py").write_text(CLIENT)
    out = tmp_path / "out"
    shown = between(
        """
        cat > $dir/talk.sh << END
        nsenter -t $one -n $python $dir/server.py &
        while ! nsenter -t $one -n grep -q ' 0A ' /proc/net/tcp; do sleep 0.05; done
        nsenter -t $two -n $python $dir/client.py 10.0.0.1 3000000
        wait
        nsenter -t $one -n ip neighbour show dev eth0
END
        eval $lasthop -- sh $dir/talk.sh
        """,
        *("--between", "w0", "w1", "--json", "--out", str(out), "--trace", "--record-lateness", "--pcap"),
        *("--set", "radio.channel.frame-loss.loss=0.005", *DELAYED),
        dir=str(tmp_path),
    )
    assert shown.returncode == 0, shown.stderr
    report = report_in(shown)
    assert report["interfaces"] == ["w0", "w1"]
    assert "10.0.0.2 lladdr" in shown.stderr
    assert report["problems"] == []
    assert report["segmented_packets"] > 100
    assert report["unforwarded"] == {"not_ip": 0, "link_local": 0, "oversized": 0, "early": 0}
    server, client = report["ends"]
    sent, received = (server[key] + client[key] for key in ("sent_packets", "received_packets"))
    assert sent == received + report["lost_packets"] + report["in_network_packets"]
    assert client["received_bytes"] / client["received_packets"] < 1500

    assert results(out) == [
        "basic-client.pcapng",
        "basic-server.pcapng",
        "basic.events.csv",
        "basic.lateness.csv",
        "results.json",
        "scenario.toml",
    ]
    (connection,) = report["connections"]
    assert connection["source"] == "10.0.0.1:5001"
    assert connection["delivered_bytes"] == 3_000_000
    assert connection["finished"]
    assert connection["goodput"] == pytest.approx(
        3_000_000 / (3_000_000 + 1448 * connection["retransmitted_segments"]), rel=0.01
    )
    with (out / "basic.events.csv").open() as file:
        events = list(csv.DictReader(file))
    simulated = lasthop.load("ebsn-example").run("basic", trace=True).events()
    assert list(events[0]) == list(simulated)
    data = [row for row in events if row["event"] == "sent" and int(row["packet"]) >= 0]
    assert len({row["packet"] for row in data}) == -(-3_000_000 // 1448)
    retransmitted = sum(int(row["transmission"]) > 1 for row in data)
    assert retransmitted == connection["retransmitted_segments"] > 0
    lost = [row for row in events if row["event"] == "lost"]
    assert {row["reason"] for row in lost} <= {"corrupted", "queue-full"}
    assert len(lost) == connection["lost_on_air"] + connection["queue_drops"]
    with (out / "basic.lateness.csv").open() as file:
        late = list(csv.DictReader(file))
    assert list(late[0]) == ["entered_s", "time_s", "to", "size_bytes", "late_s"]
    assert len(late) == received
    worst = max(float(row["late_s"]) for row in late)
    assert worst == pytest.approx(report["lateness"]["max_s"], rel=0.01)
    # No packet is faster than the links.
    assert min(float(row["time_s"]) - float(row["entered_s"]) for row in late) > 0.02


def test_overload_drops_and_says_so(tmp_path: Path) -> None:
    """An emulator that stood still for half a second drops what waited, and does not run late silently."""
    shown = between(
        """
        cat > $dir/talk.sh << END
        nsenter -t $one -n $python -c "
import socket, time
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 2
while time.monotonic() < end:
    flood.sendto(b'x', ('10.0.0.2', 9))
    time.sleep(0.001)
" &
        sleep 0.5
        kill -STOP \\$PPID
        sleep 0.5
        kill -CONT \\$PPID
        wait
        exit 0
END
        eval $lasthop -- sh $dir/talk.sh
        """,
        *("--between", "w0", "w1", "--json", "--lateness", "5", "--set", "wired.delay=19 ms"),
        dir=str(tmp_path),
    )
    assert shown.returncode == LATE, shown.stderr
    report = report_in(shown)
    assert report["overload_drops"] > 100
    assert "packets were dropped since this machine was too slow" in shown.stderr


def test_nothing_is_left_after_a_kill() -> None:
    """The kernel leaves promiscuous mode, and frames no longer cross."""
    shown = between(
        """
        (eval exec $lasthop > /dev/null 2>&1) & emulator=$!
        promiscuity() { ip -details link show dev w0 | grep -o 'promiscuity [0-9]*'; }
        while [ "$(promiscuity)" != "promiscuity 1" ]; do sleep 0.05; done
        one $python -c "$probe" 10.0.0.2 1
        kill -KILL $emulator
        while [ "$(promiscuity)" != "promiscuity 0" ]; do sleep 0.05; done
        one $python -c "$probe" 10.0.0.2 1
        ip -o link show | cut -d: -f2 | cut -d@ -f1
        """,
        *("--between", "w0", "w1", "--set", "radio.channel='perfect'", *DELAYED),
    )
    assert shown.stdout.split() == ["crosses", "nothing", "lo", "w0", "w1"], shown.stderr


RUNS = "until ip -details link show dev w1 | grep -q 'promiscuity 1'; do sleep 0.05; done; sleep 0.5"
"""Waits until the emulator has begun."""


def test_an_interface_that_disappears_ends_it() -> None:
    shown = between(
        f"({RUNS}; ip link del w1) & eval $lasthop",
        *("--between", "w0", "w1", *DELAYED),
    )
    assert shown.returncode == LATE, shown.stderr
    assert "the interface w1 has disappeared" in shown.stderr


def test_an_interface_that_goes_down_is_reported() -> None:
    shown = between(
        f"({RUNS}; ip link set w1 down) & eval $lasthop",
        *("--between", "w0", "w1", *DELAYED, "--", "sleep", "4"),
    )
    assert "the interface w1 went down, or its other end" in shown.stderr
    assert shown.returncode == LATE, shown.stderr


@pytest.mark.parametrize(
    ("before", "options", "problem"),
    [
        ("", "w0 w0", "found w0 twice, expected two interfaces"),
        ("", "w0 w9", 'there is no interface "w9"; there are lo, w0, w1'),
        ("", "lo w1", "lo is the loopback, whose frames have no other end"),
        ("", "lo w1 --force", "lo is the loopback, whose frames have no other end"),
        (
            "ip link set dev w1 down",
            "w0 w1",
            "w1 is down; bring it up: `ip link set dev w1 addrgenmode none arp off up`",
        ),
        ("ip link set dev w1 mtu 1400", "w0 w1", "give both the same: ip link set dev w0 mtu 1400"),
        (
            "ip address add 10.9.0.1/24 dev w0",
            "w0 w1",
            "w0 has the address 10.9.0.1, so that this host would",
        ),
        ("ip route add default dev w1", "w0 w1", "w1 has the default route of this namespace"),
        (
            "ip link add b0 type bridge && ip link set dev w0 master b0 || exit 77",
            "w0 w1",
            "w0 is a port of b0, which carries its frames as well; remove it there: "
            "`ip link set dev w0 nomaster`",
        ),
        ("", "w0 w1 --mtu 1400", "--server, --mtu, --hide and --privileged set up the ends"),
        ('lasthop="setpriv --bounding-set -net_raw $lasthop"', "w0 w1", "reading frames needs CAP_NET_RAW"),
    ],
)
def test_interfaces_that_are_no_ports_of_a_wire_are_refused(before: str, options: str, problem: str) -> None:
    shown = between(f"{before}\neval $lasthop {options} -- true", "--between")
    if shown.returncode == 77:
        pytest.skip("this kernel has no bridges")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert problem in shown.stderr


def test_who_insists_may_use_an_addressed_interface() -> None:
    shown = between(
        "ip address add 10.9.0.1/24 dev w0 && ip route add default dev w1 && eval $lasthop -- true",
        *("--between", "w0", "w1", "--force", *PATIENT),
    )
    assert shown.returncode == 0, shown.stderr
    assert "between w0 and w1" in shown.stderr
