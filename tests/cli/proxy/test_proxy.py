"""The proxy as a process, between a client and a server that does what the test says."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from bridle.cli.kept import keep

from .doors import LIMIT, TOKEN, Home, Posted, client_of

LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}


def initialize(id_: int = 0) -> dict[str, Any]:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c"}}
    return {"jsonrpc": "2.0", "id": id_, "method": "initialize", "params": params}


async def test_each_message_is_one_post_with_the_token_and_the_answer_comes_back(
    home: Home,
) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.say(LIST)
        posted = await home.next()
        assert posted.path == "/mcp"
        assert posted.message == LIST
        assert posted.headers["authorization"] == f"Bearer {TOKEN}"
        assert posted.headers["accept"] == "application/json, text/event-stream"
        await posted.result({"tools": []})
        assert await client.hear() == {"jsonrpc": "2.0", "id": 7, "result": {"tools": []}}
        assert await client.end() == 0


async def test_a_call_has_an_id_of_its_own_and_keeps_what_else_was_in_it(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        line = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"poll",'
            b'"arguments":{"n":12345678901234567890123,"x":1.10},"_meta":{"progressToken":"p"}}}'
        )
        await client.say(line)
        first = await home.next()
        assert b'{"n":12345678901234567890123,"x":1.10}' in first.body
        assert first.message["params"]["_meta"]["progressToken"] == "p"
        await first.result({})
        await client.call(2)
        second = await home.next()
        assert len({first.key, second.key}) == 2


async def test_the_permit_of_another_name_goes_by_its_own_door(home: Home) -> None:
    keep(home.home, "ide", "bridle_a_other")
    await home.up()
    async with client_of(home, "--permit", "--name", "ide") as client:
        await client.say(LIST)
        posted = await home.next()
        assert posted.path == "/mcp/permit"
        assert posted.headers["authorization"] == "Bearer bridle_a_other"


async def test_what_was_agreed_upon_at_the_start_is_said_from_then_on(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.say(initialize())
        first = await home.next()
        assert "mcp-protocol-version" not in first.headers
        await first.result({"protocolVersion": "2025-03-26", "serverInfo": {}})
        await client.hear()
        await client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        notice = await home.next()
        assert notice.message == {"jsonrpc": "2.0", "method": "notifications/initialized"}
        notice.head(202, "text/plain", "content-length: 0")
        for _ in range(2):  # also behind an answer that says nothing of it
            await client.say(LIST)
            posted = await home.next()
            assert posted.headers["mcp-protocol-version"] == "2025-03-26"
            await posted.result({"tools": []})
            await client.hear()


async def test_a_newer_client_says_in_headers_what_is_in_its_message(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        version = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        await client.call(1, "poll", **version)
        headers = (await home.next()).headers
        assert headers["mcp-protocol-version"] == "2026-07-28"
        assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "poll")
        await client.call(2, " ünsafe", **version)
        assert (await home.next()).headers["mcp-name"] == "=?base64?IMO8bnNhZmU=?="


async def test_progress_and_the_answer_come_over_a_stream(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1, progressToken="p")
        posted = await home.next()
        posted.stream()
        await posted.event({"jsonrpc": "2.0", "id": 99, "result": "somebody else's"})
        await posted.progress(1)
        assert (await client.hear())["params"] == {"progressToken": "p", "progress": 1}
        await posted.event(posted.answer("done"))
        assert (await client.hear())["result"] == "done"


async def test_a_server_that_is_not_there_yet_is_waited_for(home: Home) -> None:
    async with client_of(home) as client:
        await client.say(LIST)
        assert "`bridle up` starts it" in await client.noted("waiting")
        await home.up()
        await (await home.next()).result({})
        assert (await client.hear())["id"] == 7
        await client.noted("is back")


async def test_one_that_was_killed_in_the_middle_gets_the_same_call_again_elsewhere(
    home: Home,
) -> None:
    await home.up("first")
    async with client_of(home) as client:
        await client.call(1, progressToken="p")
        posted = await home.next()
        posted.stream()
        await posted.progress(5)
        assert (await client.hear())["params"]["progress"] == 5
        await posted.event(posted.answer("half"), end="")
        home.kill()
        await client.noted("waiting")
        await home.up("second")
        again = await home.next()
        assert again.body == posted.body
        again.stream()
        await again.progress(1)
        # It rises, although the new server has begun again.
        assert (await client.hear())["params"]["progress"] == 6
        await again.event(again.answer("whole"))
        assert (await client.hear())["result"] == "whole"
        assert await client.end() == 0
        assert await client.stdout.read() == b""


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_server_that_has_no_room_is_asked_again(home: Home, status: int) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        posted = await home.next()
        await posted.json({"detail": "too many"}, status)
        again = await home.next()
        assert again.key == posted.key
        await again.result({})
        assert (await client.hear())["id"] == 1


async def test_a_stream_that_ends_without_an_answer_is_asked_for_again(home: Home) -> None:
    """A server ends in good order: what still waited is cut off."""
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        posted = await home.next()
        posted.stream()
        await posted.end()
        await (await home.next()).result("now")
        assert (await client.hear())["result"] == "now"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"detail": "Unknown.", "remedy": "POST it."}, "`bridle mcp token` makes one"),
        (403, {"detail": "A person's.", "remedy": "Take another."}, "A person's. Take another."),
        (404, b"<html>", "`bridle up`"),
        (413, b"", "max_body"),
        (500, b"", "answers 500"),
        (200, b"<html>", "can't be read"),
    ],
)
async def test_what_the_server_refuses_is_told_in_words_and_not_sent_again(
    home: Home, status: int, body: Any, words: str
) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        await (await home.next()).json(body, status)
        told = await client.hear()
        assert told["id"] == 1
        assert words in told["error"]["message"]
        assert await client.end() == 0
        assert home.posted.empty()


async def test_an_error_in_the_words_of_the_protocol_is_passed_on(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        error = {"code": -32022, "message": "not this version", "data": {"supported": ["x"]}}
        await (await home.next()).json({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        assert await client.hear() == {"jsonrpc": "2.0", "id": 1, "error": error}


async def test_long_lines_go_both_ways(home: Home) -> None:
    text = "x" * 8_000_000

    async def echo(posted: Posted) -> None:
        await posted.result(posted.message["params"]["arguments"])

    await home.up(answer=echo)
    async with client_of(home) as client:
        params = {"name": "say", "arguments": {"text": text}}
        await client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert (await client.hear())["result"] == {"text": text}


async def test_many_calls_wait_at_once_and_are_answered_in_any_order(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        for number in range(200):
            await client.call(number)
        waiting = [await home.next() for _ in range(200)]
        for posted in reversed(waiting):
            await posted.result(posted.message["params"]["arguments"]["n"])
        answers = [await client.hear() for _ in range(200)]
        assert {one["id"]: one["result"] for one in answers} == {n: n for n in range(200)}


async def test_a_call_that_is_withdrawn_ends_at_the_server_and_is_not_answered(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        posted = await home.next()
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        await client.say({"jsonrpc": "2.0", **cancelled})
        await asyncio.wait_for(posted.left.wait(), LIMIT)
        await client.call(2)
        await (await home.next()).result("two")
        assert (await client.hear())["id"] == 2


async def test_the_id_of_a_call_that_is_withdrawn_can_be_used_again(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        old = await home.next()
        await client.call(1)
        assert "underway already" in (await client.hear())["error"]["message"]
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        again = {"id": 1, "method": "tools/call", "params": {"name": "poll"}}
        # In one piece: the new call is read before the old one has ended.
        await client.say(
            b"\n".join(json.dumps({"jsonrpc": "2.0", **one}).encode() for one in (cancelled, again))
        )
        new = await home.next()
        assert new.key != old.key
        await asyncio.wait_for(old.left.wait(), LIMIT)
        await new.result("new")
        assert (await client.hear())["result"] == "new"


@pytest.mark.slow
async def test_the_end_of_stdin_ends_it_also_while_calls_wait(home: Home) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.call(1)
        posted = await home.next()
        assert await client.end() == 0
        await asyncio.wait_for(posted.left.wait(), LIMIT)


async def test_what_is_asked_just_before_the_end_is_answered(home: Home) -> None:
    async def answer(posted: Posted) -> None:
        await posted.result({"tools": []})

    await home.up(answer=answer)
    async with client_of(home) as client:
        await client.say(LIST)
        client.stdin.close()
        assert (await client.hear())["id"] == 7
        assert await asyncio.wait_for(client.child.wait(), LIMIT) == 0


@pytest.mark.slow
async def test_the_end_of_stdin_ends_it_while_no_server_is_there(home: Home) -> None:
    async with client_of(home) as client:
        await client.call(1)
        await client.noted("waiting")
        assert await client.end() == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"hello", -32700), (b"[]", -32600), (b'{"id":[],"method":"x"}', -32600), (b"\xff", -32700)],
)
async def test_a_line_that_is_no_message_is_answered_and_ends_nothing(
    home: Home, line: bytes, code: int
) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.say(line)
        told = await client.hear()
        assert (told["id"], told["error"]["code"]) == (None, code)
        await client.say({"jsonrpc": "2.0", "id": 3, "result": "to nobody"}, LIST)
        await (await home.next()).result({})
        assert (await client.hear())["id"] == 7


async def test_without_a_token_it_says_how_to_make_one(home: Home) -> None:
    async with client_of(home, "--name", "none") as client:
        assert "`bridle mcp token --name none`" in await client.noted("bridle: there is no token")
        assert await client.end() == 4


async def test_a_token_that_others_can_read_is_not_used(home: Home) -> None:
    home.token.chmod(0o644)
    async with client_of(home) as client:
        await client.noted("is not for its owner alone; chmod 600")


async def test_a_token_that_was_taken_away_meanwhile_is_told_and_a_new_one_is_used(
    home: Home,
) -> None:
    await home.up()
    async with client_of(home) as client:
        await client.say(LIST)
        await (await home.next()).result({})
        await client.hear()
        home.token.unlink()
        await client.say({**LIST, "id": "second"})
        assert "`bridle mcp token`" in (await client.hear())["error"]["message"]
        keep(home.home, "outside", "bridle_a_new")
        await client.say({**LIST, "id": "third"})
        assert (await home.next()).headers["authorization"] == "Bearer bridle_a_new"


async def test_it_says_how_to_name_one_token(home: Home) -> None:
    async with client_of(home, "--name", "a", "--token-file", str(home.token)) as client:
        await client.noted("give one of them")
        assert await client.end() == 2


async def test_a_server_that_is_named_is_the_one_that_is_asked(home: Home) -> None:
    await home.up("elsewhere")
    (home.home / "server.json").unlink()
    address = f"unix:{home.home / 'elsewhere.sock'}"
    async with client_of(home, BRIDLE_URL=address) as client:
        await client.say(LIST)
        await (await home.next()).result({})
        assert (await client.hear())["id"] == 7
    async with client_of(home, BRIDLE_URL="nowhere") as client:
        await client.noted("nowhere is no server's address")


async def test_nobody_who_reads_ends_it(home: Home) -> None:
    async def answer(posted: Posted) -> None:
        await posted.result({})

    await home.up(answer=answer)
    async with client_of(home) as client:
        await client.say(LIST)
        await client.hear()
        client.child.stop_reading()
        await client.say(LIST)
        assert await asyncio.wait_for(client.child.wait(), LIMIT) == 0


async def test_it_loads_no_server_and_no_other_library_of_the_protocol(home: Home) -> None:
    await home.up()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-X", "importtime", "-m", "bridle.cli", "mcp", "stdio"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=home.env,
    )
    said = asyncio.ensure_future(child.communicate(json.dumps(LIST).encode() + b"\n"))
    await (await home.next()).result({})
    _, errors = await asyncio.wait_for(said, LIMIT)
    names = {line.rpartition("|")[2].strip() for line in errors.decode().splitlines()}
    assert "httpx" in names
    assert names & {"mcp", "litestar", "uvicorn", "rich.console", "pydantic"} == set()
