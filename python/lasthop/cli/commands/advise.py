"""`lasthop advise`: advice on a link, printed and as an HTML page."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import lasthop
from lasthop import advice as advising
from lasthop import fitting
from lasthop._lasthop import quantity
from lasthop.advice import (
    SENDERS,
    STACK_SENDERS,
    USES,
    Advice,
    BothAdvice,
    Judgement,
    Pair,
    Remedy,
    sender_of,
)
from lasthop.advice.advice import losses_in_words
from lasthop.advice.wording import (
    assumptions,
    by_availability,
    caution,
    changed,
    effect_text,
    effects,
    further,
    other_uses,
    parts,
    proposals,
    without_use,
)
from lasthop.cli import complete
from lasthop.cli.failure import CRASHED, RefusedError, failed
from lasthop.cli.measurements import read_all
from lasthop.cli.option_values import link_properties
from lasthop.cli.options import (
    AsJson,
    Captured,
    Column,
    Every,
    IsWifi,
    Jobs,
    LastHopRtt,
    Rate,
    Rtt,
    Seed,
    UpRate,
    User,
    Uses,
    Verbose,
    directory,
)
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity
from lasthop.cli.streams import emit, emit_document
from lasthop.core import formats
from lasthop.core.names import unknown
from lasthop.fitting import FittedLink
from lasthop.race import RaceError
from lasthop.show.advice_page import both_document, document, html

TRANSPORTS = {"tcp": ("TCP",), "quic": ("QUIC",), "any": ("TCP", "QUIC")}
"""The protocols of each value of --transport."""


def advise(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Measurements of the link, as for `lasthop fit`; or one preset or scenario."
        ),
    ] = None,
    rate: Rate = None,
    up_rate: UpRate = None,
    rtt: Rtt = None,
    last_hop_rtt: LastHopRtt = None,
    wifi: IsWifi = False,
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
    uses: Uses = None,
    sender: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.server,
            help="The server's sender now: linux, which is CUBIC, linux-bbr, or quinn-cubic for QUIC.",
        ),
    ] = "linux",
    transport: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            autocompletion=complete.transport,
            help="tcp or quic, instead of that of --sender; any for what helps both.",
        ),
    ] = None,
    user: User = "client",
    captured: Captured = None,
    every: Every = None,
    column: Column = None,
    seed: Seed = 1,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Directory of the page; by default FILE.advice.")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="DIR",
            help="Write the files that install the advised remedy: for the gateway, sysctl and tc.",
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find what would help a link: what limits it, remedies ranked by gain, and remedies of no use.

    `--for call` asks what would help the link's calls instead of its downloads.
    The link is given by measurements; by a preset of `lasthop links`, such as starlink, or a scenario; or by
    known properties: --loss 2% --burst 5 --rate 8Mbps --rtt 60ms.
    """
    check(sender, uses or [])
    senders = _senders(sender, transport)
    known = link_properties(rate=rate, up_rate=up_rate, rtt=rtt, last_hop_rtt=last_hop_rtt)
    try:
        with Activity("reading") as activity:
            given = _given_link(files or [], {**known, "loss": loss, "burst": burst})
            if wifi and (given is not None or not files):
                raise RefusedError(
                    remedy="expected pings of the link as FILE; presets say it themselves",
                    option="--wifi",
                )
            if given is not None:
                link: FittedLink = given
            elif files:
                if loss is not None or burst is not None:
                    raise RefusedError(
                        "--loss and --burst state a link without measurements; ",
                        remedy="leave them or FILE out",
                    )
                measurements = read_all(files, user=user, captured=captured, every=every, column=column)
                activity.doing("fitting models of the losses")
                link = fitting.fit(measurements, **known, wifi=wifi, seed=seed, jobs=jobs)
            else:
                link = _stated_link(loss, burst, **known)
            name = files[0].name if files else "link"
            directory = out or Path(f"{name}.advice")
            each = [
                advised(
                    link,
                    uses or ["bulk"],
                    sender=sender,
                    seed=seed,
                    jobs=jobs,
                    out=directory / protocol if len(senders) > 1 else directory,
                    activity=activity,
                )
                for protocol, sender in senders.items()
            ]
            both = BothAdvice(each[0][0], each[1][0]) if len(each) > 1 else None
            advices = each[0][0].advised if both is None else [pair.remedy for pair in both.advised]
            planned = _write_plan(next(iter(advices), None), plan) if plan is not None else None
    except (RaceError, ValueError) as error:
        raise RefusedError.of(error) from None
    except RuntimeError as fault:  # A run crashed; the message says how to replay it.
        raise failed("run", str(fault), code=CRASHED) from None
    if as_json:
        found = document(each[0][0]) if both is None else both_document(both)
        emit_document(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        if both is None:
            show(each[0][0])
        else:
            _show_both(both)
        for _, written in each:
            emit(f"\nwritten to {written}")
        if planned is not None:
            emit(f"to install it: {planned}")


def _senders(sender: str, transport: str | None) -> dict[str, str]:
    """Return the server's sender now for each protocol of --transport.

    Raises
    ------
    RefusedError
        If there is no such transport, or this build has no QUIC.
    """
    if transport is None:
        return {"": sender}
    if transport not in TRANSPORTS:
        raise RefusedError(unknown("transport", transport, list(TRANSPORTS)), option="--transport")
    protocols = TRANSPORTS[transport]
    if "QUIC" in protocols and not STACK_SENDERS:
        raise RefusedError("this build has no QUIC; ", remedy="leave the option out", option="--transport")
    return {each.lower(): sender_of(sender, each) for each in protocols}


def _write_plan(remedy: Remedy | None, directory: Path) -> str:
    """Write the files that install a remedy; return where they are."""
    with Output(directory) as output:
        for name, text in advising.plan(remedy).items():
            output.text(name, text)
    return output.summary()


def check(sender: str, uses: list[str]) -> None:
    """Check the values of --sender and --for.

    Raises
    ------
    RefusedError
        If one is unknown.
    """
    if sender not in SENDERS and sender not in STACK_SENDERS:
        raise RefusedError(unknown("sender", sender, [*SENDERS, *STACK_SENDERS]), option="--sender")
    for use in uses:
        if use not in USES:
            raise RefusedError(unknown("use", use, list(USES)), option="--for")


def advised(
    link: FittedLink,
    uses: list[str],
    *,
    sender: str,
    seed: int,
    jobs: int | None,
    out: Path,
    activity: Activity,
) -> tuple[Advice, str]:
    """Return the advice on a link and where its page, its JSON and the scenario were written.

    Raises
    ------
    RaceError, ValueError, RuntimeError
        As `lasthop.advice.advise` does.
    """
    advice = advising.advise(
        link,
        uses,
        sender=sender,
        seed=seed,
        jobs=jobs,
        progress=lambda what, done: activity.study(done, what),
    )
    activity.doing("writing the page")
    with Output(out) as output:
        output.text("advice.html", html(advice, shlex.join(["lasthop", *sys.argv[1:]])))
        output.text("advice.json", json.dumps(document(advice), indent=2, ensure_ascii=False) + "\n")
        output.text("scenario.toml", link.toml())
    return advice, output.summary()


def _given_link(files: list[Path], known: dict[str, Any]) -> FittedLink | None:
    """Return the link of a preset or of a scenario; None if the files are measurements.

    A file of the name of a preset or a worked scenario is a file; a name of both is that of the preset.
    """
    presets = {each.name for each in lasthop.links()}
    named = {*presets, *lasthop.scenarios()}
    given = [path for path in files if (str(path) in named and not path.exists()) or path.suffix == ".toml"]
    if not given:
        return None
    path = given[0]
    if len(files) > 1:
        raise RefusedError(f"{path}: a preset or a scenario is a whole link; ", remedy="state it alone")
    is_scenario = str(path) not in presets
    stated = [name for name, value in known.items() if value is not None and (is_scenario or name != "rtt_s")]
    if stated:
        option = stated[0].removesuffix("_bps").removesuffix("_s").replace("_", "-")
        raise RefusedError(
            f"{path} states this already; ", remedy="leave the option out", option=f"--{option}"
        )
    if is_scenario:
        return fitting.scenario_link(lasthop.load(path))
    return fitting.preset_link(str(path), rtt_s=known["rtt_s"])


def _stated_link(
    loss: str | None, burst: str | None, *, rate_bps: float | None, rtt_s: float | None, **known: Any
) -> FittedLink:
    """Return the link of `--loss`, `--burst` and what else is known.

    Raises
    ------
    RefusedError
        If the rate, the round-trip time or the losses are not stated.
    """
    if rate_bps is None or rtt_s is None or loss is None:
        raise RefusedError(
            remedy=(
                "expected a measurement, a preset, a scenario, or what you know of the link: such "
                "as --loss 2% --burst 5 --rate 8Mbps --rtt 60ms; `lasthop fit --plan` says how to "
                "measure"
            ),
        )
    found = quantity(loss)
    if found is None or found[1] != "" or not 0 <= found[0] < 1:
        raise RefusedError(
            f"found {loss!r}, ", remedy="expected a share below 1, such as 2%", option="--loss"
        )
    return fitting.stated_link(rate_bps, rtt_s, loss=found[0], burst=burst, **known)


def show(advice: Advice) -> None:
    """Print advice."""
    link = advice.link
    assert link.rate_bps is not None
    for doubt in link.doubts:
        emit(f"In doubt: {doubt}\n")
    emit(f"{advice.verdict()}\n")
    emit(f"the link: {formats.rate(link.rate_bps)}, round trip {formats.seconds(link.rtt_s)}")
    for line in losses_in_words(link):
        emit(f"  {line}")
    for sign in link.signs:
        emit(f"  {sign}")
    for what in advice.open_questions:
        emit(f"  undetermined: {what}")
    if advice.open_questions:
        emit(f"  measure this: {advice.measure.irtt}")
    for judgement in advice.judgements:
        _print_judgement(advice, judgement)
    _print_parts(advice)
    for what, each in proposals(advice.advised, advice.harmless):
        _print_advised(advice, each, what)
    _print_effects(advice)
    for note in assumptions(advice):
        emit(f"\n{note}")


def _show_both(both: BothAdvice) -> None:
    """Print what helps TCP, QUIC and both; the pages have the rest."""
    from lasthop.cli.table import Table

    for doubt in both.tcp.link.doubts:
        emit(f"In doubt: {doubt}\n")
    emit(f"{both.verdict()}\n")
    for name, each in (("TCP", both.tcp), ("QUIC", both.quic)):
        emit(f"{name}, {each.now.title}: now {each.first.measure.write(each.now.value)}. {each.verdict()}")
    emit(f"simulated: {both.tcp.first.use.simulated}\n")
    advised = both.advised
    table = Table("remedy", "gain over TCP", "over QUIC", "where")
    for pair in both.pairs:
        known = pair.remedy
        places = ", ".join(dict.fromkeys(known.deployment.places))
        table.row(
            f"{'* ' if pair in advised else '  '}{known.title}",
            *(_gain(pair, each, advice) for each, advice in ((pair.tcp, both.tcp), (pair.quic, both.quic))),
            places if known.deployment.available else f"{places}: not to be had today",
        )
    table.print()
    for what, pair in proposals(advised, both.harmless):
        emit(f"\n{what}: {pair.remedy.title}, {'; '.join(both.gains(pair))}")
        _print_steps(pair.remedy)
        for protocol, effect in both.harmed(pair):
            emit(f"  harms {effect.use.title} over {protocol}: {changed(effect)}")
        if unknown := both.unknown_effects(pair):
            emit(f"  effects on other uses over {' and '.join(unknown)}: not simulated")
    for note in dict.fromkeys((*assumptions(both.tcp), *assumptions(both.quic))):
        emit(f"\n{note}")


def _gain(pair: Pair, remedy: Remedy | None, advice: Advice) -> str:
    # Of a scheme that reads TCP, one variant is tried for QUIC, and no combination.
    known = pair.remedy.deployment
    if remedy is None and not (known.reads_tcp and len(known.parts) == 1):
        return "not tried"
    if remedy is None or remedy.useless:
        return "no use"
    return advice.first.measure.gain(remedy.gain, remedy.gain_low, remedy.gain_high)


def _print_judgement(advice: Advice, judgement: Judgement) -> None:
    from lasthop.cli.table import Table

    measure, now = judgement.measure, judgement.now
    emit(f"\nsimulated: {judgement.use.simulated}")
    share = ""
    if measure.metric == "throughput_bps" and advice.link.rate_bps is not None:
        share = f", {now.value / advice.link.rate_bps:.0%} of the rate"
    emit(f"what limits it: now {measure.write(now.value)}{share}; without")
    for limit in judgement.limits:
        gained = f", {measure.gained_by(limit.gain)}" if math.isfinite(limit.gain) else ""
        emit(f"  {limit.name}: {measure.write(limit.value)}{gained}")
    emit("")
    table = Table("remedy", measure.heading, "gain", *(each.heading for each in judgement.further), "where")
    advised = {each.arm for each in advice.advised}
    for group in by_availability(judgement):
        for each in group:
            places = ", ".join(each.deployment.places)
            table.row(
                f"{'* ' if each.arm in advised else '  '}{each.title}",
                measure.write(each.value),
                "now" if each is now else measure.gain(each.gain, each.gain_low, each.gain_high),
                *further(judgement, each),
                places if each.deployment.available else f"{places}: not to be had today",
            )
    table.print()
    useless = without_use(judgement)
    if useless:
        emit("\nof no use:")
    for reason, titles in useless:
        emit(f"  {', '.join(titles)}{f': {reason}' if reason else ''}")


def _print_parts(advice: Advice) -> None:
    """Print how each part of the remedies is installed, and what it costs."""
    from lasthop.cli.table import Table

    table = Table("part of a remedy", "how", "cost")
    for part in parts(advice):
        table.row(part.name, part.how, part.cost or "")
    emit("")
    table.print()


def _print_advised(advice: Advice, each: Remedy, what: str) -> None:
    emit(f"\n{what}: {each.title}, {'; '.join(advice.gains(each.arm))}")
    if note := caution(advice, each):
        emit(f"  {note}")
    if each.meaning:
        emit(f"  {each.meaning}")
    _print_steps(each)
    if each.deployment.reads_tcp:
        emit("  not inside a VPN, which hides TCP headers; TLS does not matter")
    for effect in advice.harmed(each.arm):
        emit(f"  harms {effect.use.title}: {changed(effect)}")


def _print_steps(remedy: Remedy) -> None:
    for part in remedy.deployment.parts:
        emit(f"  {part.name} ({part.place}): {part.steps.owner}")
        for line in part.steps.commands:
            emit(f"    {line}")
        if part.steps.note:
            emit(f"    {part.steps.note}")
        if part.cost:
            emit(f"    cost: {part.cost}")


def _print_effects(advice: Advice) -> None:
    from lasthop.cli.table import Table

    if not advice.effects:
        return
    others = other_uses(advice)
    table = Table("other uses", *others)
    for title, cells in effects(advice):
        table.row(title, *map(effect_text, cells))
    emit("")
    table.print()
