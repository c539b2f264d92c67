"""`bridle set` and `bridle release`: what holds for agents from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from .. import options as o
from ..context import Context
from ..errors import Misused
from ..tree import register
from .sessions import told_name
from .starting import PANEL, policy_of

if TYPE_CHECKING:
    from ...server.shapes.sessions import SessionView


def add_to(app: typer.Typer) -> None:
    register(
        app,
        PANEL,
        change,
        "bridle set fixer --max-cost 5        # it was paused at its limit, and goes on",
        "bridle set fixer --policy edits --model opus",
        name="set",
    )
    register(app, PANEL, release, "bridle release")


def change(
    context: typer.Context,
    session: o.SessionName,
    policy: o.PolicyGiven = None,
    mode: o.ModeGiven = None,
    model: o.ModelGiven = None,
    max_turns: o.MaxTurns = None,
    max_cost: o.MaxCost = None,
    max_seconds: o.MaxSeconds = None,
    max_tokens: o.MaxTokens = None,
    max_children: o.MaxChildren = None,
    is_json: o.Json = False,
) -> None:
    """Change what holds for an agent: its limits, its policy, its model, its mode.

    Limits that are not named stay as they are.
    """
    here = Context.of(context, is_json=is_json)
    limits = {
        "turns": max_turns,
        "cost_usd": max_cost,
        "seconds": max_seconds,
        "tokens": max_tokens,
        "concurrency": max_children,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    if not (given or policy or mode or model):
        raise Misused("nothing to change", "give --max-cost, --policy, --model or another one")
    changed = here.run(_change(here, session, given, policy=policy, mode=mode, model=model))
    if is_json:
        here.give(changed)
    else:
        here.say(f"changed {told_name(changed)}")


async def _change(
    here: Context, session: str, limits: dict[str, Any], **to: str | None
) -> SessionView:
    import msgspec

    from ...server.shapes.policies import PolicyChosen
    from ...server.shapes.sessions import LimitsGiven, Modelling, Moding

    async with here.client() as client:
        found = await client.sessions.get(session)
        called = found.name or found.id
        if limits:
            held = msgspec.to_builtins(found.limits)
            new = msgspec.convert({**held, **limits}, LimitsGiven)
            await client.sessions.change(called, "limits", new)
        if policy := to["policy"]:
            chosen = PolicyChosen(policy=policy_of(policy))
            await client.sessions.change(called, "policy", chosen)
        if mode := to["mode"]:
            moding = msgspec.convert({"mode": mode}, Moding)
            if note := await client.sessions.change(called, "mode", moding):
                here.note(note)
        if model := to["model"]:
            await client.sessions.change(called, "model", Modelling(model=model))
        return await client.sessions.get(found.id)


def release(context: typer.Context, is_json: o.Json = False) -> None:
    """Let all agents go on that are held because of a limit of the service, or for a login."""
    here = Context.of(context, is_json=is_json)

    async def work() -> bool:
        async with here.client() as client:
            return await client.house.release()

    was_held = here.run(work())
    if is_json:
        here.give({"was_held": was_held})
    else:
        here.say("all may go on" if was_held else "nothing was held")
