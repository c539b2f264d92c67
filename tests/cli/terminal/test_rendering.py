"""What a transcript looks like: from short words, and from recordings of real CLIs."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from bridle.cli.terminal.look import THEME
from bridle.cli.terminal.printer import Printer
from bridle.cli.terminal.rendering import Look
from bridle.cli.terminal.screen import LiveScreen, PlainScreen
from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import Transcript, stream
from tests.views.helpers import SCENARIOS, Told, recorded

FOLDER = "/app"


def console(**options: Any) -> Console:
    return Console(
        file=io.StringIO(), theme=THEME, highlight=False, markup=False, emoji=False, **options
    )


def live(told: list[stream.Entry], width: int = 60, look: Look | None = None) -> str:
    """As a terminal without colours would show it."""
    file = io.StringIO()
    screen = LiveScreen(file, console(color_system=None), lambda: (width, 24))
    _show(told, screen, look)
    return file.getvalue()


def plain(told: list[stream.Entry], look: Look | None = None) -> str:
    file = io.StringIO()
    _show(told, PlainScreen(file), look)
    return file.getvalue()


def _show(told: list[stream.Entry], screen: Any, look: Look | None) -> None:
    printer, transcript = Printer(look or Look(folder=FOLDER)), Transcript()
    for event in told:
        changes = transcript.add(event)
        for entry in (*changes.added, *changes.changed):
            screen.show(printer.take(entry))


def prompt(told: Told, text: str) -> None:
    told.wrote({"type": "user", "message": {"role": "user", "content": text}}, "u1")


# --- recordings


@pytest.mark.parametrize("version", TESTED_VERSIONS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_real_wires_fit_into_windows_of_all_widths(version: str, scenario: str) -> None:
    told = recorded(version, scenario)
    for width in (40, 80, 200):
        for line in live(told, width, Look(folder=FOLDER, is_verbose=True)).splitlines():
            assert line == "" or line.isprintable()
            assert cell_len(line) <= width


def test_a_real_subagent_stands_indented_below_its_call() -> None:
    lines = plain(recorded(TESTED_VERSIONS[-1], "subagent")).splitlines()
    call = lines.index("● Agent  sub work (general-purpose)")
    child = lines.index("  ● Child works.")
    assert call < child
    assert "  ● Bash  touch child.txt" in lines[child:]
    assert "● Parent is done." in lines[child:]


# --- each sort of entry


def test_a_turn_is_a_prompt_words_calls_and_how_it_ended() -> None:
    told = Told()
    prompt(told, "Make the tests\npass")
    told.said(_thinks("First this.\nThen that.\nThen more.\nAnd more.\nAnd more."))
    told.text("I will *look*.")
    told.calls("r1", "Read", file_path="/app/src/a.py", offset=10, limit=20)
    told.gives("r1", "\n".join("x" * 20))
    told.calls("b1", "Bash", command="npm test &&\n  echo ok")
    told.gives("b1", "Exit code 2\n\x1b[31mFAIL\x1b[0m a\nFAIL b", is_error=True)
    told.text("Done.")
    told.result(0.5, duration_ms=75_000)
    assert live(told.entries) == (
        "> Make the tests\n"
        "  pass\n"
        "\n"
        "∴ First this.\n"
        "  Then that.\n"
        "  Then more.\n"
        "  … 2 more lines\n"
        "\n"
        "● I will look.\n"
        "\n"
        "● Read  src/a.py:10-29\n"
        "  └ 20 lines\n"
        "● Bash  npm test &&\n"
        "      echo ok\n"
        "  └ exit 2\n"
        "    FAIL a\n"
        "    FAIL b\n"
        "\n"
        "● Done.\n"
        "\n"
        "✓ done · 1 min 15 s · $0.5000\n"
    )


def test_an_edit_is_a_diff_in_colours_and_a_long_one_is_cut() -> None:
    told = Told()
    told.calls("e1", "Edit", file_path="/app/a.py", old_string="a\nb\nc", new_string="a\nB\nc")
    told.gives("e1", "The file was updated.")
    told.calls("w1", "Write", file_path="/app/b.py", content="new\n" * 30)
    told.gives("w1", "ok")
    assert live(told.entries).splitlines()[:7] == [
        "● Edit  a.py",
        "      a",
        "    - b",
        "    + B",
        "      c",
        "● Write  b.py",
        "    + new",
    ]
    assert live(told.entries).endswith("    + new\n    … 6 more lines\n")
    file = io.StringIO()
    coloured = console(force_terminal=True, color_system="standard")
    _show(told.entries, LiveScreen(file, coloured, lambda: (60, 24)), None)
    assert "\x1b[31m- b\x1b[0m" in file.getvalue()
    assert "\x1b[32m+ B\x1b[0m" in file.getvalue()


def test_markdown_is_set_and_hides_nothing() -> None:
    told = Told()
    told.text(
        "# Head\n\nSee [the docs](https://example.com/x), `code`, Vec<String> and <b>tags</b>.\n\n"
        "- one\n- two\n\n```py\nx = 1\n```\n\n\n> quoted"
    )
    assert live(told.entries, 70) == (
        "● Head\n"
        "\n"
        "  See the docs (https://example.com/x), code, Vec<String> and\n"
        "  <b>tags</b>.\n"
        "\n"
        "   • one\n"
        "   • two\n"
        "\n"
        "  x = 1\n"
        "\n"
        "  ▌ quoted\n"
    )


def test_a_list_of_things_to_do_is_shown_as_one() -> None:
    todos = [
        {"content": "look", "status": "completed"},
        {"content": "leap", "status": "in_progress"},
        {"content": "rest", "status": "pending"},
    ]
    told = Told()
    told.calls("t1", "TodoWrite", todos=todos)
    told.gives("t1", "ok")
    assert live(told.entries) == ("● TodoWrite  3 items\n    ☒ look\n    ☐ leap\n    ☐ rest\n")


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("Grep", {"pattern": "foo.*", "path": "/app/src"}, "● Grep  foo.*  in src"),
        ("Glob", {"pattern": "**/*.py"}, "● Glob  **/*.py"),
        ("WebFetch", {"url": "https://x", "prompt": "p"}, "● WebFetch  https://x"),
        ("mcp__git__log", {"n": 3, "all": True}, "● git: log  n: 3, all: true"),
        ("Task", {"description": "look", "subagent_type": "t"}, "● Task  look (t)"),
        ("Read", {"file_path": "/else/a"}, "● Read  /else/a"),
        ("AskUserQuestion", {"questions": [{"question": "Why?"}]}, "● AskUserQuestion  Why?"),
        # Whatever has another form is shown as it is.
        ("Bash", {"command": 5}, "● Bash  command: 5"),
        ("Read", {}, "● Read"),
        ("Edit", {"file_path": ["x"]}, '● Edit  file_path: ["x"]'),
        ("TodoWrite", {"todos": "none"}, "● TodoWrite  4 items"),
    ],
)
def test_of_a_call_what_matters_is_shown(name: str, given: dict[str, Any], line: str) -> None:
    told = Told()
    told.calls("c1", name, None, **given)
    assert live(told.entries).splitlines()[0] == line


def test_results_of_calls_that_ran_together_say_whose_they_are() -> None:
    told = Told()
    told.calls("b1", "Bash", command="one")
    told.calls("b2", "Bash", command="two")
    told.gives("b1", "1")
    told.gives("b2", "2")
    assert plain(told.entries) == (
        "● Bash  one\n● Bash  two\n\n✓ Bash one\n  1\n\n✓ Bash two\n  2\n"
    )


def test_where_nobody_is_asked_a_question_is_told_with_how_to_answer_it() -> None:
    told = Told()
    told.calls("b1", "Bash", command="npm test")
    told.asks("a1", "b1", input={"command": "npm test"}, reason="no rule allows it")
    told.decides("a1", "reject", message="not now")
    told.gives("b1", "The user said no", is_error=True)
    assert plain(told.entries) == (
        "● Bash  npm test\n"
        "  ? Bash npm test waits to be allowed\n"
        "    no rule allows it\n"
        "    bridle approve a1\n"
        "  ✗ denied by ann: not now\n"
    )


def test_where_it_is_asked_by_keys_only_the_answer_is_told() -> None:
    told = Told()
    told.calls("e1", "Edit", file_path="/app/a", old_string="a", new_string="b")
    told.asks("a1", "e1", tool="Edit")
    told.decides("a1")
    told.gives("e1", "ok")
    look = Look(folder=FOLDER, is_asked_here=True, me="ann")
    assert plain(told.entries, look) == "● Edit  a\n  ✓ allowed by you\n"


def test_agents_who_are_asked_and_decide_are_told_by_the_beginning_of_their_id() -> None:
    told, agent = Told(), "a52bf4d1-cc4c-489a-b27f-2c0fa3153181"
    told.calls("b1", "Bash", command="npm test")
    told.asks("a1", "b1", input={"command": "npm test"})
    told.event("approval.escalated", {"id": "a1", "steps": [{"to": agent, "why": "it is late"}]})
    by = {"type": "agent", "session": agent}
    ending = {"type": "decided", "at": told.now, "by": by, "choice": {"type": "approve"}}
    told.event("approval.decided", {"id": "a1", "ending": ending})
    told.gives("b1", "ok")
    shown = plain(told.entries, Look(folder=FOLDER, is_asked_here=True, me="ann"))
    assert "allowed by session a52bf4d1\n" in shown
    assert "· now put to session a52bf4d1, it is late\n" in shown


def test_an_answer_to_a_question_is_told() -> None:
    told = Told()
    for id_, answers in (("q1", {"Which?": "SQLite"}), ("q2", {"Which?": "A", "And?": "B"})):
        told.calls(id_, "AskUserQuestion", questions=[{"question": one} for one in answers])
        told.asks(f"of-{id_}", id_, tool="AskUserQuestion", kind="question")
        told.decides(f"of-{id_}", "answer_question", answers=answers)
        told.gives(id_, "ok")
    shown = plain(told.entries, Look(folder=FOLDER, is_asked_here=True, me="ann"))
    assert "✓ answered by you: SQLite\n" in shown
    assert "✓ answered by you: Which? A; And? B\n" in shown
    assert "allowed" not in shown


@pytest.mark.parametrize("is_asked_here", [True, False])
def test_a_plan_is_shown_once_and_then_what_became_of_it(*, is_asked_here: bool) -> None:
    told = Told()
    told.calls("p1", "ExitPlanMode", plan="1. look\n2. leap")
    told.asks("a1", "p1", kind="plan", input={"plan": "1. look\n2. leap"})
    told.decides("a1", "approve_plan", mode="acceptEdits")
    told.gives("p1", "ok")
    shown = plain(told.entries, Look(is_asked_here=is_asked_here))
    # Whoever asks by keys has shown the plan.
    assert shown.count("2. leap") == (0 if is_asked_here else 1)
    assert shown.count("the plan is allowed by ann: acceptEdits") == 1


def test_where_nobody_is_asked_a_plan_is_shown_while_it_waits() -> None:
    told = Told()
    told.calls("p1", "ExitPlanMode", plan="1. look\n2. leap")
    assert "2. leap" in plain(told.entries)
    told.asks("a1", "p1", kind="plan", input={"plan": "1. look\n2. leap"})
    shown = plain(told.entries)
    assert (shown.count("2. leap"), "bridle approve a1" in shown) == (1, True)
    assert "leap" not in plain(told.entries, Look(is_asked_here=True))
    told.decides("a1", "reject", message="not so")
    told.gives("p1", "no", is_error=True)
    shown = plain(told.entries)
    assert (shown.count("2. leap"), shown.count("the plan is denied by ann: not so")) == (1, 1)


def test_an_entry_that_comes_again_is_not_shown_again() -> None:
    told = Told()
    told.text("Hello.")
    told.calls("b1", "Bash", command="ls")
    told.gives("b1", "a")
    transcript, printer = Transcript(), Printer(Look())
    for event in told.entries:
        transcript.add(event)
    entries = transcript.page(after=0)
    first = [block for entry in entries for block in printer.take(entry)]
    again = [block for entry in entries for block in printer.take(entry)]
    assert first
    assert again == []


def test_the_end_of_a_call_that_began_before_we_looked_is_told() -> None:
    told = Told()
    told.calls("b1", "Bash", command="sleep 60")
    told.text("Meanwhile.")
    told.gives("b1", "slept")
    transcript, printer = Transcript(), Printer(Look())
    *before, last = told.entries
    for event in before:
        transcript.add(event)
    printer.take(transcript.page(limit=1)[0])
    file = io.StringIO()
    PlainScreen(file).show(printer.take(transcript.add(last).changed[0]))
    assert file.getvalue() == "\n✓ Bash sleep 60\n  slept\n"


def test_what_goes_wrong_is_told_and_what_goes_without_saying_is_not() -> None:
    told = Told()
    told.begins("two")
    told.event(stream.STDERR, stream.Stderr(launch="two", end=1, text="a warning"))
    init = {"type": "system", "subtype": "init", "cwd": "/app", "tools": []}
    told.said({**init, "model": "opus", "permissionMode": "plan", "session_id": "s"})
    told.event(stream.LIMITED, stream.Limited(at=1.0, words="too many requests"))
    told.said({"type": "result", "subtype": "error_max_turns", "is_error": True})
    told.ends("killed", None)
    assert plain(told.entries) == (
        "! limit: limited, too many requests\n"
        "\n"
        "✗ error_max_turns\n"
        "\n"
        "✗ failed (error_max_turns) · 0.0 s\n"
        "\n"
        "✗ killed\n"
    )
    verbose = plain(told.entries, Look(is_verbose=True))
    for words in ("a warning", "mode: plan", "model: opus", "launch: ready"):
        assert words in verbose


def test_what_a_program_printed_in_one_endless_line_is_cut() -> None:
    told = Told()
    told.calls("b1", "Bash", command="x")
    told.gives("b1", "y" * 50_000)
    assert live(told.entries, 40).splitlines()[1] == "  └ " + "y" * 35 + "…"
    assert len(plain(told.entries)) < 3_000


def test_a_text_of_tables_without_end_is_shown_as_it_was_written() -> None:
    table = "|a|b|\n|-|-|\n" + "|c|d|\n" * 5_000
    told = Told()
    told.text(table)
    assert live(told.entries).count("|c|d|") == 5_000


def _thinks(text: str) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": text}
    message = {"id": "m", "role": "assistant", "model": "opus", "content": [block]}
    return {"type": "assistant", "message": message}
