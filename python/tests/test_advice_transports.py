"""Advice for a server of TCP and one of QUIC at once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from conftest import ROOT, Command
from test_advice_uses import ARQ, BBR, BBR_FQ, FQ, SPLIT, judged

from lasthop.advice import SENDERS, STACK_SENDERS, USES, Advice, BothAdvice, advise
from lasthop.advice.judgement import Change, Effect
from lasthop.advice.uses import SHORT_TRANSFER
from lasthop.cli.commands.advise import _show_both
from lasthop.fitting import stated_link
from lasthop.race import Arm
from lasthop.show.advice_page import both_document


def test_what_helps_both_transports_is_worthwhile_for_each() -> None:
    """A split does nothing for QUIC, and BBR has a name of its own there. What harms one is left out."""
    quinn = {"linux": "quinn-cubic", "linux-bbr": "quinn-bbr"}

    def advice(sender: str, gains: dict[Arm, float]) -> Advice:
        found = judged("bulk", gains)
        if sender == "quinn-cubic":
            renamed = [
                replace(each, arm=replace(each.arm, sender=quinn[str(each.arm.sender)]))
                for each in found.remedies
            ]
            found = replace(found, remedies=tuple(renamed), now=renamed[0])
        link = stated_link(8e6, 0.06, loss=0.01)
        return Advice(link, sender, (found,), (), None, {}, link.measure, 0)

    tcp = advice("linux", {BBR: 3.0, SPLIT: 4.0, ARQ: 3.0, FQ: 1.3})
    both = BothAdvice(tcp, advice("quinn-cubic", {BBR: 4.0, SPLIT: 1.0, ARQ: 4.0, FQ: 1.0}))
    assert [pair.remedy.arm for pair in both.pairs] == [BBR, SPLIT, ARQ, FQ]
    assert [pair.remedy.arm for pair in both.pairs if pair.helps_both] == [BBR, ARQ]
    # A setting of servers is easier than a product on the path that gains as much.
    (first,) = both.advised
    assert [part.name for part in first.remedy.deployment.parts] == ["BBR"]
    assert both.verdict() == "Use BBR: TCP 3 times as fast (3 to 3); QUIC 4 times as fast (4 to 4)"
    both = BothAdvice(tcp, advice("quinn-cubic", {BBR: 0.7, SPLIT: 1.0, ARQ: 1.0, FQ: 1.0}))
    assert (both.advised, both.verdict()) == ([], "Nothing that was tried helps both.")


def test_harm_over_either_transport_is_told_beside_the_harmless_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """BBR harms calls over QUIC alone; with a queue for each flow it does not."""
    measure = USES["call"].measures[0]

    def effect(*, harms: bool) -> tuple[Effect, ...]:
        change = Change(measure, 4.2, 1.0 if harms else 4.2, 0.0, 0.0, 0.0, harms, helps=False)
        return (Effect(USES["call"], (change,)),)

    def advice(sender: str, bbr: str, *, harms: bool) -> Advice:
        arms = [Arm(bbr, "basic"), Arm(bbr, "basic", BBR_FQ.settings)]
        found = judged("bulk", {BBR: 3.0, BBR_FQ: 3.0, ARQ: 3.0})
        arm_of = {BBR: arms[0], BBR_FQ: arms[1]}
        renamed = [
            replace(each, arm=arm_of.get(each.arm, replace(each.arm, sender=sender)))
            for each in found.remedies
        ]
        found = replace(found, remedies=tuple(renamed), now=renamed[0])
        effects = dict(zip(arms, (effect(harms=harms), effect(harms=False)), strict=True))
        link = stated_link(8e6, 0.06, loss=0.01)
        return Advice(link, sender, (found,), (), None, effects, link.measure, 0)

    tcp = advice("linux", "linux-bbr", harms=False)
    both = BothAdvice(tcp, advice("quinn-cubic", "quinn-bbr", harms=True))
    _show_both(both)
    printed = capsys.readouterr().out
    assert "do this: BBR, " in printed
    assert 'harms calls over QUIC: call "good" (MOS 4.2) now, then "bad" (MOS 1.0)' in printed
    assert "over TCP: call" not in printed
    assert "without harm to other uses: BBR + FQ-CoDel, " in printed
    assert "Assumed: the uplink has the rate of the downlink." in printed
    assert both_document(both)["harmless"] == "BBR + FQ-CoDel"
    # What was not simulated is not said to be harmless.
    unknown = BothAdvice(replace(tcp, effects={BBR: tcp.effects[BBR]}), both.quic)
    assert unknown.harmless is None
    assert unknown.unknown_effects(unknown.pairs[1]) == ["TCP"]
    harmless = BothAdvice(tcp, advice("quinn-cubic", "quinn-bbr", harms=False))
    assert (harmless.harmless, harmless.harmed(harmless.advised[0])) == (None, [])


def test_downloads_over_quic_have_short_transfers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run without tcp.close, which QUIC does not have."""
    monkeypatch.setattr("lasthop.advice.remedies.arms", lambda sender: [Arm(sender, "basic")])
    link = stated_link(1e6, 0.06, loss=0.01)
    advice = advise(link, sender="quinn-cubic", runs=(8, 8), effects=False)
    assert advice.first.further[-1] == SHORT_TRANSFER
    assert 0.8 < advice.now.further[-1] < 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--transport", "sctp"], '--transport: there is no transport "sctp"; there are tcp, quic, any'),
        (["--transport", "any", "--sender", "quic"], "--sender"),
    ],
)
def test_transports_are_checked(command: Command, arguments: list[str], message: str) -> None:
    result = command("advise", "starlink", *arguments)
    assert result.returncode == 2
    assert message in result.stderr, result.stderr


def test_advice_for_both_transports_is_printed_and_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemes = ("basic", "arq", "snoop")
    monkeypatch.setattr(
        "lasthop.advice.remedies.arms", lambda sender: [Arm(sender, name) for name in schemes]
    )
    # As many runs as the document needs, not as the judgement.
    monkeypatch.setattr("lasthop.advice.advise", partial(advise, runs=(8, 8), effects=False))
    out = tmp_path / "advice"
    link = ["--loss", "2%", "--rate", "1Mbps", "--rtt", "200ms", "--transport", "any"]
    result = command("advise", *link, "--out", str(out), "--plan", str(tmp_path / "plan"), "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["tcp"]["sender"], found["quic"]["sender"]) == ("linux", "quinn-cubic")
    assert found["advised"] == ["arq"]
    assert {each.name for each in out.iterdir()} == {"tcp", "quic"}
    assert (tmp_path / "plan" / "README.txt").read_text().startswith("To install: arq")
    keys = (ROOT / "docs/reference/json.md").read_text().partition("## `lasthop advise --json`")[2]
    assert set(found) <= {*re.findall("`([a-z_0-9]+)`", keys.partition("\n## ")[0])}


def test_what_a_control_costs_others_does_not_depend_on_the_transport() -> None:
    """BBR of quinn leaves CUBIC of TCP less than BBR of Linux does."""
    assert STACK_SENDERS["quinn-bbr"].cost == SENDERS["linux-bbr"].cost
    assert STACK_SENDERS["quinn-bbr"].cost
    assert STACK_SENDERS["quinn-cubic"].cost is None
