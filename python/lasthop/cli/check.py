"""`lasthop check`: validates a scenario and prints its canonical form."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from lasthop import Scenario, ScenarioError
from lasthop.cli.channels import conversions
from lasthop.cli.failure import RefusedError
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe
from lasthop.cli.streams import emit_document
from lasthop.core.scenarios import load


def execute(path: Path, overrides: list[str], sizes: list[str], link: str | None, as_json: bool) -> None:
    """Print the canonical form of the scenario at `path`, or the loss rates of packets of some sizes."""
    if link is not None and not sizes:
        raise RefusedError("--link needs --packet-loss SIZE, whose link it names")
    scenario = load(path, overrides)
    describe(path, scenario)
    report: dict[str, Any] = {"file": str(path), "hash": scenario.hash}
    if sizes:
        with Activity("computing loss rates"):
            losses = _losses(scenario, sizes, link)
        if as_json:
            emit_document(json.dumps(report | {"packet_loss": losses}, indent=2, ensure_ascii=False))
        else:
            _print(losses)
        return
    text = scenario.to_toml()
    if as_json:
        report |= {"scenario": tomllib.loads(text)}
        if bursts := scenario.channel_bursts():
            report["channel_bursts"] = bursts
        emit_document(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        emit_document(text + "".join(f"\n# {line}" for line in conversions(scenario)))


def _losses(scenario: Scenario, sizes: list[str], link: str | None) -> list[dict[str, Any]]:
    """Return the loss rate of each packet size at each point of the sweep."""
    try:
        return [
            {"parameters": point.parameters, "size": size, "loss": point.scenario.packet_loss(size, link)}
            for point in scenario.points()
            for size in sizes
        ]
    except ScenarioError:
        raise
    except ValueError as error:
        raise RefusedError(f"--packet-loss: {error}") from None


def _print(losses: list[dict[str, Any]]) -> None:
    from lasthop.cli.table import Table

    table = Table(*losses[0]["parameters"], ">packet size", ">lost (%)")
    for row in losses:
        table.row(*row["parameters"].values(), row["size"], f"{100 * row['loss']:.4g}")
    table.print()
