"""All that is told to many, put together: events, transcripts and the board.

The face of the package. Who may see what is for the routes to check first; who follows longer than
they may is seen by the `audience`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from msgspec import Struct

from ...errors import UnknownSession
from ...supervisor import Supervisor
from ..access import Caller
from .audience import Audience, Tokens
from .board import BoardFollower, Place
from .channel import Channel, Sizes
from .follower import Follower, Following
from .news import News
from .rooms import Rooms
from .sending import EventStream
from .transcripts import Story
from .wants import Want


class StreamSettings(Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    #: After so long without anything to say, a sign of life is sent.
    heartbeat: float = 15.0
    #: A client that takes nothing for so long is dropped.
    stalled: float = 30.0
    #: So long after the last has left, what nobody follows is let go.
    idle: float = 120.0
    #: So many entries and spans of sessions that nobody looks at are kept.
    entries: int = 100_000
    sizes: Sizes = Sizes()


class Streams:
    """Made by `open_streams`. A cursor is the number of the last event that a client has."""

    def __init__(
        self,
        supervisor: Supervisor,
        now: Callable[[], float],
        tokens: Tokens,
        settings: StreamSettings,
    ) -> None:
        self._supervisor = supervisor
        self._now = now
        self._sizes = settings.sizes
        self._log = supervisor.journal.log
        self.audience = Audience(settings.heartbeat, settings.stalled, tokens, self._sweep)
        self._channels = Rooms(self._channel, settings.idle)
        self._stories = Rooms(self._story, settings.idle, settings.entries)
        self._news = Rooms(self._newsroom, settings.idle)

    # --- what is followed

    def events(
        self, caller: Caller, session: str, cursor: int, want: Want, most: int | None = None
    ) -> EventStream:
        """The session's events; after `most` stored ones it ends."""

        @contextmanager
        def begin() -> Iterator[Following]:
            with self._news.enter(""), self._channels.enter(session) as channel:
                yield Follower(channel, cursor, want, most)

        return EventStream(begin, self.audience, caller, session)

    def transcript(
        self, caller: Caller, session: str, cursor: int, want: Want, most: int | None = None
    ) -> EventStream:
        """The entries of its transcript, each again when it has changed."""

        @contextmanager
        def begin() -> Iterator[Following]:
            with self._news.enter(""), self.story(session) as story:
                yield Follower(story, cursor, want, most)

        return EventStream(begin, self.audience, caller, session)

    def board(self, caller: Caller, place: Place | None, want: Want) -> EventStream:
        """Everything: from a place, or from the present."""

        @contextmanager
        def begin() -> Iterator[Following]:
            with self._news.enter("") as news:
                yield BoardFollower(news.board, place, want)

        return EventStream(begin, self.audience, caller, "")

    @contextmanager
    def story(self, session: str) -> Iterator[Story]:
        """What is folded from its events. `Story.reached` waits until it has caught up."""
        self.audience.watch()
        with self._stories.enter(session) as story:
            yield story

    # --- the end

    def close(self) -> None:
        """Tell all who follow that the server ends; their connections end with that."""
        self.audience.close()

    async def aclose(self) -> None:
        self.close()
        self.audience.stop()
        for rooms in (self._channels, self._stories, self._news):
            await rooms.aclose()

    # --- the rest

    def _channel(self, session: str) -> Channel:
        return Channel(self._log, session, self._supervisor.get(session).seq, self._sizes)

    def _story(self, session: str) -> Story:
        self._supervisor.get(session)
        return Story(self._log, session, self._sizes)

    def _newsroom(self, _: str) -> News:
        return News(self._supervisor, self.audience, self._now, self._gone)

    def _is_there(self, session: str) -> bool:
        try:
            self._supervisor.get(session)
        except UnknownSession:
            return False
        return True

    def _gone(self, session: str) -> None:
        self.audience.gone(session)
        self._channels.close(session)
        self._stories.close(session)

    def _sweep(self) -> bool:
        for session in self._stories:
            # Whoever waits for one that was deleted meanwhile would wait for ever.
            if not self._is_there(session):
                self._gone(session)
        rooms = (self._channels, self._stories, self._news)
        for each in rooms:
            each.sweep()
        return any(len(each) for each in rooms)


@asynccontextmanager
async def open_streams(
    supervisor: Supervisor,
    now: Callable[[], float],
    closing: asyncio.Event,
    tokens: Tokens,
    settings: StreamSettings | None = None,
) -> AsyncIterator[Streams]:
    """When `closing` is set, all streams come to their end. `tokens` are those that hold."""
    streams = Streams(supervisor, now, tokens, settings or StreamSettings())

    async def end() -> None:
        await closing.wait()
        streams.close()

    ending = asyncio.ensure_future(end())
    try:
        yield streams
    finally:
        ending.cancel()
        await asyncio.wait([ending])
        await streams.aclose()
