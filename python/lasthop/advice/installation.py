"""The files that install a remedy, and what to do with them."""

from __future__ import annotations

from lasthop.advice.judgement import Remedy
from lasthop.advice.steps import SHAPER, SYSCTL, Steps, after_writing, unknown_rates

README = "README.txt"
"""The file that says what to do with the others."""


def _use(name: str, steps: Steps) -> list[str]:
    """Return what to do with a file, as lines."""
    if name == SYSCTL:
        return [f"{name}: install -m 644 {name} /etc/sysctl.d/ && sysctl -p /etc/sysctl.d/{name}"]
    if name == SHAPER:
        rates = unknown_rates(steps.commands)
        stated = f"; {' and '.join(rates)}: the link's, less a twentieth, such as 9500kbit" if rates else ""
        line = " ".join(["sh", name, "WAN", *rates])
        return [f"{name}: {line}, where WAN is the interface towards the link{stated}"]
    return [
        f"{name}: state your own names in place of those in capitals; then",
        *after_writing(steps.commands),
    ]


def plan(remedy: Remedy | None) -> dict[str, str]:
    """Return the files that install a remedy, by name; without one, only what says so."""
    if remedy is None:
        return {README: "No remedy is advised: there is nothing to install.\n"}
    files: dict[str, str] = {}
    lines = [f"To install: {remedy.title}", ""]
    for part in remedy.deployment.parts:
        lines += [f"{part.name} ({part.place})", f"  {part.steps.owner}"]
        if part.steps.files:
            lines += [f"  {line}" for name in part.steps.files for line in _use(name, part.steps)]
        else:
            lines += [f"  {line}" for line in (*part.steps.commands, part.how)]
        lines += [f"  {note}" for note in (part.steps.note, part.cost and f"cost: {part.cost}") if note]
        lines.append("")
        files.update(part.steps.files)
    return {**files, README: "\n".join(lines)}
