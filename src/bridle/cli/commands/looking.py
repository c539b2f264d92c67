"""`bridle usage` and `bridle audit`: what was used, and whether the log is what it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..completion import session_names
from ..context import Context
from ..errors import FAILED
from ..options import Json
from ..tables import Cell, age, money, show_table
from ..tree import QuickGroup, register

if TYPE_CHECKING:
    from ...server.shapes.house import AuditView, Total, UsageView

PANEL = "Looking back"

audit = typer.Typer(cls=QuickGroup, no_args_is_help=True, help="Whether the log is what it was.")


def add_to(app: typer.Typer) -> None:
    register(app, PANEL, usage, "bridle usage", "bridle usage --models --json")
    register(
        audit,
        None,
        verify,
        "bridle audit verify",
        "bridle audit verify fixer",
        "bridle audit verify --anchors /mnt/other/anchors.jsonl",
    )
    register(audit, None, accept, "bridle audit accept", "bridle audit accept supervisor")
    app.add_typer(audit, name="audit", rich_help_panel=PANEL)


def usage(
    context: typer.Context,
    is_by_model: Annotated[
        bool, typer.Option("--models", help="By model, too: all events are read for that.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Show what the sessions that there are have used: turns, tokens, money, time."""
    here = Context.of(context, is_json=is_json)

    async def work() -> UsageView:
        async with here.client(offline=True) as client:
            return await client.house.usage(by_model=is_by_model)

    found = here.run(work())
    if is_json:
        here.give(found)
        return
    rows = [[one.name or one.id[:8], *_numbers(one)] for one in found.sessions]
    rows.append(["all", *_numbers(found.total)])
    show_table(here, ("session", "turns", "tokens", "cost", "at work"), rows)
    if found.models is not None:
        here.say("")
        models = [
            [name, str(one.tokens.total), money(one.cost_usd)]
            for name, one in sorted(found.models.items())
        ]
        show_table(here, ("model", "tokens", "cost"), models)


def _numbers(total: Total) -> list[str]:
    return [
        str(total.turns),
        str(total.tokens.total),
        money(total.cost_usd),
        age(total.seconds),
    ]


Copy = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Compare with a copy of the anchors that was kept elsewhere (`anchor_command`).",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]


def verify(
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="Of this session; without it, of all.",
            autocompletion=session_names,
        ),
    ] = None,
    anchors: Copy = None,
    is_json: Json = False,
) -> None:
    """Check that what people decided stands in the log as it was written.

    Decisions are chained by their hashes, and where each chain ends is anchored outside of it: what
    was changed or taken out is found, also from the end. Then the exit code is 1.
    """
    here = Context.of(context, is_json=is_json)
    copy = anchors.read_text(encoding="utf-8", errors="replace") if anchors else None

    async def work() -> AuditView:
        async with here.client(offline=True) as client:
            found = (await client.sessions.get(session)).id if session else None
            return await client.house.verify(found, copy)

    found = here.run(work())
    if is_json:
        here.give(found)
    else:
        _show(here, found)
    if not found.is_intact:
        raise typer.Exit(FAILED)


def _show(here: Context, found: AuditView) -> None:
    rows: list[list[Cell]] = [
        [
            one.stream,
            str(one.sealed),
            ("intact", "green") if one.is_intact else ("broken", "bold red"),
            f"at {one.broken_at}: {one.reason}" if one.broken_at else one.reason,
        ]
        for one in found.streams
    ]
    anchors = found.anchors
    verdict = ("intact", "green") if anchors.is_intact else ("broken", "bold red")
    rows.append(["(anchors)", "", verdict, anchors.reason])
    show_table(here, ("stream", "sealed", "verdict", "why"), rows)
    remedies = [*(one.remedy for one in found.streams), anchors.remedy]
    for remedy in dict.fromkeys(filter(None, remedies)):
        here.say("")
        here.say(remedy)
    if anchors.command:
        here.say("")
        here.say(f"Anchors are not kept elsewhere: {anchors.command}.")


def accept(
    context: typer.Context,
    stream: Annotated[
        str | None,
        typer.Argument(
            metavar="STREAM", help="Only this one, as `audit verify` names it; without it, all."
        ),
    ] = None,
    is_json: Json = False,
) -> None:
    """Say that the log is not what was anchored, and that this is on purpose.

    For an older copy of the home that you have put in place. It is noted who said so. An event that
    was changed stays broken.
    """
    here = Context.of(context, is_json=is_json)

    async def work() -> dict[str, str]:
        async with here.client(offline=True) as client:
            return await client.house.accept(stream)

    accepted = here.run(work())
    if is_json:
        here.give({"accepted": accepted})
        return
    for name, reason in accepted.items():
        here.say(f"accepted: {name or '(anchors)'}: {reason}")
    if not accepted:
        here.say("All fits what is anchored: there is nothing to accept.")
