import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lasthop

GUARD = Path(__file__).parents[2] / "benches" / "guard.py"


def test_runs_take_as_many_instructions_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([sys.executable, GUARD], capture_output=True, text=True)
    if done.stdout.startswith("skipped:"):
        with capsys.disabled():
            print(f"\nInstructions: {done.stdout}", end="")
        pytest.skip(done.stdout.removeprefix("skipped:").strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_record_has_every_case_of_both_builds() -> None:
    record = tomllib.loads((GUARD.parent / "instructions.toml").read_text())
    cases = runpy.run_path(str(GUARD))["CASES"]
    assert {profile: set(counts["instructions"]) for profile, counts in record.items()} == {
        profile: set(cases) for profile in ("release", "test")
    }


def test_the_cases_have_every_kind_of_sender_and_link() -> None:
    cases = runpy.run_path(str(GUARD))["CASES"].values()
    forms = [lasthop.load(case.scenario, case.overrides).to_toml() for case in cases]
    for part in (
        'sender = "linux"',
        'sender = "linux-bbr"',
        'sender = "quinn',
        "fq-codel",
        "802.11n",
        "stop-and-wait",
    ):
        assert any(part in form for form in forms), part


def test_cycles_are_read_from_the_report_of_perf() -> None:
    guard = runpy.run_path(str(GUARD))
    assert guard["cycles_of"]("52669260,,cycles:u,20123456,100.00,,\n") == 52_669_260
    for report in ("<not supported>,,cycles:u,0,100.00,,\n", "<not counted>,,cycles:u,0,0.00,,\n"):
        with pytest.raises(guard["NotMeasuredError"], match="does not count cycles"):
            guard["cycles_of"](report)
