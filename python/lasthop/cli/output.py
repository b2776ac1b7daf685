"""The directory that a command writes its results to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lasthop import Run, Scenario


class Output:
    """A directory of results, made when it is not there.

    Parameters
    ----------
    directory : Path
        Where it is.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._written: Counter[str] = Counter()

    def path(self, name: str, kind: str) -> Path:
        """Return where the file `name` goes; `kind` is what the summary calls such files."""
        self._written[kind] += 1
        return self.directory / name

    def text(self, name: str, text: str) -> None:
        """Write a text file."""
        self.path(name, name).write_text(text, encoding="utf-8")

    def traces(self, scenario: Scenario, runs: Sequence[Run]) -> None:
        """Write what was recorded of each packet and of the source, as columns and as pictures."""
        from lasthop import plots

        times = [run.events(name)["time_s"] for run in runs for name in run.connections]
        until = max(float(each.max(initial=0.0)) for each in times)
        bad = scenario.bad_periods(until, seed=runs[0].seed, run=runs[0].run)
        for run in runs:
            for name in run.connections:
                stem = run.scheme if len(run.connections) == 1 else f"{run.scheme}.{name}"
                plots.write_csv(self.path(f"{stem}.events.csv", "traces"), run.events(name))
                plots.write_csv(self.path(f"{stem}.series.csv", "series"), run.series(name))
            plots.save(
                plots.packet_trace(run, bad_periods=bad), self.path(f"{run.scheme}.packets", "figures")
            )
        if len(runs) > 1:
            plots.save(plots.packet_traces(runs, bad_periods=bad), self.path("packets", "figures"))

    def summary(self) -> str:
        """Say in a line what was written where."""
        kinds = [kind if kind.find(".") > 0 else f"{n} {kind}" for kind, n in self._written.items()]
        return f"{self.directory}: {', '.join(kinds)}"
