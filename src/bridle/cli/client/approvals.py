"""Approvals: what waits to be decided, why it is asked, and the deciding.

An approval is named by its id, or by a beginning of it that no other has.
"""

from __future__ import annotations

from urllib.parse import quote

from ...approvals.model import Approval
from ...server.shapes.approvals import Explanation
from ...server.shapes.decisions import Choice, Deciding
from ..errors import SHORT, NotFound, NotNow, Refused
from .sessions import SHORTEST, check_name
from .talk import Talk


class ApprovalsOf:
    """The approvals of one server."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def list(self, **where: str) -> list[Approval]:
        """The oldest first; `status` and `session` choose. Large inputs are cut."""
        return [one async for one in self._talk.pages("/approvals", Approval, where)]

    async def get(self, approval: str) -> Approval:
        """With its whole input."""
        check_name(approval, "approval", "list them with `bridle approvals`")
        try:
            return await self._talk.ask("GET", _at(approval), Approval)
        except Refused as refused:
            if refused.code != "unknown_approval":
                raise
        return await self._talk.ask("GET", _at(await self._begins_with(approval)), Approval)

    async def explain(self, approval: str) -> Explanation:
        """Why it is asked, and the rules that "always" would add."""
        return await self._talk.ask("GET", _at(approval, "/explain"), Explanation)

    async def decide(self, approval: str, choice: Choice, shown: str | None = None) -> Approval:
        """`approval` is the whole id. `shown` is its digest, where the decider saw all of it."""
        body = Deciding(choice=choice, shown=shown)
        try:
            return await self._talk.ask("POST", _at(approval, "/decide"), Approval, body=body)
        except Refused as refused:
            if refused.code != "already_decided":
                raise
            words = refused.words.replace(approval, approval[:SHORT])
            raise NotNow(words, f"see `bridle approvals show {approval[:SHORT]}`") from None

    async def _begins_with(self, start: str) -> str:
        for status in ("pending", ""):
            where = {"status": status} if status else {}
            found = [one.id for one in await self.list(**where) if one.id.startswith(start)]
            if len(found) == 1 and len(start) >= SHORTEST:
                return found[0]
            if len(found) > 1:
                words = f"{len(found)} approvals have ids that begin with {start}"
                raise NotFound(words, "give more of it")
        raise NotFound(f"there is no approval {start}", "list them with `bridle approvals`")


def _at(approval: str, path: str = "") -> str:
    return f"/approvals/{quote(approval, safe='')}{path}"
