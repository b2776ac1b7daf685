"""The remedies that are simulated, and the deployment of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lasthop._lasthop import CongestionControl, Scheme, congestion_controls, queue_disciplines, schemes
from lasthop.race import Arm

PLAIN = schemes()[0].name
"""The scheme without a remedy, which is registered first."""


@dataclass(frozen=True, slots=True)
class Sender:
    """A congestion control that a server can be configured to use.

    Attributes
    ----------
    name : str
        Its name in scenarios and `--sender`.
    title : str
        Its title in output.
    how : str
        How to configure a server, such as a sysctl.
    mainline : bool
        Whether released Linux kernels include it.
    cost : str or None
        Its drawback.
    """

    name: str
    title: str
    how: str
    mainline: bool = True
    cost: str | None = None


def _sender(control: CongestionControl) -> Sender:
    is_default = control.sender == LINUX
    return Sender(
        control.sender,
        f"{control.title}, Linux's default" if is_default else control.title,
        control.origin or f"sysctl net.ipv4.tcp_congestion_control={control.linux}",
        mainline=control.linux is not None,
        cost=control.cost,
    )


LINUX = "linux"
"""A Linux server with its default congestion control."""

SENDERS = {
    control.sender: _sender(control)
    for control in sorted(congestion_controls(), key=lambda control: control.sender != LINUX)
    if control.linux or control.origin
}
"""The senders, by name."""


@dataclass(frozen=True, slots=True)
class Discipline:
    """A queue discipline that the ends of the last hop can be configured to use.

    Attributes
    ----------
    title : str
        Its title in output.
    name : str
        Its name in `radio.queue` of a scenario.
    meaning : str
        A summary of what it does.
    how : str
        How to configure a router.
    """

    title: str
    name: str
    meaning: str
    how: str


QUEUE = "radio.queue"
"""The key of the queues at both ends of the last hop."""

DISCIPLINES = {
    each.name: Discipline(each.title, each.name, each.summary, each.deployment)
    for each in queue_disciplines()
    if each.deployment is not None
}
"""The queue disciplines, by name."""

FAIR: Mapping[str, Any] = {"fq-codel": {}}
"""The queue discipline that is combined with other remedies, as the value of `QUEUE`."""

QUEUE_PLACE = "queue at the last hop"
QUEUE_COST = (
    "works only where packets wait: in front of a faster queue, its rate must be limited to the link's"
)

PRODUCT, NO_PRODUCT = 2, 8
"""Effort of a product on the path, and of code that no product has."""


def deployable() -> Mapping[str, Scheme]:
    """Return the schemes that the owner of a link may deploy, by name."""
    return {scheme.name: scheme for scheme in schemes() if scheme.place is not None}


def arms(sender: str) -> list[Arm]:
    """Return the remedies to simulate for a server with this sender.

    They are the other senders; each scheme with this sender, and with BBR if products have the scheme; and
    the queue disciplines, alone, with BBR, and with the schemes that products have.
    """
    found = [Arm(name, PLAIN) for name in dict.fromkeys((sender, *SENDERS))]
    other = LINUX if sender == "linux-bbr" else "linux-bbr"
    for each in (sender, other):
        for name, scheme in deployable().items():
            if each == sender or scheme.products:
                found += [Arm(each, name, settings) for settings in _variants(scheme)]
    found += [Arm(sender, PLAIN, ((QUEUE, {name: {}}),)) for name in DISCIPLINES]
    found.append(Arm(other, PLAIN, ((QUEUE, FAIR),)))
    products = [scheme for scheme in deployable().values() if scheme.products]
    found += [
        Arm(sender, scheme.name, (*settings, (QUEUE, FAIR)))
        for scheme in products
        for settings in _variants(scheme)
    ]
    return found


def _variants(scheme: Scheme) -> list[tuple[tuple[str, Any], ...]]:
    return [
        tuple((f"scheme.{scheme.name}.{key}", value) for key, value in variant.items())
        for variant in scheme.variants
    ]


def discipline(arm: Arm) -> Discipline | None:
    """Return the queue discipline of an arm; None if it leaves the queue as it is."""
    queue = dict(arm.settings).get(QUEUE)
    return DISCIPLINES[next(iter(queue))] if isinstance(queue, Mapping) else None


def changes_only_tcp(arm: Arm) -> bool:
    """Whether an arm has no effect on traffic other than TCP."""
    scheme = deployable().get(arm.scheme)
    return discipline(arm) is None and (scheme is None or scheme.reads_tcp is True)


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployment of an arm.

    Attributes
    ----------
    places : tuple of str
        Where something changes.
    how : tuple of str
        What changes at each place.
    costs : tuple of str
        The drawbacks.
    effort : int
        The sum over the places: 1 for a setting of the server, 2 for a product on the path or a queue
        discipline, 4 for a setting of many servers, 8 for code that no product has.
    reads_tcp : bool
        Whether it reads TCP headers, which a VPN hides.
    """

    places: tuple[str, ...]
    how: tuple[str, ...]
    costs: tuple[str, ...]
    effort: int
    reads_tcp: bool


@dataclass(frozen=True, slots=True)
class Source:
    """The sender of the data of a use.

    Attributes
    ----------
    place : str
        Its name in output.
    effort : int
        The effort of changing its congestion control, on the scale of `Deployment`.
    """

    place: str
    effort: int


ONE_SERVER = Source("server", 1)
"""The server of the user who asks for advice."""

MANY_SERVERS = Source("every server of downloads", 4)
"""The servers of all downloads beside a use."""

DEVICE = Source("device that uploads", 1)
"""The user's device."""


def deployment(arm: Arm, sender: str, source: Source = ONE_SERVER) -> Deployment:
    """Return the deployment of an arm if the server uses `sender` now."""
    places: list[str] = []
    how: list[str] = []
    costs: list[str] = []
    effort = 0
    if arm.sender is not None and arm.sender != sender:
        known = SENDERS[arm.sender]
        places.append(source.place)
        how.append(known.how)
        effort += source.effort if known.mainline else NO_PRODUCT
        costs += [known.cost] if known.cost else []
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
    """Return the title of an arm if the server uses `sender` now."""
    with_sender = SENDERS[arm.sender].title if arm.sender in SENDERS else str(arm.sender)
    queue = discipline(arm)
    parts = [] if arm.sender == sender else [with_sender]
    parts += [] if arm.scheme == PLAIN else [" ".join((arm.scheme, *_distinguishing_settings(arm)))]
    parts += [] if queue is None else [queue.title]
    return " + ".join(parts) or with_sender


def _distinguishing_settings(arm: Arm) -> list[str]:
    """Return the settings that differ between the variants of an arm's scheme, as key=value."""
    scheme = deployable().get(arm.scheme)
    if scheme is None:
        return []
    values: dict[str, set[str]] = {}
    for key, value in (setting for variant in scheme.variants for setting in variant.items()):
        values.setdefault(f"scheme.{arm.scheme}.{key}", set()).add(value)
    several = [key for key, found in values.items() if len(found) > 1]
    return [f"{key.rpartition('.')[2]}={value}" for key, value in arm.settings if key in several]


def meaning(arm: Arm) -> str:
    """Summarise an arm's scheme and its queue discipline; empty without either."""
    scheme, queue = deployable().get(arm.scheme), discipline(arm)
    parts = [] if scheme is None else [scheme.summary]
    parts += [] if queue is None else [queue.meaning]
    return "; ".join(parts)
