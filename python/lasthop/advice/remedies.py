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


@dataclass(frozen=True, slots=True)
class Discipline:
    """A queue discipline that the last hop's ends can be told to use.

    Attributes
    ----------
    title : str
        What it is called.
    queue : str
        The queue as a scenario has it.
    meaning : str
        What it does.
    how : str
        How a router is told.
    """

    title: str
    queue: str
    meaning: str
    how: str


QUEUE = "radio.queue"
"""The setting of the queues at both ends of the last hop."""

DISCIPLINES = {
    each.queue: each
    for each in (
        Discipline(
            "CoDel",
            "{ codel = {} }",
            "keeps the queue short by dropping packets that waited for too long (RFC 8289)",
            "tc qdisc replace dev IF root codel",
        ),
        Discipline(
            "FQ-CoDel",
            "{ fq-codel = {} }",
            "a queue for each flow, each kept short (RFC 8290)",
            "tc qdisc replace dev IF root fq_codel; in Wi-Fi of Linux and OpenWrt by default",
        ),
    )
}
"""The queue disciplines, by their queues."""

FAIR = "{ fq-codel = {} }"
"""The discipline that is combined with other remedies."""

QUEUE_PLACE = "queue at the last hop"
QUEUE_COST = (
    "works only where packets wait: in front of a faster queue, its rate must be limited to the link's"
)

PRODUCT, NO_PRODUCT = 2, 8
"""The efforts of a product on the path, and of code that no product has."""


def tables() -> str:
    """Return the tables of a scenario that define the senders which are not profiles."""
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

    Other senders; each scheme with the sender, and what products have with BBR too; and queue disciplines,
    alone, with BBR, and with the schemes that products have.
    """
    found = [Arm(name, PLAIN) for name in dict.fromkeys((sender, *SENDERS))]
    other = "linux" if sender == "linux-bbr" else "linux-bbr"
    for each in (sender, other):
        for name, scheme in deployable().items():
            if each == sender or scheme.products:
                found += [Arm(each, name, settings) for settings in _variants(scheme)]
    found += [Arm(sender, PLAIN, ((QUEUE, queue),)) for queue in DISCIPLINES]
    found.append(Arm(other, PLAIN, ((QUEUE, FAIR),)))
    products = [scheme for scheme in deployable().values() if scheme.products]
    found += [
        Arm(sender, scheme.name, (*settings, (QUEUE, FAIR)))
        for scheme in products
        for settings in _variants(scheme)
    ]
    return found


def _variants(scheme: Scheme) -> list[tuple[tuple[str, str], ...]]:
    return [
        tuple((f"scheme.{scheme.name}.{key}", value) for key, value in variant.items())
        for variant in scheme.variants
    ]


def discipline(arm: Arm) -> Discipline | None:
    """Return the queue discipline of an arm; None if it leaves the queue as it is."""
    return DISCIPLINES.get(dict(arm.settings).get(QUEUE, ""))


def changes_only_tcp(arm: Arm) -> bool:
    """Whether an arm leaves packets alone that are not TCP's."""
    scheme = deployable().get(arm.scheme)
    return discipline(arm) is None and (scheme is None or scheme.reads_tcp is True)


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
        0: nothing; 1: a setting of the server; 2: a product on the path, or a queue discipline; 4: a setting
        of many servers; their sum for several; 8 and more: code that no product has.
    reads_tcp : bool
        Whether a VPN hides what it needs.
    """

    places: tuple[str, ...]
    how: tuple[str, ...]
    costs: tuple[str, ...]
    effort: int
    reads_tcp: bool


@dataclass(frozen=True, slots=True)
class Source:
    """Who sends, and what it takes to change its TCP.

    Attributes
    ----------
    place : str
        Who sends.
    effort : int
        The effort of a setting there, as of `Deployment`.
    """

    place: str
    effort: int


ONE_SERVER = Source("server", 1)
"""The server of whoever asks."""

MANY_SERVERS = Source("every server of downloads", 4)
"""The servers of all downloads beside a use."""

DEVICE = Source("device that uploads", 1)
"""The user's device."""


def deployment(arm: Arm, sender: str, source: Source = ONE_SERVER) -> Deployment:
    """Return what it takes to deploy an arm where the server has `sender` now."""
    places: list[str] = []
    how: list[str] = []
    costs: list[str] = []
    effort = 0
    if arm.sender is not None and arm.sender != sender:
        known = SENDERS[arm.sender]
        places.append(source.place)
        how.append(known.how)
        effort += source.effort if known.mainline else NO_PRODUCT
        if arm.sender.startswith("linux-bbr"):
            costs.append("may take bandwidth from other flows in the same queue")
    scheme = deployable().get(arm.scheme)
    if scheme is not None and scheme.place is not None and scheme.cost is not None:
        places.append(scheme.place)
        how.append(scheme.products or f"no product has it ({scheme.source})")
        costs.append(scheme.cost)
        effort += PRODUCT if scheme.products else NO_PRODUCT
    queue = discipline(arm)
    if queue is not None:
        places.append(QUEUE_PLACE)
        how.append(queue.how)
        costs.append(QUEUE_COST)
        effort += PRODUCT
    return Deployment(
        tuple(places), tuple(how), tuple(costs), effort, bool(scheme is not None and scheme.reads_tcp)
    )


def title(arm: Arm, sender: str) -> str:
    """Return what an arm is called where the server has `sender` now."""
    with_sender = SENDERS[arm.sender].title if arm.sender in SENDERS else str(arm.sender)
    queue = discipline(arm)
    parts = [] if arm.sender == sender else [with_sender]
    parts += [] if arm.scheme == PLAIN else [" ".join((arm.scheme, *_told_apart(arm)))]
    parts += [] if queue is None else [queue.title]
    return " + ".join(parts) or with_sender


def _told_apart(arm: Arm) -> list[str]:
    """Return the settings that tell an arm from others with its scheme, as key=value."""
    scheme = deployable().get(arm.scheme)
    if scheme is None:
        return []
    values: dict[str, set[str]] = {}
    for key, value in (setting for variant in scheme.variants for setting in variant.items()):
        values.setdefault(f"scheme.{arm.scheme}.{key}", set()).add(value)
    several = [key for key, found in values.items() if len(found) > 1]
    return [f"{key.rpartition('.')[2]}={value}" for key, value in arm.settings if key in several]


def meaning(arm: Arm) -> str:
    """Return what an arm's scheme and its queue do; empty without either."""
    scheme, queue = deployable().get(arm.scheme), discipline(arm)
    said = [] if scheme is None else [scheme.summary]
    said += [] if queue is None else [queue.meaning]
    return "; ".join(said)
