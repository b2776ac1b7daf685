"""Network namespaces at the two ends of a scenario's network.

```text
lasthop emulate                the user's namespaces: checks the scenario, waits
  unshare: user, network, process and mount namespaces
    lasthop emulate            carries packets between two veth devices, prints the report
      unshare: user, network   the server's end: namespace_init.py, then --server
      unshare: user, network   the client's end: namespace_init.py, then the command or a shell
```

When the first process of a process namespace ends, the kernel kills the others; a network namespace
disappears with its last process. So nothing is left behind, even after a crash.

The programs see the processes of the emulation in `/proc`, and no others. Their privileges are those of user
namespaces of their own, also for root: the networks of the machine, the emulation's own interfaces, its
memory and its mounts are out of their reach. With `--privileged` they have all that root has.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import typer

from lasthop._lasthop import Emulator
from lasthop.cli.emulation import report, scheduling
from lasthop.cli.emulation.carrier import (
    PATIENCE,
    Carrier,
    Emulation,
    Interfaces,
    end_process,
    leave_interrupts_to_programs,
    let_interrupts_through,
    stop_on_termination,
)
from lasthop.cli.failure import RefusedError, failed, warn
from lasthop.cli.output import Output
from lasthop.cli.scenario import describe
from lasthop.cli.streams import detail, notify

ADDRESSES = ("10.0.0.1", "10.0.0.2")
"""The addresses of the source and the destination of the data: `{server}` and `{client}` in commands."""

_ADDRESSES6 = ("fd00::1", "fd00::2")

_LEAST_MTU6 = 1280

_DEVICES = ("lasthop0", "lasthop1")
"""This side of the veth pairs."""

MAC = "02:00:00:00:00:01"
"""The hardware address of both ends, so that frames pass between them as they are."""

_OTHER_MAC = "02:00:00:00:00:02"
"""That of this side, whose kernel then leaves frames alone that are for the ends."""

_LIFELINE = "LASTHOP_EMULATION"
"""The environment variable with a file descriptor that closes when the outer process ends, and whether the
outer process is in the foreground of a terminal."""

_SUPER_PACKET_S = 200e-6
"""How long a super-packet of the kernel may keep the slowest link busy, in seconds."""

_SILENT_IPV6 = "addrgenmode none"
"""The setting that keeps an interface without addresses of IPv6; a kernel without IPv6 refuses it."""

_CHECK_INTERVAL = 0.05
"""Seconds between two checks of the interfaces."""

_GRACE = 0.3
"""Seconds that a program may take to end after its interface."""

_OWN_USER = ("--user", "--map-root-user")
"""The options of `unshare` that make a user namespace, in which this user is root."""


def emulate(
    emulation: Emulation,
    path: Path,
    command: list[str],
    *,
    server: str | None,
    mtu: int | None,
    hide: list[Path],
    privileged: bool,
) -> NoReturn:
    """Emulate in namespaces while the command runs, and exit with its exit code.

    Parameters
    ----------
    emulation : Emulation
        What to emulate.
    path : Path
        The file of its scenario, as typed.
    command : list of str
        What runs at the destination of the data; a shell if empty.
    server : str or None
        A shell command that runs at their source.
    mtu : int or None
        The MTU of both ends; by default the scenario's packet size.
    hide : list of Path
        Files and directories that the programs do not see.
    privileged : bool
        Whether the programs have the privileges of root.
    """
    inherited = os.environ.get(_LIFELINE)
    if emulation.guest is not None:
        # The process outside the guest has entered namespaces in it, and ends it: this pipe never closes.
        inherited = f"{os.pipe()[0]} 0"
    elif inherited is None:
        describe(path, emulation.scenario)
        _enter_namespaces(privileged=privileged)
    descriptor, foreground = map(int, inherited.split())
    if foreground:
        # Shells cannot handle a process group from outside their namespace.
        os.setpgid(0, 0)
        _take_terminal()
    for hidden in hide:
        _hide(hidden)
    size = emulation.scenario.emulated(emulation.scheme)["packet_size"]
    own_user = () if privileged else _OWN_USER
    code = _emulate(
        emulation, command, server, mtu or max(68, size), own_user, descriptor, foreground=bool(foreground)
    )
    raise typer.Exit(code)


def _hide(path: Path) -> None:
    """Put an empty directory or file in the place of one, in this mount namespace.

    The mount namespace belongs to the user namespace of the emulation, so programs cannot undo it.
    """
    if path.is_dir():
        mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(path)]
    else:
        mount = ["mount", "--bind", "/dev/null", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(f"{path} cannot be hidden: {' '.join(done.stderr.split())}", option="--hide")


def _enter_namespaces(*, privileged: bool) -> NoReturn:
    """Run this command again in its own namespaces, and exit with its exit code."""
    refuse_without_tools()
    inherited, lifeline = os.pipe()
    foreground = _in_foreground()

    def end(*_: object) -> None:
        nonlocal lifeline
        if lifeline >= 0:
            closing, lifeline = lifeline, -1
            os.close(closing)

    leave_interrupts_to_programs(end)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    options = _isolation(privileged=privileged)
    if "--mount-proc" not in options:
        warn("the programs see the processes of this machine: /proc cannot be mounted here")
    inner = subprocess.Popen(
        _this_command(options),
        env=os.environ | {_LIFELINE: f"{inherited} {int(foreground)}"},
        pass_fds=[inherited],
        preexec_fn=_in_child,
    )
    os.close(inherited)
    code = inner.wait()
    if foreground:
        _take_terminal()
    raise typer.Exit(code if code >= 0 else 128 - code)


def refuse_without_tools() -> None:
    """Refuse an emulation on a machine without the programs that set up its network."""
    for tool, package in (("unshare", "util-linux"), ("ip", "iproute2")):
        if shutil.which(tool) is None:
            raise RefusedError(f"emulate needs the program `{tool}`; ", remedy=f"install {package}")


def command_in_guest(*, privileged: bool) -> list[str]:
    """Return what runs this command again in a guest: in its own namespaces, as in real time."""
    return _this_command((*(() if privileged else _OWN_USER), "--mount-proc"))


def _this_command(options: tuple[str, ...]) -> list[str]:
    """Return what runs this command again in its own namespaces."""
    unshare = ["unshare", *options, "--net", "--pid", "--mount", "--fork", "--kill-child"]
    return [*unshare, sys.executable, "-m", "lasthop", *sys.argv[1:]]


def _in_child() -> None:
    """Prepare the process that enters the namespaces."""
    let_interrupts_through()
    # In a user namespace, no one may ask for it any more.
    scheduling.take_real_time()


def _isolation(*, privileged: bool = False) -> tuple[str, ...]:
    """Return the options of `unshare` that work here, besides those of network and process namespaces."""
    problem = ""
    own_user = () if privileged else _OWN_USER
    # In some containers, `/proc` has parts that no one may uncover.
    for options in ((*own_user, "--mount-proc"), own_user):
        tried = ["unshare", *options, "--net", "--pid", "--mount", "--fork", "true"]
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return options
        problem = " ".join(done.stderr.split())
    raise RefusedError(
        f"emulate cannot make network namespaces here ({problem}); ",
        remedy=(
            "allow user namespaces, such as by sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0 or user.max_user_namespaces=1000, "
            "or run it as root with --privileged"
        ),
    )


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


def _emulate(
    emulation: Emulation,
    command: list[str],
    server: str | None,
    mtu: int,
    own_user: tuple[str, ...],
    lifeline: int,
    *,
    foreground: bool,
) -> int:
    """Set up both ends, carry packets until the command ends, and report; returns the exit code."""
    stop = stop_on_termination()
    leave_interrupts_to_programs()
    threading.Thread(target=_watch, args=(lifeline, stop), daemon=True).start()
    facts = emulation.scenario.emulated(emulation.scheme)
    segments = segments_of(facts["slowest_rate_bps"], mtu)
    program = [with_addresses(each) for each in command] or [os.environ.get("SHELL", "/bin/sh")]
    at_source = ["sh", "-c", with_addresses(server)] if server else None
    output = None if emulation.out is None else Output(emulation.out)
    with output or nullcontext(), ExitStack() as ends:
        kernel = _Kernel(mtu, segments, own_user)
        quiet = emulation.as_json
        at_server = ends.enter_context(_end(0, at_source, kernel, listens=bool(server), quiet=quiet))
        at_client = ends.enter_context(_end(1, program, kernel, listens=False, quiet=quiet))
        for device, end in zip(_DEVICES, (at_server, at_client), strict=True):
            end.expect("made")
            _connect(device, end.process.pid)
        devices = Interfaces(_DEVICES, come_up=True)
        carrier = Carrier(emulation, _DEVICES, mtu, output, stop, wire=False)
        if not carrier.has_real_time():
            for end in (at_server, at_client):
                scheduling.put_behind(end.process.pid)
        scheduling.leave_real_time()
        Emulator.drop_privileges()
        detail(f"{' and '.join(facts['hosts'])} at {' and '.join(ADDRESSES)}, MTU {mtu}")
        at_server.go()
        at_server.expect("ready")
        if server:
            at_server.wait_until_it_listens()
        if not command:
            notify(f"the server is at {ADDRESSES[0]}; `exit` ends the emulation")
        if emulation.guest is not None:
            emulation.guest.wait_for_phase()
        at_client.go()
        at_client.expect("ready")
        carrier.begin()
        if failure := at_client.failure():
            stop.set()
            carrier.report()
            raise failed("option", failure, code=127)
        code = _wait(
            at_client.process, devices, dict(zip(_DEVICES, (at_server, at_client), strict=True)), stop
        )
        if foreground:
            # An interactive shell still has the terminal.
            _take_terminal()
        if server and not stop.is_set():
            # The server may still print its results after the client has ended.
            with suppress(subprocess.TimeoutExpired):
                at_server.process.wait(PATIENCE / 2)
        stop.set()
        document = report.document(emulation, None, carrier.report(), code)
        names = dict(zip(_DEVICES, ("server", "client"), strict=True))
        document["problems"] += [
            f"the interface of the {names[each]} has disappeared" for each in devices.gone
        ]
        document["problems"] += [f"the interface of the {names[each]} went down" for each in devices.down]
        carrier.write(document)
    return report.publish(document, as_json=emulation.as_json)


class _Kernel(NamedTuple):
    """How the kernel sets up both ends.

    Attributes
    ----------
    mtu : int
        The MTU of the interfaces.
    segments : int
        How many segments may be left to the card.
    own_user : tuple of str
        The options of `unshare` that make a user namespace; none for programs with the privileges of root.
    """

    mtu: int
    segments: int
    own_user: tuple[str, ...]


class _End:
    """One end of the network: a process in its own network namespace.

    Parameters
    ----------
    side : int
        0 for the source of the data, 1 for their destination.
    program : list of str or None
        The program to run there.
    kernel : _Kernel
        How it is set up.
    listens : bool
        Whether the other end waits until this one listens.
    """

    def __init__(
        self, side: int, program: list[str] | None, kernel: _Kernel, *, listens: bool, quiet: bool
    ) -> None:
        read, state = os.pipe()
        go, self._go = os.pipe()
        commands = network_commands(side, kernel.mtu, kernel.segments, has_ipv6=_has_ipv6())
        plan = {
            "go": go,
            "state": state,
            "commands": [*(command.split() for command in commands), ["sh", "-c", _spread()]],
            "program": program,
            "listens": listens,
        }
        init = str(Path(__file__).with_name("namespace_init.py"))
        environment = environment_of_programs()
        self.process = subprocess.Popen(
            ["unshare", *kernel.own_user, "--net", sys.executable, "-I", "-S", init, json.dumps(plan)],
            env=environment,
            pass_fds=[go, state],
            stdin=None if side else subprocess.DEVNULL,
            stdout=sys.stderr if quiet else None,
        )
        os.close(go)
        os.close(state)
        self._state = os.fdopen(read, "r")

    def expect(self, state: str) -> None:
        """Wait until the process reports that it is in a state."""
        reported = self._state.readline().strip()
        if reported != state:
            problem = reported or "the process ended"
            raise RefusedError(f"emulate cannot set up a network namespace: {problem}")

    def failure(self) -> str:
        """Wait until the program runs; return why it does not, or an empty text."""
        return self._state.read().strip()

    def wait_until_it_listens(self) -> None:
        """Wait until the program listens or has ended."""
        self._state.readline()

    def go(self) -> None:
        """Let the end configure its interface and run its program."""
        os.write(self._go, b"!")

    def stop(self) -> None:
        """End the program."""
        os.close(self._go)
        end_process(self.process)


def environment_of_programs() -> dict[str, str]:
    """Return the environment of the programs at both ends."""
    environment = dict(os.environ)
    environment.pop(_LIFELINE, None)
    for name, address in zip(("LASTHOP_SERVER", "LASTHOP_CLIENT"), ADDRESSES, strict=True):
        environment[name] = address
    return environment


def network_commands(side: int, mtu: int, segments: int, *, has_ipv6: bool) -> list[str]:
    """Return the commands that configure the interface eth0 of an end.

    Parameters
    ----------
    side : int
        0 for the source of the data, 1 for their destination.
    mtu : int
        The MTU.
    segments : int
        How many segments may be left to the card.
    has_ipv6 : bool
        Whether its kernel has IPv6.
    """
    commands = [
        "ip link set dev lo up",
        # The segments of a super-packet arrive at once, in bursts that simulated senders do not have.
        f"ip link set dev eth0 mtu {mtu} gso_max_segs {segments}",
        # The only neighbour has a fixed address.
        "ip link set dev eth0 arp off",
        f"ip address add {ADDRESSES[side]}/24 dev eth0",
        "ip link set dev eth0 up",
    ]
    if mtu >= _LEAST_MTU6 and has_ipv6:
        commands.append(f"ip address add {_ADDRESSES6[side]}/64 dev eth0 nodad")
    return commands


@contextmanager
def _end(
    side: int, program: list[str] | None, kernel: _Kernel, *, listens: bool, quiet: bool
) -> Iterator[_End]:
    end = _End(side, program, kernel, listens=listens, quiet=quiet)
    try:
        yield end
    finally:
        end.stop()


def _connect(device: str, pid: int) -> None:
    """Create a veth pair from here to the namespace of a process, where it is called eth0."""
    peer = f"peer name eth0 address {MAC} netns {pid}"
    for command in (
        f"ip link add name {device} address {_OTHER_MAC} type veth {peer}",
        # This keeps the host from sending packets of its own.
        f"ip link set dev {device} {_SILENT_IPV6 if _has_ipv6() else ''} mtu 65535",
        f"ip link set dev {device} arp off up",
    ):
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RefusedError(f"emulate cannot set up its devices: {command}: {done.stderr.strip()}")


def _has_ipv6() -> bool:
    return Path("/proc/net/if_inet6").exists()


def segments_of(rate_bps: float, mtu: int) -> int:
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


def _watch(lifeline: int, stop: threading.Event) -> None:
    """Stop when the outer process has closed its end, or died."""
    os.read(lifeline, 1)
    stop.set()


def _wait(
    process: subprocess.Popen[Any], devices: Interfaces, ends: dict[str, _End], stop: threading.Event
) -> int:
    """Wait until the program ends, or the emulation is stopped; returns the exit code.

    An interface disappears as well when the last program at its end does.
    """
    # Unlike `Popen.wait` with a timeout, this does not poll.
    ended = os.pidfd_open(process.pid)
    try:
        while not stop.is_set():
            for device, end in ends.items():
                if devices.look(device):
                    try:
                        end.process.wait(_GRACE)
                    except subprocess.TimeoutExpired:
                        devices.note(device)
            if select.select([ended], [], [], _CHECK_INTERVAL)[0]:
                code = process.wait()
                return code if code >= 0 else 128 - code
    finally:
        os.close(ended)
    return 128 + signal.SIGTERM


def with_addresses(text: str) -> str:
    """Replace the names of the two ends in a command."""
    return text.replace("{server}", ADDRESSES[0]).replace("{client}", ADDRESSES[1])
