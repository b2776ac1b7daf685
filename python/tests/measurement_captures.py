"""Captures for tests of `lasthop.measurement`: of simulated transfers at both ends, and written by hand."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lasthop
from lasthop import Run, Scenario

RAW = 101
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Packet:
    """An IP packet of a capture."""

    time_ns: int
    data: bytes
    wire: int


def written(packets: list[Packet], link: int = RAW, *, ordered: bool = True) -> bytes:
    """Return a pcap file with nanoseconds, in the order of the times or of the list."""
    text = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)
    for packet in sorted(packets, key=lambda packet: packet.time_ns) if ordered else packets:
        seconds, nanoseconds = divmod(packet.time_ns, SECOND)
        text += struct.pack("<IIII", seconds, nanoseconds, len(packet.data), packet.wire) + packet.data
    return text


def packets_of(path: Path) -> list[Packet]:
    """Return the packets at the source in a pcapng file of the simulator."""
    data = path.read_bytes()
    found, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            interface, high, low, captured, wire = struct.unpack_from("<IIIII", data, at + 8)
            if interface == 0:
                found.append(Packet(high << 32 | low, data[at + 28 : at + 28 + captured], wire))
        at += length
    return found


@dataclass(frozen=True)
class Transfer:
    """A simulated download from `fixed`, captured at its source and at the mobile host."""

    run: Run
    source: bytes
    source_pcap: bytes
    mobile: bytes
    # Of each data packet in the order of sending: when, its number, its transmission, its fate, and when it
    # arrived, or would have.
    sent_s: np.ndarray[Any, Any]
    number: np.ndarray[Any, Any]
    transmission: np.ndarray[Any, Any]
    lost: np.ndarray[Any, Any]
    arrived_s: np.ndarray[Any, Any]
    due_s: np.ndarray[Any, Any]


def transfer(text: str, directory: Path, seed: int = 1) -> Transfer:
    """Run a scenario and return its captures with the truth."""
    path = directory / "run.pcapng"
    run = Scenario.parse(text).run(None, seed=seed, trace=True, pcap=path)
    events: Any = lasthop.events_frame(run)
    data = events[events["packet"] >= 0]
    sent = data[data["event"] == "sent"]
    fates = {
        (row.packet, row.transmission): (row.event, row.time_s)
        for row in data.itertuples()
        if row.event in ("delivered", "lost")
    }
    keys = list(zip(sent["packet"], sent["transmission"], strict=True))
    lost = np.array([fates.get(key, ("", 0.0))[0] != "delivered" for key in keys])
    due_s = np.array([fates.get(key, ("", np.nan))[1] for key in keys])
    arrived_s = np.where(lost, np.nan, due_s)
    packets = packets_of(path)
    # What the source sends has a payload, or is one of the few other segments.
    outward = [packet for packet in packets if packet.data[12:16] == packets[0].data[12:16]]
    carrying = [packet for packet in outward if payload(packet) > 0]
    assert len(carrying) == len(keys)
    at_mobile = [
        Packet(round(arrived_s[row] * 1e9), packet.data, packet.wire)
        for row, packet in enumerate(carrying)
        if not lost[row]
    ]
    inward = [packet for packet in packets if packet.data[12:16] != packets[0].data[12:16]]
    acks = events[events["event"] == "ack-sent"]
    sent_acks: dict[int, list[float]] = {}
    for row in acks.itertuples():
        sent_acks.setdefault(row.packet, []).append(row.time_s)
    received = events[events["event"] == "ack-received"]
    assert len(received) == len(inward)
    for packet, row in zip(inward, received.itertuples(), strict=True):
        # The latest that was sent a propagation delay of 25 ms before.
        time_s = max(time_s for time_s in sent_acks[row.packet] if time_s < row.time_s - 0.025)
        at_mobile.append(Packet(round(time_s * 1e9), packet.data, packet.wire))
    # The SYN-ACK and other segments without data.
    bare = events[(events["packet"] < 0) & (events["event"] == "delivered")]
    arrivals_s = dict(zip(bare["transmission"], bare["time_s"], strict=True))
    empty = [packet for packet in outward if payload(packet) == 0]
    at_mobile += [
        Packet(round(arrivals_s[number] * 1e9), packet.data, packet.wire)
        for number, packet in enumerate(empty, start=1)
        if number in arrivals_s
    ]
    return Transfer(
        run,
        path.read_bytes(),
        written(packets),
        written(at_mobile),
        sent["time_s"].to_numpy(),
        sent["packet"].to_numpy(),
        sent["transmission"].to_numpy(),
        lost,
        arrived_s,
        due_s,
    )


def payload(packet: Packet) -> int:
    """Return the bytes of payload of a TCP segment."""
    data = packet.data
    return int.from_bytes(data[2:4], "big") - 20 - (data[32] >> 4) * 4 if data[9] == 6 else 0


def _length_and_seq(packet: Packet) -> tuple[int, int]:
    return int.from_bytes(packet.data[2:4], "big"), int.from_bytes(packet.data[24:28], "big")


def unnumbered(capture: bytes, dice: Any) -> bytes:
    """Return a capture whose IP identifications are random."""
    packets = []
    for packet in read_back(capture):
        number = dice.randrange(1 << 16).to_bytes(2, "big")
        packets.append(Packet(packet.time_ns, packet.data[:4] + number + packet.data[6:], packet.wire))
    return written(packets)


def edited(packet: Packet, at: int, value: bytes, *, later_ns: int = 0) -> Packet:
    """Return a packet with other bytes from `at` on, and at another time."""
    data = packet.data[:at] + value + packet.data[at + len(value) :]
    return Packet(packet.time_ns + later_ns, data, packet.wire)


def numbered(packet: Packet, number: int) -> Packet:
    """Return a packet with another IP identification."""
    return edited(packet, 4, (number & 0xFFFF).to_bytes(2, "big"))


def identification(packet: Packet) -> int:
    """Return the IP identification."""
    return int.from_bytes(packet.data[4:6], "big")


def segment(
    time_s: float,
    seq: int,
    ack: int,
    length: int = 0,
    *,
    flags: int = 16,
    window: int = 8192,
    from_client: bool = True,
    stamps: tuple[int, int] | None = None,
) -> Packet:
    """Return a TCP segment between a client at 192.0.2.1:40000 and a server at 198.51.100.1:80."""
    ports = (40000, 80) if from_client else (80, 40000)
    hosts = b"\xc0\0\2\1", b"\xc6\x33\x64\1"
    options = b"\2\4\5\xb4\4\2\1\1" if flags & 2 else b""
    options += b"" if stamps is None else struct.pack(">HBBII", 0x0101, 8, 10, *stamps)
    offset = (20 + len(options)) // 4 << 12
    tcp = struct.pack(">HHIIHHHH", *ports, seq, ack, offset | flags, window, 0, 0) + options
    total = 20 + len(tcp) + length
    ends = hosts if from_client else hosts[::-1]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0) + b"".join(ends)
    return Packet(round(time_s * SECOND), ip + tcp, total)


def read_back(capture: bytes) -> list[Packet]:
    """Return the packets of a file of `written`."""
    found, at = [], 24
    while at < len(capture):
        seconds, nanoseconds, captured, wire = struct.unpack_from("<IIII", capture, at)
        found.append(Packet(seconds * SECOND + nanoseconds, capture[at + 16 : at + 16 + captured], wire))
        at += 16 + captured
    return found


def framed(packets: list[Packet], link: int) -> bytes:
    """Return a capture of the packets with the header of another link; 6 stands for IPv6 in Ethernet."""
    prefix = {
        1: bytes(12) + b"\x08\x00",
        # Two VLAN tags.
        100: bytes(12) + b"\x88\xa8\x00\x05\x81\x00\x00\x07\x08\x00",
        113: b"\x00\x00\x00\x01\x00\x06" + bytes(8) + b"\x08\x00",
        276: b"\x08\x00\x00\x00\x00\x00\x00\x02\x00\x01\x00\x06" + bytes(8),
        0: b"\x02\x00\x00\x00",
        6: bytes(12) + b"\x86\xdd",
    }[link]
    found = []
    for packet in packets:
        data, wire = packet.data, packet.wire
        if link == 6:
            # With a header of destination options.
            length = (int.from_bytes(data[2:4], "big") - 20 + 8).to_bytes(2, "big")
            addresses = bytes(12) + data[12:16] + bytes(12) + data[16:20]
            data = b"\x60\0\0\0" + length + b"\x3c\x40" + addresses + b"\x06\0\x01\x04\0\0\0\0" + data[20:]
            wire += 28
        found.append(Packet(packet.time_ns, prefix + data, wire + len(prefix)))
    return written(found, {100: 1, 6: 1}.get(link, link))


def joined(packets: list[Packet], within_ns: int = 0) -> list[Packet]:
    """Return the packets with those within a time of each other joined, as segmentation offload does."""
    found: list[Packet] = []
    # The place of the last packet of each source.
    latest: dict[bytes, int] = {}
    for packet in packets:
        place = latest.get(packet.data[12:16], len(found))
        last = found[place] if place < len(found) else None
        close = last is not None and packet.time_ns - last.time_ns <= within_ns
        if last is not None and close and payload(last) and payload(packet):
            (length, seq), (_, following) = _length_and_seq(last), _length_and_seq(packet)
            if seq + payload(last) == following and length + payload(last) < 60_000:
                total = (length + payload(packet)).to_bytes(2, "big")
                data = last.data[:2] + total + last.data[4:]
                found[place] = Packet(last.time_ns, data, last.wire + payload(packet))
                continue
        latest[packet.data[12:16]] = len(found)
        found.append(packet)
    return found


def datagrams(numbers: list[int], payload: Any) -> bytes:
    """Return a capture of UDP datagrams, one every 20 ms, with the payload of each number."""
    packets = []
    for place, number in enumerate(numbers):
        body = payload(number)
        udp = struct.pack(">HHHH", 5004, 6000, 8 + len(body), 0) + body
        ip = struct.pack(">BBHIBBH", 0x45, 0, 28 + len(body), 0, 64, 17, 0) + b"\xc0\0\2\1\x0a\0\0\2" + udp
        packets.append(Packet(place * 20_000_000, ip, 28 + len(body)))
    return written(packets)


def pcapng(packets: list[Packet], dropped: int) -> bytes:
    """Return a pcapng file with big-endian numbers, milliseconds as unit, and statistics of its interface."""

    def block(kind: int, body: bytes) -> bytes:
        length = (12 + len(body)).to_bytes(4, "big")
        return kind.to_bytes(4, "big") + length + body + length

    text = block(0x0A0D0D0A, b"\x1a\x2b\x3c\x4d\0\x01\0\0" + b"\xff" * 8)
    text += block(1, struct.pack(">HHI", RAW, 0, 0) + b"\0\x09\0\x01\x06\0\0\0" + bytes(4))
    for packet in packets:
        stamp = packet.time_ns // 1000
        head = struct.pack(">IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(packet.data), packet.wire)
        text += block(6, head + packet.data + bytes(-len(packet.data) % 4))
    statistics = struct.pack(">III", 0, 0, 0) + struct.pack(">HHQ", 5, 8, dropped) + bytes(4)
    return text + block(5, statistics)


def rtp(number: int) -> bytes:
    """Return an RTP packet."""
    return struct.pack(">BBHII", 0x80, 96, number & 0xFFFF, number * 160, 0x1234) + bytes(160)
