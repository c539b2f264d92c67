"""`bridle attach`: an agent that a server looks after, followed and talked to from a terminal.

Owns what is heard from the server and what is told to it. The agent does not depend on any of this:
whoever leaves, and however, it runs on. A server that goes away is waited for.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...approvals import Person
from ...errors import BridleError
from ...protocol.outbound import WithMentions
from ...server.shapes.sessions import SessionView
from ...views.entries import TranscriptEntry
from ..client import Client, ServerEvent
from ..errors import OK, CommandError
from .errands import Errands, first_of
from .keys import Typist
from .remote import RETRY_SECONDS, RemoteDocket
from .signals import CtrlC, Signals
from .sitting import Sitting

_decode = msgspec.json.Decoder(TranscriptEntry).decode


class _Delta(Struct):
    body: Raw


_decode_delta = msgspec.json.Decoder(_Delta).decode


class Following:
    """The transcript of one session: what there is, then what comes, over a server's restarts."""

    def __init__(self, client: Client, session: SessionView, sitting: Sitting) -> None:
        self._client = client
        self._session = session
        self._sitting = sitting
        self._is_broken = False
        self._probing: asyncio.Task[None] | None = None
        self.docket = RemoteDocket(client, session.name or session.id[:8])

    async def all(self, tail: int) -> None:
        """The last entries, and what comes."""
        session = self._session.id
        page = await self._client.sessions.transcript(session, limit=max(tail, 1))
        pending = await self._client.approvals.list(status="pending", session=session)
        self._sitting.view.past(page.entries[-tail:] if tail else [])
        for approval in pending:
            self.docket.is_pending(approval.id)
        await self.go_on(page.seq)

    async def go_on(self, seq: int) -> None:
        """What comes after this event, until cancelled; or an error, if the session is deleted or
        the server does not come back."""
        path = f"/sessions/{self._session.id}/transcript"
        try:
            async for event in self._client.talk.follow(path, {}, str(seq), self._broke):
                self._heard(event)
                await self._sitting.outlet.room()
        finally:
            if self._probing:
                self._probing.cancel()

    def _heard(self, event: ServerEvent) -> None:
        match event.event:
            case "entry":
                entry = _decode(event.data)
                self.docket.saw(entry)
                self._sitting.view.take(entry)
            case "delta":
                self._sitting.view.hear(bytes(_decode_delta(event.data).body))

    # --- while the server is away

    def _broke(self, _: str) -> None:
        if not self._is_broken:
            self._is_broken = True
            self._sitting.view.say("the server is gone, waiting for it", "warn")
            self._probing = asyncio.ensure_future(self._until_back())

    async def _until_back(self) -> None:
        while True:
            try:
                await self._client.sessions.get(self._session.id)
            except CommandError:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._is_broken = False
                self._sitting.view.say("the server is back", "yes")
                return


class Attached:
    """Whoever sits there, and one session. They may only look on, if `is_read_only`."""

    def __init__(
        self,
        client: Client,
        session: SessionView,
        sitting: Sitting,
        me: Person,
        *,
        is_read_only: bool,
        stops: bool,
    ) -> None:
        self._client = client
        self._session = session
        self._sitting = sitting
        self._view = sitting.view
        self._me = me
        self._is_read_only = is_read_only
        self._stops = stops
        self._left = asyncio.Event()
        self._ctrl_c = CtrlC(self._once, self._left.set)
        self._following = Following(client, session, sitting)
        self._errands = Errands(failed=self._left.set)

    async def go(self, tail: int) -> int:
        """Until somebody leaves, or there is nothing more to see."""
        self._errands.begin(self._ask())
        self._errands.begin(self._following.all(tail))
        with self._signals():
            try:
                await first_of(self._left, self._sitting.outlet.gone)
                if self._stops and not self._errands.error:
                    await self._client.sessions.stop(self._session.id, "whoever was there left")
            finally:
                await self._errands.end()
        self._errands.check()
        return OK

    async def _ask(self) -> None:
        asked = self._sitting.asked
        if asked and not self._is_read_only:
            send = self._send if self._sitting.is_live else None
            typist = Typist(self._sitting, send, self._left.set)
            await typist.attend(asked, self._following.docket, self._me)
            self._left.set()

    # --- telling it something

    def _send(self, text: str) -> None:
        self._ctrl_c.forget()
        self._errands.begin(
            self._tell(self._client.sessions.send(self._session.id, WithMentions(text)))
        )

    async def _tell(self, telling: Coroutine[Any, Any, object]) -> None:
        try:
            await telling
        except BridleError as error:
            self._view.say(str(error), "no")

    def _signals(self) -> Signals:
        signals = Signals(self._ctrl_c.pressed, self._ended_by)
        return signals.at_terminal(self._sitting)

    def _once(self) -> None:
        if self._is_read_only or self._sitting.asked is None:
            self._left.set()
        elif self._sitting.underway.since is None:
            self._view.say("Ctrl-C again, or Ctrl-D, leaves; the agent runs on")
        else:
            self._view.say("interrupting its turn: Ctrl-C again leaves, and it runs on", "warn")
            self._errands.begin(self._tell(self._client.sessions.interrupt(self._session.id)))

    def _ended_by(self, _: signal.Signals) -> None:
        self._left.set()
