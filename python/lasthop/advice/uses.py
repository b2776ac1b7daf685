"""The uses of a link: the simulated scenario of each, and the measures by which its remedies are judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from lasthop._lasthop import Scenario
from lasthop.core import formats

HTTP = {"TCP": "HTTP/2 and TLS", "QUIC": "HTTP/3"}
"""How pages come over each protocol."""

DOWNLOAD = {"transfer": {"size": "unlimited", "from": "fixed", "to": "mobile"}}
"""The table of a bulk download, which is a use itself and the cross traffic of others."""

MOST_BYTES = 375e6
"""The most that a download or upload carries in a run: 30 s at 100 Mb/s.

So advice takes at most two minutes on two cores at any rate.
"""

SHORTEST_S = 0.5
"""The shortest time limit of a run on a fast link."""

WINDOW_BYTES = 6 * 2**20
"""The receive window of the profile `linux`, which limits what is in flight."""

WORTHWHILE_RATIO = 1.05
"""The smallest ratio that counts as a worthwhile gain."""

NEGLIGIBLE_SHARE = 0.4
"""The share of a worthwhile gain below which a gain is negligible, and its remedy of no use."""

WATCHED_S = 60.0
"""Simulated length of a film."""

WORTHWHILE_MOS = 0.3
"""The smallest worthwhile gain in MOS.

The narrowest class of user satisfaction in ITU-T G.107, table B.1: 4.03 to 4.34.
"""

WORTHWHILE_WAITING_S = 0.01 * WATCHED_S
"""The smallest worthwhile reduction of waiting, 1 % of a film: viewers who wait longer watch 5 % less of it.

Krishnan and Sitaraman, "Video Stream Quality Impacts Viewer Behavior" (IMC 2012).
"""

OPINIONS = ("bad", "poor", "fair", "good", "excellent")
"""The categories of ITU-T P.800 for mean opinion scores of at least 1, 2, 3, 4 and 5."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric by which a use is judged, with the words for its values and gains.

    Attributes
    ----------
    metric : str
        Name of the metric.
    heading : str
        Column heading.
    better : {"higher", "lower"}
        Which values are better.
    words : callable
        Formats a finite value.
    change : str
        Sentence about the change, with `{now}` and `{then}`; empty if the gain alone is stated.
    gained : str
        Phrase for the gain, with `{gain}`.
    min_difference : float or None
        The smallest worthwhile difference, for gains that are differences. None if gains are ratios.
    """

    metric: str
    heading: str
    better: Literal["higher", "lower"]
    words: Callable[[float], str]
    change: str = ""
    gained: str = "{gain} times as fast"
    min_difference: float | None = None

    @property
    def no_change(self) -> float:
        """The gain of a remedy without effect: ratio 1, or difference 0."""
        return 1.0 if self.min_difference is None else 0.0

    @property
    def threshold(self) -> float:
        """The smallest worthwhile gain."""
        return WORTHWHILE_RATIO if self.min_difference is None else self.min_difference

    @property
    def negligible(self) -> float:
        """The gain below which a remedy is of no use."""
        return self.no_change + NEGLIGIBLE_SHARE * (self.threshold - self.no_change)

    def exceeds(self, gain: float, other: float) -> bool:
        """Whether a gain exceeds another by a worthwhile amount."""
        return (
            gain > WORTHWHILE_RATIO * other
            if self.min_difference is None
            else gain > other + self.min_difference
        )

    def tolerable(self, gain: float) -> bool:
        """Whether a gain is not a loss of a worthwhile amount."""
        return gain > 1 / WORTHWHILE_RATIO if self.min_difference is None else gain > -self.min_difference

    def in_thresholds(self, gain: float) -> float:
        """Return a gain in multiples of the smallest worthwhile one; for ratios on a logarithmic scale."""
        if self.min_difference is not None:
            return gain / self.min_difference
        return math.log(gain) / math.log(WORTHWHILE_RATIO) if 0 < gain < math.inf else gain

    def write(self, value: float) -> str:
        """Format a value; a dash if it is unknown."""
        return self.words(value) if math.isfinite(value) else "-"

    def number(self, gain: float) -> str:
        """Format a gain."""
        return f"{gain:.3g}" if self.min_difference is None else f"{gain:+.2g}"

    def gained_by(self, gain: float) -> str:
        """Return the phrase for a gain.

        Examples
        --------
        >>> [USES["bulk"].measures[0].gained_by(gain) for gain in (1.0004, 2.0)]
        ['no change', '2 times as fast']
        """
        if self.number(gain) == self.number(self.no_change):
            return "no change"
        return self.gained.format(gain=self.number(gain))

    def gain(self, gain: float, low: float, high: float) -> str:
        """Format a gain with its interval; empty without one."""
        if not math.isfinite(gain):
            return ""
        return f"{self.number(gain)} ({self.number(low)} to {self.number(high)})"

    def sentence(self, now: float, then: float, gain: float, low: float, high: float) -> str:
        """Return a sentence about the gain of a remedy."""
        if not math.isfinite(gain):
            return f"{self.write(then)} in place of next to nothing"
        gained = self.gained_by(gain)
        gained += f" ({self.number(low)} to {self.number(high)})"
        change = self.change.format(now=self.write(now), then=self.write(then))
        return f"{change}, {gained}" if change else gained


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a link.

    Attributes
    ----------
    name : str
        Its name in `--for`.
    title : str
        Its title in output, in the plural.
    about : str
        Description of the simulated scenario, with `{limit}` and `{http}`.
    tables : mapping
        Tables of the scenario.
    limit_s : float
        Time limit of a run.
    measures : tuple of Measure
        The measures it may be judged by: the first one by which some remedy is worthwhile, else the last.
    further : tuple of Measure
        Measures that are shown in addition.
    rounds : int
        Runs at the first look, per draw of the link.
    beside : bool
        Whether a bulk download shares the link.
    upward : bool
        Whether the data flow towards the server.
    tcp : bool
        Whether it uses the sender, by default TCP.
    protocol : str
        The sender's protocol.
    """

    name: str
    title: str
    about: str
    tables: Mapping[str, Any]
    limit_s: float
    measures: tuple[Measure, ...]
    further: tuple[Measure, ...] = ()
    rounds: int = 1
    beside: bool = False
    upward: bool = False
    tcp: bool = True
    protocol: str = "TCP"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of all metrics, judged and shown."""
        return tuple(each.metric for each in (*self.measures, *self.further))

    @property
    def limit(self) -> str:
        """The time limit of a run, with its unit."""
        return f"{self.limit_s:g} s"

    @property
    def simulated(self) -> str:
        """Description of the simulated scenario.

        Examples
        --------
        >>> replace(USES["web"], protocol="QUIC").simulated
        'a page of 1.7 MB over HTTP/3, opened once, with nothing else on the link'
        """
        return self.about.format(limit=self.limit, http=HTTP[self.protocol])

    def scenario(self, link: Scenario) -> Scenario:
        """Return the scenario of a link with its download replaced by this use."""
        return link.with_({"transfer": None, **(DOWNLOAD if self.beside else {}), **self.tables})

    def shortened(self, rate_bps: float, rtt_s: float) -> Use:
        """Return this use with a shorter time limit if its runs would carry more than `MOST_BYTES`.

        Parameters
        ----------
        rate_bps, rtt_s : float
            The link's rate in the direction of the data, and its round-trip time.

        Examples
        --------
        >>> [USES["bulk"].shortened(rate, 0.03).limit for rate in (100e6, 1e9)]
        ['30 s', '3 s']
        """
        if not self.beside and self.measures != (THROUGHPUT,):
            return self
        carried_bps = min(rate_bps, 8 * WINDOW_BYTES / rtt_s) if rtt_s > 0 else rate_bps
        longest_s = max(8 * MOST_BYTES / carried_bps, SHORTEST_S)
        if longest_s >= self.limit_s:
            return self
        # Three digits, as in the description.
        return replace(self, limit_s=float(f"{longest_s:.3g}"))

    def alone(self) -> Use:
        """Return this use without the download beside it."""
        return replace(self, title=f"{self.title} alone", beside=False)


def mos(value: float) -> str:
    """Format a mean opinion score with its category in ITU-T P.800.

    Examples
    --------
    >>> mos(2.13), mos(1.0), mos(3.96)
    ('"poor" (MOS 2.1)', '"bad" (MOS 1.0)', '"good" (MOS 4.0)')
    """
    # Rounded first, so that the category fits the printed number.
    whole = math.floor(round(value, 1))
    return f'"{OPINIONS[min(max(whole, 1), len(OPINIONS)) - 1]}" (MOS {value:.1f})'


def waiting(played_s: float) -> str:
    """Format the time for which the viewer of a film waits, given the time played.

    Examples
    --------
    >>> waiting(48.0), waiting(60.0)
    ('12 s', '0 s')
    """
    left = max(WATCHED_S - played_s, 0.0)
    return formats.seconds(left) if left >= 1e-3 else "0 s"


_UPWARD = {"from": "mobile", "to": "fixed"}
_VOICE = {"voip": {"codec": "g711-plc"}}
_CALL = {
    "traffic": {"call-down": {"from": "fixed", "to": "mobile", **_VOICE}, "call-up": {**_UPWARD, **_VOICE}}
}


def _application(kind: str, **further: Any) -> dict[str, Any]:
    return {"application": {"user": {"kind": kind, **_UPWARD, **further}}}


SHORT = "100 KB"
"""Size of a short download."""

SHORT_TRANSFER = Measure("completion_time_s", f"p90 of {SHORT}", "lower", formats.seconds)
"""90th percentile of the completion time of short downloads, from separate runs."""

THROUGHPUT = Measure("throughput_bps", "throughput", "higher", formats.rate)
_BITRATE = Measure(
    "application.user.mean_bitrate_bps",
    "bitrate",
    "higher",
    formats.rate,
    "the film has {then} instead of {now}",
    "{gain} times the bitrate",
)
_WAITING = Measure(
    "application.user.played_s",
    "waiting",
    "higher",
    waiting,
    "of the film's first minute its viewer waits {then} instead of {now}",
    "{gain} s of film",
    WORTHWHILE_WAITING_S,
)

USES = {
    use.name: use
    for use in (
        Use(
            "bulk",
            "downloads",
            "a download, {limit} from its start on",
            DOWNLOAD,
            30.0,
            (THROUGHPUT,),
            rounds=2,
        ),
        Use(
            "upload",
            "uploads",
            "an upload, {limit} from its start on",
            {"transfer": {"size": "unlimited", **_UPWARD}},
            30.0,
            (THROUGHPUT,),
            rounds=2,
            upward=True,
        ),
        Use(
            "web",
            "pages",
            "a page of 1.7 MB over {http}, opened once, with nothing else on the link",
            _application("page", requests=1, think={"constant": 0}),
            60.0,
            (
                Measure(
                    "application.user.mean_page_time_s",
                    "page in",
                    "lower",
                    formats.seconds,
                    "pages open in {then} instead of {now}",
                ),
            ),
            rounds=8,
        ),
        Use(
            "video",
            "films",
            "the first minute of a film of up to 4.3 Mb/s, with nothing else on the link",
            _application("video"),
            WATCHED_S,
            (_WAITING, _BITRATE),
            rounds=2,
        ),
        Use(
            "call",
            "calls",
            "a call, what the user hears of it for {limit}, beside a download on the same link",
            _CALL,
            20.0,
            (
                Measure(
                    "traffic.call-down.mos",
                    "call",
                    "higher",
                    mos,
                    "the call goes from {now} to {then}",
                    "{gain}",
                    WORTHWHILE_MOS,
                ),
            ),
            beside=True,
            tcp=False,
        ),
        Use(
            "shell",
            "shells",
            "{limit} of typing in a remote shell, beside a download on the same link",
            _application("ssh"),
            20.0,
            (
                Measure(
                    "application.user.p95_response_time_s",
                    "p95 of echoes",
                    "lower",
                    formats.seconds,
                    "19 of 20 keystrokes echo within {then} instead of {now}",
                ),
            ),
            beside=True,
        ),
    )
}
"""The uses, by name."""
