"""The quantities of the claims, with their regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lasthop.core.statistics import LEVEL, Estimate, Sample
from lasthop.papers.claims import Finding
from lasthop.papers.evidence import Evidence
from lasthop.papers.splitting.digitised import printed
from lasthop.papers.splitting.experiments import (
    GRIDS,
    MARQUEE,
    OURS,
    PATH,
    PATHS,
    QUEUE,
    QUEUED,
    RUNNING,
    SENDER,
)
from lasthop.papers.splitting.heuristic import Grid, counted
from lasthop.papers.splitting.network import (
    CONTROLS,
    DELAYS,
    LOSSES,
    QUEUES,
    RATES,
    SIZE,
    SPLIT,
    TIME,
    Path,
    Segment,
    bottleneck,
    sender,
)
from lasthop.papers.verdicts import (
    ABOUT,
    SAME,
    Criterion,
    Measured,
    Median,
    Region,
    Unit,
    about,
    above,
    below,
    within,
)

MBPS = Unit("Mb/s", 1e6, 2)
COUNT = Unit("", 1.0, 0)
_DIGITS = 0.005
"""The rounding of the printed utilisation."""
_PIXEL = 0.01
"""The reading error of figure 1, as a share of the rate."""
_FEWEST = 10
"""The least number of runs from which to draw others."""
_TWICE, _HALF_MORE = 2.0, 1.5


def downloaded(evidence: Evidence, experiment: str) -> float:
    """Return the bytes of a download."""
    return float(evidence.scenario(experiment)[SIZE])


def throughput(
    evidence: Evidence, experiment: str, place: int, control: str, scheme: str = "basic", axis: str = PATH
) -> Sample:
    """Return the throughput of each download in bits per second; NaN for one that did not end."""
    sweep = evidence.sweep(experiment)
    at = {axis: sweep.values(axis)[place], SENDER: sender(control)}
    return 8.0 * downloaded(evidence, experiment) / sweep.sample(TIME, scheme, at)


def of_segment(evidence: Evidence, segment: Segment, control: str) -> Sample:
    """Return the throughput of one segment in bits per second."""
    experiment = GRIDS[segment.rate]
    return throughput(evidence, experiment, PATHS[experiment].index((segment,)), control)


def of_queue(evidence: Evidence, experiment: str, queue: str, control: str, scheme: str) -> Sample:
    """Return the throughput over the path of an experiment with a queue, in bits per second."""
    return throughput(evidence, experiment, list(QUEUES).index(queue), control, scheme, QUEUE)


def predicted(evidence: Evidence, path: Path, control: str) -> Sample:
    """Return the heuristic's throughput of a split in bits per second, run by run."""
    return min((of_segment(evidence, segment, control) for segment in path), key=_middle)


def _middle(sample: Sample) -> float:
    return float(np.median(np.nan_to_num(sample)))


def cells(evidence: Evidence, experiment: str, control: str) -> Grid:
    """Return the throughputs of an experiment of one segment in Mb/s by delay, loss and run."""
    found = [throughput(evidence, experiment, place, control) for place in range(len(PATHS[experiment]))]
    return np.asarray(found).reshape(len(DELAYS), len(LOSSES), -1) / 1e6


def grid(evidence: Evidence, control: str) -> Grid:
    """Return the throughputs of one segment in Mb/s by rate, delay, loss and run.

    NaN is a download that did not end in time. The rates have as many runs as the one with the fewest.
    """
    found = [cells(evidence, GRIDS[rate], control) for rate in RATES]
    fewest = min(runs.shape[-1] for runs in found)
    return np.asarray([runs[..., :fewest] for runs in found])


def median(sample: Sample, per: float = 1.0) -> Median:
    """Return the median of the downloads that ended, as the paper does."""
    return Median(sample[~np.isnan(sample)], per=per)


def _near(value: float, margin: float, error: float, text: str) -> Region:
    return within(value, margin * value + error, text)


_TENTH = (
    "within a tenth and the rounding of the printed digits: our margin, since the paper does not state a "
    "scatter"
)
_FIFTH = "within a fifth and the reading error of a bar: our margin"


def row_of_figure_4(control: str, delay: int, evidence: Evidence) -> Finding:
    """Compare a row of figure 4 with the printed one."""
    criteria, texts = [], []
    for loss in LOSSES:
        segment = Segment(delay, loss, RATES[0])
        value = printed("4")[control, "one", "red", (segment,)]
        found = median(of_segment(evidence, segment, control))
        region = _near(value, SAME, _DIGITS * RATES[0] * 1e6, _TENTH)
        criteria.append(Criterion(found, region, f"{loss} %", MBPS))
        texts.append(f"{found.at().mean / RATES[0] / 1e6:.2f} ({value / RATES[0] / 1e6:.2f})")
    return Finding(criteria, f"{', '.join(texts)} of the rate at 0 to 4 % (printed)")


def segments_of_bbr3(rate: int, evidence: Evidence) -> Finding:
    """Compare the throughput of BBRv3 over one segment with the numbers of the artifact."""
    cells = {path[0]: value for (*_, path), value in printed("one").items() if path[0].rate == rate}
    criteria, apart = [], []
    for segment, value in cells.items():
        found = median(of_segment(evidence, segment, "bbr3"))
        criteria.append(Criterion(found, _near(value, SAME, 0.0, _TENTH), str(segment), MBPS))
        apart.append(found.at().mean / value - 1)
    text = f"{min(apart):+.0%} to {max(apart):+.0%} of {len(cells)} numbers"
    return Finding(criteria, text)


@dataclass(frozen=True, slots=True, eq=False)
class Settings(Measured):
    """A number of settings, with the interval of its bootstrap over runs.

    Attributes
    ----------
    runs : int
        The number of runs.
    """

    runs: int = 0

    def at(self, tests: int = 1) -> Estimate:
        """Estimate the number; without an interval if there are too few runs to draw from."""
        assert self.known is not None
        tail = (1 - LEVEL) / 2 / tests
        enough = self.runs >= _FEWEST
        low, high = np.quantile(self.values, [tail, 1 - tail]) if enough else (math.nan, math.nan)
        return Estimate(
            self.runs, self.known, float(low), float(high), math.nan, "exact", math.nan, float(self.runs)
        )


def settings_of(evidence: Evidence, control: str) -> dict[str, Settings]:
    """Return the number of settings of each kind."""
    return {
        name: Settings(each.resampled.astype(np.float64), known=float(each.number), runs=each.runs)
        for name, each in counted(grid(evidence, control)).items()
    }


def number_of(kind: str, control: str, value: int, evidence: Evidence) -> Finding:
    """Compare the number of settings of a kind with the printed one."""
    found = settings_of(evidence, control)[kind]
    region = within(
        value,
        ABOUT * value,
        f"{(1 - ABOUT) * value:.0f} to {(1 + ABOUT) * value:.0f}: within a fifth, our margin",
    )
    return Finding([Criterion(found, region, unit=COUNT)], COUNT.estimate(found.at()))


def none_of(kind: str, control: str, evidence: Evidence) -> Finding:
    """Judge that no setting is of a kind."""
    found = settings_of(evidence, control)[kind]
    return Finding([Criterion(found, below(0.5, "no setting"), unit=COUNT)], COUNT.estimate(found.at()))


def bars_of_figure_1(number: int, evidence: Evidence) -> Finding:
    """Compare the bars of a setting of figure 1 with the printed ones."""
    name = f"marquee-{number}"
    path, criteria, texts = MARQUEE[name], [], []
    for control in OURS:
        for way, scheme in (("split", SPLIT), ("end-to-end", "basic")):
            value = printed("1")[control, way, "red", path]
            found = median(throughput(evidence, name, 0, control, scheme))
            error = _PIXEL * bottleneck(path) * 1e6
            criteria.append(
                Criterion(found, _near(value, ABOUT, error, _FIFTH), f"{CONTROLS[control]} {way}", MBPS)
            )
            texts.append(f"{CONTROLS[control]} {way} {found.at().mean / 1e6:.1f} ({value / 1e6:.1f})")
    return Finding(criteria, f"{', '.join(texts)} Mb/s (printed)")


def who_gains(number: int, gaining: Sequence[str], evidence: Evidence) -> Finding:
    """Judge which controls at least double their throughput by a split, to over half of the bottleneck.

    A split gives CUBIC less than half of the bottleneck otherwise, and BBRv1 less than half as much again.
    """
    name = f"marquee-{number}"
    half = 0.5e6 * bottleneck(MARQUEE[name])
    criteria, texts = [], []
    for control in OURS:
        split, whole = (throughput(evidence, name, 0, control, scheme) for scheme in (SPLIT, "basic"))
        gain, reached = median(split / whole), median(split)
        label = CONTROLS[control]
        if control in gaining:
            criteria += [
                Criterion(gain, above(_TWICE, "twice as much"), f"{label}'s gain"),
                Criterion(reached, above(half, "and over half of the bottleneck"), f"{label} split", MBPS),
            ]
        elif control == "cubic":
            criteria.append(
                Criterion(reached, below(half, "less than half of the bottleneck"), f"{label} split", MBPS)
            )
        else:
            criteria.append(
                Criterion(gain, below(_HALF_MORE, "less than 1.5 times as much"), f"{label}'s gain")
            )
        texts.append(f"{label} {gain.at().mean:.2f} times, to {reached.at().mean / 1e6:.1f} Mb/s")
    return Finding(criteria, "; ".join(texts))


def running_splits(figure: str, evidence: Evidence) -> Finding:
    """Compare the splits of figure 7 with the printed ones."""
    name = f"running-{figure}"
    criteria, apart = [], []
    for place, path in enumerate(RUNNING[name]):
        value = printed(figure)["bbr3", "split", "red", path]
        found = median(throughput(evidence, name, place, "bbr3", SPLIT))
        criteria.append(Criterion(found, _near(value, SAME, 0.0, _TENTH), " | ".join(map(str, path)), MBPS))
        apart.append(found.at().mean / value - 1)
    return Finding(
        criteria, f"{min(apart):+.0%} to {max(apart):+.0%}, {np.mean(apart):+.1%} on average of {len(apart)}"
    )


def heuristic_holds(figure: str, evidence: Evidence) -> Finding:
    """Compare our splits of figure 7 with the prediction from our own segments."""
    name = f"running-{figure}"
    criteria, apart = [], []
    for place, path in enumerate(RUNNING[name]):
        split, alone = throughput(evidence, name, place, "bbr3", SPLIT), predicted(evidence, path, "bbr3")
        runs = min(len(split), len(alone))
        found = median(split[:runs] / alone[:runs])
        criteria.append(Criterion(found, about(1.0), " | ".join(map(str, path))))
        apart.append(found.at().mean - 1)
    return Finding(
        criteria, f"{min(apart):+.0%} to {max(apart):+.0%} of the prediction for {len(apart)} paths"
    )


def figure_6(evidence: Evidence) -> Finding:
    """Compare the predicted utilisation of Linux in figure 6 with the printed one."""
    path = (Segment(20, 0, 40), Segment(1, 4, 50))
    whole = of_segment(evidence, Segment(20, 4, 40), "bbr3")
    criteria, texts = [], []
    for label, sample, value in (
        ("end to end", whole, 0.25),
        ("split", predicted(evidence, path, "bbr3"), 0.91),
    ):
        found = median(sample, 40e6)
        criteria.append(Criterion(found, _near(value, SAME, _DIGITS, _TENTH), label))
        texts.append(f"{found.at().mean:.2f} {label} ({value:.2f})")
    return Finding(criteria, f"{', '.join(texts)} (printed)")


def queue_bars(name: str, control: str, evidence: Evidence) -> Finding:
    """Compare the throughputs with each queue with the artifact's bars."""
    criteria, apart = [], []
    for (of, way, queue, path), value in printed("queues").items():
        if of == control and path == QUEUED[name]:
            scheme = SPLIT if way == "split" else "basic"
            found = median(of_queue(evidence, name, queue, control, scheme))
            region = _near(value, ABOUT, 0.05e6, _FIFTH)
            criteria.append(Criterion(found, region, f"{QUEUES[queue]} {way}", MBPS))
            apart.append((found.at().mean / value - 1, criteria[-1].label))
    low, high = min(apart), max(apart)
    return Finding(
        criteria, f"{low[0]:+.0%} ({low[1]}) to {high[0]:+.0%} ({high[1]}) of {len(criteria)} bars"
    )
