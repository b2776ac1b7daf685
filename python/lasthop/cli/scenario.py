"""Loading scenarios for commands, with errors that name the option that the user typed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import prod
from pathlib import Path

import lasthop
from lasthop import Scenario, ScenarioError
from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.streams import detail
from lasthop.core import formats, packaged
from lasthop.core.names import schemes_of, unknown

_HEADERS = 28
"""The size of the headers of IPv4 and UDP."""

_LEAST_PAYLOAD = 1200
"""The least payload that a path of QUIC carries (RFC 9000, section 14)."""


def load(
    path: Path, overrides: Sequence[str], schemes: Sequence[str], senders: Sequence[str] = ()
) -> Scenario:
    """Load a scenario with `--set`, `--scheme` and `--sender`; several senders become a swept setting."""
    if len(senders) > 1:
        chosen_senders = [f"sweep.sender={json.dumps(senders)}"]
    else:
        chosen_senders = [f"sender={json.dumps(name)}" for name in senders]
    with scheme_override(schemes) as chosen:
        if not chosen_senders:
            return lasthop.load(path, [*overrides, *chosen])
        with attributed(chosen_senders[0], "--sender"):
            return lasthop.load(path, [*overrides, *chosen, *chosen_senders])


def describe(path: Path, scenario: Scenario) -> None:
    """With `--verbose`, report which scenario is used; warn if a worked one has the name of the file."""
    name = packaged.found(path)
    if name is None and (own := packaged.kind(str(path))):
        warn(f"{path}: this file is used, and not the {own} of that name")
    if found := scenario.fragmented():
        size, mtu, is_quic = found
        fit = (
            f'quic.mtu="{max(mtu - _HEADERS, _LEAST_PAYLOAD)} B"' if is_quic else f'tcp.packet_size="{mtu} B"'
        )
        whole = f" (QUIC needs {_LEAST_PAYLOAD + _HEADERS} B)" if is_quic else ""
        warn(
            f"packets of {size} B cross the MTU of {mtu} B in {-(-size // mtu)} fragments, of which none may "
            f"be lost; a real sender would find the MTU of its path{whole}: --set {fit}"
        )
    if vanishing := scenario.lost_in_black_hole():
        size, largest, is_quic = vanishing
        remedy = (
            "quic.mtu_discovery=true, or a smaller quic.mtu"
            if is_quic
            else "tcp.mtu_probing=true, or a smaller tcp.packet_size"
        )
        warn(f"full packets have {size} B, and those above {largest} B vanish in a black hole: set {remedy}")
    if (lasts_s := scenario.taken_for_black_hole()) is not None:
        warn(
            f"outages or fades of {formats.seconds(lasts_s)} may last for more than three seconds, which "
            "tcp.mtu_probing takes for a black hole: it then lowers the segment size for good"
        )
    points = prod(map(len, scenario.sweep.values()))
    detail(f"lasthop {lasthop.__version__}, {Path(lasthop.__file__).parent}")
    what = f"{packaged.kind(name)} {name}" if name else f"scenario file {path}"
    detail(f"{what}: hash {scenario.hash}, {points} points, schemes {', '.join(scenario.schemes)}")


def load_each_sender(
    path: Path, overrides: Sequence[str], schemes: Sequence[str], senders: Sequence[str]
) -> list[Scenario]:
    """Load the scenario once for each sender, or once as it is.

    As in a study, each setting must have an effect on one of several senders. Senders of QUIC are
    loaded even if settings of TCP have no effect on them.
    """
    scenario = load(path, overrides, schemes, senders)
    return [scenario.with_({"sender": name}) for name in senders] if len(senders) > 1 else [scenario]


def unused_by_schemes(scenarios: Iterable[Scenario]) -> list[str]:
    """Return a line for each feature of the wireless links that some schemes do not use."""
    unused: dict[str, dict[str, None]] = {}
    for scenario in scenarios:
        for scheme in scenario.schemes:
            for what in scenario.unused_by(scheme):
                unused.setdefault(what, {})[scheme] = None
    words = {"arq": "ARQ", "fec": "error-correcting code"}
    return [
        f"without the {words[what]} of the wireless links: {', '.join(schemes)}"
        for what, schemes in unused.items()
    ]


def refuse_unknown_schemes(option: str, combinations: Iterable[str], expected: str = "") -> None:
    """Raise an error about `option` if a scheme in `combinations` does not exist."""
    known = [each.name for each in lasthop.schemes()]
    for name in chain.from_iterable(map(schemes_of, combinations)):
        if name not in known:
            told = unknown("scheme", name, known)
            raise RefusedError(told.problem, remedy=f"{told.remedy}{expected}", option=option)


@contextmanager
def scheme_override(schemes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the override for `--scheme`, if it was given, and attribute errors in it to that option."""
    refuse_unknown_schemes("--scheme", schemes)
    # As an override, so that every scheme is checked before the first one runs.
    override = f"schemes={json.dumps(schemes)}"
    with attributed(override, "--scheme"):
        yield [override] if schemes else []


@contextmanager
def attributed(override: str, option: str) -> Iterator[None]:
    """Attribute errors in an override that the user did not type to an option."""
    try:
        yield
    except ScenarioError as error:
        if error.change == override:
            raise RefusedError.of(error, option, error.problem) from None
        raise
