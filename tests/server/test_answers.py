"""Every error becomes a problem, whoever raised it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import httpx
import msgspec
import pytest
from litestar import Litestar, get, post
from litestar.params import FromQuery, JSONBody
from msgspec import Struct

from bridle import errors
from bridle.approvals import errors as approvals
from bridle.approvals.model import Person
from bridle.errors import BridleError
from bridle.server.answers import answer, problem_of
from bridle.server.problems import Problem, ProblemDetails, sentence


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    count: int = 0


class Body(Struct, forbid_unknown_fields=True):
    name: str
    inner: Inner = Inner()


@post("/body")
async def take_body(data: JSONBody[Body]) -> Body:
    return data


@get("/number")
async def take_number(limit: FromQuery[int]) -> int:
    return limit


@get("/mistake")
async def mistake() -> None:
    raise RuntimeError("a secret that nobody may see")


@get("/session")
async def unknown_session() -> None:
    raise errors.UnknownSession("s-of-somebody-else")


@get("/not-possible")
async def not_possible() -> None:
    raise errors.NotPossible("send", "stopped", "resume it first", "s1")


@get("/by-hand")
async def by_hand() -> None:
    raise Problem(418, "teapot", "It is one.", "Take another.", {"is": "a pot"}, {"x-pot": "1"})


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    routes = [take_body, take_number, mistake, unknown_session, not_possible, by_hand]
    app = Litestar(routes, exception_handlers={Exception: answer}, logging_config=None)
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def told(response: httpx.Response) -> ProblemDetails:
    assert response.headers["content-type"] == "application/problem+json"
    problem = msgspec.json.decode(response.content, type=ProblemDetails)
    assert problem.status == response.status_code
    assert problem.title
    assert problem.detail.endswith(".")
    assert problem.remedy.endswith(".")
    return problem


async def test_an_unknown_field_is_refused_with_its_name(client: httpx.AsyncClient) -> None:
    problem = told(await client.post("/body", json={"name": "x", "colour": "red"}))
    assert (problem.status, problem.code) == (400, "unknown_field")
    assert "`colour`" in problem.detail
    assert problem.about == {"field": "colour"}
    problem = told(await client.post("/body", json={"name": "x", "inner": {"colour": 1}}))
    assert problem.about == {"field": "inner.colour"}


@pytest.mark.parametrize(
    ("body", "field"),
    [({"name": 1}, "name"), ({"name": "x", "inner": {"count": []}}, "inner.count")],
)
async def test_a_wrong_type_is_refused_with_its_path(
    client: httpx.AsyncClient, body: object, field: str
) -> None:
    problem = told(await client.post("/body", json=body))
    assert (problem.status, problem.code) == (400, "invalid_body")
    assert problem.about == {"field": field}
    assert field in problem.detail


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"", b"[]", b"null", b"[" * 100_000])
async def test_a_body_that_is_none_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    problem = told(await client.post("/body", content=body, headers=headers))
    assert (problem.status, problem.code) == (400, "invalid_body")


async def test_a_wrong_parameter_is_refused_with_its_name(client: httpx.AsyncClient) -> None:
    for query in ({"limit": "many"}, {}):
        problem = told(await client.get("/number", params=query))
        assert (problem.status, problem.code) == (400, "invalid_parameter")
        assert "limit" in problem.detail.lower()


async def test_what_is_not_there_and_what_is_not_done_are_told(client: httpx.AsyncClient) -> None:
    assert told(await client.get("/nowhere")).code == "not_found"
    response = await client.delete("/number")
    assert told(response).code == "method_not_allowed"
    assert "GET" in response.headers["allow"]


async def test_of_a_mistake_nothing_is_told_and_all_is_logged(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        response = await client.get("/mistake")
    problem = told(response)
    assert (problem.status, problem.code) == (500, "internal")
    assert "secret" not in response.text
    assert "RuntimeError" not in response.text
    assert "a secret that nobody may see" in caplog.text


async def test_an_unknown_session_is_not_named(client: httpx.AsyncClient) -> None:
    """Who asks by a name that they should not know would learn the id."""
    response = await client.get("/session")
    assert told(response).code == "unknown_session"
    assert "s-of-somebody-else" not in response.text


async def test_what_can_be_done_instead_is_told(client: httpx.AsyncClient) -> None:
    problem = told(await client.get("/not-possible"))
    assert (problem.status, problem.code) == (409, "not_possible")
    assert problem.remedy == "Resume it first."
    assert problem.about == {"operation": "send", "state": "stopped", "session": "s1"}


async def test_a_problem_is_told_as_it_is(client: httpx.AsyncClient) -> None:
    response = await client.get("/by-hand")
    problem = told(response)
    assert (problem.code, problem.about) == ("teapot", {"is": "a pot"})
    assert response.headers["x-pot"] == "1"


def kinds(root: type[BridleError]) -> Iterator[type[BridleError]]:
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


SAMPLES: dict[type[BridleError], BridleError] = {
    errors.InvalidPolicy: errors.InvalidPolicy("a.toml", 3, "no such preset"),
    errors.InvalidRule: errors.InvalidRule("Bash(", "no end"),
    errors.LimitReached: errors.LimitReached("depth", 3, "s1", "stop one"),
    errors.BudgetTooSmall: errors.BudgetTooSmall("turns", 5, 2, "s1", "only 2 turns are left"),
    errors.InvalidLimit: errors.InvalidLimit("turns", -1, "it is negative"),
    errors.MissingVariables: errors.MissingVariables({"KEY": "given by hand"}),
    errors.RequestTimedOut: errors.RequestTimedOut("interrupt", 5),
    errors.DiskFull: errors.DiskFull("no space"),
    approvals.MayNotDecide: approvals.MayNotDecide(Person("me", "x"), "this", "it is its own"),
    approvals.InvalidDecision: approvals.InvalidDecision("a1", "it is a plan"),
    approvals.UnknownRule: approvals.UnknownRule("r1"),
}


@pytest.mark.parametrize("error", SAMPLES.values(), ids=lambda error: type(error).__name__)
def test_an_error_of_ours_is_told_with_its_own_code(error: BridleError) -> None:
    problem = problem_of(error)
    assert problem.code not in ("internal", "not_possible")
    assert msgspec.json.decode(problem.body, type=ProblemDetails).remedy


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("no such folder", "No such folder."),
        ("well, no", "Well, no."),
        ("team:3: no such rule", "team:3: no such rule."),
        ("fixer-2 is idle", "fixer-2 is idle."),
        ("a.toml can't be read", "a.toml can't be read."),
        ("`limit`: too large", "`limit`: too large."),
        ("closed", "Closed."),
    ],
)
def test_a_sentence_has_a_capital_letter_unless_it_begins_with_a_name(
    words: str, told: str
) -> None:
    assert sentence(words) == told
