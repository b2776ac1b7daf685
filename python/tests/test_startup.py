"""What the command line imports before it has to."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import EXAMPLE, ROOT


@pytest.mark.parametrize(
    ("arguments", "slow"),
    [
        (["--help"], {"numpy", "matplotlib", "pandas", "scipy", "rich"}),
        (["run", "--help"], {"numpy", "matplotlib", "pandas", "scipy"}),
        (["run", EXAMPLE], {"numpy", "matplotlib", "pandas", "scipy"}),
    ],
)
def test_startup_imports_nothing_slow(arguments: list[str], slow: set[str]) -> None:
    program = f"""
import atexit, sys
atexit.register(lambda: print("imported", {slow} & {{*sys.modules}}))
sys.argv = ["lasthop", *{arguments}]
from lasthop.cli import main
main()
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "imported set()")


def test_no_command_imports_what_draws_before_it_draws() -> None:
    program = """
import sys
from importlib import import_module
from lasthop.cli.app import COMMANDS
for name in COMMANDS:
    import_module("lasthop.cli.commands." + name.replace("-", "_"))
print("matplotlib" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout == "False\n", result.stderr
