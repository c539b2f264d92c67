"""Sessions: made, told, stopped, looked at and followed.

A session is named by its name, its id or a beginning of its id that no other has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from ...ids import new_uuid
from ...protocol.outbound import WithMentions
from ...server.shapes.events import EventView, TranscriptPage
from ...server.shapes.pages import Page
from ...server.shapes.sessions import (
    Forking,
    InterruptedView,
    LimitsGiven,
    Modelling,
    Moding,
    NewSession,
    PromptGiven,
    Prompting,
    Restarting,
    Sent,
    SessionView,
    Stopping,
    TextPart,
)
from ..errors import NotFound, Refused
from .sse import ServerEvent
from .talk import Talk

if TYPE_CHECKING:
    from ...server.shapes.policies import PolicyChosen

T = TypeVar("T")

Changes: TypeAlias = Literal["limits", "mode", "model", "policy"]

#: The shortest beginning of an id that is taken for one.
SHORTEST = 3


class SessionsOf:
    """The sessions of one server."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    # --- looking

    async def list(self, **where: str | Sequence[str]) -> list[SessionView]:
        """All of them, the oldest first; `state`, `label`, `parent` and `folder` choose. In one of
        several states, with all of several labels."""
        return [one async for one in self._talk.pages("/sessions", SessionView, where)]

    async def get(self, session: str) -> SessionView:
        return await self._of(session, "GET", "", SessionView)

    async def events(
        self, session: str, *, after: int = 0, limit: int = 500, kinds: str = ""
    ) -> Page[EventView]:
        params = {"after": str(after), "limit": str(limit)} | ({"kinds": kinds} if kinds else {})
        return await self._of(session, "GET", "/events", Page[EventView], params=params)

    async def event(self, session: str, seq: int) -> EventView:
        """One of them, whole."""
        return await self._of(session, "GET", f"/events/{seq}", EventView)

    async def transcript(
        self,
        session: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 200,
    ) -> TranscriptPage:
        """A part of it: the first behind `after`, else the last ahead of `before` or of the end."""
        given = {"after": after, "before": before, "limit": limit}
        params = {name: str(value) for name, value in given.items() if value is not None}
        return await self._of(session, "GET", "/transcript", TranscriptPage, params=params)

    # --- following: over breaks and restarts of the server, each event once

    async def follow_transcript(
        self,
        session: str,
        *,
        last_id: str = "",
        on_break: Callable[[str], None] = lambda _: None,
    ) -> AsyncIterator[ServerEvent]:
        """`entry` (added or changed) and `delta` (a piece of what is being said)."""
        found = (await self.get(session)).id
        async for event in self._talk.follow(
            f"/sessions/{found}/transcript", {}, last_id, on_break
        ):
            yield event

    async def follow_events(
        self,
        session: str,
        *,
        after: int = 0,
        on_break: Callable[[str], None] = lambda _: None,
    ) -> AsyncIterator[ServerEvent]:
        """Each event of its stream, as `EventView`; deltas have no id."""
        found = (await self.get(session)).id
        last = str(after) if after else ""
        async for event in self._talk.follow(f"/sessions/{found}/events", {}, last, on_break):
            yield event

    # --- doing

    async def create(self, new: NewSession, key: str = "") -> SessionView:
        key, new = key or new_uuid(), replace(new, prompt=_given(new.prompt))
        return await self._talk.ask("POST", "/sessions", SessionView, body=new, key=key)

    async def send(self, session: str, prompt: PromptGiven, key: str = "") -> str:
        """The uuid of the prompt, once it is written down."""
        key, body = key or new_uuid(), Prompting(prompt=_given(prompt))
        sent = await self._of(session, "POST", "/send", Sent, body=body, key=key)
        return sent.uuid

    async def interrupt(self, session: str) -> InterruptedView:
        """What the CLI answered."""
        return await self._of(session, "POST", "/interrupt", InterruptedView)

    async def stop(self, session: str, words: str = "") -> SessionView:
        return await self._of(session, "POST", "/stop", SessionView, body=Stopping(words=words))

    async def start(
        self,
        session: str,
        prompt: PromptGiven | None = None,
        env: Mapping[str, str] | None = None,
    ) -> SessionView:
        """With a new conversation."""
        body = Restarting(prompt=_given(prompt), env=dict(env or {}))
        return await self._of(session, "POST", "/start", SessionView, body=body)

    async def resume(
        self,
        session: str,
        prompt: PromptGiven | None = None,
        env: Mapping[str, str] | None = None,
    ) -> SessionView:
        """Where its conversation was."""
        body = Restarting(prompt=_given(prompt), env=dict(env or {}))
        return await self._of(session, "POST", "/resume", SessionView, body=body)

    async def fork(
        self, session: str, prompt: PromptGiven | None = None, name: str = ""
    ) -> SessionView:
        body, key = Forking(prompt=_given(prompt), name=name), new_uuid()
        return await self._of(session, "POST", "/fork", SessionView, body=body, key=key)

    async def pause(self, session: str) -> SessionView:
        return await self._of(session, "POST", "/pause", SessionView)

    async def unpause(self, session: str) -> SessionView:
        return await self._of(session, "POST", "/unpause", SessionView)

    async def change(
        self, session: str, what: Changes, to: LimitsGiven | Moding | Modelling | PolicyChosen
    ) -> str:
        """Its limits, mode, model or policy, from now on; gives what is to be known of that.
        `session` is a whole id or a name."""
        try:
            told = await self._talk.ask("PUT", _at(session, f"/{what}"), dict[str, Any], body=to)
            return str(told.get("note", ""))
        except Refused as refused:
            raise refused.called(session) from None

    async def delete(self, session: str) -> None:
        found = (await self.get(session)).id
        try:
            await self._talk.send("DELETE", f"/sessions/{found}")
        except Refused as refused:
            raise refused.called(session) from None

    # --- names

    async def _of(self, session: str, method: str, path: str, shape: type[T], **options: Any) -> T:
        """Asked with the name as it is; where nobody has it, as the beginning of an id."""
        check_name(session, "session", "list them with `bridle ps --all`")
        try:
            return await self._talk.ask(method, _at(session, path), shape, **options)
        except Refused as refused:
            if refused.code != "unknown_session":
                raise refused.called(session) from None
        found = await self._begins_with(session)
        return await self._talk.ask(method, _at(found, path), shape, **options)

    async def _begins_with(self, start: str) -> str:
        found = [one.id for one in await self.list() if one.id.startswith(start)]
        if len(found) == 1 and len(start) >= SHORTEST:
            return found[0]
        if len(found) > 1:
            words = f"{len(found)} sessions have ids that begin with {start}"
            raise NotFound(words, "give more of it")
        raise NotFound(f"there is no session {start}", "list them with `bridle ps --all`")


def check_name(name: str, what: str, remedy: str) -> None:
    """What can't be a part of an address is nobody's name."""
    if not name or "/" in name or name in (".", ".."):
        raise NotFound(f"there is no {what} {name!r}", remedy)


def _at(session: str, path: str) -> str:
    return f"/sessions/{quote(session, safe='')}{path}"


_P = TypeVar("_P", PromptGiven, PromptGiven | None)


def _given(prompt: _P) -> _P:
    return [TextPart(str(prompt), mentions=True)] if isinstance(prompt, WithMentions) else prompt
