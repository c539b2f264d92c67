"""A policy tried on calls of the past: what it would have answered, and what differently."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from .judge import Judge
from .verdicts import Asked, Behavior, Call, Verdict


class Past(Struct, frozen=True):
    """A call that was made once, and what became of it: `decision` is None if nobody knows."""

    call: Call
    decision: Behavior | None = None


class Differs(Struct, frozen=True):
    past: Past
    verdict: Verdict


class Trial(Struct, frozen=True):
    """How many calls the policy would have answered by itself, and which of them differently."""

    total: int
    answered: int
    differently: tuple[Differs, ...]

    def __str__(self) -> str:
        text = f"this would have answered {self.answered} of {self.total}"
        if self.differently:
            text += f"; these {len(self.differently)} differently"
        return text


def try_policy(judge: Judge, calls: Iterable[Past]) -> Trial:
    """Judge them all. An answer differs if it is another than was given; asking never does."""
    total = answered = 0
    differently: list[Differs] = []
    for past in calls:
        total += 1
        verdict = judge.judge(past.call)
        if isinstance(verdict, Asked):
            continue
        answered += 1
        told = verdict.__struct_config__.tag
        if past.decision in ("allow", "deny") and past.decision != told:
            differently.append(Differs(past, verdict))
    return Trial(total, answered, tuple(differently))
