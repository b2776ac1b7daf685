"""Schemes of Lasthop in Python, and some of no use. In a module, so that other processes can import them."""

from __future__ import annotations

from typing import Literal

import lasthop
from lasthop.python_scheme import (
    MILLISECOND,
    Flags,
    Hole,
    Installer,
    Notice,
    Out,
    Packet,
    Port,
    Receiver,
    Segment,
    SenderState,
    SeqNum,
    Signal,
    Site,
    Tally,
)

QUENCH = (4, 0)
EBSN = (41, 2)
ELN = 1 << 9


class QuenchAgent(lasthop.Agent):
    def __init__(self, site: Site) -> None:
        self.quenches = 0

    def needs_outcome(self, outcome: str) -> bool:
        return outcome == "attempt-failed"

    def on_signal(self, now: int, signal: Signal, out: Out) -> None:
        if signal.kind != "link" or signal.outcome != "attempt-failed" or signal.attempt != 1:
            return
        assert signal.packet is not None
        notice = Notice.about(signal.packet, QUENCH, 40)
        if notice is not None:
            out.send(Port.WIRED, notice)
            self.quenches += 1

    def count(self, tally: Tally) -> None:
        tally.total("quenches_sent", self.quenches)


class SlowStart(lasthop.Reaction):
    def on_notice(self, now: int, notice: Notice, sender: SenderState) -> None:
        if notice.code == QUENCH:
            sender.shrink_window_to_one_segment()


class SourceQuench(lasthop.PythonScheme):
    """As crates/proto/src/scheme/source_quench.rs."""

    name = "my-source-quench"
    summary = "source-quench in Python"

    def install(self, installer: Installer) -> None:
        installer.arq("required")
        installer.at_base_station(QuenchAgent)
        installer.at_sender(SlowStart)


class DelayDuplicates(lasthop.ReceiverReaction):
    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.row: SeqNum | None = None
        self.count = self.waiting = 0
        self.until: int | None = None

    def on_segment(self, now: int, segment: Segment, receiver: Receiver) -> None:
        if self.row is None:
            self.row = receiver.rcv_nxt

    def on_ack(self, now: int, ack: Segment, receiver: Receiver) -> Literal["withhold"] | None:
        if self.row is None or self.row != ack.ack:
            self.row, self.count, self.waiting, self.until = ack.ack, 0, 0, None
        elif receiver.has_gap:
            self.count += 1
        if self.count <= 2 or (self.until is not None and self.until <= now):
            return None
        self.waiting += 1
        if self.until is None:
            self.until = now + self.delay
        return "withhold"

    def next_wakeup(self) -> int | None:
        return self.until if self.waiting > 0 else None

    def on_timer(self, now: int, receiver: Receiver) -> None:
        waiting, self.waiting = self.waiting, 0
        receiver.acknowledge_now(waiting)


class DelayedDupacks(lasthop.PythonScheme):
    """As crates/proto/src/scheme/delayed_dupacks.rs."""

    name = "my-delayed-dupacks"

    def __init__(self, delay: int = 100 * MILLISECOND) -> None:
        self.delay = delay

    def install(self, installer: Installer) -> None:
        installer.arq("required")
        installer.at_receiver(lambda: DelayDuplicates(self.delay))


class ExpediteAcks(lasthop.Agent):
    def __init__(self, site: Site) -> None:
        self.acks = 0

    def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
        segment = packet.segment
        others = Flags.SYN | Flags.FIN | Flags.RST
        is_ack = segment is not None and segment.len == 0 and segment.has(Flags.ACK)
        if is_ack and segment is not None and not segment.flags & others and port == Port.WIRED:
            self.acks += 1
            packet = packet.replace(dscp=46)
        out.send(port.across(), packet)

    def needs_outcome(self, outcome: str) -> bool:
        return False

    def count(self, tally: Tally) -> None:
        tally.total("expedited_acks", self.acks)


class AcksFirst(lasthop.PythonScheme):
    """As crates/proto/src/scheme/acks_first.rs."""

    name = "my-acks-first"

    def install(self, installer: Installer) -> None:
        installer.queue("expedited-first")
        installer.at_base_station(ExpediteAcks)
        installer.at_mobile_host(ExpediteAcks)


class ElnMarker(lasthop.Agent):
    """For one connection, in a host that does not move."""

    def __init__(self, site: Site) -> None:
        self.corrupted: list[tuple[SeqNum, SeqNum]] = []
        self.corrupted_segments = self.marked_acks = 0

    def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
        segment = packet.segment
        if segment is not None and port == Port.WIRED and segment.has(Flags.ACK):
            while self.corrupted and self.corrupted[0][1] <= segment.ack:
                del self.corrupted[0]
            if self.corrupted and self.corrupted[0][0] <= segment.ack:
                self.marked_acks += 1
                packet = packet.replace(segment=segment.replace(flags=segment.flags | ELN))
        out.send(port.across(), packet)

    def needs_outcome(self, outcome: str) -> bool:
        return False

    def needs_corrupted(self) -> bool:
        return True

    def on_signal(self, now: int, signal: Signal, out: Out) -> None:
        if signal.kind != "corrupted" or signal.packet is None or signal.packet.segment is None:
            return
        segment = signal.packet.segment
        if segment.len > 0:
            self.corrupted_segments += 1
            block = (segment.seq, segment.seq + segment.len)
            place = sum(end <= block[0] for _, end in self.corrupted)
            known = place < len(self.corrupted) and self.corrupted[place][0] < block[1]
            if not known:
                self.corrupted.insert(place, block)

    def count(self, tally: Tally) -> None:
        tally.total("corrupted_segments", self.corrupted_segments)
        tally.total("holes", 0)
        tally.total("marked_acks", self.marked_acks)


class KeepWindow(lasthop.Reaction):
    def __init__(self, early: bool) -> None:
        self.early = early
        self.corrupted: SeqNum | None = None

    def on_segment(self, now: int, segment: Segment, sender: SenderState) -> None:
        if segment.ack >= sender.snd_una:
            self.corrupted = segment.ack if segment.has(ELN) else None

    def dupthresh(self, set: int, sender: SenderState) -> int:  # noqa: A002
        return 1 if self.early and self.is_corruption(sender.snd_una) else set

    def judge(self, now: int, hole: Hole, sender: SenderState) -> Literal["congestion", "corruption"]:
        if hole.evidence in ("timeout", "mark"):
            return "congestion"
        return "corruption" if self.is_corruption(hole.seq) else "congestion"

    def is_corruption(self, seq: SeqNum) -> bool:
        return self.corrupted is not None and self.corrupted == seq


class Eln(lasthop.PythonScheme):
    """As crates/proto/src/scheme/eln.rs."""

    name = "my-eln"

    def __init__(self, early: bool = False) -> None:
        self.early = early

    def install(self, installer: Installer) -> None:
        installer.use_flags(ELN)
        installer.at_base_station(ElnMarker)
        installer.at_mobile_host(ElnMarker)
        installer.at_sender(lambda: KeepWindow(self.early))


class Jitter(lasthop.Agent):
    """Holds each packet for the mobile host for a random time, in order."""

    def __init__(self, site: Site) -> None:
        self.stream = site.stream()
        self.held: list[tuple[int, Packet]] = []
        self.most = 0

    def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
        if port == Port.RADIO:
            out.send(Port.WIRED, packet)
            return
        due = now + self.stream.exponential(5 * MILLISECOND)
        if self.held:
            due = max(due, self.held[-1][0])
        self.held.append((due, packet))
        self.most = max(self.most, len(self.held))

    def next_wakeup(self) -> int | None:
        return self.held[0][0] if self.held else None

    def wake(self, now: int, out: Out) -> None:
        while self.held and self.held[0][0] <= now:
            out.send(Port.RADIO, self.held.pop(0)[1])

    def count(self, tally: Tally) -> None:
        tally.level("held_packets", len(self.held))
        tally.peak("held_packets_peak", self.most)


class JitterScheme(lasthop.PythonScheme):
    name = "jitter"

    def install(self, installer: Installer) -> None:
        installer.at_base_station(Jitter)


class FailingReaction(lasthop.Reaction):
    def __init__(self, at: int) -> None:
        self.at = at

    def on_segment(self, now: int, segment: Segment, sender: SenderState) -> None:
        if now >= self.at:
            raise LookupError("on purpose")


class Failing(lasthop.PythonScheme):
    name = "failing"

    def __init__(self, at: int = 1_000 * MILLISECOND) -> None:
        self.at = at

    def install(self, installer: Installer) -> None:
        installer.at_sender(lambda: FailingReaction(self.at))
