"""`bridle trust`: what a folder would bring to an agent, and whether it may."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..context import Context
from ..errors import FAILED, Misused
from ..options import Json
from ..tables import age, plain, show_table
from ..tree import DefaultGroup, register

if TYPE_CHECKING:
    from ...approvals.trust import Trust
    from ...server.shapes.trust import SurveyView

PANEL = "What agents may do"

trust = typer.Typer(cls=DefaultGroup, help="Which folders may bring settings, hooks and servers.")

Folder = Annotated[Path, typer.Argument(help="The folder; without it, this one.")]


def add_to(app: typer.Typer) -> None:
    lines = ("bridle trust", "bridle trust ~/app", "bridle trust ~/app --yes")
    register(trust, None, add, *lines)
    register(trust, None, list_them, "bridle trust list", name="list")
    register(trust, None, remove, "bridle trust remove ~/app")
    app.add_typer(trust, name="trust", rich_help_panel=PANEL)


def add(
    context: typer.Context,
    folder: Folder = Path(),
    is_sure: Annotated[
        bool, typer.Option("--yes", "-y", help="Trust it without being asked.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Show what a folder's own settings would bring to an agent, and trust it if you say so.

    Until then an agent there runs without them. If any of it changes, it is not trusted any more.
    With --json and without --yes it only shows.
    """
    here = Context.of(context, is_json=is_json)
    path = str(folder.expanduser().resolve())

    async def look() -> SurveyView:
        async with here.client(offline=True, makes_home=True) as client:
            return await client.trust.survey(path)

    found = here.run(look())
    if is_json and (not is_sure or found.is_trusted or not found.brings):
        here.give(found)
        return
    _show(here, found)
    if found.is_trusted and found.brings:
        here.say("It is trusted already.")
    elif found.brings:
        if not is_sure:
            _ask(path)
        _trust(here, path, found.digest)


def _trust(here: Context, path: str, digest: str) -> None:
    async def work() -> Trust:
        async with here.client(offline=True, makes_home=True) as client:
            return await client.trust.add(path, digest)

    trusted = here.run(work())
    if here.is_json:
        here.give(trusted)
    else:
        here.say(f"{trusted.folder} is trusted, with just that")


def _show(here: Context, found: SurveyView) -> None:
    if not found.brings:
        here.say(f"{found.folder} brings nothing that would need trust")
    else:
        here.say(f"{found.folder} would bring:")
    for brought in found.brings:
        words = f": {brought.words}" if brought.words else ""
        here.say(plain(f"  {brought.what} ({brought.file}){words}"))
    for rule in found.rules:
        here.say(plain(f"  holds in any case: {rule.behavior} {rule.text}"))


def _ask(path: str) -> None:
    if not sys.stdin.isatty():
        raise Misused(f"nobody can be asked whether {path} is trusted", "say so with --yes")
    if not typer.confirm("Trust it?", default=False):
        raise typer.Exit(FAILED)


def list_them(context: typer.Context, is_json: Json = False) -> None:
    """List the folders that are trusted."""
    here = Context.of(context, is_json=is_json)

    async def work() -> list[Trust]:
        async with here.client(offline=True) as client:
            return await client.trust.list()

    found = here.run(work())
    if is_json:
        here.give(found)
        return
    now = time.time()
    rows = [(one.folder, one.by.name, age(now - one.at), str(len(one.shown))) for one in found]
    show_table(here, ("folder", "by", "age", "things"), rows)


def remove(context: typer.Context, folder: Folder = Path(), is_json: Json = False) -> None:
    """Trust a folder no longer. Agents that run there keep what they have."""
    here = Context.of(context, is_json=is_json)
    path = str(folder.expanduser().resolve())

    async def work() -> None:
        async with here.client(offline=True) as client:
            await client.trust.remove(path)

    here.run(work())
    if is_json:
        here.give({"folder": path, "is_trusted": False})
    else:
        here.say(f"{path} is not trusted any more")
