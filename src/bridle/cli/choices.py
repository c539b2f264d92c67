"""What somebody says with `approve` and `deny`, as the choice that fits what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import Misused

if TYPE_CHECKING:
    from ..approvals.model import Approval, PlanMode
    from ..server.shapes.decisions import Choice, Reject, Remember


@dataclass(frozen=True)
class Answers:
    """All that can be said of it. What does not fit what is asked is refused, not dropped."""

    message: str = ""
    input: str | None = None
    mode: PlanMode = "default"
    plan: str | None = None
    answers: tuple[str, ...] = ()
    session_rule: str | None = None
    always_rule: str | None = None
    is_everywhere: bool = False

    def check_only(self, kind: str, *names: str) -> None:
        """Refuse what says nothing to an approval of this kind."""
        blank = Answers()
        for name, flag in _FLAGS.items():
            if name not in names and getattr(self, name) != getattr(blank, name):
                raise Misused(f"{flag} says nothing to a {kind}", "leave it out")


_FLAGS = {
    "input": "--input",
    "mode": "--mode",
    "plan": "--plan",
    "answers": "--answer",
    "session_rule": "--session",
    "always_rule": "--always",
}


def choice_for(approval: Approval, said: Answers) -> Choice:
    """A yes, in the form that this approval takes."""
    from ..server.shapes.decisions import AcceptElicitation, AnswerQuestion, Approve, ApprovePlan

    match approval.kind:
        case "tool":
            said.check_only("tool call", "input", "session_rule", "always_rule")
            return Approve(
                input=_json(said.input), message=said.message, remember=remember(approval, said)
            )
        case "plan":
            said.check_only("plan", "mode", "plan")
            return ApprovePlan(mode=said.mode, plan=said.plan, message=said.message)
        case "question":
            said.check_only("question", "answers")
            return AnswerQuestion(answers=answers_to(approval, said), message=said.message)
        case "elicitation":
            said.check_only("request of a server", "input", "answers")
            pairs = dict(_pair(one) for one in said.answers)
            return AcceptElicitation(
                content=(_json(said.input) or {}) | pairs, message=said.message
            )


def rejection(approval: Approval, said: Answers, *, interrupt: bool) -> Reject:
    from ..server.shapes.decisions import Reject

    return Reject(message=said.message, interrupt=interrupt, remember=remember(approval, said))


def remember(approval: Approval, said: Answers) -> Remember:
    from ..server.shapes.decisions import Always, ForSession, Once

    if said.session_rule and said.always_rule:
        raise Misused("--session and --always are two things", "give one of them")
    if said.is_everywhere and not said.always_rule:
        raise Misused("--everywhere goes with --always RULE")
    if rule := said.session_rule or said.always_rule:
        _check_rule(approval, rule)
    if said.session_rule:
        return ForSession(rule=said.session_rule)
    if said.always_rule:
        folder = "" if said.is_everywhere else approval.folder
        return Always(rule=said.always_rule, folder=folder)
    return Once()


def _check_rule(approval: Approval, rule: str) -> None:
    """One that says nothing to this very call is a slip: it would be asked again all the same."""
    from ..errors import InvalidRule
    from ..policy import parse_rule

    if rule in approval.suggestions:
        return
    try:
        is_for = parse_rule(rule, "allow").is_for(approval.tool)
    except InvalidRule as error:
        raise Misused(str(error), "docs/policies.md has the language") from error
    if not is_for:
        near = approval.suggestions[0] if approval.suggestions else approval.tool
        raise Misused(
            f"{rule} says nothing to this call, which is of {approval.tool}", f"say {near!r}"
        )


def told_rule(approval: Approval, said: Answers, behavior: str) -> str:
    """What holds from now on; nothing, if it was said for this once."""
    if said.session_rule:
        return f"from now on: {behavior} {said.session_rule} in this session"
    if said.always_rule:
        where = "everywhere" if said.is_everywhere else f"in {approval.folder}"
        return f"from now on: {behavior} {said.always_rule} {where}"
    return ""


def answers_to(approval: Approval, said: Answers) -> dict[str, str]:
    """For the text of each question what was chosen."""
    from ..approvals.shown import options_of, questions_of

    questions = {
        str(one.get("question")): options_of(one)
        for one in questions_of(approval.input.get("questions"))
    }
    if len(questions) == 1 and len(said.answers) == 1:
        (text,) = questions
        return {text: _option(said.answers[0], questions[text])}
    found = {}
    for one in said.answers:
        start, answer = _pair(one)
        matching = [text for text in questions if text.lower().startswith(start.lower())]
        if len(matching) != 1:
            raise Misused(f"--answer {one!r}: no question begins with {start!r}", _ask(questions))
        found[matching[0]] = _option(answer, questions[matching[0]])
    missing = [text for text in questions if text not in found]
    if missing:
        raise Misused(f"not answered: {missing[0]}", _ask(questions))
    return found


def _ask(questions: dict[str, list[str]]) -> str:
    options = next(iter(questions.values()), [])
    if len(questions) > 1:
        return "give --answer QUESTION=ANSWER for each"
    return f"give --answer with one of: {', '.join(options)}" if options else "give --answer"


def _option(answer: str, options: list[str]) -> str:
    """An option by its name or its number; else words of one's own."""
    for option in options:
        if option.lower() == answer.lower():
            return option
    if answer.isdigit() and 1 <= int(answer) <= len(options):
        return options[int(answer) - 1]
    return answer


def _pair(given: str) -> tuple[str, str]:
    name, is_there, value = given.partition("=")
    if not is_there:
        raise Misused(f"--answer {given!r} says not to what", "write --answer QUESTION=ANSWER")
    return name, value


def _json(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    import msgspec

    try:
        return msgspec.json.decode(given, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Misused(f"--input is no JSON object: {error}") from error
