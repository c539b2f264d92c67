"""`bridle ps`: the sessions there are, once or as they change."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple, get_args

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
        "bridle ps --tree",
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
    is_tree: Annotated[
        bool, typer.Option("--tree", "-t", help="Show children below their parents.")
    ] = False,
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

    def shown(sessions: list[SessionView]) -> list[Shown]:
        found = [one for one in sessions if shows_all or is_live(one)]
        return forest_of(found) if is_tree else [Shown(one, 0) for one in found]

    if is_watching:
        here.run(_watch(here, where, shown))
        return

    async def work() -> list[SessionView]:
        async with here.client(offline=True) as client:
            here.note_offline(client)
            return await client.sessions.list(**where)

    _show(here, shown(here.run(work())), is_quiet=is_quiet)


def _show(here: Context, found: list[Shown], *, is_quiet: bool) -> None:
    if here.is_json:
        here.give([one.session for one in found])
    elif is_quiet:
        for one in found:
            here.say(one.session.id)
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


class Shown(NamedTuple):
    """A row: a session, and below how many others of the list it stands."""

    session: SessionView
    depth: int


def forest_of(sessions: list[SessionView]) -> list[Shown]:
    """Each below the nearest of those above it that is in the list, the oldest first."""
    known = {one.id for one in sessions}
    below: dict[str, list[SessionView]] = {}
    for one in sessions:
        above = next((id_ for id_ in reversed(one.lineage) if id_ in known), "")
        below.setdefault(above, []).append(one)

    def walk(above: str, depth: int) -> Iterator[Shown]:
        for one in below.get(above, ()):
            yield Shown(one, depth)
            yield from walk(one.id, depth + 1)

    return list(walk("", 0))


def rows_of(rows: Iterable[Shown]) -> list[list[Cell]]:
    now = time.time()
    return [
        [
            _branch(depth) + (one.name or "-"),
            one.id[:8],
            (_state(one), STYLES.get(one.state, "")),
            one.folder,
            str(one.turns),
            money(one.cost_usd),
            age(now - one.created_at),
            (str(len(one.approvals)), "bold yellow") if one.approvals else "-",
        ]
        for one, depth in rows
    ]


def _branch(depth: int) -> str:
    """Ahead of a child's name. Dots, since blanks at the start of a cell do not stay."""
    return "· " * (depth - 1) + "└ " if depth else ""


def _state(session: SessionView) -> str:
    """One without a process of ours says so."""
    match session.external:
        case None:
            return session.state
        case "root":
            return f"{session.state} (outside)"
        case "permit":
            return f"{session.state} (permit)"


# --- as they change


async def _watch(
    here: Context,
    where: dict[str, list[str]],
    shown: Callable[[list[SessionView]], list[Shown]],
) -> None:
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
                rows = rows_of(shown(await client.sessions.list(**where)))
                table = build_table(HEADS, rows, FIT, here.console.width)
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
