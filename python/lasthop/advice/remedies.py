"""The remedies that are tried, and what it takes to deploy each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lasthop._lasthop import Scheme, schemes
from lasthop.comparison import Arm

PLAIN = schemes()[0].name
"""The scheme without a remedy, which is registered first."""


@dataclass(frozen=True, slots=True)
class Sender:
    """A TCP that a server can be told to use.

    Attributes
    ----------
    name : str
        Its name in the scenario.
    title : str
        What it is.
    congestion : str or None
        The congestion control of `[senders.NAME]`; None for a profile.
    how : str
        How a server is told.
    mainline : bool
        Whether released kernels have it.
    """

    name: str
    title: str
    congestion: str | None
    how: str
    mainline: bool = True


def _sysctl(name: str) -> str:
    return f"sysctl net.ipv4.tcp_congestion_control={name}"


SENDERS = {
    sender.name: sender
    for sender in (
        Sender("linux", "CUBIC, Linux's default", None, _sysctl("cubic")),
        Sender("linux-reno", "Reno", "reno", _sysctl("reno")),
        Sender("linux-bbr", "BBR", None, _sysctl("bbr")),
        Sender("linux-bbr3", "BBR version 3", None, "a kernel of its authors", mainline=False),
        Sender("linux-westwood", "Westwood+", "westwood", _sysctl("westwood")),
        Sender("linux-hybla", "Hybla", "hybla", _sysctl("hybla")),
        Sender("linux-veno", "Veno", "veno", _sysctl("veno")),
        Sender("linux-vegas", "Vegas", "vegas", _sysctl("vegas")),
    )
}
"""The senders, by name."""


def tables() -> str:
    """Return the tables of a scenario that define the senders which are no profiles."""
    defined = (sender for sender in SENDERS.values() if sender.congestion is not None)
    return "".join(
        f'[senders.{sender.name}]\nprofile = "linux"\ncongestion = "{sender.congestion}"\n\n'
        for sender in defined
    )


def deployable() -> Mapping[str, Scheme]:
    """Return the schemes that the owner of a link may deploy, by name."""
    return {scheme.name: scheme for scheme in schemes() if scheme.place is not None}


def arms(sender: str) -> list[Arm]:
    """Return what is tried for a server with this sender.

    Other senders, each scheme with the sender, and what products have with BBR too.
    """
    found = [Arm(name, PLAIN) for name in dict.fromkeys((sender, *SENDERS))]
    other = "linux" if sender == "linux-bbr" else "linux-bbr"
    for each in (sender, other):
        for name, scheme in deployable().items():
            if each == sender or scheme.products:
                settings = tuple((f"scheme.{name}.{key}", value) for key, value in scheme.settings.items())
                found.append(Arm(each, name, settings))
    return found


@dataclass(frozen=True, slots=True)
class Deployment:
    """What it takes to deploy an arm.

    Attributes
    ----------
    places : tuple of str
        Where something changes.
    how : tuple of str
        What is done there.
    costs : tuple of str
        What it costs others.
    effort : int
        0: nothing; 1: a setting of the server; 2: a product on the path; 3: both; 4 and more: code that no
        product has.
    reads_tcp : bool
        Whether a VPN hides what it needs.
    """

    places: tuple[str, ...]
    how: tuple[str, ...]
    costs: tuple[str, ...]
    effort: int
    reads_tcp: bool


def deployment(arm: Arm, sender: str) -> Deployment:
    """Return what it takes to deploy an arm where the server has `sender` now."""
    places: list[str] = []
    how: list[str] = []
    costs: list[str] = []
    effort = 0
    if arm.sender is not None and arm.sender != sender:
        known = SENDERS[arm.sender]
        places.append("server")
        how.append(known.how)
        effort += 1 if known.mainline else 4
        if arm.sender.startswith("linux-bbr"):
            costs.append("may take bandwidth from other flows in the same queue")
    scheme = deployable().get(arm.scheme)
    if scheme is not None and scheme.place is not None and scheme.cost is not None:
        places.append(scheme.place)
        how.append(scheme.products or f"no product has it ({scheme.source})")
        costs.append(scheme.cost)
        effort += 2 if scheme.products else 4
    return Deployment(
        tuple(places), tuple(how), tuple(costs), effort, bool(scheme is not None and scheme.reads_tcp)
    )


def title(arm: Arm, sender: str) -> str:
    """Return what an arm is called where the server has `sender` now."""
    with_sender = SENDERS[arm.sender].title if arm.sender in SENDERS else str(arm.sender)
    if arm.scheme == PLAIN:
        return with_sender
    return arm.scheme if arm.sender == sender else f"{with_sender} + {arm.scheme}"


def meaning(arm: Arm) -> str:
    """Return what an arm's scheme does; empty without one."""
    scheme = deployable().get(arm.scheme)
    return "" if scheme is None else scheme.summary
