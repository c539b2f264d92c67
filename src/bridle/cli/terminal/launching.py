"""The commands of the terminal, from their options to their exit codes.

Owns what is put together for each: who is shown what, by whom it is asked, and where the agent is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ...approvals import Person
from ...process.spec import LaunchSpec
from ..context import Context
from ..errors import OK, Misused, NotNow
from ..people import person_here
from ..trust import trusted_survey
from .ending import tell_end
from .local import Plan, open_agent
from .rendering import Look
from .running import Running
from .screen import nothing
from .sitting import can_ask, sit_down

if TYPE_CHECKING:
    from ...server.shapes.sessions import SessionView
    from ...views.entries import TranscriptEntry
    from .logs import Wanted


async def run_here(
    here: Context, plan: Plan, prompt: str | None, *, is_interactive: bool, is_verbose: bool
) -> int:
    """One agent in this process; its exit code."""
    plan = replace(plan, trust=await trusted_survey(here, str(plan.spec.cwd)))
    me = Person(person_here(), "terminal")
    look = Look(
        folder=str(plan.spec.cwd),
        is_verbose=is_verbose,
        me=me.name,
        is_asked_here=True,
        has_turn_ends=is_interactive,
        has_prompts=os.isatty(1),
    )
    async with open_agent(plan, me) as agent, sit_down(look, is_json=here.is_json) as sitting:
        running = Running(agent, sitting, me, is_interactive=is_interactive)
        end = await running.go(prompt)
        tell_end(end, sitting, is_json=here.is_json)
    return end.exit_code


async def detach(
    here: Context, spec: LaunchSpec, prompt: str | None, name: str, rules: list[str] | None
) -> int:
    """Have the server that is up make the session, and say how to see it."""
    from ...server.shapes.sessions import LimitsGiven, NewSession
    from ..commands.starting import policy_of

    refused = (
        (rules, "--yes-to"),
        (spec.resume, "--resume"),
        (spec.continue_last, "--continue"),
    )
    for given, flag in refused:
        if given:
            raise Misused(f"{flag} can't be handed to a server", "use --policy, or run it here")
    launch = {"command": spec.command} if spec.command else {}
    new = NewSession(
        folder=str(spec.cwd),
        prompt=prompt,
        name=name,
        model=spec.model,
        mode=spec.permission_mode,
        policy=policy_of(here.settings.policy),
        limits=LimitsGiven(turns=spec.max_turns, cost_usd=spec.max_budget_usd),
        launch=launch,
    )
    async with here.client() as client:
        made = await client.sessions.create(new)
    if here.is_json:
        here.give(made)
        return OK
    called = made.name or made.id[:8]
    here.say(f"{made.id}")
    here.hint(f"see it with `bridle attach {called}`, stop it with `bridle stop {called}`")
    return OK


class _Caller(Struct):
    role: str
    name: str


async def attach_here(
    here: Context,
    session: str,
    tail: int,
    *,
    is_read_only: bool,
    stops: bool,
    is_verbose: bool,
) -> int:
    """An agent behind the server, until somebody leaves."""
    from .attaching import Attached

    async with here.client() as client:
        view = await client.sessions.get(session)
        if is_over(view):
            name = view.name or view.id[:8]
            raise NotNow(f"{name} is {view.state}", f"`bridle resume {name}`")
        # Who somebody is, the server says: by their token, or by their end of its socket.
        caller = await client.talk.ask("GET", "/me", _Caller)
        me = Person(caller.name, "terminal")
        is_asked = can_ask() and not is_read_only and caller.role == "person"
        look = Look(folder=view.folder, is_verbose=is_verbose, me=me.name, is_asked_here=is_asked)
        async with sit_down(look, is_json=here.is_json) as sitting:
            attached = Attached(client, view, sitting, me, is_read_only=not is_asked, stops=stops)
            code = await attached.go(tail)
            sitting.view.say(_left(view.name or view.id[:8], stops=stops))
    return code


def is_over(session: SessionView) -> bool:
    """It has ended, and stays so until somebody resumes it."""
    return "delete" in session.operations


def _left(name: str, *, stops: bool) -> str:
    return f"{name} was stopped" if stops else f"{name} runs on: bridle attach {name}"


async def show_logs(
    here: Context, session: str, wanted: Wanted, *, is_raw: bool, is_verbose: bool
) -> None:
    from .logs import show_events, show_transcript
    from .printer import Printer

    def is_shown(entry: TranscriptEntry) -> bool:
        return here.is_json or bool(Printer(look).take(entry))

    async with here.client(offline=not wanted.is_followed) as client:
        view = await client.sessions.get(session)
        if is_over(view):  # nothing comes any more
            wanted = replace(wanted, is_followed=False)
        look = Look(folder=view.folder, is_verbose=is_verbose)
        async with sit_down(look, is_json=here.is_json, has_keys=False) as sitting:
            sitting.screen.region = nothing  # a log is what has happened
            if is_raw:
                await show_events(client, view.id, sitting, wanted, is_json=here.is_json)
            else:
                await show_transcript(client, view.id, sitting, wanted, is_shown)
