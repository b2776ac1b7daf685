"""Write the pages of docs/reference from the program: `python scripts/reference.py`.

Keys come from the JSON Schema of scenario files, which follows from the doc comments of the schema. A test
compares the pages with what this script makes of the program.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import lasthop
from lasthop._lasthop import metric_definitions
from lasthop.cli.failure import EXIT_CODES
from lasthop.core.keys import Key, Section, schema, sections
from lasthop.papers import papers

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference"

NOTE = "<!-- Made by scripts/reference.py. -->"
INTRODUCTION = f"""# Keys of scenario files

{NOTE}

Every table and key, with its type and its default. [Scenario files](../guide/scenarios.md) explains how a
file is put together, quantities and their units, and what several schemes do together. `lasthop schema`
prints the same as a JSON Schema, from which editors complete and check files; `lasthop check FILE` prints a
file with all defaults.
"""
PROFILES = ("linux", "freebsd", "rfc", "ns2", "ebsn")
SMALLEST = """
[transfer]
size = "100 KB"
[wired]
rate = "10 Mbps"
[radio]
rate = "2 Mbps"
"""


def anchor(path: str) -> str:
    """Return the anchor of a heading with a table's path."""
    return re.sub(r"[^\w-]", "", path.lower())


def literal(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {literal(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, float) and 1e-6 <= value < 1e-3:
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False)


def cell(text: str) -> str:
    """Escape text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def row(*cells: str) -> str:
    """Return a row of a table."""
    return "|" + "|".join(f" {cell(text)} " if text else " " for text in cells) + "|"


def table(*heads: str) -> list[str]:
    """Return the head of a table."""
    return [row(*heads), "|" + "---|" * len(heads)]


def scenarios() -> str:
    """Return the page of all keys."""
    all_sections = sections()
    paths = {section.path for section in all_sections}

    def linked(text: str) -> str:
        def link(found: re.Match[str]) -> str:
            return f"[{found[0]}](#{anchor(found[1])})" if found[1] in paths else found[0]

        parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)
        return "".join(
            part if part.startswith("```") else re.sub(r"(?<!\[)`\[([\w.-]+)\]`(?!\])", link, part)
            for part in parts
        )

    lines = [INTRODUCTION]
    for section in all_sections:
        name = f"`[{section.path}]`" if section.path else "Top level"
        lines += [f"{'#' * min(section.path.count('.') + 2, 4)} {name}", ""]
        if section.path:
            lines += [linked(section.about), ""]
        lines += _keys(section, linked)
        lines += _further(section)
    return "\n".join(lines).rstrip() + "\n"


def _keys(section: Section, linked: Callable[[str], str]) -> list[str]:
    """Return the table of the keys, and the paragraphs that do not fit into its cells."""
    if not section.keys:
        return []
    heads = ("one of", "type", "meaning") if section.is_choice else ("key", "type", "default", "meaning")
    lines, notes = table(*heads), []
    for key in section.keys:
        meaning, _, further = key.meaning.partition("\n\n")
        own = f"{section.path}.{key.name}".lstrip(".")
        if further and key.section not in (own, f"{own}.NAME"):
            notes += [f"More on `{key.name}`:", "", linked(further), ""]
        kind = key.kind if key.section is None else f"[{key.kind}](#{anchor(key.section)})"
        name = key.name if key.kind == key.name else f"`{key.name}`"
        default = "required" if key.required else "" if key.default is None else f"`{literal(key.default)}`"
        if len(default) > 60:
            default = ""
        cells = (name, kind, linked(meaning)) if section.is_choice else (name, kind, default, linked(meaning))
        lines.append(row(*cells))
    return [*lines, "", *notes]


def _further(section: Section) -> list[str]:
    """Return what the program says of a table beyond its keys."""
    if section.path == "tcp":
        return _profiles(section.keys)
    if section.path == "application.NAME":
        return _kinds()
    if section.path == "scheme":
        return _sources()
    return []


def _profiles(keys: tuple[Key, ...]) -> list[str]:
    """Return the defaults that differ between profiles."""
    settings = {name: canonical(f"tcp.profile={name}")["tcp"] for name in PROFILES}
    lines = [
        "Defaults of the profiles, where they differ:",
        "",
        *table("key", *(f"`{name}`" for name in PROFILES)),
    ]
    for key in keys:
        values = [settings[name].get(key.name) for name in PROFILES]
        if key.name != "profile" and len({literal(value) for value in values}) > 1:
            lines.append(row(f"`{key.name}`", *(f"`{literal(value)}`" for value in values)))
    return [*lines, ""]


def _kinds() -> list[str]:
    """Return the numbers of the typical applications."""
    kinds = schema()["definitions"]["ApplicationKind"]["oneOf"]
    keys = ("request", "response", "think", "waits")
    lines = ["Numbers of the kinds:", "", *table("`kind`", *(f"`{key}`" for key in keys))]
    for kind in (each["const"] for each in kinds):
        ends = {"from": "fixed", "to": "mobile", "kind": kind}
        scenario = lasthop.build(tomllib.loads(SMALLEST) | {"application": {"x": ends}})
        application = tomllib.loads(scenario.to_toml())["application"]["x"]
        values = (f"`{literal(application[key])}`" if key in application else "" for key in keys)
        lines.append(row(f"`{kind}`", *values))
    return [*lines, ""]


def canonical(*overrides: str) -> dict[str, Any]:
    """Return the smallest scenario with these overrides and all defaults."""
    return tomllib.loads(lasthop.Scenario.parse(SMALLEST, overrides=overrides).to_toml())


def metrics(*sets: str) -> list[str]:
    """Return the table of the metrics of these sets."""
    lines = table("name", "unit", "better", "definition")
    for metric in metric_definitions():
        if metric.set in sets:
            unit = {"bps": "bit/s", "truth": "bool"}.get(metric.unit, metric.unit)
            lines.append(row(f"`{metric.name}`", unit, metric.better or "", metric.doc))
    return lines


def report() -> list[str]:
    """Return the table of the keys of a report."""
    return [*table("key", "meaning"), *_report_keys("", report_schema())]


def _report_keys(path: str, node: dict[str, Any]) -> Iterator[str]:
    for name, value in node["properties"].items():
        inner, place = value, f"{path}{name}"
        if value.get("type") == "array":
            inner, place = value["items"], f"{place}[]"
        reference = (inner.get("allOf") or [inner])[0].get("$ref", "")
        definition = report_schema()["definitions"].get(reference.rpartition("/")[2], {})
        if definition.get("title") == "AllMetrics" or "properties" not in definition or name == "metrics":
            yield row(f"`{path}{name}`", value["description"])
            continue
        if inner is not value:
            yield row(f"`{path}{name}`", value["description"])
        yield from _report_keys(f"{place}.", definition)


def exit_codes() -> list[str]:
    """Return the table of the exit codes."""
    return [*table("code", "meaning"), *(row(str(code), meaning) for code, meaning in EXIT_CODES.items())]


def commands() -> str:
    """Return the command reference, from the help of the commands."""
    import typer

    from lasthop.cli.app import app
    from lasthop.cli.commands.man import ENVIRONMENT

    group: Any = typer.main.get_command(app)
    root = typer.Context(group, info_name="lasthop", **group.context_settings)
    lines = [
        "# Commands",
        "",
        NOTE,
        "",
        group.help,
        "",
        "[The command line](command-line.md) explains what they have in common.",
        "",
    ]
    for name in group.list_commands(root):
        command = group.load(name)
        if command.hidden:
            continue
        context = typer.Context(command, info_name=name, parent=root)
        usage = " ".join(command.collect_usage_pieces(context))
        lines += [f"## lasthop {name}", "", "```text", f"lasthop {name} {usage}", "```", "", command.help, ""]
        records = [each.get_help_record(context) for each in command.get_params(context)]
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{cell(record[0])}` | {cell(record[1])} |" for record in records if record]
        lines.append("")
    lines += ["## Examples", "", "| command | does |", "|---|---|"]
    lines += [f"| `{cell(line)}` | {cell(meaning)} |" for line, meaning in group.examples.items()]
    lines += ["", "## Environment", "", "| variable | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {cell(meaning)} |" for name, meaning in ENVIRONMENT.items()]
    lines += ["", "## Exit status", "", *exit_codes()]
    return "\n".join(lines) + "\n"


def claims() -> str:
    """Return the page of the papers' readings and claims."""
    lines = [
        "# The papers' claims",
        "",
        NOTE,
        "",
        "What each paper states and `lasthop paper NAME` judges, and the choices for what a paper leaves",
        "open. [Executable papers](../guide/papers.md) explains verdicts and readings;",
        "[the results](papers.md) has the verdicts.",
        "",
    ]
    for paper in papers():
        lines += [f"## {paper.name}", "", f'{paper.authors}, "{paper.title}", {paper.source}.', ""]
        lines += table("reading", "open question", "choices, the default first")
        for reading in paper.readings:
            choices = " ".join(f"`{each.name}`: {each.note.rstrip('.')}." for each in reading.choices)
            claims = ", ".join(f"`{claim}`" for claim in reading.fitted)
            fitted = f" Fitted to {claims}." if claims else ""
            lines.append(row(f"`{reading.name}`", reading.question, choices + fitted))
        lines += ["", *table("claim", "section", "statement", "printed")]
        for claim in paper.claims:
            kind = " (definition)" if claim.definition else ""
            lines.append(row(f"`{claim.id}`{kind}", claim.section, claim.statement, claim.printed))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _sources() -> list[str]:
    """Return where the schemes were proposed."""
    lines = ["Where they were proposed:", "", *table("scheme", "source")]
    return [*lines, *(row(f"`{scheme.name}`", scheme.source) for scheme in lasthop.schemes()), ""]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of TCP or of a scheme, with the tests of it.

    Attributes
    ----------
    home : str
        The crate and the subject of its first test, such as ``"proto/handshake"``.
    text : str
        The rule.
    source : str
        The numbers of RFCs with their sections, or another source; empty without one.
    files : list of str
        Where it is implemented.
    tests : list of str
        Its tests, as ``"handshake::a_lost_fin_is_retransmitted"``.
    """

    home: str
    text: str
    source: str
    files: list[str]
    tests: list[str]


DIALOGUES = {
    "crates/proto/tests/proto/tcp": 0,
    "crates/endpoint/tests/endpoint": 0,
    "crates/live/tests/live": 0,
    "crates/sim/tests/sim": 1,
}
"""Where tests may state rules, and how many folders stand above those of a subject."""


def stated() -> Iterator[tuple[Path, str, str, list[str]]]:
    """Yield the file, the crate and subject, the name, and the rules of each test: comments above it."""
    for directory, above in DIALOGUES.items():
        for file in sorted((ROOT / directory).rglob("*.rs")):
            parts = file.relative_to(ROOT / directory).with_suffix("").parts
            # The last of nested folders is not a subject of its own.
            subject = parts[min(above, len(parts) - 1)] if parts[0] in ("tcp", "schemes") else parts[0]
            home = f"{directory.split('/')[1]}/{subject}"
            for comment, name in TESTS.findall(file.read_text(encoding="utf-8")):
                text = " ".join(line.removeprefix("// ") for line in comment.splitlines())
                yield file, home, name, [rule.strip() for rule in text.split("Rule: ")[1:]]


TESTS = re.compile(r"((?:^// .*\n)*)^#\[test\]\nfn (\w+)\(", re.MULTILINE)


@cache
def rules() -> list[Rule]:
    """Return the rules in the order of the tests that state them."""
    found: dict[str, Rule] = {}
    others: list[tuple[str, str]] = []
    for _, home, name, texts in stated():
        subject = home.split("/")[1]
        for text in texts:
            if text.startswith("as "):
                first = text.removeprefix("as ")
                others.append((first if "::" in first else f"{subject}::{first}", f"{subject}::{name}"))
                continue
            rule, _, tail = text.rpartition(" [")
            *source, files = tail.rstrip("]").split("; ") if ".rs" in tail else [tail.rstrip("]"), ""]
            test = f"{subject}::{name}"
            # A test may state several rules: others follow the first of them.
            key = test if test not in found else f"{test} {len(found)}"
            found[key] = Rule(home, rule, "; ".join(source), files.split(), [test])
    for first, test in others:
        found[first].tests.append(test)
    return list(found.values())


def conformance(*homes: str) -> list[str]:
    """Return the table of the rules of some subjects."""
    lines = table("rule", "RFC, section", "where", "tests")
    for rule in rules():
        if rule.home in homes:
            files, tests = (" ".join(f"`{each}`" for each in names) for names in (rule.files, rule.tests))
            lines.append(row(rule.text, rule.source, files, tests))
    return lines


TABLES: dict[str, Callable[..., list[str]]] = {
    "metrics": metrics,
    "report": report,
    "exit codes": exit_codes,
    "rules": conformance,
}
"""What stands between comments such as `<!-- metrics TrafficMetrics -->` and `<!-- end -->` in a page."""


def with_tables(name: str) -> str:
    """Return a page whose prose stands in its file, with its tables made anew."""

    def made(found: re.Match[str]) -> str:
        kind, sets = next(
            (kind, found[1][len(kind) :].split()) for kind in TABLES if found[1].startswith(kind)
        )
        return "\n".join([f"<!-- {found[1]} -->", *TABLES[kind](*sets), "<!-- end -->"])

    text = (REFERENCE / name).read_text(encoding="utf-8")
    return re.sub(r"<!-- ([^>]+) -->\n(?:\|.*\n)*<!-- end -->", made, text)


@cache
def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of reports."""
    loaded: dict[str, Any] = json.loads(lasthop.Scenario.report_schema())
    return loaded


PAGES: dict[str, Callable[[], str]] = {
    "scenarios.md": scenarios,
    "commands.md": commands,
    "claims.md": claims,
    "metrics.md": partial(with_tables, "metrics.md"),
    "json.md": partial(with_tables, "json.md"),
    "tcp-conformance.md": partial(with_tables, "tcp-conformance.md"),
}
"""The generated pages, by their files in docs/reference."""


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
