"""The page as a widget for notebooks: Jupyter, marimo and others that know anywidget."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from lasthop import web
from lasthop._lasthop import Scenario
from lasthop.core import packaged
from lasthop.core.scenarios import load


class Explorer(anywidget.AnyWidget):
    """The page of `lasthop web` in a notebook: sliders, lessons, packets on their way.

    Python has the settings of the sliders as a scenario. Needs the extra `notebooks`.

    Parameters
    ----------
    scenario : str or Path, default "ebsn-example"
        The scenario's file, or the name of a worked scenario.
    overrides : iterable of str, optional
        Settings that replace those of the scenario, such as `"radio.rate=2 Mbps"`.
    state : str, default ""
        What the page shows at first, as the address of a page has it after `#`: `"lesson=snoop&step=2"`.
    height : int, default 900
        The height in pixels.

    Attributes
    ----------
    state : str
        What the page shows. Setting it changes the page.
    command : str
        The command that prints the same numbers; empty until the page has run.
    height : int
        The height in pixels.

    Raises
    ------
    ScenarioError
        If the scenario is invalid.
    MissingModuleError
        If this installation has no simulator as WebAssembly.

    Examples
    --------
    >>> from lasthop.web.widget import Explorer
    >>> explorer = Explorer("last-mile", state="a=basic&b=snoop")  # doctest: +SKIP
    >>> explorer.scenario.title  # doctest: +SKIP
    'Last mile: 1 % of frames lost, by sender and scheme'
    """

    _esm = web.DIRECTORY / "widget.js"

    html: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    state: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    command: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    toml: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    results: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    height: traitlets.Int[int, int] = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        scenario: str | Path = "ebsn-example",
        overrides: Iterable[str] = (),
        *,
        state: str = "",
        height: int = 900,
    ) -> None:
        overrides = list(overrides)
        # Refuses what the page would refuse.
        checked = load(scenario, overrides)
        name = packaged.found(scenario)
        text = Path(scenario).read_text(encoding="utf-8") if name is None else packaged.text(name)
        super().__init__(
            html=web.page(text, str(scenario), overrides),
            state=state,
            command="",
            toml=checked.to_toml(),
            results="",
            height=height,
        )

    @property
    def scenario(self) -> Scenario:
        """The scenario that the page runs, as it is now."""
        return Scenario.parse(self.toml, name="<page>")

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The metrics of each scheme on the page, as `--json` has them; empty until the page has run."""
        if not self.results:
            return {}
        return {each["scheme"]: each["metrics"] for each in json.loads(self.results)["results"]}
