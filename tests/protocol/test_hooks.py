from __future__ import annotations

from typing import Any, get_args

import pytest

from bridle.errors import InvalidAnswer
from bridle.protocol import hook_outputs, hooks
from bridle.protocol.control import HookCallback
from bridle.protocol.hook_outputs import (
    AsyncHookOutput,
    HookOutput,
    PreToolUseOutput,
    SpecificOutput,
    pre_tool_use,
)
from bridle.protocol.hooks import MAX_TIMEOUT_SECONDS, HookEvent, HookInput, KnownHookInput
from bridle.protocol.permissions import Allow, Deny

from .lines import SESSION, answer_in, asked, connect, hook_callback
from .lines import pre_tool_use as pre_tool_use_line

TOOL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}

#: What each event tells beside what all tell.
EVENTS: dict[str, dict[str, Any]] = {
    "PreToolUse": TOOL,
    "PostToolUse": {**TOOL, "tool_response": {"stdout": "x"}},
    "PostToolUseFailure": {**TOOL, "error": "no", "is_interrupt": True},
    "PostToolBatch": {"tool_calls": [{"tool_name": "Bash"}]},
    "PermissionRequest": TOOL,
    "PermissionDenied": {**TOOL, "reason": "rule"},
    "UserPromptSubmit": {"prompt": "hello"},
    "UserPromptExpansion": {"command_name": "fix", "prompt": "/fix", "command_args": "1"},
    "SessionStart": {"source": "startup", "model": "claude"},
    "SessionEnd": {"reason": "other"},
    "Stop": {"stop_hook_active": True, "last_assistant_message": "bye"},
    "StopFailure": {"error": "rate_limit", "error_details": "429"},
    "SubagentStart": {"agent_id": "a", "agent_type": "rev"},
    "SubagentStop": {"agent_id": "a", "agent_transcript_path": "/t/a"},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
    "PostCompact": {"trigger": "auto", "compact_summary": "short"},
    "PreModelSwitch": {"from_model": "a", "to_model": "b"},
    "PostModelSwitch": {"from_model": "a", "to_model": "b", "source": "user"},
    "Notification": {"message": "waiting", "notification_type": "idle"},
    "Setup": {"trigger": "init"},
    "TeammateIdle": {"teammate_name": "t", "team_name": "team"},
    "TaskCreated": {"task_id": "1", "task_subject": "s"},
    "TaskCompleted": {"task_id": "1", "task_subject": "s"},
    "Elicitation": {"mcp_server_name": "m", "message": "Who?", "mode": "form"},
    "ElicitationResult": {"mcp_server_name": "m", "action": "accept", "content": {"a": 1}},
    "ConfigChange": {"source": "user_settings", "file_path": "/s"},
    "InstructionsLoaded": {"file_path": "/CLAUDE.md", "memory_type": "Project"},
    "WorktreeCreate": {"name": "w"},
    "WorktreeRemove": {"worktree_path": "/w"},
    "CwdChanged": {"old_cwd": "/a", "new_cwd": "/b"},
    "FileChanged": {"file_path": "/f", "event": "change"},
    "DirectoryAdded": {"directory": "/d", "source": "user"},
    "MessageDisplay": {"message_id": "m", "delta": "x", "index": 1, "final": True},
}


def test_every_event_of_the_protocol_has_an_input_type_and_is_tried_here() -> None:
    known = {kind.__struct_config__.tag for kind in get_args(KnownHookInput)}
    assert known == set(EVENTS)
    assert len(EVENTS) == 33


def told(event: str, /, **fields: Any) -> Any:
    request = asked(connect(), hook_callback(event, **fields)).request
    assert isinstance(request, HookCallback)
    return request.input


@pytest.mark.parametrize("event", EVENTS)
def test_a_hook_is_told_what_its_event_tells(event: str) -> None:
    told_input = told(event, **EVENTS[event])
    assert type(told_input) is getattr(hooks, event)
    for name, value in EVENTS[event].items():
        assert getattr(told_input, name) == value


@pytest.mark.parametrize("event", EVENTS)
def test_every_hook_is_told_the_session_and_may_be_told_the_agent(event: str) -> None:
    common = {"permission_mode": "plan", "prompt_id": "p", "agent_id": "a", "agent_type": "rev"}
    told_input = told(event, **{**EVENTS[event], **common})
    assert isinstance(told_input, HookInput)
    assert (told_input.session_id, told_input.cwd) == (SESSION, "/w")
    assert {name: getattr(told_input, name) for name in common} == common


# --- answers


def answered(output: HookOutput | AsyncHookOutput, event: str) -> Any:
    connection = connect()
    asked(connection, hook_callback(event, **EVENTS[event]))
    return answer_in(connection.answer("hook-1", output))


def test_an_empty_answer_is_an_empty_object() -> None:
    assert answered(HookOutput(), "Stop") == {}


def test_the_common_fields_have_their_names_on_the_wire() -> None:
    output = HookOutput(
        continue_=False,
        stop_reason="enough",
        suppress_output=True,
        decision="block",
        reason="go on",
        system_message="note",
    )
    assert answered(output, "Stop") == {
        "continue": False,
        "stopReason": "enough",
        "suppressOutput": True,
        "decision": "block",
        "reason": "go on",
        "systemMessage": "note",
    }


def test_an_asynchronous_answer_says_so() -> None:
    assert answered(AsyncHookOutput(), "PostToolUse") == {"async": True}
    assert answered(AsyncHookOutput(async_timeout=5), "Stop") == {"async": True, "asyncTimeout": 5}


@pytest.mark.parametrize("decision", ["allow", "deny", "ask", "defer"])
def test_pre_tool_use_decides_about_the_tool(decision: Any) -> None:
    assert answered(pre_tool_use(decision), "PreToolUse") == {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}
    }
    specific = answered(pre_tool_use(decision, "because"), "PreToolUse")["hookSpecificOutput"]
    assert specific["permissionDecisionReason"] == "because"


#: One answer with every field that it has, and how it is written.
SPECIFIC: list[tuple[SpecificOutput, dict[str, Any]]] = [
    (
        PreToolUseOutput("allow", "why", {"command": "ls"}, "more"),
        {
            "permissionDecision": "allow",
            "permissionDecisionReason": "why",
            "updatedInput": {"command": "ls"},
            "additionalContext": "more",
        },
    ),
    (
        hook_outputs.PostToolUseOutput("more", {"a": 1}, [2]),
        {
            "additionalContext": "more",
            "updatedToolOutput": {"a": 1},
            "updatedMCPToolOutput": [2],
        },
    ),
    (
        hook_outputs.PermissionRequestOutput(Deny("no")),
        {"decision": {"behavior": "deny", "message": "no"}},
    ),
    (
        hook_outputs.PermissionRequestOutput(Allow({"command": "ls"})),
        {"decision": {"behavior": "allow", "updatedInput": {"command": "ls"}}},
    ),
    (hook_outputs.PermissionDeniedOutput(True), {"retry": True}),
    (
        hook_outputs.UserPromptSubmitOutput("more", "title", True),
        {"additionalContext": "more", "sessionTitle": "title", "suppressOriginalPrompt": True},
    ),
    (
        hook_outputs.UserPromptExpansionOutput("more", False),
        {"additionalContext": "more", "suppressOriginalPrompt": False},
    ),
    (
        hook_outputs.SessionStartOutput("more", "hi", "title", ["/a"], True),
        {
            "additionalContext": "more",
            "initialUserMessage": "hi",
            "sessionTitle": "title",
            "watchPaths": ["/a"],
            "reloadSkills": True,
        },
    ),
    (
        hook_outputs.PreModelSwitchOutput("ask", "why"),
        {"permissionDecision": "ask", "permissionDecisionReason": "why"},
    ),
    (
        hook_outputs.ElicitationOutput("accept", {"a": 1}),
        {"action": "accept", "content": {"a": 1}},
    ),
    (hook_outputs.ElicitationResultOutput("decline"), {"action": "decline"}),
    (hook_outputs.CwdChangedOutput(["/a"]), {"watchPaths": ["/a"]}),
    (hook_outputs.FileChangedOutput(["/a"]), {"watchPaths": ["/a"]}),
    (hook_outputs.WorktreeCreateOutput("/w"), {"worktreePath": "/w"}),
    (hook_outputs.MessageDisplayOutput("shown"), {"displayContent": "shown"}),
    (hook_outputs.PostToolUseFailureOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.PostToolBatchOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.PostModelSwitchOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.SetupOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.StopOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.SubagentStartOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.SubagentStopOutput("more"), {"additionalContext": "more"}),
    (hook_outputs.NotificationOutput("more"), {"additionalContext": "more"}),
]


def test_every_specific_answer_is_tried_here() -> None:
    assert {type(output) for output, _ in SPECIFIC} == set(get_args(SpecificOutput))


@pytest.mark.parametrize(("specific", "wire"), SPECIFIC)
def test_a_specific_answer_names_its_event_and_its_fields(
    specific: SpecificOutput, wire: dict[str, Any]
) -> None:
    event = str(specific.__struct_config__.tag)
    answer = answered(HookOutput(hook_specific_output=specific), event)
    assert answer == {"hookSpecificOutput": {"hookEventName": event, **wire}}


WRONG: list[Any] = [
    HookOutput(hook_specific_output=hook_outputs.StopOutput("more")),
    HookOutput(hook_specific_output=hook_outputs.PostToolUseOutput()),
    HookOutput(hook_specific_output={"hookEventName": "Stop"}),  # type: ignore[arg-type]
    HookOutput(hook_specific_output={"permissionDecision": "deny"}),  # type: ignore[arg-type]
    HookOutput(hook_specific_output=None),  # type: ignore[arg-type]
    HookOutput(continue_="no"),  # type: ignore[arg-type]
    HookOutput(decision="deny"),  # type: ignore[arg-type]
    HookOutput(reason="\ud800"),
    pre_tool_use("maybe"),  # type: ignore[arg-type]
    AsyncHookOutput(async_=False),  # type: ignore[arg-type]
    AsyncHookOutput(async_timeout=0),
    AsyncHookOutput(async_timeout=MAX_TIMEOUT_SECONDS + 1),
    Deny("no"),
    Allow(),
]


@pytest.mark.parametrize("output", WRONG)
def test_a_wrong_answer_to_pre_tool_use_is_refused_and_the_hook_waits_on(output: Any) -> None:
    connection = connect()
    asked(connection, pre_tool_use_line())
    with pytest.raises(InvalidAnswer):
        connection.answer("hook-1", output)
    assert "hook-1" in connection.pending
    specific = answer_in(connection.answer("hook-1", pre_tool_use("deny")))["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"


def test_the_refusal_of_another_events_answer_names_both_events() -> None:
    connection = connect()
    asked(connection, hook_callback("Stop"))
    with pytest.raises(InvalidAnswer, match="an answer for PreToolUse hooks to a Stop hook"):
        connection.answer("hook-1", pre_tool_use("allow"))


def test_a_specific_answer_may_be_given_to_a_hook_of_an_unknown_event() -> None:
    connection = connect()
    asked(connection, hook_callback("EclipseBegins"))
    output = HookOutput(hook_specific_output=hook_outputs.StopOutput("more"))
    assert "hookSpecificOutput" in answer_in(connection.answer("hook-1", output))


def test_every_hook_that_can_be_registered_has_an_input_type() -> None:
    tags = {kind.__struct_config__.tag for kind in get_args(KnownHookInput)}
    assert tags == set(get_args(HookEvent))
