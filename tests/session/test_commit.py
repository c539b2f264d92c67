"""The seam: nothing is acted on before it is committed, and what can't be committed is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import bridle
from bridle import Allow, Hooks
from bridle.errors import CommitFailed, SessionEnded
from bridle.process.transport import Exit
from bridle.protocol.hooks import PreToolUse
from bridle.session.commit import Batch, Then
from bridle.testing import MemoryTransport

from .conftest import StartSession
from .wire import init, result, say

BASH: dict[str, Any] = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
PRE = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}}


class Held:
    """A commit that a test lets go of, batch by batch."""

    def __init__(self) -> None:
        self.is_open = True
        self.waiting: list[tuple[Batch, Then]] = []

    def __call__(self, batch: Batch, then: Then) -> None:
        self.waiting.append((batch, then))
        if self.is_open:
            self.release()

    def release(self, error: BaseException | None = None) -> None:
        while self.waiting:
            batch, then = self.waiting.pop(0)
            then(batch, error)


class Failing:
    """A commit that can't write from the moment on when it is broken."""

    def __init__(self) -> None:
        self.is_broken = False

    def __call__(self, batch: Batch, then: Then) -> None:
        then(batch, OSError("No space left on device") if self.is_broken else None)


async def test_nothing_is_asked_shown_or_answered_before_it_is_committed() -> None:
    commit, asked = Held(), []

    def ask(request: object) -> Allow:
        asked.append(request)
        return Allow()

    cli = MemoryTransport()
    connecting = bridle.connect(transport=cli, commit=commit, approver=ask)
    session = await connecting.__aenter__()
    turn = await session.send("go")
    commit.is_open = False
    cli.say(init(), say("a"), result("A"))
    cli.ask("1", **BASH)
    await asyncio.sleep(0)
    assert (asked, turn.is_done, cli.answered("1")) == ([], False, None)
    assert len(turn._exchange) == 0
    commit.release()
    assert asked
    assert cli.answered("1")
    assert (await turn.result(10)).text == "A"
    commit.is_open = True
    await session.stop()


async def broken_session(**options: Any) -> tuple[Any, MemoryTransport, Failing]:
    commit, cli = Failing(), MemoryTransport(stderr="words")
    session = await bridle.connect(transport=cli, commit=commit, **options).__aenter__()
    commit.is_broken = True
    return session, cli, commit


async def test_a_request_that_can_not_be_written_down_is_denied_unasked() -> None:
    asked: list[object] = []
    session, cli, _ = await broken_session(approver=asked.append)
    cli.ask("1", **BASH)
    response = (await cli.answer("1"))["response"]
    assert response["behavior"] == "deny"
    assert "No space left" in response["message"]
    assert asked == []
    await session.stop()


async def test_a_hook_that_can_not_be_written_down_denies() -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: None)
    session, cli, _ = await broken_session(hooks=hooks)
    cli.ask("1", subtype="hook_callback", callback_id="bridle-PreToolUse-1", input=PRE)
    specific = (await cli.answer("1"))["response"]["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"
    await session.stop()


async def test_who_waits_is_told_that_nothing_can_be_written_down() -> None:
    session, cli, _ = await broken_session()
    turn = await session.send("go")
    cli.say(init(), say("a"), result("A"))
    with pytest.raises(CommitFailed, match="No space left") as caught:
        await turn.result(10)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(CommitFailed):
        await anext(turn)
    with pytest.raises(CommitFailed):
        await session.mcp_status()
    await session.stop()


async def test_interrupt_and_stop_go_out_although_nothing_can_be_written_down() -> None:
    session, cli, _ = await broken_session()
    await session.send("go")
    with pytest.raises(CommitFailed):
        await session.interrupt()
    assert len(cli.requests("interrupt")) == 1
    stopped = await asyncio.wait_for(session.stop(), 10)
    assert stopped.step == "asked"
    assert len(cli.requests("end_session")) == 1


async def test_a_withdrawal_that_can_not_be_written_down_still_cancels() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def ask(_: object) -> Allow:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Allow()

    session, cli, commit = await broken_session(approver=ask)
    commit.is_broken = False
    cli.ask("1", **BASH)
    await asyncio.wait_for(started.wait(), 10)
    commit.is_broken = True
    cli.say({"type": "control_cancel_request", "request_id": "1"})
    await asyncio.wait_for(cancelled.wait(), 10)
    assert cli.answered("1") is None
    await session.stop()


async def test_when_it_can_be_written_down_again_the_session_goes_on() -> None:
    session, cli, commit = await broken_session(approver=lambda _: Allow())
    lost = await session.send("go")
    cli.say(init())
    with pytest.raises(CommitFailed):
        await lost.result(10)
    commit.is_broken = False
    assert session.is_busy
    turn = await session.send("again")
    cli.say(result("A"), init(), result("B"))
    assert (await turn.result(10)).text == "B"
    cli.ask("1", **BASH)
    assert (await cli.answer("1"))["response"]["behavior"] == "allow"
    await session.stop()


async def test_the_end_is_noticed_although_it_can_not_be_written_down() -> None:
    session, cli, _ = await broken_session()
    cli.end(Exit(code=2))
    with pytest.raises(SessionEnded):
        await session.send("go")


async def test_one_event_that_can_not_be_routed_does_not_keep_the_next(
    start: StartSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, cli = await start(approver=lambda _: Allow())

    def explode(_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(session._responder, "unreadable", explode)
    cli.ask("1", subtype="brand_new")
    cli.ask("2", **BASH)
    assert (await cli.answer("2"))["response"]["behavior"] == "allow"
    assert "a mistake of ours" in caplog.text


async def test_a_commit_that_raises_means_the_same_as_one_that_tells() -> None:
    class Raising(Failing):
        def __call__(self, batch: Batch, then: Then) -> None:
            if self.is_broken:
                raise OSError("No space left on device")
            then(batch, None)

    commit, cli = Raising(), MemoryTransport()
    session = await bridle.connect(transport=cli, commit=commit).__aenter__()
    turn = await session.send("go")
    commit.is_broken = True
    cli.ask("1", **BASH)
    assert (await cli.answer("1"))["response"]["behavior"] == "deny"
    cli.end(Exit(code=1))
    with pytest.raises(SessionEnded):
        await turn.result(10)
    await session.stop()


async def test_a_commit_that_raises_after_it_told_is_logged_and_routes_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def commit(batch: Batch, then: Then) -> None:
        then(batch, None)
        raise OSError("too late")

    cli = MemoryTransport()
    async with bridle.connect(transport=cli, commit=commit, approver=lambda _: Allow()):
        cli.ask("1", **BASH)
        assert (await cli.answer("1"))["response"]["behavior"] == "allow"
    assert "after it had succeeded" in caplog.text


async def test_only_what_was_lost_fails() -> None:
    session, cli, commit = await broken_session()
    running, queued = await session.send("1"), await session.send("2")
    cli.feed(b"not json\n")
    assert (running.is_done, queued.is_done) == (False, False)
    cli.say(init(), say("a"))
    with pytest.raises(CommitFailed):
        await running.result(10)
    assert not queued.is_done
    assert session.is_busy
    commit.is_broken = False
    cli.say(result("A"), init(), result("B"))
    assert (await queued.result(10)).text == "B"
    await session.stop()


async def test_a_lost_result_ends_its_own_turn_and_no_other() -> None:
    session, cli, commit = await broken_session()
    one, two = await session.send("1"), await session.send("2")
    cli.say(init(), result("A"))
    with pytest.raises(CommitFailed):
        await one.result(10)
    commit.is_broken = False
    cli.say(init(), result("B"))
    assert (await two.result(10)).text == "B"
    await session.stop()


async def test_a_tap_with_a_gap_says_so() -> None:
    session, cli, _ = await broken_session()
    async with session.messages() as tap:
        cli.say(say("a"))
        with pytest.raises(CommitFailed):
            await anext(tap)
    await session.stop()
