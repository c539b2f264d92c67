"""What agents say in windows of all sizes: narrow ones, ones that change; and words that draw.

The emulator fails on whatever we do not mean to write, so that nothing hostile gets past it.
"""

from __future__ import annotations

import itertools

import pytest

from .emulator import width_of
from .places import DONE, INIT, PROMPT, Place, asks, calls, gives, judged

HOSTILE = "\x1b[2J\x1b[H\x1b]0;title\x07\x1b[?1049h\x9b31m\r\b\x7f\u202e\u200bDone. \x1b[1Aok"
KEYS = "[y]es  [n]o  [a]lways"
LONG = " ".join(f"word{number}" for number in range(60))


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.slow
@pytest.mark.parametrize("reflows", [True, False], ids=["wrapping anew", "cutting off"])
@pytest.mark.parametrize("columns", [44, 120])
async def test_a_window_that_changes_in_the_middle_leaves_what_was_printed_as_it_was(
    place: Place, columns: int, *, reflows: bool
) -> None:
    place.cli(
        PROMPT,
        INIT,
        {"say": "Before it changes."},
        {"partial": LONG, "chunk": 40, "delay": 0.01},
        *asks("Bash", {"command": "npm test"}),
        {"say": "After it has changed."},
        DONE,
    )
    async with place.window("run", "Go", size=(80, 12), reflows=reflows) as window:
        await window.sees("word20")
        window.resizes(columns, 12)
        await window.sees(KEYS)
        window.resizes(80, 20)
        window.types("y")
        assert await window.ends() == 0
        text = window.screen.text
    if reflows:
        assert text.startswith(
            "· Claude Code 2.1.325, policy ask\n\n> Go\n\n● Before it changes.\n\n● word0 word1"
        )
    for once in ("> Go", "● Before it changes.", "● word0", "● Bash  npm test", "● After it"):
        assert text.count(once) == 1, once
    # Nothing of what was underway is left.
    assert not [line for line in lines_of(text) if line[0] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"]
    assert text.endswith("bridle run --resume 00000000-0000-4000-8000-000000000000")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 57])
async def test_a_narrow_window_has_all_of_it_and_no_line_that_is_too_long(
    place: Place, columns: int
) -> None:
    table = "| one | two |\n|---|---|\n| a | " + "b" * 60 + " |"
    code, item = f"```python\n{'x' * 100}\n```", "- a list " + "日本語" * 10
    said = f"{LONG}\n\n{code}\n\n{table}\n\n{item}"
    command = "echo " + "y" * 100
    place.cli(
        PROMPT,
        INIT,
        {"say": said},
        *asks("Bash", {"command": command}),
        *judged("Read", {"file_path": "very/" + "long/" * 20 + "path.py"}, "r1"),
        gives("r1", "z" * 500),
        DONE,
    )
    async with place.window("run", "Go", size=(columns, 12)) as window:
        await window.sees("[?]")
        window.types("y")
        assert await window.ends() == 0
        text = window.screen.text
        rows = window.screen.rows
    assert "word59" in text
    joined = "".join(line.strip() for line in text.splitlines())
    assert "x" * 100 in joined
    assert "y" * 100 in joined
    # What we print is wrapped by us: a terminal that had to do it would do it anywhere. (What is
    # asked is written as it is: whoever copies it has all of it in one line.)
    asked = [row.text.startswith("work wants") for row in rows].index(True)
    told = [row.text.startswith("  ✓ allowed") for row in rows].index(True)
    ours = [*rows[:asked], *rows[told:]]
    assert [row.text for row in ours if row.is_soft] == []


async def test_what_an_agent_writes_can_not_draw_on_the_screen(place: Place) -> None:
    given = {"command": f"ls {HOSTILE}", "description": HOSTILE}
    path = {"file_path": f"/app/{HOSTILE}.py", "old_string": HOSTILE, "new_string": "x"}
    place.cli(
        PROMPT,
        INIT,
        {"say": f"# {HOSTILE}\n\n{HOSTILE} `{HOSTILE}`\n\n```{HOSTILE}\n{HOSTILE}\n```"},
        {"partial": f"[a {HOSTILE}](https://x/{HOSTILE})", "chunk": 3},
        *judged("Edit", path, "e1"),
        gives("e1", "ok"),
        calls(f"Tool{HOSTILE}", {HOSTILE: HOSTILE}, "x1"),
        gives("x1", HOSTILE, is_error=True),
        *judged("TodoWrite", {"todos": [{"content": HOSTILE, "status": HOSTILE}]}, "w1"),
        gives("w1", "ok"),
        *asks("Bash", given),
        {"message": {"type": "system", "subtype": HOSTILE}},
        {"message": {"type": HOSTILE}},
        {"raw": f"{HOSTILE}\n"},
        {"stderr": f"{HOSTILE}\n"},
        {"result": {"subtype": HOSTILE, "is_error": True, "result": HOSTILE}},
    )
    async with place.window(
        "run", "--verbose", "--name", "a\x1b[2Jb", "--yes-to", "Edit", "Go"
    ) as window:
        # The emulator is the test: it takes no sequence that is not ours.
        await window.sees(KEYS)
        window.types("y")
        assert await window.ends() == 1
    assert "\\u001b[2J" in window.screen.text
    assert "\\u202e" in window.screen.text
    assert "\x07" not in window.raw
    assert "\x9b" not in window.raw


async def test_wide_letters_and_emoji_stay_in_their_columns(place: Place) -> None:
    words = "日本語のテキスト、絵文字 🎉👩‍💻⚠️ と한국어。" * 6
    place.cli(PROMPT, INIT, {"partial": words, "chunk": 5}, DONE)
    async with place.window("run", words[:30], size=(50, 20)) as window:
        assert await window.ends() == 0
        text = window.screen.text
        assert not [row for row in window.screen.rows if row.is_soft]
    for line in text.splitlines():
        assert sum(map(width_of, line)) <= 50
    said = [line for line in text.splitlines() if "日本語" in line or "한국어" in line]
    assert len(said) > 4


@pytest.mark.slow
async def test_huge_output_is_cut_and_says_how_much_there_is(place: Place) -> None:
    place.cli(
        PROMPT,
        INIT,
        *judged("Bash", {"command": "make"}, "b1"),
        gives("b1", "\n".join(f"line {number}" for number in range(5_000))),
        *judged("Write", {"file_path": "/app/x", "content": "new\n" * 300}, "w1"),
        gives("w1", "ok"),
        {"big": 3_000_000},
        {"repeat": 300, "steps": [{"say": "again"}]},
        DONE,
    )
    async with place.window("run", "Go", "--yes-to", "Bash", "--yes-to", "Write") as window:
        assert await window.ends() == 0
        text = window.screen.text
    lines = text.splitlines()
    start = lines.index("● Bash  make")
    assert lines[start + 1 : start + 3] == ["  └ line 0", "    line 1"]
    assert lines[start + 9] == "    … 4992 more lines"
    assert "    … 276 more lines" in lines
    assert lines.count("● again") == 300
    # The giant line is in the log alone; here it is named.
    assert [line for line in lines if "too large to be shown here" in line]


async def test_without_colours_there_are_none(place: Place) -> None:
    place.cli(PROMPT, INIT, {"say": "**bold** and `code`"}, *asks("Bash", {"command": "x"}), DONE)
    async with place.window("run", "Go", env={"NO_COLOR": "1"}) as window:
        await window.sees(KEYS)
        window.types("y")
        assert await window.ends() == 0
    numbers = {part[2:-1] for part in _colours(window.raw)}
    used = set(itertools.chain.from_iterable(number.split(";") for number in numbers))
    assert not {number for number in used if number and int(number) >= 30}


def _colours(raw: str) -> list[str]:
    import re

    return re.findall(r"\x1b\[[0-9;]*m", raw)


async def test_a_terminal_that_can_do_nothing_gets_lines(place: Place) -> None:
    place.cli(PROMPT, INIT, {"say": "**plain**"}, *asks("Bash", {"command": "x"}), DONE)
    async with place.window("run", "Go", env={"TERM": "dumb", "NO_COLOR": "1"}) as window:
        await window.sees(KEYS)
        window.types("y")
        assert await window.ends() == 0
    assert "\x1b" not in window.raw
    assert "● **plain**" in window.raw
