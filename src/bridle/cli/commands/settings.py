"""`bridle version` and `bridle config show`: what this is, and what is set where."""

from __future__ import annotations

import typer

from ... import __version__
from ..context import Context
from ..options import Json
from ..tree import QuickGroup, register

PANEL = "Bridle itself"

config = typer.Typer(
    cls=QuickGroup, no_args_is_help=True, help="What is set, and where that comes from."
)


def add_to(app: typer.Typer) -> None:
    register(app, PANEL, version, "bridle version", "bridle version --json")
    lines = ("bridle config show", "BRIDLE_PORT=8000 bridle config show --json")
    register(config, None, show, *lines)
    app.add_typer(config, name="config", rich_help_panel=PANEL)


def version(context: typer.Context, is_json: Json = False) -> None:
    """Say which Bridle this is, on which Python."""
    import platform

    here = Context.of(context, is_json=is_json)
    python = platform.python_version()
    if is_json:
        here.give({"version": __version__, "python": python, "platform": platform.platform()})
    else:
        typer.echo(f"bridle {__version__} (Python {python})")


def show(context: typer.Context, is_json: Json = False) -> None:
    """Show every setting, its value and where that came from.

    Flags count most, then the environment, then bridle.toml in Bridle's home, then the defaults.
    """
    here = Context.of(context, is_json=is_json)
    values, sources = here.settings.values(), here.settings.sources
    if is_json:
        here.give({name: {"value": values[name], "source": sources[name]} for name in values})
        return
    from ..tables import show_table

    rows = [(name, _shown(values[name]), sources[name]) for name in values]
    show_table(here, ("setting", "value", "from"), rows)
    if here.settings.file is None:
        here.note(f"no file of settings: {here.settings.home / 'bridle.toml'} is not there")


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
