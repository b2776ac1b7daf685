"""The race of every combination of senders, schemes and settings, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lasthop._lasthop import Scenario
from lasthop.engine.stopping import Progress
from lasthop.race.arm import grid
from lasthop.race.race import Race, loaded


def compare(
    scenario: Scenario | str | Path,
    senders: Sequence[str | None] = (None,),
    schemes: Sequence[str] | None = None,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    **settings: Any,
) -> Race:
    """Rank senders, schemes and settings on the link of a scenario, as `lasthop compare` does.

    Parameters
    ----------
    scenario : Scenario, str or Path
        The scenario, its file, or the name of a worked scenario; without a sweep.
    senders : sequence of str or None, optional
        The senders; None, the default, for the scenario's own.
    schemes : sequence of str, optional
        The schemes, by default those of the scenario.
    axes : mapping of str to sequence, optional
        The values of further settings by their full keys, as in `Arm`.
    jobs, progress
        As in `Race.run`.
    **settings
        The other arguments of `Race`.

    Returns
    -------
    Race
        The finished race.

    Examples
    --------
    >>> import lasthop
    >>> race = lasthop.compare("last-mile", ["linux"], ["basic", "arq"], overrides=["limit=5 s"], runs=(8, 8))
    >>> race.results()[["arm", "status"]].values.tolist()
    [['linux arq', 'best'], ['linux basic', 'worse']]
    """
    if schemes is None:
        scenario = loaded(scenario, settings.pop("overrides", ()), senders)
        schemes = scenario.schemes
    race = Race(scenario, grid(senders, schemes, axes), **settings)
    race.run(jobs, progress)
    return race
