"""Every route of the application, as those who may not call it: whatever routes there are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from litestar.routes import ASGIRoute, HTTPRoute
from msgspec import Struct

from bridle.server.access import Role, roles_of
from bridle.server.app import routed
from bridle.server.mounts import Mount
from tests.supervisor.homes import LIMIT, ME, TURN, Home, until

from .served import Served, served

DOORS = ("/mcp", "/mcp/permit", "/rpc")
#: Said for every parameter that is no session.
NOBODY = "x"


class Asked(Struct, frozen=True):
    """A route, as it is asked; `path` with what is given for its parameters."""

    method: str
    path: str
    roles: tuple[Role, ...]
    is_of_session: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class House(Struct, frozen=True):
    """A server with a session `of` an agent, a session that is none of its, and their tokens."""

    server: Served
    other: str
    own: str
    agent: str
    reader: str
    permit: str

    def routes(self, *, session: str) -> Iterator[Asked]:
        for route in routed(tuple(mount.place for mount in MOUNTS)).routes:
            if isinstance(route, ASGIRoute):
                yield Asked("POST", route.path, roles_of(route.route_handler), False)
                continue
            assert isinstance(route, HTTPRoute)
            path = re.sub(r"\{session[^}]*\}", session, route.path)
            path = re.sub(r"\{[^}]*:int\}", "1", path)
            path = re.sub(r"\{[^}]*\}", NOBODY, path)
            for method, (handler, _) in route.route_handler_map.items():
                yield Asked(method, path, roles_of(handler), path.count(session) > 0)


async def _echo(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


#: As the doors for agents are: what they do there is theirs.
MOUNTS = (
    Mount("/mcp", _echo, ("POST",), ("agent",)),
    Mount("/mcp/permit", _echo, ("POST",), ("permit",)),
    Mount("/rpc", _echo, ("POST",), ("agent",)),
)


@asynccontextmanager
async def _mounts(_: object) -> AsyncIterator[tuple[Mount, ...]]:
    yield MOUNTS


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    async with served(home.folder, mounts=_mounts) as server:
        supervisor = server.supervisor
        own = await home.start(supervisor, *TURN, name="own")
        other = await home.start(supervisor, *TURN, name="other")
        for session in (own, other):
            await until(supervisor, session.id, "idle")
        tokens = server.house.tokens
        _, agent = await tokens.create("agent", "an agent", own.id)
        _, reader = await tokens.create("reader", "a reader")
        asking = await supervisor.create_external(kind="permit", folder=home.work, by=ME)
        _, permit = await tokens.create("permit", "a permit", asking.id)
        yield House(server, other.id, own.id, agent, reader, permit)


class Client:
    """Sends what it is told to, byte for byte; `way` is TCP or the socket in the home."""

    def __init__(
        self, server: Served, token: str = "", *, way: str = "tcp", **headers: str
    ) -> None:
        self._server = server
        self._way = way
        self._headers = {"host": f"127.0.0.1:{server.port}", **headers}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    async def ask(self, method: str, path: str, body: bytes = b"{}") -> tuple[int, str]:
        """The status and, where it is a problem, its code. A stream is not read."""
        has_body = method in ("POST", "PUT", "PATCH")
        sent = body if has_body else b""
        headers = {**self._headers, "content-length": str(len(sent)), "connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reader, writer = await self._connected()
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + sent)
        try:
            async with asyncio.timeout(LIMIT):
                answer = await reader.readuntil(b"\r\n\r\n")
                status = int(answer.split()[1])
                if b"application/problem+json" not in answer:
                    return status, ""
                return status, msgspec.json.decode(await reader.read())["code"]
        finally:
            writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._way == "socket":
            return await asyncio.open_unix_connection(self._server.ready.socket)
        return await self._server.raw()


async def ask(client: Client, asked: Asked) -> tuple[int, str]:
    return await client.ask(asked.method, asked.path)


async def test_there_are_routes_and_each_says_whom_it_takes(house: House) -> None:
    routes = list(house.routes(session=house.other))
    assert len(routes) > 10
    open_to_all = {str(one) for one in routes if not one.roles}
    assert open_to_all <= {"GET /api/v1/health", "GET /login", "GET /"}
    for one in routes:
        writes = one.method not in ("GET", "HEAD", "OPTIONS") and one.path not in DOORS
        assert not (writes and "agent" in one.roles), f"{one}: agents only read"
        assert ("permit" in one.roles) == (one.path == "/mcp/permit"), one


async def test_without_a_token_nothing_is_told(house: House) -> None:
    client = Client(house.server)
    for one in house.routes(session=house.other):
        status, code = await ask(client, one)
        if one.roles:
            assert (status, code) == (401, "unauthorized"), one
        else:
            assert status < 500, one


#: What is no token of anybody's.
WRONG = [
    "Bearer bridle_p_" + "A" * 43,
    "Bearer",
    "",
    "Basic YTpi",
    "Bearer null",
    "Bearer bridle_l_x",
    "Token {token}",
    "{token}",
    "Bearer {token}x",
    "Bearer {digest}",
]


@pytest.mark.parametrize("way", ["tcp", "socket"])
async def test_with_a_wrong_token_nothing_is_told_not_even_to_whom_anybody_may_ask(
    house: House, way: str
) -> None:
    """By the socket neither: a wrong token is worse than none."""
    server = house.server
    [first, *_] = server.house.tokens.list()
    routes = list(house.routes(session=house.other))
    for number, wrong in enumerate(WRONG):
        shown = wrong.format(token=server.token, digest=first.digest)
        client = Client(server, way=way, authorization=shown)
        for one in routes if number == 0 else routes[:3]:
            assert await ask(client, one) == (401, "unauthorized"), (one, wrong)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1"])
async def test_by_a_foreign_name_nothing_is_told(house: House, host: str) -> None:
    server = house.server
    client = Client(server, server.token, host=host.format(port=server.port))
    for one in house.routes(session=house.other):
        assert await ask(client, one) == (421, "foreign_host"), one


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:3000"])
async def test_a_foreign_page_is_told_nothing_and_gets_no_leave_to_ask(
    house: House, origin: str
) -> None:
    server = house.server
    for way in ("tcp", "socket"):
        client = Client(server, server.token, way=way, origin=origin)
        for one in house.routes(session=house.other):
            assert await ask(client, one) == (403, "foreign_origin"), one
    async with server.client(server.token, origin=server.url) as ours:
        asked = {"access-control-request-method": "POST"}
        answer = await ours.options("/api/v1/me", headers=asked)
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_an_agents_token_does_for_what_takes_it_and_for_nothing_else(house: House) -> None:
    client = Client(house.server, house.agent)
    for one in house.routes(session=house.own):
        status, code = await ask(client, one)
        if one.roles and "agent" not in one.roles:
            assert (status, code) == (403, "forbidden"), one
        else:
            assert code != "forbidden", one
            assert status < 500, one


@pytest.mark.slow
async def test_a_permits_token_does_for_its_own_door_and_for_nothing_else(house: House) -> None:
    client = Client(house.server, house.permit)
    for one in house.routes(session=house.own):
        status, code = await ask(client, one)
        if one.roles and "permit" not in one.roles:
            assert (status, code) == (403, "forbidden"), one
        else:
            assert code != "forbidden", one
            assert status < 500, one


async def test_a_persons_token_is_refused_at_the_doors_of_agents_and_told_what_to_make(
    house: House,
) -> None:
    server = house.server
    async with server.client(server.token) as person:
        for path in DOORS:
            answer = await person.post(path)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
            assert "`bridle mcp token" in answer.json()["remedy"]


@pytest.mark.slow
async def test_what_is_not_below_an_agent_is_not_there_for_it(house: House) -> None:
    client = Client(house.server, house.agent)
    for name in (house.other, "other", "no-such-session"):
        for one in house.routes(session=name):
            if "agent" in one.roles and one.is_of_session:
                assert await ask(client, one) == (404, "unknown_session"), one


@pytest.mark.slow
async def test_a_readers_token_does_for_what_takes_it_and_for_nothing_else(house: House) -> None:
    client = Client(house.server, house.reader)
    for one in house.routes(session=house.other):
        status, code = await ask(client, one)
        if one.roles and "reader" not in one.roles:
            assert (status, code) == (403, "forbidden"), one
        else:
            assert code != "forbidden", one
            assert status < 500, one


TRICKS = [
    "..",
    "../../../../etc/passwd",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%00",
    "%00",
    "a%0d%0aX-Evil:%201",
    "%ff%fe",
    "%",
    "%zz",
    "x" * 10_000,
    "a;b=c",
    "~root",
    "';DROP%20TABLE%20events;--",
    "supervisor",
    "%F0%9F%92%A9",
    "http:%2f%2fevil.example",
]


@pytest.mark.slow
async def test_tricks_in_names_never_break_it(house: House) -> None:
    client = Client(house.server, way="socket")
    for trick in TRICKS:
        for one in house.routes(session=trick):
            if one.is_of_session or f"/{NOBODY}" in one.path:
                path = one.path.replace(f"/{NOBODY}", f"/{trick}")
                status, code = await client.ask(one.method, path)
                assert status < 500, (path, code)


@pytest.mark.slow
async def test_tricks_in_parameters_never_break_it(house: House) -> None:
    names = ("after", "limit", "kinds", "state", "label", "parent", "folder", "status", "session")
    client = Client(house.server, way="socket")
    for trick in TRICKS:
        query = "&".join(f"{name}={trick[:1000]}" for name in (*names, "before", "reveal"))
        for one in house.routes(session=house.other):
            if one.method == "GET":
                path = f"{one.path}?{query}"
                status, code = await client.ask("GET", path)
                assert status < 500, (path, code)


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    ["..", "../../etc", "a\\u0000b", "/" + "x" * 5000, "~", "", "/proc/self/mem", "\\ud800"],
)
async def test_tricks_in_folders_never_break_it(house: House, folder: str) -> None:
    client = Client(house.server, way="socket")
    for one in house.routes(session=house.other):
        if one.method in ("POST", "PUT"):
            for field in ("folder", "cwd"):
                body = f'{{"{field}": "{folder}"}}'.encode()
                status, code = await client.ask(one.method, one.path, body)
                assert status < 500, (one, code)
