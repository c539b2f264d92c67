"""Arguments and options that several commands have, in the same words everywhere."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import typer

from .completion import pending_approvals, session_names
from .errors import Misused

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
    typer.Argument(help="What the agent is told; `-` reads it from stdin.", show_default=False),
]


def prompt_of(given: str | None) -> str | None:
    """What was given as a prompt; `-` is what stdin has."""
    text = sys.stdin.read() if given == "-" else given
    if text is not None and not text.strip():
        raise Misused("the prompt is empty", "say what the agent is to do")
    return text


def pairs_of(given: list[str] | None, flag: str) -> dict[str, str]:
    """`NAME=VALUE`, as often as one likes."""
    found: dict[str, str] = {}
    for one in given or []:
        name, is_there, value = one.partition("=")
        if not is_there or not name:
            raise Misused(f"{flag} {one!r} has no value", f"write {flag} NAME=VALUE")
        found[name] = value
    return found
