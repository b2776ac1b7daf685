"""The options and arguments that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lasthop.cli import complete, streams


class BadValueError(typer.BadParameter):
    """A value that no option of its kind has, with the part of the message that states what is expected."""

    def __init__(self, remedy: str, found: str) -> None:
        super().__init__(f"{remedy}, found {found}")
        self.remedy = remedy


def _whole(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise BadValueError(f"expected a whole number from {least} to {most}", repr(text))
        return number

    return parse


def _directory(text: str) -> Path:
    if not text:
        raise BadValueError("expected a directory", "an empty name; the current one is '.'")
    return Path(text)


def directory(text: str) -> Any:
    """Return the option of a directory of results, described by `text`."""
    return typer.Option("--out", parser=_directory, metavar="DIR", help=text)


def number(text: str) -> Any:
    """Return an option whose value is a whole number of 64 bits, described by `text`."""
    return typer.Option(parser=_whole(0, 2**64 - 1), metavar="N", help=text)


def _be_verbose(wanted: bool) -> bool:
    streams.verbose = streams.verbose or wanted
    return wanted


ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO",
        show_default=False,
        autocompletion=complete.scenario,
        help="A scenario file (TOML), or a name that `lasthop scenarios` lists.",
    ),
]
Schemes = Annotated[
    list[str] | None,
    typer.Option(
        "--scheme",
        metavar="NAME",
        autocompletion=complete.scheme,
        help="This scheme instead of the scenario's; may be repeated.",
    ),
]
Uses = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="USE",
        autocompletion=complete.use,
        help="What the link is for: bulk (default), upload, web, video, call or shell; may be repeated.",
    ),
]
Senders = Annotated[
    list[str] | None,
    typer.Option(
        "--sender",
        metavar="NAME",
        autocompletion=complete.sender,
        help="Send with this TCP, such as linux-bbr; may be repeated.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=complete.setting,
        help="Change a setting, such as radio.rate=2Mbps; may be repeated.",
    ),
]
Seed = Annotated[int, number("The seed of all runs.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        envvar="LASTHOP_JOBS",
        parser=_whole(1, 1000),
        metavar="N",
        help="Threads; by default one for each core.",
    ),
]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair", help="If the stored runs are damaged, keep what is intact and make the rest again."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON, errors too; its keys are in the reference, page json.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        is_eager=True,
        callback=_be_verbose,
        help="Report the steps on stderr.",
    ),
]
Export = Annotated[
    str | None,
    typer.Option(
        "--export",
        metavar="FORMAT",
        autocompletion=complete.export,
        help="Also write every run as csv or parquet; or datasette: metadata to show the store with.",
    ),
]
Html = Annotated[bool, typer.Option("--html", help="Also write a report: report.html.")]
RunNumber = Annotated[int, number("The run's number.")]
Pcap = Annotated[bool, typer.Option("--pcap", help="Record pcapng for Wireshark. Needs --out.")]
Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="RATE", help="The link's rate towards the user, such as 8Mbps."),
]
UpRate = Annotated[
    str | None, typer.Option("--up-rate", metavar="RATE", help="The link's rate from the user.")
]
Rtt = Annotated[
    str | None,
    typer.Option("--rtt", metavar="TIME", help="The round-trip time without queues, such as 60ms."),
]
LastHopRtt = Annotated[
    str | None, typer.Option("--last-hop-rtt", metavar="TIME", help="The share of it on the last hop.")
]
IsWifi = Annotated[
    bool,
    typer.Option("--wifi", help="The last hop is Wi-Fi, and --rate what a download gets in idle air."),
]
User = Annotated[
    Literal["client", "server"],
    typer.Option(metavar="END", help="Which end of measured connections is the user's: client or server."),
]
Captured = Annotated[
    Literal["client", "server", "between"] | None,
    typer.Option(
        metavar="WHERE",
        help="Where a capture was taken: client, server or between; by default its delays tell.",
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every", metavar="TIME", help="Time between the rows of CSV, or packets of ping, without times."
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=MEANING",
        help="What a column of CSV is: latency=rtt_ms; rate=capacity for the capacity of the link.",
    ),
]
