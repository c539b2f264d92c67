"""What is done with one session after the other: from its creation to its deletion."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from bridle.approvals import Approve, Reject
from bridle.errors import InvalidLaunch, MissingVariables, NameTaken, NotPossible, UnknownSession
from bridle.ids import new_uuid
from bridle.policy import Policy
from bridle.supervisor import FromEnvironment, SessionRecord
from bridle.supervisor.states import TRANSITIONS
from bridle.views import stream

from .homes import (
    ASKS,
    DONE,
    INIT,
    LIMIT,
    ME,
    PROMPT,
    TURN,
    WORKS,
    Home,
    asked,
    bodies,
    kinds,
    published,
    until,
)


async def test_a_session_goes_from_its_creation_to_its_end(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, name="a", labels={"team": "x"})
        assert (made.name, made.labels, made.by) == ("a", {"team": "x"}, "me")
        first = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert (first.state, first.outcome) == ("idle", "complete")
        stopped = await supervisor.stop("a", by="me")
        assert stopped is not None
        assert not stopped.survivors
        record = await until(supervisor, "a", "stopped")
        assert record.launch
        assert (record.launch.how, record.launch.code) == ("stopped", 0)
        assert await published(supervisor, "a", "stopped") == [
            *("queued", "starting", "idle", "running", "idle", "stopping", "stopped"),
        ]
        assert home.alive() == []
        assert list((home.folder / "spool").iterdir()) == []


async def test_every_state_that_is_published_follows_the_table(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *ASKS, *TURN)
        await supervisor.approvals.decide((await asked(supervisor, record.id)).id, Approve(), by=ME)
        await until(supervisor, record.id, "idle")
        await supervisor.pause(record.id, by="me")
        await until(supervisor, record.id, "paused")
        await supervisor.unpause(record.id)
        await supervisor.send(record.id, "again")
        await supervisor.wait(record.id, lambda r: r.turns == 2, LIMIT)
        await supervisor.stop(record.id)
        seen = ["stopped", *await published(supervisor, record.id, "stopped")]
        assert seen == [
            *("stopped", "queued", "starting", "idle", "running", "awaiting approval", "running"),
            *("idle", "paused", "idle", "running", "idle", "stopping", "stopped"),
        ]
        for before, after in itertools.pairwise(seen):
            assert after in TRANSITIONS[before], (before, after)  # type: ignore[index]


async def test_prompts_are_told_in_the_order_in_which_they_were_sent(home: Home) -> None:
    cli = home.cli(*TURN * 5)
    async with home.open() as supervisor:
        await supervisor.create(cwd=home.work, by=ME, name="a", prompt="p0", command=cli.command)
        for number in range(1, 5):
            await supervisor.send("a", f"p{number}")
        record = await supervisor.wait("a", lambda r: r.turns == 5, LIMIT)
        assert not record.waiting
        assert not record.unanswered
    prompts = [told["message"]["content"] for told in cli.told() if told["type"] == "user"]
    assert [str(prompt) for prompt in prompts] == [f"p{number}" for number in range(5)]


async def test_a_prompt_that_is_sent_twice_at_the_same_time_is_taken_once(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN * 3, name="a")
        uuid = new_uuid()
        sent = await asyncio.gather(*(supervisor.send("a", "once", uuid=uuid) for _ in range(3)))
        assert set(sent) == {uuid}
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)
        assert await supervisor.send("a", "again")
        await supervisor.wait("a", lambda r: r.turns == 3, LIMIT)
        prompts = await bodies(supervisor, "a", stream.PROMPTED)
        assert [body.uuid for body in prompts].count(uuid) == 1


async def test_a_session_that_was_not_started_is_resumed_with_its_prompt(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN, start=False, name="a")
        assert record.state == "stopped"
        assert record.waiting
        await supervisor.resume("a")
        done = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert done.launch
        assert done.launch.resume is None


async def test_a_name_belongs_to_one_session_until_that_is_deleted(home: Home) -> None:
    async with home.open() as supervisor:
        first = await home.start(supervisor, *TURN, start=False, name="a")
        with pytest.raises(NameTaken) as taken:
            await home.start(supervisor, *TURN, start=False, name="a")
        assert taken.value.session == first.id
        assert supervisor.get("a").id == supervisor.get(first.id).id == first.id
        await supervisor.delete("a")
        with pytest.raises(UnknownSession):
            supervisor.get(first.id)
        again = await home.start(supervisor, *TURN, start=False, name="a")
        assert supervisor.get("a").id == again.id


async def test_of_two_that_want_a_name_at_the_same_time_one_gets_it(home: Home) -> None:
    async with home.open() as supervisor:
        made = await asyncio.gather(
            *(home.start(supervisor, *TURN, start=False, name="a") for _ in range(3)),
            return_exceptions=True,
        )
        assert sorted(type(one).__name__ for one in made) == [
            "NameTaken", "NameTaken", "SessionRecord",
        ]  # fmt: skip
        assert len(supervisor.list()) == 1


async def test_a_deleted_session_leaves_nothing(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN)
        await supervisor.wait(record.id, lambda r: r.turns == 1, LIMIT)
        with pytest.raises(NotPossible, match="stop it first"):
            await supervisor.delete(record.id)
        await supervisor.stop(record.id)
        await published(supervisor, record.id, "stopped")
        await supervisor.delete(record.id)
        assert supervisor.list() == []
        assert [info.name for info in await supervisor.journal.log.streams()] != [record.id]
    async with home.open() as supervisor:
        assert supervisor.list() == []


async def test_an_interrupt_ends_the_turn_and_not_the_agent(home: Home) -> None:
    ends = {"result": {"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}}
    async with home.open() as supervisor:
        steps = (*WORKS, {"await_request": "interrupt"}, ends, *TURN)
        record = await home.start(supervisor, *steps)
        await until(supervisor, record.id, "running")
        await supervisor.interrupt(record.id, timeout=LIMIT)
        record = await until(supervisor, record.id, "idle")
        assert record.outcome == "cancelled"
        await supervisor.send(record.id, "go on")
        record = await supervisor.wait(record.id, lambda r: r.turns == 2, LIMIT)
        assert record.outcome == "complete"


async def test_a_stop_in_the_middle_of_a_turn_is_a_cancelled_turn(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *WORKS)
        await until(supervisor, record.id, "running")
        await supervisor.stop(record.id, by="me", words="enough")
        record = await until(supervisor, record.id, "stopped")
        assert record.outcome == "cancelled"
        [stop] = await bodies(supervisor, record.id, stream.STOP_ASKED)
        assert (stop.by, stop.words) == ("me", "enough")


async def test_a_resume_goes_on_with_the_conversation(home: Home) -> None:
    cli = home.cli(*TURN, session_id="11111111-0000-4000-8000-000000000000")
    async with home.open() as supervisor:
        made = {"cwd": home.work, "by": ME, "name": "a", "command": cli.command}
        await supervisor.create(prompt="go", **made)  # type: ignore[arg-type]
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        await supervisor.stop("a")
        await until(supervisor, "a", "stopped")
        await supervisor.resume("a", prompt="and now?")
        record = await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)
        assert record.launches == 2
        await supervisor.stop("a")
    [first, second] = [entry["argv"] for entry in cli.report() if "argv" in entry]
    assert "--resume" not in " ".join(first)
    assert "11111111-0000-4000-8000-000000000000" in " ".join(second)


async def test_a_fork_is_another_session_with_the_same_past(home: Home) -> None:
    cli = home.cli(*TURN, session_id="22222222-0000-4000-8000-000000000000")
    async with home.open() as supervisor:
        made = {"cwd": home.work, "by": ME, "name": "a", "command": cli.command}
        await supervisor.create(prompt="go", **made)  # type: ignore[arg-type]
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        fork = await supervisor.fork("a", by=ME, prompt="other way", name="b")
        origin = supervisor.get("a")
        assert fork.forked_from == origin.id
        assert (fork.spec, fork.folder, fork.policy) == (origin.spec, origin.folder, origin.policy)
        fork = await supervisor.wait("b", lambda r: r.turns == 1, LIMIT)
        assert fork.launch
        assert fork.launch.fork
        assert supervisor.get("a").turns == 1
        with pytest.raises(NameTaken):
            await supervisor.fork("a", by=ME, name="b")
    argv = " ".join([entry["argv"] for entry in cli.report() if "argv" in entry][-1])
    assert "--fork-session" in argv
    assert "22222222-0000-4000-8000-000000000000" in argv


async def test_what_is_not_possible_says_what_to_do_instead(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *WORKS, start=False)
        for refused, hint in [
            (supervisor.send(record.id, "x"), "resume it first"),
            (supervisor.interrupt(record.id), "no turn is running"),
            (supervisor.stop(record.id), "nothing runs"),
            (supervisor.pause(record.id), "nothing runs"),
            (supervisor.unpause(record.id), "not paused"),
        ]:
            with pytest.raises(NotPossible, match=hint):
                await refused
        with pytest.raises(NotPossible, match="resume it first"):
            supervisor.live(record.id)
        await supervisor.resume(record.id)
        await until(supervisor, record.id, "running")
        with pytest.raises(NotPossible, match="send it a prompt"):
            await supervisor.resume(record.id)
        with pytest.raises(NotPossible, match="interrupt it"):
            await supervisor.fork(record.id, by=ME)


async def test_a_launch_that_can_not_be_is_refused_before_anything_is_stored(home: Home) -> None:
    async with home.open() as supervisor:
        with pytest.raises(InvalidLaunch, match="no folder"):
            await supervisor.create(cwd=Path("/nowhere/at/all"), by=ME)
        with pytest.raises(InvalidLaunch, match="has no conversation 'x'"):
            await supervisor.create(cwd=home.work, by=ME, resume="x")
        ours: list[dict[str, Any]] = [
            {"fork_session": True},
            {"session_id": "x"},
            {"continue_last": True},
            {"session_persistence": False},
        ]
        for option in ours:
            with pytest.raises(InvalidLaunch, match=f"{next(iter(option))} .*supervisor sets it"):
                await supervisor.create(cwd=home.work, by=ME, **option)
        with pytest.raises(InvalidLaunch, match="no option 'colour'"):
            await supervisor.create(cwd=home.work, by=ME, colour="red")
        assert supervisor.list() == []


async def test_a_watch_shows_what_is_there_and_then_each_change(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, start=False, name="old")
        seen: dict[str, list[str]] = {}

        async def look() -> None:
            async for record in supervisor.watch():
                assert isinstance(record, SessionRecord)
                seen.setdefault(record.name, []).append(record.state)
                if record.name == "new" and record.turns == 1:
                    return

        looking = asyncio.ensure_future(look())
        await home.start(supervisor, *TURN, name="new")
        await asyncio.wait_for(looking, LIMIT)
        assert seen["old"] == ["stopped"]
        changed = [
            s for s, last in zip(seen["new"], [None, *seen["new"]], strict=False) if s != last
        ]
        assert changed[-3:] == ["idle", "running", "idle"]


async def test_a_wait_ends_in_time(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN, start=False)
        with pytest.raises(TimeoutError):
            await supervisor.wait(record.id, lambda r: r.turns == 1, 0.05)


async def test_a_wait_for_one_that_is_deleted_is_told(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN, start=False)
        waiting = asyncio.ensure_future(supervisor.wait(record.id, lambda r: r.turns == 1, LIMIT))
        await asyncio.sleep(0)
        await supervisor.delete(record.id)
        with pytest.raises(UnknownSession):
            await waiting


async def test_a_rejected_call_goes_back_to_the_agent_with_its_reason(home: Home) -> None:
    cli = home.cli(*ASKS)
    async with home.open() as supervisor:
        record = await supervisor.create(cwd=home.work, by=ME, prompt="go", command=cli.command)
        approval = await asked(supervisor, record.id)
        await supervisor.approvals.decide(approval.id, Reject("not that one"), by=ME)
        await until(supervisor, record.id, "idle")
        assert stream.WROTE in await kinds(supervisor, record.id)
    answer = cli.answer_to("q1")
    assert answer
    assert answer["response"]["behavior"] == "deny"
    assert "not that one" in answer["response"]["message"]


async def test_each_change_of_state_is_published_once(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, PROMPT, INIT, *[{"say": "x"}] * 50, DONE)
        await supervisor.wait(record.id, lambda r: r.turns == 1, LIMIT)
        assert await published(supervisor, record.id, "idle") == [
            *("queued", "starting", "idle", "running", "idle"),
        ]


async def test_a_policy_guards_the_homes_that_the_agent_is_given(home: Home) -> None:
    environ = {"HOME": "/given", "CLAUDE_CONFIG_DIR": "/given/claude"}
    async with home.open(environ=environ) as supervisor:
        record = await supervisor.create(cwd=home.work, by=ME, start=False)
        assert (record.homes["home"], record.homes["claude_home"]) == ("/given", "/given/claude")
        own = await supervisor.create(cwd=home.work, by=ME, start=False, env={"HOME": "/own"})
        assert (own.homes["home"], own.homes["claude_home"]) == ("/own", "/given/claude")


async def test_an_environment_may_be_given_with_nothing_in_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOD", "ours")
    mood = {"MOOD": FromEnvironment("MOOD")}
    async with home.open(environ={}) as supervisor:
        with pytest.raises(MissingVariables, match="MOOD is not in the supervisor's environment"):
            await supervisor.create(cwd=home.work, by=ME, start=False, env=mood)


async def test_a_policy_may_be_given_as_one(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, PROMPT, name="a", policy=Policy(deny=["Bash"]))
        await until(supervisor, "a", "idle")
        policy = supervisor.live("a").policy
        assert policy
        assert [rule.text for rule in policy.policy.rules] == ["Bash"]
