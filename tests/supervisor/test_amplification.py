"""Agents that try to come by more than they have: by others, by forks, by starting again, by names.

Nothing comes of it. That they decide nothing that is not for them is in `test_escalation_attacks`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridle.approvals import Agent, Approve, ForSession, MayNotDecide
from bridle.errors import InvalidLaunch, LimitReached, NotPossible, WiderThanParent
from bridle.policy import Call, Policy
from bridle.supervisor import LineageLimits, SessionRecord, Supervisor
from tests.policy.grounds import bash

from .families import ASK, MAY, family, limited
from .homes import DONE, INIT, LIMIT, ME, PROMPT, TURN, Home, Step, asked, until
from .test_births_by_agents import argv, begun, child, judged, parent
from .test_births_by_agents_later import _Turn

RM, EDIT = bash("rm x"), Call("Edit", {"file_path": "a"})
#: A tool of a server that has the name of ours, and is not.
DEPLOY = "mcp__bridle__deploy"
DEPLOYS: tuple[Step, ...] = (
    PROMPT,
    INIT,
    {"tool_use": {"name": DEPLOY, "id": "t1", "input": {"to": "x"}}},
    {"ask": {"tool_name": DEPLOY, "input": {"to": "x"}, "tool_use_id": "t1"}, "id": "q1"},
    DONE,
)


async def told(supervisor: Supervisor, session: SessionRecord) -> SessionRecord:
    """Once it has said something, and waits."""

    def is_over(record: SessionRecord) -> bool:
        return record.turns > 0 and record.state == "idle"

    return await supervisor.wait(session.id, is_over, LIMIT)


# --- by those that it has


async def test_one_that_has_less_now_makes_no_fork_that_has_what_it_had(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="autonomous")
        made = await child(supervisor, above, policy="autonomous", start=True, prompt="go")
        await told(supervisor, made)
        await supervisor.set_policy(above.id, "ask", by=ME)
        fork = await supervisor.fork(made.id, by=Agent(above.id))
        assert await judged(supervisor, made, RM, EDIT) == ["allow", "allow"]
        assert await judged(supervisor, fork, RM, EDIT) == ["ask", "ask"]
        # It has more again, and the fork has not.
        await supervisor.set_policy(above.id, "autonomous", by=ME)
        again = await supervisor.fork(made.id, by=Agent(above.id))
        assert [one.session for one in again.ceilings] == [above.id]
        assert await judged(supervisor, fork, RM) == ["ask"]


async def test_a_policy_that_is_changed_while_a_fork_is_made_is_not_missed(home: Home) -> None:
    async with home.open() as supervisor, asyncio.timeout(LIMIT):
        above = await parent(home, supervisor, policy="autonomous")
        made = await child(supervisor, above, policy="autonomous", start=True, prompt="go")
        await told(supervisor, made)
        supervisor._births._lock = turn = _Turn()
        async with turn:
            turn.is_wanted.clear()
            forking = asyncio.ensure_future(supervisor.fork(made.id, by=Agent(above.id)))
            await turn.is_wanted.wait()
            await supervisor.set_policy(above.id, "ask", by=ME)
        with pytest.raises(NotPossible, match="has just been changed: try again"):
            await forking


async def test_one_that_has_less_now_has_nothing_remembered_under_what_it_had(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, Policy("autonomous"))
        await begun(supervisor, made.members[0])
        await supervisor.set_policy(made.parent, MAY, by=ME)
        by, all_of_it = Agent(made.parent), Approve(remember=ForSession("Bash"))
        with pytest.raises(MayNotDecide, match="its own rights are others"):
            await supervisor.respond(made.approval.id, all_of_it, by=by)
        await supervisor.respond(made.approval.id, Approve(), by=by)
        assert await judged(supervisor, supervisor.get(made.child), bash("rm -r y")) == ["ask"]


async def test_a_strangers_server_with_our_name_is_not_granted_as_our_own(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy=ASK)
        made = await home.start(supervisor, *DEPLOYS, parent=above.id, policy=ASK)
        approval = await asked(supervisor, made.id)
        [step] = approval.steps
        assert step.to == ""
        assert [one.session for one in step.over] == [above.id]


@pytest.mark.parametrize(
    "policy", [limited(count=1), limited(seconds=60.0)], ids=["count", "seconds"]
)
async def test_what_it_may_grant_only_so_often_it_does_not_have_granted_by_a_fork(
    home: Home, policy: Policy
) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="autonomous")
        options: dict[str, Any] = {"parent": above.id, "policy": policy, "loopback": True}
        made = await told(supervisor, await home.start(supervisor, *TURN, **options))
        with pytest.raises(WiderThanParent, match=r"may grant Bash\(rm:\*\)"):
            await supervisor.fork(made.id, by=Agent(above.id))
        # A person may: it is their policy.
        assert (await supervisor.fork(made.id, by=ME)).policy == made.policy


# --- by starting again


@pytest.mark.slow
async def test_those_that_have_ended_count_again_when_they_are_started_again(home: Home) -> None:
    limits = LineageLimits(children=2, per_root=3)
    async with home.open(lineage=limits) as supervisor:
        above = await parent(home, supervisor)
        ended = [await child(supervisor, above, start=True) for _ in range(2)]
        for one in ended:
            await until(supervisor, one.id, "idle")
            await supervisor.stop(one.id)
        first = await child(supervisor, above, start=True)
        # Both see that there is room for one.
        both = await asyncio.gather(
            *(supervisor.start(one.id) for one in ended), return_exceptions=True
        )
        [refused] = [one for one in both if isinstance(one, BaseException)]
        assert isinstance(refused, LimitReached)
        assert "live children" in str(refused)
        assert len(supervisor._guards.family.live_below(above.id)) == 2
        # At other depths, too: all below one root are counted.
        await begun(supervisor, first)
        below = await child(supervisor, first, start=True)
        await begun(supervisor, below)
        await supervisor.stop(below.id)
        other = await child(supervisor, first, start=True)
        await begun(supervisor, other)
        with pytest.raises(LimitReached, match="live sessions below one root"):
            await supervisor.start(below.id)


async def test_a_server_that_takes_our_name_after_a_start_is_not_launched(home: Home) -> None:
    config = Path(home.work) / "mcp.json"
    config.write_text('{"mcpServers": {}}')
    async with home.open() as supervisor:
        cli = home.cli(*TURN)
        above = await parent(home, supervisor, mcp_config="mcp.json", command=cli.command)
        await supervisor.stop(above.id)
        config.write_text('{"mcpServers": {"bridle__x": {"command": "true"}}}')
        await supervisor.start(above.id)
        await until(supervisor, above.id, "failed")
        assert len(argv(cli)) == 1


# --- by names


MISLEADING = [
    "a\x1b[2Jb",
    "a\nb",
    "a\u202eb",
    "a\u200bb",
    "a/b",
    ".",
    "..",
    " a",
    "deadbeef",
    "12ab34cd-56",
]


async def test_a_name_that_misleads_people_is_not_for_an_agent_to_give(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        made = await child(supervisor, above, name="Ünïts of 2", start=True, prompt="go")
        await told(supervisor, made)
        for name in MISLEADING:
            with pytest.raises(InvalidLaunch, match="name"):
                await child(supervisor, above, name=name)
            with pytest.raises(InvalidLaunch, match="name"):
                await supervisor.fork(made.id, by=Agent(above.id), name=name)


# --- by being born, or started, while it ends


async def test_one_that_is_to_stop_has_no_more_children(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        supervisor._sessions.get(above.id).is_to_stop = True
        with pytest.raises(NotPossible, match="it is to stop"):
            await child(supervisor, above)
        assert len(supervisor.list()) == 1


async def test_one_that_ends_while_a_child_is_made_leaves_none_behind(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        policies = supervisor._births._policies
        keep = policies.keep

        async def kept(*given: Any, **options: Any) -> str:
            """All is checked by then, and nothing of it is stored."""
            policies.keep = keep  # type: ignore[method-assign]
            await supervisor.stop(above.id)
            return await keep(*given, **options)

        policies.keep = kept  # type: ignore[method-assign]
        made = await child(supervisor, above, start=True)
        await until(supervisor, made.id, "stopped")
        assert not supervisor._guards.family.live_below(above.id)


@pytest.mark.parametrize("words", [["--mcp-config", "{}"], ["--mcp-config={}"]], ids=str)
async def test_servers_that_can_not_be_looked_at_are_not_launched_beside_ours(
    home: Home, words: list[str]
) -> None:
    async with home.open() as supervisor:
        options: dict[str, Any] = {"extra_args": words, "prompt": None}
        with pytest.raises(InvalidLaunch, match="as mcp_config"):
            await home.start(supervisor, *TURN, loopback=True, **options)
        made = await home.start(supervisor, *TURN, **options)
        await until(supervisor, made.id, "idle")
