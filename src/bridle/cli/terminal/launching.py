"""`bridle run`, from its options to its exit code: here, or handed to a server.

Owns what is done before an agent is started: who is shown it, and whether its folder is trusted.
"""

from __future__ import annotations

from ...approvals import Person
from ...process.spec import LaunchSpec
from ..context import Context
from ..errors import OK, Misused
from ..people import person_here
from .local import Plan, open_agent
from .rendering import Look
from .running import Running, tell_end
from .sitting import sit_down


async def run_here(
    here: Context, plan: Plan, prompt: str | None, *, is_interactive: bool, is_verbose: bool
) -> int:
    """One agent in this process; its exit code."""
    me = Person(person_here(), "terminal")
    look = Look(
        folder=str(plan.spec.cwd),
        is_verbose=is_verbose,
        me=me.name,
        is_asked_here=True,
        has_turn_ends=is_interactive,
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
    from ...server.shapes.sessions import NewSession
    from ...views.stream import Limits

    for given, flag in ((rules, "--yes-to"), (spec.resume, "--resume")):
        if given:
            raise Misused(f"{flag} can't be handed to a server", "use --policy, or run it here")
    launch = {"command": spec.command} if spec.command else {}
    new = NewSession(
        folder=str(spec.cwd),
        prompt=prompt,
        name=name,
        model=spec.model,
        mode=spec.permission_mode,
        policy=here.settings.policy,
        limits=Limits(turns=spec.max_turns, cost_usd=spec.max_budget_usd),
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
