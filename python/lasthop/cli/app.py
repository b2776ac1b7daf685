"""The command line as a whole: its commands, its help, and errors of what was typed."""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from lasthop.cli import streams
from lasthop.cli.failure import INTERRUPTED, WRONG_INPUT, misused, reporting_errors
from lasthop.cli.options import Verbose

COMMANDS = {
    "run": "Run a scenario with each of its schemes, and compare them.",
    "emulate": "Run real programs at the two ends of a scenario's network. Linux only.",
    "kernel": "Build and list the Linux kernels that `lasthop emulate --virtual` runs. Linux only.",
    "gateway": "Help the connections of a real link by the schemes of scenarios. Linux only.",
    "study": "Sweep a scenario with replications until the intervals are narrow enough; can be resumed.",
    "merge": "Merge the shards of a study, and print its tables.",
    "compare": "Find the best of many senders, schemes and settings; inferior combinations stop early.",
    "check": "Check a scenario or a gateway's file, and print it with every default and unit.",
    "schema": "Print the JSON Schema of scenario files, by which editors complete and check them.",
    "schemes": "List the schemes with a summary and the source of each.",
    "links": "List the presets of wireless links with the sources of their numbers, or show one.",
    "measure": "Measure a link and advise on it: losses, bursts, rate, delay, and the hop; the file is for "
    "fit, too.",
    "fit": "Fit a link to measurements of it: its losses and bursts with intervals, rate, delay; "
    "as a scenario.",
    "advise": "Find what would help a link: what limits it, remedies ranked by gain, and remedies of no use.",
    "scenarios": "List the worked scenarios that come with Lasthop, or print one as TOML.",
    "paper": "Regenerate a paper's figures, and judge each claim of its text.",
    "packet-size": "Find the packet size with the highest throughput, for each point of the scenario's "
    "sweep.",
    "web": "Write a page that runs a scenario in a browser: one HTML file, without a server or network.",
    "man": "Print the manual page: `lasthop man | man -l -`.",
}
"""Each command with the first line of its help, so that the list of them imports none of them.

The command `packet-size` is the function `packet_size` of the module `lasthop.cli.commands.packet_size`.
"""


class Commands(TyperGroup):
    """The commands, imported when they are run, with errors in our own style."""

    examples: ClassVar[dict[str, str]] = {
        "lasthop run ebsn-example": "Compare four schemes over the same fades.",
        "lasthop run ebsn-example --scheme ebsn --set radio.rate=2Mbps": "Change the scenario.",
        "lasthop scenarios ebsn-example > mine.toml": "Begin a scenario of your own.",
        "lasthop study mine.toml": "Replicate it until the intervals are narrow.",
        "lasthop compare last-mile --set limit=5s": "Find the best of several senders and schemes.",
        "lasthop paper ebsn": "Regenerate the figures of a paper, and judge its claims.",
        "lasthop --install-completion": "Let the shell complete commands, options and names.",
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(TyperCommand(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that the arguments name, and import it."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and self.load(str(found.name)), rest

    def load(self, name: str) -> Any:
        """Import a command with its options."""
        module = name.replace("-", "_")
        with reporting_errors():
            function = getattr(import_module(f"lasthop.cli.commands.{module}"), module)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(name)(reporting_errors()(function))
        return typer.main.get_command(alone)

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command that the arguments name, and exit."""
        streams.prepare()
        streams.as_json = "--json" in sys.argv[1:]
        settings |= {"standalone_mode": False, "terminal_width": min(shutil.get_terminal_size().columns, 100)}
        try:
            # Commands report their own errors; what remains is that help cannot be printed.
            with reporting_errors(), streams.printing():
                code = super().main(*arguments, **settings)
            sys.exit(code)
        except typer.Exit as ended:
            sys.exit(ended.exit_code)
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            # The class of such errors has no public name.
            if not hasattr(error, "format_message"):
                raise
            sys.exit(misused(error).exit_code)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, with summaries that are folded and not cut."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for line, meaning in self.examples.items():
                formatter.write_text(line)
                with formatter.indentation():
                    formatter.write_text(meaning)


app: typer.Typer = typer.Typer(
    cls=Commands,
    help="What will make TCP work over this wireless last hop?",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    verbose: Verbose = False,
) -> None:
    if context.invoked_subcommand is None:
        with reporting_errors():
            streams.emit(context.get_help())
        raise typer.Exit(WRONG_INPUT)
