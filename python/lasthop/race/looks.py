"""The looks of a race as a policy of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lasthop._lasthop import ScenarioError
from lasthop.engine.scheduler import Batch, Policy


class Looks(Policy):
    """The looks of a race, as a policy of the scheduler: all arms that run reach a look together."""

    def __init__(self, race: Any) -> None:
        # A `Race`, whose module imports this one.
        self._race = race
        arms = [(place, arm.scheme) for arm, place in race._places.items()]
        self._have = {cell: race._store.numbers(*cell) for cell in arms}
        self._done = sum(map(len, self._have.values()))

    @property
    def stopped(self) -> bool:
        """Whether the race has finished."""
        return bool(self._race.finished)

    def missing(self) -> Iterator[Batch]:
        """Yield the runs missing for the next look; leave out arms that a variant refuses."""
        race = self._race
        look, variants = race.looks[race._look], len(race._variants)
        for arm in list(race._running):
            place = race._places[arm]
            gaps = list(self._have[place, arm.scheme].gaps(0, look))
            if variants > 1:
                gaps = [(run, run + 1) for first, end in gaps for run in range(first, end)]
            try:
                batches = [
                    Batch(place, arm.scheme, race._scenario(arm, first % variants), first, end - first)
                    for first, end in gaps
                ]
            except ScenarioError as error:
                # The first run of this variant.
                race._leave_out(arm, reason_of(error))
                continue
            yield from batches

    def add(self, point: int, scheme: str, first: int, runs: int) -> None:
        """Note that runs are made."""
        self._have[point, scheme].add(first, first + runs)
        self._done += runs

    def complete(self) -> bool:
        """Whether every arm that runs has reached the look."""
        race = self._race
        look = race.looks[race._look]
        return all(self._have[race._places[arm], arm.scheme].prefix >= look for arm in race._running)

    def decide(self) -> None:
        """Let the race evaluate the look."""
        self._race._decide()

    def done(self) -> int:
        """Return the number of runs made."""
        return self._done

    def total(self) -> int:
        """Return the estimated number of runs at the end."""
        return int(self._race._expected())


def reason_of(error: ScenarioError) -> str:
    """Return the message of a refusal, without the key of the arm's only scheme."""
    return error.problem if error.key == "schemes[0]" else error.message
