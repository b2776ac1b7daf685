"""`lasthop schemes`: lists the schemes."""

from __future__ import annotations

import json

import lasthop
from lasthop.cli.options import AsJson
from lasthop.cli.streams import emit_document


def schemes(as_json: AsJson = False) -> None:
    """List the schemes with a summary and the source of each."""
    known = lasthop.schemes()
    if as_json:
        listed = [{"name": each.name, "summary": each.summary, "source": each.source} for each in known]
        emit_document(json.dumps({"schemes": listed}, indent=2, ensure_ascii=False))
        return
    from lasthop.cli.table import Table

    table = Table("scheme", "what it does", "source")
    for each in known:
        table.row(each.name, each.summary, each.source)
    table.print()
