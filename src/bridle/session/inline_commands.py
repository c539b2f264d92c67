"""Commands inside of skills and slash commands, which the CLI runs by itself: no hook sees them.

    Changes so far: !`git diff HEAD`

They are found before one is used, and judged like any other. Owns where the CLI has its files of
them, and how a command stands in one; nothing is run here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import InvalidRequest
from ..policy.named_paths import usual_path
from ..policy.tools import SHELL
from ..policy.verdicts import Allowed, Asked, Call, Ground, Verdict
from .folder import MAX_SETTINGS, bytes_of

MAX_FILES = 3_000
MAX_FOLDERS = 2_000
MAX_SHOWN = 200
#: An inline command, and a block of them.
_INLINE = re.compile(r"!`([^`]*)`|```!([^`]*(?:`{1,2}[^`]+)*)```")
_BEGINS = re.compile(r"!`|```!")
#: Where arguments are put in.
_ARGUMENT = re.compile(r"\$(?:[A-Za-z0-9_]|\{)")
_NAMED = re.compile(
    r"^[\"']?name[\"']?[ \t]*:[ \t]*[\"']?([^\"'\n]*?)[\"']?[ \t\r]*$", re.MULTILINE
)
#: What an agent's definition says of the skills that it begins with.
_SKILLS = re.compile(
    r"^[\"']?skills[\"']?[ \t]*:(.*(?:\n[ \t]+.*|\n[ \t]*-[ \t].*)*)", re.MULTILINE
)
_PLAIN_NAME = re.compile(r"\w[\w:@./-]*")


class InlineCommands:
    """Looks for the commands in what the agent of a folder may use."""

    def __init__(
        self, folder: str, claude_home: str, also: Sequence[str] = (), plugins: Sequence[str] = ()
    ) -> None:
        self._folder = Path(folder)
        self._claude_home = Path(claude_home)
        self._also = also
        self._plugins = plugins

    def __call__(self, name: str, arguments: str = "") -> tuple[str, ...] | None:
        """What the skill or slash command of this name runs; None where that can't be known, or
        there is none."""
        name = usual_path(name).removeprefix("/")
        found: list[str] = []
        try:
            read = [_text(file, name) for file in self._files("commands", "skills")]
            texts = [text for text in read if text]
            for text in texts:
                found += _commands(text, arguments)
        except _Unknown:
            return None
        return None if not texts or _BEGINS.search(arguments) else tuple(found)

    def of_agent(self, name: str) -> tuple[str, ...] | None:
        """What the skills run with which an agent of this name begins."""
        try:
            texts = [_text(file, usual_path(name)) for file in self._files("agents")]
        except _Unknown:
            return None
        found: list[str] = []
        for skill in (one for text in texts for one in _skills_in(text)):
            commands = self(skill)
            if commands is None:
                return None
            found += commands
        return tuple(found)

    def _files(self, *kinds: str) -> Iterator[Path]:
        inside = [a / ".claude" for a in (self._folder, *self._folder.parents)]
        also = [Path(folder) / ".claude" for folder in self._also]
        below = _claude_folders(self._folder) if "skills" in kinds else ()
        for home in dict.fromkeys((self._claude_home, *inside, *also, *below)):
            for kind in kinds:
                yield from _documents(home / kind)
            yield from _documents(home / "plugins")
        for plugin in self._plugins:
            yield from _documents(Path(plugin))


def _claude_folders(folder: Path) -> Iterator[Path]:
    """Those below a folder: new CLIs take up skills from them as they come by."""
    for above, folders, _ in islice(os.walk(folder), MAX_FOLDERS):
        if ".claude" in folders:
            yield Path(above, ".claude")
        folders[:] = sorted(one for one in folders if one[0] != "." and one != "node_modules")


def _skills_in(text: str) -> list[str]:
    """The names in an agent's definition."""
    found = _SKILLS.search(text)
    return _PLAIN_NAME.findall(found[1].replace("- ", " ")) if found else []


class _Unknown(Exception):
    """Not all can be looked at."""


def _documents(folder: Path) -> Iterator[Path]:
    looked_at = 0
    for above, folders, names in os.walk(folder, followlinks=True):
        looked_at += 1 + len(names)
        if looked_at > MAX_FILES:
            raise _Unknown
        folders.sort()
        yield from (Path(above, name) for name in names if name.lower().endswith(".md"))


def _text(file: Path, name: str) -> str:
    """What the file says, if the CLI may mean it by this name."""
    try:
        text = bytes_of(file, MAX_SETTINGS).decode(errors="replace")
    except OSError as error:
        if _is_called(file, "", name):
            raise _Unknown from error
        return ""
    return text if _is_called(file, text, name) else ""


def _is_called(file: Path, text: str, name: str) -> bool:
    """Whether the CLI may mean this file; a plugin's name may stand before the name."""
    wanted = {name.casefold(), name.rpartition(":")[2].casefold()}
    names = {file.stem.casefold()}
    if file.name.casefold() == "skill.md":
        names = {file.parent.name.casefold()}
    names |= {found.casefold() for found in _NAMED.findall(text[:4_000])}
    return not wanted.isdisjoint(names)


def _commands(text: str, arguments: str) -> Sequence[str]:
    found = [inline or block for inline, block in _INLINE.findall(text)]
    if len(found) != len(_BEGINS.findall(text)):
        raise _Unknown
    # What stands in an argument could become a part of a command, or one by itself.
    if arguments and any(map(_ARGUMENT.search, found)):
        raise _Unknown
    if "`" in arguments and re.search(r"!\$|`\$", text):
        raise _Unknown
    return found


def check_prompt(prompt: object, ground: Ground, judge: Callable[[Call], Verdict]) -> None:
    """InvalidRequest for a slash command that would run what a rule forbids. What would only be
    asked about runs: a person has typed it."""
    look = ground.inline_commands
    for name in slash_commands(prompt) if look else ():
        for command in (look(name, "") if look else None) or ():
            verdict = judge(Call(SHELL, {"command": command}))
            if isinstance(verdict, Allowed) or (isinstance(verdict, Asked) and not verdict.guard):
                continue
            raise InvalidRequest(
                "user",
                f"/{name} runs `{command[:MAX_SHOWN]}` by itself, and {verdict.because}",
            )


def slash_commands(prompt: object) -> list[str]:
    """The names of those in a prompt: a text, or blocks with texts among them."""
    parts: Sequence[Any] = prompt if isinstance(prompt, list | tuple) else [prompt]
    texts = [text for part in parts if isinstance(text := getattr(part, "text", part), str)]
    words = [text.lstrip()[1:].split(maxsplit=1) for text in texts if text.lstrip()[:1] == "/"]
    return [found[0] for found in words if found]
