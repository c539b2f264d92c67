"""What every command has at hand: the settings, a console, the way to the server, and how to end.

    def ps(context: typer.Context, is_json: Json = False) -> None:
        here = Context.of(context, is_json=is_json)
        here.run(_ps(here))

Owns what the options before a command's name set. Errors are raised: `main` tells them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ..config import Settings, load
from .errors import NoHome

if TYPE_CHECKING:
    from rich.console import Console

    from .client import Client

T = TypeVar("T")

#: What makes a folder a home.
JOURNAL = "journal.db"


@dataclass(frozen=True)
class Context:
    """Made by `Context.of` from what typer gives a command."""

    #: The options ahead of the command's name, by the names of settings; None is not given.
    flags: Mapping[str, object] = field(default_factory=dict)
    config: str | None = None
    is_json: bool = False
    is_debug: bool = False

    @classmethod
    def of(cls, context: typer.Context, *, is_json: bool = False, **flags: object) -> Context:
        """`flags` are the command's own, by the names of settings."""
        before = context.find_object(cls) or cls()
        return replace(before, is_json=is_json, flags={**before.flags, **_given(flags)})

    @cached_property
    def settings(self) -> Settings:
        return load(self.flags, os.environ, self.config)

    @cached_property
    def console(self) -> Console:
        """What people read, on stdout: colours on a terminal alone, and not with NO_COLOR."""
        from rich.console import Console

        return Console(emoji=False)

    @asynccontextmanager
    async def client(
        self, *, offline: bool = False, makes_home: bool = False
    ) -> AsyncIterator[Client]:
        """NoServer if none is up, unless `offline` says that the home itself will do. It is only
        made where something is to be kept in it: `makes_home`."""
        from .client import open_client

        if offline and not makes_home:
            self._check_home()
        async with open_client(self.settings, offline=offline) as client:
            yield client

    def _check_home(self) -> None:
        home = self.settings.home
        if not self.settings.url and not (home / JOURNAL).exists():
            raise NoHome(home)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        import asyncio
        import logging

        if not self.is_debug:
            # What concerns the person is said in the answer, or as an error.
            logging.getLogger("bridle").addHandler(logging.NullHandler())
        return asyncio.run(work)

    # --- saying

    def say(self, words: str) -> None:
        """A line for people; nothing at all with --json."""
        if not self.is_json:
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()

    def note(self, words: str) -> None:
        """A line beside the answer, also with --json."""
        sys.stderr.write(f"{words}\n")

    def note_offline(self, client: Client) -> None:
        """That what is told may be old: nobody has looked after it since."""
        if client.is_offline and not self.is_json:
            self.note("no server is up: this is the last that is known")

    def hint(self, words: str) -> None:
        """How to go on: for somebody who sits there, and not for a program."""
        if sys.stdout.isatty():
            self.say(words)

    def give(self, value: object) -> None:
        """The answer of a command with --json: one document. In a stream, one line for each."""
        import msgspec

        sys.stdout.buffer.write(msgspec.json.encode(value, enc_hook=str) + b"\n")
        sys.stdout.buffer.flush()


def _given(flags: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in flags.items() if value is not None}
