"""Approvals behind a server, for one who decides by keys: what others decide meanwhile is told, and
a server that is away is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from bridle.approvals import AlreadyDecided, Approval, Approve, Person, UnknownApproval
from bridle.approvals.model import Decided
from bridle.cli.client import Client
from bridle.cli.terminal import remote
from bridle.cli.terminal.remote import RemoteDocket
from bridle.server.examples import APPROVAL
from bridle.views import entries

from .windows import LIMIT

ME, BOB = Person("me", "terminal"), Person("bob", "web")
DENIED = replace(APPROVAL, status="denied", ending=Decided(BOB, Approve(), APPROVAL.created + 1))


class Server:
    """One with some approvals, which may be away."""

    def __init__(self) -> None:
        self.approvals = {APPROVAL.id: APPROVAL}
        self.is_away: Callable[[], bool] = lambda: False
        self.http = httpx.AsyncClient(
            transport=httpx.MockTransport(self._answer), base_url="http://x"
        )
        self.docket = RemoteDocket(Client(self.http, "there"), "greeter")

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.is_away():
            raise httpx.ConnectError("nobody there")
        _, _, rest = request.url.path.partition("/approvals")
        _, id_, *what = [*rest.split("/"), ""]
        found = self.approvals.get(id_)
        if not id_:
            return _json({"items": list(self.approvals.values()), "next": None})
        if found is None:
            return _problem(404, "unknown_approval")
        if what[0] == "decide" and found.status != "pending":
            return _problem(409, "already_decided")
        return _json(found)


def _json(value: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, content=msgspec.json.encode(value))


def _problem(status: int, code: str) -> httpx.Response:
    return _json({"detail": "No.", "code": code}, status)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    async with server.http, asyncio.timeout(LIMIT):
        yield server


def entry(approval: Approval) -> entries.Approval:
    """What a transcript says of it."""
    decision = entries.Decision(id=approval.id, status=approval.status)
    place = {"position": 1, "seq": 1, "changed": 1, "at": 0.0}
    return entries.Approval(decision=decision, about="tool", tool="Bash", input={}, **place)  # type: ignore[arg-type]


async def test_what_is_asked_and_what_was_decided_elsewhere_is_told_in_turn(
    server: Server,
) -> None:
    watch = server.docket.watch()
    server.docket.saw(entry(APPROVAL))
    server.docket.saw(entry(APPROVAL))
    [asked] = await anext(watch)
    assert (asked.id, asked.status, asked.session) == (APPROVAL.id, "pending", "greeter")
    server.approvals[APPROVAL.id] = DENIED
    server.docket.saw(entry(DENIED))
    [over] = await anext(watch)
    assert over.status == "denied"


async def test_who_is_being_asked_is_told_when_somebody_else_has_decided(server: Server) -> None:
    server.docket.saw(entry(APPROVAL))
    waiting = asyncio.ensure_future(server.docket.wait(APPROVAL.id))
    await asyncio.sleep(0)
    assert not waiting.done()
    server.approvals[APPROVAL.id] = DENIED
    server.docket.saw(entry(DENIED))
    assert (await waiting).status == "denied"


async def test_who_decides_a_moment_too_late_is_told_who_was_first(server: Server) -> None:
    server.approvals[APPROVAL.id] = DENIED
    with pytest.raises(AlreadyDecided, match="bob"):
        await server.docket.decide(APPROVAL.id, Approve(), by=ME)


async def test_what_is_gone_is_passed_over_and_the_next_is_asked(server: Server) -> None:
    watch = server.docket.watch()
    server.docket.is_pending("0" * 20)
    server.docket.is_pending(APPROVAL.id)
    assert [one.id for one in await anext(watch)] == [APPROVAL.id]
    with pytest.raises(UnknownApproval):
        await server.docket.get("0" * 20)


async def test_while_the_server_is_away_it_is_asked_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "RETRY_SECONDS", 0.0)
    away = iter([True, True, True])
    server.is_away = lambda: next(away, False)
    assert (await server.docket.get(APPROVAL.id)).id == APPROVAL.id
    assert next(away, None) is None
