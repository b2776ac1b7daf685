"""The tables of applications of `lasthop run`: one for each kind of application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lasthop import Run
from lasthop.cli.streams import emit
from lasthop.cli.table import Table, fixed, run_headers, run_labels
from lasthop.core.applications import Kind, kind_of


def print_applications(runs: list[Run]) -> None:
    """Print a row for each application of each run, in a table for each kind of application."""
    applications = runs[0].applications
    present = {kind_of(metrics) for metrics in applications.values()}
    for number, kind in enumerate(each for each in _CELLS if each in present):
        if number:
            emit()
        names = [name for name, metrics in applications.items() if kind_of(metrics) is kind]
        _print_kind(runs, kind, names)


def _print_kind(runs: list[Run], kind: Kind, names: list[str]) -> None:
    """Print the table of the applications of one kind."""
    each = [[run.applications[name] for name in names] for run in runs]
    over_quic = any(metrics["declared_lost"] is not None for of_run in each for metrics in of_run)
    rows = [[_cells(kind, metrics, over_quic) for metrics in of_run] for of_run in each]
    table = Table(*run_headers(runs), "application", *(f">{header}" for header in rows[0][0]))
    for run, cells_of_run in zip(runs, rows, strict=True):
        for index, (name, cells) in enumerate(zip(names, cells_of_run, strict=True)):
            table.row(*run_labels(run, shown=index == 0), name, *cells.values())
    table.print()


def _cells(kind: Kind, metrics: dict[str, Any], over_quic: bool) -> dict[str, str]:
    """Return the cells of an application by their headers, with the count of QUIC if any uses it."""
    counts = ("timeouts", "declared_lost", "lost_packets") if over_quic else ("timeouts", "lost_packets")
    losses = {
        name.replace("_", " "): "-" if metrics[name] is None else f"{metrics[name]:,}" for name in counts
    }
    return {**_CELLS[kind](metrics), **losses}


def _message_cells(metrics: dict[str, Any]) -> dict[str, str]:
    return {
        "requests": f"{metrics['requests']:,}",
        "responses": f"{metrics['responses']:,}",
        "mean response (s)": fixed(metrics["mean_response_time_s"], 3),
        "median (s)": fixed(metrics["p50_response_time_s"], 3),
        "95 % (s)": fixed(metrics["p95_response_time_s"], 3),
        "longest (s)": fixed(metrics["greatest_response_time_s"], 3),
    }


def _page_cells(metrics: dict[str, Any]) -> dict[str, str]:
    return {
        "pages": f"{metrics['pages']:,}",
        "mean page time (s)": fixed(metrics["mean_page_time_s"], 2),
        "median (s)": fixed(metrics["p50_page_time_s"], 2),
        "95 % (s)": fixed(metrics["p95_page_time_s"], 2),
        "longest (s)": fixed(metrics["greatest_page_time_s"], 2),
    }


def _video_cells(metrics: dict[str, Any]) -> dict[str, str]:
    bitrate = metrics["mean_bitrate_bps"]
    return {
        "played (s)": fixed(metrics["played_s"]),
        "startup (s)": fixed(metrics["startup_delay_s"], 2),
        "stalls": f"{metrics['stalls']:,}",
        "stalled (s)": fixed(metrics["stalled_s"]),
        "mean bitrate (kbps)": fixed(bitrate and bitrate / 1e3, 0),
        "switches": f"{metrics['bitrate_switches']:,}",
    }


_CELLS: dict[Kind, Callable[[dict[str, Any]], dict[str, str]]] = {
    Kind.PAGES: _page_cells,
    Kind.VIDEO: _video_cells,
    Kind.MESSAGES: _message_cells,
}
"""The columns of each kind, in the order of the tables."""
