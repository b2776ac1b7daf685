"""The commands and their options. Each command is implemented in its own module."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer
from typer.core import TyperGroup

from lasthop.cli import complete, streams
from lasthop.cli.failure import INTERRUPTED, WRONG_INPUT, failed, remedy_in, reporting_errors
from lasthop.cli.options import (
    AsJson,
    Jobs,
    Overrides,
    ScenarioFile,
    Schemes,
    Seed,
    Senders,
    Verbose,
    directory,
    number,
)


class Commands(TyperGroup):
    """The commands, with whole summaries in the list of them and errors in our own style."""

    examples: ClassVar[dict[str, str]] = {
        "lasthop run ebsn-example": "Compare four schemes over the same fades.",
        "lasthop run ebsn-example --scheme ebsn --set radio.rate=2Mbps": "Change the scenario.",
        "lasthop scenarios ebsn-example > mine.toml": "Begin a scenario of your own.",
        "lasthop study mine.toml": "Replicate it until the intervals are narrow.",
        "lasthop compare last-mile --set limit=5s": "Find the best of several senders and schemes.",
        "lasthop paper ebsn": "Regenerate the figures of a paper, and judge its claims.",
        "lasthop --install-completion": "Let the shell complete commands, options and names.",
    }

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
            sys.exit(_misused(error).exit_code)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, with summaries that are folded and not cut."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(10_000)) for name, each in commands if each])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for line, meaning in self.examples.items():
                formatter.write_text(line)
                with formatter.indentation():
                    formatter.write_text(meaning)


def _misused(error: Any) -> typer.Exit:
    """Report an error of the command line itself."""
    context: Any = getattr(error, "ctx", None)
    parameter: Any = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if parameter is not None and parameter.param_type_name == "option":
        from_environment = str(context.get_parameter_source(parameter.name)).endswith("ENVIRONMENT")
        option = parameter.envvar if from_environment else parameter.opts[0]
        error.param_hint = f"'{option}'"
    elif parameter is not None:
        option = parameter.metavar
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    usage = f"{context.command_path if context else 'lasthop'} --help lists the arguments and options"
    remedy = remedy_in(message) or usage
    return failed("option", f"{message}\n{usage}", message, option=option, remedy=remedy)


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


@app.command()
def run(
    scenario: ScenarioFile,
    scheme: Schemes = None,
    sender: Senders = None,
    seed: Seed = 1,
    run: Annotated[int, number("The run's number.")] = 0,
    overrides: Overrides = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.metric,
            help="Add a column, such as notices or ebsn.notices_sent; may be repeated.",
        ),
    ] = None,
    json: AsJson = False,
    out: Annotated[Path | None, directory("Directory of the results and recordings.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Record each packet: CSV and figures. Needs --out.")
    ] = False,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.run_figure,
            help="Also draw time-sequence, cwnd or delays of each run; may be repeated. Needs --out.",
        ),
    ] = None,
    pcap: Annotated[bool, typer.Option("--pcap", help="Record pcapng for Wireshark. Needs --out.")] = False,
    verbose: Verbose = False,
) -> None:
    """Run a scenario with each of its schemes, and compare them."""
    with reporting_errors():
        from lasthop.cli.run import Request, execute

        settings = (scheme or [], sender or [], seed, run, overrides or [], metric or [])
        execute(Request(scenario, *settings, json, out, trace, pcap, figure or []))


@app.command()
def emulate(
    scenario: ScenarioFile,
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
            help="The scheme; by default the scenario's first. One that only uses the link.",
        ),
    ] = None,
    seed: Seed = 1,
    run: Annotated[int, number("The run's number.")] = 0,
    overrides: Overrides = None,
    mtu: Annotated[
        int | None,
        typer.Option(min=68, max=65535, metavar="B", help="The MTU; by default the scenario's packet size."),
    ] = None,
    lateness: Annotated[
        float,
        typer.Option(metavar="MS", help="Fail if 1 % of the packets are later than this, in milliseconds."),
    ] = 5.0,
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
    json: AsJson = False,
    out: Annotated[Path | None, directory("Directory of the report and the recordings.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Record the packets of TCP connections as CSV. Needs --out.")
    ] = False,
    pcap: Annotated[bool, typer.Option("--pcap", help="Record pcapng for Wireshark. Needs --out.")] = False,
    record_lateness: Annotated[
        bool, typer.Option("--record-lateness", help="Record how late each packet was as CSV. Needs --out.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Run real programs at the two ends of a scenario's network, in real time. Linux only.

    The server is where the scenario's transfer begins, the client where it ends; each has a network namespace
    of its own. Needs no privileges where the kernel allows user namespaces. With --between, the network takes
    the place of a wire between two interfaces of yours, until the command ends, or Ctrl-C.
    """
    with reporting_errors():
        from lasthop.cli.emulate import Request, execute

        settings = (scheme, seed, run, overrides or [], mtu, lateness)
        recordings = (out, pcap, trace, record_lateness)
        execute(Request(scenario, command or [], server, *settings, json, *recordings, between, force))


@app.command()
def study(
    scenario: ScenarioFile,
    scheme: Schemes = None,
    sender: Senders = None,
    seed: Seed = 1,
    overrides: Overrides = None,
    jobs: Jobs = None,
    precision: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Target half-width of the intervals, relative to the mean."),
    ] = "2%",
    runs: Annotated[
        str, typer.Option(metavar="MIN:MAX", help="Fewest and most runs of each scheme at each point.")
    ] = "100:1000",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.metric,
            help="The metric of the tables, by default throughput_bps; may be repeated. "
            "The stopping rule is that of the first.",
        ),
    ] = None,
    quantile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE",
            help="Also a quantile of the metrics over the runs, such as 0.95 or 99%; may be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, directory("Directory of the results; by default FILE.study.")] = None,
    json: AsJson = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only count the runs and estimate their time."),
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            autocompletion=complete.export,
            help="Also write every run as csv or parquet; or datasette: metadata to show the store with.",
        ),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Also write a report: report.html.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Make only the runs of shard I of N; `lasthop merge` merges them."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Sweep a scenario with replications until the intervals are narrow enough; can be resumed."""
    with reporting_errors():
        from lasthop.cli.study import Request, execute

        settings = (scheme or [], sender or [], seed, overrides or [], jobs, precision, runs)
        stated = (metric or ["throughput_bps"], quantile or [])
        execute(Request(scenario, *settings, *stated, out, json, dry_run, export, html, shard))


@app.command()
def merge(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", show_default=False, help="Directory of the whole study.")
    ],
    shards: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="The directories of `lasthop study --shard`, or the stores in them.",
        ),
    ],
    partial: Annotated[
        bool, typer.Option("--partial", help="Merge although runs are missing; `lasthop study` makes them.")
    ] = False,
    json: AsJson = False,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            autocompletion=complete.export,
            help="Also write every run as csv or parquet; or datasette: metadata to show the store with.",
        ),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Also write a report: report.html.")] = False,
    verbose: Verbose = False,
) -> None:
    """Merge the shards of a study, and print its tables."""
    with reporting_errors():
        from lasthop.cli.merge import Request, execute

        execute(Request(out, shards, partial, json, export, html))


@app.command()
def compare(
    scenario: ScenarioFile,
    scheme: Schemes = None,
    sender: Senders = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            autocompletion=complete.setting,
            help="Compare these values of a setting, separated by commas; may be repeated.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="ARM",
            help='The arm in use now, such as "linux basic"; by default the first of the scenario.',
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME", autocompletion=complete.metric, help="The metric to compare by.")
    ] = "throughput_bps",
    quantile: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Compare by a quantile of the metric over the runs, such as 95%, instead of the mean.",
        ),
    ] = None,
    better: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            autocompletion=complete.better,
            help="Which values are better, higher or lower; known for most metrics.",
        ),
    ] = None,
    seed: Seed = 1,
    overrides: Overrides = None,
    jobs: Jobs = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Half-width of the intervals of ratios at which a good arm may stop."
        ),
    ] = "5%",
    margin: Annotated[
        str, typer.Option(metavar="SHARE", help="How much worse than the best is still as good.")
    ] = "5%",
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="MIN:MAX",
            help="Runs of each arm before any stops, and the most; by default 8:64, and more for quantiles.",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most this many arms.")] = 20,
    out: Annotated[Path | None, directory("Directory of the results and of a heat map.")] = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the best of many senders, schemes and settings; inferior combinations stop early.

    Every combination (arm) runs over the same fades, and is compared with the one in use now. `--sender all`
    and `--scheme all` compare all senders and schemes. `--axis radio.queue=20packets,none` adds a setting.
    """
    with reporting_errors():
        from lasthop.cli.compare import Request, execute

        arms = (scheme or [], sender or [], axis or [], baseline)
        by = (metric, quantile, better)
        stops = (precision, margin, runs)
        execute(Request(scenario, *arms, *by, seed, overrides or [], jobs, *stops, rows, out, json))


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
    verbose: Verbose = False,
) -> None:
    """Check a scenario, and print its canonical form with every default and unit."""
    with reporting_errors():
        from lasthop.cli.check import execute

        execute(scenario, overrides or [], packet_loss or [], link, json)


@app.command()
def schema(
    results: Annotated[bool, typer.Option("--results", help="That of `lasthop run --json` instead.")] = False,
) -> None:
    """Print the JSON Schema of scenario files, by which editors complete and check them."""
    with reporting_errors():
        from lasthop import Scenario

        streams.emit_document(Scenario.report_schema() if results else Scenario.json_schema())


@app.command()
def schemes(json: AsJson = False) -> None:
    """List the schemes with a summary and the source of each."""
    with reporting_errors():
        from lasthop.cli.schemes import execute

        execute(json)


@app.command()
def links(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete.link, help="Show the keys of this one, and their sources."
        ),
    ] = None,
    mahimahi: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write its capacity as a trace for mahimahi or rate.mahimahi."),
    ] = None,
    up: Annotated[bool, typer.Option("--up", help="With --mahimahi: of the direction to the base.")] = False,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.001, max=86400.0, help="With --mahimahi: its length.")
    ] = 60.0,
    seed: Seed = 1,
    run: Annotated[int, number("The run's number.")] = 0,
    json: AsJson = False,
) -> None:
    """List the presets of wireless links with the sources of their numbers, or show one.

    A scenario uses one by `preset = "NAME"` in `[radio]` or `[link.NAME]`; keys stated beside it take
    precedence.
    """
    with reporting_errors():
        from lasthop.cli.links import Request, execute

        execute(Request(name, mahimahi, up, seconds, seed, run, json))


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


@app.command()
def fit(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Measurements of one link, in the formats that --plan lists.",
        ),
    ] = None,
    rate: Rate = None,
    up_rate: UpRate = None,
    rtt: Rtt = None,
    last_hop_rtt: LastHopRtt = None,
    user: User = "client",
    captured: Captured = None,
    every: Every = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Take the losses as measured in place of a model.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print how to measure the link, given FILE or from scratch.")
    ] = False,
    seed: Seed = 1,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Directory of the results; by default FILE.fit.")] = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Fit a link to measurements of it: its losses and bursts with intervals, rate, delay; as a scenario.

    Says what the measurements cannot tell, and what to measure instead.
    """
    with reporting_errors():
        from lasthop.cli.fit import Known, Request, execute

        known = Known(rate, up_rate, rtt, last_hop_rtt)
        execute(Request(files or [], known, user, captured, every, replay, plan, seed, jobs, out, json))


@app.command()
def advise(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Measurements of the link, as for `lasthop fit`."),
    ] = None,
    rate: Rate = None,
    up_rate: UpRate = None,
    rtt: Rtt = None,
    last_hop_rtt: LastHopRtt = None,
    loss: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Without FILE: the share of packets that are lost, such as 2%."),
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH", help="With --loss: mean burst, in packets or time, such as 5 or 40ms."
        ),
    ] = None,
    uses: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="USE",
            autocompletion=complete.use,
            help="What the link is for: bulk (default), upload, web, video, call or shell; may be repeated.",
        ),
    ] = None,
    sender: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.server,
            help="The server's TCP now, such as linux, which is CUBIC, or linux-bbr.",
        ),
    ] = "linux",
    user: User = "client",
    captured: Captured = None,
    every: Every = None,
    seed: Seed = 1,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Directory of the page; by default FILE.advice.")] = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find what would help a link: what limits it, remedies ranked by gain, and remedies of no use.

    `--for call` asks what would help the link's calls instead of its downloads.
    The link is given by measurements, or by known properties: --loss 2% --burst 5 --rate 8Mbps --rtt 60ms.
    """
    with reporting_errors():
        from lasthop.cli.advise import Request, execute
        from lasthop.cli.fit import Known

        known = Known(rate, up_rate, rtt, last_hop_rtt)
        settings = (
            files or [],
            known,
            loss,
            burst,
            user,
            captured,
            every,
            uses or [],
            sender,
            seed,
            jobs,
            out,
            json,
        )
        execute(Request(*settings))


@app.command()
def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete.worked_scenario,
            help="Print this one, to redirect it into a file.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """List the worked scenarios that come with Lasthop, or print one as TOML.

    Wherever a scenario file is expected, the name of a worked scenario will do. A file of that name comes
    first.
    """
    with reporting_errors():
        from lasthop.cli.scenarios import execute

        execute(name, json)


@app.command()
def paper(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete.paper, help="The paper. Without it, list the papers."
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            autocompletion=complete.figure,
            help="Draw only this figure, without claims; may be repeated.",
        ),
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=CHOICE",
            autocompletion=complete.reading,
            help="Choose another reading of what the paper leaves open; may be repeated.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="As many runs as the claims need, or few.")
    ] = False,
    seed: Seed = 1,
    run: Annotated[int, number("The run shown in packet traces.")] = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Directory of the results; by default NAME.paper.")] = None,
    json: AsJson = False,
    verbose: Verbose = False,
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
            help="The packet size to vary.",
        ),
    ] = "tcp.packet_size",
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help='Packet sizes to try, such as "128 B, 512 B"; by default 12 up to 1536 B.'
        ),
    ] = None,
    scheme: Schemes = None,
    runs: Annotated[int, typer.Option(min=2, metavar="N", help="Runs of each size and scheme.")] = 100,
    seed: Seed = 1,
    overrides: Overrides = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Also draw throughput against packet size there.")] = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the packet size with the highest throughput, for each point of the scenario's sweep.

    The sweep, usually of the channel, gives the rows of the table. A window in bytes holds fewer packets the
    larger they are; a window such as "10 packets" holds the same number of each size. --key may also name the
    packet size of one part, such as scheme.metp.wireless.packet_size.
    """
    with reporting_errors():
        from lasthop.cli.packet_size import Request, execute

        settings = (scheme or [], runs, seed, overrides or [], jobs)
        execute(Request(scenario, key, sizes, *settings, out, json))


@app.command()
def web(
    scenario: Annotated[
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
    with reporting_errors():
        from lasthop.cli.web import execute

        execute(scenario, overrides or [], out)


@app.command()
def man() -> None:
    """Print the manual page: `lasthop man | man -l -`."""
    with reporting_errors():
        from lasthop.cli.man import page

        streams.emit_document(page(typer.main.get_command(app)))
