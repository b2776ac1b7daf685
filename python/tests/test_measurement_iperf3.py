"""The JSON of iperf3 in all its shapes: what a direction carried, what limited it, and impossible counts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import measurement_samples as samples
import pytest

from lasthop.measurement import Direction, Measurement, MeasurementError, Rates, read


@pytest.fixture
def reading(tmp_path: Path) -> Any:
    """Return a function that writes a document or a text into a file, and reads it."""

    def written(contents: dict[str, Any] | str, **options: Any) -> Measurement:
        path = tmp_path / "measured"
        path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
        return read(path, **options)

    return written


def upload(rate_bps: float, buffered: int, streams: int = 1, **test: Any) -> dict[str, Any]:
    """Return the client's JSON of an upload over TCP: the socket's buffers take `buffered` bytes at once."""
    document = samples.iperf3("TCP")
    document["start"]["test_start"] |= {"num_streams": streams} | test
    each = int(rate_bps / 8 / streams)
    for second, interval in enumerate(document["intervals"]):
        row = interval["streams"][0]
        row["bytes"] = each + (buffered // streams if second == 0 else 0)
        interval["streams"] = [dict(row, socket=5 + 2 * k) for k in range(streams)]
    received = each * streams * 5
    document["end"] = {
        "streams": [],
        "sum_sent": {"bytes": received + buffered, "seconds": 5.0},
        "sum_received": {"bytes": received, "seconds": 5.06},
    }
    return document


def rate(measurement: Measurement) -> Rates:
    (rates,) = measurement.rates
    return rates


@pytest.mark.parametrize("streams", [1, 8])
@pytest.mark.parametrize("buffered", [0, 400_000, 6_000_000])
def test_a_direction_carries_at_most_what_its_receiver_got(streams: int, buffered: int, reading: Any) -> None:
    rates = rate(reading(upload(5e6, buffered, streams)))
    assert rates.rate_bps.max() == pytest.approx(5e6, rel=1e-3)
    assert rates.saturated


def test_each_direction_of_bidir_has_its_own_receiver(reading: Any) -> None:
    document = samples.iperf3("TCP", bidir=True)
    document["end"] = {
        "sum_sent": {"bytes": 6_250_000},
        "sum_received": {"bytes": 3_000_000},
        "sum_sent_bidir_reverse": {"bytes": 9_000_000},
        "sum_received_bidir_reverse": {"bytes": 5_000_000},
    }
    carried = {rates.direction: rates.rate_bps for rates in reading(document).rates}
    assert carried[Direction.UP].tolist() == pytest.approx([3_000_000 * 8 / 5], rel=1e-4)
    assert carried[Direction.DOWN].tolist() == pytest.approx([8e6] * 5)


@pytest.mark.parametrize(
    ("test", "start", "rows", "note"),
    [
        ({"target_bitrate": 5_000_000}, {}, {}, "-b limits it to 5 Mb/s"),
        ({"fqrate": 5_000_000}, {}, {}, "--fq-rate limits it to 5 Mb/s"),
        ({}, {"sock_bufsize": 65_536}, {}, "-w limits its window to 64 KiB"),
        ({}, {}, {"snd_cwnd": 200_000, "snd_wnd": 65_535}, "the receiver's window is smaller"),
    ],
)
def test_what_is_limited_does_not_saturate(
    test: dict[str, Any], start: dict[str, Any], rows: dict[str, Any], note: str, reading: Any
) -> None:
    document = upload(5e6, 0, **test)
    document["start"] |= start
    for interval in document["intervals"]:
        interval["streams"][0] |= rows
    measurement = reading(document)
    assert not rate(measurement).saturated
    assert any(note in said for said in measurement.notes)
    document["end"]["streams"] = [{"diskfile": {"sent": 1}}]
    assert not rate(reading(document)).saturated


def test_text_around_and_documents_one_after_another(reading: Any) -> None:
    document = upload(5e6, 0)
    plain = reading(document).summary()
    text = json.dumps(document, indent=1)
    for written in (
        f"warning: UDP block size 9000 exceeds TCP MSS 1448, may fragment\n{text}",
        f"{text}\niperf Done.\n",
        f"{text}\n{text}\n",
        text.replace('"socket": 5,', '"socket": 5, "lost_percent": -nan, "x": nan,'),
    ):
        assert reading(written).summary() == plain
    other = copy.deepcopy(document)
    other["intervals"][0]["streams"][0]["bytes"] += 1
    with pytest.raises(MeasurementError, match="2 tests of iperf3 in one file"):
        reading(f"{text}\n{json.dumps(other)}")


def test_an_interrupted_stream_of_events_is_read(reading: Any) -> None:
    document = samples.iperf3("TCP", reverse=True)
    events = [{"event": "start", "data": document["start"]}]
    events += [{"event": "interval", "data": interval} for interval in document["intervals"]]
    text = "\n".join(json.dumps(event) for event in events)
    assert len(rate(reading(text)).rate_bps) == 5
    assert len(rate(reading(text[:-40])).rate_bps) == 4
    with pytest.raises(MeasurementError, match="2 tests of iperf3"):
        reading(f"{text}\n{text.replace('1000000', '1000001')}")


def test_sctp_is_named(reading: Any) -> None:
    with pytest.raises(MeasurementError, match="a test of SCTP, which is not supported"):
        reading(upload(5e6, 0, protocol="SCTP"))


@pytest.mark.parametrize("packets", [20_000, 367_040])
def test_impossible_counts_are_not_read(packets: int, reading: Any) -> None:
    document = samples.iperf3("UDP", target=10_000_000)
    total = {"packets": packets, "lost_packets": packets - 2000, "jitter_ms": 1}
    document["end"] = {"streams": [{"udp": total}], "sum": total}
    with pytest.raises(MeasurementError, match=rf"{packets:,} packets of 1448 B cannot be in 6,250,000 B"):
        reading(document)
    # In a receiver's intervals; those of the whole test may be right.
    document = samples.iperf3("UDP", reverse=True, target=10_000_000)
    for interval in document["intervals"]:
        interval["streams"][0] |= {"packets": packets, "lost_packets": 10}
    assert reading(document).counts[0].sent.tolist() == [5000]
    document["end"] = {}
    measurement = reading(document)
    assert measurement.counts == ()
    assert any("cannot be in" in note for note in measurement.notes)


def test_a_sender_of_udp_knows_no_rate(reading: Any) -> None:
    document = samples.iperf3("UDP", target=100_000_000)
    document["end"] = {}
    with pytest.raises(MeasurementError, match="not all that a sender of UDP sends arrives"):
        reading(document)


def download(bytes_: list[int], interval_s: float, *, streams: int = 1, jitter_s: float = 0.0) -> Any:
    """Return the client's JSON of a download with these bytes in each interval, over all streams."""
    document = samples.iperf3("TCP", reverse=True)
    row, document["intervals"] = document["intervals"][0]["streams"][0], []
    for place, count in enumerate(bytes_):
        # The clusters of times straddle hundredths of a second.
        late_s = [0.005 + jitter_s * (stream - streams / 2) for stream in range(streams)]
        rows = [
            row
            | {"start": place * interval_s + late, "end": (place + 1) * interval_s + late}
            | {"bytes": count // streams, "socket": 5 + stream}
            for stream, late in enumerate(late_s)
        ]
        document["intervals"].append({"streams": rows})
    return document


@pytest.mark.parametrize("interval_s", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("streams", [1, 4])
def test_a_stall_over_several_intervals_is_one(streams: int, interval_s: float, reading: Any) -> None:
    each, rows = round(1.25e6 * interval_s), round(20 / interval_s)
    counts = [0 if 8 <= place * interval_s < 11 else each for place in range(rows)]
    notes = reading(download(counts, interval_s, streams=streams, jitter_s=2e-4)).notes
    assert any("stalled: little or nothing was carried for 3 s from 8" in note for note in notes)


def test_blocks_that_take_longer_than_an_interval_are_no_stall(reading: Any) -> None:
    """2 Mb/s in blocks of 128 KiB, of which one is read each half second; then five seconds without."""
    counts = [131_072 if place % 5 == 0 else 0 for place in range(300)]
    assert not any("stalled" in note for note in reading(download(counts, 0.1)).notes)
    counts[150:200] = [0] * 50
    assert any("carried for 5.4 s from 14.6" in note for note in reading(download(counts, 0.1)).notes)


@pytest.mark.parametrize("interval_s", [0.1, 1.0])
def test_parallel_streams_share_an_interval(interval_s: float, reading: Any) -> None:
    each = round(2.5e6 * interval_s)
    rates = rate(reading(download([each] * 20, interval_s, streams=4, jitter_s=3e-4)))
    assert rates.rate_bps.tolist() == pytest.approx([20e6] * 20, rel=0.02)


def test_a_stall_is_noted_and_is_no_overload(reading: Any) -> None:
    document = samples.iperf3("UDP", reverse=True, lost=(0, 0, 0, 0, 900), target=10_000_000)
    assert any("stalled" in note for note in reading(document).notes) is False
    document["intervals"][4]["streams"][0] |= {"end": 24.0, "seconds": 20.0, "bytes": 144_800}
    measurement = reading(document)
    assert any("carried for 20 s from 4 s on" in note for note in measurement.notes)
    assert not rate(measurement).saturated
    steady = samples.iperf3("UDP", reverse=True, lost=(200,) * 5, target=10_000_000)
    assert rate(reading(steady)).saturated


SERVER_TEXT = """Accepted connection from 192.0.2.1, port 48992
[  5] local 192.0.2.2 port 5201 connected to 192.0.2.1 port 45701
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   256 KBytes  2.10 Mbits/sec  0.006 ms  1/8 (12%)
[  6]   0.00-1.00   sec   256 KBytes  2.10 Mbits/sec  0.007 ms  0/8 (0%)  (omitted)
[SUM]   0.00-1.00   sec   512 KBytes  4.19 Mbits/sec  0.006 ms  1/16 (6%)
[  5]   1.00-2.00   sec  1.50 MBytes  12.6 Mbits/sec  0.006 ms  0/47 (0%)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-2.00   sec  1.75 MBytes  7.34 Mbits/sec  0.006 ms  1/55 (1.8%)  receiver
"""


def test_the_text_of_a_server_has_its_intervals(reading: Any) -> None:
    document = samples.iperf3("UDP", target=10_000_000) | {"server_output_text": SERVER_TEXT}
    document["start"]["test_start"]["blksize"] = 32768
    measurement = reading(document)
    (counts,) = measurement.counts
    assert (counts.sent.tolist(), counts.lost.tolist()) == ([8, 47], [1, 0])
    assert rate(measurement).rate_bps.tolist() == pytest.approx([256 * 8192, 1536 * 8192])
    assert any("three digits" in note for note in measurement.notes)
    both = samples.iperf3("TCP", bidir=True)
    both["server_output_text"] = (
        "[  5][RX-S]   0.00-5.00   sec  2.00 MBytes  3.36 Mbits/sec\n"
        "[  8][TX-S]   0.00-5.00   sec  9.00 MBytes  15.1 Mbits/sec    0   1.12 MBytes\n"
    )
    carried = {rates.direction: rates.rate_bps for rates in reading(both).rates}
    assert carried[Direction.UP].tolist() == pytest.approx([2 * 8 * 2**20 / 5])
    assert carried[Direction.DOWN].tolist() == pytest.approx([8e6] * 5)


def test_a_server_that_sends_may_be_all_that_is_left(reading: Any) -> None:
    """As of a file whose own intervals are damaged."""
    document = samples.iperf3("TCP", reverse=True, server_output=True)
    document["intervals"] = []
    document["end"] = {"sum_sent": {"bytes": 6_250_000}, "sum_received": {"bytes": 5_000_000}}
    assert rate(reading(document)).rate_bps.tolist() == pytest.approx([8e6], rel=1e-4)


def test_the_totals_of_bidir_are_of_their_own_direction(reading: Any) -> None:
    document = samples.iperf3("UDP", bidir=True, target=10_000_000)
    total = document["end"]["streams"][0]["udp"]
    document["end"]["streams"] = [
        {"udp": total | {"sender": True, "packets": 4000, "lost_packets": 12}},
        {"udp": total | {"sender": False, "packets": 5000, "lost_packets": 4}},
    ]
    counted = {counts.direction: counts for counts in reading(document).counts}
    assert (counted[Direction.UP].sent.tolist(), counted[Direction.UP].lost.tolist()) == ([4000], [12])
    assert int(counted[Direction.DOWN].sent.sum()) == 5000
