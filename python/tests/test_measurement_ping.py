"""The output of ping and fping in all its forms, and its totals as a check."""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import measurement_samples as samples
import numpy as np
import pytest

from lasthop.measurement import Measurement, MeasurementError, read


@pytest.fixture
def reading(tmp_path: Path) -> Any:
    """Return a function that writes a text into a file, and reads it."""

    def written(text: str, **options: Any) -> Measurement:
        path = tmp_path / "measured"
        path.write_text(text)
        return read(path, **options)

    return written


def lost(measurement: Measurement) -> tuple[int, int]:
    (probes,) = measurement.probes
    return int(probes.lost.sum()), len(probes.lost)


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("language", samples.LANGUAGES)
def test_iputils_speaks_every_language(language: str, stamps: bool, reading: Any) -> None:
    measurement = reading(samples.ping_in(language, stamps=stamps))
    # The last packet may have been in flight at the end.
    assert lost(measurement) == (14, 599)
    assert measurement.duration_s == pytest.approx(11.96, abs=0.04)
    assert measurement.probes[0].size_bytes == 84
    assert measurement.delays[0].delay_s.max() == pytest.approx(0.0318)
    assert any("1 packet with an ICMP error" in note for note in measurement.notes)


@pytest.mark.parametrize(
    ("header", "first"),
    [
        ("PING 192.0.2.1 (192.0.2.1) from 192.0.2.10 wwan0: 56(84) bytes of data.", 1),
        ("PING host.example(host.example (2001:db8::1)) from 2001:db8::2 wwan0: 56 data bytes", 1),
        ("PING 192.0.2.1 (192.0.2.1): 56 data bytes", 0),
        ("PING 192.0.2.1 (192.0.2.1) from 192.0.2.10: 56 data bytes", 0),
        ("PING6(56=40+8+8 bytes) 2001:db8::2 --> 2001:db8::1", 0),
        ("Ping host.example (192.0.2.1): 56(84) bytes.", 1),
    ],
)
def test_the_first_number_is_known_by_the_program(header: str, first: int, reading: Any) -> None:
    """None is lost before the first reply, and one if the first reply is the second number."""
    for begins, expected in ((first, 0), (first + 1, 1)):
        replies = [f"64 bytes from x: icmp_seq={k} ttl=57 time=20.5 ms" for k in range(begins, 30)]
        assert lost(reading("\n".join([header, *replies])))[0] == expected


def test_runs_of_cron_on_an_interface_are_answered(reading: Any) -> None:
    run = (
        "PING 192.0.2.1 (192.0.2.1) from 192.0.2.10 wwan0: 56(84) bytes of data.\n{}\n"
        "--- 192.0.2.1 ping statistics ---\n5 packets transmitted, {} received, {}% packet loss, time 804ms\n"
    )
    text = ""
    for minute in range(20):
        replies = [
            f"[{samples.T0 + 60 * minute + k / 5}] 64 bytes from 192.0.2.1: icmp_seq={k} ttl=57 time=40 ms"
            for k in range(1, 6)
        ]
        text += run.format("\n".join(replies), 5, 0)
    assert lost(reading(text)) == (0, 100)
    measurement = reading(text + run.format("", 0, 100))
    assert lost(measurement) == (5, 105)
    assert measurement.probes[0].sent_s[100] == pytest.approx(60 * 20, abs=0.01)
    assert any("1 run without any reply, with 5 lost packets" in note for note in measurement.notes)


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("silent", [{0}, {3}, {3, 4}, {1, 5, 9}, {8, 9}])
def test_runs_without_a_reply_are_lost(silent: set[int], stamps: bool, reading: Any) -> None:
    """Their totals state the number; their times are those of the gaps that they leave."""
    text = ""
    for minute in range(10):
        text += "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n"
        for seq in range(1, 6) if minute not in silent else ():
            stamp = f"[{samples.T0 + 60 * minute + seq}] " if stamps else ""
            text += f"{stamp}64 bytes from 192.0.2.1: icmp_seq={seq} ttl=57 time=40 ms\n"
        text += "\n--- 192.0.2.1 ping statistics ---\n5 packets transmitted, "
        answered = "0 received, 100%" if minute in silent else "5 received, 0%"
        text += f"{answered} packet loss, time 4005ms\n"
    (probes,) = reading(text).probes
    assert np.flatnonzero(probes.lost).tolist() == [5 * run + k for run in sorted(silent) for k in range(5)]
    if stamps:
        expected_s = [60 * minute + seq for minute in range(10) for seq in range(5)]
        assert probes.sent_s == pytest.approx(expected_s, abs=0.1)


def test_of_runs_of_one_packet_each_is_lost_or_not(reading: Any) -> None:
    text = ""
    for run in range(100):
        reply = "" if run % 10 == 5 else "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=40 ms\n"
        text += f"Mon Nov 30 21:00:01 UTC 2026\nPING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n{reply}\n"
        text += f"--- 192.0.2.1 ping statistics ---\n1 packets transmitted, {len(reply) and 1} received, "
        text += f"{0 if reply else 100}% packet loss, time 0ms\n"
    measurement = reading(text)
    assert lost(measurement) == (10, 100)
    assert np.flatnonzero(measurement.probes[0].lost).tolist() == list(range(5, 100, 10))
    assert any("10 runs without any reply, with 10 lost packets" in note for note in measurement.notes)


def test_packets_that_routers_refuse_are_said_so(reading: Any) -> None:
    """Whatever their reason, which each language has in words of its own."""
    header = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."
    errors = [f"From 192.168.1.1 icmp_seq={seq} Time to live exceeded" for seq in range(1, 61)]
    with pytest.raises(MeasurementError, match=r"60 packets and no replies, but 60 ICMP errors: .* `-t`"):
        reading("\n".join([header, *errors]))
    replies = [f"64 bytes from 192.0.2.1: icmp_seq={seq} ttl=57 time=40 ms" for seq in range(61, 99)]
    notes = reading("\n".join([header, *errors, *replies])).notes
    assert any("60 packets with an ICMP error counted as lost: they were not forwarded" in n for n in notes)


def test_totals_of_runs_without_a_reply_count(reading: Any) -> None:
    run = (
        "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\n--- 192.0.2.1 ping statistics ---\n"
        "5 packets transmitted, {} received, {}% packet loss, time 4005ms\n"
    )
    (counts,) = reading(run.format(5, 0) + run.format(0, 100) + run.format(4, 20)).counts
    assert counts.lost.tolist() == [0, 5, 1]


@pytest.mark.parametrize("middle", ["", ".....\x08 \x08\x08 \x08.\x08 \x08\n"], ids=["-q", "-f"])
def test_totals_without_packets_are_counts(middle: str, reading: Any) -> None:
    text = (
        f"PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n{middle}\n--- 192.0.2.1 ping statistics ---\n"
        "15000 packets transmitted, 14700 received, +3 duplicates, 2% packet loss, time 299980ms\n"
    )
    measurement = reading(text)
    (counts,) = measurement.counts
    assert (counts.sent.tolist(), counts.lost.tolist()) == ([15000], [300])
    assert measurement.duration_s == pytest.approx(299.98)
    assert reading(text.replace(", time 299980ms", ""), every_s=0.01).duration_s == pytest.approx(150.0)


def dated(form: str, step_s: float = 0.2, count: int = 600) -> str:
    """Return replies with a time before each line, one in 50 lost."""
    lines = ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."]
    for seq in range(1, count + 1):
        if seq % 50:
            now = datetime(2026, 11, 14, 23, 59, 0) + timedelta(seconds=seq * step_s)
            stamp = now.strftime(form).replace("%3f", f"{now.microsecond // 1000:03d}")
            lines.append(f"{stamp}64 bytes from 192.0.2.1: icmp_seq={seq} ttl=57 time=40.5 ms")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "form",
    [
        "%a %b %d %H:%M:%S UTC %Y: ",
        "%a %d %b %Y %I:%M:%S %p CET: ",
        "%b %d %H:%M:%S ",
        "%Y-%m-%dT%H:%M:%S+01:00 ",
        "[%Y-%m-%d %H:%M:%S.%f] ",
        "%Y.%m.%d_%H:%M:%S ",
        "%H:%M:%S.%f ",
        "%H:%M:%S,%%3f ",
        "%s.%f ",
        "%s ",
    ],
)
def test_a_time_before_each_line_is_read(form: str, reading: Any) -> None:
    """As of a shell, of `ts` or of macOS; over midnight."""
    measurement = reading(dated(form))
    assert lost(measurement) == (11, 599)
    assert measurement.duration_s == pytest.approx(598 * 0.2, abs=0.5)
    gaps = np.diff(measurement.probes[0].sent_s)
    assert gaps.max() < 0.25
    assert not any("No timestamps" in note for note in measurement.notes)


@pytest.mark.parametrize("step_s", [-3600.0, -0.4, -2.0, 5.0, 3600.0, 1.5e8])
@pytest.mark.parametrize("totals", [True, False])
def test_a_clock_that_is_set_is_taken_out(step_s: float, totals: bool, reading: Any) -> None:
    text = samples.ping(frozenset({500, 501, 502}), 1500, outstanding=False, summary=totals)
    stamp = re.compile(r"^\[(\d+\.\d+)\]", re.MULTILINE)
    later = samples.T0 + 15.0
    text = stamp.sub(
        lambda found: f"[{float(found[1]) + step_s * (float(found[1]) > later):.6f}]",
        text,
    )
    measurement = reading(text)
    assert lost(measurement)[0] == 3
    assert measurement.duration_s == pytest.approx(1499 * 0.02, abs=0.01)
    assert np.diff(measurement.probes[0].sent_s).max() < 0.03
    way = "forward" if step_s > 0 else "back"
    assert any(f"The clock was set {way} by" in note for note in measurement.notes)


def test_a_pause_that_the_totals_confirm_is_no_step(reading: Any) -> None:
    text = samples.ping(frozenset(), 1500, outstanding=False)
    stamp = re.compile(r"^\[(\d+\.\d+)\]", re.MULTILINE)
    later = samples.T0 + 15.0
    text = stamp.sub(lambda found: f"[{float(found[1]) + 60 * (float(found[1]) > later):.6f}]", text)
    measurement = reading(text.replace("time 29980ms", "time 89980ms"))
    assert measurement.duration_s == pytest.approx(89.98, abs=0.01)
    assert not any("clock" in note for note in measurement.notes)


def test_packets_that_are_too_large_are_not_lost(reading: Any) -> None:
    lines = ["PING 192.0.2.1 (192.0.2.1) 1472(1500) bytes of data."]
    lines += [
        f"[{samples.T0 + k / 50}] From 192.0.2.254 icmp_seq={k} Frag needed and DF set (mtu = 1428)"
        if k % 2
        else f"[{samples.T0 + k / 50}] 1480 bytes from 192.0.2.1: icmp_seq={k} ttl=57 time=40.1 ms"
        for k in range(1, 101)
    ]
    measurement = reading("\n".join(lines))
    assert lost(measurement) == (0, 50)
    assert any("50 packets larger than the path allows" in note for note in measurement.notes)


class TestHosts:
    """Pings of several hosts are no loss of one."""

    @staticmethod
    def of(host: str, stamps: bool) -> list[str]:
        text = samples.ping(frozenset({3, 9}), stamps=stamps, outstanding=False)
        return text.replace("192.0.2.1", host).splitlines()

    @pytest.mark.parametrize("stamps", [True, False])
    @pytest.mark.parametrize("end", [None, -4])
    def test_side_by_side(self, stamps: bool, end: int | None, reading: Any) -> None:
        one, other = self.of("192.0.2.1", stamps)[:end], self.of("192.0.2.7", stamps)[:end]
        lines = [line for pair in zip(one, other, strict=True) for line in pair]
        with pytest.raises(MeasurementError, match=r"pings of 2 hosts \(192\.0\.2\.1, 192\.0\.2\.7\)"):
            reading("\n".join(lines))

    def test_one_after_the_other(self, reading: Any) -> None:
        lines = self.of("192.0.2.1", True) + self.of("192.0.2.7", True)
        with pytest.raises(MeasurementError, match="pings of 2 hosts"):
            reading("\n".join(lines))

    def test_a_name_may_have_several_addresses(self, reading: Any) -> None:
        runs = [self.of(f"192.0.2.{k}", stamps=False) for k in (1, 7)]
        text = "\n".join(line for run in runs for line in run)
        named = re.sub(r"^PING \S+", "PING host.example", text, flags=re.MULTILINE)
        assert lost(reading(named)) == (4, 100)

    def test_one_damaged_address_is_none(self, reading: Any) -> None:
        lines = self.of("192.0.2.1", stamps=True)
        lines[20] = lines[20].replace("192.0.2.1", "192.0.9.1")
        assert lost(reading("\n".join(lines))) == (2, 50)

    def test_a_time_is_no_address(self, reading: Any) -> None:
        lines = [
            f"12:00:{k // 50:02d} 64 bytes from host: icmp_seq={k} ttl=57 time=20 ms" for k in range(1, 300)
        ]
        assert lost(reading("\n".join(["PING host (192.0.2.1) 56(84) bytes of data.", *lines])))[0] == 0


@pytest.mark.parametrize("named", [True, False])
def test_runs_without_times_follow_each_other(named: bool, reading: Any) -> None:
    """As of a loop in a shell, whose dates between the runs are left out."""
    run = samples.ping(frozenset({3, 9}), stamps=False, outstanding=False)
    between = "Mon Nov 16 12:00:00 UTC 2026\n" if named else ""
    measurement = reading((between + run) * 3)
    assert lost(measurement) == (6, 150)
    assert np.diff(measurement.probes[0].sent_s) == pytest.approx(np.full(149, 0.02))
    assert any("3 runs of ping; taken as one after the other" in note for note in measurement.notes)


@pytest.mark.parametrize("line", ["...", "[...]", "\u2026", "> ...", "<snip>", "[snipped]"])
@pytest.mark.parametrize("totals", [True, False])
def test_lines_that_someone_left_out_are_not_lost(line: str, totals: bool, reading: Any) -> None:
    lines = samples.ping(frozenset({3}), stamps=False, outstanding=False, summary=totals).splitlines()
    with pytest.raises(MeasurementError, match="lines are left out here") as refused:
        reading("\n".join([*lines[:10], line, *lines[20:]]))
    assert refused.value.line == 11
    # Nothing is missing there.
    assert lost(reading("\n".join([*lines[:10], line, *lines[10:]]))) == (1, 50)


@pytest.mark.parametrize("form", ["%s%f", "%s123", "%s123456789"])
def test_times_in_small_units(form: str, reading: Any) -> None:
    measurement = reading(dated(f"{form} ", step_s=1.0))
    assert measurement.duration_s == pytest.approx(598, abs=0.2)


def test_times_between_lines_are_no_times(reading: Any) -> None:
    """As of `ts -i`, whose times are those since the line before."""
    replies = [f"64 bytes from 192.0.2.1: icmp_seq={k} ttl=57 time=20 ms" for k in range(1, 200)]
    header = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."
    whole = [f"00:00:01 {line}" for line in replies]
    assert reading("\n".join([header, *whole])).duration_s == pytest.approx(198)
    parts = [f"00:00:0{k % 2}.{k % 7}8 {line}" for k, line in enumerate(replies)]
    with pytest.raises(MeasurementError, match="run back and forth, as the times between lines of `ts -i`"):
        reading("\n".join([header, *parts]))


def test_programs_beside_iputils(reading: Any) -> None:
    verbose = samples.ping(frozenset({3}), outstanding=False).replace(" ttl=57", " ident=47111 ttl=57")
    assert lost(reading(verbose)) == (1, 50)
    solaris = "PING 192.0.2.1: 56 data bytes\n" + "".join(
        f"64 bytes from host (192.0.2.1): icmp_seq={k}. time=20.1 ms\n" for k in range(20) if k != 5
    )
    totals = (
        "----192.0.2.1 PING Statistics----\n{} packets transmitted, 19 packets received, 5% packet loss\n"
    )
    assert lost(reading(solaris + totals.format(20))) == (1, 20)
    with pytest.raises(MeasurementError, match="the totals are damaged"):
        reading(solaris + totals.format(30))
    hping = "HPING 192.0.2.1 (eth0 192.0.2.1): S set, 40 headers + 0 data bytes\n" + "".join(
        f"len=44 ip=192.0.2.1 ttl=57 DF id=0 sport=443 flags=SA seq={k} win=64240 rtt=30.3 ms\n"
        for k in range(1, 20)
    )
    measurement = reading(
        f"{hping}\n--- 192.0.2.1 hping statistic ---\n"
        "20 packets transmitted, 19 packets received, 5% packet loss\n"
    )
    assert lost(measurement) == (1, 20)
    assert measurement.probes[0].size_bytes == 40


class TestTotals:
    """Lines that are missing or damaged are told by the last lines."""

    @pytest.mark.parametrize("cut", [slice(0, 0), slice(10, 11), slice(40, 45)])
    def test_missing_lines(self, cut: slice, reading: Any) -> None:
        lines = samples.ping(frozenset({3}), 50, outstanding=False).splitlines()
        assert lost(reading("\n".join(lines))) == (1, 50)
        gone = [line for line in lines[cut] if "time=" in line]
        del lines[cut]
        if gone:
            with pytest.raises(MeasurementError, match=r"received 49 replies; the file has 4[48] replies"):
                reading("\n".join(lines))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("50 packets", "49 packets", "the totals are damaged"),
            ("49 received, 2%", "48 received, 4%", "damaged or of another run"),
            ("49 received, 2%", "50 received, 0%", "missing or damaged"),
            ("49 received", "40 received", "the totals are damaged"),
            ("2% packet loss", "20% packet loss", "lost 0.2 of its packets, and received 49 replies to 50"),
            ("49 received", "51 received", "more replies than it sent"),
            ("time 980ms", "time 90980ms", "ran for 90.98 s, and by the times of its replies for about 0.98"),
        ],
    )
    def test_damaged_totals(self, old: str, new: str, message: str, reading: Any) -> None:
        text = samples.ping(frozenset({3}), 50)
        assert old in text
        with pytest.raises(MeasurementError, match=message):
            reading(text.replace(old, new))

    def test_a_host_that_replied_is_never_said_to_be_silent(self, reading: Any) -> None:
        silent = samples.ping(frozenset(range(1, 51)))
        with pytest.raises(MeasurementError, match="50 packets and no replies: the host does not reply"):
            reading(silent)
        # The same without the lines of the packets, but answered.
        text = silent.replace(" 0 received, 100%", " 44 received, 12%")
        assert int(reading(text).counts[0].lost.sum()) == 6

    def test_damage_does_not_change_the_count(self, reading: Any) -> None:
        """A damaged line is told by the totals; the count of losses never changes by more than one packet."""
        dice = random.Random(8)
        text = samples.ping(frozenset({30, 31, 77}), 400, outstanding=False)
        kept = refused = 0
        for _ in range(400):
            damaged = samples.mutated(text.encode(), dice).decode("utf-8", "replace")
            try:
                measurement = reading(damaged)
            except MeasurementError:
                refused += 1
                continue
            if "% packet loss" not in damaged or "PING 192" not in damaged or measurement.counts:
                continue
            kept += 1
            assert abs(lost(measurement)[0] - 3) <= 4, damaged
        assert kept > 50
        assert refused > 50


@pytest.mark.parametrize("stamps", [True, False])
def test_a_number_that_seems_to_wrap_is_damaged(stamps: bool, reading: Any) -> None:
    """A single wrong digit would be an outage of 65,536 packets, which took 15 s to fit."""
    text = samples.ping(count=50, stamps=stamps, outstanding=False, summary=False)
    assert "icmp_seq=30 " in text
    with pytest.raises(MeasurementError, match="which the times or the other packets do not confirm"):
        reading(text.replace("icmp_seq=30 ", "icmp_seq=60030 "))
    # A true outage, with times.
    outage = samples.ping(frozenset(range(1000, 4000)), 6000, stamps=True, outstanding=False, summary=False)
    assert lost(reading(outage)) == (3000, 6000)


class TestFping:
    @pytest.mark.parametrize("stamps", [True, False])
    def test_losses_and_times(self, stamps: bool, reading: Any) -> None:
        measurement = reading(samples.fping(frozenset({0, 5, 6, 49}), stamps=stamps))
        assert np.flatnonzero(measurement.probes[0].lost).tolist() == [0, 5, 6, 49]
        step_s = 0.02 if stamps else 1.0
        assert measurement.probes[0].sent_s.tolist() == pytest.approx(
            [k * step_s for k in range(50)], abs=1e-3
        )
        assert measurement.probes[0].size_bytes == 84
        assert reading(samples.fping(stamps=False), every_s=0.1).duration_s == pytest.approx(4.9)

    def test_totals_are_a_check(self, reading: Any) -> None:
        lines = samples.fping(frozenset({5})).splitlines()
        with pytest.raises(MeasurementError, match="received 49 replies; the file has 48"):
            reading("\n".join(lines[:20] + lines[21:]))
        with pytest.raises(MeasurementError, match="the totals are damaged"):
            reading(lines[-1].replace("50/49", "50/29"))
        (counts,) = reading(lines[-1]).counts
        assert (int(counts.sent[0]), int(counts.lost[0])) == (50, 1)

    def test_the_host_is_known(self, reading: Any) -> None:
        for text in (samples.fping(), samples.fping_json()):
            assert reading(text).host == "192.0.2.1"

    def test_lists_and_json(self, reading: Any) -> None:
        listed = "192.0.2.1 : " + " ".join("-" if k in (2, 7) else f"{20 + k % 3}.1" for k in range(2000))
        probes = reading(listed).probes[0]
        assert (np.flatnonzero(probes.lost).tolist(), len(probes.lost)) == ([2, 7], 2000)
        lines = samples.fping_json(frozenset({3})).splitlines()
        measurement = reading("\n".join(lines))
        assert np.flatnonzero(measurement.probes[0].lost).tolist() == [3]
        assert measurement.duration_s == pytest.approx(0.98, abs=0.01)
        with pytest.raises(MeasurementError, match="received 49 replies; the file has 48"):
            reading("\n".join(lines[1:]))

    def test_runs_and_intervals(self, reading: Any) -> None:
        """As of several runs in one file, and of `-Q`, whose last totals are those of all intervals."""
        run = samples.fping(frozenset({5}), stamps=False)
        assert lost(reading(run * 3)) == (3, 150)
        line = "192.0.2.1 : xmt/rcv/%loss = {}/{}/{}%, min/avg/max = 30.1/30.1/30.1\n"
        intervals = [(10, 10, 0), (10, 6, 40), (10, 10, 0), (30, 26, 13)]
        (counts,) = reading(
            "".join(f"[12:00:{k}0]\n{line.format(*each)}" for k, each in enumerate(intervals))
        ).counts
        assert (counts.sent.tolist(), counts.lost.tolist()) == ([10, 10, 10], [0, 4, 0])
        # Totals of an interval among the packets.
        lines = run.splitlines()
        interim = line.format(20, 19, 5).strip()
        assert lost(reading("\n".join([*lines[:20], interim, *lines[20:]]))) == (1, 50)

    @pytest.mark.parametrize("stamps", [True, False])
    def test_a_run_without_a_reply_is_lost(self, stamps: bool, reading: Any) -> None:
        run = samples.fping(count=40, stamps=stamps)
        silent = samples.fping(frozenset(range(40)), 40, stamps=stamps)
        probes = reading(run + silent + run).probes[0]
        assert (int(probes.lost.sum()), len(probes.lost)) == (40, 120)

    def test_several_hosts_are_refused(self, reading: Any) -> None:
        text = samples.fping() + samples.fping().replace("192.0.2.1", "192.0.2.2")
        with pytest.raises(MeasurementError, match=r"2 hosts \(192\.0\.2\.1, 192\.0\.2\.2\)"):
            reading(text)


@pytest.mark.parametrize(
    "text",
    [
        "\nPinging 192.0.2.1 with 32 bytes of data:\nRequest timed out.\n",
        "\nPinging host [192.0.2.1] with 32 bytes of data:\nReply from 192.0.2.1: bytes=32 time<1ms TTL=57\n",
        "\nPing wird ausgeführt für host [192.0.2.1] mit 32 Bytes Daten:\n"
        "Antwort von 192.0.2.1: Bytes=32 Zeit=9ms TTL=57\n",
        "Réponse de 192.0.2.1\xa0: octets=32 temps=9 ms TTL=57\n",
        "192.0.2.1의 응답: 바이트=32 시간=33ms TTL=114\n",
        "来自 192.0.2.1 的回复: 字节=32 时间=33ms TTL=114\n",
        "Reply from 2001:db8::1: time=20ms\n" * 9,
        "Esgotado o tempo limite do pedido.\n" * 9
        + "Pacotes: Enviados = 9, Recebidos = 0, Perdidos = 9 (100% de\n             perda),\n",
        "Délai d'attente dépassé.\nPaquets : envoyés = 1, reçus = 0, perdus = 1 (perte 100%),\n",
        "1 için\n    Paketler: Giden = 9, Gelen = 0, Kaybolan = 9 (%100 ..),\n",
    ],
)
def test_windows_is_named_in_any_language(text: str, reading: Any) -> None:
    with pytest.raises(MeasurementError, match="the output of ping on Windows has no sequence numbers"):
        reading(text)
