"""Named points at which a controller kills itself: a way to stop there, and nowhere else.

Each wraps one method of what the controller runs, in its own process alone. Nothing is replaced by
anything that does less: up to its end it is the real thing.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from bridle.approvals import Approvals
from bridle.approvals.register import Register
from bridle.journal.log import Log
from bridle.process import detached
from bridle.process.detached import DetachedProcess
from bridle.process.spool import Spool
from bridle.protocol.control import CanUseTool, HookCallback, McpMessage
from bridle.protocol.events import MessageReceived, RequestReceived, RequestWithdrawn
from bridle.session.responder import Responder
from bridle.session.router import Router
from bridle.session.session import Session
from bridle.supervisor import takingup
from bridle.supervisor.agent import Agent
from bridle.supervisor.charge import Charge
from bridle.supervisor.outbox import Outbox
from bridle.supervisor.pen import Pen
from bridle.views import stream

Kill = Callable[[], NoReturn]
Install = Callable[[Kill], None]

POINTS: dict[str, Install] = {}


def stop_at(point: str, say: Callable[[str], None]) -> None:
    def kill() -> NoReturn:
        say(f"at {point}")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    POINTS[point](kill)


def _point(name: str) -> Callable[[Install], Install]:
    def add(install: Install) -> Install:
        POINTS[name] = install
        return install

    return add


def _before(owner: Any, name: str, when: Callable[..., object], kill: Kill) -> None:
    """Kill in place of a call, if it is this one."""
    real = getattr(owner, name)

    def call(*args: Any, **named: Any) -> Any:
        if when(*args, **named):
            kill()
        return real(*args, **named)

    setattr(owner, name, call)


def _after(owner: Any, name: str, when: Callable[..., object], kill: Kill) -> None:
    """Kill when a call has done its work, if it is this one."""
    real = getattr(owner, name)

    def call(*args: Any, **named: Any) -> Any:
        given = real(*args, **named)
        if when(*args, **named):
            kill()
        return given

    setattr(owner, name, call)


def _after_waiting(owner: Any, name: str, kill: Kill) -> None:
    real = getattr(owner, name)

    async def call(*args: Any, **named: Any) -> Any:
        await real(*args, **named)
        kill()

    setattr(owner, name, call)


def _replace(owner: Any, name: str, by: Callable[..., object]) -> None:
    setattr(owner, name, by)


def _always(*_: object, **__: object) -> bool:
    return True


# --- what an agent says


def _routed(kind: type, *requests: type) -> Install:
    def is_it(_: Router, batch: Any, error: object) -> bool:
        return any(
            isinstance(event, kind)
            and (not requests or isinstance(getattr(event, "request", None), requests))
            for event in batch
        )

    return lambda kill: _before(Router, "route", is_it, kill)


POINTS["a message is logged, and not acted on"] = _routed(MessageReceived)
POINTS["a question is logged, and not asked"] = _routed(RequestReceived, CanUseTool)
POINTS["a hook is logged, and not called"] = _routed(RequestReceived, HookCallback)
POINTS["a tool call is logged, and not begun"] = _routed(RequestReceived, McpMessage)


@_point("a withdrawal is logged, and the approval not cancelled")
def _is_withdrawn(kill: Kill) -> None:
    from .controller import Work

    decide = Work._decide_one

    async def decide_others(work: Work, approval: Any) -> None:
        if not approval.tool_use_id.endswith("-back"):
            await decide(work, approval)

    _replace(Work, "_decide_one", decide_others)
    _routed(RequestWithdrawn)(kill)


@_point("an approval is asked, and not seen")
def _is_asked(kill: Kill) -> None:
    _before(Register, "_asked", _always, kill)


# --- what it is answered


@_point("an approval is decided, and the answer not written")
def _is_decided(kill: Kill) -> None:
    _before(Outbox, "send", lambda _, line, *__: line.what == "allow", kill)


def _is_yes(_: Spool, data: bytes) -> bool:
    return b'"behavior":"allow"' in data


@_point("an answer is committed, and not appended")
def _is_committed(kill: Kill) -> None:
    _before(Spool, "append", _is_yes, kill)


@_point("an answer is appended, and nobody was rung")
def _is_appended(kill: Kill) -> None:
    _after(Spool, "append", _is_yes, kill)


@_point("an answer is appended, and not marked delivered")
def _is_unmarked(kill: Kill) -> None:
    _before(Approvals, "delivered", _always, kill)


@_point("a no is appended, and not logged")
def _is_unlogged(kill: Kill) -> None:
    _after(Spool, "append", lambda _, data: b'"behavior":"deny"' in data, kill)


@_point("a no of a hook is appended, and not logged")
def _is_hook_unlogged(kill: Kill) -> None:
    _after(Spool, "append", lambda _, data: b'"permissionDecision":"deny"' in data, kill)


@_point("half of a large prompt is appended")
def _is_half(kill: Kill) -> None:
    real = Spool.append

    def append(spool: Spool, data: bytes) -> None:
        if len(data) > 200_000:
            real(spool, data[: len(data) // 2])
            spool.ring()
            kill()
        real(spool, data)

    _replace(Spool, "append", append)


@_point("a prompt is stored, and not written")
def _is_told(kill: Kill) -> None:
    _before(Charge, "deliver", lambda self, **_: self._is_ready and self.record.waiting, kill)


@_point("a hook of the user's runs")
def _runs(kill: Kill) -> None:
    from .controller import Effects

    _after(Effects, "add", lambda _, what: what.startswith("done"), kill)


@_point("a tool has run, and the answer is not written")
def _has_run(kill: Kill) -> None:
    from .controller import Effects

    _after(Effects, "add", lambda _, what: what.startswith("call"), kill)


# --- launches


@_point("a launch is intended, and nothing started")
def _is_intended(kill: Kill) -> None:
    _before(DetachedProcess, "spawn", _always, kill)


@_point("a spool is made, and no shim started")
def _is_made(kill: Kill) -> None:
    _after(Spool, "make", _always, kill)


@_point("a shim is forked, and has not begun")
def _is_forked(kill: Kill) -> None:
    _after(detached, "spawn_shim", _always, kill)


@_point("a shim has begun, and its pid is not recorded")
def _has_begun(kill: Kill) -> None:
    _after_waiting(DetachedProcess, "spawn", kill)


@_point("a pid is recorded, and no handshake sent")
def _is_recorded(kill: Kill) -> None:
    _before(Agent, "start", _always, kill)


@_point("the handshake is committed, and not appended")
def _is_greeted(kill: Kill) -> None:
    _before(Spool, "append", lambda _, data: b'"initialize"' in data, kill)


@_point("the handshake is sent, and not answered")
def _is_sent(kill: Kill) -> None:
    _after(Spool, "append", lambda _, data: b'"initialize"' in data, kill)


@_point("the handshake is answered, and that is not noted")
def _is_met(kill: Kill) -> None:
    _after_waiting(Session, "start", kill)


@_point("a state has changed, and that is not published")
def _has_changed(kill: Kill) -> None:
    _before(Charge, "write", lambda _, kind, __: kind == stream.STATE, kill)


@_point("the last state has changed, and that is not published")
def _is_idle(kill: Kill) -> None:
    def is_it(self: Charge, kind: str, body: Any) -> bool:
        return kind == stream.STATE and body.now == "idle" and self.record.turns == 2

    _before(Charge, "write", is_it, kill)


# --- ends


@_point("it is asked to stop, and nothing is done")
def _is_asked_to_stop(kill: Kill) -> None:
    async def stop(agent: Agent, *_: object) -> None:
        await agent._pen.idle()
        kill()

    _replace(Agent, "stop", stop)


@_point("it has stopped, and that is not logged")
def _has_stopped(kill: Kill) -> None:
    _before(Agent, "_how", _always, kill)


@_point("its end is logged, and the spool not removed")
def _has_ended(kill: Kill) -> None:
    _before(Spool, "remove", _always, kill)


@_point("the spool is half removed")
def _is_half_removed(kill: Kill) -> None:
    def remove(spool: Spool) -> None:
        for path in sorted(spool.folder.iterdir())[:4]:
            path.unlink()
        kill()

    _replace(Spool, "remove", remove)


@_point("half of a deleted session is gone")
def _is_half_deleted(kill: Kill) -> None:
    _after_waiting(Log, "delete", kill)


# --- taking up


@_point("while taken up: before the log is read")
def _takes_up(kill: Kill) -> None:
    _before(takingup, "saved_state", _always, kill)


@_point("while taken up: after the log is read")
def _has_read(kill: Kill) -> None:
    _after_waiting(takingup, "replay", kill)


@_point("while taken up: before it listens")
def _listens(kill: Kill) -> None:
    _before(Session, "go_on", _always, kill)


@_point("while taken up: before it answers what was asked")
def _answers(kill: Kill) -> None:
    _before(Responder, "take_over", _always, kill)


@_point("while taken up: what was asked is answered, and not logged")
def _has_answered(kill: Kill) -> None:
    _after(Responder, "take_over", _always, kill)


@_point("while taken up: half of what was missing is appended")
def _half_added(kill: Kill) -> None:
    def add(outbox: Outbox, data: bytes) -> None:
        outbox._spool.append(data[: len(data) // 2])
        kill()

    _replace(Outbox, "add", add)


@_point("up, and nothing done")
def _is_up(kill: Kill) -> None:
    from .controller import Work

    _before(Work, "run", _always, kill)


# --- closing


def _close(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@_point("closed while an approval waits")
def _closes_in_approval(_: Kill) -> None:
    from .controller import Work

    async def decide(work: Work) -> None:
        async for approvals in work._supervisor.approvals.watch():
            if len(approvals) > 1 or any(one.status == "pending" for one in approvals):
                _close()
                await asyncio.Event().wait()

    _replace(Work, "_decide", decide)


@_point("closed in a turn")
def _closes_in_turn(_: Kill) -> None:
    _after(Pen, "write", lambda _, events, *__: any(e.kind == stream.SAID for e in events), _close)  # type: ignore[arg-type]


@_point("closed while it starts")
def _closes_in_start(_: Kill) -> None:
    _after(Spool, "append", _always, _close)  # type: ignore[arg-type]
