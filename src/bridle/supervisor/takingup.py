"""Going on with an agent that another supervisor has started: its past told, its inbox completed.

Owns the order of that; what comes after is the `Agent`'s, and when to do it the `Charge`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ForeignInput, InvalidState
from ..process.detached import DetachedProcess
from ..process.spool import ProcessId, Spool
from ..session.gate import Gate
from ..session.past import Past
from ..views import stream
from .agent import Agent
from .inbox import compare
from .making import Made, make_again
from .means import Means
from .notes import note
from .record import Launch
from .takeover import Replayed, Saved, replay, saved_state

if TYPE_CHECKING:
    from .charge import Charge

#: How long a shim that holds its lock may take to say who it is, in hundredths of a second.
SHIM_TRIES = 500


class TakenUp:
    """An agent that knows its past."""

    def __init__(self, agent: Agent, past: Past, done: Replayed, offset: int) -> None:
        self.agent = agent
        self._past = past
        self._done = done
        self._offset = offset

    async def go_on(self, *, is_to_stop: bool) -> None:
        if is_to_stop:
            await self._stop()
            return
        await self._go_on()

    async def _stop(self) -> None:
        """It is followed first: what it has said is kept."""
        going = asyncio.ensure_future(self._go_on())
        followed = asyncio.ensure_future(self.agent.followed.wait())
        try:
            await asyncio.wait([going, followed], return_when=asyncio.FIRST_COMPLETED)
            await self.agent.stop()
        finally:
            for task in (going, followed):
                task.cancel()
            await asyncio.wait([going, followed])

    async def _go_on(self) -> None:
        await self.agent.go_on(self._past, self._offset, is_ready=self._done.is_ready)
        if self._done.is_damaged:
            self.agent.resync.damaged(self.agent.session)


class TakingUp:
    """One launch of one session."""

    def __init__(
        self, means: Means, charge: Charge, launch: Launch, over: Callable[[Agent], None]
    ) -> None:
        self._means = means
        self._charge = charge
        self._launch = launch
        self._over = over
        self._spool = means.spool(launch.id)

    async def agent(self) -> TakenUp:
        charge, launch = self._charge, self._launch
        made = await make_again(self._means, charge.record, launch.id)
        saved = await saved_state(self._means, charge.id, launch.id)
        try:
            agent = self._made(made, saved)
        except InvalidState:  # of another version: all of its past is read
            saved = Saved(launch=launch.id, seq=0)
            agent = self._made(made, saved)
        try:
            return await self._with_its_past(agent, saved, made.gate)
        except BaseException:
            agent.outbox.close()  # whoever tries it again writes for it
            raise

    async def _with_its_past(self, agent: Agent, saved: Saved, gate: Gate) -> TakenUp:
        charge, launch = self._charge, self._launch
        past = agent.session.past()
        done = await replay(self._means, charge.id, saved, past)
        agent.keeper.recalled(done.lines)
        appended = await self._completed(agent, saved.inbox, done.written, past)
        gate.is_in_past = False
        self._let_go_on(agent)
        self._withdraw_what_is_settled(past)
        taken = stream.TakenUp(
            launch=launch.id,
            at=self._means.now(),
            requests=len(past.open_requests()),
            appended=appended,
        )
        charge.write(stream.TAKEN_UP, taken)
        return TakenUp(agent, past, done, launch.output_end)

    def _made(self, made: Made, saved: Saved) -> Agent:
        return Agent(
            made,
            detached(made, self._launch.version),
            self._charge.pen,
            self._over,
            inbox_end=self._spool.inbox_size() if self._spool.folder.exists() else 0,
            offsets=(self._launch.output_end, self._launch.stderr_end),
            saved=saved.session,
        )

    async def _completed(self, agent: Agent, start: int, written: list[bytes], past: Past) -> int:
        try:
            return self._complete_inbox(agent, start, written, past)
        except ForeignInput as error:
            # First it is ended, then what it has said is read, as of any that has ended.
            await agent.was_foreign(str(error))
            return 0

    def _complete_inbox(self, agent: Agent, start: int, written: list[bytes], past: Past) -> int:
        """What was written down and not appended is appended now; the rest must be as written. What
        went out first and was not written down is an answer all the same."""
        if not self._spool.folder.exists():
            return 0
        if agent.outbox.end < start:
            raise ForeignInput("somebody shortened it")
        there = self._spool.read_inbox(start, agent.outbox.end - start)
        found = compare(there, written)
        if found.foreign:
            raise ForeignInput(f"somebody else wrote to it: {found.foreign[:200]!r}")
        for line in found.unlogged:
            past.wrote(line)
            agent.outbox.note_late(line, start + there.index(line))
        if found.missing:
            agent.outbox.add(found.missing)
        agent.outbox.ring()  # whoever appended the rest may have had no time to
        return len(found.missing)

    def _let_go_on(self, agent: Agent) -> None:
        """A supervisor that was killed may have frozen it, for a disk that was full, and have had
        no room to say so."""
        cli = self._spool.cli()
        seen = cli.seen() if cli else None
        if seen and "disk" not in self._charge.record.facts.pauses and seen.is_still():
            agent.process.watch()
            agent.process.unpause()

    def _withdraw_what_is_settled(self, past: Past) -> None:
        """What the agent took back, or got an answer to, just before the log was to say so."""
        asked: set[str | None] = set()
        for event in past.open_requests():
            request = getattr(event, "request", None)
            asked.add(getattr(request, "tool_use_id", None))
            asked.add(getattr(request, "request_id", None))
            asked.add(getattr(getattr(request, "input", None), "tool_use_id", None))
        approvals = self._means.approvals
        for approval in approvals.unfinished(self._charge.id, self._launch.id):
            if approval.status == "pending" and approval.tool_use_id not in asked - {None}:
                approvals.withdraw(approval.id)


async def was_started(means: Means, charge: Charge, launch: Launch) -> bool:
    """It was intended: whether a shim has begun. If not, none will from now on, and it waits for
    its place again: nobody has taken back that it is to run."""
    spool = means.spool(launch.id)
    shim = await _shim_of(spool)
    if shim is None:
        await _put_back(means, charge, launch)
        spool.remove()
        return False
    await charge.store(stream.STARTED, started(launch.id, shim, means.now()))
    return True


async def _shim_of(spool: Spool) -> ProcessId | None:
    for _ in range(SHIM_TRIES):
        if spool.abandon() or spool.shim():
            return spool.shim()
        await asyncio.sleep(0.01)  # it lives, and has not said yet who it is
    return None


async def _put_back(means: Means, charge: Charge, launch: Launch) -> None:
    words, now = "the supervisor ended before the process was started", means.now()
    ended = stream.LaunchEnded(launch=launch.id, how="not started", at=now, words=words)
    events = [note(stream.ENDED, ended)]
    if not charge.record.facts.is_stop_asked and not charge.is_to_stop:
        again = stream.Queued(at=now, resume=launch.resume, fork=launch.fork, node=launch.node)
        events.append(note(stream.QUEUED, again))
    await charge.pen.stored(events)


def started(launch: str, shim: ProcessId, now: float, version: str | None = None) -> stream.Started:
    return stream.Started(
        launch=launch, pid=shim.pid, born=shim.born, boot=shim.boot, at=now, version=version
    )


def detached(made: Made, version: str | None = None) -> DetachedProcess:
    means = made.means
    return DetachedProcess(
        made.spec,
        means.spool(made.launch),
        means.wakes,
        made.launch,
        means.environ,
        is_gated=True,
        version=version,
    )
