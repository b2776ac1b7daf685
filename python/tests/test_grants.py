"""Grants beside the replay of a recorded rate: what the report says holds for a short run of it, too."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from conftest import ROOT

PATH = ROOT / "scripts/grants_beside_replay.py"
SPEC = importlib.util.spec_from_file_location(PATH.stem, PATH)
assert SPEC is not None
assert SPEC.loader is not None
grants_beside_replay = importlib.util.module_from_spec(SPEC)
# Where the annotations of a dataclass are looked up.
sys.modules[PATH.stem] = grants_beside_replay
SPEC.loader.exec_module(grants_beside_replay)


def test_plain_replay_is_too_fast_for_probes_and_grants_are_not() -> None:
    found = grants_beside_replay.compared("lte", 2, 60.0)
    probe = found["probe, 64 B and 64 B"]
    assert 0.8 < probe["replay"] / probe["true"] < 0.95
    assert probe["grants"] == pytest.approx(probe["true"], rel=0.02)
    assert "| probe, 64 B and 64 B |" in grants_beside_replay.table("lte", found)
