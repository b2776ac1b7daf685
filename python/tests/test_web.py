"""The simulator as WebAssembly: its replies are those of the command line, to the last bit."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, WITH_QUIC, Command

import lasthop
from lasthop import web
from lasthop._lasthop import SCENARIOS

NODE = shutil.which("node")

ASK = """
const fs = require("fs");
const [source, wasm, requests] = process.argv.slice(2).map((name) => fs.readFileSync(name));
const { Simulator, column } = new Function(`${source}; return { Simulator, column };`)();
(async () => {
  const module = await WebAssembly.compile(wasm);
  const simulator = await Simulator.start(module);
  const replies = JSON.parse(requests).map((request) => {
    try {
      const { document, columns } = simulator.ask(request);
      if (document.values) document.values = document.values.map((place) => [...column(columns, place)]);
      if (document.runs) document.sent = document.runs.map((run) => run.parts[0].events.time_s.length);
      return document;
    } catch (error) {
      return { error: { message: error.message, line: error.line, option: error.option } };
    }
  });
  const imports = WebAssembly.Module.imports(module).length;
  console.log(JSON.stringify({ imports, replies }));
})();
"""


@pytest.fixture(scope="module")
def module() -> bytes:
    """Return the WebAssembly module, if this clone has one."""
    try:
        return gzip.decompress(web.packed_module())
    except web.MissingModuleError as error:
        pytest.skip(str(error))


def ask(module: bytes, directory: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the replies to requests, from the module in Node."""
    if NODE is None:
        pytest.skip("there is no node")
    files = {"ask.js": ASK.encode(), "module.wasm": module, "requests.json": json.dumps(requests).encode()}
    for name, content in files.items():
        (directory / name).write_bytes(content)
    source = ROOT / "python/lasthop/web/simulator.js"
    line: list[str | Path] = [
        NODE,
        directory / "ask.js",
        source,
        directory / "module.wasm",
        directory / "requests.json",
    ]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    printed = json.loads(ran.stdout)
    assert printed["imports"] == 0
    replies: list[dict[str, Any]] = printed["replies"]
    return replies


def scenario(name: str, *overrides: str) -> dict[str, Any]:
    return {"toml": SCENARIOS[name], "name": name, "overrides": list(overrides)}


def test_the_module_runs_as_the_command_line_does(module: bytes, command: Command, tmp_path: Path) -> None:
    # The packets of the first connection are counted below. The module has no QUIC.
    names = sorted(
        name for name, text in SCENARIOS.items() if "transfer" in tomllib.loads(text) and name != WITH_QUIC
    )
    requests = [
        {"do": "run", "scenario": scenario(name, "limit=8 s", "warmup=0 s"), "seed": 7, "run": 3}
        for name in names
    ]
    about, *replies = ask(module, tmp_path, {"do": "about"}, *requests)
    assert about["version"] == lasthop.__version__
    assert [each["name"] for each in about["schemes"]] == [each.name for each in lasthop.schemes()]
    for name, reply in zip(names, replies, strict=True):
        options = ("--set", "limit=8 s", "--set", "warmup=0 s", "--seed", "7", "--run", "3", "--json")
        stale = f"{name}: if the core has changed, `make web` compiles the module anew"
        assert f"{reply['report']}\n" == command("run", name, *options).stdout, stale
        scenario_run = lasthop.load(name, ["limit=8 s", "warmup=0 s"])
        traced = lasthop.run_each(scenario_run, seed=7, run=3, trace=True)
        assert reply["sent"] == [len(run.events()["time_s"]) for run in traced]


def test_the_module_samples_runs_and_reports_errors(module: bytes, tmp_path: Path) -> None:
    few = scenario("ebsn-wide-area", "transfer.size=20 KB", 'schemes=["basic", "ebsn"]')
    sample = {"do": "sample", "scenario": few, "seed": 2, "first": 5, "runs": 3, "metric": "throughput_bps"}
    wrong = {"do": "check", "scenario": scenario("cell", "radio.rat=1")}
    sampled, refused = ask(module, tmp_path, sample, wrong)
    same = lasthop.load("ebsn-wide-area", few["overrides"])
    assert sampled["values"] == [
        [same.run(scheme, seed=2, run=run).metrics["throughput_bps"] for run in range(5, 8)]
        for scheme in same.schemes
    ]
    assert refused["error"]["option"] == "--set radio.rat=1"


def test_a_crash_of_the_module_is_reported(tmp_path: Path) -> None:
    if NODE is None:
        pytest.skip("there is no node")
    program = """
    const source = require("fs").readFileSync(process.argv[2]);
    const { Simulator } = new Function(`${source}; return { Simulator };`)();
    const text = new TextEncoder().encode('{"error":{"message":"panicked"}} ');
    const memory = { buffer: new ArrayBuffer(256) };
    const simulator = new Simulator({
      memory,
      lasthop_request: () => 128,
      lasthop_answer: () => {
        new DataView(memory.buffer).setUint32(8, text.length, true);
        new Uint8Array(memory.buffer).set(text, 12);
        throw new Error("unreachable");
      },
      lasthop_reply: () => 8,
      lasthop_reply_length: () => 4 + text.length,
    });
    try {
      simulator.ask({ do: "about" });
    } catch (error) {
      console.log(error.message, error.crashed);
    }
    """
    (tmp_path / "crash.js").write_text(program)
    line: list[str | Path] = [NODE, tmp_path / "crash.js", ROOT / "python/lasthop/web/simulator.js"]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == "panicked true\n"


def test_without_the_module_its_absence_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(web, "MODULE", tmp_path / "nowhere")
    with pytest.raises(web.MissingModuleError, match="`make web` in a clone compiles it"):
        web.packed_module()
