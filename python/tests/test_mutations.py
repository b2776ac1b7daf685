"""Claims about a mechanism differ when the mechanism is taken away, or its two sides are exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from lasthop.core.statistics import Sample
from lasthop.papers import paper
from lasthop.papers.evidence import At, Evidence, Sweep
from lasthop.papers.lhack.network import BER, bit_error_rate
from lasthop.papers.paper import Claim, Judgement, Paper, Settings
from lasthop.papers.runner import Selection, run_paper
from lasthop.papers.selective_fec.claims import SMALL
from lasthop.papers.snoop.network import FAST_RETRANSMISSIONS, SYSTEM
from lasthop.papers.splitting.network import SPLIT
from lasthop.papers.verdicts import AGREES, DIFFERS


@dataclass(frozen=True)
class Mutation:
    """What takes a mechanism away: another scheme, point or experiment in its place.

    Where a claim compares two sides they are exchanged: with one side in place of both it would compare a
    sample with itself, of which nothing can be told. `without` has settings that take the mechanism away, by
    experiment, with which they run again. `overrides` and `runs`, if not 0, are for experiments.
    `cheap` runs in every test run, whatever its paper.
    """

    mechanism: str
    paper: str
    claim: str
    schemes: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    experiments: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, Settings] = field(default_factory=dict)
    overrides: Settings = field(default_factory=dict)
    runs: int = 0
    cheap: bool = False


def _exchange(one: str, other: str) -> dict[str, str]:
    return {one: other, other: one}


_CHANNEL = "sweep.radio.channel.rayleigh-gilbert"
_SMALL_MARGINS = {f"{_CHANNEL}.fading_margin": SMALL, f"{_CHANNEL}.doppler": (0.1,)}
_LOSSIEST = {f"sweep.{BER}": (bit_error_rate(75),)}

_BUFFERS = {
    name: {f"lan-{one}-{name}": f"lan-{other}-{name}" for one, other in ((8, 32), (32, 8))}
    for name in ("e2e", "e2e-newreno", "e2e-eln", "e2e-eln-rxmt")
}

MUTATIONS = (
    Mutation(
        "a larger buffer",
        "comparison",
        "newreno-buffer",
        experiments=_BUFFERS["e2e"] | _BUFFERS["e2e-newreno"],
    ),
    Mutation(
        "a smaller buffer",
        "comparison",
        "rxmt-buffer",
        experiments=_BUFFERS["e2e-eln"] | _BUFFERS["e2e-eln-rxmt"],
    ),
    *(
        Mutation(mechanism, "comparison", claim, without={experiment: settings})
        for mechanism, claim, experiment, settings in (
            (
                "SMART at the base station",
                "wan-32-ll-smart",
                "wan-32-ll-smart",
                {"scheme.snoop.selective": False},
            ),
            ("partial ACKs", "newreno-buffer", "lan-32-e2e-newreno", {"tcp.flavour": "reno"}),
            ("a marked first duplicate", "rxmt-buffer", "lan-8-e2e-eln-rxmt", {"scheme.eln.early": False}),
            ("ELN that tells one loss", "wan-32-e2e-eln", "wan-32-e2e-eln", {"scheme.eln.memory": "all"}),
        )
    ),
    *(
        Mutation(mechanism, "comparison", claim, experiments=_exchange(*names), runs=8)
        for mechanism, claim, *names in (
            ("marks of losses on the air", "eln-wan", "wan-32-e2e-eln", "wan-32-e2e"),
            ("marks beside partial ACKs", "eln-newreno", "wan-32-e2e-eln", "wan-32-e2e-newreno"),
            ("SMART end to end", "smart-best", "lan-32-e2e-smart", "lan-32-e2e-ietf-sack"),
            ("SMART, with many losses", "sack-high-rates", "every-16-e2e-smart", "every-16-e2e-ietf-sack"),
            ("a split in the wide area", "split-wan", "wan-32-split", "wan-32-e2e"),
            (
                "no duplicate ACKs to the source",
                "best-wan-32",
                "wan-32-ll-smart-tcp-aware",
                "wan-32-ll-smart",
            ),
        )
    ),
    Mutation("notices of a bad state", "ebsn", "trace-ebsn", {"ebsn": "local-recovery"}),
    Mutation("local recovery", "ebsn", "trace-second", {"local-recovery": "basic"}),
    Mutation("what a quench cannot do", "ebsn", "quench", {"source-quench": "ebsn"}),
    Mutation("what a quench cannot gain", "ebsn", "quench-gains", {"source-quench": "ebsn"}),
    Mutation("retransmissions of the link", "ebsn", "local-recovery", _exchange("local-recovery", "basic")),
    Mutation(
        "small round trips",
        "ebsn",
        "small-round-trips",
        experiments=_exchange("clock-wide", "clock-local"),
    ),
    Mutation("losses of the bare link", "ebsn", "large-difference", {"basic": "ebsn"}),
    Mutation("notices, over a local area", "ebsn", "local-better", _exchange("ebsn", "basic")),
    Mutation("headers of small packets", "ebsn", "ebsn-size", values=_exchange("128 B", "1536 B")),
    Mutation("timeouts for lack of notices", "ebsn", "local-basic", _exchange("basic", "ebsn")),
    *(
        Mutation(
            f"a fine clock, {area} area",
            "ebsn",
            f"finer-clock-{area}",
            values=_exchange("10 ms", "500 ms"),
            overrides={
                "sweep.tcp.tick": (0.01, 0.1, 0.5),
                "sweep.radio.channel.two-state.bad": (bad_s,),
            },
        )
        for area, bad_s in (("wide", 4.0), ("local", 1.6))
    ),
    Mutation("notices, whatever the clock", "ebsn", "ebsn-clock", _exchange("ebsn", "local-recovery")),
    Mutation("notices, with each clock", "ebsn", "ebsn-any-clock", {"ebsn": "local-recovery"}),
    Mutation("longer bad periods", "ebsn", "longer-gain", values=_exchange("4 s", "16 s"), runs=300),
    Mutation("notices, beside rivals", "ebsn", "rivals", {"ebsn": "basic"}),
    Mutation("a short timeout", "ebsn", "new-timeout", values=_exchange("0.1", "1.0"), runs=300),
    Mutation("more bit errors", "ebsn", "noisier-gain", values=_exchange("0.000001", "0.00002")),
    Mutation(
        "a path for one mobile alone",
        "lhack",
        "smaller-product",
        experiments=_exchange("several-1", "several-8"),
    ),
    Mutation("last-hop acknowledgements", "lhack", "reduced", _exchange("lhack", "basic")),
    Mutation("losses told from hand-offs", "lhack", "handoff", _exchange("lhack", "basic"), runs=16),
    Mutation("a cut for congestion alone", "lhack", "halved", _exchange("lhack", "basic"), runs=40),
    Mutation("a window that lhacks extend", "lhack", "maintains", _exchange("lhack", "basic"), runs=40),
    Mutation("a window after timeouts", "lhack", "threshold-kept", _exchange("lhack", "basic"), runs=40),
    Mutation(
        "lhacks of two routers",
        "lhack",
        "several-routers",
        without={"several-routers": {"scheme.lhack.last_hop": False}},
        overrides=_LOSSIEST,
        runs=16,
    ),
    Mutation(
        "acknowledgements of the first hop",
        "lhack",
        "both-mobile",
        without={"both-mobile": {"scheme.lhack.first_hop": False}},
        overrides=_LOSSIEST,
        runs=16,
    ),
    Mutation(
        "the code on both ends",
        "selective-fec",
        "prevents-timeouts",
        without={"": {"scheme.selective-fec.segments": 0}},
        overrides=_SMALL_MARGINS,
    ),
    Mutation("the code, as fades deepen", "selective-fec", "insensitive", values={"selective": "none"}),
    Mutation("no code on the others", "selective-fec", "trade-off", values={"selective": "all"}),
    Mutation("a code at all", "selective-fec", "trade-off", values={"selective": "none"}),
    Mutation(
        "the code on all segments", "selective-fec", "great-improvement", values=_exchange("all", "none")
    ),
    Mutation("the code on some", "selective-fec", "close-to-none", values={"selective": "all"}),
    Mutation("the code on what matters", "selective-fec", "still-relevant", values={"selective": "none"}),
    Mutation("the cost of the code", "selective-fec", "six", values={"all": "none"}),
    Mutation(
        "the code on what leads to timeouts",
        "selective-fec",
        "prevents-timeouts",
        values={"selective": "none"},
    ),
    Mutation("copies from the base station", "snoop", "significantly-better", _exchange("snoop", "basic")),
    Mutation("progress of a sender alone", "snoop", "no-progress", _exchange("snoop", "basic")),
    Mutation(
        "packets kept at the next base station", "snoop", "not-idle", _exchange(SYSTEM, FAST_RETRANSMISSIONS)
    ),
    Mutation(
        "the copies of all packets at each base station",
        "snoop",
        "near-peak",
        _exchange(SYSTEM, FAST_RETRANSMISSIONS),
    ),
    Mutation("a proxy", "splitting", "who-gains-1", _exchange(SPLIT, "basic"), runs=20),
    Mutation("a control that bears losses", "splitting", "figure-4-bbr1-60", values={"linux-bbr": "linux"}),
    Mutation("a variable segment size", "vstcp", "typical", _exchange("vs-tcp", "metp")),
    Mutation(
        "no congestion control", "vstcp", "long-recovery", experiments=_exchange("uncontrolled", "normal")
    ),
    Mutation("loss windows of a hundred", "vstcp", "loss-window-100", values=_exchange("100", "5")),
    Mutation(
        "sizes by the loss rate", "vstcp", "smaller-2", experiments=_exchange("trace-2-3", "trace-2-11")
    ),
    Mutation(
        "sizes by losses",
        "vstcp",
        "smaller",
        experiments=_exchange("trace-3", "trace-11"),
        overrides={"limit": 20.0},
        cheap=True,
    ),
    Mutation(
        "a buffer for each host",
        "vstcp",
        "blocked",
        values=_exchange("fifo", "round-robin"),
        overrides={"limit": 20.0},
        cheap=True,
    ),
    Mutation(
        "a shorter connection",
        "vstcp",
        "split-is-faster",
        _exchange("basic", "i-tcp"),
        overrides={"limit": 300.0},
        runs=10,
    ),
    Mutation("sizes beside no window", "vstcp", "on-off", _exchange("metp", "vs-tcp")),
    Mutation("a largest size", "vstcp", "larger-maximum", values=_exchange("512 B", "1536 B")),
    Mutation("a wanted loss rate", "vstcp", "wanted-loss-overheads", values=_exchange("0.0", "1.0")),
    Mutation("a low smallest size", "vstcp", "too-high-minimum", values=_exchange("512 B", "128 B"), runs=10),
    Mutation("a smaller cut, and the window after it", "wenp", "quarter", _exchange("wenp", "basic")),
    Mutation("a smaller cut, and further losses", "wenp", "several-losses", _exchange("wenp", "basic")),
    Mutation("feedback of the radio network", "wenp", "fewer-timeouts", _exchange("wenp", "basic")),
    Mutation(
        "traffic that takes the buffer", "lhack", "premature", experiments=_exchange("decrease", "window-125")
    ),
    Mutation("a medium that stations share", "wenp", "first-loses", _exchange("wenp", "basic")),
    Mutation("alpha", "wenp", "alpha", experiments=_exchange("alpha-0.75", "alpha-0.5")),
)


class Mutated(Sweep):
    """A sweep that shows other schemes and points in place of some."""

    def __init__(self, sweep: Sweep, mutation: Mutation) -> None:
        super().__init__(sweep.study, sweep.axes, sweep.metrics)
        self._mutation = mutation

    def sample(self, metric: str, scheme: str, at: At) -> Sample:
        """Return the sample of what stands in its place."""
        elsewhere = {axis: self._mutation.values.get(value, value) for axis, value in at.items()}
        shown = self._mutation.schemes.get(scheme, scheme)
        # An exchanged experiment may have another scheme, alone.
        [*only] = self.schemes
        return super().sample(metric, shown if shown in only or len(only) > 1 else only[0], elsewhere)


@dataclass(frozen=True)
class Broken:
    """A claim that is judged by mutated evidence."""

    claim: Claim
    mutation: Mutation
    id: str = "broken"

    def __getattr__(self, name: str) -> object:
        return getattr(self.claim, name)

    def judge(self, evidence: Evidence) -> Judgement:
        """Judge the claim without the mechanism."""
        mutation = self.mutation
        sweeps = {
            name: Mutated(evidence.sweeps[mutation.experiments.get(name, name)], mutation)
            for name in evidence.sweeps
        }
        traces = {}
        for name in evidence.traced:
            there = evidence.traced[mutation.experiments.get(name, name)]
            # An experiment of another claim may lack the scheme that takes the place.
            shown = {scheme: mutation.schemes.get(scheme, scheme) for scheme in there}
            traces[name] = {scheme: there[other] for scheme, other in shown.items() if other in there}
        return self.claim.judge(Evidence(sweeps, traces, evidence.scenarios))


# An event in fewer than one run in twenty can be claimed from 72 runs without one on.
RUNS = {
    "comparison": 60,
    "ebsn": 80,
    "lhack": 4,
    "selective-fec": 500,
    "snoop": 10,
    "splitting": 8,
    "vstcp": 3,
    "wenp": 5,
}
DEAR = ("splitting", "vstcp")
"""Papers whose mutations run in `make test-all` alone: they take most of the time of all."""

SHORT: dict[str, Settings] = {"vstcp": {"limit": 120.0}, "lhack": {"limit": 200.0}}


def evidence_of(mutation: Mutation) -> tuple[str, tuple[tuple[str, Any], ...], int]:
    """Return what determines the runs that judge a mutation: paper, overrides, number of runs."""
    overrides = {**SHORT.get(mutation.paper, {}), **mutation.overrides}
    return mutation.paper, tuple(overrides.items()), mutation.runs or RUNS[mutation.paper]


@cache
def judgements(
    name: str, overrides: tuple[tuple[str, Any], ...], runs: int
) -> dict[str, tuple[Judgement, Judgement]]:
    """Return the judgements of whole and broken claims, by mechanism, for all mutations of the same runs."""
    found = paper(name)
    experiments = [
        replace(each, quick=runs, overrides={**each.overrides, **dict(overrides)})
        for each in found.experiments
    ]
    small = replace(found, experiments=experiments)
    mutations = [each for each in MUTATIONS if evidence_of(each) == (name, overrides, runs)]
    claims = {each.id: each for each in found.claims}
    pairs = [(claims[each.claim], Broken(claims[each.claim], each)) for each in mutations]
    selection = Selection(small, small.choose({}), False, (), [claim for pair in pairs for claim in pair])  # type: ignore[misc]
    judged = [judgement for _, judgement in run_paper(selection, None).judgements]
    return {
        each.mechanism: (whole, judgement_without(small, each) if each.without else broken)
        for each, whole, broken in zip(mutations, judged[::2], judged[1::2], strict=True)
    }


def judgement_without(whole: Paper, mutation: Mutation) -> Judgement:
    """Judge a claim by experiments with other settings."""
    changed = [
        replace(
            each,
            overrides={
                **each.overrides,
                **mutation.without.get("", {}),
                **mutation.without.get(each.name, {}),
            },
        )
        for each in whole.experiments
    ]
    broken = replace(whole, experiments=changed)
    claims = [each for each in whole.claims if each.id == mutation.claim]
    [(_, judgement)] = run_paper(Selection(broken, broken.choose({}), False, (), claims), None).judgements
    return judgement


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(
            each,
            id=each.mechanism,
            marks=[] if each.cheap or each.paper not in DEAR else pytest.mark.campaign,
        )
        for each in MUTATIONS
    ],
)
def test_without_its_mechanism_a_claim_differs(mutation: Mutation) -> None:
    whole, broken = judgements(*evidence_of(mutation))[mutation.mechanism]
    assert whole.verdict == AGREES, whole
    assert broken.verdict == DIFFERS, broken
