"""An event of the stream, decoded once for all folds.

Owns how a body and the line inside it are read, and the words of approvals that views need: they
are known here by their kind and shape alone, because views know nothing of `approvals`. Nothing
raises, whatever the bytes are.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ..protocol.careful import Malformed, members_of, read_line, text_in
from ..protocol.codec import DECODE_ERRORS
from ..protocol.messages import Message
from ..protocol.unknown import Unknown
from . import stream

# --- what approvals write into the same stream

REQUESTED = "approval.requested"
DECIDED = "approval.decided"
EXPIRED = "approval.expired"
CANCELLED = "approval.cancelled"
DELIVERED = "approval.delivered"
OUTCOME = "approval.outcome"
ESCALATED = "approval.escalated"
JUDGED = "tool.judged"


class Requested(Struct, frozen=True, kw_only=True):
    id: str
    launch: str = ""
    kind: str = "tool"
    tool: str = ""
    input: dict[str, Any] = {}
    tool_use_id: str | None = None
    agent_id: str | None = None
    reason: str = ""
    guard: str = ""
    expires: float | None = None


class Decider(Struct, frozen=True):
    type: str = ""
    name: str = ""
    session: str = ""

    def __str__(self) -> str:
        return self.name or self.session or self.type


class Choice(Struct, frozen=True):
    type: str
    message: str = ""
    mode: str = ""
    plan: str | None = None
    answers: dict[str, str] = {}

    @property
    def is_no(self) -> bool:
        return self.type == "reject"

    @property
    def words(self) -> str:
        """What was said with it, or chosen by it."""
        if len(self.answers) > 1:
            answered = "; ".join(f"{question} {one}" for question, one in self.answers.items())
        else:
            answered = "".join(self.answers.values())
        return self.message or self.mode or answered


class Decided(Struct, frozen=True, tag="decided"):
    at: float
    choice: Choice
    by: Decider = Decider()


class Expired(Struct, frozen=True, tag="expired"):
    at: float
    after: float = 0


class Cancelled(Struct, frozen=True, tag="cancelled"):
    at: float
    cause: str = ""
    words: str = ""


class Ended(Struct, frozen=True):
    id: str
    ending: Decided | Expired | Cancelled


class Delivered(Struct, frozen=True):
    id: str
    at: float


class Seen(Struct, frozen=True):
    how: str
    at: float
    words: str = ""


class OutcomeSeen(Struct, frozen=True):
    id: str
    outcome: Seen


class Step(Struct, frozen=True):
    """Whom it is put to: an ancestor's session, or people ("")."""

    to: str = ""
    why: str = ""
    by: str = ""


class Escalated(Struct, frozen=True):
    id: str
    steps: tuple[Step, ...]


class Verdict(Struct, frozen=True):
    type: str
    because: str = ""

    @property
    def is_no(self) -> bool:
        return self.type == "deny"


class Judged(Struct, frozen=True):
    """A call that a rule decided."""

    tool: str
    verdict: Verdict
    launch: str = ""
    tool_use_id: str | None = None


# --- what can't be read


class Cut(Struct, frozen=True):
    """Only the head of a large payload is here.

    `type` is the message's, as far as the head tells; `results` are the calls whose results are in
    it: the commonest large line is a result, and whoever waits for it must not wait for ever.
    """

    head: str
    type: str = ""
    results: tuple[str, ...] = ()


class Garbled(Struct, frozen=True):
    """A body that is not what its kind says."""

    reason: str


class Foreign(Struct, frozen=True):
    """A kind of which nothing is known here."""


Body: TypeAlias = Any

_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    REQUESTED: msgspec.json.Decoder(Requested),
    DECIDED: msgspec.json.Decoder(Ended),
    EXPIRED: msgspec.json.Decoder(Ended),
    CANCELLED: msgspec.json.Decoder(Ended),
    DELIVERED: msgspec.json.Decoder(Delivered),
    OUTCOME: msgspec.json.Decoder(OutcomeSeen),
    ESCALATED: msgspec.json.Decoder(Escalated),
    JUDGED: msgspec.json.Decoder(Judged),
}


class Reading(Struct, frozen=True, kw_only=True, gc=False):
    """`body` is the Struct of its kind, or `Cut`, `Garbled` or `Foreign`; `said` is the message of
    an `agent.said`."""

    seq: int
    at: float
    kind: str
    launch: str
    body: Body
    said: Message | Unknown | None = None


def read(entry: stream.Entry) -> Reading:
    """Decode an event. Give the result to every fold, so that each need not decode it again."""
    said = None
    body = _body(entry)
    launch = getattr(body, "launch", "") if not entry.is_cut else _found(_LAUNCH, body.head)
    if entry.kind == stream.SAID and isinstance(body, stream.Line):
        said = _message(bytes(body.line))
    return Reading(seq=entry.seq, at=entry.at, kind=entry.kind, launch=launch, body=body, said=said)


def message_in(line: bytes) -> Message | Unknown | None:
    """The message that a line of ours holds; None where it holds none."""
    return _message(line) if line else None


def reading_of(event: stream.Entry | Reading) -> Reading:
    return event if isinstance(event, Reading) else read(event)


def _body(entry: stream.Entry) -> Body:
    if entry.is_cut:
        return _cut(entry.body)
    try:
        known = entry.kind in stream.BODIES
        decoder = _DECODERS.get(entry.kind)
        if not known and decoder is None:
            return Foreign()
        return decoder.decode(entry.body) if decoder else stream.body_of(entry)
    except DECODE_ERRORS as error:
        return Garbled(str(error) or type(error).__name__)


def _message(line: bytes) -> Message | Unknown:
    decoded = read_line(line).decoded
    match decoded:
        case Message() | Unknown():
            return decoded
        case Malformed(reason=reason):
            return Unknown("", line, reason)
        case _:
            return Unknown(text_in(members_of(line), "type"), line, "not a message")


_LAUNCH = re.compile(r'"launch":"([^"\\]{1,200})"')
_TYPE = re.compile(r'"type":"([^"\\]{1,100})"')
_RESULT_OF = re.compile(r'"tool_use_id":"([^"\\]{1,200})"')


def _cut(head: bytes) -> Cut:
    text = head.decode(errors="replace")
    kind = _found(_TYPE, text)
    results = tuple(dict.fromkeys(_RESULT_OF.findall(text))) if kind == "user" else ()
    return Cut(text, kind, results)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
