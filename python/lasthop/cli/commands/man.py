"""`lasthop man`: prints the manual page, made from the commands and their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from lasthop import __version__
from lasthop.cli.failure import EXIT_CODES
from lasthop.cli.streams import emit_document

ENVIRONMENT = {
    "LASTHOP_JOBS": "The number of threads, unless --jobs gives it. By default one for each core.",
    "COLUMNS": "The width of help and tables, in place of the terminal's.",
}


def man(context: typer.Context) -> None:
    """Print the manual page: `lasthop man | man -l -`."""
    emit_document(_page(context.find_root().command))


def _page(group: Any) -> str:
    """Return the manual page of a group of commands, in roff."""
    root = typer.Context(group, info_name="lasthop", **group.context_settings)
    commands = [(name, group.load(name)) for name in group.list_commands(root)]
    contexts = [
        (each, typer.Context(each, info_name=name, parent=root)) for name, each in commands if not each.hidden
    ]
    lines = [f'.TH LASTHOP 1 "" "lasthop {__version__}" "User Commands"', ".SH NAME"]
    lines += [f"lasthop \\- {_text(group.help)}", ".SH SYNOPSIS"]
    for command, context in contexts:
        pieces = " ".join(command.collect_usage_pieces(context))
        lines += [f"\\fB{_text(context.command_path)}\\fR {_text(pieces)}", ".br"]
    lines += [".SH OPTIONS", *_options(group, root), ".SH COMMANDS"]
    for command, context in contexts:
        lines += [
            f".SS {_text(context.command_path)}",
            *_paragraphs(command.help),
            *_options(command, context),
        ]
    lines += [".SH ENVIRONMENT"]
    for name, meaning in ENVIRONMENT.items():
        lines += [".TP", f"\\fB{name}\\fR", _text(meaning)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f"\\fB{code}\\fR", _text(meaning)]
    lines += [".SH EXAMPLES"]
    for line, meaning in group.examples.items():
        lines += [".TP", f"\\fB{_text(line)}\\fR", _text(meaning)]
    return "\n".join(lines)


def _options(command: Any, context: typer.Context) -> Iterator[str]:
    """Yield the arguments and options of a command."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            fonts = (("B" if word.startswith("-") else "I", word) for word in record[0].split())
            yield from (".TP", " ".join(f"\\f{font}{_text(word)}\\fR" for font, word in fonts))
            yield _text(record[1])


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (".PP", _text(paragraph))


def _text(text: str) -> str:
    r"""Write text on one line of roff.

    Examples
    --------
    >>> print(_text(".toml files\nof C:\\"), _text("--jobs"))
    \&.toml files of C:\e \-\-jobs
    """
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", line)
