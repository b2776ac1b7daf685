"""The keys of scenario files, from their JSON Schema: for the reference and for completion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from lasthop._lasthop import Scenario

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table, or one of the words or tables among which a key chooses.

    Attributes
    ----------
    name : str
        Its name; of a word, with its quotes.
    kind : str
        What its value is, such as ``"duration"``.
    meaning : str
        What it means, as Markdown.
    default : object
        Its default; None without one.
    required : bool
        Whether it must be stated.
    section : str or None
        The path of the table that describes its value.
    """

    name: str
    kind: str
    meaning: str
    default: Any = None
    required: bool = False
    section: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A table of scenario files, or a choice among several.

    Attributes
    ----------
    path : str
        Its path, such as ``"radio.channel.two-state"``; empty for the top level.
    about : str
        What it is, as Markdown.
    keys : tuple of Key
        Its keys in order, or what there is to choose from.
    is_choice : bool
        Whether one of its keys is chosen.
    """

    path: str
    about: str
    keys: tuple[Key, ...]
    is_choice: bool


@cache
def schema() -> Node:
    """Return the JSON Schema of scenario files."""
    loaded: Node = json.loads(Scenario.json_schema())
    return loaded


@cache
def sections() -> tuple[Section, ...]:
    """Return all tables in the order of the schema, each described once: at the shortest path to it."""
    # Senders, hosts and connections have the settings of `[tcp]`.
    homes = {"Settings": "tcp"}
    level = [("", schema())]
    while level:
        level = [child for path, node in level for child in _children(path, node) if _settle(homes, *child)]
    return tuple(_sections("", schema(), homes))


def settings() -> Iterator[tuple[str, Key]]:
    """Yield the path of each setting with its key, for tables whose names are not chosen by the user."""
    for section in sections():
        for key in section.keys:
            path = f"{section.path}.{key.name}".lstrip(".")
            if key.section is None and "NAME" not in path and not key.name.startswith('"'):
                yield path, key


def _settle(homes: dict[str, str], path: str, node: Node) -> bool:
    """Note where a type is met for the first time."""
    return homes.setdefault(_identity(node), path) == path


def _identity(node: Node) -> str:
    """Return what two nodes of the same type have in common."""
    expanded = _expanded(node)
    keys = expanded.get("properties")
    if keys and set(keys) - {"profile"} == set(schema()["definitions"]["Settings"]["properties"]) - {
        "profile"
    }:
        return "Settings"
    return str(expanded.get("type_name") or json.dumps(expanded.get("anyOf") or expanded))


def _expanded(node: Node) -> Node:
    """Return the node with the type that it refers to: `about` is the description of the type itself."""
    own = dict(node)
    reference = own.pop("$ref", None) or (own.pop("allOf", None) or [{}])[0].get("$ref")
    if reference is None:
        return {"about": own.get("description", ""), **own}
    name = reference.rsplit("/", 1)[-1]
    target = _expanded(schema()["definitions"][name])
    return {**target, **own, "type_name": name}


def _forms(node: Node) -> list[Node]:
    """Return the alternative forms of a value; of a table, the table alone."""
    expanded = _expanded(node)
    if "properties" in expanded:
        return [expanded]
    alternatives = expanded.get("anyOf") or expanded.get("oneOf")
    if alternatives is None:
        return [expanded]
    return [{**form, "is_alternative": True} for each in alternatives for form in _forms(each)]


def _variant(form: Node) -> tuple[str, Node] | None:
    """Return the name and the contents of one of several tables, or None for another form."""
    keys = form.get("properties", {})
    if "is_alternative" in form and len(keys) == 1 and "type_name" not in form:
        ((name, inner),) = keys.items()
        return str(name), dict(inner)
    return None


def _is_table(node: Node) -> bool:
    return "properties" in _expanded(node)


def _contents(node: Node) -> Node:
    """Return the tables of a list or a map of them; any other node as it is."""
    expanded = _expanded(node)
    inner = expanded.get("items") or expanded.get("additionalProperties")
    return inner if isinstance(inner, dict) and _has_section(inner) else node


def _has_section(node: Node) -> bool:
    return any(_is_table(form) or _variant(form) for form in _forms(node))


def _children(path: str, node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the path and the node of each table in a table or a choice."""
    for form in _forms(node):
        named = form.get("properties", {})
        if variant := _variant(form):
            # A variant without a type of its own takes its description from the choice.
            named = {variant[0]: {"description": form.get("description", ""), **variant[1]}}
        for name, value in named.items():
            place = f"{path}.{name}".lstrip(".")
            if isinstance(_expanded(value).get("additionalProperties"), dict):
                place += ".NAME"
            if name != "sweep" and _has_section(_contents(value)):
                yield place, _contents(value)


def _sections(path: str, node: Node, homes: dict[str, str]) -> Iterator[Section]:
    forms = _forms(node)
    variants = [variant for form in forms if (variant := _variant(form))]
    is_choice = bool(variants)
    keys: list[Key] = []
    if is_choice:
        for form in forms:
            if variant := _variant(form):
                keys.append(_key(path, *variant, False, homes, form.get("description")))
            elif words := _words(form):
                keys += [Key(f'"{word}"', "word", meaning) for word, meaning in words.items()]
            elif form.get("type") == "string":
                keys.append(Key(_kind(form), "text", f"Such as `{json.dumps(form['examples'][0])}`."))
    else:
        (table,) = (form for form in forms if "properties" in form)
        required = table.get("required", ())
        keys = [
            _key(path, name, value, name in required, homes) for name, value in table["properties"].items()
        ]
    yield Section(path, _expanded(node).get("about", ""), tuple(keys), is_choice)
    for place, child in _children(path, node):
        if homes[_identity(child)] == place:
            yield from _sections(place, child, homes)


def _key(
    path: str, name: str, node: Node, required: bool, homes: dict[str, str], meaning: str | None = None
) -> Key:
    expanded = _expanded(node)
    contents = _contents(node)
    section = homes.get(_identity(contents)) if name != "sweep" and _has_section(contents) else None
    text = meaning or node.get("description") or expanded.get("about", "")
    if section is None:
        words = {word: said for form in _forms(node) for word, said in _words(form).items()}
        # Words that the meaning does not explain are explained by themselves.
        said = {f'`"{word}"`': about.rstrip(".") for word, about in words.items() if about}
        explained = " ".join(f"{word}: {about}." for word, about in said.items() if word not in text)
        # An example ends its paragraph.
        gap = "\n\n" if text.endswith("```") else " "
        text = f"{text}{gap}{explained}".rstrip()
    return Key(name, _kind(node), text, node.get("default"), required, section)


def _words(form: Node) -> dict[str, str]:
    """Return the words of a form with their meanings, which may be empty."""
    if "const" in form:
        return {str(form["const"]): form.get("description", "")}
    return dict.fromkeys(form.get("enum", ()), "")


def _kind(node: Node) -> str:
    """Return what a value is, in words."""
    kinds: dict[str, None] = {}
    for form in _forms(node):
        if "const" in form or "enum" in form:
            kinds["word"] = None
        elif "properties" in form or isinstance(form.get("additionalProperties"), dict):
            kinds["table"] = None
        elif form.get("type") == "array":
            items = form.get("items")
            kinds[f"list of {_kind(items)}s" if isinstance(items, dict) else "list"] = None
        else:
            plain = {
                "integer": "whole number",
                "string": "text",
                "boolean": "true or false",
                "object": "table",
            }
            kind = form.get("type", "any")
            kinds[str(form.get("title") or plain.get(kind, kind))] = None
    if "probability" in kinds:
        kinds.pop("number", None)
    return " or ".join(kinds)
