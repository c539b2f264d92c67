"""An agent that runs here: its process, its policy, its approvals and its stream.

Owns how these are put together, and their end. It lives as long as the block in which it was
opened, and nothing of it is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from ...approvals import Approvals, Desk, Person, open_approvals, open_desk
from ...errors import BridleError
from ...ids import new_token
from ...journal import Journal, Live, memory_journal
from ...journal.owner import Owners
from ...policy.force import InForce
from ...policy.rules import parse_rule
from ...process.spec import LaunchSpec
from ...process.transport import StopLimits
from ...protocol.events import StreamEnded
from ...session.commit import Batch, Then
from ...session.connect import Connecting, connect
from ...session.folder import Survey
from ...session.inline_commands import check_prompt
from ...session.policies import in_force
from ...session.session import Session
from ...session.turns import Turn
from ...supervisor.notes import entry
from ...views import TranscriptState, UsageState, read, transcript, usage, usage_of
from .outlet import Outlet
from .recording import Recording
from .status import Underway
from .view import View


class Plan(Struct, frozen=True, kw_only=True):
    """What is to be run. `rules` are allowed from the start; `trust` is what the folder brings, if
    somebody trusts it. `home` is Bridle's, which the agent is kept from."""

    name: str
    spec: LaunchSpec
    home: Path | None = None
    policy: str = "ask"
    rules: tuple[str, ...] = ()
    trust: Survey | None = None


class LocalAgent:
    """Made by `open_agent`; not started yet."""

    def __init__(
        self,
        journal: Journal,
        owners: Owners,
        approvals: Approvals,
        plan: Plan,
        policy: InForce,
        desk: Desk,
    ) -> None:
        self.approvals = approvals
        self.under = f"policy {plan.policy}" + (f" and {len(plan.rules)} more" * bool(plan.rules))
        self.over = asyncio.Event()
        self._journal = journal
        self._plan = plan
        self._recording = Recording(journal, owners, plan.name, desk.launch)
        self._connecting = self._connect(plan, policy, desk)
        self._session: Session | None = None
        self._seen = 0
        self._moved = asyncio.Event()
        self.used = usage_of(UsageState())

    def _connect(self, plan: Plan, policy: InForce, desk: Desk) -> Connecting:
        options = {name: getattr(plan.spec, name) for name in plan.spec.__struct_fields__}
        return connect(
            policy=policy,
            approver=desk,
            trust=plan.trust,
            commit=self._commit,
            log=self._recording.wire,
            on_stderr=self._recording.complained,
            **options,
        )

    def _commit(self, batch: Batch, then: Then) -> None:
        self._recording.commit(batch, then)
        if any(isinstance(event, StreamEnded) for event in batch):
            self.over.set()

    # --- its life

    async def start(self) -> Session:
        self._recording.intended(self._plan.spec.resume)
        session = self._session = await self._connecting.__aenter__()
        self._recording.ready()
        return session

    def send(self, text: str, by: str) -> Turn:
        assert self._session
        if policy := self._session.policy:
            check_prompt(text, policy.ground, policy.judge)
        turn = self._session.prompt(*self._recording.prompt(text, by))
        turn.discard()  # what it says is shown from the stream
        return turn

    async def interrupt(self) -> None:
        """Ask it to end its turn; what it does then is seen."""
        assert self._session
        with contextlib.suppress(BridleError):
            await self._session.interrupt()

    async def stop(self, limits: StopLimits | None = None) -> None:
        """End it and all that it has started."""
        session = self._session
        if session is None:
            return
        had_ended = self.over.is_set()
        stopped = await session.stop(limits)
        why = session.halted_because
        await self._recording.ended(
            stopped.exit,
            was_stopped=not had_ended and not why,
            killed_because=f"Bridle stopped the agent: {why}" if why else "",
            stderr=session.stderr if had_ended and not why else "",
        )

    # --- what is seen of it

    async def follow(self, view: View, outlet: Outlet, underway: Underway) -> None:
        """Show what happens, until cancelled. Nobody but us waits for a slow terminal."""
        shown, used = TranscriptState(), UsageState()
        async for batch in self._journal.log.follow(self._plan.name):
            for event in batch.events:
                if isinstance(event, Live):
                    view.hear(event.body)
                    continue
                reading = read(entry(event))
                if usage.fold(used, reading):
                    self.used = usage_of(used)
                    underway.tokens = (self.used.tokens + self.used.running).total
                changes = transcript.fold(shown, reading)
                for one in (*changes.added, *changes.changed):
                    view.take(one)
                self._seen = event.seq
            self._moved.set()
            await outlet.room()

    async def shown(self, seconds: float) -> None:
        """Until all that has happened was shown; or not, if that takes longer."""
        last = (await self._journal.log.info(self._plan.name)).last_seq
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._seen < last:
                    self._moved.clear()
                    await self._moved.wait()


@asynccontextmanager
async def open_agent(plan: Plan, me: Person) -> AsyncIterator[LocalAgent]:
    """All that it needs; InvalidPolicy, InvalidRule and the like are told here."""
    policy = in_force(plan.policy, plan.spec, plan.home)
    policy.add_rules(parse_rule(rule, "allow", "--yes-to") for rule in plan.rules)
    async with memory_journal() as journal:
        owners = Owners(journal.log)
        async with open_approvals(journal, owners=owners) as approvals:
            launch = new_token(8)
            desk = await open_desk(approvals, policy, session=plan.name, by=me, launch=launch)
            yield LocalAgent(journal, owners, approvals, plan, policy, desk)
