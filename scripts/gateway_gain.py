"""Measure what a scheme of the gateway gains, beside its simulation: `gateway_gain.py PROGRAM`.

PROGRAM is `lasthop-gateway`. Server, gateway and client are network namespaces of this machine with its
Linux; the wire and the radio between them are links of `lasthop emulate`. The server sends to the client for
some seconds by iperf3, with help and without, in turn. Schemes of the tunnel have a second gateway at the
client. The same transfers are simulated on the same links, and both gains are printed with 95 % intervals,
as a Markdown table. Needs root and iperf3.
"""

from __future__ import annotations

import argparse
import math
import statistics
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from gateway_network import BEHIND, Network, needed
from scipy.stats import t as student

import lasthop

SENDERS = {"reno": "linux-reno", "cubic": "linux", "bbr": "linux-bbr"}
"""The simulator's senders, by the kernel's names of their congestion control."""


TUNNEL = {"packet-fec": 72, "arq": 62}
"""Bytes that the tunnel adds to packets of a class: headers of IPv4 and UDP, its own, and the tag."""

TUNNEL_MTU = 1406
"""The largest packet in the tunnel, by default, over links of 1500 bytes."""


class Link(NamedTuple):
    """A radio, and the wire before it."""

    rate: str
    radio_ms: float
    wired_ms: float
    loss: float

    def __str__(self) -> str:
        """Describe it for a table."""
        return f"{self.rate}, {self.radio_ms:g} + {self.wired_ms:g} ms, {self.loss:.0%}"


LINKS = (
    Link("10 Mbps", 5, 30, 0.01),
    Link("10 Mbps", 5, 30, 0.03),
    Link("20 Mbps", 2, 15, 0.01),
    Link("5 Mbps", 10, 60, 0.02),
    Link("2 Mbps", 20, 40, 0.01),
    Link("20 Mbps", 5, 30, 0.0),
)


def scenario(link: Link, seconds: float, *, wired: bool, radio: bool) -> str:
    """Return a scenario with a wire, a radio, or both; the other one carries everything at once."""
    wire = f'rate = "1 Gbps"\ndelay = "{link.wired_ms if wired else 0.001:g} ms"'
    rate, delay, loss = (link.rate, link.radio_ms, link.loss) if radio else ("1 Gbps", 0.001, 0.0)
    return (
        f'limit = "{seconds:g} s"\n[transfer]\nsize = "unlimited"\n[wired]\n{wire}\n'
        f'[radio]\nrate = "{rate}"\ndelay = "{delay:g} ms"\nqueue = "200 packets"\n'
        f"channel.frame-loss.loss = {loss}\n"
    )


def main() -> None:
    """Measure, simulate, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path, help="lasthop-gateway")
    parser.add_argument("--scheme", default="snoop", help="the scheme of helped flows")
    parser.add_argument("--senders", default="cubic,bbr", help="congestion controls of the server")
    parser.add_argument("--seconds", type=float, default=10, help="length of a transfer")
    parser.add_argument("--runs", type=int, default=3, help="transfers of each kind")
    parser.add_argument("--links", type=int, default=len(LINKS), help="how many of the links")
    options = parser.parse_args()
    needed("iperf3")
    print(
        "| link | sender | without (Mb/s) | with | gain | simulated gain | |\n|---|---|---|---|---|---|---|"
    )
    for link in LINKS[: options.links]:
        for sender in options.senders.split(","):
            measured = measure(link, sender, options)
            simulated = simulate(link, sender, options)
            gains = [gain(*each) for each in (measured, simulated)]
            (low, high), (least, most) = (interval(*each) for each in (measured, simulated))
            rates = " | ".join(f"{statistics.mean(each) / 1e6:.2f}" for each in measured)
            print(
                f"| {link} | {sender} | {rates} | {gains[0]:.2f} ({low:.2f}-{high:.2f}) "
                f"| {gains[1]:.2f} ({least:.2f}-{most:.2f}) | {gains[1] / gains[0] - 1:+.0%} |",
                flush=True,
            )


def measure(link: Link, sender: str, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Return the goodput of transfers without help and with it, in bits per second."""
    program = [str(options.program.resolve())]
    line = ["-R", "-t", f"{options.seconds:g}", "-C", sender]
    rates: tuple[list[float], list[float]] = ([], [])
    for run in range(options.runs):
        for arm, found in enumerate(rates):
            # Both arms meet the same losses.
            with Network() as network:
                settings = f'scheme = "{options.scheme}"\n'
                own = ["-B", BEHIND] if arm and options.scheme in TUNNEL else []
                wire = scenario(link, options.seconds, wired=True, radio=False)
                radio = scenario(link, options.seconds, wired=False, radio=True)
                network.emulated("server", "wired0", 2, wire, 100 + run)
                network.emulated("client", "radio0", 1, radio, run)
                with helping(network, link, settings, program, options.scheme) if arm else nullcontext():
                    found.append(network.transfer([*line, *own]))
    return rates


def helping(
    network: Network, link: Link, settings: str, program: list[str], scheme: str
) -> AbstractContextManager[Any]:
    """Run what helps: a gateway, or two with a tunnel."""
    if scheme in TUNNEL:
        return network.tunnel(settings, f'rate = "{link.rate}"\n', program)
    return network.gateway(settings, program)


def simulate(link: Link, sender: str, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Return the throughput of simulated transfers without help and with it, in bits per second."""
    text = scenario(link, options.seconds, wired=True, radio=True)
    both = lasthop.Scenario.parse(
        f'schemes = ["basic", "{options.scheme}"]\nsender = "{SENDERS[sender]}"\n{text}'
    )
    rates = [
        [float(each.run(scheme, run=run).metrics["throughput_bps"]) for run in range(4 * options.runs)]
        for scheme, each in (("basic", both), (options.scheme, both.with_(*in_tunnel(link, options.scheme))))
    ]
    return rates[0], rates[1]


def in_tunnel(link: Link, scheme: str) -> list[str]:
    """Return the changes by which a scheme of the tunnel is simulated: sizes, and when losses are known."""
    if scheme not in TUNNEL:
        return []
    packet = f"tcp.packet_size={TUNNEL_MTU} B"
    if scheme == "packet-fec":
        return [packet, f"scheme.packet-fec.header={TUNNEL[scheme]} B"]
    # The ARQ of a link adds no bytes, and hears of a loss when three later packets have arrived.
    added = (TUNNEL_MTU + TUNNEL[scheme]) / TUNNEL_MTU
    mbps = float(link.rate.split()[0])
    heard_ms = 2 * link.radio_ms + 3 * (TUNNEL_MTU + TUNNEL[scheme]) * 8 / mbps / 1e3
    repeat = "scheme.arq.protocol.selective-repeat"
    return [packet, f"radio.rate={mbps / added:.4f} Mbps", f"{repeat}.feedback_delay={heard_ms:.2f} ms"]


def gain(without: list[float], helped: list[float]) -> float:
    """Return the ratio of geometric means."""
    return math.exp(statistics.mean(map(math.log, helped)) - statistics.mean(map(math.log, without)))


def interval(without: list[float], helped: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the gain, by pairs."""
    logs = [math.log(with_) - math.log(alone) for alone, with_ in zip(without, helped, strict=True)]
    if len(logs) < 2:
        return gain(without, helped), gain(without, helped)
    half = float(student.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return math.exp(mean - half), math.exp(mean + half)


if __name__ == "__main__":
    main()
