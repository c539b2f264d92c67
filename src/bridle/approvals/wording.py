"""What the model is told when the answer is no. Each kind of no has its own fixed words. Pure."""

from __future__ import annotations

from .model import Agent, Approval, Cancelled, Cause, Decided, Expired, Kind, Nobody, Reject

_WHAT: dict[Kind, str] = {
    "tool": "tool call",
    "plan": "plan",
    "question": "question",
    "elicitation": "request",
}
_THEN: dict[Kind, str] = {
    "tool": "It was not run. Do not try to reach the same by another way",
    "plan": "Stay in plan mode and do not begin with it",
    "question": "Do not ask it again",
    "elicitation": "Do not ask for it again",
}
_CAUSES: dict[Cause, str] = {
    "withdrawn": "Claude Code took the question back",
    "interrupted": "the turn was interrupted",
    "turn ended": "the turn ended before anybody had decided",
    "process ended": "the process ended before anybody had decided",
    "cancelled": "it was no longer needed",
}
NOBODY = "Bridle denied this: nobody is there to approve it"


def words_for(approval: Approval) -> str:
    """Why it is no, for an approval that was not allowed."""
    what, then = _WHAT[approval.kind], _THEN[approval.kind]
    match approval.ending:
        case Decided(by=Nobody(), choice=Reject(message=why)):
            return f"{NOBODY}{_because(why)}."
        case Decided(by=Agent(), choice=Reject(message=why)):
            return f"The supervising agent rejected this {what}{_because(why)}. {then}."
        case Decided(choice=Reject(message=why)) if why.strip():
            return f"The user rejected this {what}. {then}. The user said:\n{why.strip()}"
        case Decided():
            return f"The user rejected this {what}. {then}; wait for what the user says."
        case Expired(after=after):
            limit = duration(after)
            start = f"Approval timed out: nobody decided on this {what} within {limit}."
            return f"{start} {_not_a_no(then)}"
        case Cancelled(cause=cause, words=words):
            return f"Approval cancelled: {words or _CAUSES[cause]}. {_not_a_no(then)}"
        case None:
            return f"Bridle denied this: nothing was decided on this {what}."


def _because(why: str) -> str:
    return f": {why.strip().rstrip('.')}" if why.strip() else ""


def _not_a_no(then: str) -> str:
    return f"{then.split('. ')[0]}. This is not a person's decision."


def duration(seconds: float) -> str:
    """As people say it: 45 seconds, 5 minutes, 3 days."""
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            return _counted(seconds / size, name)
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"about {_counted(round(seconds / size), name)}"
    return _counted(seconds, "second")


def _counted(number: float, name: str) -> str:
    return f"{number:g} {name}" + ("" if number == 1 else "s")
