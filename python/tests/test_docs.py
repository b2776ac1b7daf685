"""The documentation says what the program does."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLE, ROOT, Command

import lasthop
from lasthop import Run, Scenario, ScenarioError
from lasthop._lasthop import better
from lasthop.cli.failure import EXIT_CODES

DOCS = ROOT / "docs"
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md"))]

MINIMAL = """
[transfer]
size = "100 KB"
[wired]
rate = "10 Mbps"
[radio]
rate = "2 Mbps"
"""

ENDS = {"from": "fixed", "to": "mobile"}
TRAFFIC = ENDS | {"packet_size": "500 B", "law": {"constant": {"rate": "1 kbps"}}}
APPLICATION = ENDS | {
    "request": {"constant": "1 KB"},
    "response": {"constant": "1 KB"},
    "think": {"constant": "1 s"},
}

# For each table of the reference: where it stands, and its required keys.
TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "Top level": ("", {}),
    "topology.path": ("topology.path", {"routers": 1}),
    "topology.dumbbell": ("topology.dumbbell", {"pairs": 1}),
    "topology.cell": ("topology.cell", {"stations": 1}),
    "topology.hand-off": ("topology.hand-off", {}),
    "topology.graph": ("topology.graph", {}),
    "mobility.NAME": ("mobility.mobile", {"moves": {"periodic": {"stay": "1 s"}}}),
    "mobility.NAME.moves.periodic": ("mobility.mobile.moves.periodic", {"stay": "1 s"}),
    "mobility.NAME.moves.random": ("mobility.mobile.moves.random", {"stay": "1 s"}),
    "mobility.NAME.moves.strongest": ("mobility.mobile.moves.strongest", {"crossing": "1 s"}),
    "transfer": ("transfer", {"size": "100 KB"}),
    "connection.NAME": ("connection.x", {}),
    "traffic.NAME": ("traffic.x", TRAFFIC),
    "traffic.NAME.voip": ("traffic.x.voip", {"codec": "g711"}),
    "traffic.NAME.law.constant": ("traffic.x.law.constant", {"rate": "1 kbps"}),
    "traffic.NAME.law.poisson": ("traffic.x.law.poisson", {"rate": "1 kbps"}),
    "traffic.NAME.law.on-off": ("traffic.x.law.on-off", {"rate": "1 kbps", "on": "1 s", "off": "1 s"}),
    "application.NAME": ("application.x", APPLICATION),
    "application.NAME.page": ("application.x.page", {}),
    "application.NAME.video": ("application.x.video", {}),
    "application.NAME.video.adaptation.buffer": (
        "application.x.video.adaptation.buffer",
        {"reservoir": "5 s", "cushion": "10 s"},
    ),
    "application.NAME.video.adaptation.rate": ("application.x.video.adaptation.rate", {"segments": 5}),
    "wired": ("wired", {"rate": "10 Mbps"}),
    "wired.queue.codel": ("wired.queue.codel", {}),
    "wired.queue.fq-codel": ("wired.queue.fq-codel", {}),
    "wired.queue.red": ("wired.queue.red", {}),
    "radio": ("radio", {"rate": "2 Mbps"}),
    "radio.channel.two-state": ("radio.channel.two-state", {"good": "1 s", "bad": "1 s"}),
    "radio.channel.fixed-periods": ("radio.channel.fixed-periods", {"good": "1 s", "bad": "1 s"}),
    "radio.channel.iid": ("radio.channel.iid", {"ber": 0.1}),
    "radio.channel.frame-loss": ("radio.channel.frame-loss", {"loss": 0.1}),
    "radio.channel.gilbert": ("radio.channel.gilbert", {"loss": 0.1}),
    "radio.channel.semi-markov": (
        "radio.channel.semi-markov",
        {"good": {"constant": "1 s"}, "bad": {"constant": "1 s"}},
    ),
    "radio.channel.rayleigh-gilbert": (
        "radio.channel.rayleigh-gilbert",
        {"fading_margin": "5 dB", "doppler": 0.1, "step": "10 ms"},
    ),
    "radio.channel.nguyen-noble": (
        "radio.channel.nguyen-noble",
        {"leave_error": 0.2, "leave_error_free": 0.7, "error_rate": 0.005},
    ),
    "radio.outage": ("radio.outage", {"first": "1 s", "lasts": "1 s"}),
    "radio.power": ("radio.power", {"transmit": "2 W", "receive": "1 W", "idle": "500 mW"}),
    "radio.arq.stop-and-wait": ("radio.arq.stop-and-wait", {}),
    "radio.arq.selective-repeat": ("radio.arq.selective-repeat", {}),
    "radio.arq.status-window": ("radio.arq.status-window", {}),
    "radio.arq.rlp": ("radio.arq.rlp", {}),
    "cell": ("cell", {}),
    "cell.phy.dsss": ("cell.phy.dsss", {}),
    "cell.phy.ofdm": ("cell.phy.ofdm", {}),
    "cell.cw": ("cell.cw", {"min": 31, "max": 1023}),
    "cell.drop": ("cell.drop", {}),
    "link.NAME": ("link.base-mobile", {}),
    "host.NAME": ("host.fixed", {}),
}

# Where one of several is chosen: in which table, and by which key.
CHOICES = {
    "topology": ("Top level", "topology"),
    "wired.queue": ("wired", "queue"),
    "radio.rate": ("radio", "rate"),
    "radio.delay": ("radio", "delay"),
    "radio.channel": ("radio", "channel"),
    "radio.arq": ("radio", "arq"),
    "radio.arq.stop-and-wait.backoff": ("radio.arq.stop-and-wait", "backoff"),
    "radio.arq.status-window.reports": ("radio.arq.status-window", "reports"),
    "traffic.x.law": ("traffic.NAME", "law"),
    "cell.phy": ("cell", "phy"),
    "application.x.video.adaptation": ("application.NAME.video", "adaptation"),
}


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of the tables under each heading, without the headers."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.strip("# `[]")
        elif line.startswith("| `"):
            first, *rest = (cell.strip() for cell in line[1:-1].split("|"))
            found.setdefault(heading, []).append([first.strip("`"), *rest])
    return found


def literal(value: Any) -> str:
    """Write a value as the canonical form does."""
    if isinstance(value, float) and 1e-6 <= value < 1e-3:
        return f"`{value:f}`"
    return f"`{json.dumps(value)}`"


def at(document: dict[str, Any], path: str) -> dict[str, Any]:
    for key in path.split(".") if path else []:
        document = document[key]
    return document


def scenario_with(path: str, content: dict[str, Any]) -> Scenario:
    """Return the smallest scenario with a table at `path` of this content, and all that this one needs."""
    document = tomllib.loads(MINIMAL)
    if path == "topology.graph":
        content = content or {"wired": ["a-b"]}
        document["transfer"] |= {"from": "a", "to": "b"}
    elif path == "topology.hand-off":
        document["mobility"] = {"mobile": {"moves": {"periodic": {"stay": "1 s"}}}}
    elif path.startswith("mobility"):
        document["topology"] = {"hand-off": {"stations": 2}}
        if path != "mobility.mobile":
            document["mobility"] = {"mobile": {"moves": {}}}
    elif path.startswith("traffic.x.law"):
        document["traffic"] = {"x": TRAFFIC | {"law": {}}}
    elif path == "traffic.x.voip":
        document["traffic"] = {"x": dict(ENDS)}
    elif path.startswith("application.x."):
        document["application"] = {"x": ENDS | {"kind": path.split(".")[2]}}
    table = document
    *parents, last = path.split(".")
    for name in parents:
        if not isinstance(table.get(name), dict):
            # A table takes the place of a word or a quantity.
            table[name] = {}
        table = table[name]
    if last:
        table[last] = content
    else:
        document |= content
    return lasthop.build(document)


def defaults(path: str, required: dict[str, Any]) -> dict[str, Any]:
    """Return the table at `path` that only says what is required, as the canonical form has it."""
    table = at(tomllib.loads(scenario_with(path, required).to_toml()), path)
    if path == "topology.graph":
        # One of its lists must have a link. This is the other.
        other = scenario_with(path, {"radio": ["a-b"]})
        table["wired"] = at(tomllib.loads(other.to_toml()), path)["wired"]
    return table


def known(path: str) -> list[str]:
    """Return the keys, or the choices, that the program knows at `path`: it names them when one is wrong."""
    prefix = f"{path}." if path else ""
    wrong = f"{prefix}no_such_key" + (".x=1" if path in CHOICES else "=1")
    with pytest.raises(ScenarioError, match="no_such_key") as caught:
        Scenario.parse(MINIMAL, overrides=[wrong])
    return re.findall(r'"([\w-]+)"', caught.value.message.split("expected", 1)[1])


def canonical(*overrides: str) -> dict[str, Any]:
    return tomllib.loads(Scenario.parse(MINIMAL, overrides=overrides).to_toml())


REFERENCE = tables((DOCS / "reference/scenarios.md").read_text())


def documented(heading: str) -> list[str]:
    """Return the keys that a table of the reference documents: of `backoff.uniform` the first part."""
    return list(dict.fromkeys(row[0].split(".")[0] for row in REFERENCE[heading]))


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_is_documented_with_its_default(heading: str) -> None:
    path, required = TABLES[heading]
    assert all(meaning.endswith(".") for _, _, meaning in REFERENCE[heading])
    keys = known(path)
    if heading == "Top level":
        # A sender has the keys of TCP, and no table of its own.
        sections = {name.split(".")[0] for name in REFERENCE} | {"sweep", "senders"}
        keys = [key for key in keys if key not in sections or key == "topology"]
    assert documented(heading) == keys
    table = defaults(path, required)
    for key, default, _ in REFERENCE[heading]:
        parts = key.split(".")
        value = table.get(parts[0])
        for part in parts[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        if default == "required":
            assert key in required
        elif value is not None and not isinstance(value, dict) and key != "objects":
            assert default == literal(value), key
        else:
            # The canonical form leaves it out, or has a table that is documented by itself: in words.
            assert not default.startswith("`"), key


@pytest.mark.parametrize(
    ("heading", "key"), [(heading, key) for heading, (_, required) in TABLES.items() for key in required]
)
def test_required_keys_are_required(heading: str, key: str) -> None:
    path, required = TABLES[heading]
    assert [row[1] for row in REFERENCE[heading] if row[0] == key] == ["required"]
    scenario_with(path, required)
    with pytest.raises(ScenarioError, match=f"missing key .*{key}"):
        scenario_with(path, {name: value for name, value in required.items() if name != key})


@pytest.mark.parametrize("path", CHOICES)
def test_every_choice_is_documented(path: str) -> None:
    table, key = CHOICES[path]
    rows = REFERENCE[table]
    words = "".join(row[2] for row in rows if row[0] == key)
    for choice in known(path):
        heading = path.replace(".x.", ".NAME.")
        described = f"{heading}.{choice}" in REFERENCE or f'`"{choice}"`' in words
        assert described or f"{key}.{choice}" in [row[0] for row in rows], choice


def test_every_key_of_a_direction_is_documented() -> None:
    text = (DOCS / "reference/scenarios.md").read_text()
    (section,) = re.findall(r"### `\[radio.uplink\]`\n(.*?)\n#", text, re.DOTALL)
    power = {"transmit": "2 W", "receive": "1 W", "idle": "1 W"}
    both = {"outage": {"first": "1 s", "lasts": "1 s"}, "power": power, "uplink": {}, "preset": "geo"}
    of_cells = {"drop": {"up": 0.1}}
    prose = section.split("```")[0]
    assert list(dict.fromkeys(re.findall(r"`(\w+)`", prose))) == [
        key for key in known("radio.uplink") if key not in both | of_cells
    ]
    (example,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    for table in ("radio.uplink", "link.base-mobile.uplink"):
        scenario_with(table, tomllib.loads(example)["radio"]["uplink"])
        for key, value in both.items():
            with pytest.raises(ScenarioError, match=f"{table}.{key}: found it for one direction"):
                scenario_with(table, {key: value})
        for key, drop in of_cells.items():
            with pytest.raises(ScenarioError, match=f"{table}.{key}: found it on a wireless link"):
                scenario_with(table, {key: drop})


def test_keys_of_cells_are_for_links_of_cells() -> None:
    text = MINIMAL + "[topology.cell]\nstations = 1\n"
    rows = [row[0] for row in REFERENCE["link.NAME"]]
    own = {"channel": "perfect", "drop": "{up=0.1}"}
    assert set(own) < set(rows)
    for key in rows:
        overrides = [f"link.ap-MH1.{key}={own.get(key, '{}')}"]
        if key in own:
            Scenario.parse(text, overrides=overrides)
        else:
            with pytest.raises(ScenarioError, match=f"link.ap-MH1.{key}"):
                Scenario.parse(text, overrides=overrides)


# Tables of which one key or another is required: what they say here, and the keys without a default.
ALTERNATIVES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "radio.channel.gilbert-elliott": ({"p": 0.1, "r": 0.2}, {"p", "r", "good", "bad"}),
    "radio.rate.lognormal": ({"sigma": 0.5, "median": "1 Mbps"}, {"median", "mean", "slot"}),
    "radio.delay.lognormal": ({"sigma": 0.5, "mean": "1 ms"}, {"median", "mean", "slot"}),
}


@pytest.mark.parametrize("heading", ALTERNATIVES)
def test_every_key_of_tables_with_alternatives_is_documented(heading: str) -> None:
    content, free = ALTERNATIVES[heading]
    assert documented(heading) == known(heading)
    table = at(tomllib.loads(scenario_with(heading, content).to_toml()), heading)
    for key, default, _ in REFERENCE[heading]:
        expected = "required" if key == "sigma" else "none" if key in free else literal(table[key])
        assert default == expected, key


def test_every_law_of_periods_is_documented() -> None:
    laws = [tomllib.loads(row[0]) for row in REFERENCE["Distributions of period lengths"]]
    with pytest.raises(ScenarioError, match="no_such_law") as caught:
        Scenario.parse(MINIMAL, overrides=["radio.channel.semi-markov.good.no_such_law.x=1"])
    known_laws = re.findall(r'"([\w-]+)"', caught.value.message.split("expected", 1)[1])
    assert list(dict.fromkeys(name for law in laws for name in law)) == known_laws
    path = "radio.channel.semi-markov"
    for law in laws:
        if "file" not in str(law):
            scenario_with(path, {"good": law, "bad": law})


# Tables with the name of a file.
FILES = {
    "radio.channel.loss-series": ["file"],
    "radio.rate.mahimahi": ["file"],
    "radio.rate.series": ["file"],
    "radio.rate.signal": ["file", "table"],
    "radio.delay.series": ["file"],
    "radio.delay.per-packet": ["file"],
}


@pytest.mark.parametrize("table", FILES)
def test_tables_with_files_are_documented(table: str) -> None:
    assert documented(table) == known(table) == FILES[table]
    with pytest.raises(ScenarioError, match=rf"missing key {re.escape(table)}\.file"):
        scenario_with(table, {})


def test_every_law_of_an_application_is_documented() -> None:
    laws = [tomllib.loads(row[0]) for row in REFERENCE["Distributions"]]
    with pytest.raises(ScenarioError, match="no_such_law") as caught:
        Scenario.parse(MINIMAL, overrides=["application.x.request.no_such_law.x=1"])
    known_laws = re.findall(r'"([\w-]+)"', caught.value.message.split("expected", 1)[1])
    assert [name for law in laws for name in law] == known_laws
    for law in laws:
        key = "think" if "30 s" in law.values() else "response"
        scenario_with("application.x", APPLICATION | {key: law})


def test_every_kind_of_application_is_documented_with_its_numbers() -> None:
    with pytest.raises(ScenarioError, match="no_such_kind") as caught:
        scenario_with("application.x", ENDS | {"kind": "no_such_kind"})
    kinds = re.findall(r'"([\w-]+)"', caught.value.message.split("expected", 1)[1])
    assert [row[0] for row in REFERENCE["Kinds of applications"]] == kinds
    for kind, *cells in REFERENCE["Kinds of applications"]:
        document = tomllib.loads(scenario_with("application.x", ENDS | {"kind": kind}).to_toml())
        application = document["application"]["x"]
        assert ("does not wait" in cells[2]) == (application.get("waits") is False)
        for key, cell in zip(("request", "response", "think"), cells, strict=False):
            if key not in application:
                assert kind in application
                assert kind in cell or cell == "none"
                continue
            ((law, numbers),) = application[key].items()
            assert law == "constant" or law in cell
            for number in numbers.values() if isinstance(numbers, dict) else [numbers]:
                assert re.search(rf"(^| ){re.escape(str(number))}\b", cell), (kind, key, number)


def test_every_setting_of_tcp_is_documented_for_every_profile() -> None:
    assert documented("tcp") == known("tcp")
    for column, profile in enumerate(("linux", "freebsd", "rfc", "ns2", "ebsn"), start=1):
        table = canonical(f"tcp.profile={profile}")["tcp"]
        # What the canonical form leaves out is in words.
        stated = [row for row in REFERENCE["tcp"] if row[column] != "none"]
        assert [row[0] for row in stated] == list(table)
        for row in stated:
            assert row[column] == literal(table[row[0]]), (profile, row[0])


def test_the_default_profile_is_that_of_a_linux_server() -> None:
    linux = canonical()["tcp"]
    assert linux == canonical("tcp.profile=linux")["tcp"]
    for profile, congestion in [("linux-bbr", "bbr"), ("linux-bbr3", "bbr3")]:
        other = canonical(f"tcp.profile={profile}")["tcp"]
        assert other == linux | {"profile": profile, "congestion": congestion}


@pytest.mark.parametrize("path", ["connection.x.tcp", "host.fixed.tcp", "senders.x"])
def test_tcp_of_one_connection_host_or_sender_has_the_same_keys(path: str) -> None:
    assert known(path) == known("tcp")
    heading = path.replace(".x", ".NAME").replace(".fixed", ".NAME").removesuffix(".tcp")
    text = (DOCS / "reference/scenarios.md").read_text()
    name = f"{heading}.tcp" if path.startswith("connection") else heading
    (section,) = re.findall(rf"\n#+ `\[{re.escape(name)}\]`\n(.*?)\n#", text, re.DOTALL)
    (example,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    lasthop.build(tomllib.loads(MINIMAL) | tomllib.loads(example))


def test_every_parameter_of_a_scheme_is_documented() -> None:
    schemes = canonical()["scheme"]
    assert list(schemes) == known("scheme")
    for name, parameters in schemes.items():
        rows = REFERENCE.get(f"scheme.{name}", [])
        assert [row[0] for row in rows] == list(parameters), name
        for row in rows:
            if row[0] == "wireless":
                # By default it says nothing: in words.
                assert (row[1], parameters[row[0]]) == ("as in `[tcp]`", {}), name
            elif isinstance(parameters[row[0]], dict):
                # The names in the table; its keys are documented elsewhere.
                assert row[1] == ", ".join(f"`{key}`" for key in parameters[row[0]]), (name, row[0])
            else:
                assert row[1] == literal(parameters[row[0]]), (name, row[0])


def test_the_wireless_part_has_the_settings_of_tcp() -> None:
    split = [name for name, parameters in canonical()["scheme"].items() if "wireless" in parameters]
    assert split == ["i-tcp", "metp", "vs-tcp", "m-tcp"]
    for name in split:
        assert known(f"scheme.{name}.wireless") == [key for key in known("tcp") if key != "profile"]
    text = (DOCS / "reference/scenarios.md").read_text()
    (section,) = re.findall(r"### `\[scheme.NAME.wireless\]`\n(.*)", text, re.DOTALL)
    (example,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    stated = tomllib.loads(example)["scheme"]["metp"]["wireless"]
    assert (
        canonical(*(f"scheme.metp.wireless.{key}={value}" for key, value in stated.items()))["scheme"][
            "metp"
        ]["wireless"]
        == stated
    )


# Settings that are one of several words, by their tables.
WORDS = [
    ("tcp", "profile"),
    ("tcp", "flavour"),
    ("tcp", "detection"),
    ("tcp", "congestion"),
    ("tcp", "slow_start_exit"),
    ("tcp", "rules"),
    ("tcp", "window_counts"),
    ("tcp", "rtt_arithmetic"),
    ("tcp", "rtt_samples"),
    ("cell.phy.dsss", "preamble"),
    ("cell.phy.ofdm", "band"),
    ("scheme.metp", "recovery"),
    ("scheme.vs-tcp", "growth"),
    ("scheme.vs-tcp", "loss_rate"),
    ("scheme.selective-fec", "protect"),
]


@pytest.mark.parametrize(("table", "key"), WORDS)
def test_every_word_is_documented(table: str, key: str) -> None:
    with pytest.raises(ScenarioError, match="no-such-word") as caught:
        Scenario.parse(MINIMAL, overrides=[f"{table}.{key}=no-such-word"])
    words = re.findall(r'"([\w-]+)"', caught.value.message.split("expected", 1)[1])
    assert len(words) > 1
    (row,) = (row for row in REFERENCE[table] if row[0] == key)
    assert set(words) <= set(re.findall(r'`"([\w-]+)"`', row[-1])), key


def test_every_metric_and_column_is_documented_in_order(runs: dict[str, Run]) -> None:
    documented = tables((DOCS / "reference/metrics.md").read_text())
    names = [row[0] for row in documented["Metrics"]]
    assert names == list(runs["basic"].metrics)
    events = runs["basic"].events()
    assert [row[0] for row in documented["Events"]] == list(events)
    assert [row[0] for row in documented["Series"]] == list(runs["basic"].series())
    delays = scenario_with("traffic.x", TRAFFIC).run(delays=True).delays()
    assert [name for row in documented["Delays"] for name in row[0].replace("`", "").split(", ")] == list(
        delays
    )
    split = lasthop.load(ROOT / "scenarios/split-wlan.toml", ["transfer.size=5 KB"])
    relay = split.run("metp", series=True).series(part=1)
    assert list(relay) == [*runs["basic"].series(), "held_bytes"]
    run = scenario_with("traffic.x", TRAFFIC).run()
    assert names[: names.index("aqm_drops") + 1] == list(run.connections["transfer"])
    assert [row[0] for row in documented["Other traffic"]] == list(run.traffic["x"])
    run = scenario_with("application.x", APPLICATION).run()
    messages = [row[0] for row in documented["Applications"]]
    assert messages == list(run.applications["x"])
    for heading, kind in (("Pages", "page"), ("Videos", "video")):
        run = scenario_with("application.x", ENDS | {"kind": kind}).run()
        assert messages + [row[0] for row in documented[heading]] == list(run.applications["x"])


def test_which_values_are_better_is_documented() -> None:
    documented = tables((DOCS / "reference/metrics.md").read_text())
    for heading, prefix in (
        ("Metrics", ""),
        ("Other traffic", "traffic.x."),
        ("Applications", "application.x."),
        ("Pages", "application.x."),
        ("Videos", "application.x."),
    ):
        for name, _, said, _ in documented[heading]:
            assert (better(f"{prefix}{name}") or "") == said, name


def test_counters_are_documented_in_order() -> None:
    documented = [
        row[0] for row in tables((DOCS / "reference/metrics.md").read_text())["Counters of the schemes"]
    ]
    schemes = list(dict.fromkeys(name.split(".")[0] for name in documented))
    found = []
    for scheme in schemes:
        run = lasthop.load(EXAMPLE, ["tcp.flavour=reno", "transfer.size=1 KB"]).run(scheme)
        found += [name for name in run.metrics if "." in name]
        assert {name for agent in run.counters.values() for name in agent} == {
            name.split(".")[1] for name in found if name.startswith(f"{scheme}.")
        }
    assert documented == found


def test_every_event_that_occurs_is_documented(runs: dict[str, Run]) -> None:
    text = (DOCS / "reference/metrics.md").read_text()
    for run in runs.values():
        agents = run.scheme.split(" + ")
        for name in {*run.events()["event"].tolist(), *run.events()["reason"].tolist()} - {"", *agents}:
            assert f"`{name}`" in text


def test_the_readme_shows_the_table_that_the_command_prints(command: Command) -> None:
    assert command("run", EXAMPLE).stdout.strip() in (ROOT / "README.md").read_text()


def test_json_examples_equal_the_output_of_the_command(command: Command) -> None:
    error, text = re.findall(r"```json\n(.*?)```", (DOCS / "reference/json.md").read_text(), re.DOTALL)
    refused = json.loads(command("check", EXAMPLE, "--set", "radio.rat=1", "--json").stdout)
    assert list(refused["error"]) == list(json.loads(error)["error"])
    assert list(refused["error"]["place"]) == list(json.loads(error)["error"]["place"])
    shown = json.loads(text)
    printed = json.loads(command("run", EXAMPLE, "--scheme", "ebsn", "--json").stdout)
    (shown_result,), (result,) = shown.pop("results"), printed.pop("results")
    # Each new key of a scenario makes other hashes.
    assert len(shown["scenario"].pop("hash")) == len(printed["scenario"].pop("hash"))
    assert shown == printed
    assert list(shown_result) == list(result)
    for metrics, found in (
        (shown_result["metrics"], result["metrics"]),
        (shown_result["connections"]["transfer"], result["connections"]["transfer"]),
    ):
        assert metrics["throughput_bps"] == round(found["throughput_bps"], 1)


def python_blocks(path: Path) -> list[str]:
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", path.read_text(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in blocks]


# The code of reports is tested where it is repeated.
@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("docs/reports/")])
def test_the_python_in_the_documentation_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    for block in python_blocks(ROOT / name):
        exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.name)
def test_every_scenario_is_valid(path: Path) -> None:
    assert lasthop.load(path).title


def test_links_have_targets() -> None:
    for page in (ROOT / name for name in PAGES):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), (page.name, target)


def test_files_that_pages_name_exist() -> None:
    place = r"`((?:crates|python|scripts|benches|tests|docs|scenarios|notebooks)/[\w./-]+)`"
    for name in PAGES:
        # It names files that are to be written.
        if name != "CONTRIBUTING.md":
            missing = [
                path for path in re.findall(place, (ROOT / name).read_text()) if not (ROOT / path).exists()
            ]
            assert missing == [], name


def test_the_architecture_names_every_room() -> None:
    rooms = re.findall(r"^ {4}.*", (DOCS / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    named = set(re.findall(r"(\w+)/", "\n".join(rooms)))
    crates = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    packages = {path.parent.name for path in (ROOT / "python/lasthop").glob("*/__init__.py")}
    assert len(crates) > 10
    assert len(packages) > 10
    assert sorted((crates | packages) - named) == []


def test_pages_written_by_hand_stay_short() -> None:
    generated = ("docs/reference/", "docs/reports/")
    texts = {name: (ROOT / name).read_text() for name in PAGES if not name.startswith(generated)}
    words = {name: len(text.split()) for name, text in texts.items() if name.startswith("docs/")}
    assert 20_000 < sum(words.values()) <= 40_000, sorted(words.items(), key=lambda each: -each[1])
    assert len(texts["README.md"].splitlines()) <= 130


def test_the_exit_codes_are_documented() -> None:
    section = (DOCS / "reference/json.md").read_text().partition("## Exit codes\n")[2]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", section, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
