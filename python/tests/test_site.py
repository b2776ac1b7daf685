"""The documentation site: its pages, their commands, and the site in a real browser without a network."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib import import_module
from os.path import normpath
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from conftest import CAMPAIGNS, ROOT, Command

import lasthop

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = ROOT / "docs"
SCRIPTS = ROOT / "scripts"


def script(name: str) -> Any:
    """Return a script as a module."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DIAGRAMS = script("diagrams")
BUILD_SITE = script("build_site")
GALLERY = list(BUILD_SITE.entries((DOCS / "guide/gallery.md").read_text(encoding="utf-8")))


# -- The commands of the pages -------------------------------------------------------------------------


def blocks(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commands of each block, with the lines of output that follow it or begin its solution."""
    text = (DOCS / "guide" / page).read_text(encoding="utf-8")
    output = r"(?:\n\n(?:<details><summary>Solution</summary>\n\n)?```text\n(.*?)```)?"
    for found in re.finditer(r"```sh\n(.*?)```" + output, text, re.DOTALL):
        yield found[1].splitlines(), (found[2] or "").splitlines()


def run_line(command: Command, line: str, directory: Path) -> str:
    """Run a line of a shell as `command` does, and return what it prints into no file."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    assert words[0] == "lasthop", line
    file = directory / words.pop() if words[-2] == ">" else None
    done = command(*(word for word in words[1:] if word != ">"), cwd=directory)
    assert done.returncode == 0, (line, done.stderr)
    if file is None:
        return done.stdout
    file.write_text(done.stdout)
    return ""


@pytest.mark.parametrize("page", ["tutorial.md", "howto.md", "exercises.md"])
def test_the_commands_of_a_page_print_what_it_shows(page: str, command: Command, tmp_path: Path) -> None:
    for lines, shown in blocks(page):
        printed = ""
        for line in lines:
            if line.startswith(("lasthop paper", "lasthop advise")):
                # Tested with the papers and the advice; they take long.
                continue
            printed += run_line(command, line, tmp_path)
        found = [" ".join(line.split()) for line in printed.splitlines()]
        assert [line for line in shown if " ".join(line.split()) not in found] == [], lines


# Papers are tested by themselves; they take long.
@pytest.mark.parametrize(
    "entry", [each for each in GALLERY if "lasthop paper" not in each[0][0]], ids=lambda entry: entry[1]
)
def test_a_picture_of_the_gallery_is_made(
    entry: tuple[list[str], str, str], command: Command, tmp_path: Path
) -> None:
    lines, _, made = entry
    for line in lines:
        run_line(command, line, tmp_path)
    assert (tmp_path / made).read_bytes().startswith(b"\x89PNG")


def test_every_figure_of_the_gallery_has_a_command_and_an_alternative() -> None:
    text = (DOCS / "guide/gallery.md").read_text(encoding="utf-8")
    figures = re.findall(r"```\{figure\} gallery/(\S+)\n:alt: .+\n", text)
    assert figures == [name for _, name, _ in GALLERY]
    assert len(figures) == text.count("{figure}") == text.count("\n## ") >= 8


def test_a_gallery_runs_lasthop_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"runs lasthop only, found: rm -r \."):
        BUILD_SITE.call("rm -r .", tmp_path)
    with pytest.raises(SystemExit, match="there is no scheme"):
        BUILD_SITE.call("lasthop run ebsn-example --scheme nosuch", tmp_path)
    BUILD_SITE.call("# a comment", tmp_path)
    BUILD_SITE.call("lasthop run ebsn-example --out here", tmp_path)
    assert (tmp_path / "here").is_dir()


# -- The schemes ---------------------------------------------------------------------------------------


def test_every_scheme_is_explained_with_its_state_machine() -> None:
    text = (DOCS / "guide/schemes.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    names = [scheme.name for scheme in lasthop.schemes()]
    assert sorted(sections) == sorted(names)
    listed = re.findall(r"\(#([\w-]+)\)", text.partition("\n## ")[0])
    assert sorted(listed) == sorted(names)
    for name, section in sections.items():
        assert re.search(rf"!\[[^]]{{20,}}\]\(\.\./images/states/{name}\.svg\)", section), name


def test_pictures_of_state_machines_are_of_their_source() -> None:
    machines = DIAGRAMS.machines()
    drawn = {path.stem: path.read_text(encoding="utf-8") for path in DIAGRAMS.STATES.glob("*.svg")}
    assert sorted(machines) == sorted(drawn), "python scripts/diagrams.py"
    for name, scheme in machines.items():
        assert drawn[name].startswith(f"<!-- {DIAGRAMS.source_hash(scheme)} -->"), (
            "python scripts/diagrams.py"
        )
        for edges in scheme.values():
            for start, end, label in DIAGRAMS.transitions(edges):
                words = [line for text in (start, end, label) for line in text.split("\n")]
                assert all(word.replace("'", "&#39;") in drawn[name] for word in words), (name, words)


def test_pages_that_the_home_page_does_not_list_are_in_the_navigation_all_the_same() -> None:
    index = (DOCS / "site/index.md").read_text(encoding="utf-8")
    assert "\nguide/howto\n" in BUILD_SITE.unlisted(index.replace("\nguide/howto\n", "\n"))
    assert "\nguide/howto\n" not in BUILD_SITE.unlisted(index)


def test_a_wrong_transition_is_said() -> None:
    with pytest.raises(SystemExit, match="not a transition"):
        DIAGRAMS.transitions(["a => b"])


# -- The built site ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site without pictures, with warnings as errors."""
    out = tmp_path_factory.mktemp("docs") / "site"
    line = [sys.executable, str(SCRIPTS / "build_site.py"), "--no-pictures", "--out", str(out)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out


class Targets(HTMLParser):
    """The links, the loaded resources and the identifiers of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.identifiers: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if "id" in found:
            self.identifiers.append(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(found["href"])
        elif "src" in found:
            self.loaded.append(found["src"])


def test_every_link_of_the_site_has_a_target(built: Path) -> None:
    pages = {path: Targets(path.read_text(encoding="utf-8")) for path in built.rglob("*.html")}
    assert len(pages) > 25
    for name, page in pages.items():
        assert len(page.identifiers) == len(set(page.identifiers)), name
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = Path(normpath(name.parent / path)) if path else name
            assert target.exists(), (name, link)
            if anchor and target in pages:
                assert anchor in pages[target].identifiers, (name, link)


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    for path in built.rglob("*.html"):
        for resource in Targets(path.read_text(encoding="utf-8")).loaded:
            assert not re.match(r"(\w+:)?//", resource), (path.name, resource)
            if not resource.startswith("data:"):
                assert (path.parent / resource.partition("?")[0]).exists(), (path.name, resource)
    for sheet in built.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), (
            sheet
        )


def test_the_site_has_the_whole_reference(built: Path) -> None:
    commands = (built / "reference/commands.html").read_text(encoding="utf-8")
    for name in ("run", "study", "packet-size", "web", "man"):
        assert f"lasthop {name}" in commands
    assert "--precision" in commands
    api = (built / "reference/api.html").read_text(encoding="utf-8")
    for name in lasthop.__all__:
        assert f'id="lasthop.{name}"' in api or name == "__version__", name
    for name in ("advice", "fitting", "measurement", "papers", "plots", "race", "study"):
        module = import_module(f"lasthop.{name}")
        for member in module.__all__:
            # Constants and the names of types have no docstrings.
            if isinstance(getattr(module, member), type | FunctionType):
                assert f'id="lasthop.{name}.{member}"' in api, (name, member)


@pytest.fixture
def opened(browser: Browser, built: Path) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page of the site as a file; anything on its console fails the test."""
    said: list[str] = []
    contexts = []

    def open_page(name: str, scheme: Any = "light") -> Page:
        viewport: Any = {"width": 1200, "height": 900}
        context = browser.new_context(offline=True, color_scheme=scheme, viewport=viewport)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda asked: said.append(asked.url) if asked.url.startswith("http") else None)
        page.on("requestfailed", lambda failed: said.append(failed.url))
        page.goto(f"file://{built}/{name}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


def test_search_works_without_a_network(opened: Callable[..., Page]) -> None:
    page = opened("index.html")
    page.fill("input[name=q]", "gilbert burst")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    found = page.eval_on_selector_all("#search-results li a", "all => all.map(each => each.href)")
    assert any("scenarios.html" in link for link in found), found
    for scheme in ("snoop", "packet-fec"):
        page = opened(f"search.html?q={scheme}")
        page.wait_for_selector("#search-results li a")
        first = page.eval_on_selector("#search-results li a", "each => each.href")
        assert first.endswith(f"guide/schemes.html#{scheme}")
    opened("search.html?q=nosuchword").wait_for_selector("text=did not match any documents")


@pytest.mark.parametrize("width", [360, *([1200, 2560] if CAMPAIGNS else [])])
def test_no_page_is_wider_than_the_screen(opened: Callable[..., Page], built: Path, width: int) -> None:
    page = opened("index.html")
    page.set_viewport_size({"width": width, "height": 900})
    for path in sorted(built.rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name


def test_diagrams_have_the_colours_of_the_page(opened: Callable[..., Page]) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = opened("guide/schemes.html", scheme=scheme)
        assert page.locator("svg[role=img][aria-label]").count() == len(lasthop.schemes())
        colours.append(page.eval_on_selector(".states text", "each => getComputedStyle(each).fill"))
        body = page.evaluate("getComputedStyle(document.body).color")
        assert colours[-1] == body
    assert colours[0] != colours[1]
