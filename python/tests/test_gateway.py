"""The gateway from the command line; its crate's tests run it between hosts."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT, Command
from jsonschema import Draft7Validator
from measurement_samples import gateway_flows

from lasthop._lasthop import ScenarioError, gateway, gateway_settings
from lasthop.advice import prediction
from lasthop.fitting import stated_link

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads")
def test_no_other_thread_keeps_the_privileges_of_root() -> None:
    code = (
        "import os, lasthop.cli.app, lasthop.cli.commands.gateway; print(len(os.listdir('/proc/self/task')))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "1\n"


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


def test_a_report_is_made_of_the_file_of_flows(command: Command, tmp_path: Path) -> None:
    flows = tmp_path / "flows.jsonl"
    path, control = tmp_path / "gateway.toml", tmp_path / "control"
    keys = f'control = "{control}"\nflows = "{flows}"\n'
    path.write_text(FILE.replace("unhelped", f"{keys}unhelped", 1), encoding="utf-8")
    settings = {"time_s": 0.0, "scheme": "i-tcp", "is_helping": True, "keys": ""}
    lines: list[dict[str, Any]] = [{"line": "start", **settings}]
    for number, flow in enumerate(2000 * [gateway_flows()[1]]):
        helped = number * number % 7 % 2 == 0
        began_s = 2.0 * number
        size = 40_000 * (1 + number % 3)
        lines.append(
            {
                **flow,
                "began_s": began_s,
                "ended_s": began_s + 1,
                "client": f"10.0.0.{number % 5}:{number + 1}",
                "arm": "helped" if helped else "unhelped",
                "unhelped": 3 / 7,
                "coin": number // 7 % 2 == 0,
                "active_s": (0.5 if helped else 1.0) * (1 + number % 11 / 40),
                "bytes_to_client": size,
                "sent_bytes": size,
                "retransmitted_bytes": 1448 * (number % 8 == 0),
            }
        )
    # The last line was cut off.
    text = "\n".join(json.dumps(line) for line in lines)
    flows.write_text(f'{text}\n{{"line":"fl', encoding="utf-8")
    printed = command("gateway", "report", path).stdout
    assert printed.startswith("i-tcp helps.\n")
    report = json.loads(command("gateway", "report", path, "--json").stdout)
    everything = report["groups"][0]
    # All but those of the last minute; the first of a kind have no others to compare with.
    assert everything["flows"] == 1965
    assert 1950 < everything["observations"] < 1965
    gain = everything["gain"]
    assert gain["low"] < 2 < gain["high"] < 2.1
    assert report["same"]["gain"]["low"] < 1 < report["same"]["gain"]["high"]
    assert report["helped_failed"] == report["unhelped_failed"] == 0

    predicted = command("gateway", "report", path, "--predict", "--rate", "20Mbps", "--json")
    prediction = json.loads(predicted.stdout)["prediction"]
    assert (prediction["rate_bps"], prediction["is_rate_stated"]) == (20e6, True)
    assert round(prediction["rtt_s"], 3) == 0.06
    assert [each["size"] for each in prediction["sizes"]] == ["below 100 KB", "100 KB to 1 MB"]
    for each in prediction["sizes"]:
        # What the file says is twice as fast, no split makes so over this link.
        assert 0.9 < each["low"] < each["gain"] < each["high"] < 1.8
        assert each["agrees"] is False

    # The file continues another one, in which a comparison has ended that does not count.
    other = [{**line, "bytes_to_client": 1000} for line in lines[1:100]]
    later = [
        {**line, "began_s": line["began_s"] + 1e6, "ended_s": line["ended_s"] + 1e6} for line in lines[1:]
    ]
    before = [lines[0], *other, {"line": "reload", **settings, "time_s": 1e6}, *later[:700]]
    for name, some in (("flows.jsonl.1", before), ("flows.jsonl", [lines[0], *later[700:]])):
        text = "\n".join(json.dumps(line) for line in some)
        (tmp_path / name).write_text(f'{text}\n{{"line":"fl', encoding="utf-8")
    predicted = command("gateway", "report", path, "--predict", "--rate", "20Mbps", "--json")
    again = json.loads(predicted.stdout)["prediction"]
    assert [each["bytes"] for each in again["sizes"]] == [each["bytes"] for each in prediction["sizes"]]
    assert again["rtt_s"] == prediction["rtt_s"]
    shown = command("gateway", "report", path, "--predict").stdout
    assert shown.startswith(command("gateway", "report", path).stdout)
    # A rate that was not stated is what was asked for, which the radio may exceed.
    assert "predicted for the link" in shown
    assert "in their best seconds (if the radio is faster" in shown


def test_what_takes_longer_than_minutes_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "RUNS", 8)
    flow = gateway_flows()[1]
    slow = {**flow, "bytes_to_client": 1_500_000, "bytes_to_server": 0}
    group = {
        "class": None,
        "size": "above 1 MB",
        "least_bytes": 1_000_000,
        "below_bytes": None,
        "gain": None,
    }
    settings = {"gateway": {"scheme": "i-tcp"}, "scheme": {"i-tcp": {"buffer": "262144 B"}}}
    link = stated_link(20e3, 0.1, loss=0.0)
    (found,) = prediction.predict(link, {"groups": [group]}, [slow], settings)
    assert (found.size, found.bytes, found.agrees) == ("above 1 MB", 1_500_000, None)
    # On a clean link a split gains nothing, and 1.5 MB take ten minutes at its rate.
    assert found.low <= found.gain <= found.high
    assert found.gain == pytest.approx(1, abs=0.05)


def test_predictions_need_flows_and_the_laboratory(command: Command, file: Path) -> None:
    refused = command("gateway", "report", file, "--predict")
    assert (refused.returncode, "state a file in gateway.flows" in refused.stderr) == (2, True)
    with pytest.raises(OSError, match="lasthop gateway report FILE --predict"):
        gateway(["report", str(file), "--predict"])


def test_without_a_running_gateway_the_status_says_so(command: Command, file: Path, tmp_path: Path) -> None:
    control = tmp_path / "control"
    file.write_text(FILE.replace("unhelped", f'control = "{control}"\nunhelped', 1), encoding="utf-8")
    done = command("gateway", "status", file)
    assert done.returncode == 2
    assert "no gateway runs with this control socket" in done.stderr


def test_packages_have_what_they_install(tmp_path: Path) -> None:
    """With a stand-in for the program."""
    spec = importlib.util.spec_from_file_location("packages", ROOT / "scripts" / "gateway_package.py")
    assert spec is not None
    assert spec.loader is not None
    packages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packages)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    # A line of the help that begins as a request of man(7).
    help_text = "Usage: lasthop-gateway COMMAND\n\nRemedies.\n\n.x --json  'quoted' \\ text\n"
    made = {path.suffix: path for path in packages.pack(program, help_text, "x86_64", tmp_path)}
    with tarfile.open(made[".gz"]) as archive:
        archive.extractall(tmp_path / "openwrt", filter="data")
    script = tmp_path / "openwrt/etc/init.d/lasthop-gateway"
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    example = tmp_path / "openwrt/etc/lasthop/gateway.toml.example"
    assert "flows" not in tomllib.loads(gateway_settings(example) or "")["gateway"]
    assert not (tmp_path / "openwrt/etc/lasthop/gateway.toml").exists()
    if ".deb" not in made:
        pytest.skip("needs dpkg-deb")
    tree = tmp_path / "debian"
    subprocess.run(["dpkg-deb", "--extract", made[".deb"], tree], check=True)
    subprocess.run(["dpkg-deb", "--control", made[".deb"], tree / "DEBIAN"], check=True)
    for name in ("postinst", "prerm", "postrm"):
        assert subprocess.run(["sh", "-n", tree / "DEBIAN" / name], check=False).returncode == 0
    # A purge removes what the program has written, a removal does not.
    (stubs := tmp_path / "stubs").mkdir()
    for name, does in (("rm", 'echo "$@"'), ("systemctl", ":")):
        (stubs / name).write_text(f"#!/bin/sh\n{does}\n")
        (stubs / name).chmod(0o755)
    shell = shutil.which("sh")
    assert shell is not None
    for how, expected in (("remove", ""), ("purge", "-rf /var/lib/lasthop\n")):
        line = [shell, str(tree / "DEBIAN" / "postrm"), how]
        done = subprocess.run(line, env={"PATH": str(stubs)}, capture_output=True, text=True, check=True)
        assert done.stdout == expected
    unit = (tree / "usr/lib/systemd/system/lasthop-gateway.service").read_text()
    command = unit.partition("ExecStart=")[2].split()
    assert (tree / command[0][1:]).stat().st_mode & 0o777 == 0o755
    assert gateway_settings(tree / command[2][1:]) is not None
    assert (tree / "DEBIAN/conffiles").read_text().split() == [command[2]]
    sums = (tree / "DEBIAN/md5sums").read_text()
    assert f"{hashlib.md5(unit.encode(), usedforsecurity=False).hexdigest()}  usr/lib/systemd" in sums
    page = tree / "usr/share/man/man8/lasthop-gateway.8.gz"
    if shutil.which("man") is not None:
        shown = subprocess.run(["man", "-l", page], capture_output=True, text=True, check=False)
        assert ".x --json  'quoted' \\ text" in shown.stdout, shown.stderr


@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_shows_the_gain(browser: Browser, width: int) -> None:
    """With the answers of a gateway; nothing scrolls sideways but tables."""
    gain = {"ratio": 1.52, "low": 1.37, "high": 1.69}
    group = {"class": None, "size": None, "flows": 1396, "helped_bps": 2.16e6, "unhelped_bps": 1.52e6}
    flow = gateway_flows()[1]
    state: dict[str, Any] = {
        "radio": ["wlan0"],
        "running_s": 7200,
        "is_observing": False,
        "unhelped_share": 0.1,
        "counters": {"flows": 12345, "split": 1},
        "report": {
            "verdict": "i-tcp helps.",
            "hosts": 6,
            "stopped_s": None,
            "helped_failed": 0.001,
            "unhelped_failed": None,
            "groups": [{**group, "gain": gain}, {**group, "class": "port 443", "gain": None}],
        },
        "history": [
            [1.8e9 + 10 * number, 1.5, 1.5 - 1 / number, 1.5 + 1 / number] for number in range(3, 90)
        ],
        "flows": [flow, {**flow, "client": "<b>[2001:db8::1]:5", "active_s": None, "radio_rtt_s": None}],
    }
    page = browser.new_page(viewport={"width": width, "height": 800})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    source = (ROOT / "crates/gateway/src/page.html").read_text(encoding="utf-8")
    page.route("http://gateway.test/", lambda route: route.fulfill(body=source, content_type="text/html"))
    page.route("http://gateway.test/status.json", lambda route: route.fulfill(json=state))
    page.goto("http://gateway.test/")
    page.wait_for_selector("#counters div")
    assert errors == []
    assert page.inner_text("h1") == "i-tcp helps."
    assert page.inner_text("#alarm") == ""
    assert "1.52 (1.37 to 1.69)" in page.inner_text("#groups tr:first-child")
    assert "too few yet" in page.inner_text("#groups tr:nth-child(2)")
    assert page.inner_text("#flows tr:nth-child(2) td").startswith("<b>[2001:db8::1]:5")
    assert page.locator("#chart polygon").count() == page.locator("#chart polyline").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") == width
    state["report"]["stopped_s"] = 1.8e9
    page.wait_for_function("document.querySelector('#alarm').textContent.startsWith('Harm was found')")
    page.close()
