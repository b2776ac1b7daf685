"""Completion of the values of options and arguments, for the shells' completion scripts.

Each function takes the incomplete word, and returns the values that begin with it, each
with a line of help, which may be empty.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from lasthop import Scenario

Values = list[tuple[str, str]]


def scenario(incomplete: str) -> Values:
    """Complete a worked scenario, a preset of a link, or a scenario file."""
    # Shells add a space after the name of a directory, so its files are offered instead.
    there = glob.escape(incomplete)
    files = sorted(glob.glob(f"{there}*.toml") + glob.glob(f"{there}*/*.toml"))
    return worked_scenario(incomplete) + link(incomplete) + [(path, "") for path in files]


def worked_scenario(incomplete: str) -> Values:
    """Complete the name of a worked scenario."""
    import lasthop

    return [(name, title) for name, title in lasthop.scenarios().items() if name.startswith(incomplete)]


def scheme(incomplete: str) -> Values:
    """Complete a scheme, or the last one of a combination such as `ebsn+arq`."""
    import lasthop

    before, plus, last = incomplete.rpartition("+")
    schemes = [each for each in lasthop.schemes() if each.name.startswith(last)]
    return [(f"{before}{plus}{each.name}", each.summary) for each in schemes]


def sender(context: typer.Context, incomplete: str) -> Values:
    """Complete a sender of the scenario, a profile, a sender that advice tries, or one of another stack."""
    from lasthop._lasthop import PROFILES, stack_senders
    from lasthop.advice import SENDERS

    loaded = _scenario(context)
    own = () if loaded is None else loaded.values().get("senders", ())
    stacks = (each.name for each in stack_senders())
    names = dict.fromkeys((*own, *PROFILES, *SENDERS, *stacks))
    return [(name, "") for name in names if name.startswith(incomplete)]


def server(incomplete: str) -> Values:
    """Complete a sender that advice knows."""
    from lasthop.advice import SENDERS, STACK_SENDERS

    known = SENDERS | STACK_SENDERS
    return [(name, each.title) for name, each in known.items() if name.startswith(incomplete)]


def transport(incomplete: str) -> Values:
    """Complete a value of `lasthop advise --transport`."""
    known = {"tcp": "a server of TCP", "quic": "a server of QUIC", "any": "what helps both"}
    return [(name, what) for name, what in known.items() if name.startswith(incomplete)]


def use(incomplete: str) -> Values:
    """Complete a use of the link."""
    from lasthop.advice import USES

    return [(name, each.simulated) for name, each in USES.items() if name.startswith(incomplete)]


def metric(context: typer.Context, incomplete: str) -> Values:
    """Complete a metric, a counter of the scenario's schemes, or a metric of one of its parts."""
    from lasthop._lasthop import METRICS
    from lasthop.core.metrics import is_of_part

    loaded = _scenario(context)
    names = loaded.metrics if loaded else METRICS
    if loaded and is_of_part(incomplete):
        names = loaded.part_metrics
    return [(name, "") for name in names if name.startswith(incomplete)]


def setting(context: typer.Context, incomplete: str) -> Values:
    """Complete the key of a setting: with its value if the scenario has it, or else with its meaning."""
    from lasthop.core.keys import settings

    loaded = _scenario(context)
    if loaded is None:
        return []
    now = dict.fromkeys(_settings(loaded.values()))
    known = {path: key.meaning.partition(". ")[0].rstrip(".") for path, key in settings()}
    said = {path: f"now {loaded.text(path)}" if path in now else known[path] for path in (*now, *known)}
    return [(f"{path}=", text) for path, text in said.items() if path.startswith(incomplete)]


def link(incomplete: str) -> Values:
    """Complete the preset of a link."""
    import lasthop

    return [(each.name, each.summary) for each in lasthop.links() if each.name.startswith(incomplete)]


def paper(incomplete: str) -> Values:
    """Complete the name of a paper."""
    from lasthop import papers

    return [(each.name, each.title) for each in papers.papers() if each.name.startswith(incomplete)]


def run_figure(incomplete: str) -> Values:
    """Complete a further figure of a run."""
    known = {"time-sequence": "packets and acknowledgements", "cwnd": "window and threshold"}
    return [each for each in known.items() if each[0].startswith(incomplete)]


def figure(context: typer.Context, incomplete: str) -> Values:
    """Complete a figure of the paper."""
    from lasthop import papers

    name = _argument(context, "name")
    figures = papers.paper(name).figures if name in papers.names() else ()
    return [(each.id, each.title) for each in figures if each.id.startswith(incomplete)]


def reading(context: typer.Context, incomplete: str) -> Values:
    """Complete a reading of the paper and its choice."""
    from lasthop import papers

    name = _argument(context, "name")
    readings = papers.paper(name).readings if name in papers.names() else ()
    pairs = [(f"{each.name}={choice.name}", each.question) for each in readings for choice in each.choices]
    return [pair for pair in pairs if pair[0].startswith(incomplete)]


def export(incomplete: str) -> Values:
    """Complete a format of exported tables."""
    return [(name, "") for name in ("csv", "parquet", "datasette") if name.startswith(incomplete)]


def better(incomplete: str) -> Values:
    """Complete which values of a metric are better."""
    return [(name, "") for name in ("higher", "lower") if name.startswith(incomplete)]


def _scenario(context: typer.Context) -> Scenario | None:
    """Return the scenario on the command line, or None if there is none that can be read."""
    import lasthop

    path = _argument(context, "path")
    with suppress(ValueError):
        return None if path is None else lasthop.load(path)
    return None


def _argument(context: typer.Context, name: str) -> str | None:
    """Return the argument `name` of the command, or None if it has not been typed."""
    if context.params.get(name):
        return str(context.params[name])
    # After an option without a value, click has not assigned the arguments to parameters yet.
    return next(iter(context.args), None)


def _settings(table: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each setting in a table of a scenario."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"
