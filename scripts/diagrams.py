"""Draw the state machines of the schemes with Graphviz, from docs/images/states/states.toml to SVG.

The pictures are tracked in git, so Graphviz is needed only to change them. Each begins with the hash of its
source, which the tests compare. Text uses `currentColor`, so an inline picture takes the colour of the page.
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
    """Return the machines of each scheme, by owner."""
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
    """Return the hash of a picture's source."""
    return hashlib.sha256(json.dumps([STYLE, scheme]).encode()).hexdigest()[:16]


def dot(scheme: Machines) -> str:
    """Return the machines of a scheme in the DOT language."""
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
    """Return the picture of a scheme as SVG."""
    done = subprocess.run(["dot", "-Tsvg"], input=dot(scheme), capture_output=True, text=True, check=True)
    svg = done.stdout[done.stdout.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?|<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    # Takes the colour of the surrounding page; black in a standalone picture.
    svg = re.sub(r'(<text [^>]*?)(?: fill="[^"]*")?>', r'\1 fill="currentColor">', svg)
    svg = svg.replace('fill="#1769c2"', 'fill="#1769c2" fill-opacity="0.12"')
    return f"<!-- {source_hash(scheme)} -->\n{svg}"


def main() -> None:
    """Draw all pictures, and remove those of schemes that no longer exist."""
    drawn = {name: draw(scheme) for name, scheme in machines().items()}
    for old in STATES.glob("*.svg"):
        if old.stem not in drawn:
            old.unlink()
    for name, svg in drawn.items():
        (STATES / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"{len(drawn)} pictures in {STATES}", file=sys.stderr)


if __name__ == "__main__":
    main()
