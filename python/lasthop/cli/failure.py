"""Errors of commands: a message on stderr, with `--json` a document on stdout, and an exit code."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer

from lasthop import ScenarioError
from lasthop.cli import streams
from lasthop.core.metrics import UnknownMetricError
from lasthop.core.names import Message

CRASHED = 1
WRONG_INPUT = 2
LATE = 3
INTERRUPTED = 130

EXIT_CODES = {
    0: "Success. A transfer that did not finish within the limit is a result too; a warning on stderr says "
    "so.",
    CRASHED: "A run crashed: a bug in Lasthop. stderr says how to replay it. Or a kernel in "
    "virtual time did.",
    WRONG_INPUT: "An invalid scenario or option, or a file that cannot be read or written.",
    LATE: "`lasthop emulate` ran late, or dropped packets that the machine was too slow for, or exceeded "
    "`--wall-limit`.",
    INTERRUPTED: "Interrupted by Ctrl-C.",
}
"""The meaning of each exit code."""


class RefusedError(Exception):
    """Invalid input; the text states the option, the problem and the remedy.

    Parameters
    ----------
    problem : str, optional
        The problem, up to the remedy; one of `unknown` has a remedy of its own.
    remedy : str, optional
        The next part of the message: what would be right.
    found : str, optional
        What was found instead, if that comes last.
    option : str, optional
        The option or argument that is wrong.
    """

    def __init__(
        self,
        problem: str = "",
        *,
        remedy: str | None = None,
        found: str | None = None,
        option: str | None = None,
    ) -> None:
        self.message: str = f"{problem}{remedy or ''}" + ("" if found is None else f", found {found}")
        self.remedy: str | None = problem.remedy if isinstance(problem, Message) else remedy
        self.option: str | None = option
        super().__init__(self.message if option is None else f"{option}: {self.message}")

    @classmethod
    def of(cls, error: Exception, option: str | None = None, message: str | None = None) -> RefusedError:
        """Return the error that refuses an option for an error of the library, by default with its text."""
        refused = cls(str(error) if message is None else message, option=option)
        refused.remedy = _remedy_of(error)
        return refused


def _remedy_of(error: Exception) -> str | None:
    """Return the remedy that an error of the library has."""
    if isinstance(error, ScenarioError):
        return error.remedy
    message = error.args[0] if error.args else None
    return message.remedy if isinstance(message, Message) else None


def refused(error: Exception) -> RefusedError:
    """Return the error that refuses a study or comparison, of --metric if it names no metric."""
    return RefusedError.of(error, "--metric" if isinstance(error.__cause__, UnknownMetricError) else None)


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turn exceptions of the block into a message on stderr and an exit code.

    Invalid input, and files that cannot be read or written, exit with 2; Ctrl-C exits with 130.
    """
    try:
        yield
        streams.finish()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. This is not an error.
        streams.discard(sys.stdout)
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        streams.notify("interrupted")
        raise stopped("interrupted", None) from None
    except ScenarioError as error:
        raise failed(
            "scenario",
            str(error),
            error.message,
            file=error.file if error.change is None else None,
            line=error.line,
            column=error.column,
            option=None if error.change is None else error.file,
            remedy=error.remedy,
        ) from None
    except RefusedError as error:
        raise failed("option", str(error), error.message, option=error.option, remedy=error.remedy) from None
    except OSError as error:
        if error.filename == streams.STDOUT:
            streams.discard(sys.stdout)
        where = error.filename2 or error.filename
        message = error.strerror if where and error.strerror else str(error)
        shown = f"{where}: {message}" if where else message
        raise failed("file", shown, message, file=str(where) if where else None) from None


def failed(
    kind: str,
    shown: str,
    message: str | None = None,
    *,
    file: str | None = None,
    line: int | None = None,
    column: int | None = None,
    option: str | None = None,
    remedy: str | None = None,
    code: int = WRONG_INPUT,
) -> typer.Exit:
    """Report an error, and return the exception that ends the command.

    Parameters
    ----------
    kind : str
        The kind of the problem: "scenario", "option", "file" or "run".
    shown : str
        The message on stderr.
    message : str, optional
        The message without its location. By default `shown`.
    file, line, column, option
        The location of the problem, as far as it has one.
    remedy : str, optional
        The remedy.
    code : int, default 2
        The exit code.
    """
    streams.notify(f"error: {shown}")
    place = {"file": file, "line": line, "column": column, "option": option}
    _emit(kind, shown if message is None else message, place, remedy, code)
    return typer.Exit(code)


def misused(error: Any) -> typer.Exit:
    """Report an error of the command line itself."""
    context: Any = getattr(error, "ctx", None)
    parameter: Any = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if parameter is not None and parameter.param_type_name == "option":
        from_environment = str(context.get_parameter_source(parameter.name)).endswith("ENVIRONMENT")
        option = parameter.envvar if from_environment else parameter.opts[0]
        error.param_hint = f"'{option}'"
    elif parameter is not None:
        option = parameter.metavar
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    usage = f"{context.command_path if context else 'lasthop'} --help lists the arguments and options"
    remedy = getattr(error, "remedy", usage)
    return failed("option", f"{message}\n{usage}", message, option=option, remedy=remedy)


def stopped(message: str, remedy: str | None) -> typer.Exit:
    """Return the exception that ends an interrupted command."""
    _emit("interrupted", message, dict.fromkeys(("file", "line", "column", "option")), remedy, INTERRUPTED)
    return typer.Exit(INTERRUPTED)


def _emit(kind: str, message: str, place: dict[str, str | int | None], remedy: str | None, code: int) -> None:
    """Print the error as JSON, if `--json` was given."""
    if not streams.as_json:
        return
    error = {"kind": kind, "message": message, "place": place, "remedy": remedy, "exit_code": code}
    with suppress(OSError, ValueError):
        streams.emit_document(json.dumps({"error": error}, indent=2, ensure_ascii=False))
        streams.finish()


def exit_resumable(kept: str) -> NoReturn:
    """Exit from an interrupted command, with a note on what is kept and the command that resumes it."""
    again = shlex.join(["lasthop", *sys.argv[1:]])
    streams.notify(f"stopped; {kept}. To resume:\n  {again}")
    raise stopped(f"stopped; {kept}", again) from None


def warn(message: str) -> None:
    """Print a warning on stderr, after what has been printed on stdout.

    Raises
    ------
    OSError
        If stdout cannot be written to; its `filename` is "standard output".
    """
    streams.finish()
    streams.notify(f"warning: {message}")
