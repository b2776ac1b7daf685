"""Yuan, Rossman and Winstein: split connections for the senders of 2025."""

from lasthop.papers.paper import Paper
from lasthop.papers.splitting.claims import CLAIMS
from lasthop.papers.splitting.experiments import EXPERIMENTS
from lasthop.papers.splitting.figures import FIGURES
from lasthop.papers.splitting.readings import READINGS

PAPER = Paper(
    name="splitting",
    title="Internet Connection Splitting: What's Old is New Again",
    authors="G. Yuan, T. Rossman, K. Winstein",
    source="USENIX Annual Technical Conference, 2025",
    readings=READINGS,
    experiments=EXPERIMENTS,
    figures=FIGURES,
    claims=CLAIMS,
)
