"""Arms: the remedies in a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from lasthop.core.names import canonical
from lasthop.core.scenarios import setting_text


@dataclass(frozen=True, slots=True)
class Arm:
    """One remedy: a sender with a scheme and further settings.

    Attributes
    ----------
    sender : str or None
        The sender; None for the scenario's own.
    scheme : str
        The scheme, or a combination such as `"snoop@gateway + arq"`.
    settings : tuple of (str, object)
        Further settings of the scenario, each as its full key and its value: a text in the syntax of `--set`,
        or a value as in `Scenario.with_`.

    Examples
    --------
    >>> Arm("linux-bbr", "arq", (("tcp.packet_size", "500 B"),)).label
    'linux-bbr arq, tcp.packet_size=500 B'
    """

    sender: str | None
    scheme: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Normalise the spaces in a combination of schemes."""
        object.__setattr__(self, "scheme", canonical(self.scheme))

    @property
    def label(self) -> str:
        """Sender, scheme and settings in one line."""
        name = self.scheme if self.sender is None else f"{self.sender} {self.scheme}"
        return ", ".join([name, *(f"{key}={value}" for key, value in self.texts.items())])

    @property
    def texts(self) -> dict[str, str]:
        """The further settings, each with its value in the syntax of `--set`."""
        return {key: setting_text(value) for key, value in self.settings}

    def changes(self) -> list[dict[str, Any] | str]:
        """Return the changes that apply this arm to a scenario, as arguments of `Scenario.with_`."""
        sender = {} if self.sender is None else {"sender": self.sender}
        settings = [
            f"{key}={value}" if isinstance(value, str) else {key: value} for key, value in self.settings
        ]
        return [{**sender, "schemes": [self.scheme]}, *settings]

    def __hash__(self) -> int:
        """Return a hash of the label, since values may be mappings."""
        return hash(self.label)


def grid(
    senders: Sequence[str | None], schemes: Sequence[str], axes: Mapping[str, Sequence[Any]] | None = None
) -> list[Arm]:
    """Return an arm for each sender with each scheme and each combination of the values of the axes.

    Parameters
    ----------
    senders : sequence of str or None
        The senders; None for the scenario's own.
    schemes : sequence of str
        The schemes.
    axes : mapping of str to sequence, optional
        The values of further settings by their full keys, as in `Arm`.

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
