"""The fake CLI plays its scenario, reports what it was told, and misbehaves as it is bidden."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import InvalidScript, TimedOut
from bridle.protocol import Allow, Deny, HookMatcher, McpAnswer, McpMessage, pre_tool_use
from bridle.protocol.events import (
    Failure,
    LineMalformed,
    RequestWithdrawn,
    StreamEnded,
)
from bridle.protocol.hooks import PreToolUse
from bridle.protocol.messages import Assistant, KeepAlive, Result, StreamEvent, User
from bridle.protocol.requests import GetUsage, Initialize, Interrupt, McpStatus
from bridle.protocol.system import Informational, Init
from bridle.testing import FakeCli, PipedCli
from bridle.testing.fake_claude import FakeClaude
from bridle.testing.scenario import VERBS, mistake_in

MakeFake = Callable[..., FakeCli]
Start = Callable[..., Awaitable[PipedCli]]


async def test_a_turn_is_played_and_what_was_told_is_reported(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    fake = fake_cli([{"prompt": "hello"}, {"init": {}}, {"say": "Hi."}, {"result": "Hi."}])
    cli = await piped_cli(fake.command)
    cli.prompt("hello there")
    assert (await cli.result()).result == "Hi."
    assert cli.messages(Init)[0].claude_code_version == "2.1.325"
    assert fake.told()[0]["message"]["content"] == "hello there"


async def test_a_prompt_that_is_not_the_expected_one_ends_it_with_3(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    cli = await piped_cli(fake_cli([{"prompt": "hello"}]).command)
    cli.prompt("goodbye")
    assert await cli.exit_code() == 3
    assert "expected a prompt with 'hello'" in cli.stderr


async def test_partials_add_up_to_the_final_message(fake_cli: MakeFake, piped_cli: Start) -> None:
    cli = await piped_cli(fake_cli([{"partial": "one two three", "chunk": 4}]).command)
    await cli.message(Assistant)
    events = [message.event for message in cli.messages(StreamEvent)]
    deltas = [getattr(getattr(event, "delta", None), "text", "") for event in events]
    assert "".join(deltas) == "one two three"


@pytest.mark.parametrize(
    ("answer", "text", "is_error"),
    [(Allow(), '{"command": "ls"}', False), (Deny("no"), "no", True)],
)
async def test_a_permission_is_asked_and_the_answer_comes_out_as_the_tools_result(
    fake_cli: MakeFake, piped_cli: Start, answer: Allow | Deny, text: str, is_error: bool
) -> None:
    ask = {"ask": {"tool_name": "Bash", "input": {"command": "ls"}}, "id": "q1"}
    fake = fake_cli([ask])
    cli = await piped_cli(fake.command)
    cli.answer(await cli.request(), answer)
    said = await cli.message(User)
    block = said.message.content[0]
    assert (block.content, block.is_error) == (text, is_error)  # type: ignore[union-attr]
    told = fake.answer_to("q1")
    assert told
    assert told["response"]["behavior"] == ("deny" if is_error else "allow")
    assert fake.answer_to("never") is None


async def test_a_deny_with_interrupt_ends_the_turn(fake_cli: MakeFake, piped_cli: Start) -> None:
    cli = await piped_cli(fake_cli([{"ask": {"tool_name": "Bash"}}]).command)
    cli.answer(await cli.request(), Deny("no", interrupt=True))
    assert (await cli.result()).subtype == "error_during_execution"


async def test_a_hook_is_called_by_the_id_that_was_registered(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    hook = {"hook": {"tool_name": "Bash", "tool_input": {"command": "ls"}}, "id": "h1"}
    fake = fake_cli([{"prompt": True}, hook, {"result": "ok"}])
    cli = await piped_cli(fake.command)
    await cli.ask(Initialize(hooks={"PreToolUse": [HookMatcher(["gate"])]}))
    cli.prompt("go")
    event = await cli.request()
    assert event.request.callback_id == "gate"  # type: ignore[union-attr]
    assert isinstance(event.request.input, PreToolUse)  # type: ignore[union-attr]
    cli.answer(event, pre_tool_use("deny", "no"))
    await cli.result()
    told = fake.answer_to("h1")
    assert told
    assert told["response"]["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_it_speaks_mcp(fake_cli: MakeFake, piped_cli: Start) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    fake = fake_cli([{"mcp": {"server_name": "calc", "message": message}, "id": "m"}])
    cli = await piped_cli(fake.command)
    event = await cli.request()
    assert isinstance(event.request, McpMessage)
    cli.answer(event, McpAnswer({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}))
    cli.close_stdin()
    assert await cli.exit_code() == 0
    assert fake.answer_to("m")


async def test_a_request_can_be_withdrawn_and_others_awaited_later(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [
        {"ask": {"tool_name": "Bash"}, "id": "a", "wait": False},
        {"ask": {"tool_name": "Read"}, "id": "b", "wait": False},
        {"cancel": "a"},
        {"await": "b"},
        {"result": "done"},
    ]
    cli = await piped_cli(fake_cli(steps).command)
    await cli.expect(lambda e: isinstance(e, RequestWithdrawn))
    assert list(cli.connection.pending) == ["b"]
    cli.answer(cli.connection.pending["b"], Allow())
    assert (await cli.result()).result == "done"


async def test_ten_permissions_can_be_pending_at_once_and_each_gets_its_result(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    ids = [f"q{number}" for number in range(10)]
    asks = [
        {"ask": {"tool_name": "Bash", "tool_use_id": id_}, "id": id_, "wait": False} for id_ in ids
    ]
    fake = fake_cli([*asks, *({"await": id_} for id_ in ids), {"result": "done"}])
    cli = await piped_cli(fake.command)
    await cli.request(lambda e: e.request_id == "q9")
    for id_ in reversed(ids):
        cli.answer(cli.connection.pending[id_], Deny(f"no to {id_}"))
    await cli.result()
    said = [block.content for m in cli.messages(User) for block in m.message.content]  # type: ignore[union-attr]
    assert said == [f"no to {id_}" for id_ in ids]


async def test_a_scenario_can_wait_for_what_the_controller_asks(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [{"say": "working"}, {"await_request": "interrupt"}, {"result": {"subtype": "stopped"}}]
    cli = await piped_cli(fake_cli(steps).command)
    await cli.message(Assistant)
    await cli.ask(McpStatus())
    assert not cli.messages(Result)
    await cli.ask(Interrupt())
    assert (await cli.result()).subtype == "stopped"


async def test_to_wait_twice_takes_two_requests(fake_cli: MakeFake, piped_cli: Start) -> None:
    waits = {"await_request": "interrupt"}
    cli = await piped_cli(fake_cli([waits, {"say": "once"}, waits, {"say": "twice"}]).command)
    await cli.ask(Interrupt())
    await cli.message(Assistant)
    await cli.ask(McpStatus())
    assert len(cli.messages(Assistant)) == 1
    await cli.ask(Interrupt())
    await cli.message(Assistant)


@pytest.mark.parametrize("waiting", [{"prompt": True}, {"await_request": "interrupt"}])
async def test_stdin_that_is_closed_where_more_is_due_ends_it_with_0(
    fake_cli: MakeFake, piped_cli: Start, waiting: dict[str, Any]
) -> None:
    cli = await piped_cli(
        fake_cli([{"repeat": 2, "steps": [waiting]}, {"result": "never"}]).command
    )
    cli.close_stdin()
    assert await cli.exit_code() == 0
    assert not cli.messages(Result)


async def test_stdin_that_is_closed_with_a_permission_pending_fails_it_and_goes_on(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    cli = await piped_cli(fake_cli([{"ask": {"tool_name": "Bash"}}, {"result": "went on"}]).command)
    await cli.request()
    cli.close_stdin()
    assert (await cli.result()).result == "went on"


async def test_to_await_what_was_never_asked_is_a_mistake(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    cli = await piped_cli(fake_cli([{"await": "nobody"}]).command)
    assert await cli.exit_code() == 2
    assert "nothing was asked with this id" in cli.stderr


async def test_replies_to_the_controllers_requests_can_be_scripted(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    replies = {"get_usage": {"error": "not today", "error_code": "closed"}, "mcp_status": None}
    cli = await piped_cli(fake_cli([{"prompt": True}], replies=replies).command)
    assert await cli.ask(GetUsage()) == Failure("not today", "closed")
    with pytest.raises(TimedOut, match="an answer to McpStatus did not come"):
        await cli.ask(McpStatus(), 0.2)


@pytest.mark.slow
async def test_it_tears_lines_talks_nonsense_and_writes_60_mb_lines(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [
        {"tear": {"type": "keep_alive"}, "pieces": 9, "delay": 0},
        {"nonsense": 2000},
        {"bytes": base64.b64encode(b'\xff\xfe\x00{"half\n').decode()},
        {"raw": "not json\n"},
        {"big": 60_000_000},
        {"result": "still here"},
    ]
    cli = await piped_cli(fake_cli(steps).command)
    assert (await cli.result()).result == "still here"
    assert len(cli.messages(KeepAlive)) == 1
    assert len([e for e in cli.events if isinstance(e, LineMalformed)]) >= 3
    (big,) = cli.messages(Assistant)
    assert len(big.message.content[0].text) == 60_000_000  # type: ignore[union-attr]


async def test_it_ignores_signals_and_leaves_a_grandchild_in_its_own_session(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [
        {"ignore": ["SIGTERM", "SIGINT"]},
        {"spawn": {"seconds": 600}},
        {"stderr": "still breathing\n"},
        {"result": "ready"},
    ]
    fake = fake_cli(steps)
    cli = await piped_cli(fake.command)
    await cli.result()
    spawned = next(entry["spawned"] for entry in fake.report() if "spawned" in entry)
    assert cli.messages(Informational)[0].content == f"spawned {spawned}"
    try:
        assert os.getsid(spawned) == spawned != os.getsid(cli.process.pid)
        cli.signal(signal.SIGTERM)
        cli.signal(signal.SIGINT)
        cli.close_stdin()
        assert await cli.exit_code() == 0
        os.kill(spawned, 0)
    finally:
        os.kill(spawned, signal.SIGKILL)


@pytest.mark.parametrize(
    ("last", "code"), [({"exit": 7}, 7), ({"die": "SIGKILL"}, -9), ({"die": "SIGTERM"}, -15)]
)
async def test_it_dies_at_any_point_in_the_middle_of_a_line_too(
    fake_cli: MakeFake, piped_cli: Start, last: dict[str, Any], code: int
) -> None:
    steps = [{"say": "Hi."}, {"ask": {"tool_name": "Bash"}, "wait": False}, {"raw": '{"type":"as'}]
    cli = await piped_cli(fake_cli([*steps, last]).command)
    assert await cli.exit_code() == code
    ended = cli.events[-1]
    assert isinstance(ended, StreamEnded)
    assert len(ended.unsettled) == 1
    assert isinstance(cli.events[-2], LineMalformed)


async def test_it_stalls_and_repeats_and_closes_its_output(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [
        {"repeat": 3, "steps": [{"say": "again"}, {"pause": 0}, {"stall": 0}]},
        {"tool_use": {"name": "Bash"}},
        {"message": {"type": "keep_alive"}},
        {"close_stdout": True},
    ]
    cli = await piped_cli(fake_cli(steps).command)
    cli.close_stdin()
    assert await cli.exit_code() == 0
    assert len(cli.messages(Assistant)) == 4


async def test_a_malformed_line_ends_it_as_it_ends_a_real_one(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    cli = await piped_cli(fake_cli([{"prompt": True}, {"result": "never"}]).command)
    cli.write(b'{"type": broken\n')
    assert await cli.exit_code() == 1
    assert not cli.messages(Result)


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        ("text", "a scenario is a list of steps"),
        ({"steps": [], "colour": 1}, "unknown setting 'colour'"),
        ({"version": "1"}, "it has no steps"),
        (["say"], "step 1: a step is an object with one verb"),
        ([{"say": "a"}, {"sya": "b"}], "step 2: unknown verb 'sya'; known: "),
        ([{"say": "a", "raw": "b"}], "step 1: a step has one verb, not 2: say, raw"),
        ([{"id": "x"}], "step 1: a step has one verb, not 0: none"),
        ([{"say": 5}], "step 1: 'say' takes str, not 5"),
        ([{"big": True}], "step 1: 'big' takes int, not True"),
        ([{"die": "SIGNOPE"}], "step 1: 'SIGNOPE' is not a signal's name"),
        ([{"ignore": ["SIGTERM", 4]}], "step 1: 4 is not a signal's name"),
        ([{"ignore": ["SIGKILL"]}], "step 1: SIGKILL can't be ignored"),
        ([{"die": "SIG_IGN"}], "step 1: 'SIG_IGN' is not a signal's name"),
        ([{"repeat": 2, "steps": [{"x": 1}]}], "step 1, step 1: unknown verb 'x'"),
        ([{"repeat": 2}], "step 1: 'repeat' needs \"steps\""),
        ([{"say": "a", "wait": True}], "step 1: 'wait' does not go with 'say'"),
        ([{"ask": {"tool_name": "B"}, "wiat": True}], "step 1: unknown verb 'wiat'; known: "),
        ([{"ask": {"tool_name": "B"}, "wait": "no"}], "step 1: 'wait' takes true or false"),
        ([{"ask": {"tool_name": "B"}, "id": 5}], "step 1: 'id' takes a string"),
        ([{"ask": {}}], "step 1: 'ask' needs a tool_name"),
        ([{"partial": "x", "chunk": 0}], "step 1: 'chunk' takes a number of 1 or more"),
        ([{"tear": {}, "pieces": "many"}], "step 1: 'pieces' takes a number of 1 or more"),
        ([{"stall": -1}], "step 1: 'stall' takes a number of 0 or more"),
        ([{"say": "\ud83d"}], "step 1: 'say' has half a character in it"),
        ([{"bytes": "@@@"}], "step 1: 'bytes' takes base64"),
        ([{"spawn": {"seconds": "x"}}], "step 1: 'spawn' takes seconds and new_session"),
        ([{"exit": 300}], "step 1: 'exit' takes 0 to 255"),
        ([{"prompt": False}], "step 1: 'prompt' takes true, or words"),
        ([{"close_stdout": False}], "step 1: 'close_stdout' takes true"),
        ({"steps": [], "version": 5}, "'version' takes str, not 5"),
        ({"steps": [], "replies": {"x": 5}}, "the reply to 'x' is an object, or null for never"),
    ],
)
def test_a_mistake_in_a_scenario_is_named(scenario: Any, why: str) -> None:
    assert (mistake_in(scenario) or "").startswith(why)


def test_a_mistake_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidScript, match="unknown verb 'sya'"):
        FakeCli([{"sya": "b"}], tmp_path)
    assert FakeCli([], tmp_path).report() == []


def run_fake(
    *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bridle.testing.fake_claude", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, **(env or {})},
    )


def wrong_starts(tmp_path: Path) -> Iterator[tuple[list[str], str]]:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    typo = tmp_path / "typo.json"
    typo.write_text('[{"sya": 1}]')
    yield [], "give it a script: --scenario FILE"
    yield ["--scenario", str(tmp_path / "none.json")], "can't read the scenario"
    yield ["--scenario", str(bad)], "can't read the scenario"
    yield ["--scenario", str(typo)], "step 1: unknown verb 'sya'"


def test_a_wrong_start_is_one_clear_line_and_exit_code_2(tmp_path: Path) -> None:
    for arguments, why in wrong_starts(tmp_path):
        done = run_fake(*arguments)
        assert done.returncode == 2
        assert why in done.stderr
        assert done.stderr.count("\n") == 1


def test_it_tells_its_version_and_takes_its_scenario_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"steps": [{"say": "x"}], "version": "9.8.7"}))
    done = run_fake("--version", env={"BRIDLE_FAKE_SCENARIO": str(path)})
    assert (done.returncode, done.stdout) == (0, "9.8.7 (Claude Code)\n")


def test_every_verb_is_played_by_a_method_and_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    for verb in VERBS:
        assert hasattr(FakeClaude, f"do_{verb}")
        assert f'`{{"{verb}": ' in page, f"docs/testing.md does not show {verb}"


def test_it_starts_without_anything_that_is_slow_to_import(tmp_path: Path) -> None:
    fake = FakeCli([{"say": "x"}], tmp_path)
    python, *rest = fake.command
    done = subprocess.run(
        [python, "-X", "importtime", *rest],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert imported & {"typing", "asyncio", "subprocess", "msgspec", "random", "socket"} == set()
