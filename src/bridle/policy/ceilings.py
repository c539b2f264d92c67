"""A session below others: its own policy, and what those above it may delegate. The strictest word
counts, of whomever it is.

What a person had remembered for the session gets past those above it, unless they deny it, or a
person must see it; what an agent had remembered does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .delegation import Delegation, RulesAlone
from .judge import Judge
from .policy import Policy
from .rules import Rule
from .verdicts import Allowed, Asked, Call, Denied, Ground, Verdict

#: How the source of a remembered rule begins; and of one that an agent had remembered.
REMEMBERED = "remembered"
REMEMBERED_BY_AGENT = "remembered by an agent"


class Above(Struct, frozen=True):
    """An ancestor, and what it may delegate."""

    session: str
    delegation: Delegation


class BelowOthers:
    """Judges one agent's calls by its own policy, and by all those above it."""

    def __init__(self, policy: Policy, ground: Ground, above: Sequence[Above]) -> None:
        self._own: Judge = policy.on(ground)
        self._above = tuple(above)
        self._folder = ground.folder
        rules = [rule for rule in policy.rules if is_by_a_person(rule)]
        self._by_people = RulesAlone(policy, rules, ground) if rules else None

    def judge(self, call: Call) -> Verdict:
        own = self._own.judge(call)
        if isinstance(own, Denied):
            return own
        told = [(one.session, one.delegation.ceiling(call, self._folder)) for one in self._above]
        for session, verdict in told:
            if isinstance(verdict, Denied):
                because = f"session {session} above it: {verdict.because}"
                return Denied(verdict.rule, verdict.source, because)
        if isinstance(own, Asked) and own.guard:
            return own
        for session, verdict in told:
            if isinstance(verdict, Asked) and verdict.guard:
                because = f"session {session} above it: {verdict.because}"
                guard, notes = verdict.guard, verdict.notes
                return Asked(because, verdict.rule, verdict.source, guard, notes)
        if isinstance(own, Asked) or self._is_by_people(call):
            return own
        for session, verdict in told:
            if isinstance(verdict, Asked):
                because = f"session {session} above it may not delegate this: {verdict.because}"
                return Asked(because, verdict.rule, verdict.source, notes=verdict.notes)
        return own

    def _is_by_people(self, call: Call) -> bool:
        """Whether all of it is allowed by what people had remembered, and by nothing else."""
        by_people = self._by_people
        return by_people is not None and isinstance(by_people.judge(call), Allowed)


def is_by_a_person(rule: Rule) -> bool:
    """Whether it is one that a person had remembered."""
    source = rule.source
    return (
        rule.behavior == "allow"
        and source.startswith(REMEMBERED)
        and not source.startswith(REMEMBERED_BY_AGENT)
    )
