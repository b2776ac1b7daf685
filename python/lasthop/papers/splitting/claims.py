"""The claims of the paper and its artifact, each with its place."""

from __future__ import annotations

from functools import partial

from lasthop.papers.claims import CustomClaim
from lasthop.papers.paper import Claim
from lasthop.papers.splitting.experiments import GRIDS, MARQUEE, OURS, QUEUED, RUNNING
from lasthop.papers.splitting.findings import (
    bars_of_figure_1,
    figure_6,
    heuristic_holds,
    none_of,
    number_of,
    queue_bars,
    row_of_figure_4,
    running_splits,
    segments_of_bbr3,
    who_gains,
)
from lasthop.papers.splitting.network import CONTROLS, DELAYS, RATES

_GRID = tuple(GRIDS.values())
_APART = "a cell is more than a tenth from the printed one"

_LARGER = "super-packets have more than two segments at this rate; with losses of four in a row ours is {}"
_WHY = {
    "figure-4-cubic-1": "not explained",
    "figure-4-bbr3-100": "with the reading offload=off it is 0.64 at 3 %, and 0.41 at 4 %",
    "segments-30": "the artifact's number for 1 ms without losses, 21.7 Mb/s, is below that for 20 ms",
    "segments-50": _LARGER.format("17.6 Mb/s at 80 ms and 4 %"),
    "bbr3-edge": "ours is slower at high rates and losses, as in segments-50, so that more settings gain",
    "figure-6-linux": "ours is slower at 4 %: end to end as in segments-50; at 1 ms not explained",
    "who-gains-3": "the split uses 0.46 of the bottleneck in place of 0.52",
    "queues-cubic-2": "not explained: as in figure 4 with 1 ms and 4 %",
    "queues-bbr3-2": "ours is slower end to end, over 20 ms and 4 % at 30 Mb/s, as in segments-50",
}
"""The best known explanations."""

_COUNTS = (
    ("cubic-gains", "triple", "cubic", 2231, "a split is at least 3 times as fast"),
    ("cubic-useful", "useful", "cubic", 942, "of these, the split has over half of the bottleneck"),
    ("cubic-near", "near", "cubic", 471, "of these, the losses are on a short near segment"),
    ("bbr3-gains", "triple", "bbr3", 234, "a split is at least 3 times as fast"),
    ("bbr3-useful", "useful", "bbr3", 188, "of these, the split has over half of the bottleneck"),
    ("bbr3-asymmetric", "asymmetric", "bbr3", 38, "of these, one segment is short and alone has losses"),
    ("bbr3-both", "both", "bbr3", 150, "of these, both segments have losses"),
    ("bbr3-edge", "edge", "bbr3", 72, "of these, the proxy is near an end"),
    ("bbr3-middle", "middle", "bbr3", 78, "of these, the proxy is far from both ends"),
)
_MARQUEE = (
    (1, ("cubic", "bbr3"), "CUBIC and BBRv3 gain, BBRv1 does not"),
    (2, ("bbr3",), "only BBRv3 gains"),
    (3, ("bbr3",), "only BBRv3 gains"),
)

CLAIMS: tuple[Claim, ...] = (
    *(
        CustomClaim(
            id=f"figure-4-{control}-{delay}",
            section="5.1, figure 4",
            statement=f"{CONTROLS[control]} over a segment of {delay} ms at 10 Mb/s, by loss",
            printed="five cells",
            experiment=GRIDS[RATES[0]],
            fails_if=_APART,
            why=_WHY.get(f"figure-4-{control}-{delay}", ""),
            evaluate=partial(row_of_figure_4, control, delay),
        )
        for control in OURS
        for delay in DELAYS
    ),
    *(
        CustomClaim(
            id=f"segments-{rate}",
            section="artifact, accuracy",
            statement=f"BBRv3 over one segment of {rate} Mb/s",
            printed="the numbers that the artifact prints",
            experiment=GRIDS[rate],
            fails_if="a number is more than a tenth from the printed one",
            why=_WHY.get(f"segments-{rate}", ""),
            evaluate=partial(segments_of_bbr3, rate),
        )
        for rate in (10, 30, 50)
    ),
    *(
        CustomClaim(
            id=name,
            section="5.2, table 3",
            statement=f"{CONTROLS[control]}: {what}",
            printed=f"{value:,} settings of 7,875",
            experiment=_GRID[0],
            further=_GRID,
            fails_if="the number is more than a fifth from the printed one",
            why=_WHY.get(name, ""),
            evaluate=partial(number_of, kind, control, value),
        )
        for name, kind, control, value, what in _COUNTS
    ),
    CustomClaim(
        id="bbr1-none",
        section="5.2, table 3",
        statement="BBRv1: there is no setting in which a split is even 1.5 times as fast",
        printed="no setting of 7,875",
        experiment=_GRID[0],
        further=_GRID,
        fails_if="there is one",
        evaluate=partial(none_of, "half", "bbr1"),
    ),
    CustomClaim(
        id="figure-6-linux",
        section="5.3, figure 6",
        statement="BBRv3 of Linux, 20 ms at 40 Mb/s before 1 ms with 4 % at 50 Mb/s, predicted",
        printed="0.25 of the bottleneck end to end, 0.91 with a split",
        experiment=GRIDS[40],
        further=(GRIDS[50],),
        fails_if="one is more than a tenth from the printed one",
        why=_WHY["figure-6-linux"],
        evaluate=figure_6,
    ),
    *(
        CustomClaim(
            id=f"heuristic-{figure}",
            section="4, figure 7",
            statement="a split is as fast as the slower of its segments alone",
            printed="heat maps of measured and predicted throughput",
            experiment=f"running-{figure}",
            further=_GRID,
            fails_if="a split that runs is more than a fifth from the prediction",
            evaluate=partial(heuristic_holds, figure),
        )
        for figure in ("7a", "7b")
    ),
    *(
        CustomClaim(
            id=f"queues-{control}-{name.removeprefix('queues-')}",
            section="artifact, qdiscs",
            statement=f"{CONTROLS[control]} with five queues, {' | '.join(map(str, QUEUED[name]))}",
            printed="bars",
            experiment=name,
            fails_if="a bar is more than a fifth from the printed one",
            why=_WHY.get(f"queues-{control}-{name.removeprefix('queues-')}", ""),
            evaluate=partial(queue_bars, name, control),
        )
        for control in OURS
        for name in QUEUED
    ),
    *(
        CustomClaim(
            id=f"figure-{figure}",
            section="4, figure 7",
            statement=f"BBRv3 over two segments with a proxy, {what} losses",
            printed=f"{len(RUNNING[f'running-{figure}'])} cells",
            experiment=f"running-{figure}",
            fails_if=_APART,
            evaluate=partial(running_splits, figure),
        )
        for figure, what in (("7a", "without"), ("7b", "with"))
    ),
    *(
        CustomClaim(
            id=f"who-gains-{number}",
            section="1, figure 1",
            statement=f"{' | '.join(map(str, MARQUEE[f'marquee-{number}']))}: {what}",
            printed="bars",
            experiment=f"marquee-{number}",
            fails_if="another control gains, or one of these does not",
            why=_WHY.get(f"who-gains-{number}", ""),
            evaluate=partial(who_gains, number, gaining),
        )
        for number, gaining, what in _MARQUEE
    ),
    *(
        CustomClaim(
            id=f"figure-1-{number}",
            section="1, figure 1",
            statement=f"the bars of {' | '.join(map(str, MARQUEE[f'marquee-{number}']))}",
            printed="six bars",
            experiment=f"marquee-{number}",
            fails_if="a bar is more than a fifth from the printed one",
            evaluate=partial(bars_of_figure_1, number),
        )
        for number, *_ in _MARQUEE
    ),
)
