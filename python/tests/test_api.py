"""The Python API."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import EXAMPLE, ROOT

import lasthop
from lasthop import Run, Scenario, ScenarioError

TABLES = {
    "title": 'a "quoted" title: ünïcode \\ and\ta tab',
    "schemes": ["basic", "ebsn"],
    "transfer": {"size": "20 KB"},
    "wired": {"rate": "10 Mbps", "delay": "20 ms"},
    "radio": {
        "rate": "2 Mbps",
        "expansion": 1.5,
        "channel": {"two-state": {"good": "1 s", "bad": "100 ms", "bad_ber": 1e-2}},
        "arq": {"stop-and-wait": {"retransmissions": 13, "backoff": {"uniform": "20 ms"}}},
    },
    "tcp": {"handshake": False},
}


def test_a_scenario_built_from_dictionaries_is_the_one_of_a_file() -> None:
    scenario = lasthop.build(TABLES)
    assert (scenario.title, scenario.schemes) == (TABLES["title"], TABLES["schemes"])
    assert Scenario.parse(scenario.to_toml()).hash == scenario.hash


def test_a_changed_scenario_is_the_one_of_the_file_with_overrides() -> None:
    scenario = lasthop.load(ROOT / EXAMPLE)
    changed = scenario.with_(
        {
            "radio.rate": 2e6,
            "wired.delay": np.float64(0.0431),
            "tcp.packet_size": np.int64(600),
            "radio.queue": lasthop.Quantity(20.0, "packets"),
            "radio.channel": {"gilbert": {"loss": 0.02, "burst": 5}},
            "tcp.handshake": True,
            "schemes": ("basic",),
        },
        "limit=20 s",
        {"limit": "30 s"},
    )
    overrides = [
        "radio.rate=2 Mbps",
        "wired.delay=43.1 ms",
        "tcp.packet_size=600 B",
        "radio.queue=20 packets",
        "radio.channel={ gilbert = { loss = 0.02, burst = 5 } }",
        "tcp.handshake=true",
        "schemes=['basic']",
        "limit=30 s",
    ]
    assert changed == lasthop.load(ROOT / EXAMPLE, overrides)
    assert scenario == lasthop.load(ROOT / EXAMPLE)
    keys = ("radio.rate", "wired.delay", "radio.queue", "limit")
    assert changed.with_({key: changed[key] for key in keys}) == changed
    assert [changed[key] for key in ("wired.delay", "tcp.packet_size", "radio.rate")] == [0.0431, 600, 2e6]
    assert changed["radio.queue"] == lasthop.Quantity(20, "packets") != lasthop.Quantity(20, "B")
    assert {lasthop.Quantity(20, "packets"), lasthop.Quantity(20.0, "packets")} == {changed["radio.queue"]}
    assert changed["radio"]["channel"]["gilbert"]["burst"] == changed["radio.channel.gilbert.burst"] == 5.0
    assert "radio.uplink" not in changed
    with pytest.raises(KeyError, match=r"radio\.uplink"):
        changed["radio.uplink"]


def test_a_change_that_is_wrong_names_its_key() -> None:
    scenario = lasthop.load("last-mile")
    for changes, key, found in (
        ({"radio.rate": -1}, "radio.rate", "found -1, expected a rate that is not negative"),
        ({"radio.queue": 20}, "radio.queue", 'found 20, expected "unlimited", a number such as "50 packets"'),
        ({"tcp.window": lasthop.Quantity(5, "ms")}, "tcp.window", "found 5 ms, expected a size"),
        ({"radio.chanel": "perfect"}, "radio.chanel", 'did you mean "channel"'),
        ({"radio.chanel": None}, "radio.chanel", 'did you mean "channel"'),
        ({"transfer.size": None}, "transfer.size", "missing key transfer.size"),
    ):
        with pytest.raises(ScenarioError, match=re.escape(found)) as caught:
            scenario.with_(changes)
        assert (caught.value.kind, caught.value.key) == ("key", key)
    with pytest.raises(TypeError, match=r"^radio\.rate: found an object of type complex, expected a number"):
        scenario.with_({"radio.rate": 1j})
    with pytest.raises(TypeError, match="expected mappings such as"):
        scenario.with_(5)  # type: ignore[arg-type]


def test_a_file_with_overrides() -> None:
    scenario = lasthop.load(ROOT / EXAMPLE, ["schemes=['basic']", "radio.rate=2Mbps"])
    assert scenario.schemes == ["basic"]
    assert 'rate = "2 Mbps"' in scenario.to_toml()
    assert scenario != lasthop.load(ROOT / EXAMPLE)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[transfer]\nsize = "1 KB"\n[wired]\nrate = "2 Mbs"\n[radio]\nrate = "1 Mbps"', 4, "2 Mbs"),
        ("[transfer]\nsize = 5", 2, "transfer.size"),
        ("= 3", 1, "not TOML"),
        ("", None, "missing key wired"),
    ],
)
def test_an_error_has_a_location(text: str, line: int | None, message: str) -> None:
    with pytest.raises(ScenarioError, match=r"wrong\.toml") as caught:
        Scenario.parse(text, name="wrong.toml")
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.file, error.line) == ("wrong.toml", line)
    assert message in error.message


@pytest.mark.parametrize(
    ("overrides", "kind", "key"),
    [
        (["radio.rate"], "syntax", None),
        (["radio.rat=1 Mbps"], "key", "radio.rat"),
        (["limit=0 s"], "value", "limit"),
        (["schemes=['basic', 'esbn']"], "scheme", "schemes[1]"),
    ],
)
def test_an_error_has_a_kind_and_a_key(overrides: list[str], kind: str, key: str | None) -> None:
    with pytest.raises(ScenarioError) as caught:
        lasthop.load(ROOT / EXAMPLE, overrides)
    error = caught.value
    assert (error.kind, error.key) == (kind, key)
    assert error.message in (error.problem, f"{key}: {error.problem}")


def test_an_error_of_a_request_and_of_a_file_have_kinds() -> None:
    with pytest.raises(ScenarioError) as caught:
        lasthop.load("/nowhere/absent.toml")
    assert caught.value.kind == "unreadable"
    with pytest.raises(ScenarioError) as caught:
        lasthop.load(ROOT / EXAMPLE).packet_loss("552 B", "fixed-base")
    assert caught.value.kind == "request"


def test_an_invalid_dictionary_is_refused() -> None:
    with pytest.raises(ScenarioError, match="missing key wired"):
        lasthop.build({"transfer": {"size": "1 KB"}, "radio": {"rate": "1 Mbps"}})
    with pytest.raises(TypeError):
        lasthop.build({"transfer": object()})


def test_an_unknown_scheme_is_refused(example: Scenario) -> None:
    with pytest.raises(ScenarioError, match='did you mean "ebsn"'):
        lasthop.run(example, "ebns")


def test_a_capture_that_cannot_be_written(example: Scenario, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        lasthop.run(example, "basic", pcap=tmp_path / "nowhere" / "basic.pcapng")


def test_a_run_is_a_function_of_scenario_scheme_seed_and_number(example: Scenario) -> None:
    one = lasthop.run(example, "ebsn", seed=3, run=5)
    assert (one.scheme, one.seed, one.run, one.ended) == ("ebsn", 3, 5, "finished")
    assert one.to_json() == lasthop.run(example, "ebsn", seed=3, run=5).to_json()
    assert one.metrics != lasthop.run(example, "ebsn", seed=3, run=6).metrics
    assert one.metrics != lasthop.run(example, "ebsn", seed=4, run=5).metrics


def test_recording_changes_nothing(example: Scenario, runs: dict[str, Run], tmp_path: Path) -> None:
    for scheme, run in runs.items():
        assert lasthop.run(example, scheme).metrics == run.metrics
        assert lasthop.run(example, scheme, pcap=tmp_path / "run.pcapng").metrics == run.metrics


def test_data_that_were_not_recorded_are_refused(example: Scenario) -> None:
    run = lasthop.run(example, "basic")
    with pytest.raises(ValueError, match="trace=True"):
        run.events()
    with pytest.raises(ValueError, match="series=True"):
        run.series()


def test_events_agree_with_the_metrics(runs: dict[str, Run]) -> None:
    for run in runs.values():
        events, metrics = run.events(), run.metrics
        count = {kind: int((events["event"] == kind).sum()) for kind in np.unique(events["event"])}
        assert count["sent"] == metrics["segments_sent"]
        assert count["sent"] == count["delivered"] + count.get("lost", 0)
        assert count.get("timeout", 0) == metrics["timeouts"]
        assert count.get("notice-received", 0) == metrics["notices"]
        again = (events["event"] == "sent") & (events["transmission"] > 1)
        assert int(again.sum()) == metrics["retransmitted_segments"]
        assert int(events["size_bytes"][again].sum()) == metrics["retransmitted_bytes"]
        assert (np.diff(events["time_s"]) >= 0).all()


def test_goodput_is_useful_over_sent(runs: dict[str, Run]) -> None:
    for run in runs.values():
        events = run.events()
        sent = events["size_bytes"][events["event"] == "sent"] - 40
        assert run.metrics["goodput"] == pytest.approx(100_000 / sent.sum(), rel=1e-12)


def test_frames_have_the_columns(runs: dict[str, Run]) -> None:
    events = lasthop.events_frame(runs["basic"])
    assert list(events) == ["time_s", "event", "packet", "transmission", "size_bytes", "reason"]
    assert len(events) == len(runs["basic"].events()["time_s"])
    series = lasthop.series_frame(runs["basic"])
    assert list(series)[:3] == ["time_s", "cwnd_bytes", "ssthresh_bytes"]
    assert series["time_s"].is_monotonic_increasing


@pytest.fixture(scope="module")
def network() -> Run:
    """Return a run with two connections and other traffic, everything recorded."""
    tables = {
        **TABLES,
        "topology": {"dumbbell": {"pairs": 2}},
        "connection": {"a": {"from": "S1", "to": "D2"}, "b": {"from": "S2", "to": "D1", "size": "5 KB"}},
        "traffic": {
            "cross": {
                "from": "left",
                "to": "D1",
                "packet_size": "500 B",
                "stop": "100 ms",
                "law": {"constant": {"rate": "400 kbps"}},
            }
        },
        "application": {
            "web": {
                "kind": "http",
                "from": "D2",
                "to": "S1",
                "request": {"constant": "300 B"},
                "think": {"constant": "10 ms"},
                "requests": 3,
            }
        },
    }
    return lasthop.run(lasthop.build(tables), "ebsn", trace=True, series=True)


def test_connections_have_metrics_of_their_own(network: Run) -> None:
    assert list(network.connections) == ["a", "b"]
    assert [each["delivered_bytes"] for each in network.connections.values()] == [20_000, 5_000]
    assert network.metrics["delivered_bytes"] == 25_000
    one, two = (each["throughput_bps"] for each in network.connections.values())
    assert network.metrics["fairness"] == pytest.approx((one + two) ** 2 / (2 * (one**2 + two**2)))


def test_traffic_is_counted_by_name(network: Run) -> None:
    assert list(network.traffic) == ["cross"]
    cross = network.traffic["cross"]
    # One packet each 10 ms, the first at once.
    assert cross["sent_packets"] == cross["delivered_packets"] + cross["lost_packets"] == 10


def test_applications_are_counted_by_name(network: Run) -> None:
    assert list(network.applications) == ["web"]
    web = network.applications["web"]
    assert (web["requests"], web["responses"], web["request_bytes"]) == (3, 3, 900)
    assert 0 < web["mean_response_time_s"] <= web["greatest_response_time_s"]
    assert json.loads(network.to_json())["results"][0]["applications"] == {"web": web}


def test_events_and_series_are_those_of_a_connection(network: Run) -> None:
    for name, metrics in network.connections.items():
        events = network.events(name)
        assert int((events["event"] == "sent").sum()) == metrics["segments_sent"]
        assert len(lasthop.events_frame(network, name)) == len(events["time_s"])
        assert lasthop.series_frame(network, name)["snd_una_bytes"].max() >= metrics["delivered_bytes"]
    first, again, other = network.events(), network.events("a"), network.events("b")
    assert all((first[column] == again[column]).all() for column in first)
    assert len(first["time_s"]) != len(other["time_s"])
    assert len(network.series()["time_s"]) == len(network.series("a")["time_s"])


def test_an_unknown_connection_is_refused_with_the_known_ones(network: Run) -> None:
    for recorded in (network.events, network.series):
        with pytest.raises(KeyError, match=r"no connection is called .*c.*; there are a, b"):
            recorded("c")


def test_a_single_connection_has_all_the_metrics(runs: dict[str, Run]) -> None:
    for run in runs.values():
        assert list(run.connections) == ["transfer"]
        assert run.connections["transfer"].items() <= run.metrics.items()
        assert (run.traffic, run.applications, run.metrics["fairness"]) == ({}, {}, 1.0)


def test_threads_may_run_at_once(example: Scenario, runs: dict[str, Run]) -> None:
    results: dict[str, Run] = {}

    def work(scheme: str) -> None:
        results[scheme] = lasthop.run(example, scheme)

    threads = [threading.Thread(target=work, args=(scheme,)) for scheme in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {scheme: run.metrics for scheme, run in results.items()} == {
        scheme: run.metrics for scheme, run in runs.items()
    }


def test_a_channel_without_states_is_never_bad() -> None:
    scenario = lasthop.build(
        {**TABLES, "schemes": ["basic"], "radio": {"rate": "2 Mbps", "channel": "perfect"}}
    )
    assert scenario.bad_periods(float("inf")) == []


def test_the_bad_periods_of_a_random_channel_are_those_its_losses_fall_in(example: Scenario) -> None:
    tables = tomllib.loads(example.to_toml())
    tables["radio"]["channel"] = {
        "two-state": {"good": "10 s", "bad": "4 s", "good_ber": 0.0, "bad_ber": 1.0}
    }
    scenario = lasthop.build(tables)
    events = scenario.run("basic", seed=3, run=5, trace=True).events()
    until = float(events["time_s"].max())
    lost = events["time_s"][events["event"] == "lost"]
    periods = scenario.bad_periods(until, seed=3, run=5)
    assert len(lost) > 0
    assert all(any(start <= time <= end + 1.0 for start, end in periods) for time in lost)
    assert periods != scenario.bad_periods(until, seed=3, run=6)


def test_schemes_describe_themselves() -> None:
    schemes = {scheme.name: scheme for scheme in lasthop.schemes()}
    assert schemes["ebsn"].source == "TR-96-014 section 4.2.3"
    assert "ebsn" in repr(schemes["ebsn"])


def test_values_have_a_readable_repr(example: Scenario, runs: dict[str, Run]) -> None:
    assert example.title in repr(example)
    assert "ebsn" in repr(runs["ebsn"])


def test_delays_have_a_row_for_each_packet(network: Run) -> None:
    with pytest.raises(ValueError, match="run with delays=True"):
        network.delays()
    scenario = lasthop.load("split-wlan", ["transfer.size=50 KB"])
    run = scenario.run("i-tcp", delays=True)
    delays = run.delays()
    assert run.recorded_rows == len(delays["time_s"])
    assert (np.diff(delays["time_s"]) >= 0).all()
    # Each part of the split connection carries all data.
    for start, end in run.parts():
        part = ~delays["link"] & (delays["from"] == start) & (delays["to"] == end)
        assert part.sum() > 10
        assert set(delays["flow"][part]) == {"transfer"}
    figure = lasthop.plots.delays(run)
    assert {"transfer fixed-base", "transfer base-mobile"} <= set(figure.data["way"])


def test_modules_are_there_without_being_imported() -> None:
    code = (
        "import sys, lasthop; assert 'pandas' not in sys.modules; assert 'plots' in dir(lasthop); "
        "print(lasthop.study.quantile([1, 2, 3], 0.5).value, lasthop.plots.cdf.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2.0 cdf\n", "")
    with pytest.raises(AttributeError, match="'studies'"):
        lasthop.studies  # type: ignore[attr-defined]  # noqa: B018


def test_delays_are_recorded_on_request() -> None:
    (one,) = lasthop.run_each("ebsn-example", ["ebsn"], delays=True)
    other = lasthop.run("ebsn-example", "ebsn", delays=True)
    assert one.delays()["delay_s"].tolist() == other.delays()["delay_s"].tolist() != []


def guessed(path: Path) -> Iterator[str]:
    """Yield the public attributes of public classes whose types a checker has to guess.

    It need not guess those with an annotation, those of parameters, and constants.
    """
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            made = [each for each in node.body if getattr(each, "name", "") == "__init__"]
            inside = [each for method in made for each in ast.walk(method)]
            annotated = {ast.unparse(each.target) for each in inside if isinstance(each, ast.AnnAssign)}
            for each in (*node.body, *inside):
                if not isinstance(each, ast.Assign):
                    continue
                known = ast.Constant if each in node.body else ast.Name
                target = ast.unparse(each.targets[0])
                public = each in node.body or target.startswith("self.")
                named = [name.removeprefix("self.") for name in target.strip("()").split(", ")]
                hidden = all(name.startswith("_") or "[" in name for name in named)
                if public and not hidden and target not in annotated and not isinstance(each.value, known):
                    yield f"{node.name}.{target}"


MODULES = sorted((ROOT / "python/lasthop").rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_types_are_stated(module: Path) -> None:
    assert list(guessed(module)) == []


def test_a_run_does_not_depend_on_earlier_runs() -> None:
    reused = lasthop.load("last-mile", ["transfer.size=200 KB"])
    names = [scheme.name for scheme in lasthop.schemes()] + ["snoop + arq", "nosuch"]

    def outcome(scenario: lasthop.Scenario, name: str) -> object:
        try:
            return scenario.run(name, run=3).metrics
        except lasthop.ScenarioError as error:
            return str(error)

    # More schemes than a scenario keeps set-ups of, so that some are made twice.
    for _ in range(2):
        for name in names:
            fresh = lasthop.load("last-mile", ["transfer.size=200 KB"])
            assert outcome(reused, name) == outcome(fresh, name)
