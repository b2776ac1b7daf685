"""`lasthop measure`: programs made up here, its file, its scores, and real programs over a link."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measurement_samples as samples
import numpy as np
import pytest
from conftest import ROOT, interrupt, run_command
from test_emulate import REFUSAL

from lasthop import fitting
from lasthop.cli.commands import measure as command
from lasthop.cli.streams import emit
from lasthop.fitting import FittedLink
from lasthop.measurement import Delays, Direction, Measurement, MeasurementError, Probes, Rates, irtt, read
from lasthop.measurement.format import Options
from lasthop.measurement.measured import Phase, document
from lasthop.measurement.source import Source, floats
from lasthop.measuring import Plan, UnmeasuredError, locate, measure, outcome, throughput, tools
from lasthop.measuring.programs import Program, run
from lasthop.measuring.scores import RAMP_S
from lasthop.measuring.tools import ToolError
from lasthop.race import RaceError

Fake = Callable[..., None]

ROUTER = "From 192.0.2.254 icmp_seq=1 Time to live exceeded\n"
PLAN = Plan("host.example", idle_s=1.0, load_s=5.0)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Return a function that makes a program, and let no others be found."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))

    def make(name: str, output: str = "", *, hop: str = "", code: int = 0, script: str = "") -> None:
        for suffix, text in (("out", output), ("hop", hop)):
            (directory / f"{name}.{suffix}").write_text(text)
        shown = f"case \"$*\" in *' -W '*' -t '*) /bin/cat '{directory}/{name}.hop'; exit;; esac\n"
        script = script or f"/bin/cat '{directory}/{name}.out'; exit {code}"
        (directory / name).write_text(f"#!/bin/sh\n{shown}{script}\n")
        (directory / name).chmod(0o755)

    return make


# -- The file ----------------------------------------------------------------------------------------


def test_the_file_has_what_was_measured(tmp_path: Path) -> None:
    text = json.dumps(samples.irtt("..uuu.d.." + "." * 85 + "du????")).encode()
    probed = irtt.READER.read(Source("irtt", text), Options())
    rates = Rates(Direction.UP, np.array([0.0]), np.array([8.0]), np.array([4e6]), False)
    phases = [Phase(0.0, None, probed, probed), Phase(30.0, Direction.UP, probed, None, rates, ("irtt",))]
    written = document("h", "2026-01-02T03:04:05Z", phases, last_hop="r", interrupted=True, notes=["Note."])
    file = tmp_path / "link.json"
    file.write_text(json.dumps(written))
    found = read(file)
    assert found.notes == ("Note.", "The measurement was interrupted.")
    assert found.last_hop is not None
    (part,) = found.under_load
    for each in (found, part, found.last_hop):
        assert len(each.probes) == len(probed.probes) == 3
        for ours, theirs in zip(each.probes, probed.probes, strict=True):
            assert (ours.direction, ours.size_bytes) == (theirs.direction, theirs.size_bytes)
            assert ours.lost.tolist() == theirs.lost.tolist()
            assert ours.sent_s == pytest.approx(theirs.sent_s)
        assert each.delays[0].delay_s == pytest.approx(probed.delays[0].delay_s)
    assert (part.rates[0].direction, part.rates[0].saturated) == (Direction.UP, False)
    assert part.rates[0].rate_bps.tolist() == [4e6]


def test_rounds_follow_each_other_and_loads_stay_apart(tmp_path: Path) -> None:
    file = tmp_path / "link.json"
    file.write_text(json.dumps(samples.measured()))
    found = read(file)
    trips, up, down = found.probes
    assert (len(trips.lost), len(up.lost), len(down.lost)) == (100, 99, 98)
    assert np.flatnonzero(trips.lost).tolist() == [3, 7, 8, 55, 99]
    assert (np.flatnonzero(up.lost).tolist(), trips.sent_s[50]) == ([7], 60.0)
    assert int(down.lost.sum()) == 3
    assert found.summary().count("under load down, ") == 5
    link = fitting.fit(found, replicates=20)
    assert link.down is not None
    assert (link.down.lost, link.last_hop_rtt_s) == (3, 0.04)
    assert link.rate_bps == pytest.approx(9e6, rel=0.01)
    assert link.files == (str(file),)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 2, "version 2 of the format; expected 1"),
        (("phases",), [], "no probes of the link without load"),
        (("phases", 0, "begins_s"), -1, "`begins_s` of phase 0"),
        (("phases", 0, "load"), "sideways", "`load` of phase 0"),
        (("phases", 0, "load"), [], "`load` of phase 0"),
        (("phases", 0, "far", "sent_s", 5), 0.0, "`sent_s` in `far` of phase 0"),
        (("phases", 0, "far", "sent_s", 5), "x", "`sent_s` in `far` of phase 0"),
        (("phases", 0, "far", "rtt_s", 5), -0.1, "`rtt_s` in `far` of phase 0"),
        (("phases", 0, "far", "rtt_s"), [0.1], "`rtt_s` in `far` of phase 0"),
        (("phases", 0, "far", "directions_of"), 51, "`directions_of` and `lost_up`"),
        (("phases", 0, "far", "lost_up"), [50], "`directions_of` and `lost_up`"),
        (("phases", 0, "far", "lost_up"), [4], "a probe that was answered"),
        (("phases", 0, "throughput"), {}, "a throughput without a load"),
        (("phases", 2, "throughput", "rate_bps"), [1e6], "`throughput.rate_bps` of phase 2"),
        (("phases", 2, "throughput", "interval_s", 0), -1, "`throughput.interval_s` of phase 2"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, path: tuple[Any, ...], value: Any, message: str) -> None:
    document: Any = samples.measured()
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file = tmp_path / "link.json"
    file.write_text(json.dumps(document))
    with pytest.raises(MeasurementError, match=message):
        read(file)


# -- Programs ----------------------------------------------------------------------------------------


def test_irtt_and_iperf3_are_preferred(fake: Fake) -> None:
    fake("irtt", json.dumps(samples.irtt("..u.d" + "." * 45, 50)))
    fake("ping", samples.ping(frozenset({4})), hop=ROUTER)
    fake("iperf3", json.dumps(samples.iperf3(reverse=True) | {"end": {"x": 1}}))
    session = measure(PLAN)
    assert (session.last_hop, [phase.load for phase in session.phases]) == ("192.0.2.254", [None, "down"])
    phase = session.phases[0]
    assert [each.direction for each in phase.far.probes] == ["round trip", "up", "down"]
    assert phase.last_hop is not None
    assert int(phase.last_hop.probes[0].lost.sum()) == 1
    assert phase.commands[0].startswith("irtt client -i 20ms -d 1000ms")
    # What the made-up iperf3 says of the load up is a load down.
    assert session.notes == ["The load up was not measured: iperf3: nothing was carried."]


def test_without_servers_ping_is_left(fake: Fake) -> None:
    fake("irtt", script="echo 'Error: no reply from server' >&2; exit 1")
    fake("iperf3", json.dumps({"start": {}, "intervals": [], "end": {}, "error": "unable to connect"}))
    fake("ping", samples.ping(), hop="")
    session = measure(PLAN)
    assert [phase.load for phase in session.phases] == [None]
    assert session.notes == [
        "No router answered at hop 1, so nothing tells the last hop from the rest.",
        "Round trips by ping, which do not show the direction of a loss: no irtt server answers (`irtt "
        "server -i 0` there).",
        "No load, so no rates and no queues: no iperf3 server answers (`iperf3 -s` at host.example), and no "
        "--url names a file.",
    ]


def test_missing_programs_are_named(fake: Fake) -> None:
    with pytest.raises(UnmeasuredError, match=r"apt install irtt\); ping .* apt install iputils-ping\)"):
        measure(PLAN)
    fake("ping", samples.ping(), hop=ROUTER)
    notes = " ".join(measure(PLAN).notes)
    assert "apt install irtt" in notes
    assert "apt install iperf3" in notes


def test_a_download_gives_the_rate(fake: Fake) -> None:
    fake("ping", samples.ping(), hop=ROUTER)
    fake("curl", script="for i in 1 2 3 4 5 6 7 8; do printf '%0125000d' 0; /bin/sleep 0.5; done")
    session = measure(Plan("host.example", idle_s=1.0, load_s=5.0, url="http://host.example/file"))
    (phase,) = [phase for phase in session.phases if phase.load is Direction.DOWN]
    assert phase.rates is not None
    assert float(np.median(phase.rates.rate_bps)) == pytest.approx(2e6 * 1500 / 1448, rel=0.3)
    assert "the rate up is unknown: iperf3 is not installed" in session.notes[-1]


def test_a_download_ends_after_its_bytes() -> None:
    program = Program(("cat", "/dev/zero"), 30.0, most_bytes=1_000_000)
    begun_s = time.monotonic()
    assert run([program]) is False
    assert 1_000_000 <= sum(count for _, count in program.arrivals) < 1_100_000
    assert time.monotonic() - begun_s < 10
    with pytest.raises(ToolError, match="a larger --bytes"):
        tools.downloaded(program)


@pytest.mark.parametrize("ends", ["", "trap '' INT; "])
def test_a_program_that_hangs_is_ended(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lasthop.measuring.programs._LEAVE_S", 0.3)
    program = Program(("sh", "-c", f"{ends}while :; do sleep 0.1; done"), 0.2)
    begun_s = time.monotonic()
    run([program])
    assert time.monotonic() - begun_s < 10


@pytest.mark.parametrize(
    ("name", "output", "message"),
    [
        ("ping", "", "ping: no probes"),
        ("ping", "\x00\xff" * 100, "ping: no probes"),
        ("ping", samples.ping(frozenset(range(1, 51))), "the host does not reply"),
        ("irtt", '{"round_trips": [', "irtt: not valid JSON"),
        ("irtt", json.dumps(samples.irtt("?" * 100)), "no replies with round-trip times"),
        ("irtt", "[" * 100_000, "irtt: no probes"),
    ],
)
def test_probes_that_say_nothing_are_no_measurement(name: str, output: str, message: str) -> None:
    program = Program((name,), 1.0, output=output.encode())
    with pytest.raises(ToolError, match=message):
        tools.probed(program)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "iperf3: no output"),
        ('{"start": {}, "error": "unable to connect"}', "unable to connect"),
        ("{}" * 3, "iperf3: "),
    ],
)
def test_loads_that_carried_nothing_are_none(output: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        tools.carried(Program(("iperf3",), 1.0, output=output.encode()), Direction.DOWN)


@pytest.mark.parametrize(("pace_bps", "saturated"), [(0, True), (100_000_000, True), (2_000_000, False)])
def test_only_a_load_at_its_pace_is_limited_by_it(pace_bps: int, saturated: bool) -> None:
    made = samples.iperf3(reverse=True)
    made["start"]["test_start"]["target_bitrate"] = pace_bps
    made["start"]["tcp_mss_default"] = 1448
    plain = samples.iperf3(reverse=True)
    rates = tools.carried(Program(("iperf3",), 1.0, output=json.dumps(made).encode()), Direction.DOWN)
    assert rates.saturated is saturated
    carried = sum(each["streams"][0]["bytes"] for each in plain["intervals"])
    assert float((rates.rate_bps * rates.interval_s).sum()) == pytest.approx(8 * carried * 1500 / 1448)


# -- Scores ------------------------------------------------------------------------------------------


def fates(lost: Any) -> Probes:
    """Return probes every 20 ms."""
    flags = np.asarray(lost, dtype=np.bool_)
    return Probes(Direction.ROUND_TRIP, floats(0.02 * place for place in range(len(flags))), flags, 200)


def test_losses_are_placed() -> None:
    dice = np.random.default_rng(1)
    bad = np.repeat(dice.random(500) < 0.05, 10)
    clean = np.zeros(5000, dtype=np.bool_)
    same = locate(fates(bad), fates(bad))
    assert same is not None
    assert (same.place, same.share) == ("last hop", 1.0)
    beyond = locate(fates(clean), fates(bad))
    assert beyond is not None
    assert (beyond.place, beyond.share, beyond.low) == ("beyond", 0.0, 0.0)
    half = locate(fates(bad & (np.arange(5000) < 2500)), fates(bad))
    assert half is not None
    assert half.place == "undetermined"
    assert half.low < 0.5 < half.high
    assert locate(fates(bad), fates(clean)) is None


def test_a_single_burst_places_nothing() -> None:
    lost = np.arange(1000) // 10 == 50
    found = locate(fates(np.zeros(1000)), fates(lost))
    assert found is not None
    assert found.place == "undetermined"


def test_the_worse_of_latency_and_loss_is_the_outcome() -> None:
    trips = Delays(Direction.ROUND_TRIP, fates(np.zeros(1000)).sent_s, np.full(1000, 0.05))
    lost = np.arange(1000) % 40 == 0
    assert outcome(Measurement("x", "ping", 20.0, delays=(trips,))) == 100
    lossy = Measurement("x", "ping", 20.0, probes=(fates(lost),), delays=(trips,))
    assert outcome(lossy) == pytest.approx(100 * (0.05 - 0.025) / 0.049)


def test_a_throughput_bounds_the_rate_as_long_as_a_queue_stands() -> None:
    def part(*rates: float, queued: float = 1.0, lost: float = 0.0, saturated: bool = True) -> Measurement:
        each = np.full(len(rates), 8.0 / len(rates))
        carried = Rates(Direction.DOWN, np.cumsum(each) - each, each, np.array(rates), saturated)
        sent_s = floats(0.02 * place for place in range(400))
        late = sent_s < RAMP_S + 7 * queued
        trips = Delays(Direction.ROUND_TRIP, sent_s, np.where(late, 0.2, 0.05))
        fates = Probes(Direction.ROUND_TRIP, sent_s, sent_s >= RAMP_S + 7 * (1 - lost), None)
        return Measurement("x", "x", 8.0, probes=(fates,), delays=(trips,), rates=(carried,))

    idle = part(1.0, queued=-1.0)
    assert throughput(part(4e6, 8e6), idle) == (6e6, 8e6)
    assert throughput(part(7e6, 7e6), idle) == throughput(part(7e6), idle) == (7e6, 8e6)
    assert throughput(part(6e6, 6e6, queued=0.75), idle) == pytest.approx((6e6, 8e6), rel=0.01)
    assert throughput(part(4e6, 8e6, lost=0.2), idle) == pytest.approx((6e6, 10e6), rel=0.01)
    assert throughput(part(6e6, queued=0.4), idle) == (6e6, np.inf)
    assert throughput(part(6e6, saturated=False), idle) == (6e6, np.inf)


def test_an_upload_without_its_receiver_has_no_rate() -> None:
    made = samples.iperf3()
    made["end"] = {}
    with pytest.raises(ToolError, match="did not report what it received"):
        tools.carried(Program(("iperf3",), 1.0, output=json.dumps(made).encode()), Direction.UP)


def test_a_receiver_of_an_average_also_gets_what_was_queued() -> None:
    made = samples.iperf3()
    made["start"]["tcp_mss_default"] = 1448
    carried = sum(each["streams"][0]["bytes"] for each in made["intervals"])
    lasts_s = made["intervals"][-1]["streams"][0]["end"]
    made["end"]["sum_sent"] = {"bytes": carried}
    made["end"]["sum_received"] = {"bytes": carried, "end": lasts_s + 0.5}
    rates = tools.carried(Program(("iperf3",), 1.0, output=json.dumps(made).encode()), Direction.UP)
    assert rates.interval_s.tolist() == [lasts_s + 0.5]
    assert rates.rate_bps[0] == pytest.approx(8 * carried * 1500 / 1448 / (lasts_s + 0.5))


# -- The command -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-oProxyCommand"], "no such option"),
        (["--", "-w1"], "HOST: found '-w1'"),
        (["a b"], "HOST: found 'a b'"),
        (["h", "--url", "file:///etc/passwd"], "--url: found 'file:///etc/passwd'"),
        (["h", "--bytes", "3"], "--bytes: found '3', expected a size from 1MB"),
        (["h", "--idle", "2h"], "--idle: found 2h, expected 1 s to 3600 s"),
        (["h", "--watch", "24h", "--every", "15s"], "expected at least 25s"),
        (["h", "--out", "absent/x.json"], "--out: absent is not a directory"),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    shown = run_command("measure", *options)
    assert shown.returncode == 2
    assert message in shown.stderr.lower() or message in shown.stderr


def test_the_command_measures_and_fit_reads_it(fake: Fake, tmp_path: Path) -> None:
    fake("irtt", json.dumps(samples.irtt(("." * 20 + "dd...") * 8, 200)))
    fake("ping", samples.ping(frozenset({4})), hop=ROUTER)
    out = tmp_path / "link.json"
    shown = run_command("measure", "host.example", "--no-load", "--idle", "1s", "--out", str(out))
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr.startswith("measuring host.example: about 9 s, at most 0.1 MB of probes\n")
    assert "down: 16 of 200 lost" in shown.stdout
    assert "last hop, to 192.0.2.254: 1 of 50 lost" in shown.stdout
    assert f"next: lasthop advise {out} --rate RATE" in shown.stdout
    assert "no advice: the rate of the link was not measured" in shown.stderr
    fitted = json.loads(
        run_command("fit", str(out), "--rate", "8Mbps", "--json", "--out", str(tmp_path / "fit")).stdout
    )
    assert (fitted["down"]["lost"], fitted["down"]["sent"]) == (16, 200)
    quick = ("--no-load", "--idle", "1s", "--out", str(out))
    found = json.loads(run_command("measure", "h", *quick, "--json").stdout)
    assert list(found["loads"].values()) == [None, None]
    assert found["advice"] is None
    assert found["losses_on_last_hop"]["low"] <= found["losses_on_last_hop"]["share"]
    documented = (ROOT / "docs/reference/json.md").read_text().partition("## `lasthop measure --json`")[2]
    for key in found:
        assert f"`{key}`" in documented.partition("\n## ")[0], key


def test_the_command_ends_with_advice(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float | None, list[str], Path]] = []

    def advised(link: FittedLink, uses: list[str], *, out: Path, **_: Any) -> tuple[str, str]:
        if uses == ["call"]:
            raise RaceError("too fast")
        asked.append((link.rate_bps, uses, out))
        return "Use BBR", f"{out}: advice.html"

    monkeypatch.setattr(command, "advised", advised)
    monkeypatch.setattr(command, "show", emit)
    fake("irtt", json.dumps(samples.irtt(("." * 40 + "dd...") * 20, 900)))
    fake("ping", samples.ping(), hop=ROUTER)
    fake("iperf3", json.dumps(samples.iperf3(reverse=True) | {"end": {"x": 1}}))
    out = tmp_path / "link.json"
    line = ("measure", "host.example", "--idle", "1s", "--out", str(out))
    shown = run_command(*line)
    assert (shown.returncode, "next:" in shown.stdout) == (0, False), shown.stderr
    measured, _, advice = shown.stdout.partition("\nadvice, as that of `lasthop advise` on this file\n")
    assert measured.endswith(f"written to {out}\n")
    assert advice == f"\nUse BBR\n\nwritten to {out}.advice: advice.html\n"
    (found,) = asked
    assert found == (fitting.fit(read(out), replicates=20).rate_bps, ["bulk"], Path(f"{out}.advice"))
    for option, said in ((("--no-advice",), ""), (("--for", "call"), "no advice: too fast\n")):
        shown = run_command(*line, *option)
        assert (shown.returncode, shown.stderr.endswith(said)) == (0, True)
        assert shown.stdout.endswith(f"\nnext: lasthop advise {out}\n")
    wrong = run_command("measure", "h", "--for", "gaming")
    assert (wrong.returncode, "--for: " in wrong.stderr) == (2, True)


def ended(pid: Path) -> bool:
    """Return whether the process whose number is in a file has ended, or does within five seconds."""
    until_s = time.monotonic() + 5
    while time.monotonic() < until_s:
        try:
            state = Path(f"/proc/{pid.read_text().strip()}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


CHILD = """
sh -c "trap '' INT TERM HUP; echo \\$\\$ > '{0}'; while :; do /bin/sleep 0.05; done" &
while [ ! -s '{0}' ]; do /bin/sleep 0.02; done
"""
"""A child that heeds no signal, and whose parent ends as the script behind this says."""


@pytest.mark.parametrize("ends", ["", "while :; do /bin/sleep 0.05; done"])
def test_no_child_of_a_program_is_left(ends: str, tmp_path: Path) -> None:
    child = tmp_path / "child"
    run([Program(("sh", "-c", CHILD.format(child) + ends), 0.5)])
    assert child.read_text().strip().isdigit()
    assert ended(child)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_no_program_is_left_however_measure_ends(number: int, fake: Fake, tmp_path: Path) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("who started these tests ignores this signal, as nohup does, and programs inherit that")
    child = tmp_path / "child"
    fake("ping", hop=ROUTER, script=f"PATH=/bin:/usr/bin\n{CHILD.format(child)}while :; do sleep 0.05; done")
    line = [sys.executable, "-m", "lasthop", "measure", "host.example", "--no-load", "--idle", "30s"]
    process = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + 60
        while not child.exists() or not child.read_text():
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.02)
        process.send_signal(number)
        process.wait(20)
    finally:
        process.kill()
        process.wait()
    assert ended(child)


def test_ctrl_c_keeps_what_there_is(fake: Fake, tmp_path: Path) -> None:
    out, begun = tmp_path / "link.json", tmp_path / "begun"
    text = tmp_path / "ping.txt"
    text.write_text(samples.ping(frozenset({4})))
    wait = f"trap \"/bin/cat '{text}'; exit\" INT; : > '{begun}'; while :; do /bin/sleep 0.05; done"
    fake("ping", hop=ROUTER, script=wait)
    line: list[str | Path] = ["measure", "host.example", "--no-load", "--idle", "30s", "--out", out]
    code, shown, errors = interrupt(line, begun.exists)
    assert (code, "next: lasthop advise" in shown) == (130, True), errors
    assert f"interrupted: {out} has what was measured until then" in errors
    assert read(out).notes[-1] == "The measurement was interrupted."
    assert int(read(out).probes[0].lost.sum()) == 1


def test_ctrl_c_before_the_first_reply_leaves_no_file(fake: Fake, tmp_path: Path) -> None:
    out, begun = tmp_path / "link.json", tmp_path / "begun"
    fake("ping", hop=ROUTER, script=f": > '{begun}'; while :; do /bin/sleep 0.05; done")
    line: list[str | Path] = ["measure", "host.example", "--no-load", "--idle", "30s", "--out", out]
    code, shown, _ = interrupt(line, begun.exists)
    assert (code, shown, out.exists()) == (130, "", False)


def test_a_watch_repeats_and_shows_hours(fake: Fake, tmp_path: Path) -> None:
    fake("ping", samples.ping(frozenset({4, 5})), hop=ROUTER)
    out = tmp_path / "link.json"
    session = command._watch(Plan("h", idle_s=1.0, load_s=0.0), out, 2.0, 1.0)
    assert len(session.phases) == 3
    (hour,) = command._hours(session)
    assert (hour["sent"], hour["lost"]) == (150, 6)
    # The last round is written by the command.
    assert len(read(out).probes[0].lost) == 100


# -- Real programs over a link -----------------------------------------------------------------------


def script() -> Any:
    """Return the script that measures links in namespaces."""
    path = ROOT / "scripts/measured_links.py"
    spec = importlib.util.spec_from_file_location("measured_links", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


LINKS = script()
MISSING = [tool for tool in LINKS.TOOLS if shutil.which(tool) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL)
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_a_link_in_namespaces_is_found(tmp_path: Path) -> None:
    """Loss, bursts, rates and the hop, each within the interval that the command states."""
    channel = '{gilbert-elliott={good="900 ms",bad="100 ms",loss_bad=0.9}}'
    link = LINKS.Link("bursts", 8e6, 4e6, 0.002, 0.015, 0.09, 0.1, channel, False)
    found = LINKS.measured(tmp_path, *link.settings, emulated=("--seed", "3"))
    assert found["last_hop"] == "10.0.0.1"
    assert found["notes"] == []
    verdicts = LINKS.judge(link, found)
    # Of some ten bursts: the interval includes a half now and then.
    assert verdicts.pop("hop")[0] in ("right", "undetermined")
    assert {name: verdict for name, (verdict, _) in verdicts.items()} == dict.fromkeys(
        ("loss", "burst", "down", "up"), "right"
    ), verdicts
    assert found["fit"]["last_hop_rtt_s"] == pytest.approx(0.005, abs=0.003)
    assert found["fit"]["rtt_s"] == pytest.approx(0.037, abs=0.005)
    assert (tmp_path / "link.json").stat().st_size < 1_000_000
