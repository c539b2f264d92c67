from __future__ import annotations

from typing import Any, get_args

import pytest

from bridle.errors import InvalidRequest
from bridle.protocol import requests
from bridle.protocol.hooks import MAX_TIMEOUT_SECONDS, HookEvent, HookMatcher
from bridle.protocol.requests import OutboundRequest

from .lines import NONCE, connect, written

NEWEST = "2.1.325"

HOOKS: dict[HookEvent, list[HookMatcher]] = {
    "PreToolUse": [
        HookMatcher(["a", "b"], matcher="Bash", timeout=60, on_failure="block"),
        HookMatcher(["c"]),
    ]
}
HOOKS_WIRE = {
    "PreToolUse": [
        {
            "hookCallbackIds": ["a", "b"],
            "matcher": "Bash",
            "timeout": 60,
            "onFailure": "block",
        },
        {"hookCallbackIds": ["c"]},
    ]
}
AGENT = requests.Agent("reviews", "You review", ["Read"], "haiku")
AGENT_WIRE = {
    "description": "reviews",
    "prompt": "You review",
    "tools": ["Read"],
    "model": "haiku",
}

#: Each request, and the JSON that protocol.md section 4 gives it.
REQUESTS: list[tuple[OutboundRequest, dict[str, Any]]] = [
    (requests.Initialize(), {"subtype": "initialize", "hooks": None}),
    (
        requests.Initialize(
            hooks=HOOKS,
            agents={"rev": AGENT, "plain": requests.Agent("d", "p")},
            sdk_mcp_servers=["ours"],
            json_schema={"type": "object"},
            system_prompt="You are",
            append_system_prompt="Also",
        ),
        {
            "subtype": "initialize",
            "hooks": HOOKS_WIRE,
            "agents": {"rev": AGENT_WIRE, "plain": {"description": "d", "prompt": "p"}},
            "sdkMcpServers": ["ours"],
            "jsonSchema": {"type": "object"},
            "systemPrompt": "You are",
            "appendSystemPrompt": "Also",
        },
    ),
    (
        requests.Initialize(system_prompt=["You", "are"]),
        {"subtype": "initialize", "hooks": None, "systemPrompt": ["You", "are"]},
    ),
    (requests.Interrupt(), {"subtype": "interrupt"}),
    (
        requests.SetPermissionMode("acceptEdits"),
        {"subtype": "set_permission_mode", "mode": "acceptEdits"},
    ),
    (requests.SetModel("opus"), {"subtype": "set_model", "model": "opus"}),
    (requests.SetModel(), {"subtype": "set_model", "model": None}),
    (
        requests.SetMaxThinkingTokens(1000),
        {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 1000},
    ),
    (
        requests.SetMaxThinkingTokens(),
        {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": None},
    ),
    (requests.RewindFiles("u-1"), {"subtype": "rewind_files", "user_message_id": "u-1"}),
    (
        requests.RewindFiles("u-1", dry_run=True),
        {"subtype": "rewind_files", "user_message_id": "u-1", "dry_run": True},
    ),
    (requests.McpStatus(), {"subtype": "mcp_status"}),
    (requests.McpSetServers({}), {"subtype": "mcp_set_servers", "servers": {}}),
    (
        requests.McpSetServers({"s": {"command": "x", "args": ["y"]}}),
        {"subtype": "mcp_set_servers", "servers": {"s": {"command": "x", "args": ["y"]}}},
    ),
    (requests.McpReconnect("s"), {"subtype": "mcp_reconnect", "serverName": "s"}),
    (
        requests.McpToggle("s", False),
        {"subtype": "mcp_toggle", "serverName": "s", "enabled": False},
    ),
    (requests.GetContextUsage(), {"subtype": "get_context_usage"}),
    (
        requests.GetContextUsage("summary"),
        {"subtype": "get_context_usage", "detail": "summary"},
    ),
    (requests.StopTask("t"), {"subtype": "stop_task", "task_id": "t"}),
    (requests.BackgroundTasks(), {"subtype": "background_tasks"}),
    (requests.BackgroundTasks("u"), {"subtype": "background_tasks", "tool_use_id": "u"}),
    (requests.GetTaskOutput("t"), {"subtype": "get_task_output", "task_id": "t"}),
    (
        requests.CancelAsyncMessage("u-1"),
        {"subtype": "cancel_async_message", "message_uuid": "u-1"},
    ),
    (requests.GetSettings(), {"subtype": "get_settings"}),
    (
        requests.ApplyFlagSettings({"model": "opus"}),
        {"subtype": "apply_flag_settings", "settings": {"model": "opus"}},
    ),
    (requests.ListPermissionRules(), {"subtype": "list_permission_rules"}),
    (requests.ReloadPlugins(), {"subtype": "reload_plugins"}),
    (requests.ReloadSkills(), {"subtype": "reload_skills"}),
    (requests.RenameSession("t"), {"subtype": "rename_session", "title": "t"}),
    (
        requests.GenerateSessionTitle("d", persist=True),
        {"subtype": "generate_session_title", "description": "d", "persist": True},
    ),
    (requests.GetBinaryVersion(), {"subtype": "get_binary_version"}),
    (requests.GetSessionCost(), {"subtype": "get_session_cost"}),
    (requests.GetUsage(), {"subtype": "get_usage"}),
    (requests.EndSession(), {"subtype": "end_session"}),
    (requests.EndSession("done"), {"subtype": "end_session", "reason": "done"}),
]


def test_every_request_is_tried_here() -> None:
    assert {type(request) for request, _ in REQUESTS} == set(get_args(OutboundRequest))


@pytest.mark.parametrize(("request_", "wire"), REQUESTS)
def test_a_request_is_written_as_the_protocol_says(
    request_: OutboundRequest, wire: dict[str, Any]
) -> None:
    request_id, data = connect(version=NEWEST).request(request_)
    assert request_id == f"req_1_{NONCE}"
    assert written(data) == {
        "type": "control_request",
        "request_id": request_id,
        "request": wire,
    }


def hooks_with(**fields: Any) -> requests.Initialize:
    matcher = HookMatcher(**{"hook_callback_ids": ["a"], **fields})
    return requests.Initialize(hooks={"PreToolUse": [matcher]})


INVALID: list[Any] = [
    requests.Initialize(hooks={"PreTooluse": []}),  # type: ignore[dict-item]
    requests.Initialize(hooks={"PreToolUse": HookMatcher(["a"])}),  # type: ignore[dict-item]
    requests.Initialize(hooks=[]),  # type: ignore[arg-type]
    hooks_with(hook_callback_ids="a"),
    hooks_with(hook_callback_ids=[1]),
    hooks_with(matcher=None),
    hooks_with(timeout=0),
    hooks_with(timeout=-1),
    hooks_with(timeout=MAX_TIMEOUT_SECONDS + 1),
    hooks_with(timeout=float("nan")),
    hooks_with(timeout=float("inf")),
    hooks_with(on_failure="deny"),
    requests.Initialize(agents={"rev": "reviews"}),  # type: ignore[dict-item]
    requests.Initialize(sdk_mcp_servers=["ours", ""]),
    requests.Initialize(sdk_mcp_servers="ours"),  # type: ignore[arg-type]
    requests.Initialize(system_prompt="\ud800"),
    requests.Initialize(system_prompt=None),  # type: ignore[arg-type]
    requests.SetPermissionMode("yolo"),  # type: ignore[arg-type]
    requests.SetPermissionMode(None),  # type: ignore[arg-type]
    requests.SetModel(""),
    requests.SetModel(5),  # type: ignore[arg-type]
    requests.SetMaxThinkingTokens(-1),
    requests.SetMaxThinkingTokens("many"),  # type: ignore[arg-type]
    requests.RewindFiles(""),
    requests.RewindFiles("u-1", dry_run=1),  # type: ignore[arg-type]
    requests.McpSetServers(None),  # type: ignore[arg-type]
    requests.McpSetServers({"s": "npx"}),  # type: ignore[dict-item]
    requests.McpSetServers({"": {}}),
    requests.McpSetServers({"s": {"env": object()}}),
    requests.McpReconnect(""),
    requests.McpToggle("s", "off"),  # type: ignore[arg-type]
    requests.GetContextUsage("all"),  # type: ignore[arg-type]
    requests.StopTask(""),
    requests.BackgroundTasks(""),
    requests.GetTaskOutput(None),  # type: ignore[arg-type]
    requests.CancelAsyncMessage(""),
    requests.ApplyFlagSettings(None),  # type: ignore[arg-type]
    requests.RenameSession(""),
    requests.GenerateSessionTitle(None),  # type: ignore[arg-type]
    requests.EndSession(None),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("request_", INVALID)
def test_an_invalid_request_is_refused_before_it_is_written(request_: Any) -> None:
    connection = connect(version=NEWEST)
    with pytest.raises(InvalidRequest) as caught:
        connection.request(request_)
    assert caught.value.subtype == request_.__struct_config__.tag
    assert caught.value.reason
    assert not connection.asked


def test_a_refused_request_uses_up_no_id() -> None:
    connection = connect()
    with pytest.raises(InvalidRequest):
        connection.request(requests.StopTask(""))
    request_id, _ = connection.request(requests.Interrupt())
    assert request_id == f"req_1_{NONCE}"


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_request_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        connect().request(requests.ApplyFlagSettings(deep(200_000)))


@pytest.mark.parametrize("request_", [{"subtype": "mcp_set_servers"}, "interrupt", None])
def test_what_is_not_one_of_our_requests_is_not_written_past_the_checks(request_: Any) -> None:
    connection = connect(version=NEWEST)
    with pytest.raises(InvalidRequest, match="is not one of ours"):
        connection.request(request_)
    assert not connection.asked
