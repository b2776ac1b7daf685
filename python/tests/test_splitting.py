"""The heuristic of the paper splitting, its printed values, and its network."""

from __future__ import annotations

import numpy as np
import pytest

from lasthop import Quantity
from lasthop.papers import paper
from lasthop.papers.splitting.digitised import printed
from lasthop.papers.splitting.heuristic import counted, counts, medians, settings
from lasthop.papers.splitting.network import DELAYS, LOSSES, QUEUES, RATES, Segment, links
from lasthop.papers.verdicts import AGREES, CANNOT_TELL, DIFFERS, Criterion, Median, verdict, within

RATE, DELAY, LOSS = np.meshgrid(RATES, DELAYS, LOSSES, indexing="ij")


def test_the_settings_are_as_many_as_the_artifact_counts() -> None:
    assert settings() == 7_875
    # Losses hurt on long segments alone: a proxy next to them helps. The artifact counts 500 settings with
    # losses on a short near segment alone, and as many on a far one.
    found = counts(np.where((LOSS == 0) | (DELAY == 1), 1.0, 0.1) * RATE)
    assert (found["near"], found["asymmetric"]) == (500, 1_000)
    # Losses of 4 % alone hurt: of 1,650 and 1,500 settings with losses on both sides, half have as many.
    found = counts(np.where(LOSS < 4, 1.0, 0.1) * RATE)
    assert (found["edge"], found["middle"], found["both"]) == (825, 750, 1_575)


def test_nothing_gains_where_losses_do_not_hurt() -> None:
    found = counts(0.9 * RATE)
    assert set(found.values()) == {0}
    # A split is as fast as its slower segment, and a path that is too slow counts as none.
    slow = np.where(LOSS == 4, np.nan, 0.9 * RATE)
    assert counts(slow)["triple"] == counts(np.nan_to_num(slow))["triple"] > 0


def test_counts_are_resampled_from_runs() -> None:
    one = np.where((LOSS == 0) | (DELAY == 1), 1.0, 0.1) * RATE
    runs = np.repeat(one[..., np.newaxis], 4, axis=-1)
    equal = counted(runs)["near"]
    assert (equal.number, set(equal.resampled), equal.runs) == (500, {500}, 4)
    # One run of four in which nothing gains changes no median, but as the median of the runs drawn it is
    # often half of them.
    runs[..., 0] = RATE
    found = counted(runs)["near"]
    assert found.number == 500
    assert 0.6 < np.mean(found.resampled == 500) < 1
    # Half of the downloads that do not end are too many.
    runs[..., :2] = np.nan
    assert np.isnan(medians(runs)).all()
    assert np.isfinite(medians(runs[..., 1:])).all()


def test_printed_splits_are_near_the_printed_segments() -> None:
    one = {path[0]: value for (*_, path), value in printed("one").items()}
    for figure in ("7a", "7b"):
        for (*_, path), value in printed(figure).items():
            assert value == pytest.approx(min(one[each] for each in path), rel=0.15)


def test_printed_cells_and_numbers_are_alike() -> None:
    # Two measurements of the same: the scatter of the artifact itself.
    cells, numbers = printed("4"), printed("one")
    both = {where: value for where, value in numbers.items() if where in cells}
    assert len(both) == 17
    for where, value in both.items():
        assert cells[where] == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize("queue", QUEUES)
def test_a_queue_has_the_size_that_the_artifact_gives_it(queue: str) -> None:
    # 100 ms at 10 Mb/s: 250 KB both ways.
    packets = Quantity(666, "packets")
    assert (
        links([Segment(100, 0, 10)], queue)["shaper-client"]["queue"]
        == {
            "red": {"adaptive-red": {"limit": Quantity(1_000_000, "B"), "burst": 84}},
            "bdp": Quantity(250_000, "B"),
            "tenth": Quantity(25_000, "B"),
            "pie": {"pie": {"limit": packets}},
            "codel": {"codel": {"limit": packets, "interval": 0.2}},
            "fq-codel": {"fq-codel": {}},
            "policer": {"policer": {"rate": 10_000_000, "burst": 12_500}},
        }[queue]
    )


def test_as_many_packets_are_lost_in_pairs() -> None:
    found = paper("splitting")
    experiment = next(each for each in found.experiments if each.name == "segments-20")
    for offload in ("on", "off"):
        for point in found.scenario(experiment, found.choose({"offload": offload})).points()[:15]:
            lost = point.scenario.packet_loss(1500, "shaper-server")
            printed_loss = point.scenario["link.shaper-server.channel"]
            assert lost == pytest.approx(round(100 * lost) / 100, abs=1e-6), printed_loss


def test_a_median_agrees_by_its_order_statistics() -> None:
    region = within(5.0, 2.5, "2.5 to 7.5")
    # One run in ten fails: the mean is far away, the median is not.
    runs = np.array([4.0, 4.5, 5.0, 5.5, 6.0, 4.2, 4.8, 5.2, 5.8, 500.0])
    assert verdict([Criterion(Median(runs), region)]) == AGREES
    assert verdict([Criterion(Median(runs + 10), region)]) == DIFFERS
    # The interval of five values has no ends.
    assert verdict([Criterion(Median(runs[:5]), region)]) == CANNOT_TELL
    assert Median(runs[:6]).at().low == 4.0
