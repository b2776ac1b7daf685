"""A link given by a preset or by a scenario, in place of measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasthop._lasthop import Quantity, Scenario, ScenarioError, links
from lasthop.core import formats
from lasthop.core.names import PLAIN, unknown
from lasthop.fitting.link import Assumption, FittedLink, StatedLosses
from lasthop.fitting.scenario import FASTEST_WIRED_BPS, PERFECT, Tables
from lasthop.fitting.timing import Timing

SERVER_RTT_S = 0.04
"""The default round-trip time beyond the last hop of a preset, which describes the last hop alone."""

SEEN_S, SEEN_BEFORE_WIFI_S = 300.0, 4.0
"""The simulated time from which the mean rate and the least delay of varying links are taken."""

SHORTEST_S, LONGEST_S = 8.0, 64.0
"""The lengths of transfers over Wi-Fi, the second half of which is their rate: at first, and at most."""

SEEDS = (1, 2, 3)
"""The seeds of these transfers."""

AGREEING = 0.05
"""Transfers are long enough if the rate of those half as long differs by at most this share of it."""

LAST_HOP, WIRED = "base-mobile", "fixed-base"
"""The links of the topology `last-hop`, and of a Wi-Fi cell with one station."""

WIFI_TOPOLOGY: Tables = {"graph": {"wired": [WIRED], "cell": [LAST_HOP]}}
"""The topology of a Wi-Fi cell with one station, whose nodes have the names of the topology `last-hop`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GivenLink(FittedLink):
    """A link given by a preset or by a scenario.

    Attributes
    ----------
    given : Scenario
        The scenario of a download over the link. It states the link in full: its rate, delay and losses in
        both directions, and its queue.
    """

    given: Scenario = field(kw_only=True)

    @property
    def knows_uplink_losses(self) -> bool:
        """Whether the losses of the uplink are known: the scenario states them."""
        return True

    @property
    def queue_packets(self) -> int:
        """The length of the queue in front of the link, in packets; a default if it is stated otherwise."""
        queue = self.given["wifi.queue" if self.is_wifi else "radio.queue"]
        if isinstance(queue, Quantity) and queue.unit == "packets":
            return max(int(queue.amount), 1)
        # The class is named, since slots make it anew.
        return super(GivenLink, self).queue_packets

    @property
    def is_wifi(self) -> bool:
        """Whether its last hop is a cell of `[wifi]`."""
        return "wifi" in self.given

    def toml(self, channel: Tables | str | None = None) -> str:
        """Return the file of the scenario."""
        return self.scenario(channel).to_toml()

    def scenario(self, channel: Tables | str | None = None) -> Scenario:
        """Return the scenario, with another channel of the downlink if one is stated."""
        key = "wifi.channel" if self.is_wifi else "radio.channel"
        return self.given if channel is None else self.given.with_({key: channel})


def preset_link(name: str, *, rtt_s: float | None = None) -> GivenLink:
    """Return the link of a preset.

    Parameters
    ----------
    name : str
        The preset: a name of `lasthop.links`.
    rtt_s : float, optional
        The round-trip time to the server, with the last hop. By default the server is `SERVER_RTT_S` beyond
        the last hop.

    Raises
    ------
    ValueError
        If there is no such preset, or the time is shorter than that of its last hop.
    """
    known = {each.name: each for each in links()}
    if name not in known:
        raise ValueError(unknown("preset", name, list(known)))
    hop: Tables = {known[name].table: {"preset": name}}
    alone = download({"wired": {"rate": FASTEST_WIRED_BPS}, **hop}, name)
    hop_s = _hop_rtt(alone)
    if rtt_s is not None and rtt_s < hop_s:
        raise ValueError(
            f"found a round-trip time of {formats.seconds(rtt_s)}, expected at least that of the last hop of "
            f"{name}, {formats.seconds(hop_s)}"
        )
    beyond = SERVER_RTT_S if rtt_s is None else rtt_s - hop_s
    notes = []
    if rtt_s is None:
        notes.append(
            Assumption(
                f"the server is {formats.seconds(beyond)} of round-trip time beyond the last hop"
                + (f", which takes {formats.seconds(hop_s)}" if hop_s else "")
                + "; state --rtt."
            )
        )
    wired = {"rate": max(FASTEST_WIRED_BPS, 10 * _rate(alone)), "delay": beyond / 2}
    return _given(download({"wired": wired, **hop}, name), f"preset {name}", notes)


def scenario_link(scenario: Scenario) -> GivenLink:
    """Return the link of a scenario with a wired and a wireless link, or a Wi-Fi cell of one station.

    Its traffic, schemes and senders are left out.

    Raises
    ------
    ValueError
        If the scenario has other links, a sweep, or a list of delays per packet.
    """
    place = scenario.file
    tables = scenario.values()
    is_wifi = "wifi" in scenario and _has_one_station(tables["topology"])
    if scenario["topology"] != "last-hop" and not is_wifi:
        raise ValueError(
            f'{place}: advice is for one last hop, topology = "last-hop", or a Wi-Fi cell with one station, '
            "as of a preset; this scenario has others. State the last hop alone in a scenario of its own"
        )
    if scenario.sweep:
        raise ValueError(
            f"{place}: a sweep of {', '.join(scenario.sweep)} is several links; state one value of each in "
            "place of [sweep]"
        )
    notes = []
    if left := [each for each in scenario.schemes if each != PLAIN]:
        left_out = ", ".join(left)
        notes.append(Assumption(f"the link is without the schemes of the scenario ({left_out})."))
    kept = {name: tables[name] for name in ("wired", "wifi" if is_wifi else "radio")}
    found = download(kept, place)
    for hop in (WIRED,) if is_wifi else (WIRED, LAST_HOP):
        delays = (stated(found, hop, "delay", up=up) for up in (False, True))
        if any(isinstance(delay, Mapping) and "per-packet" in delay for delay in delays):
            raise ValueError(
                f"{place}: the delays of {hop} are a list by packets, which has no least one in time; state "
                "the delay, or a series"
            )
    return _given(found, place, notes)


def _has_one_station(topology: Any) -> bool:
    """Whether a topology is that of a Wi-Fi cell with one station."""
    graph = topology.get("graph") if isinstance(topology, Mapping) else None
    return graph is not None and {key: each for key, each in graph.items() if each} == WIFI_TOPOLOGY["graph"]


def download(tables: Mapping[str, Any], name: str) -> Scenario:
    """Return the scenario of a download over the links of these tables, in which presets are written out.

    A preset would state again what a change takes away.
    """
    found = _download(tables, name)
    values = found.values()
    written = {key: _without_preset(values[key]) for key, table in tables.items() if "preset" in table}
    return _download({**tables, **written}, name) if written else found


def _without_preset(table: Tables) -> Tables:
    return {key: value for key, value in table.items() if key != "preset"}


def _download(tables: Mapping[str, Any], name: str) -> Scenario:
    topology = {"topology": WIFI_TOPOLOGY} if "wifi" in tables else {}
    return Scenario.from_tables(
        {
            "title": f"A download over the link of {name}",
            "limit": Quantity(30.0, "s"),
            "sender": "linux",
            "schemes": [PLAIN],
            "transfer": {"size": "unlimited", "from": "fixed", "to": "mobile"},
            **topology,
            **tables,
        },
        name=name,
    )


def _given(scenario: Scenario, name: str, notes: Sequence[str]) -> GivenLink:
    hop_s = _hop_rtt(scenario)
    beyond_s = sum(_delay(scenario, WIRED, up=up) for up in (False, True))
    key = "wifi.channel" if "wifi" in scenario else "radio.channel"
    # A scenario is no mapping: it has no `get`.
    channel = scenario[key] if key in scenario else PERFECT  # noqa: SIM401
    return GivenLink(
        files=(name,),
        down=None,
        up=None,
        timing=Timing(),
        rate_bps=_rate(scenario),
        up_rate_bps=_rate(scenario, up=True),
        rate_variation=None,
        up_rate_variation=None,
        rtt_s=hop_s + beyond_s,
        last_hop_rtt_s=hop_s,
        notes=tuple(notes),
        stated=StatedLosses(channel, _losses(scenario)),
        given=scenario,
    )


def _losses(scenario: Scenario) -> str:
    """Describe the losses of the downlink, as those of a full packet."""
    if "wifi" in scenario:
        return "losses on the air, which the MAC repeats"
    # At the mean rate and without grants, which lose nothing: there is no closed form over them.
    steady = {"radio.rate": _rate(scenario), "radio.grants": None}
    try:
        loss = scenario.with_(steady).packet_loss("1500 B", LAST_HOP)
    except ScenarioError:
        return "losses that vary"
    return f"{formats.share(loss)} of the packets of 1500 B lost" if loss > 0 else "no losses"


def _rate(scenario: Scenario, *, up: bool = False) -> float:
    """Return the mean rate of the last hop in a direction; of Wi-Fi, what a transfer by CUBIC gets now."""
    if "wifi" in scenario:
        return goodput(scenario, up=up)
    granted = grants(scenario, up=up)
    users = 1 if granted is None else 1 + int(granted["neighbours"])
    rate = stated(scenario, LAST_HOP, "rate", up=up)
    if isinstance(rate, Mapping) and "lognormal" in rate:
        rate = rate["lognormal"]["mean"]
    if isinstance(rate, int | float):
        return float(rate) / users
    return float(scenario.link_timing(SEEN_S, LAST_HOP, up=up)["rate_bps"].mean()) / users


def grants(scenario: Scenario, *, up: bool) -> Mapping[str, Any] | None:
    """Return the table of the grants of the last hop in a direction; None if it has none."""
    own = "radio.uplink.grants"
    key = own if up and own in scenario else "radio.grants"
    return scenario[key] if key in scenario else None  # noqa: SIM401


def goodput(scenario: Scenario, *, up: bool = False) -> float:
    """Return the mean throughput of transfers by CUBIC over the link of a scenario, after their slow start.

    The transfers are made twice as long until this hardly changes their rate.
    """
    ends = {"from": "mobile", "to": "fixed"} if up else {"from": "fixed", "to": "mobile"}

    def mean(length_s: float) -> float:
        seen = scenario.with_(
            {"limit": length_s, "warmup": length_s / 2, "transfer": {"size": "unlimited", **ends}}
        )
        runs = [seen.run(None, seed=seed) for seed in SEEDS]
        return sum(float(run.metrics["throughput_bps"]) for run in runs) / len(runs)

    length_s = SHORTEST_S
    before, rate = math.inf, mean(length_s)
    while abs(rate - before) > AGREEING * rate and length_s < LONGEST_S:
        length_s *= 2
        before, rate = rate, mean(length_s)
    return rate


def _hop_rtt(scenario: Scenario) -> float:
    """Return the least round-trip time of the idle last hop; zero for Wi-Fi, a fraction of a millisecond."""
    if "wifi" in scenario:
        return 0.0
    return sum(_delay(scenario, LAST_HOP, up=up) + _granted(scenario, up=up) for up in (False, True))


def _granted(scenario: Scenario, *, up: bool) -> float:
    """Return the least time of grants: an interval, and up a request that need not wait; zero without any."""
    granted = grants(scenario, up=up)
    if granted is None:
        return 0.0
    asks = up and float(granted["request"]) > 0
    return float(granted["interval"]) + (float(granted["grant"]) if asks else 0.0)


def stated(scenario: Scenario, link: str, key: str, *, up: bool) -> Any:
    """Return the value of a key of `WIRED` or `LAST_HOP` in a direction; of Wi-Fi, only of `WIRED`."""
    if link == WIRED:
        return scenario[f"wired.{key}"]
    own = f"radio.uplink.{key}"
    return scenario[own if up and own in scenario else f"radio.{key}"]


def _delay(scenario: Scenario, link: str, *, up: bool) -> float:
    """Return the least delay of a link in a direction; of `netem`, that of packets which do not skip it."""
    delay = None if "wifi" in scenario and link == LAST_HOP else stated(scenario, link, "delay", up=up)
    if isinstance(delay, Mapping) and "netem" in delay:
        return max(float(delay["netem"]["delay"]) - float(delay["netem"]["jitter"]), 0.0)
    seen_s = SEEN_BEFORE_WIFI_S if "wifi" in scenario else SEEN_S
    return float(scenario.link_timing(seen_s, link, up=up)["delay_s"].min())
