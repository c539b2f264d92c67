"""Approvals: what agents ask, why, and what people decide; and the rules that they had remembered.

Agents see what they ask themselves and what those below them ask; they decide nothing here.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from ...approvals.errors import UnknownApproval
from ...approvals.model import Always, Approval, Choice, ForSession, Status
from ...approvals.remember import RememberedRule
from ...errors import NotPossible, SupervisorError, UnknownSession
from ...policy.verdicts import Call
from ..access import Caller, HttpRequest, takes
from ..house import House, TheHouse
from ..shapes.approvals import Candidate, Explanation, Scope
from ..shapes.decisions import Deciding
from ..shapes.pages import Page
from ..shown import Reveal, shown
from .paging import LIMIT, Mark, PageAfter, PageLimit, page_of


@get("/approvals", opt=takes("person", "reader", "agent"))
async def list_approvals(
    request: HttpRequest,
    house: TheHouse,
    status: Annotated[Status | None, QueryParameter(description="Only those that are so.")] = None,
    session: Annotated[str, QueryParameter(description="What this session has asked.")] = "",
    after: PageAfter = "",
    limit: PageLimit = LIMIT,
    reveal: Reveal = False,
) -> Response[Page[Approval]]:
    """The oldest first. Large inputs are cut: `is_cut` says so, and the approval itself has all."""
    record = house.supervisor.get(session) if session else None
    if record:
        request.user.check_sees(record)
    found = await house.supervisor.approvals.list(
        status=status, session=record.id if record else None
    )
    seen = [approval for approval in found if _sees(house, request.user, approval)]
    page = page_of(sorted(seen, key=_mark), _mark, after, limit)
    return shown(house, request.user, reveal, page)


def _mark(approval: Approval) -> Mark:
    return approval.created, approval.id


def _sees(house: House, caller: Caller, approval: Approval) -> bool:
    """By the lineage that its session has now: it may have been handed over."""
    if not caller.is_agent:
        return True
    try:
        return caller.sees(house.supervisor.get(approval.session))
    except UnknownSession:
        return False


async def _approval(house: House, caller: Caller, approval: str) -> Approval:
    found = await house.supervisor.approvals.get(approval)
    if not _sees(house, caller, found):
        raise UnknownApproval(approval)
    return found


@get("/approvals/{approval:str}", opt=takes("person", "reader", "agent"))
async def get_approval(
    request: HttpRequest, house: TheHouse, approval: FromPath[str], reveal: Reveal = False
) -> Response[Approval]:
    """All of it, with its whole input. A person who is to decide it sees also what is secret."""
    found = await _approval(house, request.user, approval)
    reveal = reveal or request.user.role == "person"
    return shown(house, request.user, reveal, found)


@post("/approvals/{approval:str}/decide", status_code=200)
async def decide(
    request: HttpRequest, house: TheHouse, approval: FromPath[str], data: JSONBody[Deciding]
) -> Response[Approval]:
    """Decide it, if nobody has. The first wins: others are told who that was."""
    # The choices of the API are stricter types of their own: stored are those of `approvals`.
    choice = msgspec.convert(msgspec.to_builtins(data.choice), Choice)
    decided = await house.supervisor.approvals.decide(
        approval, choice, by=request.user.person, shown=data.shown
    )
    return shown(house, request.user, True, decided)


# --- why


@get("/approvals/{approval:str}/explain", opt=takes("person", "reader", "agent"))
async def explain(
    request: HttpRequest, house: TheHouse, approval: FromPath[str], reveal: Reveal = False
) -> Response[Explanation]:
    """Why it is asked, and the rules that would allow the same the next time."""
    found = await _approval(house, request.user, approval)
    explanation = Explanation(
        text=_why(house, found),
        reason=found.reason,
        rule=found.rule,
        source=found.source,
        guard=found.guard,
        notes=found.notes,
        always=[_candidate(house, request.user, found, rule) for rule in found.suggestions],
    )
    reveal = reveal or request.user.role == "person"
    return shown(house, request.user, reveal, explanation)


def _why(house: House, approval: Approval) -> str:
    """By the policy that is in force now, if the agent runs; else as it was asked."""
    asked = f"Asked: {approval.reason}" if approval.reason else "Asked."
    if approval.kind == "elicitation" or approval.status != "pending":
        return asked
    try:
        policy = house.supervisor.live(approval.session).policy
    except SupervisorError:
        return asked
    call = Call(approval.tool, approval.input, cwd=approval.cwd)
    return policy.explain(call) if policy else asked


def _candidate(house: House, caller: Caller, approval: Approval, rule: str) -> Candidate:
    folder = approval.folder
    everywhere = Always(rule)
    scopes = [
        Scope(
            where="session",
            words="this session, as long as it is there",
            sessions=1,
            remember=ForSession(rule),
        ),
        Scope(
            where="everywhere",
            words="all sessions, in every folder",
            sessions=_covered(house, caller, everywhere),
            remember=everywhere,
        ),
    ]
    if folder:
        inside = Always(rule, folder)
        words = f"all sessions that work in {folder} or below it"
        covered = _covered(house, caller, inside)
        scope = Scope(where="folder", words=words, sessions=covered, remember=inside)
        scopes.insert(1, scope)
    return Candidate(rule=rule, scopes=scopes)


def _covered(house: House, caller: Caller, rule: Always) -> int:
    """How many sessions that the caller sees."""
    above = rule.folder.rstrip("/")
    records = house.supervisor.list(caller.sees)
    return sum(not above or f"{record.folder}/".startswith(f"{above}/") for record in records)


# --- what is remembered


@get("/rules", opt=takes("person", "reader"))
async def list_rules(
    request: HttpRequest,
    house: TheHouse,
    session: Annotated[str, QueryParameter(description="Those of this session alone.")] = "",
    reveal: Reveal = False,
) -> Response[list[RememberedRule]]:
    """The rules that people had remembered and that are in force, for always; or of a session."""
    remembered = house.supervisor.approvals.remembered
    if session:
        found = await remembered.of_session(house.supervisor.get(session).id)
    else:
        found = await remembered.always()
    rules = sorted(found, key=lambda rule: (rule.at, rule.id))
    return shown(house, request.user, reveal, rules)


@delete("/rules/{rule:str}")
async def delete_rule(
    request: HttpRequest,
    house: TheHouse,
    rule: FromPath[str],
    session: Annotated[str, QueryParameter(description="Whose rule it is, if a session's.")] = "",
) -> None:
    """No longer have a rule: from now on it is asked again."""
    remembered, by = house.supervisor.approvals.remembered, request.user.person
    if not session:
        await remembered.remove(rule, by)
        return
    record = house.supervisor.get(session)
    if house.supervisor.is_asleep:
        raise NotPossible("forget its rule", record.state, "start a server with `bridle up` first")
    await remembered.remove_of_session(record.id, rule, by)


HANDLERS = [list_approvals, get_approval, decide, explain, list_rules, delete_rule]
