"""TR-96-014: packet size, local recovery and explicit feedback over a wireless last hop."""

from lasthop.papers.ebsn.claims import CLAIMS
from lasthop.papers.ebsn.figures import FIGURES
from lasthop.papers.ebsn.readings import READINGS
from lasthop.papers.paper import Experiment, Paper

PAPER = Paper(
    name="ebsn",
    title="Improving Performance of TCP over Wireless Networks",
    authors="B. S. Bakshi, P. Krishna, N. H. Vaidya, D. K. Pradhan",
    source="Technical Report TR-96-014, Texas A&M University, May 1996",
    readings=READINGS,
    experiments=(
        Experiment("trace", fixed=("retransmissions",)),
        Experiment(
            "wide",
            {"bad": "radio.channel.two-state.bad", "size": "tcp.packet_size"},
            quick=60,
            full=2000,
        ),
        Experiment("local", {"bad": "radio.channel.two-state.bad"}, quick=60, full=2000),
        Experiment(
            "limit",
            {
                "backoff": "radio.arq.stop-and-wait.backoff.uniform",
                "most": "radio.arq.stop-and-wait.retransmissions",
            },
            quick=60,
            full=2000,
            fixed=("retransmissions",),
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
