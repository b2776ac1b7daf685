"""The files of a study's results: the JSON document, CSV tables, figures and the page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.core.files import write_text
from lasthop.core.units import quantile_name
from lasthop.show.study_report import curve_figures, document, numeric_settings, stated_quantities
from lasthop.study.study import Study

if TYPE_CHECKING:
    import pandas


def write(
    study: Study, directory: Path, export: str | None, html: bool = False, command: str = ""
) -> list[Path]:
    """Write all results of a study into a directory.

    Parameters
    ----------
    study : Study
        The study.
    directory : Path
        The directory.
    export : {"csv", "parquet", "datasette"}, optional
        Also write a table of every run, in this format, or what Datasette is to know of the store.
    html : bool, default False
        Also write a report in HTML.
    command : str, default ""
        The command that repeats the study, for the report.

    Returns
    -------
    list of Path
        The files.
    """
    from lasthop.results.export import to_csv

    results = directory / "results.json"
    text = json.dumps(document(study), indent=2, ensure_ascii=False) + "\n"
    write_text(results, text)
    stated = (study.metric, *study.further)
    written = [results, to_csv(_stacked(map(study.summary, stated)), directory / "summary.csv")]
    comparison = _stacked(study.differences(metric=metric) for metric in stated)
    if len(comparison):
        written.append(to_csv(comparison, directory / "comparison.csv"))
    if found := [study.quantile(q, metric) for metric in stated_quantities(study) for q in study.quantiles]:
        written.append(to_csv(_stacked(found), directory / "quantiles.csv"))
    if export == "csv":
        written.append(study.to_csv(directory / "runs.csv"))
    if export == "parquet":
        written.append(study.to_parquet(directory / "runs.parquet"))
    if export == "datasette":
        from lasthop.show.datasette import metadata

        text = json.dumps(metadata(study), indent=2, ensure_ascii=False) + "\n"
        written.append(write_text(directory / "datasette.json", text))
    written += curves(study, directory)
    if html:
        from lasthop.show.study_page import write_html

        written.append(write_html(study, directory / "report.html", command))
    return written


def curves(study: Study, directory: Path) -> list[Path]:
    """Write the figures of `curve_figures`.

    Parameters
    ----------
    study : Study
        The study.
    directory : Path
        The directory of the figures: of means, and of each quantile.

    Returns
    -------
    list of Path
        The files.
    """
    from lasthop import plots

    numeric = len(numeric_settings(study))
    numbered = len(study.points[0].parameters) > numeric
    written = []
    for share in (None, *study.quantiles):
        stem = "curve" if numeric == 1 else "heat-map"
        stem += "" if share is None else f"-{quantile_name(share)}"
        for number, (_, figure) in enumerate(curve_figures(study, share), 1):
            written += plots.save(figure, directory / (f"{stem}-{number}" if numbered else stem))
    return written


def _stacked(tables: Iterable[pandas.DataFrame]) -> pandas.DataFrame:
    """Return the rows of several tables in one."""
    import pandas

    return pandas.concat(tables, ignore_index=True)
