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

from lasthop._lasthop import Link, Run, Scenario, ScenarioError, Scheme, __version__, links, schemes
from lasthop.api import build, compare, events_frame, load, run, series_frame
from lasthop.notebook import Runs
from lasthop.packaged import scenarios

__all__ = [
    "Link",
    "Run",
    "Runs",
    "Scenario",
    "ScenarioError",
    "Scheme",
    "__version__",
    "build",
    "compare",
    "events_frame",
    "links",
    "load",
    "run",
    "scenarios",
    "schemes",
    "series_frame",
]
