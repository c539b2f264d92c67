"""The line in which prompts are typed: its keys, and what is seen of it."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from rich.cells import cell_len

from bridle.approvals.keyboard import Keyboard
from bridle.cli.terminal.prompting import PromptLine, PutOff

LIMIT = 20.0


class Desk:
    """A keyboard, and whoever types on it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.keyboard = Keyboard(self.slave)
        self._changed = asyncio.Event()
        self.line = PromptLine(self._changed.set)

    async def sees(self, end: str, width: int = 200) -> str:
        """The line, once it ends so."""
        async with asyncio.timeout(LIMIT):
            while not self.line.shown(width).plain.endswith(end):
                self._changed.clear()
                await self._changed.wait()
        return self.line.shown(width).plain

    def types(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def reads(self, keys: str) -> str:
        self.types(keys)
        async with asyncio.timeout(LIMIT):
            return await self.line.read(self.keyboard)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    with desk.keyboard.taken():
        yield desk
    os.close(desk.master)
    os.close(desk.slave)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("hello\r", "hello"),
        ("helo\x1b[Dl\r", "hello"),
        ("ello\x01h\x05!\r", "hello!"),
        ("hello\x1b[H\x1b[3~\x1b[FO\r", "elloO"),
        ("one two\x17three\r", "one three"),
        ("one two  \x17three\r", "one three"),
        ("gone\x15here\r", "here"),
        ("keep drop\x1b[D\x1b[D\x1b[D\x1b[D\x0b\r", "keep"),
        ("日本\x7f🎉\r", "日🎉"),
        ("a\x7f\x7f\x7fb\r", "b"),
        ("\r\r  \rx\r", "x"),
        ("x\x1b[1;5C\x1b[99~\x1bOPy\r", "xy"),
        ("\x1b[200~one\rtwo\x1b[201~ three\r", "one\ntwo three"),
        ("\x1b[200~a\x04\tb\x1b[201~\r", "a\x04\tb"),
    ],
)
async def test_keys_do_what_people_expect(desk: Desk, keys: str, text: str) -> None:
    assert await desk.reads(keys) == text
    assert desk.line.shown(40).plain == ">  "


async def test_what_was_sent_before_comes_back_with_the_arrows(desk: Desk) -> None:
    await desk.reads("first\r")
    await desk.reads("second\r")
    assert await desk.reads("\x1b[A\x1b[A\x1b[A!\r") == "first!"
    assert await desk.reads("\x1b[A\x1b[A\x1b[B?\r") == "first!?"
    assert await desk.reads("\x1b[A\x1b[Bnew\r") == "new"


async def test_reading_may_be_given_up_and_what_was_typed_stays(desk: Desk) -> None:
    reading = asyncio.ensure_future(desk.line.read(desk.keyboard))
    desk.types("hal")
    await desk.sees("> hal ")
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert await desk.reads("f\r") == "half"


async def test_the_end_of_the_input_is_told_and_so_is_a_tab(desk: Desk) -> None:
    with pytest.raises(EOFError):
        await desk.reads("\x04")
    # In the middle of a line it is no end.
    assert await desk.reads("a\x04b\r") == "ab"
    with pytest.raises(PutOff):
        await desk.reads("\t")


@pytest.mark.parametrize("width", [10, 40])
async def test_a_long_line_shows_what_is_around_the_cursor(desk: Desk, width: int) -> None:
    reading = asyncio.ensure_future(desk.reads("日" * 60 + "end" + "\x1b[D" * 3))
    await desk.sees("end")
    shown = desk.line.shown(width).plain
    assert shown.endswith("end")
    assert cell_len(shown) <= max(width, 12) + 3
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def test_what_is_typed_can_not_draw_either(desk: Desk) -> None:
    reading = asyncio.ensure_future(desk.reads("\x1b[200~a\x07\x1b]0;x\x9b2J\x1b[201~"))
    assert (await desk.sees("2J ")).isprintable()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
