"""Does `lasthop measure` find what a link is? Links in network namespaces, each measured once.

``python scripts/measured_links.py --links 16 --seed 1`` draws links, and for each makes a path of a user, a
wireless last hop, a router and a server, of which `lasthop emulate` is the last hop and the rest; there real
irtt, ping and iperf3 measure. It prints a table in Markdown: what is true, and the intervals. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lasthop.cli.emulation import namespaces

PATH = """
set -e
ip link set dev lo up
here=$(readlink /proc/self/ns/net)
for host in user router server last rest; do
    unshare --net sleep 1000 & pid=$!
    while [ "$(readlink /proc/$pid/ns/net)" = "$here" ]; do sleep 0.01; done
    eval $host=$pid
done
in_() { nsenter -t $1 -n "${@:2}"; }
# Wires: from a host to the namespace of what carries its packets.
wire() {
    ip link add name $3 netns $1 type veth peer name $4 netns $2
    in_ $1 ip link set dev $3 up
    in_ $2 ip link set dev $4 addrgenmode none arp off up
}
wire $router $last wlan0 w0
wire $user $last eth0 w1
wire $server $rest eth0 w0
wire $router $rest wan0 w1
in_ $user ip address add 10.0.0.2/24 dev eth0
in_ $router ip address add 10.0.0.1/24 dev wlan0
in_ $router ip address add 10.1.0.1/24 dev wan0
in_ $server ip address add 10.1.0.2/24 dev eth0
in_ $user ip route add default via 10.0.0.1
in_ $server ip route add default via 10.1.0.1
in_ $router sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
for host in $user $router $server; do in_ $host ip link set dev lo up; done
in_ $server sh -c "$servers"
emulate() { eval in_ $1 $lasthop emulate last-mile --between w0 w1 --json --lateness 1000 $2 -- sleep 1000; }
emulate $last "$last_hop" > $dir/last.json 2>&1 &
emulate $rest "$beyond" > $dir/rest.json 2>&1 &
for i in $(seq 200); do
    in_ $user ping -n -c 1 -W 1 10.1.0.2 > $dir/ping.txt && break
    sleep 0.1
done
code=0
eval in_ $user $lasthop measure 10.1.0.2 $measure || code=$?
exit $code
"""
"""`$last_hop` and `$beyond` are options of emulate, `$measure` those of measure; `$servers` starts them."""

SERVERS = "irtt server -i 0 > /dev/null 2>&1 & iperf3 -s > /dev/null 2>&1 & sleep 0.5"
TOOLS = ("irtt", "iperf3", "ping", "ip", "nsenter", "unshare", "bash")


def measured(
    directory: Path,
    last_hop: Sequence[str],
    beyond: Sequence[str] = (),
    *,
    options: Sequence[str] = (),
    emulated: Sequence[str] = (),
    servers: str = SERVERS,
) -> dict[str, Any]:
    """Return what `lasthop measure --json` says of a path with these settings of its two parts."""
    command = f"'{sys.executable}' -m lasthop"

    def words(settings: Sequence[str]) -> str:
        return " ".join(f"--set '{each}'" for each in settings)

    environment = os.environ | {
        "lasthop": command,
        "last_hop": f"{words(last_hop)} {' '.join(emulated)}",
        "beyond": f"{words(beyond)} {' '.join(emulated)}",
        "measure": " ".join((*options, "--no-advice", "--json", "--out", str(directory / "link.json"))),
        "servers": servers,
        "dir": str(directory),
    }
    inside = ["unshare", *namespaces._isolation(), "--net", "--pid", "--fork", "--kill-child"]
    shown = subprocess.run(
        [*inside, "bash", "-c", PATH],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    try:
        return dict(json.loads(shown.stdout))
    except ValueError:
        parts = "".join((directory / name).read_text() for name in ("last.json", "rest.json", "ping.txt"))
        raise AssertionError(shown.stdout + shown.stderr + parts) from None


@dataclass(frozen=True)
class Link:
    """A path whose numbers are known: rates in bits per second, times in seconds."""

    kind: str
    rate_bps: float
    up_bps: float
    last_hop_s: float
    rest_s: float
    loss: float
    bad_s: float | None
    channel: str
    beyond: bool

    @property
    def settings(self) -> tuple[list[str], list[str]]:
        """The settings of the last hop, and of what is beyond it."""
        queue = max(round(self.rate_bps * 0.1 / 12000), 20)
        last = [
            "wired.delay=0.5 ms",
            f"radio.rate={self.rate_bps / 1e6:.3f} Mbps",
            f"radio.uplink.rate={self.up_bps / 1e6:.3f} Mbps",
            f"radio.delay={self.last_hop_s * 1e3:.1f} ms",
            f"radio.queue={queue} packets",
        ]
        rest = [
            f"wired.delay={self.rest_s * 1e3:.1f} ms",
            "radio.rate=200 Mbps",
            "radio.uplink.rate=200 Mbps",
            "radio.queue=1000 packets",
        ]
        for settings, lossy in ((last, not self.beyond), (rest, self.beyond)):
            settings.append(f"radio.channel={self.channel if lossy else json.dumps('perfect')}")
        return last, rest


def draw(kind: str, dice: random.Random) -> Link:
    """Draw a link: losses in bursts, single ones, bursts beyond the last hop, or none."""
    rate = 2e6 * 15 ** dice.random()
    good_s, bad_s, loss_bad = dice.uniform(0.5, 2), 0.05 * 5 ** dice.random(), dice.uniform(0.6, 1)
    loss = bad_s / (good_s + bad_s) * loss_bad
    burst: float | None = bad_s
    if kind == "single":
        loss, burst = dice.uniform(0.01, 0.04), None
        channel = f"{{frame-loss={{loss={loss:.6f}}}}}"
    elif kind == "none":
        loss, burst, channel = 0.0, None, '"perfect"'
    else:
        channel = (
            f'{{gilbert-elliott={{good="{good_s * 1e3:.3f} ms",bad="{bad_s * 1e3:.3f} ms",'
            f"loss_bad={loss_bad:.4f}}}}}"
        )
    return Link(
        kind,
        rate,
        rate / dice.uniform(1, 4),
        dice.uniform(0.001, 0.01),
        dice.uniform(0.005, 0.05),
        loss,
        burst,
        channel,
        kind == "beyond",
    )


def judge(link: Link, found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return for each quantity whether it is right, and what was found."""
    down = found["fit"]["down"]["parameters"]
    verdicts = {"loss": _within(link.loss, down["loss"]["low"], down["loss"]["high"], 100, "%")}
    bad = down.get("bad_s")
    if link.bad_s is None:
        verdicts["burst"] = ("right" if bad is None else "wrong", "none" if bad is None else "some")
    elif bad is None or not bad["determined"]:
        verdicts["burst"] = ("undetermined", "-")
    else:
        verdicts["burst"] = _within(link.bad_s, bad["low"], bad["high"], 1e3, "ms")
    for name, truth in (("down", link.rate_bps), ("up", link.up_bps)):
        load = found["loads"][name]
        if load is None:
            verdicts[name] = ("undetermined", "-")
            continue
        verdicts[name] = _within(truth, load["low_bps"], load["high_bps"], 1e-6, "Mb/s")
    hop = found["losses_on_last_hop"]
    if hop is None:
        verdicts["hop"] = ("undetermined" if link.loss else "right", "no losses")
    else:
        at = "beyond" if link.beyond else "last hop"
        place = hop["place"]
        verdict = "right" if place == at else "undetermined" if place == "undetermined" else "wrong"
        verdicts["hop"] = (verdict, f"{hop['low']:.2f} to {hop['high']:.2f}")
    return verdicts


def _within(truth: float, low: float, high: float | None, scale: float, unit: str) -> tuple[str, str]:
    most = float("inf") if high is None else high
    text = f"{truth * scale:.3g} in {low * scale:.3g} to {most * scale:.3g} {unit}"
    return "right" if low <= truth <= most else "wrong", text


def main() -> None:
    """Measure links and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--idle", default="20s")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    kinds = ("bursts", "single", "bursts", "beyond")
    total: dict[str, dict[str, int]] = {}
    print("| link | loss | burst | down | up | losses on the last hop |\n|---|---|---|---|---|---|")
    for number in range(arguments.links):
        kind = "none" if number % 8 == 7 else kinds[number % 4]
        link = draw(kind, dice)
        last, rest = link.settings
        with tempfile.TemporaryDirectory() as directory:
            seed = ("--seed", str(arguments.seed * 1000 + number))
            found = measured(Path(directory), last, rest, options=("--idle", arguments.idle), emulated=seed)
        verdicts = judge(link, found)
        for name, (verdict, _) in verdicts.items():
            counts = total.setdefault(name, {"right": 0, "undetermined": 0, "wrong": 0})
            counts[verdict] += 1
        cells = [
            text if verdict == "right" else f"{text} **{verdict}**" for verdict, text in verdicts.values()
        ]
        print(f"| {number + 1}, {kind} | {' | '.join(cells)} |", flush=True)
    for name, counts in total.items():
        print(f"{name}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")


if __name__ == "__main__":
    main()
