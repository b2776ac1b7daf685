"""What helps TCP and QUIC alike: the advice for a server of each, remedy by remedy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lasthop.advice import remedies
from lasthop.advice.advice import Advice
from lasthop.advice.judgement import Effect, Judgement, Remedy
from lasthop.advice.selection import ladder_for_all
from lasthop.race import Arm


def sender_of(sender: str, protocol: str) -> str:
    """Return the sender itself if it has this protocol, else its counterpart; without one, the default.

    Parameters
    ----------
    sender : str
        A key of `SENDERS` or `STACK_SENDERS`.
    protocol : str
        `"TCP"` or `"QUIC"`.

    Examples
    --------
    >>> sender_of("quinn-bbr", "TCP"), sender_of("quinn-bbr", "QUIC"), sender_of("linux-hybla", "QUIC")
    ('linux-bbr', 'quinn-bbr', 'quinn-cubic')
    """
    if remedies.sender_named(sender).protocol == protocol:
        return sender
    if protocol == "TCP":
        return _reversed().get(sender, remedies.LINUX)
    return remedies.COUNTERPARTS.get(sender, remedies.COUNTERPARTS[remedies.LINUX])


def _reversed() -> dict[str, str]:
    return {quic: tcp for tcp, quic in remedies.COUNTERPARTS.items()}


@dataclass(frozen=True, slots=True)
class Pair:
    """A remedy, as judged for TCP and for QUIC.

    Attributes
    ----------
    tcp, quic : Remedy or None
        The remedy for each; None if it was not tried, as what acts on the other alone.
    """

    tcp: Remedy | None
    quic: Remedy | None

    @property
    def remedy(self) -> Remedy:
        """The remedy as judged for TCP if it was tried there, with what servers of either have to change."""
        tried = [each for each in (self.tcp, self.quic) if each is not None]
        parts = {part.name: part for each in reversed(tried) for part in each.deployment.parts}
        return replace(tried[0], deployment=replace(tried[0].deployment, parts=tuple(parts.values())))

    @property
    def helps_both(self) -> bool:
        """Whether it is worthwhile for both."""
        return self.tcp is not None and self.quic is not None and self.tcp.worth and self.quic.worth


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BothAdvice:
    """Advice for a server of TCP and one of QUIC on the same link.

    Attributes
    ----------
    tcp, quic : Advice
        The advice for each by itself, for the same uses.
    """

    tcp: Advice
    quic: Advice

    @property
    def pairs(self) -> list[Pair]:
        """The remedies of the first use that are worthwhile for either, in the order of TCP's."""
        of_quic = {each.arm: each for each in _of_tcp(self.quic.first, self._own).remedies}
        found = [Pair(each, of_quic.pop(each.arm, None)) for each in self.tcp.remedies]
        found += [Pair(None, each) for each in of_quic.values()]
        return [each for each in found if any(one is not None and one.worth for one in (each.tcp, each.quic))]

    @property
    def advised(self) -> list[Pair]:
        """The remedies to advise, in order of effort: worthwhile for both, and harmful to no use of either.

        They are chosen as for several uses (`lasthop.advice.selection.ladder_for_all`).
        """
        quic = [_of_tcp(each, self._own) for each in self.quic.judgements]
        rungs = [each.arm for each in ladder_for_all([*self.tcp.judgements, *quic])]
        found = [Pair(self.tcp.first.of(arm), quic[0].of(arm)) for arm in rungs]
        return [each for each in found if each.helps_both]

    @property
    def _own(self) -> dict[str, str]:
        """The sender of TCP for each of QUIC; the servers of now are counterparts."""
        return _reversed() | {self.quic.sender: self.tcp.sender}

    @property
    def harmless(self) -> Pair | None:
        """For one use, if the first advised remedy harms others: the easiest that harms none over either.

        It gains about as much for both, and is not advised anyway.
        """
        advised = self.advised
        if not advised or len(self.tcp.judgements) > 1 or not self.harmed(advised[0]):
            return None
        harmless = [
            each
            for each in self.pairs
            if each.helps_both
            and each.remedy.deployment.available
            and self._gains_as_much(each, advised[0])
            and not self.unknown_effects(each)
            and not self.harmed(each)
        ]
        easiest = min(harmless, key=lambda each: each.remedy.deployment.effort, default=None)
        return None if easiest in advised else easiest

    def harmed(self, pair: Pair) -> list[tuple[str, Effect]]:
        """Return the other uses that a remedy harms, each with the protocol over which it does."""
        return [
            (name, effect)
            for name, advice in self._sides
            for arm in advice.effects
            if _arm_of_tcp(arm, self._own) == pair.remedy.arm
            for effect in advice.harmed(arm)
        ]

    def unknown_effects(self, pair: Pair) -> list[str]:
        """Return the protocols over which the effects of a remedy on other uses were not simulated."""
        arm = pair.remedy.arm
        return [
            name
            for name, advice in self._sides
            if arm not in {_arm_of_tcp(each, self._own) for each in advice.effects}
        ]

    def _gains_as_much(self, pair: Pair, first: Pair) -> bool:
        """Whether a remedy that was tried for both gains about as much for each as `first`."""
        both = ((self.tcp, first.tcp, pair.tcp), (self.quic, first.quic, pair.quic))
        return all(
            one is not None and other is not None and not advice.first.measure.exceeds(one.gain, other.gain)
            for advice, one, other in both
        )

    @property
    def _sides(self) -> tuple[tuple[str, Advice], ...]:
        return ("TCP", self.tcp), ("QUIC", self.quic)

    def verdict(self) -> str:
        """Return the advice in a sentence."""
        first = next(iter(self.advised), None)
        if first is None:
            return "Nothing that was tried helps both."
        return f"Use {first.remedy.title}: {'; '.join(self.gains(first))}"

    def gains(self, pair: Pair) -> list[str]:
        """Return the gain of a remedy in a sentence for each protocol for which it was tried."""
        sides = (("TCP", self.tcp, pair.tcp), ("QUIC", self.quic, pair.quic))
        return [f"{name} {advice.first.gain(each)}" for name, advice, each in sides if each is not None]


def _of_tcp(judgement: Judgement, own: dict[str, str]) -> Judgement:
    """Return a judgement of QUIC with the arms that its remedies have for TCP."""
    found = tuple(replace(each, arm=_arm_of_tcp(each.arm, own)) for each in judgement.remedies)
    now = found[judgement.remedies.index(judgement.now)]
    return replace(judgement, now=now, remedies=found)


def _arm_of_tcp(arm: Arm, own: dict[str, str]) -> Arm:
    """Return the arm that an arm of either protocol has for TCP."""
    return replace(arm, sender=own.get(arm.sender or "", arm.sender))
