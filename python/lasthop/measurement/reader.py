"""Reading of a measurement with format detection."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import get_args

from lasthop.core import names
from lasthop.measurement.format import Options, Reader
from lasthop.measurement.model import Measurement
from lasthop.measurement.source import HAS_TIMES, Host, Place, Source, load, mapping
from lasthop.measurement.table_cells import CAPACITY, COLUMNS

_MODULES = (
    "pcap",
    "measured",
    "iperf3",
    "irtt",
    "flent",
    "mahimahi",
    "gateway_flows",
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


_PING = "measure with `ping -D -O -i 0.02 HOST`"

_SUMMARY = "a summary without packets, which tells no bursts"

_PACKETS = re.compile(
    # tcpdump, tshark, and what Wireshark exports as CSV.
    r"^(?:[\d-]{10} )?\d\d:\d\d:\d\d\.\d{6,9} (?:\S{1,16} (?:In|Out|[BMP]) +)?(?:IP6?|ARP,) |"
    r"^ *\d{1,9} +\d{1,9}\.\d{6,9} +\S{2,45} +(?:->|\u2192) +\S{2,45} +[A-Z]|"
    r'\A"No\.","Time","|\A.{0,30}"Source","Destination","Protocol"|'
    # The fields of tshark.
    r"\A\W?(?:frame|eth|ip|tcp|udp)\.\w+(?:\.\w+)?\W",
    re.MULTILINE,
)
"""Lists of packets, of which other readers know some lines."""

_OTHERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"^HOST: .{1,80}Loss% +Snt|My traceroute|WinMTR|"
            r"^ +\d{1,2}\.\|-- |^Mtr_Version,|^x \d{1,2} \d{4,6}\s+^[hpx] ",
            re.MULTILINE,
        ),
        f"the output of mtr, {_SUMMARY}; {_PING}",
    ),
    (
        re.compile(r"^ +\d{1,4}/ *\d{1,4} = +\d{1,3}% ", re.MULTILINE),
        f"the output of pathping, {_SUMMARY}; {_PING} in WSL",
    ),
    (
        re.compile(
            r"^Tracing route to |^traceroute6? to |^ +\d+ +(?:(?:<?[\d.]+ ms|\*) +){3}|"
            r"^ ?\d+\?: \[LOCALHOST\]",
            re.MULTILINE,
        ),
        f"the output of traceroute, which sends too few packets for losses; {_PING}",
    ),
    (
        re.compile(r"^\d{14},[\d.:a-f]*,\d+,[\d.:a-f]*,\d+,"),
        "the CSV of iperf 2; expected iperf3's JSON: `iperf3 -c SERVER -J -t 60 -i 0.1`",
    ),
    (
        re.compile(r"^ *Speedtest by Ookla|^Retrieving speedtest\.net configuration", re.MULTILINE),
        f"the output of a speed test, {_SUMMARY}; state its rate: `lasthop advise --loss 1% --rate 45Mbps "
        "--rtt 60ms`",
    ),
    (
        re.compile(r"^Sending \d+, \d+-byte ICMP Echos to |^Success rate is \d+ percent", re.MULTILINE),
        f"the output of ping of a Cisco router, which has no times; {_PING}",
    ),
    (
        re.compile(r"^ *SEQ HOST +SIZE TTL TIME", re.MULTILINE),
        f"the output of ping of RouterOS, which is not supported; {_PING}",
    ),
    (
        re.compile(
            r"^ *(?:Ping )?Source +(?:Destination|Address) +.*\b(?:Latency|Bytes|BufferSize)", re.MULTILINE
        ),
        f"the output of PowerShell's Test-Connection, which sends a packet per second; {_PING} in WSL",
    ),
    (
        re.compile(r"^ARPING |^Starting Nping |^Probing \S+:\d+/tcp|^PsPing v", re.MULTILINE),
        f"the output of a program that is not supported (arping, nping, tcping or PsPing); {_PING}",
    ),
    (
        re.compile(r"^ *% Total +% Received % Xferd|^[^\n]{1,80} \d{1,3}%\[[=+>]{0,80} *\] ", re.MULTILINE),
        "the output of a download, the rate of one transfer, which tells no losses; measure with "
        "`lasthop measure HOST --url URL`",
    ),
    (
        re.compile(
            r"^(?:MIGRATED )?(?:TCP|UDP|OMNI)\S* .{0,40}TEST (?:from|to) |MB / +[\d.]+ sec = ", re.MULTILINE
        ),
        f"the output of netperf or nuttcp, {_SUMMARY}; expected iperf3's JSON: "
        "`iperf3 -c SERVER -J -t 60 -i 0.1`",
    ),
    (
        re.compile(
            r"^Station (?:[\da-f]{2}:){5}[\da-f]{2} \(on |^#kernel$|^NIC statistics:$|"
            r"^(?:Ip|Tcp|TcpExt|Udp):$|^qdisc \w+ [\da-f]+: |^\d+: \S+: <[A-Z_,-]+> mtu ",
            re.MULTILINE,
        ),
        f"counters of a host or its interface, which tell no losses of a path; {_PING}",
    ),
    (
        re.compile(r"\A\s*(?:[-+\d.]+[ \t;,]+)+[-+\d.]+\s*$", re.MULTILINE),
        "columns of numbers without names; put their names into a first line, such as time_s,rate_mbps, and "
        "commas between the numbers",
    ),
)
"""How known programs begin whose output cannot be read, and what to say of it."""

_OTHER_JSON: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"_source"}),
        "packets as JSON; expected the capture itself, such as that of `tcpdump -i wlan0 -s 128 -B 65536 "
        "-w capture.pcap`",
    ),
    (frozenset({"start", "intervals"}), "a list of tests of iperf3; put each into its own file"),
    (frozenset({"dishGetStatus"}), f"the state of a Starlink dish at one instant; {_PING}"),
    (frozenset({"report"}), f"the JSON of mtr, {_SUMMARY}; {_PING}"),
    (
        frozenset({"download", "upload", "ping"}),
        f"the JSON of a speed test, {_SUMMARY}; state its rate: `lasthop advise --loss 1% --rate 45Mbps "
        "--rtt 60ms`",
    ),
)
"""The keys of the JSON of known programs that cannot be read, and what to say of it."""


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
    captures = READERS[0]
    if not captures.recognises(source) and _PACKETS.search(source.text[:4000]):
        remedy = f"expected the capture itself, such as that of `{captures.command}`"
        raise source.error(f"packets as text, which lacks a part of each; {remedy}")
    for reader in READERS:
        refusal = reader.refusal(source)
        if refusal is not None:
            raise source.error(refusal)
        if reader.recognises(source):
            return reader
    for pattern, what in _OTHERS:
        if pattern.search(source.text[:4000]):
            raise source.error(what)
    supported = f"supported formats: {titles()}"
    if source.is_json:
        document = source.documents[0]
        listed = isinstance(document, list)
        document = document[0] if listed and document else document
        for wanted, what in _OTHER_JSON:
            if wanted <= mapping(document).keys():
                raise source.error(what)
        found = ", ".join(str(key)[:40] for key in list(mapping(document))[:5])
        keys = f", with the keys {found}" if found else ""
        raise source.error(f"{'a list of ' if listed else ''}JSON of an unknown program{keys}; {supported}")
    raise source.error(f"not a known measurement; {supported}")
