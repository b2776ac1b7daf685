"""Wi-Fi beside ns-3: our cells in the scenes of its tables, row by row.

``python scripts/wifi_tables.py DIRECTORY`` reads the tables of a directory, such as `tests/ns3-wifi`, and
simulates each row. It prints tables in Markdown: the row, ns-3's value, ours, and the difference in percent.
``--only A C`` selects tables, ``--runs`` the runs per row, whose mean is taken, and ``--json FILE`` keeps the
numbers.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from lasthop import Scenario

STANDARDS = {"HT20": "802.11n", "VHT80": "802.11ac", "HE80": "802.11ax"}

QUEUED = {"HT20": 160, "VHT80": 160, "HE80": 600}
"""Packets that a saturated flow keeps in its sender's queue."""

HEADERS = 28

DATAGRAM = 1470 + HEADERS

FASTEST_BPS = {"HT20": 60e6, "VHT80": 640e6, "HE80": 560e6}

Row = dict[str, str]
Scene = dict[str, Any]
Values = dict[str, float]


@dataclass(frozen=True)
class Table:
    """A table of ns-3: the columns that identify a row, and the scene and the compared values of one."""

    file: str
    title: str
    keys: tuple[str, ...]
    scene: Callable[[Row], Scene]
    ours: Callable[[Any, Row], Values]


def wifi(row: Row, mcs: str, streams: str = "1", **others: Any) -> Scene:
    """Return the `[wifi]` table of ns-3's configuration."""
    return {
        "standard": STANDARDS[row["phy"]],
        "streams": int(streams),
        "rate": {"fixed": {"mcs": int(mcs), "streams": int(streams)}},
        "retry_limit": "unlimited",
        "scheduler": "round-robin",
        "queue": f"{QUEUED[row['phy']]} packets",
        "station_queue": f"{QUEUED[row['phy']]} packets",
        **others,
    }


def ampdu(limit: str) -> Scene:
    """Return the key for the longest A-MPDU."""
    return {} if limit == "max" else {"ampdu": f"{limit} B"}


def scene(row: Row, stations: int, cell: Scene, *, delay_ms: float = 0, **others: Any) -> Scene:
    """Return a scenario with a cell behind a fast wire."""
    warmup_s, seconds = float(row["warmup_s"]), float(row["seconds"])
    return {
        "topology": {"cell": {"stations": stations}},
        "limit": f"{warmup_s + seconds} s",
        "warmup": f"{warmup_s} s",
        "wired": {"rate": "10 Gbps", "delay": f"{delay_ms} ms"},
        "wifi": cell,
        **others,
    }


def flow(source: str, sink: str, size: int, law: Scene, **others: Any) -> Scene:
    """Return a source of datagrams."""
    return {"from": source, "to": sink, "packet_size": f"{size} B", "law": law, **others}


def saturated(row: Row, station: int, up: bool, payload: int = 1470, excess: float = 1.3) -> Scene:
    """Return a flow whose queue is full, and is filled up in a part of the time between two aggregates."""
    ends = (f"MH{station}", "server") if up else ("server", f"MH{station}")
    # Flows with constant gaps would stay in step, and one of them would always find room in a shared queue.
    law = {"poisson": {"rate": f"{excess * FASTEST_BPS[row['phy']]:.0f} bps"}}
    return flow(*ends, payload + HEADERS, law)


def goodput_mbps(run: Any, name: str, size: int = DATAGRAM) -> float:
    """Return the payload that a source delivers."""
    return float(run.traffic[name]["throughput_bps"]) * (size - HEADERS) / size / 1e6


def single_station(row: Row) -> Scene:
    """Table A: one station, saturated."""
    cell = wifi(row, row["mcs"], row["nss"], **ampdu(row["ampdu_limit_bytes"]))
    return scene(row, 1, cell, traffic={"1": saturated(row, 1, up=False, payload=int(row["payload"]))})


def saturation(row: Row) -> Scene:
    """Table B: several stations, all down or all up."""
    stations, up = int(row["stations"]), row["dir"] == "up"
    cell = wifi(
        row,
        row["mcs"],
        **ampdu(row["ampdu_limit_bytes"]),
        eifs=row["preamble_detection"] == "0",
        requests_block_ack=row["explicit_bar"] == "1",
    )
    traffic = {str(number): saturated(row, number, up) for number in range(1, stations + 1)}
    return scene(row, stations, cell, traffic=traffic)


def losses(row: Row) -> Scene:
    """Table C, datagrams: each MPDU down is lost with one probability."""
    limit = int(row["limit"]) or "unlimited"
    cell = wifi(row, row["mcs"], loss={"down": float(row["per"])}, retry_limit=limit)
    if row["load"] == "saturated":
        traffic = saturated(row, 1, up=False, excess=5)
    else:
        rate = float(row["load"]) * 1e6 * DATAGRAM / 1470
        traffic = flow("server", "MH1", DATAGRAM, {"poisson": {"rate": f"{rate:.0f} bps"}})
        cell["queue"] = "10000 packets"
    return scene(row, 1, cell, traffic={"1": traffic})


SENDERS = {"TcpCubic": "linux", "TcpLinuxReno": "linux-reno"}


def tcp(row: Row, stations: int, cell: Scene, downloads: int, sender: str, **others: Any) -> Scene:
    """Return a scenario with TCP downloads to the first stations."""
    connections = {
        f"d{number}": {"from": "server", "to": f"MH{number}"} for number in range(1, downloads + 1)
    }
    return scene(
        row,
        stations,
        {**cell, "scheduler": "fifo"},
        transfer={"size": "unlimited", "start": "1.5 s", "spread": "20 ms"},
        connection=connections,
        sender=sender,
        tcp={"timestamps": False, "window": "8 MB", "window_autotuning": False},
        **others,
    )


def tcp_losses(row: Row) -> Scene:
    """Table C, TCP: one download over the same losses."""
    queue = dict.fromkeys(("queue", "station_queue"), f"{row['queue']} packets")
    limit = int(row["limit"]) or "unlimited"
    cell = wifi(row, row["mcs"], loss={"down": float(row["per"])}, retry_limit=limit, **queue)
    return tcp(row, 1, cell, 1, SENDERS[row["tcp"]], delay_ms=float(row["delay"]))


def tcp_queues(row: Row) -> Scene:
    """Table D: one TCP download beside competitors."""
    competitors, kind = int(row["competitors"]), row["competitor_traffic"]
    queue = dict.fromkeys(("queue", "station_queue"), f"{row['queue_packets']} packets")
    cell = wifi(row, row["mcs"], loss={"down": float(row["per"])}, **queue)
    downloads = 1 + competitors * (kind == "down-tcp")
    uploads = range(2, 2 + competitors * (kind == "up-udp"))
    traffic = {f"u{number}": saturated(row, number, up=True) for number in uploads}
    return tcp(
        row, 1 + competitors, cell, downloads, "linux", delay_ms=float(row["delay_ms"]), traffic=traffic
    )


def anomaly(row: Row) -> Scene:
    """Table E: a slow and a fast station."""
    up = row["dir"] == "up"
    slow, fast = row["mcs"].split("+")
    cell = wifi(row, fast, scheduler="fifo", **ampdu(row["ampdu_limit_bytes"]))
    cell["queue"] = f"{2 * QUEUED[row['phy']]} packets"
    station = {"rate": {"fixed": {"mcs": int(slow), "streams": 1}}}
    traffic = {str(number): saturated(row, number, up) for number in (1, 2)}
    return scene(row, 2, cell, traffic=traffic, link={"ap-MH1": {"station": station}})


def voice(row: Row) -> Scene:
    """Table F: voice down beside best effort down, and up."""
    ups = int(row["be_uplink_stations"])
    code_point = {"BE": {}, "VI": {"dscp": 34}, "VO": {"dscp": 46}}[row["voice_ac"]]
    call = flow("server", "MH1", 200, {"constant": {"rate": "80 kbps"}}, start="503 ms", **code_point)
    traffic = {"voice": call}
    for number in (1, 2):
        traffic[f"down{number}"] = saturated(row, number, up=False)
    for number in range(3, 3 + ups):
        traffic[f"up{number}"] = saturated(row, number, up=True)
    cell = wifi(row, row["mcs"], **ampdu(row["be_ampdu_limit_bytes"]))
    return scene(row, 2 + ups, cell, traffic=traffic)


def minstrel(row: Row) -> Scene:
    """Table G: Minstrel-HT at a fixed signal-to-noise ratio."""
    cell = wifi(row, "0", rate="minstrel-ht-ewma", snr=f"{row['snr_db']} dB", eifs=True)
    return scene(row, 1, cell, traffic={"1": saturated(row, 1, up=False)})


def downloads(run: Any, row: Row) -> Values:
    """Return the goodput of all flows together."""
    size = int(row.get("payload", 1470)) + HEADERS
    total = sum(goodput_mbps(run, name, size) for name in run.traffic)
    return {"goodput_mbps": total}


def with_collisions(run: Any, row: Row) -> Values:
    """Return the goodput, and the share of attempts that collided."""
    return {**downloads(run, row), "p_collision": run.metrics["link_failures"] / run.metrics["link_attempts"]}


def with_delays(run: Any, row: Row) -> Values:
    """Return the goodput and the delays from the queue to the receiver."""
    delays = {
        f"sojourn_ms_p{quantile}": 1e3 * run.traffic["1"][f"p{quantile}_delay_s"] for quantile in (50, 95, 99)
    }
    share = run.metrics["link_failures"] / run.metrics["link_attempts"]
    return {**downloads(run, row), "mpdu_retry_share": share, **delays}


def of_tcp(run: Any, row: Row) -> Values:
    """Return the goodput of the first connection, and of the competitors."""
    first, *others = run.connections.values()
    mbps = [connection["throughput_bps"] / 1e6 for connection in (first, *others)]
    values = {"goodput_mbps": mbps[0]}
    if "competitors_mbps" in row:
        values["all_mbps"] = sum(mbps) + sum(goodput_mbps(run, name) for name in run.traffic)
    return values


def of_two(run: Any, row: Row) -> Values:
    """Return the goodput of both stations."""
    return {"first_mbps": goodput_mbps(run, "1"), "second_mbps": goodput_mbps(run, "2")}


def of_voice(run: Any, row: Row) -> Values:
    """Return the delays of the call, and the goodput of the rest."""
    call = run.traffic["voice"]
    delays = {f"voice_ms_p{quantile}": 1e3 * call[f"p{quantile}_delay_s"] for quantile in (50, 95, 99)}
    down, up = (
        sum(goodput_mbps(run, name) for name in run.traffic if name.startswith(way)) for way in ("down", "up")
    )
    return {**delays, "be_down_mbps": down, "be_up_mbps": up}


TABLES = (
    Table(
        "A_single_station",
        "one station",
        ("phy", "nss", "mcs", "ampdu_limit_bytes"),
        single_station,
        downloads,
    ),
    Table(
        "B_saturation",
        "saturation",
        (
            "phy",
            "mcs",
            "dir",
            "stations",
            "preamble_detection",
            "explicit_bar",
            "ampdu_limit_bytes",
        ),
        saturation,
        with_collisions,
    ),
    Table(
        "C_udp_losses",
        "losses of MPDUs, datagrams",
        ("phy", "mcs", "per", "load", "limit"),
        losses,
        with_delays,
    ),
    Table(
        "C_tcp_losses",
        "losses of MPDUs, TCP",
        ("phy", "per", "tcp", "queue", "limit"),
        tcp_losses,
        of_tcp,
    ),
    Table(
        "D_tcp_queues",
        "TCP, queues and competitors",
        (
            "phy",
            "queue_packets",
            "competitors",
            "competitor_traffic",
            "delay_ms",
            "per",
            "seconds",
        ),
        tcp_queues,
        of_tcp,
    ),
    Table(
        "E_anomaly",
        "a slow and a fast station",
        ("phy", "mcs", "dir", "ampdu_limit_bytes"),
        anomaly,
        of_two,
    ),
    Table(
        "F_voice",
        "voice beside downloads",
        ("voice_ac", "be_ampdu_limit_bytes", "be_uplink_stations"),
        voice,
        of_voice,
    ),
    Table("G_minstrel", "Minstrel-HT", ("phy", "snr_db"), minstrel, downloads),
)


def toml(value: object) -> str:
    """Return a value in TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {toml(item)}' for key, item in value.items()) + " }"
    return json.dumps(value)


def scenario(table: Table, row: Row) -> Scenario:
    """Return the scenario of a row."""
    lines = [f"{key} = {toml(value)}" for key, value in table.scene(row).items()]
    return Scenario.parse("\n".join(lines), name=table.file)


def compared(table: Table, row: Row, runs: int) -> Values:
    """Return our values of a row: means over runs."""
    parsed = scenario(table, row)
    of_runs = [table.ours(parsed.run(run=number), row) for number in range(runs)]
    return {key: fmean(values[key] for values in of_runs) for key in of_runs[0]}


def rows_of(directory: Path, table: Table) -> Iterator[Row]:
    """Yield the rows of a table, if there is one."""
    path = directory / f"{table.file}.csv"
    if path.exists():
        with path.open() as file:
            yield from csv.DictReader(file)


def value_of(row: Row, key: str) -> float:
    """Return ns-3's value of a row."""
    if key == "all_mbps":
        return float(row["goodput_mbps"]) + float(row["competitors_mbps"])
    return float(row[key])


def difference(theirs: float, ours: float) -> str:
    """Return the difference in percent."""
    return f"{100 * (ours / theirs - 1):+.1f}" if theirs else ("0" if ours == 0 else "")


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="TABLE")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = []
    for table in TABLES:
        chosen = not options.only or any(table.file.startswith(name) for name in options.only)
        rows = list(rows_of(options.directory, table)) if chosen else []
        if not rows:
            continue
        print(f"\n### {table.file}: {table.title}\n")
        for number, row in enumerate(rows):
            ours = compared(table, row, options.runs)
            if number == 0:
                columns = [*table.keys, *(f"{key}: ns-3, ours, %" for key in ours)]
                print("| " + " | ".join(columns) + " |")
                print("|" + "---|" * len(columns))
            theirs = {key: value_of(row, key) for key in ours}
            cells = [row[key] for key in table.keys]
            cells += [
                f"{theirs[key]:.4g}, {ours[key]:.4g}, {difference(theirs[key], ours[key])}" for key in ours
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
            kept.append(
                {
                    "table": table.file,
                    "row": {key: row[key] for key in table.keys},
                    "ns3": theirs,
                    "ours": ours,
                }
            )
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
