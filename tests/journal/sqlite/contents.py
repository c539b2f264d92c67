"""Events and records whose contents follow from where they stand, so that any can be checked.

A batch's size follows from its first number too: wherever a stream ends, one can tell whether it
ends with a whole batch.
"""

from __future__ import annotations

from zlib import crc32

from bridle.journal import Event, NewEvent
from bridle.journal.contract import EventLog, Journal
from bridle.journal.events import MAX_BODY

#: Streams whose name starts so have sealed events, or large payloads, among the others.
SEALED = "sealed"
LARGE = "large"
MAX_BATCH = 5
#: One whose payload is a blob.
LARGE_EVENT = NewEvent("k", bytes(MAX_BODY + 1))


def batch_size(stream: str, first: int) -> int:
    return 1 + crc32(f"{stream}/{first}".encode()) % MAX_BATCH


def batch(stream: str, first: int) -> list[NewEvent]:
    """The batch of the stream that starts with this number."""
    return [new_event(stream, seq) for seq in range(first, first + batch_size(stream, first))]


def new_event(stream: str, seq: int) -> NewEvent:
    is_sealed = stream.startswith(SEALED) and seq % 3 != 0
    return NewEvent(kind_of(seq), payload_of(stream, seq), at_of(seq), is_sealed)


def kind_of(seq: int) -> str:
    return f"kind-{seq % 7}"


def at_of(seq: int) -> float:
    return 1_700_000_000.25 + seq


def payload_of(stream: str, seq: int) -> bytes:
    mark = f"{stream}/{seq};".encode()
    return (mark * (_size_of(stream, seq) // len(mark) + 1))[: _size_of(stream, seq)]


def value_of(key: str, count: int) -> bytes:
    """The value that was put as the record's n-th."""
    return f"{key}={count}".encode()


def count_in(key: str, value: bytes) -> int:
    """Which value of the record this is; it must be all of it."""
    count = int(value.rpartition(b"=")[2])
    assert value == value_of(key, count)
    return count


def is_end_of_batch(stream: str, last: int) -> bool:
    seq = 0
    while seq < last:
        seq += batch_size(stream, seq + 1)
    return seq == last


def assert_is(stream: str, event: Event, seq: int) -> None:
    """The event is the one with this number, whole (a large payload: its head)."""
    assert event.seq == seq
    assert (event.kind, event.at) == (kind_of(seq), at_of(seq))
    expected = new_event(stream, seq)
    assert (event.seal is not None) == expected.is_sealed
    assert (event.blob is not None) == (len(expected.body) > MAX_BODY)
    assert expected.body.startswith(event.body)
    assert event.blob or expected.body == event.body


async def read_all(log: EventLog, stream: str, after: int = 0) -> list[Event]:
    events: list[Event] = []
    while page := await log.read(stream, events[-1].seq if events else after, limit=1_000):
        events += page
    return events


async def append_batches(journal: Journal, stream: str, count: int) -> int:
    """Append so many batches at once, wait for them, and give the stream's last number."""
    last = (await journal.log.info(stream)).last_seq
    futures = []
    for _ in range(count):
        events = batch(stream, last + 1)
        futures.append(journal.log.append(stream, events, last))
        last += len(events)
    for future in futures:
        await future
    return last


async def assert_whole(journal: Journal, stream: str, after: int = 0) -> int:
    """All numbers after this one are there, once, in order and right. Gives the last one."""
    info = await journal.log.info(stream)
    first = max(after + 1, info.first_seq)
    events = await read_all(journal.log, stream, first - 1)
    assert [event.seq for event in events] == list(range(first, info.last_seq + 1))
    for event in events:
        assert_is(stream, event, event.seq)
        if event.blob:
            assert await journal.payload(event) == payload_of(stream, event.seq)
    return info.last_seq


async def assert_writable(journal: Journal, stream: str) -> None:
    """More can be appended, and then all of it is there."""
    last = await append_batches(journal, stream, 3)
    assert await assert_whole(journal, stream) == last


def _size_of(stream: str, seq: int) -> int:
    number = crc32(f"{stream}:{seq}".encode())
    if stream.startswith(LARGE) and number % 3 == 0:
        return MAX_BODY + 1 + number % 50_000
    return number % 5_000 if number % 8 == 0 else number % 100
