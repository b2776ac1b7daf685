"""`lasthop check`: whether a scenario is sound, and all that it says."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from lasthop.api import load


def execute(path: Path, overrides: list[str], as_json: bool) -> None:
    """Print the canonical form of the scenario at `path`."""
    scenario = load(path, overrides)
    text = scenario.to_toml()
    if as_json:
        report = {"file": str(path), "hash": scenario.hash, "scenario": tomllib.loads(text)}
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        print(text, end="")
