"""The directory that a command writes its results to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from lasthop import Run, Scenario
from lasthop.cli.failure import RefusedError, warn
from lasthop.files import write_text
from lasthop.study.interrupt import interrupts_held

FILES = ".lasthop-files"
"""The list of what the last command wrote, which the next one replaces: a name in each line."""

_STAGING = ".lasthop-part-"


class Output:
    """A directory of results, made when it is not there, and filled when all of them are complete.

    Results are written into a directory within it. At the end of the block they are moved to their places,
    and what an earlier command wrote there and this one did not is removed, so that results of two commands
    never stand side by side. If the block fails or is interrupted, everything stays as it was.

    Parameters
    ----------
    directory : Path
        Where it is.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._written: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Make the directory."""
        self._made = not self.directory.exists()
        self.directory.mkdir(parents=True, exist_ok=True)
        for left in sorted(self.directory.glob(f"{_STAGING}*")):
            warn(f"{left}: another command is writing there, or was killed; if none is running, delete it")
        self.staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self.directory))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Put the results in their places, or leave none."""
        if isinstance(error, OSError):
            self._rename(error)
        try:
            if error is None:
                self._publish()
        finally:
            shutil.rmtree(self.staging, ignore_errors=True)
            if self._made:
                # Only if nothing is in it.
                with suppress(OSError):
                    self.directory.rmdir()

    def _publish(self) -> None:
        names = sorted(path.name for path in self.staging.iterdir())
        for name in names:
            if (self.directory / name).is_dir():
                raise RefusedError(f"{self.directory / name}: cannot be written: a directory has that name")
        earlier = self._earlier()
        write_text(self.staging / FILES, "".join(f"{name}\n" for name in names))
        with interrupts_held():
            for name in (*names, FILES):
                os.replace(self.staging / name, self.directory / name)
            for name in earlier - {*names}:
                (self.directory / name).unlink(missing_ok=True)

    def _earlier(self) -> set[str]:
        """Return the names of the files that an earlier command wrote, and that still are there."""
        try:
            listed = (self.directory / FILES).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return set()
        # A list from elsewhere shall not reach beyond the directory.
        return {name for name in listed if name and name == Path(name).name and name not in (".", "..")}

    def _rename(self, error: OSError) -> None:
        """Let an error name the file that the user knows."""
        staging, directory = f"{self.staging}{os.sep}", f"{self.directory}{os.sep}"
        if isinstance(error.filename, str | Path):
            error.filename = str(error.filename).replace(staging, directory)
        else:
            error.args = tuple(
                each.replace(staging, directory) if isinstance(each, str) else each for each in error.args
            )

    def path(self, name: str, kind: str) -> Path:
        """Return where to write the file `name`; `kind` is what the summary calls such files."""
        self._written[kind] += 1
        return self.staging / name

    def text(self, name: str, text: str) -> None:
        """Write a text file."""
        write_text(self.path(name, name), text)

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
            several = len(run.connections) > 1
            stem = ".".join([_stem(run.label).replace(" ", "-"), *([_stem(name)] if several else []), *_of_part(run, name, part)])
            events, series = run.events(name, part), run.series(name, part)
            plots.write_csv(self.path(f"{stem}.events.csv", "traces"), events)
            plots.write_csv(self.path(f"{stem}.series.csv", "series"), series)
            if name != next(iter(run.connections)):
                continue
            stem = ".".join([_stem(run.label).replace(" ", "-"), *_of_part(run, name, part)])
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


def _stem(name: str) -> str:
    """Write a name so that it can be a part of a file's name on every system."""
    return "".join(f"%{ord(letter):02X}" if letter in '%/\\:*?"<>|' else letter for letter in name)


def _of_part(run: Run, connection: str | None, part: int) -> list[str]:
    """Return what names of files say of a part: of the one that begins at the source, nothing."""
    return ["-".join(run.parts(connection)[part])] if part > 0 else []
