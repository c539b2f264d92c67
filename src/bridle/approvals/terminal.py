"""A person at a terminal who decides, one approval after another, by single keys.

    async with open_approvals(journal, check=check) as approvals:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Terminal(approvals, Person("me", "terminal")).attend())

Owns which approval is asked next; how, is `asking`'s. That the first decision wins is the
service's, and what was decided elsewhere meanwhile is taken off the screen with a word about it.
The service may be here (`Approvals`) or behind a door: whatever is a `Docket` will do.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeAlias

from ..errors import BridleError
from .asking import SCOPES, Asking, Dialogue, Later, Manner, Scope, Screen
from .editing import Editor, run_editor
from .errors import AlreadyDecided, ApprovalError, ApprovalsClosed, UnknownApproval, name_of
from .keyboard import Keyboard
from .model import Approval, Cancelled, Choice, Decided, Expired, Person
from .shown import coloured, plain, visible


class Docket(Protocol):
    """What waits to be decided, and the deciding. ApprovalsClosed where there is none any more."""

    def watch(self) -> AsyncIterator[list[Approval]]:
        """Those that are not finished, then each change."""

    async def get(self, approval_id: str, /) -> Approval:
        """All of it, with its whole input."""

    async def wait(self, approval_id: str, /) -> Approval:
        """Until it has ended."""

    async def decide(
        self, approval_id: str, choice: Choice, /, *, by: Person, shown: str | None = None
    ) -> Approval:
        """AlreadyDecided if somebody was first."""


#: What is done at the keyboard while nothing is asked and so many were put off: it returns when
#: those are to be asked again. It may be given up at any moment.
Idle: TypeAlias = Callable[[Keyboard, int], Awaitable[None]]


class Terminal:
    """Attends to the approvals of a docket. Needs a real terminal to read keys from.

    While something is asked the screen is its own: `aside` is entered for so long.
    """

    def __init__(
        self,
        approvals: Docket,
        person: Person,
        *,
        keys: int | None = None,
        screen: Screen | None = None,
        editor: Editor = run_editor,
        scopes: tuple[Scope, ...] = SCOPES,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
        idle: Idle | None = None,
    ) -> None:
        self._approvals = approvals
        self._person = person
        screen = screen or sys.stdout
        self._keyboard = Keyboard(sys.stdin.fileno() if keys is None else keys)
        if not self._keyboard.is_terminal:
            raise ApprovalError("nobody can be asked here: the input is no terminal")
        paint = coloured if screen.isatty() and "NO_COLOR" not in os.environ else plain
        self._manner = Manner(paint, editor, scopes)
        self._dialogue = Dialogue(self._keyboard, screen)
        self._aside = aside
        self._idle = idle or self._put_off
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
                    with self._aside():
                        self._say("\nnobody is asked here any more")
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
            await self._between()
        found = next(iter(self._waiting))
        try:
            approval = await self._approvals.get(found)
        except UnknownApproval:  # its session was deleted
            return
        finally:
            self._waiting.pop(found, None)
        if approval.status == "pending":
            with self._aside():
                await self._ask_while_pending(approval)

    async def _ask_while_pending(self, approval: Approval) -> None:
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

    async def _between(self) -> None:
        """Wait for something new, or until what was put off is wanted again."""
        waits = (self._idle(self._keyboard, len(self._later)), self._came.wait())
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
                self._waiting, self._later = {**self._waiting, **self._later}, {}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _put_off(self, _: Keyboard, number: int) -> None:
        if not number:
            await asyncio.Event().wait()
        self._say(f"{number} put off: press any key to see it again")
        await self._dialogue.key()

    async def _ask(self, approval: Approval) -> None:
        asking = Asking(self._dialogue, approval, self._manner)
        await asking.show()
        while True:
            choice = await asking.choice()
            if isinstance(choice, Later):
                self._later[approval.id] = approval
                return
            try:
                await self._approvals.decide(
                    approval.id, choice, by=self._person, shown=approval.digest
                )
            except AlreadyDecided as error:
                self._say(visible(str(error)))
            except ApprovalsClosed:
                raise
            except BridleError as error:
                self._say(visible(str(error)))
                continue
            return

    def _say(self, text: str) -> None:
        self._dialogue.say(text)


def _how_it_ended(approval: Approval) -> str:
    match approval.ending:
        case Decided(by=by):
            who = by.name if isinstance(by, Person) else name_of(by)
            return f"{approval.status} by {visible(who)}, elsewhere"
        case Expired():
            return "nobody decided in time: denied"
        case Cancelled(cause=cause):
            return f"it is no longer asked: {cause}"
    return "it is over"
