"""Scripts that were once read wrongly: now they are asked, or all that they run is seen.

Each with what a shell really ran or wrote, which another test holds against the shell itself.
"""

from __future__ import annotations

import shutil

import pytest

from bridle.policy.shell.programs import read_commands

from .compare import misses
from .sandbox import HOME, Ran, Sandbox

BASH: list[tuple[str, list[str]]] = [
    # A heredoc's body is due at the newline before a function's body.
    ("c1 <<'E'; f()\n{ c2 <<'X'; }\nE\n{ c3; }\nc9\nX\n", ["c9"]),
    ("c1 <<'E'; function f\n{ c2 <<'X'; }\nE\n{ c3; }\nc9\nX\n", ["c9"]),
    # Options of the keyword `time`.
    ("time -- c1", ["c1"]),
    ("time -p\tc1", ["c1"]),
    ("time -p>f c1", ["c1"]),
    ("time -p -- c1", ["c1"]),
    # bash expands a tilde in arguments that look like assignments.
    ("c1 a=~/x", ["c1", f"a={HOME}/x"]),
    ("c1 a=b:~/x", ["c1", f"a=b:{HOME}/x"]),
    # bash expands the target of `>&` twice.
    ("c1 >&'$(h1)'", ["h1"]),
    ("x='$(h1)'; c1 >&$x", ["h1"]),
    ("x='`h1`'; c1 >& \"$x\"", ["h1"]),
    # `>&-` ends there; what follows is a word.
    ("c1 >&-x y", ["c1", "x", "y"]),
    ("c1 2>&-1", ["c1", "1"]),
    ("c1 >& -x", ["c1", "x"]),
]
WRAPPED: list[tuple[str, list[str]]] = [
    # `+` ends a command of find only behind `{}`.
    ("find . -maxdepth 0 -exec c1 + h1 ';'", ["c1", "+", "h1"]),
    ("find . -maxdepth 0 -exec c1 x + {} +", ["c1", "x", "+", "."]),
    # Options of shells.
    ("bash +c h1", ["h1"]),
    ("sh +c h1", ["h1"]),
    ("bash --rcfile in -c h1", ["h1"]),
    ("bash --verbose -c h1", ["h1"]),
    ("printf h1 | bash -", ["h1"]),
    ("printf h1 | sh -", ["h1"]),
    # Options of xargs whose value is optional.
    ("xargs --replace c1 x <in", ["c1", "x"]),
    ("xargs --max-lines c1 x <in", ["c1", "x", "in"]),
]
ZSH: list[tuple[str, list[str]]] = [
    # What is asked for as a number is evaluated.
    ("COLUMNS='path[$(h1)]'; c1", ["h1"]),
    ("LINES='path[$(h1)]' c1", ["h1"]),
    ("export COLUMNS='path[$(h1)]'", ["h1"]),
    ("[ -t 'path[$(h1)]' ]", ["h1"]),
    ("[[ -t 'path[$(h1)]' ]]", ["h1"]),
    ("float x='path[$(h1)]'", ["h1"]),
    ("logout 'path[$(h1)]'", ["h1"]),
    ("bye 'path[$(h1)]'", ["h1"]),
    ("zformat -f x '%(a.y.n)' 'a:path[$(h1)]'", ["h1"]),
    ("zstyle -e :a b h1; zstyle -s :a b x", ["h1"]),
    # Modifiers behind a variable without braces: `F` evaluates.
    ("x=a; c1 $x:F:'path[$(h1)]':h", ["h1"]),
    ('x=a; c1 "$x:F:path[\\$(h1)]:h"', ["h1"]),
    ("c1 $1:F:'path[$(h1)]':h", ["h1"]),
    # Assignments that bash does not know.
    ("1=x c9", ["c9"]),
    ("é=1 c9", ["c9"]),
    ("c1 &!c9", ["c9"]),
    ("time -p c1", ["-p", "c1"]),
]
ALL = [("bash", *it) for it in BASH + WRAPPED] + [("zsh", *it) for it in ZSH]


@pytest.mark.parametrize(("shell", "script", "argv"), ALL)
def test_a_known_hole_stays_closed(shell: str, script: str, argv: list[str]) -> None:
    seen = read_commands(script)
    assert seen.unclear or not misses(seen, Ran([argv]))


@pytest.mark.parametrize(
    ("shell", "has_wrappers", "holes"),
    [
        ("bash", False, BASH),
        ("bash", True, WRAPPED),
        *([("zsh", False, ZSH)] if shutil.which("zsh") else []),
    ],
)
def test_a_shell_really_does_so(
    shell: str, has_wrappers: bool, holes: list[tuple[str, list[str]]]
) -> None:
    with Sandbox(shell, has_wrappers=has_wrappers) as sandbox:
        ran = sandbox.run([script for script, _ in holes])
    not_run = [
        script for (script, argv), did in zip(holes, ran, strict=True) if argv not in did.commands
    ]
    assert not not_run
