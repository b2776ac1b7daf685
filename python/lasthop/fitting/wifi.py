"""A crowded Wi-Fi, or a station that dozes, fitted to round-trip times by simulations of the cell itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from lasthop.core import formats
from lasthop.fitting.given import SERVER_RTT_S, GivenLink, download, goodput
from lasthop.fitting.link import FEWEST_QUEUED, QUEUE_S, Assumption, FittedLink, StatedLosses
from lasthop.fitting.scenario import FASTEST_WIRED_BPS, PERFECT, Tables
from lasthop.fitting.waits import STATED_WAIT_S, WORST_WAIT_S, Waits
from lasthop.measurement.model import Floats

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The shares of the air that neighbours may have."""

EXCHANGES_S = (0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.007, 0.01)
"""The lengths of their exchanges."""

ACCESS_S = 110.5e-6
"""What precedes an exchange: AIFS of best effort, 43 us, and a mean backoff of 7.5 slots of 9 us.

In air that is all theirs, neighbours have the share that it leaves, and no larger one can be asked for.
"""

PROBES, APART_S = 600, 0.1
"""Probes of each simulation, and the time between them."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
"""The quantiles of waits that are compared."""

RESOLUTION_S = 0.0003
"""Waits that differ by less are alike: hosts add as much."""

ALSO = 0.06
"""Neighbours are possible, too, if their quantiles differ by at most this much more than the best ones'."""

FARTHEST = 0.27
"""How far quantiles may be from those beside the nearest neighbours, if neighbours are to explain the waits.

Of a thousand records of crowded Wi-Fi by `lasthop.fitting.recognition_trial`, 99 % are within 0.259 to the
own router, and within 0.267 to a host 30 ms away.
"""

DRAWS = 8
"""The most neighbours from which advice draws."""

SLOW_BPS = 1e8
"""The rate below which a Wi-Fi is taken for 802.11n at 20 MHz, and from which on for 802.11ac at 80 MHz."""

SIGNALS_DB = (2.0, 45.0)
"""Signal-to-noise ratios from which that of a rate is searched."""

_SIGNAL_STEPS = 6

NEAR = 0.05
"""How far the rate of a download may be from that which is searched, as a share of it, without a note."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What others take of the air.

    Attributes
    ----------
    share : float
        Their share of it.
    exchange_s : float
        The length of an exchange.
    """

    share: float
    exchange_s: float

    @property
    def table(self) -> dict[str, Any]:
        """The table `wifi.neighbour`."""
        return {"share": self.share, "exchange": self.exchange_s}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WifiLink(GivenLink):
    """A Wi-Fi fitted to round-trip times.

    Attributes
    ----------
    waits : Waits
        The waits that show it.
    neighbours : tuple of Neighbours
        Those that the waits allow, the best first; empty if there are none, or they do not explain the waits.
    """

    waits: Waits = field(kw_only=True)
    neighbours: tuple[Neighbours, ...] = field(kw_only=True)

    @property
    def is_certain(self) -> bool:
        """Whether its scenario is one: if the waits allow only one kind of neighbours."""
        return len(self.neighbours) < 2

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """The questions that the measurements leave open: none, since hardly any packet is lost."""
        return ()

    def draws(self, count: int, *, mirrored: bool = False) -> list[dict[str, Any]]:
        """Return changes of its scenario that sample the neighbours which the waits allow."""
        several = self.neighbours[:DRAWS]
        if not several:
            return [{} for _ in range(count)]
        return [{"wifi.neighbour": several[index % len(several)].table} for index in range(count)]


def fitted_wifi(
    link: FittedLink, waits: Waits, *, rate_bps: float | None, rtt_s: float | None, is_stated: bool
) -> WifiLink:
    """Return the Wi-Fi that has the waits of a link.

    Parameters
    ----------
    link : FittedLink
        The link as fitted without them: its losses, its measured rate, and what was assumed.
    waits : Waits
        The waits.
    rate_bps : float or None
        The stated rate: of a download in idle air if the link is stated to be Wi-Fi, else of the line in
        front.
    rtt_s : float or None
        The round-trip time to the server; None if not stated.
    is_stated : bool
        Whether the link is stated to be Wi-Fi, rather than shown to be by its waits.
    """
    notes: list[str] = [note for note in link.notes if not isinstance(note, Assumption)]
    if not is_stated:
        notes.append(_evidence(waits))
    elif not waits.is_local:
        notes.append(
            Assumption(
                "all waits are those of the Wi-Fi, though the probes went further; ping your own router, so "
                "that only the Wi-Fi shows."
            )
        )
    least_s = STATED_WAIT_S if is_stated and waits.is_local else WORST_WAIT_S
    signs = list(waits.signs)
    neighbours: tuple[Neighbours, ...] = ()
    if waits.beacon_s is None and waits.p95_s >= least_s:
        neighbours = nearest(waits)
        signs.append(_words(neighbours))
        if not neighbours:
            notes.append(
                Assumption(
                    "idle air and a steady signal, so that nothing waits as these probes did. `iw dev wlan0 "
                    "station dump` shows the signal and what was repeated, `iw dev wlan0 survey dump` how "
                    "busy the air is; measure again near the access point."
                )
            )
    if neighbours and waits.p95_s < WORST_WAIT_S:
        notes.append(
            Assumption(
                "the waits are those for neighbours; repetitions on a weak signal or a router that is slow "
                "to answer pings make such short ones, too. `iw dev wlan0 survey dump` shows how busy the "
                "air is."
            )
        )
    line_bps = None if is_stated else rate_bps
    # A stated rate is that of the link as fitted, too.
    radio_bps = link.rate_bps if line_bps is None else None
    wifi: Tables = {
        "standard": "802.11n" if radio_bps is not None and radio_bps < SLOW_BPS else "802.11ac",
        "streams": 2,
        "rate": "minstrel-ht",
        "longest_ppdu": "4 ms",
        "queue": "1000 packets",
    }
    notes.append(
        Assumption(
            "two streams, and an access point with one queue of 1,000 packets for all; many have FQ-CoDel, "
            "and do not need fair queues."
        )
    )
    if neighbours:
        wifi["neighbour"] = neighbours[0].table
    if waits.beacon_s is not None:
        wifi["power_save"] = {"beacon": waits.beacon_s, "timeout": 0.02, "listen": waits.listen}
        notes.append(Assumption("the station dozes 20 ms after its last packet, which replies do not show."))
    drop = {
        way: round(losses.best.model["loss"], 6)
        for way, losses in (("down", link.down), ("up", link.up))
        if losses is not None and losses.lost
    }
    if drop:
        wifi["drop"] = drop
    beyond_s = _beyond(waits, rtt_s, notes)
    wired = _wired(line_bps, beyond_s, notes)
    name = ", ".join(link.files)
    signal = _signal(radio_bps, wired, wifi, notes, is_measured=rate_bps is None)
    scenario = download({"wired": wired, "wifi": {**wifi, "snr": f"{signal:g} dB"}}, name)
    rates = [goodput(scenario, up=up) for up in (False, True)]
    words = ", ".join(f"{formats.share(loss)} of the packets lost {way}" for way, loss in drop.items())
    return WifiLink(
        files=link.files,
        down=link.down,
        up=link.up,
        timing=link.timing,
        rate_bps=rates[0],
        up_rate_bps=rates[1],
        rate_variation=None,
        up_rate_variation=None,
        rtt_s=beyond_s,
        last_hop_rtt_s=0.0,
        notes=tuple(dict.fromkeys(notes)),
        stated=StatedLosses(
            PERFECT,
            f"{words}, above the repetitions of the MAC"
            if words
            else "no losses above the repetitions of the MAC",
            "seen",
        ),
        doubts=link.doubts,
        signs=tuple(signs),
        given=scenario,
        waits=waits,
        neighbours=neighbours,
    )


def _evidence(waits: Waits) -> Assumption:
    """Return why the last hop is taken for Wi-Fi, and how to tell."""
    if waits.beacon_s is not None:
        return Assumption("the last hop is Wi-Fi, since replies keep the beat of its beacons.")
    return Assumption(
        "the last hop is Wi-Fi, since probes wait on the own network. A router that is slow to answer pings "
        "makes such waits, too: then a ping by cable has them as well. `iw dev wlan0 survey dump` shows how "
        "busy the air is."
    )


def _wired(line_bps: float | None, beyond_s: float, notes: list[str]) -> Tables:
    """Return the wired link in front of the Wi-Fi, of the rate of a line if one is stated."""
    if line_bps is None:
        return {"rate": FASTEST_WIRED_BPS, "delay": beyond_s / 2}
    packets = max(math.ceil(max(QUEUE_S, beyond_s) * line_bps / (1500 * 8)), FEWEST_QUEUED)
    notes.append(
        Assumption(
            f"{formats.rate(line_bps)} is the rate of the line in front of the Wi-Fi, both ways, with a "
            f"queue of {packets:,} packets; with --wifi, --rate is that of the Wi-Fi."
        )
    )
    return {"rate": line_bps, "delay": beyond_s / 2, "queue": f"{packets} packets"}


def _beyond(waits: Waits, rtt_s: float | None, notes: list[str]) -> float:
    """Return the round-trip time beyond the Wi-Fi."""
    if rtt_s is not None:
        return rtt_s
    if not waits.is_local:
        return waits.floor_s
    notes.append(
        Assumption(
            f"the server is {formats.seconds(SERVER_RTT_S)} of round-trip time beyond the Wi-Fi, since the "
            "probes went no further; state --rtt."
        )
    )
    return SERVER_RTT_S


def _words(neighbours: tuple[Neighbours, ...]) -> str:
    if not neighbours:
        return (
            "Neighbours alone do not explain these waits: no simulated ones make probes wait so. A weak or "
            "fading signal may."
        )
    shares = _between([each.share for each in neighbours], SHARES)
    lengths = _between([each.exchange_s for each in neighbours], EXCHANGES_S)
    return (
        f"Neighbours that wait as these probes did have {formats.share(neighbours[0].share)} of the air "
        f"({formats.interval(*shares, formats.share)}) in exchanges of "
        f"{formats.seconds(neighbours[0].exchange_s)} "
        f"({formats.interval(*lengths, formats.seconds)})."
    )


def _between(found: Sequence[float], tried: Sequence[float]) -> tuple[float, float]:
    """Return the interval of all values that are nearer to those found than to the others that were tried.

    Beyond the first and the last nothing was tried, and the interval has no end.
    """
    first, last = tried.index(min(found)), tried.index(max(found))
    low = (tried[first - 1] + tried[first]) / 2 if first else 0.0
    high = (tried[last] + tried[last + 1]) / 2 if last + 1 < len(tried) else math.inf
    return low, high


def nearest(waits: Waits) -> tuple[Neighbours, ...]:
    """Return the neighbours beside whom simulated probes wait as long, the nearest first; none may."""
    seen = np.quantile(waits.excess_s, QUANTILES)
    apart = {each: _apart(seen, np.quantile(simulated_waits(each), QUANTILES)) for each in grid()}
    best = min(apart.values())
    if best > FARTHEST:
        return ()
    near = [each for each, distance in apart.items() if distance <= best + ALSO]
    return tuple(sorted(near, key=lambda each: apart[each]))


def grid() -> tuple[Neighbours, ...]:
    """Return the neighbours that are tried: all that can have the share that they ask for."""
    return tuple(
        Neighbours(share, exchange_s)
        for share in SHARES
        for exchange_s in EXCHANGES_S
        if share < exchange_s / (exchange_s + ACCESS_S)
    )


def _apart(seen: Floats, expected: Floats) -> float:
    """Return how far quantiles are apart: the mean difference of their logarithms."""
    logs = np.log(np.maximum(seen, 0.0) + RESOLUTION_S) - np.log(np.maximum(expected, 0.0) + RESOLUTION_S)
    return float(np.mean(np.abs(logs)))


@cache
def simulated_waits(neighbours: Neighbours, seed: int = 1) -> Floats:
    """Return the waits of simulated probes beside neighbours."""
    wifi = {
        "standard": "802.11ac",
        "streams": 2,
        "rate": "ideal",
        "snr": "30 dB",
        "neighbour": neighbours.table,
    }
    rtt = probe({"wired": {"rate": FASTEST_WIRED_BPS}, "wifi": wifi}, APART_S, PROBES, seed)[1]
    return rtt - float(rtt.min())


def probe(
    tables: Tables, apart_s: float, count: int, seed: int, *, from_server: bool = False
) -> tuple[Floats, Floats]:
    """Return the times and the round-trip times of simulated probes over the links of these tables.

    A probe is a request of 64 B over a connection that is open, with a response as long. The first second has
    the handshake, and is left out.
    """
    ends = ("fixed", "mobile") if from_server else ("mobile", "fixed")
    skipped = math.ceil(1.0 / apart_s)
    user = {
        "from": ends[0],
        "to": ends[1],
        "request": {"constant": "64 B"},
        "response": {"constant": "64 B"},
        "think": {"constant": apart_s},
        "waits": False,
        "requests": count + skipped,
    }
    scenario = download(tables, "probes").with_(
        {
            "transfer": tables.get("transfer"),
            "limit": (count + skipped + 2) * apart_s + 2,
            "application": {**tables.get("application", {}), "probes": user},
        }
    )
    times = scenario.run(None, seed=seed).response_times("probes")
    sent_s, rtt = times["since_s"][skipped:], times["time_s"][skipped:]
    known = np.isfinite(rtt)
    return sent_s[known], rtt[known]


def _signal(
    rate_bps: float | None, wired: Tables, wifi: Tables, notes: list[str], *, is_measured: bool
) -> float:
    """Return the signal-to-noise ratio at which a download has the rate, in the same air or in idle air."""
    low, high = SIGNALS_DB
    if rate_bps is None:
        notes.append(
            Assumption(
                "802.11ac at 80 MHz and a signal of 25 dB, since nothing shows the rate of the Wi-Fi; state "
                "--wifi, and as --rate what a download gets over it when the air is idle."
            )
        )
        return 25.0
    air = wifi if is_measured else {key: value for key, value in wifi.items() if key != "neighbour"}

    def attained(signal_db: float) -> float:
        return goodput(download({"wired": wired, "wifi": {**air, "snr": f"{signal_db:g} dB"}}, "the signal"))

    for _ in range(_SIGNAL_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if attained(middle) < rate_bps else (low, middle)
    signal_db = round(high, 1)
    found_bps = attained(signal_db)
    where = "while the pings wait" if is_measured else "in idle air"
    note = f"{wifi['standard']}, and the signal at which a download has {formats.rate(found_bps)} {where}"
    if abs(found_bps - rate_bps) > NEAR * rate_bps:
        which = "measured" if is_measured else "stated"
        note += f", the nearest to the {formats.rate(rate_bps)} that were {which}"
    if is_measured:
        note += "; nothing else, such as the line in front, limited the measured transfer"
    notes.append(Assumption(f"{note}."))
    return signal_db
