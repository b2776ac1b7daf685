"""Advice to the owner of a link: what limits it, and what would help. See docs/guide/advise.md."""

from lasthop.advice.advice import Advice, advise
from lasthop.advice.judgement import Change, Effect, Judgement, Limit, Remedy
from lasthop.advice.remedies import SENDERS, Sender
from lasthop.advice.uses import USES, Measure, Use

__all__ = [
    "SENDERS",
    "USES",
    "Advice",
    "Change",
    "Effect",
    "Judgement",
    "Limit",
    "Measure",
    "Remedy",
    "Sender",
    "Use",
    "advise",
]
