"""What a scripted model says, and when: turns, their pieces, and matchers on what it is sent.

Owns the words of a script; how they travel is in `model`. A turn answers one request:

    Turn("I will run it.", tool_use("Bash", command="make test"))
    Turn(thinking("Hmm."), text("Done.", delay=0.05))
    Turn(fail(529))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard

from msgspec import Struct

from ..errors import InvalidScript
from .model_request import ModelRequest

Matcher: TypeAlias = Callable[[ModelRequest], bool]


class Text(Struct, frozen=True):
    text: str
    chunk: int = 24
    delay: float = 0.0


class Thinking(Struct, frozen=True):
    text: str
    signature: str = "c2NyaXB0ZWQ="


class ToolUse(Struct, frozen=True):
    name: str
    input: dict[str, Any]
    id: str | None = None


class RawBlock(Struct, frozen=True):
    """Any content block, as the API would send it whole."""

    block: dict[str, Any]


class Pause(Struct, frozen=True):
    seconds: float


class Fail(Struct, frozen=True):
    """An error of the API in place of an answer."""

    status: int
    message: str
    kind: str
    retry_after: float | None = None


class Drop(Struct, frozen=True):
    """The connection breaks here, in the middle of the answer."""


class Hold:
    """The stream stops here until the test goes on: no sleeping, no guessing.

    hold = Hold()
    ... Turn("One block.", hold, "Another block.") ...
    await hold.reached.wait()
    hold.release()
    """

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def pass_through(self) -> None:
        self.reached.set()
        await self._released.wait()


Piece: TypeAlias = Text | Thinking | ToolUse | RawBlock | Pause | Fail | Drop | Hold

_ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def text(words: str, *, chunk: int = 24, delay: float = 0.0) -> Text:
    """Text, streamed in chunks of so many characters with so many seconds between them."""
    if not _is(words, str) or chunk < 1 or delay < 0:
        raise InvalidScript(
            f"text() takes a string, a chunk of 1 or more, no negative delay: {words!r}"
        )
    return Text(words, chunk, delay)


def thinking(words: str) -> Thinking:
    return Thinking(words)


def tool_use(name: str, whole: dict[str, Any] | None = None, /, **fields: Any) -> ToolUse:
    """A call of a tool: its input as a dict, as keywords, or as both."""
    if not _is(name, str) or not name or not _is(whole, dict, type(None)):
        raise InvalidScript(
            f"tool_use() takes a tool's name and its input, not {name!r}, {whole!r}"
        )
    return ToolUse(name, {**(whole or {}), **fields})


def block(**members: Any) -> RawBlock:
    if "type" not in members:
        raise InvalidScript("a block needs a type: block(type='redacted_thinking', data='…')")
    return RawBlock(members)


def pause(seconds: float) -> Pause:
    if not _is(seconds, int, float) or seconds < 0:
        raise InvalidScript(f"pause() takes seconds, 0 or more, not {seconds!r}")
    return Pause(seconds)


def fail(
    status: int, message: str = "scripted failure", *, retry_after: float | None = None
) -> Fail:
    if not _is(status, int) or not 400 <= status <= 599:
        raise InvalidScript(f"fail() takes an HTTP error status (400 to 599), not {status}")
    return Fail(status, message, _ERROR_KINDS.get(status, "api_error"), retry_after)


def drop() -> Drop:
    return Drop()


class Turn:
    """One answer of the model. A plain string is text. `when` must hold for the request."""

    def __init__(
        self, *pieces: Piece | str, when: Matcher | None = None, stop_reason: str | None = None
    ) -> None:
        if not pieces:
            raise InvalidScript("a Turn needs at least one piece, such as Turn('Done.')")
        self.pieces: list[Piece] = [_as_piece(piece) for piece in pieces]
        self.when = when
        calls = any(isinstance(piece, ToolUse) for piece in self.pieces)
        self.stop_reason = stop_reason or ("tool_use" if calls else "end_turn")
        if any(isinstance(piece, Fail) for piece in self.pieces[:-1]):
            raise InvalidScript("nothing can follow fail() in a Turn: the answer ends there")
        if when is not None and not callable(when):
            raise InvalidScript(f"when= takes a matcher, such as says('words'), not {when!r}")

    @property
    def failure(self) -> Fail | None:
        """The error that is answered instead, if nothing is said before it."""
        said = [piece for piece in self.pieces if not isinstance(piece, Pause | Hold)]
        return said[0] if said and isinstance(said[0], Fail) else None


#: A turn that is made from what the model is sent, where it depends on that: an id in a result.
MakeTurn: TypeAlias = "Callable[[ModelRequest], Turn | str]"


class Conversation:
    """Turns for the requests that `when` picks: a child's, beside its parent's.

    The first conversation that matches plays its next turn. `then` answers whatever comes after
    the last turn; without it that is an error of the test. A function in place of a turn is given
    the request, and makes the turn.
    """

    def __init__(
        self,
        turns: Sequence[Turn | str | MakeTurn],
        *,
        when: Matcher | None = None,
        then: Turn | str | MakeTurn | None = None,
    ) -> None:
        if isinstance(turns, str) or not isinstance(turns, Sequence):
            raise InvalidScript(f"a script is a list of Turns or strings, not {turns!r}")
        if when is not None and not callable(when):
            raise InvalidScript(f"when= takes a matcher, such as says('words'), not {when!r}")
        self.turns = [turn if _makes(turn) else _as_turn(turn) for turn in turns]
        self.when = when
        self.then = then if then is None or _makes(then) else _as_turn(then)
        self.played = 0

    def next_turn(self, request: ModelRequest) -> Turn | None:
        """The turn that is due; `played` is to be counted up once it is sent."""
        due = self.turns[self.played] if self.played < len(self.turns) else self.then
        return due if isinstance(due, Turn | None) else _as_turn(due(request))


def says(words: str) -> Matcher:
    """The newest prompt contains these words."""
    return lambda request: words in request.prompt


def mentions(words: str) -> Matcher:
    """The words stand anywhere in the conversation, the system prompt included."""
    return lambda request: words in request.everything


def offers(tool: str) -> Matcher:
    """The model is offered this tool."""
    return lambda request: tool in request.tools


def has_image(request: ModelRequest) -> bool:
    """The model is shown an image, in a prompt or in a tool's result."""
    return request.images > 0


def _is(value: object, *kinds: type) -> bool:
    # Scripts are written by hand, often without a type checker: what it would say is said here.
    return isinstance(value, kinds)


def _as_piece(piece: Piece | str) -> Piece:
    if isinstance(piece, str):
        return Text(piece)
    if isinstance(piece, Piece):
        return piece
    raise InvalidScript(f"a Turn holds strings and pieces (text, tool_use, …), not {piece!r}")


def _makes(turn: object) -> TypeGuard[MakeTurn]:
    return callable(turn)


def _as_turn(turn: Turn | str | MakeTurn) -> Turn:
    if isinstance(turn, str):
        return Turn(turn)
    if isinstance(turn, Turn):
        return turn
    raise InvalidScript(f"a script is a list of Turns or strings, not {turn!r}")
