"""Arms: the remedies in a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from lasthop.core.names import canonical


@dataclass(frozen=True, slots=True)
class Arm:
    """One remedy: a sender with a scheme and further settings.

    Attributes
    ----------
    sender : str or None
        The sender; None for the scenario's own.
    scheme : str
        The scheme, or a combination such as `"snoop@gateway + arq"`.
    settings : tuple of (str, str)
        Further settings of the scenario, each as its full key and its value.

    Examples
    --------
    >>> Arm("linux-bbr", "arq", (("tcp.packet_size", "500 B"),)).label
    'linux-bbr arq, tcp.packet_size=500 B'
    """

    sender: str | None
    scheme: str
    settings: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Normalise the spaces in a combination of schemes."""
        object.__setattr__(self, "scheme", canonical(self.scheme))

    @property
    def label(self) -> str:
        """Sender, scheme and settings in one line."""
        name = self.scheme if self.sender is None else f"{self.sender} {self.scheme}"
        return ", ".join([name, *(f"{key}={value}" for key, value in self.settings)])

    def overrides(self) -> list[str]:
        """Return the overrides that apply this arm to a scenario."""
        sender = [] if self.sender is None else [f"sender={json.dumps(self.sender)}"]
        settings = [f"{key}={value}" for key, value in self.settings]
        return [*sender, f"schemes={json.dumps([self.scheme])}", *settings]


def grid(
    senders: Sequence[str | None], schemes: Sequence[str], axes: Mapping[str, Sequence[str]] | None = None
) -> list[Arm]:
    """Return an arm for each sender with each scheme and each combination of the values of the axes.

    Parameters
    ----------
    senders : sequence of str or None
        The senders; None for the scenario's own.
    schemes : sequence of str
        The schemes.
    axes : mapping of str to sequence of str, optional
        The values of further settings by their full keys.

    Examples
    --------
    >>> [arm.label for arm in grid(["linux"], ["basic", "snoop+arq"], {"radio.mtu": ["576 B"]})]
    ['linux basic, radio.mtu=576 B', 'linux snoop + arq, radio.mtu=576 B']
    """
    axes = axes or {}
    return [
        Arm(sender, scheme, tuple(zip(axes, values, strict=True)))
        for sender, scheme in product(senders, schemes)
        for values in product(*axes.values())
    ]
