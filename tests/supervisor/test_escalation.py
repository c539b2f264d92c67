"""Who is asked about what a session wants to do: its ancestors in turn, then people."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bridle.approvals import (
    Agent,
    AlreadyDecided,
    AnswerQuestion,
    ApprovalRequest,
    Approve,
    ApprovePlan,
    Person,
    Reject,
)
from bridle.journal import Journal, NewEvent
from bridle.policy.policy import Policy
from bridle.supervisor import escalation
from tests.approvals.helpers import FailingLog

from .families import ASK, MAY, family, put_to
from .homes import ASKS, DONE, INIT, LIMIT, ME, PROMPT, Home, Step, asked, kinds, settled, until


async def test_what_a_child_asks_is_put_to_its_parent_who_decides_it(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        [step] = made.approval.steps
        assert (step.to, step.why, step.over) == (made.parent, "", ())
        assert step.until == pytest.approx(step.at + 120)
        decided = await supervisor.respond(made.approval.id, Approve(), by=Agent(made.parent))
        assert decided.decision
        assert (decided.decision.by, decided.decision.rule) == (Agent(made.parent), "Bash(rm:*)")
        await until(supervisor, made.child, "idle")
        assert (await settled(supervisor, made.approval.id)).status == "allowed"


async def test_what_an_mcp_server_asks_a_person_is_put_to_no_parent(home: Home) -> None:
    elicits = {
        "request": {
            "subtype": "elicitation",
            "mcp_server_name": "db",
            "message": "Which?",
            "requested_schema": {"type": "object", "properties": {}},
        },
        "id": "e1",
    }
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, steps=(PROMPT, INIT, elicits, DONE, PROMPT))
        assert made.approval.kind == "elicitation"
        assert (made.approval.asked, made.approval.steps) == ("", ())


async def test_a_parent_says_no_in_its_own_words(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        no = Reject("use git rm")
        decided = await supervisor.respond(made.approval.id, no, by=Agent(made.parent))
        assert decided.status == "denied"
        await until(supervisor, made.child, "idle")
        await home.reported("The supervising agent rejected this tool call: use git rm")


async def test_a_person_may_decide_whoever_is_asked(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        await supervisor.approvals.decide(made.approval.id, Approve(), by=ME)
        with pytest.raises(AlreadyDecided, match="me"):
            await supervisor.respond(made.approval.id, Approve(), by=Agent(made.parent))


async def test_who_may_not_grant_it_is_passed_over_and_that_is_told(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, ASK)
        [step] = made.approval.steps
        [over] = step.over
        assert (step.to, over.session) == (made.root, made.parent)
        assert "its own policy does not allow it" in over.why
        assert (await supervisor.respond(made.approval.id, Approve(), by=Agent(made.root))).decision


async def test_people_are_asked_where_nobody_above_may_grant_it(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, ASK, ASK)
        [step] = made.approval.steps
        assert (step.to, step.until) == ("", None)
        assert [over.session for over in step.over] == [made.parent, made.root]


async def test_an_agent_passes_on_what_it_does_not_want_to_decide(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        agent = Agent(made.parent)
        assert made.approval.asked == made.parent
        found = await supervisor.escalate(made.approval.id, by=agent, why="what is x?")
        assert (found.asked, found.steps[-1].by) == (made.root, made.parent)
        assert found.steps[-1].why == "what is x?"
        # Who is told twice does not pass it over the head of the next one.
        again = await supervisor.escalate(made.approval.id, by=agent, why="what is x?")
        assert again.steps == found.steps
        last = await supervisor.escalate(made.approval.id, by=Agent(made.root), why="nor I")
        assert (last.asked, len(last.steps)) == ("", 3)
        assert await kinds(supervisor, made.child) != []
        escalated = [one for one in await kinds(supervisor, made.child) if "escalated" in one]
        assert len(escalated) == 2
        # What was put to it before it may still decide.
        assert (await supervisor.respond(made.approval.id, Approve(), by=agent)).decision


async def test_what_is_not_answered_in_time_goes_to_the_next_and_at_last_to_people(
    home: Home,
) -> None:
    async with home.open(escalate_after=0.2) as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        found = await put_to(supervisor, made.approval.id, "")
        assert [step.to for step in found.steps] == [made.parent, made.root, ""]
        assert "did not answer in 0.2 seconds" in found.steps[1].why
        assert found.steps[1].by == ""
        assert found.steps[2].until is None
        await supervisor.approvals.decide(found.id, Approve(), by=ME)
        await until(supervisor, made.child, "idle")


class RefusesOnce(FailingLog):
    """Refuses the first event of one kind."""

    def __init__(self, journal: Journal, kind: str) -> None:
        super().__init__(journal)
        self.refused_kinds = {kind}

    def append(self, stream: str, events: Sequence[NewEvent], *more: Any) -> asyncio.Future[int]:
        stored = super().append(stream, events, *more)
        self.refused_kinds -= {event.kind for event in events}
        return stored


async def test_what_can_not_be_passed_on_because_it_can_not_be_stored_is_passed_on_later(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escalation, "RETRY_SECONDS", 0.01)
    async with home.open(escalate_after=0.05) as supervisor:
        log = RefusesOnce(supervisor.journal, "approval.escalated")
        monkeypatch.setattr(supervisor.approvals.owners, "_log", log)
        made = await family(home, supervisor, MAY)
        found = await put_to(supervisor, made.approval.id, "")
        assert log.refused_kinds == set()
        assert [step.to for step in found.steps] == [made.parent, ""]
        await supervisor.approvals.decide(found.id, Approve(), by=ME)
        await until(supervisor, made.child, "idle")


async def test_with_no_time_for_them_ancestors_are_not_asked(home: Home) -> None:
    async with home.open(escalate_after=0) as supervisor:
        made = await family(home, supervisor, MAY)
        assert made.approval.steps == ()


async def test_a_session_that_does_not_ask_above_asks_people(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, asks_above=False)
        assert made.approval.steps == ()


async def test_what_is_guarded_goes_straight_to_people(home: Home) -> None:
    guarded = {"command": "claude --dangerously-skip-permissions -p hi"}
    steps = (
        PROMPT,
        INIT,
        {"tool_use": {"name": "Bash", "id": "t1", "input": guarded}},
        {"ask": {"tool_name": "Bash", "input": guarded, "tool_use_id": "t1"}, "id": "q1"},
        DONE,
    )
    async with home.open() as supervisor:
        made = await family(home, supervisor, Policy("autonomous"), steps=steps)
        assert made.approval.guard
        assert made.approval.steps == ()


async def test_what_only_people_may_grant_goes_straight_to_them(home: Home) -> None:
    policy = Policy("ask", allow=["Bash(rm:*)"], human_only=["Bash(rm:*)"])
    async with home.open() as supervisor:
        made = await family(home, supervisor, policy)
        assert "a person alone" in made.approval.guard
        assert made.approval.steps == ()


QUESTION = {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]}


async def test_a_question_is_put_to_the_parent_whatever_it_may_grant(home: Home) -> None:
    asks: Step = {"tool_name": "AskUserQuestion", "input": QUESTION, "tool_use_id": "t1"}
    used: Step = {"name": "AskUserQuestion", "id": "t1", "input": QUESTION}
    steps = (PROMPT, INIT, {"tool_use": used}, {"ask": asks, "id": "q1"}, DONE)
    async with home.open() as supervisor:
        made = await family(home, supervisor, ASK, steps=steps)
        assert made.approval.asked == made.parent
        answer = AnswerQuestion({"Which?": "B"})
        await supervisor.respond(made.approval.id, answer, by=Agent(made.parent))
        await until(supervisor, made.child, "idle")
        await home.reported('"Which?": "B"')


async def test_a_plan_is_put_to_the_parent_and_goes_on_step_by_step(home: Home) -> None:
    plan = {"plan": "first this"}
    asks: Step = {"tool_name": "ExitPlanMode", "input": plan, "tool_use_id": "t1"}
    used: Step = {"name": "ExitPlanMode", "id": "t1", "input": plan}
    steps = (PROMPT, INIT, {"tool_use": used}, {"ask": asks, "id": "q1"}, DONE)
    async with home.open() as supervisor:
        made = await family(home, supervisor, ASK, steps=steps)
        assert made.approval.asked == made.parent
        await supervisor.respond(made.approval.id, ApprovePlan(), by=Agent(made.parent))
        await until(supervisor, made.child, "idle")


async def test_who_has_no_tools_to_answer_with_is_passed_over(home: Home) -> None:
    async with home.open() as supervisor:
        above = await home.start(supervisor, *ASKS, policy=MAY, prompt=None)
        child = await home.start(supervisor, *ASKS, parent=above.id)
        approval = await asked(supervisor, child.id)
        [over] = approval.steps[-1].over
        assert (approval.asked, over.session) == ("", above.id)
        assert "no tools" in over.why


async def test_what_was_put_to_one_that_ends_goes_on_at_once(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY, orphans="hand over")
        await supervisor.stop(made.parent)
        found = await put_to(supervisor, made.approval.id, made.root)
        assert made.parent in found.steps[-1].why
        assert (found.steps[-1].by, len(found.steps)) == ("", 2)
        await supervisor.stop(made.root)
        last = await put_to(supervisor, made.approval.id, "")
        assert made.root in last.steps[-1].why
        await supervisor.approvals.decide(last.id, Approve(), by=ME)


async def test_an_ancestor_that_has_ended_already_is_passed_over(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY, orphans="hand over")
        approval = made.approval
        await supervisor.escalate(approval.id, by=Agent(made.parent), why="")
        await supervisor.stop(made.root)
        found = await put_to(supervisor, approval.id, "")
        assert [step.to for step in found.steps] == [made.parent, made.root, ""]


@pytest.mark.parametrize("how", ["interrupt", "stop", "stop the parent"])
async def test_what_ends_the_asking_ends_it_for_whomever_is_asked(home: Home, how: str) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        waiting = asyncio.ensure_future(supervisor.approvals.wait(made.approval.id))
        match how:
            case "interrupt":
                await supervisor.interrupt(made.child)
            case "stop":
                await supervisor.stop(made.child)
            case _:
                await supervisor.stop(made.parent)
        async with asyncio.timeout(LIMIT):
            assert (await waiting).status == "cancelled"
        with pytest.raises(AlreadyDecided):
            await supervisor.escalate(made.approval.id, by=Agent(made.parent), why="late")


async def test_a_person_sees_each_step_in_the_order_of_the_log(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        for who in (made.parent, made.root):
            await supervisor.escalate(made.approval.id, by=Agent(who), why=f"not {who}")
        seen = await supervisor.approvals.get(made.approval.id)
        [listed] = await supervisor.approvals.list(status="pending")
        assert seen.steps == listed.steps
        assert [step.by for step in seen.steps] == ["", made.parent, made.root]
        assert [step.at for step in seen.steps] == sorted(step.at for step in seen.steps)
        ann = Person("ann", "web")
        decided = await supervisor.approvals.decide(seen.id, Approve(), by=ann)
        assert decided.steps == seen.steps


async def test_a_root_that_somebody_else_runs_is_asked_until_it_is_stopped(home: Home) -> None:
    async with home.open() as supervisor:
        root = await supervisor.create_external(
            kind="root", folder=home.work, by=ME, policy=MAY, name="ide"
        )
        child = await home.start(supervisor, *ASKS, parent=root.id)
        approval = await asked(supervisor, child.id)
        assert approval.asked == root.id
        waiting = asyncio.ensure_future(supervisor.approvals.wait(approval.id))
        await supervisor.stop(root.id)
        async with asyncio.timeout(LIMIT):
            await waiting  # those below it are stopped with it
        assert supervisor.get(child.id).state in ("stopping", "stopped")


@pytest.mark.slow
async def test_however_many_wait_there_is_one_timer(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY)
        request = ApprovalRequest(
            session=made.child, launch="l", kind="tool", tool="Bash", input={"command": "rm x"}
        )
        before = len(asyncio.all_tasks())
        opened = [await supervisor.approvals.open(request) for _ in range(200)]
        assert {one.asked for one in opened} == {made.parent}
        assert len(asyncio.all_tasks()) <= before + 5
