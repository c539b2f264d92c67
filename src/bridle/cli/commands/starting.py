"""`bridle start`: a new session, with all that can be said of it at its birth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from ..completion import policy_names, session_names
from ..context import Context
from ..errors import Misused
from ..options import Json, Prompt, pairs_of, prompt_of
from ..tree import register

if TYPE_CHECKING:
    from ...server.shapes.sessions import EnvGiven, LimitsGiven, SessionView

PANEL = "Agents"
LIMITS = "Limits: at one of them the agent is paused"
ENVIRONMENT = "Its environment"

Values: TypeAlias = list[str] | None
Mode: TypeAlias = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]


def add_to(app: typer.Typer) -> None:
    lines = (
        "bridle start 'Make the tests pass'",
        "bridle start 'Make the tests pass' --cwd ~/app --name fixer --policy edits",
        "bridle start 'Find the leak' --max-cost 2 --max-turns 30 --label team=core",
        "git diff | bridle start - --name reviewer --policy read-only",
        "bridle start 'Deploy' --env-from DEPLOY_KEY --env-file TOKEN=~/.token",
    )
    register(app, PANEL, start, *lines)


def start(
    context: typer.Context,
    prompt: Prompt = None,
    cwd: Annotated[Path, typer.Option(help="The folder in which it works.")] = Path(),
    name: Annotated[str, typer.Option("--name", "-n", help="A name, to call it by.")] = "",
    label: Annotated[Values, typer.Option(help="KEY=VALUE, to find it by.")] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            help="What it may do: a preset, the name of a policy that is kept, or a file.",
            autocompletion=policy_names,
        ),
    ] = None,
    mode: Annotated[Mode | None, typer.Option(help="The CLI's permission mode.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model.")] = None,
    parent: Annotated[
        str | None,
        typer.Option(help="The session that it is a child of.", autocompletion=session_names),
    ] = None,
    orphans: Annotated[
        Literal["stop", "hand-over"],
        typer.Option(help="What becomes of its children when it is stopped."),
    ] = "stop",
    is_started: Annotated[
        bool, typer.Option("--start/--no-start", help="Start it, or only make it.")
    ] = True,
    option: Annotated[
        Values,
        typer.Option(
            "--option", "-o", help="NAME=VALUE, a further option of a launch: docs/sessions.md."
        ),
    ] = None,
    max_turns: Annotated[int | None, typer.Option(rich_help_panel=LIMITS, help="Turns.")] = None,
    max_cost: Annotated[float | None, typer.Option(rich_help_panel=LIMITS, help="Dollars.")] = None,
    max_seconds: Annotated[
        float | None, typer.Option(rich_help_panel=LIMITS, help="Seconds at work.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(rich_help_panel=LIMITS, help="Tokens.")] = None,
    max_children: Annotated[
        int | None, typer.Option(rich_help_panel=LIMITS, help="Sessions below it at a time.")
    ] = None,
    env: Annotated[
        Values,
        typer.Option(
            "--env",
            "-e",
            rich_help_panel=ENVIRONMENT,
            help="NAME=VALUE, or NAME with the value that it has here. Never stored: after a"
            " restart of the server, `resume` needs it again.",
        ),
    ] = None,
    env_plain: Annotated[
        Values, typer.Option(rich_help_panel=ENVIRONMENT, help="NAME=VALUE, no secret: stored.")
    ] = None,
    env_from: Annotated[
        Values,
        typer.Option(
            rich_help_panel=ENVIRONMENT,
            help="NAME, with the value that it has in the server's environment.",
        ),
    ] = None,
    env_file: Annotated[
        Values,
        typer.Option(rich_help_panel=ENVIRONMENT, help="NAME=PATH, with what the file holds."),
    ] = None,
    is_json: Json = False,
) -> None:
    """Start an agent that the server looks after.

    It works in its folder until its task is done, and asks what its policy leaves open. Without a
    place for it, it is queued.
    """
    from ...server.shapes.sessions import NewSession

    here = Context.of(context, is_json=is_json, policy=policy, model=model, mode=mode)
    limits = _limits(max_turns, max_cost, max_seconds, max_tokens, max_children)
    new = NewSession(
        folder=str(_folder(cwd)),
        prompt=prompt_of(prompt),
        name=name,
        labels=pairs_of(label, "--label"),
        model=here.settings.model,
        mode=here.settings.mode,  # type: ignore[arg-type]
        policy=policy_of(here.settings.policy),
        limits=limits,
        parent=parent,
        orphans="hand over" if orphans == "hand-over" else "stop",
        env=environment(env, env_plain, env_from, env_file),
        launch=_options(option),
        start=is_started,
    )

    async def create() -> SessionView:
        async with here.client() as client:
            return await client.sessions.create(new)

    made = here.run(create())
    if is_json:
        here.give(made)
        return
    from .sessions import told_name

    here.say(f"{'started' if is_started else 'made'} {told_name(made)}")
    here.hint(f"follow it with `bridle attach {made.name or made.id[:8]}`")


def _limits(
    turns: int | None,
    cost: float | None,
    seconds: float | None,
    tokens: int | None,
    children: int | None,
) -> LimitsGiven:
    from ...server.shapes.sessions import LimitsGiven

    return LimitsGiven(
        turns=turns, cost_usd=cost, seconds=seconds, tokens=tokens, concurrency=children
    )


def _folder(given: Path) -> Path:
    folder = given.expanduser().absolute()
    if not folder.is_dir():
        raise Misused(f"there is no folder {folder}", "give one that is there with --cwd")
    return folder.resolve()


def policy_of(given: str) -> str:
    """The server takes the absolute path of a file."""
    is_file = given.endswith((".toml", ".json"))
    return str(Path(given).expanduser().absolute()) if is_file else given


def _options(given: Values) -> dict[str, Any]:
    """Values are JSON where they are, else words."""
    import msgspec

    found: dict[str, Any] = {}
    for name, value in pairs_of(given, "--option").items():
        try:
            found[name.replace("-", "_")] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name.replace("-", "_")] = value
    return found


def environment(
    env: Values, plain: Values = None, sources: Values = None, files: Values = None
) -> dict[str, EnvGiven]:
    """The variables, each with where its value comes from."""
    from ...server.shapes.sessions import EnvironmentValue, FileValue, PlainValue, SecretValue

    found: dict[str, EnvGiven] = {}
    for name, value in given_values(env).items():
        found[name] = SecretValue(value)
    for name, value in pairs_of(plain, "--env-plain").items():
        found[name] = PlainValue(value)
    for name in sources or []:
        found[name] = EnvironmentValue(name)
    for name, path in pairs_of(files, "--env-file").items():
        found[name] = FileValue(str(Path(path).expanduser().absolute()))
    return found


def given_values(env: Values) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` with the value that it has here."""
    found: dict[str, str] = {}
    for one in env or []:
        name, is_given, value = one.partition("=")
        if not is_given and name not in os.environ:
            raise Misused(f"--env {name}: {name} is not set here", "write --env NAME=VALUE")
        found[name] = value if is_given else os.environ[name]
    return found
