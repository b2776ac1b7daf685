"""Reader of pcap and pcapng captures: losses, round-trip times and rates of TCP; losses of RTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lasthop.core.formats import plural
from lasthop.measurement import rtp, tcp
from lasthop.measurement.format import BinaryReader, Options
from lasthop.measurement.model import Delays, Direction, Floats, Measurement, Probes, Rates
from lasthop.measurement.packets import Packets, common_size
from lasthop.measurement.source import (
    CAPTURES,
    LONGEST_S,
    SWAP,
    Host,
    Place,
    Source,
    binned,
    ordered,
    probes,
    way,
)

_FEWEST = 10
"""Minimum data packets of a connection in a direction."""

_LONGEST_RATES_S = 86_400.0
"""Maximum duration of a rate series."""

_FEW_REPEATED = 4
"""Spurious retransmissions that a connection may have anyway."""

_MISSED = 0.01
"""A capture counts as complete if it missed a smaller share of the packets."""

_SHARE_AT_END = 0.15
"""A capture counts as taken at a host if at most this share of the round-trip time is between them."""

_IDLE = 0.05
"""A sender counts as saturated if it was idle for a smaller share of the time."""

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class _Connection:
    """The rows of a connection, and the round-trip times between the capture and both ends."""

    client: Rows
    server: Rows
    # From the capture to each end and back; NaN if unknown.
    to_client_s: float = float("nan")
    to_server_s: float = float("nan")
    # Whether a handshake identifies the client.
    certain: bool = True


@dataclass(slots=True)
class _Found:
    """The results of all connections for one direction."""

    times: list[Floats] = field(default_factory=list)
    lost: list[Any] = field(default_factory=list)
    sizes: list[Any] = field(default_factory=list)
    carried_s: list[Floats] = field(default_factory=list)
    carried_bits: list[Floats] = field(default_factory=list)
    saturated: bool = False
    streams: int = 0
    unknown: int = 0
    spurious: int = 0
    reordered: int = 0
    windows: int = 0
    missed: int = 0
    joined: int = 0
    plain: int = 0
    upstream: bool = False
    numbered: int = 0
    shared: int = 0
    probes: int = 0
    lacking: int = 0
    present: int = 0
    resent: int = 0
    # Retransmissions of captured packets, in connections without acknowledgements.
    repeated: int = 0
    # The segment sizes of super-packets in connections without a handshake, and whether they are certain.
    deduced: dict[str, bool] = field(default_factory=dict)

    def add(self, outcomes: tcp.Outcomes, stream: tcp.Stream, upstream: bool) -> None:
        """Add a connection, with losses upstream of the capture or downstream of it."""
        if outcomes.lacking:
            self.lacking += outcomes.lacking
            self.present += len(stream.time_s)
            return
        self.times.append(outcomes.time_s)
        self.lost.append(outcomes.lost)
        self.carried_s.append(outcomes.carried_s)
        self.carried_bits.append(outcomes.carried_bits)
        lasts_s = float(stream.time_s[-1] - stream.time_s[0])
        self.saturated |= len(outcomes.time_s) >= 100 and outcomes.idle_s < _IDLE * lasts_s
        length = stream.end - stream.seq
        sizes = stream.headers + np.minimum(length, stream.mss)
        self.sizes.append(sizes)
        self.streams += 1
        self.unknown += outcomes.unknown
        self.spurious += outcomes.spurious
        self.reordered += outcomes.reordered
        self.windows += outcomes.windows
        self.missed += outcomes.missed
        self.joined += stream.joined
        if stream.segments.evidence and (stream.joined or not stream.segments.certain):
            self.deduced[f"{stream.mss:,} B, {stream.segments.evidence}"] = stream.segments.certain
        self.plain += not stream.sack
        self.upstream = upstream
        self.numbered += outcomes.numbered
        self.shared += outcomes.shared
        self.probes += stream.probes
        self.resent += outcomes.resent


def _parse(source: Source, options: Options) -> Measurement:
    """Read a capture.

    Raises
    ------
    MeasurementError
        If it has no TCP connection or RTP stream with enough packets.
    """
    user, captured = options.user, options.captured
    packets = Packets.read(source)
    if packets.time_s[-1] > LONGEST_S:
        raise source.error("the packet times are years apart")
    if len(packets.time_s) > 1 and packets.time_s[-1] == 0:
        raise source.error("all packets have the same time: what wrote the capture kept no times")
    notes = packets.notes
    coarse = bool((packets.time_s % 1.0 == 0).all())
    if coarse:
        notes.append("The times are whole seconds: no round-trip times and no rates are read.")
    packets = _without_duplicates(packets)
    connections = _without_translated(packets, list(_connections(packets, notes)), notes)
    for connection in connections:
        _locate(packets, connection)
    place = captured or _place(packets, connections, notes)
    if captured is not None:
        notes.append(f"The capture was taken {_where(captured)}, as stated.")
    found = {direction: _Found() for direction in Direction}
    round_trips: list[tuple[Floats, Floats]] = []
    if place is not None:
        _read_connections(packets, connections, user, place, found, round_trips)
    tcp_streams = sum(one.streams for one in found.values())
    media = list(rtp.streams(packets, user, place, notes))
    lacking = [
        f"{direction.capitalize()}: the capture misses most of its packets ({one.lacking:,} of "
        f"{one.lacking + one.present:,}), so no losses are read. A display filter or sampling leaves "
        "such captures; save all packets."
        for direction, one in found.items()
        if one.lacking
    ] + [
        f"{direction.capitalize()}: {one.repeated:,} retransmissions of packets that the capture has, and no "
        "acknowledgements: it was taken before the losses, which it does not show. Capture both directions."
        for direction, one in found.items()
        if one.repeated
    ]
    notes += lacking
    if not tcp_streams and not media:
        raise source.error(lacking[0].rstrip(".") if lacking else _nothing_readable(packets))
    if tcp_streams:
        _explain(packets, found, connections, user, place)
    losses: list[Probes] = []
    rates: list[Rates] = []
    until_s = float(packets.time_s[-1])
    for direction, one in found.items():
        if not one.streams:
            continue
        sizes = np.concatenate(one.sizes)
        size = common_size(sizes)
        losses.append(probes(direction, np.concatenate(one.times), np.concatenate(one.lost), size))
        carried_s, bits = np.concatenate(one.carried_s), np.concatenate(one.carried_bits)
        if coarse or not len(carried_s):
            continue
        span_s = (float(carried_s.min()), float(carried_s.max()))
        if span_s[1] - span_s[0] > _LONGEST_RATES_S:
            notes.append(f"{direction.capitalize()}: no rates, since the capture spans more than a day.")
        else:
            rates.append(binned(source, direction, carried_s, bits, span_s, one.saturated))
    losses += media
    delays = []
    if round_trips and not coarse:
        time_s = np.concatenate([times for times, _ in round_trips])
        rtt_s = np.concatenate([values for _, values in round_trips])
        delays.append(Delays(Direction.ROUND_TRIP, *ordered(time_s, rtt_s)))
    return Measurement(
        source.name,
        "pcap",
        until_s,
        probes=tuple(losses),
        delays=tuple(delays),
        rates=tuple(rates),
        notes=tuple(notes),
        doubts=tuple(_contradictions(found, packets.without_options)),
    )


def _contradictions(found: dict[Direction, _Found], without_options: float) -> Iterator[str]:
    """Yield contradictions of losses and retransmissions: what is lost is sent again, and nothing else."""
    for direction, one in found.items():
        lost = sum(int(flags.sum()) for flags in one.lost)
        if not all(one.deduced.values()):
            yield (
                f"{direction}, packets are larger than those of Ethernet, and neither a handshake nor "
                "identifications tell whether each is one packet of the link: packets and losses may be "
                "several times as large. Begin the capture before the transfer, or turn offloads off with "
                "`ethtool -K wlan0 gro off tso off gso off`"
            )
        if lost and not one.upstream and without_options > _MOSTLY:
            yield (
                f"{direction}, {plural(lost, 'retransmission')} count as lost, but the capture cut off the "
                "TCP options that tell spurious ones. Store all headers, with `tcpdump -s 128`"
            )
        if one.missed and one.missed >= max(lost, _MISSED * sum(len(flags) for flags in one.lost)):
            yield (
                f"{direction}, the capture missed more packets than were lost ({one.missed:,} and {lost:,}), "
                "so the losses are unreliable. Capture only headers, with `tcpdump -s 128 -B 65536`"
            )
        agree = lost / _APART <= one.resent <= lost * _APART
        if max(lost, one.resent) >= _FEWEST_COMPARED and not agree:
            yield (
                f"{direction}, {plural(lost, 'packet')} lost, but {one.resent:,} retransmitted in the "
                "capture: the losses are probably read wrongly"
            )
        elif one.upstream and one.spurious >= _FEWEST_COMPARED and one.spurious > lost * _APART:
            yield (
                f"{direction}, {plural(lost, 'packet')} lost, but {one.spurious:,} retransmissions of "
                "packets that the capture has: it was taken before the losses, or at both ends, or the "
                "timeouts of the sender were too short"
            )


_MOSTLY = 0.5
"""The share of packets without their options from which nothing is told by options."""

_MOST_STATED = 3
"""The segment sizes that a note states."""

_FEWEST_COMPARED = 30
"""Losses, or retransmissions, by which they are compared."""

_APART = 4
"""Losses and retransmissions contradict each other if they differ by this factor."""


def _without_duplicates(packets: Packets) -> Packets:
    """Drop duplicates of packets, as from a mirror port.

    A retransmission is not a duplicate: its identification or its timestamps differ, or it comes later, by a
    round-trip time at least.
    """
    rows = np.flatnonzero((packets.payload > 0) | ((packets.flags & 2) != 0))
    columns = (packets.protocol, packets.seq, packets.ack, packets.flags, packets.payload)
    key = packets.source[rows] * np.uint64(0x9E3779B97F4A7C15) + packets.target[rows]
    for column in (*columns, packets.timestamp, packets.echo, packets.identification, packets.interface):
        key = (key ^ column[rows].astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(31)
    order = np.argsort(key, kind="stable")
    rows, key = rows[order], key[order]
    later_s = np.diff(packets.time_s[rows])
    # Different datagrams can be identical.
    same = (key[1:] == key[:-1]) & (later_s < _COPY_S) & (packets.protocol[rows[1:]] == 6)
    rows, later_s = rows[1:][same], later_s[same]
    # A SYN is retransmitted after a second.
    certain = (packets.identification[rows] > 0) | ((packets.flags[rows] & 2) != 0)
    certain |= later_s < _COPY_WITHOUT_ID_S
    keep = np.ones(len(packets.time_s), dtype=np.bool_)
    keep[rows[certain]] = False
    if not certain.all():
        keep[rows[later_s < _half_trips_s(packets, keep)[rows]]] = False
    copies = int((~keep).sum())
    if not copies:
        return packets
    packets.notes.append(f"{plural(copies, 'duplicate packet')} left out: the capture has them twice.")
    return packets.select(keep)


_COPY_S = 0.1
_COPY_WITHOUT_ID_S = 5e-4


def _half_trips_s(packets: Packets, keep: npt.NDArray[np.bool_]) -> Floats:
    """Return half the minimum round-trip time of each packet's connection; 0 if unknown."""
    half_s = np.zeros(len(packets.time_s))
    for group in packets.groups(6):
        connection = _ends(packets, group[keep[group]])
        _locate(packets, connection)
        half_s[group] = np.nan_to_num((connection.to_client_s + connection.to_server_s) / 2)
    return half_s


def _connections(packets: Packets, notes: list[str]) -> Iterator[_Connection]:
    """Yield each TCP connection with its rows."""
    several = 0
    for group in packets.groups(6):
        interfaces, counts = np.unique(packets.interface[group], return_counts=True)
        if len(interfaces) > 1:
            main = packets.interface[group] == interfaces[counts.argmax()]
            of_others, of_main = (_content(packets, group[rows], numbered=True) for rows in (~main, main))
            twice = np.isin(of_others, of_main)
            # Copies are of before and after a router or bridge. Otherwise each interface has a part: a
            # direction of a tap, a section of the file, or a path of several.
            if twice.mean() > _COPIES:
                several += int(counts.sum() - counts.max())
                group = group[main]
        opening = group[(packets.flags[group] & 18) == 2]
        cuts = []
        if len(opening) > 1:
            # A SYN with another sequence number reuses the ports; a retransmitted SYN has the same number.
            fresh = np.flatnonzero(np.diff(packets.seq[opening])) + 1
            cuts = np.searchsorted(group, opening[fresh]).tolist()
        for rows in np.split(group, cuts[:_MOST_REUSES]):
            if len(rows) >= _FEWEST:
                yield _ends(packets, rows)
    if several:
        notes.append(f"{plural(several, 'packet')} left out, of connections seen on several interfaces.")


_MOST_REUSES = 10_000

_COPIES = 0.2
"""Interfaces have copies of packets if this share of those of one are on the other."""


def _without_translated(
    packets: Packets, connections: list[_Connection], notes: list[str]
) -> list[_Connection]:
    """Leave out what is there twice: with the addresses before a NAT, and with those behind it."""
    seen: dict[int, tuple[int, float]] = {}
    kept: list[_Connection] = []
    left_out = 0
    for connection in connections:
        rows = np.sort(np.concatenate((connection.client, connection.server)))
        rows = rows[(packets.payload[rows] > 0) | ((packets.flags[rows] & 2) != 0)][:_TRANSLATED]
        # A NAT may change identifications, and IPv6, as of 464XLAT, has none.
        contents = _content(packets, rows, numbered=False)
        keys = dict(zip(contents.tolist(), packets.time_s[rows].tolist(), strict=True))
        twins = [
            seen[key][0]
            for key, time_s in keys.items()
            if key in seen and abs(seen[key][1] - time_s) < _COPY_S
        ]
        # Both copies of a connection have the same sequence numbers, of which there are 2^32.
        if len(keys) >= _FEWEST and len(twins) > 0.8 * len(keys) and len(set(twins)) == 1:
            left_out += len(connection.client) + len(connection.server)
            continue
        seen.update({key: (len(kept), time_s) for key, time_s in keys.items()})
        kept.append(connection)
    if left_out:
        notes.append(
            f"{plural(left_out, 'packet')} left out, which the capture also has with the addresses on the "
            "other side of a NAT."
        )
    return kept


_TRANSLATED = 50
"""Packets by which a connection is recognised behind a NAT."""


def _content(packets: Packets, rows: Rows, *, numbered: bool) -> npt.NDArray[np.uint64]:
    """Return a hash of each packet without addresses and ports; with its identification if `numbered`."""
    key = np.zeros(len(rows), dtype=np.uint64)
    columns: list[Any] = [packets.seq, packets.ack, packets.flags, packets.payload]
    columns += [packets.timestamp, packets.echo]
    for column in (*columns, packets.identification) if numbered else columns:
        key = (key ^ column[rows].astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(31)
    return key


def _ends(packets: Packets, rows: Rows) -> _Connection:
    """Return a connection; the client is the host that sent a SYN, otherwise the one with the larger port."""
    source = packets.source[rows]
    flags = packets.flags[rows] & 18
    certain = True
    if (flags == 2).any():
        client = source[int((flags == 2).argmax())]
    elif (flags == 18).any():
        client = packets.target[rows][int((flags == 18).argmax())]
    else:
        certain = False
        first = rows[0]
        larger = packets.source_port[first] >= packets.target_port[first]
        client = packets.source[first] if larger else packets.target[first]
    from_client = source == client
    return _Connection(rows[from_client], rows[~from_client], certain=certain)


def _locate(packets: Packets, connection: _Connection) -> None:
    """Measure the round-trip times from the capture to both ends, by the handshake or by timestamps."""
    client, server = connection.client, connection.server
    syn = client[(packets.flags[client] & 18) == 2]
    answer = server[(packets.flags[server] & 18) == 18]
    if len(syn) and len(answer):
        # With several SYNs it is unknown which of them the SYN-ACK answers.
        asked = syn[packets.time_s[syn] <= packets.time_s[answer[0]]]
        later = client[
            (packets.time_s[client] >= packets.time_s[answer[-1]]) & ((packets.flags[client] & 2) == 0)
        ]
        if len(asked) == 1 and len(answer) == 1 and len(later):
            connection.to_server_s = float(packets.time_s[answer[0]] - packets.time_s[asked[0]])
            connection.to_client_s = float(packets.time_s[later[0]] - packets.time_s[answer[0]])
            return
    for there, back, attribute in ((client, server, "to_server_s"), (server, client, "to_client_s")):
        _, echo_s = _echoes(packets, there, back)
        if len(echo_s):
            setattr(connection, attribute, float(echo_s.min()))


def _echoes(packets: Packets, there: Rows, back: Rows) -> tuple[Floats, Floats]:
    """Return when timestamps were first seen in one direction, and the time until their echo."""
    stamped, echoed = there[packets.timestamp[there] > 0], back[packets.echo[back] > 0]
    if not len(stamped) or not len(echoed):
        return np.array([]), np.array([])
    stamps, first = np.unique(packets.timestamp[stamped], return_index=True)
    echoes, answer = np.unique(packets.echo[echoed], return_index=True)
    _, left, right = np.intersect1d(stamps, echoes, assume_unique=True, return_indices=True)
    sent_s = packets.time_s[stamped[first[left]]]
    rtt_s = packets.time_s[echoed[answer[right]]] - sent_s
    good = rtt_s >= 0
    return ordered(sent_s[good], rtt_s[good])


def _place(packets: Packets, connections: list[_Connection], notes: list[str]) -> Place | None:
    """Return where the capture was taken, by the largest connection with round-trip times to both ends."""
    located = [
        connection
        for connection in connections
        if connection.to_client_s + connection.to_server_s > 0  # False if either is NaN.
    ]
    if not located:
        if not connections:
            return None
        return _guess(packets, connections, notes)
    best = max(located, key=lambda connection: len(connection.client) + len(connection.server))
    share = best.to_client_s / (best.to_client_s + best.to_server_s)
    place: Place = (
        "client" if share <= _SHARE_AT_END else "server" if share >= 1 - _SHARE_AT_END else "between"
    )
    notes.append(
        f"The capture was taken {_where(place)}: the round-trip time is {best.to_client_s * 1e3:.1f} "
        f"ms to the client and {best.to_server_s * 1e3:.1f} ms to the server."
    )
    return place


def _guess(packets: Packets, connections: list[_Connection], notes: list[str]) -> Place:
    """Return where the capture was taken, by the delay of acknowledgements."""
    busiest = max(connections, key=lambda connection: len(connection.client) + len(connection.server))
    delays = {
        "server": tcp.answer_s(packets, busiest.client, busiest.server),
        "client": tcp.answer_s(packets, busiest.server, busiest.client),
    }
    known = {host: delay_s for host, delay_s in delays.items() if delay_s is not None}
    place: Place = "client"
    if known:
        near = min(known, key=lambda host: known[host])
        # If the delay is known for one host only and not short, the capture is assumed at the other host.
        if len(known) == 1 and known[near] > _NEAR_S:
            near = "server" if near == "client" else "client"
        place = "client" if near == "client" else "server"
    notes.append(
        f"No handshake or timestamps show where the capture was taken; assumed {_where(place)}"
        f"{', by the delay of acknowledgements' if known else ''}. `captured=` overrides."
    )
    return place


_NEAR_S = 2e-3


def _where(place: Place) -> str:
    return "between client and server" if place == "between" else f"at the {place}"


def _read_connections(
    packets: Packets,
    connections: list[_Connection],
    user: Host,
    place: Place,
    found: dict[Direction, _Found],
    round_trips: list[tuple[Floats, Floats]],
) -> None:
    """Add the losses and round-trip times of the connections."""
    arrived: list[tuple[Direction, tcp.Stream, tcp.Clock, Rows, tcp.Outcomes, float, float]] = []
    for connection in connections:
        for from_client, there, back in (
            (True, connection.client, connection.server),
            (False, connection.server, connection.client),
        ):
            stream = tcp.Stream.of(packets, there, back)
            if stream is None or len(stream.time_s) < _FEWEST:
                continue
            direction = way(from_client, user)
            # The last hop is at the user. It is upstream of a capture at the user for downlink packets, and
            # upstream of any other capture for uplink packets.
            upstream = (direction is Direction.DOWN) == (place == user)
            # Downstream losses show only in acknowledgements.
            if upstream or not len(stream.ack):
                echo_at_s, echo_s = _echoes(packets, back, there)
                whole_s = connection.to_client_s + connection.to_server_s
                # A handshake of a second was retransmitted.
                least_s = float(echo_s.min()) if len(echo_s) else whole_s if whole_s < 0.9 else 0.02
                # Half a round trip: reordered packets are less late, retransmissions take a whole round trip.
                window_s = max(least_s / 2, 1e-4)
                longest_s = float(np.percentile(echo_s, 95)) if len(echo_s) else 2 * least_s
                clock = tcp.Clock.of(packets, stream, least_s)
                outcomes = tcp.by_holes(stream, clock, window_s)
                arrived.append((direction, stream, clock, there, outcomes, window_s, longest_s))
                if place != "between" and len(echo_s):
                    round_trips.append((echo_at_s, echo_s))
            else:
                outcomes, at_s, rtt_s = tcp.by_retransmissions(packets, stream)
                found[direction].add(outcomes, stream, upstream)
                if place != "between":
                    round_trips.append((at_s, rtt_s))
    # Packets dropped by the capture also leave gaps in the identifications.
    complete = not any(outcomes.missed for _, _, _, _, outcomes, _, _ in arrived)
    hosts = _hosts(packets) if arrived and complete else {}
    for direction, stream, clock, there, outcomes, window_s, longest_s in arrived:
        counted = None
        if complete:
            of_host = hosts[int(packets.host[there[0]])]
            beside = of_host[slice(*np.searchsorted(of_host, there[[0, -1]]).tolist())]
            beside = np.setdiff1d(beside, there, assume_unique=True)
            counted = tcp.by_identifications(
                packets, stream, clock, there, beside, outcomes, window_s, longest_s
            )
        if not len(stream.ack) and outcomes.spurious > max(_FEW_REPEATED, int(outcomes.lost.sum())):
            found[direction].repeated += outcomes.spurious
            continue
        found[direction].add(counted or outcomes, stream, True)


def _hosts(packets: Packets) -> dict[int, Rows]:
    """Return the rows of the packets that each host sent."""
    order = np.argsort(packets.host, kind="stable")
    cuts = np.flatnonzero(np.diff(packets.host[order])) + 1
    return {int(packets.host[rows[0]]): rows for rows in np.split(order, cuts)}


def _explain(
    packets: Packets,
    found: dict[Direction, _Found],
    connections: list[_Connection],
    user: Host,
    place: Place | None,
) -> None:
    """Add notes: assumptions, methods and warnings."""
    notes = packets.notes
    guessed = sum(not connection.certain for connection in connections)
    if guessed:
        notes.append(
            f"{plural(guessed, 'connection')} without a handshake: the larger port is assumed to be the "
            "client's."
        )
    notes.append(f"The {user} is assumed to be on the user's side{SWAP if user == 'client' else ''}.")
    for direction, one in found.items():
        if not one.streams:
            continue
        if one.upstream and one.numbered:
            notes.append(
                f"{direction.capitalize()}, losses are the gaps in the IP identifications of "
                f"{plural(one.numbered, 'connection')}, which number every packet, including "
                "retransmissions. Those lost before a pause are placed by acknowledgements and timeouts."
            )
        if one.upstream and one.numbered < one.streams:
            notes.append(
                f"{direction.capitalize()}, losses of {plural(one.streams - one.numbered, 'connection')} are "
                "holes in sequence space filled by retransmissions. Lost retransmissions and losses at the "
                "end of a transfer leave no hole."
            )
            if one.shared:
                notes.append(
                    f"{direction.capitalize()}, the IP identifications of "
                    f"{plural(one.shared, 'connection')} count packets of other connections too, so holes "
                    "alone count."
                )
            if one.windows:
                notes.append(
                    f"{direction.capitalize()}, {plural(one.windows, 'packet')} lost before timeouts left no "
                    "hole: as many as acknowledgements had let go."
                )
        if not one.upstream:
            notes.append(
                f"{direction.capitalize()}, losses are retransmissions without the spurious ones, anywhere "
                "downstream of the capture: on the last hop, in queues and beyond."
            )
        for count, noun, text in (
            (one.spurious, "spurious retransmission", ""),
            (one.reordered, "reordered packet", ", not lost"),
            (one.missed, "acknowledged packet", " missing from the capture, not counted as losses"),
            (one.unknown, "packet", " left out, whose fate the capture does not show"),
            (one.probes, "probe", " of a closed window or an idle connection, no data"),
            (
                one.joined,
                "super-packet",
                " of segmentation offload, split into the original packets"
                + "".join(f" of {size}" for size in list(one.deduced)[:_MOST_STATED]),
            ),
        ):
            if count:
                notes.append(f"{direction.capitalize()}: {plural(count, noun)}{text}.")
        if one.plain and not one.upstream and not packets.without_options:
            notes.append(
                f"{direction.capitalize()}: {plural(one.plain, 'connection')} without SACK, whose spurious "
                "retransmissions after a timeout may count as losses."
            )
    if place == "between":
        notes.append(
            "No round-trip times are read: a capture between the hosts shows only parts of the path."
        )


def _nothing_readable(packets: Packets) -> str:
    udp = int((packets.protocol == 17).sum())
    remedy = "`irtt client -i 20ms -d 5m -o irtt.json.gz SERVER` measures without a capture"
    if packets.unreadable and udp <= len(packets.protocol) // 2:
        return f"most packets are {packets.unreadable}. {remedy}"
    if udp > len(packets.protocol) // 2:
        found = f"{plural(udp, 'UDP packet')} "
        of_udp = packets.protocol == 17
        if ((packets.rtp_version[of_udp] < 0) & (packets.payload[of_udp] >= 12)).mean() > _MOSTLY:
            return f"{found}cut off before their numbers; store 128 bytes of each: `tcpdump -s 128`. {remedy}"
        if not packets.unreadable:
            found += "without readable sequence numbers, such as QUIC or a tunnel"
            return f"{found}; capture a transfer over TCP, or RTP, outside of tunnels. {remedy}"
        if packets.unreadable.endswith("QUIC"):
            return f"{found}{packets.unreadable}, with their numbers; capture a transfer over TCP. {remedy}"
        return f"{found}{packets.unreadable}; capture inside the tunnel, on its own interface. {remedy}"
    return f"no TCP connection with {_FEWEST} data packets; capture a longer transfer. {remedy}"


READER = BinaryReader(
    name="pcap",
    title="pcap, pcapng",
    command="tcpdump -i wlan0 -s 128 -B 65536 -w capture.pcap",
    magic=CAPTURES,
    parse=_parse,
)
