"""The fit of loss models to a record, and what it cannot tell."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from lasthop._lasthop import LossRecord
from lasthop.core import formats
from lasthop.core.formats import plural
from lasthop.fitting.losses import (
    FEWEST_LOSSES,
    HIDDEN_BURST_S,
    NAMES,
    REPLICATES,
    Candidate,
    Check,
    FittedLosses,
    Floats,
    Model,
    Parameter,
    record_of,
)
from lasthop.fitting.uncertainty import (
    Replicates,
    Ridge,
    certain_draws,
    hidden_bursts,
    is_possible,
    model_weights,
    parameters_of,
)
from lasthop.measurement import Counts, Probes

FEWEST_REPLICATES = 100
"""With fewer replicates no check can fail: the smallest p-value is one over their number."""

RARE = 0.02
"""Models with a smaller weight are left out of intervals and draws, except the best."""


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
    weights = model_weights([found.bic for found in fits])
    # Intervals and draws weigh models by the AIC: the BIC leaves out parameters that are small and yet
    # matter, such as a loss in good periods, or the tail of a lognormal distribution. But if losses look
    # independent, bursts shorter than the probes can see would be a guess.
    bursty = fits[0].family != "independent"
    shares = model_weights([found.aic for found in fits]) if bursty else weights
    candidates = tuple(
        Candidate(found.family, found.parameters, found.log_likelihood, found.bic, float(weight), found.model)
        for found, weight in zip(fits, weights, strict=True)
    )
    replicated, shapes = fits[0].bootstrap(replicates, seed, threads)
    bootstrapped = [Replicates.of(candidates[0], float(shares[0]), replicated)]
    for found, candidate, share in zip(fits[1:], candidates[1:], shares[1:], strict=True):
        count = round(share * replicates)
        if share >= RARE and count:
            values = found.bootstrap(count, seed, threads)[0]
            bootstrapped.append(Replicates.of(candidate, float(share), values))
    ridge = Ridge.of(fits) if isinstance(data, Counts) and bursty else None
    parameters = tuple(parameters_of(candidates[0].model, bootstrapped, record, ridge))
    hidden, profile_draws = hidden_bursts(record, replicates)
    independent = "bad_s" not in {each.name for each in parameters}
    cannot_tell = tuple(_cannot_tell(data, record, parameters, independent, hidden, ridge))
    draws: list[Model] = []
    if record.lost in (0, record.sent):
        draws = certain_draws(record, replicates)
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
            draws = [draw for draw in draws if is_possible(draw, record, most)] or draws
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


def _cannot_tell(
    data: Probes | Counts,
    record: LossRecord,
    parameters: tuple[Parameter, ...],
    independent: bool,
    hidden: float | None,
    ridge: Ridge | None,
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
