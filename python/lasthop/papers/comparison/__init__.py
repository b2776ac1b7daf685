"""Balakrishnan, Padmanabhan, Seshan and Katz: twelve mechanisms compared over a WaveLAN."""

from lasthop.papers.comparison.claims import CLAIMS
from lasthop.papers.comparison.figures import FIGURES, TRACED
from lasthop.papers.comparison.network import (
    BURSTS,
    DISTANCES,
    FIGURE_12,
    PRINTED,
    PROTOCOLS,
    SETTINGS,
    TABLE_5,
    at_distance,
    bursts,
    error_rate,
    experiment,
)
from lasthop.papers.comparison.readings import READINGS
from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.study import Target

_FILE = "wavelan"
_CAMPAIGN = Campaign(
    "The tables print two digits, and the text compares protocols that differ by a few percent.",
    [Target("throughput_bps", relative=0.01)],
    least=400,
    most=1000,
)


def _experiment(
    name: str, protocol: str, setting: str, further: Settings | None = None, *, fixed: tuple[str, ...] = ()
) -> Experiment:
    overrides = {**PROTOCOLS[protocol].setting(setting), **(further or {})}
    return Experiment(
        name, quick=80, full=_CAMPAIGN, scenario=_FILE, overrides=overrides, fixed=fixed, traced=False
    )


PAPER = Paper(
    name="comparison",
    title="A Comparison of Mechanisms for Improving TCP Performance over Wireless Links",
    authors="H. Balakrishnan, V. N. Padmanabhan, S. Seshan, R. H. Katz",
    source="IEEE/ACM Transactions on Networking 5(6), 1997",
    readings=READINGS,
    experiments=(
        *(
            _experiment(experiment(setting, name), name, setting)
            for name in PROTOCOLS
            for setting in SETTINGS
            if setting in PRINTED[name]
        ),
        *(
            _experiment(at_distance(distance, name), name, "lan-32", error_rate(distance))
            for name in FIGURE_12
            for distance in DISTANCES
            if distance != 64
        ),
        *(
            _experiment(
                f"bursts-{packets}-{PROTOCOLS[name].id}",
                name,
                "lan-32",
                bursts(packets),
                fixed=("medium",),
            )
            for name in TABLE_5
            for packets in BURSTS
        ),
        *(
            _experiment(f"peak-{setting}", "E2E", setting, {"cell.drop": {"down": 0.0, "up": 0.0}})
            for setting in ("lan-32", "wan-32")
        ),
        *(
            Experiment(
                name,
                quick=5,
                full=20,
                scenario=_FILE,
                overrides=PROTOCOLS[protocol].setting("lan-32" if name.endswith("-lan") else "wan-32"),
            )
            for name, protocol in TRACED.items()
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
