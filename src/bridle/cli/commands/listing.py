"""`bridle ps`: the sessions there are, once or as they change."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from ..context import Context
from ..errors import Misused, NoServer
from ..options import Json, Values
from ..tables import Cell, Fit, age, build_table, money, show_table
from ..tree import register
from .starting import PANEL

if TYPE_CHECKING:
    from ...server.shapes.sessions import SessionView
    from ..client import Client

FILTERS = ("state", "label", "parent", "folder")
HEADS = ("name", "id", "state", "folder", "turns", "cost", "age", "waiting")
FIT = Fit(cut=("folder",), spare=("turns", "cost", "age", "folder"))
STYLES = {
    "awaiting approval": "bold yellow",
    "running": "green",
    "starting": "green",
    "failed": "red",
    "lost": "red",
    "needs login": "bold red",
    "rate limited": "yellow",
    "paused": "yellow",
    "stopped": "dim",
}


def add_to(app: typer.Typer) -> None:
    lines = (
        "bridle ps",
        "bridle ps --all --filter label=team=core",
        "bridle ps --filter state='awaiting approval' -q",
        "bridle ps -w",
    )
    register(app, PANEL, ps, *lines)


def ps(
    context: typer.Context,
    is_all: Annotated[
        bool, typer.Option("--all", "-a", help="Those that have ended, too.")
    ] = False,
    chosen: Annotated[
        Values,
        typer.Option("--filter", "-f", help="state=…, label=KEY=VALUE, parent=SESSION or folder=…"),
    ] = None,
    is_quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the ids alone.")] = False,
    is_watching: Annotated[
        bool, typer.Option("--watch", "-w", help="Stay, and show what changes.")
    ] = False,
    is_json: Json = False,
) -> None:
    """List the agents that run, or wait to run.

    WAITING is how many approvals an agent waits for. Works also while no server is up.
    """
    here = Context.of(context, is_json=is_json)
    where = _where(chosen)
    shows_all = is_all or "state" in where
    if is_watching:
        here.run(_watch(here, where, shows_all=shows_all))
        return

    async def work() -> list[SessionView]:
        async with here.client(offline=True) as client:
            here.note_offline(client)
            return await client.sessions.list(**where)

    found = [one for one in here.run(work()) if shows_all or is_live(one)]
    if is_json:
        here.give(found)
    elif is_quiet:
        for one in found:
            here.say(one.id)
    else:
        show_table(here, HEADS, rows_of(found), FIT)


def is_live(session: SessionView) -> bool:
    return "delete" not in session.operations


def _where(chosen: Values) -> dict[str, list[str]]:
    where: dict[str, list[str]] = {}
    for one in chosen or []:
        name, _, value = one.partition("=")
        if name not in FILTERS or not value:
            raise Misused(f"--filter {one!r} chooses nothing", f"use {', '.join(FILTERS)}, with =")
        where.setdefault(name, []).append(value)
    _check_states(where.get("state", []))
    return where


def _check_states(chosen: list[str]) -> None:
    from ...views.stream import State

    for one in chosen:
        if one not in (known := get_args(State)):
            raise Misused(f"there is no state {one!r}", f"the states are {', '.join(known)}")


def rows_of(sessions: list[SessionView]) -> list[list[Cell]]:
    now = time.time()
    return [
        [
            one.name or "-",
            one.id[:8],
            (one.state, STYLES.get(one.state, "")),
            one.folder,
            str(one.turns),
            money(one.cost_usd),
            age(now - one.created_at),
            (str(len(one.approvals)), "bold yellow") if one.approvals else "-",
        ]
        for one in sessions
    ]


# --- as they change


async def _watch(here: Context, where: dict[str, list[str]], *, shows_all: bool) -> None:
    """On a terminal a table that changes; else a line of JSON for each session that has."""
    async with here.client() as client:
        if here.is_json:
            async for session in _changes(client):
                if session is not None:
                    here.give(session)
            return
        if not here.console.is_terminal:
            raise Misused("--watch needs a terminal", "use --watch --json in a script")
        from rich.live import Live

        with Live(console=here.console, auto_refresh=False) as live:
            async for _ in _changes(client):
                found = await client.sessions.list(**where)
                shown = [one for one in found if shows_all or is_live(one)]
                table = build_table(HEADS, rows_of(shown), FIT, here.console.width)
                live.update(table, refresh=True)


async def _changes(client: Client) -> AsyncIterator[SessionView | None]:
    """Each session as it is, then as it changes; None for other news."""
    import msgspec

    from ...server.shapes.sessions import SessionView

    yield None
    async for event in client.follow_all():
        if event.event == "session":
            try:
                yield msgspec.json.decode(event.data, type=SessionView)
            except msgspec.MsgspecError as error:
                raise NoServer(f"the server tells what can't be read: {error}") from error
        elif event.event in ("session.deleted", "reset"):
            yield None
