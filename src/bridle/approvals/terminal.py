"""A person at a terminal who decides, one approval after another, by single keys.

    async with open_approvals(journal, check=check) as approvals:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Terminal(approvals, Person("me", "terminal")).attend())

Owns the conversation with the person; that the first decision wins is the service's, and what was
decided elsewhere meanwhile is taken off the screen with a word about it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec

from ..errors import BridleError
from .editing import Editor, edited_choice, run_editor
from .errors import AlreadyDecided, ApprovalError, ApprovalsClosed
from .keyboard import Keyboard
from .model import (
    AcceptElicitation,
    Always,
    AnswerQuestion,
    Approval,
    Approve,
    ApprovePlan,
    Cancelled,
    Choice,
    Decided,
    Expired,
    ForSession,
    Person,
    PlanMode,
    Reject,
    Remember,
)
from .service import Approvals
from .shown import (
    coloured,
    is_long,
    on_a_line,
    options_of,
    plain,
    questions_of,
    show,
    visible,
)

HELP = """\
  y  yes, this once
  n  no, with a reason for the model
  i  no, and end its turn
  a  always: choose the rule that is added, for the session or for all
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


#: A file above this is not shown beside what would become of it.
MAX_SHOWN = 1_000_000


class Terminal:
    """Attends to the approvals of a service. Needs a real terminal to read keys from."""

    def __init__(
        self,
        approvals: Approvals,
        person: Person,
        *,
        keys: int | None = None,
        screen: TextIO | None = None,
        editor: Editor = run_editor,
    ) -> None:
        self._approvals = approvals
        self._person = person
        self._screen = screen or sys.stdout
        self._keyboard = Keyboard(sys.stdin.fileno() if keys is None else keys)
        if not self._keyboard.is_terminal:
            raise ApprovalError("nobody can be asked here: the input is no terminal")
        self._editor = editor
        self._paint = coloured if self._screen.isatty() and "NO_COLOR" not in os.environ else plain
        self._later: dict[str, Approval] = {}
        self._waiting: dict[str, Approval] = {}
        self._came = asyncio.Event()
        self._is_over = False

    async def attend(self) -> None:
        """Ask about each approval that is pending, until cancelled or the terminal ends."""
        with self._keyboard.taken():
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._follow())
                try:
                    while not self._is_over:
                        await self._next()
                except EOFError:
                    self._say("\nnobody is asked here any more: what is pending stays so")
                except ApprovalsClosed:
                    pass
                following.cancel()

    async def _follow(self) -> None:
        async for changes in self._approvals.watch():
            for approval in changes:
                if approval.status == "pending" and approval.id not in self._later:
                    self._waiting.setdefault(approval.id, approval)
                elif approval.status != "pending":
                    self._waiting.pop(approval.id, None)
                    self._later.pop(approval.id, None)
            self._came.set()
        self._is_over = True
        self._came.set()

    async def _next(self) -> None:
        while not self._waiting:
            if self._is_over:
                return
            self._came.clear()
            await (self._put_off() if self._later else self._came.wait())
        approval = await self._approvals.get(next(iter(self._waiting)))
        self._waiting.pop(approval.id, None)
        if approval.status != "pending":
            return
        asking = asyncio.ensure_future(self._ask(approval))
        ending = asyncio.ensure_future(self._approvals.wait(approval.id))
        try:
            await asyncio.wait((asking, ending), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                asking.result()
            else:
                self._say(f"\n{_how_it_ended(ending.result())}")
        finally:
            for task in (asking, ending):
                task.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)

    async def _put_off(self) -> None:
        """Wait for something new, or for a key that brings back what was put off."""
        self._say(f"{len(self._later)} put off: press any key to see it again")
        tasks = [asyncio.ensure_future(wait) for wait in (self._key(), self._came.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
                self._waiting, self._later = {**self._waiting, **self._later}, {}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # --- one approval

    async def _ask(self, approval: Approval) -> None:
        before = await asyncio.to_thread(_present, approval)
        self._say(f"\n{show(approval, self._paint, before)}")
        is_seen = not is_long(approval, before)
        self._keyboard.forget()
        while True:
            self._say(f"{KEYS[approval.kind]} ", end="")
            key = await self._key()
            if key == "v":
                self._say(f"\n{show(approval, self._paint, before, is_whole=True)}")
                is_seen = True
                continue
            if key in "yYae" and not is_seen:
                self._say("press v first: this is not all of it")
                continue
            choice = await self._choice(approval, key)
            if choice is None:
                continue
            if isinstance(choice, str):
                self._later[approval.id] = approval
                return
            try:
                await self._approvals.decide(
                    approval.id, choice, by=self._person, shown=approval.digest
                )
            except AlreadyDecided as error:
                self._say(visible(str(error)))
            except BridleError as error:
                self._say(visible(str(error)))
                continue
            return

    async def _choice(self, approval: Approval, key: str) -> Choice | str | None:
        """What a key means: a choice; text to leave it; None to ask again."""
        match key:
            case "y" | "Y":
                return await self._yes(approval)
            case "n" | "N" | "i":
                reason = await self._line("Why? (nothing for no reason) ")
                return Reject(reason, interrupt=key == "i")
            case "a" if approval.kind == "tool":
                return await self._always(approval)
            case "e" if approval.kind in ("tool", "plan"):
                return await self._edit(approval)
            case "l":
                self._say("later")
                return "later"
            case _:
                self._say(f"\n{HELP}")
        return None

    async def _yes(self, approval: Approval) -> Choice | None:
        self._say("yes")
        match approval.kind:
            case "plan":
                mode = await self._mode()
                return ApprovePlan(mode) if mode else None
            case "question":
                answers = await self._answers(approval)
                return AnswerQuestion(answers) if answers is not None else None
            case "elicitation":
                return AcceptElicitation(await self._form(approval))
            case "tool":
                return Approve()

    async def _mode(self) -> PlanMode | None:
        for key, (_, words) in MODES.items():
            self._say(f"  {key}) {words}")
        self._say("How shall it go on? ", end="")
        found = MODES.get(await self._key())
        self._say(found[1] if found else "")
        return found[0] if found else None

    async def _answers(self, approval: Approval) -> dict[str, str] | None:
        answers: dict[str, str] = {}
        try:
            questions = questions_of(approval.input.get("questions"))
        except TypeError:
            self._say("it asks in a way that can't be answered here: say no, with a reason")
            return None
        for question in questions:
            options, text = options_of(question), str(question.get("question"))
            given = await self._line(f"{on_a_line(text)} (a number, or your own words) ")
            answer = _chosen(given, options) or given
            if not answer:
                return None
            answers[text] = answer
        return answers

    async def _form(self, approval: Approval) -> dict[str, Any]:
        """What an MCP server wants to know, field by field."""
        schema = approval.input.get("requested_schema")
        fields = schema.get("properties") if isinstance(schema, dict) else None
        content: dict[str, Any] = {}
        for name, field in fields.items() if isinstance(fields, dict) else ():
            words = (
                field.get("description") or field.get("title") if isinstance(field, dict) else ""
            )
            given = await self._line(f"{on_a_line(f'{name} {words or str()}'.strip())}: ")
            kind = field.get("type") if isinstance(field, dict) else "string"
            if given:
                content[name] = _typed(given, kind)
        return content

    async def _always(self, approval: Approval) -> Choice | None:
        self._say("always")
        for number, rule in enumerate(approval.suggestions, 1):
            self._say(f"  {number}) {on_a_line(rule)}")
        given = await self._line("Which rule? (a number, or a rule of your own) ")
        rule = _chosen(given, approval.suggestions) or given
        if not rule or rule.isdecimal():
            return None
        where = on_a_line(approval.folder)
        choices: dict[str, Remember] = {"s": ForSession(rule), "e": Always(rule)}
        if approval.folder:
            choices["f"] = Always(rule, approval.folder)
        in_folder = f", always in [f] {where}" if where else ""
        self._say(f"Add {on_a_line(rule)} for this [s]ession{in_folder}, or [e]verywhere? ", end="")
        key = await self._key()
        self._say(key if key in choices else "no")
        return Approve(remember=choices[key]) if key in choices else None

    async def _edit(self, approval: Approval) -> Choice | None:
        self._say("edit")
        try:
            with self._keyboard.given_back():
                choice = await edited_choice(approval, self._editor)
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
        is_wanted = await self._key() == "y"
        self._say("yes" if is_wanted else "no")
        return choice if is_wanted else None

    # --- the terminal

    async def _key(self) -> str:
        key = await self._keyboard.key()
        if key in ("", "\x04"):
            raise EOFError
        return key

    async def _line(self, prompt: str) -> str:
        """A line, shown while it is typed."""
        self._say(f"\n{prompt}", end="")
        text = ""
        while (key := await self._key()) not in ("\n", "\r"):
            if key in ("\x7f", "\b"):
                if text:
                    text = text[:-1]
                    self._say("\b \b", end="")
            elif key.isprintable():
                text += key
                self._say(key, end="")
        self._say("")
        return text.strip()

    def _say(self, text: str, end: str = "\n") -> None:
        self._screen.write(f"{text}{end}")
        self._screen.flush()


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


def _how_it_ended(approval: Approval) -> str:
    match approval.ending:
        case Decided(by=by):
            who = by.name if isinstance(by, Person) else type(by).__name__.lower()
            return f"{approval.status} by {visible(who)}, elsewhere"
        case Expired():
            return "nobody decided in time: denied"
        case Cancelled(cause=cause):
            return f"it is no longer asked: {cause}"
    return "it is over"


def _typed(given: str, kind: object) -> Any:
    """A field's text as what the form says it is; as text, where it is not that."""
    if kind == "boolean":
        return given.lower() in ("y", "yes", "true", "1")
    if kind in ("number", "integer"):
        with contextlib.suppress(ValueError):
            return int(given) if kind == "integer" else float(given)
    return given
