"""How each part of a remedy is installed: whose box it is, and the commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lasthop.core import formats

SHAPED = 0.95
"""The rate of a shaper, as a share of the link's, so that packets wait in the shaper and not behind it."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How a part of a remedy is installed.

    Attributes
    ----------
    owner : str
        Whose box it is, and when it is not the user's to change.
    commands : tuple of str
        Lines for a shell by root; those that begin with `#` are comments. Names in capitals stand for the
        user's own, such as WAN for the interface towards the link.
    note : str
        What the commands do not say; may be empty.
    """

    owner: str
    commands: tuple[str, ...]
    note: str = ""


def of_sender(linux: str | None, owner: str) -> Steps:
    """Return the steps that configure a congestion control.

    Parameters
    ----------
    linux : str or None
        Its name in Linux; None if released kernels lack it.
    owner : str
        Whose box the sender is.
    """
    if linux is None:
        return Steps(owner, (), "no released kernel has it: a kernel must be built")
    return Steps(
        owner,
        (
            f"modprobe -q tcp_{linux}",
            f"sysctl -w net.ipv4.tcp_congestion_control={linux}",
            f"echo net.ipv4.tcp_congestion_control={linux} > /etc/sysctl.d/90-congestion-control.conf",
        ),
        "applies to connections opened from then on",
    )


def of_queue(discipline: str, down_bps: float | None, up_bps: float | None) -> Steps:
    """Return the steps that shape both directions at a router in front of a link.

    Parameters
    ----------
    discipline : str
        The queue discipline as scenarios name it, such as `fq-codel`.
    down_bps, up_bps : float or None
        The rates of the link; None if unknown.
    """
    kind = discipline.replace("-", "_")
    down, up = _shaped(down_bps, "DOWN_RATE"), _shaped(up_bps, "UP_RATE")
    commands = [
        "# up",
        *_limited("WAN", up, kind),
        "# down, by a virtual interface for what arrives",
        "ip link add ifb0 type ifb",
        "ip link set ifb0 up",
        "tc qdisc replace dev WAN handle ffff: ingress",
        "tc filter add dev WAN parent ffff: matchall action mirred egress redirect dev ifb0",
        *_limited("ifb0", down, kind),
    ]
    if kind == "fq_codel":
        commands += [
            "# or with CAKE, in place of the qdiscs and classes of up and of ifb0",
            f"tc qdisc replace dev WAN root cake bandwidth {up}",
            f"tc qdisc replace dev ifb0 root cake bandwidth {down} ingress",
            f"# or on OpenWrt: package luci-app-sqm (SQM), download {down}, upload {up}",
        ]
    return Steps(
        "your router; the queue at the operator's end of the downlink is not yours to change, so the router "
        "limits what arrives",
        tuple(commands),
        f"the rates are {formats.share(SHAPED)} of the link's, which costs the rest of it; where the link's "
        "rate varies, they must follow it (cake-autorate)",
    )


def _shaped(rate_bps: float | None, unknown: str) -> str:
    return unknown if rate_bps is None else f"{max(SHAPED * rate_bps / 1e3, 1):.0f}kbit"


def _limited(interface: str, rate: str, kind: str) -> list[str]:
    return [
        f"tc qdisc replace dev {interface} root handle 1: htb default 1",
        f"tc class replace dev {interface} parent 1: classid 1:1 htb rate {rate}",
        f"tc qdisc replace dev {interface} parent 1:1 {kind}",
    ]


def of_scheme(name: str, settings: dict[str, str]) -> Steps:
    """Return the steps that install a product of a scheme, for the settings of one of its variants."""
    found = _SCHEMES.get(name)
    return Steps("whoever runs it", (), "see its manual") if found is None else found(settings)


def _arq(_: dict[str, str]) -> Steps:
    return Steps(
        "of Wi-Fi the access point and the adapter, yours at home; of LTE, 5G and satellites the operator's, "
        "not yours to change",
        (
            "# Wi-Fi, at both ends",
            "iw phy PHY set retry short 15 long 15",
            "# LTE and 5G: the operator configures acknowledged mode of RLC for each bearer",
        ),
        "losses that a measurement of packets sees lie above the retries that the link has already: they "
        "are the frames that those gave up. Some drivers ignore the limit",
    )


def _packet_fec(settings: dict[str, str]) -> Steps:
    k, n = int(settings["k"]), int(settings["n"])
    code = f"-f{k}:{n - k}"
    spread = int(settings.get("interleave", "1"))
    # UDPspeeder and tinyfecVPN spread a block over time.
    scatter = " -i INTERVAL_MS" if spread > 1 else ""
    return Steps(
        "a host at each end of the wireless link: yours, with a server beyond it that you run",
        (
            "# at the server",
            f"tinyvpn -s -l0.0.0.0:4096 {code}{scatter} --sub-net 10.22.22.0 -k PASSWORD",
            "# at your end",
            f"tinyvpn -c -rSERVER:4096 {code}{scatter} --sub-net 10.22.22.0 -k PASSWORD",
        ),
        "tinyfecVPN carries TCP, UDPspeeder UDP only (the same -f)"
        + (f"; -i spreads a block over the time of {spread} blocks" if scatter else ""),
    )


def _split(_: dict[str, str]) -> Steps:
    return Steps(
        "a Linux box before the last hop that both directions pass: yours if you run the base station or the "
        "access router, else the operator's and not yours to change",
        (
            "ip rule add fwmark 1 lookup 100",
            "ip route add local 0.0.0.0/0 dev lo table 100",
            "iptables -t mangle -A PREROUTING -i LAN -p tcp -j TPROXY --on-port 5000 --tproxy-mark 1",
            "iptables -t mangle -A PREROUTING -i WAN -p tcp -j TPROXY --on-port 5000 --tproxy-mark 1",
            "pepsal -d -p 5000",
        ),
    )


_SCHEMES: dict[str, Callable[[dict[str, str]], Steps]] = {
    "arq": _arq,
    "i-tcp": _split,
    "packet-fec": _packet_fec,
}
"""The steps of each scheme that products have, by its name and the settings of its variant."""
