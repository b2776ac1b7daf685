"""How each part of a remedy is installed: whose box it is, and the commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lasthop._lasthop import Scheme
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
    files : mapping of str to str
        What `lasthop advise --plan` writes in place of the commands: the text of each file by its name. Empty
        if it takes no file.
    """

    owner: str
    commands: tuple[str, ...]
    note: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


SYSCTL = "90-congestion-control.conf"
"""The file of a congestion control, for /etc/sysctl.d."""

SHAPER = "shaper.sh"
"""The script of a queue discipline, with the interface and unknown rates as its arguments."""

_RATES = {"UP_RATE": "up", "DOWN_RATE": "down"}
"""What stands for the rate of each direction where it is unknown."""


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
            f"echo net.ipv4.tcp_congestion_control={linux} > /etc/sysctl.d/{SYSCTL}",
        ),
        "applies to connections opened from then on",
        {SYSCTL: f"net.ipv4.tcp_congestion_control = {linux}\n"},
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
    up, down = (_shaped(bps, name) for bps, name in zip((up_bps, down_bps), _RATES, strict=True))
    lines = [
        "# up",
        *_limited("WAN", up, kind),
        "# down, by a virtual interface for what arrives",
        "ip link show ifb0 > /dev/null 2>&1 || ip link add ifb0 type ifb",
        "ip link set ifb0 up",
        "tc qdisc del dev WAN ingress 2> /dev/null || true",
        "tc qdisc add dev WAN handle ffff: ingress",
        "tc filter add dev WAN parent ffff: matchall action mirred egress redirect dev ifb0",
        *_limited("ifb0", down, kind),
    ]
    alternatives = []
    if kind == "fq_codel":
        alternatives = [
            "# or with CAKE, in place of the qdiscs and classes of up and of ifb0",
            f"tc qdisc replace dev WAN root cake bandwidth {up}",
            f"tc qdisc replace dev ifb0 root cake bandwidth {down} ingress",
            f"# or on OpenWrt: package luci-app-sqm (SQM), download {down}, upload {up}",
        ]
    return Steps(
        "your router; the queue at the operator's end of the downlink is not yours to change, so the router "
        "limits what arrives",
        (*lines, *alternatives),
        f"the rates are {formats.share(SHAPED)} of the link's, which costs the rest of it; where the link's "
        "rate varies, they must follow it (cake-autorate)",
        {SHAPER: _script(lines)},
    )


def _script(lines: Sequence[str]) -> str:
    """Return a script of lines in which WAN, and the rates that are unknown, are its arguments."""
    text = "\n".join(lines).replace("dev WAN", 'dev "$WAN"')
    head = ["#!/bin/sh", "set -e", 'WAN="${1:?expected the interface towards the link}"']
    for index, name in enumerate(unknown_rates(lines), 2):
        head.append(f'{name}="${{{index}:?expected the rate {_RATES[name]}, such as 9500kbit}}"')
        text = text.replace(f"rate {name}", f'rate "${name}"')
    return "\n".join([*head, text]) + "\n"


def unknown_rates(lines: Sequence[str]) -> list[str]:
    """Return the names that stand for unknown rates in lines, in the order of the script's arguments."""
    return [name for name in _RATES if any(name in line for line in lines)]


def _shaped(rate_bps: float | None, unknown: str) -> str:
    return unknown if rate_bps is None else f"{max(SHAPED * rate_bps / 1e3, 1):.0f}kbit"


def _limited(interface: str, rate: str, kind: str) -> list[str]:
    return [
        f"tc qdisc del dev {interface} root 2> /dev/null || true",
        f"tc qdisc add dev {interface} root handle 1: htb default 1",
        f"tc class replace dev {interface} parent 1: classid 1:1 htb rate {rate}",
        f"tc qdisc replace dev {interface} parent 1:1 {kind}",
    ]


def of_scheme(scheme: Scheme, settings: Mapping[str, str], linux: str | None) -> Steps:
    """Return the steps that install the usual product of a scheme, set up as one of its variants.

    Parameters
    ----------
    scheme : Scheme
        The scheme.
    settings : mapping of str to str
        The settings of the variant; what it leaves out is that of the first.
    linux : str or None
        The congestion control of the sender by its name in Linux; None if released kernels lack it. A variant
        may have another over the radio.
    """
    values = {"congestion": linux or "bbr", **scheme.variants[0], **settings}
    values["congestion"] = values.get("wireless.congestion", values["congestion"])

    def number(match: re.Match[str]) -> str:
        first, _, second = match[1].partition("-")
        return str(int(values[first]) - int(values[second])) if second else values[first]

    def filled(text: str) -> str:
        return re.sub(r"\{([a-z-]+)\}", number, text)

    assert scheme.owner is not None
    commands = tuple(map(filled, scheme.commands))
    return Steps(scheme.owner, commands, filled(scheme.note or ""), _written(commands))


_WRITING = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END$\n?", re.DOTALL | re.MULTILINE)
"""Commands that write a file."""


def _written(commands: Sequence[str]) -> dict[str, str]:
    """Return the files that commands write by `cat > NAME <<'END'`."""
    return {match[1]: match[2] for match in _WRITING.finditer("\n".join(commands))}


def after_writing(commands: Sequence[str]) -> list[str]:
    """Return the commands but those that write files."""
    return _WRITING.sub("", "\n".join(commands)).splitlines()
