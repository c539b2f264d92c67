"""Parents and children for tests: fake CLIs that call our tools, and calls made in their name."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bridle.loopback import SERVER, Loopback, loopback_of, tools_of
from bridle.supervisor import SessionRecord, Supervisor
from bridle.testing import fake_claude
from bridle.views import stream
from tests.supervisor.homes import LIMIT, Home, Step, until

Json = dict[str, Any]

_numbers = itertools.count(1)


def calls(name: str, arguments: Json, id_: str) -> Step:
    """A step of a fake parent: it calls this tool and waits for the answer."""
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return {"mcp": {"server_name": SERVER, "message": message}, "id": id_}


async def answered(supervisor: Supervisor, session: str, request_id: str) -> Json:
    """What the agent was given for a call, once it was."""
    return _given(bytes((await _with_id(supervisor, session, stream.WROTE, request_id)).line))


async def called(supervisor: Supervisor, session: str, request_id: str) -> None:
    """Until the agent has made this call."""
    await _with_id(supervisor, session, stream.ASKED, request_id)


async def _with_id(supervisor: Supervisor, session: str, kind: str, request_id: str) -> Any:
    """What the stream has of this kind with this id, once it has."""
    name, after = supervisor.get(session).id, 0
    async with asyncio.timeout(LIMIT):
        with supervisor.listening([name]) as listener:
            while True:
                while events := await supervisor.journal.log.read(name, after, 500):
                    after = events[-1].seq
                    found = [msgspec.json.decode(event.body, type=stream.BODIES[kind])
                             for event in events if event.kind == kind]  # fmt: skip
                    for body in found:
                        if getattr(body, "id", "") == request_id:
                            return body
                await listener.heard()


def _given(line: bytes) -> Json:
    answer = msgspec.json.decode(line)["response"]["response"]["mcp_response"]
    result = answer["result"]
    found: Json = msgspec.json.decode(result["content"][0]["text"])
    assert result["isError"] == (found["type"] == "error")
    return found


class Parent:
    """A parent whose calls the test makes: with the caller's id from its pipe, as if by it."""

    def __init__(self, loopback: Loopback, record: SessionRecord) -> None:
        self.loopback = loopback
        self.id = record.id
        self.folder = record.folder

    async def call(self, tool: str, key: str | None = None, /, **arguments: Any) -> Json:
        key = key if key is not None else f"test:{next(_numbers)}"
        async with asyncio.timeout(LIMIT):
            return await self.loopback.call(self.id, tool, arguments, key)

    async def ok(self, tool: str, key: str | None = None, /, **arguments: Any) -> Json:
        given = await self.call(tool, key, **arguments)
        assert given["type"] != "error", given
        return given

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """The code of what it is told."""
        given = await self.call(tool, None, **arguments)
        assert given["type"] == "error", given
        assert given["message"]
        return str(given["code"])

    async def child(self, name: str = "child", prompt: str | None = "go", **arguments: Any) -> str:
        """One that asks for whatever is more than reading, at work; its id."""
        given = {"name": name, "working_dir": ".", "policy": "ask", **arguments}
        made = await self.ok("claudecode_create", **given)
        if prompt is not None:
            await self.ok("claudecode_chat_async", session_id=made["id"], prompt=prompt)
        return str(made["id"])

    async def poll(self, session: str, **arguments: Any) -> Json:
        return await self.ok("claudecode_poll", session_id=session, **arguments)


def branching(home: Home, roles: dict[str, list[Step]], **settings: Any) -> list[str]:
    """The command of a CLI that plays a role for each prompt."""
    folder = home.work.parent / "roles"
    folder.mkdir(exist_ok=True)
    scenario = folder / f"{next(_numbers)}.json"
    scenario.write_bytes(msgspec.json.encode({"steps": [{"roles": roles}], **settings}))
    program = Path(__file__).with_name("branching_claude.py")
    words = [sys.executable, "-I", "-S", str(program), str(Path(fake_claude.__file__).parent)]
    return [*words, "--scenario", str(scenario)]


@asynccontextmanager
async def opened(home: Home, **options: Any) -> AsyncIterator[Supervisor]:
    async with home.open(**{"loopback": tools_of, **options}) as supervisor:
        yield supervisor


async def parent_with(
    home: Home, supervisor: Supervisor, *children: Step, name: str = "parent", **options: Any
) -> Parent:
    """A parent that does nothing by itself and may grant anything; its children play these."""
    given: Json = {"prompt": None, "loopback": True, "policy": "autonomous", **options}
    record = await home.start(supervisor, *children, name=name, **given)
    await until(supervisor, record.id, "idle")
    return Parent(loopback_of(supervisor), record)


__all__ = ["LIMIT", "Parent", "answered", "branching", "called", "calls", "opened", "parent_with"]
