"""The region at the bottom of a terminal, and what is printed above it."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from bridle.cli.terminal.look import THEME, Block, Prose, line, lines
from bridle.cli.terminal.screen import LiveScreen
from bridle.cli.terminal.status import Underway
from bridle.cli.terminal.words import on_one_line, printed, seen
from bridle.views import Transcript, stream
from tests.levels import tries
from tests.views.helpers import Told

from .emulator import Emulator


class Terminal:
    """A screen of ours, on an emulator."""

    def __init__(self, columns: int, height: int, *, reflows: bool = True) -> None:
        self.emulator = Emulator(columns, height, reflows=reflows)
        console = Console(
            file=io.StringIO(), force_terminal=True, color_system="standard", theme=THEME
        )
        self.underway = ["first", "second"]
        self.written: list[str] = []
        self.resizing: tuple[int, int] | None = None
        self._lines_until = 0
        self.known = (columns, height)  # to us: we are told a moment later
        self.screen = LiveScreen(self, console, lambda: self.known)
        self.screen.region = lambda _width, _height: [Text(text) for text in self.underway]

    def write(self, text: str, /) -> int:
        self.written.append(text)
        # As a system does it: a new line goes to its beginning, and whoever reads may get the lines
        # one by one.
        for piece in text.replace("\n", "\r\n").splitlines(keepends=True):
            self.emulator.feed(piece)
            if self.resizing and piece.endswith("\n"):
                self._lines_until -= 1
                if self._lines_until < 0:
                    self.emulator.resize(*self.resizing)
                    self.resizing = None
        return len(text)

    def resize(self, columns: int, height: int, late: Sequence[Block], after: int) -> None:
        """It happens while these are shown, so many lines of what we write later."""
        self.resizing, self._lines_until = (columns, height), after
        self.screen.show(late)
        if self.resizing:
            self.emulator.resize(*self.resizing)
            self.resizing = None
        self.known = (columns, height)
        self.screen.refresh()


def says(text: str) -> Block:
    return Block(mark="text", body=lines(line(text)), has_gap=False)


def test_what_is_final_is_printed_above_what_is_underway() -> None:
    terminal = Terminal(40, 10)
    terminal.screen.refresh()
    terminal.screen.show([says("one")])
    terminal.screen.show([says("two")])
    assert terminal.emulator.text == "● one\n● two\nfirst\nsecond"
    terminal.screen.close()
    assert terminal.emulator.text == "● one\n● two"
    assert terminal.emulator.is_cursor_shown


def test_what_comes_while_somebody_else_has_the_terminal_is_held() -> None:
    terminal = Terminal(40, 10)
    terminal.screen.show([says("one")])
    with terminal.screen.aside():
        assert terminal.emulator.text == "● one"
        terminal.screen.show([says("two")])
        with terminal.screen.aside():
            terminal.screen.refresh()
        terminal.write("a question? yes\n")
    assert terminal.emulator.text == "● one\na question? yes\n● two\nfirst\nsecond"


def test_nothing_is_written_where_nothing_has_changed() -> None:
    terminal = Terminal(40, 10)
    terminal.screen.refresh()
    terminal.written.clear()
    terminal.screen.refresh()
    assert terminal.written == []
    terminal.underway = ["other"]
    terminal.screen.refresh()
    assert len(terminal.written) == 1


@settings(max_examples=tries(50, 500), deadline=None)
@given(
    st.lists(st.tuples(st.integers(20, 100), st.integers(4, 30)), max_size=5),
    st.lists(st.text("abc 日🎉", max_size=150), max_size=8),
    st.integers(0, 9),
    st.booleans(),
    st.integers(0, 12),
)
def test_however_a_window_changes_what_was_printed_stands_there_once(
    sizes: list[tuple[int, int]], texts: list[str], height: int, reflows: bool, after: int
) -> None:
    terminal = Terminal(60, 12, reflows=reflows)
    terminal.underway = [f"underway {number} " + "x" * 30 for number in range(height)]
    for number, text in enumerate(texts):
        block = says(f"<{number}> {text}")
        size = sizes.pop() if sizes else (60, 12)
        # What is drawn in the moment before we know that it does not fit any more scrolls away.
        is_late = size[1] > height + 1
        terminal.resize(*size, [block] if is_late else [], after)
        if not is_late:
            terminal.screen.show([block])
    terminal.screen.close()
    text = terminal.emulator.text
    assert "underway" not in text
    assert [text.count(f"● <{number}>") for number in range(len(texts))] == [1] * len(texts)


@settings(max_examples=tries(50, 500), deadline=None)
@given(st.text(max_size=300), st.integers(20, 80))
def test_no_text_writes_anything_but_itself(text: str, columns: int) -> None:
    terminal = Terminal(columns, 10)
    terminal.underway = [on_one_line(text)]
    # The emulator takes no other sequence than ours.
    terminal.screen.show([Block(mark="text", body=Prose(seen(text)))])
    terminal.screen.show([Block(mark="text", body=lines(line(printed(text)), is_cut=True))])
    # Not even what a renderer has let through.
    terminal.screen.show([Block(mark="text", body=lines(line(text)))])


def test_what_is_underway_tells_the_call_the_time_and_who_is_waited_for() -> None:
    told, transcript = Told(), Transcript()
    underway = Underway("/app", now=lambda: 1_064.0)
    told.wrote({"type": "user", "message": {"role": "user", "content": "go"}}, "u1")
    told.calls("b1", "Bash", command="npm test")
    told.asks("a1", "b1")
    for event in told.entries:
        changes = transcript.add(event)
        for entry in (*changes.added, *changes.changed):
            underway.take(entry)
    underway.tokens, underway.cost_usd = 12_345, 0.5
    (status,) = underway.lines(79, 24)
    assert (
        status.plain[2:]
        == "Bash npm test · 1 min 4 s · 12.3k tokens · $0.5000 · 1 approval pending"
    )
    (narrow,) = underway.lines(39, 24)
    assert narrow.plain[2:].startswith("Bash npm …")
    told.gives("b1", "ok")
    told.result(0.1)
    for event in told.entries[-2:]:
        changes = transcript.add(event)
        for entry in (*changes.added, *changes.changed):
            underway.take(entry)
    assert underway.lines(79, 24) == []


def test_words_that_are_being_written_are_wrapped_and_the_last_of_them_shown() -> None:
    underway = Underway(now=lambda: 3.0)
    underway.since = 1.0
    for word in range(200):
        event = {"type": "content_block_delta", "delta": {"text": f"word{word} \x1b[2J "}}
        underway.hear(msgspec.json.encode({"event": event}))
    underway.hear(b"no json")
    underway.hear(b'{"event":{"type":"content_block_delta","delta":{}},"parent_tool_use_id":"x"}')
    found = [text.plain for text in underway.lines(50, 24)]
    assert len(found) == 8
    assert found[-1].endswith("Writing · 2 s")
    assert "word199 \\u001b[2J" in " ".join(found)
    assert all(text.isprintable() and len(text) <= 50 for text in found)
    # Where there is no room, what matters is left.
    assert len(underway.lines(50, 3)) == 1


class Doing:
    """What is underway, as the events of a session tell it one after the other."""

    def __init__(self) -> None:
        self.told, self.transcript = Told(), Transcript()
        self.underway = Underway("/app", now=lambda: self.told.now)

    def now(self) -> str:
        """In a few words, after all that was told meanwhile; "" if nothing is underway."""
        for event in self.told.entries[self.transcript.state.seq :]:
            changes = self.transcript.add(event)
            for entry in (*changes.added, *changes.changed):
                self.underway.take(entry)
        found = self.underway.lines(79, 24)
        return found[-1].plain[2:] if found else ""

    def hear(self, **event: object) -> None:
        self.underway.hear(msgspec.json.encode({"event": event}))


def test_step_by_step_it_is_told_what_is_underway() -> None:
    doing = Doing()
    told, hear = doing.told, doing.hear
    assert doing.now() == ""
    told.wrote({"type": "user", "message": {"role": "user", "content": "go"}}, "u1")
    assert doing.now() == "Working · 1 s"
    hear(type="content_block_start", content_block={"type": "thinking"})
    assert doing.now().startswith("Thinking")
    hear(type="content_block_start", content_block={"type": "text"})
    assert doing.now().startswith("Working")
    hear(type="content_block_delta", delta={"text": "I will "})
    hear(type="content_block_delta", delta={"text": "look."})
    assert doing.now().startswith("Writing")
    assert "I will look." in [text.plain.strip() for text in doing.underway.lines(79, 24)]
    told.text("Not ours.", parent_tool_use_id="sub")
    assert doing.now().startswith("Writing")
    told.text("I will look.")
    assert (doing.now(), len(doing.underway.lines(79, 24))) == ("Working · 3 s", 1)
    hear(type="content_block_delta", delta={"text": "more"})
    told.calls("b1", "Bash", command="one")
    assert (doing.now(), len(doing.underway.lines(79, 24))) == ("Bash one · 4 s", 1)
    told.calls("b2", "Bash", command="two")
    told.asks("a1", "b1")
    told.asks("a2", "b2")
    assert doing.now() == "Bash two (+1) · 7 s · 2 approvals pending"
    told.decides("a2")
    told.gives("b2", "ok")
    assert doing.now() == "Bash one · 9 s · 1 approval pending"
    told.decides("a1")
    assert doing.now() == "Bash one · 10 s"
    doing.underway.notice = "Interrupting"
    assert doing.now() == "Interrupting · 10 s"
    hear(type="content_block_delta", delta={"text": "half a word"})
    told.result(0.25)
    assert (doing.now(), doing.underway.notice) == ("", "")


def test_another_turn_begins_anew_and_what_was_spent_adds_up() -> None:
    doing = Doing()
    told = doing.told
    for turn in (1, 2):
        told.wrote({"type": "user", "message": {"role": "user", "content": "go"}}, f"u{turn}")
        told.calls(f"b{turn}", "Bash", parent="sub", command="sleep")
        assert doing.now().startswith("Bash sleep · 2 s")
        told.result(0.25 * turn)
        assert doing.now() == ""
    assert doing.underway.cost_usd == 0.5
    states = (
        ("running", "Working"),
        ("idle", ""),
        ("awaiting approval", "Working"),
        ("failed", ""),
    )
    for state, words in states:
        change = stream.StateChanged(was="idle", now=state, at=1, why="")  # type: ignore[arg-type]
        told.event(stream.STATE, change)
        assert doing.now().partition(" ")[0] == words
    told.wrote({"type": "user", "message": {"role": "user", "content": "go"}}, "u3")
    assert doing.now().startswith("Working")
    told.ends("killed", None)
    assert doing.now() == ""
