"""The version of a CLI that must be asked for it, remembered while its file is the same."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TypeAlias

import msgspec

from .arguments import MARKER
from .find import FoundCli, version_in
from .fork_client import Guardian, start_guarded
from .pipes import OutputPipe
from .transport import Exit

LIMIT_SECONDS = 10.0

Program: TypeAlias = tuple[str, int, int]

_known: dict[Program, str | None] = {}
_asking: dict[Program, asyncio.Task[str]] = {}


async def with_version(found: FoundCli, env: dict[str, str]) -> FoundCli:
    """The same CLI with its version, where it can be found out.

    A command of several words is not asked: nobody knows what it does with one more.
    """
    if found.version or len(found.command) > 1:
        return found
    program = _program(found)
    if program not in _known:
        _known[program] = version_in(await _ask_once(program, env))
    return remembered(found)


def remembered(found: FoundCli) -> FoundCli:
    """The same CLI with the version that it has told before."""
    if found.version or len(found.command) > 1:
        return found
    return msgspec.structs.replace(found, version=_known.get(_program(found)))


def _program(found: FoundCli) -> Program:
    status = os.stat(found.path)  # noqa: PTH116
    return (found.path, status.st_mtime_ns, status.st_size)


async def _ask_once(program: Program, env: dict[str, str]) -> str:
    """Fifty sessions that start at once ask once; whoever is cancelled, the others learn it."""
    task = _asking.get(program)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        # Not as a part of this launch: others wait for the answer too.
        own = {name: value for name, value in env.items() if name != MARKER}
        task = _asking[program] = asyncio.ensure_future(_output([program[0], "--version"], own))
        task.add_done_callback(lambda _: _asking.pop(program, None))
    return await asyncio.shield(task)


async def _output(argv: list[str], env: dict[str, str]) -> str:
    """What a command prints; what it printed so far where it takes too long."""
    child = start_guarded(argv, env)
    os.close(child.stdin)
    said: list[bytes] = []
    over, gone = asyncio.Event(), asyncio.Event()
    output = OutputPipe(child.stdout, said.append, over.set)
    errors = OutputPipe(child.stderr, lambda _: None, lambda: None)

    def exited(_: Exit) -> None:
        gone.set()
        output.finish()

    guardian = Guardian(child, exited)
    guardian.close_stdin()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_SECONDS):
                await gone.wait()
                await over.wait()
    finally:
        for part in (output, errors, guardian):
            part.close()
    return b"".join(said).decode("utf-8", "replace")
