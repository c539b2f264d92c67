from __future__ import annotations

from typing import Any, get_args

import pytest

from bridle.errors import InvalidAnswer
from bridle.protocol.content import suggestions
from bridle.protocol.control import CanUseTool
from bridle.protocol.permissions import (
    AddDirectories,
    AddRules,
    Allow,
    Behavior,
    Decision,
    Deny,
    Destination,
    PermissionMode,
    PermissionRule,
    PermissionUpdate,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    SetMode,
)

from .lines import answer_in, asked, can_use_tool, connect, written

BASH = PermissionRule("Bash", "npm test:*")
READ = PermissionRule("Read")
RULES = [{"toolName": "Bash", "ruleContent": "npm test:*"}, {"toolName": "Read"}]

UPDATES: list[tuple[PermissionUpdate, dict[str, Any]]] = [
    (
        AddRules([BASH, READ], "allow", "session"),
        {"type": "addRules", "rules": RULES, "behavior": "allow", "destination": "session"},
    ),
    (
        ReplaceRules([READ], "ask", "userSettings"),
        {
            "type": "replaceRules",
            "rules": [{"toolName": "Read"}],
            "behavior": "ask",
            "destination": "userSettings",
        },
    ),
    (
        RemoveRules([], "deny", "localSettings"),
        {"type": "removeRules", "rules": [], "behavior": "deny", "destination": "localSettings"},
    ),
    (
        SetMode("acceptEdits", "session"),
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ),
    (
        AddDirectories(["/a"], "projectSettings"),
        {"type": "addDirectories", "directories": ["/a"], "destination": "projectSettings"},
    ),
    (
        RemoveDirectories(["/a", "/b"], "cliArg"),
        {"type": "removeDirectories", "directories": ["/a", "/b"], "destination": "cliArg"},
    ),
]


def answered(decision: Decision, **fields: Any) -> Any:
    connection = connect()
    asked(connection, can_use_tool(**fields))
    return answer_in(connection.answer("ask-1", decision))


def test_an_answer_is_a_control_response_with_the_id_of_its_request() -> None:
    connection = connect()
    asked(connection, can_use_tool("ask-9"))
    assert written(connection.answer("ask-9", Deny("no"))) == {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "request_id": "ask-9",
            "response": {"behavior": "deny", "message": "no"},
        },
    }


def test_allow_echoes_the_full_input() -> None:
    given = {"command": "ls", "nested": {"a": [1, 2.5, None, True, "é\u2028"]}, "big": 10**20}
    assert answered(Allow(), input=given) == {"behavior": "allow", "updatedInput": given}


def test_allow_echoes_an_empty_input_too() -> None:
    assert answered(Allow(), input={}) == {"behavior": "allow", "updatedInput": {}}


def test_allow_with_another_input_sends_that_one() -> None:
    allow = Allow(updated_input={"command": "ls -l"})
    assert answered(allow)["updatedInput"] == {"command": "ls -l"}


def test_answering_leaves_the_callers_allow_as_it_was() -> None:
    allow = Allow()
    answered(allow, input={"command": "first"})
    assert answered(allow, input={"command": "second"})["updatedInput"] == {"command": "second"}


def test_an_answer_to_questions_is_an_input_with_answers() -> None:
    given = {"questions": [{"question": "Which?"}]}
    allow = Allow(updated_input={**given, "answers": {"Which?": "This"}})
    answer = answered(allow, tool_name="AskUserQuestion", input=given)
    assert answer["updatedInput"]["answers"] == {"Which?": "This"}


@pytest.mark.parametrize(("update", "wire"), UPDATES)
def test_a_permission_update_is_written_without_absent_keys(
    update: PermissionUpdate, wire: dict[str, Any]
) -> None:
    assert answered(Allow(updated_permissions=[update]))["updatedPermissions"] == [wire]


@pytest.mark.parametrize(("update", "wire"), UPDATES)
def test_a_suggested_update_is_read_as_it_would_be_written(
    update: PermissionUpdate, wire: dict[str, Any]
) -> None:
    event = asked(connect(), can_use_tool(permission_suggestions=[wire]))
    assert isinstance(event.request, CanUseTool)
    assert suggestions(event.request) == [update]


def test_every_update_is_tried_here() -> None:
    assert {type(update) for update, _ in UPDATES} == set(get_args(PermissionUpdate))


def test_allow_may_carry_a_classification() -> None:
    answer = answered(Allow(decision_classification="user_temporary"))
    assert answer["decisionClassification"] == "user_temporary"


@pytest.mark.parametrize("interrupt", [True, False])
def test_deny_may_interrupt_the_turn(interrupt: bool) -> None:
    assert answered(Deny("stop", interrupt=interrupt)) == {
        "behavior": "deny",
        "message": "stop",
        "interrupt": interrupt,
    }


def test_modes_behaviours_and_destinations_are_those_of_the_protocol() -> None:
    assert set(get_args(PermissionMode)) == {
        "default",
        "acceptEdits",
        "plan",
        "bypassPermissions",
        "dontAsk",
        "auto",
    }
    assert set(get_args(Behavior)) == {"allow", "deny", "ask"}
    assert set(get_args(Destination)) == {
        "userSettings",
        "projectSettings",
        "localSettings",
        "session",
        "cliArg",
    }


WRONG: list[Any] = [
    Deny(None),  # type: ignore[arg-type]
    Deny("no", interrupt="yes"),  # type: ignore[arg-type]
    Deny("\ud800"),
    Allow(updated_input=["ls"]),  # type: ignore[arg-type]
    Allow(updated_input=None),  # type: ignore[arg-type]
    Allow(updated_input={"command": "\ud800"}),
    Allow(updated_input={"command": object()}),
    Allow(updated_permissions=[SetMode("yolo", "session")]),  # type: ignore[arg-type]
    Allow(updated_permissions=[AddRules([], "maybe", "session")]),  # type: ignore[arg-type]
    Allow(updated_permissions=[AddRules([], "allow", "moon")]),  # type: ignore[arg-type]
    Allow(updated_permissions=[AddRules(["Bash"], "allow", "session")]),  # type: ignore[list-item]
    Allow(updated_permissions=AddRules([], "allow", "session")),  # type: ignore[arg-type]
    Allow(updated_permissions=[{"type": "allowAll"}]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("decision", WRONG)
def test_a_decision_of_the_wrong_shape_is_refused_and_the_request_waits_on(decision: Any) -> None:
    connection = connect()
    asked(connection, can_use_tool())
    with pytest.raises(InvalidAnswer) as caught:
        connection.answer("ask-1", decision)
    assert caught.value.request_id == "ask-1"
    assert "ask-1" in connection.pending
    assert answer_in(connection.answer("ask-1", Deny("no")))["behavior"] == "deny"
