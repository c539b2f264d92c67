"""Sessions and prompts whose names the caller has made up, and watching them go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from bridle.approvals import Policies
from bridle.errors import InvalidLaunch, NameTaken, UnknownSession
from bridle.ids import new_uuid
from bridle.policy import Policy
from bridle.process.spec import LaunchSpec
from bridle.supervisor import Forgotten, Limits, SessionRecord, Supervisor, births
from bridle.supervisor.policies import PolicyGiven, policy_of
from bridle.views import stream

from .homes import LIMIT, ME, TURN, Home, bodies


async def test_a_session_has_the_id_that_it_was_given_and_no_second_one_gets_it(
    home: Home,
) -> None:
    given = new_uuid()
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, start=False, id=given)
        assert made.id == supervisor.get(given).id == given
        with pytest.raises(NameTaken):
            await home.start(supervisor, *TURN, start=False, id=given)
        with pytest.raises(NameTaken):
            await home.start(supervisor, *TURN, start=False, name=given)
        assert len(supervisor.list()) == 1


UPPER = "2BEE771B-2669-4511-82FD-CAE970C82138"


@pytest.mark.parametrize("given", ["supervisor", "x", "../x", "A" * 5000, UPPER, "\0"])
async def test_an_id_must_be_a_uuid(home: Home, given: str) -> None:
    async with home.open() as supervisor:
        with pytest.raises(InvalidLaunch, match="no uuid"):
            await home.start(supervisor, *TURN, start=False, id=given)


async def test_an_id_can_be_used_whose_session_was_not_born_before_a_crash(home: Home) -> None:
    given = new_uuid()
    async with home.open() as supervisor:  # what a controller that was killed has written by then
        means = supervisor._means
        policies = Policies(means.journal, means.owners, means.now)
        await policies.apply(given, '["ask",true,[]]', source="policy ask", by=ME)
    async with home.open() as supervisor:
        assert supervisor.list() == []
        made = await home.start(supervisor, *TURN, id=given)
        assert made.id == given
        done = await supervisor.wait(given, lambda record: record.turns == 1, LIMIT)
        assert done.policy == made.policy


async def test_a_fork_has_the_id_that_it_was_given(home: Home) -> None:
    given = new_uuid()
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN)
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        forked = await supervisor.fork(made.id, by=ME, id=given)
        assert forked.id == given
        with pytest.raises(NameTaken):
            await supervisor.fork(made.id, by=ME, id=given)


async def test_a_prompt_has_the_uuid_that_it_was_given(home: Home) -> None:
    given = new_uuid()
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, *TURN)
        assert await supervisor.send(made.id, "again", uuid=given) == given
        with pytest.raises(InvalidLaunch):
            await supervisor.send(made.id, "again", uuid="mine")
        told: list[stream.Prompted] = await bodies(supervisor, made.id, stream.PROMPTED)
        assert told[-1].uuid == given
        assert len(told) == 2


async def test_a_prompt_is_told_once_however_often_it_is_sent_at_once(home: Home) -> None:
    given = new_uuid()
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, *TURN, *TURN)
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        sent = [supervisor.send(made.id, "again", uuid=given) for _ in range(3)]
        assert await asyncio.gather(*sent) == [given] * 3
        await supervisor.wait(made.id, lambda record: record.turns == 2, LIMIT)
        told: list[stream.Prompted] = await bodies(supervisor, made.id, stream.PROMPTED)
        assert [one.uuid for one in told[1:]] == [given]


@pytest.mark.parametrize("limits", [Limits(), Limits(turns=50)])
async def test_a_uuid_that_was_used_before_keeps_no_later_prompt_waiting(
    home: Home, limits: Limits
) -> None:
    given = new_uuid()
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN * 4, limits=limits)
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        await supervisor.send(made.id, "again", uuid=given)
        await supervisor.wait(made.id, lambda record: record.turns == 2, LIMIT)
        await supervisor.send(made.id, "again", uuid=given)
        await supervisor.wait(made.id, lambda record: record.turns == 3, LIMIT)
        await supervisor.send(made.id, "other")
        record = await supervisor.wait(made.id, lambda record: record.turns == 4, LIMIT)
        assert not record.waiting


async def test_a_session_that_can_not_be_made_leaves_nothing_behind(home: Home) -> None:
    async with home.open() as supervisor:
        with pytest.raises(InvalidLaunch, match="256 KB"):
            await home.start(supervisor, *TURN, labels={"a": "x" * 300_000}, env={"A": "hidden"})
        streams = {info.name for info in await supervisor.journal.log.streams()}
        assert streams <= {stream.SUPERVISOR}
        assert supervisor._means.secrets == {}


async def test_a_policy_that_is_slow_to_read_keeps_no_other_birth_waiting(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_read, is_slow = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(given: PolicyGiven, spec: LaunchSpec) -> Policy:
        if given == "plan":
            loop.call_soon_threadsafe(is_slow.set)
            is_read.wait(LIMIT)
        return policy_of(given, spec)

    monkeypatch.setattr(births, "policy_of", slow)
    async with home.open() as supervisor, asyncio.timeout(LIMIT):
        late = asyncio.ensure_future(
            home.start(supervisor, *TURN, start=False, policy="plan", name="a")
        )
        await is_slow.wait()
        await home.start(supervisor, *TURN, start=False, name="a")
        is_read.set()
        with pytest.raises(NameTaken):  # it is looked again whether it may be born
            await late
        assert [record.name for record in supervisor.list()] == ["a"]


async def test_a_session_that_is_being_made_is_not_seen_and_has_its_name(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    given = new_uuid()
    async with home.open() as supervisor, asyncio.timeout(LIMIT):
        there = await home.start(supervisor, *TURN, start=False)
        made = asyncio.ensure_future(home.start(supervisor, *TURN, start=False, id=given, name="b"))
        while given not in supervisor._sessions:  # noqa: ASYNC110 - it is not told of yet
            await asyncio.sleep(0)
        assert [record.id for record in supervisor.list()] == [there.id]
        with pytest.raises(UnknownSession):
            supervisor.get("b")
        with pytest.raises(UnknownSession):
            await supervisor.delete(given)
        with pytest.raises(NameTaken):
            await home.start(supervisor, *TURN, start=False, name="b")
        assert {record.is_created async for record in _first(supervisor, 2)} == {True}
        assert (await made).id == given
        assert caplog.messages == []


async def _first(supervisor: Supervisor, count: int) -> AsyncIterator[SessionRecord]:
    async for news in supervisor.watch():
        assert isinstance(news, SessionRecord)
        yield news
        count -= 1
        if not count:
            return


async def test_a_watch_tells_of_what_was_deleted(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, start=False, name="a")
        kept = await home.start(supervisor, *TURN, start=False, name="b")
        watch = supervisor.watch()
        async with asyncio.timeout(LIMIT):
            there = {(await anext(watch)).id, (await anext(watch)).id}
            assert there == {made.id, kept.id}
            gone = asyncio.ensure_future(_first_gone(supervisor))
            await asyncio.sleep(0)
            await supervisor.delete("a")
            assert await gone == Forgotten(made.id)
            assert await anext(watch) == Forgotten(made.id)


async def _first_gone(supervisor: Supervisor) -> Forgotten | None:
    async for news in supervisor.watch():
        if not isinstance(news, SessionRecord):
            return news
    return None
