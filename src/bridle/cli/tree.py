"""How the tree of commands is put together: helps with examples, in order, and groups that have a
command of their own.

Owns the form; what a command does is its module's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


def register(
    app: typer.Typer,
    panel: str | None,
    command: Callable[..., Any],
    *lines: str,
    name: str | None = None,
    takes_anything: bool = False,
) -> None:
    """Add a command with its docstring as its help, and these lines as examples."""
    app.command(
        name,
        rich_help_panel=panel,
        help=flowing(command),
        epilog=examples(*lines),
        context_settings={"ignore_unknown_options": takes_anything},
    )(command)


def flowing(command: Callable[..., Any]) -> str:
    """The docstring, each paragraph on one line: the terminal breaks it where it must."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def examples(*lines: str) -> str:
    """For the end of a command's help: each on a line of its own."""
    escaped = [line.replace("[", r"\[") for line in lines]
    return "\n\n".join(["[bold]Examples[/bold]", *(f"  [cyan]{line}[/cyan]" for line in escaped)])


class OrderedGroup(TyperGroup):
    """Lists its commands by panel, in the order in which they were registered."""

    PANELS: ClassVar[tuple[str, ...]] = (
        "Agents",
        "Deciding",
        "The server",
        "What agents may do",
        "Looking back",
        "Bridle itself",
    )

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: self._place(self.commands[name]))

    def _place(self, command: Any) -> int:
        panel = getattr(command, "rich_help_panel", None)
        return self.PANELS.index(panel) if panel in self.PANELS else len(self.PANELS)


class DefaultGroup(TyperGroup):
    """A group that is also a command: what is none of its commands is for the first of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ("-h", "--help")
        if not is_help and (not args or args[0] not in self.commands):
            args = [next(iter(self.commands)), *args]
        return list(super().parse_args(ctx, args))
