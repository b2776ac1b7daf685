"""Loss models fitted to a measurement: their parameters with intervals, and their goodness of fit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasthop._lasthop import LossRecord
from lasthop.core import formats
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

MOST_COUNTED = 10_000_000
"""Limit of the packets in one interval; each is simulated."""

MOST_FITTED = 1_000_000
"""Limit of the packets of a record of probes: a fit takes time in proportion, minutes for so many."""

MOST_LOST = 1000
"""A record with more losses in an interval is thinned, since the likelihood takes time in proportion."""

TOO_MANY_COUNTED = f"an interval with more than {MOST_COUNTED:,} packets; measure in shorter intervals"
"""The error if there are more."""

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
