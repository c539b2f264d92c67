"""What is done with sessions: told, interrupted, stopped, resumed, forked, held, forgotten."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..context import Context
from ..errors import CommandError, Misused, NotNow, Refused
from ..options import (
    Env,
    HasMentions,
    Json,
    Name,
    Prompt,
    SessionName,
    SessionNames,
    prompt_of,
)
from ..tree import register
from .starting import PANEL, given_values

if TYPE_CHECKING:
    from ...server.shapes.sessions import SessionView
    from ..client import Client

T = TypeVar("T")


def add_to(app: typer.Typer) -> None:
    for command, lines in (
        (send, ("bridle send fixer 'Now run the linter'", "git diff | bridle send fixer -")),
        (interrupt, ("bridle interrupt fixer",)),
        (stop, ("bridle stop fixer", "bridle stop fixer reviewer --why 'out of time'")),
        (resume, ("bridle resume fixer", "bridle resume fixer 'Go on with the second part'")),
        (fork, ("bridle fork fixer 'Try it the other way' --name fixer-2",)),
        (pause, ("bridle pause fixer reviewer",)),
        (unpause, ("bridle unpause fixer",)),
        (rm, ("bridle rm fixer", "bridle rm -f fixer reviewer")),
    ):
        register(app, PANEL, command, *lines)


def told_name(session: SessionView) -> str:
    """As people call it, and the beginning of its id."""
    return f"{session.name} ({session.id[:8]})" if session.name else session.id[:8]


def send(
    context: typer.Context,
    session: SessionName,
    prompt: Prompt = None,
    has_mentions: HasMentions = False,
    is_json: Json = False,
) -> None:
    """Tell an agent something. If it is busy, it hears it when its turn is over."""
    here = Context.of(context, is_json=is_json)
    given = prompt if prompt is not None else ("-" if _is_piped() else None)
    text = prompt_of(given, has_mentions=has_mentions)
    if text is None:
        raise Misused("nothing to send", "give a prompt, or `-` and something on stdin")

    async def work() -> str:
        async with here.client() as client:
            return await client.sessions.send(session, text)

    uuid = here.run(work())
    if is_json:
        here.give({"uuid": uuid})
    else:
        here.say("sent")


def _is_piped() -> bool:
    return not sys.stdin.isatty()


def interrupt(context: typer.Context, sessions: SessionNames, is_json: Json = False) -> None:
    """End the turns that run; what waits for an approval is cancelled. The agents stay."""
    here = Context.of(context, is_json=is_json)
    _each(here, sessions, lambda client, one: client.sessions.interrupt(one), "interrupted")


def stop(
    context: typer.Context,
    sessions: SessionNames,
    why: Annotated[str, typer.Option(help="A word for the log.")] = "",
    is_json: Json = False,
) -> None:
    """End agents, with everything that they have started. `resume` starts them again."""
    here = Context.of(context, is_json=is_json)
    _each(here, sessions, lambda client, one: client.sessions.stop(one, why), "stopped")


def resume(
    context: typer.Context,
    session: SessionName,
    prompt: Prompt = None,
    has_mentions: HasMentions = False,
    env: Env = None,
    is_new: Annotated[
        bool, typer.Option("--new", help="With a new conversation, instead of the old one.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Start an agent again that has ended, where its conversation was."""
    here = Context.of(context, is_json=is_json)
    text, values = prompt_of(prompt, has_mentions=has_mentions), given_values(env)

    async def work() -> SessionView:
        async with here.client() as client:
            again = client.sessions.start if is_new else client.sessions.resume
            try:
                return await again(session, text, values)
            except Refused as refused:
                raise _with_what_is_missing(refused, session) from refused

    _told(here, here.run(work()), "resumed")


def _with_what_is_missing(refused: Refused, session: str) -> CommandError:
    """The command that would give it what it has not."""
    if refused.code != "missing_variables":
        return refused
    names: dict[str, str] = refused.about.get("names", {})
    told = ", ".join(f"{name} ({why})" for name, why in names.items())
    given = " ".join(f"--env {name}=…" for name in names)
    return NotNow(f"variables are missing: {told}", f"`bridle resume {session} {given}`")


def fork(
    context: typer.Context,
    session: SessionName,
    prompt: Prompt = None,
    has_mentions: HasMentions = False,
    name: Name = "",
    is_json: Json = False,
) -> None:
    """Make a new session that goes on, by itself, from what this one has said so far."""
    here = Context.of(context, is_json=is_json)
    text = prompt_of(prompt, has_mentions=has_mentions)

    async def work() -> SessionView:
        async with here.client() as client:
            return await client.sessions.fork(session, text, name)

    _told(here, here.run(work()), "forked as")


def pause(context: typer.Context, sessions: SessionNames, is_json: Json = False) -> None:
    """End the turns that run, and tell these agents nothing more until `unpause`."""
    here = Context.of(context, is_json=is_json)
    _each(here, sessions, lambda client, one: client.sessions.pause(one), "paused")


def unpause(context: typer.Context, sessions: SessionNames, is_json: Json = False) -> None:
    """Let agents go on that were paused."""
    here = Context.of(context, is_json=is_json)
    _each(here, sessions, lambda client, one: client.sessions.unpause(one), "unpaused")


def rm(
    context: typer.Context,
    sessions: SessionNames,
    is_forced: Annotated[
        bool, typer.Option("--force", "-f", help="Stop those that run, first.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Forget sessions, with all that was written down of them. This can't be undone."""
    here = Context.of(context, is_json=is_json)

    async def forget(client: Client, session: str) -> dict[str, str]:
        found = await client.sessions.get(session)
        if is_forced and "stop" in found.operations:
            await client.sessions.stop(found.id, "to be removed")
        await client.sessions.delete(found.name or found.id)
        return {"id": found.id, "name": found.name}

    _each(here, sessions, forget, "removed")


# --- how it is told


def _told(here: Context, session: SessionView, done: str) -> None:
    if here.is_json:
        here.give(session)
    else:
        here.say(f"{done} {told_name(session)}")


def _each(
    here: Context,
    sessions: Sequence[str],
    work: Callable[[Client, str], Awaitable[T]],
    done: str,
) -> None:
    """The same with each, at once; one that fails is told and keeps no other from it."""
    import asyncio

    async def one(client: Client, session: str) -> T | CommandError:
        try:
            return await work(client, session)
        except CommandError as error:
            return error

    async def all_of_them() -> list[T | CommandError]:
        async with here.client() as client:
            return await asyncio.gather(*(one(client, session) for session in sessions))

    results = here.run(all_of_them())
    errors = [result for result in results if isinstance(result, CommandError)]
    if here.is_json:
        here.give([result for result in results if not isinstance(result, CommandError)])
    for session, result in zip(sessions, results, strict=True):
        if not isinstance(result, CommandError):
            here.say(f"{done} {session}")
    for error in errors[:-1]:
        here.note(f"bridle: {error}")
    if errors:
        raise errors[-1]
