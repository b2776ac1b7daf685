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
        """Write what was recorded of each packet and of the senders, as columns and as pictures."""
        import numpy as np

        from lasthop import plots

        parts = [
            (run, name, part)
            for run in runs
            for name in run.connections
            for part in range(len(run.parts(name)))
        ]
        times = [run.events(name, part)["time_s"] for run, name, part in parts]
        until = max(float(each.max(initial=0.0)) for each in times)
        bad = scenario.bad_periods(until, seed=runs[0].seed, run=runs[0].run)
        for run, name, part in parts:
            stem = ".".join(
                [run.scheme, *([name] if len(run.connections) > 1 else []), *_of_part(run, name, part)]
            )
            events, series = run.events(name, part), run.series(name, part)
            plots.write_csv(self.path(f"{stem}.events.csv", "traces"), events)
            plots.write_csv(self.path(f"{stem}.series.csv", "series"), series)
            if name != next(iter(run.connections)):
                continue
            stem = ".".join([run.scheme, *_of_part(run, name, part)])
            figure = plots.packet_trace(run, bad_periods=bad, part=part)
            plots.save(figure, self.path(f"{stem}.packets", "figures"))
            if np.ptp(series["mss_bytes"]) > 0:
                figure = plots.segment_size(run, bad, part=part)
                plots.save(figure, self.path(f"{stem}.segment-size", "figures"))
        if len(runs) > 1:
            most = max(runs, key=lambda run: len(run.parts()))
            for part in range(len(most.parts())):
                stem = ".".join(["packets", *_of_part(most, None, part)])
                figure = plots.packet_traces(runs, bad_periods=bad, part=part)
                plots.save(figure, self.path(stem, "figures"))

    def summary(self) -> str:
        """Say in a line what was written where."""
        kinds = [kind if kind.find(".") > 0 else f"{n} {kind}" for kind, n in self._written.items()]
        return f"{self.directory}: {', '.join(kinds)}"


def _of_part(run: Run, connection: str | None, part: int) -> list[str]:
    """Return what names of files say of a part: of the one that begins at the source, nothing."""
    return ["-".join(run.parts(connection)[part])] if part > 0 else []
