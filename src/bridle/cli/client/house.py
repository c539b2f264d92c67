"""The server itself: how it is, who may come in, what is kept there beside sessions."""

from __future__ import annotations

from typing import Any

from .talk import Talk


class HouseOf:
    """All of a server that is about no session."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def health(self) -> dict[str, Any]:
        return await self._talk.ask("GET", "/health", dict[str, Any])

    async def ticket(self) -> str:
        """An address that lets a browser in, once."""
        return str((await self._talk.ask("POST", "/tickets", dict[str, Any]))["url"])
