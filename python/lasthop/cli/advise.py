"""`lasthop advise`: advice on a link, printed and as an HTML page."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from lasthop.advice import SENDERS, USES, Advice, Judgement, Remedy, advise
from lasthop.advice.advice import losses_in_words
from lasthop.advice.wording import assumptions, caution, changed, effects, further, other_uses, without_use
from lasthop.cli.failure import CRASHED, RefusedError, failed
from lasthop.cli.fit import Known, read_all
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity
from lasthop.cli.streams import emit, emit_document
from lasthop.core import formats
from lasthop.core.names import unknown
from lasthop.core.quantity import quantity
from lasthop.fitting import FittedLink, fit, stated_link
from lasthop.race import RaceError
from lasthop.show.advice_page import document, html


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    files: list[Path]
    known: Known
    loss: str | None
    burst: str | None
    user: str
    captured: str | None
    every: str | None
    uses: list[str]
    sender: str
    seed: int
    jobs: int | None
    out: Path | None
    as_json: bool


def execute(request: Request) -> None:
    """Fit the link, simulate the remedies, and write the page."""
    if request.sender not in SENDERS:
        raise RefusedError(f"--sender: {unknown('sender', request.sender, list(SENDERS))}")
    for name in request.uses:
        if name not in USES:
            raise RefusedError(f"--for: {unknown('use', name, list(USES))}")
    try:
        with Activity("reading") as activity:
            link = _link(request, activity)
            advice = advise(
                link,
                request.uses or ["bulk"],
                sender=request.sender,
                seed=request.seed,
                jobs=request.jobs,
                progress=lambda what, done: activity.study(done, what),
            )
            activity.doing("writing the page")
            name = request.files[0].name if request.files else "link"
            command = shlex.join(["lasthop", *sys.argv[1:]])
            with Output(request.out or Path(f"{name}.advice")) as output:
                output.text("advice.html", html(advice, command))
                output.text("advice.json", json.dumps(document(advice), indent=2, ensure_ascii=False) + "\n")
                output.text("scenario.toml", link.toml())
    except (RaceError, ValueError) as error:
        raise RefusedError(str(error)) from None
    except RuntimeError as fault:  # A run crashed; the message says how to replay it.
        raise failed("run", str(fault), code=CRASHED) from None
    if request.as_json:
        emit_document(json.dumps(document(advice), indent=2, ensure_ascii=False))
    else:
        _print(advice)
        emit(f"\nwritten to {output.summary()}")


def _link(request: Request, activity: Activity) -> FittedLink:
    numbers = request.known.numbers()
    if request.files:
        if request.loss is not None or request.burst is not None:
            raise RefusedError("--loss and --burst state a link without measurements; leave them or FILE out")
        measurements = read_all(request.files, request.user, request.captured, request.every)
        activity.doing("fitting models of the losses")
        return fit(measurements, **numbers, seed=request.seed, jobs=request.jobs)
    rate, rtt = numbers.pop("rate_bps"), numbers.pop("rtt_s")
    if rate is None or rtt is None or request.loss is None:
        raise RefusedError(
            "expected a measurement, or what you know of the link: such as --loss 2% --burst 5 --rate 8Mbps "
            "--rtt 60ms; `lasthop fit --plan` says how to measure"
        )
    found = quantity(request.loss)
    if found is None or found[1] != "" or not 0 <= found[0] < 1:
        raise RefusedError(f"--loss: found {request.loss!r}, expected a share below 1, such as 2%")
    return stated_link(rate, rtt, loss=found[0], burst=request.burst, **numbers)


def _print(advice: Advice) -> None:
    link = advice.link
    assert link.rate_bps is not None
    emit(f"{advice.verdict()}\n")
    emit(f"the link: {formats.rate(link.rate_bps)}, round trip {formats.seconds(link.rtt_s)}")
    for line in losses_in_words(link):
        emit(f"  {line}")
    for what in link.cannot_tell:
        emit(f"  undetermined: {what}")
    if link.cannot_tell:
        emit(f"  measure this: {advice.measure.irtt}")
    for judgement in advice.judgements:
        _print_judgement(advice, judgement)
    for index, each in enumerate(advice.advised):
        _print_advised(advice, each, "do this" if index == 0 else "for more effort")
    _print_effects(advice)
    for note in assumptions(advice):
        emit(f"\n{note}")


def _print_judgement(advice: Advice, judgement: Judgement) -> None:
    from lasthop.cli.table import Table

    measure, now = judgement.measure, judgement.now
    emit(f"\nsimulated: {judgement.use.simulated}")
    share = ""
    if measure.metric == "throughput_bps" and advice.link.rate_bps is not None:
        share = f", {now.value / advice.link.rate_bps:.0%} of the rate"
    emit(f"what limits it: now {measure.write(now.value)}{share}; without")
    for limit in judgement.limits:
        emit(f"  {limit.name}: {measure.write(limit.value)}")
    emit("")
    table = Table("remedy", measure.heading, "gain", *(each.heading for each in judgement.further), "where")
    advised = {each.arm for each in advice.advised}
    for each in judgement.remedies:
        table.row(
            f"{'* ' if each.arm in advised else '  '}{each.title}",
            measure.write(each.value),
            "now" if each is now else measure.gain(each.gain, each.gain_low, each.gain_high),
            *further(judgement, each),
            ", ".join(each.deployment.places),
        )
    table.print()
    useless = without_use(judgement)
    if useless:
        emit("\nof no use:")
    for reason, titles in useless:
        emit(f"  {', '.join(titles)}{f': {reason}' if reason else ''}")


def _print_advised(advice: Advice, each: Remedy, what: str) -> None:
    emit(f"\n{what}: {each.title}, {'; '.join(advice.gains(each.arm))}")
    if note := caution(advice, each):
        emit(f"  {note}")
    if each.meaning:
        emit(f"  {each.meaning}")
    emit(f"  how: {'; '.join(each.deployment.how)}")
    if each.deployment.costs:
        emit(f"  cost: {'; '.join(each.deployment.costs)}")
    if each.deployment.reads_tcp:
        emit("  not inside a VPN, which hides TCP headers; TLS does not matter")
    for effect in advice.harmed(each.arm):
        emit(f"  harms {effect.use.title}: {changed(effect)}")


def _print_effects(advice: Advice) -> None:
    from lasthop.cli.table import Table

    if not advice.effects:
        return
    others = other_uses(advice)
    table = Table("other uses", *others)
    for title, cells in effects(advice):
        table.row(title, *(" ".join(cell).strip() for cell in cells))
    emit("")
    table.print()
