"""Packets that a host answered or not, in the order of sending, and the measurement made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import Options
from lasthop.measurement.model import Counters, Counts, Delays, Direction, Floats, Measurement
from lasthop.measurement.source import LONGEST_S, Source, floats, ordered, probes

_LIMITS = "Ping does not show the direction of a loss, and routers and hosts may rate-limit their replies."

MOST_PROBES = 5_000_000
"""Limit of the packets of a file."""


@dataclass(frozen=True, slots=True)
class Echoes:
    """The packets of one run of a program.

    Attributes
    ----------
    sent_s : array of float64
        When each was sent.
    rtt_s : array of float64
        Its round-trip time; NaN without a reply.
    """

    sent_s: Floats
    rtt_s: Floats


def interpolated(numbers: Counters, known: Counters, known_s: Floats) -> Floats:
    """Return the sending times of packets by those of some, at the mean interval before and behind."""
    step_s = float(known_s[-1] - known_s[0]) / float(known[-1] - known[0])
    before_s = np.minimum(numbers - known[0], 0) * step_s
    behind_s = np.maximum(numbers - known[-1], 0) * step_s
    times: Floats = np.interp(numbers, known, known_s) + before_s + behind_s
    return times


def consecutive(runs: Sequence[Echoes]) -> list[Echoes]:
    """Return runs without times of a clock, each beginning one interval after the one before."""
    found, begin_s = [], 0.0
    for run in runs:
        found.append(Echoes(run.sent_s + begin_s, run.rtt_s))
        step_s = float(np.median(np.diff(run.sent_s))) if len(run.sent_s) > 1 else 1.0
        begin_s += float(run.sent_s[-1]) + step_s
    return found


def with_silent(source: Source, runs: Sequence[Echoes | int], *, timed: bool) -> list[Echoes]:
    """Return all runs, those without any reply in the gaps between the others.

    Parameters
    ----------
    source : Source
        The file.
    runs : sequence of Echoes or int
        In order, the packets of each run, or their number if none was answered.
    timed : bool
        Whether the times are of a clock; if not, runs follow each other.

    Raises
    ------
    MeasurementError
        If there are too many packets.
    """
    if sum(run for run in runs if isinstance(run, int)) > MOST_PROBES:
        raise source.error(f"more than {MOST_PROBES} packets")
    known = [at for at, run in enumerate(runs) if isinstance(run, Echoes)]
    answered = [run for run in runs if isinstance(run, Echoes)]
    steps_s = [float(np.median(np.diff(run.sent_s))) for run in answered if len(run.sent_s) > 1]
    step_s = float(np.median(steps_s)) if steps_s else 1.0
    found = [
        run
        if isinstance(run, Echoes)
        else Echoes(np.arange(run, dtype=np.float64) * step_s, np.full(run, np.nan))
        for run in runs
    ]
    if not timed:
        return consecutive(found)
    lasts_s = [float(np.ptp(run.sent_s)) + step_s for run in found]
    pauses_s = [
        max(float(found[after].sent_s[0] - found[at].sent_s[0]) - sum(lasts_s[at:after]), 0.0) / (after - at)
        for at, after in itertools.pairwise(known)
    ]
    usual_s = float(np.median(pauses_s)) if pauses_s else 0.0
    first = known[0]
    begin_s = float(answered[0].sent_s[0]) - sum(lasts_s[:first]) - first * usual_s
    behind_s = dict(zip(known, [*pauses_s, usual_s], strict=True))
    pause_s = usual_s
    for at, run in enumerate(found):
        if at in behind_s:
            begin_s, pause_s = float(run.sent_s[0]), behind_s[at]
        else:
            found[at] = Echoes(run.sent_s + begin_s, run.rtt_s)
        begin_s += lasts_s[at] + pause_s
    return found


def silent(packets: Sequence[int], *, timed: bool) -> Iterator[str]:
    """Yield a note about runs without any reply, of these numbers of packets."""
    if packets:
        place = ", placed evenly in the gaps between the others" if timed else ""
        yield (
            f"{plural(len(packets), 'run')} without any reply, with {plural(sum(packets), 'lost packet')}"
            f"{place}."
        )


def measurement(
    source: Source, name: str, runs: Sequence[Echoes], size: int | None, notes: list[str], *, command: str
) -> Measurement:
    """Return the measurement of one run or several.

    Parameters
    ----------
    source : Source
        The file.
    name : str
        Its format.
    runs : sequence of Echoes
        The packets.
    size : int or None
        The size of the IP packets.
    notes : list of str
        What is known about the file.
    command : str
        A command that measures better, for a note.

    Raises
    ------
    MeasurementError
        If the times are years apart.
    """
    start = min(float(run.sent_s.min()) for run in runs)
    if max(float(run.sent_s.max()) for run in runs) - start > LONGEST_S:
        raise source.error("the times are years apart")
    sent_s = np.concatenate([run.sent_s for run in runs]) - start
    rtt = np.concatenate([run.rtt_s for run in runs])
    sent_s, rtt = ordered(sent_s, rtt)
    lost = np.isnan(rtt)
    interval = float(np.median(np.diff(sent_s))) if len(sent_s) > 1 else 1.0
    if interval > 0.1:
        notes.append(f"One packet every {interval:.2g} s misses shorter fades; use `{command}`.")
    notes.append(_LIMITS)
    return Measurement(
        source.name,
        name,
        float(sent_s.max()),
        probes=(probes(Direction.ROUND_TRIP, sent_s, lost, size),),
        delays=(Delays(Direction.ROUND_TRIP, sent_s[~lost], rtt[~lost]),),
        notes=tuple(notes),
    )


def counts(
    source: Source, name: str, totals: Sequence[tuple[int, int, float | None]], options: Options
) -> Measurement:
    """Return the measurement of runs of which only totals are known.

    Parameters
    ----------
    source : Source
        The file.
    name : str
        Its format.
    totals : sequence of tuple
        For each run the packets sent, those answered, and the time that it took, or None.
    options : Options
        What the user says about the file.
    """
    notes = [f"The output has totals and no packets, as that of `{name} -q`: bursts do not show."]
    if any(lasted_s is None for _, _, lasted_s in totals) and options.every_s is None:
        notes.append(
            "No duration: packets assumed to be sent once per second, the default. --every (`every_s` in "
            "Python) states another interval."
        )
    if len(totals) > 1:
        notes.append(f"{len(totals)} runs, taken as one after the other, since their times are unknown.")
    step_s = options.every_s or 1.0
    lasts_s = floats(max(lasted_s or sent * step_s, 1e-3) for sent, _, lasted_s in totals)
    if not lasts_s.sum() <= LONGEST_S:
        raise source.error("the runs last for years")
    sent = np.array([each[0] for each in totals], dtype=np.int64)
    lost = sent - np.array([each[1] for each in totals], dtype=np.int64)
    begin_s = np.append(0.0, np.cumsum(lasts_s)[:-1])
    return Measurement(
        source.name,
        name,
        float(lasts_s.sum()),
        counts=(Counts(Direction.ROUND_TRIP, begin_s, lasts_s, sent, lost),),
        notes=(*notes, _LIMITS),
    )
