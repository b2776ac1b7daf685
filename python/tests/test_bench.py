import subprocess
import sys
from pathlib import Path

import pytest

GUARD = Path(__file__).parents[2] / "benches" / "guard.py"


def test_runs_take_as_many_instructions_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([sys.executable, GUARD], capture_output=True, text=True)
    if done.stdout.startswith("skipped:"):
        with capsys.disabled():
            print(f"\nInstructions: {done.stdout}", end="")
        pytest.skip(done.stdout.removeprefix("skipped:").strip())
    assert done.returncode == 0, done.stdout + done.stderr
