"""`bridle token`: what programs may come with, and what each may do."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import typer

from ..completion import session_names
from ..context import Context
from ..errors import Misused, NotFound
from ..options import Json
from ..tables import age, show_table
from ..tree import QuickGroup, register
from .serving import PANEL

token = typer.Typer(cls=QuickGroup, no_args_is_help=True, help="What programs may come with.")


def add_to(app: typer.Typer) -> None:
    register(
        token,
        None,
        new,
        "bridle token new --name dashboard",
        "bridle token new --role person --name ci",
        "bridle token new --role agent --session fixer --name fixer",
    )
    register(token, None, list_them, "bridle token list", name="list")
    register(token, None, revoke, "bridle token revoke 3f2a")
    app.add_typer(token, name="token", rich_help_panel=PANEL)


def new(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="What it is for.")],
    role: Annotated[
        Literal["person", "reader", "agent"],
        typer.Option(
            help="A reader looks, without secrets; a person decides; an agent sees itself."
        ),
    ] = "reader",
    session: Annotated[
        str | None,
        typer.Option(help="The agent whose token it is.", autocompletion=session_names),
    ] = None,
    is_json: Json = False,
) -> None:
    """Make a token for a program, and print it: this once.

    A program sends it as `Authorization: Bearer TOKEN`; the command takes it in BRIDLE_TOKEN.
    """
    here = Context.of(context, is_json=is_json)
    if (role == "agent") != (session is not None):
        raise Misused("an agent's token is for one session", "give --session with --role agent")

    async def work() -> dict[str, Any]:
        async with here.client(offline=True, makes_home=True) as client:
            found = (await client.sessions.get(session)).id if session else ""
            return await client.house.new_token(role, name, found)

    made = here.run(work())
    if is_json:
        here.give(made)
    else:
        here.say(made["text"])


def list_them(context: typer.Context, is_json: Json = False) -> None:
    """List the tokens, and the browsers that are logged in. Never their texts."""
    here = Context.of(context, is_json=is_json)

    async def work() -> list[dict[str, Any]]:
        async with here.client(offline=True) as client:
            return await client.house.tokens()

    found = here.run(work())
    if is_json:
        here.give(found)
        return
    now = time.time()
    rows = [
        (
            one["id"][:8],
            one["kind"],
            one["role"],
            one["name"] + (" (the file `token`)" if one["is_first"] else ""),
            one["session"][:8] or "-",
            age(now - one["created_at"]),
            f"…{one['tail']}",
        )
        for one in found
    ]
    show_table(here, ("id", "kind", "role", "name", "session", "age", "ends with"), rows)


def revoke(
    context: typer.Context,
    ids: Annotated[
        list[str], typer.Argument(metavar="TOKEN", help="A token's id, or the beginning of it.")
    ],
    is_json: Json = False,
) -> None:
    """Take tokens away, or log browsers out. The home's own is replaced by a new one."""
    here = Context.of(context, is_json=is_json)

    async def work() -> list[str]:
        async with here.client(offline=True) as client:
            known = [one["id"] for one in await client.house.tokens()]
            chosen = [_chosen(one, known) for one in ids]
            for one in chosen:
                await client.house.revoke(one)
            return chosen

    gone = here.run(work())
    if is_json:
        here.give(gone)
    for one in gone:
        here.say(f"revoked {one[:8]}")


def _chosen(start: str, known: list[str]) -> str:
    found = [one for one in known if one.startswith(start)]
    if len(found) != 1:
        words = f"{len(found) or 'no'} tokens have an id that begins with {start}"
        raise NotFound(words, "see `bridle token list`")
    return found[0]
