"""TR-96-014: packet size, local recovery and explicit feedback over a wireless last hop."""

from lasthop.papers.ebsn.claims import CLAIMS
from lasthop.papers.ebsn.figures import FIGURES, THROUGHPUT
from lasthop.papers.ebsn.readings import READINGS
from lasthop.papers.paper import Campaign, Experiment, Paper
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
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
