"""Every request to the CLI: typed, with a limit, failed at once when the CLI is gone."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bridle.errors import (
    ControlFailed,
    InvalidRequest,
    NotSupported,
    RequestTimedOut,
    SessionClosed,
    SessionEnded,
    UnreadableAnswer,
)
from bridle.process.transport import Exit
from bridle.protocol import answers
from bridle.protocol.capabilities import ANSWERED_SINCE
from bridle.session.controls import Controls
from bridle.session.session import Session

from .conftest import StartSession
from .wire import init, result

Call = Callable[[Session], Awaitable[Any]]

#: Each method: how it is called, what must be written, what the CLI answers, what comes back.
TABLE: dict[str, tuple[Call, dict[str, Any], dict[str, Any], Any]] = {
    "interrupt": (
        lambda s: s.interrupt(),
        {"subtype": "interrupt"},
        {"still_queued": ["u"]},
        answers.Interrupted(["u"]),
    ),
    "set_permission_mode": (
        lambda s: s.set_permission_mode("plan"),
        {"subtype": "set_permission_mode", "mode": "plan"},
        {"mode": "plan"},
        answers.ModeSet("plan"),
    ),
    "set_model": (
        lambda s: s.set_model("opus"),
        {"subtype": "set_model", "model": "opus"},
        {},
        answers.ModelSet(),
    ),
    "set_max_thinking_tokens": (
        lambda s: s.set_max_thinking_tokens(5),
        {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 5},
        {},
        answers.Done(),
    ),
    "rewind_files": (
        lambda s: s.rewind_files("u", dry_run=True),
        {"subtype": "rewind_files", "user_message_id": "u", "dry_run": True},
        {"canRewind": True, "filesChanged": ["a"], "insertions": 1, "deletions": 2},
        answers.Rewound(True, None, ["a"], 1, 2),
    ),
    "mcp_status": (
        lambda s: s.mcp_status(),
        {"subtype": "mcp_status"},
        {"mcpServers": [{"name": "a", "status": "connected"}]},
        answers.McpServers([answers.McpServer("a", "connected")]),
    ),
    "mcp_set_servers": (
        lambda s: s.mcp_set_servers({"a": {"command": "x"}}),
        {"subtype": "mcp_set_servers", "servers": {"a": {"command": "x"}}},
        {"added": ["a"]},
        answers.McpServersSet(["a"]),
    ),
    "mcp_reconnect": (
        lambda s: s.mcp_reconnect("a"),
        {"subtype": "mcp_reconnect", "serverName": "a"},
        {},
        answers.Done(),
    ),
    "mcp_toggle": (
        lambda s: s.mcp_toggle("a", enabled=False),
        {"subtype": "mcp_toggle", "serverName": "a", "enabled": False},
        {},
        answers.Done(),
    ),
    "context_usage": (
        lambda s: s.context_usage("full"),
        {"subtype": "get_context_usage", "detail": "full"},
        {"totalTokens": 3},
        answers.ContextUsage(total_tokens=3),
    ),
    "stop_task": (
        lambda s: s.stop_task("t"),
        {"subtype": "stop_task", "task_id": "t"},
        {},
        answers.Done(),
    ),
    "background_tasks": (
        lambda s: s.background_tasks("t"),
        {"subtype": "background_tasks", "tool_use_id": "t"},
        {},
        answers.Done(),
    ),
    "task_output": (
        lambda s: s.task_output("t"),
        {"subtype": "get_task_output", "task_id": "t"},
        {"output": "o", "total_bytes": 1},
        answers.TaskOutput("o", 1),
    ),
    "cancel_prompt": (
        lambda s: s.cancel_prompt("u"),
        {"subtype": "cancel_async_message", "message_uuid": "u"},
        {"cancelled": True},
        answers.MessageCancelled(True),
    ),
    "settings": (
        lambda s: s.settings(),
        {"subtype": "get_settings"},
        {"effective": {"a": 1}},
        answers.Settings({"a": 1}),
    ),
    "apply_settings": (
        lambda s: s.apply_settings({"a": 1}),
        {"subtype": "apply_flag_settings", "settings": {"a": 1}},
        {},
        answers.Done(),
    ),
    "permission_rules": (
        lambda s: s.permission_rules(),
        {"subtype": "list_permission_rules"},
        {"state": {"a": 1}},
        answers.PermissionRules({"a": 1}),
    ),
    "reload_plugins": (
        lambda s: s.reload_plugins(),
        {"subtype": "reload_plugins"},
        {"error_count": 2},
        answers.PluginsReloaded(error_count=2),
    ),
    "reload_skills": (
        lambda s: s.reload_skills(),
        {"subtype": "reload_skills"},
        {"skills": [{"name": "a"}]},
        answers.SkillsReloaded([answers.SlashCommand("a")]),
    ),
    "rename": (
        lambda s: s.rename("T"),
        {"subtype": "rename_session", "title": "T"},
        {},
        answers.Done(),
    ),
    "generate_title": (
        lambda s: s.generate_title("d", persist=True),
        {"subtype": "generate_session_title", "description": "d", "persist": True},
        {"title": "T"},
        answers.SessionTitle("T"),
    ),
    "binary_version": (
        lambda s: s.binary_version(),
        {"subtype": "get_binary_version"},
        {"version": "1"},
        answers.BinaryVersion("1"),
    ),
    "cost": (
        lambda s: s.cost(),
        {"subtype": "get_session_cost"},
        {"text": "$1"},
        answers.SessionCost("$1"),
    ),
    "usage": (
        lambda s: s.usage(),
        {"subtype": "get_usage"},
        {"session": {"a": 1}},
        answers.UsageReport({"a": 1}),
    ),
}


def test_every_method_is_in_the_table_and_every_request_has_a_method() -> None:
    methods = {name for name, _ in inspect.getmembers(Controls, inspect.iscoroutinefunction)}
    assert set(TABLE) == methods - {"ask"}
    asked = {written["subtype"] for _, written, _, _ in TABLE.values()}
    assert asked == set(ANSWERED_SINCE) - {"initialize", "end_session"}


@pytest.mark.parametrize("name", TABLE)
async def test_a_method_writes_its_request_and_gives_the_typed_answer(
    start: StartSession, name: str
) -> None:
    call, written, reply, expected = TABLE[name]
    session, cli = await start(replies={written["subtype"]: reply})
    assert await call(session) == expected
    assert cli.requests(written["subtype"]) == [written]


@pytest.mark.parametrize(
    "name", [n for n, row in TABLE.items() if ANSWERED_SINCE[row[1]["subtype"]] > (2, 1, 12)]
)
async def test_what_an_old_cli_never_answers_is_not_even_asked(
    start: StartSession, name: str
) -> None:
    call, written, _, _ = TABLE[name]
    session, cli = await start(version="2.0.75")
    with pytest.raises(NotSupported, match=r"2\.1\.325 or newer"):
        await call(session)
    assert cli.requests(written["subtype"]) == []


async def test_a_refusal_is_raised_with_its_code(start: StartSession) -> None:
    replies = {"set_permission_mode": {"error": "no such mode", "error_code": "invalid_mode"}}
    session, _ = await start(replies=replies)
    with pytest.raises(ControlFailed) as caught:
        await session.set_permission_mode("plan")
    assert (caught.value.detail, caught.value.code) == ("no such mode", "invalid_mode")


async def test_an_answer_of_another_shape_is_raised_with_what_it_was(start: StartSession) -> None:
    session, _ = await start(replies={"get_binary_version": {"version": 7}})
    with pytest.raises(UnreadableAnswer) as caught:
        await session.binary_version()
    assert caught.value.raw == b'{"version":7}'


async def test_a_request_that_is_not_answered_in_time_is_taken_back(start: StartSession) -> None:
    session, cli = await start(replies={"mcp_status": None})
    with pytest.raises(RequestTimedOut, match=r"mcp_status: .* 0\.01 s") as caught:
        await session.mcp_status(timeout=0.01)
    assert isinstance(caught.value, TimeoutError)
    (cancel,) = [m for m in cli.written if m["type"] == "control_cancel_request"]
    late = {"subtype": "success", "request_id": cancel["request_id"], "response": {}}
    cli.say({"type": "control_response", "response": late})
    await session.interrupt()
    assert session.counters.late_responses == 1


async def test_a_cancel_is_not_written_to_a_cli_that_would_die_of_it(start: StartSession) -> None:
    session, cli = await start(version="2.0.75", replies={"mcp_status": None})
    with pytest.raises(RequestTimedOut):
        await session.mcp_status(timeout=0.01)
    assert [m for m in cli.written if m["type"] == "control_cancel_request"] == []


async def test_a_waiter_that_is_cancelled_takes_its_request_back(start: StartSession) -> None:
    session, cli = await start(replies={"mcp_status": None})
    asking = asyncio.ensure_future(session.mcp_status())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert len([m for m in cli.written if m["type"] == "control_cancel_request"]) == 1


async def test_the_end_of_the_cli_fails_all_requests_at_once(start: StartSession) -> None:
    session, cli = await start(replies={"mcp_status": None, "interrupt": None}, stderr="boom\n")
    asking = [asyncio.ensure_future(ask) for ask in (session.mcp_status(), session.interrupt())]
    await asyncio.sleep(0)
    cli.end(Exit(code=3))
    done = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 10)
    assert [type(error) for error in done] == [SessionEnded, SessionEnded]
    first, second = done
    assert isinstance(first, SessionEnded)
    assert isinstance(second, SessionEnded)
    assert (first.exit_code, first.stderr, first.request) == (3, "boom\n", "mcp_status")
    assert second.request == "interrupt"
    with pytest.raises(SessionEnded):
        await session.mcp_status()


async def test_a_stopped_session_can_not_be_asked(start: StartSession) -> None:
    session, _ = await start(replies={"mcp_status": None})
    asking = asyncio.ensure_future(session.mcp_status())
    await asyncio.sleep(0)
    await session.stop()
    with pytest.raises((SessionClosed, SessionEnded)):
        await asking
    with pytest.raises((SessionClosed, SessionEnded)):
        await session.mcp_status()
    with pytest.raises((SessionClosed, SessionEnded)):
        await session.send("hello")


async def test_a_dry_run_that_would_be_real_is_refused(start: StartSession) -> None:
    session, cli = await start(version="2.0.75")
    with pytest.raises(InvalidRequest, match="rewind for real"):
        await session.rewind_files("u", dry_run=True)
    assert cli.requests("rewind_files") == []


async def test_a_prompt_without_a_query_is_refused_where_the_cli_would_query(
    start: StartSession,
) -> None:
    session, cli = await start(version="2.1.12")
    with pytest.raises(NotSupported):
        await session.send("only remember this", query=False)
    assert cli.prompts() == []
    new, cli = await start()
    await new.send("only remember this", query=False, priority="later")
    (prompt,) = cli.prompts()
    assert (prompt["shouldQuery"], prompt["priority"]) == (False, "later")


async def test_the_permission_mode_is_what_the_cli_confirmed(start: StartSession) -> None:
    replies = {"initialize": {"current_permission_mode": "default"}, "set_permission_mode": {}}
    session, cli = await start(replies=replies)
    assert session.permission_mode == "default"
    await session.set_permission_mode("bypassPermissions")
    assert session.permission_mode == "default"
    cli.say({"type": "system", "subtype": "status", "permissionMode": "plan"})
    await session.interrupt()
    assert session.permission_mode == "plan"
    turn = await session.send("go")
    cli.say(init(permissionMode="acceptEdits"), result("A"))
    await turn.result(10)
    assert session.permission_mode == "acceptEdits"


async def test_what_the_cli_told_of_itself_is_typed(start: StartSession) -> None:
    models = {"models": [{"value": "opus", "displayName": "Opus"}], "pid": 7}
    session, _ = await start(replies={"initialize": models})
    assert session.info.models[0].display_name == "Opus"
    assert session.info.pid == 7
