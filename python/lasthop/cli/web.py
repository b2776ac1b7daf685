"""`lasthop web`: writes a page that runs a scenario in a browser."""

from __future__ import annotations

from pathlib import Path

from lasthop import web
from lasthop._lasthop import SCENARIOS
from lasthop.cli.failure import RefusedError
from lasthop.cli.scenario import describe
from lasthop.cli.streams import emit
from lasthop.core import packaged
from lasthop.core.files import write_text
from lasthop.core.scenarios import load


def execute(path: Path, overrides: list[str], out: Path | None) -> None:
    """Write the page of the scenario at `path`."""
    # Refuses what the page would refuse.
    scenario = load(path, overrides)
    describe(path, scenario)
    name = packaged.found(path)
    text = path.read_text(encoding="utf-8") if name is None else SCENARIOS[name]
    try:
        page = web.page(text, str(path), overrides)
    except web.MissingModuleError as error:
        raise RefusedError(str(error)) from None
    file = write_text(out or Path(f"{path.stem}.html"), page)
    emit(f"written to {file}: open it in a browser; it needs no server")
