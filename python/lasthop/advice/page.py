"""Advice as JSON and as one HTML page."""

from __future__ import annotations

import base64
import math
from typing import Any

from lasthop import __version__
from lasthop.advice.advice import Advice, Remedy, gain, losses_in_words
from lasthop.fitting import text


def document(advice: Advice) -> dict[str, Any]:
    """Return the advice with the keys of docs/json.md."""
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
            "notes": list(link.notes),
        },
        "sender": advice.sender,
        "throughput_bps": advice.now.throughput_bps,
        "limits": [
            {
                "without": limit.name,
                "throughput_bps": limit.throughput_bps,
                "ratio": _number(limit.ratio),
                "low": _number(limit.low),
                "high": _number(limit.high),
            }
            for limit in advice.limits
        ],
        "advised": [each.arm.label for each in advice.advised],
        "remedies": [_remedy(each) for each in advice.remedies],
        "refused": [{"remedy": name, "reason": reason} for name, reason in advice.refused],
        "measure": advice.measure.irtt,
        "runs": advice.runs,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    deployment = remedy.deployment
    return {
        "remedy": remedy.arm.label,
        "sender": remedy.arm.sender,
        "scheme": remedy.arm.scheme,
        "throughput_bps": _number(remedy.throughput_bps),
        "low_bps": _number(remedy.low_bps),
        "high_bps": _number(remedy.high_bps),
        "gain": _number(remedy.gain),
        "gain_low": _number(remedy.gain_low),
        "gain_high": _number(remedy.gain_high),
        "short_transfer_s": _number(remedy.short_s),
        "status": remedy.status,
        "places": list(deployment.places),
        "how": list(deployment.how),
        "costs": list(deployment.costs),
        "reads_tcp": deployment.reads_tcp,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def html(advice: Advice, command: str) -> str:
    """Return the page. It needs no other file and no network."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lasthop.advice", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    highest = (each.high_bps for each in advice.remedies if math.isfinite(each.high_bps))
    most = max([advice.link.rate_bps or 0.0, *highest])
    return environment.get_template("page.html.jinja").render(
        advice=advice,
        link=advice.link,
        losses=losses_in_words(advice.link),
        gain=gain,
        command=command,
        version=__version__,
        rate=text.rate,
        seconds=text.seconds,
        share=lambda value: f"{min(max(100 * value / most, 0.0), 100.0) if most > 0 else 0.0:.2f}",
        pictures=_pictures(advice),
        finite=math.isfinite,
    )


def _pictures(advice: Advice) -> list[tuple[str, str]]:
    """Return the figures of the checks, as the addresses of their data and what they show."""
    from lasthop import plots

    found = []
    for losses in (advice.link.down, advice.link.up):
        if losses is not None and losses.checks:
            figure = plots.loss_checks(losses)
            data = base64.b64encode(figure._repr_png_()).decode()
            found.append((f"data:image/png;base64,{data}", figure.alternative()))
    return found
