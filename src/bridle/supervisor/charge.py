"""One session in the supervisor's care, from its creation to its deletion, with or without a
process.

Owns what is done with it, one thing at a time: start, take up, tell, stop. Its record follows from
its stream alone, so nothing here changes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from ..errors import BridleError, ForeignInput, words_of
from ..ids import new_token
from ..process.detached import DetachedProcess
from ..process.spec import LaunchSpec
from ..process.spool import Spool
from ..process.transport import Stopped
from ..session.past import Past
from ..views import stream
from ..views.stream import PauseCause
from .agent import Agent
from .inbox import compare
from .making import Made, make_again, make_new
from .means import Means
from .notes import entry, note
from .pen import Pen
from .record import Launch, SessionRecord, Waiting
from .takeover import Saved, keep, replay, saved_state

_log = logging.getLogger(__name__)


class Charge:
    """`changed` is told when something about its process is no longer as it was."""

    def __init__(
        self, means: Means, record: SessionRecord, changed: Callable[[Charge], None]
    ) -> None:
        self._means = means
        self._changed = changed
        self.record = record
        self.pen = Pen(means.owners.of(record.id))
        self.agent: Agent | None = None
        #: The state that was last written down.
        self.published = record.published
        self._work: asyncio.Task[None] | None = None
        #: There is an agent, or there will be none.
        self._is_made = asyncio.Event()
        self._sent: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._is_ready = False
        #: Causes to pause that are on their way to the log.
        self.pausing: set[PauseCause] = set()
        #: Whether nobody looks after it any more.
        self.has_left = False

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def is_at_work(self) -> bool:
        """Whether it has a process, or is about to."""
        return self.agent is not None or self._work is not None

    @property
    def is_running(self) -> bool:
        """Whether its process lives, as far as is known."""
        return self.agent is not None and self.agent.process.exit is None

    def write(self, kind: str, body: msgspec.Struct) -> None:
        """Write an event down, and do not wait for it."""
        self.pen.write([note(kind, body)])

    async def store(self, kind: str, body: msgspec.Struct) -> None:
        await self.pen.stored([note(kind, body)])

    # --- starting

    def start(self) -> None:
        """Start a process, now. What comes of it is in the record."""
        self._begin(self._start())

    def take_up(self) -> None:
        """Go on with a process that another supervisor has started, or find out how it ended."""
        self._begin(self._take_up())

    def _begin(self, work: object) -> None:
        assert self._work is None
        self._is_made.clear()
        self._work = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._work.add_done_callback(self._begun)

    def _begun(self, work: asyncio.Task[None]) -> None:
        self._work = None
        self._is_made.set()
        if not work.cancelled() and (error := work.exception()):
            _log.error("session %s: %s", self.id, words_of(error), exc_info=error)
        self._changed(self)

    async def begun(self, limit: float | None = None) -> None:
        """Until what is being started has started, or failed to; or so many seconds."""
        if self._work:
            await asyncio.wait([self._work], timeout=limit)

    async def _start(self) -> None:
        record, launch, now = self.record, new_token(8), self._means.now()
        resume, fork = record.resume, record.is_fork
        intended = stream.Intended(launch=launch, at=now, resume=resume, fork=fork)
        await self.store(stream.INTENDED, intended)
        await keep(self._means, self.id, Saved(launch=launch, seq=self.pen.last_seq))
        try:
            secrets = self._means.secrets.get(self.id, {})
            made = await make_new(self._means, record, launch, secrets)
            made.spec = _in_conversation(made.spec, resume, fork=fork)
            process = self._process(made, is_gated=True)
            shim = await process.spawn()
            started = stream.Started(
                launch=launch,
                pid=shim.pid,
                born=shim.born,
                boot=shim.boot,
                at=self._means.now(),
                version=process.version,
            )
            await self.store(stream.STARTED, started)
            self.agent = Agent(made, process, self.pen, self._over)
            self._is_made.set()
        except (BridleError, OSError, ValueError, TypeError) as error:
            await self._not_started(launch, error)
            return
        await self._meet(self.agent)

    async def _meet(self, agent: Agent) -> None:
        try:
            await agent.start()
        except BridleError as error:
            await self._no_handshake(agent, error)
            return
        self._is_ready = True

    async def _no_handshake(self, agent: Agent, error: BridleError) -> None:
        if not self.has_left:
            _log.error("session %s: no handshake: %s", self.id, words_of(error))
            await agent.fail(words_of(error))

    async def _not_started(self, launch: str, error: Exception) -> None:
        words = words_of(error)
        ended = stream.LaunchEnded(
            launch=launch, how="not started", at=self._means.now(), words=words
        )
        await self.store(stream.ENDED, ended)
        self._means.spool(launch).remove()

    def _process(
        self, made: Made, *, is_gated: bool, version: str | None = None
    ) -> DetachedProcess:
        means, spool = self._means, self._means.spool(made.launch)
        return DetachedProcess(
            made.spec, spool, means.wakes, made.launch, means.environ,
            is_gated=is_gated, version=version,
        )  # fmt: skip

    # --- taking up

    async def _take_up(self) -> None:
        launch = self.record.launch
        assert launch
        spool = self._means.spool(launch.id)
        if launch.pid is None and not await self._was_started(launch, spool):
            return
        made = await make_again(self._means, self.record, launch.id)
        saved = await saved_state(self._means, self.id, launch.id)
        process = self._process(made, is_gated=True, version=launch.version)
        agent = Agent(
            made,
            process,
            self.pen,
            self._over,
            inbox_end=spool.inbox_size() if spool.is_made() else 0,
            offsets=(launch.output_end, launch.stderr_end),
            saved=saved.session,
        )
        self.agent = agent
        past = agent.session.past()
        done = await replay(self._means, self.id, saved, past)
        agent.keeper.recalled(done.lines)
        try:
            appended = self._complete_inbox(agent, spool, saved.inbox, done.written, past)
        except ForeignInput as error:
            # First it is ended, then what it has said is read, as of any that has ended.
            await agent.was_foreign(str(error))
            appended = 0
        made.gate.is_in_past = False
        self._withdraw_what_is_settled(past)
        taken = stream.TakenUp(
            launch=launch.id,
            at=self._means.now(),
            requests=len(past.open_requests()),
            appended=appended,
        )
        self.write(stream.TAKEN_UP, taken)
        try:
            await agent.go_on(past, launch.output_end, is_ready=done.is_ready)
        except BridleError as error:
            await self._no_handshake(agent, error)
            return
        if self.record.facts.is_stop_asked:
            await agent.stop()
            return
        self._is_ready = not agent.is_hijacked

    def _withdraw_what_is_settled(self, past: Past) -> None:
        """What the agent took back, or got an answer to, just before the log was to say so."""
        asked: set[str | None] = set()
        for event in past.open_requests():
            request = getattr(event, "request", None)
            asked.add(getattr(request, "tool_use_id", None))
            asked.add(getattr(getattr(request, "input", None), "tool_use_id", None))
        assert self.agent
        for approval in self._means.approvals.unfinished(self.id, self.agent.launch):
            if approval.status == "pending" and approval.tool_use_id not in asked - {None}:
                self._means.approvals.withdraw(approval.id)

    async def _was_started(self, launch: Launch, spool: Spool) -> bool:
        """It was intended: whether a shim has begun. If not, none will from now on, and it waits
        for its place again: nobody has taken back that it is to run."""
        if spool.abandon():
            words = "the supervisor ended before the process was started"
            now = self._means.now()
            ended = stream.LaunchEnded(launch=launch.id, how="not started", at=now, words=words)
            events = [note(stream.ENDED, ended)]
            if not self.record.facts.is_stop_asked:
                again = stream.Queued(at=now, resume=launch.resume, fork=launch.fork)
                events.append(note(stream.QUEUED, again))
            await self.pen.stored(events)
            spool.remove()
            return False
        shim = spool.shim()
        if shim:
            started = stream.Started(
                launch=launch.id, pid=shim.pid, born=shim.born, boot=shim.boot, at=self._means.now()
            )
            await self.store(stream.STARTED, started)
        return True

    def _complete_inbox(
        self, agent: Agent, spool: Spool, start: int, written: list[bytes], past: Past
    ) -> int:
        """What was written down and not appended is appended now; the rest must be as written. What
        went out first and was not written down is an answer all the same."""
        if not spool.is_made():
            return 0
        if agent.outbox.end < start:
            raise ForeignInput("somebody shortened it")
        there = spool.read_inbox(start, agent.outbox.end - start)
        found = compare(there, written)
        if found.foreign:
            raise ForeignInput(f"somebody else wrote to it: {found.foreign[:200]!r}")
        for line in found.unlogged:
            past.wrote(line)
            agent.outbox.note_late(line, start + there.index(line))
        if found.missing:
            agent.outbox.add(found.missing)
        spool.ring()  # whoever appended the rest may have had no time to
        return len(found.missing)

    # --- telling

    def deliver(self, *, one_by_one: bool) -> None:
        """Tell it the prompts that wait, if it can be told; or the next one, after its turn."""
        waiting = [one for one in self.record.waiting if one.uuid not in self._sent]
        if one_by_one:
            is_busy = self.record.facts.is_turn_running or len(waiting) < len(self.record.waiting)
            waiting = [] if is_busy else waiting[:1]
        if self._is_ready and self.agent and waiting and self._sending is None:
            self._sending = asyncio.ensure_future(self._deliver(self.agent, waiting))
            self._sending.add_done_callback(self._delivered)

    async def _deliver(self, agent: Agent, waiting: list[Waiting]) -> None:
        for one in waiting:
            line = bytes(one.line) or await self._line_of(one.seq)
            if self.agent is agent and self._is_ready:
                self._sent.add(one.uuid)
                agent.session.prompt(one.uuid, line + b"\n").discard()

    def _delivered(self, sending: asyncio.Task[None]) -> None:
        self._sending = None
        if not sending.cancelled() and (error := sending.exception()):
            _log.error("session %s was not told a prompt: %s", self.id, words_of(error))

    async def _line_of(self, seq: int) -> bytes:
        [event, *_] = await self._means.journal.log.read(self.id, seq - 1, 1)
        payload = await self._means.journal.payload(event)
        whole = msgspec.structs.replace(entry(event), body=payload, is_cut=False)
        body: stream.Prompted = stream.body_of(whole)
        return bytes(body.line)

    # --- ending

    async def stop(self, by: str = "", words: str = "") -> Stopped | None:
        """End its process, if it has one, and have none be started."""
        self.write(stream.STOP_ASKED, stream.StopAsked(at=self._means.now(), by=by, words=words))
        if self._work:
            await self._is_made.wait()
        # Not until it has shaken hands: it may be one that never does.
        stopped = await self.agent.stop() if self.agent else None
        await self.begun()
        return stopped

    def _over(self, agent: Agent) -> None:
        if self.agent is agent:
            self.agent = None
            self._is_ready = False
            self._sent.clear()
            self._changed(self)

    async def leave(self) -> None:
        """Look after it no more; what runs goes on."""
        self.has_left = True
        self._is_ready = False
        for task in (self._work, self._sending):
            if task:
                task.cancel()
                await asyncio.wait([task])
        if self.agent:
            await self.agent.leave()
        await self.pen.idle_or_stuck()
        self.pen.close()


def _in_conversation(spec: LaunchSpec, resume: str | None, *, fork: bool) -> LaunchSpec:
    if resume is None:
        return spec
    return msgspec.structs.replace(spec, resume=resume, fork_session=fork)
