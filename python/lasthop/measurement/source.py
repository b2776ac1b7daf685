"""Input files for readers: contents, errors, and type-checked access to untrusted JSON."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lasthop.measurement.model import Direction, Floats, MeasurementError, Probes, Rates

LARGEST_BYTES = 1 << 30
"""Size limit of a decompressed file, since it is held in memory."""

LARGEST_TEXT_BYTES = 1 << 28
"""Size limit of a text file, which takes several times its size in memory."""

_TOO_LARGE = f"larger than {LARGEST_BYTES >> 20} MiB; cut it, a capture for example by `editcap -c`"
_TOO_LARGE_TEXT = f"larger than {LARGEST_TEXT_BYTES >> 20} MiB and not a capture; cut it into pieces"

CAPTURES = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",
)
"""The magic numbers of pcap in both byte orders, with microseconds and nanoseconds, and of pcapng."""

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
            raise self.error(_TOO_LARGE_TEXT)
        head = self.data[:_HEAD_BYTES]
        # PowerShell's `>` writes UTF-16; what appends to its files leaves out the mark of the byte order.
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            text = self.data.decode("utf-16", "replace")
        elif head[1::2].count(0) > 0.9 * (len(head) // 2) and not head[::2].count(0):
            text = self.data.decode("utf-16-le", "replace")
        else:
            text = self.data.decode("utf-8-sig", "replace")
        # A terminal's log has colours, and each line end twice.
        return _ESCAPE.sub("", text).replace("\r\r\n", "\n") if "\x1b" in text or "\r\r" in text else text

    @cached_property
    def is_json(self) -> bool:
        """Whether the contents are JSON: an object or a list of objects, perhaps after lines of text."""
        return (
            _JSON.match(self.text) is not None or _JSON_LINE.search(self.text[:_LONGEST_PREFIX]) is not None
        )

    def json(self) -> Any:
        """Return the contents as JSON.

        Raises
        ------
        MeasurementError
            If they are not JSON, or several documents.
        """
        if len(self.documents) > 1:
            raise self.error(f"{len(self.documents)} JSON documents one after another; expected one")
        return self.documents[0]

    @cached_property
    def documents(self) -> Sequence[Any]:
        """The JSON documents one after another, without text before and behind them; at least one.

        A program that was interrupted leaves the last one of several incomplete, which is left out.

        Raises
        ------
        MeasurementError
            If the first is not JSON.
        """
        text = self.text
        first = _JSON.match(text) or _JSON_LINE.search(text)
        at = len(first[0]) - len(first[0].lstrip()) + first.start() if first else 0
        document, at = self._document(text, at)
        found = [document]
        while (following := _FOLLOWING.match(text, at)) is not None:
            try:
                document, at = self._document(text, following.end())
            except MeasurementError:
                break
            found.append(document)
        return found

    def _document(self, text: str, at: int) -> tuple[Any, int]:
        """Return the JSON document at a place of the text, and its end."""
        decoder = json.JSONDecoder()
        try:
            try:
                return decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                # iperf3 3.1 prints what C prints for a division by zero.
                return decoder.raw_decode(
                    _NOT_A_NUMBER.sub(lambda found: "null".ljust(len(found[0])), text), at
                )
        except json.JSONDecodeError as error:
            message = f"not valid JSON: {error.msg}; the file is truncated or was edited"
            raise self.error(message, error.lineno) from None
        except (RecursionError, ValueError):
            # ValueError: a number with thousands of digits.
            raise self.error(
                "not the JSON of a measurement: nested too deeply, or a number too long"
            ) from None


_HEAD_BYTES = 1000
_ESCAPE = re.compile(r"\x1b(?:\[[\d;?]{0,20}[A-Za-z]|\][^\x07\n]{0,200}(?:\x07|\x1b\\))")
_JSON = re.compile(r"\s*(?:\{|\[\s*[{\]])")
_JSON_LINE = re.compile(r"^\{\s*\"", re.MULTILINE)
_FOLLOWING = re.compile(r"[\s,]*(?=\{)")
_NOT_A_NUMBER = re.compile(r"(?<=[:\[,\s])-?nan(?=\s*[,}\]])")

_LONGEST_PREFIX = 4000
"""Limit of the text before JSON, such as warnings."""


_Unpacked = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile

_PACKED: dict[bytes, Callable[[BufferedReader], _Unpacked]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
"""What unpacks a file, by its magic number."""

_EDITCAP = "convert it: `editcap -F pcapng FILE capture.pcapng`"

_UNREADABLE = {
    b"PK\x03\x04": "a ZIP archive, or the file of a spreadsheet; unpack it, or export it as CSV",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; unpack it: `zstd -d FILE`",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it",
    b"Rar!\x1a\x07": "a RAR archive; unpack it",
    b"snoop\0\0\0": f"a capture of snoop; {_EDITCAP}",
    b"GMBU": f"a capture of Microsoft's Network Monitor; {_EDITCAP}",
    b"RTSS": f"a capture of Microsoft's Network Monitor; {_EDITCAP}",
    b"\x34\xcd\xb2\xa1": f"a capture of a modified tcpdump; {_EDITCAP}",
    b"%PDF-": "a PDF and not the output of a measurement",
    b"\x89PNG": "a picture; expected the text or the file of the measurement",
    b"\xff\xd8\xff": "a picture; expected the text or the file of the measurement",
    **dict.fromkeys((b"TRSNIFF data", b"\x7fver", b"btsnoop\0"), f"a capture of another program; {_EDITCAP}"),
    b"RRD\0": "a database of rrdtool, as of SmokePing or collectd, which has means; measure with ping",
    **dict.fromkeys(
        (b"\xd0\xcf\x11\xe0", b"\x89HDF", b"PAR1", b"ARROW1", b"\x93NUMPY", b"MATLAB 5.0"),
        "a table or a document of another program; export it as CSV",
    ),
    **dict.fromkeys((b"\x04\x22\x4d\x18", b"\x1f\x9d"), "compressed by lz4 or compress; unpack it"),
    b"{\\rtf": "a document and not the output of a measurement; save it as plain text",
    b"SQLite format 3\0": "a database, such as the store of a study, and not a measurement",
}
"""What is known by its first bytes and not read, and the remedy."""


def load(path: str | Path) -> Source:
    """Read a file and decompress it.

    Raises
    ------
    MeasurementError
        If it is empty, too large, or damaged from the first compressed byte on.
    OSError
        If it cannot be read.
    """
    name = str(path)
    with Path(path).open("rb") as file:
        mode = os.fstat(file.fileno())
        if stat.S_ISCHR(mode.st_mode) or stat.S_ISBLK(mode.st_mode):
            raise MeasurementError(name, "a device and not a file; expected the output of a measurement")
        if stat.S_ISREG(mode.st_mode) and mode.st_size > LARGEST_BYTES:
            raise MeasurementError(name, _TOO_LARGE)
        head = file.peek(16)
        for magic, what in _UNREADABLE.items():
            if head.startswith(magic):
                raise MeasurementError(name, what)
        opener = next((opener for magic, opener in _PACKED.items() if head.startswith(magic)), None)
        data, cut = (_limited(name, file), False) if opener is None else _unpacked(name, opener(file))
    if data[257:262] == b"ustar":
        raise MeasurementError(name, "a tar archive; unpack it")
    if not data.strip():
        raise MeasurementError(name, "the file is empty; was the measurement interrupted?")
    return Source(name, data, cut)


def _unpacked(name: str, unpacked: _Unpacked) -> tuple[bytes, bool]:
    """Return the contents of a compressed file, and whether it is truncated."""
    chunks: list[bytes] = []
    try:
        with unpacked:
            for chunk in _chunks(name, unpacked):
                chunks.append(chunk)
    except (EOFError, OSError, zlib.error, lzma.LZMAError):
        # An interrupted measurement is valid up to its end.
        if not chunks:
            raise MeasurementError(name, "a damaged compressed file that cannot be decompressed") from None
        return b"".join(chunks), True
    return b"".join(chunks), False


def _limited(name: str, file: BufferedReader) -> bytes:
    return b"".join(_chunks(name, file))


def _chunks(name: str, file: BufferedReader | _Unpacked) -> Iterator[bytes]:
    """Yield the contents of a file up to the limit of its kind, which the first bytes show.

    Raises
    ------
    MeasurementError
        If it is larger.
    """
    size, most = 0, LARGEST_BYTES
    while chunk := file.read1(1 << 20):
        if not size and not chunk.startswith(CAPTURES):
            most = LARGEST_TEXT_BYTES
        size += len(chunk)
        if size > most:
            raise MeasurementError(name, _TOO_LARGE if most == LARGEST_BYTES else _TOO_LARGE_TEXT)
        yield chunk


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
