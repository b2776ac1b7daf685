"""The lines of ping's output, whatever its language.

iputils translates its words, units and even the key of the sequence number; the order of the numbers is the
same everywhere. Lines are therefore recognised by their numbers, not by their words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lasthop.measurement.source import parsed

_HEADER = re.compile(r"^.{0,60}?\bH?P(?:ING|ing)(?: +|(?=6\())(?P<rest>\S.{0,400})$")
_SIZES = re.compile(r"(?<![\w.(])(?P<payload>\d{1,6}) ?\((?P<size>\d{1,6})\)")
_PAYLOAD = re.compile(r"(?:^|\s)(?P<payload>\d{1,6})\s")
# Programs other than iputils count from 0 and put the size after a colon.
_BSD = re.compile(r"(?:\)|from \S+): \d{1,6} ")
_BSD_IPV6 = re.compile(r"^6\((?P<size>\d{1,6})=.{0,60}--> (?P<host>\S{1,60})")
_HPING = re.compile(r"(?P<headers>\d{1,3}) headers \+ (?P<payload>\d{1,6}) data bytes$")
_HOST = re.compile(r"[^\s(]{1,255}")

_KEY = r"(?:icmp_s(?:eq|ql)|icmp_req|seq|Sequence|pořadí)"
_REPLY = re.compile(
    rf"\b{_KEY} ?= ?(?P<seq>\d{{1,6}})\b\.?(?: [^\s=]{{2,12}}=\S{{1,20}}){{0,3}}? [^\s=]{{2,20}}="
    r"(?P<ms>\d{1,8}(?:[.,]\d{1,6})?)\s?(?P<unit>[^\W\d_]{1,8})(?![\w=])"
)
# Of all other units, of any language, only the millisecond is in use.
_UNIT_MS = {"s": 1e3, "sec": 1e3, "us": 1e-3, "usec": 1e-3, "\u00b5s": 1e-3, "\u03bcs": 1e-3}
_NUMBER = re.compile(rf"\b{_KEY} ?[= ] ?(?P<seq>\d{{1,6}})(?P<rest>.{{0,160}})$")
_ADDRESS = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-f]{0,4}:[0-9a-f:]{0,30}:[0-9a-f]{0,4}", re.IGNORECASE)
_COLONS = 7
"""Colons of an address of IPv6 without a double one."""

_TOO_LARGE = re.compile(r"\bmtu ?= ?\d", re.IGNORECASE)
_WITHOUT_TIME = re.compile(rf"\b{_KEY} ?= ?\d{{1,6}} \S{{2,8}}=\d{{1,3}}(?: \(\S{{1,20}}\))?$")

_RULE = re.compile(r"^.{0,60}?-{2,4} ?\S.{0,300}?\S ?-{2,4}\s*$")
_LEFT_OUT = re.compile(r"^[\s>\[(<*#-]*(?:\.{3,}|\u2026|snip(?:ped)?|cut)[\s\])>*#.-]*$", re.IGNORECASE)
_COUNT = re.compile(r"(?<![\d.,+%:])\d{1,12}(?![\d:])(?!\.\d)(?!(?:\.\d+)?\s?%)")
_PERCENT = re.compile(r"(?P<before>\d{1,3}(?:[.,]\d{1,9})?)\s?%|%(?P<behind>\d{1,3}(?:[.,]\d{1,9})?)")
_LASTS = re.compile(r"%.{0,40}?[,\uff0c] ?[^\W\d_]{1,20}\s(?P<ms>\d{1,12})\s?[^\W\d_]{1,8}\s*$")


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: the host, the size of the IP packets if it is known, and the first sequence number."""

    host: str
    size: int | None
    begins: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The last lines: packets sent and answered, the share lost, and the time from first to last event."""

    transmitted: int
    received: int
    lost: float | None
    lasted_s: float | None


def header(line: str) -> Header | None:
    """Return what the first line of a run says; None for other lines."""
    if (found := _HEADER.match(line)) is None or begins_totals(line):
        return None
    rest = found["rest"]
    if bsd := _BSD_IPV6.match(rest):
        return Header(bsd["host"], int(bsd["size"]), 0)
    if (named := _HOST.match(rest)) is None:
        return None
    host = named[0].rstrip(":")
    if hping := _HPING.search(rest):
        return Header(host, int(hping["headers"]) + int(hping["payload"]), 0)
    if sizes := _SIZES.search(rest):
        return Header(host, int(sizes["size"]), 1)
    payloads = _PAYLOAD.findall(f"{rest} ")
    if not payloads:
        return None
    # Without the size of the packet: other programs, or IPv6.
    ip = 40 if rest.split("data")[0].count(":") > 2 else 20
    return Header(host, int(payloads[-1]) + 8 + ip, 0 if _BSD.search(rest) else 1)


def begins_totals(line: str) -> bool:
    """Return whether the totals are on the next line."""
    return _RULE.match(line) is not None


def totals(line: str) -> Totals | None:
    """Return the totals of a run; None for other lines."""
    # The two counts stand before the percentage, and behind the time that a shell may print before the line.
    counts = [int(count[0]) for count in _COUNT.finditer(line) if count.start() < line.find("%")]
    if len(counts) < 2:
        return None
    lasts, percent = _LASTS.search(line), _PERCENT.search(line)
    lost = parsed((percent["before"] or percent["behind"]).replace(",", ".")) if percent else None
    lost = None if lost is None else lost / 100
    return Totals(counts[-2], counts[-1], lost, int(lasts["ms"]) / 1e3 if lasts else None)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: its sequence number, its round-trip time, and the address that it came from, if printed."""

    seq: int
    rtt_s: float
    address: str | None


def reply(line: str) -> Reply | None:
    """Return the reply of a line; None for other lines."""
    found = _REPLY.search(line)
    ms = parsed(found["ms"].replace(",", ".")) if found else None
    if found is None or ms is None:
        return None
    ms *= _UNIT_MS.get(found["unit"], 1.0)
    if ms > 1e7:
        return None
    # A time of day looks like an address of IPv6, which has all of its parts or a double colon.
    addresses = [
        each
        for each in _ADDRESS.findall(line[: found.start()])
        if "." in each or "::" in each or each.count(":") == _COLONS
    ]
    return Reply(int(found["seq"]), ms / 1e3, addresses[-1].lower() if addresses else None)


def leaves_out(line: str) -> bool:
    """Return whether a line stands for lines that someone left out."""
    return _LEFT_OUT.match(line) is not None


def lacks_time(line: str) -> bool:
    """Return whether a line is a reply without a round-trip time, of packets too small to carry one."""
    return _WITHOUT_TIME.search(line) is not None


def unanswered(line: str) -> tuple[int, str] | None:
    """Return the sequence number of a packet without a reply, and why.

    Returns
    -------
    tuple of int and str, or None
        The reason is `"silent"`, `"error"` for an ICMP error of a router, or `"too large"`. None for other
        lines, and for a redirected packet, which was forwarded.
    """
    if (found := _NUMBER.search(line)) is None:
        return None
    seq, rest = int(found["seq"]), found["rest"]
    if _ADDRESS.search(line[: found.start()]) is None:
        return (seq, "silent") if "=" not in rest else None
    if _TOO_LARGE.search(rest):
        return seq, "too large"
    # A shorter text is what is left of a line that was cut off.
    return (seq, "error") if len(rest) >= 8 and "=" not in rest and not _ADDRESS.search(rest) else None
