"""`bridle run`: one agent here and now. It is started, shown, asked about, and gone afterwards.

Owns who is listened to while it runs (the agent, the keys, signals, a reader who goes away), the
order of its end, and what the exit code says. Whatever ends this ends the agent and all that it has
started.
"""

from __future__ import annotations

import asyncio
import signal

from ...approvals import Person
from ...errors import InvalidRequest, SessionError
from ...process.transport import StopLimits
from ...protocol.outbound import WithMentions
from ...session.session import Session
from .denying import Unasked
from .ending import DONE, Outcome, RunEnd, code_of, outcome_of
from .errands import Errands, first_of
from .keys import Typist
from .local import LocalAgent
from .signals import CtrlC, Signals
from .sitting import Sitting
from .words import near

#: For whoever was told twice.
AT_ONCE = StopLimits(graceful=0.0, signal=0.5, total=5.0)
HURRY_SECONDS = 0.5


class Running:
    """One run. `is_interactive`: further prompts can be typed, until whoever types them leaves."""

    def __init__(
        self, agent: LocalAgent, sitting: Sitting, me: Person, *, is_interactive: bool
    ) -> None:
        self._agent = agent
        self._sitting = sitting
        self._view = sitting.view
        self._me = me
        self._is_interactive = is_interactive
        self._left = asyncio.Event()  # there is nothing more to tell it
        self._typist = Typist(sitting, self._tell if is_interactive else None, self._left.set)
        self._unasked = Unasked(agent.approvals, sitting.view)
        self._session: Session | None = None
        self._early: list[str] = []  # what was typed before it could be told
        self._outcome: Outcome = "done"
        self._ordered = asyncio.Event()  # to stop, at once
        self._ctrl_c = CtrlC(self._once, self._ordered.set, lambda: self._is_interrupting)
        self._signal: signal.Signals | None = None
        self._is_interrupting = False
        # Without them nobody would be shown anything, or asked.
        self._errands = Errands(failed=self._ordered.set)

    async def go(self, prompt: str | None) -> RunEnd:
        """Until it is over, whatever ends it."""
        self._errands.begin(
            self._agent.follow(self._view, self._sitting.outlet, self._sitting.underway)
        )
        self._errands.begin(self._ask())
        with self._signals():
            try:
                await self._work_until_told(prompt)
            finally:
                await asyncio.shield(self._close())
        self._errands.check()
        return self._end()

    async def _close(self) -> None:
        """The agent first; whoever looks on is waited for, if nobody is in a hurry."""
        is_hurried = self._outcome in ("stopped", "unread")
        outlet = self._sitting.outlet
        outlet.patience = HURRY_SECONDS if is_hurried else outlet.patience
        self._sitting.underway.notice = "Stopping"
        await self._agent.stop(AT_ONCE if is_hurried else None)
        self._sitting.underway.notice = ""
        await self._agent.shown(outlet.patience)
        await self._errands.end()

    async def _ask(self) -> None:
        asked = self._sitting.asked
        if asked:
            # Nothing is kept of this agent: what it may from now on ends with it.
            await self._typist.attend(asked, self._agent.approvals, self._me, ("session",))
        await self._unasked.deny_all()

    # --- the work

    async def _work_until_told(self, prompt: str | None) -> None:
        working = asyncio.ensure_future(self._work(prompt))
        told = asyncio.ensure_future(first_of(self._ordered, self._sitting.outlet.gone))
        try:
            await asyncio.wait((working, told), return_when=asyncio.FIRST_COMPLETED)
            if self._sitting.outlet.gone.is_set():
                self._outcome = "unread"
            elif self._ordered.is_set():
                self._outcome = "stopped"
        finally:
            for task in (working, told):
                task.cancel()
            done = await asyncio.gather(working, told, return_exceptions=True)
        if isinstance(done[0], Exception):
            raise done[0]

    async def _work(self, prompt: str | None) -> None:
        self._sitting.underway.notice = "Starting Claude Code"
        self._sitting.screen.refresh()
        try:
            self._session = session = await self._agent.start()
        finally:
            self._sitting.underway.notice = ""
        self._introduce(session)
        for text in self._early:
            self._tell(text)
        if prompt is not None:
            await self._turn(prompt)
        if self._is_interactive:
            await first_of(self._left, self._agent.over)

    def _introduce(self, session: Session) -> None:
        if self._sitting.is_live:
            version = session.capabilities.version or "of an unknown version"
            self._view.say(f"Claude Code {version}, {self._agent.under}")
        withheld = session.withheld
        if withheld:
            what = ", ".join(sorted({one.what for one in withheld.brings}))
            words = f"kept out what {near(withheld.folder, '')} brings: {what}"
            self._view.say(words, "warn", "if you trust it: bridle trust")

    def _tell(self, text: str) -> None:
        self._ctrl_c.forget()
        if self._session is None:
            self._early.append(text)
        elif not self._agent.over.is_set():
            self._errands.begin(self._turn(WithMentions(text)))

    async def _turn(self, text: str) -> None:
        try:
            turn = self._agent.send(text, self._me.name)
            result = await turn.result()
        except SessionError:
            self._outcome = "failed"  # how it ended is shown
        except InvalidRequest as error:
            self._outcome = "failed"
            self._view.say(str(error), "no")
        else:
            self._outcome = outcome_of(result)
        finally:
            self._is_interrupting = False

    # --- signals

    def _signals(self) -> Signals:
        signals = Signals(self._ctrl_c.pressed, self._ended_by)
        return signals.at_terminal(self._sitting)

    def _once(self) -> None:
        session = self._session
        if session is None:
            self._ordered.set()
        elif session.is_busy:
            self._is_interrupting = True
            self._sitting.underway.notice = "Interrupting"
            self._view.say("interrupting: Ctrl-C again stops the agent at once", "warn")
            self._errands.begin(self._agent.interrupt())
        elif self._is_interactive:
            self._view.say("Ctrl-C again, or Ctrl-D, leaves")

    def _ended_by(self, number: signal.Signals) -> None:
        self._signal = number
        self._ordered.set()

    # --- the end

    def _end(self) -> RunEnd:
        used = self._agent.used
        return RunEnd(
            outcome=self._outcome,
            exit_code=self._code(),
            turns=used.turns,
            cost_usd=used.cost_usd,
            seconds=used.seconds,
            unasked=self._unasked.number,
            session_id=self._session.id if self._session else None,
        )

    def _code(self) -> int:
        if self._signal:
            return 128 + self._signal
        if self._is_interactive and self._outcome == "interrupted":
            return DONE  # whoever did that went on, and left in peace
        return code_of(self._outcome, self._unasked.number)
