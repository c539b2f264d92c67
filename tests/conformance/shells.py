"""A shell that only writes down what a real CLI gives it, and what a real shell makes of that.

Owns the recording and the comparison with what was judged. Nothing that a CLI gives to the
recording shell is run by it: a sandbox does that, where no program exists.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bridle.policy.shell.programs import read_commands
from tests.policy.shell.compare import misses
from tests.policy.shell.sandbox import Sandbox

_SHELL = """#!/bin/dash
{ printf '%s\\0' "$@"; printf '\\036'; } >>LOG
"""
_AROUND = "&& eval "
#: Each command has a word of its own, by which it is known again.
_MARK = re.compile(r"\bm(\d+)k\b")
_STUB = re.compile(r"\bc[1-9]\b(?=[ ;\n|&)]|\Z)")


class RecordingShell:
    """A `bash` that runs nothing."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bash"
        self._log = folder / "given"
        folder.mkdir()
        self.path.write_text(_SHELL.replace("LOG", shlex.quote(str(self._log))))
        self.path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"SHELL": str(self.path), "CLAUDE_CODE_SHELL": str(self.path)}

    def given(self) -> list[str]:
        """The scripts that a CLI has made around commands."""
        text = self._log.read_bytes().decode(errors="surrogateescape")
        scripts = [record.split("\0")[-2] for record in text.split("\x1e")[:-1]]
        return [script for script in scripts if _AROUND in script]


def marked(command: str, number: int) -> str | None:
    """The command with a word of its own; None where there is no place for one."""
    found = _STUB.search(command)
    return command[: found.end()] + f" m{number}k" + command[found.end() :] if found else None


def unjudged(judged: Sequence[str], given: Iterable[str]) -> tuple[int, list[str]]:
    """How many of the scripts that a shell was given ran something; and, in words, what they do
    that was not seen in the commands that were judged."""
    scripts = list(given)
    found, ran_something = [], 0
    with Sandbox(has_wrappers=True) as sandbox:
        for text, ran in zip(scripts, sandbox.run(scripts), strict=True):
            ran_something += bool(ran.commands)
            numbers = {int(number) for number in _MARK.findall(text)}
            if len(numbers) != 1:
                found.append(f"given {text!r}, which is none of the commands")
                continue
            command = judged[numbers.pop()]
            if missed := misses(read_commands(command), ran):
                found.append(f"judged {command!r}, given {text!r}: {'; '.join(missed)}")
    return ran_something, found


def in_batches(items: Sequence[str], size: int) -> Iterator[list[str]]:
    yield from (list(items[at : at + size]) for at in range(0, len(items), size))
