"""Lasthop: a simulator for TCP over wireless last hops.

A `Scenario` describes the network, the channel and the traffic; a `Run` of it with a scheme has metrics and,
if asked for, packet traces and time series.

Examples
--------
>>> import lasthop
>>> scenario = lasthop.load("ebsn-example")
>>> run = lasthop.run(scenario, "ebsn")
>>> run.metrics["timeouts"], run.metrics["retransmitted_bytes"]
(0, 0)
"""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from lasthop._lasthop import (
    Link,
    Notice,
    Port,
    PythonSchemeError,
    Quantity,
    Run,
    Scenario,
    ScenarioError,
    Scheme,
    __version__,
    links,
    schemes,
)
from lasthop.core import display
from lasthop.core.packaged import scenarios
from lasthop.core.scenarios import build, load
from lasthop.python_scheme import Agent, PythonScheme, Reaction, ReceiverReaction
from lasthop.results.runs import Runs, events_frame, run, run_each, series_frame

if TYPE_CHECKING:
    # `as` makes them public for type checkers, without a part in `import *`.
    from lasthop import advice as advice
    from lasthop import fitting as fitting
    from lasthop import measurement as measurement
    from lasthop import papers as papers
    from lasthop import plots as plots
    from lasthop import race as race
    from lasthop import study as study
    from lasthop.race import compare as compare

display.present_by(partial(import_module, "lasthop.show.notebook"))

__all__ = [
    "Agent",
    "Link",
    "Notice",
    "Port",
    "PythonScheme",
    "PythonSchemeError",
    "Quantity",
    "Reaction",
    "ReceiverReaction",
    "Run",
    "Runs",
    "Scenario",
    "ScenarioError",
    "Scheme",
    "__version__",
    "build",
    "events_frame",
    "links",
    "load",
    "run",
    "run_each",
    "scenarios",
    "schemes",
    "series_frame",
]

_LATER = {
    **{
        name: f"lasthop.{name}"
        for name in ("advice", "fitting", "measurement", "papers", "plots", "race", "study")
    },
    "compare": "lasthop.race",
}
"""The modules of names that are imported when first used: what they need takes longer to load than a run."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module 'lasthop' has no attribute {name!r}")
        module = import_module(_LATER[name])
        return module if module.__name__ == f"lasthop.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(globals().keys() | _LATER.keys())
