"""What a link is for: what is simulated of each use, and what its user feels of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from lasthop.fitting import text

DOWNLOAD = '[transfer]\nsize = "unlimited"\n'
"""A bulk download, on its own or beside a use."""

WORTH = 1.05
"""A ratio that is worth an effort: a twentieth."""

NO_USE = 0.4
"""The share of what is worth an effort below which a remedy is of no use."""

WATCHED_S = 60.0
"""How long a film is watched."""

MOS_WORTH = 0.3
"""The narrowest class of satisfaction in table B.1 of ITU-T G.107: from 4.03 to 4.34."""

WAITING_WORTH_S = 0.01 * WATCHED_S
"""One hundredth of a film: viewers who wait so long watch 5 % less of it (Krishnan and Sitaraman 2012)."""

OPINIONS = ("bad", "poor", "fair", "good", "excellent")
"""The words of ITU-T P.800 for mean opinion scores from 1, 2, 3, 4 and 5 on."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of a use, in its user's words.

    Attributes
    ----------
    metric : str
        The metric.
    heading : str
        The head of its column.
    better : {"higher", "lower"}
        Which values are better.
    words : callable
        Writes a value, which is finite.
    change : str
        A sentence with `{now}` and `{then}`; empty if the gain says it all.
    gained : str
        The gain in words, with `{gain}`.
    least : float or None
        The least difference that is worth an effort; None for measures whose ratio is taken.
    """

    metric: str
    heading: str
    better: Literal["higher", "lower"]
    words: Callable[[float], str]
    change: str = ""
    gained: str = "{gain} times as fast"
    least: float | None = None

    @property
    def none(self) -> float:
        """The gain of a remedy that changes nothing."""
        return 1.0 if self.least is None else 0.0

    @property
    def worth(self) -> float:
        """The least gain that is worth an effort."""
        return WORTH if self.least is None else self.least

    @property
    def no_use(self) -> float:
        """The gain below which a remedy is of no use."""
        return self.none + NO_USE * (self.worth - self.none)

    def exceeds(self, gain: float, other: float) -> bool:
        """Whether a gain is more than another by what is worth an effort."""
        return gain > WORTH * other if self.least is None else gain > other + self.least

    def bearable(self, gain: float) -> bool:
        """Whether a gain is no loss that would be worth an effort to avoid."""
        return gain > 1 / WORTH if self.least is None else gain > -self.least

    def worths(self, gain: float) -> float:
        """Return a gain in units of what is worth an effort."""
        if self.least is not None:
            return gain / self.least
        return math.log(gain) / math.log(WORTH) if 0 < gain < math.inf else gain

    def write(self, value: float) -> str:
        """Write a value; one that is unknown is a dash."""
        return self.words(value) if math.isfinite(value) else "-"

    def number(self, gain: float) -> str:
        """Write a gain."""
        return f"{gain:.3g}" if self.least is None else f"{gain:+.2g}"

    def gain(self, gain: float, low: float, high: float) -> str:
        """Write a gain with its interval; empty if there is none."""
        if not math.isfinite(gain):
            return ""
        return f"{self.number(gain)} ({self.number(low)} to {self.number(high)})"

    def sentence(self, now: float, then: float, gain: float, low: float, high: float) -> str:
        """Say what a remedy brings."""
        if not math.isfinite(gain):
            return f"{self.write(then)} in place of next to nothing"
        gained = self.gained.format(gain=self.number(gain))
        gained += f" ({self.number(low)} to {self.number(high)})"
        change = self.change.format(now=self.write(now), then=self.write(then))
        return f"{change}, {gained}" if change else gained


@dataclass(frozen=True, slots=True)
class Use:
    """What a link is for.

    Attributes
    ----------
    name : str
        Its word for `--for`.
    title : str
        What it is called.
    simulated : str
        What is simulated.
    tables : str
        The tables of the scenario.
    limit : str
        How long a run is at most.
    measures : tuple of Measure
        What it is judged by: the first by which some remedy is worth its effort, else the last.
    further : tuple of Measure
        What is shown besides.
    rounds : int
        The runs at the first look, for each draw from what is known of the link.
    beside : bool
        Whether a bulk download shares the link.
    upward : bool
        Whether the data go towards the server.
    tcp : bool
        Whether it uses TCP.
    """

    name: str
    title: str
    simulated: str
    tables: str
    limit: str
    measures: tuple[Measure, ...]
    further: tuple[Measure, ...] = ()
    rounds: int = 1
    beside: bool = False
    upward: bool = False
    tcp: bool = True

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics."""
        return tuple(each.metric for each in (*self.measures, *self.further))

    def scenario(self, link: str) -> str:
        """Return the scenario of a link with this use in place of its download."""
        tables = f"{DOWNLOAD}\n{self.tables}" if self.beside else self.tables
        return link.replace(DOWNLOAD, tables)

    def alone(self) -> Use:
        """Return this use without the download beside it."""
        return replace(self, title=f"{self.title} alone", beside=False)


def mos(value: float) -> str:
    """Write a mean opinion score with the word of ITU-T P.800.

    Examples
    --------
    >>> mos(2.13), mos(1.0), mos(3.96)
    ('"poor" (MOS 2.1)', '"bad" (MOS 1.0)', '"good" (MOS 4.0)')
    """
    # The word is that of the number as it is written.
    whole = math.floor(round(value, 1))
    return f'"{OPINIONS[min(max(whole, 1), len(OPINIONS)) - 1]}" (MOS {value:.1f})'


def waiting(played_s: float) -> str:
    """Write how long a viewer waits in the first minute of which so much was played.

    Examples
    --------
    >>> waiting(48.0), waiting(60.0)
    ('12 s', '0 s')
    """
    left = max(WATCHED_S - played_s, 0.0)
    return text.seconds(left) if left >= 1e-3 else "0 s"


_CALL = "".join(
    f'[traffic.call-{name}]\nfrom = "{start}"\nto = "{end}"\nvoip.codec = "g711-plc"\n\n'
    for name, start, end in (("down", "fixed", "mobile"), ("up", "mobile", "fixed"))
)


def _application(kind: str, further: str = "") -> str:
    return f'[application.user]\nkind = "{kind}"\nfrom = "mobile"\nto = "fixed"\n{further}'


SHORT = "100 KB"
"""Size of a short transfer."""

SHORT_TRANSFER = Measure("completion_time_s", f"p90 of {SHORT}", "lower", text.seconds)
"""The time within which 9 of 10 short transfers end, which have runs of their own."""

_THROUGHPUT = Measure("throughput_bps", "throughput", "higher", text.rate)
_BITRATE = Measure(
    "application.user.mean_bitrate_bps",
    "bitrate",
    "higher",
    text.rate,
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
    WAITING_WORTH_S,
)

USES = {
    use.name: use
    for use in (
        Use(
            "bulk",
            "downloads",
            "a download, 30 s from its start on",
            DOWNLOAD,
            "30 s",
            (_THROUGHPUT,),
            rounds=2,
        ),
        Use(
            "upload",
            "uploads",
            "an upload, 30 s from its start on",
            '[transfer]\nsize = "unlimited"\nfrom = "mobile"\nto = "fixed"\n',
            "30 s",
            (_THROUGHPUT,),
            rounds=2,
            upward=True,
        ),
        Use(
            "web",
            "pages",
            "a page of 1.7 MB over HTTP/2 and TLS, opened once, with nothing else on the link",
            _application("page", 'requests = 1\nthink.constant = "0 s"\n'),
            "60 s",
            (
                Measure(
                    "application.user.mean_page_time_s",
                    "page in",
                    "lower",
                    text.seconds,
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
            f"{WATCHED_S:g} s",
            (_WAITING, _BITRATE),
            rounds=2,
        ),
        Use(
            "call",
            "calls",
            "a call, what the user hears of it for 20 s, beside a download on the same link",
            _CALL,
            "20 s",
            (
                Measure(
                    "traffic.call-down.mos",
                    "call",
                    "higher",
                    mos,
                    "the call goes from {now} to {then}",
                    "{gain}",
                    MOS_WORTH,
                ),
            ),
            beside=True,
            tcp=False,
        ),
        Use(
            "shell",
            "shells",
            "20 s of typing in a remote shell, beside a download on the same link",
            _application("ssh"),
            "20 s",
            (
                Measure(
                    "application.user.p95_response_time_s",
                    "p95 of echoes",
                    "lower",
                    text.seconds,
                    "19 of 20 keystrokes echo within {then} instead of {now}",
                ),
            ),
            beside=True,
        ),
    )
}
"""The uses, by their words."""
