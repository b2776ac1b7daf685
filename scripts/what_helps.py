"""Write docs/reference/what-helps.md and its figure: which remedies still help, by sender and link.

`python scripts/what_helps.py [--runs N]` runs each remedy with each sender on each paper's own link and on
four of today's, which takes minutes.
"""

from __future__ import annotations

import argparse
import math
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
from lasthop.fitting import preset_link
from lasthop.papers import paper
from lasthop.plots._style import INK, style
from lasthop.race import Arm, Race, Ranked

DOCS = Path(__file__).parents[1] / "docs"
REMEDIES = ("ebsn", "lhack", "selective-fec", "vs-tcp", "wenp", "snoop", "packet-fec", "arq")
"""The remedies of the five papers, and Snoop, FEC and ARQ beside them."""

SENDERS = {None: "the paper's", "linux": "CUBIC", "linux-bbr": "BBR", "linux-bbr3": "BBR v3"}

ABOUT = (
    "The remedies of the five papers, and Snoop, packet FEC and an ARQ beside them: the throughput with "
    "each, over that of the same sender without any, with 95 % intervals. **Bold**: at least 5 % more for "
    "sure. *no effect*: the sender never reacts to it. EBSN and selective FEC, which act on an ARQ, are "
    "tried with one where the link has none. {runs} each, seed 1, by `scripts/what_helps.py`."
)

CLEAR = 1.05
"""The gain from which a remedy is said to help."""


@dataclass(frozen=True)
class Link:
    """A link: its title, the scenario with any sender, and the throughput that counts."""

    title: str
    scenario: Callable[[], Scenario]
    of_paper: bool
    metric: str = "throughput_bps"


def of_paper(name: str, experiment: str, point: int, title: str, metric: str = "throughput_bps") -> Link:
    """Return the link of a paper, at one point of an experiment.

    Connections are closed with FIN, without which a split cannot see their end.
    """

    def scenario() -> Scenario:
        found = paper(name)
        base = found.scenario(
            next(each for each in found.experiments if each.name == experiment), found.choose({})
        )
        return base.points()[point].scenario.with_({"tcp.close": base["transfer.size"] != "unlimited"})

    return Link(title, scenario, of_paper=True, metric=metric)


def of_today(preset: str, limit_s: float, title: str) -> Link:
    """Return a preset behind a server 40 ms away, with a download."""
    changes = {"transfer": {"size": "unlimited"}, "limit": limit_s}
    return Link(title, lambda: preset_link(preset).scenario().with_(changes), of_paper=False)


LINKS = (
    of_paper("ebsn", "wide", 39, "EBSN: 19.2 kb/s, fades of 4 s on average"),
    of_paper("lhack", "rate", 0, "lhack: four routers, 1.3 % lost"),
    of_paper("selective-fec", "fifty", 13, "selective FEC: fading margin of 3 dB"),
    of_paper("vstcp", "rate", 4, "VS-TCP: wireless LAN, bursts"),
    of_paper("wenp", "table", 0, "WENP: the station that loses 8 %", "connection.5.throughput_bps"),
    of_today("lte-driving", 30, "LTE while driving"),
    of_today("train", 30, "a train"),
    of_today("rural-wifi", 30, "rural Wi-Fi"),
    of_today("starlink", 10, "Starlink"),
)


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


def cell(race: Race, ranked: Ranked, arm: Arm) -> Cell:
    """Return the gain of an arm over the sender without remedies."""
    if race.without_effect(arm):
        return Cell(why="no effect")
    return Cell(ranked.ratio.value, ranked.ratio.low, ranked.ratio.high)


def gains(link: Link, runs: int, notes: dict[str, str]) -> Iterator[tuple[str | None, dict[str, Cell]]]:
    """Compare the remedies for each sender; reasons of refusals get numbers in `notes`.

    A remedy that only an ARQ has events for is tried with one, where the link has none.
    """
    scenario = link.scenario()
    for sender in SENDERS:
        if sender is None and not link.of_paper:
            continue
        options = [(each, (Arm(sender, each), Arm(sender, f"{each} + arq"))) for each in REMEDIES]
        race = Race(
            scenario,
            [arm for _, arms in options for arm in arms],
            baseline=Arm(sender, "basic"),
            metric=link.metric,
            runs=(runs, runs),
            precision=None,
        )
        race.run()
        refused = {each.arm: each.reason for each in race.refused}
        ranking = {each.arm: each for each in race.ranking(link.metric)}
        found = {}
        for remedy, (alone, with_arq) in options:
            arm = alone if alone in ranking or with_arq not in ranking else with_arq
            if arm in ranking:
                found[remedy] = cell(race, ranking[arm], arm)
            else:
                number = notes.setdefault(refused[arm].partition(";")[0], str(len(notes) + 1))
                found[remedy] = Cell(why=f"[^{number}]")
        yield sender, found


def draw(ax: Axes, title: str, table: dict[str | None, dict[str, Cell]]) -> None:
    """Draw the gains of one link: remedies by senders, coloured by the gain."""
    columns = list(table.values())
    gained = np.array([[column[each].gain for column in columns] for each in REMEDIES])
    values, norm = np.log2(np.maximum(gained, 0.1)), TwoSlopeNorm(0.0, -2.0, 2.0)
    ax.imshow(np.ma.masked_invalid(values), cmap="RdBu", norm=norm, aspect="auto")
    for y, remedy in enumerate(REMEDIES):
        for x, column in enumerate(columns):
            found = column[remedy]
            shown = f"{found.gain:.2f}" if math.isfinite(found.gain) else "-"
            dark = abs(norm(values[y, x]) - 0.5) > 0.35 if math.isfinite(found.gain) else False
            weight = "bold" if found.low > CLEAR else "normal"
            ax.text(
                x,
                y,
                shown,
                ha="center",
                va="center",
                fontsize=7.5,
                weight=weight,
                color="white" if dark else INK,
            )
    ax.set_title(title, loc="left", fontsize=9)
    ax.set_xticks(range(len(columns)), [SENDERS[each] for each in table], fontsize=7.5)
    ax.set_yticks(range(len(REMEDIES)), REMEDIES, fontsize=7.5)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def main() -> None:
    """Run everything, and write the page and the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16)
    runs = parser.parse_args().runs
    notes: dict[str, str] = {}
    lines = [
        "# What helps whom",
        "",
        textwrap.fill(ABOUT.format(runs=plural(runs, "paired run")), 118),
        "",
        "![Gains of eight remedies for four senders on nine links](../images/what-helps.png)",
    ]
    with style():
        figure = Figure(figsize=(10.5, 9), layout="constrained")
        for link, ax in zip(LINKS, figure.subplots(3, 3).flat, strict=True):
            table = dict(gains(link, runs, notes))
            draw(ax, link.title, table)
            lines += ["", f"## {link.title}", ""]
            lines += [
                "| | " + " | ".join(SENDERS[each] for each in table) + " |",
                "|---" * (len(table) + 1) + "|",
            ]
            lines += [
                f"| `{remedy}` | " + " | ".join(str(column[remedy]) for column in table.values()) + " |"
                for remedy in REMEDIES
            ]
            print(link.title, flush=True)
        figure.savefig(DOCS / "images/what-helps.png", dpi=130)
    lines += ["", *(f"[^{number}]: {reason}" for reason, number in notes.items())]
    (DOCS / "reference/what-helps.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
