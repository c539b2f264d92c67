"""One live agent: its process, its session, and their way to the log and back.

Owns the order at its start and at its end; what is said in between passes through `intake` and
`outbox`. Let go (`leave`), the process stays, and a later `Agent` goes on with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial

from ..approvals.desk import Desk
from ..errors import JournalClosed
from ..process.detached import DetachedProcess
from ..process.transport import Exit, Receiver, StopLimits, Stopped
from ..session.commit import Batch, Seams, Then
from ..session.past import Past, SavedSession
from ..session.session import AT_ONCE, Session
from ..views import stream
from ..views.stream import LaunchEnd, LaunchEnded
from .intake import Intake
from .making import Made
from .notes import note
from .outbox import Outbox
from .pen import Pen
from .resync import Resync, is_damage
from .takeover import Keeper

#: How long a stop waits for its end to be written down.
WRITTEN_SECONDS = 5.0
RETRY_SECONDS = 0.5
#: While so much waits to be written down, no more is read.
MOST_BACKLOG = 8 * 1024 * 1024
#: So many characters are kept of what it said last: all of them may have to be escaped.
MOST_WORDS = 16_000

_log = logging.getLogger(__name__)


class Agent:
    """One launch. `over` is told once, when nothing of it is left."""

    def __init__(
        self,
        made: Made,
        process: DetachedProcess,
        pen: Pen,
        over: Callable[[Agent], None],
        *,
        inbox_end: int = 0,
        offsets: tuple[int, int] | None = None,
        saved: SavedSession | None = None,
    ) -> None:
        means = made.means
        self.id = made.record.id
        self.launch = made.launch
        self.process = process
        self.desk: Desk = made.desk
        self._means = means
        self._pen = pen
        self._over = over
        self._words = ""
        self._is_stopping = False
        #: It is ended at once: nobody knows what it does.
        self.is_halted = False
        self._has_met = False
        #: What it says is heard from now on.
        self.followed = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._has_left = False
        self.outbox = Outbox(
            pen, process.spool, self.launch, end=inbox_end, foreign=self.is_foreign
        )
        process.inbox_changed = self.outbox.check
        self._intake = Intake(pen, means.journal.log, self.id, self.launch, self.outbox)
        seams = Seams(self._commit, self.outbox.send, self._begin, self.halt)
        ear = _Ear(self, offsets)
        self.session = Session(ear, made.handlers, made.options, seams, saved)
        self._intake.stored = offsets[0] if offsets else 0
        self._intake.consumed = lambda: self.session.consumed
        self.resync = Resync(self.launch, means.now, self._resynced)
        self.keeper = Keeper(means, self.id, self.launch, self.session, pen, self.outbox, process)
        self.keeper.is_damaged = self.resync.is_due

    # --- from its start to its end

    async def start(self) -> None:
        """Shake hands with a process that was just started."""
        await self.session.start()
        self._has_met = True
        await self._pen.stored([note(stream.READY, stream.Ready(launch=self.launch, at=self._now))])

    async def go_on(self, past: Past, offset: int, *, is_ready: bool) -> None:
        """With a process that another has started."""
        self._has_met = is_ready
        await self.session.go_on(past, offset)
        self._has_met = True
        if not is_ready:
            ready = stream.Ready(launch=self.launch, at=self._now)
            await self._pen.stored([note(stream.READY, ready)])

    async def stop(self, limits: StopLimits | None = None) -> Stopped:
        """End it and all that it has started; when this returns, nothing of it is left."""
        self._is_stopping = True
        stopped = await self.session.stop(limits or self._means.stop)
        self.has_ended()
        if self._ending:
            # Where the log can't be written, that is done when it can.
            await asyncio.wait([self._ending], timeout=WRITTEN_SECONDS)
        return stopped

    async def fail(self, words: str) -> None:
        """End it because it is of no use."""
        self._words = self._words or words
        if self._ending is None:
            self._begin_to_end("exited")
        await self.ended()

    async def ended(self) -> None:
        """Until nothing of it is left, and that is written down."""
        if self._ending:
            await asyncio.shield(self._ending)

    async def leave(self) -> None:
        """We go, and the agent stays."""
        self._has_left = True
        if self._ending:
            # It is ended, whoever looks: a later controller finds out how.
            await asyncio.wait([self._ending], timeout=WRITTEN_SECONDS)
            self._ending.cancel()
        self.resync.close()
        self.desk.detach()
        await self.session.leave()
        self.outbox.close()
        self.process.release()

    # --- what passes

    def _commit(self, batch: Batch, then: Then) -> None:
        self._intake.commit(batch, partial(self._stored, then))
        if is_damage(batch):
            self.resync.damaged(self.session)
        if self._pen.backlog > MOST_BACKLOG:
            self.process.pause_reading()
            self._pen.write([], self._read_on)
        self.keeper.heard(len(batch))

    def _stored(self, then: Then, batch: Batch, error: BaseException | None) -> None:
        self.keeper.give_back(self._intake.stored)
        then(batch, error)

    def _read_on(self) -> None:
        if not self._has_left:
            self.process.resume_reading()

    async def _begin(self, request_id: str) -> None:
        """What may change something is done at most once, whatever becomes of us."""
        begun = stream.Begun(launch=self.launch, request_id=request_id)
        await self._pen.stored([note(stream.BEGUN, begun)])

    def _resynced(self, body: stream.Resynced) -> None:
        self._pen.write([note(stream.RESYNCED, body)])

    def complained(self, text: str) -> None:
        end = self.process.stderr_offset
        parts = [text[at : at + MOST_WORDS] for at in range(0, len(text), MOST_WORDS)]
        bodies = (stream.Stderr(launch=self.launch, end=end, text=part) for part in parts)
        self._pen.write([note(stream.STDERR, body) for body in bodies])

    def is_foreign(self, words: str) -> None:
        """Somebody else has written to its input."""
        self.halt(f"its input is not only ours: {words}")

    def halt(self, words: str) -> None:
        """End it at once, because nobody knows what it does."""
        self._halted(words)
        with contextlib.suppress(OSError):  # then its end begins with it
            self.process.kill()
        if self._ending is None:
            self._begin_to_end("killed")

    async def was_foreign(self, words: str) -> None:
        """The same, before it is followed: it is ended, and can be read then."""
        self.process.watch()
        self._halted(f"its input is not only ours: {words}")
        await self._stopped(AT_ONCE)

    def _halted(self, words: str) -> None:
        self._words, self.is_halted = words, True
        self.outbox.close()
        _log.error("session %s is stopped: %s", self.id, words)

    # --- the end

    def has_ended(self) -> None:
        """The process is gone, and all that it wrote has been read."""
        if not self._has_left and self._ending is None:
            self._begin_to_end("exited")

    def _begin_to_end(self, how: LaunchEnd) -> None:
        self._ending = asyncio.ensure_future(self._end(how))
        self._ending.add_done_callback(self._is_over)

    async def _end(self, how: LaunchEnd) -> None:
        limits = AT_ONCE if self.is_halted else self._means.stop
        self.resync.close()
        # Its tools may have outlived it; and with a foreign line it may be at work still.
        stopped = await self._stopped(limits)
        await self.process.drained()
        await self._pen.idle()
        had_result = not self.session.book.was_cut_off
        await self.session.stop(limits)
        ended = self._how(how, stopped, had_result=had_result)
        try:
            await self._pen.stored([note(stream.ENDED, ended)])
        except JournalClosed:
            return  # we have gone meanwhile: the next who looks finds out the same
        self.outbox.close()
        self.process.release()
        self.process.spool.remove()

    async def _stopped(self, limits: StopLimits) -> Stopped:
        # To close its input would have it read what somebody else wrote there.
        return await stopped_at_last(self.process, limits, first_kill=self.is_halted)

    def _is_over(self, ending: asyncio.Task[None]) -> None:
        if not ending.cancelled() and (error := ending.exception()):
            _log.error("session %s: its end is not clean: %s", self.id, error, exc_info=error)
        if not self._has_left:
            self._over(self)

    def _how(self, how: LaunchEnd, stopped: Stopped, *, had_result: bool) -> LaunchEnded:
        status = stopped.exit or self.process.exit or Exit()
        if self.is_halted:
            how = "killed"
        elif self._is_stopping:
            how = "stopped"
        elif how == "exited" and status == Exit():
            how = "vanished"
        elif how == "exited" and status.signal is not None:
            how = "killed"
        elif how == "exited" and not self._has_met and status.code == 0:
            how = "not started"  # whatever it thinks of it: it was of no use
        return LaunchEnded(
            launch=self.launch,
            how=how,
            at=self._now,
            code=status.code,
            signal=status.signal,
            had_result=had_result,
            words=(self._words or self.session.book.complaint)[:MOST_WORDS],
            stderr=self.process.stderr[-MOST_WORDS:],
            survivors=stopped.survivors,
        )

    @property
    def _now(self) -> float:
        return self._means.now()


async def stopped_at_last(
    process: DetachedProcess, limits: StopLimits, *, first_kill: bool = False
) -> Stopped:
    """End it, however often nobody can be looked for: without descriptors, for example."""
    while True:
        try:
            if first_kill:
                process.kill()
            return await process.stop(limits)
        except OSError as error:
            _log.error("launch %s can't be ended yet: %s", process.launch, error)
            await asyncio.sleep(RETRY_SECONDS)


class _Ear:
    """The transport of a supervised session: the process itself, with an agent that listens."""

    def __init__(self, agent: Agent, offsets: tuple[int, int] | None) -> None:
        self._agent = agent
        self._process = agent.process
        self._offsets = offsets
        self._receiver: Receiver | None = None

    @property
    def version(self) -> str | None:
        return self._process.version

    @property
    def exit(self) -> Exit | None:
        return self._process.exit

    @property
    def stderr(self) -> str:
        return self._process.stderr

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._process.follow(self, *(self._offsets or (0, 0)))
        self._agent.followed.set()
        if self._offsets is None:
            # Of one that runs already it is known; and its program may be another by now.
            await self._process.identify()

    def write(self, data: bytes) -> None:
        self._process.write(data)

    def close_input(self) -> None:
        self._process.close_input()

    async def stop(self, limits: StopLimits, *, asked: bool = False) -> Stopped:
        return await self._process.stop(limits, asked=asked)

    # --- what the process tells

    def received(self, data: bytes) -> None:
        assert self._receiver
        self._receiver.received(data)

    def complained(self, text: str) -> None:
        self._agent.complained(text)

    def ended(self) -> None:
        assert self._receiver
        self._receiver.ended()
        self._agent.has_ended()
