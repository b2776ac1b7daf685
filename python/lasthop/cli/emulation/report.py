"""The report of an emulation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lasthop.cli.emulation.carrier import Emulation
from lasthop.cli.failure import LATE
from lasthop.cli.streams import emit_document, notify
from lasthop.core import formats

_POLLING_SHARE = 0.05
"""Programs that are busy for a larger share of virtual time wait by reading the clock over and over."""

_LEAST_S = 1.0
"""Shorter emulations count as this long: kernels count whole ticks, and a program may start at one."""


def document(
    emulation: Emulation, interfaces: tuple[str, str] | None, carried: dict[str, Any], code: int
) -> dict[str, Any]:
    """Return the report as JSON has it.

    Parameters
    ----------
    emulation : Emulation
        The emulation.
    interfaces : (str, str) or None
        The interfaces between which it took the place of a wire.
    carried : dict
        The report of the carrier.
    code : int
        The exit code of the command.
    """
    scenario = emulation.scenario
    problems = []
    lateness, bound = carried["lateness"], emulation.lateness_ms / 1e3
    # In virtual time, the load and the speed of this machine do not matter.
    is_real = emulation.guest is None
    if lateness["p99_s"] > bound:
        remedy = "an idle machine or slower links" if is_real else "slower links"
        problems.append(
            f"1 % of the packets left {_time(lateness['p99_s'])} late or more, above the bound of "
            f"{_time(bound)}; use {remedy}, or raise --lateness"
        )
    if dropped := carried["overload_drops"]:
        slow = "this machine was too slow, or their receiver" if is_real else "their receiver was too slow"
        problems.append(f"{dropped:,} packets were dropped since {slow}; send less")
    if dropped := carried["backlog_drops"]:
        why = ", since this machine was too slow" if is_real else ""
        problems.append(
            f"the kernel dropped {dropped:,} packets before their receivers{why}; send less, or raise "
            "net.core.netdev_max_backlog"
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
        "scheme": emulation.scheme,
        "seed": emulation.seed,
        "run": emulation.run,
        "exit_code": code,
        "lateness_bound_s": bound,
        "problems": problems,
        "without_sweep": list(scenario.sweep),
        "interfaces": list(interfaces) if interfaces else None,
        "virtual": emulation.guest.facts() if emulation.guest else None,
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


def publish(report: dict[str, Any], *, as_json: bool) -> int:
    """Print a report; return the exit code of its emulation."""
    if as_json:
        emit_document(json.dumps(report, indent=2))
    else:
        for line in _lines(report):
            notify(line)
    for warning in warnings(report):
        notify(warning)
    return code_of(report)


def warnings(report: dict[str, Any]) -> list[str]:
    """Return what is printed beside a report."""
    return [f"warning: {problem}" for problem in (*report["problems"], *_notes(report))]


def code_of(report: dict[str, Any]) -> int:
    """Return the exit code of an emulation: that of its command, unless its results are not sound."""
    return int(report["exit_code"]) or (LATE if report["problems"] else 0)


def _notes(report: dict[str, Any]) -> Iterator[str]:
    """Yield what is worth knowing, although the results are sound."""
    virtual = report["virtual"]
    if early := report["unforwarded"]["early"]:
        yield (
            f"{early:,} packets were sent before the program at the other end started, and reached nobody; "
            "the client starts once the server listens, or five seconds after it"
        )
    if virtual and not virtual["repeatable"]:
        yield (
            "another run of this seed may give other bytes: this machine does not let programs have fixed "
            "addresses; in Docker, --security-opt seccomp=unconfined does"
        )
    if virtual and virtual["polling_s"] > _POLLING_SHARE * max(report["duration_s"], _LEAST_S):
        yield (
            f"the programs read clocks over and over for {formats.seconds(virtual['polling_s'])} of virtual "
            "time, which is slow; let them sleep or poll(2) until a time, instead of asking whether it has "
            "come"
        )


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
    if virtual := report["virtual"]:
        other = f" and {virtual['server_kernel']} at the server" if "server_kernel" in virtual else ""
        yield f"  lateness {times}; Linux {virtual['kernel']}{other} in virtual time"
        return
    share = report["cpu_s"] / report["duration_s"] if report["duration_s"] else 0
    yield f"  lateness {times}; {share:.0%} of a processor"


def _time(seconds: float) -> str:
    """Return a lateness: to a microsecond below a millisecond, otherwise with three digits.

    Examples
    --------
    >>> _time(12.3e-6), _time(0.0071), _time(0.9996)
    ('12 us', '7.1 ms', '1 s')
    """
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-3 else formats.seconds(seconds)


def _rate(size: int, seconds: float) -> str:
    from lasthop.cli.table import in_common
    from lasthop.core.units import RATES

    unit, (number,) = in_common([8 * size / seconds if seconds else 0.0], RATES)
    return f"{number} {unit}"
