"""What holds for sessions that agents made, later: other policies, what is remembered, forks."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from bridle.approvals import Agent, Approve, ForSession, Reject
from bridle.errors import MissingVariables, NotPossible, UnknownSession, WiderThanParent
from bridle.policy import Call, Policy
from bridle.policy.delegable import delegable
from bridle.policy.delegation import Granted, Refused
from bridle.supervisor import LineageLimits, SessionRecord, Supervisor
from bridle.supervisor.delegations import delegation_of
from tests.policy.grounds import bash, told

from .homes import ASKS, LIMIT, ME, TURN, Home, asked, settled, until
from .test_births_by_agents import argv, begun, child, children, force, judged, parent

RM = bash("rm x")


async def grants(
    supervisor: Supervisor, session: SessionRecord, call: Call, folder: str
) -> Granted | Refused:
    delegation = await delegation_of(supervisor._means, supervisor.get(session.id))
    return delegation.grant(call, folder=folder, age=0, used={})


# --- what is remembered


async def asks_about(home: Home, supervisor: Supervisor, **options: Any) -> SessionRecord:
    """A child that asks whether it may `rm x`, which its parent may not delegate."""
    cli = home.cli(*ASKS)
    above = await parent(home, supervisor, command=cli.command)
    return await child(supervisor, above, start=True, prompt="go", **options)


async def test_what_a_person_has_remembered_for_it_gets_past_those_above(home: Home) -> None:
    async with home.open() as supervisor:
        made = await asks_about(home, supervisor)
        approval = await asked(supervisor, made.id)
        choice = Approve(remember=ForSession("Bash(rm:*)"))
        await supervisor.approvals.decide(approval.id, choice, by=ME)
        await until(supervisor, made.id, "idle")
        live = supervisor.live(made.id).policy
        assert live
        assert told(live.judge(RM)) == "allow"
        assert told(live.judge(bash("rm x && make"))) == "ask"
        # Also for whoever takes it up later.
        assert await judged(supervisor, made, RM, bash("make")) == ["allow", "ask"]


async def test_what_a_person_has_denied_an_agent_it_can_not_have_done_by_others(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        cli = home.cli(*ASKS)
        above = await home.start(
            supervisor,
            command=cli.command,
            loopback=True,
            policy=Policy("autonomous", ask=["Bash"]),
        )
        approval = await asked(supervisor, above.id)
        choice = Reject(remember=ForSession("Bash(rm:*)"))
        await supervisor.approvals.decide(approval.id, choice, by=ME)
        await settled(supervisor, approval.id)
        above = await until(supervisor, above.id, "idle")
        wide = Policy("autonomous", allow=["Bash"])
        made = await child(supervisor, above, policy=wide)
        assert await judged(supervisor, made, RM, bash("true; rm x")) == ["deny", "deny"]
        assert isinstance(await grants(supervisor, above, RM, made.folder), Refused)


# --- the parent's policy


async def test_a_parent_that_gets_more_or_less_later_changes_nothing_for_those_it_has(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="edits")
        first = await child(supervisor, above, policy="edits", allowed_tools=["Bash"])
        edit = Call("Edit", {"file_path": "a"})
        await supervisor.set_policy(above.id, "autonomous", by=ME)
        second = await child(supervisor, above, policy="autonomous")
        await supervisor.set_policy(above.id, "ask", by=ME)
        third = await child(supervisor, above, allowed_tools=["Bash", "Edit"])
        with pytest.raises(WiderThanParent):
            await child(supervisor, above, policy="edits")
        assert await judged(supervisor, first, edit, RM) == ["allow", "ask"]
        assert await judged(supervisor, second, edit, RM) == ["allow", "allow"]
        assert await judged(supervisor, third, edit, RM) == ["ask", "ask"]


async def test_what_it_may_say_yes_to_is_what_it_may_do_now(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy=Policy("ask", allow=["Bash(rm:*)"]))
        made = await child(supervisor, above)
        assert isinstance(await grants(supervisor, above, RM, made.folder), Granted)
        await supervisor.set_policy(above.id, "ask", by=ME)
        assert isinstance(await grants(supervisor, above, RM, made.folder), Refused)
        entry = delegable(["Bash(rm:*)"], count=1)
        await supervisor.set_policy(above.id, Policy("ask", delegate=[entry]), by=ME)
        found = await grants(supervisor, above, RM, made.folder)
        assert found == Granted("Bash(rm:*)", entry.key, is_limited=True)
        [ceiling] = supervisor.get(made.id).ceilings
        then = await delegation_of(supervisor._means, ceiling)
        assert told(then.ceiling(RM, made.folder)) == "allow"


async def test_one_in_the_middle_grants_no_more_than_those_above_it(home: Home) -> None:
    async with home.open() as supervisor:
        root = await parent(home, supervisor)
        wide = Policy("ask", allow=["Bash"], delegate=[delegable(["Bash"])])
        middle = await child(supervisor, root, policy=wide, start=True)
        middle = await until(supervisor, middle.id, "idle")
        made = await child(supervisor, middle)
        refused = await grants(supervisor, middle, RM, made.folder)
        assert isinstance(refused, Refused)
        assert "those above it may not delegate it" in refused.because


async def test_its_own_policy_may_be_changed_and_stays_bounded(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy=Policy("edits", deny=["Bash(rm:*)"]))
        made = await begun(supervisor, await child(supervisor, above, start=True))
        await supervisor.set_policy(made.id, Policy("autonomous", allow=["Bash"]), by=ME)
        live = supervisor.live(made.id).policy
        assert live
        assert [told(live.judge(call)) for call in (RM, bash("make"))] == ["deny", "ask"]
        assert await judged(supervisor, made, RM, bash("make")) == ["deny", "ask"]


async def test_it_is_bounded_after_a_restart_as_before(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        above = await parent(home, supervisor, policy=Policy("edits", human_only=["WebFetch"]))
        made = await child(supervisor, above, policy="edits", allowed_tools=["Bash"], start=True)
        await until(supervisor, made.id, "idle")
    fetch = Call("WebFetch", {"url": "https://example.com"})
    async with home.open() as supervisor:
        live = supervisor.live(made.id).policy
        assert live
        assert [told(live.judge(call)) for call in (RM, fetch)] == ["ask", "guard"]
        assert supervisor.get(made.id).ceilings == made.ceilings


class _Turn(asyncio.Lock):
    """A lock that tells when somebody wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_wanted = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        self.is_wanted.set()
        return await super().acquire()


async def test_a_policy_that_is_changed_while_a_child_is_made_is_not_missed(home: Home) -> None:
    async with home.open() as supervisor, asyncio.timeout(LIMIT):
        above = await parent(home, supervisor, policy="edits")
        supervisor._births._lock = turn = _Turn()
        async with turn:
            turn.is_wanted.clear()
            making = asyncio.ensure_future(child(supervisor, above, policy="edits"))
            await turn.is_wanted.wait()  # all of its parent is read then
            await supervisor.set_policy(above.id, "ask", by=ME)
        with pytest.raises(NotPossible, match="has just been changed: try again"):
            await making
        assert len(supervisor.list()) == 1


# --- modes


async def test_one_in_plan_mode_makes_no_others_that_do_more_than_plan(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="autonomous", permission_mode="plan")
        with pytest.raises(WiderThanParent) as refused:
            await child(supervisor, above, policy="ask")
        assert refused.value.given == "plan"
        made = await child(supervisor, above, allowed_tools=["Bash", "Edit"])
        edit = Call("Edit", {"file_path": "a"})
        assert await judged(supervisor, made, RM, edit) == ["deny", "deny"]
        assert made.ceilings[0].policy != above.policy


async def test_one_that_was_tightened_gives_as_much_as_it_has_now(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="autonomous")
        live = supervisor.live(above.id).policy
        assert live
        live.tighten("default")
        with pytest.raises(WiderThanParent):
            await child(supervisor, above, policy="autonomous")
        made = await child(supervisor, above, allowed_tools=["Bash"])
        assert await judged(supervisor, made, RM) == ["ask"]


async def test_one_that_was_loosened_for_a_while_gives_what_its_policy_gives(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="ask")
        live = supervisor.live(above.id).policy
        assert live
        live.choose("bypassPermissions")
        with pytest.raises(WiderThanParent):
            await child(supervisor, above, policy="edits")


# --- variables


async def test_values_that_nobody_knows_any_more_are_told_of_at_the_birth(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        above = await parent(home, supervisor, env={"KEY": "secret"})
    async with home.open() as supervisor:
        with pytest.raises(MissingVariables, match="KEY"):
            await child(supervisor, above)
        assert len(supervisor.list()) == 1


# --- forks


async def spoken(home: Home, supervisor: Supervisor, **options: Any) -> SessionRecord:
    """A child that has said something."""
    cli = home.cli(*TURN, *TURN)
    above = await parent(home, supervisor, command=cli.command, policy="edits")
    made = await child(supervisor, above, start=True, prompt="go", **options)
    return await supervisor.wait(made.id, lambda r: r.turns == 1 and r.state == "idle", LIMIT)


async def test_an_agent_forks_those_below_it_and_nobody_else(home: Home) -> None:
    async with home.open() as supervisor:
        made = await spoken(home, supervisor, allowed_tools=["Bash"])
        above = supervisor.get(made.parent or "")
        fork = await supervisor.fork(made.id, by=Agent(above.id), name="again")
        assert (fork.parent, fork.lineage, fork.forked_from) == (above.id, (above.id,), made.id)
        assert (fork.loopback, fork.ceilings) == (made.loopback, made.ceilings)
        assert fork.by == f"agent {above.id}"
        assert await judged(supervisor, fork, RM) == ["ask"]
        assert await children(supervisor, above) == [(made.id, ""), (fork.id, "again")]
        other = await parent(home, supervisor)
        for by in (made.id, other.id, fork.id, "nobody"):
            with pytest.raises(UnknownSession):
                await supervisor.fork(made.id, by=Agent(by))
        with pytest.raises(UnknownSession):
            await supervisor.fork(above.id, by=Agent(above.id))


async def test_a_fork_may_begin_at_a_message_and_does_so_once(home: Home) -> None:
    async with home.open() as supervisor:
        cli = home.cli(*TURN, *TURN)
        above = await parent(home, supervisor, command=cli.command)
        made = await child(supervisor, above, start=True, prompt="go")
        await supervisor.wait(made.id, lambda r: r.turns == 1 and r.state == "idle", LIMIT)
        fork = await supervisor.fork(made.id, by=Agent(above.id), at="a-message", prompt="go")
        await supervisor.wait(fork.id, lambda r: r.turns == 1 and r.state == "idle", LIMIT)
        assert "--resume-session-at=a-message" in argv(cli)[-1]
        assert "--fork-session" in argv(cli)[-1]
        assert "--strict-mcp-config" in argv(cli)[-1]
        assert "--setting-sources=user" in argv(cli)[-1]
        await supervisor.stop(fork.id)
        await supervisor.resume(fork.id, prompt="more")
        await supervisor.wait(fork.id, lambda r: r.launches == 2 and r.state == "idle", LIMIT)
        assert not [word for word in argv(cli)[-1] if word.startswith("--resume-session-at")]


async def test_a_person_forks_at_a_message_too_and_the_bounds_stay(home: Home) -> None:
    async with home.open() as supervisor:
        made = await spoken(home, supervisor, allowed_tools=["Bash"])
        fork = await supervisor.fork(made.id, by=ME, at="here")
        assert fork.ceilings == made.ceilings
        assert (fork.loopback, fork.asks_above) == (made.loopback, made.asks_above)
        assert await judged(supervisor, fork, RM) == ["ask"]


async def test_what_a_person_made_below_an_agent_is_bounded_in_a_fork_by_that_agent(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        cli = home.cli(*TURN, *TURN)
        above = await parent(home, supervisor, command=cli.command)
        wide = await home.start(
            supervisor, command=cli.command, parent=above.id, policy="autonomous", loopback=True
        )
        wide = await supervisor.wait(wide.id, lambda r: r.turns == 1 and r.state == "idle", LIMIT)
        assert await judged(supervisor, wide, RM) == ["allow"]
        fork = await supervisor.fork(wide.id, by=Agent(above.id))
        assert [one.session for one in fork.ceilings] == [above.id]
        assert await judged(supervisor, fork, RM) == ["ask"]
        assert fork.spec["setting_sources"] == ["user"]


async def test_forks_are_counted_as_children_are(home: Home) -> None:
    async with home.open(lineage=LineageLimits(children=1)) as supervisor:
        made = await spoken(home, supervisor)
        with pytest.raises(Exception, match="live children"):
            await supervisor.fork(made.id, by=Agent(made.parent or ""))
        assert (await force(supervisor, made)).policy.preset == "ask"
