"""`lasthop schema`: prints the JSON Schema of scenario files, or of results."""

from __future__ import annotations

from typing import Annotated

import typer

from lasthop import Scenario
from lasthop._lasthop import gateway_schema
from lasthop.cli.failure import RefusedError
from lasthop.cli.streams import emit_document


def schema(
    results: Annotated[bool, typer.Option("--results", help="That of `lasthop run --json` instead.")] = False,
    gateway: Annotated[bool, typer.Option("--gateway", help="That of gateways' files instead.")] = False,
) -> None:
    """Print the JSON Schema of scenario files, by which editors complete and check them."""
    if gateway:
        if results:
            raise RefusedError("--results and --gateway are different schemas; ", remedy="state one")
        emit_document(gateway_schema())
        return
    emit_document(Scenario.report_schema() if results else Scenario.json_schema())
