"""The commands and their options. Each command is implemented in a module of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lasthop.cli import streams
from lasthop.cli.failure import INTERRUPTED, WRONG_INPUT, reporting_errors


class Commands(TyperGroup):
    """The commands, with whole summaries in the list of them and errors in our own style."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command that the arguments name, and exit."""
        streams.prepare()
        try:
            # Commands report their own errors; what remains is that help cannot be printed.
            with reporting_errors(), streams.printing():
                code = super().main(*arguments, **settings | {"standalone_mode": False})
            sys.exit(code)
        except typer.Exit as ended:
            sys.exit(ended.exit_code)
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            # The class of such errors has no public name.
            if not hasattr(error, "format_message"):
                raise
            message = error.format_message().rstrip(".")
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "lasthop"
            streams.notify(f"error: {message[:1].lower()}{message[1:]}\n{command} --help lists what there is")
            sys.exit(WRONG_INPUT)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, with summaries that are folded and not cut."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(10_000)) for name, each in commands if each])


def _directory(text: str) -> Path:
    if not text:
        raise typer.BadParameter("expected a directory, found an empty name; the current one is '.'")
    return Path(text)


app = typer.Typer(
    cls=Commands,
    help="What will make TCP work over this wireless last hop?",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as radio.rate=2Mbps."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; docs/json.md defines its keys.")]


def _version(wanted: bool) -> None:
    if wanted:
        with reporting_errors():
            from lasthop import __version__

            streams.emit(f"lasthop {__version__}")
        raise typer.Exit


@app.callback()
def _lasthop(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        with reporting_errors():
            streams.emit(context.get_help())
        raise typer.Exit(WRONG_INPUT)


@app.command()
def run(
    scenario: ScenarioFile,
    scheme: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this scheme instead of the scenario's; may be repeated."),
    ] = None,
    sender: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Send with this TCP, such as linux-bbr; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="The study's seed.")] = 1,
    run: Annotated[int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="The run's number.")] = 0,
    overrides: Overrides = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Add a column, such as notices or snoop.local_retransmissions; may be repeated.",
        ),
    ] = None,
    json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=_directory, metavar="DIR", help="Directory of the results and recordings."),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Record each packet: CSV and figures. Needs --out.")
    ] = False,
    pcap: Annotated[bool, typer.Option("--pcap", help="Record pcapng for Wireshark. Needs --out.")] = False,
) -> None:
    """Run a scenario with each of its schemes, and compare them."""
    with reporting_errors():
        from lasthop.cli.run import Request, execute

        settings = (scheme or [], sender or [], seed, run, overrides or [], metric or [])
        execute(Request(scenario, *settings, json, out, trace, pcap))


@app.command()
def study(
    scenario: ScenarioFile,
    scheme: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compare this scheme instead of the scenario's; may be repeated."),
    ] = None,
    sender: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Send with this TCP, such as linux-bbr; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="The study's seed.")] = 1,
    overrides: Overrides = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="Threads; by default one for each core.")
    ] = None,
    precision: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Target half-width of the intervals, relative to the mean."),
    ] = "2%",
    runs: Annotated[
        str, typer.Option(metavar="MIN:MAX", help="Fewest and most runs of each scheme at each point.")
    ] = "100:1000",
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="The metric of the stopping rule and of the tables.")
    ] = "throughput_bps",
    out: Annotated[
        Path | None,
        typer.Option(
            parser=_directory, metavar="DIR", help="Directory of the results; by default FILE.study."
        ),
    ] = None,
    json: AsJson = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only count the runs and estimate their time."),
    ] = False,
    export: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Also write a table of every run: csv or parquet.")
    ] = None,
) -> None:
    """Sweep a scenario with replications until the intervals are narrow enough; can be resumed."""
    with reporting_errors():
        from lasthop.cli.study import Request, execute

        settings = (scheme or [], sender or [], seed, overrides or [], jobs, precision, runs, metric)
        execute(Request(scenario, *settings, out, json, dry_run, export))


@app.command()
def check(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    packet_loss: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIZE",
            help="Print the loss rate of packets of this size instead; may be repeated.",
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The link of --packet-loss; by default the first wireless one.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check a scenario, and print its canonical form with every default and unit."""
    with reporting_errors():
        from lasthop.cli.check import execute

        execute(scenario, overrides or [], packet_loss or [], link, json)


@app.command()
def schemes(json: AsJson = False) -> None:
    """List the schemes with a summary and the source of each."""
    with reporting_errors():
        from lasthop.cli.schemes import execute

        execute(json)


@app.command()
def paper(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The paper. Without it, list the papers.")
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Draw only this figure, without claims; may be repeated."),
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=CHOICE", help="Choose another reading of what the paper leaves open."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="As many runs as the claims need, or few.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="The seed.")] = 1,
    run: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="The run shown in packet traces.")
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="Threads; by default one for each core.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=_directory, metavar="DIR", help="Directory of the results; by default NAME.paper."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Regenerate a paper's figures, and judge each claim of its text."""
    with reporting_errors():
        from lasthop.cli.paper import Request, execute

        execute(Request(name, figure or [], reading or [], full, seed, run, jobs, out, json))


@app.command(name="packet-size")
def packet_size(
    scenario: ScenarioFile,
    key: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="The packet size to vary, such as scheme.metp.wireless.packet_size.",
        ),
    ] = "tcp.packet_size",
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help='Packet sizes to try, such as "128 B, 512 B"; by default 12 up to 1536 B.'
        ),
    ] = None,
    scheme: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this scheme instead of the scenario's; may be repeated."),
    ] = None,
    runs: Annotated[int, typer.Option(min=2, metavar="N", help="Runs of each size and scheme.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="The study's seed.")] = 1,
    overrides: Overrides = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="Threads; by default one for each core.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=_directory,
            metavar="DIR",
            help="Also draw throughput against packet size there.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Find the packet size with the highest throughput, for each point of the scenario's sweep.

    The sweep, usually of the channel, gives the rows of the table. A window in bytes holds fewer packets the
    larger they are; a window such as "10 packets" holds the same number of each size.
    """
    with reporting_errors():
        from lasthop.cli.packet_size import Request, execute

        settings = (scheme or [], runs, seed, overrides or [], jobs)
        execute(Request(scenario, key, sizes, *settings, out, json))
