"""Sessions whose process is not ours: what they ask, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from bridle.approvals import Approve, ForSession, Reject
from bridle.approvals.events import JUDGED
from bridle.approvals.model import Choice
from bridle.errors import BridleError, NotPossible
from bridle.protocol.control import CanUseTool
from bridle.protocol.permissions import Allow, Decision, Deny
from bridle.supervisor import Limits, SessionRecord, Supervisor
from bridle.supervisor.external import MOST_QUESTIONS
from bridle.views.stream import External

from .homes import LIMIT, ME, WORKS, Home, asked, settled, until


async def made(
    home: Home, supervisor: Supervisor, kind: External = "permit", **options: Any
) -> SessionRecord:
    return await supervisor.create_external(kind=kind, folder=home.work, by=ME, **options)


def call(tool: str = "Bash", called: str = "t1", **given: Any) -> CanUseTool:
    return CanUseTool(tool_name=tool, input=given or {"command": "rm x"}, tool_use_id=called)


async def soon(answer: Awaitable[Decision]) -> Decision:
    async with asyncio.timeout(LIMIT):
        return await answer


def has_asked(count: int, record: SessionRecord) -> bool:
    return len(record.approvals) == count


async def kinds(supervisor: Supervisor, session: str) -> list[str]:
    return [event.kind for event in await supervisor.journal.log.read(session, 0, 1000)]


@pytest.mark.parametrize("kind", ["root", "permit"])
async def test_one_is_idle_from_the_start_and_stopped_for_good(home: Home, kind: External) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor, kind, name="mine", labels={"a": "b"})
        assert (record.external, record.loopback) == (kind, kind == "root")
        assert (record.parent, record.lineage, record.labels) == (None, (), {"a": "b"})
        assert (await until(supervisor, "mine", "idle")).launches == 0
        await supervisor.stop("mine", by="me")
        await until(supervisor, "mine", "stopped")
        with pytest.raises(NotPossible, match="not ours"):
            await supervisor.resume("mine")
        await supervisor.delete("mine")
        assert not supervisor.list()


async def test_it_is_there_after_a_restart_and_none_is_started(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor, "root", name="mine")
    async with home.open() as supervisor:
        again = supervisor.get("mine")
        assert (again.id, again.state, again.external) == (record.id, "idle", "root")
        assert supervisor.running == 0


async def test_nothing_else_can_be_done_with_one(home: Home) -> None:
    async with home.open() as supervisor:
        await made(home, supervisor, name="mine")
        doings = [
            supervisor.send("mine", "hello"),
            supervisor.interrupt("mine"),
            supervisor.start("mine"),
            supervisor.resume("mine"),
            supervisor.fork("mine", by=ME),
            supervisor.pause("mine"),
            supervisor.unpause("mine"),
            supervisor.set_policy("mine", "edits", by=ME),
            supervisor.delete("mine"),
        ]
        for doing in doings:
            with pytest.raises(NotPossible):
                await doing
        with pytest.raises(NotPossible, match="not ours"):
            supervisor.live("mine")
        assert supervisor.get("mine").state == "idle"


async def test_what_a_rule_decides_nobody_is_asked_and_it_is_in_the_log(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        file = str(home.work / "a.txt")
        assert await soon(supervisor.outside.ask(record.id, call("Read", file_path=file))) == Allow(
            {"file_path": file}
        )
        assert (await kinds(supervisor, record.id)).count(JUDGED) == 1
        assert not await supervisor.approvals.list(session=record.id)


async def test_what_is_denied_stays_denied_and_says_why(home: Home) -> None:
    policy = home.work / "strict.toml"
    policy.write_text('deny = ["Bash(rm:*)"]\n')
    async with home.open() as supervisor:
        record = await made(home, supervisor, policy=policy)
        answer = await soon(supervisor.outside.ask(record.id, call()))
        assert isinstance(answer, Deny)
        assert "Bash(rm:*)" in answer.message


async def test_a_person_decides_and_its_state_says_that_it_waits(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        answer = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
        assert (approval.launch, approval.tool_use_id) == (record.id, "t1")
        await until(supervisor, record.id, "awaiting approval")
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        assert await soon(answer) == Allow({"command": "rm x"})
        await until(supervisor, record.id, "idle")
        # Nothing more is heard of it: so nobody waits for that.
        async with asyncio.timeout(LIMIT):
            async for _ in supervisor.approvals.watch():
                if (await supervisor.approvals.get(approval.id)).is_finished:
                    break


async def test_a_no_and_a_changed_input_reach_who_asked(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        choices: dict[str, Choice] = {
            "t1": Reject("not today"),
            "t2": Approve({"command": "ls"}),
        }
        answers = {}
        for called, choice in choices.items():
            asking = asyncio.ensure_future(supervisor.outside.ask(record.id, call(called=called)))
            approval = await asked(supervisor, record.id)
            await supervisor.approvals.decide(approval.id, choice, by=ME)
            answers[called] = await soon(asking)
        assert isinstance(answers["t1"], Deny)
        assert "not today" in answers["t1"].message
        assert answers["t2"] == Allow({"command": "ls"})


async def test_what_is_remembered_for_it_holds_from_then_on_and_after_a_restart(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        asking = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
        choice = Approve(remember=ForSession("Bash(rm:*)"))
        await supervisor.approvals.decide(approval.id, choice, by=ME)
        await soon(asking)
        assert isinstance(await soon(supervisor.outside.ask(record.id, call(called="t2"))), Allow)
    async with home.open() as supervisor:
        answer = supervisor.outside.ask(record.id, call(called="t3"))
        assert isinstance(await soon(answer), Allow)
        assert len(await supervisor.approvals.list(session=record.id)) == 1


async def test_the_same_call_asked_twice_is_one_question(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        both = [asyncio.ensure_future(supervisor.outside.ask(record.id, call())) for _ in "12"]
        approval = await asked(supervisor, record.id)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        first, second = [await soon(one) for one in both]
        assert isinstance(first, Deny)
        assert second == Allow({"command": "rm x"})
        assert len(await supervisor.approvals.list(session=record.id)) == 1


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_one_approval_lets_a_call_run_once(home: Home, is_restarted: bool) -> None:
    async with AsyncExitStack() as stack:
        supervisor = await stack.enter_async_context(home.open())
        record = await made(home, supervisor)
        decided = []
        for number in range(3):
            if number and is_restarted:
                await stack.aclose()
                supervisor = await stack.enter_async_context(home.open())
            asking = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
            approval = await asked(supervisor, record.id)
            decided.append(approval.id)
            await supervisor.approvals.decide(approval.id, Approve(), by=ME)
            assert isinstance(await soon(asking), Allow)
        assert len({*decided}) == 3
        # A no needs no second one.
        asking = asyncio.ensure_future(supervisor.outside.ask(record.id, call(called="t2")))
        approval = await asked(supervisor, record.id)
        await supervisor.approvals.decide(approval.id, Reject(), by=ME)
        assert isinstance(await soon(asking), Deny)
        assert isinstance(await soon(supervisor.outside.ask(record.id, call(called="t2"))), Deny)


async def test_the_same_id_with_another_input_is_another_question(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        asking = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await soon(asking)
        other = asyncio.ensure_future(
            supervisor.outside.ask(record.id, call(command="rm everything"))
        )
        assert (await asked(supervisor, record.id)).id != approval.id
        await supervisor.stop(record.id)
        assert isinstance(await soon(other), Deny)


async def test_who_comes_back_in_time_finds_the_same_question(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        first = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
        first.cancel()
        await asyncio.wait([first])
        again = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        assert await soon(again) == Allow({"command": "rm x"})
        assert len(await supervisor.approvals.list(session=record.id)) == 1


async def test_who_does_not_come_back_asks_no_more(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        first = asyncio.ensure_future(supervisor.outside.ask(record.id, call(), patience=0.01))
        approval = await asked(supervisor, record.id)
        first.cancel()
        assert (await settled(supervisor, approval.id)).status == "cancelled"
        again = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        anew = await asked(supervisor, record.id)
        assert anew.id != approval.id
        await supervisor.approvals.decide(anew.id, Reject(), by=ME)
        assert isinstance(await soon(again), Deny)


async def test_what_is_decided_while_nobody_is_there_is_told_when_they_are_back(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        first = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
        first.cancel()
        await asyncio.wait([first])
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        assert await soon(supervisor.outside.ask(record.id, call())) == Allow({"command": "rm x"})


async def test_a_restart_leaves_the_question_and_who_asks_again_is_answered_by_it(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        first = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
    with pytest.raises(BridleError, match="the server ends"):
        await soon(first)
    async with home.open() as supervisor:
        again = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        assert await soon(again) == Allow({"command": "rm x"})
        [only] = await supervisor.approvals.list(session=record.id)
        assert (only.id, only.status) == (approval.id, "allowed")


async def test_after_a_restart_a_question_that_nobody_asks_again_is_withdrawn(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        first = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
    await asyncio.wait([first])
    assert first.exception()
    monkeypatch.setattr("bridle.supervisor.external.PATIENCE", 0.01)
    async with home.open() as supervisor:
        assert (await settled(supervisor, approval.id)).status == "cancelled"


async def test_to_stop_it_answers_no_and_cancels_what_waits(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor)
        first = asyncio.ensure_future(supervisor.outside.ask(record.id, call()))
        approval = await asked(supervisor, record.id)
        await supervisor.stop(record.id)
        assert isinstance(await soon(first), Deny)
        assert (await settled(supervisor, approval.id)).status == "cancelled"
        with pytest.raises(NotPossible, match="bridle mcp token"):
            await supervisor.outside.ask(record.id, call(called="t2"))


async def test_when_its_time_is_up_all_that_it_asks_is_denied(home: Home) -> None:
    async with home.open() as supervisor:
        record = await made(home, supervisor, limits=Limits(seconds=0.05))
        await until(supervisor, record.id, "paused")
        answer = await soon(supervisor.outside.ask(record.id, call()))
        assert isinstance(answer, Deny)
        assert "paused: budget" in answer.message
        await supervisor.set_limits(record.id, Limits(), by="me")
        await until(supervisor, record.id, "idle")


async def test_only_so_many_of_its_questions_wait_also_if_nobody_waits_for_them(home: Home) -> None:
    async with home.open() as supervisor:
        record, other = await made(home, supervisor), await made(home, supervisor)
        for number in range(MOST_QUESTIONS):
            answer = supervisor.outside.ask(record.id, call(called=f"t{number}"))
            leaving = asyncio.ensure_future(answer)
            await supervisor.wait(record.id, partial(has_asked, number + 1), LIMIT)
            leaving.cancel()
            await asyncio.wait([leaving])
        with pytest.raises(NotPossible, match="questions wait already"):
            await supervisor.outside.ask(record.id, call(called="more"))
        # What is asked already may be asked again, and others ask as before.
        again = asyncio.ensure_future(supervisor.outside.ask(record.id, call(called="t0")))
        asking = asyncio.ensure_future(supervisor.outside.ask(other.id, call()))
        approval = await asked(supervisor, other.id)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        assert isinstance(await soon(asking), Allow)
        first = (await supervisor.approvals.list(status="pending", session=record.id))[0]
        await supervisor.approvals.decide(first.id, Reject(), by=ME)
        assert isinstance(await soon(again), Deny)


async def test_only_one_whose_process_is_not_ours_is_asked_for_here(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *WORKS)
        with pytest.raises(NotPossible, match="its own process asks"):
            await supervisor.outside.ask(record.id, call())


async def test_children_of_one_that_is_stopped_are_stopped(home: Home) -> None:
    async with home.open() as supervisor:
        root = await made(home, supervisor, "root")
        child = await home.start(supervisor, *WORKS, parent=root.id)
        await until(supervisor, child.id, "running")
        await supervisor.stop(root.id)
        assert (await until(supervisor, child.id, "stopped")).parent == root.id
