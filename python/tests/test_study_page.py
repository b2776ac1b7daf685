"""The HTML report of a study, and what Datasette is told of its store."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Command

import lasthop
from lasthop.show.datasette import metadata
from lasthop.show.study_page import write_html
from lasthop.study import Study, StudyError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BAD = "radio.channel.two-state.bad"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    scenario = lasthop.load(
        "ebsn-wide-area",
        ['schemes=["basic", "ebsn"]', f'sweep={{"{BAD}" = ["1 s", "4 s"]}}', 'title="<i>A & B"'],
    )
    found = Study(
        scenario, precision=None, runs=(12, 12), store=tmp_path_factory.mktemp("s") / "study.sqlite"
    )
    found.run()
    return found


def page_of(study: Study, directory: Path, command: str = "") -> str:
    return write_html(study, directory / "report.html", command).read_text(encoding="utf-8")


def test_the_report_has_the_results_in_one_file(study: Study, tmp_path: Path) -> None:
    page = page_of(study, tmp_path, "lasthop study x --html")
    assert "<code>lasthop study x --html</code>" in page
    assert "&lt;i&gt;A &amp; B" in page
    assert "<i>A" not in page
    assert "http" not in re.sub(r'"data:[^"]*"', "", page)
    assert page.count('<div class="picture">') == 1 + len(study.points)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page)
    mean = study.summary()["mean"].iloc[0] / 1e3
    assert cells[:2] == ["1 s", "basic"]
    assert float(cells[2]) == pytest.approx(mean, abs=0.05)
    assert cells.count("ebsn against basic") == 2
    for section in ("curves", "means", "comparisons", "distributions", "scenario"):
        assert f'id="{section}"' in page
        assert f'href="#{section}"' in page


def test_the_report_fits_a_phone(study: Study, tmp_path: Path, browser: Browser) -> None:
    page_of(study, tmp_path)
    said: list[str] = []
    context = browser.new_context(offline=True, viewport={"width": 360, "height": 800})
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()
    assert said == []


def test_a_study_of_one_scheme_whose_metric_no_run_has(tmp_path: Path) -> None:
    scenario = lasthop.load("last-mile", ['schemes=["basic"]', "limit=1 s"])
    study = Study(scenario, precision=None, runs=(3, 3), metric="completion_time_s")
    study.run()
    page = page_of(study, tmp_path)
    assert 'id="comparisons"' not in page
    assert '<div class="picture">' not in page
    assert '<td class="number">-</td>' in page


def test_many_points_have_no_distributions(tmp_path: Path) -> None:
    values = ", ".join(f'"{size} B"' for size in range(300, 1000, 100))
    sweep = f'sweep={{"tcp.packet_size" = [{values}]}}'
    study = Study(lasthop.load("ebsn-example", ['schemes=["ebsn"]', sweep]), precision=None, runs=(1, 1))
    study.run()
    page = page_of(study, tmp_path)
    assert page.count('<div class="picture">') == 1
    assert 'id="distributions"' not in page


def test_datasette_is_told_of_what_is_there(study: Study) -> None:
    told = metadata(study)
    ((name, database),) = told["databases"].items()
    assert study.path is not None
    assert (name, told["title"]) == ("study", "<i>A & B")
    with closing(sqlite3.connect(study.path)) as sql:
        tables = {
            row[0] for row in sql.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        }
        assert set(database["tables"]) == tables
        columns = [row[1] for row in sql.execute("PRAGMA table_info(result)")]
        assert sorted(database["tables"]["result"]["columns"]) == sorted(columns)
        queries = {key: sql.execute(query["sql"]).fetchall() for key, query in database["queries"].items()}
    summary = study.summary()
    assert [row[:3] for row in queries["means"]] == [
        (row[BAD], row["scheme"], row["n"]) for _, row in summary.iterrows()
    ]
    assert [row[3] for row in queries["means"]] == pytest.approx(summary["mean"].tolist())
    assert [row[3] for row in queries["pairs"]] == pytest.approx(study.differences()["difference"].tolist())
    assert len(queries["least"]) == 10
    assert queries["least"][0][4] == pytest.approx(study.to_pandas()["throughput_bps"].min())


def test_datasette_needs_a_file() -> None:
    with pytest.raises(StudyError, match="needs a file"):
        metadata(Study("ebsn-example"))


def test_the_command_writes_both(command: Command, tmp_path: Path) -> None:
    line = ["study", "ebsn-example", "--runs", "2", "--scheme", "ebsn", "--out", tmp_path]
    result = command(*line, "--html", "--export", "datasette")
    assert result.returncode == 0, result.stderr
    assert "datasette.json, report.html" in result.stdout
    assert f"--out {tmp_path} --html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "queries" in json.loads((tmp_path / "datasette.json").read_text())["databases"]["study"]
    # A later command without them leaves none that could be out of date.
    assert command(*line).returncode == 0
    assert not (tmp_path / "report.html").exists()
