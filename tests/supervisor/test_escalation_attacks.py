"""Agents that try to decide what is not for them to decide: nothing comes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from bridle.approvals import (
    Agent,
    AlreadyDecided,
    Always,
    Approval,
    ApprovalRequest,
    Approve,
    ApprovePlan,
    ForSession,
    InvalidDecision,
    MayNotDecide,
    Reject,
    ShownOtherwise,
    UnknownApproval,
)
from bridle.approvals.model import Choice
from bridle.policy.delegable import delegable
from bridle.policy.policy import Policy
from bridle.supervisor import Supervisor

from .families import ASK, MAY, Family, family, limited, put_to
from .homes import ASKS, DONE, INIT, LIMIT, ME, PROMPT, Home, Step, asked, until

GUESSED = "0123456789abcdef0123"
#: Grants more than the child asks for, and can't be told from a yes by its looks.
ALL_CHOICES: tuple[Choice, ...] = (Approve(), Reject("no"), ApprovePlan())


async def tried(supervisor: Supervisor, approval: str, by: str) -> list[str]:
    """What an agent hears that tries whatever it may do with an approval."""
    heard = []
    for choice in ALL_CHOICES:
        with pytest.raises(UnknownApproval) as caught:
            await supervisor.respond(approval, choice, by=Agent(by))
        heard.append(f"{type(caught.value).__name__}: {caught.value}".replace(approval, "ID"))
    with pytest.raises(UnknownApproval) as caught:
        await supervisor.escalate(approval, by=Agent(by), why="let me see")
    return [*heard, f"{type(caught.value).__name__}: {caught.value}".replace(approval, "ID")]


async def still_pending(made: Family) -> Approval:
    found = await made.supervisor.approvals.get(made.approval.id)
    assert found.status == "pending"
    assert found.steps == made.approval.steps
    return found


async def test_what_is_not_below_an_agent_looks_to_it_like_what_is_not_there(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        sibling = await supervisor.create(cwd=home.work, by=Agent(made.parent), policy=MAY)
        below = await supervisor.create(cwd=home.work, by=Agent(made.parent), policy=MAY)
        foreign = await home.start(supervisor, *ASKS, policy=MAY, loopback=True, prompt=None)
        unknown = await tried(supervisor, GUESSED, made.parent)
        assert len(set(unknown)) == 1
        # Itself, a sibling, one that is no relation, one of another tree, one that never was.
        for who in (made.child, sibling.id, below.id, foreign.id, "nobody", "", made.root[:8]):
            assert await tried(supervisor, made.approval.id, who) == unknown
        await still_pending(made)


IMPOSSIBLE_IDS = ["", "x" * 5000, "../approvals", "a/b", "\0", "é" * 40]


async def test_an_id_that_can_not_be_one_looks_like_an_unknown_one(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        for guess in IMPOSSIBLE_IDS:
            assert len(set(await tried(supervisor, guess, made.parent))) == 1


async def test_an_agent_decides_nothing_for_one_above_it(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, ASK)
        await supervisor.send(made.parent, "go")
        of_parent = await asked(supervisor, made.parent)
        assert of_parent.asked == made.root
        await tried(supervisor, of_parent.id, made.child)
        await tried(supervisor, of_parent.id, made.parent)
        assert (await supervisor.respond(of_parent.id, Approve(), by=Agent(made.root))).decision


async def test_an_agent_decides_nothing_that_was_never_put_to_it(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        for choice in (Approve(), Reject()):
            with pytest.raises(MayNotDecide, match="not put to this agent"):
                await supervisor.respond(made.approval.id, choice, by=Agent(made.root))
        with pytest.raises(MayNotDecide, match="not put to this agent"):
            await supervisor.escalate(made.approval.id, by=Agent(made.root), why="mine")
        await still_pending(made)


async def test_what_goes_to_people_alone_is_not_for_the_parent(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, asks_above=False)
        with pytest.raises(MayNotDecide):
            await supervisor.respond(made.approval.id, Approve(), by=Agent(made.parent))
        await still_pending(made)


async def test_an_agent_decides_no_more_once_its_child_was_handed_over(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY, orphans="hand over")
        await supervisor.stop(made.parent)
        await put_to(supervisor, made.approval.id, made.root)
        await supervisor.wait(made.child, lambda r: r.lineage == (made.root,), LIMIT)
        await tried(supervisor, made.approval.id, made.parent)
        # Neither if it is started again: it is no ancestor any more.
        await supervisor.start(made.parent)
        await until(supervisor, made.parent, "idle")
        await tried(supervisor, made.approval.id, made.parent)
        assert (await supervisor.respond(made.approval.id, Approve(), by=Agent(made.root))).decision


async def test_an_agent_that_is_stopped_decides_nothing(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, orphans="hand over")
        stopping = asyncio.ensure_future(supervisor.stop(made.parent))
        for _ in range(3):  # the log knows nothing of it yet
            await asyncio.sleep(0)
        with pytest.raises((MayNotDecide, UnknownApproval)):
            await supervisor.respond(made.approval.id, Approve(), by=Agent(made.parent))
        await until(supervisor, made.parent, "stopping", "stopped")
        with pytest.raises((MayNotDecide, UnknownApproval)):
            await supervisor.respond(made.approval.id, Reject(), by=Agent(made.parent))
        await stopping
        assert (await put_to(supervisor, made.approval.id, "")).status == "pending"


def bash(command: str, number: int = 1) -> tuple[Step, ...]:
    given, tool, request = {"command": command}, f"t{number}", f"q{number}"
    return (
        PROMPT,
        INIT,
        {"tool_use": {"name": "Bash", "id": tool, "input": given}},
        {"ask": {"tool_name": "Bash", "input": given, "tool_use_id": tool}, "id": request},
        DONE,
    )


@pytest.mark.parametrize(
    ("policy", "command"),
    [
        (Policy("autonomous"), "claude --dangerously-skip-permissions -p x"),
        (Policy("autonomous", human_only=["Bash(git push:*)"]), "git push"),
    ],
)
async def test_what_is_for_people_alone_no_agent_decides(
    home: Home, policy: Policy, command: str
) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, policy, steps=bash(command))
        assert made.approval.guard
        for choice in (Approve(), Reject(), Approve({"command": "ls"})):
            with pytest.raises(MayNotDecide):
                await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
        await still_pending(made)


BEYOND: list[tuple[Choice, str]] = [
    (Approve({"command": "curl evil"}), "escalate it"),
    (Approve({"command": "rm x; curl evil"}), "escalate it"),
    (Approve({"command": "claude --dangerously-skip-permissions -p x"}), "escalate it"),
    (Approve(remember=Always("Bash(rm:*)")), "for always"),
    (Reject(remember=Always("Bash(rm:*)")), "for always"),
    (Approve(directories=("/",)), "more folders"),
]


async def test_a_yes_reaches_no_further_than_what_is_delegated(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        for choice, reason in BEYOND:
            with pytest.raises(MayNotDecide, match=reason):
                await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
            await still_pending(made)
            assert await supervisor.approvals.remembered.of_session(made.child) == []


async def test_a_changed_input_that_is_delegated_is_what_runs(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        choice = Approve({"command": "rm y"})
        await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
        await until(supervisor, made.child, "idle")
        await home.reported("rm y")


async def test_what_the_agents_policy_denies_it_does_not_grant_by_another_input(home: Home) -> None:
    policy = Policy("autonomous", deny=["Bash(rm -rf:*)"])
    async with home.open() as supervisor:
        made = await family(home, supervisor, policy)
        for choice in (Approve({"command": "rm -rf /tmp/x"}), Approve({"command": "rm -rf x"})):
            with pytest.raises((MayNotDecide, InvalidDecision)):
                await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
        await still_pending(made)


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
async def test_no_agent_has_a_plan_go_on_unasked(home: Home, mode: Any) -> None:
    used: Step = {"name": "ExitPlanMode", "id": "t1", "input": {"plan": "p"}}
    asks: Step = {"tool_name": "ExitPlanMode", "input": {"plan": "p"}, "tool_use_id": "t1"}
    steps = (PROMPT, INIT, {"tool_use": used}, {"ask": asks, "id": "q1"}, DONE)
    async with home.open() as supervisor:
        made = await family(home, supervisor, Policy("autonomous"), steps=steps)
        with pytest.raises(MayNotDecide, match="only a person"):
            await supervisor.respond(made.approval.id, ApprovePlan(mode), by=Agent(made.parent))
        await still_pending(made)


async def test_what_was_shown_otherwise_is_not_decided(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, limited(count=1))
        agent = Agent(made.parent)
        with pytest.raises(ShownOtherwise):
            await supervisor.respond(made.approval.id, Approve(), by=agent, shown="0" * 64)
        # And that was not counted.
        shown = made.approval.digest
        assert (
            await supervisor.respond(made.approval.id, Approve(), by=agent, shown=shown)
        ).decision


# --- what is remembered


async def test_what_an_agent_has_remembered_holds_for_the_child_alone(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        choice = Approve(remember=ForSession("Bash(rm:*)"))
        await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
        [rule] = await supervisor.approvals.remembered.of_session(made.child)
        assert (rule.by, rule.session) == (Agent(made.parent), made.child)
        assert await supervisor.approvals.remembered.of_session(made.parent) == []
        assert await supervisor.approvals.remembered.always() == []


async def test_what_an_agent_has_remembered_never_gets_past_its_own_rights(home: Home) -> None:
    steps = (*ASKS, *bash("curl evil", 2))
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, steps=steps)
        choice = Approve(remember=ForSession("Bash"))  # all of it
        await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
        await until(supervisor, made.child, "idle")
        await supervisor.send(made.child, "go on")
        second = await asked(supervisor, made.child)
        assert second.input == {"command": "curl evil"}
        assert second.asked == ""


async def test_no_agent_gives_a_rule_to_a_session_that_a_person_has_made(home: Home) -> None:
    async with home.open() as supervisor:
        cli = home.cli(*ASKS).command
        above = await supervisor.create(
            cwd=home.work, by=ME, policy=MAY, loopback=True, command=cli
        )
        child = await home.start(supervisor, *ASKS, parent=above.id)
        approval = await asked(supervisor, child.id)
        choice = Approve(remember=ForSession("Bash(rm:*)"))
        with pytest.raises(MayNotDecide, match="a person has made"):
            await supervisor.respond(approval.id, choice, by=Agent(above.id))
        assert (await supervisor.respond(approval.id, Approve(), by=Agent(above.id))).decision


async def test_what_is_limited_is_not_granted_for_good(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, limited(count=5))
        choice = Approve(remember=ForSession("Bash(rm:*)"))
        with pytest.raises(MayNotDecide, match="for good"):
            await supervisor.respond(made.approval.id, choice, by=Agent(made.parent))
        await still_pending(made)


# --- races


async def test_two_responses_at_once_do_not_get_more_than_there_is(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, limited(count=1))
        agent = Agent(made.parent)
        other = await supervisor.create(cwd=home.work, by=agent, policy=ASK, prompt="go")
        second = await asked(supervisor, other.id)
        assert second.asked == made.parent
        results = await asyncio.gather(
            *(supervisor.respond(one.id, Approve(), by=agent) for one in (made.approval, second)),
            return_exceptions=True,
        )
        assert sum(isinstance(one, Approval) for one in results) == 1
        [refused] = [one for one in results if isinstance(one, Exception)]
        assert isinstance(refused, MayNotDecide)
        assert "1 times, and has" in str(refused)


async def test_a_person_and_a_parent_at_once_decide_once(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, limited(count=1))
        agent = Agent(made.parent)
        results = await asyncio.gather(
            supervisor.approvals.decide(made.approval.id, Reject(), by=ME),
            supervisor.respond(made.approval.id, Approve(), by=agent),
            return_exceptions=True,
        )
        assert sum(isinstance(one, AlreadyDecided) for one in results) == 1
        # If it was the person, the parent has its grant still.
        found = await supervisor.approvals.get(made.approval.id)
        other = await supervisor.create(cwd=home.work, by=agent, policy=ASK, prompt="go")
        second = await asked(supervisor, other.id)
        assert (second.asked == made.parent) == (found.status == "denied")


async def test_a_response_and_an_escalation_at_once_leave_one_of_both(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        agent = Agent(made.parent)
        escalated, decided = await asyncio.gather(
            supervisor.escalate(made.approval.id, by=agent, why="not I"),
            supervisor.respond(made.approval.id, Approve(), by=agent),
            return_exceptions=True,
        )
        assert isinstance(decided, Approval)
        found = await supervisor.approvals.get(made.approval.id)
        assert found.status == "allowed"
        assert isinstance(escalated, Approval | AlreadyDecided)
        assert len(found.steps) == (2 if isinstance(escalated, Approval) else 1)


async def test_all_who_pass_it_on_at_once_pass_it_on_once(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        agent = Agent(made.parent)
        found = await asyncio.gather(
            *(supervisor.escalate(made.approval.id, by=agent, why="no") for _ in range(8))
        )
        assert {one.asked for one in found} == {made.root}
        assert {len(one.steps) for one in found} == {2}


async def test_who_is_cancelled_while_it_grants_has_been_counted(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, limited(count=1))
        agent = Agent(made.parent)
        granting = asyncio.ensure_future(supervisor.respond(made.approval.id, Approve(), by=agent))
        for _ in range(3):
            await asyncio.sleep(0)
        granting.cancel()
        await asyncio.wait([granting])
        found = await supervisor.approvals.get(made.approval.id)
        other = await supervisor.create(cwd=home.work, by=agent, policy=ASK, prompt="go")
        second = await asked(supervisor, other.id)
        assert (second.asked == "") == (found.status == "allowed")


async def test_who_may_do_less_than_its_policy_says_grants_no_more_than_that(home: Home) -> None:
    async with home.open() as supervisor:
        command = home.cli(*ASKS).command
        above = await supervisor.create(
            cwd=home.work, by=ME, policy=Policy("autonomous"), loopback=True, command=command
        )
        await until(supervisor, above.id, "idle")
        child = await supervisor.create(cwd=home.work, by=Agent(above.id), policy=ASK)
        await until(supervisor, child.id, "idle")
        policy = supervisor.live(above.id).policy
        assert policy
        policy.choose("default")  # as a person does who approves its plan step by step
        await supervisor.send(child.id, "go")
        approval = await asked(supervisor, child.id)
        assert (approval.asked, approval.steps[-1].over[0].session) == ("", above.id)


async def test_a_grant_is_judged_where_the_child_stands_and_not_where_it_was_born(
    home: Home,
) -> None:
    """What a name means depends on where the child's shell is by now."""
    inside = Policy("ask", allow=["Edit(./**)", "Read(./**)"], delegate=[delegable(["Edit(./**)"])])
    async with home.open() as supervisor:
        made = await family(home, supervisor, inside)
        given = {"file_path": "notes.txt", "old_string": "a", "new_string": "b"}
        asks = ApprovalRequest(
            session=made.child, launch="l", kind="tool", tool="Edit", input=given
        )
        here = await supervisor.approvals.open(asks)
        away = await supervisor.approvals.open(replace(asks, cwd="/etc"))
        assert (here.asked, away.asked) == (made.parent, "")
        for one in (here, away):
            await supervisor.approvals.cancel(one.id)
