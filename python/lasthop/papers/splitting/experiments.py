"""The experiments: one segment, two segments with and without a proxy, queues, and other remedies."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.papers.paper import Experiment, Settings
from lasthop.papers.splitting.digitised import printed
from lasthop.papers.splitting.network import (
    FURTHER,
    RATES,
    SENDERS,
    SPLIT,
    TIME,
    Path,
    Segment,
    response,
    segments,
    senders,
    swept,
    swept_queues,
)

OURS = tuple(SENDERS)
"""The controls that we have."""

PATH, SENDER, QUEUE = "path", "sender", "queue"

GRIDS = {rate: f"segments-{rate}" for rate in RATES}
"""The experiments of one segment, by rate in Mb/s."""


OTHERS = f"others-{RATES[0]}"
"""The experiment of one segment of 10 Mb/s with further controls."""


def _paths(figure: str) -> list[Path]:
    return list(dict.fromkeys(path for *_, path in printed(figure)))


MARQUEE = {f"marquee-{number}": path for number, path in enumerate(_paths("1"), start=1)}
"""The settings of figure 1, by experiment."""

RUNNING = {"running-7a": _paths("7a"), "running-7b": _paths("7b")}
"""The paths of figure 7, by experiment."""

QUEUED = {f"queues-{number}": path for number, path in enumerate(_paths("queues"), start=1) if number <= 2}
"""The first two of the five settings in which the artifact compares queues, by experiment."""

LONG = 2 * 10
"""Figure 1 downloads twice as much as the others: what the bottleneck carries in so many seconds."""

REMEDIES: dict[str, Settings] = {
    "losses": {"radio.channel.frame-loss.loss": 0.04},
    "fades": {"radio.channel.two-state": {"good": 2.0, "bad": 0.2, "good_ber": 0.0}},
}
"""The channels of the last hop beyond the paper, by the end of the experiment's name."""

PATHS: dict[str, list[Path]] = {
    **{name: segments(rate) for rate, name in GRIDS.items()},
    OTHERS: segments(RATES[0]),
    **{name: [path] for name, path in MARQUEE.items()},
    **RUNNING,
}
"""The swept paths of each experiment, in order."""


def _downloads(
    name: str, axes: Mapping[str, str], quick: int, full: int, *changes: Settings, file: str
) -> Experiment:
    overrides = {key: value for each in changes for key, value in each.items()}
    return Experiment(
        name, axes, quick, full, scenario=file, overrides=overrides, traced=False, metrics=(TIME,)
    )


def _sweep(name: str, queue: str = "red", *, offload: bool = True) -> Settings:
    """Return the sweep of an experiment that depends on readings."""
    for rate, grid in GRIDS.items():
        if name == grid:
            return swept(segments(rate), queue, offload=offload)
    if name == OTHERS:
        return swept(segments(RATES[0]), queue, offload=offload)
    if name in MARQUEE:
        return swept([MARQUEE[name]], queue, offload=offload)
    return swept(RUNNING[name], queue, offload=offload)


def sweeps(queue: str = "red", *, offload: bool = True) -> dict[str, Settings]:
    """Return the settings of a reading, by experiment."""
    found = {
        name: _sweep(name, queue, offload=offload) for name in (*GRIDS.values(), OTHERS, *MARQUEE, *RUNNING)
    }
    if queue == "red":
        found |= {name: swept_queues(path, offload=offload) for name, path in QUEUED.items()}
    return found


_LINK, _SENDER = "link", "sender"

_RUNS = {rate: (12, 60) if rate == RATES[0] else (3, 30) for rate in RATES}
"""Runs of each segment, quick and full: cells of figure 4 need more than counts of settings."""

EXPERIMENTS = (
    *(
        _downloads(
            name,
            {PATH: _LINK, SENDER: _SENDER},
            *_RUNS[rate],
            _sweep(name),
            senders(*OURS),
            response((Segment(1, 0, rate),)),
            file="one",
        )
        for rate, name in GRIDS.items()
    ),
    _downloads(
        OTHERS,
        {PATH: _LINK, SENDER: _SENDER},
        4,
        30,
        _sweep(OTHERS),
        senders(*FURTHER),
        response((Segment(1, 0, RATES[0]),)),
        file="one",
    ),
    *(
        _downloads(
            name,
            {PATH: _LINK, SENDER: _SENDER},
            7,
            60,
            _sweep(name),
            senders(*OURS),
            response(path, LONG),
            file="two",
        )
        for name, path in MARQUEE.items()
    ),
    *(
        _downloads(
            name,
            {PATH: _LINK, SENDER: _SENDER},
            7,
            30,
            _sweep(name),
            senders("bbr3"),
            response(paths[0]),
            {"schemes": [SPLIT]},
            file="two",
        )
        for name, paths in RUNNING.items()
    ),
    *(
        _downloads(
            name,
            {QUEUE: _LINK, SENDER: _SENDER},
            6,
            30,
            swept_queues(path),
            senders(*OURS),
            response(path),
            file="two",
        )
        for name, path in QUEUED.items()
    ),
    *(
        _downloads(f"beyond-{name}", {SENDER: _SENDER}, 6, 20, senders(*OURS), channel, file="beyond")
        for name, channel in REMEDIES.items()
    ),
)
