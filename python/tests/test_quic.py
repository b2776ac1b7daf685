"""QUIC senders from Python and the command line, and the page about them."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Command

import lasthop
from lasthop import plots
from lasthop.advice import advise
from lasthop.advice.remedies import arms
from lasthop.fitting import scenario_link
from lasthop.race import Arm

PATH = ROOT / "scripts/quic.py"
SPEC = importlib.util.spec_from_file_location("quic_tables", PATH)
assert SPEC is not None
assert SPEC.loader is not None
quic = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(quic)
PAGE = (ROOT / "docs/guide/quic.md").read_text(encoding="utf-8")
# The rows of each table of the page and its report.
TABLES = [6, 7, 5, 2, 2, 6, 6, 6, 1, 4, 4, 3, 3, 4, 5, 3, 8, 4, 7, 7]
SHORT = ("--set", "limit=3 s", "--sender", "quinn-newreno")


def test_the_tables_of_the_page_are_those_of_the_script() -> None:
    """The loss-based senders, which are quick, at two losses."""
    losses = ("1 %", "3 %")
    columns = [1 + quic.LOSSES.index(loss) for loss in losses]
    page = {row.split("|")[1].strip(" `"): row.split("|") for row in quic.written(PAGE, "goodput")}
    assert list(page) == list(quic.SENDERS)
    senders = quic.SENDERS[:3]
    for sender, found in zip(senders, quic.goodput(senders, losses), strict=True):
        assert found.split("|")[2:-1] == [page[sender][1 + column] for column in columns]
    pages = PAGE + quic.PAGES[1].read_text(encoding="utf-8")
    assert [len(quic.written(pages, name)) for name in quic.TABLES] == TABLES


def test_a_comparison_tells_who_is_helped_by_what(command: Command) -> None:
    line, other = re.findall(r"```sh\nlasthop (.*?)\n```", PAGE)
    done = command(*line.split(), "--runs", "2:2", "--set", "limit=20 s")
    assert done.returncode == 0, done.stderr
    rates = {
        (sender, scheme): float(rate)
        for sender, scheme, rate in re.findall(r"^ +\d+ +(\S+) +(\S+) +([\d.]+)", done.stdout, re.MULTILINE)
    }
    assert len(rates) == 8
    assert rates["linux", "snoop"] > 3 * rates["linux", "basic"]
    assert rates["quinn-cubic", "snoop"] == rates["quinn-cubic", "basic"]
    assert rates["quinn-cubic", "arq"] > 3 * rates["quinn-cubic", "basic"]
    assert rates["linux", "sidekick"] > 3 * rates["linux", "basic"]
    assert rates["quinn-cubic", "sidekick"] < 1.5 * rates["quinn-cubic", "basic"]
    told = "snoop had no effect on this sender, because QUIC encrypts what it would read or change in TCP"
    assert f"quinn-cubic snoop: {told}" in done.stdout
    assert "linux snoop: snoop had no effect" not in done.stdout
    done = command(*other.split(), "--runs", "2:2", "--set", "limit=20 s")
    found = re.findall(r"^ +\d+ +quinn-cubic +(basic|sidekick) +(\d) +([\d.]+)", done.stdout, re.MULTILINE)
    best = {scheme: max(float(rate) for name, _, rate in found if name == scheme) for scheme, *_ in found}
    assert (len(found), best["sidekick"] > 3 * best["basic"]) == (6, True)


def test_processes_and_threads_give_the_same_bytes() -> None:
    """Two processes, with other addresses and other seeds of hashes, and one or two threads."""
    line = [sys.executable, "-m", "lasthop", "compare", "last-mile", "--runs", "4:4", "--scheme", "basic"]
    line += ["--sender", "quinn-newreno", "--sender", "quinn-bbr", "--set", "limit=2 s", "--json"]
    done = [subprocess.run([*line, "--jobs", jobs], capture_output=True, check=True) for jobs in "12"]
    assert done[0].stdout == done[1].stdout
    assert len(json.loads(done[0].stdout)["results"]) == 3


def test_results_name_the_library_and_lack_what_it_does_not_count(command: Command) -> None:
    done = command("run", "last-mile", *SHORT, "--scheme", "snoop", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert result["stacks"] == ["quinn-proto 0.11.19"]
    assert result["without_effect"] == {"snoop": "QUIC encrypts what it would read or change in TCP"}
    assert (result["metrics"]["timeouts"], result["metrics"]["goodput"]) == (None, None)
    assert result["metrics"]["declared_lost"] >= 0
    table = command("run", "last-mile", *SHORT).stdout
    assert "declared lost" in table
    assert re.search(r"quinn-newreno +basic +[\d.]+ +- +- +- +\d+", table)


def test_traces_and_figures_of_quic(command: Command, tmp_path: Path) -> None:
    run = lasthop.load("last-mile", ["limit=3 s", "sender=quinn-cubic"]).run(trace=True, series=True)
    series = run.series()
    assert list(series)[:5] == ["time_s", "cwnd_bytes", "ssthresh_bytes", "mss_bytes", "srtt_s"]
    assert 0.06 <= np.nanmin(series["srtt_s"]) < 0.08
    events = run.events()
    assert {"sent", "delivered", "lost", "ack-sent"} <= {*events["event"]}
    numbers = events["packet_number"][events["event"] == "sent"]
    assert (np.diff(numbers[numbers >= 0]) > 0).all()
    assert numbers.max() > 500
    assert plots.cwnd(run).axes[0].get_ylim()[1] > 20
    done = command("run", "last-mile", *SHORT, "--trace", "--out", tmp_path / "out", "--pcap")
    assert done.returncode == 0, done.stderr
    logs = [log.read_text(encoding="utf-8").split("\x1e") for log in (tmp_path / "out").glob("*.sqlog")]
    assert logs
    assert all(json.loads(head)["qlog_format"] == "JSON-SEQ" for _, head, *_ in logs)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_log_names_the_ends_as_the_capture_does(command: Command, tmp_path: Path) -> None:
    settings = ("--sender", "noq-cubic", "--scheme", "basic", "--set", "transfer.size=10 KB")
    done = command("run", "last-mile", *settings, "--trace", "--pcap", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "noq-cubic-basic.sqlog").read_text(encoding="utf-8").split("\x1e")
    started = next(each for each in map(json.loads, log[1:]) if each.get("name") == "quic:connection_started")
    server, client = started["data"]["local"]["ip_v4"], started["data"]["remote"]
    fields = [word for each in ("ip.src", "udp.srcport", "ip.dst") for word in ("-e", each)]
    capture = str(tmp_path / "noq-cubic-basic.pcapng")
    asked = ["tshark", "-r", capture, "-c", "1", "-T", "fields", *fields]
    first = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert first == [client["ip_v4"], str(client["port_v4"]), server]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_captures_have_the_datagrams_of_quic(tmp_path: Path) -> None:
    capture = tmp_path / "quic.pcapng"
    run = lasthop.load("last-mile", ["transfer.size=100 KB", "sender=quinn-cubic"]).run(pcap=capture)
    fields = ("udp.length", "quic.long.packet_type", "quic.scid", "frame.cap_len", "frame.len")
    asked = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", capture, "-Y", "quic", "-T", "fields", *asked],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    sent = run.metrics["segments_sent"] + run.metrics["acks_sent"]
    assert len(rows) > 100
    assert len(rows) >= sent
    assert rows[0][1:3] == ["0", "0200000000000001"], "the client's Initial"
    assert {"0", "2"} <= {kind for row in rows for kind in row[1].split(",")}
    assert all(captured == length for *_, captured, length in rows)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("resumed", [False, True])
def test_wireshark_decrypts_captures_with_tls(tmp_path: Path, resumed: bool) -> None:
    """By the secrets in the capture, or by the key log beside it; not at all without either."""
    capture, bare = tmp_path / "quic.pcapng", tmp_path / "bare.pcapng"
    settings = ["sender=quinn-cubic", "quic.tls=true", f"quic.zero_rtt={str(resumed).lower()}"]
    run = lasthop.load("last-mile", [*settings, "transfer.size=100 KB"]).run(pcap=capture)
    subprocess.run(["editcap", "--discard-all-secrets", capture, bare], check=True)

    def streams(file: Path, *options: str) -> tuple[int, set[int]]:
        line = ["tshark", "-r", str(file), *options, "-Y", "quic.stream.stream_id", "-T", "fields"]
        line += ["-e", "quic.stream.length", "-e", "quic.packet_number"]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        rows = [row.split("\t") for row in done.stdout.splitlines()]
        lengths = [int(length) for lengths, _ in rows for length in lengths.split(",") if length]
        return sum(lengths), {int(number) for _, numbers in rows for number in numbers.split(",")}

    found, numbers = streams(capture)
    # Retransmissions too, and without the last frame of each datagram, which has no length.
    assert len(numbers) > 70, (found, numbers)
    assert streams(bare, "-o", f"tls.keylog_file:{capture.with_suffix('.keys')}") == (found, numbers)
    assert streams(bare) == (0, set())
    assert run.metrics["delivered_bytes"] == 100_000
    labels = capture.with_suffix(".keys").read_text(encoding="utf-8")
    assert ("CLIENT_EARLY_TRAFFIC_SECRET" in labels) is resumed


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("sender=quinn-vegas", 'found "quinn-vegas"'), ("quic.mtu=900 B", 'expected from "1200 B"')],
)
def test_a_wrong_setting_is_refused(command: Command, setting: str, reason: str) -> None:
    done = command("check", "last-mile", "--set", "sender=quinn-bbr", "--set", setting)
    assert done.returncode == 2
    assert reason in done.stderr


def test_emulation_has_tcp(command: Command) -> None:
    """A simulated connection over QUIC would not be that of the real hosts."""
    done = command("emulate", "last-mile", "--set", "sender=quinn-cubic", "--", "true")
    assert done.returncode != 0
    assert "expected TCP senders" in done.stderr


def test_no_remedy_for_quic_joins_a_queue_with_a_scheme_that_reads_tcp() -> None:
    """Its gain would be that of the queue."""
    of = {name: {(arm.scheme, bool(arm.settings)) for arm in arms(name)} for name in ("quinn-cubic", "linux")}
    assert ("i-tcp", True) in of["linux"]
    assert ("i-tcp", False) in of["quinn-cubic"]
    assert ("i-tcp", True) not in of["quinn-cubic"]
    assert ("arq", True) in of["quinn-cubic"]


def test_a_server_is_advised_to_use_no_other_library() -> None:
    for library, count in (("quinn", 3), ("noq", 2)):
        tried = {str(arm.sender) for arm in arms(f"{library}-cubic")}
        assert (len(tried), {name.partition("-")[0] for name in tried}) == (count, {library})
    assert len(set(arms("noq-newreno"))) == len(arms("noq-newreno"))


def test_advice_for_pages_is_that_of_http3() -> None:
    """What it says of each remedy, pages over QUIC show when they are simulated by themselves."""
    link = scenario_link(lasthop.load("last-mile"))
    (judgement,) = advise(link, ["web"], sender="quinn-cubic", runs=(4, 4), effects=False).judgements
    assert "over HTTP/3," in judgement.use.simulated
    alone = {
        each.arm.scheme: each
        for each in judgement.remedies
        if each.arm == Arm("quinn-cubic", each.arm.scheme)
    }
    ignored = [each for each in alone.values() if each.deployment.reads_tcp]
    assert len(ignored) > 3
    assert all(each.gain == 1.0 and "no effect on this sender" in each.why for each in ignored)
    scenario = judgement.use.scenario(link.scenario()).with_(
        {"limit": judgement.use.limit_s, "sender": "quinn-cubic"}
    )
    basic, helped = (
        [scenario.run(scheme, run=run).applications["user"]["mean_page_time_s"] for run in range(4)]
        for scheme in ("basic", "arq")
    )
    assert np.mean(basic) > 1.2 * np.mean(helped)
    assert alone["arq"].gain == pytest.approx(np.mean(basic) / np.mean(helped), rel=0.25)


def test_applications_over_quic_are_compared_with_those_over_tcp(command: Command) -> None:
    """One scenario for both transports: what one of them does not count is a dash."""
    senders = ("--sender", "linux", "--sender", "quinn-cubic")
    done = command("run", "users", *senders, "--scheme", "basic", "--set", "limit=20 s")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"(linux|quinn-cubic) ", line)]
    assert len(rows) >= 6
    counts = {row[0]: row[-3:-1] for row in rows if row[2] in ("browsing", "film", "shell")}
    assert (counts["quinn-cubic"][0], counts["quinn-cubic"][1].isdigit()) == ("-", True)
    assert (counts["linux"][0].isdigit(), counts["linux"][1]) == (True, "-")
    of = ("--metric", "application.shell.p95_response_time_s")
    done = command(
        "compare", "users", *senders, "--scheme", "basic", *of, "--runs", "2:2", "--set", "limit=10 s"
    )
    assert done.returncode == 0, done.stderr
    assert "quinn-cubic" in done.stdout
