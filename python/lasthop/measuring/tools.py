"""The programs that measure: their commands, what their output says, and how to get them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lasthop.measurement import Direction, Measurement, MeasurementError, Rates, iperf3, irtt, ping
from lasthop.measurement.format import Options
from lasthop.measurement.source import Source, at, control_free, mapping, number, whole
from lasthop.measuring.programs import Program

SPACING_S = 0.02
"""Time between probes."""

PAYLOAD_BYTES = 172
"""The payload of irtt's probes: IP packets of 200 B, as those of a call."""

PACKAGES: Mapping[str, str] = {"irtt": "irtt", "ping": "iputils-ping", "iperf3": "iperf3", "curl": "curl"}
"""The package of each program in Debian and its relatives."""

CONNECTIONS = 4
"""Connections of a load: a single one fills a lossy link less well."""

SEGMENT_BYTES = 1448
HEADER_BYTES = 52
"""A full segment with timestamps has 1448 B of data and 52 B of headers of TCP and IPv4."""

_GRACE_S = 6.0
"""Time of a program beyond that of its measurement: to connect, and to wait for the last replies."""

_CHECK_S = 6.0
"""Time in which a server has to answer."""

_LIMITED = 0.9
"""A throughput from this share of its limit on is that of the limit and not of the link."""


class ToolError(Exception):
    """What a program did not do, and the remedy."""


def installed(tool: str) -> bool:
    """Return whether a program is here."""
    return shutil.which(tool) is not None


def missing(tool: str) -> str:
    """Return that a program is not here, and what to install."""
    return f"{tool} is not installed (Debian, Ubuntu: apt install {PACKAGES[tool]})"


def irtt_probes(host: str, lasts_s: float) -> Program:
    """Return the program that probes irtt's server at a host."""
    timing = ("-i", f"{SPACING_S * 1e3:g}ms", "-d", f"{lasts_s * 1e3:.0f}ms")
    # How long it waits for the server's answer before it asks again: a lossy link loses several.
    patience = "--timeouts=300ms,500ms,500ms,1s,1s,1s"
    command = ("irtt", "client", *timing, patience, "-l", str(PAYLOAD_BYTES), "-q", "-o", "-", host)
    return Program(command, lasts_s + _GRACE_S)


def ping_probes(host: str, lasts_s: float) -> Program:
    """Return the program that pings a host."""
    deadline = ("-w", str(round(max(lasts_s, 1.0))))
    return Program(("ping", "-n", "-D", "-O", "-i", f"{SPACING_S:g}", *deadline, host), lasts_s + _GRACE_S)


def probed(program: Program) -> Measurement:
    """Return what a program of `irtt_probes` or `ping_probes` measured.

    Raises
    ------
    ToolError
        If it measured nothing.
    """
    tool = program.command[0]
    reader = irtt.READER if tool == "irtt" else ping.READER
    source = Source(tool, program.output)
    try:
        if not program.output.strip() or not reader.recognises(source):
            raise source.error("no probes")
        measurement = reader.read(source, Options())
    except MeasurementError as error:
        raise ToolError(_failure(program, error.message)) from None
    answered = sum(int((~each.lost).sum()) for each in measurement.probes if each.direction == "round trip")
    if not measurement.delays or len(measurement.delays[0].delay_s) != answered or not answered:
        raise ToolError(_failure(program, "no replies with round-trip times"))
    return measurement


def irtt_check(host: str) -> Program:
    """Return the program that finds whether irtt's server answers."""
    program = irtt_probes(host, 0.3)
    program.limit_s = _CHECK_S
    return program


def hop_check(host: str, hop: int) -> Program:
    """Return the program that finds the router at a hop: the one at which the time to live ends."""
    return Program(("ping", "-n", "-c", "3", "-i", "0.3", "-W", "1", "-t", str(hop), host), _CHECK_S)


def router(program: Program) -> str | None:
    """Return the address that a program of `hop_check` found; None if no router answered."""
    text = program.output.decode(errors="replace")
    found = re.search(
        r"^From ([\da-fA-F.:%\w]{2,60}?):? icmp_seq=\d+ Time to live exceeded", text, re.MULTILINE
    )
    return None if found is None else found[1]


def iperf3_check(host: str) -> Program:
    """Return the program that finds whether iperf3's server answers."""
    command = ("iperf3", "-c", host, "-J", "-n", "1K", "--connect-timeout", "3000")
    return Program(command, _CHECK_S)


def iperf3_answers(program: Program) -> bool:
    """Return whether the server of a program of `iperf3_check` answered."""
    try:
        document = json.loads(program.output)
    except (ValueError, RecursionError):
        return False
    return "error" not in mapping(document) and bool(mapping(at(document, "end")))


def load(host: str, direction: Direction, lasts_s: float, most_bytes: int) -> Program:
    """Return the program that fills a direction, with at most so many bytes."""
    limit_bps = 8 * most_bytes * SEGMENT_BYTES / (SEGMENT_BYTES + HEADER_BYTES) / lasts_s / CONNECTIONS
    command = ["iperf3", "-c", host, "-J", "-t", f"{lasts_s:.0f}", "-i", "1", "-P", str(CONNECTIONS)]
    command += ["-b", f"{limit_bps:.0f}", "-l", "16K", "--get-server-output", "--connect-timeout", "3000"]
    return Program([*command, *(("-R",) if direction is Direction.DOWN else ())], lasts_s + _GRACE_S)


def carried(program: Program, direction: Direction) -> Rates:
    """Return the throughput of a program of `load`, in bytes of IP.

    Raises
    ------
    ToolError
        If it carried nothing.
    """
    source = Source("iperf3", program.output)
    try:
        if not program.output.strip():
            raise source.error("no output")
        document = iperf3.READER.load(source)
        test = mapping(at(document, "start", "test_start"))
        limit_bps = (number(test.get("target_bitrate")) or 0.0) * CONNECTIONS
        if isinstance(test, dict):
            # The pace bounds the bytes; it does not limit a link that is slower.
            test.pop("target_bitrate", None)
        measurement = iperf3.READER.parse(source, document, Options())
    except MeasurementError as error:
        raise ToolError(_failure(program, error.message)) from None
    found = [each for each in measurement.rates if each.direction is direction and each.rate_bps.max() > 0]
    if not found:
        raise ToolError(_failure(program, "nothing was carried"))
    rates = found[0]
    segment = whole(at(document, "start", "tcp_mss_default")) or SEGMENT_BYTES
    overhead = (segment + HEADER_BYTES) / segment if 200 <= segment <= 65_000 else 1.0
    saturated = rates.saturated and not (limit_bps and float(rates.rate_bps.max()) >= _LIMITED * limit_bps)
    if direction is Direction.UP and at(document, "end", "sum_received", "bytes") is None:
        raise ToolError("iperf3: the server did not report what it received")
    rate_bps, interval_s = rates.rate_bps * overhead, rates.interval_s
    took_s = number(at(document, "end", "sum_received", "end"))
    if len(rate_bps) == 1 and took_s is not None and interval_s[0] < took_s <= 2 * interval_s[0]:
        # The receiver goes on with what was queued when the sender ended.
        rate_bps, interval_s = rate_bps * interval_s / took_s, np.array([took_s])
    return Rates(direction, rates.time_s, interval_s, rate_bps, saturated)


def download(url: str, lasts_s: float, most_bytes: int) -> Program:
    """Return the program that downloads a file, for a limited time and number of bytes."""
    limits = ("--max-time", f"{lasts_s:.0f}", "--connect-timeout", "4", "--max-redirs", "5")
    schemes = ("--proto", "=http,https", "--proto-redir", "=http,https")
    return Program(("curl", "-sSLfN", *limits, *schemes, "--", url), lasts_s + _GRACE_S, most_bytes)


def downloaded(program: Program) -> Rates:
    """Return the throughput of a download by the second, in bytes of IP; the first and last are left out.

    Raises
    ------
    ToolError
        If it was shorter than three seconds.
    """
    total = sum(count for _, count in program.arrivals)
    times = np.array([time_s for time_s, _ in program.arrivals])
    if total == 0:
        raise ToolError(_failure(program, "nothing was downloaded"))
    counts = np.bincount(times.astype(np.int64), weights=[count for _, count in program.arrivals])
    first = int(times[0]) + 1
    whole_seconds = counts[first:-1]
    if len(whole_seconds) < 1:
        raise ToolError(
            f"curl: the download of {total:,} bytes ended in {times[-1]:.1f} s; a larger file, or a larger "
            "--bytes, shows the rate"
        )
    rate_bps = whole_seconds * 8 * (SEGMENT_BYTES + HEADER_BYTES) / SEGMENT_BYTES
    start_s = np.arange(first, first + len(rate_bps), dtype=np.float64)
    return Rates(Direction.DOWN, start_s, np.ones(len(rate_bps)), rate_bps, True)


def _failure(program: Program, what: str) -> str:
    """Return what a program said of its failure, or else what is wrong with its output."""
    said = control_free(program.errors.splitlines()[-1]) if program.errors else ""
    said = re.sub(r"^(?:Error|ping|iperf3|curl): ", "", said)
    return f"{program.command[0]}: {said or what}"


@dataclass(frozen=True, slots=True)
class Prober:
    """What probes the far end.

    Attributes
    ----------
    name : str
        irtt or ping.
    why : str or None
        Why it is not irtt.
    """

    name: str
    why: str | None = None

    def probes(self, host: str, lasts_s: float) -> Program:
        """Return the program."""
        return (irtt_probes if self.name == "irtt" else ping_probes)(host, lasts_s)
