"""Reader of CSV files with the columns of Lasthop's data files."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO

import numpy as np
import numpy.typing as npt

from lasthop.core import names
from lasthop.core.formats import plural
from lasthop.measurement.echoes import interpolated
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.model import (
    Counts,
    Delays,
    Direction,
    Floats,
    LossSeries,
    Measurement,
    Probes,
    Rates,
)
from lasthop.measurement.source import HAS_TIMES, LONGEST_S, Source, parsed, probes

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIMES = {f"time_{unit}": seconds for unit, seconds in _UNITS.items()}
DATES = ("time", "timestamp", "datetime", "date")
RATES = {"rate_bps": 1.0, "rate_kbps": 1e3, "rate_mbps": 1e6, "rate_gbps": 1e9}
ROUND_TRIPS = {f"rtt_{unit}": seconds for unit, seconds in _UNITS.items()}
ONE_WAYS = {f"delay_{unit}": seconds for unit, seconds in _UNITS.items()}
LOSSES = {"loss": 1.0, "loss_percent": 0.01}
OTHERS = ("lost", "received", "sent", "seq", "size_bytes", "direction")
MEASURED = (*RATES, *ROUND_TRIPS, *ONE_WAYS, *LOSSES, "lost", "received")
COLUMNS = (*TIMES, *DATES, *RATES, *ROUND_TRIPS, *ONE_WAYS, *LOSSES, *OTHERS)

CAPACITY = "capacity"
"""The meaning of a rate that is the capacity of the link, and not what a transfer achieved."""

LONGEST_DELAY_S = 3600.0
"""Limit of a delay: a larger one is in another unit than its column states."""

_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_MOST_ROWS = 4_000_000
_DELIMITERS = (",", ";", "\t")
_FIRST_ROWS = 20

_GUESSES = (
    ("drop", "loss"),
    ("loss", "loss"),
    ("seq", "seq"),
    ("rtt", "rtt_ms"),
    ("latency", "rtt_ms"),
    ("mbps", "rate_mbps"),
    ("throughput", "rate_mbps"),
    ("time", "time"),
    ("date", "time"),
)
"""Parts of names of other programs, and what such a column may be."""

_LOST_WORDS = re.compile(
    r"(?:(?:request )?timed? ?-?out|lost|loss|fail(?:ed|ure)?|error|unreachable|dropped|down|\*|"
    r"no (?:reply|response))\.?",
    re.IGNORECASE,
)
"""What a column says of a probe without a reply."""

_NAME = re.compile(r"[^\d=][^=]*")
"""The name of a column; `key=value` is of a log."""

_DECIMAL_COMMA = re.compile(r"-?\d+,\d+(?:[eE][+-]?\d+)?")
_ABSENT = ("", "nan", "null", "none", "-", "*", "n/a", "na", "inf")
"""Cells that stand for a value that was not measured."""

_DATE = re.compile(
    r"(?P<day>\d{4}[-./]\d\d[-./]\d\d)[T _-]{1,3}(?P<hour>\d\d)[:.](?P<minute>\d\d)[:.]"
    r"(?P<rest>\d\d(?:[.,]\d{1,9})?)$"
)


_EPOCH = re.compile(r"1\d{9}(?:(?P<small>\d{3}|\d{6}|\d{9})|\.(?P<fraction>\d{0,9}))?")
"""A time since 1970: ten digits of seconds, and those of a smaller unit."""


def _fits(text: str) -> bool:
    """Return whether a text is a CSV file: with a column that is known, or with rows like its header."""
    head = _header(text)
    if head is None:
        return False
    names, delimiter = head
    if any(name in COLUMNS for name in names):
        return len(names) > 1 or names[0] in COLUMNS
    if len(names) < 2 or not all(_NAME.fullmatch(name) and name.isprintable() for name in names):
        return False
    rows = [line for line in text[:20_000].splitlines()[:-1] if line.strip() and not line.startswith("#")]
    # The lines of a log have commas here and there.
    return all(line.count(delimiter) == len(names) - 1 for line in rows[:_FIRST_ROWS])


def _header(text: str) -> tuple[list[str], str] | None:
    """Return the column names and the delimiter."""
    for line in text[:20_000].splitlines():
        if line.strip() and not _is_remark(line):
            delimiter = max(_DELIMITERS, key=line.count)
            return [name.strip().strip('"').lower() for name in line.split(delimiter)], delimiter
    return None


def _is_remark(line: str) -> bool:
    """Return whether a line is a comment, or tells a spreadsheet its delimiter."""
    return line.startswith("#") or re.fullmatch(r"\ufeff?sep=.\s*", line) is not None


def _parse(source: Source, options: Options) -> Measurement:
    """Read a CSV file.

    Raises
    ------
    MeasurementError
        If a column is missing, or a value is invalid.
    """
    every_s = options.every_s
    table = _Table(source, options.columns)
    notes: list[str] = []
    if not table.rows:
        raise source.error("no rows below the column names", table.line)
    if every_s is None or table.timed:
        time_s = table.times()
        notes += [] if every_s is None else [HAS_TIMES]
    else:
        time_s = table.regular(every_s)
    if time_s.max() > LONGEST_S:
        raise source.error("the times are years apart", table.lines[-1])
    fates: list[Probes] = []
    delays: list[Delays] = []
    rates: list[Rates] = []
    counts: list[Counts] = []
    losses: list[LossSeries] = []
    for direction, rows in table.directions():
        _read_direction(table, direction, rows, time_s, (fates, delays, rates, counts, losses), notes)
    if not fates and not delays and not rates and not counts and not losses:
        raise source.error(
            f"no measured column: besides the time, expected one of {', '.join(MEASURED)}{table.hint()}"
            f"{table.question()}",
            table.line,
        )
    unknown = [name for name in table.names if name and name not in COLUMNS]
    if unknown:
        notes.append(f"Columns not read: {', '.join(unknown)[:200]}.")
    return Measurement(
        source.name,
        "csv",
        float(time_s.max()),
        probes=tuple(fates),
        delays=tuple(delays),
        rates=tuple(rates),
        counts=tuple(counts),
        losses=tuple(losses),
        notes=tuple(dict.fromkeys(notes)),
    )


def _read_direction(
    table: _Table,
    direction: Direction | None,
    rows: npt.NDArray[np.bool_],
    all_s: Floats,
    into: tuple[list[Probes], list[Delays], list[Rates], list[Counts], list[LossSeries]],
    notes: list[str],
) -> None:
    """Read the rows of one direction; `direction` is None without such a column."""
    fates, delays, rates, counts, losses = into
    time_s = all_s[rows]
    if table.of_packets and _are_seconds(time_s):
        all_s[rows] = time_s = _spread(time_s)
        notes.append("The times are whole seconds; the packets of a second are spread evenly over it.")
    # A row applies until the next one.
    gaps = np.diff(time_s)
    interval_s = np.append(gaps, gaps[-1] if len(gaps) else 1.0)
    rtt, one_way = table.scaled(ROUND_TRIPS), table.scaled(ONE_WAYS)
    way = direction or (Direction.ROUND_TRIP if rtt is not None else Direction.DOWN)
    if direction is None and way is Direction.DOWN:
        notes.append("No column `direction`: assumed down, towards the user.")
    sent = table.whole("sent")
    if sent is not None:
        lost = table.whole("lost")
        received = table.whole("received")
        if lost is None and received is None:
            raise table.source.error("the column `sent` needs `lost` or `received` beside it", table.line)
        gone = lost if lost is not None else sent - received if received is not None else sent
        if (bad := np.flatnonzero((gone < 0) | (gone > sent))).size:
            raise table.source.error("more packets lost or received than sent", table.lines[int(bad[0])])
        counts.append(Counts(way, time_s, interval_s, sent[rows], gone[rows]))
    else:
        flags = table.flags("lost")
        if flags is None and (received_flags := table.flags("received")) is not None:
            flags = ~received_flags
        if flags is not None:
            size = table.scaled({"size_bytes": 1.0})
            sizes = np.unique(size[rows]) if size is not None else np.array([])
            sizes = sizes[np.isfinite(sizes)]
            one = int(sizes[0]) if len(sizes) == 1 and 0 < sizes[0] < 65536 else None
            if len(sizes) > 1:
                notes.append("Packets of several sizes; the sizes are not kept.")
            fates.append(probes(way, time_s, flags[rows], one))
    if not fates and sent is None and (rtt is None or bool((rtt[rows] > 0).all())):
        _missing_numbers(table, way, rows, time_s, fates, notes)
    if rtt is not None and not fates and sent is None:
        _without_replies(table, way, rows, time_s, ~(rtt > 0), fates, notes)
    if rtt is not None:
        rtt = np.where(rtt == 0, np.nan, rtt)
    for column, which in ((rtt, Direction.ROUND_TRIP), (one_way, way)):
        if column is None:
            continue
        if (late := np.flatnonzero(column > LONGEST_DELAY_S)).size:
            raise table.source.error(
                "a delay of more than an hour; is its unit right?", table.lines[int(late[0])]
            )
        if (keep := rows & (column >= 0)).any():
            delays.append(Delays(which, all_s[keep], column[keep]))
    rate = table.scaled(RATES)
    if rate is not None and (keep := (rate >= 0)[rows]).any():
        rate_way = Direction.DOWN if way is Direction.ROUND_TRIP else way
        capacity = table.capacity
        rates.append(
            Rates(
                rate_way,
                time_s[keep],
                interval_s[keep],
                rate[rows][keep],
                capacity,
                capacity=capacity,
                of_transfers=False,
            )
        )
        if not capacity:
            notes.append(
                "Rates are read as throughput, not as the capacity of the link; --column rate=capacity "
                "(`columns=` in Python) says that they are."
            )
    loss = table.scaled(LOSSES)
    if loss is not None:
        if (bad := np.flatnonzero((loss < 0) | (loss > 1))).size:
            raise table.source.error("a loss must be in 0 to 1, or 0 to 100 %", table.lines[int(bad[0])])
        keep = np.isfinite(loss)[rows]
        losses.append(LossSeries(way, time_s[keep], interval_s[keep], loss[rows][keep]))
        notes.append(
            "Loss fractions without packet numbers have no likelihood; use the columns `sent` and `lost`."
        )


def _missing_numbers(
    table: _Table,
    way: Direction,
    rows: npt.NDArray[np.bool_],
    time_s: Floats,
    fates: list[Probes],
    notes: list[str],
) -> None:
    """Read packets by their numbers in the column `seq`: those without a row were lost."""
    found = table.whole("seq")
    if found is None or rows.sum() < 2:
        return
    numbers = found[rows]
    steps = np.diff(numbers)
    if (bad := np.flatnonzero(steps <= 0)).size:
        line = np.array(table.lines)[rows][int(bad[0]) + 1]
        raise table.source.error(
            "seq: expected packet numbers that grow, each once, in the order of sending", line
        )
    step = int(np.gcd.reduce(steps))
    count = int((numbers[-1] - numbers[0]) // step) + 1
    if count > 2 * len(numbers):
        raise table.source.error(
            f"the numbers in the column seq leave out {count - len(numbers):,} packets and have "
            f"{len(numbers):,}: are they of packets? Rename the column if not",
            table.line,
        )
    every = numbers[0] + step * np.arange(count)
    lost = ~np.isin(every, numbers)
    fates.append(probes(way, interpolated(every, numbers, time_s), lost, None))
    if lost.any():
        notes.append(f"{plural(int(lost.sum()), 'packet')} without a row were lost, by the column `seq`.")


def _without_replies(
    table: _Table,
    way: Direction,
    rows: npt.NDArray[np.bool_],
    time_s: Floats,
    missing: npt.NDArray[np.bool_],
    fates: list[Probes],
    notes: list[str],
) -> None:
    """Read the losses of rows without a round-trip time if a column says so; otherwise note these rows."""
    count = int(missing[rows].sum())
    if not count:
        return
    said = table.lost_by_words(missing)
    if said is None:
        notes.append(
            f"{count} of {int(rows.sum())} rows have no round-trip time. Whether these packets were lost is "
            "unknown, so no losses are read; a column `lost` of 0 and 1 states it."
        )
        return
    fates.append(probes(way, time_s, missing[rows], None))
    notes.append(f'{count} rows without a round-trip time were lost, by the column "{said[:40]}".')


def _are_seconds(time_s: Floats) -> bool:
    """Return whether times are whole seconds, and most rows have that of the row before."""
    steps = np.diff(time_s)
    return len(steps) > 1 and bool((steps == np.floor(steps)).all() and (steps == 0).mean() > 0.5)


def _spread(time_s: Floats) -> Floats:
    """Spread the rows of each second over it. The first second may have begun before them, the last go on."""
    seconds, counts = np.unique(time_s, return_counts=True)
    spacing = 1.0 / np.maximum(counts, int(np.median(counts)))
    begin = seconds + np.append(1.0 - counts[0] * spacing[0], np.zeros(len(seconds) - 1))
    place = np.arange(len(time_s)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(np.repeat(begin, counts) + place * np.repeat(spacing, counts), dtype=np.float64)


def _date(cell: str) -> datetime | None:
    """Parse an ISO 8601 date, also with other delimiters, or a time since 1970; None for other text."""
    if epoch := _EPOCH.fullmatch(cell):
        seconds, rest = cell[:10], epoch["small"] or epoch["fraction"] or ""
        return datetime.fromtimestamp(float(f"{seconds}.{rest}0"), UTC)
    other = _DATE.match(cell)
    if other is not None:
        day, rest = re.sub(r"[./]", "-", other["day"]), other["rest"].replace(",", ".")
        cell = f"{day}T{other['hour']}:{other['minute']}:{rest}"
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        return None


class _Table:
    """The cells of a CSV file by column, and the line of each row."""

    def __init__(self, source: Source, meanings: Mapping[str, str]) -> None:
        self.source = source
        self.capacity = False
        text = source.text
        head = _header(text)
        if head is None:
            raise source.error("no line with the column names")
        self.names, delimiter = head
        # A line that ends with a delimiter has an empty cell behind it.
        trailing = len(self.names) > 1 and not self.names[-1]
        self.names = self.names[:-1] if trailing else self.names
        self.decimal_comma = delimiter != ","
        self.line = 0
        self.lines: list[int] = []
        self.rows: list[list[str]] = []
        for place, line in enumerate(text.splitlines(), 1):
            if not line.strip() or _is_remark(line):
                continue
            if not self.line:
                self.line = place
                continue
            try:
                cells = next(csv.reader(StringIO(line), delimiter=delimiter), [])
            except csv.Error as error:
                raise source.error(f"not a row of a CSV file: {error}", place) from None
            if trailing and len(cells) == len(self.names) + 1 and not cells[-1].strip():
                cells = cells[:-1]
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
            for word, guess in _GUESSES
            if word in name and (guess == "time") is (meaning == "time")
        ]
        if not unknown:
            return ""
        name, guess = (
            guesses[0] if guesses else (unknown[0] if len(unknown) == 1 else "NAME", meaning or "rtt_ms")
        )
        return f"; --column {shlex.quote(f'{name[:40]}={guess}')} says what a column is"

    def hint(self, wanted: Iterable[str] = COLUMNS) -> str:
        """Return a suggestion for an unknown column name, or an empty string."""
        for name in self.names:
            if name not in COLUMNS and (alike := names.near(name, wanted)):
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
        for row, cell in enumerate(cells):
            if found[0] not in TIMES and cell.lower() in _ABSENT:
                continue
            if found[0] in ROUND_TRIPS and _LOST_WORDS.fullmatch(cell):
                continue
            percent = found[0] in LOSSES and cell.endswith("%")
            cell = cell.rstrip(" %") if percent else cell
            comma = self.decimal_comma and _DECIMAL_COMMA.fullmatch(cell)
            value = parsed(cell.replace(",", ".") if comma else cell)
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

    def lost_by_words(self, missing: npt.NDArray[np.bool_]) -> str | None:
        """Return the column that says of just the rows without a round-trip time that they were lost."""
        own = [name for name in ROUND_TRIPS if name in self.names]
        for name in [*(name for name in self.names if name not in COLUMNS), *own]:
            cells = self.cells(name) or []
            if cells and all(
                (_LOST_WORDS.fullmatch(cell) is not None) == gone
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
        first = _date(cells[0])
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
                date = _date(cell)
                if date is None or (date.tzinfo is None) != (first.tzinfo is None):
                    zone = "without a time zone" if first.tzinfo is None else "with a time zone"
                    raise self.source.error(
                        f'{name}: found "{cell[:40]}", expected a date {zone}, as in the first row',
                        self.lines[row],
                    )
                time_s[row] = (date - first).total_seconds()
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


READER = TextReader(name="csv", title="CSV", takes_every=True, fits=_fits, parse=_parse)
