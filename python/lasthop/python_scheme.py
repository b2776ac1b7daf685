"""Schemes written in Python, for teaching and sketches.

A scheme is a class derived from `PythonScheme`. It installs agents at the ends of wireless links, and
reactions at the senders and receivers of connections. The hooks are those of schemes in Rust
(CONTRIBUTING.md), and the same scheme gives the same run in both languages, to the bit. In Python it is up to
ten times slower, since the core calls Python for every hook that a class defines.

All times are integers, in nanoseconds of simulated time: `now + 100 * MILLISECOND`. Sequence numbers are
`SeqNum`. Packets and segments are immutable: `packet.replace(...)` returns a changed copy.

A run is a function of scenario, scheme, seed and run number only if the scheme is: it takes its randomness
from `Site.stream`, and keeps its state in its agents and reactions, which are made anew for each run.

Examples
--------
A base station that drops every hundredth packet for the mobile host:

>>> import lasthop
>>> class DropHundredth(lasthop.PythonScheme):
...     name = "drop-hundredth"
...     def install(self, installer):
...         installer.at_base_station(Dropper)
>>> class Dropper(lasthop.Agent):
...     def __init__(self, site):
...         self.packets = self.dropped = 0
...     def receive(self, now, packet, port, out):
...         if port == lasthop.Port.WIRED:
...             self.packets += 1
...             if self.packets % 100 == 0:
...                 self.dropped += 1
...                 out.drop(packet)
...                 return
...         out.send(port.across(), packet)
...     def count(self, tally):
...         tally.total("dropped_packets", self.dropped)
>>> run = lasthop.run("ebsn-example", DropHundredth())
>>> run.metrics["drop-hundredth.dropped_packets"]
2
"""

from __future__ import annotations

import sys
from enum import IntFlag
from typing import ClassVar, Literal

from lasthop._lasthop import (
    Hole,
    Installer,
    Notice,
    Out,
    Packet,
    Port,
    PythonSchemeError,
    Receiver,
    Segment,
    SenderState,
    SeqNum,
    Signal,
    Site,
    Stream,
    Tally,
)

__all__ = [
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "Agent",
    "Flags",
    "Hole",
    "Installer",
    "Notice",
    "Out",
    "Packet",
    "Port",
    "PythonScheme",
    "PythonSchemeError",
    "Reaction",
    "Receiver",
    "ReceiverReaction",
    "Segment",
    "SenderState",
    "SeqNum",
    "Signal",
    "Site",
    "Stream",
    "Tally",
]

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Flags(IntFlag):
    """Control bits of the TCP header. Bits 8 to 11 are reserved; a scheme may give them a meaning."""

    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    ACK = 0x10
    ECE = 0x40
    CWR = 0x80


class PythonScheme:
    """A scheme written in Python.

    Subclasses set `name` and override `install`. Parameters are those of the subclass's constructor, kept as
    attributes.

    Attributes
    ----------
    name : str
        The name in scenarios, tables and plots: lower-case words joined by hyphens, and not that of a
        scheme of Lasthop.
    summary : str
        A one-line description.

    Examples
    --------
    >>> import lasthop
    >>> class SlowStart(lasthop.Reaction):
    ...     def on_notice(self, now, notice, sender):
    ...         sender.shrink_window_to_one_segment()
    >>> class Quench(lasthop.PythonScheme):
    ...     name = "quench"
    ...     summary = "the source re-enters slow start with each message"
    ...     def install(self, installer):
    ...         installer.at_sender(SlowStart)
    >>> scenario = lasthop.load("ebsn-example").with_schemes([Quench()])
    >>> [lasthop.run(scenario, name).metrics["timeouts"] for name in ("ebsn", "quench + ebsn")]
    [0, 0]
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "a scheme written in Python"

    def install(self, installer: Installer) -> None:
        """Install the scheme: its agents, its reactions, and its use of the wireless link.

        Called once for each scenario that gets the scheme.

        Parameters
        ----------
        installer : Installer
            Takes the classes of agents and reactions, or functions that make them.
        """

    def fingerprint(self) -> str | None:
        """Return the identity of this scheme, for the hash of a scenario and the stores of studies.

        Returns
        -------
        str or None
            A hash of the modules of its classes and of its parameters, as `repr` shows them. None if a module
            is not a file, such as a notebook.
        """
        import hashlib
        import inspect

        texts = [repr(sorted(vars(self).items()))]
        for each in type(self).__mro__[:-1]:
            if each.__module__ != __name__:
                try:
                    # The whole module, since it contains the agents and reactions, too.
                    texts += [each.__qualname__, inspect.getsource(sys.modules[each.__module__])]
                except (KeyError, OSError, TypeError):
                    return None
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class Agent:
    """An agent at an end of a wireless link, between the link and the network or host behind it.

    An agent is made for each run and link, with its `Site`. All packets in both directions go through it.
    By default it forwards them, takes no signals and has no timer.

    Parameters
    ----------
    site : Site
        The site of the agent.
    """

    def __init__(self, site: Site) -> None:
        """Ignore the site."""

    def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
        """Take a packet that has arrived. By default, forward it.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        packet : Packet
            The packet.
        port : Port
            The side at which it has arrived.
        out : Out
            Receives the packets that the agent sends and drops.
        """
        out.send(port.across(), packet)

    def wake(self, now: int, out: Out) -> None:
        """Act at the time that `next_wakeup` has returned.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        out : Out
            Receives the packets that the agent sends and drops.
        """

    def next_wakeup(self) -> int | None:
        """Return when `wake` is to be called next. Queried after each callback.

        Returns
        -------
        int or None
            The time in nanoseconds; None without a timer.
        """
        return None

    def on_signal(self, now: int, signal: Signal, out: Out) -> None:
        """Take a signal of the link, or of the mobile host.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        signal : Signal
            The signal.
        out : Out
            Receives the packets that the agent sends and drops.
        """

    def needs_outcome(self, outcome: Literal["attempt-failed", "delivered", "discarded"]) -> bool:
        """Return whether the agent needs the signals about transmissions with this outcome.

        Queried once, before the run, if the class defines `on_signal`.

        Parameters
        ----------
        outcome : str
            The outcome.

        Returns
        -------
        bool
            By default true.
        """
        return True

    def needs_corrupted(self) -> bool:
        """Return whether the agent needs signals about packets that arrive with errors, as `needs_outcome`.

        Returns
        -------
        bool
            By default false.
        """
        return False

    def count(self, tally: Tally) -> None:
        """Report counters: the same names in the same order at every call. They are metrics, ``SCHEME.NAME``.

        Parameters
        ----------
        tally : Tally
            Receives the counters.
        """


class Reaction:
    """A reaction at the sender of a connection.

    A reaction is made for each run and connection, without arguments. A segment or notice is reported
    first; then each hole is judged before its retransmission, and each transmission is reported.
    """

    def on_start(self, now: int, sender: SenderState) -> None:
        """Take the start of the connection; nothing was sent yet.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        sender : SenderState
            The sender.
        """

    def on_notice(self, now: int, notice: Notice, sender: SenderState) -> None:
        """Take a control message about this connection.

        Afterwards the sender retransmits what was requested, and sends what the window permits.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        notice : Notice
            The message.
        sender : SenderState
            The sender.
        """

    def on_reach(self, now: int, reach: Literal["fading", "lost", "back"], sender: SenderState) -> None:
        """Take a change of the radio signal, if the sender is at a mobile host.

        Called only if a scheme requests it with `Installer.watch_signal`.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        reach : str
            The change.
        sender : SenderState
            The sender.
        """

    def takes(self, now: int, segment: Segment, sender: SenderState) -> bool:
        """Return whether a segment is a message of the scheme's own agents in the form of an acknowledgement.

        The sender then sends what the hook requested and what the window permits, but does not process the
        segment, nor do other reactions see it.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        segment : Segment
            The segment.
        sender : SenderState
            The sender.

        Returns
        -------
        bool
            By default false.
        """
        return False

    def on_segment(self, now: int, segment: Segment, sender: SenderState) -> None:
        """Take an acknowledgement that has arrived and is not processed yet.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        segment : Segment
            The acknowledgement.
        sender : SenderState
            The sender, in the state before it.
        """

    def dscp(self, now: int, segment: Segment, again: bool, sender: SenderState) -> int:
        """Return the DSCP of a segment with data, SYN or FIN that is about to be sent.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        segment : Segment
            The segment.
        again : bool
            Whether part of it was sent before.
        sender : SenderState
            The sender, which cannot be changed here.

        Returns
        -------
        int
            The code point, 0 to 63; by default 0.
        """
        return 0

    def on_sent(self, now: int, start: SeqNum, end: SeqNum, again: bool) -> None:
        """Take a transmission of sequence numbers, those of SYN and FIN included.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        start, end : SeqNum
            The first number, and one past the last.
        again : bool
            Whether part of them was sent before.
        """

    def dupthresh(self, set: int, sender: SenderState) -> int:  # noqa: A002
        """Return the duplicate ACK threshold for the segment at the left edge.

        Parameters
        ----------
        set : int
            The threshold of the settings, or of another scheme.
        sender : SenderState
            The sender, which cannot be changed here.

        Returns
        -------
        int
            By default `set`.
        """
        return set

    def extension(self, sender: SenderState) -> int | None:
        """Return by how much the window is extended in a fast recovery that has not reduced it.

        Parameters
        ----------
        sender : SenderState
            The sender, which cannot be changed here.

        Returns
        -------
        int or None
            In bytes; by default None: duplicate ACKs inflate the window.
        """
        return None

    def judge(
        self, now: int, hole: Hole, sender: SenderState
    ) -> Literal["congestion", "corruption"] | float | None:
        """Classify a hole before its retransmission, or a timeout.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        hole : Hole
            The lost data.
        sender : SenderState
            The sender.

        Returns
        -------
        str, float or None
            ``"congestion"`` or None: the window is reduced as usual. ``"corruption"``: it stays. A number
            in (0, 1]: it is reduced to this fraction.
        """
        return None

    def is_corruption(self, seq: SeqNum) -> bool:
        """Return whether lost data are known to be corrupted: a controller's loss rate leaves them out.

        Parameters
        ----------
        seq : SeqNum
            Their first sequence number.

        Returns
        -------
        bool
            By default false.
        """
        return False

    def next_wakeup(self) -> int | None:
        """Return when `on_timer` is to be called next. Queried after each callback.

        Returns
        -------
        int or None
            The time in nanoseconds; None without a timer.
        """
        return None

    def on_timer(self, now: int, sender: SenderState) -> None:
        """Act at the time that `next_wakeup` has returned; the next one must be later.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        sender : SenderState
            The sender.
        """


class ReceiverReaction:
    """A reaction at the receiver of a connection, made for each run and connection, without arguments."""

    def on_segment(self, now: int, segment: Segment, receiver: Receiver) -> None:
        """Take a segment that has arrived and is not processed yet.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        segment : Segment
            The segment.
        receiver : Receiver
            The receiver, in the state before it.
        """

    def on_notice(self, now: int, notice: Notice, receiver: Receiver) -> None:
        """Take a control message about this connection.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        notice : Notice
            The message.
        receiver : Receiver
            The receiver.
        """

    def on_reach(self, now: int, reach: Literal["fading", "lost", "back"], receiver: Receiver) -> None:
        """Take a change of the radio signal, if the receiver is at a mobile host.

        Called only if a scheme requests it with `Installer.watch_signal`.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        reach : str
            The change.
        receiver : Receiver
            The receiver.
        """

    def on_ack(self, now: int, ack: Segment, receiver: Receiver) -> Segment | Literal["withhold"] | None:
        """Take an acknowledgement that is about to be sent.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        ack : Segment
            The acknowledgement.
        receiver : Receiver
            The receiver.

        Returns
        -------
        Segment, str or None
            What to send instead; None to send it unchanged; ``"withhold"`` to suppress it. Its content may
            be sent later, with `Receiver.acknowledge_now`.
        """
        return None

    def next_wakeup(self) -> int | None:
        """Return when `on_timer` is to be called next. Queried after each callback.

        Returns
        -------
        int or None
            The time in nanoseconds; None without a timer.
        """
        return None

    def on_timer(self, now: int, receiver: Receiver) -> None:
        """Act at the time that `next_wakeup` has returned; the next one must be later.

        Parameters
        ----------
        now : int
            The time in nanoseconds.
        receiver : Receiver
            The receiver.
        """
