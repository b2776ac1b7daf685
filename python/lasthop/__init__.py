"""Find out what will make TCP work over a wireless last hop.

A scenario says what is simulated; a run of it with a scheme is measured, traced and plotted.

Examples
--------
>>> import lasthop
>>> scenario = lasthop.load("scenarios/ebsn-example.toml")
>>> run = lasthop.run(scenario, "ebsn")
>>> run.metrics["timeouts"], run.metrics["retransmitted_bytes"]
(0, 0)
"""

from lasthop._lasthop import Run, Scenario, ScenarioError, Scheme, __version__, schemes
from lasthop.api import build, compare, events_frame, load, run, series_frame

__all__ = [
    "Run",
    "Scenario",
    "ScenarioError",
    "Scheme",
    "__version__",
    "build",
    "compare",
    "events_frame",
    "load",
    "run",
    "schemes",
    "series_frame",
]
