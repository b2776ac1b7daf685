"""The network of a scenario in place of a wire between two existing interfaces: `lasthop emulate --between`.

```text
host A ── veth, cable or port ── IF1 ══ links of the scenario ══ IF2 ── veth, cable or port ── host B
                                 source                       destination
```

Frames are read and written by packet sockets in the network namespace of the command, which makes no
interfaces and changes none. The kernel leaves promiscuous mode when the sockets close, also after a crash.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from lasthop.cli.emulation import report
from lasthop.cli.emulation.carrier import (
    Carrier,
    Emulation,
    Interfaces,
    end_process,
    leave_interrupts_to_programs,
    let_interrupts_through,
    stop_on_termination,
)
from lasthop.cli.failure import RefusedError
from lasthop.cli.output import Output
from lasthop.cli.streams import notify
from lasthop.core.names import unknown

_CHECK_INTERVAL = 0.05
"""Seconds between two checks of the command and of the interfaces."""

_SILENT_UP = "ip link set dev {name} addrgenmode none arp off up"
"""The command that brings an interface up without packets of its own."""


def emulate(emulation: Emulation, interfaces: tuple[str, str], command: list[str], *, force: bool) -> int:
    """Carry all frames between the interfaces until the command ends, or Ctrl-C; returns the exit code.

    Parameters
    ----------
    emulation : Emulation
        What to emulate.
    interfaces : (str, str)
        The interfaces at the source and at the destination of the data.
    command : list of str
        What runs meanwhile, in this namespace; nothing if empty.
    force : bool
        Whether interfaces may have addresses or the default route.

    Raises
    ------
    RefusedError
        If an interface is unfit, or the privilege is missing.
    """
    mtu = _checked(interfaces, force=force)
    stop = stop_on_termination()
    if command:
        leave_interrupts_to_programs(stop.set)
    else:
        signal.signal(signal.SIGINT, lambda *_: stop.set())
    output = None if emulation.out is None else Output(emulation.out)
    with output or nullcontext():
        try:
            carrier = Carrier(emulation, interfaces, mtu, output, stop, wire=True)
        except PermissionError:
            raise RefusedError(
                "reading frames needs CAP_NET_RAW; ",
                remedy=(
                    "run the command as root, or in a network namespace of your own (unshare --user "
                    "--map-root-user --net)"
                ),
                option="--between",
            ) from None
        carrier.begin()
        ports = Interfaces(interfaces)
        with _running(command, quiet=emulation.as_json) as process:
            if process is None:
                notify(
                    f"frames between {' and '.join(interfaces)} cross the links; Ctrl-C ends the emulation"
                )
            code = _wait(process, ports, interfaces, stop)
        stop.set()
        document = report.document(emulation, interfaces, carrier.report(), code)
        document["problems"] += [f"the interface {name} has disappeared" for name in ports.gone]
        document["problems"] += [f"the interface {name} went down, or its other end" for name in ports.down]
        carrier.write(document)
    return report.publish(document, as_json=emulation.as_json)


def _checked(interfaces: tuple[str, str], *, force: bool) -> int:
    """Return the MTU of both interfaces.

    Raises
    ------
    RefusedError
        If one is unfit to be a port of a wire.
    """
    if shutil.which("ip") is None:
        raise RefusedError("emulate needs the program `ip`; ", remedy="install iproute2")
    if interfaces[0] == interfaces[1]:
        raise RefusedError(
            f"found {interfaces[0]} twice, ", remedy="expected two interfaces", option="--between"
        )
    links = [_link(name) for name in interfaces]
    for name, link in zip(interfaces, links, strict=True):
        for problem in _problems(name, link, force=force):
            raise RefusedError(f"{name} {problem}", option="--between")
    first, second = (int(link["mtu"]) for link in links)
    if first != second:
        raise RefusedError(
            f"{interfaces[0]} has an MTU of {first} and {interfaces[1]} of {second}; ",
            remedy=f"give both the same: ip link set dev {interfaces[0]} mtu {min(first, second)}",
            option="--between",
        )
    return first


def _link(name: str) -> dict[str, Any]:
    """Return what `ip` says of an interface of this namespace."""
    known = [each for _, each in socket.if_nameindex()]
    if name not in known:
        raise RefusedError(unknown("interface", name, known), option="--between")
    (link,) = (each for each in _ip("address", "show", "dev", name) if each)
    return dict(link)


def _ip(*words: str) -> list[dict[str, Any]]:
    done = subprocess.run(["ip", "-json", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(
            f"emulate cannot look at the interfaces: ip {' '.join(words)}: {done.stderr.strip()}"
        )
    return list(json.loads(done.stdout or "[]"))


def _problems(name: str, link: dict[str, Any], *, force: bool) -> Iterator[str]:
    """Yield why an interface is no port of a wire."""
    if "LOOPBACK" in link["flags"]:
        yield "is the loopback, whose frames have no other end"
    if link["link_type"] != "ether":
        yield f"carries no Ethernet frames (its type is {link['link_type']})"
    if master := link.get("master"):
        yield (
            f"is a port of {master}, which carries its frames as well; remove it there: "
            f"`ip link set dev {name} nomaster`"
        )
    if "UP" not in link["flags"]:
        yield f"is down; bring it up: `{_SILENT_UP.format(name=name)}`"
    if force:
        return
    default = [*_ip("-4", "route", "show", "default"), *_ip("-6", "route", "show", "default")]
    if any(route.get("dev") == name for route in default):
        yield (
            "has the default route of this namespace, so that a scenario would come between this host and "
            "its network; use another interface, or insist by --force"
        )
    if addresses := [each["local"] for each in link["addr_info"] if "local" in each]:
        yield (
            f"has the address {addresses[0]}, so that this host would answer beside the hosts at both ends; "
            f"remove it: `ip address flush dev {name} && ip link set dev {name} addrgenmode none arp off`, "
            "or insist by --force"
        )


@contextmanager
def _running(command: list[str], *, quiet: bool) -> Iterator[subprocess.Popen[bytes] | None]:
    """Run the command in this namespace, with the privileges of its user; end it with the block."""
    if not command:
        yield None
        return
    try:
        process = subprocess.Popen(
            command, stdout=sys.stderr if quiet else None, preexec_fn=let_interrupts_through
        )
    except OSError as error:
        raise RefusedError(f"cannot run {command[0]}: {error.strerror}") from None
    try:
        yield process
    finally:
        end_process(process)


def _wait(
    process: subprocess.Popen[bytes] | None,
    ports: Interfaces,
    names: tuple[str, str],
    stop: threading.Event,
) -> int:
    """Wait until the command ends, the user ends the emulation, or an interface disappears."""
    while not stop.is_set() and not ports.gone:
        for name in names:
            if ports.look(name):
                ports.note(name)
        code = process.poll() if process is not None else None
        if code is not None:
            return code if code >= 0 else 128 - code
        time.sleep(_CHECK_INTERVAL)
    return 0 if process is None else 128 + signal.SIGTERM
