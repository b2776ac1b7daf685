"""Shared by tests: the command line, and the worked example."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lasthop
from lasthop import Run, Scenario
from lasthop.cli import progress, streams
from lasthop.cli.app import app
from lasthop.cli.output import FILES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
EXAMPLE = "scenarios/ebsn-example.toml"

Command = Callable[..., subprocess.CompletedProcess[str]]

SLOW = {
    "test_bench": "instructions under Valgrind",
    "test_contributing": "builds of the how-tos",
    "test_emulate": "emulation in real time",
    "test_emulate_between": "emulation in real time",
    "test_jupyter": "notebooks in their kernel",
    "test_mutations": "experiments of all papers",
    "test_packaging": "builds of packages",
    "test_page": "pages in a browser",
    "test_papers": "experiments of all papers",
    "test_site": "the site in a browser",
    "test_virtual": "processes in guests",
    "test_widget": "notebooks in a browser",
}
"""The files of tests that `make check` leaves out, and why they take long."""

REAL_TIME = ("test_emulate", "test_emulate_between", "test_gateway", "test_measure")
"""The files of tests that wait for real packets, mostly idle. `make test` runs others beside them."""

CAMPAIGNS = "LASTHOP_CAMPAIGNS" in os.environ
"""Whether tests that are marked as campaigns run too, and papers as long as they are."""

WITH_QUIC = "tcp-beside-quic"
"""The worked scenario that needs QUIC, which the module of pages has not."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of some files, and put the slow ones first: begun last, one would idle a core."""
    left_out = [] if CAMPAIGNS else [item for item in items if item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.path.stem in REAL_TIME:
            item.add_marker(pytest.mark.real_time)
    items.sort(key=lambda item: item.path.stem not in SLOW)


def results(directory: Path) -> list[str]:
    """Return the sorted names of the files that a command wrote into a directory, without its list."""
    return sorted(path.name for path in directory.iterdir() if path.name != FILES)


def prints(found: str, shown: str) -> bool:
    """Return whether a page shows what a command printed; a line ``...`` stands for lines left out."""
    printed, page = (
        "".join(f"{row.rstrip()}\n" for row in text.rstrip().splitlines()) for text in (found, shown)
    )
    return re.fullmatch(re.escape(page).replace(re.escape("...\n"), r"(?:.*\n)*?"), printed) is not None


@pytest.fixture(scope="module", autouse=True)
def punctual(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let tests in real time go before those that compute, where this user may."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if request.path.stem in REAL_TIME:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before - 10)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture
def few_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let advice try a remedy of each kind, a quarter of all, for tests of what is said of them."""
    # Imported here, since other tests need not wait for it.
    from lasthop.race import Arm

    fair: tuple[tuple[str, Any], ...] = (("radio.queue", {"fq-codel": {}}),)
    schemes = [Arm("linux", name) for name in ("basic", "arq", "snoop", "wenp")]
    bbr = [Arm("linux-bbr", name) for name in ("basic", "arq")]
    queues = [Arm("linux", "basic", fair), Arm("linux-bbr", "basic", fair)]
    monkeypatch.setattr("lasthop.advice.remedies.arms", lambda sender: [*schemes, *bbr, *queues])


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Handle SIGINT here and in child processes even if pytest was started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory in which guests have theirs."""
    directory = tmp_path / "guests"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return directory


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start a headless browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="there is no playwright")
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as started:
        # A sandbox needs a user other than root.
        launched = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def command() -> Command:
    """Return `lasthop` in this process: its exit code and what it prints.

    Tests that need a process, a signal, a terminal or streams of their own start one.
    """
    return run_command


def run_command(
    *arguments: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `lasthop` with arguments, from the root of the repository unless `cwd` is another directory."""
    line = ["lasthop", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as warned,
    ):
        # Of warnings a process prints these alone.
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        patch.chdir(cwd)
        patch.setattr(sys, "argv", line)
        patch.setattr(streams, "verbose", False)
        # What a command prints does not depend on the load of the machine.
        patch.setattr(progress, "SECONDS_BETWEEN_LINES", 3600.0)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        try:
            app(prog_name="lasthop")
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    said += "".join(f"{each.category.__name__}: {each.message}\n" for each in warned)
    return subprocess.CompletedProcess(line, code, printed, said)


def run_process(*arguments: str | Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run `lasthop` with arguments in a process of its own, from the root of the repository."""
    line = [sys.executable, "-m", "lasthop", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)


def interrupt(line: list[str | Path], when: Callable[[], bool], **options: Any) -> tuple[int, str, str]:
    """Run `lasthop`, interrupt it as soon as `when` holds, and return its exit code and output."""
    command = [sys.executable, "-m", "lasthop", *map(str, line)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **(pipes | options))
    try:
        deadline = time.monotonic() + 60
        while not when():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            # During an import, the interrupt may occur in a callback whose exceptions Python ignores.
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=10)
            err = re.sub(r"Exception ignored in: .*?KeyboardInterrupt: \n", "", err, flags=re.DOTALL)
    finally:
        process.kill()
        process.wait()
    # If the interrupt occurs during `exec` of a string, as in the definition of a dataclass, the signal ends
    # Python even if the interrupt was caught. A shell sees no difference.
    code = process.returncode if process.returncode != -signal.SIGINT else 130
    return code, out, err


@pytest.fixture(scope="session")
def example() -> Scenario:
    """Return the worked example of the EBSN paper."""
    return lasthop.load(ROOT / EXAMPLE)


@pytest.fixture(scope="session")
def runs(example: Scenario) -> dict[str, Run]:
    """Return a run of the worked example with each scheme, everything recorded."""
    return {run.scheme: run for run in lasthop.run_each(example, trace=True, series=True)}
