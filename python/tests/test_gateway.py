"""The gateway from the command line; its crate's tests run it between hosts."""

import json
from pathlib import Path

import pytest
from conftest import Command
from jsonschema import Draft7Validator

from lasthop._lasthop import ScenarioError, gateway_settings

FILE = """
[gateway]
radio = ["wlan0"]
unhelped = "10%"

[scheme.i-tcp.wireless]
congestion = "bbr"

[[match]]
ports = [22, "5060-5061"]
scheme = "basic"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_check_knows_files_of_the_gateway(command: Command, file: Path) -> None:
    printed = command("check", file).stdout
    assert 'radio = ["wlan0"]' in printed
    assert 'ports = ["22", "5060-5061"]' in printed
    assert command("gateway", "check", file).stdout.strip() == printed.strip()
    report = json.loads(command("check", file, "--json").stdout)
    assert report["gateway"]["gateway"]["unhelped"] == 0.1
    refused = command("check", file, "--set", "radio.rate=2Mbps")
    assert refused.returncode == 2
    assert "is a gateway's file" in refused.stderr


def test_errors_have_their_place(command: Command, file: Path) -> None:
    file.write_text(FILE.replace("unhelped", "unhelpd"), encoding="utf-8")
    for line in (["check", file], ["gateway", "check", file], ["gateway", "run", file]):
        done = command(*line)
        assert done.returncode == 2
        error = done.stderr
        assert 'did you mean "unhelped"?' in error
        assert f"{file}:4:1" in error
    with pytest.raises(ScenarioError) as caught:
        gateway_settings(file)
    assert (caught.value.line, caught.value.kind) == (4, "key")


def test_files_fit_their_schema(command: Command, file: Path) -> None:
    schema = json.loads(command("schema", "--gateway").stdout)
    settings = json.loads(command("check", file, "--json").stdout)["gateway"]
    Draft7Validator(schema).validate(settings)
    assert list(Draft7Validator(schema).iter_errors({"gateway": {"radio": "wlan0"}}))


def test_scenarios_are_no_files_of_the_gateway(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text('[radio]\nrate = "2 Mbps"\n', encoding="utf-8")
    assert gateway_settings(path) is None
    assert gateway_settings(Path("/nowhere")) is None


def test_without_a_running_gateway_the_status_says_so(command: Command, file: Path, tmp_path: Path) -> None:
    control = tmp_path / "control"
    file.write_text(FILE.replace("unhelped", f'control = "{control}"\nunhelped', 1), encoding="utf-8")
    done = command("gateway", "status", file)
    assert done.returncode == 2
    assert "no gateway runs with this control socket" in done.stderr
