"""`lasthop check`: validates a scenario or a gateway's file, and prints its canonical form."""

from __future__ import annotations

import json
import tomllib
from typing import Annotated, Any

import typer

from lasthop import Scenario, ScenarioError
from lasthop._lasthop import gateway_settings
from lasthop.cli.channels import conversions
from lasthop.cli.failure import RefusedError
from lasthop.cli.options import AsJson, Overrides, ScenarioFile, Verbose
from lasthop.cli.progress import Activity
from lasthop.cli.scenario import describe
from lasthop.cli.streams import emit_document
from lasthop.core.scenarios import load


def check(
    path: ScenarioFile,
    overrides: Overrides = None,
    packet_loss: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIZE",
            help="Print the loss rate of packets of this size instead; may be repeated.",
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The link of --packet-loss; by default the first wireless one.",
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Check a scenario or a gateway's file, and print it with every default and unit."""
    sizes = packet_loss or []
    report: dict[str, Any]
    if (settings := gateway_settings(path)) is not None:
        if overrides or sizes or link is not None:
            raise RefusedError(
                f"{path} is a gateway's file; ", remedy="--set, --packet-loss and --link are for scenarios"
            )
        if as_json:
            report = {"file": str(path), "gateway": tomllib.loads(settings)}
            emit_document(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            emit_document(settings.rstrip("\n"))
        return
    if link is not None and not sizes:
        raise RefusedError("--link needs --packet-loss SIZE, whose link it names")
    scenario = load(path, overrides or [])
    describe(path, scenario)
    report = {"file": str(path), "hash": scenario.hash}
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
        raise RefusedError.of(error, "--packet-loss") from None


def _print(losses: list[dict[str, Any]]) -> None:
    from lasthop.cli.table import Table

    table = Table(*losses[0]["parameters"], ">packet size", ">lost (%)")
    for row in losses:
        table.row(*row["parameters"].values(), row["size"], f"{100 * row['loss']:.4g}")
    table.print()
