"""The permission prompt for CLIs that were not started by us: whatever goes wrong is a no."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bridle.approvals import Approval, Approve, Reject
from bridle.approvals.errors import ApprovalsClosed
from bridle.approvals.events import JUDGED
from bridle.errors import JournalClosed
from bridle.loopback.http import permit as tool
from bridle.loopback.http.permit import NAME, denied
from bridle.loopback.http.waiting import ended
from tests.server.served import Served
from tests.supervisor.homes import LIMIT, ME, Home, asked, settled, until

from .doors import MODES, answer_in, client_at, posted, serving, text_in, token_for

PERMIT = "/mcp/permit"


def call(command: str = "rm x", called: str = "t1", tool: str = "Bash") -> dict[str, Any]:
    return {"tool_name": tool, "input": {"command": command}, "tool_use_id": called}


async def permit(client: Client, arguments: dict[str, Any], **options: Any) -> Any:
    """The answer as the CLI reads it."""
    async with asyncio.timeout(LIMIT):
        result = await client.call_tool(NAME, arguments, **options)
    assert not result.is_error
    return json.loads(text_in(result))


@contextlib.asynccontextmanager
async def asking(
    server: Served, token: str, mode: str = "auto", **arguments: Any
) -> AsyncIterator[asyncio.Task[Any]]:
    """One that asks, and waits for the answer."""
    async with client_at(server, token, PERMIT, mode) as client:
        await client.list_tools()  # else it does that with the answer in hand
        task = asyncio.ensure_future(permit(client, call(**arguments)))
        yield task
        await ended(task)


async def one_approval(server: Served, session: str) -> Approval:
    [only] = await server.supervisor.approvals.list(session=session)
    return only


@pytest.mark.parametrize("mode", MODES)
async def test_there_is_one_tool_and_nothing_beside_it(home: Home, mode: str) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "permit")
        async with client_at(server, token, PERMIT, mode) as client:
            [tool] = (await client.list_tools()).tools
            assert tool.name == NAME
            assert tool.input_schema["required"] == ["tool_name", "input", "tool_use_id"]
            for other in ("claudecode_list", "loopback_respond", "x"):
                result = await client.call_tool(other, {})
                assert result.is_error
                assert json.loads(text_in(result))["behavior"] == "deny"


@pytest.mark.parametrize("mode", MODES)
async def test_a_person_says_yes_no_or_yes_with_another_input(home: Home, mode: str) -> None:
    choices: dict[str, tuple[Approve | Reject, Any]] = {
        "t1": (Approve(), {"behavior": "allow", "updatedInput": {"command": "rm x"}}),
        "t2": (
            Approve({"command": "ls"}),
            {"behavior": "allow", "updatedInput": {"command": "ls"}},
        ),
        "t3": (Reject("not today"), None),
        "t4": (Reject("enough", interrupt=True), None),
    }
    async with serving(home) as server:
        token, session = await token_for(server, home, "permit")
        async with client_at(server, token, PERMIT, mode) as client:
            for called, (choice, expected) in choices.items():
                waiting = asyncio.ensure_future(permit(client, call(called=called)))
                approval = await asked(server.supervisor, session)
                assert (approval.tool, approval.tool_use_id) == ("Bash", called)
                await until(server.supervisor, session, "awaiting approval")
                await server.supervisor.approvals.decide(approval.id, choice, by=ME)
                answer = await waiting
                if expected:
                    assert answer == expected
                else:
                    assert answer["behavior"] == "deny"
                    assert choice.message in answer["message"]
                    assert answer.get("interrupt", False) == (called == "t4")


async def test_what_the_policy_decides_is_answered_at_once_and_is_in_the_log(home: Home) -> None:
    policy = home.work / "p.toml"
    policy.write_text('deny = ["Bash(rm:*)"]\nallow = ["Bash(ls:*)"]\n')
    async with serving(home) as server:
        token, session = await token_for(server, home, "permit", policy=str(policy))
        async with client_at(server, token, PERMIT) as client:
            allowed = await permit(client, call("ls -l", "t1"))
            denied = await permit(client, call("rm x", "t2"))
        assert allowed == {"behavior": "allow", "updatedInput": {"command": "ls -l"}}
        assert denied["behavior"] == "deny"
        assert "Bash(rm:*)" in denied["message"]
        judged: list[Any] = []
        async with asyncio.timeout(LIMIT):
            while len(judged) < 2:  # a no goes out before it is in the log
                events = await server.supervisor.journal.log.read(session, 0, 100)
                judged = [json.loads(one.body) for one in events if one.kind == JUDGED]
        assert [one["tool_use_id"] for one in judged] == ["t1", "t2"]


WRONG_ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"tool_name": "Bash", "input": {}},
    {"tool_name": "Bash", "input": "x", "tool_use_id": "t"},
    {"tool_name": "", "input": {}, "tool_use_id": "t"},
    {"tool_name": "Bash", "input": {}, "tool_use_id": ""},
    {"tool_name": 1, "input": {}, "tool_use_id": "t"},
    {"tool_name": "Bash", "input": {}, "tool_use_id": None},
]


async def test_wrong_arguments_are_a_no_in_words(home: Home) -> None:
    async with serving(home) as server:
        token, session = await token_for(server, home, "permit")
        for arguments in WRONG_ARGUMENTS:
            async with client_at(server, token, PERMIT) as client:
                answer = await permit(client, arguments)
            assert answer["behavior"] == "deny"
            assert "could not be asked" in answer["message"]
            assert not await server.supervisor.approvals.list(session=session)


async def test_a_policy_that_can_not_be_read_is_a_no_in_words(home: Home) -> None:
    async with serving(home) as server:
        token, session = await token_for(server, home, "permit")
        records = server.supervisor.journal.records
        digest = server.supervisor.get(session).policy
        found = await records.get("policies", digest)
        assert found
        await records.put("policies", digest, b"{", found.revision)
        async with client_at(server, token, PERMIT) as client:
            answer = await permit(client, call())
        assert answer["behavior"] == "deny"
        assert not await server.supervisor.approvals.list(session=session)


def test_words_that_can_not_be_written_are_still_a_no() -> None:
    assert json.loads(denied(RuntimeError("\udc80")))["behavior"] == "deny"


async def test_an_input_that_can_not_be_written_is_a_no(home: Home) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "permit", policy="autonomous")
        async with server.client(token) as client:
            body = json.dumps(call("\ud800")).encode()
            params = b'{"name": "loopback_permit", "arguments": ' + body + b"}"
            message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
            headers = {"accept": "application/json, text/event-stream"}
            headers["content-type"] = "application/json"
            answer = await client.post(PERMIT, content=message, headers=headers)
        assert "allow" not in answer.text


@pytest.mark.parametrize("mode", MODES)
async def test_who_waits_for_somebody_hears_of_it(home: Home, mode: str) -> None:
    async with serving(home, progress=0.02) as server:
        token, session = await token_for(server, home, "permit")
        heard: asyncio.Queue[str | None] = asyncio.Queue()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            assert (progress > 0, total) == (True, None)
            heard.put_nowait(message)

        async with client_at(server, token, PERMIT, mode) as client:
            waiting = asyncio.ensure_future(permit(client, call(), progress_callback=tell))
            approval = await asked(server.supervisor, session)
            async with asyncio.timeout(LIMIT):
                assert [await heard.get() for _ in range(3)] == ["somebody is asked"] * 3
            await server.supervisor.approvals.decide(approval.id, Approve(), by=ME)
            assert (await waiting)["behavior"] == "allow"


@pytest.mark.parametrize("mode", MODES)
async def test_who_is_cut_off_and_asks_again_finds_the_same_question(home: Home, mode: str) -> None:
    async with serving(home) as server:
        token, session = await token_for(server, home, "permit")
        async with asking(server, token, mode):
            approval = await asked(server.supervisor, session)
        assert (await one_approval(server, session)).status == "pending"
        async with asking(server, token, mode) as waiting:
            await server.supervisor.approvals.decide(approval.id, Approve(), by=ME)
            assert (await waiting)["behavior"] == "allow"
        only = await one_approval(server, session)
        assert (only.id, only.status) == (approval.id, "allowed")


@pytest.mark.parametrize("mode", MODES)
async def test_who_is_cut_off_and_does_not_come_back_asks_no_more(home: Home, mode: str) -> None:
    async with serving(home, patience=0.05) as server:
        token, session = await token_for(server, home, "permit")
        async with asking(server, token, mode):
            approval = await asked(server.supervisor, session)
        assert (await settled(server.supervisor, approval.id)).status == "cancelled"
        await until(server.supervisor, session, "idle")


@pytest.mark.slow
async def test_a_question_stays_while_a_server_ends_and_another_begins(home: Home) -> None:
    async with serving(home, patience=0.01) as server:
        token, session = await token_for(server, home, "permit")
        async with asking(server, token) as waiting:
            approval = await asked(server.supervisor, session)
            server.ready.stopping.ask()
            async with asyncio.timeout(LIMIT):
                await asyncio.wait([waiting])
            assert waiting.exception()
    async with serving(home) as server, asking(server, token) as waiting:
        await server.supervisor.approvals.decide(approval.id, Approve(), by=ME)
        assert (await waiting)["behavior"] == "allow"
        assert (await one_approval(server, session)).id == approval.id


async def test_a_server_that_ends_gives_no_answer(home: Home) -> None:
    async with home.open() as supervisor:
        record = await supervisor.create_external(kind="permit", folder=home.work, by=ME)
        waiting = asyncio.ensure_future(tool.permit(supervisor, record.id, call(), LIMIT))
        await asked(supervisor, record.id)
    with pytest.raises(ApprovalsClosed):
        await asyncio.wait_for(waiting, LIMIT)
    with pytest.raises(JournalClosed):
        await tool.permit(supervisor, record.id, call(called="t2"), LIMIT)


async def test_to_end_its_session_is_a_no_and_its_token_opens_nothing_more(home: Home) -> None:
    async with serving(home) as server:
        token, session = await token_for(server, home, "permit")
        async with asking(server, token) as waiting:
            approval = await asked(server.supervisor, session)
            async with server.local() as person:
                assert (await person.post(f"/api/v1/sessions/{session}/stop")).status_code == 200
            assert (await waiting)["behavior"] == "deny"
            assert (await settled(server.supervisor, approval.id)).status == "cancelled"
        async with server.client(token) as client:
            answer = await posted(client, PERMIT, "tools/list", {})
        assert answer.status_code == 401


async def test_a_call_needs_no_handshake(home: Home) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "permit", policy="read-only")
        async with server.client(token) as client:
            params = {"name": NAME, "arguments": call()}
            answer = answer_in(await posted(client, PERMIT, "tools/call", params))
        assert json.loads(answer["result"]["content"][0]["text"])["behavior"] == "deny"


# --- a server that is killed


class Program:
    """A server in a process of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.url = ""
        self.loaded: list[str] = []

    async def __aenter__(self) -> Program:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("doors_program.py")),
            str(self._home),
            "0",
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout
        async with asyncio.timeout(LIMIT):
            line = (await self._process.stdout.readline()).decode()
        self.url, *self.loaded = line.split()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    @contextlib.asynccontextmanager
    async def person(self) -> AsyncIterator[httpx2.AsyncClient]:
        headers = {"authorization": f"Bearer {(self._home / 'token').read_text().strip()}"}
        async with httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=LIMIT, trust_env=False, verify=False
        ) as client:
            yield client

    @contextlib.asynccontextmanager
    async def agent(self, token: str) -> AsyncIterator[Client]:
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(
            headers=headers, timeout=LIMIT, trust_env=False, verify=False
        ) as http:
            transport = streamable_http_client(f"{self.url}{PERMIT}", http_client=http)
            async with Client(transport) as client:
                yield client

    async def pending(self) -> str:
        """The one approval that waits, once it does."""
        async with self.person() as person, person.stream("GET", "/api/v1/events") as news:
            async for line in news.aiter_lines():
                if line.startswith("data:") and '"tool_use_id":"t1"' in line:
                    return str(json.loads(line[5:])["id"])
        raise AssertionError("the stream has ended")


@pytest.mark.slow
async def test_after_a_kill_the_same_question_is_asked_again_and_decided_once(home: Home) -> None:
    async with Program(home.folder) as first:
        assert not first.loaded, "what takes a second to be loaded is loaded when it is needed"
        async with first.person() as person:
            external = {"kind": "permit", "folder": str(home.work)}
            body = {"role": "agent", "name": "p", "external": external}
            token = (await person.post("/api/v1/tokens", json=body)).json()["text"]
        # By hand: the official client breaks with the server, and all around it.
        params = {"name": NAME, "arguments": call()}
        async with httpx.AsyncClient(
            base_url=first.url, timeout=LIMIT, trust_env=False, verify=False
        ) as http:
            sent = posted(http, PERMIT, "tools/call", params, authorization=f"Bearer {token}")
            cut_off = asyncio.ensure_future(sent)
            approval = await first.pending()
            await first.kill()
            with pytest.raises(httpx.HTTPError):
                await cut_off
    async with Program(home.folder) as second, second.person() as person:
        decide = f"/api/v1/approvals/{approval}/decide"
        async with second.agent(token) as client:
            waiting = asyncio.ensure_future(permit(client, call()))
            answer = await person.post(decide, json={"choice": {"type": "approve"}})
            assert answer.status_code == 200, answer.text
            assert (await waiting)["behavior"] == "allow"
            anew = asyncio.ensure_future(permit(client, call()))
            another = await second.pending()
            assert another != approval
            await person.post(
                f"/api/v1/approvals/{another}/decide", json={"choice": {"type": "reject"}}
            )
            assert (await anew)["behavior"] == "deny"
        found = (await person.get("/api/v1/approvals")).json()["items"]
        told = [(one["id"], one["status"]) for one in found]
        assert told == [(approval, "allowed"), (another, "denied")]
        again = await person.post(decide, json={"choice": {"type": "reject"}})
        assert again.json()["code"] == "already_decided"
