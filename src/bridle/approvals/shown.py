"""An approval as a person sees it in a terminal: the command, the diff, the plan, the questions.

Owns the text, not the keys. What the agent wrote is shown with its control characters made visible:
it must not be able to draw its own approval.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from .model import Approval

MAX_LINES = 60

#: All that moves a cursor, hides text or turns its direction round.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)

Paint = Callable[[str, str], str]
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def plain(text: str, _: str) -> str:
    return text


def coloured(text: str, colour: str) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def visible(text: str) -> str:
    """Text as it is, with what can't be seen written out."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", text.replace("\r\n", "\n"))


def show(
    approval: Approval, paint: Paint = plain, before: str | None = None, *, is_whole: bool = False
) -> str:
    """What whoever decides must see. `before` is what a file that is to be written holds.

    What is long is cut, and says so, unless `is_whole`.
    """
    lines = [paint(visible(_title(approval)), "bold")]
    if approval.guard:
        lines.append(paint(f"! Only a person may decide this: {visible(approval.guard)}", "red"))
    if approval.reason:
        lines.append(paint(visible(approval.reason), "dim"))
    lines += [paint(f"- {visible(note)}", "yellow") for note in approval.notes]
    if approval.blocked_path:
        lines.append(paint(f"- outside of its folders: {visible(approval.blocked_path)}", "yellow"))
    body = list(_body(approval, paint, before))
    lines += ["", *(body if is_whole else _cut(body))]
    return "\n".join(lines)


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
            for edit in given.get("edits") or ():
                if isinstance(edit, dict):
                    old, new = edit.get("old_string"), edit.get("new_string")
                    yield from _diff(given.get("file_path"), old, new, paint)
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
            yield f"{visible(key)}: {first}"
            yield from (f"    {line}" for line in more)


def _diff(path: object, old: object, new: object, paint: Paint) -> Iterator[str]:
    name = visible(str(path))
    before, after = _text(old or "") if old else [], _text(new or "") if new else []
    found = False
    for line in difflib.unified_diff(before, after, name, name, lineterm="", n=3):
        found = True
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        yield paint(line, colour) if colour else line
    if not found:
        yield f"{name} (nothing changes)"


def _questions(questions: object) -> Iterator[str]:
    for question in questions if isinstance(questions, list) else ():
        if not isinstance(question, dict):
            continue
        yield from _text(question.get("question"))
        for number, option in enumerate(options_of(question), 1):
            yield f"  {number}) {visible(option)}"


def options_of(question: dict[str, Any]) -> list[str]:
    """The labels of a question's options."""
    options = question.get("options")
    found = [one.get("label") for one in options or () if isinstance(one, dict)]
    return [str(label) for label in found if label]


def _cut(shown: list[str]) -> list[str]:
    if len(shown) <= MAX_LINES:
        return shown
    more = len(shown) - MAX_LINES
    return [*shown[:MAX_LINES], f"… {more} more lines: press v to see all"]
