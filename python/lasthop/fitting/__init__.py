"""Models of a link, fitted to measurements of it. docs/fit.md describes the method and what it can tell."""

from lasthop.fitting.link import FittedLink, NoRateError, fit, state
from lasthop.fitting.losses import Candidate, Check, FittedLosses, Parameter, fit_losses
from lasthop.fitting.plan import Plan, plan
from lasthop.fitting.timing import Timing, Variation

__all__ = [
    "Candidate",
    "Check",
    "FittedLink",
    "FittedLosses",
    "NoRateError",
    "Parameter",
    "Plan",
    "Timing",
    "Variation",
    "fit",
    "fit_losses",
    "plan",
    "state",
]
