"""The course of a measurement: probes without load, then while a test fills each direction."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lasthop.measurement import Direction, Measurement
from lasthop.measurement.measured import Phase, document
from lasthop.measuring import tools
from lasthop.measuring.programs import Program, run
from lasthop.measuring.tools import Prober, ToolError


class UnmeasuredError(Exception):
    """Nothing was measured; the text says why and what helps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes
    ----------
    host : str
        The far end.
    idle_s : float
        Time of the probes without load.
    load_s : float
        Time of the load in each direction; zero for none.
    most_bytes : int
        Limit of the bytes of both loads together.
    url : str or None
        A file to download, as a load where no server of iperf3 answers.
    hop : int
        The number of the last hop, from the user: the first is that to the router of a Wi-Fi network.
    """

    host: str
    idle_s: float = 20.0
    load_s: float = 8.0
    most_bytes: int = 200_000_000
    url: str | None = None
    hop: int = 1

    @property
    def probe_bytes(self) -> int:
        """Limit of the bytes of the probes, both ways, with IP headers."""
        # One of irtt, or of ping, to the far end and one of ping to the last hop.
        each = tools.PAYLOAD_BYTES + 28 + 84
        return round(2 * each * (self.idle_s + 2 * self.load_s + 2) / tools.SPACING_S)


@dataclass(slots=True)
class Session:
    """A measurement as far as it has come.

    Attributes
    ----------
    plan : Plan
        What is measured.
    phases : list of Phase
        What was measured.
    notes : list of str
        What could not be, and why.
    last_hop : str or None
        The address of the router at the far end of the last hop.
    started : str
        When, as ISO 8601.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    plan: Plan
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    last_hop: str | None = None
    started: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    interrupted: bool = False
    _prober: Prober = field(default=Prober("ping"))
    _loads: dict[Direction, Callable[[], Program]] = field(default_factory=dict)
    _begun_s: float = field(default_factory=time.monotonic)

    def document(self) -> dict[str, Any]:
        """Return what its file has."""
        return document(
            self.plan.host,
            self.started,
            self.phases,
            last_hop=self.last_hop,
            interrupted=self.interrupted,
            notes=self.notes,
        )

    def find_tools(self) -> None:
        """Find what answers: the router of the last hop, and the servers of irtt and iperf3.

        Raises
        ------
        UnmeasuredError
            If neither irtt nor ping is here.
        """
        plan, checks = self.plan, dict[str, Program]()
        if tools.installed("irtt"):
            checks["irtt"] = tools.irtt_check(plan.host)
        if tools.installed("ping"):
            checks["ping"] = tools.hop_check(plan.host, plan.hop)
        if not checks:
            raise UnmeasuredError(f"{tools.missing('irtt')}; {tools.missing('ping')}")
        if plan.load_s and tools.installed("iperf3"):
            checks["iperf3"] = tools.iperf3_check(plan.host)
        self.interrupted = run(list(checks.values()))
        if "ping" in checks:
            self.last_hop = tools.router(checks["ping"])
            if self.last_hop is None:
                self.notes.append(
                    f"No router answered at hop {plan.hop}, so nothing tells the last hop from the rest."
                )
        else:
            self.notes.append(f"The last hop is not told from the rest: {tools.missing('ping')}.")
        self._prober = _prober(checks.get("irtt"))
        if self._prober.why is not None:
            self.notes.append(
                f"Round trips by ping, which do not show the direction of a loss: {self._prober.why}."
            )
        if plan.load_s:
            self._find_loads(checks.get("iperf3"))

    def _find_loads(self, check: Program | None) -> None:
        """Find what can fill each direction."""
        plan = self.plan
        if check is not None and tools.iperf3_answers(check):
            for direction in (Direction.DOWN, Direction.UP):
                self._loads[direction] = _test(plan, direction)
            return
        silent = f"no iperf3 server answers (`iperf3 -s` at {plan.host})"
        why = tools.missing("iperf3") if check is None else silent
        if plan.url is None:
            self.notes.append(f"No load, so no rates and no queues: {why}, and no --url names a file.")
        elif not tools.installed("curl"):
            self.notes.append(f"No load, so no rates and no queues: {why}; {tools.missing('curl')}.")
        else:
            url = plan.url
            self._loads[Direction.DOWN] = lambda: tools.download(url, plan.load_s, plan.most_bytes)
            self.notes.append(
                "The rate down is that of a download, whose server may be slower than the link, and the rate "
                f"up is unknown: {why}."
            )

    @property
    def loads(self) -> tuple[Direction, ...]:
        """The directions that can be filled."""
        return tuple(self._loads)

    def quiet(self) -> None:
        """Measure without load.

        Raises
        ------
        UnmeasuredError
            If there are no probes.
        """
        begun_s = time.monotonic() - self._begun_s
        far, hop, _ = self._probe(self.plan.idle_s, None)
        try:
            self._add(begun_s, None, far, hop, None)
        except ToolError as error:
            if not self.phases and not self.interrupted:
                raise UnmeasuredError(f"{self.plan.host}: {error}") from None
            self.notes.append(f"A round without probes: {error}.")

    def load(self, direction: Direction) -> None:
        """Measure while a test fills a direction."""
        begun_s = time.monotonic() - self._begun_s
        far, hop, test = self._probe(self.plan.load_s, self._loads[direction]())
        try:
            self._add(begun_s, direction, far, hop, test)
        except ToolError as error:
            self.notes.append(f"The load {direction} was not measured: {error}.")

    def _probe(self, lasts_s: float, test: Program | None) -> tuple[Program, Program | None, Program | None]:
        """Run the probes of a phase, and its load."""
        far = self._prober.probes(self.plan.host, lasts_s)
        hop = None if self.last_hop is None else tools.ping_probes(self.last_hop, lasts_s)
        self.interrupted |= run([each for each in (far, hop, test) if each is not None])
        return far, hop, test

    def _add(
        self, begun_s: float, load: Direction | None, far: Program, hop: Program | None, test: Program | None
    ) -> None:
        """Add a phase.

        Raises
        ------
        ToolError
            If the far end did not answer, or the load did not run.
        """
        rates = None
        commands = [shlex.join(each.command) for each in (far, hop, test) if each is not None]
        if test is not None and load is not None:
            rates = tools.downloaded(test) if test.most_bytes is not None else tools.carried(test, load)
            if not rates.saturated:
                self.notes.append(
                    f"The load {load} reached the pace that --bytes allows: the link carries at least this; "
                    "a larger --bytes shows how much."
                )
        probes = tools.probed(far)
        near: Measurement | None = None
        if hop is not None:
            try:
                near = tools.probed(hop)
            except ToolError as error:
                self.notes.append(f"The last hop was not probed, {self.last_hop} does not reply: {error}.")
                self.last_hop = None
        self.phases.append(Phase(begun_s, load, probes, near, rates, tuple(commands)))


def measure(plan: Plan, tell: Callable[[str], None] = lambda _: None) -> Session:
    """Measure a link: probes without load, then under load down and up.

    Parameters
    ----------
    plan : Plan
        What to measure.
    tell : callable
        Is told what begins.

    Returns
    -------
    Session
        What was measured; after Ctrl-C, what there is.

    Raises
    ------
    UnmeasuredError
        If there are no probes.
    KeyboardInterrupt
        If Ctrl-C was pressed before there are any.
    """
    session = Session(plan)
    tell("finding servers")
    session.find_tools()
    if not session.interrupted:
        tell("probing without load")
        session.quiet()
    for direction in session.loads:
        if not session.interrupted:
            tell(f"probing under load {direction}")
            session.load(direction)
    if not session.phases:
        raise KeyboardInterrupt
    return session


def _prober(check: Program | None) -> Prober:
    """Return what probes the far end, by the check of irtt."""
    if check is None:
        return Prober("ping", tools.missing("irtt"))
    try:
        tools.probed(check)
    except ToolError:
        if not tools.installed("ping"):
            return Prober("irtt")
        return Prober("ping", "no irtt server answers (`irtt server -i 0` there)")
    return Prober("irtt")


def _test(plan: Plan, direction: Direction) -> Callable[[], Program]:
    return lambda: tools.load(plan.host, direction, plan.load_s, plan.most_bytes // 2)
