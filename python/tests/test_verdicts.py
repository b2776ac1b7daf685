"""The rules of verdicts: how often they are wrong about claims whose truth is known."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from conftest import ROOT

from lasthop.core.statistics import Sample
from lasthop.papers import names, paper
from lasthop.papers.verdicts import (
    AGREES,
    CANNOT_TELL,
    DIFFERS,
    QUANTIFIERS,
    Criterion,
    Measured,
    Region,
    Unit,
    about_gain,
    above,
    below,
    calculated,
    deciding,
    doubles,
    largest,
    never,
    rate,
    ratio,
    same,
    share_of,
    typical,
    undecided,
    verdict,
    within,
)

RUNS = (10, 60, 2000)
PRINTED = 10.0
MARGIN = 0.8
STUDIES = 1000

# At the edge of a region an interval of 95 % errs in one direction in 2.5 % of the studies, which 1,000 of
# them show to 1.5 % (three standard errors).
MOST = 0.025 + 3 * math.sqrt(0.025 * 0.975 / STUDIES)


def shares(judge: Callable[[np.random.Generator], str], studies: int = STUDIES) -> Counter[str]:
    """Return how often each verdict is given, as a share."""
    found = Counter(judge(np.random.default_rng([18, study])) for study in range(studies))
    return Counter({each: count / studies for each, count in found.items()})


def printed_number(truth: float, runs: int) -> Counter[str]:
    region = within(PRINTED, MARGIN, "")
    return shares(
        lambda g: verdict([Criterion(Measured(g.normal(truth, 0.15 * truth, runs), "amount"), region)])
    )


@pytest.mark.parametrize("runs", RUNS)
def test_a_true_number_is_hardly_ever_called_different(runs: int) -> None:
    found = printed_number(PRINTED, runs)
    assert found[DIFFERS] <= 0.01
    if runs == 2000:
        assert found[AGREES] >= 0.99


@pytest.mark.parametrize("runs", RUNS)
def test_a_false_number_is_hardly_ever_agreed_with(runs: int) -> None:
    for truth in (PRINTED - 2 * MARGIN, PRINTED + 2 * MARGIN):
        found = printed_number(truth, runs)
        assert found[AGREES] <= 0.01
        if runs == 2000:
            assert found[DIFFERS] >= 0.99


@pytest.mark.parametrize("runs", RUNS)
def test_at_the_margin_neither_verdict_is_given_more_than_one_time_in_twenty(runs: int) -> None:
    for truth in (PRINTED - MARGIN, PRINTED + MARGIN):
        found = printed_number(truth, runs)
        assert found[AGREES] <= MOST
        assert found[DIFFERS] <= MOST
        assert found[CANNOT_TELL] >= 0.85


def test_fewer_runs_agree_less() -> None:
    agreeing = [printed_number(PRINTED, runs)[AGREES] for runs in (5, 10, 20, 40, 80, 160)]
    assert agreeing == sorted(agreeing)
    assert agreeing[0] < 0.1
    assert agreeing[-1] > 0.95


def _pair(truth: float, runs: int, generator: np.random.Generator) -> Measured:
    fades = generator.lognormal(0.0, 0.3, runs)
    return ratio(truth * fades * generator.lognormal(0, 0.1, runs), fades * generator.lognormal(0, 0.1, runs))


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(
    ("region", "true", "false", "edge"),
    [
        (doubles(), 2.0, 1.6, 1.8),
        (about_gain(0.5), 1.5, 1.29, 1.4),
        (about_gain(0.3), 1.3, 1.5, 1.36),
        (same(), 1.0, 1.2, 1.1),
        (above(), 1.2, 0.85, 1.0),
    ],
    ids=["doubles", "about 50 %", "up to 30 %", "alike", "better"],
)
def test_words_are_judged_by_their_meaning(
    region: Region, true: float, false: float, edge: float, runs: int
) -> None:
    of = {
        truth: shares(lambda g, truth=truth: verdict([Criterion(_pair(truth, runs, g), region)]), 400)  # type: ignore[misc]
        for truth in (true, false, edge)
    }
    error = 3 * math.sqrt(0.05 * 0.95 / 400)
    assert of[true][DIFFERS] <= 0.05 + error
    assert of[false][AGREES] <= 0.05 + error
    assert max(of[edge][AGREES], of[edge][DIFFERS]) <= 0.05 + error
    if runs == 2000:
        assert of[true][AGREES] >= 0.95
        assert of[false][DIFFERS] >= 0.95


@pytest.mark.parametrize("runs", RUNS)
def test_an_ordering_at_many_points_is_not_given_up_for_chance(runs: int) -> None:
    def at_twelve(truth: float, last: float) -> Counter[str]:
        def judge(generator: np.random.Generator) -> str:
            truths = [truth] * 11 + [last]
            return verdict([Criterion(_pair(each, runs, generator), above()) for each in truths])

        return shares(judge, 200)

    error = 3 * math.sqrt(0.05 * 0.95 / 200)
    # All at the margin, at which each point by itself may be wrong one time in forty.
    assert at_twelve(1.0, 1.0)[DIFFERS] <= 0.05 + error
    assert at_twelve(1.3, 1.0)[AGREES] <= 0.05 + error
    if runs == 2000:
        assert at_twelve(1.3, 1.3)[AGREES] >= 0.95
        assert at_twelve(1.3, 0.9)[DIFFERS] >= 0.95


@pytest.mark.parametrize("runs", RUNS)
def test_the_largest_of_many_allows_for_having_been_chosen(runs: int) -> None:
    def judge(truths: list[float], generator: np.random.Generator) -> str:
        criteria = [Criterion(_pair(truth, runs, generator), about_gain(0.3)) for truth in truths]
        return verdict(criteria, "largest")

    # Eight equal ones, whose greatest mean is above the truth: at the edges 24 % and 36 %.
    error = 3 * math.sqrt(0.05 * 0.95 / 200)
    for edge in (1.24, 1.36):
        found = shares(lambda g, edge=edge: judge([edge] * 8, g), 200)  # type: ignore[misc]
        assert found[DIFFERS] <= 0.05 + error
        assert found[AGREES] <= 0.05 + error
    if runs == 2000:
        assert shares(lambda g: judge([1.0] * 7 + [1.3], g), 100)[AGREES] >= 0.95
        assert shares(lambda g: judge([1.0] * 8, g), 100)[DIFFERS] >= 0.95


@pytest.mark.parametrize("runs", RUNS)
def test_never_takes_enough_runs(runs: int) -> None:
    def judge(rate: float) -> Counter[str]:
        return shares(lambda g: verdict([Criterion(share_of(g.random(runs) < rate), never())]), 400)

    error = 3 * math.sqrt(0.05 * 0.95 / 400)
    assert judge(0.0)[DIFFERS] == 0
    assert judge(0.0)[AGREES] == float(runs == 2000)
    assert judge(0.01)[AGREES] <= 0.05 + error
    assert judge(0.01)[DIFFERS] <= 0.05 + error
    if runs == 2000:
        assert judge(0.05)[DIFFERS] >= 0.99


def test_never_is_agreed_with_from_368_runs_on() -> None:
    # Clopper and Pearson's upper end for no event: 1 - 0.025^(1/n).
    assert verdict([Criterion(share_of([False] * 367), never())]) == CANNOT_TELL
    assert verdict([Criterion(share_of([False] * 368), never())]) == AGREES


def test_a_printed_run_is_judged_by_how_many_of_ours_are_like_it() -> None:
    assert verdict([Criterion(share_of([True] * 30 + [False] * 70), typical())]) == AGREES
    assert verdict([Criterion(share_of([True] * 5 + [False] * 95), typical())]) == CANNOT_TELL
    assert verdict([Criterion(share_of([False] * 100), typical())]) == DIFFERS


def test_of_two_that_are_equal_none_is_better() -> None:
    assert verdict([Criterion(Measured(np.ones(50)), above())]) == CANNOT_TELL
    assert verdict([Criterion(calculated(1.0), above())]) == CANNOT_TELL
    assert verdict([Criterion(calculated(3.0), within(3.0, 0.0, ""))]) == AGREES


def test_without_an_interval_nothing_can_be_told() -> None:
    for values in ([], [5.0]):
        criterion = Criterion(Measured(np.asarray(values)), within(5.0, 1.0, ""))
        assert verdict([criterion]) == CANNOT_TELL
        assert math.isnan(largest([criterion.quantity, Measured(np.ones(3))]).low)
    # Nor can a ratio to what may be zero.
    assert len(ratio(np.ones(20), np.zeros(20)).values) == 0


def test_some_needs_one_and_every_needs_all() -> None:
    low, high = calculated(1.0), calculated(2.0)
    criteria = [Criterion(low, above(1.5)), Criterion(high, above(1.5))]
    assert verdict(criteria, "some") == AGREES
    assert verdict(criteria, "every") == DIFFERS


def test_events_of_one_run_are_no_independent_evidence() -> None:
    """Runs of 200 messages, of which a tenth of the runs loses a fifth each: 2 % of the messages."""

    def counts(generator: np.random.Generator) -> tuple[Sample, Sample]:
        events = generator.binomial(200, 0.2, 20) * (generator.random(20) < 0.1)
        return events.astype(np.float64), np.full(20, 200.0)

    def by_runs(generator: np.random.Generator) -> str:
        return verdict([Criterion(rate(*counts(generator)), below(0.02))])

    def pooled(generator: np.random.Generator) -> str:
        events, of = counts(generator)
        return verdict([Criterion(share_of(np.arange(of.sum()) < events.sum()), below(0.02))])

    # The rate is at the edge, so that each verdict may be given one time in forty.
    assert shares(pooled, 400)[AGREES] > 0.3
    found = shares(by_runs, 400)
    assert found[AGREES] <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 400)
    assert found[DIFFERS] <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 400)


def test_a_rate_is_of_the_opportunities() -> None:
    often = rate(np.array([2.0, 4.0, 3.0, 3.0]), np.array([10.0, 20.0, 15.0, 15.0])).at()
    assert often.mean == pytest.approx(0.2)
    assert (often.low, often.high) == pytest.approx((0.2, 0.2))
    # One event of 20 runs of 50, by Garwood's interval: 0.0253 to 5.572 in 1,000.
    rare = rate(np.eye(20)[0], np.full(20, 50.0)).at()
    assert (rare.low, rare.high) == pytest.approx((0.0253e-3, 5.572e-3), rel=1e-3)
    # Before any is seen a run may have many.
    never_seen = rate(np.zeros(20), np.full(20, 50.0)).at()
    assert (never_seen.low, never_seen.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))


def test_the_part_on_which_a_verdict_rests_is_told() -> None:
    region = within(5.0, 1.0, "4 to 6: as printed")
    near, far = (Criterion(Measured(np.array([x, x + 1, x + 2, x + 1])), region, label) for x, label in
                 ((3.0, "near"), (20.0, "far")))  # fmt: skip
    right = Criterion(calculated(5.0), region, "right")
    assert deciding([right, near])[0] is near
    assert deciding([right, near, far])[0] is far
    assert deciding([near, far], "some")[0] is near
    assert deciding([right, far], "some")[0] is right
    text = undecided([right, near])
    assert re.fullmatch(r"undecided: near: 2\.\d+ to 5\.\d+, n = 4 \(agrees if 4 to 6\)", text)
    single = Criterion(Measured(np.array([5.0])), region, "single")
    assert undecided([right, single]) == "undecided: single: no interval, n = 1 (agrees if 4 to 6)"
    equal = Criterion(Measured(np.full(10, 5.0)), region, "equal", Unit("kb/s", 1.0, 1))
    assert "equal: 5.0 kb/s in each run, too few runs" in undecided([right, equal])


@pytest.mark.parametrize("name", names())
def test_every_claim_says_what_would_make_it_fail(name: str) -> None:
    for claim in paper(name).claims:
        assert len(claim.fails_if) > 10, claim.id
        assert not claim.fails_if.endswith("."), claim.id


def test_the_meanings_of_words_are_documented() -> None:
    text = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", text, flags=re.MULTILINE))
    for words, meaning in QUANTIFIERS.items():
        assert rows.get(words) == meaning, words


def test_a_few_equal_runs_cannot_tell() -> None:
    for region in (within(5.0, 1.0, ""), above(6.0)):
        assert verdict([Criterion(Measured(np.full(10, 5.0)), region)]) == CANNOT_TELL
    assert verdict([Criterion(Measured(np.full(300, 5.0)), within(5.0, 1.0, ""))]) == AGREES
    assert verdict([Criterion(Measured(np.full(300, 5.0)), above(6.0))]) == DIFFERS
