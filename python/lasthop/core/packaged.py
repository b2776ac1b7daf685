"""The scenarios that are found by name: the worked ones of the package, and a download over each preset."""

from __future__ import annotations

import tomllib
from os import PathLike, fspath
from pathlib import Path, PurePath

from lasthop._lasthop import SCENARIOS, links
from lasthop.core.names import near, unknown


def scenarios() -> dict[str, str]:
    """Return the names of the worked scenarios, with their titles.

    Each can be given to `load` in place of a file.

    Returns
    -------
    dict of str to str
        In alphabetical order.

    Examples
    --------
    >>> import lasthop
    >>> lasthop.scenarios()["ebsn-example"]
    'EBSN worked example: constant good and bad periods'
    """
    return {name: tomllib.loads(text)["title"] for name, text in SCENARIOS.items()}


def found(path: str | PathLike[str]) -> str | None:
    """Return the name of the worked scenario or preset that `path` means; None if it means a file.

    A file of that name comes first; a directory does not.
    """
    name = fspath(path)
    if kind(name) is None:
        return None
    there = Path(path)
    return name if there.is_dir() or not there.exists() else None


def kind(name: str) -> str | None:
    """Return what a name is that of: `"worked scenario"` or `"preset"`; None if it is neither.

    Examples
    --------
    >>> kind("starlink"), kind("geo"), kind("mine")
    ('worked scenario', 'preset', None)
    """
    if name in SCENARIOS:
        return "worked scenario"
    return "preset" if any(link.name == name for link in links()) else None


def text(name: str) -> str:
    """Return the file of a worked scenario, or else of a download over the preset of that name.

    Raises
    ------
    KeyError
        If there is neither.

    Examples
    --------
    >>> print(text("geo"))  # doctest: +ELLIPSIS
    # A download over a preset of `lasthop links`; the server is 40 ms beyond the last hop.
    <BLANKLINE>
    title = "geo: Geostationary satellite..."
    ...
    [radio]
    preset = "geo"
    <BLANKLINE>
    """
    if name in SCENARIOS:
        return SCENARIOS[name]
    known = {link.name: link for link in links()}
    summary = known[name].summary.replace('"', "'")
    graph = '\n[topology.graph]\nwired = ["fixed-base"]\ncell = ["base-mobile"]\n'
    return f"""# A download over a preset of `lasthop links`; the server is 40 ms beyond the last hop.

title = "{name}: {summary}"
limit = "30 s"
schemes = ["basic"]
sender = "linux"
{graph if known[name].table == "wifi" else ""}
[transfer]
size = "unlimited"
from = "fixed"
to = "mobile"

[wired]
rate = "10 Gbps"
delay = "20 ms"

[{known[name].table}]
preset = "{name}"
"""


def suggestion(path: str | PathLike[str]) -> str | None:
    """Return what to say of a file that does not exist, if a scenario of the package may have been meant."""
    name = PurePath(path).name.removesuffix(".toml")
    presets = [link.name for link in links()]
    alike = near(name, [*SCENARIOS, *presets])
    if alike:
        return f'did you mean the {kind(alike)} "{alike}"?'
    return unknown("worked scenario", name, SCENARIOS) if fspath(path) == name else None
