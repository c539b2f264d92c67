"""Nobody approves themselves, and nobody decides what was not asked or shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bridle.approvals import (
    AcceptElicitation,
    Agent,
    Always,
    AnswerQuestion,
    Approval,
    Approvals,
    Approve,
    ApprovePlan,
    ForSession,
    InvalidDecision,
    MayNotDecide,
    Nobody,
    Person,
    Reject,
    ShownOtherwise,
    open_approvals,
)
from bridle.approvals.model import Choice, Decider, Kind, Step
from bridle.approvals.standing import check_input
from bridle.errors import InvalidEntry
from bridle.journal import Journal
from bridle.policy import InForce, Policy
from tests.policy.grounds import GROUND

from .helpers import ANN, TurnedClock, kinds_in, request

LINEAGE = ("root", "parent")
GUARD = "writes to .git/hooks"
#: It was put to the parent, then to the root, then to people.
STEPS = (Step(to="parent", at=1, until=2), Step(to="root", at=2, until=3), Step(at=3))


@pytest.mark.parametrize("who", LINEAGE)
async def test_a_strict_ancestor_may_decide(approvals: Approvals, who: str) -> None:
    asked = await approvals.open(request(lineage=LINEAGE, steps=STEPS))
    decided = await approvals.decide(asked.id, Approve(), by=Agent(who), under="delegated")
    assert decided.decision
    assert (decided.decision.by, decided.decision.rule) == (Agent(who), "delegated")


@pytest.mark.parametrize(
    ("by", "choice", "lineage", "guard", "reason"),
    [
        (Agent("child"), Approve(), LINEAGE, "", "nobody approves themselves"),
        (Agent("child"), Reject(), LINEAGE, "", "nobody approves themselves"),
        (Agent("child"), Approve(), (*LINEAGE, "child"), "", "nobody approves themselves"),
        (Agent("sibling"), Approve(), LINEAGE, "", "no ancestor"),
        (Agent("grandchild"), Approve(), LINEAGE, "", "no ancestor"),
        (Agent("parent"), Approve(), (), "", "no ancestor"),
        (Agent(""), Approve(), LINEAGE, "", "no ancestor"),
        (Agent("parent"), Approve(), LINEAGE, GUARD, "only a person may"),
        (Agent("root"), Approve(), LINEAGE, GUARD, "only a person may"),
        (Agent("grandparent"), Approve(), ("grandparent", *LINEAGE), "", "not put to this agent"),
        (Agent("grandparent"), Reject(), ("grandparent", *LINEAGE), "", "not put to this agent"),
        (Agent("parent"), Approve(remember=Always("Bash")), LINEAGE, "", "remembered"),
        (Agent("parent"), Reject(remember=Always("Bash")), LINEAGE, "", "remembered"),
        (Agent("parent"), Approve(directories=("/",)), LINEAGE, "", "more folders"),
        (Nobody(), Approve(), LINEAGE, "", "nothing can be allowed"),
        (Person(""), Approve(), LINEAGE, "", "has a name"),
    ],
)
async def test_others_may_not(
    approvals: Approvals,
    journal: Journal,
    by: Decider,
    choice: Choice,
    lineage: tuple[str, ...],
    guard: str,
    reason: str,
) -> None:
    asked = await approvals.open(request(lineage=lineage, guard=guard, steps=STEPS))
    with pytest.raises(MayNotDecide, match=reason) as caught:
        await approvals.decide(asked.id, choice, by=by)
    assert caught.value.by == by
    assert await approvals.list(status="pending") == [asked]
    assert await kinds_in(journal) == ["approval.requested"]


async def test_what_only_claims_to_be_a_person_may_not(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    impostor: Any = {"name": "ann"}
    with pytest.raises(MayNotDecide):
        await approvals.decide(asked.id, Approve(), by=impostor)


async def test_a_person_may_decide_what_the_guard_has_seen(approvals: Approvals) -> None:
    asked = await approvals.open(request(guard=GUARD, lineage=LINEAGE))
    assert (await approvals.decide(asked.id, Approve(), by=ANN)).status == "allowed"


async def test_nobody_can_say_no(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    assert (await approvals.decide(asked.id, Reject(), by=Nobody())).status == "denied"


QUESTIONS = {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}


@pytest.mark.parametrize(
    ("kind", "choice", "reason"),
    [
        ("tool", AnswerQuestion({"Which?": "A"}), "by Approve or Reject, not AnswerQuestion"),
        ("tool", ApprovePlan("acceptEdits"), "not ApprovePlan"),
        ("tool", AcceptElicitation({}), "not AcceptElicitation"),
        ("plan", Approve(), "by ApprovePlan or Reject"),
        ("plan", ApprovePlan("plan"), "not 'plan'"),  # type: ignore[arg-type]
        ("question", Approve(), "by AnswerQuestion or Reject"),
        ("question", AnswerQuestion({}), "needs an answer"),
        ("question", AnswerQuestion({"Who?": "A"}), "nobody asked 'Who"),
        ("elicitation", Approve(), "by AcceptElicitation or Reject"),
        ("tool", Reject("x" * 70_000), "at most 65536"),
        ("tool", Approve(remember=Always("Bash(" + "x" * 5_000 + ")")), "at most 4096"),
        ("tool", "yes", "not str"),
    ],
)
async def test_a_wrong_kind_of_decision_is_refused_before_anything_is_stored(
    approvals: Approvals, journal: Journal, kind: Kind, choice: Choice, reason: str
) -> None:
    asked = await approvals.open(request(kind=kind, input=QUESTIONS))
    with pytest.raises(InvalidDecision, match=reason) as caught:
        await approvals.decide(asked.id, choice, by=ANN)
    assert caught.value.approval_id == asked.id
    assert await kinds_in(journal) == ["approval.requested"]
    assert await approvals.list(status="pending") == [asked]


async def test_what_was_shown_must_be_what_is_asked(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    other = await approvals.open(request(input={"command": "rm -rf /"}))
    with pytest.raises(ShownOtherwise, match="look at it again") as caught:
        await approvals.decide(asked.id, Approve(), by=ANN, shown=other.digest)
    assert caught.value.digest == asked.digest
    decided = await approvals.decide(asked.id, Approve(), by=ANN, shown=asked.digest)
    assert decided.decision
    assert decided.decision.shown == asked.digest


async def test_the_digest_is_of_what_is_asked_and_not_of_the_order_of_its_parts(
    approvals: Approvals,
) -> None:
    async def digest(tool: str = "Edit", kind: Kind = "tool", **given: int) -> str:
        return (await approvals.open(request(tool, kind=kind, input=given))).digest

    same = await digest(a=1, b=2)
    assert same == await digest(b=2, a=1)
    assert len({same, await digest(a=1), await digest("Write", a=1, b=2)}) == 3
    assert same != await digest(kind="plan", a=1, b=2)


async def test_the_digest_covers_a_working_directory_that_is_not_the_folder(
    approvals: Approvals,
) -> None:
    async def digest(cwd: str) -> str:
        where = {"folder": "/work", "cwd": cwd}
        asked = msgspec.structs.replace(request("Bash", input={"command": "git status"}), **where)
        return (await approvals.open(asked)).digest

    at_home = await digest("/work")
    assert at_home == await digest("/work")
    assert len({at_home, await digest("/project/v"), await digest("/elsewhere")}) == 3


async def test_a_wrong_rule_is_refused_before_the_decision_is_stored(
    approvals: Approvals, journal: Journal
) -> None:
    asked = await approvals.open(request())
    with pytest.raises(InvalidEntry, match="is no rule"):
        await approvals.decide(asked.id, Approve(remember=Always("Bash(")), by=ANN)
    assert await kinds_in(journal) == ["approval.requested"]


async def test_without_a_policy_nothing_is_remembered(journal: Journal, clock: TurnedClock) -> None:
    async with open_approvals(journal, clock=clock, check=None) as approvals:
        asked = await approvals.open(request())
        with pytest.raises(InvalidDecision, match="no policy"):
            await approvals.decide(asked.id, Approve(remember=ForSession("Bash")), by=ANN)


def test_a_changed_input_is_judged_and_where_it_can_not_be_only_a_person_may() -> None:
    force = InForce(Policy("ask", deny=["Bash(rm:*)"]), GROUND)
    approval = Approval(
        id="a", launch="l", session="s", created=0.0, kind="tool", tool="Bash",
        input={"command": "ls"}, digest="",
    )  # fmt: skip

    def check(by: Decider, command: str | None, policy: InForce | None = force) -> None:
        check_input(
            by, approval, Approve(None if command is None else {"command": command}), policy
        )

    agent = Agent("root")
    for by in (ANN, agent):
        for policy in (force, None):
            check(by, None, policy)
            check(by, "ls", policy)
        check(by, "make")
        with pytest.raises(InvalidDecision, match="denies"):
            check(by, "rm x")
    check(ANN, "make", None)
    with pytest.raises(MayNotDecide, match="its policy is not here"):
        check(agent, "make", None)
    check(ANN, "echo x > .git/config")
    with pytest.raises(MayNotDecide, match="only a person may"):
        check(agent, "echo x > .git/config")
    check_input(agent, approval, Reject(), None)
