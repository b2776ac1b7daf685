"""Reading of a measurement with format detection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import get_args

from lasthop.core import names
from lasthop.measurement import others
from lasthop.measurement.format import Options, Reader
from lasthop.measurement.model import Measurement
from lasthop.measurement.source import HAS_TIMES, Host, Place, Source, load
from lasthop.measurement.table_cells import CAPACITY, COLUMNS

_MODULES = (
    "pcap",
    "measured",
    "iperf_text",
    "iperf3",
    "irtt",
    "flent",
    "mahimahi",
    "gateway_flows",
    "starlink",
    "atlas",
    "mtr",
    "ss",
    "fping",
    "ping",
    "table",
)
"""The modules with a reader, in the order in which a file is offered to them."""

READERS: tuple[Reader, ...] = tuple(
    import_module(f"lasthop.measurement.{module}").READER for module in _MODULES
)
"""The reader of each format."""

MEANINGS: tuple[str, ...] = (*COLUMNS, CAPACITY)
"""What a column of a table can be."""

FORMATS: tuple[str, ...] = tuple(reader.name for reader in READERS)
"""The name of each format."""


def titles() -> str:
    """Return the titles of all formats as a phrase."""
    *most, last = (reader.title for reader in READERS)
    return f"{', '.join(most)} and {last}"


def read(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word that users know, as in pandas and numpy
    user: Host = "client",
    captured: Place | None = None,
    every_s: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> Measurement:
    r"""Read a measurement of a link. docs/guide/measurements.md describes the formats.

    Parameters
    ----------
    path : str or Path
        The file, optionally compressed by gzip, xz or bzip2.
    format : str, optional
        Its format, one of `FORMATS`. By default it is detected from the contents.
    user : {"client", "server"}, default "client"
        The end on the user's side of the link, for iperf3, ss and captures: `"client"` is the host that
        opened the connections.
    captured : {"client", "server", "between"}, optional
        Where a capture was taken. By default it is inferred from delays.
    every_s : float, optional
        The time between the rows of a CSV file, or the packets of ping, without times.
    columns : mapping of str to str, optional
        What columns of a CSV file are: `{"latency": "rtt_ms"}`, or `{"rate": "capacity"}` for a rate that
        is the capacity of the link.

    Returns
    -------
    Measurement
        The measurement.

    Raises
    ------
    MeasurementError
        If the format is unknown, or the file is damaged.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "probes.csv"
    >>> _ = file.write_text("time_s,lost\n0,0\n0.02,1\n0.04,0\n")
    >>> read(file).probes[0].lost
    array([False,  True, False])
    """
    if format is not None and format not in FORMATS:
        raise ValueError(names.unknown("format", format, FORMATS))
    if user not in get_args(Host):
        raise ValueError(names.unknown("end", user, get_args(Host)))
    if captured is not None and captured not in get_args(Place):
        raise ValueError(names.unknown("place", captured, get_args(Place)))
    if every_s is not None and not 0 < every_s < math.inf:
        raise ValueError(f"found {every_s} s between rows, expected a time above zero")
    meanings = dict(columns or {})
    for meaning in meanings.values():
        if meaning not in MEANINGS:
            raise ValueError(names.unknown("column", meaning, MEANINGS))
    source = load(path)
    reader = _reader(source) if format is None else READERS[FORMATS.index(format)]
    measurement = reader.read(source, Options(user, captured, every_s, meanings))
    if every_s is not None and not reader.takes_every:
        measurement = measurement.noting(HAS_TIMES)
    if source.cut:
        note = "The compressed file is truncated or damaged; it is read up to the damage."
        measurement = measurement.noting(note)
    return measurement


def _reader(source: Source) -> Reader:
    """Return the reader that recognises a file."""
    if not READERS[0].recognises(source):
        for pattern, what in others.FIRST:
            if pattern.search(source.text[:4000]):
                raise source.error(what)
    for reader in READERS:
        refusal = reader.refusal(source)
        if refusal is not None:
            raise source.error(refusal)
        if reader.recognises(source):
            return reader
    if (found := others.named(source)) is not None:
        raise source.error(found)
    supported = f"supported formats: {titles()}"
    if source.is_json:
        keys, listed = others.keys(source)
        listing = ", ".join(key[:40] for key in keys[:5])
        keys_found = f", with the keys {listing}" if listing else ""
        raise source.error(
            f"{'a list of ' if listed else ''}JSON of an unknown program{keys_found}; {supported}"
        )
    raise source.error(f"not a known measurement; {supported}")
