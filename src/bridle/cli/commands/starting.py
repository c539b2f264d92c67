"""`bridle start`: a new session, with all that can be said of it at its birth."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import options as o
from ..context import Context
from ..errors import Misused, NotFound
from ..modes import note_mode
from ..tables import age, short, show_table
from ..tree import register

if TYPE_CHECKING:
    from ...server.shapes.conversations import ConversationView
    from ...server.shapes.sessions import EnvGiven, LimitsGiven, NewSession, SessionView

PANEL = "Agents"


def add_to(app: typer.Typer) -> None:
    lines = (
        "bridle start 'Make the tests pass'",
        "bridle start 'Make the tests pass' --cwd ~/app --name fixer --policy edits",
        "bridle start 'Find the leak' --max-cost 2 --max-turns 30 --label team=core",
        "git diff | bridle start - --name reviewer --policy read-only",
        "bridle start 'Have each package tested by an agent of its own' --loopback --max-cost 5",
        "bridle start 'Deploy' --env-from DEPLOY_KEY --env-file TOKEN=~/.token",
    )
    register(app, PANEL, start, *lines)
    register(
        app,
        PANEL,
        import_,
        "bridle import                     # what Claude Code has stored of this folder",
        "bridle import 0c1f8e6a --name greeting",
        name="import",
    )


def start(
    context: typer.Context,
    prompt: o.Prompt = None,
    has_mentions: o.HasMentions = False,
    cwd: o.Cwd = Path(),
    name: o.Name = "",
    label: o.Labels = None,
    policy: o.PolicyGiven = None,
    mode: o.ModeGiven = None,
    model: o.ModelGiven = None,
    parent: o.Parent = None,
    orphans: o.Orphans = "stop",
    is_loopback: o.IsLoopback = False,
    is_started: o.IsStarted = True,
    resume: o.Resumes = None,
    option: o.LaunchOptions = None,
    max_turns: o.MaxTurns = None,
    max_cost: o.MaxCost = None,
    max_seconds: o.MaxSeconds = None,
    max_tokens: o.MaxTokens = None,
    max_children: o.MaxChildren = None,
    env: o.Env = None,
    env_plain: o.EnvPlain = None,
    env_from: o.EnvFrom = None,
    env_file: o.EnvFile = None,
    is_json: o.Json = False,
) -> None:
    """Start an agent that the server looks after; without a place for it, it is queued."""
    here = Context.of(context, is_json=is_json, policy=policy, model=model, mode=mode)
    told = o.prompt_of(prompt, has_mentions=has_mentions)
    _make(
        here,
        _wish(here, cwd, told, name, label),
        limits=limits_given(max_turns, max_cost, max_seconds, max_tokens, max_children),
        orphans="hand over" if orphans == "hand-over" else "stop",
        env=environment(env, env_plain, env_from, env_file),
        launch=_options(option),
        parent=parent, loopback=is_loopback, start=is_started, resume=resume,
    )  # fmt: skip


def import_(
    context: typer.Context,
    conversation: Annotated[
        str | None,
        typer.Argument(help="Its id, or the beginning of it; without one, all are listed."),
    ] = None,
    cwd: o.Cwd = Path(),
    name: o.Name = "",
    policy: o.PolicyGiven = None,
    is_json: o.Json = False,
) -> None:
    """List what Claude Code has stored of a folder by itself, or have an agent go on with one.

    Such an agent waits for what you tell it: `bridle send`, or `bridle attach`.
    """
    here = Context.of(context, is_json=is_json, policy=policy)
    folder = str(folder_given(cwd))

    async def listed() -> list[ConversationView]:
        is_list = conversation is None
        async with here.client(offline=is_list, makes_home=is_list) as client:
            return await client.house.conversations(folder)

    found = here.run(listed())
    if conversation is None:
        _show_conversations(here, found)
        return
    chosen = [one for one in found if one.id.startswith(conversation)]
    if len(chosen) != 1:
        words = f"{len(chosen) or 'no'} conversations of {folder} begin with {conversation!r}"
        raise NotFound(words, "`bridle import` lists them")
    _make(here, _wish(here, cwd, None, name, None), resume=chosen[0].id)


def _show_conversations(here: Context, found: list[ConversationView]) -> None:
    if here.is_json:
        here.give(found)
        return
    rows = [
        (one.id, age(time.time() - one.modified), (one.session or "")[:8], short(one.first_prompt))
        for one in found
    ]
    show_table(here, ("conversation", "age", "session", "first prompt"), rows)
    if not found:
        here.say("Claude Code has stored no conversations of this folder.")


def _wish(here: Context, cwd: Path, prompt: str | None, name: str, labels: o.Values) -> NewSession:
    from ...server.shapes.sessions import NewSession

    settings = here.settings
    return NewSession(
        folder=str(folder_given(cwd)),
        prompt=prompt,
        name=name,
        labels=o.pairs_of(labels, "--label"),
        model=settings.model,
        mode=settings.mode,  # type: ignore[arg-type]
        policy=policy_of(settings.policy),
    )


def _make(here: Context, wish: NewSession, **more: Any) -> None:
    from msgspec.structs import replace

    from .sessions import told_name

    new = replace(wish, **more)

    async def create() -> SessionView:
        async with here.client() as client:
            return await client.sessions.create(new)

    made = here.run(create())
    if here.is_json:
        here.give(made)
        return
    here.say(f"{'started' if new.start else 'made'} {told_name(made)}")
    note_mode(here, new.mode, new.policy)
    here.hint(f"follow it with `bridle attach {made.name or made.id[:8]}`")


def limits_given(
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


def folder_given(given: Path, flag: str = "--cwd") -> Path:
    folder = given.expanduser().absolute()
    if not folder.is_dir():
        raise Misused(f"there is no folder {folder}", f"give one that is there with {flag}")
    return folder.resolve()


def policy_of(given: str) -> str:
    """The server takes the absolute path of a file."""
    is_file = given.endswith((".toml", ".json"))
    return str(Path(given).expanduser().absolute()) if is_file else given


def _options(given: o.Values) -> dict[str, Any]:
    """Values are JSON where they are, else words."""
    import msgspec

    found: dict[str, Any] = {}
    for name, value in o.pairs_of(given, "--option").items():
        try:
            found[name.replace("-", "_")] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name.replace("-", "_")] = value
    return found


def environment(
    env: o.Values, plain: o.Values = None, sources: o.Values = None, files: o.Values = None
) -> dict[str, EnvGiven]:
    """The variables, each with where its value comes from."""
    from ...server.shapes.sessions import EnvironmentValue, FileValue, PlainValue, SecretValue

    found: dict[str, EnvGiven] = {}
    for name, value in given_values(env).items():
        found[name] = SecretValue(value)
    for name, value in o.pairs_of(plain, "--env-plain").items():
        found[name] = PlainValue(value)
    for name in sources or []:
        found[name] = EnvironmentValue(name)
    for name, path in o.pairs_of(files, "--env-file").items():
        found[name] = FileValue(str(Path(path).expanduser().absolute()))
    return found


def given_values(env: o.Values) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` with the value that it has here."""
    found: dict[str, str] = {}
    for one in env or []:
        name, is_given, value = one.partition("=")
        if not is_given and name not in os.environ:
            raise Misused(f"--env {name}: {name} is not set here", "write --env NAME=VALUE")
        found[name] = value if is_given else os.environ[name]
    return found
