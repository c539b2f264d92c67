"""JSON lines <-> structs: one pass for what is as it should be.

Owns the union of all lines, its decoder, and the writing of lines. What the one pass can't read is
for `careful`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct

from .control import ControlCancelLine, ControlRequestLine, ControlResponseLine
from .messages import (
    ActiveGoal,
    Assistant,
    AuthStatus,
    CommandLifecycle,
    ConversationReset,
    KeepAlive,
    PromptSuggestion,
    RateLimitEvent,
    Result,
    StreamEvent,
    ToolProgress,
    ToolUseSummary,
    TranscriptMirror,
    User,
)


class SystemHead(Struct, tag_field="type", tag="system", gc=False):
    """A `system` line before its subtype is looked at."""

    subtype: str


PlainMessage: TypeAlias = (
    Assistant
    | User
    | StreamEvent
    | Result
    | RateLimitEvent
    | ToolProgress
    | ToolUseSummary
    | AuthStatus
    | PromptSuggestion
    | ConversationReset
    | CommandLifecycle
    | ActiveGoal
    | TranscriptMirror
    | KeepAlive
)
ControlLine: TypeAlias = ControlRequestLine | ControlResponseLine | ControlCancelLine
_Checked = TypeVar("_Checked")

#: The types that need nothing more once the one pass is done.
PLAIN_TYPES: frozenset[type] = frozenset(get_args(PlainMessage))

# What a decoder of ours may raise on bytes that a CLI wrote. ValidationError is a DecodeError.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: What checking or encoding our own words may raise: wrong types, lone surrogates, deep nesting.
UNWRITABLE = (*DECODE_ERRORS, UnicodeEncodeError, TypeError, ValueError, OverflowError)

Line: TypeAlias = PlainMessage | SystemHead | ControlLine


@functools.cache
def line_decoder() -> Callable[[bytes], Line]:
    """The hot path: one pass over a line. Built when first used, not when imported.

    It raises DECODE_ERRORS; then `careful.read_line` finds out why.
    """
    return msgspec.json.Decoder(Line).decode


def encode_line(value: Any) -> bytes:
    """One line of JSON with its newline.

    U+2028 and U+2029 are escaped: some line readers of JavaScript split at them.
    """
    return finished_line(msgspec.json.encode(value))


def finished_line(line: bytes) -> bytes:
    """JSON as a line that no reader tears apart."""
    if b"\n" in line:
        # JSON escapes those in strings: this one came in a `Raw`, and would tear the line in two.
        raise ValueError("a newline inside raw JSON")
    if b"\xe2\x80" in line:
        line = line.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return line + b"\n"


def check(value: _Checked) -> _Checked:
    """Refuse what its own type would not decode: structs do not check their fields when built.

    Gives the value as its reader will see it.
    """
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
