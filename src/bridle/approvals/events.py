"""The events of which approvals are made, in the stream that has the session's id for a name.

Owns their kinds and bodies (JSON). A decision, and whatever else ends or starts an approval, is
sealed: it is a link of the stream's audit chain.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ..journal.events import Event, NewEvent
from ..policy.verdicts import Allowed, Denied
from .model import Ending, Outcome, Requested, Step

PREFIX = "approval."
REQUESTED = "approval.requested"
DECIDED = "approval.decided"
EXPIRED = "approval.expired"
CANCELLED = "approval.cancelled"
DELIVERED = "approval.delivered"
OUTCOME = "approval.outcome"
ESCALATED = "approval.escalated"
JUDGED = "tool.judged"
WENT_ON = "plan.went_on"


class Ended(Struct, frozen=True):
    id: str
    ending: Ending


class Delivered(Struct, frozen=True):
    id: str
    at: float


class OutcomeSeen(Struct, frozen=True):
    id: str
    outcome: Outcome


class Escalated(Struct, frozen=True):
    """It is put to somebody else from now on."""

    id: str
    steps: tuple[Step, ...]


class Judged(Struct, frozen=True, kw_only=True):
    """A call that a rule decided, so that nobody was asked."""

    launch: str
    tool: str
    input: dict[str, Any]
    tool_use_id: str | None
    agent_id: str | None
    verdict: Allowed | Denied


class WentOn(Struct, frozen=True, kw_only=True):
    """After a plan: the mode that was chosen, and the one in which the CLI says it is."""

    launch: str
    tool_use_id: str
    chosen: str
    told: str


Body: TypeAlias = Requested | Ended | Delivered | OutcomeSeen | Escalated

_ENDINGS = {"Decided": DECIDED, "Expired": EXPIRED, "Cancelled": CANCELLED}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    REQUESTED: msgspec.json.Decoder(Requested),
    DECIDED: msgspec.json.Decoder(Ended),
    EXPIRED: msgspec.json.Decoder(Ended),
    CANCELLED: msgspec.json.Decoder(Ended),
    DELIVERED: msgspec.json.Decoder(Delivered),
    OUTCOME: msgspec.json.Decoder(OutcomeSeen),
    ESCALATED: msgspec.json.Decoder(Escalated),
}
_encode = msgspec.json.Encoder().encode


def event_of(body: Body) -> NewEvent:
    match body:
        case Requested(created=at):
            return sealed(REQUESTED, body, at)
        case Ended(ending=ending):
            return sealed(_ENDINGS[type(ending).__name__], body, ending.at)
        case Delivered(at=at):
            return NewEvent(DELIVERED, _encode(body), at)
        case OutcomeSeen(outcome=outcome):
            return NewEvent(OUTCOME, _encode(body), outcome.at)
        case Escalated(steps=steps):
            return sealed(ESCALATED, body, steps[-1].at)


def sealed(kind: str, body: Struct, at: float) -> NewEvent:
    return NewEvent(kind, _encode(body), at, is_sealed=True)


def is_ours(event: Event) -> bool:
    return event.kind in _DECODERS


def body_of(event: Event, payload: bytes) -> Body:
    """What the event says. `payload` is all of it: the body of a large one is only its head."""
    body: Body = _DECODERS[event.kind].decode(payload)
    return body
