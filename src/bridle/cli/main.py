"""The way in: the tree of commands, the options ahead of them, and how errors are told.

Owns what is common to all commands; each is in its own module and imports what it needs when it
runs, so that `bridle --help` and a Tab are quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, ClassVar, NoReturn

import typer

from .. import __version__
from ..errors import BridleError, words_of
from .context import Context
from .errors import FAILED, INTERRUPTED, MISUSED, OK, CommandError, one_line
from .tree import LazyGroup

HELP = """\
Run Claude Code agents, decide what they may do, keep every event.

`bridle up` starts the server, `bridle start` an agent, `bridle approvals` shows what waits for you.
"""


#: The options that are not a command's own, with what stands behind each.
AHEAD = {"--home": "… ", "--config": "… ", "--url": "… ", "--debug": ""}


class Commands(LazyGroup):
    """All of them, in the order of the help."""

    homes: ClassVar[dict[str, tuple[str, ...]]] = {
        "terminal.commands": ("run", "attach", "logs"),
        "commands.starting": ("start", "import"),
        "commands.listing": ("ps",),
        "commands.sessions": (
            *("send", "interrupt", "stop", "resume", "fork", "pause", "unpause", "rm"),
        ),
        "commands.changing": ("set", "release"),
        "commands.approving": ("approvals", "approve", "deny"),
        "commands.serving": ("up", "down", "url"),
        "demo.command": ("demo",),
        "commands.tokens": ("token",),
        "commands.mcp": ("mcp",),
        "commands.policy": ("policy",),
        "commands.trusting": ("trust",),
        "commands.looking": ("usage", "audit"),
        "commands.recording": ("record", "replay"),
        "commands.doctor": ("doctor",),
        "commands.settings": ("config", "version"),
    }


app = typer.Typer(
    name="bridle",
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"bridle {__version__}")
        raise typer.Exit


@app.callback()
def before(
    context: typer.Context,
    home: Annotated[
        str | None, typer.Option(help="Where all is kept (BRIDLE_HOME, else ~/.bridle).")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="The file of settings (BRIDLE_CONFIG, else in the home).")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="The server to talk to (BRIDLE_URL, with BRIDLE_TOKEN).")
    ] = None,
    is_debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    flags = {name: value for name, value in (("home", home), ("url", url)) if value is not None}
    context.obj = Context(flags=flags, config=config, is_debug=is_debug)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command; the code to exit with. Errors are one line on stderr."""
    is_debug = "--debug" in arguments
    try:
        code = app(list(arguments), prog_name="bridle", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read what we say has gone: there is nobody to tell, and no wish to be told.
        _close_output()
        return OK
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - every error is told
        if is_debug:
            _print_traceback()
        words, code = _told(error)
        if words:
            sys.stderr.write(f"bridle: {words}\n")
        return code
    return code if isinstance(code, int) else OK


def _told(error: Exception) -> tuple[str, int]:
    """What a person is told, and the exit code."""
    if isinstance(error, CommandError):
        return str(error), error.exit_code
    if isinstance(error, BridleError):
        return one_line(str(error)), FAILED
    if isinstance(error, OSError):
        return one_line(str(error)), FAILED
    if hasattr(error, "format_message"):  # a wrong option or argument, as typer tells it
        if not error.format_message():
            return "", OK  # no arguments at all: the help was printed
        usage = getattr(getattr(error, "ctx", None), "command_path", "bridle")
        if (option := getattr(error, "option_name", "")) in AHEAD:
            command = usage.removeprefix("bridle ")
            words = f"{option} goes before the command: bridle {option} {AHEAD[option]}{command}"
            return words, MISUSED
        return one_line(error.format_message(), f"see `{usage} --help`"), MISUSED
    words = f"a mistake in Bridle itself: {words_of(error)}"
    return one_line(
        words, "run it again with `bridle --debug …` and report what that prints"
    ), FAILED


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _close_output() -> None:
    import os

    # Python would complain while it ends that it can't write.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
