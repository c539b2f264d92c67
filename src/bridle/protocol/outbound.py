"""Our requests to the CLI: numbered, checked before they are written, matched with answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..errors import InvalidRequest, InvalidState, NotPending
from .answers import ANSWER_OF, TELLING, Done
from .blocks import KnownBlock, TextBlock
from .careful import read_answer
from .codec import DECODE_ERRORS, UNWRITABLE, check, encode_line
from .control import (
    ControlCancelLine,
    ControlFailure,
    ControlSuccess,
    Priority,
    Prompt,
    PromptContent,
)
from .events import Counters, Failure, LineIgnored, ResponseReceived, Success
from .remembered import Remembered
from .requests import OutboundRequest
from .unknown import Unknown

#: Where a mention may begin: not inside of a word, as in an address of mail.
_MENTION = re.compile(r"(?<![\w\\])@(?=\S)")


class WithMentions(str):
    """A prompt, or a part of one, of which the CLI may read what it mentions (`@path`).

    It does so without asking anybody, and whatever a policy denies: for what a person has typed.
    """

    __slots__ = ()


class OutboundRequests:
    """What we have asked: waiting for an answer, or settled and remembered for a while."""

    def __init__(
        self,
        counters: Counters,
        nonce: str,
        *,
        next_number: int = 1,
        asked: dict[str, OutboundRequest] | None = None,
        responded: Iterable[str] = (),
        cancelled: Iterable[str] = (),
    ) -> None:
        self._counters = counters
        self._nonce = nonce
        self._asked = asked or {}
        self.next_number = next_number
        self.responded: Remembered[None] = Remembered(dict.fromkeys(responded))
        self.cancelled: Remembered[None] = Remembered(dict.fromkeys(cancelled))

    @property
    def asked(self) -> Mapping[str, OutboundRequest]:
        return MappingProxyType(self._asked)

    def request(self, request: OutboundRequest) -> tuple[str, bytes]:
        request_id = f"req_{self.next_number}_{self._nonce}"
        envelope = {"type": "control_request", "request_id": request_id, "request": request}
        if not isinstance(request, OutboundRequest):
            # A dict would be written as it is, past every check.
            raise InvalidRequest("control_request", f"{request!r} is not one of ours")
        try:
            checked = check(request)
            line = encode_line(envelope)
        except UNWRITABLE as error:
            raise InvalidRequest(subtype_of(request), str(error)) from error
        self.next_number += 1
        # The copy, not the caller's own: that may change, and could then not be saved.
        self._asked[request_id] = checked
        return request_id, line

    def recall(self, request_id: str, request: OutboundRequest) -> None:
        """It was asked before our time."""
        self._asked[request_id] = request

    def recall_cancel(self, request_id: str) -> None:
        if self._asked.pop(request_id, None):
            self.cancelled.remember(request_id, None)

    def cancel(self, request_id: str) -> bytes:
        if self._asked.pop(request_id, None) is None:
            raise NotPending(request_id)
        self.cancelled.remember(request_id, None)
        return encode_line(ControlCancelLine(request_id))

    def respond(
        self, response: ControlSuccess | ControlFailure, raw: bytes
    ) -> ResponseReceived | None:
        """The answer to one of our requests; None where it answers none that waits."""
        request = self._asked.pop(response.request_id, None)
        if request is None:
            return None
        self.responded.remember(response.request_id, None)
        outcome = _outcome(request, response)
        return ResponseReceived(response.request_id, request, outcome, raw)

    def stray(self, request_id: str, raw: bytes, *, is_echo: bool) -> LineIgnored:
        """Why a response that answers nothing has come."""
        if request_id in self.responded:
            self._counters.duplicate_responses += 1
            why = f"a second response to {request_id}"
        elif request_id in self.cancelled:
            self._counters.late_responses += 1
            why = f"a response to {request_id}, which we had cancelled"
        elif is_echo:
            self._counters.echoes += 1
            why = f"an echo of our own answer to {request_id}"
        else:
            self._counters.strays += 1
            why = f"a response to {request_id}, which we never asked"
        return LineIgnored(why, raw)


class Asking(Struct, tag_field="type", tag="control_request"):
    """A request of ours, on the wire."""

    request_id: str
    request: OutboundRequest


class _Answered(Struct):
    request_id: str


class Answering(Struct, tag_field="type", tag="control_response"):
    """An answer of ours, on the wire: to what, and nothing of what it says."""

    response: _Answered

    @property
    def request_id(self) -> str:
        return self.response.request_id


class Prompting(Struct, tag_field="type", tag="user"):
    """A prompt, on the wire."""

    uuid: str | None = None


Written: TypeAlias = Asking | Answering | Prompting | ControlCancelLine


def read_written(line: bytes) -> Written:
    """A line that a controller wrote; InvalidState for what none of ours would write."""
    try:
        written: Written = msgspec.json.decode(line, type=Written)
    except DECODE_ERRORS as error:
        raise InvalidState(f"not a line that Bridle writes: {error}") from error
    return written


def prompt_line(
    content: str | Sequence[KnownBlock | str],
    *,
    uuid: str | UnsetType = UNSET,
    priority: Priority | UnsetType = UNSET,
    should_query: bool | UnsetType = UNSET,
    is_verbatim: bool = False,
) -> bytes:
    """The line that gives a CLI a user message; a text among blocks is a block of text.

    A backslash stands before each mention (`@path`), so that the CLI does not read that file by
    itself; not in a text `WithMentions`. If it `is_verbatim`, it is text and nothing else, as what
    agents tell each other must be: mentions are never read, and no slash command is run.
    """
    if not content or not isinstance(content, str | list | tuple):
        raise InvalidRequest("user", "a prompt is text, or a list of content blocks")
    said: str | list[KnownBlock]
    if isinstance(content, str):
        said = _plain(content, is_verbatim=is_verbatim)
    else:
        said = [_block(part, is_verbatim=is_verbatim) for part in content]
    try:
        prompt = Prompt(
            PromptContent(said),
            uuid=uuid,
            priority=priority,
            should_query=should_query,
            client_composed=True if is_verbatim else UNSET,
        )
        check(prompt)
        return encode_line(prompt)
    except UNWRITABLE as error:
        raise InvalidRequest("user", str(error)) from error


def _block(part: KnownBlock | str, *, is_verbatim: bool) -> KnownBlock:
    text = part.text if isinstance(part, TextBlock) else part
    return TextBlock(_plain(text, is_verbatim=is_verbatim)) if isinstance(text, str) else text


def _plain(text: str, *, is_verbatim: bool) -> str:
    if not is_verbatim and isinstance(text, WithMentions):
        return str(text)
    # No CLI takes a slash behind a blank for a command, old ones that know no verbatim prompts too.
    start = " " if is_verbatim and text.startswith("/") else ""
    return start + _MENTION.sub(r"\\@", text)


def subtype_of(request: OutboundRequest) -> str:
    return str(request.__struct_config__.tag)


def _outcome(
    request: OutboundRequest, response: ControlSuccess | ControlFailure
) -> Success | Failure:
    if isinstance(response, ControlFailure):
        return Failure(response.error, response.error_code)
    kind = ANSWER_OF.get(type(request), Done)
    raw = bytes(response.response)
    raw = b"{}" if raw in (b"", b"null") else raw
    try:
        return Success(msgspec.json.decode(raw, type=kind))
    except DECODE_ERRORS as error:
        answer = read_answer(raw, kind) if kind in TELLING else None
        return Success(answer or Unknown(subtype_of(request), raw, str(error)))
