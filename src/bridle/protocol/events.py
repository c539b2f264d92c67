"""What a `Connection` tells: one event for each line, in order, with the line's raw bytes."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ..errors import ControlFailed
from .answers import Answered
from .control import InboundRequest
from .messages import Message
from .requests import OutboundRequest
from .unknown import Unknown


class MessageReceived(Struct, gc=False):
    """The CLI said something.

    `repaired`: broken text in the raw line was read as U+FFFD. `dropped`: optional fields that
    could not be read, and why; the raw line has them.
    """

    message: Message | Unknown
    raw: bytes
    repaired: bool = False
    dropped: tuple[str, ...] = ()


class RequestReceived(Struct, gc=False):
    """The CLI asks and waits: answer it once, with `Connection.answer` or `Connection.fail`."""

    request_id: str
    request: InboundRequest
    raw: bytes
    repaired: bool = False
    dropped: tuple[str, ...] = ()


class RequestUnreadable(Struct, gc=False):
    """The CLI asks what can't be understood, and waits: `Connection.fail` is the one answer.

    `may_be_pre_tool_use`: an error could let a tool run, so `fail` writes an explicit deny.
    """

    request_id: str
    subtype: str
    reason: str
    raw: bytes
    may_be_pre_tool_use: bool = False


class RequestWithdrawn(Struct, gc=False):
    """The CLI took a request back. It can't be answered any more; nothing is to be written.

    `request` is None where it could not be read in the first place.
    """

    request_id: str
    request: InboundRequest | None
    raw: bytes


class Success(Struct, gc=False):
    """`Unknown` where the answer does not have the shape that its request promises."""

    answer: Answered | Unknown


class Failure(Struct, gc=False):
    error: str
    code: str | None = None


class ResponseReceived(Struct, gc=False):
    """The CLI answered what we asked."""

    request_id: str
    request: OutboundRequest
    outcome: Success | Failure
    raw: bytes

    def answer(self) -> Answered | Unknown:
        """What it answered; a refusal is raised."""
        if isinstance(self.outcome, Failure):
            subtype = str(self.request.__struct_config__.tag)
            raise ControlFailed(self.request_id, subtype, self.outcome.error, self.outcome.code)
        return self.outcome.answer


class LineIgnored(Struct, gc=False):
    """A line that is well-formed and means nothing: a second response, an echo, a late cancel."""

    reason: str
    raw: bytes


class LineMalformed(Struct, gc=False):
    """A line that is not a JSON object."""

    reason: str
    raw: bytes


class LineOversized(Struct, gc=False):
    """A line over the limit, skipped; `raw` is its first KiB."""

    length: int
    raw: bytes


#: What the CLI has asked and waits for.
Asked: TypeAlias = RequestReceived | RequestUnreadable


class Unanswered(Struct, gc=False):
    """A request of ours that got no answer before the stream ended."""

    request_id: str
    request: OutboundRequest


class StreamEnded(Struct, gc=False):
    """The CLI's output has ended. What was still open, in both directions, is handed back."""

    unanswered: list[Unanswered]
    unsettled: list[Asked]


Event: TypeAlias = (
    MessageReceived
    | RequestReceived
    | RequestUnreadable
    | RequestWithdrawn
    | ResponseReceived
    | LineIgnored
    | LineMalformed
    | LineOversized
    | StreamEnded
)


class Counters(Struct):
    """How often the CLI said what it should not. Shown to users, never fatal."""

    malformed: int = 0
    oversized: int = 0
    unknown: int = 0
    repaired: int = 0
    dropped: int = 0
    unreadable_requests: int = 0
    duplicate_requests: int = 0
    duplicate_responses: int = 0
    late_responses: int = 0
    echoes: int = 0
    strays: int = 0
