"""Results in a Jupyter kernel, as a notebook server starts it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from lasthop import web

nbformat = pytest.importorskip("nbformat", reason="there is no nbformat: the extra `test` has it")
nbclient = pytest.importorskip("nbclient", reason="there is no nbclient: the extra `test` has it")
pytest.importorskip("ipykernel", reason="there is no ipykernel: the extra `test` has it")

IMPORTS = "import lasthop\nfrom lasthop.race import Race, grid\nfrom lasthop.study import Study"
STUDY = 'study = Study(lasthop.load("ebsn-example"), precision=None, runs=(4, 4))\nstudy.run()\nstudy'
COMPARISON = (
    'comparison = Race("last-mile", grid(["linux", "linux-bbr"], ["basic"]), overrides=["limit=2 s"], '
    "runs=(2, 2))\ncomparison.run()\ncomparison"
)
ADVICE = (
    "lasthop.advice.advise(lasthop.fitting.stated_link(8e6, 0.06, loss=0.02), runs=(4, 4), effects=False)"
)
SHOWN = {
    'scenario = lasthop.load("ebsn-example")\nscenario': ("every setting", "Scenario"),
    'lasthop.run(scenario, "ebsn")': ("8.54 kbps", "with ebsn, seed 1, run 0: finished; 8.54 kbps"),
    'lasthop.run_each(scenario, ["basic", "ebsn"])': ("73.4 %", "23 timeouts"),
    STUDY: ("4 schemes, seed 1", "16 runs, finished"),
    COMPARISON: ("linux-bbr basic", "linux-bbr basic is best"),
    ADVICE: ("what limits downloads", "<Advice for a link of 8 Mbps"),
    'lasthop.papers.reproduce("ebsn", figures=["3"])': ("Figure 3: Packet trace", "<Outcome of"),
    "lasthop.schemes()[3]": ("TR-96-014", "ebsn"),
}
"""Expressions, with a part of the HTML and of the text that they show."""

Message = dict[str, Any]


def execute(cells: list[str]) -> tuple[list[list[Any]], list[list[Message]]]:
    """Execute cells, and return the outputs of each and what each displayed on the way."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    displayed: list[list[Message]] = [[] for _ in cells]

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined]
        def process_message(self, message: Message, cell: Any, index: int) -> Any:
            if message["msg_type"] in ("display_data", "update_display_data"):
                displayed[index].append(message["content"]["data"])
            return super().process_message(message, cell, index)

    Client(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    ).execute()
    return [cell.outputs for cell in notebook.cells], displayed


@pytest.fixture(scope="module")
def shown() -> Callable[[str], tuple[dict[str, str], list[Message]]]:
    """Return a function that tells what a cell shows at last, and what it displayed before."""
    figure = 'lasthop.plots.cwnd(lasthop.run(scenario, "basic", series=True))'
    panels = (
        "import matplotlib.pyplot as plt\nfigure, ax = plt.subplots()\n"
        'lasthop.plots.cwnd(lasthop.run(scenario, "basic", series=True), ax=ax);'
    )
    outputs, displayed = execute([IMPORTS, *SHOWN, figure, panels])
    of_cells = zip(outputs[1:], displayed[1:], strict=True)
    found = dict(zip([*SHOWN, "figure", "panels"], of_cells, strict=True))

    def last(cell: str) -> tuple[dict[str, str], list[Message]]:
        return found[cell][0][-1]["data"], found[cell][1]

    return last


@pytest.mark.parametrize("cell", SHOWN, ids=lambda cell: cell.splitlines()[-1][:20])
def test_results_show_themselves_as_html_and_text(cell: str, shown: Any) -> None:
    html, text = SHOWN[cell]
    data, _ = shown(cell)
    assert html in data["text/html"]
    assert text in data["text/plain"]


def test_a_figure_shows_itself_once(shown: Any) -> None:
    data, before = shown("figure")
    assert data["image/png"].startswith("iVBOR")
    assert 'alt="window (KB) against time (s): basic"' in data["text/html"]
    assert before == []


def test_a_plot_in_the_user_s_axes_is_shown_by_matplotlib(shown: Any) -> None:
    data, before = shown("panels")
    assert data["image/png"].startswith("iVBOR")
    assert len(before) == 1


@pytest.mark.parametrize("cell", [STUDY, COMPARISON, ADVICE], ids=["study", "comparison", "advice"])
def test_what_takes_long_shows_a_bar_that_goes_away(cell: str, shown: Any) -> None:
    _, displayed = shown(cell)
    html = [each["text/html"] for each in displayed]
    assert any("<progress" in each for each in html), html
    assert html[-1] == ""


def test_the_page_is_a_widget() -> None:
    if not web.MODULE.exists():
        pytest.skip("there is no simulator as WebAssembly: make web")
    cells = [
        'from lasthop.web.widget import Explorer\nexplorer = Explorer("ebsn-example")\nexplorer',
        'explorer.state = "a=arq&b=snoop"\nexplorer.scenario.title',
    ]
    (first, second), _ = execute(cells)
    assert "application/vnd.jupyter.widget-view+json" in first[-1]["data"]
    assert "EBSN worked example" in second[-1]["data"]["text/plain"]


def test_a_notebook_converted_for_jupyter_runs(tmp_path: Path) -> None:
    file = tmp_path / "first_run.ipynb"
    line = [sys.executable, "-m", "marimo", "export", "ipynb", "notebooks/first_run.py", "-o", str(file)]
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
    cells = [cell.source for cell in nbformat.read(file, 4).cells if cell.cell_type == "code"]
    outputs, _ = execute(cells)
    data = [each["data"] for of in outputs for each in of if each.output_type == "execute_result"]
    assert sum("image/png" in each for each in data) == 3
    assert sum("73.4 %" in each.get("text/html", "") for each in data) == 2
