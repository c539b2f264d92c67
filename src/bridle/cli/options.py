"""Arguments and options that several commands have, in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from .completion import session_names

Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else.", show_default=False)
]
SessionName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A session's name, its id, or the beginning of its id.",
        autocompletion=session_names,
        show_default=False,
    ),
]


def examples(*lines: str) -> str:
    """For the end of a command's help: each on a line of its own."""
    escaped = [line.replace("[", r"\[") for line in lines]
    return "\n\n".join(["[bold]Examples[/bold]", *(f"  [cyan]{line}[/cyan]" for line in escaped)])
