import runpy
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


def test_cycles_are_read_from_the_report_of_perf() -> None:
    guard = runpy.run_path(str(GUARD))
    assert guard["cycles_of"]("52669260,,cycles:u,20123456,100.00,,\n") == 52_669_260
    for report in ("<not supported>,,cycles:u,0,100.00,,\n", "<not counted>,,cycles:u,0,0.00,,\n"):
        with pytest.raises(guard["NotMeasuredError"], match="does not count cycles"):
            guard["cycles_of"](report)
