"""Input files for readers: contents, errors, and type-checked access to untrusted JSON."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lasthop.measurement.model import Direction, Floats, MeasurementError, Probes, Rates

LARGEST_BYTES = 1 << 30
"""Size limit of a decompressed file, since it is held in memory."""

LARGEST_TEXT_BYTES = 1 << 28
"""Size limit of a text file, which takes several times its size in memory."""

LONGEST_S = 1e9
"""Limit of a measurement's duration, 30 years: differences of times remain exact."""

HAS_TIMES = "--every (`every_s` in Python) is not used, since the file has times."
"""The note of a file that needs no time between packets."""

MOST_BINS = 2_000_000
"""Limit of the bins of a series: two and a half days at 100 ms."""

BIN_S = 0.1
"""Bin width for rates."""

Host = Literal["client", "server"]
"""The host that opened a connection, or its peer."""

Place = Literal["client", "server", "between"]
"""Where a capture was taken: at the host that opened the connections, at its peer, or between them."""

SWAP = '; `--user server` (`user="server"` in Python) overrides'
"""The remedy if the client is not on the user's side."""


@dataclass(frozen=True)
class Source:
    """A file name and its decompressed contents.

    Attributes
    ----------
    name : str
        The file name.
    data : bytes
        The contents.
    cut : bool
        Whether the compressed file is truncated.
    """

    name: str
    data: bytes
    cut: bool = False

    def error(self, message: str, line: int | None = None) -> MeasurementError:
        """Return an error about this file."""
        return MeasurementError(self.name, message, line)

    @cached_property
    def text(self) -> str:
        """The contents as text; undecodable bytes are replaced.

        Raises
        ------
        MeasurementError
            If they are too large for text.
        """
        if len(self.data) > LARGEST_TEXT_BYTES:
            raise self.error(
                f"larger than {LARGEST_TEXT_BYTES >> 20} MiB and not a capture; cut it into pieces"
            )
        # PowerShell's `>` writes UTF-16.
        if self.data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return self.data.decode("utf-16", "replace")
        return self.data.decode("utf-8-sig", "replace")

    @property
    def is_json(self) -> bool:
        """Whether the contents begin like a JSON object, or a list of objects."""
        return re.match(r"\s*(?:\{|\[\s*[{\]])", self.text) is not None

    def json(self) -> Any:
        """Return the contents as JSON.

        Raises
        ------
        MeasurementError
            If they are not JSON.
        """
        return self._document

    @cached_property
    def _document(self) -> Any:
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            message = f"not valid JSON: {error.msg}; the file is truncated or was edited"
            raise self.error(message, error.lineno) from None
        except (RecursionError, ValueError):
            # ValueError: a number with thousands of digits.
            raise self.error(
                "not the JSON of a measurement: nested too deeply, or a number too long"
            ) from None


def load(path: str | Path) -> Source:
    """Read a file and decompress gzip.

    Raises
    ------
    MeasurementError
        If it is empty, too large, or damaged from the first compressed byte on.
    OSError
        If it cannot be read.
    """
    name = str(path)
    too_large = f"larger than {LARGEST_BYTES >> 20} MiB; cut it, a capture for example by `editcap -c`"
    with Path(path).open("rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    cut = False
    if data[:2] == b"\x1f\x8b":
        chunks: list[bytes] = []
        size = 0
        try:
            with gzip.open(BytesIO(data)) as packed:
                while size <= LARGEST_BYTES and (chunk := packed.read1(1 << 20)):
                    chunks.append(chunk)
                    size += len(chunk)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            # An interrupted measurement is valid up to its end.
            cut = True
            if not chunks:
                raise MeasurementError(name, "a damaged gzip file that cannot be decompressed") from None
        data = b"".join(chunks)
    if len(data) > LARGEST_BYTES:
        raise MeasurementError(name, too_large)
    if not data.strip():
        raise MeasurementError(name, "the file is empty; was the measurement interrupted?")
    return Source(name, data, cut)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """Return the value if it is a JSON array, otherwise an empty one."""
    return value if isinstance(value, list) else []


def at(value: Any, *keys: str) -> Any:
    """Return the value at a path of keys in nested JSON objects, or None."""
    for key in keys:
        value = mapping(value).get(key)
    return value


def number(value: Any) -> float | None:
    """Return the value if it is a finite JSON number, otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    """Return the value if it is a JSON integer that fits 63 bits, otherwise None."""
    found = number(value)
    if found is None or found != math.floor(found) or abs(found) >= 2**62:
        return None
    return int(value)


def parsed(text: str | None) -> float | None:
    """Parse a finite number; None for other text."""
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def floats(values: Iterable[float]) -> Floats:
    """Return an array of float64."""
    return np.fromiter(values, dtype=np.float64)


def ordered(time_s: Floats, *columns: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Sort columns by time; return the times and the columns."""
    if len(time_s) < 2 or bool(np.all(time_s[1:] >= time_s[:-1])):
        return time_s, *columns
    order = np.argsort(time_s, kind="stable")
    return time_s[order], *(column[order] for column in columns)


def bins(source: Source, time_s: Floats, weight: Floats, until_s: float) -> tuple[Floats, Floats]:
    """Sum weights in bins of `BIN_S` from time zero on.

    Returns
    -------
    start_s, total : arrays of float64
        The start of each bin, and the sum of the weights in it.

    Raises
    ------
    MeasurementError
        If there would be more than `MOST_BINS`.
    """
    last = until_s / BIN_S
    if not last < MOST_BINS:
        raise source.error(f"lasts {until_s:.0f} s, more than {MOST_BINS * BIN_S:.0f} s; cut it into pieces")
    count = int(last) + 1
    index = np.clip((time_s / BIN_S).astype(np.int64), 0, count - 1)
    total = np.bincount(index, weights=weight, minlength=count).astype(np.float64)
    return np.arange(count, dtype=np.float64) * BIN_S, total


def binned(
    source: Source,
    direction: Direction,
    time_s: Floats,
    bits: Floats,
    span_s: tuple[float, float],
    saturated: bool,
    *,
    capacity: bool = False,
) -> Rates:
    """Return throughput in bins of `BIN_S` over the span.

    A remainder of less than half a bin extends the last bin.

    Raises
    ------
    MeasurementError
        If there would be more than `MOST_BINS`.
    """
    first_s, lasts_s = span_s[0], span_s[1] - span_s[0]
    start_s, total = bins(source, time_s - first_s, bits, lasts_s)
    interval_s = np.full(len(start_s), BIN_S)
    rest_s = lasts_s - float(start_s[-1])
    if len(start_s) > 1 and rest_s < BIN_S / 2:
        total[-2] += total[-1]
        start_s, total, interval_s = start_s[:-1], total[:-1], interval_s[:-1]
        interval_s[-1] += rest_s
    elif len(start_s) > 1:
        interval_s[-1] = rest_s
    elif capacity:
        interval_s[0] = lasts_s
    return Rates(direction, first_s + start_s, interval_s, total / interval_s, saturated, capacity)


def probes(direction: Direction, sent_s: Floats, lost: Any, size_bytes: int | None) -> Probes:
    """Return probes sorted by sending time."""
    times, flags = ordered(sent_s, np.asarray(lost, dtype=np.bool_))
    return Probes(direction, times, flags, size_bytes)


def control_free(text: str) -> str:
    """Return text from a file for use in a message: one short line without control characters."""
    return re.sub(r"[^\x20-\x7e\xa0-\uffff]", " ", text)[:200].strip()


def way(from_client: bool, user: Host) -> Direction:
    """Return the direction of packets from the client or server, if `user` is on the user's side."""
    return Direction.UP if from_client == (user == "client") else Direction.DOWN
