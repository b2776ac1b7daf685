"""The reference and the JSON Schema of scenario files say what the program does."""

from __future__ import annotations

import copy
import importlib.util
import json
import random
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest
from conftest import ROOT

import lasthop
from lasthop import Scenario, ScenarioError
from lasthop._lasthop import PROFILES, gateway_schema
from lasthop.core.keys import Key, schema, sections, settings

Document = dict[str, Any]

SCENARIO = """
[transfer]
size = "100 KB"
[wired]
rate = "10 Mbps"
[radio]
rate = "2 Mbps"
"""
ENDS = {"from": "fixed", "to": "mobile"}
PERIODIC = {"moves": {"periodic": {"stay": "1 s"}}}
TRAFFIC = ENDS | {"packet_size": "500 B", "law": {"constant": {"rate": "1 kbps"}}}

CONTEXTS: dict[str, Document] = {
    "topology.cell": {"topology": {"cell": {"stations": 1}}},
    "cell": {"topology": {"cell": {"stations": 1}}},
    "wifi": {"topology": {"cell": {"stations": 1}}},
    "mobility": {"topology": {"hand-off": {}}, "mobility": {"mobile": PERIODIC}},
    "shared": {"topology": {"shared-radio": {"mobiles": 1}}, "radio": {"arq": {"stop-and-wait": {}}}},
    "traffic": {"traffic": {"x": TRAFFIC}},
    "application": {"application": {"x": ENDS | {"kind": "http"}}},
}
"""What a table needs around it, by the beginning of its path."""


def script() -> Any:
    """Return the script that writes the reference."""
    path = ROOT / "scripts/reference.py"
    spec = importlib.util.spec_from_file_location("reference_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look for their module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


REFERENCE = script()


@cache
def validator() -> Any:
    """Return the validator of scenario files."""
    jsonschema.Draft7Validator.check_schema(schema())
    return jsonschema.Draft7Validator(schema())


def complaints(document: Document) -> list[str]:
    """Return what the schema refuses in a document."""
    return [f"{error.json_path}: {error.message[:200]}" for error in validator().iter_errors(document)]


def merged(document: Document, other: Document) -> Document:
    """Return a document with the tables of another one."""
    both = copy.deepcopy(document)
    for key, value in other.items():
        both[key] = (
            merged(both[key], value) if isinstance(both.get(key), dict) and isinstance(value, dict) else value
        )
    return both


def around(path: str) -> Document:
    """Return a scenario in which the table at `path` has a place."""
    document = tomllib.loads(SCENARIO)
    for beginning, context in CONTEXTS.items():
        if path.startswith(beginning):
            document = merged(document, context)
    return document


def stating(path: str, value: Any) -> dict[str, Any]:
    """Return a scenario that states a value at `path`."""
    document = table = copy.deepcopy(around(path))
    *parents, last = path.split(".")
    for parent in parents:
        if not isinstance(table.get(parent), dict):
            table[parent] = {}
        table = table[parent]
    table[last] = copy.deepcopy(value)
    return document


def concrete(path: str) -> str:
    """Return a path with names for its NAMEs."""
    names = {"connection": "x", "host": "fixed", "link": "base-mobile", "mobility": "mobile", "senders": "x"}
    return path.replace("NAME", names.get(path.split(".")[0], "x"))


def read(document: dict[str, Any]) -> Scenario:
    """Return the scenario of a file with these tables, in which a number has no unit."""
    return Scenario.parse(
        "".join(f"{json.dumps(key)} = {in_toml(value)}\n" for key, value in document.items())
    )


def in_toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {in_toml(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_toml, value))}]"
    # Numbers, booleans and strings have the same syntax in TOML and JSON.
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("name", REFERENCE.PAGES)
def test_the_pages_are_those_of_the_program(name: str) -> None:
    page = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert page == REFERENCE.PAGES[name](), "write them: python scripts/reference.py"


def test_every_table_and_key_says_what_it_is() -> None:
    for section in sections():
        assert section.about, section.path
        for key in section.keys:
            # Words such as "unlimited" speak for themselves; schemes have summaries.
            if not key.name.startswith('"') and section.path != "scheme":
                assert key.meaning.endswith((".", "```")), (section.path, key.name, key.meaning)


def documents() -> Iterator[tuple[str, Document]]:
    """Yield scenarios that the program accepts."""
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        yield path.stem, tomllib.loads(path.read_text())
        yield f"{path.stem}, canonical", tomllib.loads(lasthop.load(path).to_toml())
    for profile in PROFILES:
        yield profile, tomllib.loads(Scenario.parse(SCENARIO, overrides=[f"tcp.profile={profile}"]).to_toml())
    for link in lasthop.links():
        cell = {"topology": {"cell": {"stations": 1}}} if link.table == "wifi" else {}
        hop: Document = {link.table: {"preset": link.name}}
        yield link.name, {"transfer": {"size": "1 MB"}, "wired": {"rate": "1 Gbps"}, **cell, **hop}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in examples(page.read_text()):
            # Files of the gateway have a schema of their own.
            if not {"gateway", "match", "shaper"} & block.keys():
                yield page.name, block


def examples(text: str) -> list[Document]:
    """Return the examples of scenario files in a page."""
    return [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)]


def test_the_schema_accepts_what_the_program_accepts() -> None:
    for name, document in documents():
        # Examples are parts of scenarios: keys that they leave out are not missing.
        found = [
            text for text in complaints(document) if "required property" not in text and "anyOf" not in text
        ]
        found = [
            text for text in found if "under any of the given schemas" not in text or "$.radio:" not in text
        ]
        assert not found, name


def test_every_example_of_the_reference_is_a_part_of_a_scenario() -> None:
    for section in sections():
        for example in examples(section.about):
            document = merged(around(section.path), example)
            found = complaints(document)
            # Examples may leave out keys that others state, and name files and links that others have.
            assert not [text for text in found if "is a required property" not in text], section.path
            if not found and not re.search(r'"file"|"preset"|"graph"|"R\d|laptop', json.dumps(example)):
                read(document)


WRONG: dict[str, tuple[str, Any]] = {
    "an unknown key": ("radio.rat", "1 Mbps"),
    "an unknown table": ("radoi", {}),
    "an unknown channel": ("radio.channel", {"two-states": {}}),
    "two channels": ("radio.channel", {"iid": {"ber": 0.1}, "frame-loss": {"loss": 0.1}}),
    "a wrong unit": ("radio.rate", "2 Mbs"),
    "a rate without a unit": ("radio.rate", 2),
    "the unit of another quantity": ("wired.delay", "5 Mbps"),
    "a negative duration": ("limit", "-1 s"),
    "a number for a text": ("title", 1),
    "a text for a number": ("tcp.dupthresh", "3"),
    "a text for a truth": ("tcp.ecn", "true"),
    "a negative count": ("tcp.dupthresh", -1),
    "a probability above one": ("cell.drop.up", 1.5),
    "an unknown word": ("tcp.congestion", "cubik"),
    "a missing key": ("radio.channel", {"two-state": {"good": "1 s"}}),
    "an unknown scheme": ("schemes", ["snop"]),
    "no scheme": ("schemes", []),
    "a share above 100 %": ("radio.channel", {"frame-loss": {"loss": "200 %"}}),
    "an unknown table of a sweep": ("sweep", {"radoi": {"rate": ["1 Mbps"]}}),
    "a sweep of schemes": ("sweep", {"schemes": [["basic"]]}),
    "an unknown scheme's table": ("scheme", {"snop": {}}),
    "a list for a table": ("wired", []),
    "a burst of less than a packet": ("radio.channel", {"gilbert": {"loss": 0.1, "burst": 0.5}}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_refused_by_the_schema_and_by_the_program(name: str) -> None:
    path, value = WRONG[name]
    document = around(path)
    assert not complaints(document)
    read(document)
    table = document
    *parents, last = path.split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
    table[last] = value
    assert complaints(document)
    with pytest.raises(ScenarioError):
        read(document)


@pytest.mark.parametrize(
    "share", ["0", "1", "0.5", ".5", "1.0", "0 %", "100 %", "100.0%", "99.9 %", "05 %", " 5 % "]
)
def test_the_schema_accepts_shares(share: str) -> None:
    document = around("radio.channel") | {
        "radio": {"rate": "1 Mbps", "channel": {"frame-loss": {"loss": share}}}
    }
    read(document)
    assert not complaints(document)


def test_the_schema_accepts_spaces_around_a_scheme() -> None:
    document = around("") | {
        "schemes": ["  snoop  ", " ebsn+arq"],
        "radio": {"rate": "1 Mbps", "mtu": "128 B"},
    }
    assert not complaints(document)
    read(document | {"schemes": ["  snoop  "]})


WHOLE = (0, 1, 2, 9, 100, 10**6, 2**32, -1)

RELATIVE = {
    "wired.queue.red.min", "wired.queue.red.max", "wired.queue.adaptive-red.burst",
    "radio.arq.status-window.window", "radio.arq.status-window.reports.every",
}  # fmt: skip
"""Keys whose bounds are values of other keys."""

SHARES = {
    "wired.queue.red.weight",
    "wired.queue.adaptive-red.probability",
    "radio.grants.loss",
    "wifi.neighbour.share",
}
"""Probabilities with bounds of their own, which the schema does not state."""

ALSO_OF_SCHEMES = {"radio.arq.rlp.memory", "radio.arq.rlp.window"}
"""Keys of an ARQ that are also those of a scheme, whose table is checked only if the scheme runs."""


def test_the_schema_has_the_bounds_of_numbers() -> None:
    """Of a number of which the program takes some, those that it refuses are refused by the schema."""
    missed = set()
    for section in sections():
        for key in section.keys:
            if key.kind not in ("number", "whole number", "probability"):
                continue
            path = concrete(f"{section.path}.{key.name}".lstrip("."))
            taken, left = [], []
            for number in WHOLE if key.kind == "whole number" else (*WHOLE, -0.5, 0.5):
                document = stating(path, number)
                try:
                    read(document)
                    taken.append(number)
                except ScenarioError:
                    if not complaints(document):
                        left.append(number)
            if taken and left:
                missed.add(path)
    assert missed == RELATIVE | SHARES | ALSO_OF_SCHEMES


VALUES: tuple[Any, ...] = (
    "5 s", "2 Mbps", "1500 B", "10 packets", "1 segment", "unlimited", "none", "good", "auto", "3 dB", "1 W",
    "20 %", 0, 1, 3, 0.5, 1.5, -1, True, False, [], ["a"], {}, "", "x.csv", "perfect", "bch-255-131-18",
)  # fmt: skip
"""Values of every kind, most of which a given key does not take."""


def test_whatever_the_program_accepts_the_schema_accepts() -> None:
    stream = random.Random(1)
    accepted = refused = 0
    places = [
        (section, key) for section in sections() for key in section.keys if not key.name.startswith('"')
    ]
    for section, key in places:
        path = concrete(f"{section.path}.{key.name}".lstrip("."))
        own = () if key.default is None else (key.default,)
        for value in (*own, *stream.sample(VALUES, 6)):
            if isinstance(value, list) and "table" in key.kind:
                # The program would take it for the values of the table's keys in order.
                continue
            document = stating(path, value)
            try:
                canonical = read(document).to_toml()
            except ScenarioError:
                refused += 1
                continue
            accepted += 1
            assert not complaints(document), (path, value)
            assert not complaints(tomllib.loads(canonical)), (path, value)
    assert accepted > 300, accepted
    assert refused > 1000, refused


def test_the_defaults_are_those_of_the_canonical_form() -> None:
    canonical = tomllib.loads(Scenario.parse(SCENARIO).to_toml())

    def at(path: str) -> Any:
        value: Any = canonical
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    compared = 0
    for path, key in settings():
        if (found := at(path)) is not None and key.default is not None:
            assert found == key.default, path
            compared += 1
    assert compared > 150, compared


@pytest.mark.parametrize(("section", "key"), [(s, k) for s in sections() for k in s.keys if k.required])
def test_required_keys_are_required(section: Any, key: Key) -> None:
    path = concrete(section.path)
    document = around(path)
    table = document
    for parent in path.split(".") if path else []:
        if not isinstance(table.get(parent), dict):
            table[parent] = {}
        table = table[parent]
    table.pop(key.name, None)
    assert any(
        "is a required property" in text or "not valid under any" in text for text in complaints(document)
    )
    with pytest.raises(ScenarioError):
        read(document)


def test_keys_of_links_fit_the_kind_of_link() -> None:
    (section,) = (section for section in sections() if section.path == "link.NAME")
    own = {"channel": "perfect", "drop": "{up=0.1}"}
    assert set(own) < {key.name for key in section.keys}
    for key in section.keys:
        overrides = [f"link.ap-MH1.{key.name}={own.get(key.name, '{}')}"]
        text = SCENARIO + "[topology.cell]\nstations = 1\n"
        if key.name in own:
            Scenario.parse(text, overrides=overrides)
        else:
            with pytest.raises(ScenarioError, match=f"link.ap-MH1.{key.name}"):
                Scenario.parse(text, overrides=overrides)
    for name in ("outage", "power", "uplink", "preset"):
        values = {"outage": '{first="1 s", lasts="1 s"}', "preset": "geo", "uplink": "{}"}
        value = values.get(name, '{transmit="2 W", receive="1 W", idle="1 W"}')
        for table in ("radio.uplink", "link.base-mobile.uplink"):
            with pytest.raises(ScenarioError, match=f"{table}.{name}: found it for one direction"):
                Scenario.parse(SCENARIO, overrides=[f"{table}.{name}={value}"])


def test_an_editor_is_told_what_a_key_means() -> None:
    rate = schema()["definitions"]["Radio"]["properties"]["rate"]
    assert "rate" in rate["description"]
    (form,) = (form for form in rate["anyOf"] if form.get("title") == "rate")
    assert re.search(form["pattern"], "19.2 kbps")
    assert not re.search(form["pattern"], "19.2 kb")


def test_descriptions_have_no_links_to_items_of_rust() -> None:
    for text in (json.dumps(schema()), gateway_schema()):
        assert not re.search(r"\[`[\w:]+`\](?!\()", text)


def test_every_conversation_states_a_rule() -> None:
    stating = 0
    for file, home, name, rules in REFERENCE.stated():
        stating += bool(rules)
        is_conversation = home.startswith(("proto/", "endpoint/")) and home != "endpoint/smoltcp"
        if is_conversation or "use lasthop_testing::dialogue" in file.read_text():
            assert rules, f"{home}::{name}: say it as // Rule: TEXT [SOURCE; FILES], or // Rule: as TEST"
    assert stating > 700


def test_rules_name_files_and_have_a_place_on_the_page() -> None:
    page = (ROOT / "docs/reference/tcp-conformance.md").read_text()
    listed = {home for homes in re.findall(r"<!-- rules (.*) -->", page) for home in homes.split()}
    directories = ("crates/proto/src/tcp", "crates/proto/src", "crates/endpoint/src")
    assert listed == {rule.home for rule in REFERENCE.rules()}
    for rule in REFERENCE.rules():
        for name in rule.files:
            assert any((ROOT / directory / name).is_file() for directory in directories), rule


UNITS = {
    "limit": "ns us µs ms s min h",
    "radio.rate": "bps kbps Mbps Gbps kbit/s Mbit/s kB/s MB/s Mb/s",
    "transfer.size": "B KB kB MB GB KiB MiB GiB",
}


@pytest.mark.parametrize("path", UNITS)
def test_the_schema_has_the_units_of_the_program(path: str) -> None:
    for unit in (*UNITS[path].split(), "x", ""):
        document = tomllib.loads(SCENARIO)
        table, _, key = path.rpartition(".")
        (document[table] if table else document)[key] = f"100 {unit}"
        if unit in ("x", ""):
            assert complaints(document)
            with pytest.raises(ScenarioError):
                read(document)
        else:
            assert not complaints(document), unit
            read(document)
