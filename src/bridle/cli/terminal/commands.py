"""`bridle run`, `bridle logs` and `bridle attach`: their options, and the help on them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..completion import policy_names
from ..context import Context
from ..errors import Misused
from ..options import Json, Mode, Prompt, SessionName, Values
from ..tree import register

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
    prompt: Prompt = None,
    cwd: Annotated[Path, typer.Option(help="The folder in which it works.")] = Path(),
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            help="What it may do: a preset, or a file.",
            autocompletion=policy_names,
        ),
    ] = None,
    yes_to: Annotated[
        Values,
        typer.Option(metavar="RULE", help="Allow what this rule matches, in this run."),
    ] = None,
    mode: Annotated[Mode | None, typer.Option(help="The CLI's permission mode.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model.")] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this conversation of the CLI's.")
    ] = None,
    is_continued: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the folder's last conversation.")
    ] = False,
    name: Annotated[str, typer.Option("--name", "-n", help="A name, to call it by.")] = "",
    max_turns: Annotated[
        int | None, typer.Option(min=1, help="So many requests to the model at most.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Dollars, about.")] = None,
    is_interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Type further prompts; Ctrl-D leaves.")
    ] = False,
    is_detached: Annotated[
        bool,
        typer.Option("--detach", "-d", help="Hand it to the server that is up, and leave."),
    ] = False,
    is_verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="All that it thinks, its stderr, each change.")
    ] = False,
    claude: Annotated[
        str | None, typer.Option(help="The command that starts Claude Code (BRIDLE_CLAUDE).")
    ] = None,
    is_json: Json = False,
) -> int:
    """Run one agent here and now, and show what it does.

    No server is needed, and nothing is kept. What its policy leaves open you are asked, by keys:
    y, n, a for always. Where nobody can be asked, it is denied. Ctrl-C ends the turn, twice the
    agent. The exit code tells what came of it: 0 done, 1 failed, 6 done but something was denied
    because nobody could be asked, 130 interrupted.
    """
    from .launching import detach, run_here
    from .sitting import can_ask, read_prompt

    here = Context.of(
        context, is_json=is_json, policy=policy, model=model, mode=mode, claude=claude
    )
    if is_interactive and is_json:
        raise Misused("--interactive is for people, --json for programs", "use one of them")
    if is_interactive and not can_ask():
        raise Misused("there is no terminal to type at", "leave --interactive away")
    text = read_prompt(prompt) if not is_interactive or prompt else None
    if not is_interactive and not (text and text.strip()):
        raise Misused("there is no prompt", "say what the agent is to do, or use --interactive")
    spec = _spec(here, cwd, resume, max_turns, max_cost, is_continued=is_continued)
    if is_detached:
        return here.run(detach(here, spec, text, name, yes_to))
    plan = _plan(here, spec, name, yes_to)
    return here.run(
        run_here(here, plan, text, is_interactive=is_interactive, is_verbose=is_verbose)
    )


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


def _plan(here: Context, spec: LaunchSpec, name: str, rules: Values) -> Plan:
    from .local import Plan
    from .words import on_one_line

    called = name or Path(str(spec.cwd)).name
    return Plan(
        name=on_one_line(called, 60) or "agent",
        spec=spec,
        policy=here.settings.policy,
        rules=tuple(rules or ()),
    )


def attach(
    context: typer.Context,
    session: SessionName,
    tail: Annotated[
        int, typer.Option("--tail", "-t", min=0, max=1000, help="Show the last so many entries.")
    ] = 50,
    is_read_only: Annotated[
        bool, typer.Option("--read-only", "-r", help="Only look on: no keys, no prompts.")
    ] = False,
    stops: Annotated[
        bool, typer.Option("--stop-on-exit", help="Stop the agent when you leave.")
    ] = False,
    is_verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="All that it thinks, its stderr, each change.")
    ] = False,
    is_json: Json = False,
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
    session: SessionName,
    is_followed: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-t", min=0, help="Only the last so many.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only since then: 30s, 10m, 2h, 1d ago.")
    ] = None,
    is_raw: Annotated[
        bool, typer.Option("--events", help="The events as they were written down, one a line.")
    ] = False,
    is_verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="All that it thinks, its stderr, each change.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Show what happened in a session. Works also while no server is up, unless it follows."""
    from .launching import show_logs
    from .logs import Wanted, time_of

    here = Context.of(context, is_json=is_json)
    wanted = Wanted(tail=tail, since=time_of(since) if since else 0.0, is_followed=is_followed)
    here.run(show_logs(here, session, wanted, is_raw=is_raw, is_verbose=is_verbose))
