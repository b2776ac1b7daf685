"""Reading measurements: what each format says, its traps, and damaged files."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import measurement_samples as samples
import numpy as np
import pytest

from lasthop.measurement import FORMATS, READERS, Direction, Measurement, MeasurementError, Probes, read
from lasthop.measurement.model import Counts, Delays, LossSeries

DOWN, UP, ROUND_TRIP = Direction.DOWN, Direction.UP, Direction.ROUND_TRIP


@pytest.fixture
def reading(tmp_path: Path) -> Any:
    """Return a function that writes contents into a file without a telling name, and reads it."""

    def written(contents: str | bytes | dict[str, Any], **options: Any) -> Measurement:
        path = tmp_path / "measured"
        if isinstance(contents, dict):
            contents = json.dumps(contents)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return read(path, **options)

    return written


def by_direction(measurement: Measurement) -> dict[Direction, Probes]:
    return {probes.direction: probes for probes in measurement.probes}


def test_each_format_is_recognised_by_its_contents(reading: Any) -> None:
    formats = {name: reading(data).format for name, data in samples.texts().items()}
    assert formats == {
        "irtt": "irtt",
        "ping": "ping",
        "ping-plain": "ping",
        "ping-json": "ping",
        "ping-quiet": "ping",
        "fping": "fping",
        "fping-json": "fping",
        "iperf3-text": "iperf-text udp",
        "iperf3-text-tcp": "iperf-text tcp",
        "iperf2-csv": "iperf-text udp",
        "mtr": "mtr",
        "mtr-csv": "mtr",
        "starlink": "starlink",
        "atlas": "atlas",
        "iperf3-tcp": "iperf3 tcp",
        "iperf3-udp": "iperf3 udp",
        "iperf3-stream": "iperf3 udp",
        "lasthop": "lasthop measure",
        "gateway": "gateway",
        "ss": "ss",
        "flent": "flent",
        "flent-irtt": "flent",
        "csv": "csv",
        "csv-counts": "csv",
        "csv-loss": "csv",
        "mahimahi-trace": "mahimahi",
        "mahimahi-log": "mahimahi",
    }


def test_every_format_has_a_sample_and_a_section(reading: Any) -> None:
    page = (Path(__file__).parents[2] / "docs/guide/measurements.md").read_text()
    sampled = {reading(data).format.split()[0] for data in samples.texts().values()}
    # Captures have samples of their own.
    assert sampled == {*FORMATS} - {"pcap"}
    for reader in READERS:
        assert reader.name == "pcap" or f"\n## {reader.title.removesuffix(' JSON')}\n" in page
        assert reader.command is None or reader.command in page


def test_compressed_files_are_the_same(reading: Any) -> None:
    for data in samples.texts().values():
        plain, packed = reading(data), reading(gzip.compress(data))
        assert plain.summary() == packed.summary()


def test_a_cut_compressed_file_is_read_as_far_as_it_goes(reading: Any) -> None:
    # Random answers, which do not compress to nothing.
    dice = random.Random(1)
    text = samples.ping(frozenset(dice.sample(range(1, 5000), 200)), 5000, summary=False)
    packed = gzip.compress(text.encode())
    measurement = reading(packed[: len(packed) // 2])
    assert 1000 < len(measurement.probes[0].lost) < 4000
    assert "truncated" in measurement.notes[-1]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"hello world\n", "supported formats: pcap, pcapng, lasthop measure, iperf text, iperf3 JSON"),
        (b'{"a": 1}', "with the keys a"),
        (b"{}", "unknown program; supported"),
        (b'[{"type": "ping", "sent": 3}]', "a list of JSON of an unknown program"),
        (b"a\x01b,c\n1\n", "not a known measurement"),
        (
            b"Connecting to host h, port 5201\n[ ID] Interval           Transfer     Bitrate\n",
            "the text of iperf; expected JSON, such as that of `iperf3 -c SERVER -J",
        ),
        (b"[SUM]  0.0- 1.0 sec  1.12 MBytes  9.44 Mbits/sec\n", "the text of iperf"),
        (
            b"seq=0 rtt=45.2ms rd=22.1ms sd=23.1ms ipdv=n/a\n",
            "the text of irtt; expected JSON, .*-o irtt.json",
        ),
        (b'{"round_trips": [}', "not valid JSON"),
        (b'{"round_trips": []}', "no round trips"),
        (b"[" * 100_000, "not a known measurement"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\x1f\x8b\x08\x00garbage", "damaged compressed"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a picture"),
    ],
)
def test_what_is_no_measurement_is_refused(reading: Any, contents: bytes, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        reading(contents)


def test_errors_of_the_caller(reading: Any, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        read(tmp_path / "absent")
    with pytest.raises(ValueError, match='there is no format "irt"; did you mean "irtt"'):
        reading(samples.CSV, format="irt")
    with pytest.raises(MeasurementError, match="not the JSON of flent"):
        reading(samples.irtt(), format="flent")


class TestIrtt:
    def test_direction_of_each_loss(self, reading: Any) -> None:
        fates = "..uu..d.u"
        found = by_direction(reading(samples.irtt(fates)))
        assert np.flatnonzero(found[ROUND_TRIP].lost).tolist() == [2, 3, 6, 8]
        assert np.flatnonzero(found[UP].lost).tolist() == [2, 3, 8]
        # Three packets never met the downlink.
        assert len(found[DOWN].lost) == 97
        assert found[DOWN].sent_s[found[DOWN].lost].tolist() == pytest.approx([0.12])
        assert found[DOWN].sent_s[0] == 0
        assert found[UP].size_bytes == 100

    def test_ipv6_has_a_larger_header(self, reading: Any) -> None:
        assert reading(samples.irtt(ip="IPv6")).probes[0].size_bytes == 120

    @pytest.mark.parametrize(
        ("address", "host"),
        [("192.0.2.1:2112", "192.0.2.1"), ("[fe80::1%wlan0]:2112", "fe80::1%wlan0"), (None, None)],
    )
    def test_the_host_is_known(self, address: str | None, host: str | None, reading: Any) -> None:
        document = samples.irtt()
        document["config"]["remote_address"] = address
        assert reading(document).host == host

    def test_one_loss_of_unknown_direction_leaves_the_round_trip(self, reading: Any) -> None:
        measurement = reading(samples.irtt("..?..u"))
        assert list(by_direction(measurement)) == [ROUND_TRIP]
        (note,) = [note for note in measurement.notes if "is unknown" in note]
        assert "1 were lost on the uplink and 0 on the downlink" in note

    def test_unknown_directions_after_the_last_answer_are_cut(self, reading: Any) -> None:
        found = by_direction(reading(samples.irtt("." * 96 + "u???")))
        assert [len(found[way].lost) for way in (ROUND_TRIP, UP)] == [100, 96]

    def test_one_way_delays_need_clocks_that_agree(self, reading: Any) -> None:
        near = {delays.direction: delays for delays in reading(samples.irtt(offset_ns=5_000_000)).delays}
        assert near[UP].delay_s.min() == pytest.approx(0.025)
        assert near[DOWN].delay_s.min() == pytest.approx(0.015)
        far = reading(samples.irtt(offset_ns=50_000_000))
        assert [delays.direction for delays in far.delays] == [ROUND_TRIP]
        assert any("clocks disagree" in note for note in far.notes)

    def test_booleans_of_old_versions(self, reading: Any) -> None:
        document = samples.irtt(count=5)
        for trip in document["round_trips"]:
            trip["lost"] = trip["seqno"] == 2
        assert by_direction(reading(document))[ROUND_TRIP].lost.tolist() == [False, False, True, False, False]


class TestPing:
    def test_the_interval_may_be_stated(self, reading: Any) -> None:
        replies = [f"64 bytes from 192.0.2.1: icmp_seq={k} ttl=60 time=20.{k} ms" for k in (0, 1, 3, 4)]
        text = "PING 192.0.2.1 (192.0.2.1): 56 data bytes\n" + "\n".join(replies) + "\n"
        measurement = reading(text, every_s=0.1)
        assert measurement.probes[0].sent_s.tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
        assert measurement.probes[0].lost.tolist() == [False, False, True, False, False]
        assert any("--every" in note for note in reading(text).notes)

    def test_a_stated_interval_beside_times_is_noted(self, reading: Any) -> None:
        for written in (samples.ping(), samples.irtt(), samples.mahimahi_log()):
            assert any("not used" in note for note in reading(written, every_s=0.1).notes)

    def test_losses_and_times(self, reading: Any) -> None:
        lost = frozenset({1, 4, 9, 10})
        probes = reading(samples.ping(lost)).probes[0]
        # Packet 50 was not answered before the end of a 20 ms interval; but it was.
        assert (np.flatnonzero(probes.lost) + 1).tolist() == sorted(lost)
        assert probes.sent_s.tolist() == pytest.approx([seq * 0.02 for seq in range(50)], abs=1e-3)
        assert probes.size_bytes == 84

    @pytest.mark.parametrize("stamps", [True, False])
    @pytest.mark.parametrize("outstanding", [True, False])
    @pytest.mark.parametrize("summary", [True, False])
    def test_the_options_do_not_change_the_losses(
        self, reading: Any, stamps: bool, outstanding: bool, summary: bool
    ) -> None:
        lost = frozenset({3, 7, 8, 9})
        text = samples.ping(lost, stamps=stamps, outstanding=outstanding, summary=summary)
        measurement = reading(text)
        probes = measurement.probes[0]
        assert (np.flatnonzero(probes.lost) + 1).tolist() == sorted(lost)
        step = 0.02 if stamps or summary else 1.0
        assert probes.sent_s[-1] == pytest.approx(49 * step, rel=0.02)
        assert any("No timestamps" in note for note in measurement.notes) is not stamps

    def test_an_answer_after_no_answer_yet_is_no_loss(self, reading: Any) -> None:
        measurement = reading(samples.ping(rtt_ms=300.0, lost=frozenset({20})))
        assert (np.flatnonzero(measurement.probes[0].lost) + 1).tolist() == [20]

    def test_packets_under_way_at_the_end_are_left_out(self, reading: Any) -> None:
        lines = samples.ping(rtt_ms=300.0, count=100, summary=False).splitlines()
        cut = [line for line in lines if not line.startswith("[") or float(line[1:18]) < samples.T0 + 1.0]
        probes = reading("\n".join(cut)).probes[0]
        assert not probes.lost.any()

    def test_sequence_numbers_wrap(self, reading: Any) -> None:
        lost = frozenset({69_999, 65_536, 65_535})
        probes = reading(samples.ping(lost, 70_000)).probes[0]
        assert len(probes.lost) == 70_000
        assert (np.flatnonzero(probes.lost) + 1).tolist() == sorted(lost)

    def test_duplicates_and_unreachable_hosts(self, reading: Any) -> None:
        text = samples.ping(frozenset({5}), summary=False)
        text += f"[{samples.T0 + 2}.000000] 64 bytes from 192.0.2.1: icmp_seq=7 ttl=57 time=900 ms (DUP!)\n"
        text += f"[{samples.T0 + 3}.0] From 192.168.1.1 icmp_seq=51 Destination Host Unreachable\n"
        text += f"[{samples.T0 + 3}.1] 64 bytes from 192.0.2.1: icmp_seq=52 ttl=57 time=30.0 ms\n"
        measurement = reading(text)
        assert (np.flatnonzero(measurement.probes[0].lost) + 1).tolist() == [5, 51]
        assert any("1 duplicate of replies" in note for note in measurement.notes)
        assert any("ICMP error" in note for note in measurement.notes)

    def test_a_log_without_its_beginning(self, reading: Any) -> None:
        lines = samples.ping(frozenset({30, 31}), 60).splitlines()[20:]
        probes = reading("\n".join(lines)).probes[0]
        assert probes.size_bytes is None
        assert int(probes.lost.sum()) == 2
        assert not probes.lost[:5].any()
        # The total in the last lines counts from the first packet, wraps included.
        lines = samples.ping(frozenset({69_998}), 70_000).splitlines()[-2000:]
        assert int(reading("\n".join(lines)).probes[0].lost.sum()) == 1

    def test_a_truncated_line_ends_the_reading(self, reading: Any) -> None:
        text = samples.ping(frozenset({3}), 30, summary=False)
        for cut in range(1, 80):
            assert reading(text[:-cut]).probes[0].lost.sum() == 1

    @pytest.mark.parametrize(
        ("text", "lost", "size"),
        [
            (
                "PING 192.0.2.1 (192.0.2.1): 56 data bytes\n64 bytes from 192.0.2.1: seq=1 ttl=57 time=9.1 "
                "ms\n64 bytes from 192.0.2.1: seq=3 ttl=57 time=9.2 ms\n",
                [0, 2],
                84,
            ),
            (
                "PING example.org (192.0.2.1): 56 data bytes\nRequest timeout for icmp_seq 0\n"
                "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=9.1 ms\n",
                [0],
                84,
            ),
            (
                "PING 2001:db8::1(2001:db8::1) 56 data bytes\n"
                "64 bytes from 2001:db8::1: icmp_seq=2 ttl=57 time=9.1 ms\n",
                [0],
                104,
            ),
            (
                "PING 192.0.2.1 (192.0.2.1) 56(84) Bytes an Daten.\n"
                "64 Bytes von 192.0.2.1: icmp_seq=1 ttl=57 Zeit=9.1 ms\nnoch keine Antwort für icmp_seq=2\n"
                "64 Bytes von 192.0.2.1: icmp_seq=3 ttl=57 Zeit=9.1 ms\n",
                [1],
                84,
            ),
        ],
        ids=["busybox", "macos", "ipv6", "german"],
    )
    def test_other_pings(self, reading: Any, text: str, lost: list[int], size: int) -> None:
        probes = reading(text).probes[0]
        assert np.flatnonzero(probes.lost).tolist() == lost
        assert probes.size_bytes == size

    def test_windows_is_refused_with_the_remedy(self, reading: Any) -> None:
        text = "\r\nPinging 192.0.2.1 with 32 bytes of data:\r\n"
        text += "Reply from 192.0.2.1: bytes=32 time=9ms TTL=57\r\n"
        for encoding in ("utf-8", "utf-16"):
            with pytest.raises(MeasurementError, match=r"ping -D -O -i 0\.02"):
                reading(text.encode(encoding))

    def test_nothing_but_losses_is_no_measurement(self, reading: Any) -> None:
        with pytest.raises(MeasurementError, match="50 packets and no replies"):
            reading(samples.ping(frozenset(range(1, 51))))

    def test_runs_one_after_another(self, reading: Any) -> None:
        first = samples.ping(frozenset({3}), 30)
        second = samples.ping(frozenset({5}), 30).replace(f"[{samples.T0}", f"[{samples.T0 + 60}")
        probes = reading(first + second).probes[0]
        assert len(probes.lost) == 60
        assert probes.sent_s[probes.lost].tolist() == pytest.approx([0.04, 60.08], abs=1e-3)


class TestIperf3:
    def test_tcp_has_no_losses(self, reading: Any) -> None:
        measurement = reading(samples.iperf3())
        assert measurement.probes == measurement.counts == ()
        assert measurement.rates[0].direction is UP
        assert (measurement.rates[0].saturated, measurement.rates[0].capacity) == (True, False)
        assert measurement.rates[0].rate_bps.tolist() == pytest.approx([1e7] * 5)
        assert measurement.delays[0].delay_s[0] == pytest.approx(0.045)
        assert any("not losses" in note for note in measurement.notes)

    def test_the_receiver_knows_what_was_carried(self, reading: Any) -> None:
        measurement = reading(samples.iperf3(server_output=True))
        assert measurement.rates[0].rate_bps.tolist() == pytest.approx([8e6] * 5)

    @pytest.mark.parametrize(
        ("options", "direction"),
        [
            ({}, UP),
            ({"reverse": True}, DOWN),
            ({"client": False}, UP),
            ({"client": False, "reverse": True}, DOWN),
        ],
    )
    def test_direction(self, reading: Any, options: dict[str, bool], direction: Direction) -> None:
        document = samples.iperf3(**options)  # type: ignore[arg-type]
        assert [rates.direction for rates in reading(document).rates] == [direction]
        # Old versions do not say which end sends.
        for interval in document["intervals"]:
            del interval["streams"][0]["sender"]
        assert [rates.direction for rates in reading(document).rates] == [direction]
        other = UP if direction is DOWN else DOWN
        assert [rates.direction for rates in reading(document, user="server").rates] == [other]

    def test_both_directions_at_once(self, reading: Any) -> None:
        rates = reading(samples.iperf3(bidir=True)).rates
        first = {rate.direction: float(rate.rate_bps[0]) for rate in rates}
        assert first == pytest.approx({DOWN: 8e6, UP: 1e7}, rel=1e-4)

    def test_losses_of_udp_are_counts(self, reading: Any) -> None:
        measurement = reading(samples.iperf3("UDP", reverse=True))
        counts = measurement.counts[0]
        assert measurement.probes == ()
        assert (counts.direction, counts.sent.tolist(), counts.lost.tolist()) == (
            DOWN,
            [1000] * 5,
            [0, 3, 0, 1, 0],
        )
        assert not measurement.rates[0].saturated

    def test_udp_at_a_constant_rate_is_counted_until_the_last_arrival(self, reading: Any) -> None:
        def counts(*packets: int, streams: int = 1) -> Any:
            document = samples.iperf3("UDP", reverse=True, lost=(0,) * len(packets))
            for interval, sent in zip(document["intervals"], packets, strict=True):
                interval["streams"] = [{**interval["streams"][0], "packets": sent}] * streams
            return reading(document).counts[0]

        outage = counts(1000, 700, 1300, 1000, 1000, 300, 0, 2700, 1000, 1001, 999, 1000, 1000)
        assert outage.until_arrival
        assert not counts(1000, 300, 1500, 2000, 700, 1000).until_arrival
        assert not counts(1000, 1000, 1000, 1000, streams=2).until_arrival
        assert not counts(0, 0).until_arrival

    def test_the_sender_of_udp_knows_the_total(self, reading: Any) -> None:
        counts = reading(samples.iperf3("UDP")).counts[0]
        assert (counts.direction, counts.sent.tolist(), counts.lost.tolist()) == (UP, [5000], [4])
        assert counts.interval_s.tolist() == pytest.approx([5], rel=1e-4)

    def test_much_loss_is_taken_for_a_full_queue(self, reading: Any) -> None:
        measurement = reading(samples.iperf3("UDP", reverse=True, lost=(300, 280, 310)))
        assert measurement.rates[0].saturated
        assert measurement.rates[0].capacity
        assert any("half the rate" in note for note in measurement.notes)

    def test_the_sender_of_udp_carried_what_was_not_lost(self, reading: Any) -> None:
        """10 Mb/s of which 30 % were lost: the link carries 7 Mb/s."""
        rates = reading(samples.iperf3("UDP", lost=(300,) * 5)).rates[0]
        assert rates.capacity
        assert rates.rate_bps.tolist() == pytest.approx([7e6] * 5)

    def test_late_packets_do_not_make_losses_negative(self, reading: Any) -> None:
        measurement = reading(samples.iperf3("UDP", reverse=True, lost=(5, -2, 0)))
        assert measurement.counts[0].lost.tolist() == [5, 0, 0]
        assert any("Late packets" in note for note in measurement.notes)

    def test_interrupted_and_failed_tests(self, reading: Any) -> None:
        document = samples.iperf3() | {"error": "interrupt - the client has terminated"}
        assert any("interrupt - the client" in note for note in reading(document).notes)
        failed = {"start": {"connected": []}, "intervals": [], "end": {}, "error": "unable to connect"}
        with pytest.raises(MeasurementError, match='iperf3 failed: "unable to connect"'):
            reading(failed)

    def test_omitted_intervals_are_left_out(self, reading: Any) -> None:
        document = samples.iperf3()
        document["intervals"][0]["streams"][0]["omitted"] = True
        measurement = reading(document)
        assert len(measurement.rates[0].rate_bps) == 4
        assert any("--omit" in note for note in measurement.notes)


class TestSs:
    def test_spurious_retransmissions_are_subtracted(self, reading: Any) -> None:
        counts = reading(samples.ss()).counts[0]
        assert (counts.direction, int(counts.lost.sum())) == (UP, 2)
        assert np.flatnonzero(counts.lost).tolist() == [9, 10]
        # The DSACK of one comes two samples later.
        assert int(reading(samples.ss(spurious=1)).counts[0].lost.sum()) == 1

    def test_rates_and_delays(self, reading: Any) -> None:
        measurement = reading(samples.ss())
        assert measurement.rates[0].rate_bps.tolist() == pytest.approx([143352 * 80] * 29, rel=1e-4)
        assert measurement.rates[0].saturated
        assert measurement.delays[0].delay_s[:3].tolist() == pytest.approx([0.0405, 0.0415, 0.0425])

    @pytest.mark.parametrize("upload", [True, False])
    def test_sockets_share_the_link(self, upload: bool, reading: Any) -> None:
        """Also if one ends before the other, or was not sampled in between."""
        one = samples.ss(upload=upload).splitlines()
        other = [line.replace("48730", "48731") for line in samples.ss(20, upload=upload).splitlines()]
        both = [
            line
            for at in range(0, len(one), 3)
            for line in (*one[at : at + 3], *([] if at == 15 else other[at + 1 : at + 3]))
        ]
        measurement = reading("\n".join(both))
        (counts,), (rates,) = measurement.counts, measurement.rates
        # One segment of each is lost before samples 10 and 11.
        assert np.flatnonzero(counts.lost).tolist() == [9, 10]
        assert counts.lost[9:11].tolist() == [2, 2]
        assert counts.sent.tolist() == [200] * 9 + [202] * 2 + [200] * 8 + [100] * 10
        assert rates.rate_bps.tolist() == pytest.approx([2 * 143352 * 80] * 19 + [143352 * 80] * 10, rel=1e-4)
        assert len(measurement.delays) == 2

    def test_the_larger_port_is_the_clients(self, reading: Any) -> None:
        assert reading(samples.ss(upload=False)).rates[0].direction is DOWN

    def test_a_missing_state_and_names_of_ports(self, reading: Any) -> None:
        text = samples.ss().replace("ESTAB ", "").replace(":443", ":https")
        assert reading(text).counts[0].lost.sum() == 2

    def test_times_are_needed(self, reading: Any) -> None:
        lines = [line for line in samples.ss().splitlines() if not line.startswith("1")]
        with pytest.raises(MeasurementError, match=r"date \+%s\.%N"):
            reading("\n".join(lines))


class TestFlent:
    def test_gaps_in_the_numbers_of_ping_are_losses(self, reading: Any) -> None:
        measurement = reading(samples.flent())
        assert np.flatnonzero(measurement.probes[0].lost).tolist() == [7, 8]
        assert measurement.probes[0].sent_s[8] == pytest.approx(1.6)
        assert measurement.rates[0].direction is DOWN
        assert measurement.rates[0].rate_bps[:3].tolist() == [8e6, 9e6, 10e6]

    def test_streams_are_added_up(self, reading: Any) -> None:
        document = samples.flent()
        document["results"] |= {f"TCP download::{stream}": [2.0] * 50 for stream in (1, 2)}
        rates = reading(document).rates
        assert len(rates) == 1
        assert rates[0].rate_bps[[0, 1, 99]].tolist() == [12e6, 13e6, 8e6]

    def test_irtt_in_flent_knows_the_direction(self, reading: Any) -> None:
        found = by_direction(reading(samples.flent(irtt_like=True)))
        assert np.flatnonzero(found[UP].lost).tolist() == [8]
        assert found[DOWN].sent_s[found[DOWN].lost].tolist() == pytest.approx([1.4])


class TestCsv:
    def test_probes(self, reading: Any) -> None:
        measurement = reading(samples.CSV)
        probes = measurement.probes[0]
        assert (probes.direction, np.flatnonzero(probes.lost).tolist()) == (ROUND_TRIP, [5, 6, 20])
        assert probes.size_bytes == 84
        assert len(measurement.delays[0].delay_s) == 57
        assert any("not read: note" in note for note in measurement.notes)

    def test_counts_and_rates(self, reading: Any) -> None:
        measurement = reading(samples.texts()["csv-counts"])
        assert measurement.counts[0].lost.tolist() == [3, 0, 50]
        assert measurement.rates[0].rate_bps.tolist() == [1.5e6, 2.5e6, 0]
        assert measurement.delays[0].direction is DOWN

    def test_fractions_have_no_counts(self, reading: Any) -> None:
        measurement = reading(samples.texts()["csv-loss"])
        found = {losses.direction: losses.loss.tolist() for losses in measurement.losses}
        assert found == {DOWN: [1.0], UP: [0.015, 0.0]}
        assert measurement.counts == measurement.probes == ()

    @pytest.mark.parametrize("column", ["time", "timestamp", "datetime", "date", "time_s", "time_ms", "Time"])
    def test_dates(self, reading: Any, column: str) -> None:
        # The clock goes back by an hour: the time zone changes.
        dates = ["2026-10-25T02:59:59.998+02:00", "2026-10-25 02:00:00.018+01:00", "2026-10-25T01:00:01.5Z"]
        measurement = reading("\n".join([f"{column},lost", *(f"{date},0" for date in dates)]) + "\n")
        assert measurement.probes[0].sent_s.tolist() == pytest.approx([0, 0.02, 1.502])
        assert measurement.duration_s == pytest.approx(1.502)

    def test_packets_of_whole_seconds_are_spread(self, reading: Any) -> None:
        # The first second ends with two packets, and the last begins with two; the median second has four.
        seconds = [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 5, 5]
        rows = [f"2026-01-02T03:04:{second:02d}Z,0,{40 + second}" for second in seconds]
        measurement = reading("\n".join(["time,lost,rtt_ms", *rows]) + "\n")
        expected = [0.5, 0.75, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.25, 2.5, 2.75, 3, 3.2, 3.4, 3.6, 3.8, 5, 5.25]
        assert measurement.probes[0].sent_s.tolist() == pytest.approx(expected)
        assert measurement.delays[0].time_s.tolist() == pytest.approx(expected)
        assert any("whole seconds" in note for note in measurement.notes)
        # A packet a second in each direction is known to the second.
        both = "".join(f"{second},0,{way}\n" for second in range(5) for way in ("up", "down"))
        found = by_direction(reading("time_s,lost,direction\n" + both))
        assert found[UP].sent_s.tolist() == found[DOWN].sent_s.tolist() == [0, 1, 2, 3, 4]

    def test_rows_without_times_are_a_stated_time_apart(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_text("direction,lost\nup,0\ndown,1\nup,1\ndown,0\nup,0\n")
        found = by_direction(read(path, every_s=0.02))
        assert (found[UP].sent_s.tolist(), found[UP].lost.tolist()) == ([0, 0.02, 0.04], [False, True, False])
        assert found[DOWN].sent_s.tolist() == [0, 0.02]
        path.write_text("sent,lost\n50,3\n50,0\n50,2\n")
        counts = read(path, every_s=1.0).counts[0]
        assert (counts.time_s.tolist(), counts.interval_s.tolist()) == ([0, 1, 2], [1, 1, 1])
        # Times in the file come first.
        path.write_text("time_s,lost\n0,1\n3,0\n")
        measurement = read(path, every_s=1.0)
        assert measurement.duration_s == 3
        assert any("not used" in note for note in measurement.notes)
        with pytest.raises(ValueError, match="expected a time above zero"):
            read(path, every_s=0.0)

    @pytest.mark.parametrize(
        ("text", "message", "line"),
        [
            ("t,lost\n0,1\n", r"no column time_s \(or _ms, _us, _ns\)", 1),
            ("time_s,lots\n0,1\n", '"lots": did you mean "lost"', 1),
            ("# a\ntime_s,lost\n0,2\n", 'lost: found "2", expected 0 or 1', 3),
            ("time_s,lost\n1,0\n0,1\n", "must not decrease", 3),
            ("time_s,lost\n1,0\nx,1\n", 'time_s: found "x", expected a number', 3),
            ("time_s,lost\n1\n", "1 values for 2 columns", 2),
            ("time_s,sent,lost\n1,5,6\n", "more packets lost", 2),
            ("time_s,loss\n1,1.5\n", "in 0 to 1", 2),
            ("time_s,time_ms,loss\n1,1,1\n", "both time_s and time_ms", 1),
            ("time_s,lost\n", "no rows", 1),
            ("time_s,rtt_ms\n1,40\n2,40000000\n", "more than an hour; is its unit right", 3),
            ("time_s,foo\n1,2\n", "expected one of .*, lost, received; --column foo=rtt_ms", 1),
            ("seq,lost\n1,0\n", "--every 20ms", 1),
            ("lost\n1\n", "--every 20ms", 1),
            ("timestamp,lost\n12.5,0\n", "--column timestamp=time_s says that they are seconds", 2),
            ("time,lost\n2026-01-02T03:04:05Z,0\nnow,0\n", 'found "now", expected a date with a', 3),
            ("date,lost\n2026-01-02,0\n2026-01-03T00:00Z,0\n", "expected a date without a time zone", 3),
            ("time,lost\n2026-01-02T03:04:05Z,0\n2026-01-02T03:04:04Z,0\n", "must not decrease", 3),
        ],
    )
    def test_errors_have_their_line(self, reading: Any, text: str, message: str, line: int) -> None:
        with pytest.raises(MeasurementError, match=message) as caught:
            reading(text)
        assert caught.value.line == line

    def test_round_trips_of_zero_are_unknown(self, reading: Any) -> None:
        measurement = reading("time_s,lost,rtt_ms\n0,0,0\n1,0,40\n2,1,\n")
        assert measurement.delays[0].delay_s.tolist() == [0.04]
        assert len(measurement.probes[0].lost) == 3
        notes = reading("time_s,rtt_ms\n0,0\n1,40\n2,41\n").notes
        assert any("1 of 3 rows have no round-trip time" in note for note in notes)


class TestMahimahi:
    def test_a_trace_is_a_capacity(self, reading: Any) -> None:
        rates = reading(samples.MAHIMAHI_TRACE).rates[0]
        assert rates.saturated
        assert rates.capacity
        assert float((rates.rate_bps * rates.interval_s).sum()) == 1000 * 1504 * 8
        assert rates.rate_bps[:-1].tolist() == pytest.approx(
            [500 * 1504 * 8] * (len(rates.rate_bps) - 1), rel=0.05
        )

    def test_a_trace_shorter_than_a_bin_has_the_rate_of_its_length(self, reading: Any) -> None:
        rates = reading("1\n3\n5\n").rates[0]
        assert rates.rate_bps.tolist() == pytest.approx([3 * 1504 * 8 / 0.005])

    def test_a_log_has_rates_delays_and_drops(self, reading: Any) -> None:
        measurement = reading(samples.mahimahi_log())
        capacity, carried = measurement.rates
        assert (capacity.saturated, carried.saturated, capacity.direction) == (True, False, UP)
        assert (capacity.capacity, carried.capacity) == (True, False)
        assert set(measurement.delays[0].delay_s) == {0.005}
        assert (int(measurement.counts[0].sent.sum()), int(measurement.counts[0].lost.sum())) == (300, 6)

    def test_errors_have_their_line(self, reading: Any) -> None:
        for text, message in (
            ("1\n2\n1\n3\n", "must not decrease"),
            ("1\n2\nx\n3\n", "is not a time"),
            ("0\n0\n0\n", "lasts 0 ms"),
        ):
            with pytest.raises(MeasurementError, match=message) as caught:
                reading(text, format="mahimahi")
            assert caught.value.line == 3


def test_the_summary_says_what_matters(reading: Any) -> None:
    text = reading(samples.irtt("..uu..d.u")).summary()
    assert (
        "round trip: 4 of 100 packets of 100 B lost (4.000%), 3 bursts of 1.33 packets on average, 2 at most"
        in text
    )
    assert "RTT: min 40.0 ms, median 43.0 ms" in text
    assert "  - Downlink packets have" in text
    assert repr(reading(samples.MAHIMAHI_TRACE)).splitlines()[1].startswith("  rate down: 6.0")


def test_the_summary_has_singulars() -> None:
    """One packet, one burst, one interval and one sample, at times one of many."""
    now, one = np.zeros(1), np.ones(1)
    every = Measurement(
        "one.csv",
        "csv",
        1.0,
        probes=(
            Probes(Direction.DOWN, now, np.array([True]), None),
            Probes(Direction.UP, np.arange(12_000.0), np.arange(12_000) < 1_500, None),
        ),
        counts=(Counts(Direction.DOWN, now, one, np.array([1]), np.array([0])),),
        losses=(LossSeries(Direction.DOWN, now, one, now),),
        delays=(Delays(Direction.ROUND_TRIP, now, one),),
    )
    assert every.summary().splitlines()[1:] == [
        "  down: 1 of 1 packet lost (100.000%), in one burst of 1 packet",
        "  up: 1,500 of 12,000 packets lost (12.500%), in one burst of 1,500 packets",
        "  down: 0 of 1 packet lost (0.000%), counted in 1 interval",
        "  down: mean loss 0.000% over 1 interval",
        "  RTT: min 1000.0 ms, median 1000.0 ms, p99 1000.0 ms of 1 sample",
    ]


def test_json_of_other_shapes_raises_nothing_else(reading: Any) -> None:
    dice = random.Random(21)
    documents = [
        json.loads(data)
        for data in samples.texts().values()
        if data[:2] in (b'{"', b"{ ") and b"\n" not in data
    ]
    assert len(documents) == 7
    read_well = refused = 0
    for document in documents:
        for _ in range(100):
            try:
                assert reading(json.dumps(samples.misshapen(document, dice))).summary()
                read_well += 1
            except MeasurementError:
                refused += 1
    assert read_well > 50
    assert refused > 50


def test_damaged_files_raise_nothing_else(tmp_path: Path) -> None:
    dice = random.Random(20)
    path = tmp_path / "damaged"
    read_well = refused = 0
    for name, data in samples.texts().items():
        for attempt in range(150):
            damaged = samples.mutated(data, dice)
            if attempt % 10 == 0:
                damaged = samples.mutated(gzip.compress(damaged), dice)
            path.write_bytes(damaged)
            try:
                measurement = read(path)
                assert measurement.summary()
                assert np.isfinite(measurement.duration_s), name
                read_well += 1
            except MeasurementError:
                refused += 1
    assert read_well > 500
    assert refused > 300
