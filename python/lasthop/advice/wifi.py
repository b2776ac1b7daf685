"""The remedies of Wi-Fi beside senders and schemes: queues, aggregates, categories, power save, place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lasthop._lasthop import Quantity, Scenario
from lasthop.advice.steps import Steps
from lasthop.core import formats

Settings = tuple[tuple[str, Any], ...]

CALM_SHARE = 0.05
"""The share of the air that neighbours have on a channel that one would move to."""

NEAR_DB = 35.0
"""The signal-to-noise ratio beside an access point, at which all rates of 802.11ac are possible."""

SHORT_PPDU = "1 ms"
"""The length of short aggregates."""

VOICE_DSCP = 46
"""The code point of voice, expedited forwarding (EF)."""

CALLS = ("traffic.call-down", "traffic.call-up")
"""The flows of a call."""

EASY, BOX = 2, 4
"""Effort: lines of a configuration, and a box to buy or to move."""


@dataclass(frozen=True, slots=True)
class WifiRemedy:
    """A change of an access point, of a station or of their place.

    Attributes
    ----------
    title : str
        Its title in output.
    meaning : str
        What it does.
    key : str
        The key by which its settings are known.
    settings : callable
        The settings of the scenario of a use that it changes; none if the scenario has it already, or nothing
        that it would change.
    place : str
        Where it is installed.
    how : str
        What is configured there, in a phrase.
    cost : str
        Its drawback.
    effort : int
        What it takes.
    steps : Steps
        Whose box it is, and the commands.
    """

    title: str
    meaning: str
    key: str
    settings: Callable[[Scenario], Settings]
    place: str
    how: str
    cost: str
    effort: int
    steps: Steps


def fair_queues(scenario: Scenario) -> Settings:
    """Return the settings of fair queues; none if the access point has them."""
    if scenario["wifi.scheduler"] == "airtime":
        return ()
    return (("wifi.scheduler", "airtime"), ("wifi.queue", {"fq-codel": {"target": "20 ms"}}))


def _short_aggregates(scenario: Scenario) -> Settings:
    return (("wifi.longest_ppdu", SHORT_PPDU),) if _seconds(scenario["wifi.longest_ppdu"]) > 1e-3 else ()


def _voice(scenario: Scenario) -> Settings:
    flows = [flow for flow in CALLS if flow in scenario]
    return tuple((f"{flow}.dscp", VOICE_DSCP) for flow in flows)


def _awake(scenario: Scenario) -> Settings:
    return (("wifi.power_save", None),) if "wifi.power_save" in scenario else ()


def _fast_transition(scenario: Scenario) -> Settings:
    if "wifi.roaming" not in scenario or scenario["wifi.roaming.fast_transition"]:
        return ()
    kept = {key: value for key, value in scenario["wifi.roaming"].items() if key != "gap"}
    return (("wifi.roaming", {**kept, "fast_transition": True}),)


def _calm_channel(scenario: Scenario) -> Settings:
    return (("wifi.neighbour.share", CALM_SHARE),) if share_of_neighbours(scenario) > 2 * CALM_SHARE else ()


def _near(scenario: Scenario) -> Settings:
    return (("wifi.snr", f"{NEAR_DB:g} dB"),) if signal_db(scenario) < NEAR_DB - 3 else ()


def share_of_neighbours(scenario: Scenario) -> float:
    """Return the share of the air that neighbours ask for; zero without any."""
    return float(scenario["wifi.neighbour.share"]) if "wifi.neighbour" in scenario else 0.0


def signal_db(scenario: Scenario) -> float:
    """Return the signal-to-noise ratio; infinite if noise loses nothing."""
    if "wifi.snr" not in scenario:
        return float("inf")
    signal = scenario["wifi.snr"]
    return float(signal.amount if isinstance(signal, Quantity) else signal)


def _seconds(value: Any) -> float:
    return float(value.amount if isinstance(value, Quantity) else value)


_ACCESS_POINT = "your access point; that of an operator or a landlord is not yours to change"

WIFI_REMEDIES = (
    WifiRemedy(
        "calls in the voice category",
        "packets of calls have a queue and a backoff of their own, before those of downloads, at both ends",
        f"{CALLS[0]}.dscp",
        _voice,
        "router and device",
        "mark calls with the code point EF, which access points and devices map to AC_VO (Linux since 2024, "
        "before to AC_VI)",
        "marked packets are not aggregated; whoever marks downloads starves the others; operators clear "
        "marks, so the router has to mark what arrives",
        EASY,
        Steps(
            "your router, and the device or its program",
            (
                "# router: what arrives for the calling device; PHONE and PHONE6 are its addresses",
                "nft add table inet calls",
                "nft add chain inet calls forward '{ type filter hook forward priority mangle; }'",
                "nft add rule inet calls forward ip daddr PHONE udp length 60-300 ip dscp set ef",
                "nft add rule inet calls forward ip6 daddr PHONE6 udp length 60-300 ip6 dscp set ef",
                "# device: many programs mark their calls; else, by port of the program",
                "nft add table inet calls",
                "nft add chain inet calls output '{ type route hook output priority mangle; }'",
                "nft add rule inet calls output meta nfproto ipv4 udp sport PORT ip dscp set ef",
                "nft add rule inet calls output meta nfproto ipv6 udp sport PORT ip6 dscp set ef",
            ),
            "the length tells calls from downloads over QUIC, whose packets are full",
        ),
    ),
    WifiRemedy(
        "power save off",
        "the device no longer dozes, so nothing waits for a beacon",
        "wifi.power_save",
        _awake,
        "device",
        "iw dev wlan0 set power_save off",
        "its radio takes several times the power while idle",
        EASY,
        Steps(
            "your device; phones have no such setting",
            (
                "iw dev wlan0 set power_save off",
                "# for good, with NetworkManager",
                "nmcli connection modify NAME 802-11-wireless.powersave 2",
            ),
            "wlan0 is the interface, NAME the connection; `iw dev wlan0 get power_save` shows what it is now",
        ),
    ),
    WifiRemedy(
        "fast transition between access points",
        "a device that roams agrees on the keys of the next access point in four frames (802.11r)",
        "wifi.roaming",
        _fast_transition,
        "access point",
        "802.11r at all access points of the network, which hostapd and OpenWrt have",
        "a few old devices do not associate with such access points",
        BOX,
        Steps(
            _ACCESS_POINT,
            (
                "# hostapd.conf: the domain is that of all access points, the identifier of this one alone",
                "mobility_domain=a1b2",
                "nas_identifier=ap1.example.org",
                "wpa_key_mgmt=WPA-EAP FT-EAP",
                "# with a pre-shared key, instead of the last line",
                "wpa_key_mgmt=WPA-PSK FT-PSK",
                "ft_psk_generate_local=1",
                "# OpenWrt",
                "uci set wireless.default_radio0.ieee80211r=1",
                "uci commit wireless && wifi reload",
            ),
            "with 802.1X, access points also need each other's keys: r0kh and r1kh in hostapd.conf",
        ),
    ),
    WifiRemedy(
        "another channel or band",
        f"if there is a channel of which neighbours have {formats.share(CALM_SHARE)} of the air",
        "wifi.neighbour.share",
        _calm_channel,
        "access point",
        "move to the channel with the least busy time; to 5 or 6 GHz from 2.4 GHz",
        "5 and 6 GHz reach less far through walls; neighbours move, too",
        EASY,
        Steps(
            _ACCESS_POINT,
            (
                "# how busy each channel is: busy time as a share of active time",
                "iw dev wlan0 scan ap-force > /dev/null; iw dev wlan0 survey dump",
                "# OpenWrt",
                "uci set wireless.radio0.channel=CHANNEL",
                "uci commit wireless && wifi reload",
            ),
            "CHANNEL is the calmest one; a wider channel meets more neighbours, a narrower one fewer",
        ),
    ),
    WifiRemedy(
        "fair queues at the access point",
        "a queue for each station and flow, kept short by CoDel, and air time divided equally among stations",
        "wifi.scheduler",
        fair_queues,
        "access point",
        "OpenWrt, or any Linux since 4.11, with a driver that uses mac80211's queues: ath9k, mt76, iwlwifi",
        "slow stations get less than under a single queue; closed firmware lacks it",
        BOX,
        Steps(
            _ACCESS_POINT,
            (
                "# whether the driver has them: backlog and drops by station",
                "cat /sys/kernel/debug/ieee80211/phy0/netdev:wlan0/stations/*/aqm",
                "iw phy phy0 info | grep -e TXQS -e AIRTIME_FAIRNESS",
                "# shares of stations",
                "iw dev wlan0 station set MAC airtime_weight 256",
            ),
            "there is nothing to switch on: it is the default of these drivers",
        ),
    ),
    WifiRemedy(
        f"aggregates of at most {SHORT_PPDU}",
        "the own network's A-MPDUs are short, so that a packet waits for a shorter one",
        "wifi.longest_ppdu",
        _short_aggregates,
        "access point",
        "a limit of the TXOP of best effort, which also limits A-MPDUs",
        "preambles and acknowledgements take a larger share of the air; neighbours' aggregates stay as long",
        EASY,
        Steps(
            _ACCESS_POINT,
            (
                "# hostapd.conf: that of the access point in ms, and that of stations in units of 32 us",
                "tx_queue_data2_burst=1.0",
                "wmm_ac_be_txop_limit=31",
            ),
            "drivers differ in whether they limit A-MPDUs by it: ath9k does",
        ),
    ),
    WifiRemedy(
        "a nearer access point",
        f"a signal of {NEAR_DB:g} dB above noise, at which packets take the least air",
        "wifi.snr",
        _near,
        "place",
        "move the access point, or add one that has a cable",
        "an access point and a cable; a repeater without one takes the air twice",
        BOX,
        Steps(
            "your home",
            ("# signal, and the rate that it allows", "iw dev wlan0 link"),
            "wlan0 is the interface of the device",
        ),
    ),
)
"""All of them, the easiest first."""


def settings_for(scenario: Scenario) -> list[Settings]:
    """Return the settings of each remedy that would change the scenario of a use."""
    return [settings for each in WIFI_REMEDIES if (settings := each.settings(scenario))]


def within(settings: Mapping[str, Any]) -> list[WifiRemedy]:
    """Return the remedies whose keys are among those of an arm's settings."""
    return [each for each in WIFI_REMEDIES if each.key in settings]
