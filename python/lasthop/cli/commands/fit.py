"""`lasthop fit`: fits a link to measurements of it, and writes the scenario that has it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lasthop import fitting
from lasthop.cli.failure import RefusedError
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
    Verbose,
    directory,
)
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity
from lasthop.cli.streams import emit, emit_document
from lasthop.core import formats
from lasthop.fitting import FittedLink, FittedLosses, NoRateError, ProbePlan
from lasthop.fitting.losses import lost_copies
from lasthop.measurement import READERS, Measurement, Probes

FAMILIES = {
    "independent": "independent losses",
    "gilbert": "bursts: bad periods lose everything",
    "gilbert-elliott-3": "bursts: bad periods lose a share, good ones nothing",
    "gilbert-elliott": "bursts, and losses between them",
    "semi-markov": "bursts at lognormal intervals or of lognormal lengths",
}
"""A short description of each model family."""


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
    wifi: IsWifi = False,
    user: User = "client",
    captured: Captured = None,
    every: Every = None,
    column: Column = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Take the losses as measured in place of a model.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print how to measure the link, given FILE or from scratch.")
    ] = False,
    seed: Seed = 1,
    jobs: Jobs = None,
    out: Annotated[Path | None, directory("Directory of the results; by default FILE.fit.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Fit a link to measurements of it: its losses and bursts with intervals, rate, delay; as a scenario.

    Says what the measurements cannot tell, and what to measure instead.
    """
    if not files:
        if not plan:
            raise RefusedError(remedy="expected at least one measurement; --plan says how to make one")
        _print_plan(fitting.plan(), as_json)
        return
    known = link_properties(rate=rate, up_rate=up_rate, rtt=rtt, last_hop_rtt=last_hop_rtt)
    with Activity("reading") as activity:
        measurements = read_all(files, user=user, captured=captured, every=every, column=column)
        activity.doing("fitting models of the losses")
        try:
            link = fitting.fit(measurements, **known, wifi=wifi, seed=seed, jobs=jobs)
        except ValueError as error:
            raise RefusedError.of(error) from None
        if plan:
            _print_plan(link.measure, as_json)
            return
        channel, series = _replayed(link) if replay else (None, None)
        found = document(link, channel)
        results = out or Path(f"{files[0].name}.fit")
        with Output(results) as output:
            activity.doing("drawing figures")
            output.text("fit.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
            _draw(link, output)
            if series is not None:
                output.text("losses.csv", series)
            if found["scenario"] is not None:
                output.text("scenario.toml", found["scenario"])
    if as_json:
        emit_document(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _print(link, measurements)
        emit(f"\nwritten to {output.summary()}")
        if found["scenario"] is None:
            emit(f"no scenario: {NoRateError()}")
        else:
            written = results / "scenario.toml"
            emit(f"next: lasthop run {written}, lasthop compare {written}, lasthop advise FILE")


def _print(link: FittedLink, measurements: Sequence[Measurement]) -> None:
    for doubt in link.doubts:
        emit(f"In doubt: {doubt}")
    if link.doubts:
        emit()
    for each in measurements:
        emit(each.summary())
        emit()
    for sign in link.signs:
        emit(sign)
    if link.signs:
        emit()
    if link.stated is not None:
        emit(f"losses, {link.stated.source}: {link.stated.words}\n")
    for losses in (link.down, link.up):
        if losses is not None:
            print_losses(losses)
            emit()
    if link.cannot_tell:
        emit("undetermined")
        for what in link.cannot_tell:
            emit(f"  - {what}")
        emit(f"  measure this instead: {link.measure.irtt}")
        emit()
    # The summaries have the notes of the files.
    read_notes = {note for each in measurements for note in each.notes}
    for note in link.notes:
        if note not in read_notes:
            emit(note)


def print_losses(losses: FittedLosses) -> None:
    """Print the model of one direction."""
    from lasthop.cli.table import Table

    emit(f"{losses.direction}: {FAMILIES[losses.best.family]}")
    for line in losses.lines():
        emit(f"  {line}")
    counted = formats.share(losses.lost / losses.sent)
    if losses.lost and counted != formats.share(losses.best.model["loss"]):
        emit(f"  the loss is that of a packet at a random time; of the packets sent, {counted} were lost")
    if len(losses.candidates) > 1:
        table = Table("model", "parameters", "log-likelihood", "BIC", "weight")
        for each in losses.candidates:
            numbers = (
                f"{each.log_likelihood:,.1f}",
                f"{each.bic - losses.best.bic:+,.1f}",
                f"{each.weight:.3f}",
            )
            table.row(each.family, str(each.parameters), *numbers)
        table.print()
    if losses.doubtful:
        named = ", ".join(check.name.replace("_", " ") for check in losses.doubtful)
        emit(f"  in doubt: {named} are not as the model has them; --replay takes the losses as measured")
    if losses.hidden_burst_s is not None and not losses.cannot_tell:
        emit(f"  mean bursts longer than {formats.seconds(losses.hidden_burst_s)} are excluded")


def document(link: FittedLink, channel: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what `--json` prints of a link; `channel` replaces that of its downlink in the scenario."""
    timing = link.timing
    return {
        "files": list(link.files),
        "doubts": list(link.doubts),
        "down": None if link.down is None else _document(link.down),
        "up": None if link.up is None else _document(link.up),
        "rate_bps": link.rate_bps,
        "up_rate_bps": link.up_rate_bps,
        "rtt_s": link.rtt_s,
        "rtt_median_s": timing.rtt_median_s,
        "rtt_p99_s": timing.rtt_p99_s,
        "last_hop_rtt_s": link.last_hop_rtt_s,
        "queue_packets": None if link.rate_bps is None else link.queue_packets,
        "signs": list(link.signs),
        "wifi": _wifi(link) if isinstance(link, fitting.WifiLink) else None,
        "cannot_tell": list(link.cannot_tell),
        "measure": link.measure.irtt,
        "notes": list(link.notes),
        "scenario": None if link.rate_bps is None else link.toml(channel),
    }


def _wifi(link: fitting.WifiLink) -> dict[str, Any]:
    return {
        "neighbours": [{"share": each.share, "exchange_s": each.exchange_s} for each in link.neighbours],
        "beacon_s": link.waits.beacon_s,
        "listen": link.waits.listen,
    }


def _document(losses: FittedLosses) -> dict[str, Any]:
    return {
        "direction": str(losses.direction),
        "sent": losses.sent,
        "lost": losses.lost,
        "duration_s": losses.duration_s,
        "spacing_s": losses.spacing_s,
        "model": losses.best.family,
        "parameters": {
            each.name: {
                "value": each.value,
                "low": each.low,
                "high": _finite(each.high),
                "determined": each.determined,
            }
            for each in losses.parameters
        },
        "candidates": [
            {
                "model": each.family,
                "parameters": each.parameters,
                "log_likelihood": each.log_likelihood,
                "bic": each.bic,
                "weight": each.weight,
            }
            for each in losses.candidates
        ],
        "three_copies_lost": lost_copies(losses.best.model, 3),
        "checks": {check.name: check.p_value for check in losses.checks},
        "in_doubt": [check.name for check in losses.doubtful],
        "hidden_burst_s": losses.hidden_burst_s,
        "cannot_tell": list(losses.cannot_tell),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _draw(link: FittedLink, output: Output) -> None:
    """Draw the checks of each direction."""
    from lasthop import plots

    for losses, name in ((link.down, "down"), (link.up, "up")):
        if losses is not None and losses.checks:
            plots.save(plots.loss_checks(losses), output.path(f"{name}.checks", "figures"))


def _replayed(link: FittedLink) -> tuple[dict[str, Any], str]:
    """Return the channel that replays the losses of the downlink, and its file: a row wherever they change.

    Raises
    ------
    RefusedError
        If the losses were counted, or are not known.
    """
    if link.down is None or not isinstance(link.down.data, Probes):
        raise RefusedError("no file says which packets of the downlink were lost", option="--replay")
    probes = link.down.data
    rows: list[tuple[str, int]] = []
    for time_s, lost in zip(probes.sent_s - probes.sent_s[0], probes.lost, strict=True):
        if not rows or (lost != rows[-1][1] and f"{time_s:.9f}" != rows[-1][0]):
            rows.append((f"{time_s:.9f}", int(lost)))
    # A series repeats after its last row, which holds for as long as the row before it: so that one is short.
    end = float(probes.sent_s[-1] - probes.sent_s[0])
    rows += [(f"{end + later:.9f}", int(probes.lost[-1])) for later in (1e-6, 2e-6)]
    series = "".join(["time_s,loss\n", *(f"{time},{lost}\n" for time, lost in rows)])
    return {"loss-series": {"file": "losses.csv"}}, series


def _print_plan(made: ProbePlan, as_json: bool) -> None:
    if as_json:
        keys = {"interval_s": made.interval_s, "duration_s": made.duration_s, "reason": made.reason}
        emit_document(json.dumps({**keys, "irtt": made.irtt, "ping": made.ping}, indent=2))
        return
    emit(f"{made.irtt}\n\n{made.duration_s:.0f} s: {made.reason}.")
    emit("SERVER runs `irtt server -i 0`. Without one:\n")
    emit(made.ping)
    emit("\nFormats of measurements, with a command for each:\n")
    for reader in READERS:
        emit(f"{reader.title:13} {reader.command or ''}".rstrip())
