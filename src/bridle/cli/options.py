"""Arguments and options that several commands have, in the same words everywhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from .completion import pending_approvals, policy_names, session_names
from .errors import Misused

Values: TypeAlias = list[str] | None
Mode: TypeAlias = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]

Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else.", show_default=False)
]
_SESSION = "A session's name, its id, or the beginning of its id."
SessionName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help=_SESSION, autocompletion=session_names, show_default=False
    ),
]
SessionNames: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="SESSION", help=_SESSION, autocompletion=session_names, show_default=False
    ),
]
ApprovalIds: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="APPROVAL",
        help="An approval's id, or the beginning of it.",
        autocompletion=pending_approvals,
        show_default=False,
    ),
]
Prompt: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="PROMPT",
        help="What the agent is told; `-` reads it from stdin.",
        show_default=False,
    ),
]
HasMentions: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--mentions",
        help="Have Claude Code read the files that the prompt mentions (@path): it asks nobody.",
    ),
]


# --- what an agent is started with

LIMITS = "Limits: at one of them the agent is paused"
ENVIRONMENT = "Its environment"

Cwd: TypeAlias = Annotated[Path, typer.Option(help="The folder in which it works.")]
Name: TypeAlias = Annotated[str, typer.Option("--name", "-n", help="A name, to call it by.")]
Labels: TypeAlias = Annotated[Values, typer.Option(help="KEY=VALUE, to find it by.")]
PolicyGiven: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        help="What it may do: a preset, the name of a policy that is kept, or a file.",
        autocompletion=policy_names,
    ),
]
ModeGiven: TypeAlias = Annotated[Mode | None, typer.Option(help="The CLI's permission mode.")]
ModelGiven: TypeAlias = Annotated[str | None, typer.Option("--model", "-m", help="The model.")]
ClaudeGiven: TypeAlias = Annotated[
    str | None, typer.Option(help="The command that starts Claude Code.")
]
Resumes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--resume", help="A conversation of Claude Code's own to go on with: `bridle import`."
    ),
]
Parent: TypeAlias = Annotated[
    str | None,
    typer.Option(help="The session that it is a child of.", autocompletion=session_names),
]
Orphans: TypeAlias = Annotated[
    Literal["stop", "hand-over"],
    typer.Option(help="What becomes of its children when it is stopped."),
]
IsLoopback: TypeAlias = Annotated[
    bool, typer.Option("--loopback", help="Let it run agents of its own: docs/loopback.md.")
]
IsStarted: TypeAlias = Annotated[
    bool, typer.Option("--start/--no-start", help="Start it, or only make it.")
]
LaunchOptions: TypeAlias = Annotated[
    Values,
    typer.Option(
        "--option", "-o", help="NAME=VALUE, a further option of a launch: docs/sessions.md."
    ),
]
MaxTurns: TypeAlias = Annotated[
    int | None, typer.Option(min=0, rich_help_panel=LIMITS, help="Turns.")
]
MaxCost: TypeAlias = Annotated[
    float | None, typer.Option(min=0, rich_help_panel=LIMITS, help="Dollars.")
]
MaxSeconds: TypeAlias = Annotated[
    float | None, typer.Option(min=0, rich_help_panel=LIMITS, help="Seconds at work.")
]
MaxTokens: TypeAlias = Annotated[
    int | None, typer.Option(min=0, rich_help_panel=LIMITS, help="Tokens.")
]
MaxChildren: TypeAlias = Annotated[
    int | None, typer.Option(min=0, rich_help_panel=LIMITS, help="Sessions below it at a time.")
]
Env: TypeAlias = Annotated[
    Values,
    typer.Option(
        "--env",
        "-e",
        rich_help_panel=ENVIRONMENT,
        help="NAME=VALUE, or NAME with the value that it has here. Never stored: after a restart"
        " of the server, `resume` needs it again.",
    ),
]
EnvPlain: TypeAlias = Annotated[
    Values, typer.Option(rich_help_panel=ENVIRONMENT, help="NAME=VALUE, no secret: stored.")
]
EnvFrom: TypeAlias = Annotated[
    Values,
    typer.Option(
        rich_help_panel=ENVIRONMENT,
        help="NAME, with the value that it has in the server's environment.",
    ),
]
EnvFile: TypeAlias = Annotated[
    Values, typer.Option(rich_help_panel=ENVIRONMENT, help="NAME=PATH, with what the file holds.")
]


def prompt_of(given: str | None, *, has_mentions: bool = False) -> str | None:
    """What was given as a prompt; `-` is what stdin has."""
    text = sys.stdin.read() if given == "-" else given
    if text is not None and not text.strip():
        raise Misused("the prompt is empty", "say what the agent is to do")
    return mentioning(text) if has_mentions else text


def mentioning(text: str | None) -> str | None:
    from ..protocol.outbound import WithMentions

    return None if text is None else WithMentions(text)


def pairs_of(given: Values, flag: str) -> dict[str, str]:
    """`NAME=VALUE`, as often as one likes."""
    found: dict[str, str] = {}
    for one in given or []:
        name, is_there, value = one.partition("=")
        if not is_there or not name:
            raise Misused(f"{flag} {one!r} has no value", f"write {flag} NAME=VALUE")
        found[name] = value
    return found
