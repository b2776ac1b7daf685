"""The remedies that are simulated, and the deployment of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lasthop._lasthop import (
    CongestionControl,
    Scenario,
    Scheme,
    congestion_controls,
    queue_disciplines,
    schemes,
    stack_senders,
)
from lasthop.advice import steps, wifi
from lasthop.advice.steps import Steps
from lasthop.core.names import PLAIN
from lasthop.race import Arm


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
    linux : str or None
        Its name in Linux; None if released kernels lack it.
    cost : str or None
        Its drawback.
    protocol : str
        The transport protocol.
    library : str or None
        The library of a sender that is not of a kernel, with its version.
    """

    name: str
    title: str
    how: str
    linux: str | None = None
    cost: str | None = None
    protocol: str = "TCP"
    library: str | None = None


def _sender(control: CongestionControl) -> Sender:
    is_default = control.sender == LINUX
    return Sender(
        control.sender,
        f"{control.title}, Linux's default" if is_default else control.title,
        control.origin or f"sysctl net.ipv4.tcp_congestion_control={control.linux}",
        linux=control.linux,
        cost=control.cost,
    )


LINUX = "linux"
"""A Linux server with its default congestion control."""

SENDERS = {
    control.sender: _sender(control)
    for control in sorted(congestion_controls(), key=lambda control: control.sender != LINUX)
    if control.linux or control.origin
}
"""The senders of TCP, by name."""

COUNTERPARTS = {"linux": "quinn-cubic", "linux-bbr": "quinn-bbr", "linux-reno": "quinn-newreno"}
"""The sender of QUIC that has the congestion control of a sender of TCP."""

_COSTS = {quic: SENDERS[tcp].cost for tcp, quic in COUNTERPARTS.items()}

STACK_SENDERS = {
    each.name: Sender(
        each.name,
        f"{each.title} ({each.protocol})",
        each.how,
        cost=_COSTS.get(each.name),
        protocol=each.protocol,
        library=each.version,
    )
    for each in stack_senders()
    if each.how
}
"""The senders of other stacks that servers have, by name."""


def sender_named(name: str) -> Sender:
    """Return a sender by its name.

    Raises
    ------
    KeyError
        If there is none.
    """
    return SENDERS[name] if name in SENDERS else STACK_SENDERS[name]


def peers(sender: str) -> list[str]:
    """Return the senders of the same library: those that a server with this one may be configured to use."""
    library = sender_named(sender).library
    return [name for name, each in (SENDERS | STACK_SENDERS).items() if each.library == library]


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

SETTING, DISCIPLINE, PRODUCT, MANY, BUILD, RESEARCH = 1, 2, 4, 4, 8, 16
"""Effort of the parts of a remedy.

In this order: a sysctl of one's own server or device, the lines of a queue discipline, a product on the path,
a sysctl of many servers, a kernel to build, and code that no product has.
"""

SETTINGS = SETTING + DISCIPLINE
"""The most effort of remedies that are settings of boxes that run already."""


def deployable() -> Mapping[str, Scheme]:
    """Return the schemes that the owner of a link may deploy, by name."""
    return {scheme.name: scheme for scheme in schemes() if scheme.place is not None}


def arms(sender: str) -> list[Arm]:
    """Return the remedies to simulate for a server with this sender.

    They are the other senders; each scheme with this sender, and with BBR if products have the scheme; and
    the queue disciplines, alone, with BBR, and with the schemes that products have.
    """
    own = peers(sender)
    found = [Arm(name, PLAIN) for name in dict.fromkeys((sender, *own))]
    # A library without BBR has another control.
    other = next((name for name in own if name in ("linux-bbr", "quinn-bbr")), own[-1])
    other = own[0] if sender == other else other
    for each in (sender, other):
        for name, scheme in deployable().items():
            if scheme.needs_quic and each not in STACK_SENDERS:
                continue
            # Another sender has nothing to gain from a scheme that cannot read it.
            is_unreadable = scheme.reads_tcp and each in STACK_SENDERS
            if each == sender or (scheme.products and not is_unreadable):
                found += [Arm(each, name, settings) for settings in _variants(scheme, each)]
    found += [Arm(sender, PLAIN, ((QUEUE, {name: {}}),)) for name in DISCIPLINES]
    found.append(Arm(other, PLAIN, ((QUEUE, FAIR),)))
    products = [
        scheme
        for scheme in deployable().values()
        if scheme.products and not (scheme.reads_tcp and sender in STACK_SENDERS)
    ]
    found += [
        Arm(sender, scheme.name, (*settings, (QUEUE, FAIR)))
        for scheme in products
        for settings in _variants(scheme, sender)
    ]
    return found


def wifi_arms(sender: str, scenario: Scenario) -> list[Arm]:
    """Return the remedies to simulate over Wi-Fi.

    They are the other senders; each scheme that products have, as its first variant is set up; and the
    remedies of Wi-Fi, alone and with fair queues.

    Parameters
    ----------
    sender : str
        The server's sender now.
    scenario : Scenario
        The scenario of the use.
    """
    found = [Arm(name, PLAIN) for name in dict.fromkeys((sender, *peers(sender)))]
    found += [
        Arm(sender, name, _variants(scheme, sender)[0])
        for name, scheme in deployable().items()
        if scheme.products
    ]
    alone = wifi.settings_for(scenario)
    found += [Arm(sender, PLAIN, settings) for settings in alone]
    if fair := wifi.fair_queues(scenario):
        found += [Arm(sender, PLAIN, (*settings, *fair)) for settings in alone if settings != fair]
    return found


def _variants(scheme: Scheme, sender: str) -> list[tuple[tuple[str, Any], ...]]:
    """Return the variants of a scheme, without that whose congestion control is the sender's own.

    Of a scheme that reads TCP, one is enough to tell that another protocol ignores it.
    """
    if scheme.reads_tcp and sender in STACK_SENDERS:
        return [()]
    own = sender_named(sender).linux
    return [
        tuple((f"scheme.{scheme.name}.{key}", value) for key, value in variant.items())
        for variant in scheme.variants
        if own is None or variant.get("wireless.congestion") != own
    ]


def discipline(arm: Arm) -> Discipline | None:
    """Return the queue discipline of an arm; None if it leaves the queue as it is."""
    queue = dict(arm.settings).get(QUEUE)
    return DISCIPLINES[next(iter(queue))] if isinstance(queue, Mapping) else None


def changes_only_tcp(arm: Arm) -> bool:
    """Whether an arm has no effect on traffic other than TCP."""
    scheme = deployable().get(arm.scheme)
    changes_air = bool(wifi.within(dict(arm.settings)))
    return discipline(arm) is None and not changes_air and (scheme is None or scheme.reads_tcp)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an arm: what changes at one place.

    Attributes
    ----------
    name : str
        Its name: the congestion control, the scheme or the queue discipline.
    place : str
        Where it is installed.
    how : str
        What is installed there, and with which product, in a phrase.
    cost : str or None
        Its drawback.
    effort : int
        What it takes: see `SETTING`.
    available : bool
        Whether it is to be had today. False if no product has it.
    steps : Steps
        Whose box it is, and the commands.
    """

    name: str
    place: str
    how: str
    cost: str | None
    effort: int
    available: bool
    steps: Steps


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployment of an arm.

    Attributes
    ----------
    parts : tuple of Part
        What changes, place by place. Empty for the current configuration.
    reads_tcp : bool
        Whether it reads TCP headers, which a VPN hides.
    """

    parts: tuple[Part, ...]
    reads_tcp: bool

    @property
    def places(self) -> tuple[str, ...]:
        """Where something changes."""
        return tuple(each.place for each in self.parts)

    @property
    def how(self) -> tuple[str, ...]:
        """What changes at each place."""
        return tuple(each.how for each in self.parts)

    @property
    def costs(self) -> tuple[str, ...]:
        """The drawbacks."""
        return tuple(each.cost for each in self.parts if each.cost)

    @property
    def effort(self) -> int:
        """The sum over the parts."""
        return sum(each.effort for each in self.parts)

    @property
    def available(self) -> bool:
        """Whether all of its parts are to be had today."""
        return all(each.available for each in self.parts)


@dataclass(frozen=True, slots=True)
class DataSender:
    """The sender of the data of a use.

    Attributes
    ----------
    place : str
        Its name in output.
    owner : str
        Whose box it is.
    effort : int
        The effort of changing its congestion control.
    """

    place: str
    owner: str
    effort: int


ONE_SERVER = DataSender("server", "the server: yours if you run it, else not yours to change", SETTING)
"""The server of the user who asks for advice."""

MANY_SERVERS = DataSender(
    "every server of downloads", "servers, of which those of others are not yours to change", MANY
)
"""The servers of all downloads beside a use."""

DEVICE = DataSender("device that uploads", "your own device", SETTING)
"""The user's device."""


@dataclass(frozen=True, slots=True)
class LinkRates:
    """The rates of a link, to which a shaper is set.

    Attributes
    ----------
    down_bps, up_bps : float or None
        The rates of both directions; None if unknown.
    """

    down_bps: float | None = None
    up_bps: float | None = None


def deployment(
    arm: Arm, sender: str, source: DataSender = ONE_SERVER, rates: LinkRates | None = None
) -> Deployment:
    """Return the deployment of an arm if the server uses `sender` now, on a link of these rates."""
    parts = []
    if arm.sender is not None and arm.sender != sender:
        known = sender_named(arm.sender)
        parts.append(
            Part(
                known.title,
                source.place,
                known.how,
                known.cost,
                source.effort if known.linux else max(BUILD, source.effort),
                available=True,
                steps=steps.of_sender(known.linux, source.owner)
                if known.protocol == "TCP"
                else Steps(source.owner, (), f"a setting of the server's program: {known.how}"),
            )
        )
    scheme = deployable().get(arm.scheme)
    if scheme is not None and scheme.place is not None:
        linux = sender_named(arm.sender or sender).linux
        parts.append(_scheme_part(scheme, arm, linux))
    queue = discipline(arm)
    if queue is not None:
        shaper = rates or LinkRates()
        parts.append(
            Part(
                queue.title,
                QUEUE_PLACE,
                queue.how,
                QUEUE_COST,
                DISCIPLINE,
                available=True,
                steps=steps.of_queue(queue.name, shaper.down_bps, shaper.up_bps),
            )
        )
    parts += [
        Part(each.title, each.place, each.how, each.cost, each.effort, available=True, steps=each.steps)
        for each in wifi.within(dict(arm.settings))
    ]
    return Deployment(tuple(parts), bool(scheme is not None and scheme.reads_tcp))


def _scheme_part(scheme: Scheme, arm: Arm, linux: str | None) -> Part:
    prefix = f"scheme.{scheme.name}."
    settings = {key.removeprefix(prefix): str(value) for key, value in arm.settings if key.startswith(prefix)}
    assert scheme.place is not None
    if scheme.products is None:
        how = f"not to be had today: no product has it ({scheme.source})"
        found = Steps("nobody's yet", (), "it exists as research code only")
        return Part(scheme.name, scheme.place, how, scheme.cost, RESEARCH, available=False, steps=found)
    return Part(
        scheme.name,
        scheme.place,
        scheme.products,
        scheme.cost,
        PRODUCT,
        available=True,
        steps=steps.of_scheme(scheme, settings, linux),
    )


def title(arm: Arm, sender: str) -> str:
    """Return the title of an arm if the server uses `sender` now."""
    known = SENDERS | STACK_SENDERS
    with_sender = known[arm.sender].title if arm.sender in known else str(arm.sender)
    queue = discipline(arm)
    parts = [] if arm.sender == sender else [with_sender]
    parts += [] if arm.scheme == PLAIN else [" ".join((arm.scheme, *_distinguishing_settings(arm)))]
    parts += [] if queue is None else [queue.title]
    parts += [each.title for each in wifi.within(dict(arm.settings))]
    return " + ".join(parts) or with_sender


def _distinguishing_settings(arm: Arm) -> list[str]:
    """Return the settings that differ between the variants of an arm's scheme, as key=value."""
    scheme = deployable().get(arm.scheme)
    if scheme is None:
        return []
    keys = {key for variant in scheme.variants for key in variant}
    several = [
        f"scheme.{arm.scheme}.{key}"
        for key in keys
        if len({variant.get(key) for variant in scheme.variants}) > 1
    ]
    return [f"{key.rpartition('.')[2]}={value}" for key, value in arm.settings if key in several]


def meaning(arm: Arm) -> str:
    """Summarise what an arm has beside its sender; empty without anything."""
    scheme, queue = deployable().get(arm.scheme), discipline(arm)
    parts = [] if scheme is None else [scheme.summary]
    parts += [] if queue is None else [queue.meaning]
    parts += [each.meaning for each in wifi.within(dict(arm.settings))]
    return "; ".join(parts)
