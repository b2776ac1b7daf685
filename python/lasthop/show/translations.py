"""A link in the words of other emulators, with what is lost in translation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from lasthop._lasthop import Quantity
from lasthop.core import formats
from lasthop.fitting import GivenLink
from lasthop.fitting.given import LAST_HOP, SEEN_S, grants, stated

PACKET_BITS = 1500 * 8
"""The packet by whose transmission time a channel in time becomes one by packets."""


_BY_PACKETS = [
    "periods are counted in packets, as long as those in time if packets of 1500 B fill the link; with less "
    "traffic they last longer."
]


def netem(link: GivenLink) -> str:
    """Return `tc netem` lines for both directions of the last hop; comments state what is lost."""
    lines = [f"# {each}" for each in _lost(link)]
    for name, up in (("DOWN", False), ("UP", True)):
        rate_bps, delay_s = _rate(link, up=up), _delay(link, up=up)
        timing, jitter_s, notes_of_timing = _netem_timing(_reordering(link, up=up))
        # The limit of netem counts the packets that it delays, too.
        delayed = math.ceil(rate_bps * (delay_s + jitter_s) / PACKET_BITS)
        words, notes = _netem_loss(_channel(link, up=up), rate_bps)
        lines += [f"# {name.lower()}: {note}" for note in [*notes_of_timing, *notes]]
        lines.append(
            f"tc qdisc replace dev {name} root netem rate {rate_bps / 1e3:.0f}kbit "
            f"delay {1e3 * delay_s:.3f}ms{timing} limit {link.queue_packets + delayed}{words}"
        )
    return "\n".join(lines) + "\n"


def toxiproxy(link: GivenLink) -> str:
    """Return the toxics of Toxiproxy as a JSON document, with what is lost in `lost`."""
    toxics = []
    for stream, up in (("downstream", False), ("upstream", True)):
        delay_ms, rate_bps = 1e3 * _delay(link, up=up), _rate(link, up=up)
        reordering = _reordering(link, up=up) or {}
        latency = {"latency": max(round(delay_ms), 1), "jitter": round(1e3 * reordering.get("jitter", 0))}
        bandwidth = {"rate": max(round(rate_bps / 8e3), 1)}
        for kind, attributes in (("latency", latency), ("bandwidth", bandwidth)):
            named = {"name": f"{kind}_{stream}", "type": kind, "stream": stream}
            toxics.append({**named, "toxicity": 1.0, "attributes": attributes})
    lost = [
        *_lost(link),
        *_order_is_lost(link, jitter=False),
        "A proxy of byte streams loses no packets: all losses are left out, and the queue.",
        "Delays are whole milliseconds, rates whole kilobytes a second.",
    ]
    return json.dumps({"toxics": toxics, "lost": lost}, indent=2, ensure_ascii=False) + "\n"


def patchbay(link: GivenLink) -> str:
    """Return a topology of patchbay: a client and a server whose links send at the rates of the last hop.

    A device's link condition acts on what it sends, so that of the server is the downlink.
    """
    notes = [
        *_lost(link),
        *_order_is_lost(link, jitter=True),
        "Losses are independent here; bursts, and the queue, are left out.",
        "Latencies are whole milliseconds, rates whole kilobits a second.",
    ]
    lines = ["[[router]]", 'name = "operator"']
    for device, up in (("client", True), ("server", False)):
        rate_bps, delay_ms = _rate(link, up=up), 1e3 * _delay(link, up=up)
        loss = _mean_loss(_channel(link, up=up), rate_bps)
        if loss is None:
            notes.append(f"The losses {'up' if up else 'down'} are left out: their mean is not stated.")
        impaired = {"rate_kbit": f"{max(rate_bps / 1e3, 1):.0f}", "latency_ms": f"{delay_ms:.0f}"}
        if loss:
            impaired["loss_pct"] = f"{100 * loss:.6g}"
        lines += [
            "",
            f"[device.{device}.eth0]",
            'gateway = "operator"',
            f"impair = {{ {', '.join(f'{key} = {value}' for key, value in impaired.items())} }}",
        ]
    return "\n".join([*(f"# {note}" for note in notes), *lines]) + "\n"


FORMATS: Mapping[str, Callable[[GivenLink], str]] = {
    "netem": netem,
    "patchbay": patchbay,
    "toxiproxy": toxiproxy,
}
"""The writers, by the name of their format."""


def _lost(link: GivenLink) -> list[str]:
    """Return sentences about what no such emulator carries of a link."""
    found = []
    for name, up in (("down", False), ("up", True)):
        timing = link.given.link_timing(SEEN_S, LAST_HOP, up=up)
        if timing["rate_bps"].min() < timing["rate_bps"].max():
            mean = formats.rate(_rate(link, up=up))
            found.append(
                f"The rate {name} varies; its mean of {mean} is constant here. A Mahimahi trace varies."
            )
        granted = grants(link.given, up=up)
        if granted is not None:
            others = int(granted["neighbours"])
            found.append(
                f"The grants {name} are left out, with their waits and repetitions"
                + (f"; the rate is a share beside {others} others that always have data." if others else ".")
            )
        rate = stated(link.given, LAST_HOP, "rate", up=up)
        if isinstance(rate, Mapping) and "token-bucket" in rate:
            bucket = rate["token-bucket"]
            peak, overhead = formats.rate(float(bucket["peak"])), int(bucket["overhead"])
            found.append(
                f"The token bucket {name} is left out, its burst of {int(bucket['burst']):,} B at {peak}"
                + (f" and its overhead of {overhead} B" if overhead else "")
                + "; its rate is constant here. `tc qdisc add ... tbf` has bursts."
            )
        if timing["delay_s"].min() < timing["delay_s"].max():
            mean = formats.seconds(_delay(link, up=up))
            found.append(f"The delay {name} varies; its mean of {mean} is constant here.")
    return found


def _rate(link: GivenLink, *, up: bool) -> float:
    rate_bps = link.up_rate_bps if up else link.rate_bps
    # A given link states both.
    assert rate_bps is not None
    return rate_bps


def _reordering(link: GivenLink, *, up: bool) -> Mapping[str, Any] | None:
    """Return the keys of `delay.netem` of the last hop; None with another delay."""
    delay = stated(link.given, LAST_HOP, "delay", up=up)
    return delay.get("netem") if isinstance(delay, Mapping) else None


def _order_is_lost(link: GivenLink, *, jitter: bool) -> list[str]:
    """Return a sentence about the keys of `delay.netem` that are left out, with `jitter` that one, too."""
    found = [_reordering(link, up=up) or {} for up in (False, True)]
    left = [
        *(["jitter"] if jitter and any(each.get("jitter") for each in found) else []),
        *(["correlation"] if any(each.get("correlation") for each in found) else []),
        *(["reordering"] if any(each.get("reorder") for each in found) else []),
    ]
    return [f"Left out of the delay: {', '.join(left)}."] if left else []


def _netem_timing(keys: Mapping[str, Any] | None) -> tuple[str, float, list[str]]:
    """Return the words after the delay for jitter and reordering, the jitter, and what they lose."""
    if keys is None:
        return "", 0.0, []
    words, notes = "", []
    jitter_s = float(keys["jitter"])
    if jitter_s:
        words += f" {1e3 * jitter_s:.3f}ms"
        if not keys["in_order"]:
            notes.append("with a rate, netem keeps the order of packets despite the jitter.")
        if keys["correlation"]:
            words += f" {100 * keys['correlation']:.6g}%"
            notes.append("the correlation of delays that tc documents is not that of the kernel.")
    if keys["reorder"]:
        words += f" reorder {100 * keys['reorder']:.6g}%"
        words += f" {100 * keys['reorder_correlation']:.6g}%" if keys["reorder_correlation"] else ""
        words += f" gap {keys['gap']}"
        notes.append("what netem reorders skips its queue and its rate, too.")
    return words, jitter_s, notes


def _delay(link: GivenLink, *, up: bool) -> float:
    """Return the mean delay in time; of `delay.netem`, that of packets which do not skip it."""
    if keys := _reordering(link, up=up):
        return float(keys["delay"])
    return float(link.given.link_timing(SEEN_S, LAST_HOP, up=up)["delay_s"].mean())


def _channel(link: GivenLink, *, up: bool) -> object:
    key = "radio.uplink.channel" if up else "radio.channel"
    # A scenario is no mapping: it has no `get`.
    return link.given[key] if key in link.given else "perfect"  # noqa: SIM401


def _mean_loss(channel: object, rate_bps: float) -> float | None:
    """Return the share of packets that a channel loses; None for one without a mean in its keys."""
    words, _ = _netem_loss(channel, rate_bps)
    shares = [float(each.rstrip("%")) / 100 for each in words.split() if each.endswith("%")]
    if len(shares) == len(_GEMODEL):
        enter, leave, loss_bad, loss_good = shares
        return (enter * loss_bad + leave * loss_good) / (enter + leave)
    return shares[0] if shares else 0.0 if channel == "perfect" else None


def _netem_loss(channel: object, rate_bps: float) -> tuple[str, list[str]]:
    """Return the words of netem for a channel, and what they lose."""
    if channel == "perfect":
        return "", []
    if isinstance(channel, Mapping) and len(channel) == 1:
        ((kind, keys),) = channel.items()
        if kind == "frame-loss" and isinstance(keys, Mapping):
            return f" loss random {100 * keys['loss']:.6g}%", []
        if kind == "gilbert-elliott" and isinstance(keys, Mapping) and "good" in keys:
            return _gemodel(keys, rate_bps)
        if kind == "gilbert" and isinstance(keys, Mapping):
            return _gilbert(keys, rate_bps)
        if kind == "gilbert-elliott" and isinstance(keys, Mapping) and "p" in keys:
            return _gemodel_words(keys["p"], keys["r"], keys), []
    kind = next(iter(channel), "") if isinstance(channel, Mapping) else str(channel)
    return "", [f'the losses of channel "{kind}" are left out: netem has no such model.']


def _gilbert(keys: Mapping[str, Any], rate_bps: float) -> tuple[str, list[str]]:
    """Return a chain by packets of a loss and a mean burst, in packets or in time."""
    burst, loss = keys["burst"], keys["loss"]
    timed = isinstance(burst, Quantity) and burst.unit == "s"
    packets = _number(burst) * rate_bps / PACKET_BITS if timed else _number(burst)
    leave = min(1 / packets, 1.0)
    words = _gemodel_words(leave * loss / (1 - loss), leave, {"loss_bad": 1.0, "loss_good": 0.0})
    return words, _BY_PACKETS if timed else []


def _gemodel(keys: Mapping[str, Any], rate_bps: float) -> tuple[str, list[str]]:
    """Return a chain by packets with the periods of one in time for packets one after the other."""
    packet_s = PACKET_BITS / rate_bps
    enter, leave = (min(packet_s / _number(keys[name]), 1.0) for name in ("good", "bad"))
    return _gemodel_words(enter, leave, keys), _BY_PACKETS


_GEMODEL = ("p", "r", "1-h", "1-k")
"""The numbers of netem's `loss gemodel`."""


def _gemodel_words(enter: float, leave: float, keys: Mapping[str, Any]) -> str:
    shares = (enter, leave, keys["loss_bad"], keys["loss_good"])
    return f" loss gemodel {' '.join(f'{100 * each:.6g}%' for each in shares)}"


def _number(value: object) -> float:
    """Return a number, or that of a quantity in base units."""
    return float(value.amount) if isinstance(value, Quantity) else float(str(value))
