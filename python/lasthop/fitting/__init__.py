"""Models of a link, fitted to measurements. docs/guide/fit.md describes the method and its limits."""

from lasthop.fitting.estimate import stated_link
from lasthop.fitting.given import GivenLink, preset_link, scenario_link
from lasthop.fitting.link import Assumption, FittedLink, NoRateError, StatedLosses
from lasthop.fitting.loss_fit import fit_losses
from lasthop.fitting.losses import Candidate, Check, FittedLosses, Parameter
from lasthop.fitting.plan import ProbePlan, plan
from lasthop.fitting.recognition import fit
from lasthop.fitting.timing import Timing, Variation
from lasthop.fitting.waits import Waits
from lasthop.fitting.wifi import Neighbours, WifiLink

__all__ = [
    "Assumption",
    "Candidate",
    "Check",
    "FittedLink",
    "FittedLosses",
    "GivenLink",
    "Neighbours",
    "NoRateError",
    "Parameter",
    "ProbePlan",
    "StatedLosses",
    "Timing",
    "Variation",
    "Waits",
    "WifiLink",
    "fit",
    "fit_losses",
    "plan",
    "preset_link",
    "scenario_link",
    "stated_link",
]
