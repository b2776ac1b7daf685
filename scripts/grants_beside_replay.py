"""Grants beside the replay of a recorded rate: how wrong the delays of light uses are.

``python scripts/grants_beside_replay.py`` takes a cellular link with grants for true, and records it as a
saturating sender sees it. Then it runs probes, requests and an upload over the link; over the plain replay of
the recording, with half of the least round-trip time each way, as Mahimahi has it; and over the recorded rate
with grants. It prints tables in Markdown: the mean time of each, and how much it differs from the true one.
``--runs`` is the number of links of each kind, ``--seconds`` the length of the recordings.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import lasthop
from lasthop import Scenario

BIN_S = 0.1
"""The recorded rate is that of bins of this length."""

OPPORTUNITY_BITS = 1504 * 8

Tables = dict[str, Any]


@dataclass(frozen=True)
class Use:
    """A use of a link by requests of the mobile host: their sizes, and the pause before each."""

    name: str
    application: Tables


USES = (
    Use("probe, 64 B and 64 B", {"request": {"constant": "64 B"}, "response": {"constant": "64 B"}}),
    Use("request, 500 B and 10 kB", {"request": {"constant": "500 B"}, "response": {"constant": "10 kB"}}),
    Use("request, 500 B and 200 kB", {"request": {"constant": "500 B"}, "response": {"constant": "200 kB"}}),
    Use("upload, 50 kB and 100 B", {"request": {"constant": "50 kB"}, "response": {"constant": "100 B"}}),
)


def scenario(radio: Tables, seconds: float, use: Use | None = None) -> Scenario:
    """Return the scenario of a radio without another use, or with one."""
    sizes = (use or USES[0]).application
    user = {"from": "mobile", "to": "fixed", "think": {"exponential": "0.7 s"}, **sizes}
    tables = {"wired": {"rate": 1e9}, "radio": radio, "application": {"user": user}}
    return Scenario.from_tables(
        {"limit": seconds, "sender": "linux", "schemes": ["basic"], **tables}, name="link"
    )


def times(radio: Tables, seconds: float, use: Use, seed: int) -> np.ndarray:
    """Return the times of the requests of a use."""
    found = scenario(radio, seconds, use).run(None, seed=seed).response_times("user")["time_s"]
    return found[np.isfinite(found)]


def links(radio: Tables, seconds: float, seed: int, folder: Path) -> Iterator[tuple[str, Tables]]:
    """Yield the true link, its plain replay, and its recorded rate with grants."""
    yield "true", radio
    true = scenario(radio, seconds)
    least_s = float(times(radio, seconds, USES[0], seed).min())
    replay: Tables = {"delay": least_s / 2, "queue": radio["queue"], "uplink": {}}
    granted: Tables = {key: radio[key] for key in ("delay", "queue", "grants")}
    granted["uplink"] = {"delay": radio["uplink"]["delay"]}
    users = 1 + radio["grants"].get("neighbours", 0)
    for way, tables in (("down", [replay, granted]), ("up", [replay["uplink"], granted["uplink"]])):
        recorded = true.mahimahi(seconds, up=way == "up", seed=seed)
        trace = folder / f"{seed}.{way}"
        trace.write_text("\n".join(map(str, recorded)))
        counts, _ = np.histogram(np.array(recorded) / 1e3, np.arange(0, seconds + BIN_S, BIN_S))
        rows = "".join(
            f"{index * BIN_S:.1f},{count * OPPORTUNITY_BITS / BIN_S * users:.0f}\n"
            for index, count in enumerate(counts)
        )
        series = folder / f"{seed}.{way}.csv"
        series.write_text(f"time_s,rate_bps\n{rows}")
        tables[0]["rate"] = {"mahimahi": {"file": str(trace)}}
        tables[1]["rate"] = {"series": {"file": str(series)}}
    yield "replay", replay
    yield "grants", granted


def compared(preset: str, runs: int, seconds: float) -> dict[str, dict[str, float]]:
    """Return the mean time of each use over each kind of link with the keys of a preset."""
    (link,) = (link for link in lasthop.links() if link.name == preset)
    radio = tomllib.loads(link.toml)
    found: dict[str, dict[str, list[float]]] = {use.name: {} for use in USES}
    with tempfile.TemporaryDirectory() as name:
        for seed in range(1, runs + 1):
            for kind, tables in links(radio, seconds, seed, Path(name)):
                for use in USES:
                    mean_s = float(times(tables, seconds, use, seed).mean())
                    found[use.name].setdefault(kind, []).append(mean_s)
    return {use: {kind: fmean(values) for kind, values in kinds.items()} for use, kinds in found.items()}


def table(preset: str, found: dict[str, dict[str, float]]) -> str:
    """Return a table in Markdown."""
    lines = [f"### {preset}", "", "| use | true, ms | replay, ms | off | grants, ms | off |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for use, kinds in found.items():
        true = kinds["true"]
        cells = " | ".join(
            f"{1e3 * kinds[kind]:.1f} | {100 * (kinds[kind] / true - 1):+.1f} %"
            for kind in ("replay", "grants")
        )
        lines.append(f"| {use} | {1e3 * true:.1f} | {cells} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the tables."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("presets", nargs="*", default=["lte", "lte-busy", "5g", "5g-busy"])
    options = parser.parse_args(arguments)
    for preset in options.presets:
        print(table(preset, compared(preset, options.runs, options.seconds)), end="\n\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
