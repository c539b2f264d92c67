"""One approval, asked of a person at a terminal: what they see, and what their keys mean.

Owns the conversation; which approval is asked, and what is done with the choice, is `terminal`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from .editing import Editor, edited_choice, run_editor
from .keyboard import Keyboard
from .model import (
    AcceptElicitation,
    Always,
    AnswerQuestion,
    Approval,
    Approve,
    ApprovePlan,
    Choice,
    ForSession,
    PlanMode,
    Reject,
    Remember,
)
from .shown import Paint, is_long, on_a_line, options_of, plain, questions_of, show

HELP = """\
  y  yes, this once
  n  no, with a reason for the model
  i  no, and end its turn
  a  always: choose the rule that is added, and for what
  e  edit the input (or the plan), then let it run
  v  see all of it
  l  later: leave it pending
  ?  this"""
KEYS = {
    "tool": "[y]es  [n]o  [a]lways  [e]dit  [l]ater  [?]",
    "plan": "[y]es  [n]o  [e]dit  [l]ater  [?]",
    "question": "[y] answer  [n]o  [?]",
    "elicitation": "[y] answer  [n]o  [?]",
}
MODES: dict[str, tuple[PlanMode, str]] = {
    "1": ("default", "ask for each"),
    "2": ("acceptEdits", "accept edits"),
    "3": ("bypassPermissions", "bypass: ask about nothing but what is guarded"),
}
#: How far a rule that is remembered may reach.
Scope: TypeAlias = Literal["session", "folder", "everywhere"]
SCOPES: tuple[Scope, ...] = ("session", "folder", "everywhere")
#: A file above this is not shown beside what would become of it.
MAX_SHOWN = 1_000_000


class Screen(Protocol):
    """Where a person is told something."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...

    def isatty(self) -> bool: ...


class Later(Struct, frozen=True):
    """It is left pending."""


class Manner(Struct, frozen=True):
    """How somebody is asked: in which colours, with which editor, and what can be remembered."""

    paint: Paint = plain
    editor: Editor = run_editor
    scopes: tuple[Scope, ...] = SCOPES


class Dialogue:
    """A screen and a keyboard, and whoever sits before them. EOFError when they have gone."""

    def __init__(self, keyboard: Keyboard, screen: Screen) -> None:
        self.keyboard = keyboard
        self._screen = screen

    def say(self, text: str, end: str = "\n") -> None:
        self._screen.write(f"{text}{end}")
        self._screen.flush()

    async def key(self) -> str:
        key = await self.keyboard.key()
        if key in ("", "\x04"):
            raise EOFError
        return key

    async def line(self, prompt: str) -> str:
        """A line, shown while it is typed."""
        self.say(f"\n{prompt}", end="")
        text = ""
        while (key := await self.key()) not in ("\n", "\r"):
            if key in ("\x7f", "\b"):
                if text:
                    text = text[:-1]
                    self.say("\b \b", end="")
            elif key.isprintable():
                text += key
                self.say(key, end="")
        self.say("")
        return text.strip()


class Asking:
    """About one approval."""

    def __init__(self, dialogue: Dialogue, approval: Approval, manner: Manner) -> None:
        self._dialogue = dialogue
        self._approval = approval
        self._manner = manner
        self._before: str | None = None
        self._is_seen = False

    async def show(self) -> None:
        """What they decide about. What was typed before that was not meant for it."""
        self._before = await asyncio.to_thread(_present, self._approval)
        self._say(f"\n{show(self._approval, self._manner.paint, self._before)}")
        self._is_seen = not is_long(self._approval, self._before)
        self._dialogue.keyboard.forget()

    async def choice(self) -> Choice | Later:
        """What they choose, after as many keys as that takes."""
        while True:
            self._say(f"{KEYS[self._approval.kind]} ", end="")
            key = await self._dialogue.key()
            if key == "v":
                whole = show(self._approval, self._manner.paint, self._before, is_whole=True)
                self._say(f"\n{whole}")
                self._is_seen = True
            elif key in "yYae" and not self._is_seen:
                self._say("press v first: this is not all of it")
            elif (choice := await self._meant(key)) is not None:
                return choice

    async def _meant(self, key: str) -> Choice | Later | None:
        """What a key means; None to ask again."""
        kind = self._approval.kind
        match key:
            case "y" | "Y":
                return await self._yes()
            case "n" | "N" | "i":
                reason = await self._dialogue.line("Why? (nothing for no reason) ")
                return Reject(reason, interrupt=key == "i")
            case "a" if kind == "tool":
                return await self._always()
            case "e" if kind in ("tool", "plan"):
                return await self._edit()
            case "l":
                self._say("later")
                return Later()
            case _:
                self._say(f"\n{HELP}")
        return None

    async def _yes(self) -> Choice | None:
        self._say("yes")
        match self._approval.kind:
            case "plan":
                mode = await self._mode()
                return ApprovePlan(mode) if mode else None
            case "question":
                answers = await self._answers()
                return AnswerQuestion(answers) if answers is not None else None
            case "elicitation":
                return AcceptElicitation(await self._form())
            case "tool":
                return Approve()

    async def _mode(self) -> PlanMode | None:
        for key, (_, words) in MODES.items():
            self._say(f"  {key}) {words}")
        self._say("How shall it go on? ", end="")
        found = MODES.get(await self._dialogue.key())
        self._say(found[1] if found else "")
        return found[0] if found else None

    async def _answers(self) -> dict[str, str] | None:
        answers: dict[str, str] = {}
        try:
            questions = questions_of(self._approval.input.get("questions"))
        except TypeError:
            self._say("it asks in a way that can't be answered here: say no, with a reason")
            return None
        for question in questions:
            options, text = options_of(question), str(question.get("question"))
            asked = f"{on_a_line(text)} (a number, or your own words) "
            given = await self._dialogue.line(asked)
            answer = _chosen(given, options) or given
            if not answer:
                return None
            answers[text] = answer
        return answers

    async def _form(self) -> dict[str, Any]:
        """What an MCP server wants to know, field by field."""
        schema = self._approval.input.get("requested_schema")
        fields = schema.get("properties") if isinstance(schema, dict) else None
        content: dict[str, Any] = {}
        for name, field in fields.items() if isinstance(fields, dict) else ():
            words = (
                field.get("description") or field.get("title") if isinstance(field, dict) else ""
            )
            asked = f"{on_a_line(f'{name} {words or str()}'.strip())}: "
            given = await self._dialogue.line(asked)
            kind = field.get("type") if isinstance(field, dict) else "string"
            if given:
                content[name] = _typed(given, kind)
        return content

    async def _always(self) -> Choice | None:
        self._say("always")
        suggestions = self._approval.suggestions
        for number, rule in enumerate(suggestions, 1):
            self._say(f"  {number}) {on_a_line(rule)}")
        given = await self._dialogue.line("Which rule? (a number, or a rule of your own) ")
        rule = _chosen(given, suggestions) or given
        if not rule or rule.isdecimal():
            return None
        choices, question = self._reach(rule)
        self._say(question, end="")
        key = await self._dialogue.key()
        self._say(key if key in choices else "no")
        return Approve(remember=choices[key]) if key in choices else None

    def _reach(self, rule: str) -> tuple[dict[str, Remember], str]:
        """What it may be remembered for, by key, and how that is asked."""
        scopes, folder = self._manner.scopes, self._approval.folder
        found: list[tuple[str, Remember, str]] = []
        if "session" in scopes:
            found.append(("s", ForSession(rule), "for this [s]ession"))
        if "folder" in scopes and folder:
            found.append(("f", Always(rule, folder), f"always in [f] {on_a_line(folder)}"))
        if "everywhere" in scopes:
            found.append(("e", Always(rule), "[e]verywhere"))
        *first, last = [words for _, _, words in found]
        ways = f"{', '.join(first)}, or {last}" if first else last
        return {key: way for key, way, _ in found}, f"Add {on_a_line(rule)} {ways}? "

    async def _edit(self) -> Choice | None:
        self._say("edit")
        try:
            with self._dialogue.keyboard.given_back():
                choice = await edited_choice(self._approval, self._manner.editor)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            self._say(f"it can't be used: {error}")
            return None
        if choice is None:
            self._say("nothing was changed")
            return None
        if isinstance(choice, ApprovePlan):
            mode = await self._mode()
            return ApprovePlan(mode, choice.plan) if mode else None
        self._say("Let it run as it is now? [y/n] ", end="")
        is_wanted = await self._dialogue.key() == "y"
        self._say("yes" if is_wanted else "no")
        return choice if is_wanted else None

    def _say(self, text: str, end: str = "\n") -> None:
        self._dialogue.say(text, end)


def _present(approval: Approval) -> str | None:
    """What the file that is to be written holds now, if it is one that can be shown."""
    path = approval.input.get("file_path")
    if approval.tool != "Write" or not isinstance(path, str) or not path.startswith("/"):
        return None
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > MAX_SHOWN:
            return None
        return file.read_text()
    except (OSError, ValueError):
        return None


def _chosen(given: str, options: Sequence[str]) -> str:
    """The option that has this number."""
    number = int(given) if given.isascii() and given.isdecimal() and len(given) < 4 else 0
    return options[number - 1] if 0 < number <= len(options) else ""


def _typed(given: str, kind: object) -> Any:
    """A field's text as what the form says it is; as text, where it is not that."""
    if kind == "boolean":
        return given.lower() in ("y", "yes", "true", "1")
    if kind in ("number", "integer"):
        with contextlib.suppress(ValueError):
            return int(given) if kind == "integer" else float(given)
    return given
