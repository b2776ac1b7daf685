"""Reader of CSV files with the columns of Lasthop's data files."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

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
from lasthop.measurement.source import HAS_TIMES, LONGEST_S, Source, probes
from lasthop.measurement.table_cells import (
    COLUMNS,
    LOSSES,
    ONE_WAYS,
    RATES,
    ROUND_TRIPS,
    Table,
    header,
)
from lasthop.measurement.table_times import are_seconds, spread

MEASURED = (*RATES, *ROUND_TRIPS, *ONE_WAYS, *LOSSES, "lost", "received")

LONGEST_DELAY_S = 3600.0
"""Limit of a delay: a larger one is in another unit than its column states."""

USUAL_DELAY_S = 10.0
"""Limit of the median delay, which otherwise is in another unit than its column states."""

LARGEST_RATE_BPS = 1e13
"""Limit of a rate, likewise."""

_STAND_IN = re.compile(r"\d{0,3}[05]00|\d0000|9{3,5}|32767|65535")
"""The milliseconds that may stand for a round-trip time that is unknown."""

_STAND_INS = 0.2
"""Limit of the share of such."""

_FEWEST_TOTALS = 10
"""Rows from which numbers that only grow are totals."""

_FIRST_ROWS = 20

_NAME = re.compile(r"[^\d=][^=]*")
"""The name of a column; `key=value` is of a log."""


def _fits(text: str) -> bool:
    """Return whether a text is a CSV file: with a column that is known, or with rows like its header."""
    head = header(text)
    if head is None:
        return False
    names, delimiter = head
    if delimiter == "|":
        # Many programs frame their tables so.
        return sum(name in COLUMNS for name in names) > 1
    if any(name in COLUMNS for name in names):
        return len(names) > 1 or names[0] in COLUMNS
    if (
        delimiter == "|"
        or len(names) < 2
        or not all(_NAME.fullmatch(name) and name.isprintable() for name in names)
    ):
        return False
    rows = [line for line in text[:20_000].splitlines()[:-1] if line.strip() and not line.startswith("#")]
    # The lines of a log have commas here and there.
    return all(line.count(delimiter) == len(names) - 1 for line in rows[:_FIRST_ROWS])


def _parse(source: Source, options: Options) -> Measurement:
    """Read a CSV file.

    Raises
    ------
    MeasurementError
        If a column is missing, or a value is invalid.
    """
    every_s = options.every_s
    table = Table(source, options.columns)
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
    table.check_targets()
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
        of_losses = any(word in name for name in unknown for word in ("loss", "drop"))
        question = "" if fates or counts or losses or not of_losses else table.question()
        notes.append(f"Columns not read: {', '.join(unknown)[:200]}{question}.")
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
    table: Table,
    direction: Direction | None,
    rows: npt.NDArray[np.bool_],
    all_s: Floats,
    into: tuple[list[Probes], list[Delays], list[Rates], list[Counts], list[LossSeries]],
    notes: list[str],
) -> None:
    """Read the rows of one direction; `direction` is None without such a column."""
    fates, delays, rates, counts, losses = into
    time_s = all_s[rows]
    if table.of_packets and are_seconds(time_s):
        all_s[rows] = time_s = spread(time_s)
        notes.append("The times are whole seconds; the packets of a second are spread evenly over it.")
    # A row applies until the next one.
    gaps = np.diff(time_s)
    interval_s = np.append(gaps, gaps[-1] if len(gaps) else 1.0)
    rtt, one_way = table.scaled(ROUND_TRIPS), table.scaled(ONE_WAYS)
    rtt = None if rtt is None else _without_stand_ins(rtt, notes)
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
        if _are_totals(sent[rows], (gone if received is None else received)[rows], gone[rows]):
            raise table.source.error(
                "the numbers of packets only grow, as totals since the beginning do; expected those from "
                "each row to the next: take the differences",
                table.lines[-1],
            )
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
        if (keep := rows & (column >= 0)).any() and np.median(column[keep]) > USUAL_DELAY_S:
            raise table.source.error(
                f"delays of {np.median(column[keep]):.4g} s in the median; is their unit right?", table.line
            )
        if keep.any():
            delays.append(Delays(which, all_s[keep], column[keep]))
    rate = table.scaled(RATES)
    if rate is not None and (fast := np.flatnonzero(rate > LARGEST_RATE_BPS)).size:
        raise table.source.error(
            f"a rate of {rate[fast[0]]:.4g} bit/s; is its unit right?", table.lines[int(fast[0])]
        )
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


def _are_totals(
    sent: npt.NDArray[np.int64], other: npt.NDArray[np.int64], gone: npt.NDArray[np.int64]
) -> bool:
    """Return whether numbers of packets are totals, which may have begun long before the file.

    Totals of packets sent and of the `other` column, lost or received, never decrease. Counts of intervals
    neither grow so often nor so much.
    """
    if len(sent) < _FEWEST_TOTALS or (np.diff(sent) < 0).any() or (np.diff(other) < 0).any():
        return False
    often = np.count_nonzero(np.diff(sent)) >= _FEWEST_TOTALS - 1 and gone[-1] > 0
    return bool(often) or all(each[-1] > 3 * max(each[0], 1) for each in (sent, gone))


def _without_stand_ins(rtt: Floats, notes: list[str]) -> Floats:
    """Return round-trip times without the largest, if it is one number many times, such as of a timeout."""
    known = rtt[rtt > 0]
    largest = float(known.max(initial=0.0))
    same, others = known == largest, known[known < largest]
    few = 2 < same.sum() <= _STAND_INS * len(others)
    if not few or 2 * others.max() > largest or _STAND_IN.fullmatch(f"{1e3 * largest:.6g}") is None:
        return rtt
    notes.append(
        f"{int(same.sum())} rows have the same largest round-trip time, {1e3 * largest:g} ms, taken as none: "
        "it seems to stand for a timeout."
    )
    return np.where(rtt == largest, np.nan, rtt)


def _missing_numbers(
    table: Table,
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
    table: Table,
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


READER = TextReader(name="csv", title="CSV", takes_every=True, fits=_fits, parse=_parse)
