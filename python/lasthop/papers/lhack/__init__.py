"""Cobb and Agrawal: acknowledgements of the last hop distinguish congestion from corruption."""

from lasthop.papers.lhack.claims import CLAIMS
from lasthop.papers.lhack.figures import FIGURES
from lasthop.papers.lhack.findings import LOST_DACKS
from lasthop.papers.lhack.network import (
    BER,
    CEILING,
    MOBILES,
    PAYLOAD_BITS,
    RATES,
    STATIONARY,
    TWO_ROUTERS,
    bit_error_rate,
    several,
    swept,
)
from lasthop.papers.lhack.readings import READINGS
from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.study import Target

_FILE = "path"
_RATE = {"ber": BER}
_SHORT = {"limit": 60.0, "warmup": 0.0}
_EXTRA = {
    "traffic.extra": {
        "from": "R2",
        "to": "R3",
        "packet_size": 500,
        "start": 10.0,
        "stop": 25.0,
        "law": {"poisson": {"rate": 160e3}},
    }
}
# Every 20 s with a swept length; there are no other losses on the air.
_HANDOFFS = {
    "radio.channel": "perfect",
    "radio.outage": {"first": 20.0, "every": 20.0, "lasts": 0.1},
    "sweep.radio.outage.lasts": ["100 ms", "200 ms", "500 ms", "1 s", "2 s"],
}


# Experiments with traces have fixed numbers of runs.
_SHOWN, _TRACES = 40, 100
_MAXIMUM = CEILING * PAYLOAD_BITS
_SHARES = Campaign(
    (
        "The text states shares of the maximum without decimals; one of them, 60 %, is close to "
        'ours. A mobile source gains about a tenth, which is the margin of "similar"; this takes '
        "60 paired runs."
    ),
    [Target("throughput_bps", absolute=0.005 * _MAXIMUM)],
    least=60,
    most=200,
)
_FURTHER = Campaign(
    "The compared schemes and variants differ by at least 2 % of the maximum.",
    [Target("throughput_bps", absolute=0.01 * _MAXIMUM)],
    least=20,
    most=200,
)
# Gains go down to a thousandth with eight mobile hosts, in paired runs.
_SEVERAL = 100
# A mobile source gains a thousandth, which is visible in paired runs but not in the means of the stopping
# rule.
_PAIRS = 100


def _window(name: str, messages: int) -> Experiment:
    overrides = {**_SHORT, BER: bit_error_rate(messages)}
    return Experiment(name, quick=_SHOWN, full=_TRACES, scenario=_FILE, overrides=overrides)


def _variant(name: str, overrides: Settings | None = None, *, full: Campaign = _FURTHER) -> Experiment:
    overrides = {**swept(RATES), **(overrides or {})}
    return Experiment(name, _RATE, quick=8, full=full, scenario=_FILE, overrides=overrides)


def _lossiest(name: str, overrides: Settings) -> Experiment:
    overrides = {**swept((75,)), **overrides}
    return Experiment(name, _RATE, quick=8, full=_FURTHER, scenario=_FILE, overrides=overrides)


def _handoff(name: str, wireless: str, full: Campaign | int) -> Experiment:
    overrides = {"topology.path.wireless": wireless, **_HANDOFFS}
    return Experiment(
        name, {"lasts": "radio.outage.lasts"}, quick=8, full=full, scenario=_FILE, overrides=overrides
    )


PAPER = Paper(
    name="lhack",
    title="Congestion or Corruption? A Strategy for Efficient Wireless TCP Sessions",
    authors="J. A. Cobb, P. Agrawal",
    source="IEEE Symposium on Computers and Communications, Alexandria, Egypt, 1995",
    readings=READINGS,
    experiments=(
        _variant("rate", full=_SHARES),
        _variant("mobile-source", {"topology.path.wireless": "first"}, full=_SHARES),
        _variant("both-mobile", {"topology.path.wireless": "both"}),
        _variant("every-third", {"tcp.ack_every": 3}),
        # Of the two mobiles, or of one, whose messages take either of two routers of a cell in turn.
        _lossiest("stationary-host", {"topology.path.wireless": "both", "schemes": STATIONARY}),
        _lossiest("several-routers", {**TWO_ROUTERS, "schemes": ["lhack"]}),
        Experiment(
            "lost-dacks",
            {"loss": "radio.uplink.channel.frame-loss.loss"},
            quick=8,
            full=_FURTHER,
            scenario=_FILE,
            overrides={
                BER: bit_error_rate(150),
                "radio.uplink.channel": {"frame-loss": {"loss": 0.0}},
                "sweep.radio.uplink.channel.frame-loss.loss": LOST_DACKS,
            },
        ),
        _window("window-150", 150),
        _window("window-125", 125),
        Experiment(
            "decrease",
            quick=_SHOWN,
            full=_TRACES,
            scenario=_FILE,
            overrides={**_SHORT, BER: bit_error_rate(125), **_EXTRA, "schemes": ["lhack"]},
        ),
        Experiment(
            "decrease-wired",
            quick=_SHOWN,
            full=_TRACES,
            scenario=_FILE,
            overrides={**_SHORT, "topology.path.wireless": "none", **_EXTRA, "schemes": ["basic"]},
        ),
        Experiment(
            "both-window",
            quick=2,
            full=20,
            scenario=_FILE,
            overrides={BER: bit_error_rate(75), "topology.path.wireless": "both", "schemes": ["lhack"]},
        ),
        Experiment(
            "recovery",
            {"flavour": "tcp.flavour", "ber": BER},
            quick=8,
            full=_FURTHER,
            scenario=_FILE,
            overrides={
                "sweep.tcp.flavour": ["tahoe", "reno", "newreno", "sack", "go-back-n"],
                **swept((75, 150, 250)),
            },
            fixed=("recovery",),
        ),
        Experiment(
            "printed",
            _RATE,
            quick=8,
            full=_FURTHER,
            scenario=_FILE,
            overrides={f"sweep.{BER}": [3e-7, 1e-6, 3e-6, 1e-5, 3e-5]},
        ),
        *(
            Experiment(
                f"several-{mobiles}",
                quick=8,
                full=_SEVERAL,
                scenario=_FILE,
                overrides={BER: bit_error_rate(150), **several(mobiles)},
                traced=False,
            )
            for mobiles in MOBILES
        ),
        _handoff("handoff", "last", _FURTHER),
        _handoff("handoff-source", "first", _PAIRS),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
