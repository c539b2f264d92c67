"""What a child writes to stderr: all of it drained, the end kept, lines told in groups."""

from __future__ import annotations

import asyncio

import pytest

from bridle.process.complaints import TAIL_SIZE, Complaints, without_ansi

from .children import LIMIT, Start, python

RED = "\x1b[31mred\x1b[0m"


class Told:
    """A place for what is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.came = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.texts.append(text)
        self.came.set()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (RED, "red"),
        ("\x1b[1;38;5;208mbold\x1b[m", "bold"),
        ("\x1b[2K\x1b[1Gprogress", "progress"),
        ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bMup", "up"),
        ("plain [31m text\n", "plain [31m text\n"),
    ],
)
def test_colours_and_cursor_movements_are_taken_out(text: str, plain: str) -> None:
    assert without_ansi(text) == plain


async def test_lines_that_come_together_are_told_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridle.process.complaints.GROUP_SECONDS", 0.05)
    complaints = Complaints(told := Told())
    for line in (b"one\n", b"two\n", f"{RED}\n".encode()):
        complaints.add(line)
    assert told.texts == []
    await asyncio.wait_for(told.came.wait(), LIMIT)
    assert told.texts == ["one\ntwo\nred\n"]
    told.came.clear()
    complaints.add(b"later\n")
    await asyncio.wait_for(told.came.wait(), LIMIT)
    assert told.texts[1:] == ["later\n"]
    assert complaints.tail == "one\ntwo\nred\nlater\n"


async def test_a_line_that_is_not_finished_is_told_when_nothing_more_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridle.process.complaints.GROUP_SECONDS", 0.01)
    complaints = Complaints(told := Told())
    complaints.add(b"one\nPassword: ")
    while len(told.texts) < 2:
        await asyncio.wait_for(told.came.wait(), LIMIT)
        told.came.clear()
    assert told.texts == ["one\n", "Password: "]


async def test_what_was_not_told_yet_is_told_at_the_end_and_once() -> None:
    complaints = Complaints(told := Told())
    complaints.add(b"half a line")
    complaints.flush()
    complaints.flush()
    assert told.texts == ["half a line"]


async def test_nothing_but_blanks_and_colours_is_not_told() -> None:
    complaints = Complaints(told := Told())
    complaints.add(b" \n\x1b[0m\n")
    complaints.flush()
    assert told.texts == []


async def test_only_the_end_is_kept_but_all_of_it_is_told() -> None:
    complaints = Complaints(told := Told())
    for number in range(100):
        complaints.add(b"%04d" % number * 1024)
    complaints.flush()
    kept = "".join(f"{number:04d}" * 1024 for number in range(84, 100))
    assert len(kept) == TAIL_SIZE == 64 * 1024
    assert complaints.tail == kept
    assert "".join(told.texts) == "".join(f"{number:04d}" * 1024 for number in range(100))
    assert max(map(len, told.texts)) <= TAIL_SIZE


async def test_bytes_that_are_no_text_are_survived() -> None:
    complaints = Complaints(told := Told())
    complaints.add(b"caf\xe9 \xff\n")
    complaints.flush()
    assert told.texts == [complaints.tail] == ["caf\ufffd \ufffd\n"]


async def test_a_child_that_complains_without_end_is_not_blocked_and_its_last_words_are_kept(
    start: Start,
) -> None:
    code = """
        import os
        for _ in range(10_000):
            os.write(2, b"x" * 1023 + b"\\n")
        os.write(2, b"\\x1b[31mlast words\\x1b[0m\\n")
        os.write(1, b"done\\n")
    """
    child, heard = await start(python(code))
    assert await heard.end() == "done\n"
    await heard.until(lambda: bool(heard.complaints))
    assert child.stderr.endswith("x\nlast words\n")
    assert TAIL_SIZE - 100 < len(child.stderr) <= TAIL_SIZE
    assert heard.complaints[-1].endswith("last words\n")


async def test_the_lines_of_a_child_are_told_as_one_event_while_it_lives(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.process.complaints.GROUP_SECONDS", 0.3)
    code = "import os\nfor n in b'123': os.write(2, b'warning %c\\n' % n)\nos.read(0, 1)"
    child, heard = await start(python(code))
    await heard.until(lambda: bool(heard.complaints))
    assert child.exit is None
    assert heard.complaints == ["warning 1\nwarning 2\nwarning 3\n"]


async def test_a_group_ends_with_a_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridle.process.complaints.GROUP_SECONDS", 0.01)
    complaints = Complaints(told := Told())
    complaints.add(b"one\ntwo: caf" + b"\xc3")
    await asyncio.wait_for(told.came.wait(), LIMIT)
    told.came.clear()
    complaints.add(b"\xa9\n")
    await asyncio.wait_for(told.came.wait(), LIMIT)
    assert told.texts == ["one\n", "two: caf\u00e9\n"]
