"""An approval as a person sees it in a terminal: the command, the diff, the plan, the questions.

Owns the text, not the keys. What the agent wrote is shown with its control characters made visible:
it must not be able to draw its own approval.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from .compared import compared
from .fold import directory_of
from .model import Agent, Approval, Cancelled, Decided, Once, Person, Step

MAX_LINES = 60
NO_NEWLINE = "\\ no newline at the end"

#: Letters that fill space and show nothing, and those that only choose how another one looks.
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0]"
)
#: Controls, formats, halves, private letters, separators of lines.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))

Paint = Callable[[str, str], str]
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def plain(text: str, _: str) -> str:
    return text


def coloured(text: str, colour: str) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def visible(text: str) -> str:
    """Text as it is, with what can't be seen written out: all that moves a cursor, hides text or
    turns its direction round. Lines stay lines."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(_written_out(char) for char in text)


def on_a_line(text: str) -> str:
    """The same, in one line: what is not the body of an approval can't look like one."""
    return visible(text).replace("\n", "\\n")


def _written_out(char: str) -> str:
    if char in "\n\t" or not (unicodedata.category(char) in _UNSEEN or _FILLERS.match(char)):
        return char
    return f"\\u{ord(char):04x}"


def show(
    approval: Approval,
    paint: Paint = plain,
    before: str | None = None,
    *,
    is_whole: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What whoever decides must see. `before` is what a file that is to be written holds.

    What is long is cut, and says so, unless `is_whole`. `names` are those of sessions, by id.
    """
    lines = [paint(on_a_line(_title(approval)), "bold")]
    if approval.guard:
        lines.append(paint(f"! Only a person may decide this: {on_a_line(approval.guard)}", "red"))
    if approval.reason:
        lines.append(paint(on_a_line(approval.reason), "dim"))
    if directory := directory_of(approval):
        lines.append(paint(f"- working directory: {on_a_line(directory)}", "yellow"))
    lines += steps_of(approval, paint, names)
    lines += [paint(f"- {on_a_line(note)}", "yellow") for note in approval.notes]
    if approval.blocked_path:
        lines.append(
            paint(f"- outside of its folders: {on_a_line(approval.blocked_path)}", "yellow")
        )
    body = body_of(approval, paint, before)
    lines += ["", *(body if is_whole else _cut(body))]
    return "\n".join(lines)


def steps_of(
    approval: Approval, paint: Paint = plain, names: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Whom it was put to until now, and why it did not stay there. What an agent says of that is
    marked as its words."""
    lines = []
    for step in approval.steps:
        for passed in step.over:
            who = _session(passed.session, names)
            lines.append(paint(f"- passed over {who}: {on_a_line(passed.why)}", "dim"))
        whom = _session(step.to, names) if step.to else "people"
        lines.append(paint(f"- put to {whom}{_until(step)}", "dim"))
        if step.by:
            who = _session(step.by, names)
            lines[-1] += paint(f": passed on by {who}", "dim")
            said = f'  the agent of {who} says: "{on_a_line(step.why)}"'
            lines += [paint(said, "yellow")] if step.why else []
        elif step.why:
            lines[-1] += paint(f": {on_a_line(step.why)}", "dim")
    return lines


def status_of(approval: Approval, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """How it stands; of one that has ended, also by whom, why, and what was remembered."""
    match approval.ending:
        case Decided(by=Agent(session), choice=choice):
            by = f"the agent of {_session(session, names)}"
        case Decided(by=Person(name), choice=choice):
            by = name
        case Cancelled(cause=cause, words=words):
            return f"{approval.status}: {words or cause}"
        case _:
            return approval.status
    said = f": {choice.message}" if choice.message else ""
    remember = getattr(choice, "remember", Once())
    rule = "" if isinstance(remember, Once) else f" (remembered: {remember.rule})"
    return on_a_line(f"{approval.status} by {by}{rule}{said}")


def _session(session: str, names: Mapping[str, str]) -> str:
    return on_a_line(f"session {names.get(session, session)}")


def _until(step: Step) -> str:
    if step.until is None:
        return ""
    return f" until {time.strftime('%H:%M:%S', time.localtime(step.until))}"


def body_of(approval: Approval, paint: Paint = plain, before: str | None = None) -> list[str]:
    """The call itself. What is not of the form that we know is shown as it is."""
    try:
        return list(_body(approval, paint, before))
    except (TypeError, ValueError, AttributeError, LookupError):
        return list(_rest(approval.input))


def is_long(approval: Approval, before: str | None = None) -> bool:
    """Whether not all of it is shown at first."""
    return len(body_of(approval, before=before)) > MAX_LINES


def _title(approval: Approval) -> str:
    who = (
        f"{approval.session} (subagent {approval.agent_id})"
        if approval.agent_id
        else approval.session
    )
    match approval.kind:
        case "plan":
            return f"{who} has a plan"
        case "question":
            return f"{who} has a question"
        case "elicitation":
            return f"{approval.tool} asks {who}'s user"
        case "tool":
            return f"{who} wants to use {approval.tool}"


def _body(approval: Approval, paint: Paint, before: str | None) -> Iterator[str]:
    given = approval.input
    match approval.kind, approval.tool:
        case "plan", _:
            yield from _text(given.get("plan") or "(the CLI did not tell the plan)")
        case "question", _:
            yield from _questions(given.get("questions"))
        case _, "Bash":
            yield from (paint(f"$ {line}", "cyan") for line in _text(given.get("command")))
            yield from _rest(given, "command")
        case _, "Edit":
            yield from _diff(
                given.get("file_path"), given.get("old_string"), given.get("new_string"), paint
            )
            yield from _rest(given, "file_path", "old_string", "new_string")
        case _, "MultiEdit":
            for edit in given["edits"]:
                yield from _diff(
                    given.get("file_path"), edit["old_string"], edit["new_string"], paint
                )
        case "elicitation", _:
            yield from _text(given.get("message"))
            yield from _rest(given, "message", "requested_schema")
        case _, "Write":
            yield from _diff(given.get("file_path"), before or "", given.get("content"), paint)
            yield from _rest(given, "file_path", "content")
        case _:
            yield from _rest(given)


def _text(text: object) -> list[str]:
    return visible(str(text)).split("\n")


def _rest(given: dict[str, Any], *without: str) -> Iterator[str]:
    for key, value in given.items():
        if key not in without:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            first, *more = _text(text)
            yield f"{on_a_line(key)}: {first}"
            yield from (f"    {line}" for line in more)


def _diff(path: object, old: object, new: object, paint: Paint) -> Iterator[str]:
    name = on_a_line(str(path))
    was, becomes = str(old or ""), str(new or "")
    # Where neither has one, it is a piece of a file, and nothing changes at its end.
    before = _file_lines(was, is_told=becomes.endswith("\n"))
    after = _file_lines(becomes, is_told=not was or was.endswith("\n"))
    found = False
    for line in compared(before, after, name, around=3):
        found = True
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        for part in line.split("\n"):
            yield paint(part, colour) if colour else part
    if not found:
        yield f"{name} (nothing changes)"


def _file_lines(text: str, *, is_told: bool) -> list[str]:
    """A newline ends a line, and begins none; `is_told`: say so where the last line has none."""
    *lines, last = _text(text)
    if not last:
        return lines
    return [*lines, f"{last}\n{NO_NEWLINE}" if is_told else last]


def _questions(questions: object) -> Iterator[str]:
    for question in questions_of(questions):
        yield from _text(question.get("question"))
        for number, option in enumerate(options_of(question), 1):
            yield f"  {number}) {on_a_line(option)}"


def questions_of(questions: object) -> list[dict[str, Any]]:
    if not isinstance(questions, list) or not all(isinstance(one, dict) for one in questions):
        raise TypeError("no questions")
    return questions


def options_of(question: dict[str, Any]) -> list[str]:
    """The labels of a question's options."""
    options = question.get("options")
    every = options if isinstance(options, list) else []
    found = [one.get("label") for one in every if isinstance(one, dict)]
    return [str(label) for label in found if label]


def _cut(shown: list[str]) -> list[str]:
    if len(shown) <= MAX_LINES:
        return shown
    more = len(shown) - MAX_LINES
    return [*shown[:MAX_LINES], f"… {more} more lines: press v to see all"]
