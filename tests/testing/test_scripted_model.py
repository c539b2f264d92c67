"""The scripted model speaks the Messages API, plays its script, and remembers what it was sent."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from bridle.errors import InvalidScript, KitError, PortInUse, UnexpectedTraffic
from bridle.testing import (
    Conversation,
    Hold,
    ModelRequest,
    ScriptedModel,
    Turn,
    block,
    drop,
    fail,
    has_image,
    mentions,
    offers,
    pause,
    says,
    text,
    thinking,
    tool_use,
)
from bridle.testing.side_calls import SIDE_CALLS

TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


def request(words: str = "hi", **members: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": words}]
    return {"model": "m", "max_tokens": 100, "messages": messages, "tools": TOOLS, **members}


def _post(model: ScriptedModel, path: str, body: bytes, method: str = "POST") -> tuple[int, bytes]:
    port = int(model.base_url.rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


async def post(
    model: ScriptedModel, body: dict[str, Any], path: str = "/v1/messages?beta=true"
) -> tuple[int, Any]:
    status, answer = await asyncio.to_thread(_post, model, path, json.dumps(body).encode())
    return status, json.loads(answer)


async def stream(model: ScriptedModel, body: dict[str, Any]) -> list[dict[str, Any]]:
    encoded = json.dumps({**body, "stream": True}).encode()
    status, answer = await asyncio.to_thread(_post, model, "/v1/messages", encoded)
    assert status == 200
    lines = answer.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def test_an_answer_that_does_not_stream_is_one_message() -> None:
    turn = Turn(thinking("Hmm."), "Running.", tool_use("Bash", {"command": "ls"}, timeout=5))
    async with ScriptedModel([turn]) as model:
        status, message = await post(model, request())
        assert status == 200
        assert [part["type"] for part in message["content"]] == ["thinking", "text", "tool_use"]
        assert message["content"][2]["input"] == {"command": "ls", "timeout": 5}
        assert message["stop_reason"] == "tool_use"


async def test_a_stream_has_the_events_of_the_api_and_adds_up() -> None:
    turn = Turn(
        thinking("Hmm."), text("one two three", chunk=4), pause(0), tool_use("Bash", command="ls")
    )
    async with ScriptedModel([turn]) as model:
        events = await stream(model, request())
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "one two three"
    assert json.loads("".join(d.get("partial_json", "") for d in deltas)) == {"command": "ls"}


async def test_any_block_of_the_api_can_be_scripted() -> None:
    async with ScriptedModel([Turn(block(type="redacted_thinking", data="x"))]) as model:
        events = await stream(model, request())
        assert events[1]["content_block"] == {"type": "redacted_thinking", "data": "x"}


async def test_a_hold_stops_the_stream_until_it_is_released() -> None:
    hold = Hold()
    async with ScriptedModel([Turn("first", hold, text("second", delay=0.001))]) as model:
        answer = asyncio.create_task(stream(model, request()))
        await asyncio.wait_for(hold.reached.wait(), 10)
        assert not answer.done()
        hold.release()
        assert (await answer)[-1]["type"] == "message_stop"


async def test_a_hold_that_is_never_released_does_not_keep_the_model_from_ending() -> None:
    hold = Hold()
    async with ScriptedModel([Turn("first", hold)]) as model:
        answer = asyncio.create_task(stream(model, request()))
        await asyncio.wait_for(hold.reached.wait(), 10)
    with pytest.raises(http.client.IncompleteRead):
        await answer


async def test_errors_of_the_api_are_told_as_the_api_tells_them() -> None:
    async with ScriptedModel([Turn(fail(429, "slow down", retry_after=7)), "Fine."]) as model:
        status, error = await post(model, request())
        assert status == 429
        assert error["error"] == {"type": "rate_limit_error", "message": "slow down"}
        assert (await post(model, request()))[0] == 200


async def test_an_error_can_come_late_or_in_the_middle_of_a_stream() -> None:
    hold = Hold()
    late, middle = Turn(hold, fail(500, "late")), Turn("said", fail(529, "broke off"))
    async with ScriptedModel([late, middle, middle]) as model:
        answer = asyncio.create_task(post(model, request(stream=True)))
        await asyncio.wait_for(hold.reached.wait(), 10)
        hold.release()
        assert (await answer)[0] == 500
        events = await stream(model, request())
        assert events[-1]["error"] == {"type": "overloaded_error", "message": "broke off"}
        assert (await post(model, request()))[0] == 529


async def test_an_answer_in_one_piece_waits_and_breaks_as_a_stream_does() -> None:
    hold = Hold()
    async with ScriptedModel([Turn(hold, "said"), Turn("never", drop())]) as model:
        answer = asyncio.create_task(post(model, request()))
        await asyncio.wait_for(hold.reached.wait(), 10)
        assert not answer.done()
        hold.release()
        assert (await answer)[0] == 200
        with pytest.raises(http.client.RemoteDisconnected):
            await post(model, request())


async def test_a_matcher_that_raises_is_told_and_not_a_silent_hang() -> None:
    model = ScriptedModel([Turn("x", when=lambda r: r.body["no such key"])])
    await model.__aenter__()
    assert (await post(model, request()))[0] == 400
    assert (await post(model, request()))[0] == 400
    assert model.problems == ["the script failed: KeyError('no such key')"]
    with pytest.raises(UnexpectedTraffic, match="KeyError"):
        await model.__aexit__(None)


async def test_a_client_that_does_not_read_does_not_keep_the_model_from_ending() -> None:
    hold = Hold()
    async with ScriptedModel([Turn(hold, text("x" * 30_000_000, chunk=1_000_000))]) as model:
        port = int(model.base_url.rsplit(":", 1)[1])
        body = json.dumps(request(stream=True)).encode()
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await asyncio.wait_for(hold.reached.wait(), 10)
        hold.release()
    writer.transport.abort()


def test_what_is_no_port_and_an_address_before_its_time_are_told() -> None:
    with pytest.raises(KitError, match="a port is a number from 0"):
        ScriptedModel(["x"], port=70_000)
    with pytest.raises(KitError, match="is not running yet"):
        _ = ScriptedModel(["x"]).base_url


async def test_a_dropped_connection_breaks_in_the_middle_of_the_answer() -> None:
    async with ScriptedModel([Turn("half of", drop(), "the answer")]) as model:
        with pytest.raises(http.client.IncompleteRead) as caught:
            await stream(model, request())
        assert b"half of" in caught.value.partial


async def test_tokens_are_counted() -> None:
    async with ScriptedModel(["never asked"]) as model:
        status, answer = await post(model, request(), "/v1/messages/count_tokens?beta=true")
        assert status == 200
        assert answer["input_tokens"] > 10
        assert (model.requests, model.unplayed) == ([], 1)


async def test_what_is_no_message_is_answered_with_not_found() -> None:
    async with ScriptedModel(["x"]) as model:
        assert (await post(model, request(), "/v1/models"))[0] == 404
        assert (await asyncio.to_thread(_post, model, "/v1/messages", b"not json"))[0] == 404
        assert (await asyncio.to_thread(_post, model, "/v1/messages", b"", "GET"))[0] == 404
        assert (await asyncio.to_thread(_post, model, "/", b"", "HEAD"))[0] == 200


async def test_what_was_sent_is_remembered_and_easy_to_ask() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "", "media_type": "image/png"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text_block("out"), picture]}
    reminder = text_block("<system-reminder>be nice</system-reminder>")
    messages = [
        {"role": "user", "content": [reminder, text_block("the prompt")]},
        {"role": "assistant", "content": "working"},
        {"role": "system", "content": "between the lines"},
        {"role": "user", "content": [result]},
    ]
    async with ScriptedModel(["ok"]) as model:
        await post(model, {**request(), "messages": messages, "system": [text_block("be brief")]})
        (sent,) = model.requests
    assert (sent.prompt, sent.tools, sent.model) == ("the prompt", ["Bash"], "m")
    assert (sent.tool_results, sent.images) == ({"t1": "out"}, 1)
    assert "be brief" in sent.system
    assert "between the lines" in sent.system
    assert "working" in sent.everything
    assert "the prompt" in repr(sent)


def text_block(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


async def test_several_conversations_play_side_by_side() -> None:
    child = Conversation(["child 1", "child 2"], when=says("review"))
    async with ScriptedModel(["parent 1", "parent 2"], child) as model:
        answers = [
            (await post(model, request(words)))[1]["content"][0]["text"]
            for words in ("build", "review it", "go on", "review again")
        ]
        assert answers == ["parent 1", "child 1", "parent 2", "child 2"]
        assert model.unplayed == 0


async def test_what_comes_after_the_script_can_be_scripted_too() -> None:
    async with ScriptedModel(Conversation([], then="for ever")) as model:
        for _ in range(3):
            assert (await post(model, request()))[1]["content"][0]["text"] == "for ever"


MATCHERS: list[tuple[Callable[..., bool], bool]] = [
    (says("hi"), True),
    (says("ho"), False),
    (mentions("be brief"), True),
    (offers("Bash"), True),
    (offers("Read"), False),
    (has_image, False),
]


@pytest.mark.parametrize(("matcher", "matches"), MATCHERS)
async def test_a_turn_that_does_not_expect_what_comes_is_an_error_of_the_test(
    matcher: Callable[..., bool], matches: bool
) -> None:
    model = ScriptedModel([Turn("ok", when=matcher)])
    await model.__aenter__()
    status, _ = await post(model, request(system="be brief"))
    assert status == (200 if matches else 400)
    if matches:
        await model.__aexit__(None)
    else:
        with pytest.raises(UnexpectedTraffic, match="turn 1 does not expect"):
            await model.__aexit__(None)


async def test_a_request_after_the_end_of_the_script_is_an_error_of_the_test() -> None:
    model = ScriptedModel([])
    await model.__aenter__()
    assert (await post(model, request()))[0] == 400
    with pytest.raises(UnexpectedTraffic, match="the script is over, and the CLI asks on"):
        await model.__aexit__(None)


async def test_a_request_that_no_conversation_wants_is_an_error_of_the_test() -> None:
    model = ScriptedModel(Conversation(["x"], when=says("nothing like it")))
    await model.__aenter__()
    assert (await post(model, request()))[0] == 400
    with pytest.raises(UnexpectedTraffic, match="no conversation is scripted for"):
        await model.__aexit__(None)


async def test_the_tests_own_error_is_not_hidden_by_the_models() -> None:
    model = ScriptedModel([])
    await model.__aenter__()
    await post(model, request())
    await model.__aexit__(ZeroDivisionError)
    assert model.problems


SIDE: dict[str, dict[str, Any]] = {
    "quota probe": {"max_tokens": 1},
    "subagent warm-up (2.0)": {"messages": [{"role": "user", "content": "Warmup"}]},
    "command prefix (2.0)": {"messages": [{"role": "user", "content": "<policy_spec> x"}]},
    "paths of a command (2.0)": {
        "system": "Extract any file paths that this command reads or modifies"
    },
    "files of a repository (2.0)": {
        "messages": [{"role": "user", "content": "Files modified by user:\n\n"}]
    },
    "topic (2.0)": {"system": "answer with isNewTopic and title"},
    "session title": {"system": 'Make a title. JSON with a "title" field'},
}


@pytest.mark.parametrize("call", SIDE_CALLS, ids=lambda call: call.name)
async def test_side_calls_use_up_no_turn(call: Any) -> None:
    body = {**request(), "tools": [], **SIDE[call.name]}
    async with ScriptedModel(["the turn"]) as model:
        _, answer = await post(model, body)
        assert "".join(block["text"] for block in answer["content"]) == call.answer
        assert (model.unplayed, len(model.side_calls), model.requests) == (1, 1, [])


async def test_a_request_without_tools_is_not_a_side_call_for_that_alone() -> None:
    async with ScriptedModel(["the turn"]) as model:
        _, answer = await post(model, {**request(), "tools": []})
        assert answer["content"][0]["text"] == "the turn"


async def test_a_port_in_use_is_told_with_what_to_do() -> None:
    async with ScriptedModel(["x"]) as model:
        port = int(model.base_url.rsplit(":", 1)[1])
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use; stop what"):
            await ScriptedModel(["y"], port=port).__aenter__()


async def test_the_environment_is_made_of_nothing_that_was_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    async with ScriptedModel(["x"]) as model:
        env = model.environment(tmp_path / "home")
        assert env["ANTHROPIC_BASE_URL"] == model.base_url
    assert not {"CLAUDECODE", "ANTHROPIC_AUTH_TOKEN"} & set(env)
    homes = [env[name] for name in ("HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "CLAUDE_CODE_TMPDIR")]
    assert all(home.startswith(str(tmp_path)) for home in homes)


async def test_a_turn_may_be_made_from_what_the_model_is_sent() -> None:
    def use_it(sent: ModelRequest) -> Turn:
        return Turn(tool_use("Bash", command=f"kill {json.loads(sent.last_result)['id']}"))

    result = {"type": "tool_result", "tool_use_id": "t1", "content": '{"id": 7}'}
    messages = [{"role": "user", "content": [result]}]
    async with ScriptedModel(
        Conversation(["first", use_it], then=lambda sent: sent.model)
    ) as model:
        await post(model, request())
        _, made = await post(model, request(messages=messages))
        assert made["content"][0]["input"] == {"command": "kill 7"}
        _, after = await post(model, request())
        assert after["content"][0]["text"] == "m"
        assert model.unplayed == 0


async def test_a_mistake_in_the_making_of_a_turn_is_told() -> None:
    model = ScriptedModel([lambda _: cast(str, 5)])
    async with model:
        status, answer = await post(model, request())
        assert status == 400
        assert "a list of Turns or strings, not 5" in answer["error"]["message"]
        [problem] = model.problems
        model.problems.clear()
    assert problem.startswith("the script failed")


@pytest.mark.parametrize(
    ("mistake", "why"),
    [
        (ScriptedModel, "needs a script"),
        (Turn, "needs at least one piece"),
        (lambda: Turn(cast(str, 5)), "holds strings and pieces"),
        (lambda: Turn(fail(500), "a"), "nothing can follow"),
        (lambda: Turn("a", when=cast(Any, "x")), "takes a matcher"),
        (lambda: Conversation(["a"], when=cast(Any, "x")), "takes a matcher"),
        (lambda: ScriptedModel("Hello"), "a list of Turns or strings, not 'Hello'"),
        (lambda: ScriptedModel(cast(Any, Turn("x"))), "a list of Turns or strings"),
        (lambda: fail(cast(int, "529")), "400 to 599"),
        (lambda: pause(-1), "0 or more"),
        (lambda: tool_use(""), "takes a tool's name"),
        (lambda: tool_use("B", cast(Any, 5)), "takes a tool's name"),
        (lambda: text(cast(str, 5)), "takes a string"),
        (lambda: fail(200), "400 to 599"),
        (lambda: text("x", chunk=0), "a chunk of 1 or more"),
        (lambda: block(text="x"), "needs a type"),
        (lambda: Conversation([cast(str, 5)]), "a list of Turns or strings"),
    ],
)
def test_a_mistake_in_a_script_is_named(mistake: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidScript, match=why):
        mistake()
