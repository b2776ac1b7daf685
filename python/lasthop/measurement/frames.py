"""Packets of a capture as columns. dpkt parses the file headers, numpy the packet headers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, fields, replace
from typing import Any

import dpkt
import numpy as np
import numpy.typing as npt

from lasthop.core.formats import plural
from lasthop.measurement.model import Counters, Flags
from lasthop.measurement.source import Source

Bytes = npt.NDArray[np.uint8]

_LARGEST_PACKET = 1 << 18
_MOST_PACKETS = 4_000_000
_ETHERNET, _NULL, _LOOP, _SLL, _SLL2 = 1, 0, 108, 113, 276
_RAW = (12, 14, 101, 228, 229)
_LINK_TYPES = (_ETHERNET, _NULL, _LOOP, _SLL, _SLL2, *_RAW)
_RADIO = (105, 119, 127, 163)

_TCP, _UDP = 6, 17
_VLANS = (0x8100, 0x88A8, 0x9100)

_HEADER_ERRORS = (dpkt.Error, struct.error, ValueError, IndexError)
"""The exceptions that dpkt raises for a damaged header."""


@dataclass(slots=True)
class _Frames:
    """Offsets, lengths and times of the packets in a file, as lists."""

    time_ns: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)
    wire: list[int] = field(default_factory=list)
    interface: list[int] = field(default_factory=list)
    links: list[int] = field(default_factory=list)
    dropped: int | None = None
    untimed: int = 0
    damaged: bool = False
    full: bool = False


@dataclass(slots=True)
class Packets:
    """TCP and UDP packets, a row for each, in the order of the file.

    Attributes
    ----------
    time_s : array of float64
        Capture times, from the first packet on.
    interface : array of int64
        The interface of the capture.
    protocol : array of int64
        6 for TCP, 17 for UDP.
    source, target : arrays of uint64
        Hashes of address and port.
    source_port, target_port : arrays of int64
        The ports.
    size, payload : arrays of int64
        Bytes of the IP packet, and of the TCP or UDP payload.
    identification : array of int64
        The IPv4 identification; -1 for IPv6.
    seq, ack, flags : arrays of int64
        TCP header fields; 0 for UDP.
    mss : array of int64
        Announced maximum segment size, or 0.
    timestamp, echo : arrays of int64
        TSval and TSecr of the timestamps option, or -1.
    sack_at, sacks : arrays of int64
        File offset and number of the SACK blocks.
    body_at, body : arrays of int64
        File offset and captured length of the payload.
    notes : list of str
        Warnings about the capture.
    """

    data: Bytes
    time_s: npt.NDArray[np.float64]
    interface: Counters
    protocol: Counters
    source: npt.NDArray[np.uint64]
    target: npt.NDArray[np.uint64]
    source_port: Counters
    target_port: Counters
    size: Counters
    payload: Counters
    identification: Counters
    seq: Counters
    ack: Counters
    flags: Counters
    mss: Counters
    timestamp: Counters
    echo: Counters
    sack_permitted: Flags
    sack_at: Counters
    sacks: Counters
    body_at: Counters
    body: Counters
    notes: list[str]

    def select(self, keep: Flags) -> Packets:
        """Return the packets for which `keep` is true."""
        columns = {
            entry.name: getattr(self, entry.name)[keep]
            for entry in fields(self)
            if entry.name not in ("data", "notes")
        }
        return replace(self, **columns)

    def word(self, at: Counters, size: int) -> Counters:
        """Return the big-endian integers at the given file offsets."""
        words: Counters = _word(self.data, at, size)
        return words


def read(source: Source) -> Packets:
    """Read the packets of a pcap or pcapng file, up to the first damaged record.

    Raises
    ------
    MeasurementError
        If there are no TCP or UDP packets.
    """
    section = source.data[:4] == b"\x0a\x0d\x0d\x0a"
    frames = _pcapng(source) if section else _pcap(source)
    notes: list[str] = []
    if frames.damaged:
        notes.append("The capture is truncated or damaged; it is read up to the damage.")
    if frames.full:
        notes.append(f"Only the first {_MOST_PACKETS} packets are read.")
    if frames.dropped:
        notes.append(f"The capture dropped {plural(frames.dropped, 'packet')}, according to its statistics.")
    if frames.untimed:
        notes.append(f"{plural(frames.untimed, 'packet')} without a timestamp not read.")
    if not frames.offset:
        raise source.error("the capture has no packets")
    links = set(frames.links)
    if not links & {*_LINK_TYPES}:
        if links & {*_RADIO}:
            raise source.error(
                "802.11 frames of a monitor interface are not supported; capture on the wireless interface "
                "itself: `tcpdump -i wlan0 -s 128 -w capture.pcap`"
            )
        raise source.error(
            f"unsupported link type {min(links)}; expected Ethernet, raw IP, Linux cooked or loopback"
        )
    packets = _decode(source, frames, notes)
    if not len(packets.time_s):
        raise source.error("no TCP or UDP packets over IPv4 or IPv6 in this capture")
    return packets


def _pcap(source: Source) -> _Frames:
    data = source.data
    little = data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    try:
        header = (dpkt.pcap.LEFileHdr if little else dpkt.pcap.FileHdr)(data[:24])
    except _HEADER_ERRORS:
        raise source.error("the capture's header is damaged") from None
    known = (dpkt.pcap.TCPDUMP_MAGIC, dpkt.pcap.TCPDUMP_MAGIC_NANO)
    if header.magic not in known:
        raise source.error("not a capture: the header does not have the magic number of pcap or pcapng")
    unit_ns = 1 if header.magic == dpkt.pcap.TCPDUMP_MAGIC_NANO else 1000
    record = struct.Struct("<IIII" if little else ">IIII")
    # The upper bits are about frame check sequences.
    link = int(header.linktype) & 0xFFFF
    frames = _Frames()
    at, end, unpack = 24, len(data), record.unpack_from
    add_time, add_offset = frames.time_ns.append, frames.offset.append
    add_captured, add_wire = frames.captured.append, frames.wire.append
    while at + 16 <= end:
        seconds, fraction, captured, wire = unpack(data, at)
        at += 16
        if captured > _LARGEST_PACKET or at + captured > end:
            frames.damaged = True
            break
        if len(frames.offset) == _MOST_PACKETS:
            frames.full = True
            break
        add_time(seconds * 1_000_000_000 + fraction * unit_ns)
        add_offset(at)
        add_captured(captured)
        add_wire(wire)
        at += captured
    frames.damaged |= at < end < at + 16
    frames.interface = [0] * len(frames.offset)
    frames.links = [link]
    return frames


def _structs(order: str) -> tuple[struct.Struct, struct.Struct, struct.Struct]:
    """Return the formats of a block header, an enhanced packet block, and an obsolete packet block."""
    return struct.Struct(order + "II"), struct.Struct(order + "IIIII"), struct.Struct(order + "HHIIII")


def _pcapng(source: Source) -> _Frames:
    data = source.data
    frames = _Frames()
    at, end, order = 0, len(data), "<"
    head, enhanced, obsolete = _structs(order)
    # For each interface of the section: its number in the file, its time unit and offset.
    section: list[tuple[int, int, int, int]] = []
    while at + 12 <= end:
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            head, enhanced, obsolete = _structs(order)
            section = []
        kind, length = head.unpack_from(data, at)
        if length < 12 or at + length > end or length % 4:
            frames.damaged = True
            break
        if len(frames.offset) == _MOST_PACKETS:
            frames.full = True
            break
        if kind == dpkt.pcapng.PCAPNG_BT_EPB and length >= 32:
            number, high, low, captured, wire = enhanced.unpack_from(data, at + 8)
            _add(frames, section, number, high << 32 | low, at + 28, captured, wire, length - 32)
        elif kind == dpkt.pcapng.PCAPNG_BT_PB and length >= 32:
            number, _, high, low, captured, wire = obsolete.unpack_from(data, at + 8)
            _add(frames, section, number, high << 32 | low, at + 28, captured, wire, length - 32)
        elif kind == dpkt.pcapng.PCAPNG_BT_SPB:
            frames.untimed += 1
        elif kind == dpkt.pcapng.PCAPNG_BT_IDB:
            section.append(_interface(data[at : at + length], order, len(frames.links)))
            frames.links.append(section[-1][3])
        elif kind == _STATISTICS:
            _statistics(frames, data[at + 20 : at + length - 4], order)
        at += length
    frames.damaged |= at < end and not frames.full
    return frames


_STATISTICS = 5
_DROPPED = (5, 7)


def _add(
    frames: _Frames,
    section: list[tuple[int, int, int, int]],
    number: int,
    stamp: int,
    at: int,
    captured: int,
    wire: int,
    room: int,
) -> None:
    """Add a packet of a pcapng file, unless its block is inconsistent."""
    if number >= len(section) or captured > room:
        frames.damaged = True
        return
    interface, unit, offset_s, _ = section[number]
    # The time unit is a negative power of ten or of two, in seconds.
    nanoseconds = stamp * 1_000_000_000 // unit + offset_s * 1_000_000_000
    if not 0 <= nanoseconds < 1 << 62:
        frames.damaged = True
        return
    frames.time_ns.append(nanoseconds)
    frames.offset.append(at)
    frames.captured.append(captured)
    frames.wire.append(wire)
    frames.interface.append(interface)


def _interface(block: bytes, order: str, number: int) -> tuple[int, int, int, int]:
    """Return the number, time units per second, time offset and link type of an interface."""
    unit, offset_s = 1_000_000, 0
    try:
        description = (
            dpkt.pcapng.InterfaceDescriptionBlockLE if order == "<" else dpkt.pcapng.InterfaceDescriptionBlock
        )(block)
    except _HEADER_ERRORS:
        # The options are damaged, so the defaults apply.
        link = struct.unpack_from(order + "H", block.ljust(12, b"\0"), 8)[0]
        return number, unit, offset_s, link
    for option in description.opts:
        if option.code == dpkt.pcapng.PCAPNG_OPT_IF_TSRESOL and len(option.data) == 1:
            power = option.data[0] & 0x7F
            if power <= 30:
                unit = 2**power if option.data[0] & 0x80 else 10**power
        elif option.code == dpkt.pcapng.PCAPNG_OPT_IF_TSOFFSET and len(option.data) == 8:
            offset_s = struct.unpack(order + "q", option.data)[0]
    return number, unit, offset_s, int(description.linktype)


def _statistics(frames: _Frames, options: bytes, order: str) -> None:
    """Add the number of dropped packets from an interface statistics block."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(order + "HH", options, at)
        if code == 0:
            break
        if code in _DROPPED and length == 8 and at + 12 <= len(options):
            frames.dropped = (frames.dropped or 0) + struct.unpack_from(order + "Q", options, at + 4)[0]
        at += 4 + length + -length % 4


def _word(data: Bytes, at: Any, size: int) -> Any:
    """Return the big-endian integers at the given offsets; bytes beyond the end read as zero."""
    last = len(data) - 1
    value = np.zeros(len(at), dtype=np.int64)
    for place in range(size):
        where = at + place
        byte = data[np.minimum(where, last)].astype(np.int64)
        value = (value << 8) | np.where(where <= last, byte, 0)
    return value


def _decode(source: Source, frames: _Frames, notes: list[str]) -> Packets:
    """Decode the headers of all packets at once."""
    data: Bytes = np.frombuffer(source.data, dtype=np.uint8)
    time_ns = np.array(frames.time_ns, dtype=np.int64)
    start = np.array(frames.offset, dtype=np.int64)
    end = start + np.array(frames.captured, dtype=np.int64)
    wire = np.array(frames.wire, dtype=np.int64)
    interface = np.array(frames.interface, dtype=np.int64)
    link = np.array(frames.links, dtype=np.int64)[interface]

    at, version, interface = _network(data, start, end, link, interface)
    four, six = version == 4, version == 6
    # With segmentation offload the total length can be zero.
    first = _word(data, at, 1)
    header = np.where(four, (first & 15) * 4, 40)
    stated = np.where(four, _word(data, at + 2, 2), _word(data, at + 4, 2) + 40)
    on_wire = wire - (at - start)
    size = np.where(
        (stated == np.where(four, 0, 40)) & (on_wire > 40), np.minimum(on_wire, _LARGEST_PACKET), stated
    )
    protocol = np.where(four, _word(data, at + 9, 1), _word(data, at + 6, 1))
    fragment = four & ((_word(data, at + 6, 2) & 0x3FFF) != 0)
    address_at = np.where(four, at + 12, at + 8)
    address_size = np.where(four, 4, 16)
    for _ in range(4):
        extended = six & np.isin(protocol, (0, 43, 60)) & (at + header + 2 <= end)
        if not extended.any():
            break
        length = (_word(data, at + header + 1, 1) + 1) * 8
        protocol = np.where(extended, _word(data, at + header, 1), protocol)
        header = np.where(extended, header + length, header)
    fragment |= six & (protocol == 44)
    tcp = (protocol == _TCP) & (at + header + 20 <= end)
    udp = (protocol == _UDP) & (at + header + 8 <= end)
    keep = (four | six) & (tcp | udp) & ~fragment & (header >= 20)
    if fragment.any():
        notes.append(f"{plural(int(fragment.sum()), 'IP fragment')} not read.")

    def selected(column: Any) -> Any:
        return column[keep]

    at, header, size, end, tcp = selected(at), selected(header), selected(size), selected(end), selected(tcp)
    transport = at + header
    offset = np.where(tcp, (_word(data, transport + 12, 1) >> 4) * 4, 8)
    body_at = transport + offset
    payload = np.maximum(size - header - offset, 0)
    zero = np.zeros(len(at), dtype=np.int64)
    source_port, target_port = _word(data, transport, 2), _word(data, transport + 2, 2)
    address_at, address_size = selected(address_at), selected(address_size)
    mss, timestamp, echo, permitted, sack_at, sacks = _options(
        data, transport + 20, np.minimum(np.where(tcp, body_at, zero), end)
    )
    times = selected(time_ns)
    # Packets from several hardware queues can be out of order by microseconds.
    elapsed = np.maximum.accumulate(times - times[0]) / 1e9 if len(times) else times / 1e9
    return Packets(
        data=data,
        time_s=elapsed,
        interface=selected(interface),
        protocol=selected(protocol),
        source=_hash(data, address_at, address_size, source_port),
        target=_hash(data, address_at + address_size, address_size, target_port),
        source_port=source_port,
        target_port=target_port,
        size=size,
        payload=payload,
        identification=np.where(selected(four), _word(data, at + 4, 2), -1),
        seq=np.where(tcp, _word(data, transport + 4, 4), zero),
        ack=np.where(tcp, _word(data, transport + 8, 4), zero),
        flags=np.where(tcp, _word(data, transport + 13, 1), zero),
        mss=mss,
        timestamp=timestamp,
        echo=echo,
        sack_permitted=permitted,
        sack_at=sack_at,
        sacks=sacks,
        body_at=body_at,
        body=np.clip(end - body_at, 0, payload),
        notes=notes,
    )


def _network(data: Bytes, start: Any, end: Any, link: Any, interface: Any) -> tuple[Any, Any, Any]:
    """Return the offset of each IP header, the IP version or 0, and the interface."""
    at = start.copy()
    ether = np.zeros(len(at), dtype=np.int64)
    ethernet, cooked, newer = link == _ETHERNET, link == _SLL, link == _SLL2
    for chosen, kind_at, length in ((ethernet, 12, 14), (cooked, 14, 16), (newer, 0, 20)):
        if chosen.any():
            ether = np.where(chosen, _word(data, start + kind_at, 2), ether)
            at = np.where(chosen, start + length, at)
    at = np.where((link == _NULL) | (link == _LOOP), start + 4, at)
    if newer.any():
        # `tcpdump -i any` records a forwarded packet once for each interface.
        interface = np.where(newer, interface + (_word(data, start + 4, 4) << 20), interface)
    for _ in range(3):
        tagged = np.isin(ether, _VLANS)
        if not tagged.any():
            break
        ether = np.where(tagged, _word(data, at + 2, 2), ether)
        at = np.where(tagged, at + 4, at)
    session = ether == 0x8864
    if session.any():
        ether = np.where(session, np.where(_word(data, at + 6, 2) == 0x21, 0x800, 0x86DD), ether)
        at = np.where(session, at + 8, at)
    bare = np.isin(link, (*_RAW, _NULL, _LOOP))
    version = np.where(at < end, _word(data, at, 1) >> 4, 0)
    legible = bare | ((ether == 0x800) & (version == 4)) | ((ether == 0x86DD) & (version == 6))
    room = np.where(version == 4, 20, 40)
    fits = at + room <= end
    return at, np.where(legible & fits & np.isin(version, (4, 6)), version, 0), interface


def _options(data: Bytes, begin: Any, until: Any) -> tuple[Any, ...]:
    """Return the TCP options of each packet."""
    count = len(begin)
    mss, timestamp, echo = np.zeros(count, np.int64), np.full(count, -1), np.full(count, -1)
    permitted = np.zeros(count, dtype=np.bool_)
    sack_at, sacks = np.zeros(count, np.int64), np.zeros(count, np.int64)
    rows = np.flatnonzero(begin < until)
    at = begin[rows]
    while len(rows):
        kind = _word(data, at, 1)
        length = np.where(kind == 1, 1, _word(data, at + 1, 1))
        whole = (kind != 0) & (length >= np.where(kind == 1, 1, 2)) & (at + length <= until[rows])
        rows, at, kind, length = rows[whole], at[whole], kind[whole], length[whole]
        announced = (kind == 2) & (length == 4)
        mss[rows[announced]] = _word(data, at[announced] + 2, 2)
        permitted[rows[kind == 4]] = True
        blocks = (kind == 5) & (length >= 10)
        sack_at[rows[blocks]] = at[blocks] + 2
        sacks[rows[blocks]] = (length[blocks] - 2) // 8
        stamped = (kind == 8) & (length == 10)
        timestamp[rows[stamped]] = _word(data, at[stamped] + 2, 4)
        echo[rows[stamped]] = _word(data, at[stamped] + 6, 4)
        at = at + length
        more = at < until[rows]
        rows, at = rows[more], at[more]
    return mss, timestamp, echo, permitted, sack_at, sacks


def _hash(data: Bytes, at: Any, size: Any, port: Any) -> npt.NDArray[np.uint64]:
    """Return a hash of each address and port."""
    mixed = port.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for word in range(4):
        part = np.where(word * 4 < size, _word(data, at + word * 4, 4), 0).astype(np.uint64)
        mixed = (mixed ^ part) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    found: npt.NDArray[np.uint64] = mixed
    return found
