"""Many agents on one machine: created, started, told, stopped, and found again after a crash.

The face of the package. Records are the `sessions`', the queue is the `fleet`'s, one session is a
`charge`; what holds agents back is the `guards`'. They outlive it: to close it ends none of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct

from ..approvals import Agent, Approval, Approvals, Person
from ..approvals.model import Choice
from ..errors import Asleep, JournalUnwritable, NotPossible
from ..journal import Journal
from ..process.transport import Stopped
from ..protocol.answers import Interrupted
from ..session.inline_commands import slash_commands
from ..session.session import Session
from ..views import stream
from ..views.stream import External, Limits, OrphanRule, PauseCause
from .audience import Listener
from .births import Births, Fork, Wish
from .charge import Charge
from .course import Course
from .delegations import policy_under
from .environment import Value
from .external import Outside
from .lineage import LineageLimits, orphans_of
from .means import Means
from .notes import note
from .policies import PolicyGiven, put_under
from .prompts import Said, check_commands, prompted
from .record import SessionRecord
from .sessions import Forgotten, copy
from .states import Operation, check_possible, check_possible_elsewhere

#: How long a start waits for each agent that it takes up.
BEGIN_SECONDS = 5.0


class Recovered(Struct, frozen=True):
    """What was found when it was opened."""

    #: Agents that run on, and those of which was found how they ended, by session.
    alive: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    #: Approvals that wait.
    pending: tuple[str, ...] = ()
    seconds: float = 0.0


class Supervisor:
    """Made by `open_supervisor`. A session is named by its id or by its name."""

    def __init__(self, means: Means, size: int, lineage: LineageLimits, free_bytes: int) -> None:
        self._means = means
        self._course = Course(means, size, lineage, free_bytes)
        self._sessions, self._guards = self._course.sessions, self._course.guards
        self._fleet, self._pen = self._course.fleet, self._course.pen
        self._births = Births(means, self._sessions, self._guards, lineage)
        #: What is asked by processes that are not ours.
        self.outside = Outside(means, self._sessions)
        #: Whether nobody looks after the agents: then nothing is done, and nothing is written.
        self.is_asleep = False
        self.recovered = Recovered()
        self.secret_values = means.secret_values

    @property
    def approvals(self) -> Approvals:
        """What agents ask, and people decide."""
        return self._means.approvals

    @property
    def journal(self) -> Journal:
        """Every event; a session's stream has the session's id for a name."""
        return self._means.journal

    @property
    def running(self) -> int:
        """How many agents there are now, whatever has been noted of them yet."""
        return sum(charge.is_running for charge in self._sessions)

    @property
    def held(self) -> stream.Limited | None:
        """Why no agent is started or told anything now: the service refuses."""
        return self._fleet.held

    @property
    def is_stuck(self) -> bool:
        """Whether something that happened can't be written down just now."""
        return self._pen.is_stuck or any(charge.pen.is_stuck for charge in self._sessions)

    # --- opening and closing

    async def open(self) -> None:
        start = asyncio.get_running_loop().time()
        await self._sessions.load()
        await self._sessions.tidy()
        for charge in self._sessions:
            self._guards.put(charge)
        found = [charge for charge in self._sessions if charge.record.facts.has_process]
        for charge in found:
            self._means.check_handlers(charge.record)
        for charge in found:
            charge.take_up()
        self._sessions.follow()
        # One that is slow to shake hands is followed all the same, and keeps nobody waiting.
        await asyncio.gather(*(charge.begun(BEGIN_SECONDS) for charge in found))
        pending = await self.approvals.list(status="pending")
        self.recovered = Recovered(
            alive=tuple(charge.id for charge in found if charge.is_running),
            ended=tuple(charge.id for charge in found if not charge.is_running),
            pending=tuple(approval.id for approval in pending),
            seconds=asyncio.get_running_loop().time() - start,
        )
        self._begin()
        self._course.escalation.begin()
        await self.outside.begin()

    async def look(self) -> None:
        """Only see what there is."""
        self.is_asleep = True
        await self._sessions.load()

    def _begin(self) -> None:
        found, now = self.recovered, self._means.now()
        opened = stream.Opened(
            at=now, pid=os.getpid(), alive=found.alive, ended=found.ended, pending=found.pending
        )
        self._pen.write([note(stream.OPENED, opened)])
        self._guards.begin()
        self._guards.find_orphans()
        for charge in self._sessions:
            facts = charge.record.facts
            if facts.is_limited or facts.needs_login:
                until, needs_login = facts.limited_until, facts.needs_login
                self._fleet.hold(stream.Limited(at=now, until=until, needs_login=needs_login))
            self._guards.look(charge)
        self._fleet.open()
        self._course.pump()

    async def aclose(self) -> None:
        """Let all go: agents run on, and a later supervisor takes them up."""
        self._fleet.close()
        self._guards.close()
        await self._course.escalation.aclose()
        await self.outside.aclose()
        if not self.is_asleep:
            self._pen.write([note(stream.CLOSED, stream.Released(at=self._means.now()))])
        await self._sessions.aclose()
        await self._pen.idle_or_stuck()
        self._pen.close()

    async def stop_all(self, by: str = "") -> None:
        """End every agent. Sessions that wait for a place go on waiting, until the next start."""
        self._check_awake()
        self._fleet.close()
        live = [charge for charge in self._sessions if charge.is_at_work]
        await asyncio.gather(*(charge.stop(by, "all are stopped") for charge in live))

    # --- making

    async def create(
        self,
        *,
        cwd: str | os.PathLike[str],
        by: Person | Agent,
        prompt: Said | None = None,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        policy: PolicyGiven | None = None,
        parent: str | None = None,
        limits: Limits | None = None,
        orphans: OrphanRule = "stop",
        loopback: bool = False,
        asks_above: bool = True,
        env: Mapping[str, Value] | None = None,
        start: bool = True,
        id: str | None = None,  # noqa: A002 - it is the session's
        resume: str | None = None,
        **launch: Any,
    ) -> SessionRecord:
        """A new session, which starts when there is room; with a prompt, it goes to work then.

        With `loopback` its agent may run others. By an agent it is made below that one, with a part
        of what that has; `asks_above`: its ancestors may be asked. `id` is a uuid that the caller
        has made up, so that a retry can't make a second one: the second is NameTaken. `resume` is a
        conversation of Claude Code's own in that folder, with which it goes on. Keywords not named
        here are fields of `LaunchSpec`: docs/sessions.md.
        """
        self._check_awake()
        wish = Wish(
            cwd=cwd, policy=policy, env=env or {}, launch=launch, id=id, name=name,
            labels=labels or {}, parent=parent, limits=limits or Limits(), orphans=orphans,
            prompt=prompt, start=start, loopback=loopback, asks_above=asks_above, resume=resume,
        )  # fmt: skip
        return await self._births.create(wish, by)

    async def create_external(
        self,
        *,
        kind: External,
        folder: str | os.PathLike[str],
        by: Person,
        name: str = "",
        policy: PolicyGiven = "ask",
        limits: Limits | None = None,
        labels: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002 - it is the session's
    ) -> SessionRecord:
        """A session whose process somebody else starts, and which is there until it is stopped: a
        `root` runs others by our tools, a `permit` only asks what it may (`outside`)."""
        self._check_awake()
        wish = Wish(
            cwd=folder, policy=policy, id=id, name=name, labels=labels or {}, start=False,
            limits=limits or Limits(), loopback=kind == "root", external=kind,
        )  # fmt: skip
        return await self._births.create(wish, by)

    async def fork(
        self,
        session: str,
        *,
        by: Person | Agent,
        prompt: Said | None = None,
        name: str = "",
        id: str | None = None,  # noqa: A002 - it is the session's
        at: str | None = None,
    ) -> SessionRecord:
        """A new session that goes on, by itself, from what this one has said, up to the message
        with the uuid `at`. An agent may fork those below it."""
        fork = Fork(prompt=prompt, name=name, id=id, at=at)
        return await self._births.fork(self._checked("fork", session), fork, by)

    # --- what is done with one

    async def send(
        self,
        session: str,
        prompt: Said,
        *,
        by: str = "",
        uuid: str | None = None,
        is_verbatim: bool = False,
    ) -> str:
        """Have the agent told this; gives the prompt's uuid once it is written down. Where it
        `is_verbatim`, the CLI reads no files and runs no commands that are named in it."""
        charge = self._checked("send", session)
        if not is_verbatim:
            await self._check_commands(charge, prompt)
        body = prompted(prompt, self._means.now(), by, uuid, is_verbatim=is_verbatim)
        if charge.pen.is_stuck:
            raise JournalUnwritable("the prompt was not taken: the log can't be written just now")
        await charge.take(body)
        return body.uuid

    async def interrupt(self, session: str, *, timeout: float | None = None) -> Interrupted:
        """End the turn that runs; what waits for an approval is cancelled."""
        self._checked("interrupt", session)
        return await self.live(session).interrupt(timeout=timeout)

    def live(self, session: str) -> Session:
        """The session that runs, for all that can be asked of a CLI."""
        self._check_awake()
        charge = self._sessions.get(session)
        if charge.agent is None:
            hint = "its process is not ours" if charge.record.external else "resume it first"
            raise NotPossible("ask the CLI", charge.record.state, hint, charge.id)
        return charge.agent.session

    async def stop(self, session: str, *, by: str = "", words: str = "") -> Stopped | None:
        """End it and all that it has started; its children are stopped or handed over."""
        charge = self._checked("stop", session)
        below = orphans_of(charge.id, self._guards.family)
        why = f"its parent {charge.id} was stopped"
        children = [self._sessions.get(child).stop("", why) for child in below.stop]
        stopped, *_ = await asyncio.gather(charge.stop(by, words), *children)
        if charge.record.external:
            self.outside.ended(charge.id, "it was stopped")
        return stopped

    async def start(
        self, session: str, *, prompt: Said | None = None, env: Mapping[str, str] | None = None
    ) -> SessionRecord:
        """Start it with a new conversation."""
        return await self._run("start", session, prompt, env)

    async def resume(
        self, session: str, *, prompt: Said | None = None, env: Mapping[str, str] | None = None
    ) -> SessionRecord:
        """Start it again, where its conversation was. `env` are values that were given by hand."""
        return await self._run("resume", session, prompt, env)

    async def _run(
        self, operation: Operation, session: str, prompt: Said | None, env: Mapping[str, str] | None
    ) -> SessionRecord:
        async with self._births.turn:  # two who look at the same room must not both take it
            charge, now = self._checked(operation, session), self._means.now()
            if env:
                self._means.secrets.setdefault(charge.id, {}).update(env)
            self._means.variables(charge.record)
            self._guards.check_start(charge)
            charge.is_to_stop = False
            # One that was never started begins with the conversation that it was made for.
            is_first = charge.record.launches == 0
            goes_on = operation == "resume" or is_first
            resume = charge.record.claude_session_id if goes_on else None
            events = [note(stream.QUEUED, stream.Queued(at=now, resume=resume))]
            if prompt is not None:
                await self._check_commands(charge, prompt)
                events.insert(0, note(stream.PROMPTED, prompted(prompt, now, "")))
            await charge.pen.stored(events)
            last = charge.pen.last_seq
            return await self._sessions.wait(charge, lambda record: record.seq >= last)

    async def _check_commands(self, charge: Charge, prompt: Said) -> None:
        if slash_commands(prompt):
            policy = await policy_under(self._means, charge.record)
            await check_commands(self._means, charge.record, prompt, policy)

    async def pause(self, session: str, *, by: str = "", words: str = "") -> None:
        """End the turn that runs, and tell the agent nothing more until `unpause`."""
        charge = self._checked("pause", session)
        self._guards.pause(charge, "person", words or f"by {by}" if by else words)
        await charge.pen.idle_or_stuck()

    async def unpause(self, session: str, *, by: str = "", cause: PauseCause = "person") -> None:
        charge = self._checked("unpause", session)
        body = stream.Unpaused(cause=cause, at=self._means.now(), by=by)
        await charge.store(stream.UNPAUSED, body)

    async def set_limits(self, session: str, limits: Limits, *, by: str) -> None:
        """Other limits from now on; where it was paused by the old ones, it goes on."""
        self._check_awake()
        await self._guards.set_limits(self._sessions.get(session), limits, by)

    async def set_policy(self, session: str, policy: PolicyGiven, *, by: Person) -> SessionRecord:
        """Another policy from now on, whether it runs or not, but between its turns. What people
        had remembered stays; the mode that somebody chose when they approved a plan does not."""
        charge = self._checked("set policy", session)
        return await put_under(self._means, self._sessions, charge, policy, by)

    async def delete(self, session: str) -> None:
        """Forget it, with all that was written down of it."""
        charge = self._checked("delete", session)
        self._guards.drop(charge)
        self._means.secrets.pop(charge.id, None)
        self._means.secret_values.forget(charge.id)
        await self._sessions.drop(charge)

    # --- what agents decide for those below them

    async def respond(
        self, approval_id: str, choice: Choice, *, by: Agent, shown: str | None = None
    ) -> Approval:
        """Decide what was put to this agent: MayNotDecide where that is not for it to grant."""
        self._check_awake()
        return await self._course.escalation.respond(approval_id, choice, by, shown)

    async def escalate(self, approval_id: str, *, by: Agent, why: str) -> Approval:
        """Have it put to who is above this agent, with its words; at last to people."""
        self._check_awake()
        return await self._course.escalation.escalate(approval_id, by, why)

    def logged_in(self) -> None:
        """Somebody has logged in, or the limit is lifted: all may go on."""
        self._check_awake()
        self._fleet.release()

    # --- looking

    def get(self, session: str) -> SessionRecord:
        """As it is now: a copy."""
        return copy(self._sessions.get(session).record)

    def list(self, where: Callable[[SessionRecord], bool] = lambda _: True) -> list[SessionRecord]:
        """The oldest first."""
        there = [charge.record for charge in self._sessions if charge.record.is_created]
        found = [copy(record) for record in there if where(record)]
        return sorted(found, key=lambda record: (record.created_at, record.id))

    def watch(self) -> AsyncIterator[SessionRecord | Forgotten]:
        """Each session as it is, then each again when it has changed, or was deleted."""
        self._check_awake()
        return self._sessions.watch()

    def listening(self, sessions: Iterable[str]) -> AbstractContextManager[Listener]:
        """Told whenever one of these sessions (by their ids) has changed, or was deleted."""
        self._check_awake()
        return self._sessions.audience.listening(sessions)

    async def wait(
        self,
        session: str,
        until: Callable[[SessionRecord], bool],
        timeout: float | None = None,
    ) -> SessionRecord:
        """Until its record is so."""
        self._check_awake()
        async with asyncio.timeout(timeout):
            return await self._sessions.wait(self._sessions.get(session), until)

    # --- the rest

    def _check_awake(self) -> None:
        if self.is_asleep:
            raise Asleep

    def _checked(self, operation: Operation, session: str) -> Charge:
        self._check_awake()
        charge = self._sessions.get(session)
        check = check_possible_elsewhere if charge.record.external else check_possible
        check(operation, charge.record.state, charge.id)
        return charge
