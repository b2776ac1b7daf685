"""Jayanathan and Sirisena: radio network feedback in a WLAN."""

from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.papers.wenp.claims import CLAIMS
from lasthop.papers.wenp.figures import ALPHAS, DIVISORS, FIGURES, FLAVOURS, THRESHOLDS, throughput
from lasthop.papers.wenp.network import DIVISOR, STATIONS, drops, uploads
from lasthop.papers.wenp.readings import READINGS
from lasthop.study import Target

_FILE = "wlan"


# Figures show the first run; definitions hold in each.
_TRACES = 4
# A run has about 200 recoveries, of which 30 are from several losses.
_RECOVERIES = 10
_TRACED = {"limit": 120.0, "warmup": 0.0}
# Readings of the cell and its stations, which this network does not have; its window is swept.
_CELL = ("divisor", "careful", "direction", "queue", "control-rate", "window")


def _stations(relative: float) -> list[Target]:
    # An absolute precision for stations with very low throughput.
    return [Target(throughput(station), relative, absolute=3e3) for station in STATIONS]


_TABLE = Campaign(
    "The paper states a margin of 5 % for the throughput of each station.",
    _stations(0.0125),
    least=20,
    most=200,
)
_VARIANTS = Campaign(
    "The figures compare readings in which stations differ by a tenth or more.",
    _stations(0.025),
    least=20,
    most=100,
)


def _experiment(
    name: str,
    further: Settings | None = None,
    *,
    full: Campaign = _VARIANTS,
    fixed: tuple[str, ...] = (),
    quick: int = 4,
) -> Experiment:
    overrides = {**drops(DIVISOR), **(further or {})}
    return Experiment(
        name,
        quick=quick,
        full=full,
        scenario=_FILE,
        overrides=overrides,
        fixed=fixed,
        traced=False,
        metrics=[throughput(station) for station in STATIONS],
    )


# The network of figure 3: servers and fixed hosts behind switches, 10 Mb/s each, with their own traffic.
_WIRED = ["server-switch1", "server2-switch1", "switch1-ap", "FH1-switch2", "FH2-switch2", "switch2-ap"]
_OFFICE = {
    "topology": {"graph": {"wired": _WIRED, "cell": [f"ap-MH{station}" for station in STATIONS]}},
    "wired": {"rate": 10e6, "delay": 0.0015},
    **{f"connection.{station}": {"from": "server", "to": f"MH{station}"} for station in STATIONS},
    "application.pages": {"kind": "http", "from": "FH1", "to": "server2"},
    "application.mail": {"kind": "email", "from": "FH2", "to": "server2"},
    "application.records": {"kind": "database", "from": "FH1", "to": "server"},
}

PAPER = Paper(
    name="wenp",
    title="Improving TCP Performance over 802.11 WLAN with Radio Network Feedback",
    authors="A. Jayanathan, H. R. Sirisena",
    source="IEEE International Conference on Networks, 2006",
    readings=READINGS,
    experiments=(
        _experiment("table", full=_TABLE, quick=40),
        Experiment(
            "trace",
            quick=_TRACES,
            full=_TRACES,
            scenario=_FILE,
            overrides={**drops(DIVISOR), **_TRACED},
        ),
        Experiment(
            "recoveries",
            quick=_TRACES,
            full=_RECOVERIES,
            scenario=_FILE,
            overrides={**drops(DIVISOR), **_TRACED},
            fixed=("careful",),
        ),
        *(
            Experiment(
                f"flight-{threshold}",
                {"window": "tcp.initial_window"},
                quick=1,
                full=1,
                scenario="flight",
                overrides={"scheme.wenp.threshold": threshold},
                fixed=_CELL,
            )
            for threshold in (2, 3)
        ),
        _experiment("upload", uploads(DIVISOR), fixed=("divisor", "direction")),
        *(_experiment(f"alpha-{alpha}", {"scheme.wenp.alpha": alpha}) for alpha in ALPHAS),
        *(
            _experiment(f"threshold-{threshold}", {"scheme.wenp.threshold": threshold})
            for threshold in THRESHOLDS
        ),
        *(_experiment(f"divisor-{divisor}", drops(divisor), fixed=("divisor",)) for divisor in DIVISORS),
        *(
            _experiment(f"flavour-{flavour}", {"tcp.flavour": flavour}, fixed=("recovery",))
            for flavour in FLAVOURS
        ),
        _experiment("office", _OFFICE),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
