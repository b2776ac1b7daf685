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
