"""`lasthop schema`: prints the JSON Schema of scenario files, or of results."""

from __future__ import annotations

from typing import Annotated

import typer

from lasthop import Scenario
from lasthop.cli.streams import emit_document


def schema(
    results: Annotated[bool, typer.Option("--results", help="That of `lasthop run --json` instead.")] = False,
) -> None:
    """Print the JSON Schema of scenario files, by which editors complete and check them."""
    emit_document(Scenario.report_schema() if results else Scenario.json_schema())
