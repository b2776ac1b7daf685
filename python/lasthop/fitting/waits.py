"""What the round-trip times of a link show of its last hop: waits as of Wi-Fi, a dozing station, a satellite.

On Wi-Fi a packet is seldom lost: it waits for the exchanges of others, each of milliseconds. The next probe
meets other exchanges. Packets of others on a slow uplink, and grants of a cellular or cable network, make
such waits, too, so they alone do not tell Wi-Fi. What is for a dozing station arrives behind a beacon, so
that replies keep its beat. Starlink assigns satellites anew every 15 s.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass

import numpy as np

from lasthop.core import formats
from lasthop.measurement import Delays, Direction, Measurement
from lasthop.measurement.model import Floats

FEWEST = 100
"""The fewest round-trip times from which anything is told."""

WORST_WAIT_S = 0.004
"""The 95th percentile of waits from which they matter."""

STATED_WAIT_S = 0.001
"""The same to a host nearby, over a link that is stated to be Wi-Fi: no other kind has to be ruled out."""

LONGEST_WAIT_S = 0.5
"""The longest 95th percentile of waits for the air; queues make longer ones."""

COMMON, STEADY = 0.25, 0.47
"""The least that the upper quartile, and the most that the median may be of the 95th percentile of waits.

Below the first only few probes wait, as for spikes; above the second all do, as in a queue.
"""

FLOOR, LOCAL_FLOOR = 0.018, 0.16
"""The most that the 5th percentile of waits may be of the 90th, to a distant host and to one nearby.

Air that is idle for a moment lets some probes pass at once. Uplinks of cellular networks never do: they wait
for a grant, whose times are spread evenly.
"""

LOCAL_RTT_S = 0.01
"""A host with a shorter round-trip time is nearby."""

ROUTER_RTT_S = 0.003
"""A host with a private address and a shorter round-trip time is on the own network."""

RETURNS, APART_S = 0.6, 0.1
"""How often, at least, a short wait follows a long one that much later, compared with chance.

What others send has passed by then, and a queue or a fade has not.
"""

MOST_LOST = 0.03
"""The largest share of probes lost: what the MAC repeats is seldom lost."""

BEACON_S = 0.1024
"""The interval of beacons: 100 time units of 1024 us, as access points have it."""

_CLOCKS = 2e-4
"""How far the clocks of two devices may differ: each within 100 parts in a million."""

_LATE_S = 0.01
"""Waits from which a reply may have waited for a beacon."""

_TOGETHER_S = 0.01
_FEWEST_LATE = 20
_COHERENT, _CHANCE = 0.6, 1e-9
"""Least length of the mean phase of late replies, and the largest probability that it is chance."""

SLOT_S = 15
"""Length of the slots after which Starlink assigns satellites anew, in seconds."""

_SHORTEST_RECORD_S, _STEP, _SHUFFLES = 150.0, 1.6, 400
"""Shortest record, and how much larger steps at ends of slots are than others; shuffles of the test."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits that round-trip times show, above the least of them.

    Attributes
    ----------
    rtt_s : Floats
        The round-trip times, in the order of sending.
    lost : float
        The share of probes lost.
    floor_s : float
        The least round-trip time.
    median_s, p95_s : float
        Median and 95th percentile of the waits.
    of_air : bool
        Whether they are those of a crowded Wi-Fi, which others may have, too.
    of_own_network : bool
        Whether the probes went no further than the own network.
    beacon_s : float or None
        The interval of beacons whose beat replies keep; None without such a beat.
    listen : int
        How many beacons a station may sleep through.
    has_slots : bool
        Whether the times change level every 15 s.
    """

    rtt_s: Floats
    lost: float
    floor_s: float
    median_s: float
    p95_s: float
    of_air: bool
    of_own_network: bool
    beacon_s: float | None
    listen: int
    has_slots: bool

    @property
    def excess_s(self) -> Floats:
        """The waits."""
        return self.rtt_s - self.floor_s

    @property
    def is_wifi(self) -> bool:
        """Whether they are strong evidence of Wi-Fi: the beat of beacons, or waits on the own network."""
        return self.beacon_s is not None or (self.of_air and self.of_own_network)

    @property
    def is_local(self) -> bool:
        """Whether the probes went to a host nearby."""
        return self.floor_s < LOCAL_RTT_S

    @property
    def signs(self) -> tuple[str, ...]:
        """What they show of the last hop, a sentence for each sign."""
        found = []
        if self.of_air:
            found.append(
                f"Waits: half of the probes wait {formats.seconds(self.median_s)} or more, one in twenty "
                f"{formats.seconds(self.p95_s)} or more, others not at all, each anew, as of a crowded "
                "Wi-Fi, a busy uplink or a radio with grants."
            )
        if self.beacon_s is not None:
            heard = "each beacon" if self.listen == 1 else f"one beacon in {self.listen}"
            found.append(
                f"Power save: late replies keep the beat of beacons, {1e3 * self.beacon_s:.1f} ms: a station "
                f"dozes. It wakes for {heard}."
            )
        if self.has_slots:
            found.append(
                f"Satellite: round-trip times change level every {SLOT_S} s, as Starlink's do; `lasthop "
                "links starlink` has its numbers."
            )
        return tuple(found)


def waits(measurements: tuple[Measurement, ...]) -> Waits | None:
    """Return the waits of the longest idle series of round-trip times, rather of Wi-Fi; None without any."""
    idle = [each for each in measurements if not any(rates.saturated for rates in each.rates)]
    found = [
        waits_of(
            delays,
            max(float(np.mean(probes.lost)) for probes in each.probes),
            is_private=_is_private(each.host),
        )
        for each in idle
        for delays in each.delays
        if delays.direction == Direction.ROUND_TRIP and len(delays.delay_s) >= FEWEST and each.probes
    ]
    return max(found, key=lambda each: (each.is_wifi, len(each.rtt_s)), default=None)


def _is_private(host: str | None) -> bool:
    """Whether a host is an address of a private network, or of the link."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return False
    return address.is_private and not address.is_loopback


def waits_of(delays: Delays, lost: float, *, is_private: bool = False) -> Waits:
    """Return the waits of a series of round-trip times.

    Parameters
    ----------
    delays : Delays
        The round-trip times.
    lost : float
        The share of the probes that was lost.
    is_private : bool, default False
        Whether the probes went to a private address.
    """
    rtt = delays.delay_s
    # The very least may be of a moment at which a host was faster than usual.
    floor = float(np.quantile(rtt, 0.002))
    excess = rtt - floor
    p5, median, p75, p90, p95 = (float(each) for each in np.quantile(excess, [0.05, 0.5, 0.75, 0.9, 0.95]))
    beacon = _beacon(delays, excess)
    listen = 1 if beacon is None else max(round(float(np.quantile(excess, 0.98)) / beacon), 1)
    is_sharp = p5 <= (LOCAL_FLOOR if floor < LOCAL_RTT_S else FLOOR) * p90
    of_air = (
        WORST_WAIT_S <= p95 <= LONGEST_WAIT_S
        and p75 >= COMMON * p95
        and median <= STEADY * p95
        and is_sharp
        and lost <= MOST_LOST
        and beacon is None
        and _returns(excess, delays) >= RETURNS
    )
    of_own_network = is_private and floor < ROUTER_RTT_S
    return Waits(rtt, lost, floor, median, p95, of_air, of_own_network, beacon, listen, _has_slots(delays))


def _returns(excess: Floats, delays: Delays) -> float:
    """Return how often a wait in the lowest third follows one in the highest, compared with chance."""
    interval = max(float(np.median(np.diff(delays.time_s))), 1e-4)
    later = max(round(APART_S / interval), 1)
    if len(excess) < 2 * later:
        return 0.0
    low, high = np.quantile(excess, [1 / 3, 2 / 3])
    is_long, is_short = excess[:-later] >= high, excess[later:] <= low
    if not np.any(is_long) or not np.any(is_short):
        return 0.0
    return float(np.mean(is_short[is_long]) / np.mean(excess <= low))


def _beacon(delays: Delays, excess: Floats) -> float | None:
    """Return the interval of beacons of which late replies have the phase; None if they have none.

    The phases of arrivals at multiples of the interval are compared with chance by Rayleigh's test, for each
    interval that two clocks may show; those of the probes themselves must be less alike.
    """
    late = excess >= _LATE_S
    sent = delays.time_s[late]
    arrived = sent + delays.delay_s[late]
    # Of replies that arrive together, one counts.
    order = np.argsort(arrived)
    alone = order[np.diff(arrived[order], prepend=-math.inf) > _TOGETHER_S]
    sent, arrived = sent[alone], arrived[alone]
    count = len(arrived)
    if count < max(_FEWEST_LATE, 0.05 * len(excess)):
        return None
    lasts = max(float(arrived[-1] - arrived[0]), BEACON_S)
    # From one interval to the next, the phase at the end moves by an eighth of a turn.
    steps = min(math.ceil(8 * lasts * _CLOCKS / BEACON_S), 2000)
    intervals = BEACON_S * (1 + _CLOCKS * np.arange(-steps, steps + 1) / max(steps, 1))
    lengths = np.array([_coherence(arrived, each) for each in intervals])
    best = int(np.argmax(lengths))
    length, interval = float(lengths[best]), float(intervals[best])
    by_chance = len(intervals) * math.exp(-count * length * length)
    if length < _COHERENT or by_chance > _CHANCE or _coherence(sent, interval) > 0.7 * length:
        return None
    return interval


def _coherence(times: Floats, interval: float) -> float:
    """Return the length of the mean phase of times in an interval, from 0 to 1."""
    return float(abs(np.mean(np.exp(2j * np.pi * times / interval))))


def _has_slots(delays: Delays) -> bool:
    """Whether the medians of seconds change more at one second of each slot than at the others, and for long.

    The largest mean change of the seconds of a slot is compared with that of the same changes shuffled, and
    with those that would be as large if the period were a third, a fifth or half of a slot.
    """
    if float(delays.time_s[-1] - delays.time_s[0]) < _SHORTEST_RECORD_S:
        return False
    seconds = np.floor(delays.time_s - delays.time_s[0]).astype(int)
    order = np.argsort(seconds, kind="stable")
    known, starts = np.unique(seconds[order], return_index=True)
    medians = np.array([np.median(part) for part in np.split(delays.delay_s[order], starts[1:])])
    follows = np.diff(known) == 1
    if follows.sum() < _SHORTEST_RECORD_S / 2:
        return False
    # Ranks, since single spikes would hide the steps.
    ranks = np.argsort(np.argsort(medians))
    changes = np.abs(np.diff(ranks))[follows].astype(float)
    phases = known[1:][follows] % SLOT_S
    folded = _folded(changes, phases)
    others = float(np.median(folded))
    if float(folded.max()) < _STEP * others:
        return False
    # Of the seconds of a slot, from the largest step on.
    turned = np.roll(folded, -int(folded.argmax()))
    rivals = (turned[3::3].mean(), turned[5::5].mean(), turned[7:9].max())
    if turned[0] < _STEP * max(rivals) or not _lasts(known, ranks, int(folded.argmax())):
        return False
    random = np.random.default_rng(1)
    shuffled = [float(_folded(random.permutation(changes), phases).max()) for _ in range(_SHUFFLES)]
    return float(folded.max()) > max(shuffled)


def _lasts(known: np.ndarray, ranks: np.ndarray, step: int) -> bool:
    """Whether levels differ more from slot to slot than between the halves of a slot."""
    level = np.full(int(known[-1]) + 1, np.nan)
    level[known] = ranks
    halves = [
        [
            np.nanmean(part) if np.isfinite(part).any() else np.nan
            for part in (level[at + 1 : at + 7], level[at + 8 : at + 14])
        ]
        for at in range(step, len(level) - SLOT_S, SLOT_S)
    ]
    first, second = np.array(halves).T
    between, within = np.abs(first[1:] - second[:-1]), np.abs(first - second)
    if np.isnan(between).all() or np.isnan(within).all():
        return False
    return bool(np.nanmean(between) >= _STEP * np.nanmean(within))


def _folded(changes: Floats, phases: np.ndarray) -> Floats:
    """Return the mean change at each second of a slot."""
    counts = np.bincount(phases, minlength=SLOT_S)
    return np.bincount(phases, weights=changes, minlength=SLOT_S) / np.maximum(counts, 1)
