"""One request: what is repeated when the connection breaks, and how refusals are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from bridle.cli.client import talk
from bridle.cli.client.approvals import ApprovalsOf
from bridle.cli.client.policies import PoliciesOf
from bridle.cli.client.sessions import SessionsOf
from bridle.cli.client.talk import Talk
from bridle.cli.errors import CommandError, NoServer, NotFound, Refused
from bridle.server.examples import APPROVAL


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "PAUSES", (0.0, 0.0))


class Server:
    """Answers, or errors, one after the other."""

    def __init__(self, *answers: httpx.Response | Callable[[str], Exception]) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer), base_url="http://x")
        self.talk = Talk(http, "there")

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.requests]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, httpx.Response):
            return answer
        raise answer("oh")


def ok(value: Any = None) -> httpx.Response:
    return httpx.Response(200, json=value)


async def test_what_has_a_key_is_repeated_with_the_same_key_until_it_comes_through() -> None:
    server = Server(httpx.RemoteProtocolError, httpx.ConnectError, ok({"a": 1}))
    assert await server.talk.ask("POST", "/x", dict[str, int], body={}, key="k") == {"a": 1}
    assert server.keys == ["k", "k", "k"]


async def test_reading_is_repeated_and_given_up_after_some_tries() -> None:
    server = Server(*[httpx.ReadError] * 3)
    with pytest.raises(NoServer, match="the connection to there broke: oh; see with `bridle ps`"):
        await server.talk.ask("GET", "/x", dict[str, int])
    assert len(server.keys) == 3


async def test_what_might_be_done_twice_is_not_repeated() -> None:
    server = Server(httpx.ReadError, ok())
    with pytest.raises(NoServer):
        await server.talk.send("POST", "/x")
    assert len(server.keys) == 1


async def test_nobody_there_is_told_at_once() -> None:
    server = Server(httpx.ConnectError, ok())
    with pytest.raises(NoServer, match="no server answers at there; start one"):
        await server.talk.send("GET", "/x")
    assert len(server.keys) == 1


async def test_a_server_that_takes_too_long_is_told() -> None:
    with pytest.raises(CommandError, match="did not answer in time; try again"):
        await Server(httpx.ReadTimeout).talk.send("GET", "/x")


async def test_a_refusal_is_told_in_the_servers_words() -> None:
    problem = {"detail": "No.", "remedy": "Do this.", "code": "no", "about": {"x": 1}}
    with pytest.raises(Refused, match="No; do this") as raised:
        await Server(httpx.Response(409, json=problem)).talk.send("POST", "/x")
    assert (raised.value.code, raised.value.about, raised.value.exit_code) == ("no", {"x": 1}, 5)


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_what_is_no_problem_of_ours_is_told_by_its_status(status: int) -> None:
    with pytest.raises(Refused, match=f"the server answered with status {status}"):
        await Server(httpx.Response(status, text="<html>")).talk.send("GET", "/x")


async def test_an_answer_of_another_shape_is_told() -> None:
    with pytest.raises(CommandError, match=r"can't be read: .*; use a `bridle` of"):
        await Server(ok(["x"])).talk.ask("GET", "/x", dict[str, int])


async def test_the_revision_of_a_policy_that_is_not_there_yet_is_sent_as_zero() -> None:
    server = Server(httpx.Response(409, json={"code": "changed", "detail": "It is there."}))
    with pytest.raises(Refused):
        await PoliciesOf(server.talk).put("team", 'preset = "ask"', 0)
    [request] = server.requests
    assert json.loads(request.content) == {"text": 'preset = "ask"', "revision": 0}


async def test_a_transcript_is_read_from_its_beginning() -> None:
    server = Server(ok({"entries": [], "count": 0, "seq": 0}))
    await SessionsOf(server.talk).transcript("fixer", after=0, limit=5)
    [request] = server.requests
    assert dict(request.url.params) == {"after": "0", "limit": "5"}


@pytest.mark.parametrize(("length", "is_found"), [(2, False), (3, True)])
async def test_three_characters_of_an_approvals_id_are_enough(length: int, is_found: bool) -> None:
    unknown = httpx.Response(404, json={"code": "unknown_approval", "detail": "No."})
    page = ok({"items": [msgspec.to_builtins(APPROVAL)], "next": None})
    server = Server(unknown, page, ok(msgspec.to_builtins(APPROVAL)) if is_found else page)
    asked = ApprovalsOf(server.talk).get(APPROVAL.id[:length])
    if is_found:
        assert await asked == APPROVAL
        assert server.requests[-1].url.path.endswith(f"/approvals/{APPROVAL.id}")
    else:
        with pytest.raises(NotFound, match=f"there is no approval {APPROVAL.id[:length]}"):
            await asked
