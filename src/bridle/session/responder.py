"""What the CLI asks, answered once: by the user's handlers, or refused. Fail closed, in one place.

Owns the tasks of handlers that wait. A handler that gives its answer at once needs no task; one
that raises, or answers what is no answer, refuses; a request that is withdrawn cancels its task.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Set
from functools import partial
from types import CoroutineType
from typing import Any, TypeAlias

from msgspec import Struct

from ..errors import ConnectionEnded, InvalidAnswer, NotPending, words_of
from ..protocol.connection import Connection
from ..protocol.control import (
    Answer,
    CanUseTool,
    DialogCancelled,
    DialogCompleted,
    ElicitationAnswer,
    ElicitationRequest,
    HookCallback,
    InboundRequest,
    McpAnswer,
    McpMessage,
    UserDialogRequest,
)
from ..protocol.events import Asked, RequestReceived, RequestUnreadable
from ..protocol.hooks import PreToolUse
from ..protocol.permissions import Allow, Deny
from .commit import Begin
from .desk import NO_APPROVER, Approver
from .gate import Gate
from .hooks import GATE_IDS, Hooks, hook_output
from .outgoing import Outgoing, Send, what_it_says
from .recall import is_no
from .tools import ToolServers

Elicitor: TypeAlias = Callable[
    [ElicitationRequest], ElicitationAnswer | Awaitable[ElicitationAnswer]
]
DialogAnswer: TypeAlias = DialogCompleted | DialogCancelled
DialogHandler: TypeAlias = Callable[[UserDialogRequest], DialogAnswer | Awaitable[DialogAnswer]]


#: What is told in place of an answer that is lost: to ask again might do it twice.
MAYBE_DONE = "Bridle was started again while this ran: it may have been done, or not"


class Handlers(Struct):
    """What a session answers with. With a gate, the approver is asked through it alone."""

    approver: Approver | None
    hooks: Hooks
    tools: ToolServers
    elicit: Elicitor | None = None
    dialog: DialogHandler | None = None
    gate: Gate | None = None


class Responder:
    """Answers for one session. `send` takes lines for the CLI."""

    def __init__(
        self, connection: Connection, handlers: Handlers, send: Send, begin: Begin | None = None
    ) -> None:
        self._connection = connection
        self._pending = connection.pending
        self._handlers = handlers
        self._send = send
        self._begin = begin
        self._has_left = False
        self._tasks: dict[str, tuple[asyncio.Task[None], Awaitable[Any]]] = {}

    def take(self, event: RequestReceived) -> None:
        """A request: answered now, or by a task that it owns."""
        if not self._is_open(event):
            return
        try:
            given = self._ask(event)
            if given.__class__ is Allow:
                # What is answered most, and nothing else is an answer to so little.
                self._answer(event, given)
            elif given.__class__ is CoroutineType or inspect.isawaitable(given):
                self._wait(event, given)
            else:
                self._answer(event, _fitting(event.request, given))
        except Exception as error:  # noqa: BLE001 - whatever it is, the tool does not run
            self.refuse(event, _why(event.request, error))

    def take_over(self, events: Iterable[Asked], begun: Set[str]) -> None:
        """What another controller was asked and has not answered.

        For the requests in `begun` it called a handler, whose answer is lost: they are refused. If
        one is a hook about a tool call, the gate refuses that call for the same reason: of two
        hooks, old CLIs report the reason of the one that answers last.
        """
        events = tuple(events)
        lost = {_tool_use_id(event) for event in events if event.request_id in begun} - {""}
        for event in events:
            if event.request_id in begun or _tool_use_id(event) in lost:
                self.refuse(event, MAYBE_DONE)
            elif isinstance(event, RequestReceived):
                self.take(event)
            else:
                self.unreadable(event)

    def withdraw(self, request_id: str) -> None:
        waiting = self._tasks.pop(request_id, None)
        if waiting:
            _cancel(*waiting)

    def refuse(self, event: Asked, reason: str) -> None:
        """Say no, and why; nothing is written for a request that is settled already."""
        if not self._is_open(event):
            return
        if isinstance(event, RequestReceived) and isinstance(event.request, CanUseTool):
            line = self._connection.answer(event.request_id, Deny(_text(reason)))
        else:
            line = self._connection.fail(event.request_id, reason)
        # An error in answer to some hooks counts as no answer, and lets things happen.
        self._send(Outgoing(line, "deny" if is_no(line) else "answer", event.request_id), None)

    def unreadable(self, event: RequestUnreadable) -> None:
        self.refuse(event, event.reason)

    def cancel_all(self) -> list[asyncio.Task[None]]:
        """Cancel what waits."""
        waiting, self._tasks = list(self._tasks.values()), {}
        for task, given in waiting:
            _cancel(task, given)
        return [task for task, _ in waiting]

    def leave(self) -> list[asyncio.Task[None]]:
        """We go, and the CLI stays: nothing is answered any more, for somebody else will."""
        self._has_left = True
        return self.cancel_all()

    async def close(self) -> None:
        """Cancel what waits, and see it end."""
        tasks = self.cancel_all()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    def _is_open(self, event: Asked) -> bool:
        """Not answered, not withdrawn, and somebody is there to be told."""
        if self._has_left or self._connection.is_ended:
            return False
        return event.request_id in self._pending

    # --- asking

    def _ask(self, event: RequestReceived) -> Any:
        handlers, request = self._handlers, event.request
        if isinstance(request, CanUseTool):
            return handlers.approver(request) if handlers.approver else Deny(NO_APPROVER)
        if self._begin and self._may_change_something(request):
            return self._once(event.request_id, request)
        return self._call(event.request_id, request)

    async def _once(self, request_id: str, request: InboundRequest) -> Any:
        assert self._begin
        await self._begin(request_id)
        given = self._call(request_id, request)
        return await given if inspect.isawaitable(given) else given

    def _may_change_something(self, request: InboundRequest) -> bool:
        """What the gate does for a call it does once, however often it is asked."""
        match request:
            case HookCallback(callback_id=callback_id):
                return callback_id not in GATE_IDS
            case McpMessage(server_name=server, message=message):
                return not self._handlers.tools.is_repeatable(server, message)
        return isinstance(request, UserDialogRequest)

    def _call(self, request_id: str, request: InboundRequest) -> Any:
        handlers = self._handlers
        match request:
            case HookCallback():
                return handlers.hooks.call(request)
            case McpMessage():
                return handlers.tools.handle(request.server_name, request.message, request_id)
            case ElicitationRequest():
                return handlers.elicit(request) if handlers.elicit else ElicitationAnswer("decline")
            case UserDialogRequest():
                return handlers.dialog(request) if handlers.dialog else DialogCancelled()

    def _wait(self, event: RequestReceived, given: Awaitable[Any]) -> None:
        answering = self._answer_later(event, given)
        loop = asyncio.get_running_loop()
        if sys.version_info >= (3, 12):
            # A handler that has no need to wait answers before the next tick.
            task = asyncio.Task(answering, loop=loop, eager_start=True)
        else:
            task = loop.create_task(answering)
        if not task.done():
            self._tasks[event.request_id] = (task, given)

    async def _answer_later(self, event: RequestReceived, given: Awaitable[Any]) -> None:
        request = event.request
        try:
            if isinstance(request, HookCallback):
                given = _in_time(given, self._handlers.hooks.limit(request.callback_id))
            self._answer(event, _fitting(request, await given))
        except asyncio.CancelledError:
            # By a withdrawal or by our end nothing is pending; else the handler gave itself up.
            self.refuse(event, "the handler was cancelled")
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the tool does not run
            self.refuse(event, _why(request, error))
        finally:
            self._tasks.pop(event.request_id, None)

    # --- answering

    def _answer(self, event: RequestReceived, answer: Answer) -> None:
        if self._has_left:
            return
        try:
            line = self._connection.answer(event.request_id, answer)
        except (NotPending, ConnectionEnded):
            return
        gate = self._handlers.gate
        then = partial(gate.answered, event.request, answer) if gate else None
        self._send(Outgoing(line, what_it_says(answer), event.request_id), then)


def _tool_use_id(event: Asked) -> str:
    """The tool call that a PreToolUse hook is about; "" for anything else."""
    match event:
        case RequestReceived(request=HookCallback(input=PreToolUse(tool_use_id=str(tool_use_id)))):
            return tool_use_id
    return ""


def _cancel(task: asyncio.Task[None], given: Awaitable[Any]) -> None:
    task.cancel()
    if isinstance(given, CoroutineType) and inspect.getcoroutinestate(given) == "CORO_CREATED":
        # It had no time to begin: nobody will wait for it any more.
        given.close()


async def _in_time(given: Awaitable[Any], limit: float | None) -> Any:
    try:
        async with asyncio.timeout(limit):
            return await given
    except TimeoutError as error:
        raise TimeoutError(f"no answer in {limit:g} s" if limit else str(error)) from error


def _fitting(request: InboundRequest, given: Any) -> Answer:
    """What a handler gave, as an answer; `Connection.answer` judges the rest."""
    if isinstance(request, CanUseTool):
        if not isinstance(given, (Allow, Deny)):
            raise TypeError(f"it answered {given!r}, which is neither Allow(…) nor Deny(…)")
        return given
    match request:
        case HookCallback():
            return hook_output(given)
        case McpMessage():
            return McpAnswer(given)
    answer: Answer = given
    return answer


def _why(request: InboundRequest, error: Exception) -> str:
    who = {
        CanUseTool: "the approver failed",
        HookCallback: "the hook failed",
        McpMessage: "the tool server failed",
        ElicitationRequest: "the elicitation handler failed",
        UserDialogRequest: "the dialog handler failed",
    }[type(request)]
    detail = error.reason if isinstance(error, InvalidAnswer) else words_of(error)
    return f"Bridle denied this: {who}: {detail}"


def _text(reason: str) -> str:
    """An error's text must never be the reason why an error can't be told."""
    return reason.encode("utf-8", "replace").decode()
