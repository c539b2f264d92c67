"""One session in the supervisor's care, from its creation to its deletion, with or without a
process.

Owns what is done with it, one thing at a time: start, take up, tell, stop. Its record follows from
its stream alone, so nothing here changes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from ..errors import BridleError, LaunchFailed, words_of
from ..ids import new_token
from ..journal import NewEvent
from ..journal.events import MAX_BODY
from ..policy.policy import Policy
from ..process.detached import DetachedProcess
from ..process.spec import LaunchSpec
from ..process.transport import Stopped
from ..session.folder import survey_of
from ..session.user_rules import user_rules
from ..views import stream
from ..views.stream import PauseCause
from .agent import MOST_WORDS, WRITTEN_SECONDS, Agent, stopped_at_last
from .making import make_new, spec_of
from .means import Means
from .notes import entry, note
from .pen import Pen
from .record import Launch, SessionRecord, Waiting
from .takeover import Saved, keep
from .takingup import TakenUp, TakingUp, detached, started, was_started

#: What can't be taken up is tried again after so many seconds each.
TAKE_UP_PAUSES = (0.1, 0.5)

_log = logging.getLogger(__name__)


class Charge:
    """`changed` is told when something about its process is no longer as it was."""

    def __init__(
        self, means: Means, record: SessionRecord, changed: Callable[[Charge], None]
    ) -> None:
        self._means = means
        self._changed = changed
        self.record = record
        self.pen = Pen(means.owners.of(record.id), self._secrets_in)
        self.agent: Agent | None = None
        #: The policy that somebody has put it under since we look after it.
        self._under: Policy | None = None
        #: The state that was last written down.
        self.published = record.published
        self._work: asyncio.Task[None] | None = None
        #: There is an agent, or there will be none.
        self._is_made = asyncio.Event()
        #: Uuids of prompts on their way to the log, and of those that were told: until the record
        #: knows it.
        self._taking: set[str] = set()
        self._sent: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._is_ready = False
        #: Causes to pause that are on their way to the log.
        self.pausing: set[PauseCause] = set()
        #: Somebody has said that none is to be started; the log may not know yet.
        self.is_to_stop = False
        #: One change of its policy at a time, and none while it is deleted.
        self.changing = asyncio.Lock()
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

    @property
    def is_in_turn(self) -> bool:
        """Whether it works, waits for an approval, or is about to."""
        facts = self.record.facts
        is_busy = facts.phase == "starting" or facts.is_turn_running or facts.pending > 0
        return bool(self._sent) or self._work is not None or (facts.has_process and is_busy)

    def _secrets_in(self, events: Sequence[NewEvent]) -> list[NewEvent]:
        """What was kept from view and is about to be in the stream: a later supervisor must know
        it, and finds it there alone."""
        said = self._means.secret_values.said_in(self.id, (event.body for event in events))
        return [note(stream.SECRET_SAID, stream.SecretSaid(name=n, value=v)) for n, v in said]

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

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._work is None
        self._is_made.clear()
        self._work = asyncio.ensure_future(work)
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
        record, launch = self.record, new_token(8)
        intended = stream.Intended(
            launch=launch,
            at=self._means.now(),
            resume=record.resume,
            fork=record.is_fork,
            node=record.node,
        )
        try:
            found = await asyncio.to_thread(survey_of, record.folder)
            users = await asyncio.to_thread(user_rules, spec_of(self._means, record))
            rules = dict.fromkeys((rule.behavior, rule.text) for rule in (*found.rules, *users))
            intended = _with_rules(intended, tuple(rules))
        except Exception as error:  # noqa: BLE001 - whatever it is, the launch comes to its end
            await self.store(stream.INTENDED, intended)
            await self._not_started(launch, error)
            return
        if self.is_to_stop:
            return  # the log has that already: an intent behind it would undo it
        await self._stored_intent(intended)
        try:
            made = await make_new(self._means, record, launch, found)
            made.spec = _in_conversation(made.spec, intended)
            process = detached(made)
            if self.is_to_stop:
                raise LaunchFailed("it was stopped before it was started")
            shim = await process.spawn()
        except Exception as error:  # noqa: BLE001 - a user's hooks may fail in any way
            _log.warning("session %s can't be started: %s", self.id, words_of(error))
            await self._not_started(launch, error)
            return
        # From here on it can be stopped, whether or not anything can be written down.
        agent = self._look_after(Agent(made, process, self.pen, self._over))
        self.write(stream.STARTED, started(launch, shim, self._means.now(), process.version))
        await self._meet(agent)

    def _look_after(self, agent: Agent) -> Agent:
        self.agent = agent
        if self._under:  # perhaps since it was made, of the policy before
            self.put_under(self._under)
        self._is_made.set()
        return agent

    def put_under(self, policy: Policy) -> None:
        """Judge it by this policy from now on, and all later runs of it."""
        self._under = policy
        if self.agent and self.agent.session.policy:
            self.agent.session.policy.apply(policy)

    async def _stored_intent(self, intended: stream.Intended) -> None:
        await self.store(stream.INTENDED, intended)
        try:
            saved = Saved(launch=intended.launch, seq=self.pen.last_seq)
            await keep(self._means, self.id, saved)
        except BridleError as error:  # the next start will read more
            _log.warning("session %s: %s", self.id, words_of(error))

    async def _meet(self, agent: Agent) -> None:
        try:
            await agent.start()
        except Exception as error:  # noqa: BLE001 - one that is not followed is of no use
            await self._no_handshake(agent, error)
            return
        self._is_ready = True

    async def _no_handshake(self, agent: Agent, error: Exception) -> None:
        if not self.has_left:
            _log.error("session %s: no handshake: %s", self.id, words_of(error))
            await agent.fail(words_of(error))

    async def _not_started(self, launch: str, error: Exception) -> None:
        words = words_of(error)[:MOST_WORDS]
        ended = stream.LaunchEnded(
            launch=launch, how="not started", at=self._means.now(), words=words
        )
        await self.store(stream.ENDED, ended)
        self._means.spool(launch).remove()

    # --- taking up

    async def _take_up(self) -> None:
        launch = self.record.launch
        assert launch
        try:
            taken = await self._taken(launch)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not run unseen
            _log.exception("session %s can't be taken up", self.id)
            await self._give_up(launch, error)
            return
        if taken is None:
            return
        self._look_after(taken.agent)
        is_to_stop = self.record.facts.is_stop_asked or self.is_to_stop
        try:
            await taken.go_on(is_to_stop=is_to_stop)
        except Exception as error:  # noqa: BLE001 - one that is not followed is of no use
            await self._no_handshake(taken.agent, error)
            return
        self._is_ready = not taken.agent.is_halted and not is_to_stop

    async def _taken(self, launch: Launch) -> TakenUp | None:
        """What fails for a passing reason is tried again before it is given up."""
        pauses = iter(TAKE_UP_PAUSES)
        while True:
            try:
                if launch.pid is None and not await was_started(self._means, self, launch):
                    return None
                return await TakingUp(self._means, self, launch, self._over).agent()
            except (BridleError, OSError) as error:
                pause = next(pauses, None)
                if pause is None:
                    raise
                _log.warning("session %s is not taken up yet: %s", self.id, words_of(error))
                await asyncio.sleep(pause)

    async def _give_up(self, launch: Launch, error: Exception) -> None:
        """It can't be looked after: all of it is ended, and what it said last is lost."""
        spool = self._means.spool(launch.id)
        process = DetachedProcess(LaunchSpec(), spool, self._means.wakes, launch.id)
        stopped = await stopped_at_last(process, self._means.stop)
        words = f"it could not be taken up: {words_of(error)}"[:1000]
        ended = stream.LaunchEnded(
            launch=launch.id,
            how="killed",
            at=self._means.now(),
            words=words,
            survivors=stopped.survivors,
        )
        for approval in self._means.approvals.unfinished(self.id, launch.id):
            self._means.approvals.withdraw(approval.id, "process ended", words)
        await self.store(stream.ENDED, ended)
        process.release()
        spool.remove()

    # --- telling

    async def take(self, body: stream.Prompted) -> None:
        """Have it told this, once it is written down. What it is to be told already, or is just
        answering, is not taken twice."""
        record = self.record
        if body.uuid in record.unanswered or any(one.uuid == body.uuid for one in record.waiting):
            return
        if body.uuid in self._taking:
            await self.pen.stored([])  # which is behind the first
            return
        self._taking.add(body.uuid)
        await self.store(stream.PROMPTED, body)

    def caught_up(self) -> None:
        """Its record has grown: what that knows now need not be known beside it."""
        if self._taking or self._sent:
            waiting = {one.uuid for one in self.record.waiting}
            self._taking -= waiting
            self._sent &= waiting

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
        self.is_to_stop = True
        asked = stream.StopAsked(at=self._means.now(), by=by[:200], words=words[:MOST_WORDS])
        self.write(stream.STOP_ASKED, asked)
        if self.record.facts.has_process and not self.is_at_work:
            self.take_up()  # it could not be looked after: now it is ended
        if self._work:
            # Where nothing can be written, nothing is started; and it is not, once that is known.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_made.wait(), WRITTEN_SECONDS)
        # Not until it has shaken hands: it may be one that never does.
        stopped = await self.agent.stop() if self.agent else None
        await self.begun(WRITTEN_SECONDS)
        await self.pen.idle_or_stuck()
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


def _with_rules(intended: stream.Intended, rules: tuple[tuple[str, str], ...]) -> stream.Intended:
    full = msgspec.structs.replace(intended, rules=rules)
    if len(msgspec.json.encode(full)) > MAX_BODY:
        raise LaunchFailed("the settings of its folder hold more rules than can be kept (256 KB)")
    return full


def _in_conversation(spec: LaunchSpec, intended: stream.Intended) -> LaunchSpec:
    if intended.resume is None:
        return spec
    resume, fork, node = intended.resume, intended.fork, intended.node
    spec = msgspec.structs.replace(spec, resume=resume, fork_session=fork)
    return msgspec.structs.replace(spec, resume_session_at=node) if node else spec
