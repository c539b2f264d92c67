"""No text makes the reader raise, or keeps it for long."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.policy.shell.programs import read_commands
from bridle.policy.shell.reader import MAX_TEXT
from tests.operations import TooMany, grows_as_its_size, operations

from .scripts import mutated, script

_ALPHABET = st.sampled_from(
    list("'\"\\`$(){}[]<>|&;#!~*?=%^:@ \t\n-019abcfhx/é,+\0\r\x7f\u202e\ud800")
)
#: Repeated as often as there is room; `_` is a blank.
_UNITS = r"""$( " ( \ ` ${ ${x/ / ' < > <<E <<E\n a; a= $x $ [ [[ ~ * { } {} # \n env_ sh_-c_
find_-exec_ xargs_ nice_ git_-c_ a() a(){ if_ for_i_in_ case_x_in_ a| a&& ! !_ time_ x=1_ >f_
2>&1_ <( $(( $((1 "$( `a` $(a) "$x" é a` a< %s f_() function_f_ printf_% read_-r_ a" "a" a\n
_\\n \t x=1;"""
#: For each character; what is read twice, or again at every depth, takes more.
MOST_OPERATIONS = 50


def _heavy(size: int) -> dict[str, str]:
    units = {unit: unit.replace("_", " ").replace(r"\n", "\n") for unit in _UNITS.split()}
    return {name: unit * (size // len(unit)) for name, unit in units.items()} | {
        "slashes in an expansion": "a ${x" + "/" * size,
        "slashes in a quoted expansion": 'a "${x' + "/" * size,
        "hashes in an expansion": "a ${x" + "#" * size,
        "a long default": "a ${x:-" + "b" * size,
        "a heredoc of substitutions": "a <<E\n" + "$(b)" * (size // 5) + "\nE\n",
        "many heredocs": "a" + " <<E" * (size // 10) + "\n" + "E\n" * (size // 10),
        "nested parentheses": "(" * (size // 2) + "a" + ")" * (size // 2 - 1),
        "nested substitutions": "$(" * (size // 4) + "a" + ")" * (size // 4),
        "nested groups": "{ " * (size // 5) + "a" + "; }" * (size // 5),
        "nested wrappers": "env " * (size // 5) + "a",
        "nested finds": "find . " + "-exec find . " * (size // 15) + "a ';'",
        "a format": "printf '" + "%" * size + "'",
    }


def _read(text: str) -> None:
    try:
        operations(lambda: read_commands(text), MOST_OPERATIONS * max(len(text), 100))
    except (RecursionError, TooMany) as error:  # without a traceback of 40,000 words
        pytest.fail(f"{type(error).__name__}: {error}", pytrace=False)


@pytest.mark.slow
def test_heavy_text_is_read_once() -> None:
    for text in _heavy(4_000).values():
        _read(text)


def test_a_text_that_is_too_long_is_not_read() -> None:
    assert operations(lambda: read_commands("a" * 20_000_000)) < MOST_OPERATIONS


@pytest.mark.slow
def test_heavy_text_takes_no_longer_than_its_length() -> None:
    small, large = (_heavy(size) for size in (MAX_TEXT // 10 - 100, MAX_TEXT - 1_000))
    slow = [
        name for name in small if not grows_as_its_size(read_commands, small[name], large[name])
    ]
    assert slow == []


@given(st.text())
def test_no_text_raises(text: str) -> None:
    read_commands(text)


@given(st.text(_ALPHABET))
def test_no_text_of_special_characters_raises(text: str) -> None:
    read_commands(text)
    read_commands(text, is_posix=True)


@pytest.mark.parametrize("depth", [10, 39, 40, 41, 200, 900, 5000])
def test_no_depth_raises(depth: int) -> None:
    _read("{ " * depth + "a" + "; }" * depth)
    _read("a " + "$(a " * depth + ")" * depth)
    _read("env " * depth + "a")
    _read("a <<E\n" + "$(a " * depth + ")" * depth + "\nE\n")


def test_no_damaged_script_raises() -> None:
    chance = random.Random(5)
    text = script(1, has_wrappers=True)
    for seed in range(2_000):
        other = script(seed, has_wrappers=True)
        text = mutated(other if len(text) > 2_000 else text + other, other, chance)
        read_commands(text)
