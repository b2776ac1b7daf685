"""Draws the state machines of the schemes, with Graphviz: docs/images/states/states.toml to SVG.

The pictures are tracked, so that only who changes them needs Graphviz. Each begins with the hash of its
source, by which the tests tell that it is of this source. Text has the colour of the text around it where the
picture is part of a page, as on the site.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

STATES = Path(__file__).parents[1] / "docs/images/states"

Machines = dict[str, list[str]]

STYLE = """
rankdir=LR; bgcolor=transparent; fontname="Helvetica,Arial,sans-serif"; fontsize=12;
nodesep=0.35; ranksep=0.5; pad=0.1;
node [shape=box, style="rounded,filled", fillcolor="#1769c2", color="#1769c2", penwidth=1.3,
      fontname="Helvetica,Arial,sans-serif", fontsize=13, margin="0.16,0.09"];
edge [fontname="Helvetica,Arial,sans-serif", fontsize=10.5, arrowsize=0.7, color="#7a828e"];
"""


def machines() -> dict[str, Machines]:
    """Return the machines of each scheme, by who has them."""
    with (STATES / "states.toml").open("rb") as file:
        return tomllib.load(file)


def transitions(lines: list[str]) -> list[tuple[str, str, str]]:
    r"""Return the transitions of a machine: from, to, event and action.

    Examples
    --------
    >>> transitions(["a -> b : event /\naction"])
    [('a', 'b', 'event /\\naction')]
    """
    found = []
    for line in lines:
        matched = re.fullmatch(r"(.+?) -> (.+?) : (.+)", line, re.DOTALL)
        if matched is None:
            raise SystemExit(f'not a transition "from -> to : event": {line!r}')
        found.append((matched[1], matched[2], matched[3]))
    return found


def source_hash(scheme: Machines) -> str:
    """Return the hash that a picture of this source begins with."""
    return hashlib.sha256(json.dumps([STYLE, scheme]).encode()).hexdigest()[:16]


def dot(scheme: Machines) -> str:
    """Return the machines of a scheme as a graph for Graphviz."""
    lines = ["digraph {", STYLE]
    for number, (owner, edges) in reversed([*enumerate(scheme.items())]):
        lines.append(f"subgraph cluster_{number} {{ label={json.dumps(owner)}; labeljust=l; pencolor=none;")
        for start, end, label in transitions(edges):
            ends = [json.dumps(f"{number} {name}") for name in (start, end)]
            for name, end_name in zip((start, end), ends, strict=True):
                lines.append(f"{end_name} [label={json.dumps(name)}];")
            lines.append(f"{ends[0]} -> {ends[1]} [label={json.dumps(label)}];")
        lines.append("}")
    return "\n".join([*lines, "}"])


def draw(scheme: Machines) -> str:
    """Return the picture of a scheme."""
    done = subprocess.run(["dot", "-Tsvg"], input=dot(scheme), capture_output=True, text=True, check=True)
    svg = done.stdout[done.stdout.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?|<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    # The colour of the text around it, or black where it is a picture by itself.
    svg = re.sub(r'(<text [^>]*?)(?: fill="[^"]*")?>', r'\1 fill="currentColor">', svg)
    svg = svg.replace('fill="#1769c2"', 'fill="#1769c2" fill-opacity="0.12"')
    return f"<!-- {source_hash(scheme)} -->\n{svg}"


def main() -> None:
    """Draw all pictures, and remove those of schemes that are no more."""
    drawn = {name: draw(scheme) for name, scheme in machines().items()}
    for old in STATES.glob("*.svg"):
        if old.stem not in drawn:
            old.unlink()
    for name, svg in drawn.items():
        (STATES / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"{len(drawn)} pictures in {STATES}", file=sys.stderr)


if __name__ == "__main__":
    main()
