"""How often a last hop is recognised by its waits: `python -m lasthop.fitting.recognition_trial 200`.

Each record is of simulated probes over a random link of its kind: crowded Wi-Fi, dozing stations, and others.
The table shows how many have waits as of a crowded Wi-Fi, how many are taken for Wi-Fi without --wifi, and
how many have the beat of beacons and the steps of satellites.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lasthop._lasthop import links
from lasthop.fitting.waits import FEWEST, WORST_WAIT_S, Waits, waits_of
from lasthop.fitting.wifi import probe
from lasthop.measurement import Delays, Direction
from lasthop.measurement.model import Floats

Random = np.random.Generator
Record = Callable[[Random, int], Delays]

HOST_S = 1e-4
"""The mean time that hosts add to a round trip."""

DOWNLOAD: dict[str, Any] = {"transfer": {"size": "unlimited", "from": "fixed", "to": "mobile"}}
UPLOAD: dict[str, Any] = {"transfer": {"size": "unlimited", "from": "mobile", "to": "fixed"}}
PAGES: dict[str, Any] = {
    "application": {
        "pages": {"kind": "page", "from": "mobile", "to": "fixed", "think": {"exponential": "5 s"}}
    }
}


def _times(random: Random) -> tuple[float, int]:
    """Draw the time between probes, and their number."""
    apart_s = float(random.choice([0.02, 0.1, 0.2, 1.0]))
    return apart_s, 300 if apart_s == 1 else int(random.choice([300, 1000, 3000]))


def _delays(sent_s: Floats, rtt: Floats, random: Random) -> Delays:
    """Return round-trip times as ping prints them, with what hosts add."""
    seen = np.round(rtt + random.gamma(2, HOST_S / 2, len(rtt)), 5)
    return Delays(Direction.ROUND_TRIP, sent_s, seen)


def _simulated(tables: Mapping[str, Any]) -> Record:
    def record(random: Random, seed: int) -> Delays:
        return _delays(*probe({"wired": _wired(random), **tables}, *_times(random), seed), random)

    return record


def _wired(random: Random) -> dict[str, Any]:
    return {"rate": 1e9, "delay": float(random.choice([0.0, 0.0002, 0.004, 0.015]))}


def crowded(random: Random, seed: int, *, is_distant: bool = False) -> Delays:
    """Record probes over a crowded Wi-Fi: to the own router, or to a host 30 ms away."""
    wifi = {
        "preset": f"wifi-{random.choice(['n', 'ac', 'ax'])}-crowded",
        "neighbour": {"share": random.uniform(0.5, 0.9), "exchange": random.uniform(0.0015, 0.006)},
    }
    wired = {"rate": 1e9, "delay": 0.015 if is_distant else float(random.choice([0.0, 0.0002, 0.001]))}
    return _delays(*probe({"wired": wired, "wifi": wifi}, *_times(random), seed), random)


def dozing(random: Random, seed: int) -> Delays:
    """Record probes to a station that dozes, in air with neighbours."""
    save = {
        "timeout": float(random.choice([0.0, 0.02, 0.05])),
        "listen": int(random.choice([1, 1, 2, 3])),
        "delivery": str(random.choice(["beacon", "u-apsd"])),
    }
    neighbour = {"share": random.uniform(0.05, 0.6)}
    wifi = {"preset": "wifi-phone", "power_save": save, "neighbour": neighbour}
    apart_s, count = _times(random)
    probes = (max(apart_s, 0.1), count, seed)
    return _delays(*probe({"wired": _wired(random), "wifi": wifi}, *probes, from_server=True), random)


def _drawn(waits: Callable[[Random, int], Floats]) -> Record:
    def record(random: Random, seed: int) -> Delays:
        apart_s, count = _times(random)
        sent_s = apart_s * np.arange(count) + random.uniform(0, 1e-3, count)
        return _delays(sent_s, waits(random, count), random)

    return record


def _wired_waits(random: Random, count: int) -> Floats:
    """Return round-trip times over wires, with jitter, and with spikes of a few probes."""
    least = math.exp(random.uniform(math.log(0.0005), math.log(0.15)))
    jitter = random.gamma(2, math.exp(random.uniform(math.log(2e-5), math.log(1e-3))), count)
    spikes = (random.random(count) < random.uniform(0, 0.1)) * random.exponential(0.02, count)
    return least + jitter + spikes


def _grants(least_s: tuple[float, float], longest_s: tuple[float, ...], again_s: tuple[float, ...]) -> Record:
    """Return records of an uplink that waits for a grant, and repeats what is lost or collides."""

    def waits(random: Random, count: int) -> Floats:
        again = random.geometric(1 - random.uniform(0.02, 0.3), count) - 1
        granted = random.uniform(0, random.choice(longest_s), count)
        rtt: Floats = random.uniform(*least_s) + granted + random.choice(again_s) * again
        return rtt

    return _drawn(waits)


def _slow_router(random: Random, count: int) -> Floats:
    """Return round-trip times by cable to a router whose processor is busy for a share of the time."""
    is_busy = random.random(count) < random.uniform(0.2, 0.8)
    return random.uniform(0.0003, 0.001) + is_busy * random.exponential(random.uniform(0.002, 0.01), count)


def _video_call(random: Random, seed: int) -> Delays:
    """Record probes beside a call on the uplink of DSL, whose packets come at random times."""
    apart_s, count = _times(random)
    sent_s = apart_s * np.arange(count) + random.uniform(0, 1e-3, count)
    rate_bps, load = float(random.choice([1e6, 2e6, 5e6])), random.uniform(0.3, 0.7)
    packet_s = 8 * random.uniform(1000, 1400) / rate_bps
    arrived = np.cumsum(random.exponential(packet_s / load, int(1.1 * sent_s[-1] * load / packet_s) + 50))
    # Each packet leaves one transmission after it, or the packet before it, was there.
    behind = packet_s * np.arange(len(arrived))
    left = packet_s + behind + np.maximum.accumulate(arrived - behind)
    last = np.searchsorted(arrived, sent_s) - 1
    waits = np.where(last >= 0, np.maximum(left[np.maximum(last, 0)] - sent_s, 0), 0)
    return _delays(sent_s, random.uniform(0.005, 0.03) + waits, random)


def _jitter(random: Random, count: int) -> Floats:
    """Return round-trip times with independent lognormal jitter of milliseconds."""
    jitter = random.uniform(0.001, 0.01) * np.exp(random.normal(0, random.uniform(0.2, 1), count))
    return random.uniform(0.02, 0.1) + jitter


def _dsl(beside: Mapping[str, Any]) -> Record:
    def record(random: Random, seed: int) -> Delays:
        down = float(random.choice([6e6, 16e6, 50e6]))
        radio = {"rate": down, "delay": 0.006, "uplink": {"rate": down / 8}, "queue": "100 packets"}
        return _delays(
            *probe({"wired": _wired(random), "radio": radio, **beside}, *_times(random), seed), random
        )

    return record


PRESETS = [each.name for each in links() if each.table == "radio" and each.name != "nb-iot"]
"""The links that are not Wi-Fi; but for that on which a ping takes seconds."""

KINDS: dict[str, Record] = {
    "crowded Wi-Fi, own router": crowded,
    "crowded Wi-Fi, host 30 ms away": lambda random, seed: crowded(random, seed, is_distant=True),
    "dozing station": dozing,
    **{name: _simulated({"radio": {"preset": name}}) for name in PRESETS},
    "wires with jitter and spikes": _drawn(_wired_waits),
    "grants and HARQ, 15 to 80 ms": _grants((0.015, 0.08), (0.005, 0.01, 0.02, 0.04), (0.008,)),
    "grants and HARQ, 5 to 15 ms": _grants((0.005, 0.015), (0.002, 0.005, 0.01), (0.004, 0.008)),
    "DOCSIS: grants and collisions": _grants((0.005, 0.012), (0.002, 0.004), (0.004,)),
    "router by cable, slow to answer": _drawn(_slow_router),
    "independent jitter of milliseconds": _drawn(_jitter),
    "DSL": _dsl({}),
    "DSL, pages beside": _dsl(PAGES),
    "DSL, a video call beside": _video_call,
    "DSL, an upload beside": _dsl(UPLOAD),
    "lte, a download beside": _simulated({"radio": {"preset": "lte"}, **DOWNLOAD}),
}
"""Records by the kind of their link."""

OWN_NETWORK = ("crowded Wi-Fi, own router", "router by cable, slow to answer")
"""The kinds whose probes go to a private address."""


def waits_in(kind: str, number: int) -> Waits | None:
    """Return the waits of a record; None for too few probes, or a crowded Wi-Fi with short waits."""
    record = KINDS[kind](np.random.default_rng(number), number)
    if len(record.delay_s) < FEWEST:
        return None
    found = waits_of(record, 0.0, is_private=kind in OWN_NETWORK)
    return None if kind.startswith("crowded") and found.p95_s < WORST_WAIT_S else found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=100, help="records of each kind")
    parser.add_argument("--first", type=int, default=0, help="seed of the first record of each kind")
    arguments = parser.parse_args()
    print("| link | records | waits | taken for Wi-Fi | power save | satellite |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        numbers = range(arguments.first, arguments.first + arguments.records)
        found = [each for number in numbers if (each := waits_in(kind, number)) is not None]
        air = sum(each.of_air for each in found)
        taken = sum(each.is_wifi for each in found)
        beats = sum(each.beacon_s is not None for each in found)
        slots = sum(each.has_slots for each in found)
        print(f"| {kind} | {len(found)} | {air} | {taken} | {beats} | {slots} |", flush=True)


if __name__ == "__main__":
    main()
