"""Studies: parameter sweeps with replications, confidence intervals and paired comparisons.

A study runs a scenario at every point of a parameter grid with every scheme, replicates each point until the
intervals are narrow enough, and compares the schemes over the same fades. docs/guide/studies.md defines the
statistics.
"""

from lasthop.core.statistics import Quantile, quantile
from lasthop.engine.stopping import Progress, Target
from lasthop.results.error import DamagedStoreError, ShardError, StudyError
from lasthop.study.merging import merge
from lasthop.study.study import Study

__all__ = [
    "DamagedStoreError",
    "Progress",
    "Quantile",
    "ShardError",
    "Study",
    "StudyError",
    "Target",
    "merge",
    "quantile",
]
