"""`lasthop emulate`: puts real programs at the two ends of a scenario's network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lasthop.cli import complete
from lasthop.cli.emulation import namespaces, virtual, wire
from lasthop.cli.emulation.apart import Apart
from lasthop.cli.emulation.carrier import Emulation
from lasthop.cli.failure import RefusedError
from lasthop.cli.options import (
    AsJson,
    Overrides,
    Pcap,
    RunNumber,
    ScenarioFile,
    Seed,
    Verbose,
    directory,
)
from lasthop.cli.scenario import describe, load, refuse_unknown_schemes

_WALL_LIMIT = 600.0
"""Seconds of real time that a run in virtual time may take by default."""


def emulate(
    path: ScenarioFile,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]",
            show_default=False,
            help="What runs at the client's end, where data arrive; {server} is the address of the other. "
            "By default a shell.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="What runs at the server's end, such as 'iperf3 -s -1'."),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.scheme,
            help="The scheme, of links, base stations or a split; by default the scenario's first.",
        ),
    ] = None,
    seed: Seed = 1,
    run: RunNumber = 0,
    overrides: Overrides = None,
    mtu: Annotated[
        int | None,
        typer.Option(min=68, max=65535, metavar="B", help="The MTU; by default the scenario's packet size."),
    ] = None,
    lateness: Annotated[
        float,
        typer.Option(metavar="MS", help="Fail if 1 % of the packets are later than this, in milliseconds."),
    ] = 5.0,
    hide: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="A file, directory or socket that the programs do not see; may be repeated.",
            exists=True,
        ),
    ] = None,
    privileged: Annotated[
        bool,
        typer.Option(
            "--privileged",
            help="Give the programs the privileges of root; by default they have those of a user namespace.",
        ),
    ] = False,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="IF IF",
            help="Put the network between two existing interfaces, in place of a wire; data come from the "
            "first. Needs CAP_NET_RAW.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Use interfaces that have addresses or the default route of this host."),
    ] = False,
    is_virtual: Annotated[
        bool,
        typer.Option(
            "--virtual",
            help="Run the programs on a Linux kernel of its own in virtual time: the same seed gives the "
            "same bytes, on a busy machine too.",
        ),
    ] = False,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --virtual: the kernel, as a file or a version that `lasthop kernel list` has; by "
            "default the newest.",
        ),
    ] = None,
    server_kernel: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --virtual: the kernel of the server's end. Each end then has a kernel of its own, and "
            "the network is outside of both.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            metavar="N",
            help="With --virtual: this many runs from --run on, each with a row.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            metavar="N",
            help="With --runs: runs at once; by default one for each processor.",
        ),
    ] = None,
    writable: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="With --virtual: a directory that the programs may change; other changes of files vanish "
            "with the run. With --runs, each may change DIR/run-N alone; N is in LASTHOP_RUN.",
        ),
    ] = None,
    wall_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="With --virtual: give up on a run that takes longer than this, in seconds of real time; by "
            "default 600.",
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, directory("Directory of the report and the recordings.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Record the packets of TCP connections as CSV. Needs --out.")
    ] = False,
    pcap: Pcap = False,
    record_lateness: Annotated[
        bool, typer.Option("--record-lateness", help="Record how late each packet was as CSV. Needs --out.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Run real programs at the two ends of a scenario's network. Linux only.

    The server is where the scenario's transfer begins, the client where it ends; each has a network namespace
    of its own. Needs no privileges where the kernel allows user namespaces. With --between, the network takes
    the place of a wire between two interfaces of yours, until the command ends, or Ctrl-C. With --virtual, a
    kernel that `lasthop kernel build` made runs the ends, and its clock advances only while all of them wait.
    """
    if sys.platform != "linux":
        raise RefusedError("emulate needs Linux, with its network namespaces and packet sockets")
    if (pcap or trace or record_lateness) and out is None:
        raise RefusedError("--pcap, --trace and --record-lateness write files and need --out DIR")
    if not is_virtual:
        given = {
            "--kernel": kernel,
            "--server-kernel": server_kernel,
            "--runs": runs,
            "--jobs": jobs,
            "--writable": writable,
            "--wall-limit": wall_limit,
        }
        for name in (name for name, value in given.items() if value is not None):
            raise RefusedError(f"{name} is about virtual time; ", remedy="add --virtual")
    elif between is not None:
        raise RefusedError(
            "interfaces of this machine live in real time; ",
            remedy="without it, --virtual makes two ends of its own",
            option="--between",
        )
    elif not command:
        raise RefusedError(
            "a shell would wait for you in real time; ",
            remedy="expected a command after --",
            option="--virtual",
        )
    if privileged and os.geteuid():
        raise RefusedError("--privileged gives programs the privileges of root, and this user is another one")
    if not 0 < lateness <= 1000:
        raise RefusedError(
            remedy="expected milliseconds from 0 to 1000, such as 5",
            found=f"{lateness:g}",
            option="--lateness",
        )
    if jobs is not None and runs is None:
        raise RefusedError("--jobs is about several runs; ", remedy="add --runs N")
    if wall_limit is not None and not wall_limit > 0:
        raise RefusedError(
            remedy="expected seconds, such as 600", found=f"{wall_limit:g}", option="--wall-limit"
        )
    try:
        scenario = load(path, overrides or [], [scheme] if scheme else [])
    except RefusedError:
        if scheme:
            refuse_unknown_schemes("--scheme", [scheme])
            # What it lacks in simulations may not be all that it lacks here.
            load(path, overrides or [], []).emulated(scheme)
        raise
    guest = virtual.inside()
    emulation = Emulation(
        scenario=scenario,
        scheme=scenario.schemes[0],
        seed=seed,
        run=guest.run if guest else run,
        lateness_ms=lateness,
        out=guest.directory if guest else out,
        pcap=pcap,
        trace=trace,
        record_lateness=record_lateness,
        as_json=guest.as_json if guest else as_json,
        guest=guest,
    )
    # Refuses a scenario or scheme that cannot be emulated.
    scenario.emulated(emulation.scheme)
    if between is None:
        if force:
            raise RefusedError("--force is about the interfaces of --between, which is not given")
        if is_virtual and guest is None:
            describe(path, scenario)
            guests = virtual.Guests(
                kernel=kernel,
                runs=runs,
                jobs=jobs,
                limit_s=wall_limit or _WALL_LIMIT,
                writable=writable,
                privileged=privileged,
                apart=None
                if server_kernel is None
                else Apart(
                    server_kernel=server_kernel,
                    command=command or [],
                    server=server,
                    mtu=mtu,
                    hide=hide or [],
                ),
            )
            raise typer.Exit(virtual.emulate(emulation, guests))
        namespaces.emulate(
            emulation,
            path,
            command or [],
            server=server,
            mtu=mtu,
            hide=hide or [],
            privileged=privileged,
        )
    describe(path, scenario)
    if server is not None or mtu is not None or hide or privileged:
        raise RefusedError(
            "--server, --mtu, --hide and --privileged set up the ends that emulate makes; ",
            remedy="leave them out, since with --between the ends are yours",
        )
    raise typer.Exit(wire.emulate(emulation, between, command or [], force=force))
