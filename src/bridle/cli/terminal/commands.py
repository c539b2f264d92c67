"""`bridle run`, `bridle attach` and `bridle logs`: their options, and the help on them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .. import options as o
from ..context import Context
from ..errors import Misused
from ..modes import note_mode
from ..tree import register
from . import options as own

if TYPE_CHECKING:
    from ...process.spec import LaunchSpec
    from .local import Plan

PANEL = "Agents"


def add_to(app: typer.Typer) -> None:
    register(
        app,
        PANEL,
        run,
        "bridle run 'Make the tests pass'",
        "bridle run 'Make the tests pass' --policy edits --yes-to 'Bash(npm test:*)'",
        "git diff | bridle run - --policy read-only > review.md",
        "bridle run -i                       # type prompts, Ctrl-D leaves",
        "bridle run --resume 3f2a… 'And now the docs'",
    )
    register(
        app,
        PANEL,
        attach,
        "bridle attach fixer",
        "bridle attach fixer --read-only",
    )
    register(
        app,
        "Looking back",
        logs,
        "bridle logs fixer",
        "bridle logs fixer -f --tail 20",
        "bridle logs fixer --since 10m --json | jq .kind",
        "bridle logs fixer --events",
    )


def run(
    context: typer.Context,
    prompt: o.Prompt = None,
    has_mentions: o.HasMentions = False,
    cwd: o.Cwd = Path(),
    policy: own.PolicyHere = None,
    yes_to: own.YesTo = None,
    mode: o.ModeGiven = None,
    model: o.ModelGiven = None,
    resume: own.Resume = None,
    is_continued: own.Continue = False,
    name: o.Name = "",
    max_turns: own.Requests = None,
    max_cost: own.Dollars = None,
    is_interactive: own.Interactive = False,
    is_detached: own.Detach = False,
    is_verbose: own.Verbose = False,
    claude: own.Claude = None,
    is_json: o.Json = False,
) -> int:
    """Run one agent here and now, and show what it does.

    No server is needed, and nothing is kept. What its policy leaves open you are asked, by keys:
    y, n, a for always. Where nobody can be asked, it is denied. Ctrl-C ends the turn, twice the
    agent. The exit code tells what came of it: 0 done, 1 failed, 6 done but something was denied
    because nobody could be asked, 130 interrupted.
    """
    from .launching import detach, run_here

    settings = {"policy": policy, "model": model, "mode": mode, "claude": claude}
    here = Context.of(context, is_json=is_json, **settings)
    text = _prompt(prompt, is_interactive=is_interactive, is_json=is_json)
    text = o.mentioning(text) if has_mentions else text
    spec = _spec(here, cwd, resume, max_turns, max_cost, is_continued=is_continued)
    if is_detached:
        return here.run(detach(here, spec, text, name, yes_to))
    plan = _plan(here, spec, name, yes_to)
    note_mode(here, here.settings.mode, plan.policy)
    return here.run(
        run_here(here, plan, text, is_interactive=is_interactive, is_verbose=is_verbose)
    )


def _prompt(given: str | None, *, is_interactive: bool, is_json: bool) -> str | None:
    from .sitting import can_ask, read_prompt

    if not is_interactive:
        text = read_prompt(given)
        if not text or not text.strip():
            raise Misused("there is no prompt", "say what the agent is to do, or use --interactive")
        return text
    if is_json:
        raise Misused("--interactive is for people, --json for programs", "use one of them")
    if not can_ask():
        raise Misused("there is no terminal to type at", "leave --interactive away")
    return given


def _spec(
    here: Context,
    cwd: Path,
    resume: str | None,
    max_turns: int | None,
    max_cost: float | None,
    *,
    is_continued: bool,
) -> LaunchSpec:
    from ...process.spec import LaunchSpec

    folder = cwd.expanduser().absolute()
    if not folder.is_dir():
        raise Misused(f"there is no folder {folder}", "give one that is there with --cwd")
    if resume and is_continued:
        raise Misused("--resume and --continue exclude each other", "use one of them")
    mode: Any = here.settings.mode
    return LaunchSpec(
        cwd=str(folder.resolve()),
        command=here.settings.claude,
        model=here.settings.model,
        permission_mode=mode,
        resume=resume,
        continue_last=is_continued,
        max_turns=max_turns,
        max_budget_usd=max_cost,
        partial_messages=os.isatty(1) and not here.is_json,
    )


def _plan(here: Context, spec: LaunchSpec, name: str, rules: o.Values) -> Plan:
    from .local import Plan
    from .words import on_one_line

    called = name or Path(str(spec.cwd)).name
    return Plan(
        name=on_one_line(called, 60) or "agent",
        spec=spec,
        home=here.settings.home,
        policy=here.settings.policy,
        rules=tuple(rules or ()),
    )


def attach(
    context: typer.Context,
    session: o.SessionName,
    tail: own.LastEntries = 50,
    is_read_only: own.ReadOnly = False,
    stops: own.StopOnExit = False,
    is_verbose: own.Verbose = False,
    is_json: o.Json = False,
) -> int:
    """Follow an agent that the server looks after, answer what it asks, and talk to it.

    What you type is sent with Enter. Ctrl-C ends its turn; twice, or Ctrl-D, leaves, and the agent
    runs on. If the server goes away, it is waited for.
    """
    from .launching import attach_here

    here = Context.of(context, is_json=is_json)
    return here.run(
        attach_here(
            here,
            session,
            tail,
            is_read_only=is_read_only or is_json,
            stops=stops,
            is_verbose=is_verbose,
        )
    )


def logs(
    context: typer.Context,
    session: o.SessionName,
    is_followed: own.Follow = False,
    tail: own.Tail = None,
    since: own.Since = None,
    is_raw: own.Events = False,
    is_verbose: own.Verbose = False,
    is_json: o.Json = False,
) -> None:
    """Show what happened in a session. Works also while no server is up, unless it follows."""
    from .launching import show_logs
    from .logs import Wanted, time_of

    here = Context.of(context, is_json=is_json)
    wanted = Wanted(tail=tail, since=time_of(since) if since else 0.0, is_followed=is_followed)
    here.run(show_logs(here, session, wanted, is_raw=is_raw, is_verbose=is_verbose))
