"""Stores of studies that say other things than the program would store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from lasthop.results.sqlite import _digest, _digest_of_chunk, _rows_of_chunks


def edit(path: Path, statement: str) -> None:
    """Execute a statement, and renew the digests of all chunks: the file is not damaged then."""
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(statement)
        origin = tuple(
            json.loads(sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0])
            for key in ("lasthop", "seed")
        )
        hashes = dict(sql.execute("SELECT id, hash FROM point"))
        total = 0
        chunks = [*_rows_of_chunks(sql.execute("SELECT * FROM chunk"))]
        for row in chunks:
            key = (row.scheme, row.first, row.runs)
            digest = _digest_of_chunk(origin, hashes[row.point], key, row.cells)
            total = (total + int.from_bytes(digest)) % (1 << 128)
            place = (digest, row.point, row.scheme, row.first)
            sql.execute("UPDATE chunk SET digest = ? WHERE point = ? AND scheme = ? AND first = ?", place)
        text = json.dumps([len(chunks), f"{total:032x}"])
        sql.execute(
            "UPDATE meta SET value = ?, digest = ? WHERE key = 'chunks'", (text, _digest("chunks", text))
        )
