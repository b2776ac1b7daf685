"""Reader of the output of fping: `fping -D -l`, `-C`, `-J`, or the totals of `-q` and `-Q`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement import clock_steps
from lasthop.measurement.echoes import (
    MOST_PROBES,
    Echoes,
    counts,
    interpolated,
    measurement,
    silent,
    with_silent,
)
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.model import Measurement
from lasthop.measurement.source import (
    HAS_TIMES,
    Source,
    at,
    control_free,
    floats,
    mapping,
    number,
    parsed,
    whole,
)

_COMMAND = "fping -D -l -p 20 HOST"

_PACKET = re.compile(
    r"^(?:\[(?P<time>\d{1,12}(?:\.\d{1,9})?)\] )?(?P<host>\S.{0,255}?) {1,40}: (?P<again>duplicate for )?"
    r"\[(?P<seq>\d{1,9})\], (?:timed out|(?P<size>\d{1,6}) bytes, (?P<ms>\d{1,8}(?:\.\d{1,6})?) ms)"
)
_TOTALS = re.compile(
    r"^(?P<host>\S.{0,255}?) {1,40}: xmt/rcv/%loss = "
    r"(?P<sent>\d{1,9})/(?P<received>\d{1,9})/(?P<lost>\d{1,3})%"
)


_LIST = re.compile(
    r"^(?P<host>\S.{0,255}?) {1,40}: (?P<times>(?:(?:-|\d{1,8}(?:\.\d{1,6})?)(?: |$)){2,1000000})$"
)
"""What `-C` prints: the time of each reply, and a hyphen for each packet without one."""


@dataclass(slots=True)
class _Run:
    """The packets of one run to a host, and its totals: packets sent and answered."""

    size: int | None = None
    timed_out: set[int] = field(default_factory=set)
    rtt_s: dict[int, float] = field(default_factory=dict)
    heard_s: dict[int, float] = field(default_factory=dict)
    duplicates: int = 0
    totals: tuple[int, int] | None = None

    @property
    def numbers(self) -> set[int]:
        """The numbers of the packets that the output has."""
        return self.rtt_s.keys() | self.timed_out

    @property
    def silent(self) -> int:
        """The packets of a run without any reply; 0 for other runs."""
        if self.rtt_s:
            return 0
        if self.totals is None:
            return len(self.timed_out)
        sent, received = self.totals
        return 0 if received else sent


def _fits(text: str) -> bool:
    """Return whether a text is the output of fping."""
    return any(
        # Without the last time of a list that is cut here.
        _PACKET.match(line) or _TOTALS.match(line) or _LIST.match(line.rpartition(" ")[0])
        for line in text[:4000].splitlines()
    )


@dataclass(frozen=True, kw_only=True)
class _Reader(TextReader):
    """The reader, which recognises the lines of JSON of `fping -J` too."""

    def recognises(self, source: Source) -> bool:
        """Return whether the text is of fping."""
        if not source.is_json:
            return super().recognises(source)
        return any("host" in mapping(at(source.documents[0], key)) for key in ("resp", "timeout", "summary"))


def _parse(source: Source, options: Options) -> Measurement:
    """Read the output of fping.

    Raises
    ------
    MeasurementError
        If it is of several hosts, has no replies, or does not agree with its own totals.
    """
    hosts = _from_json(source) if source.is_json else _from_text(source)
    if len(hosts) > 1:
        named = ", ".join(control_free(host)[:40] for host in list(hosts)[:3])
        raise source.error(f"{len(hosts)} hosts ({named}); put the lines of one host into a file")
    if not hosts:
        raise source.error(f"no packets and no totals; expected the output of `{_COMMAND}`")
    ((host, runs),) = hosts.items()
    for run in runs:
        _check(source, run)
    answered = [run for run in runs if run.rtt_s]
    counted = [run.totals for run in runs if run.totals is not None and not run.numbers]
    if not answered and counted and not any(run.numbers for run in runs):
        # The last totals of `-Q` are those of all its intervals.
        if len(counted) > 2 and counted[-1] == (
            sum(sent for sent, _ in counted[:-1]),
            sum(received for _, received in counted[:-1]),
        ):
            counted.pop()
        return counts(source, "fping", [(*total, None) for total in counted], options)
    if not answered:
        lost = sum(len(run.timed_out) for run in runs)
        raise source.error(f"{plural(lost, 'packet')} and no replies; try another host")
    notes: list[str] = []
    if any(run.totals is None for run in answered):
        # fping prints them as errors, which a redirection leaves on the terminal.
        notes.append("No totals at the end, so nothing confirms the counts; `2>&1` redirects them too.")
    stamped = all(len(run.heard_s) >= 2 for run in answered)
    runs = [run for run in runs if run.rtt_s or run.silent]
    if len(runs) > 1:
        gaps = (
            "the gaps between them are not measured"
            if stamped
            else ("taken as one after the other, since the times between them are unknown")
        )
        notes.append(f"{len(runs)} runs of fping; {gaps}.")
        notes += silent([run.silent for run in runs if run.silent], timed=stamped)
    found: list[str] = []
    parts = [run.silent or _echoes(source, run, options, found) for run in runs]
    notes += dict.fromkeys(found)
    duplicates = sum(run.duplicates for run in answered)
    if duplicates:
        notes.append(f"{plural(duplicates, 'duplicate')} of replies not counted.")
    # The header of IPv6 is larger, of which the output says nothing.
    payload = answered[0].size
    size = None if payload is None or ":" in host else payload + 20
    every = with_silent(source, parts, timed=stamped)
    return replace(measurement(source, "fping", every, size, notes, command=_COMMAND), host=host)


def _from_text(source: Source) -> dict[str, list[_Run]]:
    """Return the runs by host."""
    hosts: dict[str, list[_Run]] = {}
    for full in source.text.splitlines():
        line = full[:1000]
        if packet := _PACKET.match(line):
            ms = None if packet["ms"] is None else parsed(packet["ms"])
            run = _open(hosts.setdefault(packet["host"], []), int(packet["seq"]))
            _packet(run, int(packet["seq"]), ms, packet["size"], packet["time"], again=bool(packet["again"]))
        elif total := _TOTALS.match(line):
            sent, received = int(total["sent"]), int(total["received"])
            if abs(100 * (1 - received / max(sent, 1)) - int(total["lost"])) > 1 and sent:
                raise source.error(
                    "by its last lines, fping lost another share than its counts: the totals are damaged"
                )
            _total(hosts.setdefault(total["host"], []), sent, received)
        elif listed := _LIST.match(full):
            run = _Run()
            for seq, time in enumerate(listed["times"].split()):
                _packet(run, seq, parsed(time), None, None)
            run.totals = len(run.numbers), len(run.rtt_s)
            hosts.setdefault(listed["host"], []).append(run)
    return hosts


def _from_json(source: Source) -> dict[str, list[_Run]]:
    """Return the runs by host of `fping -J`, which prints an object for each packet and for the totals."""
    hosts: dict[str, list[_Run]] = {}
    for document in source.documents:
        for key in ("resp", "timeout"):
            entry = mapping(at(document, key))
            host, seq = entry.get("host"), whole(entry.get("seq"))
            if isinstance(host, str) and seq is not None and 0 <= seq < MOST_PROBES:
                run = _open(hosts.setdefault(host, []), seq)
                size, time = whole(entry.get("size")), entry.get("timestamp")
                _packet(
                    run,
                    seq,
                    number(entry.get("rtt")) if key == "resp" else None,
                    None if size is None else str(size),
                    time if isinstance(time, str) else None,
                )
        entry = mapping(at(document, "summary"))
        host, sent, received = entry.get("host"), whole(entry.get("xmt")), whole(entry.get("rcv"))
        if isinstance(host, str) and sent is not None and received is not None:
            _total(hosts.setdefault(host, []), sent, received)
    return hosts


def _open(runs: list[_Run], seq: int) -> _Run:
    """Return the run of a packet, a new one behind totals, but for those of an interval of `-Q`."""
    if not runs or (runs[-1].totals is not None and not (runs[-1].numbers and seq > max(runs[-1].numbers))):
        runs.append(_Run())
    runs[-1].totals = None
    return runs[-1]


def _total(runs: list[_Run], sent: int, received: int) -> None:
    if not runs or runs[-1].totals is not None:
        runs.append(_Run())
    runs[-1].totals = sent, received


def _check(source: Source, run: _Run) -> None:
    """Compare a run with its totals.

    Raises
    ------
    MeasurementError
        If lines are missing or damaged.
    """
    if run.totals is None:
        return
    sent, received = run.totals
    if received > sent:
        raise source.error("by its last lines, fping received more replies than it sent packets")
    if run.numbers and (len(run.rtt_s) != received or max(run.numbers) >= sent):
        raise source.error(
            f"by its last lines, fping sent {sent} packets and received {received} replies; the file has "
            f"{len(run.rtt_s)} replies to at least {max(run.numbers) + 1} packets: lines are missing or "
            "damaged"
        )


def _packet(
    run: _Run, seq: int, ms: float | None, size: str | None, time: str | None, *, again: bool = False
) -> None:
    """Add a packet; `ms` is None without a reply."""
    if again or (ms is not None and seq in run.rtt_s):
        run.duplicates += 1
    elif ms is None:
        run.timed_out.add(seq)
    else:
        run.rtt_s[seq] = ms / 1e3
        run.size = run.size if size is None else int(size)
        heard_s = parsed(time)
        if heard_s is not None:
            run.heard_s[seq] = heard_s


def _echoes(source: Source, run: _Run, options: Options, notes: list[str]) -> Echoes:
    """Return the packets of a run, from the first to the last that the output has."""
    found = run.numbers
    first, last = min(found), max(found)
    if last - first > MOST_PROBES:
        raise source.error(f"more than {MOST_PROBES} packets")
    numbers = np.arange(first, last + 1)
    rtt_s = np.full(len(numbers), np.nan)
    rtt_s[np.fromiter(run.rtt_s, dtype=np.int64) - first] = floats(run.rtt_s.values())
    if len(run.heard_s) < 2:
        step_s = options.every_s or 1.0
        if options.every_s is None:
            notes.append(
                "No timestamps (-D): packets assumed to be sent once per second, the default of fping. "
                "--every (`every_s` in Python) states another interval."
            )
        return Echoes(np.asarray((numbers - first) * step_s, dtype=np.float64), rtt_s)
    notes += [] if options.every_s is None else [HAS_TIMES]
    seqs = np.array(sorted(run.heard_s))
    heard_s = floats(run.heard_s[seq] - run.rtt_s[seq] for seq in seqs)
    times_s, steps_s = clock_steps.without_steps(seqs, heard_s, 0.0)
    notes += [clock_steps.note(steps_s)] if steps_s else []
    return Echoes(interpolated(numbers, seqs, np.maximum.accumulate(times_s)), rtt_s)


READER = _Reader(
    name="fping", title="fping", command=f"{_COMMAND} > fping.txt", takes_every=True, fits=_fits, parse=_parse
)
