"""Reading of a measurement with format detection."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from lasthop.core import names
from lasthop.measurement import flent, iperf3, irtt, mahimahi, ping, ss, table
from lasthop.measurement.model import Measurement
from lasthop.measurement.source import HAS_TIMES, Host, Source, load, mapping

Format = Literal["irtt", "ping", "iperf3", "ss", "flent", "csv", "pcap", "mahimahi"]

Place = Literal["client", "server", "between"]
"""Where a capture was taken: at the host that opened the connections, at its peer, or between them."""

_CAPTURES = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",
)
_KNOWN = "irtt JSON, ping, iperf3 JSON, ss, Flent, CSV, pcap, pcapng and Mahimahi"
_IPERF_TEXT = re.compile(
    r"^(?:Connecting to host |Server listening on |Client connecting to )|"
    r"^\[ *(?:\d+|ID|SUM)\] .*(?:Bitrate|Bandwidth|bits/sec|connected)",
    re.MULTILINE,
)
_IRTT_TEXT = re.compile(r"^(?:\[.{1,100}\] )?seq=\d+ (?:rtt=\S+ rd=|LOST)", re.MULTILINE)
_JSON: dict[Format, Callable[[Any], bool]] = {
    "irtt": irtt.recognises,
    "iperf3": iperf3.recognises,
    "flent": flent.recognises,
}
_TEXT: dict[Format, Callable[[str], bool]] = {
    "mahimahi": mahimahi.recognises,
    "ss": ss.recognises,
    "ping": ping.recognises,
    "csv": table.recognises,
}


def read(
    path: str | Path,
    *,
    format: Format | None = None,  # noqa: A002 - the word that users know, as in pandas and numpy
    user: Host = "client",
    captured: Place | None = None,
    every_s: float | None = None,
) -> Measurement:
    r"""Read a measurement of a link. docs/guide/measurements.md describes the formats.

    Parameters
    ----------
    path : str or Path
        The file, optionally compressed by gzip.
    format : str, optional
        Its format: `"irtt"`, `"ping"`, `"iperf3"`, `"ss"`, `"flent"`, `"csv"`, `"pcap"` (also pcapng) or
        `"mahimahi"`. By default it is detected from the contents.
    user : {"client", "server"}, default "client"
        The end on the user's side of the link, for iperf3, ss and captures: `"client"` is the host that
        opened the connections.
    captured : {"client", "server", "between"}, optional
        Where a capture was taken. By default it is inferred from delays.
    every_s : float, optional
        The time between the rows of a CSV file, or the packets of ping, without times.

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
    if format is not None and format not in get_args(Format):
        raise ValueError(names.unknown("format", format, get_args(Format)))
    if user not in get_args(Host):
        raise ValueError(names.unknown("end", user, get_args(Host)))
    if captured is not None and captured not in get_args(Place):
        raise ValueError(names.unknown("place", captured, get_args(Place)))
    if every_s is not None and not 0 < every_s < math.inf:
        raise ValueError(f"found {every_s} s between rows, expected a time above zero")
    source = load(path)
    measurement = _read(source, format, user, captured, every_s)
    if every_s is not None and measurement.format not in ("csv", "ping"):
        measurement = measurement.noting(HAS_TIMES)
    if source.cut:
        note = "The compressed file is truncated or damaged; it is read up to the damage."
        measurement = measurement.noting(note)
    return measurement


def _read(
    source: Source, chosen: Format | None, user: Host, captured: Place | None, every_s: float | None
) -> Measurement:
    if chosen == "pcap" or (chosen is None and source.data[:4] in _CAPTURES):
        # Only captures need dpkt.
        from lasthop.measurement import pcap

        return pcap.read(source, user, captured)
    text = source.text().lstrip()
    if chosen is None and _IPERF_TEXT.search(text[:4000]):
        raise source.error(f"the text of iperf; expected JSON, such as that of `{iperf3.REMEDY}`")
    if chosen is None and _IRTT_TEXT.search(text[:4000]):
        raise source.error(f"the text of irtt; expected JSON, such as that of `{irtt.REMEDY}`")
    if chosen is None and re.match(r"\[\s*[{\]]", text):
        raise source.error(f"a JSON list of an unknown program; supported formats: {_KNOWN}")
    if chosen in _JSON or (chosen is None and text[:1] == "{"):
        document = None
        if chosen in ("iperf3", None) and re.match(r'\{\s*"event"', text):
            document = iperf3.stream(text)
        if document is None:
            document = source.json()
        if chosen is None:
            chosen = next((name for name, recognises in _JSON.items() if recognises(document)), None)
        elif not _JSON[chosen](document):
            raise source.error(f"not the JSON of {chosen}")
        match chosen:
            case "irtt":
                return irtt.read(source, document)
            case "iperf3":
                return iperf3.read(source, document, user)
            case "flent":
                return flent.read(source, document)
        found = ", ".join(str(key)[:40] for key in list(mapping(document))[:5])
        keys = f", with the keys {found}" if found else ""
        raise source.error(f"JSON of an unknown program{keys}; supported formats: {_KNOWN}")
    if chosen is None:
        chosen = next((name for name, recognises in _TEXT.items() if recognises(text)), None)
    match chosen:
        case "mahimahi":
            return mahimahi.read(source)
        case "ss":
            return ss.read(source, user)
        case "ping":
            return ping.read(source, every_s)
        case "csv":
            return table.read(source, every_s)
    raise source.error(f"not a known measurement; supported formats: {_KNOWN}")
