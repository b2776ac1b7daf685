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
        rows = re.findall(r"^\| `(.+?)` \| (.+?) \|", section, re.MULTILINE)
        assert rows == [(row.scheme, row.over) for row in what_helps.ROWS]
    senders = list(what_helps.SENDERS.values())
    tables = re.findall(r"^\| \| over \| (.+) \|$", PAGE, re.MULTILINE)
    assert [table.split(" | ") for table in tables] == [senders] * 9
    referred, explained = (
        {*re.findall(pattern, PAGE, re.MULTILINE)} for pattern in (r"\[\^(\d+)\](?!:)", r"^\[\^(\d+)\]: ")
    )
    assert referred == explained


def test_what_acts_on_an_arq_is_compared_with_it() -> None:
    overs = {remedy: [row.over for row in what_helps.rows(remedy)] for remedy in what_helps.REMEDIES}
    assert overs.pop("arq") == ["nothing"]
    assert overs.pop("selective-fec") == ["nothing", "`arq`", "`arq`, all coded"]
    assert set(map(tuple, overs.values())) == {("nothing", "`arq`")}
    own = what_helps.with_tcp_of(what_helps.LINKS[6].scenario(), what_helps.LINKS[0].scenario())
    assert own.sender is None
    assert own.text("tcp.window") == "4096 B"
    assert own["radio.rate.lognormal.mean"] == 1.586e6


def test_the_points_of_papers_are_those_of_the_titles() -> None:
    ebsn, lhack, fec, *_ = (link.scenario() for link in what_helps.LINKS)
    assert ebsn["radio.channel.two-state.bad"] == 4.0
    assert lhack.packet_loss(500) == pytest.approx(0.013, abs=5e-4)
    assert fec["radio.channel.rayleigh-gilbert.fading_margin"] == 3.0
    assert fec["scheme.selective-fec.protect"] == "selective"


def test_a_remedy_is_compared_with_its_sender_alone_and_with_the_arq() -> None:
    notes = what_helps.Notes()
    found = dict(what_helps.gains(what_helps.LINKS[2], 2, notes))
    assert list(found) == list(what_helps.SENDERS)
    cells = {
        sender: {(row.remedy, row.over): cell for row, cell in column.items()}
        for sender, column in found.items()
    }
    assert cells[None]["arq", "nothing"].gain == 1.0, "the link has one"
    lhack = [str(cells["linux-bbr"]["lhack", over]) for over in ("nothing", "`arq`")]
    assert lhack == ["no effect[^1]"] * 2
    assert list(notes.values()) == ["1"]
    assert cells["linux-bbr"]["packet-fec", "nothing"].gain < 1
    fec = [cells[None]["selective-fec", over].gain for over in ("nothing", "`arq`", "`arq`, all coded")]
    assert fec[0] == fec[1] != fec[2], "the link has the ARQ and the code"
