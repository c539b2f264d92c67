"""The API holds what its description says: random requests bring no server down, and every answer
is as described.

The house lives on a loop of its own, in a thread: schemathesis makes requests one after the other.
It and its description of the API take a second to load, so only the tests themselves load them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bridle.errors import SupervisorError
from bridle.server.app import PREFIX, api_routes
from bridle.server.house import House, open_house
from bridle.server.openapi import describe
from tests.levels import tries
from tests.process.children import MARK
from tests.server.conftest import PERSON, client_of
from tests.supervisor.homes import ASKS, TURN, Home, asked

if TYPE_CHECKING:
    import schemathesis

T = TypeVar("T")

#: It never ends.
ENDLESS = f"{PREFIX}/events"
#: The routes are tried in so many tests, which may run at the same time.
PARTS = 6
EXAMPLES = settings(
    max_examples=tries(2, 15),
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_is_as_described(hosted: Hosted, part: int) -> None:
    operations = _operations()[part::PARTS]
    assert len(operations) > 5
    wrong = {}
    for operation in operations:
        try:
            EXAMPLES(given(case=operation.as_strategy())(_check))(hosted=hosted)
        except Exception as error:  # noqa: BLE001
            wrong[operation.label] = error
    assert not wrong


def _operations() -> list[schemathesis.APIOperation[Any, Any, Any, Any]]:
    import schemathesis

    schema = schemathesis.openapi.from_dict(describe(api_routes()))
    # Hundreds of wrong bodies each, made by a rule: the random ones find more in the same time.
    schema.config.phases.coverage.enabled = False
    found: Any = schema.exclude(path=ENDLESS).get_all_operations()
    return [operation.ok() for operation in found]


def _check(case: schemathesis.Case[Any], hosted: Hosted) -> None:
    from schemathesis.checks import (
        content_type_conformance,
        not_a_server_error,
        response_schema_conformance,
        status_code_conformance,
    )

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
