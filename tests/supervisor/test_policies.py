"""Another policy for a session: recorded, in force at once, and after every restart."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from bridle.approvals import Approve, ApprovePlan, ForSession, Policies
from bridle.errors import InvalidPolicy, NotPossible, UnknownSession
from bridle.policy import Policy
from bridle.supervisor import SessionRecord, Supervisor, delegations
from bridle.supervisor.policies import Named
from bridle.testing import FakeCli
from bridle.views import stream

from .homes import ASKS, DONE, INIT, LIMIT, ME, PROMPT, TURN, WORKS, Home, asked, until

ASKS_AGAIN: tuple[dict[str, Any], ...] = (
    PROMPT,
    {"ask": {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t2"}, "id": "q2"},
    DONE,
)
PLAN: tuple[dict[str, Any], ...] = (
    PROMPT,
    INIT,
    {"ask": {"tool_name": "ExitPlanMode", "input": {"plan": "go"}, "tool_use_id": "t1"}},
    DONE,
)


def behavior(cli: FakeCli, request: str) -> str:
    answer = cli.answer_to(request)
    assert answer
    return str(answer["response"]["behavior"])


def preset(supervisor: Supervisor, session: str) -> str:
    policy = supervisor.live(session).policy
    assert policy
    return policy.policy.preset


async def idle(supervisor: Supervisor, session: str, turns: int) -> SessionRecord:
    return await supervisor.wait(
        session, lambda record: record.turns == turns and record.state == "idle", LIMIT
    )


async def test_a_session_that_runs_is_judged_by_its_new_policy_at_once(home: Home) -> None:
    cli = home.cli(*TURN, *ASKS_AGAIN)
    async with home.open() as supervisor:
        made = await home.start(supervisor, command=cli.command)
        await idle(supervisor, made.id, 1)
        record = await supervisor.set_policy(made.id, "read-only", by=ME)
        assert record.policy != made.policy
        await supervisor.send(made.id, "go on")
        await idle(supervisor, made.id, 2)
        assert behavior(cli, "q2") == "deny"
        applied = await _applied(supervisor, made.id)
        assert (applied.digest, applied.by, applied.source) == (
            record.policy, ME, "policy read-only",
        )  # fmt: skip


async def test_it_still_holds_for_whoever_takes_the_session_up(home: Home) -> None:
    cli = home.cli(*TURN, *ASKS_AGAIN)
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, command=cli.command)
        await idle(supervisor, made.id, 1)
        record = await supervisor.set_policy(made.id, "read-only", by=ME)
    async with home.open() as supervisor:
        assert supervisor.get(made.id).policy == record.policy
        await supervisor.send(made.id, "go on")
        await idle(supervisor, made.id, 2)
        assert behavior(cli, "q2") == "deny"


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_the_mode_that_was_chosen_before_holds_no_more(
    home: Home, is_restarted: bool
) -> None:
    async with home.open(keep=is_restarted) as supervisor:
        made = await home.start(supervisor, *PLAN, *ASKS_AGAIN)
        plan = await asked(supervisor, made.id)
        await supervisor.approvals.decide(plan.id, ApprovePlan("bypassPermissions"), by=ME)
        await idle(supervisor, made.id, 1)
        assert preset(supervisor, made.id) == "autonomous"
        await supervisor.set_policy(made.id, "ask", by=ME)
        assert preset(supervisor, made.id) == "ask"
        if not is_restarted:
            await supervisor.send(made.id, "go on")
            assert (await asked(supervisor, made.id)).tool == "Bash"
    if is_restarted:
        async with home.open() as supervisor:
            await supervisor.send(made.id, "go on")
            assert (await asked(supervisor, made.id)).tool == "Bash"


async def test_the_mode_that_was_chosen_after_it_holds_after_a_restart(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *PLAN, *ASKS_AGAIN, start=False)
        await supervisor.set_policy(made.id, Policy("ask", deny=["WebFetch"]), by=ME)
        await supervisor.resume(made.id)
        plan = await asked(supervisor, made.id)
        await supervisor.approvals.decide(plan.id, ApprovePlan("bypassPermissions"), by=ME)
        await idle(supervisor, made.id, 1)
    async with home.open() as supervisor:
        await supervisor.send(made.id, "go on")
        await idle(supervisor, made.id, 2)
        assert await supervisor.approvals.list(status="pending") == []


async def test_what_people_had_remembered_is_kept(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *ASKS, *ASKS_AGAIN, *ASKS_AGAIN)
        first = await asked(supervisor, made.id)
        choice = Approve(remember=ForSession("Bash(rm x)"))
        await supervisor.approvals.decide(first.id, choice, by=ME)
        await idle(supervisor, made.id, 1)
        await supervisor.set_policy(made.id, Policy("ask", deny=["WebFetch"]), by=ME)
        await supervisor.send(made.id, "go on")
        await idle(supervisor, made.id, 2)
    async with home.open() as supervisor:
        await supervisor.send(made.id, "go on")
        await idle(supervisor, made.id, 3)
        assert await supervisor.approvals.list(status="pending") == []


async def test_a_session_that_does_not_run_is_under_it_when_it_does(home: Home) -> None:
    cli = home.cli(*ASKS)
    async with home.open() as supervisor:
        made = await home.start(supervisor, start=False, command=cli.command)
        record = await supervisor.set_policy(made.id, "read-only", by=ME)
        assert record.policy == Policy("read-only").digest
        await supervisor.resume(made.id)
        await idle(supervisor, made.id, 1)
        assert behavior(cli, "q1") == "deny"


async def test_it_is_not_set_while_it_is_being_started(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN)
        await until(supervisor, made.id, "starting")
        with pytest.raises(NotPossible, match=r"^set policy: .* is starting; wait until"):
            await supervisor.set_policy(made.id, "read-only", by=ME)
        await idle(supervisor, made.id, 1)
        assert supervisor.get(made.id).policy == made.policy


async def test_it_is_not_set_in_a_turn_nor_while_an_approval_waits(home: Home) -> None:
    async with home.open() as supervisor:
        works = await home.start(supervisor, *WORKS)
        await until(supervisor, works.id, "running")
        asks = await home.start(supervisor, *ASKS)
        approval = await asked(supervisor, asks.id)
        for session in (works.id, asks.id):
            with pytest.raises(NotPossible, match="interrupt it first, then try again"):
                await supervisor.set_policy(session, "read-only", by=ME)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await idle(supervisor, asks.id, 1)
        await supervisor.set_policy(asks.id, "read-only", by=ME)


async def test_it_is_not_set_in_a_turn_that_is_open_while_it_is_paused(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *ASKS)
        await asked(supervisor, made.id)
        charge = supervisor._sessions.get(made.id)
        await charge.store(stream.PAUSED, stream.Paused(cause="disk", at=1.0))
        await until(supervisor, made.id, "paused")
        with pytest.raises(NotPossible, match="is paused; interrupt it first"):
            await supervisor.set_policy(made.id, "read-only", by=ME)


@pytest.mark.parametrize("passes", [0, 1, 2, 5, 10, 20, 40])
async def test_a_session_that_is_deleted_meanwhile_stays_deleted(home: Home, passes: int) -> None:
    async with home.open() as supervisor, asyncio.timeout(LIMIT):
        made = await home.start(supervisor, *TURN, start=False)
        setting = asyncio.ensure_future(supervisor.set_policy(made.id, "read-only", by=ME))
        for _ in range(passes):
            await asyncio.sleep(0)
        await supervisor.delete(made.id)
        with contextlib.suppress(UnknownSession):  # unless it was set before that
            await setting
        assert made.id not in [info.name for info in await supervisor.journal.log.streams()]
        other = await home.start(supervisor, *TURN, start=False)
        await supervisor.set_policy(other.id, "read-only", by=ME)


async def test_the_file_that_it_was_read_from_is_guarded_now_and_later(
    home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "team.toml"
    file.write_text('preset = "autonomous"\n')
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *TURN)
        await idle(supervisor, made.id, 1)
        record = await supervisor.set_policy(made.id, str(file), by=ME)
        assert record.guarded == (str(file),)
        policy = supervisor.live(made.id).policy
        assert policy
        assert policy.ground.guarded == (str(file),)
    async with home.open() as supervisor:
        await until(supervisor, made.id, "idle")
        assert supervisor.get(made.id).guarded == (str(file),)
        policy = supervisor.live(made.id).policy
        assert policy
        assert policy.ground.guarded == (str(file),)


async def test_what_the_folder_denies_holds_under_every_policy(home: Home) -> None:
    settings = home.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    cli = home.cli(*TURN, *ASKS_AGAIN)
    async with home.open() as supervisor:
        made = await home.start(supervisor, command=cli.command)
        await idle(supervisor, made.id, 1)
        settings.unlink()  # it was there when the agent was started
        await supervisor.set_policy(made.id, "autonomous", by=ME)
        await supervisor.send(made.id, "go on")
        await idle(supervisor, made.id, 2)
        assert behavior(cli, "q2") == "deny"


async def test_one_that_is_read_while_another_is_set_is_kept_with_its_own_files(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "a.toml", tmp_path / "b.toml"
    for file, preset in zip(files, ("ask", "read-only"), strict=True):
        file.write_text(f'preset = "{preset}"\n')
    is_set, is_read, text = asyncio.Event(), asyncio.Event(), Policies.text

    async def slow(policies: Policies, digest: str) -> str:
        is_read.set()
        await is_set.wait()
        return await text(policies, digest)

    async with home.open() as supervisor, asyncio.timeout(LIMIT):
        made = await home.start(supervisor, *TURN, start=False, policy=files[0])
        means, charge = supervisor._means, supervisor._sessions.get(made.id)
        monkeypatch.setattr(Policies, "text", slow)
        record = charge.record
        pinned = delegations.pinned(means, record.policy, record.guarded)
        reading = asyncio.ensure_future(pinned)
        await is_read.wait()
        await supervisor.set_policy(made.id, files[1], by=ME)
        is_set.set()
        policy = await reading
        assert (policy.digest, policy.files) == (made.policy, made.guarded)
        assert all(key == (one.digest, one.files) for key, one in means.policies.items())


async def test_one_that_can_not_be_read_changes_nothing(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, start=False)
        with pytest.raises(InvalidPolicy):
            await supervisor.set_policy(made.id, "no such preset", by=ME)
        assert supervisor.get(made.id).policy == made.policy
        with pytest.raises(UnknownSession):
            await supervisor.set_policy("nobody", "ask", by=ME)


async def test_of_many_at_once_the_last_one_holds_and_all_are_told(home: Home) -> None:
    presets = ("ask", "edits", "plan", "autonomous", "read-only")
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN)
        await idle(supervisor, made.id, 1)
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(
                *(supervisor.set_policy(made.id, preset, by=ME) for preset in presets)
            )
        policy = supervisor.live(made.id).policy
        assert policy
        applied = await _applied(supervisor, made.id)
        assert supervisor.get(made.id).policy == policy.base.digest == applied.digest


async def test_the_name_of_a_stored_one_is_written_down(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *TURN, start=False)
        await supervisor.set_policy(made.id, Named("team", Policy("edits")), by=ME)
        assert (await _applied(supervisor, made.id)).source == "stored policy team"


async def _applied(supervisor: Supervisor, session: str) -> Any:
    means = supervisor._means
    return await Policies(means.journal, means.owners, means.now).applied(session)
