"""Policies that are kept, rules that are remembered, and folders that are trusted."""

from __future__ import annotations

from urllib.parse import quote

from ...approvals.remember import RememberedRule
from ...approvals.trust import Trust
from ...server.shapes.policies import AnyPolicy, PolicyText, PolicyView
from ...server.shapes.trust import SurveyView, Trusting
from .talk import Talk


class PoliciesOf:
    """The policies of one server, and the rules that people had remembered."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def get(self, name: str) -> AnyPolicy:
        return await self._talk.ask("GET", _at(name), AnyPolicy)  # type: ignore[arg-type]

    async def put(self, name: str, text: str, revision: int | None = None) -> PolicyView:
        """With a revision, only if it is still at that one; 0 is none."""
        body = PolicyText(text=text, revision=revision)
        return await self._talk.ask("PUT", _at(name), PolicyView, body=body)

    async def delete(self, name: str) -> None:
        await self._talk.send("DELETE", _at(name))

    async def rules(self, session: str = "") -> list[RememberedRule]:
        params = {"session": session} if session else {}
        return await self._talk.ask("GET", "/rules", list[RememberedRule], params=params)

    async def forget(self, rule: str, session: str = "") -> None:
        params = {"session": session} if session else {}
        await self._talk.send("DELETE", f"/rules/{quote(rule, safe='')}", params=params)

    async def list(self) -> list[AnyPolicy]:
        return await self._talk.ask("GET", "/policies", list[AnyPolicy])


class TrustOf:
    """The folders that people trust."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def list(self) -> list[Trust]:
        return await self._talk.ask("GET", "/trust", list[Trust])

    async def survey(self, folder: str) -> SurveyView:
        """What it would bring."""
        params = {"folder": folder}
        return await self._talk.ask("GET", "/trust/survey", SurveyView, params=params)

    async def add(self, folder: str, digest: str) -> Trust:
        """Trust it with just what was shown."""
        body = Trusting(folder=folder, digest=digest)
        return await self._talk.ask("PUT", "/trust", Trust, body=body)

    async def remove(self, folder: str) -> None:
        await self._talk.send("DELETE", "/trust", params={"folder": folder})


def _at(name: str) -> str:
    return f"/policies/{quote(name, safe='')}"
