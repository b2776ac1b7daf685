"""Captures as Wireshark reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import lasthop
from lasthop import Scenario

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def tshark(capture: Path, *arguments: str) -> list[str]:
    line = ["tshark", "-r", str(capture), *arguments]
    result = subprocess.run(line, capture_output=True, text=True, check=True)
    complaints = [said for said in result.stderr.splitlines() if "Running as user" not in said]
    assert complaints == []
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def captures(example: Scenario, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("captures")
    paths = {scheme: directory / f"{scheme}.pcapng" for scheme in example.schemes}
    for scheme, path in paths.items():
        lasthop.run(example, scheme, pcap=path)
    return paths


def test_nothing_is_malformed(captures: dict[str, Path]) -> None:
    for capture in captures.values():
        assert tshark(capture, "-Y", "_ws.malformed || _ws.expert.severity == error") == []


def test_sequence_analysis_finds_the_retransmissions(captures: dict[str, Path]) -> None:
    again = "tcp.analysis.retransmission && frame.interface_name == sender"
    assert len(tshark(captures["basic"], "-Y", again)) > 0
    assert tshark(captures["ebsn"], "-Y", again) == []


def test_every_data_segment_is_captured(captures: dict[str, Path], example: Scenario) -> None:
    for scheme, capture in captures.items():
        data = tshark(capture, "-Y", "tcp.len > 0 && frame.interface_name == sender")
        assert len(data) == lasthop.run(example, scheme).metrics["segments_sent"]


def test_losses_have_their_reason_as_a_comment(captures: dict[str, Path], example: Scenario) -> None:
    comments = ("-T", "fields", "-e", "frame.comment")
    lost = tshark(captures["basic"], "-Y", "frame.interface_name != sender", *comments)
    assert len(lost) == lasthop.run(example, "basic").metrics["lost_on_air"]
    assert all("corrupted" in comment for comment in lost)


LOSSY = """
[transfer]
size = "300 KB"
[tcp]
profile = "rfc"
flavour = "reno"
close = true
[wired]
rate = "10 Mbps"
delay = "5 ms"
[radio]
rate = "2 Mbps"
delay = "20 ms"
channel.iid.ber = 5e-6
"""


@pytest.mark.parametrize("scheme", ["snoop", "i-tcp + snoop"])
def test_both_sides_of_a_base_station_are_captured(scheme: str, tmp_path: Path) -> None:
    capture = tmp_path / "run.pcapng"
    run = Scenario.parse(LOSSY).run(scheme, pcap=capture)
    counters = {name.removeprefix("snoop."): value for name, value in run.metrics.items() if "." in name}
    assert counters["local_retransmissions"] > 0
    assert counters["suppressed_dupacks"] > 0
    # The agent of a split connection begins where the base station sends on.
    wired = "base" if "i-tcp" in scheme else "base-wired"

    def packets(interface: str, kind: str) -> int:
        return len(tshark(capture, "-Y", f"{kind} && frame.interface_name == {interface}"))

    data, acks = "tcp.len > 0", "tcp.len == 0 && tcp.srcport == 5001"
    copies = counters["local_retransmissions"] - counters["answered_segments"]
    assert packets("base-wireless", data) == packets(wired, data) + copies
    withheld = counters["suppressed_dupacks"] + counters["spurious_acks"] - counters["answered_segments"]
    assert packets("base-wireless", acks) == packets(wired, acks) + withheld
    assert tshark(capture, "-Y", "_ws.malformed || _ws.expert.severity == error") == []
    # Connections of their own: each copy is a retransmission behind the base station only.
    again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order"
    assert packets(wired, f"({again})") < packets("base-wireless", f"({again})")
    addresses = tshark(capture, "-Y", "frame.interface_name == base-wireless", "-T", "fields", "-e", "ip.src")
    assert len({*addresses}) == 2
