"""`lasthop web`: writes a page that runs a scenario in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lasthop.cli import complete
from lasthop.cli.failure import RefusedError
from lasthop.cli.options import Overrides, Verbose
from lasthop.cli.scenario import describe
from lasthop.cli.streams import emit
from lasthop.core import packaged
from lasthop.core.files import write_text
from lasthop.core.scenarios import load
from lasthop.web import MissingModuleError, page


def web(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO",
            autocompletion=complete.scenario,
            help="A scenario file (TOML), or a name that `lasthop scenarios` lists.",
        ),
    ] = Path("ebsn-example"),
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page; by default SCENARIO.html.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Write a page that runs a scenario in a browser: one HTML file, without a server or network.

    It has the simulator itself, with sliders for rates, delays, losses, fades and the window, two schemes
    side by side over the same fades, and a hundred runs of each.
    """
    # Refuses what the page would refuse.
    overrides = overrides or []
    scenario = load(path, overrides)
    describe(path, scenario)
    name = packaged.found(path)
    text = path.read_text(encoding="utf-8") if name is None else packaged.text(name)
    try:
        written = page(text, str(path), overrides)
    except MissingModuleError as error:
        raise RefusedError.of(error) from None
    file = write_text(out or Path(f"{path.stem}.html"), written)
    emit(f"written to {file}: open it in a browser; it needs no server")
