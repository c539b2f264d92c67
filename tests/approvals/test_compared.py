"""What changes between two texts, and how much is compared."""

from __future__ import annotations

import difflib
import random

from bridle.approvals.compared import MOST_PAIRS, compared
from tests.operations import operations


def plainly(before: list[str], after: list[str], around: int) -> list[str]:
    return list(difflib.unified_diff(before, after, "f", "f", lineterm="", n=around))


def applied(before: list[str], lines: list[str]) -> list[str]:
    """What a diff makes of a text, by the numbers of its hunks."""
    after, at = [], 0
    for line in lines[2:]:
        if line.startswith("@"):
            first, _, count = line.split()[1][1:].partition(",")
            begin = int(first) - (count != "0")
            after += before[at:begin]
            at = begin
        elif line.startswith("+"):
            after.append(line[1:])
        else:
            assert line[1:] == before[at]
            after += [line[1:]] if line.startswith(" ") else []
            at += 1
    return [*after, *before[at:]]


def test_small_texts_are_compared_as_ever() -> None:
    some = random.Random(7)
    for _ in range(300):
        before = [some.choice("abcdefgh") for _ in range(some.randrange(12))]
        after = [line for line in before if some.random() < 0.8]
        for _ in range(some.randrange(3)):
            after.insert(some.randrange(len(after) + 1), some.choice("abxy"))
        for around in (0, 2, 3):
            told = list(compared(before, after, "f", around=around))
            assert applied(before, told) == after
            assert bool(told) is (before != after)
    text = [str(number) for number in range(50)]
    for changed in ([*text[:20], "x", *text[21:]], text[1:], text[:-1], [], [*text, "y"], text):
        assert list(compared(text, changed, "f", around=3)) == plainly(text, changed, 3)


def test_of_what_is_too_much_all_between_the_first_and_the_last_is_one_change() -> None:
    same = [f"same {number}" for number in range(10)]
    gone, come = ([f"{word} {number}" for number in range(2000)] for word in ("old", "new"))
    assert len(gone) * len(come) > MOST_PAIRS
    before, after = [*same, *gone, *same], [*same, *come, *same]
    told = list(compared(before, after, "f", around=2))
    assert told[:5] == ["--- f", "+++ f", "@@ -9,2004 +9,2004 @@", " same 8", " same 9"]
    assert told[5:] == [
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        " same 0",
        " same 1",
    ]
    assert applied(before, told) == after


def test_large_texts_take_no_longer_than_they_are_long() -> None:
    before = [str(number % 150) for number in range(20_000)]
    after = [str(number * 7 % 151) for number in range(20_000)]
    assert operations(lambda: list(compared(before, after, around=3))) < 500_000
    one = [*before[:10_000], "another", *before[10_001:]]
    assert len(list(compared(before, one, around=3))) == 11
