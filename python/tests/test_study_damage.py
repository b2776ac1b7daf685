"""Damaged stores of studies: they give no results, or the right ones, and can be repaired."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import lasthop
from lasthop import Scenario
from lasthop.study import DamagedStoreError, Study, StudyError, merge

DAMAGES = int(os.environ.get("LASTHOP_DAMAGES", "150"))
"""Random damages; each takes a few milliseconds."""


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return lasthop.load(
        "ebsn-wide-area", ['schemes=["basic", "ebsn"]', 'sweep={"tcp.packet_size"=["256 B", "1 KB"]}']
    )


@pytest.fixture(scope="module")
def store(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store of a finished study."""
    path = tmp_path_factory.mktemp("store") / "study.sqlite"
    with opened(scenario, path) as study:
        study.run()
    return path


def opened(scenario: Scenario, path: Path, *, repair: bool = False) -> Study:
    return Study(scenario, precision=None, runs=(40, 40), store=path, repair=repair)


def tables(study: Study) -> tuple[str, str]:
    return study.to_pandas().to_csv(), study.summary().to_csv()


def damaged(content: bytes, dice: random.Random) -> bytes:
    """Return a copy with a few bytes changed, a piece cut out, doubled, zeroed, or its end lost."""
    found = bytearray(content)
    at = dice.randrange(100, len(found))
    match dice.randrange(6):
        case 0 | 1 | 2:
            for _ in range(dice.choice((1, 1, 2, 8))):
                found[dice.randrange(100, len(found))] = dice.randrange(256)
        case 3:
            found[at : at + 512] = bytes(len(found[at : at + 512]))
        case 4:
            page, other = (4096 * dice.randrange(1, len(found) // 4096) for _ in range(2))
            found[page : page + 4096] = found[other : other + 4096]
        case _:
            del found[at:]
    return bytes(found)


def test_random_damage_never_changes_a_table(scenario: Scenario, store: Path, tmp_path: Path) -> None:
    with opened(scenario, store) as study:
        expected = tables(study)
    content, path, refused = store.read_bytes(), tmp_path / "study.sqlite", 0
    for seed in range(DAMAGES):
        path.write_bytes(damaged(content, random.Random(seed)))
        try:
            with opened(scenario, path) as study:
                assert tables(study) == expected, seed
        except StudyError:
            refused += 1
    assert refused > DAMAGES / 3


def test_repair_keeps_what_is_intact_and_makes_the_rest_again(
    scenario: Scenario, store: Path, tmp_path: Path
) -> None:
    with opened(scenario, store) as study:
        expected = tables(study)
    content, path, kept = store.read_bytes(), tmp_path / "study.sqlite", 0
    for seed in range(DAMAGES // 10):
        path.write_bytes(damaged(content, random.Random(seed)))
        with opened(scenario, path, repair=True):
            # A repair that is not continued leaves a whole study, too.
            pass
        with Study.open(path) as study:
            made = study.run()
            assert tables(study) == expected, seed
            kept += made < 160
        with Study.open(path) as study:
            assert tables(study) == expected, seed
    assert kept > DAMAGES / 20
    assert (tmp_path / "study.sqlite.damaged").exists()


def changed(query: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as sql, sql:
            sql.execute(query)

    return change


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (
            changed(
                "UPDATE chunk SET throughput_bps = throughput_bps || ' ' WHERE scheme = 'ebsn' AND point = 1"
            ),
            r"\d+ chunks of runs of ebsn at tcp.packet_size = 1000 B;",
        ),
        (
            changed("UPDATE chunk SET first = 10000 WHERE point = 1 AND scheme = 'basic' AND first = 0"),
            "1 chunk of runs of basic at tcp.packet_size = 1000 B",
        ),
        (changed("DELETE FROM chunk WHERE scheme = 'ebsn'"), r"it has \d+ chunks of runs, and had \d+"),
        (changed("UPDATE meta SET value = '[1, 40]' WHERE key = 'runs'"), "its setting runs"),
        (changed("DELETE FROM meta WHERE key = 'chunks'"), "its setting chunks"),
        (changed("UPDATE point SET hash = 'x' WHERE id = 1"), "its point 1"),
    ],
)
def test_damage_is_named(
    damage: Callable[[Path], None], named: str, scenario: Scenario, store: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(store, tmp_path))
    damage(path)
    with pytest.raises(DamagedStoreError, match=f"the file is damaged: {named}"):
        opened(scenario, path)
    with pytest.raises(StudyError, match="damaged"):
        merge(tmp_path / "all.sqlite", [path])


def test_a_finished_study_is_readable_where_nothing_can_be_written(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "lasthop",
        "study",
        "ebsn-wide-area",
        "--set",
        'schemes=["basic", "ebsn"]',
        "--runs",
        "5",
    ]
    made = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=True)
    inside = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@" --out "$0"'
    isolated = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*isolated, "true"], check=False).returncode:
        pytest.skip("needs user namespaces")
    read = [*isolated, "sh", "-c", inside, str(tmp_path)]
    result = subprocess.run([*read, *command], capture_output=True, text=True, check=False)
    tables, _, _ = made.stdout.rpartition("\nwritten to")
    assert result.stdout == f"{tables}\nnothing is written: {tmp_path} is read only\n"
    assert result.returncode == 0, result.stderr
    result = subprocess.run([*read, *command, "--html"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"error: {tmp_path}: Read-only file system" in result.stderr
