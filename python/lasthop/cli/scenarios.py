"""`lasthop scenarios`: lists the worked scenarios, or prints one."""

from __future__ import annotations

import json

import lasthop
from lasthop._lasthop import SCENARIOS
from lasthop.cli.failure import RefusedError
from lasthop.cli.streams import emit_document
from lasthop.core.names import unknown


def execute(name: str | None, as_json: bool) -> None:
    """Print a line for each worked scenario, or the one that is called `name`."""
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
