"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading
from lasthop.papers.splitting.experiments import GRIDS, sweeps

READINGS = (
    Reading(
        "offload",
        (
            "What does netem lose? The artifact leaves segmentation offload on, with a comment that packets "
            "have the size of the MTU."
        ),
        (
            Choice(
                "on",
                (
                    "super-packets of two segments, the least that Linux makes: netem draws once for each, "
                    "since they are cut only behind it, and as many packets are lost, in pairs"
                ),
            ),
            Choice("off", "single packets, as the comment says", sweeps(offload=False)),
        ),
    ),
    Reading(
        "queue",
        "Which queue is before the links of figures 1, 4 and 7, and of the heuristic?",
        (
            Choice("red", "RED, the default of the artifact"),
            Choice("bdp", "a FIFO of the bandwidth-delay product", sweeps(queue="bdp")),
        ),
    ),
    Reading(
        "patience",
        (
            "When is a download given up, so that the heuristic counts no throughput? The artifact's code "
            "says 180 s, but figure 4 has cells that take 250 s."
        ),
        (
            Choice(
                "600s",
                (
                    "600 s: with it, CUBIC has a split above zero in 7,535 of our settings, with 500 s in "
                    "7,365; the artifact counts 7,455"
                ),
            ),
            Choice("180s", "180 s", {key: {"limit": 180.0} for key in GRIDS.values()}),
        ),
        fitted=("cubic-gains",),
    ),
)
