"""The files that install a remedy, and what to do with them."""

from __future__ import annotations

from lasthop.advice.judgement import Remedy
from lasthop.advice.steps import SHAPER, SYSCTL

README = "README.txt"
"""The file that says what to do with the others."""

_USES = {
    SYSCTL: "install -m 644 {name} /etc/sysctl.d/ && sysctl -p /etc/sysctl.d/{name}",
    SHAPER: "sh {name} WAN, where WAN is the interface towards the link",
    "gateway.toml": "state your interface in place of RADIO; then lasthop gateway run {name}",
}
"""What to do with each file."""


def plan(remedy: Remedy | None) -> dict[str, str]:
    """Return the files that install a remedy, by name; without one, only what says so."""
    if remedy is None:
        return {README: "No remedy is advised: there is nothing to install.\n"}
    files: dict[str, str] = {}
    lines = [f"To install: {remedy.title}", ""]
    for part in remedy.deployment.parts:
        lines += [f"{part.name} ({part.place})", f"  {part.steps.owner}"]
        if part.steps.files:
            lines += [f"  {name}: {_USES[name].format(name=name)}" for name in part.steps.files]
        else:
            lines += [f"  {line}" for line in (*part.steps.commands, part.how)]
        lines += [f"  {note}" for note in (part.steps.note, part.cost and f"cost: {part.cost}") if note]
        lines.append("")
        files.update(part.steps.files)
    return {**files, README: "\n".join(lines)}
