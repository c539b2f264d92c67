"""How the tree of commands is put together: helps with examples, in order, and groups that have a
command of their own.

Owns the form; what a command does is its module's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


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
        cls=QuickCommand,
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


_NO_BRACES = str.maketrans("", "", "{}")


class _Quick:
    """What is not given stays so, without a validator: to load one takes longer than most commands
    do."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if not isinstance(param.process_value, partial):
                param.process_value = partial(_processed, param, param.process_value)
            if getattr(param, "is_flag", False):
                param.metavar = ""  # a switch takes no value
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Names without braces, and none that are hidden."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        hidden = [
            piece
            for param in self.get_params(ctx)
            if getattr(param, "hidden", False)
            for piece in param.get_usage_pieces(ctx)
        ]
        return [piece.translate(_NO_BRACES) for piece in pieces if piece not in hidden]


def _processed(param: Any, process: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    if value is not None or param.required:
        return process(ctx, value)
    unset = () if param.multiple or param.nargs == -1 else None
    return param.callback(ctx, param, unset) if param.callback else unset


class QuickCommand(_Quick, TyperCommand):
    pass


class QuickGroup(_Quick, TyperGroup):
    pass


class LazyGroup(_Quick, TyperGroup):
    """The root: a module is loaded when one of its commands is asked for. Lists commands by panel.

    (To load and to build all of them takes a tenth of a second, at each call and at each Tab.)
    """

    PANELS: ClassVar[tuple[str, ...]] = (
        "Agents",
        "Deciding",
        "The server",
        "What agents may do",
        "Looking back",
        "Bridle itself",
    )
    #: The modules below `bridle.cli`, with the names of their commands.
    homes: ClassVar[dict[str, tuple[str, ...]]] = {}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            # A name that nobody has is held against all of them.
            found = [home for home, names in self.homes.items() if cmd_name in names]
            self._load(found or list(self.homes))
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        self._load(list(self.homes))
        names = super().list_commands(ctx)
        order = [name for names in self.homes.values() for name in names]
        return sorted(names, key=lambda name: (self._panel(name), order.index(name)))

    def _panel(self, name: str) -> int:
        panel = getattr(self.commands[name], "rich_help_panel", None)
        return self.PANELS.index(panel) if panel in self.PANELS else len(self.PANELS)

    def _load(self, homes: list[str]) -> None:
        for home in homes:
            if not set(self.homes[home]) <= self.commands.keys():
                app = typer.Typer(rich_markup_mode="rich", add_completion=False)
                import_module(f".{home}", __package__).add_to(app)
                self.commands.update(typer.main.get_group(app).commands)


class DefaultGroup(_Quick, TyperGroup):
    """A group that is also a command: what is none of its commands is for the first of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ("-h", "--help")
        if not is_help and (not args or args[0] not in self.commands):
            args = [next(iter(self.commands)), *args]
        return list(super().parse_args(ctx, args))
