"""Loss models fitted to a measurement: model selection, parameters with intervals, goodness of fit."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import LossFit, LossRecord
from lasthop.core import formats
from lasthop.core.formats import plural
from lasthop.measurement import Counts, Direction, Probes

Floats = npt.NDArray[np.float64]
Model = dict[str, float]
"""A loss model by the names of its parameters. Independent losses have only `loss`. Models with good and bad
periods also have the means `good_s`, `bad_s`, the sigmas `good_sigma`, `bad_sigma` (NaN for exponential
lengths), `loss_good` and `loss_bad`."""

REPLICATES = 200
"""Bootstrap replicates for each interval."""

FEWEST_LOSSES = 10
"""With fewer losses, neither the loss rate (within a factor of two) nor burstiness can be estimated."""

HIDDEN_BURST_S = 0.01
"""The shortest mean burst that matters to TCP: eight packets of 1500 B at 10 Mb/s."""

WIDEST = 10.0
"""A mean length counts as determined if the ends of its interval differ by at most this factor."""

LOSSES_IN_BAD_PERIODS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Losses in bad periods that are compared with the fitted one for counts."""

MOST_COUNTED = 10_000_000
"""Limit of the packets in one interval; each is simulated."""

MOST_FITTED = 1_000_000
"""Limit of the packets of a record of probes: a fit takes time in proportion, minutes for so many."""

MOST_LOST = 1000
"""A record with more losses in an interval is thinned, since the likelihood takes time in proportion."""

TOO_MANY_COUNTED = f"an interval with more than {MOST_COUNTED:,} packets; measure in shorter intervals"
"""The error if there are more."""

FEWEST_REPLICATES = 100
"""With fewer replicates no check can fail: the smallest p-value is one over their number."""

RARE = 0.02
"""Models with a smaller weight are left out of intervals and draws, except the best."""

IMPOSSIBLE = 9.2
"""Shortfall in log-likelihood at which a draw is excluded: one in 1,000 of four parameters (Wilks)."""

DOUBTFUL = 0.05
"""Significance level of the checks together, by Holm's method."""

NAMES = {
    "loss": "loss",
    "bad_s": "mean bad period",
    "good_s": "mean good period",
    "loss_bad": "loss in bad periods",
    "loss_good": "loss in good periods",
    "bad_sigma": "sigma of bad periods",
    "good_sigma": "sigma of good periods",
}
"""The parameters of loss models, with descriptions."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model fitted to the record, chosen or not.

    Attributes
    ----------
    family : str
        Its family, one of `lasthop._lasthop.LOSS_FAMILIES`.
    parameters : int
        The number of parameters.
    log_likelihood, bic : float
        The log-likelihood, and the Bayesian information criterion (BIC; smaller is better).
    weight : float
        The weight among the candidates by BIC.
    model : Model
        The maximum-likelihood parameters.
    """

    family: str
    parameters: int
    log_likelihood: float
    bic: float
    weight: float
    model: Model


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the chosen model with its 95 % interval.

    Attributes
    ----------
    name : str
        A key of `NAMES`. Names that end in `_s` are in seconds.
    value, low, high : float
        The maximum-likelihood estimate and the ends of its interval.
    determined : bool
        Whether the measurement determines the parameter: the interval is bounded and, for a mean length, at
        most a factor of ten wide.
    """

    name: str
    value: float
    low: float
    high: float
    determined: bool

    def write(self, value: float) -> str:
        """Format a value of this parameter with its unit."""
        if self.name.endswith("sigma"):
            return f"{value:.2g}"
        return formats.seconds(value) if self.name.endswith("_s") else formats.share(value)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A goodness-of-fit check: a histogram of the record beside those of the replicates.

    Attributes
    ----------
    name : str
        `"bursts"`, `"gaps"`, `"after_loss"` or `"by_time"`.
    p_value : float
        The share of replicates at least as far from the simulated mean.
    observed, low, high : array of float
        The histogram of the record, and the range of 95 % of the replicates.
    """

    name: str
    p_value: float
    observed: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class FittedLosses:
    """Loss models fitted to one direction of a link.

    Attributes
    ----------
    data : Probes or Counts
        The record.
    sent, lost : int
        Packets sent, and packets lost.
    duration_s, spacing_s : float
        Duration of the record, and the median time between packets.
    candidates : tuple of Candidate
        All fitted models, best first.
    parameters : tuple of Parameter
        The parameters of the best model.
    draws : tuple of Model
        Models that sample the uncertainty: of the parameters, of model selection by weight, and of the burst
        length if the record does not determine it.
    checks : tuple of Check
        Goodness of fit of the best model; empty without losses, or with fewer than 100 replicates.
    hidden_burst_s : float or None
        The longest mean burst that the record does not exclude, if the best model has independent losses;
        otherwise None.
    cannot_tell : tuple of str
        What the record does not determine, as phrases.
    """

    data: Probes | Counts
    sent: int
    lost: int
    duration_s: float
    spacing_s: float
    candidates: tuple[Candidate, ...]
    parameters: tuple[Parameter, ...]
    draws: tuple[Model, ...]
    checks: tuple[Check, ...]
    hidden_burst_s: float | None
    cannot_tell: tuple[str, ...]

    @property
    def direction(self) -> Direction:
        """The direction of the packets."""
        return self.data.direction

    @property
    def best(self) -> Candidate:
        """The chosen model: the candidate with the smallest BIC."""
        return self.candidates[0]

    @property
    def doubtful(self) -> tuple[Check, ...]:
        """The checks that the best model fails."""
        ranked = sorted(self.checks, key=lambda check: check.p_value)
        failed = []
        for index, check in enumerate(ranked):
            if check.p_value * (len(ranked) - index) >= DOUBTFUL:
                break
            failed.append(check)
        return tuple(failed)

    def lines(self) -> list[str]:
        """Return the parameters of the best model with their intervals, a line for each."""
        lines = [
            f"{NAMES[each.name]} {each.write(each.value)} "
            f"({formats.interval(each.low, each.high, each.write)})"
            for each in self.parameters
        ]
        if self.parameter("bad_s") is not None:
            model = self.best.model
            lines.append(
                f"three copies at once: {formats.share(lost_copies(model, 3))} lost, where independent "
                f"losses would leave {formats.share(model['loss'] ** 3)}"
            )
        return lines

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter of the best model by name; None if the model does not have it."""
        return next((each for each in self.parameters if each.name == name), None)


def lost_copies(model: Model, copies: int) -> float:
    """Return the probability that all copies of a packet are lost if they are sent at once.

    All copies meet the same channel state. For independent losses this is `loss ** copies`.

    Examples
    --------
    >>> bursty = {"loss": 0.1, "good_s": 9.0, "bad_s": 1.0, "loss_good": 0.0, "loss_bad": 1.0}
    >>> lost_copies(bursty, 3)
    0.1
    """
    if math.isnan(model["bad_s"]):
        return model["loss"] ** copies
    bad = model["bad_s"] / (model["good_s"] + model["bad_s"])
    return float(bad * model["loss_bad"] ** copies + (1 - bad) * model["loss_good"] ** copies)


def record_of(data: Probes | Counts) -> LossRecord:
    """Return the loss record that the fits take.

    If an interval has more than `MOST_LOST` losses, the same share of the packets of each interval is kept,
    at random: their losses follow the same channel.

    Raises
    ------
    ValueError
        If there are fewer than two probes (or intervals with packets), or too many packets.
    """
    if isinstance(data, Probes):
        if len(data.lost) > MOST_FITTED:
            raise ValueError(
                f"{len(data.lost):,} packets, of which at most {MOST_FITTED:,} are fitted; cut the file into "
                "pieces, such as an hour each"
            )
        return LossRecord.of_probes(
            np.ascontiguousarray(data.sent_s, dtype=np.float64), np.ascontiguousarray(data.lost)
        )
    some = (data.sent > 0) & (data.interval_s > 0)
    if int(np.max(data.sent, initial=0)) > MOST_COUNTED:
        raise ValueError(TOO_MANY_COUNTED)
    sent, lost, until_arrival = data.sent[some], data.lost[some], data.until_arrival
    # Those of a long outage take no time.
    own = np.minimum(lost, 2 * int(np.median(sent))) if until_arrival and len(sent) else lost
    if (most := int(np.max(own, initial=0))) > MOST_LOST:
        until_arrival = False
        thinned = np.maximum(np.rint(sent * (MOST_LOST / most)), 1).astype(np.int64)
        sent, lost = thinned, np.random.default_rng(1).hypergeometric(lost, sent - lost, thinned)
    return LossRecord.of_counts(
        np.ascontiguousarray(data.time_s[some], dtype=np.float64),
        np.ascontiguousarray(data.interval_s[some], dtype=np.float64),
        np.ascontiguousarray(sent, dtype=np.uint32),
        np.ascontiguousarray(lost, dtype=np.uint32),
        until_arrival,
    )


def fit_losses(
    data: Probes | Counts, *, seed: int = 1, replicates: int = REPLICATES, jobs: int | None = None
) -> FittedLosses:
    """Fit all loss models to a record and choose one by BIC.

    Parameters
    ----------
    data : Probes or Counts
        The record.
    seed : int, default 1
        The seed of the bootstrap.
    replicates : int, default 200
        The number of bootstrap replicates.
    jobs : int, optional
        Threads; by default one per core. The result does not depend on it.

    Returns
    -------
    FittedLosses
        The chosen model, its parameters with intervals, and what the record does not determine.

    Raises
    ------
    ValueError
        If there are fewer than two probes, or fewer than two intervals with packets.

    Examples
    --------
    >>> import numpy as np
    >>> from lasthop.fitting import fit_losses
    >>> from lasthop.measurement import Direction, Probes
    >>> lost = np.zeros(6000, dtype=bool)
    >>> for start in range(50, 6000, 300):
    ...     lost[start : start + 20] = True
    >>> probes = Probes(Direction.DOWN, np.arange(6000) * 0.02, lost, None)
    >>> found = fit_losses(probes, replicates=20)
    >>> f"{found.parameter('bad_s').value:.2f}"
    '0.39'
    """
    record = record_of(data)
    threads = jobs or os.cpu_count() or 1
    fits = sorted(record.fits(), key=lambda found: found.bic)
    weights = _weights([found.bic for found in fits])
    # Intervals and draws weigh models by the AIC: the BIC leaves out parameters that are small and yet
    # matter, such as a loss in good periods, or the tail of a lognormal distribution. But if losses look
    # independent, bursts shorter than the probes can see would be a guess.
    bursty = fits[0].family != "independent"
    shares = _weights([found.aic for found in fits]) if bursty else weights
    candidates = tuple(
        Candidate(found.family, found.parameters, found.log_likelihood, found.bic, float(weight), found.model)
        for found, weight in zip(fits, weights, strict=True)
    )
    replicated, shapes = fits[0].bootstrap(replicates, seed, threads)
    bootstrapped = [_Replicates.of(candidates[0], float(shares[0]), replicated)]
    for found, candidate, share in zip(fits[1:], candidates[1:], shares[1:], strict=True):
        count = round(share * replicates)
        if share >= RARE and count:
            values = found.bootstrap(count, seed, threads)[0]
            bootstrapped.append(_Replicates.of(candidate, float(share), values))
    ridge = _Ridge.of(fits) if isinstance(data, Counts) and bursty else None
    parameters = tuple(_parameters(candidates[0].model, bootstrapped, record, ridge))
    hidden, profile_draws = _hidden(record, replicates)
    independent = "bad_s" not in {each.name for each in parameters}
    cannot_tell = tuple(_cannot_tell(data, record, parameters, independent, hidden, ridge))
    draws: list[Model] = []
    if record.lost in (0, record.sent):
        draws = _certain(record, replicates)
    elif independent and cannot_tell and profile_draws:
        draws = profile_draws
    else:
        for each in bootstrapped:
            draws += each.models(round(each.share * replicates))
        if len(draws) < 0.9 * replicates and profile_draws:
            # Many replicates have no losses at all; the rest would be a biased sample.
            draws = profile_draws
        else:
            # The gain of lognormal lengths is that of decoded periods, and no likelihood of the record.
            most = max(each.log_likelihood for each in candidates if each.family != "semi-markov")
            draws = [draw for draw in draws if _is_possible(draw, record, most)] or draws
            if ridge is not None:
                draws = ridge.spread(draws)
    checked = record.lost > 0 and replicates >= FEWEST_REPLICATES
    return FittedLosses(
        data=data,
        sent=int(data.sent.sum()) if isinstance(data, Counts) else record.sent,
        lost=int(data.lost.sum()) if isinstance(data, Counts) else record.lost,
        duration_s=record.duration_s,
        spacing_s=record.spacing_s,
        candidates=candidates,
        parameters=parameters,
        draws=tuple(draws),
        checks=tuple(_checks(record.shape(), shapes)) if checked else (),
        hidden_burst_s=hidden if independent else None,
        cannot_tell=cannot_tell,
    )


def _weights(criteria: Sequence[float]) -> Floats:
    """Return the weights of models by a criterion, the least of which is best."""
    weights = np.exp((min(criteria) - np.asarray(criteria)) / 2)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _is_possible(draw: Model, record: LossRecord, most: float) -> bool:
    """Whether the record does not exclude a draw; a loss near zero may be reflected to an absurd one.

    True for lognormal lengths, whose likelihood is unknown.
    """
    found = record.log_likelihood(draw)
    return found is None or most - found <= IMPOSSIBLE


def _scale(name: str, values: npt.ArrayLike) -> Floats:
    """Transform lengths to logarithms and shares to logits. NaN becomes infinity."""
    array = np.asarray(values, dtype=np.float64)
    if name.startswith("loss"):
        inside = np.clip(array, 1e-9, 1 - 1e-9)
        scaled = np.log(inside / (1 - inside))
    else:
        scaled = np.log(np.maximum(array, 1e-12))
    return np.where(np.isnan(array), np.inf, scaled)


def _unscale(name: str, scaled: npt.ArrayLike) -> Floats:
    array = np.asarray(scaled, dtype=np.float64)
    with np.errstate(over="ignore"):
        if name.startswith("loss"):
            return np.asarray(1 / (1 + np.exp(-array)), dtype=np.float64)
        return np.asarray(np.exp(array), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Replicates:
    """Bootstrapped parameters of a candidate.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    share : float
        The weight among the candidates by AIC.
    values : mapping of str to array of float
        The values of each parameter, one for each replicate.
    """

    candidate: Candidate
    share: float
    values: Mapping[str, Floats]

    @classmethod
    def of(cls, candidate: Candidate, share: float, replicated: Mapping[str, Floats]) -> _Replicates:
        """Reflect the estimates of the replicates at the fitted value, on the transformed scale.

        Quantiles of the reflected values are basic bootstrap intervals. For the mean of fully observed
        exponential lengths these are exact at any sample size. Lognormal lengths are Studentised: a sample
        with few long periods underestimates both the mean and its standard error.
        """
        model = candidate.model
        lognormal = candidate.family == "semi-markov"
        # A replicate with too few periods is not fitted by a lognormal distribution.
        some = ~np.isnan(replicated["good_s"]) if lognormal else np.full(len(replicated["loss"]), True)
        replicated = {name: values[some] for name, values in replicated.items()}
        reflected = {}
        for name in NAMES:
            if math.isnan(model[name]):
                continue
            apart = _scale(name, replicated[name]) - _scale(name, model[name])
            ratio = _error(name, model) / _error(name, replicated) if lognormal else 1.0
            reflected[name] = _unscale(name, _scale(name, model[name]) - ratio * apart)
        return cls(candidate, share, reflected)

    def models(self, count: int) -> list[Model]:
        """Return models for the first `count` replicates, without those whose parameters are undetermined."""
        model = self.candidate.model
        known = [name for name in self.values if name != "loss"] or ["loss"]
        draws: list[Model] = []
        for index in range(min(count, len(self.values["loss"]))):
            drawn = dict.fromkeys(NAMES, math.nan)
            for name in known:
                fixed = name.startswith("loss_") and model[name] in (0.0, 1.0)
                drawn[name] = model[name] if fixed else float(self.values[name][index])
            if not all(
                math.isfinite(drawn[name]) and drawn[name] > 0.0 for name in known if name.endswith("_s")
            ):
                continue
            if "good_s" in known:
                good, bad = drawn["good_s"], drawn["bad_s"]
                drawn["loss"] = (good * drawn["loss_good"] + bad * drawn["loss_bad"]) / (good + bad)
            draws.append(drawn)
        return draws


def _error(name: str, models: Mapping[str, float] | Mapping[str, Floats]) -> Floats:
    """Return the standard error of a transformed parameter, scaled to a single period."""

    def variance(sigma: float | Floats) -> Floats:
        # Variance of the logarithm of the estimated mean, times the number of lengths.
        squared = np.square(sigma)
        return np.where(np.isnan(sigma), 1.0, squared + squared * squared / 2)

    good, bad = variance(models["good_sigma"]), variance(models["bad_sigma"])
    if name == "loss":
        return np.sqrt(good + bad)
    return np.sqrt({"good_s": good, "bad_s": bad}.get(name, np.ones_like(good)))


@dataclass(frozen=True, slots=True, eq=False)
class _Ridge:
    """Models that differ in the loss in bad periods and explain counts as well as the chosen one.

    If bad periods are much shorter than the intervals, counts determine the packets lost in a period, but not
    its length: a period has a geometric number of losses, whether it is short and loses every packet, or
    longer and loses a share.

    Attributes
    ----------
    loss_bad : array of float
        The losses in bad periods within the likelihood interval of 95 %; that of the chosen model first.
    good, bad : array of float
        The mean lengths of good and bad periods over those of the chosen model.
    weights : array of float
        The likelihoods over that of the chosen model.
    """

    loss_bad: Floats
    good: Floats
    bad: Floats
    weights: Floats

    @classmethod
    def of(cls, fits: Sequence[LossFit]) -> _Ridge | None:
        """Return the models, or None if the chosen one stands alone. `fits` are in order, best first."""
        best = next(found for found in fits if found.family != "semi-markov")
        if best.family == "independent":
            return None
        model = best.model
        others = np.array([each for each in LOSSES_IN_BAD_PERIODS if each != model["loss_bad"]])
        likelihood, models = best.bad_loss_profile(others)
        # Wilks' theorem: twice the difference is chi-squared with one degree of freedom.
        most = max(best.log_likelihood, float(np.max(likelihood)))
        some = likelihood >= most - 3.84 / 2
        if not some.any():
            return None

        def column(chosen: float, values: Floats) -> Floats:
            return np.append(chosen, values[some])

        return cls(
            column(model["loss_bad"], others),
            column(1.0, models["good_s"] / model["good_s"]),
            column(1.0, models["bad_s"] / model["bad_s"]),
            column(1.0, np.exp(likelihood - best.log_likelihood)),
        )

    def widened(self, name: str, low: float, high: float) -> tuple[float, float]:
        """Return the interval of a parameter over all models."""
        if name == "loss_bad":
            return min(low, float(self.loss_bad.min())), max(high, float(self.loss_bad.max()))
        if name in ("good_s", "bad_s"):
            ratios = self.good if name == "good_s" else self.bad
            return low * float(ratios.min()), high * float(ratios.max())
        return low, high

    def spread(self, draws: Sequence[Model]) -> list[Model]:
        """Return the draws at losses in bad periods drawn by likelihood."""
        below = np.cumsum(self.weights) / np.sum(self.weights)
        spread: list[Model] = []
        for index, draw in enumerate(draws):
            # A low-discrepancy sequence (golden ratio) in place of random numbers.
            place = int(np.searchsorted(below, (index * 0.6180339887498949 + 0.5) % 1.0))
            if place == 0 or math.isnan(draw["bad_s"]):
                spread.append(draw)
                continue
            moved = {
                **draw,
                "loss_bad": float(self.loss_bad[place]),
                "good_s": draw["good_s"] * float(self.good[place]),
                "bad_s": draw["bad_s"] * float(self.bad[place]),
            }
            good, bad = moved["good_s"], moved["bad_s"]
            moved["loss"] = (good * moved["loss_good"] + bad * moved["loss_bad"]) / (good + bad)
            spread.append(moved)
        return spread


def _parameters(
    model: Model, bootstrapped: Sequence[_Replicates], record: LossRecord, ridge: _Ridge | None
) -> list[Parameter]:
    """Return the parameters with basic bootstrap intervals on the transformed scale, over all of `ridge`."""
    parameters = []
    for name in NAMES:
        value = model[name]
        if math.isnan(value) or (name in ("loss_good", "loss_bad") and value in (0.0, 1.0)):
            continue
        low, high = _interval(name, bootstrapped, record)
        if ridge is not None:
            least, most = ridge.widened(name, *_interval(name, bootstrapped[:1], record))
            low, high = min(low, least), max(high, most)
        # The bias exceeds the spread.
        biased = not low <= value <= high
        low, high = min(low, value), max(high, value)
        determined = math.isfinite(high) and low > 0 and not biased
        if name in ("bad_s", "good_s") or (name == "loss_bad" and ridge is not None):
            determined = determined and high <= WIDEST * low
        parameters.append(Parameter(name, value, low, high, determined))
    return parameters


def _interval(name: str, bootstrapped: Sequence[_Replicates], record: LossRecord) -> tuple[float, float]:
    """Return the interval of a parameter, averaged by weight over all candidates that have it.

    A model-averaged tail area interval (Turek and Fletcher 2012), whose coverage is better with weights by
    AIC than by BIC.
    """
    if name == "loss" and record.lost in (0, record.sent):
        # Exact (Clopper-Pearson) and one-sided, since all replicates are equal.
        bound = 0.05 ** (1 / record.sent)
        return (0.0, 1 - bound) if record.lost == 0 else (bound, 1.0)
    having = [(each.values[name], each.share) for each in bootstrapped if name in each.values]
    values = np.concatenate([found for found, _ in having])
    weights = np.concatenate([np.full(len(found), weight / max(len(found), 1)) for found, weight in having])
    if len(values) == 0:
        return float(_unscale(name, -np.inf)), float(_unscale(name, np.inf))
    order = np.argsort(values)
    # The true value is equally likely to lie in each of the n + 1 gaps between n replicates.
    below = np.cumsum(weights[order]) / np.sum(weights) * len(values) / (len(values) + 1)
    low = max(int(np.searchsorted(below, 0.025, side="right")) - 1, 0)
    high = min(int(np.searchsorted(below, 0.975)), len(values) - 1)
    return float(values[order[low]]), float(values[order[high]])


def _certain(record: LossRecord, count: int) -> list[Model]:
    """Return draws for a record in which no packet or every packet was lost, by Jeffreys' prior."""
    from scipy.special import betaincinv

    quantiles = (np.arange(count) + 0.5) / count
    shares = betaincinv(record.lost + 0.5, record.sent - record.lost + 0.5, quantiles)
    return [{**dict.fromkeys(NAMES, math.nan), "loss": float(share)} for share in shares]


def _hidden(record: LossRecord, count: int) -> tuple[float | None, list[Model]]:
    """Return the longest mean burst that the record does not exclude, and draws over the burst length.

    Bursts lose every packet; the prior of their mean length is uniform on a logarithmic scale.
    """
    lengths = np.geomspace(1e-3, max(record.duration_s / 5, 1e-2), 60)
    likelihood, shares = record.burst_profile(lengths)
    best = float(np.max(likelihood))
    if best == -math.inf:
        # Of packets at the same time, some were lost and others were not.
        return None, []
    # Wilks' theorem: twice the difference is chi-squared with one degree of freedom.
    possible = lengths[likelihood >= best - 3.84 / 2]
    weights = np.cumsum(np.exp(likelihood - best))
    weights /= weights[-1]
    draws: list[Model] = []
    for index in range(count):
        place = int(np.searchsorted(weights, (index + 0.5) / count))
        bad = float(lengths[place])
        # The number of observed bursts: one per loss, or fewer if a burst spans several probes.
        bursts = max(record.lost * min(1.0, record.spacing_s / bad), 1.0)
        # A low-discrepancy sequence (golden ratio) in place of random numbers.
        spread = _normal((index * 0.6180339887498949 + 0.5) % 1.0) / math.sqrt(bursts)
        share = float(np.clip(shares[place] * math.exp(spread), 1e-9, 0.9))
        draws.append(
            {
                **dict.fromkeys(NAMES, math.nan),
                "loss": share,
                "good_s": bad * (1 - share) / share,
                "bad_s": bad,
                "loss_good": 0.0,
                "loss_bad": 1.0,
            }
        )
    return float(possible[-1]), draws


def _normal(quantile: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(quantile))


def _cannot_tell(
    data: Probes | Counts,
    record: LossRecord,
    parameters: tuple[Parameter, ...],
    independent: bool,
    hidden: float | None,
    ridge: _Ridge | None,
) -> list[str]:
    """Return what the record does not determine, as phrases."""
    if record.lost == 0:
        most = formats.share(parameters[0].high)
        return [f"the loss rate: none of {plural(record.sent, 'packet')} was lost, so it is at most {most}"]
    if record.lost == record.sent:
        return [f"anything of the link: all {record.sent:,} packets were lost; does the host reply at all?"]
    if record.lost < FEWEST_LOSSES:
        were = "was" if record.lost == 1 else "were"
        return [f"the loss rate and bursts: only {record.lost} of {record.sent:,} packets {were} lost"]
    said = []
    if independent and hidden is not None and hidden > HIDDEN_BURST_S and record.lost < record.sent:
        seen = (
            f"{formats.seconds(record.spacing_s)} between packets"
            if isinstance(data, Probes)
            else f"counts over {formats.seconds(float(np.median(data.interval_s)))}"
        )
        said.append(
            f"whether losses come in bursts: with {seen}, bursts of up to {formats.seconds(hidden)} look "
            "like independent losses"
        )
    if ridge is not None and not any(each.name == "loss_bad" for each in parameters):
        found = formats.interval(float(ridge.loss_bad.min()), 1.0, formats.share)
        said.append(f"the {NAMES['loss_bad']}: {found}, with longer bad periods if they lose less")
    for parameter in parameters:
        if not parameter.determined and parameter.high > 0:
            found = formats.interval(parameter.low, parameter.high, parameter.write)
            said.append(f"the {NAMES[parameter.name]}: {found}")
    return said


def _checks(observed: Mapping[str, Floats], simulated: Mapping[str, Floats]) -> list[Check]:
    """Compare the histograms of the record with those of the replicates."""
    checks = []
    for name in ("bursts", "gaps", "after_loss", "by_time"):
        seen, drawn = observed[name][0], simulated[name]
        with np.errstate(invalid="ignore"):
            some = np.isfinite(seen) & np.isfinite(drawn).any(axis=0)
        if not some.any():
            continue
        filled = np.where(np.isfinite(drawn), drawn, np.nan)[:, some]
        low, high = np.nanquantile(filled, [0.025, 0.975], axis=0)
        everyone = np.vstack([seen[some], filled])
        if name == "by_time":
            # Only the variation between time windows matters, not which window differs.
            distance = np.abs(np.nanstd(everyone, axis=1) - np.nanmean(np.nanstd(filled, axis=1)))
        else:
            mean, spread = np.nanmean(filled, axis=0), np.nanstd(filled, axis=0)
            # The floor keeps a class that occurs in one of hundreds of replicates from dominating.
            least = 0.5 if name in ("bursts", "gaps") else 1e-3
            apart = np.abs(everyone - mean) / np.maximum(spread, least)
            distance = np.nanmax(np.where(np.isfinite(apart), apart, 0.0), axis=1)
        p_value = float(np.mean(distance >= distance[0] - 1e-12))
        whole_low, whole_high = np.full(len(seen), np.nan), np.full(len(seen), np.nan)
        whole_low[some], whole_high[some] = low, high
        checks.append(Check(name, p_value, seen, whole_low, whole_high))
    return checks
