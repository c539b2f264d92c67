"""A session's desk and its policy, put together: what is remembered is in force, now and later.

Owns the putting together, and nothing that is put. That a session is under a policy is a person's
recorded act, and pinned by the policy's hash.
"""

from __future__ import annotations

from ..ids import new_token
from ..policy.ceilings import REMEMBERED, REMEMBERED_BY_AGENT
from ..policy.force import InForce
from ..policy.suggest import suggest
from ..policy.verdicts import Call
from ..protocol.content import suggestions
from ..protocol.control import CanUseTool
from .desk import Desk
from .errors import ApprovalError
from .model import Person
from .policies import Policies
from .remember import RememberedRule
from .service import Approvals


async def open_desk(
    approvals: Approvals,
    policy: InForce,
    *,
    session: str,
    by: Person | None = None,
    launch: str = "",
    lineage: tuple[str, ...] = (),
    expires_in: float | None = None,
) -> Desk:
    """The desk of a session under this policy, which `by` has chosen for it; without `by` it must
    be the one that it is under already.

    What is remembered holds at once, and from now on before the agent is answered. `launch` names
    this run of the agent: give the same again to go on with what it has asked.
    """
    await _pin(approvals, policy, session, by)
    return await seated(
        approvals, policy, session=session, launch=launch, lineage=lineage, expires_in=expires_in
    )


async def seated(
    approvals: Approvals,
    policy: InForce,
    *,
    session: str,
    launch: str = "",
    lineage: tuple[str, ...] = (),
    expires_in: float | None = None,
    has_rules: bool = True,
) -> Desk:
    """The same, for a caller who knows that the session is under this policy, and perhaps that
    nothing was ever remembered for it alone."""

    def apply(rule: RememberedRule) -> None:
        change = policy.forget if rule.removed else policy.remember
        change(rule.rule, rule.behavior, _source(rule))

    def candidates(request: CanUseTool) -> list[str]:
        call = Call(request.tool_name, request.input)
        return suggest(call, policy.ground, suggestions(request), policy.policy)

    desk = Desk(
        approvals,
        session=session,
        launch=launch or new_token(8),
        lineage=lineage,
        folder=policy.ground.folder,
        suggest=candidates,
        apply=apply,
        expires_in=expires_in,
        policy=policy,
    )
    for rule in await desk.rules(own=has_rules):
        apply(rule)
    await _leave_behind(approvals, session, desk.launch)
    return desk


def _source(rule: RememberedRule) -> str:
    """What an agent had remembered never gets past those above the session."""
    who = REMEMBERED if isinstance(rule.by, Person) else REMEMBERED_BY_AGENT
    return f"{who} {rule.id}"


async def _leave_behind(approvals: Approvals, session: str, launch: str) -> None:
    """What an earlier run of the agent has asked reaches nobody any more."""
    for approval in await approvals.list(status="pending", session=session):
        if approval.launch != launch:
            approvals.withdraw(approval.id, "process ended", "the agent was started again")


async def _pin(approvals: Approvals, policy: InForce, session: str, by: Person | None) -> None:
    """Record who has put the session under this policy, unless it is under it already."""
    if not isinstance(policy, InForce):
        raise TypeError(f"a desk needs a policy in force (bridle.in_force), not {policy!r}")
    policies = Policies(approvals.journal, approvals.owners, approvals.clock.now)
    pinned, wanted = await policies.applied(session), policy.policy
    if pinned is None or pinned.digest != wanted.digest:
        if by is None:
            under = f"policy {pinned.digest[:12]}…" if pinned else "no policy"
            reason = f"a person must put it under {wanted.digest[:12]}… (by=Person(…))"
            raise ApprovalError(f"session {session} is under {under}: {reason}")
        sources = dict.fromkeys(rule.source for rule in wanted.rules if rule.source)
        source = ", ".join(sources) or f"preset {wanted.preset}"
        await policies.apply(session, wanted.text, source=source, by=by)
