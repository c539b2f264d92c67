"""`bridle approvals`, `approve` and `deny`: what waits to be decided, and the deciding."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..choices import Answers, choice_for, told_rule
from ..completion import pending_approvals, session_names
from ..context import Context
from ..errors import CommandError, Misused
from ..options import ApprovalIds, Json, Values
from ..tables import Fit, age, plain, short, show_table
from ..tree import DefaultGroup, register
from .sessions import told_name

if TYPE_CHECKING:
    from ...approvals.model import Approval
    from ...server.shapes.approvals import Explanation
    from ...server.shapes.decisions import Choice

PANEL = "Deciding"
REMEMBERING = "And from now on"

approvals = typer.Typer(cls=DefaultGroup, help="What waits for somebody to decide.")


def add_to(app: typer.Typer) -> None:
    lines = ("bridle approvals", "bridle approvals --all --session fixer")
    register(approvals, None, list_them, *lines, name="list")
    register(approvals, None, show, "bridle approvals show 3f2a")
    app.add_typer(approvals, name="approvals", rich_help_panel=PANEL)
    register(
        app,
        PANEL,
        approve,
        "bridle approve 3f2a",
        "bridle approve 3f2a --session 'Bash(npm test:*)'",
        "bridle approve 3f2a --always 'Edit(/src/**)'",
        "bridle approve 3f2a --mode acceptEdits          # a plan",
        "bridle approve 3f2a --answer PostgreSQL         # a question",
    )
    register(
        app,
        PANEL,
        deny,
        "bridle deny 3f2a -m 'Use the staging database'",
        "bridle deny 3f2a --interrupt",
    )


def list_them(
    context: typer.Context,
    is_all: Annotated[
        bool, typer.Option("--all", "-a", help="Those that were decided, too.")
    ] = False,
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="Of this session.", autocompletion=session_names),
    ] = None,
    is_json: Json = False,
) -> None:
    """List what waits for somebody to decide, the oldest first.

    Works also while no server is up.
    """
    here = Context.of(context, is_json=is_json)

    async def work() -> tuple[list[Approval], dict[str, str]]:
        async with here.client(offline=True) as client:
            here.note_offline(client)
            where = {} if is_all else {"status": "pending"}
            if session is not None:
                where["session"] = (await client.sessions.get(session)).id
            found = await client.approvals.list(**where)
            if is_json or not found:
                return found, {}
            return found, {one.id: one.name or one.id[:8] for one in await client.sessions.list()}

    found, names = here.run(work())
    if is_json:
        here.give(found)
        return
    if not found:
        here.note("nothing was asked yet" if is_all else "nothing waits to be decided")
        return
    _show_list(here, found, names, has_status=is_all)
    here.hint("`bridle approvals show ID` shows all of it; then `bridle approve` or `bridle deny`")


def _show_list(
    here: Context, found: list[Approval], names: dict[str, str], *, has_status: bool
) -> None:
    heads = ("id", "session", "asks for", "what", "age", *(["status"] if has_status else []))
    # Whom it is put to is told where that is not people in any case.
    has_asked, now = any(one.asked for one in found), time.time()
    heads += ("asked",) if has_asked else ()
    rows = [
        [
            one.id[:8],
            names.get(one.session, one.session[:8]),
            ("! " if one.guard else "") + _asks_for(one),
            short(gist(one)),
            age(now - one.created),
            *([one.status] if has_status else []),
            *([_asked(one, names)] if has_asked else []),
        ]
        for one in found
    ]
    show_table(here, heads, rows, Fit(cut=("what",), spare=("age", "asked")))


def _asked(approval: Approval, names: dict[str, str]) -> str:
    if approval.status != "pending":
        return ""
    return names.get(approval.asked, approval.asked[:8]) if approval.asked else "people"


def _asks_for(approval: Approval) -> str:
    return approval.tool if approval.kind == "tool" else approval.kind


def gist(approval: Approval) -> str:
    """What it is about, in a few words."""
    given = approval.input
    for name in ("command", "file_path", "notebook_path", "url", "plan", "message", "query"):
        if isinstance(given.get(name), str):
            return str(given[name])
    questions = given.get("questions")
    if isinstance(questions, list) and questions and isinstance(questions[0], dict):
        return str(questions[0].get("question", ""))
    return ", ".join(given)


def show(
    context: typer.Context,
    approval: Annotated[
        str,
        typer.Argument(
            metavar="APPROVAL",
            help="An approval's id, or the beginning of it.",
            autocompletion=pending_approvals,
        ),
    ],
    is_json: Json = False,
) -> None:
    """Show all that an agent wants to do, why that is asked, and what could be allowed for good."""
    here = Context.of(context, is_json=is_json)

    async def work() -> tuple[Approval, Explanation, dict[str, str]]:
        async with here.client(offline=True) as client:
            found = await client.approvals.get(approval)
            sessions = [await client.sessions.get(found.session)]
            if not is_json:
                sessions += await client.sessions.list()
            names = {one.id: told_name(one) for one in sessions}
            return found, await client.approvals.explain(found.id), names

    found, why, names = here.run(work())
    if is_json:
        here.give({"approval": found, "why": why})
        return
    from msgspec.structs import replace

    from ...approvals.shown import coloured, show
    from ...approvals.shown import plain as uncoloured

    has_colours = here.console.is_terminal and not here.console.no_color
    paint = coloured if has_colours else uncoloured
    asks = replace(found, session=names[found.session])
    sys.stdout.write(show(asks, paint, is_whole=True, names=names) + "\n\n")
    _explain(here, found, why, names)


def _explain(here: Context, found: Approval, why: Explanation, names: dict[str, str]) -> None:
    """Pieces of what the agent wrote are in it, none of which is a line of its own."""
    from ...approvals.shown import on_a_line, status_of

    lines = [f"why: {why.text}"]
    start = "could be allowed for good with --session or --always"
    lines += [f"{start}: {candidate.rule}" for candidate in why.always]
    for line in (*lines, f"status: {status_of(found, names)}"):
        here.say(on_a_line(line))


# --- deciding

Remembered = Annotated[
    str | None,
    typer.Option(
        "--session", rich_help_panel=REMEMBERING, help="The session has this rule, too.",
        metavar="RULE",
    ),
]  # fmt: skip
Always = Annotated[
    str | None,
    typer.Option(
        "--always", rich_help_panel=REMEMBERING, metavar="RULE",
        help="All sessions at or below the agent's folder have this rule.",
    ),
]  # fmt: skip
Everywhere = Annotated[
    bool,
    typer.Option(
        "--everywhere", rich_help_panel=REMEMBERING, help="With --always: in all folders."
    ),
]
Shown = Annotated[
    str | None,
    typer.Option(help="The digest of what you saw: if it is another by now, nothing is decided."),
]


def approve(
    context: typer.Context,
    ids: ApprovalIds,
    message: Annotated[str, typer.Option("--message", "-m", help="A word for the log.")] = "",
    given: Annotated[
        str | None, typer.Option("--input", help="Run it with this input instead: JSON.")
    ] = None,
    mode: Annotated[
        Literal["default", "acceptEdits", "bypassPermissions"],
        typer.Option(help="How the agent goes on after its plan."),
    ] = "default",
    plan: Annotated[
        typer.FileText | None, typer.Option(help="A file with the plan as it is to be.")
    ] = None,
    answer: Annotated[
        Values,
        typer.Option(
            help="What you answer to a question: an option, its number, or words of your own;"
            " QUESTION=ANSWER where there are several."
        ),
    ] = None,
    session: Remembered = None,
    always: Always = None,
    is_everywhere: Everywhere = False,
    shown: Shown = None,
    is_json: Json = False,
) -> None:
    """Let an agent do what it asks for. The first decision counts."""
    here = Context.of(context, is_json=is_json)
    answers = Answers(
        message=message,
        input=given,
        mode=mode,
        plan=plan.read() if plan else None,
        answers=tuple(answer or ()),
        session_rule=session,
        always_rule=always,
        is_everywhere=is_everywhere,
    )
    _decide(here, ids, shown, answers, lambda approval: choice_for(approval, answers))


def deny(
    context: typer.Context,
    ids: ApprovalIds,
    message: Annotated[
        str, typer.Option("--message", "-m", help="Why: the agent is told this.")
    ] = "",
    is_interrupting: Annotated[
        bool, typer.Option("--interrupt", help="End its turn, too.")
    ] = False,
    session: Remembered = None,
    always: Always = None,
    is_everywhere: Everywhere = False,
    shown: Shown = None,
    is_json: Json = False,
) -> None:
    """Turn down what an agent asks for. The first decision counts."""
    from ..choices import rejection

    here = Context.of(context, is_json=is_json)
    answers = Answers(
        message=message, session_rule=session, always_rule=always, is_everywhere=is_everywhere
    )
    _decide(
        here,
        ids,
        shown,
        answers,
        lambda approval: rejection(approval, answers, interrupt=is_interrupting),
    )


def _decide(
    here: Context,
    ids: list[str],
    shown: str | None,
    said: Answers,
    choose: Callable[[Approval], Choice],
) -> None:
    """One after the other; what fails is told, and keeps no other from being decided."""
    if shown is not None and len(ids) > 1:
        raise Misused("--shown is for one approval", "decide them one by one")

    async def work() -> list[Approval | CommandError]:
        results: list[Approval | CommandError] = []
        async with here.client() as client:
            for one in ids:
                try:
                    found = await client.approvals.get(one)
                    choice = choose(found)
                    results.append(await client.approvals.decide(found.id, choice, shown))
                except CommandError as error:
                    results.append(error)
        return results

    results = here.run(work())
    decided = [one for one in results if not isinstance(one, CommandError)]
    if here.is_json:
        here.give(decided)
    for one in decided:
        done, behavior = ("denied", "deny") if one.status == "denied" else ("approved", "allow")
        here.say(f"{done} {one.id[:8]}: {_asks_for(one)} {short(gist(one))}")
        if rule := told_rule(one, said, behavior):
            here.say(plain(rule))
    errors = [one for one in results if isinstance(one, CommandError)]
    for error in errors[:-1]:
        here.note(f"bridle: {error}")
    if errors:
        raise errors[-1]
