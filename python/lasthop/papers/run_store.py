"""Storage of runs without traces in an SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lasthop._lasthop import Run, Scenario, __version__
from lasthop.core.statistics import Sample
from lasthop.study import StudyError


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run without traces and series.

    Attributes
    ----------
    scheme : str
        The scheme.
    seed, run : int
        The seed and the number of the run.
    metrics : mapping
        The metrics.
    connections : mapping of str to mapping
        The metrics of each connection.
    """

    scheme: str
    seed: int
    run: int
    metrics: Mapping[str, Any]
    connections: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, run: Run) -> StoredRun:
        """Return a run without its traces and series."""
        return cls(run.scheme, run.seed, run.run, run.metrics, run.connections)


Measured = Run | StoredRun
"""A run with or without traces; both have metrics and connections."""


def values(runs: Sequence[Measured], metric: str) -> Sample:
    """Return a metric, or `CONNECTION.METRIC`, of each run; NaN for runs without it."""
    connection, _, name = metric.rpartition(".")
    # The counters of schemes also have dots in their names.
    found = [
        run.metrics[metric] if metric in run.metrics else run.connections[connection][name] for run in runs
    ]
    return np.asarray([np.nan if value is None else value for value in found], dtype=np.float64)


_REMEDY = "use another directory (--out DIR), or delete that file"
_NAMES = {"lasthop": "version of Lasthop", "hash": "scenario", "seed": "seed"}


class RunStore:
    """The stored runs of one experiment, by scheme and number. Each run is committed when it is added.

    Parameters
    ----------
    path : Path or None
        The file. None stores nothing.
    scenario : Scenario
        The scenario of the runs.
    seed : int
        The seed of the runs.

    Raises
    ------
    StudyError
        If the file has runs of another scenario, seed or version, or cannot be written.
    """

    def __init__(self, path: Path | None, scenario: Scenario, seed: int) -> None:
        self._path, self._seed = path, seed
        self._sql: sqlite3.Connection | None = None
        if path is None:
            return
        identity = {"lasthop": __version__, "hash": scenario.hash, "seed": str(seed)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sql = sqlite3.connect(path, timeout=20)
            with self._sql:
                self._sql.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)")
                self._sql.execute(
                    "CREATE TABLE IF NOT EXISTS run"
                    " (scheme TEXT, number INTEGER, found TEXT, PRIMARY KEY (scheme, number))"
                )
                stored = dict(self._sql.execute("SELECT key, value FROM meta"))
                if not stored:
                    self._sql.executemany("INSERT INTO meta VALUES (?, ?)", identity.items())
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise StudyError(f"{path}: cannot be opened as a store of runs: {error}; {_REMEDY}") from None
        if stored and stored != identity:
            self.close()
            other = ", ".join(key for key in identity if stored.get(key) != identity[key])
            raise StudyError(
                f"{path}: holds runs of another {_NAMES.get(other, 'scenario, seed or version of Lasthop')}; "
                f"{_REMEDY}"
            )

    def load(self, scheme: str) -> dict[int, StoredRun]:
        """Return the stored runs of a scheme, by number."""
        if self._sql is None:
            return {}
        rows = self._sql.execute("SELECT number, found FROM run WHERE scheme = ?", (scheme,))
        return {number: StoredRun(scheme, self._seed, number, *json.loads(found)) for number, found in rows}

    def add(self, runs: Sequence[StoredRun]) -> None:
        """Store runs."""
        if self._sql is None:
            return
        rows = [(run.scheme, run.run, json.dumps([run.metrics, run.connections])) for run in runs]
        try:
            with self._sql:
                self._sql.executemany("INSERT OR REPLACE INTO run VALUES (?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise StudyError(
                f"{self._path}: cannot be written: {error}; use another directory (--out DIR)"
            ) from None

    def close(self) -> None:
        """Close the file."""
        if self._sql is not None:
            self._sql.close()
