"""Output of other programs: what is read of iperf's text, mtr, Starlink and RIPE Atlas, and what is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measurement_samples as samples
import pytest

from lasthop.fitting import fit
from lasthop.measurement import Direction, Measurement, MeasurementError, read

Reading = Callable[..., Measurement]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    def written(contents: bytes | str | Any, **options: Any) -> Measurement:
        path = tmp_path / "file"
        if not isinstance(contents, bytes | str):
            contents = json.dumps(contents)
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return read(path, **options)

    return written


def _counted(measurement: Measurement) -> tuple[str, list[int], list[int]]:
    (counts,) = measurement.counts
    return str(counts.direction), counts.sent.tolist(), counts.lost.tolist()


def _mbps(measurement: Measurement) -> tuple[str, list[float]]:
    (rates,) = measurement.rates
    return str(rates.direction), (rates.rate_bps / 1e6).round(1).tolist()


IPERF_2 = """Server listening on UDP port 5001
[  3] local 192.0.2.1 port 5001 connected with 192.0.2.2 port 40000
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  3]  0.0- 1.0 sec  1.25 MBytes  10.5 Mbits/sec   0.022 ms    5/  893 (0.56%)
[  3]  1.0- 2.0 sec  1.25 MBytes  10.5 Mbits/sec   0.022 ms    0/  893 (0%)
[  3]  0.0- 2.0 sec  2.50 MBytes  10.5 Mbits/sec   0.022 ms    5/ 1786 (0.28%)
"""

IPERF_2_CLIENT = """Client connecting to 192.0.2.1, UDP port 5001
[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec
[  3] Sent 8917 datagrams
[  3] Server Report:
[  3]  0.0-10.0 sec  12.4 MBytes  10.4 Mbits/sec   0.011 ms   12/ 8917 (0.13%)
"""

IPERF_3_CLIENT = """Connecting to host 192.0.2.1, port 5201
[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-1.00   sec  1.19 MBytes  10.0 Mbits/sec  864
[  5]   1.00-2.00   sec  1.19 MBytes  10.0 Mbits/sec  864
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-2.00   sec  2.38 MBytes  10.0 Mbits/sec  0.000 ms  0/1728 (0%)  sender
[  5]   0.00-2.03   sec  2.36 MBytes  9.8 Mbits/sec  0.044 ms  17/1728 (0.98%)  receiver
"""

NUTTCP = """    1.1875 MB /   1.00 sec =    9.9613 Mbps     0 /  1216 ~drop/pkt  0.00 ~%loss
    1.1875 MB /   1.00 sec =    9.9613 Mbps     6 /  1222 ~drop/pkt  0.49 ~%loss

    2.3750 MB /   2.00 sec =    9.9613 Mbps 1 %TX 0 %RX 6 / 2438 drop/pkt 0.25 %loss
"""


@pytest.mark.parametrize(
    ("text", "sent", "lost"),
    [
        (samples.IPERF_TEXT, [843, 863, 35], [2, 7, 1]),
        (IPERF_2, [893, 893], [5, 0]),
        (IPERF_2_CLIENT, [8917], [12]),
        (IPERF_3_CLIENT, [1728], [17]),
        (NUTTCP, [1216, 1222], [0, 6]),
        (samples.iperf_csv(), [89] * 10, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        # With a time before each line.
        (
            "\n".join(f"Nov 30 03:00:0{row} {line}" for row, line in enumerate(IPERF_2.splitlines())),
            [893] * 2,
            [5, 0],
        ),
    ],
    ids=["iperf3 server", "iperf2 server", "iperf2 client", "iperf3 client", "nuttcp", "iperf2 csv", "ts"],
)
def test_the_text_of_a_test_over_udp_has_counts(
    text: str, sent: list[int], lost: list[int], reading: Reading
) -> None:
    measurement = reading(text)
    assert _counted(measurement) == ("up", sent, lost)
    assert measurement.format == "iperf-text udp"
    assert _mbps(measurement)[1][0] == pytest.approx(1.0 if sent[0] == 89 else 9.9, abs=0.7)


NETPERF = """MIGRATED TCP MAERTS TEST from 0.0.0.0 () port 0 AF_INET to 192.0.2.1 () port 0 AF_INET : demo
Interim result:   93.10 10^6bits/s over 1.000 seconds ending at 1620000000.123
Interim result:   90.10 10^6bits/s over 1.010 seconds ending at 1620000001.133
"""


@pytest.mark.parametrize("streams", [1, 3])
def test_the_text_of_a_test_over_tcp_has_what_arrived(streams: int, reading: Reading) -> None:
    assert _mbps(reading(samples.iperf_text_tcp(streams))) == ("up", [round(10.0663 * streams, 1)])
    text = samples.iperf_text_tcp(streams).replace(", port 5201", ", port 5201\nReverse mode, remote host", 1)
    text = text.replace(" Retr  Cwnd", "").replace("3.60 MB", "7.50 MB")
    assert _mbps(reading(text)) == (
        "down",
        [round(rate * streams, 1) for rate in (41.94304, 10.48576, 10.48576)],
    )
    assert _mbps(reading(NETPERF)) == ("down", [93.1, 90.1])


BOTH = (
    "Connecting to host h, port 5201\n[ ID][Role] Interval     Transfer     Bitrate         Retr  Cwnd\n"
    + "".join(
        f"[  5][TX-C]   {at}.00-{at + 1}.00   sec  0.60 MBytes  5.0 Mbits/sec    0    200 KBytes\n"
        f"[  7][RX-C]   {at}.00-{at + 1}.00   sec  2.38 MBytes  20.0 Mbits/sec\n"
        for at in range(5)
    )
    + "[  5][TX-C]   0.00-5.00   sec  3.00 MBytes  5.03 Mbits/sec    0    sender\n"
    "[  5][TX-C]   0.00-5.04   sec  2.40 MBytes  4.00 Mbits/sec         receiver\n"
    "[  7][RX-C]   0.00-5.00   sec  12.2 MBytes  20.5 Mbits/sec    0    sender\n"
    "[  7][RX-C]   0.00-5.04   sec  11.9 MBytes  19.8 Mbits/sec         receiver\n"
)


def test_each_direction_of_a_text_has_its_own_totals(reading: Reading) -> None:
    rates = {str(rates.direction): rates.rate_bps.mean() / 1e6 for rates in reading(BOTH).rates}
    assert rates == {"up": pytest.approx(4.03, abs=0.01), "down": pytest.approx(19.96, abs=0.01)}


def test_a_server_whose_lines_have_retransmissions_sends(reading: Reading) -> None:
    text = samples.iperf_text_tcp().replace("Connecting to host", "Accepted connection from")
    assert _mbps(reading(text))[0] == "down"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (samples.iperf_text_tcp() * 2, "several tests of iperf"),
        (
            IPERF_2.replace("  893 (0.56%)", " 1893 (0.56%)"),
            "the intervals have 2,786 packets and the totals 1,786",
        ),
        (IPERF_2.replace("    5/  893", "   95/  893"), "95 lost packets and the totals 5"),
        (samples.iperf_text_tcp().replace("1.25 MB", "4.25 MB"), "lines are missing or damaged"),
        (IPERF_2_CLIENT + IPERF_2, "several tests of iperf"),
        (samples.MTR.replace("192.0.2.1 ", "???       "), "the far end .* did not answer"),
        (samples.MTR + samples.MTR, "2 reports of mtr"),
        (samples.atlas() + samples.atlas(8), r"results of 2 probes \(7, 8\)"),
        (samples.MTR.replace("  40.0  99.0   5.0", ""), "hop 4 of mtr lacks columns"),
        ({"dishGetHistory": {"popPingDropRate": [0, 2]}}, "not all are between 0 and 1"),
    ],
)
def test_what_contradicts_itself_is_refused(text: Any, message: str, reading: Reading) -> None:
    with pytest.raises(MeasurementError, match=message):
        reading(text)


def test_the_far_end_of_mtr_has_totals(reading: Reading) -> None:
    document = {"report": {"hubs": [{"host": "192.0.2.1", "Loss%": 2.0, "Snt": "300", "Avg": 41.2}]}}
    named = samples.MTR.replace("|-- ", "|-- AS64496 ").replace("192.0.2.1 ", "a.example (192.0.2.1) ")
    # The columns of `-o "SL A"`.
    ordered = (
        "HOST: laptop Snt Loss% Avg\n  1.|-- 192.168.1.1  300 0.0% 1.5\n  2.|-- 192.0.2.1  300 2.0% 41.2\n"
    )
    for contents in (samples.MTR, samples.MTR_CSV, document, named, ordered):
        measurement = reading(contents)
        assert _counted(measurement) == ("round trip", [300], [6])
        assert measurement.delays[0].delay_s.tolist() == pytest.approx([0.0412])
        assert not measurement.doubts
    assert reading(samples.MTR, every_s=0.1).duration_s == pytest.approx(30)
    cut = samples.MTR[: samples.MTR.index("  4.|")]
    assert any("a router limits" in doubt for doubt in reading(cut).doubts)


def test_the_history_of_a_dish_begins_with_its_oldest_second(reading: Reading) -> None:
    measurement = reading(samples.starlink())
    (losses,) = measurement.losses
    assert losses.loss[:4].tolist() == [1, 0, 0.5, 0]
    assert losses.loss.sum() == 1.5
    assert len(measurement.delays[0].delay_s) == 899
    assert {rates.direction: rates.rate_bps[0] for rates in measurement.rates} == {
        Direction.DOWN: 1e6,
        Direction.UP: 1e5,
    }
    assert any("0.17% of the packets were lost" in doubt for doubt in fit([measurement]).doubts)
    started = samples.starlink()
    started["dishGetHistory"]["current"] = 500
    assert len(reading(started).losses[0].loss) == 500


def test_results_of_atlas_are_counts(reading: Reading) -> None:
    for contents in (samples.atlas(), "\n".join(map(json.dumps, samples.atlas()))):
        measurement = reading(contents)
        assert measurement.counts[0].lost.sum() == 10
        assert measurement.counts[0].interval_s[0] == 240
        assert len(measurement.delays[0].delay_s) == 290


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"RRD\0" + b"0003\0" * 9, "rrdtool"),
        (b"PAR1" + bytes(90), "export it as CSV"),
        (b"\x04\x22\x4d\x18" + bytes(90), "lz4"),
        (b"btsnoop\0" + bytes(90), "another program"),
        (b"x" * 257 + b"ustar\0" + bytes(90), "a tar archive"),
        (
            "Server ID,Sponsor,Server Name,Timestamp,Distance,Ping,Download,Upload\n1,a,b,c,1,2,3,4\n",
            "speed test",
        ),
        ('"server name","server id","idle latency","download"\n"a","1","20","100"\n', "speed test"),
        ("Ping: 20.1 ms\nDownload: 45.2 Mbit/s\nUpload: 5.1 Mbit/s\n", "speed test"),
        ("==== SUMMARY ====\nUplink capacity: 12 Mbps\nResponsiveness: Low (100 RPM)\n", "speed test"),
        ({"Key": "measurement", "Value": {"Test": "download"}}, "speed test"),
        ({"downloadSpeed": 45, "latency": 20, "uploadSpeed": 5}, "speed test"),
        ({"dl_throughput": 45, "ul_throughput": 2, "responsiveness": 9}, "speed test"),
        ({"qlog_version": "0.4", "traces": []}, "qlog"),
        ({"log": {"version": "1.2", "entries": []}}, "HAR"),
        ({"status": "success", "data": {"resultType": "matrix"}}, "Prometheus"),
        ([{"msm_id": 5, "type": "dns", "prb_id": 1}], "not of ping"),
        ("connected to 192.0.2.1:80 (250 bytes), seq=0 time= 45.10 ms\n" * 3, "httping"),
        ("--- owping statistics from [a]:1 to [b]:2 ---\nSID: 1\n100 sent, 2 lost\n", "owping"),
        ("ITGDec version 2.8.1\n----\nFlow number: 1\n", "D-ITG"),
        ("+CSQ: 18,99\nOK\n+CSQ: 17,99\nOK\n", "levels or events of a radio"),
        ("wlan0: CTRL-EVENT-DISCONNECTED bssid=02:00:00:00:00:01 reason=3\n" * 3, "levels or events"),
        ("eth0: flags=4163<UP>  mtu 1500\n        RX packets 12  bytes 99 (99.0 B)\n", "counters of a host"),
        ("Inter-|   Receive                  |  Transmit\n face |bytes packets\n", "counters of a host"),
        ("ping,url=192.0.2.1 packets_sent=1i,packets_received=1i 1700000000000000000\n" * 3, "InfluxDB"),
        ("<?xml version='1.0'?>\n<a>1</a>\n", "XML"),
        ("1 arg remaining, starting with 'a.pcap'\nTCP connection 1:\n", "expected the capture itself"),
        ("WinMTR statistics\n" * 3, "mtr --report"),
    ],
)
def test_programs_that_are_not_read_are_named(contents: Any, message: str, reading: Reading) -> None:
    with pytest.raises(MeasurementError, match=message) as error:
        reading(contents)
    assert "not a known measurement" not in str(error.value)
