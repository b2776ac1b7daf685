"""Chiasserini, Garetto and Meo: forward error correction on the segments that matter."""

from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.papers.selective_fec.claims import CLAIMS, FILE_SIZES, RETRANSMISSIONS, SMALL, VERSIONS
from lasthop.papers.selective_fec.figures import FIGURES
from lasthop.papers.selective_fec.readings import READINGS
from lasthop.study import Target

_FILE = "transfer"
_CHANNEL = "radio.channel.rayleigh-gilbert"
_PROTECT = "scheme.selective-fec.protect"
_FEEDBACK = "radio.arq.selective-repeat.feedback_delay"

_RETRANSMISSIONS = "radio.arq.selective-repeat.retransmissions"

_FIFTY = {"transfer.size": 70_000}
_MARGINS = {f"sweep.{_CHANNEL}.fading_margin": {"from": "1 dB", "to": "15 dB", "step": "1 dB"}}
_DOPPLERS = {f"sweep.{_CHANNEL}.doppler": [0.1, 0.2]}
_POLICIES = {f"sweep.{_PROTECT}": ["none", "selective", "all"]}
_FURTHER = {f"sweep.{_PROTECT}": ["selective", "retransmitted", "repeated-units"]}


_CAMPAIGN = Campaign(
    (
        "The text compares completion times within a tenth, for which a quarter of that suffices."
        " The numbers of units must be distinguishable between neighbouring margins."
    ),
    [Target("completion_time_s", relative=0.025), Target("link_bits", relative=0.005)],
    least=1000,
    most=20_000,
)
_BESIDES = Campaign(
    "The figures show effects of a tenth and more.",
    [Target("completion_time_s", relative=0.025), Target("link_bits", relative=0.01)],
    least=500,
    most=50_000,
)


def _experiment(
    name: str, axes: dict[str, str], full: Campaign, overrides: Settings, *, fixed: str = "", quick: int = 500
) -> Experiment:
    about = (fixed,) if fixed else ()
    return Experiment(name, axes, quick=quick, full=full, scenario=_FILE, overrides=overrides, fixed=about)


_BY_ALL = {"margin": f"{_CHANNEL}.fading_margin", "doppler": f"{_CHANNEL}.doppler", "protect": _PROTECT}
_BY_MARGIN = {"margin": f"{_CHANNEL}.fading_margin", "protect": _PROTECT}

PAPER = Paper(
    name="selective-fec",
    title="Improving TCP over Wireless by Selectively Protecting Packet Transmissions",
    authors="C. F. Chiasserini, M. Garetto, M. Meo",
    source="IEEE Workshop on Mobile and Wireless Communications Networks, Stockholm, 2002",
    readings=READINGS,
    experiments=(
        # The paper's campaign, of 20,000 runs at each of 180 points.
        _experiment("ten", _BY_ALL, _CAMPAIGN, {**_MARGINS, **_DOPPLERS, **_POLICIES}),
        _experiment("fifty", _BY_ALL, _CAMPAIGN, {**_FIFTY, **_MARGINS, **_DOPPLERS, **_POLICIES}),
        # Experiments beyond the paper.
        _experiment("further", _BY_MARGIN, _BESIDES, {**_MARGINS, **_FURTHER}),
        _experiment("further-fifty", _BY_MARGIN, _BESIDES, {**_FIFTY, **_MARGINS, **_FURTHER}),
        _experiment(
            "error-rate",
            {"ber": f"{_CHANNEL}.bad_ber", "protect": _PROTECT},
            _BESIDES,
            {f"sweep.{_CHANNEL}.bad_ber": [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 5e-2, 0.1], **_POLICIES},
            fixed="bad-ber",
        ),
        _experiment(
            "feedback",
            {"delay": _FEEDBACK, "doppler": f"{_CHANNEL}.doppler"},
            _BESIDES,
            {
                _PROTECT: "none",
                f"sweep.{_FEEDBACK}": [0.0, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2],
                **_DOPPLERS,
            },
            fixed="feedback",
        ),
        _experiment(
            "versions",
            {**_BY_MARGIN, "flavour": "tcp.flavour"},
            _BESIDES,
            {
                f"sweep.{_CHANNEL}.fading_margin": SMALL[::2],
                f"sweep.{_PROTECT}": ["none", "selective"],
                "sweep.tcp.flavour": VERSIONS,
            },
            quick=200,
        ),
        _experiment(
            "file-sizes",
            {**_BY_MARGIN, "size": "transfer.size"},
            _BESIDES,
            {
                f"sweep.{_CHANNEL}.fading_margin": SMALL[::2],
                f"sweep.{_PROTECT}": ["none", "selective"],
                "sweep.transfer.size": [1400 * segments for segments in FILE_SIZES],
            },
            quick=100,
        ),
        _experiment(
            "attempts",
            {**_BY_MARGIN, "retransmissions": _RETRANSMISSIONS},
            _BESIDES,
            {
                f"sweep.{_CHANNEL}.fading_margin": ["1 dB", "3 dB", "6 dB"],
                f"sweep.{_PROTECT}": ["none", "selective"],
                f"sweep.{_RETRANSMISSIONS}": RETRANSMISSIONS,
            },
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
