"""Balakrishnan, Seshan, Amir and Katz: retransmission at the base station, hand-offs by multicast."""

from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.papers.snoop.claims import CLAIMS
from lasthop.papers.snoop.figures import FIGURES
from lasthop.papers.snoop.network import (
    FAST_RETRANSMISSIONS,
    INTERVALS,
    NEVER,
    OTHERS,
    PERIODS,
    RATES,
    SYSTEM,
    at_rate,
    errors,
    hand_offs,
    moving,
    others,
    periods,
    tahoe,
    two_state,
)
from lasthop.papers.snoop.readings import READINGS
from lasthop.study import Target

_FILE = "testbed"
_CAMPAIGN = Campaign(
    "Figure 4 is read to a hundredth, and claims compare throughputs that differ by a tenth.",
    [Target("throughput_bps", relative=0.01)],
    least=200,
    most=2000,
)


def _experiment(
    name: str, overrides: Settings | None = None, *, quick: int = 80, full: Campaign | int = _CAMPAIGN
) -> Experiment:
    overrides = overrides or {}
    return Experiment(name, quick=quick, full=full, scenario=_FILE, overrides=overrides, traced=False)


_COMPARED = ("basic", FAST_RETRANSMISSIONS, SYSTEM)


def _moving(interval: str, *schemes: str) -> Settings:
    """Return the settings of a host that moves, and of the schemes."""
    return {**hand_offs(interval), "schemes": schemes}


PAPER = Paper(
    name="snoop",
    title="Improving TCP/IP Performance over Wireless Networks",
    authors="H. Balakrishnan, S. Seshan, E. Amir, R. H. Katz",
    source="ACM MobiCom, 1995, and its extension by hand-offs, ACM Wireless Networks 1(4), 1995",
    readings=READINGS,
    experiments=(
        # Deterministic without errors.
        _experiment("no-errors", quick=1, full=1),
        *(_experiment(at_rate(rate), errors(rate)) for rate in RATES),
        # A claim about at most 1 % of the runs needs 368 runs.
        _experiment("every-other", {"radio.channel.frame-loss.loss": 0.5, "limit": 1e6}, full=1000),
        *(_experiment(periods(period), two_state(period), quick=40, full=400) for period in PERIODS),
        _experiment(moving(NEVER), _moving(NEVER, SYSTEM), quick=1, full=1),
        _experiment(others(NEVER), _moving(NEVER, *OTHERS), quick=1, full=1),
        *(
            _experiment(moving(interval), _moving(interval, SYSTEM), quick=40, full=400)
            for interval in INTERVALS
        ),
        *(
            _experiment(others(interval), _moving(interval, *OTHERS), quick=10, full=40)
            for interval in INTERVALS
        ),
        *(
            _experiment(
                tahoe(interval),
                {**_moving(interval, FAST_RETRANSMISSIONS), "tcp.flavour": "tahoe"},
                quick=10,
                full=40,
            )
            for interval in INTERVALS
        ),
        *(
            _experiment(
                moving("5 s", rate),
                {**_moving("5 s", *_COMPARED), **errors(rate)},
                quick=40,
                full=200,
            )
            for rate in RATES
        ),
        *(
            _experiment(
                moving(NEVER, rate),
                {**_moving(NEVER, "snoop"), **errors(rate)},
                quick=40,
                full=200,
            )
            for rate in RATES
        ),
        Experiment("trace-256K", quick=1, full=1, scenario=_FILE, overrides=errors("256K")),
        *(
            Experiment(
                f"trace-{moving(interval)}",
                quick=5,
                full=20,
                scenario=_FILE,
                overrides=_moving(interval, *_COMPARED),
            )
            for interval in ("5 s", "10 s")
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
