"""A clock that tests turn, a journal that fails when it is told to, and short words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from bridle.approvals import Approval, ApprovalRequest, Approvals, Person
from bridle.approvals.model import Kind
from bridle.errors import InvalidEntry, JournalUnwritable
from bridle.journal import Bucket, Durability, Event, Journal, NewEvent
from bridle.protocol.control import CanUseTool

#: How long anything in these tests may take, in seconds.
LIMIT = 60
ANN = Person("ann", "terminal")
BOB = Person("bob", "web")
DAY = 86_400.0

T = TypeVar("T")

_numbers = count(1)


class TurnedClock:
    """Stands still until it is turned."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self._now = at
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    async def until(self, moment: float) -> None:
        if moment > self._now:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((moment, future))
            await future

    def turn(self, seconds: float) -> None:
        self._now += seconds
        for moment, future in self._waiting:
            if moment <= self._now and not future.done():
                future.set_result(None)

    @property
    def timers(self) -> int:
        """How many wait for it."""
        return sum(not future.done() for _, future in self._waiting)


class FailingLog:
    """A log that refuses appends while it is told to, or stores them and says that it did not."""

    def __init__(self, journal: Journal) -> None:
        self._log = journal.log
        self.refuses = False
        self.lies = False
        self.refused_kinds: set[str] = set()
        self.held: asyncio.Event | None = None  # appends wait for it before they are made
        self.durabilities: dict[str, Durability] = {}

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        expect_last_seq: int,
        durability: Durability = Durability.PROCESS,
    ) -> asyncio.Future[int]:
        self.durabilities |= {event.kind: durability for event in events}
        is_refused = self.refuses or any(event.kind in self.refused_kinds for event in events)
        if is_refused and not self.lies:
            failed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            failed.set_exception(JournalUnwritable("told to fail"))
            return failed
        if self.held:
            return asyncio.ensure_future(self._later(stream, events, expect_last_seq, durability))
        stored = self._log.append(stream, events, expect_last_seq, durability)
        return asyncio.ensure_future(_lying(stored)) if is_refused else stored

    async def _later(
        self, stream: str, events: Sequence[NewEvent], last: int, durability: Durability
    ) -> int:
        assert self.held
        await self.held.wait()
        return await self._log.append(stream, events, last, durability)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class ForgetfulJournal:
    """A journal that stores events, and no records in these buckets."""

    def __init__(self, journal: Journal, *buckets: str) -> None:
        self._journal = journal
        self._refused = buckets
        self.log = journal.log
        self.blobs = journal.blobs
        self.payload = journal.payload
        self.aclose = journal.aclose

    @property
    def records(self) -> Any:
        return self

    def bucket(self, name: str, kind: type[T]) -> Bucket[T]:
        return Bucket(self.records, name, kind)

    async def create(self, bucket: str, key: str, value: bytes, durability: Durability) -> int:
        return await self.put(bucket, key, value, 0, durability)

    async def put(self, bucket: str, *more: Any) -> int:
        if bucket in self._refused:
            raise JournalUnwritable("told to fail")
        return await self._journal.records.put(bucket, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal.records, name)


async def _lying(stored: asyncio.Future[int]) -> int:
    await stored
    raise JournalUnwritable("stored, and said to have failed")


def a_rule(text: str) -> None:
    if "(" in text and not text.endswith(")"):
        raise InvalidEntry(f"{text!r} is no rule")


def request(
    tool: str = "Bash",
    *,
    session: str = "child",
    launch: str = "launch-1",
    kind: Kind = "tool",
    **more: Any,
) -> ApprovalRequest:
    """A call that nobody has made before."""
    more.setdefault("input", {"command": "make test"})
    more.setdefault("tool_use_id", f"toolu_{next(_numbers)}")
    return ApprovalRequest(session=session, launch=launch, kind=kind, tool=tool, **more)


def call(tool: str = "Bash", tool_use_id: str | None = None, **more: Any) -> CanUseTool:
    more.setdefault("input", {"command": "make test"})
    tool_use_id = tool_use_id or f"toolu_{next(_numbers)}"
    return CanUseTool(tool_name=tool, tool_use_id=tool_use_id, **more)


async def kinds_in(journal: Journal, stream: str = "child") -> list[str]:
    return [event.kind for event in await events_in(journal, stream)]


async def events_in(journal: Journal, stream: str = "child") -> list[Event]:
    found: list[Event] = []
    while events := await journal.log.read(stream, found[-1].seq if found else 0, 500):
        found += events
    return found


async def until(
    approvals: Approvals, approval_id: str, is_so: Callable[[Approval], object]
) -> Approval:
    """Wait until something can be seen of an approval."""
    watch = approvals.watch()
    async with asyncio.timeout(LIMIT):
        async for _ in watch:
            found = await approvals.get(approval_id)
            if is_so(found):
                return found
    raise AssertionError("closed")


async def until_pending(approvals: Approvals, number: int = 1) -> list[Approval]:
    """Wait until so many are pending."""
    watch = approvals.watch()
    async with asyncio.timeout(LIMIT):
        async for _ in watch:
            pending = await approvals.list(status="pending")
            if len(pending) >= number:
                return pending
    raise AssertionError("closed")
