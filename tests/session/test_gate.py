"""The gate: both doors, old CLIs and new ones, and a desk that hears of everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle.errors import SessionClosed
from bridle.policy import Allowed, Asked, Call, Denied, Policy
from bridle.process.transport import Exit, StopLimits, Stopped
from bridle.protocol.control import CanUseTool
from bridle.protocol.hook_outputs import PreToolUseOutput
from bridle.protocol.hooks import PreToolUse
from bridle.protocol.permissions import (
    AddDirectories,
    AddRules,
    Allow,
    Decision,
    Deny,
    PermissionRule,
    PermissionUpdate,
    RemoveDirectories,
    RemoveRules,
    SetMode,
)
from bridle.session.desk import Desk
from bridle.session.hooks import FAILED_ID, GATE_ID, RAN_ID
from bridle.testing import MemoryTransport

from .conftest import StartSession
from .wire import SESSION, init, result

OLD, NEW = "2.0.75", "2.1.325"


def hook(
    cli: MemoryTransport,
    number: str,
    tool: str = "Bash",
    mode: str = "default",
    agent_id: str | None = None,
    **given: Any,
) -> None:
    """The CLI calls the gate for a tool."""
    told = {
        "hook_event_name": "PreToolUse",
        "session_id": SESSION,
        "cwd": "/",
        "tool_name": tool,
        "tool_input": given,
        "tool_use_id": f"t{number}",
        "permission_mode": mode,
        **({"agent_id": agent_id} if agent_id else {}),
    }
    cli.ask(f"h{number}", subtype="hook_callback", callback_id=GATE_ID, input=told)


def question(cli: MemoryTransport, number: str, tool: str = "Bash", **given: Any) -> None:
    """The CLI asks by itself."""
    asked = {"subtype": "can_use_tool", "tool_name": tool, "input": given}
    cli.ask(f"q{number}", **asked, tool_use_id=f"t{number}")


def shown(cli: MemoryTransport, number: str, has_failed: bool = False, **used: Any) -> None:
    """The CLI shows with which input a tool has run."""
    told = {
        "hook_event_name": "PostToolUseFailure" if has_failed else "PostToolUse",
        "session_id": SESSION,
        "cwd": "/",
        "tool_name": "Bash",
        "tool_input": used,
        "tool_use_id": f"t{number}",
    }
    callback = FAILED_ID if has_failed else RAN_ID
    cli.ask(f"r{number}", subtype="hook_callback", callback_id=callback, input=told)


def tool_result(number: str, *, is_error: bool = False) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
    block |= {"is_error": True} if is_error else {}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": SESSION}


async def said_by_hook(cli: MemoryTransport, number: str) -> tuple[str, str]:
    answer = await cli.answer(f"h{number}")
    assert answer["subtype"] == "success", answer
    specific = answer["response"]["hookSpecificOutput"]
    return specific["permissionDecision"], specific.get("permissionDecisionReason", "")


async def said_to_question(cli: MemoryTransport, number: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await cli.answer(f"q{number}"))["response"]
    return answer


class Trail:
    """A desk that writes down what it is told, and answers when the test says so."""

    def __init__(self, decision: Decision | None = None) -> None:
        self.told: list[tuple[str, ...]] = []
        self.decision = decision
        self.verdicts: list[Asked] = []
        self.asked: list[CanUseTool] = []
        self.noted: asyncio.Future[None] | None = None
        self.failure: Exception | None = None
        self._waiting: asyncio.Queue[asyncio.Future[Decision]] = asyncio.Queue()

    def judged(self, request: CanUseTool, verdict: Allowed | Denied) -> Awaitable[None] | None:
        self.told.append((str(verdict.__struct_config__.tag), request.tool_name))
        if self.failure:
            raise self.failure
        return self.noted

    def ask(self, request: CanUseTool, verdict: Asked) -> Decision | Awaitable[Decision]:
        self.told.append(("ask", request.tool_name))
        self.asked.append(request)
        self.verdicts.append(verdict)
        if self.decision:
            return self.decision
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(answer)
        return answer

    async def decide(self, decision: Decision) -> None:
        """Answer what was asked first and waits."""
        (await asyncio.wait_for(self._waiting.get(), 10)).set_result(decision)

    def is_asked(self, _: str) -> bool:
        return False

    def delivered(self, tool_use_id: str) -> None:
        self.told.append(("delivered", tool_use_id))

    def overruled(self, tool_use_id: str, why: str) -> None:
        assert why
        self.told.append(("overruled", tool_use_id))

    def ran(self, tool_use_id: str, is_error: bool) -> None:
        self.told.append(("ran", tool_use_id, *(["error"] if is_error else [])))

    def went_on(self, tool_use_id: str, chosen: str, told: str) -> None:
        self.told.append(("went on", tool_use_id, chosen, told))

    def interrupted(self) -> None:
        self.told.append(("interrupted",))

    def turn_ended(self) -> None:
        self.told.append(("turn ended",))

    def ended(self, how: str) -> None:
        assert how
        self.told.append(("ended",))


def test_the_trail_is_a_desk() -> None:
    assert isinstance(Trail(), Desk)


async def test_the_gate_is_registered_for_every_tool_under_its_frozen_name(
    start: StartSession,
) -> None:
    _, cli = await start()
    (request,) = cli.requests("initialize")
    (gate,) = request["hooks"]["PreToolUse"]
    assert gate == {"hookCallbackIds": ["bridle-gate"], "timeout": 2147483.0, "onFailure": "block"}


async def test_hooks_of_the_user_stand_beside_the_gate(start: StartSession) -> None:
    hooks = bridle.Hooks()
    hooks.on(PreToolUse)(lambda _: None)
    _, cli = await start(hooks=hooks, version=OLD)
    (request,) = cli.requests("initialize")
    ids = [one["hookCallbackIds"] for one in request["hooks"]["PreToolUse"]]
    assert ids == [["bridle-gate"], ["bridle-PreToolUse-1"]]
    assert len(hooks) == 1


# --- rules


@pytest.mark.parametrize("version", [OLD, NEW, None])
async def test_what_a_rule_allows_runs_when_it_is_written_down(
    start: StartSession, version: str | None
) -> None:
    desk = Trail()
    desk.noted = asyncio.get_running_loop().create_future()
    _, cli = await start(version=version, approver=desk, policy=Policy(allow=["Bash(ls:*)"]))
    hook(cli, "1", command="ls -l")
    hook(cli, "2", "TodoWrite", todos=[])
    question(cli, "3", command="ls")
    for _ in range(20):
        await asyncio.sleep(0)
    assert [cli.answered(one) for one in ("h1", "h2", "q3")] == [None, None, None]
    desk.noted.set_result(None)
    assert await said_by_hook(cli, "1") == ("allow", "")
    assert await said_by_hook(cli, "2") == ("allow", "")
    assert (await said_to_question(cli, "3"))["behavior"] == "allow"
    assert desk.told == [("allow", "Bash"), ("allow", "TodoWrite"), ("allow", "Bash")]


async def test_what_is_allowed_and_can_not_be_written_down_does_not_run(
    start: StartSession,
) -> None:
    desk = Trail()
    desk.failure = OSError("the disk is full")
    _, cli = await start(approver=desk, policy=Policy(allow=["Bash(ls:*)"]))
    hook(cli, "1", command="ls")
    decision, reason = await said_by_hook(cli, "1")
    assert decision == "deny"
    assert "the disk is full" in reason


async def test_what_is_denied_is_so_also_if_it_can_not_be_written_down(
    start: StartSession, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Trail()
    desk.failure = OSError("the disk is full")
    _, cli = await start(approver=desk, policy=Policy(deny=["Bash(rm:*)"]))
    hook(cli, "1", command="rm x")
    question(cli, "2", command="rm x")
    decision, reason = await said_by_hook(cli, "1")
    assert decision == "deny"
    assert "Bash(rm:*)" in reason
    assert (await said_to_question(cli, "2"))["behavior"] == "deny"
    assert "could not be noted" in caplog.text


async def test_an_input_that_is_no_object_is_denied(start: StartSession) -> None:
    _, cli = await start(policy="autonomous")
    told = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash"}
    asked = {"subtype": "hook_callback", "callback_id": GATE_ID}
    cli.ask("h1", **asked, input={**told, "tool_input": [1, 2]})
    decision, reason = await said_by_hook(cli, "1")
    assert decision == "deny"
    assert "can't be read" in reason


async def test_in_plan_mode_the_gate_is_stricter(start: StartSession) -> None:
    _, cli = await start(policy="autonomous")
    hook(cli, "1", "Write", "plan", file_path="/tmp/x", content="")
    hook(cli, "2", "Write", "bypassPermissions", file_path="/tmp/x", content="")
    assert (await said_by_hook(cli, "1"))[0] == "deny"
    assert (await said_by_hook(cli, "2"))[0] == "allow"


async def test_the_options_of_the_launch_are_rules_too(tmp_path: Path) -> None:
    launch = {"allowed_tools": ["Bash(ls:*)"], "disallowed_tools": ["WebFetch"]}
    spec = bridle.LaunchSpec(cwd=tmp_path, **launch)  # type: ignore[arg-type]
    force = bridle.in_force("ask", spec)
    assert [(rule.behavior, rule.text) for rule in force.policy.rules] == [
        ("allow", "Bash(ls:*)"),
        ("deny", "WebFetch"),
    ]


# --- asking


@pytest.mark.parametrize("version", [OLD, NEW, "9.9.9", None])
async def test_the_wait_is_in_the_hook_and_a_question_that_follows_is_answered_at_once(
    start: StartSession, version: str | None
) -> None:
    desk = Trail()
    _, cli = await start(version=version, approver=desk)
    hook(cli, "1", command="rm x")
    for _ in range(20):
        await asyncio.sleep(0)
    assert cli.answered("h1") is None
    await desk.decide(Allow({"command": "rm y"}))
    answer = await cli.answer("h1")
    specific = answer["response"]["hookSpecificOutput"]
    assert specific["permissionDecision"] == "allow"
    assert specific["updatedInput"] == {"command": "rm y"}
    assert desk.told == [("ask", "Bash"), ("delivered", "t1")]
    for number, command in enumerate(("rm x", "rm y")):
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}}
        cli.ask(f"again{number}", **asked, tool_use_id="t1")
        told = (await cli.answer(f"again{number}"))["response"]
        assert told["updatedInput"] == {"command": "rm y"}
    assert desk.told.count(("ask", "Bash")) == 1


@pytest.mark.parametrize("policy", ["ask", "autonomous"])
async def test_an_allowed_input_is_echoed_so_that_no_other_hook_can_change_it(
    start: StartSession, policy: str
) -> None:
    _, cli = await start(approver=Trail(Allow()), policy=policy)
    hook(cli, "1", command="rm x")
    specific = (await cli.answer("h1"))["response"]["hookSpecificOutput"]
    assert specific["updatedInput"] == {"command": "rm x"}


async def test_in_plan_mode_new_clis_are_told_to_ask_and_answered_at_once(
    start: StartSession,
) -> None:
    """There an `allow` would go to a classifier."""
    desk = Trail()
    for version, expected in ((OLD, "allow"), (NEW, "ask"), (None, "ask")):
        _, cli = await start(version=version, approver=desk)
        hook(cli, "1", "Read", "plan", file_path="/x")
        specific = (await cli.answer("h1"))["response"]["hookSpecificOutput"]
        assert specific["permissionDecision"] == expected
        assert specific["updatedInput"] == {"file_path": "/x"}
        if expected == "ask":
            question(cli, "1", "Read", file_path="/x")
            assert (await said_to_question(cli, "1"))["behavior"] == "allow"
    assert desk.asked == []


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_turn_is_interrupted_before_a_no_that_says_so(
    start: StartSession, version: str
) -> None:
    """After it the CLI might ask the model once more."""
    _, cli = await start(version=version, approver=Trail(Deny("stop", interrupt=True)))
    hook(cli, "1", command="rm x")
    assert (await said_by_hook(cli, "1"))[0] == "deny"
    kinds = [message.get("request", {}).get("subtype", message["type"]) for message in cli.written]
    assert kinds[-2:] == ["interrupt", "control_response"]


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_question_is_answered_in_the_hook(start: StartSession, version: str) -> None:
    answers: dict[str, Any] = {"questions": [], "answers": {"Which?": "Blue"}}
    desk = Trail(Allow(answers))
    _, cli = await start(version=version, approver=desk, policy="autonomous")
    hook(cli, "1", "AskUserQuestion", questions=[])
    specific = (await cli.answer("h1"))["response"]["hookSpecificOutput"]
    assert (specific["permissionDecision"], specific["updatedInput"]) == ("allow", answers)
    # Old CLIs ask all the same.
    question(cli, "1", "AskUserQuestion", questions=[])
    assert (await said_to_question(cli, "1"))["updatedInput"] == answers
    assert desk.told == [("ask", "AskUserQuestion"), ("delivered", "t1")]


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_the_mode_after_a_plan_is_told_in_the_question_that_follows(
    start: StartSession, version: str
) -> None:
    mode = SetMode("acceptEdits", "session")
    desk = Trail(Allow(updated_permissions=[mode]))
    _, cli = await start(version=version, approver=desk, policy="autonomous")
    hook(cli, "1", "ExitPlanMode", "plan", plan="p")
    specific = (await cli.answer("h1"))["response"]["hookSpecificOutput"]
    # With its input the CLI would not ask.
    assert specific == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    question(cli, "1", "ExitPlanMode", plan="p")
    told = await said_to_question(cli, "1")
    assert told["updatedPermissions"][0]["mode"] == "acceptEdits"
    assert desk.told == [("ask", "ExitPlanMode"), ("delivered", "t1")]


async def test_a_plan_that_a_rule_allows_is_not_asked(start: StartSession) -> None:
    desk = Trail()
    _, cli = await start(version=OLD, approver=desk, policy=Policy(allow=["ExitPlanMode"]))
    hook(cli, "1", "ExitPlanMode", plan="p")
    assert (await said_by_hook(cli, "1"))[0] == "allow"
    question(cli, "1", "ExitPlanMode", plan="p")
    assert (await said_to_question(cli, "1"))["behavior"] == "allow"


async def test_what_the_cli_asks_although_the_hook_has_allowed_it_goes_to_a_person(
    start: StartSession,
) -> None:
    desk = Trail(Deny("better not"))
    _, cli = await start(approver=desk, policy=Policy(allow=["Bash(rm:*)"]))
    hook(cli, "1", command="rm -rf x")
    assert (await said_by_hook(cli, "1"))[0] == "allow"
    question(cli, "1", command="rm -rf x")
    assert (await said_to_question(cli, "1"))["message"] == "better not"


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_changed_input_that_a_rule_denies_stays_denied(
    start: StartSession, version: str
) -> None:
    desk = Trail(Allow({"command": "rm x"}))
    _, cli = await start(version=version, approver=desk, policy=Policy(deny=["Bash(rm:*)"]))
    hook(cli, "1", command="ls")
    await cli.answer("h1")
    question(cli, "1", command="ls")
    answer = await said_to_question(cli, "1")
    assert answer["behavior"] == "deny"
    assert "Bash(rm:*)" in answer["message"]


async def test_an_answer_that_is_none_denies(start: StartSession) -> None:
    for version in (OLD, NEW):
        _, cli = await start(version=version, approver=lambda _: True)
        hook(cli, "1", command="rm x")
        question(cli, "1", command="rm x")
        assert (await said_to_question(cli, "1"))["behavior"] == "deny"
        assert (await said_by_hook(cli, "1"))[0] in ("ask", "deny")


async def test_a_function_learns_why_it_is_asked(start: StartSession) -> None:
    asked: list[CanUseTool] = []

    def approver(request: CanUseTool) -> Deny:
        asked.append(request)
        return Deny("no")

    for version in (OLD, NEW):
        _, cli = await start(version=version, approver=approver)
        hook(cli, "1", command="echo x > .git/config")
        question(cli, "1", command="echo x > .git/config")
        await said_to_question(cli, "1")
    assert [request.decision_reason for request in asked] == [
        "a person must see this: it changes what is run or allowed later"
    ] * 2


async def test_a_desk_needs_its_own_policy() -> None:
    with pytest.raises(TypeError, match="a desk has a policy of its own"):
        bridle.connect(transport=MemoryTransport(), approver=Trail())


async def test_a_desk_needs_a_gate() -> None:
    with pytest.raises(TypeError, match="would not see every call"):
        bridle.connect(transport=MemoryTransport(), approver=Trail(), policy=bridle.Ungated())


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_decision_is_not_taken_for_another_call_with_the_same_id(
    start: StartSession, version: str
) -> None:
    desk = Trail(Allow())
    policy = Policy(deny=["Bash(curl:*)"])
    _, cli = await start(version=version, approver=desk, policy=policy)
    question(cli, "1", command="ls")
    await said_to_question(cli, "1")
    desk.decision = Deny("not that")
    for number, (tool, given) in enumerate(
        [("Bash", {"command": "rm x"}), ("Write", {"file_path": "/etc/passwd", "content": ""})]
    ):
        asked = {"subtype": "can_use_tool", "tool_name": tool, "input": given}
        cli.ask(f"again{number}", **asked, tool_use_id="t1")
        assert (await cli.answer(f"again{number}"))["response"]["message"] == "not that"
    asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "curl x"}}
    cli.ask("denied", **asked, tool_use_id="t1")
    assert "Bash(curl:*)" in (await cli.answer("denied"))["response"]["message"]


@pytest.mark.parametrize(
    ("version", "command", "expected"),
    [
        (NEW, "rm x", "deny"),
        (OLD, "rm x", "deny"),
        (NEW, "make", "deny"),
        (OLD, "make", "deny"),
        (NEW, "ls -l", None),
        (OLD, "ls -l", None),
    ],
)
async def test_an_input_that_a_hook_of_the_user_changes_is_judged_as_well(
    start: StartSession, version: str, command: str, expected: str | None
) -> None:
    hooks = bridle.Hooks()

    @hooks.on(PreToolUse)
    async def change(_: PreToolUse) -> PreToolUseOutput:
        return PreToolUseOutput(updated_input={"command": command})

    policy = Policy(allow=["Bash(ls:*)"], deny=["Bash(rm:*)"])
    _, cli = await start(version=version, hooks=hooks, policy=policy)
    told = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash"}
    asked = {"subtype": "hook_callback", "callback_id": "bridle-PreToolUse-1"}
    cli.ask("h1", **asked, input={**told, "tool_input": {"command": "ls"}})
    answer = (await cli.answer("h1"))["response"]["hookSpecificOutput"]
    assert answer.get("permissionDecision") == expected
    if expected != "deny":
        assert answer["updatedInput"] == {"command": command}


async def test_rules_that_an_approver_adds_are_bridles_and_not_the_clis(
    start: StartSession,
) -> None:
    rules = [PermissionRule("Bash", "make:*"), PermissionRule("Bash", "tox:*")]
    denied = PermissionRule("WebFetch")
    updates: list[PermissionUpdate] = [
        AddRules(rules, "allow", "userSettings"),
        AddRules([denied], "deny", "session"),
        RemoveRules(rules, "allow", "session"),
        RemoveDirectories(["/old"], "userSettings"),
        AddDirectories(["/srv"], "localSettings"),
        SetMode("acceptEdits", "userSettings"),
    ]
    session, cli = await start(approver=lambda _: Allow(updated_permissions=updates))
    question(cli, "1", command="make")
    told = (await said_to_question(cli, "1"))["updatedPermissions"]
    assert told == [
        {"type": "removeDirectories", "directories": ["/old"], "destination": "session"},
        {"type": "addDirectories", "directories": ["/srv"], "destination": "session"},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ]
    assert session.policy
    for command in ("make all", "tox -e x"):
        assert isinstance(session.policy.judge(Call("Bash", {"command": command})), Allowed)
    assert isinstance(session.policy.judge(Call("WebFetch", {"url": "https://x"})), Denied)
    write = Call("Write", {"file_path": "/srv/x", "content": ""})
    assert isinstance(session.policy.judge(write), Allowed)


async def test_a_stricter_mode_takes_back_what_was_chosen(start: StartSession) -> None:
    session, _ = await start(policy="autonomous")
    await session.set_permission_mode("bypassPermissions")
    assert session.policy
    presets = [session.policy.policy.preset]
    for mode in ("default", "bypassPermissions"):
        await session.set_permission_mode(mode)
        presets.append(session.policy.policy.preset)
    assert presets == ["autonomous", "ask", "ask"]


async def test_a_desk_that_fails_at_taking_notes_stops_nothing(
    start: StartSession, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(Trail):
        def turn_ended(self) -> None:
            raise RuntimeError("no paper")

        def interrupted(self) -> None:
            raise RuntimeError("no ink")

    session, cli = await start(approver=Clumsy(Allow()))
    turn = await session.send("go")
    cli.say(init(turn.uuid or ""), result("done", turn.uuid or ""))
    assert (await turn.result(10)).text == "done"
    await session.interrupt()
    assert "could not take a note" in caplog.text


async def test_a_result_that_can_not_be_read_ends_the_turn_for_the_desk(
    start: StartSession,
) -> None:
    desk = Trail(Allow())
    session, cli = await start(approver=desk)
    turn = await session.send("go")
    cli.say(init(turn.uuid or ""), {"type": "result", "subtype": 5})
    with pytest.raises(bridle.TurnFailed):
        await turn.result(10)
    assert ("turn ended",) in desk.told


async def test_the_stop_of_a_session_is_told_before_anything_can_be_decided(
    start: StartSession,
) -> None:
    desk = Trail()
    session, cli = await start(approver=desk)
    question(cli, "1", command="rm x")
    told_before: list[tuple[str, ...]] = []
    stop = cli.stop

    async def noticed(limits: StopLimits, *, asked: bool = False) -> Stopped:
        told_before.extend(desk.told)
        return await stop(limits, asked=asked)

    cli.stop = noticed  # type: ignore[method-assign]
    await session.stop()
    assert ("ended",) in told_before


# --- what becomes of it


async def test_the_desk_hears_what_ran_and_when_all_is_over(start: StartSession) -> None:
    desk = Trail(Allow())
    session, cli = await start(approver=desk)
    turn = await session.send("go")
    cli.say(init(turn.uuid or ""))
    question(cli, "1", command="rm x")
    await said_to_question(cli, "1")
    cli.say(tool_result("1"), result("done", turn.uuid or ""))
    await turn.result()
    expected = [("ask", "Bash"), ("delivered", "t1"), ("ran", "t1"), ("turn ended",)]
    assert desk.told == expected
    cli.end(Exit(code=1))
    assert await anext(aiter(session.messages()), None) is None
    assert desk.told == [*expected, ("ended",)]
    await session.stop()
    assert desk.told.count(("ended",)) == 1


# --- what the CLI changes


@pytest.mark.parametrize(
    ("version", "announced", "expected"),
    [(OLD, [], "ask"), ("2.1.207", [], "ask"), ("2.1.207", ["x"], "allow"), (NEW, ["x"], "allow")],
)
async def test_a_command_that_the_cli_would_change_is_asked_unless_it_shows_that_it_does_not(
    start: StartSession, version: str, announced: list[str], expected: str
) -> None:
    desk = Trail(Deny("no"))
    policy = Policy("autonomous", allow=["Bash"])
    _, cli = await start(version=version, approver=desk, policy=policy)
    cli.say(init(capabilities=announced))
    hook(cli, "1", command="ls *'; touch PWNED; ' | cat")
    hook(cli, "2", command="ls *.py | cat")
    said = [(await said_by_hook(cli, number))[0] for number in "12"]
    assert said == ["deny" if expected == "ask" else "allow", "allow"]
    assert [verdict.guard != "" for verdict in desk.verdicts] == [True] * (expected == "ask")


# --- what really ran


@pytest.mark.parametrize("has_failed", [False, True])
async def test_a_call_that_ran_as_it_was_judged_is_fine(
    start: StartSession, has_failed: bool
) -> None:
    session, cli = await start(approver=Trail(Allow()), policy=Policy(allow=["Bash(ls:*)"]))
    hook(cli, "1", command="ls", timeout=5)
    hook(cli, "2", command="rm x")
    for number in "12":
        await said_by_hook(cli, number)
    # What was left out may be filled in.
    shown(cli, "1", has_failed, command="ls", timeout=5, run_in_background=False)
    shown(cli, "2", has_failed, command="rm x")
    for number in "12":
        assert (await cli.answer(f"r{number}"))["response"] == {}
    cli.say(tool_result("1"), tool_result("2"), tool_result("3", is_error=True))
    await session.set_model("haiku")


@pytest.mark.parametrize("has_failed", [False, True])
async def test_an_agent_is_stopped_when_a_call_ran_with_another_input(
    start: StartSession, has_failed: bool
) -> None:
    session, cli = await start(approver=Trail(Allow()))
    turn = await session.send("go")
    hook(cli, "1", command="rm x")
    await said_by_hook(cli, "1")
    shown(cli, "1", has_failed, command="rm y")
    with pytest.raises(SessionClosed, match="ran with another input than the one that was allowed"):
        await turn.result(10)
    with pytest.raises(SessionClosed, match="'rm y'"):
        await session.send("go on")


async def test_another_input_that_a_rule_allows_is_fine(start: StartSession) -> None:
    session, cli = await start(policy=Policy(allow=["Bash(ls:*)"]))
    hook(cli, "1", command="ls")
    await said_by_hook(cli, "1")
    shown(cli, "1", command="ls -l")
    await cli.answer("r1")
    await session.set_model("haiku")


async def test_what_a_hook_of_the_user_has_changed_may_run_though_it_is_forbidden_since(
    start: StartSession,
) -> None:
    hooks = bridle.Hooks()

    @hooks.on(PreToolUse)
    async def change(_: PreToolUse) -> PreToolUseOutput:
        return PreToolUseOutput(updated_input={"command": "ls -l"})

    session, cli = await start(hooks=hooks, policy=Policy(allow=["Bash(ls:*)"]))
    hook(cli, "1", command="ls")
    await said_by_hook(cli, "1")
    told = {"hook_event_name": "PreToolUse", "session_id": SESSION, "tool_name": "Bash"}
    told |= {"tool_input": {"command": "ls"}, "tool_use_id": "t1"}  # type: ignore[dict-item]
    cli.ask("h2", subtype="hook_callback", callback_id="bridle-PreToolUse-1", input=told)
    await cli.answer("h2")
    assert session.policy
    session.policy.apply(Policy(deny=["Bash"]))
    shown(cli, "1", command="ls -l")
    assert (await cli.answer("r1"))["response"] == {}
    await session.set_model("haiku")


async def denied(cli: MemoryTransport, desk: Trail) -> None:
    hook(cli, "1", command="rm x")
    await desk.decide(Deny("no"))
    await said_by_hook(cli, "1")


async def undecided(cli: MemoryTransport, _: Trail) -> None:
    hook(cli, "1", command="rm x")


async def unseen(_: MemoryTransport, __: Trail) -> None:
    pass


@pytest.mark.parametrize("before", [denied, undecided, unseen])
@pytest.mark.parametrize("is_shown", [True, False])
async def test_an_agent_is_stopped_when_a_call_ran_that_nobody_allowed(
    start: StartSession,
    before: Callable[[MemoryTransport, Trail], Awaitable[None]],
    is_shown: bool,
) -> None:
    desk = Trail()
    session, cli = await start(approver=desk)
    turn = await session.send("go")
    await before(cli, desk)
    if is_shown:
        shown(cli, "1", command="rm x")
    else:
        cli.say(tool_result("1"))
    with pytest.raises(SessionClosed, match="ran although"):
        await turn.result(10)


# --- the working directory


async def test_a_call_is_denied_when_the_working_directory_may_have_changed_since_it_was_judged(
    start: StartSession,
) -> None:
    desk = Trail()
    _, cli = await start(approver=desk, policy=Policy("edits", allow=["Bash(cd:*)"]))
    hook(cli, "1", command="make")
    hook(cli, "2", command="cd sub")
    assert (await said_by_hook(cli, "2"))[0] == "allow"
    await desk.decide(Allow())
    decision, reason = await said_by_hook(cli, "1")
    assert decision == "deny"
    assert "working directory" in reason
    assert desk.told[-2:] == [("delivered", "t1"), ("overruled", "t1")]
    # While it runs nobody knows where the next one would find itself.
    hook(cli, "3", command="ls")
    assert (await said_by_hook(cli, "3"))[0] == "deny"
    cli.say(tool_result("2"))
    hook(cli, "4", command="ls")
    assert (await said_by_hook(cli, "4"))[0] == "allow"


@pytest.mark.parametrize(
    "given",
    [
        {"command": "cd sub", "run_in_background": True},
        {"command": "cd sub", "agent_id": "a1"},
        {"command": "ls sub"},
    ],
)
async def test_what_leaves_the_working_directory_as_it_is_denies_nothing(
    start: StartSession, given: dict[str, Any]
) -> None:
    desk = Trail()
    _, cli = await start(approver=desk, policy=Policy("edits", allow=["Bash(cd:*)"]))
    hook(cli, "1", command="make")
    hook(cli, "2", **given)
    assert (await said_by_hook(cli, "2"))[0] == "allow"
    await desk.decide(Allow())
    assert (await said_by_hook(cli, "1"))[0] == "allow"


async def test_our_interrupt_is_told_at_once(start: StartSession) -> None:
    desk = Trail()
    session, cli = await start(approver=desk, replies={"interrupt": None})
    question(cli, "1", command="rm x")
    interrupting = asyncio.ensure_future(session.interrupt())
    await asyncio.sleep(0)
    assert ("interrupted",) in desk.told
    interrupting.cancel()
    await asyncio.wait([interrupting])


# --- plans


def claude(home: Path) -> dict[str, Any]:
    """A policy whose ground has this home of Claude's."""
    env = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "claude")}
    return {"policy": bridle.in_force("ask", bridle.LaunchSpec(env=env))}


async def test_the_mode_that_is_chosen_with_a_plan_is_confirmed_by_what_the_cli_says(
    start: StartSession,
) -> None:
    mode = SetMode("bypassPermissions", "session")
    desk = Trail(Allow(updated_permissions=[mode]))
    session, cli = await start(approver=desk)
    question(cli, "1", "ExitPlanMode", plan="p")
    await said_to_question(cli, "1")
    assert session.policy
    assert session.policy.policy.preset == "autonomous"
    cli.say({"type": "system", "subtype": "status", "status": None, "permissionMode": "default"})
    hook(cli, "2", "TodoWrite")
    await said_by_hook(cli, "2")
    assert ("went on", "t1", "bypassPermissions", "default") in desk.told


async def test_an_old_cli_tells_its_mode_with_the_next_hook(start: StartSession) -> None:
    desk = Trail(Allow(updated_permissions=[SetMode("acceptEdits", "session")]))
    session, cli = await start(approver=desk, version=OLD)
    question(cli, "1", "ExitPlanMode", plan="p")
    await said_to_question(cli, "1")
    hook(cli, "2", "TodoWrite", "acceptEdits")
    await said_by_hook(cli, "2")
    assert ("went on", "t1", "acceptEdits", "acceptEdits") in desk.told
    assert session.permission_mode == "acceptEdits"


async def test_a_plan_is_shown_from_its_file(start: StartSession, tmp_path: Path) -> None:
    plan = tmp_path / "claude/plans/a.md"
    plan.parent.mkdir(parents=True)
    plan.write_text("1. look")
    desk = Trail(Allow())
    _, cli = await start(approver=desk, **claude(tmp_path))
    hook(cli, "1", "Write", "plan", file_path=str(plan), content="1. look")
    assert (await said_by_hook(cli, "1"))[0] != "deny"
    hook(cli, "2", "ExitPlanMode", "plan")
    await said_by_hook(cli, "2")
    assert desk.asked[-1].input == {"plan": "1. look"}


async def test_an_edited_plan_is_written_to_its_file_for_an_old_cli(
    start: StartSession, tmp_path: Path
) -> None:
    plan = tmp_path / "claude/plans/a.md"
    plan.parent.mkdir(parents=True)
    desk = Trail(Allow({"plan": "1. leap"}))
    _, cli = await start(approver=desk, version=OLD, **claude(tmp_path))
    hook(cli, "1", "Write", "plan", file_path=str(plan), content="1. look")
    await said_by_hook(cli, "1")
    question(cli, "2", "ExitPlanMode", plan="1. look")
    assert (await said_to_question(cli, "2"))["behavior"] == "allow"
    assert plan.read_text() == "1. leap"


async def test_an_edited_plan_without_a_file_goes_back_to_an_old_clis_model(
    start: StartSession,
) -> None:
    _, cli = await start(approver=Trail(Allow({"plan": "1. leap"})), version=OLD)
    question(cli, "2", "ExitPlanMode", plan="1. look")
    answer = await said_to_question(cli, "2")
    assert answer["behavior"] == "deny"
    assert answer["message"].endswith("1. leap")


async def test_a_new_cli_takes_an_edited_plan_from_the_answer(start: StartSession) -> None:
    _, cli = await start(approver=Trail(Allow({"plan": "1. leap"})))
    question(cli, "2", "ExitPlanMode", plan="1. look")
    assert (await said_to_question(cli, "2"))["updatedInput"] == {"plan": "1. leap"}


async def test_who_is_asked_hears_where_the_call_would_be_made(start: StartSession) -> None:
    desk = Trail(Deny("no"))
    _, cli = await start(approver=desk, version=OLD)
    hook(cli, "1", command="rm x")
    await said_by_hook(cli, "1")
    assert [verdict.cwd for verdict in desk.verdicts] == ["/"]
