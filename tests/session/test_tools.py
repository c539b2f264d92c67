"""Python functions as tools: their schema, their arguments, their results, and their mistakes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from bridle import tool
from bridle.errors import InvalidTool
from bridle.protocol.blocks import Base64Source, ImageBlock, TextBlock
from bridle.session.threads import in_thread
from bridle.session.tools import Tool, ToolCall, ToolServers
from bridle.testing import MemoryTransport

from .conftest import StartSession


def add(a: int, b: Annotated[int, Meta(description="the other")] = 2) -> int:
    """Add two numbers."""
    return a + b


async def shout(text: str) -> str:
    return text.upper()


class Point(Struct):
    x: int
    y: int = 0


async def rpc(servers: ToolServers, method: str, server: str = "tools", **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await servers.handle(server, message)


async def called(function: Any, **arguments: Any) -> dict[str, Any]:
    made = function if isinstance(function, Tool) else Tool(function)
    answer = await rpc(ToolServers([made]), "tools/call", name=made.name, arguments=arguments)
    found: dict[str, Any] = answer["result"]
    return found


async def text_of(function: Any, **arguments: Any) -> str:
    result = await called(function, **arguments)
    assert not result["isError"], result
    return str(result["content"][0]["text"])


def test_a_plain_function_has_the_schema_of_its_signature() -> None:
    assert Tool(add).listed() == {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "title": "add_arguments",
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "integer", "description": "the other", "default": 2},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }


def test_types_of_all_kinds_have_a_schema() -> None:
    def move(to: Point, how: Literal["slow", "fast"], tags: list[str] | None = None) -> None: ...

    schema = Tool(move).listed()["inputSchema"]
    assert schema["properties"]["to"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert schema["properties"]["how"] == {"enum": ["fast", "slow"]}


async def test_arguments_are_checked_and_converted() -> None:
    def where(to: Point) -> str:
        return f"{to.x},{to.y}"

    assert await text_of(where, to={"x": 1}) == "1,0"
    assert await text_of(add, a=1) == "3"
    for wrong in ({"a": "one"}, {}, {"a": 1, "c": 2}):
        result = await called(add, **wrong)
        assert result["isError"]
        assert "ValidationError" in result["content"][0]["text"]


async def test_a_default_that_can_change_is_not_shared_between_calls() -> None:
    def collect(item: str, into: list[str] = ["start"]) -> list[str]:  # noqa: B006
        into.append(item)
        return into

    assert await text_of(collect, item="a") == '["start","a"]'
    assert await text_of(collect, item="b") == '["start","b"]'


async def test_sync_functions_run_in_threads_and_async_ones_on_the_loop() -> None:
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def where_async() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert [await text_of(where), await text_of(where_async)] == ["false", "true"]
    assert await text_of(shout, text="hi") == "HI"


async def test_an_error_is_told_to_the_model_and_ends_nothing() -> None:
    def fail() -> None:
        raise LookupError("no such page")

    result = await called(fail)
    assert result == {
        "content": [{"type": "text", "text": "LookupError: no such page"}],
        "isError": True,
    }


async def test_an_error_with_half_a_character_in_it_can_still_be_told() -> None:
    def fail() -> None:
        raise LookupError("no file \ud800")

    result = await called(fail)
    assert msgspec.json.decode(msgspec.json.encode(result)) == {
        "content": [{"type": "text", "text": "LookupError: no file ?"}],
        "isError": True,
    }


PNG = ImageBlock(Base64Source("aGk=", "image/png"))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, [{"type": "text", "text": "done"}]),
        ("words", [{"type": "text", "text": "words"}]),
        ({"a": [1]}, [{"type": "text", "text": '{"a":[1]}'}]),
        (Point(1), [{"type": "text", "text": '{"x":1,"y":0}'}]),
        (PNG, [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
        (
            [TextBlock("see"), PNG],
            [
                {"type": "text", "text": "see"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            ],
        ),
        ([], [{"type": "text", "text": "[]"}]),
    ],
)
async def test_what_a_function_gives_becomes_content(value: Any, content: Any) -> None:
    assert (await called(Tool(lambda: value, name="give")))["content"] == content


async def test_a_result_that_is_no_json_is_an_error_for_the_model() -> None:
    assert (await called(Tool(object, name="thing")))["isError"]


def test_the_decorator_says_more_and_leaves_the_function_callable() -> None:
    @tool(name="plus", description="Sums", read_only=True)
    def add_more(a: int) -> int:
        return a + 1

    @tool
    def plain(a: int) -> int:
        return a

    listed = add_more.listed()
    assert (listed["name"], listed["description"]) == ("plus", "Sums")
    assert listed["annotations"] == {"readOnlyHint": True}
    assert (add_more(1), plain(2)) == (2, 2)


def star(*args: int) -> None: ...


def positional(a: int, /) -> None: ...


def unnamed(a: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def odd(a: MemoryTransport) -> None: ...


def größe() -> None: ...


@pytest.mark.parametrize("function", [star, positional, unnamed, odd, größe, lambda: None, 7])
def test_what_can_be_no_tool_is_refused_when_it_is_offered(function: Any) -> None:
    with pytest.raises(InvalidTool):
        Tool(function)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidTool, match="two tools"):
        ToolServers([add, add])


async def test_the_methods_of_mcp_that_a_cli_calls() -> None:
    servers = ToolServers({"calc": [add], "text": [shout]})
    assert servers.names == ["calc", "text"]
    for id_, method in ((7, "ping"), ("a", "no/method"), (0, "tools/list")):
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        answer = await servers.handle("calc", message)
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", id_)
        assert ("error" in answer, "result" in answer) == (id_ == "a", id_ != "a")
    hello = await rpc(servers, "initialize", "calc", protocolVersion="2024-11-05")
    assert hello["result"]["protocolVersion"] == "2024-11-05"
    assert hello["result"]["capabilities"] == {"tools": {}}
    assert (await rpc(servers, "ping", "calc"))["result"] == {}
    assert (await rpc(servers, "notifications/initialized", "calc"))["result"] == {}
    listed = await rpc(servers, "tools/list", "text")
    assert [one["name"] for one in listed["result"]["tools"]] == ["shout"]
    assert (await rpc(servers, "resources/list", "calc"))["error"]["code"] == -32601
    assert (await rpc(servers, "tools/call", "calc", name="nope"))["error"]["code"] == -32602
    assert "no server" in (await rpc(servers, "ping", "nope"))["error"]["message"]


async def test_a_session_serves_its_tools(start: StartSession) -> None:
    _, cli = await start(tools=[add])
    (request,) = cli.requests("initialize")
    assert request["sdkMcpServers"] == ["tools"]
    params = {"name": "add", "arguments": {"a": 40}}
    message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
    cli.ask("1", subtype="mcp_message", server_name="tools", message=message)
    answer = (await cli.answer("1"))["response"]["mcp_response"]
    assert answer["id"] == 9
    assert answer["result"]["content"][0]["text"] == "42"


async def test_a_withdrawn_call_cancels_its_tool(start: StartSession) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    _, cli = await start(tools=[wait])
    message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "wait"}}
    cli.ask("1", subtype="mcp_message", server_name="tools", message=message)
    await asyncio.wait_for(started.wait(), 10)
    cli.say({"type": "control_cancel_request", "request_id": "1"})
    await asyncio.wait_for(cancelled.wait(), 10)
    assert cli.answered("1") is None


async def test_a_name_may_have_a_hyphen() -> None:
    assert await text_of(Tool(add, name="add-up"), a=1) == "3"


def test_a_function_in_place_of_a_list_is_told() -> None:
    with pytest.raises(InvalidTool, match=r"give \[add\]"):
        ToolServers(add)  # type: ignore[arg-type]


def test_a_tool_that_hangs_does_not_hold_up_the_end_of_a_program(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, threading\n"
        "from bridle.session.threads import in_thread\n"
        "async def main():\n"
        "    began = asyncio.Event()\n"
        "    loop = asyncio.get_running_loop()\n"
        "    def hang():\n"
        "        loop.call_soon_threadsafe(began.set)\n"
        "        threading.Event().wait()\n"
        "    asyncio.ensure_future(in_thread(hang))\n"
        "    await began.wait()\n"
        "asyncio.run(main())\n"
        "print('over')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stdout == "over\n", done.stderr


async def test_what_is_raised_in_a_thread_is_raised_where_it_is_waited_for() -> None:
    def stop() -> None:
        raise StopIteration(1)

    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(stop)


class Ready:
    """A tool that is made in another way than from a function."""

    name = "ready"
    is_repeatable = True

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    def listed(self) -> dict[str, Any]:
        return {"name": self.name, "inputSchema": {"type": "object"}}

    async def call(self, arguments: dict[str, Any], which: ToolCall) -> dict[str, Any]:
        self.calls.append(which)
        return {"content": [], "isError": False, "given": arguments}


async def test_a_tool_of_another_make_is_offered_as_it_is_and_told_which_call_it_is() -> None:
    ready = Ready()
    servers = ToolServers({"s": [ready]})
    listed = await servers.handle("s", {"id": 1, "method": "tools/list"})
    assert listed["result"]["tools"] == [ready.listed()]
    params = {"name": "ready", "arguments": {"a": 1}, "_meta": {"claudecode/toolUseId": "t1"}}
    given = await servers.handle("s", {"id": 1, "method": "tools/call", "params": params}, "r1")
    assert given["result"]["given"] == {"a": 1}
    assert ready.calls == [ToolCall("r1", "t1")]


def test_what_may_be_called_again_after_a_restart_is_known_before_it_is() -> None:
    servers = ToolServers({"s": [Ready()], "plain": [add]})
    call = {"method": "tools/call", "params": {"name": "ready"}}
    assert servers.is_repeatable("s", call)
    assert servers.is_repeatable("s", {"method": "tools/list"})
    for server, name in (("s", "other"), ("nobody", "ready"), ("plain", "add")):
        again = {"method": "tools/call", "params": {"name": name}}
        assert not servers.is_repeatable(server, again)
    assert not servers.is_repeatable("s", {"method": "tools/call", "params": None})
