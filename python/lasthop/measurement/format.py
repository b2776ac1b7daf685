"""Readers of measurement formats: how a file is recognised, and what reads it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lasthop.measurement.model import Measurement
from lasthop.measurement.source import Host, Place, Source


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about a file.

    Attributes
    ----------
    user : {"client", "server"}
        The end on the user's side of the link.
    captured : {"client", "server", "between"} or None
        Where a capture was taken; None to infer it.
    every_s : float or None
        The time between rows or packets without times.
    columns : mapping of str to str
        What columns of a table are: the name of another column, or `"capacity"` for a rate.
    """

    user: Host = "client"
    captured: Place | None = None
    every_s: float | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reader(ABC):
    """The reader of a format.

    Attributes
    ----------
    name : str
        The name of the format, for `format=` and `Measurement.format`.
    title : str
        The name in messages.
    command : str or None
        A command that makes such a file; None if no single one does.
    takes_every : bool
        Whether a file may lack times, so that `every_s` is used.
    """

    name: str
    title: str
    command: str | None = None
    takes_every: bool = False

    @abstractmethod
    def recognises(self, source: Source) -> bool:
        """Return whether a file is of this format, by its contents."""

    @abstractmethod
    def read(self, source: Source, options: Options) -> Measurement:
        """Read a file.

        Raises
        ------
        MeasurementError
            If it is not of this format, or damaged.
        """

    def refusal(self, source: Source) -> str | None:
        """Return why a file of the same program cannot be read, or None if it is not such a file."""
        return None


@dataclass(frozen=True, kw_only=True)
class BinaryReader(Reader):
    """The reader of a binary format, which begins with one of the magic numbers."""

    magic: tuple[bytes, ...]
    parse: Callable[[Source, Options], Measurement]

    def recognises(self, source: Source) -> bool:
        """Return whether a file begins with a magic number."""
        return source.data.startswith(self.magic)

    def read(self, source: Source, options: Options) -> Measurement:
        """Read a file."""
        return self.parse(source, options)


@dataclass(frozen=True, kw_only=True)
class TextReader(Reader):
    """The reader of a text format, which `fits` recognises by the text without leading spaces."""

    fits: Callable[[str], bool]
    parse: Callable[[Source, Options], Measurement]

    def recognises(self, source: Source) -> bool:
        """Return whether the text fits."""
        return not source.is_json and self.fits(source.text.lstrip())

    def read(self, source: Source, options: Options) -> Measurement:
        """Read a file."""
        return self.parse(source, options)


@dataclass(frozen=True, kw_only=True)
class JsonReader(Reader):
    """The reader of a JSON format, which `fits` recognises by the document.

    Attributes
    ----------
    load : callable
        Returns the document of a file.
    printed : tuple of str and Pattern, optional
        A program, and how to recognise the text that it prints without its option for JSON.
    """

    fits: Callable[[Any], bool]
    parse: Callable[[Source, Any, Options], Measurement]
    load: Callable[[Source], Any] = Source.json
    printed: tuple[str, re.Pattern[str]] | None = None

    def recognises(self, source: Source) -> bool:
        """Return whether the first document fits."""
        return source.is_json and self.fits(source.documents[0])

    def read(self, source: Source, options: Options) -> Measurement:
        """Read a file."""
        document = self.load(source)
        if not self.fits(document):
            raise source.error(f"not the JSON of {self.name}")
        return self.parse(source, document, options)

    def refusal(self, source: Source) -> str | None:
        """Return the remedy if a file has what the program prints without JSON."""
        if self.printed is None or source.is_json or not self.printed[1].search(source.text.lstrip()[:4000]):
            return None
        return f"the text of {self.printed[0]}; expected JSON, such as that of `{self.command}`"
