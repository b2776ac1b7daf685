"""Reader of the output of fping: `fping -D -l`, or the totals of `fping -q`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement import clock_steps
from lasthop.measurement.echoes import MOST_PROBES, Echoes, counts, interpolated, measurement
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.model import Measurement
from lasthop.measurement.source import HAS_TIMES, Source, control_free, floats, parsed

_COMMAND = "fping -D -l -p 20 HOST"

_PACKET = re.compile(
    r"^(?:\[(?P<time>\d{1,12}(?:\.\d{1,9})?)\] )?(?P<host>\S.{0,255}?) {1,40}: (?P<again>duplicate for )?"
    r"\[(?P<seq>\d{1,9})\], (?:timed out|(?P<size>\d{1,6}) bytes, (?P<ms>\d{1,8}(?:\.\d{1,6})?) ms)"
)
_TOTALS = re.compile(
    r"^(?P<host>\S.{0,255}?) {1,40}: xmt/rcv/%loss = "
    r"(?P<sent>\d{1,9})/(?P<received>\d{1,9})/(?P<lost>\d{1,3})%"
)


@dataclass(slots=True)
class _Target:
    """The packets to a host."""

    size: int | None = None
    timed_out: set[int] = field(default_factory=set)
    rtt_s: dict[int, float] = field(default_factory=dict)
    heard_s: dict[int, float] = field(default_factory=dict)
    duplicates: int = 0


def _fits(text: str) -> bool:
    """Return whether a text is the output of fping."""
    return any(_PACKET.match(line) or _TOTALS.match(line) for line in text[:4000].splitlines())


def _parse(source: Source, options: Options) -> Measurement:
    """Read the output of fping.

    Raises
    ------
    MeasurementError
        If it is of several hosts, has no replies, or does not agree with its own totals.
    """
    targets: dict[str, _Target] = {}
    totals: dict[str, tuple[int, int]] = {}
    for line in source.text.splitlines():
        if packet := _PACKET.match(line[:1000]):
            _packet(targets.setdefault(packet["host"], _Target()), packet)
        elif total := _TOTALS.match(line[:1000]):
            sent, received = int(total["sent"]), int(total["received"])
            if abs(100 * (1 - received / max(sent, 1)) - int(total["lost"])) > 1 and sent:
                raise source.error(
                    "by its last lines, fping lost another share than its counts: the totals are damaged"
                )
            totals[total["host"]] = sent, received
    hosts = Counter([*targets, *totals])
    if len(hosts) > 1:
        named = ", ".join(control_free(host)[:40] for host in list(hosts)[:3])
        raise source.error(f"{len(hosts)} hosts ({named}); put the lines of one host into a file")
    (host,) = hosts
    if any(received > sent for sent, received in totals.values()):
        raise source.error("by its last lines, fping received more replies than it sent packets")
    target = targets.get(host)
    if target is None:
        return counts(source, "fping", [(*totals[host], None)], options)
    if not target.rtt_s:
        raise source.error(f"{plural(len(target.timed_out), 'packet')} and no replies; try another host")
    found = target.rtt_s.keys() | target.timed_out
    sent, received = totals.get(host, (max(found) + 1, len(target.rtt_s)))
    if len(target.rtt_s) != received or max(found) >= sent:
        raise source.error(
            f"by its last lines, fping sent {sent} packets and received {received} replies; the file has "
            f"{len(target.rtt_s)} replies to at least {max(found) + 1} packets: lines are missing or damaged"
        )
    notes: list[str] = []
    if host not in totals:
        # fping prints them as errors, which a redirection leaves on the terminal.
        notes.append("No totals at the end, so nothing confirms the counts; `2>&1` redirects them too.")
    run = _run(source, target, options, notes)
    if target.duplicates:
        notes.append(f"{plural(target.duplicates, 'duplicate')} of replies not counted.")
    # The header of IPv6 is larger, of which the output says nothing.
    size = None if target.size is None or ":" in host else target.size + 20
    return measurement(source, "fping", [run], size, notes, command=_COMMAND)


def _packet(target: _Target, packet: re.Match[str]) -> None:
    seq, ms = int(packet["seq"]), parsed(packet["ms"])
    if packet["again"] or (ms is not None and seq in target.rtt_s):
        target.duplicates += 1
    elif ms is None:
        target.timed_out.add(seq)
    else:
        target.rtt_s[seq] = ms / 1e3
        target.size = int(packet["size"])
        if packet["time"]:
            target.heard_s[seq] = float(packet["time"])


def _run(source: Source, target: _Target, options: Options, notes: list[str]) -> Echoes:
    """Return the packets to a host, from the first to the last that the output has."""
    found = target.rtt_s.keys() | target.timed_out
    first, last = min(found), max(found)
    if last - first > MOST_PROBES:
        raise source.error(f"more than {MOST_PROBES} packets")
    numbers = np.arange(first, last + 1)
    rtt_s = np.full(len(numbers), np.nan)
    rtt_s[np.fromiter(target.rtt_s, dtype=np.int64) - first] = floats(target.rtt_s.values())
    if len(target.heard_s) < 2:
        step_s = options.every_s or 1.0
        if options.every_s is None:
            notes.append(
                "No timestamps (-D): packets assumed to be sent once per second, the default of fping. "
                "--every (`every_s` in Python) states another interval."
            )
        return Echoes(np.asarray((numbers - first) * step_s, dtype=np.float64), rtt_s)
    notes += [] if options.every_s is None else [HAS_TIMES]
    seqs = np.array(sorted(target.heard_s))
    heard_s = floats(target.heard_s[seq] - target.rtt_s[seq] for seq in seqs)
    times_s, steps_s = clock_steps.without_steps(seqs, heard_s, 0.0)
    notes += [clock_steps.told(steps_s)] if steps_s else []
    return Echoes(interpolated(numbers, seqs, np.maximum.accumulate(times_s)), rtt_s)


READER = TextReader(
    name="fping", title="fping", command=f"{_COMMAND} > fping.txt", takes_every=True, fits=_fits, parse=_parse
)
