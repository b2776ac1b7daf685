"""Reader of mtr: its report, JSON and CSV, which have totals of each hop."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from lasthop.measurement.format import Options, Reader
from lasthop.measurement.model import Counts, Delays, Direction, Measurement
from lasthop.measurement.source import Source, at, floats, mapping, number, parsed, sequence

_HOP = re.compile(r"^ *(?P<hop>\d{1,3})\.\|-- (?P<rest>\S.{0,400})$", re.MULTILINE)
"""A line of `mtr --report`: host, in several words with `-b` and `-z`, and columns."""

_HEADER = re.compile(r"^HOST: \S{1,255} +(?P<columns>.{0,40}\bSnt\b.{0,200})$", re.MULTILINE)
"""The names of the columns, which `-o` chooses."""

_COLUMNS = ("Loss%", "Snt", "Last", "Avg", "Best", "Wrst", "StDev")

_USED = ("Loss%", "Snt", "Avg")

_CSV = "Mtr_Version,"

_MOST_SENT = 10**9

_LIMITED = 0.1
"""The share of losses above which the last hop may be a router that limits its answers."""


@dataclass(frozen=True, slots=True)
class _Hop:
    """The totals of a hop; times in milliseconds."""

    host: str
    loss_percent: float | None
    sent: float | None
    mean_ms: float | None


class _Reader(Reader):
    """The reader of all outputs of mtr that have totals."""

    def recognises(self, source: Source) -> bool:
        """Return whether a file has hops of mtr."""
        if source.is_json:
            return bool(sequence(at(source.documents[0], "report", "hubs")))
        head = source.text[:4000]
        return head.startswith(_CSV) or _HOP.search(head) is not None

    def read(self, source: Source, options: Options) -> Measurement:
        """Read the totals of the far end."""
        hops = _hops(source)
        if not hops:
            raise source.error("no hops of mtr; expected the output of `mtr --report -c 300 HOST`")
        far = hops[-1]
        if far.loss_percent is None or far.sent is None:
            raise source.error(f"no Loss% and Snt of the last hop, {far.host}")
        sent, lost = round(far.sent), round(far.sent * far.loss_percent / 100)
        if not 0 < sent <= _MOST_SENT or not 0 <= far.loss_percent <= 100:
            raise source.error(f"found {far.loss_percent:g} % lost of {far.sent:g} packets at {far.host}")
        if far.host == "???" or lost == sent:
            raise source.error(
                f"the far end ({far.host}) did not answer, and losses at the hops before it are of their "
                "answers only; run mtr to a host that answers `ping`"
            )
        lasts_s = sent * (options.every_s or 1.0)
        counts = Counts(
            Direction.ROUND_TRIP, floats([0.0]), floats([lasts_s]), np.array([sent]), np.array([lost])
        )
        notes = [
            f"The totals of the far end ({far.host}, hop {len(hops)}) are read, which tell no bursts. "
            "Losses at hops before it that it does not have are of answers that routers limit."
        ]
        if options.every_s is None:
            notes.append(
                "Assumed: a packet per second, the default of mtr; `--every` states another interval."
            )
        doubts = []
        if lost > _LIMITED * sent:
            doubts.append(
                f"round trip, {lost / sent:.0%} of the packets to {far.host} were lost: if mtr was not run "
                "to that host, they are answers that a router limits"
            )
        delays: tuple[Delays, ...] = ()
        if far.mean_ms is not None and far.mean_ms > 0:
            delays = (Delays(Direction.ROUND_TRIP, floats([0.0]), floats([far.mean_ms / 1e3])),)
            notes.append("The round-trip time is the mean of all packets.")
        return Measurement(
            source.name,
            self.name,
            lasts_s,
            counts=(counts,),
            delays=delays,
            notes=tuple(notes),
            doubts=tuple(doubts),
        )


def _hops(source: Source) -> list[_Hop]:
    """Return the hops, in their order; those of the last report if there are several of one host."""
    if source.is_json:
        hubs = [mapping(hub) for hub in sequence(at(source.json(), "report", "hubs"))]
        return [
            _Hop(
                str(hub.get("host"))[:100],
                *(
                    parsed(value) if isinstance(value := hub.get(key), str) else number(value)
                    for key in _USED
                ),
            )
            for hub in hubs
        ]
    if source.text.startswith(_CSV):
        names, *rows = [line.split(",") for line in source.text.splitlines()[:1000]]
        try:
            places = [names.index(name) for name in ("Ip", *_USED)]
        except ValueError:
            raise source.error("the CSV of mtr without the columns Ip, Loss%, Snt and Avg", 1) from None
        found = [[row[place] for place in places] for row in rows if len(row) > max(places)]
        return [_Hop(row[0][:100], *(parsed(cell) for cell in row[1:])) for row in found]
    lines = list(_HOP.finditer(source.text))
    starts = [place for place, line in enumerate(lines) if int(line["hop"]) == 1]
    if len(starts) > 1:
        raise source.error(f"{len(starts)} reports of mtr; put each into its own file")
    header = _HEADER.search(source.text)
    columns = header["columns"].split() if header is not None else list(_COLUMNS)
    hops = []
    for line in lines:
        words = line["rest"].split()
        values: dict[str, str] = dict(zip(columns, words[-len(columns) :], strict=False))
        used = [parsed(values.get(name, "").rstrip("%")) for name in _USED]
        # A line that was cut has other numbers in its columns.
        if None in used[:2] or (used[1] or 0) % 1:
            raise source.error(f"hop {line['hop']} of mtr lacks columns: expected {' '.join(columns)}")
        hops.append(_Hop(" ".join(words[: -len(columns)])[:100], *used))
    return hops


READER = _Reader(name="mtr", title="mtr", command="mtr --report -c 300 HOST > mtr.txt", takes_every=True)
