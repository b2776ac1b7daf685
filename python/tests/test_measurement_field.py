"""Files as people post them: logs of terminals, encodings, tables with traps, captures of a part."""

from __future__ import annotations

import bz2
import lzma
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measurement_captures as captures
import pytest
from measurement_captures import Packet, Transfer

from lasthop.fitting.doubt import of_paths
from lasthop.measurement import Measurement, MeasurementError, read

Reading = Callable[..., Measurement]

LOST = (5, 6, 40)
RTTS = [None if number in LOST else 30 + number % 7 for number in range(1, 101)]
PING = [
    "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.",
    *(
        f"64 bytes from 192.0.2.1: icmp_seq={number} ttl=57 time={rtt} ms"
        for number, rtt in enumerate(RTTS, 1)
        if rtt
    ),
    "",
    "--- 192.0.2.1 ping statistics ---",
    "100 packets transmitted, 97 received, 3% packet loss, time 19800ms",
]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    def written(contents: bytes | str, **options: Any) -> Measurement:
        path = tmp_path / "file"
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return read(path, **options)

    return written


def _coloured(line: str) -> str:
    return line.replace("192.0.2.1", "\x1b[36m192.0.2.1\x1b[0m").replace("time=", "time=\x1b[1;32m")


@pytest.mark.parametrize(
    "contents",
    [
        "=~=~= PuTTY log 2026.11.29 21:09:15 =~=~=\r\r\n" + "\r\r\n".join(PING),
        "\x1b]0;user@host: ~\x07$ ping\r\n" + "\r\n".join(_coloured(line) for line in PING),
        "\r\n".join(PING).encode("utf-16-le"),
        lzma.compress("\n".join(PING).encode()),
        bz2.compress("\n".join(PING).encode()),
    ],
    ids=["putty", "colours", "utf-16 without a mark", "xz", "bzip2"],
)
def test_what_a_terminal_or_a_program_adds_changes_nothing(contents: bytes | str, reading: Reading) -> None:
    measurement = reading(contents)
    assert measurement.probes[0].lost.nonzero()[0].tolist() == [number - 1 for number in LOST]
    assert measurement.duration_s == pytest.approx(19.8)


@pytest.mark.parametrize(
    ("unit", "rtt_s"), [("ms", 0.031), ("sec", 31.0), ("\u00b5s", 31e-6), ("\u043c\u0441", 0.031)]
)
def test_ping_states_the_unit_of_its_times(unit: str, rtt_s: float, reading: Reading) -> None:
    text = "\n".join(PING).replace(" ms", f" {unit}")
    assert reading(text).delays[0].delay_s[0] == pytest.approx(rtt_s)


def test_a_router_of_huawei_numbers_its_replies(reading: Reading) -> None:
    lines = [
        "    Request time out"
        if rtt is None
        else f"    Reply from 192.0.2.1: bytes=56 Sequence={number} ttl=57 time={rtt} ms"
        for number, rtt in enumerate(RTTS, 1)
    ]
    text = "  PING 192.0.2.1: 56  data bytes, press CTRL_C to break\n" + "\n".join(lines)
    assert reading(text).probes[0].lost.sum() == len(LOST)


@pytest.mark.parametrize("encoding", ["cp866", "cp1251"])
def test_windows_is_named_in_cyrillic_code_pages(encoding: str, reading: Reading) -> None:
    reply = (
        "\u041e\u0442\u0432\u0435\u0442 \u043e\u0442 192.0.2.1: \u0447\u0438\u0441\u043b\u043e "
        "\u0431\u0430\u0439\u0442=32 \u0432\u0440\u0435\u043c\u044f=14\u043c\u0441 TTL=117\r\n"
    )
    with pytest.raises(MeasurementError, match="ping on Windows"):
        reading((reply * 20).encode(encoding))


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"PK\x03\x04" + bytes(99), "ZIP archive"),
        (b"\x28\xb5\x2f\xfd" + bytes(99), "zstd -d"),
        (b"snoop\0\0\0" + bytes(99), "editcap"),
        (b"\x34\xcd\xb2\xa1" + bytes(99), "editcap"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "a picture"),
        (b"BZh9" + bytes(99), "damaged compressed file"),
        ("   3/ 100 =  3%   |\n  2   23ms   3/ 100 =  3%   0/ 100 =  0%  192.0.2.1", "pathping"),
        ("PsPing v2.12 - PsPing\nConnecting to 192.0.2.1:443: 23.1ms", "PsPing"),
        ("|   Host   -   %  | Sent |\n   WinMTR v0.92 GPL V2", "mtr"),
        ("qdisc fq_codel 0: dev wlan0 root\n Sent 1 bytes 2 pkt (dropped 3)", "counters of a host"),
        ('"Time","Source","Destination","Protocol","Length"\n"0.1","a","b","TCP","60"\n', "packets as text"),
        ("frame.time_epoch,tcp.seq,tcp.len\n1764450000.1,1,1448\n", "packets as text"),
        ('[{"start": {}, "intervals": []}, {"start": {}, "intervals": []}]', "tests of iperf3"),
        ('[{"_index": "packets", "_source": {"layers": {}}}]', "packets as JSON"),
    ],
)
def test_other_programs_are_named(contents: bytes | str, message: str, reading: Reading) -> None:
    with pytest.raises(MeasurementError, match=message):
        reading(contents)


def _table(names: str, row: Callable[[int], str], count: int = 100) -> str:
    return "\n".join([names, *(row(place) for place in range(count))]) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_table("time_s,sent,lost", lambda row: f"{row},{50 * row + 50},{row // 2}"), "take the differences"),
        (_table("time_s,sent,received", lambda row: f"{row},{50 * row + 50},{49 * row + 49}"), "differences"),
        (
            _table("time_s,sent,lost", lambda row: f"{row},{10**6 + 50 * row},{12_000 + row // 2}"),
            "differences",
        ),
        (_table("time_s,sent,lost", lambda row: f"{row},{10**6 + 50 * row},12000"), "differences"),
        (
            _table(
                "time_s,sent,received",
                lambda row: f"{row},{10**6 + 50 * row},{9 * 10**5 + 49 * row - row % 2}",
            ),
            "differences",
        ),
        (_table("time_s,rate_mbps", lambda row: f"{row},{52_000_000 + row}"), "a rate of .* unit right"),
        (_table("time_s,rtt_s", lambda row: f"{row},{33 + row % 5}"), "delays of 35 s in the median"),
        (_table("time_s,lost", lambda row: f"{1764450000000 + 20 * row},0"), "time_s=time"),
        (_table("epoch,value", lambda row: f"{1764450000 + row},30"), "--column epoch=time"),
        (_table("Interval start,bits", lambda row: f"{row},30"), "interval start=time_s"),
        ("\n".join(str(30 + row % 5) for row in range(99)), "column names, such as rtt_ms"),
        (_table("time_s,host,lost", lambda row: f"{row},{'ab'[row % 2]},0"), r"rows of 2 \(a, b\)"),
        (_table("time_s,interface,lost", lambda row: f"{row},wlan{row % 3},0"), "into its own file"),
    ],
)
def test_tables_in_other_units_or_of_other_numbers_are_refused(
    text: str, message: str, reading: Reading
) -> None:
    with pytest.raises(MeasurementError, match=message):
        reading(text)


@pytest.mark.parametrize(
    "row",
    [lambda row: f"{row},{100 + row // 50},0", lambda row: f"{row},{10 * row},0"],
    ids=["steady", "ramp"],
)
def test_counts_that_never_decrease_may_be_of_intervals(row: Callable[[int], str], reading: Reading) -> None:
    assert len(reading(_table("time_s,sent,lost", row)).counts[0].sent) == 100


@pytest.mark.parametrize(
    "text",
    [
        _table("time_s|rtt_ms|lost", lambda row: f"{row}|{RTTS[row] or ''}|{int(not RTTS[row])}"),
        _table("time_s  rtt_ms  lost", lambda row: f" {row}  {RTTS[row] or 'nan'}  {int(not RTTS[row])}"),
        _table(
            "| time_s | rtt_ms | lost |\n|---|---|---|",
            lambda row: f"| {row} | {RTTS[row] or ''} | {int(not RTTS[row])} |",
        ),
        _table(
            "time_s,rtt_ms,lost",
            lambda row: ("time_s,rtt_ms,lost\n" if row == 50 else "") + f"{row},30,{int(not RTTS[row])}",
        ),
        _table("time_s,rtt_ms,success", lambda row: f"{row},{RTTS[row] or 0},{RTTS[row] is not None}"),
        _table(
            "time,rtt_ms,lost",
            lambda row: (
                f"{(23 + (row > 50)) % 24:02d}:{(59 + (row > 50)) % 60:02d}:{(9 + row) % 60:02d},30,"
                f"{int(not RTTS[row])}"
            ),
        ),
        _table(
            "date,rtt_ms,lost",
            lambda row: f"29.11.2026 21:0{row // 60}:{row % 60:02d},3,{int(not RTTS[row])}",
        ),
    ],
    ids=["bars", "spaces", "markdown", "appended", "success", "midnight", "day first"],
)
def test_more_dialects_of_tables_are_read(text: str, reading: Reading) -> None:
    measurement = reading(text)
    assert measurement.probes[0].lost.nonzero()[0].tolist() == [number - 1 for number in LOST]
    assert measurement.duration_s == 99.0


def test_the_number_of_a_timeout_is_no_round_trip_time(reading: Reading) -> None:
    measurement = reading(_table("time_s,rtt_ms", lambda row: f"{row},{RTTS[row] or 9999}"))
    assert len(measurement.delays[0].delay_s) == 97
    assert any("9999 ms, taken as none" in note for note in measurement.notes)


@pytest.mark.parametrize(("largest", "times"), [(9999, 60), (612, 3), (9999, 2), (50, 3)])
def test_another_largest_round_trip_time_is_one(largest: int, times: int, reading: Reading) -> None:
    text = _table("time_s,rtt_ms", lambda row: f"{row},{largest if row < times else 30}")
    assert len(reading(text).delays[0].delay_s) == 100


@pytest.mark.parametrize(("second_ms", "doubts"), [(600, 1), (40, 0)])
def test_two_links_in_one_file_are_in_doubt(second_ms: int, doubts: int, reading: Reading) -> None:
    text = _table("time_s,rtt_ms", lambda row: f"{row},{(20 if row < 300 else second_ms) + row % 9}", 500)
    assert len(list(of_paths(reading(text)))) == doubts
    assert not list(
        of_paths(reading(_table("time_s,rtt_ms", lambda row: f"{row},{20 + row % 2 * 600}", 500)))
    )


def test_a_column_of_losses_that_is_not_read_is_said(reading: Reading) -> None:
    text = _table("time_s,rtt_ms,packet_loss", lambda row: f"{row},30,{row % 3}%")
    assert any("--column packet_loss=loss" in note for note in reading(text).notes)


NETWORK = """
sender = "linux"
tcp.packet_size = "1512 B"
[transfer]
size = "600 KB"
[wired]
rate = "100 Mbps"
delay = "10 ms"
[radio]
rate = "10 Mbps"
delay = "15 ms"
channel.gilbert = {loss=0.12, burst=3}
"""


@pytest.fixture(scope="module")
def faded(tmp_path_factory: pytest.TempPathFactory) -> Transfer:
    return captures.transfer(NETWORK, tmp_path_factory.mktemp("transfer"), seed=3)


class TestCaptures:
    """Captures of a part of a transfer."""

    @pytest.mark.parametrize("end", ["source", "mobile"])
    def test_packets_larger_than_ethernets_are_no_super_packets(
        self, end: str, faded: Transfer, reading: Reading
    ) -> None:
        capture = faded.source_pcap if end == "source" else faded.mobile
        packets = captures.read_back(capture)
        assert max(packet.wire for packet in packets) > 1500
        started = [packet for packet in packets if not packet.data[33] & 2]
        whole, part = reading(capture).probes[0], reading(captures.written(started)).probes[0]
        assert (len(part.lost), part.lost.sum()) == (len(whole.lost), whole.lost.sum())

    def test_interfaces_may_have_a_part_each(self, faded: Transfer, reading: Reading) -> None:
        packets = sorted(captures.read_back(faded.source_pcap), key=lambda packet: packet.time_ns)
        sender = next(packet.data[12:16] for packet in packets if captures.payload(packet))
        whole = reading(faded.source_pcap).probes[0].lost.sum()
        assert whole > 5
        for part in (
            [int(packet.data[12:16] == sender) for packet in packets],
            [int(place > len(packets) // 2) for place in range(len(packets))],
        ):
            assert reading(_on_interfaces(packets, part)).probes[0].lost.sum() == whole

    def test_a_capture_before_the_losses_has_none_to_read(self, faded: Transfer, reading: Reading) -> None:
        packets = captures.read_back(faded.source_pcap)
        sender = next(packet.data[12:16] for packet in packets if captures.payload(packet))
        sent = [packet for packet in packets if packet.data[12:16] == sender]
        with pytest.raises(MeasurementError, match="taken before the losses"):
            reading(captures.written(sent))

    def test_both_ends_in_one_file_are_in_doubt(self, faded: Transfer, reading: Reading) -> None:
        packets = [*captures.read_back(faded.source_pcap), *captures.read_back(faded.mobile)]
        assert any("or at both ends" in doubt for doubt in reading(captures.written(packets)).doubts)

    def test_a_capture_that_missed_packets_is_in_doubt(self, faded: Transfer, reading: Reading) -> None:
        dice = random.Random(3)
        packets = [packet for packet in captures.read_back(faded.mobile) if dice.random() > 0.2]
        assert any("losses are unreliable" in doubt for doubt in reading(captures.written(packets)).doubts)
        assert not reading(faded.mobile).doubts

    def test_coarse_times_tell_no_rates(self, faded: Transfer, reading: Reading) -> None:
        packets = captures.read_back(faded.mobile)
        whole = [
            Packet(packet.time_ns // captures.SECOND * captures.SECOND, packet.data, packet.wire)
            for packet in packets
        ]
        measurement = reading(captures.written(whole))
        assert not measurement.rates
        assert not measurement.delays
        assert measurement.probes[0].lost.sum() == reading(faded.mobile).probes[0].lost.sum()
        with pytest.raises(MeasurementError, match="the same time"):
            reading(captures.written([Packet(0, packet.data, packet.wire) for packet in packets]))

    def test_tunnels_over_udp_are_named(self, reading: Reading) -> None:
        dice = random.Random(2)
        datagrams = captures.datagrams(list(range(50)), lambda _: dice.randbytes(60))
        packets = [
            captures.edited(packet, 22, struct.pack(">H", 51820)) for packet in captures.read_back(datagrams)
        ]
        with pytest.raises(MeasurementError, match="WireGuard"):
            reading(captures.written(packets))


def _on_interfaces(packets: list[Packet], interfaces: list[int]) -> bytes:
    """Return a pcapng file with each packet on its interface."""

    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    text = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    text += 2 * block(1, struct.pack("<HHI", captures.RAW, 0, 0))
    for packet, interface in zip(packets, interfaces, strict=True):
        time_us, data = packet.time_ns // 1000, packet.data
        head = struct.pack("<IIIII", interface, time_us >> 32, time_us & 0xFFFFFFFF, len(data), packet.wire)
        text += block(6, head + data + bytes(-len(data) % 4))
    return text
