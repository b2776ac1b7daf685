"""Balakrishnan, Seshan, Amir and Katz: retransmission at the base station, hand-offs by multicast."""

from lasthop.papers.paper import Campaign, Experiment, Paper
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
    schemes,
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


def _experiment(name: str, *overrides: str, quick: int = 80, full: Campaign | int = _CAMPAIGN) -> Experiment:
    return Experiment(name, quick=quick, full=full, scenario=_FILE, overrides=overrides, traced=False)


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
        _experiment("every-other", "radio.channel.frame-loss.loss=0.5", "limit=1000000 s", full=1000),
        *(_experiment(periods(period), two_state(period), quick=40, full=400) for period in PERIODS),
        _experiment(moving(NEVER), *hand_offs(NEVER), schemes((SYSTEM,)), quick=1, full=1),
        _experiment(others(NEVER), *hand_offs(NEVER), schemes(OTHERS), quick=1, full=1),
        *(
            _experiment(moving(interval), *hand_offs(interval), schemes((SYSTEM,)), quick=40, full=400)
            for interval in INTERVALS
        ),
        *(
            _experiment(others(interval), *hand_offs(interval), schemes(OTHERS), quick=10, full=40)
            for interval in INTERVALS
        ),
        *(
            _experiment(
                tahoe(interval),
                *hand_offs(interval),
                "tcp.flavour=tahoe",
                schemes((FAST_RETRANSMISSIONS,)),
                quick=10,
                full=40,
            )
            for interval in INTERVALS
        ),
        *(
            _experiment(
                moving("5 s", rate),
                *hand_offs("5 s"),
                errors(rate),
                schemes(("basic", FAST_RETRANSMISSIONS, SYSTEM)),
                quick=40,
                full=200,
            )
            for rate in RATES
        ),
        *(
            _experiment(
                moving(NEVER, rate),
                *hand_offs(NEVER),
                errors(rate),
                schemes(("snoop",)),
                quick=40,
                full=200,
            )
            for rate in RATES
        ),
        Experiment("trace-256K", quick=1, full=1, scenario=_FILE, overrides=(errors("256K"),)),
        *(
            Experiment(
                f"trace-{moving(interval)}",
                quick=5,
                full=20,
                scenario=_FILE,
                overrides=(
                    *hand_offs(interval),
                    schemes(("basic", FAST_RETRANSMISSIONS, SYSTEM)),
                ),
            )
            for interval in ("5 s", "10 s")
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
