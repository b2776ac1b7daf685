"""Park, Park and Park: split connections with a segment size that follows the loss rate."""

from lasthop.papers.paper import Campaign, Experiment, Paper, Settings
from lasthop.papers.vstcp.claims import CLAIMS
from lasthop.papers.vstcp.figures import FIGURES
from lasthop.papers.vstcp.findings import MEAN_SIZE
from lasthop.papers.vstcp.network import (
    CHANNEL,
    DISTINGUISHING,
    HEADER,
    HOSTS,
    OTHER,
    PARAMETERS,
    RATES,
    SIZE,
    SIZES,
    SOME,
    TABLE_4,
    channel,
    sweep_of,
    swept,
    two_hosts,
)
from lasthop.papers.vstcp.readings import ON_OFF, READINGS, SELECTIVE, counted, windows
from lasthop.study import Target

_FILE = "wlan"
_RATE = {"channel": CHANNEL}
# Six of these runs have the length of one run in the paper.
_SHORT = {"limit": 300.0}
_SHORTER = {"limit": 100.0}
_METHOD_2 = {"scheme.vs-tcp.method": 2}
_METHODS = {"sweep.scheme.vs-tcp.method": [1, 2]}
_EXTREMES = swept((3.0, 11.0))


def _schemes(*names: str) -> Settings:
    return {"schemes": names}


def _campaign(needs: str, precision: float) -> Campaign:
    # The paper makes 100 runs of each.
    return Campaign(needs, [Target("throughput_bps", relative=precision)], least=10, most=100)


_GAINS = _campaign(
    (
        "Gains over nocon are stated as 10 % and 30 %, and schemes with congestion control are "
        "far behind. Nocon and VS-TCP vary so little that ten runs suffice to distinguish them."
    ),
    0.02,
)
_BEST = _campaign("Segment sizes next to the best one lose half a percent or more.", 0.005)
_TRACES = 10


def _experiment(
    name: str,
    axes: dict[str, str],
    quick: int,
    full: Campaign | int,
    *changes: Settings,
    fixed: tuple[str, ...] = (),
    metrics: tuple[str, ...] = (),
) -> Experiment:
    overrides = {key: value for each in changes for key, value in each.items()}
    return Experiment(
        name, axes, quick, full, scenario=_FILE, overrides=overrides, fixed=fixed, metrics=metrics
    )


_SIZES = {f"sweep.{SIZE}": [size + HEADER for size in SIZES]}


def _variant(name: str, reading: str, changes: Settings) -> Experiment:
    schemes = _schemes("metp", "vs-tcp")
    return _experiment(name, _RATE, 4, _GAINS, _SHORT, schemes, swept(SOME), changes, fixed=(reading,))


def _trace(rate: float, name: str = "trace", *changes: Settings) -> Experiment:
    changes = ({"limit": 120.0, CHANNEL: channel(rate)}, _schemes("vs-tcp"), *changes)
    return _experiment(f"{name}-{rate:.0f}", {}, 4, _TRACES, *changes)


def _parameter(key: str) -> Experiment:
    """Return the experiment with both methods and several values of a parameter in bytes."""
    axes = {key: f"scheme.vs-tcp.{key}", "method": "scheme.vs-tcp.method", "channel": CHANNEL}
    swept_sizes = {f"sweep.scheme.vs-tcp.{key}": PARAMETERS[key]}
    changes = (_SHORTER, _schemes("vs-tcp"), swept_sizes, _METHODS, _EXTREMES)
    return _experiment(sweep_of(key), axes, 4, _BEST, *changes)


# A window equal to the capacity of the path, with one lost packet.
_BURST = {
    "limit": 20.0,
    **_schemes("basic"),
    "tcp.window": "46 packets",
    "radio.channel": {"fixed-periods": {"good": 9.999, "bad": 0.0005}},
}
_READINGS = {
    "growth": "scheme.vs-tcp.growth",
    "losses": "scheme.vs-tcp.losses",
    "window": "scheme.vs-tcp.wireless.window",
    "method": "scheme.vs-tcp.method",
    "channel": CHANNEL,
}

PAPER = Paper(
    name="vstcp",
    title="Enhancing TCP Performance over Wireless Network with Variable Segment Size",
    authors="K. Park, S. Park, D. Park",
    source="Journal of Communications and Networks, vol. 4, no. 2, June 2002",
    readings=READINGS,
    experiments=(
        # The paper's experiments: 100 runs of 30 minutes for each point and scheme.
        _experiment("rate", _RATE, 4, _GAINS, swept(RATES)),
        _experiment("method-2", _RATE, 4, _GAINS, swept(RATES), _schemes("vs-tcp"), _METHOD_2),
        _experiment(
            "sizes",
            {"size": SIZE, "channel": CHANNEL},
            6,
            _BEST,
            _SHORT,
            _schemes("metp"),
            swept(tuple(TABLE_4)),
            _SIZES,
        ),
        _trace(3.0),
        _trace(11.0),
        _trace(3.0, "trace-2", _METHOD_2),
        _trace(11.0, "trace-2", _METHOD_2),
        _experiment("normal", {}, 1, 1, _BURST),
        _experiment("uncontrolled", {}, 1, 1, _BURST, {"tcp.congestion": "none"}),
        # Experiments for statements without a figure, and for readings.
        _experiment(
            "loss-window",
            {"loss_window": "scheme.vs-tcp.loss_window", "channel": CHANNEL},
            4,
            _GAINS,
            _SHORT,
            _schemes("vs-tcp"),
            _METHOD_2,
            {"sweep.scheme.vs-tcp.loss_window": [1, 2, 3, 5, 10, 20, 50, 100]},
            _EXTREMES,
        ),
        _experiment(
            "wanted-loss",
            {"wanted_loss": "scheme.vs-tcp.wanted_loss", "channel": CHANNEL},
            4,
            _GAINS,
            _SHORT,
            _schemes("vs-tcp"),
            _METHOD_2,
            {"sweep.scheme.vs-tcp.wanted_loss": [0.0, 0.02, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0]},
            _EXTREMES,
        ),
        *map(_parameter, PARAMETERS),
        _experiment(
            "filter",
            {"loss_rate": "scheme.vs-tcp.loss_rate", "channel": CHANNEL},
            4,
            _GAINS,
            _SHORTER,
            _schemes("metp", "vs-tcp"),
            _METHOD_2,
            {"sweep.scheme.vs-tcp.loss_rate": ["average", "low-pass"]},
            swept(RATES),
        ),
        # The control of the size by the transport layer, and by a link whose frames follow the losses.
        _experiment("frames", _RATE, 4, 20, _SHORTER, _schemes("vs-tcp", "rlp"), _EXTREMES),
        # Two hosts at a base station: its link retransmits, from one buffer or two, or VS-TCP controls sizes.
        _experiment(
            "frames-of-two",
            {"dispatch": "shared.dispatch", "channel": OTHER},
            4,
            20,
            _SHORTER,
            _schemes("basic"),
            two_hosts(100),
            {"sweep.shared.dispatch": ["fifo", "round-robin"]},
            metrics=(f"connection.{HOSTS[0]}.throughput_bps",),
        ),
        _experiment(
            "segments-of-two",
            {"channel": OTHER},
            4,
            20,
            _SHORTER,
            _schemes("vs-tcp"),
            two_hosts(0),
            metrics=tuple(f"connection.{host}.{metric}" for host in HOSTS for metric in MEAN_SIZE),
        ),
        # The control of the size end to end, beside segments of 512 B.
        _experiment("fixed", _RATE, 8, 20, _SHORTER, _schemes(*DISTINGUISHING), _EXTREMES),
        _experiment(
            "end-to-end",
            _RATE,
            8,
            20,
            _SHORTER,
            _schemes(*(f"{name} + vs-tcp" for name in DISTINGUISHING)),
            _EXTREMES,
            {"tcp.packet_size": 1024 + HEADER, "scheme.vs-tcp": {"split": False}},
            fixed=("window", "window-counts", "recovery", "local-rto-min"),
        ),
        *(_variant(f"window-{packets}", "window", windows(packets)) for packets in (8, 10, 12)),
        _experiment(
            "on-off",
            _RATE,
            4,
            _GAINS,
            _SHORT,
            _schemes("metp", "vs-tcp"),
            swept(SOME),
            ON_OFF,
            fixed=("nocon-window", "window"),
        ),
        _variant("selective", "recovery", SELECTIVE),
        _experiment(
            "sizes-selective",
            {"size": SIZE, "channel": CHANNEL},
            2,
            _GAINS,
            _SHORT,
            _schemes("metp"),
            _EXTREMES,
            _SIZES,
            SELECTIVE,
            fixed=("recovery",),
        ),
        _experiment(
            "readings",
            _READINGS,
            2,
            _GAINS,
            _SHORT,
            _schemes("metp", "vs-tcp"),
            {
                "sweep.scheme.vs-tcp.growth": ["per-ack", "per-window"],
                "sweep.scheme.vs-tcp.losses": ["duplicates", "segments"],
            },
            counted(10),
            _METHODS,
            swept(SOME),
            fixed=("growth", "losses", "window-counts"),
        ),
    ),
    figures=FIGURES,
    claims=CLAIMS,
)
