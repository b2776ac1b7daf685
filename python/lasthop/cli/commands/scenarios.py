"""`lasthop scenarios`: lists the worked scenarios, or prints one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import lasthop
from lasthop._lasthop import SCENARIOS
from lasthop.cli import complete
from lasthop.cli.failure import RefusedError
from lasthop.cli.options import AsJson
from lasthop.cli.streams import emit_document
from lasthop.core.names import unknown


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete.worked_scenario,
            help="Print this one, to redirect it into a file.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the worked scenarios that come with Lasthop, or print one as TOML.

    Wherever a scenario file is expected, the name of a worked scenario will do. A file of that name comes
    first.
    """
    titles = lasthop.scenarios()
    if name is None:
        _list(titles, as_json)
        return
    if name not in titles:
        raise RefusedError(unknown("worked scenario", name, titles))
    text = SCENARIOS[name]
    if as_json:
        document = {"name": name, "title": titles[name], "toml": text}
        text = json.dumps(document, indent=2, ensure_ascii=False)
    emit_document(text)


def _list(titles: dict[str, str], as_json: bool) -> None:
    if as_json:
        listed = [{"name": name, "title": title} for name, title in titles.items()]
        emit_document(json.dumps({"scenarios": listed}, indent=2, ensure_ascii=False))
        return
    from lasthop.cli.table import Table

    table = Table("scenario", "title")
    for name, title in titles.items():
        table.row(name, title)
    table.print()
