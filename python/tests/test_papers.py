"""Executable papers: what they run, what they draw and how they judge."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import CAMPAIGNS, ROOT, Command, results

import lasthop
from lasthop.core.statistics import Sample, estimate
from lasthop.core.units import metric_kind
from lasthop.papers import names, paper, papers
from lasthop.papers.comparison.network import BURSTS, FIGURE_12, PRINTED, PROTOCOLS, TABLE_5
from lasthop.papers.evidence import Evidence, Sweep, total
from lasthop.papers.paper import Campaign, Experiment, Judgement, Paper, Settings
from lasthop.papers.runner import Outcome, Selection, run_paper
from lasthop.papers.snoop.network import INTERVALS, NEVER, RATES, SENDERS, moving
from lasthop.papers.splitting.network import SIZE
from lasthop.papers.verdicts import AGREES, CANNOT_TELL, CONTRADICTS, DIFFERS, VERDICTS
from lasthop.papers.vstcp import figures, network
from lasthop.show import paper_report
from lasthop.study import Progress, Study, StudyError, Target

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUNS = {
    "comparison": 2,
    "ebsn": 8,
    "lhack": 2,
    "selective-fec": 50,
    "snoop": 2,
    "splitting": 1,
    "vstcp": 2,
    "wenp": 2,
}

# Experiments whose medians need more runs, where they are short.
MORE = {"segments-10": 10, "marquee-1": 8, "marquee-2": 8, "running-7a": 8, "queues-1": 7}

# The downloads of other experiments, which are not judged by so few runs, are a tenth as long.
SMALLER = {"splitting": (SIZE, 0.1)}

# Long runs are cut for the same reason; `make test-all` makes them whole.
SHORT_S = {"lhack": 200, "vstcp": 40, "wenp": 60}

# Runs of experiments without axes, where those of the command take too long.
KEPT = {"comparison": 20, "lhack": 10, "snoop": 20, "wenp": 12}


def documented(name: str) -> dict[str, str]:
    """Return the verdict of each result of a paper with many runs, as docs/reference/papers.md has it."""
    text = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    _, _, section = text.partition(f"\n### {name}\n")
    section = re.split(r"^##", section, flags=re.MULTILINE)[0]
    found: dict[str, str] = {}
    for verdict, listed in re.findall(
        r"^- \*\*(.+?)\*\*: (.+?)(?=^ *- |\Z)", section, re.MULTILINE | re.DOTALL
    ):
        names_of = re.findall(r"`([^`]+)`", listed)
        found |= dict.fromkeys(names_of[:1] if verdict == DIFFERS else names_of, verdict)
    return found


def limit(found: Paper, experiment: Experiment) -> Settings:
    """Return the setting that cuts the runs of an experiment, if they are longer."""
    chosen = found.scenario(experiment, found.choose({}))
    if found.name in SMALLER and experiment.name not in MORE and not CAMPAIGNS:
        key, share = SMALLER[found.name]
        return {key: round(share * chosen[key])}
    whole_s = chosen["limit"]
    short_s = SHORT_S.get(found.name, math.inf) if not CAMPAIGNS else math.inf
    return {"limit": short_s} if short_s < whole_s else {}


@pytest.fixture(scope="session", params=names())
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """Return a whole paper, with so few and so short runs that it takes a moment."""
    found = paper(request.param)
    runs = RUNS[found.name]
    experiments = [
        replace(
            each,
            quick=MORE.get(each.name, runs)
            if each.axes
            else min(each.quick, KEPT.get(found.name, each.quick)),
            overrides={**each.overrides, **limit(found, each)},
        )
        for each in found.experiments
    ]
    small = replace(found, experiments=experiments)
    return run_paper(Selection(small, small.choose({}), False, small.figures, small.claims), None, jobs=2)


@pytest.mark.parametrize("name", names())
def test_every_reading_of_a_paper_gives_valid_scenarios(name: str) -> None:
    found = paper(name)
    for reading in found.readings:
        assert len(reading.choices) > 1, f"{reading.name} leaves nothing open"
        for choice in reading.choices:
            chosen = found.choose({reading.name: choice.name})
            for experiment in found.experiments:
                assert found.scenario(experiment, chosen).points()


@pytest.mark.parametrize("name", names())
def test_a_reading_changes_an_experiment_unless_it_is_the_default(name: str) -> None:
    found = paper(name)
    default = [found.scenario(each, found.choose({})).to_toml() for each in found.experiments]
    for reading in found.readings:
        for choice in reading.choices[1:]:
            chosen = found.choose({reading.name: choice.name})
            scenarios = [found.scenario(each, chosen).to_toml() for each in found.experiments]
            assert default != scenarios or choice.metrics


@pytest.mark.parametrize("name", names())
def test_figures_and_claims_have_names_of_their_own(name: str) -> None:
    found = paper(name)
    for things in (found.figures, found.claims, found.experiments):
        ids = [getattr(each, "id", getattr(each, "name", "")) for each in things]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", names())
def test_a_reading_is_fitted_to_claims_of_its_paper(name: str) -> None:
    found = paper(name)
    ids = {claim.id for claim in found.claims}
    for reading in found.readings:
        assert set(reading.fitted) <= ids, reading.name
    text = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(f"| {name} | `")]
    documented_ones = [re.findall(r"`([a-z-]+)`", row.split("|")[2]) for row in rows]
    fitted = [each.name for each in found.readings if each.fitted]
    assert documented_ones == ([fitted] if fitted else [])


def test_the_default_readings_say_what_the_notes_of_their_choices_say() -> None:
    found = paper("ebsn")
    tcp = tomllib.loads(found.scenario(found.experiments[1], found.choose({})).to_toml())["tcp"]
    assert tcp["rtt_arithmetic"] == "ticks"
    assert tcp["rtt_samples"] == "every-ack"
    assert tcp["rto_min"] == "200 ms"
    assert tcp["rto_initial"] == "6 s"
    assert tcp["window_counts"] == "packets"
    assert tcp["initial_ssthresh"] == "window"
    assert tcp["late_backoff"] is True


def test_selective_fecs_default_readings_say_what_the_notes_of_their_choices_say() -> None:
    found = paper("selective-fec")
    said = tomllib.loads(found.scenario(found.experiments[0], found.choose({})).to_toml())
    assert said["radio"]["channel"]["rayleigh-gilbert"]["bad_ber"] == 0.01
    assert said["radio"]["arq"]["selective-repeat"]["feedback_delay"] == "60 ms"
    assert said["tcp"]["packet_size"] == "1440 B"
    assert said["tcp"]["initial_window"] == "1 segment"
    assert said["tcp"]["window"] == "28800 B"


def test_a_transfer_has_as_many_segments_in_every_reading() -> None:
    found = paper("selective-fec")
    for units in ("3", "4"):
        for experiment in found.experiments:
            scenario = found.scenario(experiment, found.choose({"units": units}))
            said = tomllib.loads(scenario.to_toml())
            size, packet = (
                int(said[t][k].removesuffix(" B")) for t, k in (("transfer", "size"), ("tcp", "packet_size"))
            )
            assert size / (packet - 40) == (50 if "fifty" in experiment.name else 10)


def test_lhacks_default_readings_say_what_the_notes_of_their_choices_say() -> None:
    found = paper("lhack")
    tcp = tomllib.loads(found.scenario(found.experiments[0], found.choose({})).to_toml())["tcp"]
    assert (tcp["flavour"], tcp["rules"], tcp["careful"]) == ("newreno", "ns2", False)
    assert (tcp["tick"], tcp["rto_min"]) == ("500 ms", "1 s")
    assert tcp["window"] == "32000 B"


def test_vstcps_default_readings_say_what_the_notes_of_their_choices_say() -> None:
    found = paper("vstcp")
    said = tomllib.loads(found.scenario(found.experiments[0], found.choose({})).to_toml())
    assert (said["tcp"]["flavour"], said["tcp"]["rto_min"]) == ("reno", "1 s")
    for scheme in ("metp", "vs-tcp"):
        assert said["scheme"][scheme]["recovery"] == "go-back-n"
        assert said["scheme"][scheme]["wireless"] == {"window": "10 packets", "rto_min": "200 ms"}
    table_3 = {
        "initial_size": "512 B",
        "largest_size": "1024 B",
        "smallest_size": "128 B",
        "step": "128 B",
        "wanted_loss": 0.1,
        "loss_window": 5,
        "loss_rate": "average",
        "growth": "per-ack",
        "losses": "duplicates",
    }
    assert {key: said["scheme"]["vs-tcp"][key] for key in table_3} == table_3


def test_snoops_default_readings_say_what_the_notes_of_their_choices_say() -> None:
    found = paper("snoop")
    experiments = {each.name: each for each in found.experiments}

    def read(name: str) -> dict[str, Any]:
        return tomllib.loads(found.scenario(experiments[name], found.choose({})).to_toml())

    said = read("every-256K")
    assert (said["tcp"]["flavour"], said["tcp"]["congestion"], said["tcp"]["ack_every"]) == (
        "reno",
        "net3",
        2,
    )
    assert said["tcp"]["window"] == "65535 B"
    assert said["radio"]["channel"]["iid"]["ber"] == 1 / 256_000
    snoop = said["scheme"]["snoop"]
    assert (snoop["dupacks"], snoop["bursts"], snoop["initial"]) == (1, True, "200 ms")
    assert (snoop["min_timeout"], snoop["persist"]) == ("40 ms", "200 ms")
    for interval in INTERVALS:
        said = read(moving(interval))
        assert said["tcp"]["window"] == "65535 B"
        mobile = said["mobility"]["mobile"]
        # A hand-off takes place once in this time, the gap included.
        stay = float(mobile["moves"]["periodic"]["stay"].removesuffix(" ms").removesuffix(" s"))
        stay /= 1000 if mobile["moves"]["periodic"]["stay"].endswith("ms") else 1
        assert mobile["gap"] == "25 ms"
        assert stay + 0.025 == pytest.approx(float(interval.removesuffix(" s")))
    assert read(moving(NEVER))["mobility"]["mobile"]["moves"]["timetable"] == []


@pytest.mark.parametrize("errors_per", ["byte", "bit"])
def test_vstcps_channels_lose_what_they_are_called_after(errors_per: str) -> None:
    for rate in network.RATES:
        channel = network.channel(rate, errors_per)
        scenario = lasthop.load(ROOT / "python/lasthop/papers/vstcp/wlan.toml").with_(
            {network.CHANNEL: channel}
        )
        lost = scenario.packet_loss(network.SEGMENT + network.HEADER)
        assert lost == pytest.approx(rate / 100, abs=2e-5)
        leave_error, leave_error_free, error_rate = (
            channel[key] for key in ("leave_error", "leave_error_free", "error_rate")
        )
        # All three are as far along their printed ranges, but for e at the ends of the axis.
        along = (0.4 - leave_error) / 0.3
        assert (leave_error_free - 0.5) / 0.4 == pytest.approx(along, abs=1e-3)
        if 0 < along < 1:
            assert (error_rate - 0.003) / 0.007 == pytest.approx(along, abs=2e-3)


def test_the_worked_example_is_the_one_in_scenarios() -> None:
    found = paper("ebsn")
    there = lasthop.load(ROOT / "scenarios/ebsn-example.toml")
    chosen = found.choose({"backoff": "doubles"})
    assert found.scenario(found.experiments[0], chosen).hash == there.hash


def test_every_claim_has_a_verdict_and_every_figure_its_numbers(outcome: Outcome) -> None:
    assert len(outcome.judgements) == len(outcome.selection.paper.claims)
    for claim, judgement in outcome.judgements:
        assert judgement.verdict in VERDICTS, claim.id
        assert judgement.margin, f"{claim.id} must show the rule that it is judged by"
        assert judgement.found, claim.id
        if judgement.verdict == CONTRADICTS:
            assert judgement.note, f"{claim.id} must say under which reading it can be had"
    for plot, figure in outcome.figures:
        assert figure.data, plot.id


def test_what_cannot_be_told_names_the_part_that_is_undecided(outcome: Outcome) -> None:
    interval = r"(.+ to .+|no interval|.+ in each run, too few runs)"
    for claim, judgement in outcome.judgements:
        if judgement.verdict == CANNOT_TELL:
            note = rf"undecided: (.+: )?{interval}, n = [\d,]+ \(agrees if .+\)(; .+)?"
            assert re.fullmatch(note, judgement.note), f"{claim.id}: {judgement.note}"


def test_margins_without_a_source_in_the_paper_are_called_ours(outcome: Outcome) -> None:
    tables = [f"{setting}-{each.id}" for name, each in PROTOCOLS.items() for setting in PRINTED[name]]
    ours = {
        "comparison": {"peak-lan-32", "peak-wan-32", "figure-4-cut", "figure-4-growth", *tables}
        | {f"goodput-{each}" for each in tables}
        | {f"bursts-{packets}-{PROTOCOLS[name].id}" for name in TABLE_5 for packets in BURSTS}
        | {f"figure-12-{PROTOCOLS[name].id}" for name in FIGURE_12},
        "ebsn": {"quench", "local-basic", "ebsn-any-clock"},
        "lhack": {"each-corruption", "slow-start", "halved", "threshold-kept"},
        "selective-fec": {"insensitive"},
        "snoop": {"no-progress"} | {f"{name}-{rate.lower()}" for name in SENDERS for rate in RATES},
        "splitting": {each.id for each in paper("splitting").claims}
        - {f"who-gains-{number}" for number in (1, 2, 3)}
        - {"bbr1-none", "heuristic-7a", "heuristic-7b"},
        "vstcp": {"long-recovery", "duration", "loss-window-5", "wanted-loss-0-1"}
        | {f"{key.removesuffix('_size')}-{size}" for key, size in network.TABLE_3.items()}
        | {f"table-4-{rate:g}".replace(".", "-") for rate in network.TABLE_4},
        "wenp": {"quarter"},
    }
    found = {claim.id for claim, judgement in outcome.judgements if "our margin" in judgement.margin}
    assert found == ours[outcome.selection.paper.name]


@pytest.mark.parametrize("name", names())
def test_the_verdict_on_each_result_is_documented(name: str) -> None:
    assert sorted(documented(name)) == sorted(
        claim.id for claim in paper(name).claims if not claim.definition
    )
    text = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {name} \|((?: \d+ \|)+)$", text, flags=re.MULTILINE)
    counts = [list(documented(name).values()).count(verdict) for verdict in VERDICTS]
    assert [int(count) for count in row.split("|")[:-2]] == counts


def test_few_runs_give_the_verdicts_of_many_or_none(outcome: Outcome) -> None:
    verdicts = {claim.id: judgement.verdict for claim, judgement in outcome.judgements}
    told = 0
    for claim, verdict in documented(outcome.selection.paper.name).items():
        if verdict != CANNOT_TELL:
            assert verdicts[claim] in (verdict, CANNOT_TELL), claim
            told += verdicts[claim] != CANNOT_TELL
    # And they give enough of them for this to be a test.
    assert told >= len(verdicts) / 4


def test_definitions_are_not_counted_as_results(outcome: Outcome) -> None:
    definitions = [claim.id for claim, _ in outcome.judgements if claim.definition]
    assert sum(outcome.counts().values()) == len(outcome.judgements) - len(definitions)
    for claim, judgement in outcome.judgements:
        if claim.definition:
            assert judgement.verdict == AGREES, claim.id


PRECISE = Campaign(
    "It is a test.",
    [Target("throughput_bps", relative=0.1), Target("timeouts", relative=0.3, absolute=1.0)],
    least=10,
    most=200,
)


def _local(full: Campaign | int, quick: int = 10) -> Paper:
    """Return the paper ebsn with its local experiment alone, of three points."""
    found = paper("ebsn")
    experiment = next(each for each in found.experiments if each.name == "local")
    overrides = {"transfer.size": 500_000, "sweep.radio.channel.two-state.bad": [0.4, 1.0, 1.6]}
    return replace(found, experiments=[replace(experiment, quick=quick, full=full, overrides=overrides)])


def _selection(small: Paper, full: bool) -> Selection:
    figures = [each for each in small.figures if each.id == "10"]
    claims = [each for each in small.claims if each.id in ("local-better", "local-gain")]
    return Selection(small, small.choose({}), full, figures, claims)


def test_each_scheme_stops_by_itself_and_pairs_are_the_runs_that_both_have(tmp_path: Path) -> None:
    selection = _selection(_local(PRECISE), full=True)
    outcomes = [
        run_paper(selection, tmp_path, jobs=1),
        run_paper(selection, None, jobs=2),
        run_paper(selection, tmp_path),
    ]
    assert all(each.judgements == outcomes[0].judgements for each in outcomes)
    study = Study.open(tmp_path / "local,seed=1.sqlite")
    sweep = Sweep(study, {"bad": "radio.channel.two-state.bad"})
    counts = set()
    for at in sweep.points():
        for scheme in sweep.schemes:
            runs = sweep.runs(scheme, at)
            counts.add(runs)
            checkpoints = [n for n in (10, 15, 23, 35, 53, 80, 120, 180, 200) if n <= runs]
            excess = [
                max(
                    target.excess(
                        estimate(sweep.sample(target.metric, scheme, at)[:n], metric_kind(target.metric))
                    )
                    for target in PRECISE.targets
                )
                for n in checkpoints
            ]
            assert all(each > 1 for each in excess[:-1])
            assert excess[-1] <= 1
    assert len(counts) > 1
    reached = outcomes[0].reached["local"]
    assert (reached.least, reached.most) == (min(counts), max(counts))
    at = {"bad": "1.6 s"}
    found = sweep.ratio("throughput_bps", ("ebsn", at), ("basic", at))
    assert len(found.values) == min(sweep.runs("ebsn", at), sweep.runs("basic", at))


def test_between_experiments_too_the_runs_are_paired_that_both_have() -> None:
    sweeps = {}
    for name, runs in (("few", 10), ("many", 15)):
        outcome_of = _local(runs, quick=runs).experiments[0]
        scenario = paper("ebsn").scenario(outcome_of, paper("ebsn").choose({}))
        study = Study(scenario, precision=None, runs=(runs, runs))
        study.run()
        sweeps[name] = Sweep(study, outcome_of.axes)
    at = {"bad": "1 s"}
    evidence = Evidence(sweeps, {}, {})
    found = evidence.ratio("throughput_bps", ("few", "ebsn", at), ("many", "basic", at))
    same = sweeps["few"].ratio("throughput_bps", ("ebsn", at), ("basic", at))
    assert found.values.tolist() == same.values.tolist()
    assert len(found.values) == 10


def test_points_weigh_the_same_in_a_total_however_many_runs_they_have(tmp_path: Path) -> None:
    run_paper(_selection(_local(PRECISE), full=True), tmp_path)
    sweep = Sweep(Study.open(tmp_path / "local,seed=1.sqlite"), {"bad": "radio.channel.two-state.bad"})
    amount, _, runs = total(sweep, "timeouts", "basic")
    means = [sweep.mean("timeouts", "basic", at).mean for at in sweep.points()]
    assert len({sweep.runs("basic", at) for at in sweep.points()}) > 1
    assert amount / runs == pytest.approx(np.mean(means))


def test_the_best_size_is_the_one_over_the_runs_that_all_sizes_have(monkeypatch: pytest.MonkeyPatch) -> None:
    fades = np.random.default_rng(1).normal(0.0, 0.1, 10)

    class Sweep:
        def values(self, axis: str) -> list[str]:
            return [f"{size} B" for size in network.SIZES]

        def sample(self, metric: str, scheme: str, at: dict[str, str]) -> np.ndarray:
            size = int(at["size"].removesuffix(" B"))
            # The best size made more runs, through worse fades.
            better = 1.0 - abs(size - 320) / 1e4 + fades
            return np.append(better, np.full(30, 0.5)) if size == 320 else better

    monkeypatch.setattr(figures, "at_rate", lambda *where, **at: at)
    evidence = Evidence({"sizes": Sweep()}, {}, {})  # type: ignore[dict-item]
    assert figures.best_size(evidence, 3.0) == 320


def test_sizes_to_compare_are_fixed_before_the_runs_are_seen() -> None:
    class Sweep:
        def __init__(self, seed: int) -> None:
            self.generator = np.random.default_rng([18, seed])

        def values(self, axis: str) -> list[str]:
            assert axis == "size"
            return [f"{size} B" for size in network.SIZES]

        def settings(self, axis: str) -> dict[str, Any]:
            assert axis == "channel"
            return {str(rate): network.channel(rate) for rate in network.TABLE_4}

        def sample(self, metric: str, scheme: str, at: dict[str, str]) -> np.ndarray:
            return self.generator.normal(10.0, 1.0, 20)

    claim = next(each for each in paper("vstcp").claims if each.id == "moves-left")
    evidence = [Evidence({"sizes": Sweep(seed)}, {}, {}) for seed in range(200)]  # type: ignore[dict-item]
    # All sizes are alike. The best of fifteen is better than most others, but not than one fixed before.
    found = [claim.judge(each).verdict for each in evidence]
    assert found.count(AGREES) <= 2


def test_runs_that_lack_a_metric_are_no_event() -> None:
    class Lacking(Sweep):
        def __init__(self) -> None:
            self.axes = {}

        def points(self) -> list[dict[str, str]]:
            return [{"bad": "1 s"}]

        def sample(self, metric: str, scheme: str, at: Mapping[str, str]) -> Sample:
            return np.append(np.zeros(400), np.full(100, np.nan))

    claim = next(each for each in paper("ebsn").claims if each.id == "ebsn-timeouts")
    judgement = claim.judge(Evidence({"wide": Lacking()}, {}, {}))
    assert judgement.verdict == AGREES
    assert judgement.found.startswith("in none of 400 runs")


def test_basic_tcp_in_the_worked_example_has_no_chance_in_it() -> None:
    found = paper("ebsn")
    scenario = found.scenario(found.experiments[0], found.choose({}))
    times = [scenario.run("basic", run=run, trace=True).events()["time_s"].tolist() for run in range(3)]
    assert times[0] == times[1] == times[2]


class Captured:
    """A claim that takes something from the evidence."""

    definition, id = False, "captured"

    def __init__(self, experiment: str, take: Callable[[Evidence], Any]) -> None:
        self.experiments, self.take = (experiment,), take
        self.taken: Any = None

    def judge(self, evidence: Evidence) -> Judgement:
        self.taken = self.take(evidence)
        return Judgement(AGREES, "")


def _run(
    experiment: Experiment,
    take: Callable[[Evidence], Any],
    stores: Path | None = None,
    *,
    full: bool = False,
    jobs: int | None = None,
    run: int = 0,
    progress: Callable[[str, Progress | None], None] | None = None,
) -> Any:
    """Run one experiment of the paper of WENP, shortened, and return what is taken from its evidence."""
    short = replace(experiment, overrides={**experiment.overrides, "limit": 30.0, "warmup": 5.0})
    found = replace(paper("wenp"), experiments=[short])
    claim: Any = Captured(short.name, take)
    run_paper(Selection(found, found.choose({}), full, (), (claim,), run=run), stores, jobs, progress)
    return claim.taken


TABLE = next(each for each in paper("wenp").experiments if each.name == "table")


def test_an_experiment_stops_by_the_metrics_of_connections() -> None:
    metrics = ["connection.1.throughput_bps", "connection.8.throughput_bps"]
    targets = [Target(metrics[0], relative=0.02), Target(metrics[1], relative=0.3)]
    experiment = replace(TABLE, full=Campaign("for a test", targets, least=4, most=20))
    told: list[tuple[int, int]] = []

    def tell(what: str, now: Progress | None) -> None:
        if now is not None:
            told.append((now.done, now.expected))

    def take(evidence: Evidence) -> dict[str, list[Sample]]:
        sweep = evidence.sweep("table")
        return {scheme: [sweep.sample(each, scheme, {}) for each in metrics] for scheme in sweep.schemes}

    samples, again = (_run(experiment, take, full=True, jobs=jobs, progress=tell) for jobs in (1, 2))
    for scheme, found in samples.items():
        assert all(np.array_equal(*pair) for pair in zip(found, again[scheme], strict=True))
        runs = len(found[0])
        excess = [
            max(
                target.excess(estimate(sample[:n], "amount"))
                for target, sample in zip(targets, found, strict=True)
            )
            for n in (4, 6, 9, 14, 20)
            if n <= runs
        ]
        assert all(each > 1 for each in excess[:-1])
        assert excess[-1] <= 1 or runs == 20
    assert told[-1][0] == sum(len(found[0]) for found in samples.values())
    assert all(done <= expected for done, expected in told)


def test_stored_runs_are_reused_and_those_of_another_scenario_refused(tmp_path: Path) -> None:
    made: list[int] = []

    def take(evidence: Evidence) -> list[float]:
        return [*evidence.values("table", "wenp", "connection.8.throughput_bps")]

    def make(runs: int, jobs: int) -> list[float]:
        told = Progress()

        def tell(what: str, now: Progress | None) -> None:
            told.made = told.made if now is None else now.made

        found: list[float] = _run(replace(TABLE, quick=runs), take, tmp_path, jobs=jobs, progress=tell)
        made.append(told.made)
        assert len(found) == runs
        return found

    make(2, jobs=1)
    again = make(3, jobs=2)
    assert make(3, jobs=1) == again == _run(replace(TABLE, quick=3), take)
    # Two runs of two schemes, then one more of each, then none.
    assert made == [4, 2, 0]
    changed = replace(TABLE, overrides={**TABLE.overrides, "wired.delay": 0.009})
    with pytest.raises(StudyError, match=r"holds another study: .*the scenario .* has changed; store this"):
        _run(changed, take, tmp_path)


def test_counters_of_schemes_and_metrics_of_connections_are_told_apart() -> None:
    names = ("timeouts", "wenp.marked_acks", "connection.1.timeouts")

    def take(evidence: Evidence) -> list[tuple[list[float], Any]]:
        run = evidence.scenario("table").run("wenp", seed=1, run=0)
        assert np.isnan(evidence.values("table", "basic", "wenp.marked_acks")).all()
        return [(evidence.values("table", "wenp", name).tolist(), run.value(name)) for name in names]

    found = _run(replace(TABLE, quick=1, metrics=["connection.1.timeouts"]), take)
    assert all(values == [alone] for values, alone in found)
    assert len({alone for _, alone in found}) == len(names)


def test_runs_with_traces_begin_with_the_one_that_figures_show() -> None:
    experiment = next(each for each in paper("wenp").experiments if each.name == "trace")
    seen: list[int] = []

    def tell(what: str, now: Progress | None) -> None:
        if now is not None:
            seen.append(now.done)

    traced = _run(
        replace(experiment, quick=2), lambda evidence: evidence.traced["trace"], run=5, jobs=2, progress=tell
    )
    for scheme, runs in traced.items():
        assert [(run.scheme, run.run) for run in runs] == [(scheme, 5), (scheme, 6)]
        assert len(runs[0].events("1")["time_s"])
    assert seen[-1] == sum(map(len, traced.values()))


def test_an_interrupted_campaign_keeps_its_runs(tmp_path: Path) -> None:
    def interrupt(what: str, now: Progress | None) -> None:
        if now is not None and now.done >= 3:
            raise KeyboardInterrupt

    made: list[int] = []

    def tell(what: str, now: Progress | None) -> None:
        if now is not None:
            made.append(now.made)

    experiment = replace(TABLE, quick=4)
    with pytest.raises(KeyboardInterrupt):
        _run(experiment, lambda evidence: None, tmp_path, jobs=1, progress=interrupt)
    _run(experiment, lambda evidence: None, tmp_path, jobs=1, progress=tell)
    assert made[-1] <= 8 - 3


def test_a_full_paper_reports_its_precision(tmp_path: Path) -> None:
    outcome = run_paper(_selection(_local(PRECISE), full=True), None)
    page = paper_report.write_html(outcome, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "It is a test." in page
    assert page.count("throughput_bps ±10 %, reached") == 2
    (experiment,) = paper_report.as_json(outcome)["experiments"]
    assert experiment["precision"][0]["metric"] == "throughput_bps"
    assert 0 < experiment["precision"][0]["widest"] <= 1
    narrow = replace(PRECISE, targets=[Target("throughput_bps", relative=0.001)], most=10)
    (missed,) = run_paper(_selection(_local(narrow), full=True), None).reached.values()
    assert re.fullmatch(
        r"10 runs of each scheme at each point; throughput_bps ±0.1 %, not reached by 6 of 6 .*", missed.text
    )


def test_the_json_has_the_keys_that_are_documented(outcome: Outcome) -> None:
    found = json.loads(json.dumps(paper_report.as_json(outcome)))
    keys = re.findall(r"^\| `([a-z0-9_]+)", _section("lasthop paper NAME --json"), flags=re.MULTILINE)
    assert list(found) == list(dict.fromkeys(keys))
    claimed = "id section statement paper ours ci95 found verdict margin fails_if kind note fitted reading"
    assert {" ".join(claim) for claim in found["claims"]} == {claimed}
    points = [point for figure in found["figures"] for line in figure["series"] for point in line["points"]]
    assert all({"y", "event", "time_s"} & set(point) for point in points)


def _section(heading: str) -> str:
    text = (ROOT / "docs/reference/json.md").read_text()
    return text.split(f"## `{heading}`")[1].split("\n## ")[0]


@pytest.fixture(scope="session")
def report(outcome: Outcome, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a paper."""
    return paper_report.write_html(outcome, tmp_path_factory.mktemp("report") / "report.html")


def test_the_report_is_one_file(outcome: Outcome, report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(outcome.figures)
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'id="([^"]+)"', page))
    assert page.count("data:text/csv;base64,") == len(outcome.figures)
    assert f"<code>lasthop paper {outcome.selection.paper.name}</code>" in page
    for verdict, count in outcome.counts().items():
        assert f"<b>{count}</b><span>{verdict}</span>" in page
    assert "data-value=" in page
    for claim, _ in outcome.judgements:
        assert f'id="{claim.id}"' in page
        assert f'href="#{claim.id}"' in page
    contradictions = {"comparison": 1, "snoop": 1, "splitting": 0, "vstcp": 1}
    found = contradictions.get(outcome.selection.paper.name, 2)
    assert page.count("There is no contradiction if") == found
    assert "{{" not in page


def test_the_report_fits_a_telephone(report: Path, browser: Browser) -> None:
    """At 390 px nothing scrolls sideways, also with all details opened."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide = "[...document.querySelectorAll('html, table, pre')].filter(e => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{wide}.map(each => each.outerHTML.slice(0, 80))") == []
    page.close()


def test_the_same_seed_gives_the_same_verdicts_for_any_jobs(outcome: Outcome, tmp_path: Path) -> None:
    selection = replace(outcome.selection, figures=(), claims=outcome.selection.paper.claims[-2:])
    once = run_paper(selection, tmp_path, jobs=1).judgements
    assert [each for _, each in once] == [each for _, each in outcome.judgements[-2:]]


def test_papers_are_listed(command: Command) -> None:
    done = command("paper", "--json")
    assert done.returncode == 0
    assert [each["name"] for each in json.loads(done.stdout)] == [each.name for each in papers()]


def test_a_single_figure_can_be_requested(command: Command, tmp_path: Path) -> None:
    done = command("paper", "ebsn", "--figure", "4", "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [figure["id"] for figure in found["figures"]] == ["4"]
    assert found["claims"] == []
    names = {*results(tmp_path)}
    assert names == {"figure-4.png", "figure-4.svg", "figure-4.csv", "report.html", "results.json"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], 'there is no paper "nope"'),
        (["ebsn", "--figure", "99"], "has no figure 99"),
        (["ebsn", "--reading", "min-rto"], "expected NAME=CHOICE"),
        (["ebsn", "--reading", "min-rto=7"], "cannot be '7', only 2-ticks, 1s"),
        (["ebsn", "--reading", "nope=7"], "no reading 'nope'"),
    ],
)
def test_an_unknown_request_is_refused_with_the_known_names(
    command: Command, arguments: list[str], message: str
) -> None:
    done = command("paper", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_packet_size_table_names_the_best_and_those_as_good(command: Command) -> None:
    where = "scenarios/ebsn-wide-area.toml"
    done = command("packet-size", where, "--sizes", "128 B, 512 B, 1536 B", "--runs", "40", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["table"]
    assert [row["scheme"] for row in rows] == lasthop.load(ROOT / where).schemes
    for row in rows:
        assert row["packet_size"] in row["as_good"]
        assert row["throughput_bps"]["n"] == 40
    ebsn = rows[-1]
    assert ebsn["packet_size"] == "1536 B"
    assert "128 B" not in ebsn["as_good"]


def test_the_packet_size_table_has_a_row_for_each_error_characteristic(command: Command) -> None:
    channel = 'sweep.radio.channel.two-state.bad=["1 s", "4 s"]'
    done = command(
        "packet-size",
        "scenarios/ebsn-wide-area.toml",
        "--set",
        channel,
        "--sizes",
        "256 B,512 B",
        "--scheme",
        "basic",
        "--runs",
        "5",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^1 s +basic", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^4 s +basic", done.stdout, flags=re.MULTILINE)


def test_an_impossible_size_is_refused(command: Command) -> None:
    done = command("packet-size", "scenarios/ebsn-wide-area.toml", "--sizes", "12 B")
    assert done.returncode == 2
    assert "found 12 B, expected more than the header" in done.stderr
