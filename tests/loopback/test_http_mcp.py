"""The tools over MCP, as an official client sees them, of the old kind and of the new."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from mcp import Client
from mcp_types import RequestParamsMeta

from bridle.loopback import METHODS, loopback_of
from bridle.server.access import Role
from tests.server.served import Served
from tests.supervisor.homes import ASKS, LIMIT, ME, TURN, WORKS, Home, until

from .doors import MODES, answer_in, client_at, given_in, posted, serving, token_for

#: What each tool can be called with by one who has nobody below it.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "claudecode_create": {"name": "x", "working_dir": "../elsewhere"},
    "claudecode_chat_async": {"session_id": "x", "prompt": "hello"},
    "claudecode_poll": {"session_id": "x"},
    "loopback_respond": {"approval_id": "x", "approve": True},
    "loopback_pending": {},
    "loopback_escalate": {"approval_id": "x", "why": "y"},
    "claudecode_chat": {"session_id": "x", "prompt": "hello"},
    "claudecode_interrupt": {"session_id": "x"},
    "claudecode_stop": {"session_id": "x"},
    "claudecode_fork": {"session_id": "x", "new_name": "y"},
    "claudecode_tree": {"session_id": "x"},
    "claudecode_list": {},
    "claudecode_get": {"session_id": "x"},
    "claudecode_result": {"session_id": "x"},
    "claudecode_delete": {"session_id": "x"},
}


async def parent(
    server: Served, home: Home, *steps: dict[str, Any], name: str = "parent"
) -> tuple[str, str]:
    """One of ours that comes in by a token: the text of that, and its id. Its children play the
    steps."""
    record = await home.start(
        server.supervisor, *steps, prompt=None, name=name, loopback=True, policy="autonomous"
    )
    await until(server.supervisor, record.id, "idle")
    _, text = await server.house.tokens.create("agent", "the parent's", record.id)
    return text, record.id


@pytest.mark.parametrize("mode", MODES)
async def test_an_official_client_lists_every_tool(home: Home, mode: str) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with client_at(server, token, mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == list(METHODS)
        for name, method in METHODS.items():
            assert tools[name].description == method.description
            assert tools[name].input_schema == json.loads(json.dumps(method.input_schema))
            hints = tools[name].annotations
            assert bool(hints and hints.read_only_hint) == method.read_only


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_an_official_client_calls_every_tool(home: Home, mode: str) -> None:
    assert set(ARGUMENTS) == set(METHODS)
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with client_at(server, token, mode=mode) as client:
            for name, arguments in ARGUMENTS.items():
                result = await client.call_tool(name, arguments)
                given = given_in(result)
                assert result.structured_content == given
                if name in ("loopback_pending", "claudecode_list"):
                    assert given["type"] == "ok"
                else:
                    assert given["type"] == "error", name
                    assert given["code"] not in ("internal", "invalid_arguments"), given
            given = given_in(await client.call_tool("claudecode_get", {"wrong": 1}))
            assert (given["type"], given["code"]) == ("error", "invalid_arguments")
            given = given_in(await client.call_tool("claudecode_wish", {}))
            assert given["type"] == "error"


@pytest.mark.parametrize("mode", MODES)
async def test_a_child_is_made_told_followed_answered_and_read(home: Home, mode: str) -> None:
    async with serving(home) as server:
        token, above = await parent(server, home, *ASKS)
        async with client_at(server, token, mode=mode) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                given = given_in(await client.call_tool(tool, arguments))
                assert given["type"] != "error", given
                return given

            made = await call("claudecode_create", name="child", working_dir=".", policy="ask")
            await call("claudecode_chat_async", session_id=made["id"], prompt="go")
            assert server.supervisor.get(made["id"]).parent == above
            pending: list[dict[str, Any]] = []
            polled: dict[str, Any] = {}
            async with asyncio.timeout(LIMIT):
                while not pending:
                    polled = await call("claudecode_poll", session_id=made["id"], until="approval")
                    pending = polled["pending_approvals"]
            await call("loopback_respond", approval_id=pending[0]["id"], approve=True)
            async with asyncio.timeout(LIMIT):
                while polled["status"] != "complete":
                    polled = await call("claudecode_poll", session_id=made["id"], until="turn_end")
            assert (await call("claudecode_result", session_id=made["id"]))["status"] == "complete"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_that_comes_twice_under_one_name_has_its_effect_once(
    home: Home, mode: str
) -> None:
    async with serving(home) as server:
        token, above = await parent(server, home, *TURN)
        arguments = {"name": "child", "working_dir": "."}
        made = []
        for _ in range(2):
            async with client_at(server, token, mode=mode) as client:
                meta = cast(RequestParamsMeta, {"bridle/requestId": "c1"})
                result = await client.call_tool("claudecode_create", arguments, meta=meta)
                made.append(given_in(result)["id"])
        assert made[0] == made[1]
        below = server.supervisor.list(lambda record: record.parent == above)
        assert [record.id for record in below] == made[:1]


@pytest.mark.parametrize("wrong", [True, ["x"], "x" * 1001])
async def test_a_name_of_a_call_that_can_be_none_is_refused(home: Home, wrong: object) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with client_at(server, token) as client:
            meta = cast(RequestParamsMeta, {"bridle/requestId": wrong})
            result = await client.call_tool("claudecode_list", {}, meta=meta)
        assert given_in(result)["code"] == "invalid_arguments"


async def at_work(client: Client) -> str:
    """A child whose turn does not come to its end by itself."""
    made = await client.call_tool("claudecode_create", {"name": "c", "working_dir": "."})
    session = str(given_in(made)["id"])
    told = await client.call_tool("claudecode_chat_async", {"session_id": session, "prompt": "go"})
    assert given_in(told)["type"] == "started"
    return session


def until_its_end(session: str) -> dict[str, Any]:
    return {"session_id": session, "until": "turn_end", "wait_ms": 600_000}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_who_waits_is_told_so_again_and_again(home: Home, mode: str) -> None:
    async with serving(home, progress=0.02) as server:
        token, _ = await parent(server, home, *WORKS)
        heard: asyncio.Queue[float] = asyncio.Queue()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            assert (total, message) == (None, "it goes on")
            heard.put_nowait(progress)

        async with client_at(server, token, mode=mode) as client, asyncio.timeout(LIMIT):
            session = await at_work(client)
            polling = client.call_tool(
                "claudecode_poll", until_its_end(session), progress_callback=tell
            )
            waiting = asyncio.ensure_future(polling)
            first, second = await heard.get(), await heard.get()
            assert 0 < first < second
            await client.call_tool("claudecode_stop", {"session_id": session})
            assert given_in(await waiting)["type"] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_a_server_that_ends_does_not_wait_for_those_who_wait(home: Home, mode: str) -> None:
    async with serving(home, progress=0.02) as server:
        token, _ = await parent(server, home, *WORKS)
        heard = asyncio.Event()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            assert (progress > 0, total, message) == (True, None, "it goes on")
            heard.set()

        async with client_at(server, token, mode=mode) as client, asyncio.timeout(LIMIT):
            polling = client.call_tool(
                "claudecode_poll", until_its_end(await at_work(client)), progress_callback=tell
            )
            waiting = asyncio.ensure_future(polling)
            await heard.wait()
            begun = asyncio.get_running_loop().time()
            server.ready.stopping.ask()
            await asyncio.wait([waiting])
            assert asyncio.get_running_loop().time() - begun < 3
            assert waiting.exception()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_old_clients_get_the_text_and_newer_ones_the_json_beside_it(
    home: Home, version: str
) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with server.client(token) as client:
            params = {"name": "claudecode_list", "arguments": {}}
            header = {"mcp-protocol-version": version}
            answer = await posted(client, "/mcp", "tools/call", params, **header)
        assert answer.status_code == 200, answer.text
        result = answer_in(answer)["result"]
        assert json.loads(result["content"][0]["text"])["type"] == "ok"
        assert ("structuredContent" in result) == (version >= "2025-06-18")


async def test_a_call_needs_no_handshake_and_other_methods_than_post_are_refused(
    home: Home,
) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with server.client(token) as client:
            answer = await posted(client, "/mcp", "tools/list", {})
            assert len(answer_in(answer)["result"]["tools"]) == len(METHODS)
            for method in ("GET", "DELETE", "PUT"):
                refused = await client.request(method, "/mcp")
                assert (refused.status_code, refused.json()["code"]) == (405, "method_not_allowed")
                assert refused.headers["allow"] == "POST"
            broken = await client.post(
                "/mcp",
                content=b"{",
                headers={"accept": "application/json, text/event-stream"}
                | {"content-type": "application/json"},
            )
            assert broken.status_code == 400


@pytest.mark.slow
async def test_who_calls_is_whose_token_it_is_and_sees_nobody_elses(home: Home) -> None:
    async with serving(home) as server:
        first, above = await parent(server, home, *TURN, name="first")
        second, _ = await parent(server, home, *TURN, name="second")
        child = await loopback_of(server.supervisor).call(
            above, "claudecode_create", {"name": "c", "working_dir": "."}, "k1"
        )
        for token, is_there in ((first, True), (second, False)):
            async with client_at(server, token) as client:
                for wanted in (child["id"], "c"):
                    by = "session_id" if wanted == child["id"] else "name"
                    given = given_in(await client.call_tool("claudecode_get", {by: wanted}))
                    assert (given.get("code") != "not_found") == is_there
                given = given_in(await client.call_tool("claudecode_get", {"session_id": above}))
                assert given["code"] == "not_found"


@pytest.mark.parametrize("path", ["/mcp", "/rpc"])
async def test_a_session_without_the_tools_does_not_get_them_by_a_token(
    home: Home, path: str
) -> None:
    async with serving(home) as server:
        record = await server.supervisor.create(cwd=home.work, by=ME, start=False)
        _, token = await server.house.tokens.create("agent", "x", record.id)
        async with server.client(token) as client:
            answer = await posted(client, path, "tools/list", {})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert "bridle mcp token" in answer.json()["remedy"]


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/mcp", "permit"),
        ("/rpc", "permit"),
        ("/mcp/permit", "agent"),
        ("/mcp", "person"),
        ("/mcp/permit", "person"),
        ("/rpc", "reader"),
    ],
)
async def test_a_token_of_another_kind_opens_nothing(home: Home, path: str, role: Role) -> None:
    async with serving(home) as server:
        if role == "agent":
            token, _ = await token_for(server, home, "root")
        elif role == "permit":
            token, _ = await token_for(server, home, "permit")
        else:
            _, token = await server.house.tokens.create(role, "x")
        async with server.client(token) as client:
            answer = await posted(client, path, "tools/list", {})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert "`bridle mcp token" in answer.json()["remedy"]


async def test_a_root_reads_what_is_below_it_by_the_routes_too(home: Home) -> None:
    async with serving(home) as server:
        token, session = await token_for(server, home, "root")
        other = await home.start(server.supervisor, *TURN)
        async with server.client(token) as client:
            found = (await client.get("/api/v1/sessions")).json()["items"]
            assert [one["id"] for one in found] == [session]
            assert (await client.get(f"/api/v1/sessions/{other.id}")).status_code == 404
