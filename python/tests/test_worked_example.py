"""What the EBSN paper (TR-96-014, section 4.2.1) says about its worked example, where it holds."""

from __future__ import annotations

import numpy as np

from lasthop import Run, Scenario

BAD = [(10.0, 14.0), (24.0, 28.0)]


def timeouts(run: Run, start: float, end: float) -> list[tuple[float, int]]:
    events = run.events()
    found = (events["event"] == "timeout") & (start <= events["time_s"]) & (events["time_s"] < end)
    return list(zip(events["time_s"][found].tolist(), events["packet"][found].tolist(), strict=True))


def sent_again(run: Run, start: float, end: float) -> list[int]:
    events = run.events()
    again = (events["event"] == "sent") & (events["transmission"] > 1)
    found = again & (start <= events["time_s"]) & (events["time_s"] < end)
    packets: list[int] = events["packet"][found].tolist()
    return packets


def test_the_bad_periods_are_the_papers(example: Scenario) -> None:
    assert example.bad_periods(30.0) == BAD


def test_ebsn_has_no_timeouts_and_no_retransmissions(runs: dict[str, Run]) -> None:
    metrics = runs["ebsn"].metrics
    assert metrics["timeouts"] == 0
    assert metrics["retransmitted_segments"] == 0
    assert metrics["goodput"] == 1.0
    assert metrics["notices"] > 0


def test_local_recovery_times_out_for_packet_27_at_13_75_s(runs: dict[str, Run]) -> None:
    ((time, packet),) = timeouts(runs["local-recovery"], *BAD[0])
    assert packet == 27
    assert round(time, 2) == 13.75


def test_local_recovery_retransmits_nothing_between_24_and_28_s(runs: dict[str, Run]) -> None:
    assert sent_again(runs["local-recovery"], *BAD[1]) == []


def test_local_recovery_loses_nothing_on_the_air(runs: dict[str, Run]) -> None:
    assert runs["local-recovery"].metrics["lost_on_air"] == 0


def test_basic_tcp_loses_what_is_sent_in_a_bad_period_and_nothing_else(
    example: Scenario, runs: dict[str, Run]
) -> None:
    events = runs["basic"].events()
    lost = events["time_s"][events["event"] == "lost"]
    arrived = events["time_s"][events["event"] == "delivered"]
    # A packet is lost or delivered when its last fragment ends: 576 B at 12.8 kbps after it began.
    air = 576 * 8 / 12_800
    for start, end in example.bad_periods(float(events["time_s"].max())):
        assert not ((arrived > start) & (arrived < end)).any()
        lost = lost[(lost < start) | (lost > end + air)]
    assert lost.size == 0


def test_basic_tcp_retransmits_its_losses(runs: dict[str, Run]) -> None:
    events = runs["basic"].events()
    for packet in np.unique(events["packet"][events["event"] == "lost"]):
        copies = events["transmission"][(events["event"] == "sent") & (events["packet"] == packet)]
        assert copies.max() > 1
    assert timeouts(runs["basic"], *BAD[0])[0][1] == 27


def test_the_schemes_rank_as_in_the_paper(runs: dict[str, Run]) -> None:
    throughput = {scheme: run.metrics["throughput_bps"] for scheme, run in runs.items()}
    assert throughput["ebsn"] > throughput["local-recovery"] > throughput["basic"]
