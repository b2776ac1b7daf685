"""Build the documentation site into out/site, without a network.

    python scripts/build_site.py                 all of it
    python scripts/build_site.py --no-pictures   without running the commands of the gallery and the notebooks

Sources are docs/, its home page docs/site/index.md, pages at the root, and the notebooks. This script
assembles them in out/site-source: it turns links to files outside the site into plain text, runs the commands
of the gallery and the cells of the notebooks, and embeds the state machines. Sphinx does the rest; its
warnings, such as for broken anchors, are errors.
"""

from __future__ import annotations

import argparse
import ast
import base64
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from html import escape
from pathlib import Path
from pprint import pformat
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "out/site"
MODULE = ROOT / "python/lasthop/web/simulator.wasm.gz"

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))

PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
    # The site has its own home page.
    "README.md": "index.md",
    "docs/site/index.md": "index.md",
    **{f"notebooks/{notebook.name}": f"notebooks/{notebook.stem}.md" for notebook in NOTEBOOKS},
    **{
        f"docs/{page}": str(page).replace("README.md", "index.md")
        for page in sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
        if page.parts[0] != "site"
    },
}
"""The pages of the site, by their sources in the repository."""

BELOW = {
    "guide/notebooks.md": "notebooks/*",
    "decisions/index.md": "decisions/*-*",
    "reports/index.md": "reports/*-*",
}
"""Pages that stand below another in the navigation."""

PICTURE = re.compile(
    r"```sh\n(?P<lines>(?:(?!```).*\n)+)```\n+% (?P<made>\S+)\n+```\{figure\} gallery/(?P<name>\S+)\n"
)
"""An entry of the gallery: the commands, the file that they write, and the name of the picture."""

BLANK = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP6DwABBQECz6AuzQAAAABJRU5ErkJggg=="
"""A PNG of one pixel, as a placeholder."""


def assemble(source: Path, pictures: bool) -> None:
    """Write the pages into a directory."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    shutil.copytree(DOCS / "images", source / "images", ignore=shutil.ignore_patterns("*.toml"))
    shutil.copytree(DOCS / "site/_static", source / "_static")
    for name in ("conf.py", "scorer.js"):
        shutil.copy(DOCS / "site" / name, source)
    for name, page in PAGES.items():
        if name.endswith(".py"):
            notebook = ROOT / name
            put(source, name, "".join(executed(notebook, pictures and runs(notebook))))
        elif name != "README.md":
            text = (ROOT / name).read_text(encoding="utf-8")
            if page == "index.md":
                text += unlisted(text)
            if page in BELOW:
                text += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n/{BELOW[page]}\n```\n"
            put(source, name, text)
    gallery = DOCS / "guide/gallery.md"
    make_pictures(gallery.read_text(encoding="utf-8"), source / "guide/gallery", pictures)


def unlisted(index: str) -> str:
    """Return a navigation entry for the pages that the home page does not list."""
    listed = [*re.findall(r"^[\w/-]+$", index, re.MULTILINE), *BELOW.values(), "index"]
    pages = [page.removesuffix(".md") for page in PAGES.values()]
    further = [page for page in pages if not any(fnmatch(page, pattern) for pattern in listed)]
    if not further:
        return ""
    return "\n".join(["", "```{toctree}", ":hidden:", ":caption: Further", "", *further, "```", ""])


def put(source: Path, name: str, text: str) -> None:
    """Write the page of a file of the repository, with links adapted to the site."""
    page = source / PAGES[name]
    text = re.sub(r"\[([^][]*)\]\((?!\w+:|#)([^)]*)\)", lambda link: linked(name, link[1], link[2]), text)
    picture = r"!\[([^]]*)\]\((?:\.\./)*images/states/([\w-]+)\.svg\)"
    text = re.sub(picture, lambda each: states(each[1], each[2]), text)
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")


def linked(name: str, text: str, target: str) -> str:
    """Return a link of a page adapted to the site; only its text if the target is not part of the site."""
    path, sharp, anchor = target.partition("#")
    file = os.path.normpath(Path(name).parent / path)
    if file.startswith("docs/images/"):
        place = file.removeprefix("docs/")
    elif file in PAGES:
        place = PAGES[file]
    elif f"{file}/README.md" in PAGES:
        place = PAGES[f"{file}/README.md"]
    else:
        return text
    return f"[{text}]({os.path.relpath(place, Path(PAGES[name]).parent)}{sharp}{anchor})"


def states(alternative: str, scheme: str) -> str:
    """Return the inline SVG of a state machine, which takes the colours of the page."""
    svg = (DOCS / f"images/states/{scheme}.svg").read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(alternative)}"', 1)
    # Identifiers must be unique within a page.
    svg = re.sub(r'id="(\w+)"', rf'id="{scheme}-\1"', svg)
    return f'```{{raw}} html\n<div class="states" tabindex="0">{svg}</div>\n```'


# -- Pictures ------------------------------------------------------------------------------------------


def entries(gallery: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield the commands, the name and the output file of each picture in the gallery."""
    for found in PICTURE.finditer(gallery):
        yield found["lines"].splitlines(), found["name"], found["made"]


def make_pictures(gallery: str, directory: Path, run: bool) -> None:
    """Run the commands of the gallery and copy their pictures, or write placeholders."""
    directory.mkdir()
    with tempfile.TemporaryDirectory() as work:
        for lines, name, made in entries(gallery):
            if not run:
                (directory / name).write_bytes(base64.b64decode(BLANK))
                continue
            for line in lines:
                call(line, Path(work))
            shutil.copy(Path(work) / made, directory / name)


def call(line: str, directory: Path) -> None:
    """Run a command of the gallery."""
    words = shlex.split(line, comments=True)
    if not words:
        return
    if words[0] != "lasthop":
        raise SystemExit(f"the gallery runs lasthop only, found: {line}")
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{line}\n{done.stderr}")


# -- Notebooks -----------------------------------------------------------------------------------------


def runs(notebook: Path) -> bool:
    """Return whether a notebook can run: one of them needs the simulator as WebAssembly."""
    if MODULE.exists() or "lasthop.web" not in notebook.read_text(encoding="utf-8"):
        return True
    print(f"without results: {notebook.name}, since there is no simulator as WebAssembly: make web")
    return False


def executed(path: Path, run: bool) -> Iterator[str]:
    """Yield a notebook as a page: prose, code and outputs."""
    outputs: Any = []
    if run:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outputs, _ = module.app.run()
    text = path.read_text(encoding="utf-8")
    cells = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    # The file begins with the imports, the page with the heading.
    for number, node in sorted(enumerate(cells), key=lambda each: each[0] != 1):
        prose = re.fullmatch(r'mo\.md\(r?f?"""\n(.*)\n"""\)', code(text, node), re.DOTALL)
        if prose is not None:
            words = prose[1]
            if words.startswith("# "):
                head, _, rest = words.partition("\n")
                note = f"*The notebook `notebooks/{path.name}`: see [](../docs/guide/notebooks.md).*"
                words = f"{head}\n\n{note}\n{rest}"
            yield f"{words}\n\n"
            continue
        yield f"```python\n{code(text, node)}\n```\n\n"
        shown = html(outputs[number]) if run and outputs[number] is not None else None
        if shown:
            yield f'```{{raw}} html\n<div class="output">{shown}</div>\n```\n\n'


def code(text: str, node: ast.FunctionDef) -> str:
    """Return the code of a cell, without the additions of marimo."""
    body = [each for each in node.body if not isinstance(each, ast.Return)]
    if not body:
        return ""
    lines = text.splitlines()[body[0].lineno - 1 : body[-1].end_lineno]
    return "\n".join(line.removeprefix("    ") for line in lines)


def html(value: Any) -> str:
    """Return a value as HTML."""
    # Widgets are not interactive in a static page.
    if type(value).__module__.startswith("marimo"):
        text = getattr(value, "text", "")
        return "" if "<marimo-" in text else text
    if hasattr(value, "_repr_html_"):
        return str(value._repr_html_())
    return f"<pre>{escape(pformat(value, width=96, sort_dicts=False))}</pre>"


def main() -> None:
    """Build the site."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=SITE, help="the directory of the site")
    parser.add_argument("--no-pictures", action="store_true", help="run no commands and no notebooks")
    arguments = parser.parse_args()
    source = arguments.out.parent / f"{arguments.out.name}-source"
    assemble(source, pictures=not arguments.no_pictures)
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html", source, arguments.out]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, *map(str, command)], env=environment, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"written to {arguments.out / 'index.html'}: it needs no server")


if __name__ == "__main__":
    main()
