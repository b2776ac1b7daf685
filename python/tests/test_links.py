"""Links that vary: beside an independent model of mahimahi, and as the commands show them."""

from __future__ import annotations

import json
import math
import random
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Command, results

import lasthop
import lasthop.plots
from lasthop import ScenarioError
from lasthop.advice.advice import losses_in_words
from lasthop.fitting import preset_link, scenario_link
from lasthop.show.translations import netem, patchbay, toxiproxy

SCENARIO = """
limit = "30 s"
schemes = ["basic"]
[transfer]
size = "unlimited"
[tcp]
window = "{window}"
packet_size = "{size}"
[wired]
rate.mahimahi.file = "trace"
queue = "{queue} packets"
[radio]
rate = "1000 Gbps"
"""


def mahimahi(trace: list[int], limit: int, arrivals: list[tuple[int, int]]) -> list[int | None]:
    """Return the departure in ms of each packet, with its time in ns, over mahimahi's link; None if dropped.

    Written from `LinkQueue::rationalize` and `DropTailPacketQueue` of mahimahi: all opportunities up to the
    time of an arrival are used before the packet is queued.
    """
    departures: list[int | None] = [None] * len(arrivals)
    queue: list[tuple[int, int]] = []
    to_come = list(enumerate(arrivals))
    rounds = 0
    while to_come or queue:
        for opportunity in trace:
            now = rounds * trace[-1] + opportunity
            while to_come and to_come[0][1][0] < 1_000_000 * now:
                number, (_, size) = to_come.pop(0)
                # A packet in transit has left the queue.
                waiting = [each for each in queue if each[1] == arrivals[each[0]][1]]
                if len(waiting) < limit:
                    queue.append((number, size))
            left = 1504
            while left and queue:
                number, size = queue.pop(0)
                left, size = left - min(left, size), size - min(left, size)
                if size:
                    queue.insert(0, (number, size))
                else:
                    departures[number] = now
        rounds += 1
    return departures


@pytest.mark.parametrize("seed", range(6))
def test_a_trace_link_equals_an_independent_mahimahi(tmp_path: Path, seed: int) -> None:
    """TCP over the link: each segment arrives when the model says, to the nanosecond, or is dropped."""
    rng = random.Random(seed)
    time, trace = 0, []
    for _ in range(400):
        time += rng.choice([0, 0, 1, 2, 5, 30])
        trace.append(time)
    (tmp_path / "trace").write_text("".join(f"{ms}\n" for ms in trace))
    size, queue = rng.choice([1500, 576, 1504, 400]), rng.choice([3, 20, 1000])
    text = SCENARIO.format(window=f"{rng.choice([8, 60])} packets", size=f"{size} B", queue=queue)
    (tmp_path / "s.toml").write_text(text)
    run = lasthop.load(tmp_path / "s.toml").run(trace=True)
    events = run.events()
    nanoseconds = np.rint(1e9 * events["time_s"]).astype(int)
    sent, arrived = events["event"] == "sent", events["event"] == "delivered"
    arrivals = list(zip(nanoseconds[sent].tolist(), events["size_bytes"][sent].tolist(), strict=True))
    assert len(arrivals) > 300
    expected = mahimahi(trace, queue, arrivals)
    predicted = [ms for ms in expected if ms is not None and ms < 30_000]
    assert (nanoseconds[arrived] // 1_000_000).tolist() == predicted
    # The wireless hop takes nanoseconds.
    assert np.all(nanoseconds[arrived] % 1_000_000 < 1000)
    dropped = np.count_nonzero((events["event"] == "lost") & (events["reason"] == "queue-full"))
    assert dropped == expected.count(None)
    assert queue > 3 or dropped > 0


def test_links_are_listed_with_their_sources(command: Command) -> None:
    listed = json.loads(command("links", "--json").stdout)["links"]
    assert [row["name"] for row in listed] == [link.name for link in lasthop.links()]
    named = "2g 3g-driving lte-driving 5g starlink geo home-wifi rural-wifi train nb-iot"
    assert set(named.split()) <= {row["name"] for row in listed}
    printed = command("links").stdout
    assert all(row["name"] in printed for row in listed)
    # `lasthop run` prefers worked scenarios.
    both = [row["name"] for row in listed if row["name"] in lasthop.scenarios()]
    assert f"of {' and '.join(both)} it runs the worked scenario" in printed
    for row in listed:
        assert re.search(
            r"at [0-9a-f]{7}|#\d+|RFC \d+|IEEE 802|\(\d{4}|\w+ \d{4}|preset|mac80211", row["source"]
        ), row["name"]


@pytest.mark.parametrize("link", lasthop.links(), ids=lambda link: str(link.name))
def test_a_shown_link_is_the_preset(command: Command, link: lasthop.Link) -> None:
    """What is shown can be pasted into a scenario in place of the preset."""
    rest = 'limit = "1 s"\n[transfer]\nsize = "1 KB"\n[wired]\nrate = "1 Gbps"\n'
    rest += "[topology.cell]\nstations = 1\n" if link.table == "wifi" else ""
    shown = command("links", link.name).stdout
    preset = lasthop.Scenario.parse(f'{rest}[{link.table}]\npreset = "{link.name}"\n')
    assert lasthop.Scenario.parse(rest + shown).hash == preset.hash


def test_a_preset_runs_by_its_name(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a preset is that of a download over it; worked scenarios and files come first."""
    found = {}
    for name in ("geo", "wifi-ac-crowded", "wifi-ac-near"):
        scenario = lasthop.load(name, ["limit=4 s"])
        assert scenario.title.startswith(f"{name}: ")
        found[name] = scenario.run().metrics["throughput_bps"]
    assert found["wifi-ac-near"] > 1.5 * found["wifi-ac-crowded"] > 100e6
    # By name, and by the table of the preset.
    assert preset_link("geo").given["radio.delay"] == lasthop.load("geo")["radio.delay"]
    assert lasthop.load("starlink").title == lasthop.scenarios()["starlink"]
    refused = command("run", "wifi-ac-nera")
    assert 'did you mean the preset "wifi-ac-near"?' in refused.stderr
    monkeypatch.chdir(tmp_path)
    Path("geo").write_text(lasthop.load("lte").to_toml())
    assert lasthop.load("geo").title.startswith("lte: ")


def test_presets_are_for_one_table() -> None:
    with pytest.raises(ScenarioError, match=r"which is a preset of \[wifi\], expected one of \[radio\]"):
        lasthop.load("geo", ["radio.preset=wifi-ac-far"])
    with pytest.raises(ScenarioError, match=r"which is a preset of \[radio\], expected one of \[wifi\]"):
        lasthop.load("wifi-ac-far", ["wifi.preset=geo"])
    with pytest.raises(ScenarioError, match='did you mean "wifi-ac-far"'):
        lasthop.load("wifi-ac-far", ["wifi.preset=wifi-ac-fra"])
    swept = lasthop.load("wifi-ac-far", ['sweep.wifi.preset=["wifi-ac-near", "wifi-ac-far"]'])
    assert [point.scenario["wifi.snr"] for point in swept.points()] == [40.0, 13.0]


@pytest.mark.parametrize(
    ("name", "ghz", "width_hz", "metres", "walls"),
    [
        ("wifi-n-far", 2.437, 20e6, 30, 3),
        ("wifi-ac-far", 5.25, 80e6, 20, 2),
        ("wifi-ax-far", 5.25, 80e6, 20, 2),
    ],
)
def test_signals_are_those_of_their_path_loss(
    name: str, ghz: float, width_hz: float, metres: float, walls: int
) -> None:
    """The residential scenario of IEEE 802.11-14/0980, 20 dBm over two streams, 7 dB of noise figure."""
    free = 40.05 + 20 * math.log10(ghz / 2.4) + 20 * math.log10(5)
    loss_db = free + 35 * math.log10(metres / 5) + 5 * walls
    noise_dbm = -174 + 10 * math.log10(width_hz) + 7
    snr_db = 20 - 10 * math.log10(2) - loss_db - noise_dbm
    assert lasthop.load(name)["wifi.snr"] == pytest.approx(snr_db, abs=0.5)


def test_every_preset_is_emulated() -> None:
    """`lasthop emulate` may last for a day, also over cells and with grants."""
    for each in lasthop.links():
        assert len(lasthop.load(each.name).emulated("basic")["hosts"]) == 2, each.name


def test_a_preset_is_written_as_a_trace(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "starlink.down"
    printed = command("links", "starlink", "--mahimahi", path, "--seconds", "20", "--seed", "3").stdout
    times = [int(line) for line in path.read_text().splitlines()]
    assert times == sorted(times)
    assert times[-1] <= 20_000
    assert f"{len(times):,} opportunities" in printed
    scenario = lasthop.load("starlink")
    assert times == scenario.mahimahi(20.0, seed=3)
    assert len(times) * 1504 * 8 / 20 == pytest.approx(48.86e6, rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["starlnik"], 'did you mean "starlink"'),
        (["--mahimahi", "x"], "--mahimahi needs the NAME"),
        (["geo", "--mahimahi", "/none/x"], "--mahimahi: cannot write /none/x: No such file or directory"),
        (["2g", "--mahimahi", "x", "--seconds", "0.1"], "too short for one packet"),
        (["wifi-ac-far", "--mahimahi", "x"], "wifi-ac-far is Wi-Fi, whose rate depends on what is sent"),
        (["wifi-ac-far", "--as", "netem"], "where packets share the air in aggregates"),
    ],
)
def test_wrong_requests_are_refused(command: Command, arguments: list[str], message: str) -> None:
    done = command("links", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_traces_show_the_rate_and_the_delay(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    limit = ("--set", "limit=3 s", "--scheme", "basic")
    assert command("run", "starlink", *limit, "--trace", "--out", out).returncode == 0
    written = results(out)
    assert {"base-mobile.down.link.csv", "base-mobile.up.link.csv", "base-mobile.down.link.svg"} <= set(
        written
    )
    lines = (out / "base-mobile.down.link.csv").read_text().splitlines()
    assert lines[0] == "time_s,rate_bps,delay_s"
    timing = lasthop.load("starlink").link_timing(3.0)
    assert list(timing) == ["time_s", "rate_bps", "delay_s"]
    assert np.all(np.diff(timing["time_s"]) > 0)
    assert np.all(timing["delay_s"] >= 0.007)


def test_a_trace_is_drawn_in_bins(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("50\n100\n")
    scenario = lasthop.Scenario.parse(
        '[transfer]\nsize = "1 KB"\n[wired]\nrate = "1 Gbps"\n[radio]\nrate.mahimahi.file = "t"\n',
        name=str(tmp_path / "s.toml"),
    )
    timing = scenario.link_timing(1.0)
    assert timing["rate_bps"].sum() * 0.1 == pytest.approx(19 * 1504 * 8)
    figure = lasthop.plots.link_timing(scenario, 1.0)
    assert [axes.get_ylabel() for axes in figure.axes] == ["rate (Mbps)"]
    with pytest.raises(ScenarioError, match="did you mean"):
        scenario.link_timing(1.0, "base-mobil")


def test_results_do_not_depend_on_threads(tmp_path: Path, command: Command) -> None:
    printed = [
        command(
            "study",
            "starlink",
            "--set",
            "limit=2 s",
            "--runs",
            "6",
            "--jobs",
            jobs,
            "--json",
            "--out",
            tmp_path / jobs,
        )
        for jobs in ("1", "3")
    ]
    first, second = (json.loads(done.stdout)["results"] for done in printed)
    assert first == second


def test_the_trace_example_runs(command: Command) -> None:
    done = command("run", ROOT / "scenarios/traces/replay.toml", "--set", "limit=2 s")
    assert done.returncode == 0, done.stderr


def test_a_preset_is_printed_for_netem(command: Command) -> None:
    result = command("links", "rural-wifi", "--as", "netem")
    assert result.returncode == 0, result.stderr
    # A bandwidth-delay product of 1.5 packets is in the delay, beside 100 packets in the queue.
    assert result.stdout.splitlines() == [
        "tc qdisc replace dev DOWN root netem rate 3000kbit delay 6.000ms limit 102 loss random 0.5%",
        "tc qdisc replace dev UP root netem rate 3000kbit delay 6.000ms limit 102",
    ]
    starlink = command("links", "starlink", "--as", "netem").stdout
    assert "# The rate down varies; its mean of 48.9 Mbps is constant here." in starlink
    assert "# down: periods are counted in packets" in starlink
    worked = command("links", "last-mile", "--as", "netem").stdout
    assert "netem rate 10000kbit delay 1.000ms limit 51 loss random 1%" in worked


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        # Bursts of 5 packets: p = r loss / (1 - loss).
        ("{ gilbert = { loss = 0.2, burst = 5 } }", "loss gemodel 5% 20% 100% 0%"),
        # At 10 Mb/s a packet takes 1.2 ms, so 12 ms are ten.
        ('{ gilbert = { loss = 0.5, burst = "12 ms" } }', "loss gemodel 10% 10% 100% 0%"),
        ('{ gilbert-elliott = { good = "120 ms", bad = "12 ms" } }', "loss gemodel 1% 10% 100% 0%"),
        ("{ gilbert-elliott = { p = 0.01, r = 0.2, loss_bad = 0.5 } }", "loss gemodel 1% 20% 50% 0%"),
        ("{ frame-loss = { loss = 0.01 } }", "loss random 1%"),
    ],
)
def test_losses_are_those_of_netem(channel: str, words: str) -> None:
    link = scenario_link(lasthop.load("last-mile", [f"radio.channel={channel}", "radio.rate=10 Mbps"]))
    assert netem(link).splitlines()[-2].endswith(words)


@pytest.mark.parametrize(
    ("channel", "percent"),
    [
        ("{ gilbert = { loss = 0.2, burst = 5 } }", 20),
        # Bad for a tenth of the time, and then half is lost.
        ('{ gilbert-elliott = { good = "900 ms", bad = "100 ms", loss_bad = 0.5, loss_good = 0.0 } }', 5),
        ("{ frame-loss = { loss = 0.01 } }", 1),
        ('"perfect"', None),
    ],
)
def test_a_link_is_printed_for_patchbay(channel: str, percent: float | None) -> None:
    settings = [f"radio.channel={channel}", "radio.rate=10 Mbps", "radio.uplink.rate=2 Mbps"]
    text = patchbay(scenario_link(lasthop.load("last-mile", settings)))
    devices = tomllib.loads(text)["device"]
    up, down = (devices[name]["eth0"]["impair"] for name in ("client", "server"))
    assert (up["rate_kbit"], down["rate_kbit"]) == (2000, 10000)
    # The numbers of netem, from which it is, have six digits.
    assert down.get("loss_pct") == (None if percent is None else pytest.approx(percent, rel=1e-5))
    assert "# Losses are independent here" in text


def test_what_patchbay_lacks_is_said() -> None:
    text = patchbay(scenario_link(lasthop.load("last-mile", ["radio.channel={ iid = { ber = 1e-6 } }"])))
    assert "# The losses down are left out: their mean is not stated." in text
    assert "loss_pct" not in text


def test_what_netem_lacks_is_said() -> None:
    link = scenario_link(lasthop.load("last-mile", ["radio.channel={ iid = { ber = 1e-6 } }"]))
    assert '# down: the losses of channel "iid" are left out' in netem(link)


@pytest.mark.parametrize(
    ("keys", "words", "lost"),
    [
        ("", "delay 30.000ms limit", []),
        (', jitter = "5 ms", in_order = true', "delay 30.000ms 5.000ms limit", []),
        (
            ', jitter = "5 ms", correlation = 0.25, reorder = 0.02, gap = 5',
            "delay 30.000ms 5.000ms 25% reorder 2% gap 5 limit",
            ["keeps the order", "correlation", "skips its queue"],
        ),
        (
            ", reorder = 1, reorder_correlation = 0.5",
            "delay 30.000ms reorder 100% 50% gap 1 limit",
            ["skips"],
        ),
    ],
)
def test_jitter_and_reordering_are_those_of_netem(keys: str, words: str, lost: list[str]) -> None:
    link = scenario_link(lasthop.load("last-mile", [f'radio.delay.netem={{ delay = "30 ms"{keys} }}']))
    notes, (down, up) = (
        [line for line in netem(link).splitlines() if line.startswith("#") == is_note]
        for is_note in (True, False)
    )
    # The uplink has the delay of the downlink.
    assert words in down
    assert words in up
    own = [note for note in notes if note.startswith("# down:")]
    assert len(own) == len(lost)
    assert all(each in note for each, note in zip(lost, own, strict=True))


def test_other_emulators_say_what_they_lack_of_jitter() -> None:
    settings = [
        'radio.delay.netem={ delay = "30 ms", jitter = "5 ms", reorder = 0.02 }',
        'radio.uplink.delay="10 ms"',
    ]
    link = scenario_link(lasthop.load("last-mile", settings))
    # The least delay, of packets that do not skip it: 25 + 10 ms on the last hop.
    assert link.last_hop_rtt_s == pytest.approx(0.035)
    found = json.loads(toxiproxy(link))
    latency = [each["attributes"] for each in found["toxics"] if each["type"] == "latency"]
    assert latency == [{"latency": 30, "jitter": 5}, {"latency": 10, "jitter": 0}]
    assert "Left out of the delay: reordering." in found["lost"]
    assert "# Left out of the delay: jitter, reordering." in patchbay(link)


def test_a_token_bucket_is_lost_aloud() -> None:
    bucket = '{ token-bucket = { rate = "5 Mbps", burst = "1 MB", peak = "20 Mbps" } }'
    link = scenario_link(lasthop.load("last-mile", [f"radio.rate={bucket}", 'radio.uplink.rate="1 Mbps"']))
    said = "token bucket down is left out, its burst of 1,000,000 B at 20 Mbps"
    for text in (netem(link), patchbay(link), toxiproxy(link)):
        assert said in text
        assert "token bucket up" not in text


def test_grants_are_lost_aloud_and_neighbours_have_their_share() -> None:
    busy, alone = (preset_link(name) for name in ("lte-busy", "lte"))
    assert (busy.rate_bps, busy.up_rate_bps) == pytest.approx((16.74e6 / 4, 13.35e6 / 4))
    # A request that need not wait, and an interval each way.
    assert alone.last_hop_rtt_s == pytest.approx(0.025 + 0.012 + 0.008 + 2 * 0.001)
    assert losses_in_words(alone) == ["as stated: no losses"]
    with pytest.raises(ScenarioError, match="no closed form for the grants"):
        lasthop.load("lte").packet_loss("1500 B")
    said = "The grants up are left out, with their waits and repetitions"
    for text in (netem(busy), patchbay(busy), toxiproxy(busy)):
        assert f"{said}; the rate is a share beside 3 others" in text
    assert f"{said}.\n" in netem(alone)
    assert "rate 4185kbit" in netem(busy)


def test_a_list_of_delays_is_no_link_in_time(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("delay_ms\n5\n10\n")
    listed = f"radio.delay.per-packet={{ file = '{tmp_path}/delays.csv' }}"
    with pytest.raises(ValueError, match="the delays of base-mobile are a list by packets"):
        scenario_link(lasthop.load("last-mile", [listed]))


def test_a_preset_is_printed_for_toxiproxy(command: Command) -> None:
    found = json.loads(command("links", "geo", "--as", "toxiproxy").stdout)
    assert [(each["type"], each["stream"], each["attributes"]) for each in found["toxics"]] == [
        ("latency", "downstream", {"latency": 279, "jitter": 0}),
        ("bandwidth", "downstream", {"rate": 5000}),
        ("latency", "upstream", {"latency": 279, "jitter": 0}),
        ("bandwidth", "upstream", {"rate": 625}),
    ]
    assert any("loses no packets" in each for each in found["lost"])
    assert 'did you mean "netem"?' in command("links", "geo", "--as", "netm").stderr
