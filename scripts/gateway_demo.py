"""Show what the gateway gains: `make demo-gateway`.

Two hosts with Linux and the gateway between them are network namespaces of this machine. The wired part and
the radio are links of `lasthop emulate`. Data are downloaded over the radio with the gateway and without it,
by senders with each congestion control of this kernel; the radio has the same seed in all runs. Needs root
and iperf3.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from gateway_network import LASTHOP, Network, needed

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
[scheme.i-tcp.wireless]
congestion = "bbr"
"""


def main() -> None:
    """Run the downloads, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loss", default="1%", help="loss of packets on the radio")
    parser.add_argument("--seconds", type=int, default=8, help="length of each download")
    options = parser.parse_args()
    needed("iperf3")
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    wired, radio = "30 ms, 1 Gbps", f"20 Mbps, 5 ms, {options.loss} loss"
    print(f"client ══ radio: {radio} ══ gateway ══ wire: {wired} ══ server\n")
    print(f"{'sender':<10}{'without':>12}{'with':>12}{'gain':>8}")
    for control in controls:
        rates = []
        for is_helped in (False, True):
            # The network is made anew, so that both arms meet the same losses.
            with Network() as network:
                network.emulated("server", "wired0", 2, WIRED, 1)
                network.emulated("client", "radio0", 1, RADIO.replace("LOSS", options.loss), 2)
                time.sleep(1.5)
                line = ["-R", "-C", control, "-t", str(options.seconds)]
                if is_helped:
                    with network.gateway(GATEWAY, [*LASTHOP, "gateway"]):
                        rates.append(network.transfer(line))
                else:
                    rates.append(network.transfer(line))
        without, helped = rates
        gain = f"{helped / without:.1f}x"
        print(f"{control:<10}{without / 1e6:>7.2f} Mbps{helped / 1e6:>7.2f} Mbps{gain:>8}", flush=True)


if __name__ == "__main__":
    main()
