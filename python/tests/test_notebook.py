"""What results look like in notebooks, and the notebooks that come with Lasthop."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import marimo
import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import ROOT, Command, results

import lasthop
from lasthop import Run, Runs, Scenario, papers, plots, web
from lasthop.advice import advise
from lasthop.core import formats
from lasthop.fitting import fit, fit_losses, stated_link
from lasthop.measurement import Direction, Measurement, Probes
from lasthop.race import Race, grid
from lasthop.show import notebook
from lasthop.study import Progress, Study

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


class Balanced(HTMLParser):
    """Checks that every element is closed, and collects the texts of cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def texts(shown: Any) -> list[str]:
    return Balanced(shown._repr_html_()).texts


def test_a_run_shows_its_results(runs: dict[str, Run]) -> None:
    assert texts(runs["ebsn"])[:4] == [runs["ebsn"].title + " · ", "ebsn", "throughput", "8.54 kbps"]
    assert "ebsn.notices_sent" in texts(runs["ebsn"])
    assert "23 timeouts, 257.3 s>" in repr(runs["basic"])


def test_runs_show_themselves_as_a_table(runs: dict[str, Run]) -> None:
    table = lasthop.run_each("ebsn-example", ["basic", "ebsn"])
    assert isinstance(table, list)
    cells = texts(table)
    assert cells[cells.index("basic") :][:6] == ["basic", "3.11 kbps", "73.4 %", "38.9 KB", "23", "257.3 s"]
    assert len(repr(table).splitlines()) == 2
    assert (repr(Runs()), texts(Runs())) == ("no runs", ["No runs"])
    assert type(table[:1]) is list


def test_a_run_without_connections_or_without_an_end() -> None:
    tables: dict[str, Any] = {
        "limit": "1 s",
        "wired": {"rate": "10 Mbps"},
        "radio": {"rate": "2 Mbps", "channel": {"iid": {"ber": 1.0}}},
    }
    lost = lasthop.run(lasthop.build(tables | {"transfer": {"size": "1 KB"}}))
    assert "not finished" in repr(lost)
    assert "-" in texts(lost)
    ends = {"from": "fixed", "to": "mobile", "packet_size": "500 B"}
    traffic = ends | {"law": {"constant": {"rate": "10 kbps"}}}
    alone = lasthop.run(lasthop.build(tables | {"traffic": {"hum": traffic}}))
    assert "no connections" in repr(alone)
    assert "traffic hum" in texts(alone)


def test_text_of_a_scenario_is_not_html() -> None:
    scenario = lasthop.load("ebsn-example", ['title="<b>&"'])
    assert "<b>&" in texts(scenario)
    assert "&lt;b&gt;&amp;" in lasthop.run(scenario)._repr_html_()
    assert any("schemes = [" in text for text in texts(scenario))


def test_a_study_shows_how_far_it_is(example: Scenario) -> None:
    swept = lasthop.load(
        "ebsn-wide-area",
        ['schemes=["basic", "ebsn"]', 'sweep={"radio.channel.two-state.bad"=["1 s", "2 s"]}'],
    )
    study = Study(swept, precision=None, runs=(4, 4))
    assert repr(study).endswith("2 points by 2 schemes, seed 1; nothing has been run yet>")
    assert "nothing has been run yet" in texts(study)
    study.run()
    assert "16 runs, finished" in repr(study)
    cells = texts(study)
    first = cells[cells.index("runs") + 1 :][:3]
    assert first[:2] == ["1 s", "basic"]
    assert float(first[2]) == pytest.approx(study.summary()["mean"].iloc[0] / 1e3, abs=0.05)


def test_a_comparison_shows_its_arms_the_best_first() -> None:
    arms = grid(["linux", "linux-bbr"], ["basic"])
    comparison = Race("last-mile", arms, overrides=["limit=2 s"], runs=(2, 2))
    assert repr(comparison).endswith("2 arms with linux basic: nothing has been run yet>")
    assert "nothing has been run yet" in texts(comparison)[-1]
    comparison.run()
    assert "linux-bbr basic is best, throughput_bps" in repr(comparison)
    cells = texts(comparison)
    assert cells.index("linux-bbr basic") < cells.index("linux basic")
    assert cells[-1] == "ratios to linux basic, over the same fades"


def test_a_fitted_link_shows_its_parameters() -> None:
    lost = np.random.default_rng(1).random(10_000) < 0.02
    probes = Probes(Direction.DOWN, np.arange(10_000) / 100, lost, None)
    link = fit(Measurement("<b>.csv", "csv", 100.0, probes=(probes,)), rtt_s=0.06)
    assert repr(link).startswith("<FittedLink fitted to <b>.csv: unknown rate, round trip 60 ms, ")
    assert repr(link).endswith(f", {lost.sum()} of 10,000 packets lost down>")
    cells = texts(link)
    assert cells[0] == "A link fitted to <b>.csv"
    loss = link.down.parameter("loss") if link.down else None
    assert loss is not None
    assert cells[cells.index("loss, down") + 1] == loss.write(loss.value) == f"{100 * lost.mean():.2g} %"
    assert "its scenario" not in cells
    assert "its scenario" in texts(fit(Measurement("a", "csv", 100.0, probes=(probes,)), rate_bps=8e6))


def test_advice_shows_the_verdict_and_every_remedy() -> None:
    link = stated_link(8e6, 0.06, loss=0.02)
    assert "2 % of the packets lost" in repr(link)
    assert "losses, as stated" in texts(link)
    advice = advise(link, runs=(8, 8), effects=False)
    assert repr(advice) == f"<Advice for a link of 8 Mbps, round trip 60 ms: {advice.verdict()}>"
    cells = texts(advice)
    assert cells[0] == advice.verdict()
    assert f"{advice.advised[0].title}, advised" in cells
    for each in advice.remedies:
        assert {each.title, f"{each.title}, advised"} & {*cells}
    assert cells[cells.index(advice.now.title) :][1:3] == [formats.rate(advice.now.value), "now"]
    assert {limit.name for limit in advice.limits} <= {*cells}


def test_schemes_and_links_show_their_sources() -> None:
    assert "TR-96-014 section 4.2.3" in " ".join(texts(lasthop.schemes()[3]))
    link = lasthop.links()[0]
    assert link.source in " ".join(texts(link))


def test_a_paper_shows_verdicts_and_figures() -> None:
    outcome = papers.reproduce("ebsn", figures=["3", "4"])
    assert "no claims judged; 2 figures" in repr(outcome)
    assert outcome._repr_html_().count("<img alt=") == 2
    assert "Figure 3: Packet trace: basic TCP" in texts(outcome)
    with pytest.raises(ValueError, match="has no figure '99'; it has 3, 4"):
        papers.reproduce("ebsn", figures=["99"])


def test_a_figure_shows_itself(runs: dict[str, Run]) -> None:
    figure = plots.packet_traces(list(runs.values()))
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert 'alt="packet number mod 90 against time (s): basic, source-quench,' in figure._repr_html_()


def drawn(runs: dict[str, Run]) -> dict[str, Callable[..., Any]]:
    study = Study(
        lasthop.load("ebsn-wide-area", ['sweep={"radio.channel.two-state.bad"=["1 s", "2 s"]}']),
        precision=None,
        runs=(3, 3),
    )
    study.run()
    run = runs["basic"]
    return {
        "packet_trace": lambda ax: plots.packet_trace(run, printed=[(20, 30)], ax=ax),
        "time_sequence": lambda ax: plots.time_sequence(run, ax=ax),
        "cwnd": lambda ax: plots.cwnd(run, ax=ax),
        "segment_size": lambda ax: plots.segment_size(run, ax=ax),
        "windows": lambda ax: plots.windows(runs, mss=536, references={"3": 3.0, "3.1": 3.1}, ax=ax),
        "sweep_curve": lambda ax: plots.sweep_curve(study.summary(), "radio.channel.two-state.bad", ax=ax),
        "cdf": lambda ax: plots.cdf(study.to_pandas(), "throughput_bps", ax=ax),
        "delays": lambda ax: plots.delays(lasthop.run("ebsn-example", "ebsn", delays=True), ax=ax),
        "link_timing": lambda ax: plots.link_timing(lasthop.load("starlink"), 5.0, ax=ax),
    }


def test_every_plot_draws_into_given_axes(runs: dict[str, Run]) -> None:
    for name, draw in drawn(runs).items():
        alone = draw(None)
        figure, (left, right) = plt.subplots(1, 2)
        assert draw(right) is right, name
        assert not left.lines, name
        assert len(right.lines) == len(alone.axes[0].lines), name
        assert right.get_ylabel() == alone.axes[0].get_ylabel(), name
        assert figure.get_axes() == [left, right], name
        assert not figure.legends, name
        figure.canvas.draw()
        plt.close(figure)


def test_maps_and_checks_draw_into_given_axes() -> None:
    two = {"radio.channel.two-state.bad": ["1 s", "2 s"], "tcp.packet_size": ["576 B", "1536 B"]}
    swept = lasthop.load("ebsn-wide-area", ['schemes=["basic", "ebsn"]', f"sweep={notation(two)}"])
    study = Study(swept, precision=None, runs=(2, 2))
    study.run()
    comparison = Race("last-mile", grid(["linux"], ["basic", "arq"]), overrides=["limit=2 s"], runs=(2, 2))
    comparison.run()
    lost = np.arange(2000) % 50 == 0
    losses = fit_losses(Probes(Direction.DOWN, np.arange(2000) / 50, lost, None), replicates=20)
    draw: dict[int, Callable[[Any], Any]] = {
        1: lambda ax: plots.heat_map(comparison.results(), ax=ax),
        2: lambda ax: plots.sweep_map(study.summary(), *two, ax=ax),
        4: lambda ax: plots.loss_checks(losses, ax=ax),
    }
    for panels, make in draw.items():
        alone = make(None)
        figure, axes = plt.subplots(1, panels, squeeze=False, layout="constrained")
        given = list(axes[0])
        assert make(given) is given
        assert figure.get_suptitle() == ""
        for ours, theirs in zip(alone.axes, given, strict=False):
            assert len(theirs.patches) == len(ours.patches)
            assert len(theirs.collections) == len(ours.collections)
            assert [each.get_text() for each in theirs.texts] == [each.get_text() for each in ours.texts]
        figure.canvas.draw()
        plt.close(figure)
        with pytest.raises(ValueError, match=f"expected {panels} axes, one for each panel, found 3"):
            make(list(plt.subplots(1, 3)[1]))
        plt.close()


def notation(sweep: dict[str, list[str]]) -> str:
    return "{" + ", ".join(f'"{key}" = {values}' for key, values in sweep.items()) + "}"


def test_several_panels_need_as_many_axes(runs: dict[str, Run]) -> None:
    both = [runs["basic"], runs["ebsn"]]
    figure, axes = plt.subplots(2, 1)
    assert plots.packet_traces(both, ax=list(axes)) == list(axes)
    with pytest.raises(ValueError, match="expected 2 axes, one for each panel, found 1"):
        plots.packet_traces(both, ax=[axes[0]])
    plt.close(figure)


def test_a_notebook_has_a_bar_and_a_terminal_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda html: shown.append(html))
    display = SimpleNamespace(HTML=lambda html: html, display=lambda html, display_id: handle)
    shell: Any = SimpleNamespace()
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    scenario = lasthop.load("ebsn-example", ['schemes=["basic"]'])
    Study(scenario, precision=None, runs=(2, 2)).run()
    assert shown == []
    shell.kernel = object()
    Study(scenario, precision=None, runs=(2, 2)).run(progress=False)
    assert shown == []
    Study(scenario, precision=None, runs=(2, 2)).run()
    assert "of about 2 runs" in shown[0]
    # The bar is removed at the end, and when the study fails.
    assert shown[-1] == ""
    with suppress(ZeroDivisionError), notebook.progress_bar("x") as show:
        assert show is not None
        show(Progress(done=1, expected=4))
        raise ZeroDivisionError
    assert ['max="4" value="1"' in shown[-2], shown[-1]] == [True, ""]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    if "lasthop.web" in path.read_text() and not web.MODULE.exists():
        pytest.skip("there is no simulator as WebAssembly: make web")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, _ = module.app.run()
    html = [marimo.as_html(output).text for output in outputs if output is not None]
    # Prose, and results that show themselves.
    assert sum("<h1" in each for each in html) == 1
    assert sum("<h1" not in each and "<h2" not in each and "markdown" not in each for each in html) >= 4


def test_there_are_six_notebooks() -> None:
    names = [path.stem for path in NOTEBOOKS]
    assert names == ["a_paper", "a_study", "first_run", "the_page", "your_link", "your_scheme"]
    page = (ROOT / "docs/guide/notebooks.md").read_text()
    assert all(f"../notebooks/{name}.py" in page for name in names)


def test_further_figures_on_the_command_line(command: Command, tmp_path: Path) -> None:
    line = ["run", "ebsn-example", "--scheme", "ebsn", "--out", tmp_path]
    both = ["--figure", "cwnd", "--figure", "time-sequence", "--figure", "cwnd"]
    result = command(*line, *both)
    assert result.returncode == 0, result.stderr
    drawn = [f"ebsn.{name}.{kind}" for name in ("cwnd", "time-sequence") for kind in ("csv", "png", "svg")]
    assert results(tmp_path) == sorted([*drawn, "results.json", "scenario.toml"])
    assert "2 figures" in result.stdout
    wrong = command(*line, "--figure", "cwmd")
    assert wrong.returncode == 2
    assert 'there is no figure "cwmd"; did you mean "cwnd"?' in wrong.stderr
    assert "need --out DIR" in command("run", "ebsn-example", "--figure", "cwnd").stderr


def test_distributions_of_delays_on_the_command_line(command: Command, tmp_path: Path) -> None:
    line = ["run", "ebsn-example", "--scheme", "ebsn", "--set", "transfer.size=20 KB", "--out", tmp_path]
    result = command(*line, "--figure", "delays")
    assert result.returncode == 0, result.stderr
    drawn = [f"ebsn.{name}.{kind}" for name in ("delays", "queueing") for kind in ("csv", "png", "svg")]
    assert results(tmp_path) == sorted([*drawn, "results.json", "scenario.toml"])
    header, *rows = (tmp_path / "ebsn.queueing.csv").read_text().splitlines()
    assert header == "way,queueing_s,share"
    assert {row.split(",")[0] for row in rows} >= {"fixed-base", "base-mobile"}


def test_a_figure_for_each_part_of_a_split_connection(command: Command, tmp_path: Path) -> None:
    line = ["run", "split-wlan", "--scheme", "i-tcp", "--set", "transfer.size=50 KB", "--out", tmp_path]
    assert command(*line, "--figure", "cwnd").returncode == 0
    assert {name for name in results(tmp_path) if name.endswith(".png")} == {
        "i-tcp.cwnd.png",
        "i-tcp.base-mobile.cwnd.png",
    }
