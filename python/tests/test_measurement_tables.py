"""Tables and logs of other tools: CSV in its dialects, mm-link, ss with dates, Flent's UDP, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measurement_samples as samples
import numpy as np
import pytest
from conftest import Command

from lasthop.fitting import NoRateError, fit
from lasthop.measurement import Direction, Measurement, MeasurementError, read

Reading = Callable[..., Measurement]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """Return a function that writes a text into a file, and reads it."""

    def written(text: str, **options: Any) -> Measurement:
        path = tmp_path / "measured"
        path.write_text(text)
        return read(path, **options)

    return written


class TestRowsWithoutRoundTripTime:
    ROWS = range(200)

    def rows(self, absent: str, words: tuple[str, str] | None) -> str:
        text = "time_s,rtt_ms" + (",Status\n" if words else "\n")
        for row in self.ROWS:
            gone = row % 20 == 3
            text += f"{row / 10},{absent if gone else 40 + row % 5}"
            text += f",{words[gone]}\n" if words else "\n"
        return text

    @pytest.mark.parametrize("absent", ["", "-1", "NaN", "*", "timeout"])
    @pytest.mark.parametrize("words", [("OK", "TIMEOUT"), ("0.0", "lost"), ("", "Request timed out")])
    def test_a_column_says_that_they_were_lost(
        self, absent: str, words: tuple[str, str], reading: Reading
    ) -> None:
        measurement = reading(self.rows(absent, words))
        (probes,) = measurement.probes
        assert np.flatnonzero(probes.lost).tolist() == [row for row in self.ROWS if row % 20 == 3]
        assert any('by the column "status"' in note for note in measurement.notes)

    @pytest.mark.parametrize("absent", ["", "-1", "-", "0", "NA"])
    @pytest.mark.parametrize("words", [None, ("a", "a"), ("ok", "ok?")])
    def test_without_such_a_column_they_are_a_question(
        self, absent: str, words: tuple[str, str] | None, reading: Reading
    ) -> None:
        measurement = reading(self.rows(absent, words))
        assert measurement.probes == ()
        assert any("10 of 200 rows have no round-trip time" in note for note in measurement.notes)

    @pytest.mark.parametrize("absent", ["timeout", "*", "lost", "Request timed out."])
    def test_words_in_their_place_say_that_they_were_lost(self, absent: str, reading: Reading) -> None:
        (probes,) = reading(self.rows(absent, None)).probes
        assert np.flatnonzero(probes.lost).tolist() == [row for row in self.ROWS if row % 20 == 3]

    def test_a_column_of_losses_goes_first(self, reading: Reading) -> None:
        measurement = reading("time_s,rtt_ms,lost\n0,40,0\n1,,1\n2,,0\n")
        assert measurement.probes[0].lost.tolist() == [False, True, False]
        assert not any("have no round-trip time" in note for note in measurement.notes)


@pytest.mark.parametrize(
    "text",
    [
        "time_s;lost;rtt_ms\n0,00;0;42,5\n0,02;1;\n0,04;0;40,0\n",
        "time_s\tlost\trtt_ms\n0,00\t0\t42,5\n0,02\t1\t\n0,04\t0\t40,0\n",
        "sep=;\ntime_s;lost;rtt_ms\n0.00;0;42.5\n0.02;1;\n0.04;0;40.0\n",
        "time_s,lost,rtt_ms,\n0.00,0,42.5,\n0.02,1,,\n0.04,0,40.0,\n",
        "time,lost,rtt_ms\n2023.11.14_22.13.20.00,0,42.5\n2023.11.14_22.13.20.02,1,\n2023.11.14_22.13.20.04,0,40\n",
    ],
    ids=["decimal-comma", "tabs", "sep", "trailing-comma", "dots-in-dates"],
)
def test_dialects_are_read_alike(text: str, reading: Reading) -> None:
    measurement = reading(text)
    assert measurement.probes[0].lost.tolist() == [False, True, False]
    assert measurement.probes[0].sent_s.tolist() == pytest.approx([0, 0.02, 0.04])
    assert measurement.delays[0].delay_s.tolist() == pytest.approx([0.0425, 0.04])


@pytest.mark.parametrize("unit", ["", "000", "000000", "000000000", ".0"])
def test_times_since_1970_are_dates(unit: str, reading: Reading) -> None:
    """As of `date +%s%3N`, pandas or Grafana."""
    text = "timestamp,lost\n" + "".join(f"{1767323045 + row}{unit},0\n" for row in range(3))
    assert reading(text).probes[0].sent_s.tolist() == pytest.approx([0, 1, 2])


def test_losses_in_percent(reading: Reading) -> None:
    for column in ("loss", "loss_percent"):
        (series,) = reading(f"time_s,{column}\n0,2.5%\n1,0 %\n").losses
        assert series.loss.tolist() == pytest.approx([0.025, 0])


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("throughput_bps", "rate_bps"),
        ("throughput_kbps", "rate_kbps"),
        ("Download (Mbit/s)", "rate_mbps"),
        ("BANDWIDTH_MBPS", "rate_mbps"),
        ("bits_per_second", "rate_bps"),
        ("throughput", "rate_mbps"),
        ("latency_us", "rtt_us"),
        ("Latency [\u00b5s]", "rtt_us"),
        ("avg_rtt_sec", "rtt_s"),
        ("latency", "rtt_ms"),
        ("rtt", "rtt_ms"),
        ("packet_loss_pct", "loss_percent"),
    ],
)
def test_what_a_column_may_be_has_its_unit(name: str, meaning: str, reading: Reading) -> None:
    with pytest.raises(MeasurementError) as refused:
        reading(f"time_s,{name}\n0,1\n1,2\n")
    assert f"{name.lower()}={meaning}" in str(refused.value)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("name", ["throughput_MBps", "throughput_kB/s", "bytes_per_second", "Rate (Mbyte/s)"])
def test_bytes_are_no_bits(name: str, reading: Reading) -> None:
    with pytest.raises(MeasurementError, match=r"is in bytes: write bits") as refused:
        reading(f"time_s,{name}\n0,1\n1,2\n")
    assert f'"{name}"' in str(refused.value)


def test_the_unit_of_a_time_is_in_its_name(reading: Reading) -> None:
    with pytest.raises(MeasurementError, match="--column timestamp_ms=time_ms"):
        reading("timestamp_ms,lost\n1764450000000,0\n1764450000020,1\n")


@pytest.mark.parametrize("cells", [("999,5", "12.500"), ("12.500", "999,5")])
def test_points_between_thousands_are_no_decimal_points(cells: tuple[str, str], reading: Reading) -> None:
    with pytest.raises(MeasurementError, match="one decimal sign and no sign between thousands"):
        reading(f"time_s;rate_kbps\n0;{cells[0]}\n1;{cells[1]}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.0 2.81\n1.01 2.00\n2.02 2.76\n", "columns of numbers without names; put their names"),
        ("0.0;2.81\n1.01;2.00\n", "columns of numbers without names"),
        (
            "\nTracing route to h [192.0.2.1]\nover a maximum of 30 hops:\n\n  1  1 ms  <1 ms  1 ms  h\n",
            "traceroute",
        ),
        (
            "traceroute to h (192.0.2.1), 30 hops max\n 1  h (192.0.2.254)  0.4 ms\n",
            "the output of traceroute",
        ),
        ("Nov 14, 12:00 link, up\nNov 14, 12:01 down\nok, then, more\n", "not a known measurement"),
        ("a,b\n1,2\n", "--column NAME=time says what a column is"),
        ("a,sampled date\n1,2\n", "--column 'sampled date=time' says what a column is"),
        ('level=info msg="a, b"\nlevel=info msg="a, c"\n', "not a known measurement"),
        (
            "HOST: laptop  Loss%   Snt   Last\n  1.|-- 192.0.2.1  0.0%  10\n",
            "hop 1 of mtr lacks columns: expected Loss% Snt Last",
        ),
        ('{"report": {"mtr": {"src": "a"}, "hubs": []}}', "the JSON of mtr without hops"),
        ('{"download": 1, "upload": 2, "ping": 3}', "the JSON of a speed test, a summary"),
        ("  SEQ HOST   SIZE TTL TIME       STATUS\n    0 192.0.2.1   56  57 30ms\n", "of RouterOS"),
        ("Sending 5, 100-byte ICMP Echos to 192.0.2.1:\n!!!.!\n", "of a Cisco router"),
        (
            "10:00:00.123456 IP 10.0.0.1.443 > 10.0.0.2.50000: Flags [.], seq 0:1448, ack 1, length 1448\n",
            "packets as text, .* `tcpdump ",
        ),
        ("2026-01-02 10:00:00.123456 wlan0 In  IP6 fd00::1.443 > fd00::2.5: Flags [.]\n", "packets as text"),
        ("    1   0.000000 10.0.0.1 \u2192 10.0.0.2     TCP 1514 443 \u2192 5 [ACK]\n", "packets as text"),
        ('"No.","Time","Source","Length"\n"1","0.000000","10.0.0.1","1514"\n', "packets as text"),
        ("  % Total    % Received % Xferd  Average Speed\n", "the output of a download.* --url URL"),
        ("file.bin  12%[===>      ]  12.0M  1.19MB/s    eta 8s\n", "the output of a download"),
        ("MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0\n", "netperf or nuttcp, a summary"),
        ("Station 02:00:00:00:01:00 (on wlan0)\n\ttx retries:\t5\n", "counters of a host"),
        ("Ip:\n    Forwarding: 2\nTcp:\n    5 segments retransmitted\n", "counters of a host"),
        ("ARPING 192.0.2.1\n", "not supported \\(arping"),
        ("time_s,pop_ping_drop_rate\n0,0.5\n1,0\n", "--column pop_ping_drop_rate=loss says"),
    ],
)
def test_refusals_name_the_cause(text: str, message: str, reading: Reading) -> None:
    with pytest.raises(MeasurementError, match=message):
        reading(text)


def test_every_unit_of_a_time_is_known(reading: Reading) -> None:
    for unit, of_second in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        rows = "".join(f"{k * 0.2 * of_second:.12g},{0.04 * of_second:.12g}\n" for k in range(3))
        (delays,) = reading(f"time_{unit},rtt_{unit}\n{rows}").delays
        assert delays.time_s.tolist() == pytest.approx([0, 0.2, 0.4])
        assert delays.delay_s.tolist() == pytest.approx([0.04] * 3)


class TestNumbers:
    """Numbers of packets, of which the lost ones have no row."""

    def test_packets_without_a_row_were_lost(self, reading: Reading) -> None:
        measurement = reading("time_s,seq,rtt_ms\n0,10,41\n0.1,12,41\n0.4,18,41\n0.5,20,41\n0.6,22,40\n")
        (found,) = measurement.probes
        assert found.direction is Direction.ROUND_TRIP
        assert found.lost.tolist() == [False, False, True, True, False, False, False]
        assert found.sent_s.tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        assert "2 packets without a row were lost, by the column `seq`." in measurement.notes

    def test_a_stated_interval_is_that_of_the_numbers(self, reading: Reading) -> None:
        (found,) = reading("seq,rtt_ms\n0,41\n1,41\n3,41\n", every_s=0.2).probes
        assert found.sent_s.tolist() == pytest.approx([0, 0.2, 0.4, 0.6])
        assert found.lost.tolist() == [False, False, True, False]

    def test_a_row_without_a_reply_is_no_gap(self, reading: Reading) -> None:
        measurement = reading("time_s,seq,rtt_ms\n0,0,41\n1,1,\n2,2,41\n")
        assert measurement.probes == ()
        assert "no losses are read" in measurement.notes[0]

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ("0,1\n1,1\n2,2\n", "packet numbers that grow, each once"),
            ("0,2\n1,1\n", "packet numbers that grow"),
            ("0,1\n1,1449\n2,2900\n", "leave out 2,897 packets and have 3: are they of packets"),
            ("0,1\n1,1.5\n", "seq: expected a whole number\n"),
        ],
    )
    def test_other_numbers_are_refused(self, rows: str, message: str, reading: Reading) -> None:
        with pytest.raises(MeasurementError, match=message):
            reading(f"time_s,seq\n{rows}")


class TestColumns:
    def test_a_column_is_what_the_user_says(self, reading: Reading) -> None:
        text = "when,pop_ping_drop_rate,Latency\n0,0.5,40\n1,0,41\n"
        columns = {"when": "time_s", "pop_ping_drop_rate": "loss", "latency": "rtt_ms"}
        measurement = reading(text, columns=columns)
        assert measurement.losses[0].loss.tolist() == [0.5, 0]
        assert measurement.delays[0].delay_s.tolist() == pytest.approx([0.04, 0.041])

    def test_wrong_statements_are_refused(self, reading: Reading) -> None:
        text = "time_s,rate_mbps,x\n0,1,2\n1,2,3\n"
        with pytest.raises(ValueError, match='there is no column "rtt_m"; did you mean "rtt_ms"'):
            reading(text, columns={"x": "rtt_m"})
        with pytest.raises(MeasurementError, match='no column "y" among time_s, rate_mbps, x'):
            reading(text, columns={"y": "rtt_ms"})
        with pytest.raises(MeasurementError, match="state the unit, --column x=rate_mbps"):
            reading(text, columns={"x": "capacity"})

    def test_a_rate_that_varies_is_a_question_or_varies(self, tmp_path: Path, command: Command) -> None:
        dice = np.random.default_rng(5)
        path = tmp_path / "rates.csv"
        rates = 27 * np.exp(dice.normal(0, 1.1, 600))
        path.write_text("time_s,rate_mbps\n" + "".join(f"{k},{rate:.3f}\n" for k, rate in enumerate(rates)))
        link = fit(path)
        assert link.rate_bps is None
        assert any("varies too much to be that of a constant link" in note for note in link.notes)
        with pytest.raises(NoRateError):
            link.scenario()
        done = command("fit", str(path), "--column", "rate=capacity", "--out", str(tmp_path / "o"), "--json")
        found = json.loads(done.stdout)
        assert found["rate_bps"] == pytest.approx(rates.mean() * 1e6, rel=1e-3)
        assert "lognormal" in found["scenario"]
        done = command("fit", str(path), "--column", "rate")
        assert done.returncode == 2
        assert "expected NAME=MEANING" in done.stderr

    def test_a_steady_throughput_remains_a_rate(self, reading: Reading) -> None:
        text = "time_s,rate_mbps\n" + "".join(f"{k},{8 + k % 3}\n" for k in range(100))
        assert fit(reading(text)).rate_bps == pytest.approx(10e6)


@pytest.mark.parametrize("word", ["Uplink", "uplink", "UPLINK"])
def test_mm_link_says_its_direction(word: str, reading: Reading) -> None:
    measurement = reading(samples.mahimahi_log().replace("(uplink)", f"({word})"))
    assert {rates.direction for rates in measurement.rates} == {Direction.UP}
    assert not any("no direction" in note for note in measurement.notes)


@pytest.mark.parametrize(
    "form", ["Tue Nov 14 22:13:{:02d} UTC 2023", "Di 14. Nov 22:13:{:02d} CET 2023", "22:13:{:02d}"]
)
def test_ss_after_dates_in_any_form(form: str, reading: Reading) -> None:
    lines = samples.ss().splitlines()
    text = "\n".join(
        form.format(place // 3) if line.startswith(str(samples.T0)[:9]) else line
        for place, line in enumerate(lines)
    )
    measurement = reading(text)
    assert measurement.duration_s == 29
    assert int(measurement.counts[0].lost.sum()) == 2


def test_flent_over_udp_has_no_rate(reading: Reading) -> None:
    document = samples.flent()
    document["results"]["UDP upload"] = [100.0] * 100
    measurement = reading(json.dumps(document))
    assert {rates.direction for rates in measurement.rates} == {Direction.DOWN}
    assert any("what its sender sent" in note for note in measurement.notes)


def test_endless_files_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="a device and not a file"):
        read("/dev/zero")
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(MeasurementError, match="larger than 1024 MiB"):
        read(path)
