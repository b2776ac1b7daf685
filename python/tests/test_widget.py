"""The page as a widget of notebooks."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT, Command

import lasthop
from lasthop import web
from lasthop.web.widget import Explorer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# What a notebook is to a widget: traits that it gets, sets and saves, and an element to show it in.
NOTEBOOK = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="cell"></div>
<script type="application/json" id="traits">%s</script>
<script type="module">
%s
const traits = JSON.parse(document.getElementById("traits").textContent);
const listeners = {};
globalThis.saved = 0;
globalThis.model = {
  get: (name) => traits[name],
  set: (name, value) => { traits[name] = value; },
  save_changes: () => { saved += 1; },
  on: (name, listener) => { listeners[name] = listener; },
  off: (name) => { delete listeners[name]; },
};
globalThis.changed = (name, value) => { traits[name] = value; listeners[`change:${name}`](); };
globalThis.listening = () => Object.keys(listeners).length;
globalThis.leave = widget.render({ model, el: document.getElementById("cell") });
</script>"""


@pytest.fixture
def explorer() -> Explorer:
    if not web.MODULE.exists():
        pytest.skip("there is no simulator as WebAssembly: make web")
    return Explorer("ebsn-example", ["transfer.size=50 KB"], state="a=basic&b=ebsn&run=3")


@pytest.fixture
def cell(browser: Browser, explorer: Explorer, tmp_path: Path) -> Iterator[Page]:
    """Show the widget as a notebook does."""
    traits = {name: getattr(explorer, name) for name in ("html", "state", "height")}
    module = (web.DIRECTORY / "widget.js").read_text(encoding="utf-8")
    module = module.replace("export default {", "const widget = {")
    file = tmp_path / "notebook.html"
    file.write_text(NOTEBOOK % (json.dumps(traits).replace("<", "\\u003c"), module), encoding="utf-8")
    said: list[str] = []
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function("() => saved > 0")
    yield page
    context.close()
    assert said == []


def test_what_the_page_shows_is_there_in_python(cell: Page, explorer: Explorer, command: Command) -> None:
    for name in ("state", "command", "toml", "results"):
        setattr(explorer, name, cell.evaluate("name => model.get(name)", name))
    assert shlex.split(explorer.command)[:3] == ["lasthop", "run", "ebsn-example"]
    assert explorer.scenario.schemes == ["basic", "ebsn"]
    for run in lasthop.run_each(explorer.scenario, run=3):
        assert explorer.metrics[run.scheme].items() >= run.metrics.items()
    printed = command(*shlex.split(explorer.command)[1:], "--json")
    assert printed.stdout == f"{explorer.results}\n"


def test_a_slider_changes_the_scenario_in_python(cell: Page, explorer: Explorer) -> None:
    frame = cell.frames[1]
    before = cell.evaluate("saved")
    frame.select_option("#b", "snoop")
    cell.wait_for_function("before => saved > before", arg=before)
    explorer.toml = cell.evaluate("model.get('toml')")
    assert explorer.scenario.schemes == ["basic", "snoop"]
    assert "b=snoop" in cell.evaluate("model.get('state')")


def test_python_changes_the_page(cell: Page) -> None:
    frame = cell.frames[1]
    cell.evaluate("changed('state', 'lesson=fade&step=2')")
    frame.wait_for_function("() => $('lesson-step').textContent === 'Step 2 of 6'")
    cell.evaluate("changed('height', 500)")
    assert cell.eval_on_selector("iframe", "each => each.getBoundingClientRect().height") == 500
    cell.evaluate("leave()")
    assert cell.evaluate("listening()") == 0


def test_before_the_page_has_run(explorer: Explorer) -> None:
    assert (explorer.command, explorer.metrics) == ("", {})
    assert 'size = "50000 B"' in explorer.scenario.to_toml()
    assert explorer.height == 900


def test_what_cannot_be_run_is_refused_at_once(explorer: Explorer) -> None:
    values: dict[str, Any] = {"overrides": ["radio.rate=fast"]}
    with pytest.raises(lasthop.ScenarioError, match="expected a rate"):
        Explorer("ebsn-example", **values)
    with pytest.raises(lasthop.ScenarioError, match="did you mean"):
        Explorer("ebsn-exampel")


@pytest.fixture
def served(explorer: Explorer) -> Iterator[str]:
    """Serve the notebook of the page by marimo, and return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "marimo", "run", "notebooks/the_page.py", "--headless", "--no-token"]
    server = subprocess.Popen(
        [*line, "--port", str(port)],
        cwd=ROOT,
        env=os.environ | {"MARIMO_SKIP_UPDATE_CHECK": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, "marimo has ended"
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


def test_a_notebook_in_marimo_follows_the_page_and_changes_it(browser: Browser, served: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(served)
    frame = page.frame_locator("iframe[title=Lasthop]")
    page.get_by_text("lasthop run ebsn-wide-area --scheme basic --scheme ebsn").wait_for()
    # From the page to Python: the table of runs, and the study.
    frame.locator("#b").select_option("snoop")
    page.get_by_text("lasthop run ebsn-wide-area --scheme basic --scheme snoop").wait_for()
    page.get_by_role("cell", name="snoop").first.wait_for()
    page.get_by_text("100 runs, finished").wait_for()
    # And back.
    page.get_by_label("show").select_option("what a base station can hide")
    frame.get_by_text("What can a base station hide?").last.wait_for()
    page.get_by_text("lasthop run last-mile --scheme basic --scheme snoop").wait_for()
    context.close()
