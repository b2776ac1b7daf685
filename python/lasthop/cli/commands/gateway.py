"""`lasthop gateway`: remedies on the connections of a real link."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lasthop import _lasthop
from lasthop.cli.streams import emit_document


def gateway(
    command: Annotated[
        Literal["run", "check", "rules", "status", "report", "reload", "remove"],
        typer.Argument(
            show_default=False,
            help="run: help flows across the radio until SIGTERM; check: check the file; rules: print the "
            "rules of nft and the routes that run installs; status, reload: of the running gateway; report: "
            "what help gains over the flows that are left alone; remove: remove the routes of a gateway that "
            "was killed.",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="The gateway's file (TOML). Without it, status, report and reload ask at "
            "/run/lasthop-gateway.sock.",
        ),
    ] = None,
    observe: Annotated[
        bool, typer.Option("--observe", help="With run: help no flow, and count those that would be helped.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="With run: take over from the running gateway, which carries its connections to their end.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With status and report: print JSON.")] = False,
) -> None:
    """Help the connections of a real link by the schemes of scenarios. Linux only.

    This is the program `lasthop-gateway`, for hosts that have Python: the same code, compiled into the
    package.
    """
    options = {"--observe": observe, "--replace": replace, "--json": as_json}
    line = [command, *([str(file)] if file is not None else [])]
    text = _lasthop.gateway([*line, *(name for name, wanted in options.items() if wanted)])
    if text:
        emit_document(text)
