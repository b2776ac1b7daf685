"""The SQLite file of a study's results. docs/studies.md documents the schema.

It is written in transactions with a rollback journal: whatever kills the process, the file holds exactly the
committed runs. A running study keeps a transaction open at all times, which locks out other writers but not
readers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lasthop.study.error import StudyError
from lasthop.study.run_numbers import RunNumbers

FORMAT = 1
APPLICATION = 0x4C617374
"""The application_id of SQLite's file header: "Last"."""

SECONDS_TO_WAIT = 20
"""The timeout for the lock of another process."""


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point of a study.

    Attributes
    ----------
    parameters : dict of str to str
        The swept settings with their values.
    schemes : list of str
        The schemes compared at it.
    hash : str
        The hash of its scenario.
    toml : str
        Its scenario.
    """

    parameters: dict[str, str]
    schemes: list[str]
    hash: str
    toml: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What identifies a study. Results of studies with different identities are never mixed.

    Attributes
    ----------
    version : str
        The version of Lasthop.
    seed : int
        The study's seed.
    metrics : tuple of str
        The metrics of each run.
    points : list of StoredPoint
        The points in their order.
    """

    version: str
    seed: int
    metrics: tuple[str, ...]
    points: list[StoredPoint]

    def difference(self, stored: Identity) -> str | None:
        """Return how this study differs from `stored` in words; None if they are the same."""
        if self.seed != stored.seed:
            return f"it has seed {stored.seed}, not {self.seed}"
        if (self.version, self.metrics) != (stored.version, stored.metrics):
            here = f", this is {self.version}" if self.version != stored.version else " with other metrics"
            return f"it was made by Lasthop {stored.version}{here}"
        ours, theirs = ([point.hash for point in study.points] for study in (self, stored))
        if ours != theirs:
            changed = len(set(ours) - set(theirs))
            if changed == 0:
                return f"it has {len(theirs)} points, not {len(ours)}, or has them in another order"
            return f"{changed} of {len(ours)} points are not in it: the scenario or its sweep has changed"
        if any(a.schemes != b.schemes for a, b in zip(self.points, stored.points, strict=True)):
            had, has = (", ".join(study.points[0].schemes) for study in (stored, self))
            return f"it compares the schemes {had}, not {has}"
        return None


class Store:
    """The results of one study.

    Parameters
    ----------
    path : Path or None
        The file, made when it is first written to. None keeps the results in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        # The message of the first failed write. SQLite may have rolled back, so later writes are refused.
        self._failure: str | None = None
        if path is None or path.exists():
            self._open()

    @property
    def _sql(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StudyError(f"{self.path}: there is no such study yet")
        return self._connection

    def _open(self) -> None:
        where = ":memory:" if self.path is None else self.path
        try:
            self._connection = sqlite3.connect(where, timeout=SECONDS_TO_WAIT, isolation_level=None)
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise StudyError(f"{self.path}: cannot be opened as a study: {error}") from None
        if tables and application != APPLICATION:
            raise StudyError(f"{self.path}: this is a database, but none of a study")
        if tables and version != FORMAT:
            raise StudyError(
                f"{self.path}: its format is {version}, and this version of Lasthop knows {FORMAT}; "
                "open it with the version that made it, or begin anew elsewhere"
            )

    def exists(self) -> bool:
        """Whether the file holds a study."""
        if self._connection is None:
            return False
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return bool(tables)

    def close(self) -> None:
        """Close the file. No journal is left beside it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- Writing ---------------------------------------------------------------------------------

    @contextmanager
    def writing(self, identity: Identity, meta: dict[str, Any]) -> Iterator[None]:
        """Create the store if needed, and lock it for writing during the block.

        Parameters
        ----------
        identity : Identity
            The study; must equal that of an existing store.
        meta : dict of str to JSON values
            Further columns of the table `meta`.

        Raises
        ------
        StudyError
            If another process is writing to it, or it cannot be written to.
        """
        if self._connection is None:
            assert self.path is not None
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        sql = self._sql
        self._begin(seconds_to_wait=0)
        try:
            if self.exists():
                self.expect(identity)
            else:
                with self._writes():
                    self._create(identity)
            rows = [(key, json.dumps(value)) for key, value in meta.items()]
            with self._writes():
                sql.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        except BaseException:
            if sql.in_transaction:
                sql.execute("ROLLBACK")
            raise
        self.commit()
        try:
            yield
        finally:
            # Finished runs are kept even if the block fails or is interrupted.
            if sql.in_transaction:
                with self._writes():
                    sql.execute("COMMIT")

    @contextmanager
    def _writes(self) -> Iterator[None]:
        """Turn SQLite's errors into StudyError, and refuse all writes after the first failure.

        Raises
        ------
        StudyError
            If the block or an earlier write has failed.
        """
        if self._failure is not None:
            raise StudyError(self._failure)
        try:
            yield
        except sqlite3.Error as error:
            self._failure = (
                f"{self.path}: cannot be written to: {error}; "
                "runs stored before are kept: once that is mended, run this again to go on"
            )
            if self._sql.in_transaction:
                with suppress(sqlite3.Error):
                    self._sql.execute("ROLLBACK")
            raise StudyError(self._failure) from None

    def expect(self, identity: Identity) -> None:
        """Check that the file holds this study.

        Raises
        ------
        StudyError
            If it holds another one.
        """
        difference = identity.difference(self.identity())
        if difference is not None:
            raise StudyError(
                f"{self.path}: another study is kept there: {difference}; "
                "keep this one elsewhere (--out DIR, or another store), or delete that file"
            )

    def _begin(self, seconds_to_wait: int) -> None:
        sql = self._sql
        sql.execute(f"PRAGMA busy_timeout = {1000 * seconds_to_wait}")
        try:
            sql.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StudyError(
                    f"{self.path}: another process is running this study; wait until it is done, "
                    "or run it elsewhere"
                ) from None
            raise StudyError(f"{self.path}: cannot be written to: {error}") from None
        finally:
            sql.execute(f"PRAGMA busy_timeout = {1000 * SECONDS_TO_WAIT}")

    def commit(self) -> None:
        """Commit the added runs."""
        with self._writes():
            self._sql.execute("COMMIT")
        self._begin(seconds_to_wait=1)

    def _create(self, identity: Identity) -> None:
        sql = self._sql
        sql.execute(f"PRAGMA application_id = {APPLICATION}")
        sql.execute(f"PRAGMA user_version = {FORMAT}")
        columns = "".join(f", {_name(metric)}" for metric in identity.metrics)
        sql.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        sql.execute(
            "CREATE TABLE point (id INTEGER PRIMARY KEY, parameters TEXT NOT NULL, "
            "schemes TEXT NOT NULL, hash TEXT NOT NULL, scenario TEXT NOT NULL)"
        )
        sql.execute(
            "CREATE TABLE run (point INTEGER NOT NULL REFERENCES point, scheme TEXT NOT NULL, "
            f"run INTEGER NOT NULL, ended TEXT NOT NULL{columns}, "
            "PRIMARY KEY (point, scheme, run)) WITHOUT ROWID"
        )
        sql.execute(_view(identity))
        sql.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("lasthop", json.dumps(identity.version)),
                ("seed", json.dumps(identity.seed)),
                ("metrics", json.dumps(identity.metrics)),
            ],
        )
        sql.executemany(
            "INSERT INTO point VALUES (?, ?, ?, ?, ?)",
            [
                (i, json.dumps(point.parameters), json.dumps(point.schemes), point.hash, point.toml)
                for i, point in enumerate(identity.points)
            ],
        )

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add runs: for each its point, scheme, number, why it ended, and its metrics."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            # Runs are reproducible, so a duplicate is identical and can be ignored.
            with self._writes():
                self._sql.executemany(f"INSERT OR IGNORE INTO run VALUES ({marks})", rows)

    # -- Reading ---------------------------------------------------------------------------------

    def meta(self) -> dict[str, Any]:
        """Return the table `meta`."""
        return {key: json.loads(value) for key, value in self._rows("SELECT key, value FROM meta")}

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._sql.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise StudyError(f"{self.path}: cannot be read: {error}") from None

    def identity(self) -> Identity:
        """Return the identity of the study."""
        meta = self.meta()
        rows = self._rows("SELECT parameters, schemes, hash, scenario FROM point ORDER BY id")
        points = [StoredPoint(json.loads(p), json.loads(s), name, toml) for p, s, name, toml in rows]
        return Identity(meta["lasthop"], meta["seed"], tuple(meta["metrics"]), points)

    def numbers(self, point: int, scheme: str) -> RunNumbers:
        """Return the run numbers of a scheme at a point."""
        query = "SELECT run FROM run WHERE point = ? AND scheme = ? ORDER BY run"
        return RunNumbers(run for (run,) in self._rows(query, (point, scheme)))

    def count(self) -> int:
        """Return how many runs there are."""
        (runs,) = self._sql.execute("SELECT count(*) FROM run").fetchone()
        return int(runs)

    def values(self, point: int, scheme: str, columns: Iterable[str], below: int) -> list[tuple[Any, ...]]:
        """Return columns of the runs of a scheme at a point, in order, up to run number `below`."""
        names = ", ".join(map(_name, columns))
        query = f"SELECT {names} FROM run WHERE point = ? AND scheme = ? AND run < ? ORDER BY run"
        return self._rows(query, (point, scheme, below))


def _name(identifier: str) -> str:
    """Quote an SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _view(identity: Identity) -> str:
    """Return the SQL of the view `result`: each run with parameters, metrics and provenance."""
    names = list(identity.points[0].parameters) if identity.points else []
    paths = [_text(f'$."{name}"') for name in names]
    parameters = [
        f"json_extract(point.parameters, {path}) AS {_name(name)}"
        for name, path in zip(names, paths, strict=True)
    ]
    columns = [
        *parameters,
        "run.scheme",
        "run.run",
        "(SELECT json_extract(value, '$') FROM meta WHERE key = 'seed') AS seed",
        "run.ended",
        *(f"run.{_name(metric)}" for metric in identity.metrics),
        "(SELECT json_extract(value, '$') FROM meta WHERE key = 'lasthop') AS lasthop",
        "point.hash AS scenario_hash",
    ]
    return f"CREATE VIEW result AS SELECT {', '.join(columns)} FROM run JOIN point ON point.id = run.point"
