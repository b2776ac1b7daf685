"""Advice to the owner of a link: what limits it, and what would help. See docs/guide/advise.md."""

from lasthop.advice.advice import Advice, advise
from lasthop.advice.installation import plan
from lasthop.advice.judgement import Change, Effect, Judgement, Limit, Remedy
from lasthop.advice.remedies import SENDERS, STACK_SENDERS, Deployment, Part, Sender
from lasthop.advice.steps import Steps
from lasthop.advice.transports import BothAdvice, Pair, sender_of
from lasthop.advice.uses import USES, Measure, Use

__all__ = [
    "SENDERS",
    "STACK_SENDERS",
    "USES",
    "Advice",
    "BothAdvice",
    "Change",
    "Deployment",
    "Effect",
    "Judgement",
    "Limit",
    "Measure",
    "Pair",
    "Part",
    "Remedy",
    "Sender",
    "Steps",
    "Use",
    "advise",
    "plan",
    "sender_of",
]
