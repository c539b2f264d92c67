"""What a user holds of a turn: its messages, its result; and taps on a whole session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Self

from ..protocol.messages import Message, Result
from ..protocol.unknown import Unknown
from .book import Exchange
from .mailbox import Mailbox


class Turn:
    """One turn: iterate over its messages, or wait for its result, or both.

    To stop waiting changes nothing for the agent. A turn that was dropped keeps nothing.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def uuid(self) -> str | None:
        """What the prompt was sent with; None for a turn that nobody prompted."""
        return self._exchange.uuid

    @property
    def origin(self) -> str | None:
        """Whence an unprompted turn came, as its result tells: `task-notification`, for example."""
        return self._exchange.origin

    @property
    def is_done(self) -> bool:
        return self._exchange.ended.is_set()

    @property
    def dropped_deltas(self) -> int:
        """How many deltas were dropped because too many were unread."""
        return self._exchange.dropped_deltas

    def __aiter__(self) -> AsyncIterator[Message | Unknown]:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Message | Unknown]:
        return self._exchange.get()

    async def result(self, timeout: float | None = None) -> Result:
        """What ended the turn, be it an error: `Result.raise_for_error` would raise that."""
        async with asyncio.timeout(timeout):
            await self._exchange.ended.wait()
        return self._exchange.result()

    def discard(self) -> None:
        """Keep no messages: nobody will iterate over them."""
        self._exchange.discard()


class Tap:
    """Every message of a session from now on. Close it, or leave its `async with`, when done."""

    def __init__(self, mailbox: Mailbox, close: Callable[[], None]) -> None:
        self._mailbox = mailbox
        self._close = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Message | Unknown]:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Message | Unknown]:
        return self._mailbox.get()

    def close(self) -> None:
        self._close()
        self._mailbox.discard()
        self._mailbox.close()


async def turns_in(queue: asyncio.Queue[Exchange | None]) -> AsyncIterator[Turn]:
    """The turns that are put into a queue, until None is."""
    while (exchange := await queue.get()) is not None:
        yield Turn(exchange)
