"""Every key of scenarios at zero: it is refused, or the scenario runs."""

from __future__ import annotations

from contextlib import suppress

import pytest

from lasthop import Scenario, ScenarioError, schemes
from lasthop.core.keys import Key, Section, sections

BASE = """
limit = "2 s"
[transfer]
size = "20 KB"
[wired]
rate = "1 Mbps"
delay = "0 s"
[radio]
rate = "384 kbps"
delay = "0 s"
channel = { gilbert = { loss = 0.05, burst = 3 } }
"""
ZEROS = {"size": "0 B", "duration": "0 s", "rate": "0 bps", "packets": "0 packets", "segments": "0 segments"}
NUMBERS = ("number", "probability")
SENDERS: tuple[list[str], ...] = ([], ['tcp.rules="ns2"', 'tcp.flavour="tahoe"'])


def overrides(section: Section, key: Key) -> list[str]:
    """Return the settings of a key to zero, as far as its kind has one."""
    name = f"{section.path}.{key.name}" if section.path else key.name
    found = [f'{name}="{zero}"' for kind, zero in ZEROS.items() if kind in key.kind]
    return found + [f"{name}=0" for kind in NUMBERS if kind in key.kind]


CASES = [
    (section.path, each)
    for section in sections()
    if "NAME" not in section.path
    for key in section.keys
    for each in overrides(section, key)
]


@pytest.mark.parametrize("sender", SENDERS, ids=["default", "ns2"])
def test_no_key_at_zero_stops_the_engine(sender: list[str]) -> None:
    assert len(CASES) > 200
    names, run = {scheme.name for scheme in schemes()}, 0
    for path, zero in CASES:
        scheme = path.removeprefix("scheme.").split(".")[0]
        scheme = scheme if scheme in names else "basic"
        for further in ([], ['radio.arq="selective-repeat"']):
            settings = [zero, *sender, *further, f'schemes=["{scheme}"]']
            with suppress(ScenarioError):
                Scenario.parse(BASE, overrides=settings).run(scheme)
                run += 1
    assert run > 50
