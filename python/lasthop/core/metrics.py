"""Metrics by name: of runs, and of their connections, sources of traffic, applications and agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lasthop._lasthop import Scenario
from lasthop.core.names import unknown

PARTS = ("connection", "traffic", "application", "agent")
"""The first words of the metrics of parts, in the order of results."""


def is_of_part(metric: str) -> bool:
    """Whether a metric is of a part of a run, and not of the run or of a scheme.

    Examples
    --------
    >>> is_of_part("connection.up.goodput"), is_of_part("goodput"), is_of_part("snoop.connections")
    (True, False, False)
    """
    return metric.partition(".")[0] in PARTS


class UnknownMetricError(ValueError):
    """No metric has the name."""


def find_metric(name: str, scenarios: Iterable[Scenario], further: Sequence[str] = ()) -> str:
    """Return the canonical name of a metric that the runs of some scenario have.

    Parameters
    ----------
    name : str
        The metric.
    scenarios : iterable of Scenario
        The scenarios.
    further : sequence of str, optional
        Names that exist besides.

    Raises
    ------
    UnknownMetricError
        If none has it: the message suggests a name.

    Examples
    --------
    >>> import lasthop
    >>> scenario = lasthop.load("ebsn-example")
    >>> find_metric("connection.'transfer'.goodput", [scenario])
    'connection.transfer.goodput'
    >>> find_metric("connection.transfer.god_put", [scenario])
    Traceback (most recent call last):
    lasthop.core.metrics.UnknownMetricError: there is no connection metric "god_put"; did you mean "goodput"?
    """
    if name in further:
        return name
    missing = []
    for scenario in scenarios:
        found = scenario.find_metric(name)
        if isinstance(found, str):
            return found
        missing.append(found)
    # Scenarios may lack different things: say what the best of them lacks.
    what = max((each.what for each in missing), key=lambda what: (what != "metric", " " in what))
    alike = [each for each in missing if each.what == what]
    listed = [known for each in alike for known in each.known[: each.listed]]
    if what == "metric":
        listed += further
    known = [known for each in alike for known in each.known[each.listed :]]
    raise UnknownMetricError(unknown(what, alike[0].name, dict.fromkeys(listed), dict.fromkeys(known)))
