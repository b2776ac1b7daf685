"""Advice as JSON and as one HTML page."""

from __future__ import annotations

import base64
import math
from typing import Any

from lasthop._lasthop import __version__
from lasthop.advice.advice import Advice, losses_in_words
from lasthop.advice.judgement import Effect, Judgement, Remedy
from lasthop.advice.transports import BothAdvice
from lasthop.advice.uses import SHORT_TRANSFER
from lasthop.advice.wording import (
    assumptions,
    by_availability,
    caution,
    changed,
    effects,
    further,
    other_uses,
    proposals,
    without_use,
)
from lasthop.core import formats
from lasthop.fitting import Assumption


def document(advice: Advice) -> dict[str, Any]:
    """Return the advice with the keys of docs/reference/json.md."""
    link = advice.link
    return {
        "lasthop": __version__,
        "verdict": advice.verdict(),
        "link": {
            "files": list(link.files),
            "rate_bps": link.rate_bps,
            "rtt_s": link.rtt_s,
            "last_hop_rtt_s": link.last_hop_rtt_s,
            "losses": losses_in_words(link),
            "cannot_tell": list(link.cannot_tell),
            "doubts": list(link.doubts),
            "notes": list(link.notes),
        },
        "sender": advice.sender,
        **_judgement(advice.first),
        "advised": [each.arm.label for each in advice.advised],
        "harmless": advice.harmless.arm.label if advice.harmless else None,
        "uses": [_judgement(each) for each in advice.judgements],
        "effects": [
            {"remedy": arm.label, **_effect(effect)}
            for arm, each in advice.effects.items()
            for effect in each
        ],
        "measure": advice.measure.irtt,
        "runs": advice.runs,
    }


def both_document(both: BothAdvice) -> dict[str, Any]:
    """Return the advice for TCP, for QUIC and for both, with the keys of docs/reference/json.md."""
    return {
        "lasthop": __version__,
        "verdict": both.verdict(),
        "advised": [pair.remedy.title for pair in both.advised],
        "harmless": both.harmless.remedy.title if both.harmless else None,
        "tcp": document(both.tcp),
        "quic": document(both.quic),
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    measure = judgement.measure
    is_rate = measure.metric == "throughput_bps"
    return {
        "use": judgement.use.name,
        "simulated": judgement.use.simulated,
        "metric": measure.metric,
        "gain_is": "ratio" if measure.min_difference is None else "difference",
        "value": _number(judgement.now.value),
        "throughput_bps": _number(judgement.now.value) if is_rate else None,
        "limits": [
            {
                "without": limit.name,
                "value": _number(limit.value),
                "throughput_bps": _number(limit.value) if is_rate else None,
                "ratio": _number(limit.gain) if measure.min_difference is None else None,
                "gain": _number(limit.gain),
                "low": _number(limit.low),
                "high": _number(limit.high),
            }
            for limit in judgement.limits
        ],
        "remedies": [_remedy(each, judgement) for each in judgement.remedies],
        "refused": [{"remedy": name, "reason": reason} for name, reason in judgement.refused],
    }


def _remedy(remedy: Remedy, judgement: Judgement) -> dict[str, Any]:
    deployment = remedy.deployment
    is_rate = judgement.measure.metric == "throughput_bps"
    both = zip(judgement.further, remedy.further, strict=True)
    further = {measure.metric: _number(value) for measure, value in both}
    rates = (remedy.value, remedy.low, remedy.high) if is_rate else (math.nan,) * 3
    return {
        "remedy": remedy.arm.label,
        "title": remedy.title,
        "sender": remedy.arm.sender,
        "scheme": remedy.arm.scheme,
        "settings": remedy.arm.texts,
        "value": _number(remedy.value),
        "value_low": _number(remedy.low),
        "value_high": _number(remedy.high),
        "throughput_bps": _number(rates[0]),
        "low_bps": _number(rates[1]),
        "high_bps": _number(rates[2]),
        "gain": _number(remedy.gain),
        "gain_low": _number(remedy.gain_low),
        "gain_high": _number(remedy.gain_high),
        "short_transfer_s": further.pop(SHORT_TRANSFER.metric, None),
        "further": further,
        "status": remedy.status,
        "worth": remedy.worth,
        "useless": remedy.useless,
        "why": remedy.why or None,
        "available": deployment.available,
        "effort": deployment.effort,
        "parts": [
            {
                "part": part.name,
                "place": part.place,
                "owner": part.steps.owner,
                "how": part.how,
                "commands": list(part.steps.commands),
                "note": part.steps.note or None,
                "cost": part.cost,
            }
            for part in deployment.parts
        ],
        "reads_tcp": deployment.reads_tcp,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "use": effect.use.name,
        "beside": effect.use.beside,
        "harms": effect.harms,
        "helps": effect.helps,
        "changes": [
            {
                "metric": each.measure.metric,
                "now": _number(each.now),
                "then": _number(each.then),
                "gain": _number(each.gain),
                "gain_low": _number(each.low),
                "gain_high": _number(each.high),
            }
            for each in effect.changes
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def html(advice: Advice, command: str) -> str:
    """Return the HTML page, which is self-contained."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lasthop.show", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    return environment.get_template("advice.html.jinja").render(
        advice=advice,
        link=advice.link,
        losses=losses_in_words(advice.link),
        notes=[note for note in advice.link.notes if not isinstance(note, Assumption)],
        assumptions=assumptions(advice),
        command=command,
        version=__version__,
        rate=formats.rate,
        seconds=formats.seconds,
        share=_share,
        further=further,
        changed=changed,
        caution=caution,
        proposals=list(proposals(advice.advised, advice.harmless)),
        by_availability=by_availability,
        other_uses=other_uses(advice),
        effects=list(effects(advice)),
        without_use=without_use,
        pictures=_pictures(advice),
        finite=math.isfinite,
        advised={each.arm for each in advice.advised},
    )


def _share(judgement: Judgement, link_bps: float | None, value: float) -> str:
    """Return the length of a bar, as a percentage of the longest."""
    measure = judgement.measure
    known = [end for each in judgement.remedies for end in (each.value, each.high) if math.isfinite(end)]
    most = max(known, default=0.0)
    if measure.metric == "throughput_bps":
        most = max(most, link_bps or 0.0)
    elif measure.better == "lower":
        # Capped, since the worst remedies would otherwise shrink all other bars.
        most = min(most, 2 * judgement.now.value)
    return f"{min(max(100 * value / most, 0.0), 100.0) if most > 0 and math.isfinite(value) else 100.0:.2f}"


def _pictures(advice: Advice) -> list[tuple[str, str]]:
    """Return the goodness-of-fit figures, each as a data URL and its alternative text."""
    from lasthop import plots

    found = []
    for losses in (advice.link.down, advice.link.up):
        if losses is not None and losses.checks:
            figure = plots.loss_checks(losses)
            data = base64.b64encode(figure._repr_png_()).decode()
            found.append((f"data:image/png;base64,{data}", figure.alternative()))
    return found
