"""The simulator in a page: one HTML file that needs no server and no network.

The simulator is a WebAssembly module, which `make web` compiles and `make release` puts into the wheel.
Without it, everything else works.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lasthop._lasthop import SCENARIOS

DIRECTORY = Path(__file__).parent
SCRIPTS = (
    "simulator.js",
    "quantities.js",
    "thread.js",
    "controls.js",
    "charts.js",
    "diagram.js",
    "statistics.js",
    "lessons.js",
    "frame.js",
    "app.js",
)
"""The page's own scripts, in the order in which they need each other."""

MODULE = DIRECTORY / "simulator.wasm.gz"


class MissingModuleError(Exception):
    """The simulator has not been compiled to WebAssembly; the text says how to get it."""


def packed_module() -> bytes:
    """Return the simulator as a WebAssembly module, compressed by gzip.

    Raises
    ------
    MissingModuleError
        If this installation has none.
    """
    try:
        return MODULE.read_bytes()
    except FileNotFoundError:
        raise MissingModuleError(
            "this installation lacks the simulator as WebAssembly; `make web` in a clone compiles it, and "
            "wheels that `make release` builds have it"
        ) from None


def page(toml: str, name: str, overrides: Sequence[str] = ()) -> str:
    """Return a page that runs a scenario.

    Parameters
    ----------
    toml : str
        The scenario.
    name : str
        Its file, or the name of the worked scenario.
    overrides : sequence of str, optional
        Settings that replace those of the scenario, such as `"radio.rate=2 Mbps"`.

    Returns
    -------
    str
        The HTML file.

    Raises
    ------
    MissingModuleError
        If this installation has no WebAssembly module.
    """
    from jinja2 import Environment, StrictUndefined

    from lasthop._lasthop import __version__

    scenarios = {name: SCENARIOS[name] for name in sorted({each["scenario"] for each in lessons()})}
    given = {"toml": toml, "name": name, "overrides": list(overrides)}
    uplot = f"/*\n{_part('vendor/uplot/LICENSE')}*/\n{_part('vendor/uplot/uPlot.iife.min.js')}"
    # The parts are ours, except for the scenario, which must not end its element.
    template = Environment(autoescape=False, undefined=StrictUndefined).from_string(_part("page.html"))
    return template.render(
        version=__version__,
        styles=_part("vendor/uplot/uPlot.min.css") + _part("style.css"),
        given=_embedded(given),
        lessons=_embedded({"lessons": lessons(), "scenarios": scenarios}),
        module=base64.b64encode(packed_module()).decode(),
        worker=_part("simulator.js") + _part("worker.js"),
        uplot=uplot,
        app="\n".join(map(_part, SCRIPTS)),
    )


def lessons() -> list[dict[str, Any]]:
    """Return the guided lessons of the page, as lessons.json has them."""
    found: list[dict[str, Any]] = json.loads(_part("lessons.json"))
    return found


def _embedded(value: Any) -> str:
    """Return JSON that cannot end the element that it stands in."""
    return json.dumps(value).replace("<", "\\u003c")


def _part(name: str) -> str:
    return (DIRECTORY / name).read_text(encoding="utf-8")
