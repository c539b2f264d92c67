"""No text makes the reader raise, or keeps it for long."""

from __future__ import annotations

import random
import signal
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.policy.shell.programs import read_commands
from bridle.policy.shell.reader import MAX_TEXT

from .scripts import mutated, script

_ALPHABET = st.sampled_from(
    list("'\"\\`$(){}[]<>|&;#!~*?=%^:@ \t\n-019abcfhx/é,+\0\r\x7f\u202e\ud800")
)
#: Repeated as often as there is room; `_` is a blank.
_UNITS = r"""$( " ( \ ` ${ ${x/ / ' < > <<E <<E\n a; a= $x $ [ [[ ~ * { } {} # \n env_ sh_-c_
find_-exec_ xargs_ nice_ git_-c_ a() a(){ if_ for_i_in_ case_x_in_ a| a&& ! !_ time_ x=1_ >f_
2>&1_ <( $(( $((1 "$( `a` $(a) "$x" é a` a< %s f_() function_f_ printf_% read_-r_ a" "a" a\n
_\\n \t x=1;"""
#: One pass over so much text takes this long here at most; quadratic work takes minutes.
MAX_SECONDS = 5.0


def _whole(unit: str, length: int = MAX_TEXT - 100) -> str:
    return unit * (length // len(unit))


HEAVY = {unit: _whole(unit.replace("_", " ").replace(r"\n", "\n")) for unit in _UNITS.split()} | {
    "slashes in an expansion": "a ${x" + "/" * (MAX_TEXT - 100),
    "slashes in a quoted expansion": 'a "${x' + "/" * (MAX_TEXT - 100),
    "hashes in an expansion": "a ${x" + "#" * (MAX_TEXT - 100),
    "a long default": "a ${x:-" + "b" * (MAX_TEXT - 100),
    "a heredoc of substitutions": "a <<E\n" + "$(b)" * 40_000 + "\nE\n",
    "many heredocs": "a" + " <<E" * 20_000 + "\n" + "E\n" * 20_000,
    "nested parentheses": "(" * 100_000 + "a" + ")" * 99_999,
    "nested substitutions": "$(" * 60_000 + "a" + ")" * 60_000,
    "nested groups": "{ " * 40_000 + "a" + "; }" * 40_000,
    "nested wrappers": "env " * 40_000 + "a",
    "nested finds": "find . " + "-exec find . " * 14_000 + "a ';'",
    "a format": "printf '" + "%" * (MAX_TEXT - 100) + "'",
    "a long text": "a" * 20_000_000,
}


class _TooSlow(Exception):
    pass


def _read_soon(text: str) -> None:
    """Fail after some seconds of work, and without a traceback of 40,000 words."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    failure = ""
    try:
        read_commands(text)
    except (RecursionError, _TooSlow) as error:
        failure = type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if failure:
        pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_text_is_read_or_refused_soon(name: str) -> None:
    _read_soon(HEAVY[name])


@given(st.text())
def test_no_text_raises(text: str) -> None:
    read_commands(text)


@given(st.text(_ALPHABET))
def test_no_text_of_special_characters_raises(text: str) -> None:
    read_commands(text)
    read_commands(text, is_posix=True)


@pytest.mark.parametrize("depth", [10, 39, 40, 41, 200, 900, 5000])
def test_no_depth_raises(depth: int) -> None:
    _read_soon("{ " * depth + "a" + "; }" * depth)
    _read_soon("a " + "$(a " * depth + ")" * depth)
    _read_soon("env " * depth + "a")
    _read_soon("a <<E\n" + "$(a " * depth + ")" * depth + "\nE\n")


def test_no_damaged_script_raises() -> None:
    chance = random.Random(5)
    text = script(1, has_wrappers=True)
    for seed in range(2_000):
        other = script(seed, has_wrappers=True)
        text = mutated(other if len(text) > 2_000 else text + other, other, chance)
        read_commands(text)
