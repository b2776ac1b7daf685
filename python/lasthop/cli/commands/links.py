"""`lasthop links`: lists the presets of links, shows one, and writes traces."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated

import typer

import lasthop
from lasthop.cli import complete
from lasthop.cli.failure import RefusedError
from lasthop.cli.options import AsJson, RunNumber, Seed
from lasthop.cli.streams import emit, emit_document
from lasthop.core.names import unknown
from lasthop.fitting import preset_link, scenario_link
from lasthop.show.translations import FORMATS


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
    emulator: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="Print it for netem, patchbay or toxiproxy. NAME may be a scenario, as fit writes.",
        ),
    ] = None,
    up: Annotated[bool, typer.Option("--up", help="With --mahimahi: of the direction to the base.")] = False,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.001, max=86400.0, help="With --mahimahi: its length.")
    ] = 60.0,
    seed: Seed = 1,
    run: RunNumber = 0,
    as_json: AsJson = False,
) -> None:
    """List the presets of wireless links with the sources of their numbers, or show one.

    `lasthop run NAME` is a download over one, unless a worked scenario has the name, and `lasthop advise
    NAME` says what would help it. A scenario uses one by `preset = "NAME"` in `[radio]` or `[link.NAME]`,
    one of Wi-Fi in `[wifi]`; keys stated beside it take precedence.
    """
    known = lasthop.links()
    if emulator is not None:
        _translate(name, emulator)
        return
    if name is None:
        if mahimahi is not None:
            raise RefusedError("--mahimahi needs the NAME of a preset, whose trace it writes")
        _list(known, as_json)
        return
    found = next((link for link in known if link.name == name), None)
    if found is None:
        names = [link.name for link in known]
        told = unknown("preset", name, names)
        raise RefusedError(told.problem, remedy=f"{told.remedy}; `lasthop links` lists them")
    if mahimahi is not None:
        _write(found, mahimahi, up=up, seconds=seconds, seed=seed, run=run)
    elif as_json:
        emit_document(json.dumps(_row(found), indent=2, ensure_ascii=False))
    else:
        _show(found)


def _translate(name: str | None, emulator: str) -> None:
    """Print a preset, or the last hop of a scenario, for another emulator."""
    if emulator not in FORMATS:
        raise RefusedError(unknown("format", emulator, list(FORMATS)), option="--as")
    if name is None:
        raise RefusedError("--as needs the NAME of a preset or of a scenario")
    is_preset = name in {each.name for each in lasthop.links()}
    is_scenario = name.endswith(".toml") or (name in lasthop.scenarios() and not is_preset)
    try:
        link = scenario_link(lasthop.load(name)) if is_scenario else preset_link(name)
    except ValueError as error:
        raise RefusedError.of(error) from None
    if link.is_wifi:
        raise RefusedError(
            f"{name} is Wi-Fi, where packets share the air in aggregates; ",
            remedy=(
                f"expected a link of [radio], since {emulator} has fixed rates and delays. `lasthop "
                f"emulate {name}` carries real packets"
            ),
            option="--as",
        )
    emit_document(FORMATS[emulator](link).rstrip("\n"))


def _row(link: lasthop.Link) -> dict[str, str]:
    return {key: getattr(link, key) for key in ("name", "summary", "source", "choice", "table", "toml")}


def _list(known: list[lasthop.Link], as_json: bool) -> None:
    if as_json:
        emit_document(json.dumps({"links": [_row(link) for link in known]}, indent=2, ensure_ascii=False))
        return
    from lasthop.cli.table import Table

    table = Table("preset", "link")
    for link in known:
        table.row(link.name, link.summary)
    table.print()
    emit("\nTheir numbers come from:")
    for link in known:
        emit(textwrap.fill(f"{link.name}: {link.source}", 100, subsequent_indent="    "))
    worked = lasthop.scenarios()
    both = " and ".join(link.name for link in known if link.name in worked)
    emit(
        '\nIn a scenario: preset = "NAME" in [radio] or [link.NAME]; those that begin with wifi in [wifi]. '
        f"`lasthop links NAME` shows its keys, `lasthop run NAME` a download over it; of {both} it runs the "
        "worked scenario."
    )


def _show(link: lasthop.Link) -> None:
    """Print a preset as a table of a scenario."""
    notes = [link.summary, f"Numbers: {link.source}.", f"Our choice: {link.choice}."]
    lines = [line for note in notes for line in textwrap.wrap(note, 100)]
    comments = "".join(f"# {line}\n" for line in lines)
    keys = link.toml.replace("\n[", f"\n[{link.table}.")
    emit_document(f'{comments}[{link.table}]\n# preset = "{link.name}" is short for:\n{keys}')


def _write(link: lasthop.Link, path: Path, *, up: bool, seconds: float, seed: int, run: int) -> None:
    """Write the transmission opportunities of a preset."""
    if link.table == "wifi":
        raise RefusedError(
            f"{link.name} is Wi-Fi, whose rate depends on what is sent; ",
            remedy=(
                f"expected a preset of [radio]. `lasthop emulate {link.name}` carries real packets over it"
            ),
            option="--mahimahi",
        )
    tables = {
        "limit": seconds,
        "transfer": {"size": 1000},
        "wired": {"rate": 1e9},
        "radio": {"preset": link.name},
    }
    scenario = lasthop.Scenario.from_tables(tables, name=link.name)
    times = scenario.mahimahi(seconds, "base-mobile", up=up, seed=seed, run=run)
    if not times or times[-1] == 0:
        raise RefusedError(
            f"{seconds:g} s are too short for one packet; ", remedy="state more", option="--seconds"
        )
    try:
        path.write_text("".join(f"{time}\n" for time in times), encoding="ascii")
    except OSError as error:
        raise RefusedError(f"cannot write {path}: {error.strerror}", option="--mahimahi") from None
    rate = len(times) * 1504 * 8 / times[-1] / 1e3
    direction = "up" if up else "down"
    emit(
        f"{path}: {len(times):,} opportunities in {times[-1] / 1e3:,.3f} s, {rate:.4g} Mbps on average, of "
        f"{link.name} ({direction}, seed {seed}, run {run})"
    )
