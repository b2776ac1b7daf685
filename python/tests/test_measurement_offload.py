"""Captures of super-packets without a handshake, and with headers cut off, against the simulator's truth."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import measurement_captures as captures
import numpy as np
import pytest
from measurement_captures import Packet, Transfer

from lasthop.measurement import Measurement, MeasurementError, read
from lasthop.measurement.tcp.segments import segments

NETWORK = """
sender = "linux"
tcp.packet_size = "{size} B"
[transfer]
size = "600 KB"
[wired]
rate = "100 Mbps"
delay = "10 ms"
[radio]
rate = "20 Mbps"
delay = "15 ms"
channel.gilbert = {{loss=0.04, burst=3}}
"""


@pytest.fixture(scope="module", params=[1500, 1400, 700])
def faded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Transfer:
    return captures.transfer(NETWORK.format(size=request.param), tmp_path_factory.mktemp("transfer"), seed=2)


@pytest.fixture
def reading(tmp_path: Path) -> Callable[[list[Packet], int], Measurement]:
    def written(packets: list[Packet], link: int = captures.RAW) -> Measurement:
        path = tmp_path / "captured"
        path.write_bytes(captures.written(packets, link))
        return read(path, user="server")

    return written


def _numbered(packets: list[Packet], how: str) -> list[Packet]:
    if how == "own":
        return packets
    dice = random.Random(1)
    return [
        captures.numbered(packet, dice.randrange(1 << 16) if how == "random" else 0) for packet in packets
    ]


@pytest.mark.parametrize("numbers", ["own", "zero", "random"])
@pytest.mark.parametrize("end", ["source", "mobile"])
def test_super_packets_without_a_handshake_are_split(
    end: str, numbers: str, faded: Transfer, reading: Callable[..., Measurement]
) -> None:
    capture = captures.read_back(faded.source_pcap if end == "source" else faded.mobile)
    # The capture begins behind the handshake, without a packet of data.
    begun = [packet for packet in capture if not packet.data[33] & 2]
    packets = _numbered(captures.joined(begun, within_ns=0 if end == "source" else 5_000_000), numbers)
    assert len(packets) < 0.9 * len(begun)
    measurement = reading(packets)
    (probes,) = measurement.probes
    assert int(probes.lost.sum()) == pytest.approx(int(faded.lost.sum()), abs=2)
    assert len(probes.lost) == pytest.approx(len(faded.lost), rel=0.02)
    whole = reading(_numbered(begun, numbers))
    carried = [float(one.rates[0].rate_bps @ one.rates[0].interval_s) for one in (measurement, whole)]
    assert carried[0] == pytest.approx(carried[1], rel=0.02)
    assert any("super-packets" in note and " B, by their" in note for note in measurement.notes)
    assert not measurement.doubts


def test_segments_of_super_packets() -> None:
    dice = np.random.default_rng(1)

    def found(sizes: list[int], step: int | None, announced: int = 0) -> tuple[int, bool]:
        size = np.array(sizes)
        seq = np.concatenate(([0], np.cumsum(size[:-1])))
        number = np.full(len(size), -1)
        if step is not None:
            number = np.concatenate(([0], np.cumsum(-(-size[:-1] // step)))) & 0xFFFF
        known = segments(seq, size, number, 1448, announced)
        return known.largest, known.certain

    multiples = (dice.integers(1, 12, 200) * 1348).tolist()
    tails = [size + int(dice.integers(1, 1348)) * (place % 4 == 0) for place, size in enumerate(multiples)]
    for sizes in (multiples, tails):
        assert found(sizes, None) == (1348, True)
        assert found(sizes, 1348) == (1348, True)
        assert found(sizes, None, announced=1360) == (1348, True)
    # Packets of a larger MTU are followed by the next identification.
    assert found([8948] * 100, 8948) == (8948, True)
    assert found([8948] * 100, None) == (8948, False)
    assert found([2896] * 100, None) == (1448, True)
    assert found([1460] * 100, None) == (1460, True)
    # A sender that numbers super-packets, not their segments.
    assert found(multiples, 1 << 20) == (1348, True)
    assert not found(dice.integers(3000, 60_000, 200).tolist(), None)[1]


def test_a_larger_mtu_that_nothing_tells_is_in_doubt(reading: Callable[..., Measurement]) -> None:
    packets = []
    for place in range(100):
        seq, at_s = 5000 + 8948 * place, 0.01 * place
        packets.append(captures.segment(at_s, seq, 1000, 8948, from_client=False))
        packets.append(captures.segment(at_s + 0.001, 1000, seq + 8948))
    measurement = reading(packets)
    assert any("packets and losses may be several times" in doubt for doubt in measurement.doubts)
    assert not reading(_counted(packets)).doubts


def _counted(packets: list[Packet]) -> list[Packet]:
    return [captures.numbered(packet, place // 2) for place, packet in enumerate(packets)]


@pytest.mark.parametrize("stored", [40, 54, 60, 66, 80])
def test_what_cut_headers_do_not_tell_is_said(
    stored: int, faded: Transfer, reading: Callable[..., Measurement]
) -> None:
    for capture in (faded.source_pcap, faded.mobile):
        framed = captures.read_back(captures.framed(captures.read_back(capture), 1))
        cut = [Packet(packet.time_ns, packet.data[:stored], packet.wire) for packet in framed]
        if stored == 40:
            with pytest.raises(MeasurementError, match=r"cut off within their headers.*tcpdump -s 128"):
                reading(cut, 1)
            continue
        measurement = reading(cut, 1)
        assert int(measurement.probes[0].lost.sum()) == pytest.approx(int(faded.lost.sum()), abs=2)
        said = any(f"stores {stored} bytes of each frame" in note for note in measurement.notes)
        assert said
        in_doubt = any("options that tell spurious ones" in doubt for doubt in measurement.doubts)
        assert in_doubt == (stored < 66 and capture == faded.source_pcap)


def test_datagrams_that_were_cut_before_their_numbers_are_named(
    reading: Callable[..., Measurement],
) -> None:
    stream = captures.read_back(captures.datagrams(list(range(100)), captures.rtp))
    cut = [Packet(packet.time_ns, packet.data[:36], packet.wire) for packet in stream]
    with pytest.raises(MeasurementError, match="cut off before their numbers"):
        reading(cut)


def test_packets_beside_those_that_are_read_are_noted(
    faded: Transfer, reading: Callable[..., Measurement]
) -> None:
    """The headers of IPv6 are longer: of a capture of both, they alone are cut off."""
    framed = captures.read_back(captures.framed(captures.read_back(faded.mobile), 1))
    other = captures.read_back(captures.framed(captures.read_back(faded.mobile), 6))
    cut = [Packet(packet.time_ns, packet.data[:80], packet.wire) for packet in (*framed, *other)]
    notes = reading(cut, 1).notes
    assert any(f"{len(other):,} packets not read: cut off within their headers" in note for note in notes)
