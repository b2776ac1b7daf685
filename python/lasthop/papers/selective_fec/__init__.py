"""Chiasserini, Garetto and Meo: forward error correction on the segments that matter."""

from lasthop.papers.paper import Experiment, Paper
from lasthop.papers.selective_fec.claims import CLAIMS
from lasthop.papers.selective_fec.figures import FIGURES
from lasthop.papers.selective_fec.readings import READINGS

_FILE = "transfer"
_CHANNEL = "radio.channel.rayleigh-gilbert"
_PROTECT = "scheme.selective-fec.protect"
_FEEDBACK = "radio.arq.selective-repeat.feedback_delay"

_MARGINS = f'sweep.{_CHANNEL}.fading_margin={{from="1 dB", to="15 dB", step="1 dB"}}'
_DOPPLERS = f"sweep.{_CHANNEL}.doppler=[0.1, 0.2]"
_POLICIES = f'sweep.{_PROTECT}=["none", "selective", "all"]'
_FURTHER = f'sweep.{_PROTECT}=["selective", "retransmitted", "repeated-units"]'


def _experiment(name: str, axes: dict[str, str], full: int, *overrides: str, fixed: str = "") -> Experiment:
    about = (fixed,) if fixed else ()
    return Experiment(name, axes, quick=500, full=full, scenario=_FILE, overrides=overrides, fixed=about)


_CAMPAIGN = {"margin": f"{_CHANNEL}.fading_margin", "doppler": f"{_CHANNEL}.doppler", "protect": _PROTECT}
_BY_MARGIN = {"margin": f"{_CHANNEL}.fading_margin", "protect": _PROTECT}

PAPER = Paper(
    name="selective-fec",
    title="Improving TCP over Wireless by Selectively Protecting Packet Transmissions",
    authors="C. F. Chiasserini, M. Garetto, M. Meo",
    source="IEEE Workshop on Mobile and Wireless Communications Networks, Stockholm, 2002",
    readings=READINGS,
    experiments=(
        # The paper's campaign: 3.6 million runs.
        _experiment("ten", _CAMPAIGN, 20_000, _MARGINS, _DOPPLERS, _POLICIES),
        _experiment("fifty", _CAMPAIGN, 20_000, "transfer.size=70000 B", _MARGINS, _DOPPLERS, _POLICIES),
        # What it does not show.
        _experiment("further", _BY_MARGIN, 5_000, _MARGINS, _FURTHER),
        _experiment("further-fifty", _BY_MARGIN, 5_000, "transfer.size=70000 B", _MARGINS, _FURTHER),
        _experiment(
            "error-rate",
            {"ber": f"{_CHANNEL}.bad_ber", "protect": _PROTECT},
            5_000,
            f"sweep.{_CHANNEL}.bad_ber=[1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 5e-2, 0.1]",
            _POLICIES,
            fixed="bad-ber",
        ),
        _experiment(
            "feedback",
            {"delay": _FEEDBACK, "doppler": f"{_CHANNEL}.doppler"},
            5_000,
            f"{_PROTECT}=none",
            f'sweep.{_FEEDBACK}=["0 s", "20 ms", "40 ms", "60 ms", "100 ms", "150 ms", "200 ms"]',
            _DOPPLERS,
            fixed="feedback",
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
