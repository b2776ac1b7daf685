"""The cells of a CSV file, by the names of its columns."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO

import numpy as np
import numpy.typing as npt

from lasthop.core import names
from lasthop.measurement.model import Direction, Floats
from lasthop.measurement.source import Source, control_free, parsed
from lasthop.measurement.stamps import DAY_S
from lasthop.measurement.table_times import NO_DAY, date

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIMES = {f"time_{unit}": seconds for unit, seconds in _UNITS.items()}
DATES = ("time", "timestamp", "datetime", "date")
RATES = {"rate_bps": 1.0, "rate_kbps": 1e3, "rate_mbps": 1e6, "rate_gbps": 1e9}
ROUND_TRIPS = {f"rtt_{unit}": seconds for unit, seconds in _UNITS.items()}
ONE_WAYS = {f"delay_{unit}": seconds for unit, seconds in _UNITS.items()}
LOSSES = {"loss": 1.0, "loss_percent": 0.01}
OTHERS = ("lost", "received", "sent", "seq", "size_bytes", "direction")
COLUMNS = (*TIMES, *DATES, *RATES, *ROUND_TRIPS, *ONE_WAYS, *LOSSES, *OTHERS)

CAPACITY = "capacity"
"""The meaning of a rate that is the capacity of the link, and not what a transfer achieved."""

_FAR_S = 1e11
"""Limit of a time in seconds since 1970, which otherwise is in another unit than its column states."""

_TARGETS = (
    "host",
    "hostname",
    "target",
    "destination",
    "dest",
    "dst",
    "ip",
    "address",
    "url",
    "interface",
    "iface",
    "link",
)
"""Columns that say of what path a row is."""

_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_MOST_ROWS = 4_000_000
_DELIMITERS = (",", ";", "\t", "|")
_GUESSES = (
    ("drop", "loss"),
    ("loss", "loss"),
    ("seq", "seq"),
    ("rtt", "rtt_ms"),
    ("latency", "rtt_ms"),
    ("throughput", "rate_mbps"),
    ("time", "time"),
    ("date", "time"),
    ("epoch", "time"),
    ("interval start", "time_s"),
)
"""Parts of names of other programs, and what such a column may be, in the unit that is most common."""

_RATE_UNIT = re.compile(
    r"(?P<prefix>[kKmMgG]?)i?(?P<unit>[bB](?:its?|ytes?)?)(?:ps|PS|[ _]?(?:/|[pP]er)[ _]?[sS])|"
    r"(?P<short>[kKmMgG])bits?$"
)
_TIME_UNITS = {
    **{unit: unit for unit in _UNITS},
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "usecs", "\u00b5s", "\u03bcs", "micros", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"), "ns"),
}
_PERCENT = ("percent", "pct", "%")


def _guess(name: str) -> str | None:
    """Return what the column of another program may be, by its name as spelled.

    Examples
    --------
    >>> [_guess(name) for name in ("Latency (us)", "down_kbps", "loss_pct", "throughput_MBps", "colour")]
    ['rtt_us', 'rate_kbps', 'loss_percent', 'bytes', None]
    """
    if rate := _RATE_UNIT.search(name):
        unit = rate["unit"] or "bit"
        if unit.lower().startswith("byte") or (unit == "B" and not rate[0].endswith("PS")):
            return "bytes"
        return f"rate_{(rate['prefix'] or rate['short'] or '').lower()}bps"
    lower = name.lower()
    found = next((guess for word, guess in _GUESSES if word in lower), None)
    if found is None:
        return None
    if found == "loss":
        return "loss_percent" if any(word in lower for word in _PERCENT) else found
    kind = found.partition("_")[0]
    units = [_TIME_UNITS[word] for word in re.findall(r"[^\W\d_]+", lower) if word in _TIME_UNITS]
    return f"{kind}_{units[0]}" if units and kind in ("rtt", "time") else found


_LOST_WORDS = re.compile(
    r"(?:(?:request )?timed? ?-?out|lost|loss|fail(?:ed|ure)?|error|unreachable|dropped|down|\*|"
    r"no (?:reply|response))\.?",
    re.IGNORECASE,
)
"""What a column says of a probe without a reply."""

_NO = ("false", "no", "0")
"""What a column of successes says of it."""

_DECIMAL_COMMA = re.compile(r"-?\d+,\d+(?:[eE][+-]?\d+)?")
_ABSENT = ("", "nan", "null", "none", "-", "*", "n/a", "na", "inf")
"""Cells that stand for a value that was not measured."""


def header(text: str) -> tuple[list[str], str] | None:
    """Return the column names and the delimiter."""
    for line in text[:20_000].splitlines():
        if line.strip() and not _is_remark(line):
            delimiter = max(_DELIMITERS, key=line.count)
            spaced = line.lower().split()
            if delimiter not in line and len(spaced) > 1 and any(name in TIMES for name in spaced):
                return spaced, " "
            return [name.strip().strip('"').lower() for name in line.split(delimiter)], delimiter
    return None


def _is_remark(line: str) -> bool:
    """Return whether a line is a comment, tells the delimiter, or is the rule of a Markdown table."""
    return line.startswith("#") or re.fullmatch(r"\ufeff?sep=.\s*|\|[\s|:-]+\|\s*", line) is not None


class Table:
    """The cells of a CSV file by column, and the line of each row."""

    def __init__(self, source: Source, meanings: Mapping[str, str]) -> None:
        self.source = source
        self.capacity: bool = False
        head = header(source.text)
        if head is None:
            raise source.error("no line with the column names")
        names, delimiter = head
        # A line that ends with a delimiter has an empty cell behind it.
        trailing = len(names) > 1 and not names[-1]
        self.names: list[str] = names[:-1] if trailing else names
        # The names in upper and lower case: MB and Mb differ.
        self.spelled: dict[str, str] = {}
        self.decimal_comma: bool = delimiter != ","
        self.line: int = 0
        self.lines: list[int] = []
        self.rows: list[list[str]] = []
        for place, line in enumerate(source.text.splitlines(), 1):
            if not line.strip() or _is_remark(line):
                continue
            if not self.line:
                self.line = place
                spelled = line.split() if delimiter == " " else line.split(delimiter)
                self.spelled = {name.strip().strip('"').lower(): name.strip().strip('"') for name in spelled}
                continue
            try:
                text = line.strip() if delimiter == " " else line
                cells = next(csv.reader(StringIO(text), delimiter=delimiter, skipinitialspace=True), [])
            except csv.Error as error:
                raise source.error(f"not a row of a CSV file: {error}", place) from None
            if trailing and len(cells) == len(self.names) + 1 and not cells[-1].strip():
                cells = cells[:-1]
            if [cell.strip().lower() for cell in cells] == self.names:
                # What appends to a file writes its header again.
                continue
            if len(cells) != len(self.names):
                raise source.error(f"{len(cells)} values for {len(self.names)} columns", place)
            if len(self.lines) == _MOST_ROWS:
                raise source.error(f"more than {_MOST_ROWS} rows; cut it into pieces", place)
            self.lines.append(place)
            self.rows.append([cell.strip() for cell in cells])
        for name, meaning in meanings.items():
            self._call(name, meaning)
        if len(set(self.names)) != len(self.names):
            raise source.error("two columns of the same name", self.line)

    def _call(self, name: str, meaning: str) -> None:
        """Give a column the name of what the user says that it is."""
        found = [each for each in self.names if each == name.lower()]
        found = found or [each for each in self.names if each in RATES and name.lower() == "rate"]
        if len(found) != 1:
            raise self.source.error(
                f'--column {name}={meaning}: no column "{name}" among {", ".join(self.names)[:200]}',
                self.line,
            )
        if meaning == CAPACITY:
            self.capacity = True
            if found[0] not in RATES:
                raise self.source.error(
                    f"--column {name}={meaning}: state the unit, --column {name}=rate_mbps, and then "
                    f"--column rate={meaning}",
                    self.line,
                )
        else:
            self.names[self.names.index(found[0])] = meaning

    def question(self, meaning: str | None = None) -> str:
        """Return how to say what an unknown column is, or an empty string."""
        unknown = [name for name in self.names if name not in COLUMNS]
        guesses = [
            (name, guess)
            for name in unknown
            if (guess := _guess(self.spelled.get(name, name))) is not None
            and guess.startswith("time") is (meaning == "time")
        ]
        if not unknown:
            return ""
        name, guess = (
            guesses[0] if guesses else (unknown[0] if len(unknown) == 1 else "NAME", meaning or "rtt_ms")
        )
        if guess == "bytes":
            spelled = self.spelled.get(name, name)[:40]
            return f'; "{spelled}" is in bytes: write bits, in a column such as rate_mbps'
        return f"; --column {shlex.quote(f'{name[:40]}={guess}')} says what a column is"

    def hint(self, wanted: Iterable[str] = COLUMNS) -> str:
        """Return a suggestion for an unknown column name, or an empty string."""
        for name in self.names:
            alike = "" if name in COLUMNS else names.near(name, wanted)
            # A name without a unit is not that of any unit.
            if alike and not alike.startswith(f"{name}_"):
                return f'; "{name[:40]}": did you mean "{alike}"?'
        return ""

    def cells(self, name: str) -> list[str] | None:
        """Return a column, or None if it is missing."""
        if name not in self.names:
            return None
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def scaled(self, units: dict[str, float]) -> Floats | None:
        """Return a column in its basic unit, NaN for an empty cell; None if it is missing."""
        found = [name for name in units if name in self.names]
        if len(found) > 1:
            raise self.source.error(f"both {found[0]} and {found[1]}; remove one of them", self.line)
        cells = self.cells(found[0]) if found else None
        if cells is None:
            return None
        values = np.full(len(cells), np.nan)
        with_comma, with_point = "", ""
        for row, cell in enumerate(cells):
            if found[0] not in TIMES and cell.lower() in _ABSENT:
                continue
            if found[0] in ROUND_TRIPS and _LOST_WORDS.fullmatch(cell):
                continue
            percent = found[0] in LOSSES and cell.endswith("%")
            cell = cell.rstrip(" %") if percent else cell
            comma = self.decimal_comma and _DECIMAL_COMMA.fullmatch(cell)
            value = parsed(cell.replace(",", ".") if comma else cell)
            with_comma, with_point = (cell if comma else with_comma), (cell if "." in cell else with_point)
            if with_comma and with_point:
                raise self.source.error(
                    f'{found[0]}: found "{with_comma[:40]}" and "{with_point[:40]}", expected one decimal '
                    "sign and no sign between thousands",
                    self.lines[row],
                )
            if percent and value is not None:
                values[row] = value / 100
                continue
            if value is None or abs(value) > 1e15:
                raise self.source.error(
                    f'{found[0]}: found "{cell[:40]}", expected a number', self.lines[row]
                )
            values[row] = value * units[found[0]]
        return values

    @property
    def timed(self) -> bool:
        """Whether there is a column of times."""
        return any(name in self.names for name in (*TIMES, *DATES))

    @property
    def of_packets(self) -> bool:
        """Whether a row is a packet, and not an interval."""
        return "sent" not in self.names and any(
            name in self.names for name in ("lost", "received", *ROUND_TRIPS, *ONE_WAYS)
        )

    def check_targets(self) -> None:
        """Check that all packets are of one path.

        Raises
        ------
        MeasurementError
            If a column names several hosts or interfaces.
        """
        if not (self.of_packets or "sent" in self.names):
            return
        for name in [name for name in self.names if name in _TARGETS]:
            found = list(dict.fromkeys(cell for cell in self.cells(name) or [] if cell))
            if 1 < len(found) <= len(self.rows) / 2:
                raise self.source.error(
                    f"{name}: rows of {len(found)} ({control_free(', '.join(found[:3]))[:100]}); put those "
                    "of each into its own file",
                    self.line,
                )

    def lost_by_words(self, missing: npt.NDArray[np.bool_]) -> str | None:
        """Return the column that says of just the rows without a round-trip time that they were lost."""
        own = [name for name in ROUND_TRIPS if name in self.names]
        for name in [*(name for name in self.names if name not in COLUMNS), *own]:
            cells = self.cells(name) or []
            if cells and all(
                (_LOST_WORDS.fullmatch(cell) is not None or (name not in own and cell.lower() in _NO)) == gone
                for cell, gone in zip(cells, missing.tolist(), strict=True)
            ):
                return name
        return None

    def times(self) -> Floats:
        """Return the times from the first row on, of numbers or ISO 8601 dates."""
        name = next((name for name in (*TIMES, *DATES) if name in self.names), None)
        cells = self.cells(name) if name is not None else None
        if cells is None:
            raise self.source.error(
                f"no column time_s (or _ms, _us, _ns), nor dates in a column time{self.hint(TIMES)}; if rows "
                "are a fixed time apart, state it: --every 20ms (`every_s=0.02` in Python)"
                f"{self.question('time')}",
                self.line,
            )
        first = date(cells[0])
        if first is None and name in DATES:
            unit = (
                f"; --column {name}=time_s says that they are seconds" if parsed(cells[0]) is not None else ""
            )
            raise self.source.error(
                f'{name}: found "{cells[0][:40]}", expected a date such as 2026-01-02T03:04:05.678Z or '
                f"seconds since 1970{unit}",
                self.lines[0],
            )
        if name in TIMES and (first is None or parsed(cells[0]) is not None):
            time_s = self.scaled(TIMES)
            assert time_s is not None
        else:
            assert first is not None
            time_s = np.zeros(len(cells))
            for row, cell in enumerate(cells):
                found = date(cell)
                if found is None or (found.tzinfo is None) != (first.tzinfo is None):
                    zone = "without a time zone" if first.tzinfo is None else "with a time zone"
                    raise self.source.error(
                        f'{name}: found "{cell[:40]}", expected a date {zone}, as in the first row',
                        self.lines[row],
                    )
                time_s[row] = (found - first).total_seconds()
            if f"{first:%Y-%m-%d}" == NO_DAY:
                # Times of a day pass midnight.
                time_s = time_s + DAY_S * np.append(0, np.cumsum(np.diff(time_s) < -DAY_S / 2))
        if name in TIMES and time_s[0] > _FAR_S:
            raise self.source.error(
                f'{name}: found "{cells[0][:40]}", which is thousands of years; is its unit right? '
                f"--column {name}=time says that it is a time since 1970",
                self.lines[0],
            )
        if (backwards := np.flatnonzero(np.diff(time_s) < 0)).size:
            raise self.source.error("the time must not decrease", self.lines[int(backwards[0]) + 1])
        return np.asarray(time_s - time_s[0], dtype=np.float64)

    def regular(self, every_s: float) -> Floats:
        """Return the times of rows which are a fixed time apart, in each direction."""
        cells = np.array(self.cells("direction") or [""] * len(self.rows))
        time_s = np.zeros(len(cells))
        for direction in np.unique(cells):
            rows = cells == direction
            numbers = self.whole("seq")
            place = np.arange(rows.sum()) if numbers is None else numbers[rows] - numbers[rows].min()
            time_s[rows] = place * every_s
        return time_s

    def whole(self, name: str) -> npt.NDArray[np.int64] | None:
        """Return a column of whole numbers, or None if it is missing."""
        values = self.scaled({name: 1.0})
        if values is None:
            return None
        bad = np.flatnonzero(~(values == np.floor(values)))
        if bad.size:
            raise self.source.error(
                f"{name}: expected a whole number{' of packets beside `sent`' if name != 'seq' else ''}",
                self.lines[int(bad[0])],
            )
        return values.astype(np.int64)

    def flags(self, name: str) -> npt.NDArray[np.bool_] | None:
        """Return a column of booleans, or None if it is missing."""
        cells = self.cells(name)
        if cells is None:
            return None
        for row, cell in enumerate(cells):
            if cell.lower() not in _TRUTH:
                raise self.source.error(
                    f'{name}: found "{cell[:40]}", expected 0 or 1, or packet numbers beside a column `sent`',
                    self.lines[row],
                )
        return np.array([_TRUTH[cell.lower()] for cell in cells], dtype=np.bool_)

    def directions(self) -> Sequence[tuple[Direction | None, npt.NDArray[np.bool_]]]:
        """Return each value of the column `direction`, with its rows."""
        cells = self.cells("direction")
        if cells is None:
            return [(None, np.ones(len(self.rows), dtype=np.bool_))]
        known = {str(direction) for direction in Direction}
        for row, cell in enumerate(cells):
            if cell not in known:
                raise self.source.error(
                    f'direction: found "{cell[:40]}", expected one of {", ".join(sorted(known))}',
                    self.lines[row],
                )
        column = np.array(cells)
        return [(Direction(name), column == name) for name in sorted(set(cells))]
