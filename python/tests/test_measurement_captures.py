"""Losses inferred from captures, against the simulator's truth; links, offloads, drops and damage."""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measurement_captures as captures
import numpy as np
import pytest
from measurement_captures import Packet, Transfer
from measurement_samples import mutated

from lasthop.fitting import fit_losses
from lasthop.measurement import Direction, Measurement, MeasurementError, Probes, read
from lasthop.measurement.tcp.clock import Clock, Gap

Reading = Callable[..., Measurement]

NETWORK = """
{sender}
[transfer]
size = "600 KB"
[wired]
rate = "100 Mbps"
delay = "10 ms"
[radio]
rate = "10 Mbps"
delay = "15 ms"
{channel}
"""

LINUX = ("linux", "linux-bbr", "linux-bbr3", "freebsd")
RFC = ("newreno", "reno", "sack", "tahoe")
CHANNELS = {
    "single": "channel.gilbert = {loss=0.01}",
    "bursts": "channel.gilbert = {loss=0.03, burst=3}",
    "long-bursts": "channel.gilbert = {loss=0.05, burst=6}",
    "fades": 'channel.two-state = {good="1 s", bad="100 ms"}',
}


def scenario(sender: str, channel: str) -> str:
    chosen = f'sender = "{sender}"' if sender in LINUX else f'[tcp]\nprofile = "rfc"\nflavour = "{sender}"'
    return NETWORK.format(sender=chosen, channel=CHANNELS[channel])


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    def written(capture: bytes, **options: Any) -> Measurement:
        path = tmp_path / "captured"
        path.write_bytes(capture)
        return read(path, **({"user": "server"} | options))

    return written


@pytest.fixture(scope="module")
def faded(tmp_path_factory: pytest.TempPathFactory) -> Transfer:
    return captures.transfer(scenario("linux", "bursts"), tmp_path_factory.mktemp("transfer"), seed=3)


def down(measurement: Measurement) -> Probes:
    (probes,) = [probes for probes in measurement.probes if probes.direction is Direction.DOWN]
    return probes


def lost_s(probes: Probes) -> list[float]:
    return sorted(probes.sent_s[probes.lost].tolist())


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("sender", LINUX)
def test_at_a_sender_of_linux_each_loss_is_found(
    sender: str, channel: str, seed: int, tmp_path: Path, reading: Reading
) -> None:
    truth = captures.transfer(scenario(sender, channel), tmp_path, seed)
    probes = down(reading(truth.source))
    assert lost_s(probes) == pytest.approx(sorted(truth.sent_s[truth.lost].tolist()), abs=1e-6)
    # In the order of transmission, also for packets sent at the same time.
    assert probes.lost.tolist() == truth.lost.tolist()


def test_a_tail_probe_that_arrived_twice_is_not_lost(tmp_path: Path, reading: Reading) -> None:
    """One acknowledgement echoes the timestamp of the original and reports the probe as a duplicate."""
    truth = captures.transfer(scenario("linux", "fades"), tmp_path, 12)
    probes = down(reading(truth.source))
    assert lost_s(probes) == pytest.approx(sorted(truth.sent_s[truth.lost].tolist()), abs=1e-6)


@pytest.mark.parametrize(
    ("sender", "channel", "seed", "missing"),
    [
        ("linux", "long-bursts", 14, 5),
        ("linux-bbr3", "bursts", 16, 12),
        ("freebsd", "bursts", 21, 3),
        ("freebsd", "fades", 22, 2),
    ],
)
def test_of_copies_whose_acknowledgements_were_lost_none_counts_as_lost(
    sender: str, channel: str, seed: int, missing: int, tmp_path: Path, reading: Reading
) -> None:
    """The first acknowledgement that arrives reports a duplicate, and not which copy came first."""
    truth = captures.transfer(scenario(sender, channel), tmp_path, seed)
    probes = down(reading(truth.source))
    lost = np.round(truth.sent_s[truth.lost], 6)
    assert set(np.round(lost_s(probes), 6)) <= set(lost)
    assert len(truth.lost) - len(probes.lost) == missing


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("sender", RFC)
def test_without_dsack_spurious_retransmissions_may_count_as_lost(
    sender: str, channel: str, tmp_path: Path, reading: Reading
) -> None:
    truth = captures.transfer(scenario(sender, channel), tmp_path, 1)
    found = down(reading(truth.source))
    # Spurious retransmissions: a receiver without DSACK does not report them, so their fate is unknown.
    needless = 0
    for number in np.unique(truth.number):
        copies = truth.number == number
        arrived = truth.arrived_s[copies & ~truth.lost]
        needless += int((truth.sent_s[copies] > arrived.min()).sum()) if len(arrived) else 0
    assert abs(int(found.lost.sum()) - int(truth.lost.sum())) <= needless
    if needless == 0:
        assert lost_s(found) == pytest.approx(sorted(truth.sent_s[truth.lost].tolist()), abs=1e-6)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("sender", [*LINUX, *RFC])
def test_at_a_receiver_the_losses_are_those_of_the_link(
    sender: str, channel: str, seed: int, tmp_path: Path, reading: Reading
) -> None:
    truth = captures.transfer(scenario(sender, channel), tmp_path, seed)
    measurement = reading(truth.mobile)
    probes = down(measurement)
    # The fate of packets after the last arrival is unknown.
    assert probes.lost.tolist() == truth.lost.tolist()
    assert any("IP identifications" in note for note in measurement.notes)

    # Without sequential identifications only holes are visible: a lost first transmission with later data
    # arriving before the retransmission. Lost retransmissions leave no holes.
    holes = 0
    for number in np.unique(truth.number[truth.lost & (truth.transmission == 1)]):
        filled_s = np.nanmin(truth.arrived_s[(truth.number == number) & ~truth.lost])
        later = truth.arrived_s[(truth.number > number) & ~truth.lost]
        holes += bool((later < filled_s).any())
    measurement = reading(captures.unnumbered(truth.mobile, random.Random(seed)))
    # Windows lost without one, before a timeout, are as many packets as acknowledgements had let go.
    assert holes <= int(down(measurement).lost.sum()) <= int(truth.lost.sum())
    assert any("holes in sequence space" in note for note in measurement.notes)


def test_linux_does_not_number_the_syn_ack(faded: Transfer, reading: Reading) -> None:
    # The identification of a SYN-ACK is zero; that of the socket is random.
    packets = []
    for packet in captures.read_back(faded.mobile):
        number = (int.from_bytes(packet.data[4:6], "big") + 40_000) & 0xFFFF
        number = 0 if packet.data[33] & 2 else number
        data = packet.data[:4] + number.to_bytes(2, "big") + packet.data[6:]
        packets.append(Packet(packet.time_ns, data, packet.wire))
    measurement = reading(captures.written(packets))
    assert any("IP identifications" in note for note in measurement.notes)
    assert down(measurement).lost.tolist() == faded.lost.tolist()


def test_times_of_losses_at_the_receiver(faded: Transfer, reading: Reading) -> None:
    # Between the arrivals of the packets sent before and after.
    order = np.argsort(faded.sent_s, kind="stable")
    arrived = faded.arrived_s[order]
    known = np.flatnonzero(~np.isnan(arrived))
    expected = np.interp(np.flatnonzero(np.isnan(arrived)), known, arrived[known]) - np.nanmin(arrived)
    found = np.array(lost_s(down(reading(faded.mobile))))
    # The clock begins with the SYN.
    shift = found[0] - expected[0]
    assert found - shift == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("sender", ["linux", "linux-bbr", "freebsd", "newreno"])
def test_losses_before_a_pause_have_the_times_of_the_sender(
    sender: str, tmp_path: Path, reading: Reading
) -> None:
    """Losses in fades which end a window: the timers of these senders differ."""
    text = scenario(sender, "fades").replace("600 KB", "12 MB")
    truth = captures.transfer(text, tmp_path, 2)
    probes = down(reading(truth.mobile))
    assert probes.lost.tolist() == truth.lost.tolist()
    due_s = truth.due_s + (probes.sent_s - truth.due_s)[~probes.lost][0]
    assert probes.sent_s[~probes.lost] == pytest.approx(due_s[~probes.lost], abs=1e-6)
    late_s = np.abs(probes.sent_s - due_s)[probes.lost]
    # Spread evenly over the pauses, a tenth of them would be off by 0.2 to 0.8 s.
    assert np.quantile(late_s, 0.8) < 0.01
    # A round-trip time.
    assert np.quantile(late_s, 0.95) < 0.052


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_fit_to_losses_before_pauses_has_the_fades(seed: int, tmp_path: Path, reading: Reading) -> None:
    """Bad periods of 100 ms. One interval of 95 % in 20 may miss them; of these four, none does."""
    text = scenario("linux", "fades").replace("600 KB", "15 MB")
    fades = 'channel.gilbert-elliott = {good = "1 s", bad = "100 ms"}'
    truth = captures.transfer(text.replace(CHANNELS["fades"], fades), tmp_path, seed)
    bad = fit_losses(down(reading(truth.mobile)), replicates=100).parameter("bad_s")
    assert bad is not None
    assert bad.low < 0.1 < bad.high < 0.3


def before_a_pause(pause_ms: float, count: int, *, beyond: bool = False, rfc: bool = False) -> list[float]:
    """Return when `count` packets are placed that are missing before a pause, in milliseconds.

    Before it, ten packets arrive from 100 to 118 ms, are acknowledged immediately, and take 50 ms.
    """
    time_s = np.append(np.arange(100, 120, 2), 118 + pause_ms) / 1e3
    # The sender of the packet after the pause has all acknowledgements.
    heard_s = np.append(time_s[:-1] - 0.05, time_s[9])
    holes = np.append(np.zeros(10, dtype=bool), beyond)
    clock = Clock(time_s, time_s, heard_s, holes, 0.05, 0.002, rfc, np.zeros(0))
    lost_s = np.linspace(0.118, time_s[-1], count + 2)[1:-1]
    clock.retime(lost_s, [Gap(0.118, float(time_s[-1]), 9, 10, count)])
    return [round(1e3 * each, 3) for each in lost_s.tolist()]


class TestPauses:
    # Each acknowledgement lets a packet go, which would have arrived 50 ms later.
    flight = (*range(150, 170, 2),)

    def test_packets_follow_the_acknowledgements(self) -> None:
        # The timeout of 250 ms ended the pause.
        assert before_a_pause(300, 10) == [*self.flight]
        assert before_a_pause(300, 3) == [152, 160, 166]
        # In slow start each lets two go, one behind the other; the rest are of the burst before them.
        assert before_a_pause(300, 25) == [120, 122, 124, 126, 128, *range(150, 190, 2)]

    def test_timers_double(self) -> None:
        # A tail loss probe after two round-trip times, and the timeout 250 ms after it.
        assert before_a_pause(150, 10, beyond=True) == [*self.flight]
        assert before_a_pause(400, 11) == [*self.flight, 268]
        assert before_a_pause(900, 12) == [*self.flight, 268, 518]
        # Timeouts without a probe.
        assert before_a_pause(800, 11) == [*self.flight, 418]
        assert before_a_pause(1800, 12) == [*self.flight, 418, 918]
        # RFC 6298 has a minimum of one second.
        assert before_a_pause(3050, 11, rfc=True) == [*self.flight, 1168]

    def test_an_idle_sender_sent_shortly_before_the_next_arrival(self) -> None:
        assert before_a_pause(5000, 3, beyond=True) == [5112, 5114, 5116]
        # Two packets missing cannot be four timeouts.
        assert before_a_pause(9000, 2) == [9114, 9116]

    def test_without_a_pause_packets_are_evenly_spread(self) -> None:
        assert before_a_pause(22, 10, beyond=True) == list(range(120, 140, 2))
        assert before_a_pause(33, 10, beyond=True) == list(range(121, 151, 3))

    def test_times_are_in_order_and_within_the_gap(self) -> None:
        dice = np.random.default_rng(8)
        for _ in range(500):
            size = int(dice.integers(2, 40))
            time_s = np.cumsum(dice.exponential(dice.choice([0.001, 0.1]), size))
            ack_s = np.where(dice.random(size) < 0.1, np.inf, time_s + dice.exponential(0.02, size))
            heard_s = np.where(dice.random(size) < 0.1, -np.inf, time_s + dice.normal(-0.05, 0.1, size))
            beyond, rfc = dice.random(size) < 0.5, bool(dice.random() < 0.5)
            clock = Clock(time_s, ack_s, heard_s, beyond, 0.03, dice.exponential(0.001), rfc, ack_s[::3])
            at = np.flatnonzero(dice.random(size - 1) < 0.5)
            gaps = [
                Gap(float(time_s[k]), float(time_s[k + 1]), k, k + 1, int(dice.integers(1, 60)))
                for k in at.tolist()
            ]
            lost_s = np.concatenate(
                [np.zeros(0), *(np.linspace(gap[0], gap[1], gap.missing + 2)[1:-1] for gap in gaps)]
            )
            clock.retime(lost_s, gaps)
            every_s = np.concatenate([time_s, lost_s])
            assert len(np.unique(every_s)) == len(every_s)
            for gap in gaps:
                found_s, lost_s = lost_s[: gap.missing], lost_s[gap.missing :]
                assert gap.begin_s < found_s[0]
                assert found_s[-1] < gap.end_s
                assert (np.diff(found_s) > 0).all()


def test_round_trip_times_and_rates(faded: Transfer, reading: Reading) -> None:
    for capture in (faded.source, faded.mobile):
        measurement = reading(capture)
        # 50 ms of propagation and the transmission of the last, short segment and its acknowledgement.
        assert measurement.delays[0].delay_s.min() == pytest.approx(0.0506, abs=2e-4)
        rates = measurement.rates[0]
        carried = float((rates.rate_bps * rates.interval_s).sum())
        assert carried == pytest.approx(600_000 * 8 * 1500 / 1448, rel=0.03)
        assert rates.saturated
        assert measurement.probes[0].size_bytes == 1500


def bursts(every_s: float, *, held_s: float = 0.0) -> bytes:
    """Return a download at its client, 40 ms from the server, in bursts of ten packets every so often.

    The link holds the packets of each half second back for a time.
    """
    one = captures.segment
    packets = [
        one(0.0, 999, 0, flags=2, stamps=(5000, 0)),
        one(0.04, 4999, 1000, flags=18, from_client=False, stamps=(1000, 5000)),
        one(0.0401, 1000, 5000, stamps=(5040, 1000)),
    ]
    acks_s = [0.0401]
    arrived_s = 0.0
    for number in range(400):
        sent_s = 0.1 + number // 10 * every_s + number % 10 * 0.001
        held = max(held_s - sent_s % 0.5, 0.0)
        arrived_s = max(sent_s + 0.02 + held, arrived_s + 1e-4)
        heard_s = max(ack_s for ack_s in acks_s if ack_s + 0.02 <= sent_s)
        stamps = round(1000 * sent_s) + 1000, round(1000 * heard_s) + 5000
        seq = 5000 + 1448 * number
        packets.append(one(arrived_s, seq, 1000, 1448, from_client=False, stamps=stamps))
        acks_s.append(arrived_s + 1e-5)
        stamps = round(1000 * acks_s[-1]) + 5000, stamps[0]
        packets.append(one(acks_s[-1], 1000, seq + 1448, stamps=stamps))
    return captures.written(packets)


@pytest.mark.parametrize(
    ("every_s", "held_s", "saturated"), [(0.12, 0.0, False), (0.03, 0.0, True), (0.01, 0.15, True)]
)
def test_a_sender_that_is_often_idle_does_not_fill_the_link(
    every_s: float, held_s: float, saturated: bool, reading: Reading
) -> None:
    """As of a video call; what the link holds back was on its way."""
    (rates,) = reading(bursts(every_s, held_s=held_s), user="client").rates
    assert rates.saturated == saturated


def test_the_place_of_the_capture(faded: Transfer, reading: Reading) -> None:
    assert "taken at the client" in reading(faded.source).notes[0]
    assert "taken at the server" in reading(faded.mobile).notes[0]
    # If the client is the user, its data go up: lost behind its own capture.
    assert reading(faded.source, user="client").probes[0].direction is Direction.UP
    forced = reading(faded.source, captured="server")
    # At the receiver there would be no holes.
    assert not down(forced).lost.any()
    assert "as stated" in forced.notes[0]


@pytest.mark.parametrize("link", [0, 1, 100, 113, 276, 6])
def test_link_types(link: int, faded: Transfer, reading: Reading) -> None:
    packets = captures.read_back(faded.mobile)
    probes = down(reading(captures.framed(packets, link)))
    plain = down(reading(captures.unnumbered(faded.mobile, random.Random(1)) if link == 6 else faded.mobile))
    assert lost_s(probes) == lost_s(plain)
    assert probes.size_bytes == (1528 if link == 6 else 1500)


def test_super_packets_are_split(faded: Transfer, tmp_path: Path, reading: Reading) -> None:
    path = tmp_path / "run.pcapng"
    path.write_bytes(faded.source)
    packets = captures.joined(captures.packets_of(path))
    assert len(packets) < len(captures.packets_of(path))
    measurement = reading(captures.written(packets))
    assert lost_s(down(measurement)) == lost_s(down(reading(faded.source)))
    assert any("super-packets" in note for note in measurement.notes)


def test_packets_that_the_capture_missed_are_no_losses(faded: Transfer, reading: Reading) -> None:
    dice = random.Random(4)
    packets = captures.read_back(faded.mobile)
    kept = [packet for packet in packets if packet.wire < 1000 or dice.random() > 0.03]
    assert len(kept) < len(packets)
    measurement = reading(captures.written(kept))
    # A loss next to a packet missing from the capture may go unnoticed.
    assert abs(int(down(measurement).lost.sum()) - int(faded.lost.sum())) <= 3
    assert any("missing from the capture" in note for note in measurement.notes)


def test_statistics_of_the_capture(faded: Transfer, reading: Reading) -> None:
    measurement = reading(captures.pcapng(captures.read_back(faded.mobile), dropped=7))
    assert int(down(measurement).lost.sum()) == int(faded.lost.sum())
    assert "The capture dropped 7 packets, according to its statistics." in measurement.notes


def test_a_cut_capture_is_read_as_far_as_it_goes(faded: Transfer, reading: Reading) -> None:
    for capture in (faded.source, faded.mobile):
        measurement = reading(capture[: len(capture) // 2 + 7])
        assert 0 < measurement.duration_s < 0.9 * reading(capture).duration_s
        assert any("truncated or damaged" in note for note in measurement.notes)
        whole = [time_s for time_s in lost_s(down(reading(capture))) if time_s < measurement.duration_s - 0.3]
        assert lost_s(down(measurement))[: len(whole)] == pytest.approx(whole)


def test_the_same_packets_on_two_interfaces_count_once(faded: Transfer, reading: Reading) -> None:
    packets = captures.read_back(captures.framed(captures.read_back(faded.mobile), 276))
    other = [Packet(p.time_ns + 5000, p.data[:7] + b"\x03" + p.data[8:], p.wire) for p in packets]
    measurement = reading(captures.written([*packets, *other], 276))
    assert lost_s(down(measurement)) == lost_s(down(reading(faded.mobile)))
    assert any("several interfaces" in note for note in measurement.notes)


@pytest.mark.parametrize("sender", ["linux", "newreno"])
@pytest.mark.parametrize("numbered", [True, False])
def test_packets_out_of_order_are_not_lost(
    sender: str, numbered: bool, tmp_path: Path, reading: Reading
) -> None:
    truth = captures.transfer(scenario(sender, "single"), tmp_path, 1)
    capture = truth.mobile if numbered else captures.unnumbered(truth.mobile, random.Random(1))
    dice = random.Random(7)
    # One packet in twenty is delayed by 15 ms and arrives after its successors.
    packets = [
        Packet(
            packet.time_ns + dice.choice((0,) * 19 + (15_000_000,)) * (packet.wire > 1000),
            packet.data,
            packet.wire,
        )
        for packet in captures.read_back(capture)
    ]
    measurement = reading(captures.written(packets))
    assert int(down(measurement).lost.sum()) == int(truth.lost.sum())
    assert any("reordered packets, not lost" in note for note in measurement.notes)


@pytest.mark.parametrize("later_us", [90, 700, 3000])
@pytest.mark.parametrize("link", [1, 6])
def test_a_mirrored_port_has_each_packet_twice(
    link: int, later_us: int, faded: Transfer, reading: Reading
) -> None:
    """IPv6 has no identification, by which copies are told from retransmissions."""
    for capture in (faded.mobile, faded.source_pcap):
        packets = captures.read_back(capture)
        copies = [captures.edited(packet, 0, b"", later_ns=later_us * 1000) for packet in packets]
        once, twice = (
            reading(captures.framed(sorted(rows, key=lambda packet: packet.time_ns), link))
            for rows in (packets, [*packets, *copies])
        )
        assert lost_s(down(twice)) == pytest.approx(lost_s(down(once)))
        assert len(down(twice).lost) == len(down(once).lost)
        assert any("has them twice" in note for note in twice.notes)


@pytest.mark.parametrize("rtt_ms", [0.7, 2])
def test_a_retransmission_over_a_short_path_is_no_copy(rtt_ms: float, reading: Reading) -> None:
    """Neither has an identification, and both follow within milliseconds."""
    one = captures.segment
    rtt_s = rtt_ms / 1e3
    packets = [one(0.0, 999, 0, flags=2), one(rtt_s, 4999, 1000, flags=18, from_client=False)]
    packets += [one(rtt_s + 1e-5, 1000, 5000)]
    lost = range(20, 400, 20)
    for number in range(400):
        sent_s, seq = 0.01 + number * 4 * rtt_s, 1000 + 1460 * number
        again = [one(sent_s + 1.01 * rtt_s, seq, 5000, 1460)] if number in lost else []
        acked_s = sent_s + (2.1 * rtt_s if again else rtt_s)
        ack = one(acked_s, 5000, seq + 1460, from_client=False)
        packets += [one(sent_s, seq, 5000, 1460), *again, ack]
    (probes,) = reading(captures.written(packets), user="client").probes
    assert int(probes.lost.sum()) == len(lost)


def test_identifications_that_count_other_packets_too_are_not_used(faded: Transfer, reading: Reading) -> None:
    # As from a host with one counter for all connections: numbers increase while this connection is idle.
    packets, skipped, last_ns = [], 0, 0
    for packet in captures.read_back(faded.mobile):
        if packet.wire > 1000:
            skipped += 300 if packet.time_ns - last_ns > 20_000_000 else 0
            last_ns = packet.time_ns
            number = (int.from_bytes(packet.data[4:6], "big") + skipped) & 0xFFFF
            packet = Packet(
                packet.time_ns, packet.data[:4] + number.to_bytes(2, "big") + packet.data[6:], 1512
            )
        packets.append(packet)
    assert skipped > 0
    measurement = reading(captures.written(packets))
    assert int(down(measurement).lost.sum()) == int(faded.lost.sum())
    assert any("holes in sequence space" in note for note in measurement.notes)


@pytest.mark.parametrize("share", [0.005, 0.05, 0.5])
def test_numbers_used_by_connections_that_are_not_captured_are_no_losses(
    share: float, faded: Transfer, reading: Reading
) -> None:
    """As of a browser: other connections of the server use some numbers, which the capture lacks."""
    dice, skipped, packets = random.Random(11), 0, []
    for packet in captures.read_back(faded.mobile):
        if packet.wire > 1000:
            skipped += dice.randrange(1, 4) if dice.random() < share else 0
            packet = captures.numbered(packet, captures.identification(packet) + skipped)
        packets.append(packet)
    measurement = reading(captures.written(packets))
    # A few that coincide with retransmissions are not told from these.
    few = 2 if share < 0.01 else 0
    assert abs(int(down(measurement).lost.sum()) - int(faded.lost.sum())) <= few
    if not few:
        said = ("count packets of other connections too", "holes in sequence space")
        assert any(any(part in note for part in said) for note in measurement.notes)


@pytest.mark.parametrize("pause_s", [0.0, 3.0, 40.0, 3600.0])
def test_a_pause_that_may_be_a_step_of_the_clock_is_noted(pause_s: float, reading: Reading) -> None:
    """Without timestamps of TCP nothing tells a clock that was set forward from idle time."""
    packets = [captures.segment(0.0, 999, 0, flags=2), captures.segment(0.04, 4999, 1000, from_client=False)]
    for place in range(300):
        at_s = 0.1 + place * 0.01 + pause_s * (place >= 150)
        packets.append(captures.segment(at_s, 5000 + 1000 * place, 1000, 1000, from_client=False))
        packets.append(captures.segment(at_s + 0.001, 1000, 6000 + 1000 * place))
    notes = [note for note in reading(captures.written(packets)).notes if "Nothing was captured" in note]
    assert len(notes) == (1 if pause_s > 10 else 0)
    assert all("or a clock that was set forward" in note for note in notes)


@pytest.mark.parametrize("burst", [1, 4])
@pytest.mark.parametrize("idle_s", [0.5, 12.4])
def test_numbers_used_while_a_sender_was_idle_are_no_losses(
    burst: int, idle_s: float, reading: Reading
) -> None:
    """As of Windows, whose counter is that of all connections: answers in bursts, or of one packet each."""
    one = captures.segment
    packets = [
        one(0.0, 999, 0, flags=2),
        one(0.04, 4999, 1000, flags=18, from_client=False),
        one(0.0401, 1000, 5000),
    ]
    asked, seq, now, number = 1000, 5000, 0.05, 700
    for request in range(12):
        packets.append(one(now, asked, seq, 200))
        asked, now = asked + 200, now + 0.041
        for _ in range(burst if request % 2 else 30):
            segment = one(now, seq, asked, 1460 if request % 2 == 0 else 300, from_client=False)
            packets.append(captures.numbered(segment, number))
            seq, number, now = seq + (1460 if request % 2 == 0 else 300), number + 1, now + 1e-5
        packets.append(one(now + 1e-4, asked, seq))
        number, now = number + (7 if request == 6 else 0), now + idle_s
    lost = down(reading(captures.written(packets), user="client")).lost
    assert (int(lost.sum()), len(lost)) == (0, 6 * 30 + 6 * burst)


@pytest.mark.parametrize("late_ms", [0.05, 3, 40])
def test_connections_that_share_a_counter_have_their_own_losses(
    late_ms: float, faded: Transfer, reading: Reading
) -> None:
    one, other = [], []
    for packet in captures.read_back(faded.mobile):
        number = 2 * captures.identification(packet)
        outward = packet.data[12:16] == captures.read_back(faded.mobile)[0].data[12:16]
        one.append(captures.numbered(packet, number))
        port = (40001).to_bytes(2, "big")
        twin = captures.edited(packet, 20 if outward else 22, port, later_ns=round(late_ms * 1e6))
        # Another initial sequence number.
        for at in (24, 28):
            seq = int.from_bytes(twin.data[at : at + 4], "big") + (0x1234567 if (at == 24) == outward else 0)
            twin = captures.edited(twin, at, (seq & 0xFFFFFFFF).to_bytes(4, "big"))
        other.append(captures.numbered(twin, number + 1))
    measurement = reading(captures.written([*one, *other]))
    probes = down(measurement)
    assert int(probes.lost.sum()) == 2 * int(faded.lost.sum())
    assert len(probes.lost) == 2 * len(faded.lost)


@pytest.mark.parametrize("acks", [True, False])
@pytest.mark.parametrize("kept", [0.1, 0.3])
def test_a_capture_that_lacks_most_packets_has_no_losses(
    kept: float, acks: bool, faded: Transfer, reading: Reading
) -> None:
    dice, last_ns, keep, packets = random.Random(12), 0, True, []
    for packet in captures.read_back(faded.mobile):
        if packet.time_ns - last_ns > 5_000_000:
            keep = dice.random() < kept
        last_ns = packet.time_ns
        if keep if packet.wire > 1000 else acks:
            packets.append(packet)
    with pytest.raises(MeasurementError, match="the capture misses most of its packets"):
        reading(captures.written(packets))


@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize("later_us", [0, 40, 2000])
def test_both_sides_of_a_nat_are_one_path(
    later_us: int, renumbered: bool, faded: Transfer, reading: Reading
) -> None:
    """Also if the NAT numbers packets anew, or drops the numbers, as that of 464XLAT does."""
    packets = captures.read_back(faded.mobile)
    client = packets[0].data[12:16]
    behind: list[Packet] = []
    for packet in packets:
        outward = packet.data[12:16] == client
        copy = captures.edited(packet, 12 if outward else 16, b"\xcb\0\x71\7", later_ns=later_us * 1000)
        copy = captures.numbered(copy, len(behind) + 1) if renumbered else copy
        behind.append(captures.edited(copy, 20 if outward else 22, (61_000).to_bytes(2, "big")))
    plain, both = reading(captures.written(packets)), reading(captures.written([*packets, *behind]))
    assert lost_s(down(both)) == pytest.approx(lost_s(down(plain)), abs=0.003)
    assert len(down(both).lost) == len(down(plain).lost)
    assert both.rates[0].rate_bps.sum() == pytest.approx(plain.rates[0].rate_bps.sum(), rel=0.01)
    assert any("the other side of a NAT" in note for note in both.notes)


def test_data_in_a_syn_follow_its_number(reading: Reading) -> None:
    """As of TCP Fast Open: the SYN itself takes a sequence number (RFC 7413)."""
    one = captures.segment
    packets = [
        one(0.0, 999, 0, 1000, flags=2),
        one(0.02, 4999, 2000, flags=18, from_client=False),
        one(0.0201, 2000, 5000),
    ]
    for number in range(100):
        sent_s, seq = 0.03 + number * 0.001, 2000 + 1460 * number
        packets += [one(sent_s, seq, 5000, 1460), one(sent_s + 0.02, 5000, seq + 1460, from_client=False)]
    for place in ("client", "server"):
        measurement = reading(captures.written(packets), user="client", captured=place)
        (probes,) = measurement.probes
        assert not probes.lost.any()
        assert len(probes.lost) == 101
        assert not any("missing from the capture" in note for note in measurement.notes)


def probing(*, keep_alive: bool, accepted: bool = True) -> list[Packet]:
    """Return a lossless upload captured at its sender, the client, with probes of one byte in a pause."""
    one = captures.segment
    packets = [
        one(0.0, 999, 0, flags=2),
        one(0.04, 4999, 1000, flags=18, from_client=False),
        one(0.0401, 1000, 5000),
    ]
    seq, now = 1000, 0.05
    for flight in range(30):
        packets += [one(now, seq, 5000, 1460), one(now + 0.001, seq + 1460, 5000, 1460)]
        seq += 2920
        paused = flight == 15
        window = 0 if paused and not keep_alive else 8192
        packets.append(one(now + 0.041, 5000, seq, window=window, from_client=False))
        now += 0.05
        for probe in range(8 if paused else 0):
            now += 0.2 * 2**probe
            packets.append(one(now, seq - 1 if keep_alive else seq, 5000, 1))
            opened = accepted and probe == 7 and not keep_alive
            seq += opened
            answer = 8192 if keep_alive or opened else 0
            packets.append(one(now + 0.04, 5000, seq, window=answer, from_client=False))
        now += 0.05 if paused else 0
    return packets


@pytest.mark.parametrize(("keep_alive", "accepted"), [(True, False), (False, False), (False, True)])
def test_probes_of_windows_and_keep_alives_are_no_data(
    keep_alive: bool, accepted: bool, reading: Reading
) -> None:
    packets = probing(keep_alive=keep_alive, accepted=accepted)
    if not keep_alive and not accepted:
        # The receiver opens its window by itself.
        packets.append(captures.segment(packets[-1].time_ns / 1e9, 5000, 1, from_client=False))
    for capture in (captures.written(packets), captures.framed(packets, 1)):
        measurement = reading(capture, user="client")
        (probes,) = measurement.probes
        assert not probes.lost.any()
        assert len(probes.lost) == 60 + (accepted and not keep_alive)
        count = 8 - (accepted and not keep_alive)
        assert any(f"{count} probes of a closed window" in note for note in measurement.notes)


@pytest.mark.parametrize(
    ("size", "missing", "again", "lost"),
    [
        # One packet of full size comes again in seven pieces, and in three of different sizes.
        (1400, 1400, [200] * 7, 1),
        (1400, 1400, [700, 600, 100], 1),
        # Three of full size in five; seven small ones, as they were.
        (1400, 4200, [840] * 5, 3),
        (200, 1400, [200] * 7, 7),
    ],
)
def test_retransmissions_that_are_cut_differently_are_as_many_as_were_lost(
    size: int, missing: int, again: list[int], lost: int, reading: Reading
) -> None:
    def sent(time_s: float, seq: int, length: int) -> captures.Packet:
        return captures.segment(time_s, seq, 1, length, from_client=False)

    # The packets around the gap, and new data beside the retransmissions.
    starts = [1 + number * size for number in range(20)]
    starts += [starts[-1] + size + missing + number * size for number in range(20)]
    packets = [sent(0.01 * number, seq, size) for number, seq in enumerate(starts)]
    first = starts[19] + size
    for number, length in enumerate(again):
        packets.append(sent(0.305 + 0.001 * number, first, length))
        first += length
    (probes,) = reading(captures.written(packets), user="client").probes
    assert int(probes.lost.sum()) == lost


def test_keep_alives_between_losses_shift_none(faded: Transfer, reading: Reading) -> None:
    """Their numbers are the connection's, but they are no data."""
    packets: list[Packet] = []
    sent: list[Packet] = []
    probes = 0
    for packet in captures.read_back(faded.mobile):
        if captures.payload(packet) == 0:
            packets.append(packet)
            continue
        sent.append(packet)
        number = captures.identification(packet) + probes
        packets.append(captures.numbered(packet, number))
        if 50 <= len(sent) < 60:
            length = packet.wire - captures.payload(packet) + 1
            early = captures.edited(packet, 24, sent[0].data[24:28], later_ns=1000)
            probe = captures.edited(early, 2, length.to_bytes(2, "big"))
            probes += 1
            packets.append(captures.numbered(Packet(probe.time_ns, probe.data, length), number + 1))
    measurement = reading(captures.written(packets))
    assert any("10 probes of a closed window" in note for note in measurement.notes)
    assert any("gaps in the IP identifications" in note for note in measurement.notes)
    found = down(measurement)
    assert (int(found.lost.sum()), len(found.lost)) == (int(faded.lost.sum()), len(faded.lost))
    assert lost_s(found) == pytest.approx(lost_s(down(reading(faded.mobile))), abs=1e-6)


@pytest.mark.parametrize("step_s", [-3600.0, -2.0, -0.2, 2.0, 3600.0])
@pytest.mark.parametrize("sender", ["linux", "newreno"])
def test_a_clock_that_was_set_is_taken_out(
    sender: str, step_s: float, tmp_path: Path, reading: Reading
) -> None:
    truth = captures.transfer(scenario(sender, "bursts"), tmp_path, 3)
    packets = [
        Packet(packet.time_ns + 3600 * captures.SECOND, packet.data, packet.wire)
        for packet in captures.read_back(truth.mobile)
    ]
    plain = reading(captures.written(packets))
    middle = len(packets) // 2
    moved = [
        Packet(packet.time_ns + round(step_s * 1e9) * (place > middle), packet.data, packet.wire)
        for place, packet in enumerate(packets)
    ]
    # In the order of the file, not of the times.
    measurement = reading(captures.written(moved, ordered=False))
    if step_s > 0 and sender == "newreno":
        # Without timestamps a step forward is like idle time.
        assert not any(note.startswith("The clock") for note in measurement.notes)
        paused = any(note.startswith("Nothing was captured for") for note in measurement.notes)
        assert paused is (step_s > 10)
        return
    way = "forward" if step_s > 0 else "back"
    assert any(f"The clock of the capture was set {way} by" in note for note in measurement.notes)
    assert measurement.duration_s == pytest.approx(plain.duration_s, abs=0.05)
    assert int(down(measurement).lost.sum()) == int(down(plain).lost.sum())


def test_the_place_without_handshake_and_timestamps(tmp_path: Path, reading: Reading) -> None:
    truth = captures.transfer(scenario("newreno", "bursts"), tmp_path, 2)
    for capture, place in ((truth.source_pcap, "client"), (truth.mobile, "server")):
        packets = captures.read_back(capture)[3:]
        # Without the handshake the larger port is the client's, which is the source's.
        measurement = reading(captures.written(packets))
        assert f"assumed at the {place}, by the delay" in measurement.notes[0]
        assert measurement.probes[0].direction is Direction.DOWN


def test_rtp_has_sequence_numbers(reading: Reading) -> None:
    lost = {30, 31, 65}
    numbers = [number for number in range(65_500, 65_700) if number - 65_500 not in lost]
    # Two packets out of order.
    numbers[10], numbers[11] = numbers[11], numbers[10]
    measurement = reading(captures.datagrams(numbers, captures.rtp))
    assert np.flatnonzero(measurement.probes[0].lost).tolist() == sorted(lost)
    assert measurement.probes[0].size_bytes == 200


def call(lost: dict[bool, set[int]]) -> bytes:
    """Return a capture of an RTP stream in each direction, by whether it is of the first sender."""
    packets = []
    for is_first, gone in lost.items():
        numbers = [number for number in range(200) if number not in gone]
        for number, packet in zip(
            numbers, captures.read_back(captures.datagrams(numbers, captures.rtp)), strict=True
        ):
            data = packet.data
            if not is_first:
                data = data[:12] + data[16:20] + data[12:16] + data[22:24] + data[20:22] + data[24:]
            packets.append(Packet(number * 20_000_000 + (not is_first) * 1_000_000, data, packet.wire))
    return captures.written(packets)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("answered", [True, False])
def test_a_call_with_losses_goes_towards_the_capture(
    is_first: bool, answered: bool, reading: Reading
) -> None:
    """Whoever sent the first packet: losses upstream of the capture show in what arrives there."""
    capture = call({is_first: {30, 31, 65}} | ({not is_first: set()} if answered else {}))
    for captured, direction in ((None, Direction.DOWN), ("client", Direction.DOWN), ("server", Direction.UP)):
        measurement = reading(capture, user="client", captured=captured)
        lossy = [probes for probes in measurement.probes if probes.lost.any()]
        assert [probes.direction for probes in lossy] == [direction]
        assert len({probes.direction for probes in measurement.probes}) == 1 + answered
        assumed = any("assumed to be on the user's side; `captured=`" in note for note in measurement.notes)
        assert assumed == (captured is None)


@pytest.mark.parametrize("lost", [{30, 31}, set()])
def test_without_evidence_the_client_sent_the_first_packet(lost: set[int], reading: Reading) -> None:
    """Both directions have losses, or neither."""
    measurement = reading(call({True: lost, False: lost}), user="client")
    assert [probes.direction for probes in measurement.probes] == [Direction.UP, Direction.DOWN]
    assert all("sent the first packet is assumed to be the client; `--user" in n for n in measurement.notes)


@pytest.mark.parametrize("later_ms", [0.1, 30])
def test_copies_of_a_call_are_left_out(later_ms: float, reading: Reading) -> None:
    packets = captures.read_back(call({True: {30, 31, 65}}))
    copies = [captures.edited(packet, 0, b"", later_ns=round(later_ms * 1e6)) for packet in packets]
    (probes,) = reading(captures.written([*packets, *copies])).probes
    assert np.flatnonzero(probes.lost).tolist() == [30, 31, 65]


def test_an_outage_of_a_call_is_a_loss(reading: Reading) -> None:
    numbers = [number for number in range(3000) if not 1000 <= number < 1800]
    packets = captures.read_back(captures.datagrams(numbers, captures.rtp))
    timed = [
        Packet(number * 20_000_000, packet.data, packet.wire)
        for number, packet in zip(numbers, packets, strict=True)
    ]
    assert int(reading(captures.written(timed)).probes[0].lost.sum()) == 800
    # Without the time that the packets would have taken, the numbering was reset.
    with pytest.raises(MeasurementError, match="such as QUIC or a tunnel"):
        reading(captures.written(packets))


def test_what_cannot_be_read_has_a_remedy(reading: Reading, faded: Transfer) -> None:
    dice = random.Random(5)
    with pytest.raises(MeasurementError, match=r"such as QUIC.*irtt client"):
        reading(captures.datagrams(list(range(100)), lambda _: dice.randbytes(60)))
    with pytest.raises(MeasurementError, match="not of the link type that the file states; capture with"):
        reading(captures.written(captures.read_back(faded.mobile), 127))
    with pytest.raises(MeasurementError, match="unsupported link type 147"):
        reading(captures.written(captures.read_back(faded.mobile), 147))
    with pytest.raises(MeasurementError, match="the capture has no packets"):
        reading(captures.written([]))
    with pytest.raises(MeasurementError, match="10 data packets"):
        reading(captures.written(captures.read_back(faded.mobile)[:8]))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_as_many_retransmissions(faded: Transfer, tmp_path: Path, reading: Reading) -> None:
    path = tmp_path / "run.pcapng"
    path.write_bytes(faded.source)
    again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order"
    shown = subprocess.run(
        ["tshark", "-r", str(path), "-Y", f"({again}) && tcp.len > 0"],
        capture_output=True,
        text=True,
        check=True,
    )
    lost = int(down(reading(faded.source)).lost.sum())
    assert len(shown.stdout.splitlines()) == lost > 5


def test_damaged_captures_raise_nothing_else(faded: Transfer, tmp_path: Path) -> None:
    dice = random.Random(6)
    path = tmp_path / "damaged"
    packets = captures.read_back(faded.mobile)[:120]
    files = [
        captures.written(packets),
        captures.pcapng(packets, 3),
        faded.source[:20_000],
        captures.framed(packets, 100),
        captures.framed(packets, 6),
        captures.framed(packets, 276),
        captures.datagrams(list(range(60)), captures.rtp),
    ]
    read_well = refused = 0
    for file in files:
        for attempt in range(150):
            damaged = mutated(file, dice)
            if attempt % 10 == 0:
                damaged = mutated(gzip.compress(damaged), dice)
            path.write_bytes(damaged)
            try:
                measurement = read(path, user=dice.choice(("client", "server")))
                assert measurement.summary()
                read_well += 1
            except MeasurementError:
                refused += 1
    assert read_well > 300
    assert refused > 50
