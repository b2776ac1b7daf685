"""`lasthop measure`: measures a link with irtt, ping, iperf3 and curl, into a file for `fit`."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lasthop import fitting
from lasthop._lasthop import quantity
from lasthop.advice import Advice
from lasthop.cli.commands.advise import advised, check, show
from lasthop.cli.commands.fit import document as fit_document
from lasthop.cli.failure import INTERRUPTED, RefusedError
from lasthop.cli.option_values import positive
from lasthop.cli.options import AsJson, Jobs, Seed, Uses, Verbose
from lasthop.cli.progress import Activity
from lasthop.cli.streams import detail, emit, emit_document, notify
from lasthop.core import formats
from lasthop.core.files import write_text
from lasthop.fitting import FittedLink
from lasthop.measurement import Direction, Measurement, read
from lasthop.measuring import (
    Location,
    Plan,
    Session,
    UnmeasuredError,
    locate,
    outcome,
    responsiveness,
    throughput,
)
from lasthop.measuring import (
    measure as measure_link,
)
from lasthop.measuring.scores import RAMP_S
from lasthop.race import RaceError
from lasthop.show.advice_page import document as advice_document

_HOST = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9._:%\[\]-]{0,252}")
_URL = re.compile(r"https?://[!-~]{1,2000}")

SENDER = "linux"
"""The server's TCP for which advice is given."""

LOAD_S = 8.0
LONG_IDLE_S, LONGEST_IDLE_S = 300.0, 3600.0
MOST_BYTES = 100_000_000_000
LEAST_BYTES = 1_000_000


def measure(
    host: Annotated[
        str,
        typer.Argument(metavar="HOST", help="The far end: a host with servers of irtt and iperf3, or any."),
    ],
    idle: Annotated[str, typer.Option(metavar="TIME", help="How long to probe without load.")] = "20s",
    no_load: Annotated[
        bool, typer.Option("--no-load", help="Only probe; rates and queues stay unknown.")
    ] = False,
    size: Annotated[
        str,
        typer.Option("--bytes", metavar="SIZE", help="At most so many bytes of load, both ways together."),
    ] = "200MB",
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A large file to download, where no iperf3 server answers."),
    ] = None,
    hop: Annotated[
        int,
        typer.Option(
            min=1, max=30, metavar="N", help="Which hop is the wireless one; 1 is to your own router."
        ),
    ] = 1,
    watch: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Repeat without load for so long, such as 24h; shows each hour."),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="With --watch: from the start of a round to the next.")
    ] = "5min",
    uses: Uses = None,
    no_advice: Annotated[
        bool, typer.Option("--no-advice", help="End after the measurement, without advice on the link.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file; by default HOST and the time, .json.")
    ] = None,
    seed: Seed = 1,
    jobs: Jobs = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Measure a link and advise on it: losses, bursts, rate, delay, and the hop; the file is for fit, too.

    Uses irtt, ping, iperf3 and curl where they are installed, and says what is missing. HOST runs
    `irtt server -i 0` and `iperf3 -s`; any other host is pinged, and --url names a file to download.
    """
    check(SENDER, uses or [])
    plan = _plan(host, idle=idle, no_load=no_load or watch is not None, size=size, url=url, hop=hop)
    lasts_s = _time("--watch", watch, "24h", 60.0, 31 * 86400.0) if watch is not None else None
    every_s = _time("--every", every, "5min", 10.0, 86400.0)
    if lasts_s is not None and every_s < plan.idle_s + 5:
        raise RefusedError(
            f"rounds take {formats.seconds(plan.idle_s)} of probes and some seconds around them; ",
            remedy=f"expected at least {plan.idle_s + 5:.0f}s",
            option="--every",
        )
    file = out or Path(f"{re.sub(r'[^A-Za-z0-9._-]', '-', host)}-{datetime.now():%Y-%m-%dT%H%M%S}.json")
    if not file.parent.is_dir():
        raise RefusedError(f"{file.parent} is not a directory", option="--out")
    notify(_announced(plan, lasts_s, every_s))
    try:
        if lasts_s is None:
            with Activity("finding servers") as activity:
                session = measure_link(plan, activity.doing)
        else:
            session = _watch(plan, file, lasts_s, every_s)
    except UnmeasuredError as error:
        raise RefusedError.of(error) from None
    _write(session, file)
    with Activity("fitting models of the losses"):
        try:
            measurement = read(file)
            link = fitting.fit(measurement, seed=seed, jobs=jobs)
        except ValueError as error:
            raise RefusedError.of(error) from None
        place = _location(measurement)
    if not as_json:
        _print(file, session, measurement, link, place)
    advice = None
    if not no_advice and not session.interrupted:
        advice = _advise(file, link, uses or ["bulk"], seed=seed, jobs=jobs)
    if as_json:
        found = _document(file, session, measurement, link, place)
        found["advice"] = None if advice is None else advice_document(advice[0])
        emit_document(json.dumps(found, indent=2, ensure_ascii=False))
    elif advice is None:
        rate = "" if link.rate_bps is not None else " --rate RATE"
        emit(f"next: lasthop advise {shlex.quote(str(file))}{rate}")
    else:
        emit("\nadvice, as that of `lasthop advise` on this file\n")
        show(advice[0])
        emit(f"\nwritten to {advice[1]}")
    if session.interrupted:
        notify(f"interrupted: {file} has what was measured until then")
        raise typer.Exit(INTERRUPTED)


def _advise(
    file: Path, link: FittedLink, uses: list[str], *, seed: int, jobs: int | None
) -> tuple[Advice, str] | None:
    """Return the advice on the measured link, and where it was written; None if it cannot be given."""
    if link.rate_bps is None:
        notify("no advice: the rate of the link was not measured")
        return None
    try:
        with Activity("advising") as activity:
            return advised(
                link,
                uses,
                sender=SENDER,
                seed=seed,
                jobs=jobs,
                out=Path(f"{file}.advice"),
                activity=activity,
            )
    except (RaceError, ValueError, RuntimeError) as error:
        notify(f"no advice: {error}")
        return None


def _plan(host: str, *, idle: str, no_load: bool, size: str, url: str | None, hop: int) -> Plan:
    """Return the plan of the options.

    Raises
    ------
    RefusedError
        If one is wrong.
    """
    if not _HOST.fullmatch(host):
        raise RefusedError(f"found {host!r}, ", remedy="expected a name or an address", option="HOST")
    if url is not None and not _URL.fullmatch(url):
        raise RefusedError(f"found {url!r}, ", remedy="expected http:// or https://", option="--url")
    found = quantity(size)
    if found is None or found[1] != "B" or not LEAST_BYTES <= found[0] <= MOST_BYTES:
        raise RefusedError(
            f"found {size!r}, ", remedy="expected a size from 1MB to 100GB, such as 200MB", option="--bytes"
        )
    return Plan(
        host,
        idle_s=_time("--idle", idle, "20s", 1.0, LONGEST_IDLE_S),
        load_s=0.0 if no_load else LOAD_S,
        most_bytes=int(found[0]),
        url=url,
        hop=hop,
    )


def _time(option: str, text: str | None, example: str, least_s: float, most_s: float) -> float:
    found = positive(option, text, "s", example)
    if found is None or not least_s <= found <= most_s:
        raise RefusedError(
            f"found {text}, ",
            remedy=f"expected {formats.seconds(least_s)} to {formats.seconds(most_s)}",
            option=option,
        )
    return found


def _announced(plan: Plan, lasts_s: float | None, every_s: float) -> str:
    """Return what will be sent, said before it is."""
    probes = f"{plan.probe_bytes / 1e6:.1f} MB of probes"
    if lasts_s is not None:
        rounds = int(lasts_s // every_s) + 1
        total = f"{rounds * plan.probe_bytes / 1e6:.0f} MB in all"
        return f"watching {plan.host}: {formats.plural(rounds, 'round')} of at most {probes}, {total}"
    took = plan.idle_s + 2 * plan.load_s + 8
    load = f" and {plan.most_bytes / 1e6:g} MB of load (--bytes, --no-load)" if plan.load_s else ""
    return f"measuring {plan.host}: about {took:.0f} s, at most {probes}{load}"


def _write(session: Session, file: Path) -> None:
    """Write the file at once, so that Ctrl-C leaves the old one or the new one."""
    staged = file.with_name(f".{file.name}.part")
    try:
        write_text(staged, json.dumps(session.document(), ensure_ascii=False) + "\n")
        os.replace(staged, file)
    finally:
        staged.unlink(missing_ok=True)


def _watch(plan: Plan, file: Path, lasts_s: float, every_s: float) -> Session:
    """Measure again and again without load; the file has all rounds so far.

    Raises
    ------
    UnmeasuredError
        If the first round has no probes.
    """
    begun_s = time.monotonic()
    session = measure_link(plan)
    rounds = 1
    while not session.interrupted and rounds * every_s <= lasts_s:
        _write(session, file)
        detail(f"round {rounds}: {formats.share(_lost(session))} lost")
        try:
            time.sleep(max(begun_s + rounds * every_s - time.monotonic(), 0.0))
        except KeyboardInterrupt:
            session.interrupted = True
            break
        session.quiet()
        rounds += 1
    return session


def _lost(session: Session) -> float:
    return float(session.phases[-1].far.probes[0].lost.mean())


def _location(measurement: Measurement) -> Location | None:
    """Return where losses happen, if the last hop was probed."""
    if measurement.last_hop is None:
        return None
    return locate(measurement.last_hop.probes[0], measurement.probes[0])


def _print(
    file: Path, session: Session, measurement: Measurement, link: FittedLink, place: Location | None
) -> None:
    for doubt in link.doubts:
        emit(f"in doubt: {doubt}")
    trips, far = measurement.delays[0], measurement.probes[0]
    emit(
        f"{session.plan.host}: {formats.plural(len(far.lost), 'probe')} without load, round trip "
        f"{_trips(measurement)}"
    )
    for losses in (link.down, link.up):
        if losses is not None:
            emit(f"{losses.direction}: {losses.lost:,} of {losses.sent:,} lost")
            for line in losses.lines():
                emit(f"  {line}")
    if measurement.last_hop is not None and session.last_hop is not None:
        lost = measurement.last_hop.probes[0].lost
        emit(
            f"last hop, to {session.last_hop}: {int(lost.sum()):,} of {len(lost):,} lost, round trip "
            f"{_trips(measurement.last_hop)}"
        )
    if (where := _where(place, session.plan.hop)) is not None:
        emit(f"  {where}")
    for part in measurement.under_load:
        _print_load(part, measurement)
    if (score := outcome(measurement)) is not None and len(trips.delay_s):
        loaded = [each for part in measurement.under_load if (each := outcome(part, RAMP_S)) is not None]
        under = f", {min(loaded):.0f} under load" if loaded else ""
        emit(f"calls: {score:.0f} of 100 (QoO){under}")
    if len(session.phases) > 1 and not measurement.under_load:
        _print_hours(session)
    for what in link.cannot_tell:
        emit(f"undetermined: {what}")
    if link.cannot_tell and session.plan.idle_s < LONG_IDLE_S:
        emit(f"  measure longer: --idle {formats.seconds(LONG_IDLE_S).replace(' ', '')}")
    for note in session.notes:
        emit(f"- {note}")
    emit(f"\nwritten to {file}")


def _trips(measurement: Measurement) -> str:
    delay_s = measurement.delays[0].delay_s
    if not len(delay_s):
        return "unknown"
    middle, high = np.quantile(delay_s, [0.5, 0.99])
    return f"{formats.seconds(float(middle))}, 1 % above {formats.seconds(float(high))}"


def _where(place: Location | None, hop: int) -> str | None:
    if place is None:
        return None
    low, high = (formats.share(min(each, 1.0)) for each in (place.low, place.high))
    share = f"{low} to {high} of the losses are on the last hop"
    if place.place == "last hop":
        return share
    if place.place == "beyond":
        return f"{share}: most are beyond it; if a later hop is the wireless one, --hop {hop + 1}"
    return f"{share}: where most are is undetermined"


def _print_load(part: Measurement, idle: Measurement) -> None:
    rates = part.rates[0]
    low, high = throughput(part, idle)
    score = responsiveness(part)
    rpm = "" if score is None else f"; round trips per minute (RPM) {score:.0f}"
    emit(
        f"load {rates.direction}: {formats.interval(low, high, formats.rate)}; round trip {_trips(part)}{rpm}"
    )


def _hours(session: Session) -> list[dict[str, Any]]:
    """Return losses and round trips by the hour."""
    hours: dict[int, list[Measurement]] = {}
    for phase in session.phases:
        if phase.load is None:
            hours.setdefault(int(phase.begins_s // 3600), []).append(phase.far)
    rows = []
    for hour, parts in hours.items():
        lost = np.concatenate([each.probes[0].lost for each in parts])
        delay_s = np.concatenate([each.delays[0].delay_s for each in parts])
        rows.append(
            {
                "begins_s": 3600 * hour,
                "sent": len(lost),
                "lost": int(lost.sum()),
                "rtt_median_s": float(np.median(delay_s)) if len(delay_s) else None,
                "rtt_p99_s": float(np.quantile(delay_s, 0.99)) if len(delay_s) else None,
            }
        )
    return rows


def _print_hours(session: Session) -> None:
    from lasthop.cli.table import Table

    begun = datetime.fromisoformat(session.started)
    table = Table("from", "probes", "lost", "round trip", "1 % above")
    for row in _hours(session):
        begins = datetime.fromtimestamp(begun.timestamp() + row["begins_s"])
        times = [
            "-" if row[key] is None else formats.seconds(row[key]) for key in ("rtt_median_s", "rtt_p99_s")
        ]
        table.row(f"{begins:%H:%M}", f"{row['sent']:,}", formats.share(row["lost"] / row["sent"]), *times)
    table.print()


def _document(
    file: Path, session: Session, measurement: Measurement, link: FittedLink, place: Location | None
) -> dict[str, Any]:
    loads = {}
    for part in measurement.under_load:
        low, high = throughput(part, measurement)
        loads[str(part.rates[0].direction)] = {
            "low_bps": low,
            "high_bps": high if math.isfinite(high) else None,
            "saturated": part.rates[0].saturated,
            "rpm": responsiveness(part),
            "qoo": outcome(part, RAMP_S),
        }
    hop = None
    if place is not None:
        hop = {"share": place.share, "low": place.low, "high": place.high, "place": place.place}
    return {
        "file": str(file),
        "host": session.plan.host,
        "last_hop": session.last_hop,
        "interrupted": session.interrupted,
        "losses_on_last_hop": hop,
        "qoo": outcome(measurement),
        "loads": {str(each): loads.get(str(each)) for each in (Direction.DOWN, Direction.UP)},
        "hours": _hours(session),
        "notes": session.notes,
        "fit": fit_document(link),
    }
