"""Approvals: people, plans and a trail, with a journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import bridle
from bridle.approvals import (
    AnswerQuestion,
    Approval,
    Approvals,
    Approve,
    ApprovePlan,
    Desk,
    ForSession,
    Person,
    Reject,
    open_approvals,
    open_desk,
)
from bridle.approvals.model import Choice, PlanMode
from bridle.journal import memory_journal, verify
from bridle.policy import InForce
from bridle.process.spec import LaunchOptions
from bridle.testing import Turn, tool_use

from .lab import BASH, COMMAND, Lab
from .talk import LIMIT_SECONDS, Heard, Talk

ADA = Person("ada", "test")
SANDBOX = {"IS_SANDBOX": "1"}
# Without it the newest CLI asks a classifier model in plan mode, which a script can't play.
PLANNING: LaunchOptions = {
    "permission_mode": "plan",
    "settings": {"useAutoModeDuringPlan": False},
    "env": SANDBOX,
}


class Office:
    """A journal's approvals, the desk of one session, and its policy."""

    def __init__(self, approvals: Approvals, desk: Desk, policy: InForce) -> None:
        self.approvals = approvals
        self.desk = desk
        self.policy = policy

    async def pending(self) -> Approval:
        """Wait for the next approval."""
        async with asyncio.timeout(LIMIT_SECONDS):
            async for changes in self.approvals.watch():
                for approval in changes:
                    if approval.status == "pending":
                        return approval
        raise AssertionError("the watch has ended")

    async def decide(self, talk: Talk, prompt: str, *choices: Choice) -> Heard:
        """Say something, and decide what is asked, one after another."""
        turn = await talk.session.send(prompt)
        for choice in choices:
            approval = await self.pending()
            await self.approvals.decide(approval.id, choice, by=ADA, shown=approval.digest)
        async with asyncio.timeout(LIMIT_SECONDS):
            return Heard([message async for message in turn], await turn.result())

    async def kinds(self) -> list[str]:
        """The trail, checked."""
        journal = self.approvals.journal
        verdict = await verify(journal, "s")
        assert verdict.is_intact, verdict
        return [event.kind for event in await journal.log.read("s", limit=1_000)]


@asynccontextmanager
async def office(lab: Lab, preset: str = "ask") -> AsyncIterator[Office]:
    env = {"HOME": str(lab.home), "CLAUDE_CONFIG_DIR": str(lab.config_dir)}
    spec = bridle.LaunchSpec(cwd=lab.cwd, env=env, inherit_env=False)
    policy = bridle.in_force(preset, spec)
    async with memory_journal() as journal, open_approvals(journal) as approvals:
        desk = await open_desk(approvals, policy, session="s", by=ADA)
        yield Office(approvals, desk, policy)


async def test_approval_by_a_person(lab: Lab) -> None:
    """A person allows a command: requested, decided, delivered and run, all in the audit chain"""
    async with (
        office(lab) as here,
        lab.session([Turn(BASH), "Done."], approver=here.desk, policy=here.policy) as talk,
    ):
        assert (await here.decide(talk, "go", Approve())).result.result == "Done."
        assert lab.exists("x.txt")
        (approval,) = await here.approvals.list()
        assert (approval.status, approval.tool, approval.kind) == ("allowed", "Bash", "tool")
        assert approval.suggestions[0] == f"Bash({COMMAND})"
        assert approval.delivered
        assert approval.outcome
        assert approval.outcome.how == "ran"
        kinds = await here.kinds()
        assert [kind for kind in kinds if kind.startswith("approval.")] == [
            "approval.requested",
            "approval.decided",
            "approval.delivered",
            "approval.outcome",
        ]


async def test_approval_is_remembered(lab: Lab) -> None:
    """A rule that a person has remembered: the second call is not asked, and still in the trail"""
    script: list[Turn | str] = [Turn(BASH), "Once.", Turn(BASH), "Twice."]
    async with (
        office(lab) as here,
        lab.session(script, approver=here.desk, policy=here.policy) as talk,
    ):
        await here.decide(talk, "go", Approve(remember=ForSession(f"Bash({COMMAND})")))
        assert (await here.decide(talk, "again")).result.result == "Twice."
        assert len(await here.approvals.list()) == 1
        assert "tool.judged" in await here.kinds()


async def test_approval_with_another_input(lab: Lab) -> None:
    """A person changes the input: that is what runs"""
    changed = Approve({"command": "touch other.txt", "description": "another"})
    async with (
        office(lab) as here,
        lab.session([Turn(BASH), "Done."], approver=here.desk, policy=here.policy) as talk,
    ):
        await here.decide(talk, "go", changed)
        assert lab.exists("other.txt")
        assert not lab.exists("t.txt")


async def test_rejection(lab: Lab) -> None:
    """A person rejects a command: the model reads the sentence and the reason"""
    async with (
        office(lab) as here,
        lab.session([Turn(BASH), "Pity."], approver=here.desk, policy=here.policy) as talk,
    ):
        heard = await here.decide(talk, "go", Reject("use the other folder"))
        output, is_error = heard.last_output()
        assert is_error
        assert "The user rejected this tool call" in output
        assert "use the other folder" in output
        assert not lab.exists("t.txt")


async def test_rejection_with_interrupt(lab: Lab) -> None:
    """A person rejects a command and ends the turn: the process lives"""
    async with (
        office(lab) as here,
        lab.session([Turn(BASH), "Here."], approver=here.desk, policy=here.policy) as talk,
    ):
        heard = await here.decide(talk, "go", Reject(interrupt=True))
        assert heard.result.is_interrupted
        assert (await talk.say("still there?")).result.result == "Here."


async def test_question_is_answered(lab: Lab) -> None:
    """A person answers AskUserQuestion, in bypass mode too"""
    options = [
        {"label": "Blue", "description": "like the sky"},
        {"label": "Red", "description": "like a rose"},
    ]
    question = {"question": "Which colour?", "header": "Colour", "options": options}
    questions = [{**question, "multiSelect": False}]
    asks = Turn(tool_use("AskUserQuestion", questions=questions))
    script: list[Turn | str] = [asks, "Red it is."]
    async with (
        office(lab, "autonomous") as here,
        lab.session(
            script,
            approver=here.desk,
            policy=here.policy,
            permission_mode="bypassPermissions",
            env=SANDBOX,
        ) as talk,
    ):
        heard = await here.decide(talk, "go", AnswerQuestion({"Which colour?": "Red"}))
        assert "Red" in heard.last_output()[0]
        (approval,) = await here.approvals.list()
        assert approval.kind == "question"


async def test_interrupt_cancels_an_approval(lab: Lab) -> None:
    """Our interrupt cancels a pending approval at once; nothing runs, the next turn works"""
    async with (
        office(lab) as here,
        lab.session([Turn(BASH), "Here."], approver=here.desk, policy=here.policy) as talk,
    ):
        turn = await talk.session.send("go")
        approval = await here.pending()
        await talk.session.interrupt()
        ended = await asyncio.wait_for(here.approvals.wait(approval.id), LIMIT_SECONDS)
        assert ended.status == "cancelled"
        assert (await turn.result(LIMIT_SECONDS)).is_interrupted
        assert not lab.exists("t.txt")
        assert (await talk.say("still there?")).result.result == "Here."


# --- plans


def write(lab: Lab, name: str) -> Turn:
    return Turn(tool_use("Write", file_path=str(lab.cwd / name), content="x\n"))


def command(name: str) -> Turn:
    return Turn(tool_use("Bash", command=f"touch {name} && echo x > {name}", description="do"))


@pytest.mark.parametrize(
    ("mode", "asked"),
    [("default", ["Write", "Bash"]), ("acceptEdits", ["Bash"]), ("bypassPermissions", [])],
)
async def test_plan_review(lab: Lab, mode: PlanMode, asked: list[str]) -> None:
    """A plan: what changes things is denied before it, and then goes on as its reviewer chose"""
    plan = tool_use("ExitPlanMode", plan="1. write a.txt")
    script: list[Turn | str] = [
        *(write(lab, "early.txt"), Turn("My plan.", plan)),
        *(write(lab, "a.txt"), command("b.txt"), "Carried out."),
    ]
    async with (
        office(lab) as here,
        lab.session(script, approver=here.desk, policy=here.policy, **PLANNING) as talk,
    ):
        choices: list[Choice] = [ApprovePlan(mode), *(Approve() for _ in asked)]
        heard = await here.decide(talk, "plan it", *choices)
        assert heard.result.result == "Carried out."
        approvals = await here.approvals.list()
        assert [a.tool for a in approvals] == ["ExitPlanMode", *asked]
        assert approvals[0].kind == "plan"
        assert not lab.exists("early.txt")
        assert lab.exists("a.txt")
        assert lab.exists("b.txt")
        assert talk.session.permission_mode == mode
        assert "plan.went_on" in await here.kinds()


async def test_edited_plan(lab: Lab) -> None:
    """A plan that its reviewer has edited: the model is told the edited one"""
    here_plan = lab.config_dir / "plans" / "a.md"
    note = tool_use("Write", file_path=str(here_plan), content="1. leap\n")
    plan = tool_use("ExitPlanMode", plan="1. leap")
    # The new one has a name of its own for the file, and takes the plan from the answer.
    notes = [Turn(note)] if lab.is_old else []
    script: list[Turn | str] = [*notes, Turn("My plan.", plan), "Carried out."]
    async with (
        office(lab) as here,
        lab.session(script, approver=here.desk, policy=here.policy, **PLANNING) as talk,
    ):
        turn = await talk.session.send("plan it")
        approval = await here.pending()
        if approval.input.get("plan"):
            assert "1. leap" in approval.input["plan"]
        edited = ApprovePlan("default", plan="1. look before it\n2. leap")
        await here.approvals.decide(approval.id, edited, by=ADA)
        await turn.result(LIMIT_SECONDS)
        assert "look before it" in _last_told(talk)


def _last_told(talk: Talk) -> str:
    body: Any = talk.model.requests[-1].body
    return str(body["messages"])


async def test_bypass_that_the_cli_can_not_give(lab: Lab) -> None:
    """A plan's reviewer chooses bypass, but the CLI was not launched for it: the truth is told"""
    plan = tool_use("ExitPlanMode", plan="1. write a.txt")
    script: list[Turn | str] = [Turn("My plan.", plan), write(lab, "a.txt"), "Carried out."]
    settings: LaunchOptions = {"settings": {"useAutoModeDuringPlan": False}}
    async with (
        office(lab) as here,
        lab.session(script, approver=here.desk, policy=here.policy, **settings) as talk,
    ):
        await talk.session.set_permission_mode("plan")
        await here.decide(talk, "plan it", ApprovePlan("bypassPermissions"))
        told = talk.session.permission_mode
        assert told == ("bypassPermissions" if lab.is_old else "default")
        lab.saw("obeyed" if lab.is_old else "stays in default, and that is recorded")
        events = await here.approvals.journal.log.read("s", limit=1_000)
        (went_on,) = [event for event in events if event.kind == "plan.went_on"]
        assert f'"told":"{told}"'.encode() in went_on.body
        # What the reviewer chose holds at the gate, whatever the CLI believes.
        assert lab.exists("a.txt")
