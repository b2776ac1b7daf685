"""TR-96-014: packet size, local recovery and explicit feedback over a wireless last hop."""

from lasthop.papers.ebsn.claims import CLAIMS
from lasthop.papers.ebsn.figures import BEYOND, CLOCKS, FIGURES, NOISE, THROUGHPUT
from lasthop.papers.ebsn.findings import BETWEEN, KNOWN, OPTIMAL, RIVALS, TIMEOUTS
from lasthop.papers.ebsn.readings import READINGS
from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.study import Target

_THROUGHPUT = Target(THROUGHPUT, relative=0.02)


def _campaign(least: int, transfer: float) -> Campaign:
    """Return the campaign for averages over transfers of a given size in bytes."""
    return Campaign(
        (
            "The paper's numbers scatter by 4 %, and verdicts allow for twice that. A quarter of this"
            " margin, 2 %, does not change a verdict, nor do 4 %, or 1 % of the transfer, for "
            "retransmitted data. Claims that something never happens need additional runs."
        ),
        [_THROUGHPUT, Target("retransmitted_bytes", relative=0.04, absolute=transfer / 100)],
        least=least,
        most=4000,
    )


# The paper shows one run; verdicts are about the share of our runs like it.
_TRACES = 100

_BAD = "radio.channel.two-state.bad"


def _clock(area: str, overrides: Settings, bads: tuple[str, ...], quick: int, least: int) -> Experiment:
    """Return the experiment with local recovery and EBSN under clocks of several granularities."""
    return Experiment(
        f"clock-{area}",
        {"tick": "tcp.tick", "bad": _BAD},
        quick=quick,
        full=Campaign(
            (
                "A finer clock has more timeouts, in paired runs; with the coarsest one they are rare in the "
                "local area. It changes the throughput by one to three per cent."
            ),
            [_THROUGHPUT, Target("timeouts", relative=0.05, absolute=0.05)],
            least=least,
            most=4000,
        ),
        scenario=area,
        overrides={
            "sweep.tcp.tick": CLOCKS,
            f"sweep.{_BAD}": bads,
            "schemes": ["local-recovery", "ebsn"],
            # Below two ticks of each clock, which are the minimum.
            "tcp.rto_min": 0.001,
            **overrides,
        },
    )


def _lossier(name: str, axis: str, sweeps: Settings) -> Experiment:
    """Return the experiment with a wide area of more losses, for packets of 1536 B."""
    return Experiment(
        name,
        {name: axis},
        quick=100,
        full=_campaign(least=800, transfer=100e3),
        scenario="wide",
        overrides={"schemes": ["basic", "ebsn"], "sweep.tcp.packet_size": [1536], **sweeps},
    )


PAPER = Paper(
    name="ebsn",
    title="Improving Performance of TCP over Wireless Networks",
    authors="B. S. Bakshi, P. Krishna, N. H. Vaidya, D. K. Pradhan",
    source="Technical Report TR-96-014, Texas A&M University, May 1996",
    readings=READINGS,
    experiments=(
        Experiment("trace", quick=_TRACES, full=_TRACES, fixed=("retransmissions",)),
        Experiment(
            "wide",
            {"bad": "radio.channel.two-state.bad", "size": "tcp.packet_size"},
            quick=200,
            full=_campaign(least=800, transfer=100e3),
        ),
        Experiment(
            "local",
            {"bad": "radio.channel.two-state.bad"},
            quick=200,
            full=_campaign(least=1500, transfer=4e6),
        ),
        Experiment(
            "limit",
            {
                "backoff": "radio.arq.stop-and-wait.backoff.uniform",
                "most": "radio.arq.stop-and-wait.retransmissions",
            },
            quick=60,
            full=Campaign(
                (
                    "The figure shows where the limit has an effect. The claim is about timeouts, which occur"
                    " in a seventh of the transfers or more."
                ),
                [_THROUGHPUT, Target("timeouts", relative=0.05, absolute=0.05)],
                least=300,
                most=4000,
            ),
            fixed=("retransmissions",),
        ),
        Experiment(
            "trace-coarse",
            quick=20,
            full=_TRACES,
            scenario="trace",
            overrides={"schemes": ["local-recovery"], "tcp.tick": 0.5, "tcp.rto_min": 1.0},
            fixed=("retransmissions", "min-rto"),
        ),
        _clock("wide", {"sweep.tcp.packet_size": ["576 B"]}, ("1 s", "4 s"), 100, 300),
        _clock("local", {}, ("400 ms", "1.6 s"), 20, 1500),
        Experiment(
            "whole-packets",
            {"bad": _BAD, "size": "tcp.packet_size"},
            quick=200,
            full=_campaign(least=800, transfer=100e3),
            scenario="wide",
            overrides={
                "schemes": ["basic"],
                "radio.mtu": "none",
                "sweep.tcp.packet_size": [*OPTIMAL.values(), "1536 B"],
                f"sweep.{_BAD}": [*OPTIMAL],
            },
        ),
        _lossier("bad", _BAD, {f"sweep.{_BAD}": BEYOND}),
        _lossier(
            "ber",
            "radio.channel.two-state.good_ber",
            {"sweep.radio.channel.two-state.good_ber": NOISE, f"sweep.{_BAD}": [4.0]},
        ),
        Experiment(
            "default-size",
            {"bad": _BAD, "size": "tcp.packet_size"},
            quick=100,
            full=_campaign(least=800, transfer=100e3),
            scenario="wide",
            overrides={"schemes": ["basic"], "sweep.tcp.packet_size": [BETWEEN, *KNOWN]},
        ),
        # The rivals of section 2 have no ARQ below them, as basic TCP. A split connection is closed.
        Experiment(
            "rivals",
            {"bad": _BAD},
            quick=40,
            full=_campaign(least=400, transfer=100e3),
            scenario="wide",
            overrides={
                "schemes": ["basic", *RIVALS, "ebsn"],
                "sweep.tcp.packet_size": [576],
                "tcp.close": True,
            },
        ),
        Experiment(
            "timer",
            {"most": "radio.arq.stop-and-wait.retransmissions", "timeout": "scheme.ebsn.timeout"},
            quick=20,
            full=200,
            scenario="wide",
            overrides={
                "schemes": ["ebsn"],
                "sweep.tcp.packet_size": [576],
                f"sweep.{_BAD}": [4.0],
                "sweep.radio.arq.stop-and-wait.retransmissions": ["unlimited", 13],
                "sweep.scheme.ebsn.timeout": TIMEOUTS,
            },
            fixed=("retransmissions",),
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
