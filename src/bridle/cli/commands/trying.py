"""`bridle policy test`: a policy tried on calls, those of the past or those of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..completion import session_names
from ..context import Context
from ..errors import FAILED, Misused, NotFound
from ..options import Json, Values
from ..tables import short, show_table
from ..tree import register

if TYPE_CHECKING:
    from ...policy import Policy
    from ...policy.trial import Differs, Past, Trial
    from ..client import Client


def add_to(policy: typer.Typer) -> None:
    register(
        policy,
        None,
        try_it,
        "bridle policy test edits                     # on all that agents have asked so far",
        "bridle policy test policy.toml --session fixer",
        "bridle policy test policy.toml --calls calls.json --strict",
        name="test",
    )


def try_it(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="POLICY", help="A preset, a file, or one that is kept.")
    ],
    session: Annotated[
        Values,
        typer.Option("--session", "-s", help="On its calls alone.", autocompletion=session_names),
    ] = None,
    calls: Annotated[
        Path | None,
        typer.Option(
            help="On the calls in this file instead: JSON, a list of objects with tool and input,"
            " and perhaps expect (allow, ask or deny)."
        ),
    ] = None,
    cwd: Annotated[Path, typer.Option(help="With --calls: the folder of the agent.")] = Path(),
    is_strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if any answer is another.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Try a policy on calls of the past: how many it would have answered, and which differently.

    Nothing is run, and no session is put under it.
    """
    from .policy import named

    here = Context.of(context, is_json=is_json)
    if calls is not None and session:
        raise Misused("--calls and --session are two things", "give one of them")
    policy = named(here, name)
    past = _trial(here, policy, cwd, _read(calls)) if calls else None
    trials = [here.run(past)] if past else here.run(_past(here, policy, session))
    _show(here, trials)
    if is_strict and any(trial.differently for trial in trials):
        raise typer.Exit(FAILED)


def _show(here: Context, trials: list[Trial]) -> None:
    differing = [one for trial in trials for one in trial.differently]
    total = sum(trial.total for trial in trials)
    answered = sum(trial.answered for trial in trials)
    if here.is_json:
        here.give({"total": total, "answered": answered, "differently": differing})
        return
    here.say(f"this would have answered {answered} of {total}")
    if differing:
        here.say(f"and {len(differing)} differently:")
        show_table(here, ("tool", "what", "was", "would be", "because"), _rows(differing))


def _rows(differing: list[Differs]) -> list[tuple[str, ...]]:
    return [
        (
            one.past.call.tool,
            short(str(next(iter(one.past.call.input.values()), ""))),
            one.past.decision or "-",
            str(one.verdict.__struct_config__.tag),
            short(one.verdict.because, 80),
        )
        for one in differing
    ]


async def _trial(here: Context, policy: Policy, folder: Path, past: list[Past]) -> Trial:
    from ...policy import try_policy
    from .policy import on

    force = await on(here, policy, folder)
    return try_policy(force.policy.on(force.ground), past)


def _read(file: Path) -> list[Past]:
    import msgspec

    from ...policy import Call, Past
    from ...server.shapes.policies import TriedCall

    if not file.is_file():
        raise NotFound(f"there is no file {file}", "give one that is there with --calls")
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[TriedCall])
    except msgspec.MsgspecError as error:
        raise Misused(f"{file} has no calls: {error}", "see `bridle policy test --help`") from error
    return [Past(Call(one.tool, one.input, one.mode, one.cwd), one.expect) for one in found]


async def _past(here: Context, policy: Policy, chosen: Values) -> list[Trial]:
    """One for each session: its paths mean something in its folder alone."""
    async with here.client(offline=True) as client:
        if chosen:
            sessions = [await client.sessions.get(one) for one in chosen]
        else:
            sessions = await client.sessions.list()
        trials = []
        for one in sessions:
            folder = Path(one.folder)
            if folder.is_dir():  # noqa: ASYNC240 - of this machine, and looked at once
                past = await _calls(client, one.id)
                trials.append(await _trial(here, policy, folder, past))
        return trials


async def _calls(client: Client, session: str) -> list[Past]:
    """What it asked and somebody decided, and what rules decided."""
    import msgspec

    from ...approvals.events import JUDGED, Judged
    from ...policy import Allowed, Call, Past

    found: list[Past] = []
    for one in await client.approvals.list(session=session):
        if one.kind == "tool" and one.status in ("allowed", "denied"):
            call = Call(one.tool, one.input)
            found.append(Past(call, "allow" if one.status == "allowed" else "deny"))
    after = 0
    while True:
        page = await client.sessions.events(session, after=after, kinds=JUDGED)
        for event in page.items:
            if not event.is_cut:
                judged = msgspec.json.decode(event.body, type=Judged)
                call = Call(judged.tool, judged.input)
                is_allowed = isinstance(judged.verdict, Allowed)
                found.append(Past(call, "allow" if is_allowed else "deny"))
        if page.next is None:
            return found
        after = int(page.next)
