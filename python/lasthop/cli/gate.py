"""One end of an emulated network: waits in its namespace until that has an interface, then runs a program.

Executed by path, without the package: `python gate.py PLAN`, where PLAN is JSON with

- `go` and `said`: file descriptors from which to read when to go on, and to which to write what was reached;
- `commands`: the commands that configure the interface;
- `program`: the program with its arguments, or null to do nothing until `go` is closed;
- `listens`: whether to say so once a socket of the namespace listens.

It writes `made` when it begins, `ready` before the program starts, `listening`, or what failed.
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
    go, said = plan["go"], plan["said"]

    def say(word: str) -> None:
        os.write(said, f"{word}\n".encode())

    say("made")
    if not os.read(go, 1):
        sys.exit(1)
    for command in plan["commands"]:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            say(f"{' '.join(command)}: {' '.join(done.stderr.split())}")
            sys.exit(1)
    say("ready")
    if plan["program"] is None:
        os.read(go, 1)
        sys.exit(0)
    if plan["listens"] and not os.fork():
        # In the background: the program takes the place of this process.
        end = time.monotonic() + LONGEST
        while not listens() and time.monotonic() < end:
            time.sleep(0.01)
        say("listening")
        os._exit(0)
    os.set_inheritable(go, False)
    os.set_inheritable(said, False)
    program = plan["program"]
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"lasthop: cannot run {program[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main()
