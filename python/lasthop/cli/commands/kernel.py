"""`lasthop kernel`: the kernels on which programs run in virtual time."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from lasthop.cli.failure import RefusedError, warn
from lasthop.cli.options import AsJson, Verbose
from lasthop.cli.progress import Activity
from lasthop.cli.streams import emit, emit_document, notify
from lasthop.virtual import build, kernels
from lasthop.virtual.kernels import Kernel, KernelError


def kernel(
    command: Annotated[
        Literal["build", "list"],
        typer.Argument(
            show_default=False,
            help="build: compile a kernel into the cache of this user; list: the kernels there, the newest "
            "first, and what each has.",
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="With build: the version, such as 6.12, of a package linux-source-VERSION of this "
            "distribution; by default the newest.",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="With build: a source of your own instead, as a directory or an archive; it stays as it is.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="With build: more options of the kernel, as lines such as CONFIG_NF_TABLES=y.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With build: compilers at once; by default one for each core."),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Build and list the Linux kernels that `lasthop emulate --virtual` runs. Linux only.

    A kernel is a program: User Mode Linux, compiled from the source of the distribution in some minutes. It
    needs no privileges, neither to be built nor to run.
    """
    if sys.platform != "linux":
        raise RefusedError("kernels in virtual time need Linux")
    try:
        if command == "list":
            if version or source or config or jobs:
                raise RefusedError("--version, --source, --config and --jobs belong to lasthop kernel build")
            _print(kernels.built(warn), as_json=as_json)
            return
        if version and source:
            raise RefusedError(
                "--version names a package, and --source replaces it; ", remedy="expected one of them"
            )
        chosen = build.of_path(source) if source else build.of_package(version)
        signal.signal(signal.SIGTERM, _stop)
        with Activity("preparing") as activity:
            made = build.build(chosen, more=config, jobs=jobs or os.cpu_count() or 1, on_step=activity.doing)
    except KernelError as error:
        raise RefusedError.of(error, error.option) from None
    _print([made], as_json=as_json)


def _stop(*_: object) -> None:
    """End this command, and the compilers with it."""
    raise typer.Exit(128 + signal.SIGTERM)


def _print(found: list[Kernel], *, as_json: bool) -> None:
    """Print kernels."""
    if as_json:
        listed = [
            {"version": each.version, "path": str(each.path), "features": list(each.features)}
            for each in found
        ]
        emit_document(json.dumps({"kernels": listed}, indent=2))
        return
    if not found:
        notify(f"{kernels.directory()} has no kernels; lasthop kernel build makes one")
        return
    for each in found:
        emit(f"{each.version}  {each.path}\n  {', '.join(each.features)}")
