"""Unread messages: in order, never dropped, never too many in memory; deltas the oldest first."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

import msgspec
import pytest

from bridle.protocol.careful import read_line
from bridle.protocol.events import MessageReceived
from bridle.protocol.messages import Assistant, Message, StreamEvent
from bridle.protocol.unknown import Unknown
from bridle.session.mailbox import Mailbox

from .wire import delta, say


def event(line: dict[str, Any]) -> MessageReceived:
    raw = msgspec.json.encode(line)
    decoded = read_line(raw).decoded
    assert isinstance(decoded, Message | Unknown)
    return MessageReceived(decoded, raw)


def text(message: Message | Unknown) -> str:
    if isinstance(message, Assistant):
        return message.message.content[0].text  # type: ignore[union-attr]
    assert isinstance(message, StreamEvent)
    return "d" + message.event.delta.text  # type: ignore[union-attr]


async def read_all(mailbox: Mailbox) -> list[str]:
    found = []
    while len(mailbox):
        found.append(text(await mailbox.get()))
    return found


async def test_messages_come_out_in_the_order_in_which_they_went_in() -> None:
    mailbox = Mailbox()
    for number in range(5):
        mailbox.put(event(say(str(number))))
        mailbox.put(event(delta(str(number))))
    assert await read_all(mailbox) == ["0", "d0", "1", "d1", "2", "d2", "3", "d3", "4", "d4"]


async def test_past_the_limit_messages_go_to_a_file_and_come_back_in_order() -> None:
    mailbox = Mailbox(unread_bytes=2_000)
    expected = []
    for number in range(1_000):
        line = say(str(number)) if number % 3 else delta(str(number))
        mailbox.put(event(line))
        expected.append(str(number) if number % 3 else f"d{number}")
    assert len(mailbox) == 1_000
    assert mailbox._bytes < 3_000
    assert mailbox._spill
    assert mailbox._spill.count > 600
    assert await read_all(mailbox) == expected
    assert mailbox._spill is None


async def test_what_was_read_counts_no_more_and_sends_nothing_to_the_file() -> None:
    mailbox = Mailbox(unread_bytes=2_000)
    for number in range(100):
        mailbox.put(event(say(str(number))))
        assert mailbox._spill is None
        assert text(await mailbox.get()) == str(number)


async def test_reading_and_writing_may_alternate_while_some_is_in_the_file() -> None:
    mailbox = Mailbox(unread_bytes=500)
    found, put = [], 0
    for round_ in range(60):
        for _ in range(round_ % 7):
            mailbox.put(event(say(str(put))))
            put += 1
        found += [text(await mailbox.get()) for _ in range(min(round_ % 5, len(mailbox)))]
    found += await read_all(mailbox)
    assert found == [str(number) for number in range(put)]


async def test_a_huge_message_comes_back_from_the_file_as_it_was() -> None:
    mailbox = Mailbox(unread_bytes=1)
    mailbox.put(event(say("small")))
    mailbox.put(event(say("x" * 3_000_000)))
    mailbox.put(event(say("last")))
    assert [len(one) for one in await read_all(mailbox)] == [5, 3_000_000, 4]


async def test_what_no_type_fits_survives_the_file() -> None:
    mailbox = Mailbox(unread_bytes=0)
    mailbox.put(event({"type": "brand_new", "n": 1}))
    message = await mailbox.get()
    assert isinstance(message, Unknown)
    assert message.type == "brand_new"


async def test_on_a_full_disk_messages_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    mailbox = Mailbox(unread_bytes=100)
    for number in range(100):
        mailbox.put(event(say(str(number))))
    assert await read_all(mailbox) == [str(number) for number in range(100)]


async def test_a_short_write_is_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", lambda *_: 3)
    mailbox = Mailbox(unread_bytes=0)
    mailbox.put(event(say("a")))
    assert await read_all(mailbox) == ["a"]


async def test_too_many_unread_deltas_lose_the_oldest_and_count_them() -> None:
    mailbox = Mailbox(unread_bytes=400, unread_deltas=10)
    monkey = [delta(str(number)) for number in range(2_500)]
    for number, line in enumerate(monkey):
        mailbox.put(event(line))
        if number % 500 == 0:
            mailbox.put(event(say(str(number))))
    found = await read_all(mailbox)
    assert [one for one in found if not one.startswith("d")] == ["0", "500", "1000", "1500", "2000"]
    assert [one for one in found if one.startswith("d")] == [f"d{n}" for n in range(2_490, 2_500)]
    assert mailbox.dropped_deltas == 2_490


async def test_what_lay_in_the_file_between_dropped_deltas_is_all_there() -> None:
    mailbox = Mailbox(unread_bytes=0, unread_deltas=0)
    for number in range(1, 7):
        mailbox.put(event(say(str(number))))
        if number % 2 == 0:
            mailbox.put(event(delta(str(number))))
    assert len(mailbox) == 9
    assert await read_all(mailbox) == ["1", "2", "3", "4", "5", "6"]
    assert mailbox.dropped_deltas == 3


async def test_dropped_deltas_take_no_memory() -> None:
    mailbox = Mailbox(unread_deltas=100)
    line = event(delta("x"))
    for _ in range(50_000):
        mailbox.put(line)
    assert len(mailbox._items) <= 1_200


async def test_a_closed_mailbox_gives_what_it_has_and_then_ends() -> None:
    mailbox = Mailbox()
    mailbox.put(event(say("a")))
    mailbox.close()
    assert text(await mailbox.get()) == "a"
    with pytest.raises(StopAsyncIteration):
        await mailbox.get()


async def test_the_first_close_counts() -> None:
    mailbox = Mailbox()
    mailbox.close(RuntimeError("first"))
    mailbox.close(RuntimeError("second"))
    with pytest.raises(RuntimeError, match="first"):
        await mailbox.get()


async def test_all_who_wait_are_woken_by_the_end() -> None:
    mailbox = Mailbox()
    waiting = [asyncio.ensure_future(mailbox.get()) for _ in range(3)]
    await asyncio.sleep(0)
    mailbox.put(event(say("a")))
    mailbox.close(RuntimeError("over"))
    done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
    assert sorted(type(one).__name__ for one in done) == [
        "Assistant",
        "RuntimeError",
        "RuntimeError",
    ]


async def test_a_discarded_mailbox_keeps_nothing() -> None:
    mailbox = Mailbox(unread_bytes=0)
    mailbox.put(event(say("a")))
    mailbox.discard()
    mailbox.put(event(say("b")))
    mailbox.put(event(delta("b")))
    assert len(mailbox) == 0
    assert mailbox._spill is None


async def test_a_file_that_changes_under_us_is_shown_as_it_is() -> None:
    mailbox = Mailbox(unread_bytes=0)
    mailbox.put(event(say("a")))
    assert mailbox._spill
    os.pwrite(mailbox._spill._file.fileno(), b"nonsense", 8)
    message = await mailbox.get()
    assert isinstance(message, Unknown)
    assert b"nonsense" in message.raw
