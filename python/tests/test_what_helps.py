"""The table of what helps whom, in docs/reference/what-helps.md."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from conftest import ROOT

PATH = ROOT / "scripts/what_helps.py"
SPEC = importlib.util.spec_from_file_location(PATH.stem, PATH)
assert SPEC is not None
assert SPEC.loader is not None
what_helps = importlib.util.module_from_spec(SPEC)
# Where the annotations of a dataclass are looked up.
sys.modules[PATH.stem] = what_helps
SPEC.loader.exec_module(what_helps)
PAGE = (ROOT / "docs/reference/what-helps.md").read_text(encoding="utf-8")


def test_the_page_has_every_remedy_for_every_sender_on_every_link() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == [link.title for link in what_helps.LINKS]
    for section in PAGE.split("\n## ")[1:]:
        rows = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
        assert rows == list(what_helps.REMEDIES)
    senders = list(what_helps.SENDERS.values())
    tables = re.findall(r"^\| \| (.+) \|$", PAGE, re.MULTILINE)
    assert [table.split(" | ") for table in tables] == [senders] * 5 + [senders[1:]] * 4
    referred, explained = (
        {*re.findall(pattern, PAGE, re.MULTILINE)} for pattern in (r"\| \[\^(\d+)\]", r"^\[\^(\d+)\]: ")
    )
    assert referred == explained


def test_the_points_of_papers_are_those_of_the_titles() -> None:
    ebsn, lhack, fec, *_ = (link.scenario() for link in what_helps.LINKS)
    assert ebsn["radio.channel.two-state.bad"] == 4.0
    assert lhack.packet_loss(500) == pytest.approx(0.013, abs=5e-4)
    assert fec["radio.channel.rayleigh-gilbert.fading_margin"] == 3.0
    assert fec["scheme.selective-fec.protect"] == "selective"


def test_a_remedy_is_compared_with_its_sender_alone() -> None:
    notes: dict[str, str] = {}
    found = dict(what_helps.gains(what_helps.LINKS[2], 2, notes))
    assert list(found) == list(what_helps.SENDERS)
    assert found[None]["arq"].gain == 1.0, "the link has one"
    assert str(found["linux-bbr"]["lhack"]) == "no effect"
    assert found["linux-bbr"]["packet-fec"].gain < 1
    assert notes == {}
