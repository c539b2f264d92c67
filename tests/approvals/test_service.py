"""Asked, waited for, decided once; seen only when stored."""

from __future__ import annotations

import asyncio

import pytest

from bridle.approvals import (
    AlreadyDecided,
    ApprovalError,
    Approvals,
    ApprovalsClosed,
    Approve,
    Cancelled,
    Outcome,
    Reject,
    UnknownApproval,
    open_approvals,
)
from bridle.approvals.events import Delivered
from bridle.approvals.fold import fold
from bridle.errors import JournalUnwritable, WrongSequence
from bridle.journal import Journal, NewEvent, verify
from bridle.journal.owner import Owners

from ..journal.engines import Engine
from .helpers import ANN, BOB, LIMIT, FailingLog, TurnedClock, events_in, kinds_in, request, until


async def test_what_is_asked_is_pending_until_somebody_decides(
    approvals: Approvals, clock: TurnedClock
) -> None:
    asked = await approvals.open(request(lineage=("root", "parent"), reason="no rule allows it"))
    assert asked.status == "pending"
    assert asked.lineage == ("root", "parent")
    assert asked.created == clock.now()
    assert await approvals.list(status="pending") == [asked]

    clock.turn(5)
    waiting = asyncio.create_task(approvals.wait(asked.id))
    decided = await approvals.decide(asked.id, Approve(message="fine"), by=ANN)
    assert decided.status == "allowed"
    assert decided.decision
    assert decided.decision.by == ANN
    assert decided.decision.at == asked.created + 5
    assert decided.decision.choice == Approve(message="fine")
    assert await waiting == decided
    assert await approvals.wait(asked.id) == decided
    assert await approvals.get(asked.id) == decided
    assert await approvals.list(status="pending") == []


async def test_the_second_decider_is_told_who_was_first(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    await approvals.decide(asked.id, Reject("not now"), by=ANN)
    with pytest.raises(AlreadyDecided, match=r"was denied by ann \(terminal\)") as caught:
        await approvals.decide(asked.id, Approve(), by=BOB)
    assert caught.value.approval.decision
    assert caught.value.approval.decision.by == ANN
    assert (await approvals.get(asked.id)).status == "denied"


async def test_what_does_not_exist_is_said_to_be_unknown(approvals: Approvals) -> None:
    for ask in (
        approvals.get("x"),
        approvals.wait("x"),
        approvals.decide("x", Approve(), by=ANN),
        approvals.cancel("x"),
        approvals.expire("x"),
    ):
        with pytest.raises(UnknownApproval) as caught:
            await ask
        assert caught.value.approval_id == "x"


async def test_an_approval_is_its_events_and_all_that_matter_are_sealed(
    approvals: Approvals, journal: Journal
) -> None:
    allowed = await approvals.open(request())
    await approvals.decide(allowed.id, Approve(), by=ANN)
    approvals.delivered(allowed.id)
    approvals.outcome(allowed.id, Outcome("ran", 1.0))
    cancelled = await approvals.open(request())
    await approvals.cancel(cancelled.id, "changed my mind")
    expired = await approvals.open(request())
    await approvals.expire(expired.id)
    events = await events_in(journal)
    assert [(event.kind, event.seal is not None) for event in events] == [
        ("approval.requested", True),
        ("approval.decided", True),
        ("approval.delivered", False),
        ("approval.outcome", False),
        ("approval.requested", True),
        ("approval.cancelled", True),
        ("approval.requested", True),
        ("approval.expired", True),
    ]
    assert (await verify(journal, "child")).is_intact


async def test_the_same_call_is_asked_once(approvals: Approvals, journal: Journal) -> None:
    call = request()
    first, second = await asyncio.gather(approvals.open(call), approvals.open(call))
    assert first == second
    await approvals.decide(first.id, Approve(), by=ANN)
    assert (await approvals.open(call)).status == "allowed"
    assert await kinds_in(journal) == ["approval.requested", "approval.decided"]


async def test_another_input_or_launch_is_another_approval(approvals: Approvals) -> None:
    ids = {
        (await approvals.open(request(tool_use_id="t", **more))).id
        for more in ({}, {"input": {"command": "rm -rf /"}}, {"launch": "l2"}, {"session": "s2"})
    }
    assert len(ids) == 4


async def test_calls_without_an_id_are_never_the_same(approvals: Approvals) -> None:
    call = request(tool_use_id=None)
    assert (await approvals.open(call)).id != (await approvals.open(call)).id


async def test_what_the_cli_took_back_can_be_asked_anew(approvals: Approvals) -> None:
    call = request()
    first = await approvals.open(call)
    approvals.withdraw(first.id)
    assert (await approvals.wait(first.id)).status == "cancelled"
    second = await approvals.open(call)
    assert second.id != first.id
    assert second.status == "pending"


async def test_after_a_withdrawal_nothing_can_be_decided(
    approvals: Approvals, journal: Journal
) -> None:
    asked = await approvals.open(request())
    approvals.withdraw(asked.id)
    with pytest.raises(AlreadyDecided, match="withdrawn"):
        await approvals.decide(asked.id, Approve(), by=ANN)
    with pytest.raises(AlreadyDecided):
        await approvals.cancel(asked.id)
    assert await kinds_in(journal) == ["approval.requested", "approval.cancelled"]


async def test_decided_delivered_and_effective_are_three_things(
    approvals: Approvals, clock: TurnedClock
) -> None:
    asked = await approvals.open(request())
    await approvals.decide(asked.id, Approve(), by=ANN)
    assert (await approvals.get(asked.id)).delivered is None
    watch = approvals.watch()
    assert [a.status for a in await anext(watch)] == ["allowed"]
    clock.turn(1)
    approvals.delivered(asked.id)
    [told] = await anext(watch)
    assert (told.delivered, told.outcome) == (clock.now(), None)
    approvals.outcome(asked.id, Outcome("ran", clock.now()))
    [ran] = await anext(watch)
    assert ran.outcome == Outcome("ran", clock.now())
    assert ran.is_finished
    approvals.outcome(asked.id, Outcome("process died", clock.now()))
    assert await approvals.get(asked.id) == ran


async def test_lists_are_by_status_and_session(approvals: Approvals, clock: TurnedClock) -> None:
    async def opened(session: str) -> str:
        clock.turn(1)
        return (await approvals.open(request(session=session))).id

    waiting, allowed, denied = await opened("a"), await opened("a"), await opened("b")
    await approvals.decide(allowed, Approve(), by=ANN)
    await approvals.decide(denied, Reject(), by=ANN)
    approvals.delivered(denied)

    async def ids(**which: object) -> list[str]:
        return [found.id for found in await approvals.list(**which)]  # type: ignore[arg-type]

    assert await ids() == [waiting, allowed, denied]
    assert await ids(session="a") == [waiting, allowed]
    assert await ids(status="pending") == [waiting]
    assert await ids(status="denied") == [denied]
    assert await ids(status="allowed", session="b") == []


async def test_a_watch_gives_what_is_there_and_then_what_changes(approvals: Approvals) -> None:
    empty = approvals.watch()
    assert await anext(empty) == []
    asked = await approvals.open(request())
    assert await anext(empty) == [asked]
    full = approvals.watch()
    assert await anext(full) == [asked]
    await approvals.decide(asked.id, Reject(), by=ANN)
    for watch in (empty, full):
        [changed] = await anext(watch)
        assert changed.status == "denied"
    full.close()
    with pytest.raises(StopAsyncIteration):
        await anext(full)


async def test_a_slow_watch_gets_the_latest_state(approvals: Approvals) -> None:
    watch = approvals.watch()
    assert await anext(watch) == []
    asked = await approvals.open(request())
    decided = await approvals.decide(asked.id, Approve(), by=ANN)
    assert await anext(watch) == [decided]


async def test_what_is_not_stored_yet_is_unknown_to_all(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        await approvals.open(request(session="other"))
        log.held = asyncio.Event()
        opening = asyncio.create_task(approvals.open(request(tool_use_id=None)))
        while not (unstored := approvals.unfinished("child", "launch-1")):  # noqa: ASYNC110
            await asyncio.sleep(0)
        [asked] = unstored
        for look in (
            approvals.get(asked.id),
            approvals.wait(asked.id),
            approvals.decide(asked.id, Approve(), by=ANN),
            approvals.cancel(asked.id),
        ):
            with pytest.raises(UnknownApproval):
                await look
        assert [found.session for found in await approvals.list()] == ["other"]
        assert [found.session for found in await anext(approvals.watch())] == ["other"]
        log.held.set()
        assert (await opening).id == asked.id


async def test_an_event_that_is_in_it_already_changes_nothing(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    decided = await approvals.decide(asked.id, Approve(), by=ANN)
    assert fold(decided, decided.seq, Delivered(asked.id, 9.0)) is decided
    assert fold(decided, 1, asked) is decided
    assert fold(None, 5, Delivered(asked.id, 9.0)) is None


# --- a journal that fails


async def test_what_could_not_be_asked_was_never_there(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        watch = approvals.watch()
        assert await anext(watch) == []
        call = request()
        log.refuses = True
        with pytest.raises(JournalUnwritable):
            await approvals.open(call)
        assert await approvals.list() == []
        log.refuses = False
        asked = await approvals.open(call)
        assert await anext(watch) == [asked]


async def test_a_decision_that_could_not_be_stored_was_not_made(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request())
        watch = approvals.watch()
        await anext(watch)
        waiting = asyncio.create_task(approvals.wait(asked.id))
        log.refuses = True
        with pytest.raises(JournalUnwritable):
            await approvals.decide(asked.id, Approve(), by=ANN)
        assert await approvals.list(status="pending") == [asked]
        log.refuses = False
        decided = await approvals.decide(asked.id, Reject(), by=BOB)
        assert await waiting == decided
        assert await anext(watch) == [decided]
        assert await kinds_in(journal) == ["approval.requested", "approval.decided"]


async def test_of_two_deciders_the_second_wins_if_the_first_could_not_be_stored(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request())
        log.refuses = True
        first = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
        second = asyncio.create_task(approvals.decide(asked.id, Reject(), by=BOB))
        await asyncio.sleep(0)  # the first has made its append
        log.refuses = False
        with pytest.raises(JournalUnwritable):
            await first
        assert (await second).status == "denied"


async def test_a_decision_that_was_stored_counts_whatever_the_disk_said(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request())
        log.refuses = log.lies = True
        decided = await approvals.decide(asked.id, Approve(), by=ANN)
        log.refuses = log.lies = False
        assert decided.status == "allowed"
        with pytest.raises(AlreadyDecided):
            await approvals.decide(asked.id, Reject(), by=BOB)
        other = await approvals.open(request())
        assert other.requested_seq == 3


async def test_what_is_sent_behind_a_failure_of_somebody_else_is_stored_all_the_same(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    owners = Owners(log)
    async with open_approvals(journal, clock=clock, owners=owners) as approvals:
        asked = await approvals.open(request())
        # It is in the log's own queue when it fails there: the one behind it has its number.
        log.refused_kinds = {"x"}
        failing = owners.of("child").append([NewEvent("x", b"")])
        decided = await approvals.decide(asked.id, Approve(), by=ANN)
        assert decided.status == "allowed"
        with pytest.raises(JournalUnwritable):
            await failing
        assert await kinds_in(journal) == ["approval.requested", "approval.decided"]


async def test_a_withdrawal_holds_even_when_it_can_not_be_stored(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request())
        log.refuses = True
        approvals.withdraw(asked.id, "interrupted")
        async with asyncio.timeout(LIMIT):
            assert (await approvals.wait(asked.id)).status == "cancelled"
        with pytest.raises(AlreadyDecided, match="interrupted"):
            await approvals.decide(asked.id, Approve(), by=ANN)
        log.refuses = False
        await approvals.open(request())  # the next that works takes it along
        found = await until(approvals, asked.id, lambda approval: approval.ending)
        assert isinstance(found.ending, Cancelled)
        assert (await kinds_in(journal))[-1] == "approval.cancelled"


async def test_a_closed_service_answers_nobody_and_leaves_what_is_pending(
    engine: Engine, clock: TurnedClock
) -> None:
    async with engine.open() as journal:
        async with open_approvals(journal, clock=clock) as approvals:
            asked = await approvals.open(request())
            asking = asyncio.create_task(approvals.ask(request()))
            waiting = asyncio.create_task(approvals.wait(asked.id))
            await asyncio.sleep(0)
        for task in (asking, waiting):
            with pytest.raises(ApprovalsClosed):
                await asyncio.wait_for(task, 10)
        with pytest.raises(ApprovalsClosed):
            await approvals.open(request())
        with pytest.raises(ApprovalError):
            await approvals.decide(asked.id, Approve(), by=ANN)
        async with open_approvals(journal, clock=clock) as again:
            assert (await again.decide(asked.id, Approve(), by=ANN)).status == "allowed"


async def test_a_stream_that_others_write_too_is_still_one_stream(
    journal: Journal, clock: TurnedClock
) -> None:
    owners = Owners(journal.log)
    async with open_approvals(journal, clock=clock, owners=owners) as approvals:
        said = [owners.of("child").append([NewEvent("said", b"")]) for _ in range(3)]
        asked = await approvals.open(request())
        said.append(owners.of("child").append([NewEvent("said", b"")]))
        await approvals.decide(asked.id, Approve(), by=ANN)
        assert await asyncio.gather(*said) == [1, 2, 3, 5]
        assert asked.requested_seq == 4
        with pytest.raises(WrongSequence):
            await journal.log.append("child", [NewEvent("said", b"")], 2)
