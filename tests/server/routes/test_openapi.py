"""The description of the API holds: no request brings the server down, and every answer is as told.

The house lives on a loop of its own, in a thread: schemathesis makes requests one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from bridle.errors import SupervisorError
from bridle.server.app import PREFIX, api_routes
from bridle.server.examples import ANSWERS, BODIES
from bridle.server.house import House, open_house
from bridle.server.openapi import _parts, _routes, describe
from tests.levels import tries
from tests.process.children import MARK
from tests.server.conftest import PERSON, client_of
from tests.supervisor.homes import ASKS, TURN, Home, asked

from .callers import READER, agent_of

T = TypeVar("T")

SCHEMA = schemathesis.openapi.from_dict(describe(api_routes()))
# Hundreds of wrong bodies each, made by a rule: the random ones find more in the same time.
SCHEMA.config.phases.coverage.enabled = False
#: It never ends.
ENDLESS = f"{PREFIX}/events"


class Hosted:
    """A house with sessions in it, and a person who calls."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.home = Home(folder, mark)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._stack = contextlib.AsyncExitStack()
        self.run(self._stack.__aenter__())
        self.house, self.client = self.run(self._stack.enter_async_context(self._opened()))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[House, httpx.AsyncClient]]:
        async with (
            self.home.open() as supervisor,
            open_house(self.home.folder, supervisor) as house,
            client_of(house, PERSON) as client,
        ):
            yield house, client

    async def there(self) -> None:
        """Have two sessions that live, one of which asks, and one that has ended."""
        supervisor = self.house.supervisor
        for name, steps in (("asks", ASKS), ("idle", TURN)):
            with contextlib.suppress(SupervisorError):
                if supervisor.get(name).state in ("idle", "running", "awaiting approval"):
                    continue
                await supervisor.stop(name)
                await supervisor.delete(name)
            if name not in {record.name for record in supervisor.list()}:
                made = await self.home.start(supervisor, *steps, name=name)
                if name == "asks":
                    await asked(supervisor, made.id)
        if "ended" not in {record.name for record in supervisor.list()}:
            await self.home.start(supervisor, *TURN, name="ended", start=False)

    async def approval(self) -> str:
        found = await self.house.supervisor.approvals.list()
        return found[-1].id if found else "none"

    def close(self) -> None:
        self.run(self._stack.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    folder, mark = tmp_path_factory.mktemp("api"), "schemathesis-of-bridle"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        patch.setenv("HOME", str(folder))
        patch.setenv("PATH", str(folder))  # no CLI but the one that is given is ever found
        hosted = Hosted(folder, mark)
        yield hosted
        hosted.close()
        assert hosted.home.end_all() == [], "left behind"


@SCHEMA.exclude(path=ENDLESS).parametrize()
@settings(
    max_examples=tries(2, 15),
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_it_is_described(case: schemathesis.Case[Any], hosted: Hosted) -> None:
    hosted.run(hosted.there())
    _aim(case, hosted)
    kwargs = case.as_transport_kwargs(base_url="http://localhost")
    kwargs["headers"]["Accept"] = "application/json"
    kwargs.pop("cookies", None)
    response = hosted.run(_sent(hosted.client, kwargs))
    case.validate_response(
        response,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )


def _aim(case: schemathesis.Case[Any], hosted: Hosted) -> None:
    """At what is there, three times of four: what was made up is mostly not."""
    names = {"session": ("asks", "idle", "ended"), "name": ("team", "ask"), "seq": (1, 2, 9)}
    names["approval"] = (hosted.run(hosted.approval()),)
    for name, there in names.items():
        made_up = (case.path_parameters or {}).get(name)
        if made_up is not None and len(str(made_up)) % 4:
            case.path_parameters[name] = there[len(str(made_up)) % len(there)]
    body = case.body if isinstance(case.body, dict) else {}
    if isinstance(body.get("folder"), str) and len(str(body)) % 4:
        body["folder"] = str(hosted.home.work)
    if isinstance(body.get("policy"), str) and len(str(body)) % 4:
        body["policy"] = "edits"
    if "folder" in (case.query or {}) and len(str(case.query)) % 4:
        case.query["folder"] = str(hosted.home.work)


async def _sent(client: httpx.AsyncClient, kwargs: dict[str, Any]) -> httpx.Response:
    data = kwargs.pop("data", None)
    async with asyncio.timeout(30):
        return await client.request(content=data, **kwargs)


# --- what it says


def test_every_route_says_whom_it_takes_and_which_errors_can_come() -> None:
    told = describe(api_routes())
    assert told["openapi"] == "3.1.0"
    assert set(told["components"]["securitySchemes"]) == {"bearer", "cookie"}
    operations = [one for path in told["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) > 40
    for one in operations:
        assert "\n\nTakes " in one["description"]
        assert one["tags"][0] in {tag["name"] for tag in told["tags"]}
        assert ("401" in one["responses"]) == bool(one["security"])
        problem = one["responses"]["400"]["content"]["application/problem+json"]
        assert problem["schema"] == {"$ref": "#/components/schemas/ProblemDetails"}
    person = told["paths"][f"{PREFIX}/sessions"]["post"]
    assert person["description"].endswith("Takes a person's token.")
    assert "422" in person["responses"]
    assert told["paths"][f"{PREFIX}/health"]["get"]["description"].endswith("Takes no token.")
    stream = told["paths"][ENDLESS]["get"]["responses"]["200"]["content"]
    assert set(stream) == {"text/event-stream"}
    both = told["paths"][f"{PREFIX}/sessions/{{session}}/events"]["get"]["responses"]["200"]
    assert set(both["content"]) == {"application/json", "text/event-stream"}


@pytest.mark.slow
def test_every_body_and_every_main_answer_has_an_example_that_fits() -> None:
    for route in _routes(api_routes()):
        if route.body is not None:
            example = BODIES[route.name]
            assert msgspec.json.decode(msgspec.json.encode(example), type=route.body) == example
    examples = {route.name: route.answer for route in _routes(api_routes()) if route.answer}
    assert set(ANSWERS) <= set(examples)
    for name, answer in ANSWERS.items():
        kinds = _parts(examples[name])
        assert any(_fits(answer, kind) for kind in kinds), name


def _fits(answer: object, kind: Any) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(answer), type=kind)
    except msgspec.ValidationError:
        return False
    return True


def test_the_shapes_have_short_names_that_lead_somewhere() -> None:
    text = msgspec.json.encode(describe(api_routes())).decode()
    shapes = set(msgspec.json.decode(text)["components"]["schemas"])
    assert not [name for name in shapes if "." in name]
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= shapes


async def test_it_is_given_to_people_and_readers(house: House) -> None:
    for caller, status in ((PERSON, 200), (READER, 200)):
        async with client_of(house, caller) as client:
            answer = await client.get("/openapi.json")
            assert answer.status_code == status
            assert answer.json()["info"]["title"] == "Bridle"
    async with agent_of(house, "x") as agent:
        assert (await agent.get("/openapi.json")).status_code == 403
