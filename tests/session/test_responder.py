"""What the CLI asks is answered once, and whatever goes wrong on the way refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import bridle
from bridle import Allow, CanUseTool, Deny
from bridle.process.transport import Exit
from bridle.protocol.control import (
    DialogCompleted,
    ElicitationAnswer,
    ElicitationRequest,
    UserDialogRequest,
)
from bridle.protocol.permissions import SetMode
from bridle.testing import MemoryTransport

from .conftest import StartSession

BASH: dict[str, Any] = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}
LIMIT = 10


async def decision(cli: MemoryTransport, request_id: str = "1") -> dict[str, Any]:
    answer = await cli.answer(request_id)
    assert answer["subtype"] == "success", answer
    found: dict[str, Any] = answer["response"]
    return found


async def test_a_sync_approver_answers_at_once_without_a_task(start: StartSession) -> None:
    session, cli = await start(approver=lambda _: Allow())
    before = asyncio.all_tasks()
    cli.ask("1", **BASH)
    assert asyncio.all_tasks() - before <= {t for t in asyncio.all_tasks() if "_notify" in repr(t)}
    assert await decision(cli) == {"behavior": "allow", "updatedInput": {"command": "ls"}}
    assert session._responder._tasks == {}


async def test_an_async_approver_has_a_task_of_its_own(start: StartSession) -> None:
    gates = {name: asyncio.Event() for name in ("a", "b")}

    async def ask(request: CanUseTool) -> Allow:
        await gates[request.tool_name].wait()
        return Allow({"was": request.tool_name})

    _, cli = await start(approver=ask)
    cli.ask("1", **{**BASH, "tool_name": "a"})
    cli.ask("2", **{**BASH, "tool_name": "b"})
    gates["b"].set()
    assert (await decision(cli, "2"))["updatedInput"] == {"was": "b"}
    assert cli.answered("1") is None
    gates["a"].set()
    assert (await decision(cli, "1"))["updatedInput"] == {"was": "a"}


async def test_an_approver_is_given_every_field_of_the_request(start: StartSession) -> None:
    seen: list[CanUseTool] = []

    def ask(request: CanUseTool) -> Deny:
        seen.append(request)
        return Deny("no", interrupt=True)

    _, cli = await start(approver=ask)
    more = {"tool_use_id": "t", "blocked_path": "/x", "title": "T", "agent_id": "a"}
    cli.ask("1", **BASH, **more)
    assert await decision(cli) == {"behavior": "deny", "message": "no", "interrupt": True}
    (request,) = seen
    assert (request.tool_use_id, request.blocked_path, request.title) == ("t", "/x", "T")
    assert request.agent_id == "a"


async def test_a_request_without_a_tool_use_id_is_asked_like_any_other(start: StartSession) -> None:
    _, cli = await start(approver=lambda r: Deny(str(r.tool_use_id)))
    cli.ask("1", **BASH)
    assert (await decision(cli))["message"] == "None"


async def test_an_allow_may_change_input_and_permissions(start: StartSession) -> None:
    update = SetMode("acceptEdits", "session")
    allow = Allow({"command": "pwd"}, updated_permissions=[update])
    _, cli = await start(approver=lambda _: allow)
    cli.ask("1", **BASH)
    answer = await decision(cli)
    assert answer["updatedInput"] == {"command": "pwd"}
    assert answer["updatedPermissions"] == [
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    ]


async def test_no_approver_at_all_denies(start: StartSession) -> None:
    _, cli = await start()
    cli.ask("1", **BASH)
    answer = await decision(cli)
    assert answer["behavior"] == "deny"
    assert "no approver" in answer["message"]


def raises(_: object) -> Allow:
    raise ValueError("the database is gone")


async def raises_later(_: object) -> Allow:
    await asyncio.sleep(0)
    raise ValueError("the database is gone")


async def cancels_itself(_: object) -> Allow:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("approver", "reason"),
    [
        (raises, "the approver failed: ValueError: the database is gone"),
        (raises_later, "the approver failed: ValueError: the database is gone"),
        (cancels_itself, "the handler was cancelled"),
        (lambda _: True, "neither Allow"),
        (lambda _: None, "neither Allow"),
        (lambda _: {"behavior": "allow"}, "neither Allow"),
        (
            lambda _: Allow([1]),  # type: ignore[arg-type]
            "Expected `object",
        ),
        (lambda _: Allow({"a": "\ud800"}), "surrogate"),
        (lambda _: Deny("\ud800"), "surrogate"),
    ],
)
async def test_an_approver_that_fails_denies_with_the_reason(
    start: StartSession, approver: Any, reason: str
) -> None:
    _, cli = await start(approver=approver)
    cli.ask("1", **BASH)
    answer = await decision(cli)
    assert answer["behavior"] == "deny"
    assert reason in answer["message"]


async def test_an_error_that_can_not_be_written_still_denies(start: StartSession) -> None:
    def ask(_: object) -> Allow:
        raise ValueError("half a character: \ud83d")

    _, cli = await start(approver=ask)
    cli.ask("1", **BASH)
    assert (await decision(cli))["behavior"] == "deny"


async def test_a_withdrawn_request_cancels_its_task_and_writes_nothing(start: StartSession) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def ask(_: CanUseTool) -> Allow:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Allow()

    session, cli = await start(approver=ask)
    cli.ask("1", **BASH)
    await asyncio.wait_for(started.wait(), LIMIT)
    cli.say({"type": "control_cancel_request", "request_id": "1"})
    await asyncio.wait_for(cancelled.wait(), LIMIT)
    await session.mcp_status()
    assert cli.answered("1") is None


async def test_an_answer_that_comes_after_the_withdrawal_is_not_written(
    start: StartSession,
) -> None:
    """A stubborn approver, that answers although it was cancelled."""
    started, told = asyncio.Event(), asyncio.Event()

    async def ask(_: CanUseTool) -> Allow:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.set()
        return Allow()

    session, cli = await start(approver=ask)
    cli.ask("1", **BASH)
    await asyncio.wait_for(started.wait(), LIMIT)
    cli.say({"type": "control_cancel_request", "request_id": "1"})
    await asyncio.wait_for(told.wait(), LIMIT)
    await session.mcp_status()
    assert cli.answered("1") is None


async def test_a_request_that_comes_twice_is_asked_once(start: StartSession) -> None:
    asked: list[CanUseTool] = []

    def ask(request: CanUseTool) -> Allow:
        asked.append(request)
        return Allow()

    session, cli = await start(approver=ask)
    cli.ask("1", **BASH)
    cli.ask("1", **BASH)
    await session.mcp_status()
    assert len(asked) == 1
    assert session.counters.duplicate_requests == 1


async def test_a_request_that_can_not_be_read_is_refused(start: StartSession) -> None:
    _, cli = await start(approver=lambda _: Allow())
    cli.ask("1", subtype="can_use_tool", tool_name=7, input={})
    assert (await cli.answer("1"))["subtype"] == "error"
    cli.ask("2", subtype="brand_new")
    assert "brand_new" in (await cli.answer("2"))["error"]


async def test_the_end_of_the_cli_cancels_approvals(start: StartSession) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def ask(_: CanUseTool) -> Allow:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Allow()

    _, cli = await start(approver=ask)
    cli.ask("1", **BASH)
    await asyncio.wait_for(started.wait(), LIMIT)
    cli.end(Exit(code=1))
    await asyncio.wait_for(cancelled.wait(), LIMIT)
    assert cli.answered("1") is None


ELICITATION = {"subtype": "elicitation", "mcp_server_name": "s", "message": "Name?"}
DIALOG = {"subtype": "request_user_dialog", "dialog_kind": "k", "payload": {"a": 1}}


async def test_an_elicitation_is_answered_by_its_handler(start: StartSession) -> None:
    async def elicit(request: ElicitationRequest) -> ElicitationAnswer:
        return ElicitationAnswer("accept", {"asked": request.message})

    _, cli = await start(elicit=elicit)
    cli.ask("1", **ELICITATION)
    assert await decision(cli) == {"action": "accept", "content": {"asked": "Name?"}}


async def test_a_dialog_is_answered_by_its_handler(start: StartSession) -> None:
    def dialog(request: UserDialogRequest) -> DialogCompleted:
        return DialogCompleted(request.payload)

    _, cli = await start(dialog=dialog)
    cli.ask("1", **DIALOG)
    assert await decision(cli) == {"behavior": "completed", "result": {"a": 1}}


async def test_without_handlers_elicitations_and_dialogs_are_turned_down(
    start: StartSession,
) -> None:
    _, cli = await start()
    cli.ask("1", **ELICITATION)
    cli.ask("2", **DIALOG)
    assert await decision(cli, "1") == {"action": "decline"}
    assert await decision(cli, "2") == {"behavior": "cancelled"}


async def test_a_handler_that_answers_another_requests_answer_is_refused(
    start: StartSession,
) -> None:
    _, cli = await start(elicit=lambda _: Allow(), dialog=lambda _: 3)
    cli.ask("1", **ELICITATION)
    cli.ask("2", **DIALOG)
    assert "elicitation handler failed" in (await cli.answer("1"))["error"]
    assert "dialog handler failed" in (await cli.answer("2"))["error"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("a mistake in __str__")


def fails_unspeakably(_: object) -> Allow:
    raise Unspeakable


async def fails_unspeakably_later(_: object) -> Allow:
    raise Unspeakable


@pytest.mark.parametrize("approver", [fails_unspeakably, fails_unspeakably_later])
async def test_an_error_that_can_not_even_be_told_denies(
    start: StartSession, approver: Any
) -> None:
    _, cli = await start(approver=approver)
    cli.ask("1", **BASH)
    answer = await decision(cli)
    assert answer["behavior"] == "deny"
    assert "Unspeakable" in answer["message"]


async def test_a_request_that_is_withdrawn_before_its_approver_began_asks_nobody() -> None:
    asked: list[object] = []

    async def ask(request: object) -> Allow:
        asked.append(request)
        return Allow()

    cli = MemoryTransport()
    async with bridle.connect(transport=cli, approver=ask) as session:
        cancel = {"type": "control_cancel_request", "request_id": "1"}
        cli.say({"type": "control_request", "request_id": "1", "request": BASH}, cancel)
        await session.mcp_status()
        assert asked == []
        assert session._responder._tasks == {}
    assert cli.answered("1") is None
