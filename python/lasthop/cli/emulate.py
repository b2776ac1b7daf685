"""`lasthop emulate`: puts real programs at the two ends of a scenario's network.

```text
lasthop emulate            the user's namespaces: checks the scenario, waits
  unshare: user, network and process namespaces
    lasthop emulate        carries packets between two veth devices, prints the report
      unshare: network     the server's end: gate.py, then --server
      unshare: network     the client's end: gate.py, then the command or a shell
```

When the first process of a process namespace ends, the kernel kills the others; a network namespace
disappears with its last process. So nothing is left behind, even after a crash.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from lasthop import Scenario
from lasthop.cli import scheduling
from lasthop.cli.failure import LATE, RefusedError
from lasthop.cli.output import Output, run_stem
from lasthop.cli.scenario import describe, load
from lasthop.cli.streams import detail, emit_document, notify

ADDRESSES = ("10.0.0.1", "10.0.0.2")
"""The addresses of the source and the destination of the data: `{server}` and `{client}` in commands."""

_ADDRESSES6 = ("fd00::1", "fd00::2")
_LEAST_MTU6 = 1280

_DEVICES = ("lasthop0", "lasthop1")
"""This side of the veth pairs."""

_MAC = "02:00:00:00:00:01"
"""The hardware address of both ends, so that frames pass between them as they are."""

_OTHER_MAC = "02:00:00:00:00:02"
"""That of this side, whose kernel then leaves frames alone that are for the ends."""

_LIFELINE = "LASTHOP_EMULATION"
"""The environment variable with a file descriptor that closes when the outer process ends, and whether the
outer process is in the foreground of a terminal."""

_PATIENCE = 2.0
"""Seconds between SIGTERM and SIGKILL when programs are ended."""

_LONGEST_WAIT = 0.05
"""Packets are dropped if they waited to be read for more than these seconds and ten times the bound."""

_SUPER_PACKET_S = 200e-6
"""How long a super-packet of the kernel may keep the slowest link busy, in seconds."""

_UNPRIVILEGED = ("--user", "--map-root-user")


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    path: Path
    command: list[str]
    server: str | None
    scheme: str | None
    seed: int
    run: int
    overrides: list[str]
    mtu: int | None
    lateness: float
    as_json: bool
    out: Path | None
    pcap: bool
    trace: bool
    record_lateness: bool
    between: tuple[str, str] | None
    force: bool


def execute(request: Request) -> None:
    """Emulate the scenario while the command runs."""
    if sys.platform != "linux":
        raise RefusedError("emulate needs Linux, with its network namespaces and packet sockets")
    if (request.pcap or request.trace or request.record_lateness) and request.out is None:
        raise RefusedError("--pcap, --trace and --record-lateness write files and need --out DIR")
    if not 0 < request.lateness <= 1000:
        raise RefusedError(
            f"--lateness: expected milliseconds from 0 to 1000, such as 5, found {request.lateness:g}"
        )
    scenario = load(request.path, request.overrides, [request.scheme] if request.scheme else [])
    scheme = scenario.schemes[0]
    facts = scenario.emulated(scheme)
    if request.between is not None:
        from lasthop.cli.between import carry

        describe(request.path, scenario)
        raise typer.Exit(carry(request, scenario, scheme, request.between))
    if request.force:
        raise RefusedError("--force is about the interfaces of --between, which is not given")
    mtu = request.mtu or max(68, facts["packet_size"])
    lifeline = os.environ.get(_LIFELINE)
    if lifeline is None:
        describe(request.path, scenario)
        _enter_namespaces()
    else:
        descriptor, foreground = map(int, lifeline.split())
        if foreground:
            # Shells cannot handle a process group from outside their namespace.
            os.setpgid(0, 0)
            _take_terminal()
        segments = _segments(facts["slowest_rate_bps"], mtu)
        code = _emulate(request, scenario, scheme, mtu, segments, descriptor, foreground=bool(foreground))
        raise typer.Exit(code)


def _enter_namespaces() -> None:
    """Run this command again in its own namespaces, and exit with its exit code."""
    for tool, package in (("unshare", "util-linux"), ("ip", "iproute2")):
        if shutil.which(tool) is None:
            raise RefusedError(f"emulate needs the program `{tool}`; install {package}")
    inherited, lifeline = os.pipe()
    leave_interrupts_to_programs()
    foreground = _in_foreground()
    arguments = ["unshare", *_isolation(), "--net", "--pid", "--fork", "--kill-child"]
    inner = subprocess.Popen(
        [*arguments, sys.executable, "-m", "lasthop", *sys.argv[1:]],
        env=os.environ | {_LIFELINE: f"{inherited} {int(foreground)}"},
        pass_fds=[inherited],
    )
    os.close(inherited)

    def end(_signal: int, _frame: object) -> None:
        nonlocal lifeline
        if lifeline >= 0:
            os.close(lifeline)
            lifeline = -1

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    code = inner.wait()
    if foreground:
        _take_terminal()
    raise typer.Exit(code if code >= 0 else 128 - code)


def drop_privileges() -> None:
    """Give up all capabilities of this thread."""
    from lasthop._lasthop import Emulator

    Emulator.drop_privileges()


def leave_interrupts_to_programs() -> None:
    """Leave Ctrl-C to the command; the emulation ends when the command does.

    This needs a handler, since child processes would inherit SIG_IGN.
    """
    signal.signal(signal.SIGINT, lambda *_: None)


def _in_foreground() -> bool:
    """Whether this process may read from the terminal that is its stdin."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _take_terminal() -> None:
    """Put the process group of this process in the foreground of the terminal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    with suppress(OSError):
        os.tcsetpgrp(0, os.getpgrp())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])


def _isolation() -> tuple[str, ...]:
    """Return the options of `unshare` that this user needs: none, or those of a user namespace."""
    said = ""
    for options in ((), _UNPRIVILEGED) if os.geteuid() == 0 else (_UNPRIVILEGED,):
        tried = ["unshare", *options, "--net", "--pid", "--fork", "true"]
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return options
        said = " ".join(done.stderr.split())
    raise RefusedError(
        f"emulate cannot make network namespaces here ({said}); allow user namespaces, such as by sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0 or user.max_user_namespaces=1000, or run it as root"
    )


class _End:
    """One end of the network: a process in its own network namespace.

    Parameters
    ----------
    side : int
        0 for the source of the data, 1 for their destination.
    program : list of str or None
        The program to run there.
    mtu : int
        The MTU of its interface.
    segments : int
        How many segments its kernel may leave to the card.
    listens : bool
        Whether the other end waits until this one listens.
    """

    def __init__(
        self, side: int, program: list[str] | None, mtu: int, segments: int, *, listens: bool, quiet: bool
    ) -> None:
        self._read, said = os.pipe()
        go, self._go = os.pipe()
        commands = [
            "ip link set dev lo up",
            # The segments of a super-packet arrive at once, in bursts that simulated senders do not have.
            f"ip link set dev eth0 mtu {mtu} gso_max_segs {segments}",
            # The only neighbour has a fixed address.
            "ip link set dev eth0 arp off",
            f"ip address add {ADDRESSES[side]}/24 dev eth0",
            "ip link set dev eth0 up",
        ]
        if mtu >= _LEAST_MTU6 and Path("/proc/net/if_inet6").exists():
            commands.append(f"ip address add {_ADDRESSES6[side]}/64 dev eth0 nodad")
        plan = {
            "go": go,
            "said": said,
            "commands": [*(command.split() for command in commands), ["sh", "-c", _spread()]],
            "program": program,
            "listens": listens,
        }
        gate = str(Path(__file__).with_name("gate.py"))
        environment = dict(os.environ)
        del environment[_LIFELINE]
        for name, address in zip(("LASTHOP_SERVER", "LASTHOP_CLIENT"), ADDRESSES, strict=True):
            environment[name] = address
        self.process = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-I", "-S", gate, json.dumps(plan)],
            env=environment,
            pass_fds=[go, said],
            stdin=None if side else subprocess.DEVNULL,
            stdout=sys.stderr if quiet else None,
        )
        os.close(go)
        os.close(said)
        self._said = os.fdopen(self._read, "r")

    def expect(self, word: str) -> None:
        """Wait until the end says `word`."""
        said = self._said.readline().strip()
        if said != word:
            raise RefusedError(f"emulate cannot set up a network namespace: {said or 'the process ended'}")

    def wait_until_it_listens(self) -> None:
        """Wait until the program listens or has ended."""
        self._said.readline()

    def go(self) -> None:
        """Let the end configure its interface and run its program."""
        os.write(self._go, b"!")

    def stop(self) -> None:
        """End the program: SIGTERM first, SIGKILL after a timeout."""
        os.close(self._go)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()


def _segments(rate_bps: float, mtu: int) -> int:
    """Return how many segments the kernels may leave to the card: 1 on links below 120 Mb/s, with 1500 B."""
    most = 65535
    return min(max(int(_SUPER_PACKET_S * rate_bps / (8 * mtu)), 1), most)


def _spread() -> str:
    """Return the command that lets all processors receive, instead of the thread that writes a packet.

    Where it may not mount the files of its devices, that thread goes on receiving.
    """
    mask = (1 << (os.cpu_count() or 1)) - 1
    words = ",".join(f"{mask >> shift & 0xFFFFFFFF:x}" for shift in reversed(range(0, mask.bit_length(), 32)))
    steps = f"mount -t sysfs sysfs /sys && echo {words} > /sys/class/net/eth0/queues/rx-0/rps_cpus"
    return f"unshare --mount sh -c '{steps}' 2>/dev/null || true"


def backlog_drops() -> int:
    """Return how many packets this machine has dropped between two devices, since it was started."""
    with suppress(OSError), open("/proc/net/softnet_stat") as lines:
        return sum(int(line.split()[1], 16) for line in lines)
    return 0


class Carrier:
    """The thread that carries packets. It drops its privileges, since packets are untrusted input.

    It has real-time priority if the user is permitted to set it, and otherwise a short slice.

    Parameters
    ----------
    request : Request
        The arguments of the command.
    scenario : Scenario
        The scenario.
    scheme : str
        The scheme.
    interfaces : (str, str)
        The interfaces at the source and at the destination of the data.
    mtu : int
        Their MTU.
    output : Output or None
        The directory of results.
    stop : threading.Event
        Ends the emulation.
    """

    def __init__(
        self,
        request: Request,
        scenario: Scenario,
        scheme: str,
        interfaces: tuple[str, str],
        mtu: int,
        output: Output | None,
        stop: threading.Event,
    ) -> None:
        from lasthop._lasthop import Emulator

        self._stop, self._output, self._stem = stop, output, run_stem(scheme)
        pcap = None
        if output is not None and request.pcap:
            server, client = (f"{self._stem}-{end}.pcapng" for end in ("server", "client"))
            pcap = (output.path(server, "pcapng"), output.path(client, "pcapng"))
        self._emulator = Emulator(
            scenario,
            scheme,
            interfaces,
            seed=request.seed,
            run=request.run,
            mtu=mtu,
            longest_wait=max(_LONGEST_WAIT, 10 * request.lateness / 1e3),
            pcap=pcap,
            wire=request.between is not None,
            trace=request.trace,
            lateness=request.record_lateness,
        )
        self._scheduled = threading.Event()
        self._begin = threading.Event()
        self._traces: list[tuple[str, dict[str, Any]]] = []
        self._lateness: dict[str, Any] | None = None
        self._report: dict[str, Any] = {}
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        try:
            self._report |= scheduling.request_low_latency()
        finally:
            self._scheduled.set()
        self._emulator.drop_privileges()
        self._begin.wait()
        try:
            report, self._traces, self._lateness = self._emulator.run(lambda: not self._stop.is_set())
            self._report |= json.loads(report)
        except OSError as error:
            self._failure = error
            self._stop.set()

    def has_real_time(self) -> bool:
        """Return whether its thread has real-time priority."""
        self._scheduled.wait()
        return bool(self._report.get("real_time"))

    def begin(self) -> None:
        """Carry packets from now on."""
        self._begin.set()

    def report(self) -> dict[str, Any]:
        """Wait until it has stopped, and return its report."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._report

    def write(self) -> None:
        """Write the recordings."""
        from lasthop import plots

        if self._output is None:
            return
        for number, (name, events) in enumerate(self._traces):
            # As those of `lasthop run`, for the connection with most data.
            stem = f"{self._stem}.{name}" if number else self._stem
            plots.write_csv(self._output.path(f"{run_stem(stem)}.events.csv", "traces"), events)
        if self._lateness is not None:
            plots.write_csv(self._output.path(f"{self._stem}.lateness.csv", "lateness"), self._lateness)


def _emulate(
    request: Request,
    scenario: Scenario,
    scheme: str,
    mtu: int,
    segments: int,
    lifeline: int,
    *,
    foreground: bool,
) -> int:
    """Set up both ends, carry packets until the command ends, and report; returns the exit code."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    leave_interrupts_to_programs()
    threading.Thread(target=_watch, args=(lifeline, stop), daemon=True).start()
    program = [_with_addresses(each) for each in request.command] or [os.environ.get("SHELL", "/bin/sh")]
    server = ["sh", "-c", _with_addresses(request.server)] if request.server else None
    output = None if request.out is None else Output(request.out)
    with output or nullcontext(), ExitStack() as ends:
        quiet = request.as_json
        at_server = ends.enter_context(_end(0, server, mtu, segments, listens=bool(server), quiet=quiet))
        at_client = ends.enter_context(_end(1, program, mtu, segments, listens=False, quiet=quiet))
        for device, end in zip(_DEVICES, (at_server, at_client), strict=True):
            end.expect("made")
            _connect(device, end.process.pid)
        carrier = Carrier(request, scenario, scheme, _DEVICES, mtu, output, stop)
        if not carrier.has_real_time():
            for end in (at_server, at_client):
                scheduling.put_behind(end.process.pid)
        drop_privileges()
        detail(f"{_names(scenario, scheme)} at {' and '.join(ADDRESSES)}, MTU {mtu}")
        at_server.go()
        at_server.expect("ready")
        if server:
            at_server.wait_until_it_listens()
        if not request.command:
            notify(f"the server is at {ADDRESSES[0]}; `exit` ends the emulation")
        at_client.go()
        at_client.expect("ready")
        dropped = backlog_drops()
        carrier.begin()
        code = _wait(at_client.process, stop)
        if foreground:
            # An interactive shell still has the terminal.
            _take_terminal()
        if server and not stop.is_set():
            # The server may still print its results after the client has ended.
            with suppress(subprocess.TimeoutExpired):
                at_server.process.wait(_PATIENCE / 2)
        stop.set()
        carried = carrier.report() | {"backlog_drops": backlog_drops() - dropped}
        report = report_of(request, scenario, scheme, carried, code)
        if output is not None:
            carrier.write()
            output.text("scenario.toml", scenario.to_toml())
            output.text("results.json", json.dumps(report, indent=2) + "\n")
    return publish(request, report, code)


def publish(request: Request, report: dict[str, Any], code: int) -> int:
    """Print the report; return the exit code of an emulation whose command has ended with `code`."""
    if request.as_json:
        emit_document(json.dumps(report, indent=2))
    else:
        for line in _lines(report):
            notify(line)
    for problem in report["problems"]:
        notify(f"warning: {problem}")
    return code or (LATE if report["problems"] else 0)


@contextmanager
def _end(
    side: int, program: list[str] | None, mtu: int, segments: int, *, listens: bool, quiet: bool
) -> Iterator[_End]:
    end = _End(side, program, mtu, segments, listens=listens, quiet=quiet)
    try:
        yield end
    finally:
        end.stop()


def _watch(lifeline: int, stop: threading.Event) -> None:
    """Stop when the outer process has closed its end, or died."""
    os.read(lifeline, 1)
    stop.set()


def _wait(process: subprocess.Popen[Any], stop: threading.Event) -> int:
    """Wait until the program ends, or the emulation is stopped; returns the exit code."""
    while not stop.is_set():
        try:
            code = process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        return code if code >= 0 else 128 - code
    return 128 + signal.SIGTERM


def _with_addresses(text: str) -> str:
    """Replace the names of the two ends in a command."""
    return text.replace("{server}", ADDRESSES[0]).replace("{client}", ADDRESSES[1])


def _connect(device: str, pid: int) -> None:
    """Create a veth pair from here to the namespace of a process, where it is called eth0."""
    peer = f"peer name eth0 address {_MAC} netns {pid}"
    for command in (
        f"ip link add name {device} address {_OTHER_MAC} type veth {peer}",
        # This keeps the host from sending packets of its own.
        f"ip link set dev {device} addrgenmode none mtu 65535",
        f"ip link set dev {device} arp off up",
    ):
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RefusedError(f"emulate cannot set up its devices: {command}: {done.stderr.strip()}")


def _names(scenario: Scenario, scheme: str) -> str:
    return " and ".join(scenario.emulated(scheme)["hosts"])


def report_of(
    request: Request, scenario: Scenario, scheme: str, carried: dict[str, Any], code: int
) -> dict[str, Any]:
    """Return the document of the emulation."""
    problems = []
    lateness, bound = carried["lateness"], request.lateness / 1e3
    if lateness["p99_s"] > bound:
        problems.append(
            f"1 % of the packets left {_time(lateness['p99_s'])} late or more, above the bound of "
            f"{_time(bound)}; use an idle machine or slower links, or raise --lateness"
        )
    if dropped := carried["overload_drops"]:
        problems.append(
            f"{dropped:,} packets were dropped since this machine was too slow, or their receiver; send less"
        )
    if dropped := carried["backlog_drops"]:
        problems.append(
            f"the kernel dropped {dropped:,} packets before their receivers, since this machine was too "
            "slow; send less, or raise net.core.netdev_max_backlog"
        )
    if oversized := carried["unforwarded"]["oversized"]:
        problems.append(
            f"{oversized:,} packets above the MTU were not carried; turn large receive offload off "
            "(ethtool -K INTERFACE lro off), and segmentation offload in tunnels, or raise the MTU"
        )
    return {
        "title": scenario.title,
        "scenario": scenario.file,
        "hash": scenario.hash,
        "scheme": scheme,
        "seed": request.seed,
        "run": request.run,
        "exit_code": code,
        "lateness_bound_s": bound,
        "problems": problems,
        "without_sweep": list(scenario.sweep),
        "interfaces": list(request.between) if request.between else None,
        "metrics": _metrics(carried),
        **carried,
    }


def _metrics(carried: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of the whole network, with the names and definitions of a simulation."""
    sums = {
        "link_discards": ("link_discards", "unreachable"),
        "lost_on_air": ("lost_on_air",),
        "queue_drops": ("queue_drops",),
        "aqm_drops": ("aqm_drops",),
        "link_attempts": ("link_attempts",),
        "link_failures": ("link_failures",),
        "link_bits": ("link_bits",),
        "air_time_s": ("air_time_s",),
        "ecn_marks": ("marked",),
    }
    links = carried["links"]
    metrics = {name: sum(link[key] or 0 for link in links for key in keys) for name, keys in sums.items()}
    return {**metrics, **carried["schemes"]}


def _lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the printed report."""
    what = f"{Path(report['scenario']).stem}, {report['scheme']}, seed {report['seed']}, run {report['run']}"
    between = f", between {' and '.join(report['interfaces'])}" if report["interfaces"] else ""
    yield f"\nemulated {report['duration_s']:,.2f} s of {what}{between}"
    for end, other in zip(report["ends"], reversed(report["ends"]), strict=True):
        yield (
            f"  {end['host']} sent {end['sent_packets']:,} packets, {other['host']} received "
            f"{other['received_packets']:,} ({_rate(other['received_bytes'], report['duration_s'])})"
        )
    lost = [
        f"{link['link']} {link[key]:,} {why}"
        for link in report["links"]
        for key, why in (
            ("queue_drops", "by a full queue"),
            ("aqm_drops", "by its queue discipline"),
            ("lost_on_air", "on the air"),
            ("link_discards", "given up by the ARQ"),
            ("unreachable", "to an absent host"),
        )
        if link[key]
    ]
    yield f"  links dropped {report['lost_packets']:,} packets" + (f": {', '.join(lost)}" if lost else "")
    for counter, value in report["schemes"].items():
        if value:
            yield f"  {counter} {value:,}"
    if report["opaque_packets"]:
        yield f"  agents could not read {report['opaque_packets']:,} packets of TCP"
    if report["segmented_packets"]:
        yield f"  {report['segmented_packets']:,} super-packets were cut into segments"
    if report["marked_packets"]:
        yield f"  queues marked {report['marked_packets']:,} packets"
    if report["simulated_flows"]:
        yield f"  {report['simulated_flows']} flows were simulated beside them"
    if report["without_sweep"]:
        yield f"  without the sweep of {', '.join(report['without_sweep'])}"
    late = report["lateness"]
    times = ", ".join(f"{name} {_time(late[f'{name}_s'])}" for name in ("p50", "p99", "max"))
    share = report["cpu_s"] / report["duration_s"] if report["duration_s"] else 0
    yield f"  lateness {times}; {share:.0%} of a processor"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} us"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def _rate(size: int, seconds: float) -> str:
    from lasthop.cli.table import in_common
    from lasthop.core.units import RATES

    unit, (number,) = in_common([8 * size / seconds if seconds else 0.0], RATES)
    return f"{number} {unit}"
