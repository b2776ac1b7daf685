"""Reader of the text of iperf 3 and iperf 2, of iperf 2's CSV, and of the intervals of nuttcp and netperf.

Their lines are put into a document of iperf3, so that the same rules hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from lasthop.measurement import iperf3
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.iperf3 import UNITS
from lasthop.measurement.model import Measurement
from lasthop.measurement.source import Source

_LINE = re.compile(
    r"\[ *\*?(?P<stream>\d{1,9}|SUM)\](?:\[(?P<role>[TR]X)-[SC]\])? +"
    r"(?P<start>\d{1,9}\.\d{1,6}) *- *(?P<end>\d{1,9}\.\d{1,6}) +sec +"
    r"(?P<size>\d{1,12}(?:\.\d{1,6})?) (?P<unit>[KMGT]?)Bytes +[\d.]{1,12} [KMGT]?(?:bits|Bytes)/sec\b"
    r"(?: +[\d.]{1,12} ms +(?P<lost>-?\d{1,12})/ *(?P<sent>\d{1,12}) )?(?P<rest>.{0,120})$"
)
"""An interval of a stream of iperf, or its total."""

_CSV = re.compile(
    r"\d{14}(?:\.\d{1,6})?,[\d.:a-f]{0,45},(?P<from>\d{1,5}),[\d.:a-f]{0,45},(?P<to>\d{1,5}),"
    r"(?P<stream>-?\d{1,9}),(?P<start>\d{1,9}\.\d{1,6})-(?P<end>\d{1,9}\.\d{1,6}),(?P<size>\d{1,18}),\d{1,18}"
    r"(?:,[\d.]{1,12},(?P<lost>-?\d{1,12}),(?P<sent>\d{1,12}),.{0,60})?"
)
"""The same of `iperf -y C`."""

_NUTTCP = re.compile(
    r" *(?P<size>\d{1,12}\.\d{1,6}) (?P<unit>[KMG])B / +(?P<lasts>\d{1,9}\.\d{1,6}) sec = +"
    r"[\d.]{1,12} [KMG]bps(?P<total> +\d{1,3} %TX)?"
    r"(?:.{0,30} (?P<lost>\d{1,12}) / +(?P<sent>\d{1,12}) ~?drop/pkt)?.{0,80}"
)
"""An interval of `nuttcp -i`, which its receiver reports, or the total."""

_NETPERF = re.compile(
    r"Interim result: +(?P<rate>\d{1,12}(?:\.\d{1,6})?) 10\^(?P<power>[369])bits/s over "
    r"(?P<lasts>\d{1,9}\.\d{1,6}) seconds.{0,80}"
)
"""An interval of `netperf -D 1`."""

_TESTS = re.compile(r"^.{0,60}(?:Connecting to host |Accepted connection from )", re.MULTILINE)
_SERVER = re.compile(r"Server listening on |Accepted connection from ")
_STATED = re.compile(r"Connecting to host |Accepted connection from |Client connecting to |listening on ")

_ROUNDED = 0.05
"""The share by which the bytes of intervals and totals may differ, which have three digits each."""

_LATE = 0.01
"""The same for packets."""


@dataclass(slots=True)
class _Test:
    """What a text says of a test.

    Attributes
    ----------
    client : bool
        Whether the client printed it.
    reverse : bool
        Whether the server sends.
    udp : bool
        Whether it is over UDP.
    rows : dict
        The intervals by stream and role, as in the JSON of iperf3.
    totals : dict
        The totals of both ends, by "sender" or "receiver" and whether the data are the client's.
    """

    client: bool
    reverse: bool
    udp: bool
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    totals: dict[tuple[str, bool], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def document(self) -> dict[str, Any]:
        """Return it as iperf3 would."""
        streams = [row for rows in self.rows.values() for row in rows]
        both = len({row["sender"] for row in streams}) > 1
        end: dict[str, Any] = {"streams": []}
        for (of, from_client), totals in self.totals.items():
            key = "sum_sent" if of == "sender" else "sum_received"
            backwards = "_bidir_reverse" if both and not from_client else ""
            end[key + backwards] = {"bytes": sum(total["bytes"] for total in totals)}
            end["streams"] += [
                {"udp": total | {"sender": from_client == self.client}}
                for total in totals
                if of == "receiver" and "packets" in total
            ]
        protocol = "UDP" if self.udp else "TCP"
        start: dict[str, Any] = {"test_start": {"protocol": protocol, "reverse": self.reverse, "bidir": both}}
        if not self.client:
            start["accepted_connection"] = {}
        return {"start": start, "intervals": [{"streams": streams}], "end": end}


def _row(start_s: float, end_s: float, size: float, sender: bool, found: Any = None) -> dict[str, Any]:
    row: dict[str, Any] = {"start": start_s, "end": end_s, "bytes": size, "sender": sender}
    if found is not None and found["sent"] is not None:
        row |= {"packets": int(found["sent"]), "lost_packets": int(found["lost"])}
    return row


def _iperf(source: Source) -> _Test:
    """Read the text of iperf.

    Raises
    ------
    MeasurementError
        If it has several tests.
    """
    text = source.text
    client = _SERVER.search(text) is None
    reverse = "Reverse mode, " in text
    test = _Test(client, reverse, re.search(r"(?i)datagrams?\b", text) is not None)
    if len(_TESTS.findall(text)) > 1 or ("Client connecting to" in text and "Server listening on" in text):
        raise source.error("several tests of iperf in one text; put each into its own file")
    # What the columns say of who prints: a sender's retransmissions, or its datagrams.
    sends, reported = client != reverse, False
    for number, line in enumerate(text.splitlines(), 1):
        heads = "Retr" in line or line.rstrip().endswith("Total Datagrams")
        if heads and not any(test.rows.values()):
            sends = "Lost/Total" not in line
            test.reverse = sends != client
        reported |= "Server Report" in line
        found = _LINE.search(line[:300])
        if found is None or found["stream"] == "SUM":
            continue
        start_s, end_s = float(found["start"]), float(found["end"])
        size = float(found["size"]) * UNITS[found["unit"]]
        test.udp |= found["sent"] is not None
        is_sender = found["role"] == "TX" if found["role"] else sends and found["sent"] is None
        row = _row(start_s, end_s, size, is_sender, found)
        rows = test.rows[f"{found['stream']}{found['role']}"]
        end = next((end for end in ("sender", "receiver") if re.search(rf"\b{end}\b", found["rest"])), None)
        if end is None and reported:
            end = "receiver"
        elif end is None and rows and start_s == 0 and end_s > 1.5 * rows[0]["end"]:
            end = "sender" if is_sender else "receiver"
        if end is not None:
            from_client = (found["role"] == "TX") == client if found["role"] else not test.reverse
            test.totals[end, from_client].append(row | {"sender": end == "sender"})
        elif rows and start_s < rows[-1]["end"] - 0.5 * (end_s - start_s) and not rows[-1]["omitted"]:
            raise source.error(
                "an interval begins before the last one ended: several tests in one text", number
            )
        else:
            rows.append(row | {"omitted": "omitted" in found["rest"]})
    return _checked(source, test)


def _checked(source: Source, test: _Test) -> _Test:
    """Compare the intervals with the totals; without intervals the totals are the only ones.

    Raises
    ------
    MeasurementError
        If lines are missing or damaged.
    """
    rows = [row for rows in test.rows.values() for row in rows]
    if not rows:
        both = sorted(test.totals.items())
        test.rows["total"] = next(
            (totals for (of, _), totals in both if of == "receiver" or len(both) == 1), []
        )
    for (of, from_client), totals in test.totals.items():
        is_sender = of == "sender"
        if from_client != (is_sender == test.client):
            # What the other end reported.
            continue
        own = [row for row in rows if row["sender"] is is_sender and not row.get("omitted")]
        for key in ("bytes", "packets", "lost_packets"):
            counted = sum(row.get(key, 0) for row in own)
            known = any(key in row for row in own)
            total = sum(row.get(key, 0) for row in totals)
            # What arrives behind the last interval is in the totals alone.
            scale = total if key == "bytes" else sum(row.get("packets", 0) for row in totals)
            share = _ROUNDED if key == "bytes" else _LATE
            if known and total and abs(counted - total) > share * scale + 2:
                raise source.error(
                    f"the intervals have {counted:,.0f} {key.replace('_', ' ')} and the totals "
                    f"{total:,.0f}: lines are missing or damaged"
                )
    return test


def _csv(source: Source) -> _Test:
    test = _Test(client=False, reverse=False, udp=False)
    for line in source.text.splitlines():
        if (found := _CSV.fullmatch(line.strip()[:400])) is None or int(found["stream"]) < 0:
            continue
        start_s, end_s = float(found["start"]), float(found["end"])
        test.udp |= found["sent"] is not None
        # A client states its own port first, which is the larger one; a server's row has the losses.
        is_sender = found["sent"] is None and int(found["from"]) > int(found["to"])
        test.client |= is_sender
        rows = test.rows[found["stream"] + str(is_sender)]
        row = _row(start_s, end_s, float(found["size"]), is_sender, found)
        if rows and start_s == 0 and end_s > 1.5 * rows[0]["end"]:
            test.totals["sender" if is_sender else "receiver", True].append(row)
        else:
            rows.append(row)
    if test.client:
        # What the server reported to it at the end.
        for rows in test.rows.values():
            if not rows[0]["sender"]:
                test.totals["receiver", True] += rows
                rows.clear()
    return _checked(source, test)


def _following(lines: Iterator[tuple[float, float, Any]], test: _Test) -> _Test:
    """Add intervals, each of which follows the last one."""
    start_s = 0.0
    for lasts_s, size, found in lines:
        row = _row(start_s, start_s + lasts_s, size, test.client != test.reverse, found)
        test.rows["1"].append(row)
        start_s += lasts_s
    return test


def _nuttcp(source: Source) -> _Test:
    found = [
        found for line in source.text.splitlines() if (found := _NUTTCP.fullmatch(line[:300])) is not None
    ]
    intervals = [one for one in found if one["total"] is None] or found[:1]
    lines = ((float(one["lasts"]), float(one["size"]) * UNITS[one["unit"]], one) for one in intervals)
    return _following(lines, _Test(False, False, any(one["sent"] is not None for one in found)))


def _netperf(source: Source) -> _Test:
    found = [found for line in source.text.splitlines() if (found := _NETPERF.match(line[:300])) is not None]
    lines = (
        (float(one["lasts"]), float(one["lasts"]) * float(one["rate"]) * 10 ** int(one["power"]) / 8, None)
        for one in found
    )
    return _following(lines, _Test(True, "MAERTS" in source.text, False))


_INTERVAL = _LINE.pattern.replace("|SUM", "")

_READERS: tuple[tuple[re.Pattern[str], Callable[[Source], _Test]], ...] = (
    (re.compile(rf"^.{{0,60}}?{_INTERVAL}", re.MULTILINE), _iperf),
    (re.compile(rf"\A{_CSV.pattern}$", re.MULTILINE), _csv),
    (re.compile(rf"^{_NUTTCP.pattern}$", re.MULTILINE), _nuttcp),
    (re.compile(rf"^{_NETPERF.pattern}$", re.MULTILINE), _netperf),
)
"""How the text of each program is recognised, and what reads it."""


def _fits(text: str) -> bool:
    return any(pattern.search(text[:20_000]) for pattern, _ in _READERS)


def _parse(source: Source, options: Options) -> Measurement:
    """Read the text of iperf, nuttcp or netperf."""
    text = source.text.lstrip()
    reader = next((reader for pattern, reader in _READERS if pattern.search(text[:20_000])), None)
    if reader is None:
        raise source.error("no intervals of iperf, nuttcp or netperf")
    test = reader(source)
    measurement = iperf3.parse(source, test.document(), options)
    if reader in (_iperf, _nuttcp) and _STATED.search(text) is None:
        measurement = measurement.noting(
            "No line says which end sends: the data are taken to be those of the "
            f"{'server' if test.reverse else 'client'}."
        )
    return replace(measurement, format=f"iperf-text {'udp' if test.udp else 'tcp'}").noting(
        "The text has few digits of each number, and does not show options that limit a test, such as -b; "
        "the JSON of iperf3 (-J) does."
    )


READER = TextReader(
    name="iperf-text",
    title="iperf text",
    command="iperf -s -u -i 1 > iperf.txt",
    fits=_fits,
    parse=_parse,
)
