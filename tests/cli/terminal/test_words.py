"""Numbers, paths and texts as people read them, and what matters of a call: at the edges."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.approvals.wording import duration as waited
from bridle.cli.terminal import calls
from bridle.cli.terminal.words import (
    amount,
    count,
    duration,
    first_lines,
    money,
    near,
    on_one_line,
    printed,
    seen,
)
from bridle.views import entries as e


def test_numbers_are_told_as_people_read_them() -> None:
    assert [money(d) for d in (0, 0.9999, 1, 12.345)] == ["$0.00", "$0.9999", "$1.00", "$12.35"]
    assert [amount(n) for n in (0, 999, 1_000, 999_949, 1_000_000, 2_500_000)] == [
        *("0", "999", "1.0k", "999.9k", "1.0M", "2.5M"),
    ]
    seconds = (0, 9.94, 10, 59.4, 60, 61, 3_599, 3_600, 3_661, 90_000)
    assert [duration(s) for s in seconds] == [
        *("0.0 s", "9.9 s", "10 s", "59 s", "1 min 0 s", "1 min 1 s", "59 min 59 s"),
        *("1 h 0 min", "1 h 1 min", "25 h 0 min"),
    ]
    assert [duration(s, coarse=True) for s in (0.4, 9.6, 60)] == ["0 s", "10 s", "1 min 0 s"]
    assert [count(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
    assert [count(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
    times = (1, 45, 60, 300, 3_600, 7_200, 86_400, 259_200)
    assert [waited(s) for s in times] == [
        *("1 second", "45 seconds", "1 minute", "5 minutes", "1 hour", "2 hours"),
        *("1 day", "3 days"),
    ]


def test_a_path_is_written_as_somebody_in_the_folder_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert near("/app/src/a.py", "/app") == near("/app/src/a.py", "/app/") == "src/a.py"
    assert near("/application/a.py", "/app") == "/application/a.py"
    assert near("/app", "/app") == "/app"
    assert near("/home/me/x", "/app") == near("/home/me/x", "") == "~/x"
    assert near("/home/meadow", "/app") == "/home/meadow"
    assert near("a.py", "") == "a.py"


def test_a_text_is_cut_where_there_is_no_room_for_more() -> None:
    assert on_one_line("x" * 10, 10) == "x" * 10
    assert on_one_line("x" * 11, 10) == "x" * 10 + "…"
    assert on_one_line(" a\nb \n", 10) == "a b"
    assert on_one_line("a" + " " * 100, 10) == "a…"
    assert first_lines("a\nb\nc\n\n", 2) == (["a", "b"], 1)
    assert first_lines("a\nb", 2) == (["a", "b"], 0)
    assert first_lines("\n", 2) == ([], 0)
    assert (seen("a\tb"), printed("\x1b[31mred\x1b[0m \x1b[2J")) == ("a   b", "red \\u001b[2J")


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("Read", {"file_path": "/app/a", "offset": 0, "limit": 5}, "Read a:0-4"),
        ("Read", {"file_path": "/app/a", "offset": 7}, "Read a:7-"),
        ("Read", {"file_path": "/app/a", "limit": 5}, "Read a:1-5"),
        ("NotebookEdit", {"notebook_path": "/app/n"}, "NotebookEdit n"),
        ("Grep", {"pattern": "x", "glob": "*.py"}, "Grep x in *.py"),
        ("Agent", {"prompt": "look"}, "Agent look"),
        ("mcp__a__b__c", {"n": 1}, "a: b__c n: 1"),
        ("mcp__a", {}, "mcp__a"),
        ("Bash", {"command": "a\nb"}, "Bash a"),
    ],
)
def test_of_a_call_what_it_is_about_is_told(name: str, given: dict[str, Any], words: str) -> None:
    assert calls.brief(name, given, "/app") == words


def ended(outcome: str, text: str = "", **more: Any) -> e.CallEnd:
    return e.CallEnd(outcome=outcome, at=1.0, seq=2, output=e.Excerpt(text), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "end", "lines"),
    [
        ("Read", ended("ok", "a\nb\n"), ["2 lines"]),
        ("Glob", ended("ok", "a"), ["1 file"]),
        ("Edit", ended("ok", "The file was updated"), None),
        ("Edit", ended("error", "no such text"), ["error", "no such text"]),
        ("Bash", ended("ok"), ["no output"]),
        ("Bash", ended("ok", "(Bash completed with no output)"), ["no output"]),
        ("Bash", ended("error", "Exit code 2\nFAIL", exit_code=2), ["exit 2", "FAIL"]),
        ("Bash", ended("ok", "Exit code 2\nx", exit_code=2), ["exit 2", "x"]),
        ("Bash", ended("denied", "a\nb\nc\nd"), ["denied", "a", "b", "c", "… 1 more line"]),
        ("Bash", ended("cancelled", "a"), ["cancelled"]),
        ("Bash", ended("unknown", "a"), ["its result is not here: see the events"]),
        ("Bash", ended("ok", "\n".join("abcdefghij")), [*"abcdefgh", "… 2 more lines"]),
        (
            "Read",
            ended("ok", pictures=[e.Picture("image/png", 7), e.Picture("", url="https://x")]),
            ["[image/png, 7 bytes]", "[https://x]"],
        ),
    ],
)
def test_of_its_end_what_does_not_go_without_saying_is_told(
    name: str, end: e.CallEnd, lines: list[str] | None
) -> None:
    found = calls.ending(name, end)
    assert (found and [line.plain for line in found.lines]) == lines


def test_what_a_call_changes_is_shown_part_by_part_and_up_to_a_point() -> None:
    edits = [{"old_string": f"a{n}", "new_string": f"b{n}"} for n in range(2)]
    found = calls.changes("MultiEdit", {"edits": edits})
    assert [line.plain for line in found] == ["- a0", "+ b0", "- a1", "+ b1"]
    old = "".join(f"{n}\n" for n in range(20))
    new = old.replace("2\n", "two\n", 1).replace("17\n", "x\n")
    shown = [line.plain for line in calls.changes("Edit", {"old_string": old, "new_string": new})]
    assert shown == [
        *("  0", "  1", "- 2", "+ two", "  3", "  4", "⋯"),
        *("  15", "  16", "- 17", "+ x", "  18", "  19"),
    ]
    many = calls.changes("Write", {"content": "x\n" * (calls.MOST_DIFF + 1)})
    assert (len(many), many[-1].plain) == (calls.MOST_DIFF + 1, "… 1 more line")
    assert len(calls.changes("Write", {"content": "x\n" * calls.MOST_DIFF})) == calls.MOST_DIFF
    todos = [{"content": f"{n}"} for n in range(calls.MOST_ITEMS + 1)]
    assert calls.changes("TodoWrite", {"todos": todos})[-1].plain == "… 1 more line"
    for name, given in (("Edit", {}), ("Write", {"content": 5}), ("MultiEdit", {"edits": 5})):
        assert calls.changes(name, given) == []
