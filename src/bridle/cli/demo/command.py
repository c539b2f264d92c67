"""`bridle demo`: the server on a home of its own, with agents that ask for something.

Owns the folder, the agents, and that these are told again when they are done, so that there is
always something to decide. All of it goes when it ends, unless a home was given.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...home.private import made_private, private_folder
from ...process.interpreter import own_program
from ..context import Context
from ..options import Json
from ..tree import register
from .agent import GREETING, MARK

if TYPE_CHECKING:
    from ...server.serving import Ready
    from ...supervisor import Supervisor

PANEL = "The server"
#: The names of its agents, and what each is told.
TASKS = {
    "fixer": "Make the greeting better.",
    "cleaner": "Clean up the build folder.",
    "planner": "Plan how to make a package of it.",
    "asker": "Find out where to store them.",
}
PAUSE_SECONDS = 5.0


def add_to(app: typer.Typer) -> None:
    register(app, PANEL, demo, "bridle demo", "bridle --home /tmp/demo demo --port 8000 --open")


def demo(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="The port; 0 is any that is free.")] = 0,
    is_opened: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    is_json: Json = False,
) -> None:
    """Try it without an account or a key: a server with agents that play a part.

    They ask for a change to a file, a dangerous command, a plan and an answer, again and again.
    Decide from another terminal, or in a browser. Nothing is run, and only the demo's own folder is
    touched. Ctrl-C ends all of it.
    """
    here = Context.of(context, is_json=is_json, port=port, stop_agents=True)
    agent = shlex.join(own_program("bridle.cli.demo.agent"))
    with _home(here) as home:
        folder = _work(home)
        flags = {**here.flags, "home": str(home), "claude": agent}
        here.run(_serve(replace(here, flags=flags), folder, is_opened=is_opened))


@contextmanager
def _home(here: Context) -> Iterator[Path]:
    """The one that was given, or one that goes with the demo."""
    given = here.flags.get("home")
    if given is not None:
        yield private_folder(here.settings.home)
        return
    folder = Path(tempfile.mkdtemp(prefix="bridle-demo-"))
    try:
        yield folder / "home"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _work(home: Path) -> Path:
    """What the agents work on: beside the home, in which an agent has no business."""
    folder = home.with_name(f"{home.name}-work")
    made_private(folder)
    (folder / "build").mkdir(exist_ok=True)
    (folder / MARK).write_text("made by `bridle demo`\n")
    (folder / "greeting.py").write_text(GREETING)
    return folder


async def _serve(here: Context, folder: Path, *, is_opened: bool) -> None:
    from ...errors import JournalClosed
    from ..commands.serving import serving

    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()

    async def play() -> None:
        supervisor = (await ready).house.supervisor
        try:
            await _start(supervisor, folder)
        except JournalClosed:
            return  # somebody has ended it before all agents were there
        if not here.is_json:
            _say_what_to_type(here)
        await _again(supervisor)

    playing = asyncio.ensure_future(play())
    try:
        await serving(here, is_opened=is_opened, on_ready=ready.set_result, then="")
    finally:
        playing.cancel()
        await asyncio.wait([playing])
    if not playing.cancelled():
        playing.result()  # it can only have ended by a mistake


async def _start(supervisor: Supervisor, folder: Path) -> None:
    from ...approvals import Person
    from ..people import person_here

    me = Person(person_here(), "terminal")
    there = {record.name for record in supervisor.list()}
    for name, task in TASKS.items():
        if name in there:
            await supervisor.resume(name, prompt=task)
            continue
        await supervisor.create(
            cwd=folder,
            by=me,
            name=name,
            prompt=task,
            labels={"demo": "yes"},
            partial_messages=True,
        )


async def _again(supervisor: Supervisor) -> None:
    """Whoever is done is told the same once more, some seconds later."""
    from ...errors import BridleError
    from ...supervisor import SessionRecord

    async for news in supervisor.watch():
        if not isinstance(news, SessionRecord) or news.name not in TASKS:
            continue
        if news.state == "idle" and news.turns and not news.waiting:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                if supervisor.get(news.id).state == "idle":
                    await supervisor.send(news.id, TASKS[news.name], by="the demo")
            except BridleError:
                continue  # somebody has stopped or removed it meanwhile


def _say_what_to_type(here: Context) -> None:
    home = shlex.quote(str(here.settings.home))
    here.say(
        "\nFour agents are at work, and ask. In another terminal:\n\n"
        f"  export BRIDLE_HOME={home}\n"
        "  bridle ps                      # who waits for you\n"
        "  bridle approvals               # for what\n"
        "  bridle approvals show ID       # all of it, and why it is asked\n"
        "  bridle approve ID              # or: bridle deny ID -m 'Not this way'\n"
        "  bridle attach fixer            # look on, and decide by keys\n"
    )
    if os.environ.get("BRIDLE_HOME"):
        here.say("(BRIDLE_HOME is set here; the demo has a home of its own.)")
