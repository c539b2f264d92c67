"""`bridle up`, `down` and `url`: the server in the foreground or behind, and the way into it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import __version__
from ...process.interpreter import own_program
from ..browser import is_seen_by_a_person, open_browser
from ..context import Context
from ..errors import NotNow
from ..options import ClaudeGiven, Json
from ..tree import register

if TYPE_CHECKING:
    from ...config import Settings
    from ...server.serving import Ready

PANEL = "The server"


THEN = "Then `bridle start 'Make the tests pass'`, `bridle ps`, `bridle approvals`"


def add_to(app: typer.Typer) -> None:
    register(
        app,
        PANEL,
        up,
        "bridle up",
        "bridle up --detach",
        "bridle up --port 0 --size 5 --open",
        "bridle --home /tmp/try up",
        "bridle up --unit > ~/.config/systemd/user/bridle.service",
    )
    register(app, PANEL, down, "bridle down", "bridle down --stop-agents")
    register(app, PANEL, url, "bridle url", "bridle url --open")


Port = Annotated[int | None, typer.Option(help="The port; 0 is any that is free.")]
Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
AllowRemote = Annotated[
    bool | None,
    typer.Option("--allow-remote", help="Let the address be one that other machines reach."),
]
AllowUnseen = Annotated[
    bool | None,
    typer.Option(
        "--allow-unseen",
        help="Let programs in whose process can't be seen: by `ssh -L`, or outside of a container.",
    ),
]
Size = Annotated[int | None, typer.Option(help="How many agents run at a time.")]
StopAgents = Annotated[
    bool | None, typer.Option("--stop-agents", help="End the agents with the server.")
]
IsOpened = Annotated[bool, typer.Option("--open", help="Open it in a browser.")]


def up(
    context: typer.Context,
    port: Port = None,
    host: Host = None,
    allow_remote: AllowRemote = None,
    allow_unseen: AllowUnseen = None,
    size: Size = None,
    claude: ClaudeGiven = None,
    stop_agents: StopAgents = None,
    is_detached: Annotated[
        bool, typer.Option("--detach", "-d", help="Run it in the background, once it is ready.")
    ] = False,
    is_opened: IsOpened = False,
    is_unit: Annotated[
        bool, typer.Option("--unit", help="Print a systemd unit for it, and do nothing else.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Start the server that looks after agents, and say how to get to it.

    Agents of an earlier server that still run are taken up again. Ctrl-C ends the server, and the
    agents run on. It listens on this machine alone, unless you say otherwise.
    """
    here = Context.of(
        context,
        is_json=is_json,
        port=port,
        host=host,
        allow_remote=allow_remote,
        allow_unseen=allow_unseen,
        size=size,
        claude=claude,
        stop_agents=stop_agents,
    )
    if is_unit:
        _print_unit(here)
    else:
        _begin(here, is_detached=is_detached, is_opened=is_opened)


def _begin(here: Context, *, is_detached: bool, is_opened: bool) -> None:
    _check_none_is_up(here)
    if is_detached:
        _detach(here, is_opened=is_opened)
    else:
        here.run(serving(here, is_opened=is_opened))


def _print_unit(here: Context) -> None:
    """Flags are not in it: a service has its settings in the file of its home."""
    from ...supervisor.unit import unit_of

    home = str(here.settings.home)
    text = unit_of("bridle up", own_program("bridle.cli", "--home", home, "up"))
    if here.is_json:
        here.give({"unit": text})
    else:
        here.say(text.rstrip("\n"))


def _detach(here: Context, *, is_opened: bool) -> None:
    from ..detaching import start_detached

    told = start_detached(here)
    if here.is_json:
        here.give(told)
    else:
        _say_where(here, told, THEN, here.run(_ticket(here)) if is_seen_by_a_person() else "")
        here.say(f"It runs in the background, as process {told['pid']}; `bridle down` ends it.")
    if is_opened:
        _open(here, here.run(_ticket(here, is_here=True)))


def _check_none_is_up(here: Context) -> None:
    from ..client.find import answers, socket_of

    path = socket_of(here.settings.home)
    if answers(path):
        raise NotNow(
            f"a server of {here.settings.home} is up already",
            "`bridle url` says where, `bridle down` ends it",
        )


async def serving(
    here: Context,
    *,
    is_opened: bool = False,
    on_ready: Callable[[Ready], None] = lambda _: None,
    then: str = THEN,
) -> None:
    """Serve until somebody says that it is enough, and say so. `on_ready` is told when it does,
    people how to go on: `then`."""
    from ...server.serving import serve
    from ..loopback import loopback_options

    _log_to_stderr()
    found: list[Ready] = []

    def ready(ready: Ready) -> None:
        found.append(ready)
        told = told_of(here.settings, ready)
        if here.is_json:
            here.give(told)
        else:
            _say_where(here, told, then, ready.login if is_seen_by_a_person() else "")
            here.say(_HOW_TO_END[here.settings.stop_agents])
        if is_opened:
            # Some browsers are waited for, while they wait for us.
            address = ready.new_login()
            threading.Thread(target=_open, args=(here, address), daemon=True).start()
        on_ready(ready)

    options = {**options_of(here), **loopback_options()}
    await serve(settings_of(here.settings), ready, signals=_signals(), **options)
    if found:
        running = len([one for one in found[0].house.supervisor.list() if one.facts.has_process])
        here.note(f"ended; {running or 'no'} agents run on")


_HOW_TO_END = {
    False: "Ctrl-C ends the server; agents run on.",
    True: "Ctrl-C ends the server, and the agents.",
}


def settings_of(settings: Settings) -> Any:
    from ...server.bodies import BodyLimits
    from ...server.serving import ServeSettings

    names = tuple(name.strip() for name in (settings.allowed_hosts or "").split(",") if name)
    return ServeSettings(
        home=settings.home,
        host=settings.host,
        port=settings.port,
        allow_remote=settings.allow_remote,
        allow_unseen=settings.allow_unseen,
        allowed_hosts=names,
        stop_agents=settings.stop_agents,
        bodies=BodyLimits(large=settings.max_body),
    )


def options_of(here: Context) -> dict[str, Any]:
    """For the supervisor."""
    settings, environ = here.settings, dict(os.environ)
    if settings.claude:
        environ["BRIDLE_CLAUDE"] = settings.claude
    return {
        "size": settings.size,
        "expires_in": settings.expires_in,
        "escalate_after": settings.escalate_after,
        "free_bytes": settings.free_bytes,
        "anchor_command": settings.anchor_command,
        "environ": environ,
    }


def told_of(settings: Settings, ready: Ready) -> dict[str, Any]:
    """Where it is, and what was found, for programs: without what would let one in."""
    recovered = ready.house.supervisor.recovered
    return {
        "url": ready.url,
        "socket": ready.socket,
        "home": str(settings.home),
        "pid": os.getpid(),
        "version": __version__,
        "recovered": {
            "alive": recovered.alive,
            "ended": recovered.ended,
            "pending": recovered.pending,
            "seconds": recovered.seconds,
        },
    }


def _say_where(here: Context, told: dict[str, Any], then: str, login: str) -> None:
    """`login` is "" where nobody sits there."""
    found = told["recovered"]
    here.say(f"Bridle {told['version']} looks after the agents of {told['home']}")
    if found["alive"] or found["ended"] or found["pending"]:
        here.say(
            f"{len(found['alive'])} agents were found at work, {len(found['ended'])} had ended,"
            f" {len(found['pending'])} approvals wait"
        )
    if login:
        here.say(f"Open {login}")
        here.say("     (works once, for 10 minutes; `bridle url` makes another)")
    else:
        here.say(f"It is at {told['url']}; `bridle url` prints an address that lets a browser in")
    if then:
        here.say(then)


def _signals() -> tuple[signal.Signals, ...]:
    """What ends it in good order: also the end of its terminal, unless `nohup` says otherwise."""
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    return tuple(ends)


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s bridle: %(message)s", stream=sys.stderr
    )


def down(
    context: typer.Context,
    stops_agents: Annotated[
        bool, typer.Option("--stop-agents", help="Stop all agents, first.")
    ] = False,
    is_json: Json = False,
) -> None:
    """End the server that is up. Agents run on, and the next server takes them up."""
    from ..detaching import end_server

    here = Context.of(context, is_json=is_json)
    stopped = here.run(_stop_all(here)) if stops_agents else 0
    pid = end_server(here.settings.home)
    if is_json:
        here.give({"pid": pid, "stopped_agents": stopped})
    else:
        if stops_agents:
            here.say(f"stopped {stopped} agents")
        here.say(f"ended the server (process {pid})")


async def _stop_all(here: Context) -> int:
    import asyncio

    async with here.client() as client:
        sessions = await client.sessions.list()
        # Of one whose process is not ours only the token would end, and for good.
        live = [one.id for one in sessions if "stop" in one.operations and not one.external]
        await asyncio.gather(*(client.sessions.stop(one, "all are stopped") for one in live))
        return len(live)


def url(
    context: typer.Context,
    is_opened: IsOpened = False,
    is_json: Json = False,
) -> None:
    """Print an address that lets a browser in: once, and for 10 minutes."""
    here = Context.of(context, is_json=is_json)

    if is_json:
        here.give({"url": here.run(_ticket(here))})
    elif is_opened and not is_seen_by_a_person():
        here.note("opened in a browser")
    else:
        here.say(here.run(_ticket(here)))
    if is_opened:
        # With another ticket: that one may be used elsewhere.
        _open(here, here.run(_ticket(here, is_here=True)))


async def _ticket(here: Context, *, is_here: bool = False) -> str:
    async with here.client() as client:
        return await client.house.ticket(is_here=is_here)


def _open(here: Context, address: str) -> None:
    if not open_browser(here.settings.home, address):
        here.note("no browser could be opened; `bridle url` prints an address for one")


def log_file(home: Path) -> Path:
    """What a server in the background has to say."""
    return home / "server.log"
