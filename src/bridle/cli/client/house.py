"""The server itself: how it is, who may come in, what was used, and whether its log is whole."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ...server.shapes.conversations import ConversationView
from ...server.shapes.house import (
    AcceptedView,
    Accepting,
    AuditView,
    Released,
    UsageView,
    Verifying,
)
from .talk import Talk


class HouseOf:
    """All of a server that is about no one session."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def ticket(self, *, is_here: bool = False) -> str:
        """An address that lets a browser in, once; with `is_here`, one of the server's machine."""
        params = {"is_here": "true"} if is_here else {}
        return (await self._talk.ask("POST", "/tickets", dict[str, str], params=params))["url"]

    async def release(self) -> bool:
        """Let all go on that was held; whether anything was."""
        return (await self._talk.ask("POST", "/fleet/release", Released)).was_held

    async def usage(self, *, by_model: bool = False) -> UsageView:
        params = {"models": "true"} if by_model else {}
        return await self._talk.ask("GET", "/usage", UsageView, params=params)

    async def conversations(self, folder: str) -> list[ConversationView]:
        """What Claude Code has stored of a folder by itself."""
        params = {"folder": folder}
        return await self._talk.ask("GET", "/conversations", list[ConversationView], params=params)

    async def verify(self, session: str | None = None, anchors: str | None = None) -> AuditView:
        body = Verifying(session=session, anchors=anchors)
        return await self._talk.ask("POST", "/audit/verify", AuditView, body=body)

    async def accept(self, stream: str | None = None) -> dict[str, str]:
        """What did not fit its anchors, by stream, and is accepted now."""
        body = Accepting(stream=stream)
        return (await self._talk.ask("POST", "/audit/accept", AcceptedView, body=body)).accepted

    # --- tokens: never their texts, but for a new one

    async def tokens(self) -> list[dict[str, Any]]:
        return await self._talk.ask("GET", "/tokens", list[dict[str, Any]])

    async def new_token(self, role: str, name: str, session: str = "") -> dict[str, Any]:
        """`text` is the token; `token` is what is known of it."""
        body = {"role": role, "name": name, "session": session}
        return await self._talk.ask("POST", "/tokens", dict[str, Any], body=body)

    async def new_external(self, name: str, external: dict[str, Any]) -> dict[str, Any]:
        """The token of an agent that is not ours, with the session that is made for it."""
        body = {"role": "agent", "name": name, "external": external}
        return await self._talk.ask("POST", "/tokens", dict[str, Any], body=body)

    async def revoke(self, token: str) -> None:
        await self._talk.send("DELETE", f"/tokens/{quote(token, safe='')}")
