"""Write docs/reference/what-helps.md and its figure: which remedies still help, by sender and link.

`python scripts/what_helps.py [--runs N]` runs each remedy with each sender on each paper's own link and on
four of today's, which takes minutes.
"""

from __future__ import annotations

import argparse
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from lasthop import Scenario
from lasthop.core.formats import plural
from lasthop.core.statistics import paired, paired_difference
from lasthop.fitting import preset_link
from lasthop.papers import paper
from lasthop.plots._style import INK, style
from lasthop.race import Arm, Race

DOCS = Path(__file__).parents[1] / "docs"
REMEDIES = ("ebsn", "lhack", "selective-fec", "vs-tcp", "wenp", "snoop", "packet-fec", "arq")
"""The remedies of the five papers, and Snoop, FEC and ARQ beside them."""

NEED_ARQ = ("ebsn", "selective-fec")
"""Those that act on an ARQ."""

CODE = (("radio.mtu", "none"), ("radio.unit", "480 B"), ("radio.fec", "bch-255-131-18"))
"""The units and the code of selective FEC's paper."""

ALL_CODED = (*CODE, ("radio.protect", "all"))

SENDERS = {None: "its paper's", "linux": "CUBIC", "linux-bbr": "BBR", "linux-bbr3": "BBR v3"}

ABOUT = """The remedies of the five papers, and Snoop, packet FEC and an ARQ beside them: the throughput
with each, over that of the same sender without any, and over that of the same sender with the link's ARQ,
or `arq` where it has none, so that what the ARQ gains is not taken for the remedy's; with 95 % intervals.
**Bold**: at least 5 % more for sure. *No effect*: the sender never reacts to it, with the reason. Selective
FEC has the units and the code of its paper on each link, beside an ARQ with the same units that codes
nothing, or everything. On links of today, "its paper's" is the sender of each remedy's own paper, whose
window of 4 to 64 KB may be the limit. {runs} each (3 on VS-TCP's link, whose long runs hardly vary), seed
1, by `scripts/what_helps.py`."""

CLEAR = 1.05
"""The gain from which a remedy is said to help."""


@dataclass(frozen=True)
class Link:
    """A link: its title, the scenario with any sender, and the throughput that counts."""

    title: str
    scenario: Callable[[], Scenario]
    of_paper: bool
    metric: str = "throughput_bps"
    most: int = 1000
    """Runs at most, where long runs hardly vary."""


def of_paper(
    name: str, experiment: str, point: int, title: str, metric: str = "throughput_bps", most: int = 1000
) -> Link:
    """Return the link of a paper, at one point of an experiment.

    Connections are closed with FIN, without which a split cannot see their end.
    """

    def scenario() -> Scenario:
        found = paper(name)
        base = found.scenario(
            next(each for each in found.experiments if each.name == experiment), found.choose({})
        )
        return base.points()[point].scenario.with_({"tcp.close": base["transfer.size"] != "unlimited"})

    return Link(title, scenario, of_paper=True, metric=metric, most=most)


def of_today(preset: str, limit_s: float, title: str) -> Link:
    """Return a preset behind a server 40 ms away, with a download."""
    changes = {"transfer": {"size": "unlimited"}, "limit": limit_s}
    return Link(title, lambda: preset_link(preset).scenario().with_(changes), of_paper=False)


LINKS = (
    of_paper("ebsn", "wide", 39, "EBSN: 19.2 kb/s, fades of 4 s on average"),
    of_paper("lhack", "rate", 0, "lhack: four routers, 1.3 % lost"),
    of_paper("selective-fec", "fifty", 13, "selective FEC: fading margin of 3 dB"),
    of_paper("vstcp", "rate", 4, "VS-TCP: wireless LAN, bursts", most=3),
    of_paper("wenp", "table", 0, "WENP: the station that loses 8 %", "connection.5.throughput_bps"),
    of_today("lte-driving", 30, "LTE while driving"),
    of_today("train", 30, "a train"),
    of_today("rural-wifi", 30, "rural Wi-Fi"),
    of_today("starlink", 10, "Starlink"),
)

PAPERS = {
    **dict(zip(REMEDIES, LINKS[:5], strict=False)),
    "snoop": of_paper("snoop", "no-errors", 0, "Snoop"),
}
"""The link of each remedy's paper, whose sender is its own."""

TCP = re.compile(r"^\[tcp\]\n(?:.+\n)+", re.MULTILINE)
"""The table of a printed scenario."""


@dataclass(frozen=True)
class Row:
    """A remedy over what it is compared with: the schemes of both, and their settings."""

    remedy: str
    scheme: str
    over: str
    baseline: str
    settings: tuple[tuple[str, str], ...] = ()
    under: tuple[tuple[str, str], ...] = ()


def rows(remedy: str) -> list[Row]:
    """Return the rows of a remedy: over nothing, and over the ARQ or the code that it acts on."""
    if remedy == "arq":
        return [Row(remedy, "arq", "nothing", "basic")]
    both = f"{remedy} + arq"
    alone = both if remedy in NEED_ARQ else remedy
    code = CODE if remedy == "selective-fec" else ()
    found = [
        Row(remedy, alone, "nothing", "basic", code),
        Row(remedy, both, "`arq`", "arq", code, code),
    ]
    if code:
        found.append(Row(remedy, both, "`arq`, all coded", "arq", code, ALL_CODED))
    return found


ROWS = [row for remedy in REMEDIES for row in rows(remedy)]


@dataclass(frozen=True)
class Cell:
    """The gain of a remedy for a sender, with its 95 % interval, or why there is none."""

    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    why: str = ""

    def __str__(self) -> str:
        """Return it as a cell of a table."""
        if self.why:
            return self.why
        if not math.isfinite(self.gain):
            return "no ratio"
        text = f"{self.gain:.2f} ({self.low:.2f} to {self.high:.2f})"
        return f"**{text}**" if self.low > CLEAR else text


class Notes(dict[str, str]):
    """The reasons, with their numbers."""

    def mark(self, reason: str) -> str:
        """Return the mark of a reason."""
        return f"[^{self.setdefault(reason, str(len(self) + 1))}]"


def compared(
    scenario: Scenario, sender: str | None, wanted: list[Row], metric: str, runs: int, notes: Notes
) -> dict[Row, Cell]:
    """Run the schemes of rows with one sender, and return their gains."""
    # A cell has no links with a code, which its refusal says.
    coded = "radio" in scenario.values()
    pairs = {
        row: (
            Arm(sender, row.scheme, row.settings if coded else ()),
            Arm(sender, row.baseline, row.under if coded else ()),
        )
        for row in wanted
    }
    race = Race(
        scenario,
        [arm for pair in pairs.values() for arm in pair],
        baseline=Arm(sender, "basic"),
        metric=metric,
        runs=(runs, runs),
        precision=None,
    )
    race.run()
    refused = {each.arm: each for each in race.refused}

    def cell(row: Row) -> Cell:
        # An arm that equals an earlier one, such as with the code that the link has, is that one.
        arm, under = (refused[each].same or each if each in refused else each for each in pairs[row])
        for each in (arm, under):
            if each in refused:
                return Cell(why=notes.mark(refused[each].reason.partition(";")[0]))
        silent = race.without_effect(arm).get(row.remedy)
        if silent is not None:
            return Cell(why=f"no effect{notes.mark(silent)}")
        ratio = paired_difference(*paired(race.sample(arm), race.sample(under))).ratio
        return Cell() if ratio is None else Cell(ratio.mean, ratio.low, ratio.high)

    return {row: cell(row) for row in wanted}


def with_tcp_of(scenario: Scenario, sender: Scenario) -> Scenario:
    """Return a scenario with the TCP settings of another one in place of its sender."""
    tcp = TCP.search(sender.to_toml())
    assert tcp is not None, "a scenario that is printed has its settings"
    text = re.sub(r"^sender = .*\n", "", scenario.to_toml(), flags=re.MULTILINE)
    return Scenario.parse(TCP.sub(lambda _: tcp[0], text), scenario.title)


def gains(link: Link, runs: int, notes: Notes) -> Iterator[tuple[str | None, dict[Row, Cell]]]:
    """Compare the remedies for each sender; reasons get numbers in `notes`."""
    scenario = link.scenario()
    for sender in SENDERS:
        if sender is not None or link.of_paper:
            yield sender, compared(scenario, sender, ROWS, link.metric, runs, notes)
            continue
        found = dict.fromkeys(ROWS, Cell(why="no paper"))
        for remedy, of in PAPERS.items():
            own = with_tcp_of(scenario, of.scenario())
            found |= compared(own, None, rows(remedy), link.metric, runs, notes)
        yield sender, found


def draw(ax: Axes, title: str, table: dict[str | None, dict[Row, Cell]]) -> None:
    """Draw the gains of one link: remedies by senders, over nothing and over the ARQ."""
    columns = [
        {row.remedy: cell for row, cell in column.items() if row.over == over}
        for over in ("nothing", "`arq`")
        for column in table.values()
    ]
    cells = [[column.get(remedy, Cell()) for column in columns] for remedy in REMEDIES]
    gained = np.array([[cell.gain for cell in row] for row in cells])
    values, norm = np.log2(np.maximum(gained, 0.1)), TwoSlopeNorm(0.0, -2.0, 2.0)
    ax.imshow(np.ma.masked_invalid(values), cmap="RdBu", norm=norm, aspect="auto")
    for (y, x), gain in np.ndenumerate(gained):
        known = math.isfinite(gain)
        dark = known and abs(norm(values[y, x]) - 0.5) > 0.35
        ax.text(
            x,
            y,
            f"{gain:.2f}" if known else "-",
            ha="center",
            va="center",
            fontsize=6.5,
            weight="bold" if cells[y][x].low > CLEAR else "normal",
            color="white" if dark else INK,
        )
    ax.axvline(len(table) - 0.5, color=INK, linewidth=1.0)
    ax.set_title(f"{title}\nover nothing | over an ARQ", loc="left", fontsize=8)
    ax.set_xticks(range(len(columns)), [SENDERS[each] for each in table] * 2, fontsize=6.5, rotation=30)
    ax.set_yticks(range(len(REMEDIES)), REMEDIES, fontsize=7.5)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def main() -> None:
    """Run everything, and write the page and the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16)
    runs = parser.parse_args().runs
    notes = Notes()
    lines = [
        "# What helps whom",
        "",
        textwrap.fill(" ".join(ABOUT.split()).format(runs=plural(runs, "paired run")), 118),
        "",
        "![Gains of eight remedies for four senders on nine links](../images/what-helps.png)",
    ]
    with style():
        figure = Figure(figsize=(14, 10), layout="constrained")
        for link, ax in zip(LINKS, figure.subplots(3, 3).flat, strict=True):
            table = dict(gains(link, min(runs, link.most), notes))
            draw(ax, link.title, table)
            lines += ["", f"## {link.title}", ""]
            lines += [
                "| | over | " + " | ".join(SENDERS[each] for each in table) + " |",
                "|---" * (len(table) + 2) + "|",
            ]
            lines += [
                f"| `{row.scheme}` | {row.over} | "
                + " | ".join(str(each[row]) for each in table.values())
                + " |"
                for row in ROWS
            ]
            print(link.title, flush=True)
        figure.savefig(DOCS / "images/what-helps.png", dpi=130)
    lines += ["", *(f"[^{number}]: {reason}" for reason, number in notes.items())]
    (DOCS / "reference/what-helps.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
