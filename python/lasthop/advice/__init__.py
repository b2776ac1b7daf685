"""Advice to the owner of a link: what limits it, what would help, and what would not. See docs/advise.md."""

from lasthop.advice.advice import Advice, Limit, Remedy, advise
from lasthop.advice.remedies import SENDERS, Sender

__all__ = ["SENDERS", "Advice", "Limit", "Remedy", "Sender", "advise"]
