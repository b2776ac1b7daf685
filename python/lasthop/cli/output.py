"""The directory that a command writes its results to."""

from __future__ import annotations

import errno
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
from lasthop.cli.streams import detail
from lasthop.core.files import write_text
from lasthop.core.interrupt import interrupts_held

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILES = ".lasthop-files"
"""The list of files that the last command wrote, one name per line. The next command replaces them."""

FIGURES = ("time-sequence", "cwnd", "delays")
"""The figures of `lasthop run --figure`, besides those of `--trace`."""

_STAGING = ".lasthop-part-"


class Output:
    """A directory of results that is updated as a whole.

    Results are written into a staging directory. At the end of the block they are moved to their places, and
    files of an earlier command that this one did not write are removed. If the block fails or is interrupted,
    the directory stays as it was.

    A running command holds a lock on its staging directory. One that is not locked was left by a killed
    command, and is removed.

    Parameters
    ----------
    directory : Path
        The directory; made if it does not exist.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._written: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Make the directory and its staging directory."""
        self._made = not self.directory.exists()
        self.directory.mkdir(parents=True, exist_ok=True)
        for left in sorted(self.directory.glob(f"{_STAGING}*")):
            _remove_if_abandoned(left)
        try:
            self.staging: Path = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self.directory))
            self._lock = _lock(self.staging)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.directory)) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Publish the results, unless the block has failed."""
        if isinstance(error, OSError):
            self._rename(error)
        try:
            if error is None:
                self._publish()
        finally:
            shutil.rmtree(self.staging, ignore_errors=True)
            if self._lock is not None:
                os.close(self._lock)
            if self._made:
                # Fails, as it should, unless the directory is empty.
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
        for name in names:
            path = self.directory / name
            detail(f"wrote {path}, {path.stat().st_size:,} bytes")

    def _earlier(self) -> set[str]:
        """Return the names of the files that an earlier command listed."""
        try:
            listed = (self.directory / FILES).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return set()
        # Only plain names: a list must not reach outside the directory.
        return {name for name in listed if name and name == Path(name).name and name not in (".", "..")}

    def _rename(self, error: OSError) -> None:
        """Replace the staging directory in an error by the directory that the user named."""
        staging, directory = f"{self.staging}{os.sep}", f"{self.directory}{os.sep}"
        if isinstance(error.filename, str | Path):
            error.filename = str(error.filename).replace(staging, directory)
        else:
            error.args = tuple(
                each.replace(staging, directory) if isinstance(each, str) else each for each in error.args
            )

    def path(self, name: str, kind: str) -> Path:
        """Return the path to write the file `name` to; the summary counts it under `kind`."""
        self._written[kind] += 1
        return self.staging / name

    def text(self, name: str, text: str) -> None:
        """Write a text file."""
        write_text(self.path(name, name), text)

    def traces(self, scenario: Scenario, runs: Sequence[Run]) -> None:
        """Write packet traces and the senders' series as CSV, their figures, and qlogs of QUIC."""
        import numpy as np

        from lasthop import plots

        for run in runs:
            for name, log in run.qlogs.items():
                stem = ".".join([run_stem(run.label), *([_stem(name)] if len(run.qlogs) > 1 else [])])
                write_text(self.path(f"{stem}.sqlog", "qlogs"), log)
        parts = [
            (run, name, part)
            for run in runs
            for name in run.connections
            for part in range(len(run.parts(name)))
        ]
        if not parts:
            # A scenario of traffic alone has no connections to trace.
            return
        times = [run.events(name, part)["time_s"] for run, name, part in parts]
        until = max(float(each.max(initial=0.0)) for each in times)
        bad = scenario.bad_periods(until, seed=runs[0].seed, run=runs[0].run)
        self._link_timings(scenario, until, runs[0])
        for run, name, part in parts:
            several = len(run.connections) > 1
            stem = ".".join(
                [
                    run_stem(run.label),
                    *([_stem(name)] if several else []),
                    *_of_part(run, name, part),
                ]
            )
            events, series = run.events(name, part), run.series(name, part)
            plots.write_csv(self.path(f"{stem}.events.csv", "traces"), events)
            plots.write_csv(self.path(f"{stem}.series.csv", "series"), series)
            if name != next(iter(run.connections)):
                continue
            stem = ".".join([run_stem(run.label), *_of_part(run, name, part)])
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

    def figures(self, scenario: Scenario, runs: Sequence[Run], name: str) -> None:
        """Draw one of `FIGURES` for each run, or for each part of its first connection."""
        from lasthop import plots

        if name == "delays":
            for run in runs:
                for kind, queueing in (("delays", False), ("queueing", True)):
                    figure = plots.delays(run, queueing=queueing)
                    plots.save(figure, self.path(f"{run_stem(run.label)}.{kind}", "figures"))
            return
        draw = plots.cwnd if name == "cwnd" else plots.time_sequence
        for run in runs:
            for part in range(len(run.parts()) if run.connections else 0):
                until = float(run.events(part=part)["time_s"].max(initial=0.0))
                bad = scenario.bad_periods(until, seed=run.seed, run=run.run)
                stem = ".".join([run_stem(run.label), *_of_part(run, None, part), name])
                plots.save(draw(run, bad, part=part), self.path(stem, "figures"))

    def _link_timings(self, scenario: Scenario, until: float, run: Run) -> None:
        """Write rate and delay of the links that vary, in both directions."""
        from lasthop import plots

        for link in scenario.varying_links if until > 0 else []:
            for direction, up in (("down", False), ("up", True)):
                stem = f"{_stem(link)}.{direction}"
                timing = scenario.link_timing(until, link, up=up, seed=run.seed, run=run.run)
                plots.write_csv(self.path(f"{stem}.link.csv", "links"), timing)
                figure = plots.link_timing(scenario, until, link, up=up, seed=run.seed, run=run.run)
                plots.save(figure, self.path(f"{stem}.link", "figures"))

    def summary(self) -> str:
        """Return a line that says what was written where."""
        # Files of a kind are counted; others are named.
        one = {"figures": "figure", "traces": "trace", "links": "link"}
        counts = {kind: f"{n} {one.get(kind, kind) if n == 1 else kind}" for kind, n in self._written.items()}
        kinds = [kind if kind.find(".") > 0 else counts[kind] for kind in self._written]
        return f"{self.directory}: {', '.join(kinds)}"


def _lock(directory: Path) -> int | None:
    """Lock a directory until the returned descriptor is closed or the process ends.

    Returns
    -------
    int or None
        The descriptor. None where directories cannot be locked.

    Raises
    ------
    BlockingIOError
        If another process holds the lock.
    """
    if fcntl is None:
        return None
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno == errno.EWOULDBLOCK:
            raise
        return None
    return descriptor


def _remove_if_abandoned(staging: Path) -> None:
    """Remove the staging directory of a command that was killed; warn if the command may be running."""
    try:
        lock = _lock(staging)
    except BlockingIOError:
        warn(f"{staging}: another command is writing to this directory")
        return
    except FileNotFoundError:
        # That command has ended meanwhile.
        return
    if lock is None:
        warn(f"{staging}: another command is writing there, or was killed; if none is running, delete it")
        return
    shutil.rmtree(staging, ignore_errors=True)
    os.close(lock)
    warn(f"{staging}: unfinished results of a command that was killed: removed")


def _stem(name: str) -> str:
    """Write a name so that it can be a part of a file's name on every system."""
    return "".join(f"%{ord(letter):02X}" if letter in '%/\\:*?"<>|' else letter for letter in name)


def run_stem(label: str) -> str:
    """Return the beginning of the names of a run's files: `linux ebsn + arq` becomes `linux-ebsn+arq`."""
    return _stem(label).replace(" + ", "+").replace(" ", "-")


def _of_part(run: Run, connection: str | None, part: int) -> list[str]:
    """Return the part of a file name that tells a segment of a split connection; empty for the first."""
    return ["-".join(run.parts(connection)[part])] if part > 0 else []
