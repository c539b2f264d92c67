"""`bridle record` and `bridle replay`: the wire between Bridle and a CLI, kept and played.

A recording is what the testing kit reads (docs/testing.md): with one, what went wrong once can be
looked at again, and sent to somebody else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..context import Context
from ..errors import FAILED, Misused
from ..options import (
    ClaudeGiven,
    Cwd,
    Json,
    ModeGiven,
    ModelGiven,
    PolicyGiven,
    Prompt,
    prompt_of,
)
from ..tree import register

if TYPE_CHECKING:
    from ...process.recording import Entry

PANEL = "Looking back"
#: Nobody waits longer than this for what took long once.
LONGEST_PAUSE = 2.0


def add_to(app: typer.Typer) -> None:
    register(
        app,
        PANEL,
        record,
        "bridle record wire.ndjson 'Say hello'",
        "bridle record wire.ndjson 'Make the tests pass' --policy autonomous --cwd ~/app",
    )
    register(
        app,
        PANEL,
        replay,
        "bridle replay wire.ndjson",
        "bridle replay wire.ndjson --speed 10",
        "BRIDLE_CLAUDE='bridle replay --as-cli wire.ndjson' bridle run 'Say hello'",
        takes_anything=True,
    )


Recording = Annotated[Path, typer.Argument(metavar="FILE", help="The recording.")]


def record(
    context: typer.Context,
    file: Recording,
    prompt: Prompt = None,
    cwd: Cwd = Path(),
    policy: PolicyGiven = None,
    mode: ModeGiven = None,
    model: ModelGiven = None,
    claude: ClaudeGiven = None,
    is_forced: Annotated[
        bool, typer.Option("--force", "-f", help="Replace a file that is there.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Run one turn of an agent and keep every line of the wire in a file.

    What its policy would ask about is denied, since nobody is asked here. The file has all that was
    said, secrets too.
    """
    here = Context.of(
        context, is_json=is_json, policy=policy, mode=mode, model=model, claude=claude
    )
    text = prompt_of(prompt)
    if text is None:
        raise Misused("there is no prompt", "say what the agent is to do")
    if file.exists() and not is_forced:
        raise Misused(f"{file} is there already", "give another name, or --force")
    file.unlink(missing_ok=True)
    is_error, said = here.run(_turn(here, file, text, str(cwd.expanduser().absolute())))
    if is_json:
        here.give({"file": str(file), "is_error": is_error, "result": said})
    else:
        here.say(said)
        here.note(f"recorded in {file}")
    if is_error:
        raise typer.Exit(FAILED)


async def _turn(here: Context, file: Path, text: str, cwd: str) -> tuple[bool, str]:
    from ...errors import TurnFailed
    from ...session.connect import connect

    settings = here.settings
    options = {"model": settings.model, "permission_mode": settings.mode}
    if settings.claude:
        options["command"] = settings.claude
    async with connect(
        cwd=cwd,
        policy=settings.policy,
        log=file,
        **options,  # type: ignore[arg-type]
    ) as session:
        turn = await session.send(text)
        turn.discard()
        try:
            return False, (await turn.result()).text or ""
        except TurnFailed as error:
            return True, str(error)


def replay(
    context: typer.Context,
    file: Recording,
    _: Annotated[
        list[str] | None, typer.Argument(hidden=True, help="What a CLI would be given: ignored.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0.1, help="How many times as fast as it was.")] = 1.0,
    is_instant: Annotated[bool, typer.Option("--instant", help="Without any pause.")] = False,
    is_verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="All of it, also what is seldom read.")
    ] = False,
    is_cli: Annotated[
        bool,
        typer.Option("--as-cli", help="Be the CLI that was recorded, on stdin and stdout."),
    ] = False,
    is_json: Json = False,
) -> int:
    """Show again what an agent once did, from a recording.

    With --as-cli it is the recorded CLI itself, for a controller that says the same as then.
    """
    from ...process.recording import load_recording

    here = Context.of(context, is_json=is_json)
    if is_cli:
        return _as_cli(file)
    entries = load_recording(file)
    pace = 0.0 if is_instant or is_json else 1 / speed
    here.run(_show(here, entries, pace, is_verbose=is_verbose))
    return 0


def _as_cli(file: Path) -> int:
    """The exit code of the one that was recorded; it also ends by the same signal."""
    import os

    from ...process.recording import load_recording
    from ...testing.replay import Player

    code = Player(load_recording(file)).play()
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


async def _show(here: Context, entries: list[Entry], pace: float, *, is_verbose: bool) -> None:
    import asyncio

    from ...views import TranscriptState, transcript
    from ..replaying import events_of
    from ..terminal.rendering import Look
    from ..terminal.sitting import sit_down

    state, before = TranscriptState(), None
    async with sit_down(Look(is_verbose=is_verbose), is_json=here.is_json) as sitting:
        for at, event in events_of(entries):
            if before is not None and pace:
                await asyncio.sleep(min((at - before) * pace, LONGEST_PAUSE))
            before = at
            if event is None:
                continue
            changes = transcript.fold(state, event)
            for one in (*changes.added, *changes.changed):
                sitting.view.take(one)
            await sitting.outlet.room()
