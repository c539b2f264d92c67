"""A desk under a policy: remembered rules, the pinned policy, and calls of the past."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bridle.approvals import (
    Agent,
    Always,
    Approval,
    ApprovalError,
    Approvals,
    Approve,
    ApprovePlan,
    ForSession,
    InvalidDecision,
    MayNotDecide,
    Person,
    Policies,
    Reject,
    open_approvals,
    open_desk,
    past_calls,
)
from bridle.approvals.model import ApprovalRequest, Choice, PlanMode, Remember, Step
from bridle.errors import InvalidRule
from bridle.journal import Journal, memory_journal
from bridle.policy import Allowed, Asked, Call, Denied, Ground, InForce, Policy, try_policy
from bridle.protocol.control import CanUseTool
from bridle.protocol.permissions import Allow, Decision

ADA = Person("ada", "test")
GROUND = Ground(folder="/home/ada/app", home="/home/ada")


def force(policy: Policy | None = None) -> InForce:
    return InForce(policy or Policy("ask"), GROUND)


def bash(command: str, number: int = 1) -> CanUseTool:
    return CanUseTool(tool_name="Bash", input={"command": command}, tool_use_id=f"t{number}")


@pytest_asyncio.fixture
async def journal() -> AsyncIterator[Journal]:
    async with memory_journal() as journal:
        yield journal


@pytest_asyncio.fixture
async def approvals(journal: Journal) -> AsyncIterator[Approvals]:
    async with open_approvals(journal) as approvals:
        yield approvals


async def asked(approvals: Approvals, policy: InForce, command: str, choice: Choice) -> Decision:
    desk = await open_desk(approvals, policy, session="s", by=ADA)
    asking = asyncio.ensure_future(desk.ask(bash(command), Asked("no rule")))
    async with asyncio.timeout(10):
        async for changes in approvals.watch():
            for approval in changes:
                if approval.status == "pending":
                    await approvals.decide(approval.id, choice, by=ADA)
                    return await asking
    raise AssertionError


@pytest.mark.parametrize(
    "remember",
    [ForSession("Bash(npm test:*)"), Always("Bash(npm test:*)")],
    ids=["session", "always"],
)
async def test_a_remembered_rule_is_in_force_when_the_agent_is_answered(
    approvals: Approvals, remember: Remember
) -> None:
    policy = force()
    assert isinstance(await asked(approvals, policy, "npm test", Approve(remember=remember)), Allow)
    assert isinstance(policy.judge(Call("Bash", {"command": "npm test -- x"})), Allowed)


async def test_a_rule_that_denies_is_remembered_too(approvals: Approvals) -> None:
    policy = force()
    choice = Reject("never", remember=ForSession("Bash(npm publish:*)"))
    await asked(approvals, policy, "npm publish", choice)
    assert isinstance(policy.judge(Call("Bash", {"command": "npm publish"})), Denied)


async def test_what_is_always_remembered_holds_for_the_next_session(approvals: Approvals) -> None:
    choice = Approve(remember=Always("Bash(npm test:*)"))
    await asked(approvals, force(), "npm test", choice)
    later = force()
    await open_desk(approvals, later, session="another", by=ADA)
    assert isinstance(later.judge(Call("Bash", {"command": "npm test"})), Allowed)


async def test_a_rule_that_is_taken_back_no_longer_holds(approvals: Approvals) -> None:
    policy = force()
    desk = await open_desk(approvals, policy, session="s", by=ADA)
    await asked(approvals, policy, "npm test", Approve(remember=Always("Bash(npm test:*)")))
    (rule,) = await approvals.remembered.always()
    await approvals.remembered.remove(rule.id, ADA)
    assert isinstance(policy.judge(Call("Bash", {"command": "npm test"})), Asked)
    assert desk.session == "s"


async def test_what_is_no_rule_is_refused_before_anything_is_decided(approvals: Approvals) -> None:
    desk = await open_desk(approvals, force(), session="s", by=ADA)
    asking = asyncio.ensure_future(desk.ask(bash("npm test"), Asked("no rule")))
    (approval,) = await _pending(approvals)
    choice = Approve(remember=ForSession("bash(npm)"))
    with pytest.raises(InvalidRule):
        await approvals.decide(approval.id, choice, by=ADA)
    assert (await approvals.get(approval.id)).status == "pending"
    asking.cancel()
    await asyncio.wait([asking])


@pytest.mark.parametrize(
    ("command", "choice", "words"),
    [
        ("npm test", Approve(remember=ForSession("Bash(npm build)")), "would not allow"),
        ("npm test", Approve(remember=Always("Read(/src/**)")), "would not allow"),
        ("npm test && id", Approve(remember=Always("Bash(npm test:*)")), "would not allow"),
        ("npm test", Reject(remember=ForSession("Bash(npm publish:*)")), "would not deny"),
        ("cat ~/.claude/x > .mcp.json", Approve(remember=Always("Bash")), "each time"),
    ],
)
async def test_a_rule_that_would_not_decide_this_very_call_is_refused(
    approvals: Approvals, command: str, choice: Choice, words: str
) -> None:
    policy = force()
    desk = await open_desk(approvals, policy, session="s", by=ADA)
    verdict = policy.judge(Call("Bash", {"command": command}))
    assert isinstance(verdict, Asked)
    asking = asyncio.ensure_future(desk.ask(bash(command), verdict))
    (approval,) = await _pending(approvals)
    with pytest.raises(InvalidDecision, match=words):
        await approvals.decide(approval.id, choice, by=ADA)
    assert (await approvals.get(approval.id)).status == "pending"
    assert await approvals.remembered.always() == []
    asking.cancel()
    await asyncio.wait([asking])


async def test_no_rule_is_offered_for_what_a_person_must_see_each_time(
    approvals: Approvals,
) -> None:
    await asked(approvals, force(), "cp x .mcp.json", Approve())
    (approval,) = await approvals.list()
    assert approval.suggestions == ()


async def _pending(approvals: Approvals) -> list[Approval]:
    async with asyncio.timeout(10):
        async for changes in approvals.watch():
            if pending := [approval for approval in changes if approval.status == "pending"]:
                return pending
    raise AssertionError


async def test_the_approval_offers_rules_that_would_allow_the_call(approvals: Approvals) -> None:
    await asked(approvals, force(), "npm test", Approve())
    (approval,) = await approvals.list()
    assert approval.suggestions == ("Bash(npm test)", "Bash(npm test:*)")


async def test_the_policy_is_pinned_to_the_session_by_a_persons_act(
    approvals: Approvals, journal: Journal
) -> None:
    policies = Policies(journal, approvals.owners, approvals.clock.now)
    policy = Policy("edits", deny=["Bash(rm:*)"])
    await open_desk(approvals, force(policy), session="s", by=ADA)
    await open_desk(approvals, force(policy), session="s", by=ADA)
    applied = await policies.applied("s")
    assert applied
    assert (applied.digest, applied.by) == (policy.digest, ADA)
    assert await policies.text(policy.digest) == policy.text
    events = await journal.log.read("s")
    assert [event.kind for event in events].count("policy.applied") == 1
    await open_desk(approvals, force(Policy("ask")), session="s", by=ADA)
    changed = await policies.applied("s")
    assert changed
    assert changed.digest == Policy("ask").digest


async def test_a_policy_can_be_tried_on_what_the_trail_has(
    approvals: Approvals, journal: Journal
) -> None:
    policy = force()
    await asked(approvals, policy, "npm test", Approve())
    desk = await open_desk(approvals, policy, session="s", by=ADA)
    stored = desk.judged(bash("ls", 2), Allowed("preset ask"))
    assert stored
    await stored
    other = await open_desk(approvals, policy, session="other", by=ADA)
    asking = asyncio.ensure_future(other.ask(bash("left open", 3), Asked("no rule")))
    await _pending(approvals)
    stricter = Policy("ask", deny=["Bash(npm test:*)"], allow=["Bash(ls:*)"]).on(GROUND)
    tried = try_policy(stricter, await past_calls(journal))
    assert str(tried) == "this would have answered 2 of 3; these 1 differently"
    assert tried.differently[0].past.call.input == {"command": "npm test"}
    assert len(await past_calls(journal, ["other"])) == 1
    asking.cancel()
    await asyncio.wait([asking])


async def _to_parent(_: ApprovalRequest) -> tuple[Step, ...]:
    return (Step(to="parent", at=1, until=2),)


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (Approve({"command": "claude --dangerously-skip-permissions"}), "only a person may"),
        (Approve(directories=("/",)), "more folders"),
    ],
)
async def test_an_ancestor_gives_no_more_than_it_may(
    approvals: Approvals, choice: Choice, reason: str
) -> None:
    policy = force()
    approvals.address = _to_parent
    desk = await open_desk(approvals, policy, session="s", by=ADA, lineage=("parent",))
    asking = asyncio.ensure_future(desk.ask(bash("npm test"), Asked("no rule")))
    (approval,) = await _pending(approvals)
    with pytest.raises(MayNotDecide, match=reason):
        await approvals.decide(approval.id, choice, by=Agent("parent"))
    changed = Approve({"command": "npm run tests"})
    await approvals.decide(approval.id, changed, by=Agent("parent"))
    assert isinstance(await asking, Allow)


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
async def test_only_a_person_has_a_plan_go_on_unasked(approvals: Approvals, mode: PlanMode) -> None:
    approvals.address = _to_parent
    desk = await open_desk(approvals, force(), session="s", by=ADA, lineage=("parent",))
    plan = CanUseTool(tool_name="ExitPlanMode", input={"plan": "p"}, tool_use_id="t")
    asking = asyncio.ensure_future(desk.ask(plan, Asked("a plan")))
    (approval,) = await _pending(approvals)
    with pytest.raises(MayNotDecide, match="only a person may have a plan go on"):
        await approvals.decide(approval.id, ApprovePlan(mode), by=Agent("parent"))
    await approvals.decide(approval.id, ApprovePlan("default"), by=Agent("parent"))
    assert isinstance(await asking, Allow)


async def test_a_changed_input_that_a_rule_denies_is_refused_before_it_is_stored(
    approvals: Approvals,
) -> None:
    policy = force(Policy("ask", deny=["Bash(rm:*)"]))
    desk = await open_desk(approvals, policy, session="s", by=ADA)
    asking = asyncio.ensure_future(desk.ask(bash("npm test"), Asked("no rule")))
    (approval,) = await _pending(approvals)
    with pytest.raises(InvalidDecision, match=r"Bash\(rm:\*\)"):
        await approvals.decide(approval.id, Approve({"command": "rm x"}), by=ADA)
    assert (await approvals.get(approval.id)).status == "pending"
    asking.cancel()
    await asyncio.wait([asking])


async def test_another_policy_needs_a_person(approvals: Approvals) -> None:
    with pytest.raises(ApprovalError, match="under no policy"):
        await open_desk(approvals, force(), session="s")
    await open_desk(approvals, force(), session="s", by=ADA)
    await open_desk(approvals, force(), session="s")
    with pytest.raises(ApprovalError, match="a person must put it"):
        await open_desk(approvals, force(Policy("autonomous")), session="s")


async def test_a_rule_to_deny_survives_that_one_to_allow_is_taken_back(
    approvals: Approvals,
) -> None:
    policy = force()
    policy.remember("Bash(make:*)")
    policy.remember("Bash(make:*)", "deny")
    policy.forget("Bash(make:*)")
    assert isinstance(policy.judge(Call("Bash", {"command": "make"})), Denied)


async def test_a_rule_that_is_remembered_twice_is_taken_back_once(approvals: Approvals) -> None:
    policy = force(Policy("autonomous"))
    desk = await open_desk(approvals, policy, session="s", by=ADA)
    both: tuple[Remember, ...] = (Always("Bash(rm:*)"), ForSession("Bash(rm:*)"))
    for number, remember in enumerate(both):
        choice = Reject("never", remember=remember)
        await asked(approvals, policy, f"rm {number}", choice)
    (rule,) = await approvals.remembered.of_session("s")
    await approvals.remembered.remove_of_session("s", rule.id, ADA)
    assert isinstance(policy.judge(Call("Bash", {"command": "rm x"})), Denied)
    (rule,) = await approvals.remembered.always()
    await approvals.remembered.remove(rule.id, ADA)
    assert isinstance(policy.judge(Call("Bash", {"command": "rm x"})), Allowed)
    assert desk.session == "s"  # it is held: what is taken back is told to desks that are there


async def test_a_rule_for_a_folder_needs_its_whole_path(approvals: Approvals) -> None:
    desk = await open_desk(approvals, force(), session="s", by=ADA)
    asking = asyncio.ensure_future(desk.ask(bash("npm test"), Asked("no rule")))
    (approval,) = await _pending(approvals)
    choice = Approve(remember=Always("Bash(npm test)", "app"))
    with pytest.raises(InvalidDecision, match="absolute"):
        await approvals.decide(approval.id, choice, by=ADA)
    asking.cancel()
    await asyncio.wait([asking])


async def test_what_an_earlier_run_has_asked_is_no_longer_pending(approvals: Approvals) -> None:
    first = await open_desk(approvals, force(), session="s", by=ADA, launch="one")
    first.detach()
    asking = asyncio.ensure_future(first.ask(bash("npm test"), Asked("no rule")))
    (approval,) = await _pending(approvals)
    await open_desk(approvals, force(), session="s", launch="one")
    assert (await approvals.get(approval.id)).status == "pending"
    await open_desk(approvals, force(), session="s", launch="two")
    ended = await asyncio.wait_for(approvals.wait(approval.id), 10)
    assert ended.status == "cancelled"
    await asyncio.wait([asking])


async def test_a_desk_needs_a_policy_that_is_in_force(approvals: Approvals) -> None:
    with pytest.raises(TypeError, match="in_force"):
        await open_desk(approvals, Policy(), session="s", by=ADA)  # type: ignore[arg-type]


async def test_the_policy_of_a_run_that_has_ended_is_let_go(approvals: Approvals) -> None:
    first = await open_desk(approvals, force(), session="s", by=ADA)
    later = await open_desk(approvals, force(), session="s")
    first.ended("gone")
    assert "s" in approvals.policies
    later.ended("gone")
    assert approvals.policies == {}
