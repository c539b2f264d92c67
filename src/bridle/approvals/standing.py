"""Who may decide, and what can be decided. Pure checks, made before anything is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, get_args

from ..policy.force import InForce
from ..policy.rules import parse_rule
from ..policy.suggest import covers
from ..policy.verdicts import Asked, Behavior, Call, Denied
from .errors import InvalidDecision, MayNotDecide, ShownOtherwise
from .model import (
    CHOICES,
    Agent,
    Always,
    AnswerQuestion,
    Approval,
    Approve,
    ApprovePlan,
    Choice,
    Decider,
    ForSession,
    Nobody,
    Once,
    Person,
    PlanMode,
    Reject,
)

#: Raises where a text is no rule, with the reason.
RuleCheck: TypeAlias = Callable[[str], None]

MAX_MESSAGE = 64 * 1024
MAX_RULE = 4 * 1024


def is_rule(text: str) -> None:
    """Raises InvalidRule where it is none of the policy's."""
    parse_rule(text, "allow")


def check_standing(by: Decider, approval: Approval, choice: Choice) -> None:
    """A person may. An agent may for those below it; nobody may for themselves."""
    what = f"approval {approval.id}"
    match by:
        case Person(name):
            if not name:
                raise MayNotDecide(by, what, "a person has a name")
        case Nobody():
            if not isinstance(choice, Reject):
                raise MayNotDecide(by, what, "where nobody is, nothing can be allowed")
        case Agent(session):
            _check_agent(by, session, approval, choice)
        case _:
            raise MayNotDecide(by, what, "that is neither a person nor an agent")


def _check_agent(by: Agent, session: str, approval: Approval, choice: Choice) -> None:
    what = f"approval {approval.id}"
    if session == approval.session:
        raise MayNotDecide(by, what, "nobody approves themselves")
    if session not in approval.lineage:
        raise MayNotDecide(by, what, "it is no ancestor of the session that asks")
    if approval.guard:
        raise MayNotDecide(by, what, f"only a person may ({approval.guard})")
    if not approval.was_put_to(session):
        raise MayNotDecide(by, what, "it was not put to this agent; others are asked")
    if isinstance(getattr(choice, "remember", Once()), Always):
        raise MayNotDecide(by, what, "only a person may have a rule remembered for always")
    if getattr(choice, "directories", ()):
        raise MayNotDecide(by, what, "only a person may give an agent more folders")
    if isinstance(choice, ApprovePlan) and choice.mode != "default":
        raise MayNotDecide(by, what, f"only a person may have a plan go on in {choice.mode}")


def check_input(by: Decider, approval: Approval, choice: Choice, policy: InForce | None) -> None:
    """A changed input is another call: what a rule denies stays denied, and what is guarded is for
    a person."""
    if not isinstance(choice, Approve) or choice.input is None or choice.input == approval.input:
        return
    if policy is None:
        if not isinstance(by, Person):
            what = f"approval {approval.id}"
            raise MayNotDecide(by, what, "its policy is not here to judge a changed input")
        return
    verdict = policy.judge(Call(approval.tool, choice.input, cwd=approval.cwd))
    if isinstance(verdict, Denied):
        raise InvalidDecision(approval.id, f"with this input {verdict.because}")
    if isinstance(verdict, Asked) and verdict.guard and not isinstance(by, Person):
        raise MayNotDecide(by, f"approval {approval.id}", f"only a person may ({verdict.guard})")


def only_a_person(by: Decider, what: str) -> None:
    if not isinstance(by, Person) or not by.name:
        raise MayNotDecide(by, what, "only a person may")


def check_choice(approval: Approval, choice: Choice, shown: str | None) -> None:
    """That it answers what is asked, and what was shown."""
    if shown is not None and shown != approval.digest:
        raise ShownOtherwise(approval, shown)
    fitting = CHOICES[approval.kind]
    if not isinstance(choice, fitting):
        names = " or ".join(kind.__name__ for kind in fitting)
        given = type(choice).__name__
        raise InvalidDecision(approval.id, f"a {approval.kind} is decided by {names}, not {given}")
    if len(choice.message) > MAX_MESSAGE:
        raise InvalidDecision(approval.id, f"a message has at most {MAX_MESSAGE} characters")
    match choice:
        case ApprovePlan(mode=mode) if mode not in get_args(PlanMode):
            modes = ", ".join(get_args(PlanMode))
            raise InvalidDecision(approval.id, f"a plan goes on in {modes}, not {mode!r}")
        case AnswerQuestion():
            _check_answers(approval, choice)
        case _:
            pass


def _check_answers(approval: Approval, choice: AnswerQuestion) -> None:
    if not choice.answers:
        raise InvalidDecision(approval.id, "a question needs an answer")
    asked = [] if approval.is_cut else _questions(approval)
    unasked = [question for question in choice.answers if asked and question not in asked]
    if unasked:
        raise InvalidDecision(approval.id, f"nobody asked {unasked[0][:200]!r}")


def _questions(approval: Approval) -> list[str]:
    """The texts of what is asked; none where the CLI asks in a way that we do not know."""
    asked = approval.input.get("questions")
    if not isinstance(asked, list):
        return []
    texts = [question.get("question") for question in asked if isinstance(question, dict)]
    return [text for text in texts if isinstance(text, str)]


def check_rule(
    approval: Approval, choice: Choice, check: RuleCheck | None, policy: InForce | None
) -> None:
    """That what is to be remembered is a rule, and decides this very call."""
    remember = getattr(choice, "remember", Once())
    if not isinstance(remember, ForSession | Always):
        return
    if check is None:
        raise InvalidDecision(approval.id, "nothing can be remembered: there is no policy here")
    if isinstance(remember, Always) and remember.folder and not remember.folder.startswith("/"):
        raise InvalidDecision(approval.id, f"{remember.folder!r} is no absolute path of a folder")
    if len(remember.rule) > MAX_RULE:
        raise InvalidDecision(approval.id, f"a rule has at most {MAX_RULE} characters")
    check(remember.rule)
    if policy is not None and not approval.is_cut:
        _check_covers(approval, choice, remember.rule, policy)


def _check_covers(approval: Approval, choice: Choice, rule: str, policy: InForce) -> None:
    """One that says nothing to this call is a slip: the same would be asked again."""
    given = getattr(choice, "input", None)
    call = Call(approval.tool, given or approval.input, cwd=approval.cwd)
    behavior: Behavior = "deny" if isinstance(choice, Reject) else "allow"
    if covers(rule, behavior, call, policy.ground, policy.policy):
        return
    if behavior == "allow" and approval.guard:
        reason = f"a person is asked about this each time ({approval.guard}): decide it without"
    else:
        near = [one for one in approval.suggestions if behavior == "allow"][:1]
        hint = f"; {near[0]} would" if near else ""
        reason = f"{rule} would not {behavior} this call the next time{hint}"
    raise InvalidDecision(approval.id, reason)
