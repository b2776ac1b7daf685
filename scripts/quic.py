"""Write the tables of docs/guide/quic.md and its report: QUIC and TCP on one last hop.

`python scripts/quic.py [--runs N]` runs each sender on the worked scenario `last-mile` at several losses,
with remedies, and beside TCP, which takes some minutes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from lasthop import Scenario, load
from lasthop.core.statistics import paired_difference
from lasthop.papers import splitting
from lasthop.papers.splitting.network import Segment, bottleneck, links
from lasthop.papers.splitting.network import size as bytes_of
from lasthop.race import Arm, Race

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS / "guide" / "quic.md", DOCS / "reports" / "2026-11-quic.md")

SENDERS = ("quinn-cubic", "quinn-linux-cubic", "linux", "quinn-bbr", "quinn-linux-bbr", "linux-bbr")
# Controls that the guide leaves to the report.
CONTROLS = ("quinn-newreno", "quinn-linux-reno", "linux-reno", "quinn-linux-bbr3", "linux-bbr3")
LOSSES = ("0", "0.1 %", "1 %", "3 %")
DIFFERENCES = (
    ("quinn-linux-cubic", "linux"),
    ("quinn-linux-reno", "linux-reno"),
    ("quinn-linux-bbr", "linux-bbr"),
    ("quinn-cubic", "quinn-linux-cubic"),
    ("quinn-newreno", "quinn-linux-reno"),
)
REMEDIES = ("basic", "snoop", "eln", "i-tcp", "arq", "packet-fec", "snoop + arq", "sidekick")
THRESHOLDS = (3, 4, 5, 6, 10)
# Where quACKs have a harder way back than in `last-mile`: what the last hop has instead.
WAYS_BACK: dict[str, dict[str, object]] = {
    "`last-mile`: 1 Gb/s, no loss, a round trip of 2 ms": {},
    "uplink of 200 kb/s": {"radio.uplink.rate": "200 kbps"},
    "uplink that loses 10 %": {"radio.uplink.channel": {"frame-loss": {"loss": 0.1}}},
    "200 kb/s that lose 10 %": {
        "radio.uplink.rate": "200 kbps",
        "radio.uplink.channel": {"frame-loss": {"loss": 0.1}},
    },
    "a round trip of 58 ms on the link": {"radio.delay": "29 ms", "wired.delay": "1 ms"},
}
CELL = """
limit = "60 s"
sender = "linux"
[topology.cell]
stations = 1
[transfer]
size = "unlimited"
[wired]
rate = "1 Gbps"
delay = "29 ms"
[cell]
queue = "50 packets"
[cell.phy.dsss]
data_rate = "11 Mbps"
[link.ap-MH1]
drop.down = 0.01
[scheme.sidekick]
expedite = false
"""
# The paths of the authors of PEMI and of Sidekick, which tests have, too.
PATHS = Path(__file__).parents[1] / "crates" / "experiment" / "tests" / "experiment" / "quic"
DIVISIONS = (
    ("quinn-cubic", "basic"),
    ("quinn-cubic", "sidekick"),
    ("quinn-pacubic", "basic"),
    ("quinn-pacubic", "sidekick"),
    ("linux", "basic"),
    ("linux", "i-tcp"),
)
SIZES = ("1 MB", "4 MB", "10 MB")
# Of figures 6, 4b and 4a of NSDI 2024.
UPLOAD_LOSSES = (0, 1, 2, 3, 4, 5)
INTERVALS = ((30, 10), (60, 20), (120, 20))
MEDIA = (None, (2, 8), (4, 16), (8, 20))
# Senders that take a reduction back, or do not, for losses that were none.
LIBRARIES = ("quinn-cubic", "noq-cubic", "noq-newreno")
LATE = {"wired.delay": {"netem": {"delay": "29 ms", "jitter": "2 ms"}}}
# Of PEMI's report on quinn: transfers at two losses, and 20 s of frames.
PEMI_SIZES = ("100 KB", "1 MB", "5 MB", "20 MB")
FRAMES = 600
FRAME_TIME = 0.033
RARE = ((2, "25 ms"), (1000, "25 ms"), (1000, "50 ms"), (1000, "200 ms"))
ACKNOWLEDGEMENTS = ((1, "25 ms"), (2, "25 ms"), (10, "25 ms"), (1000, "25 ms"), (1000, "60 ms"))
PAIRS = (
    ("linux", "quinn-cubic"),
    ("linux", "quinn-newreno"),
    ("linux", "quinn-linux-cubic"),
    ("linux", "quinn-bbr"),
    ("linux", "quinn-linux-bbr"),
    ("linux-bbr", "quinn-cubic"),
    ("linux-bbr", "quinn-bbr"),
    ("linux-bbr", "quinn-linux-bbr"),
)
PAGE = {"user": {"kind": "page", "from": "mobile", "to": "fixed", "requests": 1, "think": {"constant": 0}}}
SHELL = {"user": {"kind": "ssh", "from": "mobile", "to": "fixed"}}
# Rows of the table of applications: a sender, the version of HTTP of its pages, and the size of the handshake
# where it is not the usual one.
EXCHANGES = (
    ("linux", "1.1", ""),
    ("linux", "2", ""),
    ("quinn-cubic", "3", ""),
    ("quinn-cubic", "3", "5 KB"),
    ("linux-bbr", "2", ""),
    ("quinn-bbr", "3", ""),
    ("quinn-bbr", "3", "5 KB"),
)
# Controls of the paper on splits, over TCP and over QUIC, in the setting of its figure 6.
SPLITTING = (
    *("linux-bbr3", "quinn-linux-bbr3", "linux-bbr", "quinn-linux-bbr", "quinn-bbr"),
    *("linux", "quinn-cubic"),
)
WHOLE, PARTS = Segment(20, 4, 40), (Segment(20, 0, 40), Segment(1, 4, 50))
RUNS = 8
METRIC = "throughput_bps"


def last_mile(loss: str) -> Scenario:
    """Return the worked scenario with this loss of frames."""
    share = float(loss.split()[0]) / 100
    channel = {"frame-loss": {"loss": share}} if share else "perfect"
    return load("last-mile").with_({"radio.channel": channel})


def row(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def means(
    scenario: Scenario, arms: Sequence[Arm], metrics: Sequence[str], runs: int
) -> list[list[tuple[float, float]]]:
    """Return, for each arm, the mean of each metric in Mb/s, with the half-width of its 95 % interval."""
    # No arm stops early: with the least error, and no width that is narrow enough.
    race = Race(
        scenario,
        arms,
        baseline=arms[0],
        metric=metrics[0],
        metrics=metrics,
        runs=(runs, runs),
        precision=None,
    )
    race.run()
    found = [{each.arm: each.mean for each in race.ranking(metric)} for metric in metrics]
    return [
        [(each[arm].value / 1e6, (each[arm].high - each[arm].low) / 2e6) for each in found] for arm in arms
    ]


def goodput(senders: Sequence[str] = SENDERS, losses: Sequence[str] = LOSSES, runs: int = RUNS) -> list[str]:
    """Return a row for each sender: its goodput at each loss."""
    arms = [Arm(sender, "basic") for sender in senders]
    columns = [means(last_mile(loss), arms, [METRIC], runs) for loss in losses]
    rows = []
    for sender, cells in zip(senders, zip(*columns, strict=True), strict=True):
        rows.append(row([f"`{sender}`", *(f"{mean:.2f} ± {half:.2f}" for ((mean, half),) in cells)]))
    return rows


def controls(runs: int = RUNS) -> list[str]:
    """Return the rows of further senders, and of the closed form of Reno over both transports."""
    rows = goodput(CONTROLS, runs=runs)
    for transport, payload in (("QUIC", 1430), ("TCP", 1448)):
        cells = [f"{reno(float(loss.split()[0]) / 100, payload):.2f}" for loss in LOSSES[1:]]
        rows.append(row([f"Reno over {transport}, closed form", "", *cells]))
    return rows


def reno(loss: float, payload: int) -> float:
    """Return the goodput of Reno in Mb/s over a round trip of 61.2 ms if each packet of `1 / loss` is lost.

    In a cycle the window grows from half to all of W packets in W / 2 round trips, after a recovery of one:
    3/8 W² + W/2 packets.
    """
    most = (math.sqrt(0.25 + 1.5 / loss) - 0.5) / 0.75
    return 8e-6 * payload / loss / ((most / 2 + 1) * 0.0612)


def implementations(runs: int = RUNS) -> list[str]:
    """Return a row for each control: by how much one implementation, or one transport, is above another."""
    rows = []
    for one, other in DIFFERENCES:
        cells = []
        for loss in LOSSES[1:]:
            scenario = last_mile(loss)
            rates = [
                [
                    scenario.with_({"sender": sender}).run("basic", run=run).metrics[METRIC]
                    for run in range(runs)
                ]
                for sender in (one, other)
            ]
            ratio = paired_difference(rates[0], rates[1]).ratio
            assert ratio is not None
            cells.append(f"{100 * ratio.mean - 100:+.1f} ± {50 * (ratio.high - ratio.low):.1f} %")
        rows.append(row([f"`{one}` against `{other}`", *cells]))
    return rows


def remedies(loss: str = "1 %", runs: int = RUNS) -> list[str]:
    """Return a row for each of a QUIC and a TCP sender: its goodput with each remedy."""
    rows = []
    for sender in ("quinn-cubic", "linux"):
        arms = [Arm(sender, remedy) for remedy in REMEDIES]
        cells = means(last_mile(loss), arms, [METRIC], runs)
        rows.append(row([f"`{sender}`", *(f"{mean:.2f}" for ((mean, _),) in cells)]))
    return rows


def thresholds(loss: str = "1 %", runs: int = RUNS) -> list[str]:
    """Return a row without and one with `sidekick`: the goodput of QUIC at each packet threshold."""
    arms = [Arm("quinn-cubic", scheme) for scheme in ("basic", "sidekick")]
    scenarios = [last_mile(loss).with_({"quic.packet_threshold": number}) for number in THRESHOLDS]
    columns = [means(scenario, arms, [METRIC], runs) for scenario in scenarios]
    return [
        row([f"`{arm.scheme}`", *(f"{mean:.2f} ± {half:.2f}" for ((mean, half),) in cells)])
        for arm, cells in zip(arms, zip(*columns, strict=True), strict=True)
    ]


def ways_back(loss: str = "1 %", runs: int = RUNS) -> list[str]:
    """Return a row for each last hop: the goodput of TCP without and with `sidekick`."""
    arms = [Arm("linux", scheme) for scheme in ("basic", "sidekick")]
    hops = {name: last_mile(loss).with_(settings) for name, settings in WAYS_BACK.items()}
    hops["802.11b, 11 Mb/s, shared by both directions"] = Scenario.parse(CELL, "cell.toml")
    rows = []
    for name, hop in hops.items():
        cells = means(hop, arms, [METRIC], runs)
        rows.append(row([name, *(f"{mean:.2f} ± {half:.2f}" for ((mean, half),) in cells)]))
    return rows


def divisions(runs: int = RUNS) -> list[str]:
    """Return a row for each sender and scheme on the authors' upload: its goodput at each size."""
    rows = []
    for sender, scheme in DIVISIONS:
        cells = []
        for size in SIZES:
            scenario = load(PATHS / "upload.toml").with_(
                {"sender": sender, "transfer.size": size, "scheme.sidekick.directions": "both"}
            )
            found = [scenario.with_({"schemes": [scheme]}).run(scheme, run=run) for run in range(runs)]
            rates = [each.metrics[METRIC] / 1e6 for each in found]
            cells.append(f"{statistics.median(rates):.2f}")
        rows.append(row([f"`{sender}`", f"`{scheme}`", *cells]))
    return rows


def upload(sender: str, scheme: str, runs: int, **settings: object) -> float:
    """Return the median goodput of the authors' upload of 10 MB in Mb/s."""
    usual = {"sender": sender, "transfer.size": "10 MB", "scheme.sidekick.directions": "both"}
    scenario = load(PATHS / "upload.toml").with_({**usual, "schemes": [scheme], **settings})
    rates = [float(scenario.run(scheme, run=run).metrics[METRIC]) for run in range(runs)]
    return statistics.median(rates) / 1e6


def upload_losses(runs: int = RUNS) -> list[str]:
    """Return a row for each sender and scheme on the authors' upload: its goodput at each loss."""
    rows = []
    for sender, scheme in DIVISIONS:
        channels = [{"frame-loss": {"loss": loss / 100}} for loss in UPLOAD_LOSSES]
        rates = [upload(sender, scheme, runs, **{"radio.channel": each}) for each in channels]
        rows.append(row([f"`{sender}`", f"`{scheme}`", *(f"{rate:.2f}" for rate in rates)]))
    return rows


def intervals(runs: int = RUNS) -> list[str]:
    """Return a row: the goodput of the authors' upload at each interval of quACKs."""
    rates = []
    for wait, threshold in INTERVALS:
        quacks = {"scheme.sidekick.wait": f"{wait} ms", "scheme.sidekick.threshold": threshold}
        rates.append(upload("quinn-pacubic", "sidekick", runs, **quacks))
    return [row(["here", *(f"{rate:.2f}" for rate in rates)])]


def quantiles(values: Sequence[float], *ranks: float) -> list[str]:
    """Return quantiles of times in milliseconds."""
    ordered = sorted(values)
    return [f"{1e3 * ordered[min(len(ordered) - 1, int(rank * len(ordered)))]:.1f}" for rank in ranks]


def media(runs: int = RUNS) -> list[str]:
    """Return a row for each interval of quACKs: how long messages of a call wait to be played in order."""
    message = {"constant": "240 B"}
    call = {
        "kind": "telemetry",
        "from": "mobile",
        "to": "fixed",
        "request": message,
        "response": {"constant": "1 B"},
        "think": {"constant": "20 ms"},
        "requests": 3000,
    }
    path = load(PATHS / "upload.toml").with_(
        {
            "transfer": None,
            "application": {"call": call},
            "sender": "quinn-cubic",
            "quic.one_stream": True,
            "radio.channel": "perfect",
            "radio.uplink.channel": {"frame-loss": {"loss": 0.036}},
            "scheme.sidekick.wait": "1 s",
        }
    )
    rows = []
    for quacks in MEDIA:
        scheme, settings, name = "basic", {}, "none"
        if quacks is not None:
            scheme, name = "sidekick", f"{quacks[0]} packets"
            settings = {"scheme.sidekick.every": quacks[0], "scheme.sidekick.threshold": quacks[1]}
        scenario = path.with_({"schemes": [scheme], **settings})
        waits: list[float] = []
        for run in range(runs):
            found = scenario.run(scheme, run=run).response_times("call")
            sent, times = list(found["since_s"]), list(found["time_s"])
            played = [since + time for since, time in zip(sent, times, strict=True)]
            # Who was played at once has not waited, nor has the one that was lost: others have waited for it.
            waits.append(0.0)
            for before, now, time in zip(played, played[1:], times[1:], strict=False):
                waits.append(time - min(times) if now - before < 1e-3 else 0.0)
        rows.append(row([name, *quantiles(waits, 0.95, 0.98, 0.99, 0.999)]))
    return rows


def pemi_path(loss: float) -> Scenario:
    """Return the path of PEMI's authors, with losses in both directions."""
    channel = {"frame-loss": {"loss": loss}} if loss else "perfect"
    return load(PATHS / "pemi.toml").with_({"radio.channel": channel, "radio.uplink.channel": channel})


def pemi_sizes(runs: int = RUNS) -> list[str]:
    """Return a row for each loss and scheme: the median goodput at each size."""
    rows = []
    for loss in (0, 0.01):
        for scheme in ("basic", "pemi"):
            cells = []
            for size in PEMI_SIZES:
                scenario = pemi_path(loss).with_({"transfer.size": size, "schemes": [scheme]})
                rates = [scenario.run(scheme, run=run).metrics[METRIC] / 1e6 for run in range(runs)]
                cells.append(f"{statistics.median(rates):.2f}")
            rows.append(row([f"{loss:.0%}", f"`{scheme}`", *cells]))
    return rows


def spurious(runs: int = RUNS) -> list[str]:
    """Return a row for each sender: its goodput where packets come late, and PEMI's gain at two sizes."""
    rows = []
    for sender in LIBRARIES:
        lossy, late = last_mile("1 %"), last_mile("0").with_(LATE)
        patient = late.with_({"quic.packet_threshold": 20})
        places = ((lossy, "basic"), (lossy, "sidekick"), (late, "basic"), (patient, "basic"))
        found = [means(scenario, [Arm(sender, scheme)], [METRIC], runs)[0][0] for scenario, scheme in places]
        cells = [f"{mean:.2f} ± {half:.2f}" for mean, half in found]
        for size in PEMI_SIZES[-2:]:
            path = pemi_path(0.01).with_({"sender": sender, "transfer.size": size})
            rates = [
                [
                    path.with_({"schemes": [scheme]}).run(scheme, run=run).metrics[METRIC]
                    for run in range(runs)
                ]
                for scheme in ("pemi", "basic")
            ]
            ratio = paired_difference(rates[0], rates[1]).ratio
            assert ratio is not None
            mean, low, high = (100 * each - 100 for each in (ratio.mean, ratio.low, ratio.high))
            cells.append(f"{mean:+.0f} % ({low:.0f} to {high:.0f})")
        rows.append(row([f"`{sender}`", *cells]))
    return rows


def frames(runs: int = RUNS) -> list[str]:
    """Return a row for each scheme: the delay of a video's frames, and their jitter as RFC 3550 has it."""
    video = {
        "kind": "telemetry",
        "from": "mobile",
        "to": "fixed",
        "request": {"constant": "1 B"},
        "response": {"constant": "12500 B"},
        "think": {"constant": f"{1000 * FRAME_TIME:g} ms"},
        "requests": FRAMES,
    }
    path = pemi_path(0.01).with_({"transfer": None, "application": {"video": video}})
    # Frames are asked for, on a way without losses, whose 26 ms are no delay of theirs.
    path = path.with_({"radio.uplink.channel": "perfect"})
    rows = []
    for scheme in ("basic", "pemi", "sidekick"):
        delays: list[float] = []
        jitters: list[float] = []
        for run in range(runs):
            found = path.with_({"schemes": [scheme]}).run(scheme, run=run).response_times("video")
            asked, times = list(found["since_s"]), list(found["time_s"])
            delays += [time - 0.026 for time in times]
            arrivals = [since + time for since, time in sorted(zip(asked, times, strict=True))]
            jitter = 0.0
            for earlier, later in itertools.pairwise(arrivals):
                jitter += (abs(later - earlier - FRAME_TIME) - jitter) / 16
                jitters.append(jitter)
        rows.append(row([f"`{scheme}`", *quantiles(delays, 0.5, 0.9), *quantiles(jitters, 0.5, 0.9)]))
    return rows


def rare(runs: int = RUNS) -> list[str]:
    """Return a row for each frequency of acknowledgements: goodput without and with quACKs for the window."""
    path = load(PATHS / "upload.toml").with_(
        {
            "transfer": {"size": "10 MB"},
            "sender": "quinn-cubic",
            "radio.channel": "perfect",
            "scheme.sidekick.directions": "both",
            "scheme.sidekick.moves_window": True,
            "scheme.sidekick.wait": "15 ms",
            "scheme.sidekick.threshold": 20,
        }
    )
    rows = []
    for every, delay in RARE:
        scenario = path.with_({"quic.ack_every": every, "quic.ack_delay": delay})
        cells = []
        for scheme in ("basic", "sidekick"):
            found = [
                scenario.with_({"schemes": [scheme]}).run(scheme, run=run).metrics for run in range(runs)
            ]
            rate, packets, acks = (
                sum(run[name] for run in found) for name in (METRIC, "segments_sent", "acks_sent")
            )
            cells.append(f"{rate / runs / 1e6:.2f} ({packets / acks:.0f})")
        rows.append(row([f"{every}, {delay}", *cells]))
    return rows


def acknowledgements(runs: int = RUNS) -> list[str]:
    """Return a row for each frequency of acknowledgements: goodput, and packets for each acknowledgement."""
    cell = Scenario.parse(CELL, "cell.toml").with_({"link.ap-MH1.drop.down": 0})
    rows = []
    for every, delay in ACKNOWLEDGEMENTS:
        cells = []
        for hop in (last_mile("0"), last_mile("1 %"), cell):
            setting = {"sender": "quinn-cubic", "quic.ack_every": every, "quic.ack_delay": delay}
            found = [hop.with_(setting).run("basic", run=run).metrics for run in range(runs)]
            rate, packets, acks = (
                sum(each[name] for each in found) for name in (METRIC, "segments_sent", "acks_sent")
            )
            cells.append(f"{rate / runs / 1e6:.2f} ({packets / acks:.0f})")
        rows.append(row([f"{every}, {delay}", *cells]))
    return rows


def observers(runs: int = RUNS) -> list[str]:
    """Return a row for each scheme that repairs unread: goodput, and repairs for each loss."""
    one = {"quic.ack_every": 1}
    settings: tuple[dict[str, int], ...] = ({}, one, {**one, "quic.packet_threshold": 20})
    rows = []
    for scheme in ("basic", "pemi", "sidekick"):
        cells = []
        for setting in settings:
            scenario = load(PATHS / "pemi.toml").with_({"schemes": [scheme], **setting})
            found = [scenario.run(scheme, run=run) for run in range(runs)]
            repairs = sum(agent.get("repairs", 0) for each in found for agent in each.counters.values())
            losses = sum(each.metrics["lost_on_air"] for each in found)
            rate = sum(each.metrics[METRIC] for each in found) / runs
            cells.append(f"{rate / 1e6:.2f} ({repairs / losses:.1f})")
        rows.append(row([f"`{scheme}`", *cells]))
    return rows


def beside(losses: Sequence[str] = ("0", "1 %"), runs: int = RUNS) -> list[str]:
    """Return a row for each pair of a TCP and a QUIC sender: the goodput of both at each loss."""
    rows = []
    for tcp, quic in PAIRS:
        cells = []
        for loss in losses:
            pair = {"connection": {"tcp": {"sender": tcp}, "quic": {"sender": quic}}}
            scenario = last_mile(loss).with_(pair)
            metrics = [f"connection.{name}.throughput_bps" for name in pair["connection"]]
            (shares,) = means(scenario, [Arm(None, "basic")], metrics, runs)
            cells.append(", ".join(f"{share:.2f}" for share, _ in shares))
        rows.append(row([f"`{tcp}`, `{quic}`", *cells]))
    return rows


def queues(runs: int = RUNS) -> list[str]:
    """Return a row for each pair of senders: the goodput of both at each length of the queue."""
    worked = load(DOCS.parent / "scenarios" / "tcp-beside-quic.toml")
    rows = []
    for tcp, quic in itertools.product(("linux", "linux-bbr"), ("quinn-cubic", "quinn-bbr")):
        cells = []
        for queue in worked.sweep["radio.queue"]:
            senders = {"connection.tcp.sender": tcp, "connection.quic.sender": quic}
            scenario = worked.with_({"sweep": None, "radio.queue": queue, **senders})
            metrics = [f"connection.{name}.throughput_bps" for name in ("tcp", "quic")]
            (shares,) = means(scenario, [Arm(None, "basic")], metrics, runs)
            cells.append(", ".join(f"{share:.2f}" for share, _ in shares))
        rows.append(row([f"`{tcp}`, `{quic}`", *cells]))
    return rows


def applications(losses: Sequence[str] = ("0", "1 %", "3 %"), runs: int = RUNS) -> list[str]:
    """Return a row for each exchange: the time of a page, and the 95 % quantile of echoes, at each loss."""
    rows = []
    for sender, http, certificates in EXCHANGES:
        version = {} if http == "3" else {"page": {"http": http}}
        page = {"user": {**PAGE["user"], **version}}
        handshake = {"quic.handshake": certificates} if certificates else {}
        cells = []
        for application, metric, of_losses in (
            (page, "application.user.mean_page_time_s", losses),
            (SHELL, "application.user.p95_response_time_s", losses[1:]),
        ):
            for loss in of_losses:
                scenario = last_mile(loss).with_({"transfer": None, "application": application, **handshake})
                ((time,),) = means(scenario, [Arm(sender, "basic")], [metric], runs)
                mean, half = (1e9 * value for value in time)
                cells.append(f"{mean / 1e3:.2f} ± {half / 1e3:.2f}" if application is page else f"{mean:.0f}")
        name = f"`{sender}`, HTTP/{http}"
        rows.append(row([f"{name}, {certificates}" if certificates else name, *cells]))
    return rows


def figure_6(runs: int = RUNS) -> list[str]:
    """Return a row for each sender: the utilisation of the bottleneck end to end, and by a predicted split.

    Each is for losses in bursts, as the authors offload segmentation, and of single packets.
    """
    segment = load(Path(splitting.__file__).with_name("one.toml"))

    def median(sender: str, path: Segment, offload: bool) -> float:
        scenario = segment.with_(
            {
                "sender": sender,
                "link": links([path], offload=offload),
                "application.download.response.constant": bytes_of([path]),
            }
        )
        found = [scenario.run("basic", run=run).applications["download"] for run in range(runs)]
        time = statistics.median(float(each["mean_response_time_s"]) for each in found)
        return 8 * bytes_of([path]) / 1e6 / time

    rows = []
    for sender in SPLITTING:
        cells = []
        for offload in (True, False):
            whole, *parts = (median(sender, path, offload) for path in (WHOLE, *PARTS))
            cells += [f"{rate / bottleneck([WHOLE]):.2f}" for rate in (whole, min(parts))]
        rows.append(row([f"`{sender}`", *cells]))
    return rows


TABLES: dict[str, Callable[..., list[str]]] = {
    "goodput": goodput,
    "controls": controls,
    "implementations": implementations,
    "remedies": remedies,
    "thresholds": thresholds,
    "ways back": ways_back,
    "divisions": divisions,
    "upload losses": upload_losses,
    "intervals": intervals,
    "media": media,
    "pemi sizes": pemi_sizes,
    "spurious": spurious,
    "frames": frames,
    "rare": rare,
    "acknowledgements": acknowledgements,
    "observers": observers,
    "beside": beside,
    "queues": queues,
    "applications": applications,
    "figure 6": figure_6,
}


def _table(name: str) -> re.Pattern[str]:
    """Return the pattern of a table of the page: its head, then its rows."""
    return re.compile(rf"(<!-- {name} -->\n\|.*\n\|.*\n)((?:\|.*\n)*)")


def written(page: str, name: str) -> list[str]:
    """Return the rows of a table of the page."""
    found = _table(name).search(page)
    return [] if found is None else found[2].splitlines()


def main() -> None:
    """Write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--table", action="append", choices=TABLES, help="only this; may be repeated")
    asked = parser.parse_args()
    runs = asked.runs
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    for name, table in TABLES.items():
        if name not in (asked.table or TABLES):
            continue
        rows = "".join(f"{row}\n" for row in table(runs=runs))
        for page, text in texts.items():
            texts[page] = _table(name).sub(lambda found, rows=rows: found[1] + rows, text)
        print(f"{name}:\n{rows}")
    for page, text in texts.items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
