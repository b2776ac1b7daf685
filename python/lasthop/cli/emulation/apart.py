"""Emulation between two kernels in virtual time: `lasthop emulate --virtual --server-kernel`.

```text
lasthop emulate --virtual --server-kernel V
  Calendar                     the scenario's network and the time of all, in this process
  guest                        Linux as a process: the server's end, with --server
  guest                        another: the client's end, with the command
```
"""

from __future__ import annotations

import json
import shlex
import threading
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from lasthop._lasthop import Calendar
from lasthop.cli.emulation import carrier, namespaces, report
from lasthop.cli.emulation.carrier import PATIENCE, Emulation
from lasthop.cli.output import Output
from lasthop.cli.streams import detail
from lasthop.virtual import guest, hosts
from lasthop.virtual.hosts import Host
from lasthop.virtual.kernels import Kernel


@dataclass(frozen=True, kw_only=True)
class Apart:
    """What runs at two ends that have kernels of their own.

    Parameters
    ----------
    server_kernel : str
        The server's kernel, as a file or a version in the cache.
    command : list of str
        What runs at the client's end.
    server : str or None
        A shell command that runs at the server's end.
    mtu : int or None
        The MTU of both ends; by default the scenario's packet size.
    hide : list of Path
        Files and directories that the programs do not see.
    """

    server_kernel: str
    command: list[str]
    server: str | None
    mtu: int | None
    hide: list[Path]


@dataclass(frozen=True)
class _Facts:
    """What a report has of the guests."""

    told: dict[str, Any]

    def wait_for_phase(self) -> None:
        """Do nothing: the calendar has waited."""

    def facts(self) -> dict[str, Any]:
        """Return it."""
        return self.told


def emulate(
    emulation: Emulation,
    apart: Apart,
    kernels: tuple[Kernel, Kernel],
    *,
    repeatable: bool,
    privileged: bool,
    writable: list[Path],
    limit_s: float,
    stdout: BinaryIO,
    stderr: BinaryIO,
    stop: threading.Event,
    processor: int,
) -> dict[str, Any]:
    """Make one run; returns its report, which it writes too if the emulation has a directory.

    Parameters
    ----------
    emulation : Emulation
        What to emulate, with the number of the run.
    apart : Apart
        What runs at the ends.
    kernels : (Kernel, Kernel)
        The kernels of the server and of the client.
    repeatable : bool
        Whether another run with the same seed gives the same bytes.
    privileged : bool
        Whether the programs have all privileges in their guests.
    writable : list of Path
        The directories that they may change.
    limit_s : float
        How long it may take in real time, in seconds.
    stdout, stderr : binary file
        Get what the programs print.
    stop : threading.Event
        Stops the guests.
    processor : int
        The processor that runs them.
    """
    told = emulation.scenario.emulated(emulation.scheme)
    mtu = apart.mtu or max(68, told["packet_size"])
    segments = namespaces.segments_of(told["slowest_rate_bps"], mtu)
    draw = guest.Draw.of(emulation.seed, emulation.run)
    commands: tuple[list[str] | None, list[str]] = (
        ["sh", "-c", namespaces.with_addresses(apart.server)] if apart.server else None,
        [namespaces.with_addresses(each) for each in apart.command],
    )
    # A calendar for each run: neither kernel has the random numbers of the other.
    ends = [
        Host(
            kernel=kernel,
            network=[
                f"ip link set dev eth0 address {namespaces.MAC}",
                *namespaces.network_commands(side, mtu, segments, has_ipv6="IPv6" in kernel.features),
                *map(_hiding, apart.hide),
            ],
            program=program,
            listens=side == 0,
            environment=namespaces.environment_of_programs() | {"LASTHOP_RUN": str(emulation.run)},
            writable=writable,
            privileged=privileged,
            entropy=draw.entropy ^ side,
        )
        for side, (kernel, program) in enumerate(zip(kernels, commands, strict=True))
    ]
    output = None if emulation.out is None else Output(emulation.out)
    with output or nullcontext():
        pcap = carrier.captures(output, emulation)

        def calendar(directories: tuple[str, str]) -> Calendar:
            return Calendar(
                emulation.scenario,
                emulation.scheme,
                directories,
                seed=emulation.seed,
                run=emulation.run,
                mtu=mtu,
                epoch_ns=guest.START_NS,
                phase=draw.phase_s,
                period=guest.PHASES_S,
                grace=PATIENCE / 2,
                pcap=pcap,
                trace=emulation.trace,
                lateness=emulation.record_lateness,
            )

        ended = hosts.run(
            (ends[0], ends[1]),
            calendar,
            limit_s=limit_s,
            stdout=stderr if emulation.as_json else stdout,
            stderr=stderr,
            stop=stop,
            processor=processor,
        )
        detail(f"{ended.messages:,} messages with the kernels")
        text, traces, lateness = ended.recorded
        carried = json.loads(text) | {"real_time": False, "slice_s": None, "backlog_drops": 0}
        facts = {
            "kernel": kernels[1].version,
            "kernel_sha256": kernels[1].sha256,
            "server_kernel": kernels[0].version,
            "server_kernel_sha256": kernels[0].sha256,
            "repeatable": repeatable,
            "phase_s": draw.phase_s,
            "polling_s": ended.busy_s,
        }
        document = report.document(replace(emulation, guest=_Facts(facts)), None, carried, ended.exit_code)
        if output is not None:
            carrier.write(output, emulation, document, traces, lateness)
    return document


def _hiding(path: Path) -> str:
    """Return the command that puts something empty in the place of a file or directory."""
    place = shlex.quote(str(path.resolve()))
    if path.is_dir():
        return f"mount -t tmpfs -o ro tmpfs {place}"
    return f"mount --bind /dev/null {place}"
