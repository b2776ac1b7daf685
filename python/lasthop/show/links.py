"""Fitted links and advice as text and HTML."""

from __future__ import annotations

import itertools
from html import escape

from lasthop.advice import Advice
from lasthop.advice.wording import by_availability, effect_text, effects, further, other_uses
from lasthop.core import formats
from lasthop.fitting import FittedLink
from lasthop.fitting.losses import NAMES
from lasthop.show.html import table, unfold
from lasthop.show.notebook import html_of, text_of


@text_of.register
def _fitted_text(link: FittedLink) -> str:
    """Return the text that stands for a fitted link: its source, rate, round trip and losses."""
    losses = ", ".join(
        f"{each.lost:,} of {each.sent:,} packets lost {each.direction}"
        for each in (link.down, link.up)
        if each
    )
    known = [losses] if losses else [link.stated.words] if link.stated else []
    return f"<FittedLink{_files(link)}: {', '.join([_link(link), *known])}>"


@html_of.register
def _fitted_html(link: FittedLink) -> str:
    """Return a fitted link as HTML: its parameters with their intervals, and the scenario to unfold."""
    rows = [["rate", "unknown" if link.rate_bps is None else formats.rate(link.rate_bps), ""]]
    if link.up_rate_bps not in (None, link.rate_bps):
        rows.append(["rate of the uplink", formats.rate(link.up_rate_bps), ""])
    rows.append(["round trip", formats.seconds(link.rtt_s), ""])
    if link.stated is not None:
        rows.append([f"losses, {link.stated.source}", link.stated.words, ""])
    for losses in (link.down, link.up):
        if losses is None:
            continue
        rows.append([f"model of losses, {losses.direction}", losses.best.family, ""])
        for each in losses.parameters:
            interval = formats.interval(each.low, each.high, each.write)
            rows.append([f"{NAMES[each.name]}, {losses.direction}", each.write(each.value), interval])
    heads = ["", "", "95 % interval"] if any(row[2] for row in rows) else []
    foot = f"undetermined: {'; '.join(link.cannot_tell)}" if link.cannot_tell else ""
    html = table(f"<b>A link{escape(_files(link))}</b>", heads, rows, foot)
    if link.notes:
        html += unfold("notes", "\n".join(link.notes))
    return html if link.rate_bps is None else html + unfold("its scenario", link.toml())


@text_of.register
def _advice_text(advice: Advice) -> str:
    """Return the text that stands for advice: the link, and the verdict."""
    return f"<Advice for a link of {_link(advice.link)}: {advice.verdict()}>"


@html_of.register
def _advice_html(advice: Advice) -> str:
    """Return advice as HTML: the verdict, a row for each remedy, and what limits the link to unfold."""
    parts = []
    for judgement in advice.judgements:
        measure = judgement.measure
        rows = [
            [
                f"{each.title}, advised" if each.arm in {one.arm for one in advice.advised} else each.title,
                ", ".join(each.deployment.places)
                + ("" if each.deployment.available else ": not to be had today"),
                measure.write(each.value),
                "now" if each is judgement.now else measure.gain(each.gain, each.gain_low, each.gain_high),
                *further(judgement, each),
            ]
            for each in itertools.chain(*by_availability(judgement))
        ]
        limits = [
            [each.name, measure.write(each.value), measure.gain(each.gain, each.low, each.high)]
            for each in judgement.limits
        ]
        gains = [measure.heading, "gain (95 %)"]
        heads = ["remedy", "where", *gains, *(each.heading for each in judgement.further)]
        foot = f"simulated: {judgement.use.simulated}"
        if judgement is advice.first:
            foot = f"{_link(advice.link)}; {foot}; {advice.runs:,} runs"
            if advice.open_questions:
                unknown = "; ".join(advice.open_questions)
                foot += f"; undetermined: {unknown}; measure this: {advice.measure.irtt}"
        caption = f"<b>{escape(advice.verdict())}</b>" if judgement is advice.first else ""
        parts.append(table(caption, heads, rows, foot, words=2))
        without = table("", ["without", *gains], limits)
        parts.append(f"<details><summary>what limits {judgement.use.title}</summary>{without}</details>")
    if advice.effects:
        rows = [[title, *map(effect_text, cells)] for title, cells in effects(advice)]
        others = table("", ["remedy", *other_uses(advice)], rows)
        parts.append(f"<details><summary>what remedies do to other uses</summary>{others}</details>")
    return "".join(parts)


def _files(link: FittedLink) -> str:
    return f" fitted to {', '.join(link.files)}" if link.files else ""


def _link(link: FittedLink) -> str:
    """Return the rate and the round trip of a link."""
    rate = "unknown rate" if link.rate_bps is None else formats.rate(link.rate_bps)
    return f"{rate}, round trip {formats.seconds(link.rtt_s)}"
