"""The first process of an emulated end's network namespace: configures its interface, then runs a program.

Executed by path, without the package: `python namespace_init.py PLAN`, where PLAN is JSON with

- `go`, `state`: descriptors of control pipes; the parent writes to `go`, this process reports to `state`;
- `commands`: the commands that configure the interface;
- `program`: the program with its arguments, or null to wait until `go` is closed;
- `listens`: whether to report when a socket of the namespace listens.

It reports `made` when it begins, `ready` before the program starts, `listening`, or what failed. The pipe
of the state closes when the program starts.
"""

import json
import os
import subprocess
import sys
import time

LONGEST = 5.0
"""Seconds until a server that does not listen counts as ready."""

_LISTENING = (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07"))
"""Tables of sockets, and the state of those that wait for others."""


def listens() -> bool:
    """Whether any socket of the namespace listens, or any UDP socket is open."""
    for table, state in _LISTENING:
        try:
            with open(f"/proc/self/net/{table}") as lines:
                next(lines)
                if any(line.split()[3] == state for line in lines):
                    return True
        except (OSError, StopIteration):
            pass
    return False


def main() -> None:
    """Carry out the plan."""
    plan = json.loads(sys.argv[1])
    go, state = plan["go"], plan["state"]

    def report(text: str) -> None:
        os.write(state, f"{text}\n".encode())

    # Real-time priority is that of the thread that carries packets alone.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    report("made")
    if not os.read(go, 1):
        sys.exit(1)
    for command in plan["commands"]:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            report(f"{' '.join(command)}: {' '.join(done.stderr.split())}")
            sys.exit(1)
    report("ready")
    if plan["program"] is None:
        os.read(go, 1)
        sys.exit(0)
    if plan["listens"] and not os.fork():
        # In the background: the program takes the place of this process.
        end = time.monotonic() + LONGEST
        while not listens() and time.monotonic() < end:
            time.sleep(0.01)
        report("listening")
        os._exit(0)
    os.set_inheritable(go, False)
    os.set_inheritable(state, False)
    program = plan["program"]
    try:
        os.execvp(program[0], program)
    except OSError as error:
        report(f"cannot run {program[0]}: {error.strerror}")
        sys.exit(127)


if __name__ == "__main__":
    main()
