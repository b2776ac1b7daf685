"""The SQLite file of a study's results. docs/reference/studies.md documents the schema.

It is written in transactions with a rollback journal: even if the process is killed, the file holds exactly
the committed runs. A running study always has an open transaction, which locks out other writers but not
readers.

Runs are stored in chunks: a row holds consecutive runs of a scheme at a point. Each metric is either one
value that all runs share, or a blob of decimal numbers of equal width. SQLite handles a chunk nearly as fast
as a single run, and SQL can still extract single runs, as the view `result` does.

Every row has a digest of what it says and of the study that it belongs to, and the number of chunks and the
sum of their digests are kept as well. All of them are checked before the first value is used, so that a
damaged file gives no results: SQLite itself notices damage of its structure only.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from lasthop.core.formats import plural
from lasthop.results.cells import cut, decoded, first_difference, words
from lasthop.results.error import DamagedStoreError, StudyError
from lasthop.results.run_numbers import RunNumbers
from lasthop.results.store import ALL, Identity, Store, StoredPoint

FORMAT = 3
LONGEST_CHUNK = 256
"""The maximum number of runs in a chunk, which the view `result` can still read."""

APPLICATION = 0x4C617374
"""The application_id of SQLite's file header: "Last"."""

SECONDS_TO_WAIT = 20
"""The timeout for the lock of another process."""

REMEDY = (
    "restore a copy of it, or run the command that made it with --repair: that keeps what is intact and "
    "makes the rest again"
)
# A message of SQLite may quote what is damaged, and is then no text.
FAULTS = (sqlite3.Error, UnicodeDecodeError)
MOST_NAMED = 3
"""The most schemes and points with damaged runs that a message names."""


class SqliteStore(Store):
    """The results of one study, in a file.

    Parameters
    ----------
    path : Path
        The file, made when it is first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        # The message of the first failed write. SQLite may have rolled back, so later writes are refused.
        self._failure: str | None = None
        # The number of chunks, and the sum of their digests. None before they are checked.
        self._sum: tuple[int, int] | None = None
        # The hash of each stored point, by its id; and what all runs have in common: version and seed.
        self._hashes: dict[int, str] = {}
        self._origin: tuple[Any, ...] = ()
        # Set by `select`: the id of each point of the study, -1 for points not stored yet; the
        # metrics of the study; the requested ones; the stored ones; and the cells, (point id, scheme), with
        # runs that lack a requested metric.
        self._ids: list[int] = []
        self._metrics: tuple[str, ...] = ()
        self._asked: tuple[str, ...] = ()
        self._columns: tuple[str, ...] = ()
        self._lacking: frozenset[tuple[int, str]] = frozenset()
        if path.exists():
            self._open()

    @property
    def _sql(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StudyError(f"{self.path}: there is no such study yet")
        return self._connection

    def _open(self) -> None:
        try:
            self._connection = sqlite3.connect(self.path, timeout=SECONDS_TO_WAIT, isolation_level=None)
            self._connection.text_factory = _decoded
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            raise StudyError(f"{self.path}: cannot be opened as a study: {error}") from None
        except FAULTS as error:
            raise DamagedStoreError(f"{self.path}: cannot be opened as a study: {error}; {REMEDY}") from None
        if tables and application != APPLICATION:
            raise StudyError(f"{self.path}: this is a database, but not that of a study")
        if tables and version != FORMAT:
            raise StudyError(
                f"{self.path}: its format is {version}, and this version of Lasthop reads {FORMAT}; open it "
                "with the version that made it, or start again in another directory"
            )

    @property
    def writable(self) -> bool:
        """Whether the file can be written to; not on media that are read only."""
        return all(os.access(path, os.W_OK) for path in (self.path, self.path.parent))

    def exists(self) -> bool:
        """Whether the file holds a study."""
        if self._connection is None:
            return False
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return bool(tables)

    @classmethod
    def repaired(cls, path: Path, identity: Identity, meta: dict[str, Any]) -> SqliteStore:
        """Keep what is intact of a study in a damaged file, as a new one.

        Parameters
        ----------
        path : Path
            The file. It is renamed, with the suffix `.damaged`.
        identity, meta
            The study, as for `writing`.

        Returns
        -------
        SqliteStore
            The new file, open.
        """
        beside = path.with_name(path.name + ".repaired")
        beside.unlink(missing_ok=True)
        new = cls(beside)
        with new.writing(identity, meta):
            new._salvage(path, identity)
        new.close()
        path.replace(path.with_name(path.name + ".damaged"))
        beside.replace(path)
        return cls(path)

    def _salvage(self, damaged: Path, identity: Identity) -> None:
        """Add the chunks of a damaged file that fit their digests and points of this study."""
        columns = ("ended", *identity.metrics)
        kept = set()
        with closing(sqlite3.connect(damaged, isolation_level=None)) as sql:
            sql.text_factory = _decoded
            ids: list[tuple[Any, ...]] = []
            with suppress(*FAULTS):
                ids = sql.execute("SELECT id, hash FROM point ORDER BY id").fetchall()
            places = {place: i for i, place in enumerate(_places(identity, ids)) if place >= 0}
            # What lies behind a damaged page is reached from the other end.
            for way in ("ASC", "DESC"):
                query = f"SELECT * FROM chunk ORDER BY point {way}, scheme {way}, first {way}"
                with suppress(*FAULTS), closing(sql.execute(query)) as rows:
                    for row in _rows_of_chunks(rows):
                        place, key = places.get(row.point, -1), (row.point, row.scheme, row.first)
                        fits = place >= 0 and row.fits(self._origin, self._hashes[place])
                        if fits and key not in kept:
                            kept.add(key)
                            cells = (row.cells.get(column) for column in columns)
                            self._insert(columns, [(place, *row[1:4], *cells)])

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
            The study. An existing store is extended by its points, schemes and metrics.
        meta : dict of str to JSON values
            Further columns of the table `meta`.

        Raises
        ------
        StudyError
            If another process is writing to the store, or it cannot be written to.
        """
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        sql = self._sql
        self._begin(seconds_to_wait=0)
        try:
            if self.exists():
                self.expect(identity)
                with self._writes():
                    self._extend(identity)
            else:
                with self._writes():
                    self._create(identity)
            self._select(identity)
            with self._writes():
                self._note(meta)
        except BaseException:
            if sql.in_transaction:
                sql.execute("ROLLBACK")
            self._sum = None
            raise
        self.commit()
        try:
            yield
        finally:
            # Finished runs are kept even if the block fails or is interrupted.
            if sql.in_transaction:
                with self._writes():
                    self._note_sum()
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
            # The low byte of an extended code is the primary one. Python's own errors have none.
            damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
            kept = "the runs stored so far are kept: solve the problem and run the same command again"
            self._failure = f"{self.path}: cannot be written to: {error}; {REMEDY if damaged else kept}"
            if self._sql.in_transaction:
                with suppress(sqlite3.Error):
                    self._sql.execute("ROLLBACK")
            raise (DamagedStoreError if damaged else StudyError)(self._failure) from None

    def expect(self, identity: Identity) -> None:
        """Check that the file holds this study or one that it extends, and select its points.

        Raises
        ------
        StudyError
            If it holds another study.
        """
        conflict = identity.conflict(self.identity())
        if conflict is not None:
            raise StudyError(
                f"{self.path}: this file holds another study: {conflict}; "
                "store this one elsewhere (--out DIR, or another store), or delete that file"
            )
        self._select(identity)

    def _select(self, identity: Identity) -> None:
        """Make all methods refer to points by their indices in this study."""
        if self._sum is None:
            self._check()
        self._ids = _places(identity, [*self._hashes.items()])
        self._metrics, self._asked = identity.metrics, identity.asked
        self._columns = tuple(self.meta()["metrics"])
        query = f"SELECT DISTINCT point, scheme FROM chunk WHERE NOT {self._complete()}"
        lacking = self._rows(query) if self._asked else []
        self._lacking = frozenset((point, scheme) for point, scheme in lacking)

    def _complete(self) -> str:
        """Return an SQL condition for chunks with all requested metrics.

        Only chunks from before the request have nulls in the columns of these metrics.
        """
        if any(metric not in self._columns for metric in self._asked):
            return "(0)"
        return f"({' AND '.join(['1', *(f'{_name(metric)} IS NOT NULL' for metric in self._asked)])})"

    def _begin(self, seconds_to_wait: int) -> None:
        sql = self._sql
        sql.execute(f"PRAGMA busy_timeout = {1000 * seconds_to_wait}")
        try:
            sql.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StudyError(
                    f"{self.path}: another process is running this study; wait until it is done, "
                    "or use another directory"
                ) from None
            raise StudyError(f"{self.path}: cannot be written to: {error}") from None
        finally:
            sql.execute(f"PRAGMA busy_timeout = {1000 * SECONDS_TO_WAIT}")

    def commit(self) -> None:
        """Commit the added runs."""
        with self._writes():
            self._note_sum()
            self._sql.execute("COMMIT")
        self._begin(seconds_to_wait=1)

    def roll_back(self) -> None:
        """Discard everything added since the last commit."""
        with self._writes():
            self._sql.execute("ROLLBACK")
        self._begin(seconds_to_wait=1)
        self._check()

    def _create(self, identity: Identity) -> None:
        sql = self._sql
        sql.execute(f"PRAGMA application_id = {APPLICATION}")
        sql.execute(f"PRAGMA user_version = {FORMAT}")
        sql.execute(
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL) "
            "WITHOUT ROWID"
        )
        sql.execute(
            "CREATE TABLE point (id INTEGER PRIMARY KEY, parameters TEXT NOT NULL, "
            "schemes TEXT NOT NULL, hash TEXT NOT NULL, scenario TEXT NOT NULL, digest BLOB NOT NULL)"
        )
        self._create_chunks(identity)
        self._note({"lasthop": identity.version, "seed": identity.seed, "metrics": identity.metrics})
        for i, point in enumerate(identity.points):
            self._put_point(i, point)
        self._hashes = {i: point.hash for i, point in enumerate(identity.points)}
        self._origin = (identity.version, identity.seed)
        self._sum = (0, 0)
        self._note_sum()

    def _note(self, meta: dict[str, Any]) -> None:
        """Write rows of the table `meta`."""
        texts = {key: json.dumps(value) for key, value in meta.items()}
        rows = [(key, text, _digest(key, text)) for key, text in texts.items()]
        self._sql.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows)

    def _note_sum(self) -> None:
        """Write the number of chunks and the sum of their digests."""
        assert self._sum is not None
        self._note({"chunks": [self._sum[0], f"{self._sum[1]:032x}"]})

    def _put_point(self, place: int, point: StoredPoint) -> None:
        row = (place, json.dumps(point.parameters), json.dumps(point.schemes), point.hash, point.toml)
        self._sql.execute("INSERT OR REPLACE INTO point VALUES (?, ?, ?, ?, ?, ?)", (*row, _digest(*row)))

    def _create_chunks(self, identity: Identity) -> None:
        sql = self._sql
        columns = "".join(f", {_name(metric)}" for metric in identity.metrics)
        sql.execute(
            "CREATE TABLE chunk (point INTEGER NOT NULL REFERENCES point, scheme TEXT NOT NULL, "
            f"first INTEGER NOT NULL, runs INTEGER NOT NULL, digest BLOB NOT NULL, ended NOT NULL{columns}, "
            "PRIMARY KEY (point, scheme, first)) WITHOUT ROWID"
        )
        sql.execute("CREATE TABLE place (i INTEGER PRIMARY KEY)")
        sql.executemany("INSERT INTO place VALUES (?)", [(i,) for i in range(LONGEST_CHUNK)])
        sql.execute(_view(identity))

    def _extend(self, identity: Identity) -> None:
        """Add the points, schemes and metrics that the store lacks. Nothing is removed."""
        sql = self._sql
        stored = self.identity()
        known = dict(self._points())
        places = _places(identity, [(place, point.hash) for place, point in known.items()])
        following = max(known, default=-1) + 1
        changed = [metric for metric in identity.metrics if metric not in stored.metrics]
        for metric in changed:
            sql.execute(f"ALTER TABLE chunk ADD COLUMN {_name(metric)}")
        added = False
        for point, place in zip(identity.points, places, strict=True):
            if place < 0:
                self._put_point(following, point)
                following += 1
                added = True
                continue
            had = known[place]
            schemes = [*had.schemes, *(each for each in point.schemes if each not in had.schemes)]
            now = replace(had, parameters=point.parameters, schemes=schemes)
            if now != had:
                self._put_point(place, now)
                added = True
        self._hashes = {place: point.hash for place, point in self._points()}
        if changed:
            self._note({"metrics": [*stored.metrics, *changed]})
        if changed or added:
            sql.execute("DROP VIEW result")
            sql.execute(_view(self.identity()))

    def add(self, chunks: Sequence[tuple[Any, ...]]) -> None:
        """Add runs that are not in the store, or metrics that its runs lack.

        Parameters
        ----------
        chunks : sequence of tuple
            For each chunk its point, scheme, first run and number of runs, and then cells: why the runs
            ended, and each metric of the study. A cell is one value for all runs, or bytes for
            `lasthop._lasthop.decode`. Cells of requested metrics come from `measured`.

        Raises
        ------
        StudyError
            If the file cannot be written, or a repeated run differs from the stored one.
        """
        columns = ("ended", *self._metrics)
        new = []
        for point, scheme, first, runs, *cells in chunks:
            place = self._ids[point]
            if (place, scheme) in self._lacking:
                with self._writes():
                    self._fill(place, scheme, first, runs, dict(zip(columns, cells, strict=True)))
            else:
                new.append((place, scheme, first, runs, *cells))
        with self._writes():
            self._insert(columns, new)

    def _insert(self, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert chunks: (point id, scheme, first, runs, cells of the columns)."""
        if not rows:
            return
        names = ", ".join(map(_name, ("point", "scheme", "first", "runs", "digest", *columns)))
        marks = ", ".join("?" * (5 + len(columns)))
        whole = []
        for row in rows:
            cells = dict(zip(columns, row[4:], strict=True))
            digest = _digest_of_chunk(self._origin, self._hashes[row[0]], row[1:4], cells)
            whole.append((*row[:4], digest, *row[4:]))
        self._sql.executemany(f"INSERT INTO chunk ({names}) VALUES ({marks})", whole)
        self._count([row[4] for row in whole], 1)

    def _count(self, digests: Iterable[bytes], way: int) -> None:
        """Add the digests of chunks to the sum, or subtract them."""
        assert self._sum is not None
        number, total = self._sum
        for digest in digests:
            number, total = number + way, (total + way * int.from_bytes(digest)) % (1 << 128)
        self._sum = (number, total)

    def _fill(self, place: int, scheme: str, first: int, runs: int, cells: dict[str, Any]) -> None:
        """Insert the new runs of a chunk, and add missing metrics to its stored runs."""
        columns = ("ended", *self._columns)
        query = (
            f"SELECT first, runs, digest, {', '.join(map(_name, columns))} FROM chunk "
            "WHERE point = ? AND scheme = ? AND first < ? AND first + runs > ? ORDER BY first"
        )
        added: list[tuple[Any, ...]] = []
        following = first
        for begin, stored, digest, *had in self._rows(query, (place, scheme, first + runs, first)):
            old = dict(zip(columns, had, strict=True))
            low, high = max(begin, first), min(begin + stored, first + runs)
            if following < low:
                added.append((following, low - following, _cut(cells, runs, following - first, low - first)))
            if begin < low:
                added.append((begin, low - begin, _cut(old, stored, 0, low - begin)))
            both = _cut(old, stored, low - begin, high - begin)
            again = _cut(cells, runs, low - first, high - first)
            for name, cell in again.items():
                if name in self._asked and both[name] is None:
                    both[name] = cell
                elif name not in self._asked or cell is not None:
                    self._expect_equal(name, both[name], cell, scheme, low, high - low)
            added.append((low, high - low, both))
            if high < begin + stored:
                added.append((high, begin + stored - high, _cut(old, stored, high - begin, stored)))
            self._sql.execute(
                "DELETE FROM chunk WHERE point = ? AND scheme = ? AND first = ?", (place, scheme, begin)
            )
            self._count([digest], -1)
            following = high
        if following < first + runs:
            added.append((following, first + runs - following, _cut(cells, runs, following - first, runs)))
        self._insert(
            columns,
            [(place, scheme, at, n, *(each.get(name) for name in columns)) for at, n, each in added],
        )

    def _expect_equal(self, name: str, ours: Any, theirs: Any, scheme: str, first: int, runs: int) -> None:
        """Check that repeated runs equal the stored ones.

        Raises
        ------
        StudyError
            If a value differs.
        """
        had, found = (
            words(each, runs) if name == "ended" else decoded([each], [runs]) for each in (ours, theirs)
        )
        if (at := first_difference(had, found)) is not None:
            self._failure = (
                f"{self.path}: run {first + at} of {scheme} was repeated for another metric and differs from "
                f"the stored one: {name} is {found[at]}, not {had[at]}; the program has changed: "
                "start again elsewhere (--out DIR, or another store)"
            )
            self._sql.execute("ROLLBACK")
            raise StudyError(self._failure)

    # -- Reading ---------------------------------------------------------------------------------

    def meta(self) -> dict[str, Any]:
        """Return the table `meta`, as `writing` takes it."""
        return {key: value for key, value in self._settings().items() if key != "chunks"}

    def _settings(self) -> dict[str, Any]:
        rows = self._rows("SELECT key, value, digest FROM meta")
        if wrong := [key for key, value, digest in rows if digest != _digest(key, value)]:
            raise self._damaged(f"its setting {', '.join(map(str, wrong))}")
        found = {key: json.loads(value) for key, value, _ in rows}
        if lost := {"lasthop", "seed", "metrics", "chunks"} - {*found}:
            raise self._damaged(f"its setting {', '.join(sorted(lost))}")
        return found

    def _points(self) -> Iterator[tuple[int, StoredPoint]]:
        """Yield the stored points with their ids, in order.

        Raises
        ------
        DamagedStoreError
            If one is damaged.
        """
        for *row, digest in self._rows(
            "SELECT id, parameters, schemes, hash, scenario, digest FROM point ORDER BY id"
        ):
            if digest != _digest(*row):
                raise self._damaged(f"its point {row[0]}")
            place, parameters, schemes, name, toml = row
            yield place, StoredPoint(json.loads(parameters), json.loads(schemes), name, toml)

    def _check(self) -> None:
        """Compare all rows with their digests.

        Raises
        ------
        DamagedStoreError
            If one differs, or rows are missing.
        """
        own = not self._sql.in_transaction
        try:
            if own:
                # Another process may be adding runs.
                self._sql.execute("BEGIN")
            meta = self.meta()
            points = dict(self._points())
            self._hashes = {place: point.hash for place, point in points.items()}
            self._origin = (meta["lasthop"], meta["seed"])
            self._sum, wrong = (0, 0), []
            with closing(self._sql.execute("SELECT * FROM chunk")) as rows:
                for row in _rows_of_chunks(rows):
                    if row.fits(self._origin, self._hashes.get(row.point, "")):
                        self._count([row.digest], 1)
                    else:
                        wrong.append(row)
        except FAULTS as error:
            raise self._unreadable(error) from None
        finally:
            if own and self._sql.in_transaction:
                with suppress(sqlite3.Error):
                    self._sql.execute("ROLLBACK")
        if wrong:
            cells = Counter((row.point, row.scheme) for row in wrong)
            named = [
                f"{plural(stretches, 'chunk')} of runs of {scheme}{_at(points.get(place))}"
                for (place, scheme), stretches in cells.most_common(MOST_NAMED)
            ]
            more = [f"and of {len(cells) - MOST_NAMED} more"] if len(cells) > MOST_NAMED else []
            raise self._damaged("; ".join(named + more))
        number, total = self._settings()["chunks"]
        if self._sum != (number, int(total, 16)):
            raise self._damaged(f"it has {self._sum[0]:,} chunks of runs, and had {number:,}")

    def _damaged(self, what: str) -> DamagedStoreError:
        return DamagedStoreError(f"{self.path}: the file is damaged: {what}; {REMEDY}")

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._sql.execute(query, parameters).fetchall()
        except FAULTS as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: sqlite3.Error | UnicodeDecodeError) -> StudyError:
        """Return the error of a failed query."""
        # A lock, a full disk or a failed read is not the file's own fault; a missing table or column is.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, UnicodeDecodeError) or code in (
            sqlite3.SQLITE_CORRUPT,
            sqlite3.SQLITE_ERROR,
            sqlite3.SQLITE_NOTADB,
            sqlite3.SQLITE_TOOBIG,
        ):
            return self._damaged(str(error))
        return StudyError(f"{self.path}: cannot be read: {error}")

    def identity(self) -> Identity:
        """Return the identity of the stored study, with the points and schemes that it no longer has."""
        meta = self.meta()
        points = [point for _, point in self._points()]
        return Identity(meta["lasthop"], meta["seed"], tuple(meta["metrics"]), points)

    def numbers(self, point: int, scheme: str) -> RunNumbers:
        """Return the numbers of the runs of a scheme at a point that have all metrics of the study."""
        return self._numbers(point, scheme, self._complete())

    def stored(self, point: int, scheme: str) -> RunNumbers:
        """Return the numbers of all runs of a scheme at a point, in the order of `columns`."""
        return self._numbers(point, scheme, "1")

    def _numbers(self, point: int, scheme: str, where: str) -> RunNumbers:
        query = (
            f"SELECT first, first + runs FROM chunk WHERE point = ? AND scheme = ? AND {where} ORDER BY first"
        )
        return RunNumbers(self._rows(query, (self._ids[point], scheme)))

    def left_out(self, identity: Identity) -> list[tuple[dict[str, str], str, int]]:
        """Return the stored cells that are not in a study: their parameters, scheme and number of runs."""
        query = (
            "SELECT id, parameters, scheme, sum(runs) FROM chunk JOIN point ON point.id = chunk.point "
            "GROUP BY id, scheme ORDER BY id, scheme"
        )
        cells = {
            (place, scheme)
            for place, point in zip(self._ids, identity.points, strict=True)
            for scheme in point.schemes
        }
        return [
            (json.loads(parameters), scheme, runs)
            for place, parameters, scheme, runs in self._rows(query)
            if (place, scheme) not in cells
        ]

    def chunks(
        self, point: int, scheme: str, names: Sequence[str], below: int = ALL
    ) -> Iterator[tuple[Any, ...]]:
        """Yield (first, runs, cells of each column) of the chunks of a scheme at a point, in order.

        The cells of `ended` and of metrics are those of `add`.
        """
        # A metric that no stored run has is not a column yet, which SQLite would take for a text.
        columns = ", ".join(
            _name(name) if name == "ended" or name in self._columns else "NULL" for name in names
        )
        query = (
            f"SELECT first, runs, {columns} FROM chunk "
            "WHERE point = ? AND scheme = ? AND first < ? ORDER BY first"
        )
        try:
            yield from self._sql.execute(query, (self._ids[point], scheme, below))
        except FAULTS as error:
            raise self._unreadable(error) from None


def _decoded(text: bytes) -> str:
    """Return a text of a file. What is no UTF-8 in it does not fit its digest."""
    return text.decode(errors="replace")


def _digest(*said: Any) -> bytes:
    """Return the digest of values."""
    return blake2b(repr(said).encode(errors="replace"), digest_size=16).digest()


def _digest_of_chunk(
    origin: tuple[Any, ...], point: str, key: tuple[Any, ...], cells: Mapping[str, Any]
) -> bytes:
    """Return the digest of a chunk. Metrics that its runs lack do not change it.

    Parameters
    ----------
    origin : tuple
        The version and the seed.
    point : str
        The hash of the point's scenario.
    key : tuple
        The scheme, the first run and the number of runs.
    cells : mapping of str to object
        The cells by column. SQLite has numbers for truth values, and NULL for NaN.
    """
    said = (
        (name, int(cell) if isinstance(cell, bool) else cell)
        for name, cell in sorted(cells.items())
        if cell is not None and cell == cell
    )
    return _digest(*origin, point, *key, *said)


class _Chunk(NamedTuple):
    """A row of the table `chunk`, true or not."""

    point: Any
    scheme: Any
    first: Any
    runs: Any
    digest: Any
    cells: dict[str, Any]

    def fits(self, origin: tuple[Any, ...], point: str) -> bool:
        """Return whether it is as it was written for a point with this hash."""
        key = (self.scheme, self.first, self.runs)
        return bool(self.digest == _digest_of_chunk(origin, point, key, self.cells))


def _at(point: StoredPoint | None) -> str:
    """Return words for the settings of a point."""
    settings = ", ".join(f"{name} = {value}" for name, value in point.parameters.items()) if point else ""
    return f" at {settings}" if settings else ""


def _rows_of_chunks(rows: sqlite3.Cursor) -> Iterator[_Chunk]:
    """Yield the rows of a query of all columns."""
    names = [name for name, *_ in rows.description]
    for row in rows:
        point, scheme, first, runs, digest, *cells = row
        yield _Chunk(point, scheme, first, runs, digest, dict(zip(names[5:], cells, strict=True)))


def _places(identity: Identity, rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the id of each point of a study, from rows of ids and hashes; -1 for a point without a row.

    Points with the same hash, whose scenarios are equal, keep their order.
    """
    ids: dict[str, list[int]] = {}
    for place, name in reversed(rows):
        ids.setdefault(name, []).append(place)
    return [ids[point.hash].pop() if ids.get(point.hash) else -1 for point in identity.points]


def _cut(cells: dict[str, Any], runs: int, first: int, end: int) -> dict[str, Any]:
    """Return the cells of all columns of some runs of a chunk."""
    return {name: cut(each, runs, first, end) for name, each in cells.items()}


def _name(identifier: str) -> str:
    """Quote an SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _cell(column: str) -> str:
    """Return the SQL of the text of a run's cell in a column of blobs."""
    width = f"(length(chunk.{column}) / chunk.runs)"
    return f"trim(substr(chunk.{column}, 1 + place.i * {width}, {width}))"


def _view(identity: Identity) -> str:
    """Return the SQL of the view `result`: each run with parameters, metrics and provenance."""
    names = list(dict.fromkeys(name for point in reversed(identity.points) for name in point.parameters))
    paths = [_text(f'$."{name}"') for name in names]
    parameters = [
        f"json_extract(point.parameters, {path}) AS {_name(name)}"
        for name, path in zip(names, paths, strict=True)
    ]

    def unpacked(column: str, cell: str) -> str:
        return f"CASE typeof(chunk.{column}) WHEN 'blob' THEN {cell} ELSE chunk.{column} END AS {column}"

    columns = [
        *parameters,
        "chunk.scheme",
        "chunk.first + place.i AS run",
        "(SELECT json_extract(value, '$') FROM meta WHERE key = 'seed') AS seed",
        unpacked("ended", _cell("ended")),
        # A text plus zero is an integer or a real, as it is written.
        *(unpacked(name, f"nullif({_cell(name)}, '') + 0") for name in map(_name, identity.metrics)),
        "(SELECT json_extract(value, '$') FROM meta WHERE key = 'lasthop') AS lasthop",
        "point.hash AS scenario_hash",
    ]
    return (
        f"CREATE VIEW result AS SELECT {', '.join(columns)} FROM chunk "
        "JOIN point ON point.id = chunk.point JOIN place ON place.i < chunk.runs"
    )
