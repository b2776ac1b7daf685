"""The uncertainty of a loss model: intervals of its parameters, and draws over what a record allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import LossFit, LossRecord
from lasthop.fitting.losses import NAMES, Candidate, Floats, Model, Parameter

WIDEST = 10.0
"""A mean length counts as determined if the ends of its interval differ by at most this factor."""

LOSSES_IN_BAD_PERIODS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Losses in bad periods that are compared with the fitted one for counts."""

IMPOSSIBLE = 9.2
"""Shortfall in log-likelihood at which a draw is excluded: one in 1,000 of four parameters (Wilks)."""


def model_weights(criteria: Sequence[float]) -> Floats:
    """Return the weights of models by a criterion, the least of which is best."""
    weights = np.exp((min(criteria) - np.asarray(criteria)) / 2)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def is_possible(draw: Model, record: LossRecord, most: float) -> bool:
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
class Replicates:
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
    def of(cls, candidate: Candidate, share: float, replicated: Mapping[str, Floats]) -> Replicates:
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
class Ridge:
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
    def of(cls, fits: Sequence[LossFit]) -> Ridge | None:
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


def parameters_of(
    model: Model, bootstrapped: Sequence[Replicates], record: LossRecord, ridge: Ridge | None
) -> list[Parameter]:
    """Return the parameters with basic bootstrap intervals on the transformed scale, over all of `ridge`."""
    parameters = []
    for name in NAMES:
        value = model[name]
        if math.isnan(value) or (name in ("loss_good", "loss_bad") and value in (0.0, 1.0)):
            continue
        low, high = interval(name, bootstrapped, record)
        if ridge is not None:
            least, most = ridge.widened(name, *interval(name, bootstrapped[:1], record))
            low, high = min(low, least), max(high, most)
        # The bias exceeds the spread.
        biased = not low <= value <= high
        low, high = min(low, value), max(high, value)
        determined = math.isfinite(high) and low > 0 and not biased
        if name in ("bad_s", "good_s") or (name == "loss_bad" and ridge is not None):
            determined = determined and high <= WIDEST * low
        parameters.append(Parameter(name, value, low, high, determined))
    return parameters


def interval(name: str, bootstrapped: Sequence[Replicates], record: LossRecord) -> tuple[float, float]:
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


def certain_draws(record: LossRecord, count: int) -> list[Model]:
    """Return draws for a record in which no packet or every packet was lost, by Jeffreys' prior."""
    from scipy.special import betaincinv

    quantiles = (np.arange(count) + 0.5) / count
    shares = betaincinv(record.lost + 0.5, record.sent - record.lost + 0.5, quantiles)
    return [{**dict.fromkeys(NAMES, math.nan), "loss": float(share)} for share in shares]


def hidden_bursts(record: LossRecord, count: int) -> tuple[float | None, list[Model]]:
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
