"""Comparisons of many remedies on one link: which is best, over the same fades.

An arm is a sender with a scheme and further settings. All arms have the same seed and run numbers, arms that
are clearly worse stop early, and each is compared with a baseline. docs/guide/compare.md has the statistics.
"""

from lasthop.race.arm import Arm, grid
from lasthop.race.combinations import compare
from lasthop.race.error import NoValuesError, RaceError
from lasthop.race.race import Race
from lasthop.race.ranked import Ranked, Refusal

__all__ = ["Arm", "NoValuesError", "Race", "RaceError", "Ranked", "Refusal", "compare", "grid"]
