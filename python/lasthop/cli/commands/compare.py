"""`lasthop compare`: rank many remedies on one link."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

import lasthop
from lasthop._lasthop import PROFILES
from lasthop.cli import complete
from lasthop.cli.failure import CRASHED, RefusedError, failed, refused, warn
from lasthop.cli.option_values import runs_range, share
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
)
from lasthop.cli.output import Output
from lasthop.cli.progress import Activity, duration
from lasthop.cli.scenario import describe, load, refuse_unknown_schemes
from lasthop.cli.streams import detail, emit, emit_document
from lasthop.cli.table import Table, p_value, printable
from lasthop.core.formats import plural
from lasthop.core.names import without_effect
from lasthop.core.paired_quantiles import runs_to_reject
from lasthop.core.units import metric_scale, quantile_name
from lasthop.race import Arm, Race, RaceError, grid
from lasthop.race.race import loaded
from lasthop.show import race_report
from lasthop.show.experiments import race_columns

if TYPE_CHECKING:
    from lasthop import Scenario

ALL = "all"

PACKETS_PER_S = 4e6
"""Packets that a thread simulates in a second, by order of magnitude: machines differ."""

LONG_S, LONGEST_S = 300.0, 86_400.0
"""Time of all looks from which on there is a warning, and longest time of the first."""


def compare(
    path: ScenarioFile,
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
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the best of many senders, schemes and settings; inferior combinations stop early.

    Every combination (arm) runs over the same fades, and is compared with the one in use now. `--sender all`
    and `--scheme all` compare all senders and schemes. `--axis radio.queue=20packets,none` adds a setting.
    """
    if better not in (None, "higher", "lower"):
        raise RefusedError(remedy="expected higher or lower", found=f"{better!r}", option="--better")
    changes = overrides or []
    target, as_good = share("--precision", precision), share("--margin", margin)
    least_and_most = None if runs is None else runs_range(runs)
    level = None if quantile is None else share("--quantile", quantile, "a share of the runs", "95%")
    scenario = loaded(path, changes, list(PROFILES) if sender == [ALL] else sender or [])
    describe(path, scenario)
    senders = _senders(sender or [], scenario, path, changes)
    schemes = _schemes(scheme or [], scenario)
    try:
        race = Race(
            scenario,
            grid(senders, schemes, _axes(axis or [], scenario)),
            baseline=_baseline(baseline, scenario),
            metric=metric,
            quantile=level,
            better=cast(Literal["higher", "lower"] | None, better),
            seed=seed,
            precision=target,
            margin=as_good,
            runs=least_and_most,
        )
        if race.refused and race.arms == [race.baseline]:
            first = race.refused[0]
            raise RefusedError(f"there is nothing to compare; {first.arm.label}: {first.reason}")
        _warn_of_time(race, jobs)
        with Activity() as activity:
            made = race.run(jobs, activity.study)
            detail(f"made {plural(made, 'run')} of {plural(len(race.arms), 'arm')}")
            activity.doing("writing results")
            document = race_report.document(race)
            written = []
            if out is not None:
                with Output(out) as output:
                    written = race_report.write(race, output.staging)
    except RaceError as error:
        raise refused(error) from None
    except RuntimeError as fault:  # A run crashed; the message says how to replay it.
        raise failed("run", str(fault), code=CRASHED) from None
    if as_json:
        emit_document(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        if scenario.title:
            emit(f"{printable(race.shown_title)}\n")
        _print(race, rows)
        _print_without_effect(race)
        _print_refused(race)
        if written:
            emit(f"\nwritten to {out}: {', '.join(path.name for path in written)}")
    _warn(race)


def _own_senders(scenario: Scenario) -> list[str]:
    return list(scenario.values().get("senders", {}))


def _senders(named: list[str], scenario: Scenario, path: Path, overrides: list[str]) -> list[str | None]:
    """Return the senders to compare: by default the scenario's own, and the senders that it defines."""
    if not named:
        return list(dict.fromkeys((scenario.sender, *_own_senders(scenario))))
    if named == [ALL]:
        return list(dict.fromkeys((scenario.sender, *_own_senders(scenario), *PROFILES)))
    for name in named:
        if not scenario.knows_sender(name):
            # The error lists the senders that there are, as that of other commands does.
            load(path, overrides, [], [name])
    return list(named)


def _schemes(named: list[str], scenario: Scenario) -> list[str]:
    """Return the schemes to compare: by default those of the scenario."""
    if not named:
        return scenario.schemes
    if named == [ALL]:
        return [each.name for each in lasthop.schemes()]
    refuse_unknown_schemes("--scheme", named)
    return named


def _axes(texts: list[str], scenario: Scenario) -> dict[str, list[str]]:
    """Return the values of each `--axis`, by key."""
    axes: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not key or not equals or not values:
            raise RefusedError(remedy="expected KEY=VALUE,VALUE...", found=f"{text!r}", option="--axis")
        if key in ("sender", "schemes"):
            raise RefusedError(f"--{key.removesuffix('s')} states what is compared of {key}", option="--axis")
        if key in axes:
            raise RefusedError(
                f"{key} is stated twice; ", remedy="state all of its values at once", option="--axis"
            )
        parts = _split(values)
        is_range = len(parts) == 1 and values.startswith("{") and "from" in values
        if values.startswith("[") or is_range:
            # A list or range in the syntax of [sweep].
            parts = scenario.with_(f"sweep.{key}={values}").sweep[key]
        axes[key] = parts
    return axes


def _split(values: str) -> list[str]:
    """Split a list at its commas, but not inside brackets, braces or quotes.

    Examples
    --------
    >>> _split("none, bch-255-131-18, {n = 255, k = 131, t = 18}")
    ['none', 'bch-255-131-18', '{n = 255, k = 131, t = 18}']
    """
    parts, depth, quote = [""], 0, ""
    for letter in values:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _baseline(text: str | None, scenario: Scenario) -> Arm | None:
    """Parse `--baseline`: `linux basic`, `basic` or `linux basic, radio.mtu=576 B`."""
    if text is None:
        return None
    name, *settings = _split(text)
    first, _, rest = name.partition(" ")
    sender, scheme = (first, rest) if rest and scenario.knows_sender(first) else (scenario.sender, name)
    refuse_unknown_schemes("--baseline", [scheme], "; expected SENDER SCHEME")
    pairs = {key.strip(): value.strip() for key, _, value in (part.partition("=") for part in settings)}
    return grid([sender], [scheme], {key: [value] for key, value in pairs.items()})[0]


def _warn_of_time(race: Race, jobs: int | None) -> None:
    """Warn if the comparison may take long, by what its links can carry; refuse it if it takes days.

    Raises
    ------
    RefusedError
        If the first look takes longer than `LONGEST_S`.
    """
    threads = jobs or os.cpu_count() or 1
    least, most = (race.packet_bound(runs) for runs in (race.looks[0], race.looks[-1]))
    least_s, most_s = (packets / PACKETS_PER_S / threads for packets in (least, most))
    if most_s < LONG_S:
        return
    arms, on = plural(len(race.arms), "arm"), f"on {plural(threads, 'thread')}"
    remedy = 'a shorter limit (--set "limit=2 s"), fewer runs (--runs 4:8) or a lower rate'
    if least_s > LONGEST_S:
        raise RefusedError(
            (
                f"{arms} with {plural(race.looks[0], 'run')} each may simulate "
                f"{least / 1e6:,.0f} million packets, which takes {duration(least_s)} {on}; "
            ),
            remedy=f"expected {remedy}",
        )
    warn(
        f"{arms} with {race.looks[0]} to {plural(race.looks[-1], 'run')} each may simulate "
        f"up to {most / 1e6:,.0f} million packets, which takes up to {duration(most_s)} {on}; faster: "
        f"{remedy}"
    )


def _print(race: Race, most: int) -> None:
    """Print the first `most` arms by rank, and the baseline."""
    every = race.results()
    shown = every[(every.index < most) | every["baseline"]]
    columns = list(every.columns)
    settings = columns[columns.index("scheme") + 1 : columns.index("baseline")]
    named = every["sender"].notna().any()
    heads, cells = race_columns(race, shown)
    right = [f">{head}" for head in heads]
    sender_head = ["sender"] if named else []
    table = Table(">rank", *sender_head, "scheme", *settings, *right, ">p (Holm)", ">runs", "")
    rows: list[Any] = shown.to_dict("records")
    for row, *numbers in zip(rows, *cells, strict=True):
        stated = [row[key] if isinstance(row[key], str) else "" for key in settings]
        sender = [row["sender"] if isinstance(row["sender"], str) else ""] if named else []
        table.row(
            str(row["rank"]),
            *sender,
            row["scheme"],
            *stated,
            *numbers,
            p_value(row["p_holm"]),
            f"{row['n']:,}",
            _status_text(row, race.margin),
        )
    table.print()
    left = len(every) - len(shown)
    if left:
        emit(f"\n{left:,} more rank behind these; --rows {len(every)} prints them too")
    better = f"{race.better} is better"
    what = metric_scale(race.metric, 0.0).name
    if race.quantile is not None:
        what = f"{quantile_name(race.quantile)} of {what} over runs"
    emit(f"\n{what}, {better}; ratios and p to {race.baseline.label}, in runs over the same fades")


def _status_text(row: dict[str, Any], margin: float) -> str:
    """Describe how an arm compares with the best, and with the baseline where that differs."""
    words = {
        "best": "best",
        "as good": f"as good as the best, within {100 * margin:g} %",
        "cannot tell": "cannot be told apart from the best",
        "worse": "worse than the best",
    }
    text = words[row["status"]]
    if row["status"] == "worse" and row["stopped_early"]:
        text += ", stopped early"
    if row["baseline"]:
        return f"{text} (baseline)"
    if row["status"] == "worse" and not row["significant"]:
        # Its p is that of the ratio to the baseline, and not of the verdict.
        text += "; cannot be told apart from the baseline"
    return text


def _print_without_effect(race: Race) -> None:
    """Print the schemes that changed nothing in any run, with the reason."""
    lines = [
        f"{each.arm.label}: {without_effect(scheme, reason)}"
        for each in race.ranking()
        for scheme, reason in race.without_effect(each.arm).items()
    ]
    for index, line in enumerate(lines):
        emit(line if index else f"\n{line}")


def _print_refused(race: Race) -> None:
    """Print the arms that are left out, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for refusal in race.refused:
        reasons.setdefault(refusal.reason, []).append(refusal.arm.label)
    if reasons:
        emit(f"\nnot compared: {plural(len(race.refused), 'arm')}")
    for reason, labels in reasons.items():
        more = f" and {len(labels) - 3:,} more" if len(labels) > 3 else ""
        emit(f"  {'; '.join(labels[:3])}{more}: {reason}")


def _warn(race: Race) -> None:
    """Warn about missing values, too few runs, and results without randomness."""
    table = race.results()
    missing = int((table["missing"] > 0).sum())
    if missing:
        by_mean = race.quantile is None
        counts_as = "the worst value that any run has" if by_mean else "worse than all others"
        warn(
            f"{missing} of {len(table)} arms have runs without {race.metric}; such a run counts as "
            f"{counts_as}"
        )
    if race.quantile is not None and len(table) > 1:
        level = race.error / len(race.looks) / (len(table) - 1)
        needed = runs_to_reject(race.quantile, level)
        if needed > race.looks[-1]:
            warn(
                f"{race.looks[-1]:,} runs cannot tell the {quantile_name(race.quantile)} of "
                f"{len(table)} arms apart, whatever they are; --runs {needed} is the least that can"
            )
    if len(table) == 1:
        warn("there is only one arm; --sender, --scheme and --axis add others")
    elif (table["ci_low"] == table["ci_high"]).all():
        warn("all runs of an arm gave the same: nothing is random in this scenario that matters to it")
