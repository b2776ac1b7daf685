"""What the comments in scenarios/ say comes out comes out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from conftest import ROOT

import lasthop

RUNS = 10


def throughputs(name: str, scheme: str, *overrides: str) -> npt.NDArray[np.float64]:
    """Return the throughput of each connection, in a row for each run."""
    scenario = lasthop.load(ROOT / "scenarios" / name, overrides)
    runs = [scenario.run(scheme, run=number).connections.values() for number in range(RUNS)]
    return np.array([[each["throughput_bps"] for each in connections] for connections in runs])


def test_lhack_recovers_its_half_and_takes_no_more() -> None:
    basic, lhack = (throughputs("two-flows.toml", scheme) for scheme in ("basic", "lhack"))
    share = {name: each[:, 0] / each.sum(axis=1) for name, each in (("basic", basic), ("lhack", lhack))}
    assert share["basic"].max() < 0.25
    assert 0.35 < share["lhack"].mean() < 0.5
    assert share["lhack"].max() < 0.5
    assert share["lhack"].min() > share["basic"].max()


def test_without_corruption_each_gets_a_half() -> None:
    for scheme in ("basic", "lhack"):
        each = throughputs("two-flows.toml", scheme, "link.right-D1.channel=perfect")
        assert np.allclose(each[:, 0] / each.sum(axis=1), 0.5, atol=0.01)


def test_lhack_gets_more_over_the_path_of_its_paper() -> None:
    basic, lhack = (throughputs("lhack-path.toml", scheme) for scheme in ("basic", "lhack"))
    # What other traffic leaves: 100 messages a second with 460 B of payload.
    ceiling = 100 * 460 * 8
    assert (basic < 0.75 * ceiling).all()
    assert (lhack > 0.8 * ceiling).all()
    assert (lhack <= ceiling).all()


def test_each_step_of_splitting_gains_over_a_wireless_lan() -> None:
    schemes = ("basic", "i-tcp", "metp", "vs-tcp")
    found = [throughputs("split-wlan.toml", scheme, "transfer.size=1 MB")[:, 0] for scheme in schemes]
    for less, more in pairwise(found):
        assert less.mean() < more.mean()
    assert found[0].max() < found[2].min()


def test_stations_with_more_loss_get_less_throughput() -> None:
    found = throughputs("cell.toml", "basic").mean(axis=0)
    # By rates of loss, two stations each.
    by_rate = found.reshape(4, 2).mean(axis=1)
    assert (np.diff(by_rate) < 0).all()
    # The loss explains it: equal stations have equal shares.
    assert (np.abs(found.reshape(4, 2) / by_rate[:, None] - 1) < 0.15).all()


def test_the_long_queue_of_the_cell_loses_nothing_and_the_short_one_does() -> None:
    scenario = lasthop.load(ROOT / "scenarios/cell.toml", ["limit=20 s"])
    assert scenario.run().metrics["queue_drops"] == 0
    short = lasthop.load(ROOT / "scenarios/cell.toml", ["limit=20 s", "cell.queue=40 packets"]).run()
    lost = [(each["queue_drops"], each["lost_on_air"]) for each in short.connections.values()]
    assert all(drops > 0 for drops, _ in lost)
    assert [on_air > 0 for _, on_air in lost] == [False] * 2 + [True] * 6


def test_the_packet_loss_of_the_cell_is_what_its_comments_say() -> None:
    scenario = lasthop.load(ROOT / "scenarios/cell.toml")
    losses = [scenario.packet_loss("1500 B", f"ap-MH{number}") for number in range(1, 9)]
    assert losses == pytest.approx([0, 0, 0.005, 0.005, 0.01, 0.01, 0.02, 0.02], abs=1e-12)


def test_the_packet_loss_of_the_wireless_lan_is_moderate() -> None:
    """Section V-A.2 of its paper has 1 % to 13 % of packets lost."""
    assert 0.04 < lasthop.load(ROOT / "scenarios/split-wlan.toml").packet_loss("552 B") < 0.06


def test_the_office_waits_for_timeouts_unless_its_links_recover() -> None:
    scenario = lasthop.load(ROOT / "scenarios" / "office.toml")
    for number in range(3):
        basic, local = (scenario.run(scheme, run=number) for scheme in ("basic", "local-recovery"))

        def ratio(name: str, basic: lasthop.Run = basic, local: lasthop.Run = local) -> float:
            times = [run.applications[name]["mean_response_time_s"] for run in (basic, local)]
            return float(times[1] / times[0])

        assert ratio("web") < 0.25
        assert ratio("mail") < 0.5
        assert abs(ratio("database") - 1) < 0.05
        bulk = [run.metrics["throughput_bps"] for run in (basic, local)]
        assert bulk[0] < 0.3 * 2e6 < 0.85 * 2e6 < bulk[1]


def test_an_arq_helps_a_film_and_ruins_a_call_unless_the_queue_is_short() -> None:
    names = (
        "application.browsing.mean_page_time_s",
        "application.film.mean_bitrate_bps",
        "application.shell.p50_response_time_s",
        "application.shell.p99_response_time_s",
        "traffic.call-down.mos",
    )

    def means(scheme: str, *overrides: str) -> list[float]:
        scenario = lasthop.load(ROOT / "scenarios" / "users.toml", overrides)
        runs = [scenario.run(scheme, run=number) for number in range(RUNS)]
        return [float(np.mean([run.value(name) for run in runs])) for name in names]

    page, film, median, slow, score = means("basic")
    assert 2.2e6 < film < 2.8e6
    arq = means("arq")
    assert 0.8 * page < arq[0] < 1.1 * page
    assert arq[1] > 3.8e6
    assert arq[2] > 1.8 * median
    assert arq[4] < 2 < 3.5 < score
    short = means("arq", "radio.queue={ fq-codel = {} }")
    assert 0.8 * page < short[0] < 1.2 * page
    assert short[1] > 3.8e6
    assert short[2] < 1.2 * median
    assert short[3] < 0.6 * slow
    assert short[4] > 3.9
    bbr = means("basic", 'sender="linux-bbr"')
    assert bbr[1] > 3.8e6
    assert bbr[4] < 2
