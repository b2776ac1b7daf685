"""Reader of irtt 0.9 JSON: `irtt client -o FILE.json.gz`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from lasthop.core.formats import plural
from lasthop.measurement.format import JsonReader, Options
from lasthop.measurement.model import Delays, Direction, Measurement
from lasthop.measurement.source import (
    LONGEST_S,
    Source,
    at,
    floats,
    mapping,
    number,
    ordered,
    probes,
    sequence,
    whole,
)

_COMMAND = "irtt client -i 20ms -d 5m -o irtt.json.gz SERVER"


def _fits(document: Any) -> bool:
    """Return whether a JSON document is irtt's."""
    return "round_trips" in mapping(document)


def _parse(source: Source, document: Any, options: Options) -> Measurement:
    """Read the JSON document of irtt.

    Raises
    ------
    MeasurementError
        If there are no packets, or no sending times.
    """
    packets = [mapping(packet) for packet in sequence(document["round_trips"])]
    if not packets:
        raise source.error(f"no round trips: irtt sent nothing; expected the output of `{_COMMAND}`")
    notes: list[str] = []
    lost = [_fate(source, packet, place) for place, packet in enumerate(packets)]
    sent_s = _times(source, packets)
    size = _size(document, notes)
    gone = np.array([fate != "false" for fate in lost])
    fates = [probes(Direction.ROUND_TRIP, sent_s, gone, size)]

    unknown = np.array([fate == "true" for fate in lost])
    # The server reports the packets that it received in later replies, so none is reported after the last
    # reply.
    answered = np.flatnonzero(~gone)
    known = int(answered[-1]) + 1 if len(answered) else 0
    if not known:
        notes.append("No replies: the direction of the losses is unknown.")
    elif unknown[:known].any():
        counts = [sum(fate == kind for fate in lost) for kind in ("true_up", "true_down")]
        notes.append(
            f"The direction of {plural(int(unknown[:known].sum()), 'lost packet')} is unknown (the server "
            "reports the last 64 packets, and only with --stats=window or both), so only the round trip is "
            "read: leaving these packets out would hide the longest bursts. Of the other lost packets, "
            f"{counts[0]} were lost on the uplink and {counts[1]} on the downlink."
        )
    else:
        if known < len(lost):
            notes.append(
                f"The {plural(len(lost) - known, 'packet')} after the last reply were lost in an unknown "
                "direction and appear in the round trip only."
            )
        up = np.array([fate == "true_up" for fate in lost[:known]])
        down = np.array([fate == "true_down" for fate in lost[:known]])
        fates.append(probes(Direction.UP, sent_s[:known], up, size))
        # A packet lost on the uplink was never sent on the downlink.
        met = ~up
        fates.append(probes(Direction.DOWN, sent_s[:known][met], down[met], size))
        notes.append(
            "Downlink packets have the sending times of their requests, earlier by the uplink delay."
        )
    delays = _delays(packets, sent_s, gone, notes)
    duplicates = whole(at(document, "stats", "duplicates"))
    if duplicates:
        notes.append(f"{plural(duplicates, 'duplicate')} of replies not counted.")
    return Measurement(
        source.name,
        "irtt",
        float(sent_s.max()),
        probes=tuple(fates),
        delays=delays,
        notes=tuple(notes),
        host=_host(document),
    )


def _host(document: Any) -> str | None:
    """Return the address of the server, which stands before the port."""
    address = at(document, "config", "remote_address")
    return address.rpartition(":")[0].strip("[]") or None if isinstance(address, str) else None


def _fate(source: Source, packet: Any, place: int) -> str:
    """Return the field `lost` of a round trip; older versions wrote a boolean."""
    value = packet.get("lost")
    if isinstance(value, bool):
        value = str(value).lower()
    if value not in ("false", "true", "true_up", "true_down"):
        raise source.error(f"`lost` of round trip {place} should be false, true, true_up or true_down")
    return str(value)


def _times(source: Source, packets: list[Any]) -> Any:
    """Return the sending time of each packet, from the first packet on."""
    for clock in ("monotonic", "wall"):
        stamps = [whole(at(packet, "timestamps", "client", "send", clock)) for packet in packets]
        if all(stamp is not None for stamp in stamps):
            # Integers, since a float64 does not resolve nanoseconds of a wall clock.
            exact = [stamp for stamp in stamps if stamp is not None]
            sent_s = floats((stamp - min(exact)) / 1e9 for stamp in exact)
            if sent_s.max() > LONGEST_S:
                raise source.error("the sending times are years apart")
            return sent_s
    raise source.error("round trips without `timestamps.client.send`; irtt 0.9 writes them for each packet")


def _size(document: Any, notes: list[str]) -> int | None:
    """Return the size of the IP packets."""
    sent, count = whole(at(document, "stats", "bytes_sent")), whole(at(document, "stats", "packets_sent"))
    payload = sent // count if sent and count and sent > 0 and count > 0 else None
    if payload is None:
        payload = whole(at(document, "config", "params", "length"))
    if payload is None or not 0 < payload < 65536:
        notes.append("The packet size is unknown.")
        return None
    version = at(document, "config", "ip_version")
    return payload + (48 if version == "IPv6" else 28)


def _delays(packets: list[Any], sent_s: Any, gone: Any, notes: list[str]) -> tuple[Delays, ...]:
    """Return round-trip times, and one-way delays unless they prove a clock offset."""
    found = []
    ways = (("rtt", Direction.ROUND_TRIP), ("send", Direction.UP), ("receive", Direction.DOWN))
    for key, direction in ways:
        pairs = [
            (sent, delay / 1e9)
            for sent, packet, lost in zip(sent_s, packets, gone, strict=True)
            if not lost and (delay := number(at(packet, "delay", key))) is not None and abs(delay) < 1e18
        ]
        if pairs:
            time_s, delay_s = ordered(floats(sent for sent, _ in pairs), floats(delay for _, delay in pairs))
            found.append(Delays(direction, time_s, delay_s))
    round_trip = tuple(delays for delays in found if delays.direction is Direction.ROUND_TRIP)
    if any((delays.delay_s <= 0).any() for delays in round_trip):
        notes.append("No delays are read: some round-trip times are not positive.")
        return ()
    one_way = tuple(delays for delays in found if delays.direction is not Direction.ROUND_TRIP)
    if len(one_way) != 2:
        return round_trip
    if any((delays.delay_s <= 0).any() for delays in one_way):
        notes.append("One-way delays are left out: some are not positive, so the clocks disagree.")
        return round_trip
    up, down = (delays.delay_s.min() * 1e3 for delays in one_way)
    notes.append(
        "One-way delays depend on both clocks. Since no delay is negative, the downlink delays are at most "
        f"{up:.1f} ms too small or {down:.1f} ms too large."
    )
    return round_trip + one_way


READER = JsonReader(
    name="irtt",
    title="irtt JSON",
    command=_COMMAND,
    fits=_fits,
    parse=_parse,
    printed=("irtt", re.compile(r"^(?:\[.{1,100}\] )?seq=\d+ (?:rtt=\S+ rd=|LOST)", re.MULTILINE)),
)
