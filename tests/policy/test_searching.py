"""Which folders a command looks into, whatever options and patterns stand before them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridle.policy import Policy
from bridle.policy.searching import searched_words
from bridle.policy.shell.programs import read_commands

from .grounds import bash, real_ground, told


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("grep -rn foo src", ["src"]),
        ("grep -rn foo", ["."]),
        ("grep -rn -A 3 foo", ["."]),
        ("grep -rA3 foo a b", ["a", "b"]),
        ("grep -r -e foo -e bar src", ["src"]),
        ("grep -r --regexp foo src", ["src"]),
        ("grep -r foo --include '*.py'", ["."]),
        ("grep -r -- -x src", ["src"]),
        ("grep --recurs foo src", ["src"]),
        ("grep -d recurse foo src", ["src"]),
        ("rg foo", ["."]),
        ("rg -A 3 -g '*.py' foo src", ["src"]),
        ("rg --type py foo", ["."]),
        ("git grep foo", ["."]),
        ("git grep -n foo -- src", ["src"]),
        ("git grep -e foo src", ["src", "."]),
        ("diff -r a b", ["a", "b"]),
        ("find src -name x -exec cat {} +", ["src"]),
        ("find -name x -exec cat {} +", ["."]),
        ("find -L a b -type f -exec cat {} +", ["a", "b"]),
        ("find src -name x -print0 | xargs -0 cat", ["src"]),
    ],
)
def test_what_is_searched_is_known(command: str, expected: list[str]) -> None:
    words, is_whole = searched_words(read_commands(command).programs[0])
    assert ([word.value for word in words], is_whole) == (expected, True)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("grep foo a b", ["a", "b"]),
        ("grep foo", []),
        ("git diff main -- src", ["main", "src"]),
        ("diff a b", ["a", "b"]),
        ("cat a", []),
    ],
)
def test_what_may_be_a_folder_is_known(command: str, expected: list[str]) -> None:
    words, is_whole = searched_words(read_commands(command).programs[0])
    found = [word.value for word in words if word.value != "--"]
    assert (found, is_whole) == (expected, False)


@pytest.mark.parametrize(
    "command",
    [
        "find src -name x",
        "find src -print0 | xargs cat",
        "find src -print0 -printf x | xargs -0 cat",
        "find src -print0 | xargs -0 -a list cat",
        "find src -print0 | xargs -0 cat < list",
        "find src -print0 | sort -z | xargs -0 cat",
    ],
)
def test_what_find_prints_is_given_to_another_only_as_it_is(command: str) -> None:
    programs = read_commands(command).programs
    assert searched_words(programs[0]) == ([], True)
    given = [word for program in programs for inner in program.inner for word in inner.words]
    assert not any(word.is_found for word in given)


def test_a_diff_of_a_repository_looks_into_no_folder(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work / ".git", work / "src", other):
        folder.mkdir(parents=True)
    ground = real_ground(work, is_folder=os.path.isdir)
    judge = Policy("edits", deny=["Read(.env)"]).on(ground)
    for command in ("git diff -- src", "git diff main...HEAD -- src", "git diff src ."):
        assert told(judge.judge(bash(command))) == "allow", command
    for command in (
        f"git diff src {other}",
        "git diff . ../other",
        "git diff ~ .",
        'git diff src "$x"',
    ):
        assert told(judge.judge(bash(command))) == "ask", command
    (work / ".git").rmdir()
    assert told(judge.judge(bash("git diff src ."))) == "ask"
