"""Reader of the output of ping: iputils, preferably `ping -D -O -i 0.02`, busybox and macOS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import Options, TextReader
from lasthop.measurement.model import Counters, Delays, Direction, Flags, Floats, Measurement
from lasthop.measurement.source import HAS_TIMES, LONGEST_S, Source, floats, ordered, parsed, probes

_COMMAND = "ping -D -O -i 0.02 HOST"

# iputils translates the words of its output, but not the keys such as icmp_seq.
_HEADER = re.compile(
    r"^PING +(?P<host>\S.{0,300}?)(?P<colon>:?) (?P<payload>\d{1,6})(?:\((?P<size>\d{1,6})\))? "
    r"\w{0,20} ?[Bb]ytes|"
    r"^PING +(?P<host2>\S.{0,300}?) (?P<payload2>\d{1,6})\((?P<size2>\d{1,6})\) "
)
_ANSWER = re.compile(r"(?:icmp_.eq|\bseq)=(?P<seq>\d{1,6})\b.{0,40}?=(?P<ms>[\d.]{1,20}) ?ms")
_TIMELESS = re.compile(r"(?:icmp_.eq|\bseq)=\d{1,6} ttl=\d{1,3}$", re.MULTILINE)
_SILENT = re.compile(r"icmp_seq[= ](?P<seq>\d{1,6})\s*$")
_ERROR = re.compile(r"icmp_seq=(?P<seq>\d{1,6}) (?P<why>[A-Z].{0,80})")
_STAMP = re.compile(r"^\[(?P<time>\d{1,12}(?:\.\d{1,9})?)\] ?")
_SENT = re.compile(r"^(?P<sent>\d{1,12}) packets transmitted.*?(?:, time (?P<ms>\d{1,12}) ?ms)?\s*$")
_WINDOWS = re.compile(
    r"^Pinging \S+.* with \d+ bytes of data|: bytes=\d+ (?:time|\w+)[=<]\d+ ?ms TTL=", re.MULTILINE
)

_WRAP = 1 << 16
_MOST_PROBES = 5_000_000


@dataclass(slots=True)
class _Session:
    """One run of ping: the replies and errors by sequence number, unwrapped beyond 65535."""

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
    latest: int | None = None
    duplicates: int = 0
    failures: int = 0
    transmitted: int | None = None
    lasted_s: float | None = None

    def unwrap(self, seq: int) -> int:
        """Unwrap a 16-bit sequence number: return the number closest to the latest one."""
        if self.latest is None:
            self.latest = seq
            return seq
        number = seq + _WRAP * round((self.latest - seq) / _WRAP)
        number = max(number, seq)
        self.latest = max(self.latest, number)
        return number


def _fits(text: str) -> bool:
    """Return whether a text is the output of ping, including versions that are refused."""
    head = text[:4000]
    if _WINDOWS.search(head):
        return True
    return any(
        _HEADER.match(line) or _ANSWER.search(line) or _SILENT.search(line) for line in head.splitlines()
    )


def _parse(source: Source, options: Options) -> Measurement:
    """Read the output of ping.

    Raises
    ------
    MeasurementError
        If the output is from Windows, or has no replies.
    """
    text = source.text
    if _WINDOWS.search(text[:4000]):
        raise source.error(
            "the output of ping on Windows has no sequence numbers, and it pauses for seconds after a loss; "
            f"run `{_COMMAND}` in WSL, or irtt"
        )
    sessions = list(_sessions(text))
    notes: list[str] = []
    useful = [session for session in sessions if session.rtt_s]
    if not useful:
        if _TIMELESS.search(text):
            raise source.error("replies without round-trip times: `ping -s` must be at least 16")
        silent = sum(len(session.unanswered | session.refused) for session in sessions)
        what = f"{plural(silent, 'packet')} and no replies" if silent else "no replies"
        raise source.error(f"{what}: the host does not reply to ping, or the output is cut; try another host")
    stamped = [session for session in useful if session.received_s]
    if len(useful) > 1 and len(stamped) < len(useful):
        notes.append(
            f"Only the first of {len(useful)} runs of ping is read: without -D their times are unknown."
        )
        useful = useful[:1]
    elif len(useful) > 1:
        notes.append(f"{len(useful)} consecutive runs of ping; the gaps between them are not measured.")
    parts = [_packets(source, session, options.every_s, notes) for session in useful]
    start = min(float(part[0].min()) for part in parts)
    if max(float(part[0].max()) for part in parts) - start > LONGEST_S:
        raise source.error("the times are years apart")
    sizes = {session.size for session in useful}
    sent_s = np.concatenate([part[0] for part in parts]) - start
    lost = np.concatenate([part[1] for part in parts])
    rtt = np.concatenate([part[2] for part in parts])
    sent_s, lost, rtt = ordered(sent_s, lost, rtt)
    duplicates = sum(session.duplicates for session in useful)
    if duplicates:
        notes.append(f"{plural(duplicates, 'duplicate')} of replies not counted.")
    failures = sum(session.failures for session in useful)
    if failures:
        notes.append(
            f"Sending failed {plural(failures, 'time')}; packets that were never sent may count as losses."
        )
    refused = sum(len(session.refused - session.rtt_s.keys()) for session in useful)
    if refused:
        notes.append(
            f"{plural(refused, 'packet')} with an ICMP error counted as lost: a router had no route to the "
            "host, which may be an outage rather than losses on the air."
        )
    interval = float(np.median(np.diff(sent_s))) if len(sent_s) > 1 else 1.0
    if interval > 0.1:
        notes.append(f"One packet every {interval:.2g} s misses shorter fades; use `{_COMMAND}`.")
    notes.append(
        "Ping does not show the direction of a loss, and routers and hosts may rate-limit their replies."
    )
    return Measurement(
        source.name,
        "ping",
        float(sent_s.max()),
        probes=(probes(Direction.ROUND_TRIP, sent_s, lost, sizes.pop() if len(sizes) == 1 else None),),
        delays=(Delays(Direction.ROUND_TRIP, sent_s[~lost], rtt[~lost]),),
        notes=tuple(notes),
    )


def _sessions(text: str) -> Iterator[_Session]:
    """Yield each run of ping in a text."""
    session: _Session | None = None
    for place, full in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(full):
            if session is not None:
                yield session
            session = _Session(_size(header), place, 0 if header["colon"] else 1)
            continue
        if session is None:
            # The start of the output is missing.
            session = _Session(None, place, None)
        _line(session, full[:1000])
    if session is not None:
        yield session


def _line(session: _Session, full: str) -> None:
    stamp = _STAMP.match(full)
    time_s = float(stamp["time"]) if stamp else None
    line = full[stamp.end() :] if stamp else full
    if answer := _ANSWER.search(line):
        ms = parsed(answer["ms"])
        if ms is None or ms > 1e7:
            return
        number = session.unwrap(int(answer["seq"]) % _WRAP)
        if number in session.rtt_s:
            session.duplicates += 1
            return
        session.rtt_s[number] = ms / 1e3
        if time_s is not None:
            session.received_s[number] = time_s
    elif silent := _SILENT.search(line):
        number = session.unwrap(int(silent["seq"]) % _WRAP)
        session.unanswered.add(number)
        if time_s is not None:
            session.next_sent_s[number] = time_s
    elif error := _ERROR.search(line):
        # A redirected packet was forwarded.
        if not error["why"].startswith("Redirect"):
            session.refused.add(session.unwrap(int(error["seq"]) % _WRAP))
    elif "sendmsg:" in line:
        session.failures += 1
    elif total := _SENT.match(line):
        session.transmitted = int(total["sent"])
        if total["ms"]:
            session.lasted_s = int(total["ms"]) / 1e3


def _size(header: re.Match[str]) -> int | None:
    """Return the size of the IP packets."""
    if size := header["size"] or header["size2"]:
        return int(size)
    # Without the size in parentheses: busybox, macOS, or IPv6.
    ip = 40 if header["host"].count(":") > 1 else 20
    return int(header["payload"]) + 8 + ip


def _packets(
    source: Source, session: _Session, every_s: float | None, notes: list[str]
) -> tuple[Floats, Flags, Floats]:
    """Return sending time, loss and round-trip time of each packet; the time of a lost packet is NaN."""
    seen = session.rtt_s.keys() | session.unanswered | session.refused
    first, last = min(seen), max(seen)
    if session.begins is not None:
        first = min(first, session.begins)
    if session.transmitted is not None:
        unseen = session.transmitted + (1 if session.begins is None else session.begins) - 1 - last
        if session.begins is None:
            # If the start of the output is missing, the number of wraps is unknown.
            unseen -= _WRAP * round(unseen / _WRAP)
        # More than one wrap means a damaged line.
        last += min(max(unseen, 0), _WRAP)
    if last - first > _MOST_PROBES:
        raise source.error(f"more than {_MOST_PROBES} packets", session.line)
    numbers = np.arange(first, last + 1)
    rtt = np.full(len(numbers), np.nan)
    answered = np.fromiter(session.rtt_s, dtype=np.int64) - first
    rtt[answered] = floats(session.rtt_s.values())
    lost = np.isnan(rtt)
    sent_s = _times(session, numbers, every_s, notes)
    # Packets sent within one round-trip time of the end may have been in flight when ping was stopped.
    trailing = int(answered.max()) + 1
    if trailing < len(numbers):
        waiting = (sent_s > sent_s[-1] - float(np.nanmax(rtt))) & (np.arange(len(numbers)) >= trailing)
        waiting[-1] = True
        notes.append(
            f"{plural(int(waiting.sum()), 'packet')} without a reply at the end left out: ping may have been "
            "stopped before the reply."
        )
        numbers, rtt, lost, sent_s = (column[~waiting] for column in (numbers, rtt, lost, sent_s))
    return sent_s, lost, rtt


def _times(session: _Session, numbers: Counters, every_s: float | None, notes: list[str]) -> Floats:
    """Return the sending times of packets."""
    known = {seq: heard - session.rtt_s[seq] for seq, heard in session.received_s.items()}
    for unanswered, after in session.next_sent_s.items():
        known.setdefault(unanswered + 1, after)
    if len(known) >= 2:
        seqs = np.array(sorted(known))
        times = np.maximum.accumulate(floats(known[seq] for seq in seqs))
        step = float(times[-1] - times[0]) / float(seqs[-1] - seqs[0])
        sent_s = np.interp(numbers, seqs, times)
        sent_s = np.where(numbers < seqs[0], times[0] - (seqs[0] - numbers) * step, sent_s)
        notes += [] if every_s is None else [HAS_TIMES]
        late_s: Floats = np.where(numbers > seqs[-1], times[-1] + (numbers - seqs[-1]) * step, sent_s)
        return late_s
    step = 1.0
    if every_s is not None:
        step = every_s
    elif session.lasted_s and session.transmitted and session.transmitted > 1:
        step = session.lasted_s / (session.transmitted - 1)
        notes.append(f"No timestamps (-D): packets assumed to be sent every {step:.4g} s, the mean interval.")
    else:
        notes.append(
            "No timestamps (-D): packets assumed to be sent once per second, the default of ping. --every "
            "(`every_s` in Python) states another interval."
        )
    regular_s: Floats = (numbers - numbers[0]) * step
    return regular_s


READER = TextReader(
    name="ping", title="ping", command=f"{_COMMAND} > ping.txt", takes_every=True, fits=_fits, parse=_parse
)
