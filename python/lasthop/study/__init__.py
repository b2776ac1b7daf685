"""Studies: parameter sweeps with replications, confidence intervals and paired comparisons.

A study runs a scenario at every point of a parameter grid with every scheme, replicates each point until the
intervals are narrow enough, and compares the schemes over the same fades. docs/guide/studies.md defines the
statistics.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lasthop.study.error import StudyError
    from lasthop.study.merging import merge
    from lasthop.study.plan import Progress, Target
    from lasthop.study.statistics import Quantile, quantile
    from lasthop.study.study import Study

__all__ = ["Progress", "Quantile", "Study", "StudyError", "Target", "merge", "quantile"]

_MODULE_OF = {
    "Progress": "plan",
    "Quantile": "statistics",
    "Study": "study",
    "StudyError": "error",
    "Target": "plan",
    "merge": "merging",
    "quantile": "statistics",
}
"""Imported when first used: other modules of this package serve commands that need no numpy."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _MODULE_OF:
            return getattr(import_module(f"lasthop.study.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module 'lasthop.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(globals().keys() | _MODULE_OF)
