"""Reader of the output of ping: iputils in any language, also as JSON, BSD, macOS, busybox and toybox."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement import clock_steps, ping_lines, stamps
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
from lasthop.measurement.model import Counters, Floats, Measurement, MeasurementError
from lasthop.measurement.source import HAS_TIMES, Source, control_free, floats, mapping, number, whole

_COMMAND = "ping -D -O -i 0.02 HOST"

_WINDOWS = re.compile(
    # Replies over IPv4 and IPv6, the first line in some languages, and the last lines in any.
    r"=\d{1,6}\b.{1,24}?[=<] ?\d{1,6} ?(?:[^\W\d]|\ufffd){1,4} TTL=\d|"
    r"[\da-f]{0,4}:[\da-f:]{2,40}(?:%\d{1,4})? ?: ?\S{3,10}[=<]\d{1,6} ?[^\W\d]{1,4}\s*$|"
    r"^(?i:Pinging) \S.{0,80}:\s*$|"
    r"^(?i:P\S{2,8} .{0,80}\[[\d.:a-f%]{3,60}\] .{0,40}\b\d{1,5}\D{0,40}:)\s*$|"
    r"= ?\d{1,9}[^\d=%]{3,40}= ?\d{1,9}[^\d=%]{3,40}= ?\d{1,9}[\s,]{0,40}\([^)]{0,12}%",
    re.MULTILINE,
)

_WRAP = 1 << 16

_FEWEST_OF_A_HOST = 2
"""Replies that tell another host from a damaged address."""

_BACKWARD = 0.2
"""Share of times that run back, from which they are no times of a clock."""

_HEAD = 20_000
"""Characters in which Windows is recognised."""

_WHOLE_PERCENT = 0.0101
"""How far a share in whole percent may be off."""

_LARGE_JUMP = 1000
"""Packets without a reply in a row that the times must confirm."""

_LINGER_S = 12.0
"""ping waits up to ten seconds for the last replies, and counts that time."""

_LATE_S = 2.0
"""Times of replies differ from those of packets by round-trip times, and may be whole seconds."""


@dataclass(slots=True)
class _Session:
    """One run of ping: the replies and errors by sequence number, unwrapped beyond 65535."""

    host: str | None
    size: int | None
    line: int
    # The first sequence number; None if the start of the output is missing.
    begins: int | None
    rtt_s: dict[int, float] = field(default_factory=dict)
    received_s: dict[int, float] = field(default_factory=dict)
    unanswered: set[int] = field(default_factory=set)
    # By unanswered packet, the sending time of the next one, at which ping prints "no answer yet".
    next_sent_s: dict[int, float] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    too_large: set[int] = field(default_factory=set)
    latest: int | None = None
    duplicates: int = 0
    failures: int = 0
    timeless: int = 0
    clock: stamps.Timeline = field(default_factory=stamps.Timeline)
    totals: ping_lines.Totals | None = None
    # Replies by the address that they came from.
    addresses: Counter[str] = field(default_factory=Counter)
    # The line that stands for lines left out, and the first one that someone left out before a reply.
    gap: int | None = None
    shortened: int | None = None

    def unwrap(self, seq: int) -> int:
        """Unwrap a 16-bit sequence number: return the number closest to the latest one."""
        if self.latest is None:
            self.latest = seq
            return seq
        number = seq + _WRAP * round((self.latest - seq) / _WRAP)
        number = max(number, seq)
        self.latest = max(self.latest, number)
        return number

    @property
    def silent(self) -> int:
        """The packets of a run without any reply; 0 for other runs."""
        if self.rtt_s or self.timeless:
            return 0
        if self.totals is None:
            return len(self.unanswered | self.refused)
        return 0 if self.totals.received else max(self.totals.transmitted - len(self.too_large), 0)


def _fits(text: str) -> bool:
    """Return whether a text is the output of ping, including versions that are refused."""
    head = text[:4000]
    if _WINDOWS.search(head):
        return True
    return any(
        ping_lines.header(line) is not None
        or ping_lines.reply(line) is not None
        or ping_lines.unanswered(line) is not None
        for line in head.splitlines()
    )


@dataclass(frozen=True, kw_only=True)
class _Reader(TextReader):
    """The reader, which recognises the lines of JSON of `ping -j` too."""

    def recognises(self, source: Source) -> bool:
        """Return whether the text is of ping."""
        if not source.is_json:
            return super().recognises(source)
        first = mapping(source.documents[0])
        return "seq" in first and "bytes" in first and "host" in first


def _parse(source: Source, options: Options) -> Measurement:
    """Read the output of ping.

    Raises
    ------
    MeasurementError
        If the output is from Windows, has no replies, or does not agree with its own totals.
    """
    text = source.text
    if _WINDOWS.search(text[:_HEAD]):
        raise source.error(
            "the output of ping on Windows has no sequence numbers, and it pauses for seconds after a loss; "
            f"run `{_COMMAND}` in WSL, or irtt"
        )
    sessions = list(_from_json(source) if source.is_json else _sessions(text))
    _check_hosts(source, sessions)
    for session in sessions:
        _check(source, session)
    answered = [session for session in sessions if session.rtt_s]
    counted = [session.totals for session in sessions if session.totals is not None]
    # Totals alone are those of `-q` and `-f`.
    if not answered and any(each.received for each in counted):
        return counts(
            source, "ping", [(each.transmitted, each.received, each.lasted_s) for each in counted], options
        )
    if not answered:
        raise source.error(_silence(sessions))
    notes: list[str] = []
    stamped = [session for session in answered if session.received_s]
    if stamped and len(stamped) < len(answered):
        notes.append(
            f"{plural(len(answered) - len(stamped), 'run')} without times left out, beside {len(stamped)} "
            "with times."
        )
        answered = stamped
    runs = [
        session
        for session in sessions
        if session.silent or (session.received_s if stamped else session.rtt_s)
    ]
    if len(runs) > 1:
        gaps = (
            "the gaps between them are not measured"
            if stamped
            else ("taken as one after the other, since the times between them are unknown")
        )
        notes.append(f"{len(runs)} runs of ping; {gaps}.")
        notes += silent([session.silent for session in runs if session.silent], timed=bool(stamped))
    found: list[str] = []
    parts = [session.silent or _packets(source, session, options.every_s, found) for session in runs]
    # Many runs may say the same.
    notes += dict.fromkeys(found)
    duplicates = sum(session.duplicates for session in answered)
    if duplicates:
        notes.append(f"{plural(duplicates, 'duplicate')} of replies not counted.")
    failures = sum(session.failures for session in runs)
    if failures:
        notes.append(
            f"Sending failed {plural(failures, 'time')}; packets that were never sent may count as losses."
        )
    refused = sum(len(session.refused - session.rtt_s.keys()) for session in runs)
    if refused:
        notes.append(
            f"{plural(refused, 'packet')} with an ICMP error counted as lost: they were not forwarded, "
            "which may be an outage rather than losses on the air."
        )
    too_large = sum(len(session.too_large - session.rtt_s.keys()) for session in runs)
    if too_large:
        notes.append(
            f"{plural(too_large, 'packet')} larger than the path allows, refused by a router and not lost, "
            "left out; ping with smaller ones."
        )
    if any(session.begins is None for session in answered):
        notes.append("The start of the output is missing, so nothing confirms the counts.")
    elif any(session.totals is None for session in answered):
        notes.append(
            "No totals at the end, so nothing confirms the counts: ping was killed, or the output is cut."
        )
    sizes = {session.size for session in answered}
    size = sizes.pop() if len(sizes) == 1 else None
    found_at = sum((session.addresses for session in answered), Counter[str]()).most_common(1)
    host = found_at[0][0] if found_at else answered[0].host
    every = with_silent(source, parts, timed=bool(stamped))
    return replace(measurement(source, "ping", every, size, notes, command=_COMMAND), host=host)


def _silence(sessions: list[_Session]) -> str:
    """Return why there are no replies."""
    timeless = sum(session.timeless for session in sessions)
    if timeless:
        return "replies without round-trip times: `ping -s` must be at least 16"
    silent = sum(len(session.unanswered | session.refused) for session in sessions)
    sent = sum(session.totals.transmitted for session in sessions if session.totals is not None)
    refused = sum(len(session.refused) for session in sessions)
    if refused > silent / 2:
        return (
            f"{plural(max(silent, sent), 'packet')} and no replies, but {refused:,} ICMP errors: the "
            "packets were not forwarded; try another host, and leave out `-t`, which limits how far they go"
        )
    if silent or sent:
        return (
            f"{plural(max(silent, sent), 'packet')} and no replies: the host does not reply to ping, or the "
            "output is cut; try another host"
        )
    return f"no replies and no totals: the output is cut; expected that of `{_COMMAND}`"


def _check_hosts(source: Source, sessions: Sequence[_Session]) -> None:
    """Check that the packets are those of one ping at a time, all to one host.

    Raises
    ------
    MeasurementError
        If there are several hosts, or someone left out lines.
    """
    for session in sessions:
        several = [host for host, replies in session.addresses.items() if replies >= _FEWEST_OF_A_HOST]
        if len(several) > 1:
            raise _several_hosts(source, several)
        if session.shortened is not None:
            raise source.error(
                "lines are left out here, whose packets would count as lost; expected the whole output",
                session.shortened,
            )
    targets = list(dict.fromkeys(session.host for session in sessions if session.host is not None))
    if len(targets) > 1:
        raise _several_hosts(source, targets)


def _several_hosts(source: Source, hosts: Sequence[str]) -> MeasurementError:
    named = ", ".join(control_free(host)[:40] for host in hosts[:3])
    return source.error(f"pings of {len(hosts)} hosts ({named}); put the output of each into its own file")


def _check(source: Source, session: _Session) -> None:
    """Compare a run with its totals.

    Raises
    ------
    MeasurementError
        If lines are missing or damaged.
    """
    totals = session.totals
    if totals is None:
        return
    if totals.received > totals.transmitted:
        raise source.error("by its last lines, ping received more replies than it sent packets", session.line)
    # Old versions leave out the decimals of the percentage.
    lost = 1 - totals.received / max(totals.transmitted, 1)
    if totals.lost is not None and totals.transmitted and abs(totals.lost - lost) > _WHOLE_PERCENT:
        raise source.error(
            f"by its last lines, ping lost {totals.lost:.4g} of its packets, and received {totals.received} "
            f"replies to {totals.transmitted}: the totals are damaged",
            session.line,
        )
    if not session.rtt_s:
        return
    found = len(session.rtt_s) + session.timeless
    # Without the start of the output it is unknown how often the sequence numbers wrapped.
    last = (
        0 if session.begins is None else max(session.rtt_s.keys() | session.unanswered) - session.begins + 1
    )
    if found > totals.received or last > totals.transmitted:
        problem = "a line is damaged or of another run"
    elif session.begins is not None and found < totals.received:
        problem = "lines are missing or damaged"
    else:
        return
    raise source.error(
        f"by its last lines, ping sent {totals.transmitted} packets and received {totals.received} replies; "
        f"the file has {found} replies to at least {max(last, found)} packets: {problem}",
        session.line,
    )


def _from_json(source: Source) -> Iterator[_Session]:
    """Yield each run of `ping -j`, which prints an object for each reply and one for the totals."""
    session: _Session | None = None
    for document in source.documents:
        entry = mapping(document)
        if session is None:
            session = _Session(None, None, 1, 1)
        sent, received = whole(entry.get("transmitted")), whole(entry.get("received"))
        if sent is not None and received is not None:
            ms = number(entry.get("time"))
            session.totals = ping_lines.Totals(sent, received, None, None if ms is None else ms / 1e3)
            yield session
            session = None
            continue
        seq, ms = whole(entry.get("seq")), _milliseconds(entry.get("time"))
        payload = whole(entry.get("bytes"))
        if seq is None or seq < 0 or payload is None:
            continue
        if ms is None:
            session.timeless += 1
            continue
        session.size = payload + (40 if str(entry.get("host")).count(":") > 1 else 20)
        host = entry.get("host")
        address = host if isinstance(host, str) else None
        _reply(session, ping_lines.Reply(seq, ms / 1e3, address), None)
    if session is not None:
        yield session


def _milliseconds(value: object) -> float | None:
    """Return a time of JSON, which is a string with a number."""
    try:
        found = number(json.loads(value)) if isinstance(value, str) and len(value) < 20 else None
    except ValueError:
        return None
    return found if found is not None and 0 <= found <= 1e7 else None


def _sessions(text: str) -> Iterator[_Session]:
    """Yield each run of ping in a text."""
    session: _Session | None = None
    last_lines = False
    for place, full in enumerate(text.splitlines(), 1):
        line = full[:1000]
        if header := ping_lines.header(line):
            if session is not None:
                yield session
            session = _Session(header.host, header.size, place, header.begins)
            last_lines = False
            continue
        if session is None:
            # The start of the output is missing.
            session = _Session(None, None, place, None)
        if last_lines and (totals := ping_lines.totals(line)):
            session.totals = totals
        last_lines = ping_lines.begins_totals(line)
        if ping_lines.leaves_out(line):
            session.gap = place
        _line(session, line)
    if session is not None:
        yield session


def _line(session: _Session, full: str) -> None:
    line = stamps.after(full)
    if answer := ping_lines.reply(line):
        _reply(session, answer, session.clock.time_s(full))
    elif ping_lines.lacks_time(line):
        session.timeless += 1
    elif failed := ping_lines.unanswered(line):
        seq = session.unwrap(failed[0] % _WRAP)
        if failed[1] == "silent":
            session.unanswered.add(seq)
            time_s = session.clock.time_s(full)
            if time_s is not None:
                session.next_sent_s[seq] = time_s
        else:
            (session.too_large if failed[1] == "too large" else session.refused).add(seq)
    elif "sendmsg:" in line:
        session.failures += 1


def _reply(session: _Session, reply: ping_lines.Reply, heard_s: float | None) -> None:
    latest = session.latest
    found = session.unwrap(reply.seq % _WRAP)
    if reply.address is not None:
        session.addresses[reply.address] += 1
    if session.gap is not None and latest is not None and found > latest + 1 and session.shortened is None:
        session.shortened = session.gap
    session.gap = None
    if found in session.rtt_s:
        session.duplicates += 1
        return
    session.rtt_s[found] = reply.rtt_s
    if heard_s is not None:
        session.received_s[found] = heard_s
    if found == 0 and session.begins is not None:
        session.begins = 0


def _packets(source: Source, session: _Session, every_s: float | None, notes: list[str]) -> Echoes:
    """Return the packets of a run."""
    seen = session.rtt_s.keys() | session.unanswered | session.refused
    first, last = min(seen), max(seen)
    if session.begins is not None:
        first = min(first, session.begins)
    if session.totals is not None:
        unseen = session.totals.transmitted + (1 if session.begins is None else session.begins) - 1 - last
        # Without replies at the end, or without the start of the output, the number of wraps is unknown.
        unseen -= _WRAP * round(unseen / _WRAP) if session.begins is None else 0
        last += max(unseen, 0)
    if last - first > MOST_PROBES:
        raise source.error(f"more than {MOST_PROBES} packets", session.line)
    numbers = np.arange(first, last + 1)
    rtt = np.full(len(numbers), np.nan)
    answered = np.fromiter(session.rtt_s, dtype=np.int64) - first
    rtt[answered] = floats(session.rtt_s.values())
    _check_jumps(source, session, len(numbers))
    sent_s = _times(source, session, numbers, every_s, notes)
    # Packets sent within one round-trip time of the end may have been in flight when ping was stopped.
    trailing = int(answered.max()) + 1
    if trailing < len(numbers):
        waiting = (sent_s > sent_s[-1] - float(np.nanmax(rtt))) & (np.arange(len(numbers)) >= trailing)
        waiting[-1] = True
        notes.append(
            f"{plural(int(waiting.sum()), 'packet')} without a reply at the end left out: ping may have been "
            "stopped before the reply."
        )
        numbers, rtt, sent_s = (column[~waiting] for column in (numbers, rtt, sent_s))
    if session.too_large:
        carried = ~np.isin(numbers, list(session.too_large - session.rtt_s.keys()))
        rtt, sent_s = rtt[carried], sent_s[carried]
    return Echoes(sent_s, rtt)


def _check_jumps(source: Source, session: _Session, count: int) -> None:
    """Compare large jumps of the sequence numbers with the times, or without these with the packets.

    Raises
    ------
    MeasurementError
        If a jump is too large: a damaged number looks like one that wrapped.
    """
    seqs = np.array(sorted(session.rtt_s))
    apart = np.diff(seqs)
    jumps = np.flatnonzero(apart > _LARGE_JUMP)
    if not len(jumps):
        return
    heard_s = floats(session.received_s.get(seq, np.nan) for seq in seqs)
    interval_s = float(np.nanmedian(np.diff(heard_s) / apart)) if not np.isnan(heard_s).all() else 0.0
    for at in jumps.tolist():
        passed_s = abs(float(heard_s[at + 1] - heard_s[at]))
        plausible = passed_s > apart[at] * interval_s / 10 if interval_s > 0 else apart[at] < count / 2
        if not plausible:
            raise source.error(
                f"the sequence number jumps from {seqs[at]} to {seqs[at + 1]}, which the times or the other "
                "packets do not confirm: a line is damaged",
                session.line,
            )


def _times(
    source: Source, session: _Session, numbers: Counters, every_s: float | None, notes: list[str]
) -> Floats:
    """Return the sending times of packets."""
    known = {seq: heard - session.rtt_s[seq] for seq, heard in session.received_s.items()}
    for unanswered, after in session.next_sent_s.items():
        known.setdefault(unanswered + 1, after)
    lasted_s = None if session.totals is None else session.totals.lasted_s
    seqs = np.array(sorted(known))
    heard_s = floats(known[seq] for seq in seqs)
    # Whole seconds that are all the same are no times, as of `ts -i`.
    if len(known) >= 2 and not (session.clock.whole_seconds and len(known) > 2 and np.ptp(heard_s) <= 1.0):
        if (np.diff(heard_s) < -clock_steps.BACK_S).mean() > _BACKWARD:
            raise source.error(
                "the times before the lines run back and forth, as the times between lines of `ts -i`; "
                "expected those of `ping -D` or `ts`",
                session.line,
            )
        times, steps_s = clock_steps.without_steps(seqs, heard_s, 1.0 if session.clock.whole_seconds else 0.0)
        if (
            lasted_s is not None
            and steps_s
            and min(steps_s) > 0
            and np.ptp(heard_s) <= 1.1 * lasted_s + _LATE_S
        ):
            # The program paused for that long, by its own account.
            times, steps_s = heard_s, []
        times = np.maximum.accumulate(times)
        notes += [clock_steps.note(steps_s)] if steps_s else []
        step = float(times[-1] - times[0]) / float(seqs[-1] - seqs[0])
        if session.totals is not None and lasted_s is not None:
            span_s = step * (session.totals.transmitted - 1)
            if not 0.9 * lasted_s - _LINGER_S <= span_s <= 1.1 * lasted_s + _LATE_S:
                raise source.error(
                    f"by its last lines, ping ran for {lasted_s:g} s, and by the times of its replies for "
                    f"about {span_s:.4g} s: lines are missing or damaged",
                    session.line,
                )
        notes += [] if every_s is None else [HAS_TIMES]
        if session.clock.whole_seconds:
            slope, intercept = np.polyfit(seqs, times, 1)
            if slope > 0 and float(np.abs(slope * seqs + intercept - times).max()) < _LATE_S:
                notes.append(f"The times are whole seconds; packets assumed to be sent every {slope:.4g} s.")
                return np.asarray(slope * numbers + intercept, dtype=np.float64)
        return interpolated(numbers, seqs, times)
    step = 1.0
    if every_s is not None:
        step = every_s
    elif lasted_s and session.totals is not None and session.totals.transmitted > 1:
        step = lasted_s / (session.totals.transmitted - 1)
        notes.append(f"No timestamps (-D): packets assumed to be sent every {step:.4g} s, the mean interval.")
    else:
        notes.append(
            "No timestamps (-D): packets assumed to be sent once per second, the default of ping. --every "
            "(`every_s` in Python) states another interval."
        )
    regular: Floats = (numbers - numbers[0]) * step
    return regular


READER = _Reader(
    name="ping", title="ping", command=f"{_COMMAND} > ping.txt", takes_every=True, fits=_fits, parse=_parse
)
