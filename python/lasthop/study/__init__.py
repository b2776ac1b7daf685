"""Studies: from one run to an answer with an interval.

A study sweeps a scenario over a grid of parameters, repeats each point with each scheme until the
answer is as sharp as was asked, and compares the schemes over the same fades. docs/studies.md tells how,
and defines what is computed.
"""

from lasthop.study.error import StudyError
from lasthop.study.plan import Progress
from lasthop.study.study import Study

__all__ = ["Progress", "Study", "StudyError"]
