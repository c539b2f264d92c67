"""`bridle mcp`: agents that Bridle did not start, and the ways in for them.

Owns the commands: the token that makes such an agent a session, the configuration of its client,
and the proxy between the two.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import options as o
from ..context import Context
from ..errors import Misused, NoServer, NotFound, NotNow, Refused
from ..kept import file_of, forget, keep, names_in, text_in
from ..tables import Cell, Fit, age, show_table
from ..tree import QuickGroup, register
from .serving import PANEL
from .starting import folder_given, limits_given, policy_of

if TYPE_CHECKING:
    from ...config import Settings
    from ..client import Client

#: What they are called who are given no name.
ROOT_NAME, PERMIT_NAME = "outside", "permit"
HEADS = ("name", "id", "kind", "state", "folder", "age", "token", "kept")
FIT = Fit(cut=("folder",), spare=("kept", "age", "folder"))

mcp = typer.Typer(
    cls=QuickGroup, no_args_is_help=True, help="Let agents in that Bridle did not start."
)

Named = Annotated[
    str | None,
    typer.Option("--name", "-n", help=f"Its name ({ROOT_NAME}, with --permit {PERMIT_NAME})."),
]
IsPermit = Annotated[
    bool, typer.Option("--permit", help="Only ask what it may do, and run no others.")
]


def add_to(app: typer.Typer) -> None:
    register(
        mcp,
        None,
        token,
        "bridle mcp token",
        "bridle mcp token --name ide --folder ~/app --policy edits --max-children 4",
        "bridle mcp token --permit --folder ~/app --policy edits",
    )
    register(mcp, None, list_them, "bridle mcp list", name="list")
    register(mcp, None, revoke, "bridle mcp revoke outside")
    register(
        mcp,
        None,
        config,
        "bridle mcp config > .mcp.json",
        "bridle mcp config --stdio --claude",
        "bridle mcp config --permit --stdio > permit.json",
    )
    register(mcp, None, stdio, "bridle mcp stdio", "bridle mcp stdio --permit --name reviewer")
    app.add_typer(mcp, name="mcp", rich_help_panel=PANEL)


# --- tokens


def token(
    context: typer.Context,
    name: Named = None,
    folder: Annotated[Path, typer.Option(help="The folder in which it works.")] = Path(),
    policy: o.PolicyGiven = None,
    is_permit: IsPermit = False,
    max_turns: o.MaxTurns = None,
    max_cost: o.MaxCost = None,
    max_seconds: o.MaxSeconds = None,
    max_tokens: o.MaxTokens = None,
    max_children: o.MaxChildren = None,
    is_json: o.Json = False,
) -> None:
    """Make a token for an agent that Bridle did not start, and keep it in the home.

    Whoever has it is that agent, and never a person: it runs agents of its own, in its folder or
    below, and grants them what its policy lets it do itself. With --permit it runs none, and only
    asks what it may do. The limits are those of all below it.
    """
    here = Context.of(context, is_json=is_json, policy=policy)
    name = _named(name, is_permit=is_permit)
    file_of(here.settings.home, name)
    wish = {
        "kind": "permit" if is_permit else "root",
        "folder": str(folder_given(folder, "--folder")),
        "policy": policy_of(here.settings.policy),
        "limits": limits_given(max_turns, max_cost, max_seconds, max_tokens, max_children),
    }

    async def work() -> dict[str, Any]:
        async with here.client() as client:
            return await _made(client, here.settings.home, name, wish)

    made = here.run(work())
    if is_json:
        here.give(made)
        return
    here.say(f"made {name} ({made['token']['session'][:8]})")
    here.say(f"its token is in {made['file']}")
    here.hint(f"go on with `bridle mcp config{_flags(name, is_permit=is_permit)} --stdio`")


async def _made(client: Client, home: Path, name: str, wish: dict[str, Any]) -> dict[str, Any]:
    try:
        made = await client.house.new_external(name, wish)
    except Refused as refused:
        if refused.code != "name_taken":
            raise
        words = f"a session is named {name} already"
        remedy = f"give another --name; or `bridle mcp revoke {name}`, then `bridle rm {name}`"
        raise NotNow(words, remedy) from None
    try:
        path = keep(home, name, made["text"])
    except OSError:
        # A token that nobody has must not stay behind.
        await client.house.revoke(made["token"]["id"])
        raise
    return {**made, "name": name, "file": str(path)}


def list_them(context: typer.Context, is_json: o.Json = False) -> None:
    """List the agents that come from outside. Never their tokens. Works also without a server.

    KEPT says whether the token is in the home, where `bridle mcp config` and `stdio` find it.
    """
    here = Context.of(context, is_json=is_json)

    async def work() -> list[dict[str, Any]]:
        async with here.client(offline=True) as client:
            here.note_offline(client)
            return await _outside(client, here.settings.home)

    found = here.run(work())
    if is_json:
        here.give(found)
    else:
        show_table(here, HEADS, [_row(one) for one in found], FIT)


async def _outside(client: Client, home: Path) -> list[dict[str, Any]]:
    """Each session of a process that is not ours, with its token if that still opens anything."""
    tokens = {one["session"]: one for one in await client.house.tokens() if one["session"]}
    kept = names_in(home)
    return [
        {
            "name": one.name,
            "session": one.id,
            "kind": one.external,
            "state": one.state,
            "folder": one.folder,
            "created_at": one.created_at,
            "token": tokens.get(one.id),
            "is_kept": one.name in kept,
        }
        for one in await client.sessions.list()
        if one.external
    ]


def _row(one: dict[str, Any]) -> list[Cell]:
    return [
        one["name"] or "-",
        one["session"][:8],
        one["kind"],
        one["state"],
        one["folder"],
        age(time.time() - one["created_at"]),
        f"…{one['token']['tail']}" if one["token"] else "revoked",
        "yes" if one["is_kept"] else "no",
    ]


def revoke(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="As `bridle mcp list` has it.")
    ],
    is_json: o.Json = False,
) -> None:
    """Take tokens away. Their sessions end with that, and the agents below them as they would."""
    here = Context.of(context, is_json=is_json)

    async def work() -> list[str]:
        async with here.client() as client:
            found = {one["name"]: one for one in await _outside(client, here.settings.home)}
            _check_known(names, {*found, *names_in(here.settings.home)})
            for name in names:
                # Of a session that was deleted there is only the file left.
                if name in found and (token := found[name]["token"]):
                    await client.house.revoke(token["id"])
                forget(here.settings.home, name)
            return names

    gone = here.run(work())
    if is_json:
        here.give(gone)
    for name in gone:
        here.say(f"revoked {name}")


def _check_known(names: list[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise NotFound(f"there is no token {name}", "list them with `bridle mcp list`")


# --- how a client gets to us


def config(
    context: typer.Context,
    name: Named = None,
    is_permit: IsPermit = False,
    is_stdio: Annotated[
        bool,
        typer.Option("--stdio", help="By `bridle mcp stdio`: without a token in it."),
    ] = False,
    is_for_claude: Annotated[
        bool,
        typer.Option(
            "--claude", help="Print the `claude mcp add-json …` line instead (with --stdio)."
        ),
    ] = False,
    is_json: o.Json = False,
) -> None:
    """Print what an MCP client needs: the JSON for .mcp.json or --mcp-config.

    Over HTTP the token is in it: keep it to yourself. With --stdio it is not, and a server that is
    restarted, or moves to another port, is found again.
    """
    from . import mcp_entries

    here = Context.of(context, is_json=is_json)
    name = _named(name, is_permit=is_permit)
    if is_for_claude and not is_stdio:
        raise Misused(
            "that line would have the token in it, for all to see in the list of processes",
            "give --stdio, too; or leave out --claude, and put what is printed into a file",
        )
    entry = mcp_entries.entry_of(
        _way(here.settings, name, is_permit=is_permit, is_stdio=is_stdio), is_permit=is_permit
    )
    if is_for_claude:
        _give_line(here, mcp_entries.line_with(entry, is_permit=is_permit))
    else:
        _give_file(here, mcp_entries.file_with(entry, is_permit=is_permit))
    if not is_stdio:
        here.note("the token is in this: keep it to yourself, and out of repositories")
    if is_permit:
        here.note(f"start Claude Code with {mcp_entries.PERMIT_FLAG}")


def _give_line(here: Context, line: str) -> None:
    here.say(line)
    if here.is_json:
        here.give({"line": line})


def _give_file(here: Context, file: dict[str, Any]) -> None:
    import msgspec

    if here.is_json:
        here.give(file)
    else:
        here.say(msgspec.json.format(msgspec.json.encode(file), indent=2).decode())


def _way(settings: Settings, name: str, *, is_permit: bool, is_stdio: bool) -> Any:
    from ...home.address import read_address
    from .mcp_entries import OverHttp, OverStdio, ahead_of

    text = text_in(file_of(settings.home, name), _how_to_make(name, is_permit=is_permit))
    if is_stdio:
        return OverStdio(ahead_of(settings.home, settings.url), ("--name", name))
    told = read_address(settings.home)
    url = settings.url or (told.url if told else "")
    if not url.startswith("http"):
        raise NoServer(
            "no server is up, so its address is not known",
            "start one with `bridle up`, or take --stdio, which finds it later",
        )
    return OverHttp(url, text)


def stdio(
    context: typer.Context,
    name: Named = None,
    is_permit: IsPermit = False,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token, instead of the one in the home.")
    ] = None,
    is_json: o.Json = False,
) -> None:
    """Be an MCP server on stdin and stdout, for a client that starts it (`config --stdio`).

    Each message goes to the server that is up. One that is not there yet, that was killed or is
    restarted is waited for, and gets what was not answered again: nothing is done twice.
    """
    here = Context.of(context, is_json=is_json)
    if name is not None and token_file is not None:
        raise Misused("--name and --token-file both say which token", "give one of them")
    name = _named(name, is_permit=is_permit)
    path = token_file or file_of(here.settings.home, name)
    remedy = _how_to_make(name, is_permit=is_permit)
    text_in(path, remedy)  # now: whoever starts us wants to see it in words
    here.run(_carry(here, path, remedy, is_permit=is_permit))


async def _carry(here: Context, path: Path, remedy: str, *, is_permit: bool) -> None:
    from ..proxy.pipes import Pipes
    from ..proxy.proxy import LONGEST, Proxy
    from ..proxy.way import Turned, Way, at_home, at_url
    from .mcp_entries import path_of

    def text() -> str:
        try:
            return text_in(path, remedy)
        except NotFound as error:
            raise Turned(str(error)) from error

    settings = here.settings
    find = at_url(settings.url) if settings.url else at_home(settings.home)
    pipes = Pipes(sys.stdin.fileno(), sys.stdout.fileno(), LONGEST)
    async with Way(find, path_of(is_permit=is_permit), text) as way:
        await Proxy(way, pipes, lambda words: here.note(f"bridle: {words}")).run()


# --- names


def _named(name: str | None, *, is_permit: bool) -> str:
    return name if name is not None else PERMIT_NAME if is_permit else ROOT_NAME


def _flags(name: str, *, is_permit: bool) -> str:
    """What tells this one from others, as it is typed."""
    permit = " --permit" if is_permit else ""
    return permit if name == _named(None, is_permit=is_permit) else f"{permit} --name {name}"


def _how_to_make(name: str, *, is_permit: bool) -> str:
    return f"make one with `bridle mcp token{_flags(name, is_permit=is_permit)}`"
