"""`"$(cat <<'END' … END)"`, as commit messages are written: text, in every shell that has it."""

from __future__ import annotations

import shutil
from itertools import product

import pytest

from bridle.policy.shell.programs import read_commands
from tests.conftest import ON_CI

from .sandbox import Sandbox

BODIES = [
    *("", "A fix\n", "Two\n\nparagraphs\n", 'It\'s (really) a "fix"\n', "$(h1) `h2` $x ${x}\n"),
    *(
        "- a; b && c | d\n",
        "a \\ b\n",
        "nested (one (two)) and done\n",
        "# no comment\n",
        "E\nEN\n",
    ),
    *('unbalanced ) "; h1; "\n', "open (\n", "it's\n"),
]
FRAMES = [
    "c1 -m \"$(cat <<'END'\n{}END\n)\"",
    "c2 && c1 -m \"$(cat <<'END'\n{}END\n)\" && c3",
    "c1 \"a $(cat <<'END'\n{}END\n  ) b\"; c2 'x; h1; '",
    "c1 $(cat <<'END'\n{}END\n) c2",
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_nothing_in_a_text_is_run_unseen(shell: str) -> None:
    if not ON_CI and not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    scripts = [frame.format(body) for frame, body in product(FRAMES, BODIES)]
    read = [read_commands(script) for script in scripts]
    with Sandbox(shell) as sandbox:
        ran = sandbox.run(scripts)
    for script, seen, did in zip(scripts, read, ran, strict=True):
        if not seen.unclear:
            # There is no `cat`, so the text itself is empty there: what is run is what counts.
            names = {program.name for program in seen.programs}
            assert {argv[0] for argv in did.commands} == names, script
    assert sum(not seen.unclear for seen in read) >= len(scripts) / 3


def test_the_text_is_known() -> None:
    commands = read_commands(FRAMES[0].format("It's (a) fix\n\nand more\n"))
    assert [program.argv for program in commands.programs] == [
        ("cat",),
        ("c1", "-m", "It's (a) fix\n\nand more"),
    ]


@pytest.mark.parametrize(
    ("frame", "body"),
    [(1, "it's\n"), (0, 'unbalanced ) "; h1; "\n'), (0, "open (\n"), (2, 'a "quote"\n')],
)
def test_what_an_old_shell_might_take_for_the_end_is_not_read(frame: int, body: str) -> None:
    assert read_commands(FRAMES[frame].format(body)).unclear
