"""Paths that are known in part: what a word may be, and whether that may be a path that matters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridle.policy import Asked
from bridle.policy.guard import TOO_MANY
from bridle.policy.partial_paths import (
    MAX_FORMS,
    MAX_LETTERS,
    Bindings,
    forms_of,
    globs_of,
    may_be,
    may_be_inside,
    may_contain,
    may_hold,
    whole,
)
from bridle.policy.shell.programs import read_commands
from bridle.policy.shell.script import ANY

from .grounds import GROUND, POLICIES, bash

HOME = "/home/me/.bridle"


def forms(script: str) -> list[str]:
    """What the last word of a script may be."""
    found = read_commands(script)
    assert not found.unclear
    word = found.programs[-1].words[-1]
    return forms_of(word, Bindings(found.variables, HOME=["/home/me"]))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cat a*", ["a*"]),
        ("cat $HOME/x", ["/home/me/x"]),
        ('cat "${HOME}"/x', ["/home/me/x"]),
        ("cat $x", [ANY]),
        ("x=a; cat $x/b", ["a/b"]),
        ("x=a; x=b; cat $x", ["a", "b"]),
        ("x=a; y=$x/c; cat $y", ["a/c"]),
        ("x=a; x=$x/b; cat $x", ["a", f"{ANY}/b"]),
        ("x=a; x+=b; cat $x", ["a", ANY]),
        ("x='a b'; cat $x", ["a b", "a", "b"]),
        ("for f in a b*; do cat $f; done", ["a", "b*"]),
        ("for f; do cat $f; done", [ANY]),
        ("read x; cat $x", [ANY]),
        ("export x=a; cat $x", ["a"]),
        ("cat {a,b}/c", ["a/c", "b/c"]),
        ("cat {a,b{c,d}}", ["a", "bc", "bd"]),
        ("cat {1..3}", [ANY]),
        ("cat {a,$x}", ["a", ANY]),
        ("cat a$(b)c", [f"a{ANY}c"]),
        ("bash -c 'x=a; cat $x'", ["x=a; cat $x"]),
    ],
)
def test_a_word_may_be_all_that_the_script_makes_of_it(script: str, expected: list[str]) -> None:
    assert forms(script) == expected


def by_way_of_others(count: int, value: str) -> str:
    """A script that sets each variable by way of the one before."""
    sets = [f"x{n}={value.replace('$x', f'$x{n - 1}')}" for n in range(1, count)]
    return "; ".join(["x0=ab", *sets, f"cat $x{count - 1}"])


def test_what_is_twice_as_long_with_each_variable_is_not_made() -> None:
    assert forms(by_way_of_others(4, "$x$x")) == ["ab" * 8]
    for value in ("$x$x", '"$x/$x"'):
        assert forms(by_way_of_others(20, value)) == [ANY]
        assert sees_too_much(by_way_of_others(20, value))


def test_what_is_set_by_way_of_too_many_others_may_be_anything() -> None:
    assert forms(by_way_of_others(15, "$x")) == ["ab"]
    assert forms(by_way_of_others(30, "$x")) == [ANY]
    assert sees_too_much(by_way_of_others(800, "$x"))


def test_what_is_made_for_all_words_of_a_script_has_an_end() -> None:
    long = "y" * 5000
    copies = "; ".join(f"x{n}=$x{{a,b,c,d,e,f,g,h}}" for n in range(200))
    script = f"x={long}; {copies}; cat {' '.join(f'$x{n}' for n in range(200))}"
    found = read_commands(script)
    bindings = Bindings(found.variables)
    made = [forms_of(word, bindings) for word in found.programs[-1].words]
    assert bindings.is_too_much
    assert sum(len(form) for forms in made for form in forms) < 2 * MAX_LETTERS


def sees_too_much(script: str) -> bool:
    """Whether a person is asked, whatever may be run."""
    verdict = POLICIES["autonomous"].on(GROUND).judge(bash(script))
    return isinstance(verdict, Asked) and verdict.guard == TOO_MANY


def test_a_word_that_may_be_very_much_may_be_anything() -> None:
    braces = "{a,b}" * 10
    assert MAX_FORMS < 2**10
    assert forms(f"cat {braces}") == [ANY]
    deep = "; ".join(f"x{number}=$x{number + 1}" for number in range(20))
    assert forms(f"{deep}; cat $x0") == [ANY]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("/a/./b/../c", "/a/c"),
        ("/a/*/b", "/a/*/b"),
        ("/a/*/../b", ANY),
        (f"/a/{ANY}/../b", ANY),
        ("/proc/[s]elf/cwd", f"/proc/{ANY}"),
        ("/a/../b*", "/b*"),
    ],
)
def test_what_is_above_something_unknown_may_be_anywhere(form: str, expected: str) -> None:
    assert whole(form) == expected


CASES: list[tuple[Callable[..., bool], str, object, bool]] = [
    (may_be_inside, "/home/me/.b*/token", HOME, True),
    (may_be_inside, "/home/me/.b*", HOME, True),
    (may_be_inside, "/home/me/*/token", HOME, False),
    (may_be_inside, "/home/me/*", HOME, False),
    (may_be_inside, f"/home/me/.br{ANY}", HOME, True),
    (may_be_inside, f"/home/me/{ANY}/token", HOME, True),
    (may_be_inside, f"/home/you/{ANY}", HOME, False),
    (may_be_inside, f"/home/me/app/{ANY}", HOME, False),
    (may_be_inside, ANY, HOME, False),
    (may_be_inside, "/home/m*", HOME, False),
    (may_hold, "/home/m*", HOME, True),
    (may_hold, "/hom*", HOME, True),
    (may_hold, "/home/m*/app", HOME, False),
    (may_hold, f"/home/{ANY}", HOME, True),
    (may_hold, f"/opt/{ANY}", HOME, False),
    (may_be, "/a/m*.toml", "/a/mine.toml", True),
    (may_be, "/a/*/mine.toml", "/a/mine.toml", False),
    (may_be, f"{ANY}/mine.toml", "/a/mine.toml", True),
    (may_be, ANY, "/a/mine.toml", False),
    (may_contain, f"{ANY}/.git/config", (".git",), True),
    (may_contain, "/a/.g*/config", (".git",), True),
    (may_contain, "/a/*/config", (".git",), False),
    (may_contain, "/a/.config/*/user", (".config", "systemd"), True),
]


def test_a_form_is_compared_with_a_path_that_matters() -> None:
    wrong = [(f.__name__, form, path) for f, form, path, is_so in CASES if f(form, path) != is_so]
    assert wrong == []


def test_a_form_is_a_glob_for_rules() -> None:
    assert globs_of("/a/{b,c}/*") == ["/a/b/*", "/a/c/*"]
    assert globs_of("/a/**/x") == [f"/a/{ANY}/x"]
    assert globs_of(r"/a/@(b)") == [f"/a/{ANY}"]
