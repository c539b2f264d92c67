"""One session's side: requests of the CLI become approvals, and approvals answers."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from bridle.approvals import (
    AcceptElicitation,
    AnswerQuestion,
    Approval,
    Approvals,
    ApprovalsClosed,
    Approve,
    ApprovePlan,
    Desk,
    Reject,
    open_approvals,
)
from bridle.errors import JournalUnwritable
from bridle.journal import Journal, verify
from bridle.journal.owner import Owners
from bridle.policy.verdicts import Allowed, Asked, Denied
from bridle.protocol.control import CanUseTool, ElicitationAnswer, ElicitationRequest
from bridle.protocol.permissions import Allow, Deny, SetMode

from ..journal.engines import Engine
from .helpers import (
    ANN,
    LIMIT,
    FailingLog,
    TurnedClock,
    call,
    events_in,
    kinds_in,
    until,
    until_pending,
)

ASKED = Asked("no rule allows it", rule="Bash", source="policy.toml", notes=("runs a script",))


def desk_at(approvals: Approvals, session: str = "child", **more: Any) -> Desk:
    more.setdefault("launch", "launch-1")
    return Desk(approvals, session=session, **more)


async def asked_at(desk: Desk, request: CanUseTool, approvals: Approvals) -> Approval:
    """What is pending after a request that was asked and whose asker was left waiting."""
    before = {approval.id for approval in await approvals.list(status="pending")}
    _waiting.append(asyncio.create_task(desk.ask(request, ASKED)))
    pending = await until_pending(approvals, len(before) + 1)
    [new] = [approval for approval in pending if approval.id not in before]
    return new


_waiting: list[asyncio.Task[Any]] = []


async def last_answer() -> Any:
    async with asyncio.timeout(LIMIT):
        return await _waiting.pop()


async def test_a_request_becomes_an_approval_and_its_decision_the_answer(
    approvals: Approvals,
) -> None:
    desk = desk_at(
        approvals, lineage=("root",), suggest=lambda request: [f"{request.tool_name}(make:*)"]
    )
    request = call(agent_id="sub", blocked_path="/etc")
    asked = await asked_at(desk, request, approvals)
    assert (asked.session, asked.launch, asked.lineage) == ("child", "launch-1", ("root",))
    assert (asked.kind, asked.tool, asked.input) == ("tool", "Bash", {"command": "make test"})
    assert (asked.tool_use_id, asked.agent_id) == (request.tool_use_id, "sub")
    assert (asked.reason, asked.rule, asked.source) == (ASKED.because, "Bash", "policy.toml")
    assert (asked.suggestions, asked.notes) == (("Bash(make:*)",), ("runs a script",))
    assert asked.blocked_path == "/etc"
    await approvals.decide(asked.id, Approve({"command": "make check"}), by=ANN)
    assert await last_answer() == Allow({"command": "make check"})


async def test_what_the_guard_saw_goes_along_and_where_it_would_be_done(
    approvals: Approvals,
) -> None:
    asking = asyncio.create_task(
        desk_at(approvals).ask(call(), Asked("guard", guard="hooks", cwd="/x"))
    )
    [asked] = await until_pending(approvals)
    assert (asked.guard, asked.cwd) == ("hooks", "/x")
    await approvals.decide(asked.id, Reject(), by=ANN)
    assert isinstance(await asking, Deny)


async def test_plans_and_questions_are_of_their_own_kind(approvals: Approvals) -> None:
    desk = desk_at(approvals)
    plan = await asked_at(desk, call("ExitPlanMode", input={"plan": "Think"}), approvals)
    assert plan.kind == "plan"
    await approvals.decide(plan.id, ApprovePlan("acceptEdits", "Act"), by=ANN)
    assert await last_answer() == Allow({"plan": "Act"}, [SetMode("acceptEdits", "session")])
    given = {"questions": [{"question": "Which?"}]}
    question = await asked_at(desk, call("AskUserQuestion", input=given), approvals)
    assert question.kind == "question"
    await approvals.decide(question.id, AnswerQuestion({"Which?": "A"}), by=ANN)
    assert await last_answer() == Allow({**given, "answers": {"Which?": "A"}})


async def test_asked_again_for_the_same_call_it_joins(
    approvals: Approvals, journal: Journal
) -> None:
    desk, request = desk_at(approvals), call()
    asking = [asyncio.create_task(desk.ask(request, ASKED)) for _ in range(3)]
    [asked] = await until_pending(approvals)
    asking[0].cancel()
    await asyncio.gather(asking[0], return_exceptions=True)
    assert await approvals.list(status="pending") == [asked], "others still wait for it"
    await approvals.decide(asked.id, Approve(), by=ANN)
    assert await asyncio.gather(*asking[1:]) == [Allow(request.input)] * 2
    assert await desk.ask(request, ASKED) == Allow(request.input)
    assert (await kinds_in(journal)).count("approval.requested") == 1


async def test_after_a_restart_the_same_call_joins_what_waits_or_is_decided(
    engine: Engine, clock: TurnedClock
) -> None:
    waits, decided = call(), call()
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        desk = desk_at(approvals)
        asking = [asyncio.create_task(desk.ask(request, ASKED)) for request in (waits, decided)]
        pending = await until_pending(approvals, 2)
        desk.detach()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        assert await approvals.list(status="pending") == pending, "we went, and the agent stays"
        [by_id] = [p.id for p in pending if p.tool_use_id == decided.tool_use_id]
        await approvals.decide(by_id, Reject("no"), by=ANN)
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        desk = desk_at(approvals)
        answer = await desk.ask(decided, ASKED)
        assert isinstance(answer, Deny)
        assert answer.message.endswith("no")
        joined = asyncio.create_task(desk.ask(waits, ASKED))
        [asked] = await until_pending(approvals)
        await approvals.decide(asked.id, Approve(), by=ANN)
        assert await joined == Allow(waits.input)
        assert waits.tool_use_id
        desk.ran(waits.tool_use_id)
        await until(approvals, asked.id, lambda approval: approval.outcome)
        assert (await kinds_in(journal)).count("approval.requested") == 2


async def test_a_cancelled_asker_withdraws_at_once_and_nothing_is_answered(
    approvals: Approvals, journal: Journal
) -> None:
    asking = asyncio.create_task(desk_at(approvals).ask(call(), ASKED))
    [asked] = await until_pending(approvals)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    over = await approvals.wait(asked.id)
    assert over.status == "cancelled"
    assert await kinds_in(journal) == ["approval.requested", "approval.cancelled"]


async def test_a_yes_that_the_asker_did_not_live_to_see_was_without_effect(
    approvals: Approvals,
) -> None:
    asking = asyncio.create_task(desk_at(approvals).ask(call(), ASKED))
    [asked] = await until_pending(approvals)
    deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
    deciding.add_done_callback(lambda _: asking.cancel())
    async with asyncio.timeout(LIMIT):
        [result] = await asyncio.gather(asking, return_exceptions=True)
    await deciding
    if isinstance(result, asyncio.CancelledError):
        found = await until(approvals, asked.id, lambda approval: approval.outcome)
        assert found.outcome
        assert found.outcome.how == "withdrawn"


async def test_an_interrupt_denies_all_that_waits_at_once(approvals: Approvals) -> None:
    desk = desk_at(approvals)
    other = desk_at(approvals, session="other")
    asking = [asyncio.create_task(desk.ask(call(), ASKED)) for _ in range(3)]
    theirs = asyncio.create_task(other.ask(call(), ASKED))
    asked = await until_pending(approvals, 4)
    desk.interrupted()
    for answer in await asyncio.gather(*asking):
        assert isinstance(answer, Deny)
        assert answer.message.startswith("Approval cancelled: the turn was interrupted.")
    await asyncio.gather(*(approvals.wait(a.id) for a in asked if a.session == "child"))
    [left] = await approvals.list(status="pending")
    assert left.session == "other"
    await approvals.decide(left.id, Approve(), by=ANN)
    await theirs


async def test_an_interrupt_reaches_what_is_just_being_asked(approvals: Approvals) -> None:
    desk = desk_at(approvals)
    asking = asyncio.create_task(
        desk.ask(CanUseTool(tool_name="Bash", input={}), ASKED)  # no id: nothing to be looked up
    )
    await asyncio.sleep(0)
    assert await approvals.list(status="pending") == []
    desk.interrupted()
    async with asyncio.timeout(LIMIT):
        assert isinstance(await asking, Deny)


async def test_an_interrupt_reaches_what_is_being_looked_up(approvals: Approvals) -> None:
    desk = desk_at(approvals)
    for stop in (desk.interrupted, desk.turn_ended, lambda: desk.ended("is gone")):
        asking = asyncio.create_task(desk.ask(call(), ASKED))
        await asyncio.sleep(0)  # it looks whether it was asked before
        stop()
        async with asyncio.timeout(LIMIT):
            assert isinstance(await asking, Deny)


async def test_the_end_of_a_turn_leaves_a_subagents_call_that_is_being_looked_up(
    approvals: Approvals,
) -> None:
    desk = desk_at(approvals)
    background = asyncio.create_task(desk.ask(call(agent_id="sub"), ASKED))
    await asyncio.sleep(0)
    desk.turn_ended()
    [left] = await until_pending(approvals)
    assert left.agent_id == "sub"
    desk.interrupted()
    assert isinstance(await background, Deny)


async def test_an_interrupt_works_when_nothing_can_be_written(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        desk = desk_at(approvals)
        asking = asyncio.create_task(desk.ask(call(), ASKED))
        await until_pending(approvals)
        log.refuses = True
        desk.interrupted()
        async with asyncio.timeout(LIMIT):
            assert isinstance(await asking, Deny)


async def test_the_end_of_a_turn_cancels_the_main_loops_and_not_the_subagents(
    approvals: Approvals,
) -> None:
    desk = desk_at(approvals)
    main = asyncio.create_task(desk.ask(call(), ASKED))
    background = asyncio.create_task(desk.ask(call(agent_id="sub"), ASKED))
    asked = await until_pending(approvals, 2)
    desk.turn_ended()
    answer = await main
    assert isinstance(answer, Deny)
    assert "the turn ended" in answer.message
    await asyncio.gather(*(approvals.wait(a.id) for a in asked if not a.agent_id))
    [left] = await approvals.list(status="pending")
    assert left.agent_id == "sub"
    await approvals.decide(left.id, Approve(), by=ANN)
    assert isinstance(await background, Allow)


async def test_the_end_of_the_process_is_the_end_of_all_of_its_approvals(
    approvals: Approvals, journal: Journal
) -> None:
    desk, allowed = desk_at(approvals), call()
    asked = await asked_at(desk, allowed, approvals)
    await approvals.decide(asked.id, Approve(), by=ANN)
    await last_answer()
    ran = call()
    done = await asked_at(desk, ran, approvals)
    await approvals.decide(done.id, Approve(), by=ANN)
    await last_answer()
    assert ran.tool_use_id
    desk.delivered(ran.tool_use_id)
    desk.ran(ran.tool_use_id)
    waits = await asked_at(desk, call(), approvals)
    desk.ended("was killed by signal 9")
    answer = await last_answer()
    assert "was killed by signal 9" in answer.message
    assert (await approvals.wait(waits.id)).status == "cancelled"
    died = await until(approvals, asked.id, lambda approval: approval.outcome)
    assert died.outcome
    assert (died.outcome.how, died.outcome.words) == ("process died", "was killed by signal 9")
    finished = await approvals.get(done.id)
    assert finished.outcome
    assert finished.outcome.how == "ran"
    assert approvals.unfinished("child", "launch-1") == []
    assert (await verify(journal, "child")).is_intact


async def test_a_decision_on_its_way_when_the_process_dies_is_stored_and_died(
    approvals: Approvals,
) -> None:
    desk = desk_at(approvals)
    asked = await asked_at(desk, call(), approvals)
    deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
    await asyncio.sleep(0)
    desk.ended("is gone")
    assert isinstance(await last_answer(), Deny)
    assert (await deciding).status == "allowed"
    found = await until(approvals, asked.id, lambda approval: approval.outcome)
    assert found.outcome
    assert found.outcome.how == "process died"


async def test_what_was_approved_and_overruled_was_withdrawn_with_the_reason(
    approvals: Approvals,
) -> None:
    desk = desk_at(approvals)
    for id_ in ("t1", "t2"):
        asked = await asked_at(desk, call(tool_use_id=id_), approvals)
        await approvals.decide(asked.id, Approve(), by=ANN)
        await last_answer()
        desk.delivered(id_)
        if id_ == "t1":
            desk.overruled(id_, "a rule denies it")
        else:
            desk.ran(id_, is_error=True)
        found = await until(approvals, asked.id, lambda approval: approval.outcome)
        assert found.outcome
        assert (found.outcome.how, found.outcome.words) == (
            ("withdrawn", "a rule denies it") if id_ == "t1" else ("ran", "its result is an error")
        )
    desk.overruled("never asked", "x")


async def test_delivered_and_ran_of_what_was_never_asked_are_nothing(
    approvals: Approvals, journal: Journal
) -> None:
    desk = desk_at(approvals)
    desk.delivered("toolu_x")
    desk.ran("toolu_x")
    assert await kinds_in(journal) == []


async def test_one_that_expires_is_a_no_with_its_own_words(
    approvals: Approvals, clock: TurnedClock
) -> None:
    desk = desk_at(approvals, expires_in=300)
    asking = asyncio.create_task(desk.ask(call(), ASKED))
    await until_pending(approvals)
    clock.turn(300)
    answer = await asking
    assert isinstance(answer, Deny)
    assert "within 5 minutes" in answer.message


async def test_what_can_not_be_asked_raises(journal: Journal, clock: TurnedClock) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        desk = desk_at(approvals)
        log.refuses = True
        with pytest.raises(JournalUnwritable):
            await desk.ask(call(), ASKED)
        log.refuses = False
        with pytest.raises(TypeError):
            await desk.ask(call(input={"x": object()}), ASKED)
        assert approvals.unfinished("child", "launch-1") == []
    with pytest.raises(ApprovalsClosed):
        await desk.ask(call(), ASKED)


# --- what rules have decided


async def test_what_a_rule_allows_waits_until_it_is_stored(
    approvals: Approvals, journal: Journal
) -> None:
    request = call()
    stored = desk_at(approvals).judged(request, Allowed("Bash(make:*)", "policy.toml"))
    assert stored is not None
    await stored
    [event] = await events_in(journal)
    assert (event.kind, event.seal is not None) == ("tool.judged", True)
    body = msgspec.json.decode(event.body)
    assert body["input"] == request.input
    assert body["verdict"]["rule"] == "Bash(make:*)"
    assert body["tool_use_id"] == request.tool_use_id


async def test_what_a_rule_allows_and_can_not_be_stored_does_not_run(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        desk = desk_at(approvals)
        log.refuses = True
        stored = desk.judged(call(), Allowed("Bash"))
        assert stored is not None
        with pytest.raises(JournalUnwritable):
            await stored
        with pytest.raises(TypeError):
            desk.judged(call(input={"x": object()}), Allowed("Bash"))


async def test_what_a_rule_denies_is_denied_whether_it_can_be_stored_or_not(
    journal: Journal, clock: TurnedClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        desk = desk_at(approvals)
        assert desk.judged(call(), Denied("Bash")) is None
        allowed = desk.judged(call(), Allowed("Bash"))
        assert allowed
        await allowed
        log.refuses = True
        with caplog.at_level(logging.ERROR):
            assert desk.judged(call(), Denied("Bash")) is None
            assert desk.judged(call(input={"x": object()}), Denied("Bash")) is None
    assert desk.judged(call(), Denied("Bash")) is None
    assert caplog.text.count("a denied call can't be stored") == 3
    assert await kinds_in(journal) == ["tool.judged"] * 2


# --- elicitations


ELICITED = ElicitationRequest(
    mcp_server_name="github", message="Which repo?", requested_schema={"type": "object"}
)


async def test_an_elicitation_is_asked_and_answered(approvals: Approvals) -> None:
    desk = desk_at(approvals)
    asking = asyncio.create_task(desk.elicit(ELICITED))
    [asked] = await until_pending(approvals)
    assert (asked.kind, asked.tool) == ("elicitation", "github")
    assert asked.input == {"message": "Which repo?", "requested_schema": {"type": "object"}}
    await approvals.decide(asked.id, AcceptElicitation({"repo": "x"}), by=ANN)
    assert await asking == ElicitationAnswer("accept", {"repo": "x"})
    assert (await until(approvals, asked.id, lambda a: a.delivered)).is_finished


async def test_an_elicitation_that_nobody_answers_is_cancelled_and_a_no_declines(
    approvals: Approvals, clock: TurnedClock
) -> None:
    desk = desk_at(approvals, expires_in=10)
    asking = asyncio.create_task(desk.elicit(ELICITED))
    [asked] = await until_pending(approvals)
    await approvals.decide(asked.id, Reject(), by=ANN)
    assert await asking == ElicitationAnswer("decline")
    asking = asyncio.create_task(desk.elicit(ELICITED))
    await until_pending(approvals)
    clock.turn(10)
    assert await asking == ElicitationAnswer("cancel")
    asking = asyncio.create_task(desk.elicit(ELICITED))
    await until_pending(approvals)
    desk.interrupted()
    assert await asking == ElicitationAnswer("cancel")
