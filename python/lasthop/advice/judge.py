"""Simulates remedies on a link, and judges them for one use at a time."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lasthop._lasthop import Quantity
from lasthop.advice import remedies, wifi
from lasthop.advice.judgement import LOSSES, Change, Effect, Judgement, Limit, Remedy
from lasthop.advice.selection import alternatives, ladder
from lasthop.advice.uses import SHORT, SHORT_TRANSFER, THROUGHPUT, USES, WORTHWHILE_RATIO, Measure, Use
from lasthop.core import formats
from lasthop.core.names import PLAIN
from lasthop.core.paired_quantiles import Span
from lasthop.core.statistics import LEVEL, Sample, paired, paired_difference
from lasthop.engine.stopping import Progress
from lasthop.fitting import FittedLink
from lasthop.fitting.scenario import FASTEST_WIRED_BPS, PERFECT, channel_of, share, values
from lasthop.race import Arm, NoValuesError, Race, RaceError, Ranked

VARIANTS = 32
"""Number of draws of the fitted link's parameters. Runs cycle through them, so means are over all draws."""

REPLACEMENTS = 2
"""Number of remedies that are kept to replace an advised one that harms another use."""

EARLY_ERROR = 0.005
"""The error of what stops remedies early: a tenth of that of the comparison, in addition to it."""

AIR_COST = 5
"""How many times as long a packet over Wi-Fi takes to simulate as one over another link."""

NEIGHBOURS, DISTANCE = "the neighbours' share of the air", "the distance from the access point"
LINE = "the line in front of the Wi-Fi"
"""Limiting factors of Wi-Fi."""

DOWNLOAD, QUEUE_LIMIT, QUEUE_LENGTH = (
    "the download beside it",
    "the queue's limit, with eight times the queue",
    "most of the queue, with an eighth of it",
)


class Judge:
    """Compares remedies on one link.

    Parameters
    ----------
    link : FittedLink
        The link.
    sender : str
        The server's sender now.
    seed : int
        The seed of all runs.
    jobs : int or None
        Threads.
    report : callable
        Called with the current activity and its progress.

    Attributes
    ----------
    made : int
        The runs made so far.
    """

    def __init__(
        self,
        link: FittedLink,
        sender: str,
        *,
        seed: int,
        jobs: int | None,
        report: Callable[[str, Progress], None],
    ) -> None:
        self.link, self.sender = link, sender
        self.now: Arm = Arm(remedies.sender_named(sender).name, PLAIN)
        self.made: int = 0
        self._seed, self._jobs, self._report = seed, jobs, report
        self._variants = 1 if link.is_certain else VARIANTS
        self._rates = remedies.LinkRates(link.rate_bps, link.up_rate_bps)

    def use(self, name: str) -> Use:
        """Return a use by its name, of the sender, with runs that are short enough for the link's rate."""
        use = replace(USES[name], protocol=remedies.sender_named(self.sender).protocol)
        link = self.link
        rate_bps = link.up_rate_bps if use.upward else link.rate_bps
        # A link without a rate is refused when it is simulated.
        if rate_bps is None:
            return use
        return use.shortened(AIR_COST * rate_bps if link.is_wifi else rate_bps, link.rtt_s)

    def judge(self, use: Use, runs: tuple[int, int], *, sole: bool = True) -> Judgement:
        """Try every remedy for a use.

        Parameters
        ----------
        use : Use
            The use.
        runs : (int, int)
            The fewest runs of a remedy that may be advised, and the most.
        sole : bool, default True
            Whether this use alone decides what is advised, so that other remedies may stop earlier.

        Raises
        ------
        RaceError
            If no run of any remedy has the measure, as a page that never loads.
        """
        try:
            return self._judge(use, runs, sole=sole)
        except NoValuesError as error:
            reason = f"{use.title}: over this link none is possible, with any remedy"
            raise RaceError(reason) from error

    def _judge(self, use: Use, runs: tuple[int, int], *, sole: bool) -> Judgement:
        scenario = use.scenario(self.link.scenario())
        tried = remedies.wifi_arms(self.sender, scenario) if self.link.is_wifi else remedies.arms(self.sender)
        # Means of pages depend on a few slow ones, which few runs miss.
        screen = (lambda race: self._decided(race, use)) if sole and use.measures == (THROUGHPUT,) else None
        long = self._compare(use, use.title, tried, runs=runs, screen=screen)
        short = self._short(long.arms, max(VARIANTS, runs[1])) if use.name == "bulk" else {}
        without = self._compare(
            use,
            f"what limits {use.title}",
            [self.now, *(arm for arm, _ in self._limits(use))],
            runs=runs,
        )
        found: list[Remedy] = []
        for measure in use.measures:
            further = (*use.further, *(each for each in use.measures if each is not measure))
            now = _ranked(long, measure)[long.baseline].mean.value
            limits = self._measured(without, use, measure, now)
            found = self._remedies(long, use, measure, further, limits, short)
            if any(each.worth for each in found):
                break
        return Judgement(
            use=use,
            measure=measure,
            further=(*further, SHORT_TRANSFER) if short else further,
            now=next(each for each in found if each.arm == long.baseline),
            limits=tuple(limits),
            remedies=tuple(found),
            advised=tuple(ladder(found, measure)),
            refused=tuple((each.arm.label, each.reason) for each in long.refused if each.same is None),
        )

    def effects(self, use: Use, arms: Sequence[Arm], runs: int | None) -> dict[Arm, Effect]:
        """Return the effects of remedies on another use; empty if the use is impossible over the link.

        Each arm has `runs` runs, by default as many as judge the use.
        """
        if not arms:
            return {}
        try:
            compared = self._compare(
                use,
                f"what happens to {use.title}",
                [self.now, *arms],
                runs=(runs or use.rounds * VARIANTS,) * 2,
                precision=None,
            )
            tables = {measure: _ranked(compared, measure) for measure in use.measures}
        except NoValuesError:
            return {}
        return {
            arm: Effect(use, tuple(_change(compared, *each, arm) for each in tables.items()))
            for arm in compared.arms
            if arm != compared.baseline
        }

    # -- Comparisons ---------------------------------------------------------------------------------

    def _compare(self, use: Use, what: str, arms: Sequence[Arm], **settings: Any) -> Race:
        changes = settings.pop("changes", {"limit": use.limit_s})
        if use.upward and not self.link.knows_uplink_losses:
            changes = {**changes, "radio.uplink.channel": self._upward()}
        measure = settings.pop("metric", use.measures[-1].metric)
        race = Race(
            use.scenario(self.link.scenario()),
            arms,
            baseline=self.now,
            metric=measure,
            metrics=[] if "metric" in settings else use.metrics,
            seed=self._seed,
            overrides=[changes],
            variants=self._draws(use),
            **settings,
        )
        self.made += race.run(self._jobs, lambda done: self._report(what, done))
        return race

    def _draws(self, use: Use) -> list[dict[str, Any]]:
        """Return changes that sample the uncertainty of the link, in the direction of the data."""
        return [{}] if self.link.is_certain else self.link.draws(VARIANTS, mirrored=use.upward)

    def _upward(self) -> Any:
        """Return the uplink channel assumed without measurements of the uplink: that of the downlink."""
        stated = self.link.stated
        return values(channel_of(self.link.down) if stated is None else stated.channel)

    def _short(self, arms: Sequence[Arm], most: int) -> Mapping[Arm, float]:
        """Return the time within which 9 of 10 short downloads end, for each arm, by `most` runs at most.

        A mean would be that of a few runs in which a burst swallowed one SYN after the other.
        """
        changes: dict[str, Any] = {"transfer.size": SHORT, "limit": 300}
        if remedies.sender_named(self.sender).protocol == "TCP":
            # Splits need to see the end of a transfer.
            changes["tcp.close"] = True
        try:
            short = self._compare(
                USES["bulk"],
                "short transfers",
                arms,
                metric=SHORT_TRANSFER.metric,
                changes=changes,
                runs=(VARIANTS, most),
                precision=0.02,
            )
        except NoValuesError:
            # No transfer ends.
            return {}
        return {arm: _most(short.values(arm)) for arm in short.arms}

    # -- Limits --------------------------------------------------------------------------------------

    def _limits(self, use: Use) -> list[tuple[Arm, str]]:
        """Return arms that each remove one limiting factor, with the names of the factors."""
        candidates = self._air(use) if self.link.is_wifi else self._losses_and_queue(use)
        if use.beside:
            # A download that starts as the run ends.
            late = use.limit_s - 1e-3
            candidates.append(((("transfer.start", late),), DOWNLOAD))
        if self.link.rtt_s > self.link.last_hop_rtt_s:
            candidates.append(((("wired.delay", 0),), "the delay before the last hop"))
        return [(Arm(self.now.sender, self.now.scheme, settings), name) for settings, name in candidates]

    def _air(self, use: Use) -> list[tuple[wifi.Settings, str]]:
        """Return the settings that remove the limiting factors of Wi-Fi, with their names."""
        scenario = self.link.scenario()
        candidates: list[tuple[wifi.Settings, str]] = []
        if wifi.share_of_neighbours(scenario) > 0:
            candidates.append(((("wifi.neighbour", None),), NEIGHBOURS))
        if wifi.signal_db(scenario) < math.inf:
            # A signal that fades needs a mean.
            signal = [key for key in ("wifi.snr", "wifi.fading") if key in scenario]
            candidates.append((tuple((key, None) for key in signal), DISTANCE))
        if "wifi.power_save" in scenario:
            candidates.append(((("wifi.power_save", None),), "power save"))
        if "wifi.roaming" in scenario:
            candidates.append(((("wifi.roaming", None),), "roaming"))
        if "wifi.interference" in scenario:
            candidates.append(((("wifi.interference", None),), "interference"))
        losses = (*scenario["wifi.drop"].values(), *scenario["wifi.loss"].values())
        if any(losses) or scenario["wifi.channel"] != PERFECT:
            none = {"down": 0.0, "up": 0.0}
            without = (("wifi.drop", none), ("wifi.loss", none), ("wifi.channel", PERFECT))
            candidates.append((without, LOSSES))
        line = scenario["wired.rate"]
        if isinstance(line, Mapping) or line < FASTEST_WIRED_BPS:
            candidates.append(((("wired.rate", FASTEST_WIRED_BPS),), LINE))
        if isinstance(scenario["wifi.queue"], Quantity):
            packets = self.link.queue_packets
            length = max(2, packets // 8) if use.beside else 8 * packets
            candidates.append(
                ((("wifi.queue", Quantity(length, "packets")),), QUEUE_LENGTH if use.beside else QUEUE_LIMIT)
            )
        return candidates

    def _losses_and_queue(self, use: Use) -> list[tuple[wifi.Settings, str]]:
        """Return the settings that remove losses, their bursts and the queue, with their names."""
        link = self.link
        loss = link.down.best.model["loss"] if link.down is not None else 0.0
        perfect = (("radio.channel", PERFECT), ("radio.uplink.channel", PERFECT))
        candidates: list[tuple[wifi.Settings, str]] = [(perfect, LOSSES)]
        if link.down is not None and link.down.parameter("bad_s") is not None:
            spread = {"frame-loss": {"loss": share(loss).value}}
            candidates.append(
                ((("radio.channel", spread),), f"bursts: independent losses of {formats.share(loss)}")
            )
        if use.beside:
            queue = Quantity(max(2, link.queue_packets // 8), "packets")
            candidates.append((((remedies.QUEUE, queue),), QUEUE_LENGTH))
        else:
            queue = Quantity(8 * link.queue_packets, "packets")
            candidates.append((((remedies.QUEUE, queue),), QUEUE_LIMIT))
        return candidates

    def _measured(self, without: Race, use: Use, measure: Measure, now: float) -> list[Limit]:
        """Return the limiting factors; their values are gains applied to the one value of now."""
        names = dict(self._limits(use))
        limits = []
        for arm, ranked in _ranked(without, measure).items():
            if arm in names:
                gain, low, high = _gain(without, ranked, measure)
                matters = bool(low > measure.threshold)
                value = _then(now, gain, measure) if math.isfinite(gain) else ranked.mean.value
                limits.append(Limit(names[arm], value, gain, low, high, matters))
        return sorted(limits, key=lambda limit: limit.value, reverse=measure.better == "higher")

    # -- Remedies ------------------------------------------------------------------------------------

    def _decided(self, race: Race, use: Use) -> list[Arm]:
        """Return the arms of which early runs tell enough.

        Each is surely harmful, of no use, worthwhile or between these; and if it is worthwhile, some rung of
        the advice so far takes no more effort and is surely better, or takes less and is surely at most 5 %
        worse. Rungs and the remedies that may replace the first of them for its harm go on.
        """
        measure = THROUGHPUT
        try:
            found = self._remedies(race, use, measure)
        except NoValuesError:
            return []
        rungs = ladder(found, measure)
        others = alternatives(found, rungs[0], measure)[:REPLACEMENTS] if rungs else []
        kept = {each.arm for each in (*rungs, *others)}
        tests = race.tests(EARLY_ERROR, race.early_looks)

        def beaten(each: Remedy, rung: Remedy) -> bool:
            effort, least = each.deployment.effort, rung.deployment.effort
            pair = race.pair(rung.arm, each.arm, measure.metric)
            return (least <= effort and tests.worse(*pair[::-1])) or (
                least < effort and tests.as_good(*pair, 1 - 1 / WORTHWHILE_RATIO)
            )

        return [
            each.arm
            for each in found
            if each.arm not in kept
            and _is_known(race, each)
            and (not each.worth or not each.deployment.available or any(beaten(each, rung) for rung in rungs))
        ]

    def _remedies(
        self,
        long: Race,
        use: Use,
        measure: Measure,
        further: Sequence[Measure] = (),
        limits: Sequence[Limit] = (),
        short: Mapping[Arm, float] | None = None,
    ) -> list[Remedy]:
        """Return the remedies, the best first."""
        ranking = _ranked(long, measure)
        others = [_ranked(long, each) for each in further]
        now = ranking[long.baseline]
        found = []
        for arm, ranked in ranking.items():
            gains, ends = self._interval(long, ranked, now, measure)
            # The mean over draws of an undetermined link may be that of a few absurd ones.
            unknown = bool(self.link.cannot_tell) and math.isfinite(gains[0]) and math.isinf(gains[2])
            shown = tuple(each[arm].mean.value for each in others)
            remedy = Remedy(
                arm=arm,
                title=remedies.title(arm, self.sender),
                meaning=remedies.meaning(arm),
                deployment=remedies.deployment(arm, self.sender, _source(use), self._rates),
                value=_then(now.mean.value, gains[0], measure)
                if math.isfinite(gains[0])
                else ranked.mean.value,
                low=ends[0],
                high=ends[1],
                gain=gains[0],
                gain_low=gains[1],
                gain_high=gains[2],
                further=(*shown, short.get(arm, math.nan)) if short else shown,
                status=ranked.status,
                worth=ranked.significant
                and not unknown
                and (ranked.mean.low > 0 if math.isinf(gains[0]) else gains[0] >= measure.threshold),
                useless=ranked is not now and gains[2] < measure.negligible,
            )
            idle = long.without_effect(arm).values()
            found.append(replace(remedy, why=_why(remedy, use, measure, limits, next(iter(idle), ""))))
        return sorted(found, key=lambda each: each.value, reverse=measure.better == "higher")

    def _interval(
        self, long: Race, ranked: Ranked, now: Ranked, measure: Measure
    ) -> tuple[list[float], list[float]]:
        """Return the gain of an arm with its interval, and the interval of its value."""
        if ranked is now:
            return [measure.no_change] * 3, [now.mean.low, now.mean.high]
        gain, low, high = _gain(long, ranked, measure)
        if not math.isfinite(gain):
            # The baseline is not significantly above zero, so there is no ratio.
            return [math.inf, math.nan, math.nan], [ranked.mean.low, ranked.mean.high]
        # The interval of the comparison is for the mean over the draws; that for the true link is at least
        # as wide. Of an arm that stopped early, it is the narrower of two that the variation between runs
        # widens: over common runs the fades are the same, over all runs the baseline varies less.
        ours, theirs = (long.sample(each, measure.metric) for each in (ranked.arm, long.baseline))
        samples = [(ours, theirs[: len(ours)]), long.pair(ranked.arm, long.baseline, measure.metric)]
        spreads = [_spread(*each, self._variants, measure) for each in samples]
        least, most = min(spreads, key=lambda ends: ends[1] - ends[0])
        gains = [gain, min(least, low), max(most, high)]
        ends = sorted(_then(now.mean.value, each, measure) for each in gains[1:])
        return gains, ends


def _ranked(race: Race, measure: Measure) -> dict[Arm, Ranked]:
    """Return the ranking of a race with the numbers of a measure, by arm."""
    return {each.arm: each for each in race.ranking(measure.metric)}


def _gain(race: Race, ranked: Ranked, measure: Measure) -> tuple[float, float, float]:
    """Return the gain of an arm with the race's interval; infinite if there is no ratio."""
    if measure.min_difference is not None:
        value, low, high = ranked.difference.value, ranked.difference.low, ranked.difference.high
        if math.isnan(value) or math.isnan(low) or math.isnan(high):
            return 0.0, 0.0, 0.0
        return (value, low, high) if measure.better == "higher" else (-value, -high, -low)
    ratio = _ratio(race, ranked, measure)
    if not math.isfinite(ratio.value):
        return math.inf, math.nan, math.nan
    if measure.better == "higher":
        return ratio.value, ratio.low, ratio.high
    return _inverse(ratio.value), _inverse(ratio.high), _inverse(ratio.low)


def _ratio(race: Race, ranked: Ranked, measure: Measure) -> Span:
    """Return the ratio of an arm to the baseline, by way of the leader where that is more precise.

    An arm that stopped early may be like the leader over its few runs; the leader's own ratio is of more.
    """
    if not ranked.stopped_early:
        return ranked.ratio
    leader = race.leader()
    pairs = (race.pair(ranked.arm, leader, measure.metric), race.pair(leader, race.baseline, measure.metric))
    # The narrower of two intervals holds the ratio less often than each, so this one has half the error.
    level = 1 - (1 - LEVEL) / 2
    first, second = (paired_difference(*paired(*pair), level).ratio for pair in pairs)
    if first is None or second is None:
        return ranked.ratio
    # The interval of a product by Zou and Donner, "Construction of confidence limits about effect measures"
    # (Statistics in Medicine 27, 2008).
    below, above = (
        math.hypot((one - first.mean) * second.mean, (other - second.mean) * first.mean)
        for one, other in ((first.low, second.low), (first.high, second.high))
    )
    value = first.mean * second.mean
    return Span(value, value - below, value + above) if below + above < _width(ranked.ratio) else ranked.ratio


def _width(span: Span) -> float:
    return span.high - span.low


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio > 0 else math.inf


def _then(now: float, gain: float, measure: Measure) -> float:
    """Apply a gain to the value of a measure."""
    if measure.min_difference is not None:
        return now + gain if measure.better == "higher" else now - gain
    if measure.better == "higher":
        return now * gain
    return now / gain if gain > 0 else math.inf


def _spread(ours: Sample, theirs: Sample, variants: int, measure: Measure) -> tuple[float, float]:
    """Return a 95 % prediction interval for the gain on the true link, which is treated as one more draw.

    Ratios are treated as lognormal over draws, differences as normal. The variation between the runs of a
    draw widens the interval.
    """
    from scipy.special import stdtrit

    if variants == 1:
        return math.inf, -math.inf
    if measure.min_difference is not None:
        known = len(ours) >= variants and bool(np.all(np.isfinite(ours - theirs)))
        if not known:
            return -math.inf, math.inf
        gains = ours - theirs if measure.better == "higher" else theirs - ours
    else:
        if len(ours) < variants or not bool(np.all((ours > 0) & (theirs > 0))):
            return 0.0, math.inf
        gains = np.log(ours / theirs) if measure.better == "higher" else np.log(theirs / ours)
    half = float(stdtrit(variants - 1, 0.975)) * float(gains.std(ddof=1)) * math.sqrt(1 + 1 / variants)
    ends = float(gains.mean()) - half, float(gains.mean()) + half
    return ends if measure.min_difference is not None else (math.exp(ends[0]), math.exp(ends[1]))


def _most(times: Sample) -> float:
    """Return the 90 % quantile of times, of which NaN are the longest; NaN if it is one of them."""
    most = float(np.quantile(np.nan_to_num(times, nan=math.inf), 0.9, method="higher"))
    return most if math.isfinite(most) else math.nan


def _change(race: Race, measure: Measure, ranking: Mapping[Arm, Ranked], arm: Arm) -> Change:
    now = next(each for each in ranking.values() if each.baseline)
    then = ranking[arm]
    gain, low, high = _gain(race, then, measure)
    significant = then.significant and math.isfinite(gain)
    harms = significant and not measure.tolerable(gain)
    helps = significant and gain >= measure.threshold
    return Change(measure, now.mean.value, then.mean.value, gain, low, high, harms, helps)


def _is_known(race: Race, remedy: Remedy) -> bool:
    """Whether the throughput with a remedy is surely harmful, of no use, worthwhile, or between these."""
    measure = THROUGHPUT
    pair = race.pair(remedy.arm, race.baseline, measure.metric)
    ratio = paired_difference(*paired(*pair), 1 - EARLY_ERROR / race.early_looks).ratio
    if ratio is None or not (ratio.settled or ratio.method == "alike"):
        return False
    bounds = [1 / WORTHWHILE_RATIO, measure.negligible, measure.threshold]
    # What is of no use is told by the interval for the true link.
    useless = ratio.high < measure.negligible
    return bisect(bounds, ratio.low) == bisect(bounds, ratio.high) and remedy.useless == useless


def _source(use: Use) -> remedies.DataSender:
    """Return the sender of the simulated data."""
    if use.upward:
        return remedies.DEVICE
    return remedies.MANY_SERVERS if use.beside else remedies.ONE_SERVER


def _why(remedy: Remedy, use: Use, measure: Measure, limits: Sequence[Limit], idle: str) -> str:
    """Return why a remedy is of no use, as far as it is known; else an empty string.

    `idle` is the reason why its scheme had no effect in any run; empty if it had.
    """
    if not remedy.useless:
        return ""
    tcp = remedies.changes_only_tcp(remedy.arm)
    queue = remedies.discipline(remedy.arm) is not None
    air = bool(wifi.within(dict(remedy.arm.settings)))
    if idle:
        return f"no effect on this sender, because {idle}"
    if not measure.tolerable(remedy.gain_high):
        return "a faster download fills the queue" if use.beside and tcp else "it does harm"
    not_limiting = {limit.name for limit in limits if limit.high < measure.negligible}
    if LOSSES not in {limit.name for limit in limits}:
        # The link has no losses.
        not_limiting.add(LOSSES)
    if tcp and not use.tcp:
        return f"it changes the download, and {use.title} are not TCP"
    if not queue and not air and LOSSES in not_limiting:
        return "losses are not what limits it"
    if queue and not_limiting & {QUEUE_LENGTH, QUEUE_LIMIT}:
        return "the queue is not what limits it"
    if use.beside and dict(remedy.arm.settings).get(remedies.QUEUE) not in (None, remedies.FAIR):
        return "packets still wait behind those of the download"
    return ""
