"""Advice for what a link is for: pages, films, calls, shells, uploads; and what remedies do to other uses."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT, Command, prints

import lasthop
from lasthop import schemes
from lasthop._lasthop import gateway_settings
from lasthop.advice import (
    USES,
    Advice,
    Judgement,
    Measure,
    Remedy,
    advise,
    judge,
    plan,
    remedies,
    steps,
)
from lasthop.advice.advice import _arms_for_effects
from lasthop.advice.judge import _source
from lasthop.advice.selection import alternatives, ladder, ladder_for_all, without_harm
from lasthop.advice.trial import TrialResult, Truth, gain_of
from lasthop.advice.uses import mos, waiting
from lasthop.advice.wording import by_availability
from lasthop.core.paired_quantiles import Span
from lasthop.fitting import fit, stated_link
from lasthop.measurement import Delays, Direction, Measurement, Probes
from lasthop.race import Arm, Race, RaceError, Ranked
from lasthop.show.advice_page import document, html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Browser

FAIR: tuple[str, Any] = ("radio.queue", {"fq-codel": {}})

PAGE = (ROOT / "docs/guide/advise.md").read_text()


@pytest.fixture(scope="module")
def call() -> Advice:
    """Calls on a link without losses, whose queue a download fills."""
    return advise(stated_link(4e6, 0.06), "call", runs=(8, 8))


def remedy(advice: Advice, arm: Arm) -> Remedy:
    return next(each for each in advice.remedies if each.arm == arm)


def test_a_call_beside_a_download_needs_a_queue_of_its_own(call: Advice) -> None:
    assert call.now.value < 2
    assert [limit.name for limit in call.limits if limit.matters] == [
        "the download beside it",
        "most of the queue, with an eighth of it",
    ]
    fair = remedy(call, Arm("linux", "basic", (FAIR,)))
    assert fair.worth
    assert fair.value > 4
    assert call.advised[0] == fair
    assert fair.deployment.places == ("queue at the last hop",)
    # What changes nothing but the download is told to, and a server's setting is one of many servers.
    reno = remedy(call, Arm("linux-reno", "basic"))
    assert reno.deployment.places == ("every server of downloads",)
    assert reno.deployment.effort > fair.deployment.effort
    assert 'the call goes from "bad" (MOS 1.' in call.verdict()
    assert 'to "good" (MOS 4.' in call.verdict()
    alone = next(each for each in call.effects[fair.arm] if each.use.title == "calls alone")
    assert alone.changes[0].now > 4


@pytest.mark.usefixtures("few_remedies")
def test_what_does_not_help_a_call_has_its_reason() -> None:
    advice = advise(stated_link(8e6, 0.06, loss=0.02, burst="5"), "call", runs=(16, 16), effects=False)
    assert remedy(advice, Arm("linux", "arq")).why == "it does harm"
    assert remedy(advice, Arm("linux", "wenp")).why == "it changes the download, and calls are not TCP"
    assert remedy(advice, Arm("linux", "snoop")).why == "a faster download fills the queue"
    assert all(each.why == "" for each in advice.remedies if not each.useless)


@pytest.mark.usefixtures("few_remedies")
def test_an_arq_that_brings_a_film_harms_calls() -> None:
    advice = advise(stated_link(8e6, 0.06, loss=0.02, burst="5"), "video", runs=(8, 8))
    arq = remedy(advice, Arm("linux", "arq"))
    assert advice.first.measure.metric.endswith(("played_s", "mean_bitrate_bps"))
    assert arq.value > advice.now.value
    harmed = {effect.use.name for effect in advice.harmed(Arm("linux-bbr", "arq"))}
    assert "call" in harmed
    page = html(advice, "lasthop advise")
    assert "What remedies do to other uses" in page
    assert "— worse" in page


@pytest.mark.usefixtures("few_remedies")
def test_the_best_for_several_uses_harms_none() -> None:
    link = stated_link(8e6, 0.06, loss=0.02, burst="5")
    advice = advise(link, ["bulk", "call"], runs=(8, 8), effects=False)
    bulk, calls = advice.judgements
    assert bulk.advised[0].arm == Arm("linux-bbr", "basic")
    # An ARQ brings the most to downloads, and calls would be over.
    assert max(bulk.remedies, key=lambda each: each.gain).arm.scheme == "arq"
    chosen = advice.advised[0].arm
    assert "arq" not in chosen.scheme or FAIR in chosen.settings
    harmed = next(each for each in calls.remedies if each.arm == chosen)
    assert harmed.gain > -0.3
    assert len(advice.gains(chosen)) >= 1
    assert advice.verdict().startswith(f"Use {advice.advised[0].title}: ")
    assert [each["use"] for each in document(advice)["uses"]] == ["bulk", "call"]
    assert document(advice)["use"] == "bulk"


BBR, ARQ, SPLIT, FQ = (
    Arm("linux-bbr", "basic"),
    Arm("linux", "arq"),
    Arm("linux", "i-tcp"),
    Arm("linux", "basic", (FAIR,)),
)
BBR_FQ, WENP, NOW = Arm("linux-bbr", "basic", (FAIR,)), Arm("linux", "wenp"), Arm("linux", "basic")


def judged(use: str, gains: dict[Arm, float]) -> Judgement:
    """Return a judgement with exact gains, of which each worthwhile one is significant."""
    measure, source = USES[use].measures[0], _source(USES[use])

    def remedy_of(arm: Arm, gain: float) -> Remedy:
        deployed = remedies.deployment(arm, "linux", source)
        name = remedies.title(arm, "linux")
        worth = arm != NOW and gain >= measure.threshold
        return Remedy(arm, name, "", deployed, 1.0, 1.0, 1.0, gain, gain, gain, (), "", worth, useless=False)

    found = tuple(remedy_of(arm, gain) for arm, gain in ({NOW: measure.no_change} | gains).items())
    return Judgement(USES[use], measure, (), found[0], (), found, (), ())


def arms_of(found: list[Remedy]) -> list[Arm]:
    return [each.arm for each in found]


def test_of_several_uses_effort_gain_and_harm_decide() -> None:
    """A harmless combination of two settings is preferred to a box on the path that gains less."""
    web = judged("web", {BBR: 3.0, SPLIT: 1.3, FQ: 0.97, BBR_FQ: 3.0})
    calls = judged("call", {BBR: -0.4, SPLIT: 0.0, FQ: 0.1, BBR_FQ: 0.1})
    (found,) = ladder_for_all([web, calls])
    assert found.arm == BBR_FQ
    # Calls gain nothing of it, so it is the one server of the pages that changes.
    assert found.deployment.places == ("server", "queue at the last hop")
    # Where calls need the queue and pages the sender, each part has the effort of the use that needs it.
    calls = judged("call", {BBR: 3.0, SPLIT: 0.0, FQ: 3.1, BBR_FQ: 3.1})
    (found,) = ladder_for_all([calls, web])
    assert found.deployment.effort == remedies.SETTINGS
    # Where FQ-CoDel alone does not help calls, all servers of downloads must change.
    calls = judged("call", {BBR: 0.0, SPLIT: 0.0, FQ: 0.0, BBR_FQ: 3.1})
    found = ladder_for_all([calls, web])[-1]
    assert found.deployment.places[0] == "every server of downloads"


def test_what_harms_one_of_several_uses_is_not_chosen() -> None:
    bulk = judged("bulk", {BBR: 3.0, FQ: 1.2, ARQ: 1.1})
    assert arms_of(ladder_for_all([bulk, judged("call", {BBR: -0.4, FQ: 0.0, ARQ: 0.4})])) == [ARQ]
    assert arms_of(ladder_for_all([bulk, judged("call", {BBR: -0.4, FQ: 0.0, ARQ: -0.4})])) == [FQ]
    assert ladder_for_all([bulk, judged("call", {BBR: -0.4, FQ: -0.4, ARQ: -0.4})]) == []


def test_several_uses_have_remedies_for_more_effort() -> None:
    bulk = judged("bulk", {BBR: 1.5, SPLIT: 3.0, ARQ: 3.0})
    calls = judged("call", {BBR: 0.0, SPLIT: 0.0, ARQ: -0.2})
    assert arms_of(ladder_for_all([bulk, calls])) == [BBR, SPLIT]
    # What loses for one use what it gains for another is no rung.
    calls = judged("call", {BBR: 0.4, SPLIT: 0.0, ARQ: -0.2})
    assert arms_of(ladder_for_all([bulk, calls])) == [BBR]


def test_an_easy_setting_that_gains_little_is_left_out() -> None:
    web = judged("web", {BBR: 1.1, BBR_FQ: 3.0, ARQ: 9.0})
    assert arms_of(ladder(web.remedies, web.measure)) == [BBR_FQ, ARQ]
    web = judged("web", {BBR: 1.1, BBR_FQ: 1.2, ARQ: 9.0})
    assert arms_of(ladder(web.remedies, web.measure)) == [BBR, BBR_FQ, ARQ]


def test_what_no_product_has_is_not_advised() -> None:
    web = judged("web", {WENP: 9.0, BBR: 1.1})
    assert arms_of(ladder(web.remedies, web.measure)) == [BBR]
    (had, none) = by_availability(web)
    assert (arms_of(had), arms_of(none)) == ([NOW, BBR], [WENP])


def test_a_remedy_that_harms_no_other_use_is_shown_beside_one_that_does() -> None:
    calls = judged("call", {FQ: 3.2, BBR_FQ: 3.2, SPLIT: 2.0, ARQ: 3.1})
    first = calls.of(FQ)
    assert first is not None
    harms = {FQ: True, BBR_FQ: False, SPLIT: False, ARQ: None}
    found = without_harm(calls, first, harms.get)
    assert found is not None
    assert found.arm == BBR_FQ
    assert without_harm(calls, first, {FQ: False, BBR_FQ: False}.get) is None


def test_effects_are_first_of_what_may_replace_the_advice() -> None:
    """Those advised, the two easiest that gain about as much, then the best; none that no product has."""
    bulk = judged("bulk", {WENP: 3.0, ARQ: 2.52, BBR: 2.43, SPLIT: 2.4, BBR_FQ: 2.35, FQ: 1.2})
    first = bulk.of(BBR)
    assert first is not None
    assert arms_of(alternatives(bulk.remedies, first, bulk.measure)) == [BBR_FQ, ARQ, SPLIT]
    assert _arms_for_effects([bulk], [first]) == [BBR, BBR_FQ, ARQ, SPLIT, FQ]


@pytest.mark.parametrize("name", USES)
def test_each_use_runs_and_is_written(name: str) -> None:
    advice = advise(stated_link(4e6, 0.06, loss=0.02), name, runs=(4, 4), effects=False)
    assert math.isfinite(advice.now.value)
    assert advice.remedies[0].value == pytest.approx(
        (max if advice.first.measure.better == "higher" else min)(each.value for each in advice.remedies)
    )
    json.dumps(document(advice), allow_nan=False)
    page = html(advice, "lasthop advise")
    assert USES[name].simulated in page
    assert USES[name].title in advice._repr_html_()


@pytest.mark.usefixtures("few_remedies")
def test_a_film_is_judged_by_its_bitrate_where_nothing_waits() -> None:
    """At 3 Mb/s without losses playback begins soon, and no remedy can save a wait of 0.6 s."""
    advice = advise(stated_link(3e6, 0.02), "video", runs=(4, 4), effects=False)
    assert advice.first.measure.heading == "bitrate"
    assert advice.first.further[0].heading == "waiting"


@pytest.mark.usefixtures("few_remedies")
def test_uploads_lose_what_downloads_do_where_nothing_else_is_known() -> None:
    link = stated_link(4e6, 0.06, loss=0.05)
    advice = advise(link, "upload", runs=(8, 8), effects=False)
    clean = advise(stated_link(4e6, 0.06), "upload", runs=(8, 8), effects=False)
    assert advice.now.value < 0.7 * clean.now.value
    assert remedy(advice, Arm("linux-bbr", "basic")).deployment.places == ("device that uploads",)
    assert "Assumed: the uplink loses as many packets as the downlink." in html(advice, "lasthop advise")


def test_the_interval_of_a_difference_holds_the_draws() -> None:
    """Of a measured link, the interval of a gain is where that of the next draw lies."""
    random = np.random.default_rng(5)
    measure = USES["call"].measures[0]
    theirs = random.normal(2.0, 0.2, 32)
    ours = theirs + random.normal(1.0, 0.3, 32)
    low, high = judge._spread(ours, theirs, 32, measure)
    # Student's t with 31 degrees of freedom, for one more value.
    gains = ours - theirs
    half = 2.0395 * gains.std(ddof=1) * math.sqrt(1 + 1 / 32)
    assert low == pytest.approx(gains.mean() - half, rel=1e-3)
    assert high == pytest.approx(gains.mean() + half, rel=1e-3)
    assert judge._spread(ours[:8], theirs[:8], 32, measure) == (-math.inf, math.inf)
    # Of times that are shorter the ratio is of theirs to ours.
    page = USES["web"].measures[0]
    low, high = judge._spread(theirs, 2 * theirs, 32, page)
    assert low == pytest.approx(2.0)
    assert high == pytest.approx(2.0)


@pytest.mark.usefixtures("few_remedies")
def test_a_fitted_link_carries_its_uncertainty_into_a_call() -> None:
    times = np.arange(0, 120.0, 0.02)
    lost = np.random.default_rng(2).random(len(times)) < 0.02
    delays = (Delays(Direction.ROUND_TRIP, times, np.full(len(times), 0.06)),)
    probes = (Probes(Direction.DOWN, times, lost, None),)
    link = fit(
        Measurement("irtt.json", "irtt", 120.0, probes=probes, delays=delays), rate_bps=4e6, replicates=20
    )
    advice = advise(link, "call", runs=(32, 32), effects=False)
    fair = remedy(advice, Arm("linux", "basic", (FAIR,)))
    assert fair.gain_low < fair.gain < fair.gain_high


@pytest.mark.usefixtures("few_remedies")
def test_a_fitted_link_carries_its_uncertainty_into_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The uplink, which carries the data, has the losses attributed to the downlink, in every draw."""
    drawn: list[list[dict[str, Any]]] = []

    class Recorded(Race):
        def __init__(self, *arguments: Any, variants: list[dict[str, Any]], **settings: Any) -> None:
            drawn.append(variants)
            super().__init__(*arguments, variants=variants, **settings)

    monkeypatch.setattr(judge, "Race", Recorded)
    lost = np.random.default_rng(2).random(3000) < 0.02
    probes = (Probes(Direction.ROUND_TRIP, np.arange(0, 60.0, 0.02), lost, None),)
    measured = Measurement("irtt.json", "irtt", 60.0, probes=probes)
    link = fit(measured, rate_bps=4e6, rtt_s=0.06, replicates=20)
    advise(link, "upload", runs=(2, 2), effects=False)
    assert drawn
    for variants in drawn:
        assert {len(settings) for settings in variants} == {2}
        assert all(settings["radio.channel"] == settings["radio.uplink.channel"] for settings in variants)
        assert len({str(settings["radio.channel"]) for settings in variants}) > 10


def test_gains_are_in_the_users_words() -> None:
    assert [mos(value) for value in (1.0, 2.13, 3.6, 4.4)] == [
        '"bad" (MOS 1.0)',
        '"poor" (MOS 2.1)',
        '"fair" (MOS 3.6)',
        '"good" (MOS 4.4)',
    ]
    assert [waiting(value) for value in (48.0, 60.0, 59.5)] == ["12 s", "0 s", "500 ms"]
    web, calls = USES["web"].measures[0], USES["call"].measures[0]
    assert web.sentence(3.4, 2.1, 1.62, 1.5, 1.8) == (
        "pages open in 2.1 s instead of 3.4 s, 1.62 times as fast (1.5 to 1.8)"
    )
    assert calls.sentence(2.1, 3.6, 1.5, 1.3, 1.7) == (
        'the call goes from "poor" (MOS 2.1) to "fair" (MOS 3.6), +1.5 (+1.3 to +1.7)'
    )
    assert (web.no_change, web.threshold, round(web.negligible, 9)) == (1.0, 1.05, 1.02)
    assert (calls.no_change, calls.threshold, round(calls.negligible, 9)) == (0.0, 0.3, 0.12)
    assert not calls.tolerable(-0.3)
    assert calls.tolerable(-0.29)
    assert not web.tolerable(0.95)


def test_a_ratio_of_times_is_how_much_faster() -> None:
    ranked = Ranked(
        arm=Arm(None, "arq"),
        rank=1,
        status="best",
        baseline=False,
        metric="x",
        runs=8,
        missing=0,
        unfinished=0,
        mean=Span(1.0, 0.9, 1.1),
        quantile=None,
        ratio=Span(0.5, 0.4, 0.8),
        difference=Span(-3.0, -4.0, -1.0),
        p_value=0.01,
        stopped_early=False,
    )
    race: Any = None
    assert judge._gain(race, ranked, USES["web"].measures[0]) == (2.0, 1.25, 2.5)
    assert judge._gain(race, ranked, Measure("x", "x", "lower", str, min_difference=1.0)) == (3.0, 1.0, 4.0)


def test_what_is_tried_comes_from_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    known = lasthop.schemes()
    new: Any = SimpleNamespace(
        name="new-scheme",
        summary="does something",
        place="base station",
        cost="bandwidth",
        products="a product",
        owner="yours",
        commands=["product --size {k}"],
        note="",
        reads_tcp=False,
        needs_quic=False,
        variants=[{"k": "10"}],
        source="a paper",
    )
    monkeypatch.setattr(remedies, "schemes", lambda: [*known, new])
    arms = remedies.arms("linux")
    setting = ("scheme.new-scheme.k", "10")
    for arm, title, effort in (
        (Arm("linux", "new-scheme", (setting,)), "new-scheme", 4),
        (Arm("linux-bbr", "new-scheme", (setting,)), "BBR + new-scheme", 5),
        (Arm("linux", "new-scheme", (setting, FAIR)), "new-scheme + FQ-CoDel", 6),
    ):
        assert arm in arms
        assert remedies.title(arm, "linux") == title
        assert remedies.deployment(arm, "linux").effort == effort
        assert not remedies.changes_only_tcp(arm)
        lines = [part.steps.commands for part in remedies.deployment(arm, "linux").parts]
        assert ("product --size 10",) in lines
    products = [name for name, each in remedies.deployable().items() if each.products]
    assert {arm.scheme for arm in arms if FAIR in arm.settings} == {"basic", *products}
    # What acts on QUIC alone is tried for its senders alone.
    tried = {sender: {arm.scheme for arm in remedies.arms(sender)} for sender in ("linux", "quinn-cubic")}
    assert "pemi" in tried["quinn-cubic"] - tried["linux"]


def test_every_remedy_to_be_had_has_its_steps() -> None:
    rates = remedies.LinkRates(4e6, 1e6)
    for arm in remedies.arms("linux"):
        for part in remedies.deployment(arm, "linux", rates=rates).parts:
            built = part.effort == remedies.BUILD
            assert bool(part.steps.commands) == (part.available and not built), part
            assert part.steps.owner
            assert part.how
    fair = remedies.deployment(FQ, "linux", rates=rates).parts[0].steps.commands
    assert "tc qdisc replace dev WAN root cake bandwidth 950kbit" in fair
    assert "tc class replace dev ifb0 parent 1: classid 1:1 htb rate 3800kbit" in fair
    bbr = remedies.deployment(BBR, "linux").parts[0].steps.commands
    assert "sysctl -w net.ipv4.tcp_congestion_control=bbr" in bbr


@pytest.mark.skipif(shutil.which("tc") is None, reason="needs tc")
@pytest.mark.parametrize("discipline", remedies.DISCIPLINES)
def test_the_shaper_lines_are_those_of_tc(discipline: str) -> None:
    """In a network namespace of its own, where an interface stands for the one towards the link."""
    found = steps.of_queue(discipline, 4e6, 1e6)
    in_network([each.replace("WAN", "wan") for each in found.commands])
    # Twice, as after a change of the rates.
    script = found.files[steps.SHAPER]
    in_network([script, script], "wan")


def test_the_shaper_asks_for_rates_that_are_not_known(tmp_path: Path) -> None:
    script = steps.of_queue("fq-codel", None, 1e6).files[steps.SHAPER]
    for name in ("ip", "tc"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@"\n', encoding="utf-8")
        program.chmod(0o755)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = ["/bin/sh", "-c", script, "sh", *arguments]
        return subprocess.run(line, capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False)

    assert "expected the rate down" in run("wan").stderr
    calls = run("wan", "3800kbit").stdout
    assert "tc class replace dev wan parent 1: classid 1:1 htb rate 950kbit" in calls
    assert "tc class replace dev ifb0 parent 1: classid 1:1 htb rate 3800kbit" in calls


def in_network(lines: Sequence[str], *arguments: str) -> None:
    """Run a script in a network namespace that has an interface called wan."""
    before = ["set -e", "ip link add wan type dummy", "ip link set wan up"]
    result = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--net", "sh", "-c"),
            *("\n".join([*before, *lines, "tc qdisc show"]), "sh", *arguments),
        ],
        capture_output=True,
        text=True,
    )
    if "Operation not permitted" in result.stderr or "Unknown device type" in result.stderr:
        pytest.skip("network namespaces or interfaces of this kind are not to be had here")
    assert result.returncode == 0, result.stderr


def test_plans_are_what_their_programs_read(tmp_path: Path) -> None:
    splits = [arm for arm in remedies.arms("linux") if arm.scheme == "i-tcp" and FAIR not in arm.settings]
    # With BBR at the server, the part over the radio has it anyway.
    plain, over_the_radio, split = splits
    assert [remedies.title(arm, "linux") for arm in splits[:2]] == ["i-tcp", "i-tcp congestion=bbr"]
    for arm, control in ((SPLIT, "cubic"), (plain, "cubic"), (over_the_radio, "bbr"), (split, "bbr")):
        files = plan(planned(arm))
        path = tmp_path / "gateway.toml"
        path.write_text(files["gateway.toml"], encoding="utf-8")
        settings = gateway_settings(path)
        assert settings is not None
        # The wireless part has the congestion control that was simulated.
        assert f'congestion = "{control}"' in settings
        assert "unhelped = 0.1" in settings
        assert "state your own names in place of those in capitals" in files["README.txt"]
        assert "lasthop gateway run gateway.toml" in files["README.txt"]
        assert "END" not in files["README.txt"]
    assert plan(planned(split))["90-congestion-control.conf"] == "net.ipv4.tcp_congestion_control = bbr\n"
    queued = plan(planned(FQ))
    assert "sh shaper.sh WAN" in queued["README.txt"]
    assert "UP_RATE" not in queued["README.txt"]
    unknown = planned(FQ, None, None)
    assert "sh shaper.sh WAN UP_RATE DOWN_RATE" in plan(unknown)["README.txt"]
    assert "cake" not in queued["shaper.sh"]
    assert "iw phy PHY set retry" in plan(planned(ARQ))["README.txt"]
    code = next(arm for arm in remedies.arms("linux") if arm.scheme == "packet-fec")
    tunnel = plan(planned(code))["gateway.toml"]
    for name, own in (("PEER", "192.0.2.1"), ("NETWORK", "0.0.0.0/0"), ("RATE", "20 Mbps")):
        assert name in tunnel
        tunnel = tunnel.replace(name, own)
    path.write_text(tunnel, encoding="utf-8")
    assert 'rate = "20 Mbps"' in str(gateway_settings(path))
    assert list(plan(None)) == ["README.txt"]


def planned(arm: Arm, down_bps: float | None = 4e6, up_bps: float | None = 1e6) -> Any:
    rates = remedies.LinkRates(down_bps, up_bps)
    return SimpleNamespace(title=arm.label, deployment=remedies.deployment(arm, "linux", rates=rates))


def test_the_page_fits_a_telephone(call: Advice, browser: Browser, tmp_path: Path) -> None:
    """At 390 px nothing scrolls sideways, also with all rows opened, and no row is empty."""
    path = tmp_path / "advice.html"
    path.write_text(html(call, "lasthop advise"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide = (
        "[...document.querySelectorAll('html, .wide, table, pre')].filter(e => e.scrollWidth > e.clientWidth)"
    )
    assert page.evaluate(f"{wide}.map(each => each.outerHTML.slice(0, 80))") == []
    empty = "[...document.querySelectorAll('tr, td')].filter(e => e.offsetHeight && !e.innerText.trim())"
    assert page.evaluate(f"{empty}.filter(each => !each.querySelector('.bar')).length") == 0
    assert "tc qdisc replace dev WAN" in page.locator("details").first.inner_text()
    page.close()


def test_uses_that_do_not_exist_or_are_impossible_are_refused(command: Command) -> None:
    with pytest.raises(ValueError, match='there is no use "cal"; did you mean "call"'):
        advise(stated_link(8e6, 0.06), "cal")
    result = command("advise", "--loss", "1%", "--rate", "8Mbps", "--rtt", "60ms", "--for", "vidoe")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == 'error: --for: there is no use "vidoe"; did you mean "video"?\n'
    times = np.linspace(0, 20, 1000)
    dead = (Probes(Direction.DOWN, times, np.ones(1000, bool), None),)
    link = fit(Measurement("dead.csv", "csv", 20.0, probes=dead), rate_bps=2e6, replicates=10)
    with pytest.raises(RaceError, match="pages: over this link none is possible, with any remedy"):
        advise(link, "web", runs=(2, 2))


@pytest.mark.campaign
def test_the_page_shows_what_the_command_prints(command: Command) -> None:
    section = PAGE.partition("## Uses")[2].partition("\n## ")[0]
    (shown,) = re.findall(r"```text\n\$ (lasthop .*?)```", section, re.DOTALL)
    line, _, printed = shown.partition("\n")
    assert "--for call" in line
    result = command(*line.split()[1:])
    assert result.returncode == 0, result.stderr
    assert prints(result.stdout, printed), result.stdout


def test_the_losses_by_rate_are_those_of_the_report() -> None:
    report = (ROOT / "docs/reports/2026-11-starlink-cubic-and-bbr.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", report, re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(code, "report", "exec"), found)
    (losses,) = re.findall(r"^\| lost here \(`losses`\) \|(.*)\|$", report, re.MULTILINE)
    assert [each.strip().replace(" ", "") for each in losses.split("|")] == found["losses"]
    rates = re.findall(r"^\| (?:CUBIC|Reno|BBR)[^|]*\| ([\d.]+ Mb/s) \|", report, re.MULTILINE)
    assert rates == found["rates"]


def test_a_trial_judges_by_the_measure_of_its_use() -> None:
    """Of ratios, 5 % may be missing; of differences, what is worthwhile. An unknown value is no gain."""
    (page,), (call,) = USES["web"].measures, USES["call"].measures
    assert gain_of(page, 4.0, 2.0) == 2.0
    assert gain_of(USES["bulk"].measures[0], 4.0, 2.0) == 0.5
    assert gain_of(call, 2.0, 4.0) == 2.0
    assert (gain_of(page, 4.0, math.nan), gain_of(call, math.nan, 4.0)) == (1.0, 0.0)
    truth = Truth.draw(np.random.default_rng(1))
    for measure, most in ((page, 0.05), (call, 0.3)):
        right = [TrialResult(truth, measure, "a", "b", by, 1.0, 1.0, 1.0).right for by in (most, 1.01 * most)]
        assert right == [True, False]


def test_commands_of_products_have_the_settings_of_their_variant() -> None:
    coders = 0
    for scheme in (each for each in schemes() if each.products is not None):
        for settings in scheme.variants:
            found = steps.of_scheme(scheme, settings, "bbr")
            assert found.owner
            texts = (found.owner, *found.commands, found.note, *found.files.values())
            assert not re.search(r"(?<!\$)\{", "".join(texts))
            if {"k", "n"} <= settings.keys():
                coders += 1
                written = tomllib.loads(found.files["gateway.toml"])["scheme"]["packet-fec"]
                assert {key: str(value) for key, value in written.items()} == dict(settings)
    assert coders == 3
