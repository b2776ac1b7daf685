"""What tests share: the command as a user starts it, and the worked example."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import lasthop
from lasthop import Run, Scenario

ROOT = Path(__file__).parents[2]
EXAMPLE = "scenarios/ebsn-example.toml"

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def command() -> Command:
    """Return a function that runs `lasthop` with arguments, from the root of the repository."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "lasthop", *map(str, arguments)]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def example() -> Scenario:
    """Return the worked example of the EBSN paper."""
    return lasthop.load(ROOT / EXAMPLE)


@pytest.fixture(scope="session")
def runs(example: Scenario) -> dict[str, Run]:
    """Return a run of the worked example with each scheme, everything recorded."""
    return {run.scheme: run for run in lasthop.compare(example, trace=True, series=True)}
