"""Hosts with Linux in network namespaces, and the gateway between them.

    client ══ gateway ══ server

Each pair is joined by a wire, or by an emulated link. For the demonstration and the measurements.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

CLIENT = "10.1.0.2"
SERVER = "10.2.0.2"
BEHIND = "10.9.0.1"
LASTHOP = [sys.executable, "-m", "lasthop"]


def needed(*programs: str) -> None:
    """End with the reason if this machine lacks what is needed."""
    missing = [program for program in ("ip", *programs) if shutil.which(program) is None]
    if missing:
        sys.exit(f"error: {', '.join(missing)} is not installed: see scripts/install_test_packages.sh")
    if os.geteuid() != 0:
        sys.exit("error: network namespaces with names need root")


def ip(line: str) -> None:
    """Run a command of ip."""
    subprocess.run(["ip", *line.split()], check=True)


class Network:
    """The namespaces, as long as this context lasts."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lasthop-gateway-"))
        self.names = {name: f"lhgw{os.getpid()}-{name}" for name in ("client", "gateway", "server")}
        self.stack = ExitStack()

    def __enter__(self) -> Network:
        """Make the namespaces, which go as well if the script is told to end."""
        for told in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(told, signal.default_int_handler)
        for name in self.names.values():
            ip(f"netns add {name}")
            self.stack.callback(ip, f"netns del {name}")
            ip(f"-n {name} link set lo up")
        self.stack.callback(shutil.rmtree, self.directory)
        return self

    def __exit__(self, *error: object) -> None:
        """Remove them, and end what runs in them."""
        self.stack.close()

    def configure(self, host: str, device: str, number: int) -> None:
        """Give the two ends of a connection between the gateway and a host their addresses."""
        own, gateway = self.names[host], self.names["gateway"]
        for name, end, address in ((own, "eth0", 2), (gateway, device, 1)):
            ip(f"-n {name} address add 10.{number}.0.{address}/24 dev {end}")
            ip(f"-n {name} link set {end} up")
        ip(f"-n {own} route add default via 10.{number}.0.1")
        self.run("gateway", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])

    def wire(self, host: str, device: str, number: int) -> None:
        """Join a host and the gateway by a wire."""
        own, gateway = self.names[host], self.names["gateway"]
        ip(f"link add eth0 netns {own} type veth peer name {device} netns {gateway}")
        self.configure(host, device, number)

    def emulated(self, host: str, device: str, number: int, scenario: str, seed: int) -> None:
        """Join them by the link of a scenario; data go from the server to the client."""
        own, gateway = self.names[host], self.names["gateway"]
        between = f"{self.names['gateway']}-{number}"
        ip(f"netns add {between}")
        self.stack.callback(ip, f"netns del {between}")
        ends = {"host": (own, "eth0"), "gateway": (gateway, device)}
        for end, (name, interface) in ends.items():
            ip(f"link add {interface} netns {name} type veth peer name {end} netns {between}")
            subprocess.run(
                ["ip", "netns", "exec", between, "sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1"],
                check=True,
            )
            ip(f"-n {between} link set dev {end} arp off up")
        self.configure(host, device, number)
        path = self.directory / f"link{number}.toml"
        path.write_text(scenario, encoding="utf-8")
        towards = ("gateway", "host") if host == "client" else ("host", "gateway")
        line = [
            *LASTHOP,
            "emulate",
            str(path),
            "--seed",
            str(seed),
            "--between",
            *towards,
            "--",
            "sleep",
            "inf",
        ]
        log = (self.directory / f"link{number}.log").open("w", encoding="utf-8")
        process = subprocess.Popen(
            ["ip", "netns", "exec", between, *line], stdout=log, stderr=log, start_new_session=True
        )
        self.stack.callback(log.close)
        self.stack.callback(_end, process)

    def run(self, host: str, line: list[str]) -> str:
        """Run a command at a host, and return what it prints."""
        command = ["ip", "netns", "exec", self.names[host], *line]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    @contextmanager
    def running(self, host: str, line: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command at a host as long as the context lasts."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], *line],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _end(process)

    @contextmanager
    def gateway(self, settings: str, program: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run the gateway; `program` is the beginning of its command line."""
        control, path = self.directory / "control", self.directory / "gateway.toml"
        path.write_text(f'[gateway]\nradio = ["radio0"]\ncontrol = "{control}"\n{settings}', encoding="utf-8")
        with self.running("gateway", [*program, "run", str(path)]) as process:
            wait(control.exists)
            yield process

    @contextmanager
    def tunnel(self, settings: str, keys: str, program: list[str]) -> Iterator[None]:
        """Run two gateways with a tunnel over the radio, one of them at the client, and `keys` of `[tunnel]`.

        Behind the client is the address `BEHIND`.
        """
        key = self.directory / "key"
        key.write_text("5a" * 32, encoding="utf-8")
        ip(f"-n {self.names['client']} address replace {BEHIND}/32 dev lo")
        ip(f"-n {self.names['gateway']} route replace {BEHIND} via {CLIENT}")
        with ExitStack() as stack:
            for host, own in (
                ("client", f'routes = ["{SERVER}/32"]\n'),
                ("gateway", f'routes = ["{BEHIND}/32"]\npeer = "{CLIENT}:9332"\n'),
            ):
                control, path = self.directory / f"{host}-control", self.directory / f"{host}.toml"
                text = f'[tunnel]\nkey = "{key}"\n{own}{keys}\n[gateway]\ncontrol = "{control}"\n{settings}'
                path.write_text(text, encoding="utf-8")
                stack.enter_context(self.running(host, [*program, "run", str(path)]))
                wait(control.exists)
            status = [*program, "status", str(self.directory / "gateway.toml"), "--json"]
            wait(lambda: json.loads(self.run("gateway", status))["tunnel"]["is_up"])
            yield

    def status(self, program: list[str]) -> dict[str, Any]:
        """Return the status of the gateway."""
        path = str(self.directory / "gateway.toml")
        status: dict[str, Any] = json.loads(self.run("gateway", [*program, "status", path, "--json"]))
        return status

    def ask(self, command: str, program: list[str]) -> str:
        """Return what a command about the running gateway prints."""
        return self.run("gateway", [*program, command, str(self.directory / "gateway.toml")])

    def transfer(self, options: list[str]) -> float:
        """Return the goodput of a transfer by iperf3 between client and server, in bits per second."""
        with self.running("server", ["iperf3", "-s", "-1"]):
            wait(lambda: ":5201" in self.run("server", ["ss", "-ltnH"]))
            report = json.loads(self.run("client", ["iperf3", "-J", "-c", SERVER, *options]))
        if "sum_received" not in report["end"]:
            sys.exit(f"error: iperf3: {report.get('error', 'no result')}")
        return float(report["end"]["sum_received"]["bits_per_second"])


def wait(ready: Any) -> None:
    """Wait until something is so."""
    for _ in range(200):
        if ready():
            return
        time.sleep(0.05)
    sys.exit("error: the gateway or a link has not started")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that runs in a session of its own."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
