"""One request: what is repeated when the connection breaks, and how refusals are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from bridle.cli.client import talk
from bridle.cli.client.talk import Talk
from bridle.cli.errors import CommandError, NoServer, Refused


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "PAUSES", (0.0, 0.0))


class Server:
    """Answers, or errors, one after the other."""

    def __init__(self, *answers: httpx.Response | Callable[[str], Exception]) -> None:
        self._answers = list(answers)
        self.keys: list[str | None] = []
        http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer), base_url="http://x")
        self.talk = Talk(http, "there")

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers.get("Idempotency-Key"))
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
