"""`lasthop links`: lists the presets of links, shows one, and writes traces."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path

import lasthop
from lasthop.cli.failure import RefusedError
from lasthop.cli.streams import emit, emit_document
from lasthop.core.names import unknown


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    name: str | None
    mahimahi: Path | None
    up: bool
    seconds: float
    seed: int
    run: int
    as_json: bool


def execute(request: Request) -> None:
    """Print every preset, or one; or write the trace of one."""
    known = lasthop.links()
    if request.name is None:
        if request.mahimahi is not None:
            raise RefusedError("--mahimahi needs the NAME of a preset, whose trace it writes")
        _list(known, request.as_json)
        return
    found = next((link for link in known if link.name == request.name), None)
    if found is None:
        names = [link.name for link in known]
        raise RefusedError(f"{unknown('preset', request.name, names)}; `lasthop links` lists them")
    if request.mahimahi is not None:
        _write(found, request.mahimahi, request)
    elif request.as_json:
        emit_document(json.dumps(_row(found), indent=2, ensure_ascii=False))
    else:
        _show(found)


def _row(link: lasthop.Link) -> dict[str, str]:
    return {key: getattr(link, key) for key in ("name", "summary", "source", "choice", "toml")}


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
    emit('\nIn a scenario: preset = "NAME" in [radio] or [link.NAME]. `lasthop links NAME` shows its keys.')


def _show(link: lasthop.Link) -> None:
    """Print a preset as a table of a scenario."""
    notes = [link.summary, f"Numbers: {link.source}.", f"Our choice: {link.choice}."]
    lines = [line for note in notes for line in textwrap.wrap(note, 100)]
    comments = "".join(f"# {line}\n" for line in lines)
    emit_document(f'{comments}[radio]\n# preset = "{link.name}" is short for:\n{_of_radio(link.toml)}')


def _of_radio(toml: str) -> str:
    """Return keys with their tables in `[radio]`."""
    return toml.replace("\n[", "\n[radio.")


def _write(link: lasthop.Link, path: Path, request: Request) -> None:
    """Write the transmission opportunities of a preset."""
    scenario = lasthop.Scenario.parse(
        f'limit = "{request.seconds} s"\n[transfer]\nsize = "1 KB"\n[wired]\nrate = "1 Gbps"\n'
        f'[radio]\npreset = "{link.name}"\n',
        name=link.name,
    )
    times = scenario.mahimahi(
        request.seconds, "base-mobile", up=request.up, seed=request.seed, run=request.run
    )
    if not times or times[-1] == 0:
        raise RefusedError(f"--seconds: {request.seconds:g} s are too short for one packet; state more")
    try:
        path.write_text("".join(f"{time}\n" for time in times), encoding="ascii")
    except OSError as error:
        raise RefusedError(f"--mahimahi: cannot write {path}: {error.strerror}") from None
    rate = len(times) * 1504 * 8 / times[-1] / 1e3
    direction = "up" if request.up else "down"
    emit(
        f"{path}: {len(times):,} opportunities in {times[-1] / 1e3:,.3f} s, {rate:.4g} Mbps on average, of "
        f"{link.name} ({direction}, seed {request.seed}, run {request.run})"
    )
