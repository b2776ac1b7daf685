"""Merging the stores of shards into the store of the whole study."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from lasthop.engine.shards import Shard
from lasthop.results.cells import cut, first_difference
from lasthop.results.error import StudyError
from lasthop.results.run_numbers import RunNumbers
from lasthop.results.sqlite import SqliteStore
from lasthop.results.store import ALL, Identity, StoredPoint
from lasthop.study.study import Study


def merge(into: str | Path, sources: Sequence[str | Path], *, partial: bool = False) -> Study:
    """Merge the stores of a study's shards.

    The results equal those of a study without shards to the last byte. If anything is refused, `into` stays
    as it was.

    Parameters
    ----------
    into : str or Path
        The store to write. It may hold runs of the same study already, which are kept.
    sources : sequence of str or Path
        The stores of the shards, in any order. Runs that several of them hold must be equal.
    partial : bool, default False
        Merge although runs are missing; `Study.run` makes them.

    Returns
    -------
    Study
        The whole study, opened.

    Raises
    ------
    StudyError
        If the stores belong to different studies, disagree about a run, or if runs are missing: the message
        names the shards that lack them.

    Examples
    --------
    >>> import lasthop, tempfile
    >>> from lasthop.study import Study, merge
    >>> scenario = lasthop.load("ebsn-wide-area", ['schemes=["basic"]'])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     stores = [f"{directory}/{i}.sqlite" for i in (1, 2)]
    ...     for i, store in enumerate(stores, 1):
    ...         with Study(scenario, runs=(5, 5), shard=(i, 2), store=store) as shard:
    ...             shard.run()
    ...     with merge(f"{directory}/all.sqlite", stores) as study:
    ...         len(study.to_pandas())
    2
    3
    5
    """
    target, paths = Path(into), list(dict.fromkeys(Path(each) for each in sources))
    if not paths:
        raise StudyError("nothing to merge: expected the stores of shards")
    if any(path.resolve() == target.resolve() for path in paths):
        raise StudyError(f"{target}: it would be merged into itself; expected another place")
    existed, had_directory = target.exists(), target.parent.exists()
    try:
        _merge(target, paths, partial)
    except BaseException:
        if not existed:
            target.unlink(missing_ok=True)
        if not had_directory:
            with suppress(OSError):
                target.parent.rmdir()
        raise
    return Study.open(target)


def _merge(into: Path, paths: Sequence[Path], partial: bool) -> None:
    with Study.open(paths[0]) as first:
        points, rule, identity = first.points, first.rule, _identity(first)
    stored = SqliteStore(paths[0])
    meta = stored.meta()
    stored.close()
    shards = {path: _shard(path, identity, meta, paths[0]) for path in paths}
    target = SqliteStore(into)
    try:
        if target.exists() and (kept := target.meta().get("shard")) is not None:
            raise StudyError(
                f"{into}: shard {Shard(*kept)} is kept there; expected a place for the whole study"
            )
        with target.writing(identity, meta | {"shard": None}):
            try:
                for path in paths:
                    source = SqliteStore(path)
                    try:
                        source.expect(identity)
                        _copy(source, target, identity)
                    finally:
                        source.close()
                lacking = _lacking(target, points, rule.most, [*shards.values()])
                if lacking and not partial and (rule.least == rule.most or not rule.targets):
                    raise StudyError(
                        f"{'; '.join(lacking)}; run what is missing and merge again, or merge with "
                        "--partial, and `lasthop study` makes the missing runs there"
                    )
            except BaseException:
                target.roll_back()
                raise
    finally:
        target.close()


def _identity(study: Study) -> Identity:
    return Identity(study.version, study.seed, study.stored_metrics, study.points, study.asked)


def _shard(path: Path, identity: Identity, meta: dict[str, object], first: Path) -> Shard | None:
    """Return the shard that a store holds.

    Raises
    ------
    StudyError
        If it holds another study than the first store.
    """
    store = SqliteStore(path)
    try:
        if not store.exists():
            raise StudyError(f"{path}: there is no study in it; expected the store of a shard")
        own = store.meta()
    finally:
        store.close()
    difference = None
    same = all(own[key] == meta[key] for key in ("scenario", "seed", "lasthop", "metrics"))
    if not same:
        # Of one study, the titles may differ, and what the stores have left out.
        with Study.open(path) as study:
            difference = identity.difference(_identity(study))
    for key, name in (("runs", "number of runs"), ("metric", "metric"), ("precision", "precision")):
        if difference is None and own[key] != meta[key]:
            difference = f"its {name} is {_said(own[key])}, not {_said(meta[key])}"
    for key in ("targets", "each_scheme"):
        if difference is None and own.get(key) != meta.get(key):
            difference = "its stopping rule is another one"
    if difference is not None:
        raise StudyError(f"{path}: this is another study than {first}: {difference}")
    shard = own.get("shard")
    return None if shard is None else Shard(*shard)


def _said(value: object) -> str:
    return ":".join(f"{each}" for each in dict.fromkeys(value)) if isinstance(value, list) else f"{value}"


def _copy(source: SqliteStore, target: SqliteStore, identity: Identity) -> None:
    """Add the runs that `target` lacks, and compare those that both have."""
    columns = ("ended", *identity.metrics)
    for i, point in enumerate(identity.points):
        for scheme in point.schemes:
            have, complete, both = target.numbers(i, scheme), source.numbers(i, scheme), RunNumbers()
            added = []
            for first, runs, *cells in source.chunks(i, scheme, columns):
                new = RunNumbers(have.gaps(first, first + runs))
                for begin, end in new.ranges():
                    part = (cut(each, runs, begin - first, end - first) for each in cells)
                    added.append((i, scheme, begin, end - begin, *part))
                if first in complete:
                    for begin, end in new.gaps(first, first + runs):
                        both.add(begin, end)
            if len(both):
                _compare(source, target, identity, i, scheme, both)
            target.add(added)


def _compare(
    source: SqliteStore, target: SqliteStore, identity: Identity, i: int, scheme: str, both: RunNumbers
) -> None:
    """Compare the runs that two stores have in common.

    Raises
    ------
    StudyError
        If a run is not the same.
    """
    common = np.concatenate([np.arange(first, end) for first, end in both.ranges()])
    places = []
    for store in (source, target):
        numbers = [np.arange(first, end) for first, end in store.stored(i, scheme).ranges()]
        places.append(np.searchsorted(np.concatenate(numbers), common))
    for name in ("ended", *identity.metrics):
        theirs, ours = (
            np.asarray(
                store.ended(i, scheme) if name == "ended" else store.columns(i, scheme, (name,), ALL)[0]
            )[place]
            for store, place in zip((source, target), places, strict=True)
        )
        if (k := first_difference(theirs, ours)) is not None:
            raise StudyError(
                f"{source.path}: run {common[k]} of {scheme}{_at(identity.points[i])} is not the one merged "
                f"before: {name} is {theirs[k]}, not {ours[k]}; "
                "one of them comes from a changed program: make its shard again"
            )


def _at(point: StoredPoint) -> str:
    """Return the words for the place of a point; empty if nothing is swept."""
    stated = ", ".join(f"{name} = {value}" for name, value in point.parameters.items())
    return f" at {stated}" if stated else ""


def _lacking(
    target: SqliteStore, points: Sequence[StoredPoint], runs: int, shards: Sequence[Shard | None]
) -> list[str]:
    """Return in words which runs are missing, by shards if all sources are shards of one split."""
    split = {None if shard is None else shard.of for shard in shards}
    of = split.pop() if len(split) == 1 else None
    have = [(i, target.numbers(i, scheme)) for i, point in enumerate(points) for scheme in point.schemes]
    if of is None:
        missing = sum(end - first for _, each in have for first, end in each.gaps(0, runs))
        return [f"{missing:,} of {runs * len(have):,} runs are missing"] if missing else []
    said: list[str] = []
    absent: list[str] = []
    for index in range(1, of + 1):
        shard = Shard(index, of)
        shares = [(each, *shard.share(i, runs)) for i, each in have]
        expected = sum(end - first for _, first, end in shares)
        missing = sum(after - begin for each, first, end in shares for begin, after in each.gaps(first, end))
        if missing == expected:
            absent.append(str(shard))
        elif missing:
            said.append(f"shard {shard} lacks {missing:,} of its {expected:,} runs")
    if absent:
        said.insert(0, f"missing shard{'s' if len(absent) > 1 else ''}: {', '.join(absent)}")
    return said
